/*-------------------------------------------------------------------------
 *
 * double_batch.c
 *	  ExecuteStatement and BatchExecuteStatement.
 *
 * Each statement is a call of its own, with the statement's error in it;
 * what is wrong with the batch as a whole fails the outer call.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "double_statement.h"

#define BATCH_MAX 25

/* One statement on its way. */
typedef struct job
{
	double_call call;			/* its request is one of Statements */
	const double_statement *statement;	/* NULL: it has failed already */
	double_scope scope;			/* the parameters */
	cJSON	   *key;
	bool		addressed;		/* table and key are known */
	bool		good_key;		/* ... and the key's values will do */
	double_entry *entry;
	double		units;			/* consumed */
} job;

/* An equation of that key and a value, among those that all have to hold. */
static const cJSON *
key_value(const double_node *where, const char *name, const double_scope *scope)
{
	const cJSON *found;

	if (where == NULL)
		return NULL;
	if (where->kind == DOUBLE_AND)
	{
		found = key_value(where->args, name, scope);
		return found != NULL ? found : key_value(where->args->next, name, scope);
	}
	if (where->kind != DOUBLE_EQ)
		return NULL;
	for (const double_node *arg = where->args; arg != NULL; arg = arg->next)
	{
		const double_node *other = arg == where->args ? arg->next : where->args;

		if (arg->kind == DOUBLE_PATH && arg->path->next == NULL &&
			strcmp(arg->path->name, name) == 0 && other->kind == DOUBLE_VALUE)
			return double_value_of(other, scope);
	}
	return NULL;
}

static bool
read_key(job *j)
{
	double_call *call = &j->call;
	double_table *table = call->table;

	j->key = cJSON_CreateObject();
	for (int i = 0; i < table->key.count; i++)
	{
		const cJSON *value = key_value(j->statement->where, table->key.names[i], &j->scope);

		if (value == NULL)
			return double_fail(call, DOUBLE_VALIDATION, "Where clause does not contain a"
							   " mandatory equality on all key attributes");
		if (double_value_type(value) != table->key.types[i])
			return double_fail(call, DOUBLE_VALIDATION, "Key attribute's data type should"
							   " match its data type in table's schema: Key %s",
							   table->key.names[i]);
		cJSON_AddItemToObject(j->key, table->key.names[i], cJSON_Duplicate(value, 1));
	}
	j->addressed = true;
	j->good_key = double_check_key_values(call, j->key);
	return j->good_key;
}

/* Everything up to touching the item. */
static bool
prepare(job *j)
{
	double_call *call = &j->call;
	const cJSON *parameters = cJSON_GetObjectItemCaseSensitive(call->request, "Parameters");
	const cJSON *text = cJSON_GetObjectItemCaseSensitive(call->request, "Statement");
	const double_statement *statement = double_statement_parsed(call, text->valuestring);
	int			i = 0;
	cJSON	   *value;

	j->statement = statement;
	if (statement == NULL ||
		!double_allowed(call, statement->select ? "PartiQLSelect" : "PartiQLUpdate",
						statement->table, NULL))
		return false;
	if (cJSON_GetArraySize(parameters) < statement->parameters)
		return double_fail(call, DOUBLE_VALIDATION, "Number of parameters in request and"
						   " statement don't match.");
	if (statement->overlap[0] != '\0')
		return double_fail(call, DOUBLE_VALIDATION, "%s", statement->overlap);
	j->scope.values = calloc((size_t) cJSON_GetArraySize(parameters) + 1, sizeof(cJSON *));
	cJSON_ArrayForEach(value, parameters)
		j->scope.values[i++] = value;
	call->table = double_table_named(call->d, statement->table);
	if (call->table == NULL)
		return double_fail(call, "ResourceNotFoundException",
						   "Cannot do operations on a non-existent table");
	return read_key(j);
}

static bool
where_holds(const job *j)
{
	return j->entry != NULL &&
		double_condition_holds(j->statement->where, &j->scope, j->entry->item);
}

static bool
run_update(job *j)
{
	static const char *const shows[] = {"NONE", "ALL_OLD", NULL};
	double_call *call = &j->call;
	const double_statement *statement = j->statement;
	const char *show;
	cJSON	   *item;
	cJSON	   *returned;

	if (!double_choice(call, "ReturnValuesOnConditionCheckFailure", shows,
					   "Value '%s' at 'returnValuesOnConditionCheckFailure' failed to"
					   " satisfy constraint", &show) ||
		!double_admit(call, j->key))
		return false;
	j->units = double_write_units(j->entry != NULL ? j->entry->bytes : 0, 0);
	if (!where_holds(j))
		return double_condition_failed(call, j->entry, strcmp(show, "ALL_OLD") == 0);
	if (!double_store_update(call, j->entry, statement->actions, &j->scope, j->key, &item))
		return false;
	returned = statement->returned == NULL ? NULL :
		double_returned(statement->returned, statement->actions, &j->scope,
						j->entry->item, item);
	if (returned != NULL)
		cJSON_AddItemToObject(call->reply, "Item", returned);
	j->units = double_write_units(j->entry->bytes, double_item_bytes(item));
	double_table_put(call->table, j->entry, item);
	return true;
}

