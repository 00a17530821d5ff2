/*-------------------------------------------------------------------------
 *
 * lockmgr_turn.c
 *	  Turns: a lock passes from one session to the next, or is released.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

/*-------------------------------------------------------------------------
 * The next session's turn: an acquire, or a hand-over, for the first in the queue.
 *-------------------------------------------------------------------------
 */

/* Fills in the lock's pending acquire or hand-over for the first session in the queue. */
static void
write_for_first(const lockmgr *lm, int64_t now, lm_lock *lock)
{
	const lm_request *request = &lock->first->request;
	const lock_ask *ask = &request->ask;
	saved_lease *l = &lock->lease->l;

	l->pending.lease_ms = ask->lease_ms;
	l->pending.margin_us = ask->margin_us;
	l->pending.at_least_ms = ask->at_least_ms;
	l->pending.session = lock->first->id;
	l->pending.seq = request->seq;
	l->pending.permits = ask->permits;
	l->pending.limit = ask->limit;
	l->pending.has_holder = true;
	l->pending.has_data = request->data != NULL;
	l->deletes_item = ask->deletes_item;
	l->pending.must_exist = ask->must_exist;
	l->pending.has_attributes = request->attributes != NULL;
	l->holder = ask->holder;
	l->holder.since_ms = (now + lm->epoch_offset_us) / 1000;
}

/*
 * Starts the write that acquires the lock in the mode that the first session in the queue wants.
 * In shared mode:
 *
 *	 - If, as far as we know, clusters share the lock: JOIN adds our entry, REPLACE puts it in
 *	   the place of an old entry of ours.
 *	 - Else OPEN makes the item a shared one.
 */
static void
start_acquire(lockmgr *lm, int64_t now, lm_lock *lock)
{
	const lm_request *request = &lock->first->request;
	saved_lease *l = &lock->lease->l;
	const lm_entry *ours;

	if (request->ask.mode == MODE_EXCLUSIVE || !lm_can_join(lm, now, lock, request))
	{
		lm_new_write(lm, lock, DYNAMO_ACQUIRE, lm_overwritable(lm, now, lock));
		l->pending.kind = DYNAMO_SHARED_OPEN;
		return;
	}
	ours = lm_our_entry(lm, lock);
	lm_new_write(lm, lock, DYNAMO_ACQUIRE, ours != NULL ? ours->version : "");
	l->pending.kind = ours != NULL ? DYNAMO_SHARED_REPLACE : DYNAMO_SHARED_JOIN;
	l->pending.replaced = ours != NULL ? ours->permits : 0;
	memcpy(l->epoch, lock->owner, strnlen(lock->owner, sizeof(l->epoch) - 1));
	if (lock->lease_ms < request->ask.lease_ms)
		l->pending.shorter_ms = lock->lease_ms;
}

/*
 * No session of this cluster has the lock, and no call is in flight: acquires the lock for the
 * first session in the queue.
 */
void
lm_next_turn(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_enter(lm, lock, LOCK_IDLE, INT64_MAX);
	while (lock->first != NULL)
	{
		if (now < lock->stay_back_until)
		{
			lm_enter(lm, lock, LOCK_IDLE, lock->stay_back_until);
			lm_tell_watch(lm, lock);
			return;
		}
		if (lm_yields(lm, now, lock, &lock->first->request, lock->first->request.ask.permits))
		{
			lock->polling_since = now;
			if (lock->asked_at == 0)
				lock->asked_at = now;
			lm_enter(lm, lock, LOCK_POLLING, now);
			return;
		}
		if (lm_role_is_full(lm, lock->first))
		{
			lm_answer_result(lm, lock->first, LOCKMGR_ROLE_FULL);
			continue;
		}
		if (!lm_has_room(lm, lock->first))
		{
			lm_answer_result(lm, lock->first, LOCKMGR_NO_ROOM);
			continue;
		}
		lm_take_lease(lm, lock);
		lock->delete_at = 0;
		lock->look_deletes_item = false;	/* if the deletion waits for a free call, a look is
											 * sent in its place */
		lm_resume_run(now, lock);
		start_acquire(lm, now, lock);
		write_for_first(lm, now, lock);
		lm_enter(lm, lock, LOCK_ACQUIRING, INT64_MAX);
		lm_submit(lm, lock);
		return;
	}
	lock->asked_at = 0;			/* nobody waits for another cluster */
	lm_delete_if_due(lm, now, lock);
	lm_remember(lm, lock);
}

