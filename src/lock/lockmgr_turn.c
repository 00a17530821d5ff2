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

/* Makes the lock's pending acquire or hand-over one for the first in the queue. */
static void
write_for_first(const lockmgr *lm, int64_t now, lm_lock *lock)
{
	const lm_request *request = &lock->first->request;
	const lock_ask *ask = &request->ask;
	lease	   *l = &lock->lease->l;

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
 * Starts the write that acquires the lock as the first in the queue wants it.  To share it, we
 * join those who do; if there are none that we know of, we open the shared mode.
 */
static void
start_acquire(lockmgr *lm, int64_t now, lm_lock *lock)
{
	const lm_request *request = &lock->first->request;
	lease	   *l = &lock->lease->l;
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
 * No session of this cluster has the lock, and no call is in flight: acquires it
 * for the first in the queue.
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
		lock->look_deletes_item = false;	/* what waits to be sent is a look then */
		lm_resume_run(now, lock);
		start_acquire(lm, now, lock);
		write_for_first(lm, now, lock);
		lm_enter(lm, lock, LOCK_ACQUIRING, INT64_MAX);
		lm_submit(lm, lock);
		return;
	}
	lock->asked_at = 0;			/* nobody waits */
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

/* Nobody believes in the lease any more. */
static void
end_belief(lockmgr *lm, lm_lease *lease)
{
	lm_set_lease_state(lm, lease, LEASE_RELEASING);
	lm_save(lm, lease, false);
}

/*
 * Other sessions still have a hold on the lease.  Nothing has to be confirmed: the
 * session's permits pass on, or go back with the next change.
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
		lm_resume_run(now, lock);	/* while somebody waits, a run ends in time */
	lm_note_let_go(now, lock);
	if (lockmgr_limited(lease->l.mode) && lock->first != NULL && !lm_in_run(now, lock))
		lm_end_run(now, lock);
	if (lock->state == LOCK_HELD)
		(void) lm_admit(lm, now, lock);
	lm_tell_watch(lm, lock);
	lm_answer_releaser(lm, lock, LOCKMGR_RELEASED);
}

/*
 * The session no longer wants the hold: it has released the lock, has ended, has
 * cancelled the request, or acknowledges the loss.
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
		lm_hurry(lm, now, lock);	/* RENEWING: the renewal must end first */
}

/* Has the lock additional attributes, or does the first in the queue want some? */
static bool
changes_attributes(const lm_lock *lock)
{
	return lock->lease->l.has_attributes || lock->first->request.attributes != NULL;
}

/*
 * May the first in the queue have a hold on the lease as it is?  Not if it wants
 * another length, other data or other attributes, or if the lease needs a renewal.
 */
static bool
fits_lease(int64_t now, const lm_lock *lock)
{
	const struct lease *l = &lock->lease->l;
	const lm_request *request = &lock->first->request;

	return request->ask.mode == MODE_EXCLUSIVE && l->next_token != 0 &&
		request->ask.lease_ms == l->lease_ms && !l->has_data && request->data == NULL &&
		!changes_attributes(lock) &&
		request->ask.at_least_ms == 0 &&
		now < lm_believed_end(l) - l->lease_ms * 1000 / 2 &&
		now < lm_believed_end(l) - request->ask.margin_us;
}

/*
 * Gives the first in the queue a hold on the lease, without a request.  The item
 * shows the new holder after the next renewal.
 */
static void
pass(lockmgr *lm, int64_t now, lm_lock *lock)
{
	struct lease *l = &lock->lease->l;
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
 * The lock is ours, and nobody has a hold on it: passes it on to the next session,
 * by a hand-over if need be, or releases it.  As long as it is kept, it is released,
 * even if nobody was granted it: the hand-over would be refused.
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
		/* A hand-over needs a token beyond the highest so far, and changes no attributes. */
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
	struct lease *l = &lock->lease->l;
	int64_t		pending_end = l->pending.first_sent + l->pending.lease_ms * 1000;

	/* The item may have the version of an unsettled renewal or hand-over: see l->stray. */
	if (l->stray[0] != '\0' && l->pending.op != DYNAMO_RELEASE && pending_end > l->lease_end)
		l->lease_end = pending_end;
	lm_new_write(lm, lock, DYNAMO_RELEASE, expected);
	lock->turned = false;
	l->pending.kind = lm_shared_by_others(lm, lock) ? DYNAMO_SHARED_LEAVE : DYNAMO_SHARED_LAST;
	lm_enter(lm, lock, LOCK_RELEASING, INT64_MAX);
	lm_submit(lm, lock);
}

