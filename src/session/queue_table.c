/*-------------------------------------------------------------------------
 *
 * queue_table.c
 *	  Is the queues' table fit?
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "session/queue_table.h"
#include "session/session.h"
#include "shared/segment.h"
#include "shared/settings.h"

#define RECHECK_US (3600 * USECS_PER_SEC)

/* Who looks anew has so long; then the next session does. */
#define DUTY_US (60 * USECS_PER_SEC)

static bool is_checked(int64 now);

void
QueueTableCheck(const QueueRow *described)
{
	if (described->error[0] != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("existing table \"%s\" is not a queue table", ddblock_queue_table),
				 errdetail_internal("%s", described->error),
				 errhint("Choose another \"ddblock.queue_table\".")));
}

void
QueueTableRequire(void)
{
	queue_request request = QueueRequest(QUEUE_DESCRIBE_TABLE, "", "");
	QueueRow   *table;

	SessionAttach();
	if (is_checked(SegmentNow()))
		return;
	table = QueueCallRow(&request, NULL);
	if (table == NULL)
		return;
	if (table->error[0] != '\0')
		pg_atomic_write_u64(&segment->queue_table_checked, 0);
	QueueTableCheck(table);
	pg_atomic_write_u64(&segment->queue_table_checked, (uint64) SegmentNow());
}

/* After an hour one session looks anew, and the others go on. */
static bool
is_checked(int64 now)
{
	uint64		checked = pg_atomic_read_u64(&segment->queue_table_checked);

	return checked != 0 &&
		(now < (int64) checked + RECHECK_US ||
		 !pg_atomic_compare_exchange_u64(&segment->queue_table_checked, &checked,
										 (uint64) (now - RECHECK_US + DUTY_US)));
}
