/*-------------------------------------------------------------------------
 *
 * test_lockmgr_acquire.c
 *	  Acquiring a lock that is free, held, or a dead holder's; tokens; tries.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo.h"
#include "base/backoff.h"
#include "lockmgr_harness.h"

LOCKMGR_TEST(a_free_lock_takes_one_call)
{
	int64_t		asked = h->now;
	const lockmgr_answer *answer = &h->asked[0].answer;

	h->data = "payload";
	get(h, 0, "a");
	assert_int_equal(h->call_count, 1);
	assert_int_equal(answer->grant.valid_until, asked + LEASE_US - MARGIN_US);
	assert_int_equal(answer->grant.token, asked + h->epoch_offset);
	assert_string_equal(item_of(h, "a")->owner, OUR_OWNER);
	assert_int_equal(item_of(h, "a")->lease_ms, LEASE_MS);
	assert_int_equal(item_of(h, "a")->token, answer->grant.token);
	assert_string_equal(item_of(h, "a")->holder.database, "db");
	assert_int_equal(item_of(h, "a")->holder.since_ms, (asked + h->epoch_offset) / 1000);
	assert_memory_equal(double_item_of(&h->table, "a")->data, "payload", 7);
}

LOCKMGR_TEST(the_deadline_counts_from_before_sending)
{
	int64_t		asked = h->now;

	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	run(h, 3 * SECOND);
	deliver(h, last_call(h));
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(h->asked[0].answer.grant.valid_until, asked + LEASE_US - MARGIN_US);
}

LOCKMGR_TEST(an_acquire_that_is_settled_too_late_grants_nothing_and_is_handed_on)
{
	h->ask.role_max_leases = 1; /* it counts once */
	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	run(h, LEASE_US - MARGIN_US);
	deliver(h, last_call(h));
	assert_waits(h, 0);
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_true(holds(h, 0, "a"));
}

LOCKMGR_TEST(waiters_are_served_in_order)
{
	get(h, 5, "a");
	for (uint32_t i = 0; i < 5; i++)
		acquire(h, 4 - i, "a");
	for (uint32_t i = 0; i < 5; i++)
	{
		for (uint32_t j = i; j < 5; j++)
			assert_waits(h, 4 - j);
		let_go(h, i == 0 ? 5 : 5 - i, "a");
		run(h, SECOND / 5);		/* the run of hand-overs may end */
		assert_result(h, 4 - i, LOCKMGR_GRANTED);
	}
}

LOCKMGR_TEST(a_foreign_holder_is_waited_for)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	acquire(h, 0, "a");
	settle(h);
	assert_waits(h, 0);
	assert_true(h->watches[h->asked[0].watch].held);
	assert_false(h->watches[h->asked[0].watch].local);
	assert_string_equal(h->watches[h->asked[0].watch].owner, "them/1");
	assert_int_equal(h->watches[h->asked[0].watch].first_seen, h->calls[0].sent + LATENCY_US);

	/* Who has it next may have the same token, or none. */
	foreign_hold(h, "a", "v2", LEASE_MS, 5);
	snprintf(item_of(h, "a")->owner, DYNAMO_OWNER_SIZE, "them/2");
	run(h, SECOND);
	assert_string_equal(h->watches[h->asked[0].watch].owner, "them/2");

	foreign_release(h, "a");
	run(h, SECOND / 10);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 2);
}

/* When the lock has been ours since, who waits is not told of that holder. */
LOCKMGR_TEST(a_dead_holder_is_not_shown)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	acquire(h, 0, "a");
	run(h, DEAD_US + SECOND);
	assert_true(holds(h, 0, "a"));
	next_fate(h, FATE_HOLD);
	let_go(h, 0, "a");
	acquire(h, 1, "a");
	assert_false(h->watches[h->asked[1].watch].held);
	deliver(h, last_call(h));
}

