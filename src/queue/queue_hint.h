/*-------------------------------------------------------------------------
 *
 * queue_hint.h
 *	  Resources of queues that may have a job: what the sessions of a cluster and its worker
 *	  tell each other, in shared memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_QUEUE_QUEUE_HINT_H
#define DDBLOCK_QUEUE_QUEUE_HINT_H

#include "lock/shared_word.h"
#include "queue/queue.h"

#define QUEUE_HINTS 64

/* How often the next job has been claimed is not known. */
#define QUEUE_ATTEMPTS_UNKNOWN (-1)

typedef enum queue_hint_state
{
	QUEUE_HINT_FREE,
	QUEUE_HINT_CHANGES,			/* a process writes or takes it */
	QUEUE_HINT_READY
} queue_hint_state;

typedef struct queue_hint
{
	shared32	state;
	shared64	since;
	int64_t		attempts;
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];
} queue_hint;

/* Neither waits nor fails; perhaps there is no room.  hints: [QUEUE_HINTS] */
extern void queue_hint_add(queue_hint *hints, int64_t now, const char *queue, const char *resource,
						   int64_t attempts);

/* Is a hint for this resource not for this session? */
typedef bool (*queue_hint_skip) (const char *queue, const char *resource);

/*
 * Takes the oldest hint for one of these resources (the last one is NULL), or for any if they
 * are NULL.  False: there is none.  skip may be NULL.
 */
extern bool queue_hint_take(queue_hint *hints, int64_t now, const char *queue,
							char *const *resources, queue_hint_skip skip, int64_t *attempts,
							char resource[QUEUE_RESOURCE_MAX + 1]);

#endif							/* DDBLOCK_QUEUE_QUEUE_HINT_H */
