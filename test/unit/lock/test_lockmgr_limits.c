/*-------------------------------------------------------------------------
 *
 * test_lockmgr_limits.c
 *	  Leases, calls and memory are limited, and are freed.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

static harness *
start_with(uint32_t max_leases, uint32_t max_calls, uint32_t max_remembered)
{
	harness    *h = harness_new(SIZE);

	h->config.max_leases = max_leases;
	h->config.max_calls = max_calls;
	h->config.max_remembered = max_remembered;
	start_manager(h);
	return h;
}

static lockmgr_counts
counts_of(const harness *h)
{
	lockmgr_counts counts;

	lockmgr_count(h->lm, &counts);
	return counts;
}

/* Acquires "lock0" and so on, for sessions 0 and so on. */
static void
acquire_many(harness *h, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		acquire(h, i, lock_name(i));
}

LOCKMGR_TEST_WITH(more_leases_than_there_is_room_for_are_refused, start_with(3, 16, 16))
{
	acquire_many(h, 5);
	settle(h);
	for (uint32_t i = 0; i < 5; i++)
		assert_result(h, i, i < 3 ? LOCKMGR_GRANTED : LOCKMGR_NO_ROOM);
	assert_int_equal(counts_of(h).leases, 3);
	assert_int_equal(counts_of(h).held, 3);

	let_go(h, 0, "lock0");
	settle(h);
	get(h, 4, "lock4");
}

LOCKMGR_TEST_WITH(the_last_leases_are_for_superusers, start_with(4, 16, 16))
{
	kill_manager(h);
	h->config.reserved_leases = 2;
	start_manager(h);
	acquire_many(h, 3);
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_result(h, 2, LOCKMGR_NO_ROOM);
	h->ask.superuser = true;
	get(h, 2, "lock2");
	get(h, 3, "lock3");
	h->ask.superuser = false;
	let_go(h, 0, "lock0");
	settle(h);
	acquire(h, 0, "lock0");
	assert_result(h, 0, LOCKMGR_NO_ROOM);
	let_go(h, 1, "lock1");
	settle(h);
	let_go(h, 2, "lock2");
	settle(h);
	get(h, 0, "lock0");
}

LOCKMGR_TEST(who_only_waits_has_no_lease_of_its_role)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	get(h, 0, "b");
	h->ask.role = 7;
	h->ask.role_max_leases = 1;
	acquire(h, 1, "a");
	acquire(h, 2, "b");
	settle(h);
	get(h, 3, "c");
}

LOCKMGR_TEST_WITH(a_role_has_no_more_leases_than_it_may, start_with(8, 16, 16))
{
	h->ask.role = 7;
	h->ask.role_max_leases = 2;
	acquire_many(h, 3);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_result(h, 2, LOCKMGR_ROLE_FULL);

	/* Another role has its own limit; its lock is not handed over to this one. */
	h->ask.role = 8;
	get(h, 3, "lock3");
	h->ask.role = 7;
	acquire(h, 2, "lock3");
	h->ask.role = 8;
	acquire(h, 4, "lock3");
	let_go(h, 3, "lock3");
	settle(h);
	assert_result(h, 2, LOCKMGR_ROLE_FULL);
	assert_true(holds(h, 4, "lock3"));

	/* A hand-over within the role counts once. */
	h->ask.role = 7;
	acquire(h, 2, "lock1");
	let_go(h, 1, "lock1");
	settle(h);
	assert_true(holds(h, 2, "lock1"));

	/* The next manager knows the roles of the leases. */
	kill_manager(h);
	start_manager(h);
	acquire(h, 5, "lock5");
	assert_result(h, 5, LOCKMGR_ROLE_FULL);
	let_go(h, 0, "lock0");
	settle(h);
	get(h, 5, "lock5");
}

