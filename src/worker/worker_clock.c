/*-------------------------------------------------------------------------
 *
 * worker_clock.c
 *	  DynamoDB's time: see worker.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "worker/worker.h"

/* The machine's steady clock may run so much too fast or too slow: NTP slews it by no more. */
#define DRIFT_PPM 500

int64
WorkerWallClock(void)
{
	return GetCurrentTimestamp() + EPOCH_DIFFERENCE_US;
}

void
WorkerClockInit(void)
{
	if (!segment->clock.known)
		epoch_clock_start(&segment->clock, WorkerWallClock() - SegmentNow(), DRIFT_PPM);
}

void
WorkerClockReply(int64 date_s, int64 sent, int64 received, bool refused)
{
	int64		wall = WorkerWallClock();

	if (refused)
		epoch_clock_refused(&segment->clock);
	if (date_s == 0)
		date_s = wall / USECS_PER_SEC;
	epoch_clock_reply(&segment->clock, date_s, sent, received, wall - received);
}

int64
WorkerEpochHigh(int64 now)
{
	return now + epoch_clock_high(&segment->clock, now);
}

int64
WorkerEpochLow(int64 now)
{
	return now + epoch_clock_low(&segment->clock, now);
}

int64
WorkerEpochLikely(int64 now)
{
	return now + epoch_clock_likely(&segment->clock);
}
