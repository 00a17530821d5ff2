/*-------------------------------------------------------------------------
 *
 * worker_call.c
 *	  Calls to DynamoDB: built, signed, posted, counted, and their replies
 *	  brought back to whoever asked.
 *
 * A call that DynamoDB refuses because of its credentials or its signing time
 * is signed anew and posted once more before anybody hears of it: credentials
 * are looked up again, and the refusal's Date header has told us the time.
 *
 * The HTTP pool reports replies from its own turn, never while it is given
 * something to post, so they are handled at once.  What could not even be
 * posted goes on a list and is handled from there: the lock manager must not
 * be entered while it is sending.  What lives longer than one function is
 * malloc'd, since rooms without PostgreSQL free it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>
#include <time.h>

#include "miscadmin.h"
#include "storage/latch.h"

#include "aws/epoch_clock.h"
#include "aws/sigv4.h"
#include "net/http_pool.h"
#include "shared/settings.h"
#include "shared/utf8.h"
#include "worker/worker.h"

#define SERVICE "dynamodb"

/* A connection is not reused after so long, and not left idle for longer. */
#define IDLE_CLOSE_S 20
#define KEEP_WARM_US INT64CONST(15000000)

/* What the machine's steady clock may be off by: as far as NTP may slew it. */
#define DRIFT_PPM 500

/* Between calls that ask for the time in vain. */
#define CLOCK_RETRY_US USECS_PER_SEC

/* The item that is read, and never written, to keep a connection warm. */
#define KEEP_WARM_NAME "ddblock/keep-warm"

typedef enum CallFor
{
	FOR_LOCKMGR,
	FOR_TABLE,					/* a session, past the lock manager */
	FOR_CHECK,					/* of the table: worker_table.c */
	FOR_JOURNAL,				/* a lock of a dead incarnation */
	FOR_WARMTH
} CallFor;

typedef struct Call
{
	CallFor		purpose;
	uint64		id;				/* FOR_LOCKMGR, FOR_JOURNAL */
	lockmgr_session session;	/* FOR_TABLE */
	uint64		seq;			/* FOR_TABLE */
	dynamo_op	op;
	int			count;
	int			timeout_ms;
	bool		again;			/* posted a second time, newly signed */
	int64		posted;
	char	   *body;			/* malloc'd */
	dynamo_reply reply;
	struct Call *next;			/* among the finished ones */
} Call;

static reactor *the_reactor;
static http_pool *pool;
static dynamo_table table;
static sigv4_key signing_key;
static bool clock_asked = false;	/* a reply is to come whose Date counts */
static int64 next_clock_call = 0;
static bool clock_was_known;
static int64 last_call;
static bool in_trouble;			/* as last said in the log */
static Call *finished;
static Call **finished_end = &finished;

static void make_pool(void);
static char *build_scan(const MailboxRequest *request);
static char *build_operators_write(const MailboxRequest *request);
static void post(Call *call);
static bool sign_and_post(Call *call);
static dynamo_status status_of_failure(http_outcome outcome);
static void done(void *arg, const http_reply *reply);
static void read_nothing(void);
static void read_date(const Call *call, const http_reply *reply, int64 now);
static void read_reply(Call *call, const http_reply *reply);
static void conclude(Call *call);
static void finish(Call *call);
static void count_reply(const Call *call, const http_reply *reply);
static void log_trouble(const Call *call);
static void publish_trouble(const dynamo_reply *reply);
static void look_for_others(const dynamo_reply *reply);
static void stop_ttl(const dynamo_item *item);
static void deliver(Call *call);

static void
make_pool(void)
{
	http_pool_config config = {
		.url = segment->place.url,
		.ca_file = WorkerCaFile(),
		.max_connections = ddblock_max_connections,
		.connect_timeout_ms = ddblock_connect_timeout,
		.idle_close_s = IDLE_CLOSE_S,
		.reply_max = DYNAMO_REPLY_MAX,
	};
	char		error[256];

	pool = http_pool_new(the_reactor, &config, error, sizeof(error));
	if (pool == NULL)
		ereport(FATAL,
				(errmsg("could not set up HTTP connections: %s", error)));
}

