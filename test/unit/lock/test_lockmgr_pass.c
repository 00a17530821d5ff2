/*-------------------------------------------------------------------------
 *
 * test_lockmgr_pass.c
 *	  A lock passes from session to session of this cluster without a request.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#define RUN_US SECOND

/* Session 0 has lock "a", on a lease with reserved tokens; the others wait for it. */
static harness *
start_with_waiters(uint32_t waiters)
{
	harness    *h = harness_start();

	get(h, 9, "a");
	acquire(h, 0, "a");
	let_go(h, 9, "a");
	settle(h);
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	assert_true(holds(h, 0, "a"));
	for (uint32_t i = 1; i <= waiters; i++)
		acquire(h, i, "a");
	return h;
}

LOCKMGR_TEST_WITH(a_waiting_session_gets_the_lock_without_a_request, start_with_waiters(2))
{
	const saved_lease *l = saved_of(h, 0, "a");
	int64_t		token = held_by(h, 0, "a")->token;
	uint32_t	generation = l->generation;
	int64_t		valid_until;
	int			calls;

	renew(h, 0, "a", LEASE_MS);
	settle(h);
	assert_int_equal(l->renewals, 1);
	valid_until = l->valid_until;
	calls = h->call_count;
	for (uint32_t i = 0; i < 2; i++)
	{
		release(h, i, "a");
		assert_result(h, i, LOCKMGR_RELEASED);
		assert_int_equal(hold_of(h, i, "a"), LOCKMGR_NO_HOLD);
		assert_result(h, i + 1, LOCKMGR_GRANTED);
		assert_int_equal(h->asked[i + 1].answer.grant.token, token + i + 1);
		assert_int_equal(h->asked[i + 1].answer.grant.valid_until, valid_until);
		assert_int_equal(l->generation, generation);
		assert_int_equal(l->renewals, 0);
		assert_true(h->asked[i + 1].answer.grant.token <= item_of(h, "a")->token);
	}
	assert_int_equal(h->call_count, calls);
}

LOCKMGR_TEST(an_acquire_reserves_tokens_if_others_wait)
{
	acquire(h, 0, "a");
	settle(h);
	assert_int_equal(item_of(h, "a")->token, h->asked[0].answer.grant.token);
	let_go(h, 0, "a");
	settle(h);

	next_fate(h, fate_of(DYNAMO_THROTTLED));
	acquire(h, 0, "a");
	acquire(h, 1, "a");
	run(h, SECOND);
	assert_int_equal(last_call(h)->c.op, DYNAMO_ACQUIRE);
	assert_int_equal(item_of(h, "a")->token, h->asked[0].answer.grant.token + TOKENS - 1);
}

/* All but the last few tokens are in use. */
LOCKMGR_TEST(the_highest_tokens_are_not_reserved)
{
	foreign_hold(h, "a", "v1", LEASE_MS, INT64_MAX - 3);
	foreign_release(h, "a");
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	acquire(h, 0, "a");
	acquire(h, 1, "a");
	run(h, SECOND);
	assert_int_equal(h->asked[0].answer.grant.token, INT64_MAX - 2);
	assert_int_equal(item_of(h, "a")->token, INT64_MAX - 2);
}

/* The highest token is in use: the lock cannot be acquired again. */
LOCKMGR_TEST(no_token_follows_the_highest)
{
	foreign_hold(h, "a", "v1", LEASE_MS, INT64_MAX - 1);
	foreign_release(h, "a");
	get(h, 0, "a");
	assert_int_equal(h->asked[0].answer.grant.token, INT64_MAX);
	acquire(h, 1, "a");
	let_go(h, 0, "a");
	run(h, SECOND);
	assert_int_equal(item_of(h, "a")->token, INT64_MAX);
	assert_true(is_free(h, "a"));
	assert_int_equal(result_of(h, 1), LOCKMGR_BAD_ITEM);
	assert_int_equal(sent(h, DYNAMO_HAND_OVER), 0);
}

LOCKMGR_TEST(when_the_highest_token_is_gone_the_time_is_the_next)
{
	foreign_hold(h, "a", "v1", LEASE_MS, INT64_MAX - 1);
	foreign_release(h, "a");
	get(h, 0, "a");
	let_go(h, 0, "a");
	settle(h);
	delete_item(h, "a");
	get(h, 0, "a");
	assert_int_equal(held_by(h, 0, "a")->token, last_call(h)->sent + h->epoch_offset);
}

LOCKMGR_TEST_WITH(tokens_that_are_used_up_are_reserved_anew, start_with_waiters(1))
{
	int64_t		token = held_by(h, 0, "a")->token;
	int			calls = h->call_count;

	for (uint32_t i = 1; i < TOKENS; i++)
	{
		let_go(h, (i + 1) % 2, "a");
		assert_result(h, i % 2, LOCKMGR_GRANTED);
		assert_int_equal(h->asked[i % 2].answer.grant.token, token + i);
		acquire(h, (i + 1) % 2, "a");
	}
	assert_int_equal(item_of(h, "a")->token, token + TOKENS - 1);
	assert_int_equal(h->call_count, calls);
	let_go(h, 1, "a");
	assert_waits(h, 0);
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	settle(h);
	assert_int_equal(h->call_count, calls + 1);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_true(h->asked[0].answer.grant.token >= token + TOKENS);
}

