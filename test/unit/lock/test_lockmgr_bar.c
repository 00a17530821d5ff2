/*-------------------------------------------------------------------------
 *
 * test_lockmgr_bar.c
 *	  An acquire that may arrive late is barred, and what has arrived is released.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

/* Another cluster's lease on "a", with a token far below ours. */
static void
foreign(harness *h)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
}

/* An item of "a" that somebody has released. */
static void
item_of_old(harness *h)
{
	foreign(h);
	foreign_release(h, "a");
}

/* The session's acquire of "a" is sent, is under way, and the session gives up. */
static harness_call *
send_and_give_up(harness *h, uint32_t slot)
{
	harness_call *late;

	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, slot, "a");
	late = last_call(h);
	assert_int_equal(late->c.op, DYNAMO_ACQUIRE);
	cancel(h, slot);
	run(h, 2 * SECOND);
	return late;
}

static void
assert_barred(harness *h, const harness_call *late)
{
	assert_true(item_of(h, "a")->token >= late->writes[0].write.first_token);
}

static uint32_t
bars_of(const harness *h)
{
	uint32_t	count = 0;

	for (uint32_t i = 0; i < h->config.max_leases; i++)
		count += h->saved[i].state == LEASE_BARRING;
	return count;
}

LOCKMGR_TEST(a_cancelled_acquire_that_arrives_late_gets_nothing)
{
	harness_call *late;

	item_of_old(h);
	late = send_and_give_up(h, 0);
	assert_barred(h, late);
	apply(h, late);
	assert_true(is_free(h, "a"));
	assert_int_equal(bars_of(h), 0);
}

LOCKMGR_TEST(where_there_is_no_item_the_bar_makes_one)
{
	harness_call *late = send_and_give_up(h, 0);

	assert_int_equal(last_call(h)->c.op, DYNAMO_BAR_NEW);
	assert_true(item_of(h, "a")->exists);
	assert_int_equal(item_of(h, "a")->lease_ms, LEASE_MS);
	assert_int_equal(item_of(h, "a")->released_at, date_now(h) - 1);
	assert_barred(h, late);
	apply(h, late);
	assert_true(is_free(h, "a"));
	get(h, 1, "a");
}

LOCKMGR_TEST(an_acquire_that_makes_no_item_needs_none)
{
	harness_call *late;

	h->ask.must_exist = true;
	late = send_and_give_up(h, 0);
	assert_int_equal(last_call(h)->c.op, DYNAMO_BAR);
	assert_false(item_of(h, "a")->exists);
	assert_int_equal(bars_of(h), 0);
	apply(h, late);
	assert_false(item_of(h, "a")->exists);
}

/* Whoever holds the item. */
LOCKMGR_TEST(a_bar_changes_nothing_but_the_token)
{
	harness_call *late;
	dynamo_item before;

	foreign(h);
	before = *item_of(h, "a");
	late = send_and_give_up(h, 0);
	assert_barred(h, late);
	before.token = item_of(h, "a")->token;
	assert_memory_equal(&before, item_of(h, "a"), sizeof(before));
	foreign_release(h, "a");
	apply(h, late);
	assert_true(is_free(h, "a"));
}

/* Its second copy is refused while the first one is under way. */
LOCKMGR_TEST(a_try_that_is_answered_busy_is_barred)
{
	harness_call *late;

	foreign(h);
	next_fate(h, FATE_LOST_REQUEST);
	try_acquire(h, 0, "a");
	late = last_call(h);
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_BUSY);
	assert_barred(h, late);
	foreign_release(h, "a");
	apply(h, late);
	assert_true(is_free(h, "a"));
}

/* It says that it is ours. */
LOCKMGR_TEST(what_we_have_released_has_not_arrived)
{
	harness_call *late;

	get(h, 0, "a");
	release(h, 0, "a");
	settle(h);
	late = send_and_give_up(h, 0);
	assert_barred(h, late);
	assert_int_equal(bars_of(h), 0);
	assert_int_equal(sent(h, DYNAMO_RELEASE), 1);
}

LOCKMGR_TEST(what_fails_is_barred)
{
	harness_call *late;

	item_of_old(h);
	h->fate = FATE_LOST_REQUEST;
	acquire(h, 0, "a");
	late = last_call(h);
	run(h, RETRY_US + 2 * SECOND);
	assert_failed(h, 0, DYNAMO_UNKNOWN);
	assert_int_equal(bars_of(h), 1);
	h->fate = FATE_OK;
	run(h, 3 * SECOND);
	assert_barred(h, late);
	assert_int_equal(bars_of(h), 0);
	apply(h, late);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(an_acquire_that_meets_a_bad_item_is_barred)
{
	harness_call *late;

	foreign(h);
	item_of(h, "a")->wrong = "bad";
	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, 0, "a");
	late = last_call(h);
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_BAD_ITEM);
	assert_barred(h, late);
}

