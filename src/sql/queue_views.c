/*-------------------------------------------------------------------------
 *
 * queue_views.c
 *	  What waits in a queue, and what is dead.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "session/queue_call.h"
#include "session/queue_own.h"
#include "session/queue_job.h"
#include "shared/errors.h"
#include "shared/times.h"
#include "shared/utf8.h"
#include "sql/item_columns.h"
#include "sql/queue_arguments.h"

PG_FUNCTION_INFO_V1(ddb_queue_depths);
PG_FUNCTION_INFO_V1(ddb_queue_summary);
PG_FUNCTION_INFO_V1(ddb_queue_list);
PG_FUNCTION_INFO_V1(ddb_queue_list_dead);

#define DEPTHS_COLUMNS 6
#define LIST_COLUMNS 6
#define DEAD_COLUMNS 8

/* The columns of ddb_queue_summary, in order. */
enum
{
	SUMMARY_RESOURCES,
	SUMMARY_DEPTH,
	SUMMARY_OLDEST,
	SUMMARY_OVERDUE,
	SUMMARY_RETRYING,
	SUMMARY_PAUSED,
	SUMMARY_DEAD,
	SUMMARY_COLUMNS
};

typedef struct Summary
{
	int64		resources;
	int64		depth;
	int64		oldest_ms;		/* the age of the oldest job */
	int64		overdue_ms;		/* since a job has been due */
	int64		retrying;
	int64		paused;
	int64		dead;
} Summary;

/* out: the caller's, a ReturnSetInfo or a Summary */
typedef void (*PutResource) (void *out, const QueueName *name);

static void for_resources(void *out, const QueueName *name, PutResource put);
static char **waiting_resources(const char *queue, int *count);
static int	compare_texts(const void *a, const void *b);
static void put_depth(void *out, const QueueName *name);
static void add_resource(void *out, const QueueName *name);
static int64 age_of_first(const QueueName *name, const QueueRow *head, int64 now_ms);
static int64 count_dead(const char *queue);
static void put_jobs(void *out, const QueueName *name);
static Datum number_value(int64 value, bool *is_null);

/* (queue, resource) */
Datum
ddb_queue_depths(PG_FUNCTION_ARGS)
{
	QueueName	name;

	ErrorsRequirePreload();
	name = QueueArgumentAny(fcinfo);
	InitMaterializedSRF(fcinfo, 0);
	for_resources(fcinfo->resultinfo, &name, put_depth);
	return (Datum) 0;
}

/* (queue) */
Datum
ddb_queue_summary(PG_FUNCTION_ARGS)
{
	QueueName	name;
	Summary		summary = {0};
	TupleDesc	columns;
	Datum		values[SUMMARY_COLUMNS];
	bool		nulls[SUMMARY_COLUMNS] = {0};

	ErrorsRequirePreload();
	name = QueueArgumentQueue(fcinfo);
	if (get_call_result_type(fcinfo, NULL, &columns) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	for_resources(&summary, &name, add_resource);
	summary.dead = count_dead(name.queue);

	values[SUMMARY_RESOURCES] = Int64GetDatum(summary.resources);
	values[SUMMARY_DEPTH] = Int64GetDatum(summary.depth);
	values[SUMMARY_OLDEST] = IntervalPGetDatum(TimesInterval(summary.oldest_ms * 1000));
	values[SUMMARY_OVERDUE] = IntervalPGetDatum(TimesInterval(summary.overdue_ms * 1000));
	values[SUMMARY_RETRYING] = Int64GetDatum(summary.retrying);
	values[SUMMARY_PAUSED] = Int64GetDatum(summary.paused);
	values[SUMMARY_DEAD] = Int64GetDatum(summary.dead);
	nulls[SUMMARY_OLDEST] = nulls[SUMMARY_OVERDUE] = summary.depth == 0;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(columns, values, nulls)));
}

/* (queue, resource) */
Datum
ddb_queue_list(PG_FUNCTION_ARGS)
{
	QueueName	name;

	ErrorsRequirePreload();
	name = QueueArgumentAny(fcinfo);
	InitMaterializedSRF(fcinfo, 0);
	for_resources(fcinfo->resultinfo, &name, put_jobs);
	return (Datum) 0;
}

/* For one resource, or for all in which jobs wait. */
static void
for_resources(void *out, const QueueName *name, PutResource put)
{
	MemoryContext per_resource;
	char	  **resources;
	int			count;

	QueueOwnSettle();
	if (name->resource[0] != '\0')
	{
		put(out, name);
		return;
	}
	resources = waiting_resources(name->queue, &count);
	per_resource = AllocSetContextCreate(CurrentMemoryContext, "ddblock resource",
										 ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < count; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(per_resource);
		QueueName	one = QueueNameOf(name->queue, resources[i]);

		put(out, &one);
		MemoryContextSwitchTo(old);
		MemoryContextReset(per_resource);
	}
	MemoryContextDelete(per_resource);
}

/* In order, and each once: between two pages, one may move to the second. */
static char **
waiting_resources(const char *queue, int *count)
{
	QueueScan	scan = {.request = QueueRequest(QUEUE_FIND, queue, "")};
	int			room = 64;
	int			found = 0;
	char	  **resources = palloc(room * sizeof(char *));
	QueueRow	row;

	scan.request.all = true;
	while (QueueScanNext(&scan, &row))
	{
		if (found == room)
			resources = repalloc(resources, (room *= 2) * sizeof(char *));
		resources[found++] = pstrdup(row.resource);
	}
	qsort(resources, found, sizeof(char *), compare_texts);
	*count = 0;
	for (int i = 0; i < found; i++)
	{
		if (i == 0 || strcmp(resources[i], resources[i - 1]) != 0)
			resources[(*count)++] = resources[i];
	}
	return resources;
}

