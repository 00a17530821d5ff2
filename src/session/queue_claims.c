/*-------------------------------------------------------------------------
 *
 * queue_claims.c
 *	  The jobs that this session has claimed: a list of QueueClaims, in its own memory.
 *
 * A job is completed when the transaction that called ddb_queue_complete() has committed.  After
 * COMMIT nothing may fail or wait.  So ddb_queue_complete() reserves an entry in segment_finishes,
 * and the callback after COMMIT only passes this entry on to the worker.  The session's hold goes
 * with it: the worker ends the hold when the job is finished.
 *
 * If the transaction that made a claim aborts, the claim ends: the caller may never have seen the
 * job.  The claim's write has already set when the job is due again, so it comes again later.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "utils/memutils.h"

#include "session/session.h"

/* One session may take one half of segment_finishes. */
#define SHARE_OF_PLACES 2

static dlist_head claims = DLIST_STATIC_INIT(claims);

bool		queue_claim_passed = false;

QueueClaim *
QueueClaimFind(const char *lock)
{
	dlist_iter	iter;

	dlist_foreach(iter, &claims)
	{
		QueueClaim *claim = dlist_container(QueueClaim, node, iter.cur);

		if (strcmp(claim->lock, lock) == 0)
			return claim;
	}
	return NULL;
}

QueueClaim *
QueueClaimAdd(const char *lock)
{
	QueueClaim *claim = QueueClaimFind(lock);

	if (claim == NULL)
	{
		char	   *name = MemoryContextStrdup(TopMemoryContext, lock);

		claim = MemoryContextAlloc(TopMemoryContext, sizeof(QueueClaim));
		claim->lock = name;
		dlist_push_tail(&claims, &claim->node);
	}
	claim->is = queue_claim_begin(GetCurrentTransactionNestLevel());
	return claim;
}

bool
QueueClaimIsVoid(const QueueClaim *claim)
{
	const HeldLock *held = HeldFind(claim->lock);

	return held == NULL || held->token != claim->is.token;
}

void
QueueClaimForget(QueueClaim *claim)
{
	dlist_delete(&claim->node);
	pfree(claim->lock);
	pfree(claim);
}

/*
 * Raises if this transaction takes too many entries of segment_finishes: other sessions need some,
 * too.
 */
static void
limit_completions(void)
{
	uint32		limit = segment->max_sessions / SHARE_OF_PLACES;
	uint32		count = 0;
	dlist_iter	iter;

	dlist_foreach(iter, &claims)
		count += dlist_container(QueueClaim, node, iter.cur)->is.finish_level > 0;
	if (count >= limit)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("a transaction cannot complete more than %u jobs", limit),
				 errhint("Complete fewer jobs in one transaction, or increase "
						 "\"max_connections\".")));
}

void
QueueClaimComplete(QueueClaim *claim, const QueueName *name)
{
	uint32		index;

	limit_completions();
	/*
	 * The work must be on disk before DynamoDB learns that it is done, even with
	 * synchronous_commit = off.  ForceSyncCommit() is for the work of this transaction.
	 * XLogFlush() is for that of earlier transactions, which may have committed asynchronously.
	 */
	ForceSyncCommit();
	if (!RecoveryInProgress())
		XLogFlush(XactLastCommitEnd);

	index = queue_place_reserve(SegmentFinishPlace, NULL, MailboxSession().slot,
								segment->max_sessions);
	if (index == QUEUE_NO_PLACE)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many jobs of this cluster wait to be finished"),
				 errhint("DynamoDB may be out of reach, or may refuse this server: see the "
						 "server log, and the view ddb_status.")));
	claim->finish = index;
	queue_claim_complete(&claim->is, GetCurrentTransactionNestLevel(),
						 SegmentFinishPlace(NULL, index), name->queue, name->resource);
}

void
QueueClaimEnd(QueueClaim *claim)
{
	HeldLock   *held = HeldFind(claim->lock);

	if (!QueueClaimIsVoid(claim) && held->session_depth > 0)
		HeldUncount(held, SCOPE_SESSION);
	QueueClaimForget(claim);
}

void
QueueClaimEndLost(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &claims)
	{
		QueueClaim *claim = dlist_container(QueueClaim, node, iter.cur);

		if (claim->is.finish_level == 0 && !QueueClaimIsVoid(claim) &&
			!HeldIsValid(HeldFind(claim->lock)))
			QueueClaimEnd(claim);
	}
}

void
QueueClaimRefusePrepare(void)
{
	dlist_iter	iter;

	dlist_foreach(iter, &claims)
	{
		if (dlist_container(QueueClaim, node, iter.cur)->is.finish_level > 0)
			ErrorsUnsupported(errmsg("cannot PREPARE a transaction that has completed a job of a "
									 "queue"));
	}
}

void
QueueClaimCommit(void)
{
	dlist_iter	iter;

	dlist_foreach(iter, &claims)
	{
		const QueueClaim *claim = dlist_container(QueueClaim, node, iter.cur);

		if (claim->is.finish_level > 0 && QueueClaimIsVoid(claim))
			ErrorsState(errmsg("lock \"%s\" was given up after its job had been completed",
							   Utf8ToMessage(claim->lock)),
						errdetail("Another session may be working on the job."),
						errhint("The lock is released when the transaction has committed."));
	}
}

/*
 * Passes the completion on to the worker, after COMMIT.  The hold goes with it, unless the session
 * has acquired the lock once more, and so keeps it.  Deletes the HeldLock before it passes the
 * hold on: as soon as the hold ends, its entry in the directory may be another session's.
 */
static void
pass_on(QueueClaim *claim)
{
	FinishEntry *entry = &segment_finishes[claim->finish];
	HeldLock   *held = HeldFind(claim->lock);
	queue_place was;
	int64		seq;
	uint32		taken;

	entry->session = MailboxSession();
	entry->hold_index = LOCKMGR_NO_HOLD;
	if (!QueueClaimIsVoid(claim) && held->session_depth > 0)
	{
		HeldUncountSession(held, 1);
		/*
		 * Transaction-scoped acquisitions do not keep the hold: HeldEndTransaction() would undo
		 * them anyway.
		 */
		if (held->session_depth == 0)
		{
			queue_claim_passed = true;
			entry->hold_seq = held->seq;
			entry->hold_index = held->hold_index;
			HeldForget(held);
		}
	}
	QueueClaimForget(claim);
	queue_place_pass(&entry->place, &was);
	/* If no job was pushed after this one, no job rides on the head any more. */
	if (queue_memory_guess(segment->memory, was.queue, was.resource, &seq, &taken) &&
		seq == was.number)
		queue_memory_note(segment->memory, was.queue, was.resource, seq, 0);
	SegmentRingFinish();
	if (!was.last)
		QueueHintTell(was.queue, was.resource, 0);
}

void
QueueClaimEndLevel(int level, bool committed)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &claims)
	{
		QueueClaim *claim = dlist_container(QueueClaim, node, iter.cur);

		switch (queue_claim_end(&claim->is, level, committed, QueueClaimIsVoid(claim)))
		{
			case QUEUE_CLAIM_STAYS:
				break;
			case QUEUE_CLAIM_ENDS:
				QueueClaimEnd(claim);
				break;
			case QUEUE_CLAIM_VOID:
				QueueClaimForget(claim);
				break;
			case QUEUE_CLAIM_PASSES:
				pass_on(claim);
				break;
		}
	}
}
