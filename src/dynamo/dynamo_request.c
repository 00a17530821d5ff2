/*-------------------------------------------------------------------------
 *
 * dynamo_request.c
 *	  Request bodies of the DynamoDB codec.
 *
 * Each operation is one request, and each write is conditional; see
 * "Operations" in doc/internals/protocol.md.  Expressions use placeholders for attribute
 * names ("#ownerName" for ownerName), because several are reserved words.
 * DynamoDB refuses a request that declares a placeholder without using it, so
 * every operation lists exactly those in its expressions.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <string.h>

/* Every condition on an item that we hold also demands that it is not released. */
#define HELD_BY_US \
	"#ownerName = :owner AND #recordVersionNumber = :expected" \
	" AND attribute_not_exists(#isReleased)"

/* A dead incarnation never writes again, so its name is enough. */
#define HELD_BY_THE_DEAD \
	"#ownerName = :owner AND attribute_not_exists(#isReleased)"
/*
 * An operator is not the holder; the version identifies the lease, or what keeps a
 * released lock.
 */
#define HELD_BY_ANYBODY \
	"#recordVersionNumber = :expected" \
	" AND (attribute_not_exists(#isReleased) OR attribute_exists(#keptUntil))"

#define CAPACITY "\"ReturnConsumedCapacity\":\"TOTAL\""
#define OLD_ITEM "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\""
#define REPLACED "\"ReturnValues\":\"UPDATED_OLD\","
#define WHOLE_REPLACED "\"ReturnValues\":\"ALL_OLD\","
#define NEW_ITEM "\"ReturnValues\":\"ALL_NEW\","

#define BAR_AGE_S 86400			/* an item that bars an acquire stays so long */

/* Room for a request without name and data. */
#define BODY_ROOM 2048

static void
put_string(dynamo_text *text, const char *s)
{
	dynamo_text_string(text, s, strlen(s));
}

/* "TableName":...,"Key":{...} */
static void
put_table_and_key(dynamo_text *text, const dynamo_table *table, dynamo_key key)
{
	dynamo_text_raw(text, "\"TableName\":");
	put_string(text, table->name);
	dynamo_text_raw(text, ",\"Key\":{");
	dynamo_put_key(text, table, key);
	dynamo_text_raw(text, "}");
}

static void
put_holder_text(dynamo_text *text, const char *name, const char *value)
{
	if (value[0] != '\0')
		dynamo_put_s_member(text, name, value);
}

/* With the owner: other clients change ownerName and may keep the holder map. */
static void
put_holder(dynamo_text *text, const char *owner, const dynamo_holder *holder)
{
	dynamo_text_raw(text, "{\"M\":{");
	dynamo_put_s_member(text, "owner", owner);
	put_holder_text(text, "database", holder->database);
	put_holder_text(text, "user", holder->user);
	put_holder_text(text, "application", holder->application);
	put_holder_text(text, "host", holder->host);
	if (holder->pid != 0)
		dynamo_put_n_member(text, "pid", holder->pid);
	if (holder->since_ms != 0)
		dynamo_put_n_member(text, "since", holder->since_ms);
	put_holder_text(text, "system", holder->system);
	dynamo_text_raw(text, "}}");
}

/* The values that every write of a held item sets. */
static void
put_lease_values(dynamo_text *text, const dynamo_write *write)
{
	dynamo_put_s_member(text, ":owner", write->owner);
	dynamo_put_s_member(text, ":version", write->version);
	dynamo_put_name(text, ":lease");
	dynamo_put_number(text, 'S', write->lease_ms);
}

static void
put_data(dynamo_text *text, const dynamo_write *write)
{
	dynamo_put_name(text, ":data");
	dynamo_text_raw(text, "{\"B\":\"");
	dynamo_text_base64(text, write->data, write->data_len);
	dynamo_text_raw(text, "\"}");
}

/* The new holder, for acquire and hand-over. */
static void
put_holding_values(dynamo_text *text, const dynamo_write *write)
{
	put_lease_values(text, write);
	dynamo_put_n_member(text, ":last", write->last_token);
	dynamo_put_name(text, ":holder");
	put_holder(text, write->owner, write->holder);
	if (write->data != NULL)
		put_data(text, write);
	dynamo_put_n_member(text, ":past", write->past_ms);
	if (write->kept_until_ms != 0)
		dynamo_put_n_member(text, ":kept", write->kept_until_ms);
}

