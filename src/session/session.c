/*-------------------------------------------------------------------------
 *
 * session.c
 *	  What a session does with locks: acquire, release, renew, ask.
 *
 * A release deletes the HeldLock before the request is sent.  So even if the request fails or is
 * canceled, the session does not hold the lock afterwards, and the worker completes the release.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "replication/walsender.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"

#include "session/session.h"

/*
 * A hold that the session is giving up.  Its HeldLock is deleted already, so this is all that is
 * left to name the hold.
 */
typedef struct Ending
{
	uint32		hold_index;
	uint64		seq;
} Ending;

/*
 * Takes the slot last: the worker signals only processes that have a slot, and by then the handler
 * must be installed.
 */
void
SessionAttach(void)
{
	ErrorsRequirePreload();
	if (MailboxSession().generation != 0)
		return;

	/* Replication processes use LOSS_SIGNAL for themselves. */
	if (am_walsender || CompatIsParallelApplyWorker())
		ErrorsUnsupported(errmsg("ddblock cannot be used in a replication session"));
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("ddblock cannot be used in a parallel worker")));

	HeldAttach();
	TransactionAttach();
	InterruptAttach();
	MailboxAttach();
}

/* The error tells the client of the loss.  So the next statement does not warn of it again. */
void
SessionRaiseLost(const LockName *name, HeldLock *held)
{
	HeldTellLoss(held);
	held->told = true;
	ErrorsLost(name->text, HeldLoss(held));
}

/*
 * This process may have been stopped before it read the answer, for longer than the lease.  So
 * checks the lease once more.
 */
void
SessionTakeGrant(const LockName *name, HeldLock *held, const MailboxAnswer *answer, uint64 seq)
{
	lease_loss	loss;

	HeldBeginChange();
	held->seq = seq;
	held->token = answer->grant.token;
	held->must_end = answer->grant.must_end;
	held->lease_index = answer->grant.lease_index;
	held->lease_generation = answer->grant.lease_generation;
	held->hold_index = answer->grant.hold_index;
	HeldEndChange();
	InterruptArm();
	if (HeldIsValid(held))
		return;
	loss = HeldLoss(held);
	HeldTellLoss(held);
	HeldBeginChange();
	held->hold_index = LOCKMGR_NO_HOLD;
	HeldEndChange();
	MailboxLetGo(answer->grant.hold_index, seq);
	ErrorsNoLease(errmsg("the lease on lock \"%s\" was lost before this session received it",
						 name->text),
				  errdetail("%s", ErrorsLossReason(loss)),
				  errhint("The session does not hold the lock. Acquire it again, with a longer "
						  "lease if this happens often."));
}

static int64
margin_us(int64 lease_ms)
{
	return (int64) (lease_ms * 1000 * ddblock_safety_margin);
}

void
SessionNewUuid(char uuid[UUID_SIZE])
{
	uint8		random[16];

	if (!pg_strong_random(random, sizeof(random)))
		elog(ERROR, "could not generate random values");
	uuid_v4(random, uuid);
}

/* Leaves holder.since_ms alone: the worker sets it to the time of the grant. */
void
SessionIdentify(lock_ask *ask)
{
	dynamo_holder *holder = &ask->holder;
	char		host[DYNAMO_HOLDER_SIZE];

	if (gethostname(host, sizeof(host)) != 0)
		host[0] = '\0';
	host[sizeof(host) - 1] = '\0';

	Utf8Copy(holder->database, DYNAMO_HOLDER_SIZE, get_database_name(MyDatabaseId));
	Utf8Copy(holder->user, DYNAMO_HOLDER_SIZE, GetUserNameFromId(GetSessionUserId(), true));
	Utf8Copy(holder->application, DYNAMO_HOLDER_SIZE, application_name);
	Utf8Copy(holder->host, DYNAMO_HOLDER_SIZE, host);
	holder->pid = MyProcPid;
	ask->role = GetSessionUserId();
	ask->role_max_leases = ddblock_role_max_leases;
	ask->superuser = superuser_arg(ask->role);
}

