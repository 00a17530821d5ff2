/*-------------------------------------------------------------------------
 *
 * interrupt.h
 *	  Interrupts the session when it has lost a lease.
 *
 * ddblock.on_lease_lost decides how.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_INTERRUPT_H
#define DDBLOCK_SESSION_INTERRUPT_H

#include "postgres.h"

#include "session/held.h"

/* Once in a process, before the worker may know its pid. */
extern void InterruptAttach(void);

/* A deadline is new, or earlier than before. */
extern void InterruptArm(void);

/*
 * For a lock function that waits and tells of this lease's loss by its own
 * error: its latch is set at the deadline, and it is not cancelled.  If its
 * transaction goes on all the same, the interruption comes later.
 */
extern void InterruptDefer(HeldLock *held);
extern void InterruptDeferred(HeldLock *held);

/* The first lost lock, if the running transaction was, or is being, interrupted. */
extern const HeldLock *InterruptCause(void);

/* Was a loss seen since the last call? */
extern bool InterruptTakeLoss(void);

/* Around changes to HeldLocks(), which the signal's handler reads. */
extern void InterruptHold(void);
extern void InterruptResume(void);

#endif							/* DDBLOCK_SESSION_INTERRUPT_H */
