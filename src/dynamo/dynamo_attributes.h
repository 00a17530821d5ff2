/*-------------------------------------------------------------------------
 *
 * dynamo_attributes.h
 *	  Additional attributes of a lock item, for the codec's builders and replies.
 *
 * Only src/dynamo/dynamo_*.c use it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_ATTRIBUTES_H
#define DDBLOCK_DYNAMO_DYNAMO_ATTRIBUTES_H

#include <cjson/cJSON.h>

#include "dynamo/dynamo.h"
#include "dynamo/dynamo_text.h"

/* What a write sets and removes, parsed.  Both NULL: nothing. */
typedef struct dynamo_extras
{
	cJSON	   *set;			/* {"team":{"S":"x"},...} */
	cJSON	   *old;			/* ["team",...]: names that an earlier holder set */
} dynamo_extras;

/* False if memory is short, or what the write names is not what it must be. */
extern bool dynamo_extras_start(dynamo_extras *extras, const dynamo_write *write);
extern void dynamo_extras_end(dynamo_extras *extras);

/* Pieces of an update: ", #a0 = :a0 ..." and ", #o1 ...". */
extern void dynamo_put_extras_set(dynamo_text *text, const dynamo_extras *extras);
extern void dynamo_put_extras_remove(dynamo_text *text, const dynamo_extras *extras);

/* The placeholders' names, after others; their values, after others. */
extern void dynamo_put_extras_names(dynamo_text *text, const dynamo_extras *extras);
extern void dynamo_put_extras_values(dynamo_text *text, const dynamo_extras *extras,
									 const dynamo_write *write);

/*
 * Reads what the item has beside the attributes of a lock: item->attributes,
 * attribute_names, bad_names.  The rest of *item has been read.
 */
extern void dynamo_attributes_read(const cJSON *attributes, bool shared, dynamo_item *item);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_ATTRIBUTES_H */
