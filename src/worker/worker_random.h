/*-------------------------------------------------------------------------
 *
 * worker_random.h
 *	  Random bytes and UUIDs from a stock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_RANDOM_H
#define DDBLOCK_WORKER_WORKER_RANDOM_H

#include "postgres.h"

#include "lock/uuid.h"

/* Refills the stock; call it when the worker has nothing else to do. */
extern void WorkerStockRandom(void);

/* The lock manager's "random" callback. */
extern void WorkerFillRandom(void *arg, void *bytes, size_t len);

extern void WorkerNewUuid(char uuid[UUID_SIZE]);

#endif							/* DDBLOCK_WORKER_WORKER_RANDOM_H */
