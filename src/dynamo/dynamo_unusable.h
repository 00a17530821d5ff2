/*-------------------------------------------------------------------------
 *
 * dynamo_unusable.h
 *	  Items that nobody can use as locks: for replies and request bodies.
 *
 * Only src/dynamo/dynamo_*.c use it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_UNUSABLE_H
#define DDBLOCK_DYNAMO_DYNAMO_UNUSABLE_H

#include <cjson/cJSON.h>

#include "dynamo/dynamo.h"
#include "dynamo/dynamo_text.h"

/* The item in DynamoDB's JSON, in a fixed order: malloc'd, NULL if memory is short. */
extern char *dynamo_sorted_json(const cJSON *attributes);

/* Of a REPLACE: from the new item up to the last value, which the caller closes. */
extern void dynamo_put_replacement(dynamo_text *text, const dynamo_table *table,
								   const dynamo_write *write);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_UNUSABLE_H */
