/*-------------------------------------------------------------------------
 *
 * worker_queue.c
 *	  Sessions' calls on the queues' table, and replies in pieces: see queue/queue_pieces.c.
 *
 * Calls on the queues' table use a quarter of the connections at most, and the lock manager's calls
 * for sessions use half.  So a quarter is left for renewals, which must not wait behind large jobs.
 *
 * A call for which no connection is left waits here, first in, first out.  It is not sent if its
 * session has ended or has cancelled it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/ilist.h"
#include "utils/memutils.h"

#include "worker/worker.h"

typedef struct Waiter
{
	dlist_node	node;
	WorkerCall	call;
} Waiter;

static dlist_head waiters = DLIST_STATIC_INIT(waiters);
static int	in_flight = 0;

static queue_pieces *buffers;	/* [max_sessions], by slot */

void
WorkerQueueInit(void)
{
	buffers = MemoryContextAllocZero(TopMemoryContext,
									 segment->max_sessions * sizeof(queue_pieces));
}

/*
 * Does the call's session want the reply, because it has neither ended nor cancelled the call?  The
 * worker's own calls have no session (generation 0), and are always wanted.
 */
static bool
is_wanted(const WorkerCall *call)
{
	const mailbox_slot *words = &segment_slots[call->session.slot].words;

	return call->session.generation == 0 ||
		(shared_read(&words->generation) == call->session.generation &&
		 shared_read(&words->cancelled_seq) < call->id);
}

static void
post_waiters(void)
{
	while (!dlist_is_empty(&waiters) && in_flight < Max(ddblock_max_connections / 4, 1))
	{
		Waiter	   *waiter = dlist_container(Waiter, node, dlist_pop_head_node(&waiters));

		if (is_wanted(&waiter->call))
		{
			in_flight++;
			WorkerPost(&waiter->call);
		}
		else
			free(waiter->call.body);
		pfree(waiter);
	}
}

void
WorkerQueuePost(const WorkerCall *call)
{
	Waiter	   *waiter = MemoryContextAlloc(TopMemoryContext, sizeof(Waiter));

	waiter->call = *call;
	dlist_push_tail(&waiters, &waiter->node);
	post_waiters();
}

void
WorkerQueueEnded(void)
{
	in_flight--;
	post_waiters();
}

/*
 * Answers with a piece of the reply.  False: this worker does not have the reply.  The last piece
 * empties the buffer, because the session asks for that piece only once.
 */
static bool
answer_piece(lockmgr_session session, uint64 seq, queue_pieces *pieces, uint32 offset)
{
	uint32		len = sizeof(((MailboxAnswer *) NULL)->piece.data);
	const char *bytes = queue_pieces_give(pieces, session.generation, offset, &len);
	MailboxAnswer *out = bytes != NULL ? WorkerBeginAnswer(session, seq, LOCKMGR_NO_HOLD) : NULL;

	if (out != NULL)
	{
		out->result = MAILBOX_REPLY;
		out->piece.total = pieces->total;
		out->piece.len = len;
		memcpy(out->piece.data, bytes, len);
		mailbox_end_answer(&segment_mailbox, session, seq);
	}
	if (bytes != NULL && offset + len == pieces->total)
		queue_pieces_clear(pieces);
	return bytes != NULL;
}

void
WorkerExpectPieces(lockmgr_session session, uint64 seq)
{
	queue_pieces_expect(&buffers[session.slot], session.generation, seq);
}

void
WorkerAnswerPieces(const WorkerCall *call, char *bytes, Size len)
{
	queue_pieces *pieces = &buffers[call->session.slot];

	if (bytes == NULL)
		WorkerAnswerFailure(call->session, call->id, MAILBOX_FAILED, call->op, DYNAMO_UNKNOWN,
							"the ddblock worker had no memory for the reply", NULL);
	else if (!queue_pieces_reply(pieces, call->session.generation, call->id, bytes, len))
		free(bytes);
	else if (!is_wanted(call))
		queue_pieces_clear(pieces);
	else
		(void) answer_piece(call->session, call->id, pieces, 0);
}

static void
replied(const WorkerCall *call, const dynamo_reply *reply)
{
	Size		len = 0;

	WorkerQueueEnded();
	if (dynamo_is_failure(reply->status))
		WorkerAnswerFailure(call->session, call->id, MAILBOX_FAILED, call->op, reply->status,
							reply->message, NULL);
	else
	{
		char	   *bytes = queue_pack(reply, WorkerEpochLow(SegmentNow()) / 1000, &len);

		WorkerAnswerPieces(call, bytes, len);
	}
}

void
WorkerQueueAsk(lockmgr_session session, const MailboxRequest *request, const char *text)
{
	queue_pieces *pieces = &buffers[session.slot];
	uint32		offset = request->queue.offset;
	queue_taken taken = QUEUE_PIECES_LOST;

	if (request->kind == MAILBOX_QUEUE)
		taken = queue_pieces_take(pieces, session.generation, request->queue.total, offset, text,
								  request->data_len);
	else if (answer_piece(session, request->seq, pieces, offset))
		return;
	switch (taken)
	{
		case QUEUE_PIECES_LOST:
			WorkerAnswerFailure(session, request->seq, MAILBOX_FAILED, request->op, DYNAMO_UNKNOWN,
								"the ddblock worker was started anew meanwhile", NULL);
			break;
		case QUEUE_PIECES_REFUSED:
			WorkerAnswerResult(session, request->seq, MAILBOX_NO_MEMORY);
			break;
		case QUEUE_PIECES_MORE:
			WorkerAnswerResult(session, request->seq, MAILBOX_MORE);
			break;
		case QUEUE_PIECES_WHOLE:
			{
				WorkerCall	call = {
					.repeat = request->repeat,
					.quiet = true,
					.done = replied,
					.session = session,
					.id = request->seq,
				};
				queue_kind	kind;

				call.body = queue_pieces_build(pieces, request->seq, ddblock_queue_table,
											   WorkerEpochLow(SegmentNow()) / 1000, &kind);
				call.op = queue_op(kind);
				WorkerQueuePost(&call);
				break;
			}
	}
}

void
WorkerQueueForget(uint32 slot)
{
	if (slot < segment->max_sessions &&
		buffers[slot].generation != shared_read(&segment_slots[slot].words.generation))
		queue_pieces_clear(&buffers[slot]);
}
