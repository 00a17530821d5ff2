/*-------------------------------------------------------------------------
 *
 * joined.c
 *	  Joining another session's hold; leaving one to the cluster.
 *
 * A request names another session's hold by the lock's name and its token.  The token is no
 * secret: it is a time, and stands in views.  So roles decide who may join: the current role must
 * have the privileges of the role that took the lock.  This session finds the hold in the
 * directory, and compares roles, as only a backend can read the catalogs.  The hold may be another
 * one when the worker gets the request.  So the request contains what was found, and the worker
 * compares that with the hold as it is then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/acl.h"

#include "session/session.h"

static void
require_exclusive(const LockName *name, lock_mode mode)
{
	if (mode != MODE_EXCLUSIVE)
		ErrorsUnsupported(errmsg("cannot join lock \"%s\"", name->text),
						  errdetail("It is held %s.", ErrorsModeName(mode)),
						  errhint("Acquire it in the same way."));
}

static MailboxRequest
name_hold(MailboxKind kind, const HoldCopy *found)
{
	MailboxRequest request = {
		.kind = kind,
		.ask = {
			.lease_index = found->hold.lease_index,
			.lease_generation = found->hold.lease_generation,
			.token = found->hold.token,
			.taker = found->hold.taker,
		},
	};

	SessionIdentify(&request.ask);
	return request;
}

static void
require_role(const LockName *name, Oid taker)
{
	char	   *role;

	if (has_privs_of_role(GetUserId(), taker))
		return;
	role = GetUserNameFromId(taker, true);
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for lock \"%s\"", name->text),
			 role != NULL ?
			 errdetail("Role \"%s\" has taken it, and the current role does not have the "
					   "privileges of that role.", role) :
			 errdetail("The role that has taken it does not exist any more.")));
}

/* Joins the lock of a new HeldLock (a HeldAcquire).  Returns true, or raises. */
static bool
join_anew(HeldLock *held, const LockName *name, const void *arg)
{
	int64		token = *(const int64 *) arg;
	HoldCopy	found;
	MailboxRequest request;
	const MailboxAnswer *answer;

	if (!SegmentFindHold(name->utf8, token, false, &found))
		ErrorsOtherToken(name->text, token);
	require_exclusive(name, found.hold.mode);
	require_role(name, found.hold.taker);

	request = name_hold(MAILBOX_JOIN, &found);
	answer = MailboxCall(&request, NULL, NULL, NULL);
	if (answer->result == MAILBOX_NOT_HELD)
		ErrorsOtherToken(name->text, token);
	if (answer->result != MAILBOX_GRANTED)
		ErrorsAnswer(answer, name->text);
	SessionTakeGrant(name, held, answer, request.seq);
	return true;
}

void
JoinedJoin(const LockName *name, int64 token)
{
	HeldLock   *held;

	SessionAttach();
	held = HeldFind(name->utf8);
	NameRefuseLed(name, held);
	if (held == NULL)
	{
		(void) HeldAdd(name, SCOPE_SESSION, join_anew, &token);
		return;
	}
	if (!HeldIsValid(held))
		SessionRaiseLost(name, held);
	if (held->token != token)
		ErrorsOtherToken(name->text, token);
	require_exclusive(name, held->mode);
	HeldCount(held, SCOPE_SESSION);
}

void
JoinedCarryOutOrder(void)
{
	static LocalTransactionId done = InvalidLocalTransactionId;
	const join_entry *missing;

	/* Do nothing in a failed transaction: it can neither read catalogs nor commit. */
	if (ddblock_join_locks[0] == '\0' || done == CompatMyLxid() || !IsTransactionState())
		return;
	while ((missing = OrderFindMissing()) != NULL)
	{
		LockName	name = {
			.text = Utf8ToMessage(missing->name),
			.utf8 = pstrdup(missing->name),
		};
		int64		token = missing->token;

		PrefixRequire(&name);
		JoinedJoin(&name, token);
		pfree(name.utf8);
		pfree(name.text);
	}
	done = CompatMyLxid();
}

