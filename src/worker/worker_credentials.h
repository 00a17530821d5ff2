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

/* At the start and after a reload. */
extern void WorkerFindCredentials(void);
extern const aws_credentials *WorkerCredentials(void);	/* NULL: none */

/* Looks for some, if there are none, or if DynamoDB has refused those in use. */
extern void WorkerWantCredentials(void);

/* They are being fetched: who has none, or none that DynamoDB accepts, may wait. */
extern bool WorkerCredentialsComing(void);

/* Fetches and renews them.  Returns when it must be called again. */
extern int64 WorkerRenewCredentials(int64 now);

/* Where they come from, or will come from; NULL if that is not known. */
extern const char *WorkerCredentialsSource(void);

/* Has the log why the last look brought none? */
extern bool WorkerCredentialsTold(void);

/* For a session whose call was refused: which credentials were used, or why none. */
extern const char *WorkerCredentialsHint(void);

/* Warns of files that show the secret to every user of the machine. */
extern void WorkerCheckExposure(void);

#endif							/* DDBLOCK_WORKER_WORKER_CREDENTIALS_H */
