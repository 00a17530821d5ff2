/*-------------------------------------------------------------------------
 *
 * test_lockmgr_deadlock.c
 *	  Sessions of one cluster that wait for each other.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

/* Sessions 0 .. count-1 hold a lock each; all but the last wait for the next one. */
static harness *
start_chain(uint32_t count)
{
	harness    *h = harness_start();

	for (uint32_t i = 0; i < count; i++)
		get(h, i, lock_name(i));
	for (uint32_t i = 0; i < count - 1; i++)
		acquire(h, i, lock_name(i + 1));
	return h;
}

TEST(who_closes_a_cycle_is_told)
{
	for (uint32_t count = 1; count <= 5; count++)
	{
		harness    *h = start_chain(count);

		acquire(h, count - 1, "lock0");
		assert_result(h, count - 1, LOCKMGR_DEADLOCK);
		assert_non_null(strstr(h->asked[count - 1].message, "waits for lock \"lock0\""));
		for (uint32_t i = 0; i + 1 < count; i++)
			assert_waits(h, i);

		/* The others continue once it releases its lock. */
		end_session(h, count - 1);
		run(h, SECOND);
		if (count > 1)
			assert_result(h, count - 2, LOCKMGR_GRANTED);
		finish(h);
	}
}

LOCKMGR_TEST(a_cycle_is_told_to_its_end)
{
	get(h, 0, "a");
	get(h, 1, "b");
	get(h, 2, "c");
	acquire(h, 1, "a");
	acquire(h, 2, "b");
	acquire(h, 0, "c");
	assert_result(h, 0, LOCKMGR_DEADLOCK);
	assert_string_equal(h->asked[0].message,
						"Process 42 waits for lock \"c\", held by process 44. "
						"Process 44 waits for lock \"b\", held by process 43. "
						"Process 43 waits for lock \"a\", held by process 42.");
}

/* How it is told that two sessions wait for each other, who have locks of this name. */
static void
tell_cycle(const char *name, size_t len, char *cycle, size_t size)
{
	static lockmgr lm;
	lm_lock		locks[2] = {{.state = LOCK_HELD}};
	lm_lease	leases[2] = {{.l.state = LEASE_HELD}, {.l.state = LEASE_HELD}};
	lm_session	sessions[2] = {{.attempts = 0}};
	lm_hold		holds[2] = {{.index = 0}};
	lm_session *in_line;

	for (int i = 0; i < 2; i++)
	{
		locks[i].name = (char *) name;
		locks[i].name_len = len;
		locks[i].lease = &leases[i];
		leases[i].holds = &holds[i];
		holds[i].session = &sessions[i];
		holds[i].h.holder.pid = i + 1;
		sessions[i].request.active = true;
		sessions[i].request.ask.holder.pid = i + 1;
		sessions[i].request.lock = &locks[1 - i];
	}
	assert_true(lm_deadlocked(&lm, &sessions[0], &in_line, cycle, size));
	assert_null(in_line);
}

TEST(a_long_name_in_a_cycle_is_cut_between_characters)
{
	char		cycle[512];
	char		shown[512];
	char		name[104];

	for (int len = 100; len <= 102; len++)
	{
		/* The last two bytes are one character; what follows is not the name. */
		memset(name, 'x', sizeof(name));
		memcpy(name + len - 2, "\xc3\xa9\xa9", 3);
		snprintf(shown, sizeof(shown), "Process 1 waits for lock \"%.*s%s\", held by process 2. ",
				 len == 101 ? 99 : 100, name, len == 100 ? "" : "...");
		tell_cycle(name, (size_t) len, cycle, sizeof(cycle));
		assert_memory_equal(cycle, shown, strlen(shown));
	}
}

TEST(a_cycle_is_told_in_whole_sentences_as_far_as_it_fits)
{
	const char *whole = "Process 1 waits for lock \"a\", held by process 2. "
		"Process 2 waits for lock \"a\", held by process 1.";
	const char *half = "Process 1 waits for lock \"a\", held by process 2.";
	char		cycle[128];

	tell_cycle("a", 1, cycle, strlen(whole) + 1);
	assert_string_equal(cycle, whole);
	memset(cycle, '#', sizeof(cycle));
	tell_cycle("a", 1, cycle, strlen(whole));
	assert_string_equal(cycle, half);
	assert_int_equal(cycle[strlen(whole)], '#');
	tell_cycle("a", 1, cycle, strlen(half) + 1);
	assert_string_equal(cycle, half);
	tell_cycle("a", 1, cycle, strlen(half));
	assert_string_equal(cycle, "");
}

