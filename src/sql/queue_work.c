/*-------------------------------------------------------------------------
 *
 * queue_work.c
 *	  SQL functions that push, claim, complete and fail jobs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "sql/sql.h"

#define DEDUP_MOST_MS YEAR_MS
#define RETRY_MOST_MS (30 * DAY_MS)
#define WAIT_MOST_MS YEAR_MS
#define ATTEMPTS_MOST 1000000

PG_FUNCTION_INFO_V1(ddb_queue_push);
Datum
ddb_queue_push(PG_FUNCTION_ARGS)
{
	QueuePush	job = {0};
	QueueName	name = QueueArgument(fcinfo);

	ArgumentRequire(fcinfo, 2, "payload");
	job.payload = QueueCheckPayload(PG_GETARG_DATUM(2));
	if (!PG_ARGISNULL(3))
		job.id = QueueCheckId(PG_GETARG_DATUM(3));
	QueueJobPush(name.queue, name.resource, &job, 1,
				 QueueArgumentTime(fcinfo, 4, "dedup", 1000, DEDUP_MOST_MS, DAY_MS));
	PG_RETURN_INT64(job.number);
}

/* Reads an array's elements, and returns how many they are; 0 if the argument is NULL. */
static int
elements(FunctionCallInfo fcinfo, int number, Datum **values, bool **nulls)
{
	ArrayType  *array;
	int			count;

	if (PG_ARGISNULL(number))
		return 0;
	array = PG_GETARG_ARRAYTYPE_P(number);
	deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_INT, values, nulls, &count);
	return count;
}

/* Raises if an id comes twice: DynamoDB refuses a transaction that writes one item twice. */
static void
check_ids(const QueuePush *jobs, int count)
{
	for (int i = 0; i < count; i++)
	{
		for (int j = 0; jobs[i].id != NULL && j < i; j++)
		{
			if (jobs[j].id != NULL && strcmp(jobs[i].id, jobs[j].id) == 0)
				ErrorsArgument(errmsg("argument \"%s\" must not contain an id twice", "ids"));
		}
	}
}

PG_FUNCTION_INFO_V1(ddb_queue_push_all);

/* (queue, resource, payloads, ids, dedup): the numbers, in the order of the payloads */
Datum
ddb_queue_push_all(PG_FUNCTION_ARGS)
{
	QueuePush  *jobs;
	int64	   *numbers;
	QueueName	name = QueueArgument(fcinfo);
	Datum	   *payloads;
	Datum	   *ids;
	bool	   *no_payloads;
	bool	   *no_ids;
	int			count = elements(fcinfo, 2, &payloads, &no_payloads);
	int			id_count = elements(fcinfo, 3, &ids, &no_ids);
	Size		bytes = 0;

	if (count < 1 || count > QUEUE_PUSH_MAX)
		ErrorsArgument(errmsg("argument \"%s\" must have 1 to %d elements",
							  "payloads", QUEUE_PUSH_MAX));
	if (id_count != 0 && id_count != count)
		ErrorsArgument(errmsg("argument \"%s\" must have as many elements as \"%s\"",
							  "ids", "payloads"));
	jobs = palloc0(count * sizeof(QueuePush));
	for (int i = 0; i < count; i++)
	{
		if (no_payloads[i])
			ErrorsArgument(errmsg("argument \"%s\" must not contain nulls", "payloads"));
		jobs[i].payload = QueueCheckPayload(payloads[i]);
		if (id_count > 0 && !no_ids[i])
			jobs[i].id = QueueCheckId(ids[i]);
		bytes += strlen(jobs[i].payload);
	}
	if (bytes > QUEUE_PUSH_BYTES)
		ErrorsArgument(errmsg("the elements of argument \"%s\" must not have more than %d bytes "
							  "together", "payloads", QUEUE_PUSH_BYTES));
	check_ids(jobs, count);

	QueueJobPush(name.queue, name.resource, jobs, count,
				 QueueArgumentTime(fcinfo, 4, "dedup", 1000, DEDUP_MOST_MS, DAY_MS));
	numbers = palloc(count * sizeof(int64));
	for (int i = 0; i < count; i++)
		numbers[i] = jobs[i].number;
	return RowNumbers(numbers, count);
}

