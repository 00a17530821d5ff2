/*-------------------------------------------------------------------------
 *
 * worker_place.h
 *	  Where the lock table is, and the credentials.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_PLACE_H
#define DDBLOCK_WORKER_WORKER_PLACE_H

#include "postgres.h"

#include "aws/credentials.h"

/*
 * Finds Region, endpoint and credentials: at the start, and after a reload if
 * it was false.  Then the log says what is wrong, as does WorkerPlaceProblem().
 */
extern bool WorkerFindPlace(void);
extern const char *WorkerPlaceProblem(void);

extern void WorkerFindCredentials(void);
extern const aws_credentials *WorkerCredentials(void);	/* NULL: none */

/* For a session whose call was refused: which credentials were used, or why none. */
extern const char *WorkerCredentialsHint(void);

/* As the AWS tools do: a setting, the environment, or NULL for the system's. */
extern const char *WorkerCaFile(void);

/* Warns of files that show the secret to every user of the machine. */
extern void WorkerCheckExposure(void);

#endif							/* DDBLOCK_WORKER_WORKER_PLACE_H */
