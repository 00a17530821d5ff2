/*-------------------------------------------------------------------------
 *
 * sim_journal.c
 *	  Bars and releases the locks that dead incarnations of a cluster held.
 *
 * It does as src/worker/worker_free_dead.c does, and with the same requests; but it sends
 * all at once.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

#define RETRY_MAX SECOND
#define AHEAD_OF_TIME (4 * SECOND)
#define AHEAD_OF_ITEM (2 * SECOND)

/* The cluster crashes: its incarnation's journal lists its locks, but for detached ones. */
void
sim_journal_keep(sim *s, sim_cluster *c)
{
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		const saved_lease *l = &c->saved[i].l;
		sim_dead   *dead;

		if (l->state == LEASE_FREE)
			continue;
		if (l->detached)
		{
			sim_runs_out(s, l);
			continue;
		}
		c->dead = realloc(c->dead, (c->dead_count + 1) * sizeof(sim_dead));
		if (c->dead == NULL)
			abort();
		dead = &c->dead[c->dead_count++];
		*dead = (sim_dead) {.lock = c->saved[i].lock,.incarnation = c->incarnation};
		snprintf(dead->owner, sizeof(dead->owner), "%s", c->owner);
	}
}

static void
send_at(sim *s, const sim_cluster *c, size_t number, int64_t at)
{
	sim_schedule(s, (sim_event) {
		.at = at, .kind = SIM_JOURNAL, .cluster = c->number, .slot = (int) number,
		.steps = c->life,
	});
}

/* The release writes this version. */
static void
note_version(sim *s, const sim_cluster *c, const sim_dead *dead)
{
	sim_nonce  *nonce = sim_add_nonce(&s->nonces, dead->version);

	nonce->op = DYNAMO_RELEASE;
	nonce->cluster = c->number;
	nonce->incarnation = dead->incarnation;
	nonce->lock = dead->lock;
	nonce->any_version = true;
	nonce->first_sent = sim_local(s, c);
	nonce->first_sent_true = s->now;
}

/* A worker starts, and reads the journals from their beginning. */
void
sim_journal_read(sim *s, sim_cluster *c)
{
	for (size_t i = 0; i < c->dead_count; i++)
	{
		c->dead[i].op = DYNAMO_BAR;
		c->dead[i].token = 0;
		c->dead[i].shared = false;
		sim_version(s, c->dead[i].version);
		note_version(s, c, &c->dead[i]);
		if (!c->dead[i].struck)
			send_at(s, c, i, s->now);
	}
}

/* Sends the next write, unless another worker has begun to. */
void
sim_journal_send(sim *s, sim_cluster *c, const sim_event *event)
{
	sim_dead   *dead = &c->dead[event->slot];
	const sim_lock *lock = &s->lock[dead->lock];
	dynamo_shared_write shared = {
		.kind = dead->kind,.me = dynamo_incarnation(dead->owner)
	};
	int64_t		high_us = sim_local(s, c) + epoch_clock_high(&c->clock, sim_local(s, c));
	int64_t		ahead_us = high_us + AHEAD_OF_TIME;
	int64_t		token = ahead_us > dead->token + AHEAD_OF_ITEM ? ahead_us : dead->token + AHEAD_OF_ITEM;
	dynamo_write write = {
		.op = dead->op,.name = lock->name,.name_len = lock->name_len,
		.owner = dead->owner,.any_version = true,.version = dead->version,.expected = "",
		.first_token = token,.last_token = token,.lease_ms = s->plan.lease_min_ms,
		.kept_until_ms = high_us / 1000 + DYNAMO_KEPT_MAX_MS,.now_s = high_us / SECOND,
		.shared = dead->op == DYNAMO_RELEASE && dead->shared ? &shared : NULL,
	};

	if (c->worker.lm == NULL || c->life != event->steps)
		return;
	sim_send(s, c, &(lockmgr_call) {
		.id = SIM_JOURNAL_CALL + (uint64_t) event->slot,.op = dead->op,
		.timeout_us = SECOND,.count = 1,.writes = &write,
	});
}

/* Does the item still name the dead incarnation?  Then sets how it is released. */
static bool
holds(sim_dead *dead, const dynamo_result *result)
{
	bool		last;

	if (dynamo_find_entry(result->shared, dynamo_incarnation(dead->owner)) == NULL)
		return result->item.exists && !result->item.released &&
			strcmp(result->item.owner, dead->owner) == 0;
	last = result->shared->count == 1;
	if (dead->shared && last == (dead->kind == DYNAMO_SHARED_LAST))
		last = !last;
	dead->shared = true;
	dead->kind = last ? DYNAMO_SHARED_LAST : DYNAMO_SHARED_LEAVE;
	return true;
}

/* Nothing of the dead is in the item, or will be.  Else sets what to do next. */
static bool
is_settled(sim_dead *dead, const dynamo_result *result)
{
	const dynamo_item *item = &result->item;
	bool		done = result->status == DYNAMO_OK;
	bool		barred = done && dead->op == DYNAMO_BAR;

	if (dead->op == DYNAMO_BAR_NEW)
	{
		dead->op = item->exists ? DYNAMO_BAR : DYNAMO_READ;
		return done;
	}
	if (dead->op == DYNAMO_RELEASE)
		return done || !holds(dead, result);
	if (!barred && !item->exists)
	{
		dead->op = DYNAMO_BAR_NEW;
		return false;
	}
	if (item->has_token)
		dead->token = item->token;
	dead->op = barred ? DYNAMO_RELEASE : DYNAMO_BAR;
	return barred && !holds(dead, result);
}

void
sim_journal_reply(sim *s, sim_cluster *c, size_t number, const dynamo_result *result)
{
	sim_dead   *dead = &c->dead[number];
	bool		failed = result->status != DYNAMO_OK &&
		result->status != DYNAMO_CONDITION_FAILED;
	bool		bars = dead->op == DYNAMO_BAR;

	if (failed || !is_settled(dead, result))
	{
		send_at(s, c, number, s->now + (failed || !bars ? sim_between(s, 0, RETRY_MAX) : 0));
		return;
	}
	sim_say(s, "%d: strikes %s of incarnation %u off its journal", c->number,
			s->lock[dead->lock].name, dead->incarnation);
	dead->struck = true;
}
