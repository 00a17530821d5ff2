/*
 * client.h
 *	  The torture's workload: what its files share.
 *
 * client.c keeps all sessions of all clusters busy from one process, without
 * ever waiting for one of them, and writes the history; plans.c decides what a
 * session does next and puts it into SQL; queue_plans.c does so for queues.
 */
#ifndef TORTURE_CLIENT_H
#define TORTURE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <libpq-fe.h>

#define CLUSTERS_MAX 8
#define STEPS_MAX 24
#define SQL_SIZE 512

/*
 * Locks "n0" and so on; "o0" and so on are those that an operator tampers with; clusters
 * stand for "c0" and "c1".
 */
#define NORMAL_LOCKS 40
#define OPERATOR_LOCKS 8
#define LOCKS (NORMAL_LOCKS + OPERATOR_LOCKS)
#define LEADERSHIPS 2
#define ALL_LOCKS (LOCKS + LEADERSHIPS)

/* Queues "q0" and so on, each with resources "r0" and so on. */
#define QUEUES 3
#define RESOURCES 4
#define RESOURCE_ANY (-1)

typedef enum LockMode
{
	EXCLUSIVE,
	SHARED,
	SEMAPHORE
} LockMode;

typedef enum Op
{
	OP_ACQUIRE,
	OP_TRY,
	OP_XACT_ACQUIRE,
	OP_XACT_TRY,
	OP_PROBE,					/* an acquire that has to succeed in time */
	OP_SEVERAL,					/* both of the plan's locks in one call; recorded as two */
	OP_XACT_SEVERAL,
	OP_REQUIRE,
	OP_TOKEN,
	OP_RENEW,
	OP_RELEASE,
	OP_RELEASE_ALL,
	OP_DISCARD,
	OP_BEGIN,
	OP_SAVEPOINT,
	OP_ROLLBACK_TO,
	OP_KEEP_SAVEPOINT,
	OP_WRITE,
	OP_STOP,
	OP_COMMIT,
	OP_ROLLBACK,
	OP_PROCEDURE,
	OP_DISCONNECT,
	OP_THINK,
	OP_JOIN,
	OP_DETACH,
	OP_END,						/* of a detached lock, by its token */
	OP_LEAD,					/* asks, and works if the cluster leads */
	OP_LEAD_REQUIRE,
	OP_RESIGN,					/* and waits for the transactions that have joined, */
	OP_RESIGN_NOW,				/* ... or interrupts them */
	OP_DEPTH,					/* how often the session has the lock, as ddb_locks tells */
	OP_TERMINATE,				/* its own session */
	OP_Q_BEGIN,					/* this and all that follow are about queues */
	OP_Q_PUSH,
	OP_Q_OUTBOX,
	OP_Q_SEND,
	OP_Q_NEXT,
	OP_Q_REQUIRE,
	OP_Q_WORK,
	OP_Q_COMPLETE,
	OP_Q_COMMIT,
	OP_Q_FAIL,
	OP_Q_DEAD,
	OP_Q_REDRIVE,
	OP_Q_DROP
} Op;

typedef struct Step
{
	Op			op;
	int			slot;			/* which of the plan's two locks */
	int			ms;				/* wait; THINK: pause; STOP: 1 before, 0 after; WORK: 1 once;
								 * COMPLETE: 1 in a transaction; FAIL: until it is due */
	int			cancel_ms;		/* cancel the call after so long, 0: do not */
} Step;

/* Jobs with the uids from this one on. */
typedef struct Push
{
	int			queue;
	int			resource;
	int64_t		uid;
	int			jobs;
	bool		with_ids;
} Push;

/* A job that the session has claimed, or a dead one; number 0: none. */
typedef struct Claim
{
	int			queue;
	int			resource;		/* or RESOURCE_ANY */
	int64_t		number;
	int64_t		uid;
	int64_t		token;
	int			attempt;
} Claim;

typedef struct Plan
{
	Step		steps[STEPS_MAX];
	int			count;
	int			next;
	bool		undoes;			/* its session has ddblock.release_on_rollback */
	const int64_t *heard;		/* [ALL_LOCKS]: tokens that sessions of the cluster have, or 0 */
	int			lock[2];
	LockMode	lock_mode[2];
	int			permits[2];		/* of a semaphore */
	int			limit[2];
	int			at_least_ms[2]; /* of an exclusive lock: its minimum, or 0 */
	int64_t		token[2];
	int64_t		write_id;		/* of the open transaction's write, or 0 */
	int			written_slot;
	Push		push;
	Claim		claim;
} Plan;

/* plans.c */
extern const char *const op_names[];
extern void plan_work(Plan *plan);
extern void plan_probe(Plan *plan, int lock, int wait_ms);
extern void plan_stop(Plan *plan, bool before);
extern void plan_after_error(Plan *plan, bool in_transaction);
extern void lock_name(int lock, char *name, size_t size);
extern void mode_name(const Plan *plan, int slot, char *name, size_t size);
extern bool step_sql(Plan *plan, const Step *step, char *sql);
extern bool op_grants(Op op);
extern bool op_returns_token(Op op);
extern int	random_below(int limit);
extern bool fenced;
extern void add(Plan *plan, Op op, int slot, int ms);
extern void timed(char *sql, const char *function, const char *arguments);

/* leaders.c */
extern void plan_leader(Plan *plan);
extern bool plan_leader_stop(Plan *plan, bool before);
extern void plan_follower(Plan *plan);
extern bool op_leads(Op op);
extern void leader_sql(const Step *step, const char *name, char *sql);

/* queue_plans.c */
extern void plan_queue(Plan *plan);
extern void plan_late(Plan *plan);
extern void plan_drain(Plan *plan, int queue);
extern void queue_sql(const Plan *plan, const Step *step, char *sql);
extern bool queue_take(Plan *plan, const Step *step, const PGresult *result);
extern void queue_put_place(FILE *file, const Plan *plan, const Step *step);
extern void queue_put_jobs(FILE *file, const Plan *plan, const Step *step,
						   const PGresult *result);

#endif							/* TORTURE_CLIENT_H */
