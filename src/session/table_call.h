/*-------------------------------------------------------------------------
 *
 * table_call.h
 *	  Calls past the lock manager: repeated, and page after page.
 *
 * For functions about the lock table as a whole, and for those with which an
 * operator changes its items.  The worker makes each call once; the session
 * repeats it, so that waiting can be canceled.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_TABLE_CALL_H
#define DDBLOCK_SESSION_TABLE_CALL_H

#include "postgres.h"

#include "session/mailbox.h"
#include "shared/lock_page.h"

/* A request that writes an item if it has this version: DELETE, FORCE_RELEASE. */
extern MailboxRequest *TableItemRequest(dynamo_op op, const char *name_utf8,
										size_t name_len, const char *expected);

/*
 * Sends the request, and repeats it while DynamoDB is out of reach or throttles
 * us, until ddblock.retry_timeout has passed.  Returns true if it was done, false
 * if it failed with the expected status (DYNAMO_OK: none is); raises for all
 * else.  Sets *unsettled, if it is not NULL, to whether an earlier copy may have
 * been applied.
 */
extern bool TableCall(MailboxRequest *request, dynamo_status expected_failure,
					  MailboxAnswer *answer, bool *unsettled);

/* Can be interrupted. */
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
