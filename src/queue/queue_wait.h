/*-------------------------------------------------------------------------
 *
 * queue_wait.h
 *	  When a session that wants a job tries hints, looks for itself, and sleeps.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_QUEUE_QUEUE_WAIT_H
#define DDBLOCK_QUEUE_QUEUE_WAIT_H

#include <stdbool.h>

#include "lock/shared_word.h"

typedef struct queue_wait
{
	void	   *arg;
	shared32   *wish;			/* while it is set, whoever leaves a hint clears it, and wakes us */
	int64_t		deadline;
	int64_t		pause;			/* between two looks, at most; doubles */
	int64_t		next_look;
	bool		hints_first;

	int64_t		(*clock) (void *arg);

	/* Both may raise an error.  True: there is a job. */
	bool		(*try_hints) (void *arg);

	/*
	 * Others need not have looked since then, if it is the last look.  *again: when to look again,
	 * if that is soon.
	 */
	bool		(*look) (void *arg, int64_t since, bool last, int64_t *again);
} queue_wait;

typedef enum queue_waited
{
	QUEUE_WAIT_FOUND,
	QUEUE_WAIT_OVER,			/* there was none in time */
	QUEUE_WAIT_TURN,			/* the next turn is due */
	QUEUE_WAIT_SLEEP			/* until *until, or until the wish is cleared */
} queue_waited;

extern queue_waited queue_wait_turn(queue_wait *wait, uint64_t random, int64_t *until);

#endif							/* DDBLOCK_QUEUE_QUEUE_WAIT_H */
