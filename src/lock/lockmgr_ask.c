/*-------------------------------------------------------------------------
 *
 * lockmgr_ask.c
 *	  The lock manager: events from sessions.
 *
 * The struct of a lock has the queue of this cluster's sessions, what we wrote to
 * DynamoDB (its lease), what we saw another client write, and at most one call in
 * flight.  This file turns the requests of sessions into transitions of the
 * lock's state; see lockmgr_state.c.
 *
 * The rules that prevent two holders:
 *
 *	 - belief starts when a write is confirmed, and ends a margin before the
 *	   lease does, counted from before the write's first copy was sent;
 *	 - every write is conditional on the version that it replaces and writes a
 *	   fresh one, so repeating it is harmless and detectable;
 *	 - another client's version is overwritten only if it is released, or dead: it has not
 *	   changed for its whole lease, or DynamoDB's clock is past the lease of the time in it
 *	   (lockmgr_clock.c);
 *	 - belief ends before a release is sent.
 *
 * No event takes time linear in the number of leases or waiters: names are
 * hashed, timers are in heaps, a lock's waiters share one watch.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdlib.h>
#include <string.h>

/*
 * Forgets a request that is no longer wanted.  A call that was sent for it goes on; when that
 * ends, nobody wants its outcome.
 */
static void
drop_request(lockmgr *lm, int64_t now, lm_session *session)
{
	lm_request *request = &session->request;
	lm_lock    *lock = request->lock;

	if (!request->active)
		return;
	request->active = false;
	lm_free_payload(request);
	switch (request->kind)
	{
		case LOCKMGR_ACQUIRE:
		case LOCKMGR_TRY:
			lm_dequeue(lm, session);
			if (lock->call != NULL || heap_is_in(&lock->ready))
				break;
			if (lock->state == LOCK_ACQUIRING && lm_pending_session(lm, lock->lease) == NULL)
				lm_abandon(lm, now, lock);	/* no attempt is in flight */
			else if (lock->first == NULL &&
					 (lock->state == LOCK_IDLE || lock->state == LOCK_POLLING))
				lm_next_turn(lm, now, lock);
			else if (lock->state == LOCK_HELD && lock->lease->l.mode != MODE_EXCLUSIVE)
				(void) lm_admit(lm, now, lock);
			break;
		case LOCKMGR_RENEW:
			lock->wanted_lease_ms = 0;
			break;
		case LOCKMGR_LOOK_UP:
			lm_unsubmit_look_up(lm, session);
			if (session->call != NULL)
				session->call->look_up_by = NULL;
			session->call = NULL;
			lock->look_ups--;
			lm_remember(lm, lock);
			break;
		case LOCKMGR_RELEASE:
		case LOCKMGR_JOIN:
		case LOCKMGR_DETACH:
		case LOCKMGR_END_DETACHED:
			break;
	}
}

/*
 * Ends what the session has announced up to this number and has not claimed: drops the requests,
 * and lets go of what was granted for them.
 */
static void
end_announced(lockmgr *lm, int64_t now, lm_session *session, uint64_t seq)
{
	while (session->announced != NULL && session->announced->request.seq <= seq)
	{
		lm_session *announced = session->announced;
		lm_hold    *hold = lm_announced_hold(lm, announced);

		session->announced = announced->next_announced;
		drop_request(lm, now, announced);
		if (hold != NULL)
			lm_let_go(lm, now, hold);
		free(announced);
	}
}

static void
end_session(lockmgr *lm, int64_t now, lm_session *session)
{
	drop_request(lm, now, session);
	end_announced(lm, now, session, UINT64_MAX);
	while (session->holds != NULL)
		lm_end_with_session(lm, now, session->holds);
	session->id.generation = 0;
}

void
lockmgr_session_end(lockmgr *lm, int64_t now, lockmgr_session id)
{
	lm_session *session = id.slot < lm->max_sessions ?
		lm->sessions[id.slot] : NULL;

	if (session != NULL && session->id.generation <= id.generation)
		end_session(lm, now, session);
	lm_pump(lm, now);
}