LOCKMGR_TEST_WITH(what_is_lost_makes_room_when_it_is_needed, start_with(3, 16, 16))
{
	uint32_t	lost;
	uint32_t	lost_hold;

	believe_batches(h);
	acquire_many(h, 3);
	settle(h);
	lost = lease_of(h, 0, "lock0");
	lost_hold = hold_of(h, 0, "lock0");
	delete_item(h, "lock0");
	run(h, LEASE_US / 2);
	delete_item(h, "lock1");
	run(h, LEASE_US / 2);
	assert_int_equal(h->lost_count, 2);
	assert_int_equal(h->saved[lost].state, LEASE_LOST);

	/* The one that was lost first is reused; the other one is kept. */
	get(h, 4, "lock4");
	assert_int_equal(h->saved[lost].state, LEASE_HELD);
	assert_int_equal(lease_of(h, 4, "lock4"), lost);
	assert_int_equal(held_by(h, 1, "lock1")->loss, LOSS_DELETED);

	/* The session that lost it holds nothing, and cannot free another's lease. */
	lockmgr_let_go(h->lm, h->now, session_of(h, 0), lost_hold);
	lockmgr_session_end(h->lm, h->now, session_of(h, 0));
	settle(h);
	assert_true(holds(h, 4, "lock4"));

	/* The next manager does the same. */
	kill_manager(h);
	start_manager(h);
	get(h, 5, "lock5");
	assert_true(holds(h, 4, "lock4"));
	acquire(h, 6, "lock6");
	assert_result(h, 6, LOCKMGR_NO_ROOM);
}

/* Whichever of them is acknowledged: its room is free, then the others' in their order. */
LOCKMGR_TEST_WITH(what_was_lost_first_makes_room_first, start_with(3, 16, 16))
{
	for (uint32_t known = 0; known < 3; known++)
	{
		uint32_t	lost[3];

		acquire_many(h, 3);
		settle(h);
		for (uint32_t i = 0; i < 3; i++)
		{
			lost[i] = lease_of(h, i, lock_name(i));
			delete_item(h, lock_name(i));
			run(h, LEASE_US / 2);
		}
		let_go(h, known, lock_name(known));
		for (uint32_t i = 0; i < 3; i++)
		{
			/* 0, 1, 2 begin with the one that is known */
			uint32_t	next = i == 0 ? known : i <= known ? i - 1 : i;

			get(h, 10 + i, lock_name(10 + i));
			assert_int_equal(lease_of(h, 10 + i, lock_name(10 + i)), lost[next]);
		}
		for (uint32_t i = 0; i < 3; i++)
		{
			let_go(h, 10 + i, lock_name(10 + i));
			settle(h);			/* the last one to be lost becomes the first */
		}
	}
}

LOCKMGR_TEST_WITH(what_is_lost_does_not_count_for_its_role, start_with(8, 16, 16))
{
	h->ask.role = 7;
	h->ask.role_max_leases = 2;
	get(h, 0, "lock0");
	get(h, 1, "lock1");
	detach(h, 1, "lock1", 60 * SECOND);
	acquire(h, 2, "lock2");
	assert_result(h, 2, LOCKMGR_ROLE_FULL);

	/* One that a session has, and one that was left to the cluster. */
	delete_item(h, "lock0");
	run(h, LEASE_US / 3);
	get(h, 2, "lock2");
	acquire(h, 3, "lock3");
	assert_result(h, 3, LOCKMGR_ROLE_FULL);
	delete_item(h, "lock1");
	run(h, LEASE_US / 3);
	get(h, 3, "lock3");
	acquire(h, 4, "lock4");
	assert_result(h, 4, LOCKMGR_ROLE_FULL);

	/* The next manager counts in the same way. */
	kill_manager(h);
	start_manager(h);
	acquire(h, 4, "lock4");
	assert_result(h, 4, LOCKMGR_ROLE_FULL);
	delete_item(h, "lock3");
	run(h, LEASE_US / 3);
	get(h, 4, "lock4");
}

LOCKMGR_TEST_WITH(what_is_lost_makes_no_room_while_it_may_stand_in_the_table, start_with(1, 16, 16))
{
	get(h, 0, "a");
	h->fate = FATE_LOST_REQUEST;
	run(h, LEASE_US - MARGIN_US + SECOND / 10);
	assert_int_equal(h->lost_count, 1);
	h->fate = FATE_OK;
	acquire(h, 1, "b");
	settle(h);
	assert_result(h, 1, LOCKMGR_NO_ROOM);
	run(h, MARGIN_US + SECOND);
	get(h, 1, "b");
}

