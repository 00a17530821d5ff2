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

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "session/prefix.h"
#include "session/table_call.h"
#include "shared/errors.h"
#include "shared/utf8.h"
#include "sql/arguments.h"
#include "sql/item_columns.h"

PG_FUNCTION_INFO_V1(ddb_lock_list);

/* The columns, in order. */
enum
{
	LIST_NAME,
	LIST_STATE,
	LIST_OWNER,
	LIST_DATABASE,				/* the first of ITEM_HOLDER_COLUMNS */
	LIST_RELEASED_AT = LIST_DATABASE + ITEM_HOLDER_COLUMNS,
	LIST_LEASE,
	LIST_TOKEN,
	LIST_VERSION,
	LIST_MODE,
	LIST_PERMITS,
	LIST_KEPT_UNTIL,
	LIST_UNUSABLE,
	LIST_COLUMNS
};

static void look(TableScan *scan, ReturnSetInfo *result);
static void put_row(const LockRow *row, ReturnSetInfo *result);

Datum
ddb_lock_list(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int64		watch_ms;
	const char *prefix;

	ErrorsRequirePreload();
	prefix = PrefixNarrow(ArgumentPrefix(fcinfo, 0).utf8);
	watch_ms = ArgumentWatch(fcinfo, 1, 0);
	InitMaterializedSRF(fcinfo, 0);

	if (watch_ms > 0)
	{
		look(TableScanStart(prefix, false), NULL);
		TableSleep(watch_ms * 1000);
	}
	look(TableScanStart(prefix, false), result);
	return (Datum) 0;
}

/* Reads the table; the worker's lock manager sees each page.  result may be NULL. */
static void
look(TableScan *scan, ReturnSetInfo *result)
{
	MemoryContext per_row = AllocSetContextCreate(CurrentMemoryContext, "ddb_lock_list row",
												  ALLOCSET_DEFAULT_SIZES);

	while (TableScanNext(scan))
	{
		MemoryContext old = MemoryContextSwitchTo(per_row);

		if (result != NULL)
			put_row(&scan->row, result);
		MemoryContextSwitchTo(old);
		MemoryContextReset(per_row);
	}
	MemoryContextDelete(per_row);
	pfree(scan);
}

static void
put_row(const LockRow *row, ReturnSetInfo *result)
{
	const dynamo_item *item = &row->item;
	const char *state = row->unusable[0] != '\0' ? "unusable" :
		item->released ? "released" : row->dead ? "dead-looking" : "held";
	Datum		values[LIST_COLUMNS];
	bool		nulls[LIST_COLUMNS];

	memset(nulls, true, sizeof(nulls));
	ItemValue(LIST_NAME, NOTICE, "name of a lock", row->name, values, nulls);
	values[LIST_STATE] = CStringGetTextDatum(state);
	nulls[LIST_STATE] = false;
	ItemValue(LIST_OWNER, NOTICE, "owner of a lock", item->owner, values, nulls);
	ItemHolder(LIST_DATABASE, &item->holder, values, nulls);
	if (item->released && item->released_at <= PG_INT64_MAX / 1000)
		ItemTime(LIST_RELEASED_AT, item->released_at * 1000, values, nulls);
	ItemLease(LIST_LEASE, item, values, nulls);
	if (row->mode == MODE_EXCLUSIVE)
		ItemToken(LIST_TOKEN, item, values, nulls);
	else if (item->has_token && !item->bad_token)
	{
		values[LIST_TOKEN] = Int64GetDatum(item->token);
		nulls[LIST_TOKEN] = false;
	}
	ItemValue(LIST_VERSION, NOTICE, "version of a lock", item->version, values, nulls);
	ItemTime(LIST_KEPT_UNTIL, item->kept_until_ms, values, nulls);
	ItemText(LIST_UNUSABLE, row->unusable, values, nulls);
	if (!item->released)
		ItemText(LIST_MODE, ItemMode(row->mode), values, nulls);
	if (row->mode == MODE_SEMAPHORE && row->permits > 0)
	{
		values[LIST_PERMITS] = Int32GetDatum(row->permits);
		nulls[LIST_PERMITS] = false;
	}
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}
