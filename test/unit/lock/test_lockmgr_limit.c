/*-------------------------------------------------------------------------
 *
 * test_lockmgr_limit.c
 *	  Holds that their sessions want for no longer than a limit.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#define LIMIT_US	(50 * SECOND)

static void
get_limited(harness *h, uint32_t slot, const char *name)
{
	h->ask.at_most_us = LIMIT_US;
	get(h, slot, name);
	h->ask.at_most_us = 0;
}

static harness *
start_limited(void)
{
	harness    *h = harness_start();

	get_limited(h, 0, "a");
	return h;
}

static int64_t
end_of(const harness *h, uint32_t slot)
{
	return h->asked[slot].answer.grant.must_end;
}

/* The session knows its end, and the worker does nothing before. */
static void
run_to_the_end(harness *h, int64_t end)
{
	run_until(h, end - MS);
	assert_int_equal(h->lost_count, 0);
	assert_true(holds(h, 0, "a"));
	run_until(h, end);
}

LOCKMGR_TEST(the_limit_counts_from_the_grant)
{
	get(h, 1, "a");
	h->ask.at_most_us = LIMIT_US;
	acquire(h, 0, "a");
	h->ask.at_most_us = 0;
	run(h, LIMIT_US);
	release(h, 1, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_in_range(end_of(h, 0), h->now + LIMIT_US - SECOND, h->now + LIMIT_US);
	assert_int_equal(held_by(h, 0, "a")->must_end, end_of(h, 0));
	assert_int_equal(h->asked[1].answer.grant.must_end, 0);
	run_to_the_end(h, end_of(h, 0));
	assert_int_equal(h->lost_count, 1);
}

LOCKMGR_TEST_WITH(a_hold_is_lost_at_its_limit_and_released_after_the_margin, start_limited())
{
	int64_t		end = end_of(h, 0);

	run_to_the_end(h, end);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_AT_MOST);
	assert_int_equal(held_by(h, 0, "a")->loss, LOSS_AT_MOST);
	acquire(h, 1, "a");
	run_until(h, end + MARGIN_US - MS);
	assert_true(is_ours(h, "a"));
	assert_waits(h, 1);
	run_until(h, end + MARGIN_US + SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(h->lost_count, 1);
}

LOCKMGR_TEST_WITH(who_acknowledges_the_loss_frees_the_lock_at_once, start_limited())
{
	acquire(h, 1, "a");
	run_to_the_end(h, end_of(h, 0));
	assert_waits(h, 1);
	release(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_LOST);
	assert_result(h, 1, LOCKMGR_GRANTED);
	run(h, 2 * LIMIT_US);
	assert_true(holds(h, 1, "a"));
}

LOCKMGR_TEST_WITH(who_renews_learns_of_the_limit, start_limited())
{
	run_until(h, end_of(h, 0) - MS);
	next_fate(h, FATE_HOLD);
	renew(h, 0, "a", 2 * LEASE_MS);
	run(h, 2 * MS);
	assert_result(h, 0, LOCKMGR_LOST);
	assert_int_equal(h->asked[0].answer.loss, LOSS_AT_MOST);
	deliver(h, last_call(h));
}

LOCKMGR_TEST(who_renews_after_the_limit_learns_of_it)
{
	h->ask.mode = MODE_SHARED;
	get_limited(h, 0, "a");
	get(h, 1, "a");
	run_to_the_end(h, end_of(h, 0));
	renew(h, 0, "a", 2 * LEASE_MS);
	settle(h);
	assert_result(h, 0, LOCKMGR_LOST);
	assert_int_equal(h->asked[0].answer.loss, LOSS_AT_MOST);
	assert_true(holds(h, 1, "a"));
}

LOCKMGR_TEST(who_shares_the_lock_keeps_it)
{
	h->ask.mode = MODE_SHARED;
	get_limited(h, 0, "a");
	get(h, 1, "a");
	run_to_the_end(h, end_of(h, 0));
	assert_int_equal(h->lost_count, 1);
	run(h, 3 * LEASE_US);
	assert_int_equal(h->lost_count, 1);
	assert_true(holds(h, 1, "a"));
	assert_int_equal(held_by(h, 1, "a")->loss, LOSS_NONE);
}

LOCKMGR_TEST(permits_come_back)
{
	h->ask.mode = MODE_SEMAPHORE;
	h->ask.permits = h->ask.limit = 2;
	get_limited(h, 0, "a");
	acquire(h, 1, "a");
	run_to_the_end(h, end_of(h, 0));
	assert_waits(h, 1);
	run(h, MARGIN_US + SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST_WITH(who_joins_has_the_same_limit, start_limited())
{
	int64_t		token = held_by(h, 0, "a")->token;

	run(h, SECOND);
	ask_named(h, 1, LOCKMGR_JOIN, "a", token);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(end_of(h, 1), end_of(h, 0));
	run_to_the_end(h, end_of(h, 0));
	assert_int_equal(h->lost_count, 2);
	ask_named(h, 2, LOCKMGR_JOIN, "a", token);
	assert_result(h, 2, LOCKMGR_NOT_HELD);
	release(h, 0, "a");
	run(h, MARGIN_US + SECOND);
	assert_true(is_free(h, "a"));
}

/* One that is left to the cluster has none any more. */
LOCKMGR_TEST_WITH(who_joins_several_lasts_as_long_as_the_last_of_them, start_limited())
{
	int64_t		end = end_of(h, 0);
	int64_t		token = held_by(h, 0, "a")->token;

	ask_named(h, 1, LOCKMGR_JOIN, "a", token);
	detach(h, 0, "a", LIMIT_US + LEASE_US);
	ask_named(h, 2, LOCKMGR_JOIN, "a", token);
	assert_int_equal(end_of(h, 1), end);
	assert_int_equal(end_of(h, 2), 0);
	let_go(h, 2, "a");
	run_until(h, end);
	assert_int_equal(h->lost_count, 1);
	ask_named(h, 2, LOCKMGR_JOIN, "a", token);
	assert_result(h, 2, LOCKMGR_GRANTED);
	assert_int_equal(end_of(h, 2), 0);
}

LOCKMGR_TEST_WITH(a_detached_hold_has_its_own_limit_only, start_limited())
{
	int64_t		end = end_of(h, 0);

	detach(h, 0, "a", 2 * LIMIT_US);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(end_of(h, 0), 0);
	run_until(h, end + MARGIN_US + SECOND);
	assert_int_equal(h->lost_count, 0);
	assert_true(is_ours(h, "a"));
	run(h, LIMIT_US);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST_WITH(who_joins_what_a_session_has_left_has_no_limit, start_limited())
{
	int64_t		token = held_by(h, 0, "a")->token;

	detach(h, 0, "a", 0);
	end_session(h, 0);
	ask_named(h, 1, LOCKMGR_JOIN, "a", token);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(end_of(h, 1), 0);
}

/* The timer that ends it may come later than the request. */
LOCKMGR_TEST_WITH(what_is_over_cannot_be_detached, start_limited())
{
	run_until(h, end_of(h, 0) - MS);
	h->now += MS;
	detach(h, 0, "a", LIMIT_US);
	assert_result(h, 0, LOCKMGR_NOT_HELD);
	run(h, MS);
	assert_int_equal(h->lost_count, 1);
}

LOCKMGR_TEST_WITH(what_is_lost_cannot_be_detached, start_limited())
{
	run_to_the_end(h, end_of(h, 0));
	detach(h, 0, "a", LIMIT_US);
	assert_result(h, 0, LOCKMGR_LOST);
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST_WITH(a_lease_that_is_lost_before_is_none_of_the_limits, start_limited())
{
	int64_t		end = end_of(h, 0);

	run_until(h, end - LEASE_US / 4);
	delete_item(h, "a");
	run(h, LEASE_US / 2);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(held_by(h, 0, "a")->loss, LOSS_DELETED);
	run_until(h, end + LEASE_US);
	assert_int_equal(h->lost_count, 1);
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_LOST);
}

LOCKMGR_TEST_WITH(a_lease_that_is_lost_after_keeps_the_reason, start_limited())
{
	run_to_the_end(h, end_of(h, 0));
	delete_item(h, "a");
	run(h, LEASE_US);
	assert_int_equal(h->lost_count, 1);
}

/* Before the end, between the end and the release, and after both. */
LOCKMGR_TEST(another_manager_knows_the_limit)
{
	for (int i = 0; i < 3; i++)
	{
		int64_t		end;

		get_limited(h, 0, "a");
		end = end_of(h, 0);
		run_until(h, end - SECOND);
		if (i == 1)
			run_until(h, end);
		kill_manager(h);
		if (i == 2)
			h->now = end + MARGIN_US;
		start_manager(h);
		run_until(h, end + MS);
		assert_int_equal(h->lost_count, i + 1);
		assert_int_equal(h->lost[i].loss, LOSS_AT_MOST);
		run_until(h, end + 2 * MARGIN_US + SECOND);
		assert_true(is_free(h, "a"));
	}
}
