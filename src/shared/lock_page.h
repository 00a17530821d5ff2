/*-------------------------------------------------------------------------
 *
 * lock_page.h
 *	  Pages of lock items on their way from the worker to a session.
 *
 * A page that DynamoDB sends may be larger than the answer in shared
 * memory: then it is cut, and the next request goes on after the last row
 * that fitted.  Each row takes only what its texts need.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_LOCK_PAGE_H
#define DDBLOCK_SHARED_LOCK_PAGE_H

#include "postgres.h"

#include "shared/segment.h"

/* A row as the session reads it. */
typedef struct LockRow
{
	char		name[DYNAMO_NAME_MAX + 1];	/* UTF-8 */
	dynamo_item item;			/* no pointer is set */
	lock_mode	mode;			/* how it is held */
	int32		permits;		/* of a semaphore: how many are out */
	bool		dead;			/* not released, but this cluster may take it over */
	char		unusable[DYNAMO_MESSAGE_SIZE];	/* why nobody can get the lock, or "" */
} LockRow;

/* An item for shared memory: without what its pointers point to. */
extern dynamo_item LockPageItem(const dynamo_item *item);

/* The worker's side; leaves epoch_us alone. */
extern void LockPagePut(LockPage *out, const dynamo_page *page);

/* Reads the row at *offset and moves on; false after the last one. */
extern bool LockPageRow(const LockPage *page, int *offset, LockRow *row);

#endif							/* DDBLOCK_SHARED_LOCK_PAGE_H */
