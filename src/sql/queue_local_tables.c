/*-------------------------------------------------------------------------
 *
 * queue_local_tables.c
 *	  What queues keep in this database: what is done, and what is to be pushed.
 *
 * ddb_queue_mark_done() and ddb_queue_push_on_commit() are part of their caller's transaction, and ask
 * neither the worker nor DynamoDB.  The functions are security definers with a fixed
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
#define SEND_TURN 100			/* rows in memory */
#define FAILURES_MOST 100		/* in a call: then perhaps no row can be sent */
#define FAILURES_AGAIN 10		/* of rows that have failed before */
#define OUTBOX_DEDUP_MS (30 * DAY_MS)

typedef struct DoneJob
{
	int64		number;
	bool		has_time;
	TimestampTz pushed_at;
	int64		token;
} DoneJob;

/*
 * True if the job's work is to be done, false if it is done already; LK002 if a later claim's work
 * is recorded.  A resource's jobs are done in order under one lock, and tokens rise, whatever becomes
 * of the queue table.  Numbers do not: in a table that is made anew, or in another one, they begin
 * at 1.  When the job was pushed tells such jobs apart.
 *
 * The row's lock makes a second transaction wait until the first one has ended, also if the row
 * stays as it is.
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

/* (queue, resource, number): the job's time and token are those of this session's claim. */
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

/* (queue, resource, number, pushed_at, token): what another session has claimed. */
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
 * Rows that have failed, the first of each resource; who was tried longest ago comes first.  In all
 * commands: what the caller's ddblock.lock_prefix ($2) does not allow is left to others.
 */
#define ALLOWED "starts_with('queue/' || o.queue || '/' || o.resource, $2)"
#define FAILED "WHERE failing_since IS NOT NULL AND " ALLOWED " AND NOT EXISTS (SELECT FROM %s AS before " \
	"WHERE before.failing_since IS NOT NULL AND (before.queue, before.resource) = (o.queue, o.resource) " \
	"AND before.position < o.position) ORDER BY tried_at, position"

/* All that wait for no such row. */
#define OTHERS "WHERE failing_since IS NULL AND " ALLOWED " AND (queue, resource) NOT IN " \
	"(SELECT queue, resource FROM %s WHERE failing_since IS NOT NULL) ORDER BY position"

typedef struct Sender
{
	const char *table;
	int			most;			/* rows to send; no more than sent: the other rows would fail, too */
	int			sent;
	int			failures;
	int64		stop_at;		/* before statement_timeout */
	bool		table_fits;		/* the queues' table: what is wrong with it is no row's fault */
} Sender;

/*
 * Outages, throttling, credentials, a missing table and the ends of the session or its statement are not:
 * the other rows would meet them, too.
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

/* What is wrong with a job must be mended in its row. */
static void
name_row(void *position)
{
	errcontext("row %lld of table \"ddb_outbox\"", (long long) *(int64 *) position);
}

/*
 * In a subtransaction, which writes nothing here, so that it needs no number.  Returns NULL, or why it
 * failed.  Whatever that is, the subtransaction ends first: else a handler around this call would end it
 * in place of its own, and go on as the definer.
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
 * An error would undo all that was sent, and the next call would begin with the same rows.  A
 * cancellation stays one, whoever wanted it: also a lost lease cancels.
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
 * A turn, which ends after so many failures.  Locks the rows: who corrects or deletes one does so before
 * or after that.
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
 * (max_rows): how many jobs.  One sender at a time keeps the order: it locks this function, since a lock
 * of the table that no two have would keep VACUUM out, too.  If the transaction aborts
 * after a push, the row stays, and its id has the next push find that it is done.
 *
 * A row that cannot be sent keeps back those of its queue and resource only.  It is tried again by each
 * call, before the others, since they may wait for it.
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
	/* A tenth of statement_timeout's time is for what follows the last push. */
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
