/*-------------------------------------------------------------------------
 *
 * test_backoff.c
 *	  Delays before repetitions: full jitter below a bound that doubles.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "base/backoff.h"

/* The largest delay is the bound less one. */
static void
assert_bound(unsigned attempt, int64_t cap_us, int64_t bound)
{
	assert_int_equal(backoff_us(attempt, cap_us, (uint64_t) bound - 1), bound - 1);
	assert_int_equal(backoff_us(attempt, cap_us, (uint64_t) bound), 0);
}

TEST(the_bound_doubles_up_to_the_cap)
{
	assert_bound(1, BACKOFF_CAP_US, BACKOFF_BASE_US);
	assert_bound(2, BACKOFF_CAP_US, 2 * BACKOFF_BASE_US);
	assert_bound(3, BACKOFF_CAP_US, 4 * BACKOFF_BASE_US);
	assert_bound(6, BACKOFF_CAP_US, 32 * BACKOFF_BASE_US);
	assert_bound(7, BACKOFF_CAP_US, BACKOFF_CAP_US);
	assert_bound(100, BACKOFF_CAP_US, BACKOFF_CAP_US);
	assert_bound(UINT32_MAX, BACKOFF_CAP_US, BACKOFF_CAP_US);
}

TEST(a_low_cap_holds_from_the_start)
{
	assert_bound(1, 5000, 5000);
	assert_bound(9, 5000, 5000);
	assert_int_equal(backoff_us(1, 1, UINT64_MAX), 0);
}

TEST(without_room_there_is_no_delay)
{
	assert_int_equal(backoff_us(3, 0, 12345), 0);
	assert_int_equal(backoff_us(3, -7, 12345), 0);
}

TEST(the_whole_range_is_used)
{
	assert_int_equal(backoff_us(1, BACKOFF_CAP_US, 0), 0);
	assert_int_equal(backoff_us(1, BACKOFF_CAP_US, 7777), 7777);
	assert_in_range(backoff_us(4, BACKOFF_CAP_US, UINT64_MAX), 0, 8 * BACKOFF_BASE_US - 1);
}

TEST(a_call_of_several_items_pays_once_for_the_worst)
{
	dynamo_result results[] = {{.status = DYNAMO_THROTTLED}, {.status = DYNAMO_UNKNOWN}, {.status = DYNAMO_OK}};
	const dynamo_reply reply = {.count = 3,.results = results};
	backoff_budget budget = {.spent = 0};

	backoff_charge(&budget, &reply, 3, false);
	assert_int_equal(budget.spent, backoff_price(DYNAMO_UNKNOWN));
}

TEST(what_did_not_answer_costs_twice_what_refused)
{
	assert_int_equal(backoff_price(DYNAMO_OK), 0);
	assert_int_equal(backoff_price(DYNAMO_CONDITION_FAILED), 0);
	assert_int_equal(backoff_price(DYNAMO_UNKNOWN), 10);
	assert_int_equal(backoff_price(DYNAMO_UNREACHABLE), 10);
	assert_int_equal(backoff_price(DYNAMO_THROTTLED), 5);
	assert_int_equal(backoff_price(DYNAMO_CONFLICT), 5);
	assert_int_equal(backoff_earned(false), 1);
	assert_int_equal(backoff_earned(true), 5);
}

static void
pay(backoff_budget *budget, dynamo_status status, bool repeated)
{
	dynamo_result result = {.status = status};
	const dynamo_reply reply = {.count = 1,.results = &result};

	backoff_charge(budget, &reply, 1, repeated);
}

TEST(the_budget_is_spent_to_its_end_and_not_beyond)
{
	backoff_budget budget = {.spent = BACKOFF_BUDGET - 10};

	pay(&budget, DYNAMO_UNKNOWN, true);
	assert_int_equal(budget.spent, BACKOFF_BUDGET);
	assert_false(budget.cannot_pay);
	pay(&budget, DYNAMO_UNKNOWN, true);
	assert_int_equal(budget.spent, BACKOFF_BUDGET);
	assert_true(budget.cannot_pay);
	pay(&budget, DYNAMO_OK, true);
	assert_int_equal(budget.spent, BACKOFF_BUDGET - 5);
	assert_false(budget.cannot_pay);
	pay(&budget, DYNAMO_UNKNOWN, false);
	assert_int_equal(budget.spent, BACKOFF_BUDGET - 5);
	assert_true(budget.cannot_pay);
	pay(&budget, DYNAMO_THROTTLED, false);
	assert_int_equal(budget.spent, BACKOFF_BUDGET);
	assert_false(budget.cannot_pay);
}

TEST(nobody_earns_more_than_was_spent)
{
	backoff_budget budget = {.spent = 7};

	pay(&budget, DYNAMO_OK, false);
	assert_int_equal(budget.spent, 6);
	pay(&budget, DYNAMO_CONDITION_FAILED, true);
	assert_int_equal(budget.spent, 1);
	pay(&budget, DYNAMO_OK, true);
	assert_int_equal(budget.spent, 0);
	pay(&budget, DYNAMO_OK, false);
	assert_int_equal(budget.spent, 0);
}

/* A reply that cannot be read, or for which there is no memory. */
TEST(results_that_are_missing_are_paid_for)
{
	const dynamo_reply none = {.count = 0};
	backoff_budget budget = {.spent = 0};

	backoff_charge(&budget, &none, 1, false);
	assert_int_equal(budget.spent, 5);
}

TEST(who_cannot_pay_waits_for_the_longest_delay_and_then_for_its_own)
{
	assert_int_equal(backoff_later_us(false, 1, BACKOFF_CAP_US, 7777), 7777);
	assert_int_equal(backoff_later_us(true, 1, BACKOFF_CAP_US, 7777), BACKOFF_CAP_US + 7777);
}
