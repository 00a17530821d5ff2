/*-------------------------------------------------------------------------
 *
 * lockmgr_join.c
 *	  Holds beside others, holds without a session, and requests that are announced.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdlib.h>
#include <string.h>

/*-------------------------------------------------------------------------
 * Joined and detached holds; a leader's transactions.
 *
 * A session joins the hold with the token that it names: then it has a hold beside
 * the other one, with the same token, and the lock passes on when all of them have
 * ended.  A session that detaches its hold leaves it to the cluster: it ends by its
 * token, or at its time.  Sessions may join it meanwhile.
 *
 * A hold may have a limit (at_most_us): at that time the hold is lost, and its lease is not.  A
 * session that joins an exclusive lock gets the limit of the session that acquired it, so both
 * lose their holds at the same time.
 *
 * A leader's transaction joins the hold of its cluster's leadership.  When the leadership has
 * let go, transactions that have joined before may go on, and no other one joins.
 *
 * All this needs no request to DynamoDB, because the lease is ours already.
 *-------------------------------------------------------------------------
 */

/*
 * Does the exclusive lease have holds with this token, of a lock that this role has acquired?  All
 * holds of an exclusive lease have one token.  If the token is an older one, the lock has passed
 * on since, perhaps on the same lease.
 */
static bool
has_token(const lm_lease *lease, int64_t token, uint32_t taker)
{
	return lease->holds != NULL && lease->l.mode == MODE_EXCLUSIVE &&
		lease->holds->h.token == token && lease->holds->h.taker == taker;
}

/* Does the cluster lead: is one of the lease's holds a leadership's own? */
static bool
is_leaderships(const lm_lease *lease)
{
	const lm_hold *hold = lease->holds;

	while (hold != NULL && !hold->h.leadership)
		hold = hold->lease_next;
	return hold != NULL;
}

/* Is the limit of the hold over? */
static bool
must_end(int64_t now, const lm_hold *hold)
{
	return hold->h.must_end != 0 && now >= hold->h.must_end;
}

/*
 * The hold that lasts for longest.  All holds that have a limit have the same one, so any hold
 * without a limit lasts for longest.
 */
static const lm_hold *
last_hold(const lm_lease *lease)
{
	const lm_hold *hold = lease->holds;

	while (hold->h.must_end != 0 && hold->lease_next != NULL)
		hold = hold->lease_next;
	return hold;
}

/* Gives the session a hold beside the one whose token it has named, or answers why it gets none. */
void
lm_join(lockmgr *lm, int64_t now, lm_session *session)
{
	const lock_ask *ask = &session->request.ask;
	lm_lease   *lease = lm_named_lease(lm, ask->lease_index, ask->lease_generation);

	if (lease == NULL || now >= lease->l.valid_until ||
		!has_token(lease, ask->token, ask->taker) ||
		must_end(now, last_hold(lease)) ||
		(ask->leadership && !is_leaderships(lease)))
		lm_answer_result(lm, session, LOCKMGR_NOT_HELD);
	else if (lm_role_is_full(lm, session))
		lm_answer_result(lm, session, LOCKMGR_ROLE_FULL);
	else if (!lm_has_room(lm, session))
		lm_answer_result(lm, session, LOCKMGR_NO_ROOM);
	else
	{
		lm_hold    *hold;
		int64_t		limit = last_hold(lease)->h.must_end;

		lm_make_room(lm);
		hold = lm_take_hold(lm, now, lease, session, 1);
		hold->h.token = ask->token;
		hold->h.joined = true;
		hold->h.must_end = limit;
		lm_set_end(lm, hold);
		lm_save_hold(lm, hold);
		lm_answer_granted(lm, session, hold);
		lm_show_holder(lm, lease);
	}
}

/*
 * The session asks to join a lock.  While adopting, the previous manager may have saved the hold;
 * if not, lockmgr_adopted() gives the session one.
 */
void
lm_ask_join(lockmgr *lm, int64_t now, lm_session *session)
{
	const lm_hold *hold = lm->adopting ? lm_adopted_hold(session, session->request.seq) : NULL;

	session->role = session->request.ask.role;
	if (!lm->adopting)
		lm_join(lm, now, session);
	else if (hold != NULL && hold->lease->l.state == LEASE_HELD)
		lm_answer_granted(lm, session, hold);
}

/*
 * The session asks to leave its hold to the cluster.
 *
 *	 - With at_most_us, the hold is detached now, and ends after that time, whatever limit it
 *	   had.  It gets the number of this request: the session ends it by cancelling the request,
 *	   and no longer by letting go of the hold.
 *	 - With at_most_us = 0, the session keeps the hold until it ends: see lm_end_with_session().
 */
