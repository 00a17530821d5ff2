/*-------------------------------------------------------------------------
 *
 * worker_counters.c
 *	  Counts replies by operation, for ddb_operations.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "shared/segment.h"
#include "worker/worker.h"

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
		(void) shared_add(&ops->errors, 1);
	if (throttled)
		(void) shared_add(&ops->throttles, 1);
	if (http->outcome != HTTP_REPLIED)
		return;
	(void) shared_add(&ops->latency_count, 1);
	(void) shared_add(&ops->latency_us, http->elapsed_us);
	(void) shared_add(&ops->histogram[bucket_of(http->elapsed_us)], 1);
	(void) shared_add(&ops->consumed_milliunits, (uint64) llround(reply->consumed * 1000));
}
