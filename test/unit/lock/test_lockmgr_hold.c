/*-------------------------------------------------------------------------
 *
 * test_lockmgr_hold.c
 *	  Holding a lock: renewing its lease, changing its length, losing it.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#define THIRD_US (LEASE_US / 3)

LOCKMGR_TEST(a_lease_is_renewed_when_a_third_has_passed)
{
	int64_t		asked = h->now;
	const saved_lease *l = get(h, 0, "a");
	char		version[UUID_SIZE];
	int64_t		token = held_by(h, 0, "a")->token;

	memcpy(version, l->version, sizeof(version));
	run_until(h, asked + THIRD_US);
	assert_int_equal(h->call_count, 1);
	run(h, 1);
	assert_int_equal(h->call_count, 2);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RENEW);
	assert_string_equal(last_call(h)->writes[0].expected, version);
	settle(h);
	assert_string_equal(l->version, last_call(h)->writes[0].version);
	assert_string_equal(item_of(h, "a")->version, l->version);
	assert_string_not_equal(l->version, version);
	assert_int_equal(l->valid_until, last_call(h)->sent + LEASE_US - MARGIN_US);
	assert_int_equal(l->renewals, 1);
	assert_int_equal(held_by(h, 0, "a")->token, token);

	run(h, 10 * LEASE_US);
	assert_true(holds(h, 0, "a"));
	assert_in_range(sent(h, DYNAMO_RENEW), 30, 32);
}

LOCKMGR_TEST(renewals_leave_the_holder_that_the_item_has)
{
	get(h, 0, "a");
	run(h, 3 * LEASE_US);
	assert_true(sent(h, DYNAMO_RENEW) > 2);
	for (int i = 1; i < h->call_count; i++)
		assert_null(h->calls[i].writes[0].write.holder);
}

LOCKMGR_TEST(renewals_share_a_request)
{
	believe_batches(h);
	for (uint32_t i = 0; i < 26; i++)
		acquire(h, i, lock_name(i));
	settle(h);
	assert_int_equal(h->call_count, 26);
	run(h, THIRD_US);
	assert_int_equal(sent(h, DYNAMO_RENEW_BATCH), 1);
	assert_int_equal(sent(h, DYNAMO_RENEW), 1);
	for (uint32_t i = 0; i < 26; i++)
		assert_int_equal(saved_of(h, i, lock_name(i))->renewals, 1);
}

TEST(a_thousand_leases_cost_forty_calls_a_round)
{
	harness    *h = harness_new(1000);
	int			before;

	start_manager(h);
	for (uint32_t i = 0; i < 1000; i++)
	{
		uint32_t	pause;

		harness_random(h, &pause, sizeof(pause));
		acquire(h, i, lock_name(i));
		run(h, pause % (20 * MS));
	}
	settle(h);
	run(h, 12 * LEASE_US);			/* time to synchronize */
	before = h->call_count;
	run(h, 3 * THIRD_US);
	assert_in_range(h->call_count - before, 3 * 40, 4 * 40);
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(holds(h, i, lock_name(i)));
	finish(h);
}

/* Two leases that are due for renewal soon. */
static harness *
start_with_two(void)
{
	harness    *h = harness_start();

	believe_batches(h);
	acquire(h, 0, "a");
	acquire(h, 1, "b");
	settle(h);
	run(h, THIRD_US - 11 * LATENCY_US);
	return h;
}

TEST(a_refused_batch_is_sent_as_single_renewals)
{
	static const dynamo_status refusals[] = {DYNAMO_ACCESS_DENIED, DYNAMO_VALIDATION};

	for (int i = 0; i < 2; i++)
	{
		harness    *h = start_with_two();

		acquire(h, 2, "a");
		next_fate(h, fate_of(refusals[i]));
		run(h, 2 * LATENCY_US + 2);
		assert_int_equal(h->calls[2].c.op, DYNAMO_RENEW_BATCH);
		assert_int_equal(sent(h, DYNAMO_RENEW), 2);
		settle(h);
		assert_int_equal(saved_of(h, 0, "a")->renewals, 1);
		assert_int_equal(saved_of(h, 1, "b")->renewals, 1);

		/* No session gets an error; the host is informed once. */
		assert_waits(h, 2);
		run(h, 3 * LEASE_US);
		assert_int_equal(sent(h, DYNAMO_RENEW_BATCH), 1);
		assert_int_equal(h->no_batches, 1);
		assert_int_equal(h->lost_count, 0);
		finish(h);
	}
}

