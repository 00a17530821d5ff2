/*-------------------------------------------------------------------------
 *
 * dynamo_request.c
 *	  Request bodies of the DynamoDB codec.
 *
 * Each operation is one request, and each write is conditional; see
 * "Operations" in doc/protocol.md.  Expressions use placeholders for attribute
 * names ("#ownerName" for ownerName), because several are reserved words.
 * DynamoDB refuses a request that declares a placeholder without using it, so
 * every operation lists exactly those in its expressions.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo.h"

#include <string.h>

#include "dynamo/dynamo_text.h"

/* Attributes of the lock item, as a set. */
#define A_OWNER			(1 << 0)
#define A_VERSION		(1 << 1)
#define A_LEASE			(1 << 2)
#define A_TOKEN			(1 << 3)
#define A_HOLDER		(1 << 4)
#define A_DATA			(1 << 5)
#define A_RELEASED		(1 << 6)
#define A_RELEASED_AT	(1 << 7)
#define A_TTL			(1 << 8)
#define A_RELEASED_VERSION	(1 << 9)

static const char *const attribute_names[] = {
	"ownerName", "recordVersionNumber", "leaseDuration", "fencingToken",
	"holder", "data", "isReleased", "releasedAt", "ttl",
	"releasedVersion"
};

#define ATTRIBUTE_COUNT ((int) (sizeof(attribute_names) / sizeof(attribute_names[0])))

/* Every condition on an item that we hold also demands that it is not released. */
#define HELD_BY_US \
	"#ownerName = :owner AND #recordVersionNumber = :expected" \
	" AND attribute_not_exists(#isReleased)"

/* A dead incarnation never writes again, so its name is enough. */
#define HELD_BY_THE_DEAD \
	"#ownerName = :owner AND attribute_not_exists(#isReleased)"
/* An operator is not the holder; the version identifies the lease. */
#define HELD_BY_ANYBODY \
	"#recordVersionNumber = :expected AND attribute_not_exists(#isReleased)"

#define CAPACITY "\"ReturnConsumedCapacity\":\"TOTAL\""
#define OLD_ITEM "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\""
#define REPLACED "\"ReturnValues\":\"UPDATED_OLD\","

/* Room for a request without name and data. */
#define BODY_ROOM 2048

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

static void
put_string(dynamo_text *text, const char *s)
{
	dynamo_text_string(text, s, strlen(s));
}

/* {"S":"..."} */
static void
put_s(dynamo_text *text, const char *s, size_t len)
{
	dynamo_text_raw(text, "{\"S\":");
	dynamo_text_string(text, s, len);
	dynamo_text_raw(text, "}");
}

/* DynamoDB's numbers are quoted; type N, or S for leaseDuration. */
static void
put_number(dynamo_text *text, char type, int64_t value)
{
	dynamo_text_raw(text, type == 'N' ? "{\"N\":\"" : "{\"S\":\"");
	dynamo_text_int(text, value);
	dynamo_text_raw(text, "\"}");
}

/* Opens a member of an object; its name is not escaped. */
static void
put_name(dynamo_text *text, const char *name)
{
	dynamo_text_comma(text);
	dynamo_text_raw(text, "\"");
	dynamo_text_raw(text, name);
	dynamo_text_raw(text, "\":");
}

static void
put_s_member(dynamo_text *text, const char *name, const char *s)
{
	put_name(text, name);
	put_s(text, s, strlen(s));
}

static void
put_n_member(dynamo_text *text, const char *name, int64_t value)
{
	put_name(text, name);
	put_number(text, 'N', value);
}

/* "TableName":...,"Key":{...} */
static void
put_table_and_key(dynamo_text *text, const dynamo_table *table,
				  const dynamo_write *write)
{
	dynamo_text_raw(text, "\"TableName\":");
	put_string(text, table->name);
	dynamo_text_raw(text, ",\"Key\":{");
	put_string(text, table->partition_key);
	dynamo_text_raw(text, ":");
	put_s(text, write->name, write->name_len);
	if (table->sort_key != NULL)
	{
		dynamo_text_raw(text, ",");
		put_string(text, table->sort_key);
		dynamo_text_raw(text, ":");
		put_s(text, table->sort_value, strlen(table->sort_value));
	}
	dynamo_text_raw(text, "}");
}

/* Declares the placeholders; partition_key NULL: no condition mentions #key. */
static void
put_placeholders(dynamo_text *text, const char *partition_key, int attributes)
{
	dynamo_text_raw(text, ",\"ExpressionAttributeNames\":{");
	if (partition_key != NULL)
	{
		put_name(text, "#key");
		put_string(text, partition_key);
	}
	for (int i = 0; i < ATTRIBUTE_COUNT; i++)
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
	dynamo_text_raw(text, "},\"ExpressionAttributeValues\":{");
}

