/*-------------------------------------------------------------------------
 *
 * queue_call.c
 *	  Calls on the queues' table, and their replies, row by row.
 *
 * A call whose outcome is unknown is repeated as it is.  This is safe because each write has a
 * condition that refuses a second copy, or does no harm if it is applied twice: see "Writes" in
 * doc/internals/queues.md.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "session/session.h"

/*
 * DynamoDB remembers the token of a transaction for 10 minutes, and applies the transaction only
 * once in that time.  So a call is repeated for 4 minutes at most.  If a repeat is refused after 9
 * minutes all the same, DynamoDB may have forgotten the token, and an earlier copy may have been
 * applied.
 */
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

static const char *
take(QueueReply *reply, Size len)
{
	const char *taken = reply->bytes + reply->offset;

	if (len > reply->len - reply->offset)
		elog(ERROR, "the ddblock worker's reply is not whole");
	reply->offset += len;
	return taken;
}

static char *
take_text(QueueReply *reply, uint32 len)
{
	return pnstrdup(take(reply, len), len);
}

QueueReply *
QueueCall(const queue_request *request, const char *tail, dynamo_status expected)
{
	uint32		tail_len = tail != NULL ? request->tail_len : 0;
	char	   *bytes = palloc(sizeof(*request) + tail_len);
	MailboxRequest call = {
		.kind = MAILBOX_QUEUE,
		.op = queue_op(request->kind),
		.queue.total = sizeof(*request) + tail_len,
	};
	int64		started = SegmentNow();
	QueueReply *reply = palloc0(sizeof(QueueReply));
	TableReply	got;

	memcpy(bytes, request, sizeof(*request));
	if (tail_len > 0)
		memcpy(bytes + sizeof(*request), tail, tail_len);
	got = TableCallReply(&call, NULL, bytes, expected, Min(ddblock_retry_timeout, REPEAT_MAX_MS));
	pfree(bytes);
	reply->unsettled = got.unsettled;
	if (got.bytes == NULL)		/* it is the expected failure */
	{
		reply->is.status = got.answer->failure.status;
		strlcpy(reply->message, got.answer->failure.message, sizeof(reply->message));
		return reply;
	}
	reply->bytes = got.bytes;
	reply->len = got.len;
	memcpy(&reply->is, take(reply, sizeof(reply->is)), sizeof(reply->is));
	if (reply->is.next_len > 0)
		reply->next = take_text(reply, reply->is.next_len);
	/*
	 * The last copy may have waited in the worker, so that DynamoDB got it after it had forgotten
	 * the token.
	 */
	if (got.unsettled && call.op == DYNAMO_QUEUE_TRANSACT &&
		reply->is.status == DYNAMO_CONDITION_FAILED && SegmentNow() - started > TOKEN_KNOWN_US)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("the outcome of a transaction in DynamoDB is unknown"),
				 errdetail("It was repeated, and refused, after DynamoDB may have forgotten its "
						   "token.")));
	return reply;
}

static void
read_row(QueueReply *reply, QueueRow *row)
{
	memcpy(&row->is, take(reply, sizeof(row->is)), sizeof(row->is));
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
	{
		char	   *next = NULL;

		if (scan->reply != NULL)
		{
			/* The key at which the next page begins survives the reset in the parent context. */
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
	MemoryContextSwitchTo(old);
	return found;
}
