/*-------------------------------------------------------------------------
 *
 * worker_mailbox.h
 *	  Requests of sessions, read from their slots.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_MAILBOX_H
#define DDBLOCK_WORKER_WORKER_MAILBOX_H

#include "postgres.h"

#include "lock/lockmgr.h"

extern void WorkerMailboxInit(void);

/* Takes over what the worker before this one left in the segment. */
extern void WorkerAdopt(int64 now);

/* Handles the news of every slot whose bell was rung. */
extern void WorkerReadMailbox(int64 now);

/*
 * Handles or fails the requests that wait at the gate.  Returns when it must be
 * called again.
 */
extern int64 WorkerSettleParked(int64 now);

/* Answers every request: there is no Region or no endpoint. */
extern void WorkerRefuseRequests(void);

#endif							/* DDBLOCK_WORKER_WORKER_MAILBOX_H */