/* A single copy whose end is known needs no bar, nor does one that the item keeps out. */
LOCKMGR_TEST(what_cannot_be_applied_is_not_barred)
{
	foreign(h);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);

	foreign_hold(h, "a", "v2", LEASE_MS, h->now + h->epoch_offset + LEASE_US);
	next_fate(h, FATE_LOST_REQUEST);
	try_acquire(h, 0, "a");
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_BUSY);

	foreign_hold(h, "c", "v1", LEASE_MS, 0);
	item_of(h, "c")->has_token = item_of(h, "c")->bad_token = true;
	next_fate(h, FATE_LOST_REQUEST);
	try_acquire(h, 0, "c");
	run(h, 2 * SECOND);
	assert_true(h->asked[0].answered);

	next_fate(h, fate_of(DYNAMO_THROTTLED));
	acquire(h, 0, "b");
	cancel(h, 0);
	run(h, SECOND);
	assert_int_equal(sent(h, DYNAMO_BAR), 0);
}

/* ... and its token is above, so it is the bar. */
LOCKMGR_TEST(the_next_session_does_not_wait_for_the_bar)
{
	harness_call *late;
	harness_call *bar;

	item_of_old(h);
	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, 0, "a");
	late = last_call(h);
	acquire(h, 1, "a");
	cancel(h, 0);
	next_fate(h, FATE_HOLD);
	run(h, 2 * SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
	bar = &h->calls[1];
	if (bar->c.op != DYNAMO_BAR)
		bar = &h->calls[2];
	assert_true(h->asked[1].answer.grant.token > late->writes[0].write.last_token);
	assert_int_equal(bars_of(h), 0);
	release(h, 1, "a");
	settle(h);
	apply(h, late);
	assert_true(is_free(h, "a"));
	if (!bar->answered)
		deliver(h, bar);
}

/* The reservation counts, not the grant. */
/* Until then it wants no waking. */
LOCKMGR_TEST(a_bar_waits_for_a_free_call)
{
	harness_call *other;

	kill_manager(h);
	h->config.max_calls = 1;
	start_manager(h);
	next_fate(h, FATE_LOST_REQUEST);
	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	acquire(h, 1, "b");
	cancel(h, 0);
	run(h, 2 * SECOND);
	other = last_call(h);
	assert_string_equal(other->writes[0].name, "b");
	assert_int_equal(bars_of(h), 1);
	deliver(h, other);
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(bars_of(h), 0);
}

LOCKMGR_TEST(tokens_are_above_those_of_writes_that_were_given_up)
{
	int64_t		first;

	next_fate(h, fate_of(DYNAMO_THROTTLED));
	acquire(h, 0, "a");
	first = last_call(h)->writes[0].write.last_token;
	run(h, MS / 2);
	h->epoch_offset -= SECOND;	/* the estimate of DynamoDB's clock is corrected */
	lockmgr_set_clock(h->lm, h->epoch_offset, h->epoch_offset);
	run(h, SECOND / 2);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_true(h->asked[0].answer.grant.token > first);
}

/* The merged bar has the highest tokens, and releases whichever has arrived. */
LOCKMGR_TEST(the_bars_of_a_lock_merge)
{
	harness_call *late[3];

	item_of_old(h);
	h->fate = FATE_LOST_REQUEST;
	for (uint32_t i = 0; i < 3; i++)
	{
		acquire(h, i, "a");
		while (last_call(h)->c.op != DYNAMO_ACQUIRE || last_call(h)->answered)
			run(h, MS);
		late[i] = last_call(h);
		cancel(h, i);
		run(h, 2 * SECOND);
		assert_int_equal(bars_of(h), 1);
	}
	apply(h, late[0]);
	assert_true(is_ours(h, "a"));
	h->fate = FATE_OK;
	run(h, 2 * SECOND);
	assert_true(is_free(h, "a"));
	assert_barred(h, late[2]);
	assert_int_equal(bars_of(h), 0);
}

