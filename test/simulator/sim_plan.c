/*-------------------------------------------------------------------------
 *
 * sim_plan.c
 *	  Draws the parameters of a run.
 *
 * Most runs are short storms, which find races.  Crowds test queues, batches
 * and limits.  Long runs test what needs hours: clocks that drift apart, long
 * leases, and faults that last as long.  Hot runs have no faults: they measure
 * how long each cluster waits for the others, for one lock, or for a shared lock and
 * a semaphore.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

static void
draw_storm(sim *s, sim_plan *plan)
{
	plan->clusters = (int) sim_between(s, 1, SIM_CLUSTERS);
	plan->sessions = (int) sim_between(s, 1, 6);
	plan->locks = (int) sim_between(s, 1, 3);
	plan->max_leases = sim_chance(s, 80) ? 8 : (uint32_t) sim_between(s, 3, 8);
	plan->max_calls = sim_chance(s, 70) ? 8 : (uint32_t) sim_between(s, 1, 2);
	plan->lease_min_ms = 2000;
	plan->lease_max_ms = sim_chance(s, 60) ? 4000 : 8000;
	plan->storm = sim_between(s, 30, 60) * SECOND;
	plan->step = 200 * MS;
	plan->fault_every = 4 * SECOND;
	plan->idle_percent = sim_chance(s, 50) ? 0 : (unsigned) sim_between(s, 50, 98);
	plan->fault_percent = sim_chance(s, 10) ? 0 : (unsigned) sim_between(s, 1, 80);
}

static void
draw_crowd(sim *s, sim_plan *plan)
{
	plan->clusters = (int) sim_between(s, 2, SIM_CLUSTERS);
	plan->sessions = (int) sim_between(s, 50, 200);
	plan->locks = (int) sim_between(s, 12, 48);
	plan->max_leases = (uint32_t) sim_between(s, 32, 128);
	plan->max_calls = (uint32_t) sim_between(s, 4, 16);
	plan->lease_min_ms = 4000;
	plan->lease_max_ms = 20000;
	plan->storm = sim_between(s, 3, 6) * MINUTE;
	plan->step = sim_between(s, 1, 20) * SECOND;
	plan->fault_every = 15 * SECOND;
	plan->idle_percent = (unsigned) sim_between(s, 50, 95);
	plan->fault_percent = sim_chance(s, 20) ? 0 : (unsigned) sim_between(s, 1, 30);
}

static void
draw_long(sim *s, sim_plan *plan)
{
	plan->clusters = (int) sim_between(s, 2, SIM_CLUSTERS);
	plan->sessions = (int) sim_between(s, 2, 8);
	plan->locks = (int) sim_between(s, 1, 6);
	plan->max_leases = 16;
	plan->max_calls = 8;
	plan->lease_max_ms = sim_between(s, 20, 600) * 1000;
	plan->lease_min_ms = plan->lease_max_ms / 4;
	plan->storm = sim_between(s, 2, 12) * 60 * MINUTE;
	plan->step = plan->lease_max_ms * MS;
	plan->fault_every = plan->lease_max_ms * MS * sim_between(s, 1, 3);
	plan->idle_percent = (unsigned) sim_between(s, 0, 90);
	plan->fault_percent = sim_chance(s, 20) ? 0 : (unsigned) sim_between(s, 1, 40);
}

static void
draw_hot(sim *s, sim_plan *plan)
{
	plan->clusters = (int) sim_between(s, 2, SIM_CLUSTERS);
	plan->sessions = (int) sim_between(s, 2, 16);
	plan->locks = 1;
	plan->max_leases = 8;
	plan->max_calls = 8;
	plan->lease_min_ms = 4000;
	plan->lease_max_ms = 8000;
	plan->storm = sim_between(s, 30, 60) * SECOND;
	plan->step = sim_between(s, 1, 40) * MS;
	plan->fault_every = 4 * SECOND;
	plan->eager = sim_chance(s, 50);
	if (!plan->eager)
		return;
	plan->sessions = (int) sim_between(s, 1, 2);
	plan->step = sim_between(s, 1, sim_chance(s, 50) ? 100 : 1000) * MS;
}

/* All locks are those of a queue's resources, and nothing makes their tokens fall. */
static void
draw_queue(sim_plan *plan)
{
	plan->queue = true;
	plan->locks -= plan->leadership;
	plan->leadership = plan->joins = plan->operator = plan->purge = plan->forges = false;
	plan->foreigners = 0;
	plan->several_percent = plan->shared_percent = plan->keep_percent = plan->limit_percent = 0;
}

