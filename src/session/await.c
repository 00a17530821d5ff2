/*-------------------------------------------------------------------------
 *
 * await.c
 *	  Procedures that wait without a snapshot.
 *
 * A statement keeps its snapshot while it waits.  CREATE INDEX CONCURRENTLY then waits for
 * it, for ever if it runs in the session that holds the lock; and VACUUM removes no row that
 * has died since.  A procedure may commit, and has no snapshot until its next statement.
 *
 * The commit must not be a surprise.  PostgreSQL refuses it in a transaction block and in
 * a function; we refuse it also where the transaction has already done something.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "nodes/parsenodes.h"
#include "utils/lsyscache.h"

#include "session/session.h"
#include "shared/shared.h"

/* A palloc'd sentence, or NULL. */
static const char *
why_not_commit(const CallContext *context)
{
	dlist_iter	iter;

	if (IsSubTransaction())
		return "It is called in a block with an EXCEPTION clause.";
	if (context->atomic)
		return "It is called in a transaction block, in a function, or in a procedure that is "
			"SECURITY DEFINER or has a SET clause.";
	if (MyXactFlags & XACT_FLAGS_PIPELINING)
		return "It is called in a pipeline, after another statement.";
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return "The transaction has written.";
	dlist_foreach(iter, HeldLocks())
	{
		HeldLock   *held = dlist_container(HeldLock, node, iter.cur);

		if (held->xact_depth > 0)
			return psprintf("The transaction holds lock \"%s\" until it ends.",
							Utf8ToMessage(held->name));
	}
	return NULL;
}

void
AwaitWithoutSnapshot(FunctionCallInfo fcinfo, const char *instead)
{
	const char *why;

	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext))
		return;
	why = why_not_commit(castNode(CallContext, fcinfo->context));
	if (why != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("%s() cannot end the transaction in order to wait without a snapshot",
						get_func_name(fcinfo->flinfo->fn_oid)),
				 errdetail_internal("%s", why),
				 errhint("Call it as the first statement of its transaction, or use %s().", instead)));
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	SPI_commit();
	SPI_finish();
}
