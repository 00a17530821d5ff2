/*-------------------------------------------------------------------------
 *
 * role_setup.c
 *	  ddb_role_setup(): a role with the privileges to use ddblock.
 *
 * The commands run with the caller's privileges.  Their names are qualified with
 * the schema of the extension.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(ddb_role_setup);

typedef struct Privilege
{
	const char *name;
	bool		view;			/* a function, and the view on it */
	bool		operator;		/* for operators only */
} Privilege;

static const Privilege privileges[] = {
	{.name = "ddb_lock_acquire"},
	{.name = "ddb_lock_try_acquire"},
	{.name = "ddb_xact_lock_acquire"},
	{.name = "ddb_xact_lock_try_acquire"},
	{.name = "ddb_lock_release"},
	{.name = "ddb_lock_release_all"},
	{.name = "ddb_lock_renew"},
	{.name = "ddb_lock_token"},
	{.name = "ddb_lock_require"},
	{.name = "ddb_fence"},
	{.name = "ddb_lock_info"},
	{.name = "ddb_locks",.view = true},
	{.name = "ddb_stats",.view = true,.operator = true},
	{.name = "ddb_operations",.view = true,.operator = true},
	{.name = "ddb_status",.view = true,.operator = true},
	{.name = "ddb_lock_list",.operator = true},
	{.name = "ddb_lock_purge",.operator = true},
	{.name = "ddb_lock_force_release",.operator = true},
};

static const char *role_argument(FunctionCallInfo fcinfo, int number);
static void run(const char *command);

/* (role, operator) */
Datum
ddb_role_setup(PG_FUNCTION_ARGS)
{
	const char *name = role_argument(fcinfo, 0);
	const char *role = quote_identifier(name);
	bool		operator = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);
	char	   *schema = get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid));

	if (schema == NULL)
		elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);

	SPI_connect();
	if (!OidIsValid(get_role_oid(name, true)))
		run(psprintf("CREATE ROLE %s NOLOGIN", role));
	run(psprintf("GRANT USAGE ON SCHEMA %s TO %s", quote_identifier(schema), role));
	for (int i = 0; i < lengthof(privileges); i++)
	{
		const char *object = quote_qualified_identifier(schema, privileges[i].name);

		if (privileges[i].operator && !operator)
			continue;
		run(psprintf("GRANT EXECUTE ON FUNCTION %s TO %s", object, role));
		if (privileges[i].view)
			run(psprintf("GRANT SELECT ON %s TO %s", object, role));
	}
	SPI_finish();
	PG_RETURN_VOID();
}

static const char *
role_argument(FunctionCallInfo fcinfo, int number)
{
	if (PG_ARGISNULL(number))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be null", "role")));
	return NameStr(*PG_GETARG_NAME(number));
}

static void
run(const char *command)
{
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run \"%s\"", command);
}
