/*-------------------------------------------------------------------------
 *
 * dynamo_names.c
 *	  The operations: their names in ddb_operations, and DynamoDB's and IAM's for the calls that
 *	  they are.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <string.h>

#define API(call) "DynamoDB_20120810." call, "dynamodb:" call

static const struct
{
	const char *target;
	const char *action;
}			apis[] = {
	[API_GET_ITEM] = {API("GetItem")},
	[API_UPDATE_ITEM] = {API("UpdateItem")},
	[API_PUT_ITEM] = {API("PutItem")},
	[API_DELETE_ITEM] = {API("DeleteItem")},
	[API_QUERY] = {API("Query")},
	[API_SCAN] = {API("Scan")},
	/*
	 * IAM has no actions for these two, only for the statements and writes in them: mostly these.
	 */
	[API_BATCH] = {"DynamoDB_20120810.BatchExecuteStatement", "dynamodb:PartiQLUpdate"},
	[API_TRANSACT] = {"DynamoDB_20120810.TransactWriteItems", "dynamodb:PutItem"},
	[API_DESCRIBE_TABLE] = {API("DescribeTable")},
	[API_CREATE_TABLE] = {API("CreateTable")},
	[API_UPDATE_TTL] = {API("UpdateTimeToLive")},
	[API_DESCRIBE_TTL] = {API("DescribeTimeToLive")},
};

static const struct
{
	const char *name;
	dynamo_api	api;
}			ops[DYNAMO_OP_COUNT] = {
	[DYNAMO_ACQUIRE] = {"acquire", API_UPDATE_ITEM},
	[DYNAMO_RENEW] = {"renew", API_UPDATE_ITEM},
	[DYNAMO_RENEW_BATCH] = {"renew_batch", API_BATCH},
	[DYNAMO_HAND_OVER] = {"hand_over", API_UPDATE_ITEM},
	[DYNAMO_RELEASE] = {"release", API_UPDATE_ITEM},
	[DYNAMO_BAR] = {"bar", API_UPDATE_ITEM},
	[DYNAMO_BAR_NEW] = {"bar_new", API_UPDATE_ITEM},
	[DYNAMO_MARK] = {"mark", API_UPDATE_ITEM},
	[DYNAMO_READ] = {"read", API_GET_ITEM},
	[DYNAMO_DESCRIBE_TABLE] = {"describe_table", API_DESCRIBE_TABLE},
	[DYNAMO_CREATE_TABLE] = {"create_table", API_CREATE_TABLE},
	[DYNAMO_UPDATE_TTL] = {"update_ttl", API_UPDATE_TTL},
	[DYNAMO_DESCRIBE_TTL] = {"describe_ttl", API_DESCRIBE_TTL},
	[DYNAMO_SCAN] = {"scan", API_SCAN},
	[DYNAMO_QUERY] = {"query", API_QUERY},
	[DYNAMO_DELETE] = {"delete", API_DELETE_ITEM},
	[DYNAMO_FORCE_RELEASE] = {"force_release", API_UPDATE_ITEM},
	[DYNAMO_IDENTIFY] = {"identify", API_UPDATE_ITEM},
	[DYNAMO_REPLACE] = {"replace", API_PUT_ITEM},
	[DYNAMO_QUEUE_READ] = {"queue_read", API_GET_ITEM},
	[DYNAMO_QUEUE_QUERY] = {"queue_query", API_QUERY},
	[DYNAMO_QUEUE_SCAN] = {"queue_scan", API_SCAN},
	[DYNAMO_QUEUE_TRANSACT] = {"queue_transact", API_TRANSACT},
	[DYNAMO_QUEUE_UPDATE] = {"queue_update", API_UPDATE_ITEM},
	[DYNAMO_QUEUE_DELETE] = {"queue_delete", API_DELETE_ITEM},
	[DYNAMO_QUEUE_DESCRIBE_TABLE] = {"queue_describe_table", API_DESCRIBE_TABLE},
	[DYNAMO_QUEUE_CREATE_TABLE] = {"queue_create_table", API_CREATE_TABLE},
	[DYNAMO_QUEUE_UPDATE_TTL] = {"queue_update_ttl", API_UPDATE_TTL},
	[DYNAMO_QUEUE_DESCRIBE_TTL] = {"queue_describe_ttl", API_DESCRIBE_TTL},
};

dynamo_api
dynamo_api_of(dynamo_op op)
{
	return ops[op].api;
}

bool
dynamo_is_queue(dynamo_op op)
{
	return op >= DYNAMO_QUEUE_READ;
}

bool
dynamo_is_queue_write(dynamo_op op)
{
	return dynamo_is_queue(op) && (dynamo_is_single_write(op) || ops[op].api == API_TRANSACT);
}

bool
dynamo_is_single_write(dynamo_op op)
{
	return ops[op].api == API_UPDATE_ITEM || ops[op].api == API_PUT_ITEM ||
		ops[op].api == API_DELETE_ITEM;
}

bool
dynamo_is_page(dynamo_op op)
{
	return op == DYNAMO_SCAN || op == DYNAMO_QUERY;
}

bool
dynamo_is_about_table(dynamo_op op)
{
	return dynamo_is_description(op) || ops[op].api == API_CREATE_TABLE ||
		ops[op].api == API_UPDATE_TTL;
}

bool
dynamo_is_description(dynamo_op op)
{
	return ops[op].api == API_DESCRIBE_TABLE || ops[op].api == API_DESCRIBE_TTL;
}

const char *
dynamo_target(dynamo_op op)
{
	return apis[ops[op].api].target;
}

const char *
dynamo_mode_name(lock_mode mode)
{
	static const char *const names[MODE_COUNT] = {
		[MODE_EXCLUSIVE] = "exclusive",[MODE_SHARED] = "shared",[MODE_SEMAPHORE] = "semaphore"
	};

	return names[mode];
}

const char *
dynamo_op_name(dynamo_op op)
{
	return ops[op].name;
}

const char *
dynamo_action(dynamo_op op)
{
	return apis[ops[op].api].action;
}

const char *
dynamo_incarnation(const char *owner)
{
	const char *slash = strrchr(owner, '/');

	return slash != NULL ? slash + 1 : owner;
}

const dynamo_entry *
dynamo_find_entry(const dynamo_shared *shared, const char *incarnation)
{
	for (int i = 0; shared != NULL && shared->current && i < shared->count; i++)
	{
		if (strcmp(shared->entries[i].incarnation, incarnation) == 0)
			return &shared->entries[i];
	}
	return NULL;
}

dynamo_op
dynamo_shared_op(dynamo_shared_kind kind)
{
	static const dynamo_op of[] = {
		[DYNAMO_SHARED_OPEN] = DYNAMO_ACQUIRE,
		[DYNAMO_SHARED_JOIN] = DYNAMO_ACQUIRE,
		[DYNAMO_SHARED_REPLACE] = DYNAMO_ACQUIRE,
		[DYNAMO_SHARED_GATE] = DYNAMO_ACQUIRE,
		[DYNAMO_SHARED_RENEW] = DYNAMO_RENEW,
		[DYNAMO_SHARED_CHANGE] = DYNAMO_RENEW,
		[DYNAMO_SHARED_RENEW_GATE] = DYNAMO_RENEW,
		[DYNAMO_SHARED_LEAVE] = DYNAMO_RELEASE,
		[DYNAMO_SHARED_LAST] = DYNAMO_RELEASE,
		[DYNAMO_SHARED_FORCE_RELEASE] = DYNAMO_FORCE_RELEASE,
	};

	return of[kind];
}
