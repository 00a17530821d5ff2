/*-------------------------------------------------------------------------
 *
 * queue_request.c
 *	  Request bodies for the queue's table.
 *
 * A form says what is asked of which item: the request, or a part of a transaction.
 * doc/internals/queues.md has the conditions.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dynamo/dynamo_codec.h"

/* "r#", queue, "#", resource */
#define KEY_SIZE (QUEUE_NAME_MAX + QUEUE_RESOURCE_MAX + 8)
#define NUMBER_SIZE 32
#define FLOOR_KEY "floor"		/* partition and sort key */

#define CAPACITY ",\"ReturnConsumedCapacity\":\"TOTAL\""
#define CONSISTENT ",\"ConsistentRead\":true"
#define IF(condition) ",\"ConditionExpression\":\"" condition "\""
#define IF_ELSE_SHOW(condition) IF(condition) \
	",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\""
#define CHANGE(update, condition) ",\"UpdateExpression\":\"" update "\"" IF_ELSE_SHOW(condition)

#define RIDERS "\1"				/* in a form: the jobs that ride on the head are inserted here */

#define OURS "#token = :token AND #done = :before"
/* The job is neither paused nor claimed; or its claim's time is over. */
#define CLAIMABLE "attribute_not_exists(#paused)" \
	" AND (attribute_not_exists(#retryAt) OR #retryAt <= :now)"

#define CLAIM(waits, removed) \
	CHANGE("SET #token = :token, " waits ", #attempts = if_not_exists(#attempts, :zero) + :one" removed, \
		   "#done < #seq AND #due <= :now AND " CLAIMABLE \
		   " AND (attribute_not_exists(#token) OR #token < :token)") \
	",\"ReturnValues\":\"ALL_NEW\""

typedef enum place
{
	NO_ITEM,
	HEAD,						/* of a resource */
	JOB,
	DEAD,
	FLOOR,
	GUARD
} place;

typedef struct form
{
	dynamo_op	op;
	place		item;			/* which item; of a page: the partition that :pk stands for, if
								 * any */
	int			limit;			/* page: items to read; 0: the request is about one item */
	const char *members;		/* members of the request; NULL: a function below makes them */
} form;

/* What a request body is made of. */
typedef struct body
{
	const char *table;
	const queue_request *request;
	const char *tail;
} body;

