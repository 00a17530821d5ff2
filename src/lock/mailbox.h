/*-------------------------------------------------------------------------
 *
 * mailbox.h
 *	  The protocol between sessions and the lock manager, through slots in
 *	  shared memory.
 *
 * A slot belongs to one session after another.  A session attaches, posts one
 * request at a time, waits for its answer or cancels it, lets go of what it holds,
 * and detaches.  The worker may be replaced by a new one at any time; the slots and
 * the directory of leases and holds remain.
 *
 * There are no locks: a process that is stopped while it holds one would stop
 * the worker, and with it every renewal.  Each word has one writer, who never
 * waits (let_go has two, and exchanges): shared/segment.h lists them.
 *
 * Every change by a session ends with a ring; the worker then reads the slot
 * (mailbox_read()).  A new worker reads every slot after it has adopted the
 * leases.  Nothing is lost with a worker: its notes of a slot only say what it
 * need not look at again.
 *
 * Numbers of requests rise over the slot's whole life, over all its sessions.
 * So a session, slot and number name a request for ever, and the mark of a hold
 * that was granted for it (mailbox_mark()) never comes twice.
 *
 * A session may announce its next requests, by their numbers: one request names what
 * those will try (lockmgr_announce()), so that all acquires are under way at once.  It then
 * posts them one after the other, and so claims what came of each, or withdraws the rest.
 * For example, request 7 announces 8, 9 and 10; the answer to 9 is "busy", so the session
 * withdraws 10.
 *
 * The worker parks a request that it may not ask yet, because nobody knows whether the
 * table is fit: it leaves the request in its slot and takes it again later.
 *
 * The races, and who wins:
 *
 *	 - Answer and cancellation.  The worker writes answer_seq, the session
 *	   cancelled_seq; then each has a full barrier and reads the other's word.
 *	   At least one of them sees both, and lets go of what was granted.  If both
 *	   do, no harm is done.  It is not enough that the worker reads cancelled_seq
 *	   later: the session's next cancellation may hide this one.
 *	 - Answer and the next cancellation.  Before the worker reads cancelled_seq, the
 *	   session may have taken the answer, posted its next request and cancelled
 *	   that.  It writes accepted_seq first, so the worker, which reads it last, sees
 *	   that what was granted is wanted.
 *	 - Answer and the session's end.  An ending session cancels what it has not taken.
 *	   So a hold that it leaves to the cluster, which its end does not end, stays only
 *	   if the session has taken the answer.  The worker reads what the session has let
 *	   go of also when that has ended.
 *	 - A new answer never overwrites one that is being read: the worker writes one
 *	   answer for each request, and the session posts the next request when it has
 *	   read that answer, or cancelled.
 *	 - Generation and request.  The worker reads the request first.  The request
 *	   carries the generation of the session that posted it.  If the slot's
 *	   generation is another one, that session has ended, and the request is
 *	   dropped.  In the other order a request of a new session could be dropped.
 *	 - Request and the session's other changes.  What a session did before it
 *	   posted a request is seen when the request is, because the worker reads
 *	   the request first; and it takes effect before the request, because the
 *	   worker handles the request last.
 *	 - The worker's end and an answer.  A worker saves a hold, then answers.  If it
 *	   died in between, the next one answers for that hold if it asks the request now,
 *	   and ends the hold if not: no session knows of it.
 *	 - What is withdrawn and the next request, also of the slot's next session: the end of a
 *	   session withdraws what it has announced.  The session cancels the last number that it
 *	   announced, then takes that number as posted, so that no other request gets a number
 *	   that a hold may have.  The worker reads the number first: it finds a request that is
 *	   cancelled.
 *	 - The worker's end and what was announced.  A hold that was granted for it has a number
 *	   that is not answered: the next worker ends it, unless the session asks for it with that
 *	   number now.  What the session asks later is as if it had not announced anything.
 *	 - Request being posted.  The worker ignores it: the ring follows.
 *	 - A slot of the directory gets another lease.  The worker sets valid_until to
 *	   0, then the generation, then the new valid_until; a session reads
 *	   valid_until, then the generation.  If that is its hold's, it has read its own
 *	   lease's deadline or 0.
 *	 - A slot gets another hold, on the same lease or another.  A session lets go by
 *	   exchanging let_go for its mark while the slot has that mark; a let_go with
 *	   another mark has no effect.  So a hold that ends cannot end the next one.
 *
 * Neither side blocks, allocates or fails.  The host passes in what this needs
 * of the world: where slots, leases and holds are, how to ring and to wake, what a
 * request contains.  There are two hosts: PostgreSQL's processes
 * (src/session/mailbox.c, src/worker/worker_mailbox.c) and the simulator.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_MAILBOX_H
#define DDBLOCK_LOCK_MAILBOX_H

#include "lock/lockmgr.h"
#include "lock/shared_word.h"

typedef struct mailbox_slot
{
	shared32	generation;		/* odd while a session uses the slot */
	shared32	let_go;			/* look at let_go of this session's holds */
	shared64	accepted_seq;	/* the last request whose answer was taken */
	shared64	cancelled_seq;	/* this request, and all before it that were not accepted */
	shared32	changes;		/* of the request, also of the part that the host copies */
	uint32_t	request_generation; /* of the session that posted it */
	uint64_t	request_seq;	/* 0: none yet */
	uint64_t	announced_seq;	/* up to request_seq: nothing is announced */
	shared64	answer_seq;		/* the request that is answered; written after the answer */
	uint32_t	granted;		/* the answer's hold, or LOCKMGR_NO_HOLD */
} mailbox_slot;

