/*-------------------------------------------------------------------------
 *
 * session.h
 *	  What the files of this room give each other, and src/sql.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_SESSION_H
#define DDBLOCK_SESSION_SESSION_H

#include "postgres.h"

#include "fmgr.h"
#include "lib/ilist.h"

#include "lock/join_list.h"
#include "base/uuid.h"
#include "queue/queue.h"
#include "shared/compat.h"
#include "shared/errors.h"
#include "shared/segment.h"
#include "shared/settings.h"
#include "shared/shared.h"

/* ----------------------------------------------------------------
 * await.c: Procedures that wait without a snapshot.
 * ----------------------------------------------------------------
 */

/*
 * If the function was called as a procedure, commits the transaction, so that the session has no
 * snapshot while it waits.  If it was called as a function, does nothing.  Call it when the
 * arguments have been read, and before anything is sent.  Raises 25001 if the commit would end
 * something that the caller has not finished; the hint names the function that waits inside of a
 * transaction (instead).
 */
extern void AwaitWithoutSnapshot(FunctionCallInfo fcinfo, const char *instead);

/* ----------------------------------------------------------------
 * name.c: Which names a session may use.
 * ----------------------------------------------------------------
 */

/* A lock's name, in the encoding for messages and in the one for DynamoDB. */
typedef struct LockName
{
	char	   *text;			/* for messages, in the database's encoding */
	char	   *utf8;			/* 1 .. DYNAMO_NAME_MAX bytes and a NUL */
} LockName;

/* A queue, or one of its resources.  Both texts are UTF-8. */
typedef struct QueueName
{
	const char *queue;
	const char *resource;		/* "": the queue itself is meant */
	LockName	lock;			/* under which a job of the resource is claimed:
								 * "queue/QUEUE/RESOURCE" */
} QueueName;

/*
 * Raises 22023 if no item can have the name: with ddblock.sort_separator "#", for example, "#a"
 * has an empty partition key.
 */
extern void NameRequire(const LockName *name);

/*
 * Does the name begin with ddblock.lock_prefix?  The name may be UTF-8 or in the server's
 * encoding, as the prefix is ASCII.
 */
extern bool PrefixAllows(const char *name);

/*
 * Raise 42501 if the name of the lock, or of the fenced resource, does not begin with
 * ddblock.lock_prefix.
 */
extern void PrefixRequire(const LockName *name);
extern void PrefixRequireResource(const char *resource);

/*
 * The name of a resource of that queue.  If resource is "": the name of the queue itself; the
 * session must then be allowed to use all of its resources.  Raises as NameRequire() and
 * PrefixRequire() do.
 */
extern QueueName QueueNameOf(const char *queue, const char *resource);

/*
 * For functions that list names: returns the longer one of the prefix that a caller asks for
 * (UTF-8) and ddblock.lock_prefix.  If "app/" is asked for, and the session's prefix is
 * "app/web/", that is "app/web/".  Raises 42501 if no name can begin with both.
 */
extern const char *PrefixNarrow(const char *asked);

/*
 * Raises 55000 if ddblock.leaderships has the name, or if this transaction has joined the lock
 * because its cluster leads.  held: this session's HeldLock of that name, or NULL.
 */
struct HeldLock;
extern void NameRefuseLed(const LockName *name, const struct HeldLock *held);

/* ----------------------------------------------------------------
 * held.c: The locks that this session holds: a list of HeldLocks, in its own memory.
 *
 * A HeldLock counts acquisitions, for the session and for the transaction.  When both counts are
 * 0, the session lets go of the lease.  Example: after ddb_lock_acquire() twice and
 * ddb_lock_acquire_xact() once, COMMIT leaves two acquisitions.
 *
 * A HeldLock does not say whether its lease is still valid: HeldIsValid() reads that from the
 * lease directory.  The HeldLock of a lost lease stays in the list until the session releases the
 * lock, or its transaction ends.
 * ----------------------------------------------------------------
 */

typedef enum LockScope
{
	SCOPE_SESSION,
	SCOPE_XACT,
	SCOPE_LEADER				/* for the whole transaction.  Rolling back to a savepoint does not
								 * undo it: the client knows that its cluster leads */
} LockScope;

/* The acquisitions that a (sub)transaction of this nesting level has made. */
typedef struct HeldLevel
{
	int			nest_level;
	int64		session_depth;	/* with ddblock.release_on_rollback: an abort undoes them */
	int64		xact_depth;
} HeldLevel;

typedef struct HeldLock
{
	char		name[DYNAMO_NAME_MAX + 1];	/* UTF-8: the key; must be first */
	dlist_node	node;
	uint32		hold_index;		/* its entry in the directory; LOCKMGR_NO_HOLD: the lock is not
								 * acquired yet */
	uint32		lease_index;
	uint32		lease_generation;
	uint64		seq;			/* of the request that acquired the lock; a hold's mark contains
								 * it */
	int64		token;
	int64		must_end;		/* by the caller's limit (at_most) the session loses the lock then;
								 * 0: no limit */
	lock_mode	mode;
	int32		permits;		/* of a semaphore */
	bool		leader;			/* the cluster leads, and the transaction has joined: see
								 * leader.c */
	bool		seen_lost;		/* interrupt.c has noticed the loss */
	lease_loss	loss;			/* why it was lost; LOSS_NONE: it was not, or the reason is not
								 * known yet */
	bool		deferred;		/* set by InterruptBeginDefer() */
	bool		told;			/* the client knows of the loss */
	int64		session_depth;
	int64		xact_depth;		/* sum of the levels' xact_depth */
	int			level_count;	/* of levels in use: one for each nesting level that has
								 * acquisitions, outermost first */
	int			level_room;
	HeldLevel  *levels;
} HeldLock;