void
lockmgr_cancel(lockmgr *lm, int64_t now, lockmgr_session id, uint64_t seq)
{
	lm_session *session = lm_live_session(lm, id);

	if (session == NULL)
		return;
	end_announced(lm, now, session, seq);
	if (session->request.active && session->request.seq <= seq)
		drop_request(lm, now, session);
	else
	{
		/*
		 * The answer was given before the cancellation came: the session did not take it, so the
		 * hold ends.
		 */
		for (uint32_t index = lockmgr_next_hold(lm, id.slot, LOCKMGR_NO_HOLD);
			 index != LOCKMGR_NO_HOLD; index = lockmgr_next_hold(lm, id.slot, index))
		{
			lm_hold    *hold = &lm->holds[index];

			if (hold->h.seq == seq)
			{
				/*
				 * The session never learnt that it got the lock, so others need not wait for
				 * at_least_ms.
				 */
				if (hold->lease->holds->lease_next == NULL && !hold->h.joined &&
					hold->h.ends_at == 0)
					hold->lease->l.ends_kept = true;
				lm_let_go(lm, now, hold);
				break;
			}
		}
	}
	lm_pump(lm, now);
}

/*
 * The hold with this index if the session has it, or a session of the same slot has left it to the
 * cluster (that session may have ended); else NULL.
 */
static lm_hold *
hold_of(lockmgr *lm, lockmgr_session id, uint32_t index)
{
	lm_hold    *hold = index < lm->max_leases ? &lm->holds[index] : NULL;

	return hold != NULL && hold->session != NULL &&
		(hold->session == lm_live_session(lm, id) || lm_is_detached_by(lm, hold, id.slot)) ?
		hold : NULL;
}

void
lockmgr_let_go(lockmgr *lm, int64_t now, lockmgr_session id, uint32_t index)
{
	lm_hold    *hold = hold_of(lm, id, index);

	if (hold != NULL)
		lm_let_go(lm, now, hold);
	lm_pump(lm, now);
}

uint32_t
lockmgr_next_hold(const lockmgr *lm, uint32_t slot, uint32_t after)
{
	const lm_session *session = slot < lm->max_sessions ?
		lm->sessions[slot] : NULL;
	bool		detached = after != LOCKMGR_NO_HOLD &&
		lm->holds[after].session == &lm->detached;
	const lm_hold *hold = NULL;

	if (after != LOCKMGR_NO_HOLD)
		hold = lm->holds[after].next;
	else if (session != NULL)
		hold = session->holds;
	if (hold == NULL && !detached)
		hold = lm->detached.holds;
	while (hold != NULL && hold->session == &lm->detached &&
		   !lm_is_detached_by(lm, hold, slot))
		hold = hold->next;
	return hold != NULL ? hold->index : LOCKMGR_NO_HOLD;
}

uint64_t
lockmgr_hold_seq(const lockmgr *lm, uint32_t index)
{
	return lm->holds[index].h.seq;
}

/*
 * While adopting: continues an acquire that the previous manager had under way, or
 * had granted without an answer.
 */
static bool
resume_acquire(lockmgr *lm, int64_t now, lm_session *session, lm_lock *lock)
{
	lm_lease   *lease = lock->lease;
	lm_hold    *hold = lm_adopted_hold(session, session->request.seq);

	if (hold != NULL)
	{
		lm_enqueue(lm, now, lock, session, false);
		if (hold->lease->l.state == LEASE_HELD)
			lm_answer_granted(lm, session, hold);
		else
			lm_answer_lost(lm, now, session, hold);
		return true;
	}
	session->request.lock = lock;
	if (lease != NULL && lease->l.pending.version[0] != '\0' &&
		lm_pending_session(lm, lease) == session)
	{
		lm_enqueue(lm, now, lock, session, true);
		return true;
	}
	return false;
}

/* Does another session of this cluster have the lock, or wait before this one? */
static bool
is_taken(lockmgr *lm, const lm_session *session)
{
	const lm_lock *lock = session->request.lock;
	const lm_lease *lease = lock->lease;

	if (lock->first != session)
		return true;
	if (lease == NULL)
		return false;
	if (lm_pending_session(lm, lease) != NULL)
		return lm_pending_session(lm, lease) != session;
	if (lease->l.state == LEASE_HELD && lease->l.mode != MODE_EXCLUSIVE)
		return lease->l.mode != session->request.ask.mode;	/* the modes fit: lm_admit() decides
															 * when the renewal is settled */
	return lease->l.state == LEASE_HELD || lease->l.state == LEASE_LOST;
}

