/*-------------------------------------------------------------------------
 *
 * sim_check.c
 *	  The promises I1 ... I9 of doc/internals/safety.md, checked against true time.
 *
 * The checks compare what sessions believe with what is true.  Sessions believe
 * the leases that the lock manager saves, as backends do.  What is true follows
 * from the requests that were sent and applied. sim_run.c checks I6 and
 * sim_table.c part of I7.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

/* Does a session of the cluster believe that it holds the lock? */
bool
sim_believes(const sim *s, const sim_cluster *c, int lock)
{
	const saved_lease *l;

	if (c->lease_of[lock] < 0)
		return false;
	l = &c->saved[c->lease_of[lock]].l;
	return l->state == LEASE_HELD && sim_local(s, c) < l->valid_until;
}

/* The permits that its sessions have, if they believe that they share the lock. */
static int32_t
permits_of(const sim *s, const sim_cluster *c, int lock)
{
	const sim_saved *saved = &c->saved[c->lease_of[lock]];
	int32_t		permits = 0;

	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		const saved_hold *h = &c->saved_holds[i].h;

		if (h->session.generation != 0 && h->lease_generation == saved->l.generation &&
			h->lease_index == (uint32_t) c->lease_of[lock])
			permits += h->permits;
	}
	return permits;
}

static bool
foreigner_believes(const sim *s, const sim_foreigner *f, int lock)
{
	return f->holds && f->lock == lock && s->now < f->valid_until;
}

/* Somebody has the lock at this moment, or has just changed it. */
void
sim_touch(sim *s, int lock, lock_mode mode)
{
	s->lock[lock].free_since = s->now;
	if (mode != MODE_SHARED)
		s->lock[lock].sharable_since = s->now;
}

/* A session waits for its request, or did until now. */
void
sim_wait(sim *s, const sim_cluster *c, const sim_session *session)
{
	if (session->request.kind > LOCKMGR_TRY)
		return;
	if (session->request.ask.mode != MODE_SHARED)
		s->lock[session->lock].sharable_since = s->now;
	if (session->request.ask.mode != MODE_EXCLUSIVE)
		c->shared_wait[session->lock] = s->now;
}

/* I1: no other client believes that it holds the lock now, unless they share it. */
static void
check_alone(sim *s, const sim_cluster *c, int lock)
{
	lock_mode	mode = c->saved[c->lease_of[lock]].l.mode;

	for (int i = 0; i < s->plan.clusters; i++)
	{
		const sim_cluster *other = &s->cluster[i];

		if (other != c && sim_believes(s, other, lock) &&
			(mode == MODE_EXCLUSIVE ||
			 other->saved[other->lease_of[lock]].l.mode != mode) &&
			!other->saved[other->lease_of[lock]].excused)
			sim_wrong(s, "I1: two holders of %s: clusters %d and %d",
					  s->lock[lock].name, c->number, i);
	}
	for (int i = 0; i < s->plan.foreigners; i++)
	{
		if (foreigner_believes(s, &s->foreigner[i], lock) && !s->foreigner[i].excused)
			sim_wrong(s, "I1: two holders of %s: cluster %d and %s",
					  s->lock[lock].name, c->number, s->foreigner[i].owner);
	}
}

/*
 * Does the write leave this cluster alone, which shares the lock?  One of its own
 * earlier incarnation does.  sim_check_entries() looks at the item.
 */
static bool
leaves_alone(sim *s, const sim_call *call, int which, const sim_cluster *c)
{
	const sim_nonce *nonce;

	if (call == NULL || !call->writes[which].shared)
		return false;
	nonce = sim_find_nonce(&s->nonces, call->writes[which].version);
	return call->writes[which].kind >= DYNAMO_SHARED_GATE ||
		((call->cluster != c->number || nonce->incarnation != c->incarnation) &&
		 call->writes[which].kind != DYNAMO_SHARED_OPEN &&
		 call->writes[which].kind != DYNAMO_SHARED_LAST);
}

/*
 * I1: while a client believes that it holds the lock, only its own renewal may
 * write the item, or others that share it.
 */
void
sim_check_overwrite(sim *s, int lock, const sim_call *call, int which)
{
	const char *what = call != NULL ? dynamo_op_name(call->writes[which].op) : "put";

	for (int i = 0; i < s->plan.clusters; i++)
	{
		const sim_cluster *c = &s->cluster[i];
		const sim_saved *saved;

		if (!sim_believes(s, c, lock))
			continue;
		saved = &c->saved[c->lease_of[lock]];
		if (saved->l.mode != MODE_EXCLUSIVE && leaves_alone(s, call, which, c))
			continue;
		if (!saved->excused &&
			(call == NULL || i != call->cluster ||
			 call->writes[which].op != DYNAMO_RENEW ||
			 strcmp(saved->l.pending.version, call->writes[which].version) != 0))
			sim_wrong(s, "I1: a %s while cluster %d believes in %s", what, i,
					  s->lock[lock].name);
	}
	for (int i = 0; i < s->plan.foreigners; i++)
	{
		if (foreigner_believes(s, &s->foreigner[i], lock) && !s->foreigner[i].excused)
			sim_wrong(s, "I1: a %s while %s believes in %s", what,
					  s->foreigner[i].owner, s->lock[lock].name);
	}
}

/*
 * I1: a write in shared mode has been applied.  Each cluster that believes has its entry,
 * with the permits of its sessions; and if permits were added, the total is within the
 * caller's limit.
 */
void
sim_check_entries(sim *s, int number, const sim_call *call, int which)
{
	const sim_lock *lock = &s->lock[number];
	int32_t		limit = call->writes[which].limit;
	dynamo_reply reply;
	const dynamo_result *result;

	if (lock->broken)
		return;
	sim_read_item(s, lock, &reply);
	result = &reply.results[0];
	if (limit > 0 && (result->shared == NULL || result->shared->total > limit))
		sim_wrong(s, "I1: cluster %d gets permits of %s beyond its limit of %d",
				  call->cluster, lock->name, limit);
	for (int i = 0; i < s->plan.clusters; i++)
	{
		const sim_cluster *c = &s->cluster[i];
		const dynamo_entry *entry = sim_entry_of(c, result);

		if (sim_believes(s, c, number) && !c->saved[c->lease_of[number]].excused &&
			(entry == NULL || entry->permits <
			 (c->saved[c->lease_of[number]].l.mode == MODE_SHARED ? 1 :
			  permits_of(s, c, number))))
			sim_wrong(s, "I1: cluster %d believes in permits of %s that it does not have",
					  i, lock->name);
	}
	dynamo_reply_free(&reply);
}

