/*-------------------------------------------------------------------------
 *
 * test_lockmgr_permits.c
 *	  A cluster that waits for permits is heard: it marks the item with their number, and others
 *	  leave them.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#define LIMIT	5

static int64_t
epoch_ms(const harness *h)
{
	return (h->now + h->epoch_offset) / 1000;
}

static harness *
start_of_five(void)
{
	harness    *h = harness_start();

	h->lm->poll_interval_us = 250 * MS;
	return h;
}

static void
permits(harness *h, uint32_t slot, lockmgr_kind kind, int32_t count)
{
	h->ask.mode = MODE_SEMAPHORE;
	h->ask.permits = count;
	h->ask.limit = LIMIT;
	ask(h, slot, kind, "s", 0);
	h->ask.mode = MODE_EXCLUSIVE;
}

static void
get_permit(harness *h, uint32_t slot)
{
	permits(h, slot, LOCKMGR_ACQUIRE, 1);
	settle(h);
	assert_result(h, slot, LOCKMGR_GRANTED);
}

static void
give_back(harness *h, uint32_t slot)
{
	let_go(h, slot, "s");
	settle(h);
}

/* Another cluster has so many permits. */
static void
others_have(harness *h, int32_t count)
{
	double_item *found = double_item_of(&h->table, "s");

	if (double_entry(found, "them1") != NULL)
		double_remove_entry(found, "them1");
	if (count > 0)
		snprintf(foreign_entry(h, "s", "v1", count, MODE_SEMAPHORE)->incarnation,
				 DYNAMO_INCARNATION_SIZE, "them1");
}

static void
mark(harness *h, const char *by, int32_t count, int64_t ms, int64_t poll_ms)
{
	dynamo_item *item = item_of(h, "s");

	snprintf(item->wanted_by, sizeof(item->wanted_by), "%s", by);
	item->wanted_until_ms = epoch_ms(h) + ms;
	item->wanted_poll_ms = poll_ms;
	item->wanted_permits = count;
	item->wanted_limit = LIMIT;
}

static int64_t
until_granted(harness *h, uint32_t slot)
{
	int64_t		since = h->now;

	while (result_of(h, slot) < 0)
		run(h, MS);
	assert_result(h, slot, LOCKMGR_GRANTED);
	return h->now - since;
}

/* ---- who waits ---- */

