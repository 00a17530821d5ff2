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
 * The races, and how each is decided:
 *
 *	 - Answer and cancellation.  The worker writes answer_seq, then reads cancelled_seq.  The
 *	   session writes cancelled_seq, then reads answer_seq.  Each has a full barrier in
 *	   between, so at least one of them sees both words, and lets go of what was granted.  If
 *	   both do, no harm is done.  It would not be enough that the worker reads cancelled_seq
 *	   when it next reads the slot: by then the session may have cancelled its next request, and
 *	   the worker would only let go of what was granted for that one.
 *	 - Answer and the next cancellation.  The worker writes the answer to request 5.  Then the
 *	   session takes that answer, posts request 6, and cancels it.  Then the worker reads
 *	   cancelled_seq, which is 6, so request 5 seems to be cancelled.  But the session has
 *	   written accepted_seq before cancelled_seq, and the worker reads accepted_seq last: it is
 *	   5, so what was granted for request 5 is wanted.
 *	 - Answer and the session's end.  A session may leave a hold to the cluster, and end; its
 *	   end does not end such a hold.  An ending session cancels a request whose answer it has not
 *	   taken, so the hold stays only if the session has taken the answer.  The worker looks for
 *	   holds that the session has let go of even if the session has ended.
 *	 - A new answer never overwrites one that is being read.  The worker writes one
 *	   answer for each request, and the session posts its next request only when it has
 *	   read that answer or cancelled.
 *	 - Generation and request.  The worker reads the request, then the slot's generation.  The
 *	   request carries the generation of the session that posted it.  If the slot's is
 *	   another one, that session has ended, and the request is dropped.  In the other order: the
 *	   worker reads the generation, then the session ends, and the slot's next session posts a
 *	   request; then the worker reads that request, and drops it by mistake.
 *	 - Request and the session's other changes.  If the worker sees a request, it also sees
 *	   what the session did before (cancelling, letting go), because it reads the request
 *	   first.  It handles the request last, so the other changes take effect before.
 *	 - The worker's end and an answer.  A worker saves a hold, then answers.  If it dies in
 *	   between, no session knows of that hold.  If the request is asked again when the next
 *	   worker starts, that worker answers it with this hold; if not, it ends the hold.
 *	 - A withdrawal and the next request, also of the slot's next session.  (The end of a
 *	   session withdraws what it has announced.)  The session cancels the last number that it
 *	   announced, then counts that number as posted, so that no other request gets a number
 *	   that a hold may have.  The worker reads the number first, so if it finds it, it also finds
 *	   that it is cancelled.
 *	 - The worker's end and an announcement.  A hold that was granted for an announced request
 *	   has a number that is not answered.  The next worker ends it, unless the session has posted
 *	   the request with that number.  Later requests are as if they had not been announced.
 *	 - A request that is being posted.  The worker ignores it, because the ring follows.
 *	 - An entry of the lease directory gets another lease.  The worker sets valid_until to 0,
 *	   then the generation, then the new valid_until.  A session reads valid_until, then the
 *	   generation.  If the generation is that of its own lease, it has read that lease's deadline,
 *	   or 0.
 *	 - An entry of the directory gets another hold, on the same lease or another.  A session lets
 *	   go by writing its mark to let_go, in one step with checking that nobody else has written
 *	   there, while the entry has that mark.  A let_go with another mark has no effect.  So a
 *	   session whose hold ends cannot end the next hold.
 *
 * Neither side blocks, allocates or fails.  The host passes in what this needs
 * of the world: where slots, leases and holds are, how to ring and to wake, what a
 * request contains.  There are two hosts: PostgreSQL's processes
 * (src/session/ask_worker.c, src/worker/worker_mailbox.c) and the simulator.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_MAILBOX_H
#define DDBLOCK_LOCK_MAILBOX_H

#include "lock/lockmgr.h"
#include "base/shared_word.h"

typedef struct mailbox_slot
{
	shared32	generation;		/* odd while a session uses the slot */
	shared32	let_go;			/* the worker must look at let_go of this session's holds */
	shared64	accepted_seq;	/* the last request whose answer was taken */
	shared64	cancelled_seq;	/* this request, and all before it that were not accepted */
	shared32	changes;		/* counter of changes of the request, also of the part that the
								 * host copies */
	uint32_t	request_generation; /* of the session that posted the request */
	uint64_t	request_seq;	/* 0: none yet */
	uint64_t	announced_seq;	/* the last announced request; if it is not above request_seq,
								 * nothing is announced */
	shared64	answer_seq;		/* the request that was answered last; written after the answer */
	uint32_t	granted;		/* the answer's hold, or LOCKMGR_NO_HOLD */
} mailbox_slot;

typedef struct mailbox_lease
{
	shared32	generation;		/* = lease.generation */
	shared64	valid_until;	/* = lease.valid_until */
} mailbox_lease;

typedef struct mailbox_hold
{
	shared64	mark;			/* mailbox_mark() of who has the hold, or had it last */
	shared64	lost;			/* the last loss in this entry: the mark of the lost hold +
								 * lease_loss */
	shared64	let_go;			/* a mark: if it is the one above, the hold is not wanted any
								 * more */
} mailbox_hold;

/* Where slots, leases and holds are, for both sides.  New ones are all zero. */
typedef struct mailbox
{
	void	   *arg;
	mailbox_slot *(*slot) (void *arg, uint32_t number);
	mailbox_lease *(*lease) (void *arg, uint32_t index);
	mailbox_hold *(*hold) (void *arg, uint32_t index);
	void		(*ring) (void *arg, uint32_t slot);	/* the worker will read the slot */
	void		(*wake) (void *arg, uint32_t slot);	/* the session has an answer */
} mailbox;

