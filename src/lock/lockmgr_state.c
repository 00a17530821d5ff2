/*-------------------------------------------------------------------------
 *
 * lockmgr_state.c
 *	  The states of a lock, and what may follow what.
 *
 * All changes of a lock's state go through lm_enter(), so the tables below are
 * complete: they are the specification that the other files implement.  lm_assert() aborts
 * on what is not in them.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#define TO(state)	(1u << (state))

static const unsigned transitions[LOCK_STATE_COUNT] = {
	[LOCK_IDLE] =
	TO(LOCK_ACQUIRING) |		/* a session is first in the queue */
	TO(LOCK_POLLING) |			/* free permits are left to another cluster */
	TO(LOCK_ADOPTED) |			/* the previous worker had a lease on it */
	TO(LOCK_IDLE),				/* its waiters stay back, or nobody waits any more */

	[LOCK_ADOPTED] =
	TO(LOCK_ACQUIRING) |		/* each as the saved lease says */
	TO(LOCK_HELD) |
	TO(LOCK_RENEWING) |
	TO(LOCK_HANDING_OVER) |
	TO(LOCK_RELEASING) |
	TO(LOCK_LOST),

	[LOCK_ACQUIRING] =
	TO(LOCK_HELD) |				/* confirmed in time, and still wanted */
	TO(LOCK_POLLING) |			/* refused: another client has it */
	TO(LOCK_HANDING_OVER) |		/* confirmed too late or unwanted, others wait */
	TO(LOCK_RELEASING) |		/* confirmed too late or unwanted, nobody waits */
	TO(LOCK_IDLE),				/* refused for another reason, or unwanted */

	[LOCK_POLLING] =
	TO(LOCK_READING) |			/* the next poll is due */
	TO(LOCK_IDLE),				/* the version is dead, or nobody waits any more */

	[LOCK_READING] =
	TO(LOCK_POLLING) |			/* another client still has it */
	TO(LOCK_IDLE),				/* it is free or dead, or nobody waits any more */

	[LOCK_HELD] =
	TO(LOCK_HELD) |				/* let go, the next session gets a hold on the lease */
	TO(LOCK_RENEWING) |			/* a third of the lease has passed, or less if it shares a
								 * batch; or a session asked for it */
	TO(LOCK_HANDING_OVER) |		/* let go, the lease does not fit the next session */
	TO(LOCK_RELEASING) |		/* let go, nobody waits, or the run is over */
	TO(LOCK_LOST),				/* the deadline has passed */

	[LOCK_RENEWING] =
	TO(LOCK_HELD) |				/* confirmed in time */
	TO(LOCK_HANDING_OVER) |		/* let go before it was confirmed, others wait */
	TO(LOCK_RELEASING) |		/* let go before it was confirmed, nobody waits; or given up */
	TO(LOCK_LOST) |				/* the deadline has passed */
	TO(LOCK_IDLE),				/* refused: nothing of ours is in the item */

	[LOCK_HANDING_OVER] =
	TO(LOCK_HELD) |				/* confirmed: the next session has it */
	TO(LOCK_HANDING_OVER) |		/* confirmed too late or unwanted, others wait */
	TO(LOCK_RELEASING) |		/* confirmed too late or unwanted, nobody waits */
	TO(LOCK_IDLE),				/* refused, or both leases are over */

	[LOCK_RELEASING] =
	TO(LOCK_RELEASING) |		/* an unsettled renewal turned out to be applied:
								 * that version is released */
	TO(LOCK_IDLE),				/* confirmed, refused, or the lease is over */

	[LOCK_LOST] =
	TO(LOCK_RELEASING) |		/* acknowledged, or the lease is over */
	TO(LOCK_IDLE),				/* the unsettled renewal was refused: nothing of
								 * ours is in the item */
};

/* The states that the lock's lease may have in each state of the lock; 0: the lock has no lease. */
static const unsigned lease_states[LOCK_STATE_COUNT] = {
	[LOCK_ADOPTED] =
	TO(LEASE_ACQUIRING) | TO(LEASE_HELD) | TO(LEASE_RELEASING) | TO(LEASE_LOST),
	[LOCK_ACQUIRING] = TO(LEASE_ACQUIRING),
	[LOCK_HELD] = TO(LEASE_HELD),
	[LOCK_RENEWING] = TO(LEASE_HELD) | TO(LEASE_RELEASING),
	[LOCK_HANDING_OVER] = TO(LEASE_RELEASING),
	[LOCK_RELEASING] = TO(LEASE_RELEASING) | TO(LEASE_LOST),
	[LOCK_LOST] = TO(LEASE_LOST),
};

bool
lm_may_enter(lock_state from, lock_state to)
{
	return (transitions[from] & TO(to)) != 0;
}

/*
 * Puts the lock into the state, and sets its timer for what comes next in that state.  No renewal
 * is due then, until the caller sets lock->renewal.  The assertions demand that the transition is
 * in the table, that the lock's lease fits the state, and that a lock that is held has a holder.
 */
void
lm_enter(lockmgr *lm, lm_lock *lock, lock_state state, int64_t timer)
{
	const lm_lease *lease = lock->lease;

	lm_assert(lm_may_enter(lock->state, state));
	lm_assert(lease != NULL || lease_states[state] == 0);
	lm_assert(lease == NULL ||
			  (lease->lock == lock && (lease_states[state] & TO(lease->l.state)) != 0 &&
			   (lease->l.valid_until == 0 || lease->l.state == LEASE_HELD) &&
			   (state != LOCK_HELD || lease->holds != NULL)));
	lock->state = state;
	heap_set(&lm->timers, &lock->timer, timer);
	heap_set(&lm->renewals, &lock->renewal, INT64_MAX);
}
