/*-------------------------------------------------------------------------
 *
 * queue_text.h
 *	  What requests for the queue's table are made of.
 *
 * Expressions use a placeholder "#name" for each attribute, because several names
 * are reserved words.  DynamoDB refuses a placeholder that is declared and not
 * used, so each request lists exactly its own.
 *
 * Only src/queue uses it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_QUEUE_QUEUE_TEXT_H
#define DDBLOCK_QUEUE_QUEUE_TEXT_H

#include "dynamo/dynamo_codec.h"
#include "queue/queue.h"

/* "r#", queue, "#", resource */
#define QUEUE_KEY_SIZE (QUEUE_NAME_MAX + QUEUE_RESOURCE_MAX + 8)
#define QUEUE_NUMBER_SIZE 32

#define QUEUE_CAPACITY ",\"ReturnConsumedCapacity\":\"TOTAL\""

/* Keys: of a resource; "id#" or "dead#" and the queue. */
extern void queue_resource_key(char key[QUEUE_KEY_SIZE], const queue_request *request);
extern void queue_part_key(char key[QUEUE_KEY_SIZE], const char *what,
						   const queue_request *request);

/* All numbers have the same length, so that their order is that of the texts. */
extern void queue_job_key(char key[QUEUE_NUMBER_SIZE], int64_t number);

/* The body's begin. */
extern void queue_put_table(dynamo_text *text, const char *table);

/* Members of an item, and of a request. */
extern void queue_put_keys(dynamo_text *text, const char *pk, const char *sk);
extern void queue_put_key(dynamo_text *text, const char *pk, const char *sk);

/* update: or NULL. */
extern void queue_put_expressions(dynamo_text *text, const char *update, const char *condition);

/* Declares "#name" for each of the names, which blanks separate; the values follow. */
extern void queue_put_names(dynamo_text *text, const char *names);
extern void queue_put_values(dynamo_text *text);

/* Table and key of one item: all but the last brace. */
extern void queue_put_item(dynamo_text *text, const char *table, const char *pk, const char *sk);

#endif							/* DDBLOCK_QUEUE_QUEUE_TEXT_H */
