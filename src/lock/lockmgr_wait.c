/*-------------------------------------------------------------------------
 *
 * lockmgr_wait.c
 *	  Waiting for a lock: the outcome of an acquire, and polling a lock that
 *	  another client holds.
 *
 * Calls are made for the first session in the queue only, so twenty waiting sessions cost as
 * many reads as one.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdlib.h>
#include <string.h>

#define POLL_MIN_US		INT64_C(20000)
#define POLL_BUSY_US	INT64_C(50000)
#define BUSY_US			INT64_C(2000000)
#define LEADERSHIP_MIN_US	INT64_C(1000000)
#define POLL_KEPT_US	INT64_C(10000000)
#define REFUSALS_MAX	10

/*
 * A listing does not displace remembered locks: a lock that sessions have needed is worth more
 * than one that somebody has listed.  The result is false if this cluster has a lease for the
 * lock, or sessions that wait for it, because a try would not get the lock.
 */
bool
lockmgr_observe(lockmgr *lm, int64_t sent, int64_t now, const char *name,
				size_t name_len, const dynamo_item *item, const dynamo_shared *shared)
{
	lm_lock    *lock;
	bool		dead = false;

	if (!lm_is_known(lm, name, name_len) &&
		(item->released || item->wrong != NULL || lm->remembered.count >= lm->max_remembered))
		return false;
	lock = lm_get_lock(lm, name, name_len);
	if (lock == NULL)
		return false;
	if (lock->lease == NULL)
	{
		lm_observe(lm, now, lock, item, shared);
		dead = lock->first == NULL && lm_overwritable(lm, sent, lock)[0] != '\0' &&
			dynamo_obstacle(item, NULL) == NULL && !lm_is_kept_too_long(lm, now, item->kept_until_ms);
	}
	lm_remember(lm, lock);
	return dead;
}

/*
 * When our gate must be renewed: after a third of the lease that it was set with.  By then another
 * session, with another lease, may be the first that waits.
 */
static int64_t
gate_renewal_at(const lm_lock *lock)
{
	return lock->gate_sent + lock->shared->gate_lease_ms * 1000 / 3;
}

/*
 * A leadership waits for days, and is in no hurry: it polls every tenth of its lease, but at least a
 * second apart.
 */
int64_t
lockmgr_leadership_interval(int64_t lease_us)
{
	return lease_us / 10 > LEADERSHIP_MIN_US ? lease_us / 10 : LEADERSHIP_MIN_US;
}

/* The longest time between two polls; busy: the lock has changed hands lately. */
static int64_t
longest_interval(const lockmgr *lm, bool busy)
{
	return busy && lm->poll_interval_us > POLL_BUSY_US ? POLL_BUSY_US : lm->poll_interval_us;
}

/*
 * Sets the timer for the next poll of another client's lock.  The interval is a twentieth of the
 * time already waited, so that a poll is late by a few per cent at most.  For example, after 2 s
 * the next poll comes 75 to 100 ms later.  Exceptions:
 *
 *	 - A lock that changed hands lately is polled more often, to hit the moment in which another
 *	   cluster's waiters stay back: see lockmgr_clock.c.
 *	 - While our mark is in the item, polls come as often as it promises.
 *	 - A leadership polls rarely; so does anybody while a released lock is kept (keptUntil),
 *	   because that seldom ends early.
 *	 - A poll never comes later than the moment at which the version is dead, the lock is no
 *	   longer kept, or our gate must be renewed.
 *
 * A poll may be stale.  One that shows a version that was replaced already restarts the count to
 * the take-over, which then comes later by as much as the read was behind, and no more.
 */
void
lm_poll_later(lockmgr *lm, int64_t now, lm_lock *lock)
{
	int64_t		interval = (now - lock->polling_since) / 20;
	int64_t		longest = longest_interval(lm, now - lock->holder_seen < BUSY_US);

	while (lock->first != NULL && lock->first->request.kind == LOCKMGR_TRY)
		lm_answer_result(lm, lock->first, LOCKMGR_BUSY);
	if (lock->first == NULL)
	{
		lm_next_turn(lm, now, lock);
		return;
	}
	if (interval < POLL_MIN_US)
		interval = POLL_MIN_US;
	longest = lm_longest_promised(now, lock, longest);
	if (interval > longest)
		interval = longest;
	if (lock->first->request.ask.leadership)
		interval = lockmgr_leadership_interval(lock->first->request.ask.lease_ms * 1000) / 3 * 4;
	if (!lock->seen && lm_is_kept(lm, now, lock->kept_until_ms))
		interval = POLL_KEPT_US;
	/* The interval is shortened at random, by up to a quarter. */
	interval = interval * 3 / 4 + (int64_t) (lm_random(lm) % (uint64_t) (interval / 4));
	if (now + interval > lm_ripe_at(lm, now, lock))
		interval = lm_ripe_at(lm, now, lock) - now;
	if (lm_needs_gate(lock) && lm_is_our_gate(lock) && now + interval > gate_renewal_at(lock))
		interval = gate_renewal_at(lock) - now;
	lm_enter(lm, lock, LOCK_POLLING, now + (interval > 0 ? interval : 0));
}

