/*-------------------------------------------------------------------------
 *
 * test_mailbox.c
 *	  The protocol between sessions and the lock manager, step by step.
 *
 * Both sides share the slots of a small world.  What happens between two steps
 * of one side happens in a callback of the host.
 *
 *-------------------------------------------------------------------------
 */
#define BEFORE_EACH set_up
#define AFTER_EACH tear_down
#include "../unit.h"
#include "lock/mailbox.h"

#define SLOTS 2
#define LEASES 2
#define NOW 1000
#define LATER 1500	/* when the worker has seen that a session has ended */

typedef struct world
{
	mailbox		box;
	mailbox_worker worker;
	mailbox_slot slots[SLOTS];
	mailbox_lease leases[LEASES];
	mailbox_hold holds[LEASES];
	mailbox_note notes[SLOTS];
	int			rings;
	bool		parks;
	int			asked;			/* so many; the last one: */
	lockmgr_session session;
	uint64_t	seq;
	int64_t		ends_at;		/* of the hold saved last */
	void		(*meanwhile) (struct world *w); /* once: while it copies or wakes, */
	int			look;			/* or when it looks for a slot for the nth time */
} world;

static void
meanwhile(world *w)
{
	void		(*act) (world *) = w->meanwhile;

	w->meanwhile = NULL;
	if (act != NULL)
		act(w);
}

static mailbox_slot *
slot(void *arg, uint32_t number)
{
	world	   *w = arg;

	if (w->look > 0 && --w->look == 0)
		meanwhile(w);
	return &w->slots[number];
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
ring(void *arg, uint32_t number)
{
	(void) number;
	((world *) arg)->rings++;
}

static void
wake(void *arg, uint32_t number)
{
	(void) number;
	meanwhile(arg);
}

static int64_t
clock_later(void *arg)
{
	(void) arg;
	return LATER;
}

static void
copy(void *arg, uint32_t number)
{
	(void) number;
	meanwhile(arg);
}

static bool
may_ask(void *arg, int64_t now)
{
	(void) now;
	return !((world *) arg)->parks;
}

static void
ask(void *arg, int64_t now, lockmgr_session session, uint64_t seq)
{
	world	   *w = arg;

	(void) now;
	w->asked++;
	w->session = session;
	w->seq = seq;
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
	(void) index;
	((world *) arg)->ends_at = saved->ends_at;
}

/* The manager sends and answers nothing here: no lock is ever asked of it. */
static int
set_up(void **state)
{
	static world w;
	lockmgr_config config = {.owner = "us/1",.max_leases = LEASES,.max_sessions = SLOTS};
	lockmgr_host host = {
		.arg = &w, .random = host_random, .save = host_save, .save_hold = host_save_hold,
	};

	memset(&w, 0, sizeof(w));
	w.box = (mailbox) {&w, slot, lease_words, hold_words, ring, wake};
	w.worker = (mailbox_worker) {
		.box = &w.box, .lm = lockmgr_new(&config, &host), .slots = SLOTS, .notes = w.notes,
		.clock = clock_later, .copy = copy, .may_ask = may_ask, .ask = ask,
	};
	*state = &w;
	return w.worker.lm == NULL ? -1 : 0;
}

static int
tear_down(void **state)
{
	lockmgr_free(((world *) *state)->worker.lm);
	return 0;
}

static uint64_t
post(world *w, lockmgr_session me)
{
	uint64_t	seq = mailbox_begin_post(&w->box, me);

	mailbox_end_post(&w->box, me);
	return seq;
}

static void
answer(world *w, lockmgr_session session, uint64_t seq, uint32_t granted)
{
	assert_true(mailbox_begin_answer(&w->box, session, seq, granted));
	mailbox_end_answer(&w->box, session, seq);
}

/* As the worker saves a hold that it grants. */
static saved_hold
grant(world *w, lockmgr_session session, uint64_t seq)
{
	saved_hold granted = {.session = session,.seq = seq,.lease_index = 1};

	assert_true(mailbox_save_hold(&w->holds[1], &granted));
	return granted;
}

static void
save_lease(world *w, uint32_t generation, int64_t valid_until)
{
	saved_lease l = {.generation = generation,.valid_until = valid_until};

	mailbox_begin_save(&w->leases[1], &l);
	mailbox_end_save(&w->leases[1], &l);
}

TEST(a_request_is_asked_once)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);
	uint64_t	seq = post(w, me);

	assert_int_equal(w->rings, 1);
	assert_false(mailbox_accept(&w->box, me, seq));
	mailbox_read(&w->worker, 1, NOW);
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 1);
	assert_int_equal(w->seq, seq);
	assert_int_equal(w->session.generation, me.generation);
	assert_int_equal(w->session.slot, 1);

	/* By a new worker again, unless it is answered. */
	memset(w->notes, 0, sizeof(w->notes));
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 2);
	answer(w, me, seq, LOCKMGR_NO_HOLD);
	memset(w->notes, 0, sizeof(w->notes));
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 2);
	assert_false(mailbox_is_answered(&w->box, me, seq + 1));
	assert_true(mailbox_accept(&w->box, me, seq));
	assert_int_equal(post(w, me), seq + 1);
}

