/*-------------------------------------------------------------------------
 *
 * fence.h
 *	  Whether the fences that a transaction asked for still stand.
 *
 * Needs neither shared memory nor the worker.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_FENCE_H
#define DDBLOCK_SESSION_FENCE_H

/*
 * The current (sub)transaction asks for a fence.  To be called before anything
 * that can fail: from here on the whole transaction can commit only if this
 * subtransaction does.
 */
extern void FenceRequest(void);

#endif							/* DDBLOCK_SESSION_FENCE_H */
