/*-------------------------------------------------------------------------
 *
 * dynamo_shared_request.h
 *	  Requests in shared mode, for the codec's request bodies.
 *
 * Only src/dynamo/dynamo_*.c use it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_SHARED_REQUEST_H
#define DDBLOCK_DYNAMO_DYNAMO_SHARED_REQUEST_H

#include "dynamo/dynamo.h"
#include "dynamo/dynamo_text.h"

/* From the update's expression up to the last value, which the caller closes. */
extern void dynamo_put_shared(dynamo_text *text, const dynamo_table *table,
							  const dynamo_write *write);

/* Does the reply bring the item as it is after the write? */
extern bool dynamo_shared_shows_item(dynamo_shared_kind kind);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_SHARED_REQUEST_H */
