/*-------------------------------------------------------------------------
 *
 * test_epoch_clock.c
 *	  The bounds of DynamoDB's time, and wrong Dates.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "aws/aws.h"

#define MS		INT64_C(1000)
#define SECOND	INT64_C(1000000)
#define HOUR	(3600 * SECOND)
#define EPOCH	(INT64_C(1800000000) * SECOND)	/* DynamoDB's time at our 0 */
#define PPM		500
#define YEAR_9999	INT64_C(253370764800)

static uint64_t seed;

static int64_t
between(int64_t from, int64_t to)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return from + (int64_t) ((seed >> 20) % (uint64_t) (to - from + 1));
}

/* Of our wall clock, to our clock. */
static int64_t wall_offset = EPOCH;

static void
start(epoch_clock *clock, int64_t wall)
{
	wall_offset = wall;
	epoch_clock_start(clock, wall, PPM);
}

static void
reply(epoch_clock *clock, int64_t date_s, int64_t sent, int64_t received)
{
	epoch_clock_reply(clock, date_s, sent, received, wall_offset);
}

/* DynamoDB, whose clock is "epoch" ahead of ours, replies at "at". */
static void
reply_at(epoch_clock *clock, int64_t epoch, int64_t at, int64_t there, int64_t back)
{
	reply(clock, (epoch + at) / SECOND, at - there, at + back);
}

TEST(one_date_tells_the_second)
{
	epoch_clock clock;

	start(&clock, EPOCH);
	assert_false(clock.known);
	reply(&clock, EPOCH / SECOND + 100, 100 * SECOND - 3 * MS, 100 * SECOND + 2 * MS);
	assert_true(clock.known);
	assert_in_range(EPOCH - epoch_clock_low(&clock, 100 * SECOND), 2 * MS, 2 * MS + 5);
	assert_in_range(epoch_clock_high(&clock, 100 * SECOND) - EPOCH, SECOND + 13 * MS,
					SECOND + 13 * MS + 5);
}

/* With any clocks within the drift, and any wall clock. */
TEST(the_truth_lies_between_the_bounds)
{
	for (seed = 1; seed <= 2000; seed += 2)
	{
		uint64_t	first = seed;
		epoch_clock clock;
		int64_t		now = between(1, 1000 * SECOND);
		int64_t		begun = 0;
		int64_t		epoch = EPOCH;
		int64_t		ppm = between(-PPM, PPM);
		int64_t		wall = between(0, 2) == 0 ? between(-HOUR, HOUR) : between(-SECOND, SECOND);

		start(&clock, epoch + wall);
		for (int i = 0; i < 200; i++)
		{
			int64_t		there = between(1, 50 * MS);
			int64_t		back = between(1, 50 * MS);
			int64_t		pause = between(0, 9) == 0 ? between(0, HOUR) : between(0, SECOND);

			now += pause + there;
			epoch += (pause + there) * ppm / 1000000;
			reply_at(&clock, epoch, now, there, back);
			if (i == 0)
				begun = now;
			now += back;
			epoch += back * ppm / 1000000;
			if (clock.known)
			{
				assert_true(epoch_clock_low(&clock, now) <= epoch);
				assert_true(epoch_clock_high(&clock, now) >= epoch);
				assert_true(epoch_clock_high(&clock, now) - epoch_clock_low(&clock, now) <=
							SECOND + 120 * MS);
			}
			assert_true(clock.known || i + 1 < EPOCH_VOTES ||
						now - begun < EPOCH_DOUBT_US + 2 * SECOND);
		}
		seed = first;
	}
}

TEST(many_dates_tell_more_than_the_second)
{
	epoch_clock clock;

	seed = 1;
	start(&clock, EPOCH);
	for (int i = 1; i <= 200; i++)
		reply_at(&clock, EPOCH, i * SECOND / 10 + between(0, 99) * MS, MS, MS);
	assert_true(epoch_clock_high(&clock, 20 * SECOND) < EPOCH + 60 * MS);
	assert_true(epoch_clock_low(&clock, 20 * SECOND) > EPOCH - 60 * MS);
}