/* Makes the list of HeldLocks, once in a process. */
extern void HeldAttach(void);

/*
 * The session's HeldLock of this name (UTF-8), whether its lease is valid or lost; NULL if there
 * is none.
 */
extern HeldLock *HeldFind(const char *name);

/* The HeldLock after this one in the list; the first one if held is NULL.  NULL at the end. */
extern HeldLock *HeldNext(const HeldLock *held);

/* Loops over all HeldLocks.  The body may delete the HeldLock of its turn, and no other one. */
#define foreach_held(held) \
	for (HeldLock *held = HeldNext(NULL), *after_it; \
		 held != NULL && (after_it = HeldNext(held), true); held = after_it)

/*
 * Call these around each change of what the handler in interrupt.c reads: the list of HeldLocks,
 * and a HeldLock's hold_index, lease_index, lease_generation, seq, seen_lost and deferred.  In
 * between, HeldIsChanging() makes the handler do nothing and come back soon.  Such a section is a
 * few instructions long, raises no error, and does not contain another one.
 */
extern void HeldBeginChange(void);
extern void HeldEndChange(void);
extern bool HeldIsChanging(void);

/*
 * Acquires the lock of a new HeldLock, and calls SessionTakeGrant().  Returns false if the session
 * does not get the lock.
 */
typedef bool (*HeldAcquire) (HeldLock *held, const LockName *name, const void *arg);

/*
 * Acquires a lock that the session does not have, adds its HeldLock to the list, and counts the
 * acquisition.  Allocates the HeldLock first, so that nothing can fail once the lock is acquired.
 * If acquire returns false, returns NULL; if acquire raises, the error passes on.  In both cases
 * no HeldLock remains.
 */
extern HeldLock *HeldAdd(const LockName *name, LockScope scope, HeldAcquire acquire,
						 const void *arg);

/* Counts one more acquisition of a lock that the session has. */
extern void HeldCount(HeldLock *held, LockScope scope);

/* The next functions cannot fail. */

/* Undoes session-scoped acquisitions.  Does not let go of the lock, even if none is left. */
extern void HeldUncountSession(HeldLock *held, int64 depth);
/*
 * Undoes HeldAdd() or HeldCount(), in the same (sub)transaction.  Lets go of the lock if that was
 * its last acquisition.
 */
extern void HeldUncount(HeldLock *held, LockScope scope);
/* Deletes the HeldLock.  If its lease is lost, logs the loss and calls HeldRememberLoss(). */
extern void HeldForget(HeldLock *held);

/*
 * Deletes the HeldLock and lets go of its hold, if it has no acquisition left.  Does not wait for
 * DynamoDB.
 */
extern void HeldLetGoIfUnused(HeldLock *held);

/*
 * Remembers the loss of a lease whose HeldLock is deleted, so that the commit guard still refuses
 * the transaction's COMMIT.  Keeps only the transaction's first such loss.  The name is UTF-8.
 * Cannot fail.
 */
extern void HeldRememberLoss(const char *name, lease_loss loss);
extern void HeldForgetLoss(void);

/*
 * The name (UTF-8) of a lock whose lease was lost in this transaction or before, or NULL.  Sets
 * *why.
 */
extern const char *HeldFindLoss(lease_loss *why);

/* For transaction.c. */
extern void HeldRefusePrepare(void);
extern void HeldEndTransaction(bool committed);
extern void HeldEndSubtransaction(bool committed);

/*
 * Until when the session may act as the holder, on SegmentNow()'s clock; 0 or a time in the past
 * if the lease is lost.  Async-signal-safe.
 */
extern int64 HeldValidUntil(const HeldLock *held);
extern bool HeldIsValid(const HeldLock *held);
extern lease_loss HeldLoss(const HeldLock *held);

/* If the lease's deadline has passed, counts and logs the loss, once for all processes. */
extern void HeldTellLoss(const HeldLock *held);

/* ----------------------------------------------------------------
 * deadlock.c: Deadlocks that pass through PostgreSQL's locks.
 * ----------------------------------------------------------------
 */

/* When a waiting session searches for a deadlock, and what the last search has found. */
typedef struct DeadlockSearch
{
	int64		next;
	int64		pause;
	bool		goes_first;		/* found a deadlock in which this session waits only because
								 * another one is before it in the queue: ask again, with
								 * lock_ask.goes_first, and the deadlock is resolved */
} DeadlockSearch;

/* Call it when the wait begins. */
extern void DeadlockStart(DeadlockSearch *search);

/*
 * Call it in each turn of the wait.  Searches if that is due.  Raises 40P01 if this session must
 * fail; else returns when to call it again.
 */
extern int64 DeadlockTurn(DeadlockSearch *search, int64 now);

