/*-------------------------------------------------------------------------
 *
 * worker_direct_call.c
 *	  The calls of sessions that do not go through the lock manager.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

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

/* Builds a purge, a release by force, a read, or a write that ddb_check() tries. */
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
		.owner = segment->owner,
		.lease_ms = ddblock_lease_duration,
		.replaced = "{}",
		.version = request->write.version,
		.expected = request->write.expected,
		.last_token = WorkerEpochLow(SegmentNow()) - DYNAMO_TOKEN_AGE_US,
		.now_s = WorkerEpochHigh(SegmentNow()) / USECS_PER_SEC,
		.shared = op == DYNAMO_FORCE_RELEASE && request->write.shared ? &shared : NULL,
	};

	if (op == DYNAMO_RENEW_BATCH)
	{
		write.op = DYNAMO_RENEW;
		return dynamo_build_batch(WorkerTable(), &write, 1);
	}
	return dynamo_build(WorkerTable(), &write);
}

static char *
build(dynamo_op op, const MailboxRequest *request, const char *text)
{
	const dynamo_table queues = {.name = ddblock_queue_table};

	if (dynamo_is_description(op))
		return dynamo_build_describe_table(dynamo_is_queue(op) ? &queues : WorkerTable());
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
 * Answers with a page of the lock table.  The lock manager sees each item of the page, also if no
 * session waits for the page any more: it learns the versions of other clusters' items, and says
 * which holders are dead.
 */
static void
page_read(const WorkerCall *call, const dynamo_reply *reply)
{
	const dynamo_page *found = &reply->page;
	const char *next = found->next != NULL ? found->next : "";
	const char *next_sort = found->next_sort != NULL ? found->next_sort : "";
	int64		now = SegmentNow();
	Size		len = offsetof(LockPage, rows) + found->count * sizeof(LockRow);
	LockPage   *page;

	if (reply->status != DYNAMO_OK)
	{
		WorkerAnswerTable(call, reply);
		return;
	}
	page = calloc(1, len);
	if (page == NULL)
	{
		WorkerAnswerPieces(call, NULL, 0);
		return;
	}
	page->epoch_us = WorkerEpochLow(now);
	page->next_len = strlen(next);
	page->next_sort_len = strlen(next_sort);
	memcpy(page->next, next, page->next_len);
	memcpy(page->next + page->next_len, next_sort, page->next_sort_len);
	page->count = found->count;
	for (int i = 0; i < found->count; i++)
	{
		const dynamo_row *from = &found->rows[i];
		LockRow    *row = &page->rows[i];
		const char *unusable;

		strlcpy(row->name, from->name, sizeof(row->name));
		row->item = WorkerItem(&from->item);
		row->mode = lockmgr_mode(from->shared);
		row->permits = from->shared != NULL ? from->shared->total : 0;
		row->dead = lockmgr_observe(worker_lockmgr, call->posted, now, from->name,
									strlen(from->name), &from->item, from->shared);
		unusable = lockmgr_unusable(worker_lockmgr, now, &from->item, from->shared);
		strlcpy(row->unusable, unusable != NULL ? unusable : "", sizeof(row->unusable));
	}
	WorkerAnswerPieces(call, (char *) page, len);
}

/*
 * A REPLACE request of a session, which becomes two calls.  The session knows the unusable item
 * only by its digest, so the worker reads the item first.  If the digest is still the same, one
 * write replaces the item with a released one, on condition that what was read is still there.
 *
 * A session may repeat its request because it does not know the outcome.  If the first copy was
 * applied, the read shows an item whose version is the nonce of the request.
 */
typedef struct Replacement
{
	char		version[UUID_SIZE];
	char		digest[DYNAMO_DIGEST_SIZE];
	Size		name_len;
	char		name[DYNAMO_NAME_MAX];
} Replacement;

/*
 * Replaces the item that was read, if it is the one that the session has seen.  If not, the answer
 * shows the session what is there now.
 */
static void
replace_read(const WorkerCall *read, const dynamo_reply *reply)
{
	const Replacement *asked = read->note;
	const char *json = reply->status == DYNAMO_OK ? reply->results[0].json : NULL;
	char		digest[DYNAMO_DIGEST_SIZE] = "";

	if (json != NULL)
		(void) dynamo_digest(json, digest, sizeof(digest));
	if (json == NULL || strcmp(digest, asked->digest) != 0)
		WorkerAnswerTable(read, reply);
	else
	{
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
}

void
WorkerSendTable(lockmgr_session session, const MailboxRequest *request, const char *text)
{
	WorkerCall	call = {
		.op = request->op,
		.repeat = request->repeat,
		.quiet = true,
		.done = WorkerAnswerTable,
		.session = session,
		.id = request->seq,
	};

	if (dynamo_is_page(call.op))
	{
		WorkerExpectPieces(session, request->seq);
		call.done = page_read;
	}
	if (call.op == DYNAMO_REPLACE && !request->write.is_trial)
	{
		Replacement *asked = MemoryContextAllocZero(TopMemoryContext, sizeof(Replacement));

		strlcpy(asked->version, request->write.version, sizeof(asked->version));
		strlcpy(asked->digest, request->write.expected, sizeof(asked->digest));
		asked->name_len = request->name_len;
		memcpy(asked->name, text, request->name_len);
		call.op = DYNAMO_READ;
		call.done = replace_read;
		call.note = asked;
	}
	call.body = build(call.op, request, text);
	WorkerPost(&call);
}
