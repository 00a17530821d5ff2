/*-------------------------------------------------------------------------
 *
 * test_lockmgr_adopt.c
 *	  A manager that adopts the leases of one that died.
 *
 * A manager dies at every moment of a course; the next one must continue: holders
 * keep their locks, each waiter gets one answer, writes that may have been applied
 * are repeated with their nonces.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_scenarios.h"

/* What session 0 does while there is no manager. */
typedef enum meanwhile
{
	NOTHING,
	CANCELLED,
	ENDED
} meanwhile;

static void
replace_manager(harness *h, int64_t gap)
{
	kill_manager(h);
	run(h, gap);
	start_manager(h);
}

/* The manager dies at that moment of the acquire. */
static void
die_at(const scenario *s, int64_t moment, meanwhile then)
{
	harness    *h = harness_start_with(FEW);

	s->prepare(h);
	acquire(h, 0, "a");
	acquire(h, 1, "a");
	run_scenario(h, s, moment);
	h->fate_count = 0;

	kill_manager(h);
	run(h, 20 * MS);
	if (then == CANCELLED)
		cancel(h, 0);
	else if (then == ENDED)
		end_session(h, 0);
	start_manager(h);
	rest_of_scenario(h, s, moment, 20 * MS);

	run(h, 5 * SECOND);
	if (then == NOTHING)
	{
		assert_then(s, moment, result_of(h, 0) == LOCKMGR_GRANTED);
		assert_then(s, moment, holds(h, 0, "a"));
		assert_then(s, moment, h->asked[1].owed);
		let_go(h, 0, "a");
		run(h, SECOND);
	}
	assert_then(s, moment, lease_of(h, 0, "a") == LOCKMGR_NO_HOLD);
	assert_then(s, moment, holds(h, 1, "a"));
	finish(h);
}

static void
die_everywhere(meanwhile then)
{
	for (size_t i = 0; i < COUNT_OF(scenarios); i++)
	{
		const scenario *s = &scenarios[i];

		for (int64_t moment = 0; moment <= s->granted_by; moment += s->every)
			die_at(s, moment, then);
	}
}

TEST(an_acquire_goes_on)
{
	die_everywhere(NOTHING);
}

TEST(an_acquire_cancelled_meanwhile_is_undone)
{
	die_everywhere(CANCELLED);
}

TEST(an_acquire_whose_session_ended_meanwhile_is_undone)
{
	die_everywhere(ENDED);
}

/* Renews, releases and hands over, with lost replies; dies at that moment. */
static void
die_while_held(int64_t moment)
{
	harness    *h = harness_start_with(FEW);
	int64_t		start;

	get(h, 0, "a");
	start = h->now;
	for (int turn = 0; turn < 4; turn++)
	{
		/* each turn begins a second after the last one */
		int64_t		end = start + (turn + 1) * SECOND;

		if (turn == 0)
		{
			next_fate(h, FATE_LOST_REPLY);
			renew(h, 0, "a", 30000);
		}
		else if (turn == 2)
		{
			acquire(h, 1, "a");
			next_fate(h, FATE_LOST_REPLY);
			release(h, 0, "a");
		}
		if (h->lm != NULL && end > start + moment)
		{
			run_until(h, start + moment > h->now ? start + moment : h->now);
			replace_manager(h, 30 * MS);
			moment = 100 * SECOND;
		}
		run_until(h, end > h->now ? end : h->now);
		if (turn == 1)
			assert_result(h, 0, LOCKMGR_RENEWED);
	}
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_true(holds(h, 1, "a"));
	assert_int_equal(h->lost_count, 0);
	finish(h);
}

TEST(a_holder_does_not_notice)
{
	for (int64_t moment = 0; moment <= 4 * SECOND; moment += 11 * MS)
		die_while_held(moment);
}

LOCKMGR_TEST(a_lease_is_renewed_on)
{
	get(h, 0, "a");
	for (int i = 0; i < 10; i++)
	{
		run(h, LEASE_US / 4);
		replace_manager(h, LEASE_US / 4);
	}
	assert_true(holds(h, 0, "a"));
	assert_int_equal(h->lost_count, 0);
}

