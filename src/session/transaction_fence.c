/*-------------------------------------------------------------------------
 *
 * transaction_fence.c
 *	  Whether a transaction still has the fences that it asked for.
 *
 * A fence protects what the transaction writes.  But a fence is a write itself: rolling back to a
 * savepoint undoes it, and so does an EXCEPTION block that catches its error.  Both abort the
 * subtransaction that asked for the fence, or one around that; and after an error a transaction
 * can only continue after such an abort.  So it is enough to know the innermost level at which a
 * fence was asked for.  If that level is aborted, the transaction cannot commit.
 *
 * The rule holds for a transaction without a transaction id, too: it may have written elsewhere,
 * through a foreign server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"

#include "session/session.h"

/* Nest level of the innermost open (sub)transaction with a fence, or 0. */
static int	fence_level = 0;
static bool fence_undone = false;

void
FenceRequest(void)
{
	fence_level = Max(fence_level, GetCurrentTransactionNestLevel());
}

bool
FenceIsRequested(void)
{
	return fence_level > 0;
}

void
FenceCommit(void)
{
	if (!fence_undone)
		return;
	SegmentCount(EVENT_LK002);
	ereport(ERROR,
			(errcode(ERRCODE_DDBLOCK_STALE_TOKEN),
			 errmsg("transaction has lost a fence"),
			 errdetail("A call of ddb_fence_check() or ddb_fence_check_shared() has failed, or was "
					   "rolled back to a savepoint, and the transaction went on."),
			 errhint("Run the whole transaction again, and do not catch the errors of "
					 "these functions.")));
}

void
FenceEndTransaction(void)
{
	fence_level = 0;
	fence_undone = false;
}

void
FenceEndSubtransaction(bool committed)
{
	int			nest_level = GetCurrentTransactionNestLevel();

	if (fence_level < nest_level)
		return;
	if (!committed)
		fence_undone = true;
	fence_level = nest_level - 1;
}
