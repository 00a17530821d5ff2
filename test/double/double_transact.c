/*-------------------------------------------------------------------------
 *
 * double_transact.c
 *	  TransactWriteItems.
 *
 * Each write is a call of its own.  They take effect one after the other; if
 * any is refused, all are undone.  Nobody can tell, because no two of them may
 * be about one item, and no other request comes in between.
 *
 * A ClientRequestToken is remembered with its request for ever, while DynamoDB
 * forgets it after ten minutes.  A request that comes again costs what reading
 * its items would.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double_private.h"

#define WRITES_MAX 100
#define CANCELLED "TransactionCanceledException"

/* One write on its way. */
typedef struct write_job
{
	double_call call;			/* its request is a member of one of TransactItems */
	cJSON	   *key;
	cJSON	   *before;			/* the item as it was, NULL: there was none */
	bool		done;
} write_job;

static const struct
{
	const char *name;
	double_handler handler;
	const char *key;
	const char *action;			/* of IAM's */
}			writes[] =
{
	{"Update", double_update, "Key", "UpdateItem"},
	{"Put", double_put_item, "Item", "PutItem"},
	{"Delete", double_delete_item, "Key", "DeleteItem"},
	{"ConditionCheck", double_check_condition_only, "Key", "ConditionCheckItem"},
};

static bool
all_allowed(double_call *call, const cJSON *items)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, items)
	{
		for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++)
		{
			if (!double_request_allowed(call, writes[i].action,
										cJSON_GetObjectItemCaseSensitive(item, writes[i].name)))
				return false;
		}
	}
	return true;
}

/* Runs the write that the member of TransactItems has. */
static bool
run(write_job *job, double_call *outer, cJSON *item)
{
	double_call *call = &job->call;
	double_entry *entry;
	cJSON	   *key;

	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++)
	{
		call->request = cJSON_GetObjectItemCaseSensitive(item, writes[i].name);
		if (call->request == NULL)
			continue;
		call->d = outer->d;
		call->reply = cJSON_CreateObject();
		key = cJSON_GetObjectItemCaseSensitive(call->request, writes[i].key);
		if (!double_find_table(call) || !double_check_values(call, key) ||
			!double_check_key_values(call, key))
			return false;
		job->key = double_table_key(call->table, key);
		entry = double_table_find(call->table, job->key);
		job->before = entry != NULL ? cJSON_Duplicate(entry->item, 1) : NULL;
		job->done = writes[i].handler(call);
		return job->done;
	}
	return double_fail(call, DOUBLE_VALIDATION, "TransactItems can only contain one of Check,"
					   " Put, Update or Delete");
}

/* Two times what the writes alone would cost, and two times what reading the items would. */
static void
count_units(const write_job *jobs, int count, double_transaction *token)
{
	for (int i = 0; i < count; i++)
	{
		const double_entry *entry = double_table_find(jobs[i].call.table, jobs[i].key);
		size_t		before = jobs[i].before != NULL ? double_item_bytes(jobs[i].before) : 0;
		size_t		after = entry != NULL ? entry->bytes : 0;

		token->write_units += 2 * double_write_units(before, after);
		token->read_units += 2 * double_read_units(after, true);
	}
}

static void
undo(write_job *job)
{
	double_table *table = job->call.table;
	double_entry *entry;

	if (!job->done)
		return;
	entry = double_table_find(table, job->key);
	if (job->before != NULL)
		double_table_put(table, entry, job->before);
	else if (entry != NULL)
		double_table_delete(table, entry);
	job->before = NULL;
}

static bool
is_repeated(const write_job *jobs, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (jobs[i].call.table == jobs[count].call.table &&
			cJSON_Compare(jobs[i].key, jobs[count].key, 1))
			return true;
	}
	return false;
}

/* What each write says of a transaction that is cancelled. */
static bool
cancel(double_call *call, write_job *jobs, int count)
{
	char		codes[DOUBLE_MESSAGE_SIZE - 128] = "";

	call->reasons = cJSON_CreateArray();
	for (int i = 0; i < count; i++)
	{
		double_call *one = &jobs[i].call;
		cJSON	   *reason = cJSON_CreateObject();
		char		code[64] = "None";

		if (one->type != NULL)
			double_statement_code(one->type, code, sizeof(code));
		cJSON_AddStringToObject(reason, "Code", code);
		if (one->type != NULL)
			cJSON_AddStringToObject(reason, "Message", one->message);
		if (one->item != NULL)
			cJSON_AddItemToObject(reason, "Item", one->item);
		one->item = NULL;
		cJSON_AddItemToArray(call->reasons, reason);
		snprintf(codes + strlen(codes), sizeof(codes) - strlen(codes), "%s%s",
				 i > 0 ? ", " : "", code);
	}
	return double_fail(call, CANCELLED, "Transaction cancelled, please refer cancellation reasons"
					   " for specific reasons [%s]", codes);
}

