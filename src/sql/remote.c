/*-------------------------------------------------------------------------
 *
 * remote.c
 *	  The trigger of the view ddb_remote, through which sessions of another database call
 *	  ddblock's functions in this database.
 *
 * A session S of the other database writes there, and calls us through a session T here
 * (postgres_fdw).  T sees no write, but T commits before S does.  So T's commit guard must count
 * T's transaction as one that writes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sql/sql.h"

PG_FUNCTION_INFO_V1(ddb_remote_guard);

/* Called before each statement on the view. */
Datum
ddb_remote_guard(PG_FUNCTION_ARGS)
{
	TransactionAttach();
	GuardDemand();
	PG_RETURN_POINTER(NULL);
}
