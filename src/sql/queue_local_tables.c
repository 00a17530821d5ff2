/*-------------------------------------------------------------------------
 *
 * queue_local_tables.c
 *	  The tables that queues have in this database: ddb_queue_done, the jobs that are done, and
 *	  ddb_outbox, the jobs to be pushed.
 *
 * ddb_queue_mark_done() and ddb_queue_push_on_commit() write as part of their caller's transaction,
 * and ask neither the worker nor DynamoDB.  The functions are security definers with a fixed
 * search_path, and name the tables with the schema of the extension.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "sql/sql.h"

#define DONE "ddb_queue_done"
#define OUTBOX "ddb_outbox"
#define SEND_MOST 10000
#define SEND_TURN 100			/* rows that are read at a time */
#define FAILURES_MOST 100		/* ends a call: perhaps no row can be sent */
#define FAILURES_AGAIN 10		/* how many rows that failed before may fail again in a call */
#define OUTBOX_DEDUP_MS (30 * DAY_MS)

typedef struct DoneJob
{
	int64		number;
	bool		has_time;
	TimestampTz pushed_at;
	int64		token;
} DoneJob;

/*
 * Records that the job is done.  Returns true if it was not recorded yet, so the caller must do its
 * work; false if the work is done already.  Raises LK002 if a later claim has recorded a job.
 *
 * A row for each resource is enough.  A resource's jobs are done in order under one lock, and the
 * lock's tokens rise, whatever happens to the queue table.  The numbers of jobs may not: if the
 * queue table is made anew, they begin at 1 again.  pushed_at tells jobs of the same number apart.
 *
 * If T1 has recorded a job and T2 calls this for the same resource, T2 waits for the row's lock
 * until T1 has ended, even if T2 does not change the row.
 */
static bool
record_done(FunctionCallInfo fcinfo, const QueueName *name, const DoneJob *job)
{
	Oid			types[] = {TEXTOID, TEXTOID, INT8OID, TIMESTAMPTZOID, INT8OID};
	Datum		values[] = {
		PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), Int64GetDatum(job->number),
		TimestampTzGetDatum(job->pushed_at), Int64GetDatum(job->token),
	};
	const char *nulls = job->has_time ? NULL : "   n ";
	const char *table = KeepTable(fcinfo, DONE);
	bool		once;
	int64		recorded;
	bool		is_null;

	SPI_connect();
	if (KeepExecute(psprintf("INSERT INTO %s AS d (queue, resource, number, pushed_at, token) "
							 "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (queue, resource) "
							 "DO UPDATE SET number = EXCLUDED.number, "
							 "pushed_at = EXCLUDED.pushed_at, token = EXCLUDED.token "
							 "WHERE d.token <= EXCLUDED.token AND (d.number, d.pushed_at) "
							 "IS DISTINCT FROM (EXCLUDED.number, EXCLUDED.pushed_at)", table),
					lengthof(types), types, values, nulls) != SPI_OK_INSERT)
		KeepNotRecorded(DONE, "the job");
	once = SPI_processed == 1;
	if (SPI_execute_with_args(psprintf("SELECT token, (number, pushed_at) IS NOT DISTINCT FROM ($3, $4) "
									   "FROM %s WHERE queue = $1 AND resource = $2", table),
							  lengthof(types), types, values, nulls, false, 0) != SPI_OK_SELECT ||
		SPI_processed != 1)
		KeepNotRecorded(DONE, "the job");
	recorded = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null));
	if (recorded > job->token)
		ErrorsStaleToken(name->lock.text, recorded, "", job->token);
	if (!DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2, &is_null)))
		KeepNotRecorded(DONE, "the job");
	SPI_finish();
	return once;
}

PG_FUNCTION_INFO_V1(ddb_queue_mark_done);

