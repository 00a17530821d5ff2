/*-------------------------------------------------------------------------
 *
 * keep_tokens.c
 *	  Keeps the tokens in ddb_fences and ddb_queue_done from falling when rows come from elsewhere.
 *
 * The function ddb_keep_tokens() is a trigger of both tables, enabled ALWAYS.  Rows come from dumps
 * that are restored (COPY), and by logical replication.
 *
 * If a row is inserted whose resource has a row already, that row gets the higher of both tokens,
 * and there is no new row.  Example: the table has token 7, and the dump has 5: 7 stays.  So a
 * restore into a table with rows, and the first copy of a subscription, do not fail because of
 * duplicates.
 *
 * Replicated changes lower no token and delete no row, and a replicated TRUNCATE fails.  In other
 * sessions, the tables' owner may update and delete, to remove tokens that nobody needs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "sql/sql.h"

#define COLUMNS_MOST 5

PG_FUNCTION_INFO_V1(ddb_keep_extension);

/*
 * Called before statements that may drop the extension.  Does nothing, but the call loads the
 * library, whose hook checks the statement (drop_extension.c).
 */
Datum
ddb_keep_extension(PG_FUNCTION_ARGS)
{
	PG_RETURN_NULL();
}

/*
 * KeepExecute() is writing.  Then the trigger merges no rows: our statements use ON CONFLICT, and
 * need the row that it returns.
 */
static bool own_write = false;

const char *
KeepTable(FunctionCallInfo fcinfo, const char *name)
{
	Oid			function = fcinfo->flinfo->fn_oid;
	char	   *schema = get_namespace_name(get_func_namespace(function));

	/* The schema was dropped meanwhile.  An unqualified name could find a temporary table. */
	if (schema == NULL)
		elog(ERROR, "cache lookup failed for function %u", function);
	return quote_qualified_identifier(schema, name);
}

void
KeepNotRecorded(const char *table, const char *what)
{
	ErrorsState(errmsg("table \"%s\" does not record %s", table, what),
				errhint("Remove the rules, and the triggers that are not ddblock's own, from the "
						"table."));
}

int
KeepExecute(const char *command, int count, Oid *types, Datum *values, const char *nulls)
{
	int			result = 0;

	own_write = true;
	PG_TRY();
	{
		result = SPI_execute_with_args(command, count, types, values, nulls, false, 0);
	}
	PG_FINALLY();
	{
		own_write = false;
	}
	PG_END_TRY();
	return result;
}

static bool
is_fences(const TriggerData *trigger)
{
	return SPI_fnumber(RelationGetDescr(trigger->tg_relation), "shared_token") > 0;
}

/*
 * Executes a command, and returns how many rows it has processed.  As for foreign keys, it runs as
 * the table's owner: a role that restores a dump may have no privilege but INSERT.
 */
static uint64
run(const TriggerData *trigger, const char *command, int count, Oid *types, Datum *values,
	const char *nulls)
{
	Oid			user;
	int			context;
	uint64		rows;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(trigger->tg_relation->rd_rel->relowner,
						   context | SECURITY_LOCAL_USERID_CHANGE);
	SPI_connect();
	if (SPI_execute_with_args(command, count, types, values, nulls, false, 0) < 0)
		elog(ERROR, "could not execute: %s", command);
	rows = SPI_processed;
	SPI_finish();
	SetUserIdAndSecContext(user, context);
	return rows;
}

static const char *
table_of(const TriggerData *trigger)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(trigger->tg_relation)),
									  RelationGetRelationName(trigger->tg_relation));
}

/*
 * Merges the new row into the row of the same resource; false: there is none.  In ddb_queue_done,
 * the job comes from the row with the higher token; rows with equal tokens are of the same claim.
 */
