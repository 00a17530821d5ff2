/*-------------------------------------------------------------------------
 *
 * sim_table.c
 *	  The DynamoDB double, and a second record of its items.
 *
 * All participants use the double through its wire protocol.  This file records
 * every applied write again, per lock, so that the promises can be checked
 * against the record at any moment.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

#include <cjson/cJSON.h>

const dynamo_table sim_table = {.name = "locks",.partition_key = "key"};

/* Makes one request; returns the HTTP status.  The caller frees the reply. */
int
sim_request(sim *s, const char *target, const char *body, char **reply,
			size_t *reply_len)
{
	s->totals->requests++;
	return dynamo_double_request(s->double_, target, body, strlen(body), reply, reply_len);
}

void
sim_table_new(sim *s)
{
	dynamo_creation how = {0};
	char	   *body = dynamo_build_create_table(&sim_table, &how);
	char	   *reply;
	size_t		len;

	s->double_ = dynamo_double_new();
	if (s->double_ == NULL || body == NULL ||
		sim_request(s, dynamo_target(DYNAMO_CREATE_TABLE), body, &reply, &len) != 200)
		abort();
	free(reply);
	free(body);

	s->lock = calloc((size_t) s->plan.locks, sizeof(sim_lock));
	if (s->lock == NULL)
		abort();
	for (int i = 0; i < s->plan.locks; i++)
	{
		sim_lock   *lock = &s->lock[i];

		/* Some names have characters that JSON must escape. */
		snprintf(lock->name, sizeof(lock->name), i % 4 == 3 ? "\"l\xc3\xb6" "ck\"\n%d" : "lock%d", i);
		lock->name_len = strlen(lock->name);
		lock->owner = lock->gate_of = lock->mark_of = lock->heard_by = SIM_NOBODY;
		lock->limit = (int32_t) sim_between(s, 1, 3);
	}
}

void
sim_table_free(sim *s)
{
	dynamo_double_free(s->double_);
	for (int i = 0; i < s->plan.locks; i++)
		free(s->lock[i].poll);
	free(s->lock);
}

int
sim_lock_number(const sim *s, const char *name, size_t len)
{
	for (int i = 0; i < s->plan.locks; i++)
	{
		if (s->lock[i].name_len == len && memcmp(s->lock[i].name, name, len) == 0)
			return i;
	}
	abort();
}

/* Is this a second copy, or one whose worker no longer waits for a reply? */
static bool
is_late(const sim *s, const sim_call *call)
{
	const sim_cluster *c = &s->cluster[call->cluster];

	return call->answered || call->status != 0 || c->worker.lm == NULL || c->life != call->life;
}

/* I2: the token of an existing item rises. */
static void
check_token(sim *s, const sim_lock *lock, int64_t token)
{
	if (lock->exists && lock->has_token && token <= lock->token)
		sim_wrong(s, "I2: token %" PRId64 " written over %" PRId64, token, lock->token);
}

/* A write in shared mode: what the item should contain now. */
static void
shared_written(sim *s, sim_lock *lock, const sim_call *call, int which)
{
	dynamo_shared_kind kind = call->writes[which].kind;
	int64_t		token = call->writes[which].last_token;

	if (kind <= DYNAMO_SHARED_REPLACE)
	{
		lock->has_token = true;
		lock->first_token = lock->token = token;
	}
	if (kind == DYNAMO_SHARED_OPEN)
	{
		lock->exists = lock->shared = true;
		lock->released = false;
		lock->owner = lock->gate_of = SIM_NOBODY;
		lock->shared_since = s->now;
		lock->kept_until_ms = 0;
	}
	if (call->writes[which].removes_gate)
	{
		lock->gate_of = SIM_NOBODY;
		lock->shared_since = s->now;
	}
	if (kind == DYNAMO_SHARED_GATE || kind == DYNAMO_SHARED_RENEW_GATE)
	{
		if (kind == DYNAMO_SHARED_GATE || !sim_gate_lives(s, lock))
			lock->gate_since = s->now;	/* or it was dead to others */
		if (kind == DYNAMO_SHARED_GATE)
		{
			lock->gate_of = call->cluster;
			lock->gate_lease_ms = call->writes[which].lease_ms;
		}
		lock->gate_at = s->now;
	}
	if (kind == DYNAMO_SHARED_LAST)
		lock->released = true;
}

