/*-------------------------------------------------------------------------
 *
 * held.c
 *	  The locks that this session holds: a list of HeldLocks, in its own memory.
 *
 * The functions for the end of (sub)transactions run with interrupts held, and must neither fail
 * nor wait.  They flag holds in shared memory, ring the worker, and free memory.  The worker
 * releases the locks later, so the client does not wait.
 *
 * The HeldLock of a lost lease stays in the list until the session releases the lock, or its
 * transaction ends.  When it is deleted, the transaction's first loss is remembered for the commit
 * guard.
 *
 * The signal handler in interrupt.c reads the list.  So each change of the list, and of what the
 * handler reads in a HeldLock, stands between HeldBeginChange() and HeldEndChange().
 *
 * Savepoints: a lock that a subtransaction has acquired is released if the subtransaction aborts,
 * and belongs to the parent if it commits.  contrib/postgres_fdw treats its remote subtransactions
 * in the same way.
 *
 * ddblock.release_on_rollback: session-scoped acquisitions are then counted by level, too, and an
 * abort of the (sub)transaction undoes them.  A release undoes the latest acquisition first, so it
 * takes one off the innermost level that has any: T acquires, begins, acquires, releases and rolls
 * back, and holds the lock as before BEGIN.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/ipc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "session/session.h"

static HTAB *held_locks = NULL;
static dlist_head held_list = DLIST_STATIC_INIT(held_list);
static volatile sig_atomic_t changing = 0;

/* The sum of level_count of all HeldLocks.  If it is 0, the end of a transaction undoes nothing. */
static int64 levels_in_use = 0;

/*
 * The transaction's first loss among HeldLocks that are deleted already.  UTF-8; "": there is
 * none.
 */
static char first_lost_name[DYNAMO_NAME_MAX + 1] = "";
static lease_loss first_loss = LOSS_NONE;

int64
HeldValidUntil(const HeldLock *held)
{
	int64		valid_until = mailbox_valid_until(&segment_mailbox, held->lease_index,
												  held->lease_generation);

	return held->must_end != 0 ? Min(held->must_end, valid_until) : valid_until;
}

/* Does the caller's limit (at_most) end this hold, rather than the lease's deadline? */
static bool
is_at_most(const HeldLock *held)
{
	return held->must_end != 0 && HeldValidUntil(held) == held->must_end;
}

/*
 * Does nothing if the lease was lost before its deadline: the worker logs such a loss, because it
 * knows the reason.
 */
void
HeldTellLoss(const HeldLock *held)
{
	int64		valid_until = HeldValidUntil(held);

	bool		at_most = is_at_most(held);
	const char *failure;
	char		why[DYNAMO_MESSAGE_SIZE + 128];

	if (valid_until == 0 || valid_until > SegmentNow())
		return;
	failure = SegmentRenewalFailure(valid_until - ddblock_lease_duration * INT64CONST(1000));
	snprintf(why, sizeof(why), "DynamoDB confirmed no renewal before its deadline%s%s",
			 failure != NULL ? "; the last one failed " : "", failure != NULL ? failure : "");
	LossTell(held->hold_index, MailboxSession(), held->seq, held->name,
			 at_most ? LOSS_AT_MOST : LOSS_UNREACHABLE, at_most ? LOSS_WHY_AT_MOST : why);
}

/*
 * Reports losses before the session ends.  The worker may not have noticed such a loss yet; after
 * this session has ended, it sees only that.
 */
static void
at_exit(int code, Datum arg)
{
	foreach_held(held)
	{
		if (held->hold_index != LOCKMGR_NO_HOLD)
			HeldTellLoss(held);
	}
}

