/*-------------------------------------------------------------------------
 *
 * test_queue_memory.c
 *	  What a push guesses of a head.
 *
 *-------------------------------------------------------------------------
 */
#define BEFORE_EACH start
#include "../unit.h"

#include "queue/queue.h"

static queue_memory memory[QUEUE_MEMORY];
static int64_t seq;
static uint32_t taken;

static int
start(void **state)
{
	(void) state;
	memset(memory, 0, sizeof(memory));
	return 0;
}

static bool
guess(const char *queue, const char *resource)
{
	return queue_memory_guess(memory, queue, resource, &seq, &taken);
}

TEST(what_was_seen_last_is_guessed)
{
	assert_false(guess("q", "r"));
	queue_memory_note(memory, "q", "r", 7, 100);
	queue_memory_note(memory, "q", "r", 8, 0);
	assert_true(guess("q", "r"));
	assert_int_equal(seq, 8);
	assert_int_equal(taken, 0);
	queue_memory_note(memory, "q", "r", 3, 5);
	assert_true(guess("q", "r"));
	assert_int_equal(seq, 3);
	assert_int_equal(taken, 5);
}

/* Another resource has taken the place in the middle of a look: its number must not be taken for ours. */
TEST(another_ones_number_is_no_guess)
{
	queue_memory was;

	queue_memory_note(memory, "q", "r", 7, 0);
	for (int i = 0; i < QUEUE_MEMORY; i++)
	{
		if (memory[i].key.value == 0)
			continue;
		was = memory[i];
		queue_memory_note(memory, "q", "other", 9, 0);
		for (int other = 0; other < QUEUE_MEMORY; other++)
		{
			if (memory[other].key.value != 0 && other != i)
				was.seq = memory[other].seq;
		}
		memory[i] = was;
		assert_false(guess("q", "r"));
		return;
	}
	fail();
}

TEST(both_names_count)
{
	queue_memory_note(memory, "qr", "s", 7, 0);
	assert_false(guess("q", "rs"));
	assert_false(guess("qr", ""));
	assert_false(guess("qr", "S"));
	assert_true(guess("qr", "s"));
}

TEST(what_is_forgotten_is_not_guessed)
{
	queue_memory_note(memory, "q", "r", 7, 0);
	queue_memory_note(memory, "q", "r", 0, 0);
	assert_false(guess("q", "r"));
}

/* What no head can have is no guess: others write the memory, too. */
TEST(a_guess_is_a_number_that_a_head_can_have)
{
	queue_memory_note(memory, "q", "r", INT64_C(1) << 48, 0);
	assert_true(guess("q", "r"));
	assert_true(seq == INT64_C(1) << 48);
	queue_memory_note(memory, "q", "r", (INT64_C(1) << 48) + 1, 0);
	assert_false(guess("q", "r"));
	queue_memory_note(memory, "q", "r", -1, 0);
	assert_false(guess("q", "r"));
	queue_memory_note(memory, "q", "r", 1, 0);
	assert_true(guess("q", "r"));
}

/* A quarter of the places: hardly one displaces another. */
TEST(a_thousand_resources_have_room)
{
	int			known = 0;
	char		resource[16];

	for (int i = 1; i <= QUEUE_MEMORY / 4; i++)
	{
		snprintf(resource, sizeof(resource), "r%d", i);
		queue_memory_note(memory, "q", resource, i, 0);
	}
	for (int i = 1; i <= QUEUE_MEMORY / 4; i++)
	{
		snprintf(resource, sizeof(resource), "r%d", i);
		known += guess("q", resource);
	}
	assert_in_range(known, QUEUE_MEMORY / 4 * 98 / 100, QUEUE_MEMORY / 4);
}

/* Twice as many as there are places: each is right, or is not there, and nearly all places are used. */
TEST(resources_displace_each_other_and_are_not_confused)
{
	int			known = 0;
	char		resource[16];

	for (int i = 1; i <= 2 * QUEUE_MEMORY; i++)
	{
		snprintf(resource, sizeof(resource), "r%d", i);
		queue_memory_note(memory, "q", resource, i, 0);
		/* It may be another one's place: what is forgotten is only one's own. */
		snprintf(resource, sizeof(resource), "x%d", i);
		queue_memory_note(memory, "q", resource, 0, 0);
	}
	for (int i = 1; i <= 2 * QUEUE_MEMORY; i++)
	{
		snprintf(resource, sizeof(resource), "r%d", i);
		if (guess("q", resource))
		{
			known++;
			assert_int_equal(seq, i);
		}
	}
	assert_in_range(known, QUEUE_MEMORY * 9 / 10, QUEUE_MEMORY);
}