static void
put_holder_text(dynamo_text *text, const char *name, const char *value)
{
	if (value[0] != '\0')
		put_s_member(text, name, value);
}

/* With the owner: other clients change ownerName and may keep the holder map. */
static void
put_holder(dynamo_text *text, const char *owner, const dynamo_holder *holder)
{
	dynamo_text_raw(text, "{\"M\":{");
	put_s_member(text, "owner", owner);
	put_holder_text(text, "database", holder->database);
	put_holder_text(text, "user", holder->user);
	put_holder_text(text, "application", holder->application);
	put_holder_text(text, "host", holder->host);
	if (holder->pid != 0)
		put_n_member(text, "pid", holder->pid);
	if (holder->since_ms != 0)
		put_n_member(text, "since", holder->since_ms);
	dynamo_text_raw(text, "}}");
}

/* The values that every write of a held item sets. */
static void
put_lease_values(dynamo_text *text, const dynamo_write *write)
{
	put_s_member(text, ":owner", write->owner);
	put_s_member(text, ":version", write->version);
	put_name(text, ":lease");
	put_number(text, 'S', write->lease_ms);
}

/* The new holder, for acquire and hand-over. */
static void
put_holding_values(dynamo_text *text, const dynamo_write *write)
{
	put_lease_values(text, write);
	put_n_member(text, ":last", write->last_token);
	put_name(text, ":holder");
	put_holder(text, write->owner, write->holder);
	if (write->data != NULL)
	{
		put_name(text, ":data");
		dynamo_text_raw(text, "{\"B\":\"");
		dynamo_text_base64(text, write->data, write->data_len);
		dynamo_text_raw(text, "\"}");
	}
}

static void
put_acquire(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	bool		take_over = write->expected != NULL && write->expected[0] != '\0';

	dynamo_text_raw(text, ",\"UpdateExpression\":\"SET #ownerName = :owner"
					", #recordVersionNumber = :version, #leaseDuration = :lease"
					", #fencingToken = :last, #holder = :holder");
	dynamo_text_raw(text, write->data != NULL
					? ", #data = :data REMOVE #isReleased, #releasedAt, #releasedVersion, #ttl"
					: " REMOVE #data, #isReleased, #releasedAt, #releasedVersion, #ttl");
	dynamo_text_raw(text, "\",\"ConditionExpression\":"
					"\"(attribute_not_exists(#key) OR attribute_exists(#isReleased)");
	if (take_over)
		dynamo_text_raw(text, " OR #recordVersionNumber = :expected");

	/*
	 * So that a late copy of an old acquire is refused.  The last token instead would
	 * let it reserve tokens below another cluster's.
	 */
	dynamo_text_raw(text, ") AND (attribute_not_exists(#fencingToken)"
					" OR #fencingToken < :first)\"");

	put_placeholders(text, table->partition_key,
					 A_OWNER | A_VERSION | A_LEASE | A_TOKEN | A_HOLDER |
					 A_DATA | A_RELEASED | A_RELEASED_AT | A_TTL |
					 A_RELEASED_VERSION);
	put_holding_values(text, write);
	put_n_member(text, ":first", write->first_token);
	if (take_over)
		put_s_member(text, ":expected", write->expected);
}

static void
put_renew(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, ",\"UpdateExpression\":\"SET #recordVersionNumber = :version"
					", #leaseDuration = :lease");
	if (write->holder != NULL)
		dynamo_text_raw(text, ", #holder = :holder");
	dynamo_text_raw(text, "\",\"ConditionExpression\":\"" HELD_BY_US "\"");
	put_placeholders(text, NULL, A_OWNER | A_VERSION | A_LEASE | A_RELEASED |
					 (write->holder != NULL ? A_HOLDER : 0));
	put_lease_values(text, write);
	if (write->holder != NULL)
	{
		put_name(text, ":holder");
		put_holder(text, write->owner, write->holder);
	}
	put_s_member(text, ":expected", write->expected);
}

static void
put_hand_over(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, ",\"UpdateExpression\":\"SET #recordVersionNumber = :version"
					", #leaseDuration = :lease, #fencingToken = :last, #holder = :holder");
	dynamo_text_raw(text, write->data != NULL ? ", #data = :data" : " REMOVE #data");
	dynamo_text_raw(text, "\",\"ConditionExpression\":\"" HELD_BY_US "\"");
	put_placeholders(text, NULL, A_OWNER | A_VERSION | A_LEASE | A_TOKEN |
					 A_HOLDER | A_DATA | A_RELEASED);
	put_holding_values(text, write);
	put_s_member(text, ":expected", write->expected);
}