static void
put_acquire(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	bool		take_over = write->expected != NULL && write->expected[0] != '\0';
	dynamo_extras extras;

	text->failed |= !dynamo_extras_start(&extras, write);
	dynamo_text_raw(text, ",\"UpdateExpression\":\"SET #ownerName = :owner"
					", #recordVersionNumber = :version, #leaseDuration = :lease"
					", #fencingToken = :last, #holder = :holder");
	if (write->kept_until_ms != 0)
		dynamo_text_raw(text, ", #keptUntil = :kept");
	if (write->data != NULL)
		dynamo_text_raw(text, ", #data = :data");
	dynamo_put_extras_set(text, &extras);
	dynamo_text_raw(text, write->data != NULL ? " REMOVE" : " REMOVE #data,");
	dynamo_text_raw(text, " #isReleased, #releasedAt, #releasedVersion, #ttl, #shared");
	if (write->kept_until_ms == 0)
		dynamo_text_raw(text, ", #keptUntil");
	if (write->unmark)
		dynamo_text_raw(text, ", #wanted");
	dynamo_put_extras_remove(text, &extras);
	dynamo_text_raw(text, "\",\"ConditionExpression\":\"");
	dynamo_text_raw(text, write->must_exist ? RELEASED : FREE);

	/*
	 * The last token in the condition would let a late copy reserve tokens below
	 * another cluster's.
	 */
	dynamo_text_raw(text, take_over ? OR_DEAD NEW_TOKEN(":first") : NEW_TOKEN(":first"));
	dynamo_text_raw(text, NOT_KEPT);
	dynamo_text_raw(text, extras.old != NULL ? " AND #attributeNames = :oldNames\"" :
					" AND attribute_not_exists(#attributeNames)\"");

	dynamo_put_names(text, write->must_exist ? NULL : table->partition_key,
					 A_OWNER | A_VERSION | A_LEASE | A_TOKEN | A_HOLDER |
					 A_DATA | A_RELEASED | A_RELEASED_AT | A_TTL |
					 A_RELEASED_VERSION | A_SHARED | A_ATTRIBUTE_NAMES | A_KEPT |
					 (write->unmark ? A_WANTED : 0));
	dynamo_put_extras_names(text, &extras);
	dynamo_put_values_start(text);
	put_holding_values(text, write);
	dynamo_put_n_member(text, ":first", write->first_token);
	if (take_over)
		dynamo_put_s_member(text, ":expected", write->expected);
	if (extras.old != NULL)
		dynamo_put_s_member(text, ":oldNames", write->old_attributes);
	dynamo_put_extras_values(text, &extras, write);
	dynamo_extras_end(&extras);
}

static void
put_renew(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, ",\"UpdateExpression\":\"SET #recordVersionNumber = :version"
					", #leaseDuration = :lease");
	if (write->holder != NULL)
		dynamo_text_raw(text, ", #holder = :holder");
	if (write->data != NULL)
		dynamo_text_raw(text, write->data_len > 0 ? ", #data = :data" : " REMOVE #data");
	dynamo_text_raw(text, "\",\"ConditionExpression\":\"" HELD_BY_US "\"");
	dynamo_put_names(text, NULL, A_OWNER | A_VERSION | A_LEASE | A_RELEASED |
					 (write->holder != NULL ? A_HOLDER : 0) |
					 (write->data != NULL ? A_DATA : 0));
	dynamo_put_values_start(text);
	put_lease_values(text, write);
	if (write->data_len > 0)
		put_data(text, write);
	if (write->holder != NULL)
	{
		dynamo_put_name(text, ":holder");
		put_holder(text, write->owner, write->holder);
	}
	dynamo_put_s_member(text, ":expected", write->expected);
}

