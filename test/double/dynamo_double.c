/*-------------------------------------------------------------------------
 *
 * dynamo_double.c
 *	  The double's entrance: finds the operation, writes the reply.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo_double.h"

#include <stdlib.h>
#include <string.h>

#include "double_private.h"

#define TARGET_PREFIX "DynamoDB_20120810."

typedef struct operation
{
	const char *name;
	double_handler handler;
} operation;

static const operation operations[] = {
	{"UpdateItem", double_update},
	{"GetItem", double_get_item},
	{"BatchExecuteStatement", double_batch_statements},
	{"PutItem", double_put_item},
	{"DeleteItem", double_delete_item},
	{"Scan", double_scan},
	{"Query", double_query},
	{"TransactWriteItems", double_transact_write},
	{"ExecuteStatement", double_execute_statement},
	{"CreateTable", double_create_table},
	{"DescribeTable", double_describe_table},
	{"DeleteTable", double_delete_table},
	{"UpdateTimeToLive", double_update_ttl},
	{"DescribeTimeToLive", double_describe_ttl},
};

dynamo_double *
dynamo_double_new(void)
{
	return calloc(1, sizeof(dynamo_double));
}

void
dynamo_double_free(dynamo_double *d)
{
	while (d->tables != NULL)
	{
		double_table *next = d->tables->next;

		double_table_free(d->tables);
		d->tables = next;
	}
	double_cache_clear(d);
	double_transactions_clear(d);
	free(d);
}

void
dynamo_double_limit(dynamo_double *d, bool (*admit) (void *context, uint64_t item),
					void *context)
{
	d->admit = admit;
	d->admit_context = context;
}

static double_handler
handler_of(const char *target)
{
	if (strncmp(target, TARGET_PREFIX, strlen(TARGET_PREFIX)) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
	{
		if (strcmp(target + strlen(TARGET_PREFIX), operations[i].name) == 0)
			return operations[i].handler;
	}
	return NULL;
}

static bool
serve(double_call *call, const char *target)
{
	double_handler handler = handler_of(target);

	if (handler == NULL)
		return double_fail(call, "UnknownOperationException",
						   "An unknown operation was requested.");
	if (!cJSON_IsObject(call->request))
		return double_fail(call, "SerializationException", "the request is no JSON object");
	return double_request_allowed(call, target + strlen(TARGET_PREFIX), call->request) &&
		handler(call);
}

static int
answer(double_call *call, const char *target, const char *body, size_t len,
	   char **reply, size_t *reply_len)
{
	int			status = 200;

	double_cache_grow(call->d);
	call->request = cJSON_ParseWithLength(body, len);
	call->reply = cJSON_CreateObject();
	if (!serve(call, target))
	{
		cJSON_Delete(call->reply);
		call->reply = double_error_json(call->type, call->message, &status);
		if (call->item != NULL)
			cJSON_AddItemToObject(call->reply, "Item", call->item);
		if (call->reasons != NULL)
			cJSON_AddItemToObject(call->reply, "CancellationReasons", call->reasons);
	}
	*reply = cJSON_PrintUnformatted(call->reply);
	*reply_len = strlen(*reply);

	for (int i = 0; i < DOUBLE_USE_COUNT; i++)
		double_bound_free(&call->bound[i]);
	cJSON_Delete(call->reply);
	cJSON_Delete(call->request);
	return status;
}

int
dynamo_double_request(dynamo_double *d, const char *target, const char *body, size_t len,
					  char **reply, size_t *reply_len)
{
	double_call call = {.d = d};

	return answer(&call, target, body, len, reply, reply_len);
}

int
dynamo_double_batch(dynamo_double *d, const char *body, size_t len,
					const dynamo_double_fault *faults, int count,
					char **reply, size_t *reply_len)
{
	double_call call = {.d = d,.faults = faults,.fault_count = count};

	return answer(&call, TARGET_PREFIX "BatchExecuteStatement", body, len, reply,
				  reply_len);
}
