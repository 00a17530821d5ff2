/*-------------------------------------------------------------------------
 *
 * test_table_check.c
 *	  Requests pass when the table is known to be fit, and DynamoDB's time.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "base/backoff.h"
#include "lock/table_check.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define PATIENCE (30 * SECOND)
#define NOW (1000 * SECOND)

/* The longest delay after the first failure. */
#define RANDOM (BACKOFF_BASE_US - 1)

static table_check check;
static const table_check_words *words;
static int64_t until;

static void
start(table_check_pin pin, bool fit, bool time_known)
{
	table_check_init(&check, pin, fit, time_known);
}

static table_check_verdict
judge(int64_t since, int64_t now)
{
	return table_check_judge(&check, since, now, PATIENCE, &words, &until);
}

static bool
describe(dynamo_status status, bool replicated, bool strong, int64_t now)
{
	dynamo_reply reply = {.status = status,.message = "words",
	.table = {.replicated = replicated,.strong = strong,.replicas = "us-west-2"}};

	return table_check_described(&check, &reply, true, RANDOM, now);
}

static void
answer_time(dynamo_status status, int64_t now)
{
	dynamo_reply reply = {.status = status,.message = "words"};

	table_check_time_answered(&check, &reply, RANDOM, now);
}

TEST(passes_when_table_and_time_are_known)
{
	start(TABLE_CHECK_NOT_PINNED, false, false);
	assert_false(table_check_passes(&check, NOW));
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_TABLE);
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_NOTHING);
	assert_int_equal(table_check_next_wake(&check), INT64_MAX);
	assert_int_equal(judge(NOW, NOW), TABLE_CHECK_WAIT);
	assert_int_equal(until, NOW + PATIENCE);
	assert_false(describe(DYNAMO_OK, false, false, NOW + 1));
	assert_false(table_check_passes(&check, NOW + 1));
	table_check_time_known(&check);
	assert_true(table_check_passes(&check, NOW + 1));
	assert_int_equal(judge(NOW, NOW + 1), TABLE_CHECK_PASS);
}

TEST(a_table_is_looked_at_every_hour)
{
	start(TABLE_CHECK_NOT_PINNED, true, true);
	assert_true(table_check_passes(&check, NOW));
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_TABLE);
	describe(DYNAMO_OK, false, false, NOW);
	assert_int_equal(table_check_next_wake(&check), NOW + HOUR);
	assert_int_equal(table_check_ask(&check, NOW + HOUR - 1), TABLE_CHECK_ASK_NOTHING);
	assert_int_equal(table_check_ask(&check, NOW + HOUR), TABLE_CHECK_ASK_TABLE);
}

TEST(a_pinned_region_needs_no_description)
{
	start(TABLE_CHECK_PINNED_HERE, false, true);
	assert_true(table_check_passes(&check, NOW));
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_NOTHING);
	assert_int_equal(table_check_next_wake(&check), INT64_MAX);
	assert_false(describe(DYNAMO_OK, true, false, NOW));
	assert_true(table_check_passes(&check, NOW));
}

TEST(another_pinned_region_refuses_all)
{
	start(TABLE_CHECK_PINNED_ELSEWHERE, true, true);
	assert_false(table_check_passes(&check, NOW));
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_NOTHING);
	assert_int_equal(judge(NOW, NOW), TABLE_CHECK_OTHER_REGION);
	assert_int_equal(until, NOW);
}

TEST(an_eventual_global_table_refuses_those_that_wait)
{
	start(TABLE_CHECK_NOT_PINNED, true, true);
	assert_true(describe(DYNAMO_OK, true, false, NOW));
	assert_false(describe(DYNAMO_OK, true, false, NOW));	/* said once */
	assert_int_equal(judge(NOW, NOW), TABLE_CHECK_GLOBAL_TABLE);
	assert_int_equal(until, NOW);
	assert_string_equal(words->message, "us-west-2");

	/* The next request asks again. */
	assert_false(table_check_passes(&check, NOW + 1));
	assert_int_equal(judge(NOW + 1, NOW + 1), TABLE_CHECK_WAIT);
	assert_int_equal(table_check_ask(&check, NOW + 1), TABLE_CHECK_ASK_TABLE);
	assert_false(describe(DYNAMO_OK, true, true, NOW + 2));
	assert_int_equal(judge(NOW + 1, NOW + 2), TABLE_CHECK_PASS);
	assert_true(describe(DYNAMO_OK, true, false, NOW + 3));
}

