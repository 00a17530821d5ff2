/*-------------------------------------------------------------------------
 *
 * sim_worker.c
 *	  Hosts a lock manager as the background worker does.
 *
 * Slots and saved leases outlive workers, as in shared memory.
 * src/lock/mailbox.c has the protocol between the slots and the manager.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

/* The host's argument. */
typedef struct host_arg
{
	sim		   *s;
	sim_cluster *c;
} host_arg;

static host_arg host_args[SIM_CLUSTERS];

bool
sim_is_dying(const sim_cluster *c)
{
	return c->effects_left == 0;
}

/* Counts an effect; false if the worker has died before it, in this very event. */
bool
sim_lives(sim_cluster *c)
{
	if (sim_is_dying(c))
		return false;
	if (c->effects_left > 0)
		c->effects_left--;
	return true;
}

static void
host_send(void *arg, const lockmgr_call *call)
{
	host_arg   *a = arg;
	lockmgr_counts counts;

	if (!sim_lives(a->c))
		return;
	lockmgr_count(a->c->worker.lm, &counts);
	if (counts.calls > 2 * a->s->plan.max_calls)
		sim_wrong(a->s, "%u calls in flight", counts.calls);
	/* What is sent alone in a batch is the check of batches, which is never applied. */
	for (int i = call->op == DYNAMO_RENEW_BATCH && call->count == 1;
		 i < call->count && call->op != DYNAMO_READ; i++)
		sim_check_send(a->s, a->c, &call->writes[i]);
	sim_send(a->s, a->c, call);
}

/* Records a version that is new, and when it is first sent. */
static void
note_pending(sim *s, const sim_cluster *c, uint32_t index)
{
	const saved_lease *l = &c->saved[index].l;
	sim_nonce  *nonce;

	if (l->state == LEASE_FREE || l->pending.version[0] == '\0')
		return;
	nonce = sim_find_nonce(&s->nonces, l->pending.version);
	if (nonce == NULL)
	{
		nonce = sim_add_nonce(&s->nonces, l->pending.version);
		nonce->op = l->pending.op;
		nonce->cluster = c->number;
		nonce->incarnation = c->incarnation;
		nonce->lock = c->saved[index].lock;
		nonce->lease = index;
		nonce->lease_ms = l->pending.lease_ms;
	}
	/* It is sent next; unless the worker dies first, and another one sends it. */
	if (l->pending.first_sent != 0 && nonce->first_sent == 0)
	{
		nonce->first_sent = sim_local(s, c);
		nonce->first_sent_true = s->now;
		nonce->epoch = SIM_EPOCH + s->now - s->plan.date_error - sim_lost_time(s, c);
	}
}

static void
host_save(void *arg, uint32_t index, const saved_lease *lease, const char *name,
		  size_t name_len)
{
	host_arg   *a = arg;
	sim		   *s = a->s;
	sim_cluster *c = a->c;
	sim_saved  *saved = &c->saved[index];
	bool		held_anew = lease->state == LEASE_HELD && saved->l.state != LEASE_HELD;
	bool		attached = lease->state != LEASE_FREE && lease->state != LEASE_BARRING &&
		(lease->version[0] != '\0' || lease->pending.version[0] != '\0');

	if (!sim_lives(c))
		return;
	if (name != NULL)
		saved->lock = sim_lock_number(s, name, name_len);
	if (saved->l.state == LEASE_HELD)
	{
		sim_touch(s, saved->lock, saved->l.mode);
		c->had[saved->lock] = s->now;
	}
	/* Perhaps the manager gives up: in such an outage it could not release the lock in time. */
	if (lease->state == LEASE_FREE && saved->l.state != LEASE_FREE &&
		saved->l.pending.op == DYNAMO_RELEASE && s->phase == PHASE_STORM &&
		(s->now < c->cut_until || s->now < c->no_credentials_until || s->now < c->throttled_until))
		sim_runs_out(s, &saved->l);
	mailbox_begin_save(&saved->words, lease);
	saved->l = *lease;
	mailbox_end_save(&saved->words, lease);
	if (attached)
		c->lease_of[saved->lock] = (int) index;
	else if (c->lease_of[saved->lock] == (int) index)
		c->lease_of[saved->lock] = -1;
	note_pending(s, c, index);
	sim_say(s, "%d: lease %u of %s: state %d, version %s, pending %s %s", c->number,
			index, s->lock[saved->lock].name, (int) lease->state, sim_short(lease->version),
			dynamo_op_name(lease->pending.op), sim_short(lease->pending.version));
	sim_check_saved(s, c, index, held_anew);
}

