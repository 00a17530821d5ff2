/*-------------------------------------------------------------------------
 *
 * dynamo_unusable.c
 *	  Items that nobody can use as locks: why, how to show one to people, and the
 *	  request that replaces it.
 *
 * DynamoDB sends an item's attributes, and the members of sets, in any order.  Sorted, they have
 * a digest, by which an operator names this very item.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_SHOWN 16			/* characters of base64 */

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

/* Members are sorted by name in an object, and by value in a set. */
static const char *
sort_key(const cJSON *member)
{
	const char *key = member->string != NULL ? member->string : member->valuestring;

	return key != NULL ? key : "";
}

static int
compare_members(const void *a, const void *b)
{
	return strcmp(sort_key(*(cJSON *const *) a), sort_key(*(cJSON *const *) b));
}

/* Sorts the members of an object or a set, and of all values in there.  A list keeps its order. */
static bool
sort_members(cJSON *value, const char *type)
{
	size_t		count = 0;
	bool		sorted = true;
	cJSON	  **members;
	cJSON	   *member;

	if (value->child == NULL)
		return true;
	members = malloc((size_t) cJSON_GetArraySize(value) * sizeof(void *));
	if (members == NULL)
		return false;
	cJSON_ArrayForEach(member, value)
	{
		sorted &= sort_members(member, member->string != NULL ? member->string : type);
		members[count++] = member;
	}
	if (strcmp(type, "L") != 0)
		qsort(members, count, sizeof(void *), compare_members);
	for (size_t i = 0; i < count; i++)
	{
		members[i]->prev = members[i > 0 ? i - 1 : count - 1];
		members[i]->next = i + 1 < count ? members[i + 1] : NULL;
	}
	value->child = members[0];
	free(members);
	return sorted;
}

char *
dynamo_sorted_json(const cJSON *attributes)
{
	cJSON	   *copy = cJSON_Duplicate(attributes, true);
	char	   *json = NULL;

	if (copy != NULL && sort_members(copy, ""))
		json = cJSON_PrintUnformatted(copy);
	cJSON_Delete(copy);
	return json;
}

bool
dynamo_digest(const char *text, char *digest, size_t size)
{
	unsigned char sum[EVP_MAX_MD_SIZE] = {0};
	bool		ok = EVP_Digest(text, strlen(text), sum, NULL, EVP_sha256(), NULL) == 1;

	for (size_t i = 0; i < (size - 1) / 2; i++)
		snprintf(digest + 2 * i, 3, "%02x", sum[i]);
	return ok;
}

/* Cuts binary values short.  The recursion is as deep as dynamo_json_parse() allows. */
static void
shorten_bytes(cJSON *value, const char *type)
{
	cJSON	   *member;

	cJSON_ArrayForEach(member, value)
	{
		shorten_bytes(member, member->string != NULL ? member->string : type);
	}
	if (cJSON_IsString(value) && (strcmp(type, "B") == 0 || strcmp(type, "BS") == 0) &&
		strlen(value->valuestring) >= BYTES_SHOWN + sizeof("..."))
		strcpy(value->valuestring + BYTES_SHOWN, "...");
}

void
dynamo_show(const char *json, char *shown, size_t size)
{
	cJSON	   *attributes = dynamo_json_parse(json, strlen(json));
	char	   *whole;
	bool		fits;

	if (attributes != NULL)
		shorten_bytes(attributes, "");
	whole = cJSON_PrintUnformatted(attributes);
	fits = whole == NULL || strlen(whole) < size;
	dynamo_json_copy(shown, fits ? size : size - strlen("..."), whole);
	strcat(shown, fits ? "" : "...");
	cJSON_free(whole);
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

void
dynamo_put_new_item(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	dynamo_put_s(text, "ownerName", write->owner);
	dynamo_put_s(text, "recordVersionNumber", write->version);
	dynamo_put_lease(text, "leaseDuration", write->lease_ms);
	dynamo_put_n(text, "fencingToken", write->last_token);
	dynamo_put_s(text, "isReleased", "1");
	dynamo_put_n(text, "releasedAt", write->now_s);
	dynamo_put_s(text, "releasedVersion", write->version);
	if (table->released_ttl_s > 0)
		dynamo_put_n(text, "ttl", write->now_s + table->released_ttl_s);
}

/*
 * The condition: each attribute that lock items have is as it was read, or still missing.  Other
 * attributes do not count, because a condition has room for only so many.
 */
void
dynamo_put_replacement(dynamo_request *request)
{
	const char *replaced = request->write->replaced;
	const char *name;

	request->replaced = dynamo_json_parse(replaced, strlen(replaced));
	request->text.failed |= request->replaced == NULL;
	dynamo_text_raw(&request->text, CONDITION_ONLY "attribute_exists(#key)");
	for (int i = 0; (name = dynamo_attribute(i)) != NULL; i++)
		if (dynamo_json_member(request->replaced, name) != NULL)
			dynamo_text_raw(&request->text, " AND #%s = :%s", name, name);
		else
			dynamo_text_raw(&request->text, " AND attribute_not_exists(#%s)", name);
}