/* Amazon's client allows a lease of 2^63-1 ms, which never expires. */
LOCKMGR_TEST(a_lease_of_ages_is_waited_for)
{
	foreign_hold(h, "a", "v1", DURATION_MAX_MS, 5);
	acquire(h, 0, "a");
	run(h, 100 * SECOND);
	assert_waits(h, 0);
	assert_true(h->watches[h->asked[0].watch].held);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 1);
	foreign_release(h, "a");
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(polls_grow_apart_and_never_come_after_the_moment_of_death)
{
	int64_t		start = h->now;
	int			reads;

	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	acquire(h, 0, "a");
	run(h, 2 * SECOND);
	reads = sent(h, DYNAMO_READ);
	assert_in_range(reads, 30, 90);
	for (int i = 1; i < h->call_count; i++)
	{
		int64_t		gap = h->calls[i].sent - h->calls[i - 1].sent;
		int64_t		bound = (h->calls[i].sent - start) / 20;

		assert_true(gap <= (bound > 20 * MS ? bound : 20 * MS) + LATENCY_US + 1);
	}
	run_until(h, start + LATENCY_US + DEAD_US - 1);
	assert_in_range(sent(h, DYNAMO_READ), 60, 140);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 1);
	assert_waits(h, 0);

	/* It is dead: taken over without another poll. */
	reads = sent(h, DYNAMO_READ);
	run(h, 1);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 2);
	assert_int_equal(sent(h, DYNAMO_READ), reads);
	assert_string_equal(last_call(h)->writes[0].expected, "v1");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(the_poll_interval_bounds_what_a_long_wait_costs)
{
	foreign_hold(h, "a", "v1", 1000 * LEASE_MS, 5);
	acquire(h, 0, "a");
	run(h, 60 * SECOND);
	for (int a_second = 1; a_second <= 4; a_second += 3)
	{
		int			reads = sent(h, DYNAMO_READ);

		lockmgr_set_timeouts(h->lm, ATTEMPT_US, RETRY_US, SECOND / a_second);
		run(h, 60 * SECOND);
		assert_in_range(sent(h, DYNAMO_READ) - reads, 59 * a_second, 81 * a_second);
	}
}

/* What a session asks to see is true; a poll leads to conditional writes only. */
LOCKMGR_TEST(polls_may_be_stale_and_look_ups_not)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	acquire(h, 0, "a");
	run(h, SECOND);
	assert_int_equal(last_call(h)->c.op, DYNAMO_READ);
	assert_true(last_call(h)->writes[0].write.maybe_stale);
	look_up(h, 1, "a");
	assert_int_equal(last_call(h)->c.op, DYNAMO_READ);
	assert_false(last_call(h)->writes[0].write.maybe_stale);
}

/* Whether its holder changes more often than it is polled, or less often. */
TEST(a_busy_lock_is_polled_twenty_times_a_second)
{
	const int64_t hold_us[] = {10 * MS, 200 * MS, 1500 * MS};

	for (int i = 0; i < 3; i++)
	{
		harness    *h = harness_start();
		char		version[16];
		int			token = 5;
		int			reads;
		int64_t		start;

		foreign_hold(h, "a", "v1", LEASE_MS, token);
		acquire(h, 0, "a");
		run(h, 18 * SECOND);
		foreign_hold(h, "a", "v2", LEASE_MS, ++token);
		run(h, SECOND);
		reads = sent(h, DYNAMO_READ);
		start = h->now;
		while (h->now < start + 9 * SECOND)
		{
			snprintf(version, sizeof(version), "w%d", token);
			foreign_hold(h, "a", version, LEASE_MS, ++token);
			run(h, hold_us[i]);
		}
		assert_in_range(sent(h, DYNAMO_READ) - reads, 9 * 18, 9 * 26);
		finish(h);
	}
}

LOCKMGR_TEST(a_renewing_holder_does_not_die)
{
	char		version[16];

	foreign_hold(h, "a", "v0", LEASE_MS, 5);
	acquire(h, 0, "a");
	for (int i = 1; i < 10; i++)
	{
		run(h, LEASE_US * 95 / 100);
		snprintf(version, sizeof(version), "v%d", i);
		snprintf(item_of(h, "a")->version, DYNAMO_VERSION_SIZE, "%s", version);
	}
	assert_waits(h, 0);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 1);
}

