/*-------------------------------------------------------------------------
 *
 * stats_views.c
 *	  The functions behind the views ddb_stats and ddb_operations.
 *
 * They only read counters, one after the other: sums may be off by what happens
 * meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "session/prefix.h"
#include "shared/errors.h"
#include "shared/loss.h"
#include "shared/times.h"
#include "shared/utf8.h"

PG_FUNCTION_INFO_V1(ddb_operations);
PG_FUNCTION_INFO_V1(ddb_stats);

/* The columns of ddb_operations, in order. */
enum
{
	OPERATIONS_OPERATION,
	OPERATIONS_REQUESTS,
	OPERATIONS_ERRORS,
	OPERATIONS_THROTTLES,
	OPERATIONS_RETRIES,
	OPERATIONS_REPLIES,
	OPERATIONS_LATENCY_TOTAL,
	OPERATIONS_LATENCY_HISTOGRAM,
	OPERATIONS_CONSUMED_UNITS,
	OPERATIONS_SINCE,
	OPERATIONS_COLUMNS
};

/* The columns of ddb_stats: these, in order, and between them the events'. */
enum
{
	STATS_LEASES_HELD,
	STATS_WAITERS,
	STATS_EVENTS,
	STATS_LEASES_LOST = STATS_EVENTS + EVENT_COUNT,
	STATS_LAST_LOSS_AT,
	STATS_LAST_LOSS,
	STATS_WAIT_TOTAL,
	STATS_WAIT_HISTOGRAM,
	STATS_SINCE,
	STATS_COLUMNS
};

static void put_operation(ReturnSetInfo *result, dynamo_op op);
static Datum histogram_array(const pg_atomic_uint64 *histogram, int count);
static Datum read_counter(const pg_atomic_uint64 *counter);
static void put_last_loss(Datum *values, bool *nulls);

Datum
ddb_operations(PG_FUNCTION_ARGS)
{
	ErrorsRequirePreload();
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < DYNAMO_OP_COUNT; i++)
		put_operation((ReturnSetInfo *) fcinfo->resultinfo, i);
	return (Datum) 0;
}

static Datum
read_counter(const pg_atomic_uint64 *counter)
{
	return Int64GetDatum((int64) pg_atomic_read_u64((pg_atomic_uint64 *) counter));
}

static void
put_operation(ReturnSetInfo *result, dynamo_op op)
{
	OpCounters *ops = &segment->ops[op];
	Datum		values[OPERATIONS_COLUMNS];
	bool		nulls[OPERATIONS_COLUMNS] = {0};

	values[OPERATIONS_OPERATION] = CStringGetTextDatum(dynamo_op_name(op));
	values[OPERATIONS_REQUESTS] = read_counter(&ops->requests);
	values[OPERATIONS_ERRORS] = read_counter(&ops->errors);
	values[OPERATIONS_THROTTLES] = read_counter(&ops->throttles);
	values[OPERATIONS_RETRIES] = read_counter(&ops->retries);
	values[OPERATIONS_REPLIES] = read_counter(&ops->latency_count);
	values[OPERATIONS_LATENCY_TOTAL] =
		IntervalPGetDatum(TimesInterval((int64) pg_atomic_read_u64(&ops->latency_us)));
	values[OPERATIONS_LATENCY_HISTOGRAM] = histogram_array(ops->histogram, SEGMENT_BUCKETS);
	values[OPERATIONS_CONSUMED_UNITS] =
		Float8GetDatum(pg_atomic_read_u64(&ops->consumed_milliunits) / 1000.0);
	values[OPERATIONS_SINCE] = TimestampTzGetDatum(segment->stats_since);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static Datum
histogram_array(const pg_atomic_uint64 *histogram, int count)
{
	Datum	   *buckets = palloc_array(Datum, count);

	for (int i = 0; i < count; i++)
		buckets[i] = read_counter(&histogram[i]);
	return PointerGetDatum(construct_array(buckets, count, INT8OID, sizeof(int64),
										   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

Datum
ddb_stats(PG_FUNCTION_ARGS)
{
	Datum		values[STATS_COLUMNS];
	bool		nulls[STATS_COLUMNS] = {0};
	TupleDesc	columns;
	int64		lost = 0;

	ErrorsRequirePreload();
	if (get_call_result_type(fcinfo, NULL, &columns) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	values[STATS_LEASES_HELD] = Int64GetDatum((int64) pg_atomic_read_u32(&segment->leases_held));
	values[STATS_WAITERS] = Int64GetDatum((int64) pg_atomic_read_u32(&segment->waiters));
	for (int i = 0; i < EVENT_COUNT; i++)
	{
		values[STATS_EVENTS + i] = read_counter(&segment->events[i]);
		if (i >= EVENT_LOST_UNREACHABLE && i <= EVENT_LOST_AT_MOST)
			lost += DatumGetInt64(values[STATS_EVENTS + i]);
	}
	values[STATS_LEASES_LOST] = Int64GetDatum(lost);
	put_last_loss(values, nulls);
	values[STATS_WAIT_TOTAL] =
		IntervalPGetDatum(TimesInterval((int64) pg_atomic_read_u64(&segment->wait_us)));
	values[STATS_WAIT_HISTOGRAM] = histogram_array(segment->wait_histogram,
												   SEGMENT_WAIT_BUCKETS);
	values[STATS_SINCE] = TimestampTzGetDatum(segment->stats_since);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(columns, values, nulls)));
}

/* Which lock, whose session, and why, if the session may see the lock. */
static void
put_last_loss(Datum *values, bool *nulls)
{
	SegmentLoss *loss = palloc(sizeof(SegmentLoss));

	nulls[STATS_LAST_LOSS_AT] = nulls[STATS_LAST_LOSS] = true;
	if (!LossLast(loss))
		return;
	nulls[STATS_LAST_LOSS_AT] = false;
	values[STATS_LAST_LOSS_AT] = TimestampTzGetDatum(loss->at);
	if (!PrefixAllows(loss->name, loss->name_len))
		return;
	nulls[STATS_LAST_LOSS] = false;
	values[STATS_LAST_LOSS] = CStringGetTextDatum(
												  loss->pid == 0 ?	/* a campaign's */
												  psprintf("lock \"%s\" of this cluster itself: %s",
														   Utf8ToMessage(loss->name, loss->name_len),
														   Utf8ToMessage(loss->why, strlen(loss->why))) :
												  psprintf("lock \"%s\" of process %d, user \"%s\", database \"%s\": %s",
														   Utf8ToMessage(loss->name, loss->name_len), loss->pid,
														   Utf8ToMessage(loss->user, strlen(loss->user)),
														   Utf8ToMessage(loss->database, strlen(loss->database)),
														   Utf8ToMessage(loss->why, strlen(loss->why))));
}