MailboxRequest
SessionAcquireRequest(const LockName *name, const AcquireOptions *options)
{
	size_t		attributes_len = options->attributes != NULL ? strlen(options->attributes) : 0;
	MailboxRequest request = {
		.kind = options->only_try ? MAILBOX_TRY : MAILBOX_ACQUIRE,
		.name_len = strlen(name->utf8),
		.data_len = options->data_len + attributes_len,
		.attributes_len = attributes_len,
		.has_data = options->data != NULL,
		.ask = options->ask,
	};

	request.ask.margin_us = margin_us(request.ask.lease_ms);
	request.ask.taker = GetUserId();
	request.ask.prefix_len = strlen(ddblock_lock_prefix);
	SessionIdentify(&request.ask);
	return request;
}

/*
 * Acquires the lock of a new HeldLock (a HeldAcquire).  False if only_try is set and the lock is
 * busy.
 */
static bool
acquire_anew(HeldLock *held, const LockName *name, const void *arg)
{
	const AcquireOptions *options = arg;
	MailboxRequest request = SessionAcquireRequest(name, options);
	const MailboxAnswer *answer;
	Waiting    *waiting = options->waiting;
	Waiting		own;
	bool		own_try = options->only_try && !options->ask.waits_for_local_holder;
	char	   *payload = palloc(request.data_len + 1);

	if (options->data != NULL)
		memcpy(payload, options->data, options->data_len);
	if (options->attributes != NULL)
		memcpy(payload + options->data_len, options->attributes,
			   request.attributes_len);
	if (waiting == NULL)
	{
		WaitingStart(&own, name->text, own_try ? WAITING_NO_LIMIT : options->wait_ms);
		own.only_try = own_try;
		own.gives_up = options->ask.waits_for_local_holder;
		waiting = &own;
	}
	do
	{
		waiting->deadlock.goes_first = false;
		answer = MailboxCall(&request, name->utf8, payload, waiting);
		request.ask.goes_first = true;
	} while (answer == NULL && waiting->deadlock.goes_first);
	if (answer == NULL || answer->result == MAILBOX_BUSY)
	{
		if (waiting->only_try)
			SegmentCount(EVENT_BUSY);
		return false;
	}
	if (answer->result != MAILBOX_GRANTED)
		ErrorsAnswer(answer, name->text);
	SegmentCount(EVENT_ACQUIRED);
	if (waiting == &own && !options->only_try)
		SegmentCountWait(own.started);
	held->mode = options->ask.mode;
	held->permits = options->ask.permits;
	SessionTakeGrant(name, held, answer, request.seq);
	return true;
}

HeldLock *
SessionAcquire(const LockName *name, const AcquireOptions *options)
{
	HeldLock   *held;

	SessionAttach();

	held = HeldFind(name->utf8);
	NameRefuseLed(name, held);
	if (held == NULL)
	{
		held = HeldAdd(name, options->scope, acquire_anew, options);
		if (held != NULL && MailboxMySlot()->answer.grant.waited && !options->alone &&
			FirstSnapshotSet && IsolationUsesXactSnapshot())
			ereport(WARNING,
					(errmsg("the transaction may not see what the last holder of lock \"%s\" has "
							"done", name->text),
					 errdetail("It waited for the lock, and its snapshot is older than the wait's "
							   "end, as its isolation level is not READ COMMITTED."),
					 errhint("Acquire the lock before BEGIN, use READ COMMITTED, or call "
							 "ddb_fence_check(), which then fails with 40001.")));
		return held;
	}
	if (!HeldIsValid(held))
		SessionRaiseLost(name, held);
	/* To wait for the lock in another mode, the session would wait for itself. */
	if (held->mode != options->ask.mode)
		ErrorsUnsupported(errmsg("this session holds lock \"%s\" in another mode", name->text),
						  errdetail("It holds it %s.", ErrorsModeName(held->mode)),
						  errhint("Release it first, with ddb_lock_release()."));
	if (lockmgr_limited(held->mode) && held->permits != options->ask.permits)
		ErrorsUnsupported(errmsg("this session has another number of permits of semaphore \"%s\"",
								 name->text),
						  errdetail("It has %d.", held->permits),
						  errhint("Release them first."));
	HeldCount(held, options->scope);
	return held;
}

