/*-------------------------------------------------------------------------
 *
 * lockmgr_renew.c
 *	  Renewing a lease, losing it.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

/* What DynamoDB did with a renewal. */
typedef enum outcome
{
	RENEWED,
	KEPT,						/* a change of permits was refused, the lease stays */
	GONE
} outcome;

/*
 * What became of the lock's renewal, by a settled result.  When DynamoDB refuses a change of
 * permits because there is no room, the lease stays.  There are two cases:
 *
 *	 - Our entry has our version.  A late copy of the refused change may be applied yet, so its
 *	   nonce is kept in l->refused.
 *	 - Our entry has the nonce of an earlier change that was refused: a late copy of that was
 *	   applied. We go on from that version, and the next renewal gives back the permits that are
 *	   too many.
 */
static outcome
outcome_of(const lockmgr *lm, lm_lease *lease, const dynamo_result *result)
{
	saved_lease *l = &lease->l;
	const dynamo_entry *entry = l->mode != MODE_EXCLUSIVE ?
		lm_entry_in(lm, l->epoch, result) : NULL;

	if (result->status == DYNAMO_OK || lm_stands(lm, l, result))
	{
		lm_written(lm, lease);
		return RENEWED;
	}
	if (entry == NULL)
		return GONE;
	if (strcmp(entry->version, l->version) == 0)
		memcpy(l->refused, l->pending.version, sizeof(l->refused));
	else if (l->refused[0] != '\0' && strcmp(entry->version, l->refused) == 0)
	{
		memcpy(l->version, l->refused, sizeof(l->version));
		l->permits = entry->permits;
		l->limit = INT32_MAX;	/* so that no permit passes on */
		l->refused[0] = '\0';
	}
	else
		return GONE;
	l->pending.version[0] = '\0';
	return KEPT;
}

/*
 * The lease was lost during its renewal, whose call has ended now.  The rest of the lease is
 * released now if the loss is acknowledged, else when it is acknowledged or the lease is over.
 */
static void
lost_renewal_ended(lockmgr *lm, lm_lock *lock)
{
	if (lock->lease->l.state == LEASE_RELEASING)
		lm_lost_ended(lm, lock);
	else
		heap_set(&lm->timers, &lock->timer, lock->lease->l.lease_end);
}

static lease_loss
loss_of(const lockmgr *lm, const saved_lease *l, const dynamo_item *item)
{
	if (!item->exists)
		return LOSS_DELETED;
	if (item->released &&
		strcmp(item->owner, l->mode == MODE_EXCLUSIVE ? lm->owner : l->epoch) == 0)
		return LOSS_RELEASED;
	return LOSS_TAKEN;
}

/* The renewal is settled in time: the lease is valid until its deadline. */
static void
renewed(lockmgr *lm, int64_t now, lm_lock *lock, outcome what)
{
	lm_lease   *lease = lock->lease;
	saved_lease *l = &lease->l;
	lm_session *session;

	l->valid_until = l->deadline;
	l->renewals += what == RENEWED;
	lm_save(lm, lease, false);
	if (l->mode == MODE_EXCLUSIVE)
		lm_become_held(lm, lock);
	else
	{
		if (what == RENEWED)
			lm_give_permits(lm, now, lock);
		(void) lm_admit(lm, now, lock);
	}
	session = lm_payload_session(lm, lease);
	if (session != NULL)
		lm_free_payload(&session->request); /* the data is written */
	if (lm_has_renewer(lease) &&
		(what == KEPT || lm_data_renewer(lease) != NULL ||
		 (lock->wanted_lease_ms != 0 && lock->wanted_lease_ms != l->lease_ms)))
		heap_set(&lm->renewals, &lock->renewal, now);
	else
		lm_answer_renewers(lm, lease, LOCKMGR_RENEWED);
}

void
lm_renewal_settled(lockmgr *lm, int64_t now, lm_lock *lock,
				   const dynamo_result *result)
{
	lm_lease   *lease = lock->lease;
	saved_lease *l = &lease->l;
	outcome		what;
	lm_session *asker;			/* the session for which the renewal asked for more permits, if
								 * it still waits; or NULL */

	/* After the deadline the lease is lost, even if the timer has not run yet. */
	if (l->state == LEASE_HELD && now >= l->valid_until)
		lm_lose(lm, now, lock, LOSS_UNREACHABLE, NULL);
	asker = lm_pending_session(lm, lease);
	if (asker != NULL)
		asker->request.refused_once = true;
	what = outcome_of(lm, lease, result);
	lm_observe_shared(lm, lock, now, result->shared);
	lm_note_mark(lm, now, lock, &result->item);
	if (what == KEPT && asker != NULL)
	{
		/* The session was refused permits.  It is the first in the queue. */
		lm_note_waits(lock);
		if (result->shared->wrong != NULL)
			lm_answer_bad_item(lm, asker, result->shared->wrong);
		else if (lm_wanted_change(lm, now, lock) <= 0)
			asker->request.refusals = 0;
		else
			lm_refused_in_vain(lm, now, lock, asker, DYNAMO_RENEW, ++asker->request.refusals);
	}

	if (what == GONE && l->state == LEASE_HELD)
		lm_lose(lm, now, lock, loss_of(lm, l, &result->item), result);
	else if (what == GONE)
		lm_lease_gone(lm, now, lock, result);
	else if (lock->state == LOCK_LOST)
	{
		l->stray[0] = '\0';		/* the item has our confirmed version */
		lm_save(lm, lease, false);
		lost_renewal_ended(lm, lock);
	}
	else if (l->state != LEASE_HELD)
		lm_pass_on(lm, now, lock);	/* the sessions have let go meanwhile */
	else if (now >= l->deadline)
		lm_lose(lm, now, lock, LOSS_STOOD_STILL, NULL); /* the older deadline is not over:
														 * DynamoDB's clock has moved the new
														 * one before it */
	else
		renewed(lm, now, lock, what);
}

