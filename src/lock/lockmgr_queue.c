/*-------------------------------------------------------------------------
 *
 * lockmgr_queue.c
 *	  Sessions that wait: the queue, answers, and calls that fail.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdlib.h>
#include <string.h>

/*-------------------------------------------------------------------------
 * The queue of this cluster's sessions that wait for a lock.
 *
 * First in, first out.  The lock's watch shows what they wait for.  An announced request needs no
 * watch, because its session does not wait yet.
 *-------------------------------------------------------------------------
 */

/*
 * Puts the session at the end of the lock's queue; or at its front, if its write is
 * under way: while adopting, or because it was announced.
 */
void
lm_enqueue(lockmgr *lm, int64_t now, lm_lock *lock, lm_session *session,
		   bool front)
{
	lm_request *request = &session->request;

	lm_assert(request->active && request->kind <= LOCKMGR_TRY);
	lm_assert(lock->first != session && request->previous == NULL && request->next == NULL);
	request->lock = lock;
	request->since = now;
	request->previous = front ? NULL : lock->last;
	request->next = front ? lock->first : NULL;
	*(request->previous ? &request->previous->request.next : &lock->first) = session;
	*(request->next ? &request->next->request.previous : &lock->last) = session;
	lm_advance_retry(lm, now, lock);
	if (session->announced_by != NULL)
		return;
	lm->waiters += !request->ask.leadership;

	if (lock->watch == LOCKMGR_NO_WATCH)
	{
		/* There are as many watches as sessions, so one is free. */
		lock->watch = lm->free_watches[--lm->free_watch_count];
		lm_tell_watch(lm, lock);
	}
	lm->host.waits(lm->host.arg, session->id, request->seq, lock->watch);
}

/*
 * Notes in all requests of the queue that their sessions wait for others.  Those that do not say
 * so yet are at the end of the queue.
 */
void
lm_note_waits(lm_lock *lock)
{
	for (lm_session *s = lock->last; s != NULL && !s->request.waited; s = s->request.previous)
		s->request.waited = true;
}

void
lm_dequeue(lockmgr *lm, lm_session *session)
{
	lm_request *request = &session->request;
	lm_lock    *lock = request->lock;

	lm_assert(request->previous != NULL || lock->first == session);
	*(request->previous ? &request->previous->request.next : &lock->first) =
		request->next;
	*(request->next ? &request->next->request.previous : &lock->last) =
		request->previous;
	request->next = request->previous = NULL;
	request->lock = NULL;
	lm->waiters -= session->announced_by == NULL && !request->ask.leadership;
	lm_assert((lock->first == NULL) == (lock->last == NULL));
	/*
	 * Frees the watch if no session looks at it any more: the queue is empty, or has only an
	 * announced request, which is always the first.
	 */
	if (lock->watch != LOCKMGR_NO_WATCH &&
		(lock->first == NULL ||
		 (lock->first->announced_by != NULL && lock->first->request.next == NULL)))
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
		what.holder = lock->lease->l.mode != MODE_EXCLUSIVE && lock->lease->holds != NULL ?
			lock->lease->holds->h.holder : lock->lease->l.holder;
	}
	else if (lock->seen)
	{
		what.held = true;
		memcpy(what.owner, lock->shared != NULL && lock->shared->owner[0] != '\0' ?
			   lock->shared->owner : lock->owner, sizeof(what.owner));
		what.holder = lock->holder;
		what.first_seen = lock->holder_seen;
	}
	else if (lock->lease == NULL && lock->kept_until_ms != 0)
	{
		what.held = true;
		what.kept_until_ms = lock->kept_until_ms;
	}
	if (lock->trouble_since != 0)
	{
		what.trouble = lock->trouble;
		what.trouble_since = lock->trouble_sent;
		memcpy(what.message, lock->trouble_message, sizeof(what.message));
	}
	lm->host.watch(lm->host.arg, lock->watch, &what);
}

/*-------------------------------------------------------------------------
 * Answers to sessions.
 *-------------------------------------------------------------------------
 */

/*
 * Answers the session's request, which ends it.  The result of an announced request is kept until
 * the session claims it.  A release of several locks is answered with the last one, or with a
 * failure.
 */
void
lm_answer(lockmgr *lm, lm_session *session, lockmgr_answer *answer)
{
	lm_request *request = &session->request;

	lm_assert(request->active);
	if (request->unreleased > 1 && answer->result != LOCKMGR_FAILED)
	{
		request->unreleased--;
		return;
	}
	if ((request->kind == LOCKMGR_ACQUIRE || request->kind == LOCKMGR_TRY) &&
		request->lock != NULL)
		lm_dequeue(lm, session);
	answer->session = session->id;
	answer->seq = request->seq;
	answer->kind = request->kind;
	if (answer->message == NULL)
		answer->message = "";
	request->active = false;
	lm_free_payload(request);
	if (session->announced_by != NULL)
	{
		session->outcome = answer->result;
		if (answer->result == LOCKMGR_GRANTED)
			session->granted = answer->grant.hold_index;
		return;
	}
	lm->host.answer(lm->host.arg, answer);
}