typedef struct mailbox_lease
{
	shared32	generation;		/* = lease.generation */
	shared64	valid_until;	/* = lease.valid_until */
} mailbox_lease;

typedef struct mailbox_hold
{
	shared64	mark;			/* mailbox_mark() of who has it, or had it last */
	shared64	lost;			/* the last loss here: its mark + lease_loss */
	shared64	let_go;			/* = mark: the hold is not wanted */
} mailbox_hold;

/* Where slots, leases and holds are; both sides use it.  All zero: new. */
typedef struct mailbox
{
	void	   *arg;
	mailbox_slot *(*slot) (void *arg, uint32_t number);
	mailbox_lease *(*lease) (void *arg, uint32_t index);
	mailbox_hold *(*hold) (void *arg, uint32_t index);
	void		(*ring) (void *arg, uint32_t slot);	/* the worker will read the slot */
	void		(*wake) (void *arg, uint32_t slot);	/* the session has an answer */
} mailbox;

/* What this worker has handled of a slot. */
typedef struct mailbox_note
{
	uint32_t	generation;
	uint64_t	cancelled_seq;
	uint64_t	taken_seq;
	uint64_t	parked_seq;		/* left in the slot, to be taken again */
	int64_t		parked_since;	/* 0: none is */
} mailbox_note;

typedef struct mailbox_worker
{
	const mailbox *box;
	lockmgr    *lm;
	uint32_t	slots;
	mailbox_note *notes;		/* [slots]; all zero at the worker's start */

	/* The time now: later than what a session has done before it ended. */
	int64_t		(*clock) (void *arg);

	/* Copies the slot's request.  It may change meanwhile, and is then dropped. */
	void		(*copy) (void *arg, uint32_t slot);

	/* May the copied request be asked now?  If not, it is parked. */
	bool		(*may_ask) (void *arg, int64_t now);

	/* Asks the lock manager, or DynamoDB, what was copied. */
	void		(*ask) (void *arg, int64_t now, lockmgr_session session, uint64_t seq);
} mailbox_worker;

/*
 * Names the hold that the slot's session got for its request seq.  There may be
 * 2^19 slots (PostgreSQL's MaxBackends is less than half of that); the low bits have room
 * for a lease_loss.
 */
#define MAILBOX_LOSS_BITS 3

