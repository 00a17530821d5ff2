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

#define UPDATE ",\"UpdateExpression\":\""
#define CONDITION "\",\"ConditionExpression\":\""

#define SHARED "#ownerName = :epoch AND attribute_not_exists(#isReleased)"
#define MINE SHARED " AND #shared.#h.#me.#v = :expected"

/* A dead incarnation never writes again, so its name is enough, in any epoch. */
#define OF_THE_DEAD "#ownerName = #shared.#owner AND attribute_not_exists(#isReleased)" \
	" AND attribute_exists(#shared.#h.#me)"

#define A_SHARED_MODE (A_OWNER | A_RELEASED)
#define A_ENTRY (A_SHARED | A_ENTRIES)
#define A_MINE (A_SHARED_MODE | A_ENTRY | A_ENTRY_VERSION)

static void
put_numbered(dynamo_text *text, const char *prefix, int number)
{
	dynamo_text_raw(text, prefix);
	dynamo_text_int(text, number);
}

/* Declares #me and the dead. */
static void
put_incarnations(dynamo_text *text, const char *me, const dynamo_admission *admission)
{
	int			count = admission != NULL ? admission->dead_count : 0;

	dynamo_put_name(text, "#me");
	dynamo_text_string(text, me, strlen(me));
	for (int i = 0; i < count; i++)
	{
		const char *dead = admission->dead[i].incarnation;

		put_numbered(text, ",\"#dead", i);
		dynamo_text_raw(text, "\":");
		dynamo_text_string(text, dead, strlen(dead));
	}
}

/* ---- what joins, replacements and changes upwards have in common ---- */

static bool
is_named(const char *version)
{
	return version != NULL && version[0] != '\0';
}

/* Nobody gets past the gate of a living waiter. */
static void
put_gate_condition(dynamo_text *text, const char *dead_gate)
{
	dynamo_text_raw(text, is_named(dead_gate) ?
					" AND (attribute_not_exists(#shared.#gate.#v) OR #shared.#gate.#v = :gate)" :
					" AND attribute_not_exists(#shared.#gate.#v)");
}

static void
put_removal_of_dead(dynamo_text *text, const dynamo_admission *admission)
{
	for (int i = 0; i < admission->dead_count; i++)
		put_numbered(text, i == 0 ? " REMOVE #shared.#h.#dead" : ", #shared.#h.#dead", i);
	if (is_named(admission->dead_gate))
		dynamo_text_raw(text, admission->dead_count == 0 ? " REMOVE #shared.#gate" :
						", #shared.#gate");
}

static void
put_admission_condition(dynamo_text *text, const dynamo_admission *admission)
{
	if (admission->limit > 0)
		dynamo_text_raw(text, " AND #shared.#total <= :room");
	put_gate_condition(text, admission->dead_gate);
	for (int i = 0; i < admission->dead_count; i++)
	{
		put_numbered(text, " AND #shared.#h.#dead", i);
		put_numbered(text, ".#v = :dead", i);
	}
}

/* By how much the total grows. */
static int64_t
growth(const dynamo_admission *admission)
{
	return (int64_t) admission->permits - admission->freed;
}

static void
put_admission_values(dynamo_text *text, const dynamo_admission *admission)
{
	dynamo_put_n_member(text, ":growth", growth(admission));
	if (admission->limit > 0)
		dynamo_put_n_member(text, ":room", admission->limit - growth(admission));
	if (is_named(admission->dead_gate))
		dynamo_put_s_member(text, ":gate", admission->dead_gate);
	for (int i = 0; i < admission->dead_count; i++)
	{
		const char *version = admission->dead[i].version;

		put_numbered(text, ",\":dead", i);
		dynamo_text_raw(text, "\":");
		dynamo_put_s(text, version, strlen(version));
	}
}

/* ---- values ---- */

static const char *
kind_name(bool semaphore)
{
	return semaphore ? "semaphore" : "shared";
}

static void
put_entry(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, "{\"M\":{");
	dynamo_put_s_member(text, "v", write->version);
	dynamo_put_n_member(text, "n", write->shared->entry.admission.permits);
	dynamo_put_n_member(text, "l", write->lease_ms);
	dynamo_put_n_member(text, "t", write->last_token);
	dynamo_put_s_member(text, "o", write->shared->entry.name);
	dynamo_text_raw(text, "}}");
}