TEST(a_pending_write_is_repeated_with_its_nonce)
{
	static const lockmgr_kind kinds[] = {LOCKMGR_ACQUIRE, LOCKMGR_RENEW, LOCKMGR_RELEASE};

	for (int i = 0; i < 3; i++)
	{
		harness    *h = harness_start();
		int			first;

		if (kinds[i] != LOCKMGR_ACQUIRE)
			get(h, 0, "a");
		next_fate(h, FATE_HOLD);
		ask(h, 0, kinds[i], "a", hold_of(h, 0, "a"));
		first = h->call_count - 1;
		apply(h, last_call(h));
		replace_manager(h, 10 * MS);
		assert_int_equal(h->call_count, first + 2);
		assert_true(last_call(h)->c.repeat);
		assert_string_equal(last_call(h)->writes[0].version, h->calls[first].writes[0].version);
		settle(h);
		assert_int_equal(h->call_count, first + 2);
		assert_true(h->asked[0].answered);
		assert_int_not_equal(h->asked[0].answer.result, LOCKMGR_FAILED);
		finish(h);
	}
}

LOCKMGR_TEST(a_deadline_still_counts_from_the_first_copy)
{
	int64_t		asked = h->now;

	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	run(h, SECOND / 2);
	replace_manager(h, 5 * SECOND);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(h->asked[0].answer.grant.valid_until, asked + LEASE_US - MARGIN_US);
}

LOCKMGR_TEST(a_grant_that_was_not_delivered_is_answered)
{
	int64_t		valid_until = get(h, 0, "a")->valid_until;

	/* Pretend that the session has not received its answer. */
	h->asked[0].owed = true;
	h->asked[0].answered = false;
	replace_manager(h, 10 * MS);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(h->asked[0].answer.grant.valid_until, valid_until);
}

LOCKMGR_TEST(a_renewal_asked_for_meanwhile_is_sent_at_once)
{
	get(h, 0, "a");
	kill_manager(h);
	renew(h, 0, "a", 60000);
	start_manager(h);
	settle(h);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_int_equal(saved_of(h, 0, "a")->lease_ms, 60000);
}

LOCKMGR_TEST(a_renewal_asked_for_is_not_confused_by_other_news)
{
	get(h, 0, "a");
	get(h, 1, "b");
	kill_manager(h);
	renew(h, 0, "a", 0);
	end_session(h, 1);			/* is read after the renewal */
	start_manager(h);
	settle(h);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_true(is_free(h, "b"));
}

LOCKMGR_TEST(a_release_asked_for_meanwhile_is_sent_at_once)
{
	get(h, 0, "a");
	get(h, 0, "b");
	kill_manager(h);
	release(h, 0, "a");
	let_go(h, 0, "b");
	start_manager(h);
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_true(is_free(h, "a"));
	assert_true(is_free(h, "b"));
}

LOCKMGR_TEST(a_release_under_way_is_answered_when_it_is_confirmed)
{
	get(h, 0, "a");
	h->fate = FATE_HOLD;
	release(h, 0, "a");
	replace_manager(h, 10 * MS);
	assert_waits(h, 0);
	h->fate = FATE_OK;
	deliver(h, last_call(h));
	assert_result(h, 0, LOCKMGR_RELEASED);
}

/* The lease was lost, and its slot has another session's lease. */
LOCKMGR_TEST(a_release_is_not_answered_for_the_next_lease_of_the_slot)
{
	get(h, 1, "b");
	kill_manager(h);
	release(h, 0, "b");
	h->asked[0].request.ask.lease_generation--;
	start_manager(h);
	settle(h);
	assert_result(h, 0, LOCKMGR_FAILED);
	assert_true(holds(h, 1, "b"));
}

LOCKMGR_TEST(a_release_of_a_slot_that_does_not_exist_is_answered)
{
	kill_manager(h);
	release(h, 0, "a");
	h->asked[0].request.ask.lease_index = LOCKMGR_NO_HOLD;
	start_manager(h);
	assert_result(h, 0, LOCKMGR_FAILED);
}

/* The previous manager had ended the one hold, and the other ends now: both are answered. */
LOCKMGR_TEST(two_who_release_a_shared_lock_are_answered)
{
	h->ask.mode = MODE_SHARED;
	get(h, 0, "a");
	get(h, 1, "a");
	h->effects_left = 1;
	release(h, 1, "a");
	kill_manager(h);
	h->effects_left = -1;
	release(h, 0, "a");
	start_manager(h);
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_result(h, 1, LOCKMGR_RELEASED);
}

