/*-------------------------------------------------------------------------
 *
 * worker_counters.c
 *	  Counts calls and replies by operation, for ddb_operations.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "shared/segment.h"
#include "worker/worker.h"

void
WorkerCountRequest(dynamo_op op)
{
	pg_atomic_fetch_add_u64(&segment->ops[op].requests, 1);
}

void
WorkerCountRepeat(dynamo_op op)
{
	pg_atomic_fetch_add_u64(&segment->ops[op].retries, 1);
}

void
WorkerCountFailure(dynamo_op op)
{
	pg_atomic_fetch_add_u64(&segment->ops[op].errors, 1);
}

static int
bucket_of(int64 elapsed_us)
{
	int			bucket = 0;

	while (bucket < SEGMENT_BUCKETS - 1 && elapsed_us >= (INT64CONST(500) << bucket))
		bucket++;
	return bucket;
}

/* A batch counts as one error, and as one throttle, whichever statements failed. */
void
WorkerCountReply(dynamo_op op, const dynamo_reply *reply, const http_reply *http)
{
	OpCounters *ops = &segment->ops[op];
	bool		throttled = reply->status == DYNAMO_THROTTLED;
	bool		error = reply->status != DYNAMO_OK &&
		reply->status != DYNAMO_CONDITION_FAILED;

	for (int i = 0; i < reply->count && reply->status == DYNAMO_OK; i++)
	{
		dynamo_status status = reply->results[i].status;

		throttled |= status == DYNAMO_THROTTLED;
		error |= status != DYNAMO_OK && status != DYNAMO_CONDITION_FAILED;
	}
	if (error)
		pg_atomic_fetch_add_u64(&ops->errors, 1);
	if (throttled)
		pg_atomic_fetch_add_u64(&ops->throttles, 1);
	if (http->outcome != HTTP_REPLIED)
		return;
	pg_atomic_fetch_add_u64(&ops->latency_count, 1);
	pg_atomic_fetch_add_u64(&ops->latency_us, http->elapsed_us);
	pg_atomic_fetch_add_u64(&ops->histogram[bucket_of(http->elapsed_us)], 1);
	pg_atomic_fetch_add_u64(&ops->consumed_milliunits,
							(uint64) llround(reply->consumed * 1000));
}
