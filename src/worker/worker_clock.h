/*-------------------------------------------------------------------------
 *
 * worker_clock.h
 *	  DynamoDB's time, as the replies' Date headers show it (aws/epoch_clock.h).
 *
 * The segment keeps the clock: a new worker goes on with what the one before it
 * has learned.  All times are microseconds since the epoch, and "now" is
 * SegmentNow().
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_CLOCK_H
#define DDBLOCK_WORKER_WORKER_CLOCK_H

#include "postgres.h"

/* The machine's, in epoch microseconds. */
extern int64 WorkerWallClock(void);

extern void WorkerClockInit(void);

/*
 * A reply with this Date header (epoch seconds) to a request that was sent then.
 * date_s is 0 if there was none, as from an imitation of DynamoDB: its time is
 * taken to be our wall clock's.
 */
extern void WorkerClockReply(int64 date_s, int64 sent, int64 received);

/* The bounds of DynamoDB's time. */
extern int64 WorkerEpochHigh(int64 now);
extern int64 WorkerEpochLow(int64 now);

/* The time to sign with. */
extern int64 WorkerEpochLikely(int64 now);

#endif							/* DDBLOCK_WORKER_WORKER_CLOCK_H */
