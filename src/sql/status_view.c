/*-------------------------------------------------------------------------
 *
 * status_view.c
 *	  The function behind the view ddb_status: the worker's state.
 *
 * What the last worker has published stays when it ends; that it has ended shows
 * in worker_pid.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "shared/version.h"
#include "sql/sql.h"

/* The columns, in order. */
enum
{
	STATUS_WORKER_PID,
	STATUS_WORKER_SINCE,
	STATUS_WORKER_STARTS,
	STATUS_REGION,
	STATUS_ENDPOINT,
	STATUS_PROXY,
	STATUS_LOCK_TABLE,
	STATUS_OWNER,
	STATUS_CREDENTIALS,
	STATUS_CREDENTIALS_EXPIRE_AT,
	STATUS_LAST_REPLY_AT,
	STATUS_TROUBLE,
	STATUS_CLOCK_AHEAD,
	STATUS_CLOCK_ERROR,
	STATUS_CONNECTIONS,
	STATUS_MAX_CONNECTIONS,
	STATUS_LEASES,
	STATUS_MAX_LEASES,
	STATUS_LIBRARY_VERSION,
	STATUS_HTTP_LIBRARY
};

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
	RowClear(&row);

	/* The process, and what it last heard. */
	pid = shared_read(&segment->worker_pid);
	if (pid != 0)
	{
		RowSet(&row, STATUS_WORKER_PID, Int32GetDatum(pid));
		RowSet(&row, STATUS_WORKER_SINCE, TimestampTzGetDatum(worker.since));
		RowSet(&row, STATUS_CONNECTIONS, Int32GetDatum(worker.connections));
	}
	RowSet(&row, STATUS_WORKER_STARTS, Int32GetDatum(shared_read(&segment->worker_starts)));
	RowText(&row, STATUS_CREDENTIALS, worker.credentials);
	RowEpoch(&row, STATUS_CREDENTIALS_EXPIRE_AT, worker.credentials_expire_s * 1000);
	if (worker.last_reply != 0)
		RowClock(&row, STATUS_LAST_REPLY_AT, worker.last_reply);
	if (SegmentReadTrouble(trouble) != DYNAMO_OK)
		RowText(&row, STATUS_TROUBLE, trouble);
	else if (SegmentNow() < worker.copy_until)
		RowText(&row, STATUS_TROUBLE,
				psprintf("\"%s\" has the system identifier of this cluster, and is no standby: "
						 "one of them is a copy", worker.copy));

	/* Worker and segment write these once; the flags say that they are whole. */
	RowText(&row, STATUS_LOCK_TABLE, ddblock_lock_table);
	if (worker.since != 0)
		RowText(&row, STATUS_OWNER, segment->owner);
	if (worker.has_place)
	{
		RowText(&row, STATUS_REGION, segment->place.region);
		RowText(&row, STATUS_ENDPOINT, segment->place.url);
		RowText(&row, STATUS_PROXY, worker.proxy);
	}

	/* DynamoDB's clock against this machine's wall clock, if replies have shown it. */
	if (worker.clock.known)
	{
		int64		now = SegmentNow();
		int64		low = epoch_clock_low(&worker.clock, now);
		int64		high = epoch_clock_high(&worker.clock, now);
		int64		wall = GetCurrentTimestamp() + EPOCH_DIFFERENCE_US - now;

		RowInterval(&row, STATUS_CLOCK_AHEAD, (low + high) / 2 - wall);
		RowInterval(&row, STATUS_CLOCK_ERROR, (high - low) / 2);
	}

	RowSet(&row, STATUS_MAX_CONNECTIONS, Int32GetDatum(ddblock_max_connections));
	RowSet(&row, STATUS_LEASES, Int32GetDatum(shared_read(&segment->leases_in_use)));
	RowSet(&row, STATUS_MAX_LEASES, Int32GetDatum(segment->max_leases));
	RowText(&row, STATUS_LIBRARY_VERSION, DDBLOCK_VERSION);
	RowText(&row, STATUS_HTTP_LIBRARY, worker.http_library);
	return RowResult(&row, fcinfo);
}
