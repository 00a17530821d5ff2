/*-------------------------------------------------------------------------
 *
 * test_lockmgr_observe.c
 *	  Items of a listing: a try gets what it calls dead.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

/* Receives a listing's page whose request was sent that long ago. */
static bool
observed_dead(harness *h, const char *name, int64_t on_its_way)
{
	return lockmgr_observe(h->lm, h->now - on_its_way, h->now, name, strlen(name),
						   &double_item_of(&h->table, name)->item, NULL);
}

LOCKMGR_TEST(what_is_called_dead_is_had_by_a_try)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	assert_false(observed_dead(h, "a", 0));
	run(h, LEASE_US);
	assert_false(observed_dead(h, "a", 0));
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);

	run(h, DEAD_US - LEASE_US);
	assert_true(observed_dead(h, "a", 0));
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(reads_for_sessions_count_as_well)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
	run(h, DEAD_US);
	assert_true(observed_dead(h, "a", 0));
}

LOCKMGR_TEST(a_read_that_fails_takes_nothing_back)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	assert_false(observed_dead(h, "a", 0));
	run(h, DEAD_US);
	next_fate(h, fate_of(DYNAMO_ACCESS_DENIED));
	look_up(h, 0, "a");
	settle(h);
	assert_true(observed_dead(h, "a", 0));
}

LOCKMGR_TEST(a_page_that_was_late_proves_nothing)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	assert_false(observed_dead(h, "a", 0));
	run(h, 2 * LEASE_US);
	assert_false(observed_dead(h, "a", LEASE_US));
	assert_true(observed_dead(h, "a", LEASE_US / 2));
}

LOCKMGR_TEST(another_version_is_another_life)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	assert_false(observed_dead(h, "a", 0));
	run(h, 2 * LEASE_US);
	foreign_hold(h, "a", "v2", LEASE_MS, 5);
	assert_false(observed_dead(h, "a", 0));
	run(h, 2 * LEASE_US);
	foreign_release(h, "a");
	assert_false(observed_dead(h, "a", 0));
}

LOCKMGR_TEST(what_a_try_does_not_get_is_not_called_dead)
{
	foreign_hold(h, "waited for", "v1", LEASE_MS, 5);
	foreign_hold(h, "last token", "v1", LEASE_MS, INT64_MAX);
	foreign_hold(h, "no time", "v1", LEASE_MS, 5);
	double_item_of(&h->table, "no time")->item.bad_kept = true;
	foreign_hold(h, "never", "v1", LEASE_MS, 5);
	double_item_of(&h->table, "never")->item.kept_until_ms = INT64_MAX;
	get(h, 0, "ours");
	acquire(h, 1, "waited for");
	settle(h);
	assert_false(observed_dead(h, "waited for", 0));
	assert_false(observed_dead(h, "last token", 0));
	assert_false(observed_dead(h, "no time", 0));
	assert_false(observed_dead(h, "never", 0));
	assert_false(observed_dead(h, "ours", 0));

	/* The page is received before the manager's timers have run. */
	h->now += DEAD_US;
	assert_false(observed_dead(h, "waited for", 0));
	assert_false(observed_dead(h, "last token", 0));
	assert_false(observed_dead(h, "no time", 0));
	assert_false(observed_dead(h, "never", 0));
	assert_false(observed_dead(h, "ours", 0));
	settle(h);
	assert_true(holds(h, 1, "waited for"));
	assert_false(observed_dead(h, "waited for", 0));
	let_go(h, 0, "ours");
	let_go(h, 1, "waited for");
	settle(h);
}

TEST(a_listing_takes_no_room_from_others)
{
	harness    *h = harness_new(SIZE);
	char		name[16];
	lockmgr_counts counts;

	h->config.max_remembered = 3;
	start_manager(h);
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	try_acquire(h, 0, "a");
	settle(h);
	foreign_hold(h, "free", "v1", LEASE_MS, 5);
	foreign_release(h, "free");
	foreign_hold(h, "wrong", "v1", LEASE_MS, 5);
	item_of(h, "wrong")->wrong = "it makes no sense";
	assert_false(observed_dead(h, "free", 0));
	assert_false(observed_dead(h, "wrong", 0));
	lockmgr_count(h->lm, &counts);
	assert_int_equal(counts.remembered, 1);
	for (int i = 0; i < 5; i++)
	{
		snprintf(name, sizeof(name), "b%d", i);
		foreign_hold(h, name, "v1", LEASE_MS, 5);
		assert_false(observed_dead(h, name, 0));
	}
	lockmgr_count(h->lm, &counts);
	assert_int_equal(counts.remembered, 3);
	run(h, 2 * LEASE_US);
	assert_true(observed_dead(h, "a", 0));
	assert_true(observed_dead(h, "b0", 0));
	assert_true(observed_dead(h, "b1", 0));
	assert_false(observed_dead(h, "b2", 0));
	finish(h);
}

static int	lives;

static void
count_lives(void *arg, const dynamo_item *item)
{
	(void) arg;
	assert_string_equal(item->owner, "them/1");
	lives++;
}

TEST(an_owner_lives_that_changes_its_item_for_longer_than_a_lease)
{
	harness    *h = harness_new(SIZE);

	h->host.lives = count_lives;
	start_manager(h);
	lives = 0;
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	assert_false(observed_dead(h, "a", 0));
	run(h, DEAD_US);
	foreign_hold(h, "a", "v2", LEASE_MS, 5);
	assert_false(observed_dead(h, "a", 0));
	assert_int_equal(lives, 0);

	/* A copy of a write of v2 that was late would have come by now. */
	run(h, 1);
	assert_false(observed_dead(h, "a", 0));
	assert_int_equal(lives, 0);
	foreign_hold(h, "a", "v3", LEASE_MS, 7);
	assert_false(observed_dead(h, "a", 0));
	assert_int_equal(lives, 1);

	/* Another owner begins anew, also if the item was released meanwhile. */
	foreign_release(h, "a");
	assert_false(observed_dead(h, "a", 0));
	foreign_hold(h, "a", "v4", LEASE_MS, 9);
	assert_false(observed_dead(h, "a", 0));
	assert_int_equal(lives, 1);

	/* Our own is none. */
	get(h, 0, "a2");
	run(h, 2 * DEAD_US);
	assert_int_equal(lives, 1);
	let_go(h, 0, "a2");
	settle(h);
	for (int i = 0; i < 2; i++)
	{
		foreign_hold(h, "late", i == 0 ? "v1" : "v2", LEASE_MS, 5);
		snprintf(item_of(h, "late")->owner, DYNAMO_OWNER_SIZE, OUR_OWNER);
		assert_false(observed_dead(h, "late", 0));
		run(h, 2 * DEAD_US);
	}
	assert_int_equal(lives, 1);
	delete_item(h, "late");
	finish(h);
}
