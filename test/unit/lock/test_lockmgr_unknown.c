/*-------------------------------------------------------------------------
 *
 * test_lockmgr_unknown.c
 *	  Calls that fail: those that may have been applied, those that were not,
 *	  and those that would fail again.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

/* The writes of the lock manager that can fail. */
typedef enum trial
{
	TRIAL_ACQUIRE,
	TRIAL_RENEW,
	TRIAL_HAND_OVER,
	TRIAL_RELEASE,
	TRIAL_COUNT
} trial;

/* Starts the write, with the queued fates, for sessions 0 and 1. */
static void
start_write(harness *h, trial what)
{
	int			fates[4];
	int			count = h->fate_count;

	memcpy(fates, h->fates, sizeof(fates));
	h->fate_count = 0;
	if (what != TRIAL_ACQUIRE)
		get(h, 0, "a");
	if (what == TRIAL_HAND_OVER)
		acquire(h, 1, "a");
	memcpy(h->fates, fates, sizeof(fates));
	h->fate_count = count;
	switch (what)
	{
		case TRIAL_ACQUIRE:
			acquire(h, 0, "a");
			break;
		case TRIAL_RENEW:
			renew(h, 0, "a", 0);
			break;
		default:
			release(h, 0, "a");
	}
}

static lockmgr_result
success_of(trial what)
{
	return what == TRIAL_ACQUIRE ? LOCKMGR_GRANTED :
		what == TRIAL_RENEW ? LOCKMGR_RENEWED : LOCKMGR_RELEASED;
}

static bool
same_nonce(const harness *h, int a, int b)
{
	return strcmp(h->calls[a].writes[0].version, h->calls[b].writes[0].version) == 0;
}

/* The result is the same as without a failure. */
static void
assert_success(harness *h, trial what)
{
	assert_result(h, 0, success_of(what));
	assert_int_equal(h->lost_count, 0);
	if (what == TRIAL_ACQUIRE || what == TRIAL_RENEW)
		assert_true(holds(h, 0, "a"));
	else if (what == TRIAL_HAND_OVER)
		assert_true(holds(h, 1, "a"));
	else
		assert_true(is_free(h, "a"));
}

/* The write fails twice with this status, then succeeds. */
static void
check_repetition(trial what, int fate, bool same)
{
	harness    *h = harness_start();
	int			first;

	next_fate(h, fate);
	next_fate(h, fate);
	start_write(h, what);
	first = h->call_count - 1;
	run(h, 3 * SECOND);
	assert_int_equal(h->call_count, first + 3);
	for (int i = first + 1; i <= first + 2; i++)
	{
		assert_int_equal(h->calls[i].c.op, h->calls[first].c.op);
		assert_true(h->calls[i].c.repeat == same);
		assert_true(same_nonce(h, i, first) == same);
		assert_string_equal(h->calls[i].writes[0].expected, h->calls[first].writes[0].expected);
	}
	assert_success(h, what);
	finish(h);
}

TEST(what_may_have_happened_is_repeated_with_its_nonce)
{
	for (int what = 0; what < TRIAL_COUNT; what++)
	{
		check_repetition((trial) what, FATE_LOST_REQUEST, true);
		check_repetition((trial) what, FATE_LOST_REPLY, true);
		check_repetition((trial) what, fate_of(DYNAMO_UNKNOWN), true);
	}
}

TEST(what_did_not_happen_gets_a_new_nonce_and_a_new_deadline)
{
	static const dynamo_status statuses[] = {
		DYNAMO_THROTTLED, DYNAMO_CONFLICT, DYNAMO_UNREACHABLE,
	};

	for (int what = 0; what < TRIAL_COUNT; what++)
	{
		for (int i = 0; i < 3; i++)
			check_repetition((trial) what, fate_of(statuses[i]), false);
	}
}

TEST(once_unknown_a_write_stays_unknown)
{
	for (int what = 0; what < TRIAL_COUNT; what++)
	{
		harness    *h = harness_start();
		int			first;

		next_fate(h, FATE_LOST_REQUEST);
		next_fate(h, fate_of(DYNAMO_THROTTLED));
		next_fate(h, fate_of(DYNAMO_UNREACHABLE));
		start_write(h, (trial) what);
		first = h->call_count - 1;
		run(h, 3 * SECOND);
		assert_int_equal(h->call_count, first + 4);
		for (int i = 1; i < 4; i++)
			assert_true(same_nonce(h, first + i, first));
		assert_success(h, (trial) what);
		finish(h);
	}
}