static void
note_loss(const sim *s, sim_cluster *c, uint32_t index, const saved_hold *hold)
{
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		sim_hold   *known = &c->sessions[hold->session.slot].holds[i];

		if (known->used && known->index == index && known->seq == hold->seq)
			known->lost = true;
	}
	for (int i = 0; i < s->plan.sessions; i++)
	{
		sim_detached *detached = &c->sessions[i].detached;

		if (detached->outlives ? detached->name.lease == hold->lease_index &&
			detached->name.token == hold->token :
			i == (int) hold->session.slot && detached->seq == hold->seq)
			detached->used = false;
	}
	sim_queue_lost(s, c, index, hold->seq);
}

static void
host_save_hold(void *arg, uint32_t index, const saved_hold *hold)
{
	host_arg   *a = arg;
	sim_saved_hold *saved = &a->c->saved_holds[index];
	saved_hold before = saved->h;
	bool		given;

	if (!sim_lives(a->c))
		return;
	given = mailbox_save_hold(&saved->words, hold);
	if (given)
		saved->unknown_since = 0;
	saved->h = *hold;
	sim_say(a->s, "%d: hold %u of session %u on lease %u: token %" PRId64 ", %d permits",
			a->c->number, index, hold->session.slot, hold->lease_index, hold->token,
			(int) hold->permits);
	/* What was announced with its number may have been granted before, in the same place. */
	if (given || (before.session.generation == 0 && hold->session.generation != 0))
		sim_check_grant(a->s, a->c, index);
	else
		sim_check_detached(a->s, a->c);	/* before the next grant gives the lease more time */
	if (hold->session.generation == 0 && before.session.generation != 0)
		sim_hold_ended(a->s, a->c, index, &before);
}

/* Checks an answer, if the session still exists and waits for it. */
static void
answer_listener(sim *s, sim_cluster *c, const lockmgr_answer *answer)
{
	const sim_session *session = &c->sessions[answer->session.slot];

	if (!session->waiting || session->request.seq != answer->seq ||
		session->me.generation != answer->session.generation)
		return;
	if (answer->kind != session->request.kind)
		sim_wrong(s, "I8: an answer to another question");
	if (answer->kind == SIM_QUEUE)
		return;
	sim_check_answer(s, c, answer);
	if (answer->result == LOCKMGR_GRANTED)
		sim_check_turn(s, session->asked_at > c->had[session->lock] ? session->asked_at :
					   c->had[session->lock], s->plan.shared_percent > 0 ?
					   TURN_SHARING_CLUSTER : TURN_CLUSTER);
}

void
sim_write_answer(sim *s, sim_cluster *c, const lockmgr_answer *answer)
{
	int			slot = (int) answer->session.slot;
	sim_race	before = sim_begin_race(s, c, slot, SIDE_WORKER);

	if (mailbox_begin_answer(&c->box, answer->session, answer->seq,
							 answer->result == LOCKMGR_GRANTED ?
							 answer->grant.hold_index : LOCKMGR_NO_HOLD))
	{
		answer_listener(s, c, answer);
		c->slots[slot].answer = *answer;
		if (answer->kind == SIM_QUEUE)
			sim_queue_give(c, (uint32_t) slot);
		mailbox_end_answer(&c->box, answer->session, answer->seq);
	}
	sim_end_race(before);
}

