/*-------------------------------------------------------------------------
 *
 * test_lockmgr_join.c
 *	  The lock manager: joined and detached holds.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

static void
join(harness *h, uint32_t slot, const char *name, int64_t token)
{
	ask_named(h, slot, LOCKMGR_JOIN, name, token);
}

static int
holds_on(const harness *h, const char *name)
{
	int			count = 0;

	for (uint32_t i = 0; i < h->config.max_leases; i++)
		count += h->saved_holds[i].session.generation != 0 &&
			strcmp(h->saved_name[h->saved_holds[i].lease_index], name) == 0;
	return count;
}

LOCKMGR_TEST(a_session_joins_without_a_request)
{
	int64_t		token = get_token(h, 0, "a");
	int			writes = h->table.writes;

	join(h, 1, "a", token);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(h->asked[1].answer.grant.token, token);
	assert_true(held_by(h, 1, "a")->joined);
	assert_false(held_by(h, 0, "a")->joined);
	assert_int_equal(held_by(h, 1, "a")->acquired_ms, (h->now + h->epoch_offset) / 1000);
	assert_int_equal(h->table.writes, writes);

	/* The lock is free when both have let go, whoever is first. */
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_RELEASED);
	settle(h);
	assert_true(is_ours(h, "a"));
	run(h, 2 * LEASE_US);
	assert_true(is_ours(h, "a"));
	assert_int_equal(item_of(h, "a")->holder.pid, pid_of(1));
	release(h, 1, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_RELEASED);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_join_names_the_token_and_the_role)
{
	int64_t		token = get_token(h, 0, "a");

	join(h, 1, "a", token + 1);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	join(h, 1, "a", token - 1);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	h->ask.role = 7;				/* whose limits count, and nothing else */
	h->ask.role_max_leases = 2;
	get(h, 2, "b");
	join(h, 1, "a", token);
	assert_result(h, 1, LOCKMGR_GRANTED);
	let_go(h, 1, "a");
	get(h, 3, "c");
	join(h, 4, "a", token);
	assert_result(h, 4, LOCKMGR_ROLE_FULL);
	h->ask.role_max_leases = 0;
	h->ask.taker = 7;
	join(h, 1, "a", token);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	h->ask.taker = 0;
	release(h, 0, "a");
	settle(h);
	join(h, 1, "a", token);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
}

LOCKMGR_TEST(nobody_joins_under_an_old_token)
{
	int64_t		first = get_token(h, 0, "a");

	/* With a hand-over, which reserves tokens; and then without a request. */
	for (uint32_t i = 0; i < 3; i++)
	{
		acquire(h, i + 1, "a");
		join(h, 10, "a", first);
		assert_result(h, 10, LOCKMGR_GRANTED);
		release(h, i, "a");
		settle(h);
		assert_waits(h, i + 1);	/* 10 has it still */
		release(h, 10, "a");
		run(h, SECOND);
		assert_result(h, i + 1, LOCKMGR_GRANTED);
		assert_true(held_by(h, i + 1, "a")->token > first);
		join(h, 10, "a", first);
		assert_result(h, 10, LOCKMGR_NOT_HELD);
		first = held_by(h, i + 1, "a")->token;
	}
}

/* Both ask while a renewal is under way, which takes neither length. */
LOCKMGR_TEST(who_asks_for_a_shorter_lease_leaves_the_longer_one_that_another_asks_for)
{
	join(h, 1, "a", get_token(h, 0, "a"));
	assert_result(h, 1, LOCKMGR_GRANTED);
	for (int i = 0; i < 2; i++)
	{
		int64_t		length = (3 + i) * LEASE_MS;

		next_fate(h, FATE_HOLD);
		run(h, saved_of(h, 0, "a")->lease_ms * 1000 / 3);
		renew(h, 0, "a", length);
		renew(h, 1, "a", i == 0 ? 2 * LEASE_MS : 0);
		deliver(h, last_call(h));
		settle(h);
		assert_result(h, 0, LOCKMGR_RENEWED);
		assert_result(h, 1, LOCKMGR_RENEWED);
		assert_int_equal(item_of(h, "a")->lease_ms, length);
		assert_int_equal(saved_of(h, 0, "a")->margin_us, length * 100);
	}
}

