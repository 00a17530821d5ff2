/*-------------------------------------------------------------------------
 *
 * dynamo_key.h
 *	  Which item a lock's name means, and which name an item has.
 *
 * Without a separator the name is the partition key, and the sort key is the same in
 * all items.  With one, the first separator in a name stands between partition key and
 * sort key; a name without it is as before.  Two names never mean one item, and an
 * item never has two names; some have none.  See "Names and keys" in doc/internals/protocol.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_KEY_H
#define DDBLOCK_DYNAMO_DYNAMO_KEY_H

#include "dynamo/dynamo.h"

/* The partition key of the item with the table's identity, which is no lock. */
#define DYNAMO_IDENTITY_KEY "ddblock/lock-table"

/* In the name or in the table: not terminated. */
typedef struct dynamo_key
{
	const char *partition;
	size_t		partition_len;
	const char *sort;			/* NULL: the table has no sort key */
	size_t		sort_len;
} dynamo_key;

/* The key of the name's item. */
extern dynamo_key dynamo_key_of(const dynamo_table *table, const char *name, size_t len);

/* The key of the item with the table's identity, whatever the separator is. */
extern dynamo_key dynamo_identity_key(const dynamo_table *table);

/* Why no lock can have the name, in a sentence; NULL if one can.  Static. */
extern const char *dynamo_name_wrong(const dynamo_table *table, const char *name, size_t len);

/* The name of the item with this key; false if it has none.  sort: NULL as above. */
extern bool dynamo_key_name(const dynamo_table *table, const char *partition,
							const char *sort, char name[DYNAMO_NAME_MAX + 1]);

/* QUERY if all names with the prefix are in one partition that it names, else SCAN. */
extern dynamo_op dynamo_scan_op(const dynamo_table *table, const char *prefix, size_t len);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_KEY_H */
