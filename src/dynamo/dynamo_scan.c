/*-------------------------------------------------------------------------
 *
 * dynamo_scan.c
 *	  Pages of lock items: request and reply.
 *
 * A Scan reads the whole table, a Query one partition (see dynamo_scan_op()).
 *
 * A page ends when DynamoDB has read as many items as we allow, even if none of
 * them passes the filter.  Its reply has the last key, which the next page's
 * request repeats.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <stdlib.h>
#include <string.h>

/* All attributes but "data", which may be large and private. */
#define ASKED_FOR "#ownerName, #recordVersionNumber, #leaseDuration," \
	" #fencingToken, #holder, #isReleased, #releasedAt, #releasedVersion, #shared," \
	" #attributeNames, #keptUntil"

typedef struct scan_request
{
	const dynamo_table *table;
	const dynamo_scan *scan;
	dynamo_key	key;			/* QUERY: the partition to read, and how the sort keys begin */
	bool		query;
} scan_request;

static void
put_name(dynamo_text *text, const char *name, const void *of)
{
	dynamo_put_attribute_name(text, name, ((const scan_request *) of)->table);
}

static void
put_value(dynamo_text *text, const char *name, const void *of)
{
	const scan_request *request = of;
	const char *sort_value = request->table->sort_value;

	if (strcmp(name, "key") == 0)
		dynamo_put_text(text, NULL, request->key.partition, request->key.partition_len);
	else if (strcmp(name, "sort") == 0)
		dynamo_put_text(text, NULL, sort_value, strlen(sort_value));
	else if (request->query)	/* :prefix of the sort key */
		dynamo_put_text(text, NULL, request->key.sort, request->key.sort_len);
	else
		dynamo_put_text(text, NULL, request->scan->prefix, request->scan->prefix_len);
}

static void
put_filter_part(dynamo_text *text, bool *first, const char *part)
{
	dynamo_text_raw(text, "%s%s", *first ? ",\"FilterExpression\":\"" : " AND ", part);
	*first = false;
}

char *
dynamo_build_scan(const dynamo_table *table, const dynamo_scan *scan)
{
	scan_request request = {
		.table = table,.scan = scan,
		.key = dynamo_key_of(table, scan->prefix, scan->prefix_len),
		.query = dynamo_scan_op(table, scan->prefix, scan->prefix_len) == DYNAMO_QUERY,
	};
	dynamo_text text;
	size_t		from;
	bool		first = true;

	dynamo_text_start(&text, '{', BODY_ROOM + scan->prefix_len + scan->after_len +
					  scan->after_sort_len);
	dynamo_put_table(&text, table->name);
	from = text.len;
	dynamo_text_raw(&text, ",\"ProjectionExpression\":\"#key, " ASKED_FOR "%s\"",
					table->sort_separator != '\0' ? ", #sort" : "");
	/* The filter leaves out items whose keys do not fit the prefix and our settings. */
	if (scan->released_only)
		put_filter_part(&text, &first, "attribute_exists(#isReleased)");
	if (scan->prefix_len > 0 && !request.query)
		put_filter_part(&text, &first, "begins_with(#key, :prefix)");
	if (table->sort_key != NULL && table->sort_separator == '\0')
		put_filter_part(&text, &first, "#sort = :sort");
	dynamo_text_raw(&text, first ? "" : "\"");
	if (request.query)
		dynamo_text_raw(&text, ",\"KeyConditionExpression\":\"#key = :key%s\"",
						request.key.sort_len > 0 ? " AND begins_with(#sort, :prefix)" : "");
	dynamo_put_placeholders(&text, from, put_name, put_value, &request);
	dynamo_text_raw(&text, ",\"ConsistentRead\":true,\"ReturnConsumedCapacity\":\"TOTAL\""
					",\"Limit\":%d", scan->limit);
	if (scan->after != NULL)
	{
		dynamo_text_open(&text, "ExclusiveStartKey", '{');
		dynamo_put_text(&text, table->partition_key, scan->after, scan->after_len);
		if (table->sort_key != NULL)
			dynamo_put_text(&text, table->sort_key, scan->after_sort, scan->after_sort_len);
	}
	return dynamo_text_finish(&text);
}

