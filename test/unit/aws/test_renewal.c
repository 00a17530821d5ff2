/*
 * test_renewal.c
 *	  aws/renewal.c: when credentials are fetched again.
 */
#include "../unit.h"
#include "aws/aws.h"

#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)

TEST(what_does_not_expire_is_not_renewed)
{
	aws_renewal r = {0};

	aws_renewal_succeeded(&r, 5, AWS_RENEWAL_NEVER, 1);
	assert_true(r.next == AWS_RENEWAL_NEVER);
}

TEST(renewed_when_about_half_of_the_time_has_passed)
{
	int64_t		first = INT64_MAX,
				last = 0;

	for (uint64_t random = 0; random < 1000; random++)
	{
		aws_renewal r = {0};

		aws_renewal_succeeded(&r, 1000, 15 * MINUTE, random * UINT64_C(0x9E3779B97F4A7C15));
		assert_in_range(r.next - 1000, 6 * MINUTE, 7 * MINUTE + 30 * SECOND);
		first = r.next < first ? r.next : first;
		last = r.next > last ? r.next : last;
	}
	/* Spread over most of that time. */
	assert_true(last - first > 80 * SECOND);
}

TEST(old_credentials_are_asked_for_again_and_again_but_not_at_once)
{
	aws_renewal r = {0};

	aws_renewal_succeeded(&r, 0, 10 * SECOND, 7);
	assert_true(r.next == AWS_RENEWAL_SOONEST_US);
	aws_renewal_succeeded(&r, 0, -MINUTE, 7);
	assert_true(r.next == AWS_RENEWAL_SOONEST_US);
}

TEST(a_clock_that_was_wrong_brings_the_renewal_forward_and_time_does_not)
{
	aws_renewal r = {0};
	int64_t		next;

	for (uint64_t random = 0; random < 1000; random++)
	{
		aws_renewal_succeeded(&r, 0, 15 * MINUTE, random * UINT64_C(0x9E3779B97F4A7C15));
		next = r.next;
		for (int64_t now = 0; now <= 16 * MINUTE; now += 7 * SECOND)
			aws_renewal_check(&r, now, 15 * MINUTE - now);
		assert_true(r.next == next);
	}
	aws_renewal_check(&r, 0, 12 * 60 * MINUTE);
	assert_true(r.next == next);
	aws_renewal_check(&r, 0, AWS_RENEWAL_NEVER);
	assert_true(r.next == next);
	aws_renewal_check(&r, 0, 4 * MINUTE);
	assert_true(r.next == 2 * MINUTE);
	aws_renewal_check(&r, SECOND, -5 * MINUTE);
	assert_true(r.next == SECOND + AWS_RENEWAL_SOONEST_US);
	aws_renewal_check(&r, 2 * SECOND, -5 * MINUTE);
	assert_true(r.next == SECOND + AWS_RENEWAL_SOONEST_US);
}

TEST(failures_are_followed_by_growing_delays)
{
	aws_renewal r = {0};
	int64_t		longest = 2 * SECOND;

	for (int i = 0; i < 100; i++)
	{
		aws_renewal_failed(&r, 0, (uint64_t) i * UINT64_C(0x9E3779B97F4A7C15));
		assert_in_range(r.next, longest / 2, longest);
		longest = longest * 2 < MINUTE ? longest * 2 : MINUTE;
	}
	aws_renewal_succeeded(&r, 0, MINUTE, 0);
	aws_renewal_failed(&r, 0, 0);
	assert_in_range(r.next, SECOND, 2 * SECOND);
}