TEST(a_cancelled_request_is_not_asked)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);
	uint64_t	seq = post(w, me);

	mailbox_cancel(&w->box, me, seq);
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 0);
	(void) post(w, me);
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 1);
}

TEST(a_request_is_asked_for_nobody_else)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	(void) post(w, me);
	mailbox_detach(&w->box, me);
	assert_int_equal(w->rings, 3);	/* it cancels the request, and ends */
	mailbox_read(&w->worker, 1, NOW);
	mailbox_detach(&w->box, mailbox_attach(&w->box, 1));
	me = mailbox_attach(&w->box, 1);
	memset(w->notes, 0, sizeof(w->notes));
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 0);
	assert_int_equal(w->notes[1].generation, me.generation);
}

static void
replace_session(world *w)
{
	mailbox_detach(&w->box, (lockmgr_session) {1, w->slots[1].generation.value});
	(void) post(w, mailbox_attach(&w->box, 1));
}

static void
post_again(world *w)
{
	(void) post(w, (lockmgr_session) {1, w->slots[1].generation.value});
}

/* What is copied while it changes is dropped, and asked at the next ring. */
TEST(a_request_that_changes_is_asked_when_it_is_whole)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	(void) mailbox_begin_post(&w->box, me);
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 0);
	mailbox_end_post(&w->box, me);
	w->meanwhile = post_again;
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 0);
	w->meanwhile = replace_session;
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 0);
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 1);
	assert_int_equal(w->seq, 3);
	assert_int_equal(w->session.generation, me.generation + 2);
}

/* The first look is at the request, the second at the generation. */
TEST(a_request_of_a_session_that_has_just_come_is_asked)
{
	for (int look = 1; look <= 2; look++)
	{
		world	   *w = *state;

		(void) post(w, mailbox_attach(&w->box, 1));
		w->look = look;
		w->meanwhile = replace_session;
		mailbox_read(&w->worker, 1, NOW);
		mailbox_read(&w->worker, 1, NOW);
		assert_int_equal(w->asked, look);
		assert_int_equal(w->seq, 2 * look);
		mailbox_detach(&w->box, (lockmgr_session) {1, w->slots[1].generation.value});
		mailbox_read(&w->worker, 1, NOW);
	}
}

