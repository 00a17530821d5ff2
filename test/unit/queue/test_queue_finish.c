/*-------------------------------------------------------------------------
 *
 * test_queue_finish.c
 *	  Jobs whose sessions have committed: their places, and how the worker finishes them.
 *
 *-------------------------------------------------------------------------
 */
#define BEFORE_EACH start
#include "../unit.h"

#include <cjson/cJSON.h>

#include "queue/queue.h"

#define PLACES 3

static queue_place places[PLACES];
static queue_note notes[PLACES];
static shared32 news;
static queue_finisher me;

/* What the host was told. */
static queue_request sent[8];
static uint32_t sent_index[8];
static bool sent_again[8];
static int	sent_count;
static int	later_count;
static int	ended_count;
static queue_outcome ended_as;
static bool ended_more;
static queue_place ended_place;

static queue_place *
place_at(void *arg, uint32_t index)
{
	(void) arg;
	return &places[index];
}

static void
host_send(void *arg, uint32_t index, const queue_request *request, bool repeat)
{
	(void) arg;
	sent[sent_count] = *request;
	sent_index[sent_count] = index;
	sent_again[sent_count++] = repeat;
}

static int64_t
host_later(void *arg, uint32_t index, unsigned failures, const dynamo_reply *reply)
{
	(void) arg;
	(void) index;
	(void) reply;
	later_count = (int) failures;
	return 100;
}

static void
host_ended(void *arg, uint32_t index, queue_outcome outcome, bool more)
{
	(void) arg;
	ended_count++;
	ended_as = outcome;
	ended_more = more;
	ended_place = places[index];
}

static int
start(void **state)
{
	(void) state;
	memset(places, 0, sizeof(places));
	memset(notes, 0, sizeof(notes));
	news.value = 0;
	sent_count = later_count = ended_count = 0;
	me = (queue_finisher) {
		.count = PLACES,.notes = notes,.news = &news,.place = place_at,.send = host_send,
		.later = host_later,.ended = host_ended,
	};
	return 0;
}

/* A session has committed the completion of job 7. */
static void
pass(uint32_t index, bool last)
{
	queue_place copy;

	assert_int_equal(queue_place_reserve(place_at, NULL, index, PLACES), index);
	places[index].number = 7;
	places[index].token = 30;
	places[index].last = last;
	strcpy(places[index].queue, "q");
	strcpy(places[index].resource, "r");
	assert_false(queue_place_is_ready(&places[index]));
	queue_place_pass(&places[index], &copy);
	assert_true(queue_place_is_ready(&places[index]));
	assert_string_equal(copy.resource, "r");
	assert_int_equal(copy.state.value, QUEUE_PLACE_RESERVED);
	news.value = 1;
}

static void
reply(uint32_t index, int64_t now, dynamo_status status, const char *json)
{
	dynamo_reply reply = {.status = status,.json = cJSON_Parse(json)};

	queue_finisher_reply(&me, index, now, &reply);
	cJSON_Delete(reply.json);
}

#define HEAD(seq, done, token) "{\"Item\":{\"pk\":{\"S\":\"r#q#r\"},\"sk\":{\"S\":\"head\"}," \
	"\"seq\":{\"N\":\"" #seq "\"},\"done\":{\"N\":\"" #done "\"},\"token\":{\"N\":\"" #token "\"}}}"

TEST(a_resource_goes_behind_others_when_its_time_is_over)
{
	pass(0, false);
	pass(1, false);
	places[1].stays_until = 100;
	(void) queue_finisher_run(&me, 99);
	assert_false(sent[0].stays);
	assert_true(sent[1].stays);
	pass(2, false);
	places[2].stays_until = 100;
	(void) queue_finisher_run(&me, 100);
	assert_false(sent[2].stays);
}

TEST(places_are_looked_for_from_the_own_one_on)
{
	assert_int_equal(queue_place_reserve(place_at, NULL, 2, PLACES), 2);
	assert_int_equal(queue_place_reserve(place_at, NULL, 2, PLACES), 0);
	assert_int_equal(queue_place_reserve(place_at, NULL, 0, PLACES), 1);
	assert_int_equal(queue_place_reserve(place_at, NULL, 1, PLACES), QUEUE_NO_PLACE);
	queue_place_free(&places[0]);
	assert_int_equal(queue_place_reserve(place_at, NULL, 1, PLACES), 0);
}

TEST(a_finished_job_is_deleted_and_its_hold_ends_before_its_place_is_free)
{
	pass(1, false);
	assert_false(queue_finisher_is_idle(&me));
	assert_true(queue_finisher_run(&me, 1000) == INT64_MAX);
	assert_int_equal(sent[0].kind, QUEUE_COMPLETE);
	assert_int_equal(sent[0].number, 7);
	assert_int_equal(sent[0].token, 30);
	assert_string_equal(sent[0].queue, "q");
	assert_string_equal(sent[0].resource, "r");
	reply(1, 1001, DYNAMO_OK, "{}");
	assert_int_equal(sent_count, 2);
	assert_int_equal(sent[1].kind, QUEUE_DELETE_JOB);
	assert_int_equal(sent[1].number, 7);
	assert_int_equal(sent_index[1], QUEUE_NO_PLACE);
	assert_false(sent_again[1]);
	assert_int_equal(ended_count, 1);
	assert_int_equal(ended_as, QUEUE_FINISHED);
	assert_false(ended_more);
	assert_int_equal(ended_place.state.value, QUEUE_PLACE_READY);
	assert_int_equal(places[1].state.value, QUEUE_PLACE_FREE);
	assert_true(queue_finisher_is_idle(&me));
}

