/*-------------------------------------------------------------------------
 *
 * acquire_functions.c
 *	  SQL functions that acquire locks: exclusive, shared, of a semaphore; one or
 *	  several in one call; for the session or the transaction; waiting or not.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/execdesc.h"
#include "lib/qunique.h"
#include "nodes/execnodes.h"
#include "tcop/pquery.h"
#include "utils/array.h"

#include "sql/sql.h"

#define NAMES_MAX 1000

/* (lease, wait), from this number on; a try has no wait.  Returns the number after them. */
static int
read_lease(FunctionCallInfo fcinfo, int number, AcquireOptions *options)
{
	options->ask.lease_ms = ArgumentLease(fcinfo, number++, ddblock_lease_duration);
	options->wait_ms = options->only_try ? WAITING_NO_LIMIT :
		ArgumentPeriod(fcinfo, number++, "wait", WAITING_NO_LIMIT);
	return number;
}

/* (at_most): at least the lease's margin; a transaction has none */
static void
read_limit(FunctionCallInfo fcinfo, int number, AcquireOptions *options)
{
	double		margin_ms = options->ask.lease_ms * ddblock_safety_margin;
	int64		at_most_ms;

	if (options->scope != SCOPE_SESSION || PG_ARGISNULL(number))
		return;
	at_most_ms = ArgumentTime(fcinfo, number, "at_most", YEAR_MS, "1 year");
	if (at_most_ms < margin_ms)
		ErrorsArgument(errmsg("argument \"%s\" must not be less than the lease's safety margin",
							  "at_most"),
					   errdetail("With this lease and \"ddblock.safety_margin\", that is %.0f ms.",
								 ceil(margin_ms)));
	options->ask.at_most_us = at_most_ms * 1000;
}

/*
 * Does the transaction consist of this call alone?  It does if the top query itself makes the call,
 * and not a function in it, outside of a transaction block.  Then nobody else uses the snapshot.
 */
static bool
is_alone(FunctionCallInfo fcinfo)
{
	return !IsTransactionBlock() && ActivePortal != NULL && ActivePortal->queryDesc != NULL &&
		ActivePortal->queryDesc->estate->es_query_cxt == fcinfo->flinfo->fn_mcxt;
}

/* Returns the token; for a try, whether it got the lock. */
static Datum
acquire(FunctionCallInfo fcinfo, const LockName *name, AcquireOptions *options,
		const char *function)
{
	const HeldLock *held;

	AwaitWithoutSnapshot(fcinfo, function);
	options->alone = is_alone(fcinfo);
	held = SessionAcquire(name, options);
	return options->only_try ? BoolGetDatum(held != NULL) : Int64GetDatum(held->token);
}

/* (name, lease, wait, data, attributes, only_if_exists, delete_on_release, at_least, at_most) */
static Datum
acquire_exclusive(FunctionCallInfo fcinfo, LockScope scope, bool only_try)
{
	AcquireOptions options = {.scope = scope,.only_try = only_try};
	LockName	name = ArgumentAllowedName(fcinfo);
	int			number = read_lease(fcinfo, 1, &options);

	options.data = ArgumentData(fcinfo, number, &options.data_len);
	options.attributes = ArgumentAttributes(fcinfo, number + 1, options.data_len);
	options.ask.must_exist = ArgumentIsTrue(fcinfo, number + 2);
	options.ask.deletes_item = ArgumentIsTrue(fcinfo, number + 3);
	if (!PG_ARGISNULL(number + 4))
		options.ask.at_least_ms = ArgumentTime(fcinfo, number + 4, "at_least", DYNAMO_KEPT_MAX_MS,
											   "1 day");
	read_limit(fcinfo, number + 5, &options);
	if (options.ask.deletes_item && options.ask.at_least_ms != 0)
		ErrorsArgument(errmsg("argument \"%s\" cannot be combined with \"%s\"", "at_least",
							  "delete_on_release"),
					   errdetail("The item, which shows how long the lock is kept, must outlive "
								 "the release."));
	return acquire(fcinfo, &name, &options, "ddb_lock_acquire");
}

/* (name, lease, wait, at_most) */
static Datum
acquire_shared(FunctionCallInfo fcinfo, LockScope scope, bool only_try)
{
	AcquireOptions options = {
		.scope = scope,.only_try = only_try,.ask = {.mode = MODE_SHARED,.permits = 1}
	};
	LockName	name = ArgumentAllowedName(fcinfo);

	read_limit(fcinfo, read_lease(fcinfo, 1, &options), &options);
	return acquire(fcinfo, &name, &options, "ddb_lock_acquire_shared");
}

/* (name, max_permits, permits, lease, wait, at_most) */
static Datum
acquire_permits(FunctionCallInfo fcinfo, LockScope scope, bool only_try)
{
	AcquireOptions options = {.scope = scope,.only_try = only_try,.ask = {.mode = MODE_SEMAPHORE}};
	LockName	name = ArgumentAllowedName(fcinfo);

	options.ask.limit = ArgumentCount(fcinfo, 1, "max_permits", PG_INT32_MAX, NULL);
	options.ask.permits = ArgumentCount(fcinfo, 2, "permits", options.ask.limit, "max_permits");
	read_limit(fcinfo, read_lease(fcinfo, 3, &options), &options);
	return acquire(fcinfo, &name, &options, "ddb_semaphore_acquire");
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(((const LockName *) a)->utf8, ((const LockName *) b)->utf8);
}

