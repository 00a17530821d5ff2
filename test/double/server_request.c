/*-------------------------------------------------------------------------
 *
 * server_request.c
 *	  A request's way: signature, fault, double, reply.
 *
 *-------------------------------------------------------------------------
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dynamo/dynamo.h"
#include "server.h"

#define MESSAGE_SIZE 8192
#define BATCH_TARGET "DynamoDB_20120810.BatchExecuteStatement"

/* A reply on its way out. */
typedef struct reply
{
	int			status;
	char	   *body;
	size_t		len;
	uint32_t	crc;
} reply;

/* What a request is about. */
typedef struct incoming
{
	server	   *s;
	connection *c;
	const server_http *http;
	const char *target;
	const char *operation;		/* what follows the target's last dot */
} incoming;

void
server_count_up(server_count **list, const char *name)
{
	while (*list != NULL && strcmp((*list)->name, name) != 0)
		list = &(*list)->next;
	if (*list == NULL)
	{
		*list = calloc(1, sizeof(server_count));
		snprintf((*list)->name, sizeof((*list)->name), "%s", name);
	}
	(*list)->count++;
}

/* A bucket of writes for each item: as many as one second brings, or one. */
bool
server_admit(void *context, uint64_t item)
{
	server	   *s = context;
	server_bucket *bucket = &s->buckets[item % SERVER_BUCKETS];
	double		most = s->writes_per_s > 1 ? s->writes_per_s : 1;
	int64_t		now = server_now_us();

	if (s->writes_per_s <= 0 || s->unlimited)
		return true;
	if (bucket->item != item)
	{
		bucket->item = item;
		bucket->left = most;
		bucket->since_us = now;
	}
	bucket->left += (double) (now - bucket->since_us) / 1e6 * s->writes_per_s;
	bucket->since_us = now;
	if (bucket->left > most)
		bucket->left = most;
	if (bucket->left < 1)
		return false;
	bucket->left--;
	return true;
}

bool
server_allows(void *context, const char *action, const char *resource)
{
	server	   *s = context;

	if (s->unlimited)
		return true;
	for (const server_denial *denial = s->denials; denial != NULL; denial = denial->next)
	{
		if (fnmatch(denial->action, action, 0) == 0 &&
			fnmatch(denial->resource, resource, 0) == 0)
		{
			server_count_up(&s->refused, action);
			return false;
		}
	}
	return true;
}

static void
set_crc(reply *r)
{
	r->crc = crc32_of(r->body, r->len);
}

static reply
applied(const incoming *in)
{
	reply		r;

	r.status = dynamo_double_request(in->s->d, in->target, in->http->body,
									 in->http->body_len, &r.body, &r.len);
	set_crc(&r);
	return r;
}

static reply
error_reply(const char *type, const char *message)
{
	reply		r;

	r.status = dynamo_double_error(type, message, &r.body, &r.len);
	set_crc(&r);
	return r;
}

/* With a fault for the first or the second statement of the batch, in turn. */
static reply
statement_error(const incoming *in, const char *type, bool apply)
{
	dynamo_double_fault faults[25] = {{NULL, false}};
	reply		r;

	faults[in->s->turn % 2].type = type;
	faults[in->s->turn % 2].applied = apply;
	r.status = dynamo_double_batch(in->s->d, in->http->body, in->http->body_len, faults, 25,
								   &r.body, &r.len);
	set_crc(&r);
	return r;
}

static void
print(const incoming *in, const reply *r, server_bytes *to)
{
	server_http_reply(in->s, to, r->status, r->body, r->len, r->crc);
}

static void
send_reply(const incoming *in, reply *r)
{
	server_bytes bytes = {0};

	print(in, r, &bytes);
	server_send(in->s, in->c, bytes.data, bytes.len);
	free(bytes.data);
	free(r->body);
}

static void
send_later(const incoming *in, reply *r, int64_t delay_us)
{
	server_event *event = server_event_new(in->s, SERVER_REPLY, delay_us, in->c);
	server_bytes bytes = {0};

	print(in, r, &bytes);
	event->bytes = bytes.data;
	event->len = bytes.len;
	free(r->body);
}

static void
apply_later(const incoming *in, int64_t delay_us)
{
	server_event *event = server_event_new(in->s, SERVER_APPLY, delay_us, NULL);

	snprintf(event->target, sizeof(event->target), "%s", in->target);
	event->len = in->http->body_len;
	event->bytes = memcpy(malloc(event->len + 1), in->http->body, event->len);
}

static void
apply_silently(const incoming *in)
{
	reply		r = applied(in);

	free(r.body);
}

/* The fault's error, or the next one of the rotation. */
static const char *
error_of(const incoming *in, const server_fault *fault, const char *const *rotation,
		 int count)
{
	in->s->turn++;
	return fault->error != NULL ? fault->error : rotation[in->s->turn % count];
}

/* Every second error of a batch is one of a statement's, the rest succeeds. */
static void
fail(const incoming *in, const server_fault *fault, const char *const *rotation, int count)
{
	const char *type = error_of(in, fault, rotation, count);
	reply		r;

	if (strcmp(in->target, BATCH_TARGET) == 0 && in->s->turn / count % 2 == 0)
		r = statement_error(in, type, fault->applied);
	else
	{
		if (fault->applied)
			apply_silently(in);
		r = error_reply(type, NULL);
	}
	send_reply(in, &r);
}

