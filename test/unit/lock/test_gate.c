/*-------------------------------------------------------------------------
 *
 * test_gate.c
 *	  Requests pass when the table is known to be fit, and DynamoDB's time.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "lock/backoff.h"
#include "lock/gate.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define PATIENCE (30 * SECOND)
#define NOW (1000 * SECOND)

/* The longest delay after the first failure. */
#define RANDOM (BACKOFF_BASE_US - 1)

static gate g;
static const gate_words *words;
static int64_t until;

static void
start(gate_pin pin, bool fit, bool time_known)
{
	gate_init(&g, pin, fit, time_known);
}

static gate_verdict
judge(int64_t since, int64_t now)
{
	return gate_judge(&g, since, now, PATIENCE, &words, &until);
}

static bool
describe(dynamo_status status, bool replicated, bool strong, int64_t now)
{
	dynamo_reply reply = {.status = status,.message = "words",
	.table = {.replicated = replicated,.strong = strong,.replicas = "us-west-2"}};

	return gate_described(&g, &reply, true, RANDOM, now);
}

static void
answer_time(dynamo_status status, int64_t now)
{
	dynamo_reply reply = {.status = status,.message = "words"};

	gate_time_answered(&g, &reply, RANDOM, now);
}

TEST(passes_when_table_and_time_are_known)
{
	start(GATE_NOT_PINNED, false, false);
	assert_false(gate_passes(&g, NOW));
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_TABLE);
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_NOTHING);
	assert_int_equal(gate_next_wake(&g), INT64_MAX);
	assert_int_equal(judge(NOW, NOW), GATE_WAIT);
	assert_int_equal(until, NOW + PATIENCE);
	assert_false(describe(DYNAMO_OK, false, false, NOW + 1));
	assert_false(gate_passes(&g, NOW + 1));
	gate_time_known(&g);
	assert_true(gate_passes(&g, NOW + 1));
	assert_int_equal(judge(NOW, NOW + 1), GATE_PASS);
}

TEST(a_table_is_looked_at_every_hour)
{
	start(GATE_NOT_PINNED, true, true);
	assert_true(gate_passes(&g, NOW));
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_TABLE);
	describe(DYNAMO_OK, false, false, NOW);
	assert_int_equal(gate_next_wake(&g), NOW + HOUR);
	assert_int_equal(gate_ask(&g, NOW + HOUR - 1), GATE_ASK_NOTHING);
	assert_int_equal(gate_ask(&g, NOW + HOUR), GATE_ASK_TABLE);
}

TEST(a_pinned_region_needs_no_description)
{
	start(GATE_PINNED_HERE, false, true);
	assert_true(gate_passes(&g, NOW));
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_NOTHING);
	assert_int_equal(gate_next_wake(&g), INT64_MAX);
	assert_false(describe(DYNAMO_OK, true, false, NOW));
	assert_true(gate_passes(&g, NOW));
}

TEST(another_pinned_region_refuses_all)
{
	start(GATE_PINNED_ELSEWHERE, true, true);
	assert_false(gate_passes(&g, NOW));
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_NOTHING);
	assert_int_equal(judge(NOW, NOW), GATE_OTHER_REGION);
	assert_int_equal(until, NOW);
}

TEST(an_eventual_global_table_refuses_those_that_wait)
{
	start(GATE_NOT_PINNED, true, true);
	assert_true(describe(DYNAMO_OK, true, false, NOW));
	assert_false(describe(DYNAMO_OK, true, false, NOW));	/* said once */
	assert_int_equal(judge(NOW, NOW), GATE_GLOBAL_TABLE);
	assert_int_equal(until, NOW);
	assert_string_equal(words->message, "us-west-2");

	/* The next request asks again. */
	assert_false(gate_passes(&g, NOW + 1));
	assert_int_equal(judge(NOW + 1, NOW + 1), GATE_WAIT);
	assert_int_equal(gate_ask(&g, NOW + 1), GATE_ASK_TABLE);
	assert_false(describe(DYNAMO_OK, true, true, NOW + 2));
	assert_int_equal(judge(NOW + 1, NOW + 2), GATE_PASS);
	assert_true(describe(DYNAMO_OK, true, false, NOW + 3));
}

TEST(a_definite_no_fails_those_that_wait)
{
	start(GATE_NOT_PINNED, false, true);
	assert_false(gate_passes(&g, NOW));
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_TABLE);
	describe(DYNAMO_CREDENTIALS, false, false, NOW + 5);
	assert_int_equal(judge(NOW, NOW + 5), GATE_FAIL);
	assert_int_equal(until, NOW + 5);
	assert_int_equal(words->status, DYNAMO_CREDENTIALS);
	assert_string_equal(words->message, "words");
	assert_int_equal(judge(NOW + 6, NOW + 6), GATE_WAIT);
	assert_int_equal(gate_next_wake(&g), NOW + 5 + HOUR);
}

TEST(an_outage_changes_nothing_that_was_known)
{
	start(GATE_NOT_PINNED, true, true);
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_TABLE);
	describe(DYNAMO_UNREACHABLE, false, false, NOW);
	assert_true(gate_passes(&g, NOW));
	assert_int_equal(gate_next_wake(&g), NOW + 15 * SECOND);
	describe(DYNAMO_CREDENTIALS, false, false, NOW);
	assert_true(gate_passes(&g, NOW));
	describe(DYNAMO_ACCESS_DENIED, false, false, NOW);
	assert_false(gate_passes(&g, NOW));
}

