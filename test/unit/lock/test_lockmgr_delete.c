/*-------------------------------------------------------------------------
 *
 * test_lockmgr_delete.c
 *	  The item of a released lock is deleted, if its holder wanted that.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#define DELETE_AFTER_US (10 * SECOND)

static bool
exists(harness *h)
{
	return item_of(h, "a")->exists;
}

/* Session 0 has lock "a", and wants its item to be deleted. */
static harness *
start_with_deletion(void)
{
	harness    *h = harness_start();

	h->ask.deletes_item = true;
	get(h, 0, "a");
	h->ask.deletes_item = false;
	return h;
}

/* Not before all tokens are in the past. */
LOCKMGR_TEST_WITH(the_item_is_deleted_after_a_while, start_with_deletion())
{
	int64_t		token = held_by(h, 0, "a")->token;

	release(h, 0, "a");
	run(h, DELETE_AFTER_US - SECOND);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_true(exists(h));
	run(h, 2 * SECOND);
	assert_false(exists(h));
	assert_int_equal(sent(h, DYNAMO_DELETE), 1);
	get(h, 1, "a");
	assert_true(held_by(h, 1, "a")->token > token);
}

LOCKMGR_TEST(without_that_wish_it_stays)
{
	get(h, 0, "a");
	release(h, 0, "a");
	run(h, 3 * DELETE_AFTER_US);
	assert_true(exists(h));
	assert_int_equal(sent(h, DYNAMO_DELETE), 0);
}

LOCKMGR_TEST_WITH(a_session_s_end_deletes_it_as_well, start_with_deletion())
{
	end_session(h, 0);
	run(h, DELETE_AFTER_US + SECOND);
	assert_false(exists(h));
}

LOCKMGR_TEST_WITH(the_next_holder_decides, start_with_deletion())
{
	acquire(h, 1, "a");
	acquire(h, 2, "a");
	let_go(h, 0, "a");
	settle(h);
	let_go(h, 1, "a");
	settle(h);
	assert_true(holds(h, 2, "a"));
	let_go(h, 2, "a");
	run(h, 2 * DELETE_AFTER_US);
	assert_true(exists(h));

	h->ask.deletes_item = true;
	get(h, 3, "a");
	let_go(h, 3, "a");
	run(h, DELETE_AFTER_US - SECOND);
	h->ask.deletes_item = false;
	get(h, 1, "a");
	run(h, DELETE_AFTER_US);
	let_go(h, 1, "a");
	run(h, 2 * DELETE_AFTER_US);
	assert_true(exists(h));
	assert_int_equal(sent(h, DYNAMO_DELETE), 0);
}

LOCKMGR_TEST(who_gets_the_lock_without_a_request_decides_as_well)
{
	get(h, 0, "a");
	acquire(h, 1, "a");
	h->ask.deletes_item = true;
	acquire(h, 2, "a");
	let_go(h, 0, "a");
	settle(h);
	let_go(h, 1, "a");
	assert_result(h, 2, LOCKMGR_GRANTED);
	let_go(h, 2, "a");
	run(h, DELETE_AFTER_US + SECOND);
	assert_false(exists(h));
}

/* Other clusters repeat an acquire for as long as we do, or somewhat longer. */
LOCKMGR_TEST_WITH(the_item_is_deleted_when_nobody_repeats_an_acquire, start_with_deletion())
{
	lockmgr_set_timeouts(h->lm, ATTEMPT_US, DELETE_AFTER_US, SECOND);
	let_go(h, 0, "a");
	run(h, 2 * DELETE_AFTER_US - SECOND);
	assert_true(exists(h));
	run(h, 2 * SECOND);
	assert_false(exists(h));

	lockmgr_set_timeouts(h->lm, ATTEMPT_US, ATTEMPT_US, SECOND);
	h->ask.deletes_item = true;
	get(h, 0, "a");
	let_go(h, 0, "a");
	run(h, DELETE_AFTER_US - SECOND);
	assert_true(exists(h));
}

/* Without the item, the next tokens might be below. */
LOCKMGR_TEST(an_item_whose_token_is_ahead_of_the_clock_stays)
{
	foreign_hold(h, "a", "v1", LEASE_MS, h->now + h->epoch_offset + DELETE_AFTER_US + 2 * SECOND);
	foreign_release(h, "a");
	h->ask.deletes_item = true;
	get(h, 0, "a");
	let_go(h, 0, "a");
	run(h, 2 * DELETE_AFTER_US);
	assert_true(exists(h));
	assert_int_equal(sent(h, DYNAMO_DELETE), 0);
}

LOCKMGR_TEST(a_deletion_that_waits_for_a_free_call_ends_when_a_session_comes)
{
	harness_call *other;

	h->config.max_calls = 1;
	kill_manager(h);
	start_manager(h);
	h->ask.deletes_item = true;
	get(h, 0, "a");
	let_go(h, 0, "a");
	settle(h);
	h->ask.deletes_item = false;
	next_fate(h, FATE_HOLD);
	acquire(h, 1, "b");
	other = last_call(h);
	run(h, DELETE_AFTER_US + SECOND);
	acquire(h, 0, "a");
	deliver(h, other);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(sent(h, DYNAMO_DELETE), 0);
}

