/*-------------------------------------------------------------------------
 *
 * sim_network.c
 *	  Requests and replies in flight, and their faults.
 *
 * The codec builds the bytes of each request and reads the bytes of each reply.
 * DynamoDB applies a copy of a request when it arrives, however late.  The
 * worker gets the reply to the first copy.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

#include <cjson/cJSON.h>

#include "dynamo/dynamo.h"

/* An error on the wire: DynamoDB's error type, or a bare body. */
typedef struct wire_error
{
	sim_fault	fault;
	const char *type;
	int			status;			/* HTTP status of a bare body; 0: no reply */
	const char *body;			/* or the error of the connection */
} wire_error;

static const wire_error wire_errors[] = {
	{FAULT_REQUEST_DROPPED, NULL, 0, "timed out"},
	{FAULT_RESET, NULL, 0, "connection reset"},
	{FAULT_UNREACHABLE, NULL, 0, "connection refused"},
	{FAULT_500, "InternalServerError", 0, NULL},
	{FAULT_500, NULL, 500, "<html>Internal Server Error</html>"},
	{FAULT_503, "ServiceUnavailable", 0, NULL},
	{FAULT_503, NULL, 503, ""},
	{FAULT_THROTTLED, "ProvisionedThroughputExceededException", 0, NULL},
	{FAULT_THROTTLED, "ThrottlingException", 0, NULL},
	{FAULT_THROTTLED, "RequestLimitExceeded", 0, NULL},
	{FAULT_EMPTY, NULL, 200, "{}"},
	{FAULT_CONFLICT, "TransactionConflictException", 0, NULL},
	{FAULT_CONFLICT, "ReplicatedWriteConflictException", 0, NULL},
	{FAULT_NO_CREDENTIALS, "ExpiredTokenException", 0, NULL},
	{FAULT_NO_CREDENTIALS, "UnrecognizedClientException", 0, NULL},
	{FAULT_BATCH_REFUSED, "AccessDeniedException", 0, NULL},
	{FAULT_BATCH_BROKEN, NULL, 500, "<html>Internal Server Error</html>"},
};

#define WIRE_ERRORS (sizeof(wire_errors) / sizeof(wire_errors[0]))

static void
call_event(sim *s, sim_call *call, sim_event_kind kind, int64_t at, sim_fault variant)
{
	sim_schedule(s, (sim_event) {
		.at = at, .kind = kind, .cluster = call->cluster, .call = call,
		.variant = variant,
	});
}

/* The request reaches DynamoDB and the reply comes back, or not. */
static void
deliver(sim *s, sim_call *call, int64_t delay, bool reply)
{
	call_event(s, call, SIM_APPLY, s->now + delay, FAULT_COUNT);
	if (reply)
		call_event(s, call, SIM_REPLY, s->now + delay + sim_hop(s), FAULT_COUNT);
}

/* The request is applied, but an error or a damaged reply comes back. */
static void
deliver_but(sim *s, sim_call *call, sim_event_kind kind, sim_fault variant)
{
	int64_t		delay = sim_hop(s);

	call_event(s, call, SIM_APPLY, s->now + delay, FAULT_COUNT);
	call_event(s, call, kind, s->now + delay + sim_hop(s), variant);
}

