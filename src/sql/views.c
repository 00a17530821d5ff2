/*-------------------------------------------------------------------------
 *
 * views.c
 *	  The functions behind the views ddb_locks and ddb_stats.
 *
 * Both only read shared memory, and do not keep others from writing it.  Each
 * slot and each lease is copied by itself: a row is consistent, but different
 * rows may show different moments.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "shared/errors.h"
#include "shared/loss.h"
#include "shared/times.h"
#include "shared/utf8.h"

PG_FUNCTION_INFO_V1(ddb_locks);
PG_FUNCTION_INFO_V1(ddb_stats);

/* The columns of ddb_locks, in order. */
enum
{
	LOCKS_NAME,
	LOCKS_PID,
	LOCKS_DATABASE,
	LOCKS_USENAME,
	LOCKS_SCOPE,
	LOCKS_DEPTH,
	LOCKS_TOKEN,
	LOCKS_ACQUIRED_AT,
	LOCKS_LEASE,
	LOCKS_TIME_LEFT,
	LOCKS_RENEWALS,
	LOCKS_WAITERS,
	LOCKS_STATE,
	LOCKS_COLUMNS
};

/* The columns of ddb_stats, in order. */
enum
{
	STATS_OPERATION,
	STATS_REQUESTS,
	STATS_ERRORS,
	STATS_THROTTLES,
	STATS_RETRIES,
	STATS_REPLIES,
	STATS_LATENCY_TOTAL,
	STATS_LATENCY_HISTOGRAM,
	STATS_CONSUMED_UNITS,
	STATS_LEASES_HELD,
	STATS_LEASES_LOST,
	STATS_WAITERS,
	STATS_LAST_LOSS_AT,
	STATS_LAST_LOSS,
	STATS_SINCE,
	STATS_COLUMNS
};

/* A request that waits for a lock. */
typedef struct Waiter
{
	lockmgr_session session;
	uint64		seq;
	int			pid;
	bool		acquiring;		/* a lease is being acquired for it */
	char		database[NAMEDATALEN];
	char		user[NAMEDATALEN];
	int64		lease_ms;
	uint16		name_len;
	char	   *name;			/* UTF-8 */
} Waiter;

typedef struct Row
{
	Datum		values[LOCKS_COLUMNS];
	bool		nulls[LOCKS_COLUMNS];
} Row;

/* One operation's counters, or the sum of them all. */
typedef struct OpTotals
{
	uint64		requests;
	uint64		errors;
	uint64		throttles;
	uint64		retries;
	uint64		latency_us;
	uint64		latency_count;
	uint64		consumed_milliunits;
	uint64		histogram[SEGMENT_BUCKETS];
} OpTotals;

static void put_row(Row *row, ReturnSetInfo *result);
static int	collect_waiters(Waiter *waiters);
static bool read_waiter(uint32 index, Waiter *waiter, char *name);
static int	count_waiters(Waiter *waiters, int count, const LeaseCopy *entry);
static void lease_row(const LeaseCopy *entry, const HoldCopy *held, int waiting, int64 now,
					  Row *row);
static void hold_columns(const LeaseCopy *entry, const HoldCopy *held, int64 now, Row *row);
static void depth_columns(const HoldCopy *held, Row *row);
static const char *state_of(const LeaseCopy *entry, const HoldCopy *held, int64 now);
static void waiter_row(const Waiter *waiter, Row *row);
static void set(Row *row, int column, Datum value);
static void set_text(Row *row, int column, const char *utf8, int len);
static void add_counters(OpTotals *totals, OpCounters *ops);
static void put_totals(ReturnSetInfo *result, const char *operation,
					   const OpTotals *totals, bool all);
static void put_last_loss(Datum *values, bool *nulls);
static Datum histogram_array(const uint64 *histogram);