/* What the next session wants makes a request necessary; it gets the lock by that. */
static void
assert_handed_over(harness *h)
{
	int			calls = h->call_count;

	let_go(h, 0, "a");
	assert_waits(h, 1);
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	settle(h);
	assert_int_equal(h->call_count, calls + 1);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST_WITH(another_length_is_written, start_with_waiters(0))
{
	h->ask.lease_ms = 30000;
	acquire(h, 1, "a");
	assert_handed_over(h);
	assert_int_equal(item_of(h, "a")->lease_ms, 30000);
}

LOCKMGR_TEST_WITH(data_is_written, start_with_waiters(0))
{
	h->data = "new";
	acquire(h, 1, "a");
	assert_handed_over(h);
	assert_int_equal(double_item_of(&h->table, "a")->data_len, 3);
}

LOCKMGR_TEST_WITH(data_of_the_last_holder_is_removed, start_with_waiters(0))
{
	h->data = "old";
	acquire(h, 2, "a");
	let_go(h, 0, "a");
	settle(h);
	assert_true(holds(h, 2, "a"));
	h->data = NULL;
	acquire(h, 0, "a");
	let_go(h, 2, "a");
	settle(h);
	assert_int_equal(double_item_of(&h->table, "a")->data_len, 0);
	acquire(h, 1, "a");
	let_go(h, 0, "a");
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* DynamoDB is out of reach, until half of the lease and more has passed. */
LOCKMGR_TEST_WITH(a_lease_that_was_not_renewed_does_not_pass_on, start_with_waiters(1))
{
	const saved_lease *l = saved_of(h, 0, "a");

	h->fate = fate_of(DYNAMO_UNREACHABLE);
	run_until(h, l->lease_end - LEASE_US / 2);
	assert_true(holds(h, 0, "a"));
	let_go(h, 0, "a");
	run(h, SECOND);
	assert_false(holds(h, 1, "a"));
	h->fate = FATE_OK;
	run(h, 2 * SECOND);
	acquire(h, 1, "a");
	run(h, 2 * SECOND);
	assert_true(holds(h, 1, "a"));
}

/* Its renewals fail until then.  It has tokens, and no run has begun that could end. */
LOCKMGR_TEST(a_lease_in_its_second_half_does_not_pass_on)
{
	int64_t		start;

	lockmgr_set_timeouts(h->lm, ATTEMPT_US, LEASE_US, SECOND);
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	acquire(h, 0, "a");
	acquire(h, 1, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	start = last_call(h)->sent;
	run_until(h, start + LEASE_US / 3 - SECOND);
	h->fate = FATE_LOST_REQUEST;
	run_until(h, start + LEASE_US * 9 / 10 - MARGIN_US);
	h->fate = FATE_OK;
	let_go(h, 0, "a");
	run(h, 2 * SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_true(h->asked[1].answer.grant.valid_until - h->now > LEASE_US / 2);
}

LOCKMGR_TEST_WITH(a_lease_does_not_pass_to_a_margin_that_has_begun, start_with_waiters(0))
{
	h->ask.margin_us = LEASE_US - 20 * MS;
	acquire(h, 1, "a");
	let_go(h, 0, "a");
	run(h, 2 * LATENCY_US);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_true(h->asked[1].answer.grant.valid_until > h->now);
}

LOCKMGR_TEST_WITH(a_renewal_under_way_is_waited_for, start_with_waiters(1))
{
	next_fate(h, FATE_HOLD);
	renew(h, 0, "a", 0);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RENEW);
	let_go(h, 0, "a");
	assert_waits(h, 1);
	deliver(h, last_call(h));
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(h->asked[1].answer.grant.valid_until, last_call(h)->sent + LEASE_US - MARGIN_US);
}

LOCKMGR_TEST_WITH(each_session_has_its_own_margin, start_with_waiters(0))
{
	const saved_lease *l = saved_of(h, 0, "a");
	int64_t		lease_end = l->lease_end;

	h->ask.margin_us = 3 * MARGIN_US;
	acquire(h, 1, "a");
	h->ask.margin_us = MARGIN_US;
	acquire(h, 2, "a");
	let_go(h, 0, "a");
	assert_int_equal(h->asked[1].answer.grant.valid_until, lease_end - 3 * MARGIN_US);
	let_go(h, 1, "a");
	assert_int_equal(h->asked[2].answer.grant.valid_until, lease_end - MARGIN_US);
	assert_int_equal(l->lease_end, lease_end);
}

LOCKMGR_TEST_WITH(the_item_shows_the_holder_after_a_renewal, start_with_waiters(1))
{
	let_go(h, 0, "a");
	assert_true(holds(h, 1, "a"));
	assert_int_equal(item_of(h, "a")->holder.pid, pid_of(0));
	assert_int_equal(held_by(h, 1, "a")->holder.pid, pid_of(1));
	assert_int_equal(held_by(h, 1, "a")->holder.since_ms, held_by(h, 1, "a")->acquired_ms);
	acquire(h, 2, "a");
	assert_int_equal(h->watches[h->asked[2].watch].holder.pid, pid_of(1));

	/* This cluster shows it before, if the item is its own. */
	look_up(h, 3, "a");
	settle(h);
	assert_int_equal(h->asked[3].item.holder.pid, pid_of(0));
	item_of(h, "a")->by_ddblock = true;
	strcpy(item_of(h, "a")->owner, "them/1");
	look_up(h, 3, "a");
	settle(h);
	assert_int_equal(h->asked[3].item.holder.pid, pid_of(0));
	strcpy(item_of(h, "a")->owner, OUR_OWNER);
	look_up(h, 3, "a");
	settle(h);
	assert_int_equal(h->asked[3].item.holder.pid, pid_of(1));
	assert_int_equal(h->asked[3].item.hold_token, held_by(h, 1, "a")->token);
	assert_int_equal(h->asked[3].item.token, item_of(h, "a")->token);

	run(h, LEASE_US / 3);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RENEW);
	assert_int_equal(item_of(h, "a")->holder.pid, pid_of(1));
	run(h, LEASE_US / 3);
	assert_null(last_call(h)->writes[0].write.holder);
	assert_int_equal(saved_of(h, 1, "a")->renewals, 2);
}

LOCKMGR_TEST_WITH(a_lost_lease_is_lost_to_its_last_holder_only, start_with_waiters(1))
{
	let_go(h, 0, "a");
	delete_item(h, "a");
	run(h, LEASE_US / 3 + SECOND);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(held_by(h, 1, "a")->loss, LOSS_DELETED);
	release(h, 1, "a");
	assert_result(h, 1, LOCKMGR_LOST);
}

LOCKMGR_TEST_WITH(who_may_not_have_another_lease_is_passed_over, start_with_waiters(0))
{
	h->ask.role = 7;
	h->ask.role_max_leases = 1;
	get(h, 1, "b");
	acquire(h, 2, "a");
	h->ask.role = 0;
	h->ask.role_max_leases = 0;
	acquire(h, 3, "a");
	let_go(h, 0, "a");
	assert_result(h, 2, LOCKMGR_ROLE_FULL);
	assert_result(h, 3, LOCKMGR_GRANTED);
}

/* With two sessions that take turns, a run costs what its first hand-over does. */
LOCKMGR_TEST(two_sessions_that_take_turns_send_nothing_in_a_run)
{
	uint32_t	holder = 0;
	int64_t		end;
	int			passes = 0;

	get(h, 0, "a");
	acquire(h, 1, "a");
	let_go(h, 0, "a");
	end = h->now + RUN_US / 8 - 2 * MS;
	run(h, LATENCY_US);
	holder = 1;
	while (h->now < end)
	{
		acquire(h, 1 - holder, "a");
		run(h, 2 * MS);
		let_go(h, holder, "a");
		holder = 1 - holder;
		assert_true(holds(h, holder, "a"));
		passes++;
	}
	assert_true(passes > 20);
	assert_int_equal(sent(h, DYNAMO_ACQUIRE) + sent(h, DYNAMO_HAND_OVER), 2);
	assert_int_equal(h->call_count, 2);
	run(h, RUN_US);
	acquire(h, 1 - holder, "a");
	let_go(h, holder, "a");
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
}

/*
 * The manager dies after so many effects, wherever that is.  Nobody is granted a
 * token twice, and whoever waits gets the lock.
 */
TEST(a_manager_that_dies_while_it_passes_on_has_given_nothing_away)
{
	for (int effects = 0; effects < 12; effects++)
	{
		harness    *h = start_with_waiters(2);
		int64_t		token = held_by(h, 0, "a")->token;

		h->effects_left = effects;
		release(h, 0, "a");
		kill_manager(h);
		h->effects_left = -1;
		start_manager(h);
		for (uint32_t i = 1; i <= 2; i++)
		{
			run(h, SECOND);
			assert_true(holds(h, i, "a"));
			assert_result(h, i, LOCKMGR_GRANTED);
			assert_true(h->asked[i].answer.grant.token > token);
			assert_int_equal(held_by(h, i, "a")->token, h->asked[i].answer.grant.token);
			token = h->asked[i].answer.grant.token;
			let_go(h, i, "a");
		}
		assert_result(h, 0, LOCKMGR_RELEASED);
		finish(h);
	}
}
