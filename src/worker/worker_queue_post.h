/*-------------------------------------------------------------------------
 *
 * worker_queue_post.h
 *	  Calls on the queues' table use a quarter of the connections at most.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_QUEUE_POST_H
#define DDBLOCK_WORKER_WORKER_QUEUE_POST_H

#include "postgres.h"

#include "worker/worker_call.h"

/*
 * Posts the call now, or after calls before it have ended.  Its done function must call
 * WorkerQueueEnded().
 */
extern void WorkerQueuePost(const WorkerCall *call);
extern void WorkerQueueEnded(void);

/* Has its session neither ended nor canceled the call?  The worker's own have none. */
extern bool WorkerQueueIsWanted(const WorkerCall *call);

#endif							/* DDBLOCK_WORKER_WORKER_QUEUE_POST_H */
