/*-------------------------------------------------------------------------
 *
 * session.h
 *	  What a backend's files give each other, and the SQL functions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_SESSION_H
#define DDBLOCK_SESSION_SESSION_H

#include "postgres.h"

#include "fmgr.h"
#include "lib/ilist.h"

#include "lock/join_list.h"
#include "lock/uuid.h"
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
 * To be called when the arguments have been read, and before anything is sent.  If the
 * function was called as a procedure, commits the transaction, so that the session has no
 * snapshot while it waits.  Raises 25001 if that would commit what the caller has not
 * finished; the hint names the function that waits inside of a transaction.
 */
extern void AwaitWithoutSnapshot(FunctionCallInfo fcinfo, const char *instead);

/* ----------------------------------------------------------------
 * name.c: Which names a session may use.
 * ----------------------------------------------------------------
 */

/* A lock's name: for messages, and as it goes to DynamoDB. */
typedef struct LockName
{
	char	   *text;			/* for messages, in the database's encoding */
	char	   *utf8;			/* 1 .. DYNAMO_NAME_MAX bytes and a NUL */
} LockName;

/* A queue, or one of its resources: UTF-8. */
typedef struct QueueName
{
	const char *queue;
	const char *resource;		/* "": none is given */
	LockName	lock;			/* the resource's: "queue/", queue, "/", resource */
} QueueName;

/* Raises 22023 if no item can have the name: see ddblock.sort_separator. */
extern void NameRequire(const LockName *name);

/* Does the name begin with the prefix?  Takes UTF-8 or the server's encoding. */
extern bool PrefixAllows(const char *name);

/* Raises 42501 if a lock's name, or a resource's, does not. */
extern void PrefixRequire(const LockName *name);
extern void PrefixRequireResource(const char *resource);

/*
 * A resource of that queue, or "" for the queue itself, all of whose resources the session must be
 * allowed.  Raises as NameRequire() and PrefixRequire() do.
 */
extern QueueName QueueNameOf(const char *queue, const char *resource);

/*
 * The longer one of the prefix that a caller asks for (UTF-8) and the session's:
 * for names that begin with both.  Raises 42501 if there are none.
 */
extern const char *PrefixNarrow(const char *asked);

/*
 * Raises 55000 if ddblock.leaderships has the name, or if the transaction has the lock as a
 * leader's.  held: this session's note of it, or NULL.
 */
struct HeldLock;
extern void NameRefuseLed(const LockName *name, const struct HeldLock *held);

/* ----------------------------------------------------------------
 * held.c: What this session holds: notes, kept in its own memory.
 *
 * A lock has a session-scoped depth and a transaction-scoped one; its lease is
 * let go when both are 0.
 *
 * The notes do not say whether the lease is valid: HeldIsValid() reads that from
 * the lease directory.
 * ----------------------------------------------------------------
 */

typedef enum LockScope
{
	SCOPE_SESSION,
	SCOPE_XACT,
	SCOPE_LEADER				/* the whole transaction, although a savepoint is rolled
								 * back: the client knows that it leads */
} LockScope;

/* Acquisitions made in a (sub)transaction of the given nesting level. */
typedef struct HeldLevel
{
	int			nest_level;
	int64		depth;
} HeldLevel;

typedef struct HeldLock
{
	char		name[DYNAMO_NAME_MAX + 1];	/* UTF-8: the key; must be first */
	dlist_node	node;
	uint32		hold_index;		/* LOCKMGR_NO_HOLD: not acquired yet */
	uint32		lease_index;
	uint32		lease_generation;
	uint64		seq;			/* of the request that acquired it */
	int64		token;
	int64		must_end;		/* no belief from then on; 0: no limit */
	lock_mode	mode;
	int32		permits;		/* of a semaphore */
	bool		leader;			/* it is the cluster's: see leader.c */
	bool		seen_lost;		/* interrupt.c has noticed the loss */
	lease_loss	loss;			/* why; LOSS_NONE: not lost, or not known yet */
	bool		deferred;		/* InterruptBeginDefer() */
	bool		told;			/* the client knows of the loss */
	int64		session_depth;
	int64		xact_depth;		/* sum of the levels' depths */
	int			level_count;	/* levels rise, outermost first */
	int			level_room;
	HeldLevel  *levels;
} HeldLock;

