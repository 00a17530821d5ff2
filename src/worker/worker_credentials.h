/*-------------------------------------------------------------------------
 *
 * worker_credentials.h
 *	  The credentials in use.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_CREDENTIALS_H
#define DDBLOCK_WORKER_WORKER_CREDENTIALS_H

#include "postgres.h"

#include "aws/credentials.h"

extern void WorkerFindCredentials(void);
extern const aws_credentials *WorkerCredentials(void);	/* NULL: none */

/* For a session whose call was refused: which credentials were used, or why none. */
extern const char *WorkerCredentialsHint(void);

/* Warns of files that show the secret to every user of the machine. */
extern void WorkerCheckExposure(void);

#endif							/* DDBLOCK_WORKER_WORKER_CREDENTIALS_H */
