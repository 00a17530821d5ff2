/*-------------------------------------------------------------------------
 *
 * lock_info.c
 *	  ddb_lock_info(): one consistent read of a lock's item.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "sql/sql.h"

/* The function's columns, in order. */
enum
{
	INFO_HELD,
	INFO_OWNER,
	INFO_DATABASE,				/* the first of ROW_HOLDER_COLUMNS */
	INFO_LEASE = INFO_DATABASE + ROW_HOLDER_COLUMNS,
	INFO_TOKEN,
	INFO_DATA,
	INFO_VERSION,
	INFO_MODE,
	INFO_PERMITS,
	INFO_CLUSTERS,
	INFO_ATTRIBUTES,
	INFO_KEPT_UNTIL
};

static int
compare_clusters(const void *a, const void *b, void *found)
{
	const MailboxItem *item = found;

	return strcmp(item->cluster[*(const int *) a], item->cluster[*(const int *) b]);
}

/* How the lock is held; if it is shared, by which clusters, in the order of their names. */
static void
fill_mode(const MailboxItem *found, Row *row)
{
	Datum		clusters[DYNAMO_ENTRIES_MAX];
	int			order[DYNAMO_ENTRIES_MAX];

	RowText(row, INFO_MODE, dynamo_mode_name(found->mode));
	if (found->mode == MODE_EXCLUSIVE)
		return;
	RowSet(row, INFO_TOKEN, Int64GetDatum(found->item.token));
	for (int i = 0; i < found->clusters; i++)
		order[i] = i;
	qsort_arg(order, found->clusters, sizeof(int), compare_clusters, (void *) found);
	for (int i = 0; i < found->clusters; i++)
	{
		const char *cluster = found->cluster[order[i]];
		const char *name = Utf8ToServerOr(ERROR, "owner of the lock", cluster);

		clusters[i] = CStringGetTextDatum(lockmgr_unlimited(found->mode) ? name :
										  psprintf("%s: %d", name,
												   found->cluster_permits[order[i]]));
	}
	if (lockmgr_limited(found->mode))
		RowSet(row, INFO_PERMITS, Int32GetDatum(found->permits));
	RowSet(row, INFO_CLUSTERS, PointerGetDatum(construct_array(clusters, found->clusters, TEXTOID,
															   -1, false, TYPALIGN_INT)));
}

PG_FUNCTION_INFO_V1(ddb_lock_info);
Datum
ddb_lock_info(PG_FUNCTION_ARGS)
{
	Row			row;
	LockName	name = ArgumentAllowedName(fcinfo);
	const MailboxItem *found = SessionLookUp(&name, NULL);
	const dynamo_item *item = &found->item;
	size_t		room = sizeof(found->data);

	RowClear(&row);
	RowSet(&row, INFO_HELD, BoolGetDatum(item->exists && !item->released));
	if (!item->exists)
		return RowResult(&row, fcinfo);

	/* A released item is shown with what the release left in it. */
	RowValue(&row, INFO_OWNER, ERROR, "owner of the lock", item->owner);
	RowHolder(&row, INFO_DATABASE, &item->holder);
	RowLease(&row, INFO_LEASE, item);
	RowToken(&row, INFO_TOKEN, item);

	/* Other clients may write more data and attributes than ddblock does. */
	if (found->has_data && item->data_len > sizeof(found->data))
		ereport(WARNING,
				(errmsg("the data of lock \"%s\" is not shown", name.text),
				 errdetail("It has %zu bytes, more than %d.", item->data_len, DYNAMO_DATA_MAX)));
	else if (found->has_data)
	{
		RowSet(&row, INFO_DATA,
			   PointerGetDatum(cstring_to_text_with_len((const char *) found->data,
														item->data_len)));
		room -= item->data_len;
	}
	if (found->attributes_len > room)
		ereport(WARNING,
				(errmsg("the attributes of lock \"%s\" are not shown", name.text),
				 errdetail("With the data, they have more than %d bytes.", DYNAMO_DATA_MAX)));
	else if (found->attributes_len > 0)
		row.values[INFO_ATTRIBUTES] =
			AttributesShow((const char *) found->data + sizeof(found->data) -
						   found->attributes_len, found->attributes_len,
						   &row.nulls[INFO_ATTRIBUTES]);
	RowValue(&row, INFO_VERSION, ERROR, "version of the lock", item->version);
	RowEpoch(&row, INFO_KEPT_UNTIL, item->kept_until_ms);
	if (!item->released)
		fill_mode(found, &row);
	return RowResult(&row, fcinfo);
}