/*
 * The next poll is due.
 *
 *	 - If the session can get the lock, as far as we know, an acquire goes out instead.
 *	 - If clusters share the lock and the session wants it exclusively, the poll sets a gate, so
 *	   that those clusters let in nobody else, or renews our gate.
 *	 - If the session has waited for a while, the poll writes our mark.
 *	 - Else it is a read.  The replies to the writes show the item as well.
 */
void
lm_poll(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->first == NULL ||
		((lock->seen || lock->shared != NULL) &&
		 lm_is_ready(lm, now, lock, &lock->first->request)))
	{
		lm_next_turn(lm, now, lock);
		return;
	}
	lm_enter(lm, lock, LOCK_READING, INT64_MAX);
	lock->sets_gate = !lock->gate_unsettled && lm_needs_gate(lock) &&
		(lm_is_our_gate(lock) ? now >= gate_renewal_at(lock) : !lm_gate_stands(lock));
	lock->marks = lm_mark_is_due(now, lock);
	if (lock->marks)
		lock->mark_poll_us = longest_interval(lm, lm_has_changed_hands(lock));
	lm_submit(lm, lock);
}

void
lm_poll_settled(lockmgr *lm, int64_t now, lm_lock *lock,
				const dynamo_result *result)
{
	lock->gate_unsettled = lock->read_consistently = false;
	lm_observe(lm, now, lock, &result->item, result->shared);
	while (lock->first != NULL && result->item.wrong != NULL)
		lm_answer_bad_item(lm, lock->first, result->item.wrong);
	if (lock->first == NULL || lm_is_ready(lm, now, lock, &lock->first->request))
		lm_next_turn(lm, now, lock);
	else
		lm_poll_later(lm, now, lock);
}

/*
 * The session was refused again although the item shows that it can have what it wants; "refusals"
 * is how often in a row.  Once is normal: what we knew was old, or the item was read a moment
 * after the refusal.  Later ones are tried again ever more slowly, and too many are an error.
 */
void
lm_refused_in_vain(lockmgr *lm, int64_t now, lm_lock *lock, lm_session *session, dynamo_op op,
				   unsigned refusals)
{
	lockmgr_answer answer = {
		.result = LOCKMGR_FAILED,
		.op = op,
		.status = DYNAMO_MALFORMED,
		.message = "it was refused again and again, but the item shows no reason",
	};

	if (refusals > 1)
		lock->stay_back_until = now + BACKOFF_CAP_US / 64 +
			backoff_us(refusals - 1, BACKOFF_CAP_US, lm_random(lm));
	if (refusals > REFUSALS_MAX)
		lm_answer(lm, session, &answer);
}

/*
 * Returns "wrong", which says what is wrong with the item; if that is NULL, whether keptUntil is
 * absurd; else NULL.
 */
static const char *
or_kept_too_long(const lockmgr *lm, int64_t now, const dynamo_item *item, const char *wrong)
{
	return wrong == NULL && lm_is_kept_too_long(lm, now, item->kept_until_ms) ?
		"the lock item's keptUntil is more than two days ahead" : wrong;
}

const char *
lockmgr_unusable(const lockmgr *lm, int64_t now, const dynamo_item *item,
				 const dynamo_shared *shared)
{
	return or_kept_too_long(lm, now, item, dynamo_unusable(item, shared));
}

/*
 * The acquire was refused: another client has the lock, our token was too low, or we knew the item
 * badly.
 */