static int
compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* No row if no job waits and the resource is not paused. */
static void
put_depth(void *out, const QueueName *name)
{
	ReturnSetInfo *result = out;
	QueueRow   *head = QueueJobHead(name->queue, name->resource, NULL);
	Datum		values[DEPTHS_COLUMNS];
	bool		nulls[DEPTHS_COLUMNS];

	if (head == NULL || (head->is.done >= head->is.seq && !head->is.paused))
		return;
	memset(nulls, true, sizeof(nulls));
	ItemValue(0, NOTICE, "resource of a queue", name->resource, values, nulls);
	values[1] = Int64GetDatum(head->is.seq - head->is.done);
	nulls[1] = false;
	values[2] = Int32GetDatum((int32) head->is.attempts);
	nulls[2] = false;
	ItemTime(3, head->is.due, values, nulls);
	values[4] = BoolGetDatum(head->is.paused);
	nulls[4] = false;
	ItemText(5, head->error, values, nulls);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
add_resource(void *out, const QueueName *name)
{
	Summary    *summary = out;
	int64		now_ms;
	QueueRow   *head = QueueJobHead(name->queue, name->resource, &now_ms);

	if (head == NULL || head->is.done >= head->is.seq)
		return;
	summary->resources++;
	summary->depth += head->is.seq - head->is.done;
	summary->retrying += head->is.attempts > 0;
	summary->paused += head->is.paused;
	if (!head->is.paused)
		summary->overdue_ms = Max(summary->overdue_ms, now_ms - head->is.due);
	summary->oldest_ms = Max(summary->oldest_ms, age_of_first(name, head, now_ms));
}

/* In ms; 0 if it has just been finished. */
static int64
age_of_first(const QueueName *name, const QueueRow *head, int64 now_ms)
{
	QueueScan	scan = {.request = QueueRequest(QUEUE_LIST_JOBS, name->queue, name->resource)};
	QueueRow	row;

	scan.request.number = head->is.done + 1;
	scan.request.to = head->is.seq;
	return QueueScanNext(&scan, &row) ? now_ms - row.is.pushed_at : 0;
}

static int64
count_dead(const char *queue)
{
	QueueScan	scan = {.request = QueueRequest(QUEUE_LIST_DEAD, queue, "")};
	QueueRow	row;
	int64		count = 0;

	while (QueueScanNext(&scan, &row))
		count++;
	return count;
}

static void
put_jobs(void *out, const QueueName *name)
{
	ReturnSetInfo *result = out;
	int64		now_ms;
	QueueRow   *head = QueueJobHead(name->queue, name->resource, &now_ms);
	QueueScan	scan = {.request = QueueRequest(QUEUE_LIST_JOBS, name->queue, name->resource)};
	QueueRow	row;

	if (head == NULL || head->is.done >= head->is.seq)
		return;
	scan.request.number = head->is.done + 1;
	scan.request.to = head->is.seq;
	while (QueueScanNext(&scan, &row))
	{
		Datum		values[LIST_COLUMNS];
		bool		nulls[LIST_COLUMNS];
		bool		next = row.is.number == head->is.done + 1;

		memset(nulls, true, sizeof(nulls));
		ItemValue(0, NOTICE, "resource of a queue", name->resource, values, nulls);
		values[1] = number_value(row.is.number, &nulls[1]);
		ItemValue(2, NOTICE, "id of a job", row.id, values, nulls);
		ItemTime(3, row.is.pushed_at, values, nulls);
		if (row.is.pushed_at > 0)
		{
			values[4] = IntervalPGetDatum(TimesInterval(Max(now_ms - row.is.pushed_at, 0) * 1000));
			nulls[4] = false;
		}
		values[5] = Int32GetDatum(next ? (int32) head->is.attempts : 0);
		nulls[5] = false;
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
}

static Datum
number_value(int64 value, bool *is_null)
{
	*is_null = false;
	return Int64GetDatum(value);
}

/* (queue) */
Datum
ddb_queue_list_dead(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	QueueScan	scan;
	QueueRow	row;

	ErrorsRequirePreload();
	scan = (QueueScan)
	{
		.request = QueueRequest(QUEUE_LIST_DEAD, QueueArgumentQueue(fcinfo).queue, "")
	};
	InitMaterializedSRF(fcinfo, 0);
	while (QueueScanNext(&scan, &row))
	{
		Datum		values[DEAD_COLUMNS];
		bool		nulls[DEAD_COLUMNS];
		char	   *payload;

		memset(nulls, true, sizeof(nulls));
		ItemValue(0, NOTICE, "id of a dead job", row.id, values, nulls);
		ItemValue(1, NOTICE, "resource of a dead job", row.resource, values, nulls);
		values[2] = number_value(row.is.number, &nulls[2]);
		payload = Utf8ToServerOr(NOTICE, "payload of a dead job", row.payload, strlen(row.payload));
		if (payload != NULL)
		{
			values[3] = DirectFunctionCall1(jsonb_in, CStringGetDatum(payload));
			nulls[3] = false;
		}
		ItemTime(4, row.is.pushed_at, values, nulls);
		ItemTime(5, row.is.due, values, nulls);
		values[6] = Int32GetDatum((int32) row.is.attempts);
		nulls[6] = false;
		ItemText(7, row.error, values, nulls);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
