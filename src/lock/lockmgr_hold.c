/*-------------------------------------------------------------------------
 *
 * lockmgr_hold.c
 *	  Holding a lock: a write is confirmed, the lock granted.
 *
 * A holder believes until its deadline: the time just before the first copy of the
 * newest confirmed write was sent, plus the lease, minus the margin.  A later
 * confirmation does not change that.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

/* The pending write is confirmed. */
void
lm_written(lockmgr *lm, lm_lease *lease)
{
	struct lease *l = &lease->l;
	lease_write *pending = &l->pending;

	(void) lm;
	memcpy(l->version, pending->version, sizeof(l->version));
	l->lease_ms = pending->lease_ms;
	l->margin_us = pending->margin_us;
	l->lease_end = pending->first_sent + pending->lease_ms * 1000;
	l->deadline = l->lease_end - pending->margin_us;
	if (pending->op != DYNAMO_RENEW)
	{
		l->token = pending->token;
		if (l->token > lease->lock->top_token)
			lease->lock->top_token = l->token;
	}
	pending->version[0] = '\0';
}

/* The next renewal: a third of the lease after the last write was sent. */
void
lm_schedule_renewal(lockmgr *lm, lm_lock *lock)
{
	const struct lease *l = &lock->lease->l;

	lm_enter(lock, LOCK_HELD);
	heap_set(&lm->timers, &lock->timer, l->valid_until);
	heap_set(&lm->renewals, &lock->renewal,
			 l->lease_end - l->lease_ms * 1000 * 2 / 3);
}

/* The pending write was confirmed in time: its session has the lock. */
void
lm_grant(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_lease   *lease = lock->lease;
	struct lease *l = &lease->l;
	lm_session *session = lm->sessions[l->pending.session.slot];
	lockmgr_answer answer = {.result = LOCKMGR_GRANTED};

	l->session = session->id;
	l->seq = session->request.seq;
	l->role = session->role;
	l->acquired_ms = (now + lm->epoch_offset_us) / 1000;
	l->renewals = 0;
	l->loss = LOSS_NONE;
	lm_set_lease_state(lm, lease, LEASE_HELD);
	l->valid_until = l->deadline;
	lm_link_lease(session, lease);
	lm_save(lm, lease, false);
	lock->seen = false;
	lm_schedule_renewal(lm, lock);

	answer.lease_index = lease->index;
	answer.token = l->token;
	answer.valid_until = l->valid_until;
	lm_answer(lm, session, &answer);
	lm_tell_watch(lm, lock);
}
