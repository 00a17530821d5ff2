/*-------------------------------------------------------------------------
 *
 * double_query.c
 *	  Query, of a table or of one of its indexes, page by page.
 *
 * An index is nothing that is kept: each query looks at all items for those
 * that have the index's attributes, and sorts what it finds.  So an index is
 * never behind its table here, as DynamoDB's may be.
 *
 *-------------------------------------------------------------------------
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "double_private.h"

/* What is asked: of which keys, and where to go on. */
typedef struct query
{
	double_call *call;
	const double_index *index;	/* NULL: the table itself */
	const double_key *key;
	int			limit;
	const cJSON *start;			/* the key before the first item, NULL: from the beginning */
	cJSON	  **found;
	size_t		count;
} query;

static const cJSON *
member(const cJSON *object, const char *name)
{
	const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);

	return found == NULL || cJSON_IsNull(found) ? NULL : found;
}

static const double_index *
index_named(const double_table *table, const char *name)
{
	const double_index *index = table->indexes;

	while (index != NULL && strcmp(index->name, name) != 0)
		index = index->next;
	return index;
}

/* Does the item have the key's attributes? */
static bool
has_key(const double_key *key, const cJSON *item)
{
	for (int i = 0; i < key->count; i++)
	{
		const cJSON *value = member(item, key->names[i]);

		if (value == NULL || double_value_type(value) != key->types[i])
			return false;
	}
	return true;
}

static int
compare_key(const double_key *key, const cJSON *a, const cJSON *b)
{
	for (int i = key->count - 1; i >= 0; i--)
	{
		int			order = 0;

		if (double_value_compare(member(a, key->names[i]), member(b, key->names[i]), &order) &&
			order != 0)
			return order;
	}
	return 0;
}

/* By the sort key; items of an index that are equal in it, by the table's key. */
static int
compare_items(const query *q, const cJSON *a, const cJSON *b)
{
	int			order = compare_key(q->key, a, b);

	return order != 0 || q->index == NULL ? order : compare_key(&q->call->table->key, a, b);
}

static void
insert(query *q, cJSON *item)
{
	size_t		at = q->count++;

	for (; at > 0 && compare_items(q, item, q->found[at - 1]) < 0; at--)
		q->found[at] = q->found[at - 1];
	q->found[at] = item;
}

static void
find(query *q)
{
	const double_bound *bound = &q->call->bound[DOUBLE_KEY_CONDITION_EXPRESSION];
	double_table *table = q->call->table;

	q->found = calloc(table->count + 1, sizeof(cJSON *));
	for (size_t i = 0; i < table->bucket_count; i++)
	{
		for (double_entry *entry = table->buckets[i]; entry != NULL; entry = entry->next)
		{
			if ((q->index == NULL || has_key(q->key, entry->item)) &&
				double_condition_holds(bound->expr->condition, &bound->scope, entry->item) &&
				(q->start == NULL || compare_items(q, entry->item, q->start) > 0))
				insert(q, entry->item);
		}
	}
}

static void
copy_member(cJSON *to, const cJSON *from, const char *name)
{
	if (member(to, name) == NULL && member(from, name) != NULL)
		cJSON_AddItemToObject(to, name, cJSON_Duplicate(member(from, name), 1));
}

/* An item's attributes that are keys of the index or of the table. */
static cJSON *
only_keys(const query *q, const cJSON *item)
{
	cJSON	   *keys = double_table_key(q->call->table, item);

	for (int i = 0; i < q->key->count; i++)
		copy_member(keys, item, q->key->names[i]);
	return keys;
}

/* What the table or the index has of an item. */
static cJSON *
as_stored(const query *q, const cJSON *item)
{
	const cJSON *name;
	cJSON	   *stored;

	if (q->index == NULL ||
		strcmp(cJSON_GetStringValue(member(q->index->projection, "ProjectionType")), "ALL") == 0)
		return cJSON_Duplicate(item, 1);
	stored = only_keys(q, item);
	cJSON_ArrayForEach(name, member(q->index->projection, "NonKeyAttributes"))
		copy_member(stored, item, cJSON_GetStringValue(name));
	return stored;
}

