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
#include "base/shared_word.h"

/* ----------------------------------------------------------------
 * queue_request.c, queue_reply.c, queue_outcome.c: The queue's table: request bodies, replies, and
 * what a reply means for a job.
 *
 * This section knows JSON and the items of the queue's table; it knows no sockets, clocks or
 * PostgreSQL.  doc/internals/queues.md describes the items and the conditions.
 *
 * A request is a struct of fixed size and a tail of bytes, and so is each row of
 * a reply: both go through shared memory piece by piece, and contain no pointers.
 * ----------------------------------------------------------------
 */

#define QUEUE_NAME_MAX		64
#define QUEUE_RESOURCE_MAX	900
#define QUEUE_ID_MAX		1000	/* for a dead job: its number and its resource */
#define QUEUE_CALLER_ID_MAX	255
#define QUEUE_ERROR_MAX		1024
#define QUEUE_PAYLOAD_MAX	(256 * 1024)
#define QUEUE_PUSH_MAX		49	/* a transaction has 100 writes: at most two for each job (its
								 * item and its id), and one for the head */
#define QUEUE_PUSH_BYTES	(3 * 1024 * 1024)	/* all payloads of a push */
#define QUEUE_UUID_SIZE		37
#define QUEUE_DIGEST_SIZE	65		/* SHA-256 in hex digits, and its NUL */
#define QUEUE_GUARD_KEY		"lockTable" /* partition and sort key of the GUARD's item */

typedef enum queue_kind
{
	QUEUE_CREATE_TABLE,
	QUEUE_DESCRIBE_TABLE,
	QUEUE_ENABLE_TTL,
	QUEUE_GUARD,				/* writes or checks which lock table guards the jobs */
	QUEUE_READ_HEAD,
	QUEUE_READ_JOB,
	QUEUE_READ_DEAD,
	QUEUE_READ_FLOOR,			/* the number above which those of resources without a head begin */
	QUEUE_FIND,					/* a page of resources: all that have jobs, or those whose next
								 * job is due */
	QUEUE_LIST_JOBS,			/* a page of a resource's jobs */
	QUEUE_LIST_DEAD,
	QUEUE_LIST_ALL,				/* a page of all jobs in the table: their keys */
	QUEUE_PUSH,
	QUEUE_CLAIM,
	QUEUE_COMPLETE,				/* finishes a job when more jobs wait */
	QUEUE_COMPLETE_LAST,		/* finishes the last job of a resource */
	QUEUE_FAIL,					/* gives the claimed job back, to be tried again later */
	QUEUE_BURY,					/* puts the claimed job aside as dead, because it was tried too
								 * often */
	QUEUE_DROP,					/* finishes all waiting jobs of a resource */
	QUEUE_PAUSE,
	QUEUE_RESUME,
	QUEUE_CANCEL,				/* a job that is not the next one */
	QUEUE_CANCEL_RIDER,			/* a job that is not the next one and rides on the head */
	QUEUE_CHECK_GONE,			/* checks that a job has no item, not even one that a push is
								 * writing */
	QUEUE_RAISE_FLOOR,
	QUEUE_DELETE_HEAD,			/* deletes a resource's head, if no number was given since it
								 * was read */
	QUEUE_DELETE_JOB,
	QUEUE_DELETE_DEAD
} queue_kind;

