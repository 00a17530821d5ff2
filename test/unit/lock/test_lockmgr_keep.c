/*-------------------------------------------------------------------------
 *
 * test_lockmgr_keep.c
 *	  A lock is kept from others for a minimum, even if it is released.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#define MINUTE_MS	60000

static int64_t
epoch_ms(const harness *h)
{
	return (h->now + h->epoch_offset) / 1000;
}

/* Acquires lock "a" for session 0, which keeps it for a minute. */
static harness *
start_kept(void)
{
	harness    *h = harness_start();

	h->ask.at_least_ms = MINUTE_MS;
	get(h, 0, "a");
	h->ask.at_least_ms = 0;
	return h;
}

/* Nobody has the lock, but nobody gets it. */
static void
assert_kept(harness *h)
{
	assert_true(is_free(h, "a"));
	assert_true(item_of(h, "a")->kept_until_ms > epoch_ms(h));
	try_acquire(h, 5, "a");
	settle(h);
	assert_result(h, 5, LOCKMGR_BUSY);
}

static void
assert_not_kept(harness *h)
{
	assert_int_equal(item_of(h, "a")->kept_until_ms, 0);
	try_acquire(h, 5, "a");
	settle(h);
	assert_result(h, 5, LOCKMGR_GRANTED);
	let_go(h, 5, "a");
}