/* Makes the list of notes, once in a process. */
extern void HeldAttach(void);

/* NULL if the session has no such lock, valid or lost. */
extern HeldLock *HeldFind(const char *name);

/* The one after this, or the first; NULL: there is none. */
extern HeldLock *HeldNext(const HeldLock *held);

/* All of them; a turn may delete its own. */
#define foreach_held(held) \
	for (HeldLock *held = HeldNext(NULL), *after_it; \
		 held != NULL && (after_it = HeldNext(held), true); held = after_it)

/*
 * Around each change of what a signal handler reads: the list, and a note's
 * hold and lease, seq, seen_lost and deferred.  In between, HeldIsChanging() tells the
 * handler to stay away and come back.  A section is a few instructions long,
 * raises no error, and does not contain another one.
 */
extern void HeldBeginChange(void);
extern void HeldEndChange(void);
extern bool HeldIsChanging(void);

/*
 * Acquires the lock of a new note, and calls SessionTakeGrant(); or raises; or returns false, if
 * the session does not get the lock.
 */
typedef bool (*HeldAcquire) (HeldLock *held, const LockName *name, const void *arg);

/*
 * A note for a lock that the session does not have; counts the acquisition.  Everything that can
 * fail is done before the lock is acquired.  If it is not acquired, there is no note: NULL, or
 * the error.
 */
extern HeldLock *HeldAdd(const LockName *name, LockScope scope, HeldAcquire acquire,
						 const void *arg);

/* Counts one more acquisition. */
extern void HeldCount(HeldLock *held, LockScope scope);

/* These cannot fail. */

/* Undoes session-scoped acquisitions; lets go of nothing. */
extern void HeldUncountSession(HeldLock *held, int64 depth);
/* Undoes HeldAdd() or HeldCount(), in the same (sub)transaction; lets go if it was the last. */
extern void HeldUncount(HeldLock *held, LockScope scope);
/* Deletes the note.  If the lease is lost, logs and remembers the loss. */
extern void HeldForget(HeldLock *held);

/* Does not wait for DynamoDB. */
extern void HeldLetGoIfUnused(HeldLock *held);

/*
 * The transaction must not commit as if the loss of a lease, whose note is
 * deleted, had not happened.  The name is UTF-8.  Only the first loss of a
 * transaction is kept.  Cannot fail.
 */
extern void HeldRememberLoss(const char *name, lease_loss loss);
extern void HeldForgetLoss(void);

/* The name (UTF-8) of a lock that this transaction has lost, or NULL. */
extern const char *HeldFindLoss(lease_loss *why);

/* For transaction.c. */
extern void HeldRefusePrepare(void);
extern void HeldEndTransaction(void);
extern void HeldEndSubtransaction(bool committed);

/* On the clock of leases; in the past, or 0, if it is lost.  Async-signal-safe. */
extern int64 HeldValidUntil(const HeldLock *held);
extern bool HeldIsValid(const HeldLock *held);
extern lease_loss HeldLoss(const HeldLock *held);

/* Counts and logs a loss at the deadline, unless that was done. */
extern void HeldTellLoss(const HeldLock *held);

/* ----------------------------------------------------------------
 * deadlock.c: Deadlocks that pass through PostgreSQL's locks.
 * ----------------------------------------------------------------
 */

/* When a session that waits looks whether its wait closes a circle. */
typedef struct DeadlockSearch
{
	int64		next;
	int64		pause;
	bool		goes_first;		/* it waits in line only: if it goes first, the circle is open */
} DeadlockSearch;

/* When the wait begins. */
extern void DeadlockStart(DeadlockSearch *search);

/* To be called in each turn of the wait.  Raises; or returns when it must be called again. */
extern int64 DeadlockTurn(DeadlockSearch *search, int64 now);

