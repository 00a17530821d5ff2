/*-------------------------------------------------------------------------
 *
 * statement.c
 *	  What ddblock does before and after the session's statements.
 *
 * Before a statement: each transaction joins the locks that ddblock.join_locks names.  The first
 * statement after the loss of a lease raises a WARNING, since the session may have been idle when
 * it happened.  If a lease is lost, a statement that no ROLLBACK undoes is refused: the commit
 * guard would come too late for it.
 *
 * During a statement: if it is interrupted because of a loss, the error's detail names the lock.
 *
 * After a statement: DISCARD ALL releases session-scoped locks, as it does with PostgreSQL's
 * advisory locks.  Connection poolers rely on that.
 *
 * Utility statements inside functions pass through the same hook.  Functions that no ROLLBACK
 * undoes, pg_notify() for example, are refused when the executor initializes their calls.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "common/string.h"
#include "executor/executor.h"
#include "mb/pg_wchar.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "session/session.h"

static ExecutorStart_hook_type prev_executor_start = NULL;
static ExecutorRun_hook_type prev_executor_run = NULL;
static ProcessUtility_hook_type prev_process_utility = NULL;
static object_access_hook_type prev_object_access = NULL;

/*
 * Not in a failed transaction, which cannot read catalogs: the next transaction raises the
 * WARNING.
 */
static void
warn_of_losses(void)
{
	if (IsAbortedTransactionBlockState() || !InterruptTakeLoss())
		return;
	foreach_held(held)
	{
		if (held->told || HeldIsValid(held))
			continue;
		held->told = true;
		HeldTellLoss(held);
		ereport(WARNING,
				(errcode(ERRCODE_DDBLOCK_LEASE_LOST),
				 errmsg("the lease on lock \"%s\" was lost", Utf8ToMessage(held->name)),
				 errdetail("%s", ErrorsLossReason(HeldLoss(held))),
				 errhint("Somebody else may hold the lock now. Release it with "
						 "ddb_lock_release(), or end the transaction if that is its scope.")));
	}
}

static void
executor_start(QueryDesc *query, int eflags)
{
	JoinedCarryOutOrder();
	warn_of_losses();
	if (prev_executor_start)
		prev_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

/*
 * Adds the lost lock to the error, as PostgreSQL's message says that the user or the administrator
 * has requested the interruption.  An error callback may not read catalogs.  So a name that would
 * have to be converted to the database's encoding is left out.
 */
static void
explain_interruption(void *arg)
{
	const HeldLock *held;

	if (geterrcode() != ERRCODE_QUERY_CANCELED && geterrcode() != ERRCODE_ADMIN_SHUTDOWN)
		return;
	held = InterruptCause();
	if (held == NULL)
		return;
	if (GetDatabaseEncoding() == PG_UTF8 || pg_is_ascii(held->name))
		errdetail("The lease on lock \"%s\" was lost.", Utf8Quiet(held->name));
	else
		errdetail("The lease on a lock was lost.");
}

static void
executor_run(QueryDesc *query, ScanDirection direction,
			 uint64 count COMPAT_EXECUTE_ONCE_PARAMETER)
{
	ErrorContextCallback context = {error_context_stack, explain_interruption, NULL};

	error_context_stack = &context;
	if (prev_executor_run)
		prev_executor_run(query, direction, count COMPAT_EXECUTE_ONCE);
	else
		standard_ExecutorRun(query, direction, count COMPAT_EXECUTE_ONCE);
	error_context_stack = context.previous;
}

static bool
sets_tablespace(const AlterDatabaseStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->options)
	{
		if (strcmp(lfirst_node(DefElem, cell)->defname, "tablespace") == 0)
			return true;
	}
	return false;
}

/*
 * Statements that no ROLLBACK undoes, so that the commit guard would be too late.  Some statements
 * are not among them:
 *
 *	 - CREATE INDEX CONCURRENTLY and others commit in steps: the guard refuses the first commit.
 *	 - COMMIT PREPARED: the transaction has passed the guard when it was prepared.
 */
static bool
cannot_be_undone(const Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_CreatedbStmt:
		case T_DropdbStmt:
		case T_CreateTableSpaceStmt:
		case T_DropTableSpaceStmt:
		case T_CreateSubscriptionStmt:	/* replication slots elsewhere */
		case T_AlterSubscriptionStmt:
		case T_DropSubscriptionStmt:
		case T_AlterSystemStmt:
		case T_NotifyStmt:		/* takes effect at COMMIT, and needs no transaction id */
			return true;
		case T_AlterDatabaseStmt:
			return sets_tablespace((const AlterDatabaseStmt *) statement);
		case T_VacuumStmt:
			return ((const VacuumStmt *) statement)->is_vacuumcmd;
		case T_CopyStmt:
			{
				const CopyStmt *copy = (const CopyStmt *) statement;

				return copy->is_program || (copy->filename != NULL && !copy->is_from);
			}
		default:
			return false;
	}
}

