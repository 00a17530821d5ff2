/*-------------------------------------------------------------------------
 *
 * sim_race.c
 *	  Sessions and worker act between each other's steps.
 *
 * src/lock/mailbox.c is compiled so that it calls sim_between_steps() before
 * each access to a word in shared memory.  There, by chance, the other side
 * acts.  While the worker reads a slot or answers, the slot's session posts,
 * cancels or ends, or a new session attaches.  While a session acts, the worker
 * reads the slot or is replaced.  The side that acts in between is not
 * interrupted itself.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

static sim_race current;
static bool in_between;

/* The other side may act until sim_end_race() gets the returned value. */
sim_race
sim_begin_race(sim *s, sim_cluster *c, int slot, sim_side side)
{
	sim_race	before = current;

	current = (sim_race) {s, c, slot, side};
	return before;
}

void
sim_end_race(sim_race before)
{
	current = before;
}

static void
sessions_act(sim *s, sim_cluster *c, int slot)
{
	sim_say(s, "%d: meanwhile, in slot %d:", c->number, slot);
	s->hasty = true;
	for (int64_t i = sim_between(s, 1, 5); i > 0; i--)
		sim_step(s, c, slot);
	s->hasty = false;
}

static void
worker_acts(sim *s, sim_cluster *c, int slot)
{
	if (s->now < c->paused_until)
		return;
	sim_say(s, "%d: meanwhile, the worker:", c->number);
	if (c->worker.lm != NULL && s->plan.fault_percent > 0 && sim_chance(s, 20))
	{
		sim_count(s, FAULT_WORKER_KILLED);
		sim_kill_worker(s, c);
		sim_start_worker(s, c);
	}
	else if (c->worker.lm != NULL)
		sim_read_slot(s, c, slot);
	sim_run_queue(s, c);
}

/* The worker is about to end a job's hold: by chance, a session completes another job. */
void
sim_complete_meanwhile(sim *s, sim_cluster *c)
{
	if (in_between || !sim_chance(s, 20))
		return;
	in_between = true;
	sim_queue_complete_one(s, c);
	in_between = false;
}

void
sim_between_steps(void)
{
	sim		   *s = current.s;

	if (s == NULL || in_between || current.slot == s->plan.sessions || s->plan.kind != KIND_STORM || s->phase != PHASE_STORM ||
		!sim_chance(s, 2))
		return;
	in_between = true;
	if (current.side == SIDE_HINTS)
		sim_queue_meanwhile(s, current.c);
	else if (current.side == SIDE_WORKER)
		sessions_act(s, current.c, current.slot);
	else
		worker_acts(s, current.c, current.slot);
	in_between = false;
}