/*
 * What the session waits for without a request: the end of this lease; a job of this queue, and
 * of these resources (the last one is NULL; or NULL: any).  The end must come, also by an error.
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
	const char *lock;			/* its name, in the database's encoding */
	int64		started;
	int64		limit_ms;		/* the caller's, or WAITING_NO_LIMIT */
	int64		deadline;		/* the earlier of that and lock_timeout */
	bool		lock_timeout;	/* the deadline is lock_timeout's */
	bool		only_try;		/* for a reply, not for the holder */
	bool		gives_up;		/* then, without an error */
	int64		next_look;		/* when to read the watch again */
	DeadlockSearch deadlock;
	char	   *title;			/* the process title before; NULL: it is as before */
	bool		told;
	lockmgr_watch last;			/* what was reported last */
} Waiting;

extern void WaitingStart(Waiting *waiting, const char *lock, int64 limit_ms);

/*
 * To be called in each turn of the wait for request seq of the slot.  Raises when
 * the time is over; reports who holds the lock when that is due.  Returns when
 * it must be called again.
 */
extern int64 WaitingTurn(Waiting *waiting, MailboxSlot *slot, uint64 seq,
						 int64 now);

/* When the wait is over, also by an error. */
extern void WaitingEnd(Waiting *waiting);

/*
 * If requests are repeated, and the session has waited for deadlock_timeout, reports why, once
 * for each wait.  message: why the session repeats its own; NULL: perhaps the worker does.
 */
extern void WaitingTellTrouble(int64 since, int64 now, const char *message);

/* What keeps request seq of the slot waiting; false if nothing does. */
extern bool WaitingReadWatch(MailboxSlot *slot, uint64 seq, lockmgr_watch *watch);

/* A sentence, "It is held by owner ...", palloc'd. */
extern char *WaitingDescribeHolder(const lockmgr_watch *watch, int64 now);

/* ----------------------------------------------------------------
 * session.c: What a session does with locks: acquire, release, renew, ask.
 *
 * The layer between the SQL functions, which check arguments, and the mailbox.
 * All functions raise errors of errors.h.
 * ----------------------------------------------------------------
 */

/*
 * Prepares the process, once.  Raises unless it can use ddblock: the library is
 * preloaded, and the process is neither a replication session nor a parallel
 * worker.
 */
extern void SessionAttach(void);

typedef struct AcquireOptions
{
	LockScope	scope;
	bool		only_try;
	bool		alone;			/* the transaction consists of this call */
	lock_ask	ask;			/* its first three parts.  How long it lasts, at least and at
								 * most, is ignored if the session holds the lock already */
	int64		wait_ms;		/* or WAITING_NO_LIMIT; with only_try, for a holder of this
								 * cluster, who is about to let go, if ask waits for him */
	Waiting    *waiting;		/* a wait for several locks that this one is a part of, */
								/* with only_try, too; or NULL */
	const uint8 *data;			/* NULL for none */
	size_t		data_len;
	const char *attributes;		/* as dynamo_write has them; NULL for none.  With the
								 * data at most DYNAMO_DATA_MAX bytes */
} AcquireOptions;

/* The session's note; NULL if only_try and the lock is busy. */
extern HeldLock *SessionAcquire(const LockName *name, const AcquireOptions *options);

/*
 * Undoes one session-scoped acquisition.  If there was none, or the lease is lost, raises a
 * WARNING and returns false.  If that frees an exclusive lock, keep = false ends its minimum
 * (at_least), too.
 */
extern bool SessionRelease(const LockName *name, bool keep);

/* Undoes one as SessionRelease() does, but does not wait for DynamoDB; the minimum stays. */
extern bool SessionLetGo(const LockName *name);

/* Undoes all session-scoped acquisitions; returns the number of locks. */
extern int	SessionReleaseAll(void);

/* The same, but does not wait for DynamoDB.  Cannot fail. */
extern void SessionLetGoAll(void);

/*
 * lease_ms 0: same length.  data NULL: the item keeps its data; data_len 0: it loses it.
 * Returns the new deadline, on SegmentNow()'s clock.
 */
