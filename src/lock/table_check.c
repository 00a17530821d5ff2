/*-------------------------------------------------------------------------
 *
 * table_check.c
 *	  May locks be acquired?  See table_check.h.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/table_check.h"

#include <stdio.h>

#include "base/backoff.h"

#define SECOND_US	INT64_C(1000000)
#define RECHECK_US	(3600 * SECOND_US)

/* How soon a failed call is repeated, while no request waits. */
#define RETRY_US	(15 * SECOND_US)

/*
 * How soon the time is asked for again, while aws/epoch_clock.c does not believe the Dates of
 * replies.
 */
#define TIME_AGAIN_US	(SECOND_US / 10)

static void
keep_words(table_check_words *words, dynamo_status status, const char *message)
{
	words->status = status;
	snprintf(words->message, sizeof(words->message), "%s", message);
}

void
table_check_init(table_check *check, table_check_pin pin, bool fit, bool time_known)
{
	*check = (table_check) {.pin = pin,.fit = fit,.time_known = time_known,.refused_at = INT64_MIN};
	keep_words(&check->unknown, DYNAMO_UNKNOWN, "no reply to DescribeTable yet");
}

static bool
table_is_fit(const table_check *check)
{
	return check->pin == TABLE_CHECK_NOT_PINNED ? check->fit : check->pin == TABLE_CHECK_PINNED_HERE;
}

static void
ask_at_once(table_check_call *call, int64_t now)
{
	if (call->due <= now)
		return;
	call->due = now;
	call->failures = 0;
}

bool
table_check_passes(table_check *check, int64_t now)
{
	if (table_is_fit(check) && check->time_known)
		return true;
	check->waited_for = true;
	if (!table_is_fit(check))
		ask_at_once(&check->table, now);
	if (!check->time_known)
		ask_at_once(&check->time, now);
	return false;
}

void
table_check_idle(table_check *check)
{
	check->waited_for = false;
}

static int64_t
table_due(const table_check *check)
{
	return check->pin != TABLE_CHECK_NOT_PINNED || check->table.in_flight ? INT64_MAX :
		check->table.due;
}

/*
 * A reply to DescribeTable brings the time as well, so while that is in flight, no other call is
 * needed.
 */
static int64_t
time_due(const table_check *check)
{
	return check->time_known || check->time.in_flight || check->table.in_flight ? INT64_MAX :
		check->time.due;
}

table_check_question
table_check_ask(table_check *check, int64_t now)
{
	if (table_due(check) <= now)
	{
		check->table.in_flight = true;
		return TABLE_CHECK_ASK_TABLE;
	}
	if (time_due(check) <= now)
	{
		check->time.in_flight = true;
		return TABLE_CHECK_ASK_TIME;
	}
	return TABLE_CHECK_ASK_NOTHING;
}

int64_t
table_check_next_wake(const table_check *check)
{
	return table_due(check) < time_due(check) ? table_due(check) : time_due(check);
}

static void
refuse(table_check *check, table_check_verdict refusal, dynamo_status status, const char *message,
	   int64_t now)
{
	check->refusal = refusal;
	check->refused_at = now;
	keep_words(&check->refused, status, message);
}

/*
 * A call has failed.  If repeating it may help, it is due again soon; else DynamoDB's refusal
 * becomes the verdict on the requests that wait.
 */
static void
failed(table_check *check, table_check_call *call, const dynamo_reply *reply, int64_t pause,
	   uint64_t random, int64_t now)
{
	if (dynamo_is_transient(reply->status) || reply->status == DYNAMO_MALFORMED)
	{
		keep_words(&check->unknown, reply->status, reply->message);
		pause = check->waited_for ? backoff_us(++call->failures, BACKOFF_CAP_US, random) :
			RETRY_US;
	}
	else
	{
		call->failures = 0;
		refuse(check, TABLE_CHECK_FAIL, reply->status, reply->message, now);
	}
	call->due = now + pause;
}

bool
table_check_described(table_check *check, const dynamo_reply *reply, bool own, uint64_t random,
			   int64_t now)
{
	bool		was_eventual = check->eventual;

	if (own)
		check->table.in_flight = false;
	if (check->pin != TABLE_CHECK_NOT_PINNED || (!own && reply->status != DYNAMO_OK))
		return false;
	if (reply->status != DYNAMO_OK)
	{
		if (reply->status == DYNAMO_ACCESS_DENIED || reply->status == DYNAMO_TABLE_MISSING)
			check->fit = false;
		failed(check, &check->table, reply, RECHECK_US, random, now);
		return false;
	}
	check->table.failures = 0;
	check->table.due = now + RECHECK_US;
	check->eventual = reply->table.replicated && !reply->table.strong;
	check->fit = !check->eventual;
	if (check->eventual)
		refuse(check, TABLE_CHECK_GLOBAL_TABLE, DYNAMO_OK, reply->table.replicas, now);
	return check->eventual && !was_eventual;
}

void
table_check_time_answered(table_check *check, const dynamo_reply *reply, uint64_t random,
						  int64_t now)
{
	check->time.in_flight = false;
	if (check->time_known)
		return;
	if (reply->status == DYNAMO_OK)
	{
		/* epoch_clock.c does not believe the Date of this reply yet: it needs more replies. */
		check->time.due = now + TIME_AGAIN_US;
		keep_words(&check->unknown, DYNAMO_UNKNOWN, "The Date of replies differs from this "
				   "server's clock, and is in doubt for 10 s");
	}
	else
		failed(check, &check->time, reply, RETRY_US, random, now);
}

void
table_check_time_known(table_check *check)
{
	check->time_known = true;
}

void
table_check_missing(table_check *check)
{
	check->fit = false;
}

table_check_verdict
table_check_judge(const table_check *check, int64_t since, int64_t now, int64_t patience_us,
				  const table_check_words **words, int64_t *until)
{
	*words = &check->refused;
	*until = now;
	if (check->pin == TABLE_CHECK_PINNED_ELSEWHERE)
		return TABLE_CHECK_OTHER_REGION;
	if (table_is_fit(check) && check->time_known)
		return TABLE_CHECK_PASS;
	*until = check->refused_at;
	if (since <= check->refused_at)
		return check->refusal;
	*words = &check->unknown;
	*until = now - patience_us;
	if (since <= *until)
		return TABLE_CHECK_FAIL;
	*until = since + patience_us;
	return TABLE_CHECK_WAIT;
}
