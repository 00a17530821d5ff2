/*-------------------------------------------------------------------------
 *
 * queue_request.c
 *	  Request bodies for the queue's table: reads, pages, the table; which body for which kind.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dynamo/dynamo_codec.h"
#include "queue/queue_head.h"
#include "queue/queue_transact.h"

#define BODY_ROOM 2048

#define FIND_LIMIT 25
#define LIST_LIMIT 100

/*
 * Deletes an item on condition that there is none.  A read shows the item as it was before a transaction
 * that is being applied; a write meets that transaction, and is refused.
 */
static void
put_check_gone(dynamo_text *text, const char *table, const char *pk, const char *sk)
{
	queue_put_item(text, table, pk, sk);
	dynamo_text_raw(text, ",\"ConditionExpression\":\"attribute_not_exists(#pk)\"");
	queue_put_names(text, "pk");
}

/* The first lock table counts; the refusal of another one shows it. */
static void
put_guard(dynamo_text *text, const char *table, const queue_request *request)
{
	queue_put_table(text, table);
	queue_put_key(text, QUEUE_GUARD_KEY, QUEUE_GUARD_KEY);
	dynamo_text_raw(text, QUEUE_CAPACITY);
	queue_put_expressions(text, "SET #identity = :identity, #name = :name",
						  "attribute_not_exists(#identity) OR #identity = :identity");
	queue_put_names(text, "identity name");
	queue_put_values(text);
	dynamo_put_s_member(text, ":identity", request->id);
	dynamo_put_s_member(text, ":name", request->resource);
	dynamo_text_raw(text, "}");
}

/* Where a page goes on is DynamoDB's own text, which comes back as it was. */
static void
put_page(dynamo_text *text, const queue_request *request, const char *tail, int limit)
{
	char	   *start;

	dynamo_text_raw(text, QUEUE_CAPACITY ",\"Limit\":");
	dynamo_text_int(text, limit);
	if (request->tail_len == 0)
		return;
	start = malloc(request->tail_len + 1);
	if (start == NULL)
	{
		text->failed = true;
		return;
	}
	memcpy(start, tail, request->tail_len);
	start[request->tail_len] = '\0';
	dynamo_text_raw(text, ",\"ExclusiveStartKey\":");
	dynamo_text_raw(text, start);
	free(start);
}

static void
put_find(dynamo_text *text, const char *table, const queue_request *request, const char *tail)
{
	queue_put_table(text, table);
	dynamo_text_raw(text, ",\"IndexName\":\"ready\",\"KeyConditionExpression\":\"#ready = :queue");
	dynamo_text_raw(text, request->all ? "\"" : " AND #due <= :now\"");
	put_page(text, request, tail, request->all ? LIST_LIMIT : FIND_LIMIT);
	queue_put_names(text, request->all ? "ready" : "ready due");
	queue_put_values(text);
	dynamo_put_s_member(text, ":queue", request->queue);
	if (!request->all)
		dynamo_put_n_member(text, ":now", request->now_ms);
	dynamo_text_raw(text, "}");
}

static void
put_list_jobs(dynamo_text *text, const char *table, const queue_request *request,
			  const char *tail)
{
	char		pk[QUEUE_KEY_SIZE];
	char		from[QUEUE_NUMBER_SIZE];
	char		to[QUEUE_NUMBER_SIZE];

	queue_resource_key(pk, request);
	queue_job_key(from, request->number);
	queue_job_key(to, request->to);
	queue_put_table(text, table);
	dynamo_text_raw(text, ",\"ConsistentRead\":true,\"KeyConditionExpression\":"
					"\"#pk = :pk AND #sk BETWEEN :from AND :to\""
					",\"ProjectionExpression\":\"#pk, #sk, #id, #pushedAt\"");
	put_page(text, request, tail, LIST_LIMIT);
	queue_put_names(text, "pk sk id pushedAt");
	queue_put_values(text);
	dynamo_put_s_member(text, ":pk", pk);
	dynamo_put_s_member(text, ":from", from);
	dynamo_put_s_member(text, ":to", to);
	dynamo_text_raw(text, "}");
}

static void
put_list_dead(dynamo_text *text, const char *table, const queue_request *request,
			  const char *tail)
{
	char		pk[QUEUE_KEY_SIZE];

	queue_part_key(pk, "dead", request);
	queue_put_table(text, table);
	dynamo_text_raw(text, ",\"ConsistentRead\":true,\"KeyConditionExpression\":\"#pk = :pk\"");
	/* Two payloads could be more than a reply may have. */
	put_page(text, request, tail, 1);
	queue_put_names(text, "pk");
	queue_put_values(text);
	dynamo_put_s_member(text, ":pk", pk);
	dynamo_text_raw(text, "}");
}