LOCKMGR_TEST(a_hold_on_an_earlier_lease_is_not_adopted)
{
	get(h, 0, "a");
	kill_manager(h);
	h->saved_holds[hold_of(h, 0, "a")].lease_generation--;
	start_manager(h);
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_hold_with_another_token_is_not_adopted)
{
	ask_named(h, 1, LOCKMGR_JOIN, "a", get_token(h, 0, "a"));
	kill_manager(h);
	h->saved_holds[hold_of(h, 1, "a")].token--;
	start_manager(h);
	assert_int_equal(hold_of(h, 1, "a"), LOCKMGR_NO_HOLD);
	assert_true(holds(h, 0, "a"));
}

/* For the session of one of them there is no memory. */
LOCKMGR_TEST(who_shares_a_lease_that_cannot_be_adopted_loses_it)
{
	h->ask.mode = MODE_SHARED;
	get(h, 0, "a");
	get(h, 1, "a");
	kill_manager(h);
	h->saved_holds[hold_of(h, 1, "a")].session.slot = SIZE;
	start_manager(h);
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_LOST);
}

LOCKMGR_TEST(a_lease_that_ran_out_meanwhile_is_lost)
{
	get(h, 0, "a");
	replace_manager(h, LEASE_US - MARGIN_US);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_UNREACHABLE);
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_LOST);
	settle(h);
	assert_true(is_free(h, "a"));
}

/* The call of neither manager ends. */
LOCKMGR_TEST(a_lease_that_is_not_renewed_is_lost_at_its_deadline)
{
	get(h, 0, "a");
	h->fate = FATE_HOLD;
	run(h, LEASE_US / 2);
	replace_manager(h, SECOND);
	run_until(h, saved_of(h, 0, "a")->deadline);
	assert_int_equal(h->lost_count, 1);
	h->fate = FATE_OK;
	deliver(h, last_call(h));
}

/* Session 0 loses "a", because no renewal succeeds. */
static const saved_lease *
lose(harness *h)
{
	const saved_lease *l = get(h, 0, "a");

	h->fate = FATE_LOST_REPLY;
	run_until(h, l->deadline);
	assert_int_equal(l->state, LEASE_LOST);
	return l;
}

LOCKMGR_TEST(a_lost_lease_stays_lost_until_the_session_knows)
{
	const saved_lease *l = lose(h);

	kill_manager(h);
	h->fate = FATE_OK;
	start_manager(h);
	run(h, SECOND);
	assert_int_equal(h->lost_count, 1);
	assert_false(is_free(h, "a"));
	renew(h, 0, "a", 0);
	assert_result(h, 0, LOCKMGR_LOST);
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_LOST);
	settle(h);
	assert_true(is_free(h, "a"));
	assert_int_equal(l->state, LEASE_FREE);
}

/* A duplicate name has the same effect as a lack of memory. */
LOCKMGR_TEST(a_lease_that_cannot_be_adopted_is_told_as_lost)
{
	get(h, 0, "a");
	get(h, 1, "b");
	kill_manager(h);
	memcpy(h->saved_name[1], h->saved_name[0], sizeof(h->saved_name[0]));
	start_manager(h);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].lease, 1);
	assert_int_equal(h->lost[0].loss, LOSS_UNREACHABLE);
	memcpy(h->saved_name[1], "b", sizeof("b"));
	release(h, 1, "b");
	assert_result(h, 1, LOCKMGR_LOST);
	release(h, 0, "a");
	settle(h);
	assert_true(is_free(h, "a"));
	delete_item(h, "b");
}

TEST(a_lost_leases_item_is_released_when_it_has_ended)
{
	/* Dies at every moment of a release whose reply is lost. */
	for (int64_t moment = -MS; moment < 1500 * MS; moment += 7 * MS)
	{
		harness    *h = harness_start_with(FEW);
		const saved_lease *l = lose(h);

		run_until(h, l->lease_end + moment);
		kill_manager(h);
		h->fate = FATE_OK;
		start_manager(h);
		run(h, SECOND);
		assert_true(is_free(h, "a"));
		assert_int_equal(l->state, LEASE_LOST);
		get(h, 1, "a");
		let_go(h, 0, "a");
		assert_int_equal(l->state, LEASE_FREE);
		finish(h);
	}
}

LOCKMGR_TEST(a_lost_lease_without_an_item_is_kept_for_the_session)
{
	get(h, 0, "a");
	delete_item(h, "a");
	run(h, LEASE_US / 3 + SECOND);
	assert_int_equal(h->lost_count, 1);
	get(h, 1, "a");
	replace_manager(h, 10 * MS);
	assert_true(holds(h, 1, "a"));
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_LOST);
	assert_int_equal(h->asked[0].answer.loss, LOSS_DELETED);
	settle(h);
	assert_true(holds(h, 1, "a"));
}