/*-------------------------------------------------------------------------
 * Releasing a lock, or passing it on to the next session of this cluster.
 *
 * Belief ends before a request is sent.  A hand-over is one request instead of a
 * release and an acquire.  It reserves tokens: as long as there are some, the lock
 * passes on without a request.
 *-------------------------------------------------------------------------
 */

/* No session believes in the lease any more, and the lease directory shows that. */
static void
end_belief(lockmgr *lm, lm_lease *lease)
{
	lm_set_lease_state(lm, lease, LEASE_RELEASING);
	lm_save(lm, lease, false);
}

/*
 * A session has let go of its hold, and others still have holds on the lease.  DynamoDB need not
 * confirm anything: the permits of the hold pass to the next session, or go back with the next
 * change.
 */
static void
still_shared(lockmgr *lm, int64_t now, lm_lease *lease)
{
	lm_lock    *lock = lease->lock;

	if (lease->l.state != LEASE_HELD)
		return;
	if (lease->l.mode == MODE_EXCLUSIVE)
	{
		lm_show_holder(lm, lease);
		lm_answer_releaser(lm, lock, LOCKMGR_RELEASED);
		return;
	}
	if (lock->first == NULL)
		lm_resume_run(now, lock);	/* if sessions wait, the run must end at its time */
	lm_note_let_go(now, lock);
	if (lockmgr_limited(lease->l.mode) && lock->first != NULL && !lm_in_run(now, lock))
		lm_end_run(now, lock);
	if (lock->state == LOCK_HELD)
		(void) lm_admit(lm, now, lock);
	lm_tell_watch(lm, lock);
	lm_answer_releaser(lm, lock, LOCKMGR_RELEASED);
}

/*
 * The session no longer wants the hold: it has released the lock, has ended, has cancelled the
 * request, or acknowledges the loss.
 */
void
lm_let_go(lockmgr *lm, int64_t now, lm_hold *hold)
{
	lm_lease   *lease = hold->lease;
	lm_lock    *lock = lease->lock;

	lm_answer_renewer(lm, hold, LOCKMGR_NOT_HELD);
	lm_put_hold(lm, hold);
	lm_update_detached(lm, lease);
	if (lease->holds != NULL)
	{
		still_shared(lm, now, lease);
		return;
	}
	if (lock == NULL)
	{
		lm_put_lease(lm, lease);
		return;
	}
	if (lock->state == LOCK_HELD)
	{
		lm_pass_on(lm, now, lock);
		return;
	}
	end_belief(lm, lease);
	if (lock->state == LOCK_LOST)
		lm_lost_ended(lm, lock);
	else
		lm_advance_retry(lm, now, lock);	/* RENEWING: the release follows when the renewal has ended */
}

/* Does the item have additional attributes, or does the first session in the queue want some? */
static bool
changes_attributes(const lm_lock *lock)
{
	return lock->lease->l.has_attributes || lock->first->request.attributes != NULL;
}

/*
 * May the first session in the queue get a hold on the lease as it is, without a request?  No if
 *
 *	 - it does not want the lock exclusively, or no reserved token is left;
 *	 - it wants another length of the lease, or a minimum (at_least_ms);
 *	 - it or the item has data or additional attributes;
 *	 - less than half of the lease is left, or no more than the session's margin.
 */
static bool
fits_lease(int64_t now, const lm_lock *lock)
{
	const saved_lease *l = &lock->lease->l;
	const lm_request *request = &lock->first->request;

	return request->ask.mode == MODE_EXCLUSIVE && l->next_token != 0 &&
		request->ask.lease_ms == l->lease_ms && !l->has_data && request->data == NULL &&
		!changes_attributes(lock) &&
		request->ask.at_least_ms == 0 &&
		now < lm_believed_end(l) - l->lease_ms * 1000 / 2 &&
		now < lm_believed_end(l) - request->ask.margin_us;
}

/*
 * Gives the first session in the queue a hold on the lease, without a request.  The item shows
 * that session from the next renewal on.
 */
static void
pass(lockmgr *lm, int64_t now, lm_lock *lock)
{
	saved_lease *l = &lock->lease->l;
	const lm_request *request = &lock->first->request;

	l->deletes_item = request->ask.deletes_item;
	l->margin_us = request->ask.margin_us;
	l->deadline = lm_believed_end(l) - l->margin_us;
	l->holder = request->ask.holder;
	l->holder.since_ms = (now + lm->epoch_offset_us) / 1000;
	l->stale_holder = true;
	lm_grant(lm, now, lock, lock->first);
	lm_answer_releaser(lm, lock, LOCKMGR_RELEASED);
}