Datum
ddb_locks(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	LeaseCopy  *entry = palloc(sizeof(LeaseCopy));
	HoldCopy   *held = palloc(sizeof(HoldCopy));
	bool	   *shown;
	int64		now;
	Waiter	   *waiters;
	int			waiter_count;
	MemoryContext old;
	Row			row;

	ErrorsRequirePreload();
	InitMaterializedSRF(fcinfo, 0);

	shown = palloc0(segment->max_leases * sizeof(bool));
	waiters = palloc(segment->max_sessions * sizeof(Waiter));
	waiter_count = collect_waiters(waiters);
	now = SegmentNow();

	old = MemoryContextSwitchTo(AllocSetContextCreate(CurrentMemoryContext, "ddb_locks row",
													  ALLOCSET_DEFAULT_SIZES));
	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!SegmentReadHold(i, held) ||
			!SegmentReadLease(held->hold.lease_index, entry) ||
			entry->lease.generation != held->hold.lease_generation)
			continue;
		lease_row(entry, held, count_waiters(waiters, waiter_count, entry), now, &row);
		put_row(&row, result);
		shown[held->hold.lease_index] = true;
	}
	/* These are being acquired or released. */
	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (shown[i] || !SegmentReadLease(i, entry))
			continue;
		lease_row(entry, NULL, count_waiters(waiters, waiter_count, entry), now, &row);
		put_row(&row, result);
	}
	for (int i = 0; i < waiter_count; i++)
	{
		if (waiters[i].acquiring)
			continue;
		waiter_row(&waiters[i], &row);
		put_row(&row, result);
	}
	MemoryContextDelete(MemoryContextSwitchTo(old));
	return (Datum) 0;
}

/* Frees what was allocated for the row: the current memory context is for that. */
static void
put_row(Row *row, ReturnSetInfo *result)
{
	tuplestore_putvalues(result->setResult, result->setDesc, row->values, row->nulls);
	MemoryContextReset(CurrentMemoryContext);
}

static int
collect_waiters(Waiter *waiters)
{
	char		name[DYNAMO_NAME_MAX];
	int			count = 0;

	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		Waiter	   *waiter = &waiters[count];

		if (!read_waiter(i, waiter, name))
			continue;
		waiter->name = palloc(waiter->name_len);
		memcpy(waiter->name, name, waiter->name_len);
		count++;
	}
	return count;
}

static bool
read_waiter(uint32 index, Waiter *waiter, char *name)
{
	MailboxSlot *slot = &segment_slots[index];
	const MailboxRequest *request = &slot->request;
	uint32		before;

	do
	{
		before = shared_begin_read(&slot->words.changes);
		/* A request that is just being posted is not waiting yet. */
		if (before % 2 == 1)
			return false;
		waiter->session.slot = index;
		waiter->session.generation = slot->words.request_generation;
		waiter->seq = slot->words.request_seq;
		waiter->acquiring = false;
		waiter->pid = slot->pid;
		memcpy(waiter->database, slot->database, NAMEDATALEN);
		memcpy(waiter->user, slot->user, NAMEDATALEN);
		waiter->lease_ms = request->acquire.lease_ms;
		waiter->name_len = Min(request->name_len, DYNAMO_NAME_MAX);
		if (request->kind != MAILBOX_ACQUIRE && request->kind != MAILBOX_TRY)
			waiter->name_len = 0;
		memcpy(name, slot->text, waiter->name_len);
	}
	while (!shared_end_read(&slot->words.changes, before));

	return waiter->name_len > 0 &&
		shared_read(&slot->words.generation) == waiter->session.generation &&
		pg_atomic_read_u64(&slot->waiting_seq) == waiter->seq &&
		shared_read(&slot->words.answer_seq) != waiter->seq &&
		shared_read(&slot->words.cancelled_seq) < waiter->seq;
}

/*
 * Returns how many requests wait for the lock of this lease.  Marks the one for
 * which the lease is being acquired: it is shown as acquiring, not as waiting.
 */
static int
count_waiters(Waiter *waiters, int count, const LeaseCopy *entry)
{
	const lease_write *pending = &entry->lease.pending;
	int			found = 0;

	for (int i = 0; i < count; i++)
	{
		Waiter	   *waiter = &waiters[i];

		if (waiter->name_len != entry->name_len ||
			memcmp(waiter->name, entry->name, entry->name_len) != 0)
			continue;
		if (entry->lease.state == LEASE_ACQUIRING &&
			pending->session.slot == waiter->session.slot &&
			pending->session.generation == waiter->session.generation &&
			pending->seq == waiter->seq)
			waiter->acquiring = true;
		else
			found++;
	}
	return found;
}

