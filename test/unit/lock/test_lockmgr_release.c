/*-------------------------------------------------------------------------
 *
 * test_lockmgr_release.c
 *	  Releasing a lock, and handing it over to the next session.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#define STAY_BACK_US (150 * MS)
#define RUN_US SECOND
#define SHORT_RUN_US (RUN_US / 8)

LOCKMGR_TEST(a_release_is_answered_when_it_is_confirmed)
{
	const saved_lease *l = get(h, 0, "a");
	char		version[UUID_SIZE];

	memcpy(version, l->version, sizeof(version));
	next_fate(h, FATE_HOLD);
	release(h, 0, "a");
	assert_int_equal(l->state, LEASE_RELEASING);
	assert_int_equal(l->valid_until, 0);
	assert_waits(h, 0);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
	assert_string_equal(last_call(h)->writes[0].expected, version);
	assert_int_equal(last_call(h)->writes[0].write.now_s, (h->now + h->epoch_offset) / SECOND);
	deliver(h, last_call(h));
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_int_equal(l->state, LEASE_FREE);
	assert_true(is_free(h, "a"));
	assert_string_not_equal(item_of(h, "a")->version, version);
	assert_int_equal(h->call_count, 2);
}

LOCKMGR_TEST(letting_go_needs_no_answer)
{
	get(h, 0, "a");
	let_go(h, 0, "a");
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(what_is_not_held_cannot_be_released)
{
	ask(h, 0, LOCKMGR_RELEASE, "a", 0);
	assert_result(h, 0, LOCKMGR_NOT_HELD);
	get(h, 0, "a");
	next_fate(h, FATE_HOLD);
	let_go(h, 0, "a");
	ask(h, 0, LOCKMGR_RELEASE, "a", 0);
	assert_result(h, 0, LOCKMGR_NOT_HELD);
	deliver(h, last_call(h));
}

LOCKMGR_TEST(a_hand_over_takes_one_call)
{
	int64_t		token;

	h->data = "first";
	get(h, 0, "a");
	token = held_by(h, 0, "a")->token;
	h->data = NULL;
	h->ask.lease_ms = 30000;
	acquire(h, 1, "a");
	assert_true(h->watches[h->asked[1].watch].held);
	assert_true(h->watches[h->asked[1].watch].local);
	release(h, 0, "a");
	assert_int_equal(h->call_count, 2);
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	settle(h);
	assert_int_equal(h->call_count, 2);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_true(h->asked[1].answer.grant.token > token);
	assert_int_equal(item_of(h, "a")->token, h->asked[1].answer.grant.token + TOKENS - 1);
	assert_int_equal(item_of(h, "a")->lease_ms, 30000);
	assert_int_equal(h->asked[1].answer.grant.valid_until, h->calls[1].sent + 28 * SECOND);
	assert_int_equal(double_item_of(&h->table, "a")->data_len, 0);
}

/*
 * Two sessions lock and unlock in turn; returns how long the run of hand-overs
 * lasted, until the release was sent.  The first session has the lock.
 */
static int64_t
hand_around(harness *h, int64_t hold_us)
{
	uint32_t	holder = 0;
	int			releases = sent(h, DYNAMO_RELEASE);
	int64_t		start = 0;

	acquire(h, 1, "a");
	while (sent(h, DYNAMO_RELEASE) == releases)
	{
		run(h, hold_us);
		start = start == 0 ? h->now : start;
		let_go(h, holder, "a");
		if (sent(h, DYNAMO_RELEASE) == releases)
		{
			run(h, LATENCY_US);
			holder = 1 - holder;
			assert_true(holds(h, holder, "a"));
			acquire(h, 1 - holder, "a");
		}
	}
	return last_call(h)->sent - start;
}

