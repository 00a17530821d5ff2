/*
 * queue_plans.c
 *	  What a session of the torture does with queues: plans, drawn by lot, their SQL, and
 *	  what the history tells of them.
 *
 * Each job has a number of its own, its uid, which is in its payload.  So the checker knows it
 * wherever it turns up.  The last resource of each queue is dropped now and then.
 */
#include "client.h"

#include <stdlib.h>
#include <string.h>

#define QUEUE_LEASE_MS 2500
#define ATTEMPTS_MOST 3				/* as in queues.py */
#define ARRAY_MOST 4
#define REMEMBERED 64

/* Pushes with ids, which any session may repeat. */
static Push remembered[REMEMBERED];
static int	remembered_count = 0;
static int64_t last_uid = 0;

static void
some_push(Push *push)
{
	push->queue = random_below(QUEUES);
	push->resource = random_below(RESOURCES);
	push->jobs = random_below(3) ? 1 : 2 + random_below(ARRAY_MOST - 1);
	push->uid = last_uid + 1;
	last_uid += push->jobs;
	push->with_ids = false;
}

/* Now and then twice: an id counts once. */
static void
plan_push(Plan *plan)
{
	some_push(&plan->push);
	plan->push.with_ids = random_below(3) == 0;
	if (plan->push.with_ids)
		remembered[remembered_count++ % REMEMBERED] = plan->push;
	add(plan, OP_Q_PUSH, 0, 0);
	if (random_below(8) == 0)
		plan->steps[0].cancel_ms = 1 + random_below(20);
	if (plan->push.with_ids && random_below(3) == 0)
		add(plan, OP_Q_PUSH, 0, 0);
}

static void
plan_push_again(Plan *plan)
{
	int			known = remembered_count < REMEMBERED ? remembered_count : REMEMBERED;

	if (known == 0)
	{
		plan_push(plan);
		return;
	}
	plan->push = remembered[random_below(known)];
	add(plan, OP_Q_PUSH, 0, 0);
}

/* A job that is pushed if the transaction commits. */
static void
plan_outbox(Plan *plan)
{
	some_push(&plan->push);
	add(plan, OP_Q_BEGIN, 0, 0);
	add(plan, OP_Q_OUTBOX, 0, 0);
	if (random_below(4) == 0)
		add(plan, OP_ROLLBACK, 0, 0);
	else
		add(plan, random_below(8) ? OP_Q_COMMIT : OP_DISCONNECT, 0, 0);
	add(plan, OP_Q_SEND, 0, 0);
}

static void
add_next(Plan *plan)
{
	plan->claim.queue = random_below(QUEUES);
	plan->claim.resource = random_below(3) ? RESOURCE_ANY : random_below(RESOURCES);
	add(plan, OP_Q_NEXT, 0, random_below(3) ? random_below(1500) : 0);
	if (random_below(12) == 0)
		plan->steps[plan->count - 1].cancel_ms = 1 + random_below(30);
}

static void
add_requires(Plan *plan)
{
	for (int i = random_below(3); i > 0; i--)
		add(plan, random_below(3) ? OP_Q_REQUIRE : OP_THINK, 0, random_below(100));
}

/* The work and its completion, in one transaction; end is COMMIT or ROLLBACK. */
static void
add_transaction(Plan *plan, int think_ms, Op end)
{
	add(plan, OP_Q_BEGIN, 0, 0);
	add(plan, OP_Q_WORK, 0, random_below(4));
	add(plan, OP_Q_COMPLETE, 0, 1);
	if (think_ms > 0)
		add(plan, OP_THINK, 0, think_ms);
	add(plan, end, 0, 0);
}

static void
plan_work_off(Plan *plan)
{
	add_next(plan);
	add_requires(plan);
	add_transaction(plan, 0, OP_Q_COMMIT);
	if (random_below(5) == 0)
		add(plan, OP_DISCONNECT, 0, 0);
}

/* The work commits first, its completion after that, or never: then the job comes again. */
static void
plan_work_apart(Plan *plan)
{
	add_next(plan);
	add(plan, OP_Q_WORK, 0, random_below(4));
	if (random_below(3))
		add(plan, OP_Q_COMPLETE, 0, 0);
	else if (random_below(2))
		add(plan, OP_Q_FAIL, 0, random_below(500));
	else
		add(plan, OP_DISCONNECT, 0, 0);
}

/* Claim, work and completion in one transaction. */
static void
plan_work_at_once(Plan *plan)
{
	add(plan, OP_Q_BEGIN, 0, 0);
	add_next(plan);
	add(plan, OP_Q_WORK, 0, random_below(4));
	add(plan, OP_Q_COMPLETE, 0, 1);
	add(plan, random_below(6) ? OP_Q_COMMIT : OP_ROLLBACK, 0, 0);
}