void
lm_answer_result(lockmgr *lm, lm_session *session, lockmgr_result result)
{
	lockmgr_answer answer = {.result = result};

	lm_answer(lm, session, &answer);
}

/* The request fails, because the item is unusable. */
void
lm_answer_bad_item(lockmgr *lm, lm_session *session, const char *message)
{
	lockmgr_answer answer = {.result = LOCKMGR_BAD_ITEM, .message = message};

	lm_answer(lm, session, &answer);
}

/* The request fails with the lock's trouble. */
void
lm_answer_failed(lockmgr *lm, lm_session *session, const lm_lock *lock)
{
	lockmgr_answer answer = {
		.result = LOCKMGR_FAILED,
		.op = lock->trouble_op,
		.status = lock->trouble,
		.message = lock->trouble_message,
	};

	lm_answer(lm, session, &answer);
}

/* The session that waits for the lock's release, or NULL. */
lm_session *
lm_releaser(const lm_lock *lock)
{
	lm_session *session = lock->releaser;

	return session != NULL && session->request.active &&
		session->request.seq == lock->releaser_seq ? session : NULL;
}

/* The request of the session that waits for the lock's release fails with the lock's trouble. */
void
lm_fail_releaser(lockmgr *lm, lm_lock *lock)
{
	lm_session *session = lm_releaser(lock);

	lock->releaser = NULL;
	if (session != NULL)
		lm_answer_failed(lm, session, lock);
}

/* Does the session that has the hold wait for a renewal of its lease? */
bool
lm_is_renewer(const lm_hold *hold)
{
	const lm_request *request = &hold->session->request;

	return request->active && request->kind == LOCKMGR_RENEW &&
		hold->lease->lock != NULL && request->lock == hold->lease->lock;
}

bool
lm_has_renewer(const lm_lease *lease)
{
	const lm_hold *hold = lease->holds;

	while (hold != NULL && !lm_is_renewer(hold))
		hold = hold->lease_next;
	return hold != NULL;
}

/* A session that waits for a renewal that changes the item's data, or NULL. */
lm_session *
lm_data_renewer(const lm_lease *lease)
{
	const lm_hold *hold = lease->holds;

	while (hold != NULL && !(lm_is_renewer(hold) && hold->session->request.data != NULL))
		hold = hold->lease_next;
	return hold != NULL ? hold->session : NULL;
}

void
lm_answer_renewer(lockmgr *lm, const lm_hold *hold, lockmgr_result result)
{
	lockmgr_answer answer = {
		.result = result,
		.grant.valid_until = hold->lease->l.valid_until,
		.loss = hold->h.loss,
	};

	if (!lm_is_renewer(hold))
		return;
	hold->lease->lock->wanted_lease_ms = 0;
	lm_answer(lm, hold->session, &answer);
}

void
lm_answer_renewers(lockmgr *lm, const lm_lease *lease, lockmgr_result result)
{
	for (const lm_hold *hold = lease->holds; hold != NULL; hold = hold->lease_next)
		lm_answer_renewer(lm, hold, result);
}

/* The request fails, because nobody knows whether the release was done. */
void
lm_answer_unconfirmed(lockmgr *lm, lm_session *session)
{
	lockmgr_answer answer = {
		.result = LOCKMGR_FAILED,
		.op = DYNAMO_RELEASE,
		.status = DYNAMO_UNKNOWN,
		.message = "the lease had ended before DynamoDB confirmed the release",
	};

	lm_answer(lm, session, &answer);
}

/*
 * Answers the session that waits for the lock's release.  Call it after saving the lease: the
 * session reads the lease directory next.
 */
void
lm_answer_releaser(lockmgr *lm, lm_lock *lock, lockmgr_result result)
{
	lm_session *session = lm_releaser(lock);

	if (session == NULL)
		return;
	lock->releaser = NULL;
	if (result == LOCKMGR_FAILED)
		lm_answer_unconfirmed(lm, session);
	else
		lm_answer_result(lm, session, result);
}

/*-------------------------------------------------------------------------
 * Calls that fail: when to repeat them, and when to tell sessions.
 *
 * The lock's trouble lasts from the first failure to the next success.  A
 * session gets the error when it has waited for retry_timeout, or at once if a
 * repetition cannot help.  Sessions that wait for the lock see the trouble in
 * their watch.
 *-------------------------------------------------------------------------
 */

void
lm_clear_trouble(lockmgr *lm, lm_lock *lock)
{
	bool		had = lock->trouble_since != 0;

	lock->attempts = 0;
	lock->trouble_since = 0;
	if (had)
		lm_tell_watch(lm, lock);
}

void
lm_note_trouble(lockmgr *lm, int64_t now, lm_lock *lock, dynamo_op op, int64_t sent,
				const dynamo_result *result)
{
	lock->attempts++;
	if (lock->trouble_since == 0)
	{
		lock->trouble_since = now;
		lock->trouble_sent = sent;
	}
	lock->trouble_op = op;
	lock->trouble = result->status;
	memcpy(lock->trouble_message, result->message, sizeof(lock->trouble_message));
	if (result->status == DYNAMO_UNKNOWN || result->status == DYNAMO_MALFORMED ||
		result->status == DYNAMO_WRONG_SERVICE)
		lock->outcome_unknown = true;
	lm_tell_watch(lm, lock);
}