TEST(a_definite_no_fails_those_that_wait)
{
	start(TABLE_CHECK_NOT_PINNED, false, true);
	assert_false(table_check_passes(&check, NOW));
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_TABLE);
	describe(DYNAMO_CREDENTIALS, false, false, NOW + 5);
	assert_int_equal(judge(NOW, NOW + 5), TABLE_CHECK_FAIL);
	assert_int_equal(until, NOW + 5);
	assert_int_equal(words->status, DYNAMO_CREDENTIALS);
	assert_string_equal(words->message, "words");
	assert_int_equal(judge(NOW + 6, NOW + 6), TABLE_CHECK_WAIT);
	assert_int_equal(table_check_next_wake(&check), NOW + 5 + HOUR);
}

TEST(an_outage_changes_nothing_that_was_known)
{
	start(TABLE_CHECK_NOT_PINNED, true, true);
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_TABLE);
	assert_false(describe(DYNAMO_UNREACHABLE, false, false, NOW));	/* says nothing */
	assert_true(table_check_passes(&check, NOW));
	assert_int_equal(table_check_next_wake(&check), NOW + 15 * SECOND);
	for (dynamo_status status = DYNAMO_OK + 1; status <= DYNAMO_WRONG_SERVICE; status++)
	{
		if (status == DYNAMO_ACCESS_DENIED || status == DYNAMO_TABLE_MISSING)
			continue;
		describe(status, false, false, NOW);
		assert_true(table_check_passes(&check, NOW));
	}
	describe(DYNAMO_ACCESS_DENIED, false, false, NOW);
	assert_false(table_check_passes(&check, NOW));
}

TEST(a_missing_table_closes_the_gate)
{
	start(TABLE_CHECK_NOT_PINNED, true, true);
	table_check_missing(&check);
	assert_false(table_check_passes(&check, NOW));
	start(TABLE_CHECK_NOT_PINNED, true, true);
	describe(DYNAMO_TABLE_MISSING, false, false, NOW);
	assert_false(table_check_passes(&check, NOW));
	start(TABLE_CHECK_PINNED_HERE, true, true);
	table_check_missing(&check);
	assert_true(table_check_passes(&check, NOW));
}

TEST(without_an_answer_patience_ends)
{
	start(TABLE_CHECK_NOT_PINNED, false, true);
	assert_false(table_check_passes(&check, NOW));
	assert_int_equal(judge(NOW, NOW + PATIENCE - 1), TABLE_CHECK_WAIT);
	assert_int_equal(judge(NOW, NOW + PATIENCE), TABLE_CHECK_FAIL);
	assert_int_equal(until, NOW);
	assert_int_equal(words->status, DYNAMO_UNKNOWN);
	assert_string_equal(words->message, "no reply to DescribeTable yet");
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_TABLE);
	describe(DYNAMO_THROTTLED, false, false, NOW);
	assert_int_equal(judge(NOW, NOW + PATIENCE), TABLE_CHECK_FAIL);
	assert_int_equal(words->status, DYNAMO_THROTTLED);
	assert_string_equal(words->message, "words");

	/* A reply that nobody can read is none. */
	describe(DYNAMO_MALFORMED, false, false, NOW + 1);
	assert_int_equal(judge(NOW, NOW + 1), TABLE_CHECK_WAIT);
	assert_int_equal(judge(NOW, NOW + PATIENCE), TABLE_CHECK_FAIL);
	assert_int_equal(words->status, DYNAMO_MALFORMED);
}

/* Not that the network is to blame. */
TEST(a_time_in_doubt_is_told_as_such)
{
	dynamo_reply reply = {.status = DYNAMO_OK,.message = ""};

	start(TABLE_CHECK_PINNED_HERE, false, false);
	assert_false(table_check_passes(&check, NOW));
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_TIME);
	table_check_time_answered(&check, &reply, 0, NOW);
	assert_int_equal(judge(NOW, NOW + PATIENCE), TABLE_CHECK_FAIL);
	assert_non_null(strstr(words->message, "is in doubt"));
	assert_non_null(strstr(dynamo_error_words(words->status, words->message)->hint, "clock"));
}

