/*-------------------------------------------------------------------------
 *
 * backoff.c
 *	  How long to wait before a request is repeated.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/backoff.h"

int64_t
backoff_us(unsigned attempt, int64_t cap_us, uint64_t random)
{
	int64_t		bound = BACKOFF_BASE_US;

	while (attempt-- > 1 && bound < cap_us)
		bound *= 2;
	if (bound > cap_us)
		bound = cap_us;
	return bound <= 0 ? 0 : (int64_t) (random % (uint64_t) bound);
}

/*
 * Source: AWS SDKs and Tools Reference Guide, "Retry behavior": 500 units, 5 for a repetition,
 * 10 after a time-out.
 */
#define BUDGET			500
#define PRICE			5
#define PRICE_TIMEOUT	10

void
backoff_pay(backoff_budget *budget, const dynamo_reply *reply, int count, bool repeated)
{
	int			price = reply->count == count ? 0 : PRICE;
	int			earned = repeated ? PRICE : 1;

	for (int i = 0; i < reply->count; i++)
	{
		dynamo_status status = reply->results[i].status;

		if (status == DYNAMO_UNKNOWN || status == DYNAMO_UNREACHABLE)
			price = PRICE_TIMEOUT;
		else if (status != DYNAMO_OK && status != DYNAMO_CONDITION_FAILED && price == 0)
			price = PRICE;
	}
	budget->cannot_pay = budget->spent + price > BUDGET;
	if (price == 0)
		budget->spent -= earned < budget->spent ? earned : budget->spent;
	else if (!budget->cannot_pay)
		budget->spent += price;
}

int64_t
backoff_later_us(bool cannot_pay, unsigned attempt, int64_t cap_us, uint64_t random)
{
	return (cannot_pay ? cap_us : 0) + backoff_us(attempt, cap_us, random);
}
