/*-------------------------------------------------------------------------
 *
 * worker_finish.h
 *	  Finishes jobs whose sessions have committed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_FINISH_H
#define DDBLOCK_WORKER_WORKER_FINISH_H

#include "postgres.h"

#include "lock/lockmgr.h"

extern void WorkerFinishInit(void);

/* Sends what is due.  Returns when it must be called again. */
extern int64 WorkerFinishRun(int64 now);

/* Are all finished? */
extern bool WorkerFinishIdle(void);

/* Does a hold end when its job is finished, whatever its session does (lockmgr_host)? */
extern bool WorkerFinishEndsHold(void *arg, uint32 index, const hold *hold);

#endif							/* DDBLOCK_WORKER_WORKER_FINISH_H */