static void
add_capacity(double_call *call, const cJSON *items, double units)
{
	const cJSON *wanted = cJSON_GetObjectItemCaseSensitive(call->request,
														   "ReturnConsumedCapacity");
	cJSON	   *capacity;
	char		text[32];

	if (!cJSON_IsString(wanted) || strcmp(wanted->valuestring, "TOTAL") != 0)
		return;
	snprintf(text, sizeof(text), "%.1f", units);
	capacity = cJSON_CreateObject();
	cJSON_AddItemToObject(capacity, "TableName", cJSON_Duplicate(
						  cJSON_GetObjectItemCaseSensitive(items->child->child, "TableName"), 1));
	cJSON_AddRawToObject(capacity, "CapacityUnits", text);
	cJSON_AddItemToArray(cJSON_AddArrayToObject(call->reply, "ConsumedCapacity"), capacity);
}

/* All or none. */
static bool
run_all(double_call *call, const cJSON *items, write_job *jobs, int count,
		double_transaction *token)
{
	bool		good = true;
	bool		repeated = false;
	int			i = 0;
	cJSON	   *item;

	cJSON_ArrayForEach(item, items)
	{
		good &= run(&jobs[i], call, item);
		repeated |= jobs[i].key != NULL && is_repeated(jobs, i);
		i++;
	}
	if (good && !repeated)
	{
		count_units(jobs, count, token);
		add_capacity(call, items, token->write_units);
		return true;
	}
	for (i = count - 1; i >= 0; i--)
		undo(&jobs[i]);
	if (repeated)
		return double_fail(call, DOUBLE_VALIDATION, "Transaction request cannot include multiple"
						   " operations on one item");
	for (i = 0; i < count; i++)
	{
		if (jobs[i].call.type != NULL &&
			strcmp(jobs[i].call.type, "ConditionalCheckFailedException") != 0)
			return double_fail(call, jobs[i].call.type, "%s", jobs[i].call.message);
	}
	return cancel(call, jobs, count);
}

static void
free_job(write_job *job)
{
	for (int i = 0; i < DOUBLE_USE_COUNT; i++)
		double_bound_free(&job->call.bound[i]);
	cJSON_Delete(job->call.item);
	cJSON_Delete(job->call.reply);
	cJSON_Delete(job->key);
	cJSON_Delete(job->before);
}

/* The request that was sent with this token before, or NULL. */
static double_transaction *
remembered(const dynamo_double *d, const char *name)
{
	double_transaction *token = d->transactions[double_hash(name, strlen(name)) %
		DOUBLE_CACHE_BUCKETS];

	while (token != NULL && strcmp(token->name, name) != 0)
		token = token->next;
	return token;
}

static void
remember(dynamo_double *d, double_transaction *token)
{
	double_transaction **bucket = &d->transactions[double_hash(token->name, strlen(token->name)) %
		DOUBLE_CACHE_BUCKETS];

	token->next = *bucket;
	*bucket = token;
}

static void
free_transaction(double_transaction *token)
{
	free(token->name);
	free(token->request);
	free(token);
}

void
double_transactions_clear(dynamo_double *d)
{
	for (int i = 0; i < DOUBLE_CACHE_BUCKETS; i++)
	{
		while (d->transactions[i] != NULL)
		{
			double_transaction *next = d->transactions[i]->next;

			free_transaction(d->transactions[i]);
			d->transactions[i] = next;
		}
	}
}

/* The same again, or something else under its token. */
static bool
answer_again(double_call *call, const cJSON *items, const double_transaction *token)
{
	char	   *text = cJSON_PrintUnformatted(items);
	bool		same = strcmp(token->request, text) == 0;

	free(text);
	if (!same)
		return double_fail(call, "IdempotentParameterMismatchException",
						   "The request uses the same client token as a previous, but"
						   " non-identical request.");
	add_capacity(call, items, token->read_units);
	return true;
}

static bool
write_all(double_call *call, const cJSON *items, int count, const char *name)
{
	write_job  *jobs = calloc((size_t) count, sizeof(write_job));
	double_transaction *token = calloc(1, sizeof(double_transaction));
	bool		good;

	if (name != NULL)
	{
		token->name = strdup(name);
		token->request = cJSON_PrintUnformatted(items);
	}
	good = run_all(call, items, jobs, count, token);
	for (int i = 0; i < count; i++)
		free_job(&jobs[i]);
	free(jobs);
	if (good && name != NULL)
		remember(call->d, token);
	else
		free_transaction(token);
	return good;
}

bool
double_transact_write(double_call *call)
{
	cJSON	   *items = cJSON_GetObjectItemCaseSensitive(call->request, "TransactItems");
	int			count = cJSON_GetArraySize(items);
	const char *name;
	const double_transaction *token;

	if (!cJSON_IsArray(items) || count < 1 || count > WRITES_MAX)
		return double_fail(call, DOUBLE_VALIDATION, "1 validation error detected: Value at"
						   " 'transactItems' failed to satisfy constraint: Member must have"
						   " length less than or equal to %d", WRITES_MAX);
	if (!all_allowed(call, items) || !double_text(call, "ClientRequestToken", &name))
		return false;
	token = name != NULL ? remembered(call->d, name) : NULL;
	return token != NULL ? answer_again(call, items, token) :
		write_all(call, items, count, name);
}