static void
deliver_badly(sim *s, sim_cluster *c, sim_call *call)
{
	static const sim_fault often[] = {
		FAULT_REQUEST_DROPPED, FAULT_REPLY_DROPPED, FAULT_DUPLICATED, FAULT_SLOW,
		FAULT_RESET_APPLIED, FAULT_RESET, FAULT_500_APPLIED, FAULT_500,
		FAULT_503_APPLIED, FAULT_503, FAULT_THROTTLED, FAULT_CONFLICT,
		FAULT_UNREACHABLE, FAULT_TRUNCATED, FAULT_CORRUPT, FAULT_EMPTY, FAULT_STATEMENT_FAILED,
		FAULT_REPLY_UNREAD,
	};
	int64_t		lease = s->plan.lease_max_ms * MS;
	sim_fault	fault = sim_chance(s, s->plan.late_percent) ? FAULT_LATE :
		often[sim_between(s, 0, sizeof(often) / sizeof(often[0]) - 1)];

	/* Most writes of queues show nothing anyway. */
	if ((fault == FAULT_STATEMENT_FAILED && call->op != DYNAMO_RENEW_BATCH) ||
		(fault == FAULT_EMPTY && call->queue != NULL))
		fault = FAULT_500;
	sim_count(s, fault);
	sim_say(s, "%d: call #%" PRIu64 ": %s", c->number, call->id, sim_fault_names[fault]);
	switch (fault)
	{
		case FAULT_REQUEST_DROPPED:
			break;
		case FAULT_REPLY_DROPPED:
			deliver(s, call, sim_hop(s), false);
			if (sim_chance(s, 30))
				c->cut_until = s->now + lease;
			break;
		case FAULT_LATE:
			deliver(s, call, sim_between(s, 0, sim_chance(s, 50) ? 3 * lease : s->plan.latest),
					false);
			break;
		case FAULT_DUPLICATED:
			deliver(s, call, sim_between(s, 0, SECOND), true);
			deliver(s, call, sim_between(s, 0, sim_chance(s, 50) ? SECOND : lease), true);
			break;
		case FAULT_SLOW:
			deliver(s, call, sim_between(s, 0, SECOND), true);
			break;
		case FAULT_RESET_APPLIED:
			deliver_but(s, call, SIM_ERROR, FAULT_RESET);
			break;
		case FAULT_500_APPLIED:
			deliver_but(s, call, SIM_ERROR, FAULT_500);
			break;
		case FAULT_503_APPLIED:
			deliver_but(s, call, SIM_ERROR, FAULT_503);
			break;
		case FAULT_REPLY_UNREAD:
			deliver(s, call, sim_hop(s), true);
			sim_pause(c, s->now + sim_between(s, 1, 20) * lease / 10);
			break;
		case FAULT_TRUNCATED:
		case FAULT_CORRUPT:
		case FAULT_STATEMENT_FAILED:
			deliver_but(s, call, SIM_REPLY, fault);
			break;
		default:
			call_event(s, call, SIM_ERROR, s->now + sim_hop(s), fault);
			if (fault == FAULT_THROTTLED && sim_chance(s, 30))
				c->throttled_until = s->now + sim_between(s, 0, lease / 2);
			break;
	}
}

/* In the trace, before the operation. */
static const char *const shared_names[DYNAMO_SHARED_KIND_COUNT] = {
	[DYNAMO_SHARED_OPEN] = "open: ",
	[DYNAMO_SHARED_JOIN] = "join: ",
	[DYNAMO_SHARED_REPLACE] = "replace: ",
	[DYNAMO_SHARED_RENEW] = "shared: ",
	[DYNAMO_SHARED_CHANGE] = "change: ",
	[DYNAMO_SHARED_LEAVE] = "leave: ",
	[DYNAMO_SHARED_LAST] = "last: ",
	[DYNAMO_SHARED_FORCE_RELEASE] = "force: ",
	[DYNAMO_SHARED_GATE] = "gate: ",
	[DYNAMO_SHARED_RENEW_GATE] = "renew gate: ",
};

static void
note_shared(sim_call *call, int which, const dynamo_shared_write *shared)
{
	const dynamo_admission *admission;

	if (shared == NULL)
		return;
	call->writes[which].shared = true;
	call->writes[which].kind = shared->kind;
	admission = shared->kind <= DYNAMO_SHARED_REPLACE ? &shared->entry.admission :
		shared->kind == DYNAMO_SHARED_CHANGE && shared->change.permits > 0 ?
		&shared->change : NULL;
	if (admission == NULL)
		return;
	call->writes[which].limit = admission->limit;
	call->writes[which].permits = admission->permits;
	call->writes[which].freed = admission->freed;
	call->writes[which].removes_gate = admission->dead_gate[0] != '\0';
}