LOCKMGR_TEST(a_loss_is_told_to_all)
{
	int64_t		token = get_token(h, 0, "a");

	join(h, 1, "a", token);
	assert_result(h, 1, LOCKMGR_GRANTED);
	delete_item(h, "a");
	run(h, LEASE_US);
	assert_int_equal(h->lost_count, 2);
	assert_int_equal(held_by(h, 0, "a")->loss, LOSS_DELETED);
	assert_int_equal(held_by(h, 1, "a")->loss, LOSS_DELETED);
	join(h, 2, "a", token);
	assert_result(h, 2, LOCKMGR_NOT_HELD);
	let_go(h, 0, "a");
	assert_int_equal(holds_on(h, "a"), 1);
	let_go(h, 1, "a");
	assert_int_equal(holds_on(h, "a"), 0);
}

/* Of those who have the lock, the item shows the one that has had it for longest. */
LOCKMGR_TEST(the_first_of_those_who_hold_is_shown)
{
	int64_t		token = get_token(h, 0, "a");
	const lockmgr_watch *watch;

	for (uint32_t slot = 1; slot <= 3; slot++)
	{
		run(h, SECOND);
		join(h, slot, "a", token);
	}
	acquire(h, 4, "a");
	watch = &h->watches[h->asked[4].watch];
	assert_int_equal(watch->holder.pid, pid_of(0));
	let_go(h, 3, "a");			/* another one stays the first */
	assert_int_equal(watch->holder.pid, pid_of(0));
	run(h, LEASE_US / 2);
	assert_int_equal(item_of(h, "a")->holder.pid, pid_of(0));
	let_go(h, 0, "a");
	assert_int_equal(watch->holder.pid, pid_of(1));
	assert_int_equal(watch->holder.since_ms, held_by(h, 1, "a")->acquired_ms);
	kill_manager(h);
	start_manager(h);
	watch = &h->watches[h->asked[4].watch];
	assert_int_equal(watch->holder.pid, pid_of(1));
	let_go(h, 1, "a");
	assert_int_equal(watch->holder.pid, pid_of(2));
	run(h, LEASE_US / 2);
	assert_int_equal(item_of(h, "a")->holder.pid, pid_of(2));
}

LOCKMGR_TEST(of_those_who_join_in_the_same_moment_the_first_is_shown)
{
	int64_t		token = get_token(h, 0, "a");

	join(h, 1, "a", token);
	join(h, 2, "a", token);
	acquire(h, 4, "a");
	let_go(h, 0, "a");
	assert_int_equal(h->watches[h->asked[4].watch].holder.pid, pid_of(1));
}

/* The renewal under way shows the one that was first when it was sent. */
LOCKMGR_TEST(who_is_the_first_during_a_renewal_is_shown_by_the_next)
{
	int64_t		token = get_token(h, 0, "a");

	for (uint32_t slot = 1; slot <= 2; slot++)
	{
		run(h, SECOND);
		join(h, slot, "a", token);
	}
	let_go(h, 0, "a");
	next_fate(h, FATE_HOLD);
	renew(h, 2, "a", 0);
	let_go(h, 1, "a");
	deliver(h, last_call(h));
	assert_int_equal(item_of(h, "a")->holder.pid, pid_of(1));
	run(h, LEASE_US / 2);
	assert_int_equal(item_of(h, "a")->holder.pid, pid_of(2));
}

/* A process that has gone is not shown. */
LOCKMGR_TEST(who_has_joined_its_own_hold_is_shown_with_what_is_left)
{
	int64_t		token = get_token(h, 0, "a");
	uint32_t	first = hold_of(h, 0, "a");

	run(h, SECOND);
	join(h, 0, "a", token);
	lockmgr_let_go(h->lm, h->now, session_of(h, 0), first);
	assert_int_equal(saved_of(h, 0, "a")->holder.since_ms, held_by(h, 0, "a")->acquired_ms);
}

