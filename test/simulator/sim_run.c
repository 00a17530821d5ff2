/*-------------------------------------------------------------------------
 *
 * sim_run.c
 *	  The phases of a run: work under faults, in half of the runs a quiet time until
 *	  all copies have arrived, work without faults, release of all locks, one more
 *	  acquire of every lock, end of all sessions.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

static bool
for_worker(const sim_event *event)
{
	return event->kind == SIM_REPLY || event->kind == SIM_ERROR || event->kind == SIM_BELL ||
		event->kind == SIM_FIT || event->kind == SIM_JOURNAL;
}

static void
handle(sim *s, const sim_event *event)
{
	sim_cluster *c = &s->cluster[event->cluster % SIM_CLUSTERS];

	if ((for_worker(event) && s->now < c->paused_until) ||
		((event->kind == SIM_STEP || event->kind == SIM_START) && s->now < c->still_until))
	{
		sim_event	later = *event;

		later.at = for_worker(event) ? c->paused_until : c->still_until;
		sim_schedule(s, later);
		return;
	}
	switch (event->kind)
	{
		case SIM_APPLY:
			sim_apply(s, event->call);
			break;
		case SIM_REPLY:
		case SIM_ERROR:
			sim_reply(s, event->call, event->kind, event->variant);
			break;
		case SIM_BELL:
			if (c->worker.lm != NULL)
				sim_read_slot(s, c, event->slot);
			break;
		case SIM_FIT:
			sim_table_known(s, c);
			break;
		case SIM_JOURNAL:
			sim_journal_send(s, c, event);
			break;
		case SIM_STEP:
			if (event->steps == c->sessions[event->slot].steps)
				sim_step(s, c, event->slot);
			break;
		case SIM_START:
			if (c->worker.lm == NULL)
				sim_start_worker(s, c);
			break;
		case SIM_BREAK:
			sim_break(s);
			break;
		case SIM_FOREIGN:
			sim_foreign_step(s, event->cluster);
			break;
		case SIM_FOREIGN_APPLY:
			sim_foreign_apply(s, event->cluster, event->variant, event->slot);
			break;
		case SIM_HAND:
			sim_hand(s);
			break;
		case SIM_REPAIR:
			sim_repair(s, event->cluster);
			break;
		case SIM_AUDIT:
			sim_audit(s);
			break;
	}
}

/* When the cluster's lock manager is due, in true time. */
static int64_t
wake_of(const sim *s, const sim_cluster *c)
{
	int64_t		wake;

	if (c->worker.lm == NULL)
		return INT64_MAX;
	wake = lockmgr_next_wake(c->worker.lm);
	if (c->stand.wake < wake)
		wake = c->stand.wake;
	if (c->queues != NULL && sim_queue_wake(c) < wake)
		wake = sim_queue_wake(c);
	if (wake == INT64_MAX)
		return wake;
	wake = sim_true(c, wake) + 100;
	if (wake < c->paused_until)
		wake = c->paused_until;
	return wake < s->now ? s->now : wake;
}

/* The cluster whose lock manager is due before the next event, or NULL. */
static sim_cluster *
next_to_wake(sim *s, int64_t *at)
{
	sim_cluster *sleeper = NULL;

	*at = s->event_count > 0 ? s->events[1].at : INT64_MAX;
	for (int i = 0; i < s->plan.clusters; i++)
	{
		int64_t		wake = wake_of(s, &s->cluster[i]);

		if (wake < *at)
		{
			*at = wake;
			sleeper = &s->cluster[i];
		}
	}
	return sleeper;
}

/* A worker that died in the middle of an event is gone at its end. */
static void
bury_dead(sim *s)
{
	for (int i = 0; i < s->plan.clusters; i++)
	{
		sim_cluster *c = &s->cluster[i];

		if (c->worker.lm == NULL || !sim_is_dying(c))
			continue;
		sim_kill_worker(s, c);
		sim_start_later(s, c);
	}
}

/* Runs until that time, or until a promise is broken. */
static void
run_until(sim *s, int64_t end)
{
	unsigned	still = 0;

	while (s->wrong[0] == '\0')
	{
		int64_t		next;
		sim_cluster *sleeper = next_to_wake(s, &next);

		if (next > end)
			break;
		still = next == s->now ? still + 1 : 0;
		if (still > 20000)
			sim_wrong(s, "I6: the lock manager spins");
		s->now = next;
		s->totals->events++;
		if (sleeper != NULL)
		{
			sim_tell_time(s, sleeper);
			lockmgr_tick(sleeper->worker.lm, sim_local(s, sleeper));
			sim_run_leaderships(s, sleeper);
			sim_run_queue(s, sleeper);
		}
		else
		{
			sim_event	event = sim_take_event(s);

			handle(s, &event);
			if (for_worker(&event) || event.kind == SIM_START)
			{
				sim_run_leaderships(s, &s->cluster[event.cluster % SIM_CLUSTERS]);
				sim_run_queue(s, &s->cluster[event.cluster % SIM_CLUSTERS]);
			}
			sim_drop_call(event.call);
		}
		bury_dead(s);
	}
	if (s->wrong[0] == '\0')
		s->now = end;
}

