/*-------------------------------------------------------------------------
 *
 * queue.h
 *	  The queues: requests, replies, and the states of jobs, claims and waits.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_QUEUE_QUEUE_H
#define DDBLOCK_QUEUE_QUEUE_H

#include <stdbool.h>

#include "dynamo/dynamo.h"
#include "lock/shared_word.h"

/* ----------------------------------------------------------------
 * queue: The queue's table: request bodies, replies, and how a job is finished.
 *
 * Knows JSON and the items of the queue's table; knows no sockets, clocks or
 * PostgreSQL.  doc/internals/queues.md describes the items and the conditions.
 *
 * A request is a struct of fixed size and a tail of bytes, and so is each row of
 * a reply: both go through shared memory piece by piece, and contain no pointers.
 * ----------------------------------------------------------------
 */

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
	QUEUE_READ_FLOOR,			/* above which numbers begin, of resources without a head */
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
	QUEUE_CANCEL_RIDER,			/* ... and rides on the head */
	QUEUE_CHECK_GONE,			/* a job that is not there: not half written, either */
	QUEUE_RAISE_FLOOR,
	QUEUE_DELETE_HEAD,			/* after the floor was raised; no number was given since */
	QUEUE_DELETE_JOB,
	QUEUE_DELETE_DEAD
} queue_kind;

/* The letters say which kinds use a field. */
typedef struct queue_request
{
	queue_kind	kind;
	int			jobs;			/* PUSH: how many; DROP: how many ride on the head */
	bool		all;			/* FIND: also what is not due; CLAIM: also that, and what is
								 * paused, and it is no attempt */
	bool		last;			/* BURY: no job waits behind it, as far as known */
	bool		first;			/* PUSH: there is no head, and seq is the floor */
	bool		rides;			/* PUSH: the jobs ride on the head; BURY: this one did */
	bool		stays;			/* COMPLETE: the resource does not go behind others in the index */
	int64_t		now_ms;			/* epoch; 0: the worker sets it */
	int64_t		seq;			/* PUSH, DROP, DELETE_HEAD: the head's; RAISE_FLOOR: the floor */
	int64_t		number;			/* of the job; LIST_JOBS: from this one; RAISE_FLOOR: to this one */
	int64_t		to;				/* LIST_JOBS: to this one */
	int64_t		token;			/* CLAIM, COMPLETE, FAIL, BURY */
	int64_t		attempts;		/* before this one: BURY; CLAIM: as far as known */
	int64_t		pushed_at;		/* BURY */
	int64_t		delay_ms;		/* CLAIM, FAIL: from now to when it is due again; RAISE_FLOOR: to
								 * when the floor counts */
	int64_t		dedup_s;		/* PUSH: for so long an id counts */
	dynamo_creation creation;	/* CREATE_TABLE */
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];	/* GUARD: the lock table's name */
	char		id[QUEUE_ID_MAX + 1];	/* BURY, READ_DEAD, DELETE_DEAD; GUARD: its identity */
	char		error[QUEUE_ERROR_MAX + 1]; /* FAIL, BURY */
	char		uuid[QUEUE_UUID_SIZE];	/* PUSH, CANCEL, BURY: the transaction's token */
	uint32_t	tail_len;		/* bytes after the struct: PUSH: the jobs; BURY: the payload; DROP: the
								 * numbers of jobs, int64_t; pages: where to go on */
} queue_request;

/* A job in the tail of a PUSH: this, then its id (0 bytes: none) and its payload. */
typedef struct queue_job
{
	uint32_t	id_len;
	uint32_t	payload_len;
	char		digest[QUEUE_DIGEST_SIZE];	/* of the payload (dynamo_digest()), if there is an id */
} queue_job;

/* What an item tells; 0 and empty: it has no such attribute. */
typedef struct queue_row
{
	int64_t		seq;			/* of a head; the floor, which counts from "due" on */
	int64_t		done;
	int64_t		token;
	int64_t		attempts;
	int64_t		due;			/* epoch milliseconds; of a claimed job: again */
	int64_t		turn;			/* ... since when the resource has its place in the index */
	int64_t		number;			/* of a job, an id, a dead job */
	int64_t		pushed_at;
	bool		paused;
	bool		is_protected;	/* a table, from deletion */
	char		digest[QUEUE_DIGEST_SIZE];	/* of an id: of its job's payload */
	uint32_t	queue_len;		/* these texts follow, in this order */
	uint32_t	resource_len;
	uint32_t	id_len;
	uint32_t	error_len;
	uint32_t	payload_len;
	uint32_t	riders;			/* then the jobs that ride on this head, each as a row, in any order */
} queue_row;

