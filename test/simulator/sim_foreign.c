/*-------------------------------------------------------------------------
 *
 * sim_foreign.c
 *	  Foreign clients, and the operator.
 *
 * A foreign client works as Amazon's does.  It reads the item.  It puts a whole
 * new item if there is none, if the item is released, or if its version has not
 * changed for a whole lease.  It renews, and it releases by deleting the item
 * or by marking it released.  Some foreign clients update an existing item
 * instead of putting a new one, as with Amazon's option
 * withUpdateExistingLockRecord(true): ddblock's attributes then stay.  Unlike
 * Amazon's client, they have a margin like ddblock's, because the simulated
 * clocks differ.
 *
 * The operator deletes items, edits them and marks them released, whether they
 * are held or not.  Such a lock may then have two holders: its holder is
 * excused from I1, and only the fence counts.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE					/* memmem() */
#include "sim.h"

#define ID "\"TableName\":\"locks\",\"Key\":{\"key\":{\"S\":\"%s\"}}"
#define OLD "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\""

#define TARGET(op) "DynamoDB_20120810." op

/* Requests in flight: an event's variant. */
enum
{
	FOREIGN_LOOK,
	FOREIGN_PUT,
	FOREIGN_RENEW,
	FOREIGN_RELEASE
};

void
sim_foreign_new(sim *s)
{
	for (int i = 0; i < s->plan.foreigners; i++)
	{
		sim_foreigner *f = &s->foreigner[i];

		snprintf(f->owner, sizeof(f->owner), "java-%d", i);
		f->ppm = sim_between(s, -50000, 50000);
		f->deletes = sim_chance(s, 70);
		f->updates = sim_chance(s, 50);
		f->go_style = sim_chance(s, 20);
		f->lock = SIM_NOBODY;
		sim_schedule(s, (sim_event) {.at = s->now,.kind = SIM_FOREIGN,.cluster = i});
	}
}

/* The lock's name inside JSON. */
static const char *
json_name(const sim_lock *lock, char *to)
{
	char	   *at = to;

	for (const char *from = lock->name; *from != '\0'; from++)
	{
		if (*from == '"' || *from == '\\')
			*at++ = '\\';
		if (*from == '\n')
			*at++ = '\\';
		*at++ = *from == '\n' ? 'n' : *from;
	}
	*at = '\0';
	return to;
}

static int64_t
true_span(const sim_foreigner *f, int64_t span)
{
	return span - span / 1000 * f->ppm / 1000;
}

/*
 * Sends a request that must succeed or fail its condition; true if it
 * succeeded.
 */
static bool
demand(sim *s, const char *target, const char *body)
{
	char	   *reply;
	size_t		len;
	int			status = sim_request(s, target, body, &reply, &len);
	bool		refused = status == 400 && memmem(reply, len, "ConditionalCheckFailed", 22);

	if (status != 200 && !refused)
		sim_wrong(s, "DynamoDB refuses %s: %.*s", body, (int) len, reply);
	free(reply);
	return status == 200;
}

/* A foreign client has written the item.  An update keeps ddblock's token. */
static void
foreign_item(sim *s, sim_lock *lock, const char *version, bool update)
{
	lock->exists = true;
	lock->released = lock->edited = lock->broken = lock->shared = false;
	lock->promised = 0;			/* such a client does not know it */
	if (!update)
	{
		lock->has_token = false;
		lock->kept_until_ms = 0;
		lock->last_token = lock->last_exclusive = 0;
		lock->erased_at = s->now;
		lock->gate_of = SIM_NOBODY;
	}
	lock->owner = lock->mark_of = lock->heard_by = SIM_NOBODY;
	lock->last_op = DYNAMO_ACQUIRE;
	snprintf(lock->version, sizeof(lock->version), "%s", version);
	sim_touch(s, (int) (lock - s->lock), MODE_EXCLUSIVE);
}

void
sim_item_gone(sim *s, sim_lock *lock)
{
	lock->exists = lock->released = lock->has_token = lock->edited = lock->broken = false;
	lock->shared = false;
	lock->kept_until_ms = lock->promised = 0;
	lock->last_token = lock->last_exclusive = 0;
	lock->erased_at = s->now;
	lock->owner = lock->gate_of = lock->mark_of = lock->heard_by = SIM_NOBODY;
	lock->version[0] = '\0';
	sim_touch(s, (int) (lock - s->lock), MODE_EXCLUSIVE);
}

