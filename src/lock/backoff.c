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
