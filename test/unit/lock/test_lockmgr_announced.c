/*-------------------------------------------------------------------------
 *
 * test_lockmgr_announced.c
 *	  Requests that a session announces, claims and withdraws.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_scenarios.h"

/* Session 0 will try this lock by its request after so many. */
static void
announce_one(harness *h, uint64_t after, const char *name, size_t len)
{
	lockmgr_request asked = {
		.session = session_of(h, 0),.seq = h->asked[0].request.seq + after,.kind = LOCKMGR_TRY,
		.name = name,.name_len = len,.ask = h->ask,
	};

	asked.ask.holder = (dynamo_holder) {.database = "db",.pid = pid_of(0)};
	lockmgr_announce(h->lm, h->now, &asked);
}

/* It will try these locks, each a letter. */
static void
announce(harness *h, const char *letters)
{
	for (size_t i = 0; letters[i] != '\0'; i++)
		announce_one(h, i + 1, letters + i, 1);
}

/* It does not post the next ones, so many. */
static void
withdraw(harness *h, unsigned count)
{
	h->asked[0].request.seq += count;
	h->asked[0].owed = false;
	h->cancelled_seq[0] = h->asked[0].request.seq;
	if (h->lm != NULL)
		lockmgr_cancel(h->lm, h->now, session_of(h, 0), h->cancelled_seq[0]);
}

LOCKMGR_TEST(they_go_out_together)
{
	announce(h, "abc");
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 3);
	try_acquire(h, 0, "a");
	assert_waits(h, 0);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	for (const char *name = "b"; name != NULL; name = *name == 'b' ? "c" : NULL)
	{
		try_acquire(h, 0, name);
		assert_result(h, 0, LOCKMGR_GRANTED);
		assert_true(holds(h, 0, name));
	}
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 3);
	assert_int_equal(sent(h, DYNAMO_RELEASE), 0);
}

LOCKMGR_TEST(a_refusal_waits_for_its_claim)
{
	foreign_hold(h, "b", "v1", LEASE_MS, 1);
	get(h, 1, "c");
	announce(h, "abc");
	settle(h);
	for (const char *name = "b"; name != NULL; name = *name == 'b' ? "c" : NULL)
	{
		h->asked[0].request.seq += *name == 'b';	/* a is never claimed */
		try_acquire(h, 0, name);
		assert_result(h, 0, LOCKMGR_BUSY);
	}
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 3);
	settle(h);
	assert_true(is_free(h, "a"));
}

/* What has failed is asked again, and tells why. */
LOCKMGR_TEST(a_failure_is_told_to_who_claims)
{
	next_fate(h, fate_of(DYNAMO_ACCESS_DENIED));
	announce(h, "a");
	settle(h);
	next_fate(h, fate_of(DYNAMO_ACCESS_DENIED));
	try_acquire(h, 0, "a");
	settle(h);
	assert_failed(h, 0, DYNAMO_ACCESS_DENIED);
}

LOCKMGR_TEST(one_that_is_settled_too_late_is_handed_on)
{
	h->ask.role_max_leases = 1; /* it counts once */
	next_fate(h, FATE_HOLD);
	announce(h, "a");
	run(h, LEASE_US - MARGIN_US);
	deliver(h, last_call(h));
	settle(h);
	try_acquire(h, 0, "a");
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(sent(h, DYNAMO_HAND_OVER), 1);
}