/*
 * I2: tokens rise in grant order; across a deletion, they rise if DynamoDB's
 * clock is past the last token.  So each token is at least the time of that
 * clock when it was reserved.  A shared lock's token is above all exclusive ones;
 * among those who share it there is no order.
 */
static void
check_token(sim *s, sim_lock *lock, int64_t reserved_at, int64_t token, bool exclusive)
{
	int64_t		ever_token = lock->ever[lock->ever[1] > lock->ever[0]];

	if (token <= (exclusive ? lock->last_token : lock->last_exclusive))
		sim_wrong(s, "I2: token %" PRId64 " of %s after %" PRId64, token, lock->name,
				  lock->last_token);
	if (token <= (exclusive ? ever_token : lock->ever[0]) &&
		reserved_at > ever_token)
		sim_wrong(s, "I2: token %" PRId64 " of %s after %" PRId64 ", long past", token,
				  lock->name, ever_token);
	if (token < reserved_at)
		sim_wrong(s, "I2: token %" PRId64 " of %s is below DynamoDB's time", token, lock->name);
	if (token > ever_token + 2 && token > SIM_EPOCH + s->now + 120 * MINUTE)
		sim_wrong(s, "I2: token %" PRId64 " of %s is of an absurd time", token, lock->name);
	if (token > lock->last_token)
		lock->last_token = token;
	if (exclusive)
		lock->last_exclusive = token;
}

static void
note_token(sim_lock *lock, int64_t token, bool exclusive)
{
	if (token > lock->ever[!exclusive])
		lock->ever[!exclusive] = token;
}

/* I2: the write that gave the item its version, or one before it, reserved the token. */
static void
check_reserved(sim *s, const sim_lock *lock, const saved_lease *l, int64_t token)
{
	if (strcmp(lock->version, l->version) == 0 &&
		(token < lock->first_token || token > lock->token))
		sim_wrong(s, "I2: token %" PRId64 " of %s was not reserved", token, lock->name);
}

/*
 * I1: permits go to a session only if they were granted within its limit, or a lower
 * one.
 */
static void
check_limit_of(sim *s, const sim_cluster *c, const saved_hold *h, const saved_lease *l)
{
	const sim_session *session = &c->sessions[h->session.slot];

	if (session->waiting && session->request.seq == h->seq &&
		session->me.generation == h->session.generation &&
		session->request.ask.limit < l->limit)
		sim_wrong(s, "I1: permits granted within %d go to a session with a limit of %d",
				  l->limit, session->request.ask.limit);
}

/* Is a gate in the item that nobody takes for dead? */
bool
sim_gate_lives(const sim *s, const sim_lock *lock)
{
	return lock->gate_of != SIM_NOBODY && s->now - lock->gate_at < lock->gate_lease_ms * 950;
}

/* I6: a write to share the lock, or to set a gate, has not got past a living gate. */
void
sim_check_gate(sim *s, int number, const sim_call *call, int which)
{
	const sim_lock *lock = &s->lock[number];
	dynamo_shared_kind kind = call->writes[which].kind;

	if ((kind <= DYNAMO_SHARED_REPLACE || kind == DYNAMO_SHARED_GATE ||
		 call->writes[which].limit > 0) &&
		lock->gate_of != call->cluster && sim_gate_lives(s, lock))
		sim_wrong(s, "I6: cluster %d gets past the gate of cluster %d in %s", call->cluster,
				  lock->gate_of, lock->name);
}

/*
 * Does a session that has the lock wait for another one, or did it when the worker read its request,
 * which it may have canceled since?  Then whoever it waits for may go first.
 */
static bool
holder_waits(const sim *s, const sim_cluster *c, int lock)
{
	for (int i = 0; i < s->plan.sessions; i++)
	{
		const sim_session *session = &c->sessions[i];

		for (int j = 0; j < SIM_HOLDS; j++)
		{
			if (session->holds[j].used && session->holds[j].lock == lock &&
				(session->waiting || (c->taken.session.slot == (uint32_t) i && c->taken.seq == session->request.seq)))
				return true;
		}
	}
	return false;
}

/* Has the worker just read that the session with this hold must go first? */
static bool
goes_first(const sim_cluster *c, const saved_hold *h)
{
	return c->taken.ask.goes_first && c->taken.seq == h->seq &&
		c->taken.session.slot == h->session.slot;
}

/*
 * I6: a cluster that has renewed its entry since another one's gate is in the item lets
 * in nobody else.
 */
static void
check_let_in(sim *s, const sim_cluster *c, const saved_hold *h)
{
	const sim_saved *saved = &c->saved[h->lease_index];
	const sim_lock *lock = &s->lock[saved->lock];
	int64_t		since = lock->gate_since > c->troubled_at ? lock->gate_since : c->troubled_at;

	if (lock->gate_of != c->number && sim_gate_lives(s, lock) && !lock->edited && !lock->broken &&
		!saved->excused &&
		s->now - since > saved->l.lease_ms * 1000 / 3 * 106 / 100 + SECOND &&
		!holder_waits(s, c, saved->lock) && !goes_first(c, h))
		sim_wrong(s, "I6: cluster %d shares %s for %" PRId64 " us after cluster %d has set a gate",
				  c->number, lock->name, s->now - lock->gate_since, lock->gate_of);
}

/* Is it no new grant: joined, or left to the cluster? */
static bool
is_added(const saved_hold *h)
{
	return h->joined || h->ends_at != 0;
}

/*
 * A session has ended, and a hold has outlived it, perhaps as a part of a detached one with
 * the same token.  Does it still stand, or have to?
 */
static void
check_outliving(sim *s, const sim_cluster *c, sim_detached *d)
{
	const saved_lease *l = &c->saved[d->name.lease].l;
	bool		stands = false;

	if (l->generation == d->name.generation && l->state == LEASE_HELD)
		d->valid_until = l->valid_until;
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		const saved_hold *h = &c->saved_holds[i].h;

		stands |= h->session.generation != 0 && h->lease_index == d->name.lease &&
			h->lease_generation == d->name.generation && h->token == d->name.token;
	}
	if (sim_local(s, c) >= d->valid_until || sim_local(s, c) >= d->until)
		d->used = false;
	else if (!stands)
		sim_wrong(s, "I1: a hold of %s in cluster %d, which outlives its session, has ended",
				  s->lock[d->name.lock].name, c->number);
}

/* I1: while somebody relies on a detached hold, it stands. */
void
sim_check_detached(sim *s, const sim_cluster *c)
{
	for (int i = 0; i < s->plan.sessions; i++)
	{
		sim_detached *d = &c->sessions[i].detached;
		const saved_hold *h = &c->saved_holds[d->index].h;

		if (d->used && d->outlives)
			check_outliving(s, c, d);
		else if (d->used && sim_local(s, c) < d->until &&
			(h->seq != d->seq || h->ends_at == 0 || h->token != d->name.token))
			sim_wrong(s, "I1: a detached hold of %s in cluster %d has ended",
					  s->lock[d->name.lock].name, c->number);
	}
}

