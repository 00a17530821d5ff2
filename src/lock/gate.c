/*-------------------------------------------------------------------------
 *
 * gate.c
 *	  May locks be acquired?  See gate.h.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/gate.h"

#include <stdio.h>

#include "lock/backoff.h"

#define SECOND_US	INT64_C(1000000)
#define RECHECK_US	(3600 * SECOND_US)

/* After a failure, while no request waits. */
#define RETRY_US	(15 * SECOND_US)

/* Until a Date is believed: perhaps for as long as aws/epoch_clock.c doubts it. */
#define TIME_AGAIN_US	(SECOND_US / 10)

static void
keep_words(gate_words *words, dynamo_status status, const char *message)
{
	words->status = status;
	snprintf(words->message, sizeof(words->message), "%s", message);
}

void
gate_init(gate *g, gate_pin pin, bool fit, bool time_known)
{
	*g = (gate) {.pin = pin,.fit = fit,.time_known = time_known,.refused_at = INT64_MIN};
	keep_words(&g->unknown, DYNAMO_UNKNOWN, "no reply to DescribeTable yet");
}

static bool
table_is_fit(const gate *g)
{
	return g->pin == GATE_NOT_PINNED ? g->fit : g->pin == GATE_PINNED_HERE;
}

static void
ask_at_once(gate_call *call, int64_t now)
{
	if (call->due <= now)
		return;
	call->due = now;
	call->failures = 0;
}

bool
gate_passes(gate *g, int64_t now)
{
	if (table_is_fit(g) && g->time_known)
		return true;
	g->waited_for = true;
	if (!table_is_fit(g))
		ask_at_once(&g->table, now);
	if (!g->time_known)
		ask_at_once(&g->time, now);
	return false;
}

void
gate_idle(gate *g)
{
	g->waited_for = false;
}

static int64_t
table_due(const gate *g)
{
	return g->pin != GATE_NOT_PINNED || g->table.in_flight ? INT64_MAX : g->table.due;
}

/* A reply to DescribeTable brings the time as well. */
static int64_t
time_due(const gate *g)
{
	return g->time_known || g->time.in_flight || g->table.in_flight ? INT64_MAX :
		g->time.due;
}

gate_question
gate_ask(gate *g, int64_t now)
{
	if (table_due(g) <= now)
	{
		g->table.in_flight = true;
		return GATE_ASK_TABLE;
	}
	if (time_due(g) <= now)
	{
		g->time.in_flight = true;
		return GATE_ASK_TIME;
	}
	return GATE_ASK_NOTHING;
}

int64_t
gate_next_wake(const gate *g)
{
	return table_due(g) < time_due(g) ? table_due(g) : time_due(g);
}

static void
refuse(gate *g, gate_verdict refusal, dynamo_status status, const char *message,
	   int64_t now)
{
	g->refusal = refusal;
	g->refused_at = now;
	keep_words(&g->refused, status, message);
}

/* DynamoDB did not answer, or not readably, or refused to. */
static void
failed(gate *g, gate_call *call, const dynamo_reply *reply, int64_t pause,
	   uint64_t random, int64_t now)
{
	if (dynamo_is_transient(reply->status) || reply->status == DYNAMO_MALFORMED)
	{
		keep_words(&g->unknown, reply->status, reply->message);
		pause = g->waited_for ? backoff_us(++call->failures, BACKOFF_CAP_US, random) :
			RETRY_US;
	}
	else
	{
		call->failures = 0;
		refuse(g, GATE_FAIL, reply->status, reply->message, now);
	}
	call->due = now + pause;
}

static bool
judge_table(gate *g, const dynamo_table_info *table, int64_t now)
{
	bool		was_eventual = g->eventual;

	g->table.failures = 0;
	g->table.due = now + RECHECK_US;
	g->eventual = table->replicated && !table->strong;
	g->fit = !g->eventual;
	if (g->eventual)
		refuse(g, GATE_GLOBAL_TABLE, DYNAMO_OK, table->replicas, now);
	return g->eventual && !was_eventual;
}

bool
gate_described(gate *g, const dynamo_reply *reply, bool own, uint64_t random,
			   int64_t now)
{
	if (own)
		g->table.in_flight = false;
	if (g->pin != GATE_NOT_PINNED || (!own && reply->status != DYNAMO_OK))
		return false;
	if (reply->status == DYNAMO_OK)
		return judge_table(g, &reply->table, now);
	if (reply->status == DYNAMO_ACCESS_DENIED || reply->status == DYNAMO_TABLE_MISSING)
		g->fit = false;
	failed(g, &g->table, reply, RECHECK_US, random, now);
	return false;
}

void
gate_time_answered(gate *g, const dynamo_reply *reply, uint64_t random, int64_t now)
{
	g->time.in_flight = false;
	if (g->time_known)
		return;
	if (reply->status == DYNAMO_OK)
		g->time.due = now + TIME_AGAIN_US;	/* its Date is not believed yet: more are needed */
	else
		failed(g, &g->time, reply, RETRY_US, random, now);
}

void
gate_time_known(gate *g)
{
	g->time_known = true;
}

void
gate_missing(gate *g)
{
	g->fit = false;
}

gate_verdict
gate_judge(const gate *g, int64_t since, int64_t now, int64_t patience_us,
		   const gate_words **words, int64_t *until)
{
	*words = &g->refused;
	*until = now;
	if (g->pin == GATE_PINNED_ELSEWHERE)
		return GATE_OTHER_REGION;
	if (table_is_fit(g) && g->time_known)
		return GATE_PASS;
	*until = g->refused_at;
	if (since <= g->refused_at)
		return g->refusal;
	*words = &g->unknown;
	*until = now - patience_us;
	if (since <= *until)
		return GATE_FAIL;
	*until = since + patience_us;
	return GATE_WAIT;
}
