/*-------------------------------------------------------------------------
 *
 * locks_view.c
 *	  The function behind the view ddb_locks.
 *
 * It only reads shared memory, without a lock.  It copies one slot or lease after the other: a row
 * is consistent, but different rows may show different moments.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "sql/sql.h"

/* A request that waits for a lock. */
typedef struct Waiter
{
	WaiterCopy	is;
	bool		acquiring;		/* a lease is being acquired for this request */
} Waiter;

/* Puts the row, begins the next one, and resets the current memory context, which is for a row. */
static void
put_row(Row *row, FunctionCallInfo fcinfo)
{
	RowPut(row, fcinfo);
	RowStart(row, fcinfo);
	MemoryContextReset(CurrentMemoryContext);
}

/*
 * Returns how many requests wait for the lock of this lease.  Does not count the request for which
 * the lease is being acquired, but marks it: the view shows it as acquiring, not as waiting.
 */
static int
count_waiters(Waiter *waiters, int count, const LeaseCopy *entry)
{
	const lease_write *pending = &entry->lease.pending;
	int			found = 0;

	for (int i = 0; i < count; i++)
	{
		Waiter	   *waiter = &waiters[i];

		if (strcmp(waiter->is.name, entry->name) != 0)
			continue;
		if (entry->lease.state == LEASE_ACQUIRING &&
			pending->session.slot == waiter->is.session.slot &&
			pending->session.generation == waiter->is.session.generation &&
			pending->seq == waiter->is.request.seq)
			waiter->acquiring = true;
		else
			found++;
	}
	return found;
}

static void
mode_columns(lock_mode mode, int32 permits, Row *row)
{
	RowText(row, "mode", dynamo_mode_name(mode));
	if (lockmgr_limited(mode) && permits > 0)
		RowSet(row, "permits", Int32GetDatum(permits));
}

/* When the session's hold ends, if its lease is not renewed. */
static int64
valid_until(const saved_lease *l, const HoldCopy *held)
{
	return held->hold.must_end != 0 ? Min(l->valid_until, held->hold.must_end) : l->valid_until;
}

static const char *
state_of(const LeaseCopy *entry, const HoldCopy *held, int64 now)
{
	const saved_lease *l = &entry->lease;

	switch (l->state)
	{
		case LEASE_ACQUIRING:
			return "acquiring";
		case LEASE_HELD:
			/* The session has released the lock; the worker may not have noticed that yet. */
			if (held == NULL || held->let_go)
				return "releasing";
			return valid_until(l, held) > now ? "held" : "lost";
		case LEASE_RELEASING:
		case LEASE_BARRING:
			return "releasing";
		case LEASE_LOST:
			return "lost";
		case LEASE_FREE:
			break;
	}
	elog(ERROR, "unexpected lease state: %d", (int) l->state);
}

/* Fills a row about a lease and a hold on it.  held NULL: the lease has no hold. */
static void
lease_row(const LeaseCopy *entry, const HoldCopy *held, int waiting, int64 now, Row *row)
{
	const saved_lease *l = &entry->lease;
	const dynamo_holder *holder = held ? &held->hold.holder : &l->holder;
	int64		lease_ms = l->state == LEASE_ACQUIRING || l->state == LEASE_BARRING ?
		l->pending.lease_ms : l->lease_ms;

	RowValue(row, "name", NOTICE, "name of a lock", entry->name);
	if (held == NULL || (held->hold.ends_at == 0 && !held->hold.leadership))
		RowSet(row, "pid", Int32GetDatum(holder->pid));
	RowText(row, "datname", holder->database);
	RowText(row, "usename", holder->user);
	RowInterval(row, "lease", lease_ms * 1000);
	mode_columns(l->mode, held ? held->hold.permits : l->permits, row);
	RowSet(row, "waiters", Int32GetDatum(waiting));
	RowText(row, "state", state_of(entry, held, now));
	if (held == NULL)
		return;

	if (held->hold.leadership)
		RowText(row, "scope", "leadership");
	else if (held->hold.ends_at != 0)
	{
		RowText(row, "scope", "detached");
		RowClock(row, "ends_at", held->hold.ends_at);
	}
	else if (held->session_depth != 0 || held->xact_depth != 0)
	{
		const char *scope = "session+transaction";

		if (held->xact_depth == 0)
			scope = "session";
		else if (held->session_depth == 0)
			scope = "transaction";
		RowText(row, "scope", scope);
		RowSet(row, "depth", Int64GetDatum((int64) held->session_depth + held->xact_depth));
	}
	if (held->hold.must_end != 0)
		RowClock(row, "ends_at", held->hold.must_end);
	RowSet(row, "joined", BoolGetDatum(held->hold.joined));
	RowSet(row, "token", Int64GetDatum(held->hold.token));
	RowEpoch(row, "acquired_at", held->hold.acquired_ms);
	if (valid_until(l, held) > now)
		RowInterval(row, "time_left", valid_until(l, held) - now);
	RowSet(row, "renewals", Int64GetDatum((int64) l->renewals));
}

