/*-------------------------------------------------------------------------
 *
 * queue_arguments.h
 *	  Reads and checks the arguments that the functions of queues share.
 *
 * Each raises 22023 with the argument's name and limit, or 42501 if the session may not
 * use that name, before any request is sent.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SQL_QUEUE_ARGUMENTS_H
#define DDBLOCK_SQL_QUEUE_ARGUMENTS_H

#include "postgres.h"

#include "fmgr.h"

#include "queue/queue.h"
#include "session/session.h"

/* A queue, or one of its resources: UTF-8. */
typedef struct QueueName
{
	const char *queue;
	const char *resource;		/* "": none is given */
	LockName	lock;			/* the resource's */
} QueueName;

/* Arguments 0 and 1: queue, resource; or raises 55000: this server has no queues. */
extern QueueName QueueArgument(FunctionCallInfo fcinfo);

/* The same on a server that has not preloaded the library: ask neither worker nor DynamoDB. */
extern QueueName QueueArgumentAnywhere(FunctionCallInfo fcinfo);

/* Argument 0: a queue; the session must be allowed all of its resources. */
extern QueueName QueueArgumentQueue(FunctionCallInfo fcinfo);

/* The same, whatever the session is allowed: its resources are named elsewhere. */
extern const char *QueueArgumentName(FunctionCallInfo fcinfo);

/* Arguments 0 and 1, if the resource may be NULL. */
extern QueueName QueueArgumentAny(FunctionCallInfo fcinfo);

/* A resource of that queue, which somebody else has named. */
extern QueueName QueueNameOf(const char *queue, const char *resource);

extern QueueName QueueCheckName(Datum queue, Datum resource);

/* The text of a jsonb, UTF-8. */
extern char *QueueCheckPayload(Datum payload);

/* The id of a dead job. */
extern char *QueueArgumentDead(FunctionCallInfo fcinfo, int number);

/* A caller's id, UTF-8. */
extern char *QueueCheckId(Datum id);

/* Milliseconds, from least to most; if_null if the argument is NULL. */
extern int64 QueueArgumentTime(FunctionCallInfo fcinfo, int number, const char *name,
							   int64 least_ms, int64 most_ms, int64 if_null);

/* A message for people, UTF-8, cut to fit; "" if the argument is NULL. */
extern char *QueueArgumentError(FunctionCallInfo fcinfo, int number);

#endif							/* DDBLOCK_SQL_QUEUE_ARGUMENTS_H */
