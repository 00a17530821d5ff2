/*-------------------------------------------------------------------------
 *
 * test_lockmgr_refusal.c
 *	  Refusals that do not show the item, as dynalite's, and refusals that the item does
 *	  not explain.
 *
 *-------------------------------------------------------------------------
 */
#include "base/backoff.h"
#include "lockmgr_harness.h"
#include "lockmgr_scenarios.h"

static harness *
start_silent(void)
{
	harness    *h = harness_start();

	h->table.silent = true;
	return h;
}

static void
share(harness *h, uint32_t slot, lock_mode mode, lockmgr_kind kind, int32_t permits, int32_t limit)
{
	h->ask.mode = mode;
	h->ask.permits = permits;
	h->ask.limit = limit;
	ask(h, slot, kind, "s", 0);
	h->ask.mode = MODE_EXCLUSIVE;
}

/* The reply to a renewal was lost, which DynamoDB has applied. */
LOCKMGR_TEST_WITH(a_renewal_that_stands_is_read, start_silent())
{
	get(h, 0, "a");
	run(h, SECOND);
	next_fate(h, FATE_LOST_REPLY);
	renew(h, 0, "a", 0);
	run(h, LEASE_US / 4);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_int_equal(sent(h, DYNAMO_READ), 1);
	assert_false(last_call(h)->writes[0].write.maybe_stale);
	assert_false(last_call(h)->c.repeat);
	assert_int_equal(h->lost_count, 0);
	assert_true(holds(h, 0, "a"));
	assert_string_equal(saved_of(h, 0, "a")->version, item_of(h, "a")->version);
}

TEST(a_loss_is_told_by_what_was_read)
{
	for (int deleted = 0; deleted < 2; deleted++)
	{
		harness    *h = start_silent();

		get(h, 0, "a");
		if (deleted)
			delete_item(h, "a");
		else
			foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
		run(h, LEASE_US / 2);
		assert_int_equal(h->lost_count, 1);
		assert_int_equal(h->lost[0].loss, deleted ? LOSS_DELETED : LOSS_TAKEN);
		assert_int_equal(sent(h, DYNAMO_READ), 1);
		finish(h);
	}
}

/* The read fails as long as nothing works: the lease is lost at its deadline, not before. */
LOCKMGR_TEST_WITH(a_read_that_fails_is_no_loss, start_silent())
{
	int64_t		deadline = get(h, 0, "a")->valid_until;

	foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
	run(h, LEASE_US / 4);
	next_fate(h, FATE_OK);
	h->fate = FATE_LOST_REQUEST;
	run_until(h, deadline - 1);
	assert_int_equal(h->lost_count, 0);
	run(h, 1);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_UNREACHABLE);
}

LOCKMGR_TEST_WITH(who_is_gone_meanwhile_still_has_his_lock_released, start_silent())
{
	get(h, 0, "a");
	run(h, SECOND);
	next_fate(h, FATE_LOST_REPLY);
	renew(h, 0, "a", 0);
	run(h, SECOND);
	release(h, 0, "a");
	settle(h);
	run(h, LEASE_US / 2);
	assert_true(is_free(h, "a"));
}

/* Who leaves takes himself for the last one, because the other one has come later. */
LOCKMGR_TEST_WITH(a_release_takes_the_other_form_after_a_read, start_silent())
{
	share(h, 0, MODE_SHARED, LOCKMGR_ACQUIRE, 1, 1);
	settle(h);
	foreign_entry(h, "s", "e1", 1, MODE_SHARED);
	release(h, 0, "s");
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_int_equal(h->calls[2].c.op, DYNAMO_READ);
	assert_false(h->calls[2].c.repeat);
	assert_null(double_entry(double_item_of(&h->table, "s"), "1"));
	assert_int_equal(sent(h, DYNAMO_RELEASE), 2);
	assert_int_equal(sent(h, DYNAMO_READ), 1);
}

