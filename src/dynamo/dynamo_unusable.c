/*-------------------------------------------------------------------------
 *
 * dynamo_unusable.c
 *	  Items that nobody can use as locks: why, how to show one to people, and the
 *	  request that replaces it.
 *
 * DynamoDB sends an item's attributes in any order, and the members of its sets.  Sorted,
 * they have a digest by which an operator means this very item.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BINARY_SHOWN 16			/* characters of base64 */

static void put_value(dynamo_text *text, const char *type, const cJSON *value, bool brief);

const char *
dynamo_obstacle(const dynamo_item *item, const dynamo_shared *shared)
{
	if (item->wrong != NULL)
		return item->wrong;
	if (shared != NULL && shared->wrong != NULL)
		return shared->wrong;
	if (item->bad_token)
		return "the lock item's fencingToken is not an integer between 1 and "
			"9223372036854775807";
	if (item->token == INT64_MAX)
		return "the lock item's fencingToken has the highest possible value";
	if (item->bad_names)
		return DYNAMO_BAD_NAMES;
	if (item->bad_kept)
		return "the lock item's keptUntil is not an integer between 1 and "
			"9223372036854775807";
	return NULL;
}

const char *
dynamo_unusable(const dynamo_item *item, const dynamo_shared *shared)
{
	return dynamo_obstacle(item, item->released ? shared : NULL);
}

typedef struct value_member
{
	const cJSON *json;
} value_member;

static const char *
sort_key(const value_member *member)
{
	const char *key = member->json->string != NULL ? member->json->string :
		member->json->valuestring;

	return key != NULL ? key : "";
}

static int
compare_members(const void *a, const void *b)
{
	return strcmp(sort_key(a), sort_key(b));
}

/* An object's, a set's or a list's; only a list is in an order. */
static void
put_members(dynamo_text *text, const char *type, const cJSON *values, bool brief)
{
	bool		object = cJSON_IsObject(values);
	value_member *members = calloc((size_t) cJSON_GetArraySize(values) + 1, sizeof(*members));
	const cJSON *member;
	size_t		count = 0;

	if (members == NULL)
	{
		text->failed = true;
		return;
	}
	cJSON_ArrayForEach(member, values)
		members[count++].json = member;
	if (strcmp(type, "L") != 0)
		qsort(members, count, sizeof(*members), compare_members);
	dynamo_text_raw(text, object ? "{" : "[");
	for (size_t i = 0; i < count; i++)
	{
		member = members[i].json;
		dynamo_text_comma(text);
		if (object)
		{
			dynamo_text_string(text, member->string, strlen(member->string));
			dynamo_text_raw(text, ":");
		}
		put_value(text, object ? member->string : type, member, brief);
	}
	dynamo_text_raw(text, object ? "}" : "]");
	free(members);
}

static void
put_string(dynamo_text *text, const char *type, const char *s, bool brief)
{
	size_t		len = strlen(s);
	bool		cut = brief && (strcmp(type, "B") == 0 || strcmp(type, "BS") == 0) &&
		len > BINARY_SHOWN;

	dynamo_text_raw(text, "\"");
	dynamo_text_escaped(text, s, cut ? BINARY_SHOWN : len);
	dynamo_text_raw(text, cut ? "...\"" : "\"");
}

/* type: the member's name in front of it.  The depth is that of dynamo_json_parse(). */
static void
put_value(dynamo_text *text, const char *type, const cJSON *value, bool brief)
{
	if (cJSON_IsObject(value) || cJSON_IsArray(value))
		put_members(text, type, value, brief);
	else if (cJSON_IsString(value))
		put_string(text, type, value->valuestring, brief);
	else
		dynamo_text_raw(text, cJSON_IsTrue(value) ? "true" : cJSON_IsFalse(value) ? "false" :
						"null");
}

char *
dynamo_sorted_json(const cJSON *attributes)
{
	dynamo_text text;

	dynamo_text_start(&text, 1024);
	put_value(&text, "", attributes, false);
	return dynamo_text_finish(&text);
}