static void
put_hand_over(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, ",\"UpdateExpression\":\"SET #recordVersionNumber = :version"
					", #leaseDuration = :lease, #fencingToken = :last, #holder = :holder");
	dynamo_text_raw(text, write->data != NULL ? ", #data = :data" : "");
	if (write->kept_until_ms != 0)
		dynamo_text_raw(text, write->data != NULL ? ", #keptUntil = :kept" :
						", #keptUntil = :kept REMOVE #data");
	else
		dynamo_text_raw(text, write->data != NULL ? " REMOVE #keptUntil" :
						" REMOVE #data, #keptUntil");
	dynamo_text_raw(text, "\",\"ConditionExpression\":\"" HELD_BY_US NOT_KEPT
					" AND " TOKEN_BELOW(":first") "\"");
	dynamo_put_names(text, NULL, A_OWNER | A_VERSION | A_LEASE | A_TOKEN |
					 A_HOLDER | A_DATA | A_RELEASED | A_KEPT);
	dynamo_put_values_start(text);
	put_holding_values(text, write);
	dynamo_put_n_member(text, ":first", write->first_token);
	dynamo_put_s_member(text, ":expected", write->expected);
}

static void
put_release(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	bool		forced = write->op == DYNAMO_FORCE_RELEASE;
	dynamo_extras extras;

	text->failed |= !dynamo_extras_start(&extras, write);
	dynamo_put_release(text, table, write);
	dynamo_put_extras_remove(text, &extras);
	dynamo_text_raw(text, "\",\"ConditionExpression\":\"");
	if (forced)
		dynamo_text_raw(text, HELD_BY_ANYBODY "\"");
	else
		dynamo_text_raw(text, write->any_version ? HELD_BY_THE_DEAD "\"" : HELD_BY_US "\"");
	dynamo_put_names(text, NULL, dynamo_release_attributes(table, write) |
					 (forced ? A_KEPT : A_OWNER) |
					 (extras.old != NULL ? A_ATTRIBUTE_NAMES : 0));
	dynamo_put_extras_names(text, &extras);
	dynamo_extras_end(&extras);
	dynamo_put_values_start(text);
	dynamo_put_release_values(text, table, write);
	if (!forced)
		dynamo_put_s_member(text, ":owner", write->owner);
	if (!write->any_version)
		dynamo_put_s_member(text, ":expected", write->expected);
}

/* Nothing but the token: the item may be anybody's.  It must not expire with its bar. */
static void
put_bar(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	dynamo_text_raw(text, ",\"UpdateExpression\":\"SET #fencingToken = :last REMOVE #ttl\""
					",\"ConditionExpression\":\"attribute_exists(#key) AND "
					TOKEN_BELOW(":first") "\"");
	dynamo_put_names(text, table->partition_key, A_TOKEN | A_TTL);
	dynamo_put_values_start(text);
	dynamo_put_n_member(text, ":first", write->first_token);
	dynamo_put_n_member(text, ":last", write->last_token);
}

/* The item is needed as long as copies of the acquire may have a valid signature. */
static void
put_bar_new(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	bool		expires = table->released_ttl_s > 0;

	dynamo_text_raw(text, ",\"UpdateExpression\":\"SET #ownerName = :owner"
					", #recordVersionNumber = :version, #leaseDuration = :lease"
					", #isReleased = :released, #releasedAt = :now, #releasedVersion = :version"
					", #fencingToken = :last");
	dynamo_text_raw(text, expires ? ", #ttl = :ttl" : "");
	dynamo_text_raw(text, "\",\"ConditionExpression\":\"attribute_not_exists(#key)\"");
	dynamo_put_names(text, table->partition_key,
					 A_OWNER | A_VERSION | A_LEASE | A_RELEASED | A_RELEASED_AT |
					 A_RELEASED_VERSION | A_TOKEN | (expires ? A_TTL : 0));
	dynamo_put_values_start(text);
	put_lease_values(text, write);
	dynamo_put_s_member(text, ":released", "1");
	dynamo_put_n_member(text, ":now", write->now_s);
	dynamo_put_n_member(text, ":last", write->last_token);
	if (expires)
		dynamo_put_n_member(text, ":ttl", write->now_s +
							(table->released_ttl_s > BAR_AGE_S ? table->released_ttl_s : BAR_AGE_S));
}

/*
 * The condition names the holder: a mark that arrives late makes no item, and is on
 * none that is free or somebody else's.
 */
static void
put_mark(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, ",\"UpdateExpression\":\"SET #wanted = :wanted"
					"\",\"ConditionExpression\":\"#ownerName = :expected"
					" AND attribute_not_exists(#isReleased)\"");
	dynamo_put_names(text, NULL, A_OWNER | A_RELEASED | A_WANTED);
	dynamo_put_values_start(text);
	dynamo_put_s_member(text, ":expected", write->expected);
	dynamo_put_name(text, ":wanted");
	dynamo_text_raw(text, "{\"M\":{");
	dynamo_put_s_member(text, "owner", write->owner);
	dynamo_put_n_member(text, "until", write->wanted_until_ms);
	dynamo_put_n_member(text, "poll", write->wanted_poll_ms);
	dynamo_text_raw(text, "}}");
}