/* (queue, resource, number).  pushed_at and token are those of this session's claim. */
Datum
ddb_queue_mark_done(PG_FUNCTION_ARGS)
{
	QueueName	name;
	const QueueClaim *claim;
	DoneJob		job = {0};

	PreventCommandIfReadOnly("ddb_queue_mark_done()");
	name = QueueArgument(fcinfo);
	job.number = ArgumentPositive(fcinfo, 2, "number");
	claim = QueueOwnRequire(&name, job.number);
	job.has_time = TimesFromEpoch(claim->is.pushed_at, &job.pushed_at);
	job.token = claim->is.token;
	PG_RETURN_BOOL(record_done(fcinfo, &name, &job));
}

PG_FUNCTION_INFO_V1(ddb_queue_mark_done_token);

/* (queue, resource, number, pushed_at, token).  For a job that another session has claimed. */
Datum
ddb_queue_mark_done_token(PG_FUNCTION_ARGS)
{
	QueueName	name;
	DoneJob		job;

	PreventCommandIfReadOnly("ddb_queue_mark_done()");
	name = QueueArgumentAnywhere(fcinfo);
	job.number = ArgumentPositive(fcinfo, 2, "number");
	job.has_time = !PG_ARGISNULL(3);
	job.pushed_at = job.has_time ? PG_GETARG_TIMESTAMPTZ(3) : 0;
	job.token = ArgumentPositive(fcinfo, 4, "token");
	PG_RETURN_BOOL(record_done(fcinfo, &name, &job));
}

PG_FUNCTION_INFO_V1(ddb_queue_push_on_commit);

/* (queue, resource, payload, id) */
Datum
ddb_queue_push_on_commit(PG_FUNCTION_ARGS)
{
	Oid			types[] = {TEXTOID, TEXTOID, JSONBOID, TEXTOID};
	Datum		values[] = {
		PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), PG_GETARG_DATUM(2), PG_GETARG_DATUM(3),
	};
	const char *command;

	PreventCommandIfReadOnly("ddb_queue_push_on_commit()");
	(void) QueueArgumentAnywhere(fcinfo);
	ArgumentRequire(fcinfo, 2, "payload");
	(void) QueueCheckPayload(PG_GETARG_DATUM(2));
	if (!PG_ARGISNULL(3))
		(void) QueueCheckId(PG_GETARG_DATUM(3));
	command = PG_ARGISNULL(3) ?
		"INSERT INTO %s (queue, resource, payload) VALUES ($1, $2, $3)" :
		"INSERT INTO %s (queue, resource, payload, id) VALUES ($1, $2, $3, $4)";

	SPI_connect();
	if (SPI_execute_with_args(psprintf(command, KeepTable(fcinfo, OUTBOX)),
							  PG_ARGISNULL(3) ? 3 : 4, types, values, NULL, false,
							  0) != SPI_OK_INSERT || SPI_processed != 1)
		KeepNotRecorded(OUTBOX, "the job");
	SPI_finish();
	PG_RETURN_VOID();
}

/*
 * FAILED finds rows that have failed: the first one of each resource.  The row that was tried
 * longest ago comes first.  Rows that the caller's ddblock.lock_prefix ($2) does not allow are left
 * to other callers.
 */
#define ALLOWED "starts_with('queue/' || o.queue || '/' || o.resource, $2)"
#define FAILED "WHERE failing_since IS NOT NULL AND " ALLOWED " AND NOT EXISTS (SELECT FROM %s AS before " \
	"WHERE before.failing_since IS NOT NULL AND (before.queue, before.resource) = (o.queue, o.resource) " \
	"AND before.position < o.position) ORDER BY tried_at, position"

/* OTHERS finds the rows of resources in which no row has failed. */
#define OTHERS "WHERE failing_since IS NULL AND " ALLOWED " AND (queue, resource) NOT IN " \
	"(SELECT queue, resource FROM %s WHERE failing_since IS NOT NULL) ORDER BY position"

typedef struct Sender
{
	const char *table;
	int			most;			/* how many rows to send; stop() sets it to "sent" */
	int			sent;
	int			failures;
	int64		stop_at;		/* when to stop, to end before statement_timeout */
	bool		table_fits;		/* the queue table is usable: an error may be the row's fault */
} Sender;