/*
 * The lease is ours, and no session has a hold on it.  What becomes of it:
 *
 *	 - In shared mode, sessions get holds that fit the lease: see lm_admit().
 *	 - If the run lasts and the lease fits the next session, that one gets a hold without a
 *	   request.
 *	 - If only the lease does not fit, the next session gets the lock by a hand-over.
 *	 - Else the lock is released.
 *
 * A lock that is kept (keptUntil) is always released, also if no session was ever granted it:
 * DynamoDB would refuse the hand-over.
 */
void
lm_pass_on(lockmgr *lm, int64_t now, lm_lock *lock)
{
	bool		kept = lm_is_kept(lm, now, lock->lease->l.kept_until_ms);

	lm_note_let_go(now, lock);
	while (lock->first != NULL && lm_role_is_full(lm, lock->first))
		lm_answer_result(lm, lock->first, LOCKMGR_ROLE_FULL);
	if (lock->lease->l.mode != MODE_EXCLUSIVE)
	{
		if (lm_admit(lm, now, lock))
		{
			lm_answer_releaser(lm, lock, LOCKMGR_RELEASED);
			return;
		}
	}
	else if (lock->first != NULL && !kept && lm_in_run(now, lock) && fits_lease(now, lock))
	{
		pass(lm, now, lock);
		return;
	}
	end_belief(lm, lock->lease);
	if (lock->first != NULL)
	{
		/* A hand-over needs a token above the highest so far, and cannot change attributes. */
		if (lm_in_run(now, lock) && !kept && lock->top_token < INT64_MAX && !changes_attributes(lock) &&
			lock->lease->l.mode == MODE_EXCLUSIVE &&
			lock->first->request.ask.mode == MODE_EXCLUSIVE)
		{
			lm_new_write(lm, lock, DYNAMO_HAND_OVER, lock->lease->l.version);
			write_for_first(lm, now, lock);
			lm_enter(lm, lock, LOCK_HANDING_OVER, INT64_MAX);
			lm_submit(lm, lock);
			return;
		}
		if (!lm_in_run(now, lock))
			lm_end_run(now, lock);
	}
	lm_become_releasing(lm, lock, lock->lease->l.version);
}

void
lm_become_releasing(lockmgr *lm, lm_lock *lock, const char *expected)
{
	saved_lease *l = &lock->lease->l;
	int64_t		pending_end = l->pending.first_sent + l->pending.lease_ms * 1000;

	/* If the unsettled renewal or hand-over (l->stray) was applied, others count its lease. */
	if (l->stray[0] != '\0' && l->pending.op != DYNAMO_RELEASE && pending_end > l->lease_end)
		l->lease_end = pending_end;
	lm_new_write(lm, lock, DYNAMO_RELEASE, expected);
	lock->turned = false;
	l->pending.kind = lm_shared_by_others(lm, lock) ? DYNAMO_SHARED_LEAVE : DYNAMO_SHARED_LAST;
	lm_enter(lm, lock, LOCK_RELEASING, INT64_MAX);
	lm_submit(lm, lock);
}

/*
 * A write was refused, and the item in the result shows that nothing of ours is left in it: the
 * lease has ended.  A session that waits for its release gets LOCKMGR_RELEASED before the
 * deadline; after that, nobody knows what has ended the lease.
 */
void
lm_lease_gone(lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_result *result)
{
	lockmgr_result outcome = now < lock->lease->l.deadline ? LOCKMGR_RELEASED : LOCKMGR_FAILED;

	lm_drop_lease(lm, lock);
	lm_answer_releaser(lm, lock, outcome);
	lm_observe(lm, now, lock, &result->item, result->shared);
	lm_next_turn(lm, now, lock);
}

void
lm_hand_over_settled(lockmgr *lm, int64_t now, lm_lock *lock,
					 const dynamo_result *result)
{
	lm_lease   *lease = lock->lease;
	lm_session *session;

	if (result->status == DYNAMO_CONDITION_FAILED && !lm_stands(lm, &lease->l, result))
	{
		/*
		 * The item still has our version, so the hand-over was refused for another reason: the
		 * lock is kept, because our estimate of DynamoDB's clock has changed; or another cluster's
		 * bar has raised the token above our first one.
		 */
		if (!result->item.released &&
			strcmp(result->item.version, lease->l.pending.expected) == 0)
		{
			lm_raise_token(lock, result->item.token);
			if (lock->outcome_unknown)
				lm_retire(lm, lease->l.pending.version);
			lm_become_releasing(lm, lock, lease->l.version);
		}
		else
			lm_lease_gone(lm, now, lock, result);
		return;
	}

	lm_written(lm, lease);
	session = lm_pending_session(lm, lease);
	if (session != NULL && now < lease->l.deadline)
		lm_grant(lm, now, lock, session);
	else
	{
		lease->l.ends_kept = true;
		lm_pass_on(lm, now, lock);
	}
	lm_answer_releaser(lm, lock, LOCKMGR_RELEASED);
}