/* The bounds widen until the next Date. */
TEST(silence_widens_the_bounds)
{
	epoch_clock clock;

	start(&clock, EPOCH);
	reply_at(&clock, EPOCH, 10 * SECOND, MS, MS);
	assert_in_range(epoch_clock_high(&clock, 10 * SECOND + HOUR) -
					epoch_clock_high(&clock, 10 * SECOND), 1790 * MS, 1810 * MS);
	reply_at(&clock, EPOCH, 10 * SECOND + HOUR, MS, MS);
	assert_true(epoch_clock_high(&clock, 10 * SECOND + HOUR) < EPOCH + SECOND + 12 * MS);
}

TEST(an_absurd_date_moves_no_token)
{
	static const int64_t absurd[] = {
		YEAR_9999, 1, 0, -1, INT64_MAX, INT64_MIN, EPOCH / SECOND + 3600,
		EPOCH / SECOND - 3600, EPOCH / SECOND + 400,
	};

	for (size_t i = 0; i < COUNT_OF(absurd); i++)
	{
		epoch_clock clock;
		int64_t		high;

		/* known, then contradicted: too seldom; or often, but at the same time */
		start(&clock, EPOCH);
		reply_at(&clock, EPOCH, 50 * SECOND, MS, MS);
		high = epoch_clock_high(&clock, 60 * SECOND);
		for (int n = 1; n < EPOCH_VOTES; n++)
			reply(&clock, absurd[i], 50 * SECOND + n * MS, 50 * SECOND + n * MS + 1);
		for (int n = 1; n < 100; n++)
			reply(&clock, absurd[i], 50 * SECOND, 50 * SECOND + 4 * MS);
		assert_int_equal(epoch_clock_high(&clock, 60 * SECOND), high);
		reply_at(&clock, EPOCH, 60 * SECOND, MS, MS);
		assert_int_equal(clock.votes, 0);
		assert_true(epoch_clock_high(&clock, 60 * SECOND) <= high);

		/* before the first Date */
		start(&clock, EPOCH);
		reply(&clock, absurd[i], 50 * SECOND, 50 * SECOND + MS);
		assert_false(clock.known);
		reply_at(&clock, EPOCH, 60 * SECOND, MS, MS);
		assert_true(clock.known);
		assert_true(epoch_clock_high(&clock, 60 * SECOND) < EPOCH + SECOND + 12 * MS);
	}
}

/* However many in a row, while the machine's clock is right. */
TEST(dates_that_are_wrong_for_some_seconds_are_not_believed)
{
	static const int64_t errors[] = {30 * SECOND, -30 * SECOND, HOUR, -HOUR};

	for (size_t i = 0; i < COUNT_OF(errors); i++)
	{
		for (int known = 0; known <= 1; known++)
		{
			epoch_clock clock;
			int64_t		now = 10 * SECOND;

			start(&clock, EPOCH + SECOND);
			if (known)
				reply_at(&clock, EPOCH, now, MS, MS);
			for (now += SECOND; now < 20 * SECOND; now += 30 * MS)
				reply_at(&clock, EPOCH + errors[i], now, MS, MS);
			assert_int_equal(clock.known, known);
			reply_at(&clock, EPOCH, now, MS, MS);
			assert_true(clock.known);
			assert_int_equal(clock.votes, 0);
			assert_in_range(epoch_clock_low(&clock, now), EPOCH - 2 * SECOND, EPOCH);
			assert_in_range(epoch_clock_high(&clock, now), EPOCH, EPOCH + 2 * SECOND);
		}
	}
}

/* DynamoDB has refused the wall clock's time, but not the time of its Date. */
TEST(a_refused_wall_clock_is_not_doubted_for_long)
{
	for (int refusals = 0; refusals <= 1; refusals++)
	{
		epoch_clock clock;
		int64_t		now = 10 * SECOND;

		start(&clock, EPOCH);
		for (int n = 1; n <= EPOCH_VOTES; n++)
		{
			assert_false(clock.known);
			/* A refusal of what a Date has told says nothing of the wall clock. */
			if (n == 2 - refusals)
				epoch_clock_refused(&clock);
			reply_at(&clock, EPOCH + HOUR, now += 10 * MS, MS, MS);
		}
		assert_int_equal(clock.known, refusals);
		reply_at(&clock, EPOCH + HOUR, now += EPOCH_DOUBT_US, MS, MS);
		assert_true(epoch_clock_low(&clock, now) > EPOCH + HOUR - 2 * SECOND);
	}

	/* Later, Dates that are wrong are doubted as ever. */
	epoch_clock clock;
	int64_t		now = 10 * SECOND;

	start(&clock, EPOCH);
	epoch_clock_refused(&clock);
	for (int n = 1; n <= EPOCH_VOTES; n++)
		reply_at(&clock, EPOCH + HOUR, now += 10 * MS, MS, MS);
	wall_offset = EPOCH + HOUR;
	for (int n = 1; n <= 2 * EPOCH_VOTES; n++)
		reply_at(&clock, EPOCH, now += 10 * MS, MS, MS);
	assert_true(epoch_clock_low(&clock, now) > EPOCH + HOUR - 2 * SECOND);
}

