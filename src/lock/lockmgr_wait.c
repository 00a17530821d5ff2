/*-------------------------------------------------------------------------
 *
 * lockmgr_wait.c
 *	  Waiting for a lock: the outcome of an acquire, and polling a lock that
 *	  another client holds.
 *
 * Calls are made for the first in the queue, so twenty waiting sessions cost as
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
#define CAMPAIGN_MIN_US	INT64_C(1000000)
#define POLL_KEPT_US	INT64_C(10000000)
#define REFUSALS_MAX	10

/*
 * A listing does not replace remembered locks, because locks that sessions have
 * needed are worth more.  The result is false if this cluster has a lease for
 * the lock, or sessions that wait for it: a try would not get it.
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

/* Our gate keeps the lease that it was set with, also when another session waits by now. */
static int64_t
gate_renewal_at(const lm_lock *lock)
{
	return lock->gate_sent + lock->shared->gate_lease_ms * 1000 / 3;
}

/*
 * A campaign waits for days, and is in no hurry: it looks every tenth of a lease, but at
 * least a second apart.
 */
int64_t
lockmgr_campaign_interval(int64_t lease_us)
{
	return lease_us / 10 > CAMPAIGN_MIN_US ? lease_us / 10 : CAMPAIGN_MIN_US;
}

/* The longest time between two polls. */
static int64_t
longest_interval(const lockmgr *lm, bool busy)
{
	return busy && lm->poll_interval_us > POLL_BUSY_US ? POLL_BUSY_US : lm->poll_interval_us;
}

/*
 * Sets the timer for the next poll of another client's lock.  The interval is a
 * twentieth of the time already waited, so that a poll is late by a few per cent
 * at most.  A lock that changed hands lately is polled more often, to hit the
 * moment in which another cluster's waiters stay back: see lockmgr_clock.c.
 * A lock that nobody holds, but which is kept, seldom becomes free earlier.
 * A poll never comes later than the moment of death, the end of the time for which the
 * lock is kept, or the renewal of our gate.
 *
 * A poll may be stale.  One that shows a version that another has replaced restarts
 * the count to the take-over: it comes later, by no more than the read was behind.
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
	if (lock->first->request.ask.campaign)
		interval = lockmgr_campaign_interval(lock->first->request.ask.lease_ms * 1000) / 3 * 4;
	if (!lock->seen && lm_is_kept(lm, now, lock->kept_until_ms))
		interval = POLL_KEPT_US;
	/* A quarter is taken off at random. */
	interval = interval * 3 / 4 + (int64_t) (lm_random(lm) % (uint64_t) (interval / 4));
	if (now + interval > lm_ripe_at(lm, now, lock))
		interval = lm_ripe_at(lm, now, lock) - now;
	if (lm_needs_gate(lock) && lm_is_our_gate(lock) && now + interval > gate_renewal_at(lock))
		interval = gate_renewal_at(lock) - now;
	lm_enter(lm, lock, LOCK_POLLING, now + (interval > 0 ? interval : 0));
}

/*
 * The next poll is due; a dead version is taken over without one.  A waiter sets a gate, so that
 * clusters that share the lock let in nobody else, and renews it: the reply shows the item, so that
 * is a poll as well.
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
 * The session was refused once more although, by the item, it can have what it wants.  What
 * we knew may have been old, or the item was read a moment after the refusal; but if that
 * goes on, the session gets an error.
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

/* What is wrong with the item, or else whether it is kept too long; or NULL. */
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

/* The acquire was refused: another client has the lock, or our token was too low. */
static void
acquire_refused(lockmgr *lm, int64_t now, lm_lock *lock,
				const dynamo_result *result)
{
	const dynamo_item *item = &result->item;
	lease_write pending = lock->lease->l.pending;
	bool		shared = lock->lease->l.mode != MODE_EXCLUSIVE;
	const char *known = lock->attribute_names;	/* of the additional attributes */
	bool		other_attributes = known != NULL && item->attribute_names != NULL ?
		strcmp(known, item->attribute_names) != 0 : known != item->attribute_names;
	lm_session *session = lm_pending_session(lm, lock->lease);
	bool		wants_shared = session != NULL && session->request.ask.mode != MODE_EXCLUSIVE;

	/* What in the item keeps everybody from getting the lock as this session wants it. */
	const char *wrong = or_kept_too_long(
		lm, now, item, dynamo_obstacle(item, wants_shared ? result->shared : NULL));

	/*
	 * Was it refused only because our clock is behind the last holder's?  Perhaps, in shared mode.
	 * The next token is above the item's.
	 */
	bool		too_low = item->token >= pending.first_token &&
		(!item->exists || item->released || shared ||
		 strcmp(item->version, pending.expected) == 0);

	/* Another copy may be under way, unless this item keeps it out for ever. */
	if (lock->outcome_unknown && !lm_is_barred(&pending, item))
		lm_bar(lm, now, lock);
	else
		lm_drop_lease(lm, lock);
	lm_refused_by_clock(lock);
	lm_observe(lm, now, lock, item, result->shared);

	if (session == NULL)
		;						/* cancelled; the next one in the queue tries */
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
		lm_have_company(lock);
		lm_note_waits(lock);
		lm_poll_later(lm, now, lock);
		return;
	}
	else if (!too_low && !other_attributes &&
			 (shared ? pending.kind != DYNAMO_SHARED_OPEN ||
			  !lm_can_join(lm, now, lock, &session->request) :
			  !lock->seen || strcmp(lock->version, pending.expected) == 0))
		lm_stay_back(lm, now, lock);	/* unexpected: retry slowly; not if an opening was
										 * refused, and we can join; nor if other
										 * attributes are known now */
	if (session != NULL && session->request.active)
	{
		/* Counts the acquires that were refused while the item stayed as it is, and was free. */
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
	lm_have_asked(lock);
	if (lock->bar != NULL)
		lm_end_bar(lm, lock->bar);	/* this token is above its own */

	/* In shared mode, the item is not in the reply if we opened that. */
	if (exclusive)
	{
		/* Perhaps it is confirmed for nobody any more: then we do not know its attributes. */
		const lm_session *payload = lm_payload_session(lm, lease);
		char	   *names = payload != NULL && payload->request.attributes != NULL ?
			dynamo_attribute_names(payload->request.attributes) : NULL;

		lm_note_attributes(lock, names);
		free(names);
	}
	lm_written(lm, lease);
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
		lease->l.ends_kept = true;	/* nobody was promised that time */
		lm_pass_on(lm, now, lock);	/* cancelled, or confirmed too late */
	}
}

/* The session no longer wants its unsettled acquire.  If it may be applied, it is barred. */
void
lm_abandon(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->outcome_unknown)
		lm_bar(lm, now, lock);
	else
		lm_drop_lease(lm, lock);
	lm_stay_back(lm, now, lock);
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
