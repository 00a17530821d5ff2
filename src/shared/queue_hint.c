/*-------------------------------------------------------------------------
 *
 * queue_hint.c
 *	  Resources of queues that may have a job: what the sessions of a cluster and its worker
 *	  tell each other.  See queue/queue_hint.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shared/shared.h"

void
QueueHintTell(const char *queue, const char *resource, int64 attempts)
{
	QueueHintAdd(queue, resource, attempts);
	SegmentTellJobs();
}

void
QueueHintAdd(const char *queue, const char *resource, int64 attempts)
{
	queue_hint_add(segment->hints, SegmentNow(), queue, resource, attempts);
}

bool
QueueHintTake(const char *queue, char *const *resources, queue_hint_skip skip,
			  int64 *attempts, char resource[QUEUE_RESOURCE_MAX + 1])
{
	return queue_hint_take(segment->hints, SegmentNow(), queue, resources, skip, attempts,
						   resource);
}
