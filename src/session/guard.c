/*-------------------------------------------------------------------------
 *
 * guard.c
 *	  The commit guard: no transaction that writes commits after its session
 *	  has lost a lease.
 *
 * It does not matter which lock the writes were meant to be protected by, nor
 * of which scope it is: the session believed in something that had ceased to
 * be true.  Nor does it help to release the lost lock before COMMIT, or to
 * roll back to a savepoint before its acquisition: what was written meanwhile
 * would be committed.  Hence the one loss that is remembered until the
 * transaction ends.
 *
 * A transaction without a transaction id has written nothing, and may commit,
 * unless it had another effect.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"

#include "session/guard.h"
#include "session/held.h"
#include "shared/errors.h"
#include "shared/settings.h"
#include "shared/utf8.h"

static char *lost_name = NULL;	/* UTF-8; the first one of this transaction */
static lease_loss lost_why = LOSS_NONE;
static bool had_effect = false;
static volatile sig_atomic_t passed = 0;

static const char *find_loss(lease_loss *why);

void
GuardRemember(char *name, lease_loss loss)
{
	if (lost_name != NULL)
	{
		pfree(name);
		return;
	}
	lost_name = name;
	lost_why = loss;
}

void
GuardForget(void)
{
	if (lost_name != NULL)
		pfree(lost_name);
	lost_name = NULL;
	had_effect = false;
	passed = 0;
}

bool
GuardIsPassed(void)
{
	return passed;
}

void
GuardCommit(void)
{
	lease_loss	why;
	const char *name;

	if (!ddblock_commit_guard ||
		!(had_effect || TransactionIdIsValid(GetTopTransactionIdIfAny())))
		return;
	/* First: a lease that is lost from now on is the interruption's. */
	passed = 1;
	name = find_loss(&why);
	if (name != NULL)
		ErrorsCommitRefused(Utf8ToMessage(name, strlen(name)), why);
}

void
GuardEffect(const char *what)
{
	lease_loss	why;
	const char *name;

	if (!ddblock_commit_guard || (lost_name == NULL && dlist_is_empty(HeldLocks())))
		return;
	had_effect = true;
	name = find_loss(&why);
	if (name != NULL)
		ErrorsEffectRefused(what, Utf8ToMessage(name, strlen(name)), why);
}

/* The name (UTF-8) of a lock that was lost, or NULL. */
static const char *
find_loss(lease_loss *why)
{
	dlist_iter	iter;

	if (lost_name != NULL)
	{
		*why = lost_why;
		return lost_name;
	}
	dlist_foreach(iter, HeldLocks())
	{
		HeldLock   *held = dlist_container(HeldLock, node, iter.cur);

		if (!HeldIsValid(held))
		{
			*why = HeldLoss(held);
			return held->name;
		}
	}
	return NULL;
}
