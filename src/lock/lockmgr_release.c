/*-------------------------------------------------------------------------
 *
 * lockmgr_release.c
 *	  Releasing a lock, or handing it over to the next session of this
 *	  cluster.
 *
 * Belief ends before the request is sent.  A hand-over takes one request
 * where release and acquire take two; so that other clusters are not starved,
 * a run of hand-overs is bounded in time, and after it this cluster's waiters
 * stay back for a moment, which must be longer than POLL_BUSY_US and two round
 * trips.  With a shorter one a waiter of another cluster was seen, in a
 * simulation, to wait for ten minutes.
 *
 * Nobody can see whether another cluster waits.  But each acquire tells whose
 * item it replaced: runs are short while others have the lock between them, and
 * each is twice as long as the one before while nobody does.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

#define RUN_US			INT64_C(1000000)
#define RUN_DOUBLINGS	3		/* from the shortest run to that */
#define STAY_BACK_US	INT64_C(150000)

/*
 * The session wants no more of the lease: it released it, ended, never wanted
 * it, or acknowledges that it is lost.
 */
void
lm_let_go(lockmgr *lm, int64_t now, lm_lease *lease)
{
	lm_lock    *lock = lease->lock;
	bool		lost = lease->l.state == LEASE_LOST;

	lm_unlink_lease(lease);
	if (lock == NULL)
	{
		lm_put_lease(lm, lease);
		return;
	}
	lm_set_lease_state(lm, lease, LEASE_RELEASING);
	lm_save(lm, lease, false);
	if (lost)
	{
		if (lock->state == LOCK_LOST)
			lm_lost_ended(lm, now, lock);
		return;
	}
	lm_answer_renewer(lm, lock, LOCKMGR_NOT_HELD);
	if (lock->state == LOCK_HELD)
		lm_pass_on(lm, now, lock);
	/* else RENEWING: the renewal must be settled first */
}

/* Others have had the lock, or their chance. */
static void
new_run(lm_lock *lock)
{
	lock->run_end = lock->let_go_at = 0;
}

/* Somebody else has the lock, or had it before us. */
void
lm_have_company(lm_lock *lock)
{
	lock->doublings = 0;
	new_run(lock);
}

/* An acquire has replaced this item; it does not exist if we were not told. */
void
lm_replaced(const lockmgr *lm, lm_lock *lock, const dynamo_item *item)
{
	if (!item->exists)
		return;
	if (strcmp(item->owner, lm->owner) != 0)
		lm_have_company(lock);
	else if (lock->run_end == 0 && lock->doublings < RUN_DOUBLINGS)
		lock->doublings++;
}

/*
 * Before an acquire.  A lock that was free for a moment only, because no
 * session waited just then, has given others no chance: the run goes on.
 */
void
lm_resume_run(int64_t now, lm_lock *lock)
{
	if (lock->let_go_at != 0 && now - lock->let_go_at >= STAY_BACK_US)
		new_run(lock);
}

/* We have the lock and nobody believes in it: to the next, or released. */
void
lm_pass_on(lockmgr *lm, int64_t now, lm_lock *lock)
{
	heap_set(&lm->renewals, &lock->renewal, INT64_MAX);
	if (lock->run_end == 0)
		lock->run_end = now + (RUN_US >> (RUN_DOUBLINGS - lock->doublings));
	lock->let_go_at = now;
	while (lock->first != NULL && lm_role_is_full(lm, lock->first))
		lm_answer_result(lm, lock->first, LOCKMGR_ROLE_FULL);
	if (lock->first != NULL)
	{
		if (now < lock->run_end)
		{
			heap_set(&lm->timers, &lock->timer, INT64_MAX);
			lm_new_write(lm, lock, DYNAMO_HAND_OVER, lock->lease->l.version);
			lm_write_for_first(lm, now, lock);
			lm_enter(lock, LOCK_HANDING_OVER);
			lm_submit(lm, lock);
			return;
		}
		lock->stay_back_until = now + STAY_BACK_US;
		new_run(lock);
	}
	lm_release(lm, now, lock, lock->lease->l.version);
}

void
lm_release(lockmgr *lm, int64_t now, lm_lock *lock, const char *expected)
{
	struct lease *l = &lock->lease->l;
	int64_t		pending_end = l->pending.first_sent + l->pending.lease_ms * 1000;

	(void) now;
	/* A renewal that nobody settled may stand in the item: see l->stray. */
	if (l->stray[0] != '\0' && l->pending.op == DYNAMO_RENEW && pending_end > l->lease_end)
		l->lease_end = pending_end;
	heap_set(&lm->timers, &lock->timer, INT64_MAX);
	heap_set(&lm->renewals, &lock->renewal, INT64_MAX);
	lm_new_write(lm, lock, DYNAMO_RELEASE, expected);
	lm_enter(lock, LOCK_RELEASING);
	lm_submit(lm, lock);
}

/*
 * The moment after which an unsettled release or hand-over is not worth
 * repeating: whatever stands in the item, others may take it over.
 */
