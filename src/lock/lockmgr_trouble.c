/*-------------------------------------------------------------------------
 *
 * lockmgr_trouble.c
 *	  Calls that fail: when to repeat them, and when to tell sessions.
 *
 * The lock's trouble lasts from the first failure to the next success.  A
 * session gets the error when it has waited for retry_timeout, or at once if a
 * repetition cannot help.  Sessions that wait for the lock see the trouble in
 * their watch.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/backoff.h"
#include "lock/lockmgr_private.h"

#include <string.h>

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
lm_note_trouble(lockmgr *lm, int64_t now, lm_lock *lock, dynamo_op op,
				const dynamo_result *result)
{
	lock->attempts++;
	if (lock->trouble_since == 0)
		lock->trouble_since = now;
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
		return false;			/* nothing has failed: an abandoned acquire */
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

/* Answers the session; the release goes on. */
void
lm_fail_impatient_releaser(lockmgr *lm, int64_t now, lm_lock *lock)
{
	const lm_session *session = lm_releaser(lock);

	if (session != NULL && lm_out_of_patience(lm, now, lock, session))
		lm_fail_releaser(lm, lock);
}

/*
 * When to try again: the more failures, the later, but at most a quarter of the
 * time left until "before" (0: no limit).
 */
int64_t
lm_retry_at(lockmgr *lm, int64_t now, const lm_lock *lock, int64_t before)
{
	int64_t		cap = BACKOFF_CAP_US;

	if (before > now && (before - now) / 4 < cap)
		cap = (before - now) / 4;
	return now + backoff_us(lock->attempts, cap, lm_random(lm));
}

/* Keeps the lock's next acquire back, for longer with each failure. */
void
lm_stay_back(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->attempts == 0)
		lock->attempts = 1;
	lock->stay_back_until = lm_retry_at(lm, now, lock, 0);
}
