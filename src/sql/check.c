/*-------------------------------------------------------------------------
 *
 * check.c
 *	  The requests that ddb_check() tries.
 *
 * They go through the worker, and need the IAM actions that sessions' requests need.  None changes a
 * table: each write names an item that does not exist, and has a condition that refuses it.  So
 * nothing is left behind, however the call ends.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "sql/sql.h"

#define CHECK_NAME "ddblock/check"

/* A request about a job that does not exist. */
typedef struct QueueTrial
{
	const char *name;
	queue_kind	kind;
	const char *actions;
	bool		is_refused;
} QueueTrial;

static const QueueTrial queue_trials[] = {
	{"push", QUEUE_PUSH, "dynamodb:PutItem, dynamodb:UpdateItem", true},	/* behind another job */
	{"find", QUEUE_FIND, "dynamodb:Query on index \"ready\"", false},
	{"read_head", QUEUE_READ_HEAD, "dynamodb:GetItem", false},
	{"claim", QUEUE_CLAIM, "dynamodb:UpdateItem", true},
	{"complete", QUEUE_COMPLETE, "dynamodb:UpdateItem", true},
	{"check_gone", QUEUE_CHECK_GONE, "dynamodb:DeleteItem", false},
	{"cancel", QUEUE_CANCEL, "dynamodb:ConditionCheckItem, dynamodb:DeleteItem", true},
	{"list_jobs", QUEUE_LIST_JOBS, "dynamodb:Query", false},
	{"list_all", QUEUE_LIST_ALL, "dynamodb:Scan", false},
};

/* Requests about the tables, and about a lock that does not exist: as in ddb_operations. */
static const dynamo_op table_trials[] = {
	DYNAMO_READ, DYNAMO_RENEW_BATCH, DYNAMO_FORCE_RELEASE, DYNAMO_DELETE, DYNAMO_REPLACE,
	DYNAMO_SCAN, DYNAMO_QUERY, DYNAMO_DESCRIBE_TABLE, DYNAMO_DESCRIBE_TTL,
	DYNAMO_QUEUE_DESCRIBE_TABLE, DYNAMO_QUEUE_DESCRIBE_TTL
};

pg_noreturn static void
raise_accepted(void)
{
	ErrorsState(errmsg("the server at %s ignores the conditions of requests", segment->place.url),
				errdetail("It has accepted what it had to refuse."),
				errhint("Such a server cannot keep locks: change \"ddblock.endpoint_url\"."));
}

static void
try_queue(const QueueTrial *trial, const char *uuid)
{
	queue_request request = QueueRequest(trial->kind, CHECK_NAME, uuid);
	const queue_job job = {0};	/* without id and payload */
	QueueReply *reply;

	request.jobs = request.seq = request.number = request.to = request.token = 1;
	strlcpy(request.uuid, uuid, sizeof(request.uuid));
	request.tail_len = trial->kind == QUEUE_PUSH ? sizeof(job) : 0;
	reply = QueueCall(&request, trial->kind == QUEUE_PUSH ? (const char *) &job : NULL, DYNAMO_OK);
	if (trial->is_refused && reply->is.status == DYNAMO_OK)
		raise_accepted();
}

/* Shows the table, and what is wrong with it.  Raises if it cannot be used. */
static void
show_table(Row *row, dynamo_op op, const dynamo_table_info *table)
{
	const char *units = psprintf("%d read and %d write units", (int) table->read_units,
								 (int) table->write_units);

	if (op == DYNAMO_QUEUE_DESCRIBE_TABLE)
	{
		queue_request again = QueueRequest(QUEUE_DESCRIBE_TABLE, "", "");

		QueueTableCheck(QueueCallRow(&again, NULL));
	}
	else
		(void) ErrorsKeys(ERROR, table);
	RowText(row, "detail", psprintf("%s is %s, %s%s%s%s", Utf8Quiet(table->arn), table->status,
									table->write_units == 0 ? "on-demand" : units,
									table->is_protected ? ", protected from deletion" : "",
									table->replicated ? ", replicas: " : "", table->replicas));
	if (table->read_units == 1 || table->write_units == 1)
		RowText(row, "hint", "A capacity of 1 is for tests: raise it, or switch to on-demand.");
	else if (!table->is_protected)
		RowText(row, "hint", "Enable deletion protection, if the server has it: who deletes the "
				"table deletes all of its fencing tokens or jobs.");
}

