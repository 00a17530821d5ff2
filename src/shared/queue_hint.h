/*-------------------------------------------------------------------------
 *
 * queue_hint.h
 *	  Resources of queues that may have a job: what the sessions of a cluster and its worker
 *	  tell each other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_QUEUE_HINT_H
#define DDBLOCK_SHARED_QUEUE_HINT_H

#include "shared/segment.h"

/* Leaves a hint, and wakes the sessions that wait for jobs.  Neither waits nor fails. */
extern void QueueHintTell(const char *queue, const char *resource, int64 attempts);

/* The same, but wakes nobody. */
extern void QueueHintAdd(const char *queue, const char *resource, int64 attempts);

/* See queue_hint_take(). */
extern bool QueueHintTake(const char *queue, char *const *resources, queue_hint_skip skip,
						  int64 *attempts, char resource[QUEUE_RESOURCE_MAX + 1]);

#endif							/* DDBLOCK_SHARED_QUEUE_HINT_H */
