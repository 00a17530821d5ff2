/*-------------------------------------------------------------------------
 *
 * lockmgr_renew.c
 *	  Renewing a lease, losing it.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

/* A renewal is settled, but its session has let go of the lease. */
static void
unwanted_renewal_settled(lockmgr *lm, int64_t now, lm_lock *lock, bool done,
						 const dynamo_item *item)
{
	lockmgr_result outcome;

	if (done)
	{
		lm_pass_on(lm, now, lock);
		return;
	}
	outcome = now < lock->lease->l.deadline ? LOCKMGR_RELEASED : LOCKMGR_FAILED;
	lm_drop_lease(lm, lock);
	lm_answer_releaser(lm, lock, outcome);
	lm_observe(lm, now, lock, item);
	lm_next_turn(lm, now, lock);
}

/* A renewal is settled after its lease was lost. */
static void
late_renewal_settled(lockmgr *lm, int64_t now, lm_lock *lock, bool done,
					 const dynamo_item *item)
{
	if (!done)
	{
		lm_drop_lease(lm, lock);
		lm_observe(lm, now, lock, item);
		lm_next_turn(lm, now, lock);
		return;
	}
	lock->lease->l.stray[0] = '\0';
	lm_save(lm, lock->lease, false);
	if (lock->lease->l.state == LEASE_RELEASING || now >= lock->lease->l.lease_end)
		lm_lost_ended(lm, lock);
	else
		heap_set(&lm->timers, &lock->timer, lock->lease->l.lease_end);
}

static lease_loss
loss_of(const lockmgr *lm, const dynamo_item *item)
{
	if (!item->exists)
		return LOSS_DELETED;
	if (item->released && strcmp(item->owner, lm->owner) == 0)
		return LOSS_RELEASED;
	return LOSS_TAKEN;
}

void
lm_renewal_settled(lockmgr *lm, int64_t now, lm_lock *lock,
				   const dynamo_result *result)
{
	lm_lease   *lease = lock->lease;
	struct lease *l = &lease->l;
	const dynamo_item *item = &result->item;
	bool		done = result->status == DYNAMO_OK ||
		(!item->released && strcmp(item->version, l->pending.version) == 0);

	/* After the deadline the lease is lost, even if the timer has not run yet. */
	if (l->state == LEASE_HELD && now >= l->valid_until)
		lm_lose(lm, now, lock, LOSS_UNREACHABLE, NULL);
	if (done)
		lm_written(lease);

	if (lock->state == LOCK_LOST)
		late_renewal_settled(lm, now, lock, done, item);
	else if (l->state != LEASE_HELD)
		unwanted_renewal_settled(lm, now, lock, done, item);
	else if (!done)
		lm_lose(lm, now, lock, loss_of(lm, item), item);
	else if (now >= l->deadline)
		lm_lose(lm, now, lock, LOSS_UNREACHABLE, NULL);
	else
	{
		l->valid_until = l->deadline;
		l->renewals++;
		lm_save(lm, lease, false);
		lm_schedule_renewal(lm, lock);
		if (lock->renewer != NULL && lock->wanted_lease_ms != 0 &&
			lock->wanted_lease_ms != l->lease_ms)
			heap_set(&lm->renewals, &lock->renewal, now);
		else
			lm_answer_renewer(lm, lock, LOCKMGR_RENEWED);
	}
}

/*
 * The lease is lost: belief ends now.  If DynamoDB could not be reached, our
 * version may still be in the item; it is not released before the session has
 * acknowledged the loss or the lease is over, because the session's statement may
 * still be running.
 */
void
lm_lose(lockmgr *lm, int64_t now, lm_lock *lock, lease_loss loss,
		const dynamo_item *by)
{
	lm_lease   *lease = lock->lease;
	struct lease *l = &lease->l;

	heap_set(&lm->renewals, &lock->renewal, INT64_MAX);
	lm_set_lease_state(lm, lease, LEASE_LOST);
	lease->hold->h.loss = loss;
	if (loss == LOSS_UNREACHABLE)
	{
		lm_enter(lock, LOCK_LOST);
		memcpy(l->stray, l->pending.version, sizeof(l->stray));
		heap_set(&lm->timers, &lock->timer, l->lease_end);
	}
	/* The reason first: a session that sees that the lease is not valid reads it. */
	lm_save_hold(lm, lease->hold);
	lm_save(lm, lease, false);
	lm->host.lost(lm->host.arg, lease->hold->index, &lease->hold->h, l, by);
	lm_answer_renewer(lm, lock, LOCKMGR_LOST);
	if (loss != LOSS_UNREACHABLE)
	{
		lm_drop_lease(lm, lock);
		lm_observe(lm, now, lock, by);
		lm_next_turn(lm, now, lock);
	}
}

/* The renewal was not applied, or its outcome is unknown: repeats it, or gives up. */
void
lm_renewal_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_lease   *lease = lock->lease;
	struct lease *l = &lease->l;

	if (lock->state == LOCK_LOST)
	{
		if (l->state == LEASE_RELEASING || now >= l->lease_end)
			lm_lost_ended(lm, lock);
		else
			heap_set(&lm->timers, &lock->timer, l->lease_end);
		return;
	}
	if (lock->renewer != NULL && lm_out_of_patience(lm, now, lock, lock->renewer))
	{
		lm_session *session = lock->renewer;

		lock->renewer = NULL;
		lock->wanted_lease_ms = 0;
		lm_answer_failed(lm, session, lock);
	}
	lm_fail_impatient_waiters(lm, now, lock);
	lm_fail_impatient_releaser(lm, now, lock);

	if (l->state == LEASE_HELD && now >= l->valid_until)
		lm_lose(lm, now, lock, LOSS_UNREACHABLE, NULL);
	else if (l->state != LEASE_HELD && (now >= l->deadline || !lock->maybe))
	{
		/* Let go: release the confirmed version, then perhaps the renewal's. */
		if (lock->maybe)
			memcpy(l->stray, l->pending.version, sizeof(l->stray));
		lm_release(lm, lock, l->version);
	}
	else
		heap_set(&lm->renewals, &lock->renewal,
				 lm_retry_at(lm, now, lock, l->deadline));
}