/* The lease may be lost before the completion, or before COMMIT. */
static void
plan_work_slowly(Plan *plan)
{
	int			pause = 500 + random_below(4000);
	bool		early = random_below(2) != 0;

	add_next(plan);
	if (early)
		add(plan, OP_THINK, 0, pause);
	add_transaction(plan, early ? 0 : pause, OP_Q_COMMIT);
}

static void
plan_work_rolled_back(Plan *plan)
{
	add_next(plan);
	add_transaction(plan, 0, OP_ROLLBACK);
	add_requires(plan);
	if (random_below(2))
		add_transaction(plan, 0, OP_Q_COMMIT);
	else
		add(plan, OP_Q_FAIL, 0, random_below(1500));
}

static void
plan_fail(Plan *plan)
{
	add_next(plan);
	add_requires(plan);
	add(plan, OP_Q_FAIL, 0, random_below(2) ? 0 : random_below(1500));
}

/* The end of a session with a job, at times in the middle of its transaction. */
static void
plan_die(Plan *plan)
{
	add_next(plan);
	if (random_below(2))
	{
		add_transaction(plan, 0, OP_DISCONNECT);
		return;
	}
	add_requires(plan);
	add(plan, OP_DISCONNECT, 0, 0);
}

static void
plan_drop(Plan *plan)
{
	plan->claim.queue = random_below(QUEUES);
	plan->claim.resource = RESOURCES - 1;
	add(plan, OP_Q_DROP, 0, 0);
}

static void
plan_redrive(Plan *plan)
{
	plan->claim.queue = random_below(QUEUES);
	add(plan, OP_Q_DEAD, 0, 0);
	add(plan, OP_Q_REDRIVE, 0, 0);
}

void
plan_queue(Plan *plan)
{
	static void (*const plans[]) (Plan *) = {
		plan_push, plan_push, plan_push, plan_push, plan_push, plan_push_again, plan_outbox,
		plan_work_off, plan_work_off, plan_work_off, plan_work_off, plan_work_off,
		plan_work_off, plan_work_off, plan_work_off, plan_work_off, plan_work_off,
		plan_work_apart, plan_work_apart, plan_work_apart, plan_work_at_once,
		plan_work_at_once, plan_work_slowly, plan_work_rolled_back, plan_fail, plan_fail,
		plan_fail, plan_fail, plan_die, plan_drop, plan_redrive
	};

	plan->claim = (Claim) {0};
	plans[random_below(sizeof(plans) / sizeof(plans[0]))] (plan);
}

/* Its cluster is cut off between the completion and COMMIT: see completion_late() in faults.py. */
void
plan_late(Plan *plan)
{
	plan->count = plan->next = 0;
	some_push(&plan->push);
	plan->claim = (Claim) {.queue = plan->push.queue,.resource = plan->push.resource};
	add(plan, OP_Q_PUSH, 0, 0);
	add(plan, OP_Q_NEXT, 0, 500);
	add_transaction(plan, 1000, OP_Q_COMMIT);
}

void
plan_drain(Plan *plan, int queue)
{
	plan->count = plan->next = 0;
	plan->claim = (Claim) {.queue = queue,.resource = RESOURCE_ANY};
	add(plan, OP_Q_NEXT, 0, 0);
	add_transaction(plan, 0, OP_Q_COMMIT);
}

/* "'q0', 'r1', 17" */
static void
job_arguments(const Plan *plan, char *text, size_t size)
{
	snprintf(text, size, "'q%d', 'r%d', %lld", plan->claim.queue, plan->claim.resource,
			 (long long) plan->claim.number);
}

static void
push_sql(const Push *push, const char *function, char *sql)
{
	snprintf(sql, SQL_SIZE, "SELECT * FROM %s('q%d', 'r%d', %lld, %d, %s)", function, push->queue,
			 push->resource, (long long) push->uid, push->jobs, push->with_ids ? "true" : "false");
}

static void
next_sql(const Plan *plan, const Step *step, char *sql)
{
	char		resources[32] = "NULL";

	if (plan->claim.resource != RESOURCE_ANY)
		snprintf(resources, sizeof(resources), "'{r%d}'", plan->claim.resource);
	snprintf(sql, SQL_SIZE, "SELECT * FROM torture_next('q%d', '%d ms', '%d ms', %s, %d)",
			 plan->claim.queue, step->ms, QUEUE_LEASE_MS, resources, ATTEMPTS_MOST);
}

static void
fail_sql(const Step *step, const char *job, char *sql)
{
	char		arguments[SQL_SIZE / 2];

	snprintf(arguments, sizeof(arguments), "%s, 'torture', '%d ms'", job, step->ms);
	timed(sql, "ddb_queue_fail", arguments);
}

