/*
 * plans.c
 *	  What a session of the torture does: plans of a few steps, drawn by lot.
 *
 * A session waits for a lock only while it holds none (a second one is only
 * tried, or comes in the same call), so that no plan can deadlock with another.  It wants each lock in one
 * mode; sessions of other plans want the same lock in other modes.
 */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>

#define LEASE_MS(lock) (2000 + (lock) % 3 * 500)
#define DETACHED_MS 2500		/* as in check */
#define QUEUE_PLANS 3			/* every third plan: a sixth of the calls */

const char *const op_names[] = {
	"acquire", "try", "xact_acquire", "xact_try", "probe", "acquire", "xact_acquire",
	"require", "token",
	"renew", "release", "release_all", "discard", "begin", "savepoint",
	"rollback_to", "keep_savepoint", "write", "stop", "commit", "rollback",
	"procedure", "disconnect", "think", "join", "detach", "end",
	"lead", "lead_require", "resign", "resign_now", "depth", "terminate",
	"begin", "push", "outbox", "send", "next", "require", "work", "complete", "commit", "fail",
	"dead", "redrive", "drop"
};

bool		fenced = true;

static int64_t last_write_id = 0;

int
random_below(int limit)
{
	return (int) (random() % limit);
}

void
lock_name(int lock, char *name, size_t size)
{
	if (lock < NORMAL_LOCKS)
		snprintf(name, size, "n%d", lock);
	else if (lock >= LOCKS)
		snprintf(name, size, "c%d", lock - LOCKS);
	else
		snprintf(name, size, "o%d", lock - NORMAL_LOCKS);
}

void
mode_name(const Plan *plan, int slot, char *name, size_t size)
{
	if (plan->lock_mode[slot] == SEMAPHORE)
		snprintf(name, size, "semaphore %d/%d", plan->permits[slot], plan->limit[slot]);
	else if (plan->lock_mode[slot] == EXCLUSIVE && plan->at_least_ms[slot] > 0)
		snprintf(name, size, "exclusive %d", plan->at_least_ms[slot]);
	else
		snprintf(name, size, "%s", plan->lock_mode[slot] == SHARED ? "shared" : "exclusive");
}

bool
op_grants(Op op)
{
	return op <= OP_XACT_SEVERAL || op == OP_PROCEDURE || op_leads(op);
}

bool
op_returns_token(Op op)
{
	return op <= OP_TOKEN || op == OP_PROCEDURE || op == OP_DETACH || op_leads(op);
}

void
add(Plan *plan, Op op, int slot, int ms)
{
	plan->steps[plan->count++] = (Step) {op, slot, ms, 0};
}

/* Every tenth plan is about lock 0, lock 1 or lock 2 each. */
static int
some_lock(void)
{
	int			hot = random_below(10);

	return hot < 3 ? hot : random_below(LOCKS);
}

/* Lock 1 is mostly a semaphore, lock 2 mostly shared; all others are everything. */
static LockMode
some_mode(int lock)
{
	static const LockMode modes[] = {EXCLUSIVE, EXCLUSIVE, EXCLUSIVE, EXCLUSIVE, SHARED,
		SHARED, SHARED, SEMAPHORE, SEMAPHORE, SEMAPHORE};

	if (lock == 1 && random_below(10))
		return SEMAPHORE;
	if (lock == 2 && random_below(10))
		return SHARED;
	return modes[random_below(sizeof(modes) / sizeof(modes[0]))];
}

/* Not for locks that many want, nor for those that an operator tampers with. */
static int
some_minimum(int lock)
{
	return lock > 2 && lock < NORMAL_LOCKS && random_below(8) == 0 ? 300 + random_below(2200) : 0;
}

static int
some_limit(int lock)
{
	return random_below(4) ? 2 + lock % 4 : 1 + random_below(6);
}

/* One to three. */
static int
some_permits(int limit)
{
	int			permits = random_below(3) ? 1 : 1 + random_below(3);

	return permits < limit ? permits : limit;
}

static int
some_wait(void)
{
	return 1000 + random_below(6000);
}

static void
start_plan(Plan *plan)
{
	plan->count = plan->next = 0;
	plan->lock[0] = some_lock();
	do
		plan->lock[1] = some_lock();
	while (plan->lock[1] == plan->lock[0]);
	for (int slot = 0; slot < 2; slot++)
	{
		plan->lock_mode[slot] = some_mode(plan->lock[slot]);
		plan->limit[slot] = some_limit(plan->lock[slot]);
		plan->permits[slot] = some_permits(plan->limit[slot]);
		plan->at_least_ms[slot] = some_minimum(plan->lock[slot]);
	}
	plan->token[0] = plan->token[1] = 0;
	plan->write_id = 0;
}