/* False: the call's error tells. */
static bool
run(job *j)
{
	j->entry = double_table_find(j->call.table, j->key);
	if (!j->statement->select)
		return run_update(j);
	j->units = double_read_units(j->entry != NULL ? j->entry->bytes : 0, false);
	if (where_holds(j))
		cJSON_AddItemToObject(j->call.reply, "Item", cJSON_Duplicate(j->entry->item, 1));
	return true;
}

static void
start_job(job *j, double_call *outer, cJSON *request)
{
	memset(j, 0, sizeof(*j));
	j->call.d = outer->d;
	j->call.request = request;
	j->call.reply = cJSON_CreateObject();
}

static void
end_job(job *j)
{
	free(j->scope.values);
	cJSON_Delete(j->key);
	cJSON_Delete(j->call.reply);
	cJSON_Delete(j->call.item);
}

static bool
check_parameters(double_call *call, const cJSON *request)
{
	const cJSON *parameters = cJSON_GetObjectItemCaseSensitive(request, "Parameters");
	cJSON	   *value;
	double_reason reason = {false, ""};

	if (parameters != NULL && !cJSON_IsArray(parameters) && !cJSON_IsNull(parameters))
		return double_fail(call, "SerializationException", "Parameters is no list");
	cJSON_ArrayForEach(value, parameters)
	{
		if (!double_value_check(value, &reason))
			return double_fail(call, reason.serialization ? "SerializationException" :
							   DOUBLE_VALIDATION, "%s", reason.text);
	}
	return true;
}

static bool
check_text(double_call *call, const cJSON *request)
{
	const cJSON *text = cJSON_GetObjectItemCaseSensitive(request, "Statement");

	if (text == NULL || cJSON_IsNull(text) ||
		(cJSON_IsString(text) && text->valuestring[0] == '\0'))
		return double_fail(call, DOUBLE_VALIDATION, "The statement was empty.");
	return cJSON_IsString(text) ||
		double_fail(call, "SerializationException", "Statement is no string");
}

bool
double_execute_statement(double_call *call)
{
	job			j;
	bool		done;
	cJSON	   *items;

	if (!check_parameters(call, call->request) || !check_text(call, call->request))
		return false;
	start_job(&j, call, call->request);
	done = prepare(&j) && run(&j);
	if (done)
	{
		cJSON	   *item = cJSON_DetachItemFromObjectCaseSensitive(j.call.reply, "Item");

		items = cJSON_AddArrayToObject(call->reply, "Items");
		if (item != NULL)
			cJSON_AddItemToArray(items, item);
		call->table = j.call.table;
		double_add_capacity(call, j.units);
	}
	else
	{
		double_fail(call, j.call.type, "%s", j.call.message);
		call->item = j.call.item;
		j.call.item = NULL;
	}
	end_job(&j);
	return done;
}

/* An item twice */
static bool
check_keys(double_call *call, const job *jobs, int count)
{
	for (int i = 0; i < count; i++)
	{
		for (int k = 0; k < i; k++)
		{
			if (jobs[i].good_key && jobs[k].good_key &&
				jobs[i].call.table == jobs[k].call.table &&
				cJSON_Compare(jobs[i].key, jobs[k].key, true))
				return double_fail(call, DOUBLE_VALIDATION,
								   "Provided list of item keys contains duplicates");
		}
	}
	return true;
}

/* Runs a statement that has been prepared, with the fault that is to strike it. */
static void
run_with_fault(job *j, const dynamo_double_fault *fault)
{
	if (j->call.type != NULL)
		return;
	if (fault == NULL || fault->type == NULL)
	{
		run(j);
		return;
	}
	if (fault->applied)
		run(j);
	cJSON_Delete(j->call.item);
	j->call.item = NULL;
	double_fail(&j->call, fault->type, "%s", double_error_message(fault->type));
}

