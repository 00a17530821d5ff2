/*-------------------------------------------------------------------------
 *
 * worker_place.h
 *	  Where the lock table is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_PLACE_H
#define DDBLOCK_WORKER_WORKER_PLACE_H

#include "postgres.h"

/*
 * Finds Region, endpoint and credentials: at the start, and after a reload if
 * it was false.  Then the log says what is wrong, as does WorkerPlaceProblem().
 */
extern bool WorkerFindPlace(void);
extern const char *WorkerPlaceProblem(void);

#endif							/* DDBLOCK_WORKER_WORKER_PLACE_H */