static void
host_answer(void *arg, const lockmgr_answer *answer)
{
	host_arg   *a = arg;
	sim		   *s = a->s;
	sim_cluster *c = a->c;
	uint32_t	slot = answer->session.slot;
	const mailbox_note *note = &c->worker.notes[slot];

	if (!sim_lives(c))
		return;
	sim_say(s, "%d: answers session %u request %" PRIu64 " kind %d: result %d status %d",
			c->number, slot, answer->seq, (int) answer->kind, (int) answer->result,
			(int) answer->status);
	if (c->owed[slot] != answer->seq || note->cancelled_seq >= answer->seq ||
		note->generation != answer->session.generation)
		sim_wrong(s, "an answer to no open request");
	sim_write_answer(s, c, answer);
	c->owed[slot] = 0;
}

static void
host_waits(void *arg, lockmgr_session session, uint64_t seq, uint32_t watch)
{
	host_arg   *a = arg;

	(void) session;
	(void) seq;
	if (watch > (uint32_t) a->s->plan.sessions)
		sim_wrong(a->s, "no watch to wait under");
}

static void
host_watch(void *arg, uint32_t watch, const lockmgr_watch *what)
{
	host_arg   *a = arg;

	(void) what;
	if (watch > (uint32_t) a->s->plan.sessions)
		sim_wrong(a->s, "no such watch");
}

static void
host_lost(void *arg, uint32_t index, const saved_hold *hold, const saved_lease *lease,
		  const dynamo_item *by)
{
	host_arg   *a = arg;

	(void) by;
	if (!sim_lives(a->c))
		return;
	note_loss(a->s, a->c, index, hold);
	a->s->totals->losses++;
	if (hold->loss != LOSS_AT_MOST)
		a->c->saved[hold->lease_index].lost_until = lease->lease_end;
	sim_say(a->s, "%d: lease %u lost, reason %d", a->c->number, hold->lease_index,
			(int) hold->loss);
	sim_check_lost(a->s, a->c, index);
}

