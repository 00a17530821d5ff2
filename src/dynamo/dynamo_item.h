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
 * Reads {"ownerName":{"S":"..."},...}; NULL is the item that does not exist.
 * *item must be zeroed.  What lock clients write and we cannot understand ends
 * up in item->wrong; the rest of item then holds what could be read.  False if
 * this is no item at all.
 */
extern bool dynamo_item_read(const cJSON *attributes, dynamo_item *item);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_ITEM_H */