/*
 * Must the session, which has just joined the queue, wait for others?  Those who only share the
 * lock with it do not count.
 */
static bool
is_behind(const lm_lock *lock, const lm_session *session)
{
	const lm_session *previous = session->request.previous;
	const lm_lease *lease = lock->lease;

	if (lease == NULL)
		return previous != NULL || lock->state != LOCK_IDLE;
	if (lease->l.mode != MODE_EXCLUSIVE && lease->l.mode == session->request.ask.mode)
		return previous != NULL && previous->request.waited;
	return previous != NULL || lease->l.state == LEASE_HELD;
}

void
lm_take_place(lockmgr *lm, int64_t now, lm_session *session)
{
	lm_lock    *lock = session->request.lock;
	lm_session *in_line;
	char		cycle[1024];

	/* If a session of the cycle is let in, the search starts again: there may be another cycle. */
	while (session->request.active && session->request.kind == LOCKMGR_ACQUIRE &&
		   lm_deadlocked(lm, session, &in_line, cycle, sizeof(cycle)))
	{
		lockmgr_answer answer = {.result = LOCKMGR_DEADLOCK, .message = cycle};

		if (in_line == NULL || !lm_let_in(lm, now, in_line))
			lm_answer(lm, session, &answer);
	}
	if (!session->request.active)
		return;
	if (lock->state == LOCK_HELD && lock->lease->l.mode != MODE_EXCLUSIVE &&
		lock->first == session)
		(void) lm_admit(lm, now, lock);
	else if (session->request.kind == LOCKMGR_TRY &&
			 !session->request.ask.waits_for_local_holder && is_taken(lm, session))
		lm_answer_result(lm, session, LOCKMGR_BUSY);
	else if (lock->state == LOCK_IDLE)
		lm_next_turn(lm, now, lock);
	if (session->request.active)
		session->request.waited |= is_behind(lock, session);
}

/*
 * Copies data and attributes into the request.  False when memory is short; lm_answer() then frees
 * what was copied.
 */
static bool
copy_payload(lm_request *request, const lockmgr_request *asked)
{
	if (asked->data != NULL)
	{
		request->data = malloc(asked->data_len + 1);
		if (request->data == NULL)
			return false;
		memcpy(request->data, asked->data, asked->data_len);
		request->data_len = asked->data_len;
	}
	if (asked->attributes != NULL)
	{
		request->attributes = strndup(asked->attributes, asked->attributes_len);
		if (request->attributes == NULL)
			return false;
	}
	return true;
}

static void
ask_acquire(lockmgr *lm, int64_t now, lm_session *session,
			const lockmgr_request *asked)
{
	lm_request *request = &session->request;
	lm_lock    *lock = lm_get_lock(lm, asked->name, asked->name_len);

	if (!lockmgr_limited(request->ask.mode))
	{
		request->ask.permits = 1;
		request->ask.limit = 0;
	}
	if (request->ask.mode != MODE_EXCLUSIVE)
		request->ask.at_least_ms = 0;
	session->role = request->ask.role;
	if (lock == NULL || !copy_payload(request, asked))
	{
		lm_answer_result(lm, session, LOCKMGR_NO_MEMORY);
		if (lock != NULL)
			lm_remember(lm, lock);
		return;
	}
	if (lm->adopting ? resume_acquire(lm, now, session, lock) :
		lm_take_up(lm, now, session, lock))
		return;
	lm_enqueue(lm, now, lock, session, false);
	if (!lm->adopting && !(request->ask.goes_first && lm_let_in(lm, now, session)))
		lm_take_place(lm, now, session);
}

static void
wait_for_release(lm_session *session, lm_lock *lock)
{
	lock->releaser = session;
	lock->releaser_seq = session->request.seq;
}