/* Questions about a lock that is held, now and then a pause between them. */
static void
add_checks(Plan *plan, int slot, int count)
{
	while (count-- > 0)
	{
		switch (random_below(6))
		{
			case 0:
				add(plan, OP_RENEW, slot, 0);
				break;
			case 1:
				add(plan, OP_THINK, slot, random_below(60));
				break;
			case 2:
				add(plan, OP_TOKEN, slot, 0);
				break;
			default:
				add(plan, OP_REQUIRE, slot, 0);
		}
	}
}

static void
add_write(Plan *plan, int think_ms)
{
	add(plan, OP_BEGIN, 0, 0);
	add(plan, OP_WRITE, 0, 0);
	if (think_ms > 0)
		add(plan, OP_THINK, 0, think_ms);
	add(plan, OP_COMMIT, 0, 0);
}

static void
plan_session_scope(Plan *plan)
{
	add(plan, OP_ACQUIRE, 0, some_wait());
	add_checks(plan, 0, 2 + random_below(5));
	add_write(plan, 0);
	add_checks(plan, 0, random_below(4));
	add(plan, OP_RELEASE, 0, 0);
	add(plan, OP_TOKEN, 0, 0);
}

/* A write that comes late, or whose COMMIT does: the lease may be lost meanwhile. */
static void
plan_slow_transaction(Plan *plan)
{
	int			pause = 500 + random_below(4500);

	add(plan, OP_ACQUIRE, 0, some_wait());
	if (random_below(2))
	{
		add(plan, OP_THINK, 0, pause);
		add_write(plan, 0);
	}
	else
		add_write(plan, pause);
	add(plan, OP_REQUIRE, 0, 0);
	add(plan, OP_RELEASE, 0, 0);
}

static void
plan_stacked(Plan *plan)
{
	add(plan, OP_TRY, 0, 0);
	add(plan, OP_ACQUIRE, 0, some_wait());
	add(plan, OP_TRY, 1, 0);
	add_checks(plan, 0, 2);
	add(plan, OP_RELEASE, 0, 0);
	add(plan, OP_REQUIRE, 0, 0);
	add(plan, OP_REQUIRE, 1, 0);
	add(plan, OP_RELEASE, 0, 0);
	add(plan, OP_TOKEN, 0, 0);
	add(plan, random_below(2) ? OP_DISCARD : OP_RELEASE_ALL, 0, 0);
	add(plan, OP_TOKEN, 1, 0);
}

static void
plan_transaction(Plan *plan)
{
	add(plan, OP_BEGIN, 0, 0);
	add(plan, OP_XACT_ACQUIRE, 0, some_wait());
	add(plan, OP_WRITE, 0, 0);
	add(plan, OP_SAVEPOINT, 0, 0);
	add(plan, OP_XACT_TRY, 1, 0);
	add(plan, OP_REQUIRE, 1, 0);
	add(plan, random_below(2) ? OP_ROLLBACK_TO : OP_KEEP_SAVEPOINT, 1, 0);
	add_checks(plan, 0, 2);
	add(plan, random_below(8) ? OP_COMMIT : OP_ROLLBACK, 0, 0);
	add(plan, OP_TOKEN, 0, 0);
	add(plan, OP_TOKEN, 1, 0);
}

/* The end of a session that holds a lock, at times in the middle of a transaction. */
static void
plan_disconnect(Plan *plan)
{
	add(plan, OP_ACQUIRE, 0, some_wait());
	add_checks(plan, 0, 2);
	if (random_below(2))
	{
		add(plan, OP_BEGIN, 0, 0);
		add(plan, OP_WRITE, 0, 0);
	}
	add(plan, OP_DISCONNECT, 0, 0);
}

static void
plan_cancelled(Plan *plan)
{
	add(plan, OP_ACQUIRE, 0, some_wait());
	plan->steps[0].cancel_ms = 1 + random_below(random_below(2) ? 10 : 300);
	add_checks(plan, 0, 1);
	add(plan, OP_RELEASE, 0, 0);
}

