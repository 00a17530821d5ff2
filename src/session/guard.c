/*-------------------------------------------------------------------------
 *
 * guard.c
 *	  The commit guard: a transaction that writes does not commit after its
 *	  session has lost a lease.
 *
 * Any lost lease counts, of either scope, because nobody knows which lock was
 * to protect which write.  Releasing the lost lock before COMMIT does not
 * help, nor does rolling back to a savepoint before its acquisition: both would
 * commit what was written meanwhile.  So held.c remembers the first loss until
 * the transaction ends.
 *
 * A transaction without a transaction id has written nothing, and may commit,
 * unless it had another effect.
 *
 * A session that was told to join a lock (ddblock.join_locks) must hold it, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"

#include "session/session.h"

static bool had_effect = false;
static volatile sig_atomic_t passed = 0;

void
GuardCommit(void)
{
	lease_loss	why;
	const char *name;
	const join_entry *missing;

	if (!ddblock_commit_guard ||
		!(had_effect || TransactionIdIsValid(GetTopTransactionIdIfAny())))
		return;

	/*
	 * Set before the leases are checked: a loss after the check is then
	 * interrupt.c's, and none falls in between.
	 */
	passed = 1;
	name = HeldFindLoss(&why);
	if (name != NULL)
		ErrorsCommitRefused(Utf8ToMessage(name), why);
	missing = OrderFindMissing();
	if (missing != NULL)
		ErrorsNotJoined("commit", Utf8ToMessage(missing->name));
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
	const join_entry *missing = OrderFindMissing();

	if (!ddblock_commit_guard ||
		(name == NULL && missing == NULL && HeldNext(NULL) == NULL))
		return;
	had_effect = true;
	if (name != NULL)
		ErrorsEffectRefused(what, Utf8ToMessage(name), why);
	if (missing != NULL)
		ErrorsNotJoined(psprintf("execute %s", what), Utf8ToMessage(missing->name));
}

void
GuardEndTransaction(void)
{
	had_effect = false;
	passed = 0;
}
