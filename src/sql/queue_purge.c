/*-------------------------------------------------------------------------
 *
 * queue_purge.c
 *	  ddb_queue_purge(): deletes what resources without jobs have left.
 *
 * No number of a resource may be given twice, because late copies of requests, dead jobs and
 * callers' ids name jobs by their numbers.  If a head is deleted, its last number is forgotten.  So
 * there is a floor, one number for the whole table: the numbers of a resource without a head begin
 * above it.
 *
 * One purge raises the floor to the highest number of the heads that are to go.  Example: the
 * floor is 100, and the last number of an old head is 250: the floor becomes 250.  A later purge
 * deletes the heads whose numbers are not above the floor, when the floor has waited for
 * FLOOR_WAITS_MS (it "counts" then).  By then:
 *
 *	 - Every cluster knows the floor: a cluster reads it again after an hour.
 *	 - No push that has found no head is under way: a push is repeated for 4 minutes, and the
 *	   signature of its last copy is accepted for 15 minutes.
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
	int64		token;			/* a claim with a lower token is old */
	int64		to;				/* the floor; 0 if it does not count yet.  Old heads whose last
								 * number is not above it may go */
	int64		wanted;			/* the highest number of all old heads: the floor must rise to it */
	int64		count;			/* how many items and rows were deleted */

	/*
	 * Resources with jobs that wait, and their queues, in the server's encoding.  Names that it
	 * lacks are left out: no row of ddb_queue_done can have them.
	 */
	ArrayBuildState *queues;
	ArrayBuildState *resources;

	/* The head that was read last, and its last finished number, for the jobs that follow: */
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

/*
 * Deletes the head if it is old.  The deletion has a condition on the head's number: if a session
 * pushes a job meanwhile, DynamoDB refuses the deletion.
 */
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
 * Deletes a job's item if the job is finished: its deletion was lost.  A head's number "done" never
 * falls, so it may have been read before.  If a job has no head, there are two cases:
 *
 *	 - Its number is not above the floor: the job is finished, and its head was deleted.
 *	 - Its number is above the floor: it is being pushed, and the head is not visible yet.
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
 * Deletes the rows of ddb_queue_done, in this database, of old claims on resources in which no job
 * waits.  Nobody gets these jobs again, and a session that has claimed one so long ago does not
 * mark it as done any more.
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

		/* A caller's id may be "head", or look like a job's key; but its row has no resource. */
		if (row.resource[0] != '\0' && row.is.number == 0)
			purge_head(&purge, &row);
		else if (row.resource[0] != '\0')
			purge_job(&purge, &row);
		MemoryContextSwitchTo(old);
	}
	/* Raise the floor only if it counts: otherwise frequent purges would begin its wait anew. */
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