LOCKMGR_TEST_WITH(waiting_takes_no_lease, start_with(1, 16, 16))
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	acquire(h, 0, "a");
	settle(h);
	get(h, 1, "b");
	assert_waits(h, 0);
	assert_int_equal(counts_of(h).waiters, 1);
	foreign_release(h, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_NO_ROOM);
}

LOCKMGR_TEST_WITH(calls_in_flight_are_bounded_and_none_is_forgotten, start_with(SIZE, 4, 16))
{
	h->fate = FATE_HOLD;
	acquire_many(h, 20);
	for (uint32_t i = 0; i < 20; i++)
	{
		assert_int_equal(counts_of(h).calls, i <= 16 ? 4 : 20 - i);
		deliver(h, &h->calls[i]);
		assert_result(h, i, LOCKMGR_GRANTED);
	}
	assert_int_equal(h->call_count, 20);
}

LOCKMGR_TEST_WITH(renewals_do_not_wait_behind_other_calls, start_with(SIZE, 2, 16))
{
	get(h, 0, "held");
	run(h, LEASE_US / 4);
	h->fate = FATE_HOLD;
	acquire(h, 1, "a");
	acquire(h, 2, "b");
	acquire(h, 3, "c");
	look_up(h, 4, "d");
	assert_int_equal(counts_of(h).calls, 2);
	h->fate = FATE_OK;
	run(h, LEASE_US / 4);
	assert_int_equal(saved_of(h, 0, "held")->renewals, 1);
	assert_waits(h, 3);
	assert_waits(h, 4);
	for (int i = 1; i <= 2; i++)
		deliver(h, &h->calls[i]);
	settle(h);
	assert_result(h, 3, LOCKMGR_GRANTED);
	assert_result(h, 4, LOCKMGR_FOUND);
}

LOCKMGR_TEST_WITH(other_calls_do_not_wait_behind_renewals, start_with(SIZE, 1, 16))
{
	harness_call *renewal;

	get(h, 0, "held");
	next_fate(h, FATE_HOLD);
	run(h, LEASE_US / 3);
	renewal = last_call(h);
	assert_int_equal(renewal->c.op, DYNAMO_RENEW);
	get(h, 1, "a");
	deliver(h, renewal);
}

/* Whichever of them is cancelled meanwhile: the first, the last, one between them, or all. */
LOCKMGR_TEST_WITH(look_ups_wait_their_turn, start_with(SIZE, 1, 16))
{
	h->fate = FATE_HOLD;
	for (uint32_t i = 0; i < 6; i++)
		look_up(h, i, lock_name(i));
	for (uint32_t i = 1; i < 6; i += 2)
		cancel(h, i);
	look_up(h, 6, lock_name(6));
	assert_int_equal(h->call_count, 1);
	for (uint32_t i = 0; i < 4; i++)
	{
		deliver(h, &h->calls[i]);
		assert_result(h, 2 * i, LOCKMGR_FOUND);
	}
	assert_int_equal(h->call_count, 4);

	look_up(h, 0, "a");
	look_up(h, 1, "b");
	cancel(h, 1);
	look_up(h, 2, "c");
	deliver(h, &h->calls[4]);
	deliver(h, &h->calls[5]);
	assert_result(h, 0, LOCKMGR_FOUND);
	assert_result(h, 2, LOCKMGR_FOUND);

	/* So may one that would be repeated. */
	look_up(h, 0, "a");
	fail_call(h, last_call(h), DYNAMO_THROTTLED);
	cancel(h, 0);
	run(h, 2 * SECOND);
	assert_int_equal(h->call_count, 7);
}

LOCKMGR_TEST_WITH(too_many_renewals_wait_their_turn, start_with(SIZE, 1, 16))
{
	acquire_many(h, 60);
	run(h, 70 * LATENCY_US);
	run(h, LEASE_US * 2 / 3);
	for (uint32_t i = 0; i < 60; i++)
		assert_true(h->saved[i].renewals >= 1);
	assert_int_equal(h->lost_count, 0);
}

