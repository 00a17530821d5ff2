/*-------------------------------------------------------------------------
 *
 * sim_worker.c
 *	  Hosts a lock manager as the background worker does.
 *
 * A session speaks to its worker through a slot that outlives workers, and
 * rings; the worker then reads the slot.  Leases are saved where they outlive
 * workers, too.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

/* The host's argument; a cluster alone does not lead to its world. */
typedef struct host_arg
{
	sim		   *s;
	sim_cluster *c;
} host_arg;

static host_arg host_args[SIM_CLUSTERS];

static void
host_send(void *arg, const lockmgr_call *call)
{
	host_arg   *a = arg;
	lockmgr_counts counts;

	lockmgr_count(a->c->lm, &counts);
	if (counts.calls > 2 * a->s->plan.max_calls)
		sim_wrong(a->s, "%u calls in flight", counts.calls);
	for (int i = 0; i < call->count && call->op != DYNAMO_READ; i++)
		sim_check_send(a->s, a->c, &call->writes[i]);
	sim_send(a->s, a->c, call);
}

/* A version that was not seen before is noted. */
static void
note_pending(sim *s, const sim_cluster *c, uint32_t index)
{
	const lease *l = &c->saved[index].l;
	sim_nonce  *nonce;

	if (l->state == LEASE_FREE || l->pending.version[0] == '\0' ||
		sim_find_nonce(&s->nonces, l->pending.version) != NULL)
		return;
	nonce = sim_add_nonce(&s->nonces, l->pending.version);
	nonce->op = l->pending.op;
	nonce->cluster = c->number;
	nonce->incarnation = c->incarnation;
	nonce->lock = c->saved[index].lock;
	nonce->lease = index;
	nonce->lease_ms = l->pending.lease_ms;
}

static void
host_save(void *arg, uint32_t index, const lease *lease, const char *name,
		  size_t name_len)
{
	host_arg   *a = arg;
	sim		   *s = a->s;
	sim_cluster *c = a->c;
	sim_saved  *saved = &c->saved[index];
	bool		granted = lease->state == LEASE_HELD && saved->l.state != LEASE_HELD;
	bool		attached = lease->state != LEASE_FREE &&
		(lease->version[0] != '\0' || lease->pending.version[0] != '\0');

	if (name != NULL)
		saved->lock = sim_lock_number(s, name, name_len);
	if (saved->l.seq != lease->seq || saved->l.session.slot != lease->session.slot ||
		saved->l.session.generation != lease->session.generation)
		saved->let_go = false;
	if (saved->l.state == LEASE_HELD)
	{
		sim_touch(s, saved->lock);
		c->had[saved->lock] = s->now;
	}
	saved->l = *lease;
	if (attached)
		c->lease_of[saved->lock] = (int) index;
	else if (c->lease_of[saved->lock] == (int) index)
		c->lease_of[saved->lock] = -1;
	note_pending(s, c, index);
	sim_say(s, "%d: lease %u of %s: state %d, version %.8s, pending %s %.8s", c->number,
			index, s->lock[saved->lock].name, (int) lease->state, lease->version,
			dynamo_op_name(lease->pending.op), lease->pending.version);
	sim_check_saved(s, c, index, granted);
}

static void
host_answer(void *arg, const lockmgr_answer *answer)
{
	host_arg   *a = arg;
	sim		   *s = a->s;
	sim_cluster *c = a->c;
	sim_notes  *notes = &c->notes[answer->session.slot];
	sim_session *session = &c->sessions[answer->session.slot];

	sim_say(s, "%d: answers session %u request %" PRIu64 " kind %d: result %d status %d",
			c->number, answer->session.slot, answer->seq, (int) answer->kind,
			(int) answer->result, (int) answer->status);
	if (notes->owed_seq != answer->seq)
		sim_wrong(s, "an answer that nobody is owed");
	notes->owed_seq = 0;
	if (!session->waiting || session->request.seq != answer->seq ||
		session->generation != answer->session.generation)
	{
		/* It has moved on.  If it cancels once more, this is all we see. */
		if (answer->result == LOCKMGR_GRANTED &&
			session->generation == answer->session.generation)
			session->let_go = c->saved[answer->lease_index].let_go = true;
		return;
	}
	if (answer->kind != session->request.kind)
		sim_wrong(s, "an answer to another question");
	sim_check_answer(s, c, answer);
	if (answer->result == LOCKMGR_GRANTED)
		sim_check_turn(s, session->asked_at > c->had[session->lock] ? session->asked_at :
					   c->had[session->lock], false);
	session->answer = *answer;
	sim_step_at(s, c, (int) answer->session.slot, s->now + sim_between(s, 20, 20 * MS));
}