/*
 * The session has taken its grant: nobody else is granted the lock for its minimum.  Who has
 * joined what was granted for an announced request may have ended that before.
 */
void
sim_promise(sim *s, const sim_cluster *c, const sim_session *session, const sim_hold *hold)
{
	sim_lock   *lock = &s->lock[hold->lock];

	if (session->request.ask.at_least_ms == 0 || hold->mode != MODE_EXCLUSIVE ||
		!sim_holds(s, c, hold) || c->saved[hold->lease].excused ||
		lock->ended_token == hold->token)
		return;
	s->totals->kept_grants++;
	lock->promised = c->saved[hold->lease].reserved_at + session->request.ask.at_least_ms * MS;
	lock->promised_token = hold->token;
}

/* A session with this token, which may be lost, does not want the rest of the minimum. */
void
sim_end_promise(sim_lock *lock, int64_t token)
{
	lock->ended_token = token;
	if (lock->promised_token == token)
		lock->promised = 0;
}

/*
 * I9: nobody was promised the lock for longer.  The Dates that this cluster has read
 * may be as wrong as those that the promise rests on.
 */
static void
check_promise(sim *s, const sim_cluster *c, const sim_lock *lock)
{
	int64_t		date = SIM_EPOCH + s->now + s->plan.date_error;

	if (date < lock->promised)
		sim_wrong(s, "I9: cluster %d grants %s %" PRId64 " us too early", c->number, lock->name,
				  lock->promised - date);
}

/* The lock manager has saved a new hold. */
void
sim_check_grant(sim *s, sim_cluster *c, uint32_t index)
{
	const saved_hold *h = &c->saved_holds[index].h;
	const sim_saved *saved = &c->saved[h->lease_index];
	sim_lock   *lock = &s->lock[saved->lock];

	sim_check_lead(s, c, h);
	s->totals->grants += !is_added(h);
	s->totals->joined += h->joined && h->ends_at == 0;
	s->totals->ahead += sim_is_announced(c, h);
	s->totals->detached += h->ends_at != 0;
	sim_check_detached(s, c);
	s->totals->shared_grants += h->mode == MODE_SHARED;
	s->totals->permit_grants += h->mode == MODE_SEMAPHORE;
	if (saved->l.state != LEASE_HELD || saved->l.generation != h->lease_generation)
	{
		sim_wrong(s, "I1: a hold on a lease that is not held");
		return;
	}
	if (saved->l.next_token != 0 && saved->l.next_token <= h->token)
		sim_wrong(s, "I2: token %" PRId64 " of %s is granted before it is saved as used",
				  h->token, lock->name);
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		const sim_saved *other = &c->saved[i];
		const saved_hold *beside = &c->saved_holds[i].h;

		if (i != h->lease_index && other->lock == saved->lock &&
			other->l.state == LEASE_HELD && sim_local(s, c) < other->l.valid_until)
			sim_wrong(s, "I1: two leases on %s in cluster %d", lock->name, c->number);
		if (i != index && h->mode == MODE_EXCLUSIVE && beside->session.generation != 0 &&
			beside->lease_index == h->lease_index &&
			beside->lease_generation == h->lease_generation &&
			(beside->token != h->token || !(is_added(h) || is_added(beside))))
			sim_wrong(s, "I1: two holds on %s in cluster %d", lock->name, c->number);
		if (h->joined && beside->session.generation != 0 && beside->lease_index == h->lease_index &&
			beside->lease_generation == h->lease_generation && beside->taker != h->taker)
			sim_wrong(s, "I1: role %u joins a hold of %s that role %u has taken", h->taker,
					  lock->name, beside->taker);
	}
	if (h->mode != saved->l.mode)
		sim_wrong(s, "I1: a hold on %s of another mode than its lease", lock->name);
	if (h->mode == MODE_SEMAPHORE)
		check_limit_of(s, c, h, &saved->l);
	if (h->mode == MODE_SEMAPHORE &&
		permits_of(s, c, saved->lock) > saved->l.permits)
		sim_wrong(s, "I1: cluster %d gives away permits of %s that it does not have",
				  c->number, lock->name);
	if (!saved->excused && !is_added(h))
	{
		check_promise(s, c, lock);
		check_token(s, lock, saved->reserved_at, h->token, h->mode == MODE_EXCLUSIVE);
		if (h->mode == MODE_EXCLUSIVE)
			check_reserved(s, lock, &saved->l, h->token);
	}
	note_token(lock, h->token, h->mode == MODE_EXCLUSIVE);
	if (h->mode != MODE_EXCLUSIVE)
		check_let_in(s, c, h);
}

/* I1: the sessions that believe have no more permits than one of them allows. */
static void
check_limit(sim *s, int lock)
{
	int32_t		permits = 0;
	int32_t		limit = 0;

	for (int i = 0; i < s->plan.clusters * s->plan.sessions; i++)
	{
		const sim_cluster *c = &s->cluster[i / s->plan.sessions];

		for (int j = 0; j < SIM_HOLDS; j++)
		{
			const sim_hold *hold = &c->sessions[i % s->plan.sessions].holds[j];

			if (hold->lock != lock || !sim_holds(s, c, hold) || c->saved[hold->lease].excused)
				continue;
			permits += hold->permits;
			if (hold->limit > limit)
				limit = hold->limit;
		}
	}
	if (permits > limit)
		sim_wrong(s, "I1: sessions believe in %d permits of %s, the limit is %d", permits,
				  s->lock[lock].name, limit);
}

/* I1: a session has read its answer; no other one of its cluster believes, or they share. */
void
sim_check_alone(sim *s, const sim_cluster *c, int slot, const sim_hold *hold)
{
	if (!sim_holds(s, c, hold))
		return;
	/* If it is excused, the others may even share the lock in another mode. */
	if (hold->mode == MODE_SEMAPHORE && !c->saved[hold->lease].excused)
		check_limit(s, hold->lock);
	for (int i = 0; i < s->plan.sessions; i++)
	{
		for (int j = 0; j < SIM_HOLDS; j++)
		{
			const sim_hold *other = &c->sessions[i].holds[j];

			if (i != slot && other->lock == hold->lock && sim_holds(s, c, other) &&
				(hold->mode == MODE_EXCLUSIVE || other->mode != hold->mode) &&
				other->token != hold->token)
				sim_wrong(s, "I1: sessions %d and %d of cluster %d believe in %s", i, slot,
						  c->number, s->lock[hold->lock].name);
		}
	}
}

