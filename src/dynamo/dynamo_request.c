/*-------------------------------------------------------------------------
 *
 * dynamo_request.c
 *	  Request bodies of the DynamoDB codec: reads and writes of one item, batches of renewals.
 *
 * Each operation is one request, and each write is conditional; see
 * "Operations" in doc/internals/protocol.md.  Expressions use placeholders for attribute
 * names ("#ownerName" for ownerName), because several are reserved words.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <string.h>

/* Every condition on an item that we hold also demands that it is not released. */
#define HELD_BY_US \
	"#ownerName = :owner AND #recordVersionNumber = :expected" \
	" AND attribute_not_exists(#isReleased)"

/*
 * The condition on an item that a dead incarnation holds: it never writes again, so its name is
 * enough.
 */
#define HELD_BY_THE_DEAD \
	"#ownerName = :owner AND attribute_not_exists(#isReleased)"
/*
 * The condition of a release by force.  An operator need not be the holder: the version names the
 * lease that was shown, or the released item that keptUntil keeps from others.
 */
#define HELD_BY_ANYBODY \
	"#recordVersionNumber = :expected" \
	" AND (attribute_not_exists(#isReleased) OR attribute_exists(#keptUntil))"

#define CAPACITY "\"ReturnConsumedCapacity\":\"TOTAL\""
#define OLD_ITEM "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\""
#define REPLACED "\"ReturnValues\":\"UPDATED_OLD\","
#define WHOLE_REPLACED "\"ReturnValues\":\"ALL_OLD\","
#define NEW_ITEM "\"ReturnValues\":\"ALL_NEW\","

#define BAR_AGE_S 86400			/* an item that a bar has made must stay for so long */

/* ---- what placeholders stand for ---- */

static void
put_text(dynamo_text *text, const char *name, const char *value)
{
	if (value[0] != '\0')
		dynamo_put_s(text, name, value);
}

/*
 * The holder map has the owner in it, because other clients change ownerName and may keep the map.
 */
static void
put_holder(dynamo_text *text, const char *owner, const dynamo_holder *holder)
{
	int			depth = text->depth;

	dynamo_put_map(text, NULL);
	dynamo_put_s(text, "owner", owner);
	put_text(text, "database", holder->database);
	put_text(text, "user", holder->user);
	put_text(text, "application", holder->application);
	put_text(text, "host", holder->host);
	if (holder->pid != 0)
		dynamo_put_n(text, "pid", holder->pid);
	if (holder->since_ms != 0)
		dynamo_put_n(text, "since", holder->since_ms);
	put_text(text, "system", holder->system);
	dynamo_text_close(text, depth);
}

/*
 * The ttl of a released item.  It must not expire while keptUntil keeps the lock from others, nor
 * for a day after.  An item that bars an acquire must stay as long as copies of that acquire may
 * have a valid signature.
 */
static int64_t
ttl_of(const dynamo_table *table, const dynamo_write *write)
{
	int64_t		ttl = write->now_s + table->released_ttl_s;
	int64_t		needed = ttl;

	if (write->op == DYNAMO_BAR_NEW)
		needed = write->now_s + BAR_AGE_S;
	else if (write->kept_until_ms != 0)
		needed = write->kept_until_ms / 1000 + DYNAMO_KEPT_AGE_S;
	return needed > ttl ? needed : ttl;
}

static void
put_name(dynamo_text *text, const char *name, const void *of)
{
	const dynamo_request *request = of;
	const char *extra = dynamo_extra_name(request, name);

	if (extra == NULL && request->write->shared != NULL)
		extra = dynamo_shared_name(request->write, name);
	if (extra != NULL)
		dynamo_text_string(text, extra, strlen(extra));
	else
		dynamo_put_attribute_name(text, name, request->table);
}

