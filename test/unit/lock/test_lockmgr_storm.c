/*-------------------------------------------------------------------------
 *
 * test_lockmgr_storm.c
 *	  Many leases while nothing gets through: how much is sent, and what becomes of them.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#define MANY		600

/* So many leases, which are renewed at all times. */
static harness *
start_many(void)
{
	harness    *h = harness_start_with(MANY);

	believe_batches(h);
	for (uint32_t i = 0; i < MANY; i++)
	{
		acquire(h, i, lock_name(i));
		run(h, LEASE_US / 3 / MANY);
	}
	run(h, 2 * LEASE_US);
	return h;
}

static int
held(const harness *h)
{
	int			count = 0;

	for (uint32_t i = 0; i < MANY; i++)
		count += holds(h, i, lock_name(i));
	return count;
}

/* Runs so many seconds; the most calls in one of them. */
static int
worst_of(harness *h, int seconds)
{
	int			worst = 0;

	for (int i = 0; i < seconds; i++)
	{
		int			calls = h->call_count;

		run(h, SECOND);
		if (h->call_count - calls > worst)
			worst = h->call_count - calls;
	}
	return worst;
}

TEST(an_outage_is_no_storm_and_costs_no_lease_that_has_not_ended_in_it)
{
	for (int seconds = 1; seconds <= 17; seconds += 2)
	{
		harness    *h = start_many();
		int			calls = h->call_count;
		int			calm;
		int			left = 0;
		int			worst;

		run(h, 11 * SECOND);
		calm = h->call_count - calls;
		calls = h->call_count;
		h->fate = fate_of(DYNAMO_UNKNOWN);
		worst = worst_of(h, seconds);
		/* Who is about to be lost tries ever sooner: with fewer attempts, more are lost when some succeed. */
		assert_in_range(worst, 0, seconds <= 11 ? 130 : 1000);
		if (seconds == 11)
		{
			print_message("calm %d, outage %d requests in 11 s, at most %d in one second\n", calm,
						  h->call_count - calls, worst);
			assert_in_range(h->call_count - calls, 0, 5 * calm);
			assert_int_equal(h->lost_count, 0);
		}
		for (uint32_t i = 0; i < MANY; i++)
			left += holds(h, i, lock_name(i)) &&
				saved_of(h, i, lock_name(i))->valid_until > h->now + SECOND / 5;
		h->fate = FATE_OK;
		run(h, 3 * LEASE_US / 2);
		assert_true(held(h) >= left);
		harness_free(h);
	}
}

/* Each lost lease is released once, and then one after the other; but for who waits, soon. */
TEST(what_an_outage_has_cost_is_released_without_a_storm)
{
	harness    *h = start_many();

	h->fate = fate_of(DYNAMO_UNKNOWN);
	run(h, LEASE_US);
	assert_int_equal(h->lost_count, MANY);
	for (uint32_t i = 0; i < MANY; i++)
		let_go(h, i, lock_name(i));
	run(h, 3 * SECOND);
	assert_in_range(worst_of(h, 20), 5, 15);
	acquire(h, 0, lock_name(0));
	run(h, 3 * SECOND);
	h->fate = FATE_OK;
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_in_range(worst_of(h, 20), 5, 15);
	run(h, 60 * SECOND);
	for (uint32_t i = 1; i < MANY; i++)
		assert_true(is_free(h, lock_name(i)));
	harness_free(h);
}

/* One that succeeds alone does not speak against batches, if these work, too. */
TEST(batches_are_doubted_only_if_they_fail_when_one_succeeds)
{
	for (int broken = 0; broken < 2; broken++)
	{
		harness    *h = start_many();
		int			batches;

		if (broken)
			h->batch_fate = fate_of(DYNAMO_UNKNOWN);
		else
			h->fate = fate_of(DYNAMO_UNKNOWN);
		run(h, 11 * SECOND);
		h->fate = FATE_OK;
		run(h, LEASE_US);
		assert_int_equal(h->lost_count, 0);
		assert_int_equal(held(h), MANY);
		batches = sent(h, DYNAMO_RENEW_BATCH);
		run(h, LEASE_US);
		assert_in_range(sent(h, DYNAMO_RENEW_BATCH) - batches, broken ? 0 : 60, broken ? 10 : 120);
		assert_int_equal(h->lost_count, 0);
		harness_free(h);
	}
}
