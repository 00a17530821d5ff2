/*-------------------------------------------------------------------------
 *
 * worker_call.c
 *	  Calls to DynamoDB: signed, posted, and their replies brought back.
 *
 * If DynamoDB refuses a call because of its credentials or its signing time, the worker signs the
 * call anew, and posts it once more before its caller gets the error: credentials are looked up
 * again, and the refusal's Date header has brought the time.
 *
 * A call waits while credentials are fetched, but no longer than its time-out, in two cases: there
 * are no credentials, or DynamoDB has refused this call for its credentials (as it refuses expired
 * ones).  If the source of credentials fails for a moment, the call fails as if DynamoDB were out
 * of reach, so its caller repeats it.
 *
 * The HTTP pool reports replies while WorkerRunCalls() runs it, so the worker handles a reply at
 * once.  But a call that cannot even be posted fails while WorkerPost() runs, which must not call
 * the done function.  So the call goes into the list "failed", which WorkerRunCalls() works off.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/memutils.h"

#include "shared/version.h"
#include "worker/worker.h"

/* A connection that was idle for longer is not used again. */
#define IDLE_CLOSE_S 20
#define KEEP_WARM_US INT64CONST(15000000)

#define HEADERS_MAX 7

typedef struct Call
{
	WorkerCall	asked;
	bool		again;			/* posted a second time, newly signed */
	bool		refused;		/* DynamoDB has refused it for its credentials */
	dynamo_reply reply;
	dlist_node	node;			/* in the list failed or waiting, if it was not posted */
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
				(errmsg("could not create an epoll instance, or its timer: %m")));
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

/*
 * Counts the reply for ddb_operations.  A batch counts as one error at most, and as one throttle
 * at most, however many of its statements have failed.
 */
static void
count_reply(dynamo_op op, const dynamo_reply *reply, const http_reply *http)
{
	OpCounters *ops = &segment->ops[op];
	bool		throttled = reply->status == DYNAMO_THROTTLED;
	bool		error = dynamo_is_failure(reply->status);
	int			bucket = 0;

	for (int i = 0; i < reply->count && reply->status == DYNAMO_OK; i++)
	{
		dynamo_status status = reply->results[i].status;

		throttled |= status == DYNAMO_THROTTLED;
		error |= dynamo_is_failure(status);
	}
	if (error)
		(void) shared_add(&ops->errors, 1);
	if (throttled)
		(void) shared_add(&ops->throttles, 1);
	if (http->outcome != HTTP_REPLIED)
		return;
	(void) shared_add(&ops->latency_count, 1);
	(void) shared_add(&ops->latency_us, http->elapsed_us);
	while (bucket < SEGMENT_BUCKETS - 1 && http->elapsed_us >= (INT64CONST(500) << bucket))
		bucket++;
	(void) shared_add(&ops->histogram[bucket], 1);
	(void) shared_add(&ops->consumed_milliunits, (uint64) llround(reply->consumed * 1000));
}