/*
 * Refused if the lock was acquired since it was read, even if released again; or if the
 * item bars an acquire that may arrive late.
 */
static void
put_delete(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, ",\"ConditionExpression\":\"#recordVersionNumber = :expected"
					" AND attribute_exists(#isReleased)"
					" AND (attribute_not_exists(#fencingToken) OR #fencingToken <= :last)\"");
	dynamo_put_names(text, NULL, A_VERSION | A_RELEASED | A_TOKEN);
	dynamo_put_values_start(text);
	dynamo_put_s_member(text, ":expected", write->expected);
	dynamo_put_n_member(text, ":last", write->last_token);
}

/* From the update's expression, or the condition, up to the last value. */
static void
put_expressions(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	switch (write->op)
	{
		case DYNAMO_ACQUIRE:
			put_acquire(text, table, write);
			break;
		case DYNAMO_HAND_OVER:
			put_hand_over(text, write);
			break;
		case DYNAMO_RELEASE:
		case DYNAMO_FORCE_RELEASE:
			put_release(text, table, write);
			break;
		case DYNAMO_BAR:
			put_bar(text, table, write);
			break;
		case DYNAMO_BAR_NEW:
			put_bar_new(text, table, write);
			break;
		case DYNAMO_MARK:
			put_mark(text, write);
			break;
		case DYNAMO_DELETE:
			put_delete(text, write);
			break;
		case DYNAMO_RENEW:
			put_renew(text, write);
			break;
		case DYNAMO_READ:
		case DYNAMO_RENEW_BATCH:
		case DYNAMO_DESCRIBE_TABLE:
		case DYNAMO_CREATE_TABLE:
		case DYNAMO_UPDATE_TTL:
		case DYNAMO_SCAN:
		case DYNAMO_QUERY:
		case DYNAMO_IDENTIFY:
		case DYNAMO_REPLACE:
		case DYNAMO_QUEUE_READ:
		case DYNAMO_QUEUE_QUERY:
		case DYNAMO_QUEUE_SCAN:
		case DYNAMO_QUEUE_TRANSACT:
		case DYNAMO_QUEUE_UPDATE:
		case DYNAMO_QUEUE_DELETE:
		case DYNAMO_QUEUE_DESCRIBE_TABLE:
		case DYNAMO_QUEUE_CREATE_TABLE:
		case DYNAMO_QUEUE_UPDATE_TTL:
			text->failed = true;	/* they have builders of their own */
			break;
	}
}

/* The item that a successful write asks for. */
static const char *
returned(const dynamo_write *write)
{
	if (write->shared != NULL)
		return dynamo_shared_shows_item(write->shared->kind) ? NEW_ITEM : "";
	if (write->op == DYNAMO_RELEASE)
		return WHOLE_REPLACED;	/* with a mark, if it has one */
	if (write->op == DYNAMO_BAR || write->op == DYNAMO_MARK)
		return NEW_ITEM;
	return write->op == DYNAMO_ACQUIRE ? REPLACED : "";
}