/* A session that waits or holds a lock, or NULL. */
static const sim_session *
find_busy(const sim *s, int *cluster, int *slot)
{
	for (*cluster = 0; *cluster < s->plan.clusters; ++*cluster)
	{
		for (*slot = 0; *slot < s->plan.sessions; ++*slot)
		{
			const sim_session *session = &s->cluster[*cluster].sessions[*slot];

			if (sim_busy(session))
				return session;
		}
	}
	return NULL;
}

/* I5, I6: runs until no session waits or holds a lock; an error after bound. */
static void
run_until_idle(sim *s, int64_t bound, const char *what)
{
	int64_t		end = s->now + bound;
	int			cluster;
	int			slot;
	const sim_session *session;

	while ((session = find_busy(s, &cluster, &slot)) != NULL && s->now < end &&
		   s->wrong[0] == '\0')
		run_until(s, s->now + SECOND / 4);
	if (session != NULL)
		sim_wrong(s, "I6: %s: session %d of cluster %d %s %s", what, slot, cluster,
				  session->waiting ? "waits for" : "holds",
				  s->lock[session->waiting ? session->lock : session->holds[0].lock].name);
}

static void
new_phase(sim *s, sim_phase phase)
{
	static const char *const names[] = {"storm", "quiet", "calm", "drain", "probe", "end"};

	bool		stirs = phase == PHASE_CALM ? s->phase == PHASE_QUIET : phase != PHASE_STORM;

	s->phase = phase;
	sim_say(s, "---- %s", names[phase]);
	for (int c = 0; c < s->plan.clusters; c++)
	{
		if (s->cluster[c].troubled_at < s->now)
			s->cluster[c].troubled_at = s->now;
		/* Whoever was to die in the middle of an event lives on. */
		s->cluster[c].effects_left = -1;
		for (int i = 0; i < s->plan.sessions && stirs; i++)
			sim_step_at(s, &s->cluster[c], i, s->now + sim_between(s, 0, SECOND));
	}
}

static void
new_cluster(sim *s, int number)
{
	sim_cluster *c = &s->cluster[number];
	size_t		sessions = (size_t) s->plan.sessions + 1;	/* and the leadership's slot */

	c->number = number;
	c->saved = calloc(s->plan.max_leases, sizeof(sim_saved));
	c->saved_holds = calloc(s->plan.max_leases, sizeof(sim_saved_hold));
	c->lease_of = malloc((size_t) s->plan.locks * sizeof(int));
	c->had = calloc((size_t) s->plan.locks, sizeof(int64_t));
	c->shared_wait = calloc((size_t) s->plan.locks, sizeof(int64_t));
	c->sessions = calloc(sessions, sizeof(sim_session));
	c->slots = calloc(sessions, sizeof(sim_slot));
	c->worker.notes = calloc(sessions, sizeof(mailbox_note));
	c->owed = calloc(sessions, sizeof(uint64_t));
	if (c->saved == NULL || c->saved_holds == NULL || c->lease_of == NULL || c->had == NULL ||
		c->shared_wait == NULL || c->sessions == NULL || c->slots == NULL || c->worker.notes == NULL || c->owed == NULL)
		abort();
	sim_mailbox_new(s, c);
	sim_queue_new(s, c);
	sim_stand_new(s, c);
	for (int i = 0; i < s->plan.locks; i++)
		c->lease_of[i] = -1;
	c->ppm = sim_between(s, -50000, 50000);
	c->offset = sim_between(s, 1, 1000 * SECOND);
	c->refuses_batches = sim_chance(s, 20);
	c->breaks_batches = sim_chance(s, 10);
	c->by_clock = s->plan.by_clock && sim_chance(s, 80);
	sim_new_incarnation(c);
	sim_set_clock(s, c, sim_between(s, -s->plan.clock_error, s->plan.clock_error));
	sim_start_worker(s, c);
	for (int i = 0; i < s->plan.sessions; i++)
		sim_step_at(s, c, i, s->now + sim_between(s, 0, s->plan.step));
}

static void
set_up(sim *s)
{
	s->random = s->seed;
	sim_draw_plan(s);
	sim_say(s, "seed %" PRIu64 ": %s, %d clusters of %d sessions, %d locks, %d foreigners, "
			"leases of %" PRId64 " to %" PRId64 " ms, %u %% faults%s%s", s->seed,
			sim_kind_names[s->plan.kind], s->plan.clusters, s->plan.sessions,
			s->plan.locks, s->plan.foreigners, s->plan.lease_min_ms,
			s->plan.lease_max_ms, s->plan.fault_percent,
			s->plan.operator ? ", operator" : "", s->plan.hours ? ", hours" : "");
	sim_nonces_new(&s->nonces);
	sim_table_new(s);
	sim_queue_table_new(s);
	for (int i = 0; i < s->plan.clusters; i++)
		new_cluster(s, i);
	sim_foreign_new(s);
	sim_schedule(s, (sim_event) {.at = SECOND,.kind = SIM_BREAK});
	sim_schedule(s, (sim_event) {.at = SECOND,.kind = SIM_HAND});
	sim_schedule(s, (sim_event) {.at = SECOND,.kind = SIM_AUDIT});
}