static void
put_list_all(dynamo_text *text, const char *table, const queue_request *request,
			 const char *tail)
{
	queue_put_table(text, table);
	dynamo_text_raw(text, ",\"ConsistentRead\":true"
					",\"FilterExpression\":\"begins_with(#sk, :job)\""
					",\"ProjectionExpression\":\"#pk, #sk\"");
	put_page(text, request, tail, LIST_LIMIT * 5);
	queue_put_names(text, "pk sk");
	queue_put_values(text);
	dynamo_put_s_member(text, ":job", "job#");
	dynamo_text_raw(text, "}");
}

static void
put_units(dynamo_text *text, const queue_request *request)
{
	if (request->read_units == 0)
		return;
	dynamo_text_raw(text, ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":");
	dynamo_text_int(text, request->read_units);
	dynamo_text_raw(text, ",\"WriteCapacityUnits\":");
	dynamo_text_int(text, request->write_units);
	dynamo_text_raw(text, "}");
}

static void
put_create_table(dynamo_text *text, const char *table, const queue_request *request)
{
	queue_put_table(text, table);
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
					",\"Projection\":{\"ProjectionType\":\"KEYS_ONLY\"}");
	put_units(text, request);
	dynamo_text_raw(text, "}],\"BillingMode\":");
	dynamo_text_raw(text, request->read_units > 0 ? "\"PROVISIONED\"" : "\"PAY_PER_REQUEST\"");
	put_units(text, request);
}

/* False if the tail is not whole.  Ends before the last brace of the body. */
static bool
put_body(dynamo_text *text, const char *table, const queue_request *request, const char *tail)
{
	char		pk[QUEUE_KEY_SIZE];
	char		sk[QUEUE_NUMBER_SIZE];

	queue_resource_key(pk, request);
	queue_job_key(sk, request->number);
	switch (request->kind)
	{
		case QUEUE_CREATE_TABLE:
			put_create_table(text, table, request);
			break;
		case QUEUE_DESCRIBE_TABLE:
			queue_put_table(text, table);
			break;
		case QUEUE_ENABLE_TTL:
			queue_put_table(text, table);
			dynamo_text_raw(text, ",\"TimeToLiveSpecification\":"
							"{\"Enabled\":true,\"AttributeName\":\"ttl\"}");
			break;
		case QUEUE_GUARD:
			put_guard(text, table, request);
			break;
		case QUEUE_READ_HEAD:
			queue_put_item(text, table, pk, "head");
			dynamo_text_raw(text, ",\"ConsistentRead\":true");
			break;
		case QUEUE_READ_JOB:
			queue_put_item(text, table, pk, sk);
			dynamo_text_raw(text, ",\"ConsistentRead\":true");
			break;
		case QUEUE_READ_DEAD:
			queue_part_key(pk, "dead", request);
			queue_put_item(text, table, pk, request->id);
			dynamo_text_raw(text, ",\"ConsistentRead\":true");
			break;
		case QUEUE_FIND:
			put_find(text, table, request, tail);
			break;
		case QUEUE_LIST_JOBS:
			put_list_jobs(text, table, request, tail);
			break;
		case QUEUE_LIST_DEAD:
			put_list_dead(text, table, request, tail);
			break;
		case QUEUE_LIST_ALL:
			put_list_all(text, table, request, tail);
			break;
		case QUEUE_CLAIM:
			queue_put_claim(text, table, request);
			dynamo_text_raw(text, "}");
			break;
		case QUEUE_COMPLETE:
		case QUEUE_COMPLETE_LAST:
			queue_put_complete(text, table, request);
			break;
		case QUEUE_FAIL:
			queue_put_fail(text, table, request);
			dynamo_text_raw(text, "}");
			break;
		case QUEUE_DROP:
			queue_put_drop(text, table, request);
			dynamo_text_raw(text, "}");
			break;
		case QUEUE_PAUSE:
			queue_put_pause(text, table, request);
			dynamo_text_raw(text, "}");
			break;
		case QUEUE_RESUME:
			queue_put_pause(text, table, request);
			break;
		case QUEUE_CHECK_GONE:
			put_check_gone(text, table, pk, sk);
			break;
		case QUEUE_DELETE_JOB:
			queue_put_item(text, table, pk, sk);
			break;
		case QUEUE_DELETE_DEAD:
			queue_part_key(pk, "dead", request);
			queue_put_item(text, table, pk, request->id);
			break;
		case QUEUE_CANCEL:
			queue_put_cancel(text, table, request);
			return true;
		case QUEUE_BURY:
			queue_put_bury(text, table, request, tail);
			return true;
		case QUEUE_PUSH:
			return queue_put_push(text, table, request, tail);
	}
	dynamo_text_raw(text, "}");
	return true;
}

char *
queue_build(const char *table, const queue_request *request, const char *tail)
{
	dynamo_text text;
	char	   *body;
	bool		whole;

	dynamo_text_start(&text, BODY_ROOM + request->tail_len);
	whole = put_body(&text, table, request, tail);
	body = dynamo_text_finish(&text);
	if (whole)
		return body;
	free(body);
	return NULL;
}