static const form forms[] = {
	[QUEUE_CREATE_TABLE] = {.op = DYNAMO_QUEUE_CREATE_TABLE},
	[QUEUE_DESCRIBE_TABLE] = {.op = DYNAMO_QUEUE_DESCRIBE_TABLE},
	[QUEUE_ENABLE_TTL] = {.op = DYNAMO_QUEUE_UPDATE_TTL},
	/* The first lock table is written.  Another one is refused, and the refusal shows the first. */
	[QUEUE_GUARD] = {DYNAMO_QUEUE_UPDATE, GUARD, 0,
		CHANGE("SET #identity = :identity, #name = :name",
			   "attribute_not_exists(#identity) OR #identity = :identity")},
	[QUEUE_READ_HEAD] = {DYNAMO_QUEUE_READ, HEAD, 0, CONSISTENT},
	[QUEUE_READ_JOB] = {DYNAMO_QUEUE_READ, JOB, 0, CONSISTENT},
	[QUEUE_READ_DEAD] = {DYNAMO_QUEUE_READ, DEAD, 0, CONSISTENT},
	[QUEUE_READ_FLOOR] = {DYNAMO_QUEUE_READ, FLOOR, 0, CONSISTENT},
	/*
	 * Resources whose jobs run stay in the index, and the filter leaves them out.  So a page may
	 * show none of the resources that it counts.
	 */
	[QUEUE_FIND] = {DYNAMO_QUEUE_QUERY, NO_ITEM, 100,
		",\"IndexName\":\"ready\""
		",\"KeyConditionExpression\":\"#ready = :queue AND #due <= :now\""
		",\"FilterExpression\":\"" CLAIMABLE "\""},
	[QUEUE_LIST_JOBS] = {DYNAMO_QUEUE_QUERY, JOB, 100,
		CONSISTENT ",\"KeyConditionExpression\":\"#pk = :pk AND #sk BETWEEN :from AND :to\""
		",\"ProjectionExpression\":\"#pk, #sk, #id, #pushedAt\""},
	/* One at a time, because a payload may be large. */
	[QUEUE_LIST_DEAD] = {DYNAMO_QUEUE_QUERY, DEAD, 1,
		CONSISTENT ",\"KeyConditionExpression\":\"#pk = :pk\""},
	[QUEUE_LIST_ALL] = {DYNAMO_QUEUE_SCAN, NO_ITEM, 500,
		CONSISTENT ",\"FilterExpression\":\"begins_with(#sk, :job) OR #sk = :head\""
		",\"ProjectionExpression\":\"#pk, #sk, #seq, #done, #token, #paused\""},
	[QUEUE_PUSH] = {.op = DYNAMO_QUEUE_TRANSACT},
	[QUEUE_CANCEL] = {.op = DYNAMO_QUEUE_TRANSACT},
	[QUEUE_CANCEL_RIDER] = {.op = DYNAMO_QUEUE_TRANSACT},
	[QUEUE_BURY] = {.op = DYNAMO_QUEUE_TRANSACT},
	[QUEUE_CLAIM] = {DYNAMO_QUEUE_UPDATE, HEAD, 0, CLAIM("#retryAt = :later", "")},
	/* REMOVE #job does nothing if the job does not ride on the head. */
	[QUEUE_COMPLETE] = {DYNAMO_QUEUE_UPDATE, HEAD, 0,
		CHANGE("SET #done = :number, #due = :now REMOVE #retryAt, #attempts, #lastError, #job",
			   OURS " AND #seq > :number")},
	[QUEUE_COMPLETE_LAST] = {DYNAMO_QUEUE_UPDATE, HEAD, 0,
		CHANGE("SET #done = :number REMOVE #ready, #due, #retryAt, #attempts, #lastError, #job",
			   OURS " AND #seq = :number")},
	[QUEUE_FAIL] = {DYNAMO_QUEUE_UPDATE, HEAD, 0,
		CHANGE("SET #due = :later, #lastError = :error REMOVE #retryAt", OURS)},
	/* If a push has come since the head was read, seq is another one, and this is refused. */
	[QUEUE_DROP] = {DYNAMO_QUEUE_UPDATE, HEAD, 0,
		CHANGE("SET #done = #seq REMOVE #ready, #due, #retryAt, #attempts, #lastError" RIDERS,
			   "#seq = :seq AND #done < #seq")},
	/*
	 * The condition does not demand that there is a head: a resource may be paused before its
	 * first job.
	 */
	[QUEUE_PAUSE] = {DYNAMO_QUEUE_UPDATE, HEAD, 0,
		CHANGE("SET #paused = :one", "attribute_not_exists(#paused)")},
	[QUEUE_RESUME] = {DYNAMO_QUEUE_UPDATE, HEAD, 0,
		CHANGE("REMOVE #paused", "attribute_exists(#paused)")},
	/*
	 * Deletes an item on condition that there is none.  While a transaction is being applied, a
	 * read shows the item as it was before; a write meets the transaction, and is refused.
	 */
	[QUEUE_CHECK_GONE] = {DYNAMO_QUEUE_DELETE, JOB, 0, IF("attribute_not_exists(#pk)")},
	[QUEUE_RAISE_FLOOR] = {DYNAMO_QUEUE_UPDATE, FLOOR, 0,
		CHANGE("SET #seq = :number, #due = :later", "attribute_not_exists(#seq) OR #seq = :seq")},
	/* A head that was paused and resumed before its first job has no number. */
	[QUEUE_DELETE_HEAD] = {DYNAMO_QUEUE_DELETE, HEAD, 0,
		IF("(attribute_not_exists(#seq) OR #seq = :seq) AND attribute_not_exists(#paused)")},
	[QUEUE_DELETE_JOB] = {DYNAMO_QUEUE_DELETE, JOB, 0, ""},
	[QUEUE_DELETE_DEAD] = {DYNAMO_QUEUE_DELETE, DEAD, 0, ""},
};