LOCKMGR_TEST_WITH(permission_may_be_missing_statement_by_statement, start_with_two())
{
	harness_call *batch;

	next_fate(h, FATE_HOLD);
	run(h, 2 * LATENCY_US);
	batch = last_call(h);
	assert_int_equal(batch->c.count, 2);
	for (int i = 0; i < 2; i++)
		batch->results[i].status = DYNAMO_ACCESS_DENIED;
	reply_with(h, batch, DYNAMO_OK);
	assert_int_equal(h->no_batches, 1);
	settle(h);
	assert_int_equal(sent(h, DYNAMO_RENEW), 2);
	assert_int_equal(saved_of(h, 0, "a")->renewals, 1);
	assert_int_equal(saved_of(h, 1, "b")->renewals, 1);
}

LOCKMGR_TEST(batches_are_checked_before_they_are_believed)
{
	harness_call *check;

	acquire(h, 0, "a");
	acquire(h, 1, "b");
	settle(h);
	next_fate(h, FATE_HOLD);
	run(h, THIRD_US);

	/* Its condition is false, and it changes nothing.  The other lease does not wait for it. */
	check = &h->calls[2];
	assert_int_equal(check->c.op, DYNAMO_RENEW_BATCH);
	assert_int_equal(check->c.count, 1);
	assert_string_equal(check->writes[0].version, item_of(h, "b")->version);
	assert_string_not_equal(check->writes[0].expected, item_of(h, "b")->version);
	assert_int_equal(check->writes[0].write.lease_ms, LEASE_MS);
	run(h, 2 * LATENCY_US);
	assert_int_equal(saved_of(h, 0, "a")->renewals, 1);
	deliver(h, check);
	settle(h);
	assert_int_equal(saved_of(h, 1, "b")->renewals, 1);
	assert_int_equal(sent(h, DYNAMO_RENEW), 2);
	assert_int_equal(sent(h, DYNAMO_RENEW_BATCH), 1);

	run(h, 2 * LEASE_US);
	assert_int_equal(sent(h, DYNAMO_RENEW), 2);
	assert_in_range(sent(h, DYNAMO_RENEW_BATCH), 6, 8);
	assert_int_equal(h->no_batches, 0);
}

/* The next worker finds out what became of the renewal, whose turn was after the check. */
LOCKMGR_TEST(a_late_check_changes_nothing)
{
	char		version[UUID_SIZE];

	get(h, 0, "a");
	get(h, 1, "b");
	next_fate(h, FATE_HOLD);
	run(h, THIRD_US);
	release(h, 0, "a");
	kill_manager(h);
	start_manager(h);
	apply(h, last_call(h));
	memcpy(version, item_of(h, "a")->version, sizeof(version));
	apply(h, &h->calls[2]);
	assert_string_equal(item_of(h, "a")->version, version);
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
}

/* The check is about a lock whose renewal has not begun, whatever else is due at that moment. */
LOCKMGR_TEST(the_check_leaves_an_unsettled_renewal_alone)
{
	char		nonce[UUID_SIZE];

	get(h, 0, "a");
	get(h, 1, "b");
	next_fate(h, FATE_LOST_REQUEST);
	renew(h, 0, "a", 0);
	memcpy(nonce, last_call(h)->writes[0].version, sizeof(nonce));
	cancel(h, 0);
	kill_manager(h);
	renew(h, 1, "b", 0);
	start_manager(h);
	assert_int_equal(sent(h, DYNAMO_RENEW_BATCH), 1);
	assert_string_equal(h->calls[h->call_count - 2].writes[0].name, "b");
	assert_string_equal(last_call(h)->writes[0].version, nonce);
	settle(h);
	assert_result(h, 1, LOCKMGR_RENEWED);
	assert_string_equal(saved_of(h, 0, "a")->version, nonce);
}

LOCKMGR_TEST(who_ignores_conditions_gets_no_batches)
{
	h->lax_batches = true;
	for (uint32_t lock = 0; lock < 40; lock++)
		acquire(h, lock, lock_name(lock));
	foreign_hold(h, "elsewhere", "v1", LEASE_MS, 1);
	run(h, 4 * LEASE_US);
	assert_int_equal(sent(h, DYNAMO_RENEW_BATCH), 1);
	assert_int_equal(h->no_batches, 1);
	assert_true(h->no_batches_for_good);
	assert_int_equal(h->lost_count, 0);

	/* Else this loss would not be noticed. */
	foreign_hold(h, lock_name(7), "v1", LEASE_MS, 1);
	run(h, LEASE_US / 2);
	assert_int_equal(h->lost_count, 1);
}

