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

static char *build(const MailboxRequest *request, const char *text);
static char *build_scan(const MailboxRequest *request, const char *text);
static char *build_write(const MailboxRequest *request, const char *text);

void
WorkerSendTable(lockmgr_session session, const MailboxRequest *request, const char *text,
				WorkerDone done)
{
	WorkerCall	call = {
		.op = request->op,
		.body = build(request, text),
		.repeat = request->repeat,
		.quiet = true,
		.done = done,
		.session = session,
		.id = request->seq,
	};

	WorkerPost(&call);
}

static char *
build(const MailboxRequest *request, const char *text)
{
	if (request->op == DYNAMO_DESCRIBE_TABLE)
		return dynamo_build_describe_table(WorkerTable());
	if (request->op == DYNAMO_CREATE_TABLE)
		return dynamo_build_create_table(WorkerTable(), request->capacity.read_units,
										 request->capacity.write_units);
	if (request->op == DYNAMO_UPDATE_TTL)
		return dynamo_build_update_ttl(WorkerTable());
	if (request->op == DYNAMO_IDENTIFY)
		return dynamo_build_identify(WorkerTable(), request->write.version);
	if (dynamo_is_page(request->op))
		return build_scan(request, text);
	return build_write(request, text);
}

static char *
build_scan(const MailboxRequest *request, const char *text)
{
	const char *start = text + request->name_len;
	uint16		start_len = request->scan.start_len;
	dynamo_scan scan = {
		.prefix = text,
		.prefix_len = request->name_len,
		.released_only = request->scan.released_only,
		.limit = request->scan.limit,
		.after = start_len > 0 ? start : NULL,
		.after_len = start_len,
		.after_sort = start + start_len,
		.after_sort_len = request->data_len - start_len,
	};

	return dynamo_build_scan(WorkerTable(), &scan);
}

/* A purge or a release by force. */
static char *
build_write(const MailboxRequest *request, const char *text)
{
	dynamo_shared_write shared = {
		.kind = DYNAMO_SHARED_FORCE_RELEASE,
		.epoch = request->write.expected,
	};
	dynamo_write write = {
		.op = request->op,
		.name = text,
		.name_len = request->name_len,
		.version = request->write.version,
		.expected = request->write.expected,
		.last_token = WorkerEpochLow(SegmentNow()) - DYNAMO_TOKEN_AGE_US,
		.now_s = WorkerEpochHigh(SegmentNow()) / USECS_PER_SEC,
		.shared = request->op == DYNAMO_FORCE_RELEASE && request->write.shared ? &shared : NULL,
	};

	return dynamo_build(WorkerTable(), &write);
}
