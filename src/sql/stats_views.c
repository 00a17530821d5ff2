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

#include "funcapi.h"
#include "utils/builtins.h"

#include "sql/sql.h"

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
	OPERATIONS_SINCE
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
	STATS_SINCE
};

static Datum
histogram_array(const shared64 *histogram, int count)
{
	int64	   *buckets = palloc_array(int64, count);

	for (int i = 0; i < count; i++)
		buckets[i] = shared_read(&histogram[i]);
	return RowNumbers(buckets, count);
}

PG_FUNCTION_INFO_V1(ddb_operations);
Datum
ddb_operations(PG_FUNCTION_ARGS)
{
	ErrorsRequirePreload();
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < DYNAMO_OP_COUNT; i++)
	{
		OpCounters *ops = &segment->ops[i];
		Row			row;

		RowClear(&row);
		RowText(&row, OPERATIONS_OPERATION, dynamo_op_name(i));
		RowSet(&row, OPERATIONS_REQUESTS, Int64GetDatum(shared_read(&ops->requests)));
		RowSet(&row, OPERATIONS_ERRORS, Int64GetDatum(shared_read(&ops->errors)));
		RowSet(&row, OPERATIONS_THROTTLES, Int64GetDatum(shared_read(&ops->throttles)));
		RowSet(&row, OPERATIONS_RETRIES, Int64GetDatum(shared_read(&ops->retries)));
		RowSet(&row, OPERATIONS_REPLIES, Int64GetDatum(shared_read(&ops->latency_count)));
		RowInterval(&row, OPERATIONS_LATENCY_TOTAL, shared_read(&ops->latency_us));
		RowSet(&row, OPERATIONS_LATENCY_HISTOGRAM,
			   histogram_array(ops->histogram, SEGMENT_BUCKETS));
		RowSet(&row, OPERATIONS_CONSUMED_UNITS,
			   Float8GetDatum(shared_read(&ops->consumed_milliunits) / 1000.0));
		RowSet(&row, OPERATIONS_SINCE, TimestampTzGetDatum(segment->stats_since));
		RowPut(&row, fcinfo);
	}
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(ddb_stats);
Datum
ddb_stats(PG_FUNCTION_ARGS)
{
	Row			row;
	SegmentLoss *loss = palloc(sizeof(SegmentLoss));
	int64		lost = 0;

	ErrorsRequirePreload();
	RowClear(&row);
	RowSet(&row, STATS_LEASES_HELD, Int64GetDatum(shared_read(&segment->leases_held)));
	RowSet(&row, STATS_WAITERS, Int64GetDatum(shared_read(&segment->waiters)));
	for (int i = 0; i < EVENT_COUNT; i++)
	{
		int64		count = shared_read(&segment->events[i]);

		RowSet(&row, STATS_EVENTS + i, Int64GetDatum(count));
		if (i >= EVENT_LOST_UNREACHABLE && i <= EVENT_LOST_AT_MOST)
			lost += count;
	}
	RowSet(&row, STATS_LEASES_LOST, Int64GetDatum(lost));
	if (LossLast(loss))
	{
		RowSet(&row, STATS_LAST_LOSS_AT, TimestampTzGetDatum(loss->at));
		/* Which lock, whose session, and why, if the session may see the lock. */
		if (PrefixAllows(loss->name))
		{
			const char *whose = loss->pid == 0 ? "this cluster itself" :	/* a campaign's */
				psprintf("process %d, user \"%s\", database \"%s\"", loss->pid,
						 Utf8ToMessage(loss->user), Utf8ToMessage(loss->database));

			RowSet(&row, STATS_LAST_LOSS,
				   CStringGetTextDatum(psprintf("lock \"%s\" of %s: %s",
												Utf8ToMessage(loss->name), whose,
												Utf8ToMessage(loss->why))));
		}
	}
	RowInterval(&row, STATS_WAIT_TOTAL, shared_read(&segment->wait_us));
	RowSet(&row, STATS_WAIT_HISTOGRAM,
		   histogram_array(segment->wait_histogram, SEGMENT_WAIT_BUCKETS));
	RowSet(&row, STATS_SINCE, TimestampTzGetDatum(segment->stats_since));
	return RowResult(&row, fcinfo);
}
