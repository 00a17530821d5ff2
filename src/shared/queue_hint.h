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

/* How often the next job has been claimed is not known. */
#define HINT_ATTEMPTS_UNKNOWN (-1)

/* Leaves a hint, and wakes the sessions that wait for jobs.  Neither waits nor fails. */
extern void QueueHintTell(const char *queue, const char *resource, int64 attempts);

/* The same, but wakes nobody. */
extern void QueueHintAdd(const char *queue, const char *resource, int64 attempts);

/* Is a hint for this resource not for this session? */
typedef bool (*QueueHintSkip) (const char *queue, const char *resource);

/*
 * Takes the oldest hint for one of these resources (the last one is NULL), or for any if they
 * are NULL.  False: there is none.  skip may be NULL.
 */
extern bool QueueHintTake(const char *queue, char *const *resources, QueueHintSkip skip,
						  int64 *attempts, char resource[QUEUE_RESOURCE_MAX + 1]);

#endif							/* DDBLOCK_SHARED_QUEUE_HINT_H */
