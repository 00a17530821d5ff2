/*-------------------------------------------------------------------------
 *
 * lockmgr_lease.c
 *	  Leases and holds: taking one, granting, giving it back.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

/*-------------------------------------------------------------------------
 * Leases and holds by index: who may have one, taking one, giving it back.
 *
 * A spare lease, which was lost, makes room when no other is free: see lm_make_room().
 *-------------------------------------------------------------------------
 */

/* Is a lease being acquired for the session, or handed over to it? */
static bool
gets_lease(lockmgr *lm, const lm_session *session)
{
	const lm_lock *lock = session->request.active ? session->request.lock : NULL;

	return lock != NULL && session->request.kind <= LOCKMGR_TRY && lock->lease != NULL &&
		lm_pending_session(lm, lock->lease) == session;
}

/*
 * Have the sessions of this session's role reached the limit of that role?  If the role has a
 * limit, this takes time linear in the number of sessions, their holds and announced requests.
 */
bool
lm_role_is_full(lockmgr *lm, const lm_session *session)
{
	uint32_t	max = session->request.ask.role_max_leases;
	uint32_t	count = 0;

	if (max == 0)
		return false;
	for (uint32_t i = 0; i < lm->max_sessions; i++)
	{
		const lm_session *other = lm->sessions[i];

		if (other == NULL || other->id.generation == 0 || other->role != session->role)
			continue;
		for (const lm_hold *hold = other->holds; hold != NULL; hold = hold->next)
			count += !heap_is_in(&hold->lease->spare);
		count += other != session && gets_lease(lm, other);
		for (other = other->announced; other != NULL; other = other->next_announced)
			count += other != session && gets_lease(lm, other);
	}
	for (const lm_hold *hold = lm->detached.holds; hold != NULL; hold = hold->next)
		count += hold->h.role == session->role && !heap_is_in(&hold->lease->spare);
	return count >= max;
}

/* Is there room for another lease or hold of the session?  Spare leases count as free. */
bool
lm_has_room(const lockmgr *lm, const lm_session *session)
{
	uint32_t	left = lm->max_leases - lm->leases_in_use - lm->extra_holds +
		(uint32_t) lm->spare.count;

	return left > (session->request.ask.superuser ? 0 : lm->reserved_leases);
}

/* Frees the oldest spare lease if there is no room for another lease or hold. */
void
lm_make_room(lockmgr *lm)
{
	if (lm->leases_in_use + lm->extra_holds == lm->max_leases)
		lm_put_lease(lm, LM_CONTAINER(heap_top(&lm->spare), lm_lease, spare));
}

/*
 * The lease that was granted with this index and generation; NULL if the slot has another one by
 * now.
 */
lm_lease *
lm_named_lease(const lockmgr *lm, uint32_t index, uint32_t generation)
{
	lm_lease   *lease = index < lm->max_leases ? &lm->leases[index] : NULL;

	return lease != NULL && lease->l.generation == generation ? lease : NULL;
}

/* The lock gets a lease; lm_has_room() must be true. */
void
lm_take_lease(lockmgr *lm, lm_lock *lock)
{
	lm_lease   *lease;

	lm_assert(lock->lease == NULL && lock->first != NULL);
	lm_make_room(lm);
	lease = lm->free_lease;
	lm_assert(lease->l.state == LEASE_FREE && lease->holds == NULL && lease->used == 0);
	lm->free_lease = lease->next;
	lease->l = (saved_lease) {
		.state = LEASE_ACQUIRING, .generation = lease->l.generation + 1,
		.mode = lock->first->request.ask.mode,
	};
	lease->lock = lock;
	lease->next = NULL;
	lock->lease = lease;
	lm->leases_in_use++;
}

/* Frees the lease, and its holds.  The lock must no longer point to it. */
void
lm_put_lease(lockmgr *lm, lm_lease *lease)
{
	lm_assert(lease->l.state != LEASE_FREE);
	lm_assert(lease->lock == NULL || lease->lock->lease != lease);
	while (lease->holds != NULL)
		lm_put_hold(lm, lease->holds);
	heap_set(&lm->spare, &lease->spare, INT64_MAX);
	lm_set_lease_state(lm, lease, LEASE_FREE);
	lm_save(lm, lease, false);
	lease->lock = NULL;
	lm->leases_in_use--;
	if (lm->adopting)
		return;					/* lockmgr_adopted() builds the free list */
	lease->next = lm->free_lease;
	lm->free_lease = lease;
}

void
lm_set_lease_state(lockmgr *lm, lm_lease *lease, lease_state state)
{
	if (lease->l.state == LEASE_HELD)
		lm->leases_held--;
	if (state == LEASE_HELD)
		lm->leases_held++;
	else
		lease->l.valid_until = 0;
	lease->l.state = state;
	lm_assert(lm->leases_held <= lm->leases_in_use);
}

