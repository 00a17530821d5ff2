/*-------------------------------------------------------------------------
 *
 * monitor.c
 *	  ddb_lock_monitor(): waits until a lease of this cluster is about to end.
 *
 * A session that runs a statement cannot be told anything, and the worker has no
 * database in which it could NOTIFY.  So another session asks, which then does what
 * is to be done.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "session/session.h"
#include "shared/shared.h"
#include "sql/sql.h"

/* A lease may be lost, or let go, at any time. */
#define LOOK_US INT64CONST(100000)

#define LEFT_UNKNOWN (-1)

/* Also if all who hold the lock lose it sooner. */
static int64
valid_until(uint32 index, uint32 generation)
{
	return Min(mailbox_valid_until(&segment_mailbox, index, generation),
			   SegmentHoldsEnd(index, generation));
}

/* Does nobody here hold it any more?  If so, was it lost? */
static bool
is_over(uint32 index, uint32 generation, bool *lost)
{
	LeaseCopy	copy;

	if (valid_until(index, generation) > SegmentNow())
		return false;
	if (!SegmentReadLease(index, &copy) || copy.lease.generation != generation)
		return true;
	*lost = copy.lease.state == LEASE_LOST ||
		(copy.lease.state == LEASE_HELD && valid_until(index, generation) <= SegmentNow());
	return *lost || copy.lease.state != LEASE_HELD;
}

/* How long the lease lasts, when that is little; 0: it is lost; else LEFT_UNKNOWN. */
static int64
watch(uint32 index, uint32 generation, int64 less_than, int64 until)
{
	DeadlockSearch deadlock;
	bool		lost = false;

	DeadlockStart(&deadlock);
	while (!is_over(index, generation, &lost))
	{
		int64		left = valid_until(index, generation);

		pg_read_barrier();		/* as in HeldIsValid() */
		left -= SegmentNow();
		if (left > 0 && left < less_than)
			return left;
		if (SegmentNow() >= until)
			return LEFT_UNKNOWN;
		(void) DeadlockTurn(&deadlock, SegmentNow());
		TableSleep(LOOK_US);
	}
	return lost ? 0 : LEFT_UNKNOWN;
}

/* The lease on the lock that sessions of this cluster hold. */
static bool
find_lease(const LockName *name, uint32 *index, uint32 *generation)
{
	LeaseCopy	copy;

	for (*index = 0; *index < segment->max_leases; (*index)++)
	{
		if (SegmentReadLease(*index, &copy) && copy.lease.state == LEASE_HELD &&
			strcmp(copy.name, name->utf8) == 0)
		{
			*generation = copy.lease.generation;
			return true;
		}
	}
	return false;
}

PG_FUNCTION_INFO_V1(ddb_lock_monitor);

/* (name, less_than, wait) */
Datum
ddb_lock_monitor(PG_FUNCTION_ARGS)
{
	int64		until;
	uint32		index;
	uint32		generation;
	volatile int64 left = LEFT_UNKNOWN;
	LockName	name = ArgumentAllowedName(fcinfo);
	int64		less_than;
	int64		wait_ms;

	ArgumentRequire(fcinfo, 1, "less_than");
	less_than = ArgumentPeriod(fcinfo, 1, "less_than", 0) * 1000;
	wait_ms = ArgumentPeriod(fcinfo, 2, "wait", CENTURY_MS);
	AwaitWithoutSnapshot(fcinfo, "ddb_lock_monitor");
	until = SegmentNow() + wait_ms * 1000;
	if (!find_lease(&name, &index, &generation))
		PG_RETURN_NULL();
	SessionAttach();
	DeadlockWaitForRelease(index, generation);
	PG_TRY();
	{
		left = watch(index, generation, less_than, until);
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