/* The one that was given up last, or first, makes no item, but the other one would. */
LOCKMGR_TEST(a_bar_that_merges_makes_an_item_for_any_of_them)
{
	for (uint32_t makes = 0; makes < 2; makes++)
	{
		const char *name = makes == 0 ? "a" : "b";
		int			late = 0;

		h->fate = FATE_LOST_REQUEST;
		for (uint32_t i = 0; i < 2; i++)
		{
			h->ask.must_exist = i != makes;
			acquire(h, i, name);
			if (i == makes)
				late = h->call_count - 1;
			cancel(h, i);
			run(h, 2 * SECOND);
			assert_int_equal(bars_of(h), 1);
		}
		h->fate = FATE_OK;
		run(h, 3 * SECOND);
		assert_int_equal(bars_of(h), 0);
		assert_int_equal(h->calls[late].c.op, DYNAMO_ACQUIRE);
		apply(h, &h->calls[late]);
		assert_true(is_free(h, name));
	}
}

/* Another cluster makes one, which the refusal does not show. */
LOCKMGR_TEST(a_bar_that_finds_an_item_when_it_reads_is_repeated)
{
	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, 0, "a");
	cancel(h, 0);
	next_fate(h, FATE_OK);
	next_fate(h, FATE_HOLD);
	while (last_call(h)->c.op != DYNAMO_BAR_NEW)
		run(h, MS);
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	fail_call(h, last_call(h), DYNAMO_CONDITION_FAILED);
	run(h, 3 * SECOND);
	assert_int_equal(sent(h, DYNAMO_BAR), 2);
	assert_int_equal(bars_of(h), 0);
	assert_barred(h, &h->calls[0]);
}

/* The first call may arrive late; its bar and the next session's acquire are on their way. */
static void
bar_beside_an_acquire(harness *h, harness_call **bar, harness_call **next)
{
	item_of_old(h);
	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, 0, "a");
	cancel(h, 0);
	next_fate(h, FATE_HOLD);
	while (last_call(h)->c.op != DYNAMO_BAR)
		run(h, MS);
	*bar = last_call(h);
	next_fate(h, FATE_HOLD);
	acquire(h, 1, "a");
	run(h, SECOND);
	*next = last_call(h);
	assert_int_equal((*next)->c.op, DYNAMO_ACQUIRE);
}

LOCKMGR_TEST(a_bar_releases_what_has_arrived_beside_the_next_acquire)
{
	harness_call *bar;
	harness_call *next;

	bar_beside_an_acquire(h, &bar, &next);
	apply(h, &h->calls[0]);
	deliver(h, bar);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
	settle(h);
	assert_true(is_free(h, "a"));
	deliver(h, next);
	run(h, SECOND);
	assert_true(holds(h, 1, "a"));
}

LOCKMGR_TEST(a_bar_that_meets_one_version_after_the_other_takes_its_time)
{
	item_of_old(h);
	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, 0, "a");
	cancel(h, 0);
	apply(h, &h->calls[0]);
	for (int i = 0; i < 3000; i++)
	{
		snprintf(item_of(h, "a")->version, DYNAMO_VERSION_SIZE, "version %d", i);
		run(h, MS);
	}
	assert_in_range(sent(h, DYNAMO_RELEASE), 2, 20);
	run(h, 10 * SECOND);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_bar_that_fails_is_repeated_soon_and_then_later)
{
	int64_t		first;

	item_of_old(h);
	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, 0, "a");
	cancel(h, 0);
	h->fate = fate_of(DYNAMO_THROTTLED);
	while (sent(h, DYNAMO_BAR) < 1)
		run(h, MS);
	first = h->now;
	while (sent(h, DYNAMO_BAR) < 5)
		run(h, MS);
	assert_true(h->now - first < (1 + 2 + 4 + 8) * BACKOFF_BASE_US + 10 * LATENCY_US);
	run(h, 10 * SECOND);
	assert_in_range(sent(h, DYNAMO_BAR), 12, 40);
	h->fate = FATE_OK;
	run(h, SECOND);
	assert_int_equal(bars_of(h), 0);
}

/* The bar meets the acquire under way, which is nobody's business but its own. */
LOCKMGR_TEST(a_bar_does_not_release_the_next_acquire)
{
	harness_call *next;
	harness_call *bar;

	bar_beside_an_acquire(h, &bar, &next);
	apply(h, next);
	deliver(h, bar);
	settle(h);
	assert_true(is_ours(h, "a"));
	reply(h, next);
	assert_true(holds(h, 1, "a"));
}

LOCKMGR_TEST(a_minimum_of_nobody_ends)
{
	h->ask.at_least_ms = 60000;
	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	run(h, SECOND / 2);
	cancel(h, 0);
	run(h, 2 * SECOND);
	assert_true(is_free(h, "a"));
	assert_int_equal(item_of(h, "a")->kept_until_ms, 0);
}

