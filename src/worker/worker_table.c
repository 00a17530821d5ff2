/*-------------------------------------------------------------------------
 *
 * worker_table.c
 *	  Is the lock table fit for locks?  Known before the first is acquired.
 *
 * In a global table with eventual consistency, two Regions would both grant a
 * lock.  So either ddblock.global_table_region pins the one in which locks are
 * acquired, or DescribeTable has to say that the table is none of that kind:
 * when the worker starts, when the table was missing, and every hour, since a
 * table can become a global one.  What a session's DescribeTable brings counts
 * as well.
 *
 * Until it is known, and DynamoDB's clock is, too (worker_call.c), acquires wait
 * in their slots (worker_mailbox.c); nothing else does.  Where it is known, an
 * acquire pays nothing.  A refusal is never remembered: the next acquire has it
 * looked up again.  An outage changes nothing of what was known.  The segment holds it, so that a worker that
 * replaces another one goes on with what was let through before.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"

#include "lock/backoff.h"
#include "shared/settings.h"
#include "shared/utf8.h"
#include "worker/worker.h"

#define RECHECK_US (INT64CONST(3600) * USECS_PER_SEC)

/* After a failure that nobody waits for. */
#define RETRY_US (15 * USECS_PER_SEC)

static bool in_flight = false;
static int64 next_check = 0;
static unsigned failures = 0;	/* since somebody began to wait */
static bool refusal_logged = false;

/* Why it is not known yet. */
static dynamo_status last_status = DYNAMO_UNKNOWN;
static char last_message[DYNAMO_MESSAGE_SIZE] = "no reply to DescribeTable yet";

static void judge(const dynamo_table_info *table);
static void answered_in_the_negative(const dynamo_reply *reply);
static void no_answer(const dynamo_reply *reply, int64 now);

static bool
is_pinned(void)
{
	return ddblock_global_table_region[0] != '\0';
}

/* May acquires pass?  If not, it is looked up at once. */
bool
WorkerTableIsFit(int64 now)
{
	if (is_pinned())
		return strcmp(ddblock_global_table_region, WorkerRegion()) == 0;
	if (segment->table_checked)
		return true;
	if (!in_flight && next_check > now)
	{
		next_check = now;
		failures = 0;
	}
	return false;
}

/* Returns the moment at which it wants to be called again. */
int64
WorkerTableTick(int64 now)
{
	int64		patience = (int64) ddblock_retry_timeout * 1000;
	int64		oldest = PG_INT64_MAX;

	if (is_pinned() && !WorkerTableIsFit(now))
		WorkerFailParked(now, MAILBOX_OTHER_REGION, DYNAMO_OK, "", WorkerRegion());
	if (!(is_pinned() || segment->table_checked) || !WorkerClockIsKnown())
		oldest = WorkerOldestParked();
	if (oldest <= now - patience)
	{
		WorkerFailParked(now - patience, MAILBOX_NOT_REFUSED, last_status, "", last_message);
		oldest = WorkerOldestParked();
	}
	if (!is_pinned() && !in_flight && next_check <= now)
	{
		in_flight = true;
		WorkerSendTableCheck();
	}
	return Min(is_pinned() || in_flight ? PG_INT64_MAX : next_check,
			   oldest == PG_INT64_MAX ? PG_INT64_MAX : oldest + patience);
}

static bool
is_no_answer(dynamo_status status)
{
	return status == DYNAMO_UNREACHABLE || status == DYNAMO_UNKNOWN ||
		status == DYNAMO_THROTTLED || status == DYNAMO_CONFLICT ||
		status == DYNAMO_MALFORMED;
}

/* A reply to DescribeTable: to our own, or to a session's. */
void
WorkerTableDescribed(const dynamo_reply *reply, bool own, int64 now)
{
	if (own)
		in_flight = false;
	if (is_pinned() || (!own && reply->status != DYNAMO_OK))
		return;

	next_check = now + RECHECK_US;
	if (reply->status == DYNAMO_OK)
		judge(&reply->table);
	else if (is_no_answer(reply->status))
		no_answer(reply, now);
	else
		answered_in_the_negative(reply);
}

/* Is a reply to DescribeTable to come? */
bool
WorkerTableIsAsked(void)
{
	return in_flight;
}

/* A reply that left DynamoDB's clock unknown: nothing is acquired without it. */
void
WorkerClockUnknown(const dynamo_reply *reply)
{
	if (is_no_answer(reply->status))
	{
		last_status = reply->status;
		strlcpy(last_message, reply->message, sizeof(last_message));
	}
	else if (reply->status != DYNAMO_OK)
		WorkerFailParked(PG_INT64_MAX, MAILBOX_NOT_REFUSED, reply->status, reply->type,
						 reply->message);
}

/* Some call has found no table: the next one of that name may be another. */
void
WorkerTableMissing(void)
{
	segment->table_checked = false;
}

static void
judge(const dynamo_table_info *table)
{
	bool		fit = table->strong || !table->replicated;

	failures = 0;
	segment->table_checked = fit;
	if (fit)
	{
		refusal_logged = false;
		WorkerRetryParked();
		return;
	}
	if (!refusal_logged)
		ereport(LOG,
				(errmsg("locks are refused: lock table \"%s\" is a global table with eventual "
						"consistency", ddblock_table),
				 errdetail("Its replicas are in: %s.",
						   Utf8Quiet(table->replicas, strlen(table->replicas))),
				 errhint("Set \"ddblock.global_table_region\" to one Region, the same on every "
						 "server.")));
	refusal_logged = true;
	WorkerFailParked(PG_INT64_MAX, MAILBOX_GLOBAL_TABLE, DYNAMO_OK, "", table->replicas);
}

static void
answered_in_the_negative(const dynamo_reply *reply)
{
	failures = 0;
	if (reply->status == DYNAMO_ACCESS_DENIED || reply->status == DYNAMO_TABLE_MISSING)
		segment->table_checked = false;
	WorkerFailParked(PG_INT64_MAX, MAILBOX_NOT_REFUSED, reply->status, reply->type,
					 reply->message);
}

static void
no_answer(const dynamo_reply *reply, int64 now)
{
	int64		pause = RETRY_US;

	last_status = reply->status;
	strlcpy(last_message, reply->message, sizeof(last_message));
	if (WorkerOldestParked() != PG_INT64_MAX)
		pause = backoff_us(++failures, BACKOFF_CAP_US,
						   pg_prng_uint64(&pg_global_prng_state));
	next_check = now + pause;
}