TEST(a_check_whose_statement_is_refused_ends_batches_for_good)
{
	static const dynamo_status refusals[] = {DYNAMO_ACCESS_DENIED, DYNAMO_VALIDATION};

	for (int i = 0; i < 2; i++)
	{
		harness    *h = harness_start();

		acquire(h, 0, "a");
		acquire(h, 1, "b");
		settle(h);
		next_fate(h, FATE_HOLD);
		run(h, THIRD_US);
		h->calls[2].results[0].status = refusals[i];
		reply_with(h, &h->calls[2], DYNAMO_OK);
		run(h, 2 * LEASE_US);
		assert_int_equal(sent(h, DYNAMO_RENEW_BATCH), 1);
		assert_int_equal(h->no_batches, 1);
		assert_true(h->no_batches_for_good);
		finish(h);
	}
}

/* Who has let go of the lock does not wait for the check's lock longer than for others. */
LOCKMGR_TEST(a_lock_is_released_after_its_check)
{
	acquire(h, 0, "a");
	acquire(h, 1, "b");
	settle(h);
	next_fate(h, FATE_HOLD);
	run(h, THIRD_US);
	release(h, 1, "b");
	deliver(h, &h->calls[2]);
	settle(h);
	assert_result(h, 1, LOCKMGR_RELEASED);
	assert_true(item_of(h, "b")->released);
}

LOCKMGR_TEST(the_check_may_get_no_reply_until_the_deadline)
{
	acquire(h, 0, "a");
	acquire(h, 1, "b");
	settle(h);
	h->batch_fate = FATE_HOLD;
	run(h, LEASE_US);
	assert_int_equal(h->lost_count, 1);		/* a host would have ended it by its time-out */
	deliver(h, &h->calls[2]);
	release(h, 1, "b");
	settle(h);
	assert_true(item_of(h, "b")->released);
	assert_true(holds(h, 0, "a"));
}

/* Batches work for a while. */
LOCKMGR_TEST(batches_that_fail_are_checked_again)
{
	int			before;

	for (uint32_t lock = 0; lock < 40; lock++)
		acquire(h, lock, lock_name(lock));
	run(h, 2 * LEASE_US);
	assert_in_range(sent(h, DYNAMO_RENEW_BATCH), 4, 15);
	h->batch_fate = fate_of(DYNAMO_UNKNOWN);
	run(h, LEASE_US);
	before = sent(h, DYNAMO_RENEW_BATCH);
	run(h, 4 * LEASE_US);
	assert_in_range(sent(h, DYNAMO_RENEW_BATCH) - before, 1, 6);
	assert_int_equal(h->no_batches, 1);
	assert_false(h->no_batches_for_good);
	assert_int_equal(h->lost_count, 0);

	h->batch_fate = FATE_OK;
	run(h, 8 * LEASE_US);
	before = sent(h, DYNAMO_RENEW);
	run(h, 2 * LEASE_US);
	assert_int_equal(sent(h, DYNAMO_RENEW), before);
	assert_int_equal(h->lost_count, 0);

	/* The host is told of the next trouble, too. */
	h->batch_fate = fate_of(DYNAMO_UNKNOWN);
	run(h, 5 * LEASE_US);
	assert_int_equal(h->no_batches, 2);
}

/* The host would tell the first result's message. */
LOCKMGR_TEST(the_host_is_not_told_of_checks_without_a_result)
{
	dynamo_reply none = {.status = DYNAMO_MALFORMED};

	acquire(h, 0, "a");
	acquire(h, 1, "b");
	settle(h);
	h->batch_fate = FATE_HOLD;
	for (int i = 0; i < 600; i++)
	{
		run(h, SECOND / 10);
		if (h->first_open == h->call_count)
			continue;
		h->calls[h->first_open].answered = true;
		lockmgr_reply(h->lm, h->now, h->calls[h->first_open].c.id, &none);
	}
	assert_in_range(sent(h, DYNAMO_RENEW_BATCH), 3, 6);
	assert_int_equal(h->no_batches, 0);
}