LOCKMGR_TEST_WITH(a_refused_gate_is_a_read, start_silent())
{
	share(h, 1, MODE_SHARED, LOCKMGR_ACQUIRE, 1, 1);
	settle(h);
	foreign_entry(h, "s", "e1", 1, MODE_SHARED);
	release(h, 1, "s");
	settle(h);
	acquire(h, 0, "s");
	run(h, SECOND);
	assert_waits(h, 0);
	assert_true(double_item_of(&h->table, "s")->shared->gate);
}

LOCKMGR_TEST_WITH(only_who_must_find_an_item_hears_that_there_is_none, start_silent())
{
	h->ask.must_exist = true;
	foreign_hold(h, "a", "v1", LEASE_MS, 5);
	try_acquire(h, 0, "a");
	try_acquire(h, 1, "b");
	settle(h);
	assert_result(h, 0, LOCKMGR_BUSY);
	assert_result(h, 1, LOCKMGR_MISSING);
}

/* ---- impossible refusals ---- */

LOCKMGR_TEST(a_renewal_refused_for_nothing_is_repeated_until_the_deadline)
{
	int64_t		deadline = get(h, 0, "a")->valid_until;

	h->table.refuses_others = true;
	run_until(h, deadline - 1);
	assert_int_equal(h->lost_count, 0);
	assert_in_range(sent(h, DYNAMO_RENEW), 10, 80);
	run(h, 1);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_UNREACHABLE);
	h->table.refuses_others = false;
}

TEST(a_release_refused_for_nothing_is_repeated_until_no_copy_can_arrive)
{
	for (int mode = MODE_EXCLUSIVE; mode <= MODE_SHARED; mode++)
	{
		harness    *h = harness_start();
		int			releases;

		share(h, 0, (lock_mode) mode, LOCKMGR_ACQUIRE, 1, 1);
		settle(h);
		h->table.refuses_others = true;
		release(h, 0, "s");
		run(h, LEASE_US);
		assert_failed(h, 0, DYNAMO_CONFLICT);
		assert_string_equal(h->asked[0].message,
							"the write was refused, but the item is as the write expects");
		assert_in_range(sent(h, DYNAMO_RELEASE), 5, 70);
		run(h, LEASE_US + 16 * 60 * SECOND);
		releases = sent(h, DYNAMO_RELEASE);
		run(h, LEASE_US);
		assert_int_equal(sent(h, DYNAMO_RELEASE), releases);

		/* The lock is usable again. */
		h->table.refuses_others = false;
		run(h, LEASE_US);
		share(h, 0, (lock_mode) mode, LOCKMGR_ACQUIRE, 1, 1);
		run(h, 2 * LEASE_US);
		assert_result(h, 0, LOCKMGR_GRANTED);
		finish(h);
	}
}

LOCKMGR_TEST(permits_refused_for_nothing_are_an_error)
{
	share(h, 0, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 9);
	settle(h);
	h->table.refuses_changes = true;
	share(h, 1, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 9);
	run(h, 9 * BACKOFF_CAP_US / 64);	/* with pauses */
	assert_waits(h, 1);
	run(h, LEASE_US / 2);
	assert_failed(h, 1, DYNAMO_MALFORMED);
	assert_in_range(sent(h, DYNAMO_RENEW), 5, 60);
}

LOCKMGR_TEST(permits_that_cannot_be_given_back_are_no_longer_ours_at_the_deadline)
{
	share(h, 0, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 9);
	settle(h);
	share(h, 1, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 9);
	settle(h);
	h->table.refuses_changes = true;
	let_go(h, 1, "s");
	run(h, LEASE_US);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_UNREACHABLE);
	assert_in_range(sent(h, DYNAMO_RENEW), 10, 80);
}

