/*-------------------------------------------------------------------------
 *
 * queue_transact.h
 *	  Transactions on the queue's table: push, cancel, bury.
 *
 * Only src/queue uses it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_QUEUE_QUEUE_TRANSACT_H
#define DDBLOCK_QUEUE_QUEUE_TRANSACT_H

#include "queue/queue_text.h"

/*
 * The jobs' numbers follow the head's.  If another push has used them, the condition on seq
 * refuses this one.  False: the tail is not whole.
 */
extern bool queue_put_push(dynamo_text *text, const char *table, const queue_request *request,
						   const char *tail);

extern void queue_put_cancel(dynamo_text *text, const char *table, const queue_request *request);

/* The payload is the tail. */
extern void queue_put_bury(dynamo_text *text, const char *table, const queue_request *request,
						   const char *tail);

#endif							/* DDBLOCK_QUEUE_QUEUE_TRANSACT_H */