static inline uint64_t
mailbox_mark(lockmgr_session session, uint64_t seq)
{
	return (seq << 19 | session.slot) << MAILBOX_LOSS_BITS;
}

/*
 * The session's side.
 */
extern lockmgr_session mailbox_attach(const mailbox *box, uint32_t slot);
extern void mailbox_detach(const mailbox *box, lockmgr_session me);

/* Around the host's copying of the request; returns its number. */
extern uint64_t mailbox_begin_post(const mailbox *box, lockmgr_session me);
extern void mailbox_end_post(const mailbox *box, lockmgr_session me);

/* Is there an answer?  If so, mailbox_accept() takes it: it may be read. */
extern bool mailbox_is_answered(const mailbox *box, lockmgr_session me, uint64_t seq);
extern bool mailbox_accept(const mailbox *box, lockmgr_session me, uint64_t seq);

/*
 * Gives back what the request gets. The session may post its next one at once.
 */
extern void mailbox_cancel(const mailbox *box, lockmgr_session me, uint64_t seq);

/*
 * The session announces requests, up to this number; and does not post what is left of
 * them.
 */
extern void mailbox_announce(const mailbox *box, lockmgr_session me, uint64_t last);
extern void mailbox_withdraw(const mailbox *box, lockmgr_session me);

/* The session no longer wants the hold that it got for its request seq. */
extern void mailbox_let_go(const mailbox *box, lockmgr_session me, uint64_t seq,
						   uint32_t hold_index);

/* Until when it may believe in that lease (0: no longer), and why it was lost. */
extern int64_t mailbox_valid_until(const mailbox *box, uint32_t lease_index,
								   uint32_t lease_generation);
extern lease_loss mailbox_loss(const mailbox *box, lockmgr_session me, uint64_t seq,
							   uint32_t hold_index);

/*
 * The worker's side.
 */

/* Handles what is new in the slot.  A new worker does so with every slot. */
extern void mailbox_read(mailbox_worker *worker, uint32_t slot, int64_t now);

/*
 * Of that, only what the session has let go of.  To be called, before any slot is read, for
 * all that have rung by then: so a request finds free what was let go of before it was posted.
 */
extern void mailbox_read_let_go(mailbox_worker *worker, uint32_t slot, int64_t now);

/*
 * Around the host's writing of the answer.  granted: the hold, or
 * LOCKMGR_NO_HOLD.  False: the session has cancelled or ended, no answer is
 * written, and what was granted goes back.
 */
extern bool mailbox_begin_answer(const mailbox *box, lockmgr_session session,
								 uint64_t seq, uint32_t granted);
extern void mailbox_end_answer(const mailbox *box, lockmgr_session session, uint64_t seq);

/* The request in the slot, if it is whole and not answered; without any notes. */
extern bool mailbox_peek(const mailbox *box, uint32_t slot, lockmgr_session *session,
						 uint64_t *seq);

/* Requests that were parked: since when, at the earliest (INT64_MAX: none). */
extern int64_t mailbox_oldest_parked(const mailbox_worker *worker);
extern void mailbox_retry_parked(mailbox_worker *worker, int64_t now);

/* Whether the slot's request was parked by then; the host answers it. */
extern bool mailbox_unpark(mailbox_worker *worker, uint32_t slot, int64_t since_before,
						   lockmgr_session *session, uint64_t *seq);

/* Around the host's copying of a lease into the directory. */
extern void mailbox_begin_save(mailbox_lease *words, const lease *lease);
extern void mailbox_end_save(mailbox_lease *words, const lease *lease);

/* Before the host copies a hold into the directory.  True: it is a new one. */
extern bool mailbox_save_hold(mailbox_hold *words, const hold *hold);

/* Does the holder want it no longer? */
static inline bool
mailbox_is_let_go(const mailbox_hold *words)
{
	return shared_read(&words->let_go) == shared_read(&words->mark);
}

#endif							/* DDBLOCK_LOCK_MAILBOX_H */