static void
tear_down(sim *s)
{
	for (int i = 0; i < s->plan.clusters; i++)
	{
		lockmgr_free(s->cluster[i].worker.lm);
		free(s->cluster[i].saved);
		free(s->cluster[i].saved_holds);
		free(s->cluster[i].lease_of);
		free(s->cluster[i].dead);
		free(s->cluster[i].had);
		free(s->cluster[i].shared_wait);
		free(s->cluster[i].sessions);
		free(s->cluster[i].slots);
		free(s->cluster[i].worker.notes);
		free(s->cluster[i].owed);
		sim_queue_free(s, &s->cluster[i]);
	}
	while (s->event_count > 0)
		sim_drop_call(sim_take_event(s).call);
	free(s->events);
	sim_nonces_free(&s->nonces);
	sim_table_free(s);
	free(s->resources);
}

/* Q1: all jobs are worked off, within the bound. */
static void
work_off(sim *s)
{
	int64_t		end = s->now + 15 * MINUTE;

	while (sim_queue_left(s) && s->now < end && s->wrong[0] == '\0')
	{
		sim_queue_work_off(s);
		run_until(s, s->now + SECOND / 4);
	}
	if (sim_queue_left(s))
		sim_wrong(s, "Q1: a job waits for ever");
	run_until_idle(s, 30 * SECOND, "no jobs");
	sim_check_queue(s);
}

/* I5: each lock can be acquired once more, within the bound. */
static void
probe(sim *s)
{
	for (int i = 0; i < s->plan.locks && s->wrong[0] == '\0'; i++)
	{
		sim_cluster *c = &s->cluster[sim_between(s, 0, s->plan.clusters - 1)];

		if (c->sessions[0].me.generation == 0)
			sim_attach(s, c, 0);
		sim_post(s, c, 0, LOCKMGR_ACQUIRE, i);
		run_until_idle(s, sim_patience(s), "taken once more");
	}
}

static bool
calls_under_way(const sim *s)
{
	bool		any = false;

	for (int i = 0; i < s->plan.clusters; i++)
	{
		lockmgr_counts counts;

		lockmgr_count(s->cluster[i].worker.lm, &counts);
		any |= counts.calls > 0;
	}
	return any;
}

/*
 * I5: all sessions end, some in the middle of a request.  When the last copy has arrived
 * whose signature is young enough, no item is held.  A clock that is slow sees that later.
 */
static void
be_quiet(sim *s)
{
	new_phase(s, PHASE_QUIET);
	s->quiet_since = s->now;
	for (int i = 0; i < s->plan.clusters; i++)
	{
		if (s->quiet_since < s->cluster[i].troubled_at)
			s->quiet_since = s->cluster[i].troubled_at;
	}
	run_until(s, s->now + SIGNATURE * 108 / 100 + MINUTE + 3 * s->plan.lease_max_ms * MS);
	if (s->wrong[0] == '\0')
		sim_check_nothing_left(s);
	s->totals->audits++;
	for (int i = 0; i < s->plan.clusters; i++)
		sim_learn_time(s, &s->cluster[i]);
}

void
sim_run(sim *s)
{
	int64_t		lease;
	int64_t		quiet;			/* most of that time, nothing happens: it does not count */

	set_up(s);
	lease = s->plan.lease_max_ms * MS;
	run_until(s, s->plan.storm);
	if (s->plan.quiet)
		be_quiet(s);
	quiet = s->now - s->plan.storm;

	/* This is long enough for the last late copy to arrive. */
	new_phase(s, PHASE_CALM);
	run_until(s, s->now + 3 * lease + 3 * SECOND);
	new_phase(s, PHASE_DRAIN);
	run_until_idle(s, 4 * lease + 30 * SECOND + sim_keep_patience(s) +
				   s->plan.sessions * SIM_CLUSTERS * SECOND, "no faults");
	work_off(s);
	new_phase(s, PHASE_PROBE);
	probe(s);
	new_phase(s, PHASE_END);
	run_until(s, s->now + 2 * lease);
	if (s->wrong[0] == '\0' && calls_under_way(s))
		run_until(s, s->now + SECOND);	/* an item is deleted when its minimum is over */
	if (s->wrong[0] == '\0')
		sim_check_nothing_left(s);
	s->totals->seeds[s->plan.kind]++;
	s->totals->simulated[s->plan.kind] += s->now - quiet;
	tear_down(s);
}
