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

/*
 * Installs signal handler and timer, once in a process.  The process must not
 * use LOSS_SIGNAL for anything else.
 */
extern void InterruptAttach(void);

/* Call it when there is a new deadline. */
extern void InterruptArm(void);

/*
 * Around the wait of a lock function that reports the loss of this lease by its own
 * error.  The session is not interrupted for it meanwhile; its latch is set at
 * the deadline instead.  If the transaction continues after the error, the
 * interruption follows.
 */
extern void InterruptBeginDefer(HeldLock *held);
extern void InterruptEndDefer(HeldLock *held);

/* The first lost lock, if the running transaction was interrupted, or will be. */
extern const HeldLock *InterruptCause(void);

/* Was a loss noticed since the last call? */
extern bool InterruptTakeLoss(void);

#endif							/* DDBLOCK_SESSION_INTERRUPT_H */
