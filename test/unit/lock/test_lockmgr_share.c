/*-------------------------------------------------------------------------
 *
 * test_lockmgr_share.c
 *	  The lock manager: shared locks and semaphores.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

static void
share(harness *h, uint32_t slot, const char *name)
{
	h->ask.mode = MODE_SHARED;
	acquire(h, slot, name);
	h->ask.mode = MODE_EXCLUSIVE;
}

static void
permit(harness *h, uint32_t slot, lockmgr_kind kind, int32_t permits, int32_t limit)
{
	h->ask.mode = MODE_SEMAPHORE;
	h->ask.permits = permits;
	h->ask.limit = limit;
	ask(h, slot, kind, "s", 0);
	h->ask.mode = MODE_EXCLUSIVE;
}

static dynamo_shared *
map_of(harness *h, const char *name)
{
	return double_item_of(&h->table, name)->shared;
}

static const dynamo_entry *
our_entry(harness *h, const char *name)
{
	return double_entry(double_item_of(&h->table, name), "1");
}

/* Another cluster's gate in an item that is shared. */
static void
foreign_gate(harness *h, const char *name, const char *version, int64_t lease_ms)
{
	dynamo_shared *shared = map_of(h, name);

	shared->gate = true;
	shared->gate_lease_ms = lease_ms;
	snprintf(shared->gate_version, sizeof(shared->gate_version), "%s", version);
}

static int
writes_of(const harness *h, dynamo_shared_kind kind)
{
	int			count = 0;

	for (int i = 0; i < h->call_count; i++)
	{
		for (int w = 0; w < h->calls[i].c.count; w++)
			count += h->calls[i].writes[w].write.shared != NULL &&
				h->calls[i].writes[w].shared.kind == kind;
	}
	return count;
}