LOCKMGR_TEST(a_detached_hold_is_shown_without_a_process)
{
	int64_t		token = get_token(h, 0, "a");
	const lockmgr_watch *watch;

	acquire(h, 4, "a");
	watch = &h->watches[h->asked[4].watch];
	detach(h, 0, "a", 40 * SECOND);
	assert_true(watch->local);
	assert_int_equal(watch->holder.pid, 0);
	assert_string_equal(watch->holder.database, "db");
	run(h, LEASE_US / 2);
	assert_int_equal(item_of(h, "a")->holder.pid, 0);
	join(h, 1, "a", token);
	assert_int_equal(watch->holder.pid, pid_of(1));
	let_go(h, 1, "a");
	assert_int_equal(watch->holder.pid, 0);
}

LOCKMGR_TEST(who_detaches_a_newer_hold_leaves_the_older_one_shown)
{
	int64_t		token = get_token(h, 0, "a");

	join(h, 1, "a", token);
	detach(h, 1, "a", 5 * SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(saved_of(h, 0, "a")->holder.pid, pid_of(0));
}

LOCKMGR_TEST(a_session_joins_while_the_lease_is_renewed)
{
	int64_t		token = get_token(h, 0, "a");

	h->fate = FATE_HOLD;
	run(h, LEASE_US / 2);
	join(h, 1, "a", token);
	assert_result(h, 1, LOCKMGR_GRANTED);
	let_go(h, 0, "a");
	h->fate = FATE_OK;
	deliver(h, last_call(h));
	run(h, LEASE_US);
	assert_int_equal(held_by(h, 1, "a")->loss, LOSS_NONE);
	assert_true(is_ours(h, "a"));
}

/* The timer that ends belief may come later than the request. */
LOCKMGR_TEST(nobody_joins_after_the_deadline)
{
	int64_t		token = get_token(h, 0, "a");

	h->fate = FATE_HOLD;
	run(h, LEASE_US / 2);
	h->now = saved_of(h, 0, "a")->valid_until;
	join(h, 1, "a", token);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	detach(h, 0, "a", 60 * SECOND);
	assert_result(h, 0, LOCKMGR_NOT_HELD);
	h->fate = FATE_OK;
	deliver(h, last_call(h));
}

LOCKMGR_TEST(a_join_that_is_cancelled_ends)
{
	int64_t		token = get_token(h, 0, "a");

	join(h, 1, "a", token);
	cancel(h, 1);
	assert_int_equal(holds_on(h, "a"), 1);
	release(h, 0, "a");
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST_WITH(a_joined_hold_takes_the_room_of_a_lease, harness_new(3))
{
	int64_t		token;

	start_manager(h);
	token = get_token(h, 0, "a");
	join(h, 1, "a", token);
	get(h, 2, "b");
	acquire(h, 1, "c");
	settle(h);
	assert_result(h, 1, LOCKMGR_NO_ROOM);
	let_go(h, 1, "a");
	get(h, 1, "c");
	join(h, 2, "a", token);
	assert_result(h, 2, LOCKMGR_NO_ROOM);
	h->ask.role_max_leases = 1;
	let_go(h, 1, "c");
	settle(h);
	join(h, 1, "a", token);
	assert_result(h, 1, LOCKMGR_ROLE_FULL);
}

LOCKMGR_TEST(only_a_sole_hold_shortens_the_lease)
{
	int64_t		token = get_token(h, 0, "a");

	join(h, 1, "a", token);
	renew(h, 1, "a", LEASE_MS / 2);
	settle(h);
	assert_result(h, 1, LOCKMGR_RENEWED);
	assert_int_equal(saved_of(h, 0, "a")->lease_ms, LEASE_MS);
	renew(h, 1, "a", LEASE_MS * 2);
	settle(h);
	assert_int_equal(saved_of(h, 0, "a")->lease_ms, LEASE_MS * 2);
	let_go(h, 1, "a");
	renew(h, 0, "a", LEASE_MS / 2);
	settle(h);
	assert_int_equal(saved_of(h, 0, "a")->lease_ms, LEASE_MS / 2);
}

LOCKMGR_TEST(a_deadlock_through_a_joined_hold_is_found)
{
	int64_t		token = get_token(h, 0, "a");

	join(h, 1, "a", token);
	get(h, 2, "b");
	acquire(h, 2, "a");
	acquire(h, 1, "b");
	assert_result(h, 1, LOCKMGR_DEADLOCK);
}

LOCKMGR_TEST(another_manager_adopts_joined_holds)
{
	int64_t		token = get_token(h, 0, "a");

	join(h, 1, "a", token);
	kill_manager(h);
	join(h, 2, "a", token);		/* asked, and not answered */
	start_manager(h);
	assert_result(h, 2, LOCKMGR_GRANTED);
	assert_int_equal(holds_on(h, "a"), 3);
	end_session(h, 0);
	let_go(h, 1, "a");
	run(h, 2 * LEASE_US);
	assert_true(is_ours(h, "a"));
	let_go(h, 2, "a");
	settle(h);
	assert_true(is_free(h, "a"));
}

/* It dies at each of its steps; the next one answers. */
TEST(a_join_survives_its_manager)
{
	for (int effects = 0; effects < 3; effects++)
	{
		harness    *h = harness_start();
		int64_t		token = get_token(h, 0, "a");

		h->effects_left = effects;
		join(h, 1, "a", token);
		kill_manager(h);
		h->effects_left = -1;
		start_manager(h);
		assert_result(h, 1, LOCKMGR_GRANTED);
		assert_int_equal(h->asked[1].answer.grant.token, token);
		assert_int_equal(holds_on(h, "a"), 2);
		finish(h);
	}
}

/* The lease was lost before the session had its answer. */
LOCKMGR_TEST(a_join_of_a_lease_that_is_lost_is_not_granted_by_the_next_manager)
{
	int64_t		token = get_token(h, 0, "a");
	saved_lease *saved = &h->saved[lease_of(h, 0, "a")];

	h->effects_left = 1;
	join(h, 1, "a", token);
	kill_manager(h);
	h->effects_left = -1;
	saved->state = LEASE_LOST;
	saved->valid_until = 0;
	start_manager(h);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	assert_int_equal(h->lost_count, 2);
}

/* The same for who releases what others have joined. */
TEST(a_release_beside_others_survives_its_manager)
{
	for (int effects = 0; effects < 4; effects++)
	{
		harness    *h = harness_start();

		join(h, 1, "a", get_token(h, 0, "a"));
		h->effects_left = effects;
		release(h, 0, "a");
		kill_manager(h);
		h->effects_left = -1;
		start_manager(h);
		assert_result(h, 0, LOCKMGR_RELEASED);
		assert_int_equal(holds_on(h, "a"), 1);
		assert_true(holds(h, 1, "a"));
		finish(h);
	}
}

LOCKMGR_TEST(a_detached_hold_outlives_its_session)
{
	int64_t		token = get_token(h, 0, "a");
	int			writes = h->table.writes;
	lockmgr_counts counts;

	detach(h, 0, "a", 30 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(h->asked[0].answer.grant.token, token);
	assert_int_equal(h->table.writes, writes);
	end_session(h, 0);
	lockmgr_count(h->lm, &counts);
	assert_int_equal(counts.detached, 1);
	assert_true(h->saved[lease_on(h, "a")].detached);
	run(h, 29 * SECOND);
	assert_true(is_ours(h, "a"));
	run(h, 2 * SECOND);
	assert_true(is_free(h, "a"));
	assert_false(h->saved[lease_on(h, "a")].detached);
	lockmgr_count(h->lm, &counts);
	assert_int_equal(counts.detached, 0);
}

LOCKMGR_TEST(a_detached_hold_ends_by_its_token)
{
	int64_t		token = get_token(h, 0, "a");

	detach(h, 0, "a", 30 * SECOND);
	ask_named(h, 1, LOCKMGR_END_DETACHED, "a", token + 1);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	h->ask.taker = 7;
	ask_named(h, 1, LOCKMGR_END_DETACHED, "a", token);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	h->ask.taker = 0;
	ask_named(h, 1, LOCKMGR_END_DETACHED, "a", token);
	assert_waits(h, 1);
	settle(h);
	assert_result(h, 1, LOCKMGR_RELEASED);
	assert_true(is_free(h, "a"));
	ask_named(h, 1, LOCKMGR_END_DETACHED, "a", token);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
}

LOCKMGR_TEST(a_session_s_own_hold_does_not_end_by_its_token)
{
	int64_t		token = get_token(h, 0, "a");

	ask_named(h, 1, LOCKMGR_END_DETACHED, "a", token);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	assert_true(holds(h, 0, "a"));
}

LOCKMGR_TEST(who_joins_a_detached_hold_keeps_the_lock)
{
	int64_t		token = get_token(h, 0, "a");

	detach(h, 0, "a", 10 * SECOND);
	join(h, 1, "a", token);
	assert_result(h, 1, LOCKMGR_GRANTED);
	detach(h, 1, "a", 10 * SECOND);
	assert_result(h, 1, LOCKMGR_BUSY);
	run(h, LEASE_US);
	assert_true(is_ours(h, "a"));
	assert_false(h->saved[lease_on(h, "a")].detached);
	assert_int_equal(holds_on(h, "a"), 1);
	release(h, 1, "a");
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_detach_that_is_cancelled_ends_the_hold)
{
	get(h, 0, "a");
	detach(h, 0, "a", 30 * SECOND);
	cancel(h, 0);
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(the_end_of_another_hold_does_not_end_a_detached_one)
{
	get(h, 0, "a");
	detach(h, 0, "a", 30 * SECOND);
	get(h, 0, "b");
	cancel(h, 0);
	end_session(h, 0);
	settle(h);
	assert_true(is_free(h, "b"));
	assert_true(is_ours(h, "a"));
}

/* Its session may be gone: only what it has cancelled ends. */
LOCKMGR_TEST(a_detached_hold_is_let_go_of_without_its_session)
{
	uint32_t	index;
	lockmgr_session gone;

	get(h, 0, "a");
	detach(h, 0, "a", 60 * SECOND);
	index = hold_of(h, 0, "a");
	gone = session_of(h, 0);
	end_session(h, 0);
	lockmgr_let_go(h->lm, h->now, session_of(h, 1), index);
	settle(h);
	assert_true(is_ours(h, "a"));
	lockmgr_let_go(h->lm, h->now, gone, index);
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_detached_hold_counts_for_its_role)
{
	h->ask.role_max_leases = 1;
	get(h, 0, "a");
	detach(h, 0, "a", 10 * SECOND);
	acquire(h, 0, "b");
	assert_result(h, 0, LOCKMGR_ROLE_FULL);
	h->ask.role = 7;
	get(h, 1, "c");
	h->ask.role = 0;
	run(h, 11 * SECOND);
	get(h, 0, "b");
}

LOCKMGR_TEST(a_detached_hold_is_lost)
{
	int64_t		token = get_token(h, 0, "a");

	detach(h, 0, "a", 35 * SECOND);
	delete_item(h, "a");
	run(h, LEASE_US);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(holds_on(h, "a"), 1);
	get(h, 1, "a");				/* the lock is free for others */
	ask_named(h, 2, LOCKMGR_END_DETACHED, "a", token);
	assert_result(h, 2, LOCKMGR_NOT_HELD);
}

/* Who would keep it acknowledges the loss later, who would leave it does so now. */
LOCKMGR_TEST(a_lost_hold_is_not_detached)
{
	get(h, 0, "a");
	delete_item(h, "a");
	run(h, LEASE_US / 2);
	for (int i = 0; i < 2; i++)
	{
		detach(h, 0, "a", i * 60 * SECOND);
		assert_result(h, 0, LOCKMGR_LOST);
		assert_int_equal(h->asked[0].answer.loss, LOSS_DELETED);
		assert_int_equal(holds_on(h, "a"), 1 - i);
	}
}

LOCKMGR_TEST(what_nobody_acknowledges_runs_out)
{
	get(h, 0, "a");
	detach(h, 0, "a", 30 * SECOND);
	h->fate = FATE_LOST_REQUEST;
	run(h, LEASE_US - MARGIN_US + SECOND / 2);
	assert_int_equal(h->lost_count, 1);
	h->fate = FATE_OK;
	run(h, SECOND);
	assert_true(is_ours(h, "a"));
	run(h, LEASE_US);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(another_manager_adopts_a_detached_hold)
{
	int64_t		token = get_token(h, 0, "a");

	detach(h, 0, "a", 30 * SECOND);
	kill_manager(h);
	end_session(h, 0);
	start_manager(h);
	run(h, LEASE_US);
	assert_true(is_ours(h, "a"));
	ask_named(h, 1, LOCKMGR_END_DETACHED, "a", token);
	settle(h);
	assert_result(h, 1, LOCKMGR_RELEASED);
	assert_true(is_free(h, "a"));
}

static void
outlive(harness *h, uint32_t slot, const char *name)
{
	detach(h, slot, name, 0);
	assert_result(h, slot, LOCKMGR_RENEWED);
	assert_int_equal(h->asked[slot].answer.grant.valid_until, saved_of(h, slot, name)->valid_until);
}

/* The session ends now: the lock is free after the length, and not before. */
static void
assert_outlives(harness *h, uint32_t slot, int64_t length_us)
{
	end_session(h, slot);
	run(h, length_us - SECOND / 10);
	assert_true(is_ours(h, "a"));
	run(h, SECOND);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_hold_outlives_its_session_for_one_lease)
{
	get(h, 0, "a");
	outlive(h, 0, "a");
	assert_true(h->saved[lease_on(h, "a")].detached);
	run(h, 2 * LEASE_US + LEASE_US / 5);
	assert_outlives(h, 0, LEASE_US);
}

LOCKMGR_TEST(another_hold_ends_with_its_session_at_once)
{
	get(h, 0, "a");
	end_session(h, 0);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
}

/* Nobody believes in it any more: it goes back at once. */
LOCKMGR_TEST(a_lost_hold_does_not_outlive_its_session)
{
	get(h, 0, "a");
	outlive(h, 0, "a");
	h->fate = FATE_LOST_REQUEST;
	run(h, LEASE_US - MARGIN_US + SECOND / 2);
	assert_int_equal(h->lost_count, 1);
	h->fate = FATE_OK;
	end_session(h, 0);
	settle(h);
	assert_true(is_free(h, "a"));
}

/* Who works under it was told of this length; others make the lease longer, or shorter. */
LOCKMGR_TEST(a_hold_outlives_its_session_for_the_length_at_the_call)
{
	get(h, 0, "a");
	outlive(h, 0, "a");
	renew(h, 0, "a", 20 * LEASE_MS);
	settle(h);
	assert_outlives(h, 0, LEASE_US);
	get(h, 0, "a");
	outlive(h, 0, "a");
	renew(h, 0, "a", LEASE_MS / 2);
	settle(h);
	assert_outlives(h, 0, LEASE_US);
}

LOCKMGR_TEST(a_hold_outlives_its_session_for_the_longest_length_of_several_calls)
{
	get(h, 0, "a");
	outlive(h, 0, "a");
	renew(h, 0, "a", 2 * LEASE_MS);
	settle(h);
	outlive(h, 0, "a");
	renew(h, 0, "a", LEASE_MS / 2);
	settle(h);
	outlive(h, 0, "a");
	assert_outlives(h, 0, 2 * LEASE_US);
}

LOCKMGR_TEST(a_hold_that_outlives_its_session_is_released)
{
	int64_t		token = get_token(h, 0, "a");

	outlive(h, 0, "a");
	release(h, 0, "a");
	settle(h);
	assert_true(is_free(h, "a"));
	assert_false(h->saved[lease_on(h, "a")].detached);
	token = get_token(h, 0, "a");
	outlive(h, 0, "a");
	end_session(h, 0);
	ask_named(h, 1, LOCKMGR_END_DETACHED, "a", token);
	settle(h);
	assert_result(h, 1, LOCKMGR_RELEASED);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(several_holds_outlive_their_sessions)
{
	int64_t		token = get_token(h, 0, "a");

	join(h, 1, "a", token);
	outlive(h, 0, "a");
	outlive(h, 1, "a");
	end_session(h, 0);
	run(h, 2 * LEASE_US);
	assert_int_equal(holds_on(h, "a"), 1);
	assert_true(h->saved[lease_on(h, "a")].detached);
	join(h, 2, "a", token);
	outlive(h, 2, "a");
	end_session(h, 1);
	run(h, LEASE_US / 2);
	assert_outlives(h, 2, LEASE_US);
	assert_int_equal(holds_on(h, "a"), 0);
}

LOCKMGR_TEST(a_hold_outlives_its_session_and_manager)
{
	get(h, 0, "a");
	outlive(h, 0, "a");
	kill_manager(h);
	end_session(h, 0);
	start_manager(h);
	run(h, LEASE_US - SECOND / 10);
	assert_true(is_ours(h, "a"));
	run(h, SECOND);
	assert_true(is_free(h, "a"));
}

/* The manager dies after the session. */
LOCKMGR_TEST(the_next_manager_knows_how_long_a_hold_outlives_its_session)
{
	get(h, 0, "a");
	outlive(h, 0, "a");
	acquire(h, 1, "a");
	end_session(h, 0);
	assert_int_equal(h->watches[h->asked[1].watch].holder.pid, 0);
	run(h, LEASE_US / 2);
	kill_manager(h);
	start_manager(h);
	run(h, LEASE_US / 2 - SECOND / 10);
	assert_waits(h, 1);
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* It dies at each of its steps. */
TEST(a_detach_survives_its_manager)
{
	for (int effects = 0; effects < 4; effects++)
	{
		harness    *h = harness_start();
		int64_t		token = get_token(h, 0, "a");

		h->effects_left = effects;
		detach(h, 0, "a", 20 * SECOND);
		kill_manager(h);
		h->effects_left = -1;
		start_manager(h);
		assert_result(h, 0, LOCKMGR_GRANTED);
		assert_int_equal(h->asked[0].answer.grant.token, token);
		end_session(h, 0);
		run(h, 15 * SECOND);
		assert_true(is_ours(h, "a"));
		finish(h);
	}
}

/* It dies before it has saved the hold, and the session no longer wants it detached. */
LOCKMGR_TEST(a_lease_is_detached_as_long_as_its_hold)
{
	get(h, 0, "a");
	h->effects_left = 1;
	detach(h, 0, "a", 20 * SECOND);
	assert_true(h->saved[lease_on(h, "a")].detached);
	h->asked[0].owed = false;
	kill_manager(h);
	h->effects_left = -1;
	start_manager(h);
	assert_false(h->saved[lease_on(h, "a")].detached);
	assert_true(holds(h, 0, "a"));
}

LOCKMGR_TEST(a_lease_is_detached_on_when_another_hold_on_it_ends)
{
	join(h, 1, "a", get_token(h, 0, "a"));
	detach(h, 0, "a", 20 * SECOND);
	let_go(h, 1, "a");
	assert_true(h->saved[lease_on(h, "a")].detached);
}

/* The next one does what the session waits for, or finds it done. */
TEST(the_end_of_a_detached_hold_survives_its_manager)
{
	for (int effects = 0; effects < 6; effects++)
	{
		harness    *h = harness_start();
		int64_t		token = get_token(h, 0, "a");

		detach(h, 0, "a", 60 * SECOND);
		h->effects_left = effects;
		ask_named(h, 1, LOCKMGR_END_DETACHED, "a", token);
		kill_manager(h);
		h->effects_left = -1;
		start_manager(h);
		run(h, SECOND);
		assert_result(h, 1, LOCKMGR_RELEASED);
		assert_true(is_free(h, "a"));
		finish(h);
	}
}

/* Each gets its answer after its own data was written. */
LOCKMGR_TEST(two_sessions_change_the_data)
{
	int			calls;

	get(h, 0, "a");
	join(h, 1, "a", held_by(h, 0, "a")->token);
	assert_result(h, 1, LOCKMGR_GRANTED);
	calls = h->call_count;
	h->data = "zero";
	renew(h, 0, "a", 0);
	h->data = "one";
	renew(h, 1, "a", 0);
	settle(h);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_result(h, 1, LOCKMGR_RENEWED);
	assert_int_equal(h->call_count, calls + 2);
	assert_string_equal((const char *) h->calls[calls].writes[0].data, "zero");
	assert_string_equal((const char *) h->calls[calls + 1].writes[0].data, "one");
}

/* The lease that the request names has passed on, with the same token, or never was. */
LOCKMGR_TEST(only_the_lease_that_is_named_is_joined)
{
	harness_request *asked = &h->asked[1];
	uint32_t	generation;

	foreign_hold(h, "a", "v1", LEASE_MS, INT64_MAX - 9);
	foreign_release(h, "a");
	foreign_hold(h, "b", "v1", LEASE_MS, INT64_MAX - 9);
	foreign_release(h, "b");
	generation = get(h, 0, "a")->generation;
	let_go(h, 0, "a");
	settle(h);
	get(h, 0, "b");
	assert_int_equal(lease_of(h, 0, "b"), lease_on(h, "b"));
	for (int wrong = 0; wrong < 4; wrong++)
	{
		lockmgr    *lm = h->lm;

		h->lm = NULL;
		ask(h, 1, wrong < 2 ? LOCKMGR_JOIN : LOCKMGR_END_DETACHED, "b", 0);
		h->lm = lm;
		asked->request.ask.token = held_by(h, 0, "b")->token;
		if (wrong % 2 == 0)
			asked->request.ask.lease_generation = generation;
		else
			asked->request.ask.lease_index = UINT32_MAX;
		lockmgr_ask(h->lm, h->now, &asked->request);
		assert_result(h, 1, LOCKMGR_NOT_HELD);
	}
}

LOCKMGR_TEST(who_shares_a_lock_is_not_joined_and_detaches_nothing)
{
	int64_t		token;

	h->ask.mode = MODE_SHARED;
	token = get_token(h, 0, "a");
	h->ask.mode = MODE_EXCLUSIVE;
	ask_named(h, 1, LOCKMGR_JOIN, "a", token);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	detach(h, 0, "a", LEASE_US);
	assert_result(h, 0, LOCKMGR_NOT_HELD);
	assert_true(holds(h, 0, "a"));
}

LOCKMGR_TEST(what_is_detached_or_never_was_held_is_not_detached)
{
	get(h, 0, "a");
	detach(h, 0, "a", LEASE_US);
	assert_result(h, 0, LOCKMGR_GRANTED);
	detach(h, 0, "a", 2 * LEASE_US);
	assert_result(h, 0, LOCKMGR_NOT_HELD);
	detach(h, 1, "a", LEASE_US);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
}

/* Others have one yet. */
LOCKMGR_TEST(who_joins_a_hold_that_has_lost_its_limit_has_none)
{
	int64_t		token;

	h->ask.at_most_us = 2 * SECOND;
	token = get_token(h, 0, "a");
	h->ask.at_most_us = 0;
	ask_named(h, 1, LOCKMGR_JOIN, "a", token);
	assert_int_equal(h->asked[1].answer.grant.must_end, h->asked[0].answer.grant.must_end);
	detach(h, 1, "a", LEASE_US);
	assert_result(h, 1, LOCKMGR_GRANTED);
	ask_named(h, 2, LOCKMGR_JOIN, "a", token);
	assert_result(h, 2, LOCKMGR_GRANTED);
	assert_int_equal(h->asked[2].answer.grant.must_end, 0);
}