/*
 * Is there an escaped U+0000?  cJSON's strings end there, and a page must not
 * start after half a key.
 */
static bool
has_nul(const char *body, size_t len)
{
	for (size_t i = 0; i + 5 < len; i++)
	{
		if (body[i] != '\\')
			continue;
		if (memcmp(body + i + 1, "u0000", 5) == 0)
			return true;
		i++;
	}
	return false;
}

/* The value of a key: of type S and a valid length, else NULL. */
static const char *
key_text(const cJSON *attributes, const char *name, size_t max)
{
	const char *text = dynamo_json_attribute(attributes, name);

	return text != NULL && strlen(text) <= max ? text : NULL;
}

static dynamo_status
other_keys(const char **wrong)
{
	*wrong = "the table's keys have other names, or are not of type S";
	return DYNAMO_VALIDATION;
}

static void
clear_row(dynamo_row *row)
{
	free(row->name);
	dynamo_item_clear(&row->item);
	free(row->shared);
	memset(row, 0, sizeof(*row));
}

/* Reads an item of the page.  One whose key means no name is left out. */
static dynamo_status
read_row(dynamo_page *page, const dynamo_table *table, const cJSON *attributes,
		 const char **wrong)
{
	dynamo_row *row = &page->rows[page->count++];
	const char *partition = key_text(attributes, table->partition_key, DYNAMO_NAME_MAX);
	const char *sort = NULL;
	char		name[DYNAMO_NAME_MAX + 1];

	if (!dynamo_item_read(attributes, &row->item, &row->shared))
		return DYNAMO_MALFORMED;
	if (table->sort_separator != '\0')
		sort = key_text(attributes, table->sort_key, DYNAMO_SORT_MAX);
	if (partition == NULL || (table->sort_separator != '\0' && sort == NULL))
		return other_keys(wrong);
	if (!dynamo_key_name(table, partition, sort, name))
	{
		clear_row(row);
		page->count--;
		return DYNAMO_OK;
	}
	row->name = strdup(name);
	return row->name != NULL ? DYNAMO_OK : DYNAMO_MALFORMED;
}

dynamo_status
dynamo_page_read(dynamo_page *page, const dynamo_table *table, const cJSON *json,
				 const char *body, size_t len, const char **wrong)
{
	const cJSON *items = dynamo_json_member(json, "Items");
	const cJSON *last = dynamo_json_member(json, "LastEvaluatedKey");
	bool		sorted = table->sort_key != NULL;
	const char *next;
	const char *next_sort = NULL;
	const cJSON *attributes;
	dynamo_status status = DYNAMO_OK;

	if (!cJSON_IsArray(items))
		return DYNAMO_MALFORMED;
	if (has_nul(body, len))
	{
		*wrong = "an item of the lock table has a U+0000 in its name or in another text";
		return DYNAMO_MALFORMED;
	}
	page->rows = calloc((size_t) cJSON_GetArraySize(items) + 1, sizeof(dynamo_row));
	if (page->rows == NULL)
		return DYNAMO_MALFORMED;
	cJSON_ArrayForEach(attributes, items)
	{
		status = read_row(page, table, attributes, wrong);
		if (status != DYNAMO_OK)
			return status;
	}

	if (last == NULL)
		return DYNAMO_OK;
	next = key_text(last, table->partition_key, DYNAMO_NAME_MAX);
	if (sorted)
		next_sort = key_text(last, table->sort_key, DYNAMO_SORT_MAX);
	if (next == NULL || (sorted && next_sort == NULL) || cJSON_GetArraySize(last) != 1 + sorted)
		return other_keys(wrong);
	page->next = strdup(next);
	if (sorted)
		page->next_sort = strdup(next_sort);
	return page->next != NULL && (!sorted || page->next_sort != NULL) ?
		DYNAMO_OK : DYNAMO_MALFORMED;
}

void
dynamo_page_free(dynamo_page *page)
{
	for (int i = 0; i < page->count; i++)
		clear_row(&page->rows[i]);
	free(page->rows);
	free(page->next);
	free(page->next_sort);
	memset(page, 0, sizeof(*page));
}