/* Once the machine's clock has been set, too, there is no doubt. */
TEST(a_jump_that_the_wall_clock_confirms_is_believed_soon)
{
	epoch_clock clock;
	int64_t		now = 10 * SECOND;

	start(&clock, EPOCH);
	reply_at(&clock, EPOCH, now, MS, MS);
	wall_offset = EPOCH + HOUR - 4 * SECOND;
	for (int n = 0; n < EPOCH_VOTES; n++)
		reply_at(&clock, EPOCH + HOUR, now += 10 * MS, MS, MS);
	assert_true(epoch_clock_low(&clock, now) > EPOCH + HOUR - 2 * SECOND);
}

/* Our machine stood still, or DynamoDB's clock was set: all replies agree. */
TEST(a_jump_is_believed_in_the_end)
{
	static const int64_t jumps[] = {SECOND, -SECOND, 30 * SECOND, -30 * SECOND, HOUR, -HOUR};

	for (size_t i = 0; i < COUNT_OF(jumps); i++)
	{
		epoch_clock clock;
		int64_t		epoch = EPOCH;
		int64_t		now = 10 * SECOND;

		seed = i;
		start(&clock, EPOCH);
		for (int n = 0; n < 100; n++, now += between(1, 300) * MS)
			reply_at(&clock, epoch, now, MS, MS);
		epoch += jumps[i];
		for (int n = 0; n < 200; n++, now += between(1, 300) * MS)
			reply_at(&clock, epoch, now, MS, MS);
		assert_true(epoch_clock_low(&clock, now) <= epoch);
		assert_true(epoch_clock_high(&clock, now) >= epoch);
	}
}

/* Servers differ by up to 2 s from the truth, and our machine stood still. */
TEST(a_jump_is_believed_although_servers_differ)
{
	for (int64_t first = 0; first < 100; first++)
	{
		epoch_clock clock;
		int64_t		epoch = EPOCH;
		int64_t		now = 10 * SECOND;

		seed = (uint64_t) first;
		start(&clock, EPOCH);
		for (int n = 0; n < 100; n++, now += between(1, 300) * MS)
			reply_at(&clock, epoch + between(-2000, 2000) * MS, now, MS, MS);
		epoch += 30 * SECOND;
		for (int n = 0; n < 200; n++, now += between(1, 300) * MS)
			reply_at(&clock, epoch + between(-2000, 2000) * MS, now, MS, MS);
		assert_true(epoch_clock_low(&clock, now) <= epoch + 2 * SECOND);
		assert_true(epoch_clock_high(&clock, now) >= epoch - 2 * SECOND);
	}
}

/* One of several servers is always wrong. */
TEST(a_minority_is_outvoted)
{
	epoch_clock clock;
	int64_t		now = 10 * SECOND;

	seed = 1;
	start(&clock, EPOCH);
	reply_at(&clock, EPOCH, now, MS, MS);
	for (int n = 0; n < 1000; n++, now += 100 * MS)
	{
		reply_at(&clock, n % EPOCH_VOTES == 0 ? EPOCH : EPOCH + HOUR, now, MS, MS);
		assert_true(epoch_clock_high(&clock, now) < EPOCH + 2 * SECOND);
	}
}

/* A refusal has the right Date, which the next attempt uses. */
TEST(signing_follows_the_newest_date)
{
	epoch_clock clock;

	start(&clock, EPOCH - HOUR);
	assert_int_equal(epoch_clock_likely(&clock), EPOCH - HOUR);
	reply_at(&clock, EPOCH, 10 * SECOND, MS, MS);
	assert_false(clock.known);
	assert_in_range(epoch_clock_likely(&clock), EPOCH - SECOND, EPOCH + SECOND);
}
