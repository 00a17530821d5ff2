/*-------------------------------------------------------------------------
 *
 * leadership_functions.c
 *	  SQL functions of campaigns: locks that the cluster itself holds, to lead.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

#include "session/session.h"
#include "sql/sql.h"

PG_FUNCTION_INFO_V1(ddb_leadership_held);
PG_FUNCTION_INFO_V1(ddb_leadership_require);
PG_FUNCTION_INFO_V1(ddb_leadership_resign);

Datum
ddb_leadership_held(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentAllowedName(fcinfo);

	PG_RETURN_BOOL(LeaderJoin(&name) != 0);
}

Datum
ddb_leadership_require(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentAllowedName(fcinfo);

	PG_RETURN_INT64(LeaderRequire(&name));
}

/* (name, stand_back, wait) */
Datum
ddb_leadership_resign(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentAllowedName(fcinfo);
	int64		rest_ms = ArgumentStandBack(fcinfo, 1);
	int64		wait_ms = ArgumentWait(fcinfo, 2);

	PG_RETURN_BOOL(LeaderResign(&name, rest_ms, wait_ms == WAITING_NO_LIMIT ? 0 : wait_ms));
}
