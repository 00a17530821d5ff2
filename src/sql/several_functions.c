/*-------------------------------------------------------------------------
 *
 * several_functions.c
 *	  SQL functions that acquire several locks in one call.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"

#include "session/await.h"
#include "session/name.h"
#include "session/prefix.h"
#include "session/several.h"
#include "shared/errors.h"
#include "shared/settings.h"
#include "shared/utf8.h"
#include "sql/arguments.h"
#include "sql/row.h"

#define NAMES_MAX 1000

PG_FUNCTION_INFO_V1(ddb_lock_acquire_all);
PG_FUNCTION_INFO_V1(ddb_lock_try_acquire_all);
PG_FUNCTION_INFO_V1(ddb_xact_lock_acquire_all);
PG_FUNCTION_INFO_V1(ddb_xact_lock_try_acquire_all);

/* An element of the argument. */
typedef struct Element
{
	LockName	name;
	int			number;
} Element;

static Datum acquire_all(FunctionCallInfo fcinfo, LockScope scope);
static Datum try_acquire_all(FunctionCallInfo fcinfo, LockScope scope);
static bool acquire(Element *elements, int count, const AcquireOptions *options, int64 *tokens);
static Element *elements_of(FunctionCallInfo fcinfo, int *count);
static void require_one_dimension(const ArrayType *array);
static LockName name_of(Datum value, bool isnull, int number);
static int	compare_names(const void *a, const void *b);

/* (names, lease, wait, at_most); in a transaction, without at_most */
static Datum
acquire_all(FunctionCallInfo fcinfo, LockScope scope)
{
	AcquireOptions options = {.scope = scope};
	Element    *elements;
	int64	   *tokens;
	int			count;

	ErrorsRequirePreload();
	elements = elements_of(fcinfo, &count);
	options.ask.lease_ms = ArgumentLease(fcinfo, 1, ddblock_lease_duration);
	options.wait_ms = ArgumentWait(fcinfo, 2);
	if (scope == SCOPE_SESSION)
		options.ask.at_most_us = ArgumentLimit(fcinfo, 3, options.ask.lease_ms);

	AwaitWithoutSnapshot(fcinfo, "ddb_lock_acquire_all");
	tokens = palloc(count * sizeof(int64));
	(void) acquire(elements, count, &options, tokens);
	return RowNumbers(tokens, count);
}

/* (names, lease, at_most), as above */
static Datum
try_acquire_all(FunctionCallInfo fcinfo, LockScope scope)
{
	AcquireOptions options = {.scope = scope,.only_try = true,.wait_ms = WAITING_NO_LIMIT};
	Element    *elements;
	int			count;

	ErrorsRequirePreload();
	elements = elements_of(fcinfo, &count);
	options.ask.lease_ms = ArgumentLease(fcinfo, 1, ddblock_lease_duration);
	if (scope == SCOPE_SESSION)
		options.ask.at_most_us = ArgumentLimit(fcinfo, 2, options.ask.lease_ms);

	PG_RETURN_BOOL(acquire(elements, count, &options, palloc(count * sizeof(int64))));
}

/* Sets the token of each element, also of one that comes twice. */
static bool
acquire(Element *elements, int count, const AcquireOptions *options, int64 *tokens)
{
	LockName   *names = palloc(count * sizeof(LockName));
	int64	   *token_of = palloc(count * sizeof(int64));
	int			different = 0;

	qsort(elements, count, sizeof(Element), compare_names);
	for (int i = 0; i < count; i++)
	{
		if (i == 0 || compare_names(&elements[i - 1], &elements[i]) != 0)
			names[different++] = elements[i].name;
	}
	if (!SeveralAcquire(names, different, options, token_of))
		return false;

	different = 0;
	for (int i = 0; i < count; i++)
	{
		if (i > 0 && compare_names(&elements[i - 1], &elements[i]) != 0)
			different++;
		tokens[elements[i].number] = token_of[different];
	}
	return true;
}

static Element *
elements_of(FunctionCallInfo fcinfo, int *count)
{
	ArrayType  *array;
	Element    *elements;
	Datum	   *values;
	bool	   *nulls;

	ArgumentRequire(fcinfo, 0, "names");
	array = PG_GETARG_ARRAYTYPE_P(0);
	require_one_dimension(array);
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, count);
	if (*count > NAMES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not contain more than %d names",
						"names", NAMES_MAX),
				 errdetail("It contains %d.", *count)));

	elements = palloc(*count * sizeof(Element));
	for (int i = 0; i < *count; i++)
		elements[i] = (Element) {name_of(values[i], nulls[i], i + 1), i};
	return elements;
}

static void
require_one_dimension(const ArrayType *array)
{
	if (ARR_NDIM(array) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be empty", "names")));
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must have one dimension", "names"),
				 errdetail("It has %d.", ARR_NDIM(array))));
}

static LockName
name_of(Datum value, bool isnull, int number)
{
	const text *given;
	LockName	name;

	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not contain nulls", "names"),
				 errdetail("Its name number %d is null.", number)));
	given = DatumGetTextPP(value);
	name.text = Utf8Quiet(VARDATA_ANY(given), VARSIZE_ANY_EXHDR(given));
	name.utf8 = Utf8FromServer(VARDATA_ANY(given), VARSIZE_ANY_EXHDR(given));
	if (name.utf8[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not contain empty names", "names"),
				 errdetail("Its name number %d is empty.", number)));
	if (strlen(name.utf8) > DYNAMO_NAME_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not contain names longer than %d bytes in UTF-8",
						"names", DYNAMO_NAME_MAX),
				 errdetail("Its name number %d has %zu bytes.", number, strlen(name.utf8))));
	NameRequire(&name);
	PrefixRequire(&name);
	return name;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(((const Element *) a)->name.utf8, ((const Element *) b)->name.utf8);
}

Datum
ddb_lock_acquire_all(PG_FUNCTION_ARGS)
{
	return acquire_all(fcinfo, SCOPE_SESSION);
}

Datum
ddb_lock_try_acquire_all(PG_FUNCTION_ARGS)
{
	return try_acquire_all(fcinfo, SCOPE_SESSION);
}

Datum
ddb_xact_lock_acquire_all(PG_FUNCTION_ARGS)
{
	return acquire_all(fcinfo, SCOPE_XACT);
}

Datum
ddb_xact_lock_try_acquire_all(PG_FUNCTION_ARGS)
{
	return try_acquire_all(fcinfo, SCOPE_XACT);
}