static void
put_release(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	bool		with_ttl = table->released_ttl_s > 0;
	bool		forced = write->op == DYNAMO_FORCE_RELEASE;

	dynamo_text_raw(text, ",\"UpdateExpression\":\"SET #recordVersionNumber = :version"
					", #isReleased = :released, #releasedAt = :now"
					", #releasedVersion = :version");
	if (with_ttl)
		dynamo_text_raw(text, ", #ttl = :ttl");
	dynamo_text_raw(text, " REMOVE #holder, #data\",\"ConditionExpression\":\"");
	if (forced)
		dynamo_text_raw(text, HELD_BY_ANYBODY "\"");
	else
		dynamo_text_raw(text, write->any_version ? HELD_BY_THE_DEAD "\"" : HELD_BY_US "\"");
	put_placeholders(text, NULL, A_VERSION | A_HOLDER | A_DATA | A_RELEASED |
					 A_RELEASED_AT | A_RELEASED_VERSION | (with_ttl ? A_TTL : 0) |
					 (forced ? 0 : A_OWNER));
	if (!forced)
		put_s_member(text, ":owner", write->owner);
	put_s_member(text, ":version", write->version);
	if (!write->any_version)
		put_s_member(text, ":expected", write->expected);
	put_s_member(text, ":released", "1");
	put_n_member(text, ":now", write->now_s);
	if (with_ttl)
		put_n_member(text, ":ttl", write->now_s + table->released_ttl_s);
}

/* Refused if the lock was acquired since it was read, even if released again. */
static void
put_delete(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, ",\"ConditionExpression\":\"#recordVersionNumber = :expected"
					" AND attribute_exists(#isReleased)\"");
	put_placeholders(text, NULL, A_VERSION | A_RELEASED);
	put_s_member(text, ":expected", write->expected);
}

char *
dynamo_build(const dynamo_table *table, const dynamo_write *write)
{
	dynamo_text text;

	dynamo_text_start(&text, BODY_ROOM + write->name_len + write->data_len / 3 * 4);
	dynamo_text_raw(&text, "{");
	put_table_and_key(&text, table, write);
	switch (write->op)
	{
		case DYNAMO_ACQUIRE:
			put_acquire(&text, table, write);
			break;
		case DYNAMO_HAND_OVER:
			put_hand_over(&text, write);
			break;
		case DYNAMO_RELEASE:
		case DYNAMO_FORCE_RELEASE:
			put_release(&text, table, write);
			break;
		case DYNAMO_DELETE:
			put_delete(&text, write);
			break;
		case DYNAMO_READ:
			dynamo_text_raw(&text, write->maybe_stale ? "," : ",\"ConsistentRead\":true,");
			dynamo_text_raw(&text, CAPACITY "}");
			return dynamo_text_finish(&text);
		case DYNAMO_RENEW:
			put_renew(&text, write);
			break;
		case DYNAMO_RENEW_BATCH:
		case DYNAMO_DESCRIBE_TABLE:
		case DYNAMO_CREATE_TABLE:
		case DYNAMO_UPDATE_TTL:
		case DYNAMO_SCAN:
			text.failed = true; /* they have builders of their own */
			break;
	}
	dynamo_text_raw(&text, "},");
	if (write->op == DYNAMO_ACQUIRE)
		dynamo_text_raw(&text, REPLACED);
	dynamo_text_raw(&text, OLD_ITEM "," CAPACITY "}");
	return dynamo_text_finish(&text);
}

/*
 * A PartiQL identifier inside a JSON string: quoted, with double quotes doubled,
 * and the result escaped for JSON.
 */
static void
put_identifier(dynamo_text *text, const char *name)
{
	const char *from = name;
	const char *quote;

	dynamo_text_raw(text, "\\\"");
	while ((quote = strchr(from, '"')) != NULL)
	{
		dynamo_text_escaped(text, from, (size_t) (quote - from));
		dynamo_text_raw(text, "\\\"\\\"");
		from = quote + 1;
	}
	dynamo_text_escaped(text, from, strlen(from));
	dynamo_text_raw(text, "\\\"");
}

/*
 * A renewal in PartiQL: UPDATE never creates an item, and "IS MISSING" is
 * attribute_not_exists().
 */