/*
 * These tell other sessions, which search for deadlocks, what this session waits for without a
 * request: the end of this lease, or a job of this queue and of one of these resources (the last
 * one is NULL; resources == NULL: of any).  DeadlockEndWait() must follow, also after an error.
 */
extern void DeadlockWaitForRelease(uint32 lease_index, uint32 lease_generation);
extern void DeadlockWaitForJob(const char *queue, char **resources);
extern void DeadlockEndWait(void);

/* ----------------------------------------------------------------
 * waiting.c: How long a session waits for a lock, and what it reports meanwhile.
 * ----------------------------------------------------------------
 */

#define WAITING_NO_LIMIT (-1)

typedef struct Waiting
{
	const char *lock;			/* the lock's name, in the database's encoding */
	int64		started;
	int64		limit_ms;		/* the caller's limit, or WAITING_NO_LIMIT */
	int64		deadline;		/* when the earlier one of limit_ms and lock_timeout is over */
	bool		lock_timeout;	/* lock_timeout is the earlier one */
	bool		only_try;		/* a try: waits for DynamoDB's reply, not for the lock's holder */
	bool		gives_up;		/* at the deadline the wait ends without an error */
	int64		next_look;		/* when to read the watch again */
	DeadlockSearch deadlock;
	char	   *title;			/* the process title to be restored; NULL: it was not changed */
	bool		told;
	lockmgr_watch last;			/* the holder that was reported last */
} Waiting;

extern void WaitingStart(Waiting *waiting, const char *lock, int64 limit_ms);

/*
 * Call it in each turn of the wait for the answer to request seq of the slot.  Raises when the
 * deadline has passed.  Reports who holds the lock when that is due.  Returns when to call it
 * again.
 */
extern int64 WaitingTurn(Waiting *waiting, MailboxSlot *slot, uint64 seq,
						 int64 now);

/* Call it when the wait is over, also after an error. */
extern void WaitingEnd(Waiting *waiting);

/*
 * Reports why requests are being repeated, once the wait that began at "since" has lasted for
 * deadlock_timeout; once for each wait.  message: why this session repeats its own request; NULL:
 * use the reason that the worker has published, if there is one.
 */
extern void WaitingTellTrouble(int64 since, int64 now, const char *message);

/* Reads what keeps request seq of the slot waiting; false if nothing does. */
extern bool WaitingReadWatch(MailboxSlot *slot, uint64 seq, lockmgr_watch *watch);

/* A sentence for people, palloc'd: "It is held by owner ...". */
extern char *WaitingDescribeHolder(const lockmgr_watch *watch, int64 now);

/* ----------------------------------------------------------------
 * session.c: What a session does with locks: acquire, release, renew, ask.
 *
 * The layer between the SQL functions, which check arguments, and the mailbox.
 * All functions raise errors of errors.h.
 * ----------------------------------------------------------------
 */

/*
 * Prepares the process for using ddblock, once.  Raises if the library is not preloaded, or if the
 * process is a replication session or a parallel worker.
 */
extern void SessionAttach(void);

typedef struct AcquireOptions
{
	LockScope	scope;
	bool		only_try;
	bool		alone;			/* the transaction consists of this call alone, so nothing else
								 * reads with its snapshot */
	lock_ask	ask;			/* the caller sets the parts "The lock", "How long" and "Who waits
								 * for whom".  "How long" is ignored if the session holds the lock
								 * already */
	int64		wait_ms;		/* how long to wait for the lock, or WAITING_NO_LIMIT.  A try
								 * ignores it, unless ask.waits_for_local_holder is set: then, how
								 * long to wait for that holder */
	Waiting    *waiting;		/* if this acquire is one of several (several.c): the */
								/* wait of the whole call; else NULL */
	const uint8 *data;			/* NULL for none */
	size_t		data_len;
	const char *attributes;		/* as in dynamo_write; NULL for none.  Data and attributes together
								 * have at most DYNAMO_DATA_MAX bytes */
} AcquireOptions;

/*
 * Acquires the lock, or counts one more acquisition if the session holds it.  Returns its
 * HeldLock; NULL if only_try is set and the lock is busy.
 */
extern HeldLock *SessionAcquire(const LockName *name, const AcquireOptions *options);

/*
 * Undoes one session-scoped acquisition, and waits for DynamoDB if it was the last one.  If there
 * was none, or the lease is lost, raises a WARNING and returns false.  Unless keep is set, also
 * ends an exclusive lock's minimum (lock_ask.at_least_ms), so that others can have the lock at once.
 * for_user: raises a WARNING if others may act on what the transaction has not committed yet.
 */
extern bool SessionRelease(const LockName *name, bool keep, bool for_user);

/*
 * Undoes one session-scoped acquisition as SessionRelease() does, but does not wait for DynamoDB.
 * The minimum stays.
 */
extern bool SessionLetGo(const LockName *name);

/* Undoes all session-scoped acquisitions, and waits for DynamoDB.  Returns the number of locks. */
extern int	SessionReleaseAll(void);

/* Undoes all session-scoped acquisitions.  Does not wait for DynamoDB, and cannot fail. */
extern void SessionLetGoAll(void);