extern int64 SessionRenew(const LockName *name, int64 lease_ms, const uint8 *data,
						  size_t data_len);

/* The token if the lease is valid, else 0.  Sends no request. */
extern int64 SessionToken(const LockName *name);

/* Microseconds until the deadline, or 0 if the lease is not valid.  Sends no request. */
extern int64 SessionRemaining(const LockName *name);

/* The session's note; raises if the lease is lost or the lock is not held. */
extern HeldLock *SessionRequire(const LockName *name);

/*
 * Reads the lock's item in DynamoDB. The result is valid until the session's
 * next request.  With unusable, the result is NULL for an item that nobody can use as a lock;
 * else such an item raises, unless it shows who holds the lock.
 */
extern const MailboxItem *SessionLookUp(const LockName *name, bool *unusable);

/* For a write, or a transaction. */
extern void SessionNewUuid(char uuid[UUID_SIZE]);

/*
 * For joined.c and several.c.
 */

extern MailboxRequest SessionAcquireRequest(const LockName *name, const AcquireOptions *options);

/* Fills in the hold of a new note; raises if it was lost before we read the answer. */
extern void SessionTakeGrant(const LockName *name, HeldLock *held,
							 const MailboxAnswer *answer, uint64 seq);

/* Says for whom it asks: this session. */
extern void SessionIdentify(lock_ask *ask);

/*
 * Ends the session's claim to the lease, and then makes the request about its hold, which ends
 * that or leaves it to the cluster.  NULL: the lease was lost; the transaction remembers the loss.
 * Raises if the answer is none of these; the session does not hold the lock then, either.
 */
extern const MailboxAnswer *SessionEndHold(HeldLock *held, const LockName *name,
										   MailboxRequest *request, MailboxResult expected,
										   lease_loss *loss);

/* The lease of this note is lost: an error, or a WARNING when its note is gone. */
pg_noreturn extern void SessionRaiseLost(const LockName *name, HeldLock *held);
extern void SessionWarnLost(const char *lock, lease_loss loss);

/* ----------------------------------------------------------------
 * drop.c: Keeps DROP EXTENSION from losing locks and fencing tokens.
 * ----------------------------------------------------------------
 */

/* Before the object is dropped: raises if that would lose something. */
extern void DropCheck(Oid class_id, Oid object_id);

/* ----------------------------------------------------------------
 * fence.c: Whether a transaction still has the fences that it asked for.
 *
 * Needs neither shared memory nor the worker.
 * ----------------------------------------------------------------
 */

/*
 * The current (sub)transaction asks for a fence.  Call it before anything that
 * can fail, but after TransactionAttach(): from here on the whole transaction
 * can commit only if this subtransaction does.
 */
extern void FenceRequest(void);

/* Before COMMIT and PREPARE: raises LK002 if a fence was undone. */
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
 * For an effect that no ROLLBACK undoes, or that needs no transaction id: raises
 * LK001 if the transaction must not have it.  The effect counts as a write from
 * then on.
 */
extern void GuardEffect(const char *what);

/* Before COMMIT and PREPARE: raises LK001 if the transaction must not commit. */
extern void GuardCommit(void);

/*
 * Has a transaction that writes passed the guard?  Then the guard does not see
 * the next loss, and the session must be interrupted.  Async-signal-safe.
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

/* Call it when there is a new deadline. */
extern void InterruptArm(void);

/*
 * Around the wait of a lock function that reports the loss of this lease by its own
 * error.  The session is not interrupted for it meanwhile; its latch is set at
 * the deadline instead.  If the transaction continues after the error, the
 * interruption follows.
 */
extern void InterruptBeginDefer(HeldLock *held);
extern void InterruptEndDefer(HeldLock *held);

/* The first lost lock, if the running transaction was interrupted, or will be. */
extern const HeldLock *InterruptCause(void);

/* Was a loss noticed since the last call? */
extern bool InterruptTakeLoss(void);

/* ----------------------------------------------------------------
 * joined.c: Joining another session's hold; leaving one to the cluster.
 *
 * All functions raise errors of errors.h.
 * ----------------------------------------------------------------
 */