/* The whole map, with one entry. */
static void
put_map(dynamo_text *text, const dynamo_write *write, const char *epoch)
{
	const dynamo_shared_write *shared = write->shared;

	dynamo_put_name(text, ":shared");
	dynamo_text_raw(text, "{\"M\":{");
	dynamo_put_s_member(text, "owner", epoch);
	dynamo_put_s_member(text, "kind", kind_name(shared->entry.semaphore));
	dynamo_put_n_member(text, "total", shared->entry.admission.permits);
	dynamo_put_name(text, "h");
	dynamo_text_raw(text, "{\"M\":{");
	dynamo_text_string(text, shared->me, strlen(shared->me));
	dynamo_text_raw(text, ":");
	put_entry(text, write);
	dynamo_text_raw(text, "}}}}");
}

static void
put_lease(dynamo_text *text, const char *name, int64_t lease_ms)
{
	dynamo_put_name(text, name);
	dynamo_put_number(text, 'S', lease_ms);
}

/* ---- the writes ---- */

static void
put_open(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	const char *dead_gate = write->shared->entry.admission.dead_gate;
	bool		take_over = is_named(write->expected);
	char		epoch[DYNAMO_OWNER_SIZE];

	snprintf(epoch, sizeof(epoch), "shared/%s", write->version);
	dynamo_text_raw(text, UPDATE "SET #ownerName = :epoch, #recordVersionNumber = :version"
					", #leaseDuration = :lease, #fencingToken = :token, #shared = :shared"
					" REMOVE #data, #holder, #isReleased, #releasedAt, #releasedVersion, #ttl"
					", #keptUntil");
	dynamo_text_raw(text, write->unmark ? ", #wanted" CONDITION FREE : CONDITION FREE);
	dynamo_text_raw(text, take_over ? OR_DEAD NEW_TOKEN(":token") : NEW_TOKEN(":token"));
	dynamo_text_raw(text, NOT_KEPT);
	put_gate_condition(text, dead_gate);

	/* As an acquire, although they stay: names that nobody can read keep out all alike. */
	dynamo_text_raw(text, write->old_attributes != NULL ? " AND #attributeNames = :oldNames\"" :
					" AND attribute_not_exists(#attributeNames)\"");

	dynamo_put_names(text, table->partition_key,
					 A_OWNER | A_VERSION | A_LEASE | A_TOKEN | A_HOLDER | A_DATA |
					 A_RELEASED | A_RELEASED_AT | A_TTL | A_RELEASED_VERSION | A_SHARED |
					 A_ATTRIBUTE_NAMES | A_KEPT | A_GATE | A_ENTRY_VERSION |
					 (write->unmark ? A_WANTED : 0));
	dynamo_put_values_start(text);
	dynamo_put_s_member(text, ":epoch", epoch);
	dynamo_put_s_member(text, ":version", write->version);
	put_lease(text, ":lease", write->lease_ms);
	dynamo_put_n_member(text, ":token", write->last_token);
	dynamo_put_n_member(text, ":past", write->past_ms);
	put_map(text, write, epoch);
	if (take_over)
		dynamo_put_s_member(text, ":expected", write->expected);
	if (is_named(dead_gate))
		dynamo_put_s_member(text, ":gate", dead_gate);
	if (write->old_attributes != NULL)
		dynamo_put_s_member(text, ":oldNames", write->old_attributes);
}

/*
 * A join, or a replacement.  The map's size is that before the dead are removed.
 * Who raises the item's lease names the shorter one: another join may have raised it
 * further meanwhile.
 */
