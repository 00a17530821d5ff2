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

/* What the message of an operation that the server does not have begins with. */
#define DYNAMO_NO_OPERATION "the server does not have this operation"

/*
 * Does a validation error's message say that the table's keys have other names or types
 * than the request?  DynamoDB has no error code for it.
 */
extern bool dynamo_is_about_keys(const char *message);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_ERROR_H */
