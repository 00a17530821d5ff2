/*-------------------------------------------------------------------------
 *
 * session.h
 *	  What a session does with locks: acquire, release, renew, ask.
 *
 * The layer between the SQL functions, which check arguments, and the mailbox.
 * All functions raise errors of errors.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_SESSION_H
#define DDBLOCK_SESSION_SESSION_H

#include "postgres.h"

#include "session/held.h"
#include "session/waiting.h"
#include "shared/compat.h"

/*
 * Prepares the process, once.  Raises unless it can use ddblock: the library is
 * preloaded, and the process is neither a replication session nor a parallel
 * worker.
 */
extern void SessionAttach(void);

typedef struct AcquireOptions
{
	LockScope	scope;
	bool		only_try;
	lock_ask	ask;			/* its first three parts.  How long it lasts, at least and at
								 * most, is ignored if the session holds the lock already */
	int64		wait_ms;		/* or WAITING_NO_LIMIT; with only_try, for a holder of this
								 * cluster, who is about to let go, if ask waits for him */
	Waiting    *waiting;		/* a wait for several locks that this one is a part of, */
								/* with only_try, too; or NULL */
	const uint8 *data;			/* NULL for none */
	size_t		data_len;
	const char *attributes;		/* as dynamo_write has them; NULL for none.  With the
								 * data at most DYNAMO_DATA_MAX bytes */
} AcquireOptions;

/* False if only_try and the lock is busy. */
extern bool SessionAcquire(const LockName *name, const AcquireOptions *options,
						   int64 *token);

/*
 * Undoes one session-scoped acquisition in this mode.  If there was none, or the lease
 * is lost, raises a WARNING and returns false.  If that frees an exclusive lock and keep
 * is false, it is not kept from others any more.
 */
extern bool SessionRelease(const LockName *name, lock_mode mode, bool keep);

/* The same in any mode, but does not wait for DynamoDB. */
extern bool SessionLetGo(const LockName *name);

/* Undoes all session-scoped acquisitions; returns the number of locks. */
extern int	SessionReleaseAll(void);

/* The same, but does not wait for DynamoDB.  Cannot fail. */
extern void SessionLetGoAll(void);

/*
 * lease_ms 0: same length.  data NULL: the item keeps its data; data_len 0: it loses it.
 * Returns the new deadline, on SegmentNow()'s clock.
 */
extern int64 SessionRenew(const LockName *name, int64 lease_ms, const uint8 *data,
						  size_t data_len);

/* The token if the lease is valid, else 0.  Sends no request. */
extern int64 SessionToken(const LockName *name);

/* Microseconds until the deadline, or 0 if the lease is not valid.  Sends no request. */
extern int64 SessionRemaining(const LockName *name);

/* The token; raises if the lease is lost or the lock is not held. */
extern int64 SessionRequire(const LockName *name);

/*
 * Reads the lock's item in DynamoDB. The result is valid until the session's
 * next request.  With unusable, the result is NULL for an item that nobody can use as a lock;
 * else such an item raises, unless it shows who holds the lock.
 */
extern const MailboxItem *SessionLookUp(const LockName *name, bool *unusable);

/*
 * For joined.c and several.c.
 */

extern MailboxRequest SessionAcquireRequest(const LockName *name, const AcquireOptions *options);

/* Fills in the hold of a new note; raises if it was lost before we read the answer. */
extern void SessionTakeGrant(const LockName *name, HeldLock *held,
							 const MailboxAnswer *answer, uint64 seq);

/* Says for whom it asks: this session. */
extern void SessionIdentify(lock_ask *ask);

/* The lease of this note is lost: an error, or a WARNING when its note is gone. */
pg_noreturn extern void SessionRaiseLost(const LockName *name, HeldLock *held);
extern void SessionWarnLost(const char *lock, lease_loss loss);

#endif							/* DDBLOCK_SESSION_SESSION_H */