void
lm_save(lockmgr *lm, lm_lease *lease, bool with_name)
{
	lm->host.save(lm->host.arg, lease->index, &lease->l,
				  with_name ? lease->lock->name : NULL,
				  with_name ? lease->lock->name_len : 0);
}

static void
link_hold(lm_hold *hold, lm_session *session)
{
	hold->session = session;
	hold->previous = NULL;
	hold->next = session->holds;
	if (session->holds != NULL)
		session->holds->previous = hold;
	session->holds = hold;
}

static void
unlink_hold(lm_hold *hold)
{
	*(hold->previous ? &hold->previous->next : &hold->session->holds) = hold->next;
	if (hold->next != NULL)
		hold->next->previous = hold->previous;
}

void
lm_attach_hold(lockmgr *lm, lm_hold *hold, lm_lease *lease, lm_session *session)
{
	lm->extra_holds += lease->holds != NULL;
	lease->used += hold->h.permits;
	hold->lease_previous = NULL;
	hold->lease_next = lease->holds;
	if (lease->holds != NULL)
		lease->holds->lease_previous = hold;
	lease->holds = hold;
	hold->lease = lease;
	link_hold(hold, session);
	lm_assert(lm->leases_in_use + lm->extra_holds <= lm->max_leases);
}

/*
 * A new hold for the session's request, without a token yet.  One is free: there are as many
 * holds as leases, and each hold but the first on a lease takes the room of a lease.
 */
lm_hold *
lm_take_hold(lockmgr *lm, int64_t now, lm_lease *lease, lm_session *session, int32_t permits)
{
	const lock_ask *ask = &session->request.ask;
	lm_hold    *hold = lm->free_hold;

	lm_assert(hold->session == NULL);
	lm->free_hold = hold->next;
	hold->h = (saved_hold) {
		.session = session->id,
		.seq = session->request.seq,
		.lease_index = lease->index,
		.lease_generation = lease->l.generation,
		.mode = lease->l.mode,
		.permits = permits,
		.acquired_ms = (now + lm->epoch_offset_us) / 1000,
		.role = session->role,
		.taker = ask->taker,
		.holder = ask->holder,
	};
	hold->h.holder.since_ms = hold->h.acquired_ms;
	lm_attach_hold(lm, hold, lease,
				   session->announced_by != NULL ? session->announced_by : session);
	return hold;
}

/* Moves the hold from its session's list to that of another session. */
void
lm_move_hold(lm_hold *hold, lm_session *session)
{
	unlink_hold(hold);
	link_hold(hold, session);
}

/* The lease's detached hold; NULL: it has none. */
lm_hold *
lm_detached_on(const lm_lease *lease)
{
	lm_hold    *hold = lease->holds;

	while (hold != NULL && hold->h.ends_at == 0)
		hold = hold->lease_next;
	return hold;
}

/*
 * A hold on the lease has ended, or the previous manager died before it saved one.  If none is
 * left that is detached or outlives its session, the lease is no longer marked as detached.
 */
void
lm_update_detached(lockmgr *lm, lm_lease *lease)
{
	if (!lease->l.detached)
		return;
	for (const lm_hold *hold = lease->holds; hold != NULL; hold = hold->lease_next)
	{
		if (hold->h.ends_at != 0 || hold->h.outlive_time_us != 0)
			return;
	}
	lease->l.detached = false;
	lm_save(lm, lease, false);
}

/* Sets the timer for what happens to the hold without a request, if anything does. */
void
lm_set_end(lockmgr *lm, lm_hold *hold)
{
	int64_t		at = INT64_MAX;

	if (hold->h.ends_at != 0)
		at = hold->h.ends_at;
	else if (hold->h.must_end != 0 && hold->h.loss == LOSS_NONE)
		at = hold->h.must_end;
	else if (hold->h.loss == LOSS_AT_MOST)
		at = hold->h.must_end + hold->lease->l.margin_us;
	heap_set(&lm->ends, &hold->end, at);
}

void
lm_put_hold(lockmgr *lm, lm_hold *hold)
{
	lm_assert(hold->session != NULL && hold->lease != NULL);
	unlink_hold(hold);
	heap_set(&lm->ends, &hold->end, INT64_MAX);
	*(hold->lease_previous ? &hold->lease_previous->lease_next : &hold->lease->holds) =
		hold->lease_next;
	if (hold->lease_next != NULL)
		hold->lease_next->lease_previous = hold->lease_previous;
	lm->extra_holds -= hold->lease->holds != NULL;
	hold->lease->used -= hold->h.permits;
	lm_assert(hold->lease->holds != NULL ? hold->lease->used > 0 : hold->lease->used == 0);
	hold->lease_next = hold->lease_previous = NULL;
	hold->lease = NULL;
	hold->session = NULL;
	hold->next = hold->previous = NULL;
	hold->h = (saved_hold) {.seq = 0};
	lm_save_hold(lm, hold);
	if (lm->adopting)
		return;					/* lockmgr_adopted() builds the free list */
	hold->next = lm->free_hold;
	lm->free_hold = hold;
}

