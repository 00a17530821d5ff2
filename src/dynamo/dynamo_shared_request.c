/*-------------------------------------------------------------------------
 *
 * dynamo_shared_request.c
 *	  Updates and conditions of the writes in shared mode.
 *
 * See "Shared locks" in doc/internals/protocol.md, which has the same order.  The
 * placeholder #me stands for our incarnation, #dead0, #dead1, ... for those of
 * dead entries.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <stdio.h>
#include <string.h>

#define SHARED "#ownerName = :epoch AND attribute_not_exists(#isReleased)"
#define MINE SHARED " AND #shared.#h.#me.#v = :expected"

/*
 * The condition on the entry of a dead incarnation.  That never writes again, so its name is
 * enough, in any epoch.
 */
#define OF_THE_DEAD "#ownerName = #shared.#owner AND attribute_not_exists(#isReleased)" \
	" AND attribute_exists(#shared.#h.#me)"

/* What a release of the item removes.  The gate stays, for the session that waits there. */
#define END_MODE ", #shared.#owner, #shared.#kind, #shared.#total, #shared.#h"

static bool
is_named(const char *version)
{
	return version != NULL && version[0] != '\0';
}

/*
 * What a write demands and removes so that DynamoDB lets it in.  A CHANGE to fewer permits demands
 * nothing.
 */
static dynamo_admission
admission_of(const dynamo_write *write)
{
	const dynamo_shared_write *shared = write->shared;
	dynamo_admission none = {0};

	if (shared->kind <= DYNAMO_SHARED_REPLACE)
		return shared->entry.admission;
	if (shared->kind == DYNAMO_SHARED_CHANGE && shared->change.permits > 0)
		return shared->change;
	if (shared->kind == DYNAMO_SHARED_CHANGE)
		none.permits = shared->change.permits;
	if (shared->kind == DYNAMO_SHARED_GATE)
		none.dead_gate = write->expected;
	return none;
}

/* ---- what placeholders stand for ---- */

static void
put_entry(dynamo_text *text, const char *name, const dynamo_write *write)
{
	int			depth = text->depth;

	dynamo_put_map(text, name);
	dynamo_put_s(text, "v", write->version);
	dynamo_put_n(text, "n", write->shared->entry.admission.permits);
	dynamo_put_n(text, "l", write->lease_ms);
	dynamo_put_n(text, "t", write->last_token);
	dynamo_put_s(text, "o", write->shared->entry.name);
	dynamo_text_close(text, depth);
}

const char *
dynamo_shared_name(const dynamo_write *write, const char *name)
{
	dynamo_admission admission = admission_of(write);
	int			dead = dynamo_number_in(name, "dead");

	if (dead >= 0 && dead < admission.dead_count)
		return admission.dead[dead].incarnation;
	return strcmp(name, "me") == 0 ? write->shared->me : NULL;
}

bool
dynamo_put_shared_value(dynamo_text *text, const char *name, const dynamo_write *write)
{
	const dynamo_shared_write *shared = write->shared;
	dynamo_admission admission = admission_of(write);
	int64_t		growth = (int64_t) admission.permits - admission.freed;
	int			dead = dynamo_number_in(name, "dead");
	int			depth = text->depth;
	char		opened[DYNAMO_OWNER_SIZE];
	const char *epoch = shared->epoch;
	const dynamo_value values[] = {
		{"gate",.text = admission.dead_gate},
		{"token",.number = write->last_token},
		{"permits",.number = admission.permits},
		{"growth",.number = growth},
		{"room",.number = admission.limit - growth},
		{"most",.number = DYNAMO_ENTRIES_MAX + admission.dead_count},
		{"one",.number = 1},
	};

	if (shared->kind == DYNAMO_SHARED_OPEN)
	{
		snprintf(opened, sizeof(opened), "shared/%s", write->version);
		epoch = opened;
	}
	if (dead >= 0 && dead < admission.dead_count)
		dynamo_put_s(text, NULL, admission.dead[dead].version);
	else if (strcmp(name, "epoch") == 0)
		dynamo_put_s(text, NULL, epoch);
	else if (strcmp(name, "kind") == 0)
		dynamo_put_s(text, NULL, dynamo_mode_name(shared->entry.mode));
	else if (strcmp(name, "shorter") == 0)
		dynamo_put_lease(text, NULL, shared->entry.shorter_ms);
	else if (strcmp(name, "entry") == 0)
		put_entry(text, NULL, write);
	else if (strcmp(name, "shared") == 0)
	{
		/* The whole map "shared", with our entry only. */
		dynamo_put_map(text, NULL);
		dynamo_put_s(text, "owner", epoch);
		dynamo_put_s(text, "kind", dynamo_mode_name(shared->entry.mode));
		dynamo_put_n(text, "total", shared->entry.admission.permits);
		dynamo_put_map(text, "h");
		put_entry(text, shared->me, write);
		dynamo_text_close(text, depth);
	}
	else if (strcmp(name, "waiter") == 0)
	{
		dynamo_put_map(text, NULL);
		dynamo_put_s(text, "v", write->version);
		dynamo_put_n(text, "l", write->lease_ms);
		dynamo_put_s(text, "o", shared->waiter);
		dynamo_text_close(text, depth);
	}
	else
		return dynamo_put_value(text, name, values, sizeof(values) / sizeof(values[0]));
	return true;
}

/* ---- what joins, replacements and changes upwards have in common ---- */

/* The condition that keeps a write out while the gate of a living waiter stands. */
static const char *
gate_condition(const char *dead_gate)
{
	return is_named(dead_gate) ?
		" AND (attribute_not_exists(#shared.#gate.#v) OR #shared.#gate.#v = :gate)" :
		" AND attribute_not_exists(#shared.#gate.#v)";
}

