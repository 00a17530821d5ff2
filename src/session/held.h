/*-------------------------------------------------------------------------
 *
 * held.h
 *	  What this session holds: notes, kept in its own memory.
 *
 * A lock has a session-scoped depth and a transaction-scoped one;
 * its lease is let go when both are 0.  The notes follow transactions and
 * savepoints by themselves, once there is one.
 *
 * Whether the lease still holds is not noted here: HeldIsValid() reads it
 * from the lease directory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_HELD_H
#define DDBLOCK_SESSION_HELD_H

#include "postgres.h"

#include "lib/ilist.h"

#include "shared/segment.h"

typedef enum LockScope
{
	SCOPE_SESSION,
	SCOPE_XACT
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
	uint32		lease_index;
	uint64		seq;			/* of the request that acquired it */
	int64		token;
	bool		seen_lost;		/* interrupt.c has seen to it */
	lease_loss	loss;			/* why; LOSS_NONE: not lost, or not known yet */
	bool		deferred;		/* and does not: a lock function does */
	bool		told;			/* the client knows of the loss */
	int64		session_depth;
	int64		xact_depth;		/* sum of the levels' depths */
	int			level_count;	/* levels rise, outermost first */
	int			level_room;
	HeldLevel  *levels;
} HeldLock;

/* NULL if the session has no such lock, valid or lost. */
extern HeldLock *HeldFind(const char *name);

/* All of them, as HeldLock.node. */
extern dlist_head *HeldLocks(void);

/*
 * Everything that can fail comes before the lock is acquired: a new note
 * without a lease, and room to count one more acquisition.
 */
extern HeldLock *HeldReserve(const char *name);
extern void HeldReserveDepth(HeldLock *held, LockScope scope);

/* And these cannot fail. */
extern void HeldSetLease(HeldLock *held, uint32 lease_index, uint64 seq, int64 token);
extern void HeldCount(HeldLock *held, LockScope scope);
extern void HeldUncountSession(HeldLock *held, int64 depth);
/* If the lease is lost, that is told, and the commit guard remembers it. */
extern void HeldForget(HeldLock *held);

/* Without waiting for DynamoDB. */
extern void HeldLetGoIfUnused(HeldLock *held);

/* On the clock of leases; the past, or 0, if it is lost.  Async-safe. */
extern int64 HeldValidUntil(const HeldLock *held);
extern bool HeldIsValid(const HeldLock *held);
extern lease_loss HeldLoss(const HeldLock *held);

/* If the lease was lost at its deadline: counts and logs that, once. */
extern void HeldTellLoss(const HeldLock *held);

/*
 * Notes why the lease is lost, as soon as that can be known: its entry becomes
 * another lease's if there is no other room.  Async-safe.
 */
extern void HeldNoteLoss(HeldLock *held);

#endif							/* DDBLOCK_SESSION_HELD_H */
