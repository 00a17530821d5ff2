/*-------------------------------------------------------------------------
 *
 * guard.h
 *	  The commit guard: a transaction that writes does not commit after its
 *	  session has lost a lease.
 *
 * The guard looks at the clock before the commit record is written.  A wait in
 * between is interrupted when a lease is lost; but a process that is stopped
 * there can still commit too late.  ddb_fence_check() covers that, see doc/internals/safety.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_GUARD_H
#define DDBLOCK_SESSION_GUARD_H

#include "postgres.h"

/*
 * For an effect that no ROLLBACK undoes, or that needs no transaction id: raises
 * LK001 if the transaction must not have it.  The effect counts as a write from
 * then on.
 */
extern void GuardEffect(const char *what);

/* Before COMMIT and PREPARE: raises LK001 if the transaction must not commit. */
extern void GuardCommit(void);

/*
 * Has a transaction that writes passed the guard?  Then the guard does not see
 * the next loss, and the session must be interrupted.  Async-signal-safe.
 */
extern bool GuardIsPassed(void);

extern void GuardEndTransaction(void);

#endif							/* DDBLOCK_SESSION_GUARD_H */