/* More than one batch is in flight. */
LOCKMGR_TEST(the_host_is_told_once_that_batches_are_refused)
{
	h->config.max_calls = 40;
	kill_manager(h);
	start_manager(h);
	believe_batches(h);
	for (uint32_t lock = 0; lock < 40; lock++)
		acquire(h, lock, lock_name(lock));
	h->batch_fate = fate_of(DYNAMO_ACCESS_DENIED);
	run(h, LEASE_US / 2);
	assert_int_equal(sent(h, DYNAMO_RENEW_BATCH), 2);
	assert_int_equal(h->no_batches, 1);
	assert_int_equal(h->lost_count, 0);
}

/* Only a batch is sent again at once. */
LOCKMGR_TEST_WITH(without_batches_what_is_refused_is_told, start_with_two())
{
	next_fate(h, fate_of(DYNAMO_ACCESS_DENIED));
	run(h, LEASE_US / 10);
	assert_int_equal(h->no_batches, 1);
	next_fate(h, fate_of(DYNAMO_ACCESS_DENIED));
	acquire(h, 2, "c");
	settle(h);
	assert_failed(h, 2, DYNAMO_ACCESS_DENIED);
}

/* Batches as such are not refused, so it is not repeated at once. */
LOCKMGR_TEST_WITH(a_statement_that_is_refused_waits, start_with_two())
{
	harness_call *batch;
	dynamo_item before;

	next_fate(h, FATE_HOLD);
	run(h, 2 * LATENCY_US);
	batch = last_call(h);
	before = *item_of(h, batch->writes[1].name);
	apply(h, batch);
	*item_of(h, batch->writes[1].name) = before;
	batch->results[1] = (dynamo_result) {.status = DYNAMO_VALIDATION};
	reply(h, batch);
	assert_ptr_equal(last_call(h), batch);
	assert_int_equal(h->no_batches, 0);
	run(h, LEASE_US / 3);
	assert_int_equal(h->lost_count, 0);
}

LOCKMGR_TEST(renewals_of_shared_locks_share_a_request)
{
	believe_batches(h);
	h->ask.mode = MODE_SHARED;
	acquire(h, 0, "a");
	acquire(h, 1, "b");
	run(h, LEASE_US / 2);
	assert_int_equal(sent(h, DYNAMO_RENEW), 0);
	assert_int_equal(sent(h, DYNAMO_RENEW_BATCH), 1);
}

/* However batches fail: single renewals keep the leases. */
TEST(batches_may_fail_alone)
{
	const int	fates[] = {
		FATE_LOST_REQUEST, FATE_LOST_REPLY, fate_of(DYNAMO_UNKNOWN),
		fate_of(DYNAMO_MALFORMED), fate_of(DYNAMO_WRONG_SERVICE),
		fate_of(DYNAMO_TABLE_MISSING),
	};

	for (int i = 0; i < (int) COUNT_OF(fates); i++)
	{
		harness    *h = harness_start();

		for (uint32_t lock = 0; lock < 40; lock++)
			acquire(h, lock, lock_name(lock));
		h->batch_fate = fates[i];
		run(h, 4 * LEASE_US);
		assert_in_range(sent(h, DYNAMO_RENEW_BATCH), 1, 7);
		assert_int_equal(h->no_batches, 1);
		assert_int_equal(h->lost_count, 0);
		finish(h);
	}
}

LOCKMGR_TEST_WITH(each_statement_of_a_batch_has_its_own_fate, start_with_two())
{
	harness_call *batch;

	next_fate(h, FATE_HOLD);
	run(h, 2 * LATENCY_US);
	batch = last_call(h);
	foreign_hold(h, batch->writes[0].name, "v1", LEASE_MS, 1);
	apply(h, batch);
	batch->results[1].status = DYNAMO_UNKNOWN;
	reply(h, batch);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_TAKEN);
	run(h, SECOND);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RENEW);
	assert_string_equal(last_call(h)->writes[0].version, batch->writes[1].version);
	assert_int_equal(h->lost_count, 1);
}

