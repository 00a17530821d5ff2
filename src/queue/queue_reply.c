/*-------------------------------------------------------------------------
 *
 * queue_reply.c
 *	  Replies about the queue's table, as rows without pointers.
 *
 * Every item is read alike: an attribute that it does not have is 0 or empty.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dynamo/dynamo_codec.h"

#define JOB "job#"				/* with a number behind it: the sort key of a job's item, or the
								 * attribute of a job that rides */
#define JOB_DIGITS 19
#define RIDERS_MOST 64			/* the most that are read; heads that ddblock writes have fewer */
#define ROOM_AT_FIRST 1024		/* first size of a packed reply */

/* The length of a text, which may be NULL. */
static uint32_t
length(const char *text)
{
	return text != NULL ? (uint32_t) strlen(text) : 0;
}

/* The parts of a partition key "what#queue#resource"; the resource may have more "#". */
static void
split_key(const char *pk, const char **queue, size_t *queue_len, const char **resource)
{
	const char *first = pk != NULL ? strchr(pk, '#') : NULL;
	const char *second;

	*queue = NULL;
	*queue_len = 0;
	*resource = NULL;
	if (first == NULL)
		return;
	*queue = first + 1;
	second = strchr(*queue, '#');
	*queue_len = second != NULL ? (size_t) (second - *queue) : strlen(*queue);
	if (second != NULL)
		*resource = second + 1;
}

/* The number behind "job#". */
static int64_t
job_number(const char *key)
{
	int64_t		number = strtoll(key + strlen(JOB), NULL, 10);

	return number > 0 ? number : 0;
}

/* If the attribute is a job that rides on this head and is not finished, what it has; else NULL. */
static const cJSON *
rider_in(const cJSON *attribute, const queue_row *head)
{
	const char *name = attribute->string;
	bool		named = name != NULL && strncmp(name, JOB, strlen(JOB)) == 0 &&
		strlen(name) == strlen(JOB) + JOB_DIGITS;
	int64_t		number = named ? job_number(name) : 0;

	return number > head->done && number <= head->seq ? dynamo_json_member(attribute, "M") : NULL;
}

static void
pack_rider(dynamo_text *to, const cJSON *attribute, const cJSON *job)
{
	const char *id = dynamo_json_attribute(job, "id");
	const char *payload = dynamo_json_attribute(job, "payload");
	queue_row	row;

	memset(&row, 0, sizeof(row));
	row.number = job_number(attribute->string);
	row.pushed_at = dynamo_json_positive(job, "pushedAt");
	row.id_len = length(id);
	row.payload_len = length(payload);
	dynamo_text_append(to, &row, sizeof(row));
	dynamo_text_append(to, id, row.id_len);
	dynamo_text_append(to, payload, row.payload_len);
}

/* Reads all but the lengths of texts, and the number of a job that has an item. */
static void
read_numbers(queue_row *row, const cJSON *item)
{
	memset(row, 0, sizeof(*row));
	row->seq = dynamo_json_positive(item, "seq");
	row->done = dynamo_json_positive(item, "done");
	row->token = dynamo_json_positive(item, "token");
	row->attempts = dynamo_json_positive(item, "attempts");
	row->turn = dynamo_json_positive(item, "due");
	row->due = dynamo_json_positive(item, dynamo_json_member(item, "retryAt") ? "retryAt" : "due");
	row->number = dynamo_json_positive(item, "number");
	row->pushed_at = dynamo_json_positive(item, "pushedAt");
	row->paused = dynamo_json_member(item, "paused") != NULL;
	dynamo_json_copy(row->digest, sizeof(row->digest), dynamo_json_attribute(item, "digest"));
}

bool
queue_refusing_head(const dynamo_reply *reply, queue_row *head)
{
	const cJSON *item = dynamo_json_member(reply->json, "Item");

	if (reply->status != DYNAMO_CONDITION_FAILED || !cJSON_IsObject(item))
		return false;
	read_numbers(head, item);
	return true;
}

static void
pack_row(dynamo_text *to, const cJSON *item)
{
	const char *pk = dynamo_json_attribute(item, "pk");
	const char *sk = dynamo_json_attribute(item, "sk");
	const char *id = dynamo_json_attribute(item, "id");
	const char *error = dynamo_json_attribute(item, "lastError");
	const char *payload = dynamo_json_attribute(item, "payload");
	const char *queue;
	const char *resource;
	size_t		queue_len;
	const cJSON *attribute;
	bool		is_head = dynamo_json_same(sk, "head");
	uint32_t	put = 0;
	queue_row	row;

	read_numbers(&row, item);
	split_key(pk, &queue, &queue_len, &resource);
	/*
	 * A caller's id is a sort key, too, and may begin with "job#"; but its partition key has no
	 * resource.
	 */
	if (resource != NULL && sk != NULL && strncmp(sk, JOB, strlen(JOB)) == 0)
		row.number = job_number(sk);
	else if (dynamo_json_same(pk, QUEUE_GUARD_KEY))
	{
		resource = dynamo_json_attribute(item, "name");
		id = dynamo_json_attribute(item, "identity");
	}
	else if (resource == NULL)	/* the item of a caller's id, or of a dead job: its sort key is
								 * the id */
	{
		resource = dynamo_json_attribute(item, "resource");
		id = sk;
	}
	row.queue_len = (uint32_t) queue_len;
	row.resource_len = length(resource);
	row.id_len = length(id);
	row.error_len = length(error);
	row.payload_len = length(payload);
	cJSON_ArrayForEach(attribute, item)
	{
		if (is_head && row.riders < RIDERS_MOST && rider_in(attribute, &row) != NULL)
			row.riders++;
	}

	dynamo_text_append(to, &row, sizeof(row));
	dynamo_text_append(to, queue, row.queue_len);
	dynamo_text_append(to, resource, row.resource_len);
	dynamo_text_append(to, id, row.id_len);
	dynamo_text_append(to, error, row.error_len);
	dynamo_text_append(to, payload, row.payload_len);
	cJSON_ArrayForEach(attribute, item)
	{
		const cJSON *job = put < row.riders ? rider_in(attribute, &row) : NULL;

		if (job == NULL)
			continue;
		pack_rider(to, attribute, job);
		put++;
	}
}

