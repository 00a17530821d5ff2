/*-------------------------------------------------------------------------
 *
 * worker_environment.h
 *	  What src/aws reads: settings, environment and files.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_ENVIRONMENT_H
#define DDBLOCK_WORKER_WORKER_ENVIRONMENT_H

#include "postgres.h"

#include "aws/endpoint.h"

extern const aws_environment *WorkerEnvironment(void);

/* Valid until the next reload. */
extern aws_settings WorkerAwsSettings(void);

/*
 * Whom TLS trusts, as the AWS tools do: a setting, the environment, or NULL for the
 * system's certificates.
 */
extern const char *WorkerCaFile(void);

#endif							/* DDBLOCK_WORKER_WORKER_ENVIRONMENT_H */