static void
process_utility(PlannedStmt *pstmt, const char *query_string,
				bool read_only_tree, ProcessUtilityContext context,
				ParamListInfo params, QueryEnvironment *query_env,
				DestReceiver *dest, QueryCompletion *qc)
{
	const Node *statement = pstmt->utilityStmt;
	bool		discard_all = IsA(statement, DiscardStmt) &&
		((const DiscardStmt *) statement)->target == DISCARD_ALL;
	ErrorContextCallback explain = {error_context_stack, explain_interruption, NULL};

	/*
	 * Not before COMMIT or ROLLBACK, which must not fail for that; and BEGIN does nothing that
	 * needs the locks.
	 */
	if (!IsA(statement, TransactionStmt))
		JoinedCarryOutOrder();
	warn_of_losses();
	if (cannot_be_undone(statement))
		GuardEffect(CreateCommandName(pstmt->utilityStmt));

	error_context_stack = &explain;
	if (prev_process_utility)
		prev_process_utility(pstmt, query_string, read_only_tree, context, params,
							 query_env, dest, qc);
	else
		standard_ProcessUtility(pstmt, query_string, read_only_tree, context, params,
								query_env, dest, qc);
	error_context_stack = explain.previous;
	if (discard_all)
	{
		/* DISCARD ALL must not wait for DynamoDB, or fail because of it. */
		SessionLetGoAll();
		/* DISCARD ALL runs outside of a transaction block, so there are no writes to guard. */
		HeldForgetLoss();
		OrderExcuseTransaction();
	}
}

static bool
function_cannot_be_undone(Oid function)
{
	switch (function)
	{
		case F_PG_NOTIFY:
		case F_LO_EXPORT:
		case F_PG_CREATE_PHYSICAL_REPLICATION_SLOT:
		case F_PG_CREATE_LOGICAL_REPLICATION_SLOT:
		case F_PG_COPY_PHYSICAL_REPLICATION_SLOT_NAME_NAME_BOOL:
		case F_PG_COPY_PHYSICAL_REPLICATION_SLOT_NAME_NAME:
		case F_PG_COPY_LOGICAL_REPLICATION_SLOT_NAME_NAME_BOOL_NAME:
		case F_PG_COPY_LOGICAL_REPLICATION_SLOT_NAME_NAME_BOOL:
		case F_PG_COPY_LOGICAL_REPLICATION_SLOT_NAME_NAME:
		case F_PG_DROP_REPLICATION_SLOT:
		case F_PG_REPLICATION_SLOT_ADVANCE:
		case F_PG_LOGICAL_SLOT_GET_CHANGES:
		case F_PG_LOGICAL_SLOT_GET_BINARY_CHANGES:
		case F_PG_REPLICATION_ORIGIN_ADVANCE:
#ifdef F_PG_SYNC_REPLICATION_SLOTS	/* 17 */
		case F_PG_SYNC_REPLICATION_SLOTS:
#endif
#ifdef F_PG_LOGICAL_EMIT_MESSAGE_BOOL_TEXT_TEXT_BOOL	/* 17 */
		case F_PG_LOGICAL_EMIT_MESSAGE_BOOL_TEXT_TEXT_BOOL:
		case F_PG_LOGICAL_EMIT_MESSAGE_BOOL_TEXT_BYTEA_BOOL:
#else
		case F_PG_LOGICAL_EMIT_MESSAGE_BOOL_TEXT_TEXT:
		case F_PG_LOGICAL_EMIT_MESSAGE_BOOL_TEXT_BYTEA:
#endif
			return true;
		default:
			return false;
	}
}

static void
object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	if (prev_object_access)
		prev_object_access(access, class_id, object_id, sub_id, arg);
	if (access == OAT_DROP && sub_id == 0)
		DropCheck(class_id, object_id);
	if (access != OAT_FUNCTION_EXECUTE || class_id != ProcedureRelationId)
		return;
	JoinedCarryOutOrder();		/* a function may be called without a statement */
	if (function_cannot_be_undone(object_id))
		GuardEffect(psprintf("%s()", get_func_name(object_id)));
}

void
StatementInstallHooks(void)
{
	prev_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	prev_executor_run = ExecutorRun_hook;
	ExecutorRun_hook = executor_run;
	prev_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}

void
StatementInstallDropCheck(void)
{
	prev_object_access = object_access_hook;
	object_access_hook = object_access;
}