/* Removes dead entries, a dead gate, and our mark. */
static void
put_removals(dynamo_text *text, const dynamo_write *write, const dynamo_admission *admission)
{
	const char *before = " REMOVE";

	for (int i = 0; i < admission->dead_count; i++, before = ",")
		dynamo_text_raw(text, "%s #shared.#h.#dead%d", before, i);
	if (is_named(admission->dead_gate))
	{
		dynamo_text_raw(text, "%s #shared.#gate", before);
		before = ",";
	}
	if (write->unmark && admission->permits > 0)
		dynamo_text_raw(text, "%s #wanted", before);
}

static void
put_admission_condition(dynamo_text *text, const dynamo_admission *admission)
{
	if (admission->limit > 0)
		dynamo_text_raw(text, " AND #shared.#total <= :room");
	dynamo_text_raw(text, "%s", gate_condition(admission->dead_gate));
	for (int i = 0; i < admission->dead_count; i++)
		dynamo_text_raw(text, " AND #shared.#h.#dead%d.#v = :dead%d", i, i);
}

/* ---- the writes ---- */

/*
 * A JOIN or a REPLACE.
 *
 *	 - The condition on the map's size sees it before the dead entries are removed.
 *	 - A write that raises the item's leaseDuration names the shorter one in its condition,
 *	   because another join may have raised it further meanwhile.
 */
static void
put_join(dynamo_text *text, const dynamo_write *write)
{
	const dynamo_shared_write *shared = write->shared;
	bool		raises = shared->entry.shorter_ms > 0;

	dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version, #fencingToken = :token"
					", #shared.#total = #shared.#total + :growth, #shared.#h.#me = :entry%s",
					raises ? ", #leaseDuration = :lease" : "");
	put_removals(text, write, &shared->entry.admission);
	dynamo_text_raw(text, CONDITION SHARED " AND #shared.#kind = :kind"
					" AND #fencingToken < :token%s%s",
					shared->kind == DYNAMO_SHARED_REPLACE ? " AND #shared.#h.#me.#v = :expected" :
					" AND attribute_not_exists(#shared.#h.#me) AND size(#shared.#h) < :most",
					raises ? " AND #leaseDuration = :shorter" : "");
	put_admission_condition(text, &shared->entry.admission);
}

/* A CHANGE, which is counted as a renewal. */
static void
put_change(dynamo_text *text, const dynamo_write *write)
{
	dynamo_admission admission = admission_of(write);

	dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version"
					", #shared.#h.#me.#v = :version"
					", #shared.#h.#me.#n = #shared.#h.#me.#n + :permits"
					", #shared.#total = #shared.#total + :growth");
	put_removals(text, write, &admission);
	dynamo_text_raw(text, CONDITION MINE);
	if (admission.permits > 0)
		put_admission_condition(text, &admission);
}

void
dynamo_put_shared(dynamo_request *request)
{
	dynamo_text *text = &request->text;
	const dynamo_write *write = request->write;
	const char *whose = write->any_version ? OF_THE_DEAD : MINE;

	switch (write->shared->kind)
	{
		case DYNAMO_SHARED_OPEN:
			/*
			 * The names of additional attributes must be known, as for an acquire, although the
			 * attributes stay. So names that nobody can read keep out everybody.
			 */
			dynamo_text_raw(text, UPDATE "SET #ownerName = :epoch, #recordVersionNumber = :version"
							", #leaseDuration = :lease, #fencingToken = :token, #shared = :shared"
							" REMOVE #data, #holder, #isReleased, #releasedAt, #releasedVersion, #ttl"
							", #keptUntil%s" CONDITION FREE "%s" NEW_TOKEN(":token") NOT_KEPT
							"%s AND %s",
							write->unmark ? ", #wanted" : "",
							is_named(write->expected) ? OR_DEAD : "",
							gate_condition(write->shared->entry.admission.dead_gate),
							OLD_NAMES(write));
			break;
		case DYNAMO_SHARED_JOIN:
		case DYNAMO_SHARED_REPLACE:
			put_join(text, write);
			break;
		case DYNAMO_SHARED_RENEW:
			dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version"
							", #shared.#h.#me.#v = :version" CONDITION MINE);
			break;
		case DYNAMO_SHARED_CHANGE:
			put_change(text, write);
			break;
		case DYNAMO_SHARED_LEAVE:
			dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version"
							", #shared.#total = #shared.#total - #shared.#h.#me.#n"
							" REMOVE #shared.#h.#me" CONDITION "%s AND size(#shared.#h) > :one",
							whose);
			break;
		case DYNAMO_SHARED_LAST:
			dynamo_text_raw(text, END_MODE CONDITION "%s AND size(#shared.#h) = :one", whose);
			break;
		case DYNAMO_SHARED_FORCE_RELEASE:
			dynamo_text_raw(text, END_MODE CONDITION SHARED);
			break;
		case DYNAMO_SHARED_GATE:
			dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version"
							", #shared.#gate = :waiter" CONDITION SHARED "%s",
							gate_condition(write->expected));
			break;
		case DYNAMO_SHARED_RENEW_GATE:
			dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version"
							", #shared.#gate.#v = :version" CONDITION SHARED
							" AND #shared.#gate.#v = :expected");
			break;
	}
}

/* The item shows a holder the gate and the other holders; it shows a mark to whoever leaves. */
bool
dynamo_shared_shows_item(dynamo_shared_kind kind)
{
	return kind != DYNAMO_SHARED_OPEN && kind != DYNAMO_SHARED_FORCE_RELEASE;
}

bool
dynamo_shared_releases(dynamo_shared_kind kind)
{
	return kind == DYNAMO_SHARED_LAST || kind == DYNAMO_SHARED_FORCE_RELEASE;
}
