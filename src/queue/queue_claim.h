/*-------------------------------------------------------------------------
 *
 * queue_claim.h
 *	  A claim's states, and what transactions and savepoints do to them.
 *
 * A job is completed when the transaction that completed it has committed.  A claim ends with the
 * (sub)transaction that made it, if that is rolled back: its caller may never have seen the job.
 *
 *						 claims							 completes
 *		   no claim ---------------> of a transaction ---------------> of a transaction,
 *			  ^	 ^						   |  ^ COMMIT: of none			 completed
 *			  |	 |	rolled back			   |  |							   |	|
 *			  |	 +-------------------------+  +----------------------------+	|
 *			  |									 completion rolled back			|
 *			  +-----------------------------------------------------------------+
 *							COMMIT: the worker has it
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_QUEUE_QUEUE_CLAIM_H
#define DDBLOCK_QUEUE_QUEUE_CLAIM_H

#include "queue/queue_place.h"

typedef struct queue_claim
{
	int64_t		number;
	int64_t		pushed_at;		/* epoch milliseconds; 0 until its item is read, or has none */
	int64_t		token;			/* 0: it has no lock yet */
	bool		last;			/* no job waited behind it */
	int			claimed_level;	/* of the transaction that claimed it; 0: it has committed */
	int			finish_level;	/* of the one that completed it; 0: none */
	queue_place *place;			/* then: reserved for the completion */
} queue_claim;

typedef enum queue_fate
{
	QUEUE_CLAIM_STAYS,
	QUEUE_CLAIM_ENDS,			/* and the lock with it */
	QUEUE_CLAIM_VOID,			/* it has no lock any more: only the note ends */
	QUEUE_CLAIM_PASSES			/* the worker completes the job */
} queue_fate;

/* level: of nesting; 1 is the transaction itself. */
extern queue_claim queue_claim_begin(int level);

/* The head after the claim: the oldest job is the session's. */
extern void queue_claim_take(queue_claim *claim, const queue_row *head);

/* Will be completed.  The place is reserved. */
extern void queue_claim_complete(queue_claim *claim, int level, queue_place *place,
								 const char *queue, const char *resource);

/* The (sub)transaction of that level ends.  is_void: the claim's lock is given up or lost. */
extern queue_fate queue_claim_end(queue_claim *claim, int level, bool committed, bool is_void);

#endif							/* DDBLOCK_QUEUE_QUEUE_CLAIM_H */
