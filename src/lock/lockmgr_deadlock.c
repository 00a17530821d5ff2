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
 * A session that wants to share a lock that others share already waits only because
 * it came after one who wants it exclusively.  If that closes a cycle, it goes first.
 *
 * Not detected are cycles through other clusters; nor those through permits of a semaphore
 * or PostgreSQL's own locks, which the sessions find themselves, later.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdio.h>
#include <string.h>

#define NAME_SHOWN 100			/* bytes of a lock's name */

/* The holds of the lock for which the session waits, or NULL.  A lost lease ends by itself. */
static const lm_hold *
holds_before(const lm_session *waiter)
{
	const lm_lease *lease = waiter->request.lock->lease;

	return lease != NULL && lease->l.state == LEASE_HELD &&
		!(waiter->request.ask.mode == lease->l.mode && lockmgr_limited(lease->l.mode)) ?
		lease->holds : NULL;
}

/* Does the hold's session have to act, so that it ends? */
static bool
needs_session(const lockmgr *lm, const lm_hold *hold)
{
	return lm->host.ends_hold == NULL ||
		!lm->host.ends_hold(lm->host.arg, hold->index, &hold->h);
}

/* The cycle in which the session waits; each session's "blocker" is the next one. */
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

		/* May the session, which waits for a lock of its own, be told this one's name? */
		if (lock->name_len >= prefix_len && own->name_len >= prefix_len &&
			memcmp(lock->name, own->name, prefix_len) == 0)
		{
			bool		is_long = lock->name_len > NAME_SHOWN;
			size_t		len = is_long ? NAME_SHOWN : lock->name_len;

			/* It is cut between characters. */
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
 * Does the session wait for itself?  Each session on the way is entered once; the way
 * back is in its "blocker".
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
			at = at->came_from;	/* nothing here: back, and on with the next hold there */
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

		/* Does it wait only because somebody came before? */
		if (mode == waiter->request.lock->lease->l.mode && lockmgr_unlimited(mode))
			*in_line = waiter;
		waiter = waiter->blocker->session;
	} while (waiter != session);
	describe(session, cycle, size);
	return true;
}