/* The host counts repetitions.  A poll after an acquire is none. */
LOCKMGR_TEST(a_look_up_or_a_bar_that_failed_is_repeated_and_a_poll_is_not)
{
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	look_up(h, 0, "a");
	run(h, SECOND);
	assert_int_equal(h->call_count, 2);
	assert_false(h->calls[0].c.repeat);
	assert_true(h->calls[1].c.repeat);

	next_fate(h, FATE_LOST_REQUEST);
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	acquire(h, 0, "b");
	cancel(h, 0);
	run(h, 3 * SECOND);
	for (int i = 3; i <= 4; i++)
	{
		assert_int_equal(h->calls[i].c.op, DYNAMO_BAR);
		assert_int_equal(h->calls[i].c.repeat, i == 4);
	}

	foreign_hold(h, "c", "v1", LEASE_MS, 1);
	acquire(h, 1, "c");
	run(h, SECOND);
	assert_int_equal(last_call(h)->c.op, DYNAMO_READ);
	assert_false(last_call(h)->c.repeat);
}

LOCKMGR_TEST(the_deadline_counts_from_the_first_copy)
{
	next_fate(h, FATE_LOST_REPLY);
	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	run(h, 4 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(h->asked[0].answer.grant.valid_until,
					 h->calls[0].sent + LEASE_US - MARGIN_US);

	run(h, LEASE_US / 3 - 4 * SECOND - 1);
	next_fate(h, FATE_LOST_REPLY);
	run(h, 3 * SECOND);
	assert_int_equal(h->call_count, 5);
	assert_int_equal(saved_of(h, 0, "a")->valid_until,
					 h->calls[3].sent + LEASE_US - MARGIN_US);
}

LOCKMGR_TEST(an_acquire_that_was_not_applied_counts_from_its_repetition)
{
	next_fate(h, fate_of(DYNAMO_UNREACHABLE));
	acquire(h, 0, "a");
	run(h, SECOND);
	assert_int_equal(h->asked[0].answer.grant.valid_until,
					 h->calls[1].sent + LEASE_US - MARGIN_US);
}

TEST(lasting_trouble_is_reported_when_patience_ends)
{
	static const int fates[] = {
		FATE_LOST_REQUEST, FATE_STATUS + DYNAMO_UNKNOWN, FATE_STATUS + DYNAMO_THROTTLED,
		FATE_STATUS + DYNAMO_CONFLICT, FATE_STATUS + DYNAMO_UNREACHABLE,
	};

	for (int what = 0; what < TRIAL_COUNT; what++)
	{
		for (size_t i = 0; i < COUNT_OF(fates); i++)
		{
			harness    *h = harness_start();

			if (what != TRIAL_ACQUIRE)
				get(h, 0, "a");
			h->fate = fates[i];
			if (what == TRIAL_HAND_OVER)
				acquire(h, 1, "a");
			ask(h, 0, what == TRIAL_ACQUIRE ? LOCKMGR_ACQUIRE :
				what == TRIAL_RENEW ? LOCKMGR_RENEW : LOCKMGR_RELEASE, "a",
				hold_of(h, 0, "a"));
			run(h, RETRY_US - SECOND / 10);
			assert_waits(h, 0);
			run(h, 3 * SECOND);
			assert_failed(h, 0, i == 0 ? DYNAMO_UNKNOWN :
						  (dynamo_status) (fates[i] - FATE_STATUS));
			if (what == TRIAL_HAND_OVER)
				assert_result(h, 1, LOCKMGR_FAILED);
			finish(h);
		}
	}
}

LOCKMGR_TEST(a_session_that_comes_during_an_outage_has_its_own_patience)
{
	h->fate = FATE_LOST_REQUEST;
	acquire(h, 0, "a");
	run(h, 3 * SECOND);
	acquire(h, 1, "a");
	run(h, 4 * SECOND);
	assert_result(h, 0, LOCKMGR_FAILED);
	assert_waits(h, 1);
	run(h, 4 * SECOND);
	assert_result(h, 1, LOCKMGR_FAILED);
}

LOCKMGR_TEST(an_outage_in_the_middle_of_a_wait_starts_patience_then)
{
	foreign_hold(h, "a", "v1", 20 * LEASE_MS, 1);
	acquire(h, 0, "a");
	run(h, 3 * RETRY_US);
	h->fate = FATE_LOST_REQUEST;
	run(h, RETRY_US - SECOND);
	assert_waits(h, 0);
	run(h, 4 * SECOND);
	assert_failed(h, 0, DYNAMO_UNKNOWN);
	assert_int_equal(h->asked[0].answer.op, DYNAMO_READ);

	acquire(h, 1, "a");
	run(h, 3 * SECOND);
	h->fate = FATE_OK;			/* it is over in time */
	run(h, RETRY_US);
	assert_waits(h, 1);
}

TEST(permanent_errors_are_reported_at_once)
{
	static const dynamo_status statuses[] = {
		DYNAMO_CREDENTIALS, DYNAMO_CLOCK_SKEW, DYNAMO_ACCESS_DENIED,
		DYNAMO_TABLE_MISSING, DYNAMO_TABLE_IN_USE, DYNAMO_VALIDATION,
		DYNAMO_MALFORMED, DYNAMO_UNTRUSTED, DYNAMO_WRONG_SERVICE,
	};

	for (size_t i = 0; i < COUNT_OF(statuses); i++)
	{
		for (int what = 0; what < TRIAL_COUNT; what++)
		{
			harness    *h = harness_start();

			next_fate(h, fate_of(statuses[i]));
			start_write(h, (trial) what);
			run(h, LATENCY_US);
			assert_failed(h, 0, statuses[i]);
			assert_non_null(strstr(h->asked[0].message, "status"));
			if (what == TRIAL_HAND_OVER)
				assert_failed(h, 1, statuses[i]);
			finish(h);
		}
	}
}

LOCKMGR_TEST(everybody_who_waits_hears_of_a_permanent_error)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	for (uint32_t i = 0; i < 3; i++)
		acquire(h, i, "a");
	settle(h);
	h->fate = fate_of(DYNAMO_TABLE_MISSING);
	run(h, SECOND / 10);
	for (uint32_t i = 0; i < 3; i++)
		assert_failed(h, i, DYNAMO_TABLE_MISSING);
}