LOCKMGR_TEST_WITH(another_clusters_lock_is_not_deleted, start_with_deletion())
{
	let_go(h, 0, "a");
	settle(h);
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	run(h, DELETE_AFTER_US + SECOND);
	assert_true(exists(h));
	assert_int_equal(sent(h, DYNAMO_DELETE), 1);
	run(h, 2 * DELETE_AFTER_US);
	assert_int_equal(sent(h, DYNAMO_DELETE), 1);
}

/* A late copy of the acquire would make the item again. */
LOCKMGR_TEST(after_an_unknown_outcome_it_stays)
{
	h->ask.deletes_item = true;
	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	run(h, 2 * ATTEMPT_US);
	assert_true(holds(h, 0, "a"));
	let_go(h, 0, "a");
	run(h, 2 * DELETE_AFTER_US);
	assert_true(exists(h));

	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 1, "b");
	cancel(h, 1);
	run(h, 2 * DELETE_AFTER_US);
	assert_true(is_free(h, "b"));
	assert_int_equal(sent(h, DYNAMO_DELETE), 0);
}

LOCKMGR_TEST_WITH(a_deletion_is_tried_again, start_with_deletion())
{
	let_go(h, 0, "a");
	settle(h);
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	run(h, DELETE_AFTER_US + SECOND);
	assert_true(exists(h));
	run(h, DELETE_AFTER_US + SECOND);
	assert_false(exists(h));
}

/* A session comes while the deletion is in flight. */
LOCKMGR_TEST_WITH(an_acquire_beside_a_deletion, start_with_deletion())
{
	let_go(h, 0, "a");
	settle(h);
	next_fate(h, FATE_HOLD);
	run(h, DELETE_AFTER_US + SECOND);
	assert_int_equal(last_call(h)->c.op, DYNAMO_DELETE);
	get(h, 1, "a");
	deliver(h, &h->calls[h->call_count - 2]);
	settle(h);
	assert_true(exists(h));
	assert_true(holds(h, 1, "a"));
}

LOCKMGR_TEST_WITH(the_manager_forgets_it_with_the_lock, start_with_deletion())
{
	let_go(h, 0, "a");
	settle(h);
	for (uint32_t i = 0; i < h->config.max_remembered; i++)
	{
		get(h, 0, lock_name(i));
		let_go(h, 0, lock_name(i));
		settle(h);
	}
	run(h, 2 * DELETE_AFTER_US);
	assert_true(exists(h));
}

/* It would be free too early. */
LOCKMGR_TEST(a_kept_lock_is_not_deleted)
{
	h->ask.deletes_item = true;
	h->ask.at_least_ms = 60000;
	get(h, 0, "a");
	h->ask.deletes_item = false;
	h->ask.at_least_ms = 0;
	release(h, 0, "a");
	run(h, 50 * SECOND);
	assert_true(is_free(h, "a"));
	assert_true(exists(h));
	assert_int_equal(sent(h, DYNAMO_DELETE), 0);
	run(h, 30 * SECOND);
	assert_false(exists(h));
}

LOCKMGR_TEST(a_lock_whose_minimum_was_ended_is_deleted)
{
	h->ask.deletes_item = true;
	h->ask.at_least_ms = 60000;
	get(h, 0, "a");
	h->ask.deletes_item = false;
	h->ask.at_least_ms = 0;
	h->ask.ends_kept = true;
	release(h, 0, "a");
	run(h, DELETE_AFTER_US + SECOND);
	assert_false(exists(h));
}

LOCKMGR_TEST_WITH(a_deletion_that_fails_beside_the_next_holder_is_not_repeated, start_with_deletion())
{
	harness_call *deletion;

	let_go(h, 0, "a");
	settle(h);
	next_fate(h, FATE_HOLD);
	run(h, DELETE_AFTER_US);
	deletion = last_call(h);
	assert_int_equal(deletion->c.op, DYNAMO_DELETE);
	get(h, 1, "a");
	fail_call(h, deletion, DYNAMO_THROTTLED);
	run(h, 2 * DELETE_AFTER_US);
	let_go(h, 1, "a");
	run(h, 2 * DELETE_AFTER_US);
	assert_true(exists(h));
	assert_int_equal(sent(h, DYNAMO_DELETE), 1);
}

/* The lock is held again, alone, when the deletion is refused. */
LOCKMGR_TEST(a_late_deletion_ends_nobodys_try)
{
	harness_call *deletion;

	h->ask.deletes_item = true;
	get(h, 0, "a");
	h->ask.deletes_item = false;
	let_go(h, 0, "a");
	settle(h);
	next_fate(h, FATE_HOLD);
	while (sent(h, DYNAMO_DELETE) == 0)
		run(h, SECOND);
	deletion = last_call(h);
	get(h, 1, "a");
	h->ask.waits_for_local_holder = true;
	try_acquire(h, 2, "a");
	deliver(h, deletion);
	assert_waits(h, 2);
	let_go(h, 1, "a");
	settle(h);
	assert_result(h, 2, LOCKMGR_GRANTED);
}
