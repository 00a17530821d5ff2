/*-------------------------------------------------------------------------
 *
 * dynamo_shared_item.h
 *	  Reads what a lock item tells of shared mode, for the codec's item reader.
 *
 * Only src/dynamo/dynamo_*.c use it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_SHARED_ITEM_H
#define DDBLOCK_DYNAMO_DYNAMO_SHARED_ITEM_H

#include <cjson/cJSON.h>

#include "dynamo/dynamo.h"

/*
 * Item has been read, but for this.  *shared is malloc'd if there is something to
 * tell, else NULL.  Returns why an item in shared mode is unusable, or NULL.
 */
extern const char *dynamo_shared_read(const cJSON *attributes, const dynamo_item *item,
									  dynamo_shared **shared);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_SHARED_ITEM_H */
