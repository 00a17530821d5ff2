/*-------------------------------------------------------------------------
 *
 * held.h
 *	  What this session holds: notes, kept in its own memory.
 *
 * A lock has a session-scoped depth and a transaction-scoped one; its lease is
 * let go when both are 0.
 *
 * The notes do not say whether the lease is valid: HeldIsValid() reads that from
 * the lease directory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_HELD_H
#define DDBLOCK_SESSION_HELD_H

#include "postgres.h"

#include "lib/ilist.h"

#include "session/name.h"
#include "shared/segment.h"

typedef enum LockScope
{
	SCOPE_SESSION,
	SCOPE_XACT,
	SCOPE_LEADER				/* the whole transaction, although a savepoint is rolled
								 * back: the client knows that it leads */
} LockScope;

/* Acquisitions made in a (sub)transaction of the given nesting level. */
typedef struct HeldLevel
{
	int			nest_level;
	int64		depth;
} HeldLevel;

typedef struct HeldLock
{
	char	   *name;			/* UTF-8, with a NUL: the key; must be first */
	dlist_node	node;
	uint32		hold_index;		/* LOCKMGR_NO_HOLD: not acquired yet */
	uint32		lease_index;
	uint32		lease_generation;
	uint64		seq;			/* of the request that acquired it */
	int64		token;
	int64		must_end;		/* no belief from then on; 0: no limit */
	lock_mode	mode;
	int32		permits;		/* of a semaphore */
	bool		leader;			/* it is the cluster's: see leader.h */
	bool		seen_lost;		/* interrupt.c has noticed the loss */
	lease_loss	loss;			/* why; LOSS_NONE: not lost, or not known yet */
	bool		deferred;		/* InterruptBeginDefer() */
	bool		told;			/* the client knows of the loss */
	int64		session_depth;
	int64		xact_depth;		/* sum of the levels' depths */
	int			level_count;	/* levels rise, outermost first */
	int			level_room;
	HeldLevel  *levels;
} HeldLock;

/* Makes the list of notes, once in a process. */
extern void HeldAttach(void);

/* NULL if the session has no such lock, valid or lost. */
extern HeldLock *HeldFind(const char *name);

/* All of them, as HeldLock.node. */
extern dlist_head *HeldLocks(void);

/*
 * Around each change of what a signal handler reads: the list, and a note's
 * hold and lease, seq, seen_lost and deferred.  In between, HeldIsChanging() tells the
 * handler to stay away and come back.  A section is a few instructions long,
 * raises no error, and does not contain another one.
 */
extern void HeldBeginChange(void);
extern void HeldEndChange(void);
extern bool HeldIsChanging(void);

/*
 * Acquires the lock of a new note, and calls HeldSetHold(); or raises; or returns false, if the
 * session does not get the lock.
 */
typedef bool (*HeldAcquire) (HeldLock *held, const LockName *name, const void *arg);

/*
 * A note for a lock that the session does not have; counts the acquisition.  Everything that can
 * fail is done before the lock is acquired.  If it is not acquired, there is no note: NULL, or
 * the error.
 */
extern HeldLock *HeldAdd(const LockName *name, LockScope scope, HeldAcquire acquire,
						 const void *arg);

/* Counts one more acquisition. */
extern void HeldCount(HeldLock *held, LockScope scope);

/* These cannot fail. */
extern void HeldSetHold(HeldLock *held, const MailboxAnswer *granted, uint64 seq);
extern void HeldUnsetHold(HeldLock *held);
extern void HeldUncountSession(HeldLock *held, int64 depth);
/* Undoes HeldCount(), in the same (sub)transaction. */
extern void HeldUncount(HeldLock *held, LockScope scope);
/* Deletes the note.  If the lease is lost, logs and remembers the loss. */
extern void HeldForget(HeldLock *held);

/* Does not wait for DynamoDB. */
extern void HeldLetGoIfUnused(HeldLock *held);

/*
 * The transaction must not commit as if the loss of a lease, whose note is
 * deleted, had not happened.  The name (UTF-8, from TopMemoryContext) becomes
 * held.c's.  Only the first loss of a transaction is kept.  Cannot fail.
 */
extern void HeldRememberLoss(char *name, lease_loss loss);
extern void HeldForgetLoss(void);

/* The name (UTF-8) of a lock that this transaction has lost, or NULL. */
extern const char *HeldFindLoss(lease_loss *why);

/* For transaction.c. */
extern void HeldRefusePrepare(void);
extern void HeldEndTransaction(void);
extern void HeldEndSubtransaction(bool committed);

/* On the clock of leases; in the past, or 0, if it is lost.  Async-signal-safe. */
extern int64 HeldValidUntil(const HeldLock *held);
extern bool HeldIsValid(const HeldLock *held);
extern lease_loss HeldLoss(const HeldLock *held);

/* Counts and logs a loss at the deadline, unless that was done. */
extern void HeldTellLoss(const HeldLock *held);

/*
 * Notes why the lease is lost, because its entry in the directory may become
 * another lease's at any time.  Async-signal-safe.
 */
extern void HeldNoteLoss(HeldLock *held);

#endif							/* DDBLOCK_SESSION_HELD_H */
