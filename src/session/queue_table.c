/*-------------------------------------------------------------------------
 *
 * queue_table.c
 *	  Is the queues' table fit, and guarded by our lock table?
 *
 * Jobs are claimed under locks, so all clusters must take these from one lock table.  The queues'
 * table remembers which one: by an identity, since a table's name may be another table's, too.  The
 * lock table's item with its identity is made when queues are used first, and copied then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "session/session.h"

#define RECHECK_US (3600 * USECS_PER_SEC)

/* A fraction of the time for which a floor waits until it counts (sql/queue_purge.c). */
#define FLOOR_KNOWN_US (3600 * USECS_PER_SEC)

/* Who looks anew has so long; then the next session does. */
#define DUTY_US (60 * USECS_PER_SEC)

void
QueueTableCheck(const QueueRow *described)
{
	if (described->error[0] == '\0')
		return;
	shared_write(&segment->queue_table_checked, 0);
	ErrorsState(errmsg("existing table \"%s\" is not a queue table", ddblock_queue_table),
				errdetail_internal("%s", described->error),
				errhint("Choose another \"ddblock.queue_table\"."));
}

/*
 * A table that has none gets it.  With another separator the locks of queues are other items, so
 * that is part of it; and with another value of the sort key, the identity is another item.
 */
static const char *
identity_of_lock_table(void)
{
	MailboxRequest request = {.op = DYNAMO_IDENTIFY};
	const MailboxAnswer *answer;
	const char *identity = request.write.version;
	LockName	item = {.text = DYNAMO_IDENTITY_KEY,.utf8 = DYNAMO_IDENTITY_KEY};

	SessionNewUuid(request.write.version);
	answer = TableCall(&request, NULL, NULL, DYNAMO_OK, NULL);
	if (answer->result == MAILBOX_CHANGED)
		identity = answer->found.item.exists ? answer->found.item.version :
			SessionLookUp(&item, NULL)->item.version;	/* some servers do not show it */
	if (identity[0] == '\0')
		ErrorsState(errmsg("the identity of lock table \"%s\" is unusable", ddblock_lock_table),
					errdetail("Item \"%s\" has no readable recordVersionNumber.",
							  DYNAMO_IDENTITY_KEY),
					errhint("When no session works on a job, delete this item, and the queue "
							"table's item whose \"pk\" and \"sk\" are \"%s\".", QUEUE_GUARD_KEY));
	return psprintf("%s%s", identity, ddblock_sort_separator);
}

/* The write that makes the first lock table the guard refuses any other one. */
static void
require_guard(void)
{
	queue_request request = QueueRequest(QUEUE_GUARD, "", ddblock_lock_table);
	const QueueRow *guard;
	dynamo_status status;

	strlcpy(request.id, identity_of_lock_table(), sizeof(request.id));
	guard = QueueCallRow(&request, &status);
	if (status == DYNAMO_OK)
		return;
	shared_write(&segment->queue_table_checked, 0);
	ErrorsState(errmsg("another lock table guards queue table \"%s\"", ddblock_queue_table),
				errdetail("It is lock table \"%s\" with identity \"%s\", but this server uses lock "
						  "table \"%s\" with identity \"%s\". With both, two sessions could work "
						  "on one job.", Utf8ToMessage(guard != NULL ? guard->resource : ""),
						  Utf8ToMessage(guard != NULL ? guard->id : ""),
						  ddblock_lock_table, Utf8ToMessage(request.id)),
				errhint("Compare \"ddblock.lock_table\", \"ddblock.sort_key_value\" and "
						"\"ddblock.sort_separator\" with the other clusters'. If all of them use "
						"this lock table now, delete the queue table's item whose \"pk\" and "
						"\"sk\" are \"%s\".", QUEUE_GUARD_KEY));
}

void
QueueTableRequire(void)
{
	queue_request request = QueueRequest(QUEUE_DESCRIBE_TABLE, "", "");
	QueueRow   *table;
	int64		now;
	uint64		checked;

	SessionAttach();
	now = SegmentNow();
	checked = shared_read(&segment->queue_table_checked);
	/* After an hour one session looks anew, and the others go on. */
	if (checked != 0 &&
		(now < (int64) checked + RECHECK_US ||
		 !shared_compare_exchange(&segment->queue_table_checked, &checked,
								  (uint64) (now - RECHECK_US + DUTY_US))))
		return;
	table = QueueCallRow(&request, NULL);
	if (table == NULL)
		return;
	QueueTableCheck(table);
	require_guard();
	shared_write(&segment->queue_table_checked, (uint64) SegmentNow());
}

int64
QueueTableFloor(void)
{
	int64		now = SegmentNow();
	uint64		known = shared_read(&segment->queue_floor_read);

	if (known == 0 || now - (int64) known > FLOOR_KNOWN_US)
	{
		queue_request request = QueueRequest(QUEUE_READ_FLOOR, "", "");
		const QueueRow *row = QueueCallRow(&request, NULL);

		shared_write(&segment->queue_floor, row != NULL ? (uint64) row->is.seq : 0);
		pg_write_barrier();
		shared_write(&segment->queue_floor_read, (uint64) now);
	}
	pg_read_barrier();
	return (int64) shared_read(&segment->queue_floor);
}