/* A reply: this, then where the next page begins (0 bytes: no more), then the rows. */
typedef struct queue_reply
{
	dynamo_status status;		/* OK or CONDITION_FAILED; then the rows are what refused */
	int			rows;
	int64_t		now_ms;			/* DynamoDB's time, or a little earlier */
	uint32_t	next_len;
} queue_reply;

/* ----------------------------------------------------------------
 * queue_request.c: Request bodies.
 * ----------------------------------------------------------------
 */

/* As which operation it is sent, and counted. */
extern dynamo_op queue_op(queue_kind kind);

/* malloc'd; NULL if memory is short, or the tail is not whole. */
extern char *queue_build(const char *table, const queue_request *request, const char *tail);

/* ----------------------------------------------------------------
 * queue_reply.c: Replies, packed for the way through shared memory.
 * ----------------------------------------------------------------
 */

/*
 * Packs a reply without an error, or with a refusal: malloc'd, of *len bytes; NULL if memory
 * is short.
 */
extern char *queue_pack(const dynamo_reply *reply, int64_t now_ms,
						size_t *len);

/* The head that refused a write of it, without its texts; false if there was none. */
extern bool queue_refusing_head(const dynamo_reply *reply, queue_row *head);

/* ----------------------------------------------------------------
 * queue_outcome.c: What a reply or a refusal means for a job.
 * ----------------------------------------------------------------
 */

/*
 * Whether jobs of this size may ride on the head, beside others that together have the size "taken".
 * Each write of a head costs one write unit for each kilobyte of it.  queue_ride_size() is the size of one job.
 */
extern bool queue_may_ride(uint32_t taken, size_t size);
extern uint32_t queue_ride_size(size_t id_len, size_t payload_len);

/* May the next job be claimed now?  head: or NULL. */
extern bool queue_is_due(const queue_row *head, int64_t now_ms);

/* Does the head say nothing but its number?  Its last claim had a token below this one. */
extern bool queue_is_spent(const queue_row *head, int64_t token);

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

/* ----------------------------------------------------------------
 * queue_finish.c: Jobs whose sessions have committed, and how the worker finishes them.
 *
 * A session reserves a place and fills it while it can still fail, and passes it on when its
 * transaction has committed.  The place stays the worker's until the outcome is known, over any number
 * of workers.
 *
 * The places are in shared memory, as the host says.
 * ----------------------------------------------------------------
 */

#define QUEUE_NO_PLACE UINT32_MAX

typedef enum queue_place_state
{
	QUEUE_PLACE_FREE,
	QUEUE_PLACE_RESERVED,		/* the session's that reserved it */
	QUEUE_PLACE_READY			/* the worker's */
} queue_place_state;

typedef struct queue_place
{
	shared32	state;
	int64_t		token;
	int64_t		number;
	bool		last;			/* no job waited behind it when it was claimed */
	bool		rides;			/* it has no item of its own */
	int64_t		stays_until;	/* by the cluster's clock: then its resource goes behind others */
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];
} queue_place;

typedef queue_place *(*queue_place_at) (void *arg, uint32_t index);

/* Is it the worker's?  If so, all of it can be read. */
extern bool queue_place_is_ready(queue_place *place);

/* A free place, looked for from "first" on, so that sessions do not meet; QUEUE_NO_PLACE: none. */
extern uint32_t queue_place_reserve(queue_place_at at, void *arg, uint32_t first, uint32_t count);
extern void queue_place_free(queue_place *place);

/* It becomes the worker's, and may be another job's at once: *copy is what it was. */
extern void queue_place_pass(queue_place *place, queue_place *copy);

/* What the worker knows of a place. */
typedef struct queue_note
{
	bool		known;			/* the place is ours, and the rest is set */
	bool		in_flight;
	int64_t		next;			/* when to send it (again) */
	unsigned	failures;
	unsigned	refusals;		/* the first one is answered in the other form at once */
	queue_finish finish;
} queue_note;

/* The worker's side. */
typedef struct queue_finisher
{
	void	   *arg;
	uint32_t	count;			/* of places */
	queue_note *notes;			/* [count] */
	uint32_t	unfinished;
	shared32   *news;			/* a place has become the worker's */
	queue_place_at place;

	/*
	 * Sends the write; queue_finisher_reply() follows.  index: QUEUE_NO_PLACE for a deletion, whose
	 * outcome does not matter.
	 */
	void		(*send) (void *arg, uint32_t index, const queue_request *request, bool repeat);

	/* It could not be finished yet, so many times: how long to wait? */
	int64_t		(*later) (void *arg, uint32_t index, unsigned failures, const dynamo_reply *reply);

	/*
	 * The outcome is known: the session's hold ends, while the place is still the job's.  more: jobs
	 * have come behind it since it was claimed.
	 */
	void		(*ended) (void *arg, uint32_t index, queue_outcome outcome, bool more);
} queue_finisher;

