/*-------------------------------------------------------------------------
 *
 * queue_place.h
 *	  Jobs whose sessions have committed, and how the worker finishes them.
 *
 * A session reserves a place and fills it while it can still fail, and passes it on when its
 * transaction has committed.  The place stays the worker's until the outcome is known, over any number
 * of workers.
 *
 * The places are in shared memory, as the host says.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_QUEUE_QUEUE_PLACE_H
#define DDBLOCK_QUEUE_QUEUE_PLACE_H

#include "lock/shared_word.h"
#include "queue/queue.h"

#define QUEUE_NO_PLACE UINT32_MAX

typedef enum queue_place_state
{
	QUEUE_PLACE_FREE,
	QUEUE_PLACE_RESERVED,		/* the session's that reserved it */
	QUEUE_PLACE_READY			/* the worker's */
} queue_place_state;

typedef struct queue_place
{
	shared32	state;
	int64_t		token;
	int64_t		number;
	bool		last;			/* no job waited behind it when it was claimed */
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];
} queue_place;

typedef queue_place *(*queue_place_at) (void *arg, uint32_t index);

/* Is it the worker's?  If so, all of it can be read. */
extern bool queue_place_is_ready(queue_place *place);

/* A free place, looked for from "first" on, so that sessions do not meet; QUEUE_NO_PLACE: none. */
extern uint32_t queue_place_reserve(queue_place_at at, void *arg, uint32_t first, uint32_t count);
extern void queue_place_free(queue_place *place);

/* It becomes the worker's, and may be another job's at once: *copy is what it was. */
extern void queue_place_pass(queue_place *place, queue_place *copy);

/* What the worker knows of a place. */
typedef struct queue_note
{
	bool		known;			/* the place is ours, and the rest is set */
	bool		in_flight;
	int64_t		next;			/* when to send it (again) */
	unsigned	failures;
	unsigned	refusals;		/* the first one is answered in the other form at once */
	queue_finish finish;
} queue_note;

/* The worker's side. */
typedef struct queue_finisher
{
	void	   *arg;
	uint32_t	count;			/* of places */
	queue_note *notes;			/* [count] */
	uint32_t	unfinished;
	shared32   *news;			/* a place has become the worker's */
	queue_place_at place;

	/*
	 * Sends the write; queue_finisher_reply() follows.  index: QUEUE_NO_PLACE for a deletion, whose
	 * outcome does not matter.
	 */
	void		(*send) (void *arg, uint32_t index, const queue_request *request, bool repeat);

	/* It could not be finished yet, so many times: how long to wait? */
	int64_t		(*later) (void *arg, uint32_t index, unsigned failures, const dynamo_reply *reply);

	/*
	 * The outcome is known: the session's hold ends, while the place is still the job's.  more: jobs
	 * have come behind it since it was claimed.
	 */
	void		(*ended) (void *arg, uint32_t index, queue_outcome outcome, bool more);
} queue_finisher;

/* Returns when to call it again, if there are no news before. */
extern int64_t queue_finisher_run(queue_finisher *me, int64_t now);
extern void queue_finisher_reply(queue_finisher *me, uint32_t index, int64_t now,
								 const dynamo_reply *reply);
extern bool queue_finisher_is_idle(const queue_finisher *me);

#endif							/* DDBLOCK_QUEUE_QUEUE_PLACE_H */
