/*-------------------------------------------------------------------------
 *
 * table_call.h
 *	  Calls past the lock manager: repeated, and page after page.
 *
 * For functions that look at the lock table as a whole, or change
 * its items as an operator.  The worker makes each call once; all patience is
 * here, in the session, where it can be cancelled.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_TABLE_CALL_H
#define DDBLOCK_SESSION_TABLE_CALL_H

#include "postgres.h"

#include "session/mailbox.h"
#include "shared/lock_page.h"

/*
 * Sends the request, and again as long as DynamoDB does not answer or
 * throttles us, until ddblock.retry_timeout has passed.  Returns if it was done, or
 * if a condition refused it; raises for all else.  Sets *unsettled, if it is
 * not NULL, to whether an earlier copy may have been applied.
 */
extern void TableCall(MailboxRequest *request, MailboxAnswer *answer,
					  bool *unsettled);

/* Interruptible. */
extern void TableSleep(int64 microseconds);

/* All lock items, or some.  In the current memory context. */
typedef struct TableScan
{
	MailboxRequest *request;
	MailboxAnswer *answer;
	LockRow		row;			/* the last one that was read */
	int			offset;			/* in the answer */
	bool		started;
	bool		last_page;
} TableScan;

/* prefix is UTF-8, at most DYNAMO_NAME_MAX bytes. */
extern TableScan *TableScanStart(const char *prefix, bool released_only);

/* The next row, calling for pages as needed; false at the end. */
extern bool TableScanNext(TableScan *scan);

extern void TableScanEnd(TableScan *scan);

#endif							/* DDBLOCK_SESSION_TABLE_CALL_H */
