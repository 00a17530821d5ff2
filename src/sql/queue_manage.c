/*-------------------------------------------------------------------------
 *
 * queue_manage.c
 *	  SQL functions of queues for operators: create the table; cancel, pause, resume, drop,
 *	  redrive.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "sql/sql.h"

#define REDRIVE_DEDUP_MS (30 * DAY_MS)

PG_FUNCTION_INFO_V1(ddb_queue_table_create);

/* (read_units, write_units, protect) */
Datum
ddb_queue_table_create(PG_FUNCTION_ARGS)
{
	queue_request request = QueueRequest(QUEUE_CREATE_TABLE, "", "");
	dynamo_creation how;
	bool		created;
	int64		started;
	QueueReply *reply;
	QueueRow	table;

	ErrorsRequirePreload();
	how = ArgumentCreation(fcinfo);
	request.creation = how;
	created = QueueCall(&request, NULL, DYNAMO_TABLE_IN_USE)->is.status == DYNAMO_OK;

	request = QueueRequest(QUEUE_DESCRIBE_TABLE, "", "");
	started = SegmentNow();
	for (;;)
	{
		reply = QueueCall(&request, NULL, SegmentNow() - started < TABLE_APPEARANCE_US ?
						  DYNAMO_TABLE_MISSING : DYNAMO_OK);
		if (reply->is.status == DYNAMO_OK && QueueReadRow(reply, &table))
		{
			QueueTableCheck(&table);
			if (TableIsActive(table.id, "queue table", ddblock_queue_table))
				break;
		}
		TableSleep(TABLE_POLL_US);
	}
	if (!created)
		ereport(NOTICE,
				(errmsg("queue table \"%s\" already exists", ddblock_queue_table)));

	/* DynamoDB deletes the ids that callers give to jobs when their time (dedup) is over. */
	request = QueueRequest(QUEUE_ENABLE_TTL, "", "");
	reply = QueueCall(&request, NULL, DYNAMO_VALIDATION);
	if (reply->is.status != DYNAMO_OK &&
		!TableTtlAccept(reply->message, "queue table", ddblock_queue_table))
		ErrorsTrouble(DYNAMO_QUEUE_UPDATE_TTL, reply->is.status, reply->message);
	if (how.protect && !table.is.is_protected)
		TableTellUnprotected("queue table", ddblock_queue_table);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(ddb_queue_cancel);

/* (queue, resource, number) */
Datum
ddb_queue_cancel(PG_FUNCTION_ARGS)
{
	QueueName	name = QueueArgument(fcinfo);

	PG_RETURN_BOOL(QueueJobCancel(&name, ArgumentPositive(fcinfo, 2, "number")));
}

static bool
set_paused(const QueueName *name, queue_kind kind)
{
	queue_request request = QueueRequest(kind, name->queue, name->resource);
	QueueReply *reply = QueueCall(&request, NULL, DYNAMO_OK);

	queue_memory_note(segment->memory, name->queue, name->resource, 0, 0);
	return reply->is.status == DYNAMO_OK || reply->unsettled;
}

PG_FUNCTION_INFO_V1(ddb_queue_pause);

/* (queue, resource): false if it was paused already */
Datum
ddb_queue_pause(PG_FUNCTION_ARGS)
{
	QueueName	name = QueueArgument(fcinfo);

	PG_RETURN_BOOL(set_paused(&name, QUEUE_PAUSE));
}

PG_FUNCTION_INFO_V1(ddb_queue_resume);

/* (queue, resource): false if it was not paused */
Datum
ddb_queue_resume(PG_FUNCTION_ARGS)
{
	QueueName	name = QueueArgument(fcinfo);
	bool		resumed = set_paused(&name, QUEUE_RESUME);

	QueueHintTell(name.queue, name.resource, QUEUE_ATTEMPTS_UNKNOWN);
	PG_RETURN_BOOL(resumed);
}

PG_FUNCTION_INFO_V1(ddb_queue_drop);

/* (queue, resource): how many jobs */
Datum
ddb_queue_drop(PG_FUNCTION_ARGS)
{
	QueueName	name = QueueArgument(fcinfo);
	int64		before = -1;
	unsigned	times = 0;

	/*
	 * Write the head first: from then on nobody claims the jobs.  If a job is pushed between the
	 * read of the head and that write, the head has changed, and the loop begins anew.  A job that
	 * is pushed after the write stays.
	 */
	for (;;)
	{
		QueueRow   *head = QueueJobHead(name.queue, name.resource, NULL);
		queue_request request = QueueRequest(QUEUE_DROP, name.queue, name.resource);
		QueueScan	scan = {.request = QueueRequest(QUEUE_LIST_JOBS, name.queue, name.resource)};
		QueueReply *reply;
		QueueRow	row;
		int64	   *numbers;

		CHECK_FOR_INTERRUPTS();
		if (head == NULL || head->is.done >= head->is.seq)
			PG_RETURN_INT64(0);
		/* The write was refused, although no job has come. */
		if (head->is.seq == before)
			TableAgain(&times, ddblock_queue_table);
		request.seq = before = head->is.seq;
		request.jobs = head->is.riders;
		request.tail_len = head->is.riders * sizeof(int64);
		numbers = palloc(request.tail_len);
		for (int i = 0; i < request.jobs; i++)
			numbers[i] = head->riders[i].is.number;
		reply = QueueCall(&request, (const char *) numbers, DYNAMO_OK);
		if (reply->is.status != DYNAMO_OK &&
			!(reply->unsettled && QueueReadRow(reply, &row) && row.is.done >= head->is.seq))
			continue;
		scan.request.number = head->is.done + 1;
		scan.request.to = head->is.seq;
		while (QueueScanNext(&scan, &row))
		{
			MemoryContext old = MemoryContextSwitchTo(scan.page);

			QueueJobDelete(name.queue, name.resource, row.is.number);
			MemoryContextSwitchTo(old);
		}
		PG_RETURN_INT64(head->is.seq - head->is.done);
	}
}

/*
 * Pushes a dead job again.  First pushes it under an id that only this dead job gets, then deletes
 * the dead job.  If the session ends in between, the next call finds by the id that the job was
 * pushed already, and only deletes.
 */
static void
redrive(const char *queue, const char *id)
{
	queue_request request = QueueRequest(QUEUE_READ_DEAD, queue, "");
	QueuePush	job = {0};
	QueueRow   *row;

	strlcpy(request.id, id, sizeof(request.id));
	row = QueueCallRow(&request, NULL);
	if (row == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("queue \"%s\" has no dead job \"%s\"", queue, Utf8ToMessage(id))));
	job.payload = row->payload;
	job.id = psprintf("ddblock#redrive#%s", id);
	QueueJobPush(queue, row->resource, &job, 1, REDRIVE_DEDUP_MS);
	request.kind = QUEUE_DELETE_DEAD;
	(void) QueueCall(&request, NULL, DYNAMO_OK);
}

PG_FUNCTION_INFO_V1(ddb_queue_redrive);

/* (queue, id): how many jobs */
Datum
ddb_queue_redrive(PG_FUNCTION_ARGS)
{
	QueueRow	row;
	int64		count = 0;
	QueueName	name = QueueArgumentQueue(fcinfo);
	QueueScan	scan = {.request = QueueRequest(QUEUE_LIST_DEAD, name.queue, "")};

	if (!PG_ARGISNULL(1))
	{
		redrive(name.queue, ArgumentCheckLength("id", ArgumentUtf8(PG_GETARG_DATUM(1)),
												QUEUE_ID_MAX));
		PG_RETURN_INT64(1);
	}
	while (QueueScanNext(&scan, &row))
	{
		MemoryContext old = MemoryContextSwitchTo(scan.page);

		redrive(name.queue, row.id);
		MemoryContextSwitchTo(old);
		count++;
	}
	PG_RETURN_INT64(count);
}