TEST(requests_are_parked_and_taken_again)
{
	world	   *w = *state;
	lockmgr_session session;
	uint64_t	seq;

	(void) post(w, mailbox_attach(&w->box, 0));
	(void) post(w, mailbox_attach(&w->box, 1));
	assert_true(mailbox_oldest_parked(&w->worker) == INT64_MAX);
	w->parks = true;
	mailbox_read(&w->worker, 1, NOW);
	mailbox_read(&w->worker, 0, NOW + 1);
	mailbox_read(&w->worker, 1, NOW + 2);
	assert_int_equal(mailbox_oldest_parked(&w->worker), NOW);
	assert_false(mailbox_unpark(&w->worker, 0, NOW, &session, &seq));
	assert_true(mailbox_unpark(&w->worker, 1, NOW, &session, &seq));
	assert_int_equal(session.slot, 1);
	assert_int_equal(seq, 1);
	assert_int_equal(mailbox_oldest_parked(&w->worker), NOW + 1);
	assert_false(mailbox_unpark(&w->worker, 1, NOW + 2, &session, &seq));
	w->parks = false;
	mailbox_retry_parked(&w->worker, NOW + 3);
	assert_int_equal(w->asked, 1);
	assert_int_equal(w->session.slot, 0);
	assert_true(mailbox_oldest_parked(&w->worker) == INT64_MAX);
}

TEST(the_oldest_that_is_parked_counts)
{
	world	   *w = *state;

	w->parks = true;
	for (uint32_t i = 0; i < SLOTS; i++)
	{
		(void) post(w, mailbox_attach(&w->box, i));
		mailbox_read(&w->worker, i, NOW + i);
	}
	assert_int_equal(mailbox_oldest_parked(&w->worker), NOW);
}

/* The session has given up the one before, which the worker has not heard of yet. */
TEST(a_request_is_parked_from_when_it_came)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);
	lockmgr_session session;
	uint64_t	seq;

	w->parks = true;
	(void) post(w, me);
	mailbox_read(&w->worker, 1, NOW);
	mailbox_cancel(&w->box, me, 1);
	(void) post(w, me);
	mailbox_read(&w->worker, 1, NOW + 5);
	assert_false(mailbox_unpark(&w->worker, 1, NOW + 4, &session, &seq));
	assert_true(mailbox_unpark(&w->worker, 1, NOW + 5, &session, &seq));
	assert_int_equal(session.generation, me.generation);
	assert_int_equal(seq, 2);
	mailbox_read(&w->worker, 1, NOW + 6);
	assert_true(mailbox_oldest_parked(&w->worker) == INT64_MAX);

	/* One that is given up is parked no longer. */
	(void) post(w, me);
	mailbox_read(&w->worker, 1, NOW + 7);
	assert_int_equal(mailbox_oldest_parked(&w->worker), NOW + 7);
	mailbox_cancel(&w->box, me, 3);
	mailbox_read(&w->worker, 1, NOW + 8);
	assert_true(mailbox_oldest_parked(&w->worker) == INT64_MAX);
}

/* As a worker without a place refuses them. */
TEST(a_request_can_be_answered_unread)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);
	lockmgr_session session;
	uint64_t	seq;

	assert_false(mailbox_peek(&w->box, 1, &session, &seq));
	(void) mailbox_begin_post(&w->box, me);
	assert_false(mailbox_peek(&w->box, 1, &session, &seq));
	mailbox_end_post(&w->box, me);
	assert_true(mailbox_peek(&w->box, 1, &session, &seq));
	assert_int_equal(session.generation, me.generation);
	answer(w, session, seq, LOCKMGR_NO_HOLD);
	assert_true(mailbox_is_answered(&w->box, me, seq));
	assert_false(mailbox_peek(&w->box, 1, &session, &seq));
}

static void
cancel_first(world *w)
{
	mailbox_cancel(&w->box, (lockmgr_session) {1, 1}, 1);
}

static void
accept_then_cancel_next(world *w)
{
	lockmgr_session me = {1, 1};

	assert_true(mailbox_accept(&w->box, me, 1));
	mailbox_cancel(&w->box, me, post(w, me));
}

TEST(a_grant_that_is_not_wanted_goes_back)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);
	uint64_t	seq = post(w, me);

	/* Answered first. */
	(void) grant(w, me, seq);
	answer(w, me, seq, 1);
	assert_false(mailbox_is_let_go(&w->holds[1]));
	mailbox_cancel(&w->box, me, seq);
	assert_true(mailbox_is_let_go(&w->holds[1]));
	assert_int_equal(w->slots[1].let_go.value, 1);

	/* Cancelled first. */
	seq = post(w, me);
	mailbox_cancel(&w->box, me, seq);
	(void) grant(w, me, seq);
	assert_false(mailbox_is_let_go(&w->holds[1]));
	assert_false(mailbox_begin_answer(&w->box, me, seq, 1));
	assert_true(mailbox_is_let_go(&w->holds[1]));
}

