/*-------------------------------------------------------------------------
 *
 * arguments.c
 *	  Reads and checks the arguments that the SQL functions share.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "sql/sql.h"

#define LEASE_MIN_MS 2000

void
ArgumentRequire(FunctionCallInfo fcinfo, int number, const char *name)
{
	if (PG_ARGISNULL(number))
		ErrorsArgument(errmsg("argument \"%s\" must not be null", name));
}

char *
ArgumentUtf8(Datum value)
{
	return Utf8FromServer(TextDatumGetCString(value));
}

LockName
ArgumentToName(Datum value)
{
	return (LockName) {Utf8Quiet(TextDatumGetCString(value)), ArgumentUtf8(value)};
}

char *
ArgumentCheckLength(const char *name, char *utf8, size_t most)
{
	if (utf8[0] == '\0')
		ErrorsArgument(errmsg("argument \"%s\" must not be empty", name));
	if (strlen(utf8) > most)
		ErrorsArgument(errmsg("argument \"%s\" must not be longer than %zu bytes in UTF-8",
							  name, most),
					   errdetail("It has %zu bytes.", strlen(utf8)));
	return utf8;
}

LockName
ArgumentName(FunctionCallInfo fcinfo)
{
	LockName	name;

	ErrorsRequirePreload();
	ArgumentRequire(fcinfo, 0, "name");
	name = ArgumentToName(PG_GETARG_DATUM(0));
	ArgumentCheckLength("name", name.utf8, DYNAMO_NAME_MAX);
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

int64
ArgumentDuration(FunctionCallInfo fcinfo, int number, const char *name, int64 least_ms)
{
	int64		milliseconds;

	ArgumentRequire(fcinfo, number, name);
	if (!TimesMilliseconds(PG_GETARG_INTERVAL_P(number), least_ms, &milliseconds))
		ErrorsArgument(errmsg("argument \"%s\" must not contain months or years, or be infinite",
							  name));
	return milliseconds;
}

int64
ArgumentLease(FunctionCallInfo fcinfo, int number, int64 if_null)
{
	int64		lease_ms;

	if (PG_ARGISNULL(number))
		return if_null;
	lease_ms = ArgumentDuration(fcinfo, number, "lease", LEASE_MIN_MS);
	if (lease_ms < LEASE_MIN_MS || lease_ms > DAY_MS)
		ErrorsArgument(errmsg("argument \"%s\" must be between 2 seconds and 1 day", "lease"));
	return lease_ms;
}

int64
ArgumentPeriod(FunctionCallInfo fcinfo, int number, const char *name, int64 if_null)
{
	int64		milliseconds;

	if (PG_ARGISNULL(number))
		return if_null;
	milliseconds = ArgumentDuration(fcinfo, number, name, 0);
	if (milliseconds <= 0)
		ErrorsArgument(errmsg("argument \"%s\" must be greater than 0", name));
	return Min(milliseconds, CENTURY_MS);
}

int64
ArgumentTime(FunctionCallInfo fcinfo, int number, const char *name, int64 max_ms, const char *max)
{
	int64		milliseconds = ArgumentDuration(fcinfo, number, name, 0);

	if (milliseconds <= 0 || milliseconds > max_ms)
		ErrorsArgument(errmsg("argument \"%s\" must be greater than 0 and at most %s", name, max));
	return milliseconds;
}

bool
ArgumentBool(FunctionCallInfo fcinfo, int number, const char *name)
{
	ArgumentRequire(fcinfo, number, name);
	return PG_GETARG_BOOL(number);
}

int64
ArgumentPositive(FunctionCallInfo fcinfo, int number, const char *name)
{
	int64		value;

	ArgumentRequire(fcinfo, number, name);
	value = PG_GETARG_INT64(number);
	if (value <= 0)
		ErrorsArgument(errmsg("argument \"%s\" must be greater than 0", name));
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
		ErrorsArgument(errmsg("arguments \"%s\" and \"%s\" must be given together",
							  "read_units", "write_units"));
	how.protect = ArgumentBool(fcinfo, 2, "protect");
	return how;
}

int32
ArgumentCount(FunctionCallInfo fcinfo, int number, const char *name, int32 max,
			  const char *max_name)
{
	int32		count;

	ArgumentRequire(fcinfo, number, name);
	count = PG_GETARG_INT32(number);
	if (count < 1 || count > max)
		ErrorsArgument(max_name == NULL ?
					   errmsg("argument \"%s\" must be between 1 and %d", name, max) :
					   errmsg("argument \"%s\" must be between 1 and argument \"%s\", which is %d",
							  name, max_name, max));
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
		ErrorsArgument(errmsg("argument \"%s\" must not be longer than %d bytes",
							  "data", DYNAMO_DATA_MAX),
					   errdetail("It has %zu bytes.", *len));
	return (const uint8 *) VARDATA_ANY(value);
}

bool
ArgumentIsTrue(FunctionCallInfo fcinfo, int number)
{
	return !PG_ARGISNULL(number) && PG_GETARG_BOOL(number);
}