/* A request about the queue's table.  The words in capitals say which kinds use a field. */
typedef struct queue_request
{
	queue_kind	kind;
	int			jobs;			/* PUSH: how many; DROP: how many ride on the head */
	bool		all;			/* FIND: also resources that are not due; CLAIM: also a job that
								 * is not due or paused, and the claim does not count as an
								 * attempt */
	bool		last;			/* BURY: as far as known, no job waits behind this one */
	bool		first;			/* PUSH: the resource has no head, and seq is the floor */
	bool		rides;			/* the jobs ride on the head: they are attributes of it, and
								 * have no items.  PUSH: of the new jobs; BURY: of this job */
	bool		stays;			/* COMPLETE: the resource keeps its place in the index, instead
								 * of going behind the others */
	int64_t		now_ms;			/* epoch milliseconds; 0: the worker sets the time */
	int64_t		seq;			/* PUSH, DROP, DELETE_HEAD: seq of the head; RAISE_FLOOR: the
								 * present floor */
	int64_t		number;			/* number of the job; LIST_JOBS: of the first one to list;
								 * RAISE_FLOOR: the new floor */
	int64_t		to;				/* LIST_JOBS: number of the last one to list */
	int64_t		token;			/* CLAIM, COMPLETE, FAIL, BURY */
	int64_t		attempts;		/* BURY: the job's attempts; CLAIM: its attempts before this
								 * one, as far as known */
	int64_t		pushed_at;		/* BURY */
	int64_t		delay_ms;		/* CLAIM, FAIL: from now until the job is due again;
								 * RAISE_FLOOR: until the floor counts */
	int64_t		dedup_s;		/* PUSH: how long a caller's id keeps out other jobs with this id */
	dynamo_creation creation;	/* CREATE_TABLE */
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];	/* GUARD: the lock table's name */
	char		id[QUEUE_ID_MAX + 1];	/* BURY, READ_DEAD, DELETE_DEAD: id of the dead job;
										 * GUARD: the lock table's identity */
	char		error[QUEUE_ERROR_MAX + 1]; /* FAIL, BURY */
	char		uuid[QUEUE_UUID_SIZE];	/* PUSH, CANCEL, BURY: the transaction's token */
	uint32_t	tail_len;		/* bytes that follow the struct.  PUSH: the jobs; BURY: the
								 * payload; DROP: the numbers of the jobs that ride, as int64_t;
								 * pages: where the page begins */
} queue_request;

/* A job in the tail of a PUSH: this struct, then the job's id (0 bytes: none), then its payload. */
typedef struct queue_job
{
	uint32_t	id_len;
	uint32_t	payload_len;
	char		digest[QUEUE_DIGEST_SIZE];	/* of the payload (dynamo_digest()), if there is an id */
} queue_job;

/* What an item of the queue's table tells.  0 or empty: the item has no such attribute. */
typedef struct queue_row
{
	int64_t		seq;			/* head: the last number that was given; floor: the floor, which
								 * counts from "due" on */
	int64_t		done;			/* head: the last number that is finished */
	int64_t		token;
	int64_t		attempts;
	int64_t		due;			/* epoch milliseconds.  Head: when the next job is due; of a
								 * claimed job: due again */
	int64_t		turn;			/* head: since when the resource has its place in the index, as
								 * "due" */
	int64_t		number;			/* of a job, of an id's job, of a dead job */
	int64_t		pushed_at;
	bool		paused;
	bool		is_protected;	/* a table: it is protected from deletion */
	char		digest[QUEUE_DIGEST_SIZE];	/* id: digest of its job's payload */
	uint32_t	queue_len;		/* lengths of the texts that follow the struct, in this order */
	uint32_t	resource_len;
	uint32_t	id_len;
	uint32_t	error_len;
	uint32_t	payload_len;
	uint32_t	riders;			/* so many jobs ride on this head; they follow the texts, each
								 * as a row, in any order */
} queue_row;

/* A reply: this struct, then where the next page begins (0 bytes: there is none), then the rows. */
typedef struct queue_reply
{
	dynamo_status status;		/* OK; or CONDITION_FAILED, and the rows are the items that
								 * refused the write */
	int			rows;
	int64_t		now_ms;			/* DynamoDB's time, or a little earlier */
	uint32_t	next_len;
} queue_reply;

/* ----------------------------------------------------------------
 * queue_request.c: Request bodies.
 * ----------------------------------------------------------------
 */

/* The operation as which a request of this kind is sent and counted. */
extern dynamo_op queue_op(queue_kind kind);

/* The body of a request, malloc'd.  NULL if memory is short, or the tail is not whole. */
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

/*
 * Reads the head that refused a write of the head, without its texts.  False if the reply has
 * none.
 */
extern bool queue_refusing_head(const dynamo_reply *reply, queue_row *head);

/* ----------------------------------------------------------------
 * queue_outcome.c: What a reply or a refusal means for a job.
 * ----------------------------------------------------------------
 */

