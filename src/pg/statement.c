/*-------------------------------------------------------------------------
 *
 * statement.c
 *	  What ddblock does before and after the session's statements.
 *
 * DISCARD ALL frees session-scoped locks: PostgreSQL frees its advisory locks
 * then, and connection poolers rely on it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/parsenodes.h"
#include "tcop/utility.h"

#include "pg/guard.h"
#include "pg/session.h"
#include "pg/statement.h"

static ProcessUtility_hook_type prev_process_utility = NULL;

static void process_utility(PlannedStmt *pstmt, const char *query_string,
							bool read_only_tree, ProcessUtilityContext context,
							ParamListInfo params, QueryEnvironment *query_env,
							DestReceiver *dest, QueryCompletion *qc);
static bool is_discard_all(const Node *statement);

void
StatementInstallHooks(void)
{
	prev_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}

static void
process_utility(PlannedStmt *pstmt, const char *query_string,
				bool read_only_tree, ProcessUtilityContext context,
				ParamListInfo params, QueryEnvironment *query_env,
				DestReceiver *dest, QueryCompletion *qc)
{
	bool		discard_all = is_discard_all(pstmt->utilityStmt);

	if (prev_process_utility)
		prev_process_utility(pstmt, query_string, read_only_tree, context, params,
							 query_env, dest, qc);
	else
		standard_ProcessUtility(pstmt, query_string, read_only_tree, context, params,
								query_env, dest, qc);
	if (discard_all)
	{
		/* Without waiting: it must not fail because of DynamoDB. */
		SessionLetGoAll();
		/* It runs in no transaction block, so it commits nobody's writes. */
		GuardForget();
	}
}

static bool
is_discard_all(const Node *statement)
{
	return IsA(statement, DiscardStmt) &&
		((const DiscardStmt *) statement)->target == DISCARD_ALL;
}