LOCKMGR_TEST(who_closes_a_cycle_is_told_only_names_that_begin_as_its_own_does)
{
	get(h, 0, "shop/a");
	get(h, 1, "shop/b");
	get(h, 2, "bank/c");
	get(h, 3, "shop");
	acquire(h, 0, "shop/b");
	acquire(h, 1, "bank/c");
	acquire(h, 2, "shop");
	h->ask.prefix_len = strlen("shop/");
	acquire(h, 3, "shop/a");
	assert_result(h, 3, LOCKMGR_DEADLOCK);
	assert_non_null(strstr(h->asked[3].message, "waits for lock \"shop/a\", held"));
	assert_non_null(strstr(h->asked[3].message, "waits for lock \"shop/b\", held"));
	assert_null(strstr(h->asked[3].message, "bank"));
	assert_null(strstr(h->asked[3].message, "\"shop\""));
}

LOCKMGR_TEST_WITH(a_prefix_may_be_a_whole_name, start_chain(2))
{
	h->ask.prefix_len = strlen("lock0");
	acquire(h, 1, "lock0");
	assert_result(h, 1, LOCKMGR_DEADLOCK);
	assert_non_null(strstr(h->asked[1].message, "waits for lock \"lock0\""));
	assert_null(strstr(h->asked[1].message, "lock1"));
}

LOCKMGR_TEST_WITH(a_chain_that_ends_is_no_cycle, start_chain(3))
{
	acquire(h, 5, "lock0");
	assert_waits(h, 5);
	assert_waits(h, 0);
	assert_waits(h, 1);
}

TEST(a_cycle_is_found_beside_a_way_that_leads_nowhere)
{
	for (uint32_t first = 0; first < 2; first++)
	{
		harness    *h = harness_start();

		h->ask.mode = MODE_SHARED;
		get(h, 0, "l");
		get(h, 1, "l");
		h->ask.mode = MODE_EXCLUSIVE;
		get(h, 2, "m");
		get(h, 3, "n");
		acquire(h, first, "m");
		acquire(h, 1 - first, "n");
		acquire(h, 2, "l");
		assert_result(h, 2, LOCKMGR_DEADLOCK);
		finish(h);
	}
}

/* The hold on lock0 ends without its session. */
static bool
ends_lock0(void *arg, uint32_t index, const saved_hold *hold)
{
	(void) arg;
	(void) index;
	return hold->session.slot == 0;
}

TEST(nobody_waits_for_a_session_whose_hold_the_host_ends)
{
	for (uint32_t count = 1; count <= 3; count++)
	{
		harness    *h = harness_new(16);

		h->host.ends_hold = ends_lock0;
		start_manager(h);
		for (uint32_t i = 0; i < count; i++)
			get(h, i, lock_name(i));
		/* The others wait in a chain that ends at lock0; its session waits for the first of them. */
		for (uint32_t i = 1; i < count; i++)
			acquire(h, i, lock_name(i == count - 1 ? 0 : i + 1));
		acquire(h, 0, lock_name(count > 1 ? 1 : 0));
		assert_waits(h, 0);
		finish(h);
	}
}

LOCKMGR_TEST_WITH(a_try_never_deadlocks, start_chain(2))
{
	try_acquire(h, 1, "lock0");
	assert_result(h, 1, LOCKMGR_BUSY);
}

LOCKMGR_TEST_WITH(a_holder_that_has_lost_its_lock_blocks_nobody_for_ever, start_chain(2))
{
	delete_item(h, "lock0");
	run(h, LEASE_US / 3 + SECOND);
	assert_int_equal(h->lost_count, 1);
	acquire(h, 1, "lock0");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST_WITH(adoption_finds_a_cycle_too, start_chain(4))
{
	int			deadlocks = 0;

	kill_manager(h);
	acquire(h, 3, "lock1");
	acquire(h, 7, "lock1");		/* waits for a lock of the cycle, is not in it, as session 0 */
	start_manager(h);
	settle(h);
	for (uint32_t i = 1; i < 4; i++)
		deadlocks += result_of(h, i) == LOCKMGR_DEADLOCK;
	assert_int_equal(deadlocks, 1);
	assert_waits(h, 0);
	assert_waits(h, 7);
}