static void
read_table_settings(void)
{
	table.name = ddblock_table;
	table.partition_key = ddblock_partition_key;
	table.sort_key = ddblock_sort_key[0] ? ddblock_sort_key : NULL;
	table.sort_value = ddblock_sort_key_value;
	table.released_ttl_s = ddblock_released_item_ttl;
}

/* For the journal: what does not change while the server runs. */
void
WorkerCallTable(journal_table *where)
{
	memset(where, 0, sizeof(*where));
	strlcpy(where->url, segment->place.url, sizeof(where->url));
	strlcpy(where->region, segment->place.region, sizeof(where->region));
	strlcpy(where->name, table.name, sizeof(where->name));
	strlcpy(where->partition_key, table.partition_key, sizeof(where->partition_key));
	if (table.sort_key == NULL)
		return;
	strlcpy(where->sort_key, table.sort_key, sizeof(where->sort_key));
	strlcpy(where->sort_value, table.sort_value, sizeof(where->sort_value));
}

static int64
wall_clock(void)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return (int64) wall.tv_sec * USECS_PER_SEC + wall.tv_nsec / 1000;
}

/* Before the lock manager is made. */
void
WorkerCallInit(void)
{
	/* What the worker before this one has learnt is better than any wall clock. */
	if (!segment->clock.known)
		epoch_clock_start(&segment->clock, wall_clock() - SegmentNow(), DRIFT_PPM);
	clock_was_known = segment->clock.known;
	the_reactor = reactor_new();
	if (the_reactor == NULL)
		ereport(FATAL,
				(errmsg("could not create an epoll instance: %m")));
	read_table_settings();
	make_pool();
}

/* The configuration was reloaded. */
void
WorkerCallReload(void)
{
	read_table_settings();
	WorkerFindCredentials();
	WorkerCheckExposure();
	if (!http_pool_reconfigure(pool, WorkerCaFile(), ddblock_connect_timeout))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
}

/* What was sent before is to be answered, or repeated, within that time, too. */
void
WorkerCallHurry(int64 timeout_us)
{
	http_pool_hurry(pool, timeout_us / 1000);
}

int
WorkerCallFd(void)
{
	return reactor_fd(the_reactor);
}

bool
WorkerClockIsKnown(void)
{
	return segment->clock.known;
}

/* DynamoDB's clock, or up to some milliseconds more: for tokens, above all. */
int64
WorkerEpochHigh(int64 now)
{
	return now + epoch_clock_high(&segment->clock, now);
}

/* The same, or less. */
int64
WorkerEpochLow(int64 now)
{
	return now + epoch_clock_low(&segment->clock, now);
}

/* Before what happens now leads to a token. */
void
WorkerSetClock(int64 now)
{
	lockmgr_set_clock(worker_lockmgr, epoch_clock_high(&segment->clock, now));
}

/*
 * Asks until DynamoDB's clock is known, unless the table check is about to
 * tell.  Returns the moment at which it wants to be called again.
 */
int64
WorkerClockRun(int64 now)
{
	if (WorkerClockIsKnown())
	{
		if (!clock_was_known)
			WorkerRetryParked();
		clock_was_known = true;
		return PG_INT64_MAX;
	}
	if (clock_asked || WorkerTableIsAsked())
		return PG_INT64_MAX;
	if (now < next_clock_call)
		return next_clock_call;
	clock_asked = true;
	read_nothing();
	return PG_INT64_MAX;
}

/* Whatever came of it, its Date has been read, if it had one. */
static void
clock_answered(const dynamo_reply *reply)
{
	clock_asked = false;
	if (WorkerClockIsKnown())
		return;
	next_clock_call = SegmentNow();
	if (reply->status != DYNAMO_OK)
		next_clock_call += CLOCK_RETRY_US;
	WorkerClockUnknown(reply);
}

