/*
 * client.h
 *	  The torture's workload: what its two files share.
 *
 * client.c keeps all sessions of all clusters busy from one process, without
 * ever waiting for one of them, and writes the history; plans.c decides what a
 * session does next and puts it into SQL.
 */
#ifndef TORTURE_CLIENT_H
#define TORTURE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>

#define CLUSTERS_MAX 8
#define STEPS_MAX 24
#define SQL_SIZE 512

/* Locks "n0" and so on; "o0" and so on are those that an operator tampers with. */
#define NORMAL_LOCKS 40
#define OPERATOR_LOCKS 8
#define LOCKS (NORMAL_LOCKS + OPERATOR_LOCKS)

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
	OP_END						/* of a detached lock, by its token */
} Op;

typedef struct Step
{
	Op			op;
	int			slot;			/* which of the plan's two locks */
	int			ms;				/* wait; THINK: pause; STOP: 1 before, 0 after */
	int			cancel_ms;		/* cancel the call after so long, 0: do not */
} Step;

typedef struct Plan
{
	Step		steps[STEPS_MAX];
	int			count;
	int			next;
	const int64_t *heard;		/* [LOCKS]: tokens that sessions of the cluster have, or 0 */
	int			lock[2];
	LockMode	lock_mode[2];
	int			permits[2];		/* of a semaphore */
	int			limit[2];
	int64_t		token[2];
	int64_t		write_id;		/* of the open transaction's write, or 0 */
	int			written_slot;
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

#endif							/* TORTURE_CLIENT_H */