LOCKMGR_TEST(sessions_of_a_cluster_share_a_lock_without_a_request)
{
	share(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(h->table.writes, 1);
	share(h, 1, "a");
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(held_by(h, 0, "a")->token, held_by(h, 1, "a")->token);
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_int_equal(h->table.writes, 1);
	assert_false(is_free(h, "a"));
	release(h, 1, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_RELEASED);
	assert_true(is_free(h, "a"));
	assert_int_equal(h->table.writes, 2);
}

LOCKMGR_TEST(a_lock_that_another_cluster_shares_is_joined_and_left)
{
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	share(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_string_equal(our_entry(h, "a")->name, "us");
	assert_int_equal(map_of(h, "a")->count, 2);
	assert_true(held_by(h, 0, "a")->token > 5);
	release(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_int_equal(map_of(h, "a")->count, 1);
	assert_false(is_free(h, "a"));
}

/* A Java client counts the item's lease. */
LOCKMGR_TEST(a_join_raises_the_items_lease_and_never_lowers_it)
{
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	h->ask.lease_ms = 2 * LEASE_MS;
	share(h, 0, "a");
	settle(h);
	assert_int_equal(item_of(h, "a")->lease_ms, 2 * LEASE_MS);
	release(h, 0, "a");
	settle(h);
	h->ask.lease_ms = LEASE_MS / 2;
	share(h, 0, "a");
	settle(h);
	assert_int_equal(item_of(h, "a")->lease_ms, 2 * LEASE_MS);
}

LOCKMGR_TEST(who_finds_as_many_clusters_as_there_can_be_waits_for_one_to_leave)
{
	for (int i = 0; i < DYNAMO_ENTRIES_MAX; i++)
		foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	share(h, 0, "a");
	run(h, 5 * SECOND);
	assert_waits(h, 0);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_JOIN), 0);
	double_remove_entry(double_item_of(&h->table, "a"), "them7");
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

/* Also if that is what is left of ourselves. */
TEST(who_finds_as_many_clusters_as_there_can_be_takes_the_place_of_a_dead_one)
{
	for (int own = 0; own < 2; own++)
	{
		harness    *h = harness_start();

		for (int i = 0; i < DYNAMO_ENTRIES_MAX; i++)
			foreign_entry(h, "a", "v1", 1, MODE_SHARED);
		if (own)
			snprintf(map_of(h, "a")->entries[0].incarnation, DYNAMO_INCARNATION_SIZE, "1");
		share(h, 0, "a");
		run(h, DEAD_US / 2);
		for (int i = 1; i < DYNAMO_ENTRIES_MAX; i++)
			snprintf(map_of(h, "a")->entries[i].version, DYNAMO_VERSION_SIZE, "v2");
		run(h, DEAD_US / 2 - SECOND);
		assert_waits(h, 0);
		run(h, 3 * SECOND);
		assert_result(h, 0, LOCKMGR_GRANTED);
		assert_int_equal(map_of(h, "a")->count, DYNAMO_ENTRIES_MAX);
		finish(h);
	}
}

LOCKMGR_TEST(who_shares_and_who_does_not_wait_for_each_other)
{
	share(h, 0, "a");
	settle(h);
	try_acquire(h, 1, "a");
	assert_result(h, 1, LOCKMGR_BUSY);
	acquire(h, 1, "a");
	share(h, 2, "a");			/* behind who waits */
	settle(h);
	assert_waits(h, 1);
	assert_waits(h, 2);
	release(h, 0, "a");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_waits(h, 2);
	release(h, 1, "a");
	settle(h);
	assert_result(h, 2, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(who_waits_is_shown_one_who_shares_the_lock)
{
	share(h, 0, "a");
	settle(h);
	share(h, 1, "a");
	acquire(h, 2, "a");
	assert_int_equal(h->watches[h->asked[2].watch].holder.pid, pid_of(1));
	let_go(h, 1, "a");
	assert_int_equal(h->watches[h->asked[2].watch].holder.pid, pid_of(0));
	run(h, 2 * SECOND);
	assert_int_equal(sent(h, DYNAMO_READ), 0);	/* there is nothing to look for */

	/* Of other clusters, not what is left of ourselves. */
	foreign_entry(h, "b", "v1", 1, MODE_SHARED);
	snprintf(map_of(h, "b")->entries[0].incarnation, DYNAMO_INCARNATION_SIZE, "1");
	foreign_entry(h, "b", "v1", 1, MODE_SHARED);
	acquire(h, 3, "b");
	settle(h);
	assert_string_equal(h->watches[h->asked[3].watch].owner, "them/them2");
	foreign_entry(h, "d", "v1", 1, MODE_SHARED);
	snprintf(map_of(h, "d")->entries[0].incarnation, DYNAMO_INCARNATION_SIZE, "1");
	acquire(h, 5, "d");
	settle(h);
	assert_string_equal(h->watches[h->asked[5].watch].owner, "shared/opened");

	/* A long name is cut, not the incarnation. */
	memset(foreign_entry(h, "c", "v1", 1, MODE_SHARED)->name, 'x', DYNAMO_OWNER_SIZE - 1);
	snprintf(map_of(h, "c")->entries[0].incarnation, DYNAMO_INCARNATION_SIZE, "%063d", 7);
	acquire(h, 4, "c");
	settle(h);
	assert_int_equal(strspn(h->watches[h->asked[4].watch].owner, "x"),
					 DYNAMO_OWNER_SIZE - DYNAMO_INCARNATION_SIZE - 1);
	assert_string_equal(strchr(h->watches[h->asked[4].watch].owner, '/') + 1,
						map_of(h, "c")->entries[0].incarnation);
}

/* It may wait for holders of this cluster, and the last of them has gone. */
LOCKMGR_TEST(who_tries_during_the_last_renewal_gets_the_lock)
{
	share(h, 0, "a");
	settle(h);
	next_fate(h, FATE_HOLD);
	run(h, LEASE_US / 3);
	h->ask.waits_for_local_holder = true;
	try_acquire(h, 1, "a");
	let_go(h, 0, "a");
	deliver(h, last_call(h));
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(who_tries_after_the_last_one_has_let_go_gets_the_lock)
{
	share(h, 0, "a");
	settle(h);
	next_fate(h, FATE_HOLD);
	run(h, LEASE_US / 3);
	let_go(h, 0, "a");
	try_acquire(h, 1, "a");
	deliver(h, last_call(h));
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(who_tries_passes_nobody_who_waits)
{
	share(h, 0, "a");
	settle(h);
	acquire(h, 1, "a");
	h->ask.mode = MODE_SHARED;
	try_acquire(h, 2, "a");
	assert_result(h, 2, LOCKMGR_BUSY);
}

/* Only who may share it waits for the end of a renewal. */
LOCKMGR_TEST(who_tries_during_a_renewal_gets_a_lock_that_is_shared)
{
	for (uint32_t slot = 0; slot <= 1; slot++)
	{
		const char *name = slot == 0 ? "a" : "b";

		h->ask.mode = slot == 0 ? MODE_SHARED : MODE_EXCLUSIVE;
		get(h, slot, name);
		next_fate(h, FATE_HOLD);
		renew(h, slot, name, 0);
		try_acquire(h, 2, name);
		h->ask.mode = MODE_EXCLUSIVE;
		try_acquire(h, 3, name);
		assert_result(h, 3, LOCKMGR_BUSY);
		deliver(h, last_call(h));
		assert_result(h, 2, slot == 0 ? LOCKMGR_GRANTED : LOCKMGR_BUSY);
	}
}

LOCKMGR_TEST(all_who_share_a_lost_lease_lose_it)
{
	share(h, 0, "a");
	settle(h);
	share(h, 1, "a");
	delete_item(h, "a");
	double_shared(double_item_of(&h->table, "a"))->current = false;
	run(h, LEASE_US / 2);
	assert_int_equal(h->lost_count, 2);
	assert_int_equal(held_by(h, 0, "a")->loss, LOSS_DELETED);
	assert_int_equal(held_by(h, 1, "a")->loss, LOSS_DELETED);
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_LOST);
	assert_int_equal(held_by(h, 1, "a")->loss, LOSS_DELETED);
}

/* Whether a change was refused, whose late copy would have another version, or not; nor is it if it is empty. */
TEST(a_version_of_our_entry_that_we_do_not_know_is_not_adopted)
{
	for (int i = 0; i < 4; i++)
	{
		harness    *h = harness_start();
		bool		refused = i % 2 != 0;
		int			calls;

		permit(h, 0, LOCKMGR_TRY, 1, 2);
		settle(h);
		foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
		if (refused)
			permit(h, 1, LOCKMGR_TRY, 1, 2);
		settle(h);
		assert_int_equal(h->saved[lease_on(h, "s")].refused[0] != '\0', refused);
		snprintf(double_entry(double_item_of(&h->table, "s"), "1")->version,
				 DYNAMO_VERSION_SIZE, i < 2 ? "unheard-of" : "");
		calls = h->call_count;
		run(h, LEASE_US / 2);
		assert_int_equal(h->call_count, calls + 1);	/* the first renewal shows it */
		assert_int_equal(h->lost_count, 1);
		assert_int_equal(h->lost[0].loss, LOSS_TAKEN);
		finish(h);
	}
}

LOCKMGR_TEST(a_lock_is_taken_over_when_all_who_share_it_are_dead)
{
	int64_t		start = h->now;
	dynamo_entry *living;

	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	foreign_entry(h, "a", "v2", 1, MODE_SHARED);
	acquire(h, 0, "a");
	run(h, LEASE_US / 2);
	living = &map_of(h, "a")->entries[1];
	snprintf(living->version, sizeof(living->version), "v3");
	run_until(h, start + DEAD_US + SECOND);
	assert_waits(h, 0);
	run_until(h, start + LEASE_US / 2 + DEAD_US + 2 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_null(map_of(h, "a"));
}

/* One of them has renewed its entry in the last moment. */
LOCKMGR_TEST(a_take_over_of_a_lock_that_others_share_may_be_refused)
{
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	acquire(h, 0, "a");
	run(h, DEAD_US - SECOND);
	h->fate = FATE_HOLD;
	run(h, SECOND / 2);
	while (last_call(h)->c.op != DYNAMO_ACQUIRE)
	{
		deliver(h, last_call(h));
		run(h, SECOND / 2);
	}
	snprintf(map_of(h, "a")->entries[0].version, DYNAMO_VERSION_SIZE, "v2");
	snprintf(item_of(h, "a")->version, DYNAMO_VERSION_SIZE, "by v2");
	h->fate = FATE_OK;
	deliver(h, last_call(h));
	run(h, LEASE_US / 2);
	assert_waits(h, 0);
}

LOCKMGR_TEST(permits_are_within_the_limit)
{
	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	permit(h, 1, LOCKMGR_TRY, 1, 2);
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(map_of(h, "s")->total, 2);
	permit(h, 2, LOCKMGR_TRY, 1, 2);
	settle(h);
	assert_result(h, 2, LOCKMGR_BUSY);
	permit(h, 2, LOCKMGR_ACQUIRE, 1, 2);
	settle(h);
	assert_waits(h, 2);
	release(h, 0, "s");
	assert_result(h, 2, LOCKMGR_GRANTED);	/* without a request */
	assert_int_equal(map_of(h, "s")->total, 2);
	release(h, 1, "s");
	settle(h);
	assert_int_equal(map_of(h, "s")->total, 1);
	release(h, 2, "s");
	settle(h);
	assert_true(is_free(h, "s"));
}

LOCKMGR_TEST(a_permit_does_not_pass_to_a_session_with_a_lower_limit)
{
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 0, LOCKMGR_TRY, 1, 3);
	settle(h);
	permit(h, 1, LOCKMGR_TRY, 1, 3);
	settle(h);
	permit(h, 2, LOCKMGR_ACQUIRE, 1, 2);
	settle(h);
	assert_waits(h, 2);
	release(h, 0, "s");
	assert_waits(h, 2);
	run(h, 2 * SECOND);
	assert_int_equal(map_of(h, "s")->total, 2);
	assert_waits(h, 2);
	release(h, 1, "s");
	run(h, 2 * SECOND);
	assert_result(h, 2, LOCKMGR_GRANTED);
}

/* The session that asked for them has gone on to another request. */
LOCKMGR_TEST(permits_that_come_too_late_do_not_pass_to_a_lower_limit)
{
	permit(h, 0, LOCKMGR_TRY, 1, 3);
	settle(h);
	next_fate(h, FATE_HOLD);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 3);
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_CHANGE);
	cancel(h, 1);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 1);
	deliver(h, last_call(h));
	run(h, SECOND);
	assert_waits(h, 1);
	assert_int_equal(map_of(h, "s")->total, 1);
	release(h, 0, "s");
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* The copy that arrives makes the lease as old as the first one. */
LOCKMGR_TEST(permits_on_the_second_half_of_a_lease_wait_for_the_next_renewal)
{
	int64_t		start;

	lockmgr_set_timeouts(h->lm, ATTEMPT_US, LEASE_US, SECOND);
	permit(h, 0, LOCKMGR_TRY, 1, 3);
	settle(h);
	start = h->now;
	h->fate = FATE_LOST_REQUEST;
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 3);
	run_until(h, start + LEASE_US / 2 + SECOND);
	h->fate = FATE_OK;
	while (h->asked[1].owed && h->now < start + LEASE_US)
		run(h, MS);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_true(h->asked[1].answer.grant.valid_until - h->now > LEASE_US / 2);
	assert_int_equal(map_of(h, "s")->total, 2);
}

LOCKMGR_TEST(who_comes_to_a_semaphore_names_the_limit)
{
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	look_up(h, 5, "s");
	settle(h);
	next_fate(h, FATE_HOLD);
	permit(h, 0, LOCKMGR_ACQUIRE, 1, 2);
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_JOIN);
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);	/* has the last permit */
	deliver(h, last_call(h));
	run(h, SECOND);
	assert_waits(h, 0);
	assert_int_equal(map_of(h, "s")->total, 2);
}

