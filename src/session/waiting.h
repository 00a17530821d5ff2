/*-------------------------------------------------------------------------
 *
 * waiting.h
 *	  How long a session waits for a lock, and what it reports meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_WAITING_H
#define DDBLOCK_SESSION_WAITING_H

#include "postgres.h"

#include "session/deadlock.h"
#include "shared/segment.h"

#define WAITING_NO_LIMIT (-1)

typedef struct Waiting
{
	const char *lock;			/* its name, in the database's encoding */
	int64		started;
	int64		limit_ms;		/* the caller's, or WAITING_NO_LIMIT */
	int64		deadline;		/* the earlier of that and lock_timeout */
	bool		lock_timeout;	/* the deadline is lock_timeout's */
	bool		only_try;		/* for a reply, not for the holder */
	bool		gives_up;		/* then, without an error */
	int64		next_look;		/* when to read the watch again */
	DeadlockSearch deadlock;
	char	   *title;			/* the process title before; NULL: it is as before */
	bool		told;
	lockmgr_watch last;			/* what was reported last */
} Waiting;

extern void WaitingStart(Waiting *waiting, const char *lock, int64 limit_ms);

/*
 * To be called in each turn of the wait for request seq of the slot.  Raises when
 * the time is over; reports who holds the lock when that is due.  Returns when
 * it must be called again.
 */
extern int64 WaitingTurn(Waiting *waiting, MailboxSlot *slot, uint64 seq,
						 int64 now);

/* When the wait is over, also by an error. */
extern void WaitingEnd(Waiting *waiting);

/*
 * If requests are repeated, and the session has waited for deadlock_timeout, reports why, once
 * for each wait.  message: why the session repeats its own; NULL: perhaps the worker does.
 */
extern void WaitingTellTrouble(int64 since, int64 now, const char *message);

/* What keeps request seq of the slot waiting; false if nothing does. */
extern bool WaitingReadWatch(MailboxSlot *slot, uint64 seq, lockmgr_watch *watch);

/* A sentence, "It is held by owner ...", palloc'd. */
extern char *WaitingDescribeHolder(const lockmgr_watch *watch, int64 now);

#endif							/* DDBLOCK_SESSION_WAITING_H */