static void
put_value(dynamo_text *text, const char *name, const void *of)
{
	const dynamo_request *request = of;
	const dynamo_write *write = request->write;
	const dynamo_value values[] = {
		{"owner",.text = write->owner},
		{"version",.text = write->version},
		{"expected",.text = write->expected},
		{"oldNames",.text = write->old_attributes},
		{"released",.text = "1"},
		{"first",.number = write->first_token},
		{"last",.number = write->last_token},
		{"past",.number = write->past_ms},
		{"kept",.number = write->kept_until_ms},
		{"now",.number = write->now_s},
		{"ttl",.number = ttl_of(request->table, write)},
	};

	if (write->op == DYNAMO_REPLACE)
		dynamo_text_json(text, dynamo_json_member(request->replaced, name));
	else if (strcmp(name, "lease") == 0)
		dynamo_put_lease(text, NULL, write->lease_ms);
	else if (strcmp(name, "holder") == 0)
		put_holder(text, write->owner, write->holder);
	else if (strcmp(name, "data") == 0)
		dynamo_put_bytes(text, write->data, write->data_len);
	else if (strcmp(name, "wanted") == 0)
	{
		int			depth = text->depth;

		dynamo_put_map(text, NULL);
		dynamo_put_s(text, "owner", write->owner);
		dynamo_put_n(text, "until", write->wanted_until_ms);
		dynamo_put_n(text, "poll", write->wanted_poll_ms);
		if (write->wanted_limit > 0)
		{
			dynamo_put_n(text, "permits", write->wanted_permits);
			dynamo_put_n(text, "limit", write->wanted_limit);
		}
		dynamo_text_close(text, depth);
	}
	else if (!dynamo_put_value(text, name, values, sizeof(values) / sizeof(values[0])) &&
			 !dynamo_put_extra_value(text, name, request) &&
			 !(write->shared != NULL && dynamo_put_shared_value(text, name, write)))
		text->failed = true;
}

/* ---- expressions: each up to the end of the condition ---- */

static void
put_acquire(dynamo_request *request)
{
	const dynamo_write *write = request->write;
	dynamo_text *text = &request->text;
	bool		take_over = write->expected != NULL && write->expected[0] != '\0';
	bool		data = write->data != NULL;
	bool		kept = write->kept_until_ms != 0;

	dynamo_parse_extras(request);
	dynamo_text_raw(text, UPDATE "SET #ownerName = :owner, #recordVersionNumber = :version"
					", #leaseDuration = :lease, #fencingToken = :last, #holder = :holder%s%s",
					kept ? ", #keptUntil = :kept" : "", data ? ", #data = :data" : "");
	dynamo_put_extras_set(request);
	dynamo_text_raw(text, " REMOVE%s #isReleased, #releasedAt, #releasedVersion, #ttl, #shared%s%s",
					data ? "" : " #data,", kept ? "" : ", #keptUntil",
					write->unmark ? ", #wanted" : "");
	dynamo_put_extras_remove(request);

	/*
	 * The condition is on the first token.  With the last one, a late copy could reserve tokens
	 * below another cluster's.
	 */
	dynamo_text_raw(text, CONDITION "%s%s" NEW_TOKEN(":first") NOT_KEPT " AND %s",
					write->must_exist ? RELEASED : FREE, take_over ? OR_DEAD : "",
					OLD_NAMES(write));
}

static void
put_renew(dynamo_request *request)
{
	const dynamo_write *write = request->write;

	dynamo_text_raw(&request->text, UPDATE "SET #recordVersionNumber = :version"
					", #leaseDuration = :lease%s%s" CONDITION HELD_BY_US,
					write->holder != NULL ? ", #holder = :holder" : "",
					write->data == NULL ? "" :
					write->data_len > 0 ? ", #data = :data" : " REMOVE #data");
}

static void
put_hand_over(dynamo_request *request)
{
	bool		data = request->write->data != NULL;
	bool		kept = request->write->kept_until_ms != 0;

	dynamo_text_raw(&request->text, UPDATE "SET #recordVersionNumber = :version"
					", #leaseDuration = :lease, #fencingToken = :last, #holder = :holder%s%s%s"
					CONDITION HELD_BY_US NOT_KEPT " AND " TOKEN_BELOW(":first"),
					data ? ", #data = :data" : "", kept ? ", #keptUntil = :kept" : "",
					data && kept ? "" : data ? " REMOVE #keptUntil" :
					kept ? " REMOVE #data" : " REMOVE #data, #keptUntil");
}

/*
 * Releases the item; also in shared mode, for the last cluster that shares the lock or for an
 * operator.
 */
static void
put_release(dynamo_request *request)
{
	const dynamo_write *write = request->write;
	dynamo_text *text = &request->text;

	dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version, #isReleased = :released"
					", #releasedAt = :now, #releasedVersion = :version%s REMOVE #holder, #data%s",
					request->table->released_ttl_s > 0 ? ", #ttl = :ttl" : "",
					write->kept_until_ms == 0 ? ", #keptUntil" : "");
	if (write->shared != NULL)
	{
		dynamo_put_shared(request);
		return;
	}
	dynamo_parse_extras(request);
	dynamo_put_extras_remove(request);
	dynamo_text_raw(text, CONDITION "%s", write->op == DYNAMO_FORCE_RELEASE ? HELD_BY_ANYBODY :
					write->any_version ? HELD_BY_THE_DEAD : HELD_BY_US);
}