/* Somebody has restored the item. */
LOCKMGR_TEST(a_version_that_comes_back_is_waited_for)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	acquire(h, 0, "a");
	settle(h);
	foreign_release(h, "a");
	while (sent(h, DYNAMO_ACQUIRE) < 2)
		run(h, MS);
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	run(h, DEAD_US - SECOND);
	assert_waits(h, 0);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 2);
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(death_counts_from_the_receipt_of_the_first_observation)
{
	int64_t		received;

	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	run(h, 3 * SECOND);
	received = h->now;
	deliver(h, last_call(h));
	run_until(h, received + DEAD_US - 1);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 1);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(the_items_lease_counts_not_ours)
{
	foreign_hold(h, "a", "v1", 3000, 0);
	acquire(h, 0, "a");
	run(h, 3 * SECOND);
	assert_waits(h, 0);
	run(h, SECOND / 10 + LATENCY_US);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_changed_lease_starts_the_observation_anew)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	acquire(h, 0, "a");
	run(h, LEASE_US / 2);
	item_of(h, "a")->lease_ms++;
	run(h, LEASE_US);
	assert_waits(h, 0);
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(an_observation_survives_any_gap)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	acquire(h, 0, "a");
	settle(h);
	cancel(h, 0);
	run(h, DEAD_US);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 1);

	/* A try takes a dead holder's lock over at once. */
	try_acquire(h, 0, "a");
	assert_string_equal(last_call(h)->writes[0].expected, "v1");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

/* The run of the next night gets the lock, also if the holder's last renewal was seen once. */
LOCKMGR_TEST(a_try_remembers_what_it_has_seen)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
	run(h, INT64_C(86400) * SECOND);
	try_acquire(h, 0, "a");
	assert_string_equal(last_call(h)->writes[0].expected, "v1");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 2);
	assert_int_equal(sent(h, DYNAMO_READ), 0);
}

LOCKMGR_TEST(a_dead_version_that_has_changed_is_not_taken_over)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	try_acquire(h, 0, "a");
	run(h, DEAD_US + SECOND);
	foreign_hold(h, "a", "v2", LEASE_MS, 5);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
	assert_string_equal(item_of(h, "a")->version, "v2");
}

LOCKMGR_TEST(a_try_never_waits_for_a_holder)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	try_acquire(h, 0, "a");
	run(h, LATENCY_US);
	assert_result(h, 0, LOCKMGR_BUSY);

	/* ... of this cluster: not even a call. */
	get(h, 1, "b");
	try_acquire(h, 0, "b");
	assert_result(h, 0, LOCKMGR_BUSY);
	assert_int_equal(h->call_count, 2);
}

/* As dynalite does. */
LOCKMGR_TEST(a_refusal_without_item_is_read_from_the_table)
{
	h->table.silent = true;
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	try_acquire(h, 0, "a");
	run(h, 4 * LATENCY_US);
	assert_result(h, 0, LOCKMGR_BUSY);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 1);
	assert_int_equal(sent(h, DYNAMO_READ), 1);
	assert_false(last_call(h)->writes[0].write.maybe_stale);

	acquire(h, 0, "a");
	run(h, LEASE_US / 2);
	assert_waits(h, 0);
	assert_true(sent(h, DYNAMO_ACQUIRE) <= 2);
	run(h, LEASE_US);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(refusals_that_nothing_explains_end)
{
	h->table.silent = h->table.refuses = true;
	try_acquire(h, 0, "a");
	run(h, 9 * BACKOFF_CAP_US / 64);	/* with pauses */
	assert_waits(h, 0);
	run(h, 20 * SECOND);
	assert_failed(h, 0, DYNAMO_MALFORMED);
	assert_int_equal(h->asked[0].answer.op, DYNAMO_ACQUIRE);
	assert_string_equal(h->asked[0].message,
						"it was refused again and again, but the item shows no reason");
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 11);

	/* Nothing stays behind. */
	h->table.refuses = false;
	try_acquire(h, 0, "a");
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	let_go(h, 0, "a");
	settle(h);
	delete_item(h, "a");
	h->table.refuses = true;
	try_acquire(h, 0, "a");
	run(h, 9 * BACKOFF_CAP_US / 64);
	assert_waits(h, 0);
	h->table.refuses = false;
}

