/*-------------------------------------------------------------------------
 *
 * lock_functions.c
 *	  SQL functions for locks that a session holds: join, detach, release, renew, check.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "sql/sql.h"

PG_FUNCTION_INFO_V1(ddb_lock_release);
PG_FUNCTION_INFO_V1(ddb_lock_release_detached);
PG_FUNCTION_INFO_V1(ddb_lock_join);
PG_FUNCTION_INFO_V1(ddb_lock_detach);
PG_FUNCTION_INFO_V1(ddb_lock_outlive);
PG_FUNCTION_INFO_V1(ddb_lock_release_all);
PG_FUNCTION_INFO_V1(ddb_lock_renew);
PG_FUNCTION_INFO_V1(ddb_lock_token);
PG_FUNCTION_INFO_V1(ddb_lock_require);
PG_FUNCTION_INFO_V1(ddb_lock_remaining);

/* (name, keep, nowait) */
Datum
ddb_lock_release(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentName(fcinfo);
	bool		keep = ArgumentBool(fcinfo, 1, "keep");

	if (!ArgumentBool(fcinfo, 2, "nowait"))
		PG_RETURN_BOOL(SessionRelease(&name, keep, true));
	if (!keep)
		ErrorsUnsupported(errmsg("a release that does not wait cannot end a minimum"),
						  errhint("Leave out \"keep\" or \"nowait\"."));
	PG_RETURN_BOOL(SessionLetGo(&name));
}

/* (name, token, keep) */
Datum
ddb_lock_release_detached(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentAllowedName(fcinfo);
	int64		token = ArgumentPositive(fcinfo, 1, "token");
	bool		keep = ArgumentBool(fcinfo, 2, "keep");

	PG_RETURN_BOOL(JoinedEndDetached(&name, token, keep));
}

/* (name, token) */
Datum
ddb_lock_join(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentAllowedName(fcinfo);
	int64		token = ArgumentPositive(fcinfo, 1, "token");

	JoinedJoin(&name, token);
	PG_RETURN_VOID();
}

/* (name, at_most) */
Datum
ddb_lock_detach(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentName(fcinfo);
	int64		at_most_ms = ArgumentTime(fcinfo, 1, "at_most", DAY_MS, "1 day");

	PG_RETURN_INT64(JoinedDetach(&name, at_most_ms));
}

Datum
ddb_lock_outlive(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentName(fcinfo);

	PG_RETURN_INTERVAL_P(TimesInterval(JoinedOutlive(&name)));
}

Datum
ddb_lock_release_all(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(SessionReleaseAll());
}

/* (name, lease, data) */
Datum
ddb_lock_renew(PG_FUNCTION_ARGS)
{
	size_t		data_len = 0;
	LockName	name = ArgumentName(fcinfo);
	int64		lease_ms = ArgumentLease(fcinfo, 1, 0);
	const uint8 *data = ArgumentData(fcinfo, 2, &data_len);

	PG_RETURN_TIMESTAMPTZ(TimesFromClock(SessionRenew(&name, lease_ms, data, data_len)));
}

Datum
ddb_lock_token(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentName(fcinfo);
	int64		token = SessionToken(&name);

	if (token == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(token);
}

Datum
ddb_lock_require(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentName(fcinfo);

	PG_RETURN_INT64(SessionRequire(&name)->token);
}

Datum
ddb_lock_remaining(PG_FUNCTION_ARGS)
{
	LockName	name = ArgumentName(fcinfo);
	int64		left = SessionRemaining(&name);

	if (left == 0)
		PG_RETURN_NULL();
	PG_RETURN_INTERVAL_P(TimesInterval(left));
}
