/*-------------------------------------------------------------------------
 *
 * queue_views.c
 *	  What waits in a queue, and what is dead.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

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
PG_FUNCTION_INFO_V1(ddb_queue_list);
PG_FUNCTION_INFO_V1(ddb_queue_dead);

#define DEPTHS_COLUMNS 6
#define LIST_COLUMNS 6
#define DEAD_COLUMNS 8

typedef void (*PutResource) (ReturnSetInfo *result, const QueueName *name);

static void for_resources(ReturnSetInfo *result, const QueueName *name, PutResource put);
static char **waiting_resources(const char *queue, int *count);
static int	compare_texts(const void *a, const void *b);
static void put_depth(ReturnSetInfo *result, const QueueName *name);
static void put_jobs(ReturnSetInfo *result, const QueueName *name);
static Datum number_value(int64 value, bool *is_null);

/* (queue, resource) */
Datum
ddb_queue_depths(PG_FUNCTION_ARGS)
{
	QueueName	name;

	ErrorsRequirePreload();
	name = QueueArgumentAny(fcinfo);
	InitMaterializedSRF(fcinfo, 0);
	for_resources((ReturnSetInfo *) fcinfo->resultinfo, &name, put_depth);
	return (Datum) 0;
}

/* (queue, resource) */
Datum
ddb_queue_list(PG_FUNCTION_ARGS)
{
	QueueName	name;

	ErrorsRequirePreload();
	name = QueueArgumentAny(fcinfo);
	InitMaterializedSRF(fcinfo, 0);
	for_resources((ReturnSetInfo *) fcinfo->resultinfo, &name, put_jobs);
	return (Datum) 0;
}

/* For one resource, or for all in which jobs wait. */
static void
for_resources(ReturnSetInfo *result, const QueueName *name, PutResource put)
{
	MemoryContext per_resource;
	char	  **resources;
	int			count;

	QueueOwnSettle();
	if (name->resource[0] != '\0')
	{
		put(result, name);
		return;
	}
	resources = waiting_resources(name->queue, &count);
	per_resource = AllocSetContextCreate(CurrentMemoryContext, "ddblock resource",
										 ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < count; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(per_resource);
		QueueName	one = QueueNameOf(name->queue, resources[i]);

		put(result, &one);
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
put_depth(ReturnSetInfo *result, const QueueName *name)
{
	QueueRow   *head = QueueJobHead(name->queue, name->resource, NULL);
	Datum		values[DEPTHS_COLUMNS];
	bool		nulls[DEPTHS_COLUMNS];

	if (head == NULL || (head->is.done >= head->is.seq && !head->is.paused))
		return;
	memset(nulls, true, sizeof(nulls));
	ItemText(0, name->resource, values, nulls);
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
put_jobs(ReturnSetInfo *result, const QueueName *name)
{
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
		ItemText(0, name->resource, values, nulls);
		values[1] = number_value(row.is.number, &nulls[1]);
		ItemText(2, row.id, values, nulls);
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
ddb_queue_dead(PG_FUNCTION_ARGS)
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

		memset(nulls, true, sizeof(nulls));
		ItemText(0, row.id, values, nulls);
		ItemText(1, row.resource, values, nulls);
		values[2] = number_value(row.is.number, &nulls[2]);
		values[3] = DirectFunctionCall1(jsonb_in,
										CStringGetDatum(Utf8ToServer(row.payload, strlen(row.payload))));
		nulls[3] = false;
		ItemTime(4, row.is.pushed_at, values, nulls);
		ItemTime(5, row.is.due, values, nulls);
		values[6] = Int32GetDatum((int32) row.is.attempts);
		nulls[6] = false;
		ItemText(7, row.error, values, nulls);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
