/*-------------------------------------------------------------------------
 *
 * queue_claim.c
 *	  The jobs that this session has claimed: notes, kept in its own memory.
 *
 * A job is completed when the transaction that called ddb_queue_complete() has
 * committed.  Then nothing may fail or wait.  So an entry for the worker is reserved
 * before, and only passed on after COMMIT; with it goes the session's hold, which
 * the worker ends when the job is finished.
 *
 * A claim ends with the transaction that made it, if that aborts: its caller may never have
 * seen the job.  The backoff was written with the claim, so the job comes again later.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "utils/memutils.h"

#include "session/mailbox.h"
#include "session/queue_claim.h"
#include "shared/errors.h"
#include "shared/queue_hint.h"
#include "shared/utf8.h"

/* The part of the places for completions that one session may take. */
#define SHARE_OF_PLACES 2

static dlist_head claims = DLIST_STATIC_INIT(claims);

bool		queue_claim_passed = false;

static void sync_work(void);
static void limit_completions(void);
static uint32 reserve(void);
static void drop_completion(QueueClaim *claim);
static void pass_on(QueueClaim *claim);

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
	claim->number = 0;
	claim->pushed_at = 0;
	claim->token = 0;
	claim->last = false;
	claim->claimed_level = GetCurrentTransactionNestLevel();
	claim->finish_level = 0;
	return claim;
}

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

/* The lock was released, detached, or lost and acquired anew. */
bool
QueueClaimIsVoid(const QueueClaim *claim)
{
	const HeldLock *held = HeldFind(claim->lock);

	return held == NULL || held->token != claim->token;
}

void
QueueClaimForget(QueueClaim *claim)
{
	dlist_delete(&claim->node);
	pfree(claim->lock);
	pfree(claim);
}

void
QueueClaimComplete(QueueClaim *claim, const char *queue, const char *resource)
{
	uint32		index;
	FinishEntry *entry;

	limit_completions();
	sync_work();
	index = reserve();
	entry = &segment_finishes[index];
	entry->token = claim->token;
	entry->number = claim->number;
	entry->last = claim->last;
	strlcpy(entry->queue, queue, sizeof(entry->queue));
	strlcpy(entry->resource, resource, sizeof(entry->resource));
	claim->finish = index;
	claim->finish_level = GetCurrentTransactionNestLevel();
}

/*
 * The work must be on disk before DynamoDB learns that it is done, also with synchronous_commit =
 * off: that of earlier transactions, and this one's when it commits.
 */
static void
sync_work(void)
{
	ForceSyncCommit();
	if (!RecoveryInProgress())
		XLogFlush(XactLastCommitEnd);
}

/* One transaction must not take the places of all sessions. */
static void
limit_completions(void)
{
	uint32		limit = segment->max_sessions / SHARE_OF_PLACES;
	uint32		count = 0;
	dlist_iter	iter;

	dlist_foreach(iter, &claims)
		count += dlist_container(QueueClaim, node, iter.cur)->finish_level > 0;
	if (count >= limit)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("a transaction cannot complete more than %u jobs", limit),
				 errhint("Complete fewer jobs in one transaction, or increase "
						 "\"max_connections\".")));
}

/* From our own place on, so that sessions do not meet. */
static uint32
reserve(void)
{
	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		uint32		index = (MailboxSession().slot + i) % segment->max_sessions;
		uint32		expected = FINISH_FREE;

		if (pg_atomic_compare_exchange_u32(&segment_finishes[index].state, &expected,
										   FINISH_RESERVED))
			return index;
	}
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("too many jobs of this cluster wait to be finished"),
			 errhint("DynamoDB may be out of reach, or may refuse this server: see the "
					 "server log, and the view ddb_status.")));
}

void
QueueClaimEnd(QueueClaim *claim)
{
	HeldLock   *held = HeldFind(claim->lock);

	if (!QueueClaimIsVoid(claim) && held->session_depth > 0)
	{
		HeldUncountSession(held, 1);
		HeldLetGoIfUnused(held);
	}
	QueueClaimForget(claim);
}

void
QueueClaimEndLost(void)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &claims)
	{
		QueueClaim *claim = dlist_container(QueueClaim, node, iter.cur);

		if (claim->finish_level == 0 && !QueueClaimIsVoid(claim) &&
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
		if (dlist_container(QueueClaim, node, iter.cur)->finish_level > 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot PREPARE a transaction that has completed a job of a queue")));
	}
}

void
QueueClaimCommit(void)
{
	dlist_iter	iter;

	dlist_foreach(iter, &claims)
	{
		const QueueClaim *claim = dlist_container(QueueClaim, node, iter.cur);

		if (claim->finish_level > 0 && QueueClaimIsVoid(claim))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("lock \"%s\" was given up after its job had been completed",
							Utf8ToMessage(claim->lock, strlen(claim->lock))),
					 errdetail("Another session may be working on the job."),
					 errhint("The lock is released when the transaction has committed.")));
	}
}

void
QueueClaimEndTransaction(bool committed)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &claims)
	{
		QueueClaim *claim = dlist_container(QueueClaim, node, iter.cur);

		if (committed && claim->finish_level > 0)
		{
			pass_on(claim);
			continue;
		}
		drop_completion(claim);
		if (!committed && claim->claimed_level > 0)
			QueueClaimEnd(claim);
		else if (QueueClaimIsVoid(claim))
			QueueClaimForget(claim);
		else
			claim->claimed_level = 0;
	}
}

void
QueueClaimEndSubtransaction(bool committed)
{
	int			nest_level = GetCurrentTransactionNestLevel();
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &claims)
	{
		QueueClaim *claim = dlist_container(QueueClaim, node, iter.cur);

		if (claim->finish_level >= nest_level)
		{
			if (committed)
				claim->finish_level = nest_level - 1;
			else
				drop_completion(claim);
		}
		if (claim->claimed_level >= nest_level)
		{
			if (committed)
				claim->claimed_level = nest_level - 1;
			else
				QueueClaimEnd(claim);
		}
	}
}

static void
drop_completion(QueueClaim *claim)
{
	if (claim->finish_level == 0)
		return;
	pg_atomic_write_u32(&segment_finishes[claim->finish].state, FINISH_FREE);
	claim->finish_level = 0;
}

/*
 * The hold becomes the worker's, unless the session has acquired the lock once more.  The
 * note goes first: as soon as the hold ends, its place in the directory may be another's.
 */
static void
pass_on(QueueClaim *claim)
{
	FinishEntry *entry = &segment_finishes[claim->finish];
	HeldLock   *held = HeldFind(claim->lock);
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];
	bool		has_next = !entry->last;

	/* Once the entry is the worker's, it may be used anew at any time. */
	strlcpy(queue, entry->queue, sizeof(queue));
	strlcpy(resource, entry->resource, sizeof(resource));
	entry->session = MailboxSession();
	entry->hold_index = LOCKMGR_NO_HOLD;
	if (!QueueClaimIsVoid(claim) && held->session_depth > 0)
	{
		HeldUncountSession(held, 1);
		/* What the transaction holds besides ends with it. */
		if (held->session_depth == 0)
		{
			queue_claim_passed = true;
			entry->hold_seq = held->seq;
			entry->hold_index = held->hold_index;
			HeldForget(held);
		}
	}
	QueueClaimForget(claim);
	pg_write_barrier();
	pg_atomic_write_u32(&entry->state, FINISH_READY);
	SegmentRingFinish();
	if (has_next)
		QueueHintTell(queue, resource, 0);
}
