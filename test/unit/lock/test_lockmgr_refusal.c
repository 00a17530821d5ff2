/*-------------------------------------------------------------------------
 *
 * test_lockmgr_refusal.c
 *	  Refusals that do not show the item, as dynalite's, and refusals that the item does
 *	  not explain.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/backoff.h"
#include "lockmgr_harness.h"
#include "lockmgr_scenarios.h"

static harness *
start_silent(void)
{
	harness    *h = harness_start();

	h->table.silent = true;
	return h;
}

static void
share(harness *h, uint32_t slot, lock_mode mode, lockmgr_kind kind, int32_t permits, int32_t limit)
{
	h->ask.mode = mode;
	h->ask.permits = permits;
	h->ask.limit = limit;
	ask(h, slot, kind, "s", 0);
	h->ask.mode = MODE_EXCLUSIVE;
}

/* The reply to a renewal was lost, which DynamoDB has applied. */
LOCKMGR_TEST_WITH(a_renewal_that_stands_is_read, start_silent())
{
	get(h, 0, "a");
	run(h, SECOND);
	next_fate(h, FATE_LOST_REPLY);
	renew(h, 0, "a", 0);
	run(h, LEASE_US / 4);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_int_equal(sent(h, DYNAMO_READ), 1);
	assert_false(last_call(h)->writes[0].write.maybe_stale);
	assert_false(last_call(h)->c.repeat);
	assert_int_equal(h->lost_count, 0);
	assert_true(holds(h, 0, "a"));
	assert_string_equal(saved_of(h, 0, "a")->version, item_of(h, "a")->version);
}

TEST(a_loss_is_told_by_what_was_read)
{
	for (int deleted = 0; deleted < 2; deleted++)
	{
		harness    *h = start_silent();

		get(h, 0, "a");
		if (deleted)
			delete_item(h, "a");
		else
			foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
		run(h, LEASE_US / 2);
		assert_int_equal(h->lost_count, 1);
		assert_int_equal(h->lost[0].loss, deleted ? LOSS_DELETED : LOSS_TAKEN);
		assert_int_equal(sent(h, DYNAMO_READ), 1);
		finish(h);
	}
}

/* The read fails as long as nothing works: the lease is lost at its deadline, not before. */
LOCKMGR_TEST_WITH(a_read_that_fails_is_no_loss, start_silent())
{
	int64_t		deadline = get(h, 0, "a")->valid_until;

	foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
	run(h, LEASE_US / 4);
	next_fate(h, FATE_OK);
	h->fate = FATE_LOST_REQUEST;
	run_until(h, deadline - 1);
	assert_int_equal(h->lost_count, 0);
	run(h, 1);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_UNREACHABLE);
}

LOCKMGR_TEST_WITH(who_is_gone_meanwhile_still_has_his_lock_released, start_silent())
{
	get(h, 0, "a");
	run(h, SECOND);
	next_fate(h, FATE_LOST_REPLY);
	renew(h, 0, "a", 0);
	run(h, SECOND);
	release(h, 0, "a");
	settle(h);
	run(h, LEASE_US / 2);
	assert_true(is_free(h, "a"));
}

/* Who leaves takes himself for the last one, because the other one has come later. */
LOCKMGR_TEST_WITH(a_release_takes_the_other_form_after_a_read, start_silent())
{
	share(h, 0, MODE_SHARED, LOCKMGR_ACQUIRE, 1, 1);
	settle(h);
	foreign_entry(h, "s", "e1", 1, MODE_SHARED);
	release(h, 0, "s");
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_int_equal(h->calls[2].c.op, DYNAMO_READ);
	assert_false(h->calls[2].c.repeat);
	assert_null(double_entry(double_item_of(&h->table, "s"), "1"));
	assert_int_equal(sent(h, DYNAMO_RELEASE), 2);
	assert_int_equal(sent(h, DYNAMO_READ), 1);
}

LOCKMGR_TEST_WITH(a_refused_gate_is_a_read, start_silent())
{
	share(h, 1, MODE_SHARED, LOCKMGR_ACQUIRE, 1, 1);
	settle(h);
	foreign_entry(h, "s", "e1", 1, MODE_SHARED);
	release(h, 1, "s");
	settle(h);
	acquire(h, 0, "s");
	run(h, SECOND);
	assert_waits(h, 0);
	assert_true(double_item_of(&h->table, "s")->shared->gate);
}

