/*-------------------------------------------------------------------------
 *
 * test_lockmgr_cancel.c
 *	  Cancelled requests, and sessions that end.
 *
 *-------------------------------------------------------------------------
 */
#include "base/backoff.h"
#include "lockmgr_scenarios.h"

/*
 * Interrupts the acquire at that moment.  Nothing may be left of it, and the next
 * in the queue gets the lock.
 */
static void
interrupt_at(const scenario *s, int64_t moment, bool end, bool waiter)
{
	harness    *h = harness_start_with(FEW);

	s->prepare(h);
	acquire(h, 0, "a");
	if (waiter)
		acquire(h, 1, "a");
	run_scenario(h, s, moment);
	if (end)
		end_session(h, 0);
	else
		cancel(h, 0);
	rest_of_scenario(h, s, moment, 0);
	run(h, 5 * SECOND);

	assert_then(s, moment, lease_of(h, 0, "a") == LOCKMGR_NO_HOLD);
	assert_then(s, moment, !waiter || holds(h, 1, "a"));
	assert_then(s, moment, waiter || !is_ours(h, "a"));
	finish(h);
}

static void
interrupt_everywhere(bool end, bool waiter)
{
	for (size_t i = 0; i < COUNT_OF(scenarios); i++)
	{
		const scenario *s = &scenarios[i];

		for (int64_t moment = 0; moment <= s->granted_by; moment += s->every)
			interrupt_at(s, moment, end, waiter);
	}
}

TEST(every_scenario_ends_well_when_left_alone)
{
	for (size_t i = 0; i < COUNT_OF(scenarios); i++)
	{
		harness    *h = harness_start();

		scenarios[i].prepare(h);
		acquire(h, 0, "a");
		run_scenario(h, &scenarios[i], scenarios[i].granted_by);
		assert_result(h, 0, LOCKMGR_GRANTED);
		finish(h);
	}
}

TEST(a_cancelled_acquire_leaves_nothing)
{
	interrupt_everywhere(false, false);
}

TEST(a_cancelled_acquire_lets_the_next_one_in)
{
	interrupt_everywhere(false, true);
}

TEST(an_ended_session_leaves_nothing)
{
	interrupt_everywhere(true, false);
}

TEST(an_ended_session_lets_the_next_one_in)
{
	interrupt_everywhere(true, true);
}

