/*-------------------------------------------------------------------------
 *
 * sim_leadership.c
 *	  Each cluster stands for one lock, and its sessions work as a leader's.
 *
 * src/lock/leadership.c is hosted as the background worker does: it runs after each
 * event of the worker, and what it knows is in shared memory.  Its slot comes after
 * those of the sessions.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

#define RETRY (5 * SECOND)

/* The lock that the clusters stand for; sessions want it, too, as any other. */
int
sim_leadership_lock(const sim *s)
{
	return s->plan.leadership ? s->plan.locks - 1 : SIM_NOBODY;
}

static void
host_post(void *arg, const leadership *c)
{
	sim_stand  *stand = arg;
	sim		   *s = stand->s;
	int			lock = sim_leadership_lock(s);
	int64_t		lease_ms = sim_between(s, s->plan.lease_min_ms, s->plan.lease_max_ms);

	stand->c->slots[c->me.slot].request = (lockmgr_request) {
		.session = c->me,
		.seq = c->seq,
		.kind = LOCKMGR_ACQUIRE,
		.name = s->lock[lock].name,
		.name_len = s->lock[lock].name_len,
		.ask = {
			.permits = 1,
			.lease_ms = lease_ms,
			.margin_us = lease_ms * sim_between(s, 100, 500),
			.leadership = true,
			.superuser = true,
			.holder = {.application = "leadership"},
		},
	};
	sim_say(s, "%d: stands for %s, request %" PRIu64, stand->c->number, s->lock[lock].name,
			c->seq);
}

static bool
host_take(void *arg, leadership *c)
{
	sim_stand  *stand = arg;
	const lockmgr_answer *answer = &stand->c->slots[c->me.slot].answer;

	if (answer->result != LOCKMGR_GRANTED)
		return false;
	c->grant = answer->grant;
	stand->s->totals->led++;
	sim_say(stand->s, "%d: leads %s", stand->c->number, c->name);
	return true;
}

void
sim_stand_new(sim *s, sim_cluster *c)
{
	c->stand.s = s;
	c->stand.c = c;
	c->stand.wake = INT64_MAX;
	c->stand.wants = true;
	c->stand.me = (leadership_worker) {
		.arg = &c->stand,
		.box = &c->box,
		.entries = c->stand.entries,
		.first_slot = (uint32_t) s->plan.sessions,
		.retry_us = RETRY,
		.post = host_post,
		.take = host_take,
	};
}

/* After each event of the worker. */
void
sim_run_leaderships(sim *s, sim_cluster *c)
{
	bool		wants = c->stand.wants && !sim_winds_down(s);

	if (!s->plan.leadership || c->worker.lm == NULL || sim_is_dying(c) || s->now < c->paused_until)
		return;
	c->stand.me.lm = c->worker.lm;
	c->stand.wake = leaderships_run(&c->stand.me, sim_local(s, c),
								  wants ? s->lock[sim_leadership_lock(s)].name : "");
}

/* An operator: the cluster resigns, or its list is changed. */
void
sim_change_leadership(sim *s, sim_cluster *c)
{
	const char *name;

	if (!s->plan.leadership || c->worker.lm == NULL || sim_is_dying(c) || s->now < c->paused_until)
		return;
	name = s->lock[sim_leadership_lock(s)].name;
	if (sim_chance(s, 40))
		c->stand.wants = !c->stand.wants;
	else
	{
		c->stand.me.lm = c->worker.lm;
		(void) leadership_resign(&c->stand.me, sim_local(s, c), name,
							   sim_between(s, MS, s->plan.lease_max_ms * MS),
							   sim_chance(s, 50) ? 0 : sim_between(s, MS, SECOND));
		sim_say(s, "%d: resigns %s", c->number, name);
	}
	sim_run_leaderships(s, c);
}