static void
acquire_refused(lockmgr *lm, int64_t now, lm_lock *lock,
				const dynamo_result *result)
{
	const dynamo_item *item = &result->item;
	lease_write pending = lock->lease->l.pending;
	bool		shared = lock->lease->l.mode != MODE_EXCLUSIVE;
	const char *known = lock->attribute_names;	/* names of additional attributes */
	bool		other_attributes = known != NULL && item->attribute_names != NULL ?
		strcmp(known, item->attribute_names) != 0 : known != item->attribute_names;
	lm_session *session = lm_pending_session(lm, lock->lease);
	bool		wants_shared = session != NULL && session->request.ask.mode != MODE_EXCLUSIVE;

	/* What in the item keeps everybody from getting the lock in the session's mode, or NULL. */
	const char *wrong = or_kept_too_long(
		lm, now, item, dynamo_obstacle(item, wants_shared ? result->shared : NULL));

	/*
	 * Was the acquire refused only because the item's token is not below ours, as our clock is
	 * behind the last holder's?  In shared mode that is only a guess.  The next acquire has a
	 * higher token.
	 */
	bool		too_low = item->token >= pending.first_token &&
		(!item->exists || item->released || shared ||
		 strcmp(item->version, pending.expected) == 0);

	/*
	 * An earlier copy may be on its way.  The item's token may keep it out for ever; if not, bar
	 * it.
	 */
	if (lock->outcome_unknown && !lm_is_barred(&pending, item))
		lm_bar(lm, now, lock);
	else
		lm_drop_lease(lm, lock);
	lm_refused_by_clock(lock);
	lm_observe(lm, now, lock, item, result->shared);

	if (session == NULL)
		;						/* the session has cancelled; the next one in the queue tries */
	else if (pending.must_exist && !item->exists)
		lm_answer_result(lm, session, LOCKMGR_MISSING);
	else if (wrong != NULL)
		lm_answer_bad_item(lm, session, wrong);
	else if (!too_low && !lm_is_ready(lm, now, lock, &session->request))
	{
		lock->refusals = 0;
		lock->polling_since = now;
		if (lock->asked_at == 0)
			lock->asked_at = now;
		lm_note_other_client(lock);
		lm_note_waits(lock);
		lm_poll_later(lm, now, lock);
		return;
	}

	/*
	 * As far as the item shows, the session can have the lock.  If nothing explains the refusal,
	 * it tries again after a delay.  It tries again at once if the next acquire is another one:
	 *
	 *	 - its token is higher;
	 *	 - it knows the names of the item's additional attributes;
	 *	 - it joins clusters that share the lock, where this one wanted to open the shared mode;
	 *	 - it names another dead version.
	 */
	else if (!too_low && !other_attributes &&
			 (shared ? pending.kind != DYNAMO_SHARED_OPEN ||
			  !lm_can_join(lm, now, lock, &session->request) :
			  !lock->seen || strcmp(lock->version, pending.expected) == 0))
		lm_delay_acquire(lm, now, lock);
	if (session != NULL && session->request.active)
	{
		/*
		 * Counts the acquires in a row that were refused although the item was free and did not
		 * change.
		 */
		if (strcmp(lock->refused_version, item->version) != 0)
		{
			memcpy(lock->refused_version, item->version, sizeof(lock->refused_version));
			lock->refusals = 0;
		}
		lm_refused_in_vain(lm, now, lock, session, DYNAMO_ACQUIRE, ++lock->refusals);
	}
	lm_next_turn(lm, now, lock);
}

void
lm_acquire_settled(lockmgr *lm, int64_t now, lm_lock *lock,
				   const dynamo_result *result)
{
	lm_lease   *lease = lock->lease;
	bool		exclusive = lease->l.mode == MODE_EXCLUSIVE;
	lm_session *session;

	if (result->status == DYNAMO_CONDITION_FAILED && !lm_stands(lm, &lease->l, result))
	{
		acquire_refused(lm, now, lock, result);
		return;
	}

	lease->l.uncertain = lock->outcome_unknown;
	lock->refusals = 0;
	lm_clear_own_mark(lock);
	if (lock->bar != NULL)
		lm_end_bar(lm, lock->bar);	/* the new token is above that of the bar */

	if (exclusive)
	{
		/* If the session has cancelled, its attributes are in the item, but we do not know them. */
		const lm_session *payload = lm_payload_session(lm, lease);
		char	   *names = payload != NULL && payload->request.attributes != NULL ?
			dynamo_attribute_names(payload->request.attributes) : NULL;

		lm_note_attributes(lock, names);
		free(names);
	}
	lm_written(lm, lease);
	/* In shared mode the reply shows the item, unless we have opened the mode. */
	lm_observe_shared(lm, lock, now, exclusive ? NULL : result->shared);
	if (!exclusive)
		lm_note_mark(lm, now, lock, &result->item);
	else if (result->status == DYNAMO_OK)
		lm_replaced(lm, lock, &result->item);
	session = lm_pending_session(lm, lease);
	if (session != NULL && now < lease->l.deadline)
	{
		lm_grant(lm, now, lock, session);
		if (!exclusive)
			(void) lm_admit(lm, now, lock);
	}
	else
	{
		lease->l.ends_kept = true;	/* no session was promised at_least_ms */
		lm_pass_on(lm, now, lock);	/* cancelled, or confirmed too late */
	}
}

/*
 * Gives up the lock's acquire, which is not settled, and which no session wants any more.  If a
 * copy of it may be applied, it is barred.
 */
void
lm_abandon(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->outcome_unknown)
		lm_bar(lm, now, lock);
	else
		lm_drop_lease(lm, lock);
	lm_delay_acquire(lm, now, lock);
	lm_next_turn(lm, now, lock);
}

void
lm_acquire_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_fail_impatient_waiters(lm, now, lock);
	if (lm_pending_session(lm, lock->lease) != NULL)
		heap_set(&lm->timers, &lock->timer, lm_retry_at(lm, now, lock));
	else
		lm_abandon(lm, now, lock);
}

void
lm_poll_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_fail_impatient_waiters(lm, now, lock);
	if (lock->first == NULL)
		lm_next_turn(lm, now, lock);
	else
		lm_enter(lm, lock, LOCK_POLLING, lm_retry_at(lm, now, lock));
}