/* The deadline of a lease that this write confirms, by the cluster's clock. */
static int64_t
deadline_of(const sim_nonce *nonce)
{
	return nonce->first_sent + nonce->lease_ms * 900;
}

/* I3: belief ends no later than the deadline of a write that may be applied. */
static void
check_deadline(sim *s, const sim_nonce *nonce, const saved_lease *l)
{
	if (l->state == LEASE_HELD && l->valid_until > deadline_of(nonce))
		sim_wrong(s, "I3: belief outlives the deadline of %s by %" PRId64 " us",
				  dynamo_op_name(nonce->op), l->valid_until - deadline_of(nonce));
}

/* The lock manager saved a lease. */
void
sim_check_saved(sim *s, sim_cluster *c, uint32_t index, bool held_anew)
{
	sim_saved  *saved = &c->saved[index];
	const saved_lease *l = &saved->l;
	sim_nonce  *nonce = l->state != LEASE_FREE && l->version[0] != '\0' ?
		sim_find_nonce(&s->nonces, l->version) : NULL;

	if (l->state != LEASE_HELD && l->valid_until != 0)
		sim_wrong(s, "I3: belief in a lease of state %d", (int) l->state);
	if (nonce == NULL)
	{
		if (l->state == LEASE_HELD)
			sim_wrong(s, "I8: held under a version that nobody wrote");
		return;
	}
	if (!nonce->applied)
		sim_wrong(s, "I8: %s counts as done, but was not applied",
				  dynamo_op_name(nonce->op));
	if (nonce->op != DYNAMO_RENEW)
		saved->reserved_at = nonce->epoch;
	saved->excused = nonce->excused && (saved->excused || held_anew);
	if (l->state != LEASE_HELD)
		return;
	nonce->late = false;		/* its manager knows that it was applied */
	check_deadline(s, nonce, l);
	if (!saved->excused && sim_local(s, c) < l->valid_until)
		check_alone(s, c, saved->lock);
}

/* The lease with which the write of that lock was saved, or NULL. */
static const sim_saved *
saved_with(const sim *s, const sim_cluster *c, int lock, const char *version)
{
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		if (c->saved[i].lock == lock && c->saved[i].l.state != LEASE_FREE &&
			strcmp(c->saved[i].l.pending.version, version) == 0)
			return &c->saved[i];
	}
	return NULL;
}

/* Does the cluster bar an acquire of that lock?  Then it releases what has arrived. */
static bool
is_barring(const sim *s, const sim_cluster *c, int lock)
{
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		if (c->saved[i].lock == lock && c->saved[i].l.state == LEASE_BARRING)
			return true;
	}
	return false;
}

/*
 * A write is sent.  It must be saved before: the next worker may have to repeat
 * it.
 */
void
sim_check_send(sim *s, sim_cluster *c, const dynamo_write *write)
{
	int			lock = sim_lock_number(s, write->name, write->name_len);
	sim_nonce  *nonce = sim_find_nonce(&s->nonces, write->version);
	const sim_saved *saved = saved_with(s, c, lock, write->version);
	int64_t		now = sim_local(s, c);

	if (write->shared != NULL && write->shared->kind >= DYNAMO_SHARED_GATE)
		return;					/* it is lost with the worker, and dies */
	if (write->op == DYNAMO_DELETE || write->op == DYNAMO_MARK)
		return;					/* it is lost with the worker */
	if (nonce == NULL || saved == NULL)
	{
		sim_wrong(s, "I5: %s was sent without being saved", dynamo_op_name(write->op));
		return;
	}
	if (write->lease_ms <= 0 && write->op != DYNAMO_RELEASE)
		sim_wrong(s, "I7: %s without a lease", dynamo_op_name(write->op));
	if (write->op == DYNAMO_RELEASE && saved->l.state == LEASE_LOST &&
		now < saved->lost_until && now < saved->l.lease_end)
		sim_wrong(s, "I4: released before the session knew that it was lost");
	if (write->op == DYNAMO_RENEW)
		check_deadline(s, nonce, &saved->l);
}

/*
 * I5: if the item names this cluster as the owner, the cluster has a lease for
 * that version.  Exceptions: a late or second copy wrote the version, or its
 * lease is over.
 */
void
sim_check_known(sim *s, const sim_cluster *c, int number)
{
	const sim_lock *lock = &s->lock[number];
	const saved_lease *l = c->lease_of[number] >= 0 ? &c->saved[c->lease_of[number]].l : NULL;

	if (!lock->exists || lock->released || lock->owner != c->number ||
		lock->incarnation != c->incarnation || lock->edited || lock->written_late ||
		s->now >= lock->lease_end || is_barring(s, c, number))
		return;
	if (l != NULL &&
		(strcmp(l->version, lock->version) == 0 ||
		 strcmp(l->pending.version, lock->version) == 0 ||
		 strcmp(l->pending.expected, lock->version) == 0 ||
		 strcmp(l->stray, lock->version) == 0))
		return;
	sim_wrong(s, "I5: no lease of the owner of %s has the item's version %s", lock->name, lock->version);
}

/* Does somebody else in the cluster have the same hold, joined or detached? */
static bool
is_held_besides(const sim *s, const sim_cluster *c, const sim_hold *hold)
{
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		const saved_hold *h = &c->saved_holds[i].h;

		if (h->session.generation != 0 && h->token == hold->token &&
			h->lease_index == hold->lease && h->lease_generation == hold->generation)
			return true;
	}
	return false;
}

/*
 * A hold has ended.  If somebody else had it then, the lock has passed on, and nothing is to be
 * confirmed to the session; it may wait for its other locks while that one lets go as well.
 */
void
sim_hold_ended(const sim *s, sim_cluster *c, uint32_t index, const saved_hold *ended)
{
	sim_session *session = &c->sessions[ended->session.slot];

	for (int i = 0; i < SIM_HOLDS; i++)
	{
		sim_hold   *hold = &session->holds[i];

		if (hold->used && hold->index == index && hold->seq == ended->seq)
			hold->passed_on = is_held_besides(s, c, hold);
	}
}

/* Is the release to be confirmed to somebody else, after a worker's death? */
static bool
is_confirmed_to_another(const sim *s, const sim_cluster *c, const sim_hold *hold)
{
	for (int i = 0; i < s->plan.sessions; i++)
	{
		for (int j = 0; j < SIM_HOLDS; j++)
		{
			const sim_hold *other = &c->sessions[i].holds[j];

			if (other != hold && other->used && other->given_up && other->token == hold->token &&
				other->lease == hold->lease)
				return true;
		}
	}
	return false;
}