TEST(with_a_refusal_nothing_goes_back)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	answer(w, me, post(w, me), LOCKMGR_NO_HOLD);
	mailbox_cancel(&w->box, me, 1);
	assert_int_equal(w->slots[1].let_go.value, 0);

	/* The session sees no answer yet. */
	assert_true(mailbox_begin_answer(&w->box, me, post(w, me), LOCKMGR_NO_HOLD));
	mailbox_cancel(&w->box, me, 2);
	mailbox_end_answer(&w->box, me, 2);
	assert_int_equal(w->slots[1].let_go.value, 0);
}

TEST(the_next_cancellation_takes_nothing_back)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	(void) grant(w, me, post(w, me));
	w->meanwhile = accept_then_cancel_next;
	answer(w, me, 1, 1);
	assert_int_equal(w->slots[1].cancelled_seq.value, 2);
	assert_false(mailbox_is_let_go(&w->holds[1]));
}

TEST(a_cancellation_while_it_is_answered_takes_back)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	(void) grant(w, me, post(w, me));
	w->meanwhile = cancel_first;
	answer(w, me, 1, 1);
	assert_true(mailbox_is_let_go(&w->holds[1]));
	mailbox_detach(&w->box, me);
	assert_false(mailbox_begin_answer(&w->box, me, 2, LOCKMGR_NO_HOLD));
}

/* The session sees no answer yet, so the worker takes it back. */
TEST(a_cancellation_just_before_the_answer_takes_back)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);
	uint64_t	seq = post(w, me);

	(void) grant(w, me, seq);
	assert_true(mailbox_begin_answer(&w->box, me, seq, 1));
	mailbox_cancel(&w->box, me, seq);
	assert_false(mailbox_is_let_go(&w->holds[1]));
	mailbox_end_answer(&w->box, me, seq);
	assert_true(mailbox_is_let_go(&w->holds[1]));
}

TEST(a_hold_is_valid_on_its_own_lease)
{
	world	   *w = *state;
	saved_lease next = {.generation = 5};

	save_lease(w, 4, 5000);
	assert_int_equal(mailbox_valid_until(&w->box, 1, 4), 5000);
	assert_int_equal(mailbox_valid_until(&w->box, 1, 3), 0);
	save_lease(w, 4, 6000);
	assert_int_equal(mailbox_valid_until(&w->box, 1, 4), 6000);

	/* While another lease takes the slot, nobody believes in either. */
	mailbox_begin_save(&w->leases[1], &next);
	assert_int_equal(mailbox_valid_until(&w->box, 1, 4), 0);
	assert_int_equal(mailbox_valid_until(&w->box, 1, 5), 0);
	save_lease(w, 5, 7000);
	assert_int_equal(mailbox_valid_until(&w->box, 1, 4), 0);
	assert_int_equal(mailbox_valid_until(&w->box, 1, 5), 7000);
}

TEST(a_hold_says_whose_it_is)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);
	lockmgr_session other = mailbox_attach(&w->box, 0);
	saved_hold mine = grant(w, me, 7);
	saved_hold none = {.seq = 0};

	assert_false(mailbox_save_hold(&w->holds[1], &mine));
	mine.loss = LOSS_TAKEN;
	assert_false(mailbox_save_hold(&w->holds[1], &mine));
	assert_int_equal(mailbox_loss(&w->box, me, 7, 1), LOSS_TAKEN);
	assert_int_equal(mailbox_loss(&w->box, other, 7, 1), LOSS_NONE);

	/* It is another's: letting go has no effect, and the loss is known. */
	assert_false(mailbox_save_hold(&w->holds[1], &none));
	(void) grant(w, other, 3);
	mailbox_let_go(&w->box, me, 7, 1);
	assert_false(mailbox_is_let_go(&w->holds[1]));
	assert_int_equal(mailbox_loss(&w->box, me, 7, 1), LOSS_TAKEN);
	mailbox_let_go(&w->box, other, 3, 1);
	assert_true(mailbox_is_let_go(&w->holds[1]));
}