LOCKMGR_TEST(the_minimum_counts_from_the_first_sending)
{
	int64_t		asked = epoch_ms(h);

	h->ask.at_least_ms = MINUTE_MS;
	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	run(h, 5 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_in_range(item_of(h, "a")->kept_until_ms, asked + MINUTE_MS, asked + MINUTE_MS + 1);
}

LOCKMGR_TEST_WITH(a_released_lock_is_kept_until_its_minimum_is_over, start_kept())
{
	int64_t		kept = item_of(h, "a")->kept_until_ms;
	int			calls;

	release(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_kept(h);
	acquire(h, 1, "a");
	calls = h->call_count;
	run(h, 50 * SECOND);
	assert_waits(h, 1);
	assert_true(h->call_count - calls < 10);
	while (result_of(h, 1) < 0)
		run(h, MS);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_in_range(epoch_ms(h), kept, kept + 20);
	assert_int_equal(item_of(h, "a")->kept_until_ms, 0);
}

LOCKMGR_TEST_WITH(a_waiter_is_told_until_when_the_lock_is_kept, start_kept())
{
	int64_t		kept = item_of(h, "a")->kept_until_ms;

	let_go(h, 0, "a");
	settle(h);
	acquire(h, 1, "a");
	settle(h);
	assert_true(h->watches[h->asked[1].watch].held);
	assert_int_equal(h->watches[h->asked[1].watch].kept_until_ms, kept);
}

/* Another cluster, or an operator, may end the minimum. */
LOCKMGR_TEST_WITH(a_waiter_looks_now_and_then, start_kept())
{
	let_go(h, 0, "a");
	settle(h);
	acquire(h, 1, "a");
	run(h, SECOND);
	item_of(h, "a")->kept_until_ms = 0;
	run(h, 10 * SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST_WITH(a_kept_lock_does_not_pass_on, start_kept())
{
	acquire(h, 1, "a");
	let_go(h, 0, "a");
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
	settle(h);
	assert_int_equal(sent(h, DYNAMO_HAND_OVER), 0);
	assert_waits(h, 1);
	run(h, (MINUTE_MS + 100) * MS);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST_WITH(after_its_minimum_the_lock_passes_on, start_kept())
{
	run(h, (MINUTE_MS + 100) * MS);
	acquire(h, 1, "a");
	let_go(h, 0, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	assert_int_equal(item_of(h, "a")->kept_until_ms, 0);
}

/* Reserved tokens would do for a session that does not ask for a minimum. */
LOCKMGR_TEST(a_session_that_asks_for_a_minimum_gets_it_by_a_request)
{
	get(h, 9, "a");
	acquire(h, 0, "a");
	let_go(h, 9, "a");
	settle(h);
	h->ask.at_least_ms = MINUTE_MS;
	acquire(h, 1, "a");
	h->ask.ends_kept = true;	/* of session 0 only */
	release(h, 0, "a");
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	let_go(h, 1, "a");
	settle(h);
	assert_kept(h);
}

LOCKMGR_TEST_WITH(a_session_can_end_the_minimum, start_kept())
{
	h->ask.ends_kept = true;
	release(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_not_kept(h);
}

/* The last one releases the lock, and the manager is another one by then. */
LOCKMGR_TEST_WITH(one_of_several_can_end_the_minimum, start_kept())
{
	ask_named(h, 1, LOCKMGR_JOIN, "a", held_by(h, 0, "a")->token);
	h->ask.ends_kept = true;
	release(h, 1, "a");
	h->ask.ends_kept = false;
	assert_result(h, 1, LOCKMGR_RELEASED);
	kill_manager(h);
	start_manager(h);
	let_go(h, 0, "a");
	settle(h);
	assert_not_kept(h);
}

LOCKMGR_TEST_WITH(others_that_wait_get_a_lock_whose_minimum_a_session_ends, start_kept())
{
	acquire(h, 1, "a");
	h->ask.ends_kept = true;
	release(h, 0, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST_WITH(a_session_that_ends_leaves_the_minimum, start_kept())
{
	end_session(h, 0);
	settle(h);
	assert_kept(h);
}

LOCKMGR_TEST_WITH(a_worker_that_dies_leaves_the_minimum, start_kept())
{
	kill_manager(h);
	start_manager(h);
	let_go(h, 0, "a");
	settle(h);
	assert_kept(h);
}

LOCKMGR_TEST_WITH(a_lost_lease_leaves_the_minimum, start_kept())
{
	h->fate = FATE_LOST_REQUEST;
	run(h, LEASE_US);
	h->fate = FATE_OK;
	assert_false(holds(h, 0, "a"));
	let_go(h, 0, "a");
	run(h, 5 * SECOND);
	assert_kept(h);
}

LOCKMGR_TEST(an_unwanted_acquire_that_was_applied_leaves_no_minimum)
{
	h->ask.at_least_ms = MINUTE_MS;
	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	cancel(h, 0);
	deliver(h, last_call(h));
	settle(h);
	h->ask.at_least_ms = 0;
	assert_not_kept(h);
}

LOCKMGR_TEST(an_abandoned_acquire_leaves_no_minimum)
{
	h->ask.at_least_ms = MINUTE_MS;
	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	settle(h);
	cancel(h, 0);
	run(h, 5 * SECOND);
	h->ask.at_least_ms = 0;
	assert_not_kept(h);
}

/* The grant crossed the cancellation. */
LOCKMGR_TEST_WITH(a_grant_that_was_not_taken_leaves_no_minimum, start_kept())
{
	cancel(h, 0);
	settle(h);
	assert_not_kept(h);
}

/* Who joins has not been granted the lock. */
LOCKMGR_TEST_WITH(a_join_that_was_not_taken_leaves_the_minimum, start_kept())
{
	ask_named(h, 1, LOCKMGR_JOIN, "a", held_by(h, 0, "a")->token);
	let_go(h, 0, "a");
	cancel(h, 1);
	settle(h);
	assert_kept(h);
}

/* Both had been granted before: the lock to who joined, too. */
LOCKMGR_TEST_WITH(a_grant_that_another_has_joined_leaves_the_minimum, start_kept())
{
	ask_named(h, 1, LOCKMGR_JOIN, "a", held_by(h, 0, "a")->token);
	cancel(h, 0);
	let_go(h, 1, "a");
	settle(h);
	assert_kept(h);
}

LOCKMGR_TEST_WITH(a_detached_hold_that_was_not_taken_leaves_the_minimum, start_kept())
{
	detach(h, 0, "a", 30 * SECOND);
	cancel(h, 0);
	settle(h);
	assert_kept(h);
}

/* Nobody was granted it, but the hand-over would be refused. */
LOCKMGR_TEST(an_unwanted_acquire_is_not_handed_over)
{
	h->ask.at_least_ms = MINUTE_MS;
	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	h->ask.at_least_ms = 0;
	acquire(h, 1, "a");
	cancel(h, 0);
	deliver(h, last_call(h));
	run(h, SECOND);
	assert_int_equal(sent(h, DYNAMO_HAND_OVER), 0);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(item_of(h, "a")->kept_until_ms, 0);
}

LOCKMGR_TEST(an_unwanted_hand_over_leaves_no_minimum)
{
	get(h, 9, "a");
	h->ask.at_least_ms = MINUTE_MS;
	acquire(h, 0, "a");
	h->ask.at_least_ms = 0;
	next_fate(h, FATE_HOLD);
	let_go(h, 9, "a");
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	cancel(h, 0);
	deliver(h, last_call(h));
	settle(h);
	assert_true(is_free(h, "a"));
	assert_not_kept(h);
}

LOCKMGR_TEST(a_dead_holders_minimum_is_waited_for)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	item_of(h, "a")->kept_until_ms = epoch_ms(h) + MINUTE_MS;
	acquire(h, 0, "a");
	run(h, 2 * LEASE_US);
	assert_waits(h, 0);
	run(h, (MINUTE_MS + 100) * MS - 2 * LEASE_US);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(sharing_respects_a_minimum)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	foreign_release(h, "a");
	item_of(h, "a")->kept_until_ms = epoch_ms(h) + MINUTE_MS;
	h->ask.mode = MODE_SHARED;
	try_acquire(h, 0, "a");
	acquire(h, 1, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
	assert_waits(h, 1);
	run(h, (MINUTE_MS + 100) * MS);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* The estimate of DynamoDB's clock is too high when the minimum is set, and corrected. */
LOCKMGR_TEST_WITH(a_hand_over_that_is_refused_for_the_minimum_becomes_a_release, start_kept())
{
	int64_t		kept = item_of(h, "a")->kept_until_ms;

	lockmgr_set_clock(h->lm, h->epoch_offset + MINUTE_MS * MS, h->epoch_offset + MINUTE_MS * MS);
	next_fate(h, FATE_HOLD);
	acquire(h, 1, "a");
	run(h, SECOND);
	let_go(h, 0, "a");
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	last_call(h)->writes[0].write.past_ms -= MINUTE_MS;
	lockmgr_set_clock(h->lm, h->epoch_offset, h->epoch_offset);
	deliver(h, last_call(h));
	settle(h);
	assert_waits(h, 1);
	assert_int_equal(item_of(h, "a")->kept_until_ms, kept);
	assert_kept(h);
	run(h, (MINUTE_MS + 100) * MS);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* Its first copy was sent by the wrong clock, and arrives when the second was refused. */
LOCKMGR_TEST_WITH(a_late_copy_of_a_refused_hand_over_is_taken_over_at_once, start_kept())
{
	harness_call *late;

	lockmgr_set_clock(h->lm, h->epoch_offset + MINUTE_MS * MS, h->epoch_offset + MINUTE_MS * MS);
	acquire(h, 1, "a");
	next_fate(h, FATE_LOST_REQUEST);
	let_go(h, 0, "a");
	late = last_call(h);
	assert_int_equal(late->c.op, DYNAMO_HAND_OVER);
	lockmgr_set_clock(h->lm, h->epoch_offset, h->epoch_offset);
	while (last_call(h) == late || last_call(h)->c.op == DYNAMO_HAND_OVER)
		run(h, MS);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
	apply(h, late);
	run(h, 2 * SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* Counted from the latest time that DynamoDB may have, compared with the earliest. */
LOCKMGR_TEST(an_uncertain_clock_makes_the_minimum_longer)
{
	lockmgr_set_clock(h->lm, h->epoch_offset + SECOND, h->epoch_offset - SECOND);
	h->ask.at_least_ms = MINUTE_MS;
	get(h, 0, "a");
	h->ask.at_least_ms = 0;
	let_go(h, 0, "a");
	acquire(h, 1, "a");
	run(h, (MINUTE_MS + 1900) * MS);
	assert_waits(h, 1);
	run(h, 200 * MS);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_minimum_that_may_not_be_over_is_not_over)
{
	lockmgr_set_clock(h->lm, h->epoch_offset + SECOND, h->epoch_offset - SECOND);
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	foreign_release(h, "a");
	item_of(h, "a")->kept_until_ms = (h->now + h->epoch_offset) / MS;
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
}

LOCKMGR_TEST(a_minimum_that_cannot_be_read_is_an_error)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	foreign_release(h, "a");
	item_of(h, "a")->bad_kept = true;
	acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BAD_ITEM);
	assert_string_equal(lockmgr_unusable(h->lm, h->now, item_of(h, "a"), NULL),
						h->asked[0].message);
}

/* No ddblock writes such a time, and nobody can wait for it. */
static void
assert_not_waited_for(harness *h, int64_t kept_until_ms)
{
	const char *why = "the lock item's keptUntil is more than two days ahead";

	item_of(h, "a")->kept_until_ms = kept_until_ms;
	assert_string_equal(lockmgr_unusable(h->lm, h->now, item_of(h, "a"), NULL), why);
	acquire(h, 0, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_BAD_ITEM);
	assert_string_equal(h->asked[0].message, why);
}

LOCKMGR_TEST(a_minimum_that_is_too_far_away_is_refused)
{
	static const int64_t day = DYNAMO_KEPT_MAX_MS;

	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	foreign_release(h, "a");
	assert_not_waited_for(h, INT64_MAX);
	assert_not_waited_for(h, INT64_MAX - 1);
	assert_not_waited_for(h, INT64_C(1000000000000000000));
	assert_not_waited_for(h, epoch_ms(h) * 1000);
	assert_not_waited_for(h, epoch_ms(h) + 3 * day);

	/* Also who waits already. */
	item_of(h, "a")->kept_until_ms = epoch_ms(h) + day;
	assert_null(lockmgr_unusable(h->lm, h->now, item_of(h, "a"), NULL));
	acquire(h, 1, "a");
	run(h, SECOND);
	assert_waits(h, 1);
	item_of(h, "a")->kept_until_ms = INT64_MAX;
	run(h, 11 * SECOND);
	assert_result(h, 1, LOCKMGR_BAD_ITEM);
}