TEST(a_renewal_survives_what_looks_permanent)
{
	static const dynamo_status statuses[] = {
		DYNAMO_CREDENTIALS, DYNAMO_UNTRUSTED, DYNAMO_WRONG_SERVICE
	};

	for (size_t i = 0; i < COUNT_OF(statuses); i++)
	{
		harness    *h = harness_start();

		get(h, 0, "a");
		run(h, LEASE_US / 3 - 11 * LATENCY_US);
		h->fate = fate_of(statuses[i]);
		run(h, RETRY_US);
		h->fate = FATE_OK;
		run(h, 2 * SECOND);
		assert_int_equal(h->lost_count, 0);
		assert_in_range(saved_of(h, 0, "a")->renewals, 1, 2);
		finish(h);
	}
}

LOCKMGR_TEST(an_abandoned_acquire_is_barred_and_released_by_its_nonce)
{
	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	run(h, SECOND / 2);
	cancel(h, 0);
	run(h, 2 * SECOND);
	assert_int_equal(h->call_count, 3);
	assert_int_equal(h->calls[1].c.op, DYNAMO_BAR);
	assert_int_equal(h->calls[2].c.op, DYNAMO_RELEASE);
	assert_string_equal(h->calls[2].writes[0].expected, h->calls[0].writes[0].version);
	assert_true(is_free(h, "a"));
}

LOCKMGR_TEST(an_acquire_that_failed_is_undone_too)
{
	h->fate = FATE_LOST_REPLY;
	acquire(h, 0, "a");
	run(h, RETRY_US + 2 * SECOND);
	assert_failed(h, 0, DYNAMO_UNKNOWN);
	h->fate = FATE_OK;
	run(h, 3 * SECOND);
	assert_true(is_free(h, "a"));
}

