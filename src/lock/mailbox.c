/*-------------------------------------------------------------------------
 *
 * mailbox.c
 *	  The protocol between sessions and the lock manager.  The races that it
 *	  decides are in mailbox.h.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/mailbox.h"

static mailbox_slot *
slot_of(const mailbox *box, lockmgr_session session)
{
	return box->slot(box->arg, session.slot);
}

lockmgr_session
mailbox_attach(const mailbox *box, uint32_t slot)
{
	lockmgr_session me = {.slot = slot};

	me.generation = shared_add(&slot_of(box, me)->generation, 1);
	return me;
}

bool
mailbox_is_answered(const mailbox *box, lockmgr_session me, uint64_t seq)
{
	bool		answered = shared_read(&slot_of(box, me)->answer_seq) == seq;

	shared_read_barrier();
	return answered;
}

/*
 * The entry may get another hold while we look.  If that one's session has let go, too, the
 * exchange fails, and the mark is checked again.  If not, our mark in let_go has no effect,
 * because it is not the entry's; the other session's mark replaces it later.
 */
void
mailbox_let_go(const mailbox *box, lockmgr_session me, uint64_t seq, uint32_t hold_index)
{
	mailbox_hold *words = box->hold(box->arg, hold_index);
	uint64_t	mark = mailbox_mark(me, seq);
	uint64_t	old = shared_read(&words->let_go);

	do
	{
		shared_read_barrier();
		if (shared_read(&words->mark) != mark)
			break;
	}
	while (!shared_compare_exchange(&words->let_go, &old, mark));
	shared_write_barrier();		/* who takes the flag sees our mark */
	shared_write(&slot_of(box, me)->let_go, 1);
	box->ring(box->arg, me.slot);
}

/* The race of answer and cancellation: writes our word first, then reads the worker's. */
void
mailbox_cancel(const mailbox *box, lockmgr_session me, uint64_t seq)
{
	mailbox_slot *slot = slot_of(box, me);

	/* The race of answer and next cancellation: accepted_seq was written before this. */
	shared_write_barrier();
	shared_write(&slot->cancelled_seq, seq);
	shared_full_barrier();
	if (mailbox_is_answered(box, me, seq) && slot->granted != LOCKMGR_NO_HOLD)
		mailbox_let_go(box, me, seq, slot->granted);
	box->ring(box->arg, me.slot);
}

void
mailbox_withdraw(const mailbox *box, lockmgr_session me)
{
	mailbox_slot *slot = slot_of(box, me);
	uint64_t	last = slot->announced_seq;

	if (last <= slot->request_seq)
		return;
	mailbox_cancel(box, me, last);
	shared_begin_change(&slot->changes);
	slot->request_seq = last;
	shared_end_change(&slot->changes);
}

/*
 * A request whose answer the session has not taken is cancelled.  If it was to leave a hold to the
 * cluster, the session's end alone would not end that hold.
 */
void
mailbox_detach(const mailbox *box, lockmgr_session me)
{
	mailbox_slot *slot = slot_of(box, me);

	mailbox_withdraw(box, me);
	if (shared_read(&slot->accepted_seq) != slot->request_seq)
		mailbox_cancel(box, me, slot->request_seq);
	(void) shared_add(&slot->generation, 1);
	box->ring(box->arg, me.slot);
}

uint64_t
mailbox_begin_post(const mailbox *box, lockmgr_session me)
{
	mailbox_slot *slot = slot_of(box, me);

	shared_begin_change(&slot->changes);
	slot->request_generation = me.generation;
	return ++slot->request_seq;
}

void
mailbox_end_post(const mailbox *box, lockmgr_session me)
{
	shared_end_change(&slot_of(box, me)->changes);
	box->ring(box->arg, me.slot);
}

bool
mailbox_accept(const mailbox *box, lockmgr_session me, uint64_t seq)
{
	if (!mailbox_is_answered(box, me, seq))
		return false;
	shared_write(&slot_of(box, me)->accepted_seq, seq);
	return true;
}

void
mailbox_announce(const mailbox *box, lockmgr_session me, uint64_t last)
{
	slot_of(box, me)->announced_seq = last;
}

/*
 * If the generation, which is read last, is that of our lease, then valid_until was our lease's,
 * or 0: the worker sets it to 0 before it changes the generation.
 */
int64_t
mailbox_valid_until(const mailbox *box, uint32_t lease_index, uint32_t lease_generation)
{
	mailbox_lease *words = box->lease(box->arg, lease_index);
	int64_t		valid_until = (int64_t) shared_read(&words->valid_until);

	shared_read_barrier();
	return shared_read(&words->generation) == lease_generation ? valid_until : 0;
}