LOCKMGR_TEST(only_the_permits_that_are_missing_are_asked_for)
{
	permit(h, 0, LOCKMGR_TRY, 1, 3);
	settle(h);
	permit(h, 1, LOCKMGR_TRY, 1, 3);
	settle(h);
	permit(h, 2, LOCKMGR_ACQUIRE, 2, 3);
	settle(h);
	assert_waits(h, 2);
	release(h, 1, "s");			/* begins a run, so its permit is kept */
	settle(h);
	assert_result(h, 2, LOCKMGR_GRANTED);
	assert_int_equal(map_of(h, "s")->total, 3);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_CHANGE), 3);	/* one more, two in vain, one more */
}

/* What we saw when the last one was refused may be over. */
LOCKMGR_TEST(who_comes_asks_for_a_permit_whatever_was_seen)
{
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	permit(h, 1, LOCKMGR_TRY, 1, 2);
	settle(h);
	assert_result(h, 1, LOCKMGR_BUSY);
	double_remove_entry(double_item_of(&h->table, "s"), "them1");
	permit(h, 1, LOCKMGR_TRY, 1, 2);
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* Each time, there is one when we look, and another cluster takes it: that is no error. */
LOCKMGR_TEST(who_comes_too_late_for_permits_goes_on_waiting)
{
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 2);
	settle(h);
	for (int i = 0; i < 12; i++)
	{
		int			changes = writes_of(h, DYNAMO_SHARED_CHANGE);

		double_remove_entry(double_item_of(&h->table, "s"), i == 0 ? "them1" : "them2");
		while (writes_of(h, DYNAMO_SHARED_CHANGE) == changes)
			run(h, MS);
		foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
		settle(h);
		assert_waits(h, 1);
	}
	double_remove_entry(double_item_of(&h->table, "s"), "them2");
	run(h, 2 * SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* The permits are refused, and nothing is renewed yet. */
LOCKMGR_TEST(who_renews_while_permits_are_asked_for_gets_a_renewal)
{
	int64_t		valid_until;

	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	valid_until = saved_of(h, 0, "s")->valid_until;
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	next_fate(h, FATE_HOLD);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 2);
	renew(h, 0, "s", LEASE_MS);
	run(h, SECOND);
	deliver(h, last_call(h));
	settle(h);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_true(h->asked[0].answer.grant.valid_until > valid_until);
}

/* One session renews with data, and the other would acquire with its own. */
LOCKMGR_TEST(a_change_of_permits_writes_the_data_of_neither)
{
	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	next_fate(h, FATE_HOLD);
	run(h, LEASE_US / 3 + SECOND);
	h->data = "of who renews";
	renew(h, 0, "s", LEASE_MS);
	h->data = "of who waits";
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 2);
	h->data = NULL;
	deliver(h, last_call(h));
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_CHANGE);
	assert_int_equal(last_call(h)->writes[0].write.data_len, 0);
	settle(h);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_lease_is_lost_in_time_however_late_the_next_look_for_permits_is)
{
	int64_t		valid_until;

	lockmgr_set_timeouts(h->lm, ATTEMPT_US, RETRY_US, 1000 * SECOND);
	permit(h, 0, LOCKMGR_TRY, 1, 1);
	settle(h);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 1);
	run(h, 40 * LEASE_US);
	h->fate = FATE_HOLD;
	valid_until = saved_of(h, 0, "s")->valid_until;
	run_until(h, valid_until);
	assert_int_equal(h->lost_count, 1);
	deliver(h, last_call(h));
}

LOCKMGR_TEST(who_waits_for_permits_behind_a_gate_asks_once)
{
	permit(h, 0, LOCKMGR_TRY, 1, 3);
	settle(h);
	foreign_gate(h, "s", "g1", LEASE_MS);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 3);
	run(h, 5 * SECOND);
	assert_waits(h, 1);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_CHANGE), 1);
}

LOCKMGR_TEST(a_session_that_comes_again_and_again_is_not_kept_back_if_nobody_waits)
{
	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	for (int i = 0; i < 10; i++)
	{
		permit(h, 1, LOCKMGR_TRY, 1, 2);
		run(h, 50 * MS);
		assert_result(h, 1, LOCKMGR_GRANTED);
		release(h, 1, "s");
		run(h, 50 * MS);
	}
}

LOCKMGR_TEST(the_only_permit_passes_without_a_request)
{
	permit(h, 0, LOCKMGR_TRY, 1, 1);
	settle(h);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 1);
	run(h, SECOND);
	assert_waits(h, 1);
	h->fate = FATE_HOLD;
	release(h, 0, "s");
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(sent(h, DYNAMO_RELEASE), 0);
	h->fate = FATE_OK;
	run(h, LEASE_US);
	assert_true(holds(h, 1, "s"));
}

LOCKMGR_TEST(who_wants_permits_changes_no_shared_lock)
{
	share(h, 0, "s");
	settle(h);
	permit(h, 1, LOCKMGR_ACQUIRE, 2, 3);
	run(h, SECOND);
	assert_waits(h, 1);
	assert_int_equal(map_of(h, "s")->total, 1);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_CHANGE), 0);
}

/* Also if the permit for the session has come. */
LOCKMGR_TEST(holds_beside_others_count_for_their_role)
{
	h->ask.role_max_leases = 1;
	share(h, 0, "a");
	settle(h);
	share(h, 1, "a");
	assert_result(h, 1, LOCKMGR_ROLE_FULL);
	let_go(h, 0, "a");
	settle(h);
	permit(h, 0, LOCKMGR_TRY, 1, 3);
	settle(h);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 3);
	settle(h);
	assert_result(h, 1, LOCKMGR_ROLE_FULL);
	run(h, SECOND);
	assert_int_equal(map_of(h, "s")->total, 1);
}

/* As a wait for another cluster's lock: about 150 reads in 20 s, then four a second. */
LOCKMGR_TEST(a_wait_for_permits_looks_less_often_as_it_lasts)
{
	uint32_t	reads;

	permit(h, 0, LOCKMGR_TRY, 1, 2);
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 2);
	settle(h);
	for (int i = 0; i < 20; i++)
	{
		/* the other cluster lives */
		snprintf(double_entry(double_item_of(&h->table, "s"), "them1")->version,
				 DYNAMO_VERSION_SIZE, "v%d", i);
		run(h, SECOND);
	}
	assert_waits(h, 1);
	reads = h->table.reads;
	assert_true(reads > 50 && reads < 250);
}

LOCKMGR_TEST(looks_for_permits_leave_time_between_them)
{
	int64_t		last = 0;
	int			looks = 0;

	permit(h, 0, LOCKMGR_TRY, 1, 2);
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 2);
	run(h, SECOND);
	for (int i = 0; i < h->call_count; i++)
	{
		if (h->calls[i].c.op != DYNAMO_READ)
			continue;
		assert_true(h->calls[i].sent - last >= 15 * MS);
		assert_false(h->calls[i].c.repeat);
		last = h->calls[i].sent;
		looks++;
	}
	assert_in_range(looks, 20, 60);

	/* ... but never more than there is between two polls. */
	lockmgr_set_timeouts(h->lm, ATTEMPT_US, RETRY_US, 100 * MS);
	run(h, 8 * SECOND);
	looks = (int) h->table.reads;
	run(h, SECOND);
	assert_true((int) h->table.reads - looks >= 9);
}

