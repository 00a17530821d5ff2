/*-------------------------------------------------------------------------
 *
 * dynamo_table.h
 *	  Reads the description of a table, for the codec's replies.
 *
 * Only src/dynamo/dynamo_*.c use it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_TABLE_H
#define DDBLOCK_DYNAMO_DYNAMO_TABLE_H

#include <cjson/cJSON.h>

#include "dynamo/dynamo.h"

/* False if table does not describe one. */
extern bool dynamo_table_read(dynamo_table_info *info, const cJSON *table);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_TABLE_H */
