/*-------------------------------------------------------------------------
 *
 * join_list.h
 *	  The value of ddblock.join_locks: holds that a session joins.
 *
 * TOKEN:NAME[,TOKEN:NAME ...].  In a name (UTF-8), every byte may stand as %XX; a comma,
 * a percent sign and what is not printable ASCII must.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_JOIN_LIST_H
#define DDBLOCK_LOCK_JOIN_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "dynamo/dynamo.h"

typedef struct join_entry
{
	int64_t		token;			/* > 0 */
	char		name[DYNAMO_NAME_MAX + 1];	/* terminated, and without another NUL; not empty */
} join_entry;

/*
 * Reads the entry at *at and moves *at behind it.  False at the end of the list; or, with *wrong
 * set to a sentence, if the text at *at is no entry.
 */
extern bool join_list_next(const char **at, join_entry *entry, const char **wrong);

#endif							/* DDBLOCK_LOCK_JOIN_LIST_H */
