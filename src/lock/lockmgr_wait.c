/*-------------------------------------------------------------------------
 *
 * lockmgr_wait.c
 *	  Waiting for a lock: the queue, the acquire, and polling a lock that
 *	  another client holds.
 *
 * Sessions of this cluster wait in one queue per lock, first in, first out.  Calls
 * are made for the first in the queue, so twenty waiting sessions cost as many
 * reads as one.
 *
 * Another client's version is dead LOCKMGR_DEAD_AFTER(its lease) after we first
 * received it, by our own clock.  See "Time" in doc/protocol.md.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdlib.h>
#include <string.h>

#define POLL_MIN_US		INT64_C(20000)
#define POLL_BUSY_US	INT64_C(50000)
#define BUSY_US			INT64_C(2000000)

/*
 * Puts the session at the end of the lock's queue; or at its front, while adopting,
 * if its write is under way.
 */
void
lm_enqueue(lockmgr *lm, int64_t now, lm_lock *lock, lm_session *session,
		   bool front)
{
	lm_request *request = &session->request;

	request->lock = lock;
	request->since = now;
	request->previous = front ? NULL : lock->last;
	request->next = front ? lock->first : NULL;
	*(request->previous ? &request->previous->request.next : &lock->first) = session;
	*(request->next ? &request->next->request.previous : &lock->last) = session;
	lock->waiters++;
	lm->waiters++;

	if (lock->watch == LOCKMGR_NO_WATCH)
	{
		/* There are as many watches as sessions, so one is free. */
		lock->watch = lm->free_watches[--lm->free_watch_count];
		lm_tell_watch(lm, lock);
	}
	lm->host.waits(lm->host.arg, session->id, request->seq, lock->watch);
}

void
lm_dequeue(lockmgr *lm, lm_session *session)
{
	lm_request *request = &session->request;
	lm_lock    *lock = request->lock;

	*(request->previous ? &request->previous->request.next : &lock->first) =
		request->next;
	*(request->next ? &request->next->request.previous : &lock->last) =
		request->previous;
	request->next = request->previous = NULL;
	request->lock = NULL;
	lm->waiters--;
	if (--lock->waiters == 0)
	{
		lm->free_watches[lm->free_watch_count++] = lock->watch;
		lock->watch = LOCKMGR_NO_WATCH;
	}
}

/* Updates the watch of the sessions that wait for the lock. */
void
lm_tell_watch(lockmgr *lm, lm_lock *lock)
{
	lockmgr_watch what = {.trouble = DYNAMO_OK};

	if (lock->watch == LOCKMGR_NO_WATCH)
		return;
	if (lock->lease != NULL && lock->lease->l.state == LEASE_HELD)
	{
		what.held = what.local = true;
		memcpy(what.owner, lm->owner, sizeof(what.owner));
		what.holder = lock->lease->l.holder;
	}
	else if (lock->seen)
	{
		what.held = true;
		memcpy(what.owner, lock->owner, sizeof(what.owner));
		what.holder = lock->holder;
		what.first_seen = lock->holder_seen;
	}
	if (lock->trouble_since != 0)
	{
		what.trouble = lock->trouble;
		memcpy(what.message, lock->trouble_message, sizeof(what.message));
	}
	lm->host.watch(lm->host.arg, lock->watch, &what);
}

/* The moment from which the version we see is dead. */
static int64_t
dead_at(const lm_lock *lock)
{
	return lock->first_seen + LOCKMGR_DEAD_AFTER(lock->lease_ms * 1000);
}

/*
 * Records an item that was received now.  If its version is known, nothing changes:
 * what counts is when it was first seen.
 */
void
lm_observe(lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_item *item)
{
	bool		same_owner;
	bool		same_token;

	/* INT64_MAX is refused elsewhere: there is no higher one. */
	if (item->has_token && item->token > lock->top_token && item->token < INT64_MAX)
		lock->top_token = item->token;
	if (!item->exists || item->released || item->wrong != NULL)
	{
		lock->seen = false;
		return;
	}
	same_owner = lock->seen && strcmp(lock->owner, item->owner) == 0;
	same_token = lock->token == (item->has_token ? item->token : 0);
	if (same_owner && lock->lease_ms == item->lease_ms &&
		strcmp(lock->version, item->version) == 0)
		return;

	lock->seen = true;
	lock->first_seen = now;
	memcpy(lock->owner, item->owner, sizeof(lock->owner));
	memcpy(lock->version, item->version, sizeof(lock->version));
	lock->lease_ms = item->lease_ms;
	lock->token = item->has_token ? item->token : 0;
	if (!same_owner || !same_token)
	{
		lock->holder = item->holder;
		lock->holder_seen = now;
		lm_tell_watch(lm, lock);
	}
}