/*
 * May jobs of this size ride on the head, beside others that together have the size "taken"?  A
 * job that rides on the head is an attribute of it, and needs no item of its own.  But each write
 * of a head costs one write unit for each kilobyte of it.  queue_ride_size() is the size of one
 * job.
 */
extern bool queue_may_ride(uint32_t taken, size_t size);
extern uint32_t queue_ride_size(size_t id_len, size_t payload_len);

/* May the resource's next job be claimed now?  head NULL: the resource has none. */
extern bool queue_is_due(const queue_row *head, int64_t now_ms);

/*
 * Is the head useless but for its number?  The resource has no jobs and is not paused, and the
 * token of its last claim is below this one.
 */
extern bool queue_is_spent(const queue_row *head, int64_t token);

/* How long after a claim the job is due again, if nobody finishes it. */
extern int64_t queue_backoff_ms(int64_t attempts);

/*
 * Has the claim with this token succeeded, by its reply?  head: as it is after the claim, or as it
 * was when it refused the claim; or NULL.
 */
extern bool queue_is_claimed(dynamo_status status, const queue_row *head, int64_t token);

/*
 * Is the job no longer claimed under the old token, by the reply to a FAIL?  False: it was claimed
 * anew.
 */
extern bool queue_is_put_back(dynamo_status status, const queue_row *head, int64_t number);

/*
 * Finishing a job.  If the outcome of the write is unknown, the same request is sent again, any
 * number of times.  Its condition names the claim's token and the job's number, so a late copy
 * does no harm.
 */
typedef enum queue_outcome
{
	QUEUE_AGAIN,				/* send a write of the kind queue_finish_kind() */
	QUEUE_FINISHED,
	QUEUE_REFUSED				/* another token has claimed the job */
} queue_outcome;

typedef struct queue_finish
{
	int64_t		number;
	int64_t		token;
	bool		last;			/* the form to send next: COMPLETE_LAST, else COMPLETE */
} queue_finish;

extern queue_kind queue_finish_kind(const queue_finish *finish);

/* Handles a reply.  head: what refused the write; NULL if nothing did, or there is no head. */
extern queue_outcome queue_finish_reply(queue_finish *finish, dynamo_status status,
										const queue_row *head);

/* ----------------------------------------------------------------
 * queue_finish.c: Jobs whose sessions have committed, and how the worker finishes them.
 *
 * A place is where a session leaves the worker a job to finish.  Before its transaction commits,
 * while it can still fail, the session reserves a place and fills it.  When the transaction has
 * committed, the session passes the place to the worker.  It stays the worker's until the outcome
 * is known, over any number of workers.
 *
 * The host knows where in shared memory the places are.
 * ----------------------------------------------------------------
 */

#define QUEUE_NO_PLACE UINT32_MAX

typedef enum queue_place_state
{
	QUEUE_PLACE_FREE,
	QUEUE_PLACE_RESERVED,		/* belongs to the session that reserved it */
	QUEUE_PLACE_READY			/* belongs to the worker */
} queue_place_state;

typedef struct queue_place
{
	shared32	state;
	int64_t		token;
	int64_t		number;
	bool		last;			/* no job waited behind the job when it was claimed */
	bool		rides;			/* the job rides on the head, and has no item of its own */
	int64_t		stays_until;	/* by the cluster's clock: a completion after this puts the
								 * resource behind the others in the index */
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];
} queue_place;

typedef queue_place *(*queue_place_at) (void *arg, uint32_t index);

/* Does the place belong to the worker?  If so, all of it can be read. */
extern bool queue_place_is_ready(queue_place *place);

/*
 * Reserves a free place.  The search begins at "first", so that sessions do not meet.
 * QUEUE_NO_PLACE: none is free.
 */
extern uint32_t queue_place_reserve(queue_place_at at, void *arg, uint32_t first, uint32_t count);
extern void queue_place_free(queue_place *place);

/*
 * Passes the place to the worker.  It may be another job's at once, so *copy gets what was in it.
 */
extern void queue_place_pass(queue_place *place, queue_place *copy);