TEST(a_missing_table_closes_the_gate)
{
	start(GATE_NOT_PINNED, true, true);
	gate_missing(&g);
	assert_false(gate_passes(&g, NOW));
	start(GATE_NOT_PINNED, true, true);
	describe(DYNAMO_TABLE_MISSING, false, false, NOW);
	assert_false(gate_passes(&g, NOW));
	start(GATE_PINNED_HERE, true, true);
	gate_missing(&g);
	assert_true(gate_passes(&g, NOW));
}

TEST(without_an_answer_patience_ends)
{
	start(GATE_NOT_PINNED, false, true);
	assert_false(gate_passes(&g, NOW));
	assert_int_equal(judge(NOW, NOW + PATIENCE - 1), GATE_WAIT);
	assert_int_equal(judge(NOW, NOW + PATIENCE), GATE_FAIL);
	assert_int_equal(until, NOW);
	assert_int_equal(words->status, DYNAMO_UNKNOWN);
	assert_string_equal(words->message, "no reply to DescribeTable yet");
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_TABLE);
	describe(DYNAMO_THROTTLED, false, false, NOW);
	assert_int_equal(judge(NOW, NOW + PATIENCE), GATE_FAIL);
	assert_int_equal(words->status, DYNAMO_THROTTLED);
	assert_string_equal(words->message, "words");
}

TEST(failures_are_repeated_with_backoff_while_a_request_waits)
{
	start(GATE_NOT_PINNED, false, true);
	assert_false(gate_passes(&g, NOW));
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_TABLE);
	describe(DYNAMO_UNKNOWN, false, false, NOW);
	assert_int_equal(gate_next_wake(&g), NOW + RANDOM);
	assert_int_equal(gate_ask(&g, NOW + RANDOM), GATE_ASK_TABLE);
	gate_idle(&g);
	describe(DYNAMO_UNKNOWN, false, false, NOW);
	assert_int_equal(gate_next_wake(&g), NOW + 15 * SECOND);

	/* A new request does not wait for that. */
	assert_false(gate_passes(&g, NOW + 1));
	assert_int_equal(gate_ask(&g, NOW + 1), GATE_ASK_TABLE);
}

TEST(the_backoff_doubles)
{
	int64_t		bound = BACKOFF_BASE_US;
	dynamo_reply reply = {.status = DYNAMO_UNKNOWN,.message = "words"};

	start(GATE_NOT_PINNED, false, true);
	assert_false(gate_passes(&g, NOW));
	for (int i = 0; i < 10; i++)
	{
		assert_int_equal(gate_ask(&g, gate_next_wake(&g) > NOW ? gate_next_wake(&g) : NOW),
						 GATE_ASK_TABLE);
		/* The longest delay that is possible. */
		gate_described(&g, &reply, true, (uint64_t) bound - 1, NOW);
		assert_int_equal(gate_next_wake(&g), NOW + bound - 1);
		bound = bound * 2 < BACKOFF_CAP_US ? bound * 2 : BACKOFF_CAP_US;
	}
}

TEST(the_time_is_asked_when_no_description_brings_it)
{
	start(GATE_NOT_PINNED, false, false);
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_TABLE);
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_NOTHING);
	describe(DYNAMO_OK, false, false, NOW);
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_TIME);
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_NOTHING);

	/* Its Date was not believed yet. */
	answer_time(DYNAMO_OK, NOW);
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_NOTHING);
	assert_int_equal(gate_next_wake(&g), NOW + SECOND / 10);
	assert_int_equal(gate_ask(&g, NOW + SECOND / 10), GATE_ASK_TIME);
	gate_time_known(&g);
	answer_time(DYNAMO_OK, NOW);
	assert_true(gate_passes(&g, NOW));
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_NOTHING);
}

TEST(a_refusal_to_tell_the_time_fails_those_that_wait)
{
	start(GATE_PINNED_HERE, false, false);
	assert_false(gate_passes(&g, NOW));
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_TIME);
	answer_time(DYNAMO_UNREACHABLE, NOW);
	assert_int_equal(judge(NOW, NOW), GATE_WAIT);
	assert_int_equal(gate_next_wake(&g), NOW + RANDOM);
	assert_int_equal(gate_ask(&g, NOW + RANDOM), GATE_ASK_TIME);
	answer_time(DYNAMO_ACCESS_DENIED, NOW + RANDOM);
	assert_int_equal(judge(NOW, NOW + RANDOM), GATE_FAIL);
	assert_int_equal(words->status, DYNAMO_ACCESS_DENIED);
	assert_false(gate_passes(&g, NOW + SECOND));
	assert_int_equal(gate_ask(&g, NOW + SECOND), GATE_ASK_TIME);
}

TEST(a_sessions_description_counts_unless_it_failed)
{
	dynamo_reply reply = {.status = DYNAMO_ACCESS_DENIED};

	start(GATE_NOT_PINNED, false, true);
	assert_int_equal(gate_ask(&g, NOW), GATE_ASK_TABLE);
	gate_described(&g, &reply, false, RANDOM, NOW);
	assert_int_equal(judge(NOW, NOW), GATE_WAIT);
	reply.status = DYNAMO_OK;
	gate_described(&g, &reply, false, RANDOM, NOW);
	assert_int_equal(judge(NOW, NOW), GATE_PASS);

	/* The gate's own reply is still to come. */
	assert_int_equal(gate_ask(&g, NOW + HOUR), GATE_ASK_NOTHING);
}
