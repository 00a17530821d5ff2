/*-------------------------------------------------------------------------
 *
 * test_lockmgr_clock.c
 *	  The lock manager: the time in versions, take-overs by DynamoDB's clock.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#define AGE_US	(DEAD_US + 6 * SECOND + SECOND)	/* of a version that is dead by the clock */

static harness *
start_by_clock(void)
{
	harness    *h = harness_new(SIZE);

	h->by_clock = true;
	start_manager(h);
	return h;
}

#define CLOCK_TEST(name) LOCKMGR_TEST_WITH(name, start_by_clock())

/* A version whose write was first sent so long ago, by DynamoDB's clock. */
static const char *
version_of_age(const harness *h, int64_t age_us)
{
	static char version[UUID_SIZE];

	snprintf(version, sizeof(version), "00000000-0000-4000-8000-0123456789ab");
	uuid_put_time(version, (h->now + h->epoch_offset + h->behind - age_us + SECOND) / 1000);
	return version;
}

/* The time in a version, on our clock; 0: none. */
static int64_t
time_in(const harness *h, const char *version)
{
	int64_t		ms;

	return uuid_get_time(version, &ms) ? ms * 1000 - h->epoch_offset : 0;
}

static int64_t
time_of(harness *h, const char *name)
{
	return time_in(h, item_of(h, name)->version);
}

static const harness_call *
last_write(const harness *h, dynamo_op op)
{
	int			i = h->call_count - 1;

	while (h->calls[i].c.op != op)
		i--;
	return &h->calls[i];
}

/* The machine's clock has stood still for so long, and nobody has noticed. */
static void
stand_still(harness *h, int64_t duration)
{
	h->behind += duration;
}

/* ---- the time in versions ---- */

CLOCK_TEST(the_time_is_of_the_first_copy_and_a_second_later)
{
	int64_t		asked = h->now;

	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, 0, "a");
	run(h, 3 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_in_range(time_of(h, "a"), asked + SECOND, asked + SECOND + 999);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 2);
}

/* Not only as late as the Date of the last reply demands. */
CLOCK_TEST(the_time_of_a_renewal_is_a_second_later_too)
{
	run(h, 700 * MS);
	get(h, 0, "a");
	renew(h, 0, "a", 0);
	settle(h);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_true(time_of(h, "a") >= last_call(h)->sent + SECOND);
}