LOCKMGR_TEST(sharing_a_request_does_not_undo_the_jitter)
{
	int			statements = 0;

	believe_batches(h);
	for (uint32_t i = 0; i < 50; i++)
		acquire(h, i, lock_name(i));
	settle(h);
	run(h, THIRD_US - 11 * LATENCY_US);
	enough_budget(h);
	h->fate = fate_of(DYNAMO_THROTTLED);
	run(h, 8 * SECOND);

	/* About six while the delays grow, then one every half second. */
	for (int i = 50; i < h->call_count; i++)
		statements += h->calls[i].c.count;
	assert_in_range(statements / 50, 10, 30);
	assert_in_range(h->call_count - 50, statements / 25, statements / 3);
}

LOCKMGR_TEST(a_session_can_renew_at_once)
{
	get(h, 0, "a");
	run(h, SECOND);
	renew(h, 0, "a", 0);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RENEW);
	settle(h);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_int_equal(h->asked[0].answer.grant.valid_until,
					 last_call(h)->sent + LEASE_US - MARGIN_US);

	renew(h, 0, "a", 60000);
	assert_int_equal(saved_of(h, 0, "a")->lease_ms, LEASE_MS);
	settle(h);
	assert_int_equal(h->asked[0].answer.grant.valid_until, last_call(h)->sent + 54 * SECOND);
	assert_int_equal(item_of(h, "a")->lease_ms, 60000);
	run(h, 19 * SECOND);
	assert_int_equal(h->call_count, 3);
	run(h, SECOND);
	assert_int_equal(h->call_count, 4);
}

/* Whichever of the two locks is first in memory. */
LOCKMGR_TEST(the_renewal_of_another_lock_is_no_answer)
{
	for (int i = 0; i < 2; i++)
	{
		const char *name = i == 0 ? "a" : "b";
		int			call;

		get(h, 0, "a");
		get(h, 0, "b");
		next_fate(h, FATE_HOLD);
		renew(h, 0, name, 0);
		call = h->call_count - 1;
		run(h, LEASE_US / 3 + SECOND);
		assert_true(h->call_count > call + 1);
		assert_waits(h, 0);
		deliver(h, &h->calls[call]);
		assert_result(h, 0, LOCKMGR_RENEWED);
		release(h, 0, "a");
		release(h, 0, "b");
		settle(h);
	}
}

LOCKMGR_TEST(only_ones_own_lease_can_be_renewed)
{
	get(h, 0, "a");
	ask(h, 1, LOCKMGR_RENEW, "a", hold_of(h, 0, "a"));
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	ask(h, 1, LOCKMGR_RENEW, "a", LOCKMGR_NO_HOLD);
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	ask(h, 1, LOCKMGR_RELEASE, "a", hold_of(h, 0, "a"));
	assert_result(h, 1, LOCKMGR_NOT_HELD);
	assert_true(holds(h, 0, "a"));
}

LOCKMGR_TEST(a_shorter_lease_shortens_belief_when_it_is_sent)
{
	int64_t		shorter;

	get(h, 0, "a");
	run(h, SECOND);
	shorter = h->now + 3 * SECOND - 300 * MS;
	h->fate = FATE_LOST_REPLY;
	renew(h, 0, "a", 3000);
	assert_int_equal(saved_of(h, 0, "a")->valid_until, shorter);
	run_until(h, shorter - 1);
	assert_int_equal(h->lost_count, 0);
	run(h, 1);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_UNREACHABLE);
	assert_result(h, 0, LOCKMGR_LOST);
}

LOCKMGR_TEST(a_longer_lease_lengthens_belief_when_it_is_confirmed)
{
	int64_t		before = get(h, 0, "a")->valid_until;

	h->fate = FATE_LOST_REPLY;
	renew(h, 0, "a", 60000);
	run(h, SECOND / 2);
	assert_int_equal(saved_of(h, 0, "a")->valid_until, before);
	h->fate = FATE_OK;
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_int_equal(saved_of(h, 0, "a")->valid_until, h->calls[1].sent + 54 * SECOND);

	/* It is none of the next holder's. */
	let_go(h, 0, "a");
	settle(h);
	get(h, 1, "a");
	run(h, LEASE_US);
	assert_int_equal(saved_of(h, 1, "a")->lease_ms, LEASE_MS);
}

LOCKMGR_TEST(a_wish_during_a_renewal_gets_one_of_its_own)
{
	get(h, 0, "a");
	next_fate(h, FATE_HOLD);
	run(h, THIRD_US);
	renew(h, 0, "a", 60000);
	assert_int_equal(h->call_count, 2);
	deliver(h, last_call(h));
	assert_waits(h, 0);
	assert_int_equal(h->call_count, 3);
	settle(h);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_int_equal(item_of(h, "a")->lease_ms, 60000);
}

