/*-------------------------------------------------------------------------
 *
 * test_leadership.c
 *	  Leaderships: the list, and the states, step by step.
 *
 * The test plays the lock manager: it answers what is posted.
 *
 *-------------------------------------------------------------------------
 */
#define BEFORE_EACH set_up
#define AFTER_EACH tear_down
#include "../unit.h"
#include "lock/leadership.h"

#define SLOTS LEADERSHIPS_MAX
#define LEASES 4
#define SECOND INT64_C(1000000)

typedef struct world
{
	mailbox		box;
	leadership_worker	me;
	mailbox_slot slots[SLOTS];
	mailbox_lease leases[LEASES];
	mailbox_hold holds[LEASES];
	leadership_entry entries[LEADERSHIPS_MAX];
	int64_t		now;
	int			posted;
	bool		refuses;
	lease_loss	loss;			/* of a hold that the manager has ended */
} world;

static mailbox_slot *
slot(void *arg, uint32_t number)
{
	return &((world *) arg)->slots[number];
}

static mailbox_lease *
lease_words(void *arg, uint32_t index)
{
	return &((world *) arg)->leases[index];
}

static mailbox_hold *
hold_words(void *arg, uint32_t index)
{
	return &((world *) arg)->holds[index];
}

static void
nothing(void *arg, uint32_t number)
{
	(void) arg;
	(void) number;
}

static void
host_post(void *arg, const leadership *c)
{
	(void) c;
	((world *) arg)->posted++;
}

/* The leadership in slot n has lease n, as hold n. */
static bool
host_take(void *arg, leadership *c)
{
	c->grant.hold_index = c->grant.lease_index = c->me.slot;
	c->grant.lease_generation = 1;
	c->grant.token = 7;
	return !((world *) arg)->refuses;
}

static void
host_random(void *arg, void *bytes, size_t len)
{
	(void) arg;
	memset(bytes, 1, len);
}

static void
host_save(void *arg, uint32_t index, const saved_lease *saved, const char *name, size_t name_len)
{
	(void) arg;
	(void) index;
	(void) saved;
	(void) name;
	(void) name_len;
}

static void
host_save_hold(void *arg, uint32_t index, const saved_hold *saved)
{
	(void) arg;
	(void) index;
	(void) saved;
}

static void
host_lost(void *arg, uint32_t index, const saved_hold *held, const saved_lease *lost, const dynamo_item *by)
{
	(void) index;
	(void) lost;
	(void) by;
	((world *) arg)->loss = held->loss;
}

static int
set_up(void **state)
{
	static world w;
	lockmgr_config config = {.owner = "us/1",.max_leases = LEASES,.max_sessions = SLOTS};
	lockmgr_host host = {
		.arg = &w, .random = host_random, .save = host_save, .save_hold = host_save_hold,
		.lost = host_lost,
	};

	memset(&w, 0, sizeof(w));
	w.now = SECOND;
	w.box = (mailbox) {&w, slot, lease_words, hold_words, nothing, nothing};
	w.me = (leadership_worker) {
		.arg = &w, .box = &w.box, .lm = lockmgr_new(&config, &host), .entries = w.entries,
		.retry_us = 5 * SECOND, .post = host_post, .take = host_take,
	};
	*state = &w;
	return w.me.lm == NULL ? -1 : 0;
}

static int
tear_down(void **state)
{
	lockmgr_free(((world *) *state)->me.lm);
	return 0;
}

static const leadership *
named(const world *w, const char *name)
{
	for (int i = 0; i < LEADERSHIPS_MAX; i++)
	{
		if (w->entries[i].c.state != LEADERSHIP_NONE && strcmp(w->entries[i].c.name, name) == 0)
			return &w->entries[i].c;
	}
	return NULL;
}

static int64_t
run(world *w, const char *list)
{
	int64_t		wake = leaderships_run(&w->me, w->now, list);
	leadership	copy;

	for (int i = 0; i < LEADERSHIPS_MAX; i++)
		assert_true(leadership_read(&w->entries[i], &copy));
	return wake;
}

static void
assert_state(const world *w, const char *name, leadership_state state)
{
	const leadership *c = named(w, name);

	assert_int_equal(c != NULL ? c->state : LEADERSHIP_NONE, state);
}

/* The lock manager grants or refuses what the leadership has asked for last. */
static void
answer(world *w, const char *name)
{
	const leadership *c = named(w, name);
	saved_hold granted = {.session = c->me,.seq = c->seq};
	saved_lease l = {.generation = 1,.valid_until = w->now + 10 * SECOND};
	lockmgr_session asks;
	uint64_t	seq;

	assert_true(mailbox_peek(&w->box, c->me.slot, &asks, &seq));
	assert_int_equal(asks.generation, c->me.generation);
	assert_int_equal(seq, c->seq);
	if (!w->refuses)
	{
		mailbox_begin_save(&w->leases[c->me.slot], &l);
		mailbox_end_save(&w->leases[c->me.slot], &l);
		assert_true(mailbox_save_hold(&w->holds[c->me.slot], &granted));
	}
	assert_true(mailbox_begin_answer(&w->box, c->me, c->seq,
									 w->refuses ? LOCKMGR_NO_HOLD : c->me.slot));
	mailbox_end_answer(&w->box, c->me, c->seq);
}

