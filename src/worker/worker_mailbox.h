/*-------------------------------------------------------------------------
 *
 * worker_mailbox.h
 *	  The worker's side of the segment: requests, answers, the lease directory.
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

/* The lock manager's effects on sessions (lockmgr_host). */
extern void WorkerSave(void *arg, uint32 index, const lease *lease,
					   const char *name, size_t name_len);
extern void WorkerSaveHold(void *arg, uint32 index, const hold *hold);
extern void WorkerAnswer(void *arg, const lockmgr_answer *answer);
extern void WorkerWaits(void *arg, lockmgr_session session, uint64 seq,
						uint32 watch);
extern void WorkerWatch(void *arg, uint32 watch, const lockmgr_watch *what);

#endif							/* DDBLOCK_WORKER_WORKER_MAILBOX_H */
