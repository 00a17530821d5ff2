/*-------------------------------------------------------------------------
 *
 * times.c
 *	  Our times and durations as PostgreSQL's types, and as text.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "shared/compat.h"
#include "shared/segment.h"
#include "shared/shared.h"

/* Start of the year 10000: a later time is in another unit than milliseconds. */
#define EPOCH_MS_MAX INT64CONST(253402300800000)

bool
TimesFromEpoch(int64 epoch_ms, TimestampTz *timestamp)
{
	if (epoch_ms <= 0 || epoch_ms >= EPOCH_MS_MAX)
		return false;
	*timestamp = epoch_ms * 1000 - EPOCH_DIFFERENCE_US;
	return true;
}

TimestampTz
TimesFromClock(int64 moment)
{
	return GetCurrentTimestamp() + (moment - SegmentNow());
}

Interval *
TimesInterval(int64 microseconds)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = microseconds;
	return interval;
}

bool
TimesMilliseconds(const Interval *interval, int64 least, int64 *milliseconds)
{
	int64		rest = interval->time % 1000;

	if (INTERVAL_NOT_FINITE(interval) || interval->month != 0)
		return false;
	*milliseconds = interval->day * (USECS_PER_DAY / 1000) + interval->time / 1000 - (rest < 0);
	if (rest != 0 && *milliseconds >= least)
		(*milliseconds)++;
	return true;
}

char *
TimesDuration(int64 milliseconds)
{
	if (milliseconds > DAY_MS && milliseconds % DAY_MS == 0)
		return psprintf(INT64_FORMAT " days", milliseconds / DAY_MS);
	if (milliseconds < 10000 && milliseconds % 1000 != 0)
		return psprintf(INT64_FORMAT " ms", milliseconds);
	return psprintf(INT64_FORMAT " s", milliseconds / 1000);
}