/* What the documentation advises against: only the fence protects its write. */
static void
plan_early_release(Plan *plan)
{
	add(plan, OP_ACQUIRE, 0, some_wait());
	add(plan, OP_BEGIN, 0, 0);
	add(plan, OP_REQUIRE, 0, 0);
	add(plan, OP_WRITE, 0, 0);
	add(plan, OP_RELEASE, 0, 0);
	add(plan, OP_COMMIT, 0, 0);
}

static void
plan_procedure(Plan *plan)
{
	plan->lock_mode[0] = EXCLUSIVE;
	add(plan, OP_PROCEDURE, 0, some_wait());
	add(plan, OP_TOKEN, 0, 0);
}

static void
plan_tries(Plan *plan)
{
	add(plan, OP_TRY, 0, 0);
	add_checks(plan, 0, 3);
	add(plan, OP_RELEASE, 0, 0);
}

/* A lock that some session of the cluster has; its token may be an old one. */
static void
plan_join(Plan *plan)
{
	int			lock = some_lock();

	for (int i = 0; i < LOCKS && plan->heard[lock] == 0; i++)
		lock = (lock + 1) % LOCKS;
	if (plan->heard[lock] == 0)
	{
		plan_tries(plan);
		return;
	}
	plan->lock[0] = lock;
	plan->lock_mode[0] = EXCLUSIVE;
	plan->token[0] = plan->heard[lock];
	add(plan, OP_JOIN, 0, 0);
	add_checks(plan, 0, 1 + random_below(5));
	if (random_below(2))
		add_write(plan, random_below(3) ? 0 : 500 + random_below(2000));
	add(plan, random_below(8) ? OP_RELEASE : OP_DISCONNECT, 0, 0);
}

/* A lock that its session leaves to the cluster, and may join again. */
static void
plan_detached(Plan *plan)
{
	plan->lock_mode[0] = EXCLUSIVE;
	add(plan, OP_ACQUIRE, 0, some_wait());
	add_checks(plan, 0, random_below(3));
	add(plan, OP_DETACH, 0, DETACHED_MS);
	if (random_below(4) == 0)
		plan->steps[plan->count - 1].cancel_ms = 1 + random_below(5);
	add(plan, OP_TOKEN, 0, 0);
	if (random_below(2))
	{
		add(plan, OP_JOIN, 0, 0);
		add_write(plan, 0);
		add(plan, OP_RELEASE, 0, 0);
	}
	add(plan, OP_THINK, 0, random_below(DETACHED_MS / 2));
	if (random_below(3))
		add(plan, OP_END, 0, 0);
	add(plan, OP_TOKEN, 0, 0);
}

/* Two locks in one call have one lease, and locks have theirs by their number. */
static void
start_several(Plan *plan)
{
	plan->lock[0] %= NORMAL_LOCKS - 3;
	plan->lock[1] = plan->lock[0] + 3;
	plan->lock_mode[0] = plan->lock_mode[1] = EXCLUSIVE;
	plan->at_least_ms[0] = plan->at_least_ms[1] = 0;	/* several locks have no minimum */
}

static void
plan_several(Plan *plan)
{
	start_several(plan);
	add(plan, OP_SEVERAL, 0, some_wait());
	if (random_below(3) == 0)
		plan->steps[0].cancel_ms = 1 + random_below(random_below(2) ? 10 : 300);
	add_checks(plan, 0, random_below(3));
	add(plan, OP_REQUIRE, 1, 0);
	add_write(plan, 0);
	add(plan, OP_RELEASE, 0, 0);
	add_checks(plan, 1, 2);
	add(plan, random_below(4) ? OP_RELEASE : OP_DISCONNECT, 1, 0);
}

static void
plan_several_in_transaction(Plan *plan)
{
	start_several(plan);
	add(plan, OP_BEGIN, 0, 0);
	add(plan, OP_XACT_SEVERAL, 0, some_wait());
	add(plan, OP_WRITE, 0, 0);
	add_checks(plan, 1, 2);
	add(plan, random_below(8) ? OP_COMMIT : OP_ROLLBACK, 0, 0);
	add(plan, OP_TOKEN, 1, 0);
}

/* A try, as the transaction may hold locks; now and then it is cancelled. */
static void
add_try(Plan *plan, Op op, int slot)
{
	add(plan, op, slot, 0);
	if (random_below(8) == 0)
		plan->steps[plan->count - 1].cancel_ms = 1 + random_below(10);
}

