/*-------------------------------------------------------------------------
 *
 * test_duration.c
 *	  leaseDuration strings of the Java client, the Go client, and others.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "dynamo/dynamo.h"

static void
assert_duration(const char *text, int64_t expected)
{
	int64_t		milliseconds = -1;

	if (!duration_parse(text, strlen(text), &milliseconds))
		fail_msg("\"%s\" was refused", text);
	if (milliseconds != expected)
		fail_msg("\"%s\" gave %lld instead of %lld", text,
				 (long long) milliseconds, (long long) expected);
}

static void
assert_refused(const char *text)
{
	int64_t		milliseconds = -1;

	if (duration_parse(text, strlen(text), &milliseconds))
		fail_msg("\"%s\" was accepted as %lld", text, (long long) milliseconds);
	assert_int_equal(milliseconds, -1);
}

TEST(reads_decimal_milliseconds)
{
	assert_duration("20000", 20000);
	assert_duration("0", 0);
	assert_duration("007", 7);
	assert_duration("9223372036854", INT64_MAX / 1000000);
}

TEST(reads_durations_as_go_prints_them)
{
	assert_duration("20s", 20000);
	assert_duration("1m30s", 90000);
	assert_duration("1h0m0s", 3600000);
	assert_duration("300ms", 300);
	assert_duration("1.5s", 1500);
	assert_duration("0s", 0);
}

TEST(reads_whatever_else_go_would)
{
	assert_duration("1.5h", 5400000);
	assert_duration(".5m", 30000);
	assert_duration("2.s", 2000);
	assert_duration("1s1h", 3601000);
	assert_duration("1000us", 1);
	assert_duration("2000\xc2\xb5s", 2);
	assert_duration("3000\xce\xbcs", 3);
	assert_duration("1000000ns", 1);
}

TEST(rounds_up_to_the_millisecond)
{
	assert_duration("1ns", 1);
	assert_duration("1.0001ms", 2);
	assert_duration("1.0000000001ms", 2);
	assert_duration("1.001s", 1001);
	assert_duration("1.0010s", 1001);
	assert_duration("0.1s0.1ms", 101);
	assert_duration("0.00000000000000000001s", 1);
	assert_duration("1.00000000000000000000000000000000000000000s", 1000);
}

TEST(refuses_everything_else)
{
	static const char *const wrong[] = {
		"", " ", "s", ".", ".s", "-1", "+1", "-20s", "+20s", "20 s", " 20s",
		"20s ", "20S", "1.5", "1..5s", "1.5.5s", "20x", "20sec", "1d", "1e3",
		"0x10", "20s5", "1,5s", "twenty", "\xc2s", "20\xc2",
	};

	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		assert_refused(wrong[i]);
}

/* A lease of Long.MAX_VALUE milliseconds is valid in Java. */
TEST(what_is_too_long_is_long)
{
	static const char *const longer[] = {
		"9223372036854", "9223372036855", "9223372036854775807", "9223372036854775808",
		"99999999999999999999999999", "9223372036.854s", "9223372036.855s",
		"9223372036854.000001ms", "9223372036854ms1ms", "2562048h", "99999999999999999999h",
		"99999999999999999999h1ns", "2562047h9999m", "9223372036.9999999999999999s",
	};

	for (size_t i = 0; i < COUNT_OF(longer); i++)
		assert_duration(longer[i], DURATION_MAX_MS);
	assert_duration("9223372036853", DURATION_MAX_MS - 1);
	assert_duration("2562047h", INT64_C(2562047) * 3600000);
	assert_refused("99999999999999999999x");
	assert_refused("-9223372036854775808");
}

TEST(reads_no_further_than_told)
{
	int64_t		milliseconds;

	assert_true(duration_parse("20s", 2, &milliseconds));
	assert_int_equal(milliseconds, 20);
	assert_true(duration_parse("205", 2, &milliseconds));
	assert_int_equal(milliseconds, 20);
	assert_false(duration_parse("20\0s", 4, &milliseconds));
}