TEST(failures_are_repeated_with_backoff_while_a_request_waits)
{
	dynamo_reply reply = {.status = DYNAMO_UNKNOWN,.message = "words"};

	start(TABLE_CHECK_NOT_PINNED, false, true);
	assert_false(table_check_passes(&check, NOW));
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_TABLE);
	describe(DYNAMO_UNKNOWN, false, false, NOW);
	assert_int_equal(table_check_next_wake(&check), NOW + RANDOM);
	assert_int_equal(table_check_ask(&check, NOW + RANDOM), TABLE_CHECK_ASK_TABLE);
	table_check_idle(&check);
	describe(DYNAMO_UNKNOWN, false, false, NOW);
	assert_int_equal(table_check_next_wake(&check), NOW + 15 * SECOND);

	/* A new request does not wait for that, and has short delays again. */
	assert_false(table_check_passes(&check, NOW + 1));
	assert_int_equal(table_check_ask(&check, NOW + 1), TABLE_CHECK_ASK_TABLE);
	table_check_described(&check, &reply, true, 2 * BACKOFF_BASE_US - 1, NOW + 1);
	assert_int_equal(table_check_next_wake(&check), NOW + 1 + RANDOM);
}

TEST(the_backoff_doubles)
{
	int64_t		bound = BACKOFF_BASE_US;
	dynamo_reply reply = {.status = DYNAMO_UNKNOWN,.message = "words"};

	start(TABLE_CHECK_NOT_PINNED, false, true);
	assert_false(table_check_passes(&check, NOW));
	for (int i = 0; i < 10; i++)
	{
		assert_int_equal(table_check_ask(&check, table_check_next_wake(&check) > NOW ? table_check_next_wake(&check) : NOW),
						 TABLE_CHECK_ASK_TABLE);
		/* The longest delay that is possible. */
		table_check_described(&check, &reply, true, (uint64_t) bound - 1, NOW);
		assert_int_equal(table_check_next_wake(&check), NOW + bound - 1);
		bound = bound * 2 < BACKOFF_CAP_US ? bound * 2 : BACKOFF_CAP_US;
	}
}

TEST(the_time_is_asked_when_no_description_brings_it)
{
	start(TABLE_CHECK_NOT_PINNED, false, false);
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_TABLE);
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_NOTHING);
	describe(DYNAMO_OK, false, false, NOW);
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_TIME);
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_NOTHING);

	/* Its Date was not believed yet. */
	answer_time(DYNAMO_OK, NOW);
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_NOTHING);
	assert_int_equal(table_check_next_wake(&check), NOW + SECOND / 10);
	assert_int_equal(table_check_ask(&check, NOW + SECOND / 10), TABLE_CHECK_ASK_TIME);
	table_check_time_known(&check);
	answer_time(DYNAMO_OK, NOW);
	assert_true(table_check_passes(&check, NOW));
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_NOTHING);
}

TEST(a_refusal_to_tell_the_time_fails_those_that_wait)
{
	start(TABLE_CHECK_PINNED_HERE, false, false);
	assert_false(table_check_passes(&check, NOW));
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_TIME);
	answer_time(DYNAMO_UNREACHABLE, NOW);
	assert_int_equal(judge(NOW, NOW), TABLE_CHECK_WAIT);
	assert_int_equal(table_check_next_wake(&check), NOW + RANDOM);
	assert_int_equal(table_check_ask(&check, NOW + RANDOM), TABLE_CHECK_ASK_TIME);
	answer_time(DYNAMO_ACCESS_DENIED, NOW + RANDOM);
	assert_int_equal(judge(NOW, NOW + RANDOM), TABLE_CHECK_FAIL);
	assert_int_equal(words->status, DYNAMO_ACCESS_DENIED);
	assert_int_equal(table_check_next_wake(&check), NOW + RANDOM + 15 * SECOND);
	assert_false(table_check_passes(&check, NOW + SECOND));
	assert_int_equal(table_check_ask(&check, NOW + SECOND), TABLE_CHECK_ASK_TIME);
}

TEST(a_sessions_description_counts_unless_it_failed)
{
	dynamo_reply reply = {.status = DYNAMO_ACCESS_DENIED};

	start(TABLE_CHECK_NOT_PINNED, false, true);
	assert_int_equal(table_check_ask(&check, NOW), TABLE_CHECK_ASK_TABLE);
	table_check_described(&check, &reply, false, RANDOM, NOW);
	assert_int_equal(judge(NOW, NOW), TABLE_CHECK_WAIT);
	reply.status = DYNAMO_OK;
	table_check_described(&check, &reply, false, RANDOM, NOW);
	assert_int_equal(judge(NOW, NOW), TABLE_CHECK_PASS);

	/* The check's own reply is still to come. */
	assert_int_equal(table_check_ask(&check, NOW + HOUR), TABLE_CHECK_ASK_NOTHING);
}