/* Returns when to call it again, if there are no news before. */
extern int64_t queue_finisher_run(queue_finisher *me, int64_t now);
extern void queue_finisher_reply(queue_finisher *me, uint32_t index, int64_t now,
								 const dynamo_reply *reply);
extern bool queue_finisher_is_idle(const queue_finisher *me);

/* ----------------------------------------------------------------
 * queue_claim.c: A claim's states, and what transactions and savepoints do to them.
 *
 * A job is completed when the transaction that completed it has committed.  A claim ends with the
 * (sub)transaction that made it, if that is rolled back: its caller may never have seen the job.
 *
 * claims							 completes
 * no claim ---------------> of a transaction ---------------> of a transaction,
 * ^	 ^						   |  ^ COMMIT: of none			 completed
 * |	 |	rolled back			   |  |							   |	|
 * |	 +-------------------------+  +----------------------------+	|
 * |									 completion rolled back			|
 * +-----------------------------------------------------------------+
 * COMMIT: the worker has it
 * ----------------------------------------------------------------
 */

typedef struct queue_claim
{
	int64_t		number;
	int64_t		pushed_at;		/* epoch milliseconds; 0 until its item is read, or has none */
	int64_t		token;			/* 0: it has no lock yet */
	bool		last;			/* no job waited behind it */
	bool		rides;			/* it has no item of its own */
	int64_t		stays_until;	/* by the cluster's clock: then its resource goes behind others */
	int			claimed_level;	/* of the transaction that claimed it; 0: it has committed */
	int			finish_level;	/* of the one that completed it; 0: none */
	queue_place *place;			/* then: reserved for the completion */
} queue_claim;

typedef enum queue_fate
{
	QUEUE_CLAIM_STAYS,
	QUEUE_CLAIM_ENDS,			/* and the lock with it */
	QUEUE_CLAIM_VOID,			/* it has no lock any more: only the note ends */
	QUEUE_CLAIM_PASSES			/* the worker completes the job */
} queue_fate;

/* level: of nesting; 1 is the transaction itself. */
extern queue_claim queue_claim_begin(int level);

/* The head after the claim, which had this delay: the oldest job is the session's. */
extern void queue_claim_take(queue_claim *claim, const queue_row *head, int64_t delay_ms,
							 int64_t now);

/* Will be completed.  The place is reserved. */
extern void queue_claim_complete(queue_claim *claim, int level, queue_place *place,
								 const char *queue, const char *resource);

/* The (sub)transaction of that level ends.  is_void: the claim's lock is given up or lost. */
extern queue_fate queue_claim_end(queue_claim *claim, int level, bool committed, bool is_void);

/* ----------------------------------------------------------------
 * queue_hint.c: Resources of queues that may have a job: what the sessions of a cluster and its worker
 * tell each other, in shared memory.
 * ----------------------------------------------------------------
 */

#define QUEUE_HINTS 64

/* How often the next job has been claimed is not known. */
#define QUEUE_ATTEMPTS_UNKNOWN (-1)

typedef enum queue_hint_state
{
	QUEUE_HINT_FREE,
	QUEUE_HINT_CHANGES,			/* a process writes or takes it */
	QUEUE_HINT_READY
} queue_hint_state;

typedef struct queue_hint
{
	shared32	state;
	shared64	since;
	int64_t		attempts;
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];
} queue_hint;

/* Neither waits nor fails; perhaps there is no room.  hints: [QUEUE_HINTS] */
extern void queue_hint_add(queue_hint *hints, int64_t now, const char *queue, const char *resource,
						   int64_t attempts);

/* Is there one for this queue? */
extern bool queue_hint_exists(queue_hint *hints, int64_t now, const char *queue);

/* Is a hint for this resource not for this session? */
typedef bool (*queue_hint_skip) (const char *queue, const char *resource);

/*
 * Takes the oldest hint for one of these resources (the last one is NULL), or for any if they
 * are NULL.  False: there is none.  skip may be NULL.
 */
extern bool queue_hint_take(queue_hint *hints, int64_t now, const char *queue,
							char *const *resources, queue_hint_skip skip, int64_t *attempts,
							char resource[QUEUE_RESOURCE_MAX + 1]);

