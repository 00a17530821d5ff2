/*-------------------------------------------------------------------------
 *
 * worker_replace.c
 *	  Shows a session an item that nobody can use as a lock, or replaces it.
 *
 * Such an item is read first: what a session knows of it is its digest.  If that is still
 * the same, one write replaces it by a released item, on condition that what was read is still
 * there.  A repeated request finds its own nonce.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shared/settings.h"
#include "worker/worker_answer.h"
#include "worker/worker_clock.h"
#include "worker/worker_replace.h"
#include "worker/worker_table.h"

/* What the request said, for when the item has been read. */
typedef struct Asked
{
	char		version[UUID_SIZE];
	char		digest[DYNAMO_DIGEST_SIZE];
	Size		name_len;
	char		name[DYNAMO_NAME_MAX];
} Asked;

static void was_read(const WorkerCall *call, const dynamo_reply *reply);
static void send_replacement(const WorkerCall *read, const Asked *asked, const char *json);

void
WorkerReplace(lockmgr_session session, const MailboxRequest *request, const char *text)
{
	Asked	   *asked = calloc(1, sizeof(Asked));
	dynamo_write read = {.op = DYNAMO_READ,.name = text,.name_len = request->name_len};
	WorkerCall	call = {
		.op = DYNAMO_READ,
		.repeat = request->repeat,
		.quiet = true,
		.done = was_read,
		.session = session,
		.id = request->seq,
		.note = asked,
	};

	if (asked == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	strlcpy(asked->version, request->write.version, sizeof(asked->version));
	strlcpy(asked->digest, request->write.expected, sizeof(asked->digest));
	asked->name_len = request->name_len;
	memcpy(asked->name, text, request->name_len);
	call.body = dynamo_build(WorkerTable(), &read);
	WorkerPost(&call);
}

static void
was_read(const WorkerCall *call, const dynamo_reply *reply)
{
	const Asked *asked = call->note;
	const dynamo_result *result = &reply->results[0];
	char		digest[DYNAMO_DIGEST_SIZE];

	if (reply->status != DYNAMO_OK)
	{
		WorkerAnswerTable(call, reply);
		return;
	}
	if (result->json == NULL)
	{
		WorkerAnswerChanged(call, result);
		return;
	}
	dynamo_digest(result->json, digest);
	if (strcmp(digest, asked->digest) == 0)
		send_replacement(call, asked, result->json);
	else
		WorkerAnswerUnusable(call, result);
}

static void
send_replacement(const WorkerCall *read, const Asked *asked, const char *json)
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
