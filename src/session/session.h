/*-------------------------------------------------------------------------
 *
 * session.h
 *	  What a session does with locks: acquire, release, renew, ask.
 *
 * Between the SQL functions, which check arguments, and the mailbox
 * with its worker.  All raise errors.h's errors.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_SESSION_H
#define DDBLOCK_SESSION_SESSION_H

#include "postgres.h"

#include "session/held.h"

/*
 * Prepares the process, once.  Raises unless it can use ddblock: the library is
 * preloaded, and the process is neither a replication session nor a parallel
 * worker.
 */
extern void SessionAttach(void);

/* A lock's name: for messages, and as it goes to DynamoDB. */
typedef struct LockName
{
	char	   *text;			/* for messages, in the database's encoding */
	char	   *utf8;			/* 1 .. DYNAMO_NAME_MAX bytes and a NUL */
} LockName;

typedef struct AcquireOptions
{
	LockScope	scope;
	bool		only_try;
	int64		lease_ms;
	int64		wait_ms;		/* or WAITING_NO_LIMIT */
	const uint8 *data;			/* NULL for none */
	size_t		data_len;
} AcquireOptions;

/* False if only_try and the lock is busy. */
extern bool SessionAcquire(const LockName *name, const AcquireOptions *options,
						   int64 *token);

/* Undoes one session-scoped acquisition; false, after a WARNING, if there was
 * none or the lease is lost. */
extern bool SessionRelease(const LockName *name);

/* Undoes all of them; the number of locks that were held so. */
extern int	SessionReleaseAll(void);

/* The same, without waiting for DynamoDB.  Cannot fail. */
extern void SessionLetGoAll(void);

/* lease_ms 0 keeps the length.  Returns until when it is valid (SegmentNow). */
extern int64 SessionRenew(const LockName *name, int64 lease_ms);

/* The token if the lease is valid, else 0.  No network. */
extern int64 SessionToken(const LockName *name);

/* Raises if the lease is lost or was never held. */
extern int64 SessionRequire(const LockName *name);

/* Reads the lock's item in DynamoDB, whoever holds the lock. */
extern void SessionLookUp(const LockName *name, MailboxAnswer *answer);

#endif							/* DDBLOCK_SESSION_SESSION_H */