static void
add_response(cJSON *responses, job *j)
{
	cJSON	   *response = cJSON_CreateObject();
	cJSON	   *item = cJSON_DetachItemFromObjectCaseSensitive(j->call.reply, "Item");
	char		code[64];

	if (j->call.type != NULL)
	{
		cJSON	   *error = cJSON_AddObjectToObject(response, "Error");

		double_statement_code(j->call.type, code, sizeof(code));
		cJSON_AddStringToObject(error, "Code", code);
		cJSON_AddStringToObject(error, "Message", j->call.message);
		if (j->call.item != NULL)
			cJSON_AddItemToObject(error, "Item", j->call.item);
		j->call.item = NULL;
		cJSON_Delete(item);
	}
	else if (item != NULL)
		cJSON_AddItemToObject(response, "Item", item);
	if (j->addressed)
		cJSON_AddStringToObject(response, "TableName", j->call.table->name);
	cJSON_AddItemToArray(responses, response);
}

/* One entry for each table, in the order in which they come. */
static void
add_batch_capacity(double_call *call, const job *jobs, int count)
{
	const cJSON *wanted = cJSON_GetObjectItemCaseSensitive(call->request,
														   "ReturnConsumedCapacity");
	cJSON	   *list;

	if (!cJSON_IsString(wanted) || strcmp(wanted->valuestring, "NONE") == 0)
		return;
	list = cJSON_AddArrayToObject(call->reply, "ConsumedCapacity");
	for (int i = 0; i < count; i++)
	{
		const double_table *table = jobs[i].call.table;
		bool		counted = table == NULL;
		double		units = 0;
		cJSON	   *entry;

		for (int k = 0; k < count; k++)
		{
			if (jobs[k].call.table != table)
				continue;
			units += jobs[k].units;
			counted = counted || k < i;
		}
		if (counted)
			continue;
		entry = cJSON_CreateObject();
		cJSON_AddStringToObject(entry, "TableName", table->name);
		cJSON_AddNumberToObject(entry, "CapacityUnits", units);
		cJSON_AddItemToArray(list, entry);
	}
}

static void
run_batch(double_call *call, job *jobs, int count)
{
	cJSON	   *responses = cJSON_AddArrayToObject(call->reply, "Responses");

	for (int i = 0; i < count; i++)
	{
		run_with_fault(&jobs[i], i < call->fault_count ? &call->faults[i] : NULL);
		add_response(responses, &jobs[i]);
	}
	add_batch_capacity(call, jobs, count);
}

static bool
is_select(const cJSON *request)
{
	const cJSON *text = cJSON_GetObjectItemCaseSensitive(request, "Statement");

	return cJSON_IsString(text) && strncasecmp(text->valuestring, "SELECT", 6) == 0;
}

static bool
is_update(const cJSON *request)
{
	const cJSON *text = cJSON_GetObjectItemCaseSensitive(request, "Statement");

	return cJSON_IsString(text) && strncasecmp(text->valuestring, "UPDATE", 6) == 0;
}

/* What is wrong with the statements before any of them is read. */
static bool
check_requests(double_call *call, const cJSON *statements)
{
	const cJSON *request;
	bool		selects = false;
	bool		updates = false;

	cJSON_ArrayForEach(request, statements)
	{
		if (!check_parameters(call, request))
			return false;
		selects = selects || is_select(request);
		updates = updates || is_update(request);
	}
	if (selects && updates)
		return double_fail(call, DOUBLE_VALIDATION, "Read and write requests together in"
						   " the same batch is not supported.");
	cJSON_ArrayForEach(request, statements)
	{
		if (!check_text(call, request))
			return false;
	}
	if (cJSON_GetArraySize(statements) > BATCH_MAX)
		return double_fail(call, DOUBLE_VALIDATION,
						   selects ? "BatchGetItem cannot fetch more than 25 items"
						   : "BatchWriteItem cannot write more than 25 items");
	return true;
}

bool
double_batch_statements(double_call *call)
{
	const cJSON *statements = cJSON_GetObjectItemCaseSensitive(call->request, "Statements");
	int			count = cJSON_GetArraySize(statements);
	cJSON	   *request;
	job			jobs[BATCH_MAX];
	bool		good;

	if (!cJSON_IsArray(statements) || count == 0)
		return double_fail(call, DOUBLE_VALIDATION, "The statement was empty.");
	if (!check_requests(call, statements))
		return false;

	count = 0;
	cJSON_ArrayForEach(request, statements)
	{
		start_job(&jobs[count], call, request);
		prepare(&jobs[count++]);
	}
	good = check_keys(call, jobs, count);
	if (good)
		run_batch(call, jobs, count);
	for (int i = 0; i < count; i++)
		end_job(&jobs[i]);
	return good;
}
