/*-------------------------------------------------------------------------
 *
 * lock_list.c
 *	  ddb_lock_list(): lists the lock table's items, page after page.
 *
 * One read of an item does not show whether its holder is alive: the clocks of different machines
 * cannot be compared, and the item's token shows when the lock was acquired, not when it was
 * renewed.  Only a version that does not change for the length of the lease shows that the holder
 * is dead.  So each page passes through the worker's lock manager, which remembers the versions
 * that it sees, and knows when a lock may be taken over.  The list shows "dead-looking" if
 * ddb_lock_try_acquire() would get the lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "utils/memutils.h"

#include "sql/sql.h"

static void
put_row(const LockRow *found, FunctionCallInfo fcinfo)
{
	const dynamo_item *item = &found->item;
	Row			row;

	RowStart(&row, fcinfo);
	RowValue(&row, "name", NOTICE, "name of a lock", found->name);
	RowText(&row, "state", found->unusable[0] != '\0' ? "unusable" :
			item->released ? "released" : found->dead ? "dead-looking" : "held");
	RowValue(&row, "owner", NOTICE, "owner of a lock", item->owner);
	RowHolder(&row, &item->holder);
	if (item->released && item->released_at <= PG_INT64_MAX / 1000)
		RowEpoch(&row, "released_at", item->released_at * 1000);
	RowLease(&row, item);
	if (found->mode == MODE_EXCLUSIVE)
		RowToken(&row, item);
	else if (item->has_token && !item->bad_token)
		RowSet(&row, "token", Int64GetDatum(item->token));
	RowValue(&row, "version", NOTICE, "version of a lock", item->version);
	RowEpoch(&row, "kept_until", item->kept_until_ms);
	RowText(&row, "unusable", found->unusable);
	if (!item->released && found->unusable[0] == '\0')
		RowText(&row, "mode", dynamo_mode_name(found->mode));
	if (lockmgr_limited(found->mode) && found->permits > 0)
		RowSet(&row, "permits", Int32GetDatum(found->permits));
	RowPut(&row, fcinfo);
}

/* Reads the table.  fcinfo NULL: returns no rows; only the lock manager sees the pages. */
static void
look(const char *prefix, FunctionCallInfo fcinfo)
{
	TableScan  *scan = TableScanStart(prefix, false);
	MemoryContext per_row = AllocSetContextCreate(CurrentMemoryContext, "ddb_lock_list row",
												  ALLOCSET_DEFAULT_SIZES);

	while (TableScanNext(scan))
	{
		MemoryContext old = MemoryContextSwitchTo(per_row);

		if (fcinfo != NULL)
			put_row(scan->row, fcinfo);
		MemoryContextSwitchTo(old);
		MemoryContextReset(per_row);
	}
	MemoryContextDelete(per_row);
}

PG_FUNCTION_INFO_V1(ddb_lock_list);
Datum
ddb_lock_list(PG_FUNCTION_ARGS)
{
	int64		watch_ms;
	char	   *asked;
	const char *prefix;

	ErrorsRequirePreload();
	asked = PG_ARGISNULL(0) ? "" : ArgumentUtf8(PG_GETARG_DATUM(0));
	if (asked[0] != '\0')
		ArgumentCheckLength("prefix", asked, DYNAMO_NAME_MAX);
	prefix = PrefixNarrow(asked);
	watch_ms = ArgumentPeriod(fcinfo, 1, "watch", 0);
	InitMaterializedSRF(fcinfo, 0);

	if (watch_ms > 0)
	{
		look(prefix, NULL);
		TableSleep(watch_ms * 1000);
	}
	look(prefix, fcinfo);
	return (Datum) 0;
}
