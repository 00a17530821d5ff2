/*-------------------------------------------------------------------------
 *
 * fence.c
 *	  ddb_fence(): refuses a transaction whose fencing token is stale.
 *
 * The table ddb_fences has a row with the highest token of each resource,
 * written by the fenced transaction itself.  The row's lock makes a second
 * transaction wait until the first one has ended; then it sees its token.
 *
 * This needs nothing but PostgreSQL: neither the worker nor a server that
 * preloads the library.
 *
 * The SQL function is a security definer with a fixed search_path.  The table is
 * always the one in the function's own schema, so neither a temporary table nor
 * ALTER EXTENSION ... SET SCHEMA can lead to another one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "session/fence.h"
#include "session/transaction.h"
#include "shared/compat.h"
#include "shared/errors.h"
#include "sql/prefix.h"

#define RESOURCE_MAX 2048		/* bytes; fits into an index entry */

PG_FUNCTION_INFO_V1(ddb_fence);

static text *resource_argument(FunctionCallInfo fcinfo, int number);
static int64 token_argument(FunctionCallInfo fcinfo, int number);
static int64 record_token(Oid function, text *resource, int64 token);
static char *upsert(Oid function);
pg_noreturn static void not_recorded(void);

Datum
ddb_fence(PG_FUNCTION_ARGS)
{
	text	   *resource;
	int64		token;
	int64		recorded;

	TransactionAttach();
	FenceRequest();
	PreventCommandIfReadOnly("ddb_fence()");
	resource = resource_argument(fcinfo, 0);
	token = token_argument(fcinfo, 1);
	PrefixRequireResource(text_to_cstring(resource));

	recorded = record_token(fcinfo->flinfo->fn_oid, resource, token);
	if (recorded > token)
		ErrorsStaleToken(text_to_cstring(resource), recorded, token);
	if (recorded < token)
		not_recorded();
	PG_RETURN_VOID();
}

static text *
resource_argument(FunctionCallInfo fcinfo, int number)
{
	text	   *resource;

	if (PG_ARGISNULL(number))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be null", "resource")));

	resource = PG_GETARG_TEXT_PP(number);
	if (VARSIZE_ANY_EXHDR(resource) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be empty", "resource")));
	if (VARSIZE_ANY_EXHDR(resource) > RESOURCE_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be longer than %d bytes",
						"resource", RESOURCE_MAX),
				 errdetail("It has %d bytes.", (int) VARSIZE_ANY_EXHDR(resource))));
	return resource;
}

static int64
token_argument(FunctionCallInfo fcinfo, int number)
{
	if (PG_ARGISNULL(number))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be null", "token"),
				 errhint("ddb_lock_require() returns the token of a lock that this session "
						 "holds, or fails.")));
	if (PG_GETARG_INT64(number) <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be greater than 0", "token")));
	return PG_GETARG_INT64(number);
}

/* Returns the highest token of the resource, including this one. */
static int64
record_token(Oid function, text *resource, int64 token)
{
	Oid			types[] = {TEXTOID, INT8OID};
	Datum		values[] = {PointerGetDatum(resource), Int64GetDatum(token)};
	int64		recorded;
	bool		is_null;

	SPI_connect();
	if (SPI_execute_with_args(upsert(function), lengthof(types), types, values, NULL,
							  false, 0) != SPI_OK_INSERT_RETURNING || SPI_processed != 1)
		not_recorded();
	recorded = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc,
										   1, &is_null));
	SPI_finish();
	return recorded;
}

/* The table's owner may have added a trigger or a rule. */
static void
not_recorded(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" does not record the token", "ddb_fences"),
			 errhint("Remove the triggers and rules from the table.")));
}

/*
 * Writes the row even if the token is not higher: the lock of the changed row
 * makes transactions with higher tokens wait until this one has ended.
 */
static char *
upsert(Oid function)
{
	char	   *schema = get_namespace_name(get_func_namespace(function));

	/* Dropped meanwhile.  An unqualified name could find a temporary table. */
	if (schema == NULL)
		elog(ERROR, "cache lookup failed for function %u", function);
	return psprintf("INSERT INTO %s AS f (resource, token) VALUES ($1, $2) "
					"ON CONFLICT (resource) DO UPDATE "
					"SET token = GREATEST(f.token, EXCLUDED.token) RETURNING token",
					quote_qualified_identifier(schema, "ddb_fences"));
}