/*
 * In shared mode a release has two forms: LAST if we are the last cluster that shares the lock,
 * and LEAVE if we are not.  Turns the pending release from one into the other.
 */
void
lm_turn_release(lm_lock *lock)
{
	lease_write *pending = &lock->lease->l.pending;

	pending->kind = pending->kind == DYNAMO_SHARED_LAST ? DYNAMO_SHARED_LEAVE :
		DYNAMO_SHARED_LAST;
}

/*
 * The release was refused.  If the item has another version of ours, or, in shared mode, the
 * expected one, releases that, and returns true:
 *
 *	 - Exclusive: the version of a renewal or hand-over that was not settled (l->stray).
 *	 - Shared: that one, or the version of a refused change of permits that arrived late
 *	   (l->refused).
 *	 - Shared, the expected version: we were wrong about being the last cluster.  (The last one
 *	   to leave releases the item.)  Then the other form of the release is right, whatever we
 *	   know of the other entries.
 */
static bool
release_what_stands(lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_result *result)
{
	saved_lease *l = &lock->lease->l;
	const dynamo_entry *entry;
	dynamo_shared_kind kind = l->pending.kind;
	char		version[UUID_SIZE] = "";
	bool		same;

	if (l->mode == MODE_EXCLUSIVE)
	{
		if (l->stray[0] == '\0' || result->item.released ||
			strcmp(result->item.version, l->stray) != 0)
			return false;
		memcpy(version, l->stray, sizeof(version));
		l->stray[0] = '\0';
	}
	else
	{
		entry = lm_entry_in(lm, l->epoch, result);
		if (entry == NULL ||
			(strcmp(entry->version, l->pending.expected) != 0 &&
			 strcmp(entry->version, l->stray) != 0 && strcmp(entry->version, l->refused) != 0))
			return false;
		lm_observe_shared(lm, lock, now, result->shared);
		memcpy(version, entry->version, sizeof(version));
	}
	same = strcmp(version, l->pending.expected) == 0;
	lm_become_releasing(lm, lock, version);
	if (same)
	{
		l->pending.kind = kind;
		lm_turn_release(lock);
		lock->turned = true;
	}
	return true;
}

void
lm_release_settled(lockmgr *lm, int64_t now, lm_lock *lock,
				   const dynamo_result *result)
{
	saved_lease *l = &lock->lease->l;
	const dynamo_item *item = &result->item;
	bool		exclusive = l->mode == MODE_EXCLUSIVE;
	lockmgr_result outcome = LOCKMGR_RELEASED;

	if (result->status == DYNAMO_CONDITION_FAILED &&
		strcmp(item->version, l->pending.version) != 0)
	{
		if (release_what_stands(lm, now, lock, result))
			return;
		if (now >= l->deadline)
			outcome = LOCKMGR_FAILED;
	}
	else
	{
		if (exclusive)
			lm_note_others_mark(lm, now, lock, item);
		lm_delete_later(lm, now, lock);
	}
	lm_drop_lease(lm, lock);
	lm_answer_releaser(lm, lock, outcome);
	if (result->status == DYNAMO_CONDITION_FAILED || (!exclusive && item->exists))
		lm_observe(lm, now, lock, item, result->shared);
	else
	{
		lm_observe_shared(lm, lock, now, NULL);
		lm_note_attributes(lock, NULL); /* the release removed them, if it knew them: see
										 * "Additional attributes" in doc/internals/protocol.md */
	}
	lm_next_turn(lm, now, lock);
}

/*
 * A release or a hand-over has failed: repeats it, or gives up.
 *
 *	 - A hand-over is given up when others may take the lock over, whether the item has the lease
 *	   before it or the one that it writes.
 *	 - A release is repeated until no copy of an earlier write of ours can arrive any more.  Such
 *	   a copy would replace the version, and hold the lock for nobody for another lease.
 */