void
lm_save_hold(lockmgr *lm, const lm_hold *hold)
{
	lm->host.save_hold(lm->host.arg, hold->index, &hold->h);
}

/*
 * The session whose request the pending write is for; if that was announced, the announced
 * request. NULL if nobody wants the write any more.
 */
lm_session *
lm_pending_session(lockmgr *lm, const lm_lease *lease)
{
	const lease_write *pending = &lease->l.pending;
	lm_session *session = lm_live_session(lm, pending->session);
	lm_session *first = lease->lock != NULL ? lease->lock->first : NULL;

	if (session == NULL)
		return NULL;
	if (session->request.active && session->request.kind <= LOCKMGR_TRY &&
		session->request.seq == pending->seq && session->request.lock == lease->lock)
		return session;
	return first != NULL && first->announced_by == session &&
		first->request.seq == pending->seq ? first : NULL;
}

/* Is the hold lost, with its lease or alone? */
bool
lm_is_lost(const lm_hold *hold)
{
	return hold->lease->l.state == LEASE_LOST || hold->h.loss != LOSS_NONE;
}

/* The session whose data and attributes the pending write carries, if it still waits; else NULL. */
lm_session *
lm_payload_session(lockmgr *lm, const lm_lease *lease)
{
	const lease_write *pending = &lease->l.pending;
	lm_session *session;

	if (!pending->has_data && !pending->has_attributes)
		return NULL;
	if (pending->op != DYNAMO_RENEW)
		return lm_pending_session(lm, lease);
	session = lm_live_session(lm, pending->session);
	return session != NULL && session->request.active &&
		session->request.kind == LOCKMGR_RENEW && session->request.seq == pending->seq ?
		session : NULL;
}

/*
 * Nothing of the lease is in DynamoDB any more: takes the lease from the lock, which the caller
 * must then put into another state.  If the lease was lost and its session has not acknowledged
 * that, the lease becomes a spare one: it stays as long as there is room.
 */
void
lm_drop_lease(lockmgr *lm, lm_lock *lock)
{
	lm_lease   *lease = lock->lease;

	lock->lease = NULL;
	if (lease->l.state == LEASE_LOST && lease->holds != NULL)
	{
		lease->lock = NULL;
		lease->l.version[0] = '\0';
		lease->l.pending.version[0] = '\0';
		lm_save(lm, lease, false);
		heap_append(&lm->spare, &lease->spare);
	}
	else
		lm_put_lease(lm, lease);
}

/*-------------------------------------------------------------------------
 * Holding a lock: a write is confirmed, the lock granted.
 *
 * A holder believes until its deadline: the time just before the first copy of the
 * newest confirmed write was sent, plus the lease, minus the margin.  A later
 * confirmation does not change that, except as lockmgr_clock.c says.
 *-------------------------------------------------------------------------
 */

/* The pending write is confirmed by the reply that is handled now: the lease is as it says. */
void
lm_written(const lockmgr *lm, lm_lease *lease)
{
	saved_lease *l = &lease->l;
	lease_write *pending = &l->pending;

	lm_assert(pending->version[0] != '\0' && pending->first_sent != 0);
	lm_assert(pending->op == DYNAMO_RENEW || pending->op == DYNAMO_ACQUIRE ||
			  pending->op == DYNAMO_HAND_OVER);
	if (l->mode != MODE_EXCLUSIVE)
	{
		lm_pending_epoch(l, l->epoch);
		l->permits = pending->op == DYNAMO_RENEW ? l->permits + pending->permits :
			pending->permits;
		if (pending->permits > 0)
			l->limit = pending->limit;
		l->refused[0] = '\0';
	}
	lm_count_lease(lm, l);
	memcpy(l->version, pending->version, sizeof(l->version));
	l->lease_ms = pending->lease_ms;
	l->margin_us = pending->margin_us;
	l->deadline = lm_believed_end(l) - pending->margin_us;
	if (pending->op != DYNAMO_RENEW)
	{
		l->next_token = pending->first_token;
		l->last_token = pending->last_token;
		l->has_data = pending->has_data;
		l->has_attributes = pending->has_attributes;
		l->kept_until_ms = pending->kept_until_ms;
		l->ends_kept = false;
		if (l->last_token > lease->lock->top_token)
			lease->lock->top_token = l->last_token;
	}
	l->stale_holder = l->stale_holder && !pending->has_holder;
	pending->version[0] = '\0';
	lm_assert(l->deadline <= l->lease_end);
	lm_assert(!lockmgr_limited(l->mode) || lease->used <= l->permits);
}

