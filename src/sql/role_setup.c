/*-------------------------------------------------------------------------
 *
 * role_setup.c
 *	  ddb_role_setup(): a role with the privileges to use ddblock.
 *
 * The commands run with the caller's privileges.  Their names are qualified with
 * the schema of the extension; those of types are pg_catalog's, by the function's
 * own search_path.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "sql/arguments.h"

PG_FUNCTION_INFO_V1(ddb_role_setup);

typedef struct Privilege
{
	const char *name;
	const char *arguments;		/* of the function or procedure */
	bool		view;			/* a function, and the view on it */
	bool		operator;		/* for operators only */
} Privilege;

static const Privilege privileges[] = {
	{.name = "ddb_lock_release",.arguments = "text, boolean"},
	{.name = "ddb_lock_release_detached",.arguments = "text, bigint, boolean"},
	{.name = "ddb_lock_acquire_all",.arguments = "text[], interval, interval, interval"},
	{.name = "ddb_lock_try_acquire_all",.arguments = "text[], interval, interval"},
	{.name = "ddb_xact_lock_acquire_all",.arguments = "text[], interval, interval"},
	{.name = "ddb_xact_lock_try_acquire_all",.arguments = "text[], interval"},
	{.name = "ddb_lock_acquire",.arguments = "text, interval, interval, bytea, jsonb, boolean, boolean, interval, interval"},
	{.name = "ddb_lock_try_acquire",.arguments = "text, interval, bytea, jsonb, boolean, boolean, interval, interval"},
	{.name = "ddb_xact_lock_acquire",.arguments = "text, interval, interval, bytea, jsonb, boolean, boolean, interval"},
	{.name = "ddb_xact_lock_try_acquire",.arguments = "text, interval, bytea, jsonb, boolean, boolean, interval"},
	{.name = "ddb_lock_join",.arguments = "text, bigint"},
	{.name = "ddb_lock_detach",.arguments = "text, interval"},
	{.name = "ddb_lock_outlive",.arguments = "text"},
	{.name = "ddb_lock_acquire_shared",.arguments = "text, interval, interval, interval"},
	{.name = "ddb_lock_try_acquire_shared",.arguments = "text, interval, interval"},
	{.name = "ddb_xact_lock_acquire_shared",.arguments = "text, interval, interval"},
	{.name = "ddb_xact_lock_try_acquire_shared",.arguments = "text, interval"},
	{.name = "ddb_lock_release_shared",.arguments = "text"},
	{.name = "ddb_semaphore_acquire",.arguments = "text, integer, integer, interval, interval, interval"},
	{.name = "ddb_semaphore_try_acquire",.arguments = "text, integer, integer, interval, interval"},
	{.name = "ddb_xact_semaphore_acquire",.arguments = "text, integer, integer, interval, interval"},
	{.name = "ddb_xact_semaphore_try_acquire",.arguments = "text, integer, integer, interval"},
	{.name = "ddb_semaphore_release",.arguments = "text"},
	{.name = "ddb_lock_release_all",.arguments = ""},
	{.name = "ddb_lock_renew",.arguments = "text, interval, bytea"},
	{.name = "ddb_lock_token",.arguments = "text"},
	{.name = "ddb_lock_require",.arguments = "text"},
	{.name = "ddb_lock_remaining",.arguments = "text"},
	{.name = "ddb_lock_monitor",.arguments = "text, interval, interval"},
	{.name = "ddb_lock_release_nowait",.arguments = "text"},
	{.name = "ddb_lock_await",.arguments = "text, interval, interval, bytea, jsonb, boolean, boolean, interval, interval"},
	{.name = "ddb_lock_await_all",.arguments = "text[], interval, interval, interval"},
	{.name = "ddb_lock_await_shared",.arguments = "text, interval, interval, interval"},
	{.name = "ddb_semaphore_await",.arguments = "text, integer, integer, interval, interval, interval"},
	{.name = "ddb_lock_await_end",.arguments = "text, interval, interval"},
	{.name = "ddb_fence_check",.arguments = "text, bigint"},
	{.name = "ddb_fence_check_shared",.arguments = "text, bigint"},
	{.name = "ddb_lock_info",.arguments = "text"},
	{.name = "ddb_leadership_held",.arguments = "text"},
	{.name = "ddb_leadership_require",.arguments = "text"},
	{.name = "ddb_leaderships",.arguments = "",.view = true},
	{.name = "ddb_locks",.arguments = "",.view = true},
	{.name = "ddb_stats",.arguments = "",.view = true,.operator = true},
	{.name = "ddb_operations",.arguments = "",.view = true,.operator = true},
	{.name = "ddb_status",.arguments = "",.view = true,.operator = true},
	{.name = "ddb_queue_push",.arguments = "text, text, jsonb, text, interval"},
	{.name = "ddb_queue_push_all",.arguments = "text, text, jsonb[], text[], interval"},
	{.name = "ddb_queue_push_on_commit",.arguments = "text, text, jsonb, text"},
	{.name = "ddb_queue_await",.arguments = "text, interval, text[]"},
	{.name = "ddb_queue_claim",.arguments = "text, interval, interval, text[], integer"},
	{.name = "ddb_queue_complete",.arguments = "text, text, bigint"},
	{.name = "ddb_queue_fail",.arguments = "text, text, bigint, text, interval"},
	{.name = "ddb_queue_mark_done",.arguments = "text, text, bigint"},
	{.name = "ddb_queue_depths",.arguments = "text, text"},
	{.name = "ddb_queue_summary",.arguments = "text"},
	{.name = "ddb_queue_list",.arguments = "text, text"},
	{.name = "ddb_queue_list_dead",.arguments = "text"},
	{.name = "ddb_outbox_send",.arguments = "integer",.operator = true},
	{.name = "ddb_queue_mark_done",.arguments = "text, text, bigint, timestamptz, bigint",.operator = true},
	{.name = "ddb_queue_redrive",.arguments = "text, text",.operator = true},
	{.name = "ddb_queue_cancel",.arguments = "text, text, bigint",.operator = true},
	{.name = "ddb_queue_pause",.arguments = "text, text",.operator = true},
	{.name = "ddb_queue_resume",.arguments = "text, text",.operator = true},
	{.name = "ddb_queue_drop",.arguments = "text, text",.operator = true},
	{.name = "ddb_queue_purge",.arguments = "",.operator = true},
	{.name = "ddb_lock_list",.arguments = "text, interval",.operator = true},
	{.name = "ddb_lock_purge",.arguments = "interval",.operator = true},
	{.name = "ddb_lock_force_release",.arguments = "text, text",.operator = true},
	{.name = "ddb_leadership_resign",.arguments = "text, interval, interval",.operator = true},
};

