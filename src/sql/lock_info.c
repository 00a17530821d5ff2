/*-------------------------------------------------------------------------
 *
 * lock_info.c
 *	  ddb_lock_info(): shows a lock's item, by one consistent read.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "sql/sql.h"

static int
compare_clusters(const void *a, const void *b, void *found)
{
	const MailboxItem *item = found;

	return strcmp(item->cluster[*(const int *) a], item->cluster[*(const int *) b]);
}

/* Shows the mode; if the lock is shared, also the clusters that hold it, sorted by name. */
static void
fill_mode(const MailboxItem *found, Row *row)
{
	Datum		clusters[DYNAMO_ENTRIES_MAX];
	int			order[DYNAMO_ENTRIES_MAX];

	RowText(row, "mode", dynamo_mode_name(found->mode));
	if (found->mode == MODE_EXCLUSIVE)
		return;
	RowSet(row, "token", Int64GetDatum(found->item.token));
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
		RowSet(row, "permits", Int32GetDatum(found->permits));
	RowSet(row, "clusters", PointerGetDatum(construct_array(clusters, found->clusters, TEXTOID,
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

	RowStart(&row, fcinfo);
	RowSet(&row, "held", BoolGetDatum(item->exists && !item->released));
	if (!item->exists)
		return RowResult(&row);

	/* Of a released lock, show the attributes that the release has left in the item. */
	RowValue(&row, "owner", ERROR, "owner of the lock", item->owner);
	RowHolder(&row, &item->holder);
	RowLease(&row, item);
	RowToken(&row, item);

	/* Other clients may have written more data and attributes than an answer has room for. */
	if (found->has_data && item->data_len > sizeof(found->data))
		ereport(WARNING,
				(errmsg("the data of lock \"%s\" is not shown", name.text),
				 errdetail("It has %zu bytes, more than %d.", item->data_len, DYNAMO_DATA_MAX)));
	else if (found->has_data)
	{
		RowSet(&row, "data",
			   PointerGetDatum(cstring_to_text_with_len((const char *) found->data,
														item->data_len)));
		room -= item->data_len;
	}
	if (found->attributes_len > room)
		ereport(WARNING,
				(errmsg("the attributes of lock \"%s\" are not shown", name.text),
				 errdetail("With the data, they have more than %d bytes.", DYNAMO_DATA_MAX)));
	else if (found->attributes_len > 0)
	{
		const char *json = (const char *) found->data + sizeof(found->data) - found->attributes_len;
		bool		none;
		Datum		attributes = AttributesShow(json, found->attributes_len, &none);

		if (!none)
			RowSet(&row, "attributes", attributes);
	}
	RowValue(&row, "version", ERROR, "version of the lock", item->version);
	RowEpoch(&row, "kept_until", item->kept_until_ms);
	if (!item->released)
		fill_mode(found, &row);
	return RowResult(&row);
}