/* A read is no statement of a batch. */
LOCKMGR_TEST_WITH(no_renewal_goes_with_the_read, start_silent())
{
	harness_call *renewal;

	believe_batches(h);
	get(h, 0, "a");
	run(h, LEASE_US / 12 + SECOND / 2);
	get(h, 1, "b");
	foreign_hold(h, "a", "v1", LEASE_MS, item_of(h, "a")->token + 1);
	next_fate(h, FATE_HOLD);
	run(h, LEASE_US / 4);
	renewal = last_call(h);
	assert_int_equal(renewal->c.op, DYNAMO_RENEW);
	run(h, SECOND);
	assert_ptr_equal(last_call(h), renewal);
	deliver(h, renewal);
	assert_int_equal(last_call(h)->c.op, DYNAMO_READ);
	settle(h);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_TAKEN);
	assert_true(holds(h, 1, "b"));
}

/* Then the item is not as the renewal expects. */
LOCKMGR_TEST(another_owner_with_our_version_is_a_loss)
{
	get(h, 0, "a");
	snprintf(item_of(h, "a")->owner, DYNAMO_OWNER_SIZE, "them/1");
	run(h, LEASE_US / 2);
	assert_int_equal(h->lost_count, 1);
	assert_int_equal(h->lost[0].loss, LOSS_TAKEN);
}

/* ---- each part of each condition ----
 *
 * Somebody else's write comes just before ours, and again just before what follows.  A refusal
 * that the item explains is an answer, not trouble, whichever part of the condition was false.
 */

static void
get_shared(harness *h, lock_mode mode, bool beside)
{
	share(h, 0, mode, LOCKMGR_ACQUIRE, 1, 9);
	settle(h);
	assert_result(h, 0, LOCKMGR_GRANTED);
	if (!beside)
		return;
	foreign_entry(h, "s", "e1", 1, mode);
	renew(h, 0, "s", 0);		/* we see it */
	settle(h);
}

static void
write_acquire(harness *h)
{
	acquire(h, 0, "s");
}

static void
write_take_over(harness *h)
{
	foreign_hold(h, "s", "v1", 2000, 5);
	acquire(h, 0, "s");
	run(h, SECOND);
	h->fate = FATE_HOLD;
	while (sent(h, DYNAMO_ACQUIRE) < 2)
	{
		if (!last_call(h)->answered)
			deliver(h, last_call(h));
		run(h, 20 * MS);
	}
}

static void
write_renewal(harness *h)
{
	get(h, 0, "s");
	h->fate = FATE_HOLD;
	renew(h, 0, "s", 0);
}

static void
write_hand_over(harness *h)
{
	get(h, 0, "s");
	h->ask.lease_ms = 2 * LEASE_MS;
	acquire(h, 1, "s");
	h->ask.lease_ms = LEASE_MS;
	h->fate = FATE_HOLD;
	release(h, 0, "s");
}

static void
write_release(harness *h)
{
	get(h, 0, "s");
	h->fate = FATE_HOLD;
	release(h, 0, "s");
}

static void
write_opening(harness *h)
{
	share(h, 0, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 1);
}

static void
write_join(harness *h)
{
	foreign_entry(h, "s", "e1", 1, MODE_SEMAPHORE);
	look_up(h, 1, "s");
	settle(h);
	h->fate = FATE_HOLD;
	share(h, 0, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 2);
}

static void
write_shared_renewal(harness *h)
{
	get_shared(h, MODE_SEMAPHORE, false);
	h->fate = FATE_HOLD;
	renew(h, 0, "s", 0);
}

static void
write_more(harness *h)
{
	get_shared(h, MODE_SEMAPHORE, true);
	h->fate = FATE_HOLD;
	share(h, 1, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 3);
}

static void
write_fewer(harness *h)
{
	get_shared(h, MODE_SEMAPHORE, true);
	share(h, 1, MODE_SEMAPHORE, LOCKMGR_ACQUIRE, 1, 9);
	settle(h);
	h->fate = FATE_HOLD;
	let_go(h, 1, "s");
}

static void
write_leave(harness *h)
{
	get_shared(h, MODE_SHARED, true);
	h->fate = FATE_HOLD;
	release(h, 0, "s");
}

static void
write_last(harness *h)
{
	get_shared(h, MODE_SHARED, false);
	h->fate = FATE_HOLD;
	release(h, 0, "s");
}

