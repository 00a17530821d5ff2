/*-------------------------------------------------------------------------
 *
 * dynamo_error.h
 *	  What DynamoDB's errors mean, for the codec's replies.
 *
 * Floor 1; only src/core/dynamo_*.c use it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_CORE_DYNAMO_ERROR_H
#define DDBLOCK_CORE_DYNAMO_ERROR_H

#include "core/dynamo.h"

/*
 * The class of an error by its type ("ThrottlingException" in __type,
 * "ThrottlingError" as the Code of a batch's statement) and, where that does
 * not suffice, its message.  DYNAMO_MALFORMED for types that we do not know.
 */
extern dynamo_status dynamo_error_status(const char *type, const char *message);

#endif							/* DDBLOCK_CORE_DYNAMO_ERROR_H */