/*
 * Acquisitions of a transaction and of its savepoints, in both scopes.  A rollback undoes those for
 * the session, too, if the session has ddblock.release_on_rollback.  The savepoints all have one
 * name, so each command means the innermost one.
 */
static void
plan_rollbacks(Plan *plan)
{
	int			savepoints = 1;

	if (random_below(2))
		add(plan, OP_ACQUIRE, 0, some_wait());
	add(plan, OP_BEGIN, 0, 0);
	add(plan, OP_ACQUIRE, 0, some_wait());
	if (random_below(4) == 0)
		plan->steps[plan->count - 1].cancel_ms = 1 + random_below(random_below(2) ? 10 : 300);
	if (random_below(2))
		add(plan, OP_WRITE, 0, 0);
	add(plan, OP_SAVEPOINT, 0, 0);
	for (int i = random_below(10); i >= 0; i--)
	{
		int			slot = random_below(3) == 0;

		switch (random_below(8))
		{
			case 0:
				add(plan, OP_SAVEPOINT, 0, 0);
				savepoints++;
				break;
			case 1:
				if (savepoints > 0)
					add(plan, OP_ROLLBACK_TO, 0, 0);
				break;
			case 2:
				if (savepoints > 0)
				{
					add(plan, OP_KEEP_SAVEPOINT, 0, 0);
					savepoints--;
				}
				break;
			case 3:
				add(plan, OP_RELEASE, slot, 0);
				break;
			case 4:
				add_try(plan, OP_XACT_TRY, slot);
				break;
			case 5:
				add(plan, random_below(2) ? OP_TOKEN : OP_DEPTH, slot, 0);
				break;
			default:
				add_try(plan, OP_TRY, slot);
		}
	}
	add(plan, OP_DEPTH, 0, 0);
	if (random_below(10) == 0)
		add(plan, random_below(2) ? OP_TERMINATE : OP_DISCONNECT, 0, 0);
	add(plan, random_below(2) ? OP_COMMIT : OP_ROLLBACK, 0, 0);
	add(plan, OP_DEPTH, 0, 0);
	add(plan, OP_DEPTH, 1, 0);
	add(plan, OP_TOKEN, 0, 0);
	add(plan, OP_TOKEN, 1, 0);
	if (random_below(2))
		add(plan, OP_THINK, 0, random_below(1000));
	add(plan, OP_RELEASE_ALL, 0, 0);
}

/* A session that undoes leaves queues alone: it may keep a claim, and is to rest without one. */
void
plan_work(Plan *plan)
{
	static void (*const plans[]) (Plan *) = {
		plan_session_scope, plan_session_scope, plan_session_scope,
		plan_stacked, plan_stacked, plan_transaction, plan_transaction,
		plan_transaction, plan_disconnect, plan_cancelled, plan_early_release,
		plan_procedure, plan_procedure, plan_tries, plan_tries,
		plan_slow_transaction, plan_join, plan_join, plan_join, plan_detached,
		plan_several, plan_several, plan_several_in_transaction, plan_rollbacks,
		plan_leader, plan_leader, plan_leader, plan_leader, plan_leader
	};

	start_plan(plan);
	if (!plan->undoes && random_below(QUEUE_PLANS) == 0)
		plan_queue(plan);
	else if (plan->undoes && random_below(2))
		plan_rollbacks(plan);
	else
		plans[random_below(sizeof(plans) / sizeof(plans[0]))] (plan);
}

void
plan_probe(Plan *plan, int lock, int wait_ms)
{
	start_plan(plan);
	plan->lock[0] = lock;
	plan->lock_mode[0] = EXCLUSIVE;
	add(plan, OP_PROBE, 0, wait_ms);
	add(plan, OP_RELEASE, 0, 0);
}

/* A transaction whose backend stops itself around the guard. */
void
plan_stop(Plan *plan, bool before)
{
	start_plan(plan);
	if (plan_leader_stop(plan, before))
		return;
	add(plan, OP_ACQUIRE, 0, some_wait());
	add(plan, OP_BEGIN, 0, 0);
	add(plan, OP_WRITE, 0, 0);
	add(plan, OP_STOP, 0, before);
	add(plan, OP_COMMIT, 0, 0);
	add(plan, OP_TOKEN, 0, 0);
	add(plan, OP_RELEASE, 0, 0);
}

