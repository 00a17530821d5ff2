/*-------------------------------------------------------------------------
 *
 * queue_table_guard.c
 *	  Is the queues' table fit, and guarded by this cluster's lock table?
 *
 * Jobs are claimed under locks.  So all clusters that use a queues' table must take these locks
 * from the same lock table, or two of them could work on one job.  The queues' table remembers
 * this lock table, its guard, by an identity: the name is not enough, as two tables in different
 * Regions may have the same name.  The identity is a UUID in an item of the lock table.  The first
 * use of queues makes this item, and copies the UUID into the queues' table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "session/session.h"

#define RECHECK_US (3600 * USECS_PER_SEC)

/*
 * How long a session believes a floor that was read.  A raised floor counts only after a much
 * longer time (sql/queue_purge.c).
 */
#define FLOOR_KNOWN_US (3600 * USECS_PER_SEC)

/*
 * When an hour is over, one session looks at the table again.  If it has not ended after this
 * time, the next session looks.
 */
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
 * Reads the lock table's identity, and makes it if there is none.  The separator
 * (ddblock.sort_separator) is part of the result: with another one, the locks of queues are other
 * items.  ddblock.sort_key_value need not be part of it: with another one, the identity itself is
 * another item.
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
			SessionLookUp(&item, NULL)->item.version;	/* some servers do not return the item that
														 * has refused a write */
	if (identity[0] == '\0')
		ErrorsState(errmsg("the identity of lock table \"%s\" is unusable", ddblock_lock_table),
					errdetail("Item \"%s\" has no readable recordVersionNumber.",
							  DYNAMO_IDENTITY_KEY),
					errhint("When no session works on a job, delete this item, and the queue "
							"table's item whose \"pk\" and \"sk\" are \"%s\".", QUEUE_GUARD_KEY));
	return psprintf("%s%s", identity, ddblock_sort_separator);
}

/*
 * Makes this cluster's lock table the guard of the queues' table, if it has none yet.  If another
 * lock table is the guard, the write is refused.
 */
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
	/* After an hour one session looks at the table again, and the others go on meanwhile. */
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