/*
 * Is the error the fault of the row, so that other rows can still be sent?  Outages, throttling,
 * credentials, a missing table and the end of the session or its statement would strike all rows.
 */
static bool
is_fault_of_row(int sqlstate)
{
	return ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_DATA_EXCEPTION ||
		ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_PROGRAM_LIMIT_EXCEEDED ||
		ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_INTERNAL_ERROR ||
		sqlstate == ERRCODE_INSUFFICIENT_PRIVILEGE ||
		sqlstate == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
}

/* Adds the row to the error's context: the error must be mended there. */
static void
name_row(void *position)
{
	errcontext("row %lld of table \"ddb_outbox\"", (long long) *(int64 *) position);
}

/*
 * Pushes the job of a row.  Returns NULL, or the error.
 *
 * The push runs in a subtransaction, which writes nothing in this database, so it needs no
 * transaction id.  After any error, the subtransaction ends here.  Otherwise an EXCEPTION block
 * around our caller would end this subtransaction in place of its own, and go on as the definer of
 * the function.
 */
static ErrorData *
push_or_fail(Sender *sender, HeapTuple row, TupleDesc desc, int64 position)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorContextCallback callback = {error_context_stack, name_row, &position};
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		bool		is_null;
		QueueName	name;
		QueuePush	job = {0};

		error_context_stack = &callback;
		MailboxStopAt(sender->sent > 0 ? sender->stop_at : PG_INT64_MAX);
		sender->table_fits = false;
		QueueTableRequire();
		sender->table_fits = true;
		name = QueueCheckName(SPI_getbinval(row, desc, 1, &is_null),
							  SPI_getbinval(row, desc, 2, &is_null));
		job.payload = QueueCheckPayload(SPI_getbinval(row, desc, 3, &is_null));
		job.id = ArgumentUtf8(SPI_getbinval(row, desc, 4, &is_null));
		QueueJobPush(name.queue, name.resource, &job, 1, OUTBOX_DEDUP_MS);
		MailboxStopAt(PG_INT64_MAX);
		error_context_stack = callback.previous;
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MailboxStopAt(PG_INT64_MAX);
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}

static void
change_row(const char *command, const char *table, int64 position, const char *error)
{
	Oid			types[] = {INT8OID, TEXTOID};
	Datum		values[] = {Int64GetDatum(position), error != NULL ? CStringGetTextDatum(error) : (Datum) 0};

	if (SPI_execute_with_args(psprintf(command, table), error != NULL ? 2 : 1, types, values, NULL,
							  false, 0) < 0 || SPI_processed != 1)
		KeepNotRecorded(OUTBOX, "the job");
}

static const char *
reason_of(const ErrorData *error)
{
	return error->detail == NULL ? error->message :
		psprintf("%s. %s", error->message, error->detail);
}

/* Marks the row as one that has failed, with the reason. */
static void
note_failure(const char *table, int64 position, const ErrorData *error)
{
	const char *why = reason_of(error);

	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("row %lld of table \"ddb_outbox\" cannot be sent", (long long) position),
			 errdetail_internal("%s", why),
			 errhint("Correct or delete the row. Until then, later rows of its queue and resource wait.")));
	change_row("UPDATE %s SET failing_since = COALESCE(failing_since, clock_timestamp()), "
			   "tried_at = clock_timestamp(), last_error = $2 WHERE position = $1",
			   table, position, psprintf("%s: %s", unpack_sql_state(error->sqlerrcode), why));
}

/*
 * Stops the call after an error that is not the fault of the row.
 *
 * If rows were sent, warns instead of raising the error: that would restore the rows that were
 * deleted, and the next call would begin with them again.  But a cancellation is always raised.  It
 * may have come from the user, or from a lost lease.
 */
static void
stop(Sender *sender, ErrorData *error)
{
	if (sender->sent == 0 || error->sqlerrcode == ERRCODE_QUERY_CANCELED)
		ReThrowError(error);
	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("ddb_outbox_send() stops early, after %d jobs", sender->sent),
			 errdetail_internal("%s", reason_of(error)),
			 errhint("The next call sends the jobs that are left.")));
	sender->most = sender->sent;
}