/* While the only call is taken, several come to be due, in any order, and are due again. */
LOCKMGR_TEST(a_look_for_permits_waits_for_a_free_call)
{
	h->config.max_calls = 1;
	kill_manager(h);
	start_manager(h);
	h->ask.mode = MODE_SEMAPHORE;
	h->ask.limit = 2;
	h->ask.lease_ms = 5 * LEASE_MS; /* no renewals meanwhile */
	for (uint32_t i = 0; i < 4; i++)
	{
		foreign_entry(h, lock_name(i), "v1", 1, MODE_SEMAPHORE)->lease_ms = h->ask.lease_ms;
		try_acquire(h, i, lock_name(i));
		settle(h);
		acquire(h, 10 + i, lock_name(i));
		settle(h);
	}
	for (int round = 0; round < 5; round++)
	{
		next_fate(h, FATE_HOLD);
		run(h, SECOND);
		assert_int_equal(last_call(h)->c.op, DYNAMO_READ);
		for (uint32_t i = 0; i < 4; i++)
		{
			acquire(h, 20 + i, lock_name(i));
			cancel(h, 20 + i);
		}
		run(h, SECOND);
		deliver(h, last_call(h));
		run(h, SECOND);
	}
	for (uint32_t i = 0; i < 4; i++)
		double_remove_entry(double_item_of(&h->table, lock_name(i)), "them1");
	run(h, 2 * SECOND);
	for (uint32_t i = 0; i < 4; i++)
		assert_result(h, 10 + i, LOCKMGR_GRANTED);
}

/* However rare our looks are. */
LOCKMGR_TEST(nobody_looks_for_permits_while_a_renewal_shows_them)
{
	harness_call *renewal;
	int			reads;

	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 0, LOCKMGR_ACQUIRE, 1, 2);
	settle(h);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 2);
	run(h, SECOND);
	next_fate(h, FATE_HOLD);
	renew(h, 0, "s", 0);
	renewal = last_call(h);
	assert_int_equal(renewal->c.op, DYNAMO_RENEW);
	reads = sent(h, DYNAMO_READ);
	run(h, SECOND);
	assert_int_equal(sent(h, DYNAMO_READ), reads);
	deliver(h, renewal);
	run(h, SECOND);
	assert_true(sent(h, DYNAMO_READ) > reads);
}

LOCKMGR_TEST(a_permit_is_looked_for_when_a_cluster_is_dead)
{
	int64_t		start = h->now;

	lockmgr_set_timeouts(h->lm, ATTEMPT_US, RETRY_US, 60 * SECOND);
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE)->lease_ms = 40 * LEASE_MS;
	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 2);
	run_until(h, start + 40 * DEAD_US - SECOND);
	assert_waits(h, 1);
	run(h, 2 * SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_permit_of_a_dead_cluster_is_found_while_we_have_another)
{
	int64_t		start = h->now;

	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 2);
	run_until(h, start + DEAD_US - SECOND);
	assert_waits(h, 1);
	run_until(h, start + DEAD_US + SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(map_of(h, "s")->count, 1);
	assert_int_equal(map_of(h, "s")->total, 2);
}

LOCKMGR_TEST(a_join_removes_the_dead)
{
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	foreign_entry(h, "s", "v2", 1, MODE_SEMAPHORE);
	permit(h, 0, LOCKMGR_ACQUIRE, 1, 2);
	run(h, LEASE_US / 2);
	snprintf(map_of(h, "s")->entries[1].version, DYNAMO_VERSION_SIZE, "v3");
	run(h, LEASE_US / 2);
	assert_waits(h, 0);
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(map_of(h, "s")->count, 2);
	assert_int_equal(map_of(h, "s")->total, 2);
}

LOCKMGR_TEST(who_waits_for_an_exclusive_lock_sets_a_gate_and_renews_it)
{
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	acquire(h, 0, "a");
	run(h, SECOND);
	assert_true(map_of(h, "a")->gate);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_GATE), 1);
	run(h, 10 * SECOND);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_GATE), 1);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_RENEW_GATE), 3);
	assert_int_equal(map_of(h, "a")->gate_lease_ms, 10000);
}

/* What a waiter with a long lease leaves behind does not keep others out for long. */
LOCKMGR_TEST(a_gate_is_short_and_goes_with_the_next_who_shares)
{
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	h->ask.lease_ms = 86400000;
	acquire(h, 0, "a");
	run(h, SECOND);
	cancel(h, 0);
	assert_int_equal(map_of(h, "a")->gate_lease_ms, 10000);
	kill_manager(h);
	start_manager(h);
	h->ask.lease_ms = LEASE_MS;
	share(h, 0, "a");
	run(h, SECOND);
	assert_waits(h, 0);
	run(h, 10 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_false(map_of(h, "a")->gate);
}

/* The lease keeps its length, so the margin is a part of that. */
LOCKMGR_TEST(a_session_with_a_longer_lease_shares_a_short_one)
{
	h->ask.lease_ms = 2000;
	h->ask.margin_us = 200 * MS;
	share(h, 0, "a");
	permit(h, 1, LOCKMGR_TRY, 1, 3);
	settle(h);
	h->ask.lease_ms = 20000;
	h->ask.margin_us = 2 * SECOND;
	share(h, 2, "a");
	assert_result(h, 2, LOCKMGR_GRANTED);
	permit(h, 3, LOCKMGR_ACQUIRE, 1, 3);
	settle(h);
	assert_result(h, 3, LOCKMGR_GRANTED);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_CHANGE), 1);
	run(h, 20 * SECOND);
	assert_int_equal(h->lost_count, 0);
}

LOCKMGR_TEST(the_widest_margin_of_those_who_share_counts)
{
	int64_t		valid_until;

	h->ask.margin_us = 2 * MARGIN_US;
	share(h, 0, "a");
	settle(h);
	valid_until = saved_of(h, 0, "a")->valid_until;
	h->ask.margin_us = MARGIN_US;
	share(h, 1, "a");
	assert_int_equal(h->asked[1].answer.grant.valid_until, valid_until);
	h->ask.margin_us = 4 * MARGIN_US;
	share(h, 2, "a");
	assert_int_equal(h->asked[2].answer.grant.valid_until, valid_until - 2 * MARGIN_US);
	assert_int_equal(saved_of(h, 0, "a")->valid_until, valid_until - 2 * MARGIN_US);
}

/* Each comes back, half a second after it has let go. */
LOCKMGR_TEST(a_busy_queue_gives_permits_to_others_now_and_then)
{
	int			free_samples = 0;

	for (uint32_t slot = 0; slot < 4; slot++)
	{
		permit(h, slot, slot < 2 ? LOCKMGR_TRY : LOCKMGR_ACQUIRE, 1, 2);
		settle(h);
	}
	for (uint32_t i = 0; i < 20; i++)
	{
		release(h, i % 4, "s");
		for (int sample = 0; sample < 50; sample++)
		{
			run(h, 10 * MS);
			if (sample == 25)
				permit(h, i % 4, LOCKMGR_ACQUIRE, 1, 2);
			free_samples += map_of(h, "s")->total < 2;
		}
	}
	assert_true(free_samples > 0);
}

/* Somebody took an entry off by hand, and left the total. */
LOCKMGR_TEST(who_leaves_an_item_that_is_wrong_takes_the_other_form)
{
	share(h, 0, "a");
	settle(h);
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	map_of(h, "a")->wrong = item_of(h, "a")->wrong = "wrong";
	release(h, 0, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_LAST), 1);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_LEAVE), 1);
	map_of(h, "a")->wrong = item_of(h, "a")->wrong = NULL;
}