/* What the worker notes about a place. */
typedef struct queue_note
{
	bool		known;			/* the worker has seen that the place is its own, and has set
								 * the rest */
	bool		in_flight;
	int64_t		next;			/* when to send the write, or to repeat it */
	unsigned	failures;
	unsigned	refusals;		/* after the first refusal, the other form of the write goes out
								 * at once; after others, later */
	queue_finish finish;
} queue_note;

/* The worker's side: what finishes jobs. */
typedef struct queue_finisher
{
	void	   *arg;
	uint32_t	count;			/* of places */
	queue_note *notes;			/* [count] */
	uint32_t	unfinished;
	shared32   *news;			/* sessions set this when a place has become the worker's */
	queue_place_at place;

	/*
	 * Sends the write; queue_finisher_reply() must follow.  index QUEUE_NO_PLACE: a deletion,
	 * whose outcome does not matter and is not told.
	 */
	void		(*send) (void *arg, uint32_t index, const queue_request *request, bool repeat);

	/* The job could not be finished, so many times: how long to wait before the next attempt? */
	int64_t		(*later) (void *arg, uint32_t index, unsigned failures, const dynamo_reply *reply);

	/*
	 * The outcome is known.  The host ends the session's hold; the place is still that of the job.
	 * more: jobs have come behind it since it was claimed.
	 */
	void		(*ended) (void *arg, uint32_t index, queue_outcome outcome, bool more);
} queue_finisher;

/* Sends what is due.  Returns when to call it again, if *news is not set before. */
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
	int64_t		pushed_at;		/* epoch milliseconds; 0: not read yet, or the job has none */
	int64_t		token;			/* token of the resource's lock; 0: the session does not have
								 * that yet */
	bool		last;			/* no job waited behind the job when it was claimed */
	bool		rides;			/* the job rides on the head, and has no item of its own */
	int64_t		stays_until;	/* by the cluster's clock: a completion after this puts the
								 * resource behind the others in the index */
	int			claimed_level;	/* nesting level of the transaction that claimed the job; 0:
								 * that has committed */
	int			finish_level;	/* nesting level of the transaction that completed the job; 0:
								 * none has */
	queue_place *place;			/* if completed: the place that is reserved for the job */
} queue_claim;

typedef enum queue_fate
{
	QUEUE_CLAIM_STAYS,
	QUEUE_CLAIM_ENDS,			/* the session gives the claim and its lock up */
	QUEUE_CLAIM_VOID,			/* the lock is given up or lost already: the session forgets the
								 * claim */
	QUEUE_CLAIM_PASSES			/* the worker finishes the job */
} queue_fate;

/* Begins a claim.  level: of nesting; 1 is the transaction itself, 2 a savepoint in it. */
extern queue_claim queue_claim_begin(int level);

/*
 * The claim has succeeded: the oldest job is the session's.  head: as it is after the claim;
 * delay_ms: as in the claim's request.
 */
extern void queue_claim_take(queue_claim *claim, const queue_row *head, int64_t delay_ms,
							 int64_t now);

/*
 * The transaction of this level completes the job, if it commits.  The place is reserved for that.
 */
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

/* Attempts of a hint if nobody knows how often the next job was claimed. */
#define QUEUE_ATTEMPTS_UNKNOWN (-1)

typedef enum queue_hint_state
{
	QUEUE_HINT_FREE,
	QUEUE_HINT_CHANGES,			/* a process is writing or taking it */
	QUEUE_HINT_READY
} queue_hint_state;

typedef struct queue_hint
{
	shared32	state;
	shared64	since;			/* when it was left */
	int64_t		attempts;		/* how often the next job was claimed, or
								 * QUEUE_ATTEMPTS_UNKNOWN */
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];
} queue_hint;

/*
 * Leaves a hint that this resource may have a job, unless there is no room.  hints: [QUEUE_HINTS]
 */
extern void queue_hint_add(queue_hint *hints, int64_t now, const char *queue, const char *resource,
						   int64_t attempts);

/* Is there a hint for this queue? */
extern bool queue_hint_exists(queue_hint *hints, int64_t now, const char *queue);