static const char *role_argument(FunctionCallInfo fcinfo, int number);
static void require_owner(Oid function);
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
	require_owner(fcinfo->flinfo->fn_oid);

	SPI_connect();
	if (OidIsValid(get_role_oid(name, true)))
		ereport(NOTICE,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("role \"%s\" already exists", name)));
	else
		run(psprintf("CREATE ROLE %s NOLOGIN", role));
	run(psprintf("GRANT USAGE ON SCHEMA %s TO %s", quote_identifier(schema), role));
	for (int i = 0; i < lengthof(privileges); i++)
	{
		const char *object = quote_qualified_identifier(schema, privileges[i].name);

		if (privileges[i].operator && !operator)
			continue;
		run(psprintf("GRANT EXECUTE ON ROUTINE %s(%s) TO %s", object,
					 privileges[i].arguments, role));
		if (privileges[i].view)
			run(psprintf("GRANT SELECT ON %s TO %s", object, role));
	}
	SPI_finish();
	PG_RETURN_VOID();
}

static const char *
role_argument(FunctionCallInfo fcinfo, int number)
{
	ArgumentRequire(fcinfo, number, "role");
	return NameStr(*PG_GETARG_NAME(number));
}

/*
 * A GRANT by anybody else grants nothing, with only a WARNING.  All functions of
 * the extension have one owner.
 */
static void
require_owner(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	if (!has_privs_of_role(GetUserId(), owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to grant privileges on ddblock's functions"),
				 errhint("Call ddb_role_setup() as a superuser, or as the owner of the "
						 "extension's functions.")));
}

static void
run(const char *command)
{
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run \"%s\"", command);
}
