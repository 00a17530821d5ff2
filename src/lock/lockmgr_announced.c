/*-------------------------------------------------------------------------
 *
 * lockmgr_announced.c
 *	  Requests that a session has announced.
 *
 * A session has one request at a time.  It may announce the next ones: tries of
 * other locks, with the numbers that these requests will have.  Their acquires go
 * out together.  When the session posts such a request, it claims what came of it:
 * the request goes on where the announced one is, or gets its answer.
 *
 * An announcement is a hint, and says nothing about who has a lock.  What is
 * announced may be forgotten at any time, and is, with the worker: the request is
 * then like any other.  A hold that is granted for an announced request has the
 * number of that request, so a worker that finds it saved and not answered ends it
 * as it ends any other that no session knows of (mailbox.h).
 *
 * In a lock's queue an announced request is a struct lm_session of its own, with the
 * session's id, and it never waits behind others.  Its hold is the session's.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdlib.h>
#include <string.h>

static bool is_named(const lm_lock *lock, const lockmgr_request *asked);

/* The last in the session's list, or NULL: memory is short. */
lm_session *
lm_new_announced(lm_session *session, const lockmgr_request *asked)
{
	lm_session *announced = calloc(1, sizeof(lm_session));

	if (announced == NULL)
		return NULL;
	announced->id = session->id;
	announced->announced_by = session;
	announced->granted = LOCKMGR_NO_HOLD;
	announced->request.seq = asked->seq;
	session->role = asked->ask.role;	/* its holds count for this one */
	*(session->announced ? &session->last_announced->next_announced : &session->announced) =
		announced;
	session->last_announced = announced;
	return announced;
}

/* The first one, which the caller frees. */
lm_session *
lm_pop_announced(lm_session *session)
{
	lm_session *announced = session->announced;

	session->announced = announced->next_announced;
	return announced;
}

/* What the announced request was granted, valid or lost, or NULL. */
lm_hold *
lm_announced_hold(lockmgr *lm, const lm_session *announced)
{
	lm_hold    *hold = announced->granted != LOCKMGR_NO_HOLD ?
		&lm->holds[announced->granted] : NULL;

	/* A lost lease may have been freed for its room. */
	return hold != NULL && hold->session == announced->announced_by &&
		hold->h.seq == announced->request.seq ? hold : NULL;
}

/* Is the request the one that was announced with its number, as far as can be seen? */
bool
lm_fits_announced(lockmgr *lm, const lm_session *session, const lockmgr_request *asked)
{
	const lm_session *announced = session->announced;
	const lm_hold *hold = lm_announced_hold(lm, announced);
	const lm_lock *lock = announced->request.lock;

	if (hold != NULL)
		lock = hold->lease->lock;
	return asked->kind == LOCKMGR_TRY && asked->ask.mode == MODE_EXCLUSIVE &&
		asked->data == NULL && asked->attributes == NULL &&
		!asked->ask.must_exist && !asked->ask.deletes_item &&
		(lock == NULL || is_named(lock, asked));
}

static bool
is_named(const lm_lock *lock, const lockmgr_request *asked)
{
	return lock->name_len == asked->name_len &&
		memcmp(lock->name, asked->name, asked->name_len) == 0;
}

/*
 * While adopting: ends the hold with the request's number if that was granted for another
 * request, which was announced.
 */
void
lm_end_misfit(lockmgr *lm, int64_t now, lm_session *session, const lockmgr_request *asked)
{
	lm_hold    *hold = lm_adopted_hold(session, asked->seq);
	bool		fits = false;

	if (hold == NULL)
		return;
	if (asked->kind == LOCKMGR_ACQUIRE || asked->kind == LOCKMGR_TRY)
		fits = hold->lease->lock == NULL || is_named(hold->lease->lock, asked);
	else if (asked->kind == LOCKMGR_JOIN)
		fits = hold->h.joined;
	if (!fits)
		lm_let_go(lm, now, hold);
}

/* While adopting: what the request with this number was granted, valid or lost, or NULL. */
lm_hold *
lm_adopted_hold(const lm_session *session, uint64_t seq)
{
	lm_hold    *hold = session->holds;

	while (hold != NULL && hold->h.seq != seq)
		hold = hold->next;
	return hold;
}

/* Nobody has used it.  Another hold must not have the same number, so it is not asked again. */
void
lm_answer_lost(lockmgr *lm, int64_t now, lm_session *session, lm_hold *hold)
{
	lockmgr_answer answer = {.result = LOCKMGR_LOST, .loss = hold->h.loss};

	lm_let_go(lm, now, hold);
	lm_answer(lm, session, &answer);
}

/* If the request was announced, it goes on from there.  False: it begins now. */
bool
lm_claim(lockmgr *lm, int64_t now, lm_session *session, lm_lock *lock)
{
	lm_session *announced = session->announced;
	lm_hold    *hold;
	bool		busy;

	if (announced == NULL || announced->request.seq != session->request.seq)
		return false;
	hold = lm_announced_hold(lm, announced);
	busy = announced->outcome == LOCKMGR_BUSY;
	(void) lm_pop_announced(session);
	if (announced->request.active)
	{
		lm_enqueue(lm, now, lock, session, true);
		lm_dequeue(lm, announced);
		free(announced);
		return true;
	}
	free(announced);
	if (hold == NULL && !busy)
		return false;			/* it has failed: this one says why */
	if (hold != NULL && hold->lease->l.state == LEASE_HELD && now >= hold->lease->l.valid_until)
		lm_lose(lm, now, lock, LOSS_UNREACHABLE, NULL);	/* before the timer does */
	lm_enqueue(lm, now, lock, session, false);
	if (busy)
		lm_answer_result(lm, session, LOCKMGR_BUSY);
	else if (hold->lease->l.state == LEASE_HELD)
		lm_answer_granted(lm, session, hold);
	else
		lm_answer_lost(lm, now, session, hold);
	lm_remember(lm, lock);		/* nobody may need it any more */
	return true;
}