/* All renewals fail until the deadline; returns the lease. */
static const saved_lease *
lose(harness *h, uint32_t slot, const char *name)
{
	const saved_lease *l = get(h, slot, name);
	int64_t		deadline = l->valid_until;

	h->fate = FATE_LOST_REQUEST;
	run_until(h, deadline - 1);
	assert_int_equal(h->lost_count, 0);
	assert_true(holds(h, slot, name));
	run(h, 1);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_UNREACHABLE);
	assert_false(h->lost[0].has_by);
	assert_int_equal(l->state, LEASE_LOST);
	return l;
}

LOCKMGR_TEST(a_lease_that_is_not_renewed_is_lost_at_its_deadline)
{
	(void) lose(h, 0, "a");
	assert_int_equal(held_by(h, 0, "a")->loss, LOSS_UNREACHABLE);
	assert_in_range(sent(h, DYNAMO_RENEW), 10, 60);
	renew(h, 0, "a", 0);
	assert_result(h, 0, LOCKMGR_LOST);
	assert_int_equal(h->asked[0].answer.loss, LOSS_UNREACHABLE);
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_LOST);
	assert_int_equal(h->asked[0].answer.loss, LOSS_UNREACHABLE);
}

/* All attempts are lost from now on: each may take a third of the time left, and always so long. */
static void
assert_attempts(harness *h, int64_t least)
{
	int64_t		deadline = saved_of(h, 0, "a")->valid_until;
	int			first = h->call_count;

	h->fate = FATE_LOST_REQUEST;
	run_until(h, deadline);
	assert_true(h->call_count > first + 3);
	for (int i = first; i < h->call_count; i++)
	{
		int64_t		most = (deadline - h->calls[i].sent) / 3;

		if (most < least)
			most = least;
		assert_int_equal(h->calls[i].c.timeout_us, most < ATTEMPT_US ? most : ATTEMPT_US);
	}
}

LOCKMGR_TEST(attempts_get_shorter_as_the_deadline_comes_near)
{
	get(h, 0, "a");
	assert_attempts(h, 50 * MS);
}

/* The one whose lease is shorter is due first, or second. */
TEST(a_batch_may_take_a_third_of_the_shortest_time_left)
{
	for (int first = 0; first < 2; first++)
	{
		harness    *h = harness_start();
		const harness_call *batch;
		int64_t		left;

		believe_batches(h);
		h->ask = (lock_ask) {.lease_ms = 3600,.margin_us = 360 * MS,.permits = 1,.limit = 1};
		acquire(h, 0, "long");
		run(h, first == 0 ? 190 * MS : 210 * MS);
		h->ask.lease_ms = 3000;
		h->ask.margin_us = 300 * MS;
		acquire(h, 1, "short");
		while (sent(h, DYNAMO_RENEW_BATCH) == 0)
			run(h, MS);
		batch = last_call(h);
		assert_int_equal(batch->c.count, 2);
		assert_string_equal(batch->writes[first].write.name, "short");
		left = saved_of(h, 1, "short")->valid_until - batch->sent;
		assert_true(left < saved_of(h, 0, "long")->valid_until - batch->sent);
		assert_int_equal(batch->c.timeout_us, left / 3);
		finish(h);
	}
}

/* DynamoDB replies to one request after so long. */
static void
reply_late(harness *h, int64_t after)
{
	next_fate(h, FATE_HOLD);
	look_up(h, 1, "b");
	run(h, after);
	deliver(h, last_call(h));
}

LOCKMGR_TEST(who_replies_slowly_is_waited_for)
{
	get(h, 0, "a");
	reply_late(h, 300 * MS);
	assert_attempts(h, 600 * MS);
}

LOCKMGR_TEST(who_was_slow_once_is_not_waited_for_for_ever)
{
	get(h, 0, "a");
	reply_late(h, 300 * MS);
	run(h, 20 * LEASE_US);
	assert_attempts(h, 50 * MS);
}

/* A reply that takes longer than any may tells that the machine stood still. */
LOCKMGR_TEST(who_stood_still_is_not_waited_for)
{
	get(h, 0, "a");
	reply_late(h, ATTEMPT_US + MS);
	assert_in_range(h->lm->slowest_us, 0, LATENCY_US);
}