static sim_call *
new_call(sim *s, sim_cluster *c, const lockmgr_call *out)
{
	sim_call   *call = calloc(1, sizeof(sim_call));

	if (call == NULL)
		abort();
	call->id = out->id;
	call->op = out->op;
	call->count = out->count;
	call->body = out->op == DYNAMO_RENEW_BATCH ?
		dynamo_build_batch(&sim_table, out->writes, out->count) :
		dynamo_build(&sim_table, &out->writes[0]);
	if (call->body == NULL)
		abort();
	for (int i = 0; i < out->count; i++)
	{
		const dynamo_write *write = &out->writes[i];

		call->writes[i].op = write->op;
		call->writes[i].lock = sim_lock_number(s, write->name, write->name_len);
		call->writes[i].lease_ms = write->lease_ms;
		call->writes[i].first_token = write->first_token;
		call->writes[i].last_token = write->last_token;
		call->writes[i].kept_until_ms = write->kept_until_ms;
		call->writes[i].maybe_stale = write->maybe_stale;
		call->writes[i].unmark = write->unmark;
		call->writes[i].wanted_until_ms = write->wanted_until_ms;
		call->writes[i].wanted_poll_ms = write->wanted_poll_ms;
		call->writes[i].wanted_permits = write->wanted_permits;
		call->writes[i].wanted_limit = write->wanted_limit;
		note_shared(call, i, write->shared);
		snprintf(call->writes[i].version, sizeof(call->writes[i].version), "%s",
				 write->version);
		snprintf(call->writes[i].expected, sizeof(call->writes[i].expected), "%s",
				 write->expected);
		sim_say(s, "%d: sends #%" PRIu64 " %s%s%s %s %s (expects %s)", c->number,
				out->id, write->shared != NULL ? shared_names[write->shared->kind] : "",
				dynamo_op_name(write->op), out->repeat ? " again" : "",
				s->lock[call->writes[i].lock].name, sim_short(call->writes[i].version),
				sim_short(call->writes[i].expected));
	}
	return call;
}

/* The host's send: decides whether the call meets a fault. */
void
sim_send(sim *s, sim_cluster *c, const lockmgr_call *out)
{
	sim_dispatch(s, c, new_call(s, c, out), out->timeout_us);
}

void
sim_dispatch(sim *s, sim_cluster *c, sim_call *call, int64_t timeout_us)
{
	bool		storm = s->phase == PHASE_STORM;
	int64_t		timeout = sim_true(c, sim_local(s, c) + timeout_us);
	int64_t		back = s->now + sim_hop(s);
	bool		well = false;

	call->cluster = c->number;
	call->life = c->life;
	call->posted = sim_local(s, c);
	call->signed_at = s->now;
	call_event(s, call, SIM_ERROR, timeout, FAULT_REQUEST_DROPPED);
	if (storm && s->now < c->cut_until)
		;
	else if (storm && s->now < c->no_credentials_until)
		call_event(s, call, SIM_ERROR, back, FAULT_NO_CREDENTIALS);
	else if (storm && s->now < c->throttled_until)
		call_event(s, call, SIM_ERROR, back, FAULT_THROTTLED);
	else if (call->op == DYNAMO_RENEW_BATCH && c->refuses_batches)
	{
		sim_count(s, FAULT_BATCH_REFUSED);
		call_event(s, call, SIM_ERROR, back, FAULT_BATCH_REFUSED);
	}
	else if (call->op == DYNAMO_RENEW_BATCH && c->breaks_batches)
	{
		sim_count(s, FAULT_BATCH_BROKEN);
		call_event(s, call, SIM_ERROR, back, FAULT_BATCH_BROKEN);
	}
	else if (storm && sim_chance(s, s->plan.fault_percent))
		deliver_badly(s, c, call);
	else
	{
		deliver(s, call, sim_hop(s), true);
		well = true;
	}
	if (!well && c->troubled_at < timeout)
		c->troubled_at = timeout;
	if (c->troubled_at < c->paused_until)
		c->troubled_at = c->paused_until;
}

void
sim_drop_call(sim_call *call)
{
	if (call == NULL || --call->events > 0)
		return;
	dynamo_reply_free(&call->reply);
	free(call->bytes);
	free(call->queue);
	free(call->body);
	free(call);
}

/* As the codec reads them, given the checksum that came with them. */
static void
read_bytes(const sim_call *call, const char *bytes, size_t len, uint32_t crc,
		   dynamo_reply *reply)
{
	char		text[16];
	const dynamo_headers headers = {text, ""};

	snprintf(text, sizeof(text), "%" PRIu32, crc);
	dynamo_read(reply, NULL, call->op, call->count, call->status, &headers, bytes, len);
}

/*
 * An eventually consistent read: the reply may be one that somebody got up to a
 * second ago.  Returns whether it is.
 */
