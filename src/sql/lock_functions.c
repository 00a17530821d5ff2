/*-------------------------------------------------------------------------
 *
 * lock_functions.c
 *	  SQL functions that acquire, join, detach and release exclusive locks, and
 *	  renew and check locks of all modes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "session/joined.h"
#include "session/session.h"
#include "session/waiting.h"
#include "shared/errors.h"
#include "shared/settings.h"
#include "shared/times.h"
#include "sql/arguments.h"

PG_FUNCTION_INFO_V1(ddb_lock_acquire);
PG_FUNCTION_INFO_V1(ddb_lock_try_acquire);
PG_FUNCTION_INFO_V1(ddb_xact_lock_acquire);
PG_FUNCTION_INFO_V1(ddb_xact_lock_try_acquire);
PG_FUNCTION_INFO_V1(ddb_lock_release);
PG_FUNCTION_INFO_V1(ddb_lock_join);
PG_FUNCTION_INFO_V1(ddb_lock_detach);
PG_FUNCTION_INFO_V1(ddb_lock_release_detached);
PG_FUNCTION_INFO_V1(ddb_lock_release_all);
PG_FUNCTION_INFO_V1(ddb_lock_renew);
PG_FUNCTION_INFO_V1(ddb_lock_token);
PG_FUNCTION_INFO_V1(ddb_lock_require);

static Datum acquire(FunctionCallInfo fcinfo, LockScope scope);
static Datum try_acquire(FunctionCallInfo fcinfo, LockScope scope);

/* (name, lease, wait, data) */
static Datum
acquire(FunctionCallInfo fcinfo, LockScope scope)
{
	AcquireOptions options = {.scope = scope};
	LockName	name;
	int64		token;

	ErrorsRequirePreload();
	name = ArgumentAllowedName(fcinfo, 0);
	options.lease_ms = ArgumentLease(fcinfo, 1, ddblock_lease_duration);
	options.wait_ms = ArgumentWait(fcinfo, 2);
	options.data = ArgumentData(fcinfo, 3, &options.data_len);

	(void) SessionAcquire(&name, &options, &token);
	PG_RETURN_INT64(token);
}

/* (name, lease, data) */
static Datum
try_acquire(FunctionCallInfo fcinfo, LockScope scope)
{
	AcquireOptions options = {.scope = scope,.only_try = true,.wait_ms = WAITING_NO_LIMIT};
	LockName	name;
	int64		token;

	ErrorsRequirePreload();
	name = ArgumentAllowedName(fcinfo, 0);
	options.lease_ms = ArgumentLease(fcinfo, 1, ddblock_lease_duration);
	options.data = ArgumentData(fcinfo, 2, &options.data_len);

	if (!SessionAcquire(&name, &options, &token))
		PG_RETURN_NULL();
	PG_RETURN_INT64(token);
}

Datum
ddb_lock_acquire(PG_FUNCTION_ARGS)
{
	return acquire(fcinfo, SCOPE_SESSION);
}

Datum
ddb_lock_try_acquire(PG_FUNCTION_ARGS)
{
	return try_acquire(fcinfo, SCOPE_SESSION);
}

Datum
ddb_xact_lock_acquire(PG_FUNCTION_ARGS)
{
	return acquire(fcinfo, SCOPE_XACT);
}

Datum
ddb_xact_lock_try_acquire(PG_FUNCTION_ARGS)
{
	return try_acquire(fcinfo, SCOPE_XACT);
}

Datum
ddb_lock_release(PG_FUNCTION_ARGS)
{
	LockName	name;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	PG_RETURN_BOOL(SessionRelease(&name, MODE_EXCLUSIVE));
}

/* (name, token) */
Datum
ddb_lock_join(PG_FUNCTION_ARGS)
{
	LockName	name;
	int64		token;

	ErrorsRequirePreload();
	name = ArgumentAllowedName(fcinfo, 0);
	token = ArgumentToken(fcinfo, 1);
	JoinedJoin(&name, token);
	PG_RETURN_VOID();
}

/* (name, at_most) */
Datum
ddb_lock_detach(PG_FUNCTION_ARGS)
{
	LockName	name;
	int64		at_most_ms;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	at_most_ms = ArgumentAtMost(fcinfo, 1);
	PG_RETURN_INT64(JoinedDetach(&name, at_most_ms));
}

/* (name, token) */
Datum
ddb_lock_release_detached(PG_FUNCTION_ARGS)
{
	LockName	name;
	int64		token;

	ErrorsRequirePreload();
	name = ArgumentAllowedName(fcinfo, 0);
	token = ArgumentToken(fcinfo, 1);
	PG_RETURN_BOOL(JoinedEndDetached(&name, token));
}

Datum
ddb_lock_release_all(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(SessionReleaseAll());
}

Datum
ddb_lock_renew(PG_FUNCTION_ARGS)
{
	LockName	name;
	int64		lease_ms;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	lease_ms = ArgumentLease(fcinfo, 1, 0);
	PG_RETURN_TIMESTAMPTZ(TimesFromClock(SessionRenew(&name, lease_ms)));
}

Datum
ddb_lock_token(PG_FUNCTION_ARGS)
{
	LockName	name;
	int64		token;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	token = SessionToken(&name);
	if (token == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(token);
}

Datum
ddb_lock_require(PG_FUNCTION_ARGS)
{
	LockName	name;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	PG_RETURN_INT64(SessionRequire(&name));
}
