/*-------------------------------------------------------------------------
 *
 * queue_call.h
 *	  Calls on the queues' table: repeated, and row by row.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_QUEUE_CALL_H
#define DDBLOCK_SESSION_QUEUE_CALL_H

#include "postgres.h"

#include "lock/uuid.h"
#include "queue/queue.h"
#include "session/mailbox.h"

typedef struct QueueReply
{
	dynamo_status status;		/* OK, CONDITION_FAILED, or what was expected */
	char		message[MAILBOX_TEXT_SIZE]; /* of what was expected */
	bool		unsettled;		/* an earlier copy may have been applied */
	int64		now_ms;			/* DynamoDB's time, or a little earlier */
	int			rows;			/* that are left */
	char	   *next;			/* where the next page begins; NULL: no more */
	uint32		next_len;
	char	   *bytes;			/* for QueueReadRow() */
	Size		len;
	Size		offset;
} QueueReply;

/* A row with its texts, UTF-8 and terminated. */
typedef struct QueueRow
{
	queue_row	is;
	char	   *queue;
	char	   *resource;
	char	   *id;
	char	   *error;
	char	   *payload;
} QueueRow;

/* Empty texts are no resource, and so on: all zero but these. */
extern queue_request QueueRequest(queue_kind kind, const char *queue, const char *resource);

/* For a transaction. */
extern void QueueNewUuid(char uuid[UUID_SIZE]);

/*
 * Makes the call, and repeats it while DynamoDB is out of reach or throttles us, until
 * ddblock.retry_timeout has passed.  tail has request->tail_len bytes.  Raises for failures,
 * but for the expected one (DYNAMO_OK: none).  Palloc'd.
 */
extern QueueReply *QueueCall(const queue_request *request, const char *tail,
							 dynamo_status expected);

/* The reply's next row, palloc'd; false: there are no more. */
extern bool QueueReadRow(QueueReply *reply, QueueRow *row);

/*
 * The row of a call that brings one at most: NULL if there is none.
 */
extern QueueRow *QueueCallRow(const queue_request *request, dynamo_status *status);

/*
 * Pages: the next row of all, calling as needed; false: there are no more.  A page goes when the
 * next one is called, and with it its rows, and what the caller has put into its context.
 */
typedef struct QueueScan
{
	queue_request request;
	QueueReply *reply;			/* NULL: not started */
	MemoryContext page;
} QueueScan;

extern bool QueueScanNext(QueueScan *scan, QueueRow *row);

#endif							/* DDBLOCK_SESSION_QUEUE_CALL_H */
