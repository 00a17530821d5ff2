/*-------------------------------------------------------------------------
 *
 * times.h
 *	  Our times and durations as PostgreSQL's types, and as text.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_TIMES_H
#define DDBLOCK_SHARED_TIMES_H

#include "postgres.h"

#include "datatype/timestamp.h"

/* From 1970 to the beginning of PostgreSQL's time. */
#define EPOCH_DIFFERENCE_US \
	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/* Epoch milliseconds, as written by anybody: false if 0 or out of reason. */
extern bool TimesFromEpoch(int64 epoch_ms, TimestampTz *timestamp);

/* A moment on the clock of leases, as seen by the wall clock now. */
extern TimestampTz TimesFromClock(int64 moment);

extern Interval *TimesInterval(int64 microseconds);

/*
 * Milliseconds, rounded up; false if the interval has months, which have no
 * fixed length, or is infinite.
 */
extern bool TimesMilliseconds(const Interval *interval, int64 *milliseconds);

/* "1500 ms", "20 s": palloc'd, for messages. */
extern char *TimesDuration(int64 milliseconds);

#endif							/* DDBLOCK_SHARED_TIMES_H */
