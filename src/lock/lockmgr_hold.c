/*-------------------------------------------------------------------------
 *
 * lockmgr_hold.c
 *	  Holding a lock: a write is confirmed, the lock granted.
 *
 * A holder believes until its deadline: the time just before the first copy of the
 * newest confirmed write was sent, plus the lease, minus the margin.  A later
 * confirmation does not change that, except as lockmgr_clock.c says.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

/* The pending write is confirmed by the reply that is handled now. */
void
lm_written(const lockmgr *lm, lm_lease *lease)
{
	struct lease *l = &lease->l;
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
	lm_assert(l->mode != MODE_SEMAPHORE || lease->used <= l->permits);
}

/*
 * The next renewal: a third of the lease after the last write was sent.  The timer is
 * for the deadline, and for a look before that.
 */
void
lm_become_held(lockmgr *lm, lm_lock *lock)
{
	const struct lease *l = &lock->lease->l;

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
		.hold_index = hold->index,
		.lease_index = lease->index,
		.lease_generation = lease->l.generation,
		.token = hold->h.token,
		.valid_until = lease->l.valid_until,
		.must_end = hold->h.must_end,
	};

	lm_answer(lm, session, &answer);
}

/* Does the first of these come before the other?  A detached one comes after all others. */
static bool
is_before(const lm_hold *hold, const lm_hold *other)
{
	if ((hold->h.ends_at != 0) != (other->h.ends_at != 0))
		return other->h.ends_at != 0;
	return hold->h.acquired_ms < other->h.acquired_ms;
}

/*
 * Holds have come to an exclusive lease, or gone.  The item, from the next renewal on, and
 * who waits are shown the session that has had the lock for longest; or, if no session
 * has it, who has detached it, without a process.
 */
void
lm_show_holder(lockmgr *lm, lm_lease *lease)
{
	struct lease *l = &lease->l;
	const lm_hold *first = lease->holds;
	dynamo_holder shown;

	for (const lm_hold *hold = first->lease_next; hold != NULL; hold = hold->lease_next)
	{
		if (!is_before(first, hold))
			first = hold;		/* the newest is in front */
	}
	shown = first->h.holder;
	if (first->h.ends_at != 0)
		shown.pid = 0;
	if (shown.pid == l->holder.pid && shown.since_ms == l->holder.since_ms)
		return;
	l->holder = shown;
	l->stale_holder = true;
	l->pending.has_holder = false;	/* of a renewal under way */
	lm_save(lm, lease, false);
	lm_tell_watch(lm, lease->lock);
}

/*
 * The lease is valid, and the session gets a hold on it.  In shared mode others may
 * have one, with the same token; else nobody has, and a token is reserved.  A manager
 * that dies between two steps has given the token to nobody
 * else: the advanced next token is saved first, then the hold; then the session is
 * answered.
 */
void
lm_grant(lockmgr *lm, int64_t now, lm_lock *lock, lm_session *session)
{
	lm_lease   *lease = lock->lease;
	struct lease *l = &lease->l;
	const lock_ask *ask = &session->request.ask;
	bool		shared = l->mode != MODE_EXCLUSIVE;
	int32_t		permits = l->mode == MODE_SEMAPHORE ? ask->permits : 1;
	lm_hold    *hold;

	lm_assert(session->request.active && session->request.lock == lock);
	lm_assert(ask->mode == l->mode && now < l->deadline);
	lm_assert(shared || (lease->holds == NULL && l->next_token != 0));
	hold = lm_take_hold(lm, lease, session, permits);
	lm_assert(l->mode != MODE_SEMAPHORE || lease->used <= l->permits);
	hold->h = (struct hold) {
		.session = session->id,
		.seq = session->request.seq,
		.lease_index = lease->index,
		.lease_generation = l->generation,
		.mode = l->mode,
		.permits = permits,
		.token = shared ? l->last_token : l->next_token,
		.acquired_ms = (now + lm->epoch_offset_us) / 1000,
		.role = session->role,
		.taker = ask->taker,
		.campaign = ask->campaign,
		.must_end = ask->at_most_us != 0 ? now + ask->at_most_us : 0,
		.holder = l->holder,
	};
	lm_set_end(lm, hold);
	if (shared)
	{
		hold->h.holder = ask->holder;
		hold->h.holder.since_ms = hold->h.acquired_ms;
	}
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