/* Shows the owners of a page's items, one in a line. */
static void
show_owners(Row *row, const LockPage *page)
{
	StringInfoData owners;

	initStringInfo(&owners);
	for (int i = 0; i < page->count; i++)
		appendStringInfo(&owners, "%s\n", Utf8Quiet(page->rows[i].item.owner));
	RowText(row, "owners", owners.data);
}

static void
try_table(Row *row, dynamo_op op, const char *uuid)
{
	MailboxRequest request = {.kind = MAILBOX_TABLE,.op = op};
	const char *name = psprintf("%s" CHECK_NAME "/%s", ddblock_lock_prefix, uuid);
	TableReply	reply;

	if (op == DYNAMO_SCAN || dynamo_is_description(op))
		name = "";
	if (op == DYNAMO_QUERY)
		name = psprintf("%s%s", name, ddblock_sort_separator);
	if (dynamo_is_page(op))
		request.scan.limit = 100;
	else
	{
		request.write.is_trial = true;
		strlcpy(request.write.version, uuid, sizeof(request.write.version));
		strlcpy(request.write.expected, uuid, sizeof(request.write.expected));
	}
	request.name_len = strlen(name);
	RowText(row, "detail", dynamo_action(op));
	reply = TableCallReply(&request, name, NULL, DYNAMO_OK, ddblock_retry_timeout);
	if (dynamo_is_page(op))
		show_owners(row, (const LockPage *) reply.bytes);
	else if (dynamo_is_description(op))
	{
		const dynamo_table_info table = reply.answer->table;
		const char *ttl = table.ttl_attribute;

		if (table.status[0] != '\0')
			show_table(row, op, &table);
		else
			RowText(row, "detail", ttl[0] == '\0' ? "off" : psprintf("on attribute \"%s\"", ttl));
		if (ttl[0] != '\0' && strcmp(ttl, "ttl") != 0)
			RowText(row, "hint",
					dynamo_error_words(DYNAMO_VALIDATION, "different AttributeName")->hint);
	}
	else if (reply.answer->result != MAILBOX_CHANGED)
		raise_accepted();
}

PG_FUNCTION_INFO_V1(ddb_check_request);

/* (request): as in queue_trials or table_trials; or "take_over", which sends none */
Datum
ddb_check_request(PG_FUNCTION_ARGS)
{
	WorkerStatus worker;
	const char *name;
	char		uuid[UUID_SIZE];
	Row			row;

	ErrorsRequirePreload();
	ArgumentRequire(fcinfo, 0, "request");
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SegmentReadStatus(&worker);
	SessionNewUuid(uuid);
	RowStart(&row, fcinfo);
	for (int i = 0; i < lengthof(queue_trials); i++)
		if (strcmp(queue_trials[i].name, name) == 0)
		{
			try_queue(&queue_trials[i], uuid);
			RowText(&row, "detail", queue_trials[i].actions);
			return RowResult(&row);
		}
	for (int i = 0; i < lengthof(table_trials); i++)
		if (strcmp(dynamo_op_name(table_trials[i]), name) == 0)
		{
			try_table(&row, table_trials[i], uuid);
			return RowResult(&row);
		}
	if (strcmp(name, "take_over") != 0)
		ErrorsArgument(errmsg("ddb_check() has no request \"%s\"", name));
	RowText(&row, "detail", worker.takes_over ? "by DynamoDB's clock" :
			"not by DynamoDB's clock: a try finds a dead holder's lock busy until this cluster has "
			"watched it for a lease");
	RowText(&row, "hint", worker.takes_over ? "" :
			"Where jobs only try, let them wait for longer than a lease. \"ddblock.clock_takeover\" "
			"is on at Amazon's endpoints, without \"ddblock.ca_file\", unless it is set.");
	return RowResult(&row);
}
