/*-------------------------------------------------------------------------
 *
 * fence.c
 *	  ddb_fence_check() and ddb_fence_check_shared(): refuse a transaction whose fencing
 *	  token is stale.
 *
 * The table ddb_fences has a row for each resource, with two tokens: the highest of exclusive locks
 * and the highest of shared locks.  A fenced transaction writes the row itself.  If T1 has written
 * the row and T2 checks the same resource, T2 waits for the row's lock until T1 has ended, and then
 * sees T1's token.
 *
 * These tokens are stale:
 *
 *	 - The token of an exclusive lock, if a higher token of an exclusive lock, or an equal or higher
 *	   one of a shared lock is recorded.  An equal one was given to somebody else.
 *	 - The token of a shared lock, if an equal or higher token of an exclusive lock is recorded.
 *	   Shared locks that overlap have no order, so their tokens do not refuse each other.
 *
 * The functions need nothing but PostgreSQL: neither the worker nor a server that preloads the
 * library.
 *
 * The functions are security definers with a fixed search_path.  The table is always the one in the
 * function's own schema, so neither a temporary table nor ALTER EXTENSION ... SET SCHEMA can lead
 * to another one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "sql/sql.h"

#define FENCES "ddb_fences"
#define RESOURCE_MAX 2048		/* bytes; fits into an index entry */

typedef struct Fences
{
	int64		exclusive;
	int64		shared;
} Fences;

/*
 * Reads and checks the arguments.  FenceRequest() comes first: if the check fails, and a savepoint
 * catches the error, the transaction is without its fence, too.
 */
static void
begin(FunctionCallInfo fcinfo, const char *function, text **resource, int64 *token)
{
	TransactionAttach();
	FenceRequest();
	PreventCommandIfReadOnly(function);
	ArgumentRequire(fcinfo, 0, "resource");
	*resource = PG_GETARG_TEXT_PP(0);
	if (VARSIZE_ANY_EXHDR(*resource) == 0)
		ErrorsArgument(errmsg("argument \"%s\" must not be empty", "resource"));
	if (VARSIZE_ANY_EXHDR(*resource) > RESOURCE_MAX)
		ErrorsArgument(errmsg("argument \"%s\" must not be longer than %d bytes",
							  "resource", RESOURCE_MAX),
					   errdetail("It has %d bytes.", (int) VARSIZE_ANY_EXHDR(*resource)));
	if (PG_ARGISNULL(1))
		ErrorsArgument(errmsg("argument \"%s\" must not be null", "token"),
					   errhint("ddb_lock_require() returns the token of a lock that this session "
							   "holds, or fails."));
	*token = ArgumentPositive(fcinfo, 1, "token");
	PrefixRequireResource(text_to_cstring(*resource));
}

/* Executes a command on the resource's row, and reads its tokens.  False: there is no such row. */
static bool
run(const char *command, text *resource, int64 token, Fences *fences)
{
	Oid			types[] = {TEXTOID, INT8OID};
	Datum		values[] = {PointerGetDatum(resource), Int64GetDatum(token)};
	bool		is_null;
	bool		found;

	SPI_connect();
	if (KeepExecute(command, lengthof(types), types, values, NULL) < 0)
		KeepNotRecorded(FENCES, "the token");
	found = SPI_processed == 1;
	if (found)
	{
		HeapTuple	row = SPI_tuptable->vals[0];

		fences->exclusive = DatumGetInt64(SPI_getbinval(row, SPI_tuptable->tupdesc, 1, &is_null));
		fences->shared = DatumGetInt64(SPI_getbinval(row, SPI_tuptable->tupdesc, 2, &is_null));
	}
	SPI_finish();
	return found;
}

PG_FUNCTION_INFO_V1(ddb_fence_check);
Datum
ddb_fence_check(PG_FUNCTION_ARGS)
{
	text	   *resource;
	int64		token;
	Fences		fences;

	begin(fcinfo, "ddb_fence_check()", &resource, &token);

	/*
	 * Write the row even if the token is not higher: the lock of the changed row makes transactions
	 * with higher tokens wait until this one has ended.
	 */
	if (!run(psprintf("INSERT INTO %s AS f (resource, token) VALUES ($1, $2) "
					  "ON CONFLICT (resource) DO UPDATE "
					  "SET token = GREATEST(f.token, EXCLUDED.token) "
					  "RETURNING token, shared_token",
					  KeepTable(fcinfo, FENCES)), resource, token, &fences))
		KeepNotRecorded(FENCES, "the token");
	if (fences.exclusive > token)
		ErrorsStaleToken(text_to_cstring(resource), fences.exclusive, "", token);
	if (fences.shared >= token)
		ErrorsStaleToken(text_to_cstring(resource), fences.shared, " of a shared lock", token);
	if (fences.exclusive < token)
		KeepNotRecorded(FENCES, "the token");
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(ddb_fence_check_shared);

/*
 * The first transaction with the token of a shared lock writes it into the row.  Later ones find it
 * there, and only lock the row FOR SHARE: they wait for transactions of exclusive locks, but not
 * for each other.
 */
Datum
ddb_fence_check_shared(PG_FUNCTION_ARGS)
{
	text	   *resource;
	int64		token;
	const char *table;
	Fences		fences;

	begin(fcinfo, "ddb_fence_check_shared()", &resource, &token);
	table = KeepTable(fcinfo, FENCES);

	if (!run(psprintf("SELECT token, shared_token FROM %s "
					  "WHERE resource = $1 AND shared_token >= $2 FOR SHARE", table),
			 resource, token, &fences) &&
		!run(psprintf("INSERT INTO %s AS f (resource, shared_token) VALUES ($1, $2) "
					  "ON CONFLICT (resource) DO UPDATE "
					  "SET shared_token = GREATEST(f.shared_token, EXCLUDED.shared_token) "
					  "RETURNING token, shared_token", table), resource, token, &fences))
		KeepNotRecorded(FENCES, "the token");
	if (fences.exclusive >= token)
		ErrorsStaleToken(text_to_cstring(resource), fences.exclusive, " of an exclusive lock",
						 token);
	if (fences.shared < token)
		KeepNotRecorded(FENCES, "the token");
	PG_RETURN_VOID();
}