LOCKMGR_TEST_WITH(a_waiter_marks_the_item_with_the_number_of_permits, start_of_five())
{
	others_have(h, 3);
	permits(h, 0, LOCKMGR_ACQUIRE, 3);
	run(h, SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
	run(h, SECOND / 2);
	assert_int_equal(sent(h, DYNAMO_MARK), 1);
	assert_int_equal(item_of(h, "s")->wanted_permits, 3);
	assert_int_equal(item_of(h, "s")->wanted_limit, LIMIT);
	run(h, 6 * SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 1);
	others_have(h, 2);
	(void) until_granted(h, 0);
	assert_int_equal(item_of(h, "s")->wanted_until_ms, 0);
}

LOCKMGR_TEST_WITH(who_has_permits_marks_for_more, start_of_five())
{
	get_permit(h, 0);
	others_have(h, 4);
	permits(h, 1, LOCKMGR_ACQUIRE, 2);
	run(h, SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
	run(h, SECOND / 2);
	assert_int_equal(sent(h, DYNAMO_MARK), 1);
	assert_int_equal(item_of(h, "s")->wanted_permits, 2);
	run(h, 6 * SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 1);
	double_entry(double_item_of(&h->table, "s"), "them1")->permits = 2;
	double_item_of(&h->table, "s")->shared->total = 3;
	(void) until_granted(h, 1);
	assert_int_equal(item_of(h, "s")->wanted_until_ms, 0);
}

/* Its wait begins with it, also if the cluster stays back at a run's end. */
LOCKMGR_TEST_WITH(who_has_just_begun_to_wait_marks_nothing, start_of_five())
{
	others_have(h, 3);
	get_permit(h, 0);
	get_permit(h, 1);
	permits(h, 2, LOCKMGR_ACQUIRE, 1);
	run(h, 10 * MS);
	let_go(h, 0, "s");
	run(h, 3 * SECOND / 2);
	assert_result(h, 2, LOCKMGR_GRANTED);
	permits(h, 3, LOCKMGR_ACQUIRE, 1);
	run(h, 5 * MS);
	let_go(h, 2, "s");
	run(h, 900 * MS);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
}

LOCKMGR_TEST_WITH(a_mark_with_another_number_is_written_anew, start_of_five())
{
	others_have(h, 4);
	permits(h, 0, LOCKMGR_ACQUIRE, 2);
	permits(h, 1, LOCKMGR_ACQUIRE, 3);
	run(h, 2 * SECOND);
	assert_int_equal(item_of(h, "s")->wanted_permits, 2);
	cancel(h, 0);
	run(h, 2 * SECOND);
	assert_int_equal(item_of(h, "s")->wanted_permits, 3);
	assert_int_equal(sent(h, DYNAMO_MARK), 2);
}

/* Who had permits already may have taken more, and the token does not tell. */
LOCKMGR_TEST_WITH(a_mark_is_written_anew_when_others_have_written_the_item, start_of_five())
{
	others_have(h, 4);
	permits(h, 0, LOCKMGR_ACQUIRE, 2);
	run(h, 4 * SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 1);
	snprintf(item_of(h, "s")->version, DYNAMO_VERSION_SIZE, "changed");
	run(h, SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 2);
	run(h, 4 * SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 2);
}

LOCKMGR_TEST_WITH(a_mark_for_permits_that_fails_is_no_trouble, start_of_five())
{
	get_permit(h, 0);
	others_have(h, 4);
	permits(h, 1, LOCKMGR_ACQUIRE, 1);
	while (sent(h, DYNAMO_MARK) == 0)
		run(h, MS);
	fail_call(h, last_call(h), DYNAMO_ACCESS_DENIED);
	run(h, 8 * SECOND);
	assert_waits(h, 1);
	assert_int_equal(sent(h, DYNAMO_MARK), 1);
	run(h, 3 * SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 2);
}

/* Those have one permit for each cluster, and a gate. */
LOCKMGR_TEST_WITH(who_wants_another_mode_marks_no_permits, start_of_five())
{
	others_have(h, 5);
	h->ask.mode = MODE_SHARED;
	acquire(h, 0, "s");
	h->ask.mode = MODE_EXCLUSIVE;
	run(h, 5 * SECOND);
	assert_waits(h, 0);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
}

/* Nobody who shares the lock hears that: it has come late. */
LOCKMGR_TEST_WITH(another_clusters_mark_for_the_lock_will_not_do, start_of_five())
{
	others_have(h, 5);
	mark(h, "2", 0, 9000, 250);
	item_of(h, "s")->wanted_limit = 0;
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	run(h, 3 * SECOND / 2);
	assert_int_equal(sent(h, DYNAMO_MARK), 1);
}

/* ---- who takes permits ---- */

LOCKMGR_TEST_WITH(the_last_permit_is_left_for_two_polls_and_a_round_trip, start_of_five())
{
	others_have(h, 4);
	get_permit(h, 0);
	mark(h, "2", 1, 9000, 50);
	give_back(h, 0);
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	assert_in_range(until_granted(h, 0), 150 * MS, 260 * MS);

	/* Once for each mark. */
	give_back(h, 0);
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	assert_in_range(until_granted(h, 0), 0, 20 * MS);
}

LOCKMGR_TEST_WITH(so_is_that_of_who_was_alone, start_of_five())
{
	get_permit(h, 0);
	mark(h, "2", 5, 9000, 50);
	give_back(h, 0);
	assert_true(is_free(h, "s"));
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	assert_in_range(until_granted(h, 0), 150 * MS, 260 * MS);
}

LOCKMGR_TEST_WITH(permits_are_left_until_there_are_enough, start_of_five())
{
	others_have(h, 3);
	get_permit(h, 0);
	get_permit(h, 1);
	mark(h, "2", 3, 9000, 50);
	give_back(h, 1);
	permits(h, 1, LOCKMGR_ACQUIRE, 1);
	run(h, 3 * SECOND);
	assert_waits(h, 1);
	others_have(h, 1);
	assert_in_range(until_granted(h, 1), 180 * MS, 700 * MS);
}

LOCKMGR_TEST_WITH(when_who_waited_has_got_them_the_rest_is_free, start_of_five())
{
	others_have(h, 3);
	get_permit(h, 0);
	mark(h, "2", 3, 9000, 250);
	give_back(h, 0);
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	run(h, SECOND);
	assert_waits(h, 0);
	item_of(h, "s")->wanted_until_ms = 0;
	others_have(h, 4);
	assert_in_range(until_granted(h, 0), 0, 100 * MS);
}

LOCKMGR_TEST_WITH(what_a_mark_leaves_may_be_taken, start_of_five())
{
	others_have(h, 1);
	get_permit(h, 0);
	mark(h, "2", 3, 9000, 250);
	give_back(h, 0);
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	assert_in_range(until_granted(h, 0), 0, 20 * MS);
}

/* Who has opened the shared mode has seen nothing of it. */
LOCKMGR_TEST_WITH(an_opener_counts_its_own_permits, start_of_five())
{
	get_permit(h, 0);
	mark(h, "2", 4, 9000, 200);
	give_back(h, 0);
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	assert_in_range(until_granted(h, 0), 0, 20 * MS);
	permits(h, 1, LOCKMGR_ACQUIRE, 1);
	assert_in_range(until_granted(h, 1), 400 * MS, 800 * MS);
}

/* The lock is another client's, and has a mark of a third one; or it is free again. */
static void
exclusively(harness *h, bool held)
{
	double_item *found = double_item_of(&h->table, "s");

	if (held)
	{
		others_have(h, 0);
		found->shared->current = false;
		foreign_hold(h, "s", "exclusive", LEASE_MS, 6);
		found->item.by_ddblock = true;
	}
	else
		foreign_release(h, "s");
}

/* Nobody can take permits then, so no pause begins, or the mark would be heard for nothing. */
LOCKMGR_TEST_WITH(a_pause_begins_after_an_exclusive_hold, start_of_five())
{
	others_have(h, 5);
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	run(h, SECOND / 2);
	exclusively(h, true);
	mark(h, "2", 5, 9000, 100);
	run(h, 400 * MS);
	exclusively(h, false);
	assert_in_range(until_granted(h, 0), 280 * MS, 900 * MS);
}

LOCKMGR_TEST_WITH(an_exclusive_hold_ends_no_pause, start_of_five())
{
	int64_t		until_ms;

	get_permit(h, 0);
	mark(h, "2", 5, 9000, 400);
	until_ms = item_of(h, "s")->wanted_until_ms;
	give_back(h, 0);
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	run(h, 100 * MS);
	exclusively(h, true);
	mark(h, "2", 5, until_ms - epoch_ms(h), 400);
	run(h, 200 * MS);
	exclusively(h, false);
	assert_in_range(until_granted(h, 0), 500 * MS, 700 * MS);
}

LOCKMGR_TEST_WITH(nobody_leaves_permits_for_longer_than_the_mark_counts, start_of_five())
{
	others_have(h, 3);
	get_permit(h, 0);
	mark(h, "2", 3, 4000, 50);
	give_back(h, 0);
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	run(h, 3 * SECOND);
	assert_waits(h, 0);
	assert_in_range(until_granted(h, 0), SECOND / 2, 3 * SECOND);
}

LOCKMGR_TEST_WITH(a_try_takes_nothing_that_is_left_to_others, start_of_five())
{
	others_have(h, 3);
	get_permit(h, 0);
	mark(h, "2", 3, 9000, 50);
	give_back(h, 0);
	permits(h, 0, LOCKMGR_TRY, 1);
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
}

/* What was seen of the mark is older than the try: so it looks, once. */
LOCKMGR_TEST_WITH(a_try_does_not_rely_on_a_mark_that_was_seen_before, start_of_five())
{
	get_permit(h, 0);
	others_have(h, 3);
	mark(h, "2", 3, 9000, 50);
	get_permit(h, 1);
	run(h, SECOND);
	permits(h, 2, LOCKMGR_TRY, 1);
	settle(h);
	assert_result(h, 2, LOCKMGR_BUSY);
	item_of(h, "s")->wanted_until_ms = 0;
	others_have(h, 0);
	run(h, MS);
	permits(h, 2, LOCKMGR_TRY, 1);
	settle(h);
	assert_result(h, 2, LOCKMGR_GRANTED);
}

LOCKMGR_TEST_WITH(a_try_that_cannot_look_is_busy, start_of_five())
{
	int			looks;

	get_permit(h, 0);
	others_have(h, 3);
	mark(h, "2", 3, 9000, 50);
	get_permit(h, 1);
	run(h, MS);
	looks = sent(h, DYNAMO_READ);
	permits(h, 2, LOCKMGR_TRY, 1);
	while (sent(h, DYNAMO_READ) == looks)
		run(h, MS);
	fail_call(h, last_call(h), DYNAMO_UNREACHABLE);
	settle(h);
	assert_result(h, 2, LOCKMGR_BUSY);
	assert_int_equal(sent(h, DYNAMO_READ), looks + 1);
}

/* Its own lock's mode tells: the number is for who takes permits. */
LOCKMGR_TEST_WITH(who_wants_the_lock_for_himself_leaves_no_permits, start_of_five())
{
	get_permit(h, 0);
	mark(h, "2", 3, 9000, 50);
	give_back(h, 0);
	acquire(h, 0, "s");
	assert_in_range(until_granted(h, 0), 0, 20 * MS);
}

LOCKMGR_TEST_WITH(a_mark_that_is_ours_or_unusable_keeps_nothing_back, start_of_five())
{
	others_have(h, 4);
	get_permit(h, 0);
	mark(h, "1", 3, 9000, 50);
	give_back(h, 0);
	get_permit(h, 0);
	mark(h, "2", 3, 16000, 50);
	give_back(h, 0);
	get_permit(h, 0);
	mark(h, "2", 3, -1, 50);
	give_back(h, 0);
	get_permit(h, 0);
	mark(h, "2", 0, 9000, 50);
	give_back(h, 0);
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	assert_in_range(until_granted(h, 0), 0, 20 * MS);
}

/* The refusal of the first attempt shows the mark. */
LOCKMGR_TEST_WITH(who_comes_later_leaves_them_too, start_of_five())
{
	others_have(h, 3);
	mark(h, "2", 3, 9000, 50);
	permits(h, 0, LOCKMGR_ACQUIRE, 1);
	run(h, 2 * SECOND);
	assert_waits(h, 0);
	double_entry(double_item_of(&h->table, "s"), "them1")->permits = 2;
	double_item_of(&h->table, "s")->shared->total = 2;
	assert_in_range(until_granted(h, 0), 150 * MS, 700 * MS);
}

/* A run ends as soon as the mark is known: else a permit might pass on for as long as it takes. */
LOCKMGR_TEST_WITH(a_permit_that_another_cluster_wants_does_not_pass_on, start_of_five())
{
	others_have(h, 3);
	get_permit(h, 0);
	get_permit(h, 1);
	mark(h, "2", 3, 9000, 50);
	permits(h, 2, LOCKMGR_ACQUIRE, 1);
	settle(h);
	assert_waits(h, 2);
	let_go(h, 0, "s");
	run(h, 2 * SECOND);
	assert_waits(h, 2);
	assert_int_equal(double_item_of(&h->table, "s")->shared->total, 4);
}
