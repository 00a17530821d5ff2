/*-------------------------------------------------------------------------
 *
 * lock_info.c
 *	  ddb_lock_info(): one consistent read of a lock's item.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "session/session.h"
#include "shared/compat.h"
#include "shared/errors.h"
#include "shared/utf8.h"
#include "sql/arguments.h"
#include "sql/attributes.h"
#include "sql/item_columns.h"

PG_FUNCTION_INFO_V1(ddb_lock_info);

/* The function's columns, in order. */
enum
{
	INFO_HELD,
	INFO_OWNER,
	INFO_DATABASE,
	INFO_USENAME,
	INFO_APPLICATION_NAME,
	INFO_PID,
	INFO_HOST,
	INFO_ACQUIRED_AT,
	INFO_LEASE,
	INFO_TOKEN,
	INFO_DATA,
	INFO_VERSION,
	INFO_MODE,
	INFO_PERMITS,
	INFO_CLUSTERS,
	INFO_ATTRIBUTES,
	INFO_KEPT_UNTIL,
	INFO_COLUMNS
};

static void fill_row(const LockName *name, const MailboxItem *found,
					 Datum *values, bool *nulls);
static void fill_mode(const MailboxItem *found, Datum *values, bool *nulls);
static void fill_data(const LockName *name, const MailboxItem *found,
					  Datum *values, bool *nulls);
static void fill_attributes(const LockName *name, const MailboxItem *found,
							Datum *values, bool *nulls);

Datum
ddb_lock_info(PG_FUNCTION_ARGS)
{
	Datum		values[INFO_COLUMNS];
	bool		nulls[INFO_COLUMNS];
	TupleDesc	desc;
	LockName	name;

	ErrorsRequirePreload();
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	name = ArgumentAllowedName(fcinfo, 0);

	memset(nulls, true, sizeof(nulls));
	fill_row(&name, SessionLookUp(&name, NULL), values, nulls);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/* A released item is shown with what the release left in it. */
static void
fill_row(const LockName *name, const MailboxItem *found, Datum *values, bool *nulls)
{
	const dynamo_item *item = &found->item;

	values[INFO_HELD] = BoolGetDatum(item->exists && !item->released);
	nulls[INFO_HELD] = false;
	if (!item->exists)
		return;

	ItemValue(INFO_OWNER, ERROR, "owner of the lock", item->owner, values, nulls);
	ItemHolder(INFO_DATABASE, &item->holder, values, nulls);
	ItemLease(INFO_LEASE, item, values, nulls);
	ItemToken(INFO_TOKEN, item, values, nulls);
	fill_data(name, found, values, nulls);
	fill_attributes(name, found, values, nulls);
	ItemValue(INFO_VERSION, ERROR, "version of the lock", item->version, values, nulls);
	ItemTime(INFO_KEPT_UNTIL, item->kept_until_ms, values, nulls);
	if (!item->released)
		fill_mode(found, values, nulls);
}

static int
compare_clusters(const void *a, const void *b, void *found)
{
	const MailboxItem *item = found;

	return strcmp(item->cluster[*(const int *) a], item->cluster[*(const int *) b]);
}

/* How the lock is held; if it is shared, by which clusters, in the order of their names. */
static void
fill_mode(const MailboxItem *found, Datum *values, bool *nulls)
{
	Datum		clusters[DYNAMO_ENTRIES_MAX];
	int			order[DYNAMO_ENTRIES_MAX];

	ItemText(INFO_MODE, ItemMode(found->mode), values, nulls);
	if (found->mode == MODE_EXCLUSIVE)
		return;
	values[INFO_TOKEN] = Int64GetDatum(found->item.token);
	nulls[INFO_TOKEN] = false;
	for (int i = 0; i < found->clusters; i++)
		order[i] = i;
	qsort_arg(order, found->clusters, sizeof(int), compare_clusters, (void *) found);
	for (int i = 0; i < found->clusters; i++)
	{
		const char *cluster = found->cluster[order[i]];
		const char *name = Utf8ToServerOr(ERROR, "owner of the lock", cluster, strlen(cluster));

		clusters[i] = CStringGetTextDatum(found->mode == MODE_SHARED ? name :
										  psprintf("%s: %d", name,
												   found->cluster_permits[order[i]]));
	}
	if (found->mode == MODE_SEMAPHORE)
	{
		values[INFO_PERMITS] = Int32GetDatum(found->permits);
		nulls[INFO_PERMITS] = false;
	}
	values[INFO_CLUSTERS] = PointerGetDatum(construct_array(clusters, found->clusters, TEXTOID,
														  -1, false, TYPALIGN_INT));
	nulls[INFO_CLUSTERS] = false;
}

/* Other clients may write more data than ddblock does. */
static void
fill_data(const LockName *name, const MailboxItem *found, Datum *values, bool *nulls)
{
	size_t		len = found->item.data_len;
	bytea	   *data;

	if (!found->has_data)
		return;
	if (len > DYNAMO_DATA_MAX)
	{
		ereport(WARNING,
				(errmsg("the data of lock \"%s\" is not shown", name->text),
				 errdetail("It has %zu bytes, more than %d.", len, DYNAMO_DATA_MAX)));
		return;
	}
	data = palloc(VARHDRSZ + len);
	SET_VARSIZE(data, VARHDRSZ + len);
	memcpy(VARDATA(data), found->data, len);
	values[INFO_DATA] = PointerGetDatum(data);
	nulls[INFO_DATA] = false;
}

/* The same for other clients' attributes. */
static void
fill_attributes(const LockName *name, const MailboxItem *found, Datum *values, bool *nulls)
{
	size_t		len = found->attributes_len;
	size_t		room = sizeof(found->data);

	if (len == 0)
		return;
	if (found->has_data && found->item.data_len <= room)
		room -= found->item.data_len;
	if (len > room)
	{
		ereport(WARNING,
				(errmsg("the attributes of lock \"%s\" are not shown", name->text),
				 errdetail("With the data, they have more than %d bytes.", DYNAMO_DATA_MAX)));
		return;
	}
	values[INFO_ATTRIBUTES] = AttributesShow((const char *) found->data + sizeof(found->data) - len,
											 len, &nulls[INFO_ATTRIBUTES]);
}
