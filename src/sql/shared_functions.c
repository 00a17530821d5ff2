/*-------------------------------------------------------------------------
 *
 * shared_functions.c
 *	  SQL functions that acquire and release shared locks and permits of
 *	  semaphores.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

#include "session/await.h"
#include "session/session.h"
#include "session/waiting.h"
#include "shared/errors.h"
#include "shared/settings.h"
#include "sql/arguments.h"

PG_FUNCTION_INFO_V1(ddb_lock_acquire_shared);
PG_FUNCTION_INFO_V1(ddb_lock_try_acquire_shared);
PG_FUNCTION_INFO_V1(ddb_xact_lock_acquire_shared);
PG_FUNCTION_INFO_V1(ddb_xact_lock_try_acquire_shared);
PG_FUNCTION_INFO_V1(ddb_lock_release_shared);
PG_FUNCTION_INFO_V1(ddb_semaphore_acquire);
PG_FUNCTION_INFO_V1(ddb_semaphore_try_acquire);
PG_FUNCTION_INFO_V1(ddb_xact_semaphore_acquire);
PG_FUNCTION_INFO_V1(ddb_xact_semaphore_try_acquire);
PG_FUNCTION_INFO_V1(ddb_semaphore_release);

/* Beside the name, the lease is at this place, and after it wait and at_most, if there are such. */
static Datum
acquire(FunctionCallInfo fcinfo, AcquireOptions options, int lease)
{
	LockName	name = ArgumentAllowedName(fcinfo, 0);
	int64		token;

	options.ask.lease_ms = ArgumentLease(fcinfo, lease, ddblock_lease_duration);
	options.wait_ms = options.only_try ? WAITING_NO_LIMIT : ArgumentWait(fcinfo, lease + 1);
	if (options.scope == SCOPE_SESSION)
		options.ask.at_most_us = ArgumentLimit(fcinfo, lease + (options.only_try ? 1 : 2),
										   options.ask.lease_ms);
	AwaitWithoutSnapshot(fcinfo, options.ask.mode == MODE_SHARED ? "ddb_lock_acquire_shared" :
						 "ddb_semaphore_acquire");
	if (options.only_try)
		PG_RETURN_BOOL(SessionAcquire(&name, &options, &token));
	(void) SessionAcquire(&name, &options, &token);
	PG_RETURN_INT64(token);
}

/* (name, lease, wait, at_most); a try has no wait, a transaction no at_most */
static Datum
acquire_shared(FunctionCallInfo fcinfo, LockScope scope, bool only_try)
{
	AcquireOptions options = {
		.scope = scope,.only_try = only_try,.ask = {.mode = MODE_SHARED,.permits = 1}
	};

	ErrorsRequirePreload();
	return acquire(fcinfo, options, 1);
}

/* (name, max_permits, permits, lease, wait, at_most), as above */
static Datum
acquire_permits(FunctionCallInfo fcinfo, LockScope scope, bool only_try)
{
	AcquireOptions options = {
		.scope = scope,.only_try = only_try,.ask = {.mode = MODE_SEMAPHORE}
	};

	ErrorsRequirePreload();
	options.ask.limit = ArgumentCount(fcinfo, 1, "max_permits", PG_INT32_MAX, NULL);
	options.ask.permits = ArgumentCount(fcinfo, 2, "permits", options.ask.limit,
									"max_permits");
	return acquire(fcinfo, options, 3);
}

static Datum
release(FunctionCallInfo fcinfo, lock_mode mode)
{
	LockName	name;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	PG_RETURN_BOOL(SessionRelease(&name, mode, true));
}

Datum
ddb_lock_acquire_shared(PG_FUNCTION_ARGS)
{
	return acquire_shared(fcinfo, SCOPE_SESSION, false);
}

Datum
ddb_lock_try_acquire_shared(PG_FUNCTION_ARGS)
{
	return acquire_shared(fcinfo, SCOPE_SESSION, true);
}

Datum
ddb_xact_lock_acquire_shared(PG_FUNCTION_ARGS)
{
	return acquire_shared(fcinfo, SCOPE_XACT, false);
}

Datum
ddb_xact_lock_try_acquire_shared(PG_FUNCTION_ARGS)
{
	return acquire_shared(fcinfo, SCOPE_XACT, true);
}

Datum
ddb_lock_release_shared(PG_FUNCTION_ARGS)
{
	return release(fcinfo, MODE_SHARED);
}

Datum
ddb_semaphore_acquire(PG_FUNCTION_ARGS)
{
	return acquire_permits(fcinfo, SCOPE_SESSION, false);
}

Datum
ddb_semaphore_try_acquire(PG_FUNCTION_ARGS)
{
	return acquire_permits(fcinfo, SCOPE_SESSION, true);
}

Datum
ddb_xact_semaphore_acquire(PG_FUNCTION_ARGS)
{
	return acquire_permits(fcinfo, SCOPE_XACT, false);
}

Datum
ddb_xact_semaphore_try_acquire(PG_FUNCTION_ARGS)
{
	return acquire_permits(fcinfo, SCOPE_XACT, true);
}

Datum
ddb_semaphore_release(PG_FUNCTION_ARGS)
{
	return release(fcinfo, MODE_SEMAPHORE);
}