void
lm_release_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	saved_lease *l = &lock->lease->l;
	int64_t		give_up_at = l->lease_end + LM_LATE_US;

	if (l->pending.op == DYNAMO_HAND_OVER)
	{
		int64_t		pending_end = l->pending.first_sent + l->pending.lease_ms * 1000;

		give_up_at = pending_end > l->lease_end ? pending_end : l->lease_end;
	}
	lm_fail_impatient_releaser(lm, now, lock);
	lm_fail_impatient_waiters(lm, now, lock);
	if (now < give_up_at)
	{
		heap_set(&lm->timers, &lock->timer, lm_release_again_at(lm, now, lock));
		return;
	}
	if (l->pending.op == DYNAMO_HAND_OVER)
	{
		/* The item has the version before the hand-over or the hand-over's own: releases either. */
		memcpy(l->stray, l->pending.version, sizeof(l->stray));
		lm_become_releasing(lm, lock, l->version);
		return;
	}
	/* The item may have any of these versions: our next acquire takes it over at once. */
	lm_retire(lm, l->pending.expected);
	if (l->stray[0] != '\0')
		lm_retire(lm, l->stray);
	if (l->refused[0] != '\0')
		lm_retire(lm, l->refused);
	lm_drop_lease(lm, lock);
	lm_fail_releaser(lm, lock);
	lm_delay_acquire(lm, now, lock);
	lm_next_turn(lm, now, lock);
}

/*
 * The loss of the lease was acknowledged, or the lease is over: releases what the item may still
 * have of it.
 */
void
lm_lost_ended(lockmgr *lm, lm_lock *lock)
{
	if (lock->call == NULL)		/* else lost_renewal_ended() comes back here */
		lm_become_releasing(lm, lock, lock->lease->l.version);
}

/*-------------------------------------------------------------------------
 * Deleting the item of a released lock, if its holder wanted that.
 *
 * Without the item, only time keeps tokens rising.  A token is a little ahead of DynamoDB's
 * clock, so soon after a deletion another cluster could get a lower one.  Therefore the item is
 * deleted some time after the release, when its tokens are certainly in the past, and only if
 * nobody has acquired the lock by then.
 *
 * How long: another cluster repeats an acquire, with the token of its first copy, for its
 * retry timeout.  We wait for twice our own, so the other cluster's may be twice as long as ours.
 * By then late copies of writes are most likely gone, too.
 *
 * A deletion that is due later is forgotten with the worker, or when many other locks are
 * remembered: then the item stays.
 *-------------------------------------------------------------------------
 */

#define DELETE_AFTER_MIN_US	INT64_C(10000000)

static int64_t
delete_after_us(const lockmgr *lm)
{
	int64_t		us = 2 * lm->retry_timeout_us;

	return us < DELETE_AFTER_MIN_US ? DELETE_AFTER_MIN_US : us;
}

/*
 * The pending release is confirmed, and the lock still has its lease: sets the time of the
 * deletion. As long as keptUntil keeps the lock from others, the item must stay.
 */
void
lm_delete_later(const lockmgr *lm, int64_t now, lm_lock *lock)
{
	const saved_lease *l = &lock->lease->l;
	int64_t		kept_end = l->ends_kept ? now : lm_kept_end(lm, l->kept_until_ms);

	if (!l->deletes_item || l->uncertain)
		return;
	memcpy(lock->delete_version, l->pending.version, sizeof(lock->delete_version));
	lock->delete_token = l->last_token;
	lock->delete_at = (kept_end > now ? kept_end : now) + delete_after_us(lm);
}

/* No session of this cluster wants the lock: sends the deletion if it is due. */
void
lm_delete_if_due(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->delete_at == 0 || now < lock->delete_at)
		return;
	lock->delete_at = 0;
	/*
	 * If tokens are still ahead of DynamoDB's clock, only the item makes the next one higher: it
	 * stays.
	 */
	if (lock->top_token >= now + lm->epoch_offset_us - DELETE_AFTER_MIN_US / 2)
		return;
	lock->look_deletes_item = true;
	(void) lm_get_lock(lm, lock->name, lock->name_len); /* the call points to the lock, so the
														 * lock must not be forgotten */
	lm_look(lm, lock);
}

/*
 * The deletion's call has ended.  A refusal means that somebody has acquired the lock or deleted
 * the item: then there is nothing more to do.
 */
void
lm_delete_settled(const lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_result *result)
{
	if (lock->lease == NULL && dynamo_is_transient(result->status))
		lock->delete_at = now + delete_after_us(lm);
}