/* LOSS_NONE if the hold is not lost, or if the worker has not noticed the loss yet. */
lease_loss
mailbox_loss(const mailbox *box, lockmgr_session me, uint64_t seq, uint32_t hold_index)
{
	uint64_t	loss = shared_read(&box->hold(box->arg, hold_index)->lost) -
		mailbox_mark(me, seq);

	return loss <= LOSS_AT_MOST ? (lease_loss) loss : LOSS_NONE;
}

/*
 * Copies the slot's request if it is new and not answered.  False if it is not, or is being
 * posted.
 */
static bool
take_request(const mailbox_worker *worker, uint32_t number, uint32_t *generation, uint64_t *seq)
{
	mailbox_slot *slot = worker->box->slot(worker->box->arg, number);
	mailbox_note *note = &worker->notes[number];
	uint32_t	before = shared_begin_read(&slot->changes);

	*generation = slot->request_generation;
	*seq = slot->request_seq;
	if (*seq <= note->taken_seq)
		return false;
	worker->copy(worker->box->arg, number);
	if (!shared_end_read(&slot->changes, before))
		return false;
	note->taken_seq = *seq;
	return shared_read(&slot->answer_seq) != *seq;
}

/* Releases what the session let go of, without answering. */
static void
read_let_go(const mailbox_worker *worker, lockmgr_session session, int64_t now)
{
	const mailbox *box = worker->box;
	uint32_t	index = lockmgr_next_hold(worker->lm, session.slot, LOCKMGR_NO_HOLD);
	uint32_t	next;

	for (; index != LOCKMGR_NO_HOLD; index = next)
	{
		next = lockmgr_next_hold(worker->lm, session.slot, index);
		if (mailbox_is_let_go(box->hold(box->arg, index)))
			lockmgr_let_go(worker->lm, now, session, index);
	}
}

/*
 * The last worker may have died when it had saved a hold and not yet answered the session.  Ends
 * such holds, because no session knows of them, but not that of the request that is resumed now.
 */
static void
end_unanswered(const mailbox_worker *worker, lockmgr_session session, uint64_t resumed,
			   int64_t now)
{
	uint64_t	answered = shared_read(&slot_of(worker->box, session)->answer_seq);
	uint32_t	index = lockmgr_next_hold(worker->lm, session.slot, LOCKMGR_NO_HOLD);
	uint32_t	next;

	for (; index != LOCKMGR_NO_HOLD; index = next)
	{
		uint64_t	seq = lockmgr_hold_seq(worker->lm, index);

		next = lockmgr_next_hold(worker->lm, session.slot, index);
		if (seq > answered && seq != resumed)
			lockmgr_let_go(worker->lm, now, session, index);
	}
}

/*
 * The races of the request with the generation, and with the session's other changes: the request
 * is read first and handled last.
 */
void
mailbox_read(mailbox_worker *worker, uint32_t number, int64_t now)
{
	mailbox_slot *slot = worker->box->slot(worker->box->arg, number);
	mailbox_note *note = &worker->notes[number];
	lockmgr_session session = {.slot = number};
	uint32_t	poster;
	uint64_t	seq;
	uint64_t	cancelled_seq;
	bool		asked = take_request(worker, number, &poster, &seq);
	bool		passes;
	bool		anew;

	session.generation = shared_read(&slot->generation);
	asked = asked && poster == session.generation;
	anew = session.generation != note->generation;
	if (anew)
	{
		lockmgr_session ended = session;

		/*
		 * If the generation is odd, a session uses the slot now, and the one before it has ended.
		 */
		ended.generation -= session.generation % 2;
		note->generation = session.generation;
		/*
		 * If a hold outlives its session, its time begins now: that must not be before the
		 * session's end.
		 */
		lockmgr_session_end(worker->lm, worker->clock(worker->box->arg), ended);
	}
	cancelled_seq = shared_read(&slot->cancelled_seq);
	if (cancelled_seq > note->cancelled_seq)
	{
		note->cancelled_seq = cancelled_seq;
		lockmgr_cancel(worker->lm, now, session, cancelled_seq);
	}
	asked = asked && seq > cancelled_seq;
	passes = asked && worker->may_ask(worker->box->arg, now);
	if (anew)
		end_unanswered(worker, session, passes ? seq : 0, now);
	/* The flag is cleared first: if a hold is let go of meanwhile, it is set again. */
	if (shared_exchange(&slot->let_go, 0) != 0 || anew)
		read_let_go(worker, session, now);
	if (!asked)
		note->parked_since = 0;
	else if (!passes)
	{
		/* The request stays in its slot; mailbox_retry_parked() takes it again. */
		if (note->parked_since == 0 || note->parked_seq != seq)
			note->parked_since = now;
		note->parked_seq = seq;
		note->taken_seq = seq - 1;
	}
	else
	{
		note->parked_since = 0;
		worker->ask(worker->box->arg, now, session, seq);
	}
}