int64
JoinedDetach(const LockName *name, int64 at_most_ms)
{
	MailboxRequest request = {.kind = MAILBOX_DETACH,.ask = {.at_most_us = at_most_ms * 1000}};
	const MailboxAnswer *answer;
	lease_loss	loss;
	LeaseCopy	copy;
	HeldLock   *held = SessionRequire(name);

	if (held->mode != MODE_EXCLUSIVE)
		ErrorsUnsupported(errmsg("cannot detach lock \"%s\"", name->text),
						  errdetail("This session holds it %s.", ErrorsModeName(held->mode)));
	if (held->xact_depth > 0 || held->session_depth > 1)
		ErrorsState(errmsg("cannot detach lock \"%s\"", name->text),
					errdetail("This session has acquired it several times, or for the "
							  "transaction."));
	if (SegmentReadLease(held->lease_index, &copy) &&
		copy.lease.generation == held->lease_generation && copy.lease.detached)
		ErrorsDetached(name->text);
	answer = SessionEndHold(held, name, &request, MAILBOX_GRANTED, &loss);
	if (answer == NULL)
		ErrorsLost(name->text, loss);
	return answer->grant.token;
}

/*
 * From now on, the end of this session, or of the server, does not release the lock: somebody who
 * works under the lock may learn of the end late.  The hold then stays with the cluster, for a
 * time that is returned, in microseconds.  Several sessions that have joined the lock may each ask
 * for this.
 */
int64
JoinedOutlive(const LockName *name)
{
	MailboxRequest request = {.kind = MAILBOX_DETACH};
	const MailboxAnswer *answer;
	HeldLock   *held = SessionRequire(name);
	HoldCopy	saved = {0};

	NameRefuseLed(name, held);
	if (held->mode != MODE_EXCLUSIVE)
		ErrorsUnsupported(errmsg("lock \"%s\" cannot outlive this session", name->text),
						  errdetail("This session holds it %s.", ErrorsModeName(held->mode)));
	request.ask.hold_index = held->hold_index;
	request.ask.lease_index = held->lease_index;
	request.ask.lease_generation = held->lease_generation;
	answer = MailboxCall(&request, NULL, NULL, NULL);
	(void) SegmentReadHold(held->hold_index, &saved);
	/*
	 * If the lease is valid after the read, "saved" is this session's hold, and none that took its
	 * entry later.
	 */
	if (answer->result == MAILBOX_LOST || !HeldIsValid(held))
		SessionRaiseLost(name, held);
	if (answer->result != MAILBOX_RENEWED)
		ErrorsAnswer(answer, name->text);
	return saved.hold.outlive_time_us;
}

static bool
warn_not_detached(const LockName *name, int64 token)
{
	const HeldLock *held = HeldFind(name->utf8);

	ereport(WARNING,
			(errmsg("this cluster has no detached hold of lock \"%s\" with token %lld",
					name->text, (long long) token),
			 held != NULL && held->session_depth > 0 ?
			 errhint("This session holds the lock: call ddb_lock_release().") : 0));
	return false;
}

bool
JoinedEndDetached(const LockName *name, int64 token, bool keep)
{
	HoldCopy	found;
	MailboxRequest request;
	const MailboxAnswer *answer;

	SessionAttach();
	if (!SegmentFindHold(name->utf8, token, true, &found))
		return warn_not_detached(name, token);
	require_role(name, found.hold.taker);

	request = name_hold(MAILBOX_END_DETACHED, &found);
	request.ask.ends_kept = !keep;
	answer = MailboxCall(&request, NULL, NULL, NULL);
	if (answer->result == MAILBOX_RELEASED)
		return true;
	if (answer->result == MAILBOX_NOT_HELD)
		return warn_not_detached(name, token);
	if (answer->result != MAILBOX_LOST)
		ErrorsAnswer(answer, name->text);
	SessionWarnLost(name->text, answer->loss);
	return false;
}
