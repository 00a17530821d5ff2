/*-------------------------------------------------------------------------
 *
 * role_setup.c
 *	  ddb_role_setup(): a role with the privileges to use ddblock.
 *
 * The commands run with the caller's privileges.  The function's own search_path is pg_catalog,
 * so names of other schemas are qualified.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "sql/sql.h"

/*
 * The commands' beginnings.  Their comments say whose the extension's objects are: "For operators:",
 * "For the owner:" and "For triggers:"; the others are everybody's.  An object without comment is
 * nobody's.
 */
static const char *const grants =
	"SELECT pg_catalog.concat('GRANT ', CASE d.classid WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass "
	"THEN pg_catalog.concat('EXECUTE ON ROUTINE ', d.objid::pg_catalog.regprocedure) "
	"ELSE pg_catalog.concat('SELECT ON ', d.objid::pg_catalog.regclass) END) "
	"FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_description t "
	"ON t.classoid = d.classid AND t.objoid = d.objid AND t.objsubid = 0 "
	"LEFT JOIN pg_catalog.pg_class c ON d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND c.oid = d.objid "
	"WHERE d.deptype = 'e' AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.refobjid = $1 "
	"AND (d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass OR c.relkind = 'v') "
	"AND (t.description !~ '^For .*:' OR ($2 AND t.description ~ '^For operators:')) "
	"ORDER BY d.classid, d.objid";

static void
run(const char *command)
{
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run \"%s\"", command);
}

PG_FUNCTION_INFO_V1(ddb_role_setup);

/* (role, operator) */
Datum
ddb_role_setup(PG_FUNCTION_ARGS)
{
	Oid			function = fcinfo->flinfo->fn_oid;
	const char *name;
	const char *role;
	char	   *schema;
	Oid			types[] = {OIDOID, BOOLOID};
	Datum		values[] = {
		ObjectIdGetDatum(getExtensionOfObject(ProcedureRelationId, function)),
		BoolGetDatum(ArgumentIsTrue(fcinfo, 1)),
	};
	SPITupleTable *rows;

	ArgumentRequire(fcinfo, 0, "role");
	name = NameStr(*PG_GETARG_NAME(0));
	role = quote_identifier(name);
	schema = get_namespace_name(get_func_namespace(function));
	if (schema == NULL)
		elog(ERROR, "cache lookup failed for function %u", function);

	/*
	 * A GRANT by anybody else grants nothing, with only a WARNING.  All functions of
	 * the extension have one owner.
	 */
	if (!CompatOwnsFunction(function, GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to grant privileges on ddblock's functions"),
				 errhint("Call ddb_role_setup() as a superuser, or as the owner of the "
						 "extension's functions.")));

	SPI_connect();
	if (OidIsValid(get_role_oid(name, true)))
		ereport(NOTICE,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("role \"%s\" already exists", name)));
	else
		run(psprintf("CREATE ROLE %s NOLOGIN", role));
	run(psprintf("GRANT USAGE ON SCHEMA %s TO %s", quote_identifier(schema), role));
	if (SPI_execute_with_args(grants, lengthof(types), types, values, NULL, true, 0) !=
		SPI_OK_SELECT)
		elog(ERROR, "could not read the extension's objects");
	rows = SPI_tuptable;
	for (uint64 i = 0; i < rows->numvals; i++)
		run(psprintf("%s TO %s", SPI_getvalue(rows->vals[i], rows->tupdesc, 1), role));
	SPI_finish();
	PG_RETURN_VOID();
}