static void
host_waits(void *arg, lockmgr_session session, uint64_t seq, uint32_t watch)
{
	host_arg   *a = arg;

	(void) session;
	(void) seq;
	if (watch >= (uint32_t) a->s->plan.sessions)
		sim_wrong(a->s, "no watch to wait under");
}

static void
host_watch(void *arg, uint32_t watch, const lockmgr_watch *what)
{
	host_arg   *a = arg;

	(void) what;
	if (watch >= (uint32_t) a->s->plan.sessions)
		sim_wrong(a->s, "no such watch");
}

static void
host_lost(void *arg, uint32_t index, const lease *lease, const char *name,
		  size_t name_len, const dynamo_item *by)
{
	host_arg   *a = arg;

	(void) name;
	(void) name_len;
	(void) by;
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		sim_hold   *hold = &a->c->sessions[lease->session.slot].holds[i];

		if (hold->used && hold->lease == index && hold->seq == lease->seq)
			hold->lost = true;
	}
	a->s->totals->losses++;
	a->c->saved[index].lost_until = lease->lease_end;
	sim_say(a->s, "%d: lease %u lost, reason %d", a->c->number, index,
			(int) lease->loss);
	sim_check_lost(a->s, a->c, index);
}

static void
host_no_batches(void *arg, const dynamo_reply *reply)
{
	host_arg   *a = arg;

	(void) reply;
	if (!a->c->refuses_batches)
		sim_wrong(a->s, "batches given up without need");
}

static void
host_random(void *arg, void *bytes, size_t len)
{
	host_arg   *a = arg;
	uint8_t    *to = bytes;

	while (len > 0)
	{
		uint64_t	random = sim_random(a->s);
		size_t		part = len < sizeof(random) ? len : sizeof(random);

		memcpy(to, &random, part);
		to += part;
		len -= part;
	}
}

/* Releases what the session marked. */
static void
read_let_go(sim *s, sim_cluster *c, lockmgr_session id)
{
	int64_t		now = sim_local(s, c);
	uint32_t	next;

	if (!c->sessions[id.slot].let_go)
		return;
	c->sessions[id.slot].let_go = false;
	for (uint32_t i = lockmgr_next_lease(c->lm, id.slot, LOCKMGR_NO_LEASE);
		 i != LOCKMGR_NO_LEASE; i = next)
	{
		next = lockmgr_next_lease(c->lm, id.slot, i);
		if (c->saved[i].let_go)
		{
			c->saved[i].let_go = false;
			lockmgr_let_go(c->lm, now, id, i);
		}
	}
}

/* A worker reads a session's slot, in the order in which its news count. */
void
sim_read_slot(sim *s, sim_cluster *c, int slot)
{
	sim_session *session = &c->sessions[slot];
	sim_notes  *notes = &c->notes[slot];
	lockmgr_session id = {.slot = (uint32_t) slot,.generation = session->generation};
	int64_t		now = sim_local(s, c);
	bool		asked = session->waiting &&
		session->request.seq > notes->taken_seq &&
		session->answer.seq != session->request.seq;

	sim_tell_time(s, c);
	if (session->waiting && session->request.seq > notes->taken_seq)
		notes->taken_seq = session->request.seq;
	if (id.generation != notes->generation)
	{
		lockmgr_session ended = id;

		ended.generation -= id.generation % 2;
		notes->generation = id.generation;
		notes->owed_seq = 0;
		lockmgr_session_end(c->lm, now, ended);
	}
	if (id.generation % 2 == 0)
		return;
	if (session->cancelled_seq > notes->cancelled_seq)
	{
		notes->cancelled_seq = session->cancelled_seq;
		if (notes->owed_seq <= session->cancelled_seq)
			notes->owed_seq = 0;
		lockmgr_cancel(c->lm, now, id, session->cancelled_seq);
	}
	read_let_go(s, c, id);
	if (asked && session->request.seq > session->cancelled_seq)
	{
		notes->owed_seq = session->request.seq;
		lockmgr_ask(c->lm, now, &session->request);
	}
}