/* Do the keys have these names, in this order, and no others? */
static bool
has_keys(const cJSON *described, const char *hash, const char *range)
{
	const cJSON *schema = dynamo_json_member(described, "KeySchema");
	const char *first = dynamo_json_text(cJSON_GetArrayItem(schema, 0), "AttributeName");
	const char *second = dynamo_json_text(cJSON_GetArrayItem(schema, 1), "AttributeName");

	return dynamo_json_same(first, hash) && dynamo_json_same(second, range);
}

static bool
has_type(const cJSON *table, const char *attribute, const char *type)
{
	return dynamo_json_same(dynamo_key_type(table, attribute), type);
}

static bool
projects(const cJSON *index, const char *attribute)
{
	const cJSON *projection = dynamo_json_member(index, "Projection");
	const cJSON *name;

	cJSON_ArrayForEach(name, dynamo_json_member(projection, "NonKeyAttributes"))
	{
		if (dynamo_json_same(cJSON_GetStringValue(name), attribute))
			return true;
	}
	return dynamo_json_same(dynamo_json_text(projection, "ProjectionType"), "ALL");
}

/* Why a table cannot be a queue's, or NULL. */
static const char *
missing_in(const cJSON *table)
{
	const cJSON *index;

	if (cJSON_GetArraySize(dynamo_json_member(table, "Replicas")) > 0)
		return "It must not be a global table.";
	if (!has_keys(table, "pk", "sk") || !has_type(table, "pk", "S") ||
		!has_type(table, "sk", "S"))
		return "Its keys must be \"pk\" (S) and \"sk\" (S).";
	cJSON_ArrayForEach(index, dynamo_json_member(table, "GlobalSecondaryIndexes"))
	{
		if (dynamo_json_same(dynamo_json_text(index, "IndexName"), "ready") &&
			has_keys(index, "ready", "due") && has_type(table, "ready", "S") &&
			has_type(table, "due", "N") && projects(index, "retryAt") &&
			projects(index, "attempts") && projects(index, "paused"))
			return NULL;
	}
	return "It must have an index \"ready\" with the keys \"ready\" (S) and \"due\" (N)"
		" that projects \"retryAt\", \"attempts\" and \"paused\".";
}

static int
pack_rows(dynamo_text *to, const cJSON *json)
{
	const cJSON *table = dynamo_json_member(json, "Table");
	const cJSON *one = dynamo_json_member(json, "Item");
	const cJSON *item;
	const cJSON *reason;
	int			rows = 0;

	if (one == NULL)
		one = dynamo_json_member(json, "Attributes");
	if (table != NULL)
	{
		/* A described table: its status stands as id, and why it cannot be a queue's as error. */
		const char *status = dynamo_json_text(table, "TableStatus");
		const char *missing = missing_in(table);
		queue_row	row;

		memset(&row, 0, sizeof(row));
		row.is_protected = dynamo_is_protected(table);
		row.id_len = length(status);
		row.error_len = length(missing);
		dynamo_text_append(to, &row, sizeof(row));
		dynamo_text_append(to, status, row.id_len);
		dynamo_text_append(to, missing, row.error_len);
		return 1;
	}
	if (cJSON_IsObject(one))
	{
		pack_row(to, one);
		return 1;
	}
	cJSON_ArrayForEach(item, dynamo_json_member(json, "Items"))
	{
		pack_row(to, item);
		rows++;
	}
	/* A refused transaction: the items that refused it, if they exist. */
	cJSON_ArrayForEach(reason, dynamo_json_member(json, "CancellationReasons"))
	{
		item = dynamo_json_member(reason, "Item");
		if (item == NULL)
			continue;
		pack_row(to, item);
		rows++;
	}
	return rows;
}

char *
queue_pack(const dynamo_reply *reply, int64_t now_ms, size_t *len)
{
	/* Where the next page begins: DynamoDB's key, which goes back as it came. */
	const cJSON *key = dynamo_json_member(reply->json, "LastEvaluatedKey");
	char	   *next = cJSON_IsObject(key) ? cJSON_PrintUnformatted(key) : NULL;
	dynamo_text to = {.bytes = malloc(ROOM_AT_FIRST),.size = ROOM_AT_FIRST};
	queue_reply head;

	memset(&head, 0, sizeof(head));
	head.status = reply->status;
	head.now_ms = now_ms;
	head.next_len = length(next);
	/*
	 * If memory was short for the key, the page must not look like the last one: that would hide
	 * the rest.
	 */
	to.failed = to.bytes == NULL || (cJSON_IsObject(key) && next == NULL);
	dynamo_text_append(&to, &head, sizeof(head));
	dynamo_text_append(&to, next, head.next_len);
	cJSON_free(next);
	head.rows = pack_rows(&to, reply->json);
	if (to.failed)
	{
		free(to.bytes);
		return NULL;
	}
	memcpy(to.bytes, &head, sizeof(head));
	*len = to.len;
	return to.bytes;
}
