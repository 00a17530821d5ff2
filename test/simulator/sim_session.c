/*-------------------------------------------------------------------------
 *
 * sim_session.c
 *	  Sessions: their requests and transactions.
 *
 * A session acts in steps: at random times, and when its answer has come.  With
 * a lock it also commits transactions.  A transaction has three steps, between
 * which the session may be stopped: it raises the fence (which locks a row), it
 * passes the guard, it commits.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

static const dynamo_holder somebody = {.database = "test",.user = "me",.pid = 1};

/* Schedules the session's next step, instead of any step scheduled before. */
void
sim_step_at(sim *s, sim_cluster *c, int slot, int64_t at)
{
	sim_schedule(s, (sim_event) {
		.at = at, .kind = SIM_STEP, .cluster = c->number, .slot = slot,
		.steps = ++c->sessions[slot].steps,
	});
}

static void
step_again(sim *s, sim_cluster *c, int slot)
{
	bool		hot = s->plan.kind == KIND_HOT && s->phase < PHASE_DRAIN;
	int64_t		most = s->phase >= PHASE_DRAIN && s->plan.step > SECOND ? SECOND : s->plan.step;

	if (hot && c->sessions[slot].waiting)
		return;					/* the answer schedules the next step */
	if (hot && s->plan.eager && !c->sessions[slot].holds[0].used)
		most = MS;
	if (c->sessions[slot].waiting)
		most *= 4;				/* the answer schedules an earlier step */
	else if (sim_queue_is_busy(c, slot))
		most = 20 * MS;
	else if (!hot && sim_chance(s, 20))
		most *= 5;
	sim_step_at(s, c, slot, s->now + sim_between(s, MS, most));
}

void
sim_attach(sim *s, sim_cluster *c, int slot)
{
	sim_race	before = sim_begin_race(s, c, slot, SIDE_SESSION);

	c->sessions[slot].me = mailbox_attach(&c->box, (uint32_t) slot);
	sim_end_race(before);
}

/*
 * In hot runs, each lock is shared in one way, and each request is for one permit, or for its cluster's
 * number.
 */
lockmgr_request
sim_make_request(sim *s, const sim_cluster *c, int slot, lockmgr_kind kind, int lock)
{
	bool		hot = s->plan.kind == KIND_HOT;
	bool		same = sim_chance(s, s->plan.same_percent);
	bool		shares = s->phase < PHASE_PROBE && (sim_chance(s, s->plan.shared_percent) ||
													(s->plan.one_exclusive && c->number > 0));
	int32_t		limit = s->lock[lock].limit + (!hot && sim_chance(s, 10) ? 1 : 0);
	const char *attributes = same || shares || sim_chance(s, 70) ? NULL :
		sim_chance(s, 50) ? "{\"team\":{\"S\":\"x\"}}" : "{\"team\":{\"N\":\"1\"},\"a\":{\"S\":\"\"}}";
	int64_t		lease_ms = same ? s->plan.lease_min_ms :
		sim_between(s, s->plan.lease_min_ms, s->plan.lease_max_ms);

	/* The order in which the compiler evaluates the parts of a struct is its own. */
	lock_mode	mode = !shares ? MODE_EXCLUSIVE :
		!s->plan.permits && (hot ? lock == 0 : sim_chance(s, 50)) ? MODE_SHARED : MODE_SEMAPHORE;
	int32_t		permits = s->plan.permits ? 1 + (c->number * (int32_t) (s->seed / 25 % 3)) % limit :
		!hot && limit > 1 && sim_chance(s, 20) ? 2 : 1;
	int64_t		margin_us = lease_ms * sim_between(s, 100, 500);
	int64_t		at_least_ms = s->phase < PHASE_DRAIN && sim_chance(s, s->plan.keep_percent) ?
		sim_between(s, 1, s->plan.keep_max_ms) : 0;
	bool		has_data = !same && !shares && sim_chance(s, 30);
	bool		deletes_item = s->plan.purge && !shares && sim_chance(s, 20);
	int64_t		at_most_us = s->phase < PHASE_DRAIN && sim_chance(s, s->plan.limit_percent) ?
		sim_between(s, lease_ms * 500, lease_ms * 3000) : 0;

	return (lockmgr_request) {
		.session = c->sessions[slot].me,
		.kind = kind,
		.name = s->lock[lock].name,
		.name_len = s->lock[lock].name_len,
		.ask = {
			.mode = mode,
			.permits = permits,
			.limit = limit,
			.lease_ms = lease_ms,
			.margin_us = margin_us,
			.at_least_ms = at_least_ms,
			.at_most_us = at_most_us,
			.taker = 1 + (uint32_t) slot % 2,
			.holder = somebody,
			.deletes_item = deletes_item,
			/* Who holds nothing keeps no holder waiting. */
			.waits_for_local_holder = kind == LOCKMGR_TRY && !c->sessions[slot].holds[0].used &&
				!c->sessions[slot].holds[1].used && s->now % 2 == 0,
			.goes_first = kind == LOCKMGR_ACQUIRE && s->now % 16 == 0,
		},
		.data = has_data ? (const uint8_t *) "data" : NULL,
		.data_len = 4,
		.attributes = attributes,
		.attributes_len = attributes != NULL ? strlen(attributes) : 0,
	};
}

