/*-------------------------------------------------------------------------
 *
 * queue_search.h
 *	  Looks for a job that can be claimed, and waits for one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_QUEUE_SEARCH_H
#define DDBLOCK_SESSION_QUEUE_SEARCH_H

#include "postgres.h"

#include "session/queue_job.h"

typedef struct QueueSearch
{
	const char *queue;
	char	  **resources;		/* only these, the last one is NULL; or NULL: any */
	int64		lease_ms;
	int64		wait_ms;
	int			max_attempts;
} QueueSearch;

/*
 * False: there was none in time.  If job is NULL, claims none, and returns when there seems to
 * be one; the session's next search begins with that.
 */
extern bool QueueSearchJob(const QueueSearch *search, QueueJob *job);

#endif							/* DDBLOCK_SESSION_QUEUE_SEARCH_H */
