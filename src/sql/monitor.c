/*-------------------------------------------------------------------------
 *
 * monitor.c
 *	  ddb_lock_monitor(): waits until a lease of this cluster is about to end.
 *
 * Nobody can tell a session anything while it executes a statement, and the worker is connected to
 * no database in which it could NOTIFY.  So another session calls this function, and when it
 * returns, does what has to be done.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "sql/sql.h"

/* How often the function looks: a lease may be lost, or let go, at any time. */
#define LOOK_US INT64CONST(100000)

#define LEFT_UNKNOWN (-1)

/* When the lease ends, or the last hold on it ends by its limit (at_most), whichever is sooner. */
static int64
valid_until(uint32 index, uint32 generation)
{
	return Min(mailbox_valid_until(&segment_mailbox, index, generation),
			   SegmentHoldsEnd(index, generation));
}

/*
 * Waits until the lease lasts for less than less_than, and returns for how long it still lasts.
 * Returns 0 if the lease is lost; LEFT_UNKNOWN if it was released, or at the time "until".
 */
static int64
watch(uint32 index, uint32 generation, int64 less_than, int64 until)
{
	DeadlockSearch deadlock;

	DeadlockStart(&deadlock);
	for (;;)
	{
		int64		left;

		/* If the lease is not valid any more, find out whether it was lost or released. */
		if (valid_until(index, generation) <= SegmentNow())
		{
			LeaseCopy	copy;

			if (!SegmentReadLease(index, &copy) || copy.lease.generation != generation)
				return LEFT_UNKNOWN;
			if (copy.lease.state == LEASE_LOST ||
				(copy.lease.state == LEASE_HELD && valid_until(index, generation) <= SegmentNow()))
				return 0;
			if (copy.lease.state != LEASE_HELD)
				return LEFT_UNKNOWN;
		}
		left = valid_until(index, generation);
		pg_read_barrier();		/* read the deadline before the clock, as in HeldIsValid() */
		left -= SegmentNow();
		if (left > 0 && left < less_than)
			return left;
		if (SegmentNow() >= until)
			return LEFT_UNKNOWN;
		(void) DeadlockTurn(&deadlock, SegmentNow());
		TableSleep(LOOK_US);
	}
}

PG_FUNCTION_INFO_V1(ddb_lock_monitor);

/* (name, less_than, wait) */
Datum
ddb_lock_monitor(PG_FUNCTION_ARGS)
{
	int64		until;
	uint32		index;
	LeaseCopy	copy;
	volatile int64 left = LEFT_UNKNOWN;
	LockName	name = ArgumentAllowedName(fcinfo);
	int64		less_than;
	int64		wait_ms;

	ArgumentRequire(fcinfo, 1, "less_than");
	less_than = ArgumentPeriod(fcinfo, 1, "less_than", 0) * 1000;
	wait_ms = ArgumentPeriod(fcinfo, 2, "wait", CENTURY_MS);
	AwaitWithoutSnapshot(fcinfo, "ddb_lock_monitor");
	until = SegmentNow() + wait_ms * 1000;
	/* Find the lease by which this cluster holds the lock. */
	for (index = 0; index < segment->max_leases; index++)
	{
		if (SegmentReadLease(index, &copy) && copy.lease.state == LEASE_HELD &&
			strcmp(copy.name, name.utf8) == 0)
			break;
	}
	if (index == segment->max_leases)
		PG_RETURN_NULL();
	SessionAttach();
	DeadlockWaitForRelease(index, copy.lease.generation);
	PG_TRY();
	{
		left = watch(index, copy.lease.generation, less_than, until);
	}
	PG_FINALLY();
	{
		DeadlockEndWait();
	}
	PG_END_TRY();
	if (left == LEFT_UNKNOWN)
		PG_RETURN_NULL();
	PG_RETURN_INTERVAL_P(TimesInterval(left));
}
