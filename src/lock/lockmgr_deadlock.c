/*-------------------------------------------------------------------------
 *
 * lockmgr_deadlock.c
 *	  Deadlocks among this cluster's sessions.
 *
 * A session waits for one lock at a time, and a lock has one holder, so who
 * waits for whom is a chain.  A cycle is closed by the session that starts to
 * wait last, never by a grant: whoever is granted a lock waits for nothing at
 * that moment.  So it is enough to follow the chain when a session joins a
 * queue; only a lock manager that adopts several waiting sessions at once
 * meets cycles that the one it looks at has no part in.  Cycles through other
 * clusters, or through PostgreSQL's own locks, are not seen here.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdio.h>
#include <string.h>

#define NAME_SHOWN 100			/* bytes of a lock's name */

/* The session of this cluster that has what the waiting session wants. */
static const lm_session *
holder_of(const lm_session *waiter)
{
	const lm_lease *lease = waiter->request.lock->lease;

	/* A lost lease frees itself. */
	return lease != NULL && lease->l.state == LEASE_HELD ? lease->session : NULL;
}

static bool
waits(const lm_session *session)
{
	return session->request.active && session->request.kind == LOCKMGR_ACQUIRE;
}

/* Cut between characters. */
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

static void
describe(const lm_session *session, char *cycle, size_t size)
{
	const lm_session *waiter = session;
	size_t		used = 0;

	do
	{
		const lm_lock *lock = waiter->request.lock;
		int			written;

		written = snprintf(cycle + used, size - used,
						   "%sProcess %d waits for lock \"%.*s%s\", held by process %d.",
						   used > 0 ? " " : "", waiter->request.holder.pid,
						   shown_length(lock), lock->name,
						   lock->name_len > NAME_SHOWN ? "..." : "",
						   lock->lease->l.holder.pid);
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
 * Does the session, which has just joined a queue, wait for itself?  If so,
 * writes the cycle, in sentences, as far as it fits.
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
