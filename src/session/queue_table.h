/*-------------------------------------------------------------------------
 *
 * queue_table.h
 *	  Is the queues' table fit, and guarded by our lock table?
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_QUEUE_TABLE_H
#define DDBLOCK_SESSION_QUEUE_TABLE_H

#include "postgres.h"

#include "session/queue_call.h"

/* Raises 55000 if the described table cannot be a queue's. */
extern void QueueTableCheck(const QueueRow *described);

/*
 * The same, but looks at the table itself, unless a session of this cluster has done so within
 * the last hour: a table can become a global one.  Also if another lock table guards it.
 */
extern void QueueTableRequire(void);

#endif							/* DDBLOCK_SESSION_QUEUE_TABLE_H */
