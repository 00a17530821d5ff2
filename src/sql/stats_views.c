/*-------------------------------------------------------------------------
 *
 * stats_views.c
 *	  The functions behind the views ddb_stats and ddb_operations.
 *
 * They only read counters, one after the other.  Events that happen meanwhile may be in one counter
 * and not yet in another.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "utils/builtins.h"

#include "sql/sql.h"

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

		RowStart(&row, fcinfo);
		RowText(&row, "operation", dynamo_op_name(i));
		RowSet(&row, "requests", Int64GetDatum(shared_read(&ops->requests)));
		RowSet(&row, "errors", Int64GetDatum(shared_read(&ops->errors)));
		RowSet(&row, "throttles", Int64GetDatum(shared_read(&ops->throttles)));
		RowSet(&row, "retries", Int64GetDatum(shared_read(&ops->retries)));
		RowSet(&row, "replies", Int64GetDatum(shared_read(&ops->latency_count)));
		RowInterval(&row, "latency_total", shared_read(&ops->latency_us));
		RowSet(&row, "latency_histogram",
			   histogram_array(ops->histogram, SEGMENT_BUCKETS));
		RowSet(&row, "consumed_units",
			   Float8GetDatum(shared_read(&ops->consumed_milliunits) / 1000.0));
		RowSet(&row, "since", TimestampTzGetDatum(segment->stats_since));
		RowPut(&row, fcinfo);
	}
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(ddb_stats);
Datum
ddb_stats(PG_FUNCTION_ARGS)
{
	/* The columns of the counters, in the order of SegmentEvent. */
	static const char *const events[] = {
		"acquired", "busy", "timed_out", "deadlocks", "lost_unreachable", "lost_taken",
		"lost_released", "lost_deleted", "lost_at_most", "lk001", "lk002", "jobs_pushed",
		"jobs_claimed", "jobs_completed", "jobs_failed", "jobs_dead"
	};
	StaticAssertStmt(lengthof(events) == EVENT_COUNT, "an event has no column");
	Row			row;
	SegmentLoss *loss = palloc(sizeof(SegmentLoss));
	int64		lost = 0;

	ErrorsRequirePreload();
	RowStart(&row, fcinfo);
	RowSet(&row, "leases_held", Int64GetDatum(shared_read(&segment->leases_held)));
	RowSet(&row, "waiters", Int64GetDatum(shared_read(&segment->waiters)));
	for (int i = 0; i < EVENT_COUNT; i++)
	{
		int64		count = shared_read(&segment->events[i]);

		RowSet(&row, events[i], Int64GetDatum(count));
		if (i >= EVENT_LOST_UNREACHABLE && i <= EVENT_LOST_AT_MOST)
			lost += count;
	}
	RowSet(&row, "leases_lost", Int64GetDatum(lost));
	if (LossLast(loss))
	{
		RowSet(&row, "last_loss_at", TimestampTzGetDatum(loss->at));
		/* Show lock, session and reason only if the caller may see the lock. */
		if (PrefixAllows(loss->name))
		{
			const char *whose = loss->pid == 0 ? "this cluster itself" :	/* a leadership */
				psprintf("process %d, user \"%s\", database \"%s\"", loss->pid,
						 Utf8ToMessage(loss->user), Utf8ToMessage(loss->database));

			RowSet(&row, "last_loss",
				   CStringGetTextDatum(psprintf("lock \"%s\" of %s: %s",
												Utf8ToMessage(loss->name), whose,
												Utf8ToMessage(loss->why))));
		}
	}
	RowInterval(&row, "wait_total", shared_read(&segment->wait_us));
	RowSet(&row, "wait_histogram",
		   histogram_array(segment->wait_histogram, SEGMENT_WAIT_BUCKETS));
	RowSet(&row, "since", TimestampTzGetDatum(segment->stats_since));
	return RowResult(&row);
}