static const form find_all = {
	DYNAMO_QUEUE_QUERY, NO_ITEM, 100,
	",\"IndexName\":\"ready\",\"KeyConditionExpression\":\"#ready = :queue\""
};

/*
 * A job that was claimed before puts its resource behind others: after an outage, there may be
 * many.
 */
static const form claim_again = {
	DYNAMO_QUEUE_UPDATE, HEAD, 0, CLAIM("#due = :later", " REMOVE #retryAt")
};

/* An operator's claim needs no due time, and is no attempt. */
static const form claim_any = {
	DYNAMO_QUEUE_UPDATE, HEAD, 0,
	CHANGE("SET #token = :token", "#done = :before AND #seq >= :number"
		   " AND (attribute_not_exists(#token) OR #token < :token)")
	",\"ReturnValues\":\"ALL_NEW\""
};

/* "due" has not changed since the claim, so the next job is due as well. */
static const form complete_in_place = {
	DYNAMO_QUEUE_UPDATE, HEAD, 0,
	CHANGE("SET #done = :number REMOVE #retryAt, #attempts, #lastError, #job",
		   OURS " AND #seq > :number")
};

#define PUSHED "SET #seq = :last, #done = if_not_exists(#done, :seq), #ready = :queue" \
	", #due = if_not_exists(#due, :now)"

static const form first_push = {
	.item = HEAD,.members = CHANGE(PUSHED RIDERS, "attribute_not_exists(#seq)")
};
static const form later_push = {
	.item = HEAD,.members = CHANGE(PUSHED RIDERS, "#seq = :seq")
};

/* These cancel a job on condition that it is not the next one, because that may be running. */
static const form not_next = {.item = HEAD,.members = IF_ELSE_SHOW("#done < :before")};
static const form unload = {
	.item = HEAD,.members = CHANGE("REMOVE #job", "#done < :before AND attribute_exists(#job)")
};
static const form delete_there = {.item = JOB,.members = IF_ELSE_SHOW("attribute_exists(#pk)")};

static const form *
form_of(const queue_request *request)
{
	if (request->all && request->kind == QUEUE_FIND)
		return &find_all;
	if (request->all && request->kind == QUEUE_CLAIM)
		return &claim_any;
	if (request->attempts > 0 && request->kind == QUEUE_CLAIM)
		return &claim_again;
	if (request->stays && request->kind == QUEUE_COMPLETE)
		return &complete_in_place;
	return &forms[request->kind];
}

dynamo_op
queue_op(queue_kind kind)
{
	return forms[kind].op;
}

/* ---- keys, and what placeholders stand for ---- */

static void
partition_key(char key[KEY_SIZE], place item, const queue_request *request)
{
	if (item == GUARD || item == FLOOR)
		snprintf(key, KEY_SIZE, "%s", item == GUARD ? QUEUE_GUARD_KEY : FLOOR_KEY);
	else if (item == DEAD)
		snprintf(key, KEY_SIZE, "dead#%s", request->queue);
	else
		snprintf(key, KEY_SIZE, "r#%s#%s", request->queue, request->resource);
}

/* The sort key of a job.  All numbers have the same length, so the order of the texts is theirs. */
static void
job_key(char key[NUMBER_SIZE], int64_t number)
{
	snprintf(key, NUMBER_SIZE, "job#%019lld", (long long) number);
}

static void
put_keys(dynamo_text *text, place item, const queue_request *request, int64_t number)
{
	char		pk[KEY_SIZE];
	char		job[NUMBER_SIZE];

	partition_key(pk, item, request);
	job_key(job, number);
	dynamo_put_s(text, "pk", pk);
	dynamo_put_s(text, "sk", item == HEAD ? "head" : item == JOB ? job :
				 item == DEAD ? request->id : pk);
}

