/*-------------------------------------------------------------------------
 *
 * guard.h
 *	  The commit guard: no transaction that writes commits after its session
 *	  has lost a lease.
 *
 * For held.c, which knows when transactions and notes end, and for
 * statement.c, which knows what a COMMIT would be too late for.
 *
 * The guard looks at the clock before the commit record is written.  A wait in
 * between is interrupted when a lease is lost; but a process that is stopped
 * there can still commit too late.  ddb_fence() covers that, see doc/safety.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_GUARD_H
#define DDBLOCK_SESSION_GUARD_H

#include "postgres.h"

#include "lock/lockmgr.h"

/*
 * The note of a lost lease goes away: the running transaction must not commit
 * all the same.  The name (UTF-8, from TopMemoryContext) becomes the guard's.
 * Cannot fail.
 */
extern void GuardRemember(char *name, lease_loss loss);

/*
 * What no ROLLBACK undoes, or needs no transaction id: raises LK001 if the
 * transaction must not do it.  It counts as a write from then on.
 */
extern void GuardEffect(const char *what);

/* Raises LK001 if the transaction must not commit, or be prepared. */
extern void GuardCommit(void);

/*
 * Has the transaction that writes come so far?  What can still be interrupted
 * then must be.  Async-safe.
 */
extern bool GuardIsPassed(void);

/* The transaction has ended. */
extern void GuardForget(void);

#endif							/* DDBLOCK_SESSION_GUARD_H */
