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

#endif							/* DDBLOCK_WORKER_WORKER_FINISH_H */