/* held NULL: no session has a hold on it. */
static void
lease_row(const LeaseCopy *entry, const HoldCopy *held, int waiting, int64 now, Row *row)
{
	const lease *l = &entry->lease;
	const dynamo_holder *holder = held ? &held->hold.holder : &l->holder;
	int64		lease_ms = l->state == LEASE_ACQUIRING ? l->pending.lease_ms : l->lease_ms;

	memset(row->nulls, true, sizeof(row->nulls));
	set_text(row, LOCKS_NAME, entry->name, entry->name_len);
	set(row, LOCKS_PID, Int32GetDatum(holder->pid));
	set_text(row, LOCKS_DATABASE, holder->database, strlen(holder->database));
	set_text(row, LOCKS_USENAME, holder->user, strlen(holder->user));
	set(row, LOCKS_LEASE, IntervalPGetDatum(TimesInterval(lease_ms * 1000)));
	if (held)
		hold_columns(entry, held, now, row);
	set(row, LOCKS_WAITERS, Int32GetDatum(waiting));
	set(row, LOCKS_STATE, CStringGetTextDatum(state_of(entry, held, now)));
}

static void
hold_columns(const LeaseCopy *entry, const HoldCopy *held, int64 now, Row *row)
{
	const lease *l = &entry->lease;
	TimestampTz acquired_at;

	depth_columns(held, row);
	set(row, LOCKS_TOKEN, Int64GetDatum(held->hold.token));
	if (TimesFromEpoch(held->hold.acquired_ms, &acquired_at))
		set(row, LOCKS_ACQUIRED_AT, TimestampTzGetDatum(acquired_at));
	if (l->valid_until > now)
		set(row, LOCKS_TIME_LEFT, IntervalPGetDatum(TimesInterval(l->valid_until - now)));
	set(row, LOCKS_RENEWALS, Int64GetDatum((int64) l->renewals));
}

static void
depth_columns(const HoldCopy *held, Row *row)
{
	uint32		session_depth = held->session_depth;
	uint32		xact_depth = held->xact_depth;
	const char *scope;

	if (session_depth == 0 && xact_depth == 0)
		return;
	if (xact_depth == 0)
		scope = "session";
	else if (session_depth == 0)
		scope = "transaction";
	else
		scope = "session+transaction";
	set(row, LOCKS_SCOPE, CStringGetTextDatum(scope));
	set(row, LOCKS_DEPTH, Int64GetDatum((int64) session_depth + xact_depth));
}

static const char *
state_of(const LeaseCopy *entry, const HoldCopy *held, int64 now)
{
	const lease *l = &entry->lease;

	switch (l->state)
	{
		case LEASE_ACQUIRING:
			return "acquiring";
		case LEASE_HELD:
			/* The worker may not have noticed the session's release yet. */
			if (held == NULL || held->let_go)
				return "releasing";
			return l->valid_until > now ? "held" : "lost";
		case LEASE_RELEASING:
			return "releasing";
		case LEASE_LOST:
			return "lost";
		case LEASE_FREE:
			break;
	}
	elog(ERROR, "unexpected lease state: %d", (int) l->state);
}

static void
waiter_row(const Waiter *waiter, Row *row)
{
	memset(row->nulls, true, sizeof(row->nulls));
	set_text(row, LOCKS_NAME, waiter->name, waiter->name_len);
	set(row, LOCKS_PID, Int32GetDatum(waiter->pid));
	set_text(row, LOCKS_DATABASE, waiter->database, strlen(waiter->database));
	set_text(row, LOCKS_USENAME, waiter->user, strlen(waiter->user));
	set(row, LOCKS_LEASE, IntervalPGetDatum(TimesInterval(waiter->lease_ms * 1000)));
	set(row, LOCKS_STATE, CStringGetTextDatum("waiting"));
}

static void
set(Row *row, int column, Datum value)
{
	row->values[column] = value;
	row->nulls[column] = false;
}

static void
set_text(Row *row, int column, const char *utf8, int len)
{
	if (len > 0)
		set(row, column, CStringGetTextDatum(Utf8ToServer(utf8, len)));
}

