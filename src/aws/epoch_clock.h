/*-------------------------------------------------------------------------
 *
 * epoch_clock.h
 *	  DynamoDB's time.
 *
 * Signatures and fencing tokens use DynamoDB's clock, as the Date headers of its
 * replies show it, extrapolated by our own steady clock.  So setting the
 * machine's wall clock has no effect.  Times are in microseconds; an offset is
 * epoch time minus our time.
 *
 * A Date has whole seconds, and it was written between the sending of the request
 * and the receipt of the reply: so each reply gives an interval of offsets.  The
 * intersection of all intervals is narrower; it widens with time by the drift
 * that our clock may have.
 *
 * A single Date may be wrong.  A Date that contradicts the earlier ones (or,
 * before there are any, the wall clock) by more than EPOCH_STEP_US (or
 * EPOCH_NEAR_US) votes for another interval, if its request was sent after the
 * previous vote was received, and if it is within EPOCH_STEP_US of that interval: servers'
 * clocks differ by a little.  A Date that contradicts that interval, too, takes a
 * vote away.  With EPOCH_VOTES the other interval is believed; a reply that agrees
 * with the believed interval clears the votes.  As long as the wall clock contradicts the
 * other interval, too, the votes must come in the course of EPOCH_DOUBT_US: several Dates
 * in a row may be wrong, and the machine right.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_EPOCH_CLOCK_H
#define DDBLOCK_AWS_EPOCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define EPOCH_VOTES		5
#define EPOCH_NEAR_US	INT64_C(5000000)	/* to the wall clock */
#define EPOCH_STEP_US	INT64_C(2000000)	/* to earlier Dates */
#define EPOCH_DOUBT_US	INT64_C(10000000)

typedef struct epoch_interval
{
	int64_t		low;			/* offsets */
	int64_t		high;
	int64_t		at;				/* when it was computed, on our clock */
} epoch_interval;

/* Plain data; may be copied. */
typedef struct epoch_clock
{
	bool		known;			/* from Dates; else from the wall clock only */
	int64_t		drift_ppm;		/* maximal error of our clock, both ways */
	epoch_interval now;			/* what is believed */
	unsigned	votes;			/* replies that contradict it, for: */
	epoch_interval other;		/* this interval, */
	int64_t		votes_since;	/* since then, on our clock */
} epoch_clock;

/* Before the first reply only the wall clock's offset is known. */
extern void epoch_clock_start(epoch_clock *clock, int64_t wall_offset,
							  int64_t drift_ppm);

/*
 * A reply with the Date date_s (epoch seconds, truncated) to a request that was
 * sent at "sent" was received at "received", on our clock; then the wall clock's offset was
 * wall_offset.
 */
extern void epoch_clock_reply(epoch_clock *clock, int64_t date_s,
							  int64_t sent, int64_t received, int64_t wall_offset);

/* The lowest and the highest offset possible now. */
extern int64_t epoch_clock_low(const epoch_clock *clock, int64_t now);
extern int64_t epoch_clock_high(const epoch_clock *clock, int64_t now);

/*
 * For signing, which uses the newest Date, believed or not: DynamoDB refuses a
 * signature with a wrong time, which is harmless.
 */
extern int64_t epoch_clock_likely(const epoch_clock *clock);

#endif							/* DDBLOCK_AWS_EPOCH_CLOCK_H */
