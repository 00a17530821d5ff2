/*-------------------------------------------------------------------------
 *
 * transaction.c
 *	  Follows the session's transactions and savepoints.
 *
 * ddblock has only these callbacks for transactions and subtransactions.  They call the other
 * files in a fixed order.
 *
 * Before COMMIT and PREPARE: held.c, queue_claims.c, fence.c, guard.c.  Each may raise an error,
 * which aborts the transaction.  The guard comes last because it compares
 * leases with the clock: the less happens between it and the commit record,
 * the better.
 *
 * After the end of a transaction: queue_claims.c, held.c, fence.c, guard.c.  Interrupts are held,
 * so none of them may fail or wait.
 *
 * Two other pieces of code run around these callbacks:
 *
 *	 - PostgreSQL calls the callback that was registered last first.
 *	   postgres_fdw registers its own with its first connection, and commits on
 *	   the foreign server at PRE_COMMIT.  If a session uses a foreign table
 *	   before ddblock, the guard runs first, and a refused COMMIT commits
 *	   nothing there.  Otherwise the foreign server has committed when the guard
 *	   refuses.  See doc/internals/safety.md.
 *
 *	 - PreCommit_Notify() runs after all callbacks.  It may wait for the lock
 *	   under which notifications are queued, and the guard does not see a lease
 *	   that is lost during that wait.  interrupt.c cancels the COMMIT instead,
 *	   because GuardIsPassed() is true by then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"

#include "session/session.h"

static void
at_transaction_end(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_PREPARE:
			HeldRefusePrepare();
			QueueClaimRefusePrepare();
			FenceCommit();
			GuardCommit();
			break;
		case XACT_EVENT_PRE_COMMIT:
			QueueClaimCommit();
			FenceCommit();
			GuardCommit();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			QueueClaimEndLevel(1, event != XACT_EVENT_ABORT);
			HeldEndTransaction(event != XACT_EVENT_ABORT);
			FenceEndTransaction();
			GuardEndTransaction();
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			break;
	}
}

static void
at_subtransaction_end(SubXactEvent event, SubTransactionId id,
					  SubTransactionId parent, void *arg)
{
	bool		committed = event == SUBXACT_EVENT_COMMIT_SUB;

	if (!committed && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	QueueClaimEndLevel(GetCurrentTransactionNestLevel(), committed);
	HeldEndSubtransaction(committed);
	FenceEndSubtransaction(committed);
}

void
TransactionAttach(void)
{
	static bool attached = false;

	if (attached)
		return;
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_end, NULL);
	attached = true;
}