void
sim_post_request(sim *s, sim_cluster *c, int slot, lockmgr_request request, int lock)
{
	sim_session *session = &c->sessions[slot];
	sim_race	before = sim_begin_race(s, c, slot, SIDE_SESSION);

	request.seq = mailbox_begin_post(&c->box, session->me);
	c->slots[slot].request = session->request = request;
	c->slots[slot].announced = session->announced;
	memcpy(c->slots[slot].all, session->all, sizeof(session->all));
	mailbox_end_post(&c->box, session->me);
	session->lock = lock;
	session->waiting = true;
	session->asked_at = s->now;
	sim_wait(s, c, session);
	sim_say(s, "%d: session %d posts request %" PRIu64 " kind %d %s mode %d, %d of %d permits",
			c->number, slot, request.seq, (int) request.kind, s->lock[lock].name,
			(int) request.ask.mode, (int) request.ask.permits, (int) request.ask.limit);
	sim_end_race(before);
}

void
sim_post(sim *s, sim_cluster *c, int slot, lockmgr_kind kind, int lock)
{
	sim_post_request(s, c, slot, sim_make_request(s, c, slot, kind, lock), lock);
}

bool
sim_busy(const sim_session *session)
{
	return session->waiting || session->announced.used || session->holds[0].used ||
		session->holds[1].used;
}

/* The session no longer holds the lock; its transaction is rolled back. */
void
sim_clear_hold(sim *s, sim_hold *hold)
{
	sim_lock   *lock = &s->lock[hold->lock];

	if (lock->row_locked == hold)
		lock->row_locked = NULL;
	memset(hold, 0, sizeof(*hold));
}

void
sim_forget_session(sim *s, const sim_cluster *c, sim_session *session)
{
	session->me.generation = 0;
	if (session->waiting)
		sim_wait(s, c, session);
	session->waiting = false;
	session->announced.used = false;
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		if (session->holds[i].used)
			sim_clear_hold(s, &session->holds[i]);
	}
}

/* Has a session asked to end a hold with this token, and waits for that? */
static bool
is_being_ended(const sim *s, const sim_cluster *c, uint32_t lease, int64_t token)
{
	for (int i = 0; i < s->plan.sessions; i++)
	{
		const sim_session *session = &c->sessions[i];

		if (session->waiting && session->request.kind == LOCKMGR_END_DETACHED &&
			session->request.ask.token == token && session->request.ask.lease_index == lease)
			return true;
	}
	return false;
}

/* The session ends: what works under a hold that outlives it does not know yet. */
static void
leave_outliving(const sim *s, const sim_cluster *c, sim_session *session)
{
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		const sim_hold *hold = &session->holds[i];

		if (!hold->used || !hold->may_outlive)
			continue;
		session->detached = (sim_detached) {
			.used = hold->outlive_time_us != 0 && !hold->lost && sim_holds(s, c, hold) &&
				!is_being_ended(s, c, hold->lease, hold->token),
			.outlives = true,
			.name = {true, hold->lock, hold->lease, hold->generation, hold->token,
				c->saved_holds[hold->index].h.taker},
			.index = hold->index,
			.seq = hold->seq,
			.until = sim_local(s, c) + hold->outlive_time_us,
			.valid_until = c->saved[hold->lease].l.valid_until,
		};
	}
}