void
sim_new_incarnation(sim_cluster *c)
{
	snprintf(c->owner, sizeof(c->owner), "cluster%d/%u", c->number, ++c->incarnation);
	c->clock.known = false;
}

/* Rates of clocks in here differ much more than in life. */
#define DRIFT_PPM 60000

void
sim_tell_time(const sim *s, sim_cluster *c)
{
	lockmgr_set_clock(c->lm, epoch_clock_high(&c->clock, sim_local(s, c)));
}

/* By an hour or by ages, and never twice by the same. */
int64_t
sim_absurd_date(sim *s, int64_t date_s)
{
	switch (sim_between(s, 0, 3))
	{
		case 0:
			return INT64_C(253370764800) + sim_between(s, 0, 1000000);	/* year 9999 */
		case 1:
			return sim_between(s, -1, 1000000);
		case 2:
			return date_s + sim_between(s, 3 * 3600, 1000000);
		default:
			return date_s - sim_between(s, 3 * 3600, 1000000);
	}
}

/*
 * Nothing is acquired before DynamoDB's clock is known: the worker has asked
 * for it just now.
 */
static void
learn_time(sim *s, sim_cluster *c)
{
	int64_t		local = sim_local(s, c);

	if (c->clock.known)
		return;
	epoch_clock_start(&c->clock, SIM_EPOCH + s->now + c->wall_error - local, DRIFT_PPM);
	for (int ago = 10 * EPOCH_VOTES; ago > 0 && !c->clock.known; ago--)
	{
		int64_t		back = ago * 20 * MS;
		int64_t		date_s = (SIM_EPOCH + s->now - back) / SECOND;

		if (sim_chance(s, 10))
			date_s = sim_absurd_date(s, date_s);
		epoch_clock_reply(&c->clock, date_s, local - back - sim_between(s, 1, 9 * MS),
						  local - back + sim_between(s, 1, 9 * MS));
	}
	if (!c->clock.known)
		sim_wrong(s, "I6: cluster %d does not learn the time", c->number);
}

static lockmgr *
new_manager(const sim *s, const sim_cluster *c, host_arg *arg)
{
	lockmgr_config config = {
		.owner = c->owner,
		.max_leases = s->plan.max_leases,
		.max_sessions = (uint32_t) s->plan.sessions,
		.max_remembered = 2,
		.max_calls = s->plan.max_calls,
		.request_timeout_us = SECOND,
		.retry_timeout_us = 5 * SECOND,
	};
	lockmgr_host host = {
		.arg = arg,
		.send = host_send,
		.save = host_save,
		.answer = host_answer,
		.waits = host_waits,
		.watch = host_watch,
		.lost = host_lost,
		.no_batches = host_no_batches,
		.random = host_random,
	};
	lockmgr    *lm = lockmgr_new(&config, &host);

	if (lm == NULL)
		abort();
	return lm;
}

/* A worker starts, and adopts what the one before it has left. */
void
sim_start_worker(sim *s, sim_cluster *c)
{
	host_args[c->number] = (host_arg) {s, c};
	sim_say(s, "%d: a worker starts", c->number);
	s->totals->workers++;
	c->life++;
	c->troubled_at = s->now;
	memset(c->notes, 0, (size_t) s->plan.sessions * sizeof(sim_notes));
	c->lm = new_manager(s, c, &host_args[c->number]);
	learn_time(s, c);
	sim_tell_time(s, c);
	c->adopting = true;
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		const sim_saved *saved = &c->saved[i];
		const sim_lock *lock = &s->lock[saved->lock];

		if (saved->l.state != LEASE_FREE)
			lockmgr_adopt(c->lm, i, &saved->l, lock->name, lock->name_len);
	}
	for (int i = 0; i < s->plan.sessions; i++)
		sim_read_slot(s, c, i);
	lockmgr_adopted(c->lm, sim_local(s, c));
	c->adopting = false;
}

void
sim_kill_worker(sim *s, sim_cluster *c)
{
	sim_say(s, "%d: the worker dies", c->number);
	lockmgr_free(c->lm);
	c->lm = NULL;
	c->paused_until = 0;
}