void
lm_ask_detach(lockmgr *lm, int64_t now, lm_session *session, lm_hold *hold)
{
	const lm_request *request = &session->request;

	if (hold == NULL || hold->lease->l.mode != MODE_EXCLUSIVE ||
		(hold->h.ends_at != 0 && hold->h.seq != request->seq) ||
		(hold->lease->l.state == LEASE_HELD && now >= hold->lease->l.valid_until) ||
		(must_end(now, hold) && hold->h.loss == LOSS_NONE))
		lm_answer_result(lm, session, LOCKMGR_NOT_HELD);
	else if (lm_is_lost(hold))
	{
		lockmgr_answer lost = {.result = LOCKMGR_LOST, .loss = hold->h.loss};

		if (request->ask.at_most_us != 0)
			lm_let_go(lm, now, hold);
		lm_answer(lm, session, &lost);
	}
	else if (hold->h.ends_at != 0)
		lm_answer_granted(lm, session, hold);	/* the previous manager has detached it, and did
												 * not answer */
	else if (request->ask.at_most_us == 0)
	{
		lockmgr_answer kept = {
			.result = LOCKMGR_RENEWED, .grant.valid_until = hold->lease->l.valid_until,
		};

		hold->lease->l.detached = true;
		lm_save(lm, hold->lease, false);
		/*
		 * The time gets no shorter: what works under the hold may believe for longer by an earlier
		 * call.
		 */
		if (hold->h.outlive_time_us < hold->lease->l.lease_ms * 1000)
			hold->h.outlive_time_us = hold->lease->l.lease_ms * 1000;
		lm_save_hold(lm, hold);
		lm_answer(lm, session, &kept);
	}
	else if (lm_detached_on(hold->lease) != NULL)
		lm_answer_result(lm, session, LOCKMGR_BUSY);
	else
	{
		hold->lease->l.detached = true;
		lm_save(lm, hold->lease, false);
		hold->h.seq = request->seq;
		hold->h.ends_at = now + request->ask.at_most_us;
		hold->h.must_end = 0;
		lm_save_hold(lm, hold);
		lm_answer_granted(lm, session, hold);
		lm_move_hold(hold, &lm->detached);
		lm_set_end(lm, hold);
		lm_show_holder(lm, hold->lease);
	}
}

/*
 * The hold's session has ended.  The hold ends, too, unless it outlives its session: then the
 * cluster keeps it for outlive_time_us from now.
 *
 * Work under such a hold goes on outside of the session, and may learn late that the session has
 * ended.  It has asked the session from time to time whether the lock is held, and believes each
 * answer for outlive_time_us at most.  The last answer came before the session's end, so nobody
 * believes for longer than outlive_time_us from now.  Renewals to other lengths do not change that.
 */
void
lm_end_with_session(lockmgr *lm, int64_t now, lm_hold *hold)
{
	lm_lease   *lease = hold->lease;
	lm_hold    *detached = lm_detached_on(lease);
	int64_t		ends_at = now + hold->h.outlive_time_us;

	if (hold->h.outlive_time_us == 0 || now >= lease->l.valid_until)
	{
		lm_let_go(lm, now, hold);
		return;
	}
	if (detached == NULL)
	{
		detached = hold;
		lm_move_hold(hold, &lm->detached);
	}
	if (detached->h.ends_at < ends_at)
	{
		detached->h.ends_at = ends_at;
		detached->h.must_end = 0;
		lm_save_hold(lm, detached);
		lm_set_end(lm, detached);
	}
	if (detached != hold)
		lm_let_go(lm, now, hold);
	else
		lm_show_holder(lm, lease);
}

/* The detached hold with the token of the request, or NULL. */
lm_hold *
lm_detached_hold(lockmgr *lm, const lock_ask *ask)
{
	const lm_lease *lease = lm_named_lease(lm, ask->lease_index, ask->lease_generation);

	return lease != NULL && has_token(lease, ask->token, ask->taker) ?
		lm_detached_on(lease) : NULL;
}

/* Is this a detached hold that a session of the slot has left to the cluster? */
bool
lm_is_detached_by(const lockmgr *lm, const lm_hold *hold, uint32_t slot)
{
	return hold->session == &lm->detached && hold->h.session.slot == slot;
}