void
sim_end_session(sim *s, sim_cluster *c, int slot)
{
	lockmgr_session me = c->sessions[slot].me;
	sim_race	before = sim_begin_race(s, c, slot, SIDE_SESSION);

	sim_say(s, "%d: session %d ends", c->number, slot);
	leave_outliving(s, c, &c->sessions[slot]);
	sim_queue_session_ends(s, c, slot);
	sim_forget_session(s, c, &c->sessions[slot]);
	mailbox_detach(&c->box, me);
	sim_end_race(before);
}

static void
add_hold(sim *s, const sim_cluster *c, sim_session *session,
		 const lockmgr_answer *answer)
{
	const saved_lease *l = &c->saved[answer->grant.lease_index].l;
	const saved_hold *h = &c->saved_holds[answer->grant.hold_index].h;
	int			free = session->holds[0].used ? 1 : 0;

	session->holds[free] = (sim_hold) {
		.used = true, .lock = session->lock, .index = answer->grant.hold_index,
		.lease = answer->grant.lease_index, .generation = answer->grant.lease_generation,
		.seq = answer->seq, .token = answer->grant.token, .mode = session->request.ask.mode,
		.permits = session->request.ask.permits, .limit = session->request.ask.limit,
		.must_end = answer->grant.must_end,
		.lost = l->state != LEASE_HELD || h->loss != LOSS_NONE || h->seq != answer->seq ||
			h->session.slot != answer->session.slot,
	};
	session->holds[free].lower = !sim_passes_fence(s->lock[session->lock].ever,
												   &session->holds[free]);
	sim_check_alone(s, c, (int) session->me.slot, &session->holds[free]);
	if (!h->joined)
		sim_promise(s, c, session, &session->holds[free]);
}

/* The session has left its hold to the cluster; somebody works under it. */
static void
rely_on(sim *s, const sim_cluster *c, sim_session *session, const lockmgr_answer *answer)
{
	session->detached = (sim_detached) {
		.used = c->saved_holds[answer->grant.hold_index].h.seq == answer->seq &&
			c->saved_holds[answer->grant.hold_index].h.loss == LOSS_NONE && !session->ended &&
			!is_being_ended(s, c, answer->grant.lease_index, answer->grant.token),
		.name = {true, session->lock, answer->grant.lease_index, answer->grant.lease_generation,
			answer->grant.token, c->saved_holds[answer->grant.hold_index].h.taker},
		.index = answer->grant.hold_index,
		.seq = answer->seq,
		.until = sim_local(s, c) - (s->now - session->asked_at) * 2 +
			session->request.ask.at_most_us,
	};
	sim_check_detached(s, c);
}

/* The hold outlives the session. */
static void
note_outliving(sim *s, const sim_cluster *c, sim_session *session, const lockmgr_answer *answer)
{
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		sim_hold   *hold = &session->holds[i];

		if (answer->result != LOCKMGR_RENEWED || !hold->used ||
			hold->index != session->request.ask.hold_index)
			continue;
		hold->outlive_time_us = c->saved_holds[hold->index].h.outlive_time_us;
		s->totals->outlive++;
		if (hold->outlive_time_us < s->plan.lease_min_ms * MS)
			sim_wrong(s, "I1: a hold outlives its session for %" PRId64 " us", hold->outlive_time_us);
	}
}

static void
take_answer(sim *s, const sim_cluster *c, sim_session *session)
{
	const lockmgr_answer *answer = &c->slots[session->me.slot].answer;
	bool		lost = false;

	sim_wait(s, c, session);
	session->waiting = false;
	(void) mailbox_accept(&c->box, session->me, session->request.seq);
	if (answer->seq != session->request.seq ||
		answer->session.generation != session->me.generation)
		sim_wrong(s, "I8: a session takes an answer that is not its own");
	for (int i = 0; i < SIM_HOLDS; i++)
		lost |= session->holds[i].lost &&
			(session->holds[i].given_up ||
			 session->holds[i].index == session->request.ask.hold_index);
	switch (session->request.kind)
	{
		case LOCKMGR_ACQUIRE:
		case LOCKMGR_TRY:
			if (answer->result == LOCKMGR_GRANTED)
				add_hold(s, c, session, answer);
			sim_claim_answered(s, session, answer);
			break;
		case LOCKMGR_RELEASE:
			for (int i = 0; i < SIM_HOLDS; i++)
			{
				if (session->holds[i].given_up)
					sim_clear_hold(s, &session->holds[i]);
			}
			/* FALLTHROUGH */
		case LOCKMGR_RENEW:
			if (answer->result == LOCKMGR_NOT_HELD && !lost)
				sim_wrong(s, "a granted lock is reported as not held");
			break;
		case LOCKMGR_JOIN:
			if (answer->result == LOCKMGR_GRANTED)
				add_hold(s, c, session, answer);
			break;
		case LOCKMGR_DETACH:
			if (session->request.ask.at_most_us == 0)
				note_outliving(s, c, session, answer);
			else if (answer->result == LOCKMGR_GRANTED)
				rely_on(s, c, session, answer);
			else
				mailbox_let_go(&c->box, session->me, session->detaching,
							   session->request.ask.hold_index);
			break;
		case LOCKMGR_LOOK_UP:
		case LOCKMGR_END_DETACHED:
		default:
			break;
	}
}

