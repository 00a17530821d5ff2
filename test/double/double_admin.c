/*-------------------------------------------------------------------------
 *
 * double_admin.c
 *	  Operations on tables as a whole.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double_private.h"

/* There is no clock here: every table was created at this time. */
#define CREATED 1700000000

static cJSON *
member(const cJSON *object, const char *name)
{
	cJSON	   *found = cJSON_GetObjectItemCaseSensitive(object, name);

	return found == NULL || cJSON_IsNull(found) ? NULL : found;
}

static const char *
text_of(const cJSON *object, const char *name)
{
	const cJSON *found = member(object, name);

	return cJSON_IsString(found) ? found->valuestring : "";
}

static double_type
defined_type(const cJSON *definitions, const char *name)
{
	const cJSON *definition;

	cJSON_ArrayForEach(definition, definitions)
	{
		if (strcmp(text_of(definition, "AttributeName"), name) == 0)
			return double_type_of_name(text_of(definition, "AttributeType"));
	}
	return DOUBLE_NONE;
}

/* Takes names and types from a key schema in the table's description. */
static bool
read_schema(double_call *call, double_key *to, const cJSON *schema, const cJSON *definitions)
{
	const cJSON *key;

	if (schema == NULL || schema->child == NULL)
		return double_fail(call, DOUBLE_VALIDATION, "No defined key schema.  A key schema"
						   " containing at least a hash key must be defined for all tables");
	cJSON_ArrayForEach(key, schema)
	{
		bool		hash = strcmp(text_of(key, "KeyType"), "HASH") == 0;

		if (hash != (to->count == 0) || to->count == 2)
			return double_fail(call, DOUBLE_VALIDATION, "No Hash Key specified in schema."
							   "  All Dynamo DB tables must have exactly one hash key");
		to->names[to->count] = text_of(key, "AttributeName");
		to->types[to->count] = defined_type(definitions, text_of(key, "AttributeName"));
		if (to->types[to->count] == DOUBLE_NONE)
			return double_fail(call, DOUBLE_VALIDATION, "%s Key not specified in Attribute"
							   " Definitions.  Type unknown.", hash ? "Hash" : "Range");
		to->count++;
	}
	return true;
}

static bool
is_key(const double_table *table, const char *name)
{
	for (int i = 0; i < table->key.count; i++)
	{
		if (strcmp(table->key.names[i], name) == 0)
			return true;
	}
	for (const double_index *index = table->indexes; index != NULL; index = index->next)
	{
		for (int i = 0; i < index->key.count; i++)
		{
			if (strcmp(index->key.names[i], name) == 0)
				return true;
		}
	}
	return false;
}

static bool
read_indexes(double_call *call, double_table *table, const cJSON *definitions)
{
	cJSON	   *shown;

	cJSON_ArrayForEach(shown, member(table->description, "GlobalSecondaryIndexes"))
	{
		double_index *index = calloc(1, sizeof(double_index));

		index->next = table->indexes;
		table->indexes = index;
		index->name = text_of(shown, "IndexName");
		index->projection = member(shown, "Projection");
		cJSON_AddStringToObject(shown, "IndexStatus", "ACTIVE");
		if (!read_schema(call, &index->key, member(shown, "KeySchema"), definitions))
			return false;
	}
	return true;
}

/* Takes the keys of the table and of its indexes from the description. */
static bool
read_keys(double_call *call, double_table *table)
{
	const cJSON *definitions = member(table->description, "AttributeDefinitions");
	const cJSON *definition;
	bool		all_used = true;

	if (!read_schema(call, &table->key, member(table->description, "KeySchema"), definitions) ||
		!read_indexes(call, table, definitions))
		return false;
	cJSON_ArrayForEach(definition, definitions)
		all_used &= is_key(table, text_of(definition, "AttributeName"));
	if (!all_used)
		return double_fail(call, DOUBLE_VALIDATION, "The number of attributes in key schema"
						   " must match the number of attributes defined in attribute"
						   " definitions.");
	return true;
}

static void
add_throughput(cJSON *description, const cJSON *throughput)
{
	static const char *const names[] = {"ReadCapacityUnits", "WriteCapacityUnits"};
	cJSON	   *shown = cJSON_AddObjectToObject(description, "ProvisionedThroughput");

	cJSON_AddNumberToObject(shown, "NumberOfDecreasesToday", 0);
	for (int i = 0; i < 2; i++)
	{
		const cJSON *units = member(throughput, names[i]);

		cJSON_AddNumberToObject(shown, names[i], units != NULL ? units->valuedouble : 0);
	}
}