static void
plan_step(sim *s, const sim_foreigner *f, int64_t in)
{
	sim_schedule(s, (sim_event) {
		.at = s->now + in, .kind = SIM_FOREIGN, .cluster = (int) (f - s->foreigner),
	});
}

static void
send_request(sim *s, const sim_foreigner *f, unsigned request, int64_t in)
{
	sim_schedule(s, (sim_event) {
		.at = s->now + in, .kind = SIM_FOREIGN_APPLY,
		.cluster = (int) (f - s->foreigner), .slot = f->lock, .variant = request,
	});
}

static void
give_up(sim *s, sim_foreigner *f, int64_t rest)
{
	f->holds = false;
	f->lock = SIM_NOBODY;
	f->seen[0] = '\0';
	plan_step(s, f, rest);
}

/* The holder renews, releases, or crashes. */
static void
use_lock(sim *s, sim_foreigner *f)
{
	int64_t		lease = true_span(f, f->lease_ms * MS);

	if (s->now >= f->valid_until || (s->plan.kind != KIND_HOT && sim_chance(s, 3)))
		give_up(s, f, sim_between(s, 0, 2 * lease));
	else if (s->now >= f->release_at || sim_winds_down(s))
	{
		f->holds = false;
		sim_touch(s, f->lock, MODE_EXCLUSIVE);
		send_request(s, f, FOREIGN_RELEASE, sim_hop(s));
	}
	else
		send_request(s, f, FOREIGN_RENEW, sim_hop(s));
}

void
sim_foreign_step(sim *s, int number)
{
	sim_foreigner *f = &s->foreigner[number];
	int64_t		lease;

	if (f->holds)
	{
		use_lock(s, f);
		return;
	}
	if (f->lock == SIM_NOBODY)
	{
		if (sim_winds_down(s))
			return;
		f->lock = (int) sim_between(s, 0, s->plan.locks - 1);
		f->lease_ms = sim_between(s, s->plan.lease_min_ms / 1000,
								  s->plan.lease_max_ms / 1000) * 1000;
		lease = f->lease_ms * MS;
		f->wanted_since = s->now;
		f->release_at = s->plan.kind == KIND_HOT ? s->now : s->now + sim_between(s, 0, sim_chance(s, 50) ? lease / 8 : 4 * lease);
	}
	send_request(s, f, FOREIGN_LOOK, sim_hop(s));
}

/*
 * The client holds the lock; its lease counts from before the request was sent.
 */
static void
believe(sim *s, sim_foreigner *f, int64_t hop)
{
	int64_t		lease = true_span(f, f->lease_ms * MS);

	f->holds = true;
	f->valid_until = s->now - hop + lease * 9 / 10;
	sim_touch(s, f->lock, MODE_EXCLUSIVE);
	plan_step(s, f, sim_between(s, MS, s->plan.kind == KIND_HOT ? s->plan.step : lease / 3));
}

/* An UpdateItem as in upsertAndMonitorReleasedLock() and ...ExpiredLock(). */
static bool
update_item(sim *s, const sim_foreigner *f, const char *lease)
{
	const sim_lock *lock = &s->lock[f->lock];
	char		name[64];
	char		body[2048];

	snprintf(body, sizeof(body), "{" ID ",\"UpdateExpression\":\"SET #o = :o, #l = :l, #v = :n"
			 " REMOVE #r\",\"ConditionExpression\":\"attribute_exists(#k) AND #v = :v\","
			 "\"ExpressionAttributeNames\":{\"#k\":\"key\",\"#o\":\"ownerName\","
			 "\"#l\":\"leaseDuration\",\"#v\":\"recordVersionNumber\",\"#r\":\"isReleased\"},"
			 "\"ExpressionAttributeValues\":{\":o\":{\"S\":\"%s\"},\":l\":{\"S\":\"%s\"},"
			 "\":n\":{\"S\":\"%s\"},\":v\":{\"S\":\"%s\"}}," OLD "}",
			 json_name(lock, name), f->owner, lease, f->version, f->seen);
	return demand(s, TARGET("UpdateItem"), body);
}