void
sim_let_go(sim *s, sim_cluster *c, int slot, uint32_t index)
{
	sim_session *session = &c->sessions[slot];

	sim_say(s, "%d: session %d lets go of hold %u", c->number, slot, index);
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		sim_hold   *hold = &session->holds[i];
		uint64_t	seq = hold->seq;
		sim_race	before;

		if (!hold->used || hold->index != index)
			continue;
		sim_clear_hold(s, hold);
		before = sim_begin_race(s, c, slot, SIDE_SESSION);
		mailbox_let_go(&c->box, session->me, seq, index);
		sim_end_race(before);
	}
}

/*
 * The session no longer waits for its answer.  The worker may not have read a
 * request to release: then letting go asks for it again.
 */
static void
cancel(sim *s, sim_cluster *c, int slot)
{
	sim_session *session = &c->sessions[slot];
	sim_race	before = sim_begin_race(s, c, slot, SIDE_SESSION);

	sim_say(s, "%d: session %d cancels request %" PRIu64, c->number, slot,
			session->request.seq);
	sim_wait(s, c, session);
	session->waiting = false;
	mailbox_cancel(&c->box, session->me, session->request.seq);
	sim_end_race(before);
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		if (session->holds[i].given_up)
			sim_let_go(s, c, slot, session->holds[i].index);
	}
	if (session->request.kind == LOCKMGR_DETACH && session->request.ask.at_most_us != 0)
	{
		before = sim_begin_race(s, c, slot, SIDE_SESSION);
		mailbox_let_go(&c->box, session->me, session->detaching, session->request.ask.hold_index);
		sim_end_race(before);
	}
	sim_queue_cancelled(s, c, slot);
}

/* Leaves the hold to the cluster; does not believe in it any more. */
static void
detach(sim *s, sim_cluster *c, int slot, sim_hold *hold)
{
	sim_session *session = &c->sessions[slot];
	lockmgr_request request = sim_make_request(s, c, slot, LOCKMGR_DETACH, hold->lock);
	int			lock = hold->lock;

	request.ask.hold_index = hold->index;
	request.ask.lease_index = hold->lease;
	request.ask.lease_generation = hold->generation;
	request.ask.at_most_us = sim_between(s, 10 * MS, s->plan.lease_max_ms * MS);
	session->detaching = hold->seq;
	session->ended = is_being_ended(s, c, hold->lease, hold->token);
	sim_clear_hold(s, hold);
	sim_post_request(s, c, slot, request, lock);
}

/* Wants the hold to outlive the session. */
static void
outlive(sim *s, sim_cluster *c, int slot, sim_hold *hold)
{
	lockmgr_request request = sim_make_request(s, c, slot, LOCKMGR_DETACH, hold->lock);

	request.ask.hold_index = hold->index;
	request.ask.lease_index = hold->lease;
	request.ask.lease_generation = hold->generation;
	request.ask.at_most_us = 0;
	hold->may_outlive = true;
	sim_post_request(s, c, slot, request, hold->lock);
}