/* Whichever of the two versions sorts first. */
TEST(refusals_are_counted_anew_when_the_item_changes)
{
	for (int i = 0; i < 2; i++)
	{
		harness    *h = harness_start();

		foreign_hold(h, "a", "v0", LEASE_MS, 5);
		foreign_release(h, "a");
		strcpy(item_of(h, "a")->version, i == 0 ? "v1" : "v2");
		h->table.refuses = true;
		try_acquire(h, 0, "a");
		while (sent(h, DYNAMO_ACQUIRE) < 9)
			run(h, 10 * MS);
		strcpy(item_of(h, "a")->version, i == 0 ? "v2" : "v1");
		run(h, 30 * SECOND);
		assert_failed(h, 0, DYNAMO_MALFORMED);
		assert_int_equal(sent(h, DYNAMO_ACQUIRE), 9 + 11);
		finish(h);
	}
}

LOCKMGR_TEST(a_try_gets_a_lock_that_was_released_since_the_last_poll)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	try_acquire(h, 0, "a");
	settle(h);
	foreign_release(h, "a");
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_try_is_busy_while_somebody_waits_here)
{
	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	try_acquire(h, 1, "a");
	assert_result(h, 1, LOCKMGR_BUSY);
	deliver(h, last_call(h));
	assert_result(h, 0, LOCKMGR_GRANTED);

	/* ... and while a lost lease is not acknowledged. */
	h->fate = FATE_LOST_REQUEST;
	run(h, LEASE_US - MARGIN_US);
	assert_int_equal(h->lost_count, 1);
	try_acquire(h, 1, "a");
	assert_result(h, 1, LOCKMGR_BUSY);
}