/* Has the plan a savepoint open, if its last step has failed? */
static bool
in_savepoint(const Plan *plan)
{
	int			open = 0;

	for (int i = 0; i < plan->next - 1; i++)
		open += (plan->steps[i].op == OP_SAVEPOINT) - (plan->steps[i].op == OP_KEEP_SAVEPOINT);
	return open > 0;
}

/*
 * What is left is dropped; what is held is looked at, and let go.  A transaction that has written
 * nothing may commit what it has acquired before its savepoint.
 */
void
plan_after_error(Plan *plan, bool in_transaction)
{
	bool		goes_back = in_transaction && in_savepoint(plan) && random_below(2);

	plan->count = plan->next = 0;
	if (goes_back)
	{
		add(plan, OP_ROLLBACK_TO, 0, 0);
		add(plan, OP_DEPTH, 0, 0);
	}
	if (in_transaction)
		add(plan, goes_back && plan->write_id == 0 ? OP_COMMIT : OP_ROLLBACK, 0, 0);
	add(plan, OP_DEPTH, 0, 0);
	add(plan, OP_TOKEN, 0, 0);
	add(plan, OP_RELEASE_ALL, 0, 0);
	add(plan, OP_TOKEN, 0, 0);
}

/* A call between two readings of the true time. */
void
timed(char *sql, const char *function, const char *arguments)
{
	snprintf(sql, SQL_SIZE, "SELECT torture_now(), %s(%s), torture_now()", function,
			 arguments);
}

static void
acquire_sql(const Plan *plan, const Step *step, const char *name, char *sql)
{
	static const char *const functions[][OP_PROBE + 1] = {
		[EXCLUSIVE] = {"ddb_lock_acquire", "ddb_lock_try_acquire", "ddb_xact_lock_acquire",
			"ddb_xact_lock_try_acquire", "ddb_lock_acquire"},
		[SHARED] = {"ddb_lock_acquire_shared", "ddb_lock_try_acquire_shared",
			"ddb_xact_lock_acquire_shared", "ddb_xact_lock_try_acquire_shared"},
		[SEMAPHORE] = {"ddb_semaphore_acquire", "ddb_semaphore_try_acquire",
			"ddb_xact_semaphore_acquire", "ddb_xact_semaphore_try_acquire"},
	};
	LockMode	mode = plan->lock_mode[step->slot];
	char		arguments[SQL_SIZE / 2];
	int			length = snprintf(arguments, sizeof(arguments), "'%s'", name);

	if (mode == SEMAPHORE)
		length += snprintf(arguments + length, sizeof(arguments) - length, ", %d, %d",
						   plan->limit[step->slot], plan->permits[step->slot]);
	length += snprintf(arguments + length, sizeof(arguments) - length, ", '%d ms'",
					   LEASE_MS(plan->lock[step->slot]));
	if (step->op != OP_TRY && step->op != OP_XACT_TRY)
		length += snprintf(arguments + length, sizeof(arguments) - length, ", '%d ms'", step->ms);
	if (mode == EXCLUSIVE && step->op != OP_PROBE && plan->at_least_ms[step->slot] > 0)
		snprintf(arguments + length, sizeof(arguments) - length, ", at_least => '%d ms'",
				 plan->at_least_ms[step->slot]);
	if (step->op == OP_TRY || step->op == OP_XACT_TRY)
		snprintf(sql, SQL_SIZE, "SELECT torture_now(), CASE WHEN %s(%s) THEN ddb_lock_require('%s') "
				 "END, torture_now()", functions[mode][step->op], arguments, name);
	else
		timed(sql, functions[mode][step->op], arguments);
}

/* In any order: the session takes them in that of their names. */
static void
several_sql(const Plan *plan, const Step *step, char *sql)
{
	char		names[2][16];

	lock_name(plan->lock[0], names[0], sizeof(names[0]));
	lock_name(plan->lock[1], names[1], sizeof(names[1]));
	snprintf(sql, SQL_SIZE, "SELECT before, t[1], torture_now(), t[2] FROM (SELECT torture_now() "
			 "AS before, %s_acquire_all('{%s,%s}', '%d ms', '%d ms') AS t OFFSET 0) AS s",
			 step->op == OP_SEVERAL ? "ddb_lock" : "ddb_xact_lock", names[0], names[1],
			 LEASE_MS(plan->lock[0]), step->ms);
}

