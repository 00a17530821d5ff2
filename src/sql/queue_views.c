/*-------------------------------------------------------------------------
 *
 * queue_views.c
 *	  SQL functions that show the jobs that wait in a queue, and the dead ones.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#include "sql/sql.h"

typedef struct Summary
{
	int64		resources;
	int64		depth;
	int64		oldest_ms;		/* the age of the oldest job */
	int64		overdue_ms;		/* for how long the longest overdue job has been due */
	int64		retrying;		/* resources whose next job has failed before */
	int64		paused;			/* resources */
} Summary;

/* Shows or adds up one resource.  out: a FunctionCallInfo or a Summary. */
typedef void (*PutResource) (void *out, const QueueName *name);

static int
compare_texts(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

/* Calls "put" for the resource; without one, for each of the queue in which jobs wait. */
static void
for_resources(void *out, const QueueName *name, PutResource put)
{
	QueueScan	scan = {.request = QueueRequest(QUEUE_FIND, name->queue, "")};
	QueueRow	row;
	MemoryContext per_resource;
	List	   *resources = NIL;
	ListCell   *cell;
	const char *last = "";

	QueueOwnSettle();
	if (name->resource[0] != '\0')
	{
		put(out, name);
		return;
	}

	/*
	 * Sort the resources, and leave out duplicates: between the reads of two pages of the index, a
	 * resource may move from the first to the second.
	 */
	scan.request.all = true;
	while (QueueScanNext(&scan, &row))
		resources = lappend(resources, pstrdup(row.resource));
	list_sort(resources, compare_texts);
	per_resource = AllocSetContextCreate(CurrentMemoryContext, "ddblock resource",
										 ALLOCSET_DEFAULT_SIZES);
	foreach(cell, resources)
	{
		MemoryContext old = MemoryContextSwitchTo(per_resource);
		QueueName	one = QueueNameOf(name->queue, lfirst(cell));

		if (strcmp(one.resource, last) != 0)
			put(out, &one);
		last = one.resource;
		MemoryContextSwitchTo(old);
		MemoryContextReset(per_resource);
	}
	MemoryContextDelete(per_resource);
}

/* Puts a row for the resource if jobs wait, or if the resource is paused. */
static void
put_depth(void *out, const QueueName *name)
{
	QueueRow   *head = QueueJobHead(name->queue, name->resource, NULL);
	Row			row;

	if (head == NULL || (head->is.done >= head->is.seq && !head->is.paused))
		return;
	RowStart(&row, out);
	RowValue(&row, "resource", NOTICE, "resource of a queue", name->resource);
	RowSet(&row, "depth", Int64GetDatum(head->is.seq - head->is.done));
	RowSet(&row, "attempts", Int32GetDatum((int32) head->is.attempts));
	RowEpoch(&row, "due", head->is.due);
	RowSet(&row, "paused", BoolGetDatum(head->is.paused));
	RowText(&row, "last_error", head->error);
	RowPut(&row, out);
}

PG_FUNCTION_INFO_V1(ddb_queue_depths);

/* (queue, resource) */
Datum
ddb_queue_depths(PG_FUNCTION_ARGS)
{
	QueueName	name = QueueArgumentAny(fcinfo);

	InitMaterializedSRF(fcinfo, 0);
	for_resources(fcinfo, &name, put_depth);
	return (Datum) 0;
}

static void
add_resource(void *out, const QueueName *name)
{
	Summary    *summary = out;
	int64		now_ms;
	int64		first_ms;
	QueueRow   *head = QueueJobHead(name->queue, name->resource, &now_ms);
	QueueScan	scan = {.request = QueueRequest(QUEUE_LIST_JOBS, name->queue, name->resource)};
	QueueRow	job;

	if (head == NULL || head->is.done >= head->is.seq)
		return;
	summary->resources++;
	summary->depth += head->is.seq - head->is.done;
	summary->retrying += head->is.attempts > 0;
	summary->paused += head->is.paused;
	if (!head->is.paused)
		summary->overdue_ms = Max(summary->overdue_ms, now_ms - head->is.due);

	first_ms = now_ms;			/* if no job is found: it has just been finished */
	scan.request.number = head->is.done + 1;
	scan.request.to = head->is.seq;
	if (QueueScanNext(&scan, &job))
		first_ms = job.is.pushed_at;
	/* Small jobs ride on the head: they are in its item.  One of them may be the oldest job. */
	for (uint32 i = 0; i < head->is.riders; i++)
		first_ms = Min(first_ms, head->riders[i].is.pushed_at);
	summary->oldest_ms = Max(summary->oldest_ms, now_ms - first_ms);
}

PG_FUNCTION_INFO_V1(ddb_queue_summary);

/* (queue) */
Datum
ddb_queue_summary(PG_FUNCTION_ARGS)
{
	Summary		summary = {0};
	Row			row;
	QueueName	name = QueueArgumentQueue(fcinfo);
	QueueScan	scan = {.request = QueueRequest(QUEUE_LIST_DEAD, name.queue, "")};
	QueueRow	job;
	int64		dead = 0;

	for_resources(&summary, &name, add_resource);
	while (QueueScanNext(&scan, &job))
		dead++;

	RowStart(&row, fcinfo);
	RowSet(&row, "resources", Int64GetDatum(summary.resources));
	RowSet(&row, "depth", Int64GetDatum(summary.depth));
	if (summary.depth > 0)
	{
		RowInterval(&row, "oldest", summary.oldest_ms * 1000);
		RowInterval(&row, "overdue", summary.overdue_ms * 1000);
	}
	RowSet(&row, "retrying", Int64GetDatum(summary.retrying));
	RowSet(&row, "paused", Int64GetDatum(summary.paused));
	RowSet(&row, "dead", Int64GetDatum(dead));
	return RowResult(&row);
}

/* Sets the columns that a waiting job and a dead one have in common. */
static void
start_job(Row *row, void *out, const char *resource, const QueueRow *job, int64 now_ms)
{
	RowStart(row, out);
	RowValue(row, "resource", NOTICE, "resource of a queue", resource);
	RowSet(row, "number", Int64GetDatum(job->is.number));
	RowValue(row, "id", NOTICE, "id of a job", job->id);
	RowEpoch(row, "pushed_at", job->is.pushed_at);
	if (job->is.pushed_at > 0)
		RowInterval(row, "age", Max(now_ms - job->is.pushed_at, 0) * 1000);
}

static void
put_job(void *out, const QueueName *name, const QueueRow *head, const QueueRow *job, int64 now_ms)
{
	bool		next = job->is.number == head->is.done + 1;
	Row			row;

	start_job(&row, out, name->resource, job, now_ms);
	RowSet(&row, "attempts", Int32GetDatum(next ? (int32) head->is.attempts : 0));
	RowText(&row, "last_error", next ? head->error : "");
	RowPut(&row, out);
}

static int
compare_numbers(const void *a, const void *b)
{
	int64		first = ((const QueueRow *) a)->is.number;
	int64		second = ((const QueueRow *) b)->is.number;

	return (first > second) - (first < second);
}

/* Puts a row for each waiting job.  Merges the jobs that ride on the head with the others. */
static void
put_jobs(void *out, const QueueName *name)
{
	uint32		put = 0;
	int64		now_ms;
	QueueRow   *head = QueueJobHead(name->queue, name->resource, &now_ms);
	QueueScan	scan = {.request = QueueRequest(QUEUE_LIST_JOBS, name->queue, name->resource)};
	QueueRow	job;

	if (head == NULL || head->is.done >= head->is.seq)
		return;
	scan.request.number = head->is.done + 1;
	scan.request.to = head->is.seq;
	qsort(head->riders, head->is.riders, sizeof(QueueRow), compare_numbers);
	while (QueueScanNext(&scan, &job))
	{
		while (put < head->is.riders && head->riders[put].is.number < job.is.number)
			put_job(out, name, head, &head->riders[put++], now_ms);
		put_job(out, name, head, &job, now_ms);
	}
	while (put < head->is.riders)
		put_job(out, name, head, &head->riders[put++], now_ms);
}

static void
put_dead(void *out, const QueueName *name)
{
	QueueScan	scan = {.request = QueueRequest(QUEUE_LIST_DEAD, name->queue, "")};
	QueueRow	job;

	while (QueueScanNext(&scan, &job))
	{
		char	   *payload;
		Row			row;

		if (name->resource[0] != '\0' && strcmp(job.resource, name->resource) != 0)
			continue;
		payload = Utf8ToServerOr(NOTICE, "payload of a dead job", job.payload);
		start_job(&row, out, job.resource, &job, scan.reply->is.now_ms);
		RowSet(&row, "attempts", Int32GetDatum((int32) job.is.attempts));
		RowText(&row, "last_error", job.error);
		RowEpoch(&row, "died_at", job.is.due);
		if (payload != NULL)
			RowSet(&row, "payload", DirectFunctionCall1(jsonb_in, CStringGetDatum(payload)));
		RowPut(&row, out);
	}
}

PG_FUNCTION_INFO_V1(ddb_queue_list);

/* (queue, resource, dead) */
Datum
ddb_queue_list(PG_FUNCTION_ARGS)
{
	QueueName	name = QueueArgumentAny(fcinfo);
	bool		dead = ArgumentBool(fcinfo, 2, "dead");

	InitMaterializedSRF(fcinfo, 0);
	if (dead)
		put_dead(fcinfo, &name);
	else
		for_resources(fcinfo, &name, put_jobs);
	return (Datum) 0;
}