LOCKMGR_TEST(a_try_waits_for_a_release_under_way)
{
	get(h, 0, "a");
	next_fate(h, FATE_HOLD);
	release(h, 0, "a");
	try_acquire(h, 1, "a");
	assert_waits(h, 1);
	deliver(h, last_call(h));
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_patient_try_waits_for_a_holder_of_this_cluster)
{
	int			calls;

	get(h, 0, "a");
	h->ask.waits_for_local_holder = true;
	try_acquire(h, 1, "a");
	assert_waits(h, 1);
	try_acquire(h, 2, "a");
	assert_waits(h, 2);

	/* The hand-over reserves tokens: the second time, the lock passes on without a call. */
	release(h, 0, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	calls = h->call_count;
	release(h, 1, "a");
	assert_result(h, 2, LOCKMGR_GRANTED);
	assert_int_equal(h->call_count, calls);
	h->ask.waits_for_local_holder = false;
	try_acquire(h, 3, "a");
	assert_result(h, 3, LOCKMGR_BUSY);
}

LOCKMGR_TEST(a_patient_try_does_not_wait_for_a_foreign_holder)
{
	h->ask.waits_for_local_holder = true;
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	try_acquire(h, 0, "a");
	run(h, LATENCY_US);
	assert_result(h, 0, LOCKMGR_BUSY);
}

LOCKMGR_TEST(a_patient_try_waits_for_a_session_that_waits_for_it)
{
	get(h, 0, "a");
	get(h, 1, "b");
	h->ask.waits_for_local_holder = true;
	try_acquire(h, 1, "a");
	assert_waits(h, 1);

	/* Its patience ends soon: that is no deadlock. */
	acquire(h, 0, "b");
	assert_waits(h, 0);
}

LOCKMGR_TEST(twenty_waiters_poll_as_one)
{
	unsigned	changes;
	int			calls;

	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	acquire(h, 0, "a");
	run(h, 10 * SECOND);
	calls = h->call_count;
	cancel(h, 0);
	run(h, SECOND);

	foreign_hold(h, "b", "v1", LEASE_MS, 5);
	for (uint32_t i = 0; i < 20; i++)
		acquire(h, i, "b");
	run(h, 10 * SECOND);
	assert_in_range(h->call_count - calls, calls * 8 / 10, calls * 12 / 10);

	changes = h->watch_changes;
	foreign_hold(h, "b", "v2", LEASE_MS, 6);
	run(h, SECOND);
	assert_int_equal(h->watch_changes, changes + 1);
	for (uint32_t i = 1; i < 20; i++)
		assert_int_equal(h->asked[i].watch, h->asked[0].watch);
}

LOCKMGR_TEST(tokens_rise_whatever_the_clock_does)
{
	int64_t		first = get_token(h, 0, "a");

	lockmgr_set_clock(h->lm, h->epoch_offset - 3600 * SECOND,
					  h->epoch_offset - 3600 * SECOND);
	acquire(h, 1, "a");
	let_go(h, 0, "a");
	settle(h);
	assert_int_equal(h->asked[1].answer.grant.token, first + 1);
	let_go(h, 1, "a");
	settle(h);
	assert_int_equal(get_token(h, 0, "a"), first + 1 + TOKENS);
}

/* An older one could be granted after a higher one if the item is deleted. */
LOCKMGR_TEST(a_token_is_of_the_moment_of_sending)
{
	h->fate = fate_of(DYNAMO_THROTTLED);
	acquire(h, 0, "a");
	run(h, 2 * SECOND);
	assert_true(h->call_count > 3);
	h->fate = FATE_OK;
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(last_call(h)->c.op, DYNAMO_ACQUIRE);
	assert_true(last_call(h)->sent > SECOND);
	assert_int_equal(h->asked[0].answer.grant.token, last_call(h)->sent + h->epoch_offset);
}

TEST(a_token_is_not_of_the_moment_of_queueing)
{
	harness    *h = harness_new(SIZE);

	h->config.max_calls = 1;
	start_manager(h);
	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	acquire(h, 1, "b");
	h->now += SECOND / 2;
	deliver(h, last_call(h));
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(h->asked[1].answer.grant.token, last_call(h)->sent + h->epoch_offset);
	assert_true(last_call(h)->sent >= h->calls[0].sent + SECOND / 2);
	finish(h);
}

LOCKMGR_TEST(a_token_that_is_too_low_is_raised_once)
{
	int64_t		ahead = h->now + h->epoch_offset + 3600 * SECOND;

	foreign_hold(h, "a", "v1", LEASE_MS, ahead);
	foreign_release(h, "a");
	assert_int_equal(get_token(h, 0, "a"), ahead + 1);
	assert_int_equal(h->call_count, 2);
	assert_string_not_equal(h->calls[0].writes[0].version, h->calls[1].writes[0].version);
}

LOCKMGR_TEST(a_token_that_is_known_is_topped_at_once)
{
	int64_t		known = h->now + h->epoch_offset + SECOND;

	foreign_hold(h, "a", "v1", LEASE_MS, known);
	try_acquire(h, 0, "a");
	settle(h);
	foreign_release(h, "a");
	run_until(h, known - h->epoch_offset);
	assert_int_equal(get_token(h, 0, "a"), known + 1);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 2);
}

LOCKMGR_TEST(a_dead_holders_token_is_topped_too)
{
	int64_t		ahead = h->now + h->epoch_offset + 3600 * SECOND;

	foreign_hold(h, "a", "v1", 3000, ahead);
	acquire(h, 0, "a");
	run(h, 3 * SECOND + SECOND / 5);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(h->asked[0].answer.grant.token, ahead + 1);
}

LOCKMGR_TEST(an_item_without_a_token_is_worked_with)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 0);
	foreign_release(h, "a");
	get(h, 0, "a");
	assert_int_equal(item_of(h, "a")->token, h->calls[0].sent + h->epoch_offset);
}

