/*-------------------------------------------------------------------------
 *
 * lock_table_create.c
 *	  ddb_lock_table_create(): creates the lock table, ready for use.
 *
 * Each step succeeds if its work is done already.  So the function can be called again after a
 * failure, and on an existing table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sql/sql.h"

PG_FUNCTION_INFO_V1(ddb_lock_table_create);
Datum
ddb_lock_table_create(PG_FUNCTION_ARGS)
{
	MailboxRequest request = {.op = DYNAMO_CREATE_TABLE};
	const MailboxAnswer *answer;
	dynamo_table_info table;
	bool		created;
	int64		started;

	ErrorsRequirePreload();
	request.creation = ArgumentCreation(fcinfo);
	answer = TableCall(&request, NULL, NULL, DYNAMO_TABLE_IN_USE, NULL);
	created = answer->result == MAILBOX_DONE;

	request.op = DYNAMO_DESCRIBE_TABLE;
	started = SegmentNow();
	for (;;)
	{
		answer = TableCall(&request, NULL, NULL, SegmentNow() - started < TABLE_APPEARANCE_US ?
						   DYNAMO_TABLE_MISSING : DYNAMO_OK, NULL);
		if (answer->result == MAILBOX_DESCRIBED &&
			TableIsActive(answer->table.status, "lock table", ddblock_lock_table))
			break;
		TableSleep(TABLE_POLL_US);
	}
	table = answer->table;

	if (!created)
	{
		(void) ErrorsKeys(ERROR, &table);
		ereport(NOTICE,
				(errmsg("lock table \"%s\" already exists", ddblock_lock_table)));
	}

	/*
	 * Enable time to live, which does no harm while no item has the attribute.  A table with strong
	 * consistency in several Regions (table.strong) cannot have it.
	 */
	if (!table.strong)
	{
		request.op = DYNAMO_UPDATE_TTL;
		answer = TableCall(&request, NULL, NULL, DYNAMO_VALIDATION, NULL);
		if (answer->result != MAILBOX_DONE &&
			!TableTtlAccept(answer->failure.message, "lock table", ddblock_lock_table))
			ErrorsAnswer(answer, NULL);
	}
	if (request.creation.protect && !table.is_protected)
		TableTellUnprotected("lock table", ddblock_lock_table);
	PG_RETURN_VOID();
}