/*
 * Sends up to SEND_TURN rows.  which: FAILED or OTHERS.  Ends after failures_most further failures.
 * The rows are locked, so nobody can change or delete a row while it is sent.
 */
static void
send_rows(Sender *sender, const char *which, int failures_most)
{
	Oid			types[] = {INT4OID, TEXTOID};
	Datum		values[] = {
		Int32GetDatum(Min(sender->most - sender->sent, SEND_TURN)),
		CStringGetTextDatum(ddblock_lock_prefix),
	};
	MemoryContext per_row = AllocSetContextCreate(CurrentMemoryContext, "ddblock outbox",
												  ALLOCSET_DEFAULT_SIZES);
	SPITupleTable *rows;
	int			count;

	failures_most += sender->failures;
	which = psprintf(which, sender->table);
	if (SPI_execute_with_args(psprintf("SELECT queue, resource, payload, id, position FROM %s AS o %s "
									   "LIMIT $1 FOR UPDATE OF o", sender->table, which),
							  2, types, values, NULL, false, 0) != SPI_OK_SELECT)
		KeepNotRecorded(OUTBOX, "the job");
	count = (int) SPI_processed;
	rows = SPI_tuptable;
	for (int i = 0; i < count && sender->failures < failures_most && sender->sent < sender->most; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(per_row);
		HeapTuple	row = rows->vals[i];
		bool		is_null;
		int64		position = DatumGetInt64(SPI_getbinval(row, rows->tupdesc, 5, &is_null));
		ErrorData  *error = push_or_fail(sender, row, rows->tupdesc, position);

		if (error == NULL)
		{
			change_row("DELETE FROM %s WHERE position = $1", sender->table, position, NULL);
			sender->sent++;
		}
		else if (sender->table_fits && is_fault_of_row(error->sqlerrcode))
		{
			note_failure(sender->table, position, error);
			sender->failures++;
		}
		else
			stop(sender, error);
		MemoryContextSwitchTo(old);
		MemoryContextReset(per_row);
	}
	SPI_freetuptable(rows);
	MemoryContextDelete(per_row);
}

PG_FUNCTION_INFO_V1(ddb_outbox_send);

/*
 * (max_rows): how many jobs were sent
 *
 * To keep the order, only one session sends at a time.  It locks this function, because a lock of
 * the table that excludes another sender would exclude VACUUM, too.  If the transaction aborts
 * after a push, the row stays; by its id, the next push finds that the job was pushed already.
 *
 * A row that cannot be sent keeps back later rows of its queue and resource only.  Each call tries
 * such rows again first, because others may wait for them.
 */
Datum
ddb_outbox_send(PG_FUNCTION_ARGS)
{
	Sender		sender = {0};
	LOCKTAG		function;
	int			before;

	ErrorsRequirePreload();
	sender.most = ArgumentCount(fcinfo, 0, "max_rows", SEND_MOST, NULL);
	PreventCommandIfReadOnly("ddb_outbox_send()");
	sender.table = KeepTable(fcinfo, OUTBOX);
	/* Leave a tenth of the time that statement_timeout allows for the rest of the statement. */
	sender.stop_at = !get_timeout_active(STATEMENT_TIMEOUT) ? PG_INT64_MAX : SegmentNow() +
		(get_timeout_finish_time(STATEMENT_TIMEOUT) - GetCurrentTimestamp()) / 10 * 9;

	SPI_connect();
	SET_LOCKTAG_OBJECT(function, MyDatabaseId, ProcedureRelationId, fcinfo->flinfo->fn_oid, 0);
	(void) LockAcquire(&function, ShareUpdateExclusiveLock, false, false);
	send_rows(&sender, FAILED, FAILURES_AGAIN);
	do
	{
		before = sender.sent + sender.failures;
		send_rows(&sender, OTHERS, 1);
	}
	while (sender.sent + sender.failures > before &&
		   sender.sent < sender.most && sender.failures < FAILURES_MOST);
	SPI_finish();
	PG_RETURN_INT64(sender.sent);
}