LOCKMGR_TEST(whoever_leaves_the_queue_the_others_keep_their_order)
{
	get(h, HOLDER, "a");
	for (uint32_t i = 0; i < 5; i++)
		acquire(h, i, "a");
	cancel(h, 2);
	cancel(h, 0);
	cancel(h, 4);
	let_go(h, HOLDER, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_waits(h, 3);
	let_go(h, 1, "a");
	settle(h);
	assert_result(h, 3, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(who_leaves_the_queue_ends_nobody_elses_acquire)
{
	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, 0, "a");
	acquire(h, 1, "a");
	while (!last_call(h)->answered)
		run(h, MS);
	cancel(h, 1);
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(sent(h, DYNAMO_BAR), 0);
}

LOCKMGR_TEST(who_leaves_the_queue_ends_nobody_elses_try)
{
	get(h, HOLDER, "a");
	h->ask.waits_for_local_holder = true;
	try_acquire(h, 0, "a");
	h->ask.waits_for_local_holder = false;
	acquire(h, 1, "a");
	cancel(h, 1);
	assert_waits(h, 0);
	let_go(h, HOLDER, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

/* The next poll is due later: who comes before that does not wait for it, and the others do. */
LOCKMGR_TEST(the_last_one_who_leaves_the_queue_ends_the_polls)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	acquire(h, 0, "a");
	acquire(h, 1, "a");
	run(h, 10 * SECOND);
	while (!last_call(h)->answered)
		run(h, MS);
	cancel(h, 0);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 1);
	cancel(h, 1);
	foreign_release(h, "a");
	try_acquire(h, 2, "a");
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 2);
}

LOCKMGR_TEST(a_hand_over_nobody_wants_goes_to_the_next)
{
	get(h, HOLDER, "a");
	acquire(h, 0, "a");
	acquire(h, 1, "a");
	next_fate(h, FATE_HOLD);
	release(h, HOLDER, "a");
	cancel(h, 0);
	deliver(h, last_call(h));
	assert_result(h, HOLDER, LOCKMGR_RELEASED);
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* The first attempt was applied, its reply is lost, the next attempt is not due yet. */
LOCKMGR_TEST(a_cancellation_between_two_attempts_bars_the_acquire_at_once)
{
	int			calls;

	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	calls = h->call_count;
	while (!last_call(h)->answered)
		run(h, MS);
	assert_int_equal(h->call_count, calls);
	cancel(h, 0);
	assert_int_equal(last_call(h)->c.op, DYNAMO_BAR);
	settle(h);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
	assert_true(is_free(h, "a"));
}

/* ... as long as the one before, whose attempts failed. */
LOCKMGR_TEST(who_comes_after_a_cancellation_does_not_wait)
{
	enough_budget(h);
	for (int i = 0; i < 5; i++)
	{
		int			calls;

		h->fate = fate_of(DYNAMO_THROTTLED);
		acquire(h, 0, "a");
		run(h, RETRY_US - SECOND);
		assert_waits(h, 0);
		acquire(h, 2, "a");
		cancel(h, 0);
		cancel(h, 2);			/* stayed back */
		calls = h->call_count;
		acquire(h, 1, "a");
		assert_int_equal(h->call_count, calls + 1);
		assert_int_equal(h->watches[h->asked[1].watch].trouble, DYNAMO_OK);
		h->fate = FATE_OK;
		run(h, LATENCY_US + BACKOFF_BASE_US + LATENCY_US);
		assert_result(h, 1, LOCKMGR_GRANTED);
		let_go(h, 1, "a");
		settle(h);
	}
}

LOCKMGR_TEST(a_cancellation_that_crosses_the_grant_gives_it_back)
{
	get(h, 0, "a");
	cancel(h, 0);
	settle(h);
	assert_true(is_free(h, "a"));

	/* ... but not what was granted before. */
	get(h, 0, "a");
	acquire(h, 0, "b");
	cancel(h, 0);
	settle(h);
	assert_true(holds(h, 0, "a"));
	assert_true(is_free(h, "b"));
}

LOCKMGR_TEST(a_cancellation_that_crosses_a_refusal_gives_nothing_back)
{
	get(h, HOLDER, "b");
	get(h, 0, "a");
	try_acquire(h, 0, "b");
	assert_result(h, 0, LOCKMGR_BUSY);
	cancel(h, 0);
	settle(h);
	assert_true(holds(h, 0, "a"));
}

LOCKMGR_TEST(a_late_cancellation_leaves_the_next_request)
{
	get(h, HOLDER, "a");
	look_up(h, 0, "a");
	settle(h);
	acquire(h, 0, "a");
	lockmgr_cancel(h->lm, h->now, session_of(h, 0), h->asked[0].request.seq - 1);
	let_go(h, HOLDER, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(the_next_request_cancels_the_one_before)
{
	get(h, HOLDER, "a");
	acquire(h, 0, "a");
	acquire(h, 0, "b");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	let_go(h, HOLDER, "a");
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_cancelled_release_goes_on)
{
	get(h, 0, "a");
	next_fate(h, FATE_LOST_REQUEST);
	release(h, 0, "a");
	cancel(h, 0);
	run(h, 3 * SECOND);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_cancelled_renewal_does_no_harm)
{
	get(h, 0, "a");
	next_fate(h, FATE_HOLD);
	renew(h, 0, "a", 60000);
	cancel(h, 0);
	deliver(h, last_call(h));
	assert_true(holds(h, 0, "a"));
	run(h, 3 * LEASE_US);
	assert_true(holds(h, 0, "a"));
}

/* It was to follow the one that is under way. */
LOCKMGR_TEST(a_renewal_that_is_cancelled_before_it_is_sent_changes_nothing)
{
	get(h, 0, "a");
	next_fate(h, FATE_HOLD);
	run(h, LEASE_US / 3 + SECOND);
	renew(h, 0, "a", 60000);
	cancel(h, 0);
	deliver(h, last_call(h));
	run(h, LEASE_US);
	assert_int_equal(saved_of(h, 0, "a")->lease_ms, LEASE_MS);
}

LOCKMGR_TEST(a_renewal_of_what_is_let_go_of_is_answered)
{
	get(h, 0, "a");
	next_fate(h, FATE_HOLD);
	renew(h, 0, "a", 60000);
	let_go(h, 0, "a");
	assert_result(h, 0, LOCKMGR_NOT_HELD);
	deliver(h, last_call(h));
}

LOCKMGR_TEST(a_cancelled_look_up_is_not_answered)
{
	lockmgr_counts counts;

	next_fate(h, FATE_HOLD);
	look_up(h, 0, "a");
	cancel(h, 0);
	deliver(h, last_call(h));

	/* While it waits for its repetition, and for a free call. */
	h->fate = FATE_LOST_REQUEST;
	look_up(h, 0, "a");
	run(h, SECOND + 1);
	cancel(h, 0);
	assert_int_equal(h->lm->lock_count, 0);
	for (uint32_t i = 0; i < h->config.max_calls + 3; i++)
		look_up(h, i, "a");
	cancel(h, h->config.max_calls + 1);
	cancel(h, h->config.max_calls + 2);
	cancel(h, h->config.max_calls);
	h->fate = FATE_OK;
	run(h, 3 * SECOND);
	for (uint32_t i = 0; i < h->config.max_calls; i++)
		assert_result(h, i, LOCKMGR_FOUND);
	lockmgr_count(h->lm, &counts);
	assert_int_equal(counts.calls, 0);
}

LOCKMGR_TEST(an_ended_session_gives_back_all_it_held)
{
	get(h, 0, "a");
	get(h, 0, "b");
	get(h, 0, "c");
	get(h, 1, "d");
	acquire(h, 0, "d");
	end_session(h, 0);
	settle(h);
	assert_true(is_free(h, "a"));
	assert_true(is_free(h, "b"));
	assert_true(is_free(h, "c"));
	assert_true(holds(h, 1, "d"));
}

LOCKMGR_TEST(a_new_session_in_the_slot_ends_the_old_one)
{
	get(h, 0, "a");
	h->generation[0] += 2;		/* without a word that the old one has ended */
	get(h, 0, "b");
	settle(h);
	assert_true(is_free(h, "a"));
	assert_true(holds(h, 0, "b"));

	/* A late end of the old one has no effect. */
	lockmgr_session_end(h->lm, h->now, (lockmgr_session) {0, h->generation[0] - 1});
	settle(h);
	assert_true(holds(h, 0, "b"));
}

LOCKMGR_TEST(a_session_that_ended_has_no_say)
{
	lockmgr_session old = session_of(h, 0);
	uint32_t	index;

	get(h, 0, "a");
	end_session(h, 0);
	settle(h);
	get(h, 0, "a");
	index = hold_of(h, 0, "a");
	lockmgr_let_go(h->lm, h->now, old, index);
	lockmgr_cancel(h->lm, h->now, old, h->asked[0].request.seq);
	settle(h);
	assert_true(holds(h, 0, "a"));
}