/* A hold that the directory shows, or one that somebody has heard of earlier. */
static bool
hear_of(sim *s, sim_cluster *c)
{
	uint32_t	first = (uint32_t) sim_between(s, 0, s->plan.max_leases - 1);

	if (c->heard.used && sim_chance(s, 30))
		return true;
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		const saved_hold *h = &c->saved_holds[(first + i) % s->plan.max_leases].h;
		const sim_saved *saved = &c->saved[h->lease_index];

		if (h->session.generation == 0 || h->mode != MODE_EXCLUSIVE ||
			saved->l.generation != h->lease_generation)
			continue;
		c->heard = (sim_name) {
			true, saved->lock, h->lease_index, h->lease_generation, h->token, h->taker
		};
		return true;
	}
	return false;
}

static void
post_named(sim *s, sim_cluster *c, int slot, lockmgr_kind kind, const sim_name *name)
{
	lockmgr_request request = sim_make_request(s, c, slot, kind, name->lock);

	request.ask.mode = MODE_EXCLUSIVE;
	request.ask.permits = 1;
	request.ask.hold_index = LOCKMGR_NO_HOLD;
	request.ask.lease_index = name->lease;
	request.ask.lease_generation = name->generation;
	request.ask.token = name->token;
	request.ask.taker = sim_chance(s, 95) ? name->taker : name->taker + 1;
	sim_post_request(s, c, slot, request, name->lock);
}

/* Who has joined a hold and detached it has the same token: nobody relies on it any more. */
static void
end_detached(sim *s, sim_cluster *c, int slot, const sim_name *name)
{
	for (int i = 0; i < s->plan.sessions; i++)
	{
		sim_session *other = &c->sessions[i];
		sim_detached *detached = &other->detached;

		if (detached->name.token == name->token && detached->name.lease == name->lease)
			detached->used = false;
		if (other->waiting && other->request.kind == LOCKMGR_DETACH &&
			c->saved_holds[other->request.ask.hold_index].h.token == name->token)
			other->ended = true;
	}
	post_named(s, c, slot, LOCKMGR_END_DETACHED, name);
}

/* Joins a hold, or ends a detached one.  Returns whether it has asked for something. */
static bool
use_named(sim *s, sim_cluster *c, int slot)
{
	sim_session *session = &c->sessions[slot];
	sim_detached *detached = &session->detached;

	if (detached->used && sim_chance(s, 20))
	{
		end_detached(s, c, slot, &detached->name);
		return true;
	}
	if (s->phase >= PHASE_DRAIN || !sim_chance(s, 40) || !hear_of(s, c))
		return false;
	if (sim_chance(s, 10))
		end_detached(s, c, slot, &c->heard);
	else
		post_named(s, c, slot, LOCKMGR_JOIN, &c->heard);
	return true;
}

/* Asks whether the cluster leads; if so, the transaction joins that. */
static bool
join_leader(sim *s, sim_cluster *c, int slot)
{
	int			lock = sim_leadership_lock(s);
	lockmgr_request request;

	if (sim_chance(s, 2))
		sim_change_leadership(s, c);
	if (s->phase >= PHASE_DRAIN || !sim_chance(s, 40))
		return false;
	request = sim_make_request(s, c, slot, LOCKMGR_JOIN, lock);
	if (!sim_lead(s, c, &request))
		return false;
	sim_post_request(s, c, slot, request, lock);
	return true;
}

static void
ask_about(sim *s, sim_cluster *c, int slot, sim_hold *hold, lockmgr_kind kind)
{
	lockmgr_request request = sim_make_request(s, c, slot, kind, hold->lock);

	request.ask.hold_index = hold->index;
	request.ask.lease_index = hold->lease;
	request.ask.lease_generation = hold->generation;
	request.ask.ends_kept = kind == LOCKMGR_RELEASE && sim_chance(s, 20);
	if (request.ask.ends_kept)
		sim_end_promise(&s->lock[hold->lock], hold->token);
	hold->given_up = kind == LOCKMGR_RELEASE;
	request.ask.valid_until = mailbox_valid_until(&c->box, hold->lease, hold->generation);
	if (kind == LOCKMGR_RENEW && (hold->mode != MODE_EXCLUSIVE || sim_chance(s, 50)))
		request.ask.lease_ms = request.ask.margin_us = 0;
	if (hold->mode != MODE_EXCLUSIVE)
		request.data = NULL;
	sim_post_request(s, c, slot, request, hold->lock);
}

/* Does the session believe that it has the lock? */
bool
sim_holds(const sim *s, const sim_cluster *c, const sim_hold *hold)
{
	return hold->used && !hold->given_up &&
		(hold->must_end == 0 || sim_local(s, c) < hold->must_end) &&
		sim_local(s, c) < mailbox_valid_until(&c->box, hold->lease, hold->generation);
}

