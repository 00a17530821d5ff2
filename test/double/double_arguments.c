/*-------------------------------------------------------------------------
 *
 * double_arguments.c
 *	  What requests have in common: table, key, choices.
 *
 *-------------------------------------------------------------------------
 */
#include <ctype.h>
#include <string.h>

#include "double_private.h"

#define PARTITION_MAX 2048
#define SORT_MAX 1024

/* *text NULL: the request has none. */
bool
double_text(double_call *call, const char *name, const char **text)
{
	const cJSON *member = cJSON_GetObjectItemCaseSensitive(call->request, name);

	*text = NULL;
	if (member == NULL || cJSON_IsNull(member))
		return true;
	if (!cJSON_IsString(member))
		return double_fail(call, "SerializationException", "%s is no string", name);
	*text = member->valuestring;
	return true;
}

/* One of the choices, which end with NULL; the first one if there is none. */
bool
double_choice(double_call *call, const char *name, const char *const *choices,
			  const char *complaint, const char **choice)
{
	const char *text;

	if (!double_text(call, name, &text))
		return false;
	for (int i = 0; choices[i] != NULL; i++)
	{
		*choice = choices[i];
		if (text == NULL || strcmp(text, choices[i]) == 0)
			return true;
	}
	return double_fail(call, DOUBLE_VALIDATION, complaint, text);
}

static bool
is_table_name(const char *name)
{
	size_t		len = strlen(name);

	if (len < 3 || len > 255)
		return false;
	for (; *name != '\0'; name++)
	{
		if (!isalnum((unsigned char) *name) && strchr("_-.", *name) == NULL)
			return false;
	}
	return true;
}

/* Leaves call->table NULL if the name is fine and there is no such table. */
bool
double_look_up_table(double_call *call)
{
	const char *name;

	if (!double_text(call, "TableName", &name))
		return false;
	if (name == NULL)
		return double_fail(call, DOUBLE_VALIDATION, "Value null at 'tableName' failed to"
						   " satisfy constraint: Member must not be null");
	if (!is_table_name(name))
		return double_fail(call, DOUBLE_VALIDATION,
						   "Invalid table/index name.  Table/index names must be between 3"
						   " and 255 characters long, and may contain only the characters"
						   " a-z, A-Z, 0-9, '_', '-', and '.'");
	call->table = double_table_named(call->d, name);
	return true;
}

bool
double_find_table(double_call *call)
{
	if (!double_look_up_table(call))
		return false;
	if (call->table == NULL)
		return double_fail(call, "ResourceNotFoundException",
						   "Cannot do operations on a non-existent table");
	return true;
}

bool
double_check_values(double_call *call, cJSON *item)
{
	double_reason reason = {false, ""};

	if (double_item_check(item, &reason))
		return true;
	return double_fail(call, reason.serialization ? "SerializationException" :
					   DOUBLE_VALIDATION, "%s", reason.text);
}

static bool
check_key_value(double_call *call, const char *name, double_type type, bool sort,
				const cJSON *value)
{
	size_t		max = sort ? SORT_MAX : PARTITION_MAX;
	size_t		bytes;

	if (value == NULL)
		return double_fail(call, DOUBLE_VALIDATION,
						   "One of the required keys was not given a value");
	if (double_value_type(value) > DOUBLE_B)
		return double_fail(call, DOUBLE_VALIDATION, "Invalid attribute value type");
	if (double_value_type(value) != type)
		return double_fail(call, DOUBLE_VALIDATION, "One or more parameter values were"
						   " invalid: Type mismatch for key");
	bytes = double_value_bytes(value);
	if (bytes == 0)
		return double_fail(call, DOUBLE_VALIDATION, "One or more parameter values are not"
						   " valid. The AttributeValue for a key attribute cannot contain"
						   " an empty %s value. Key: %s",
						   type == DOUBLE_S ? "string" : "binary", name);
	if (bytes > max)
		return double_fail(call, DOUBLE_VALIDATION, "Hash primary key values must be under"
						   " 2048 bytes, and range primary key values must be under 1024"
						   " bytes");
	return true;
}

/* Does the item have the table's key? */
bool
double_check_key_values(double_call *call, const cJSON *item)
{
	const double_table *table = call->table;

	for (int i = 0; i < table->key.count; i++)
	{
		const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, table->key.names[i]);

		if (!check_key_value(call, table->key.names[i], table->key.types[i], i == 1, value))
			return false;
	}
	return true;
}

/* A map that is the table's key and nothing else. */
bool
double_read_key(double_call *call, const char *name, cJSON **key)
{
	*key = cJSON_GetObjectItemCaseSensitive(call->request, name);
	if (*key == NULL || cJSON_IsNull(*key))
		return double_fail(call, DOUBLE_VALIDATION,
						   "Cannot have null key for GetItem, DeleteItem, or UpdateItem");
	if (!double_check_values(call, *key))
		return false;
	if (cJSON_GetArraySize(*key) != call->table->key.count)
		return double_fail(call, DOUBLE_VALIDATION,
						   "The number of conditions on the keys is invalid");
	return double_check_key_values(call, *key);
}