/*
 * Renews the lease.  lease_ms 0: it keeps its length.  data NULL: the item keeps its data;
 * data_len 0: the item's data is removed.  Returns the new deadline, on SegmentNow()'s clock.
 */
extern int64 SessionRenew(const LockName *name, int64 lease_ms, const uint8 *data,
						  size_t data_len);

/* This session's token if its lease on the lock is valid, else 0.  Sends no request. */
extern int64 SessionToken(const LockName *name);

/* Microseconds until the deadline, or 0 if the lease is not valid.  Sends no request. */
extern int64 SessionRemaining(const LockName *name);

/* The session's HeldLock.  Raises if the session does not hold the lock, or its lease is lost. */
extern HeldLock *SessionRequire(const LockName *name);

/*
 * Reads the lock's item in DynamoDB.  The result is valid until the session's next request.
 *
 * What comes of an item that nobody can use as a lock:
 *
 *	 - If unusable is not NULL, sets *unusable to true and returns NULL.
 *	 - If unusable is NULL, raises an error, unless the item shows who holds the lock.
 */
extern const MailboxItem *SessionLookUp(const LockName *name, bool *unusable);

/* Makes the nonce of a write, or the token of a DynamoDB transaction. */
extern void SessionNewUuid(char uuid[UUID_SIZE]);

/* For other files of this room. */

extern MailboxRequest SessionAcquireRequest(const LockName *name, const AcquireOptions *options);

/*
 * Copies the grant of an answer into a new HeldLock.  Raises if the lease was lost before this
 * session read the answer.
 */
extern void SessionTakeGrant(const LockName *name, HeldLock *held,
							 const MailboxAnswer *answer, uint64 seq);

/* Sets in ask for whom the request is made: this session. */
extern void SessionIdentify(lock_ask *ask);

/*
 * Deletes the HeldLock, and then makes a request that ends its hold, or leaves it to the cluster.
 * From then on the session does not hold the lock, even if the request fails.  Returns the answer,
 * if it is the expected one.  If the lease was lost, returns NULL, sets *loss, and the transaction
 * remembers the loss.  Raises for all other answers.
 */
extern const MailboxAnswer *SessionEndHold(HeldLock *held, const LockName *name,
										   MailboxRequest *request, MailboxResult expected,
										   lease_loss *loss);

/*
 * Report that a lease is lost: as an error while the lock is held, or as a WARNING when the lock
 * was being released.
 */
pg_noreturn extern void SessionRaiseLost(const LockName *name, HeldLock *held);
extern void SessionWarnLost(const char *lock, lease_loss loss);

/* ----------------------------------------------------------------
 * drop_extension.c: Keeps DROP EXTENSION from losing locks and fencing tokens.
 * ----------------------------------------------------------------
 */

/*
 * Call it before PostgreSQL drops this object.  Raises if that would lose locks, tokens or jobs.
 */
extern void DropCheck(Oid class_id, Oid object_id);

/* ----------------------------------------------------------------
 * transaction_fence.c: Whether a transaction still has the fences that it asked for.
 *
 * Needs neither shared memory nor the worker.
 * ----------------------------------------------------------------
 */

/*
 * The current (sub)transaction asks for a fence.  From then on, the whole transaction can commit
 * only if this subtransaction does.  Call it before anything that can fail, but after
 * TransactionAttach().
 */
extern void FenceRequest(void);

/* Has the transaction asked for a fence? */
extern bool FenceIsRequested(void);

/* Call it before COMMIT and PREPARE.  Raises LK002 if a fence was undone. */
extern void FenceCommit(void);

extern void FenceEndTransaction(void);
extern void FenceEndSubtransaction(bool committed);

/* ----------------------------------------------------------------
 * guard.c: The commit guard: a transaction that writes does not commit after its
 * session has lost a lease.
 *
 * The guard looks at the clock before the commit record is written.  A wait in
 * between is interrupted when a lease is lost; but a process that is stopped
 * there can still commit too late.  ddb_fence_check() covers that, see doc/internals/safety.md.
 * ----------------------------------------------------------------
 */

/*
 * Call it before an effect that no ROLLBACK undoes, or that needs no transaction id ("what" names
 * the effect).  Raises LK001 if a lease is lost, or a lock of ddblock.join_locks is not held.
 * From then on the guard treats the transaction as one that writes.
 */
extern void GuardEffect(const char *what);
/* From now on the guard treats the transaction as one that writes. */
extern void GuardDemand(void);

/*
 * Call it before COMMIT and PREPARE.  Raises LK001 if the transaction writes, and a lease is lost
 * or a lock of ddblock.join_locks is not held.
 */
extern void GuardCommit(void);

/*
 * Has this transaction, which writes, passed the guard?  Then the guard does not see the next
 * loss, so interrupt.c must cancel the COMMIT.  Async-signal-safe.
 */
extern bool GuardIsPassed(void);

extern void GuardEndTransaction(void);

/* ----------------------------------------------------------------
 * interrupt.c: Interrupts the session when it has lost a lease.
 *
 * ddblock.on_lease_lost decides how.
 * ----------------------------------------------------------------
 */

/*
 * Installs signal handler and timer, once in a process.  The process must not
 * use LOSS_SIGNAL for anything else.
 */
extern void InterruptAttach(void);

/* Call it when a lease of this session has a new deadline. */
extern void InterruptArm(void);