/* The release of its lease was given up, so the bar finds that. */
LOCKMGR_TEST(a_minimum_of_an_earlier_holder_stays)
{
	int64_t		kept;

	h->ask.at_least_ms = 3600000;
	get(h, 0, "a");
	kept = item_of(h, "a")->kept_until_ms;
	h->ask.at_least_ms = 0;
	h->fate = FATE_LOST_REQUEST;
	let_go(h, 0, "a");
	run(h, LEASE_US + LATE_US + 4 * SECOND);
	assert_int_equal(bars_of(h), 0);
	acquire(h, 1, "a");
	cancel(h, 1);
	run(h, SECOND + MS);
	h->fate = FATE_OK;
	run(h, 3 * SECOND);
	assert_true(is_free(h, "a"));
	assert_int_equal(item_of(h, "a")->kept_until_ms, kept);
	assert_int_equal(bars_of(h), 0);
}

/* A copy of the acquire is under way; whatever becomes of the worker, the next one bars it. */
LOCKMGR_TEST(the_next_worker_goes_on)
{
	harness_call *late;

	item_of_old(h);
	h->fate = FATE_LOST_REQUEST;
	acquire(h, 0, "a");
	late = last_call(h);
	run(h, SECOND / 2);
	cancel(h, 0);
	run(h, SECOND);
	assert_int_equal(bars_of(h), 1);
	kill_manager(h);
	h->fate = FATE_OK;
	start_manager(h);
	run(h, SECOND);
	assert_barred(h, late);
	assert_int_equal(bars_of(h), 0);
}

/*
 * The worker died when it had merged two bars, before it freed the older one's lease, which is
 * adopted last; and the older acquire has arrived.
 */
LOCKMGR_TEST(the_next_worker_merges_bars_in_any_order)
{
	harness_call *late[2];
	saved_lease older = {0};

	item_of_old(h);
	h->fate = FATE_LOST_REQUEST;
	for (uint32_t i = 0; i < 2; i++)
	{
		acquire(h, i, "a");
		late[i] = last_call(h);
		assert_int_equal(late[i]->c.op, DYNAMO_ACQUIRE);
		cancel(h, i);
		run(h, 2 * SECOND);
		if (i == 0)
			older = h->saved[lease_on(h, "a")];
	}
	assert_int_equal(older.state, LEASE_BARRING);
	kill_manager(h);
	h->saved[SIZE - 1] = older;
	strcpy(h->saved_name[SIZE - 1], "a");
	apply(h, late[0]);
	h->fate = FATE_OK;
	start_manager(h);
	run(h, SECOND);
	assert_int_equal(bars_of(h), 0);
	assert_true(is_free(h, "a"));
	apply(h, late[1]);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_bar_is_given_up_when_no_copy_can_arrive)
{
	int			calls;

	h->fate = FATE_LOST_REQUEST;
	acquire(h, 0, "a");
	cancel(h, 0);
	run(h, LATE_US);
	assert_int_equal(bars_of(h), 1);
	run(h, 5 * SECOND);
	assert_int_equal(bars_of(h), 0);
	calls = h->call_count;
	run(h, LEASE_US);
	assert_int_equal(h->call_count, calls);
}

/* Else the lock might be held for nobody. */
LOCKMGR_TEST_WITH(a_bar_takes_the_room_of_its_lease, harness_new(2))
{
	start_manager(h);
	h->fate = FATE_LOST_REQUEST;
	acquire(h, 0, "a");
	cancel(h, 0);
	run(h, 2 * SECOND);
	assert_int_equal(bars_of(h), 1);
	acquire(h, 0, "b");
	acquire(h, 1, "c");
	assert_result(h, 1, LOCKMGR_NO_ROOM);
	h->fate = FATE_OK;
	run(h, 3 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	get(h, 1, "c");
}

/* ---- hand-over and deletion ---- */

LOCKMGR_TEST(a_hand_over_lowers_no_bar)
{
	int64_t		token;

	get(h, 0, "a");
	acquire(h, 1, "a");
	token = h->now + h->epoch_offset + LEASE_US;
	item_of(h, "a")->token = token;
	release(h, 0, "a");
	run(h, SECOND);
	assert_int_equal(sent(h, DYNAMO_HAND_OVER), 1);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 2);	/* the second is above the bar at once */
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_true(h->asked[1].answer.grant.token > token);
}