LOCKMGR_TEST_WITH(a_lock_nobody_needs_is_remembered_for_a_while, start_with(SIZE, 16, 3))
{
	for (int i = 0; i < 5; i++)
	{
		foreign_hold(h, lock_name(i), "v1", LEASE_MS, 1);
		try_acquire(h, 0, lock_name(i));
		settle(h);
		assert_result(h, 0, LOCKMGR_BUSY);
		assert_int_equal(counts_of(h).remembered, i < 3 ? i + 1 : 3);
		if (i == 3)
		{
			/* Used again, so no longer the oldest. */
			try_acquire(h, 0, "lock1");
			settle(h);
			for (int twice = 0; twice < 2; twice++)
			{
				try_acquire(h, 0, "lock3");
				settle(h);
			}
		}
	}
	run(h, DEAD_US);

	/* lock1, lock3 and lock4 are remembered, and dead. */
	for (int i = 0; i < 5; i++)
		try_acquire(h, 10 + (uint32_t) i, lock_name(i));
	settle(h);
	for (int i = 0; i < 5; i++)
		assert_result(h, 10 + (uint32_t) i,
					  i == 0 || i == 2 ? LOCKMGR_BUSY : LOCKMGR_GRANTED);
}

/* After more, the next session waits for a lease in the worst case. */
LOCKMGR_TEST(the_last_256_nonces_that_belong_to_nobody_are_known)
{
	char		nonce[UUID_SIZE] = "";

	for (int i = 0; i < LM_RETIRED + 10; i++)
	{
		snprintf(nonce, sizeof(nonce), "nonce %d", i);
		lm_retire(h->lm, nonce);
	}
	for (int i = 0; i < LM_RETIRED + 10; i++)
	{
		snprintf(nonce, sizeof(nonce), "nonce %d", i);
		assert_int_equal(lm_is_retired(h->lm, nonce), i >= 10);
	}
}

LOCKMGR_TEST_WITH(nothing_need_be_remembered, start_with(SIZE, 16, 0))
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	try_acquire(h, 0, "a");
	settle(h);
	get(h, 0, "b");
	let_go(h, 0, "b");
	look_up(h, 1, "c");
	settle(h);
	assert_int_equal(counts_of(h).remembered, 0);
	assert_result(h, 1, LOCKMGR_FOUND);
}

LOCKMGR_TEST_WITH(locks_nobody_ever_saw_held_are_forgotten, start_with(SIZE, 16, 16))
{
	look_up(h, 0, "a");
	settle(h);
	assert_int_equal(counts_of(h).remembered, 0);

	/* Tokens that were reserved are not reserved again. */
	h->fate = fate_of(DYNAMO_ACCESS_DENIED);
	acquire(h, 1, "b");
	settle(h);
	assert_int_equal(counts_of(h).remembered, 1);
}

/* How many calls the manager makes in 20 s, if all of them fail. */
static int
calls_in_vain(harness *h)
{
	uint32_t	before = h->call_count;

	h->fate = fate_of(DYNAMO_THROTTLED);
	run(h, 20 * SECOND);
	return (int) (h->call_count - before);
}

/*
 * Delays are random below a bound that doubles to 1 s, so about 45 calls: 6 until it has
 * doubled, then 2 a second.
 */
LOCKMGR_TEST(what_fails_is_repeated_with_growing_delays)
{
	int			calls;

	lockmgr_set_timeouts(h->lm, SECOND, 60 * SECOND, SECOND);
	h->fate = fate_of(DYNAMO_THROTTLED);
	acquire(h, 0, "a");
	assert_in_range(calls_in_vain(h), 25, 70);
	cancel(h, 0);
	h->fate = FATE_OK;
	settle(h);
	h->fate = fate_of(DYNAMO_THROTTLED);
	look_up(h, 2, "b");
	assert_in_range(calls_in_vain(h), 20, 70);

	/* The session's next look-up begins anew. */
	cancel(h, 2);
	look_up(h, 2, "b");
	calls = h->call_count;
	run(h, 200 * MS);
	assert_true(h->call_count - calls >= 3);
}

/*-------------------------------------------------------------------------
 * The budget of repetitions: 500 units, 5 for a repetition, 10 after a time-out.
 *-------------------------------------------------------------------------
 */

