/*-------------------------------------------------------------------------
 *
 * dynamo_names.c
 *	  Names of the operations: in ddb_operations, in DynamoDB and in IAM.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo.h"

#include <string.h>

typedef struct op_names
{
	const char *name;
	const char *target;
	const char *action;
} op_names;

#define API(call) "DynamoDB_20120810." call, "dynamodb:" call

static const op_names names[DYNAMO_OP_COUNT] = {
	[DYNAMO_ACQUIRE] = {"acquire", API("UpdateItem")},
	[DYNAMO_RENEW] = {"renew", API("UpdateItem")},
	/* IAM has no action for BatchExecuteStatement, only for its statements. */
	[DYNAMO_RENEW_BATCH] = {"renew_batch", "DynamoDB_20120810.BatchExecuteStatement",
	"dynamodb:PartiQLUpdate"},
	[DYNAMO_HAND_OVER] = {"hand_over", API("UpdateItem")},
	[DYNAMO_RELEASE] = {"release", API("UpdateItem")},
	[DYNAMO_BAR] = {"bar", API("UpdateItem")},
	[DYNAMO_BAR_NEW] = {"bar_new", API("UpdateItem")},
	[DYNAMO_MARK] = {"mark", API("UpdateItem")},
	[DYNAMO_READ] = {"read", API("GetItem")},
	[DYNAMO_DESCRIBE_TABLE] = {"describe_table", API("DescribeTable")},
	[DYNAMO_CREATE_TABLE] = {"create_table", API("CreateTable")},
	[DYNAMO_UPDATE_TTL] = {"update_ttl", API("UpdateTimeToLive")},
	[DYNAMO_SCAN] = {"scan", API("Scan")},
	[DYNAMO_QUERY] = {"query", API("Query")},
	[DYNAMO_DELETE] = {"delete", API("DeleteItem")},
	[DYNAMO_FORCE_RELEASE] = {"force_release", API("UpdateItem")},
	[DYNAMO_IDENTIFY] = {"identify", API("UpdateItem")},
	[DYNAMO_REPLACE] = {"replace", API("PutItem")},
	[DYNAMO_QUEUE_READ] = {"queue_read", API("GetItem")},
	[DYNAMO_QUEUE_QUERY] = {"queue_query", API("Query")},
	[DYNAMO_QUEUE_SCAN] = {"queue_scan", API("Scan")},
	/* IAM has no action for a transaction, only for what is in it: mostly this. */
	[DYNAMO_QUEUE_TRANSACT] = {"queue_transact", "DynamoDB_20120810.TransactWriteItems",
	"dynamodb:PutItem"},
	[DYNAMO_QUEUE_UPDATE] = {"queue_update", API("UpdateItem")},
	[DYNAMO_QUEUE_DELETE] = {"queue_delete", API("DeleteItem")},
	[DYNAMO_QUEUE_DESCRIBE_TABLE] = {"queue_describe_table", API("DescribeTable")},
	[DYNAMO_QUEUE_CREATE_TABLE] = {"queue_create_table", API("CreateTable")},
	[DYNAMO_QUEUE_UPDATE_TTL] = {"queue_update_ttl", API("UpdateTimeToLive")},
};

bool
dynamo_is_queue(dynamo_op op)
{
	return op >= DYNAMO_QUEUE_READ;
}

bool
dynamo_is_queue_write(dynamo_op op)
{
	return op == DYNAMO_QUEUE_TRANSACT || op == DYNAMO_QUEUE_UPDATE || op == DYNAMO_QUEUE_DELETE;
}

bool
dynamo_is_page(dynamo_op op)
{
	return op == DYNAMO_SCAN || op == DYNAMO_QUERY;
}

bool
dynamo_is_about_table(dynamo_op op)
{
	return op == DYNAMO_DESCRIBE_TABLE || op == DYNAMO_CREATE_TABLE ||
		op == DYNAMO_UPDATE_TTL || op >= DYNAMO_QUEUE_DESCRIBE_TABLE;
}

const char *
dynamo_target(dynamo_op op)
{
	return names[op].target;
}

const char *
dynamo_op_name(dynamo_op op)
{
	return names[op].name;
}

const char *
dynamo_action(dynamo_op op)
{
	return names[op].action;
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
	switch (kind)
	{
		case DYNAMO_SHARED_RENEW:
		case DYNAMO_SHARED_CHANGE:
		case DYNAMO_SHARED_RENEW_GATE:
			return DYNAMO_RENEW;
		case DYNAMO_SHARED_LEAVE:
		case DYNAMO_SHARED_LAST:
			return DYNAMO_RELEASE;
		case DYNAMO_SHARED_FORCE_RELEASE:
			return DYNAMO_FORCE_RELEASE;
		case DYNAMO_SHARED_OPEN:
		case DYNAMO_SHARED_JOIN:
		case DYNAMO_SHARED_REPLACE:
		case DYNAMO_SHARED_GATE:
			break;
	}
	return DYNAMO_ACQUIRE;
}
