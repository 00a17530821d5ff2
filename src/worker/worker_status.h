/*-------------------------------------------------------------------------
 *
 * worker_status.h
 *	  What the worker publishes of itself, for ddb_status.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_STATUS_H
#define DDBLOCK_WORKER_WORKER_STATUS_H

#include "postgres.h"

#include "dynamo/dynamo.h"

/*
 * Takes over what earlier workers have published, but for their trouble, and
 * publishes the start.
 */
extern void WorkerStatusInit(void);

extern void WorkerStatusReply(const dynamo_reply *reply);

/* This owner is a copy of our cluster, and lives until then. */
extern void WorkerStatusCopy(const char *owner, int64 until);

extern void WorkerPublishStatus(void);

#endif							/* DDBLOCK_WORKER_WORKER_STATUS_H */
