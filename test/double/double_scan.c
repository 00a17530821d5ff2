/*-------------------------------------------------------------------------
 *
 * double_scan.c
 *	  Scan, page by page.
 *
 *-------------------------------------------------------------------------
 */
#include <limits.h>
#include <string.h>

#include "double_private.h"

#define PAGE_BYTES (1024 * 1024)

bool
double_read_limit(double_call *call, int *limit)
{
	const cJSON *member = cJSON_GetObjectItemCaseSensitive(call->request, "Limit");

	*limit = INT_MAX;
	if (member == NULL || cJSON_IsNull(member))
		return true;
	if (!cJSON_IsNumber(member))
		return double_fail(call, "SerializationException", "Limit is no number");
	*limit = member->valueint;
	if (*limit < 1)
		return double_fail(call, DOUBLE_VALIDATION,
						   "Limit must be greater than or equal to 1");
	return true;
}

/* Where to begin. */
static bool
read_start(double_call *call, size_t *start)
{
	cJSON	   *key = cJSON_GetObjectItemCaseSensitive(call->request, "ExclusiveStartKey");

	*start = 0;
	if (key == NULL || cJSON_IsNull(key))
		return true;
	if (!double_check_values(call, key))
		return false;
	if (cJSON_GetArraySize(key) != call->table->key.count ||
		!double_check_key_values(call, key))
		return double_fail(call, DOUBLE_VALIDATION, "The provided starting key is invalid");
	*start = double_table_after(call->table, key);
	return true;
}

static bool
check_select(double_call *call, const char *select)
{
	if (select == NULL || call->bound[DOUBLE_PROJECTION_EXPRESSION].expr == NULL)
		return true;
	if (strcmp(select, "ALL_ATTRIBUTES") == 0)
		return double_fail(call, DOUBLE_VALIDATION, "Cannot specify the"
						   " ProjectionExpression when choosing to get ALL_ATTRIBUTES");
	if (strcmp(select, "COUNT") == 0)
		return double_fail(call, DOUBLE_VALIDATION, "Cannot specify the"
						   " ProjectionExpression when choosing to get only the Count");
	return true;
}

static void
add_item(double_call *call, cJSON *items, cJSON *item)
{
	const double_bound *bound = &call->bound[DOUBLE_PROJECTION_EXPRESSION];

	if (bound->expr == NULL)
		cJSON_AddItemReferenceToArray(items, item);
	else
		cJSON_AddItemToArray(items, double_project(bound->expr->paths, &bound->scope,
												   item));
}

static bool
passes(const double_bound *filter, const cJSON *item)
{
	return filter->expr == NULL ||
		double_condition_holds(filter->expr->condition, &filter->scope, item);
}

/* Reads a page from start; returns the bytes that it has read. */
static size_t
read_page(double_call *call, size_t start, int limit, cJSON *items)
{
	double_table *table = call->table;
	size_t		at = start;
	size_t		bytes = 0;
	int			count = 0;

	while (at < table->count && at - start < (size_t) limit && bytes < PAGE_BYTES)
	{
		double_entry *entry = table->ordered[at++];

		bytes += entry->bytes;
		if (!passes(&call->bound[DOUBLE_FILTER_EXPRESSION], entry->item))
			continue;
		count++;
		if (items != NULL)
			add_item(call, items, entry->item);
	}
	cJSON_AddNumberToObject(call->reply, "Count", count);
	cJSON_AddNumberToObject(call->reply, "ScannedCount", (double) (at - start));
	if (at > start && (at < table->count || at - start == (size_t) limit))
		cJSON_AddItemToObject(call->reply, "LastEvaluatedKey",
							  double_table_key(table, table->ordered[at - 1]->item));
	return bytes;
}

bool
double_scan(double_call *call)
{
	static const int uses[] = {DOUBLE_FILTER_EXPRESSION, DOUBLE_PROJECTION_EXPRESSION, -1};
	const char *select;
	int			limit;
	size_t		start;
	size_t		bytes;
	cJSON	   *items = NULL;
	bool		consistent;

	if (!double_find_table(call) || !double_text(call, "Select", &select) ||
		!double_check_idle(call, uses) || !double_read_limit(call, &limit) ||
		!double_bind_only(call, uses) || !check_select(call, select) || !double_check_keys(call))
		return false;
	double_table_order(call->table);
	if (!read_start(call, &start))
		return false;
	consistent = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(call->request,
															   "ConsistentRead"));
	if (select == NULL || strcmp(select, "COUNT") != 0)
		items = cJSON_AddArrayToObject(call->reply, "Items");
	bytes = read_page(call, start, limit, items);
	double_add_capacity(call, bytes == 0 ? 0 : double_read_units(bytes, consistent));
	return true;
}