/*
 * The lease is lost: belief ends now.  "by" is the result whose item shows that the lock is not
 * ours any more; or NULL if no item shows that, because no renewal was confirmed in time or we
 * give the lock up ourselves.  With NULL, the item may still have our version.  It is not released
 * before the sessions have acknowledged the loss or the lease is over, because a session's
 * statement may still be running.
 */
void
lm_lose(lockmgr *lm, int64_t now, lm_lock *lock, lease_loss loss,
		const dynamo_result *by)
{
	lm_lease   *lease = lock->lease;
	saved_lease *l = &lease->l;

	lm_set_lease_state(lm, lease, LEASE_LOST);
	if (by == NULL)
	{
		lm_enter(lm, lock, LOCK_LOST, l->lease_end);
		memcpy(l->stray, l->pending.version, sizeof(l->stray));
	}
	/*
	 * The holds, with the reason, are saved first: a session that finds the lease not valid reads
	 * it.
	 */
	for (lm_hold *hold = lease->holds; hold != NULL; hold = hold->lease_next)
	{
		if (hold->h.loss == LOSS_NONE)
			hold->h.loss = loss;
		lm_save_hold(lm, hold);
	}
	lm_save(lm, lease, false);
	for (const lm_hold *hold = lease->holds; hold != NULL; hold = hold->lease_next)
	{
		if (hold->h.loss == loss)	/* a hold with another reason was lost before */
			lm->host.lost(lm->host.arg, hold->index, &hold->h, l,
						  by != NULL ? &by->item : NULL);
	}
	lm_answer_renewers(lm, lease, LOCKMGR_LOST);
	while (lock->first != NULL && lock->first->request.kind == LOCKMGR_TRY)
		lm_answer_result(lm, lock->first, LOCKMGR_BUSY);
	if (by != NULL)
		lm_lease_gone(lm, now, lock, by);
}

/* If the lease has passed on, its hold has another token, and keeps the lease. */
void
lockmgr_revoke(lockmgr *lm, int64_t now, uint32_t lease_index, uint32_t lease_generation,
			   int64_t token)
{
	lm_lease   *lease = lm_named_lease(lm, lease_index, lease_generation);

	if (lease != NULL && lease->l.state == LEASE_HELD && lease->holds != NULL &&
		lease->holds->h.token == token)
		lm_lose(lm, now, lease->lock, LOSS_RESIGNED, NULL);
	lm_pump(lm, now);
}

static void
fail_impatient_renewers(lockmgr *lm, int64_t now, lm_lock *lock)
{
	for (const lm_hold *hold = lock->lease->holds; hold != NULL; hold = hold->lease_next)
	{
		if (!lm_is_renewer(hold) || !lm_out_of_patience(lm, now, lock, hold->session))
			continue;
		lock->wanted_lease_ms = 0;
		lm_answer_failed(lm, hold->session, lock);
	}
}

/* The renewal was not applied, or its outcome is unknown: repeats it, or gives up. */
void
lm_renewal_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_lease   *lease = lock->lease;
	saved_lease *l = &lease->l;

	if (lock->state == LOCK_LOST)
	{
		lost_renewal_ended(lm, lock);
		return;
	}
	fail_impatient_renewers(lm, now, lock);
	lm_fail_impatient_waiters(lm, now, lock);
	lm_fail_impatient_releaser(lm, now, lock);

	if (l->state == LEASE_HELD && now >= l->valid_until)
		lm_lose(lm, now, lock, LOSS_UNREACHABLE, NULL);
	else if (l->state != LEASE_HELD && (now >= l->deadline || !lock->outcome_unknown))
	{
		/*
		 * The sessions have let go: releases the confirmed version; if that is refused because the
		 * renewal was applied, the renewal's (l->stray).
		 */
		if (lock->outcome_unknown)
			memcpy(l->stray, l->pending.version, sizeof(l->stray));
		lm_become_releasing(lm, lock, l->version);
	}
	else
		heap_set(&lm->renewals, &lock->renewal, lm_renew_again_at(lm, now, lock));
}