/*
 * The version that an acquire may overwrite although it is not released, or "": it
 * is dead, or was written by an abandoned acquire of our own.
 */
static const char *
overwritable(const lockmgr *lm, int64_t now, const lm_lock *lock)
{
	if (lock->seen &&
		(now >= dead_at(lock) ||
		 (strcmp(lock->owner, lm->owner) == 0 && lm_is_retired(lm, lock->version))))
		return lock->version;
	return "";
}

/*
 * A listing does not replace remembered locks, because locks that sessions have
 * needed are worth more.  The result is false if this cluster has a lease for
 * the lock, or sessions that wait for it: a try would not get it.
 */
bool
lockmgr_observe(lockmgr *lm, int64_t sent, int64_t now, const char *name,
				size_t name_len, const dynamo_item *item)
{
	lm_lock    *lock;
	bool		dead = false;

	if (!lm_is_known(lm, name, name_len) &&
		(item->released || item->wrong != NULL || lm->remembered >= lm->max_remembered))
		return false;
	lock = lm_get_lock(lm, name, name_len);
	if (lock == NULL)
		return false;
	if (lock->lease == NULL)
	{
		lm_observe(lm, now, lock, item);
		dead = lock->first == NULL && overwritable(lm, sent, lock)[0] != '\0' &&
			!item->bad_token && item->token < INT64_MAX;
	}
	lm_remember(lm, lock);
	return dead;
}

/* DynamoDB's time in microseconds, but above every token of the lock. */
int64_t
lm_next_token(const lockmgr *lm, int64_t now, const lm_lock *lock)
{
	int64_t		token = now + lm->epoch_offset_us;

	return token > lock->top_token ? token : lock->top_token + 1;
}

/* Makes the lock's pending acquire or hand-over one for this session. */
static void
write_for(lockmgr *lm, int64_t now, lm_lock *lock, lm_session *session)
{
	lease	   *l = &lock->lease->l;

	l->pending.lease_ms = session->request.lease_ms;
	l->pending.margin_us = session->request.margin_us;
	l->pending.session = session->id;
	l->pending.seq = session->request.seq;
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
		lm_new_write(lm, lock, DYNAMO_ACQUIRE, overwritable(lm, now, lock));
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

/* Does its session still wait for the pending write? */
bool
lm_pending_wanted(lockmgr *lm, const lm_lease *lease)
{
	const lease_write *pending = &lease->l.pending;
	lm_session *session = lm_live_session(lm, pending->session);

	return session != NULL && session->request.active &&
		session->request.seq == pending->seq;
}

/*
 * Sets the timer for the next poll of another client's lock.  The interval is a
 * twentieth of the time already waited, so that a poll is late by a few per cent
 * at most.  A lock that changed hands lately is polled more often, to hit the
 * moment in which another cluster's waiters stay back: see lockmgr_release.c.
 * A poll never comes later than the moment of death.
 *
 * A poll may be stale.  One that shows a version that another has replaced restarts
 * the count to the take-over: it comes later, by no more than the read was behind.
 */
void
lm_poll_later(lockmgr *lm, int64_t now, lm_lock *lock)
{
	int64_t		interval = (now - lock->polling_since) / 20;

	while (lock->first != NULL && lock->first->request.kind == LOCKMGR_TRY)
		lm_answer_result(lm, lock->first, LOCKMGR_BUSY);
	if (lock->first == NULL)
	{
		lm_next_turn(lm, now, lock);
		return;
	}
	if (interval < POLL_MIN_US)
		interval = POLL_MIN_US;
	if (interval > lm->poll_interval_us)
		interval = lm->poll_interval_us;
	if (now - lock->holder_seen < BUSY_US && interval > POLL_BUSY_US)
		interval = POLL_BUSY_US;
	interval = interval * 3 / 4 + (int64_t) (lm_random(lm) % (uint64_t) (interval / 4));
	if (lock->seen && now + interval > dead_at(lock))
		interval = dead_at(lock) - now;
	lm_enter(lock, LOCK_POLLING);
	heap_set(&lm->timers, &lock->timer, now + (interval > 0 ? interval : 0));
}

/* The next poll is due; a dead version is taken over without one. */
void
lm_poll(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->first == NULL || overwritable(lm, now, lock)[0] != '\0')
	{
		lm_next_turn(lm, now, lock);
		return;
	}
	lm_enter(lock, LOCK_READING);
	lm_submit(lm, lock);
}