static void
host_no_batches(void *arg, const dynamo_reply *reply, bool for_good)
{
	host_arg   *a = arg;

	(void) reply;
	if (for_good && !a->c->refuses_batches)
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

static mailbox_slot *
box_slot(void *arg, uint32_t number)
{
	return &((host_arg *) arg)->c->slots[number].words;
}

static mailbox_lease *
box_lease(void *arg, uint32_t index)
{
	return &((host_arg *) arg)->c->saved[index].words;
}

static mailbox_hold *
box_hold(void *arg, uint32_t index)
{
	return &((host_arg *) arg)->c->saved_holds[index].words;
}

static void
box_ring(void *arg, uint32_t slot)
{
	host_arg   *a = arg;

	sim_schedule(a->s, (sim_event) {
		.at = a->s->now + sim_between(a->s, 10, MS), .kind = SIM_BELL,
		.cluster = a->c->number, .slot = (int) slot,
	});
}

static void
box_wake(void *arg, uint32_t slot)
{
	host_arg   *a = arg;

	if (a->c->sessions[slot].waiting)
		sim_step_at(a->s, a->c, (int) slot, a->s->now + sim_between(a->s, 20, 20 * MS));
}

static int64_t
box_clock(void *arg)
{
	host_arg   *a = arg;

	return sim_local(a->s, a->c);
}

static void
box_copy(void *arg, uint32_t slot)
{
	host_arg   *a = arg;

	a->c->taken = a->c->slots[slot].request;
	a->c->taken_announced = a->c->slots[slot].announced;
	memcpy(a->c->taken_all, a->c->slots[slot].all, sizeof(a->c->taken_all));
	sim_queue_copy(a->c, slot);
}

static bool
box_may_ask(void *arg, int64_t now)
{
	host_arg   *a = arg;

	(void) now;
	return (a->c->taken.kind > LOCKMGR_TRY && a->c->taken.kind != SIM_ANNOUNCE) ||
		a->s->now >= a->c->unfit_until;
}

static void
box_ask(void *arg, int64_t now, lockmgr_session session, uint64_t seq)
{
	host_arg   *a = arg;
	lockmgr_request request = a->c->taken;

	if (request.seq != seq || request.session.slot != session.slot ||
		request.session.generation != session.generation)
		sim_wrong(a->s, "I8: request %" PRIu64 " of slot %u is asked for another session",
				  seq, session.slot);
	request.session = session;
	request.all = a->c->taken_all;
	a->c->owed[session.slot] = seq;
	if (request.kind == SIM_ANNOUNCE)
	{
		lockmgr_answer answer = {
			.session = session, .seq = seq, .kind = SIM_ANNOUNCE, .result = LOCKMGR_BUSY,
			.message = "",
		};

		sim_ask_announced(a->s, a->c, now, session);
		host_answer(arg, &answer);
	}
	else if (request.kind == SIM_QUEUE)
		sim_queue_ask(a->s, a->c, session, seq);
	else
		lockmgr_ask(a->c->worker.lm, now, &request);
}

/* The mailbox exists before the first worker. */
void
sim_mailbox_new(sim *s, sim_cluster *c)
{
	host_args[c->number] = (host_arg) {s, c};
	c->box = (mailbox) {
		.arg = &host_args[c->number],
		.slot = box_slot,
		.lease = box_lease,
		.hold = box_hold,
		.ring = box_ring,
		.wake = box_wake,
	};
	c->worker.box = &c->box;
	c->worker.slots = (uint32_t) s->plan.sessions + 1;
	c->worker.clock = box_clock;
	c->worker.copy = box_copy;
	c->worker.may_ask = box_may_ask;
	c->worker.ask = box_ask;
}

bool
sim_is_answered(const sim_cluster *c, const sim_session *session)
{
	return session->waiting &&
		mailbox_is_answered(&c->box, session->me, session->request.seq);
}

void
sim_read_slot(sim *s, sim_cluster *c, int slot)
{
	sim_race	before = sim_begin_race(s, c, slot, SIDE_WORKER);

	sim_tell_time(s, c);
	mailbox_read_let_go(&c->worker, (uint32_t) slot, sim_local(s, c));
	mailbox_read(&c->worker, (uint32_t) slot, sim_local(s, c));
	sim_end_race(before);
}

/*
 * The table check passes, or the parked requests fail because the worker cannot learn
 * about the table.  Until then requests are parked, as in worker_table_check.c.
 */
void
sim_table_known(sim *s, sim_cluster *c)
{
	lockmgr_answer answer = {
		.result = LOCKMGR_FAILED, .status = DYNAMO_CREDENTIALS, .message = "",
	};
	bool		fails = sim_chance(s, 30);

	if (c->worker.lm == NULL || s->now < c->unfit_until)
		return;
	sim_tell_time(s, c);
	for (int i = 0; i <= s->plan.sessions && fails; i++)
	{
		if (!mailbox_unpark(&c->worker, (uint32_t) i, INT64_MAX, &answer.session, &answer.seq))
			continue;
		answer.kind = c->slots[i].request.kind;
		sim_write_answer(s, c, &answer);
	}
	mailbox_retry_parked(&c->worker, sim_local(s, c));
}

void
sim_new_incarnation(sim_cluster *c)
{
	c->heard.used = false;
	++c->incarnation;
	snprintf(c->owner, sizeof(c->owner), "cluster%d/%d-%u", c->number, c->number,
			 c->incarnation);
	c->clock.known = false;
}

/* Simulated clocks drift far more than real ones. */
#define DRIFT_PPM 60000

void
sim_tell_time(const sim *s, sim_cluster *c)
{
	lockmgr_set_clock(c->worker.lm, epoch_clock_high(&c->clock, sim_local(s, c)),
					  epoch_clock_low(&c->clock, sim_local(s, c)));
}

/* Wrong by hours or by millennia, and each time by a different amount. */
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
 * The worker acquires nothing before it knows DynamoDB's clock.  Here it has
 * read an item a few times just before it starts; or after a long time without any reply,
 * in which its estimate has become vague, because simulated clocks drift so much.
 */
void
sim_learn_time(sim *s, sim_cluster *c)
{
	int64_t		local = sim_local(s, c);
	int64_t		wall_offset = SIM_EPOCH + s->now + c->wall_error - local;

	epoch_clock_start(&c->clock, wall_offset, DRIFT_PPM);
	for (int ago = 20 * EPOCH_VOTES; ago > 0 && !c->clock.known; ago--)
	{
		int64_t		back = ago * EPOCH_DOUBT_US / 30;
		int64_t		date_s = (SIM_EPOCH + s->now - back) / SECOND;

		if (sim_chance(s, 10))
			date_s = sim_absurd_date(s, date_s);
		epoch_clock_reply(&c->clock, date_s, local - back - sim_between(s, 1, 9 * MS),
						  local - back + sim_between(s, 1, 9 * MS), wall_offset);
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
		.max_sessions = (uint32_t) s->plan.sessions + 1,
		.max_remembered = 2,
		.max_calls = s->plan.max_calls,
		.request_timeout_us = SECOND,
		.retry_timeout_us = 5 * SECOND,
		.poll_interval_us = s->plan.poll_interval_us,
	};
	lockmgr_host host = {
		.arg = arg,
		.send = host_send,
		.save = host_save,
		.save_hold = host_save_hold,
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
	lockmgr_set_takeover(lm, c->by_clock, s->plan.slack);
	return lm;
}

/* After the worker's start, the table check may not pass for a while. */
static void
ask_for_table(sim *s, sim_cluster *c)
{
	c->unfit_until = s->now;
	if (s->phase != PHASE_STORM || s->plan.fault_percent == 0 || sim_chance(s, 70))
		return;
	c->unfit_until += sim_between(s, MS, SECOND);
	if (c->troubled_at < c->unfit_until)
		c->troubled_at = c->unfit_until;
	sim_schedule(s, (sim_event) {.at = c->unfit_until,.kind = SIM_FIT,.cluster = c->number});
}

/* A worker starts, and adopts the leases and slots of the one before. */
void
sim_start_worker(sim *s, sim_cluster *c)
{
	sim_say(s, "%d: a worker starts", c->number);
	s->totals->workers++;
	c->life++;
	c->effects_left = -1;
	c->troubled_at = s->now;
	memset(c->worker.notes, 0, ((size_t) s->plan.sessions + 1) * sizeof(mailbox_note));
	memset(c->owed, 0, ((size_t) s->plan.sessions + 1) * sizeof(uint64_t));
	c->worker.lm = new_manager(s, c, &host_args[c->number]);
	if (!c->clock.known)
		sim_learn_time(s, c);
	sim_tell_time(s, c);
	ask_for_table(s, c);
	sim_queue_worker_starts(s, c);
	c->adopting = true;
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		const sim_saved *saved = &c->saved[i];
		const sim_lock *lock = &s->lock[saved->lock];

		lockmgr_adopt(c->worker.lm, i, &saved->l, lock->name, lock->name_len);
	}
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		const saved_hold *h = &c->saved_holds[i].h;

		/* The last worker may have died before it told the session. */
		if (h->loss != LOSS_NONE)
			note_loss(s, c, i, h);
		lockmgr_adopt_hold(c->worker.lm, i, h);
	}
	for (int i = 0; i <= s->plan.sessions; i++)
		sim_read_slot(s, c, i);
	lockmgr_adopted(c->worker.lm, sim_local(s, c));
	sim_journal_read(s, c);
	c->adopting = false;
}

void
sim_kill_worker(sim *s, sim_cluster *c)
{
	sim_say(s, "%d: the worker dies", c->number);
	lockmgr_free(c->worker.lm);
	c->worker.lm = NULL;
	c->paused_until = 0;
	c->effects_left = -1;
}

/*
 * The worker is stopped.  Two pauses are one that ends with the later: what was put
 * off to the end of the first must not come after the worker has gone on.
 */
void
sim_pause(sim_cluster *c, int64_t until)
{
	if (c->paused_until < until)
		c->paused_until = until;
}