/* Does the leadership know of this hold? */
bool
sim_leadership_knows(const sim *s, const sim_cluster *c, const saved_hold *h)
{
	const leadership *own = &c->stand.entries[h->session.slot - (uint32_t) s->plan.sessions].c;

	return (own->state == LEADERSHIP_STANDING || own->state == LEADERSHIP_LEADING) &&
		own->me.generation == h->session.generation && own->seq == h->seq;
}

/*
 * A leader's transaction asks: it joins, if the cluster leads as far as it can see.  It
 * may have been stopped after it saw that.  Returns whether it asks.
 */
bool
sim_lead(sim *s, sim_cluster *c, lockmgr_request *request)
{
	leadership	seen;

	if (!leadership_read(&c->stand.entries[0], &seen))
		return false;
	if (seen.state == LEADERSHIP_LEADING)
		c->stand.seen = seen;
	else if (sim_chance(s, 20))
		seen = c->stand.seen;
	if (seen.state != LEADERSHIP_LEADING)
		return false;
	request->ask.leadership = true;
	request->ask.mode = MODE_EXCLUSIVE;
	request->ask.permits = 1;
	request->ask.lease_index = seen.grant.lease_index;
	request->ask.lease_generation = seen.grant.lease_generation;
	request->ask.token = seen.grant.token;
	request->ask.taker = 0;
	s->totals->lead++;
	return true;
}

/* I9: who joins as a leader's does so beside the leadership's own hold. */
void
sim_check_lead(sim *s, const sim_cluster *c, const saved_hold *h)
{
	const sim_session *session;

	if (h->session.slot >= (uint32_t) s->plan.sessions || !h->joined || h->ends_at != 0)
		return;
	session = &c->sessions[h->session.slot];
	if (!session->waiting || session->request.seq != h->seq || !session->request.ask.leadership ||
		session->me.generation != h->session.generation)
		return;
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		const saved_hold *beside = &c->saved_holds[i].h;

		if (beside->leadership && beside->session.generation != 0 &&
			beside->lease_index == h->lease_index &&
			beside->lease_generation == h->lease_generation)
			return;
	}
	sim_wrong(s, "I9: session %u of cluster %d joins a leadership that is given up",
			  h->session.slot, c->number);
}

/* I9: a leader's transaction passes the guard, and nobody else leads at that moment. */
void
sim_check_guard(sim *s, const sim_cluster *c, const sim_hold *hold)
{
	for (int i = 0; i < s->plan.clusters; i++)
	{
		const sim_cluster *other = &s->cluster[i];

		if (hold->lock == sim_leadership_lock(s) && hold->mode == MODE_EXCLUSIVE && other != c &&
			sim_believes(s, other, hold->lock) &&
			!other->saved[other->lease_of[hold->lock]].excused &&
			!c->saved[hold->lease].excused)
			sim_wrong(s, "I9: clusters %d and %d lead at once", c->number, i);
	}
}

/* Does the cluster want to lead, and does not yet? */
bool
sim_stands(const sim *s, const sim_cluster *c)
{
	return s->plan.leadership && c->worker.lm != NULL &&
		c->stand.entries[0].c.state == LEADERSHIP_STANDING;
}

/* I9: if nobody leads, a cluster that stands for it does, after it has looked twice. */
void
sim_check_standing(sim *s, const sim_cluster *c)
{
	const leadership *own = &c->stand.entries[0].c;
	const sim_lock *lock;
	int64_t		since;

	if (!sim_stands(s, c))
		return;
	lock = &s->lock[sim_leadership_lock(s)];
	since = sim_true(c, own->since);
	since = since > c->troubled_at ? since : c->troubled_at;
	since = since > lock->free_since ? since : lock->free_since;
	since = since > lock->late_at ? since : lock->late_at;
	if (!lock->broken && s->now - since >
		sim_patience(s) + 2 * (SECOND + s->plan.lease_max_ms * MS / 10) * 3 / 2)
		sim_wrong(s, "I9: nobody leads %s, and cluster %d, which wants to, does not",
				  lock->name, c->number);
}
