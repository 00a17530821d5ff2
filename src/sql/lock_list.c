/*-------------------------------------------------------------------------
 *
 * lock_list.c
 *	  ddb_lock_list(): the lock table's items, page after page.
 *
 * One read of an item does not show whether its holder is alive: clocks of
 * different machines cannot be compared, and the item's token shows when the
 * lock was acquired, not when it was renewed.  Only a version that does not
 * change for the time of the lease shows it.  So each page passes through the
 * worker's lock manager, which remembers the versions that it sees and knows when
 * a lock may be taken over.  The list calls a holder dead if
 * ddb_lock_try_acquire() would get its lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "utils/memutils.h"

#include "sql/sql.h"

/* The columns, in order. */
enum
{
	LIST_NAME,
	LIST_STATE,
	LIST_OWNER,
	LIST_DATABASE,				/* the first of ROW_HOLDER_COLUMNS */
	LIST_RELEASED_AT = LIST_DATABASE + ROW_HOLDER_COLUMNS,
	LIST_LEASE,
	LIST_TOKEN,
	LIST_VERSION,
	LIST_MODE,
	LIST_PERMITS,
	LIST_KEPT_UNTIL,
	LIST_UNUSABLE
};

static void
put_row(const LockRow *found, FunctionCallInfo fcinfo)
{
	const dynamo_item *item = &found->item;
	Row			row;

	RowClear(&row);
	RowValue(&row, LIST_NAME, NOTICE, "name of a lock", found->name);
	RowText(&row, LIST_STATE, found->unusable[0] != '\0' ? "unusable" :
			item->released ? "released" : found->dead ? "dead-looking" : "held");
	RowValue(&row, LIST_OWNER, NOTICE, "owner of a lock", item->owner);
	RowHolder(&row, LIST_DATABASE, &item->holder);
	if (item->released && item->released_at <= PG_INT64_MAX / 1000)
		RowEpoch(&row, LIST_RELEASED_AT, item->released_at * 1000);
	RowLease(&row, LIST_LEASE, item);
	if (found->mode == MODE_EXCLUSIVE)
		RowToken(&row, LIST_TOKEN, item);
	else if (item->has_token && !item->bad_token)
		RowSet(&row, LIST_TOKEN, Int64GetDatum(item->token));
	RowValue(&row, LIST_VERSION, NOTICE, "version of a lock", item->version);
	RowEpoch(&row, LIST_KEPT_UNTIL, item->kept_until_ms);
	RowText(&row, LIST_UNUSABLE, found->unusable);
	if (!item->released)
		RowText(&row, LIST_MODE, dynamo_mode_name(found->mode));
	if (lockmgr_limited(found->mode) && found->permits > 0)
		RowSet(&row, LIST_PERMITS, Int32GetDatum(found->permits));
	RowPut(&row, fcinfo);
}

/* Reads the table; the worker's lock manager sees each page.  fcinfo: NULL to return no rows. */
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
