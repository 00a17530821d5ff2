/*-------------------------------------------------------------------------
 *
 * guard.c
 *	  The commit guard: a transaction that writes does not commit after its
 *	  session has lost a lease.
 *
 * Any lost lease counts, session-scoped or transaction-scoped, because nobody knows which lock was
 * to protect which write.  If the session releases the lost lock before COMMIT, or rolls back to a
 * savepoint before its acquisition, the guard still refuses: the commit would keep what was
 * written meanwhile.  So held.c remembers the first loss until the transaction ends.
 *
 * A transaction without a transaction id has written nothing, and may commit, unless GuardEffect()
 * or GuardDemand() was called for it.
 *
 * Locks that ddblock.join_locks names must be held as well.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"

#include "session/session.h"

static bool demanded = false;
static volatile sig_atomic_t passed = 0;

/*
 * Raises LK001 if the session does not hold a lock that ddblock.join_locks names.  what: what the
 * session cannot do then.
 */
static void
require_joined(const char *what)
{
	const join_entry *missing = OrderFindMissing();

	if (missing != NULL)
		ErrorsNoLease(errmsg("cannot %s, because this session does not hold lock \"%s\"", what,
							 Utf8ToMessage(missing->name)),
					  errdetail("\"ddblock.join_locks\" wants the session to hold it together "
								"with who has taken it."));
}

void
GuardCommit(void)
{
	lease_loss	why;
	const char *name;

	if (!ddblock_commit_guard ||
		!(demanded || TransactionIdIsValid(GetTopTransactionIdIfAny())))
		return;

	/*
	 * Set before the leases are checked: from then on interrupt.c cancels the COMMIT when a lease
	 * is lost.  So if a lease is lost during the check, at least one of the two notices.
	 */
	passed = 1;
	name = HeldFindLoss(&why);
	if (name != NULL)
		ErrorsNoLease(errmsg("cannot commit, because the lease on lock \"%s\" was lost",
							 Utf8ToMessage(name)),
					  errdetail("%s", ErrorsLossReason(why)),
					  errhint("Somebody else may have held the lock meanwhile. Release it with "
							  "ddb_lock_release() if it was acquired for the session, acquire it "
							  "again, and repeat the transaction."));
	require_joined("commit");
}

void
GuardDemand(void)
{
	demanded = true;
}

bool
GuardIsPassed(void)
{
	return passed;
}

void
GuardEffect(const char *what)
{
	lease_loss	why;
	const char *name = HeldFindLoss(&why);

	if (!ddblock_commit_guard ||
		(name == NULL && OrderFindMissing() == NULL && HeldNext(NULL) == NULL))
		return;
	demanded = true;
	if (name != NULL)
		ErrorsNoLease(errmsg("cannot execute %s, because the lease on lock \"%s\" was lost",
							 what, Utf8ToMessage(name)),
					  errdetail("%s", ErrorsLossReason(why)),
					  errhint("Its effect could not be undone, and somebody else may hold the lock "
							  "now. Release it with ddb_lock_release(), or end the transaction if "
							  "that is its scope."));
	require_joined(psprintf("execute %s", what));
}

void
GuardEndTransaction(void)
{
	demanded = false;
	passed = 0;
}
