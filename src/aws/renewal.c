/*-------------------------------------------------------------------------
 *
 * renewal.c
 *	  Decides when credentials are fetched again: see aws.h.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

/* A random part of the time: 40 to 50 percent. */
static int64_t
about_half(int64_t time, uint64_t random)
{
	return time / 10 * 4 + (int64_t) (random % (uint64_t) (time / 10 + 1));
}

static int64_t
not_too_soon(int64_t delay)
{
	return delay > AWS_RENEWAL_SOONEST_US ? delay : AWS_RENEWAL_SOONEST_US;
}

void
aws_renewal_succeeded(aws_renewal *renewal, int64_t now, int64_t left, uint64_t random)
{
	renewal->failures = 0;
	renewal->next = AWS_RENEWAL_NEVER;
	if (left == AWS_RENEWAL_NEVER)
		return;
	renewal->next = now + not_too_soon(left > 0 ? about_half(left, random) : 0);
}

/*
 * Has no effect if only time has passed.  Example: at 0:00, 60 minutes were left, so the next fetch
 * is due between 0:24 and 0:30.  At 0:10, 50 minutes are left: the latest time is 0:35 now.
 */
void
aws_renewal_check(aws_renewal *renewal, int64_t now, int64_t left)
{
	int64_t		latest;

	if (left == AWS_RENEWAL_NEVER)
		return;
	latest = now + not_too_soon(left / 2);
	if (renewal->next > latest)
		renewal->next = latest;
}

void
aws_renewal_failed(aws_renewal *renewal, int64_t now, uint64_t random)
{
	int64_t		longest = AWS_RENEWAL_RETRY_US;

	for (unsigned i = 0; i < renewal->failures && longest < AWS_RENEWAL_RETRY_MAX_US; i++)
		longest *= 2;
	if (longest > AWS_RENEWAL_RETRY_MAX_US)
		longest = AWS_RENEWAL_RETRY_MAX_US;
	renewal->failures++;
	renewal->next = now + longest - about_half(longest, random);
}