/*
 * Handles the holds whose time is over.
 *
 *	 - A detached hold ends.
 *	 - A hold whose limit (at_most_us) is over is lost.  As after any loss, the session's
 *	   statement may still be running.  So the hold stays until the session acknowledges the
 *	   loss, or for the margin of the lease, as if the lease had been lost at its deadline.
 *	 - If the lease is lost already, its holds end with it.
 */
void
lm_end_holds(lockmgr *lm, int64_t now)
{
	heap_node  *top;

	while ((top = heap_take_due(&lm->ends, now)) != NULL)
	{
		lm_hold    *hold = LM_CONTAINER(top, lm_hold, end);

		if (hold->h.ends_at != 0 || hold->h.loss == LOSS_AT_MOST)
			lm_let_go(lm, now, hold);
		else if (hold->h.loss == LOSS_NONE)
		{
			hold->h.loss = LOSS_AT_MOST;
			lm_save_hold(lm, hold);
			lm_set_end(lm, hold);
			lm->host.lost(lm->host.arg, hold->index, &hold->h, &hold->lease->l, NULL);
			lm_answer_renewer(lm, hold, LOCKMGR_LOST);
		}
	}
}

/*-------------------------------------------------------------------------
 * Requests that a session has announced.
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
 * In a lock's queue an announced request is a struct lm_session of its own, with the id of the
 * session.  It never waits behind others.  A hold that is granted for it is the session's.
 *-------------------------------------------------------------------------
 */

/* The hold that the announced request was granted, valid or lost; NULL if there is none. */
lm_hold *
lm_announced_hold(lockmgr *lm, const lm_session *announced)
{
	lm_hold    *hold = announced->granted != LOCKMGR_NO_HOLD ?
		&lm->holds[announced->granted] : NULL;

	/* If the lease was lost, it may have been freed since to make room. */
	return hold != NULL && hold->session == announced->announced_by &&
		hold->h.seq == announced->request.seq ? hold : NULL;
}

static bool
is_named(const lm_lock *lock, const lockmgr_request *asked)
{
	return lock->name_len == asked->name_len &&
		memcmp(lock->name, asked->name, asked->name_len) == 0;
}

/* Is the request the first one that the session has announced, as far as can be seen? */
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

/*
 * While adopting: if the hold with the request's number was granted for another request, which the
 * session had announced with that number, ends it.
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

/*
 * While adopting: the hold that the request with this number was granted, valid or lost; or NULL.
 */
lm_hold *
lm_adopted_hold(const lm_session *session, uint64_t seq)
{
	lm_hold    *hold = session->holds;

	while (hold != NULL && hold->h.seq != seq)
		hold = hold->next;
	return hold;
}

/*
 * The session asks for this hold, or wants to end it, but the hold is lost: ends it, and answers.
 * A request whose hold was lost is not tried again, because two holds must not have the same
 * number.
 */
void
lm_answer_lost(lockmgr *lm, int64_t now, lm_session *session, lm_hold *hold)
{
	lockmgr_answer answer = {.result = LOCKMGR_LOST, .loss = hold->h.loss};

	lm_let_go(lm, now, hold);
	lm_answer(lm, session, &answer);
}

/*
 * If the request was announced, takes over what has become of the announced one, and returns true.
 * Else the request begins now.
 */
bool
lm_take_up(lockmgr *lm, int64_t now, lm_session *session, lm_lock *lock)
{
	lm_session *announced = session->announced;
	lm_hold    *hold;
	bool		busy;

	if (announced == NULL || announced->request.seq != session->request.seq)
		return false;
	hold = lm_announced_hold(lm, announced);
	busy = announced->outcome == LOCKMGR_BUSY;
	session->announced = announced->next_announced;
	if (announced->request.active)
	{
		lm_enqueue(lm, now, lock, session, true);
		lm_dequeue(lm, announced);
		free(announced);
		return true;
	}
	free(announced);
	if (hold == NULL && !busy)
		return false;			/* the announced one has failed: this one begins, and will say
								 * why */
	if (hold != NULL && hold->lease->l.state == LEASE_HELD && now >= hold->lease->l.valid_until)
		lm_lose(lm, now, lock, LOSS_UNREACHABLE, NULL);	/* before the timer does */
	lm_enqueue(lm, now, lock, session, false);
	if (busy)
		lm_answer_result(lm, session, LOCKMGR_BUSY);
	else if (hold->lease->l.state == LEASE_HELD)
		lm_answer_granted(lm, session, hold);
	else
		lm_answer_lost(lm, now, session, hold);
	lm_remember(lm, lock);		/* perhaps nobody needs the lock any more */
	return true;
}