static void
late_apply(const incoming *in, const server_fault *fault)
{
	static const char *const failure[] = {"InternalServerError"};
	const char *answer = fault->answer != NULL ? fault->answer : "none";
	reply		r;

	apply_later(in, fault->delay_us);
	if (strcmp(answer, "close") == 0)
		server_close(in->s, in->c, false);
	else if (strcmp(answer, "500") == 0)
	{
		r = error_reply(fault->error != NULL ? fault->error : failure[0], NULL);
		send_reply(in, &r);
	}
	else
		server_park(in->c);
}

/* Half of the body, and then the end. */
static void
truncate(const incoming *in)
{
	reply		r = applied(in);
	server_bytes bytes = {0};

	print(in, &r, &bytes);
	server_send(in->s, in->c, bytes.data, bytes.len - (r.len + 1) / 2);
	in->c->close_after = true;
	free(bytes.data);
	free(r.body);
}

/* Changes a byte to another one that JSON may have there. */
static void
corrupt(const incoming *in)
{
	reply		r = applied(in);
	size_t		at = server_random(in->s) % r.len;

	r.body[at] = r.body[at] == 'x' ? 'y' : 'x';
	send_reply(in, &r);
}

/* Success in the words of somebody who is not DynamoDB, and has understood nothing. */
static void
send_empty(const incoming *in)
{
	static const char empty[] =
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

	server_send(in->s, in->c, empty, sizeof(empty) - 1);
}

static void
suffer(const incoming *in, const server_fault *fault)
{
	static const char *const throttles[] = {
		"ProvisionedThroughputExceededException", "ThrottlingException",
		"RequestLimitExceeded"
	};
	static const char *const conflicts[] = {
		"TransactionConflictException", "ReplicatedWriteConflictException"
	};
	static const char *const internal[] = {"InternalServerError"};
	static const char *const unavailable[] = {"ServiceUnavailable"};
	static const char *const expired[] = {"ExpiredTokenException"};
	reply		r;

	switch (fault->kind)
	{
		case FAULT_DROP:
			server_park(in->c);
			break;
		case FAULT_LOSE_REPLY:
			apply_silently(in);
			server_park(in->c);
			break;
		case FAULT_DUPLICATE:
			apply_later(in, fault->delay_us);
			r = applied(in);
			send_reply(in, &r);
			break;
		case FAULT_LATE_APPLY:
			late_apply(in, fault);
			break;
		case FAULT_LATE_REPLY:
			r = applied(in);
			send_later(in, &r, fault->delay_us);
			break;
		case FAULT_RESET:
			if (fault->applied)
				apply_silently(in);
			server_close(in->s, in->c, true);
			break;
		case FAULT_HTTP_500:
			fail(in, fault, internal, 1);
			break;
		case FAULT_HTTP_503:
			in->s->turn++;
			if (fault->applied)
				apply_silently(in);
			r = error_reply(fault->error != NULL ? fault->error : unavailable[0], NULL);
			send_reply(in, &r);
			break;
		case FAULT_THROTTLE:
			fail(in, fault, throttles, 3);
			break;
		case FAULT_CONFLICT:
			fail(in, fault, conflicts, 2);
			break;
		case FAULT_TRUNCATE:
			truncate(in);
			break;
		case FAULT_CORRUPT:
			corrupt(in);
			break;
		case FAULT_WRONG_CRC:
			r = applied(in);
			r.crc ^= 1;
			send_reply(in, &r);
			break;
		case FAULT_EMPTY:
			if (fault->applied)
				apply_silently(in);
			send_empty(in);
			break;
		case FAULT_EXPIRED:
			r = error_reply(fault->error != NULL ? fault->error : expired[0], NULL);
			send_reply(in, &r);
			break;
		default:
			if (fault->refuse)
				server_close(in->s, in->c, true);
			else
				server_park(in->c);
	}
}

static void
serve_command(server *s, connection *c, const server_http *http)
{
	const incoming in = {.s = s,.c = c,.http = http};
	reply		r = {.status = 200};

	if (!server_control(s, http->body, http->body_len, &r.body))
		r.status = 400;
	r.len = strlen(r.body);
	set_crc(&r);
	send_reply(&in, &r);
}

static void
serve_operation(const incoming *in)
{
	char		message[MESSAGE_SIZE];
	const char *refusal = server_auth_check(in->s, in->http, in->c->key, message,
											sizeof(message));
	const server_fault *fault;
	reply		r;

	if (refusal != NULL)
	{
		server_count_up(&in->s->refused, refusal);
		r = error_reply(refusal, message);
		send_reply(in, &r);
		return;
	}
	server_count_up(&in->s->requests, in->operation);
	server_count_up(&in->s->keys, in->c->key);
	fault = server_fault_strike(in->s, in->c, in->operation);
	if (fault != NULL)
	{
		suffer(in, fault);
		return;
	}
	r = applied(in);
	send_reply(in, &r);
}

void
server_request(server *s, connection *c, const server_http *http)
{
	const char *target = server_http_header(http, "x-amz-target");
	const char *dot = target == NULL ? NULL : strrchr(target, '.');
	const incoming in = {
		.s = s,.c = c,.http = http,.target = target != NULL ? target : "",
		.operation = dot != NULL ? dot + 1 : "none"
	};

	if (strcmp(http->path, SERVER_CONTROL_PATH) == 0)
		serve_command(s, c, http);
	else if (s->tls != NULL && c->ssl == NULL)
		server_close(s, c, false);
	else
		serve_operation(&in);
}