/*
 * I8: after a confirmed release, the item does not show the lock as held.  If
 * the item has been deleted since, a late copy of the acquire may create it
 * again.
 */
static void
check_released(sim *s, const sim_cluster *c, const sim_session *session)
{
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		const sim_hold *hold = &session->holds[i];
		const sim_lock *lock = &s->lock[hold->lock];

		if (hold->used && hold->given_up && (session->request.all_count == 0 || !hold->lost) &&
			!hold->passed_on && !is_confirmed_to_another(s, c, hold) &&
			lock->exists && !lock->released && !lock->edited &&
			lock->owner == c->number && lock->incarnation == c->incarnation &&
			lock->first_token <= hold->token && hold->token <= lock->token &&
			lock->last_token == hold->token)
			sim_wrong(s, "I8: reported as released, but the item is held");
	}
}

/*
 * In a hot run: counts how long a cluster or a foreign client has waited for
 * others.  The wait begins with the request, or when this cluster last had the
 * lock, if that is later.  With two clusters, each waits for the other's run of
 * hand-overs, or, if clusters share, until they have learnt of its gate.  With more
 * clusters or foreign clients, chance decides who finds the lock free first, so the
 * wait has no bound; unless one cluster wants the lock exclusively and the others
 * share it.
 */
void
sim_check_turn(sim *s, int64_t since, sim_turn whose)
{
	sim_totals *t = s->totals;
	int64_t		turn = s->now - since;
	int64_t		bound = whose == TURN_CLUSTER ? 3 * SECOND : 2 * s->plan.lease_min_ms * MS;

	if (s->plan.eager)
		bound += 3 * s->plan.step;	/* until it has marked the item; the rest; a run */

	if (s->plan.kind != KIND_HOT || s->phase >= PHASE_DRAIN)
		return;
	t->hot_grants++;
	if (whose != TURN_FOREIGNER && turn < 2 * s->plan.hop + MS)
		return;					/* handed over, or the lock was free */
	t->turns[whose]++;
	t->turn_us[whose] += (uint64_t) turn;
	if (turn > t->longest_turn[whose])
		t->longest_turn[whose] = turn;
	if ((s->plan.clusters == 2 || s->plan.one_exclusive) && s->plan.foreigners == 0 &&
		turn > bound)
		sim_wrong(s, "I5: a cluster's turn comes after %" PRId64 " us", turn);
}

/* May a session get this answer when there are no faults? */
static bool
plain(const lockmgr_answer *answer)
{
	return answer->kind > LOCKMGR_TRY || answer->result == LOCKMGR_GRANTED ||
		answer->result == LOCKMGR_BUSY || answer->result == LOCKMGR_NO_ROOM ||
		answer->result == LOCKMGR_DEADLOCK;
}

/* A session gets an answer, and still waits for it. */
void
sim_check_answer(sim *s, sim_cluster *c, const lockmgr_answer *answer)
{
	const sim_session *session = &c->sessions[answer->session.slot];

	if (answer->result == LOCKMGR_GRANTED && !c->adopting &&
		sim_local(s, c) >= answer->grant.valid_until)
		sim_wrong(s, "I3: granted, but already over");
	if (answer->result == LOCKMGR_RELEASED)
		check_released(s, c, session);
	if (answer->result == LOCKMGR_FAILED &&
		(answer->status == DYNAMO_OK || answer->status == DYNAMO_ACCESS_DENIED ||
		 answer->status == DYNAMO_VALIDATION || s->phase >= PHASE_DRAIN))
		sim_wrong(s, "I8: failed without a fault, status %d", (int) answer->status);
	if (answer->result == LOCKMGR_BAD_ITEM && !s->plan.operator)
		sim_wrong(s, "I8: an item is reported as unusable");
	else if (s->phase >= PHASE_DRAIN && !plain(answer))
		sim_wrong(s, "I6: result %d without a fault", (int) answer->result);
}

/* Has a copy that was sent before the item was deleted made it again? */
static bool
came_back(sim *s, const sim_lock *lock)
{
	const sim_nonce *nonce = sim_find_nonce(&s->nonces, lock->version);

	return nonce != NULL && nonce->first_sent_true <= lock->erased_at;
}

/*
 * I8: if a loss is reported as "taken", the cluster's version is gone, or has come back
 * while the reply was under way.
 */
void
sim_check_lost(sim *s, const sim_cluster *c, uint32_t index)
{
	const saved_hold *h = &c->saved_holds[index].h;
	const sim_saved *saved = &c->saved[h->lease_index];
	const sim_lock *lock = &s->lock[saved->lock];
	bool		seen = h->loss != LOSS_UNREACHABLE && h->loss != LOSS_STOOD_STILL;

	if (h->loss == LOSS_AT_MOST)
	{
		if (h->must_end == 0 || sim_local(s, c) < h->must_end)
			sim_wrong(s, "I8: %s is lost before its limit", lock->name);
		return;
	}
	if (saved->l.state != LEASE_LOST || h->loss == LOSS_NONE)
		sim_wrong(s, "I8: lost, but not saved as lost");
	if (h->loss == LOSS_RESIGNED)
		return;
	if (seen && lock->exists && !lock->released &&
		!lock->edited && !came_back(s, lock) &&
		(strcmp(lock->version, saved->l.version) == 0 ||
		 strcmp(lock->version, saved->l.pending.version) == 0))
		sim_wrong(s, "I8: %s is reported as taken, but is not", lock->name);
	if (seen && h->mode != MODE_EXCLUSIVE)
	{
		dynamo_reply reply;
		const dynamo_entry *entry;
		const sim_nonce *nonce;

		sim_read_item(s, lock, &reply);
		entry = sim_entry_of(c, &reply.results[0]);
		nonce = entry != NULL ? sim_find_nonce(&s->nonces, entry->version) : NULL;
		if (nonce != NULL && strcmp(reply.results[0].item.owner, saved->l.epoch) == 0 &&
			(nonce->op == DYNAMO_RENEW || strcmp(entry->version, saved->l.version) == 0))
			sim_wrong(s, "I8: the entry in %s is reported as gone, but is not", lock->name);
		dynamo_reply_free(&reply);
	}
}

/* Are the permits that the mark in the item wants free? */
static bool
has_room(sim *s, const sim_lock *lock)
{
	dynamo_reply reply;
	const dynamo_shared *shared;
	int64_t		total;

	sim_read_item(s, lock, &reply);
	shared = reply.results[0].shared;
	total = shared != NULL && shared->current ? shared->total : 0;
	dynamo_reply_free(&reply);
	return total + lock->mark_permits <= lock->mark_limit;
}

/*
 * A mark has been written.  I7: on a held item.
 */
