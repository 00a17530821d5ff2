/*-------------------------------------------------------------------------
 *
 * queue.h
 *	  The queue's table: request bodies, replies, and how a job is finished.
 *
 * Knows JSON and the items of the queue's table; knows no sockets, clocks or
 * PostgreSQL.  doc/internals/queues.md describes the items and the conditions.
 *
 * A request is a struct of fixed size and a tail of bytes, and so is each row of
 * a reply: both go through shared memory piece by piece, and contain no pointers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_QUEUE_QUEUE_H
#define DDBLOCK_QUEUE_QUEUE_H

#include "dynamo/dynamo.h"

#define QUEUE_NAME_MAX		64
#define QUEUE_RESOURCE_MAX	900
#define QUEUE_ID_MAX		1000	/* of a dead job: its number and its resource */
#define QUEUE_CALLER_ID_MAX	255
#define QUEUE_ERROR_MAX		1024
#define QUEUE_PAYLOAD_MAX	(256 * 1024)
#define QUEUE_PUSH_MAX		49	/* a transaction has 100 writes: two for each job, and the
								 * head's */
#define QUEUE_PUSH_BYTES	(3 * 1024 * 1024)	/* all payloads of a push */
#define QUEUE_UUID_SIZE		37
#define QUEUE_DIGEST_SIZE	65		/* SHA-256 in hex digits, and its NUL */
#define QUEUE_GUARD_KEY		"lockTable" /* partition and sort key of the GUARD's item */

typedef enum queue_kind
{
	QUEUE_CREATE_TABLE,
	QUEUE_DESCRIBE_TABLE,
	QUEUE_ENABLE_TTL,
	QUEUE_GUARD,				/* the lock table whose locks its jobs are claimed under */
	QUEUE_READ_HEAD,
	QUEUE_READ_JOB,
	QUEUE_READ_DEAD,
	QUEUE_FIND,					/* a page of resources: all, or the due ones */
	QUEUE_LIST_JOBS,			/* a page of a resource's jobs */
	QUEUE_LIST_DEAD,
	QUEUE_LIST_ALL,				/* a page of all jobs in the table: their keys */
	QUEUE_PUSH,
	QUEUE_CLAIM,
	QUEUE_COMPLETE,				/* more jobs wait */
	QUEUE_COMPLETE_LAST,
	QUEUE_FAIL,
	QUEUE_BURY,
	QUEUE_DROP,
	QUEUE_PAUSE,
	QUEUE_RESUME,
	QUEUE_CANCEL,				/* a job that is not the next one */
	QUEUE_CHECK_GONE,			/* a job that is not there: not half written, either */
	QUEUE_DELETE_JOB,
	QUEUE_DELETE_DEAD
} queue_kind;

/* The letters say which kinds use a field. */
typedef struct queue_request
{
	queue_kind	kind;
	int			jobs;			/* PUSH */
	bool		all;			/* FIND: also what is not due; CLAIM: also that, and what is
								 * paused, and it is no attempt */
	bool		last;			/* BURY: no job waits behind it, as far as known */
	int64_t		now_ms;			/* epoch; 0: the worker sets it */
	int64_t		seq;			/* PUSH, DROP: the head's */
	int64_t		number;			/* of the job; LIST_JOBS: from this one */
	int64_t		to;				/* LIST_JOBS: to this one */
	int64_t		token;			/* CLAIM, COMPLETE, FAIL, BURY */
	int64_t		attempts;		/* BURY */
	int64_t		pushed_at;		/* BURY */
	int64_t		delay_ms;		/* CLAIM, FAIL: from now to when it is due again */
	int64_t		dedup_s;		/* PUSH: for so long an id counts */
	int64_t		read_units;		/* CREATE_TABLE; both 0: on-demand */
	int64_t		write_units;
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];	/* GUARD: the lock table's name */
	char		id[QUEUE_ID_MAX + 1];	/* BURY, READ_DEAD, DELETE_DEAD; GUARD: its identity */
	char		error[QUEUE_ERROR_MAX + 1]; /* FAIL, BURY */
	char		uuid[QUEUE_UUID_SIZE];	/* PUSH, CANCEL, BURY: the transaction's token */
	uint32_t	tail_len;		/* bytes after the struct: PUSH: the jobs; BURY: the payload; pages:
								 * where to go on */
} queue_request;

/* A job in the tail of a PUSH: this, then its id (0 bytes: none) and its payload. */
typedef struct queue_job
{
	uint32_t	id_len;
	uint32_t	payload_len;
	char		digest[QUEUE_DIGEST_SIZE];	/* of the payload, if there is an id */
} queue_job;

/* What an item tells; 0 and empty: it has no such attribute. */
typedef struct queue_row
{
	int64_t		seq;			/* of a head */
	int64_t		done;
	int64_t		token;
	int64_t		attempts;
	int64_t		due;			/* epoch milliseconds */
	int64_t		number;			/* of a job, an id, a dead job */
	int64_t		pushed_at;
	bool		paused;
	char		digest[QUEUE_DIGEST_SIZE];	/* of an id: of its job's payload */
	uint32_t	queue_len;		/* these texts follow, in this order */
	uint32_t	resource_len;
	uint32_t	id_len;
	uint32_t	error_len;
	uint32_t	payload_len;
} queue_row;

/* A reply: this, then where the next page begins (0 bytes: no more), then the rows. */
typedef struct queue_reply
{
	dynamo_status status;		/* OK or CONDITION_FAILED; then the rows are what refused */
	int			rows;
	int64_t		now_ms;			/* DynamoDB's time, or a little earlier */
	uint32_t	next_len;
} queue_reply;

/* As which operation it is sent, and counted. */
extern dynamo_op queue_op(queue_kind kind);

/* Of a payload; false if OpenSSL cannot make it. */
extern bool queue_digest(const char *payload, size_t len, char digest[QUEUE_DIGEST_SIZE]);

/* malloc'd; NULL if memory is short, or the tail is not whole. */
extern char *queue_build(const char *table, const queue_request *request, const char *tail);

/*
 * Packs a reply without an error, or with a refusal: malloc'd, of *len bytes; NULL if memory
 * is short.
 */
extern char *queue_pack(const dynamo_reply *reply, int64_t now_ms,
						size_t *len);

/* May the next job be claimed now?  head: or NULL. */
extern bool queue_is_due(const queue_row *head, int64_t now_ms);

/* The time from a claim to the next one, if nobody finishes the job. */
extern int64_t queue_backoff_ms(int64_t attempts);

/* After a claim's reply; head: after the claim, or what refused it, or NULL. */
extern bool queue_is_claimed(dynamo_status status, const queue_row *head, int64_t token);

/* After the reply to a FAIL; false: the job was claimed anew. */
extern bool queue_is_put_back(dynamo_status status, const queue_row *head, int64_t number);

/*
 * Finishing a job.  Its outcome may be unknown several times, and then the same request is
 * sent again: only the condition decides, so a copy that is late does no harm.
 */
typedef enum queue_outcome
{
	QUEUE_AGAIN,				/* send queue_finish_kind() */
	QUEUE_FINISHED,
	QUEUE_REFUSED				/* another token has claimed the job */
} queue_outcome;

typedef struct queue_finish
{
	int64_t		number;
	int64_t		token;
	bool		last;			/* the form to try */
} queue_finish;

extern queue_kind queue_finish_kind(const queue_finish *finish);

/* After a reply; head: what refused it, NULL if there was none. */
extern queue_outcome queue_finish_reply(queue_finish *finish, dynamo_status status,
										const queue_row *head);

#endif							/* DDBLOCK_QUEUE_QUEUE_H */
