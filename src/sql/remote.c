/*-------------------------------------------------------------------------
 *
 * remote.c
 *	  For the view ddb_remote, through which sessions of another database call functions here.
 *
 * Such a session writes in its own database, and this one sees no write.  Its COMMIT comes here
 * first, so the commit guard of this session has to count the transaction as one that writes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sql/sql.h"

PG_FUNCTION_INFO_V1(ddb_remote_guard);

/* A trigger of the view, before each statement. */
Datum
ddb_remote_guard(PG_FUNCTION_ARGS)
{
	TransactionAttach();
	GuardDemand();
	PG_RETURN_POINTER(NULL);
}