LOCKMGR_TEST_WITH(only_who_must_find_an_item_hears_that_there_is_none, start_silent())
{
	h->ask.must_exist = true;
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	try_acquire(h, 0, "a");
	try_acquire(h, 1, "b");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
	assert_result(h, 1, LOCKMGR_MISSING);
}

/* ---- impossible refusals ---- */

LOCKMGR_TEST(a_renewal_refused_for_nothing_is_repeated_until_the_deadline)
{
	int64_t		deadline = get(h, 0, "a")->valid_until;

	h->table.refuses_others = true;
	run_until(h, deadline - 1);
	assert_int_equal(h->lost_count, 0);
	assert_in_range(sent(h, DYNAMO_RENEW), 10, 80);
	run(h, 1);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_UNREACHABLE);
	h->table.refuses_others = false;
}

TEST(a_release_refused_for_nothing_is_repeated_until_no_copy_can_arrive)
{
	for (int mode = MODE_EXCLUSIVE; mode <= MODE_SHARED; mode++)
	{
		harness    *h = harness_start();
		int			releases;

		share(h, 0, (lock_mode) mode, LOCKMGR_ACQUIRE, 1, 1);
		settle(h);
		h->table.refuses_others = true;
		release(h, 0, "s");
		run(h, LEASE_US);
		assert_failed(h, 0, DYNAMO_CONFLICT);
		assert_string_equal(h->asked[0].message,
							"the write was refused, but the item is as the write expects");
		assert_in_range(sent(h, DYNAMO_RELEASE), 5, 70);
		run(h, LEASE_US + 16 * 60 * SECOND);
		releases = sent(h, DYNAMO_RELEASE);
		run(h, LEASE_US);
		assert_int_equal(sent(h, DYNAMO_RELEASE), releases);

		/* The lock is usable again. */
		h->table.refuses_others = false;
		run(h, LEASE_US);
		share(h, 0, (lock_mode) mode, LOCKMGR_ACQUIRE, 1, 1);
		run(h, 2 * LEASE_US);
		assert_result(h, 0, LOCKMGR_GRANTED);
		finish(h);
	}
}

LOCKMGR_TEST(permits_refused_for_nothing_are_an_error)
{
	share(h, 0, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 9);
	settle(h);
	h->table.refuses_changes = true;
	share(h, 1, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 9);
	run(h, 9 * BACKOFF_CAP_US / 64);	/* with pauses */
	assert_waits(h, 1);
	run(h, LEASE_US / 2);
	assert_failed(h, 1, DYNAMO_MALFORMED);
	assert_in_range(sent(h, DYNAMO_RENEW), 5, 60);
}

LOCKMGR_TEST(permits_that_cannot_be_given_back_are_no_longer_ours_at_the_deadline)
{
	share(h, 0, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 9);
	settle(h);
	share(h, 1, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 9);
	settle(h);
	h->table.refuses_changes = true;
	let_go(h, 1, "s");
	run(h, LEASE_US);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_UNREACHABLE);
	assert_in_range(sent(h, DYNAMO_RENEW), 10, 80);
}

/* A read is no statement of a batch. */
LOCKMGR_TEST_WITH(no_renewal_goes_with_the_read, start_silent())
{
	harness_call *renewal;

	believe_batches(h);
	get(h, 0, "a");
	run(h, LEASE_US / 12 + SECOND / 2);
	get(h, 1, "b");
	foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
	next_fate(h, FATE_HOLD);
	run(h, LEASE_US / 4);
	renewal = last_call(h);
	assert_int_equal(renewal->c.op, DYNAMO_RENEW);
	run(h, SECOND);
	assert_ptr_equal(last_call(h), renewal);
	deliver(h, renewal);
	assert_int_equal(last_call(h)->c.op, DYNAMO_READ);
	settle(h);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_TAKEN);
	assert_true(holds(h, 1, "b"));
}

/* Then the item is not as the renewal expects. */
LOCKMGR_TEST(another_owner_with_our_version_is_a_loss)
{
	get(h, 0, "a");
	snprintf(item_of(h, "a")->owner, DYNAMO_OWNER_SIZE, "them/1");
	run(h, LEASE_US / 2);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_TAKEN);
}