static bool
answer_poll(sim *s, sim_lock *lock, char **bytes, size_t *len)
{
	bool		stale = lock->poll != NULL && s->now - lock->poll_at < SECOND &&
		s->phase == PHASE_STORM && s->plan.fault_percent > 0 && sim_chance(s, 20);
	char	   *copy = stale ? lock->poll : *bytes;
	size_t		copy_len = stale ? lock->poll_len : *len;

	copy = memcpy(malloc(copy_len + 1), copy, copy_len + 1);
	if (stale)
	{
		sim_count(s, FAULT_STALE_POLL);
		free(*bytes);
		*bytes = copy;
		*len = copy_len;
		return true;
	}
	free(lock->poll);
	lock->poll = copy;
	lock->poll_len = copy_len;
	lock->poll_at = s->now;
	return false;
}

/* Front ends differ: the reply comes from any of them, or from the cluster's own. */
static int64_t
date_error(sim *s, int cluster)
{
	int64_t		most = s->plan.date_error;

	if (!s->plan.own_front_end)
		return sim_between(s, -most, most);
	return cluster % 2 == 0 ? -most : most;
}

/*
 * A copy of the call reaches DynamoDB.  Nobody waits for the reply to one whose signature
 * is too old.
 */
void
sim_apply(sim *s, sim_call *call)
{
	char	   *bytes;
	size_t		len;
	int			status;
	sim_call	copy = {.op = call->op,.count = call->count};
	dynamo_reply reply;
	bool		stale;

	if (s->now - call->signed_at > SIGNATURE)
	{
		sim_count(s, FAULT_EXPIRED);
		sim_say(s, "%d: DynamoDB refuses #%" PRIu64 ", signed %" PRId64 " s ago", call->cluster,
				call->id, (s->now - call->signed_at) / SECOND);
		return;
	}
	status = copy.status = sim_request(s, dynamo_target(call->op), call->body, &bytes, &len);
	stale = call->queue == NULL && call->writes[0].maybe_stale && status == 200 &&
		answer_poll(s, &s->lock[call->writes[0].lock], &bytes, &len);

	read_bytes(&copy, bytes, len, crc32_of(bytes, len), &reply);
	if (call->queue != NULL)
		sim_queue_applied(s, call, &reply);
	for (int i = 0; i < call->count && call->queue == NULL; i++)
	{
		const dynamo_result *result = &reply.results[i];
		const sim_lock *lock = &s->lock[call->writes[i].lock];

		sim_say(s, "%d: DynamoDB gets #%" PRIu64 " %s %s %s: %s", call->cluster,
				call->id, dynamo_op_name(call->writes[i].op), lock->name,
				sim_short(call->writes[i].version), stale ? "stale" :
				result->status == DYNAMO_OK ? "done" : result->message);
		if (result->status != DYNAMO_OK && result->status != DYNAMO_CONDITION_FAILED)
			sim_wrong(s, "DynamoDB does not understand %s: %s",
					  dynamo_op_name(call->op), result->message);
		else if (result->status == DYNAMO_OK && call->op != DYNAMO_READ)
			sim_written(s, call, i);
		else if (!stale)
			sim_check_item(s, lock, &result->item);
	}
	if (call->status == 0)
	{
		call->status = status;
		call->date_s = (SIM_EPOCH + s->now + date_error(s, call->cluster)) / SECOND;
		call->bytes = bytes;
		call->len = len;
		call->reply = reply;
		return;
	}
	dynamo_reply_free(&reply);
	free(bytes);
}

/* One statement's result becomes an internal error. */
static void
fail_statement(sim *s, sim_call *call)
{
	cJSON	   *json = cJSON_ParseWithLength(call->bytes, call->len);
	cJSON	   *responses = cJSON_GetObjectItemCaseSensitive(json, "Responses");
	int			which = (int) sim_between(s, 0, call->count - 1);

	cJSON_ReplaceItemInArray(responses, which,
							 cJSON_Parse("{\"Error\":{\"Code\":\"InternalServerError\","
										 "\"Message\":\"Internal server error\"}}"));
	free(call->bytes);
	call->bytes = cJSON_PrintUnformatted(json);
	call->len = strlen(call->bytes);
	cJSON_Delete(json);
	dynamo_reply_free(&call->reply);
	read_bytes(call, call->bytes, call->len, crc32_of(call->bytes, call->len), &call->reply);
}

