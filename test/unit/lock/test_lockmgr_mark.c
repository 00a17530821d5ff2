/*-------------------------------------------------------------------------
 *
 * test_lockmgr_mark.c
 *	  A cluster that waits is heard: it marks the item, and the holder's cluster stays
 *	  back after its release.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#define OUR_INCARNATION	"1"

static int64_t
epoch_ms(const harness *h)
{
	return (h->now + h->epoch_offset) / 1000;
}

/* Another cluster of ddblock has lock "a". */
static harness *
start_held(void)
{
	harness    *h = harness_start();

	h->lm->poll_interval_us = 250 * MS;
	foreign_hold(h, "a", "v1", 600000, 1);
	item_of(h, "a")->by_ddblock = true;
	return h;
}

static void
mark(harness *h, const char *by, int64_t until_ms, int64_t poll_ms)
{
	dynamo_item *item = item_of(h, "a");

	snprintf(item->wanted_by, sizeof(item->wanted_by), "%s", by);
	item->wanted_until_ms = until_ms;
	item->wanted_poll_ms = poll_ms;
}

/* ---- who waits ---- */

LOCKMGR_TEST_WITH(a_waiter_marks_the_item_after_a_second, start_held())
{
	acquire(h, 0, "a");
	run(h, SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
	run(h, SECOND / 2);
	assert_int_equal(sent(h, DYNAMO_MARK), 1);
	assert_string_equal(item_of(h, "a")->wanted_by, OUR_INCARNATION);
	assert_in_range(item_of(h, "a")->wanted_until_ms, epoch_ms(h) + 9400, epoch_ms(h) + 10000);
	assert_string_equal(item_of(h, "a")->version, "v1");
	assert_waits(h, 0);
}

LOCKMGR_TEST_WITH(the_next_waiter_waits_for_a_second_too, start_held())
{
	acquire(h, 0, "a");
	run(h, SECOND);
	cancel(h, 0);
	run(h, SECOND);
	acquire(h, 0, "a");
	run(h, SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
}

LOCKMGR_TEST_WITH(a_mark_is_repeated_before_it_ends, start_held())
{
	acquire(h, 0, "a");
	run(h, 8 * SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 1);
	for (int i = 0; i < 300; i++)
	{
		run(h, SECOND / 10);
		assert_true(item_of(h, "a")->wanted_until_ms > epoch_ms(h));
	}
	assert_in_range(sent(h, DYNAMO_MARK), 4, 6);
}

/* One round trip shows the item as well. */
LOCKMGR_TEST_WITH(a_mark_is_a_poll, start_held())
{
	int			calls;

	acquire(h, 0, "a");
	run(h, 4 * SECOND);
	calls = h->call_count;
	run(h, 20 * SECOND);
	assert_in_range(h->call_count - calls, 80, 130);
	assert_in_range(sent(h, DYNAMO_MARK), 2, 4);
}

LOCKMGR_TEST_WITH(who_waits_for_less_marks_nothing, start_held())
{
	acquire(h, 0, "a");
	run(h, 900 * MS);
	foreign_release(h, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	let_go(h, 0, "a");
	run(h, 2 * SECOND);

	/* The next wait begins anew. */
	foreign_hold(h, "a", "v2", 600000, 1);
	item_of(h, "a")->by_ddblock = true;
	acquire(h, 1, "a");
	run(h, 900 * MS);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
}

LOCKMGR_TEST_WITH(other_clients_are_not_asked, start_held())
{
	item_of(h, "a")->by_ddblock = false;
	acquire(h, 0, "a");
	run(h, 5 * SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
}

LOCKMGR_TEST_WITH(a_leadership_asks_nobody, start_held())
{
	h->ask.leadership = true;
	acquire(h, 0, "a");
	run(h, 20 * SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
}

LOCKMGR_TEST_WITH(an_acquire_removes_the_mark, start_held())
{
	acquire(h, 0, "a");
	run(h, 2 * SECOND);
	assert_true(item_of(h, "a")->wanted_until_ms > 0);
	foreign_release(h, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(item_of(h, "a")->wanted_until_ms, 0);
}

LOCKMGR_TEST_WITH(another_clusters_mark_stays, start_held())
{
	int64_t		until = epoch_ms(h) + 10000;

	mark(h, "3", until, 250);
	acquire(h, 0, "a");
	run(h, 2 * SECOND);
	foreign_release(h, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(item_of(h, "a")->wanted_until_ms, until);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
}

LOCKMGR_TEST_WITH(one_mark_is_enough_unless_the_lock_changes_hands, start_held())
{
	mark(h, "3", epoch_ms(h) + 10000, 250);
	acquire(h, 0, "a");
	run(h, 5 * SECOND);
	snprintf(item_of(h, "a")->version, DYNAMO_VERSION_SIZE, "renewed");
	run(h, SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
	item_of(h, "a")->token++;
	snprintf(item_of(h, "a")->version, DYNAMO_VERSION_SIZE, "v2");
	run(h, SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 1);
	assert_string_equal(item_of(h, "a")->wanted_by, OUR_INCARNATION);

	/* That goes on, but not at once. */
	for (int i = 0; i < 30; i++)
	{
		item_of(h, "a")->token++;
		snprintf(item_of(h, "a")->version, DYNAMO_VERSION_SIZE, "v%d", i + 3);
		run(h, SECOND / 10);
	}
	assert_in_range(sent(h, DYNAMO_MARK), 3, 4);
}

LOCKMGR_TEST_WITH(a_mark_that_is_lost_is_repeated, start_held())
{
	acquire(h, 0, "a");
	run(h, 2 * SECOND);
	item_of(h, "a")->wanted_until_ms = 0;	/* PutItem drops it */
	run(h, 2 * SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 2);
	assert_true(item_of(h, "a")->wanted_until_ms > 0);
}

LOCKMGR_TEST_WITH(who_has_marked_polls_as_often_as_he_says, start_held())
{
	int			calls;
	int64_t		since;

	acquire(h, 0, "a");
	run(h, 900 * MS);
	item_of(h, "a")->token++;	/* it has changed hands: polls are frequent */
	snprintf(item_of(h, "a")->version, DYNAMO_VERSION_SIZE, "v2");
	run(h, SECOND);
	assert_int_equal(item_of(h, "a")->wanted_poll_ms, 50);
	run(h, 4 * SECOND);
	calls = h->call_count;
	since = h->now;
	run(h, SECOND);
	assert_true((h->call_count - calls) * 50 * MS >= h->now - since - 50 * MS);
}

LOCKMGR_TEST_WITH(a_lower_poll_interval_counts_after_a_mark, start_held())
{
	int			calls;

	h->lm->poll_interval_us = SECOND;
	acquire(h, 0, "a");
	run(h, 30 * SECOND);
	assert_int_equal(item_of(h, "a")->wanted_poll_ms, 1000);
	h->lm->poll_interval_us = 250 * MS;
	run(h, SECOND);				/* the poll that was due by the old one */
	calls = h->call_count;
	run(h, 2 * SECOND);
	assert_in_range(h->call_count - calls, 7, 12);
}

/* It is a hint. */
LOCKMGR_TEST_WITH(a_mark_that_fails_is_no_trouble, start_held())
{
	acquire(h, 0, "a");
	while (sent(h, DYNAMO_MARK) == 0)
		run(h, MS);
	fail_call(h, last_call(h), DYNAMO_ACCESS_DENIED);
	settle(h);
	assert_waits(h, 0);
	assert_int_equal(h->watches[h->asked[0].watch].trouble, DYNAMO_OK);
	run(h, 8 * SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 1);
	run(h, 3 * SECOND);
	assert_int_equal(sent(h, DYNAMO_MARK), 2);
	foreign_release(h, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST_WITH(a_mark_is_refused_when_the_lock_is_released, start_held())
{
	acquire(h, 0, "a");
	while (sent(h, DYNAMO_MARK) == 0)
		run(h, MS);
	foreign_release(h, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(item_of(h, "a")->wanted_until_ms, 0);
}

/* ---- who holds ---- */

/* How long it takes until session 1 has the lock after session 0's release. */
static int64_t
again_after(harness *h)
{
	int64_t		since = h->now;

	release(h, 0, "a");
	while (result_of(h, 0) < 0)
		run(h, MS);
	acquire(h, 1, "a");
	while (result_of(h, 1) < 0)
		run(h, MS);
	assert_result(h, 1, LOCKMGR_GRANTED);
	return h->now - since;
}

static void
change_places(harness *h)
{
	let_go(h, 1, "a");
	settle(h);
	get(h, 0, "a");
}

LOCKMGR_TEST(the_holder_stays_back_for_two_polls_and_a_round_trip)
{
	get(h, 0, "a");
	mark(h, "2", epoch_ms(h) + 5000, 50);
	assert_in_range(again_after(h), 200 * MS, 220 * MS);
	change_places(h);
	mark(h, "2", epoch_ms(h) + 5001, 250);
	assert_in_range(again_after(h), 600 * MS, 620 * MS);
}

LOCKMGR_TEST(the_holder_stays_back_once_for_each_mark)
{
	get(h, 0, "a");
	mark(h, "2", epoch_ms(h) + 10000, 50);
	assert_in_range(again_after(h), 200 * MS, 220 * MS);
	let_go(h, 1, "a");
	settle(h);
	get(h, 0, "a");
	assert_in_range(again_after(h), 0, 20 * MS);
}

LOCKMGR_TEST(after_others_had_the_lock_the_mark_counts_again)
{
	int64_t		until = epoch_ms(h) + 10000;

	get(h, 0, "a");
	mark(h, "2", until, 50);
	(void) again_after(h);
	let_go(h, 1, "a");
	settle(h);
	foreign_hold(h, "a", "v1", LEASE_MS, INT64_C(1700000002) * SECOND);
	foreign_release(h, "a");
	mark(h, "2", until, 50);
	get(h, 0, "a");
	assert_in_range(again_after(h), 200 * MS, 220 * MS);
}

LOCKMGR_TEST(a_mark_that_does_not_count_costs_nothing)
{
	get(h, 0, "a");
	assert_in_range(again_after(h), 0, 20 * MS);
	change_places(h);
	mark(h, "2", epoch_ms(h) - 1, 50);
	assert_in_range(again_after(h), 0, 20 * MS);
	change_places(h);
	mark(h, "2", epoch_ms(h) + 16000, 50);	/* nobody writes that */
	assert_in_range(again_after(h), 0, 20 * MS);
	change_places(h);
	mark(h, "2", INT64_MAX, 50);
	assert_in_range(again_after(h), 0, 20 * MS);
	change_places(h);
	mark(h, OUR_INCARNATION, epoch_ms(h) + 5000, 50);	/* of an earlier wait */
	assert_in_range(again_after(h), 0, 20 * MS);
}

LOCKMGR_TEST(a_forged_mark_costs_a_second_at_most)
{
	get(h, 0, "a");
	mark(h, "", epoch_ms(h) + 5000, INT64_MAX);
	assert_in_range(again_after(h), SECOND, SECOND + 20 * MS);
}

LOCKMGR_TEST(a_mark_is_heard_although_the_first_reply_was_lost)
{
	get(h, 0, "a");
	mark(h, "2", epoch_ms(h) + 9000, 250);
	next_fate(h, FATE_LOST_REPLY);
	release(h, 0, "a");
	while (result_of(h, 0) < 0)
		run(h, MS);
	acquire(h, 1, "a");
	run(h, 590 * MS);
	assert_waits(h, 1);
	run(h, 30 * MS);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* ddb_lock_try_acquire() may take as long, rather than say that somebody has the lock. */
LOCKMGR_TEST(a_try_waits_for_its_turn)
{
	get(h, 0, "a");
	mark(h, "2", epoch_ms(h) + 5000, 50);
	release(h, 0, "a");
	settle(h);
	try_acquire(h, 1, "a");
	run(h, SECOND / 4);
	assert_result(h, 1, LOCKMGR_GRANTED);
}
