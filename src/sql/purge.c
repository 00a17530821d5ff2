/*-------------------------------------------------------------------------
 *
 * purge.c
 *	  ddb_lock_purge(): deletes the items of locks that were released long ago.
 *
 * Each item is deleted on condition that its version is still the one that the scan has found.
 *
 * While there is an item, conditions on its token make each new token higher, and refuse late
 * copies of old acquires.  Without the item, time must do both:
 *
 *	 - A new token is DynamoDB's time in microseconds.  It is higher than the old token, unless a
 *	   clock is wrong by the age of the item.
 *	 - An acquire is repeated for at most a day (the maximum of ddblock.retry_timeout), and DynamoDB
 *	   accepts the signature of its last copy for 15 minutes.  No copy can come later.
 *
 * So the token of an item that is deleted must be a day and an hour old.  The user chooses the time
 * since the release, which is at least a day, the longest lease.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sql/sql.h"

/*
 * May the item be deleted?  All ages are by DynamoDB's clock.  Details:
 *
 *	 - A token may be in the future, if a clock was wrong.  It may be younger than the release, if a
 *	   bar (a write that makes late acquires fail, see lockmgr_bar.c) has raised it since.
 *	 - An item stays for a day after its keptUntil, the time until which it keeps the lock from
 *	   others.
 *	 - Clients other than ddblock do not write when they released a lock, so their items stay.
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
		/* If an attempt got no reply, and the item is gone now, that attempt has deleted it. */
		if (answer->result == MAILBOX_DONE || (unsettled && !answer->found.item.exists))
			deleted++;
	}
	PG_RETURN_INT64(deleted);
}