/* The reply's bytes, damaged, as the codec reads them. */
static void
read_damaged(sim *s, const sim_call *call, sim_fault fault, dynamo_reply *reply)
{
	char	   *bytes = malloc(call->len + 1);
	size_t		at = (size_t) sim_between(s, 0, (int64_t) call->len - 1);
	uint32_t	crc = crc32_of(call->bytes, call->len);

	if (bytes == NULL)
		abort();
	memcpy(bytes, call->bytes, call->len);
	if (fault == FAULT_CORRUPT)
	{
		bytes[at] ^= (char) (1 << sim_between(s, 0, 7));
		read_bytes(call, bytes, call->len, crc, reply);
	}
	else if (sim_chance(s, 50))
		read_bytes(call, bytes, at, crc, reply);
	else
		dynamo_read(reply, NULL, call->op, call->count, call->status, NULL, bytes, at);
	free(bytes);
}

static void
read_error(sim *s, const sim_call *call, sim_fault fault, dynamo_reply *reply)
{
	const wire_error *error;
	char	   *bytes;
	size_t		len;
	int			status;

	do
		error = &wire_errors[sim_random(s) % WIRE_ERRORS];
	while (error->fault != fault);
	if (error->type != NULL)
	{
		status = dynamo_double_error(error->type, NULL, &bytes, &len);
		dynamo_read(reply, NULL, call->op, call->count, status, NULL, bytes, len);
		free(bytes);
	}
	else if (error->status != 0)
		dynamo_read(reply, NULL, call->op, call->count, error->status, NULL, error->body,
					strlen(error->body));
	else
		dynamo_read_failure(reply, call->count, fault == FAULT_UNREACHABLE ?
							DYNAMO_UNREACHABLE : DYNAMO_UNKNOWN, error->body);
}

/* The worker takes note of a reply's Date, and of its wall clock. */
static void
read_date(sim *s, sim_cluster *c, const sim_call *call, dynamo_reply *reply)
{
	reply->date_s = call->date_s;
	reply->wall_us = SIM_EPOCH + s->now + c->wall_error;
	if (c->absurd_date)
		reply->date_s = sim_absurd_date(s, reply->date_s);
	c->absurd_date = false;
	if (reply->status != DYNAMO_UNKNOWN && reply->status != DYNAMO_MALFORMED)
		epoch_clock_reply(&c->clock, reply->date_s, call->posted, sim_local(s, c),
						  reply->wall_us - sim_local(s, c));
}

/* The call's end reaches the worker that waits for it. */
void
sim_reply(sim *s, sim_call *call, sim_event_kind kind, unsigned variant)
{
	sim_cluster *c = &s->cluster[call->cluster];
	dynamo_reply read;
	dynamo_reply *reply = &read;

	if (call->answered || c->worker.lm == NULL || c->life != call->life)
		return;
	if (kind == SIM_REPLY && s->phase == PHASE_STORM && s->now < c->cut_until)
		return;
	call->answered = true;
	if (kind == SIM_REPLY && variant == FAULT_STATEMENT_FAILED)
		fail_statement(s, call);
	if (kind == SIM_ERROR)
		read_error(s, call, (sim_fault) variant, &read);
	else if (variant == FAULT_TRUNCATED || variant == FAULT_CORRUPT)
		read_damaged(s, call, (sim_fault) variant, &read);
	else
		reply = &call->reply;

	sim_say(s, "%d: reply to #%" PRIu64 ": status %d %s", c->number, call->id,
			(int) reply->status, reply->message);
	if (kind == SIM_REPLY)
		read_date(s, c, call, reply);
	sim_tell_time(s, c);
	if (call->queue != NULL)
		sim_queue_reply(s, c, call, reply);
	else if (call->id >= SIM_JOURNAL_CALL)
		sim_journal_reply(s, c, call->id - SIM_JOURNAL_CALL, &reply->results[0]);
	else
		lockmgr_reply(c->worker.lm, sim_local(s, c), call->id, reply);
	if (reply == &read)
		dynamo_reply_free(&read);
	for (int i = 0; i < call->count && call->queue == NULL; i++)
		sim_check_known(s, c, call->writes[i].lock);
}