static bool
put_item(sim *s, const sim_foreigner *f, const char *lease)
{
	const sim_lock *lock = &s->lock[f->lock];
	char		name[64];
	char		body[2048];

	snprintf(body, sizeof(body), "{\"TableName\":\"locks\",\"Item\":{"
			 "\"key\":{\"S\":\"%s\"},\"ownerName\":{\"S\":\"%s\"},"
			 "\"leaseDuration\":{\"S\":\"%s\"},\"recordVersionNumber\":{\"S\":\"%s\"}},"
			 "\"ExpressionAttributeNames\":{\"#k\":\"%s\"}%s%s%s,"
			 "\"ConditionExpression\":\"%s\"," OLD "}",
			 json_name(lock, name), f->owner, lease, f->version,
			 f->seen[0] != '\0' ? "recordVersionNumber" : "key",
			 f->seen[0] != '\0' ? ",\"ExpressionAttributeValues\":{\":v\":{\"S\":\"" : "",
			 f->seen, f->seen[0] != '\0' ? "\"}}" : "",
			 f->seen[0] != '\0' ? "#k = :v" : "attribute_not_exists(#k)");
	return demand(s, TARGET("PutItem"), body);
}

/* Acquires, on condition that the item is still as the client saw it. */
static void
put(sim *s, sim_foreigner *f)
{
	sim_lock   *lock = &s->lock[f->lock];
	bool		update = f->updates && f->seen[0] != '\0';
	char		lease[24];

	snprintf(lease, sizeof(lease), f->go_style ? "%" PRId64 "s" : "%" PRId64 "000",
			 f->lease_ms / 1000);
	sim_version(s, f->version);
	if (update ? update_item(s, f, lease) : put_item(s, f, lease))
	{
		sim_say(s, "%s %s %s %s", f->owner, update ? "updates" : "puts", lock->name,
				sim_short(f->version));
		sim_check_overwrite(s, f->lock, NULL, 0);
		foreign_item(s, lock, f->version, update);
		s->totals->foreign_grants++;
		sim_check_turn(s, f->wanted_since, TURN_FOREIGNER);
		f->excused = false;
		believe(s, f, 8 * MS);
	}
	else
	{
		f->seen[0] = '\0';
		plan_step(s, f, sim_between(s, MS, SECOND));
	}
}

/*
 * Reads the item: acquires if the lock is free or dead, else reads again later.
 */
static void
look(sim *s, sim_foreigner *f)
{
	const sim_lock *lock = &s->lock[f->lock];
	int64_t		wait = SECOND;

	if (!lock->exists)
		f->seen[0] = '\0';
	else if (lock->released || strcmp(f->seen, lock->version) != 0)
	{
		snprintf(f->seen, sizeof(f->seen), "%s", lock->version);
		f->dead_at = s->now + true_span(f, s->plan.lease_max_ms * MS) + 8 * MS;
	}
	if (!lock->exists || lock->released || s->now >= f->dead_at)
		send_request(s, f, FOREIGN_PUT, sim_hop(s) + sim_hop(s));
	else if (sim_winds_down(s) || (s->plan.kind != KIND_HOT && sim_chance(s, 2)))
		give_up(s, f, sim_between(s, 0, s->plan.lease_max_ms * MS));
	else
		plan_step(s, f, wait);
}

static void
renew(sim *s, sim_foreigner *f)
{
	sim_lock   *lock = &s->lock[f->lock];
	char		name[64];
	char		body[1024];
	char		version[40];

	sim_version(s, version);
	snprintf(body, sizeof(body), "{" ID ",\"UpdateExpression\":\"SET #v = :new\","
			 "\"ConditionExpression\":\"#v = :v\","
			 "\"ExpressionAttributeNames\":{\"#v\":\"recordVersionNumber\"},"
			 "\"ExpressionAttributeValues\":{\":v\":{\"S\":\"%s\"},\":new\":{\"S\":\"%s\"}},"
			 OLD "}", json_name(lock, name), f->version, version);
	if (demand(s, TARGET("UpdateItem"), body))
	{
		snprintf(f->version, sizeof(f->version), "%s", version);
		snprintf(lock->version, sizeof(lock->version), "%s", version);
		believe(s, f, 8 * MS);
	}
	else
		give_up(s, f, SECOND);
}

