/*-------------------------------------------------------------------------
 *
 * dynamo_key.c
 *	  Which item a lock's name means, and which name an item has.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo.h"

#include <string.h>

static bool
is_fixed_sort(const dynamo_table *table, const char *sort, size_t len)
{
	return strlen(table->sort_value) == len && memcmp(table->sort_value, sort, len) == 0;
}

/* The first separator in the text; NULL: there is none. */
static const char *
separator_in(const dynamo_table *table, const char *text, size_t len)
{
	return table->sort_separator != '\0' ? memchr(text, table->sort_separator, len) : NULL;
}

dynamo_key
dynamo_key_of(const dynamo_table *table, const char *name, size_t len)
{
	const char *separator = separator_in(table, name, len);
	dynamo_key	key = {.partition = name,.partition_len = len};

	if (separator != NULL)
	{
		key.partition_len = (size_t) (separator - name);
		key.sort = separator + 1;
		key.sort_len = len - key.partition_len - 1;
	}
	else if (table->sort_key != NULL)
	{
		key.sort = table->sort_value;
		key.sort_len = strlen(table->sort_value);
	}
	return key;
}

dynamo_key
dynamo_identity_key(const dynamo_table *table)
{
	dynamo_table undivided = *table;

	undivided.sort_separator = '\0';
	return dynamo_key_of(&undivided, DYNAMO_IDENTITY_KEY, strlen(DYNAMO_IDENTITY_KEY));
}

static bool
is_identity(const char *partition, size_t len)
{
	return len == strlen(DYNAMO_IDENTITY_KEY) && memcmp(partition, DYNAMO_IDENTITY_KEY, len) == 0;
}

const char *
dynamo_name_wrong(const dynamo_table *table, const char *name, size_t len)
{
	dynamo_key	key = dynamo_key_of(table, name, len);

	if (key.partition_len == len)	/* without a separator */
		return is_identity(name, len) ? "Its item has the identity of the lock table." : NULL;
	if (key.partition_len == 0)
		return "Its partition key, the part before the separator, is empty.";
	if (key.sort_len == 0)
		return "Its sort key, the part after the separator, is empty.";
	if (key.sort_len > DYNAMO_SORT_MAX)
		return "Its sort key, the part after the separator, is longer than 1024 bytes.";
	if (is_fixed_sort(table, key.sort, key.sort_len))
		return "Its sort key is the value of \"ddblock.sort_key_value\": this lock's name is "
			"the part before the separator.";
	return NULL;
}

bool
dynamo_key_name(const dynamo_table *table, const char *partition, const char *sort,
				char name[DYNAMO_NAME_MAX + 1])
{
	size_t		len = strlen(partition);
	size_t		sort_len;

	if (len > DYNAMO_NAME_MAX || separator_in(table, partition, len) != NULL)
		return false;
	memcpy(name, partition, len + 1);
	if (sort == NULL || is_fixed_sort(table, sort, strlen(sort)))
		return !is_identity(partition, len);
	sort_len = strlen(sort);
	if (table->sort_separator == '\0' || len + 1 + sort_len > DYNAMO_NAME_MAX)
		return false;
	name[len] = table->sort_separator;
	memcpy(name + len + 1, sort, sort_len + 1);
	return true;
}

dynamo_op
dynamo_scan_op(const dynamo_table *table, const char *prefix, size_t len)
{
	dynamo_key	key = dynamo_key_of(table, prefix, len);

	return key.partition_len > 0 && key.partition_len < len &&
		key.sort_len <= DYNAMO_SORT_MAX ? DYNAMO_QUERY : DYNAMO_SCAN;
}
