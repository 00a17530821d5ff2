/*-------------------------------------------------------------------------
 *
 * epoch_clock.c
 *	  DynamoDB's time, from the Dates of its replies.  aws.h has the rules.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#define SECOND INT64_C(1000000)

/* A server's time() may lag behind its clock by one tick of the kernel. */
#define TICK INT64_C(10000)

/* The start of the year 10000, in epoch seconds.  Smaller Dates cause no overflow. */
#define DATE_MAX INT64_C(253402300800)

/* The interval at the time "now": wider by the drift since it was computed. */
static epoch_interval
widened(const epoch_clock *clock, epoch_interval interval, int64_t now)
{
	int64_t		elapsed = now > interval.at ? now - interval.at : 0;
	int64_t		drift = elapsed / SECOND * clock->drift_ppm +
		elapsed % SECOND * clock->drift_ppm / SECOND + 1;

	interval.low -= drift;
	interval.high += drift;
	interval.at = now;
	return interval;
}

/* The distance between the two intervals; 0: they overlap. */
static int64_t
gap(epoch_interval a, epoch_interval b)
{
	if (a.low > b.high)
		return a.low - b.high;
	return b.low > a.high ? b.low - a.high : 0;
}

/* The intersection of two intervals that overlap. */
static epoch_interval
common(epoch_interval a, epoch_interval b)
{
	if (b.low > a.low)
		a.low = b.low;
	if (b.high < a.high)
		a.high = b.high;
	return a;
}

void
epoch_clock_start(epoch_clock *clock, int64_t wall_offset, int64_t drift_ppm)
{
	memset(clock, 0, sizeof(*clock));
	clock->drift_ppm = drift_ppm;
	clock->now.low = clock->now.high = wall_offset;
}

static bool
is_near_wall_clock(epoch_interval interval, int64_t wall_offset)
{
	epoch_interval wall = {.low = wall_offset,.high = wall_offset};

	return gap(wall, interval) <= EPOCH_NEAR_US;
}

static void
believe(epoch_clock *clock, epoch_interval interval)
{
	clock->now = interval;
	clock->known = true;
	clock->votes = 0;
}

/* Counts a Date that contradicts the believed interval: seen is the Date's own interval. */
static void
vote(epoch_clock *clock, epoch_interval seen, int64_t sent, int64_t wall_offset)
{
	epoch_interval other = widened(clock, clock->other, seen.at);

	if (clock->votes > 0 && gap(other, seen) <= EPOCH_STEP_US)
	{
		if (sent < clock->other.at)
			return;				/* both Dates may have the same cause: not a further vote */
		if (clock->votes < EPOCH_VOTES)
			clock->votes++;
		clock->other = gap(other, seen) == 0 ? common(other, seen) : seen;
	}
	else if (clock->votes <= 1)
	{
		clock->votes = 1;
		clock->other = seen;
		clock->votes_since = seen.at;
	}
	else
		clock->votes--;			/* seen contradicts the other interval, too */
	if (clock->votes >= EPOCH_VOTES &&
		(is_near_wall_clock(clock->other, wall_offset) || (!clock->known && clock->wall_refused) ||
		 seen.at - clock->votes_since >= EPOCH_DOUBT_US))
		believe(clock, clock->other);
}

void
epoch_clock_refused(epoch_clock *clock)
{
	if (clock->votes == 0)
		clock->wall_refused = true;
}

void
epoch_clock_reply(epoch_clock *clock, int64_t date_s, int64_t sent, int64_t received,
				  int64_t wall_offset)
{
	epoch_interval seen = {.at = sent};
	epoch_interval now;

	if (date_s <= 0 || date_s >= DATE_MAX)
		return;
	seen.low = date_s * SECOND - received;
	seen.high = (date_s + 1) * SECOND + TICK - sent;
	seen = widened(clock, seen, received);
	if (!clock->known)
	{
		if (is_near_wall_clock(seen, wall_offset))
			believe(clock, seen);
		else
			vote(clock, seen, sent, wall_offset);
		return;
	}
	now = widened(clock, clock->now, received);
	if (gap(now, seen) == 0)
		believe(clock, common(now, seen));
	else if (gap(now, seen) <= EPOCH_STEP_US)
		believe(clock, seen);	/* the server's clock was stepped, or ours stood still */
	else
		vote(clock, seen, sent, wall_offset);
}

int64_t
epoch_clock_low(const epoch_clock *clock, int64_t now)
{
	return widened(clock, clock->now, now).low;
}

int64_t
epoch_clock_high(const epoch_clock *clock, int64_t now)
{
	return widened(clock, clock->now, now).high;
}

int64_t
epoch_clock_likely(const epoch_clock *clock)
{
	epoch_interval newest = clock->votes > 0 ? clock->other : clock->now;

	return newest.low + (newest.high - newest.low) / 2;
}