void
SessionWarnLost(const char *lock, lease_loss loss)
{
	ereport(WARNING,
			(errcode(ERRCODE_DDBLOCK_LEASE_LOST),
			 errmsg("the lease on lock \"%s\" was lost before it was released", lock),
			 errdetail("%s", ErrorsLossReason(loss))));
}

/*
 * Ends a hold whose lease is lost.  Does not wait, as nothing has to be released.  HeldForget()
 * remembers the loss for the commit guard.
 */
static void
acknowledge_loss(HeldLock *held, const char *lock)
{
	uint32		hold_index = held->hold_index;
	uint64		seq = held->seq;
	lease_loss	loss = HeldLoss(held);

	HeldForget(held);
	MailboxLetGo(hold_index, seq);
	SessionWarnLost(lock, loss);
}

/*
 * The HeldLock of a lock of which the session may undo a session-scoped acquisition.  If there is
 * none, or its mode is another one, or its lease is lost, raises a WARNING and returns NULL.  mode
 * NULL: any.
 */
static HeldLock *
find_to_release(const LockName *name)
{
	HeldLock   *held;

	SessionAttach();

	held = HeldFind(name->utf8);
	if (held == NULL)
	{
		HoldCopy	found;

		/*
		 * A session must not learn anything about a name that its ddblock.lock_prefix does not
		 * allow.
		 */
		ereport(WARNING,
				(errmsg("lock \"%s\" is not held by this session", name->text),
				 PrefixAllows(name->utf8) && SegmentFindHold(name->utf8, 0, true, &found) ?
				 errhint("It is detached: call ddb_lock_release_detached() with its token.") : 0));
		return NULL;
	}
	if (held->session_depth == 0)
	{
		ereport(WARNING,
				(errmsg("lock \"%s\" is held for the transaction, not for the session",
						name->text),
				 errdetail("It is freed when the transaction ends.")));
		return NULL;
	}
	if (!HeldIsValid(held))
	{
		acknowledge_loss(held, name->text);
		return NULL;
	}
	return held;
}

/*
 * Warns if the transaction has written, and now releases a lock: the next holder may act without
 * seeing what is not committed yet.  Not if the transaction has called a fence function, for which
 * the next holder waits, and not for permits, which protect no data.  True if it has warned.
 */