/*
 * While adopting: the session waits for the release of a hold that the previous manager has ended.
 *
 *	 - The lease has ended.  If that was before its deadline, DynamoDB had confirmed the release.
 *	 - Another session has a hold on the lease, or waits for a release of the lock: the lock has
 *	   passed on from this session to that one, so it was released.
 *	 - The lease was lost: there is nothing to release.
 *	 - Else DynamoDB has yet to confirm the release.
 */
static void
resume_release(lockmgr *lm, int64_t now, lm_session *session)
{
	const lock_ask *ask = &session->request.ask;
	lm_lease   *lease = lm_named_lease(lm, ask->lease_index, ask->lease_generation);

	if (lease == NULL || lease->lock == NULL)
	{
		if (now < ask->valid_until)
			lm_answer_result(lm, session, LOCKMGR_RELEASED);
		else
			lm_answer_unconfirmed(lm, session);
	}
	else if (lease->holds != NULL || lm_releaser(lease->lock) != NULL)
		lm_answer_result(lm, session, LOCKMGR_RELEASED);
	else if (lease->l.state == LEASE_LOST)
		lm_answer_result(lm, session, LOCKMGR_NOT_HELD);
	else
		wait_for_release(session, lease->lock);
}

/* The session's request is to end this hold; NULL: there is no such hold. */
static void
end_hold(lockmgr *lm, int64_t now, lm_session *session, lm_hold *hold)
{
	if (hold == NULL && lm->adopting)
		resume_release(lm, now, session);
	else if (hold == NULL)
		lm_answer_result(lm, session, LOCKMGR_NOT_HELD);
	else if (lm_is_lost(hold))
		lm_answer_lost(lm, now, session, hold);
	else
	{
		wait_for_release(session, hold->lease->lock);
		if (session->request.ask.ends_kept)
		{
			/*
			 * Saved with the lease: if others have holds on it, the release comes when the last
			 * one ends.
			 */
			hold->lease->l.ends_kept = true;
			lm_save(lm, hold->lease, false);
		}
		lm_let_go(lm, now, hold);
	}
}

/*
 * Releases the session's holds on all the leases that the request names.  If one release fails,
 * that is the answer to the request, and the rest is released without one.
 */
static void
release_all(lockmgr *lm, int64_t now, lm_session *session, const lockmgr_request *asked)
{
	lm_request *request = &session->request;

	request->unreleased = asked->all_count;
	for (uint32_t i = 0; i < asked->all_count; i++)
	{
		const lockmgr_lease *named = &asked->all[i];
		const lm_lease *lease = lm_named_lease(lm, named->index, named->generation);
		lm_hold    *hold = lease != NULL ? lease->holds : NULL;

		while (hold != NULL && hold->session != session)
			hold = hold->lease_next;
		request->ask.lease_index = named->index;
		request->ask.lease_generation = named->generation;
		if (request->active)
			end_hold(lm, now, session, hold);
		else if (hold != NULL)
			lm_let_go(lm, now, hold);
	}
}

static void
ask_renew(lockmgr *lm, int64_t now, lm_session *session,
		  const lockmgr_request *asked)
{
	const lock_ask *ask = &session->request.ask;
	lm_hold    *hold = hold_of(lm, session->id, ask->hold_index);
	lm_lock    *lock;

	if (hold == NULL)
	{
		lm_answer_result(lm, session, LOCKMGR_NOT_HELD);
		return;
	}
	if (lm_is_lost(hold))
	{
		lockmgr_answer answer = {.result = LOCKMGR_LOST, .loss = hold->h.loss};

		lm_answer(lm, session, &answer);
		return;
	}
	if (!copy_payload(&session->request, asked))
	{
		lm_answer_result(lm, session, LOCKMGR_NO_MEMORY);
		return;
	}
	lock = hold->lease->lock;
	session->request.lock = lock;
	/* If others have holds on the lease, a session can make it longer, but not shorter. */
	if (hold->lease->holds->lease_next == NULL ||
		(ask->lease_ms >= hold->lease->l.lease_ms && ask->lease_ms >= lock->wanted_lease_ms))
	{
		lock->wanted_lease_ms = ask->lease_ms;
		lock->wanted_margin_us = ask->margin_us;
	}
	if (lock->call == NULL)
		heap_set(&lm->renewals, &lock->renewal, now);
}