/* Reads the next job in the tail of a push; false if there is none, or it is not whole. */
static bool
next_job(const body *of, size_t *offset, queue_job *job, const char **bytes)
{
	size_t		len = of->request->tail_len;

	if (len - *offset < sizeof(*job))
		return false;
	memcpy(job, of->tail + *offset, sizeof(*job));
	job->digest[QUEUE_DIGEST_SIZE - 1] = '\0';
	*offset += sizeof(*job);
	if (job->id_len > QUEUE_ID_MAX || job->payload_len > QUEUE_PAYLOAD_MAX ||
		len - *offset < (size_t) job->id_len + job->payload_len)
		return false;
	*bytes = of->tail + *offset;
	*offset += (size_t) job->id_len + job->payload_len;
	return true;
}

static void
put_job(dynamo_text *text, const body *of, const queue_job *job, const char *bytes)
{
	if (job->id_len > 0)
		dynamo_put_text(text, "id", bytes, job->id_len);
	dynamo_put_text(text, "payload", bytes + job->id_len, job->payload_len);
	dynamo_put_n(text, "pushedAt", of->request->now_ms);
}

static void
put_rider(dynamo_text *text, const body *of, int index)
{
	int			depth = text->depth;
	size_t		offset = 0;
	queue_job	job = {0};
	const char *bytes = "";

	for (int i = 0; i <= index; i++)
	{
		if (!next_job(of, &offset, &job, &bytes))
		{
			text->failed = true;
			return;
		}
	}
	dynamo_put_map(text, NULL);
	put_job(text, of, &job, bytes);
	dynamo_text_close(text, depth);
}

/*
 * The attribute for a placeholder.  A job that rides is an attribute of the head, with the name
 * that is otherwise the sort key of the job's item.
 */
static void
put_name(dynamo_text *text, const char *name, const void *asked)
{
	const body *of = asked;
	const queue_request *request = of->request;
	int			index = dynamo_number_in(name, "job");
	int64_t		number = index < 0 ? request->number : 0;
	char		key[NUMBER_SIZE];

	if (index < 0 && strcmp(name, "job") != 0)
	{
		dynamo_text_string(text, name, strlen(name));
		return;
	}
	/*
	 * The jobs of a push have the numbers after the head's.  Those of a drop are in the tail; if
	 * the tail is too short, the number is 0, which no job has.
	 */
	if (index >= 0 && request->kind == QUEUE_PUSH)
		number = request->seq + 1 + index;
	else if (index >= 0 && ((size_t) index + 1) * sizeof(number) <= request->tail_len)
		memcpy(&number, of->tail + (size_t) index * sizeof(number), sizeof(number));
	job_key(key, number);
	dynamo_text_string(text, key, strlen(key));
}

static void
put_value(dynamo_text *text, const char *name, const void *asked)
{
	const body *of = asked;
	const queue_request *request = of->request;
	char		pk[KEY_SIZE];
	char		from[NUMBER_SIZE];
	char		to[NUMBER_SIZE];
	const dynamo_value values[] = {
		{"pk",.text = pk},
		{"from",.text = from},
		{"to",.text = to},
		{"job",.text = "job#"},
		{"head",.text = "head"},
		{"queue",.text = request->queue},
		{"identity",.text = request->id},
		{"name",.text = request->resource},
		{"error",.text = request->error},
		{"token",.number = request->token},
		{"number",.number = request->number},
		{"before",.number = request->number - 1},
		{"seq",.number = request->seq},
		{"last",.number = request->seq + request->jobs},
		{"now",.number = request->now_ms},
		{"later",.number = request->now_ms + request->delay_ms},
		{"zero",.number = 0},
		{"one",.number = 1},
	};

	if (dynamo_number_in(name, "job") >= 0)
	{
		put_rider(text, of, dynamo_number_in(name, "job"));
		return;
	}
	partition_key(pk, form_of(request)->item, request);
	job_key(from, request->number);
	job_key(to, request->to);
	text->failed |= !dynamo_put_value(text, name, values, sizeof(values) / sizeof(values[0]));
}

/* The value of :now in a condition on a ttl, which is in seconds. */
static void
put_seconds(dynamo_text *text, const char *name, const void *asked)
{
	(void) name;
	dynamo_put_n(text, NULL, ((const body *) asked)->request->now_ms / 1000);
}