/* All of it is spent. */
static void
spend(harness *h)
{
	h->lm->budget.spent = 500;
}

/* There is one after 1 to 2 s. */
LOCKMGR_TEST(without_budget_repetitions_are_rare)
{
	lockmgr_set_timeouts(h->lm, SECOND, 60 * SECOND, SECOND);
	spend(h);
	h->fate = fate_of(DYNAMO_THROTTLED);
	acquire(h, 0, "a");
	assert_in_range(calls_in_vain(h), 9, 20);
	cancel(h, 0);
	look_up(h, 1, "b");
	assert_in_range(calls_in_vain(h), 9, 20);
}

/* How many repetitions there are before the first one that cannot pay. */
static int
paid_repetitions(harness *h, dynamo_status status)
{
	int			first = h->call_count;
	int			i = first + 1;

	lockmgr_set_timeouts(h->lm, SECOND, 600 * SECOND, SECOND);
	h->fate = fate_of(status);
	look_up(h, 0, "a");
	run(h, 200 * SECOND);
	while (i < h->call_count && h->calls[i].sent - h->calls[i - 1].sent < SECOND + LATENCY_US)
		i++;
	cancel(h, 0);
	h->fate = FATE_OK;
	settle(h);
	return i - first - 1;
}

/* So does what did not reach DynamoDB. */
LOCKMGR_TEST(a_time_out_costs_twice_as_much)
{
	assert_int_equal(paid_repetitions(h, DYNAMO_THROTTLED), 100);
	h->lm->budget.spent = 0;
	assert_int_equal(paid_repetitions(h, DYNAMO_UNREACHABLE), 50);
}

/* 1, and a repetition 5. */
LOCKMGR_TEST(what_succeeds_earns_budget)
{
	spend(h);
	for (int i = 0; i < 10; i++)
	{
		look_up(h, 0, "a");
		settle(h);
	}
	assert_int_equal(paid_repetitions(h, DYNAMO_THROTTLED), 2);
	spend(h);
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	acquire(h, 0, "b");
	run(h, 3 * SECOND);
	assert_true(holds(h, 0, "b"));
	assert_int_equal(h->lm->budget.spent, 495);
}

/* Not before the last third of its lease, but then as often as it takes. */
LOCKMGR_TEST(without_budget_a_renewal_waits_for_the_last_third)
{
	int64_t		deadline;
	int			calls;

	get(h, 0, "a");
	spend(h);
	h->fate = fate_of(DYNAMO_THROTTLED);
	deadline = saved_of(h, 0, "a")->deadline;
	calls = h->call_count;
	run_until(h, deadline - LEASE_US / 3);
	assert_int_equal(h->call_count - calls, 1);
	run_until(h, deadline - SECOND / 2);
	assert_in_range(h->call_count - calls, 5, 20);
	h->fate = FATE_OK;
	run_until(h, deadline);
	assert_true(holds(h, 0, "a"));
	assert_int_equal(saved_of(h, 0, "a")->renewals, 1);
}

/* A renewal that a session waits for is not postponed; nor what one is told of it, or what follows. */
LOCKMGR_TEST(who_waits_for_a_renewal_does_not_wait_for_the_last_third)
{
	int			calls;

	lockmgr_set_timeouts(h->lm, SECOND, 4 * SECOND, SECOND);
	for (uint32_t i = 0; i < 3; i++)
		get(h, i, lock_name(i));
	spend(h);
	h->fate = fate_of(DYNAMO_THROTTLED);
	run(h, LEASE_US / 3 + SECOND / 2);
	calls = h->call_count;
	run(h, 2 * SECOND);
	assert_int_equal(h->call_count, calls);
	renew(h, 0, lock_name(0), 0);
	acquire(h, 3, lock_name(2));
	run(h, 7 * SECOND);
	assert_failed(h, 0, DYNAMO_THROTTLED);
	assert_failed(h, 3, DYNAMO_THROTTLED);
	h->fate = FATE_OK;
	let_go(h, 1, lock_name(1));
	settle(h);
	assert_true(item_of(h, lock_name(1))->released);
	assert_true(holds(h, 2, lock_name(2)));
}