/*
 * Call these around the wait of a lock function that reports the loss of this lease by its own
 * error.  Meanwhile a loss does not interrupt the session, but sets its latch at the deadline.  If
 * the transaction continues after the error, the interruption follows.
 */
extern void InterruptBeginDefer(HeldLock *held);
extern void InterruptEndDefer(HeldLock *held);

/*
 * If a loss has interrupted the running transaction, or will interrupt it: the first lost lock in
 * the list; else NULL.
 */
extern const HeldLock *InterruptCause(void);

/* Was a loss noticed since the last call? */
extern bool InterruptTakeLoss(void);

/* ----------------------------------------------------------------
 * joined.c: Joining another session's hold; leaving one to the cluster.
 *
 * All functions raise errors of errors.h.
 * ----------------------------------------------------------------
 */

/* This session gets a hold beside the one that has this token, session-scoped. */
extern void JoinedJoin(const LockName *name, int64 token);

/*
 * Joins the locks that ddblock.join_locks names and this session does not hold.  Does so once in a
 * transaction: if the session releases such a lock, its next transaction joins it again.
 */
extern void JoinedCarryOutOrder(void);

/*
 * Leaves the session's hold to the cluster, for at most so long.  Returns the token.
 *
 *	 - If the lock cannot be detached (it is shared, for example), raises, and the session keeps
 *	   it.
 *	 - If the request fails or is canceled, raises, and neither session nor cluster holds the lock.
 *	 - If the session ends before it has the answer, neither of them holds the lock.
 */
extern int64 JoinedDetach(const LockName *name, int64 at_most_ms);
extern int64 JoinedOutlive(const LockName *name);

/*
 * Ends the cluster's detached hold with this token.  If there is none, raises a WARNING and
 * returns false.  Unless keep is set, also ends the lock's minimum (lock_ask.at_least_ms).
 */
extern bool JoinedEndDetached(const LockName *name, int64 token, bool keep);

/* ----------------------------------------------------------------
 * leader.c: Transactions of a cluster that leads.
 *
 * All functions raise errors of errors.h.
 * ----------------------------------------------------------------
 */

/*
 * If this cluster leads under this name, the transaction joins the leadership until it ends: if
 * the leadership is lost, the transaction is interrupted, and the commit guard refuses its COMMIT.
 * Returns the token, or 0 if the cluster does not lead.
 */
extern int64 LeaderJoin(const LockName *name);

/* As LeaderJoin(), but raises LK001 if the cluster does not lead. */
extern int64 LeaderRequire(const LockName *name);

/*
 * This cluster gives up the leadership, and does not stand for it again for rest_ms.  After
 * wait_ms (0: never) it interrupts transactions that have joined and still run.  Returns whether
 * the cluster led.
 */
extern bool LeaderResign(const LockName *name, int64 rest_ms, int64 wait_ms);

/* ----------------------------------------------------------------
 * ask_worker.c: A session's side of the mailbox: ask the worker, wait for its answer.
 *
 * A session has one request at a time, and waits interruptibly.  An error while it
 * waits cancels the request; the worker then releases what the request gets, or
 * has got already.
 * ----------------------------------------------------------------
 */

/* Takes this process's slot, once in a process.  SessionAttach() calls it. */
extern void MailboxAttach(void);

typedef enum MailboxPause
{
	PAUSE_LOCK,
	PAUSE_CALL,
	PAUSE_TABLE,
	PAUSE_QUEUE
} MailboxPause;

/*
 * Sleeps until this process's latch is set, or so many microseconds have passed.  Before each
 * sleep the caller must check for interrupts, and for what it waits for.  "what" is the wait
 * event.
 */
extern void MailboxSleep(MailboxPause what, int64 us);

/*
 * From that moment on (SegmentNow()), MailboxSleep() raises 57000.  PG_INT64_MAX ends that.  Who
 * sets a moment must end it, also after an error.
 */
extern void MailboxStopAt(int64 moment);

/* This session, as the worker knows it.  Its generation is 0 before MailboxAttach(). */
extern lockmgr_session MailboxSession(void);
extern MailboxSlot *MailboxMySlot(void);

/*
 * Sets the request's seq, posts it with its name and data, and waits for the answer, which may be
 * a failure.  waiting: how long, and for which lock; NULL: without a limit.  The answer is in the
 * slot, where the worker wrote it, and is valid until the session's next request.
 *
 * Returns NULL, and cancels the request, in these cases:
 *
 *	 - RENEW: the lease has passed its deadline.
 *	 - waiting->gives_up: the time is over.
 *	 - waiting->deadlock.goes_first: the caller must ask again, to go first.
 */
extern const MailboxAnswer *MailboxCall(MailboxRequest *request, const char *name,
										const void *data, Waiting *waiting);

/* Lets go of the hold that request seq of this session got.  Neither waits nor fails. */
extern void MailboxLetGo(uint32 hold_index, uint64 seq);

/* ----------------------------------------------------------------
 * join_locks.c: The standing order to join locks, ddblock.join_locks: whether it is carried out.
 * ----------------------------------------------------------------
 */

/*
 * The first lock that ddblock.join_locks names, and that this session does not hold with the token
 * that is named; NULL if there is none.  Valid until the next call.  Cannot fail.
 */