TEST(every_loss_reaches_the_session)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);
	saved_hold mine = grant(w, me, 7);

	for (int loss = LOSS_UNREACHABLE; loss <= LOSS_AT_MOST; loss++)
	{
		mine.loss = (lease_loss) loss;
		assert_false(mailbox_save_hold(&w->holds[1], &mine));
		assert_int_equal(mailbox_loss(&w->box, me, 7, 1), loss);
		assert_int_equal(mailbox_loss(&w->box, me, 8, 1), LOSS_NONE);
	}
}

/* As a new worker finds it; the session's request 1 may be asked or not. */
static bool
keeps_adopted_hold(world *w, lockmgr_session me, bool parks)
{
	saved_lease l = {.state = LEASE_HELD,.generation = 3,.version = "v"};
	saved_hold h = grant(w, me, post(w, me));

	h.lease_generation = l.generation;
	lockmgr_adopt(w->worker.lm, 1, &l, "lock", 4);
	lockmgr_adopt_hold(w->worker.lm, 1, &h);
	w->parks = parks;
	mailbox_read(&w->worker, 1, NOW);
	return lockmgr_next_hold(w->worker.lm, 1, LOCKMGR_NO_HOLD) == 1;
}

TEST(a_hold_that_was_not_answered_ends_with_its_worker)
{
	world	   *w = *state;

	assert_false(keeps_adopted_hold(w, mailbox_attach(&w->box, 1), true));
	assert_int_equal(w->asked, 0);
}

TEST(a_hold_that_was_not_answered_is_for_the_request_that_is_asked)
{
	world	   *w = *state;

	assert_true(keeps_adopted_hold(w, mailbox_attach(&w->box, 1), false));
	assert_int_equal(w->asked, 1);
}

TEST(a_hold_that_was_answered_stays)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	w->slots[1].answer_seq.value = 1;
	assert_true(keeps_adopted_hold(w, me, true));
}

/* The next cancellation hides the one that the worker has not seen. */
TEST(a_hold_that_was_cancelled_ends_with_its_worker)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	mailbox_cancel(&w->box, me, 1);
	mailbox_cancel(&w->box, me, 2);
	assert_false(keeps_adopted_hold(w, me, true));
}

/* Before the requests of others; its own waits, and so does what a new session has let go of. */
TEST(what_was_let_go_of_is_read_ahead)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	w->slots[1].answer_seq.value = 1;
	assert_true(keeps_adopted_hold(w, me, false));
	assert_int_equal(w->asked, 0);
	w->rings = 0;
	mailbox_let_go(&w->box, me, 1, 1);
	assert_int_equal(w->rings, 1);
	mailbox_read_let_go(&w->worker, 0, NOW);
	assert_int_equal(lockmgr_next_hold(w->worker.lm, 1, LOCKMGR_NO_HOLD), 1);
	(void) post(w, me);
	mailbox_read_let_go(&w->worker, 1, NOW);
	assert_int_equal(lockmgr_next_hold(w->worker.lm, 1, LOCKMGR_NO_HOLD), LOCKMGR_NO_HOLD);
	assert_int_equal(w->asked, 0);
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 1);
	replace_session(w);
	w->slots[1].let_go.value = 1;
	mailbox_read_let_go(&w->worker, 1, NOW);
	assert_int_equal(w->slots[1].let_go.value, 1);
}

TEST(what_was_let_go_of_is_read_with_its_slot)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	w->slots[1].answer_seq.value = 1;
	assert_true(keeps_adopted_hold(w, me, false));
	mailbox_let_go(&w->box, me, 1, 1);
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(lockmgr_next_hold(w->worker.lm, 1, LOCKMGR_NO_HOLD), LOCKMGR_NO_HOLD);
}

