/*
 * leaders.c
 *	  What a session of the torture does for its cluster's leaderships: transactions that
 *	  work if the cluster leads, and now and then a resignation.
 *
 * A transaction asks first, and may ask again when it has worked: what it has joined
 * lasts until it ends.
 */
#include "client.h"

#include <stdio.h>

bool
op_leads(Op op)
{
	return op == OP_LEAD || op == OP_LEAD_REQUIRE;
}

static void
start_leader(Plan *plan, int leadership)
{
	plan->lock[0] = LOCKS + leadership;
	plan->lock_mode[0] = EXCLUSIVE;
	plan->at_least_ms[0] = 0;
}

/* Some end soon; with others, the leadership may be lost or given up meanwhile. */
static int
some_work(void)
{
	return random_below(2) ? random_below(100) : 500 + random_below(4000);
}

static void
plan_resign(Plan *plan)
{
	add(plan, random_below(2) ? OP_RESIGN : OP_RESIGN_NOW, 0, 1 + random_below(2000));
	add(plan, OP_BEGIN, 0, 0);
	add(plan, OP_LEAD, 0, 0);
	add(plan, OP_COMMIT, 0, 0);
}

/* What asks in a savepoint has joined, whatever becomes of that. */
static void
ask(Plan *plan)
{
	add(plan, OP_BEGIN, 0, 0);
	if (random_below(5) == 0)
	{
		add(plan, OP_SAVEPOINT, 0, 0);
		add(plan, OP_LEAD, 0, 0);
		add(plan, OP_ROLLBACK_TO, 0, 0);
	}
	else
		add(plan, random_below(5) ? OP_LEAD : OP_LEAD_REQUIRE, 0, 0);
}

void
plan_leader(Plan *plan)
{
	int			leadership = random_below(LEADERSHIPS);

	start_leader(plan, leadership);
	if (random_below(plan->heard[LOCKS + leadership] != 0 ? 10 : 50) == 0)
	{
		plan_resign(plan);
		return;
	}
	ask(plan);
	add(plan, OP_WRITE, 0, 0);
	add(plan, OP_THINK, 0, some_work());
	if (random_below(2))
	{
		add(plan, random_below(2) ? OP_LEAD : OP_REQUIRE, 0, 0);
		add(plan, OP_TOKEN, 0, 0);
	}
	if (random_below(20) == 0)
		add(plan, OP_DISCONNECT, 0, 0);
	add(plan, random_below(8) ? OP_COMMIT : OP_ROLLBACK, 0, 0);
	add(plan, OP_TOKEN, 0, 0);
}

/*
 * A leader's transaction whose backend stops itself around the guard.  False: the
 * cluster leads nothing, as far as its sessions have heard, or another plan has its turn.
 */
bool
plan_leader_stop(Plan *plan, bool before)
{
	int			leadership = random_below(LEADERSHIPS);

	if (plan->heard[LOCKS + leadership] == 0 || random_below(2))
		return false;
	start_leader(plan, leadership);
	add(plan, OP_BEGIN, 0, 0);
	add(plan, OP_LEAD, 0, 0);
	add(plan, OP_WRITE, 0, 0);
	add(plan, OP_STOP, 0, before);
	add(plan, OP_COMMIT, 0, 0);
	add(plan, OP_TOKEN, 0, 0);
	return true;
}

/* The cluster does not lead: the transaction ends. */
void
plan_follower(Plan *plan)
{
	plan->count = plan->next = 0;
	add(plan, OP_ROLLBACK, 0, 0);
}

void
leader_sql(const Step *step, const char *name, char *sql)
{
	char		arguments[SQL_SIZE / 2];

	if (step->op == OP_LEAD)
		snprintf(sql, SQL_SIZE, "SELECT torture_now(), CASE WHEN ddb_leadership_held('%s') "
				 "THEN ddb_leadership_require('%s') END, torture_now()", name, name);
	else if (step->op == OP_LEAD_REQUIRE)
	{
		snprintf(arguments, sizeof(arguments), "'%s'", name);
		timed(sql, "ddb_leadership_require", arguments);
	}
	else
	{
		snprintf(arguments, sizeof(arguments), "'%s', '%d ms', %s", name, step->ms,
				 step->op == OP_RESIGN_NOW ? "'50 ms'" : "NULL");
		timed(sql, "ddb_leadership_resign", arguments);
	}
}