static bool
warn_uncommitted(const HeldLock *held)
{
	if (held->xact_depth > 0 || held->mode == MODE_SEMAPHORE || FenceIsRequested() ||
		!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return false;
	ereport(WARNING,
			(errmsg("lock \"%s\" is released before the transaction commits what it has written",
					Utf8ToMessage(held->name)),
			 errdetail("Its next holder may not see these changes."),
			 errhint("Release it after COMMIT, or acquire it for the transaction, with %s().",
					 held->mode == MODE_SHARED ? "ddb_xact_lock_acquire_shared" :
					 "ddb_xact_lock_acquire")));
	return true;
}

static void
let_go(const Ending *holds, int count)
{
	for (int i = 0; i < count; i++)
		MailboxLetGo(holds[i].hold_index, holds[i].seq);
}

/*
 * Makes a request that ends holds, or leaves one to the cluster.  The answer is the expected one,
 * LOST or NOT_HELD; all others raise an error, after the holds were let go.  holds names the same
 * holds as the request.
 */
static const MailboxAnswer *
call_to_end(MailboxRequest *request, const lockmgr_lease *leases, const Ending *holds, int count,
			MailboxResult expected, const char *lock)
{
	const MailboxAnswer *answer;

	PG_TRY();
	{
		answer = MailboxCall(request, NULL, leases, NULL);
	}
	PG_CATCH();
	{
		/* The request was canceled, perhaps before the worker had read it. */
		let_go(holds, count);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (answer->result == expected)
		return answer;
	let_go(holds, count);
	if (answer->result != MAILBOX_LOST && answer->result != MAILBOX_NOT_HELD)
		ErrorsAnswer(answer, lock);
	return answer;
}

const MailboxAnswer *
SessionEndHold(HeldLock *held, const LockName *name, MailboxRequest *request,
			   MailboxResult expected, lease_loss *loss)
{
	Ending		ending = {.hold_index = held->hold_index,.seq = held->seq};
	const MailboxAnswer *answer;

	request->ask.hold_index = held->hold_index;
	request->ask.lease_index = held->lease_index;
	request->ask.lease_generation = held->lease_generation;
	HeldForget(held);
	answer = call_to_end(request, NULL, &ending, 1, expected, name->text);
	if (answer->result == expected)
		return answer;
	*loss = answer->result == MAILBOX_LOST ? answer->loss : LOSS_NONE;
	HeldRememberLoss(name->utf8, *loss);
	return NULL;
}

bool
SessionRelease(const LockName *name, bool keep, bool for_user)
{
	HeldLock   *held = find_to_release(name);
	MailboxRequest request = {.kind = MAILBOX_RELEASE,.ask = {.ends_kept = !keep}};
	lease_loss	loss;

	if (held == NULL)
		return false;
	if (held->session_depth + held->xact_depth > 1)
	{
		HeldUncountSession(held, 1);
		return true;
	}
	if (for_user)
		(void) warn_uncommitted(held);
	request.ask.valid_until = HeldValidUntil(held);
	if (SessionEndHold(held, name, &request, MAILBOX_RELEASED, &loss) != NULL)
		return true;
	SessionWarnLost(name->text, loss);
	return false;
}

bool
SessionLetGo(const LockName *name)
{
	HeldLock   *held = find_to_release(name);

	if (held == NULL)
		return false;
	if (held->session_depth == 1)
		(void) warn_uncommitted(held);
	HeldUncount(held, SCOPE_SESSION);
	return true;
}

/*
 * Undoes the session-scoped acquisitions of as many locks as one request can name, and releases
 * these locks by that request.  The worker begins all of its releases at once, so a lock whose
 * release fails does not keep the others held.  Returns the number of locks; 0 if the session
 * holds no more.
 *
 * A lease that is lost from here on is no loss to report: it was valid until the session gave up
 * its hold, which valid_until tells the worker.
 */
static int
release_next(void)
{
	lockmgr_lease *all = palloc(MAILBOX_RELEASE_MAX * sizeof(lockmgr_lease));
	Ending	   *holds = palloc(MAILBOX_RELEASE_MAX * sizeof(Ending));
	MailboxRequest request = {.kind = MAILBOX_RELEASE,.ask = {.valid_until = PG_INT64_MAX}};
	int			count = 0;
	int			kept = 0;

	foreach_held(held)
	{
		if (held->session_depth == 0 || count == MAILBOX_RELEASE_MAX)
			continue;
		if (held->xact_depth > 0)
		{
			HeldUncountSession(held, held->session_depth);
			kept++;
			continue;
		}
		all[count] = (lockmgr_lease) {
			.index = held->lease_index,.generation = held->lease_generation
		};
		request.ask.valid_until = Min(request.ask.valid_until, HeldValidUntil(held));
		holds[count++] = (Ending) {.hold_index = held->hold_index,.seq = held->seq};
		HeldForget(held);
	}
	request.data_len = count * sizeof(lockmgr_lease);
	if (count > 0)
		(void) call_to_end(&request, all, holds, count, MAILBOX_RELEASED, NULL);
	pfree(all);
	pfree(holds);
	return count + kept;
}

void
SessionLetGoAll(void)
{
	foreach_held(held)
	{
		if (held->session_depth == 0)
			continue;
		HeldUncountSession(held, held->session_depth);
		HeldLetGoIfUnused(held);
	}
}

int
SessionReleaseAll(void)
{
	volatile int released = 0;
	volatile bool warned = false;
	int			count;

	SessionAttach();
	PG_TRY();
	{
		foreach_held(held)
		{
			if (held->session_depth > 0 && !HeldIsValid(held))
				acknowledge_loss(held, Utf8ToMessage(held->name));
			else if (held->session_depth > 0 && !warned)
				warned = warn_uncommitted(held);
		}
		while ((count = release_next()) > 0)
			released += count;
	}
	PG_CATCH();
	{
		/* If one release fails, let go of the other locks all the same. */
		SessionLetGoAll();
		PG_RE_THROW();
	}
	PG_END_TRY();
	return released;
}

HeldLock *
SessionRequire(const LockName *name)
{
	HeldLock   *held;

	SessionAttach();
	held = HeldFind(name->utf8);
	if (held == NULL)
		ErrorsNotHeld(name->text);
	if (!HeldIsValid(held))
		SessionRaiseLost(name, held);
	return held;
}

int64
SessionRenew(const LockName *name, int64 lease_ms, const uint8 *data, size_t data_len)
{
	MailboxRequest request = {.kind = MAILBOX_RENEW};
	const MailboxAnswer *volatile answer;
	HeldLock   *held = SessionRequire(name);

	if (lease_ms != 0)
		NameRefuseLed(name, held);
	if (lease_ms != 0 && held->mode != MODE_EXCLUSIVE)
		ErrorsUnsupported(errmsg("the lease of lock \"%s\" cannot change its length", name->text),
						  errdetail("This session holds it %s.", ErrorsModeName(held->mode)),
						  errhint("Renew it without argument \"lease\"."));
	if (data != NULL && held->mode != MODE_EXCLUSIVE)
		ErrorsUnsupported(errmsg("lock \"%s\" cannot have data", name->text),
						  errdetail("This session holds it %s.", ErrorsModeName(held->mode)),
						  errhint("Renew it without argument \"data\"."));

	request.data_len = data_len;
	request.has_data = data != NULL;
	request.ask.hold_index = held->hold_index;
	request.ask.lease_index = held->lease_index;
	request.ask.lease_ms = lease_ms;
	request.ask.margin_us = margin_us(lease_ms);
	request.ask.valid_until = held->must_end != 0 ? held->must_end : PG_INT64_MAX;
	InterruptBeginDefer(held);
	PG_TRY();
	{
		answer = MailboxCall(&request, NULL, data, NULL);
	}
	PG_FINALLY();
	{
		InterruptEndDefer(held);
	}
	PG_END_TRY();
	/*
	 * If the worker needed the room of the lost lease, it has forgotten the loss, and answers
	 * NOT_HELD.
	 */
	if (answer == NULL || answer->result == MAILBOX_LOST || !HeldIsValid(held))
		SessionRaiseLost(name, held);
	if (answer->result != MAILBOX_RENEWED)
		ErrorsAnswer(answer, name->text);
	return Min(answer->grant.valid_until, request.ask.valid_until);
}

int64
SessionToken(const LockName *name)
{
	HeldLock   *held;

	SessionAttach();
	held = HeldFind(name->utf8);
	return held != NULL && HeldIsValid(held) ? held->token : 0;
}

int64
SessionRemaining(const LockName *name)
{
	HeldLock   *held;
	int64		left;

	SessionAttach();
	held = HeldFind(name->utf8);
	if (held == NULL)
		return 0;
	left = HeldValidUntil(held);
	pg_read_barrier();			/* deadline before clock, as in HeldIsValid() */
	left -= SegmentNow();
	return Max(left, 0);
}

const MailboxItem *
SessionLookUp(const LockName *name, bool *unusable)
{
	MailboxRequest request = {.kind = MAILBOX_LOOK_UP,.name_len = strlen(name->utf8)};
	const MailboxAnswer *answer;

	SessionAttach();
	answer = MailboxCall(&request, name->utf8, NULL, NULL);
	if (unusable != NULL)
	{
		*unusable = answer->result == MAILBOX_BAD_ITEM ||
			(answer->result == MAILBOX_FOUND && answer->found.unusable);
		if (*unusable)
			return NULL;
	}
	if (answer->result != MAILBOX_FOUND)
		ErrorsAnswer(answer, name->text);
	return &answer->found;
}