extern const join_entry *OrderFindMissing(void);

/*
 * Lets the current transaction end without the named locks.  For DISCARD ALL, which lets go of
 * them itself.
 */
extern void OrderExcuseTransaction(void);

/* ----------------------------------------------------------------
 * queue_call.c: Calls on the queues' table: repeated, and row by row.
 * ----------------------------------------------------------------
 */

typedef struct QueueReply
{
	queue_reply is;				/* its status may be the expected refusal; its rows counts those
								 * that are not read yet */
	char		message[MAILBOX_TEXT_SIZE]; /* of the expected failure */
	bool		unsettled;		/* an earlier copy may have been applied */
	char	   *next;			/* where the next page begins, of is.next_len bytes; NULL: this is
								 * the last one */
	char	   *bytes;			/* the rows, which QueueReadRow() reads */
	Size		len;
	Size		offset;
} QueueReply;

/* A row with its texts, which are UTF-8 and end with a NUL. */
typedef struct QueueRow
{
	queue_row	is;
	char	   *queue;
	char	   *resource;
	char	   *id;
	char	   *error;
	char	   *payload;
	struct QueueRow *riders;	/* the jobs that ride on this head: [is.riders] */
} QueueRow;

/* A request whose fields are all zero but for these.  resource "": none. */
extern queue_request QueueRequest(queue_kind kind, const char *queue, const char *resource);

/*
 * Makes the call, and repeats it while DynamoDB is out of reach or throttles this server, until
 * ddblock.retry_timeout has passed.  tail: request->tail_len bytes, or NULL.  Raises for each
 * failure but the expected one (DYNAMO_OK: raises for all).  The reply is palloc'd.
 */
extern QueueReply *QueueCall(const queue_request *request, const char *tail,
							 dynamo_status expected);

/* Reads the reply's next row, palloc'd; false if there are no more. */
extern bool QueueReadRow(QueueReply *reply, QueueRow *row);

/* How much of a head is taken by the jobs that ride on it (queue_ride_size()). */
extern uint32 QueueTaken(const QueueRow *head);

/*
 * Makes a call whose reply has at most one row.  Returns this row; NULL if there is none.  Sets
 * *status, if status is not NULL.
 */
extern QueueRow *QueueCallRow(const queue_request *request, dynamo_status *status);

/*
 * Reads all rows of a listing, page after page, and calls when a page is needed.  Returns false at
 * the end.  When the next page is called, the memory context of the last page is reset: its rows
 * go, and what the caller has allocated there.
 */
typedef struct QueueScan
{
	queue_request request;
	QueueReply *reply;			/* the page that is being read; NULL: none yet */
	MemoryContext page;
} QueueScan;

extern bool QueueScanNext(QueueScan *scan, QueueRow *row);

/* ----------------------------------------------------------------
 * queue_claims.c: The jobs that this session has claimed: a list of QueueClaims, in its own
 * memory.
 *
 * A claim is an ordinary lock of this session, together with its token.  A claim is void as soon
 * as the session does not hold the lock with that token, whatever the reason: the lock was
 * released, detached, or lost and acquired anew.
 * ----------------------------------------------------------------
 */

typedef struct QueueClaim
{
	dlist_node	node;
	char	   *lock;			/* the lock's name, UTF-8 */
	queue_claim is;
	uint32		finish;			/* if it is completed: its entry in segment_finishes */
} QueueClaim;

/* This session has passed completions on to the worker since its last QueueOwnSettle(). */
extern bool queue_claim_passed;

/*
 * Adds a claim, before its lock is acquired.  Without a token the claim is void, until the caller
 * sets is.token.  If the transaction aborts, the claim ends, and its lock is let go.
 */
extern QueueClaim *QueueClaimAdd(const char *lock);

/* The session's claim under this lock, valid or void; NULL if there is none. */
extern QueueClaim *QueueClaimFind(const char *lock);

/* Lets the end of the transaction complete the job, if the transaction commits. */
extern void QueueClaimComplete(QueueClaim *claim, const QueueName *name);

extern bool QueueClaimIsVoid(const QueueClaim *claim);

/* Deletes the claim, and leaves its lock as it is. */
extern void QueueClaimForget(QueueClaim *claim);

/* Deletes the claim, and lets go of its lock.  Neither waits nor fails. */
extern void QueueClaimEnd(QueueClaim *claim);

/*
 * Ends the claims whose lease is lost, except completed ones: as long as the session has them, it
 * cannot claim jobs of their resources anew, and the commit guard refuses its transactions.
 */
extern void QueueClaimEndLost(void);

/*
 * For transaction.c.  Before COMMIT, QueueClaimCommit() raises 55000 if a job was completed whose
 * claim is void: somebody else may have claimed it meanwhile.
 */
extern void QueueClaimCommit(void);
extern void QueueClaimRefusePrepare(void);
extern void QueueClaimEndLevel(int level, bool committed);

/* ----------------------------------------------------------------
 * queue_job.c: A job's life: claimed, finished, failed, buried.
 *
 * All texts are UTF-8.
 * ----------------------------------------------------------------
 */

