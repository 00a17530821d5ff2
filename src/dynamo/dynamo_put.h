/*-------------------------------------------------------------------------
 *
 * dynamo_put.h
 *	  What requests about a lock item are made of, for the codec's builders.
 *
 * Only src/dynamo/dynamo_*.c and src/queue use it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_PUT_H
#define DDBLOCK_DYNAMO_DYNAMO_PUT_H

#include "dynamo/dynamo.h"
#include "dynamo/dynamo_key.h"
#include "dynamo/dynamo_text.h"

/* Attributes of the lock item, as a set. */
#define A_OWNER			(1 << 0)
#define A_VERSION		(1 << 1)
#define A_LEASE			(1 << 2)
#define A_TOKEN			(1 << 3)
#define A_HOLDER		(1 << 4)
#define A_DATA			(1 << 5)
#define A_RELEASED		(1 << 6)
#define A_RELEASED_AT	(1 << 7)
#define A_TTL			(1 << 8)
#define A_RELEASED_VERSION	(1 << 9)
#define A_SHARED		(1 << 10)
#define A_ATTRIBUTE_NAMES	(1 << 11)
#define A_KEPT			(1 << 12)
#define A_WANTED		(1 << 13)

#define A_ITEM			((1 << 14) - 1) /* all of them */

/* Names inside "shared". */
#define A_SHARED_OWNER	(1 << 14)
#define A_KIND			(1 << 15)
#define A_TOTAL			(1 << 16)
#define A_ENTRIES		(1 << 17)
#define A_GATE			(1 << 18)
#define A_ENTRY_VERSION	(1 << 19)
#define A_PERMITS		(1 << 20)

/*
 * What an acquire and an opening of shared mode demand: a free item (a take-over:
 * or a dead version), and a token above the item's, so that a late copy of an old
 * write is refused.
 */
#define FREE "(attribute_not_exists(#key) OR attribute_exists(#isReleased)"
#define RELEASED "(attribute_exists(#isReleased)"
#define OR_DEAD " OR #recordVersionNumber = :expected"
#define TOKEN_BELOW(first) \
	"(attribute_not_exists(#fencingToken) OR #fencingToken < " first ")"
#define NEW_TOKEN(first) ") AND " TOKEN_BELOW(first)

/* ... and, like a hand-over, that nobody was promised the lock for longer. */
#define NOT_KEPT \
	" AND (attribute_not_exists(#keptUntil) OR #keptUntil <= :past)"

/* {"S":"..."} */
extern void dynamo_put_s(dynamo_text *text, const char *s, size_t len);

/* DynamoDB's numbers are quoted; type N, or S for leaseDuration. */
extern void dynamo_put_number(dynamo_text *text, char type, int64_t value);

/* Opens a member of an object; its name is not escaped. */
extern void dynamo_put_name(dynamo_text *text, const char *name);

extern void dynamo_put_s_member(dynamo_text *text, const char *name, const char *s);
extern void dynamo_put_n_member(dynamo_text *text, const char *name, int64_t value);

/* The name of an attribute, in the order of the set; NULL after the last one. */
extern const char *dynamo_attribute(int number);

/* The members of an item that are its key. */
extern void dynamo_put_key(dynamo_text *text, const dynamo_table *table, dynamo_key key);

/*
 * Declares the placeholders of names; partition_key NULL: no condition mentions
 * #key.  More may follow, then the values.
 */
extern void dynamo_put_names(dynamo_text *text, const char *partition_key, int attributes);
extern void dynamo_put_values_start(dynamo_text *text);

/* A release's update, up to where its REMOVE may go on; its placeholders and values. */
extern void dynamo_put_release(dynamo_text *text, const dynamo_table *table,
							   const dynamo_write *write);
extern int	dynamo_release_attributes(const dynamo_table *table, const dynamo_write *write);
extern void dynamo_put_release_values(dynamo_text *text, const dynamo_table *table,
									  const dynamo_write *write);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_PUT_H */