/* The session's request 1 was to detach the hold; its worker knows the hold so. */
static void
detach_hold(world *w, lockmgr_session me)
{
	saved_lease l = {.state = LEASE_HELD,.generation = 3,.version = "v",.detached = true};
	saved_hold h = grant(w, me, post(w, me));

	h.lease_generation = l.generation;
	h.ends_at = NOW * 1000;
	lockmgr_adopt(w->worker.lm, 1, &l, "lock", 4);
	lockmgr_adopt_hold(w->worker.lm, 1, &h);
}

static bool
has_detached(world *w)
{
	mailbox_read(&w->worker, 1, NOW);
	return lockmgr_next_hold(w->worker.lm, 1, LOCKMGR_NO_HOLD) == 1;
}

/* The last worker had taken the flag, and died. */
TEST(what_was_let_go_of_is_read_by_the_next_worker)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	detach_hold(w, me);
	answer(w, me, 1, 1);
	assert_true(mailbox_accept(&w->box, me, 1));
	mailbox_let_go(&w->box, me, 1, 1);
	w->slots[1].let_go.value = 0;
	assert_false(has_detached(w));
}

/* The session has been told, and then ends; others follow it. */
TEST(a_detached_hold_stays_if_its_session_has_taken_the_answer)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	detach_hold(w, me);
	answer(w, me, 1, 1);
	assert_true(mailbox_accept(&w->box, me, 1));
	assert_true(has_detached(w));
	mailbox_detach(&w->box, me);
	assert_true(has_detached(w));
	replace_session(w);
	mailbox_detach(&w->box, (lockmgr_session) {1, w->slots[1].generation.value});
	assert_true(has_detached(w));
	memset(w->notes, 0, sizeof(w->notes));
	assert_true(has_detached(w));
}

/* The worker read its clock, and then the session answered, and ended. */
TEST(a_hold_outlives_its_session_from_when_its_end_was_seen)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);
	saved_lease l = {.state = LEASE_HELD,.generation = 3,.version = "v",.valid_until = 2 * LATER};
	saved_hold h = grant(w, me, post(w, me));

	h.lease_generation = l.generation;
	h.outlive_time_us = 100;
	lockmgr_adopt(w->worker.lm, 1, &l, "lock", 4);
	lockmgr_adopt_hold(w->worker.lm, 1, &h);
	answer(w, me, 1, 1);
	assert_true(mailbox_accept(&w->box, me, 1));
	mailbox_read(&w->worker, 1, NOW);
	mailbox_detach(&w->box, me);
	assert_true(has_detached(w));
	assert_int_equal(w->ends_at, LATER + h.outlive_time_us);
}

/* The worker reads the slot only when the session has gone, or another one has come. */
TEST(a_detached_hold_ends_if_its_session_has_cancelled_the_request)
{
	for (int next = 0; next < 2; next++)
	{
		world	   *w = *state;
		lockmgr_session me = mailbox_attach(&w->box, 1);

		detach_hold(w, me);
		answer(w, me, 1, 1);
		mailbox_cancel(&w->box, me, 1);
		mailbox_detach(&w->box, me);
		if (next == 1)
			(void) mailbox_attach(&w->box, 1);
		assert_false(has_detached(w));
		tear_down(state);
		set_up(state);
	}
}

TEST(a_detached_hold_ends_if_its_session_ends_before_it_takes_the_answer)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	detach_hold(w, me);
	answer(w, me, 1, 1);
	mailbox_detach(&w->box, me);
	assert_false(has_detached(w));
}

TEST(a_detached_hold_ends_if_its_session_has_ended_before_the_answer)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);

	detach_hold(w, me);
	mailbox_detach(&w->box, me);
	assert_false(mailbox_begin_answer(&w->box, me, 1, 1));
	assert_false(has_detached(w));
}