/* This session holds the lock as well, for the session. */
extern void JoinedJoin(const LockName *name, int64 token);

/*
 * Joins what ddblock.join_locks names and this session does not hold.  Once in a transaction:
 * if the session releases such a lock, its next transaction joins it again.
 */
extern void JoinedCarryOutOrder(void);

/*
 * The cluster holds the lock instead of this session, for at most so long.  Returns the
 * token.  Who may not detach it keeps it; after another error neither of them holds it, nor
 * if the session ends in between.
 */
extern int64 JoinedDetach(const LockName *name, int64 at_most_ms);
extern int64 JoinedOutlive(const LockName *name);

/* Ends that.  If there was nothing to end, raises a WARNING and returns false. */
extern bool JoinedEndDetached(const LockName *name, int64 token, bool keep);

/* ----------------------------------------------------------------
 * leader.c: Transactions of a cluster that leads.
 *
 * All functions raise errors of errors.h.
 * ----------------------------------------------------------------
 */

/*
 * If this cluster leads, the transaction joins that, until it ends: its loss interrupts
 * the transaction, and the commit guard refuses its commit.  Returns the token, or 0 if
 * the cluster does not lead.
 */
extern int64 LeaderJoin(const LockName *name);

/* The same, but raises LK001 if the cluster does not lead. */
extern int64 LeaderRequire(const LockName *name);

/*
 * The cluster gives up the lock, and does not want it for so long; after wait_ms (0:
 * never) it interrupts the transactions that have joined.  Returns whether it led.
 */
extern bool LeaderResign(const LockName *name, int64 rest_ms, int64 wait_ms);

/* ----------------------------------------------------------------
 * mailbox.c: A session's side of the mailbox: ask the worker, wait for its answer.
 *
 * A session has one request at a time, and waits interruptibly.  An error while it
 * waits cancels the request; the worker then releases what the request gets, or
 * has got already.
 * ----------------------------------------------------------------
 */

/* Takes the process's slot, once in a process.  See SessionAttach(). */
extern void MailboxAttach(void);

typedef enum MailboxPause
{
	PAUSE_LOCK,
	PAUSE_CALL,
	PAUSE_TABLE,
	PAUSE_QUEUE
} MailboxPause;

/*
 * Until the process's latch is set, or so many microseconds have passed.  The caller checks for
 * interrupts, and for what it waits for, before each sleep.
 */
extern void MailboxSleep(MailboxPause what, int64 us);

/*
 * From that moment on (SegmentNow()), sleeps raise 57000; PG_INT64_MAX: no longer.
 * Who sets it unsets it, whatever happens.
 */
extern void MailboxStopAt(int64 moment);

/* This session; its generation is 0 before MailboxAttach(). */
extern lockmgr_session MailboxSession(void);
extern MailboxSlot *MailboxMySlot(void);

/*
 * Sets the request's seq, posts it with its name and data, and waits for the
 * answer, which may be a failure.  The answer is read where the worker wrote it: it
 * is valid until the session's next request.  NULL: the lease that was to be
 * renewed is past its deadline, or it is time for what waiting says.  waiting: how long, and for which lock; or NULL.
 */
extern const MailboxAnswer *MailboxCall(MailboxRequest *request, const char *name,
										const void *data, Waiting *waiting);

/*
 * The session no longer wants the lease that it got for its request seq.  Neither
 * waits nor fails.
 */
extern void MailboxLetGo(uint32 hold_index, uint64 seq);

/* ----------------------------------------------------------------
 * order.c: The standing order to join locks, ddblock.join_locks: whether it is carried out.
 * ----------------------------------------------------------------
 */

/*
 * The first named lock that this session does not hold with the token that is named, or
 * NULL.  Valid until the next call.  Cannot fail.
 */
extern const join_entry *OrderFindMissing(void);

/* DISCARD ALL lets go of the locks: its own transaction may end without them. */
extern void OrderExcuseTransaction(void);

/* ----------------------------------------------------------------
 * queue_call.c: Calls on the queues' table: repeated, and row by row.
 * ----------------------------------------------------------------
 */

