/*-------------------------------------------------------------------------
 *
 * dynamo_double.h
 *	  A DynamoDB in memory, for tests: request in, reply out.
 *
 * Knows what this project, Amazon's Java lock client and an operator send:
 * CreateTable, DescribeTable, DeleteTable, UpdateTimeToLive,
 * DescribeTimeToLive, GetItem, PutItem, UpdateItem, DeleteItem, Scan, Query
 * (also of a global secondary index, forwards), TransactWriteItems,
 * ExecuteStatement and BatchExecuteStatement (PartiQL SELECT and UPDATE of
 * one item by its key).  Conditions, updates, projections and numbers are
 * evaluated as DynamoDB does; test/check-double holds it to DynamoDB Local.
 *
 * It has no clock, no randomness and no global state: the same requests
 * bring the same replies.  Time-to-live deletes nothing, tables are active
 * at once.  Not for threads.  Memory is taken to be there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DYNAMO_DOUBLE_H
#define DYNAMO_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

typedef struct dynamo_double dynamo_double;

extern dynamo_double *dynamo_double_new(void);
extern void dynamo_double_free(dynamo_double *d);

/*
 * Target is the value of X-Amz-Target, "DynamoDB_20120810.UpdateItem".
 * Returns the HTTP status; *reply is malloc'd, JSON, and ends with a NUL that
 * *reply_len does not count.
 */
extern int	dynamo_double_request(dynamo_double *d, const char *target,
								  const char *body, size_t len,
								  char **reply, size_t *reply_len);

/* What shall go wrong with one statement of a batch. */
typedef struct dynamo_double_fault
{
	const char *type;			/* "InternalServerError" ...; NULL: nothing */
	bool		applied;		/* the statement takes effect nevertheless */
} dynamo_double_fault;

/* A BatchExecuteStatement with faults for the first count statements. */
extern int	dynamo_double_batch(dynamo_double *d, const char *body, size_t len,
								const dynamo_double_fault *faults, int count,
								char **reply, size_t *reply_len);

/*
 * The reply of an error that a request is to meet instead of being looked at.
 * Type is the short name of any error that DynamoDB has: throttling
 * (ProvisionedThroughputExceededException, ThrottlingException,
 * RequestLimitExceeded), conflicts (TransactionConflictException,
 * ReplicatedWriteConflictException), failures (InternalServerError,
 * ServiceUnavailable), credentials (ExpiredTokenException,
 * UnrecognizedClientException, InvalidSignatureException,
 * AccessDeniedException) and so on.  Message NULL: the one that DynamoDB
 * gives.  Returns the HTTP status.
 */
extern int	dynamo_double_error(const char *type, const char *message,
								char **reply, size_t *reply_len);

/*
 * Asks admit before every write, with a number that stands for the item; where
 * it returns false the write is throttled (ThrottlingException).  NULL: no
 * more.
 */
extern void dynamo_double_limit(dynamo_double *d,
								bool (*admit) (void *context, uint64_t item),
								void *context);

/*
 * Asks allows for each action ("dynamodb:PutItem") that a request needs on a
 * resource ("T", a table, or "T/index/I"), before it is looked at.  Where it
 * returns false the request, or the statement of a batch, fails
 * (AccessDeniedException).  NULL: no more.
 */
extern void dynamo_double_authorize(dynamo_double *d,
									bool (*allows) (void *context, const char *action,
													const char *resource),
									void *context);

/* Calls visit for each item of the table, in the order of a scan. */
extern void dynamo_double_items(dynamo_double *d, const char *table,
								void (*visit) (const cJSON *item, void *context),
								void *context);

#endif							/* DYNAMO_DOUBLE_H */
