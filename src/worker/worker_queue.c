/*-------------------------------------------------------------------------
 *
 * worker_queue.c
 *	  Sessions' calls on the queues' table.
 *
 * A job is larger than a slot.  So a session hands its request over piece by piece,
 * and fetches the reply in the same way.  What a worker has of a request is lost with
 * it: the session then begins anew, which is as if the outcome were unknown.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "shared/settings.h"
#include "worker/worker_answer.h"
#include "worker/worker_clock.h"
#include "worker/worker_queue.h"
#include "worker/worker_queue_post.h"

#define REQUEST_MAX (sizeof(queue_request) + QUEUE_PUSH_BYTES + \
					 QUEUE_PUSH_MAX * (sizeof(queue_job) + QUEUE_ID_MAX))

/* Of a slot: the request that comes in, or the reply that goes out. */
typedef struct Buffer
{
	uint32		generation;		/* of the session */
	bool		is_reply;
	char	   *bytes;			/* malloc'd; NULL: none */
	uint32		len;
	uint32		total;
} Buffer;

static Buffer *buffers;

static bool take_piece(Buffer *buffer, lockmgr_session session, const MailboxRequest *request,
					   const char *text);
static void send_request(Buffer *buffer, lockmgr_session session, const MailboxRequest *request);
static void replied(const WorkerCall *call, const dynamo_reply *reply);
static void keep_reply(Buffer *buffer, uint32 generation, char *bytes, Size len);
static void answer_piece(lockmgr_session session, uint64 seq, const Buffer *buffer,
						 uint32 offset);
static void answer_result(lockmgr_session session, uint64 seq, MailboxResult result);
static void answer_failure(lockmgr_session session, uint64 seq, dynamo_op op,
						   dynamo_status status, const char *message);
static void clear(Buffer *buffer);

void
WorkerQueueInit(void)
{
	buffers = MemoryContextAllocZero(TopMemoryContext, segment->max_sessions * sizeof(Buffer));
}

void
WorkerQueueAsk(lockmgr_session session, const MailboxRequest *request, const char *text)
{
	Buffer	   *buffer = &buffers[session.slot];
	uint32		offset = request->queue.offset;

	if (offset == 0)
		clear(buffer);
	if (offset > 0 && (buffer->bytes == NULL || buffer->generation != session.generation ||
					   buffer->is_reply != (request->kind == MAILBOX_QUEUE_MORE)))
		answer_failure(session, request->seq, request->op, DYNAMO_UNKNOWN,
					   "the ddblock worker was started anew meanwhile");
	else if (request->kind == MAILBOX_QUEUE_MORE)
		answer_piece(session, request->seq, buffer, offset);
	else if (!take_piece(buffer, session, request, text))
		answer_result(session, request->seq, MAILBOX_NO_MEMORY);
	else if (buffer->len < buffer->total)
		answer_result(session, request->seq, MAILBOX_MORE);
	else
		send_request(buffer, session, request);
}

/* False if memory is short. */
static bool
take_piece(Buffer *buffer, lockmgr_session session, const MailboxRequest *request,
		   const char *text)
{
	uint32		total = request->queue.total;

	if (buffer->bytes == NULL)
	{
		if (total < sizeof(queue_request) || total > REQUEST_MAX)
			return false;
		buffer->bytes = malloc(total);
		if (buffer->bytes == NULL)
			return false;
		buffer->generation = session.generation;
		buffer->is_reply = false;
		buffer->len = 0;
		buffer->total = total;
	}
	/* A piece may come twice: from the worker before this one, too. */
	if (request->queue.offset > buffer->len ||
		request->queue.offset + request->data_len > buffer->total)
		return false;
	memcpy(buffer->bytes + request->queue.offset, text, request->data_len);
	buffer->len = request->queue.offset + request->data_len;
	return true;
}

/* The request is whole. */
static void
send_request(Buffer *buffer, lockmgr_session session, const MailboxRequest *request)
{
	queue_request asked;
	WorkerCall	call = {
		.repeat = request->repeat,
		.quiet = true,
		.done = replied,
		.session = session,
		.id = request->seq,
	};

	memcpy(&asked, buffer->bytes, sizeof(asked));
	asked.tail_len = buffer->total - sizeof(asked);
	if (asked.now_ms == 0)
		asked.now_ms = WorkerEpochLow(SegmentNow()) / 1000;
	call.op = queue_op(asked.kind);
	call.body = queue_build(ddblock_queue_table, &asked, buffer->bytes + sizeof(asked));
	clear(buffer);
	WorkerQueuePost(&call);
}

static void
replied(const WorkerCall *call, const dynamo_reply *reply)
{
	Buffer	   *buffer = &buffers[call->session.slot];
	Size		len;
	char	   *bytes;

	WorkerQueueEnded();
	if (reply->status != DYNAMO_OK && reply->status != DYNAMO_CONDITION_FAILED)
	{
		answer_failure(call->session, call->id, call->op, reply->status, reply->message);
		return;
	}
	bytes = queue_pack(reply, WorkerEpochLow(SegmentNow()) / 1000, &len);
	if (bytes == NULL)
	{
		answer_failure(call->session, call->id, call->op, DYNAMO_UNKNOWN,
					   "the ddblock worker had no memory for the reply");
		return;
	}
	/* Else the buffer may be its next call's. */
	if (!WorkerQueueIsWanted(call))
	{
		free(bytes);
		return;
	}
	keep_reply(buffer, call->session.generation, bytes, len);
	answer_piece(call->session, call->id, buffer, 0);
}

static void
keep_reply(Buffer *buffer, uint32 generation, char *bytes, Size len)
{
	clear(buffer);
	buffer->generation = generation;
	buffer->is_reply = true;
	buffer->bytes = bytes;
	buffer->len = buffer->total = len;
}

static void
answer_piece(lockmgr_session session, uint64 seq, const Buffer *buffer, uint32 offset)
{
	MailboxAnswer *out = WorkerBeginAnswer(session, seq, LOCKMGR_NO_HOLD);

	if (out == NULL)
		return;
	out->result = MAILBOX_REPLY;
	out->piece.total = buffer->total;
	out->piece.len = Min(buffer->total - Min(offset, buffer->total),
						 sizeof(out->piece.data));
	memcpy(out->piece.data, buffer->bytes + Min(offset, buffer->total), out->piece.len);
	mailbox_end_answer(&segment_mailbox, session, seq);
}

static void
answer_result(lockmgr_session session, uint64 seq, MailboxResult result)
{
	MailboxAnswer *out = WorkerBeginAnswer(session, seq, LOCKMGR_NO_HOLD);

	if (out == NULL)
		return;
	out->result = result;
	mailbox_end_answer(&segment_mailbox, session, seq);
}

static void
answer_failure(lockmgr_session session, uint64 seq, dynamo_op op, dynamo_status status,
			   const char *message)
{
	MailboxAnswer *out = WorkerBeginAnswer(session, seq, LOCKMGR_NO_HOLD);

	if (out == NULL)
		return;
	WorkerFillFailure(out, MAILBOX_FAILED, op, status, message);
	mailbox_end_answer(&segment_mailbox, session, seq);
}

void
WorkerQueueForget(uint32 slot)
{
	if (slot < segment->max_sessions && buffers[slot].bytes != NULL &&
		buffers[slot].generation != shared_read(&segment_slots[slot].words.generation))
		clear(&buffers[slot]);
}

static void
clear(Buffer *buffer)
{
	free(buffer->bytes);
	memset(buffer, 0, sizeof(*buffer));
}
