/*-------------------------------------------------------------------------
 *
 * queue_wait.c
 *	  When a session that wants a job tries hints, looks for itself, and sleeps.
 *
 * The session tries hints first.  But it also looks at the index from time to time, because the
 * pushes of other clusters leave no hints here.
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue.h"

#define LOOK_MOST_US (5 * INT64_C(1000000))

queue_waited
queue_wait_turn(queue_wait *wait, uint64_t random, int64_t *until)
{
	bool		hinted = wait->hints_first;
	int64_t		now;

	/* A hint that is left after this wakes us. */
	shared_write(wait->wish, 1);
	shared_full_barrier();
	if (hinted && wait->try_hints(wait->arg))
		return QUEUE_WAIT_FOUND;
	wait->hints_first = true;
	now = wait->clock(wait->arg);
	if (now >= wait->next_look || now >= wait->deadline)
	{
		int64_t		again = INT64_MAX;

		if (wait->look(wait->arg, now - wait->pause, now >= wait->deadline, &again))
			return QUEUE_WAIT_FOUND;
		now = wait->clock(wait->arg);
		wait->next_look = now + wait->pause / 2 +
			(int64_t) (random % (uint64_t) (wait->pause / 2 + 1));
		if (wait->next_look > again)
			wait->next_look = again;
		wait->pause = wait->pause * 2 < LOOK_MOST_US ? wait->pause * 2 : LOOK_MOST_US;
	}
	if (now >= wait->deadline)
		return QUEUE_WAIT_OVER;
	*until = wait->next_look < wait->deadline ? wait->next_look : wait->deadline;
	return hinted ? QUEUE_WAIT_SLEEP : QUEUE_WAIT_TURN;
}
