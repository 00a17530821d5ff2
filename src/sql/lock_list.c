/*-------------------------------------------------------------------------
 *
 * lock_list.c
 *	  ddb_lock_list(): the lock table's items, page after page.
 *
 * One look at an item does not tell whether its holder is alive: no clock of
 * ours can be compared with the holder's, and the item's token says when it
 * was acquired, not when it was renewed.  Only time shows it.  As anybody who
 * waits for a lock does, we call a holder dead who lets a whole lease pass
 * without writing a new version: so the session remembers what it has seen in
 * earlier listings, and since when.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "pg/errors.h"
#include "pg/table_call.h"
#include "pg/utf8.h"
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
	LIST_COLUMNS
};

/* Others may wait a little longer than a lease: their clocks may be fast. */
#define PATIENCE_US(lease_ms) ((lease_ms) * 1020)

/* Longest lease that is worth remembering: beyond it, overflow. */
#define LEASE_MAX_MS (PG_INT64_MAX / 4096)

/*
 * A version that this session has seen in a held item.  The key is a hash of
 * name, version, lease and owner: versions do not come back, and if two of
 * them should share a hash, a listing is wrong, and no lock.
 */
typedef struct Seen
{
	uint64		key;
	int64		first;			/* when the first page with it had arrived */
	int64		last;
} Seen;

#define SEEN_MAX 50000			/* about 3 MB */

static HTAB *seen = NULL;

static void look(TableScan *scan, ReturnSetInfo *result);
static void put_row(const TableScan *scan, bool dead, ReturnSetInfo *result);
static bool looks_dead(const TableScan *scan);
static uint64 hash_of(const LockRow *row);
static uint64 hash_text(const char *text, uint64 seed);
static void make_room(int64 listing_started);

Datum
ddb_lock_list(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int64		watch_ms;
	LockName	prefix;

	ErrorsRequirePreload();
	prefix = ArgumentPrefix(fcinfo, 0);
	watch_ms = ArgumentWatch(fcinfo, 1, 0);
	InitMaterializedSRF(fcinfo, 0);

	make_room(SegmentNow());
	if (watch_ms > 0)
	{
		look(TableScanStart(prefix.utf8, false), NULL);
		TableSleep(watch_ms * 1000);
	}
	look(TableScanStart(prefix.utf8, false), result);
	return (Datum) 0;
}

/* Notes what stands in the table; result NULL: only that. */
static void
look(TableScan *scan, ReturnSetInfo *result)
{
	MemoryContext per_row = AllocSetContextCreate(CurrentMemoryContext, "ddb_lock_list row",
												  ALLOCSET_DEFAULT_SIZES);

	while (TableScanNext(scan))
	{
		bool		dead = looks_dead(scan);
		MemoryContext old = MemoryContextSwitchTo(per_row);

		if (result != NULL)
			put_row(scan, dead, result);
		MemoryContextSwitchTo(old);
		MemoryContextReset(per_row);
	}
	MemoryContextDelete(per_row);
	TableScanEnd(scan);
}

static void
put_row(const TableScan *scan, bool dead, ReturnSetInfo *result)
{
	const dynamo_item *item = &scan->row.item;
	const char *state = item->released ? "released" : dead ? "dead-looking" : "held";
	Datum		values[LIST_COLUMNS];
	bool		nulls[LIST_COLUMNS];

	memset(nulls, true, sizeof(nulls));
	ItemText(LIST_NAME, scan->row.name, values, nulls);
	values[LIST_STATE] = CStringGetTextDatum(state);
	nulls[LIST_STATE] = false;
	ItemText(LIST_OWNER, item->owner, values, nulls);
	ItemHolder(LIST_DATABASE, &item->holder, values, nulls);
	if (item->released && item->released_at <= PG_INT64_MAX / 1000)
		ItemTime(LIST_RELEASED_AT, item->released_at * 1000, values, nulls);
	ItemLease(LIST_LEASE, item, values, nulls);
	ItemToken(LIST_TOKEN, item, values, nulls);
	ItemText(LIST_VERSION, item->version, values, nulls);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * Has the row's version stood there for a whole lease?  It was there when the
 * first page with it had arrived, and still (or again, which does not happen)
 * after this page's request left.
 */
static bool
looks_dead(const TableScan *scan)
{
	const dynamo_item *item = &scan->row.item;
	uint64		key;
	bool		found;
	Seen	   *entry;

	if (item->released || item->version[0] == '\0' || item->lease_ms <= 0 ||
		item->lease_ms > LEASE_MAX_MS)
		return false;
	key = hash_of(&scan->row);
	entry = hash_search(seen, &key,
						hash_get_num_entries(seen) < SEEN_MAX ? HASH_ENTER : HASH_FIND,
						&found);
	if (entry == NULL)
		return false;
	if (!found)
		entry->first = scan->received;
	entry->last = scan->received;
	return scan->sent - entry->first >= PATIENCE_US(item->lease_ms);
}

static uint64
hash_of(const LockRow *row)
{
	uint64		hash = hash_text(row->name, (uint64) row->item.lease_ms);

	return hash_text(row->item.owner, hash_text(row->item.version, hash));
}

static uint64
hash_text(const char *text, uint64 seed)
{
	return DatumGetUInt64(hash_any_extended((const unsigned char *) text, strlen(text),
											seed));
}

/*
 * Forgets, when half of the room is taken, what was not there when it could
 * have been seen last: most of it has been renewed or released since.
 */
static void
make_room(int64 listing_started)
{
	static int64 last_started = 0;
	HASH_SEQ_STATUS status;
	HASHCTL		ctl = {.keysize = sizeof(uint64),.entrysize = sizeof(Seen)};
	Seen	   *entry;

	if (seen == NULL)
		seen = hash_create("ddb_lock_list versions", 1024, &ctl, HASH_ELEM | HASH_BLOBS);
	if (hash_get_num_entries(seen) > SEEN_MAX / 2)
	{
		hash_seq_init(&status, seen);
		while ((entry = hash_seq_search(&status)) != NULL)
		{
			if (entry->last < last_started)
				hash_search(seen, &entry->key, HASH_REMOVE, NULL);
		}
	}
	last_started = listing_started;
}
