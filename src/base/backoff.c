/*-------------------------------------------------------------------------
 *
 * backoff.c
 *	  How long to wait before a request is repeated.
 *
 *-------------------------------------------------------------------------
 */
#include "base/backoff.h"

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
#define PRICE			5
#define PRICE_TIMEOUT	10

int
backoff_price(dynamo_status status)
{
	if (status == DYNAMO_UNKNOWN || status == DYNAMO_UNREACHABLE)
		return PRICE_TIMEOUT;
	return dynamo_is_failure(status) ? PRICE : 0;
}

int
backoff_earned(bool repeated)
{
	return repeated ? PRICE : 1;
}

void
backoff_charge(backoff_budget *budget, const dynamo_reply *reply, int count, bool repeated)
{
	int			price = reply->count == count ? 0 : PRICE;
	int			earned = backoff_earned(repeated);

	for (int i = 0; i < reply->count; i++)
	{
		int			of_result = backoff_price(reply->results[i].status);

		if (of_result > price)
			price = of_result;
	}
	budget->cannot_pay = budget->spent + price > BACKOFF_BUDGET;
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