/* What this worker has handled of a slot, and need not look at again. */
typedef struct mailbox_note
{
	uint32_t	generation;
	uint64_t	cancelled_seq;
	uint64_t	taken_seq;
	uint64_t	parked_seq;		/* the request that is parked: left in its slot until may_ask()
								 * allows it */
	int64_t		parked_since;	/* when a request was parked; 0: none is */
} mailbox_note;

typedef struct mailbox_worker
{
	const mailbox *box;
	lockmgr    *lm;
	uint32_t	slots;
	mailbox_note *notes;		/* [slots]; all zero at the worker's start */

	/* The time now, read again: not before anything that an ended session has done. */
	int64_t		(*clock) (void *arg);

	/* Copies the slot's request.  If the request changes meanwhile, the copy is not used. */
	void		(*copy) (void *arg, uint32_t slot);

	/* May the request that was copied be asked now?  If not, it is parked. */
	bool		(*may_ask) (void *arg, int64_t now);

	/* Asks the request that was copied, of the lock manager or of DynamoDB. */
	void		(*ask) (void *arg, int64_t now, lockmgr_session session, uint64_t seq);
} mailbox_worker;

/*
 * A mark: names the hold that the slot's session got for its request seq.  It has room for 2^19
 * slots (PostgreSQL's MaxBackends is less than half of that), and in the low bits for a
 * lease_loss.
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
/* A session begins to use the slot, and ends. */
extern lockmgr_session mailbox_attach(const mailbox *box, uint32_t slot);
extern void mailbox_detach(const mailbox *box, lockmgr_session me);

/* To be called before and after the host copies a request into the slot.  Returns its number. */
extern uint64_t mailbox_begin_post(const mailbox *box, lockmgr_session me);
extern void mailbox_end_post(const mailbox *box, lockmgr_session me);

/* Is the request answered?  mailbox_accept() also takes the answer, which may be read then. */
extern bool mailbox_is_answered(const mailbox *box, lockmgr_session me, uint64_t seq);
extern bool mailbox_accept(const mailbox *box, lockmgr_session me, uint64_t seq);

/*
 * Cancels the request: what is granted for it, before or after this, goes back.  The session may
 * post its next request at once.
 */
extern void mailbox_cancel(const mailbox *box, lockmgr_session me, uint64_t seq);

/*
 * The session announces its next requests, up to this number; and gives up those that it has
 * announced and not posted.
 */
extern void mailbox_announce(const mailbox *box, lockmgr_session me, uint64_t last);
extern void mailbox_withdraw(const mailbox *box, lockmgr_session me);

/* The session no longer wants the hold that it got for its request seq. */
extern void mailbox_let_go(const mailbox *box, lockmgr_session me, uint64_t seq,
						   uint32_t hold_index);

/* Until when a session may believe in the lease (0: no longer); and why a hold was lost. */
extern int64_t mailbox_valid_until(const mailbox *box, uint32_t lease_index,
								   uint32_t lease_generation);
extern lease_loss mailbox_loss(const mailbox *box, lockmgr_session me, uint64_t seq,
							   uint32_t hold_index);

/*
 * The worker's side.
 */

/* Handles what is new in the slot.  A new worker calls this for every slot. */
extern void mailbox_read(mailbox_worker *worker, uint32_t slot, int64_t now);

/*
 * Handles only what the session has let go of.  The worker calls this for all slots that have
 * rung, before it calls mailbox_read() for any of them.  So if a session lets go of a lock and
 * then another session asks for it, the worker sees the lock free when it handles that request.
 */
extern void mailbox_read_let_go(mailbox_worker *worker, uint32_t slot, int64_t now);

/*
 * To be called before and after the host writes an answer.  granted: the hold that is granted, or
 * LOCKMGR_NO_HOLD.  False: the session has cancelled or ended, so no answer is written, and what
 * was granted goes back.
 */
extern bool mailbox_begin_answer(const mailbox *box, lockmgr_session session,
								 uint64_t seq, uint32_t granted);
extern void mailbox_end_answer(const mailbox *box, lockmgr_session session, uint64_t seq);

/*
 * Which request is in the slot?  False: none that is whole and not answered.  It needs no notes,
 * so a host can use it that has no lock manager.
 */
extern bool mailbox_peek(const mailbox *box, uint32_t slot, lockmgr_session *session,
						 uint64_t *seq);

/*
 * Since when the oldest parked request is parked (INT64_MAX: none is); and reading the slots of
 * all parked requests again.
 */
extern int64_t mailbox_oldest_parked(const mailbox_worker *worker);
extern void mailbox_retry_parked(mailbox_worker *worker, int64_t now);

/*
 * Was the slot's request parked at the given time or earlier?  If so, it is parked no more, and
 * the host answers it.
 */
extern bool mailbox_unpark(mailbox_worker *worker, uint32_t slot, int64_t since_before,
						   lockmgr_session *session, uint64_t *seq);

/* To be called before and after the host copies a lease into the directory. */
extern void mailbox_begin_save(mailbox_lease *words, const saved_lease *lease);
extern void mailbox_end_save(mailbox_lease *words, const saved_lease *lease);

/* To be called before the host copies a hold into the directory.  True: it is a new hold. */
extern bool mailbox_save_hold(mailbox_hold *words, const saved_hold *hold);

/* Has the holder let go of the hold? */
static inline bool
mailbox_is_let_go(const mailbox_hold *words)
{
	return shared_read(&words->let_go) == shared_read(&words->mark);
}

#endif							/* DDBLOCK_LOCK_MAILBOX_H */