LOCKMGR_TEST(a_bad_token_is_refused_before_anything_is_held)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 0);
	foreign_release(h, "a");
	item_of(h, "a")->has_token = item_of(h, "a")->bad_token = true;
	acquire(h, 0, "a");
	acquire(h, 1, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BAD_ITEM);
	assert_result(h, 1, LOCKMGR_BAD_ITEM);
	assert_non_null(strstr(h->asked[0].message, "fencingToken"));
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(nothing_is_above_the_highest_token)
{
	foreign_hold(h, "a", "v1", LEASE_MS, INT64_MAX);
	foreign_release(h, "a");
	acquire(h, 0, "a");
	acquire(h, 1, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BAD_ITEM);
	assert_result(h, 1, LOCKMGR_BAD_ITEM);
	assert_non_null(strstr(h->asked[1].message, "highest"));

	/* It works again once the operator has repaired the item. */
	item_of(h, "a")->token = 7;
	get(h, 0, "a");
	assert_int_equal(item_of(h, "a")->token, last_call(h)->sent + h->epoch_offset);
}

LOCKMGR_TEST(an_item_that_cannot_be_worked_with_is_a_definite_answer)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	acquire(h, 0, "a");
	acquire(h, 1, "a");
	settle(h);
	item_of(h, "a")->wrong = "it makes no sense";
	run(h, SECOND / 10);
	assert_result(h, 0, LOCKMGR_BAD_ITEM);
	assert_result(h, 1, LOCKMGR_BAD_ITEM);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 1);	/* the poll tells those who wait */
	look_up(h, 1, "a");
	for (int i = 0; i < 12; i++)
	{
		acquire(h, 0, "a");
		settle(h);				/* at once each time */
		assert_result(h, 0, LOCKMGR_BAD_ITEM);
	}
	assert_result(h, 1, LOCKMGR_BAD_ITEM);
	assert_string_equal(h->asked[0].message, "it makes no sense");
	assert_string_equal(h->asked[1].message, "it makes no sense");
	assert_null(h->asked[1].answer.item);
}

LOCKMGR_TEST(a_look_up_tells_what_stands_there)
{
	look_up(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_FOUND);
	assert_false(h->asked[0].item.exists);

	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	look_up(h, 0, "a");
	settle(h);
	assert_true(h->asked[0].item.exists);
	assert_string_equal(h->asked[0].item.version, "v1");

	/* ... and counts as an observation. */
	run(h, DEAD_US);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_look_up_is_repeated_until_patience_ends)
{
	char		why[16];
	int			calls;

	next_fate(h, FATE_LOST_REQUEST);
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	look_up(h, 0, "a");
	run(h, 3 * SECOND);
	assert_result(h, 0, LOCKMGR_FOUND);
	assert_int_equal(h->call_count, 3);

	h->fate = FATE_LOST_REQUEST;
	look_up(h, 0, "a");
	run(h, RETRY_US - SECOND);
	assert_waits(h, 0);
	run(h, 3 * SECOND);
	assert_failed(h, 0, DYNAMO_UNKNOWN);
	h->fate = fate_of(DYNAMO_THROTTLED);
	calls = h->call_count;
	look_up(h, 0, "a");
	run(h, RETRY_US + 2 * SECOND);
	assert_failed(h, 0, DYNAMO_THROTTLED);
	assert_in_range(h->call_count - calls, 5, 40);
	h->fate = fate_of(DYNAMO_ACCESS_DENIED);
	look_up(h, 0, "a");
	settle(h);
	assert_failed(h, 0, DYNAMO_ACCESS_DENIED);
	assert_int_equal(h->asked[0].answer.op, DYNAMO_READ);
	snprintf(why, sizeof(why), "status %d", (int) DYNAMO_ACCESS_DENIED);
	assert_string_equal(h->asked[0].message, why);
	assert_null(h->asked[0].answer.item);
}

LOCKMGR_TEST(a_lock_without_an_item_is_not_acquired_if_it_must_exist)
{
	h->ask.must_exist = true;
	acquire(h, 0, "a");
	try_acquire(h, 1, "b");
	settle(h);
	assert_result(h, 0, LOCKMGR_MISSING);
	assert_result(h, 1, LOCKMGR_MISSING);
	assert_false(item_of(h, "a")->exists);

	/* Released, held by this cluster, or dead: it exists. */
	h->ask.must_exist = false;
	get(h, 0, "a");
	h->ask.must_exist = true;
	acquire(h, 1, "a");
	let_go(h, 0, "a");
	settle(h);
	assert_true(holds(h, 1, "a"));
	let_go(h, 1, "a");
	settle(h);
	get(h, 2, "a");
	foreign_hold(h, "c", "v1", LEASE_MS, 1);
	acquire(h, 3, "c");
	run(h, LEASE_US * 6 / 5);
	assert_true(holds(h, 3, "c"));
}