static void
put_statement(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	dynamo_text_raw(text, "{\"Statement\":\"UPDATE ");
	put_identifier(text, table->name);
	dynamo_text_raw(text, " SET \\\"recordVersionNumber\\\" = ?"
					" SET \\\"leaseDuration\\\" = ?");
	if (write->holder != NULL)
		dynamo_text_raw(text, " SET \\\"holder\\\" = ?");
	dynamo_text_raw(text, " WHERE ");
	put_identifier(text, table->partition_key);
	dynamo_text_raw(text, " = ?");
	if (table->sort_key != NULL)
	{
		dynamo_text_raw(text, " AND ");
		put_identifier(text, table->sort_key);
		dynamo_text_raw(text, " = ?");
	}
	dynamo_text_raw(text, " AND \\\"ownerName\\\" = ?"
					" AND \\\"recordVersionNumber\\\" = ?"
					" AND \\\"isReleased\\\" IS MISSING\",\"Parameters\":[");
	put_s(text, write->version, strlen(write->version));
	dynamo_text_raw(text, ",");
	put_number(text, 'S', write->lease_ms);
	dynamo_text_raw(text, ",");
	if (write->holder != NULL)
	{
		put_holder(text, write->owner, write->holder);
		dynamo_text_raw(text, ",");
	}
	put_s(text, write->name, write->name_len);
	if (table->sort_key != NULL)
	{
		dynamo_text_raw(text, ",");
		put_s(text, table->sort_value, strlen(table->sort_value));
	}
	dynamo_text_raw(text, ",");
	put_s(text, write->owner, strlen(write->owner));
	dynamo_text_raw(text, ",");
	put_s(text, write->expected, strlen(write->expected));
	dynamo_text_raw(text, "]," OLD_ITEM "}");
}

char *
dynamo_build_batch(const dynamo_table *table, const dynamo_write *writes, int count)
{
	dynamo_text text;

	dynamo_text_start(&text, (size_t) count * BODY_ROOM);
	dynamo_text_raw(&text, "{\"Statements\":[");
	for (int i = 0; i < count; i++)
	{
		dynamo_text_comma(&text);
		put_statement(&text, table, &writes[i]);
	}
	dynamo_text_raw(&text, "]," CAPACITY "}");
	return dynamo_text_finish(&text);
}

/* Opens a request on the table as a whole. */
static void
start_table_request(dynamo_text *text, const dynamo_table *table)
{
	dynamo_text_start(text, BODY_ROOM);
	dynamo_text_raw(text, "{\"TableName\":");
	put_string(text, table->name);
}

char *
dynamo_build_describe_table(const dynamo_table *table)
{
	dynamo_text text;

	start_table_request(&text, table);
	dynamo_text_raw(&text, "}");
	return dynamo_text_finish(&text);
}

/* Repeats {"AttributeName":"...",LAST} for the one or two keys. */
static void
put_key_list(dynamo_text *text, const dynamo_table *table,
			 const char *partition_last, const char *sort_last)
{
	dynamo_text_raw(text, "[{\"AttributeName\":");
	put_string(text, table->partition_key);
	dynamo_text_raw(text, partition_last);
	if (table->sort_key != NULL)
	{
		dynamo_text_raw(text, ",{\"AttributeName\":");
		put_string(text, table->sort_key);
		dynamo_text_raw(text, sort_last);
	}
	dynamo_text_raw(text, "]");
}

char *
dynamo_build_create_table(const dynamo_table *table,
						  int64_t read_units, int64_t write_units)
{
	dynamo_text text;

	start_table_request(&text, table);
	dynamo_text_raw(&text, ",\"AttributeDefinitions\":");
	put_key_list(&text, table, ",\"AttributeType\":\"S\"}", ",\"AttributeType\":\"S\"}");
	dynamo_text_raw(&text, ",\"KeySchema\":");
	put_key_list(&text, table, ",\"KeyType\":\"HASH\"}", ",\"KeyType\":\"RANGE\"}");
	if (read_units == 0 && write_units == 0)
		dynamo_text_raw(&text, ",\"BillingMode\":\"PAY_PER_REQUEST\"}");
	else
	{
		dynamo_text_raw(&text, ",\"BillingMode\":\"PROVISIONED\""
						",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":");
		dynamo_text_int(&text, read_units);
		dynamo_text_raw(&text, ",\"WriteCapacityUnits\":");
		dynamo_text_int(&text, write_units);
		dynamo_text_raw(&text, "}}");
	}
	return dynamo_text_finish(&text);
}

char *
dynamo_build_update_ttl(const dynamo_table *table)
{
	dynamo_text text;

	start_table_request(&text, table);
	dynamo_text_raw(&text, ",\"TimeToLiveSpecification\":"
					"{\"AttributeName\":\"ttl\",\"Enabled\":true}}");
	return dynamo_text_finish(&text);
}