static void
conclude(Call *call)
{
	WorkerLogThrottling(call->asked.op, &call->reply);
	if (!call->asked.quiet)
		WorkerLogTrouble(&call->reply);
	/* Trouble with the queues' table is not published: a session learns of it by its answer. */
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

/* The HTTP pool calls this when a call has ended, outside of curl's own callbacks. */
static void
replied(void *arg, const http_reply *reply)
{
	Call	   *call = arg;
	dynamo_status status;

	if (reply->outcome == HTTP_REPLIED)
	{
		const dynamo_headers headers = {reply->crc32, reply->error_type};

		dynamo_read(&call->reply, WorkerTable(), call->asked.op, call->asked.count,
					reply->status, &headers, reply->body, reply->len);
		call->reply.date_s = reply->date_s;
		call->reply.wall_us = WorkerWallClock();
		/* A reply that cannot be read may not be DynamoDB's, so its Date does not count. */
		if (call->reply.status != DYNAMO_UNKNOWN && call->reply.status != DYNAMO_MALFORMED)
			WorkerClockReply(reply->date_s, call->asked.posted, SegmentNow(),
							 call->reply.status == DYNAMO_CLOCK_SKEW);
	}
	else
	{
		char		text[DYNAMO_MESSAGE_SIZE];

		snprintf(text, sizeof(text), "%s: %s", reply->phase, reply->error);
		dynamo_read_failure(&call->reply, call->asked.count,
							status_of_failure(reply->outcome), text);
	}
	count_reply(call->asked.op, &call->reply, reply);

	status = call->reply.status;
	if (!call->again &&
		(status == DYNAMO_CREDENTIALS || (status == DYNAMO_CLOCK_SKEW && !call->asked.dated)))
	{
		/* post() signs the call anew. */
		call->again = true;
		call->refused = status == DYNAMO_CREDENTIALS;
		if (call->refused && WorkerCredentials() != NULL)
			WorkerWantCredentials();
		dynamo_reply_free(&call->reply);
		post(call);
	}
	else
		conclude(call);
}

/*
 * Signs the call with the credentials, which must be there, and with DynamoDB's time, and posts
 * it.  False: out of memory.
 */
static bool
sign_and_post(Call *call)
{
	static sigv4_key signing_key;
	const WorkerCall *asked = &call->asked;
	const aws_credentials *credentials = WorkerCredentials();
	size_t		len = strlen(asked->body);
	char		date[SIGV4_DATE_SIZE];
	char		authorization[1024];
	static char lines[HEADERS_MAX - 1][sizeof(credentials->session_token) + 64];
	const char *headers[HEADERS_MAX];
	sigv4_header names[] = {
		{"content-type", "application/x-amz-json-1.0"},
		{"host", segment->place.host},
		{"x-amz-date", date},
		{"x-amz-target", dynamo_target(asked->op)},
		{"x-amz-security-token", credentials->session_token},
	};
	int			count = credentials->session_token[0] != '\0' ? 5 : 4;
	sigv4_request request = {
		.method = "POST",
		.path = "/",
		.query = "",
		.headers = names,
		.header_count = count,
		.body = asked->body,
		.body_len = len,
		.region = segment->place.region,
		.service = "dynamodb",
		.access_key_id = credentials->access_key_id,
		.secret_access_key = credentials->secret_access_key,
		.amz_date = date,
	};
	bool		posted;

	sigv4_amz_date(WorkerEpochLikely(SegmentNow()) / USECS_PER_SEC, date);
	if (!sigv4_sign(&request, &signing_key, authorization, sizeof(authorization)))
		return false;
	for (int i = 0; i < count; i++)
	{
		snprintf(lines[i], sizeof(lines[i]), "%s: %s", names[i].name, names[i].value);
		headers[i] = lines[i];
	}
	snprintf(lines[count], sizeof(lines[count]), "Authorization: %s", authorization);
	headers[count] = lines[count];
	headers[count + 1] = "User-Agent: ddblock/" DDBLOCK_VERSION;
	posted = http_pool_post(worker_pool, headers, count + 2, asked->body, len,
							Max(asked->timeout_us / 1000, 1), replied, call);
	explicit_bzero(lines, sizeof(lines));	/* the pool has a copy */
	return posted;
}

static void
fail(Call *call, dynamo_status status, const char *problem)
{
	shared_add(&segment->ops[call->asked.op].errors, 1);
	dynamo_read_failure(&call->reply, call->asked.count, status, problem);
	dlist_push_tail(&failed, &call->node);
	SetLatch(MyLatch);			/* WorkerRunCalls() may have run in this turn */
}

static void
post(Call *call)
{
	last_call = call->asked.posted = SegmentNow();
	if (WorkerCredentials() == NULL)
		WorkerWantCredentials();
	if (WorkerCredentialsComing() && (call->refused || WorkerCredentials() == NULL))
		dlist_push_tail(&waiting, &call->node);
	else if ((call->refused || WorkerCredentials() == NULL) && WorkerCredentialsMayCome())
		fail(call, DYNAMO_UNREACHABLE,
			 psprintf("credentials are still being fetched. %s", WorkerCredentialsWords()));
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
WorkerPostRead(const char *name, WorkerDone done, uint64 id)
{
	dynamo_write read = {.op = DYNAMO_READ,.name = name,.name_len = strlen(name)};
	WorkerCall	call = {.op = DYNAMO_READ,.done = done,.id = id};

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
	WorkerPostRead(WORKER_UNWRITTEN, NULL, 0);
	return now + KEEP_WARM_US;
}

void
WorkerRunCalls(void)
{
	dlist_mutable_iter i;

	reactor_run(the_reactor);

	/* The end of a fetch of credentials, with or without any, posts the calls that wait for it. */
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
	while (!dlist_is_empty(&failed))
		conclude(dlist_container(Call, node, dlist_pop_head_node(&failed)));
}