static void
write_gate(harness *h)
{
	foreign_entry(h, "s", "e1", 1, MODE_SHARED);
	acquire(h, 0, "s");
	run(h, 10 * MS);
	h->fate = FATE_HOLD;
	run(h, SECOND);
}

static void
spoil_nothing(harness *h)
{
	(void) h;
}

static void
spoil_owner(harness *h)
{
	snprintf(item_of(h, "s")->owner, DYNAMO_OWNER_SIZE, "them/1");
}

static void
spoil_version(harness *h)
{
	dynamo_entry *ours = double_entry(double_item_of(&h->table, "s"), "1");

	snprintf(item_of(h, "s")->version, DYNAMO_VERSION_SIZE, "v2");
	if (ours != NULL)
		snprintf(ours->version, DYNAMO_VERSION_SIZE, "v2");
}

static void
spoil_hold(harness *h)
{
	foreign_hold(h, "s", "v3", LEASE_MS, item_of(h, "s")->token + 1);
}

/* The item, which is made as a released one if there is none. */
static dynamo_item *
any_item(harness *h)
{
	dynamo_item *item = item_of(h, "s");

	item->released |= !item->exists;
	item->exists = true;
	return item;
}

static void
spoil_released(harness *h)
{
	(void) any_item(h);
	foreign_release(h, "s");
}

static void
spoil_item(harness *h)
{
	delete_item(h, "s");
}

static void
spoil_minimum(harness *h)
{
	spoil_released(h);
	item_of(h, "s")->kept_until_ms = (h->now + h->epoch_offset) / MS + 60000;
}

static void
spoil_held_minimum(harness *h)
{
	any_item(h)->kept_until_ms = (h->now + h->epoch_offset) / MS + 60000;
}

static void
spoil_token(harness *h)
{
	any_item(h)->token = h->now + h->epoch_offset + SECOND;
	item_of(h, "s")->has_token = true;
}

static void
spoil_names(harness *h)
{
	spoil_released(h);
	double_set_attributes(double_item_of(&h->table, "s"), "{\"x\":{\"S\":\"y\"}}");
}

static void
spoil_gate(harness *h)
{
	dynamo_shared *shared = double_shared(double_item_of(&h->table, "s"));

	any_item(h);
	shared->gate = true;
	shared->gate_lease_ms = LEASE_MS;
	snprintf(shared->gate_version, sizeof(shared->gate_version), "gate");
}

static void
spoil_by_coming(harness *h)
{
	const dynamo_shared *shared = double_item_of(&h->table, "s")->shared;

	if (shared == NULL || !shared->current || shared->count < 9)
		foreign_entry(h, "s", "e2", 2, shared != NULL ? shared->mode : MODE_SHARED);
}

static void
spoil_by_going(harness *h)
{
	double_item *found = double_item_of(&h->table, "s");
	dynamo_shared *shared = found->shared;

	for (int i = shared != NULL ? shared->count - 1 : -1; i >= 0; i--)
	{
		if (strcmp(shared->entries[i].incarnation, "1") != 0)
			double_remove_entry(found, shared->entries[i].incarnation);
	}
}

static void
spoil_entry(harness *h)
{
	double_item *found = double_item_of(&h->table, "s");

	if (double_entry(found, "1") != NULL)
		double_remove_entry(found, "1");
}

static const struct
{
	const char *name;
	void		(*write) (harness *h);
	const char *refused_by;		/* the other's writes, by their letters in the next table */
	bool		needs_reason;	/* if the item shows none, that is trouble */
}			writes[] = {
	{"acquire", write_acquire, "hmMtnc", false},
	{"take over", write_take_over, "vhmMtnc", false},
	{"renew", write_renewal, "ovhrimnc", true},
	{"hand over", write_hand_over, "ovhrimMtnc", true},
	{"release", write_release, "ovhrimnc", true},
	{"open", write_opening, "hmMtngc", false},
	{"join", write_join, "ohrimtngc", false},
	{"renew, shared", write_shared_renewal, "ovhrimne", true},
	{"more permits", write_more, "ovhrimngce", true},
	{"fewer permits", write_fewer, "ovhrimne", true},
	{"leave", write_leave, "ovhrimnle", true},
	{"last", write_last, "ovhrimnce", true},
	{"gate", write_gate, "ohrimng", false},
};

