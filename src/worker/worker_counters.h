/*-------------------------------------------------------------------------
 *
 * worker_counters.h
 *	  Counts calls and replies by operation, for ddb_operations.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_COUNTERS_H
#define DDBLOCK_WORKER_WORKER_COUNTERS_H

#include "postgres.h"

#include "dynamo/dynamo.h"
#include "net/http_pool.h"

extern void WorkerCountRequest(dynamo_op op);
extern void WorkerCountRepeat(dynamo_op op);

/* A call that could not be posted. */
extern void WorkerCountFailure(dynamo_op op);

extern void WorkerCountReply(dynamo_op op, const dynamo_reply *reply,
							 const http_reply *http);

#endif							/* DDBLOCK_WORKER_WORKER_COUNTERS_H */
