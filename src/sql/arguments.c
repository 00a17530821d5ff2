/*-------------------------------------------------------------------------
 *
 * arguments.c
 *	  Reads and checks the arguments that the SQL functions share.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "session/session.h"
#include "shared/compat.h"
#include "shared/errors.h"
#include "shared/settings.h"
#include "shared/shared.h"
#include "sql/sql.h"

/* A century, so that it can be counted in microseconds as well. */
#define WATCH_MAX_MS (INT64CONST(100) * 366 * 86400 * 1000)

#define LEASE_MIN_MS 2000
#define LEASE_MAX_MS 86400000
#define AT_MOST_MAX_MS 86400000
#define STAND_BACK_MAX_MS (INT64CONST(366) * 86400 * 1000)
#define LIMIT_MAX_MS STAND_BACK_MAX_MS

void
ArgumentRequire(FunctionCallInfo fcinfo, int number, const char *name)
{
	if (PG_ARGISNULL(number))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be null", name)));
}

static LockName
bounded_name(const text *value, const char *argument)
{
	LockName	name = {
		.text = Utf8Quiet(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)),
		.utf8 = Utf8FromServer(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)),
	};

	if (strlen(name.utf8) > DYNAMO_NAME_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be longer than %d bytes in UTF-8",
						argument, DYNAMO_NAME_MAX),
				 errdetail("It has %zu bytes.", strlen(name.utf8))));
	return name;
}

