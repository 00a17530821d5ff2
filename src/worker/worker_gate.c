/*-------------------------------------------------------------------------
 *
 * worker_gate.c
 *	  Asks DynamoDB what must be known before locks are acquired.
 *
 * The gate decides (lock/gate.h).  Requests that do not pass wait in their
 * slots, and worker_mailbox.c settles them.  The segment keeps what is known of
 * the table, so that the next worker goes on with it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"

#include "shared/segment.h"
#include "shared/settings.h"
#include "shared/shared.h"
#include "worker/worker.h"

static gate the_gate;

void
WorkerGateInit(void)
{
	gate_pin	pin = GATE_NOT_PINNED;

	if (ddblock_global_table_region[0] != '\0')
		pin = strcmp(ddblock_global_table_region, segment->place.region) == 0 ?
			GATE_PINNED_HERE : GATE_PINNED_ELSEWHERE;
	gate_init(&the_gate, pin, segment->table_checked, segment->clock.known);
}

static void
take_description(const dynamo_reply *reply, bool own)
{
	const char *replicas = reply->table.replicas;

	if (gate_described(&the_gate, reply, own, pg_prng_uint64(&pg_global_prng_state),
					   SegmentNow()))
		ereport(LOG,
				(errmsg("ddblock grants no locks: lock table \"%s\" is a global table with "
						"eventual consistency", ddblock_lock_table),
				 errdetail("Its replicas are in: %s.", Utf8Quiet(replicas, strlen(replicas))),
				 errhint("Set \"ddblock.global_table_region\" to one Region, the same on every "
						 "server.")));
	segment->table_checked = the_gate.fit;
}

static void
described(const WorkerCall *call, const dynamo_reply *reply)
{
	take_description(reply, true);
}

void
WorkerGateSee(const WorkerCall *call, const dynamo_reply *reply)
{
	if (segment->clock.known)
		gate_time_known(&the_gate);
	if (dynamo_is_queue(call->op))	/* another table */
		return;
	if (call->op == DYNAMO_DESCRIBE_TABLE && call->done != described)
		take_description(reply, false);
	else if (reply->status == DYNAMO_TABLE_MISSING)
		gate_missing(&the_gate);
	segment->table_checked = the_gate.fit;
}

static void
ask_table(void)
{
	WorkerCall	call = {.op = DYNAMO_DESCRIBE_TABLE,.done = described};

	/* The requests that wait fail after retry_timeout: then with what came of it. */
	call.timeout_us = (int64) Min(ddblock_request_timeout, ddblock_retry_timeout) * 1000;
	call.body = dynamo_build_describe_table(WorkerTable());
	WorkerPost(&call);
}

static void
time_answered(const WorkerCall *call, const dynamo_reply *reply)
{
	gate_time_answered(&the_gate, reply, pg_prng_uint64(&pg_global_prng_state),
					   SegmentNow());
}

int64
WorkerGateRun(int64 now)
{
	for (;;)
	{
		switch (gate_ask(&the_gate, now))
		{
			case GATE_ASK_TABLE:
				ask_table();
				break;
			case GATE_ASK_TIME:
				WorkerPostRead(time_answered);
				break;
			case GATE_ASK_NOTHING:
				return gate_next_wake(&the_gate);
		}
	}
}

bool
WorkerGatePasses(int64 now)
{
	return gate_passes(&the_gate, now);
}

void
WorkerGateIdle(void)
{
	gate_idle(&the_gate);
}

gate_verdict
WorkerGateJudge(int64 since, int64 now, const gate_words **words, int64 *until)
{
	return gate_judge(&the_gate, since, now, (int64) ddblock_retry_timeout * 1000, words,
					  until);
}