/*
 * A write was refused by this item, in which nothing of ours is left: the lease has ended.  For
 * who waits for its release, that is one, unless the deadline has passed.
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
		 * It is still ours, but kept: the estimate of DynamoDB's clock has changed; or another
		 * cluster has barred an acquire with a token that is not below ours.
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

/* In shared mode, the pending release takes us for the last one, or no longer. */
void
lm_turn_release(lm_lock *lock)
{
	lease_write *pending = &lock->lease->l.pending;

	pending->kind = pending->kind == DYNAMO_SHARED_LAST ? DYNAMO_SHARED_LEAVE :
		DYNAMO_SHARED_LAST;
}

/*
 * The release was refused.  If the item has a version of ours, releases that: of a
 * renewal that was not settled, or of a refused change of permits that arrived late.
 * In shared mode, also the version that was expected: the last cluster to leave
 * releases the item, and we may have been wrong about being that.  Then the other form is
 * right, whatever we make of the other entries.
 */
static bool
release_what_stands(lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_result *result)
{
	struct lease *l = &lock->lease->l;
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
	struct lease *l = &lock->lease->l;
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
			lm_hear(lm, now, lock, item);
		lm_delete_later(lm, now, lock);
	}
	lm_drop_lease(lm, lock);
	lm_answer_releaser(lm, lock, outcome);
	if (result->status == DYNAMO_CONDITION_FAILED || (!exclusive && item->exists))
		lm_observe(lm, now, lock, item, result->shared);
	else
	{
		lm_observe_shared(lm, lock, now, NULL);
		lm_note_attributes(lock, NULL); /* removed; or not known, see doc/internals/protocol.md */
	}
	lm_next_turn(lm, now, lock);
}

/*
 * A release or a hand-over has failed: repeats it, or gives up.  A hand-over is not repeated
 * once others may take the lock over, whatever the item contains.  A release is repeated until no
 * copy of an earlier write can replace the version any more, which would hold the lock for
 * nobody for another lease.
 */
void
lm_release_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	struct lease *l = &lock->lease->l;
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
		/* The item has the old version or the new one, while no session here holds the lock. */
		memcpy(l->stray, l->pending.version, sizeof(l->stray));
		lm_become_releasing(lm, lock, l->version);
		return;
	}
	/* Any of these may be in the item. */
	lm_retire(lm, l->pending.expected);
	if (l->stray[0] != '\0')
		lm_retire(lm, l->stray);
	if (l->refused[0] != '\0')
		lm_retire(lm, l->refused);
	lm_drop_lease(lm, lock);
	lm_fail_releaser(lm, lock);
	lm_stay_back(lm, now, lock);
	lm_next_turn(lm, now, lock);
}

/* A lost lease was acknowledged, or is over: releases what may be left of it. */
void
lm_lost_ended(lockmgr *lm, lm_lock *lock)
{
	if (lock->call == NULL)		/* else when the renewal's call ends */
		lm_become_releasing(lm, lock, lock->lease->l.version);
}

/*-------------------------------------------------------------------------
 * Deleting the item of a released lock, if its holder wanted that.
 *
 * Without the item, only time keeps tokens rising: a token is a little ahead of
 * DynamoDB's clock, and a later acquire by another cluster could get a lower one.
 * So the lock is released as ever, and the item is deleted when its tokens are
 * certainly in the past, unless somebody has acquired the lock by then.  Another
 * cluster repeats an acquire, with the token of its first copy, for its retry timeout;
 * we wait twice our own, so the two may differ by that.  Then late copies of writes are
 * most likely gone, too.
 *
 * That is forgotten with the worker, and when many other locks are remembered: the
 * item stays.
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
 * The pending release is confirmed; its lease is still the lock's.  The item stays as
 * long as it keeps the lock from others.
 */
void
lm_delete_later(const lockmgr *lm, int64_t now, lm_lock *lock)
{
	const struct lease *l = &lock->lease->l;
	int64_t		kept_end = l->ends_kept ? now : lm_kept_end(lm, l->kept_until_ms);

	if (!l->deletes_item || l->uncertain)
		return;
	memcpy(lock->delete_version, l->pending.version, sizeof(lock->delete_version));
	lock->delete_token = l->last_token;
	lock->delete_at = (kept_end > now ? kept_end : now) + delete_after_us(lm);
}

/* Nobody here wants the lock. */
void
lm_delete_if_due(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->delete_at == 0 || now < lock->delete_at)
		return;
	lock->delete_at = 0;
	/* If its tokens were ahead of the clock, only the item keeps the next ones above them. */
	if (lock->top_token >= now + lm->epoch_offset_us - DELETE_AFTER_MIN_US / 2)
		return;
	lock->look_deletes_item = true;
	(void) lm_get_lock(lm, lock->name, lock->name_len); /* a call points to it now */
	lm_look(lm, lock);
}

/* It was refused if somebody has acquired the lock, or has deleted the item. */
void
lm_delete_settled(const lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_result *result)
{
	if (lock->lease == NULL && dynamo_is_transient(result->status))
		lock->delete_at = now + delete_after_us(lm);
}
