/*-------------------------------------------------------------------------
 *
 * lockmgr_share.c
 *	  A lease in shared mode: several sessions have a hold on it.
 *
 * A shared lock's lease takes any number of holds without a request.
 *
 * A semaphore's lease has permits, which its holds use up.  Example: our entry in the item has 3
 * permits.  Session A has a hold with 2 of them, B has 1.  Session C wants 1 more.
 *
 *	 - A renewal asks DynamoDB to change the permits of our entry to 4.
 *	 - If B lets go first, its permit passes to C without a request.  As for an exclusive lock,
 *	   that happens only within a run; and only if C's limit is not lower than the one under
 *	   which DynamoDB gave the permit.
 *	 - If nobody needs B's permit, the next renewal gives it back.
 *
 * While another cluster's waiter has set a gate, the lock is shared with no more sessions.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#define LOOK_MIN_US		INT64_C(20000)

/*
 * The session's margin on this lease: the same part of it as of the lease that the session asked
 * for. 2 s of 20 s become 1 s of 10 s.
 */
static int64_t
margin_on(const saved_lease *l, const lm_request *request)
{
	return request->ask.margin_us * l->lease_ms / request->ask.lease_ms;
}

/* Has the lease the shared mode that the request asks for, and is it far from its end? */
static bool
fits_lease(int64_t now, const lm_lock *lock, const lm_request *request)
{
	const saved_lease *l = &lock->lease->l;

	return l->mode == request->ask.mode && l->mode != MODE_EXCLUSIVE &&
		now < lm_believed_end(l) - l->lease_ms * 1000 / 2 &&
		now < lm_believed_end(l) - margin_on(l, request);
}

/* May permits that our entry has, and that no hold uses, go to this session? */
static bool
may_reuse(const lockmgr *lm, int64_t now, const lm_lock *lock, const lm_request *request)
{
	return request->ask.limit >= lock->lease->l.limit && lm_in_run(now, lock) &&
		!lm_yields(lm, now, lock, request, 0);
}

/*
 * By how many permits the next renewal should change those of our entry; 0: not at all.
 *
 *	 - Permits that no hold uses, and that cannot pass to the first session in the queue, go
 *	   back.
 *	 - If that session needs more, the renewal asks for them.  It does so the first time without
 *	   knowing whether there is room.  When DynamoDB has refused that once, it asks again only if
 *	   a look at the item shows room.
 */
int32_t
lm_wanted_change(const lockmgr *lm, int64_t now, const lm_lock *lock)
{
	const saved_lease *l = &lock->lease->l;
	const lm_request *request = lock->first != NULL ? &lock->first->request : NULL;
	int32_t		unused = l->permits - lock->lease->used;
	bool		wanted = request != NULL && request->ask.mode == l->mode;

	if (!lockmgr_limited(l->mode) || l->state != LEASE_HELD)
		return 0;
	if (unused > 0 && !(wanted && may_reuse(lm, now, lock, request)))
		return -unused;
	if (!wanted || request->ask.permits <= unused || now < lock->stay_back_until ||
		lm_yields(lm, now, lock, request, request->ask.permits - unused) ||
		(request->refused_once &&
		 (lm_gate_stands(lock) ||
		  !lm_has_permits(lm, now, lock, request->ask.permits - unused, request->ask.limit))))
		return 0;
	return request->ask.permits - unused;
}

/* Gives the session a hold on the lease beside the others. */
static void
let_in(lockmgr *lm, int64_t now, lm_lock *lock, lm_session *session)
{
	saved_lease *l = &lock->lease->l;
	int64_t		margin_us = margin_on(l, &session->request);

	if (margin_us > l->margin_us)
	{
		l->margin_us = margin_us;
		l->deadline = lm_believed_end(l) - l->margin_us;
	}
	if (lock->lease->holds != NULL)
		lm_make_room(lm);
	lm_grant(lm, now, lock, session);
}

/*
 * If a limit on leases keeps the first session in the queue from a hold, answers it, and returns
 * true.
 */
static bool
turn_away(lockmgr *lm, const lm_lock *lock)
{
	if (lm_role_is_full(lm, lock->first))
		lm_answer_result(lm, lock->first, LOCKMGR_ROLE_FULL);
	else if (lock->lease->holds != NULL && !lm_has_room(lm, lock->first))
		lm_answer_result(lm, lock->first, LOCKMGR_NO_ROOM);
	else
		return false;
	return true;
}

/*
 * Is the first session in the queue a try that waits for a look at the item?  It does if we leave
 * permits to another cluster's mark, and what we know of the item is older than the try.
 */