typedef enum QueueTry
{
	QUEUE_NOTHING,				/* no job is due, the resource is paused, or this cluster works on
								 * a job of it (its end leaves a hint) */
	QUEUE_IN_VAIN,				/* as QUEUE_NOTHING, but only the refused claim has shown it */
	QUEUE_BUSY,					/* the lock is held: by somebody else, or by this session, which
								 * must not claim under it (see queue_job.c) */
	QUEUE_AGAIN_NOW,			/* the next job was cancelled, or is buried now: there may be
								 * another one */
	QUEUE_FOREIGN,				/* not claimed: this database's encoding lacks a character of it,
								 * as QueueJobToServer() then says */
	QUEUE_CLAIMED
} QueueTry;

typedef struct QueueJob
{
	char	   *resource;
	int64		number;
	char	   *payload;
	char	   *id;				/* "": none */
	int64		attempts;
	int64		pushed_at;		/* epoch milliseconds */
	int64		token;
} QueueJob;

/*
 * Claims the resource's next job, if possible.  attempts: how often that job has been claimed
 * before.  With QUEUE_ATTEMPTS_UNKNOWN, reads the head first, which tells that, and whether the
 * job is due.
 */
extern QueueTry QueueJobTry(const QueueName *name, int64 attempts, int64 lease_ms,
							int max_attempts, QueueJob *job);

/*
 * Converts the job's texts to the database's encoding.  Raises 22P05 or 22021 for a character that
 * the encoding does not have.
 */
extern void QueueJobToServer(const char *queue, QueueJob *job);

/*
 * Puts a claimed job back, to be due after retry_ms.  Raises LK001 if the job was claimed anew
 * since, with another token.
 */
extern void QueueJobFail(const QueueName *name, int64 number, int64 token, const char *error,
						 int64 retry_ms);

/*
 * Cancels a job that nobody works on.  Returns false if the job is finished, was never pushed, or
 * was cancelled before.  Raises 55006 if the job is the resource's next one and somebody holds the
 * resource's lock.
 */
extern bool QueueJobCancel(const QueueName *name, int64 number);

/*
 * Reads the resource's head; NULL if it has none: it never had a job, or its head was removed.
 * Sets *now_ms, if now_ms is not NULL, to DynamoDB's time.
 */
extern QueueRow *QueueJobHead(const char *queue, const char *resource, int64 *now_ms);

/* Deletes the item of a job that is finished. */
extern void QueueJobDelete(const char *queue, const char *resource, int64 number);

/* ----------------------------------------------------------------
 * queue_require.c: What a session does with the jobs that it has claimed.
 * ----------------------------------------------------------------
 */

/*
 * This session's claim of that job.  Raises 55000 if the session has none, or has completed the
 * job.  Raises LK001 if the claim's lease is lost.
 */
extern QueueClaim *QueueOwnRequire(const QueueName *name, int64 number);

/* Ends the claim, and waits until DynamoDB has confirmed that the lock is released. */
extern void QueueOwnRelease(QueueClaim *claim, const LockName *lock);

/*
 * Waits, for at most a second, until the worker has written this session's last completions.  Then
 * the session sees these resources as free.
 */
extern void QueueOwnSettle(void);

/* ----------------------------------------------------------------
 * queue_push.c: Pushes jobs.  All texts are UTF-8.
 * ----------------------------------------------------------------
 */

typedef struct QueuePush
{
	char	   *payload;
	char	   *id;				/* the caller's, or NULL */
	char		digest[QUEUE_DIGEST_SIZE];	/* of the payload, if it has an id; set by
											 * QueueJobPush() */
	int64		number;			/* the job's number, set by QueueJobPush() */
	bool		before;			/* set by QueueJobPush(): it was pushed before, under this id */
} QueuePush;

/*
 * Pushes up to QUEUE_PUSH_MAX jobs of one resource, in this order, in one DynamoDB transaction.  A
 * job's id counts for dedup_ms: until then, another push with this id adds no job.
 */
extern void QueueJobPush(const char *queue, const char *resource, QueuePush *jobs, int count,
						 int64 dedup_ms);

/* ----------------------------------------------------------------
 * queue_search.c: Looks for a job that can be claimed, and waits for one.
 * ----------------------------------------------------------------
 */

typedef struct QueueSearch
{
	const char *queue;
	char	  **resources;		/* jobs of these only, the last one is NULL; or NULL: of any
								 * resource */
	int64		lease_ms;
	int64		wait_ms;
	int			max_attempts;
	QueueJob   *job;			/* the claimed job; or NULL: the search claims none, and ends when
								 * there seems to be one, with which the session's next search
								 * begins */
} QueueSearch;

/* Searches for wait_ms at most.  Returns false if no job was found. */
extern bool QueueSearchJob(QueueSearch *search);

/* ----------------------------------------------------------------
 * queue_table_guard.c: Is the queues' table fit, and guarded by this cluster's lock table?
 * ----------------------------------------------------------------
 */

/* Raises 55000 if the reply to DescribeTable shows that the table cannot be a queues' table. */
extern void QueueTableCheck(const QueueRow *described);

/*
 * Makes sure that the table is fit for queues, and that this cluster's lock table guards it;
 * raises 55000 if not.  Asks DynamoDB only if no session of this cluster has asked within the last
 * hour: a table can become a global one meanwhile.
 */