LockName
ArgumentName(FunctionCallInfo fcinfo)
{
	LockName	name;

	ErrorsRequirePreload();
	ArgumentRequire(fcinfo, 0, "name");
	name = bounded_name(PG_GETARG_TEXT_PP(0), "name");
	if (name.utf8[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be empty", "name")));
	NameRequire(&name);
	return name;
}

LockName
ArgumentAllowedName(FunctionCallInfo fcinfo)
{
	LockName	name = ArgumentName(fcinfo);

	PrefixRequire(&name);
	return name;
}

LockName
ArgumentPrefix(FunctionCallInfo fcinfo, int number)
{
	return bounded_name(PG_ARGISNULL(number) ? cstring_to_text("") :
						PG_GETARG_TEXT_PP(number), "prefix");
}

int64
ArgumentDuration(FunctionCallInfo fcinfo, int number, const char *name)
{
	int64		milliseconds;

	if (!TimesMilliseconds(PG_GETARG_INTERVAL_P(number), &milliseconds))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not contain months or years, or be infinite", name)));
	return milliseconds;
}

int64
ArgumentLease(FunctionCallInfo fcinfo, int number, int64 if_null)
{
	int64		lease_ms;

	if (PG_ARGISNULL(number))
		return if_null;
	lease_ms = ArgumentDuration(fcinfo, number, "lease");
	if (lease_ms < LEASE_MIN_MS || lease_ms > LEASE_MAX_MS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be between 2 seconds and 1 day", "lease")));
	return lease_ms;
}

static int64
positive_duration(FunctionCallInfo fcinfo, int number, const char *name, int64 if_null)
{
	int64		milliseconds;

	if (PG_ARGISNULL(number))
		return if_null;
	milliseconds = ArgumentDuration(fcinfo, number, name);
	if (milliseconds <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be greater than 0", name)));
	return milliseconds;
}

int64
ArgumentWait(FunctionCallInfo fcinfo, int number)
{
	return positive_duration(fcinfo, number, "wait", WAITING_NO_LIMIT);
}

int64
ArgumentWatch(FunctionCallInfo fcinfo, int number, int64 if_null)
{
	return Min(positive_duration(fcinfo, number, "watch", if_null), WATCH_MAX_MS);
}

int64
ArgumentLessThan(FunctionCallInfo fcinfo, int number)
{
	ArgumentRequire(fcinfo, number, "less_than");
	return Min(positive_duration(fcinfo, number, "less_than", 0), WATCH_MAX_MS);
}

static int64
limited_duration(FunctionCallInfo fcinfo, int number, const char *name, int64 max_ms,
				 const char *max)
{
	int64		milliseconds;

	ArgumentRequire(fcinfo, number, name);
	milliseconds = ArgumentDuration(fcinfo, number, name);
	if (milliseconds <= 0 || milliseconds > max_ms)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be greater than 0 and at most %s", name, max)));
	return milliseconds;
}

int64
ArgumentStandBack(FunctionCallInfo fcinfo, int number)
{
	return limited_duration(fcinfo, number, "stand_back", STAND_BACK_MAX_MS, "1 year");
}

int64
ArgumentAtMost(FunctionCallInfo fcinfo, int number)
{
	return limited_duration(fcinfo, number, "at_most", AT_MOST_MAX_MS, "1 day");
}

int64
ArgumentLimit(FunctionCallInfo fcinfo, int number, int64 lease_ms)
{
	double		margin_ms = lease_ms * ddblock_safety_margin;
	int64		at_most_ms;

	if (PG_ARGISNULL(number))
		return 0;
	at_most_ms = limited_duration(fcinfo, number, "at_most", LIMIT_MAX_MS, "1 year");
	if (at_most_ms < margin_ms)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be less than the lease's safety margin",
						"at_most"),
				 errdetail("With this lease and \"ddblock.safety_margin\", that is %.0f ms.",
						   ceil(margin_ms))));
	return at_most_ms * 1000;
}

int64
ArgumentAtLeast(FunctionCallInfo fcinfo, int number)
{
	if (PG_ARGISNULL(number))
		return 0;
	return limited_duration(fcinfo, number, "at_least", DYNAMO_KEPT_MAX_MS, "1 day");
}

bool
ArgumentKeep(FunctionCallInfo fcinfo, int number)
{
	ArgumentRequire(fcinfo, number, "keep");
	return PG_GETARG_BOOL(number);
}

int64
ArgumentPositive(FunctionCallInfo fcinfo, int number, const char *name)
{
	int64		value;

	ArgumentRequire(fcinfo, number, name);
	value = PG_GETARG_INT64(number);
	if (value <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be greater than 0", name)));
	return value;
}

dynamo_creation
ArgumentCreation(FunctionCallInfo fcinfo)
{
	dynamo_creation how = {0};

	if (!PG_ARGISNULL(0))
		how.read_units = ArgumentPositive(fcinfo, 0, "read_units");
	if (!PG_ARGISNULL(1))
		how.write_units = ArgumentPositive(fcinfo, 1, "write_units");
	if ((how.read_units == 0) != (how.write_units == 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("arguments \"%s\" and \"%s\" must be given together",
						"read_units", "write_units")));
	ArgumentRequire(fcinfo, 2, "protect");
	how.protect = PG_GETARG_BOOL(2);
	return how;
}

int64
ArgumentAge(FunctionCallInfo fcinfo, int number)
{
	int64		age_ms;

	ArgumentRequire(fcinfo, number, "older_than");
	age_ms = ArgumentDuration(fcinfo, number, "older_than");
	if (age_ms < ARGUMENT_AGE_MIN_MS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be at least 1 day", "older_than"),
				 errdetail("Without the item, fencing tokens could fall while a lease of its "
						   "last holder is still running.")));
	return age_ms;
}

int32
ArgumentCount(FunctionCallInfo fcinfo, int number, const char *name, int32 max,
			  const char *max_name)
{
	int32		count;

	ArgumentRequire(fcinfo, number, name);
	count = PG_GETARG_INT32(number);
	if (count < 1 || count > max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 max_name == NULL ?
				 errmsg("argument \"%s\" must be between 1 and %d", name, max) :
				 errmsg("argument \"%s\" must be between 1 and argument \"%s\", which is %d",
						name, max_name, max)));
	return count;
}

const uint8 *
ArgumentData(FunctionCallInfo fcinfo, int number, size_t *len)
{
	bytea	   *value;

	*len = 0;
	if (PG_ARGISNULL(number))
		return NULL;
	value = PG_GETARG_BYTEA_PP(number);
	*len = VARSIZE_ANY_EXHDR(value);
	if (*len > DYNAMO_DATA_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be longer than %d bytes",
						"data", DYNAMO_DATA_MAX),
				 errdetail("It has %zu bytes.", *len)));
	return (const uint8 *) VARDATA_ANY(value);
}

bool
ArgumentIsTrue(FunctionCallInfo fcinfo, int number)
{
	return !PG_ARGISNULL(number) && PG_GETARG_BOOL(number);
}