static void
put_form(dynamo_text *text, const body *of, const form *form)
{
	const queue_request *request = of->request;
	int			depth = text->depth;
	size_t		before_riders = strcspn(form->members, RIDERS);
	size_t		from;

	dynamo_put_table(text, of->table);
	if (form->limit == 0)
	{
		dynamo_text_open(text, "Key", '{');
		put_keys(text, form->item, request, request->number);
		dynamo_text_close(text, depth);
	}
	from = text->len;
	dynamo_text_raw(text, "%.*s", (int) before_riders, form->members);
	if (form->members[before_riders] != '\0')
	{
		/* A push sets the attributes of jobs that ride; a drop removes them. */
		bool		push = request->kind == QUEUE_PUSH;

		for (int i = 0; i < request->jobs && (request->rides || !push); i++)
			dynamo_text_raw(text, push ? ", #job%d = :job%d" : ", #job%d", i, i);
		dynamo_text_raw(text, "%s", form->members + before_riders + 1);
	}
	dynamo_put_placeholders(text, from, put_name, put_value, of);
}

/* ---- transactions ---- */

#define PARTS 2					/* braces that are open in the list of parts: the body's and the
								 * list's own */
#define ITEM 5					/* braces that are open in an item: those, the part's, its
								 * operation's, and the item's own */

static void
start_part(dynamo_text *text, const char *what)
{
	dynamo_text_close(text, PARTS);
	dynamo_text_open(text, NULL, '{');
	dynamo_text_open(text, what, '{');
}

static void
put_part(dynamo_text *text, const char *what, const body *of, const form *form)
{
	start_part(text, what);
	put_form(text, of, form);
}

static void
start_item(dynamo_text *text, const char *table)
{
	start_part(text, "Put");
	dynamo_put_table(text, table);
	dynamo_text_open(text, "Item", '{');
}

/* Ends the item, and appends its condition. */
static void
put_condition(dynamo_text *text, const char *condition, const body *of)
{
	size_t		from;

	dynamo_text_close(text, ITEM - 1);
	from = text->len;
	dynamo_text_raw(text, "%s", condition);
	dynamo_put_placeholders(text, from, NULL, put_seconds, of);
}

/*
 * The jobs get the numbers after the head's.  If another push has used these, the condition on seq
 * refuses this one.
 */
static void
put_push(dynamo_text *text, const body *of)
{
	const queue_request *request = of->request;
	size_t		offset = 0;
	queue_job	job;
	const char *bytes;

	put_part(text, "Update", of, request->first ? &first_push : &later_push);
	for (int i = 1; i <= request->jobs && !text->failed; i++)
	{
		if (!next_job(of, &offset, &job, &bytes))
		{
			text->failed = true;
			return;
		}
		if (!request->rides)
		{
			start_item(text, of->table);
			put_keys(text, JOB, request, request->seq + i);
			put_job(text, of, &job, bytes);
			put_condition(text, IF("attribute_not_exists(#pk)"), of);
		}
		if (job.id_len > 0)
		{
			char		pk[KEY_SIZE];

			snprintf(pk, sizeof(pk), "id#%s", request->queue);
			start_item(text, of->table);
			dynamo_put_s(text, "pk", pk);
			dynamo_put_text(text, "sk", bytes, job.id_len);
			dynamo_put_s(text, "resource", request->resource);
			dynamo_put_s(text, "digest", job.digest);
			dynamo_put_n(text, "number", request->seq + i);
			dynamo_put_n(text, "ttl", request->now_ms / 1000 + request->dedup_s);
			put_condition(text, IF_ELSE_SHOW("attribute_not_exists(#pk) OR #ttl < :now"), of);
		}
	}
}

/*
 * Buries a job: writes the dead job and finishes the job in one transaction, so that it is never
 * both dead and worked on.  The payload is the tail.
 */
