/*-------------------------------------------------------------------------
 *
 * queue_head.h
 *	  Writes of a resource's head: claim, complete, fail, drop, pause.
 *
 * doc/internals/queues.md has their conditions.  Only src/queue uses it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_QUEUE_QUEUE_HEAD_H
#define DDBLOCK_QUEUE_QUEUE_HEAD_H

#include "queue/queue_text.h"

/* The table, the head's key, and what changes it; names and values follow. */
extern void queue_put_head_update(dynamo_text *text, const char *table,
								  const queue_request *request, const char *update,
								  const char *condition);

/* The head's part of finishing a job: in the form for the last job, or the other one. */
extern void queue_put_finish(dynamo_text *text, const char *table, const queue_request *request,
							 bool last);

/* Bodies, all but the last brace. */
extern void queue_put_claim(dynamo_text *text, const char *table, const queue_request *request);
extern void queue_put_complete(dynamo_text *text, const char *table, const queue_request *request);
extern void queue_put_fail(dynamo_text *text, const char *table, const queue_request *request);
extern void queue_put_drop(dynamo_text *text, const char *table, const queue_request *request);
extern void queue_put_pause(dynamo_text *text, const char *table, const queue_request *request);

#endif							/* DDBLOCK_QUEUE_QUEUE_HEAD_H */