static void
release(sim *s, sim_foreigner *f, sim_lock *lock)
{
	char		name[64];
	char		body[1024];
	char		version[40];

	if (f->deletes)
	{
		snprintf(body, sizeof(body), "{" ID ",\"ConditionExpression\":\"#v = :v\","
				 "\"ExpressionAttributeNames\":{\"#v\":\"recordVersionNumber\"},"
				 "\"ExpressionAttributeValues\":{\":v\":{\"S\":\"%s\"}}}",
				 json_name(lock, name), f->version);
		if (demand(s, TARGET("DeleteItem"), body))
			sim_item_gone(s, lock);
	}
	else
	{
		sim_version(s, version);
		snprintf(body, sizeof(body), "{" ID ",\"UpdateExpression\":\"SET #r = :r\","
				 "\"ConditionExpression\":\"#v = :v\","
				 "\"ExpressionAttributeNames\":{\"#v\":\"recordVersionNumber\","
				 "\"#r\":\"isReleased\"},\"ExpressionAttributeValues\":"
				 "{\":v\":{\"S\":\"%s\"},\":r\":{\"S\":\"1\"}}}",
				 json_name(lock, name), f->version);
		if (demand(s, TARGET("UpdateItem"), body))
		{
			lock->released = true;
			sim_touch(s, f->lock, MODE_EXCLUSIVE);
		}
	}
	give_up(s, f, sim_between(s, 0, s->plan.lease_max_ms * MS));
}

/* A foreign client's request reaches DynamoDB. */
void
sim_foreign_apply(sim *s, int number, unsigned request, int lock)
{
	sim_foreigner *f = &s->foreigner[number];

	switch (request)
	{
		case FOREIGN_LOOK:
			look(s, f);
			break;
		case FOREIGN_PUT:
			put(s, f);
			break;
		case FOREIGN_RENEW:
			if (s->now < f->valid_until)
				renew(s, f);
			else
				give_up(s, f, SECOND);
			break;
		default:
			release(s, f, &s->lock[lock]);
			break;
	}
}

static void
excuse_version(sim *s, const char *version)
{
	sim_nonce  *nonce = sim_find_nonce(&s->nonces, version);

	if (nonce != NULL)
		nonce->excused = true;
}

/* The lease is excused until a later version confirms it. */
static void
excuse_lease(sim *s, sim_saved *saved)
{
	saved->excused = true;
	excuse_version(s, saved->l.version);
}

/* Those who share the lock, although the worker may not know yet. */
static void
excuse_entries(sim *s, int number)
{
	dynamo_reply reply;
	const dynamo_shared *shared;

	sim_read_item(s, &s->lock[number], &reply);
	shared = reply.results[0].shared;
	for (int i = 0; shared != NULL && i < shared->count; i++)
		excuse_version(s, shared->entries[i].version);
	dynamo_reply_free(&reply);
}

/* Excuses every client that believes that it holds the lock now. */
static void
excuse(sim *s, int number)
{
	excuse_version(s, s->lock[number].version);
	excuse_entries(s, number);
	for (int c = 0; c < s->plan.clusters; c++)
	{
		sim_cluster *cluster = &s->cluster[c];

		if (cluster->lease_of[number] >= 0)
			excuse_lease(s, &cluster->saved[cluster->lease_of[number]]);
	}
	for (int i = 0; i < s->plan.foreigners; i++)
		s->foreigner[i].excused |= s->foreigner[i].lock == number;
}

static void
operator_deletes(sim *s, int number)
{
	sim_lock   *lock = &s->lock[number];
	char		name[64];
	char		body[256];

	excuse(s, number);
	snprintf(body, sizeof(body), "{" ID "}", json_name(lock, name));
	demand(s, TARGET("DeleteItem"), body);
	sim_say(s, "operator: deletes %s", lock->name);
	sim_item_gone(s, lock);
}

/* SET or REMOVE of one attribute of an item that exists. */
static bool
operator_sets(sim *s, int number, const char *expression, const char *attribute,
			  const char *value)
{
	sim_lock   *lock = &s->lock[number];
	char		name[64];
	char		body[1024];

	excuse(s, number);
	snprintf(body, sizeof(body), "{" ID ",\"UpdateExpression\":\"%s\","
			 "\"ConditionExpression\":\"attribute_exists(#k)\","
			 "\"ExpressionAttributeNames\":{\"#k\":\"key\",\"#a\":\"%s\"}%s%s%s}",
			 json_name(lock, name), expression, attribute,
			 value ? ",\"ExpressionAttributeValues\":{\":a\":{\"S\":\"" : "",
			 value ? value : "", value ? "\"}}" : "");
	if (!demand(s, TARGET("UpdateItem"), body))
		return false;
	sim_say(s, "operator: %s of %s", attribute, lock->name);
	lock->edited = true;
	lock->late_at = s->now;
	sim_touch(s, number, MODE_EXCLUSIVE);
	return true;
}

