/*-------------------------------------------------------------------------
 *
 * fence.h
 *	  Whether a transaction still has the fences that it asked for.
 *
 * Needs neither shared memory nor the worker.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_FENCE_H
#define DDBLOCK_SESSION_FENCE_H

#include "postgres.h"

/*
 * The current (sub)transaction asks for a fence.  Call it before anything that
 * can fail, but after TransactionAttach(): from here on the whole transaction
 * can commit only if this subtransaction does.
 */
extern void FenceRequest(void);

/* Before COMMIT and PREPARE: raises LK002 if a fence was undone. */
extern void FenceCommit(void);

extern void FenceEndTransaction(void);
extern void FenceEndSubtransaction(bool committed);

#endif							/* DDBLOCK_SESSION_FENCE_H */
