/*-------------------------------------------------------------------------
 *
 * test_backoff.c
 *	  Delays before repetitions: full jitter below a bound that doubles.
 *
 *-------------------------------------------------------------------------
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lock/backoff.h"

/* The largest delay is the bound less one. */
static void
assert_bound(unsigned attempt, int64_t cap_us, int64_t bound)
{
	assert_int_equal(backoff_us(attempt, cap_us, (uint64_t) bound - 1), bound - 1);
	assert_int_equal(backoff_us(attempt, cap_us, (uint64_t) bound), 0);
}

static void
the_bound_doubles_up_to_the_cap(void **state)
{
	(void) state;
	assert_bound(1, BACKOFF_CAP_US, BACKOFF_BASE_US);
	assert_bound(2, BACKOFF_CAP_US, 2 * BACKOFF_BASE_US);
	assert_bound(3, BACKOFF_CAP_US, 4 * BACKOFF_BASE_US);
	assert_bound(6, BACKOFF_CAP_US, 32 * BACKOFF_BASE_US);
	assert_bound(7, BACKOFF_CAP_US, BACKOFF_CAP_US);
	assert_bound(100, BACKOFF_CAP_US, BACKOFF_CAP_US);
	assert_bound(UINT32_MAX, BACKOFF_CAP_US, BACKOFF_CAP_US);
}

static void
a_low_cap_holds_from_the_start(void **state)
{
	(void) state;
	assert_bound(1, 5000, 5000);
	assert_bound(9, 5000, 5000);
	assert_int_equal(backoff_us(1, 1, UINT64_MAX), 0);
}

static void
without_room_there_is_no_delay(void **state)
{
	(void) state;
	assert_int_equal(backoff_us(3, 0, 12345), 0);
	assert_int_equal(backoff_us(3, -7, 12345), 0);
}

static void
the_whole_range_is_used(void **state)
{
	(void) state;
	assert_int_equal(backoff_us(1, BACKOFF_CAP_US, 0), 0);
	assert_int_equal(backoff_us(1, BACKOFF_CAP_US, 7777), 7777);
	assert_in_range(backoff_us(4, BACKOFF_CAP_US, UINT64_MAX), 0, 8 * BACKOFF_BASE_US - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bound_doubles_up_to_the_cap),
		cmocka_unit_test(a_low_cap_holds_from_the_start),
		cmocka_unit_test(without_room_there_is_no_delay),
		cmocka_unit_test(the_whole_range_is_used),
	};

	return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
