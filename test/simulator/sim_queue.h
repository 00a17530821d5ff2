/*-------------------------------------------------------------------------
 *
 * sim_queue.h
 *	  Queues in the simulation: what sim_queue.c and sim_job.c share.
 *
 * The first locks of the run are those of a queue's resources, one each.  src/queue is
 * hosted as sessions and the worker do: the builders and readers of requests, calls in pieces,
 * claims, completions, hints, waits.  The table is in the DynamoDB double; this keeps a record of it, as
 * sim_table.c does of the locks, and of what became of each job.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_TEST_SIM_QUEUE_H
#define DDBLOCK_TEST_SIM_QUEUE_H

#include "sim.h"

#include "queue/queue.h"

#define SIM_QUEUE_NAME	"q"
#define SIM_PIECE		1800	/* bytes of a request; of a reply, a part of it */
#define SIM_JOBS		80		/* the highest number of a resource */
#define SIM_ATTEMPTS	3

/* A job, and who committed its work last. */
typedef struct sim_job
{
	char		uuid[QUEUE_UUID_SIZE];	/* of its push, */
	int64_t		pusher;			/* ... and whose that was */
	bool		gone;			/* cancelled, dropped, buried, or about to be */
	int			worked;			/* its work was committed so often */
	int			cluster;
	unsigned	incarnation;
	sim_hold	hold;
	lockmgr_session session;
	bool		lost;			/* that hold was lost */
} sim_job;

/* What the head of a resource should say, and the jobs, by number. */
typedef struct sim_resource
{
	bool		head;			/* there is one; else "seq" is the last number that was given */
	int64_t		seq;
	int64_t		done;
	int64_t		token;
	int64_t		confirmed;		/* the highest number that a pusher knows of */
	sim_job		jobs[SIM_JOBS + 1];
	int64_t		due;			/* epoch milliseconds: of the next job; 0: none waits */
	int64_t		retry_at;		/* ... of a claimed one; 0: none is claimed */
} sim_resource;

/* A completion, in shared memory. */
typedef struct sim_place
{
	queue_place place;
	lockmgr_session session;
	uint64_t	hold_seq;
	uint32_t	hold_index;
} sim_place;

typedef enum sim_piece_kind
{
	PIECE_REQUEST,
	PIECE_MORE,
	PIECE_REPLY,
	PIECE_FAILED
} sim_piece_kind;

typedef struct sim_piece
{
	sim_piece_kind kind;
	dynamo_status status;		/* PIECE_FAILED */
	uint32_t	offset;
	uint32_t	total;
	uint32_t	len;
	char		data[SIM_PIECE];
} sim_piece;

typedef enum sim_task_state
{
	TASK_NONE,
	TASK_PUSH_LOOK,				/* reads the head */
	TASK_PUSH_FLOOR,
	TASK_PUSH,
	TASK_SEARCH,
	TASK_TRY,					/* tries the resource's lock */
	TASK_CLAIM,
	TASK_READ,
	TASK_CHECK_GONE,
	TASK_FINISH,				/* in the session: cancelled or buried */
	TASK_DELETE,
	TASK_WORK,					/* it has a job */
	TASK_FAIL,
	TASK_CANCEL_LOOK,
	TASK_CANCEL,
	TASK_DROP_LOOK,
	TASK_DROP,
	TASK_PURGE_LOOK,
	TASK_PURGE
} sim_task_state;

/* What a session does with queues. */
typedef struct sim_task
{
	sim_task_state state;
	int			resource;
	bool		cancels;		/* claims the next job to cancel it */

	/* The call. */
	bool		calling;
	queue_request request;
	char		bytes[sizeof(queue_request) + 512];
	uint32_t	total;
	char		reply[8192];	/* a head with all the jobs that may ride on it */
	uint32_t	have;
	unsigned	failures;
	unsigned	life;			/* of the worker, when its first piece was posted */

	/* The push. */
	int64_t		before;			/* numbers that were confirmed when it began are below its own */

	/* The search. */
	queue_wait	wait;
	bool		asleep;
	int64_t		until;

	/* The claim, and the transaction. */
	bool		has_claim;
	queue_claim claim;
	queue_finish finish;
	queue_row	head;			/* after the claim */
	int			level;			/* 0: no transaction */
	int			made_level;		/* of the claim; 0: that has committed */
	int			work_level;		/* of the job's work; 0: there is none */
	bool		guarded;		/* it has passed the guard */
} sim_task;

typedef struct sim_queue_slot
{
	sim_piece	request;		/* in shared memory, as are these two */
	sim_piece	answer;
	shared32	wish;
	queue_pieces buffer;		/* the worker's */
	sim_task	task;			/* the session's */
} sim_queue_slot;

/* Of a cluster. */
struct sim_queues
{
	sim		   *s;
	sim_cluster *c;
	queue_hint	hints[QUEUE_HINTS];
	queue_memory memory[QUEUE_MEMORY];
	int64_t		floor;			/* as was read; -1: not */
	shared32	news;
	int			place_count;
	sim_place  *places;
	sim_queue_slot *slots;		/* [sessions] */

	/* The worker's. */
	queue_finisher finisher;
	queue_note *notes;
	int64_t		wake;
	sim_piece	taken;			/* the request that it has copied, */
	sim_piece	given;			/* ... and its answer */
};

/* A call on the queue's table. */
struct sim_queue_call
{
	queue_request request;
	bool		finishes;		/* it is the finisher's, for this place; else a session's */
	uint32_t	place;
	lockmgr_session session;
	uint64_t	seq;
};

/* sim_queue.c */
extern int64_t sim_now_ms(const sim *s, const sim_cluster *c);
extern void sim_resource_name(int resource, char name[QUEUE_RESOURCE_MAX + 1]);
extern void sim_tell_jobs(sim *s, sim_cluster *c, int resource, int64_t attempts);
extern char *sim_queue_read(sim *s, queue_kind kind, int resource, int64_t now_ms);
extern bool sim_first_row(const char *reply, queue_row *row);

/* An operator raises the floor to the number of a head that is to go. */
extern void sim_raise_floor(sim *s, int64_t to);

/* Is no push under way that has found no head?  Then the time may have passed that a floor waits. */
extern bool sim_floor_counts(sim *s);

/* The numbers of the jobs that ride on the head of a reply. */
extern int	sim_riders(const char *reply, int64_t numbers[SIM_JOBS]);
extern bool sim_rides(const char *reply, int64_t number);
extern void sim_check_worked(sim *s, const sim_cluster *c, int slot, int resource, int64_t number,
							 const sim_hold *hold);

#endif							/* DDBLOCK_TEST_SIM_QUEUE_H */