/*
 * No copy of a write is applied twice, unless the item has lost its token since: then an
 * old acquire may make it again.
 */
static void
check_once(sim *s, const sim_lock *lock, const sim_nonce *nonce)
{
	if (nonce->applied && !nonce->any_version && nonce->first_sent_true > lock->erased_at)
		sim_wrong(s, "I1: a %s of %s is applied twice", dynamo_op_name(nonce->op),
				  lock->name);
}

/* DynamoDB has just applied a write of the call. */
void
sim_written(sim *s, const sim_call *call, int which)
{
	sim_lock   *lock = &s->lock[call->writes[which].lock];
	const sim_cluster *c = &s->cluster[call->cluster];
	dynamo_op	op = call->writes[which].op;
	bool		shared = call->writes[which].shared;
	sim_nonce  *nonce = sim_find_nonce(&s->nonces, call->writes[which].version);

	if (op == DYNAMO_DELETE)
	{
		if (!lock->released)
			sim_wrong(s, "I1: the item of %s is deleted while it is held", lock->name);
		sim_count(s, FAULT_ITEM_PURGED);
		sim_item_gone(s, lock);
		return;
	}
	if (op != DYNAMO_ACQUIRE && op != DYNAMO_BAR_NEW && !lock->exists)
		sim_wrong(s, "I7: %s made a ghost of %s", dynamo_op_name(op), lock->name);
	if (op == DYNAMO_BAR)
	{
		check_token(s, lock, call->writes[which].first_token);
		lock->has_token = true;
		lock->token = call->writes[which].last_token;
		return;
	}
	if (op == DYNAMO_MARK)
	{
		sim_marked(s, call->writes[which].lock, call, which);
		return;
	}
	sim_check_overwrite(s, call->writes[which].lock, call, which);
	if (shared ? call->writes[which].kind <= DYNAMO_SHARED_REPLACE :
		op == DYNAMO_ACQUIRE || op == DYNAMO_HAND_OVER)
		check_token(s, lock, call->writes[which].first_token);
	lock->edited = false;
	snprintf(lock->version, sizeof(lock->version), "%s", call->writes[which].version);
	lock->last_op = op;
	lock->written_late = is_late(s, call);
	if (lock->written_late)
		lock->late_at = s->now;
	s->totals->strays += lock->written_late && s->phase == PHASE_QUIET;
	if (shared)
		sim_check_permits(s, call->writes[which].lock, call, which);
	if (op == DYNAMO_ACQUIRE)
		sim_check_heard(s, call->writes[which].lock, call, which);
	else if (op == DYNAMO_RELEASE && !shared)
		sim_heard(s, call->writes[which].lock, call);
	if (shared)
	{
		sim_check_gate(s, call->writes[which].lock, call, which);
		shared_written(s, lock, call, which);
		sim_check_entries(s, call->writes[which].lock, call, which);
	}
	/* A gate's nonce is not saved: it belongs to no lease. */
	if (nonce == NULL)
		return;
	check_once(s, lock, nonce);
	nonce->applied = true;
	nonce->late = lock->written_late;
	nonce->twin = call->status != 0;
	lock->lease_end = nonce->first_sent_true + call->writes[which].lease_ms * 900;
	if (shared)
		return;
	if (op == DYNAMO_ACQUIRE || op == DYNAMO_HAND_OVER)
	{
		lock->has_token = true;
		lock->first_token = call->writes[which].first_token;
		lock->token = call->writes[which].last_token;
		lock->kept_until_ms = call->writes[which].kept_until_ms;
	}
	if (op == DYNAMO_BAR_NEW)
	{
		lock->has_token = true;
		lock->token = call->writes[which].last_token;
		lock->kept_until_ms = 0;
	}
	if (op == DYNAMO_ACQUIRE || op == DYNAMO_BAR_NEW)
	{
		lock->exists = true;
		lock->shared = false;
		lock->released = op == DYNAMO_BAR_NEW;
		lock->owner = c->number;
		lock->gate_of = SIM_NOBODY;
		lock->incarnation = nonce->incarnation;
	}
	if (op == DYNAMO_RELEASE)
		lock->released = true;
	if (op == DYNAMO_RELEASE && call->writes[which].kept_until_ms == 0)
		lock->kept_until_ms = 0;
}