static const struct
{
	char		letter;
	void		(*spoil) (harness *h);
}			spoilers[] = {
	{'0', spoil_nothing}, {'o', spoil_owner}, {'v', spoil_version}, {'h', spoil_hold},
	{'r', spoil_released}, {'i', spoil_item}, {'m', spoil_minimum}, {'M', spoil_held_minimum},
	{'t', spoil_token}, {'n', spoil_names}, {'g', spoil_gate}, {'c', spoil_by_coming},
	{'l', spoil_by_going}, {'e', spoil_entry},
};
#define WRITES	(sizeof(writes) / sizeof(writes[0]))
#define SPOILERS (sizeof(spoilers) / sizeof(spoilers[0]))

/* The newest call about the lock that has no reply; NULL: none. */
static harness_call *
open_call(harness *h)
{
	for (int i = h->call_count - 1; i >= 0; i--)
	{
		if (!h->calls[i].answered)
			return &h->calls[i];
	}
	return NULL;
}

/* Starts the write, which does not arrive yet. */
static harness *
start_write(size_t w)
{
	harness    *h = harness_start_with(FEW);

	if (writes[w].write == write_acquire || writes[w].write == write_opening)
		h->fate = FATE_HOLD;
	writes[w].write(h);
	h->fate = FATE_HOLD;
	if (open_call(h) == NULL)
		fail_msg("%s: nothing was sent", writes[w].name);
	return h;
}

static void
end_write(harness *h)
{
	for (harness_call *call; (call = open_call(h)) != NULL;)
		fail_call(h, call, DYNAMO_UNKNOWN);
	harness_free(h);
}

static bool
is_in_trouble(harness *h)
{
	return lm_get_lock(h->lm, "s", 1)->trouble_since != 0;
}

/* All pairs, because the write that follows a refusal can be refused as well. */
TEST(a_refusal_for_any_part_of_a_condition_is_no_trouble)
{
	for (size_t i = 0; i < WRITES * SPOILERS * SPOILERS; i++)
	{
		size_t		w = i / SPOILERS / SPOILERS;
		size_t		by[] = {i / SPOILERS % SPOILERS, i % SPOILERS};
		char		first = spoilers[by[0]].letter;
		harness    *h = start_write(w);
		harness_call *call;

		for (int next = 0; next < 5 && (call = open_call(h)) != NULL; next++)
		{
			if (next < 2)
				spoilers[by[next]].spoil(h);
			apply(h, call);
			if (next == 0 && (call->results[0].status == DYNAMO_CONDITION_FAILED) !=
				(strchr(writes[w].refused_by, first) != NULL))
				fail_msg("%s, spoiled by %c: status %d", writes[w].name, first,
						 (int) call->results[0].status);
			reply(h, call);
			if (is_in_trouble(h))
				fail_msg("%s, spoiled by %c and %c, is in trouble", writes[w].name, first,
						 spoilers[by[1]].letter);
		}
		end_write(h);
	}
}

TEST(a_refusal_for_no_reason_is_trouble_of_what_we_have)
{
	for (size_t w = 0; w < WRITES; w++)
	{
		harness    *h = start_write(w);
		harness_call *call;
		bool		trouble = false;

		h->table.refuses = h->table.refuses_others = true;
		for (int next = 0; next < 5 && !trouble && (call = open_call(h)) != NULL; next++)
		{
			deliver(h, call);
			trouble = is_in_trouble(h);
		}
		if (trouble != writes[w].needs_reason)
			fail_msg("%s, refused for no reason: trouble %d", writes[w].name, trouble);
		end_write(h);
	}
}