static void
end_lease(world *w, const char *name)
{
	saved_lease l = {.generation = 1};

	mailbox_end_save(&w->leases[named(w, name)->me.slot], &l);
}

static void
lead(world *w)
{
	(void) run(w, "a");
	answer(w, "a");
	(void) run(w, "a");
	assert_state(w, "a", LEADERSHIP_LEADING);
}

static bool
has_let_go(const world *w)
{
	return mailbox_is_let_go(&w->holds[0]);
}

/* ---- the list ---- */

TEST(a_list_has_names_without_the_spaces_around_them)
{
	const char *at = "\ta , b c\t,d \t";
	const char *wrong;
	char		name[LEADERSHIP_NAME_MAX + 1];

	assert_true(leadership_list_next(&at, name, &wrong));
	assert_string_equal(name, "a");
	assert_true(leadership_list_next(&at, name, &wrong));
	assert_string_equal(name, "b c");
	assert_true(leadership_list_next(&at, name, &wrong));
	assert_string_equal(name, "d");
	assert_false(leadership_list_next(&at, name, &wrong));
	assert_null(wrong);
	assert_true(leadership_is_listed("a, b c", "b c"));
	assert_false(leadership_is_listed("a, b c", "b"));
	assert_false(leadership_is_listed("", ""));
}

TEST(a_bad_list_says_what_is_wrong)
{
	char		longest[LEADERSHIP_NAME_MAX + 2];

	memset(longest, 'x', sizeof(longest));
	longest[LEADERSHIP_NAME_MAX + 1] = '\0';
	assert_string_equal(leadership_list_wrong(longest), "A name is longer than 255 bytes.");
	assert_null(leadership_list_wrong(longest + 1));
	assert_true(leadership_is_listed(longest + 1, longest + 1));
	assert_null(leadership_list_wrong(""));
	assert_string_equal(leadership_list_wrong(" "), "A name is empty.");
	assert_string_equal(leadership_list_wrong("a,,b"), "A name is empty.");
	assert_string_equal(leadership_list_wrong(",a"), "A name is empty.");
	assert_string_equal(leadership_list_wrong("a, "), "The list must not end with a comma.");
	assert_string_equal(leadership_list_wrong("a,b, a"), "A name is there twice.");
	assert_null(leadership_list_wrong("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"));
	assert_string_equal(leadership_list_wrong("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"),
						"The list has more than 16 names.");
}

/* ---- the states ---- */

TEST(a_leadership_stands_leads_and_gives_up)
{
	world	   *w = *state;

	assert_true(run(w, "a") == INT64_MAX);
	assert_state(w, "a", LEADERSHIP_STANDING);
	assert_int_equal(w->posted, 1);
	(void) run(w, "a");
	assert_int_equal(w->posted, 1);
	assert_int_equal(named(w, "a")->since, w->now);
	answer(w, "a");
	w->now++;
	(void) run(w, "a");
	assert_state(w, "a", LEADERSHIP_LEADING);
	assert_int_equal(named(w, "a")->grant.token, 7);
	assert_int_equal(named(w, "a")->since, w->now++);
	(void) run(w, "");
	assert_state(w, "a", LEADERSHIP_GIVING_UP);
	assert_int_equal(named(w, "a")->since, w->now);
	assert_true(has_let_go(w));
	(void) run(w, "");
	assert_state(w, "a", LEADERSHIP_GIVING_UP);
	end_lease(w, "a");
	(void) run(w, "");
	assert_state(w, "a", LEADERSHIP_NONE);
	assert_int_equal(w->slots[0].generation.value % 2, 0);
}

TEST(a_name_that_comes_back_waits_for_the_end)
{
	world	   *w = *state;

	lead(w);
	(void) run(w, "");
	(void) run(w, "a");
	assert_state(w, "a", LEADERSHIP_GIVING_UP);
	end_lease(w, "a");
	(void) run(w, "a");
	assert_state(w, "a", LEADERSHIP_STANDING);
	assert_int_equal(w->posted, 2);
}

TEST(a_refused_leadership_tries_again_later)
{
	world	   *w = *state;

	w->refuses = true;
	(void) run(w, "a");
	answer(w, "a");
	assert_true(run(w, "a") == w->now + 5 * SECOND);
	assert_state(w, "a", LEADERSHIP_RESTING);
	w->now += 5 * SECOND - 1;
	assert_true(run(w, "a") == w->now + 1);
	w->now++;
	assert_true(run(w, "a") == INT64_MAX);
	assert_state(w, "a", LEADERSHIP_STANDING);
	assert_int_equal(w->posted, 2);
}

