/*-------------------------------------------------------------------------
 *
 * worker_call.c
 *	  Calls to DynamoDB: signed, posted, and their replies brought back.
 *
 * A call that DynamoDB refuses because of its credentials or its signing time
 * is signed anew and posted once more before its caller gets the error:
 * credentials are looked up again, and the refusal's Date header has brought
 * the time.
 *
 * A call that has no credentials, or none that DynamoDB accepts, waits while some
 * are fetched, for no longer than its time-out.
 *
 * The HTTP pool reports replies from its own turn, so they are handled at once.
 * A call that could not even be posted goes to a list that WorkerRunCalls()
 * works off.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/memutils.h"

#include "net/net.h"
#include "shared/segment.h"
#include "shared/settings.h"
#include "worker/worker.h"

/* A connection that was idle for longer is not used again. */
#define IDLE_CLOSE_S 20
#define KEEP_WARM_US INT64CONST(15000000)

/* The item that is read, and never written. */
#define KEEP_WARM_NAME "ddblock/keep-warm"

typedef struct Call
{
	WorkerCall	asked;
	bool		again;			/* posted a second time, newly signed */
	bool		refused;		/* ... because of its credentials */
	dynamo_reply reply;
	dlist_node	node;			/* in one of the lists of calls that were not posted */
} Call;

http_pool  *worker_pool;

static reactor *the_reactor;
static WorkerDone seen;
static int64 last_call;
static dlist_head failed = DLIST_STATIC_INIT(failed);
static dlist_head waiting = DLIST_STATIC_INIT(waiting); /* for credentials */

static void post(Call *call);

void
WorkerCallInit(WorkerDone seen_fn)
{
	seen = seen_fn;
	the_reactor = reactor_new();
	if (the_reactor == NULL)
		ereport(FATAL,
				(errmsg("could not create an epoll instance: %m")));
	worker_pool = WorkerNewPool(the_reactor, (http_pool_config)
								{
									.url = segment->place.url,
									.max_connections = ddblock_max_connections,
									.idle_close_s = IDLE_CLOSE_S,
									.reply_max = DYNAMO_REPLY_MAX,
								});
}

int
WorkerCallFd(void)
{
	return reactor_fd(the_reactor);
}

static dynamo_status
status_of_failure(http_outcome outcome)
{
	switch (outcome)
	{
		case HTTP_NOT_SENT:
			return DYNAMO_UNREACHABLE;
		case HTTP_UNTRUSTED:
			return DYNAMO_UNTRUSTED;
		case HTTP_FOREIGN:
			return DYNAMO_WRONG_SERVICE;
		case HTTP_REPLIED:
		case HTTP_UNKNOWN:
			break;
	}
	return DYNAMO_UNKNOWN;
}

static bool
wants_new_signature(const Call *call)
{
	return !call->again &&
		(call->reply.status == DYNAMO_CREDENTIALS ||
		 (call->reply.status == DYNAMO_CLOCK_SKEW && !call->asked.dated));
}

static void
read_reply(Call *call, const http_reply *reply)
{
	const char *crc = reply->crc32[0] ? reply->crc32 : NULL;

	dynamo_read(&call->reply, WorkerTable(), call->asked.op, call->asked.count, reply->status,
				crc, reply->body, reply->len);
	call->reply.date_s = reply->date_s;
	call->reply.wall_us = WorkerWallClock();
}

/* A reply that cannot be read may not be DynamoDB's. */
static void
read_date(const Call *call, const http_reply *reply)
{
	if (call->reply.status != DYNAMO_UNKNOWN && call->reply.status != DYNAMO_MALFORMED)
		WorkerClockReply(reply->date_s, call->asked.posted, SegmentNow());
}

static int
bucket_of(int64 elapsed_us)
{
	int			bucket = 0;

	while (bucket < SEGMENT_BUCKETS - 1 && elapsed_us >= (INT64CONST(500) << bucket))
		bucket++;
	return bucket;
}

/*
 * For ddb_operations.  A batch counts as one error, and as one throttle, whichever statements
 * failed.
 */
static void
count_reply(dynamo_op op, const dynamo_reply *reply, const http_reply *http)
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

static void
conclude(Call *call)
{
	WorkerLogThrottling(call->asked.op, &call->reply);
	if (!call->asked.quiet)
		WorkerLogTrouble(&call->reply);
	/* Who calls the queues' table learns of its trouble by the answer. */
	if (!dynamo_is_queue(call->asked.op))
		WorkerPublishTrouble(&call->reply);
	WorkerLookForOthers(&call->reply);
	seen(&call->asked, &call->reply);
	if (call->asked.done != NULL)
		call->asked.done(&call->asked, &call->reply);
	dynamo_reply_free(&call->reply);
	free(call->asked.body);
	if (call->asked.note != NULL)
		pfree(call->asked.note);
	pfree(call);
}