typedef struct QueueReply
{
	queue_reply is;				/* its status may be what was expected; rows: that are left */
	char		message[MAILBOX_TEXT_SIZE]; /* of what was expected */
	bool		unsettled;		/* an earlier copy may have been applied */
	char	   *next;			/* where the next page begins; NULL: no more */
	char	   *bytes;			/* for QueueReadRow() */
	Size		len;
	Size		offset;
} QueueReply;

/* A row with its texts, UTF-8 and terminated. */
typedef struct QueueRow
{
	queue_row	is;
	char	   *queue;
	char	   *resource;
	char	   *id;
	char	   *error;
	char	   *payload;
	struct QueueRow *riders;	/* [is.riders] */
} QueueRow;

/* Empty texts are no resource, and so on: all zero but these. */
extern queue_request QueueRequest(queue_kind kind, const char *queue, const char *resource);

/*
 * Makes the call, and repeats it while DynamoDB is out of reach or throttles us, until
 * ddblock.retry_timeout has passed.  tail has request->tail_len bytes.  Raises for failures,
 * but for the expected one (DYNAMO_OK: none).  Palloc'd.
 */
extern QueueReply *QueueCall(const queue_request *request, const char *tail,
							 dynamo_status expected);

/* The reply's next row, palloc'd; false: there are no more. */
extern bool QueueReadRow(QueueReply *reply, QueueRow *row);

/* How much of a head the jobs take that ride on it. */
extern uint32 QueueTaken(const QueueRow *head);

/*
 * The row of a call that brings one at most: NULL if there is none.
 */
extern QueueRow *QueueCallRow(const queue_request *request, dynamo_status *status);

/*
 * Pages: the next row of all, calling as needed; false: there are no more.  A page goes when the
 * next one is called, and with it its rows, and what the caller has put into its context.
 */
typedef struct QueueScan
{
	queue_request request;
	QueueReply *reply;			/* NULL: not started */
	MemoryContext page;
} QueueScan;

extern bool QueueScanNext(QueueScan *scan, QueueRow *row);

/* ----------------------------------------------------------------
 * queue_claimed.c: The jobs that this session has claimed: notes, kept in its own memory.
 *
 * A claim is an ordinary lock of this session, and its token.  It is void as soon as the
 * session no longer holds the lock with that token, whatever ended it.
 * ----------------------------------------------------------------
 */

typedef struct QueueClaim
{
	dlist_node	node;
	char	   *lock;			/* its name, UTF-8 */
	queue_claim is;
	uint32		finish;			/* the entry of segment_finishes that its completion has */
} QueueClaim;

/* This session has passed completions on: QueueOwnSettle() waits for them. */
extern bool queue_claim_passed;

/*
 * A new note, before the lock is acquired: it has no token yet, and so is void.  If the transaction
 * aborts, it ends, and the lock with it.
 */
extern QueueClaim *QueueClaimAdd(const char *lock);

/* NULL if the session has none, valid or void. */
extern QueueClaim *QueueClaimFind(const char *lock);

/* Completes the job when the transaction has committed. */
extern void QueueClaimComplete(QueueClaim *claim, const QueueName *name);

/* Its lock was released, detached, or lost and acquired anew. */
extern bool QueueClaimIsVoid(const QueueClaim *claim);

/* Deletes the note, and leaves the lock as it is. */
extern void QueueClaimForget(QueueClaim *claim);

/* Ends the claim, and the lock with it.  Neither waits nor fails. */
extern void QueueClaimEnd(QueueClaim *claim);

/*
 * Ends the claims whose lease is lost: they would keep this session from their resources, and
 * its transactions from committing.
 */
extern void QueueClaimEndLost(void);

/*
 * For transaction.c.  A job is completed only under the lock with which it was claimed: otherwise
 * QueueClaimCommit() raises 55000.
 */
extern void QueueClaimCommit(void);
extern void QueueClaimRefusePrepare(void);
extern void QueueClaimEndLevel(int level, bool committed);