/* Must this session skip hints for this resource? */
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
 * The memory is shared, and has no lock, so a reader may get the key of one resource with the
 * number of another.
 *
 *	 - A number that the head has had before does no harm: the condition of the push refuses it.
 *	 - A number that the head is still to have would do harm, because a late copy of the push
 *	   could be applied when the head has it.  So a number is kept XOR its key: with another
 *	   resource's key, the result is hardly ever a possible number.
 *
 * A resource may have one of few places; if too many want the same ones, they displace each other.
 * ----------------------------------------------------------------
 */

#define QUEUE_MEMORY 4096

typedef struct queue_memory
{
	shared64	key;			/* a hash of queue and resource; 0: nothing is remembered */
	shared64	seq;			/* the head's last number XOR the key */
	shared32	taken;			/* size of the jobs that ride on the head */
} queue_memory;

/*
 * Remembers the head's last number; seq 0: forgets it, so that the next push looks at the head.
 * memory: [QUEUE_MEMORY]
 */
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
	uint32_t	generation;		/* generation of the session whose call it is; 0: the buffer is
								 * empty */
	uint64_t	sent;			/* number of the call whose reply is to come; 0: none */
	bool		is_reply;
	char	   *bytes;			/* malloc'd; NULL: none */
	uint32_t	len;
	uint32_t	total;
} queue_pieces;

typedef enum queue_taken
{
	QUEUE_PIECES_LOST,			/* the pieces before this one went to a worker that has ended */
	QUEUE_PIECES_REFUSED,		/* the piece does not fit, or memory is short */
	QUEUE_PIECES_MORE,			/* there are more to come */
	QUEUE_PIECES_WHOLE
} queue_taken;

/*
 * Takes a piece of a request.  The first piece begins a new call, whatever became of the last one.
 */
extern queue_taken queue_pieces_take(queue_pieces *pieces, uint32_t generation, uint32_t total,
									 uint32_t offset, const char *bytes, uint32_t len);

/*
 * The body of a whole request, malloc'd, or NULL if memory is short.  seq: the call's number; now_ms:
 * the time, if the request has none.
 */
extern char *queue_pieces_build(queue_pieces *pieces, uint64_t seq, const char *table,
								int64_t now_ms, queue_kind *kind);

/* Expects the reply to the call with this number, whose request did not come in pieces. */
extern void queue_pieces_expect(queue_pieces *pieces, uint32_t generation, uint64_t seq);

/*
 * Puts the reply, and its memory, into the buffer.  False: nobody waits for the reply any more,
 * and the buffer is another call's.
 */
extern bool queue_pieces_reply(queue_pieces *pieces, uint32_t generation, uint64_t seq,
							   char *bytes, size_t len);

/*
 * Gives a piece of the reply, of *len bytes at most.  NULL: the reply went to a worker that has
 * ended.
 */
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
	shared32   *wish;			/* while we have set this, whoever leaves a hint clears it and
								 * wakes us */
	int64_t		deadline;
	int64_t		pause;			/* the longest time between two looks at the index; it doubles
								 * with each look */
	int64_t		next_look;
	bool		hints_first;

	int64_t		(*clock) (void *arg);

	/* Tries hints.  It may raise an error, and so may look().  True: there is a job. */
	bool		(*try_hints) (void *arg);

	/*
	 * Looks at the index for a job.  If another session of the cluster has looked since the given
	 * time, this one need not, unless the look is the last one.  *again: when to look again, if
	 * that is soon.
	 */
	bool		(*look) (void *arg, int64_t since, bool last, int64_t *again);
} queue_wait;

typedef enum queue_waited
{
	QUEUE_WAIT_FOUND,
	QUEUE_WAIT_OVER,			/* there was none in time */
	QUEUE_WAIT_TURN,			/* the next turn is due */
	QUEUE_WAIT_SLEEP			/* sleep until *until, or until *wish is cleared */
} queue_waited;

extern queue_waited queue_wait_turn(queue_wait *wait, uint64_t random, int64_t *until);

#endif							/* DDBLOCK_QUEUE_QUEUE_H */