void
lm_poll_settled(lockmgr *lm, int64_t now, lm_lock *lock,
				const dynamo_result *result)
{
	lm_observe(lm, now, lock, &result->item);
	while (lock->first != NULL && result->item.wrong != NULL)
		lm_answer_bad_item(lm, lock->first, result->item.wrong);
	if (!lock->seen || overwritable(lm, now, lock)[0] != '\0')
		lm_next_turn(lm, now, lock);
	else
		lm_poll_later(lm, now, lock);
}

/*
 * Was the acquire refused only because its token is not above the item's?  Our
 * clock is behind the last holder's, then.
 */
static bool
token_too_low(const lease_write *pending, const dynamo_item *item)
{
	bool		overwritable = !item->exists || item->released ||
		strcmp(item->version, pending->expected) == 0;

	return overwritable && item->has_token && item->token >= pending->token;
}

/* The acquire was refused: another client has the lock, or our token was too low. */
static void
acquire_refused(lockmgr *lm, int64_t now, lm_lock *lock,
				const dynamo_item *item)
{
	lease_write pending = lock->lease->l.pending;
	lm_session *session = lm_pending_wanted(lm, lock->lease) ?
		lm->sessions[pending.session.slot] : NULL;

	if (lock->maybe)
		lm_retire(lm, pending.version);
	lm_drop_lease(lm, lock);
	lm_observe(lm, now, lock, item);

	if (session == NULL)
		;						/* cancelled; the next one in the queue tries */
	else if (item->wrong != NULL)
		lm_answer_bad_item(lm, session, item->wrong);
	else if (item->bad_token)
		lm_answer_bad_item(lm, session, "attribute \"fencingToken\" is not an integer "
						   "between 1 and 9223372036854775807");
	else if (token_too_low(&pending, item))
	{
		if (item->token == INT64_MAX)
			lm_answer_bad_item(lm, session, "attribute \"fencingToken\" has the highest "
							   "possible value");
	}
	else if (lock->seen && overwritable(lm, now, lock)[0] == '\0')
	{
		lock->polling_since = now;
		lm_have_company(lock);
		lm_poll_later(lm, now, lock);
		return;
	}
	else if (!lock->seen || strcmp(lock->version, pending.expected) == 0)
		lm_stay_back(lm, now, lock);	/* unexpected: retry slowly */
	lm_next_turn(lm, now, lock);
}

void
lm_acquire_settled(lockmgr *lm, int64_t now, lm_lock *lock,
				   const dynamo_result *result)
{
	lm_lease   *lease = lock->lease;

	/* If the item has our nonce, an earlier copy was applied. */
	if (result->status == DYNAMO_CONDITION_FAILED &&
		(result->item.released ||
		 strcmp(result->item.version, lease->l.pending.version) != 0))
	{
		acquire_refused(lm, now, lock, &result->item);
		return;
	}

	lm_written(lm, lease);
	if (result->status == DYNAMO_OK)
		lm_replaced(lm, lock, &result->item);
	if (lm_pending_wanted(lm, lease) && now < lease->l.deadline)
		lm_grant(lm, now, lock);
	else
	{
		/* Cancelled, or confirmed too late. */
		lm_set_lease_state(lm, lease, LEASE_RELEASING);
		lm_save(lm, lease, false);
		lm_pass_on(lm, now, lock);
	}
}

/*
 * The session no longer wants its unsettled acquire.  If that may have been
 * applied, a release that expects its nonce undoes it.
 */
void
lm_abandon(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_lease   *lease = lock->lease;
	char		nonce[UUID_SIZE];

	if (!lock->maybe)
	{
		lm_drop_lease(lm, lock);
		lm_stay_back(lm, now, lock);
		lm_next_turn(lm, now, lock);
		return;
	}
	memcpy(nonce, lease->l.pending.version, sizeof(nonce));
	lease->l.lease_end = now + lease->l.pending.lease_ms * 1000;
	lm_set_lease_state(lm, lease, LEASE_RELEASING);
	lm_release(lm, now, lock, nonce);
}

void
lm_acquire_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_fail_impatient_waiters(lm, now, lock);
	if (lm_pending_wanted(lm, lock->lease))
		heap_set(&lm->timers, &lock->timer, lm_retry_at(lm, now, lock, 0));
	else
		lm_abandon(lm, now, lock);
}

void
lm_poll_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_fail_impatient_waiters(lm, now, lock);
	if (lock->first == NULL)
	{
		lm_next_turn(lm, now, lock);
		return;
	}
	lm_enter(lock, LOCK_POLLING);
	heap_set(&lm->timers, &lock->timer, lm_retry_at(lm, now, lock, 0));
}
