/*-------------------------------------------------------------------------
 *
 * queue_call.c
 *	  Calls on the queues' table: repeated, and row by row.
 *
 * Every write has a condition that refuses a second copy, or does no harm twice: see "Writes"
 * in doc/internals/queues.md.  So a call whose outcome is unknown is repeated as it is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "session/session.h"
#include "shared/errors.h"
#include "shared/settings.h"

/* DynamoDB knows a transaction's token for 10 minutes; a copy may be late. */
#define REPEAT_MAX_MS (4 * 60 * 1000)
#define TOKEN_KNOWN_US (9 * 60 * USECS_PER_SEC)

queue_request
QueueRequest(queue_kind kind, const char *queue, const char *resource)
{
	queue_request request;

	memset(&request, 0, sizeof(request));
	request.kind = kind;
	strlcpy(request.queue, queue, sizeof(request.queue));
	strlcpy(request.resource, resource, sizeof(request.resource));
	return request;
}

static bool
is_final(const MailboxAnswer *answer, int64 started, int64 pause)
{
	return answer->result != MAILBOX_FAILED || !dynamo_is_transient(answer->failure.status) ||
		SegmentNow() + pause - started >
		(int64) Min(ddblock_retry_timeout, REPEAT_MAX_MS) * 1000;
}

/* An earlier copy of a write may have been applied, whatever became of the last one. */
pg_noreturn static void
fail(const MailboxAnswer *answer, bool unsettled)
{
	MailboxAnswer unknown;

	if (!unsettled)
		ErrorsAnswer(answer, NULL);
	unknown = *answer;
	if (answer->result != MAILBOX_FAILED)
		memset(&unknown.failure, 0, sizeof(unknown.failure));
	unknown.result = MAILBOX_FAILED;
	unknown.failure.status = DYNAMO_UNKNOWN;
	ErrorsAnswer(&unknown, NULL);
}

/* All pieces of the request; the answer to the last one, or to the one that failed. */
static const MailboxAnswer *
call_for_reply(const char *bytes, uint32 total, dynamo_op op, bool repeat)
{
	MailboxRequest request = {.kind = MAILBOX_QUEUE,.op = op,.repeat = repeat};
	const MailboxAnswer *answer;

	request.queue.total = total;
	do
	{
		request.data_len = Min(total - request.queue.offset, MAILBOX_REQUEST_TEXT);
		answer = MailboxCall(&request, NULL, bytes + request.queue.offset, NULL);
		request.queue.offset += request.data_len;
	}
	while (answer->result == MAILBOX_MORE && request.queue.offset < total);
	return answer;
}

static bool
fetch_rest(char *bytes, uint32 total, uint32 have)
{
	while (have < total)
	{
		MailboxRequest request = {
			.kind = MAILBOX_QUEUE_MORE,
			.op = DYNAMO_QUEUE_READ,
			.queue.offset = have,
		};
		const MailboxAnswer *answer = MailboxCall(&request, NULL, NULL, NULL);

		if (answer->result != MAILBOX_REPLY || answer->piece.len == 0 ||
			answer->piece.len > total - have)
			return false;
		memcpy(bytes + have, answer->piece.data, answer->piece.len);
		have += answer->piece.len;
	}
	return true;
}

static char *
take_text(QueueReply *reply, uint32 len)
{
	char	   *text;

	if (len > reply->len - reply->offset)
		elog(ERROR, "the ddblock worker's reply is not whole");
	text = pnstrdup(reply->bytes + reply->offset, len);
	reply->offset += len;
	return text;
}

/* NULL: the worker has lost the rest of it. */
static QueueReply *
take_reply(const MailboxAnswer *answer)
{
	uint32		total = answer->piece.total;
	uint32		have = answer->piece.len;
	char	   *bytes = palloc(Max(total, sizeof(queue_reply)));
	QueueReply *reply = palloc0(sizeof(QueueReply));

	memcpy(bytes, answer->piece.data, have);
	if (!fetch_rest(bytes, total, have))
		return NULL;
	memcpy(&reply->is, bytes, sizeof(reply->is));
	reply->bytes = bytes;
	reply->len = total;
	reply->offset = sizeof(reply->is);
	if (reply->is.next_len > 0)
		reply->next = take_text(reply, reply->is.next_len);
	return reply;
}

static QueueReply *
expected_failure(const MailboxAnswer *answer)
{
	QueueReply *reply = palloc0(sizeof(QueueReply));

	reply->is.status = answer->failure.status;
	strlcpy(reply->message, answer->failure.message, sizeof(reply->message));
	return reply;
}