LOCKMGR_TEST(leases_of_sessions_that_ended_meanwhile_are_freed)
{
	get(h, 0, "a");
	get(h, 0, "b");
	get(h, 1, "c");
	acquire(h, 2, "b");
	kill_manager(h);
	end_session(h, 0);
	acquire(h, 0, "d");			/* the slot's next user */
	start_manager(h);
	settle(h);
	assert_true(is_free(h, "a"));
	assert_true(holds(h, 2, "b"));
	assert_true(holds(h, 1, "c"));
	assert_true(holds(h, 0, "d"));
}

LOCKMGR_TEST(tries_are_answered_as_before)
{
	get(h, 0, "a");
	foreign_hold(h, "b", "v1", LEASE_MS, 1);
	kill_manager(h);
	try_acquire(h, 1, "a");
	try_acquire(h, 2, "b");
	try_acquire(h, 3, "c");
	start_manager(h);
	settle(h);
	assert_result(h, 1, LOCKMGR_BUSY);
	assert_result(h, 2, LOCKMGR_BUSY);
	assert_result(h, 3, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_try_under_way_gets_its_lock)
{
	next_fate(h, FATE_LOST_REPLY);
	try_acquire(h, 3, "a");
	run(h, LATENCY_US);
	kill_manager(h);
	acquire(h, 1, "a");			/* is read before the try */
	start_manager(h);
	settle(h);
	assert_result(h, 3, LOCKMGR_GRANTED);
	assert_waits(h, 1);
}

LOCKMGR_TEST(waiters_behind_an_abandoned_acquire_are_not_failed)
{
	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, 0, "a");
	kill_manager(h);
	cancel(h, 0);
	acquire(h, 1, "a");
	start_manager(h);
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_replaced_manager_does_not_believe_in_what_another_cluster_took)
{
	get(h, 0, "a");
	kill_manager(h);
	foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
	run(h, LEASE_US / 2);
	start_manager(h);
	settle(h);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_TAKEN);
}

/* A hand-over has no condition that would refuse a lower token. */
LOCKMGR_TEST(tokens_ahead_of_the_clock_rise_with_the_next_manager)
{
	int64_t		token;

	prepare_high_token(h);
	token = get_token(h, 0, "a");
	renew(h, 0, "a", 0);		/* a write without tokens */
	acquire(h, 1, "a");
	settle(h);
	replace_manager(h, 10 * MS);
	let_go(h, 0, "a");
	settle(h);
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	assert_true(held_by(h, 1, "a")->token > token);
}

static void
do_acquire(harness *h)
{
	acquire(h, 0, "a");
}

static void
do_release(harness *h)
{
	get(h, 0, "a");
	h->effects_left = h->effects;
	release(h, 0, "a");
}

static void
do_renew(harness *h)
{
	get(h, 0, "a");
	h->effects_left = h->effects;
	renew(h, 0, "a", 3 * LEASE_MS);
}

static void
do_lose(harness *h)
{
	get(h, 0, "a");
	delete_item(h, "a");
	h->effects_left = h->effects;
	renew(h, 0, "a", 0);
}

static void
do_acknowledge(harness *h)
{
	(void) lose(h);
	h->fate = FATE_OK;
	h->effects_left = h->effects;
	release(h, 0, "a");
}

static void
do_end(harness *h)
{
	get(h, 0, "a");
	get(h, 0, "b");
	h->effects_left = h->effects;
	end_session(h, 0);
}

/* Dies after so many effects, in the middle of an event: the next one cleans up. */
TEST(a_manager_may_die_after_any_effect)
{
	void		(*const acts[]) (harness *h) = {
		do_acquire, do_release, do_renew, do_lose, do_acknowledge, do_end,
	};

	for (size_t i = 0; i < COUNT_OF(acts); i++)
	{
		for (int effects = 0; effects < 10; effects++)
		{
			harness    *h = harness_start();

			h->effects = effects;
			if (acts[i] == do_acquire)
				h->effects_left = effects;
			acts[i] (h);
			settle(h);
			kill_manager(h);
			h->effects_left = -1;
			start_manager(h);
			run(h, 2 * LEASE_US);
			assert_false(h->asked[0].owed);
			if (acts[i] == do_acquire)
				assert_true(holds(h, 0, "a"));
			finish(h);
		}
	}
}