Datum
ddb_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	OpTotals	all = {0};

	ErrorsRequirePreload();
	InitMaterializedSRF(fcinfo, 0);

	for (int i = 0; i < DYNAMO_OP_COUNT; i++)
	{
		OpTotals	one = {0};

		add_counters(&one, &segment->ops[i]);
		put_totals(result, dynamo_op_name(i), &one, false);
		add_counters(&all, &segment->ops[i]);
	}
	put_totals(result, "all", &all, true);
	return (Datum) 0;
}

static void
add_counters(OpTotals *totals, OpCounters *ops)
{
	totals->requests += pg_atomic_read_u64(&ops->requests);
	totals->errors += pg_atomic_read_u64(&ops->errors);
	totals->throttles += pg_atomic_read_u64(&ops->throttles);
	totals->retries += pg_atomic_read_u64(&ops->retries);
	totals->latency_us += pg_atomic_read_u64(&ops->latency_us);
	totals->latency_count += pg_atomic_read_u64(&ops->latency_count);
	totals->consumed_milliunits += pg_atomic_read_u64(&ops->consumed_milliunits);
	for (int i = 0; i < SEGMENT_BUCKETS; i++)
		totals->histogram[i] += pg_atomic_read_u64(&ops->histogram[i]);
}

static void
put_totals(ReturnSetInfo *result, const char *operation, const OpTotals *totals, bool all)
{
	Datum		values[STATS_COLUMNS] = {0};
	bool		nulls[STATS_COLUMNS] = {0};

	values[STATS_OPERATION] = CStringGetTextDatum(operation);
	values[STATS_REQUESTS] = Int64GetDatum(totals->requests);
	values[STATS_ERRORS] = Int64GetDatum(totals->errors);
	values[STATS_THROTTLES] = Int64GetDatum(totals->throttles);
	values[STATS_RETRIES] = Int64GetDatum(totals->retries);
	values[STATS_REPLIES] = Int64GetDatum(totals->latency_count);
	values[STATS_LATENCY_TOTAL] = IntervalPGetDatum(TimesInterval(totals->latency_us));
	values[STATS_LATENCY_HISTOGRAM] = histogram_array(totals->histogram);
	values[STATS_CONSUMED_UNITS] = Float8GetDatum(totals->consumed_milliunits / 1000.0);
	if (all)
	{
		values[STATS_LEASES_HELD] =
			Int64GetDatum((int64) pg_atomic_read_u32(&segment->leases_held));
		values[STATS_LEASES_LOST] = Int64GetDatum(pg_atomic_read_u64(&segment->leases_lost));
		values[STATS_WAITERS] = Int64GetDatum((int64) pg_atomic_read_u32(&segment->waiters));
	}
	else
		nulls[STATS_LEASES_HELD] = nulls[STATS_LEASES_LOST] = nulls[STATS_WAITERS] = true;
	nulls[STATS_LAST_LOSS_AT] = nulls[STATS_LAST_LOSS] = true;
	if (all)
		put_last_loss(values, nulls);
	values[STATS_SINCE] = TimestampTzGetDatum(segment->stats_since);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* Which lock, whose session, and why. */
static void
put_last_loss(Datum *values, bool *nulls)
{
	SegmentLoss *loss = palloc(sizeof(SegmentLoss));

	if (!LossLast(loss))
		return;
	nulls[STATS_LAST_LOSS_AT] = nulls[STATS_LAST_LOSS] = false;
	values[STATS_LAST_LOSS_AT] = TimestampTzGetDatum(loss->at);
	values[STATS_LAST_LOSS] = CStringGetTextDatum(
												  psprintf("lock \"%s\" of process %d, user \"%s\", database \"%s\": %s",
														   Utf8ToMessage(loss->name, loss->name_len), loss->pid,
														   Utf8ToMessage(loss->user, strlen(loss->user)),
														   Utf8ToMessage(loss->database, strlen(loss->database)),
														   Utf8ToMessage(loss->why, strlen(loss->why))));
}

static Datum
histogram_array(const uint64 *histogram)
{
	Datum		buckets[SEGMENT_BUCKETS];

	for (int i = 0; i < SEGMENT_BUCKETS; i++)
		buckets[i] = Int64GetDatum(histogram[i]);
	return PointerGetDatum(construct_array(buckets, SEGMENT_BUCKETS, INT8OID, sizeof(int64),
										   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}