void
sim_marked(sim *s, int number, const sim_call *call, int which)
{
	sim_lock   *lock = &s->lock[number];

	if (lock->released)
		sim_wrong(s, "I7: cluster %d marks %s, which is released", call->cluster, lock->name);
	s->totals->marks++;
	lock->mark_of = call->cluster;
	lock->mark_at = s->now;
	lock->mark_until_ms = call->writes[which].wanted_until_ms;
	lock->mark_poll_ms = call->writes[which].wanted_poll_ms;
	lock->mark_permits = call->writes[which].wanted_permits;
	lock->mark_limit = call->writes[which].wanted_limit;
	lock->room_at = lock->room_since = has_room(s, lock) ? s->now : 0;
	memset(lock->told_at, 0, sizeof(lock->told_at));
}

/* Does a session of the cluster wait for the lock, and did so at that time? */
static bool
waits_since(const sim *s, const sim_cluster *c, int number, int64_t since)
{
	for (int i = 0; i < s->plan.sessions; i++)
	{
		const sim_session *session = &c->sessions[i];

		if (session->waiting && session->request.kind == LOCKMGR_ACQUIRE &&
			session->lock == number && session->asked_at < since && !sim_is_answered(c, session))
			return true;
	}
	return false;
}

/* Does a session of the cluster that has marked the item still wait for it? */
static bool
marker_waits(const sim *s, const sim_lock *lock, int number)
{
	return waits_since(s, &s->cluster[lock->mark_of], number, lock->mark_at);
}

/* Has another cluster taken permits since this one was shown how many are out? */
static bool
others_took(const sim *s, const sim_cluster *c, const sim_lock *lock)
{
	for (int i = 0; i < s->plan.clusters; i++)
	{
		if (i != c->number && lock->taken_at[i] > lock->shown_at[c->number])
			return true;
	}
	return false;
}

/*
 * The cluster has taken permits that the mark wants, and had seen it.  I6: it does not, as long as they
 * are not free, and then for two polls of the other cluster, and a while.  Without faults, that one has
 * them first.  What is left beside the mark, two clusters may take at once, and are too many together.
 */
static void
check_taken(sim *s, const sim_cluster *c, sim_lock *lock, int number)
{
	int64_t		told_at = lock->told_at[c->number];
	int64_t		stay = 2 * lock->mark_poll_ms * MS + SECOND / 10;
	int64_t		least = (stay < SECOND ? stay : SECOND) * 90 / 100;

	s->totals->taken_after_marks++;
	/* It may have seen that they were free before this was judged, and paused. */
	if (lock->room_at == 0 || s->now - lock->room_at < least)
		sim_wrong(s, "I6: cluster %d takes permits of %s %" PRId64 " us after it has seen that cluster %d"
				  " waits for %d of %d", c->number, lock->name, s->now - told_at, lock->mark_of,
				  lock->mark_permits, lock->mark_limit);
	if (s->plan.permits && s->phase < PHASE_DRAIN && stay < SECOND && lock->room_since != 0 &&
		s->now - lock->room_since >= least && marker_waits(s, lock, number))
		sim_wrong(s, "I6: cluster %d takes permits of %s before cluster %d, which waits for %d of %d",
				  c->number, lock->name, lock->mark_of, lock->mark_permits, lock->mark_limit);
}

/* A write in shared mode was applied, perhaps to an item with a mark for permits: see check_taken(). */
void
sim_check_permits(sim *s, int number, const sim_call *call, int which)
{
	sim_lock   *lock = &s->lock[number];
	const sim_cluster *c = &s->cluster[call->cluster];
	dynamo_shared_kind kind = call->writes[which].kind;
	bool		takes = call->writes[which].limit > 0;
	bool		shows = kind != DYNAMO_SHARED_OPEN && kind != DYNAMO_SHARED_FORCE_RELEASE;
	int64_t		doubt_ms = (3 * SECOND + s->plan.date_error) / MS;
	int64_t		left_ms = lock->mark_until_ms - (SIM_EPOCH + s->now) / MS;
	bool		judged = !lock->written_late && !is_barring(s, c, number) && left_ms > doubt_ms;
	bool		told = lock->told_at[c->number] != 0 && c->life == lock->told_life[c->number] &&
		c->troubled_at < lock->told_at[c->number];
	bool		room;

	if (takes)
		lock->taken_at[c->number] = s->now;
	if (lock->mark_of == SIM_NOBODY || lock->mark_limit == 0)
		return;
	room = has_room(s, lock);
	if (takes && told && judged && !room && call->writes[which].freed == 0 && !others_took(s, c, lock))
		check_taken(s, c, lock, number);
	if (shows)
		lock->shown_at[c->number] = s->now;
	if (room && lock->room_at == 0)
		lock->room_at = s->now;
	lock->room_since = !room ? 0 : lock->room_since != 0 ? lock->room_since : s->now;
	if (takes && call->writes[which].unmark)
	{
		for (int i = 0; i < s->plan.clusters; i++)
			s->totals->left_to_marks += lock->told_at[i] != 0 && lock->told_at[i] < s->now &&
				waits_since(s, &s->cluster[i], number, s->now);
		if (kind == DYNAMO_SHARED_CHANGE)
			lock->mark_of = SIM_NOBODY; /* else sim_check_heard() does that */
	}
	else if (shows && !s->plan.stands_still && s->plan.locks <= 2 && call->id < SIM_JOURNAL_CALL &&
			 lock->mark_of != c->number && !told && judged && left_ms < 15000 - doubt_ms)
	{
		s->totals->heard++;
		lock->told_at[c->number] = s->now;
		lock->told_life[c->number] = c->life;
	}
}

/*
 * A release was applied, and not of what is left of the dead, or has arrived late.  By any clock
 * of a machine that never stood still, is there another cluster's mark in the item that counts?
 */
void
sim_heard(sim *s, int number, const sim_call *call)
{
	sim_lock   *lock = &s->lock[number];
	int64_t		date_ms = (SIM_EPOCH + s->now) / MS;
	int64_t		doubt_ms = (3 * SECOND + s->plan.date_error) / MS;

	lock->heard_by = SIM_NOBODY;
	if (s->plan.stands_still || s->plan.locks > 2 || call->id >= SIM_JOURNAL_CALL ||
		lock->mark_of == SIM_NOBODY || lock->mark_of == call->cluster ||
		lock->mark_until_ms > date_ms + 15000 + doubt_ms ||
		lock->stayed_ms[call->cluster] == lock->mark_until_ms)
		return;
	/* It stays back once for each mark; perhaps it does now. */
	lock->stayed_ms[call->cluster] = lock->mark_until_ms;
	if (lock->written_late || is_barring(s, &s->cluster[call->cluster], number) ||
		lock->mark_until_ms < date_ms + doubt_ms ||
		lock->mark_until_ms > date_ms + 15000 - doubt_ms)
		return;
	s->totals->heard++;
	lock->heard_by = call->cluster;
	lock->heard_life = s->cluster[call->cluster].life;
	lock->heard_at = s->now;
}

