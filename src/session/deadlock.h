/*-------------------------------------------------------------------------
 *
 * deadlock.h
 *	  Deadlocks that pass through PostgreSQL's locks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_DEADLOCK_H
#define DDBLOCK_SESSION_DEADLOCK_H

#include "postgres.h"

/* When a session that waits looks whether its wait closes a circle. */
typedef struct DeadlockSearch
{
	int64		next;
	int64		pause;
	bool		goes_first;		/* it waits in line only: if it goes first, the circle is open */
} DeadlockSearch;

/* When the wait begins. */
extern void DeadlockStart(DeadlockSearch *search);

/* To be called in each turn of the wait.  Raises; or returns when it must be called again. */
extern int64 DeadlockTurn(DeadlockSearch *search, int64 now);

/*
 * What the session waits for without a request: the end of this lease; a job of this queue, and
 * of these resources (the last one is NULL; or NULL: any).  The end must come, also by an error.
 */
extern void DeadlockWaitForRelease(uint32 lease_index, uint32 lease_generation);
extern void DeadlockWaitForJob(const char *queue, char **resources);
extern void DeadlockEndWait(void);

#endif							/* DDBLOCK_SESSION_DEADLOCK_H */