LOCKMGR_TEST(who_waits_for_permits_of_an_item_that_is_wrong_is_told)
{
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 0, LOCKMGR_TRY, 1, 3);
	settle(h);
	map_of(h, "s")->total = 3;
	map_of(h, "s")->wrong = item_of(h, "s")->wrong = "wrong";
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 3);
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_BAD_ITEM);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_CHANGE), 1);
	map_of(h, "s")->wrong = item_of(h, "s")->wrong = NULL;
}

/* They stay in the item: who opens the shared mode only has to know them, as an acquire has. */
LOCKMGR_TEST(who_waits_for_permits_no_more_is_told_nothing)
{
	permit(h, 0, LOCKMGR_TRY, 1, 3);
	settle(h);
	map_of(h, "s")->total = 3;
	map_of(h, "s")->wrong = item_of(h, "s")->wrong = "wrong";
	next_fate(h, FATE_HOLD);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 3);
	cancel(h, 1);
	deliver(h, last_call(h));
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_CHANGE);
	assert_true(holds(h, 0, "s"));
	map_of(h, "s")->wrong = item_of(h, "s")->wrong = NULL;
}

LOCKMGR_TEST(who_waits_for_permits_of_an_item_that_is_gone_makes_another)
{
	permit(h, 0, LOCKMGR_TRY, 1, 3);
	settle(h);
	next_fate(h, FATE_HOLD);
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 3);
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_CHANGE);
	delete_item(h, "s");
	map_of(h, "s")->current = false;
	deliver(h, last_call(h));
	settle(h);
	assert_false(holds(h, 0, "s"));
	assert_true(holds(h, 1, "s"));
}

LOCKMGR_TEST(additional_attributes_are_known_before_a_lock_is_shared)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	foreign_release(h, "a");
	item_of(h, "a")->attribute_names = double_item_of(&h->table, "a")->names;
	strcpy(item_of(h, "a")->attribute_names, "[\"team\"]");
	share(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_OPEN), 2);
}

LOCKMGR_TEST(names_that_nobody_can_read_keep_out_those_who_would_share)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	foreign_release(h, "a");
	item_of(h, "a")->attribute_names = double_item_of(&h->table, "a")->names;
	strcpy(item_of(h, "a")->attribute_names, "?");
	item_of(h, "a")->bad_names = true;
	share(h, 0, "a");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_BAD_ITEM);
}

/* Whoever shared the lock has gone, and another cluster's gate is left. */
static void
leave_a_gate(harness *h, int64_t lease_ms)
{
	share(h, 0, "a");
	settle(h);
	foreign_gate(h, "a", "g1", lease_ms);
	release(h, 0, "a");
	settle(h);
}

/* An exclusive holder removes the gate; who would share cannot tell whether it lives. */
LOCKMGR_TEST(a_gate_that_nobody_can_read_keeps_only_those_out_who_would_share)
{
	leave_a_gate(h, LEASE_MS);
	map_of(h, "a")->wrong = "wrong";
	share(h, 1, "a");
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_BAD_ITEM);
	acquire(h, 2, "a");
	run(h, SECOND);
	assert_result(h, 2, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(who_wants_the_lock_alone_waits_beside_a_gate_that_nobody_can_read)
{
	foreign_entry(h, "a", "v1", LEASE_MS, MODE_SHARED);
	map_of(h, "a")->wrong = "wrong";
	acquire(h, 0, "a");
	run(h, SECOND);
	assert_waits(h, 0);
	map_of(h, "a")->wrong = NULL;
}

/* Its lease is unknown, so it looks dead to who takes that for a lease. */
LOCKMGR_TEST(a_gate_that_nobody_can_read_is_not_dead)
{
	leave_a_gate(h, 0);
	map_of(h, "a")->wrong = "wrong";
	look_up(h, 5, "a");
	settle(h);
	share(h, 1, "a");
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_BAD_ITEM);
}

LOCKMGR_TEST(a_gate_that_a_look_up_has_shown_keeps_out)
{
	leave_a_gate(h, LEASE_MS);
	look_up(h, 5, "a");
	settle(h);
	share(h, 1, "a");
	run(h, SECOND);
	assert_waits(h, 1);
}

LOCKMGR_TEST(our_own_gate_keeps_none_of_us_out)
{
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	acquire(h, 0, "a");
	run(h, SECOND);
	assert_true(map_of(h, "a")->gate);
	cancel(h, 0);
	share(h, 1, "a");
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* A client that has no shared mode leaves the gate in the item. */
LOCKMGR_TEST(what_is_left_of_shared_mode_does_not_make_a_lock_shared)
{
	leave_a_gate(h, 1000);
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	acquire(h, 1, "a");
	run(h, SECOND);
	assert_waits(h, 1);
	cancel(h, 1);
	share(h, 1, "a");
	run(h, LEASE_US / 2);
	assert_waits(h, 1);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_JOIN), 0);
	foreign_release(h, "a");
	run(h, 2 * SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(who_would_share_a_lock_that_another_client_has_waits)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	share(h, 0, "a");
	run(h, SECOND);
	assert_waits(h, 0);
	foreign_release(h, "a");
	run(h, 2 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(who_would_share_a_semaphore_waits)
{
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE)->lease_ms = 10 * LEASE_MS;
	share(h, 0, "s");
	run(h, DEAD_US + SECOND);
	h->table.reads = 0;
	run(h, 10 * SECOND);		/* the item's own lease does not hurry it */
	assert_in_range(h->table.reads, 1, 30);
	assert_waits(h, 0);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_JOIN), 0);
}

/* Only who passes an exclusive lock on needs more than one. */
LOCKMGR_TEST(who_shares_reserves_no_tokens)
{
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	share(h, 0, "a");
	share(h, 1, "a");
	run(h, SECOND);
	assert_int_equal(held_by(h, 1, "a")->token, last_call(h)->sent + h->epoch_offset);
}

/* Its copy could not be told from nobody's, had a renewal not made it void. */
LOCKMGR_TEST(a_change_is_not_sent_while_another_may_arrive)
{
	harness_call *change;

	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 1, LOCKMGR_TRY, 1, 2);
	settle(h);
	change = last_call(h);
	assert_int_equal(change->writes[0].shared.kind, DYNAMO_SHARED_CHANGE);
	permit(h, 1, LOCKMGR_TRY, 1, 2);
	settle(h);
	assert_result(h, 1, LOCKMGR_BUSY);
	double_remove_entry(double_item_of(&h->table, "s"), "them2");
	apply(h, change);
	run(h, LEASE_US / 2);
	assert_int_equal(h->lost_count, 0);
}

/* The change has arrived when the permit is given back. */
LOCKMGR_TEST(a_refused_change_that_arrived_is_released)
{
	harness_call *change;

	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 1, LOCKMGR_TRY, 1, 2);
	settle(h);
	change = last_call(h);
	double_remove_entry(double_item_of(&h->table, "s"), "them2");
	apply(h, change);
	release(h, 0, "s");
	run(h, SECOND);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_true(is_free(h, "s"));
}

TEST(a_version_of_our_entry_that_we_do_not_know_is_not_released)
{
	for (int stray = 0; stray < 2; stray++)
	{
		harness    *h = harness_start();

		share(h, 0, "a");
		settle(h);
		foreign_entry(h, "a", "v1", 1, MODE_SHARED);
		if (stray)
		{
			h->fate = FATE_LOST_REQUEST;
			run(h, LEASE_US / 2);
		}
		let_go(h, 0, "a");
		snprintf(double_entry(double_item_of(&h->table, "a"), "1")->version,
				 DYNAMO_VERSION_SIZE, "unheard-of");
		run(h, LEASE_US);
		h->fate = FATE_OK;
		run(h, 2 * SECOND);
		assert_non_null(our_entry(h, "a"));
		finish(h);
	}
}