/* A client without ddblock has set isReleased, and nothing else. */
LOCKMGR_TEST(an_acquire_that_was_applied_and_released_is_not_confirmed)
{
	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	run(h, LATENCY_US);
	assert_true(is_ours(h, "a"));
	item_of(h, "a")->released = true;
	run(h, 3 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_true(is_ours(h, "a"));
}

LOCKMGR_TEST(an_abandoned_acquire_that_did_not_happen_leaves_nothing_to_undo)
{
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	acquire(h, 0, "a");
	cancel(h, 0);
	run(h, SECOND);
	assert_int_equal(h->call_count, 1);
}

/* Before it is barred. */
LOCKMGR_TEST(a_late_copy_of_an_abandoned_acquire_is_taken_over_at_once)
{
	harness_call *lost;
	harness_call *bar;

	next_fate(h, FATE_LOST_REQUEST);
	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	lost = last_call(h);
	cancel(h, 0);
	run(h, 2 * SECOND);
	bar = last_call(h);
	assert_int_equal(bar->c.op, DYNAMO_BAR);
	assert_true(is_free(h, "a"));

	apply(h, lost);
	assert_true(is_ours(h, "a"));
	get(h, 1, "a");
	assert_string_equal(last_call(h)->writes[0].expected, lost->writes[0].version);

	/* That was the bar: its own reply does not matter. */
	deliver(h, bar);
	settle(h);
	assert_true(holds(h, 1, "a"));
}

LOCKMGR_TEST(a_late_copy_of_a_refused_acquire_is_taken_over_at_once)
{
	harness_call *lost;

	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, 0, "a");
	lost = last_call(h);
	run(h, 2 * SECOND);
	assert_int_equal(last_call(h)->c.op, DYNAMO_READ);
	foreign_release(h, "a");
	apply(h, lost);
	run(h, SECOND / 2);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(an_unsettled_renewal_of_a_lost_lease_is_released)
{
	harness_call *lost;

	get(h, 0, "a");
	next_fate(h, FATE_LOST_REPLY);
	h->fate = FATE_LOST_REQUEST;
	run(h, LEASE_US / 2);
	lost = &h->calls[1];
	assert_int_equal(lost->c.op, DYNAMO_RENEW);
	run(h, LEASE_US / 2);
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_LOST);
	run(h, LEASE_US);
	assert_int_equal(last_call(h)->c.op, DYNAMO_RELEASE);
	assert_string_equal(item_of(h, "a")->version, lost->writes[0].version);

	h->fate = FATE_OK;
	acquire(h, 1, "a");
	run(h, 2 * SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(last_call(h)->c.op, DYNAMO_ACQUIRE);
	assert_string_equal(last_call(h)->writes[0].expected, "");
}

LOCKMGR_TEST(what_could_not_be_released_is_taken_over_at_once)
{
	harness_call *lost;

	get(h, 0, "a");
	next_fate(h, FATE_LOST_REPLY);
	h->fate = FATE_LOST_REQUEST;
	run(h, LEASE_US);
	lost = &h->calls[1];
	release(h, 0, "a");
	run(h, LEASE_US + LATE_US + 2 * SECOND);

	h->fate = FATE_OK;
	get(h, 1, "a");
	assert_string_equal(last_call(h)->writes[0].expected, lost->writes[0].version);
}

LOCKMGR_TEST(a_late_copy_cannot_undo_a_release)
{
	harness_call *lost;

	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	lost = last_call(h);
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	let_go(h, 0, "a");
	settle(h);
	apply(h, lost);
	assert_true(is_free(h, "a"));
}

TEST(an_unreadable_reply_is_answered_and_undone)
{
	static const dynamo_status statuses[] = {DYNAMO_MALFORMED, DYNAMO_WRONG_SERVICE};

	for (size_t i = 0; i < COUNT_OF(statuses); i++)
	{
		harness    *h = harness_start();

		next_fate(h, FATE_HOLD);
		acquire(h, 0, "a");
		apply(h, last_call(h));
		fail_call(h, last_call(h), statuses[i]);
		assert_failed(h, 0, statuses[i]);
		run(h, SECOND);
		assert_true(is_free(h, "a"));
		finish(h);
	}
}

LOCKMGR_TEST(a_reply_without_results_may_have_happened)
{
	dynamo_reply nothing = {.status = DYNAMO_MALFORMED};

	next_fate(h, FATE_HOLD);
	acquire(h, 0, "a");
	apply(h, last_call(h));
	last_call(h)->answered = true;
	lockmgr_reply(h->lm, h->now, last_call(h)->c.id, &nothing);
	assert_failed(h, 0, DYNAMO_MALFORMED);
	assert_string_equal(h->asked[0].message, "out of memory");
	run(h, SECOND);
	assert_true(is_free(h, "a"));
}
