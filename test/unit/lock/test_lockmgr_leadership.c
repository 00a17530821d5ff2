/*-------------------------------------------------------------------------
 *
 * test_lockmgr_leadership.c
 *	  The lock manager: what it does for leaderships and leaders' transactions.
 *
 * Slot 0 is the leadership's.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

static void
stand(harness *h)
{
	h->ask.leadership = true;
	acquire(h, 0, "a");
	h->ask.leadership = false;
}

/* A leader's transaction asks, or a session that has heard of the token. */
static void
join(harness *h, uint32_t slot, int64_t token, bool leadership)
{
	harness_request *asked = &h->asked[slot];
	lockmgr    *lm = h->lm;

	h->lm = NULL;				/* ask() only fills in the request */
	h->ask.leadership = leadership;
	ask(h, slot, LOCKMGR_JOIN, "a", 0);
	h->ask.leadership = false;
	h->lm = lm;
	asked->request.ask.token = token;
	if (lm != NULL)
		lockmgr_ask(lm, h->now, &asked->request);
}

static int64_t
lead(harness *h)
{
	stand(h);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	return held_by(h, 0, "a")->token;
}

LOCKMGR_TEST(transactions_join_while_the_leadership_has_its_hold)
{
	int64_t		token = lead(h);

	assert_true(held_by(h, 0, "a")->leadership);
	join(h, 1, token, true);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_false(held_by(h, 1, "a")->leadership);
	assert_true(held_by(h, 1, "a")->joined);
	join(h, 2, token - 1, true);
	assert_result(h, 2, LOCKMGR_NOT_HELD);

	/* Giving up: who has joined goes on, and nobody else comes. */
	let_go(h, 0, "a");
	join(h, 2, token, true);
	assert_result(h, 2, LOCKMGR_NOT_HELD);
	run(h, 2 * LEASE_US);
	assert_true(holds(h, 1, "a"));
	assert_true(is_ours(h, "a"));
	let_go(h, 1, "a");
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_lock_that_a_session_holds_is_not_led)
{
	int64_t		token = get_token(h, 0, "a");

	join(h, 1, token, true);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	join(h, 1, token, false);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* Belief ends first; the lock is free when all have acknowledged that. */
LOCKMGR_TEST(who_is_interrupted_acknowledges_it_before_the_lock_is_free)
{
	int64_t		token = lead(h);

	join(h, 1, token, true);
	join(h, 2, token, true);
	let_go(h, 0, "a");
	lockmgr_revoke(h->lm, h->now, lease_on(h, "a"), h->saved[lease_on(h, "a")].generation + 1,
				   token);
	assert_int_equal(h->lost_count, 0);
	lockmgr_revoke(h->lm, h->now, lease_on(h, "a"), h->saved[lease_on(h, "a")].generation,
				   token - 1);	/* the lease has passed on */
	lockmgr_revoke(h->lm, h->now, SIZE, 0, token);
	assert_int_equal(h->lost_count, 0);
	lockmgr_revoke(h->lm, h->now, lease_on(h, "a"), h->saved[lease_on(h, "a")].generation,
				   token);
	assert_int_equal(h->lost_count, 2);
	assert_int_equal(h->lost[0].loss, LOSS_RESIGNED);
	assert_int_equal(held_by(h, 1, "a")->loss, LOSS_RESIGNED);
	assert_int_equal(h->saved[lease_on(h, "a")].valid_until, 0);
	lockmgr_revoke(h->lm, h->now, lease_on(h, "a"), h->saved[lease_on(h, "a")].generation,
				   token);		/* which is lost by now */
	assert_int_equal(h->lost_count, 2);
	run(h, LEASE_US / 4);
	assert_true(is_ours(h, "a"));
	let_go(h, 1, "a");
	settle(h);
	assert_true(is_ours(h, "a"));
	let_go(h, 2, "a");
	settle(h);
	assert_true(is_free(h, "a"));
}

/* While a renewal is under way, whose version then is to be released. */
LOCKMGR_TEST(who_is_interrupted_during_a_renewal)
{
	int64_t		token = lead(h);

	join(h, 1, token, true);
	let_go(h, 0, "a");
	next_fate(h, FATE_LOST_REPLY);
	while (sent(h, DYNAMO_RENEW) == 0)
		run(h, LEASE_US / 100);
	lockmgr_revoke(h->lm, h->now, lease_on(h, "a"), h->saved[lease_on(h, "a")].generation,
				   token);
	let_go(h, 1, "a");
	run(h, LEASE_US / 2);
	assert_true(is_free(h, "a"));
}

/* Also if nobody acknowledges it. */
LOCKMGR_TEST(who_does_not_acknowledge_it_keeps_the_lock_until_the_lease_ends)
{
	int64_t		token = lead(h);

	join(h, 1, token, true);
	let_go(h, 0, "a");
	lockmgr_revoke(h->lm, h->now, lease_on(h, "a"), h->saved[lease_on(h, "a")].generation,
				   token);
	run(h, LEASE_US / 2);
	assert_true(is_ours(h, "a"));
	run(h, LEASE_US / 2 + SECOND);
	assert_true(is_free(h, "a"));
}

/* It looks every tenth of its lease, but at least a second apart. */
static int
looks_in(int64_t lease_ms, int64_t time)
{
	harness    *h = harness_start();
	int			looks;
	lockmgr_counts counts;

	foreign_hold(h, "a", "v1", 100 * lease_ms, 5);
	h->ask.lease_ms = lease_ms;
	stand(h);
	run(h, time);
	looks = sent(h, DYNAMO_READ);
	lockmgr_count(h->lm, &counts);
	assert_int_equal(counts.waiters, 0);
	harness_free(h);
	return looks;
}

TEST(followers_look_rarely)
{
	assert_in_range(looks_in(60000, 600 * SECOND), 75, 100);
	assert_in_range(looks_in(2000, 60 * SECOND), 45, 60);
}

/* ... and take over at once when the leader is dead. */
LOCKMGR_TEST(a_follower_takes_over_when_the_leader_is_dead)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	h->ask.lease_ms = 60000;
	stand(h);
	settle(h);
	run(h, DEAD_US + LATENCY_US);
	assert_true(holds(h, 0, "a"));
}

/* The next manager goes on with both, and knows which is which. */
TEST(leadership_survives_its_manager)
{
	for (int effects = 0; effects < 8; effects++)
	{
		harness    *h = harness_start();
		int64_t		token;

		h->effects_left = effects;
		stand(h);
		settle(h);
		kill_manager(h);
		h->effects_left = -1;
		start_manager(h);
		run(h, SECOND);
		assert_result(h, 0, LOCKMGR_GRANTED);
		token = held_by(h, 0, "a")->token;
		join(h, 1, token, true);
		assert_result(h, 1, LOCKMGR_GRANTED);
		kill_manager(h);
		start_manager(h);
		assert_true(holds(h, 1, "a"));
		join(h, 2, token, true);
		assert_result(h, 2, LOCKMGR_GRANTED);
		let_go(h, 0, "a");
		kill_manager(h);
		start_manager(h);
		join(h, 3, token, true);
		assert_result(h, 3, LOCKMGR_NOT_HELD);
		finish(h);
	}
}
