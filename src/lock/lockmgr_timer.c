/*-------------------------------------------------------------------------
 *
 * lockmgr_timer.c
 *	  Timers: what is due now, and when something is due next.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

/* The next attempt is due. */
static void
repeat_write(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->state == LOCK_ACQUIRING && !lm_pending_wanted(lm, lock->lease))
	{
		lm_abandon(lm, now, lock);	/* adopted, and its session has not asked again */
		return;
	}
	if (!lock->outcome_unknown)
		lm_new_nonce(lm, lock);
	lm_submit(lm, lock);
}

/* The deadline, or a look before it. */
static void
held_timer(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (now >= lock->lease->l.valid_until)
	{
		lm_lose(lm, now, lock, LOSS_UNREACHABLE, NULL);
		return;
	}
	if (lock->state == LOCK_HELD)
		lm_look(lm, lock);
	heap_set(&lm->timers, &lock->timer, lock->lease->l.valid_until);
}

static void
lock_timer(lockmgr *lm, int64_t now, lm_lock *lock)
{
	switch (lock->state)
	{
		case LOCK_IDLE:
			lm_next_turn(lm, now, lock);
			break;
		case LOCK_POLLING:
			lm_poll(lm, now, lock);
			break;
		case LOCK_ACQUIRING:
		case LOCK_HANDING_OVER:
		case LOCK_RELEASING:
			repeat_write(lm, now, lock);
			break;
		case LOCK_HELD:
		case LOCK_RENEWING:
			if (lock->lease->l.state == LEASE_HELD)
				held_timer(lm, now, lock);
			break;
		case LOCK_LOST:
			lm_lost_ended(lm, lock);
			break;
		case LOCK_READING:
		case LOCK_ADOPTED:
			break;				/* no timer is set */
	}
}

void
lockmgr_tick(lockmgr *lm, int64_t now)
{
	heap_node  *top;

	while ((top = heap_top(&lm->timers)) != NULL && top->at <= now)
	{
		heap_set(&lm->timers, top, INT64_MAX);
		lock_timer(lm, now, LM_CONTAINER(top, lm_lock, timer));
	}
	while ((top = heap_top(&lm->look_ups)) != NULL && top->at <= now)
	{
		heap_set(&lm->look_ups, top, INT64_MAX);
		lm_submit_look_up(lm, LM_CONTAINER(top, lm_session, timer));
	}
	lm_end_holds(lm, now);
	lm_pump(lm, now);
}

int64_t
lockmgr_next_wake(const lockmgr *lm)
{
	const heap_node *timer = heap_top(&lm->timers);
	const heap_node *look_up = heap_top(&lm->look_ups);
	const heap_node *renewal = heap_top(&lm->renewals);
	const heap_node *end = heap_top(&lm->ends);
	const heap_node *bar = heap_top(&lm->bars);
	int64_t		wake = INT64_MAX;

	if (timer != NULL)
		wake = timer->at;
	if (look_up != NULL && look_up->at < wake)
		wake = look_up->at;
	if (end != NULL && end->at < wake)
		wake = end->at;
	/* When all calls are taken, the next reply sends what is due. */
	if (bar != NULL && bar->at < wake &&
		lm->calls_in_flight - lm->renewals_in_flight < lm->max_calls)
		wake = bar->at;
	if (renewal != NULL && renewal->at < wake &&
		lm->renewals_in_flight < lm->max_calls)
		wake = renewal->at;
	return wake;
}