TEST(a_loss_is_acknowledged_and_the_leadership_stands_again)
{
	world	   *w = *state;

	lead(w);
	w->now += 10 * SECOND;
	(void) run(w, "a");
	assert_true(has_let_go(w));
	assert_state(w, "a", LEADERSHIP_STANDING);
	assert_int_equal(w->posted, 2);
}

/* What was granted in the same moment goes back. */
TEST(a_leadership_that_is_not_listed_any_more_wants_nothing)
{
	world	   *w = *state;

	(void) run(w, "a, b");
	answer(w, "a");
	(void) run(w, "b");
	assert_state(w, "a", LEADERSHIP_NONE);
	assert_state(w, "b", LEADERSHIP_STANDING);
	assert_true(has_let_go(w));
}

TEST(who_resigns_rests_when_the_lock_is_free)
{
	world	   *w = *state;

	lead(w);
	assert_true(leadership_resign(&w->me, w->now, "a", 60 * SECOND, 2 * SECOND));
	assert_true(has_let_go(w));
	assert_false(leadership_resign(&w->me, w->now, "a", 30 * SECOND, 0));
	w->now += 5 * SECOND;
	assert_true(run(w, "a") == INT64_MAX);
	assert_state(w, "a", LEADERSHIP_GIVING_UP);
	end_lease(w, "a");
	assert_true(run(w, "a") == w->now + 30 * SECOND);
	assert_state(w, "a", LEADERSHIP_RESTING);
	w->now += 30 * SECOND;
	(void) run(w, "a");
	assert_state(w, "a", LEADERSHIP_STANDING);

	/* This time nobody asks twice. */
	answer(w, "a");
	(void) run(w, "a");
	assert_true(leadership_resign(&w->me, w->now, "a", 20 * SECOND, 0));
	end_lease(w, "a");
	assert_true(run(w, "a") == w->now + 20 * SECOND);
}

TEST(a_follower_resigns)
{
	world	   *w = *state;

	(void) run(w, "a");
	assert_false(leadership_resign(&w->me, w->now, "a", 60 * SECOND, 0));
	assert_true(run(w, "a") == w->now + 60 * SECOND);
	assert_state(w, "a", LEADERSHIP_RESTING);
	assert_int_equal(w->slots[0].cancelled_seq.value, 1);
	assert_false(leadership_resign(&w->me, w->now, "b", 60 * SECOND, 0));
}

TEST(who_has_lost_the_lease_does_not_resign_it)
{
	world	   *w = *state;

	lead(w);
	end_lease(w, "a");
	assert_false(leadership_resign(&w->me, w->now, "a", 60 * SECOND, 0));
	assert_true(has_let_go(w));
	assert_state(w, "a", LEADERSHIP_RESTING);
}

/* Or earlier, if that is asked for meanwhile. */
TEST(who_has_joined_is_interrupted_in_time)
{
	world	   *w = *state;
	saved_lease l = {.state = LEASE_HELD,.generation = 1,.version = "v"};
	saved_hold joined = {.session = {1, 1},.lease_generation = 1,.token = 7};

	lockmgr_adopt(w->me.lm, 0, &l, "a", 1);
	lockmgr_adopt_hold(w->me.lm, 0, &joined);
	lead(w);
	assert_true(leadership_resign(&w->me, w->now, "a", 60 * SECOND, 9 * SECOND));
	assert_true(run(w, "a") == w->now + 9 * SECOND);
	assert_false(leadership_resign(&w->me, w->now, "a", 60 * SECOND, 2 * SECOND));
	assert_true(run(w, "a") == w->now + 2 * SECOND);
	assert_int_equal(w->loss, LOSS_NONE);
	w->now += 2 * SECOND;
	assert_true(run(w, "a") == INT64_MAX);	/* once */
	assert_int_equal(w->loss, LOSS_RESIGNED);
	assert_int_equal(named(w, "a")->interrupt_at, 0);
	assert_state(w, "a", LEADERSHIP_GIVING_UP);
}

/* All places are taken by leaderships that have yet to end. */
TEST(a_new_list_waits_for_the_end_of_the_old_one)
{
	world	   *w = *state;

	(void) run(w, "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16");
	answer(w, "1");
	(void) run(w, "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16");
	(void) run(w, "b,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16");
	assert_state(w, "b", LEADERSHIP_NONE);
	assert_state(w, "1", LEADERSHIP_GIVING_UP);
	end_lease(w, "1");
	(void) run(w, "b,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16");
	(void) run(w, "b,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16");
	assert_state(w, "b", LEADERSHIP_STANDING);
}

TEST(a_reader_notices_a_change)
{
	world	   *w = *state;
	leadership	copy;

	lead(w);
	assert_true(leadership_read(&w->entries[0], &copy));
	assert_int_equal(copy.state, LEADERSHIP_LEADING);
	w->entries[0].changes.value++;
	assert_false(leadership_read(&w->entries[0], &copy));
}