/* Called by the HTTP pool, outside of curl's own callbacks. */
static void
replied(void *arg, const http_reply *reply)
{
	Call	   *call = arg;
	char		text[DYNAMO_MESSAGE_SIZE];

	if (reply->outcome == HTTP_REPLIED)
	{
		read_reply(call, reply);
		read_date(call, reply);
	}
	else
	{
		snprintf(text, sizeof(text), "%s: %s", reply->phase, reply->error);
		dynamo_read_failure(&call->reply, call->asked.count,
							status_of_failure(reply->outcome), text);
	}
	count_reply(call->asked.op, &call->reply, reply);

	if (!wants_new_signature(call))
	{
		conclude(call);
		return;
	}
	call->again = true;
	call->refused = call->reply.status == DYNAMO_CREDENTIALS;
	if (call->refused && WorkerCredentials() != NULL)
		WorkerWantCredentials();
	dynamo_reply_free(&call->reply);
	post(call);
}

static bool
sign_and_post(Call *call)
{
	const WorkerCall *asked = &call->asked;
	const char *headers[WORKER_HEADERS_MAX];
	int			count = WorkerSign(asked->op, asked->body, headers);

	return count > 0 &&
		http_pool_post(worker_pool, headers, count, asked->body, strlen(asked->body),
					   Max(asked->timeout_us / 1000, 1), replied, call);
}

static void
fail(Call *call, dynamo_status status, const char *problem)
{
	shared_add(&segment->ops[call->asked.op].errors, 1);
	dynamo_read_failure(&call->reply, call->asked.count, status, problem);
	dlist_push_tail(&failed, &call->node);
	SetLatch(MyLatch);			/* WorkerRunCalls() may be over in this turn */
}

static void
post(Call *call)
{
	last_call = call->asked.posted = SegmentNow();
	if (WorkerCredentials() == NULL)
		WorkerWantCredentials();
	if (WorkerCredentialsComing() && (call->refused || WorkerCredentials() == NULL))
		dlist_push_tail(&waiting, &call->node);
	else if (WorkerCredentials() == NULL)
		fail(call, DYNAMO_CREDENTIALS, "no source has credentials");
	else if (call->asked.body == NULL || !sign_and_post(call))
		fail(call, DYNAMO_UNREACHABLE, "out of memory");
	else
		shared_add(&segment->ops[call->asked.op].requests, 1);
}

void
WorkerPost(const WorkerCall *asked)
{
	Call	   *call = MemoryContextAllocZero(TopMemoryContext, sizeof(Call));

	call->asked = *asked;
	call->asked.count = Max(asked->count, 1);
	if (asked->timeout_us == 0)
		call->asked.timeout_us = (int64) ddblock_request_timeout * 1000;
	if (asked->repeat)
		shared_add(&segment->ops[asked->op].retries, 1);
	post(call);
}

void
WorkerPostRead(WorkerDone done)
{
	dynamo_write read = {.op = DYNAMO_READ,.name = KEEP_WARM_NAME,
	.name_len = strlen(KEEP_WARM_NAME)};
	WorkerCall	call = {.op = DYNAMO_READ,.done = done};

	call.body = dynamo_build(WorkerTable(), &read);
	WorkerPost(&call);
}

int64
WorkerKeepWarm(int64 now)
{
	if (!ddblock_keep_warm)
		return PG_INT64_MAX;
	if (last_call != 0 && now - last_call < KEEP_WARM_US)
		return last_call + KEEP_WARM_US;
	WorkerPostRead(NULL);
	return now + KEEP_WARM_US;
}

/* Posts them when the credentials are there, or will not come. */
static void
post_waiting(void)
{
	dlist_mutable_iter i;

	dlist_foreach_modify(i, &waiting)
	{
		Call	   *call = dlist_container(Call, node, i.cur);
		int64		waited = SegmentNow() - call->asked.posted;
		bool		too_late = waited >= call->asked.timeout_us;

		if (WorkerCredentialsComing() && !too_late)
			continue;
		dlist_delete(i.cur);
		if (too_late)
			fail(call, DYNAMO_UNREACHABLE, "credentials are still being fetched");
		else
		{
			call->asked.timeout_us -= waited;
			post(call);
		}
	}
}

void
WorkerRunCalls(void)
{
	reactor_run(the_reactor);
	post_waiting();
	while (!dlist_is_empty(&failed))
		conclude(dlist_container(Call, node, dlist_pop_head_node(&failed)));
}
