/*-------------------------------------------------------------------------
 *
 * fence.c
 *	  Whether the fences that a transaction asked for still stand.
 *
 * A fence protects what the transaction writes, but what is recorded of it is
 * a write itself: rolling back to a savepoint undoes it, and so does an
 * EXCEPTION block that swallows its error.  Either is the abort of the
 * subtransaction that asked for the fence, or of one around it, and there is
 * no other way on after an error.  So it is enough to know the innermost level
 * at which a fence was asked for; a transaction with an undone one is refused
 * at its end.
 *
 * This holds for every transaction, also for one without a transaction id: it
 * may have written elsewhere, through a foreign server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"

#include "session/fence.h"
#include "shared/errors.h"

/* Nest level of the innermost open (sub)transaction with a fence, or 0. */
static int	fence_level = 0;
static bool fence_undone = false;

static void set_up(void);
static void at_transaction_end(XactEvent event, void *arg);
static void at_subtransaction_end(SubXactEvent event, SubTransactionId id,
								  SubTransactionId parent, void *arg);

void
FenceRequest(void)
{
	set_up();
	fence_level = Max(fence_level, GetCurrentTransactionNestLevel());
}

/* Once in the life of a process, which need not have preloaded the library. */
static void
set_up(void)
{
	static bool done = false;

	if (done)
		return;
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_end, NULL);
	done = true;
}

static void
at_transaction_end(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			if (fence_undone)
				ErrorsFenceUndone();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			fence_level = 0;
			fence_undone = false;
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
	int			nest_level = GetCurrentTransactionNestLevel();

	if (fence_level < nest_level)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		fence_undone = true;
	if (event == SUBXACT_EVENT_ABORT_SUB || event == SUBXACT_EVENT_COMMIT_SUB)
		fence_level = nest_level - 1;
}