/* ----------------------------------------------------------------
 * queue_memory.c: The last numbers of heads, as this cluster has seen them: what a push guesses.
 *
 * In shared memory, without a lock.  A guess may be a number that the head has had: the condition of the
 * push refuses it.  It must not be one that the head is still to have, for a late copy of the push
 * could be applied then; so a number is combined with its key, and another resource's is no number.
 * Resources displace each other, if too many may have the same places.
 * ----------------------------------------------------------------
 */

#define QUEUE_MEMORY 4096

typedef struct queue_memory
{
	shared64	key;			/* a hash of queue and resource; 0: nothing is remembered */
	shared64	seq;			/* XOR the key */
	shared32	taken;			/* by the jobs that ride on the head */
} queue_memory;

/* memory: [QUEUE_MEMORY].  seq 0: forgets it, since a push should look at the head. */
extern void queue_memory_note(queue_memory *memory, const char *queue, const char *resource,
							  int64_t seq, uint32_t taken);
extern bool queue_memory_guess(queue_memory *memory, const char *queue, const char *resource,
							   int64_t *seq, uint32_t *taken);

/* ----------------------------------------------------------------
 * queue_pieces.c: A session's call in pieces: what the worker has of it.
 *
 * A job is larger than a slot, and so is a page of locks.  So a session hands its request over
 * piece by piece, and fetches the reply in the same way.  Each session has one buffer: for the
 * request that comes in, then for the reply that goes out.
 * ----------------------------------------------------------------
 */

typedef struct queue_pieces
{
	uint32_t	generation;		/* of the session; 0: the buffer is empty */
	uint64_t	sent;			/* the call whose reply is to come; 0: none */
	bool		is_reply;
	char	   *bytes;			/* malloc'd; NULL: none */
	uint32_t	len;
	uint32_t	total;
} queue_pieces;

typedef enum queue_taken
{
	QUEUE_PIECES_LOST,			/* a worker before this one has had the pieces before it */
	QUEUE_PIECES_REFUSED,		/* it does not fit, or memory is short */
	QUEUE_PIECES_MORE,			/* there are more to come */
	QUEUE_PIECES_WHOLE
} queue_taken;

/* A piece of a request.  The first one begins a new call, whatever became of the last one. */
extern queue_taken queue_pieces_take(queue_pieces *pieces, uint32_t generation, uint32_t total,
									 uint32_t offset, const char *bytes, uint32_t len);

/*
 * The body of a whole request, malloc'd, or NULL if memory is short.  seq: the call's number; now_ms:
 * the time, if the request has none.
 */
extern char *queue_pieces_build(queue_pieces *pieces, uint64_t seq, const char *table,
								int64_t now_ms, queue_kind *kind);

/* The call with this number, which needs no request in the buffer, will have a reply. */
extern void queue_pieces_expect(queue_pieces *pieces, uint32_t generation, uint64_t seq);

/*
 * The reply, which becomes the buffer's.  False: nobody waits for it any more, and the buffer is
 * another call's.
 */
extern bool queue_pieces_reply(queue_pieces *pieces, uint32_t generation, uint64_t seq,
							   char *bytes, size_t len);

/* A piece of the reply, of *len bytes at most; NULL: a worker before this one has had it. */
extern const char *queue_pieces_give(const queue_pieces *pieces, uint32_t generation,
									 uint32_t offset, uint32_t *len);

extern void queue_pieces_clear(queue_pieces *pieces);

/* ----------------------------------------------------------------
 * queue_wait.c: When a session that wants a job tries hints, looks for itself, and sleeps.
 * ----------------------------------------------------------------
 */

typedef struct queue_wait
{
	void	   *arg;
	shared32   *wish;			/* while it is set, whoever leaves a hint clears it, and wakes us */
	int64_t		deadline;
	int64_t		pause;			/* between two looks, at most; doubles */
	int64_t		next_look;
	bool		hints_first;

	int64_t		(*clock) (void *arg);

	/* Both may raise an error.  True: there is a job. */
	bool		(*try_hints) (void *arg);

	/*
	 * Others need not have looked since then, if it is the last look.  *again: when to look again,
	 * if that is soon.
	 */
	bool		(*look) (void *arg, int64_t since, bool last, int64_t *again);
} queue_wait;

typedef enum queue_waited
{
	QUEUE_WAIT_FOUND,
	QUEUE_WAIT_OVER,			/* there was none in time */
	QUEUE_WAIT_TURN,			/* the next turn is due */
	QUEUE_WAIT_SLEEP			/* until *until, or until the wish is cleared */
} queue_waited;

extern queue_waited queue_wait_turn(queue_wait *wait, uint64_t random, int64_t *until);

#endif							/* DDBLOCK_QUEUE_QUEUE_H */