/*
 * The lock is held.  The next renewal is due a third of the lease after the last write was sent.
 * The timer is for the deadline, or for a look before that.
 */
void
lm_become_held(lockmgr *lm, lm_lock *lock)
{
	const saved_lease *l = &lock->lease->l;

	lm_enter(lm, lock, LOCK_HELD, lock->look_at != 0 && lock->look_at < l->valid_until ?
			 lock->look_at : l->valid_until);
	heap_set(&lm->renewals, &lock->renewal,
			 lm_believed_end(l) - l->lease_ms * 1000 * 2 / 3);
}

void
lm_answer_granted(lockmgr *lm, lm_session *session, const lm_hold *hold)
{
	const lm_lease *lease = hold->lease;
	lockmgr_answer answer = {
		.result = LOCKMGR_GRANTED,
		.grant.hold_index = hold->index,
		.grant.lease_index = lease->index,
		.grant.lease_generation = lease->l.generation,
		.grant.token = hold->h.token,
		.grant.valid_until = lease->l.valid_until,
		.grant.must_end = hold->h.must_end,
		.grant.waited = session->request.waited,
	};

	lm_answer(lm, session, &answer);
}

/*
 * Did the session get this hold before the other one was given?  A detached hold counts as the
 * last.
 */
static bool
is_before(const lm_hold *hold, const lm_hold *other)
{
	if ((hold->h.ends_at != 0) != (other->h.ends_at != 0))
		return other->h.ends_at != 0;
	return hold->h.acquired_ms < other->h.acquired_ms;
}

/*
 * A hold beside others has come to an exclusive lease, or has gone.  Chooses the holder that the
 * item shows from the next renewal on, and that waiters see: the session that has had the lock for
 * longest. If no session has it, that is who detached the hold, without a process.
 */
void
lm_show_holder(lockmgr *lm, lm_lease *lease)
{
	saved_lease *l = &lease->l;
	const lm_hold *first = lease->holds;
	dynamo_holder shown;

	for (const lm_hold *hold = first->lease_next; hold != NULL; hold = hold->lease_next)
	{
		if (!is_before(first, hold))
			first = hold;		/* of two with the same time, the one behind is older */
	}
	shown = first->h.holder;
	if (first->h.ends_at != 0)
		shown.pid = 0;
	if (shown.pid == l->holder.pid && shown.since_ms == l->holder.since_ms)
		return;
	l->holder = shown;
	l->stale_holder = true;
	l->pending.has_holder = false;	/* a renewal under way has the earlier holder */
	lm_save(lm, lease, false);
	lm_tell_watch(lm, lease->lock);
}

/*
 * The lease is valid, and the session gets a hold on it.
 *
 *	 - Exclusive: nobody else has a hold.  The hold gets the next reserved token.
 *	 - Shared mode: others may have holds.  All have the same token.
 *
 * The manager first saves the lease with the advanced next token, then the hold; then it answers
 * the session.  If it dies in between, the next manager gives the token to nobody else.
 */
void
lm_grant(lockmgr *lm, int64_t now, lm_lock *lock, lm_session *session)
{
	lm_lease   *lease = lock->lease;
	saved_lease *l = &lease->l;
	const lock_ask *ask = &session->request.ask;
	bool		shared = l->mode != MODE_EXCLUSIVE;
	lm_hold    *hold;

	lm_assert(session->request.active && session->request.lock == lock);
	lm_assert(ask->mode == l->mode && now < l->deadline);
	lm_assert(shared || (lease->holds == NULL && l->next_token != 0));
	hold = lm_take_hold(lm, now, lease, session, ask->permits);
	lm_assert(!lockmgr_limited(l->mode) || lease->used <= l->permits);
	hold->h.token = shared ? l->last_token : l->next_token;
	hold->h.leadership = ask->leadership;
	hold->h.must_end = ask->at_most_us != 0 ? now + ask->at_most_us : 0;
	if (!shared)
		hold->h.holder = l->holder; /* the hold shows the same holder as the item */
	lm_set_end(lm, hold);
	l->next_token = !shared && l->next_token < l->last_token ? l->next_token + 1 : 0;
	l->renewals = 0;
	lm_assert(hold->h.token > 0 && hold->h.token <= l->last_token &&
			  l->last_token <= lock->top_token);
	lm_set_lease_state(lm, lease, LEASE_HELD);
	l->valid_until = l->deadline;
	lm_save(lm, lease, false);
	lm_save_hold(lm, hold);
	lock->seen = false;
	lm_become_held(lm, lock);
	lm_answer_granted(lm, session, hold);
	lm_tell_watch(lm, lock);
}