/* What fails at once is tried again before a quarter of the time left has passed. */
LOCKMGR_TEST(pauses_get_shorter_as_the_deadline_comes_near)
{
	const saved_lease *l = get(h, 0, "a");
	int64_t		deadline = l->valid_until;

	enough_budget(h);
	h->fate = FATE_STATUS + DYNAMO_UNREACHABLE;
	run_until(h, deadline);
	for (int i = 2; i < h->call_count; i++)
	{
		int64_t		replied = h->calls[i - 1].sent + LATENCY_US;

		assert_true(h->calls[i].sent - replied <= (deadline - replied) / 4 + MS);
	}
}

LOCKMGR_TEST(a_lost_item_is_released_when_the_session_knows)
{
	lose(h, 0, "a");
	h->fate = FATE_OK;
	run(h, SECOND);
	assert_false(is_free(h, "a"));
	assert_int_equal(sent(h, DYNAMO_RELEASE), 0);
	let_go(h, 0, "a");
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_lost_item_is_released_when_the_session_has_ended)
{
	lose(h, 0, "a");
	h->fate = FATE_OK;
	run(h, SECOND);
	end_session(h, 0);
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_lost_item_is_released_when_the_full_lease_is_over)
{
	const saved_lease *l = lose(h, 0, "a");
	int64_t		end = l->lease_end;

	assert_int_equal(end, l->deadline + MARGIN_US);
	h->fate = FATE_OK;
	run_until(h, end - 1);
	assert_false(is_free(h, "a"));
	settle(h);
	assert_true(is_free(h, "a"));

	/* The session does not know yet. */
	assert_int_equal(l->state, LEASE_LOST);
	get(h, 1, "a");
	assert_true(holds(h, 1, "a"));
	let_go(h, 0, "a");
	assert_int_equal(l->state, LEASE_FREE);
	assert_true(holds(h, 1, "a"));
}

LOCKMGR_TEST(a_renewal_settled_after_the_deadline_does_not_revive_the_lease)
{
	const saved_lease *l = get(h, 0, "a");
	harness_call *late;

	next_fate(h, FATE_HOLD);
	run_until(h, l->valid_until);
	late = last_call(h);
	assert_int_equal(l->state, LEASE_LOST);
	deliver(h, late);
	assert_int_equal(l->state, LEASE_LOST);
	assert_int_equal(l->valid_until, 0);

	/* ... but its version is released. */
	let_go(h, 0, "a");
	assert_string_equal(last_call(h)->writes[0].expected, late->writes[0].version);
	settle(h);
	assert_true(is_free(h, "a"));
}

/* The session does not know yet: its statement may still be running. */
LOCKMGR_TEST(a_renewal_settled_after_the_deadline_is_released_when_its_lease_is_over)
{
	const saved_lease *l = get(h, 0, "a");

	next_fate(h, FATE_HOLD);
	run_until(h, l->valid_until);
	deliver(h, last_call(h));
	run_until(h, l->lease_end - 1);
	assert_int_equal(sent(h, DYNAMO_RELEASE), 0);
	settle(h);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(a_renewal_in_flight_is_settled_before_a_lost_item_is_released)
{
	const saved_lease *l = get(h, 0, "a");
	harness_call *late;

	next_fate(h, FATE_HOLD);
	run_until(h, l->valid_until);
	late = last_call(h);
	let_go(h, 0, "a");
	settle(h);
	assert_int_equal(sent(h, DYNAMO_RELEASE), 0);
	deliver(h, late);
	settle(h);
	assert_true(is_free(h, "a"));
}

/* Whoever has the lock by then: it is not ours any more, but when did it end? */
TEST(a_release_during_a_renewal_that_is_refused_is_one_until_the_deadline)
{
	for (int late = 0; late < 2; late++)
	{
		harness    *h = harness_start();
		int64_t		deadline = get(h, 0, "a")->deadline;

		next_fate(h, FATE_HOLD);
		run_until(h, late ? deadline - SECOND : deadline - 5 * SECOND);
		release(h, 0, "a");
		run_until(h, deadline - (late ? 0 : 1));
		foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
		deliver(h, last_call(h));
		assert_result(h, 0, late ? LOCKMGR_FAILED : LOCKMGR_RELEASED);
		finish(h);
	}
}

/* Until then, its outcome may be found out, which the release depends on. */
LOCKMGR_TEST(who_lets_go_during_a_renewal_that_fails_has_it_repeated_until_the_deadline)
{
	int64_t		deadline = get(h, 0, "a")->deadline;

	h->fate = FATE_LOST_REQUEST;
	run(h, LEASE_US / 2);
	let_go(h, 0, "a");
	run_until(h, deadline - 1);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RENEW);
	run(h, 3 * SECOND);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
}

