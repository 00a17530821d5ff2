/*-------------------------------------------------------------------------
 *
 * lockmgr_deadlock.c
 *	  Deadlocks among this cluster's sessions.
 *
 * A session waits for one lock at a time, and a lock has one holder, so the waits
 * form chains.  Only a session that starts to wait can close a cycle; a grant
 * cannot, because the session that gets the lock waits for nothing.  So the chain
 * is followed when a session joins a queue.  It may lead into a cycle without that
 * session when several waiting sessions are adopted at once.  Cycles through
 * other clusters, or through PostgreSQL's own locks, are not detected.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdio.h>
#include <string.h>

#define NAME_SHOWN 100			/* bytes of a lock's name */

/* The session of this cluster that holds the lock the session waits for, or NULL. */
static const lm_session *
holder_of(const lm_session *waiter)
{
	const lm_lease *lease = waiter->request.lock->lease;

	/* A lost lease ends by itself. */
	return lease != NULL && lease->l.state == LEASE_HELD && lease->hold != NULL ?
		lease->hold->session : NULL;
}

static bool
waits(const lm_session *session)
{
	return session->request.active && session->request.kind == LOCKMGR_ACQUIRE;
}

/* Length of the name, cut between characters. */
static int
shown_length(const lm_lock *lock)
{
	size_t		len = lock->name_len;

	if (len <= NAME_SHOWN)
		return (int) len;
	len = NAME_SHOWN;
	while (len > 0 && (lock->name[len] & 0xC0) == 0x80)
		len--;
	return (int) len;
}

/* May the session, which waits for a lock of its own, be told this one's name? */
static bool
may_tell(const lm_session *session, const lm_lock *lock)
{
	size_t		len = session->request.prefix_len;

	return lock->name_len >= len && session->request.lock->name_len >= len &&
		memcmp(lock->name, session->request.lock->name, len) == 0;
}

static void
describe(const lm_session *session, char *cycle, size_t size)
{
	const lm_session *waiter = session;
	size_t		used = 0;

	do
	{
		const lm_lock *lock = waiter->request.lock;
		char		name[NAME_SHOWN + sizeof("lock \"...\"")] = "another lock";
		int			written;

		if (may_tell(session, lock))
			snprintf(name, sizeof(name), "lock \"%.*s%s\"", shown_length(lock), lock->name,
					 lock->name_len > NAME_SHOWN ? "..." : "");
		written = snprintf(cycle + used, size - used,
						   "%sProcess %d waits for %s, held by process %d.",
						   used > 0 ? " " : "", waiter->request.holder.pid, name,
						   lock->lease->hold->h.holder.pid);
		if (written < 0 || (size_t) written >= size - used)
		{
			cycle[used] = '\0';
			return;
		}
		used += (size_t) written;
		waiter = holder_of(waiter);
	} while (waiter != session);
}

/*
 * Has the session closed a cycle by joining a queue?  If so, describes the cycle,
 * as far as it fits.
 */
bool
lm_deadlocked(const lockmgr *lm, const lm_session *session, char *cycle,
			  size_t size)
{
	const lm_session *holder = holder_of(session);
	uint32_t	left = lm->waiters;

	while (holder != NULL && holder != session && waits(holder) && left-- > 0)
		holder = holder_of(holder);
	if (holder != session)
		return false;
	describe(session, cycle, size);
	return true;
}