/* ddb_lock_release_all().  False if the session does not believe in both. */
static bool
release_both(sim *s, sim_cluster *c, int slot)
{
	sim_session *session = &c->sessions[slot];
	lockmgr_request request = sim_make_request(s, c, slot, LOCKMGR_RELEASE, session->holds[0].lock);

	if (!sim_holds(s, c, &session->holds[0]) || !sim_holds(s, c, &session->holds[1]))
		return false;
	request.ask.hold_index = LOCKMGR_NO_HOLD;
	request.all_count = SIM_HOLDS;
	request.ask.valid_until = INT64_MAX;
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		sim_hold   *hold = &session->holds[i];
		int64_t		valid_until = mailbox_valid_until(&c->box, hold->lease, hold->generation);

		if (valid_until < request.ask.valid_until)
			request.ask.valid_until = valid_until;
		session->all[i] = (lockmgr_lease) {hold->lease, hold->generation};
		hold->given_up = true;
	}
	sim_post_request(s, c, slot, request, session->holds[0].lock);
	return true;
}

/* ddb_fence_check(): waits for the row, then refuses a lower token. */
static void
raise_fence(sim *s, sim_cluster *c, int slot, sim_hold *hold)
{
	sim_lock   *lock = &s->lock[hold->lock];

	if (lock->row_locked != NULL)
		return;
	if (sim_passes_fence(lock->fence, hold))
	{
		lock->row_locked = hold;
		hold->transaction = 1;
		return;
	}
	s->totals->fenced++;
	if (sim_holds(s, c, hold) && !c->saved[hold->lease].excused && !hold->lower)
		sim_wrong(s, "I4: the fence refuses the holder of %s", lock->name);
	sim_let_go(s, c, slot, hold->index);
}

static void
step_transaction(sim *s, sim_cluster *c, int slot, sim_hold *hold)
{
	sim_lock   *lock = &s->lock[hold->lock];

	if (hold->mode == MODE_SEMAPHORE)
		return;					/* there is no fence for permits */
	switch (hold->transaction)
	{
		case 0:
			raise_fence(s, c, slot, hold);
			return;
		case 1:
			if (sim_holds(s, c, hold))
			{
				sim_check_guard(s, c, hold);
				hold->transaction = 2;
				return;
			}
			s->totals->guarded++;
			break;
		default:
			sim_check_commit(s, c, hold);
			if (hold->token > lock->fence[hold->mode])
				lock->fence[hold->mode] = hold->token;
			s->totals->commits++;
			break;
	}
	hold->transaction = 0;
	lock->row_locked = NULL;
}

/*
 * May it leave a hold to the cluster?  Of each slot, at most one such hold stands, or will.
 */
static bool
may_leave(const sim_cluster *c, const sim_session *session)
{
	const sim_detached *detached = &session->detached;
	const saved_hold *h = &c->saved_holds[detached->index].h;

	return !detached->used && (h->ends_at == 0 || h->seq != detached->seq) &&
		!session->holds[0].may_outlive && !session->holds[1].may_outlive;
}

static void
use_hold(sim *s, sim_cluster *c, int slot, sim_hold *hold)
{
	const saved_hold *h = &c->saved_holds[hold->index].h;
	int64_t		dice = sim_between(s, 0, 99);

	if (h->seq != hold->seq || h->session.slot != (uint32_t) slot)
	{
		/* A lost lease is freed when another lock needs its room. */
		if (!hold->lost)
			sim_wrong(s, "I8: hold %u of session %d of cluster %d, request %" PRIu64
					  ", has vanished", hold->index, slot, c->number, hold->seq);
		sim_clear_hold(s, hold);
		return;
	}
	if (s->plan.joins && s->phase < PHASE_DRAIN && hold->mode == MODE_EXCLUSIVE &&
		hold->transaction == 0 && may_leave(c, &c->sessions[slot]) && sim_chance(s, 8))
	{
		if (sim_chance(s, 50))
			detach(s, c, slot, hold);
		else
			outlive(s, c, slot, hold);
		return;
	}
	if (s->phase >= PHASE_DRAIN)
		dice %= 30;
	else if (hold->transaction != 0 && sim_chance(s, 70))
		dice = 60;
	else if (sim_chance(s, s->plan.idle_percent))
		return;
	if (dice < 11 && release_both(s, c, slot))
		s->totals->released_both++;
	else if (dice < 22)
		ask_about(s, c, slot, hold, LOCKMGR_RELEASE);
	else if (dice < 30)
		sim_let_go(s, c, slot, hold->index);
	else if (dice < 42)
		ask_about(s, c, slot, hold, LOCKMGR_RENEW);
	else if (dice < 46)
		sim_end_session(s, c, slot);
	else
		step_transaction(s, c, slot, hold);
}