static bool
merge(const TriggerData *trigger)
{
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	const char *command = is_fences(trigger) ?
		"UPDATE %s SET token = GREATEST(token, $2), shared_token = GREATEST(shared_token, $3) "
		"WHERE resource OPERATOR(pg_catalog.=) $1" :
		"UPDATE %s SET number = CASE WHEN $5 OPERATOR(pg_catalog.>) token THEN $3 ELSE number END, "
		"pushed_at = CASE WHEN $5 OPERATOR(pg_catalog.>) token THEN $4 ELSE pushed_at END, "
		"token = GREATEST(token, $5) "
		"WHERE queue OPERATOR(pg_catalog.=) $1 AND resource OPERATOR(pg_catalog.=) $2";
	Oid			types[COLUMNS_MOST];
	Datum		values[COLUMNS_MOST];
	char		nulls[COLUMNS_MOST];
	int			count = Min(desc->natts, COLUMNS_MOST);

	for (int i = 0; i < count; i++)
	{
		bool		is_null;

		types[i] = SPI_gettypeid(desc, i + 1);
		values[i] = SPI_getbinval(trigger->tg_trigtuple, desc, i + 1, &is_null);
		nulls[i] = is_null ? 'n' : ' ';
	}
	return run(trigger, psprintf(command, table_of(trigger)), count, types, values, nulls) > 0;
}

static int64
column(const TriggerData *trigger, HeapTuple row, const char *name)
{
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	bool		is_null;
	Datum		value = SPI_getbinval(row, desc, SPI_fnumber(desc, name), &is_null);

	return is_null ? 0 : DatumGetInt64(value);
}

/*
 * For a replicated UPDATE.  Of ddb_fences, returns the new row with the higher of both tokens.  Of
 * ddb_queue_done, returns the new row, or NULL (the old row stays) if its token is lower.
 */
static HeapTuple
raise_tokens(const TriggerData *trigger)
{
	static const char *const names[] = {"token", "shared_token"};
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	HeapTuple	row = trigger->tg_newtuple;

	if (!is_fences(trigger))
		return column(trigger, row, "token") < column(trigger, trigger->tg_trigtuple, "token") ?
			NULL : row;
	for (int i = 0; i < lengthof(names); i++)
	{
		int			number = SPI_fnumber(desc, names[i]);
		Datum		highest = Int64GetDatum(Max(column(trigger, row, names[i]),
												column(trigger, trigger->tg_trigtuple, names[i])));
		bool		is_null = false;

		row = heap_modify_tuple_by_cols(row, desc, 1, &number, &highest, &is_null);
	}
	return row;
}

/* For a replicated TRUNCATE.  A trigger cannot keep the rows, so it raises if there are any. */
static void
refuse_to_empty(const TriggerData *trigger)
{
	if (run(trigger, psprintf("SELECT FROM %s LIMIT 1", table_of(trigger)), 0, NULL, NULL, NULL) > 0)
		ErrorsState(errmsg("a replicated TRUNCATE would empty table \"%s\"",
						   RelationGetRelationName(trigger->tg_relation)),
					errdetail("Without its rows, stale tokens would be accepted later."),
					errhint("If the rows are no longer needed, run TRUNCATE %s here, too. Leave "
							"the table out of the publication, or TRUNCATE out of what that "
							"publishes.",
							table_of(trigger)));
}

PG_FUNCTION_INFO_V1(ddb_keep_tokens);
Datum
ddb_keep_tokens(PG_FUNCTION_ARGS)
{
	const TriggerData *trigger = (TriggerData *) fcinfo->context;
	bool		replicated = SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA;
	HeapTuple	row;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called as a trigger", "ddb_keep_tokens")));
	row = trigger->tg_trigtuple;
	if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		row = own_write || !merge(trigger) ? row : NULL;
	else if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
		row = replicated ? raise_tokens(trigger) : trigger->tg_newtuple;
	else if (replicated && TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		row = NULL;
	else if (replicated)
		refuse_to_empty(trigger);
	return PointerGetDatum(row);
}