/*
 * I7: the item shows no past holder and no past time of release.  The holder is
 * the current owner's, and the time of release is from the last release.
 */
static void
check_ours(sim *s, const sim_lock *lock, const dynamo_item *item)
{
	if (item->by_ddblock != (!lock->released && lock->owner != SIM_NOBODY))
		sim_wrong(s, "I7: %s %s a holder", lock->name, item->by_ddblock ? "shows" : "lacks");
	if (item->released_at != 0 && lock->last_op != DYNAMO_RELEASE &&
		lock->last_op != DYNAMO_BAR_NEW)
		sim_wrong(s, "I7: %s shows the time of another release", lock->name);
}

/* What DynamoDB shows must be what was written. */
void
sim_check_item(sim *s, const sim_lock *lock, const dynamo_item *item)
{
	if (item->exists != lock->exists)
		sim_wrong(s, "I7: %s %s", lock->name, item->exists ? "is a ghost" : "is missing");
	else if (lock->exists && !lock->broken && !lock->edited && lock->shared &&
			 item->wrong != NULL)
		sim_wrong(s, "I7: %s: %s", lock->name, item->wrong);
	else if (lock->exists && !lock->broken &&
			 (item->released != lock->released ||
			  strcmp(item->version, lock->version) != 0 ||
			  item->has_token != lock->has_token ||
			  (lock->has_token && item->token != lock->token) ||
			  item->kept_until_ms != lock->kept_until_ms))
		sim_wrong(s, "I7: %s is not what was written", lock->name);
	else if (lock->exists && !lock->edited)
		check_ours(s, lock, item);
}

static bool
has_text(const cJSON *item, const char *name)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, name);
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(value, "S"));

	return text != NULL && text[0] != '\0';
}

/* I7: Amazon's client fails on an item without these, even in a listing. */
static void
check_attributes(sim *s, const sim_lock *lock, const char *reply, size_t len)
{
	cJSON	   *json = cJSON_ParseWithLength(reply, len);
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, "Item");

	if ((item != NULL) != lock->exists)
		sim_wrong(s, "I7: %s %s", lock->name, item != NULL ? "is a ghost" : "is missing");
	if (item != NULL && !lock->broken &&
		!(has_text(item, "ownerName") && has_text(item, "leaseDuration") &&
		  has_text(item, "recordVersionNumber")))
		sim_wrong(s, "I7: %s lacks an attribute", lock->name);
	cJSON_Delete(json);
}

void
sim_read_item(sim *s, const sim_lock *lock, dynamo_reply *reply)
{
	dynamo_write read = {
		.op = DYNAMO_READ,.name = lock->name,.name_len = lock->name_len,
	};
	char	   *body = dynamo_build(&sim_table, &read);
	char	   *bytes;
	size_t		len;
	int			status = sim_request(s, dynamo_target(DYNAMO_READ), body, &bytes, &len);

	check_attributes(s, lock, bytes, len);
	dynamo_read(reply, NULL, DYNAMO_READ, 1, status, NULL, bytes, len);
	free(bytes);
	free(body);
}

void
sim_check_table(sim *s)
{
	for (int i = 0; i < s->plan.locks; i++)
	{
		dynamo_reply reply;

		sim_read_item(s, &s->lock[i], &reply);
		sim_check_item(s, &s->lock[i], &reply.results[0].item);
		dynamo_reply_free(&reply);
	}
}

/* The cluster's entry in an item in shared mode, or NULL. */
const dynamo_entry *
sim_entry_of(const sim_cluster *c, const dynamo_result *result)
{
	return dynamo_find_entry(result->shared, dynamo_incarnation(c->owner));
}
