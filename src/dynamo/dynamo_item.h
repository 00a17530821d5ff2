/*-------------------------------------------------------------------------
 *
 * dynamo_item.h
 *	  Reads a lock item from DynamoDB's JSON, for the codec's replies.
 *
 * Only src/dynamo/dynamo_*.c use it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_ITEM_H
#define DDBLOCK_DYNAMO_DYNAMO_ITEM_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "dynamo/dynamo.h"

/*
 * Reads {"ownerName":{"S":"..."},...}; json NULL: the item does not exist.
 * *item must be zeroed, and *shared NULL.  If an attribute cannot be understood,
 * item->wrong says so, and the rest holds what could be read.  False if json is not
 * an item.
 */
extern bool dynamo_item_read(const cJSON *attributes, dynamo_item *item,
							 dynamo_shared **shared);

/* Frees what the item points to. */
extern void dynamo_item_clear(dynamo_item *item);

/* Why an item with bad_names is unusable. */
#define DYNAMO_BAD_NAMES "the lock item's attributeNames is not a JSON array of names, as a text"

#endif							/* DDBLOCK_DYNAMO_DYNAMO_ITEM_H */