char *
dynamo_build(const dynamo_table *table, const dynamo_write *write)
{
	dynamo_text text;

	dynamo_text_start(&text, BODY_ROOM + write->name_len + write->data_len / 3 * 4);
	dynamo_text_raw(&text, "{");
	if (write->op == DYNAMO_REPLACE)
	{
		dynamo_text_raw(&text, "\"TableName\":");
		put_string(&text, table->name);
		dynamo_text_raw(&text, ",");
	}
	else
		put_table_and_key(&text, table, dynamo_key_of(table, write->name, write->name_len));
	if (write->op == DYNAMO_READ)
	{
		dynamo_text_raw(&text, write->maybe_stale ? "," : ",\"ConsistentRead\":true,");
		dynamo_text_raw(&text, CAPACITY "}");
		return dynamo_text_finish(&text);
	}
	if (write->op == DYNAMO_REPLACE)
		dynamo_put_replacement(&text, table, write);
	else if (write->shared == NULL)
		put_expressions(&text, table, write);
	else if (write->op == dynamo_shared_op(write->shared->kind))
		dynamo_put_shared(&text, table, write);
	else
		text.failed = true;
	dynamo_text_raw(&text, "},");
	dynamo_text_raw(&text, returned(write));
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

/* In the order of the statement's question marks. */
static void
put_parameters(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	const char *owner = write->shared != NULL ? write->shared->epoch : write->owner;
	dynamo_key	key = dynamo_key_of(table, write->name, write->name_len);

	dynamo_put_s(text, write->version, strlen(write->version));
	dynamo_text_raw(text, ",");
	if (write->shared != NULL)
		dynamo_put_s(text, write->version, strlen(write->version));
	else
		dynamo_put_number(text, 'S', write->lease_ms);
	dynamo_text_raw(text, ",");
	if (write->holder != NULL)
	{
		put_holder(text, write->owner, write->holder);
		dynamo_text_raw(text, ",");
	}
	dynamo_put_s(text, key.partition, key.partition_len);
	if (key.sort != NULL)
	{
		dynamo_text_raw(text, ",");
		dynamo_put_s(text, key.sort, key.sort_len);
	}
	dynamo_text_raw(text, ",");
	dynamo_put_s(text, owner, strlen(owner));
	dynamo_text_raw(text, ",");
	dynamo_put_s(text, write->expected, strlen(write->expected));
}

/* "shared"."h"."<incarnation>"."v" */
static void
put_entry_version(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, "\\\"shared\\\".\\\"h\\\".");
	put_identifier(text, write->shared->me);
	dynamo_text_raw(text, ".\\\"v\\\"");
}

/*
 * A renewal in PartiQL: UPDATE never creates an item, and "IS MISSING" is
 * attribute_not_exists().  In shared mode our entry's version takes the place of
 * the lease that is set and of the item's version that is demanded.
 */
static void
put_statement(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	const dynamo_shared_write *shared = write->shared;

	if ((shared != NULL && shared->kind != DYNAMO_SHARED_RENEW) || write->data != NULL)
		text->failed = true;
	dynamo_text_raw(text, "{\"Statement\":\"UPDATE ");
	put_identifier(text, table->name);
	dynamo_text_raw(text, " SET \\\"recordVersionNumber\\\" = ? SET ");
	if (shared != NULL)
		put_entry_version(text, write);
	else
		dynamo_text_raw(text, "\\\"leaseDuration\\\"");
	dynamo_text_raw(text, " = ?");
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
	dynamo_text_raw(text, " AND \\\"ownerName\\\" = ? AND ");
	if (shared != NULL)
		put_entry_version(text, write);
	else
		dynamo_text_raw(text, "\\\"recordVersionNumber\\\"");
	dynamo_text_raw(text, " = ? AND \\\"isReleased\\\" IS MISSING");
	dynamo_text_raw(text, shared != NULL ? " RETURNING ALL NEW *" : "");
	dynamo_text_raw(text, "\",\"Parameters\":[");
	put_parameters(text, table, write);
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

/*
 * To other clients the item is a lock that was released, whose owner never comes back.  Nothing
 * shows when that was, so nobody purges it; and it has no ttl.
 */
char *
dynamo_build_identify(const dynamo_table *table, const char *identity)
{
	dynamo_text text;

	dynamo_text_start(&text, BODY_ROOM);
	dynamo_text_raw(&text, "{");
	put_table_and_key(&text, table, dynamo_identity_key(table));
	dynamo_text_raw(&text, ",\"UpdateExpression\":\"SET #ownerName = :owner"
					", #recordVersionNumber = :version, #leaseDuration = :lease"
					", #isReleased = :released\""
					",\"ConditionExpression\":\"attribute_not_exists(#key)\"");
	dynamo_put_names(&text, table->partition_key, A_OWNER | A_VERSION | A_LEASE | A_RELEASED);
	dynamo_put_values_start(&text);
	dynamo_put_s_member(&text, ":owner", "ddblock");
	dynamo_put_s_member(&text, ":version", identity);
	dynamo_put_s_member(&text, ":lease", "1000");
	dynamo_put_s_member(&text, ":released", "1");
	dynamo_text_raw(&text, "}," OLD_ITEM "," CAPACITY "}");
	return dynamo_text_finish(&text);
}
