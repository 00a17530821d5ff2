/*-------------------------------------------------------------------------
 *
 * sim_journal.c
 *	  Releases the locks that dead incarnations of a cluster held.
 *
 * It does as src/worker/worker_journal.c does, and with the same requests; but it sends
 * all at once.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

#define RETRY_MAX SECOND

/* The cluster crashes: its incarnation's journal lists its locks, but for detached ones. */
void
sim_journal_keep(sim *s, sim_cluster *c)
{
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		const lease *l = &c->saved[i].l;
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

/* A worker starts, and reads the journals from their beginning. */
void
sim_journal_read(sim *s, sim_cluster *c)
{
	for (size_t i = 0; i < c->dead_count; i++)
	{
		c->dead[i].shared = c->dead[i].looked = false;
		c->dead[i].version[0] = '\0';
		if (!c->dead[i].struck)
			send_at(s, c, i, s->now);
	}
}

/* Sends a release, unless another worker has begun to. */
void
sim_journal_send(sim *s, sim_cluster *c, const sim_event *event)
{
	sim_dead   *dead = &c->dead[event->slot];
	const sim_lock *lock = &s->lock[dead->lock];
	dynamo_shared_write shared = {
		.kind = dead->kind,.me = dynamo_incarnation(dead->owner)
	};
	int64_t		high_us = sim_local(s, c) + epoch_clock_high(&c->clock, sim_local(s, c));
	dynamo_write release = {
		.op = DYNAMO_RELEASE,.name = lock->name,.name_len = lock->name_len,
		.owner = dead->owner,.any_version = true,.version = dead->version,.expected = "",
		.kept_until_ms = high_us / 1000 + DYNAMO_KEPT_MAX_MS,.now_s = high_us / SECOND,
		.shared = dead->shared ? &shared : NULL,
	};

	if (c->worker.lm == NULL || c->life != event->steps)
		return;
	if (dead->version[0] == '\0')
	{
		sim_nonce  *nonce;

		sim_version(s, dead->version);
		nonce = sim_add_nonce(&s->nonces, dead->version);
		nonce->op = DYNAMO_RELEASE;
		nonce->cluster = c->number;
		nonce->incarnation = dead->incarnation;
		nonce->lock = dead->lock;
		nonce->any_version = true;
		nonce->first_sent = sim_local(s, c);
		nonce->first_sent_true = s->now;
	}
	sim_send(s, c, &(lockmgr_call) {
		.id = SIM_JOURNAL_CALL + (uint64_t) event->slot,.op = DYNAMO_RELEASE,
		.timeout_us = SECOND,.count = 1,.writes = &release,
	});
}

static void
strike_off(sim *s, const sim_cluster *c, sim_dead *dead)
{
	sim_say(s, "%d: strikes %s of incarnation %u off its journal", c->number,
			s->lock[dead->lock].name, dead->incarnation);
	dead->struck = true;
}

void
sim_journal_reply(sim *s, sim_cluster *c, size_t number, const dynamo_result *result)
{
	sim_dead   *dead = &c->dead[number];
	bool		refused = result->status == DYNAMO_CONDITION_FAILED;
	bool		ours = result->status == DYNAMO_OK ||
		(refused && strcmp(result->item.version, dead->version) == 0);

	if (!ours && !refused)
		send_at(s, c, number, s->now + sim_between(s, 0, RETRY_MAX));
	else if (refused && dynamo_find_entry(result->shared, dynamo_incarnation(dead->owner)) != NULL)
	{
		bool		last = result->shared->count == 1;

		if (dead->shared && last == (dead->kind == DYNAMO_SHARED_LAST))
			last = !last;
		dead->shared = true;
		dead->kind = last ? DYNAMO_SHARED_LAST : DYNAMO_SHARED_LEAVE;
		send_at(s, c, number, s->now);
	}
	else if (ours || dead->looked)
		strike_off(s, c, dead);
	else
	{
		dead->looked = true;
		dead->shared = false;
		dead->version[0] = '\0';
		send_at(s, c, number, s->now + SECOND);
	}
}
