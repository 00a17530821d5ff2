/*-------------------------------------------------------------------------
 *
 * worker_random.c
 *	  Random bytes and UUIDs from a stock.
 *
 * Every write needs a nonce before it can be sent, and OpenSSL's generator is
 * slow when it was not used lately.  So the worker fills a stock while it has
 * nothing else to do.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "worker/worker.h"

#define STOCK 1024

static uint8 stock[STOCK];
static size_t left = 0;

void
WorkerStockRandom(void)
{
	if (left >= STOCK / 2)
		return;
	if (!pg_strong_random(stock, STOCK))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	left = STOCK;
}

void
WorkerFillRandom(void *arg, void *bytes, size_t len)
{
	Assert(len <= STOCK / 2);
	if (left < len)
		WorkerStockRandom();
	left -= len;
	memcpy(bytes, stock + left, len);
}

void
WorkerNewUuid(char uuid[UUID_SIZE])
{
	uint8		random[16];

	WorkerFillRandom(NULL, random, sizeof(random));
	uuid_v4(random, uuid);
}