/* No fence orders permits of a semaphore. */
static void
write_sql(Plan *plan, const Step *step, const char *name, char *sql)
{
	static const char *const functions[] = {
		[EXCLUSIVE] = "torture_write",[SHARED] = "torture_write_shared",
		[SEMAPHORE] = "torture_write_unfenced"
	};
	LockMode	mode = fenced ? plan->lock_mode[step->slot] : SEMAPHORE;

	plan->write_id = ++last_write_id;
	plan->written_slot = step->slot;
	snprintf(sql, SQL_SIZE, "SELECT %s('%s', %lld, %lld)",
			 functions[mode], name,
			 (long long) plan->token[step->slot], (long long) plan->write_id);
}

static void
procedure_sql(Plan *plan, const Step *step, const char *name, char *sql)
{
	plan->write_id = last_write_id + 1;
	last_write_id += 2;
	plan->written_slot = step->slot;
	snprintf(sql, SQL_SIZE,
			 "CALL torture_procedure('%s', '%d ms', '%d ms', %lld, NULL, NULL, NULL)",
			 name, LEASE_MS(plan->lock[step->slot]), step->ms,
			 (long long) plan->write_id);
}

/* False if the step is none of SQL. */
bool
step_sql(Plan *plan, const Step *step, char *sql)
{
	static const char *const fixed[] = {
		[OP_DISCARD] = "DISCARD ALL",[OP_BEGIN] = "BEGIN",
		[OP_SAVEPOINT] = "SAVEPOINT s",[OP_ROLLBACK_TO] = "ROLLBACK TO s",
		[OP_KEEP_SAVEPOINT] = "RELEASE s",[OP_COMMIT] = "COMMIT",
		[OP_ROLLBACK] = "ROLLBACK",[OP_THINK] = NULL,
		[OP_TERMINATE] = "SELECT pg_terminate_backend(pg_backend_pid())"
	};
	char		name[16];
	char		quoted[20];
	char		named[48];

	if (step->op >= OP_Q_BEGIN)
	{
		queue_sql(plan, step, sql);
		return true;
	}
	lock_name(plan->lock[step->slot], name, sizeof(name));
	snprintf(quoted, sizeof(quoted), "'%s'", name);
	if (step->op == OP_DETACH)
		snprintf(named, sizeof(named), "'%s', '%d ms'", name, step->ms);
	else
		snprintf(named, sizeof(named), "'%s', %lld", name, (long long) plan->token[step->slot]);
	switch (step->op)
	{
		case OP_ACQUIRE:
		case OP_TRY:
		case OP_XACT_ACQUIRE:
		case OP_XACT_TRY:
		case OP_PROBE:
			acquire_sql(plan, step, name, sql);
			return true;
		case OP_SEVERAL:
		case OP_XACT_SEVERAL:
			several_sql(plan, step, sql);
			return true;
		case OP_REQUIRE:
			timed(sql, "ddb_lock_require", quoted);
			return true;
		case OP_TOKEN:
			timed(sql, "ddb_lock_token", quoted);
			return true;
		case OP_RENEW:
			timed(sql, "ddb_lock_renew", quoted);
			return true;
		case OP_RELEASE:
			timed(sql, "ddb_lock_release", quoted);
			return true;
		case OP_JOIN:
			timed(sql, "ddb_lock_join", named);
			return true;
		case OP_DETACH:
			timed(sql, "ddb_lock_detach", named);
			return true;
		case OP_END:
			timed(sql, "ddb_lock_release_detached", named);
			return true;
		case OP_DEPTH:
			snprintf(sql, SQL_SIZE, "SELECT torture_now(), (SELECT coalesce(sum(depth), 0) FROM "
					 "ddb_locks WHERE name = %s AND pid = pg_backend_pid()), torture_now()", quoted);
			return true;
		case OP_RELEASE_ALL:
			timed(sql, "ddb_lock_release_all", "");
			return true;
		case OP_WRITE:
			write_sql(plan, step, name, sql);
			return true;
		case OP_PROCEDURE:
			procedure_sql(plan, step, name, sql);
			return true;
		case OP_STOP:
			snprintf(sql, SQL_SIZE, "SELECT torture_stop(%s)", step->ms ? "true" : "false");
			return true;
		case OP_LEAD:
		case OP_LEAD_REQUIRE:
		case OP_RESIGN:
		case OP_RESIGN_NOW:
			leader_sql(step, name, sql);
			return true;
		case OP_DISCONNECT:
		case OP_THINK:
			return false;
		default:
			snprintf(sql, SQL_SIZE, "%s", fixed[step->op]);
			return true;
	}
}