void
HeldAttach(void)
{
	HASHCTL		info = {
		.keysize = sizeof(((HeldLock *) NULL)->name),
		.entrysize = sizeof(HeldLock),
		.hcxt = TopMemoryContext,
	};
	HTAB	   *locks;

	if (held_locks != NULL)
		return;
	locks = hash_create("ddblock held locks", 16, &info,
						HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
	before_shmem_exit(at_exit, (Datum) 0);
	/* Set last: if something fails before, the next call tries everything again. */
	held_locks = locks;
}

HeldLock *
HeldFind(const char *name)
{
	if (held_locks == NULL)
		return NULL;
	return hash_search(held_locks, name, HASH_FIND, NULL);
}

HeldLock *
HeldNext(const HeldLock *held)
{
	const dlist_node *node = held != NULL ? &held->node : &held_list.head;

	return node->next != &held_list.head ? dlist_container(HeldLock, node, node->next) : NULL;
}

void
HeldBeginChange(void)
{
	Assert(!changing);
	changing = 1;
	pg_compiler_barrier();
}

void
HeldEndChange(void)
{
	pg_compiler_barrier();
	changing = 0;
}

bool
HeldIsChanging(void)
{
	return changing;
}

static void
reserve_level(HeldLock *held)
{
	int			room = held->level_room * 2 + 1;

	if (held->level_count < held->level_room)
		return;
	if (held->levels == NULL)
		held->levels = MemoryContextAlloc(TopMemoryContext, room * sizeof(HeldLevel));
	else
		held->levels = repalloc(held->levels, room * sizeof(HeldLevel));
	held->level_room = room;
}

/*
 * Copies the depths into the hold's entry, for the views, unless the entry is another hold's by
 * now.
 */
static void
mirror_depths(const HeldLock *held)
{
	HoldEntry  *entry = &segment_holds[held->hold_index];

	if (shared_read(&entry->words.mark) != mailbox_mark(MailboxSession(), held->seq))
		return;
	shared_write(&entry->session_depth, (uint32) held->session_depth);
	shared_write(&entry->xact_depth, (uint32) held->xact_depth);
}

static void
count(HeldLock *held, LockScope scope)
{
	int			nest_level = scope == SCOPE_LEADER ? 1 : GetCurrentTransactionNestLevel();

	if (scope == SCOPE_SESSION)
		held->session_depth++;
	else
		held->xact_depth++;
	if (scope != SCOPE_SESSION || ddblock_release_on_rollback)
	{
		HeldLevel  *top = &held->levels[held->level_count];

		if (held->level_count > 0 && top[-1].nest_level == nest_level)
			top--;
		else
		{
			*top = (HeldLevel) {.nest_level = nest_level};
			held->level_count++;
			levels_in_use++;
		}
		if (scope == SCOPE_SESSION)
			top->session_depth++;
		else
			top->xact_depth++;
	}
	mirror_depths(held);
}

static void
pop_level(HeldLock *held)
{
	held->level_count--;
	levels_in_use--;
}

static void
pop_empty_levels(HeldLock *held)
{
	while (held->level_count > 0 &&
		   held->levels[held->level_count - 1].session_depth == 0 &&
		   held->levels[held->level_count - 1].xact_depth == 0)
		pop_level(held);
}

/* The innermost level ends.  Undoes what its end undoes. */
static void
end_level(HeldLock *held, bool committed)
{
	const HeldLevel *top = &held->levels[held->level_count - 1];

	held->xact_depth -= top->xact_depth;
	if (!committed)
		held->session_depth -= top->session_depth;
	pop_level(held);
}

void
HeldRememberLoss(const char *name, lease_loss loss)
{
	if (first_lost_name[0] != '\0')
		return;
	strlcpy(first_lost_name, name, sizeof(first_lost_name));
	first_loss = loss;
}

bool
HeldIsValid(const HeldLock *held)
{
	/*
	 * Read the deadline before the clock: if this process is stopped in between, it then sees that
	 * time has passed.  The worker may change the deadline meanwhile:
	 *
	 *	 - If it extends the deadline, the answer "no" is too strict, which does no harm.
	 *	 - If the lease gets shorter or is lost, the answer "yes" was right when the deadline was
	 *	   read, and the worker's signal follows.
	 */
	int64		valid_until = HeldValidUntil(held);

	pg_read_barrier();
	return SegmentNow() < valid_until;
}

lease_loss
HeldLoss(const HeldLock *held)
{
	lease_loss	loss;

	if (held->loss != LOSS_NONE)
		return held->loss;
	loss = mailbox_loss(&segment_mailbox, MailboxSession(), held->seq, held->hold_index);
	/* The worker may not have noticed yet that the limit has passed. */
	return loss == LOSS_NONE && is_at_most(held) ? LOSS_AT_MOST : loss;
}

void
HeldForget(HeldLock *held)
{
	if (held->hold_index != LOCKMGR_NO_HOLD && !HeldIsValid(held))
	{
		HeldTellLoss(held);
		HeldRememberLoss(held->name, HeldLoss(held));
	}
	levels_in_use -= held->level_count;
	HeldBeginChange();
	dlist_delete(&held->node);
	HeldEndChange();
	if (held->levels != NULL)
		pfree(held->levels);
	hash_search(held_locks, held->name, HASH_REMOVE, NULL);
}

HeldLock *
HeldAdd(const LockName *name, LockScope scope, HeldAcquire acquire, const void *arg)
{
	bool		found;
	HeldLock   *volatile held = hash_search(held_locks, name->utf8, HASH_ENTER, &found);
	volatile bool acquired = false;

	Assert(!found);
	memset(held, 0, sizeof(*held));
	strlcpy(held->name, name->utf8, sizeof(held->name));	/* the key, which memset() has
															 * erased */
	held->hold_index = LOCKMGR_NO_HOLD;
	held->permits = 1;
	HeldBeginChange();
	dlist_push_tail(&held_list, &held->node);
	HeldEndChange();

	PG_TRY();
	{
		reserve_level(held);
		acquired = acquire(held, name, arg);
	}
	PG_FINALLY();
	{
		if (!acquired)
			HeldForget(held);
	}
	PG_END_TRY();
	if (!acquired)
		return NULL;
	count(held, scope);
	return held;
}

void
HeldCount(HeldLock *held, LockScope scope)
{
	reserve_level(held);
	count(held, scope);
}

void
HeldUncountSession(HeldLock *held, int64 depth)
{
	held->session_depth -= depth;
	for (int i = held->level_count - 1; i >= 0; i--)
	{
		int64		here = Min(depth, held->levels[i].session_depth);

		held->levels[i].session_depth -= here;
		depth -= here;
	}
	pop_empty_levels(held);
	mirror_depths(held);
}

void
HeldUncount(HeldLock *held, LockScope scope)
{
	if (scope == SCOPE_SESSION)
		HeldUncountSession(held, 1);
	else
	{
		held->levels[held->level_count - 1].xact_depth--;
		held->xact_depth--;
		pop_empty_levels(held);
	}
	HeldLetGoIfUnused(held);
}

void
HeldForgetLoss(void)
{
	first_lost_name[0] = '\0';
}

const char *
HeldFindLoss(lease_loss *why)
{
	if (first_lost_name[0] != '\0')
	{
		*why = first_loss;
		return first_lost_name;
	}
	foreach_held(held)
	{
		if (!HeldIsValid(held))
		{
			*why = HeldLoss(held);
			return held->name;
		}
	}
	return NULL;
}

/*
 * Deletes the HeldLock before it lets go of the hold: as soon as that is let go, its entry may be
 * another session's.
 */
void
HeldLetGoIfUnused(HeldLock *held)
{
	uint32		hold_index = held->hold_index;
	uint64		seq = held->seq;

	mirror_depths(held);
	if (held->session_depth > 0 || held->xact_depth > 0)
		return;
	HeldForget(held);
	MailboxLetGo(hold_index, seq);
}

void
HeldRefusePrepare(void)
{
	foreach_held(held)
	{
		if (held->xact_depth > 0)
			ErrorsUnsupported(errmsg("cannot PREPARE a transaction that has acquired "
									 "transaction-scoped ddblock locks"));
	}
}

void
HeldEndTransaction(bool committed)
{
	if (levels_in_use > 0)
	{
		foreach_held(held)
		{
			if (held->level_count == 0)
				continue;
			while (held->level_count > 0)
				end_level(held, committed);
			HeldLetGoIfUnused(held);
		}
	}
	HeldForgetLoss();
}

void
HeldEndSubtransaction(bool committed)
{
	int			nest_level = GetCurrentTransactionNestLevel();

	if (levels_in_use == 0)
		return;
	foreach_held(held)
	{
		HeldLevel  *top;

		if (held->level_count == 0)
			continue;
		top = &held->levels[held->level_count - 1];
		if (top->nest_level < nest_level)
			continue;
		if (!committed)
		{
			end_level(held, false);
			HeldLetGoIfUnused(held);
		}
		/* The parent gets the acquisitions: they are added to its level, or become it. */
		else if (held->level_count > 1 && top[-1].nest_level == nest_level - 1)
		{
			top[-1].session_depth += top->session_depth;
			top[-1].xact_depth += top->xact_depth;
			pop_level(held);
		}
		else
			top->nest_level--;
	}
}
