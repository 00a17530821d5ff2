/*-------------------------------------------------------------------------
 *
 * worker_table_call.c
 *	  The calls of sessions that do not go through the lock manager.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "shared/settings.h"
#include "worker/worker.h"

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

/* A purge or a release by force; or the read that comes before a replacement. */
static char *
build_write(dynamo_op op, const MailboxRequest *request, const char *text)
{
	dynamo_shared_write shared = {
		.kind = DYNAMO_SHARED_FORCE_RELEASE,
		.epoch = request->write.expected,
	};
	dynamo_write write = {
		.op = op,
		.name = text,
		.name_len = request->name_len,
		.version = request->write.version,
		.expected = request->write.expected,
		.last_token = WorkerEpochLow(SegmentNow()) - DYNAMO_TOKEN_AGE_US,
		.now_s = WorkerEpochHigh(SegmentNow()) / USECS_PER_SEC,
		.shared = op == DYNAMO_FORCE_RELEASE && request->write.shared ? &shared : NULL,
	};

	return dynamo_build(WorkerTable(), &write);
}

static char *
build(dynamo_op op, const MailboxRequest *request, const char *text)
{
	if (op == DYNAMO_DESCRIBE_TABLE)
		return dynamo_build_describe_table(WorkerTable());
	if (op == DYNAMO_CREATE_TABLE)
		return dynamo_build_create_table(WorkerTable(), &request->creation);
	if (op == DYNAMO_UPDATE_TTL)
		return dynamo_build_update_ttl(WorkerTable());
	if (op == DYNAMO_IDENTIFY)
		return dynamo_build_identify(WorkerTable(), request->write.version);
	if (dynamo_is_page(op))
		return build_scan(request, text);
	return build_write(op, request, text);
}

/*
 * An unusable item is read before it is replaced: what a session knows of it is its digest.  If
 * that is still the same, one write replaces it by a released item, on condition that what was
 * read is still there.  A repeated request finds its own nonce.
 */
typedef struct Replacement
{
	char		version[UUID_SIZE];
	char		digest[DYNAMO_DIGEST_SIZE];
	Size		name_len;
	char		name[DYNAMO_NAME_MAX];
} Replacement;

static Replacement *
note_replacement(const MailboxRequest *request, const char *text)
{
	Replacement *asked = MemoryContextAllocZero(TopMemoryContext, sizeof(Replacement));

	strlcpy(asked->version, request->write.version, sizeof(asked->version));
	strlcpy(asked->digest, request->write.expected, sizeof(asked->digest));
	asked->name_len = request->name_len;
	memcpy(asked->name, text, request->name_len);
	return asked;
}

static void
send_replacement(const WorkerCall *read, const char *json)
{
	const Replacement *asked = read->note;
	int64		now = WorkerEpochHigh(SegmentNow());
	bool		may_fall;
	dynamo_write write = {
		.op = DYNAMO_REPLACE,
		.name = asked->name,
		.name_len = asked->name_len,
		.owner = segment->owner,
		.version = asked->version,
		.lease_ms = ddblock_lease_duration,
		.last_token = dynamo_token_above(json, now, &may_fall),
		.now_s = now / USECS_PER_SEC,
		.replaced = json,
	};
	WorkerCall	call = {
		.op = DYNAMO_REPLACE,
		.body = dynamo_build(WorkerTable(), &write),
		.quiet = true,
		.done = WorkerAnswerTable,
		.session = read->session,
		.id = read->id,
	};

	WorkerPost(&call);
}

/* If another item is there now, the session is shown that. */
static void
replace_read(const WorkerCall *call, const dynamo_reply *reply)
{
	const Replacement *asked = call->note;
	const char *json = reply->status == DYNAMO_OK ? reply->results[0].json : NULL;
	char		digest[DYNAMO_DIGEST_SIZE] = "";

	if (json != NULL)
		(void) dynamo_digest(json, digest, sizeof(digest));
	if (json != NULL && strcmp(digest, asked->digest) == 0)
		send_replacement(call, json);
	else
		WorkerAnswerTable(call, reply);
}

void
WorkerSendTable(lockmgr_session session, const MailboxRequest *request, const char *text)
{
	bool		replaces = request->op == DYNAMO_REPLACE;
	dynamo_op	op = replaces ? DYNAMO_READ : request->op;
	WorkerCall	call = {
		.op = op,
		.body = build(op, request, text),
		.repeat = request->repeat,
		.quiet = true,
		.done = replaces ? replace_read : WorkerAnswerTable,
		.session = session,
		.id = request->seq,
		.note = replaces ? note_replacement(request, text) : NULL,
	};

	WorkerPost(&call);
}
