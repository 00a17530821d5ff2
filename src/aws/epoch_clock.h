/*-------------------------------------------------------------------------
 *
 * epoch_clock.h
 *	  What time it is in DynamoDB.
 *
 * Requests are signed with, and fencing tokens are taken from,
 * DynamoDB's clock as its replies' Date headers tell it, carried forward by
 * our own steady clock.  So it does not matter if somebody sets the machine's
 * wall clock.  Times are in microseconds; an offset is epoch time minus our
 * time.
 *
 * A Date has whole seconds, and the moment at which it was written is known
 * from the request's sending to the reply's receipt: so each reply gives an
 * interval of offsets.  What all of them allow is narrower, and widens with
 * time as far as our clock may drift.
 *
 * One Date may be absurd.  What contradicts all earlier ones (or, before there
 * are any, the wall clock) by more than a little is believed only when
 * EPOCH_VOTES replies more agree on it than do not, each to a request that was
 * sent after the one before it had come, and none that agrees with what is
 * believed has come in between.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_EPOCH_CLOCK_H
#define DDBLOCK_AWS_EPOCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define EPOCH_VOTES		5
#define EPOCH_NEAR_US	INT64_C(300000000)	/* to the wall clock: DynamoDB takes
											 * signatures that are so far off */
#define EPOCH_STEP_US	INT64_C(2000000)	/* to earlier Dates */

typedef struct epoch_interval
{
	int64_t		low;			/* offsets */
	int64_t		high;
	int64_t		at;				/* when it was found, by our clock */
} epoch_interval;

/* Plain data: a copy goes on where the original was. */
typedef struct epoch_clock
{
	bool		known;			/* from Dates; else only from the wall clock */
	int64_t		drift_ppm;		/* our clock's error at most, both ways */
	epoch_interval now;			/* what is believed */
	unsigned	votes;			/* replies that contradict it and agree on */
	epoch_interval other;		/* ... this */
} epoch_clock;

/* Before the first reply there is only the wall clock's offset. */
extern void epoch_clock_start(epoch_clock *clock, int64_t wall_offset,
							  int64_t drift_ppm);

/*
 * A reply stamped date_s (epoch seconds, cut to whole ones) answered a request
 * sent at "sent" and was received at "received" on our clock.
 */
extern void epoch_clock_reply(epoch_clock *clock, int64_t date_s,
							  int64_t sent, int64_t received);

/* The least and the highest offset that is possible now. */
extern int64_t epoch_clock_low(const epoch_clock *clock, int64_t now);
extern int64_t epoch_clock_high(const epoch_clock *clock, int64_t now);

/*
 * For signing: a wrong time is refused, and costs no more than that.  So the
 * newest Date counts, believed or not.
 */
extern int64_t epoch_clock_likely(const epoch_clock *clock);

#endif							/* DDBLOCK_AWS_EPOCH_CLOCK_H */