/* They are not twice as many, though its entry is dead and replaced. */
LOCKMGR_TEST(our_own_dead_permits_count_once)
{
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	snprintf(map_of(h, "s")->entries[0].incarnation, DYNAMO_INCARNATION_SIZE, "1");
	foreign_entry(h, "s", "v2", 2, MODE_SEMAPHORE)->lease_ms = 10 * LEASE_MS;
	permit(h, 0, LOCKMGR_ACQUIRE, 2, 3);
	run(h, DEAD_US + 10 * SECOND);
	assert_waits(h, 0);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_REPLACE), 0);
}

/* Neither the item's own lease nor a dead cluster hurries who waits for a living one. */
LOCKMGR_TEST(who_waits_for_a_cluster_that_lives_does_not_hurry)
{
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	foreign_entry(h, "a", "v2", 1, MODE_SHARED)->lease_ms = 10 * LEASE_MS;
	acquire(h, 0, "a");
	run(h, DEAD_US + SECOND);
	h->table.reads = 0;
	run(h, 10 * SECOND);
	assert_waits(h, 0);
	assert_in_range(h->table.reads, 1, 30);
}

LOCKMGR_TEST(a_gate_keeps_out_who_comes_later_until_it_is_dead)
{
	share(h, 0, "a");
	settle(h);
	foreign_gate(h, "a", "g", LEASE_MS);
	run(h, LEASE_US / 2);		/* a renewal shows it */
	share(h, 1, "a");
	run(h, SECOND);
	assert_waits(h, 1);
	release(h, 0, "a");
	settle(h);
	assert_true(is_free(h, "a"));
	run(h, LEASE_US / 4);
	assert_waits(h, 1);
	run(h, LEASE_US);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* However rare our polls are. */
LOCKMGR_TEST(who_waits_behind_a_gate_looks_when_it_is_dead)
{
	lockmgr_set_timeouts(h->lm, ATTEMPT_US, RETRY_US, 60 * SECOND);
	share(h, 0, "a");
	settle(h);
	foreign_gate(h, "a", "g", 40 * LEASE_MS);
	release(h, 0, "a");
	settle(h);
	share(h, 1, "a");
	run(h, 40 * DEAD_US - SECOND);
	assert_waits(h, 1);
	run(h, 2 * SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

/* We renew our entry less often than a waiter with a short lease renews its gate. */
LOCKMGR_TEST(a_gate_is_not_dead_because_we_have_not_looked)
{
	share(h, 0, "a");
	settle(h);
	foreign_gate(h, "a", "g1", 2000);
	run(h, LEASE_US / 3 + SECOND);	/* a renewal shows it */
	foreign_gate(h, "a", "g2", 2000);
	run(h, 3 * SECOND);
	share(h, 1, "a");
	settle(h);
	assert_waits(h, 1);
	run(h, 3 * SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(our_gate_is_renewed_in_time_however_rare_our_polls_are)
{
	char		version[16];

	lockmgr_set_timeouts(h->lm, ATTEMPT_US, RETRY_US, 60 * SECOND);
	h->ask.lease_ms = 3000;
	foreign_entry(h, "a", "v0", 1, MODE_SHARED);
	acquire(h, 0, "a");
	for (int i = 1; i <= 20; i++)
	{
		run(h, 10 * SECOND);
		snprintf(version, sizeof(version), "v%d", i);
		memcpy(map_of(h, "a")->entries[0].version, version, sizeof(version));
	}
	assert_waits(h, 0);
	assert_true(writes_of(h, DYNAMO_SHARED_RENEW_GATE) > 190);
}

/* The next waiter goes on with the gate, which keeps the lease that it was set with. */
LOCKMGR_TEST(our_gate_is_renewed_as_its_own_lease_demands)
{
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	h->ask.lease_ms = 3000;
	acquire(h, 0, "a");
	run(h, SECOND / 2);
	h->ask.lease_ms = LEASE_MS;
	acquire(h, 1, "a");
	cancel(h, 0);
	run(h, 5 * SECOND);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_GATE), 1);
	assert_true(writes_of(h, DYNAMO_SHARED_RENEW_GATE) >= 4);
}

/* Otherwise the waiter takes its own gate for another's, and does not renew it. */
LOCKMGR_TEST(our_gate_is_renewed_in_time_after_a_lost_request_or_reply)
{
	char		last[DYNAMO_VERSION_SIZE] = "";
	int			longest = 0;
	int			unchanged = 0;

	lockmgr_set_timeouts(h->lm, ATTEMPT_US, RETRY_US, 60 * SECOND);
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	h->ask.lease_ms = 2000;
	acquire(h, 0, "a");
	run(h, SECOND);
	for (int i = 0; i < 7000; i++)
	{
		if (i == 3000 || i == 5000)
			next_fate(h, i == 3000 ? FATE_LOST_REQUEST : FATE_LOST_REPLY);
		run(h, 10 * MS);
		/* the holder lives */
		snprintf(map_of(h, "a")->entries[0].version, DYNAMO_VERSION_SIZE, "v%d", i / 200);
		unchanged = strcmp(last, map_of(h, "a")->gate_version) == 0 ? unchanged + 1 : 0;
		if (unchanged > longest)
			longest = unchanged;
		snprintf(last, sizeof(last), "%s", map_of(h, "a")->gate_version);
	}
	assert_true(longest * 10 < 2000);
}

LOCKMGR_TEST(unknown_outcomes_of_shared_writes_are_found_out)
{
	next_fate(h, FATE_LOST_REPLY);
	share(h, 0, "a");
	run(h, 3 * SECOND);
	assert_result(h, 0, LOCKMGR_GRANTED);
	permit(h, 1, LOCKMGR_TRY, 1, 3);
	settle(h);
	next_fate(h, FATE_LOST_REPLY);
	permit(h, 2, LOCKMGR_ACQUIRE, 1, 3);
	run(h, 3 * SECOND);
	assert_result(h, 2, LOCKMGR_GRANTED);
	assert_int_equal(map_of(h, "s")->total, 2);
	release(h, 1, "s");
	settle(h);
	next_fate(h, FATE_LOST_REPLY);
	release(h, 2, "s");
	run(h, 3 * SECOND);
	assert_result(h, 2, LOCKMGR_RELEASED);
	assert_true(is_free(h, "s"));
}

LOCKMGR_TEST(who_takes_himself_for_the_last_one_leaves_all_the_same)
{
	share(h, 0, "a");
	settle(h);
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	next_fate(h, FATE_HOLD);
	release(h, 0, "a");
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_LAST);
	deliver(h, last_call(h));
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_LEAVE);	/* at once */
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_int_equal(map_of(h, "a")->count, 1);

	/* ... and the other way round. */
	share(h, 0, "a");
	settle(h);
	double_remove_entry(double_item_of(&h->table, "a"), "them2");
	next_fate(h, FATE_HOLD);
	release(h, 0, "a");
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_LEAVE);
	deliver(h, last_call(h));
	assert_int_equal(last_call(h)->writes[0].shared.kind, DYNAMO_SHARED_LAST);
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_true(is_free(h, "a"));
	assert_int_equal(writes_of(h, DYNAMO_SHARED_LAST), 2);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_LEAVE), 2);
}

