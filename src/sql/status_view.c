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

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "shared/errors.h"
#include "shared/settings.h"
#include "shared/times.h"
#include "shared/utf8.h"
#include "shared/version.h"

PG_FUNCTION_INFO_V1(ddb_status);

/* The columns, in order. */
enum
{
	STATUS_WORKER_PID,
	STATUS_WORKER_SINCE,
	STATUS_WORKER_STARTS,
	STATUS_REGION,
	STATUS_ENDPOINT,
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
	STATUS_HTTP_LIBRARY,
	STATUS_COLUMNS
};

/* A row that is being filled. */
typedef struct Row
{
	Datum		values[STATUS_COLUMNS];
	bool		nulls[STATUS_COLUMNS];
} Row;

static void worker_columns(const WorkerStatus *worker, Row *row);
static void place_columns(const WorkerStatus *worker, Row *row);
static void clock_columns(const epoch_clock *clock, Row *row);
static void set(Row *row, int column, Datum value);
static void set_int(Row *row, int column, int value);
static void set_text(Row *row, int column, const char *utf8);

Datum
ddb_status(PG_FUNCTION_ARGS)
{
	WorkerStatus worker;
	TupleDesc	columns;
	Row			row;

	ErrorsRequirePreload();
	if (get_call_result_type(fcinfo, NULL, &columns) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	SegmentReadStatus(&worker);
	memset(row.nulls, true, sizeof(row.nulls));
	worker_columns(&worker, &row);
	place_columns(&worker, &row);
	clock_columns(&worker.clock, &row);
	set_int(&row, STATUS_MAX_CONNECTIONS, ddblock_max_connections);
	set_int(&row, STATUS_LEASES, (int) pg_atomic_read_u32(&segment->leases_in_use));
	set_int(&row, STATUS_MAX_LEASES, (int) segment->max_leases);
	set_text(&row, STATUS_LIBRARY_VERSION, DDBLOCK_VERSION);
	set_text(&row, STATUS_HTTP_LIBRARY, worker.http_library);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(columns, row.values, row.nulls)));
}

/* The process, and what it last heard. */
static void
worker_columns(const WorkerStatus *worker, Row *row)
{
	uint32		pid = pg_atomic_read_u32(&segment->worker_pid);
	char		trouble[DYNAMO_MESSAGE_SIZE];
	TimestampTz expires;

	if (pid != 0)
	{
		set_int(row, STATUS_WORKER_PID, (int) pid);
		set(row, STATUS_WORKER_SINCE, TimestampTzGetDatum(worker->since));
		set_int(row, STATUS_CONNECTIONS, (int) worker->connections);
	}
	set_int(row, STATUS_WORKER_STARTS, (int) pg_atomic_read_u32(&segment->worker_starts));
	set_text(row, STATUS_CREDENTIALS, worker->credentials);
	if (TimesFromEpoch(worker->credentials_expire_s * 1000, &expires))
		set(row, STATUS_CREDENTIALS_EXPIRE_AT, TimestampTzGetDatum(expires));
	if (worker->last_reply != 0)
		set(row, STATUS_LAST_REPLY_AT, TimestampTzGetDatum(TimesFromClock(worker->last_reply)));
	if (SegmentReadTrouble(trouble) != DYNAMO_OK)
		set_text(row, STATUS_TROUBLE, trouble);
	else if (SegmentNow() < worker->copy_until)
		set_text(row, STATUS_TROUBLE,
				 psprintf("\"%s\" has the system identifier of this cluster, and is no standby: "
						  "one of them is a copy", worker->copy));
}

/* Worker and segment write these once; the flags say that they are whole. */
static void
place_columns(const WorkerStatus *worker, Row *row)
{
	set_text(row, STATUS_LOCK_TABLE, ddblock_lock_table);
	if (worker->since != 0)
		set_text(row, STATUS_OWNER, segment->owner);
	if (!worker->has_place)
		return;
	set_text(row, STATUS_REGION, segment->place.region);
	set_text(row, STATUS_ENDPOINT, segment->place.url);
}

/* DynamoDB's clock against this machine's wall clock, if replies have shown it. */
static void
clock_columns(const epoch_clock *clock, Row *row)
{
	int64		now = SegmentNow();
	int64		low = epoch_clock_low(clock, now);
	int64		high = epoch_clock_high(clock, now);
	int64		wall = GetCurrentTimestamp() + EPOCH_DIFFERENCE_US - now;

	if (!clock->known)
		return;
	set(row, STATUS_CLOCK_AHEAD, IntervalPGetDatum(TimesInterval((low + high) / 2 - wall)));
	set(row, STATUS_CLOCK_ERROR, IntervalPGetDatum(TimesInterval((high - low) / 2)));
}

static void
set(Row *row, int column, Datum value)
{
	row->values[column] = value;
	row->nulls[column] = false;
}

static void
set_int(Row *row, int column, int value)
{
	set(row, column, Int32GetDatum(value));
}

static void
set_text(Row *row, int column, const char *utf8)
{
	if (utf8[0] != '\0')
		set(row, column, CStringGetTextDatum(Utf8ToReader(utf8, strlen(utf8))));
}