/* Whether the repetition is in flight, or has succeeded. */
LOCKMGR_TEST(who_comes_after_a_postponed_renewal_does_not_repeat_it)
{
	harness_call *renewal;

	get(h, 0, "a");
	spend(h);
	h->fate = fate_of(DYNAMO_THROTTLED);
	run(h, LEASE_US / 3 + SECOND);
	h->fate = FATE_HOLD;
	while (last_call(h)->answered)
		run(h, SECOND / 10);
	renewal = last_call(h);
	assert_int_equal(renewal->c.op, DYNAMO_RENEW);
	acquire(h, 1, "a");
	assert_ptr_equal(last_call(h), renewal);
	deliver(h, renewal);
	acquire(h, 2, "a");
	assert_ptr_equal(last_call(h), renewal);
	assert_true(holds(h, 0, "a"));
}

/* However many come: a repetition that is due anyway is not sent earlier for them. */
LOCKMGR_TEST(who_waits_does_not_hurry_a_renewal)
{
	int			calls;

	get(h, 0, "a");
	h->fate = fate_of(DYNAMO_THROTTLED);
	run(h, LEASE_US / 3 + 5 * SECOND);
	calls = h->call_count;
	for (uint32_t i = 1; i <= 10; i++)
	{
		acquire(h, i, "a");
		run(h, MS);
	}
	assert_in_range(h->call_count - calls, 0, 1);
}

LOCKMGR_TEST(who_lets_go_does_not_wait_for_the_last_third)
{
	get(h, 0, "a");
	spend(h);
	h->fate = fate_of(DYNAMO_THROTTLED);
	run(h, LEASE_US / 3 + SECOND);
	h->fate = FATE_OK;
	let_go(h, 0, "a");
	settle(h);
	assert_true(is_free(h, "a"));
}

/* Those that wait for the last third may share a request, although they have jitter. */
LOCKMGR_TEST(postponed_renewals_share_requests)
{
	int64_t		deadline;
	int			calls;

	believe_batches(h);
	for (uint32_t i = 0; i < 25; i++)
		get(h, i, lock_name(i));
	spend(h);
	h->fate = fate_of(DYNAMO_THROTTLED);
	deadline = saved_of(h, 0, lock_name(0))->deadline;
	run_until(h, deadline - LEASE_US / 3);
	calls = h->call_count;
	run_until(h, deadline - LEASE_US / 4);
	h->fate = FATE_OK;
	run_until(h, deadline);
	assert_in_range(h->call_count - calls, 1, 25);
	for (uint32_t i = 0; i < 25; i++)
		assert_true(holds(h, i, lock_name(i)));
}

LOCKMGR_TEST(a_slot_that_does_not_exist_is_refused)
{
	uint32_t	slots = h->config.max_sessions;

	kill_manager(h);
	h->config.max_sessions = slots - 1;
	start_manager(h);
	acquire(h, slots - 1, "a");
	assert_result(h, slots - 1, LOCKMGR_NO_MEMORY);
	lockmgr_session_end(h->lm, h->now, session_of(h, slots - 1));
	lockmgr_cancel(h->lm, h->now, session_of(h, slots - 1), 1);
	lockmgr_let_go(h->lm, h->now, session_of(h, slots - 1), 0);
	assert_int_equal(lockmgr_next_hold(h->lm, slots - 1, LOCKMGR_NO_HOLD), LOCKMGR_NO_HOLD);
}

LOCKMGR_TEST(replies_that_belong_to_no_call_are_ignored)
{
	dynamo_result result = {.status = DYNAMO_OK};
	dynamo_reply answer = {.count = 1,.results = &result};

	lockmgr_reply(h->lm, h->now, 4711, &answer);
	get(h, 0, "a");
	lockmgr_reply(h->lm, h->now, h->calls[0].c.id, &answer);
	assert_true(holds(h, 0, "a"));
	assert_int_equal(counts_of(h).calls, 0);
}

LOCKMGR_TEST(an_idle_manager_wants_no_waking)
{
	assert_int_equal(lockmgr_next_wake(h->lm), INT64_MAX);
	get(h, 0, "a");
	assert_int_equal(lockmgr_next_wake(h->lm), saved_of(h, 0, "a")->lease_end -
					 (LEASE_MS * 1000 * 2 / 3));
	let_go(h, 0, "a");
	settle(h);
	assert_int_equal(lockmgr_next_wake(h->lm), INT64_MAX);
}

