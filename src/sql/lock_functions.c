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

#include "session/await.h"
#include "session/joined.h"
#include "session/session.h"
#include "session/waiting.h"
#include "shared/errors.h"
#include "shared/settings.h"
#include "shared/times.h"
#include "sql/arguments.h"
#include "sql/attributes.h"

PG_FUNCTION_INFO_V1(ddb_lock_acquire);
PG_FUNCTION_INFO_V1(ddb_lock_try_acquire);
PG_FUNCTION_INFO_V1(ddb_xact_lock_acquire);
PG_FUNCTION_INFO_V1(ddb_xact_lock_try_acquire);
PG_FUNCTION_INFO_V1(ddb_lock_release);
PG_FUNCTION_INFO_V1(ddb_lock_release_detached);
PG_FUNCTION_INFO_V1(ddb_lock_join);
PG_FUNCTION_INFO_V1(ddb_lock_detach);
PG_FUNCTION_INFO_V1(ddb_lock_outlive);
PG_FUNCTION_INFO_V1(ddb_lock_release_all);
PG_FUNCTION_INFO_V1(ddb_lock_release_nowait);
PG_FUNCTION_INFO_V1(ddb_lock_renew);
PG_FUNCTION_INFO_V1(ddb_lock_token);
PG_FUNCTION_INFO_V1(ddb_lock_require);
PG_FUNCTION_INFO_V1(ddb_lock_remaining);

static Datum acquire(FunctionCallInfo fcinfo, LockScope scope);
static Datum try_acquire(FunctionCallInfo fcinfo, LockScope scope);

/*
 * (attributes, only_if_exists, delete_on_release, at_least, at_most), from that number on; in a
 * transaction, without at_most.
 */
static void
late_arguments(FunctionCallInfo fcinfo, int first, AcquireOptions *options)
{
	options->attributes = ArgumentAttributes(fcinfo, first, options->data_len);
	options->ask.must_exist = ArgumentIsTrue(fcinfo, first + 1);
	options->ask.deletes_item = ArgumentIsTrue(fcinfo, first + 2);
	options->ask.at_least_ms = ArgumentAtLeast(fcinfo, first + 3);
	if (options->scope == SCOPE_SESSION)
		options->ask.at_most_us = ArgumentLimit(fcinfo, first + 4, options->ask.lease_ms);
	if (options->ask.deletes_item && options->ask.at_least_ms != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" cannot be combined with \"%s\"", "at_least",
						"delete_on_release"),
				 errdetail("The item, which shows how long the lock is kept, must outlive the "
						   "release.")));
}

/* (name, lease, wait, data, ...) */
static Datum
acquire(FunctionCallInfo fcinfo, LockScope scope)
{
	AcquireOptions options = {.scope = scope};
	LockName	name;
	int64		token;

	ErrorsRequirePreload();
	name = ArgumentAllowedName(fcinfo, 0);
	options.ask.lease_ms = ArgumentLease(fcinfo, 1, ddblock_lease_duration);
	options.wait_ms = ArgumentWait(fcinfo, 2);
	options.data = ArgumentData(fcinfo, 3, &options.data_len);
	late_arguments(fcinfo, 4, &options);

	AwaitWithoutSnapshot(fcinfo, "ddb_lock_acquire");
	(void) SessionAcquire(&name, &options, &token);
	PG_RETURN_INT64(token);
}

/* (name, lease, data, ...) */
static Datum
try_acquire(FunctionCallInfo fcinfo, LockScope scope)
{
	AcquireOptions options = {.scope = scope,.only_try = true,.wait_ms = WAITING_NO_LIMIT};
	LockName	name;
	int64		token;

	ErrorsRequirePreload();
	name = ArgumentAllowedName(fcinfo, 0);
	options.ask.lease_ms = ArgumentLease(fcinfo, 1, ddblock_lease_duration);
	options.data = ArgumentData(fcinfo, 2, &options.data_len);
	late_arguments(fcinfo, 3, &options);

	PG_RETURN_BOOL(SessionAcquire(&name, &options, &token));
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

/* (name, keep) */
Datum
ddb_lock_release(PG_FUNCTION_ARGS)
{
	LockName	name;
	bool		keep;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	keep = ArgumentKeep(fcinfo, 1);
	PG_RETURN_BOOL(SessionRelease(&name, MODE_EXCLUSIVE, keep));
}

/* (name, token, keep) */
Datum
ddb_lock_release_detached(PG_FUNCTION_ARGS)
{
	LockName	name;
	int64		token;
	bool		keep;

	ErrorsRequirePreload();
	name = ArgumentAllowedName(fcinfo, 0);
	token = ArgumentPositive(fcinfo, 1, "token");
	keep = ArgumentKeep(fcinfo, 2);
	PG_RETURN_BOOL(JoinedEndDetached(&name, token, keep));
}

/* (name, token) */
Datum
ddb_lock_join(PG_FUNCTION_ARGS)
{
	LockName	name;
	int64		token;

	ErrorsRequirePreload();
	name = ArgumentAllowedName(fcinfo, 0);
	token = ArgumentPositive(fcinfo, 1, "token");
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

Datum
ddb_lock_outlive(PG_FUNCTION_ARGS)
{
	LockName	name;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	PG_RETURN_INTERVAL_P(TimesInterval(JoinedOutlive(&name)));
}

Datum
ddb_lock_release_nowait(PG_FUNCTION_ARGS)
{
	LockName	name;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	PG_RETURN_BOOL(SessionLetGo(&name));
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
	LockName	name;
	int64		lease_ms;
	const uint8 *data = NULL;
	size_t		data_len = 0;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	lease_ms = ArgumentLease(fcinfo, 1, 0);
	data = ArgumentData(fcinfo, 2, &data_len);
	PG_RETURN_TIMESTAMPTZ(TimesFromClock(SessionRenew(&name, lease_ms, data, data_len)));
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

Datum
ddb_lock_remaining(PG_FUNCTION_ARGS)
{
	LockName	name;
	int64		left;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	left = SessionRemaining(&name);
	if (left == 0)
		PG_RETURN_NULL();
	PG_RETURN_INTERVAL_P(TimesInterval(left));
}