static void
put_bar_new(dynamo_request *request)
{
	dynamo_text_raw(&request->text, UPDATE "SET #ownerName = :owner"
					", #recordVersionNumber = :version, #leaseDuration = :lease"
					", #isReleased = :released, #releasedAt = :now, #releasedVersion = :version"
					", #fencingToken = :last%s" CONDITION "attribute_not_exists(#key)",
					request->table->released_ttl_s > 0 ? ", #ttl = :ttl" : "");
}

static const struct
{
	void		(*put) (dynamo_request *request);
	const char *text;			/* the members, if put is NULL */
	const char *shows;			/* the item that a successful write asks for, or NULL;
								 * not in shared mode */
}			writers[DYNAMO_OP_COUNT] = {
	[DYNAMO_ACQUIRE] = {.put = put_acquire,.shows = REPLACED},
	[DYNAMO_RENEW] = {.put = put_renew},
	[DYNAMO_HAND_OVER] = {.put = put_hand_over},
	[DYNAMO_RELEASE] = {.put = put_release,.shows = WHOLE_REPLACED},	/* the item shows a mark of
																		 * another cluster */
	[DYNAMO_FORCE_RELEASE] = {.put = put_release},
	/*
	 * A bar writes nothing but the token, because the item may be anybody's; and the item must not
	 * expire while the bar is needed.
	 */
	[DYNAMO_BAR] = {.shows = NEW_ITEM,.text = UPDATE "SET #fencingToken = :last REMOVE #ttl"
		CONDITION "attribute_exists(#key) AND " TOKEN_BELOW(":first")},
	[DYNAMO_BAR_NEW] = {.put = put_bar_new},
	/*
	 * The condition names the holder, so a mark that arrives late makes no item, and marks none
	 * that is free or somebody else's.  For permits it takes any epoch: a cluster that takes the
	 * last permit again and again opens another epoch each time.
	 */
	[DYNAMO_MARK] = {.shows = NEW_ITEM,.text = UPDATE "SET #wanted = :wanted"
		CONDITION "(#ownerName = :expected OR #ownerName = #shared.#owner)"
		" AND attribute_not_exists(#isReleased)"},
	/*
	 * A deletion is refused if the lock was acquired since it was read, even if it was released
	 * again; and if the item bars an acquire that may arrive late.
	 */
	[DYNAMO_DELETE] = {.text = CONDITION_ONLY "#recordVersionNumber = :expected"
		" AND attribute_exists(#isReleased)"
		" AND (attribute_not_exists(#fencingToken) OR #fencingToken <= :last)"},
	/*
	 * The item with the table's identity.  To other clients it is a lock that was released, whose
	 * owner never comes back.  It does not show when it was released, so no purge deletes it; and
	 * it has no ttl.
	 */
	[DYNAMO_IDENTIFY] = {.text = UPDATE "SET #ownerName = :owner"
		", #recordVersionNumber = :version, #leaseDuration = :lease"
		", #isReleased = :released" CONDITION "attribute_not_exists(#key)"},
	[DYNAMO_REPLACE] = {.put = dynamo_put_replacement},
};