static void
put_join(dynamo_text *text, const dynamo_write *write)
{
	const dynamo_shared_write *shared = write->shared;
	const dynamo_admission *admission = &shared->entry.admission;
	bool		replaces = shared->kind == DYNAMO_SHARED_REPLACE;
	bool		raises = shared->entry.shorter_ms > 0;

	dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version, #fencingToken = :token"
					", #shared.#total = #shared.#total + :growth, #shared.#h.#me = :entry");
	if (raises)
		dynamo_text_raw(text, ", #leaseDuration = :lease");
	put_removal_of_dead(text, admission);
	dynamo_text_raw(text, CONDITION SHARED " AND #shared.#kind = :kind"
					" AND #fencingToken < :token");
	dynamo_text_raw(text, replaces ? " AND #shared.#h.#me.#v = :expected" :
					" AND attribute_not_exists(#shared.#h.#me) AND size(#shared.#h) < :most");
	if (raises)
		dynamo_text_raw(text, " AND #leaseDuration = :shorter");
	put_admission_condition(text, admission);
	dynamo_text_raw(text, "\"");

	dynamo_put_names(text, NULL, A_MINE | A_VERSION | A_TOKEN | A_KIND | A_TOTAL | A_GATE |
					 (raises ? A_LEASE : 0));
	put_incarnations(text, shared->me, admission);
	dynamo_put_values_start(text);
	dynamo_put_s_member(text, ":epoch", shared->epoch);
	dynamo_put_s_member(text, ":version", write->version);
	dynamo_put_n_member(text, ":token", write->last_token);
	dynamo_put_s_member(text, ":kind", kind_name(shared->entry.semaphore));
	dynamo_put_name(text, ":entry");
	put_entry(text, write);
	if (replaces)
		dynamo_put_s_member(text, ":expected", write->expected);
	else
		dynamo_put_n_member(text, ":most", DYNAMO_ENTRIES_MAX + admission->dead_count);
	if (raises)
	{
		put_lease(text, ":lease", write->lease_ms);
		put_lease(text, ":shorter", shared->entry.shorter_ms);
	}
	put_admission_values(text, admission);
}

static void
put_renew(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version"
					", #shared.#h.#me.#v = :version" CONDITION MINE "\"");
	dynamo_put_names(text, NULL, A_MINE | A_VERSION);
	put_incarnations(text, write->shared->me, NULL);
	dynamo_put_values_start(text);
	dynamo_put_s_member(text, ":epoch", write->shared->epoch);
	dynamo_put_s_member(text, ":version", write->version);
	dynamo_put_s_member(text, ":expected", write->expected);
}

/* Counts as a renewal.  Fewer permits need no admission. */
static void
put_change(dynamo_text *text, const dynamo_write *write)
{
	const dynamo_shared_write *shared = write->shared;
	bool		more = shared->change.permits > 0;
	dynamo_admission admission = {.permits = shared->change.permits};

	if (more)
		admission = shared->change;
	dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version"
					", #shared.#h.#me.#v = :version"
					", #shared.#h.#me.#n = #shared.#h.#me.#n + :permits"
					", #shared.#total = #shared.#total + :growth");
	put_removal_of_dead(text, &admission);
	dynamo_text_raw(text, CONDITION MINE);
	if (more)
		put_admission_condition(text, &admission);
	dynamo_text_raw(text, "\"");

	dynamo_put_names(text, NULL, A_MINE | A_VERSION | A_PERMITS | A_TOTAL |
					 (more ? A_GATE : 0));
	put_incarnations(text, shared->me, &admission);
	dynamo_put_values_start(text);
	dynamo_put_s_member(text, ":epoch", shared->epoch);
	dynamo_put_s_member(text, ":version", write->version);
	dynamo_put_s_member(text, ":expected", write->expected);
	dynamo_put_n_member(text, ":permits", admission.permits);
	put_admission_values(text, &admission);
}

/* Our entry, or that of a dead incarnation. */
static void
put_whose(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, write->any_version ? OF_THE_DEAD : MINE);
}

static int
names_whose(const dynamo_write *write)
{
	return write->any_version ? A_SHARED_MODE | A_ENTRY | A_SHARED_OWNER : A_MINE;
}

static void
put_values_whose(dynamo_text *text, const dynamo_write *write)
{
	if (write->any_version)
		return;
	dynamo_put_s_member(text, ":epoch", write->shared->epoch);
	dynamo_put_s_member(text, ":expected", write->expected);
}

static void
put_leave(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version"
					", #shared.#total = #shared.#total - #shared.#h.#me.#n"
					" REMOVE #shared.#h.#me" CONDITION);
	put_whose(text, write);
	dynamo_text_raw(text, " AND size(#shared.#h) > :one\"");
	dynamo_put_names(text, NULL, names_whose(write) | A_VERSION | A_PERMITS | A_TOTAL);
	put_incarnations(text, write->shared->me, NULL);
	dynamo_put_values_start(text);
	dynamo_put_s_member(text, ":version", write->version);
	put_values_whose(text, write);
	dynamo_put_n_member(text, ":one", 1);
}