/* Only the reply to its renewal was lost.  Others may have come since we saw the item. */
TEST(an_unsettled_renewal_of_a_shared_lock_is_released)
{
	for (int i = 0; i < 16; i++)
	{
		harness    *h = harness_start();
		int			others = i % 2;
		int			lasts;

		h->random = (uint64_t) i;	/* which of the two versions sorts first */
		share(h, 0, "a");
		settle(h);
		next_fate(h, FATE_LOST_REPLY);
		h->fate = FATE_LOST_REQUEST;
		run(h, LEASE_US / 2);
		let_go(h, 0, "a");
		if (others > 0)
			foreign_entry(h, "a", "v1", 1, MODE_SHARED);
		run(h, LEASE_US);
		lasts = writes_of(h, DYNAMO_SHARED_LAST);
		h->fate = FATE_OK;
		run(h, 2 * SECOND);
		assert_null(our_entry(h, "a"));
		assert_int_equal(is_free(h, "a"), others == 0);
		assert_int_equal(writes_of(h, DYNAMO_SHARED_LAST), lasts + (others == 0 ? 2 : 1));
		assert_int_equal(writes_of(h, DYNAMO_SHARED_LEAVE), others);
		finish(h);
	}
}

LOCKMGR_TEST(a_shared_lock_that_is_gone_is_released)
{
	share(h, 0, "a");
	settle(h);
	foreign_entry(h, "a", "v1", 1, MODE_SHARED);
	double_remove_entry(double_item_of(&h->table, "a"), "1");
	release(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_int_equal(map_of(h, "a")->count, 1);
}

/* The harness applies the refused change once more. */
LOCKMGR_TEST(a_refused_change_that_arrives_late_is_gone_on_from)
{
	harness_call *change;

	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 1, LOCKMGR_TRY, 1, 2);
	settle(h);
	assert_result(h, 1, LOCKMGR_BUSY);
	change = last_call(h);
	assert_int_equal(change->writes[0].shared.kind, DYNAMO_SHARED_CHANGE);
	double_remove_entry(double_item_of(&h->table, "s"), "them2");
	apply(h, change);
	assert_int_equal(map_of(h, "s")->total, 2);
	run(h, LEASE_US / 2);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_RENEW), 1);
	assert_true(holds(h, 0, "s"));
	assert_int_equal(map_of(h, "s")->total, 1);
	assert_int_equal(h->lost_count, 0);
}

/* A change is refused, and may still arrive; the release that follows does not.  Its number is returned. */
static int
refuse_a_change_and_lose_the_release(harness *h)
{
	int			change;

	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 1, LOCKMGR_TRY, 1, 2);
	settle(h);
	assert_result(h, 1, LOCKMGR_BUSY);
	change = h->call_count - 1;
	double_remove_entry(double_item_of(&h->table, "s"), "them2");
	h->fate = FATE_LOST_REQUEST;
	release(h, 0, "s");
	return change;
}

/* Nobody here has the permits any more. */
LOCKMGR_TEST(a_refused_change_that_arrives_after_its_lease_keeps_nobody_out)
{
	int			change = refuse_a_change_and_lose_the_release(h);

	run(h, DEAD_US);
	h->fate = FATE_OK;
	apply(h, &h->calls[change]);
	assert_int_equal(map_of(h, "s")->total, 2);
	permit(h, 1, LOCKMGR_ACQUIRE, 2, 2);
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(map_of(h, "s")->total, 2);
}

/* The change has arrived when the release is given up: any of our versions may be there. */
LOCKMGR_TEST(a_refused_change_is_retired_with_a_release_that_is_given_up)
{
	int			change = refuse_a_change_and_lose_the_release(h);

	run(h, SECOND);
	apply(h, &h->calls[change]);
	run(h, LEASE_US + LATE_US + 4 * SECOND);
	h->fate = FATE_OK;
	permit(h, 1, LOCKMGR_ACQUIRE, 2, 2);
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_int_equal(map_of(h, "s")->total, 2);
}

/* It was asked for under a higher limit. */
LOCKMGR_TEST(what_arrives_late_does_not_pass_to_a_lower_limit)
{
	harness_call *change;

	foreign_entry(h, "s", "v1", 1, MODE_SEMAPHORE);
	permit(h, 0, LOCKMGR_TRY, 1, 3);
	settle(h);
	permit(h, 3, LOCKMGR_TRY, 1, 3);
	settle(h);
	foreign_entry(h, "s", "v2", 2, MODE_SEMAPHORE);
	permit(h, 1, LOCKMGR_TRY, 1, 5);
	settle(h);
	assert_result(h, 1, LOCKMGR_BUSY);
	change = last_call(h);
	while (change->writes[0].shared.kind != DYNAMO_SHARED_CHANGE)
		change--;
	double_remove_entry(double_item_of(&h->table, "s"), "them1");
	apply(h, change);
	assert_int_equal(map_of(h, "s")->total, 5);
	permit(h, 2, LOCKMGR_ACQUIRE, 2, 3);
	release(h, 3, "s");			/* begins a run */
	run(h, SECOND);
	assert_waits(h, 2);
	assert_int_equal(map_of(h, "s")->total, 3);
}

LOCKMGR_TEST(a_new_manager_goes_on_with_all_holds)
{
	share(h, 0, "a");
	settle(h);
	share(h, 1, "a");
	kill_manager(h);
	run(h, SECOND);
	start_manager(h);
	run(h, LEASE_US);
	assert_true(holds(h, 1, "a"));	/* whose the lease is, for people */
	assert_int_equal(held_by(h, 0, "a")->loss, LOSS_NONE);
	release(h, 0, "a");
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_int_equal(held_by(h, 1, "a")->loss, LOSS_NONE);
	assert_false(is_free(h, "a"));
}

/* It does not know the dead entry's permits, which the saved write must tell. */
LOCKMGR_TEST(a_new_manager_repeats_a_replacement)
{
	int32_t		total = 0;

	foreign_entry(h, "s", "v1", 2, MODE_SEMAPHORE);
	snprintf(map_of(h, "s")->entries[0].incarnation, DYNAMO_INCARNATION_SIZE, "1");
	foreign_entry(h, "s", "v2", 1, MODE_SEMAPHORE);
	permit(h, 0, LOCKMGR_ACQUIRE, 1, 3);
	run(h, LEASE_US / 2);
	snprintf(map_of(h, "s")->entries[1].version, DYNAMO_VERSION_SIZE, "v3");
	h->fate = FATE_HOLD;
	run(h, LEASE_US / 2 + SECOND);
	while (last_call(h)->c.op == DYNAMO_READ)
	{
		deliver(h, last_call(h));
		run(h, SECOND);
	}
	assert_int_equal(writes_of(h, DYNAMO_SHARED_REPLACE), 1);
	assert_int_equal(last_call(h)->writes[0].shared.entry.admission.freed, 2);
	kill_manager(h);
	h->fate = FATE_OK;
	start_manager(h);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	for (int i = 0; i < map_of(h, "s")->count; i++)
		total += map_of(h, "s")->entries[i].permits;
	assert_int_equal(map_of(h, "s")->total, 2);
	assert_int_equal(total, 2);
	assert_non_null(our_entry(h, "s"));
	assert_int_equal(writes_of(h, DYNAMO_SHARED_JOIN), 0);	/* the repetition was applied */
}