/* Should the session's request fail now? */
bool
lm_out_of_patience(const lockmgr *lm, int64_t now, const lm_lock *lock,
				   const lm_session *session)
{
	int64_t		since = session->request.since;

	if (lock->trouble_since == 0)
		return false;			/* nothing has failed */
	if (since < lock->trouble_since)
		since = lock->trouble_since;
	return !dynamo_is_transient(lock->trouble) || now - since >= lm->retry_timeout_us;
}

void
lm_fail_impatient_waiters(lockmgr *lm, int64_t now, lm_lock *lock)
{
	while (lock->first != NULL && lm_out_of_patience(lm, now, lock, lock->first))
		lm_answer_failed(lm, lock->first, lock);
}

/*
 * If the session that waits for the lock's release has waited long enough, its request fails.  The
 * release itself goes on.
 */
void
lm_fail_impatient_releaser(lockmgr *lm, int64_t now, lm_lock *lock)
{
	const lm_session *session = lm_releaser(lock);

	if (session != NULL && lm_out_of_patience(lm, now, lock, session))
		lm_fail_releaser(lm, lock);
}

/*
 * A call has ended: pays for it, or earns by it.  Call this before the call's locks count
 * failures.
 */
void
lm_charge_budget(lockmgr *lm, const lm_call *call, const dynamo_reply *reply)
{
	bool		repeated = false;

	for (int i = 0; i < call->count; i++)
		repeated |= call->locks[i] != NULL && call->locks[i]->attempts > 0;
	backoff_charge(&lm->budget, reply, call->count, repeated);
}

int64_t
lm_backoff(lockmgr *lm, unsigned attempts, int64_t cap_us)
{
	return backoff_later_us(lm->budget.cannot_pay, attempts, cap_us, lm_random(lm));
}

/*
 * When to repeat a renewal.
 *
 *	 - Normally after a random delay that grows with each failure, up to a quarter of the time
 *	   left.
 *	 - If the budget of repetitions is spent, and no session waits for the renewal or shall be
 *	   told of the trouble, the renewal of an exclusive lock is postponed to the last third of
 *	   the lease. From then on it is repeated again and again, after an eighth to three eighths
 *	   of the time left.
 */
int64_t
lm_renew_again_at(lockmgr *lm, int64_t now, lm_lock *lock)
{
	const saved_lease *l = &lock->lease->l;
	int64_t		last_third = l->deadline - l->lease_ms * 1000 / 3;
	int64_t		cap = (l->deadline - now) / 4;

	lock->postponed = lm->budget.cannot_pay && l->state == LEASE_HELD && l->mode == MODE_EXCLUSIVE &&
		lock->first == NULL && !lm_has_renewer(lock->lease);
	if (!lock->postponed)
		return now + lm_backoff(lm, lock->attempts, cap < BACKOFF_CAP_US ? cap : BACKOFF_CAP_US);
	if (now < last_third)
		return last_third + (int64_t) (lm_random(lm) % BACKOFF_CAP_US);
	return now + cap / 2 + (int64_t) (lm_random(lm) % (uint64_t) (cap + 1));
}

/*
 * A session now waits for the lock, or for its release: a renewal or release of the lock that was
 * put off, because the budget of repetitions is spent, goes out sooner.
 */
void
lm_advance_retry(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->state == LOCK_RENEWING && lock->postponed && lock->call == NULL)
		heap_set(&lm->renewals, &lock->renewal, now);
	else if (lock->state == LOCK_RELEASING && lock->call == NULL && lock->first != NULL &&
			 lock->timer.at > now + 2 * BACKOFF_CAP_US && lock->timer.at != INT64_MAX)
		heap_set(&lm->timers, &lock->timer, lm_retry_at(lm, now, lock));
}

/* When to repeat another call of the lock, which has failed. */
int64_t
lm_retry_at(lockmgr *lm, int64_t now, const lm_lock *lock)
{
	return now + lm_backoff(lm, lock->attempts, BACKOFF_CAP_US);
}

#define RELEASE_APART_US	INT64_C(100000)

/*
 * When to repeat a release.  If the budget of repetitions is spent and no session waits, releases
 * are repeated one after the other, RELEASE_APART_US apart: if an outage has cost many leases,
 * their releases must be no storm of their own.
 */
int64_t
lm_release_again_at(lockmgr *lm, int64_t now, const lm_lock *lock)
{
	int64_t		at = lm_retry_at(lm, now, lock);

	if (!lm->budget.cannot_pay || lock->first != NULL || lm_releaser(lock) != NULL)
		return at;
	if (at < lm->release_at + RELEASE_APART_US)
		at = lm->release_at + RELEASE_APART_US;
	lm->release_at = at;
	return at;
}

/* Keeps the lock's next acquire back, for longer with each failure. */
void
lm_delay_acquire(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->attempts == 0)
		lock->attempts = 1;
	lock->stay_back_until = lm_retry_at(lm, now, lock);
}
