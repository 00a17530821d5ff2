/*-------------------------------------------------------------------------
 *
 * worker_table_check.c
 *	  Asks DynamoDB what must be known before locks are acquired.
 *
 * lock/table_check.h decides what to ask, and which requests pass.  This file asks.  Requests that
 * do not pass wait in their slots, and worker_mailbox.c settles them.  The segment keeps what is
 * known of the table, so that the next worker goes on with that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"

#include "shared/errors.h"
#include "worker/worker.h"

table_check worker_table_check;

void
WorkerTableCheckInit(void)
{
	table_check_pin pin = TABLE_CHECK_NOT_PINNED;

	if (ddblock_global_table_region[0] != '\0')
		pin = strcmp(ddblock_global_table_region, segment->place.region) == 0 ?
			TABLE_CHECK_PINNED_HERE : TABLE_CHECK_PINNED_ELSEWHERE;
	table_check_init(&worker_table_check, pin, segment->table_checked, segment->clock.known);
}

void
WorkerTableCheckSee(const WorkerCall *call, const dynamo_reply *reply)
{
	if (segment->clock.known)
		table_check_time_known(&worker_table_check);
	if (dynamo_is_queue(call->op))	/* another table */
		return;
	if (call->op == DYNAMO_DESCRIBE_TABLE)
	{
		/* The worker's own DescribeTable has no done function, one of a session has. */
		bool		own = call->done == NULL;
		static bool told = false;

		if (reply->status == DYNAMO_OK && !told)
			told = ErrorsKeys(LOG, &reply->table);
		if (table_check_described(&worker_table_check, reply, own,
								  pg_prng_uint64(&pg_global_prng_state), SegmentNow()))
			ereport(LOG,
					(errmsg("ddblock grants no locks: lock table \"%s\" is a global table with "
							"eventual consistency", ddblock_lock_table),
					 errdetail("Its replicas are in: %s.", Utf8Quiet(reply->table.replicas)),
					 errhint("Set \"ddblock.global_table_region\" to one Region, the same on "
							 "every server.")));
	}
	else if (reply->status == DYNAMO_TABLE_MISSING)
		table_check_missing(&worker_table_check);
	segment->table_checked = worker_table_check.fit;
}

static void
time_answered(const WorkerCall *call, const dynamo_reply *reply)
{
	table_check_time_answered(&worker_table_check, reply, pg_prng_uint64(&pg_global_prng_state),
							  SegmentNow());
}

int64
WorkerTableCheckRun(int64 now)
{
	/* The call has no done function, because WorkerTableCheckSee() takes the reply. */
	WorkerCall	call = {.op = DYNAMO_DESCRIBE_TABLE};

	for (;;)
	{
		switch (table_check_ask(&worker_table_check, now))
		{
			case TABLE_CHECK_ASK_TABLE:
				/* Waiting requests fail after retry_timeout: by then this call tells why. */
				call.timeout_us = (int64) Min(ddblock_request_timeout, ddblock_retry_timeout) * 1000;
				call.body = dynamo_build_describe_table(WorkerTable());
				WorkerPost(&call);
				break;
			case TABLE_CHECK_ASK_TIME:
				WorkerPostRead(WORKER_UNWRITTEN, time_answered, 0);
				break;
			case TABLE_CHECK_ASK_NOTHING:
				return table_check_next_wake(&worker_table_check);
		}
	}
}