/* One semaphore: who has let go of permits takes them again at once, and some want several. */
static void
draw_permits(sim_plan *plan)
{
	plan->permits = true;
	plan->locks = 1;
	plan->storm = 20 * SECOND;
	plan->shared_percent = 100;
	plan->foreigners = 0;
	plan->one_exclusive = plan->stands_still = false;
}

void
sim_draw_plan(sim *s)
{
	sim_plan   *plan = &s->plan;
	int64_t		dice = sim_between(s, 0, 99);

	plan->kind = dice < 92 ? KIND_STORM : dice < 95 ? KIND_CROWD :
		dice < 98 ? KIND_LONG : KIND_HOT;
	/* Not drawn: the other seeds are as they would be without these. */
	if (s->seed % 25 == 3)
		plan->kind = KIND_HOT;
	plan->hop = 8 * MS;
	plan->poll_interval_us = sim_chance(s, 50) ? 250 * MS : sim_between(s, 20, 2000) * MS;
	switch (plan->kind)
	{
		case KIND_STORM:
			draw_storm(s, plan);
			break;
		case KIND_CROWD:
			draw_crowd(s, plan);
			break;
		case KIND_LONG:
			draw_long(s, plan);
			break;
		default:
			draw_hot(s, plan);
			break;
	}
	plan->same_percent = plan->kind == KIND_HOT ? 100 : sim_chance(s, 50) ? 30 : 95;
	plan->shared_percent = plan->eager || sim_chance(s, 40) ? 0 : (unsigned) sim_between(s, 10, 90);
	plan->one_exclusive = plan->kind == KIND_HOT && plan->shared_percent > 0 && sim_chance(s, 50);
	if (plan->kind == KIND_HOT && plan->shared_percent > 0)
		plan->locks = 2;		/* a shared lock and a semaphore */
	plan->keep_percent = plan->kind == KIND_HOT || sim_chance(s, 60) ? 0 :
		(unsigned) sim_between(s, 5, 50);
	plan->keep_max_ms = plan->lease_max_ms;
	plan->limit_percent = sim_chance(s, 60) ? 0 : (unsigned) sim_between(s, 5, 50);
	plan->late_percent = sim_chance(s, 30) ? 0 : (unsigned) sim_between(s, 1, 50);
	plan->quiet = plan->kind != KIND_HOT && sim_chance(s, 50);
	plan->latest = 3 * plan->lease_max_ms * MS;
	if (plan->quiet && sim_chance(s, 50))
		plan->late_percent = (unsigned) sim_between(s, 30, 90);
	if (plan->quiet && plan->kind != KIND_CROWD && plan->latest < SIGNATURE)
		plan->latest = SIGNATURE + MINUTE;
	plan->foreigners = sim_chance(s, 60) ? 0 : (int) sim_between(s, 1, SIM_FOREIGNERS);
	plan->operator = plan->kind != KIND_HOT && sim_chance(s, 20);
	plan->purge = plan->kind != KIND_HOT && sim_chance(s, 30);
	plan->clock_error = sim_chance(s, 70) ? 50 * MS : 5 * SECOND;
	plan->hours = sim_chance(s, 20);
	plan->by_clock = sim_chance(s, 60);
	plan->slack = sim_between(s, 1, 5) * SECOND;
	plan->date_error = plan->by_clock && sim_chance(s, 50) ? plan->slack / 2 : 0;
	plan->own_front_end = plan->date_error > 0 && sim_chance(s, 50);
	plan->stands_still = plan->by_clock && plan->fault_percent > 0 && sim_chance(s, 50);
	plan->joins = plan->kind != KIND_HOT && sim_chance(s, 60);
	plan->several_percent = plan->kind == KIND_HOT || sim_chance(s, 50) ? 0 :
		(unsigned) sim_between(s, 10, 80);
	plan->leadership = plan->kind != KIND_HOT && sim_chance(s, 30);
	plan->locks += plan->leadership;
	plan->forges = plan->kind != KIND_HOT && sim_chance(s, 20);
	if (plan->kind == KIND_STORM && s->seed % 5 == 0)
		draw_queue(plan);
	/* Slow servers: replies take up to 400 ms. */
	if (plan->kind == KIND_STORM && s->seed % 7 == 0)
		plan->hop = sim_between(s, 10, 200) * MS;
	if (s->seed % 25 == 3)
		draw_permits(plan);
}
