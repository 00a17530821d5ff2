/*-------------------------------------------------------------------------
 *
 * lockmgr_adopt.c
 *	  The lock manager: adoption.
 *
 * A new worker adopts what the previous one had saved: leases, with writes that may not be
 * settled, and holds.  Then the worker asks the sessions' unanswered requests again, and
 * lockmgr_adopted() goes on where the previous manager stopped.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

/*
 * Memory is short, so the manager cannot go on with this lease.  It is lost: nobody renews it, and
 * it expires.
 */
static void
abandon_lease(lockmgr *lm, lm_lease *lease)
{
	lm_set_lease_state(lm, lease, LEASE_LOST);
	lm_save(lm, lease, false);
}

void
lockmgr_adopt(lockmgr *lm, uint32_t index, const saved_lease *saved,
			  const char *name, size_t name_len)
{
	lm_lease   *lease = &lm->leases[index];
	bool		attached = saved->state != LEASE_LOST || saved->version[0] != '\0';
	lm_lock    *lock;

	lease->l = *saved;
	if (saved->state == LEASE_FREE)
		return;
	lm->leases_in_use++;
	lm->leases_held += saved->state == LEASE_HELD;
	lock = attached ? lm_get_lock(lm, name, name_len) : NULL;
	if (lock != NULL && saved->state == LEASE_BARRING)
	{
		lm_attach_bar(lm, 0, lease, lock);	/* its next step is due at once */
		return;
	}
	if (lock == NULL || lock->lease != NULL)
	{
		lease->l.version[0] = lease->l.pending.version[0] = '\0';
		if (attached)
			abandon_lease(lm, lease);
		heap_append(&lm->spare, &lease->spare);
		return;
	}
	lease->lock = lock;
	lock->lease = lease;
	lm_enter(lm, lock, LOCK_ADOPTED, INT64_MAX);
	lm_raise_token(lock, saved->last_token);
	lm_raise_token(lock, saved->pending.last_token);
	lock->outcome_unknown = lock->repeat = saved->pending.version[0] != '\0';
}

void
lockmgr_adopt_hold(lockmgr *lm, uint32_t index, const saved_hold *saved)
{
	lm_hold    *hold = &lm->holds[index];
	lm_lease   *lease = &lm->leases[saved->lease_index];
	lm_session *session = NULL;

	if (saved->session.generation == 0)
		return;
	if (lease->l.generation == saved->lease_generation &&
		(lease->holds == NULL || lease->l.mode != MODE_EXCLUSIVE ||
		 lease->holds->h.token == saved->token) &&
		(lease->l.state == LEASE_HELD || lease->l.state == LEASE_LOST))
	{
		session = saved->ends_at != 0 ? &lm->detached : lm_get_session(lm, saved->session);
		if (session == NULL && lease->l.state == LEASE_HELD)
			abandon_lease(lm, lease);
	}
	if (session == NULL)
	{
		lm_save_hold(lm, hold);	/* as unused */
		return;
	}
	session->role = saved->role;
	hold->h = *saved;
	lm_attach_hold(lm, hold, lease, session);
	lm_set_end(lm, hold);
	if (lease->l.state == LEASE_LOST && saved->loss == LOSS_NONE)
	{
		hold->h.loss = LOSS_UNREACHABLE;
		lm_save_hold(lm, hold);
		lm->host.lost(lm->host.arg, index, &hold->h, &lease->l, NULL);
	}
}

/* Continues with this lease where the previous manager stopped. */
static void
resume(lockmgr *lm, int64_t now, lm_lease *lease)
{
	saved_lease *l = &lease->l;
	lm_lock    *lock = lease->lock;

	if (l->state == LEASE_LOST && l->pending.op != DYNAMO_RELEASE)
		lm_enter(lm, lock, LOCK_LOST, l->lease_end);
	else if (l->pending.version[0] == '\0')
	{
		if (l->state == LEASE_HELD)
		{
			lm_become_held(lm, lock);
			if (lm_has_renewer(lease))
				heap_set(&lm->renewals, &lock->renewal, now);
		}
		else
			lm_pass_on(lm, now, lock);
	}
	else if (l->pending.op == DYNAMO_RENEW)
	{
		lm_enter(lm, lock, LOCK_RENEWING, l->state == LEASE_HELD ? l->valid_until : INT64_MAX);
		heap_set(&lm->renewals, &lock->renewal, now);
	}
	else
		lm_enter(lm, lock, l->pending.op == DYNAMO_ACQUIRE ? LOCK_ACQUIRING :
				 l->pending.op == DYNAMO_HAND_OVER ? LOCK_HANDING_OVER :
				 LOCK_RELEASING, now);
}

/*
 * Settles a lease that has no hold.  The previous manager may have died between two saves:
 *
 *	 - The lease is saved as held, and its next hold is not saved: nobody has it, so it is released.
 *	 - The session has acknowledged a loss, so the hold has gone, and the lease is still saved.
 */
static void
settle_unheld(lockmgr *lm, lm_lease *lease)
{
	if (lease->l.state == LEASE_HELD)
	{
		lm_set_lease_state(lm, lease, LEASE_RELEASING);
		lm_save(lm, lease, false);
	}
	else if (lease->l.state == LEASE_LOST && lease->lock == NULL)
		lm_put_lease(lm, lease);
}

void
lockmgr_adopted(lockmgr *lm, int64_t now)
{
	for (uint32_t i = lm->max_leases; i-- > 0;)
	{
		lm_lease   *lease = &lm->leases[i];
		lm_hold    *hold = &lm->holds[i];

		lm_update_detached(lm, lease);
		if (lease->holds == NULL)
			settle_unheld(lm, lease);
		if (hold->session == NULL)
		{
			hold->next = lm->free_hold;
			lm->free_hold = hold;
		}
	}
	lm->adopting = false;
	for (uint32_t i = lm->max_leases; i-- > 0;)
	{
		lm_lease   *lease = &lm->leases[i];

		if (lease->l.state == LEASE_FREE)
		{
			lease->next = lm->free_lease;
			lm->free_lease = lease;
		}
		else if (lease->lock != NULL && lease->l.state != LEASE_BARRING)
			resume(lm, now, lease);
	}
	for (uint32_t i = 0; i < lm->max_sessions; i++)
	{
		lm_session *session = lm->sessions[i];

		if (session == NULL || !session->request.active)
			continue;
		if (session->request.kind <= LOCKMGR_TRY && session->request.lock != NULL)
			lm_take_place(lm, now, session);
		else if (session->request.kind == LOCKMGR_JOIN)
			lm_join(lm, now, session);
	}
	lockmgr_tick(lm, now);
}
