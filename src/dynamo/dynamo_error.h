/*-------------------------------------------------------------------------
 *
 * dynamo_error.h
 *	  What DynamoDB's errors mean, for the codec's replies.
 *
 * Only src/dynamo/dynamo_*.c use it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_ERROR_H
#define DDBLOCK_DYNAMO_DYNAMO_ERROR_H

#include "dynamo/dynamo.h"

/*
 * The status for an error's type ("ThrottlingException" in __type,
 * "ThrottlingError" as the Code of a batch's statement) and, where the type is
 * ambiguous, its message.  DYNAMO_MALFORMED for unknown types.
 */
extern dynamo_status dynamo_error_status(const char *type, const char *message);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_ERROR_H */