/* Unless the filter leaves the item out. */
static void
add_item(const query *q, cJSON *items, const cJSON *item)
{
	const double_bound *filter = &q->call->bound[DOUBLE_FILTER_EXPRESSION];
	const double_bound *shown = &q->call->bound[DOUBLE_PROJECTION_EXPRESSION];
	cJSON	   *stored = as_stored(q, item);

	if (filter->expr != NULL &&
		!double_condition_holds(filter->expr->condition, &filter->scope, stored))
		cJSON_Delete(stored);
	else if (shown->expr == NULL)
		cJSON_AddItemToArray(items, stored);
	else
	{
		cJSON_AddItemToArray(items, double_project(shown->expr->paths, &shown->scope, stored));
		cJSON_Delete(stored);
	}
}

static void
answer(query *q)
{
	double_call *call = q->call;
	cJSON	   *items = cJSON_AddArrayToObject(call->reply, "Items");
	size_t		count = q->count < (size_t) q->limit ? q->count : (size_t) q->limit;
	size_t		bytes = 0;
	bool		consistent;

	for (size_t i = 0; i < count; i++)
	{
		bytes += double_item_bytes(q->found[i]);
		add_item(q, items, q->found[i]);
	}
	cJSON_AddNumberToObject(call->reply, "Count", cJSON_GetArraySize(items));
	cJSON_AddNumberToObject(call->reply, "ScannedCount", (double) count);
	if (count > 0 && count == (size_t) q->limit)
		cJSON_AddItemToObject(call->reply, "LastEvaluatedKey",
							  only_keys(q, q->found[count - 1]));
	consistent = cJSON_IsTrue(member(call->request, "ConsistentRead"));
	double_add_capacity(call, bytes == 0 ? 0 : double_read_units(bytes, consistent));
}

/* The expression must say which partition, with "="; the double does not look at the rest. */
static bool
check_condition(const query *q)
{
	const double_bound *bound = &q->call->bound[DOUBLE_KEY_CONDITION_EXPRESSION];
	const double_node *node = bound->expr != NULL ? bound->expr->condition : NULL;

	if (node == NULL)
		return double_fail(q->call, DOUBLE_VALIDATION, "Either the KeyConditions or"
						   " KeyConditionExpression parameter must be specified in the request.");
	if (node->kind == DOUBLE_AND)
		node = node->args;
	if (node->kind == DOUBLE_EQ && node->args->kind == DOUBLE_PATH &&
		strcmp(double_step_name(node->args->path, &bound->scope), q->key->names[0]) == 0)
		return true;
	return double_fail(q->call, DOUBLE_VALIDATION, "Query condition missed key schema element:"
					   " %s", q->key->names[0]);
}

static bool
read_page(query *q)
{
	double_call *call = q->call;
	cJSON	   *start = cJSON_GetObjectItemCaseSensitive(call->request, "ExclusiveStartKey");

	if (!double_read_limit(call, &q->limit))
		return false;
	if (start == NULL || cJSON_IsNull(start))
		return true;
	if (!double_check_values(call, start))
		return false;
	if (!has_key(q->key, start) || !has_key(&call->table->key, start))
		return double_fail(call, DOUBLE_VALIDATION, "The provided starting key is invalid");
	q->start = start;
	return true;
}

bool
double_query(double_call *call)
{
	static const int uses[] = {
		DOUBLE_KEY_CONDITION_EXPRESSION, DOUBLE_FILTER_EXPRESSION, DOUBLE_PROJECTION_EXPRESSION, -1
	};
	query		q = {.call = call};
	const char *name;

	if (!double_find_table(call) || !double_text(call, "IndexName", &name))
		return false;
	q.key = &call->table->key;
	if (name != NULL)
	{
		q.index = index_named(call->table, name);
		if (q.index == NULL)
			return double_fail(call, DOUBLE_VALIDATION,
							   "The table does not have the specified index: %s", name);
		q.key = &q.index->key;
	}
	if (q.index != NULL && cJSON_IsTrue(member(call->request, "ConsistentRead")))
		return double_fail(call, DOUBLE_VALIDATION, "Consistent reads are not supported on global"
						   " secondary indexes");
	if (!double_check_idle(call, uses) || !double_bind(call, uses) || !check_condition(&q) ||
		!read_page(&q))
		return false;
	find(&q);
	answer(&q);
	free(q.found);
	return true;
}