bool
lm_looks_for_try(int64_t now, const lm_lock *lock)
{
	return lock->first != NULL && lock->first->request.kind == LOCKMGR_TRY &&
		now < lock->yields_until && lock->shared != NULL &&
		lock->shared->received < lock->first->request.since;
}

/*
 * When to look at the item for permits, or for the end of a gate, for the first session in the
 * queue; 0: a look would not help it.
 */
static int64_t
next_look(lockmgr *lm, int64_t now, lm_lock *lock)
{
	const saved_lease *l = &lock->lease->l;
	int64_t		interval;
	int64_t		longest = lm_longest_promised(now, lock, lm->poll_interval_us);
	int64_t		death;

	if (lm_looks_for_try(now, lock))
		return now;
	if (lock->first == NULL || lock->first->request.kind != LOCKMGR_ACQUIRE ||
		lock->first->request.ask.mode != l->mode)
		return 0;
	if (lock->asked_at < lock->first->request.since)
		lock->asked_at = lock->first->request.since;
	if (now < lock->stay_back_until)
		return lock->stay_back_until;
	interval = (now - lock->first->request.since) / 20;
	if (interval < LOOK_MIN_US)
		interval = LOOK_MIN_US;
	if (interval > longest)
		interval = longest;
	interval = interval * 3 / 4 + (int64_t) (lm_random(lm) % (uint64_t) (interval / 4));
	death = lm_next_death(now, lock);
	return now + interval < death ? now + interval : death;
}

/*
 * The lease is ours, and no call is in flight: gives holds to sessions from the front of the
 * queue, as long as they fit, and plans the next change of permits.  Returns whether any session
 * has a hold.
 */
bool
lm_admit(lockmgr *lm, int64_t now, lm_lock *lock)
{
	const lm_lease *lease = lock->lease;
	bool		change;

	lock->look_at = 0;
	while (lock->first != NULL)
	{
		const lm_request *request = &lock->first->request;

		/* May the session have a hold on the lease as it is? */
		if (fits_lease(now, lock, request) && !lm_gate_stands(lock) &&
			(lockmgr_unlimited(lease->l.mode) ||
			 (request->ask.permits <= lease->l.permits - lease->used &&
			  may_reuse(lm, now, lock, request))))
		{
			if (!turn_away(lm, lock))
				let_in(lm, now, lock, lock->first);
		}
		else if (request->kind == LOCKMGR_TRY && lease->holds != NULL &&
				 !lm_looks_for_try(now, lock) && lm_wanted_change(lm, now, lock) <= 0)
			lm_answer_result(lm, lock->first, LOCKMGR_BUSY);
		else
			break;
	}
	if (lease->holds == NULL)
		return false;
	change = lm_wanted_change(lm, now, lock) != 0;
	if (!change)
		lock->look_at = next_look(lm, now, lock);
	lm_become_held(lm, lock);
	if (change)
		heap_set(&lm->renewals, &lock->renewal, now);
	return true;
}

/*
 * DynamoDB has added permits to our entry: gives them to the session that asked for them, if it
 * still waits.
 */
void
lm_give_permits(lockmgr *lm, int64_t now, lm_lock *lock)
{
	const lm_lease *lease = lock->lease;
	lm_session *session = lm_pending_session(lm, lease);

	lm_assert(session == NULL || session == lock->first);
	if (session != NULL && fits_lease(now, lock, &session->request) &&
		session->request.ask.permits <= lease->l.permits - lease->used && !turn_away(lm, lock))
		let_in(lm, now, lock, session);
}

/*
 * Gives a session a hold although others wait before it, because a session that has the lock waits
 * for this one.  Returns false if it cannot: it does not while a renewal is in flight.
 */
bool
lm_let_in(lockmgr *lm, int64_t now, lm_session *session)
{
	lm_lock    *lock = session->request.lock;

	if (lock->state != LOCK_HELD || !lockmgr_unlimited(lock->lease->l.mode) ||
		!fits_lease(now, lock, &session->request) || !lm_has_room(lm, session) ||
		lm_role_is_full(lm, session))
		return false;
	let_in(lm, now, lock, session);
	return true;
}

/* A look at the item for permits, or a deletion of the item, is due. */
void
lm_look(lockmgr *lm, lm_lock *lock)
{
	lock->look_at = 0;
	if (heap_is_in(&lock->look))
		return;
	heap_append(&lm->looks, &lock->look);
	lock->look_ups++;
}
