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
 * A hold may have a limit (at_most): then it is lost at that time, alone if others have holds
 * beside it.  Those who have joined an exclusive lock lose it with who has taken it.
 *
 * A leader's transaction joins the hold of its cluster's campaign.  When the campaign has
 * let go, transactions that have joined before may go on, and no other one joins.
 *
 * All this needs neither a request nor time: the lease is ours already.
 *-------------------------------------------------------------------------
 */

/*
 * The token may be an old one: then the lock has passed on, perhaps on the same lease.
 * All holds of an exclusive lease have one token.
 */
static bool
has_token(const lm_lease *lease, int64_t token, uint32_t taker)
{
	return lease->holds != NULL && lease->l.mode == MODE_EXCLUSIVE &&
		lease->holds->h.token == token && lease->holds->h.taker == taker;
}

/* Does the cluster lead, by this lease? */
static bool
is_campaigns(const lm_lease *lease)
{
	const lm_hold *hold = lease->holds;

	while (hold != NULL && !hold->h.campaign)
		hold = hold->lease_next;
	return hold != NULL;
}

/* Is the hold lost, because its session wanted it for no longer? */
static bool
must_end(int64_t now, const lm_hold *hold)
{
	return hold->h.must_end != 0 && now >= hold->h.must_end;
}

/* The hold that lasts for longest: one without a limit, for all that have one have the same. */
static const lm_hold *
last_hold(const lm_lease *lease)
{
	const lm_hold *hold = lease->holds;

	while (hold->h.must_end != 0 && hold->lease_next != NULL)
		hold = hold->lease_next;
	return hold;
}

/* The session gets a hold beside the one that it has named; as lm_grant(). */
void
lm_join(lockmgr *lm, int64_t now, lm_session *session)
{
	const lock_ask *ask = &session->request.ask;
	lm_lease   *lease = lm_named_lease(lm, ask->lease_index, ask->lease_generation);

	if (lease == NULL || now >= lease->l.valid_until ||
		!has_token(lease, ask->token, ask->taker) ||
		must_end(now, last_hold(lease)) ||
		(ask->campaign && !is_campaigns(lease)))
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

/* While adopting: the previous manager may have saved the hold; else it is made later. */
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
 * The hold becomes that of the request: the session ends it if it cancels the request,
 * but no longer by ending its hold.  With at_most_us = 0, it stays the session's; else that is
 * its only limit.
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
		lm_answer_granted(lm, session, hold);	/* the previous manager did not answer */
	else if (request->ask.at_most_us == 0)
	{
		lockmgr_answer kept = {
			.result = LOCKMGR_RENEWED, .grant.valid_until = hold->lease->l.valid_until,
		};

		hold->lease->l.detached = true;
		lm_save(lm, hold->lease, false);
		/* What works under it may believe since an earlier call. */
		if (hold->h.outlives_us < hold->lease->l.lease_ms * 1000)
			hold->h.outlives_us = hold->lease->l.lease_ms * 1000;
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
 * The hold's session has ended.  What works under a hold that outlives it may learn of this
 * late, and believes for outlives_us at most, counted from a question that the session has
 * answered: so from before now.  Renewals since then, to other lengths, change nothing.
 */
void
lm_end_with_session(lockmgr *lm, int64_t now, lm_hold *hold)
{
	lm_lease   *lease = hold->lease;
	lm_hold    *detached = lm_detached_on(lease);
	int64_t		ends_at = now + hold->h.outlives_us;

	if (hold->h.outlives_us == 0 || now >= lease->l.valid_until)
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

/* Did a session of the slot leave this hold to the cluster? */
bool
lm_is_detached_by(const lockmgr *lm, const lm_hold *hold, uint32_t slot)
{
	return hold->session == &lm->detached && hold->h.session.slot == slot;
}

/*
 * Ends the holds whose time is over.  One is lost if the session wanted it for no longer.  As after
 * any loss, the session's statement may still be running: the hold stays until the session
 * acknowledges that, or for as long as the end of a lease comes after its deadline.  Of a lost
 * lease, its holds end with it.
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
 * In a lock's queue an announced request is a struct lm_session of its own, with the
 * session's id, and it never waits behind others.  Its hold is the session's.
 *-------------------------------------------------------------------------
 */

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

static bool
is_named(const lm_lock *lock, const lockmgr_request *asked)
{
	return lock->name_len == asked->name_len &&
		memcmp(lock->name, asked->name, asked->name_len) == 0;
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

/*
 * The hold that the session asks for, or wants to end, is lost, and ends.  A request whose hold was
 * lost is not tried again: another hold must not have the same number.
 */
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