static cJSON *
describe(const cJSON *request, const char *name, bool on_demand)
{
	cJSON	   *description = cJSON_CreateObject();
	char		arn[320];

	cJSON_AddStringToObject(description, "TableName", name);
	cJSON_AddItemToObject(description, "AttributeDefinitions",
						  cJSON_Duplicate(member(request, "AttributeDefinitions"), 1));
	cJSON_AddItemToObject(description, "KeySchema",
						  cJSON_Duplicate(member(request, "KeySchema"), 1));
	if (member(request, "GlobalSecondaryIndexes") != NULL)
		cJSON_AddItemToObject(description, "GlobalSecondaryIndexes",
							  cJSON_Duplicate(member(request, "GlobalSecondaryIndexes"), 1));
	cJSON_AddStringToObject(description, "TableStatus", "ACTIVE");
	cJSON_AddNumberToObject(description, "CreationDateTime", CREATED);
	add_throughput(description, on_demand ? NULL : member(request, "ProvisionedThroughput"));
	snprintf(arn, sizeof(arn), "arn:aws:dynamodb:ddblocal:000000000000:table/%s", name);
	cJSON_AddStringToObject(description, "TableArn", arn);
	if (on_demand)
		cJSON_AddStringToObject(cJSON_AddObjectToObject(description, "BillingModeSummary"),
								"BillingMode", "PAY_PER_REQUEST");
	cJSON_AddBoolToObject(description, "DeletionProtectionEnabled",
						  cJSON_IsTrue(member(request, "DeletionProtectionEnabled")));
	return description;
}

/* ... and that there is no such table yet. */
static bool
check_billing(double_call *call, bool on_demand, bool exists)
{
	const cJSON *throughput = member(call->request, "ProvisionedThroughput");

	if (!on_demand && throughput == NULL)
		return double_fail(call, DOUBLE_VALIDATION,
						   "No provisioned throughput specified for the table");
	if (exists)
		return double_fail(call, "ResourceInUseException", "Cannot create preexisting table");
	if (on_demand && throughput != NULL)
		return double_fail(call, DOUBLE_VALIDATION, "One or more parameter values were"
						   " invalid: Neither ReadCapacityUnits nor WriteCapacityUnits can"
						   " be specified when BillingMode is PAY_PER_REQUEST");
	return true;
}

static void
add_description(double_call *call, const char *name, const double_table *table)
{
	cJSON	   *shown = cJSON_Duplicate(table->description, 1);
	double		bytes = 0;

	for (size_t i = 0; i < table->bucket_count; i++)
	{
		for (double_entry *entry = table->buckets[i]; entry != NULL; entry = entry->next)
			bytes += (double) entry->bytes;
	}
	cJSON_AddNumberToObject(shown, "ItemCount", (double) table->count);
	cJSON_AddNumberToObject(shown, "TableSizeBytes", bytes);
	cJSON_AddItemToObject(call->reply, name, shown);
}

/* find_table() checks the name: the failure wanted is that there is none. */
bool
double_create_table(double_call *call)
{
	const char *name = text_of(call->request, "TableName");
	bool		on_demand = strcmp(text_of(call->request, "BillingMode"),
								   "PAY_PER_REQUEST") == 0;
	bool		exists = double_find_table(call);
	double_table *table;

	if (!exists && strcmp(call->type, "ResourceNotFoundException") != 0)
		return false;
	table = calloc(1, sizeof(double_table));
	table->name = strdup(name);
	table->description = describe(call->request, name, on_demand);
	if (!read_keys(call, table) || !check_billing(call, on_demand, exists))
	{
		double_table_free(table);
		return false;
	}
	table->next = call->d->tables;
	call->d->tables = table;
	add_description(call, "TableDescription", table);
	return true;
}

bool
double_describe_table(double_call *call)
{
	if (!double_find_table(call))
		return false;
	add_description(call, "Table", call->table);
	return true;
}

bool
double_delete_table(double_call *call)
{
	double_table **link = &call->d->tables;

	if (!double_find_table(call))
		return false;
	if (cJSON_IsTrue(member(call->table->description, "DeletionProtectionEnabled")))
		return double_fail(call, DOUBLE_VALIDATION, "Resource cannot be deleted as it is currently"
						   " protected against deletion. Disable deletion protection first.");
	add_description(call, "TableDescription", call->table);
	while (*link != call->table)
		link = &(*link)->next;
	*link = call->table->next;
	double_table_free(call->table);
	return true;
}

bool
double_update_ttl(double_call *call)
{
	const cJSON *wanted = member(call->request, "TimeToLiveSpecification");
	bool		enable = cJSON_IsTrue(member(wanted, "Enabled"));
	const char *attribute = text_of(wanted, "AttributeName");
	double_table *table;

	if (!double_find_table(call))
		return false;
	table = call->table;
	if (wanted == NULL)
		return double_fail(call, DOUBLE_VALIDATION, "TimeToLiveSpecification cannot be null");
	if (table->ttl != NULL && strcmp(table->ttl, attribute) != 0)
		return double_fail(call, DOUBLE_VALIDATION,
						   "TimeToLive is active on a different AttributeName");
	if (enable == (table->ttl != NULL))
		return double_fail(call, DOUBLE_VALIDATION, "TimeToLive is already %s",
						   enable ? "enabled" : "disabled");
	free(table->ttl);
	table->ttl = enable ? strdup(attribute) : NULL;
	cJSON_AddItemToObject(call->reply, "TimeToLiveSpecification",
						  cJSON_Duplicate(wanted, 1));
	return true;
}

bool
double_describe_ttl(double_call *call)
{
	cJSON	   *shown;

	if (!double_find_table(call))
		return false;
	shown = cJSON_AddObjectToObject(call->reply, "TimeToLiveDescription");
	cJSON_AddStringToObject(shown, "TimeToLiveStatus",
							call->table->ttl != NULL ? "ENABLED" : "DISABLED");
	if (call->table->ttl != NULL)
		cJSON_AddStringToObject(shown, "AttributeName", call->table->ttl);
	return true;
}