/*
 * I6: whoever has released the lock, with another cluster's mark in its item, stays back for two
 * polls of that cluster, and a while.  Without faults, that cluster has the lock first.
 */
void
sim_check_heard(sim *s, int number, const sim_call *call, int which)
{
	sim_lock   *lock = &s->lock[number];
	const sim_cluster *c = &s->cluster[call->cluster];
	int64_t		stay = 2 * lock->mark_poll_ms * MS + SECOND / 10;

	if (lock->heard_by == call->cluster && !lock->written_late && c->life == lock->heard_life &&
		c->troubled_at < lock->heard_at)
	{
		if (s->now - lock->heard_at < (stay < SECOND ? stay : SECOND) * 90 / 100)
			sim_wrong(s, "I6: cluster %d takes %s again after %" PRId64 " us, although cluster %d "
					  "has marked it", c->number, lock->name, s->now - lock->heard_at,
					  lock->mark_of);
		if (s->plan.kind == KIND_HOT && stay < SECOND && lock->kept_until_ms == 0 &&
			marker_waits(s, lock, number))
			sim_wrong(s, "I6: cluster %d takes %s again before cluster %d, which has marked it",
					  c->number, lock->name, lock->mark_of);
	}
	lock->heard_by = SIM_NOBODY;
	for (int i = 0; i < SIM_CLUSTERS; i++)
	{
		if (i != call->cluster)
			lock->stayed_ms[i] = 0;
	}
	if (call->writes[which].unmark)
		lock->mark_of = SIM_NOBODY;
}

/*
 * Is the hold's token high enough, after the tokens of an exclusive and of a shared
 * holder?  Those who share have no order among them.
 */
bool
sim_passes_fence(const int64_t tokens[2], const sim_hold *hold)
{
	if (hold->mode == MODE_EXCLUSIVE)
		return hold->token >= tokens[MODE_EXCLUSIVE] && hold->token > tokens[MODE_SHARED];
	return hold->token > tokens[MODE_EXCLUSIVE];
}

/* I4: no commit under a lower token than an older one. */
void
sim_check_commit(sim *s, const sim_cluster *c, const sim_hold *hold)
{
	sim_lock   *lock = &s->lock[hold->lock];

	if (!sim_passes_fence(lock->committed, hold))
		sim_wrong(s, "I4: cluster %d commits %s under token %" PRId64 " after %" PRId64
				  " and %" PRId64, c->number, lock->name, hold->token,
				  lock->committed[MODE_EXCLUSIVE], lock->committed[MODE_SHARED]);
	if (hold->token > lock->committed[hold->mode])
		lock->committed[hold->mode] = hold->token;
}

/*
 * The bound of I5: two leases by the slowest clock, one poll, a stale poll that
 * restarted the count, and time for requests that time out.
 */
int64_t
sim_patience(const sim *s)
{
	return 2 * s->plan.lease_max_ms * MS * 108 / 100 + s->plan.poll_interval_us +
		SECOND + 3 * SECOND + sim_keep_patience(s);
}

/*
 * If sessions ask for a minimum: how much longer a lock may be kept, by clocks that are
 * uncertain, and a look at a lock that is kept.
 */
int64_t
sim_keep_patience(const sim *s)
{
	return s->plan.keep_percent == 0 ? 0 :
		s->plan.keep_max_ms * MS * 112 / 100 + 14 * SECOND;
}

/* I6: a living worker knows every request. */
void
sim_check_asked(sim *s, const sim_cluster *c, int slot)
{
	const sim_session *session = &c->sessions[slot];
	int64_t		since = session->asked_at;

	if (since < c->troubled_at)
		since = c->troubled_at;
	if (session->waiting && c->worker.lm != NULL && s->now - since > SECOND / 10 &&
		c->owed[slot] != session->request.seq && !sim_is_answered(c, session))
		sim_wrong(s, "I6: the worker has not asked for request %" PRIu64 " of slot %d",
				  session->request.seq, slot);
}

static int64_t
later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/*
 * I6: who waits for an exclusive lock that others share has a gate: its own, which
 * nobody takes for dead, or another waiter's.  The first in its cluster's queue sees to
 * that; this one is, or who is wants the same.
 */
static void
check_has_gate(sim *s, const sim_cluster *c, const sim_session *session)
{
	const sim_lock *lock = &s->lock[session->lock];
	int64_t		since = later(session->asked_at, c->shared_wait[session->lock]);
	int64_t		look = s->plan.poll_interval_us * 106 / 100 + SECOND;
	int64_t		life = lock->gate_of == c->number ? lock->gate_lease_ms * 970 :
		lock->gate_lease_ms * 1080 + look;
	int64_t		time = s->plan.lease_max_ms * 1080 + look;

	since = later(later(since, lock->shared_since), later(c->troubled_at, lock->late_at));
	since = later(since, c->had[session->lock]);
	if (session->request.ask.mode != MODE_EXCLUSIVE || c->lease_of[session->lock] >= 0 ||
		!lock->exists || !lock->shared || lock->released || lock->edited ||
		s->now - since < time)
		return;
	if (lock->gate_of == SIM_NOBODY || s->now - lock->gate_at > life)
		sim_wrong(s, "I6: cluster %d waits for those who share %s, without a gate", c->number,
				  lock->name);
}

static void
check_waiter(sim *s, const sim_cluster *c, int slot)
{
	const sim_session *session = &c->sessions[slot];
	const sim_lock *lock = &s->lock[session->lock];
	int64_t		since = session->asked_at;

	if (!session->waiting || session->request.kind != LOCKMGR_ACQUIRE ||
		sim_is_answered(c, session) || lock->broken)
		return;
	check_has_gate(s, c, session);
	since = later(later(since, c->troubled_at), lock->late_at);
	since = later(since, session->request.ask.mode == MODE_SHARED ? lock->sharable_since :
				  lock->free_since);
	if (s->now - since > sim_patience(s))
		sim_wrong(s, "I5: nobody has %s or waits for it otherwise, and session %d of cluster "
				  "%d does not get it", lock->name, slot, c->number);
}

/*
 * Does a session have this hold, or wait for the answer that grants it?  Or has a session
 * of the slot detached it, and been told?  Then it ends by its token or its time.
 */