TEST(a_run_of_hand_overs_is_bounded_by_time_alone)
{
	const int64_t hold_us[] = {0, 2 * MS, 200 * MS};

	for (int i = 0; i < 3; i++)
	{
		harness    *h = harness_start();
		int64_t		released;

		get(h, 0, "a");
		assert_in_range(hand_around(h, hold_us[i]), SHORT_RUN_US,
						SHORT_RUN_US + hold_us[i] + LATENCY_US);
		released = last_call(h)->sent;
		run(h, LATENCY_US);
		assert_true(is_free(h, "a"));

		/* Now this cluster's waiters stay back. */
		run_until(h, released + STAY_BACK_US - 1);
		assert_true(is_free(h, "a"));
		assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
		run(h, 1);
		assert_int_equal(last_call(h)->c.op, DYNAMO_ACQUIRE);
		settle(h);
		assert_false(is_free(h, "a"));
		finish(h);
	}
}

/* Session 0 gets the lock again after a run; no other client had it in between. */
static void
get_again(harness *h)
{
	for (uint32_t i = 0; i < 2; i++)
		end_session(h, i);
	settle(h);
	run(h, STAY_BACK_US);
	get(h, 0, "a");
}

LOCKMGR_TEST(runs_grow_while_nobody_else_comes)
{
	const int64_t expected[] = {RUN_US / 8, RUN_US / 4, RUN_US / 2, RUN_US, RUN_US, RUN_US};

	get(h, 0, "a");
	for (int i = 0; i < 6; i++)
	{
		assert_in_range(hand_around(h, 2 * MS), expected[i], expected[i] + 10 * MS);
		get_again(h);
	}
}

LOCKMGR_TEST(a_run_is_short_after_another_cluster_was_waited_for)
{
	get(h, 0, "a");
	for (int i = 0; i < 3; i++)
	{
		hand_around(h, 2 * MS);
		get_again(h);
	}
	let_go(h, 0, "a");
	settle(h);
	foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
	acquire(h, 0, "a");
	run(h, 100 * MS);
	foreign_release(h, "a");
	run(h, SECOND);
	assert_true(holds(h, 0, "a"));
	assert_in_range(hand_around(h, 2 * MS), SHORT_RUN_US, SHORT_RUN_US + 10 * MS);
}

/* We did not see it, but the acquire returns the item that it replaced. */
LOCKMGR_TEST(a_run_is_short_after_another_cluster_had_the_lock_unseen)
{
	get(h, 0, "a");
	for (int i = 0; i < 3; i++)
	{
		hand_around(h, 2 * MS);
		get_again(h);
	}
	let_go(h, 0, "a");
	settle(h);
	foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
	foreign_release(h, "a");
	get(h, 0, "a");
	assert_in_range(hand_around(h, 2 * MS), SHORT_RUN_US, SHORT_RUN_US + 10 * MS);
}

/* Sometimes nobody waits, and the lock is released. */
LOCKMGR_TEST(a_run_outlasts_moments_in_which_nobody_waits)
{
	int64_t		start;

	get(h, 0, "a");
	start = h->now;
	while (h->now < start + RUN_US)
	{
		int			releases = sent(h, DYNAMO_RELEASE);

		let_go(h, 0, "a");
		run(h, 2 * LATENCY_US);
		assert_int_equal(sent(h, DYNAMO_RELEASE), releases + 1);
		get(h, 0, "a");
		acquire(h, 1, "a");
		let_go(h, 0, "a");
		if (sent(h, DYNAMO_RELEASE) > releases + 1)
			break;
		run(h, LATENCY_US);
		assert_true(holds(h, 1, "a"));
		acquire(h, 0, "a");
		let_go(h, 1, "a");
		if (sent(h, DYNAMO_RELEASE) > releases + 1)
			break;
		run(h, LATENCY_US);
		assert_true(holds(h, 0, "a"));
	}
	assert_in_range(h->now - start, SHORT_RUN_US, SHORT_RUN_US + 100 * MS);
}

