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

/*
 * Sends the request with its name and data, and repeats it while DynamoDB is out
 * of reach or throttles us, until ddblock.retry_timeout has passed.  Returns the
 * call's result, or a failure with the expected status (DYNAMO_OK: none); raises
 * for all else.  The answer is valid until the session's next request.  Sets
 * *unsettled, if it is not NULL, to whether an earlier copy may have been applied.
 */
extern const MailboxAnswer *TableCall(MailboxRequest *request, const char *name,
									  const void *data, dynamo_status expected,
									  bool *unsettled);

/*
 * Is the table of use after this refusal of UpdateTimeToLive?  It is enabled already, or
 * the server does not have it, which gives a WARNING.  kind: "lock table"
 */
extern bool TableTtlAccept(const char *message, const char *kind, const char *table);

/* Time between two calls of DescribeTable while a table is being created. */
#define TABLE_POLL_US INT64CONST(500000)

/* DescribeTable is not consistent, and may not find a new table at first. */
#define TABLE_APPEARANCE_US (30 * USECS_PER_SEC)

/* Can a table with this status be used?  Raises if it never becomes so.  kind: as above */
extern bool TableIsActive(const char *status, const char *kind, const char *table);

/* Can be interrupted. */
extern void TableSleep(int64 microseconds);

/*
 * Once more a reply says that something has changed meanwhile: to be called before the
 * next attempt.  *times counts from 0; the first repetition is at once, the others ever
 * later, and too many raise an error.  table: for people
 */
extern void TableAgain(unsigned *times, const char *table);

/* All lock items, or some.  In the current memory context; pfree() it. */
typedef struct TableScan
{
	const char *prefix;
	MailboxRequest request;
	uint8		start[DYNAMO_NAME_MAX + DYNAMO_SORT_MAX];	/* keys: see MailboxRequest */
	LockPage	page;
	int			offset;			/* in the page */
	LockRow		row;			/* the last one that was read */
	bool		started;
	bool		last_page;
	bool		found;			/* any row */
} TableScan;

/* prefix is UTF-8, at most DYNAMO_NAME_MAX bytes, and stays the caller's. */
extern TableScan *TableScanStart(const char *prefix, bool released_only);

/*
 * The next row, calling for pages as needed; false at the end.  Raises if there is none because
 * the table has other keys.
 */
extern bool TableScanNext(TableScan *scan);

#endif							/* DDBLOCK_SESSION_TABLE_CALL_H */