LOCKMGR_TEST(others_wait_behind_it)
{
	announce(h, "a");
	acquire(h, 1, "a");
	try_acquire(h, 2, "a");
	assert_result(h, 2, LOCKMGR_BUSY);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_waits(h, 1);
	let_go(h, 0, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* ... also when one of them has gone. */
LOCKMGR_TEST(who_waits_behind_it_is_told_what_for)
{
	next_fate(h, FATE_HOLD);
	announce(h, "a");
	acquire(h, 1, "a");
	acquire(h, 2, "a");
	cancel(h, 2);
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	deliver(h, last_call(h));
	settle(h);
	assert_true(h->watches[h->asked[1].watch].held);
}

/* Also while nothing is under way for it yet. */
LOCKMGR_TEST(a_claim_takes_the_place_of_what_was_announced)
{
	harness_call *release_call;

	get(h, 2, "a");
	next_fate(h, FATE_HOLD);
	let_go(h, 2, "a");
	release_call = last_call(h);
	announce(h, "a");
	acquire(h, 1, "a");
	try_acquire(h, 0, "a");
	assert_waits(h, 0);
	deliver(h, release_call);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_waits(h, 1);
}

/* A session that waits for what nobody has claimed is no deadlock. */
LOCKMGR_TEST(a_claim_blocks_nobody_for_ever)
{
	get(h, 1, "b");
	announce(h, "ab");
	settle(h);
	acquire(h, 1, "a");
	assert_waits(h, 1);
	try_acquire(h, 0, "a");
	try_acquire(h, 0, "b");
	assert_result(h, 0, LOCKMGR_BUSY);
	acquire(h, 0, "b");
	assert_result(h, 0, LOCKMGR_DEADLOCK);
	let_go(h, 0, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(what_is_withdrawn_goes_back)
{
	announce(h, "abcd");
	try_acquire(h, 0, "a");
	next_fate(h, FATE_LOST_REPLY);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	withdraw(h, 3);
	acquire(h, 1, "c");
	run(h, 3 * SECOND);
	assert_true(holds(h, 0, "a"));
	assert_true(is_free(h, "b"));
	assert_true(is_free(h, "d"));
	assert_result(h, 1, LOCKMGR_GRANTED);

	/* The next requests are like any other. */
	try_acquire(h, 0, "b");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(what_was_acquired_for_one_that_is_withdrawn_is_not_the_next_ones)
{
	next_fate(h, FATE_HOLD);
	announce(h, "a");
	withdraw(h, 1);
	h->ask.lease_ms = 2 * LEASE_MS;
	announce(h, "a");
	deliver(h, &h->calls[0]);
	settle(h);
	try_acquire(h, 0, "a");
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(saved_of(h, 0, "a")->lease_ms, 2 * LEASE_MS);
}

LOCKMGR_TEST(who_waits_for_one_holds_none_of_those_after_it)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	announce(h, "ab");
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
	withdraw(h, 1);
	acquire(h, 0, "a");
	settle(h);
	assert_waits(h, 0);
	assert_true(is_free(h, "b"));
	foreign_release(h, "a");
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(another_request_ends_what_was_announced)
{
	announce(h, "ab");
	settle(h);
	look_up(h, 0, "a");
	settle(h);
	assert_true(is_free(h, "a"));
	assert_true(is_free(h, "b"));

	/* Nor does that get what was under way. */
	announce(h, "a");
	next_fate(h, FATE_HOLD);
	look_up(h, 0, "a");
	settle(h);
	assert_waits(h, 0);
	deliver(h, &h->calls[h->first_open]);
	assert_result(h, 0, LOCKMGR_FOUND);
	assert_true(is_free(h, "a"));

	announce(h, "ab");
	settle(h);
	try_acquire(h, 0, "b");
	settle(h);
	assert_true(holds(h, 0, "b"));
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(another_name_is_another_lock)
{
	const char *others[] = {"ab", "b", "A"};

	for (size_t i = 0; i < COUNT_OF(others); i++)
	{
		announce_one(h, 1, others[i], strlen(others[i]));
		settle(h);
		try_acquire(h, 0, "a");
		settle(h);
		assert_true(holds(h, 0, "a"));
		assert_true(is_free(h, others[i]));
		let_go(h, 0, "a");
		settle(h);
	}
}

/* Memory was short when the one before it was announced. */
LOCKMGR_TEST(a_request_does_not_claim_what_the_next_one_will)
{
	announce_one(h, 2, "b", 1);
	settle(h);
	try_acquire(h, 0, "a");
	settle(h);
	assert_true(holds(h, 0, "a"));
	try_acquire(h, 0, "b");
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_true(holds(h, 0, "a"));
	assert_true(holds(h, 0, "b"));
}

/* What is announced is an exclusive lock, and nothing else. */
LOCKMGR_TEST(who_wants_more_than_was_announced_gets_it)
{
	for (int i = 0; i < 5; i++)
	{
		int			acquires;

		announce(h, "a");
		settle(h);
		acquires = sent(h, DYNAMO_ACQUIRE);
		h->ask.mode = i == 0 ? MODE_SHARED : MODE_EXCLUSIVE;
		h->ask.must_exist = i == 1;
		h->ask.deletes_item = i == 2;
		h->data = i == 3 ? "data" : NULL;
		h->attributes = i == 4 ? "{\"team\":{\"S\":\"x\"}}" : NULL;
		try_acquire(h, 0, "a");
		h->ask.mode = MODE_EXCLUSIVE;
		h->ask.must_exist = h->ask.deletes_item = false;
		h->data = h->attributes = NULL;
		settle(h);
		assert_result(h, 0, LOCKMGR_GRANTED);
		assert_int_equal(sent(h, DYNAMO_ACQUIRE), acquires + 1);
		let_go(h, 0, "a");
		settle(h);
	}
}

/* Announced, granted, and lost. */
static void
announce_and_lose(harness *h)
{
	announce(h, "a");
	settle(h);
	delete_item(h, "a");
	run(h, LEASE_US / 3 + SECOND);
	assert_int_equal(h->lost_count, 1);
}

LOCKMGR_TEST(a_lost_one_is_told_to_who_claims)
{
	announce_and_lose(h);
	try_acquire(h, 0, "a");
	assert_result(h, 0, LOCKMGR_LOST);
	assert_int_equal(h->asked[0].answer.loss, LOSS_DELETED);
	try_acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

/* Another session's hold, for a request of the same number, has the room of the one that is lost. */
LOCKMGR_TEST_WITH(who_claims_a_lost_one_ends_no_hold_of_another_session, harness_start_with(2))
{
	look_up(h, 0, "a");
	settle(h);
	announce_and_lose(h);
	get(h, 1, "b");
	get(h, 1, "c");
	try_acquire(h, 0, "a");
	assert_result(h, 0, LOCKMGR_NO_ROOM);
	assert_int_equal(held_by(h, 1, "c")->seq, h->asked[0].request.seq);
	settle(h);
	assert_true(holds(h, 1, "c"));
}

/* The session's own, for another request, has it. */
LOCKMGR_TEST_WITH(who_claims_a_lost_one_ends_no_other_hold, harness_start_with(2))
{
	next_fate(h, fate_of(DYNAMO_ACCESS_DENIED));
	announce(h, "ba");
	settle(h);
	delete_item(h, "a");
	run(h, LEASE_US / 3 + SECOND);
	assert_int_equal(h->lost_count, 1);
	get(h, 1, "c");
	try_acquire(h, 0, "b");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	try_acquire(h, 0, "a");
	assert_result(h, 0, LOCKMGR_NO_ROOM);
	settle(h);
	assert_true(holds(h, 0, "b"));
}

/* The claim comes before the timer that notices. */
LOCKMGR_TEST(one_that_is_over_is_lost)
{
	announce(h, "a");
	settle(h);
	h->now += LEASE_US - MARGIN_US;
	try_acquire(h, 0, "a");
	assert_result(h, 0, LOCKMGR_LOST);
	assert_int_equal(h->asked[0].answer.loss, LOSS_UNREACHABLE);
}

/* The manager dies; the session's next request is another one, which it asks meanwhile. */
static void
ask_another(harness *h, lockmgr_kind kind)
{
	int64_t		token = get_token(h, 1, "d");

	get(h, 0, "e");
	announce(h, "a");
	settle(h);
	kill_manager(h);
	if (kind == LOCKMGR_JOIN)
		ask_named(h, 0, kind, "d", token);
	else if (kind == LOCKMGR_RELEASE)
		release(h, 0, "e");
	else
		ask(h, 0, kind, "c", 0);
	start_manager(h);
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(another_manager_looks_up_and_keeps_nothing)
{
	ask_another(h, LOCKMGR_LOOK_UP);
	assert_result(h, 0, LOCKMGR_FOUND);
}

LOCKMGR_TEST(another_manager_gives_the_lock_that_is_asked_for)
{
	ask_another(h, LOCKMGR_TRY);
	assert_true(holds(h, 0, "c"));
}

LOCKMGR_TEST(another_manager_gives_nobody_what_was_not_settled)
{
	next_fate(h, FATE_LOST_REQUEST);
	announce(h, "a");
	kill_manager(h);
	try_acquire(h, 0, "c");
	start_manager(h);
	settle(h);
	assert_true(holds(h, 0, "c"));
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(another_manager_joins_what_is_named)
{
	ask_another(h, LOCKMGR_JOIN);
	assert_true(holds(h, 0, "d"));
}

LOCKMGR_TEST(another_manager_releases_what_is_named)
{
	ask_another(h, LOCKMGR_RELEASE);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_true(is_free(h, "e"));
}

LOCKMGR_TEST(another_manager_tells_that_it_is_lost)
{
	announce_and_lose(h);
	kill_manager(h);
	try_acquire(h, 0, "a");
	start_manager(h);
	assert_result(h, 0, LOCKMGR_LOST);
	get(h, 1, "a");
}

TEST(there_are_enough_watches)
{
	harness    *h = harness_new(SIZE);

	h->config.max_sessions = 2;
	start_manager(h);
	h->fate = FATE_HOLD;
	announce(h, "abcdefgh");
	acquire(h, 1, "h");
	assert_true(h->asked[1].watch < 2);
	try_acquire(h, 0, "a");
	assert_true(h->asked[0].watch < 2);
	assert_int_not_equal(h->asked[0].watch, h->asked[1].watch);
	for (int i = 0; i < h->call_count; i++)
		deliver(h, &h->calls[i]);
	h->fate = FATE_OK;
	withdraw(h, 7);
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	harness_free(h);
}

TEST(limits_count_them)
{
	harness    *h = harness_new(SIZE);

	h->config.max_leases = 3;
	start_manager(h);
	announce(h, "abcde");
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 3);
	for (const char *letter = "abc"; *letter != '\0'; letter++)
	{
		char		name[2] = {*letter, '\0'};

		try_acquire(h, 0, name);
		settle(h);
		assert_result(h, 0, LOCKMGR_GRANTED);
	}
	try_acquire(h, 0, "d");
	assert_result(h, 0, LOCKMGR_NO_ROOM);
	harness_free(h);

	h = harness_start();
	h->ask.role = 7;
	h->ask.role_max_leases = 2;
	announce(h, "abc");
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 2);
	try_acquire(h, 0, "a");
	settle(h);
	try_acquire(h, 0, "b");
	assert_result(h, 0, LOCKMGR_GRANTED);
	try_acquire(h, 0, "c");
	assert_result(h, 0, LOCKMGR_ROLE_FULL);
	finish(h);
}

LOCKMGR_TEST(limits_do_not_count_what_was_refused)
{
	get(h, 1, "b");
	h->ask.role = 7;
	h->ask.role_max_leases = 2;
	announce(h, "abc");
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 3);
}

/* Session 0 claims at that moment of the acquire; or withdraws, or ends. */
static void
interrupt_at(const scenario *s, int64_t moment, char what)
{
	harness    *h = harness_start_with(FEW);

	s->prepare(h);
	announce(h, "a");
	run_scenario(h, s, moment);
	if (what == 'c')
		try_acquire(h, 0, "a");
	else if (what == 'w')
		withdraw(h, 1);
	else
		end_session(h, 0);
	acquire(h, 1, "a");
	h->fate_count = 0;
	rest_of_scenario(h, s, moment, 0);
	run(h, 5 * SECOND);
	if (what == 'c' && result_of(h, 0) != LOCKMGR_BUSY)
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

/* The manager dies at that moment; the session claims what it has announced, or part of it. */
static void
die_at(const scenario *s, int64_t moment, bool claims_all)
{
	harness    *h = harness_start_with(FEW);

	s->prepare(h);
	announce(h, "za");
	run_scenario(h, s, moment);
	try_acquire(h, 0, "z");
	h->fate_count = 0;
	kill_manager(h);
	run(h, 20 * MS);
	for (uint32_t i = 0; i < FEW; i++)	/* as mailbox_read() does */
		h->let_go[i] = h->saved_holds[i].session.slot == 0 &&
			h->saved_holds[i].seq > h->asked[0].request.seq;
	start_manager(h);
	rest_of_scenario(h, s, moment, 20 * MS);
	run(h, 5 * SECOND);
	assert_then(s, moment, result_of(h, 0) == LOCKMGR_GRANTED);
	assert_then(s, moment, holds(h, 0, "z"));
	if (claims_all)
	{
		acquire(h, 0, "a");
		run(h, 5 * SECOND);
		assert_then(s, moment, holds(h, 0, "a"));
	}
	else
		withdraw(h, 1);
	finish(h);
}

TEST(every_moment_is_a_good_one_to_claim_or_to_withdraw)
{
	for (size_t i = 0; i < COUNT_OF(scenarios); i++)
	{
		const scenario *s = &scenarios[i];

		for (int64_t moment = 0; moment <= s->granted_by; moment += s->every)
		{
			interrupt_at(s, moment, 'c');
			interrupt_at(s, moment, 'w');
			interrupt_at(s, moment, 'e');
			die_at(s, moment, true);
			die_at(s, moment, false);
		}
	}
}
