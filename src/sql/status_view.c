/*-------------------------------------------------------------------------
 *
 * status_view.c
 *	  The function behind the view ddb_status: the worker's state.
 *
 * If no worker runs, worker_pid is null, and the view shows what the last worker has published.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "shared/version.h"
#include "sql/sql.h"

/* The difference of DynamoDB's clock, which must be known, to this machine's wall clock. */
static void
clock_columns(const epoch_clock *clock, Row *row)
{
	int64		now = SegmentNow();
	int64		low = epoch_clock_low(clock, now);
	int64		high = epoch_clock_high(clock, now);
	int64		wall = GetCurrentTimestamp() + EPOCH_DIFFERENCE_US - now;

	RowInterval(row, "clock_ahead", (low + high) / 2 - wall);
	RowInterval(row, "clock_error", (high - low) / 2);
}

PG_FUNCTION_INFO_V1(ddb_status);
Datum
ddb_status(PG_FUNCTION_ARGS)
{
	WorkerStatus worker;
	Row			row;
	uint32		pid;
	char		trouble[DYNAMO_MESSAGE_SIZE];

	ErrorsRequirePreload();
	SegmentReadStatus(&worker);
	RowStart(&row, fcinfo);

	/* The worker's process, and what DynamoDB last replied to it. */
	pid = shared_read(&segment->worker_pid);
	if (pid != 0)
	{
		RowSet(&row, "worker_pid", Int32GetDatum(pid));
		RowSet(&row, "worker_since", TimestampTzGetDatum(worker.since));
		RowSet(&row, "connections", Int32GetDatum(worker.connections));
	}
	RowSet(&row, "worker_starts", Int32GetDatum(shared_read(&segment->worker_starts)));
	RowText(&row, "credentials", worker.credentials);
	RowEpoch(&row, "credentials_expire_at", worker.credentials_expire_s * 1000);
	if (worker.last_reply != 0)
		RowClock(&row, "last_reply_at", worker.last_reply);
	if (SegmentReadTrouble(trouble) != DYNAMO_OK)
		RowText(&row, "trouble", trouble);
	else if (SegmentNow() < worker.copy_until)
		RowText(&row, "trouble",
				psprintf("\"%s\" has the system identifier of this cluster, and is no standby: "
						 "one of them is a copy", worker.copy));

	/* The worker writes owner and place once; since and has_place say that they are complete. */
	RowText(&row, "lock_table", ddblock_lock_table);
	if (worker.since != 0)
		RowText(&row, "owner", segment->owner);
	if (worker.has_place)
	{
		RowText(&row, "region", segment->place.region);
		RowText(&row, "endpoint", segment->place.url);
		RowText(&row, "proxy", worker.proxy);
	}

	if (worker.clock.known)
		clock_columns(&worker.clock, &row);
	RowSet(&row, "max_connections", Int32GetDatum(ddblock_max_connections));
	RowSet(&row, "leases", Int32GetDatum(shared_read(&segment->leases_in_use)));
	RowSet(&row, "max_leases", Int32GetDatum(segment->max_leases));
	RowText(&row, "library_version", DDBLOCK_VERSION);
	RowText(&row, "http_library", worker.http_library);
	return RowResult(&row);
}
