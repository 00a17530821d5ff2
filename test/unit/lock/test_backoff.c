/*-------------------------------------------------------------------------
 *
 * test_backoff.c
 *	  Delays before repetitions: full jitter below a bound that doubles.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "lock/backoff.h"

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

	backoff_pay(&budget, &reply, 3, false);
	assert_int_equal(budget.spent, backoff_price(DYNAMO_UNKNOWN));
}
