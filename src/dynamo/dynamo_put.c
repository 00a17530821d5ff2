/*-------------------------------------------------------------------------
 *
 * dynamo_put.c
 *	  What requests about a lock item are made of.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <string.h>

/* In the order of the set's bits. */
static const char *const attribute_names[] = {
	"ownerName", "recordVersionNumber", "leaseDuration", "fencingToken",
	"holder", "data", "isReleased", "releasedAt", "ttl",
	"releasedVersion", "shared", "attributeNames", "keptUntil", "wanted",
	/* inside "shared" */
	"owner", "kind", "total", "h", "gate", "v", "n"
};

#define NAME_COUNT ((int) (sizeof(attribute_names) / sizeof(attribute_names[0])))
#define ATTRIBUTE_COUNT 14		/* those of the item itself */

const char *
dynamo_attribute(int number)
{
	return number < ATTRIBUTE_COUNT ? attribute_names[number] : NULL;
}

bool
dynamo_is_attribute(const char *name)
{
	for (int i = 0; i < ATTRIBUTE_COUNT; i++)
	{
		if (strcmp(name, attribute_names[i]) == 0)
			return true;
	}
	return false;
}

void
dynamo_put_s(dynamo_text *text, const char *s, size_t len)
{
	dynamo_text_raw(text, "{\"S\":");
	dynamo_text_string(text, s, len);
	dynamo_text_raw(text, "}");
}

void
dynamo_put_number(dynamo_text *text, char type, int64_t value)
{
	dynamo_text_raw(text, type == 'N' ? "{\"N\":\"" : "{\"S\":\"");
	dynamo_text_int(text, value);
	dynamo_text_raw(text, "\"}");
}

void
dynamo_put_name(dynamo_text *text, const char *name)
{
	dynamo_text_comma(text);
	dynamo_text_raw(text, "\"");
	dynamo_text_raw(text, name);
	dynamo_text_raw(text, "\":");
}

void
dynamo_put_s_member(dynamo_text *text, const char *name, const char *s)
{
	dynamo_put_name(text, name);
	dynamo_put_s(text, s, strlen(s));
}

void
dynamo_put_n_member(dynamo_text *text, const char *name, int64_t value)
{
	dynamo_put_name(text, name);
	dynamo_put_number(text, 'N', value);
}

void
dynamo_put_key(dynamo_text *text, const dynamo_table *table, dynamo_key key)
{
	dynamo_text_string(text, table->partition_key, strlen(table->partition_key));
	dynamo_text_raw(text, ":");
	dynamo_put_s(text, key.partition, key.partition_len);
	if (key.sort != NULL)
	{
		dynamo_text_raw(text, ",");
		dynamo_text_string(text, table->sort_key, strlen(table->sort_key));
		dynamo_text_raw(text, ":");
		dynamo_put_s(text, key.sort, key.sort_len);
	}
}

void
dynamo_put_names(dynamo_text *text, const char *partition_key, int attributes)
{
	dynamo_text_raw(text, ",\"ExpressionAttributeNames\":{");
	if (partition_key != NULL)
	{
		dynamo_put_name(text, "#key");
		dynamo_text_string(text, partition_key, strlen(partition_key));
	}
	for (int i = 0; i < NAME_COUNT; i++)
	{
		if ((attributes & (1 << i)) == 0)
			continue;
		dynamo_text_comma(text);
		dynamo_text_raw(text, "\"#");
		dynamo_text_raw(text, attribute_names[i]);
		dynamo_text_raw(text, "\":\"");
		dynamo_text_raw(text, attribute_names[i]);
		dynamo_text_raw(text, "\"");
	}
}

void
dynamo_put_values_start(dynamo_text *text)
{
	dynamo_text_raw(text, "},\"ExpressionAttributeValues\":{");
}

void
dynamo_put_release(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	dynamo_text_raw(text, ",\"UpdateExpression\":\"SET #recordVersionNumber = :version"
					", #isReleased = :released, #releasedAt = :now"
					", #releasedVersion = :version");
	if (table->released_ttl_s > 0)
		dynamo_text_raw(text, ", #ttl = :ttl");
	dynamo_text_raw(text, " REMOVE #holder, #data");
	if (write->kept_until_ms == 0)
		dynamo_text_raw(text, ", #keptUntil");
}

int
dynamo_release_attributes(const dynamo_table *table, const dynamo_write *write)
{
	return A_VERSION | A_HOLDER | A_DATA | A_RELEASED | A_RELEASED_AT |
		A_RELEASED_VERSION | (table->released_ttl_s > 0 ? A_TTL : 0) |
		(write->kept_until_ms == 0 ? A_KEPT : 0);
}

/* Nobody deletes the item while it keeps the lock from others, nor for a day after. */
static int64_t
ttl_of_release(const dynamo_table *table, const dynamo_write *write)
{
	int64_t		ttl = write->now_s + table->released_ttl_s;
	int64_t		kept = write->kept_until_ms / 1000 + DYNAMO_KEPT_AGE_S;

	return write->kept_until_ms != 0 && kept > ttl ? kept : ttl;
}

void
dynamo_put_release_values(dynamo_text *text, const dynamo_table *table,
						  const dynamo_write *write)
{
	dynamo_put_s_member(text, ":version", write->version);
	dynamo_put_s_member(text, ":released", "1");
	dynamo_put_n_member(text, ":now", write->now_s);
	if (table->released_ttl_s > 0)
		dynamo_put_n_member(text, ":ttl", ttl_of_release(table, write));
}
