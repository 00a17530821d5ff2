/*-------------------------------------------------------------------------
 *
 * await.c
 *	  Procedures that wait without a snapshot.
 *
 * A statement keeps its snapshot while it waits.  Then CREATE INDEX CONCURRENTLY waits for the
 * statement, for ever if it runs in the session that holds the lock; and VACUUM does not remove
 * rows that have died since the snapshot.  A procedure may commit, and has no snapshot until its
 * next statement.
 *
 * The commit must not be a surprise.  PostgreSQL refuses it in a transaction block and in a
 * function.  ddblock refuses it also if the transaction has already done something, or holds a
 * lock that would end with it.  ACCESS SHARE locks of tables do not count: every query takes one,
 * and cannot be told from LOCK TABLE IN ACCESS SHARE MODE.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lock.h"
#include "utils/lsyscache.h"

#include "session/session.h"

/*
 * Does the transaction hold this lock, or only the session, as with pg_advisory_lock()?
 * GetLockStatusData() does not tell, but a LOCALLOCK has an owner for each acquisition: NULL for
 * the session.  To get the LOCALLOCK, acquires the lock once more, which counts 1.
 */
static bool
ends_with_transaction(const LOCKTAG *tag, LOCKMODE mode)
{
	LOCALLOCK  *lock;
	int64		count = 0;

	if (CompatLockAgain(tag, mode, &lock) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	for (int i = 0; i < lock->numLockOwners; i++)
		count += lock->lockOwners[i].owner != NULL ? lock->lockOwners[i].nLocks : 0;
	(void) LockRelease(tag, mode, false);
	return count > 1;
}

/* Which lock of PostgreSQL's would a commit end?  A sentence, or NULL. */
static const char *
why_keep_locks(void)
{
	LockData   *locks = GetLockStatusData();

	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *held = &locks->locks[i];
		const LOCKTAG *tag = &held->locktag;

		if (held->pid != MyProcPid || tag->locktag_type == LOCKTAG_VIRTUALTRANSACTION)
			continue;
		for (LOCKMODE mode = tag->locktag_type == LOCKTAG_RELATION ? RowShareLock : AccessShareLock;
			 mode <= AccessExclusiveLock; mode++)
		{
			if (!(held->holdMask & LOCKBIT_ON(mode)) || !ends_with_transaction(tag, mode))
				continue;
			if (tag->locktag_type == LOCKTAG_RELATION)
				return psprintf("The transaction holds %s on relation \"%s\" until it ends.",
								GetLockmodeName(tag->locktag_lockmethodid, mode),
								get_rel_name(tag->locktag_field2));
			return tag->locktag_type == LOCKTAG_ADVISORY ?
				"The transaction holds an advisory lock until it ends." :
				"The transaction holds another lock until it ends.";
		}
	}
	return NULL;
}

/* Why AwaitWithoutSnapshot() must not commit: a sentence, or NULL. */
static const char *
why_not_commit(const CallContext *context)
{
	if (IsSubTransaction())
		return "It is called in a block with an EXCEPTION clause.";
	if (context->atomic)
		return "It is called in a transaction block, in a function, or in a procedure that is "
			"SECURITY DEFINER or has a SET clause.";
	if (MyXactFlags & XACT_FLAGS_PIPELINING)
		return "It is called in a pipeline, after another statement.";
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return "The transaction has written.";
	foreach_held(held)
	{
		if (held->xact_depth > 0)
			return psprintf("The transaction holds lock \"%s\" until it ends.",
							Utf8ToMessage(held->name));
	}
	return why_keep_locks();
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
				 errhint("Call it outside of a transaction block, before all else, or use %s().", instead)));
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	SPI_commit();
	SPI_finish();
}
