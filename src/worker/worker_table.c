/*-------------------------------------------------------------------------
 *
 * worker_table.c
 *	  The lock table, as the codec wants it described.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "worker/worker.h"

static dynamo_table table;

void
WorkerReadTableSettings(void)
{
	table = SettingsTable();
}

const dynamo_table *
WorkerTable(void)
{
	return &table;
}

static void
stop_ttl(const dynamo_item *item)
{
	if (table.released_ttl_s == 0 || !item->exists || item->released || item->by_ddblock)
		return;
	table.released_ttl_s = 0;
	ereport(LOG,
			(errmsg("ddblock stops setting a time-to-live on released locks, because %s uses "
					"another client", Utf8Owner(Utf8Quiet(item->owner))),
			 errdetail("Such a client may keep the time-to-live on a lock that it holds. DynamoDB "
					   "would then delete the lock's item."),
			 errhint("Set \"ddblock.released_item_ttl\" to 0, and switch time-to-live off on "
					 "the table until no item has one.")));
}

/*
 * A Java client that acquires the lock of an item which we released leaves our ttl in the item, and
 * then DynamoDB deletes an item whose lock is held.  So when a reply shows an item of such a
 * client, we write no ttl until the configuration is reloaded.
 */
void
WorkerLookForOthers(const dynamo_reply *reply)
{
	for (int i = 0; i < reply->count; i++)
		stop_ttl(&reply->results[i].item);
	for (int i = 0; i < reply->page.count; i++)
		stop_ttl(&reply->page.rows[i].item);
}