static void
put_bury(dynamo_text *text, const body *of)
{
	const queue_request *request = of->request;

	put_part(text, "Update", of, &forms[request->last ? QUEUE_COMPLETE_LAST : QUEUE_COMPLETE]);
	start_item(text, of->table);
	put_keys(text, DEAD, request, 0);
	dynamo_put_s(text, "resource", request->resource);
	dynamo_put_n(text, "number", request->number);
	dynamo_put_text(text, "payload", of->tail, request->tail_len);
	dynamo_put_n(text, "pushedAt", request->pushed_at);
	dynamo_put_n(text, "attempts", request->attempts);
	dynamo_put_n(text, "due", request->now_ms);
	if (request->error[0] != '\0')
		dynamo_put_s(text, "lastError", request->error);
	if (!request->rides)
		put_part(text, "Delete", of, &forms[QUEUE_DELETE_JOB]);
}

/* ---- the rest ---- */

static void
put_create_table(dynamo_text *text, const char *table, const queue_request *request)
{
	dynamo_put_table(text, table);
	dynamo_text_raw(text, ",\"AttributeDefinitions\":["
					"{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"},"
					"{\"AttributeName\":\"sk\",\"AttributeType\":\"S\"},"
					"{\"AttributeName\":\"ready\",\"AttributeType\":\"S\"},"
					"{\"AttributeName\":\"due\",\"AttributeType\":\"N\"}]"
					",\"KeySchema\":["
					"{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"},"
					"{\"AttributeName\":\"sk\",\"KeyType\":\"RANGE\"}]"
					",\"GlobalSecondaryIndexes\":[{\"IndexName\":\"ready\",\"KeySchema\":["
					"{\"AttributeName\":\"ready\",\"KeyType\":\"HASH\"},"
					"{\"AttributeName\":\"due\",\"KeyType\":\"RANGE\"}]"
					",\"Projection\":{\"ProjectionType\":\"INCLUDE\""
					",\"NonKeyAttributes\":[\"retryAt\",\"attempts\",\"paused\"]}");
	dynamo_put_units(text, &request->creation);
	dynamo_text_raw(text, "}]");
	dynamo_put_creation(text, &request->creation);
}

char *
queue_build(const char *table, const queue_request *request, const char *tail)
{
	const body	of = {table, request, tail};
	dynamo_table described = {.name = table};
	dynamo_text text;

	if (request->kind == QUEUE_DESCRIBE_TABLE)
		return dynamo_build_describe_table(&described);
	if (request->kind == QUEUE_ENABLE_TTL)
		return dynamo_build_update_ttl(&described);
	dynamo_text_start(&text, '{', BODY_ROOM + request->tail_len);
	/* A transaction: PUSH, BURY and the two cancellations. */
	if (queue_op(request->kind) == DYNAMO_QUEUE_TRANSACT)
	{
		dynamo_text_name(&text, "ClientRequestToken");
		dynamo_text_string(&text, request->uuid, strlen(request->uuid));
		dynamo_text_raw(&text, CAPACITY);
		dynamo_text_open(&text, "TransactItems", '[');
	}
	if (request->kind == QUEUE_CREATE_TABLE)
		put_create_table(&text, table, request);
	else if (request->kind == QUEUE_PUSH)
		put_push(&text, &of);
	else if (request->kind == QUEUE_BURY)
		put_bury(&text, &of);
	/* A cancelled job's number stays; the session that claims it finds no job, and finishes it. */
	else if (request->kind == QUEUE_CANCEL_RIDER)
		put_part(&text, "Update", &of, &unload);
	else if (request->kind == QUEUE_CANCEL)
	{
		put_part(&text, "ConditionCheck", &of, &not_next);
		put_part(&text, "Delete", &of, &delete_there);
	}
	else
	{
		const form *form = form_of(request);

		put_form(&text, &of, form);
		dynamo_text_raw(&text, CAPACITY);
		if (form->limit > 0)
			dynamo_text_raw(&text, ",\"Limit\":%d", form->limit);
		/* The tail is DynamoDB's own text of where the page begins. */
		if (form->limit > 0 && request->tail_len > 0)
			dynamo_text_raw(&text, ",\"ExclusiveStartKey\":%.*s", (int) request->tail_len, tail);
	}
	return dynamo_text_finish(&text);
}