static void
waiter_row(const WaiterCopy *waiter, Row *row)
{
	lockmgr_watch watch;

	RowValue(row, "name", NOTICE, "name of a lock", waiter->name);
	RowSet(row, "pid", Int32GetDatum(waiter->pid));
	RowText(row, "datname", waiter->database);
	RowText(row, "usename", waiter->user);
	RowInterval(row, "lease", waiter->request.ask.lease_ms * 1000);
	RowText(row, "state", "waiting");
	mode_columns(waiter->request.ask.mode, waiter->request.ask.permits, row);
	RowClock(row, "waiting_since", waiter->request.posted);

	/* The lock's holder is a process of this cluster or another owner, if the worker knows. */
	if (!WaitingReadWatch(&segment_slots[waiter->session.slot], waiter->request.seq, &watch) ||
		!watch.held)
		return;
	if (!watch.local)
		RowValue(row, "blocked_by_owner", NOTICE, "owner of a lock", watch.owner);
	else if (watch.holder.pid != 0)
		RowSet(row, "blocked_by_pid", Int32GetDatum(watch.holder.pid));
}

/* The next lease with a hold, from number *i on, whose name the session may see. */
static bool
next_held(uint32 *i, LeaseCopy *entry, HoldCopy *held)
{
	for (; *i < segment->max_leases; (*i)++)
	{
		CHECK_FOR_INTERRUPTS();
		if (SegmentReadHold(*i, held) && SegmentReadLease(held->hold.lease_index, entry) &&
			entry->lease.generation == held->hold.lease_generation && PrefixAllows(entry->name))
			return true;
	}
	return false;
}

PG_FUNCTION_INFO_V1(ddb_locks);
Datum
ddb_locks(PG_FUNCTION_ARGS)
{
	LeaseCopy  *entry = palloc(sizeof(LeaseCopy));
	HoldCopy   *held = palloc(sizeof(HoldCopy));
	bool	   *shown;
	int64		now;
	Waiter	   *waiters;
	int			waiter_count = 0;
	MemoryContext old;
	Row			row;

	ErrorsRequirePreload();
	InitMaterializedSRF(fcinfo, 0);
	RowStart(&row, fcinfo);

	shown = palloc0(segment->max_leases * sizeof(bool));
	waiters = palloc0(segment->max_sessions * sizeof(Waiter));
	for (uint32 i = 0; i < segment->max_sessions; i++)
		waiter_count += SegmentReadWaiter(i, &waiters[waiter_count].is);
	now = SegmentNow();

	old = MemoryContextSwitchTo(AllocSetContextCreate(CurrentMemoryContext, "ddb_locks row",
													  ALLOCSET_DEFAULT_SIZES));
	for (uint32 i = 0; next_held(&i, entry, held); i++)
	{
		lease_row(entry, held, count_waiters(waiters, waiter_count, entry), now, &row);
		put_row(&row, fcinfo);
		shown[held->hold.lease_index] = true;
	}
	/* Leases without a hold: they are being acquired or released. */
	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (shown[i] || !SegmentReadLease(i, entry) ||
			!PrefixAllows(entry->name))
			continue;
		lease_row(entry, NULL, count_waiters(waiters, waiter_count, entry), now, &row);
		put_row(&row, fcinfo);
	}
	for (int i = 0; i < waiter_count; i++)
	{
		if (waiters[i].acquiring || !PrefixAllows(waiters[i].is.name))
			continue;
		waiter_row(&waiters[i].is, &row);
		put_row(&row, fcinfo);
	}
	MemoryContextDelete(MemoryContextSwitchTo(old));
	return (Datum) 0;
}
