/*-------------------------------------------------------------------------
 *
 * sim_fault.c
 *	  Faults of clusters, workers and backends (sim_network.c has those of
 *	  calls).
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

/* A new worker starts, soon or after the leases have expired. */
void
sim_start_later(sim *s, const sim_cluster *c)
{
	int64_t		lease = s->plan.lease_max_ms * MS;

	sim_schedule(s, (sim_event) {
		.at = s->now + sim_between(s, 10 * MS, sim_chance(s, 50) ? 100 * MS : lease * 3 / 2),
		.kind = SIM_START, .cluster = c->number,
	});
}

/* A crash restart: shared memory and all sessions are gone. */
static void
crash(sim *s, sim_cluster *c)
{
	sim_say(s, "%d: crashes", c->number);
	sim_kill_worker(s, c);
	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		if (c->saved[i].l.state == LEASE_HELD)
			sim_touch(s, c->saved[i].lock, c->saved[i].l.mode);
	}
	sim_journal_keep(s, c);
	memset(c->saved, 0, s->plan.max_leases * sizeof(sim_saved));
	memset(c->saved_holds, 0, s->plan.max_leases * sizeof(sim_saved_hold));
	for (int i = 0; i < s->plan.locks; i++)
		c->lease_of[i] = -1;
	memset(c->slots, 0, ((size_t) s->plan.sessions + 1) * sizeof(sim_slot));
	memset(c->stand.entries, 0, sizeof(c->stand.entries));
	sim_queue_crashes(s, c);
	c->stand.seen.state = LEADERSHIP_NONE;
	c->stand.wake = INT64_MAX;
	for (int i = 0; i < s->plan.sessions; i++)
	{
		sim_forget_session(s, c, &c->sessions[i]);
		c->sessions[i].detached = (sim_detached) {.used = false};
	}
	sim_new_incarnation(c);
	sim_start_later(s, c);
}

/* Sets the error of the wall clock, which only a new incarnation uses. */
void
sim_set_clock(sim *s, sim_cluster *c, int64_t error)
{
	c->wall_error = error;
	if (s->plan.hours)
		c->wall_error += sim_between(s, -1, 1) * 60 * MINUTE;
}

/*
 * The machine stands still, as if a hypervisor had stopped it: its clock loses that time.
 * Only while it has no lease, and acquires none: what is held then is beyond what ddblock
 * promises.  The wall clock is set right afterwards, or not.
 */
static void
stand_still(sim *s, sim_cluster *c)
{
	int64_t		duration = sim_between(s, 1, 60) * SECOND;

	for (uint32_t i = 0; i < s->plan.max_leases; i++)
	{
		if (c->saved[i].l.state != LEASE_FREE)
			return;
	}
	if (s->now < c->still_until || s->now + duration > s->plan.storm)
		return;
	sim_count(s, FAULT_STOOD_STILL);
	sim_say(s, "%d: stands still for %" PRId64 " s", c->number, duration / SECOND);
	c->lost_before = sim_lost_time(s, c);
	c->still_since = s->now;
	c->still_until = s->now + duration;
	sim_pause(c, c->still_until);
	if (c->troubled_at < c->still_until)
		c->troubled_at = c->still_until;
	if (sim_chance(s, 50))
		c->wall_error -= duration;
}

/* A session that holds a lock, or -1. */
static int
some_holder(sim *s, const sim_cluster *c)
{
	int			slot = (int) sim_between(s, 0, s->plan.sessions - 1);

	for (int i = 0; i < s->plan.sessions; i++)
	{
		int			at = (slot + i) % s->plan.sessions;

		if (c->sessions[at].holds[0].used && !c->sessions[at].waiting)
			return at;
	}
	return -1;
}

static void
stop_backend(sim *s, sim_cluster *c)
{
	int			slot = some_holder(s, c);

	if (slot < 0)
		return;
	sim_count(s, FAULT_BACKEND_STOPPED);
	sim_say(s, "%d: session %d stops", c->number, slot);
	sim_step_at(s, c, slot, s->now + sim_between(s, 1, 6) * s->plan.lease_max_ms * MS / 2);
}

static void
kill_backend(sim *s, sim_cluster *c)
{
	int			slot = some_holder(s, c);

	if (slot < 0)
		return;
	sim_count(s, FAULT_BACKEND_KILLED);
	sim_end_session(s, c, slot);
}

static void
break_cluster(sim *s, sim_cluster *c)
{
	int64_t		dice = sim_between(s, 0, 99);
	int64_t		lease = s->plan.lease_max_ms * MS;
	int64_t		until = s->now + sim_between(s, 1, 6) * lease / 2;
	sim_fault	fault = dice < 16 ? FAULT_CUT : dice < 24 ? FAULT_THROTTLED_ALL :
		dice < 30 ? FAULT_NO_CREDENTIALS : dice < 44 ? FAULT_WORKER_STOPPED :
		dice < 60 ? FAULT_WORKER_KILLED : dice < 65 ? FAULT_CRASH :
		dice < 69 ? FAULT_CLOCK_SET : dice < 80 ? FAULT_ABSURD_DATE :
		dice < 92 ? FAULT_BACKEND_STOPPED : FAULT_BACKEND_KILLED;

	if (fault == FAULT_BACKEND_STOPPED)
	{
		stop_backend(s, c);
		return;
	}
	if (fault == FAULT_BACKEND_KILLED)
	{
		kill_backend(s, c);
		return;
	}
	sim_count(s, fault);
	/* Faults overlap: keep the end of the longest. */
	if (fault != FAULT_CLOCK_SET && fault != FAULT_ABSURD_DATE && c->troubled_at < until)
		c->troubled_at = until;
	sim_say(s, "%d: %s", c->number, sim_fault_names[fault]);
	switch (fault)
	{
		case FAULT_CUT:
			c->cut_until = until;
			break;
		case FAULT_THROTTLED_ALL:
			c->throttled_until = until;
			break;
		case FAULT_NO_CREDENTIALS:
			c->no_credentials_until = until;
			break;
		case FAULT_WORKER_STOPPED:
			sim_pause(c, sim_chance(s, 30) ? s->now + lease / 10 : until);
			break;
		case FAULT_WORKER_KILLED:
			c->effects_left = (int) sim_between(s, 0, 6);
			break;
		case FAULT_CRASH:
			crash(s, c);
			break;
		case FAULT_ABSURD_DATE:
			c->absurd_date = !s->plan.stands_still;
			break;
		default:
			sim_set_clock(s, c, sim_between(s, -s->plan.clock_error, s->plan.clock_error));
			break;
	}
}

void
sim_break(sim *s)
{
	sim_cluster *c = &s->cluster[sim_between(s, 0, s->plan.clusters - 1)];

	if (s->phase != PHASE_STORM)
		return;
	sim_schedule(s, (sim_event) {
		.at = s->now + sim_between(s, s->plan.fault_every / 8, s->plan.fault_every),
		.kind = SIM_BREAK,
	});
	for (int i = 0; i < s->plan.clusters && s->plan.stands_still; i++)
	{
		if (sim_chance(s, 40))
			stand_still(s, &s->cluster[i]);
	}
	if (s->plan.fault_percent > 0 && c->worker.lm != NULL)
		break_cluster(s, c);
}
