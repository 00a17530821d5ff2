/*-------------------------------------------------------------------------
 *
 * lockmgr_deadlock.c
 *	  Deadlocks among this cluster's sessions.
 *
 * A session waits for one lock at a time, and for all sessions that have it: the
 * search is depth-first.  Only a session that starts to wait can close a cycle; a
 * grant cannot, because the session that gets the lock waits for nothing.  So the
 * search begins when a session joins a queue.  It may lead into a cycle without
 * that session when several waiting sessions are adopted at once.
 *
 * A session that wants to share a lock that others share already waits "in line" only: it came
 * after a session that wants the lock exclusively.  Example: A and B share lock x, C waits for x
 * exclusively.  B waits for lock y, which D has.  If D now wants to share x, too, D waits in line
 * behind C, C waits for B, and B for D.  So D goes first, before C, and nobody is refused.
 *
 * The search does not find cycles through other clusters.  Nor does it find those through permits
 * of a semaphore or PostgreSQL's own locks; the sessions find these themselves, later.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdio.h>
#include <string.h>

#define NAME_SHOWN 100			/* bytes of a lock's name */

/*
 * The holds that must end before the session gets the lock that it waits for; or NULL.  Holds on a
 * lost lease end by themselves.  Those on a semaphore do not count: any of them may give permits
 * back.
 */
static const lm_hold *
holds_before(const lm_session *waiter)
{
	const lm_lease *lease = waiter->request.lock->lease;

	return lease != NULL && lease->l.state == LEASE_HELD &&
		!(waiter->request.ask.mode == lease->l.mode && lockmgr_limited(lease->l.mode)) ?
		lease->holds : NULL;
}

/* Does the hold end only if its session acts? */
static bool
needs_session(const lockmgr *lm, const lm_hold *hold)
{
	return lm->host.ends_hold == NULL ||
		!lm->host.ends_hold(lm->host.arg, hold->index, &hold->h);
}

/*
 * Describes the cycle in which the session waits.  The session of each one's "blocker" comes next.
 */
static void
describe(const lm_session *session, char *cycle, size_t size)
{
	const lm_session *waiter = session;
	const lm_lock *own = session->request.lock;
	size_t		prefix_len = session->request.ask.prefix_len;
	size_t		used = 0;

	do
	{
		const lm_lock *lock = waiter->request.lock;
		char		name[NAME_SHOWN + sizeof("lock \"...\"")] = "another lock";
		int			written;

		/* The session may be told the names of locks that begin as its own lock's name does. */
		if (lock->name_len >= prefix_len && own->name_len >= prefix_len &&
			memcmp(lock->name, own->name, prefix_len) == 0)
		{
			bool		is_long = lock->name_len > NAME_SHOWN;
			size_t		len = is_long ? NAME_SHOWN : lock->name_len;

			/* A long name is cut between two characters. */
			while (is_long && len > 0 && (lock->name[len] & 0xC0) == 0x80)
				len--;
			snprintf(name, sizeof(name), "lock \"%.*s%s\"", (int) len, lock->name,
					 is_long ? "..." : "");
		}
		written = snprintf(cycle + used, size - used,
						   "%sProcess %d waits for %s, held by process %d.",
						   used > 0 ? " " : "", waiter->request.ask.holder.pid, name,
						   waiter->blocker->h.holder.pid);
		if (written < 0 || (size_t) written >= size - used)
		{
			cycle[used] = '\0';
			return;
		}
		used += (size_t) written;
		waiter = waiter->blocker->session;
	} while (waiter != session);
}

/*
 * Does the session wait for itself?  The search enters each session on its way once.  The
 * "blocker" of each session is the hold that the search follows from there, and came_from is the
 * way back.
 */
static bool
waits_for_itself(lockmgr *lm, lm_session *session)
{
	lm_session *at = session;

	lm->search++;
	session->came_from = NULL;
	session->blocker = holds_before(session);
	while (at != NULL)
	{
		const lm_hold *hold = at->blocker;
		lm_session *holder = hold != NULL ? hold->session : NULL;

		if (hold == NULL)
			at = at->came_from;	/* no hold leads on: back, to the next hold there */
		else if (holder == session && needs_session(lm, hold))
			return true;
		else if (holder->request.active && holder->request.kind == LOCKMGR_ACQUIRE &&
				 holder->search != lm->search && needs_session(lm, hold))
		{
			holder->search = lm->search;
			holder->came_from = at;
			holder->blocker = holds_before(holder);
			at = holder;
		}
		else
			at->blocker = hold->lease_next;
	}
	return false;
}

/*
 * Has the session closed a cycle by joining a queue?  If so, describes the cycle, as
 * far as it fits, and names a session in it that waits in line only, if there is one.
 */
bool
lm_deadlocked(lockmgr *lm, lm_session *session, lm_session **in_line, char *cycle, size_t size)
{
	lm_session *waiter = session;

	if (!waits_for_itself(lm, session))
		return false;
	*in_line = NULL;
	do
	{
		lock_mode	mode = waiter->request.ask.mode;

		/* Does the waiter wait in line only? */
		if (mode == waiter->request.lock->lease->l.mode && lockmgr_unlimited(mode))
			*in_line = waiter;
		waiter = waiter->blocker->session;
	} while (waiter != session);
	describe(session, cycle, size);
	return true;
}
