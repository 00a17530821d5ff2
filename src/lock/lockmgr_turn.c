/*-------------------------------------------------------------------------
 *
 * lockmgr_turn.c
 *	  The next session's turn: an acquire, or a hand-over, for the first in
 *	  the queue.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

/* Makes the lock's pending acquire or hand-over one for this session. */
static void
write_for(lockmgr *lm, int64_t now, lm_lock *lock, lm_session *session)
{
	lease	   *l = &lock->lease->l;

	l->pending.lease_ms = session->request.lease_ms;
	l->pending.margin_us = session->request.margin_us;
	l->pending.session = session->id;
	l->pending.seq = session->request.seq;
	l->pending.has_holder = true;
	l->pending.has_data = session->request.data != NULL;
	l->holder = session->request.holder;
	l->holder.since_ms = (now + lm->epoch_offset_us) / 1000;
}

/*
 * No session of this cluster has the lock, and no call is in flight: acquires it
 * for the first in the queue.
 */
void
lm_next_turn(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->state != LOCK_IDLE)
		lm_enter(lock, LOCK_IDLE);
	heap_set(&lm->timers, &lock->timer, INT64_MAX);
	while (lock->first != NULL)
	{
		if (now < lock->stay_back_until)
		{
			heap_set(&lm->timers, &lock->timer, lock->stay_back_until);
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
		(void) lm_take_lease(lm, lock);
		lm_resume_run(now, lock);
		lm_new_write(lm, lock, DYNAMO_ACQUIRE, lm_overwritable(lm, now, lock));
		write_for(lm, now, lock, lock->first);
		lm_enter(lock, LOCK_ACQUIRING);
		lm_submit(lm, lock);
		return;
	}
	lm_remember(lm, lock);
}

/* Makes the pending hand-over one to the first in the queue. */
void
lm_write_for_first(lockmgr *lm, int64_t now, lm_lock *lock)
{
	write_for(lm, now, lock, lock->first);
}
