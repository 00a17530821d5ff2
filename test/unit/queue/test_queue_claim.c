/*-------------------------------------------------------------------------
 *
 * test_queue_claim.c
 *	  A claim's states: COMMIT, ROLLBACK, savepoints.
 *
 *-------------------------------------------------------------------------
 */
#define BEFORE_EACH start
#include "../unit.h"

#include "queue/queue.h"

static queue_claim claim;
static queue_place place;

static int
start(void **state)
{
	(void) state;
	memset(&place, 0, sizeof(place));
	claim = queue_claim_begin(1);
	claim.number = 7;
	claim.token = 30;
	claim.last = true;
	return 0;
}

static void
complete(int level)
{
	place.state.value = QUEUE_PLACE_RESERVED;
	queue_claim_complete(&claim, level, &place, "q", "r");
}

static void
assert_ends(int level, bool committed, queue_fate fate)
{
	assert_int_equal(queue_claim_end(&claim, level, committed, false), fate);
}

TEST(the_oldest_job_is_claimed)
{
	queue_row	head = {.seq = 9,.done = 7};

	queue_claim_take(&claim, &head, 0, 0);
	assert_int_equal(claim.number, 8);
	assert_false(claim.last);
	head.done = 8;
	queue_claim_take(&claim, &head, 0, 0);
	assert_true(claim.last);
}

/* It was claimed 4 s after it came there, for 5 s; the cluster's clock shows 7 s. */
TEST(a_resource_keeps_its_place_in_the_index_for_half_a_minute_or_until_its_eighth_job)
{
	queue_row	head = {.turn = 1000,.due = 10000};

	queue_claim_take(&claim, &head, 5000, 7000000);
	assert_int_equal(claim.stays_until, 33000000);
	complete(1);
	assert_int_equal(place.stays_until, 33000000);
	head.done = 7;
	queue_claim_take(&claim, &head, 5000, 7000000);
	assert_int_equal(claim.stays_until, 0);
	head = (queue_row) {.turn = 10000,.due = 10000};	/* the claim has moved it */
	queue_claim_take(&claim, &head, 5000, 7000000);
	assert_int_equal(claim.stays_until, 0);
}

TEST(the_place_tells_whether_the_job_rides)
{
	complete(1);
	assert_false(place.rides);
	claim.rides = true;
	complete(1);
	assert_true(place.rides);
}

TEST(a_claim_survives_its_commit_and_a_later_rollback)
{
	assert_ends(1, true, QUEUE_CLAIM_STAYS);
	assert_ends(1, false, QUEUE_CLAIM_STAYS);
}

TEST(a_claim_ends_with_the_transaction_that_made_it)
{
	assert_ends(1, false, QUEUE_CLAIM_ENDS);
}

TEST(a_claim_ends_with_the_savepoint_that_it_came_after)
{
	claim = queue_claim_begin(3);
	assert_ends(3, true, QUEUE_CLAIM_STAYS);
	assert_ends(3, false, QUEUE_CLAIM_STAYS);	/* the next savepoint, of the same level */
	assert_ends(2, false, QUEUE_CLAIM_ENDS);
}

TEST(a_completion_takes_what_the_worker_needs)
{
	complete(1);
	assert_int_equal(place.number, 7);
	assert_int_equal(place.token, 30);
	assert_true(place.last);
	assert_string_equal(place.queue, "q");
	assert_string_equal(place.resource, "r");
	assert_ends(1, true, QUEUE_CLAIM_PASSES);
	assert_int_equal(place.state.value, QUEUE_PLACE_RESERVED);
}

TEST(a_completion_ends_with_its_transaction_and_the_claim_stays)
{
	assert_ends(1, true, QUEUE_CLAIM_STAYS);
	complete(1);
	assert_ends(1, false, QUEUE_CLAIM_STAYS);
	assert_int_equal(place.state.value, QUEUE_PLACE_FREE);
	assert_int_equal(claim.finish_level, 0);
	assert_ends(1, true, QUEUE_CLAIM_STAYS);
}

TEST(a_completion_ends_with_its_savepoint_and_the_claim_stays)
{
	complete(3);
	assert_ends(3, true, QUEUE_CLAIM_STAYS);
	assert_ends(2, false, QUEUE_CLAIM_STAYS);
	assert_int_equal(place.state.value, QUEUE_PLACE_FREE);
	assert_ends(1, true, QUEUE_CLAIM_STAYS);
}

TEST(a_completion_after_a_released_savepoint_passes)
{
	complete(3);
	assert_ends(3, true, QUEUE_CLAIM_STAYS);
	assert_ends(2, true, QUEUE_CLAIM_STAYS);
	assert_ends(2, false, QUEUE_CLAIM_STAYS);
	assert_ends(1, true, QUEUE_CLAIM_PASSES);
}

TEST(both_end_with_the_transaction)
{
	complete(2);
	assert_ends(1, false, QUEUE_CLAIM_ENDS);
	assert_int_equal(place.state.value, QUEUE_PLACE_FREE);
}

/* A savepoint after it is none of its business. */
TEST(a_completion_stays_when_a_later_savepoint_ends)
{
	complete(2);
	assert_ends(3, false, QUEUE_CLAIM_STAYS);
	assert_ends(3, true, QUEUE_CLAIM_STAYS);
	assert_int_equal(place.state.value, QUEUE_PLACE_RESERVED);
	assert_int_equal(claim.finish_level, 2);
	assert_ends(1, true, QUEUE_CLAIM_PASSES);
}

TEST(a_claim_of_an_earlier_transaction_without_its_lock_ends_with_a_rollback_too)
{
	assert_ends(1, true, QUEUE_CLAIM_STAYS);
	assert_int_equal(queue_claim_end(&claim, 1, false, true), QUEUE_CLAIM_VOID);
}

TEST(a_claim_without_its_lock_ends_with_a_transaction)
{
	assert_int_equal(queue_claim_end(&claim, 2, true, true), QUEUE_CLAIM_STAYS);
	assert_int_equal(queue_claim_end(&claim, 1, true, true), QUEUE_CLAIM_VOID);
}
