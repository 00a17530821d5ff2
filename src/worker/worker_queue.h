/*-------------------------------------------------------------------------
 *
 * worker_queue.h
 *	  Sessions' calls on the queues' table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_QUEUE_H
#define DDBLOCK_WORKER_WORKER_QUEUE_H

#include "postgres.h"

#include "shared/segment.h"

extern void WorkerQueueInit(void);

/* A QUEUE or QUEUE_MORE request; text is the slot's. */
extern void WorkerQueueAsk(lockmgr_session session, const MailboxRequest *request,
						   const char *text);

/* Frees what is left of a session that has ended. */
extern void WorkerQueueForget(uint32 slot);

#endif							/* DDBLOCK_WORKER_WORKER_QUEUE_H */
