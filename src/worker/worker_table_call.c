/*-------------------------------------------------------------------------
 *
 * worker_table_call.c
 *	  Builds the calls of sessions that do not go through the lock manager.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "worker/worker_clock.h"
#include "worker/worker_table.h"
#include "worker/worker_table_call.h"

static char *build(const MailboxRequest *request);
static char *build_scan(const MailboxRequest *request);
static char *build_write(const MailboxRequest *request);

void
WorkerSendTable(lockmgr_session session, const MailboxRequest *request, WorkerDone done)
{
	WorkerCall	call = {
		.op = request->op,
		.body = build(request),
		.repeat = request->repeat,
		.quiet = true,
		.done = done,
		.session = session,
		.id = request->seq,
	};

	WorkerPost(&call);
}

static char *
build(const MailboxRequest *request)
{
	if (request->op == DYNAMO_DESCRIBE_TABLE)
		return dynamo_build_describe_table(WorkerTable());
	if (request->op == DYNAMO_CREATE_TABLE)
		return dynamo_build_create_table(WorkerTable(), request->read_units,
										 request->write_units);
	if (request->op == DYNAMO_UPDATE_TTL)
		return dynamo_build_update_ttl(WorkerTable());
	if (request->op == DYNAMO_SCAN)
		return build_scan(request);
	return build_write(request);
}

static char *
build_scan(const MailboxRequest *request)
{
	const char *start = (const char *) request->data;
	dynamo_scan scan = {
		.prefix = request->name,
		.prefix_len = request->name_len,
		.released_only = request->released_only,
		.limit = request->limit,
	};

	if (request->has_data)
	{
		scan.after = start;
		scan.after_len = request->start_len;
		scan.after_sort = start + request->start_len;
		scan.after_sort_len = request->data_len - request->start_len;
	}
	return dynamo_build_scan(WorkerTable(), &scan);
}

/* A purge or a release by force. */
static char *
build_write(const MailboxRequest *request)
{
	dynamo_write write = {
		.op = request->op,
		.name = request->name,
		.name_len = request->name_len,
		.version = request->version,
		.expected = request->expected,
		.now_s = WorkerEpochHigh(SegmentNow()) / USECS_PER_SEC,
	};

	return dynamo_build(WorkerTable(), &write);
}