static int64_t
give_up_at(const lm_lock *lock)
{
	const struct lease *l = &lock->lease->l;
	int64_t		pending_end = l->pending.op == DYNAMO_HAND_OVER ?
		l->pending.first_sent + l->pending.lease_ms * 1000 : 0;

	return pending_end > l->lease_end ? pending_end : l->lease_end;
}

/*
 * Nothing of the lease is in DynamoDB any more: takes it from the lock, which
 * the caller must then put into another state.  If it was lost and its session
 * has not acknowledged that, the lease itself stays as long as there is room.
 */
void
lm_drop_lease(lockmgr *lm, lm_lock *lock)
{
	lm_lease   *lease = lock->lease;

	heap_set(&lm->timers, &lock->timer, INT64_MAX);
	heap_set(&lm->renewals, &lock->renewal, INT64_MAX);
	lock->lease = NULL;
	if (lease->l.state == LEASE_LOST)
	{
		lease->lock = NULL;
		lease->l.version[0] = '\0';
		lease->l.pending.version[0] = '\0';
		lm_save(lm, lease, false);
		lm_spare_lease(lm, lease);
	}
	else
		lm_put_lease(lm, lease);
}

/* Call it after saving the lease: the session reads the lease directory next. */
void
lm_answer_releaser(lockmgr *lm, lm_lock *lock, lockmgr_result result)
{
	lm_session *session = lock->releaser;
	lockmgr_answer answer = {.result = result};

	if (session == NULL)
		return;
	lock->releaser = NULL;
	if (result == LOCKMGR_FAILED)
	{
		answer.op = DYNAMO_RELEASE;
		answer.status = DYNAMO_UNKNOWN;
		answer.message = "the lease had ended before DynamoDB confirmed the release";
	}
	lm_answer(lm, session, &answer);
}

void
lm_hand_over_settled(lockmgr *lm, int64_t now, lm_lock *lock,
					 const dynamo_result *result)
{
	lm_lease   *lease = lock->lease;

	if (result->status == DYNAMO_CONDITION_FAILED &&
		(result->item.released ||
		 strcmp(result->item.version, lease->l.pending.version) != 0))
	{
		lockmgr_result outcome = now < lease->l.deadline ?
			LOCKMGR_RELEASED : LOCKMGR_FAILED;

		lm_drop_lease(lm, lock);
		lm_answer_releaser(lm, lock, outcome);
		lm_observe(lm, now, lock, &result->item);
		lm_next_turn(lm, now, lock);
		return;
	}

	lm_written(lm, lease);
	if (lm_pending_wanted(lm, lease) && now < lease->l.deadline)
		lm_grant(lm, now, lock);
	else
	{
		lm_save(lm, lease, false);
		lm_pass_on(lm, now, lock);
	}
	lm_answer_releaser(lm, lock, LOCKMGR_RELEASED);
}

void
lm_release_settled(lockmgr *lm, int64_t now, lm_lock *lock,
				   const dynamo_result *result)
{
	struct lease *l = &lock->lease->l;
	const dynamo_item *item = &result->item;
	lockmgr_result outcome = LOCKMGR_RELEASED;

	if (result->status == DYNAMO_CONDITION_FAILED &&
		strcmp(item->version, l->pending.version) != 0)
	{
		/* A renewal that nobody settled has succeeded: release that. */
		if (l->stray[0] != '\0' && !item->released &&
			strcmp(item->version, l->stray) == 0)
		{
			char		stray[UUID_SIZE];

			memcpy(stray, l->stray, sizeof(stray));
			l->stray[0] = '\0';
			lm_release(lm, now, lock, stray);
			return;
		}
		/* An abandoned acquire that has not arrived: it still may. */
		if (l->version[0] == '\0')
			lm_retire(lm, l->pending.expected);
		if (now >= l->deadline)
			outcome = LOCKMGR_FAILED;
	}
	lm_drop_lease(lm, lock);
	lm_answer_releaser(lm, lock, outcome);
	if (result->status == DYNAMO_CONDITION_FAILED)
		lm_observe(lm, now, lock, item);
	lm_next_turn(lm, now, lock);
}

/* A release or a hand-over. */
void
lm_release_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_fail_impatient_releaser(lm, now, lock);
	lm_fail_impatient_waiters(lm, now, lock);
	if (now < give_up_at(lock))
	{
		heap_set(&lm->timers, &lock->timer, lm_retry_at(lm, now, lock, 0));
		return;
	}
	/* Whichever of these stands there, nobody of ours holds it. */
	lm_retire(lm, lock->lease->l.pending.expected);
	if (lock->lease->l.stray[0] != '\0')
		lm_retire(lm, lock->lease->l.stray);
	if (lock->lease->l.pending.op == DYNAMO_HAND_OVER)
		lm_retire(lm, lock->lease->l.pending.version);
	lm_drop_lease(lm, lock);
	lm_fail_releaser(lm, lock);
	lm_stay_back(lm, now, lock);
	lm_next_turn(lm, now, lock);
}