static void
work(sim *s, sim_cluster *c, int slot)
{
	sim_session *session = &c->sessions[slot];
	sim_hold   *hold = session->holds[1].used ? &session->holds[1] : &session->holds[0];
	int			lock = (int) sim_between(s, 0, s->plan.locks - 1);
	int64_t		dice = sim_between(s, 0, 99);

	if (s->plan.kind == KIND_HOT && hold->used)
		ask_about(s, c, slot, hold, LOCKMGR_RELEASE);
	else if (s->plan.kind == KIND_HOT && s->phase < PHASE_DRAIN)
		sim_post(s, c, slot, LOCKMGR_ACQUIRE, lock);
	else if (hold->used)
	{
		use_hold(s, c, slot, hold);
		if (session->me.generation != 0 && !session->waiting && s->phase < PHASE_DRAIN &&
			dice < 5 && session->holds[0].used != session->holds[1].used &&
			s->plan.locks > 1)
			sim_post(s, c, slot, sim_chance(s, 70) ? LOCKMGR_TRY : LOCKMGR_ACQUIRE,
					 ((session->holds[0].used ? session->holds[0] : session->holds[1]).lock +
					  1) % s->plan.locks);
	}
	else if (s->plan.leadership && join_leader(s, c, slot))
		;
	else if (s->plan.joins && use_named(s, c, slot))
		;
	else if (s->phase >= PHASE_DRAIN)
		;						/* no new work */
	else if (s->plan.queue && sim_queue_begin(s, c, slot))
		;
	else if (sim_chance(s, s->plan.several_percent))
		sim_announce(s, c, slot);
	else if (dice < 65)
		sim_post(s, c, slot, LOCKMGR_ACQUIRE, lock);
	else if (dice < 85)
		sim_post(s, c, slot, LOCKMGR_TRY, lock);
	else if (dice < 92)
		sim_post(s, c, slot, LOCKMGR_LOOK_UP, lock);
	else
		sim_end_session(s, c, slot);
}

/*
 * Ends and cancels more often while no worker reads the slots: races are there.
 */
static void
despair(sim *s, sim_cluster *c, int slot)
{
	bool		hasty = s->hasty || c->worker.lm == NULL || s->now < c->paused_until;

	if (sim_chance(s, hasty ? 30 : 5))
		sim_end_session(s, c, slot);
	else if (sim_chance(s, hasty ? 60 : 20))
		cancel(s, c, slot);
}

/* The session takes its next step. */
void
sim_step(sim *s, sim_cluster *c, int slot)
{
	sim_session *session = &c->sessions[slot];
	bool		restless = s->phase < PHASE_DRAIN;

	sim_check_asked(s, c, slot);
	/* Only a time-out ends a deadlock that involves several clusters. */
	restless |= session->waiting && (session->holds[0].used || session->holds[1].used) &&
		session->request.kind == LOCKMGR_ACQUIRE;
	if (sim_rests(s))
	{
		if (session->me.generation != 0)
			sim_end_session(s, c, slot);
		return;
	}
	if (session->me.generation == 0)
		sim_attach(s, c, slot);
	else if (sim_is_answered(c, session))
	{
		take_answer(s, c, session);
		sim_queue_answered(s, c, slot);
	}
	else if (!session->waiting && s->hasty && !session->holds[0].used && sim_chance(s, 30))
		sim_end_session(s, c, slot);
	else if (!session->waiting && sim_queue_step(s, c, slot))
		;
	else if (!session->waiting && session->announced.used)
		sim_claim(s, c, slot);
	else if (!session->waiting)
		work(s, c, slot);
	else if (restless && !(sim_queue_is_busy(c, slot) && sim_chance(s, 75)))
		despair(s, c, slot);
	step_again(s, c, slot);
}
