/*-------------------------------------------------------------------------
 *
 * test_lockmgr_data.c
 *	  A session changes the data of a lock that it holds; additional attributes.
 *
 *-------------------------------------------------------------------------
 */
#include "lockmgr_harness.h"

#define assert_data(h, text) \
	do { \
		assert_int_equal(double_item_of(&(h)->table, "a")->data_len, strlen(text)); \
		assert_memory_equal(double_item_of(&(h)->table, "a")->data, text, strlen(text)); \
	} while (0)

/* Session 0 has lock "a", which has data. */
static harness *
start_with_data(void)
{
	harness    *h = harness_start();

	h->data = "first";
	get(h, 0, "a");
	h->data = NULL;
	return h;
}

static void
renew_with(harness *h, uint32_t slot, const char *data)
{
	h->data = data;
	renew(h, slot, "a", 0);
	h->data = NULL;
}

LOCKMGR_TEST_WITH(a_renewal_changes_the_data, start_with_data())
{
	renew_with(h, 0, "second");
	settle(h);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_data(h, "second");
	renew(h, 0, "a", 0);
	run(h, LEASE_US);
	assert_data(h, "second");
	renew_with(h, 0, "");
	settle(h);
	assert_data(h, "");
}

LOCKMGR_TEST_WITH(data_of_a_session_that_has_ended_is_not_written, start_with_data())
{
	next_fate(h, FATE_LOST_REQUEST);
	renew_with(h, 0, "second");
	end_session(h, 0);
	run(h, 3 * SECOND);
	assert_true(is_free(h, "a"));
}

/* The item's data must not become the next holder's. */
LOCKMGR_TEST(data_that_a_renewal_brought_is_removed_for_the_next_holder)
{
	get(h, 0, "a");
	acquire(h, 1, "a");
	acquire(h, 2, "a");
	let_go(h, 0, "a");
	settle(h);
	assert_int_equal(last_call(h)->c.op, DYNAMO_HAND_OVER);
	renew_with(h, 1, "new");
	settle(h);
	assert_data(h, "new");
	let_go(h, 1, "a");
	settle(h);
	assert_true(holds(h, 2, "a"));
	assert_data(h, "");
}

LOCKMGR_TEST_WITH(data_is_repeated_with_the_renewal, start_with_data())
{
	next_fate(h, FATE_LOST_REQUEST);
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	next_fate(h, FATE_LOST_REPLY);
	renew_with(h, 0, "second");
	run(h, 3 * ATTEMPT_US);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_data(h, "second");
}

LOCKMGR_TEST_WITH(the_next_manager_writes_the_data, start_with_data())
{
	next_fate(h, FATE_LOST_REQUEST);
	renew_with(h, 0, "second");
	kill_manager(h);
	start_manager(h);
	settle(h);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_data(h, "second");
}

/* Another renewal that is due at the same time has a request of its own. */
LOCKMGR_TEST_WITH(a_change_of_data_is_no_statement_of_a_batch, start_with_data())
{
	get(h, 1, "b");
	kill_manager(h);
	renew_with(h, 0, "second");
	renew(h, 1, "b", 0);
	start_manager(h);
	settle(h);
	assert_int_equal(sent(h, DYNAMO_RENEW_BATCH), 0);
	assert_data(h, "second");
	assert_result(h, 1, LOCKMGR_RENEWED);
}

LOCKMGR_TEST_WITH(a_canceled_change_harms_nobody, start_with_data())
{
	next_fate(h, FATE_LOST_REQUEST);
	renew_with(h, 0, "second");
	cancel(h, 0);
	run(h, LEASE_US);
	assert_true(holds(h, 0, "a"));
	assert_data(h, "first");
}

LOCKMGR_TEST_WITH(a_change_is_written_after_a_canceled_one, start_with_data())
{
	next_fate(h, FATE_HOLD);
	renew_with(h, 0, "second");
	cancel(h, 0);
	renew_with(h, 0, "third");
	deliver(h, last_call(h));
	settle(h);
	assert_result(h, 0, LOCKMGR_RENEWED);
	assert_data(h, "third");
}

#define TEAM "{\"team\":{\"S\":\"x\"}}"
#define PLACE "{\"place\":{\"S\":\"y\"}}"

#define assert_attributes(h, text) \
	assert_string_equal(double_item_of(&(h)->table, "a")->attributes, text)

static harness *
start_with_attributes(void)
{
	harness    *h = harness_start();

	h->attributes = TEAM;
	get(h, 0, "a");
	h->attributes = NULL;
	return h;
}

LOCKMGR_TEST_WITH(attributes_stay_while_the_lock_is_held, start_with_attributes())
{
	assert_attributes(h, TEAM);
	renew(h, 0, "a", 0);
	run(h, LEASE_US);
	assert_attributes(h, TEAM);
}