TEST(a_place_is_used_again_and_again)
{
	for (int i = 0; i < 2; i++)
	{
		sent_count = 0;
		pass(1, false);
		(void) queue_finisher_run(&me, 1000);
		assert_int_equal(sent_count, 1);
		reply(1, 1001, DYNAMO_OK, "{}");
		assert_int_equal(ended_count, i + 1);
		(void) queue_finisher_run(&me, 1002);
		assert_int_equal(sent_count, 2);
	}
}

/* It had no item. */
TEST(a_job_that_rode_is_not_deleted)
{
	places[0].rides = true;
	pass(0, false);
	(void) queue_finisher_run(&me, 1000);
	reply(0, 1001, DYNAMO_OK, "{}");
	assert_int_equal(sent_count, 1);
	assert_int_equal(ended_as, QUEUE_FINISHED);
}

TEST(what_the_worker_before_has_left_is_taken_once)
{
	pass(0, true);
	(void) queue_finisher_run(&me, 1000);
	news.value = 1;
	(void) queue_finisher_run(&me, 1000);
	assert_int_equal(sent_count, 1);
	assert_int_equal(sent[0].kind, QUEUE_COMPLETE_LAST);
}

TEST(a_reserved_place_is_not_the_workers)
{
	(void) queue_place_reserve(place_at, NULL, 0, PLACES);
	news.value = 1;
	(void) queue_finisher_run(&me, 1000);
	assert_int_equal(sent_count, 0);
	assert_true(queue_finisher_is_idle(&me));
}

TEST(an_unknown_outcome_is_repeated_later)
{
	pass(0, true);
	(void) queue_finisher_run(&me, 1000);
	reply(0, 1001, DYNAMO_UNKNOWN, "{}");
	assert_int_equal(later_count, 1);
	assert_int_equal(queue_finisher_run(&me, 1002), 1101);
	assert_int_equal(sent_count, 1);
	(void) queue_finisher_run(&me, 1101);
	assert_int_equal(sent_count, 2);
	assert_true(sent_again[1]);
	assert_int_equal(ended_count, 0);
}

TEST(the_other_form_follows_at_once_and_then_ever_later)
{
	pass(0, true);
	(void) queue_finisher_run(&me, 1000);
	reply(0, 1001, DYNAMO_CONDITION_FAILED, HEAD(8, 6, 30));
	(void) queue_finisher_run(&me, 1001);
	assert_int_equal(sent[1].kind, QUEUE_COMPLETE);
	assert_false(sent_again[1]);
	reply(0, 1002, DYNAMO_CONDITION_FAILED, HEAD(8, 6, 30));
	assert_int_equal(later_count, 1);
	(void) queue_finisher_run(&me, 1102);
	reply(0, 1103, DYNAMO_OK, "{}");
	assert_true(ended_more);	/* nobody knew of job 8 when 7 was claimed */
}

/* Replies at 1001 and 1051 put them off by 100. */
TEST(the_first_of_several_repetitions_wakes)
{
	for (uint32_t i = 0; i < PLACES; i++)
		pass(i, false);
	(void) queue_finisher_run(&me, 1000);
	assert_int_equal(sent_count, PLACES);
	reply(1, 1001, DYNAMO_UNKNOWN, "{}");
	reply(0, 1051, DYNAMO_UNKNOWN, "{}");
	reply(2, 1071, DYNAMO_UNKNOWN, "{}");
	assert_int_equal(queue_finisher_run(&me, 1100), 1101);
	assert_int_equal(queue_finisher_run(&me, 1101), 1151);
	assert_int_equal(sent_count, PLACES + 1);
	assert_int_equal(sent_index[PLACES], 1);
	assert_false(queue_finisher_is_idle(&me));
}

/* ... though it knows of one more: that is the other session's. */
TEST(a_refusal_tells_of_no_more_jobs)
{
	pass(0, true);
	(void) queue_finisher_run(&me, 1000);
	reply(0, 1001, DYNAMO_CONDITION_FAILED, HEAD(8, 6, 30));
	(void) queue_finisher_run(&me, 1001);
	reply(0, 1002, DYNAMO_CONDITION_FAILED, HEAD(8, 6, 31));
	assert_int_equal(ended_as, QUEUE_REFUSED);
	assert_false(ended_more);
}

TEST(a_refusal_of_a_finished_job_is_a_success)
{
	pass(0, true);
	(void) queue_finisher_run(&me, 1000);
	reply(0, 1001, DYNAMO_CONDITION_FAILED, HEAD(8, 7, 31));
	assert_int_equal(ended_as, QUEUE_FINISHED);
}

TEST(a_job_whose_head_is_gone_is_left_alone)
{
	pass(0, true);
	(void) queue_finisher_run(&me, 1000);
	reply(0, 1001, DYNAMO_CONDITION_FAILED, "{}");
	assert_int_equal(ended_as, QUEUE_REFUSED);
	assert_int_equal(sent_count, 1);
}

TEST(a_job_that_was_claimed_anew_is_left_alone)
{
	pass(0, true);
	(void) queue_finisher_run(&me, 1000);
	reply(0, 1001, DYNAMO_CONDITION_FAILED, HEAD(8, 6, 31));
	assert_int_equal(ended_as, QUEUE_REFUSED);
	assert_false(ended_more);
	assert_int_equal(sent_count, 1);
	assert_int_equal(places[0].state.value, QUEUE_PLACE_FREE);
}