LOCKMGR_TEST(who_comes_while_the_cluster_stays_back_waits_too)
{
	int			calls;

	get(h, 0, "a");
	hand_around(h, 2 * MS);
	run(h, LATENCY_US);
	calls = h->call_count;
	acquire(h, 5, "a");
	try_acquire(h, 6, "a");
	assert_result(h, 6, LOCKMGR_BUSY);
	assert_false(h->watches[h->asked[5].watch].held);
	run(h, STAY_BACK_US / 2);
	assert_int_equal(h->call_count, calls);

	/* Another client gets the lock first; we wait. */
	foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
	run(h, SECOND);
	assert_waits(h, 5);
	foreign_release(h, "a");
	run(h, SECOND);
	assert_false(is_free(h, "a"));
}

LOCKMGR_TEST(a_new_acquire_starts_a_new_run_of_hand_overs)
{
	get(h, 0, "a");
	hand_around(h, 2 * MS);
	run(h, SECOND);
	for (uint32_t i = 0; i < 2; i++)
		end_session(h, i);
	settle(h);
	assert_true(is_free(h, "a"));
	get(h, 0, "a");
	acquire(h, 1, "a");
	let_go(h, 0, "a");
	settle(h);
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* Nobody waits for the lock while it is free, for long enough that others may take it. */
LOCKMGR_TEST(a_pause_ends_a_run_of_hand_overs)
{
	get(h, 0, "a");
	let_go(h, 0, "a");
	run(h, SECOND);
	get(h, 0, "a");
	acquire(h, 1, "a");
	let_go(h, 0, "a");
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_renewal_under_way_is_settled_first)
{
	harness_call *renewal;
	const saved_lease *l = get(h, 0, "a");

	next_fate(h, FATE_HOLD);
	run(h, LEASE_US / 3);
	renewal = last_call(h);
	release(h, 0, "a");
	assert_ptr_equal(last_call(h), renewal);
	assert_int_equal(l->state, LEASE_RELEASING);	/* but nobody believes in it */
	assert_int_equal(l->valid_until, 0);
	deliver(h, renewal);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
	assert_string_equal(last_call(h)->writes[0].expected, renewal->writes[0].version);
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
}

LOCKMGR_TEST(a_renewal_that_surely_did_not_happen_holds_nothing_up)
{
	get(h, 0, "a");
	next_fate(h, FATE_HOLD);
	run(h, LEASE_US / 3);
	release(h, 0, "a");
	fail_call(h, last_call(h), DYNAMO_THROTTLED);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
}

/* Another client has the item when the release arrives; late: after our deadline. */
static void
check_refused_release(void (*change) (harness *h), bool late, lockmgr_result result)
{
	harness    *h = harness_start();

	get(h, 0, "a");
	next_fate(h, FATE_HOLD);
	release(h, 0, "a");
	change(h);
	if (late)
		run(h, LEASE_US - MARGIN_US);
	deliver(h, last_call(h));
	settle(h);
	assert_result(h, 0, result);
	if (late)
		assert_failed(h, 0, DYNAMO_UNKNOWN);
	finish(h);
}

static void
be_taken(harness *h)
{
	foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
}

static void
be_deleted(harness *h)
{
	delete_item(h, "a");
}

static void
be_released(harness *h)
{
	item_of(h, "a")->released = true;
}

TEST(an_item_gone_before_the_deadline_is_released)
{
	check_refused_release(be_taken, false, LOCKMGR_RELEASED);
	check_refused_release(be_deleted, false, LOCKMGR_RELEASED);
	check_refused_release(be_released, false, LOCKMGR_RELEASED);
}

TEST(an_item_gone_after_the_deadline_is_unknown)
{
	check_refused_release(be_taken, true, LOCKMGR_FAILED);
	check_refused_release(be_deleted, true, LOCKMGR_FAILED);
	check_refused_release(be_released, true, LOCKMGR_FAILED);
}

LOCKMGR_TEST(a_release_confirmed_after_the_deadline_is_confirmed)
{
	get(h, 0, "a");
	next_fate(h, FATE_HOLD);
	release(h, 0, "a");
	run(h, LEASE_US - MARGIN_US);
	deliver(h, last_call(h));
	assert_result(h, 0, LOCKMGR_RELEASED);
}

LOCKMGR_TEST(an_outage_is_reported_in_time_and_the_release_goes_on)
{
	get(h, 0, "a");
	h->fate = fate_of(DYNAMO_UNREACHABLE);
	release(h, 0, "a");
	run(h, RETRY_US - SECOND);
	assert_waits(h, 0);
	run(h, 2 * SECOND + SECOND / 10);
	assert_failed(h, 0, DYNAMO_UNREACHABLE);
	assert_int_equal(h->asked[0].answer.op, DYNAMO_RELEASE);
	assert_false(is_free(h, "a"));
	h->fate = FATE_OK;
	run(h, 2 * SECOND);
	assert_true(is_free(h, "a"));
}

/* A late copy of a renewal would hold the lock for nobody for another lease. */
LOCKMGR_TEST(a_release_is_given_up_when_no_earlier_copy_can_arrive)
{
	const saved_lease *l = get(h, 0, "a");
	int			calls;

	h->fate = FATE_LOST_REQUEST;
	let_go(h, 0, "a");
	run(h, LEASE_US + LATE_US - SECOND);
	assert_int_equal(l->state, LEASE_RELEASING);
	run(h, 4 * SECOND);
	assert_int_equal(l->state, LEASE_FREE);
	calls = h->call_count;
	run(h, LEASE_US);
	assert_int_equal(h->call_count, calls);

	/* The item still has our version, without a holder. */
	h->fate = FATE_OK;
	get(h, 1, "a");
}

/* However patient its session is. */
LOCKMGR_TEST(a_release_that_is_given_up_is_reported)
{
	lockmgr_set_timeouts(h->lm, ATTEMPT_US, 2 * LATE_US, SECOND);
	get(h, 0, "a");
	h->fate = FATE_LOST_REQUEST;
	release(h, 0, "a");
	run(h, LEASE_US + LATE_US - SECOND);
	assert_waits(h, 0);
	run(h, 4 * SECOND);
	assert_failed(h, 0, DYNAMO_UNKNOWN);
	h->fate = FATE_OK;
	get(h, 1, "a");
}

/* A copy of the renewal would hold the lock for a lease that begins with it. */
LOCKMGR_TEST(a_release_lasts_longer_after_an_unsettled_renewal)
{
	const saved_lease *l = get(h, 0, "a");

	h->fate = FATE_LOST_REQUEST;
	run(h, LEASE_US / 2);
	let_go(h, 0, "a");
	run(h, LEASE_US / 2 + LATE_US + LEASE_US / 3 - SECOND);
	assert_int_equal(l->state, LEASE_RELEASING);
	run(h, 4 * SECOND);
	assert_int_equal(l->state, LEASE_FREE);
	h->fate = FATE_OK;
	get(h, 1, "a");
}

/* The new lease is the later one. */
LOCKMGR_TEST(a_hand_over_is_repeated_until_both_leases_are_over)
{
	get(h, 0, "a");
	run(h, LEASE_US / 4);
	acquire(h, 1, "a");
	h->fate = FATE_LOST_REQUEST;
	let_go(h, 0, "a");
	run(h, LEASE_US - SECOND);
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	run(h, 4 * SECOND);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
}

LOCKMGR_TEST(a_hand_over_of_a_lock_that_another_client_has_releases_nothing)
{
	get(h, 0, "a");
	acquire(h, 1, "a");
	next_fate(h, FATE_HOLD);
	release(h, 0, "a");
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	deliver(h, last_call(h));
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_waits(h, 1);
	assert_int_equal(sent(h, DYNAMO_RELEASE), 0);
}

LOCKMGR_TEST(a_hand_over_of_a_lock_that_is_gone_ends_in_an_acquire)
{
	get(h, 0, "a");
	acquire(h, 1, "a");
	next_fate(h, FATE_HOLD);
	release(h, 0, "a");
	item_of(h, "a")->released = true;
	deliver(h, last_call(h));
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_waits(h, 1);
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_hand_over_settled_too_late_grants_nothing)
{
	get(h, 0, "a");
	acquire(h, 1, "a");
	next_fate(h, FATE_HOLD);
	release(h, 0, "a");
	run(h, LEASE_US - MARGIN_US);
	deliver(h, last_call(h));
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_waits(h, 1);

	/* The run of hand-overs is over by then. */
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_true(holds(h, 1, "a"));
}

/* ---- several at a time ---- */

static void
get_three(harness *h)
{
	get(h, 0, "a");
	get(h, 0, "b");
	get(h, 0, "c");
}

LOCKMGR_TEST(releases_of_several_go_out_together)
{
	get_three(h);
	acquire(h, 1, "b");
	next_fate(h, FATE_HOLD);
	release_all(h, 0);
	assert_int_equal(h->call_count, 6);
	run(h, LATENCY_US);
	assert_waits(h, 0);
	assert_false(is_free(h, "a"));
	assert_true(holds(h, 1, "b"));
	assert_true(is_free(h, "c"));
	deliver(h, &h->calls[3]);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(one_of_several_fails)
{
	get_three(h);
	next_fate(h, FATE_HOLD);
	next_fate(h, fate_of(DYNAMO_ACCESS_DENIED));
	release_all(h, 0);
	run(h, LATENCY_US);
	assert_failed(h, 0, DYNAMO_ACCESS_DENIED);
	assert_true(is_free(h, "c"));

	/* The session's next request gets no answer of the last one. */
	look_up(h, 0, "x");
	deliver(h, &h->calls[3]);
	settle(h);
	assert_result(h, 0, LOCKMGR_FOUND);
	run(h, SECOND);
	assert_true(is_free(h, "a"));
	assert_true(is_free(h, "b"));
}

LOCKMGR_TEST(one_of_several_is_lost)
{
	get_three(h);
	be_taken(h);
	run(h, LEASE_US / 3 + SECOND);
	assert_int_equal(h->lost_count, 1);
	release_all(h, 0);
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_int_equal(lease_of(h, 0, "a"), LOCKMGR_NO_HOLD);
	assert_true(is_free(h, "b"));
	assert_true(is_free(h, "c"));
}

/* What is named ended before, and its slot has the session's next lease; or there is no such slot. */
LOCKMGR_TEST(who_releases_several_keeps_what_is_not_named)
{
	harness_request *asked = &h->asked[0];
	lockmgr_request *request = &asked->request;
	uint32_t	old;

	get(h, 0, "a");
	old = held_by(h, 0, "a")->lease_generation;
	let_go(h, 0, "a");
	settle(h);
	get(h, 0, "b");
	request->seq++;
	request->kind = LOCKMGR_RELEASE;
	request->all = asked->all;
	request->all_count = 2;
	asked->all[0] = (lockmgr_lease) {lease_of(h, 0, "b"), old};
	asked->all[1] = (lockmgr_lease) {LOCKMGR_NO_HOLD, 1};
	asked->owed = true;
	lockmgr_ask(h->lm, h->now, request);
	assert_result(h, 0, LOCKMGR_NOT_HELD);
	assert_true(holds(h, 0, "b"));
}

LOCKMGR_TEST(several_are_released_though_the_call_is_cancelled)
{
	get_three(h);
	next_fate(h, FATE_HOLD);
	release_all(h, 0);
	cancel(h, 0);
	settle(h);
	look_up(h, 0, "x");
	deliver(h, &h->calls[3]);
	settle(h);
	assert_result(h, 0, LOCKMGR_FOUND);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(the_next_manager_answers_for_several)
{
	get_three(h);
	next_fate(h, FATE_HOLD);
	release_all(h, 0);
	settle(h);
	assert_waits(h, 0);
	kill_manager(h);
	run(h, 10 * MS);
	start_manager(h);
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(the_next_manager_does_not_know_what_came_of_leases_that_are_over)
{
	get_three(h);
	next_fate(h, FATE_HOLD);
	release_all(h, 0);
	settle(h);
	kill_manager(h);
	run(h, LEASE_US);
	start_manager(h);
	settle(h);
	assert_failed(h, 0, DYNAMO_UNKNOWN);
	run(h, SECOND);
	assert_true(is_free(h, "b"));
}
