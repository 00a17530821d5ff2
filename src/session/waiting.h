/*-------------------------------------------------------------------------
 *
 * waiting.h
 *	  How long a session waits for a lock, and what it is told meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_WAITING_H
#define DDBLOCK_SESSION_WAITING_H

#include "postgres.h"

#include "shared/segment.h"

#define WAITING_NO_LIMIT (-1)

typedef struct Waiting
{
	const char *lock;			/* its name, in the database's encoding */
	int64		started;
	int64		limit_ms;		/* the caller's, or WAITING_NO_LIMIT */
	int64		deadline;		/* the earlier of that and lock_timeout */
	bool		lock_timeout;	/* the deadline is lock_timeout's */
	int64		next_look;		/* when to see again who holds the lock */
	bool		told;
	lockmgr_watch last;			/* what we told */
} Waiting;

extern void WaitingStart(Waiting *waiting, const char *lock, int64 limit_ms);

/*
 * A turn of the wait for request seq of the slot.  Raises when the time is
 * up; tells who holds the lock when that is due.  Returns when to call again.
 */
extern int64 WaitingTurn(Waiting *waiting, MailboxSlot *slot, uint64 seq,
						 int64 now);

/*
 * Tells why the worker repeats requests, if it does, to a session that has
 * waited for deadlock_timeout since then and was not told since.
 */
extern void WaitingTellTrouble(int64 since, int64 now);

/* "It is held by owner ...": palloc'd, a sentence. */
extern char *WaitingDescribeHolder(const lockmgr_watch *watch, int64 now);

#endif							/* DDBLOCK_SESSION_WAITING_H */