QueueReply *
QueueCall(const queue_request *request, const char *tail, dynamo_status expected)
{
	uint32		total = sizeof(*request) + (tail != NULL ? request->tail_len : 0);
	char	   *bytes = palloc(total);
	int64		started = SegmentNow();
	unsigned	failures = 0;
	bool		unsettled = false;
	QueueReply *reply = NULL;

	SessionAttach();
	memcpy(bytes, request, sizeof(*request));
	if (tail != NULL)
		memcpy(bytes + sizeof(*request), tail, request->tail_len);
	for (;;)
	{
		uint32		starts = shared_read(&segment->worker_starts);
		const MailboxAnswer *answer = call_for_reply(bytes, total, queue_op(request->kind),
												failures > 0);
		int64		pause;

		/* A worker that did not live to answer may have sent it, too. */
		unsettled |= shared_read(&segment->worker_starts) != starts;
		if (answer->result == MAILBOX_REPLY)
			reply = take_reply(answer);
		else if (answer->result == MAILBOX_FAILED && answer->failure.status == expected)
			reply = expected_failure(answer);
		if (reply != NULL)
			break;
		pause = TablePause(answer, ++failures);
		/* A new table of that name may be a global one. */
		if (answer->result == MAILBOX_FAILED && answer->failure.status == DYNAMO_TABLE_MISSING)
			shared_write(&segment->queue_table_checked, 0);
		if (answer->result != MAILBOX_REPLY && is_final(answer, started, pause))
			fail(answer, unsettled && dynamo_is_queue_write(queue_op(request->kind)));
		unsettled |= answer->result == MAILBOX_REPLY ||
			answer->failure.status == DYNAMO_UNKNOWN;
		WaitingTellTrouble(started, SegmentNow(),
						   answer->result == MAILBOX_FAILED ? answer->failure.message : NULL);
		TableSleep(pause);
	}
	SegmentEarn(failures > 0);
	/* The repeat may have waited in the worker. */
	if (unsettled && queue_op(request->kind) == DYNAMO_QUEUE_TRANSACT &&
		reply->is.status == DYNAMO_CONDITION_FAILED && SegmentNow() - started > TOKEN_KNOWN_US)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("the outcome of a transaction in DynamoDB is unknown"),
				 errdetail("It was repeated, and refused, after DynamoDB may have forgotten its "
						   "token.")));
	reply->unsettled = unsettled;
	pfree(bytes);
	return reply;
}

static void
read_row(QueueReply *reply, QueueRow *row)
{
	if (reply->len - reply->offset < sizeof(row->is))
		elog(ERROR, "the ddblock worker's reply is not whole");
	memcpy(&row->is, reply->bytes + reply->offset, sizeof(row->is));
	reply->offset += sizeof(row->is);
	row->queue = take_text(reply, row->is.queue_len);
	row->resource = take_text(reply, row->is.resource_len);
	row->id = take_text(reply, row->is.id_len);
	row->error = take_text(reply, row->is.error_len);
	row->payload = take_text(reply, row->is.payload_len);
	if (row->is.riders > (reply->len - reply->offset) / sizeof(row->is))
		elog(ERROR, "the ddblock worker's reply is not whole");
	row->riders = palloc(row->is.riders * sizeof(QueueRow));
	for (uint32 i = 0; i < row->is.riders; i++)
		read_row(reply, &row->riders[i]);
}

bool
QueueReadRow(QueueReply *reply, QueueRow *row)
{
	if (reply->is.rows == 0)
		return false;
	reply->is.rows--;
	read_row(reply, row);
	return true;
}

uint32
QueueTaken(const QueueRow *head)
{
	uint32		taken = 0;

	for (uint32 i = 0; i < head->is.riders; i++)
		taken += queue_ride_size(head->riders[i].is.id_len, head->riders[i].is.payload_len);
	return taken;
}

QueueRow *
QueueCallRow(const queue_request *request, dynamo_status *status)
{
	QueueReply *reply = QueueCall(request, NULL, DYNAMO_OK);
	QueueRow   *row = palloc0(sizeof(QueueRow));

	if (status != NULL)
		*status = reply->is.status;
	return QueueReadRow(reply, row) ? row : NULL;
}

/* In the page's context, which has nothing of the page before any more. */
static void
next_page(QueueScan *scan)
{
	char	   *next = NULL;

	if (scan->reply != NULL)
	{
		scan->request.tail_len = scan->reply->is.next_len;
		next = memcpy(MemoryContextAlloc(MemoryContextGetParent(scan->page),
										 scan->request.tail_len),
					  scan->reply->next, scan->request.tail_len);
		scan->reply = NULL;
		MemoryContextReset(scan->page);
	}
	scan->reply = QueueCall(&scan->request, next, DYNAMO_OK);
	if (next != NULL)
		pfree(next);
}

bool
QueueScanNext(QueueScan *scan, QueueRow *row)
{
	MemoryContext old;
	bool		found;

	if (scan->page == NULL)
		scan->page = AllocSetContextCreate(CurrentMemoryContext, "ddblock page of a queue",
										   ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(scan->page);
	while (!(found = scan->reply != NULL && QueueReadRow(scan->reply, row)) &&
		   (scan->reply == NULL || scan->reply->next != NULL))
		next_page(scan);
	MemoryContextSwitchTo(old);
	return found;
}