static Call *
new_call(CallFor purpose, dynamo_op op, int count, int64 timeout_us)
{
	Call	   *call = calloc(1, sizeof(Call));

	if (call == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	call->purpose = purpose;
	call->op = op;
	call->count = count;
	call->timeout_ms = Max(timeout_us / 1000, 1);
	return call;
}

void
WorkerSend(void *arg, const lockmgr_call *wanted)
{
	Call	   *call = new_call(FOR_LOCKMGR, wanted->op, wanted->count,
								wanted->timeout_us);

	call->id = wanted->id;
	call->body = wanted->count > 1 ?
		dynamo_build_batch(&table, wanted->writes, wanted->count) :
		dynamo_build(&table, wanted->writes);
	if (wanted->repeat)
		pg_atomic_fetch_add_u64(&segment->ops[call->op].retries, 1);
	post(call);
}

void
WorkerSendRelease(int which, const dynamo_write *release, bool repeat)
{
	Call	   *call = new_call(FOR_JOURNAL, release->op, 1,
								(int64) ddblock_request_timeout * 1000);

	call->id = which;
	call->body = dynamo_build(&table, release);
	if (repeat)
		pg_atomic_fetch_add_u64(&segment->ops[call->op].retries, 1);
	post(call);
}

void
WorkerSendTable(lockmgr_session session, const MailboxRequest *request)
{
	Call	   *call = new_call(FOR_TABLE, request->op, 1,
								(int64) ddblock_request_timeout * 1000);

	call->session = session;
	call->seq = request->seq;
	if (request->op == DYNAMO_DESCRIBE_TABLE)
		call->body = dynamo_build_describe_table(&table);
	else if (request->op == DYNAMO_CREATE_TABLE)
		call->body = dynamo_build_create_table(&table, request->read_units,
											   request->write_units);
	else if (request->op == DYNAMO_UPDATE_TTL)
		call->body = dynamo_build_update_ttl(&table);
	else if (request->op == DYNAMO_SCAN)
		call->body = build_scan(request);
	else
		call->body = build_operators_write(request);
	if (request->repeat)
		pg_atomic_fetch_add_u64(&segment->ops[call->op].retries, 1);
	post(call);
}

void
WorkerSendTableCheck(void)
{
	Call	   *call = new_call(FOR_CHECK, DYNAMO_DESCRIBE_TABLE, 1,
								(int64) Min(ddblock_request_timeout,
											ddblock_retry_timeout) * 1000);

	call->body = dynamo_build_describe_table(&table);
	post(call);
}

static char *
build_scan(const MailboxRequest *request)
{
	const char *start = (const char *) request->data;
	dynamo_scan scan = {
		.prefix = request->name,
		.prefix_len = request->name_len,
		.released_only = request->released_only,
		.limit = request->limit,
	};

	if (request->has_data)
	{
		scan.after = start;
		scan.after_len = request->start_len;
		scan.after_sort = start + request->start_len;
		scan.after_sort_len = request->data_len - request->start_len;
	}
	return dynamo_build_scan(&table, &scan);
}

static char *
build_operators_write(const MailboxRequest *request)
{
	dynamo_write write = {
		.op = request->op,
		.name = request->name,
		.name_len = request->name_len,
		.version = request->version,
		.expected = request->expected,
		.now_s = WorkerEpochHigh(SegmentNow()) / USECS_PER_SEC,
	};

	return dynamo_build(&table, &write);
}

/*
 * Reads an item that nobody writes if no call was made for a while.  Returns
 * the moment at which it wants to be called again.
 */
int64
WorkerKeepWarm(int64 now)
{
	if (!ddblock_keep_warm)
		return PG_INT64_MAX;
	if (last_call != 0 && now - last_call < KEEP_WARM_US)
		return last_call + KEEP_WARM_US;
	read_nothing();
	return now + KEEP_WARM_US;
}

static void
read_nothing(void)
{
	dynamo_write read = {.op = DYNAMO_READ,.name = KEEP_WARM_NAME,
	.name_len = strlen(KEEP_WARM_NAME)};
	Call	   *call = new_call(FOR_WARMTH, DYNAMO_READ, 1,
								(int64) ddblock_request_timeout * 1000);

	call->body = dynamo_build(&table, &read);
	post(call);
}

/* Sends the call; whatever happens, it ends up among the finished ones. */
static void
post(Call *call)
{
	const char *problem = NULL;
	dynamo_status status = DYNAMO_UNREACHABLE;

	last_call = call->posted = SegmentNow();
	if (WorkerCredentials() == NULL)
		WorkerFindCredentials();
	if (WorkerCredentials() == NULL)
	{
		status = DYNAMO_CREDENTIALS;
		problem = "no credentials were found";
	}
	else if (call->body == NULL || !sign_and_post(call))
		problem = "out of memory";
	else
	{
		pg_atomic_fetch_add_u64(&segment->ops[call->op].requests, 1);
		return;
	}
	pg_atomic_fetch_add_u64(&segment->ops[call->op].errors, 1);
	dynamo_read_failure(&call->reply, call->count, status, problem);
	finish(call);
}

static bool
sign_and_post(Call *call)
{
	const aws_credentials *credentials = WorkerCredentials();
	char		date[SIGV4_DATE_SIZE];
	char		authorization[1024];
	static char lines[6][sizeof(credentials->session_token) + 64];
	const char *posted[7];
	size_t		len = strlen(call->body);
	bool		with_token = credentials->session_token[0] != '\0';
	sigv4_header headers[] = {
		{"content-type", "application/x-amz-json-1.0"},
		{"host", segment->place.host},
		{"x-amz-date", date},
		{"x-amz-target", dynamo_target(call->op)},
		{"x-amz-security-token", credentials->session_token},
	};
	int			signed_count = with_token ? 5 : 4;
	sigv4_request request = {
		.method = "POST",
		.path = "/",
		.query = "",
		.headers = headers,
		.header_count = signed_count,
		.body = call->body,
		.body_len = len,
		.region = segment->place.region,
		.service = SERVICE,
		.access_key_id = credentials->access_key_id,
		.secret_access_key = credentials->secret_access_key,
		.amz_date = date,
	};

	sigv4_amz_date((SegmentNow() + epoch_clock_likely(&segment->clock)) / USECS_PER_SEC, date);
	if (!sigv4_sign(&request, &signing_key, authorization, sizeof(authorization)))
		return false;
	for (int i = 0; i < signed_count; i++)
	{
		snprintf(lines[i], sizeof(lines[i]), "%s: %s", headers[i].name,
				 headers[i].value);
		posted[i] = lines[i];
	}
	snprintf(lines[5], sizeof(lines[5]), "Authorization: %s", authorization);
	posted[signed_count] = lines[5];
	posted[signed_count + 1] = "User-Agent: ddblock/" DDBLOCK_VERSION;
	return http_pool_post(pool, posted, signed_count + 2, call->body, len,
						  call->timeout_ms, done, call);
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

/* Called by the HTTP pool, outside of curl's own callbacks. */
static void
done(void *arg, const http_reply *reply)
{
	Call	   *call = arg;
	int64		now = SegmentNow();
	char		text[DYNAMO_MESSAGE_SIZE];

	if (reply->outcome == HTTP_REPLIED)
	{
		read_reply(call, reply);
		read_date(call, reply, now);
	}
	else
	{
		snprintf(text, sizeof(text), "%s: %s", reply->phase, reply->error);
		dynamo_read_failure(&call->reply, call->count,
							status_of_failure(reply->outcome), text);
	}
	count_reply(call, reply);

	/* The journal's release has the time in its body: it is made anew. */
	if ((call->reply.status == DYNAMO_CREDENTIALS ||
		 (call->reply.status == DYNAMO_CLOCK_SKEW && call->purpose != FOR_JOURNAL)) &&
		!call->again)
	{
		call->again = true;
		dynamo_reply_free(&call->reply);
		if (WorkerCredentials() != NULL)
			WorkerFindCredentials();
		post(call);
	}
	else
		conclude(call);
}

/*
 * Not of what may be no reply of DynamoDB's.  One that sends no Date, as an
 * imitation may, is taken to have our wall clock.
 */
static void
read_date(const Call *call, const http_reply *reply, int64 now)
{
	int64		date_s = reply->date_s != 0 ? reply->date_s : wall_clock() / USECS_PER_SEC;

	if (call->reply.status == DYNAMO_UNKNOWN || call->reply.status == DYNAMO_MALFORMED)
		return;
	epoch_clock_reply(&segment->clock, date_s, call->posted, now);
	WorkerSetClock(now);
}

static void
read_reply(Call *call, const http_reply *reply)
{
	const char *crc = reply->crc32[0] ? reply->crc32 : NULL;

	if (call->op == DYNAMO_SCAN)
		dynamo_read_scan(&call->reply, &table, reply->status, crc, reply->body,
						 reply->len);
	else
		dynamo_read(&call->reply, call->op, call->count, reply->status, crc,
					reply->body, reply->len);
}

static void
finish(Call *call)
{
	call->next = NULL;
	*finished_end = call;
	finished_end = &call->next;
	SetLatch(MyLatch);			/* whoever posted it may be done with this turn */
}

static int
bucket_of(int64 elapsed_us)
{
	int			bucket = 0;

	while (bucket < SEGMENT_BUCKETS - 1 && elapsed_us >= (INT64CONST(500) << bucket))
		bucket++;
	return bucket;
}

static void
count_reply(const Call *call, const http_reply *reply)
{
	OpCounters *ops = &segment->ops[call->op];
	bool		throttled = call->reply.status == DYNAMO_THROTTLED;
	bool		error = call->reply.status != DYNAMO_OK &&
		call->reply.status != DYNAMO_CONDITION_FAILED;

	for (int i = 0; i < call->reply.count && call->reply.status == DYNAMO_OK; i++)
	{
		dynamo_status status = call->reply.results[i].status;

		throttled |= status == DYNAMO_THROTTLED;
		error |= status != DYNAMO_OK && status != DYNAMO_CONDITION_FAILED;
	}
	if (error)
		pg_atomic_fetch_add_u64(&ops->errors, 1);
	if (throttled)
		pg_atomic_fetch_add_u64(&ops->throttles, 1);
	if (reply->outcome != HTTP_REPLIED)
		return;
	pg_atomic_fetch_add_u64(&ops->latency_count, 1);
	pg_atomic_fetch_add_u64(&ops->latency_us, reply->elapsed_us);
	pg_atomic_fetch_add_u64(&ops->histogram[bucket_of(reply->elapsed_us)], 1);
	pg_atomic_fetch_add_u64(&ops->consumed_milliunits,
							(uint64) llround(call->reply.consumed * 1000));
}

/* The log says when DynamoDB stops working for us, and when it works again. */
static void
log_trouble(const Call *call)
{
	const dynamo_reply *reply = &call->reply;
	bool		trouble = reply->status == DYNAMO_UNREACHABLE ||
		reply->status == DYNAMO_UNKNOWN || reply->status == DYNAMO_CREDENTIALS ||
		reply->status == DYNAMO_CLOCK_SKEW ||
		reply->status == DYNAMO_ACCESS_DENIED ||
		reply->status == DYNAMO_TABLE_MISSING || reply->status == DYNAMO_MALFORMED ||
		reply->status == DYNAMO_UNTRUSTED || reply->status == DYNAMO_WRONG_SERVICE;

	if (trouble == in_trouble || call->purpose == FOR_TABLE)
		return;
	in_trouble = trouble;
	if (!trouble)
		ereport(LOG, (errmsg("DynamoDB answers again")));
	else
		ereport(LOG,
				(errmsg("could not use table \"%s\" at %s: %s%s%s", table.name,
						segment->place.url,
						Utf8Quiet(reply->type, strlen(reply->type)),
						reply->type[0] ? ": " : "",
						Utf8Quiet(reply->message, strlen(reply->message))),
				 reply->status == DYNAMO_CREDENTIALS ?
				 errhint("%s", WorkerCredentialsHint()) : 0,
				 reply->status == DYNAMO_TABLE_MISSING ?
				 errhint("Compare Region, endpoint and table with those of the other clusters. If "
						 "they agree, create it with SELECT ddb_lock_table_create().") : 0));
}

/*
 * A Java client that updates our released item leaves its ttl there, and
 * DynamoDB deletes its held lock.  With such a client on the table no more of
 * that is written, until somebody says so again.
 */
static void
look_for_others(const dynamo_reply *reply)
{
	for (int i = 0; i < reply->count; i++)
		stop_ttl(&reply->results[i].item);
	for (int i = 0; i < reply->page.count; i++)
		stop_ttl(&reply->page.rows[i].item);
}

static void
stop_ttl(const dynamo_item *item)
{
	if (table.released_ttl_s == 0 || !item->exists || item->released || item->by_ddblock)
		return;
	table.released_ttl_s = 0;
	ereport(LOG,
			(errmsg("released locks get no time-to-live any more, because owner \"%s\" uses "
					"another kind of client", Utf8Quiet(item->owner, strlen(item->owner))),
			 errdetail("Such a client may keep the time-to-live on a lock that it holds, which "
					   "DynamoDB would then delete."),
			 errhint("Set \"ddblock.released_item_ttl\" to 0, and switch time-to-live off on "
					 "the table as long as items have it.")));
}

/* For sessions that wait while a request is repeated. */
static void
publish_trouble(const dynamo_reply *reply)
{
	static bool published = false;
	bool		waits = reply->status == DYNAMO_UNREACHABLE ||
		reply->status == DYNAMO_UNKNOWN || reply->status == DYNAMO_THROTTLED ||
		reply->status == DYNAMO_CONFLICT;

	if (waits || published)
		SegmentTellTrouble(waits ? reply->message : "");
	published = waits;
}

static void
deliver_to_journal(Call *call)
{
	dynamo_result failure = {.status = DYNAMO_MALFORMED};

	WorkerJournalReply(call->id, call->reply.count == 1 ? call->reply.results : &failure,
					   SegmentNow());
}

static void
deliver(Call *call)
{
	switch (call->purpose)
	{
		case FOR_LOCKMGR:
			lockmgr_reply(worker_lockmgr, SegmentNow(), call->id, &call->reply);
			break;
		case FOR_TABLE:
			WorkerAnswerTable(call->session, call->seq, call->op, &call->reply,
							  call->posted);
			break;
		case FOR_JOURNAL:
			deliver_to_journal(call);
			break;
		case FOR_WARMTH:
			clock_answered(&call->reply);
			break;
		case FOR_CHECK:
			break;
	}
}

/* Hands on what came of it. */
static void
conclude(Call *call)
{
	log_trouble(call);
	publish_trouble(&call->reply);
	look_for_others(&call->reply);
	if (call->op == DYNAMO_DESCRIBE_TABLE)
		WorkerTableDescribed(&call->reply, call->purpose == FOR_CHECK, SegmentNow());
	else if (call->reply.status == DYNAMO_TABLE_MISSING)
		WorkerTableMissing();
	deliver(call);
	dynamo_reply_free(&call->reply);
	free(call->body);
	free(call);
}

/* Lets the connections do their work, and concludes what could not be posted. */
void
WorkerRunCalls(void)
{
	reactor_run(the_reactor);
	while (finished != NULL)
	{
		Call	   *call = finished;

		finished = call->next;
		if (finished == NULL)
			finished_end = &finished;
		conclude(call);
	}
}