static void
operator_edits(sim *s, int number)
{
	sim_lock   *lock = &s->lock[number];
	char		text[40];

	switch (sim_between(s, 0, 3))
	{
		case 0:
			sim_version(s, text);
			if (operator_sets(s, number, "SET #a = :a", "recordVersionNumber", text))
				snprintf(lock->version, sizeof(lock->version), "%s", text);
			break;
		case 1:
			if (operator_sets(s, number, "SET #a = :a", "ownerName", "operator"))
			{
				lock->owner = SIM_NOBODY;
				lock->shared = false;
			}
			break;
		case 2:
			snprintf(text, sizeof(text), "%" PRId64, s->plan.lease_min_ms);
			operator_sets(s, number, "SET #a = :a", "leaseDuration", text);
			break;
		default:
			/* No client can use this item; the operator deletes it soon. */
			if (!operator_sets(s, number, "REMOVE #a", "leaseDuration", NULL))
				break;
			lock->broken = true;
			sim_schedule(s, (sim_event) {
				.at = s->now + sim_between(s, 0, s->plan.lease_max_ms * MS),
				.kind = SIM_REPAIR, .cluster = number,
			});
			break;
	}
}

void
sim_repair(sim *s, int lock)
{
	if (s->lock[lock].broken)
		operator_deletes(s, lock);
}

/* The operator changes an item that exists. */
static void
operate(sim *s, int number)
{
	sim_lock   *lock = &s->lock[number];
	int64_t		dice = sim_between(s, 0, 3);

	sim_count(s, dice == 0 ? FAULT_ITEM_DELETED : dice == 1 ? FAULT_ITEM_EDITED :
			  FAULT_ITEM_RELEASED);
	if (dice == 0)
		operator_deletes(s, number);
	else if (dice == 1)
		operator_edits(s, number);
	else if (operator_sets(s, number, "SET #a = :a", "isReleased", "1"))
		lock->released = true;
}

/* Somebody writes a mark by hand: that excuses nothing. */
static void
forge_mark(sim *s, int number)
{
	sim_lock   *lock = &s->lock[number];
	int64_t		date_ms = (SIM_EPOCH + s->now) / MS;
	char		name[64];
	char		body[512];

	snprintf(body, sizeof(body), "{" ID ",\"UpdateExpression\":\"SET #a = :a\","
			 "\"ConditionExpression\":\"attribute_exists(#k)\","
			 "\"ExpressionAttributeNames\":{\"#k\":\"key\",\"#a\":\"wanted\"},"
			 "\"ExpressionAttributeValues\":{\":a\":{\"M\":{\"owner\":{\"S\":\"forger\"},"
			 "\"until\":{\"N\":\"%" PRId64 "\"},\"poll\":{\"N\":\"%" PRId64 "\"}}}}}",
			 json_name(lock, name), sim_chance(s, 20) ? INT64_MAX :
			 date_ms + sim_between(s, -5000, 20000),
			 sim_chance(s, 20) ? INT64_MAX : sim_between(s, 0, 2000));
	if (!demand(s, TARGET("UpdateItem"), body))
		return;
	sim_say(s, "a mark of %s is forged", lock->name);
	lock->mark_of = lock->heard_by = SIM_NOBODY;
	sim_count(s, FAULT_MARK_FORGED);
}

/*
 * The time-to-live deletes a released item, or the operator changes a held one.
 */
void
sim_hand(sim *s)
{
	int			number = (int) sim_between(s, 0, s->plan.locks - 1);
	sim_lock   *lock = &s->lock[number];
	int64_t		lease = s->plan.lease_max_ms * MS;
	char		name[64];
	char		body[256];

	if (s->phase != PHASE_STORM)
		return;
	sim_schedule(s, (sim_event) {
		.at = s->now + sim_between(s, lease / 32, lease / 2),.kind = SIM_HAND,
	});
	if (!lock->exists || lock->broken)
		return;
	if (lock->released && s->plan.purge &&
		SIM_EPOCH / MS + s->now / MS > lock->kept_until_ms)
	{
		sim_count(s, FAULT_ITEM_PURGED);
		sim_say(s, "%s is purged", lock->name);
		snprintf(body, sizeof(body), "{" ID "}", json_name(lock, name));
		demand(s, TARGET("DeleteItem"), body);
		sim_item_gone(s, lock);
	}
	else if (!lock->released && s->plan.operator && sim_chance(s, 20))
		operate(s, number);
	else if (s->plan.forges && sim_chance(s, 50))
		forge_mark(s, number);
}