extern void QueueTableRequire(void);

/* The numbers of a resource that has no head begin above this one. */
extern int64 QueueTableFloor(void);

/* ----------------------------------------------------------------
 * several.c: Acquiring several locks in one call.
 * ----------------------------------------------------------------
 */

/*
 * Acquires all of these locks or none of them, one after the other.  The names must be different
 * and in ascending order of their bytes.  Returns false if only_try is set and a lock is busy.
 * Raises errors of errors.h.
 */
extern bool SeveralAcquire(const LockName *names, int count, const AcquireOptions *options,
						   int64 *tokens);

/* ----------------------------------------------------------------
 * statement.c: What ddblock does before and after the session's statements.
 * ----------------------------------------------------------------
 */

/*
 * For _PG_init().  StatementInstallDropCheck() is needed also where the library is not preloaded.
 */
extern void StatementInstallHooks(void);
extern void StatementInstallDropCheck(void);

/* ----------------------------------------------------------------
 * direct_call.c: Calls that the lock manager does not make: repeated, and page after page.
 *
 * These are calls of functions about the lock table as a whole, of operators' functions that
 * change its items, and of queues.  The worker makes each call once.  The session repeats it, so
 * that the user can cancel the wait.
 * ----------------------------------------------------------------
 */

/*
 * Makes one call on the lock table, and repeats it while DynamoDB is out of reach or throttles
 * this server, until ddblock.retry_timeout has passed.  Returns the call's result, or the failure
 * that has the expected status (DYNAMO_OK: none is expected).  Raises for all other failures.  The
 * answer is valid until the session's next request.  Sets *unsettled, if unsettled is not NULL, to
 * whether an earlier copy of the call may have been applied.
 */
extern const MailboxAnswer *TableCall(MailboxRequest *request, const char *name,
									  const void *data, dynamo_status expected,
									  bool *unsettled);

/* The result of a call: an answer, or a reply that the worker hands over in pieces. */
typedef struct TableReply
{
	const MailboxAnswer *answer;	/* in the slot, until the session's next request */
	bool		unsettled;		/* an earlier copy may have been applied */
	char	   *bytes;			/* the reply that came in pieces, palloc'd; NULL: the answer says
								 * all */
	uint32		len;
} TableReply;

/*
 * As TableCall(), for any call that the lock manager does not make; the caller sets request->kind.
 * Repeats for patience_ms.  data may be larger than a slot.  The reply is allocated in the current
 * memory context.
 */
extern TableReply TableCallReply(MailboxRequest *request, const char *name, const void *data,
								 dynamo_status expected, int64 patience_ms);

/*
 * UpdateTimeToLive was refused with this message: can the table be used all the same?  Yes, if the
 * time-to-live is enabled already, or if the server does not have it, which gives a WARNING.
 * kind, for people: "lock table"
 */
extern bool TableTtlAccept(const char *message, const char *kind, const char *table);

/* Raises a WARNING that the table has no deletion protection.  kind: as for TableTtlAccept() */
extern void TableTellUnprotected(const char *kind, const char *table);

/* The time between two calls of DescribeTable while a table is being created. */
#define TABLE_POLL_US INT64CONST(500000)

/* DescribeTable is eventually consistent, so it may not find a new table for this long. */
#define TABLE_APPEARANCE_US (30 * USECS_PER_SEC)

/*
 * Can a table with this status be used already?  Raises if it never will be.  kind: as for
 * TableTtlAccept()
 */
extern bool TableIsActive(const char *status, const char *kind, const char *table);

/* Sleeps.  The user can cancel it. */
extern void TableSleep(int64 microseconds);

/*
 * Call it before each new attempt when a reply says that something has changed since the last one.
 * *times counts the attempts, from 0.  The first new attempt is made at once, the next ones after
 * growing pauses, and too many raise an error.  table: its name, for people
 */
extern void TableAgain(unsigned *times, const char *table);

/*
 * A scan of the lock table: all lock items whose name begins with the prefix; only released ones,
 * if wanted.  It is allocated in the current memory context, and freed when TableScanNext()
 * returns false.
 */
typedef struct TableScan
{
	const char *prefix;
	MailboxRequest request;
	LockPage   *page;			/* NULL: not started */
	int			read;			/* so many rows of the page */
	const LockRow *row;			/* the last row that was read */
	bool		found;			/* the scan has found any row */
} TableScan;

/*
 * Begins a scan.  prefix is UTF-8, has at most DYNAMO_NAME_MAX bytes, and must stay in place until
 * the scan ends.
 */
extern TableScan *TableScanStart(const char *prefix, bool released_only);

/*
 * Sets scan->row to the next row, and calls for a page when that is needed.  Returns false at the
 * end.  Raises if the table has other keys than the settings say, which a scan cannot tell from an
 * empty table.
 */
extern bool TableScanNext(TableScan *scan);

/* ----------------------------------------------------------------
 * transaction.c: Follows the session's transactions and savepoints.
 * ----------------------------------------------------------------
 */

/*
 * Registers the callbacks, once in a process.  Needs neither shared memory nor
 * the worker: ddb_fence_check() works without them.
 */
extern void TransactionAttach(void);

#endif							/* DDBLOCK_SESSION_SESSION_H */
