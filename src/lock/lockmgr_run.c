/*-------------------------------------------------------------------------
 *
 * lockmgr_run.c
 *	  Runs: how long a lock passes from session to session of this cluster.
 *
 * To let other clusters have the lock, a run is limited in time, and after it this
 * cluster's waiters stay back for a moment.  That must be longer than POLL_BUSY_US
 * and two round trips: with a shorter one, in a simulation, another cluster waited
 * for ten minutes.
 *
 * We cannot see whether another cluster waits.  But an acquire shows whose item it
 * replaced: if that was another client's, the next run is short; if not, the run
 * is twice as long as the last one.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

#define RUN_US			INT64_C(1000000)
#define RUN_DOUBLINGS	3		/* from the shortest run to that */
#define STAY_BACK_US	INT64_C(150000)

/* Others have had the lock, or a chance to get it. */
static void
new_run(lm_lock *lock)
{
	lock->run_end = lock->let_go_at = 0;
}

/* Another client has the lock, or had it before us. */
void
lm_have_company(lm_lock *lock)
{
	lock->doublings = 0;
	lock->heard_ms = 0;
	new_run(lock);
}

/* An acquire has replaced this item; if unknown, item->exists is false. */
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
 * Before an acquire: if the lock was free only for a moment, because no session
 * waited just then, others had no chance to get it, and the run goes on.
 */
void
lm_resume_run(int64_t now, lm_lock *lock)
{
	if (lock->let_go_at != 0 && now - lock->let_go_at >= STAY_BACK_US)
		new_run(lock);
}

/* The holder has let go: a run begins, or goes on. */
void
lm_note_let_go(int64_t now, lm_lock *lock)
{
	if (lock->run_end == 0)
		lock->run_end = now + (RUN_US >> (RUN_DOUBLINGS - lock->doublings));
	lock->let_go_at = now;
}

bool
lm_in_run(int64_t now, const lm_lock *lock)
{
	return now < lock->run_end;
}

/* This cluster's waiters stay back. */
void
lm_end_run(int64_t now, lm_lock *lock)
{
	lock->stay_back_until = now + STAY_BACK_US;
	new_run(lock);
}
