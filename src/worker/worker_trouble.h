/*-------------------------------------------------------------------------
 *
 * worker_trouble.h
 *	  Tells people when DynamoDB does not work for us.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_TROUBLE_H
#define DDBLOCK_WORKER_WORKER_TROUBLE_H

#include "postgres.h"

#include "dynamo/dynamo.h"

/* The log says when DynamoDB stops working for us, and when it works again. */
extern void WorkerLogTrouble(const dynamo_reply *reply);

/* Sessions that wait while a request is repeated say why. */
extern void WorkerPublishTrouble(const dynamo_reply *reply);

#endif							/* DDBLOCK_WORKER_WORKER_TROUBLE_H */