/* It is deleted while a session waits for it. */
LOCKMGR_TEST(a_lock_that_must_exist_is_deleted)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	h->ask.must_exist = true;
	acquire(h, 0, "a");
	settle(h);
	assert_waits(h, 0);
	delete_item(h, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_MISSING);
	assert_false(item_of(h, "a")->exists);
}

LOCKMGR_TEST(a_look_up_is_not_repeated_before_its_time)
{
	int			calls;

	h->fate = fate_of(DYNAMO_UNREACHABLE);
	look_up(h, 0, "a");
	run(h, SECOND);
	calls = h->call_count;
	lockmgr_tick(h->lm, h->now);
	assert_int_equal(h->call_count, calls);
	h->fate = FATE_OK;
	run(h, 3 * SECOND);
	assert_result(h, 0, LOCKMGR_FOUND);
}

/* Its owner is still this cluster, but no session has a hold. */
LOCKMGR_TEST(a_look_up_during_a_release_shows_no_hold)
{
	get(h, 0, "a");
	item_of(h, "a")->by_ddblock = true;
	next_fate(h, FATE_HOLD);
	let_go(h, 0, "a");
	look_up(h, 1, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_FOUND);
	assert_int_equal(h->asked[1].item.hold_token, 0);
	deliver(h, &h->calls[1]);
}

/* It shows our own write, which is no other client's. */
LOCKMGR_TEST(a_look_up_of_our_own_lock_leaves_nothing_behind)
{
	get(h, 0, "a");
	look_up(h, 1, "a");
	settle(h);
	let_go(h, 0, "a");
	settle(h);
	acquire(h, 2, "a");
	assert_false(h->watches[h->asked[2].watch].held);
}

LOCKMGR_TEST(an_unusable_item_for_which_memory_is_short_is_not_shown)
{
	next_fate(h, FATE_HOLD);
	look_up(h, 0, "a");
	apply(h, last_call(h));
	last_call(h)->results[0] = (dynamo_result) {
		.status = DYNAMO_MALFORMED,.item = {.exists = true,.wrong = "it makes no sense"}
	};
	reply_with(h, last_call(h), DYNAMO_MALFORMED);
	assert_failed(h, 0, DYNAMO_MALFORMED);
}

/* Or it would be taken over as one whose lease is over. */
LOCKMGR_TEST(a_look_up_does_not_make_an_unusable_item_dead)
{
	foreign_hold(h, "a", "v1", 0, 5);
	item_of(h, "a")->wrong = "no readable lease";
	look_up(h, 0, "a");
	settle(h);
	acquire(h, 0, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_BAD_ITEM);
}

LOCKMGR_TEST(who_still_waits_is_shown_the_next_holder)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	for (uint32_t slot = 0; slot < 3; slot++)
		acquire(h, slot, "a");
	run(h, SECOND);
	cancel(h, 0);
	cancel(h, 2);
	foreign_hold(h, "a", "v2", LEASE_MS, 6);
	snprintf(item_of(h, "a")->owner, DYNAMO_OWNER_SIZE, "others/1");
	run(h, 2 * SECOND);
	assert_string_equal(h->watches[h->asked[1].watch].owner, "others/1");
}

/* They were known, and another client has removed them since. */
LOCKMGR_TEST(attributes_that_are_gone_keep_nobody_out)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	foreign_release(h, "a");
	item_of(h, "a")->attribute_names = double_item_of(&h->table, "a")->names;
	strcpy(item_of(h, "a")->attribute_names, "[\"team\"]");
	look_up(h, 0, "a");
	settle(h);
	item_of(h, "a")->attribute_names = NULL;
	get(h, 0, "a");
}