/* Reads the argument "resources" as an array that ends with NULL.  Returns NULL: any resource. */
static char **
read_resources(FunctionCallInfo fcinfo, int number, const char *queue)
{
	Datum	   *values;
	bool	   *nulls;
	int			count;
	char	  **resources;

	if (PG_ARGISNULL(number))
		return NULL;
	count = elements(fcinfo, number, &values, &nulls);
	if (count == 0)
		ErrorsArgument(errmsg("argument \"%s\" must not be empty", "resources"));
	resources = palloc0((count + 1) * sizeof(char *));
	for (int i = 0; i < count; i++)
	{
		if (nulls[i])
			ErrorsArgument(errmsg("argument \"%s\" must not contain nulls", "resources"));
		resources[i] = ArgumentCheckLength("resource", ArgumentUtf8(values[i]),
										   QUEUE_RESOURCE_MAX);
		(void) QueueNameOf(queue, resources[i]);	/* may the session use it? */
	}
	return resources;
}

PG_FUNCTION_INFO_V1(ddb_queue_claim);

/* (queue, wait, lease, resources, max_attempts): a row, or none */
Datum
ddb_queue_claim(PG_FUNCTION_ARGS)
{
	QueueJob	job;
	QueueSearch search = {.job = &job};
	Row			row;

	search.queue = PG_ARGISNULL(3) ? QueueArgumentQueue(fcinfo).queue :
		QueueArgumentName(fcinfo);
	search.wait_ms = QueueArgumentTime(fcinfo, 1, "wait", 0, WAIT_MOST_MS, WAIT_MOST_MS);
	search.lease_ms = ArgumentLease(fcinfo, 2, ddblock_lease_duration);
	search.resources = read_resources(fcinfo, 3, search.queue);
	search.max_attempts = ArgumentCount(fcinfo, 4, "max_attempts", ATTEMPTS_MOST, NULL);
	/* A snapshot from before the claim may not show the last job's work. */
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("ddb_queue_claim() must run at isolation level READ COMMITTED"),
				 errdetail("The transaction's snapshot is older than the claim, and may not show what "
						   "earlier jobs of the resource did."),
				 errhint("Claim the job first, in a transaction of its own.")));
	InitMaterializedSRF(fcinfo, 0);
	if (!QueueSearchJob(&search))
		return (Datum) 0;

	QueueJobToServer(search.queue, &job);
	RowStart(&row, fcinfo);
	RowSet(&row, "resource", CStringGetTextDatum(job.resource));
	RowSet(&row, "number", Int64GetDatum(job.number));
	RowSet(&row, "payload", DirectFunctionCall1(jsonb_in, CStringGetDatum(job.payload)));
	if (job.id[0] != '\0')
		RowSet(&row, "id", CStringGetTextDatum(job.id));
	RowSet(&row, "attempt", Int32GetDatum((int32) job.attempts));
	RowEpoch(&row, "pushed_at", job.pushed_at);
	RowSet(&row, "token", Int64GetDatum(job.token));
	RowPut(&row, fcinfo);
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(ddb_queue_await);

/* (queue, wait, resources): a procedure */
Datum
ddb_queue_await(PG_FUNCTION_ARGS)
{
	QueueSearch search = {0};

	search.queue = PG_ARGISNULL(2) ? QueueArgumentQueue(fcinfo).queue :
		QueueArgumentName(fcinfo);
	search.wait_ms = QueueArgumentTime(fcinfo, 1, "wait", 0, WAIT_MOST_MS, WAIT_MOST_MS);
	search.resources = read_resources(fcinfo, 2, search.queue);
	AwaitWithoutSnapshot(fcinfo, "ddb_queue_claim");
	(void) QueueSearchJob(&search);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(ddb_queue_complete);

/* (queue, resource, number) */
Datum
ddb_queue_complete(PG_FUNCTION_ARGS)
{
	QueueName	name = QueueArgument(fcinfo);
	int64		number = ArgumentPositive(fcinfo, 2, "number");

	QueueClaimComplete(QueueOwnRequire(&name, number), &name);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(ddb_queue_fail);

/* (queue, resource, number, error, retry_in) */
Datum
ddb_queue_fail(PG_FUNCTION_ARGS)
{
	QueueClaim *claim;
	QueueName	name = QueueArgument(fcinfo);
	int64		number = ArgumentPositive(fcinfo, 2, "number");
	char	   *error = QueueArgumentError(fcinfo, 3);
	int64		retry_ms = QueueArgumentTime(fcinfo, 4, "retry_in", 0, RETRY_MOST_MS, queue_backoff_ms(0));

	claim = QueueOwnRequire(&name, number);

	/*
	 * The call changes the resource's place in the index.  If its outcome stays unknown and the
	 * session completes the job after all, the completion must not keep that place.
	 */
	claim->is.stays_until = 0;
	QueueJobFail(&name, number, claim->is.token, error, retry_ms);
	SegmentCount(EVENT_JOB_FAILED);
	QueueOwnRelease(claim, &name.lock);
	if (retry_ms == 0)
		QueueHintTell(name.queue, name.resource, QUEUE_ATTEMPTS_UNKNOWN);
	PG_RETURN_VOID();
}