/* Checks the element with this number of the argument "names". */
static LockName
name_of(Datum value, bool isnull, int number)
{
	LockName	name;

	if (isnull)
		ErrorsArgument(errmsg("argument \"%s\" must not contain nulls", "names"),
					   errdetail("Its name number %d is null.", number));
	name = ArgumentToName(value);
	if (name.utf8[0] == '\0')
		ErrorsArgument(errmsg("argument \"%s\" must not contain empty names", "names"),
					   errdetail("Its name number %d is empty.", number));
	if (strlen(name.utf8) > DYNAMO_NAME_MAX)
		ErrorsArgument(errmsg("argument \"%s\" must not contain names longer than %d bytes in "
							  "UTF-8", "names", DYNAMO_NAME_MAX),
					   errdetail("Its name number %d has %zu bytes.", number, strlen(name.utf8)));
	NameRequire(&name);
	PrefixRequire(&name);
	return name;
}

static LockName *
names_argument(FunctionCallInfo fcinfo, int *count)
{
	ArrayType  *array;
	LockName   *names;
	Datum	   *values;
	bool	   *nulls;

	ErrorsRequirePreload();
	ArgumentRequire(fcinfo, 0, "names");
	array = PG_GETARG_ARRAYTYPE_P(0);
	if (ARR_NDIM(array) == 0)
		ErrorsArgument(errmsg("argument \"%s\" must not be empty", "names"));
	if (ARR_NDIM(array) > 1)
		ErrorsArgument(errmsg("argument \"%s\" must have one dimension", "names"),
					   errdetail("It has %d.", ARR_NDIM(array)));
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, count);
	if (*count > NAMES_MAX)
		ErrorsArgument(errmsg("argument \"%s\" must not contain more than %d names",
							  "names", NAMES_MAX),
					   errdetail("It contains %d.", *count));

	names = palloc(*count * sizeof(LockName));
	for (int i = 0; i < *count; i++)
		names[i] = name_of(values[i], nulls[i], i + 1);
	return names;
}

/* (names, lease, wait, at_most) */
static Datum
acquire_all(FunctionCallInfo fcinfo, LockScope scope, bool only_try)
{
	AcquireOptions options = {.scope = scope,.only_try = only_try};
	int			count;
	LockName   *names = names_argument(fcinfo, &count);
	LockName   *sorted = palloc(count * sizeof(LockName));
	int64	   *sorted_tokens = palloc(count * sizeof(int64));
	int64	   *tokens = palloc(count * sizeof(int64));
	size_t		different;
	bool		granted;

	read_limit(fcinfo, read_lease(fcinfo, 1, &options), &options);
	AwaitWithoutSnapshot(fcinfo, "ddb_lock_acquire_all");
	options.alone = is_alone(fcinfo);
	memcpy(sorted, names, count * sizeof(LockName));
	qsort(sorted, count, sizeof(LockName), compare_names);
	different = qunique(sorted, count, sizeof(LockName), compare_names);
	granted = SeveralAcquire(sorted, different, &options, sorted_tokens);
	if (only_try)
		return BoolGetDatum(granted);

	/* A name that comes twice gets the same token twice. */
	for (int i = 0; i < count; i++)
	{
		LockName   *found = bsearch(&names[i], sorted, different, sizeof(LockName), compare_names);

		tokens[i] = sorted_tokens[found - sorted];
	}
	return RowNumbers(tokens, count);
}

/* Defines an SQL function: who reads its arguments, its scope, and whether it only tries. */
#define ACQUIRES(function, how, scope, only_try) \
PG_FUNCTION_INFO_V1(function); \
Datum \
function(PG_FUNCTION_ARGS) \
{ \
	return how(fcinfo, scope, only_try); \
}

ACQUIRES(ddb_lock_acquire, acquire_exclusive, SCOPE_SESSION, false)
ACQUIRES(ddb_lock_try_acquire, acquire_exclusive, SCOPE_SESSION, true)
ACQUIRES(ddb_xact_lock_acquire, acquire_exclusive, SCOPE_XACT, false)
ACQUIRES(ddb_xact_lock_try_acquire, acquire_exclusive, SCOPE_XACT, true)
ACQUIRES(ddb_lock_acquire_shared, acquire_shared, SCOPE_SESSION, false)
ACQUIRES(ddb_lock_try_acquire_shared, acquire_shared, SCOPE_SESSION, true)
ACQUIRES(ddb_xact_lock_acquire_shared, acquire_shared, SCOPE_XACT, false)
ACQUIRES(ddb_xact_lock_try_acquire_shared, acquire_shared, SCOPE_XACT, true)
ACQUIRES(ddb_semaphore_acquire, acquire_permits, SCOPE_SESSION, false)
ACQUIRES(ddb_semaphore_try_acquire, acquire_permits, SCOPE_SESSION, true)
ACQUIRES(ddb_xact_semaphore_acquire, acquire_permits, SCOPE_XACT, false)
ACQUIRES(ddb_xact_semaphore_try_acquire, acquire_permits, SCOPE_XACT, true)
ACQUIRES(ddb_lock_acquire_all, acquire_all, SCOPE_SESSION, false)
ACQUIRES(ddb_lock_try_acquire_all, acquire_all, SCOPE_SESSION, true)
ACQUIRES(ddb_xact_lock_acquire_all, acquire_all, SCOPE_XACT, false)
ACQUIRES(ddb_xact_lock_try_acquire_all, acquire_all, SCOPE_XACT, true)