LOCKMGR_TEST(what_is_due_first_is_not_kept_waiting_by_what_is_due_later)
{
	int			reads;

	get(h, 0, "held");
	detach(h, 0, "held", 10 * SECOND);
	settle(h);
	next_fate(h, FATE_LOST_REQUEST);
	h->fate = fate_of(DYNAMO_THROTTLED);
	acquire(h, 1, "barred");
	run(h, 2 * SECOND);
	cancel(h, 1);
	look_up(h, 2, "looked up");
	while (counts_of(h).calls > 0 || lockmgr_next_wake(h->lm) < h->now + SECOND / 4)
		run(h, MS);

	h->fate = FATE_OK;
	reads = sent(h, DYNAMO_READ);
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	acquire(h, 3, "a");
	run(h, 100 * MS);
	assert_in_range(sent(h, DYNAMO_READ) - reads, 3, 8);
}

LOCKMGR_TEST(new_time_outs_hold_from_the_next_call)
{
	lockmgr_set_timeouts(h->lm, SECOND / 4, SECOND / 2, SECOND);
	h->fate = FATE_LOST_REQUEST;
	acquire(h, 0, "a");
	assert_int_equal(last_call(h)->c.timeout_us, SECOND / 4);
	run(h, SECOND);
	assert_failed(h, 0, DYNAMO_UNKNOWN);
	lockmgr_set_timeouts(h->lm, SECOND, SECOND / 8, SECOND);
	look_up(h, 1, "b");
	acquire(h, 2, "c");
	assert_int_equal(last_call(h)->c.timeout_us, SECOND / 8);
}

LOCKMGR_TEST(with_time_left_any_attempt_may_take_as_long_as_the_setting)
{
	foreign_hold(h, "b", "v1", LEASE_MS, 1);
	get(h, 0, "a");
	renew(h, 0, "a", 0);
	settle(h);
	acquire(h, 1, "b");
	settle(h);
	acquire(h, 2, "a");
	h->ask.at_least_ms = 1;
	acquire(h, 3, "a");
	release(h, 0, "a");
	look_up(h, 0, "a");
	settle(h);
	release(h, 2, "a");
	run(h, SECOND);
	release(h, 3, "a");
	settle(h);
	assert_true(sent(h, DYNAMO_HAND_OVER) > 0);
	for (int i = 0; i < h->call_count; i++)
		assert_int_equal(h->calls[i].c.timeout_us, ATTEMPT_US);
}

LOCKMGR_TEST(the_holds_of_a_slot_can_be_walked)
{
	uint32_t	seen = 0;
	uint32_t	next;

	get(h, 7, "a");
	get(h, 7, "b");
	get(h, 7, "c");
	get(h, 8, "d");
	for (uint32_t i = 0; i < 3; i++)
	{
		/* Of those that are left to the cluster, one is this slot's. */
		get(h, 6 + i, lock_name(i));
		detach(h, 6 + i, lock_name(i), 10 * SECOND);
	}
	for (uint32_t i = lockmgr_next_hold(h->lm, 7, LOCKMGR_NO_HOLD);
		 i != LOCKMGR_NO_HOLD; i = next)
	{
		next = lockmgr_next_hold(h->lm, 7, i);
		assert_int_equal(h->saved_holds[i].session.slot, 7);
		lockmgr_let_go(h->lm, h->now, session_of(h, 7), i);
		seen++;
	}
	assert_int_equal(seen, 4);
	assert_int_equal(lockmgr_next_hold(h->lm, 7, LOCKMGR_NO_HOLD), LOCKMGR_NO_HOLD);
	assert_true(holds(h, 8, "d"));
}

