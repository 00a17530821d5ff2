/*-------------------------------------------------------------------------
 *
 * worker_queue_post.c
 *	  Calls on the queues' table use a quarter of the connections at most.
 *
 * Half of them are for what sessions want of locks, the rest for renewals, which must not
 * wait behind large jobs.  Calls that do not fit wait here, first in, first out; those of
 * sessions that have ended, or wait no more, are not sent.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/ilist.h"
#include "utils/memutils.h"

#include "shared/segment.h"
#include "shared/settings.h"
#include "worker/worker.h"

typedef struct Waiter
{
	dlist_node	node;
	WorkerCall	call;
} Waiter;

static dlist_head waiters = DLIST_STATIC_INIT(waiters);
static int	in_flight = 0;

bool
WorkerQueueIsWanted(const WorkerCall *call)
{
	const mailbox_slot *words = &segment_slots[call->session.slot].words;

	return call->session.generation == 0 ||
		(shared_read(&words->generation) == call->session.generation &&
		 shared_read(&words->cancelled_seq) < call->id);
}

static void
post_waiters(void)
{
	while (!dlist_is_empty(&waiters) && in_flight < Max(ddblock_max_connections / 4, 1))
	{
		Waiter	   *waiter = dlist_container(Waiter, node, dlist_pop_head_node(&waiters));

		if (WorkerQueueIsWanted(&waiter->call))
		{
			in_flight++;
			WorkerPost(&waiter->call);
		}
		else
			free(waiter->call.body);
		pfree(waiter);
	}
}

void
WorkerQueuePost(const WorkerCall *call)
{
	Waiter	   *waiter = MemoryContextAlloc(TopMemoryContext, sizeof(Waiter));

	waiter->call = *call;
	dlist_push_tail(&waiters, &waiter->node);
	post_waiters();
}

void
WorkerQueueEnded(void)
{
	in_flight--;
	post_waiters();
}