/* The worker died before it answered; the session lives on, or has ended. */
TEST(a_detached_hold_that_was_not_answered_ends_with_its_worker)
{
	for (int ends = 0; ends < 2; ends++)
	{
		world	   *w = *state;
		lockmgr_session me = mailbox_attach(&w->box, 1);

		detach_hold(w, me);
		if (ends == 0)
			mailbox_cancel(&w->box, me, 1);
		else
			mailbox_detach(&w->box, me);
		assert_false(has_detached(w));
		tear_down(state);
		set_up(state);
	}
}

/* The session has announced requests 2 to 4, and has posted none of them. */
static lockmgr_session
announce(world *w)
{
	lockmgr_session me = mailbox_attach(&w->box, 1);
	uint64_t	seq = post(w, me);

	mailbox_read(&w->worker, 1, NOW);
	answer(w, me, seq, LOCKMGR_NO_HOLD);
	assert_true(mailbox_accept(&w->box, me, seq));
	mailbox_announce(&w->box, me, seq + 3);
	return me;
}

TEST(what_is_withdrawn_is_not_asked)
{
	world	   *w = *state;
	lockmgr_session me = announce(w);
	lockmgr_session session;
	uint64_t	seq;

	mailbox_withdraw(&w->box, me);
	mailbox_read(&w->worker, 1, NOW);
	memset(w->notes, 0, sizeof(w->notes));
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 1);
	assert_true(mailbox_peek(&w->box, 1, &session, &seq));
	assert_false(mailbox_begin_answer(&w->box, session, seq, LOCKMGR_NO_HOLD));

	/* No other request gets their numbers. */
	assert_int_equal(post(w, me), 5);
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 2);
	assert_int_equal(w->seq, 5);
}

/* The worker reads the slot in the middle. */
static void
read_slot(world *w)
{
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 1);
}

TEST(nothing_is_asked_while_it_is_withdrawn)
{
	for (int look = 1; look < 8; look++)
	{
		world	   *w = *state;
		lockmgr_session me = announce(w);

		w->meanwhile = read_slot;
		w->look = look;
		mailbox_withdraw(&w->box, me);
		w->look = 0;
		read_slot(w);
		tear_down(state);
		set_up(state);
	}
}

/* Also if it posts one of them, and ends before it has the answer. */
TEST(the_end_of_a_session_withdraws_what_it_has_announced)
{
	for (int posts = 0; posts < 2; posts++)
	{
		world	   *w = *state;
		lockmgr_session me = announce(w);

		if (posts == 1)
			assert_int_equal(post(w, me), 2);
		mailbox_detach(&w->box, me);
		me = mailbox_attach(&w->box, 1);
		assert_int_equal(post(w, me), 5);
		mailbox_detach(&w->box, me);
		assert_int_equal(post(w, mailbox_attach(&w->box, 1)), 6);
		tear_down(state);
		set_up(state);
	}
}

TEST(what_was_posted_is_not_withdrawn)
{
	world	   *w = *state;
	lockmgr_session me = announce(w);

	for (uint64_t seq = 2; seq <= 4; seq++)
		assert_int_equal(post(w, me), seq);
	mailbox_withdraw(&w->box, me);
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(w->asked, 2);
	assert_int_equal(w->seq, 4);
}

TEST(a_hold_that_was_announced_and_not_claimed_ends_with_its_worker)
{
	world	   *w = *state;
	lockmgr_session me = mailbox_attach(&w->box, 1);
	saved_lease l = {.state = LEASE_HELD,.generation = 3,.version = "v"};
	saved_hold h = grant(w, me, 3);

	answer(w, me, post(w, me), LOCKMGR_NO_HOLD);
	h.lease_generation = l.generation;
	lockmgr_adopt(w->worker.lm, 1, &l, "lock", 4);
	lockmgr_adopt_hold(w->worker.lm, 1, &h);
	mailbox_read(&w->worker, 1, NOW);
	assert_int_equal(lockmgr_next_hold(w->worker.lm, 1, LOCKMGR_NO_HOLD), LOCKMGR_NO_HOLD);
}
