/*-------------------------------------------------------------------------
 *
 * test_trouble_log.c
 *	  Which failures the server's log shows.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "lock/trouble_log.h"

#define SECOND	INT64_C(1000000)
#define MINUTE	TROUBLE_LOG_PAUSE_US

static const char one_kind[TROUBLE_LOG_KINDS + 10];
static const void *const another = &one_kind[1];

TEST(an_outage_is_told_once_and_its_end_at_once)
{
	trouble_log log = {0};
	int			left_out = -1;

	assert_false(trouble_log_succeeded(&log, 1 * SECOND));
	assert_true(trouble_log_failed(&log, one_kind, 2 * SECOND, &left_out));
	assert_int_equal(left_out, 0);
	assert_false(trouble_log_failed(&log, one_kind, 3 * SECOND, &left_out));
	assert_true(trouble_log_succeeded(&log, 4 * SECOND));
	assert_false(trouble_log_succeeded(&log, 5 * SECOND));
}

TEST(another_kind_is_told_at_once)
{
	trouble_log log = {0};
	int			left_out;

	assert_true(trouble_log_failed(&log, one_kind, SECOND, &left_out));
	assert_true(trouble_log_failed(&log, another, SECOND + 1, &left_out));
	assert_false(trouble_log_failed(&log, one_kind, SECOND + 2, &left_out));
	assert_false(trouble_log_failed(&log, another, SECOND + 3, &left_out));
}

TEST(what_lasts_is_told_each_minute_with_what_was_left_out)
{
	trouble_log log = {0};
	int			left_out;

	assert_true(trouble_log_failed(&log, one_kind, SECOND, &left_out));
	for (int i = 1; i < 60; i++)
		assert_false(trouble_log_failed(&log, one_kind, (1 + i) * SECOND, &left_out));
	assert_true(trouble_log_failed(&log, one_kind, SECOND + MINUTE, &left_out));
	assert_int_equal(left_out, 59);
	assert_true(trouble_log_failed(&log, one_kind, SECOND + 2 * MINUTE, &left_out));
	assert_int_equal(left_out, 0);
}

/* The log must not go on saying that all is well. */
TEST(trouble_that_comes_back_soon_is_told_once_more_and_then_lasts)
{
	trouble_log log = {0};
	int			left_out;
	int64_t		now = SECOND;

	assert_true(trouble_log_failed(&log, one_kind, now, &left_out));
	assert_true(trouble_log_succeeded(&log, now += SECOND));
	assert_true(trouble_log_failed(&log, one_kind, now += SECOND, &left_out));
	for (int i = 0; i < 20; i++)
	{
		assert_false(trouble_log_succeeded(&log, now += SECOND));
		assert_false(trouble_log_failed(&log, one_kind, now += SECOND, &left_out));
	}
	assert_false(trouble_log_succeeded(&log, now + MINUTE - 1));
	assert_true(trouble_log_succeeded(&log, now + MINUTE));
}

TEST(trouble_long_after_the_last_one_ends_at_once)
{
	trouble_log log = {0};
	int			left_out;

	assert_true(trouble_log_failed(&log, one_kind, SECOND, &left_out));
	assert_true(trouble_log_succeeded(&log, 2 * SECOND));
	assert_true(trouble_log_failed(&log, one_kind, 2 * SECOND + MINUTE, &left_out));
	assert_true(trouble_log_succeeded(&log, 3 * SECOND + MINUTE));
}

TEST(an_hour_of_both_fills_no_log)
{
	for (int kinds = 1; kinds < (int) COUNT_OF(one_kind); kinds++)
	{
		trouble_log log = {0};
		int			told = 0;
		int			left_out;

		for (int64_t i = 0; i < 36000; i++)
		{
			told += trouble_log_failed(&log, &one_kind[i % kinds], SECOND + i * SECOND / 10, &left_out);
			told += trouble_log_succeeded(&log, SECOND + i * SECOND / 10 + 1);
		}
		assert_in_range(told, 60, 2 + 61 * (kinds < TROUBLE_LOG_KINDS ? kinds : TROUBLE_LOG_KINDS));
	}
}
