/*-------------------------------------------------------------------------
 *
 * lockmgr_queue.c
 *	  The queue of this cluster's sessions that wait for a lock.
 *
 * First in, first out.  What they wait for is in their watch; an announced request has
 * none, for nobody looks.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

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
	lock->waiters++;
	if (session->announced_by != NULL)
		return;
	lm->waiters += !request->ask.campaign;

	if (lock->watch == LOCKMGR_NO_WATCH)
	{
		/* There are as many watches as sessions, so one is free. */
		lock->watch = lm->free_watches[--lm->free_watch_count];
		lm_tell_watch(lm, lock);
	}
	lm->host.waits(lm->host.arg, session->id, request->seq, lock->watch);
}

/* An announced request is only ever the first in the queue. */
static bool
is_watched(const lm_lock *lock)
{
	const lm_session *first = lock->first;

	return first != NULL && (first->announced_by == NULL || first->request.next != NULL);
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
	lm->waiters -= session->announced_by == NULL && !request->ask.campaign;
	lock->waiters--;
	lm_assert((lock->waiters == 0) == (lock->first == NULL) &&
			  (lock->first == NULL) == (lock->last == NULL));
	if (lock->watch != LOCKMGR_NO_WATCH && !is_watched(lock))
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
		memcpy(what.message, lock->trouble_message, sizeof(what.message));
	}
	lm->host.watch(lm->host.arg, lock->watch, &what);
}