void
queue_sql(const Plan *plan, const Step *step, char *sql)
{
	char		text[80];

	job_arguments(plan, text, sizeof(text));
	switch (step->op)
	{
		case OP_Q_PUSH:
			push_sql(&plan->push, "torture_push", sql);
			break;
		case OP_Q_OUTBOX:
			push_sql(&plan->push, "torture_outbox", sql);
			break;
		case OP_Q_SEND:
			timed(sql, "ddb_outbox_send", "");
			break;
		case OP_Q_NEXT:
			next_sql(plan, step, sql);
			break;
		case OP_Q_REQUIRE:
			snprintf(text, sizeof(text), "'queue/q%d/r%d'", plan->claim.queue, plan->claim.resource);
			timed(sql, "ddb_lock_require", text);
			break;
		case OP_Q_WORK:
			snprintf(text + strlen(text), sizeof(text) - strlen(text), ", %lld, %s",
					 (long long) plan->claim.uid, step->ms ? "true" : "false");
			timed(sql, "torture_work", text);
			break;
		case OP_Q_COMPLETE:
			timed(sql, "ddb_queue_complete", text);
			break;
		case OP_Q_FAIL:
			fail_sql(step, text, sql);
			break;
		case OP_Q_DEAD:
			snprintf(sql, SQL_SIZE, "SELECT * FROM torture_dead('q%d')", plan->claim.queue);
			break;
		case OP_Q_REDRIVE:
			snprintf(sql, SQL_SIZE, "SELECT torture_now(), ddb_queue_redrive('q%d', '%019lld#r%d'), "
					 "torture_now()", plan->claim.queue, (long long) plan->claim.number,
					 plan->claim.resource);
			break;
		case OP_Q_DROP:
			snprintf(text, sizeof(text), "'q%d', 'r%d'", plan->claim.queue, plan->claim.resource);
			timed(sql, "ddb_queue_drop", text);
			break;
		default:
			snprintf(sql, SQL_SIZE, step->op == OP_Q_BEGIN ? "BEGIN" : "COMMIT");
	}
}

static int64_t
number_in(const PGresult *result, int column)
{
	return strtoll(PQgetvalue(result, 0, column), NULL, 10);
}

/* What a claim and a look at the dead have brought; false: nothing. */
bool
queue_take(Plan *plan, const Step *step, const PGresult *result)
{
	if (step->op != OP_Q_NEXT && step->op != OP_Q_DEAD)
		return true;
	plan->claim.number = number_in(result, 2);
	if (plan->claim.number == 0)
		return false;
	plan->claim.resource = atoi(PQgetvalue(result, 0, 1) + 1);
	plan->claim.uid = number_in(result, 3);
	plan->claim.attempt = (int) number_in(result, 4);
	plan->claim.token = number_in(result, 5);
	return true;
}

/* "uid:number" of each job, in the order of the push; the result is NULL, or has its numbers. */
static void
put_pushed(FILE *file, const Push *push, const PGresult *result)
{
	const char *numbers = result != NULL ? PQgetvalue(result, 0, 1) : "";

	for (int i = 0; i < push->jobs; i++)
	{
		numbers += strcspn(numbers, "123456789");
		fprintf(file, "%s%lld:%lld", i > 0 ? "," : "", (long long) push->uid + i,
				strtoll(numbers, NULL, 10));
		numbers += strspn(numbers, "0123456789");
	}
}

static void
put_place(FILE *file, int queue, int resource, int64_t token)
{
	fprintf(file, "q%d\tr%d\t%lld\t", queue, resource, (long long) token);
}

/* Queue, resource, token; the caller has put what comes before. */
void
queue_put_place(FILE *file, const Plan *plan, const Step *step)
{
	if (step->op == OP_Q_PUSH || step->op == OP_Q_OUTBOX)
		put_place(file, plan->push.queue, plan->push.resource, 0);
	else
		put_place(file, plan->claim.queue, plan->claim.resource, plan->claim.token);
}

/* The jobs, and a detail: what the call has returned; result NULL: it has failed. */
void
queue_put_jobs(FILE *file, const Plan *plan, const Step *step, const PGresult *result)
{
	if (step->op == OP_Q_PUSH || step->op == OP_Q_OUTBOX)
		put_pushed(file, &plan->push, step->op == OP_Q_PUSH ? result : NULL);
	else if (plan->claim.number > 0 && step->op != OP_Q_BEGIN)
		fprintf(file, "%lld:%lld", (long long) plan->claim.uid, (long long) plan->claim.number);
	else
		fputc('-', file);
	fputc('\t', file);
	if (step->op == OP_Q_NEXT)
		fprintf(file, "%d", plan->claim.attempt);
	else if (step->op == OP_Q_COMPLETE)
		fputs(step->ms ? "in transaction" : "", file);
	else if (result != NULL && PQnfields(result) == 3 && step->op != OP_Q_PUSH)
		fputs(PQgetvalue(result, 0, 1), file);
}
