/*-------------------------------------------------------------------------
 *
 * renewal.h
 *	  When credentials are fetched again.
 *
 * In the background, long before they expire: when 40 to 50 percent of the time
 * that they have left has passed.  So a source may fail for about half of that time,
 * and a thousand servers that got theirs at once do not ask again at once.  A source
 * that gives the same credentials again is asked ever more often, as they get old.
 * A source that fails is asked again with growing delays.
 *
 * Times are microseconds of the caller's clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_RENEWAL_H
#define DDBLOCK_AWS_RENEWAL_H

#include <stdint.h>

#define AWS_RENEWAL_NEVER		INT64_MAX
#define AWS_RENEWAL_SOONEST_US	INT64_C(20000000)	/* after a success */
#define AWS_RENEWAL_RETRY_US	INT64_C(2000000)	/* after a failure; doubles */
#define AWS_RENEWAL_RETRY_MAX_US INT64_C(60000000)

/* Zero it before first use. */
typedef struct aws_renewal
{
	int64_t		next;			/* when to ask, or AWS_RENEWAL_NEVER */
	unsigned	failures;		/* in a row */
} aws_renewal;

/* left: how long the credentials are still valid; AWS_RENEWAL_NEVER: they do not expire. */
extern void aws_renewal_succeeded(aws_renewal *renewal, int64_t now, int64_t left,
								  uint64_t random);

/* The clock may have been corrected: "left" is what is left now. */
extern void aws_renewal_check(aws_renewal *renewal, int64_t now, int64_t left);
extern void aws_renewal_failed(aws_renewal *renewal, int64_t now, uint64_t random);

#endif							/* DDBLOCK_AWS_RENEWAL_H */