static bool
is_known(const sim *s, const sim_cluster *c, uint32_t index)
{
	const saved_hold *h = &c->saved_holds[index].h;
	const sim_session *session = &c->sessions[h->session.slot];

	if (h->leadership)
		return sim_leadership_knows(s, c, h);
	if (h->ends_at != 0 && session->detached.index == index && session->detached.seq == h->seq)
		return true;
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		if (session->holds[i].used && session->holds[i].index == index &&
			session->holds[i].seq == h->seq)
			return true;
	}
	return (session->waiting && session->request.seq == h->seq) || sim_is_announced(c, h) ||
		sim_queue_has(c, index);
}

/* I5: no lock is kept for a session that does not know of it. */
static void
check_known(sim *s, const sim_cluster *c, uint32_t index)
{
	sim_saved_hold *saved = &c->saved_holds[index];
	int64_t		since = saved->unknown_since;

	if (since < c->paused_until)
		since = c->paused_until;
	if (saved->h.session.generation == 0 || saved->h.loss != LOSS_NONE || is_known(s, c, index))
		saved->unknown_since = 0;
	else if (saved->unknown_since == 0)
		saved->unknown_since = s->now;
	else if (s->now - since > SECOND / 2)
		sim_wrong(s, "I5: cluster %d keeps hold %u, request %" PRIu64 " of session %u, "
				  "which does not know of it", c->number, index, saved->h.seq,
				  saved->h.session.slot);
}

/*
 * I5: a session does not wait for long if nobody holds the lock; nor if it would share
 * the lock, and nobody has that otherwise, or waits for it otherwise.
 */
void
sim_audit(sim *s)
{
	sim_schedule(s, (sim_event) {
		.at = s->now + s->plan.lease_max_ms * MS / 2,.kind = SIM_AUDIT,
	});
	for (int i = 0; i < s->plan.locks; i++)
	{
		for (int c = 0; c < s->plan.clusters; c++)
		{
			const sim_cluster *cluster = &s->cluster[c];

			if (sim_believes(s, cluster, i))
				sim_touch(s, i, cluster->saved[cluster->lease_of[i]].l.mode);
		}
		for (int f = 0; f < s->plan.foreigners; f++)
		{
			if (foreigner_believes(s, &s->foreigner[f], i))
				sim_touch(s, i, MODE_EXCLUSIVE);
		}
	}
	for (int i = 0; i < s->plan.clusters * s->plan.sessions; i++)
	{
		const sim_cluster *c = &s->cluster[i / s->plan.sessions];

		if (c->sessions[i % s->plan.sessions].waiting)
			sim_wait(s, c, &c->sessions[i % s->plan.sessions]);
	}
	for (int i = 0; i < s->plan.clusters; i++)
	{
		if (sim_stands(s, &s->cluster[i]))	/* it waits for the exclusive lock */
			s->lock[sim_leadership_lock(s)].sharable_since = s->now;
	}
	for (int i = 0; i < s->plan.clusters; i++)
	{
		const sim_cluster *c = &s->cluster[i];

		for (int j = 0; j < s->plan.sessions && c->worker.lm != NULL; j++)
			check_waiter(s, c, j);
		for (uint32_t j = 0; j < s->plan.max_leases && c->worker.lm != NULL; j++)
			check_known(s, c, j);
		sim_check_detached(s, c);
		sim_check_standing(s, c);
	}
	if (!sim_chance(s, 10))
		return;
	sim_check_table(s);
	sim_check_queue(s);
}

/* The lock's item is held until the lease is over: see sim_nonce. */
void
sim_runs_out(sim *s, const saved_lease *l)
{
	const char *const versions[] = {l->version, l->pending.version, l->stray};

	for (int i = 0; i < 3; i++)
	{
		sim_nonce  *nonce = sim_find_nonce(&s->nonces, versions[i]);

		if (nonce != NULL)
			nonce->runs_out = true;
	}
}

/*
 * An item, or an entry in it, has this version, but nobody has the lock.  Exceptions: the
 * lease of a detached lock runs out; somebody has deleted the item since, and with it the
 * token that kept late copies out; nobody could release it for 15 minutes after its
 * lease was over; or the network has doubled an answered request, as no TLS connection does.
 */
static void
check_left(sim *s, const sim_lock *lock, const char *version)
{
	const sim_nonce *nonce = sim_find_nonce(&s->nonces, version);

	if (nonce == NULL)
		sim_wrong(s, "I5: %s is held under a version that nobody wrote", lock->name);
	else if (!nonce->runs_out && !nonce->twin && nonce->first_sent_true > lock->erased_at &&
			 (nonce->late ||
			  s->quiet_since < nonce->first_sent_true + nonce->lease_ms * 950 + SIGNATURE))
		sim_wrong(s, "I5: %s is held for nobody, since %s %s of cluster %d has arrived%s",
				  lock->name, nonce->op == DYNAMO_ACQUIRE ? "an" : "a", dynamo_op_name(nonce->op),
				  nonce->cluster, nonce->late ? " late" : "");
}

/*
 * Nobody has the lock, unless foreign clients or the operator say so: is its item held?
 */
static void
check_not_held(sim *s, const sim_lock *lock)
{
	dynamo_reply reply;
	const dynamo_shared *shared;

	if (!lock->exists || lock->released || lock->edited)
		return;
	if (!lock->shared)
	{
		if (lock->owner != SIM_NOBODY)
			check_left(s, lock, lock->version);
		return;
	}
	sim_read_item(s, lock, &reply);
	shared = reply.results[0].shared;
	for (int i = 0; shared != NULL && i < shared->count; i++)
		check_left(s, lock, shared->entries[i].version);
	dynamo_reply_free(&reply);
}

/* All sessions have ended: no lease, waiter or held item may be left. */
void
sim_check_nothing_left(sim *s)
{
	for (int i = 0; i < s->plan.clusters; i++)
	{
		const sim_cluster *c = &s->cluster[i];
		lockmgr_counts counts;

		lockmgr_count(c->worker.lm, &counts);
		if (counts.leases + counts.held + counts.waiters + counts.calls > 0)
			sim_wrong(s, "I5: cluster %d still has %u leases, %u waiters, %u calls", i,
					  counts.leases, counts.waiters, counts.calls);
		if (counts.remembered > 2)
			sim_wrong(s, "%u locks are remembered", counts.remembered);
		for (uint32_t l = 0; l < s->plan.max_leases; l++)
		{
			if (c->saved[l].l.state != LEASE_FREE)
				sim_wrong(s, "I5: lease %u is still saved", l);
			if (c->saved_holds[l].h.session.generation != 0)
				sim_wrong(s, "I5: hold %u is still saved", l);
		}
	}
	for (int i = 0; i < s->plan.locks; i++)
		check_not_held(s, &s->lock[i]);
	sim_check_table(s);
}
