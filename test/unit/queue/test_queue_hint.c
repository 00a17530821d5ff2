/*-------------------------------------------------------------------------
 *
 * test_queue_hint.c
 *	  Hints, and when a session that wants a job sleeps.
 *
 *-------------------------------------------------------------------------
 */
#define BEFORE_EACH start
#include "../unit.h"

#include "queue/queue.h"

#define SECOND INT64_C(1000000)

static queue_hint hints[QUEUE_HINTS];
static char resource[QUEUE_RESOURCE_MAX + 1];
static int64_t attempts;

static int64_t now;
static shared32 wish;
static bool pushed_meanwhile;
static bool found_by_look;
static int	hint_tries;
static int	looks;
static int64_t look_again;
static int64_t look_takes;
static int64_t looked_since;
static bool looked_last;
static queue_wait session;

static bool
take(int64_t at, char *const *resources, queue_hint_skip skip)
{
	return queue_hint_take(hints, at, "q", resources, skip, &attempts, resource);
}

static int64_t
host_clock(void *arg)
{
	(void) arg;
	return now;
}

/* Somebody pushes, after the session has found no hint. */
static bool
host_try_hints(void *arg)
{
	bool		found = take(now, NULL, NULL);

	(void) arg;
	hint_tries++;
	if (pushed_meanwhile)
	{
		queue_hint_add(hints, now, "q", "meanwhile", 0);
		wish.value = 0;
	}
	return found;
}

static bool
host_look(void *arg, int64_t since, bool last, int64_t *again)
{
	(void) arg;
	looks++;
	now += look_takes;
	looked_since = since;
	looked_last = last;
	*again = look_again;
	return found_by_look;
}

static int
start(void **state)
{
	(void) state;
	memset(hints, 0, sizeof(hints));
	now = 100 * SECOND;
	wish.value = 0;
	pushed_meanwhile = found_by_look = false;
	hint_tries = looks = 0;
	look_takes = 0;
	look_again = INT64_MAX;
	session = (queue_wait) {
		.wish = &wish,.deadline = now + 60 * SECOND,.pause = SECOND,.hints_first = true,
		.clock = host_clock,.try_hints = host_try_hints,.look = host_look,
	};
	return 0;
}

static bool
skip_a(const char *queue, const char *name)
{
	return strcmp(queue, "q") == 0 && strcmp(name, "a") == 0;
}

TEST(the_oldest_hint_is_taken_first_and_once)
{
	queue_hint_add(hints, 2, "q", "b", 1);
	queue_hint_add(hints, 1, "q", "a", QUEUE_ATTEMPTS_UNKNOWN);
	queue_hint_add(hints, 3, "q", "a", 5);
	assert_true(queue_hint_exists(hints, 4, "q"));
	assert_false(queue_hint_exists(hints, 4, "other"));
	assert_true(take(4, NULL, NULL));
	assert_string_equal(resource, "a");
	assert_int_equal(attempts, QUEUE_ATTEMPTS_UNKNOWN);
	assert_true(take(4, NULL, NULL));
	assert_string_equal(resource, "b");
	assert_int_equal(attempts, 1);
	assert_false(take(4, NULL, NULL));
	assert_false(queue_hint_exists(hints, 4, "q"));
}

/* ... with the longest names, too. */
TEST(a_hint_that_is_taken_makes_room)
{
	char		longest[QUEUE_RESOURCE_MAX + 1];

	memset(longest, 'r', sizeof(longest) - 1);
	longest[QUEUE_RESOURCE_MAX] = '\0';
	for (int i = 0; i <= QUEUE_HINTS; i++)
	{
		queue_hint_add(hints, 1, "q", longest, 0);
		assert_true(take(1, NULL, NULL));
		assert_string_equal(resource, longest);
	}
}

TEST(a_hint_is_taken_by_whom_it_is_for)
{
	char	   *only_b[] = {"b", NULL};
	char	   *b_or_a[] = {"b", "a", NULL};

	queue_hint_add(hints, 1, "other", "b", 0);
	queue_hint_add(hints, 1, "q", "a", 0);
	assert_false(take(2, only_b, NULL));
	assert_false(take(2, NULL, skip_a));
	assert_true(take(2, b_or_a, NULL));
	assert_string_equal(resource, "a");
	queue_hint_add(hints, 1, "q", "a", 0);
	assert_true(take(2, NULL, NULL));
	assert_string_equal(resource, "a");
}

TEST(an_old_hint_makes_room)
{
	char		name[8];

	for (int i = 0; i <= QUEUE_HINTS; i++)
	{
		snprintf(name, sizeof(name), "r%d", i);
		queue_hint_add(hints, i, "q", name, 0);
	}
	assert_false(take(6 * SECOND, NULL, NULL));
	queue_hint_add(hints, 6 * SECOND, "q", "r0", 2);
	queue_hint_add(hints, 6 * SECOND, "q", "new", 0);
	assert_true(take(6 * SECOND, NULL, NULL));
	assert_int_equal(attempts, 2);
	assert_true(take(6 * SECOND, NULL, NULL));
	assert_string_equal(resource, "new");
}