/* What outlasts both leases is released, not left to the next one. */
LOCKMGR_TEST(a_hand_over_that_is_given_up_is_released)
{
	harness_call *late;

	get(h, 0, "a");
	acquire(h, 1, "a");
	h->fate = FATE_LOST_REQUEST;
	release(h, 0, "a");
	late = last_call(h);
	assert_int_equal(late->c.op, DYNAMO_HAND_OVER);
	run(h, 2 * LEASE_US);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
	apply(h, late);
	assert_true(is_ours(h, "a"));
	h->fate = FATE_OK;
	run(h, 3 * SECOND);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(an_item_with_a_bar_is_not_deleted)
{
	h->ask.deletes_item = true;
	get(h, 0, "a");
	release(h, 0, "a");
	settle(h);
	item_of(h, "a")->token++;
	run(h, 30 * SECOND);
	assert_int_equal(sent(h, DYNAMO_DELETE), 1);
	assert_true(item_of(h, "a")->exists);
}

/* ---- shared mode ---- */

static harness *
start_shared(void)
{
	harness    *h = harness_start();

	h->ask.mode = MODE_SHARED;
	return h;
}

/* The first one's opening. */
LOCKMGR_TEST_WITH(a_late_opening_is_barred_or_released, start_shared())
{
	harness_call *late = send_and_give_up(h, 0);

	assert_barred(h, late);
	apply(h, late);
	assert_true(is_free(h, "a"));

	h->fate = FATE_LOST_REPLY;
	acquire(h, 1, "a");
	run(h, SECOND / 2);
	cancel(h, 1);
	assert_false(is_free(h, "a"));
	h->fate = FATE_OK;
	run(h, 2 * SECOND);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST_WITH(a_late_join_is_barred_or_leaves, start_shared())
{
	harness_call *late;
	const double_item *found = double_item_of(&h->table, "a");

	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	look_up(h, 0, "a");
	settle(h);
	late = send_and_give_up(h, 0);
	assert_int_equal(late->writes[0].shared.kind, DYNAMO_SHARED_JOIN);
	assert_barred(h, late);
	apply(h, late);
	assert_int_equal(found->shared->count, 1);

	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 1, "a");
	run(h, SECOND / 2);
	assert_int_equal(found->shared->count, 2);
	cancel(h, 1);
	run(h, 2 * SECOND);
	assert_int_equal(found->shared->count, 1);
	assert_int_equal(found->shared->total, 1);
	assert_string_equal(found->shared->entries[0].version, "v1");
}

/* Whoever joined meanwhile has left, so the other form is right. */
LOCKMGR_TEST_WITH(who_has_arrived_late_and_alone_releases, start_shared())
{
	double_item *found = double_item_of(&h->table, "a");
	harness_call *leave;

	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	look_up(h, 0, "a");
	settle(h);
	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	run(h, SECOND / 2);
	cancel(h, 0);
	next_fate(h, FATE_OK);
	next_fate(h, FATE_HOLD);
	run(h, SECOND);
	leave = last_call(h);
	assert_int_equal(leave->writes[0].shared.kind, DYNAMO_SHARED_LEAVE);
	double_remove_entry(found, "them1");
	deliver(h, leave);
	run(h, SECOND);
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_LAST);
	assert_true(is_free(h, "a"));
}

/* No item, no epoch: nothing can join. */
LOCKMGR_TEST_WITH(a_join_without_an_item_is_settled, start_shared())
{
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	look_up(h, 0, "a");
	settle(h);
	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, 0, "a");
	cancel(h, 0);
	delete_item(h, "a");
	double_item_of(&h->table, "a")->shared->current = false;
	run(h, 2 * SECOND);
	assert_int_equal(sent(h, DYNAMO_BAR), 1);
	assert_int_equal(sent(h, DYNAMO_BAR_NEW), 0);
	assert_int_equal(bars_of(h), 0);
}

/* The reply has no entry but ours, as if nobody could read the other one. */
static void
deliver_unreadable(harness *h, harness_call *call)
{
	dynamo_shared *shared;

	apply(h, call);
	shared = call->results[0].shared;
	if (shared != NULL && shared->count == 2)
	{
		shared->entries[0] = shared->entries[1];
		shared->count = 1;
	}
	reply(h, call);
}

LOCKMGR_TEST_WITH(if_one_form_is_refused_the_other_one_is_right_whatever_we_can_read, start_shared())
{
	double_item *found = double_item_of(&h->table, "a");

	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	look_up(h, 0, "a");
	settle(h);
	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	run(h, SECOND / 2);
	h->fate = FATE_HOLD;
	cancel(h, 0);
	run(h, SECOND);
	deliver_unreadable(h, last_call(h));
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_LAST);
	deliver_unreadable(h, last_call(h));
	run(h, SECOND);
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_LEAVE);
	deliver_unreadable(h, last_call(h));
	assert_int_equal(found->shared->count, 1);
	assert_int_equal(bars_of(h), 0);
}