LOCKMGR_TEST(a_renewal_nobody_settled_is_released_too)
{
	const saved_lease *l = get(h, 0, "a");
	int64_t		deadline = l->valid_until;

	h->fate = FATE_LOST_REPLY;
	run_until(h, deadline);
	assert_int_equal(l->state, LEASE_LOST);
	h->fate = FATE_OK;
	run(h, SECOND);				/* the last attempt times out */
	let_go(h, 0, "a");
	settle(h);
	assert_int_equal(sent(h, DYNAMO_RELEASE), 2);
	assert_true(is_free(h, "a"));
}

/* The renewal is refused; the lease is lost for that reason. */
static void
assert_lost_to(harness *h, lease_loss loss)
{
	const saved_lease *l = saved_of(h, 0, "a");

	acquire(h, 1, "a");
	run(h, THIRD_US);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, loss);
	assert_true(h->lost[0].has_by);
	assert_int_equal(h->lost[0].by.exists, loss != LOSS_DELETED);
	assert_int_equal(l->state, LEASE_LOST);

	/* Nothing of ours is in the item: the next session need not wait for this one. */
	run(h, SECOND);
	if (loss == LOSS_TAKEN)
		assert_waits(h, 1);
	else
		assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(l->state, LEASE_LOST);
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_LOST);
	assert_int_equal(h->asked[0].answer.loss, loss);
	assert_int_equal(l->state, LEASE_FREE);
	finish(h);
}

TEST(a_lease_taken_over_is_lost)
{
	harness    *h = harness_start();

	get(h, 0, "a");
	foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
	assert_lost_to(h, LOSS_TAKEN);
}

TEST(a_lease_released_by_an_operator_is_lost)
{
	harness    *h = harness_start();

	get(h, 0, "a");
	item_of(h, "a")->released = true;
	assert_lost_to(h, LOSS_RELEASED);
}

LOCKMGR_TEST(a_lease_that_another_has_taken_and_released_is_lost)
{
	get(h, 0, "a");
	foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
	foreign_release(h, "a");
	run(h, THIRD_US);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_TAKEN);
}

TEST(a_lease_whose_item_is_deleted_is_lost)
{
	harness    *h = harness_start();

	get(h, 0, "a");
	delete_item(h, "a");
	assert_lost_to(h, LOSS_DELETED);
}

LOCKMGR_TEST(a_version_of_ours_that_we_do_not_know_is_not_adopted)
{
	get(h, 0, "a");
	snprintf(item_of(h, "a")->version, DYNAMO_VERSION_SIZE, "unheard-of");
	run(h, THIRD_US);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_TAKEN);

	/* Nor does anybody get the lock before that is dead. */
	try_acquire(h, 1, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_BUSY);
	delete_item(h, "a");
}

LOCKMGR_TEST(a_waiter_comes_next_after_an_unreachable_loss)
{
	lose(h, 0, "a");
	h->fate = FATE_OK;
	acquire(h, 1, "a");
	run(h, SECOND);
	assert_waits(h, 1);
	let_go(h, 0, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(waiters_behind_a_troubled_holder_are_told_in_time)
{
	get(h, 0, "a");
	acquire(h, 1, "a");
	h->fate = FATE_LOST_REQUEST;
	run(h, THIRD_US + RETRY_US - SECOND);
	assert_waits(h, 1);
	assert_int_equal(h->watches[h->asked[1].watch].trouble, DYNAMO_UNKNOWN);
	assert_non_null(strstr(h->watches[h->asked[1].watch].message, "status"));
	run(h, 3 * SECOND);
	assert_failed(h, 1, DYNAMO_UNKNOWN);
	assert_int_equal(h->asked[1].answer.op, DYNAMO_RENEW);

	/* The trouble is over. */
	h->fate = FATE_OK;
	run(h, 2 * SECOND);
	assert_true(holds(h, 0, "a"));
	acquire(h, 1, "a");
	assert_int_equal(h->watches[h->asked[1].watch].trouble, DYNAMO_OK);
}
