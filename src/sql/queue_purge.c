/*-------------------------------------------------------------------------
 *
 * queue_purge.c
 *	  ddb_queue_purge(): deletes what resources without jobs have left.
 *
 * No number of a resource may come twice: late copies of requests, dead jobs and callers' ids
 * name them.  So numbers of a resource without a head begin above a floor, which is raised to the
 * last numbers of the heads that are to go.  They go when it has waited for so long that every
 * session knows it, and no push that has found no head is under way: sessions remember a floor
 * for an hour, a push is repeated for 4 minutes, and its last copy's signature is accepted for 15.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "sql/sql.h"

#define DONE "ddb_queue_done"
#define FLOOR_WAITS_MS (DAY_MS / 2)

typedef struct Purge
{
	int64		token;			/* last claims below it are old */
	int64		to;				/* the floor that counts: heads up to it may go */
	int64		wanted;			/* the floor that all old ones need */
	int64		count;

	/* Of which jobs wait; in the server's encoding, for what it cannot say is in no row: */
	ArrayBuildState *queues;
	ArrayBuildState *resources;

	/* Of the last head, for the jobs that follow it: */
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];
	int64		done;
} Purge;

static void
note_head(Purge *purge, const QueueRow *row, int64 done)
{
	strlcpy(purge->queue, row->queue, sizeof(purge->queue));
	strlcpy(purge->resource, row->resource, sizeof(purge->resource));
	purge->done = done;
}

static void
note_waiting(Purge *purge, const QueueRow *head)
{
	char	   *resource = Utf8ToServer(head->resource);

	if (resource == NULL)
		return;
	(void) accumArrayResult(purge->queues, CStringGetTextDatum(head->queue), false, TEXTOID, NULL);
	(void) accumArrayResult(purge->resources, CStringGetTextDatum(resource), false, TEXTOID, NULL);
}

/* Who pushes meanwhile changes its number, and refuses the deletion. */
static void
purge_head(Purge *purge, const QueueRow *head)
{
	queue_request request = QueueRequest(QUEUE_DELETE_HEAD, head->queue, head->resource);

	note_head(purge, head, head->is.done);
	if (head->is.done < head->is.seq)
		note_waiting(purge, head);
	if (!queue_is_spent(&head->is, purge->token))
		return;
	purge->wanted = Max(purge->wanted, head->is.seq);
	if (head->is.seq > purge->to)
		return;
	request.seq = head->is.seq;
	if (QueueCall(&request, NULL, DYNAMO_OK)->is.status == DYNAMO_OK)
		purge->count++;
	queue_memory_note(segment->memory, head->queue, head->resource, 0, 0);
}

/*
 * A finished job's item stays if its deletion was lost.  Done never falls.  A job without a head is
 * finished, or its push is half visible, above the floor.
 */
static void
purge_job(Purge *purge, const QueueRow *job)
{
	if (strcmp(purge->queue, job->queue) != 0 || strcmp(purge->resource, job->resource) != 0)
	{
		const QueueRow *head = QueueJobHead(job->queue, job->resource, NULL);

		note_head(purge, job, head != NULL ? head->is.done : purge->to);
	}
	if (job->is.number > purge->done)
		return;
	QueueJobDelete(job->queue, job->resource, job->is.number);
	purge->count++;
}

/*
 * Rows of jobs that do not come again, in this database: no job of their resource waits.  Who has
 * claimed one long ago does not mark it as done any more.
 */
static void
purge_done(Purge *purge, const char *table)
{
	Oid			types[] = {INT8OID, TEXTARRAYOID, TEXTARRAYOID};
	Datum		values[] = {
		Int64GetDatum(purge->token),
		makeArrayResult(purge->queues, CurrentMemoryContext),
		makeArrayResult(purge->resources, CurrentMemoryContext),
	};

	SPI_connect();
	if (SPI_execute_with_args(psprintf("DELETE FROM %s AS d WHERE token < $1 AND NOT EXISTS "
									   "(SELECT FROM unnest($2, $3) AS w (queue, resource) "
									   "WHERE w.queue = d.queue AND w.resource = d.resource)", table),
							  lengthof(types), types, values, NULL, false, 0) != SPI_OK_DELETE)
		KeepNotRecorded(DONE, "the job");
	purge->count += SPI_processed;
	SPI_finish();
}

PG_FUNCTION_INFO_V1(ddb_queue_purge);

/* (older_than): how many items and rows */
Datum
ddb_queue_purge(PG_FUNCTION_ARGS)
{
	queue_request request = QueueRequest(QUEUE_READ_FLOOR, "", "");
	QueueScan	scan = {.request = QueueRequest(QUEUE_LIST_ALL, "", "")};
	Purge		purge = {
		.queues = initArrayResult(TEXTOID, CurrentMemoryContext, true),
		.resources = initArrayResult(TEXTOID, CurrentMemoryContext, true),
	};
	QueueReply *reply;
	QueueRow	floor = {0};
	QueueRow	row;
	int64		age_ms;
	bool		counts;

	ErrorsRequirePreload();
	PreventCommandIfReadOnly("ddb_queue_purge()");
	age_ms = ArgumentDuration(fcinfo, 0, "older_than", DAY_MS);
	if (age_ms < DAY_MS)
		ErrorsArgument(errmsg("argument \"%s\" must be at least 1 day", "older_than"),
					   errdetail("A job's last claim may have been so long ago when it is "
								 "finished."));
	(void) QueueNameOf("", "");
	reply = QueueCall(&request, NULL, DYNAMO_OK);
	(void) QueueReadRow(reply, &floor);
	/* Tokens are DynamoDB's time, in microseconds. */
	purge.token = Max(reply->is.now_ms - age_ms, 0) * 1000;
	counts = floor.is.due <= reply->is.now_ms;
	purge.to = counts ? floor.is.seq : 0;
	while (QueueScanNext(&scan, &row))
	{
		MemoryContext old = MemoryContextSwitchTo(scan.page);

		/* A caller's id may look like a job's key, or a head's. */
		if (row.resource[0] != '\0' && row.is.number == 0)
			purge_head(&purge, &row);
		else if (row.resource[0] != '\0')
			purge_job(&purge, &row);
		MemoryContextSwitchTo(old);
	}
	/* One floor after the other: else a daily purge would make none count. */
	if (counts && purge.wanted > floor.is.seq)
	{
		request.kind = QUEUE_RAISE_FLOOR;
		request.seq = floor.is.seq;
		request.number = purge.wanted;
		request.delay_ms = FLOOR_WAITS_MS;
		(void) QueueCall(&request, NULL, DYNAMO_OK);
	}
	purge_done(&purge, KeepTable(fcinfo, DONE));
	PG_RETURN_INT64(purge.count);
}
