/*-------------------------------------------------------------------------
 *
 * worker_fetch.h
 *	  Does what fetching credentials needs: HTTP requests, and a command.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_FETCH_H
#define DDBLOCK_WORKER_WORKER_FETCH_H

#include "postgres.h"

#include "aws/fetch.h"

/* fetch->found or fetch->error is set. */
typedef void (*WorkerFetched) (aws_fetch *fetch, bool found);

extern void WorkerFetchInit(void);
extern void WorkerFetchReload(void);

/* Readable when there is something to do for WorkerFetchRun(). */
extern int	WorkerFetchFd(void);

/* One at a time.  done may be called at once. */
extern void WorkerFetchStart(aws_fetch *fetch, WorkerFetched done);

/* Its result is not wanted any more: done is called soon, without one. */
extern void WorkerFetchGiveUp(void);

/* done is called from here. */
extern void WorkerFetchRun(void);

#endif							/* DDBLOCK_WORKER_WORKER_FETCH_H */
