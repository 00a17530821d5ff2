/*-------------------------------------------------------------------------
 *
 * leader.h
 *	  Transactions of a cluster that leads.
 *
 * All functions raise errors of errors.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_LEADER_H
#define DDBLOCK_SESSION_LEADER_H

#include "postgres.h"

#include "session/session.h"

/*
 * If this cluster leads, the transaction joins that, until it ends: its loss interrupts
 * the transaction, and the commit guard refuses its commit.  Returns the token, or 0 if
 * the cluster does not lead.
 */
extern int64 LeaderJoin(const LockName *name);

/* The same, but raises LK001 if the cluster does not lead. */
extern int64 LeaderRequire(const LockName *name);

/*
 * The cluster gives up the lock, and does not want it for so long; after wait_ms (0:
 * never) it interrupts the transactions that have joined.  Returns whether it led.
 */
extern bool LeaderResign(const LockName *name, int64 rest_ms, int64 wait_ms);

#endif							/* DDBLOCK_SESSION_LEADER_H */