/* A release, by the last one or by an operator, leaves the gate to who waits there. */
static void
put_release(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	bool		forced = write->shared->kind == DYNAMO_SHARED_FORCE_RELEASE;

	dynamo_put_release(text, table, write);
	dynamo_text_raw(text, ", #shared.#owner, #shared.#kind, #shared.#total, #shared.#h"
					CONDITION);
	if (forced)
		dynamo_text_raw(text, SHARED "\"");
	else
	{
		put_whose(text, write);
		dynamo_text_raw(text, " AND size(#shared.#h) = :one\"");
	}
	dynamo_put_names(text, NULL, dynamo_release_attributes(table, write) | A_ENTRY | A_SHARED_OWNER |
					 A_KIND | A_TOTAL | (forced ? A_SHARED_MODE : names_whose(write)));
	if (!forced)
		put_incarnations(text, write->shared->me, NULL);
	dynamo_put_values_start(text);
	dynamo_put_release_values(text, table, write);
	if (forced)
		dynamo_put_s_member(text, ":epoch", write->shared->epoch);
	else
	{
		put_values_whose(text, write);
		dynamo_put_n_member(text, ":one", 1);
	}
}

static void
put_gate(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version, #shared.#gate = :waiter"
					CONDITION SHARED);
	put_gate_condition(text, write->expected);
	dynamo_text_raw(text, "\"");
	dynamo_put_names(text, NULL, A_SHARED_MODE | A_VERSION | A_SHARED | A_GATE |
					 A_ENTRY_VERSION);
	dynamo_put_values_start(text);
	dynamo_put_s_member(text, ":epoch", write->shared->epoch);
	dynamo_put_s_member(text, ":version", write->version);
	dynamo_put_name(text, ":waiter");
	dynamo_text_raw(text, "{\"M\":{");
	dynamo_put_s_member(text, "v", write->version);
	dynamo_put_n_member(text, "l", write->lease_ms);
	dynamo_put_s_member(text, "o", write->shared->waiter);
	dynamo_text_raw(text, "}}");
	if (is_named(write->expected))
		dynamo_put_s_member(text, ":gate", write->expected);
}

static void
put_renew_gate(dynamo_text *text, const dynamo_write *write)
{
	dynamo_text_raw(text, UPDATE "SET #recordVersionNumber = :version"
					", #shared.#gate.#v = :version" CONDITION SHARED
					" AND #shared.#gate.#v = :expected\"");
	dynamo_put_names(text, NULL, A_SHARED_MODE | A_VERSION | A_SHARED | A_GATE |
					 A_ENTRY_VERSION);
	dynamo_put_values_start(text);
	dynamo_put_s_member(text, ":epoch", write->shared->epoch);
	dynamo_put_s_member(text, ":version", write->version);
	dynamo_put_s_member(text, ":expected", write->expected);
}

void
dynamo_put_shared(dynamo_text *text, const dynamo_table *table, const dynamo_write *write)
{
	switch (write->shared->kind)
	{
		case DYNAMO_SHARED_OPEN:
			put_open(text, table, write);
			break;
		case DYNAMO_SHARED_JOIN:
		case DYNAMO_SHARED_REPLACE:
			put_join(text, write);
			break;
		case DYNAMO_SHARED_RENEW:
			put_renew(text, write);
			break;
		case DYNAMO_SHARED_CHANGE:
			put_change(text, write);
			break;
		case DYNAMO_SHARED_LEAVE:
			put_leave(text, write);
			break;
		case DYNAMO_SHARED_LAST:
		case DYNAMO_SHARED_FORCE_RELEASE:
			put_release(text, table, write);
			break;
		case DYNAMO_SHARED_GATE:
			put_gate(text, write);
			break;
		case DYNAMO_SHARED_RENEW_GATE:
			put_renew_gate(text, write);
			break;
	}
}

/* Where a holder stays: it learns of a gate, and who else holds the lock. */
bool
dynamo_shared_shows_item(dynamo_shared_kind kind)
{
	return kind != DYNAMO_SHARED_OPEN && kind != DYNAMO_SHARED_LEAVE &&
		kind != DYNAMO_SHARED_LAST && kind != DYNAMO_SHARED_FORCE_RELEASE;
}