/* If the slot has a new session, mailbox_read() must end the old one first, and does this, too. */
void
mailbox_read_let_go(mailbox_worker *worker, uint32_t number, int64_t now)
{
	mailbox_slot *slot = worker->box->slot(worker->box->arg, number);
	lockmgr_session session = {.slot = number,.generation = shared_read(&slot->generation)};

	if (session.generation == worker->notes[number].generation &&
		shared_exchange(&slot->let_go, 0) != 0)
		read_let_go(worker, session, now);
}

int64_t
mailbox_oldest_parked(const mailbox_worker *worker)
{
	int64_t		oldest = INT64_MAX;

	for (uint32_t i = 0; i < worker->slots; i++)
	{
		int64_t		since = worker->notes[i].parked_since;

		if (since != 0 && since < oldest)
			oldest = since;
	}
	return oldest;
}

void
mailbox_retry_parked(mailbox_worker *worker, int64_t now)
{
	for (uint32_t i = 0; i < worker->slots; i++)
	{
		if (worker->notes[i].parked_since != 0)
			mailbox_read(worker, i, now);
	}
}

bool
mailbox_unpark(mailbox_worker *worker, uint32_t slot, int64_t since_before,
			   lockmgr_session *session, uint64_t *seq)
{
	mailbox_note *note = &worker->notes[slot];

	if (note->parked_since == 0 || note->parked_since > since_before)
		return false;
	note->parked_since = 0;
	note->taken_seq = note->parked_seq;
	*session = (lockmgr_session) {.slot = slot,.generation = note->generation};
	*seq = note->parked_seq;
	return true;
}

bool
mailbox_peek(const mailbox *box, uint32_t number, lockmgr_session *session, uint64_t *seq)
{
	mailbox_slot *slot = box->slot(box->arg, number);
	uint32_t	before = shared_begin_read(&slot->changes);

	*session = (lockmgr_session) {.slot = number,.generation = slot->request_generation};
	*seq = slot->request_seq;
	return shared_end_read(&slot->changes, before) && *seq != shared_read(&slot->answer_seq);
}

/*
 * A session that cancels or ends after these checks does not read the answer.
 */
bool
mailbox_begin_answer(const mailbox *box, lockmgr_session session, uint64_t seq,
					 uint32_t granted)
{
	mailbox_slot *slot = slot_of(box, session);

	/* The next session of the slot may be reading an answer of its own. */
	if (shared_read(&slot->generation) != session.generation ||
		shared_read(&slot->cancelled_seq) >= seq)
	{
		if (granted != LOCKMGR_NO_HOLD)
			mailbox_let_go(box, session, seq, granted);
		return false;
	}
	slot->granted = granted;
	return true;
}

/* The races of answer and cancellation: writes our word first, then reads the session's. */
void
mailbox_end_answer(const mailbox *box, lockmgr_session session, uint64_t seq)
{
	mailbox_slot *slot = slot_of(box, session);

	shared_write_barrier();
	shared_write(&slot->answer_seq, seq);
	shared_full_barrier();
	box->wake(box->arg, session.slot);
	if (slot->granted == LOCKMGR_NO_HOLD || shared_read(&slot->cancelled_seq) < seq)
		return;
	shared_read_barrier();
	if (shared_read(&slot->accepted_seq) != seq)
		mailbox_let_go(box, session, seq, slot->granted);
}

/* Until the new deadline is written, nobody believes in the new lease. */
void
mailbox_begin_save(mailbox_lease *words, const saved_lease *lease)
{
	if (shared_read(&words->generation) == lease->generation)
		return;
	shared_write(&words->valid_until, 0);
	shared_write_barrier();
	shared_write(&words->generation, lease->generation);
}

void
mailbox_end_save(mailbox_lease *words, const saved_lease *lease)
{
	shared_write_barrier();
	shared_write(&words->valid_until, (uint64_t) lease->valid_until);
}

/* The entry keeps the mark of a hold that has ended, so that nobody else's let_go has an effect. */
bool
mailbox_save_hold(mailbox_hold *words, const saved_hold *hold)
{
	uint64_t	mark = mailbox_mark(hold->session, hold->seq);
	bool		given = hold->session.generation != 0 && shared_read(&words->mark) != mark;

	if (given)
		shared_write(&words->mark, mark);
	if (hold->loss != LOSS_NONE)
		shared_write(&words->lost, mark + (uint64_t) hold->loss);
	return given;
}
