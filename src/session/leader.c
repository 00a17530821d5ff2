/*-------------------------------------------------------------------------
 *
 * leader.c
 *	  Transactions of a cluster that leads.
 *
 * If a cluster leads, its leadership has a hold on the lock.  A transaction that joins gets a hold
 * beside that one, as a session does that joins another session's hold.  It keeps this hold until
 * it ends, even if it rolls back to a savepoint before the call.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"

#include "session/session.h"

static bool
find(const LockName *name, leadership *found)
{
	for (uint32 i = 0; i < LEADERSHIPS_MAX; i++)
	{
		SegmentReadLeadership(i, found);
		if (found->state != LEADERSHIP_NONE && strcmp(found->name, name->utf8) == 0)
			return true;
	}
	return false;
}

pg_noreturn static void
raise_no_leadership(const LockName *name)
{
	ErrorsState(errmsg("this cluster has no leadership \"%s\"", name->text),
				errhint("See the view ddb_leaderships, and \"ddblock.leaderships\"."));
}

/*
 * Joins the leadership's hold, for a new HeldLock (a HeldAcquire).  False if the cluster does not
 * lead any more.
 */
static bool
join(HeldLock *held, const LockName *name, const void *arg)
{
	const leadership *c = arg;
	MailboxRequest request = {
		.kind = MAILBOX_JOIN,
		.ask = {
			.lease_index = c->grant.lease_index,
			.lease_generation = c->grant.lease_generation,
			.token = c->grant.token,
			.leadership = true,
		},
	};
	const MailboxAnswer *answer;

	SessionIdentify(&request.ask);
	answer = MailboxCall(&request, NULL, NULL, NULL);
	if (answer->result == MAILBOX_NOT_HELD)
		return false;
	if (answer->result != MAILBOX_GRANTED)
		ErrorsAnswer(answer, name->text);
	/*
	 * The lease is lost already.  That is no error: nobody has told the transaction yet that its
	 * cluster leads, so it has done nothing as a leader.
	 */
	if (mailbox_valid_until(&segment_mailbox, answer->grant.lease_index,
							answer->grant.lease_generation) <= SegmentNow())
	{
		MailboxLetGo(answer->grant.hold_index, request.seq);
		return false;
	}
	held->leader = true;
	SessionTakeGrant(name, held, answer, request.seq);
	return true;
}

int64
LeaderJoin(const LockName *name)
{
	HeldLock   *held;
	leadership	c;
	bool		found;

	SessionAttach();
	held = HeldFind(name->utf8);
	if (held != NULL && held->leader)
		return SessionRequire(name)->token;
	/*
	 * That there is no leadership yet is no error: the worker may not have begun it, or does not on
	 * a standby.
	 */
	found = find(name, &c);
	if (!found && !leadership_is_listed(ddblock_leaderships, name->utf8))
		raise_no_leadership(name);
	if (held != NULL || !found || c.state != LEADERSHIP_LEADING)
		return 0;

	/*
	 * A snapshot that is older than the leadership may not show what the last leader has done.
	 * PostgreSQL keeps no time of a snapshot, but it is not older than its transaction.  So the
	 * transaction must have begun after the leadership.
	 */
	if (IsolationUsesXactSnapshot() &&
		GetCurrentTransactionStartTimestamp() < TimesFromClock(c.since))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("this transaction is older than the leadership of \"%s\"", name->text),
				 errdetail("Its snapshot may not show what the last leader has done."),
				 errhint("Repeat the transaction.")));
	held = HeldAdd(name, SCOPE_LEADER, join, &c);
	return held != NULL ? held->token : 0;
}

int64
LeaderRequire(const LockName *name)
{
	int64		token = LeaderJoin(name);
	leadership	c;

	if (token != 0)
		return token;
	ErrorsNoLease(errmsg("this cluster does not lead \"%s\"", name->text),
				  find(name, &c) ? 0 :
				  errdetail("It does not want to: it is a standby, or its worker has not begun."));
}

bool
LeaderResign(const LockName *name, int64 rest_ms, int64 wait_ms)
{
	MailboxRequest request = {
		.kind = MAILBOX_RESIGN,
		.name_len = strlen(name->utf8),
		.resign = {
			.rest_us = rest_ms * 1000,
			.wait_us = wait_ms * 1000,
		},
	};
	const MailboxAnswer *answer;
	leadership	c;

	SessionAttach();
	if (!find(name, &c))
		raise_no_leadership(name);
	answer = MailboxCall(&request, name->utf8, NULL, NULL);
	if (answer->result != MAILBOX_DONE && answer->result != MAILBOX_NOT_HELD)
		ErrorsAnswer(answer, name->text);
	return answer->result == MAILBOX_DONE;
}