char *
dynamo_build(const dynamo_table *table, const dynamo_write *write)
{
	dynamo_request request = {.table = table,.write = write};
	dynamo_text *text = &request.text;
	const dynamo_shared_write *shared = write->shared;
	size_t		from;

	dynamo_text_start(text, '{', BODY_ROOM + write->name_len + write->data_len / 3 * 4);
	dynamo_put_table(text, table->name);
	dynamo_text_open(text, write->op == DYNAMO_REPLACE ? "Item" : "Key", '{');
	dynamo_put_key(text, table, write->op == DYNAMO_IDENTIFY ? dynamo_identity_key(table) :
				   dynamo_key_of(table, write->name, write->name_len));
	if (write->op == DYNAMO_REPLACE)
		dynamo_put_new_item(text, table, write);
	dynamo_text_close(text, 1);
	from = text->len;
	if (write->op == DYNAMO_READ)
		dynamo_text_raw(text, write->maybe_stale ? "" : ",\"ConsistentRead\":true");
	else
	{
		const char *shows = writers[write->op].shows;

		if (shared != NULL)
			shows = dynamo_shared_shows_item(shared->kind) ? NEW_ITEM : NULL;
		if ((writers[write->op].put == NULL && writers[write->op].text == NULL) ||
			(shared != NULL && write->op != dynamo_shared_op(shared->kind)))
			text->failed = true;
		else if (shared != NULL && !dynamo_shared_releases(shared->kind))
			dynamo_put_shared(&request);
		else if (writers[write->op].put != NULL)
			writers[write->op].put(&request);
		else
			dynamo_text_raw(text, "%s", writers[write->op].text);
		dynamo_text_raw(text, "\"");
		dynamo_put_placeholders(text, from, put_name, put_value, &request);
		dynamo_text_raw(text, ",%s" OLD_ITEM, shows != NULL ? shows : "");
	}
	dynamo_text_raw(text, "," CAPACITY);
	cJSON_Delete(request.set);
	cJSON_Delete(request.old);
	cJSON_Delete(request.replaced);
	return dynamo_text_finish(text);
}

char *
dynamo_build_identify(const dynamo_table *table, const char *identity)
{
	dynamo_write write = {
		.op = DYNAMO_IDENTIFY,.owner = "ddblock",.version = identity,.lease_ms = 1000
	};

	return dynamo_build(table, &write);
}

/* ---- batches ---- */

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
 * Puts the path of our entry's version in shared mode, "shared"."h"."<incarnation>"."v"; else the
 * attribute.
 */
static void
put_entry_version(dynamo_text *text, const dynamo_shared_write *shared, const char *attribute)
{
	if (shared == NULL)
	{
		put_identifier(text, attribute);
		return;
	}
	dynamo_text_raw(text, "\\\"shared\\\".\\\"h\\\".");
	put_identifier(text, shared->me);
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
	dynamo_key	key = dynamo_key_of(table, write->name, write->name_len);
	int			depth = text->depth;

	if ((shared != NULL && shared->kind != DYNAMO_SHARED_RENEW) || write->data != NULL)
		text->failed = true;
	dynamo_text_open(text, NULL, '{');
	dynamo_text_raw(text, "\"Statement\":\"UPDATE ");
	put_identifier(text, table->name);
	dynamo_text_raw(text, " SET \\\"recordVersionNumber\\\" = ? SET ");
	put_entry_version(text, shared, "leaseDuration");
	dynamo_text_raw(text, " = ?%s WHERE ", write->holder != NULL ? " SET \\\"holder\\\" = ?" : "");
	put_identifier(text, table->partition_key);
	dynamo_text_raw(text, " = ? AND ");
	if (table->sort_key != NULL)
	{
		put_identifier(text, table->sort_key);
		dynamo_text_raw(text, " = ? AND ");
	}
	dynamo_text_raw(text, "\\\"ownerName\\\" = ? AND ");
	put_entry_version(text, shared, "recordVersionNumber");
	dynamo_text_raw(text, " = ? AND \\\"isReleased\\\" IS MISSING%s\"",
					shared != NULL ? " RETURNING ALL NEW *" : "");

	/* in the order of the question marks */
	dynamo_text_open(text, "Parameters", '[');
	dynamo_put_s(text, NULL, write->version);
	if (shared != NULL)
		dynamo_put_s(text, NULL, write->version);
	else
		dynamo_put_lease(text, NULL, write->lease_ms);
	if (write->holder != NULL)
		put_holder(text, write->owner, write->holder);
	dynamo_put_text(text, NULL, key.partition, key.partition_len);
	if (key.sort != NULL)
		dynamo_put_text(text, NULL, key.sort, key.sort_len);
	dynamo_put_s(text, NULL, shared != NULL ? shared->epoch : write->owner);
	dynamo_put_s(text, NULL, write->expected);
	dynamo_text_close(text, depth + 1);
	dynamo_text_raw(text, "," OLD_ITEM);
	dynamo_text_close(text, depth);
}

char *
dynamo_build_batch(const dynamo_table *table, const dynamo_write *writes, int count)
{
	dynamo_text text;

	dynamo_text_start(&text, '{', (size_t) count * BODY_ROOM);
	dynamo_text_open(&text, "Statements", '[');
	for (int i = 0; i < count; i++)
		put_statement(&text, table, &writes[i]);
	dynamo_text_close(&text, 1);
	dynamo_text_raw(&text, "," CAPACITY);
	return dynamo_text_finish(&text);
}