void
dynamo_digest(const char *json, char digest[DYNAMO_DIGEST_SIZE])
{
	unsigned char sum[EVP_MAX_MD_SIZE] = {0};

	(void) EVP_Digest(json, strlen(json), sum, NULL, EVP_sha256(), NULL);
	for (size_t i = 0; i < (DYNAMO_DIGEST_SIZE - 1) / 2; i++)
		snprintf(digest + 2 * i, 3, "%02x", sum[i]);
}

void
dynamo_show(const char *json, char *shown, size_t size)
{
	cJSON	   *attributes = dynamo_json_parse(json, strlen(json));
	dynamo_text text;
	char	   *whole;

	dynamo_text_start(&text, 1024);
	put_value(&text, "", attributes, true);
	whole = dynamo_text_finish(&text);
	dynamo_json_copy(shown, size, whole != NULL ? whole : "");
	if (whole != NULL && strlen(whole) >= size)
	{
		dynamo_json_copy(shown, size - strlen("..."), whole);
		strcat(shown, "...");
	}
	free(whole);
	cJSON_Delete(attributes);
}

int64_t
dynamo_token_above(const char *json, int64_t time_us, bool *may_fall)
{
	cJSON	   *attributes = dynamo_json_parse(json, strlen(json));
	const cJSON *shared = dynamo_json_member(dynamo_json_member(attributes, "shared"), "M");
	const cJSON *entries = dynamo_json_member(dynamo_json_member(shared, "h"), "M");
	const cJSON *entry;
	int64_t		highest = dynamo_json_positive(attributes, "fencingToken");

	*may_fall = dynamo_json_member(attributes, "fencingToken") != NULL &&
		(highest == 0 || highest == INT64_MAX);
	if (highest == INT64_MAX)
		highest = 0;
	cJSON_ArrayForEach(entry, entries)
	{
		int64_t		token = dynamo_json_positive(dynamo_json_member(entry, "M"), "t");

		if (token > highest && token < INT64_MAX)
			highest = token;
	}
	cJSON_Delete(attributes);
	return highest < time_us ? time_us : highest + 1;
}

static void
put_new_item(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	dynamo_text_raw(text, "\"Item\":{");
	dynamo_put_key(text, table, dynamo_key_of(table, write->name, write->name_len));
	dynamo_put_s_member(text, "ownerName", write->owner);
	dynamo_put_s_member(text, "recordVersionNumber", write->version);
	dynamo_put_name(text, "leaseDuration");
	dynamo_put_number(text, 'S', write->lease_ms);
	dynamo_put_n_member(text, "fencingToken", write->last_token);
	dynamo_put_s_member(text, "isReleased", "1");
	dynamo_put_n_member(text, "releasedAt", write->now_s);
	dynamo_put_s_member(text, "releasedVersion", write->version);
	if (table->released_ttl_s > 0)
		dynamo_put_n_member(text, "ttl", write->now_s + table->released_ttl_s);
	dynamo_text_raw(text, "}");
}

/*
 * Each attribute that only a lock has is as it was, or still missing.  Others do not count: a
 * condition has room for so many only.
 */
void
dynamo_put_replacement(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	cJSON	   *old = dynamo_json_parse(write->replaced, strlen(write->replaced));
	const char *name;

	text->failed |= old == NULL;
	put_new_item(text, table, write);
	dynamo_text_raw(text, ",\"ConditionExpression\":\"attribute_exists(#key)");
	for (int i = 0; (name = dynamo_attribute(i)) != NULL; i++)
	{
		bool		there = dynamo_json_member(old, name) != NULL;

		dynamo_text_raw(text, there ? " AND #" : " AND attribute_not_exists(#");
		dynamo_text_raw(text, name);
		dynamo_text_raw(text, there ? " = :" : ")");
		dynamo_text_raw(text, there ? name : "");
	}
	dynamo_text_raw(text, "\"");
	dynamo_put_names(text, table->partition_key, A_ITEM);
	dynamo_put_values_start(text);
	for (int i = 0; (name = dynamo_attribute(i)) != NULL; i++)
	{
		const cJSON *value = dynamo_json_member(old, name);

		if (value == NULL)
			continue;
		dynamo_text_comma(text);
		dynamo_text_raw(text, "\":");
		dynamo_text_raw(text, name);
		dynamo_text_raw(text, "\":");
		put_value(text, "", value, false);
	}
	cJSON_Delete(old);
}
