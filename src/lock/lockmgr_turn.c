/*-------------------------------------------------------------------------
 *
 * lockmgr_turn.c
 *	  The next session's turn: an acquire, or a hand-over, for the first in
 *	  the queue.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

/* Makes the lock's pending acquire or hand-over one for this session. */
static void
write_for(lockmgr *lm, int64_t now, lm_lock *lock, lm_session *session)
{
	const lm_request *request = &session->request;
	const lock_ask *ask = &request->ask;
	lease	   *l = &lock->lease->l;

	l->pending.lease_ms = ask->lease_ms;
	l->pending.margin_us = ask->margin_us;
	l->pending.at_least_ms = ask->at_least_ms;
	l->pending.session = session->id;
	l->pending.seq = request->seq;
	l->pending.permits = ask->mode == MODE_SEMAPHORE ? ask->permits : 1;
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
 * Starts the write that acquires the lock as the request wants it.  To share it, we
 * join those who do; if there are none that we know of, we open the shared mode.
 */
static void
start_acquire(lockmgr *lm, int64_t now, lm_lock *lock, const lm_request *request)
{
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
		lock->delete_at = 0;
		lock->look_deletes_item = false;	/* what waits to be sent is a look then */
		lm_resume_run(now, lock);
		start_acquire(lm, now, lock, &lock->first->request);
		write_for(lm, now, lock, lock->first);
		lm_enter(lm, lock, LOCK_ACQUIRING, INT64_MAX);
		lm_submit(lm, lock);
		return;
	}
	lock->asked_at = 0;			/* nobody waits */
	lm_delete_if_due(lm, now, lock);
	lm_remember(lm, lock);
}

/* Makes the pending hand-over one to the first in the queue. */
void
lm_write_for_first(lockmgr *lm, int64_t now, lm_lock *lock)
{
	write_for(lm, now, lock, lock->first);
}