LOCKMGR_TEST_WITH(a_release_removes_the_attributes, start_with_attributes())
{
	release(h, 0, "a");
	settle(h);
	assert_attributes(h, "");
	assert_null(item_of(h, "a")->attribute_names);
	get(h, 1, "a");
	assert_int_equal(h->call_count, 3);
}

/* No hand-over: that would leave the last holder's attributes. */
LOCKMGR_TEST_WITH(the_next_holder_has_its_own_attributes, start_with_attributes())
{
	h->attributes = PLACE;
	acquire(h, 1, "a");
	h->attributes = NULL;
	acquire(h, 2, "a");
	let_go(h, 0, "a");
	settle(h);
	assert_true(holds(h, 1, "a"));
	assert_attributes(h, PLACE);
	let_go(h, 1, "a");
	settle(h);
	assert_true(holds(h, 2, "a"));
	assert_attributes(h, "");
	assert_int_equal(sent(h, DYNAMO_HAND_OVER), 0);
}

/* Nor does it pass on without a request, although the lease has tokens for more holders. */
LOCKMGR_TEST(who_wants_attributes_gets_them_in_a_run)
{
	get(h, 0, "a");
	acquire(h, 1, "a");
	acquire(h, 2, "a");
	let_go(h, 0, "a");
	settle(h);
	assert_true(holds(h, 1, "a"));
	cancel(h, 2);
	h->attributes = TEAM;
	acquire(h, 2, "a");
	h->attributes = NULL;
	let_go(h, 1, "a");
	settle(h);
	assert_true(holds(h, 2, "a"));
	assert_attributes(h, TEAM);
}

/* The next manager does not know them: the item shows them, when an acquire is refused. */
LOCKMGR_TEST_WITH(attributes_that_a_dead_manager_set_are_removed, start_with_attributes())
{
	kill_manager(h);
	start_manager(h);
	settle(h);
	release(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_RELEASED);
	assert_attributes(h, TEAM);
	get(h, 1, "a");
	assert_attributes(h, "");
	assert_int_equal(sent(h, DYNAMO_ACQUIRE), 3);
}

LOCKMGR_TEST_WITH(an_acquire_with_attributes_is_repeated, harness_start())
{
	h->attributes = TEAM;
	next_fate(h, FATE_LOST_REPLY);
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	acquire(h, 0, "a");
	h->attributes = NULL;
	run(h, 3 * ATTEMPT_US);
	assert_true(holds(h, 0, "a"));
	assert_attributes(h, TEAM);
	release(h, 0, "a");
	settle(h);
	assert_attributes(h, "");
}

/* It may have been applied; nobody knows with which attributes. */
LOCKMGR_TEST(attributes_of_an_abandoned_acquire_are_removed)
{
	h->attributes = TEAM;
	next_fate(h, FATE_LOST_REPLY);
	acquire(h, 0, "a");
	h->attributes = NULL;
	cancel(h, 0);
	run(h, 2 * ATTEMPT_US);
	assert_true(is_free(h, "a"));
	assert_attributes(h, TEAM);
	get(h, 1, "a");
	assert_attributes(h, "");
}

LOCKMGR_TEST_WITH(attributes_of_a_dead_holder_are_removed, start_with_attributes())
{
	kill_manager(h);
	snprintf(item_of(h, "a")->owner, DYNAMO_OWNER_SIZE, "them/1");
	memset(h->saved, 0, SIZE * sizeof(saved_lease));
	memset(h->saved_holds, 0, SIZE * sizeof(saved_hold));
	start_manager(h);
	acquire(h, 1, "a");
	run(h, LEASE_US * 6 / 5);
	assert_true(holds(h, 1, "a"));
	assert_attributes(h, "");
}

LOCKMGR_TEST(names_that_nobody_can_read_are_an_error)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
	foreign_release(h, "a");
	item_of(h, "a")->attribute_names = double_item_of(&h->table, "a")->names;
	strcpy(item_of(h, "a")->attribute_names, "?");
	item_of(h, "a")->bad_names = true;
	acquire(h, 0, "a");
	settle(h);
	assert_result(h, 0, LOCKMGR_BAD_ITEM);
}

/* It is for another lock. */
LOCKMGR_TEST(data_of_who_waits_does_not_go_with_a_renewal)
{
	foreign_hold(h, "b", "v1", 10 * LEASE_MS, 5);
	get(h, 0, "a");
	h->data = "for b";
	acquire(h, 0, "b");
	h->data = NULL;
	run(h, LEASE_US / 2);
	assert_int_equal(saved_of(h, 0, "a")->renewals, 1);
	assert_false(saved_of(h, 0, "a")->has_data);
	assert_data(h, "");
}