/* ----------------------------------------------------------------
 * queue_job.c: A job's life: claimed, finished, failed, buried.
 *
 * All texts are UTF-8, but for what QueueJobToServer() has converted.
 * ----------------------------------------------------------------
 */

typedef enum QueueTry
{
	QUEUE_NOTHING,				/* no job is due, or the resource is paused; or this cluster works on
								 * it, and a hint follows */
	QUEUE_BUSY,					/* somebody else holds the lock */
	QUEUE_AGAIN_NOW,			/* a job was cancelled or buried: there may be another one */
	QUEUE_FOREIGN,				/* not claimed: QueueJobToServer() raises why */
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
 * Claims the resource's next job, if it can.  attempts: how often that has been claimed, or
 * QUEUE_ATTEMPTS_UNKNOWN; then the head tells, and whether it is due.
 */
extern QueueTry QueueJobTry(const QueueName *name, int64 attempts, int64 lease_ms,
							int max_attempts, QueueJob *job);

/* The job's texts in the database's encoding.  Raises 22P05 or 22021 for what that cannot say. */
extern void QueueJobToServer(const char *queue, QueueJob *job);

/* Puts a claimed job back; it is due after this time.  Raises LK001 if the token is old. */
extern void QueueJobFail(const QueueName *name, int64 number, int64 token, const char *error,
						 int64 retry_ms);

/*
 * Cancels a job that nobody works on.  False: it is finished, or was never pushed, or was
 * cancelled.  Raises 55006 if somebody holds the resource's lock and the job is the next one.
 */
extern bool QueueJobCancel(const QueueName *name, int64 number);

/* The head; NULL if the resource never had a job. */
extern QueueRow *QueueJobHead(const char *queue, const char *resource, int64 *now_ms);

/* Deletes a job that is finished. */
extern void QueueJobDelete(const char *queue, const char *resource, int64 number);

/* ----------------------------------------------------------------
 * queue_own.c: What a session does with the jobs that it has claimed.
 * ----------------------------------------------------------------
 */

/*
 * The claim of that job.  Raises 55000 if the session has none, or has completed the job, and
 * LK001 if its lease is lost.
 */
extern QueueClaim *QueueOwnRequire(const QueueName *name, int64 number);

/* Ends the claim, and waits until DynamoDB has confirmed that the lock is released. */
extern void QueueOwnRelease(QueueClaim *claim, const LockName *lock);

/*
 * Waits a moment until this session's last completion has taken effect: then it sees the
 * resource free, and its depth.
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
	char		digest[QUEUE_DIGEST_SIZE];	/* set by QueueJobPush(), */
	int64		number;			/* as is this */
	bool		before;			/* ... pushed before, under that id */
} QueuePush;

/* Pushes up to QUEUE_PUSH_MAX jobs of one resource, in this order, at once. */
extern void QueueJobPush(const char *queue, const char *resource, QueuePush *jobs, int count,
						 int64 dedup_ms);

/* ----------------------------------------------------------------
 * queue_search.c: Looks for a job that can be claimed, and waits for one.
 * ----------------------------------------------------------------
 */

typedef struct QueueSearch
{
	const char *queue;
	char	  **resources;		/* only these, the last one is NULL; or NULL: any */
	int64		lease_ms;
	int64		wait_ms;
	int			max_attempts;
	QueueJob   *job;			/* set; or NULL: claims none, and returns when there seems to be
								 * one.  The session's next search begins with that */
} QueueSearch;

/* False: there was none in time. */
extern bool QueueSearchJob(QueueSearch *search);

/* ----------------------------------------------------------------
 * queue_table.c: Is the queues' table fit, and guarded by our lock table?
 * ----------------------------------------------------------------
 */

/* Raises 55000 if the described table cannot be a queue's. */
extern void QueueTableCheck(const QueueRow *described);

/*
 * The same, but looks at the table itself, unless a session of this cluster has done so within
 * the last hour: a table can become a global one.  Also if another lock table guards it.
 */
extern void QueueTableRequire(void);

/* Numbers of a resource without a head begin above this. */
extern int64 QueueTableFloor(void);