CLOCK_TEST(a_write_that_was_not_applied_gets_a_later_time)
{
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	acquire(h, 0, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(time_of(h, "a"), (last_write(h, DYNAMO_ACQUIRE)->sent + SECOND + 999) /
					 1000 * 1000);
}

CLOCK_TEST(renewals_and_hand_overs_have_a_time_and_releases_have_none)
{
	get(h, 0, "a");
	run(h, LEASE_US / 2);
	assert_true(sent(h, DYNAMO_RENEW) > 0);
	assert_true(time_of(h, "a") > h->now - LEASE_US / 2 + 2 * SECOND);
	h->ask.lease_ms = LEASE_MS / 2;
	acquire(h, 1, "a");
	let_go(h, 0, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(sent(h, DYNAMO_HAND_OVER), 1);
	assert_true(time_of(h, "a") >= h->now);
	release(h, 1, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_RELEASED);
	assert_int_equal(time_of(h, "a"), 0);
}

LOCKMGR_TEST(without_the_setting_there_is_no_time)
{
	get(h, 0, "a");
	assert_int_equal(time_of(h, "a"), 0);
}

CLOCK_TEST(entries_of_shared_mode_have_a_time)
{
	h->ask.mode = MODE_SHARED;
	get(h, 0, "a");
	assert_true(time_in(h, double_entry(double_item_of(&h->table, "a"), "1")->version) >= h->now);
	run(h, LEASE_US);
	assert_true(time_in(h, double_entry(double_item_of(&h->table, "a"), "1")->version) >=
				h->now - LEASE_US / 2);
	assert_true(holds(h, 0, "a"));
}

/* ---- how long a holder believes ---- */

CLOCK_TEST(belief_is_as_long_as_ever_if_the_clocks_agree)
{
	const saved_lease *l = get(h, 0, "a");

	assert_int_equal(l->valid_until, last_write(h, DYNAMO_ACQUIRE)->sent + LEASE_US - MARGIN_US);
	run(h, LEASE_US / 2);
	assert_int_equal(l->valid_until, last_write(h, DYNAMO_RENEW)->sent + LEASE_US - MARGIN_US);
}

CLOCK_TEST(a_time_that_is_too_early_makes_belief_short)
{
	int64_t		asked = h->now;
	const saved_lease *l;

	stand_still(h, 5 * SECOND);
	l = get(h, 0, "a");
	assert_in_range(l->valid_until, asked + LEASE_US - MARGIN_US - 5 * SECOND,
					asked + LEASE_US - MARGIN_US - 4 * SECOND + MS);
	assert_int_equal(l->lease_end, asked + LEASE_US);
}

/* The margin of who gets it next counts from there as well. */
CLOCK_TEST(a_short_belief_passes_on_as_it_is)
{
	int64_t		valid_until;

	get(h, 0, "a");
	stand_still(h, 5 * SECOND);
	acquire(h, 1, "a");
	acquire(h, 2, "a");
	let_go(h, 0, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	valid_until = saved_of(h, 1, "a")->valid_until;
	assert_true(valid_until < h->now + LEASE_US - MARGIN_US - 3 * SECOND);
	let_go(h, 1, "a");
	assert_result(h, 2, LOCKMGR_GRANTED);
	assert_int_equal(saved_of(h, 2, "a")->valid_until, valid_until);
	assert_int_equal(sent(h, DYNAMO_HAND_OVER), 1);
}

CLOCK_TEST(a_short_belief_is_shared_as_it_is)
{
	int64_t		valid_until;

	stand_still(h, 5 * SECOND);
	h->ask.mode = MODE_SHARED;
	valid_until = get(h, 0, "a")->valid_until;
	h->ask.margin_us = MARGIN_US + SECOND;
	get(h, 1, "a");
	assert_int_equal(saved_of(h, 1, "a")->valid_until, valid_until - SECOND);
}

/* c is when the copy was sent that the reply is to; the first bound is of the first copy. */
CLOCK_TEST(a_repeated_copy_counts_with_its_own_date)
{
	const saved_lease *l;
	int64_t		asked = h->now;

	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	run(h, 3 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 2);
	l = saved_of(h, 0, "a");
	assert_int_equal(l->valid_until, asked + LEASE_US - MARGIN_US);
}

CLOCK_TEST(a_machine_that_stood_still_learns_it_from_the_first_reply)
{
	const harness_call *first;

	stand_still(h, 60 * SECOND);
	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	first = last_call(h);
	apply(h, last_call(h));
	h->fate = FATE_HOLD;
	reply(h, last_call(h));
	assert_waits(h, 0);
	assert_false(holds(h, 0, "a"));
	assert_ptr_not_equal(last_call(h), first);
	h->fate = FATE_OK;
	deliver(h, last_call(h));
	run(h, 3 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_true(time_of(h, "a") >= h->now + 55 * SECOND);
}

CLOCK_TEST(a_holder_on_a_machine_that_stood_still_loses_its_lease)
{
	get(h, 0, "a");
	stand_still(h, 60 * SECOND);
	run(h, LEASE_US / 2);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_STOOD_STILL);
	assert_false(h->lost[0].has_by);
	assert_int_equal(held_by(h, 0, "a")->loss, LOSS_STOOD_STILL);
	run(h, LEASE_US / 4);
	assert_false(is_free(h, "a"));	/* its statement may still be running */
	release(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_LOST);
	run(h, SECOND);
	assert_true(is_free(h, "a"));
}

CLOCK_TEST(who_shares_a_lock_on_a_machine_that_stood_still_loses_it)
{
	h->ask.mode = MODE_SHARED;
	get(h, 0, "a");
	get(h, 1, "a");
	stand_still(h, 60 * SECOND);
	run(h, LEASE_US / 2);
	assert_int_equal(h->lost_count, 2);
	assert_int_equal(held_by(h, 1, "a")->loss, LOSS_STOOD_STILL);
}

/* Else others could take the lock over while the older belief goes on. */
CLOCK_TEST(a_renewal_has_no_earlier_time_than_its_lease_implies)
{
	get(h, 0, "a");
	h->epoch_offset -= 600 * SECOND;
	lockmgr_set_clock(h->lm, h->epoch_offset, h->epoch_offset);
	look_up(h, 1, "a");
	settle(h);
	h->behind = 600 * SECOND;
	run(h, 3 * LEASE_US);
	assert_true(sent(h, DYNAMO_RENEW) > 5);
	assert_int_equal(h->lost_count, 0);
	assert_true(holds(h, 0, "a"));
	assert_true(time_of(h, "a") >= last_write(h, DYNAMO_RENEW)->sent + 600 * SECOND);
}

CLOCK_TEST(leases_that_share_a_request_share_its_date)
{
	believe_batches(h);
	get(h, 0, "a");
	get(h, 1, "b");
	stand_still(h, 4 * SECOND);
	run(h, LEASE_US * 3 / 8);
	assert_int_equal(sent(h, DYNAMO_RENEW_BATCH), 1);
	assert_in_range(saved_of(h, 0, "a")->valid_until, h->now,
					last_write(h, DYNAMO_RENEW_BATCH)->sent + LEASE_US - MARGIN_US - 2 * SECOND);
	assert_int_equal(saved_of(h, 0, "a")->valid_until / SECOND,
					 saved_of(h, 1, "b")->valid_until / SECOND);
	assert_true(time_of(h, "b") > 0);
}

/* ---- replies without a Date ---- */

CLOCK_TEST(a_reply_without_a_date_confirms_no_write_with_a_time)
{
	char		version[UUID_SIZE];

	get(h, 1, "b");
	h->dateless = true;
	acquire(h, 0, "a");
	settle(h);
	assert_waits(h, 0);
	memcpy(version, item_of(h, "a")->version, sizeof(version));
	assert_true(time_of(h, "a") > 0);
	h->dateless = false;
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_string_equal(item_of(h, "a")->version, version);
}

/* No write is under way that it could confirm. */
CLOCK_TEST(a_poll_without_a_date_is_a_poll)
{
	h->dateless = true;
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	acquire(h, 0, "a");
	run(h, SECOND);
	assert_true(sent(h, DYNAMO_READ) > 0);
	foreign_release(h, "a");
	run(h, SECOND);
	assert_true(is_ours(h, "a"));
}

CLOCK_TEST(a_dynamodb_without_dates_works_as_if_the_setting_was_off)
{
	h->dateless = true;
	acquire(h, 0, "a");
	run(h, RETRY_US + 2 * SECOND);
	assert_failed(h, 0, DYNAMO_UNKNOWN);
	assert_string_equal(h->asked[0].message, "the reply has no Date header");
	assert_int_equal(lockmgr_get_veto(h->lm), VETO_NO_DATE);
	get(h, 1, "b");
	assert_int_equal(time_of(h, "b"), 0);
	run(h, LEASE_US);
	assert_true(holds(h, 1, "b"));
	assert_int_equal(time_of(h, "b"), 0);
}

/* The first dated reply tells how far DynamoDB's clock is ahead. */
LOCKMGR_TEST(a_lease_of_before_gets_a_time_with_its_second_dated_renewal)
{
	h->dateless = true;
	get(h, 0, "a");
	h->dateless = false;
	lockmgr_set_takeover(h->lm, true, h->slack_us);
	look_up(h, 1, "a");
	run(h, LEASE_US * 3 / 8);
	assert_int_equal(sent(h, DYNAMO_RENEW), 1);
	assert_int_equal(time_of(h, "a"), 0);
	run(h, LEASE_US * 3 / 8);
	assert_int_equal(sent(h, DYNAMO_RENEW), 2);
	assert_true(time_of(h, "a") > 0);
	lockmgr_set_takeover(h->lm, false, 0);
	run(h, LEASE_US / 2);
	assert_int_equal(time_of(h, "a"), 0);
	assert_true(holds(h, 0, "a"));
}

/* ---- another manager adopts the lease ---- */

CLOCK_TEST(a_repetition_by_the_next_manager_has_its_own_date)
{
	char		version[UUID_SIZE];
	int64_t		first_sent;

	get(h, 0, "a");
	h->fate = FATE_LOST_REPLY;
	run(h, LEASE_US * 3 / 8);
	memcpy(version, item_of(h, "a")->version, sizeof(version));
	first_sent = saved_of(h, 0, "a")->pending.first_sent;
	assert_true(first_sent != 0);
	kill_manager(h);
	h->fate = FATE_OK;
	run(h, SECOND);
	start_manager(h);
	settle(h);
	assert_true(holds(h, 0, "a"));
	assert_string_equal(saved_of(h, 0, "a")->version, version);
	assert_int_equal(saved_of(h, 0, "a")->valid_until, first_sent + LEASE_US - MARGIN_US);
}

CLOCK_TEST(an_adopted_lease_knows_what_its_last_reply_implied)
{
	get(h, 0, "a");
	kill_manager(h);
	h->epoch_offset -= 600 * SECOND;
	h->behind = 600 * SECOND;
	start_manager(h);
	run(h, 2 * LEASE_US);
	assert_true(holds(h, 0, "a"));
	assert_int_equal(h->lost_count, 0);
}

/* ---- taking over ---- */

CLOCK_TEST(a_holder_that_died_long_ago_is_taken_over_at_once)
{
	foreign_hold(h, "a", version_of_age(h, AGE_US), LEASE_MS, 5);
	acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(sent(h, DYNAMO_READ), 0);
	assert_true(held_by(h, 0, "a")->token > 5);
}

CLOCK_TEST(a_try_gets_it_too)
{
	foreign_hold(h, "a", version_of_age(h, AGE_US), LEASE_MS, 5);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

CLOCK_TEST(a_holder_is_alive_until_lease_and_slack_are_over)
{
	foreign_hold(h, "a", version_of_age(h, AGE_US - SECOND - 3 * SECOND), LEASE_MS, 5);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
	acquire(h, 0, "a");
	run(h, 2 * SECOND);
	assert_waits(h, 0);
	run(h, 4 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

CLOCK_TEST(the_slack_is_a_setting)
{
	lockmgr_set_takeover(h->lm, true, 8 * SECOND);
	foreign_hold(h, "a", version_of_age(h, AGE_US), LEASE_MS, 5);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
	lockmgr_set_takeover(h->lm, true, 5 * SECOND);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

CLOCK_TEST(who_waits_first_waits_no_longer_than_by_our_own_clock)
{
	foreign_hold(h, "a", version_of_age(h, -3600 * SECOND), LEASE_MS, 5);
	acquire(h, 0, "a");
	run(h, DEAD_US);
	assert_waits(h, 0);
	run(h, SECOND / 10);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(without_the_setting_no_time_is_trusted)
{
	foreign_hold(h, "a", version_of_age(h, 60 * AGE_US), LEASE_MS, 5);
	acquire(h, 0, "a");
	run(h, DEAD_US);
	assert_waits(h, 0);
	run(h, SECOND / 10);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

CLOCK_TEST(another_clients_version_has_no_time)
{
	static const char *const versions[] = {
		"00000000-0000-4ddb-8000-0123456789ab", "00000000-0000-8ddb-c000-0123456789ab",
		"00000000-0000-8DDB-8000-0123456789ab", "00000000-0000-8ddb-8000-0123456789ab ",
		"00000000-0000-8ddb-8000-0123456789a", "x",
	};

	for (uint32_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
	{
		foreign_hold(h, lock_name(i), versions[i], LEASE_MS, 5);
		try_acquire(h, i, lock_name(i));
		settle(h);
		assert_result(h, i, LOCKMGR_BUSY);
	}
}

CLOCK_TEST(a_reply_without_a_date_takes_nothing_over)
{
	foreign_hold(h, "a", version_of_age(h, AGE_US), LEASE_MS, 5);
	h->dateless = true;
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
}

/* What a listing shows later is judged by what we know of that version. */
CLOCK_TEST(once_dead_a_version_stays_dead)
{
	foreign_hold(h, "a", version_of_age(h, AGE_US), LEASE_MS, 5);
	look_up(h, 0, "a");
	settle(h);
	h->dateless = true;
	assert_true(lockmgr_observe(h->lm, h->now, h->now, "a", 1, item_of(h, "a"), NULL));
	foreign_hold(h, "a", version_of_age(h, 0), LEASE_MS, 5);
	assert_false(lockmgr_observe(h->lm, h->now, h->now, "a", 1, item_of(h, "a"), NULL));
}

/* A Date counts for what its own reply shows. */
CLOCK_TEST(a_listing_has_no_date)
{
	look_up(h, 0, "b");
	settle(h);
	foreign_hold(h, "a", version_of_age(h, AGE_US), LEASE_MS, 5);
	assert_false(lockmgr_observe(h->lm, h->now, h->now, "a", 1, item_of(h, "a"), NULL));
}

CLOCK_TEST(after_a_refused_take_over_the_next_poll_is_consistent)
{
	foreign_hold(h, "a", version_of_age(h, AGE_US), LEASE_MS, 5);
	next_fate(h, FATE_OK);
	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	settle(h);
	foreign_hold(h, "a", version_of_age(h, 0), LEASE_MS, 5);
	assert_int_equal(last_call(h)->c.op, DYNAMO_ACQUIRE);
	h->fate = FATE_HOLD;
	deliver(h, last_call(h));
	run(h, SECOND);
	assert_int_equal(last_call(h)->c.op, DYNAMO_READ);
	assert_false(last_call(h)->writes[0].write.maybe_stale);
	deliver(h, last_call(h));
	run(h, SECOND);
	assert_int_equal(last_call(h)->c.op, DYNAMO_READ);
	assert_true(last_call(h)->writes[0].write.maybe_stale);
	assert_waits(h, 0);
	h->fate = FATE_OK;
	deliver(h, last_call(h));
}

CLOCK_TEST(a_dead_cluster_that_shares_is_left_out_at_once)
{
	foreign_entry(h, "a", version_of_age(h, AGE_US), 1, MODE_SHARED);
	foreign_entry(h, "b", version_of_age(h, AGE_US), 1, MODE_SEMAPHORE);
	get(h, 0, "a");
	h->ask.mode = MODE_SEMAPHORE;
	get(h, 1, "b");
	assert_int_equal(double_item_of(&h->table, "b")->shared->count, 1);
}

CLOCK_TEST(one_living_cluster_that_shares_keeps_us_out)
{
	foreign_entry(h, "a", version_of_age(h, AGE_US), 1, MODE_SHARED);
	foreign_entry(h, "a", version_of_age(h, DEAD_US / 2), 1, MODE_SHARED);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
}

/* ---- veto ---- */

static void
assert_vetoed(harness *h)
{
	foreign_hold(h, "a", version_of_age(h, AGE_US), LEASE_MS, 5);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
	assert_int_equal(lockmgr_get_veto(h->lm), VETO_WALL_CLOCK);
	get(h, 1, "b");
	assert_int_equal(time_of(h, "b"), 0);

	h->wall_error = 0;
	look_up(h, 0, "a");
	settle(h);
	assert_int_equal(lockmgr_get_veto(h->lm), VETO_NONE);
	get(h, 0, "a");
	assert_true(time_of(h, "a") > 0);
}

CLOCK_TEST(a_date_far_ahead_of_the_wall_clock_is_not_used)
{
	h->wall_error = -7 * SECOND;
	assert_vetoed(h);
}

CLOCK_TEST(a_date_far_behind_the_wall_clock_is_not_used)
{
	h->wall_error = 7 * SECOND;
	assert_vetoed(h);
}

/* As microseconds, the first one wraps around to the right time. */
CLOCK_TEST(a_date_that_no_clock_shows_is_none)
{
	static const int64_t errors_s[] = {
		INT64_C(18446744073710), INT64_C(60000000000000000), INT64_C(300000000000),
	};

	for (size_t i = 0; i < COUNT_OF(errors_s); i++)
	{
		foreign_hold(h, "a", version_of_age(h, AGE_US), LEASE_MS, 5);
		h->date_error_s = errors_s[i];
		try_acquire(h, 0, "a");
		settle(h);
		assert_result(h, 0, LOCKMGR_BUSY);
		assert_int_equal(lockmgr_get_veto(h->lm), VETO_NO_DATE);
	}
	h->date_error_s = 0;
}

CLOCK_TEST(a_small_difference_is_no_veto)
{
	h->wall_error = -h->slack_us;
	foreign_hold(h, "a", version_of_age(h, AGE_US), LEASE_MS, 5);
	get(h, 0, "a");
	h->wall_error = h->slack_us;	/* a Date may be behind by another second */
	foreign_hold(h, "b", version_of_age(h, AGE_US), LEASE_MS, 5);
	get(h, 1, "b");
	assert_true(time_of(h, "b") > 0);
}

/* A reply that was long on its way is none either. */
CLOCK_TEST(a_slow_reply_is_no_veto)
{
	next_fate(h, FATE_HOLD);
	look_up(h, 0, "a");
	apply(h, last_call(h));
	run(h, 8 * SECOND);
	reply(h, last_call(h));
	assert_int_equal(lockmgr_get_veto(h->lm), VETO_NONE);
}

LOCKMGR_TEST(without_the_setting_there_is_no_veto)
{
	h->wall_error = 600 * SECOND;
	get(h, 0, "a");
	assert_int_equal(lockmgr_get_veto(h->lm), VETO_NONE);
}