LOCKMGR_TEST(a_session_goes_first_if_a_deadlock_would_close_otherwise)
{
	share(h, 0, "l");
	settle(h);
	get(h, 2, "m");
	acquire(h, 1, "l");			/* waits for 0 */
	share(h, 2, "l");			/* in line behind 1 */
	settle(h);
	assert_waits(h, 1);
	assert_waits(h, 2);
	acquire(h, 0, "m");			/* waits for 2, which would wait for 0 */
	settle(h);
	assert_waits(h, 0);
	assert_result(h, 2, LOCKMGR_GRANTED);
	release(h, 2, "m");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

/* Session 1 wants to have m alone, or to share what 2 has alone: it cannot go first. */
TEST(of_a_deadlock_goes_first_who_waits_in_line)
{
	for (int alone = 0; alone < 2; alone++)
	{
		harness    *h = harness_start();

		share(h, 1, "l");
		h->ask.mode = alone ? MODE_SHARED : MODE_EXCLUSIVE;
		acquire(h, 2, "m");
		settle(h);
		h->ask.mode = alone ? MODE_EXCLUSIVE : MODE_SHARED;
		acquire(h, 1, "m");
		h->ask.mode = MODE_EXCLUSIVE;
		acquire(h, 3, "l");
		share(h, 2, "l");
		assert_result(h, 2, LOCKMGR_GRANTED);
		assert_waits(h, 1);
		finish(h);
	}
}

LOCKMGR_TEST(a_session_goes_first_if_it_must)
{
	share(h, 0, "l");
	settle(h);
	acquire(h, 1, "l");
	share(h, 2, "l");
	settle(h);
	assert_waits(h, 2);
	cancel(h, 2);
	h->ask.goes_first = true;
	share(h, 2, "l");
	settle(h);
	assert_result(h, 2, LOCKMGR_GRANTED);
	share(h, 3, "l");
	h->ask.goes_first = false;
	share(h, 4, "l");
	assert_result(h, 3, LOCKMGR_GRANTED);
	assert_waits(h, 1);
	assert_waits(h, 4);
}

/* Then nobody is before it. */
LOCKMGR_TEST(who_must_go_first_acquires_a_free_lock)
{
	h->ask.goes_first = true;
	share(h, 0, "l");
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(nobody_goes_first_while_a_renewal_is_under_way)
{
	harness_call *renewal;

	share(h, 0, "l");
	settle(h);
	next_fate(h, FATE_HOLD);
	run(h, LEASE_US / 3);
	renewal = last_call(h);
	assert_int_equal(renewal->c.op, DYNAMO_RENEW);
	h->ask.goes_first = true;
	share(h, 1, "l");
	assert_waits(h, 1);
	deliver(h, renewal);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(nobody_goes_first_past_the_limit)
{
	permit(h, 0, LOCKMGR_TRY, 1, 1);
	settle(h);
	h->ask.goes_first = true;
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 1);
	run(h, SECOND);
	assert_waits(h, 1);
	assert_int_equal(map_of(h, "s")->total, 1);
}

/* If it cannot go first, it is one who waits. */
LOCKMGR_TEST(nobody_goes_first_past_its_role_s_limit)
{
	share(h, 0, "a");
	settle(h);
	acquire(h, 2, "a");
	h->ask.role = 7;
	h->ask.role_max_leases = 1;
	get(h, 1, "b");
	h->ask.goes_first = true;
	share(h, 1, "a");
	assert_waits(h, 1);
}

LOCKMGR_TEST(who_wants_a_shared_lock_alone_does_not_go_first)
{
	share(h, 0, "a");
	settle(h);
	h->ask.goes_first = true;
	acquire(h, 1, "a");
	assert_waits(h, 1);
	let_go(h, 0, "a");
	run(h, SECOND);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(who_waits_for_all_asks_for_no_permits)
{
	permit(h, 0, LOCKMGR_TRY, 1, 2);
	settle(h);
	acquire(h, 1, "s");
	run(h, SECOND);
	assert_waits(h, 1);
	assert_int_equal(writes_of(h, DYNAMO_SHARED_CHANGE), 0);
}

/* It needs no room beside a hold that has ended. */
LOCKMGR_TEST_WITH(a_permit_passes_on_without_room, harness_start_with(1))
{
	uint32_t	first;

	permit(h, 0, LOCKMGR_TRY, 1, 1);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	first = hold_of(h, 0, "s");
	permit(h, 0, LOCKMGR_ACQUIRE, 1, 1);
	assert_waits(h, 0);
	lockmgr_let_go(h->lm, h->now, session_of(h, 0), first);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
}

/* It would have lost the lease at once. */
LOCKMGR_TEST(who_wants_a_wide_margin_shares_a_renewed_lease_only)
{
	share(h, 0, "a");
	settle(h);
	run(h, 6300 * MS);
	h->ask.margin_us = 14 * SECOND;
	share(h, 1, "a");
	assert_waits(h, 1);
	cancel(h, 1);
}

LOCKMGR_TEST(nobody_goes_first_past_an_exclusive_lock)
{
	get(h, 0, "l");
	acquire(h, 1, "l");
	h->ask.goes_first = true;
	share(h, 2, "l");
	acquire(h, 3, "l");
	h->ask.goes_first = false;
	settle(h);
	assert_waits(h, 2);
	assert_waits(h, 3);
	release(h, 0, "l");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
	assert_waits(h, 2);
}

LOCKMGR_TEST(who_waits_for_permits_behind_an_exclusive_lock_can_be_in_a_deadlock)
{
	get(h, 0, "s");
	get(h, 1, "m");
	acquire(h, 0, "m");
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 3);
	settle(h);
	assert_result(h, 1, LOCKMGR_DEADLOCK);
}

/* Anybody may give one back: session 2 does. */
LOCKMGR_TEST(who_waits_for_permits_that_others_have_is_in_no_deadlock)
{
	permit(h, 0, LOCKMGR_ACQUIRE, 1, 2);
	settle(h);
	permit(h, 2, LOCKMGR_ACQUIRE, 1, 2);
	get(h, 1, "m");
	acquire(h, 0, "m");
	permit(h, 1, LOCKMGR_ACQUIRE, 1, 2);
	settle(h);
	assert_waits(h, 1);
	let_go(h, 2, "s");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}

LOCKMGR_TEST(a_cycle_through_one_of_several_holders_is_a_deadlock)
{
	share(h, 0, "l");
	settle(h);
	share(h, 1, "l");
	get(h, 2, "m");
	acquire(h, 1, "m");
	settle(h);
	acquire(h, 2, "l");
	assert_result(h, 2, LOCKMGR_DEADLOCK);
}

/* Each hold on a lease but the first takes the room of a lease. */
LOCKMGR_TEST_WITH(holds_have_a_bound, (
{
	harness    *h = harness_new(3);

	start_manager(h);
	h;
}))
{
	share(h, 0, "a");
	settle(h);
	share(h, 1, "a");
	get(h, 2, "b");
	release(h, 2, "b");
	settle(h);
	share(h, 2, "a");
	assert_result(h, 2, LOCKMGR_GRANTED);
	let_go(h, 1, "a");
	acquire(h, 1, "b");
	settle(h);
	assert_result(h, 1, LOCKMGR_GRANTED);
}


LOCKMGR_TEST_WITH(a_hold_takes_the_room_of_a_lost_lease, harness_new(3))
{
	start_manager(h);
	get(h, 2, "b");
	delete_item(h, "b");
	run(h, LEASE_US / 2);
	assert_int_equal(h->lost_count, 1);
	for (uint32_t slot = 0; slot < 3; slot++)
	{
		share(h, slot, "a");
		settle(h);
		assert_result(h, slot, LOCKMGR_GRANTED);
	}
}

LOCKMGR_TEST_WITH(nobody_shares_a_lock_without_room_for_a_hold, harness_new(2))
{
	start_manager(h);
	get(h, 0, "b");
	share(h, 0, "a");
	settle(h);
	share(h, 1, "a");
	assert_result(h, 1, LOCKMGR_NO_ROOM);
	h->ask.goes_first = true;
	share(h, 1, "a");
	assert_result(h, 1, LOCKMGR_NO_ROOM);
}