/* ----------------------------------------------------------------
 * several.c: Acquiring several locks in one call.
 * ----------------------------------------------------------------
 */

/*
 * Acquires all of these locks, which are different ones, in ascending order of their
 * bytes, or none of them.  Raises errors of errors.h.  False if only_try and a lock is
 * busy.
 */
extern bool SeveralAcquire(const LockName *names, int count, const AcquireOptions *options,
						   int64 *tokens);

/* ----------------------------------------------------------------
 * statement.c: What ddblock does before and after the session's statements.
 * ----------------------------------------------------------------
 */

/* From _PG_init; the second also where the library is not preloaded. */
extern void StatementInstallHooks(void);
extern void StatementInstallDropCheck(void);

/* ----------------------------------------------------------------
 * table_call.c: Calls past the lock manager: repeated, and page after page.
 *
 * For functions about the lock table as a whole, for those with which an
 * operator changes its items, and for queues.  The worker makes each call once; the session
 * repeats it, so that waiting can be canceled.
 * ----------------------------------------------------------------
 */

/*
 * Sends the request with its name and data, and repeats it while DynamoDB is out
 * of reach or throttles us, until ddblock.retry_timeout has passed.  Returns the
 * call's result, or a failure with the expected status (DYNAMO_OK: none); raises
 * for all else.  The answer is valid until the session's next request.  Sets
 * *unsettled, if it is not NULL, to whether an earlier copy may have been applied.
 */
extern const MailboxAnswer *TableCall(MailboxRequest *request, const char *name,
									  const void *data, dynamo_status expected,
									  bool *unsettled);

/* The result of a call: an answer, or a reply in pieces. */
typedef struct TableReply
{
	const MailboxAnswer *answer;	/* in the slot, until the session's next request */
	bool		unsettled;		/* an earlier copy may have been applied */
	char	   *bytes;			/* the reply, palloc'd, or NULL: the answer says all */
	uint32		len;
} TableReply;

/*
 * The same for any call past the lock manager, whose request has its kind: repeated, until an error
 * is raised when that time has passed.  data may have more bytes than a slot; the reply is of the
 * current context.
 */
extern TableReply TableCallReply(MailboxRequest *request, const char *name, const void *data,
								 dynamo_status expected, int64 patience_ms);

/*
 * Is the table of use after this refusal of UpdateTimeToLive?  It is enabled already, or
 * the server does not have it, which gives a WARNING.  kind: "lock table"
 */
extern bool TableTtlAccept(const char *message, const char *kind, const char *table);

/* A WARNING: anybody who may can delete the table.  kind: as above */
extern void TableTellUnprotected(const char *kind, const char *table);

/* Time between two calls of DescribeTable while a table is being created. */
#define TABLE_POLL_US INT64CONST(500000)

/* DescribeTable is not consistent, and may not find a new table at first. */
#define TABLE_APPEARANCE_US (30 * USECS_PER_SEC)

/* Can a table with this status be used?  Raises if it never becomes so.  kind: as above */
extern bool TableIsActive(const char *status, const char *kind, const char *table);

/* Can be interrupted. */
extern void TableSleep(int64 microseconds);

/*
 * Once more a reply says that something has changed meanwhile: to be called before the
 * next attempt.  *times counts from 0; the first repetition is at once, the others ever
 * later, and too many raise an error.  table: for people
 */
extern void TableAgain(unsigned *times, const char *table);

/* All lock items, or some.  In the current memory context, until TableScanNext() returns false. */
typedef struct TableScan
{
	const char *prefix;
	MailboxRequest request;
	LockPage   *page;			/* NULL: not started */
	int			read;			/* of its rows, */
	const LockRow *row;			/* and the last one of these */
	bool		found;			/* any row */
} TableScan;

/* prefix is UTF-8, at most DYNAMO_NAME_MAX bytes, and stays the caller's. */
extern TableScan *TableScanStart(const char *prefix, bool released_only);

/*
 * The next row, calling for pages as needed; false at the end.  Raises if there is none because
 * the table has other keys.
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