/* One more than the table of locks and the heaps of timers have room for at first. */
TEST(thousands_of_locks_are_told_apart)
{
	harness    *h = harness_new(1500);

	h->config.max_calls = 2000;
	start_manager(h);
	for (uint32_t i = 0; i < 1500; i++)
		acquire(h, i, lock_name(i % 1025));
	settle(h);
	for (uint32_t i = 0; i < 1500; i++)
		assert_true(i < 1025 ? holds(h, i, lock_name(i % 1025)) : h->asked[i].owed);
	assert_int_equal(counts_of(h).held, 1025);
	assert_int_equal(counts_of(h).waiters, 475);
	finish(h);
}

TEST(everybody_has_timers)
{
	const uint32_t many = 100;
	harness    *h = harness_new(many);

	h->config.max_calls = many;
	start_manager(h);
	for (uint32_t i = 0; i < many; i++)
	{
		get(h, i, lock_name(i));
		detach(h, i, lock_name(i), LEASE_US);
	}
	h->fate = fate_of(DYNAMO_THROTTLED);
	for (uint32_t i = 0; i < many; i++)
		look_up(h, i, lock_name(i));
	settle(h);
	h->fate = FATE_OK;
	run(h, 2 * LEASE_US);
	for (uint32_t i = 0; i < many; i++)
		assert_result(h, i, LOCKMGR_FOUND);
	assert_int_equal(counts_of(h).held, 0);

	/* Each of them is barred. */
	h->fate = FATE_LOST_REQUEST;
	acquire_many(h, many);
	run(h, SECOND / 2);
	for (uint32_t i = 0; i < many; i++)
		cancel(h, i);
	run(h, SECOND);
	assert_int_equal(counts_of(h).leases, many);
	finish(h);
}

/* Session 0 waits for "a".  The next poll is due, and waits for the only call: the look-up that is returned. */
static harness_call *
hold_up_a_poll(harness *h, int64_t waits)
{
	harness_call *call;

	acquire(h, 0, "a");
	run(h, waits);
	next_fate(h, FATE_HOLD);
	look_up(h, 5, "a");
	call = last_call(h);
	assert_int_equal(call->fate, FATE_HOLD);
	run(h, SECOND / 4);
	assert_ptr_equal(last_call(h), call);
	return call;
}

static int
gates_of(const harness *h)
{
	int			count = 0;

	for (int i = 0; i < h->call_count; i++)
		count += h->calls[i].writes[0].write.shared != NULL &&
			h->calls[i].writes[0].shared.kind == DYNAMO_SHARED_GATE;
	return count;
}

/* Nobody waits any more, or one who would share; or the look-up shows that nobody shares it. */
TEST(a_gate_that_nobody_needs_any_more_is_not_set)
{
	for (int reason = 0; reason < 5; reason++)
	{
		harness    *h = start_with(SIZE, 1, 16);
		harness_call *call;
		double_item *item = double_item_of(&h->table, "a");

		foreign_entry(h, "a", "v1", 1, MODE_SEMAPHORE);
		call = hold_up_a_poll(h, LATENCY_US + 1);
		if (reason == 1)
		{
			h->ask.mode = MODE_SHARED;
			acquire(h, 1, "a");
		}
		if (reason <= 1)
			cancel(h, 0);
		else
			foreign_hold(h, "a", "v2", LEASE_MS, 7);
		if (reason == 2)
		{
			free(item->shared);
			item->shared = NULL;
		}
		if (reason >= 3)
		{
			item->shared->current = false;
			item->shared->count = 0;
			item->shared->gate = true;
			snprintf(item->shared->gate_version, DYNAMO_VERSION_SIZE, "g1");
		}
		if (reason == 4)
			foreign_release(h, "a");
		deliver(h, call);
		run(h, SECOND / 2);
		assert_int_equal(gates_of(h), 0);
		finish(h);
	}
}

LOCKMGR_TEST_WITH(a_lock_that_is_free_is_not_marked, start_with(SIZE, 1, 16))
{
	harness_call *call;

	h->lm->poll_interval_us = 20 * MS;
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	item_of(h, "a")->by_ddblock = true;
	call = hold_up_a_poll(h, SECOND + 3 * MS);
	foreign_release(h, "a");
	deliver(h, call);
	run(h, SECOND / 2);
	assert_int_equal(sent(h, DYNAMO_MARK), 0);
	assert_result(h, 0, LOCKMGR_GRANTED);
}
