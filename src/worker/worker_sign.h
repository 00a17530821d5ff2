/*-------------------------------------------------------------------------
 *
 * worker_sign.h
 *	  The headers of a request to DynamoDB, its signature among them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_SIGN_H
#define DDBLOCK_WORKER_WORKER_SIGN_H

#include "postgres.h"

#include "dynamo/dynamo.h"

#define WORKER_HEADERS_MAX 7

/*
 * Signs by the credentials, which must be there, and for DynamoDB's time.
 * Returns the number of headers, or 0 if it was out of memory.  The headers are
 * valid until the next call.
 */
extern int	WorkerSign(dynamo_op op, const char *body,
					   const char *headers[WORKER_HEADERS_MAX]);

#endif							/* DDBLOCK_WORKER_WORKER_SIGN_H */