TEST(a_hint_is_old_after_five_seconds)
{
	queue_hint_add(hints, 1, "q", "a", 0);
	assert_false(take(5 * SECOND + 2, NULL, NULL));
	assert_true(take(5 * SECOND + 1, NULL, NULL));
}

/* As if they had come at once. */
TEST(of_hints_of_one_time_the_first_place_is_taken)
{
	queue_hint_add(hints, 1, "q", "a", 0);
	queue_hint_add(hints, 1, "q", "b", 0);
	assert_true(take(1, NULL, NULL));
	assert_string_equal(resource, "a");
}

/* ... of each queue. */
TEST(a_hint_is_of_one_queue)
{
	queue_hint_add(hints, 1, "other", "a", 1);
	queue_hint_add(hints, 2, "q", "a", 2);
	assert_true(take(2, NULL, NULL));
	assert_int_equal(attempts, 2);
	assert_true(queue_hint_exists(hints, 2, "other"));
}

TEST(an_old_hint_that_is_given_anew_keeps_its_place)
{
	for (int i = 0; i <= QUEUE_HINTS; i++)
		queue_hint_add(hints, i * 6 * SECOND, "q", "a", i);
	assert_true(take(QUEUE_HINTS * 6 * SECOND, NULL, NULL));
	assert_int_equal(attempts, QUEUE_HINTS);
	assert_false(take(QUEUE_HINTS * 6 * SECOND, NULL, NULL));
}

static queue_waited
turn(int64_t *until)
{
	return queue_wait_turn(&session, 0, until);
}

TEST(a_hint_ends_the_wait)
{
	int64_t		until;

	queue_hint_add(hints, now, "q", "a", 0);
	assert_int_equal(turn(&until), QUEUE_WAIT_FOUND);
	assert_int_equal(looks, 0);
}

TEST(a_hint_after_the_wish_wakes)
{
	int64_t		until;

	pushed_meanwhile = true;
	assert_int_equal(turn(&until), QUEUE_WAIT_SLEEP);
	assert_int_equal(wish.value, 0);
	assert_int_equal(turn(&until), QUEUE_WAIT_FOUND);
}

TEST(looks_come_ever_later)
{
	int64_t		until;

	assert_int_equal(turn(&until), QUEUE_WAIT_SLEEP);
	assert_int_equal(until, now + SECOND / 2);
	assert_int_equal(wish.value, 1);
	assert_int_equal(looked_since, now - SECOND);
	assert_false(looked_last);
	assert_int_equal(turn(&until), QUEUE_WAIT_SLEEP);
	assert_int_equal(looks, 1);
	now = until;
	look_again = now + 7;
	assert_int_equal(turn(&until), QUEUE_WAIT_SLEEP);
	assert_int_equal(until, now + 7);
	look_again = INT64_MAX;
	for (int i = 0; i < 4; i++)
	{
		now = until;
		assert_int_equal(turn(&until), QUEUE_WAIT_SLEEP);
	}
	assert_int_equal(until, now + 5 * SECOND / 2);
}

TEST(the_pause_follows_a_look_however_long_that_takes)
{
	int64_t		until;

	look_takes = 3 * SECOND;
	assert_int_equal(turn(&until), QUEUE_WAIT_SLEEP);
	assert_int_equal(until, 103 * SECOND + SECOND / 2);
	look_takes = 60 * SECOND;
	now = until;
	assert_int_equal(turn(&until), QUEUE_WAIT_OVER);
}

TEST(without_a_hint_at_first_a_look_comes_first)
{
	int64_t		until;

	session.hints_first = false;
	assert_int_equal(turn(&until), QUEUE_WAIT_TURN);
	assert_int_equal(hint_tries, 0);
	assert_int_equal(turn(&until), QUEUE_WAIT_SLEEP);
	assert_int_equal(hint_tries, 1);
}

TEST(the_last_look_is_at_the_deadline)
{
	int64_t		until;

	session.deadline = now;
	session.next_look = now + SECOND;
	found_by_look = true;
	assert_int_equal(turn(&until), QUEUE_WAIT_FOUND);
	assert_true(looked_last);
	found_by_look = false;
	assert_int_equal(turn(&until), QUEUE_WAIT_OVER);
}

/* Sessions that have begun to wait together do not go on looking together. */
TEST(a_look_comes_at_any_time_in_the_second_half_of_the_pause)
{
	bool		came[11] = {false};
	int64_t		until;

	for (uint64_t random = 0; random < 100; random++)
	{
		start(NULL);
		session.pause = 10;
		assert_int_equal(queue_wait_turn(&session, random, &until), QUEUE_WAIT_SLEEP);
		assert_in_range(until - now, 5, 10);
		came[until - now] = true;
	}
	for (int i = 5; i <= 10; i++)
		assert_true(came[i]);
	start(NULL);
	assert_int_equal(queue_wait_turn(&session, UINT64_MAX, &until), QUEUE_WAIT_SLEEP);
	assert_in_range(until - now, SECOND / 2, SECOND);
}