static void
ask_look_up(lockmgr *lm, lm_session *session, const lockmgr_request *asked)
{
	lm_lock    *lock = lm_get_lock(lm, asked->name, asked->name_len);

	if (lock == NULL)
	{
		lm_answer_result(lm, session, LOCKMGR_NO_MEMORY);
		return;
	}
	session->request.lock = lock;
	lock->look_ups++;
	session->attempts = 0;
	lm_submit_look_up(lm, session);
}

/*
 * A session has a new request: drops its last one, or ends the last session of the slot.  Returns
 * the session; NULL when memory is short.
 */
static lm_session *
next_request_of(lockmgr *lm, int64_t now, lockmgr_session id)
{
	lm_session *session = id.slot < lm->max_sessions ? lm->sessions[id.slot] : NULL;

	if (session != NULL && session->id.generation != id.generation)
		end_session(lm, now, session);
	else if (session != NULL)
		drop_request(lm, now, session);
	return lm_get_session(lm, id);
}

/* While adopting, announcements are ignored: leases and holds of others are not all known yet. */
void
lockmgr_announce(lockmgr *lm, int64_t now, const lockmgr_request *asked)
{
	lm_session *session = lm->adopting ? NULL : next_request_of(lm, now, asked->session);
	lm_session *announced = session != NULL ? malloc(sizeof(lm_session)) : NULL;

	if (announced == NULL)
		return;
	*announced = (lm_session)
	{
		.id = session->id,
		.announced_by = session,
		.granted = LOCKMGR_NO_HOLD,
		.request = {
			.active = true, .kind = LOCKMGR_TRY, .seq = asked->seq, .since = now,
			.ask = asked->ask,
		},
	};
	session->role = asked->ask.role;	/* its announced holds count as leases of this role */
	*(session->announced ? &session->last_announced->next_announced : &session->announced) =
		announced;
	session->last_announced = announced;
	ask_acquire(lm, now, announced, asked);
	lm_pump(lm, now);
}

void
lockmgr_ask(lockmgr *lm, int64_t now, const lockmgr_request *asked)
{
	lm_session *session = next_request_of(lm, now, asked->session);
	lm_request *request;

	if (session == NULL)
	{
		lockmgr_answer answer = {
			.session = asked->session,
			.seq = asked->seq,
			.kind = asked->kind,
			.result = LOCKMGR_NO_MEMORY,
			.message = "",
		};

		lm->host.answer(lm->host.arg, &answer);
		return;
	}

	/* What the session has announced with lower numbers, or differently with this one, ends. */
	end_announced(lm, now, session, asked->seq - 1);
	if (session->announced != NULL && session->announced->request.seq == asked->seq &&
		!lm_fits_announced(lm, session, asked))
		end_announced(lm, now, session, UINT64_MAX);
	if (lm->adopting)
		lm_end_misfit(lm, now, session, asked);

	request = &session->request;
	*request = (lm_request)
	{
		.active = true, .kind = asked->kind, .seq = asked->seq, .since = now, .ask = asked->ask,
		.waited = asked->ask.goes_first,
	};
	switch (asked->kind)
	{
		case LOCKMGR_ACQUIRE:
		case LOCKMGR_TRY:
			ask_acquire(lm, now, session, asked);
			break;
		case LOCKMGR_RELEASE:
			if (asked->all_count > 0)
				release_all(lm, now, session, asked);
			else
				end_hold(lm, now, session, hold_of(lm, session->id, request->ask.hold_index));
			break;
		case LOCKMGR_RENEW:
			ask_renew(lm, now, session, asked);
			break;
		case LOCKMGR_LOOK_UP:
			ask_look_up(lm, session, asked);
			break;
		case LOCKMGR_JOIN:
			lm_ask_join(lm, now, session);
			break;
		case LOCKMGR_DETACH:
			lm_ask_detach(lm, now, session, hold_of(lm, session->id, request->ask.hold_index));
			break;
		case LOCKMGR_END_DETACHED:
			end_hold(lm, now, session, lm_detached_hold(lm, &request->ask));
			break;
	}
	lm_pump(lm, now);
}
