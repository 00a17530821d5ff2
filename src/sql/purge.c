/*-------------------------------------------------------------------------
 *
 * purge.c
 *	  ddb_lock_purge(): deletes the items of locks that were released long ago.
 *
 * Each item is deleted on condition that its version is still the one that the
 * scan found.
 *
 * The condition on an item's token keeps tokens rising, and keeps a late copy of
 * an old acquire from being applied.  Without the item, only time does: a new
 * token is DynamoDB's time in microseconds, and so exceeds the old one unless a
 * clock is wrong by the item's age; and DynamoDB refuses old signatures.  An acquire is
 * repeated for at most a day, the maximum of ddblock.retry_timeout, and the signature of
 * its last copy is accepted for 15 minutes.  Hence the age of the token, a day and an
 * hour; the age since the release is the user's choice, but at least a day, the longest
 * lease.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sql/sql.h"

/*
 * By DynamoDB's clock.  An item stays for a day after the time until which it keeps the
 * lock from others.  A token may be in the future, if a clock was wrong; it may be younger
 * than the release, if a bar has raised it since (lockmgr_bar.c).  Other clients do
 * not write when they release a lock, so their items stay.
 */
static bool
is_old(const TableScan *scan, int64 age_ms)
{
	const dynamo_item *item = &scan->row->item;
	int64		now = scan->page->epoch_us;

	if (item->version[0] == '\0')
		return false;
	if (item->has_token && !item->bad_token && item->token > now - DYNAMO_TOKEN_AGE_US)
		return false;
	if (item->kept_until_ms / 1000 >= now / USECS_PER_SEC - DYNAMO_KEPT_AGE_S)
		return false;
	return item->released_at > 0 && item->released_at < PG_INT64_MAX / USECS_PER_SEC &&
		now / 1000 - item->released_at * 1000 >= age_ms;
}

PG_FUNCTION_INFO_V1(ddb_lock_purge);
Datum
ddb_lock_purge(PG_FUNCTION_ARGS)
{
	int64		deleted = 0;
	int64		age_ms;
	TableScan  *scan;

	ErrorsRequirePreload();
	age_ms = ArgumentDuration(fcinfo, 0, "older_than", DAY_MS);
	if (age_ms < DAY_MS)
		ErrorsArgument(errmsg("argument \"%s\" must be at least 1 day", "older_than"),
					   errdetail("Without the item, fencing tokens could fall while a lease of its "
								 "last holder is still running."));
	scan = TableScanStart(PrefixNarrow(""), true);
	while (TableScanNext(scan))
	{
		const LockRow *row = scan->row;
		MailboxRequest request = {.op = DYNAMO_DELETE,.name_len = strlen(row->name)};
		const MailboxAnswer *answer;
		bool		unsettled;

		if (!is_old(scan, age_ms))
			continue;
		strlcpy(request.write.expected, row->item.version, sizeof(request.write.expected));
		answer = TableCall(&request, row->name, NULL, DYNAMO_OK, &unsettled);
		/* An item that is gone after an attempt without a reply was deleted by that. */
		if (answer->result == MAILBOX_DONE || (unsettled && !answer->found.item.exists))
			deleted++;
	}
	PG_RETURN_INT64(deleted);
}
