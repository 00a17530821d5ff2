/*-------------------------------------------------------------------------
 *
 * test_lockmgr_random.c
 *	  Lock managers of several clusters through random work and faults.
 *
 * A seed's run: a storm of work and faults, then work without faults, then
 * all locks are released, taken once more, and all sessions end.  What must
 * hold is checked all the time: one believer per lock in true time, rising
 * tokens, one answer per request, no write under a believer's feet, nothing
 * left in the end.
 *
 * LOCKMGR_SEEDS=n runs that many seeds, LOCKMGR_SEED=n starts with that one
 * (and ends with it, too, without the former), LOCKMGR_TRACE=1 tells what
 * happens.
 *
 *-------------------------------------------------------------------------
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lockmgr_sim_host.h"

#define DEFAULT_SEEDS 250

static const dynamo_holder nobody = {.database = "test"};

static void
post(sim *s, int cluster, int slot, lockmgr_kind kind, int lock)
{
	sim_session *session = &s->cluster[cluster].sessions[slot];
	uint64_t	seq = session->request.seq + 1;
	int64_t		lease_ms = sim_between(s, 2000, SIM_LEASE_MAX_MS);

	session->request = (lockmgr_request) {
		.session = {(uint32_t) slot, session->generation},
		.seq = seq,
		.kind = kind,
		.name = sim_lock_names[lock],
		.name_len = strlen(sim_lock_names[lock]),
		.lease_ms = lease_ms,
		.margin_us = lease_ms * 100,
		.holder = &nobody,
		.data = sim_chance(s, 20) ? (const uint8_t *) "data" : NULL,
		.data_len = 4,
	};
	session->lock = lock;
	session->waiting = true;
	session->asked_at = s->now;
	sim_say(s, "%d: session %d posts request %" PRIu64 " kind %d %s", cluster, slot,
			seq, (int) kind, sim_lock_names[lock]);
}

static void
ring(sim *s, int cluster, int slot)
{
	sim_schedule(s, (sim_event) {
		.at = s->now + sim_between(s, 10, MS), .kind = SIM_BELL,
		.cluster = cluster, .slot = slot,
	});
}

static void
step_again(sim *s, int cluster, int slot)
{
	int64_t		at = s->now + sim_between(s, MS, sim_chance(s, 20) ? SECOND : 200 * MS);

	sim_schedule(s, (sim_event) {
		.at = at, .kind = SIM_STEP, .cluster = cluster, .slot = slot,
	});
}

static void
end_session(sim *s, int cluster, int slot)
{
	sim_session *session = &s->cluster[cluster].sessions[slot];

	sim_say(s, "%d: session %d ends", cluster, slot);
	session->generation++;
	session->waiting = false;
	memset(session->holds, 0, sizeof(session->holds));
}

static void
forget_hold(sim_session *session, uint32_t lease)
{
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		if (session->holds[i].used && session->holds[i].lease == lease)
			session->holds[i].used = false;
	}
}

static void
take_answer(sim *s, sim_session *session)
{
	const lockmgr_answer *answer = &session->answer;

	session->waiting = false;
	switch (answer->kind)
	{
		case LOCKMGR_ACQUIRE:
		case LOCKMGR_TRY:
			if (s->phase >= SIM_DRAIN && answer->result != LOCKMGR_GRANTED &&
				answer->result != LOCKMGR_BUSY && answer->result != LOCKMGR_NO_ROOM)
				sim_wrong(s, "result %d without a fault", (int) answer->result);
			if (answer->result != LOCKMGR_GRANTED)
				break;
			for (int i = 0; i < SIM_HOLDS; i++)
			{
				if (session->holds[i].used)
					continue;
				session->holds[i] = (sim_hold) {
					true, session->lock, answer->lease_index, answer->seq, answer->token,
				};
				break;
			}
			break;
		case LOCKMGR_RELEASE:
			if (answer->result == LOCKMGR_NOT_HELD)
				sim_wrong(s, "what was granted is said not to be held");
			forget_hold(session, session->request.lease_index);
			break;
		case LOCKMGR_RENEW:
			if (answer->result == LOCKMGR_NOT_HELD)
				sim_wrong(s, "what was granted is said not to be held");
			break;
		case LOCKMGR_LOOK_UP:
			break;
	}
}

static void
let_go(sim *s, int cluster, int slot, uint32_t lease)
{
	sim_cluster *c = &s->cluster[cluster];
	sim_session *session = &c->sessions[slot];

	sim_say(s, "%d: session %d lets go of lease %u", cluster, slot, lease);
	for (int i = 0; i < SIM_HOLDS; i++)
	{
		sim_hold   *hold = &session->holds[i];

		if (!hold->used || hold->lease != lease)
			continue;
		hold->used = false;
		/* The worker may have released it, and granted the next in its place. */
		if (c->saved[lease].seq == hold->seq &&
			c->saved[lease].session.slot == (uint32_t) slot)
			session->let_go = c->let_go[lease] = true;
	}
}

/*
 * The session no longer waits for its answer.  If it wanted to release, the
 * worker may not even have read that: letting go says it once more.
 */
static void
cancel(sim *s, int cluster, int slot)
{
	sim_session *session = &s->cluster[cluster].sessions[slot];

	sim_say(s, "%d: session %d cancels request %" PRIu64, cluster, slot,
			session->request.seq);
	session->waiting = false;
	if (session->request.kind == LOCKMGR_RELEASE)
		let_go(s, cluster, slot, session->request.lease_index);
	if (session->answer.seq == session->request.seq &&
		session->answer.result == LOCKMGR_GRANTED)
	{
		/* A later cancellation could hide this one from the worker. */
		take_answer(s, session);
		let_go(s, cluster, slot, session->answer.lease_index);
	}
	session->cancelled_seq = session->request.seq;
}

static void
ask_about(sim *s, int cluster, int slot, const sim_hold *hold, lockmgr_kind kind)
{
	lockmgr_request *request = &s->cluster[cluster].sessions[slot].request;

	post(s, cluster, slot, kind, hold->lock);
	request->lease_index = hold->lease;
	if (kind == LOCKMGR_RENEW && sim_chance(s, 50))
		request->lease_ms = request->margin_us = 0;
}

static void
use_hold(sim *s, int cluster, int slot, sim_hold *hold)
{
	sim_cluster *c = &s->cluster[cluster];
	const lease *l = &c->saved[hold->lease];
	int64_t		dice = sim_between(s, 0, 99);

	if ((l->state != LEASE_HELD && l->state != LEASE_LOST) || l->seq != hold->seq ||
		l->session.slot != (uint32_t) slot)
		sim_wrong(s, "a session's lease has vanished");
	if (s->phase >= SIM_DRAIN)
		dice = dice % 35;
	else if (sim_chance(s, s->idle_percent))
		return;
	if (dice < 25)
		ask_about(s, cluster, slot, hold, LOCKMGR_RELEASE);
	else if (dice < 35)
		let_go(s, cluster, slot, hold->lease);
	else if (dice < 50)
		ask_about(s, cluster, slot, hold, LOCKMGR_RENEW);
	else if (dice < 54)
		end_session(s, cluster, slot);
}

static void
work(sim *s, int cluster, int slot)
{
	sim_session *session = &s->cluster[cluster].sessions[slot];
	sim_hold   *hold = NULL;
	int			lock = (int) sim_between(s, 0, s->locks - 1);
	int64_t		dice = sim_between(s, 0, 99);

	for (int i = 0; i < SIM_HOLDS; i++)
	{
		if (session->holds[i].used)
			hold = &session->holds[i];
	}
	if (hold != NULL)
	{
		use_hold(s, cluster, slot, hold);
		if (session->generation % 2 == 1 && !session->waiting &&
			s->phase < SIM_DRAIN && dice < 5 &&
			!(session->holds[0].used && session->holds[1].used) && s->locks > 1)
			post(s, cluster, slot, LOCKMGR_TRY, (hold->lock + 1) % s->locks);
	}
	else if (s->phase >= SIM_DRAIN)
		;						/* no new work */
	else if (dice < 65)
		post(s, cluster, slot, LOCKMGR_ACQUIRE, lock);
	else if (dice < 85)
		post(s, cluster, slot, LOCKMGR_TRY, lock);
	else if (dice < 92)
		post(s, cluster, slot, LOCKMGR_LOOK_UP, lock);
}

/* A session does something. */
static void
step(sim *s, int cluster, int slot)
{
	sim_session *session = &s->cluster[cluster].sessions[slot];
	bool		restless = s->phase < SIM_DRAIN;

	if (s->phase == SIM_END)
	{
		if (session->generation % 2 == 1)
			end_session(s, cluster, slot);
		ring(s, cluster, slot);
		return;
	}
	step_again(s, cluster, slot);
	if (session->generation % 2 == 0)
		session->generation++;
	else if (session->waiting && restless && sim_chance(s, 2))
		end_session(s, cluster, slot);
	else if (session->waiting && restless && sim_chance(s, 7))
		cancel(s, cluster, slot);
	else if (!session->waiting)
		work(s, cluster, slot);
	else if (session->answer.seq == session->request.seq)
		take_answer(s, session);
	ring(s, cluster, slot);
}

static void
start_later(sim *s, int cluster)
{
	sim_schedule(s, (sim_event) {
		.at = s->now + sim_between(s, 10 * MS, sim_chance(s, 50) ? 100 * MS : 6 * SECOND),
		.kind = SIM_START, .cluster = cluster,
	});
}

static void
new_incarnation(sim_cluster *c, int cluster)
{
	snprintf(c->owner, sizeof(c->owner), "cluster%d/%u", cluster, ++c->incarnation);
}

/* Shared memory is lost with all sessions, and everything starts anew. */
static void
crash(sim *s, int cluster)
{
	sim_cluster *c = &s->cluster[cluster];

	sim_say(s, "%d: crashes", cluster);
	sim_kill_worker(s, cluster);
	memset(c->saved, 0, sizeof(c->saved));
	for (int i = 0; i < s->sessions; i++)
	{
		if (c->sessions[i].generation % 2 == 1)
			end_session(s, cluster, i);
	}
	new_incarnation(c, cluster);
	start_later(s, cluster);
}

static void
set_back(sim *s, int cluster)
{
	sim_cluster *c = &s->cluster[cluster];

	c->epoch_offset = sim_between(s, 1000 * SECOND, 1010 * SECOND) - c->offset;
	if (c->lm != NULL)
		lockmgr_set_clock(c->lm, c->epoch_offset);
}

static void
break_something(sim *s)
{
	int			cluster = (int) sim_between(s, 0, s->clusters - 1);
	sim_cluster *c = &s->cluster[cluster];
	int64_t		dice = sim_between(s, 0, 99);
	int64_t		lasting = sim_between(s, 0, 3 * SIM_LEASE_MAX_MS * MS);

	if (s->phase != SIM_STORM)
		return;
	sim_schedule(s, (sim_event) {
		.at = s->now + sim_between(s, SECOND / 2, 4 * SECOND),.kind = SIM_FAULT,
	});
	if (s->fault_percent == 0 || c->lm == NULL)
		return;
	if (dice < 25)
	{
		sim_say(s, "%d: is cut off", cluster);
		c->cut_until = s->now + lasting;
	}
	else if (dice < 50)
	{
		sim_say(s, "%d: the worker stops", cluster);
		c->paused_until = s->now + lasting / 2;
	}
	else if (dice < 75)
	{
		sim_kill_worker(s, cluster);
		start_later(s, cluster);
	}
	else if (dice < 80)
		crash(s, cluster);
	else if (dice < 90)
		set_back(s, cluster);
}

static void
handle(sim *s, const sim_event *event)
{
	sim_cluster *c = &s->cluster[event->cluster];
	bool		for_worker = event->kind == SIM_REPLY || event->kind == SIM_FAIL ||
		event->kind == SIM_BELL;

	if (for_worker && s->now < c->paused_until)
	{
		sim_event	later = *event;

		later.at = c->paused_until;
		sim_schedule(s, later);
		return;
	}
	switch (event->kind)
	{
		case SIM_APPLY:
			sim_apply(s, event->call);
			break;
		case SIM_REPLY:
			if (s->phase != SIM_STORM || s->now >= c->cut_until)
				sim_reply(s, event->call, DYNAMO_OK);
			break;
		case SIM_FAIL:
			sim_reply(s, event->call, event->status);
			break;
		case SIM_BELL:
			if (c->lm != NULL)
				sim_read_slot(s, c, event->slot);
			break;
		case SIM_STEP:
			step(s, event->cluster, event->slot);
			break;
		case SIM_START:
			if (c->lm == NULL)
				sim_start_worker(s, event->cluster);
			break;
		case SIM_FAULT:
			break_something(s);
			break;
	}
}

/* When the cluster's manager wants to be woken, in true time. */
static int64_t
wake_of(const sim *s, const sim_cluster *c)
{
	int64_t		wake = c->lm != NULL ? lockmgr_next_wake(c->lm) : INT64_MAX;

	if (wake == INT64_MAX)
		return wake;
	wake = sim_true(c, wake) + 100;
	if (wake < c->paused_until)
		wake = c->paused_until;
	return wake < s->now ? s->now : wake;
}

/* Runs until then, or until something is wrong. */
static void
run_until(sim *s, int64_t end)
{
	unsigned	still = 0;

	while (s->wrong[0] == '\0')
	{
		int			sleeper = -1;
		int64_t		next = s->event_count > 0 ? s->events[1].at : INT64_MAX;

		for (int i = 0; i < s->clusters; i++)
		{
			int64_t		wake = wake_of(s, &s->cluster[i]);

			if (wake < next)
			{
				next = wake;
				sleeper = i;
			}
		}
		if (next > end)
			break;
		still = next == s->now ? still + 1 : 0;
		if (still > 1000)
			sim_wrong(s, "spins");
		s->now = next;
		if (sleeper >= 0)
			lockmgr_tick(s->cluster[sleeper].lm, sim_local(s, &s->cluster[sleeper]));
		else
		{
			sim_event	event = sim_take_event(s);

			handle(s, &event);
			sim_drop_call(event.call);
		}
	}
	if (s->wrong[0] == '\0')
		s->now = end;
}

/* Does any session wait, or hold anything? */
static bool
busy(const sim *s)
{
	for (int c = 0; c < s->clusters; c++)
	{
		for (int i = 0; i < s->sessions; i++)
		{
			const sim_session *session = &s->cluster[c].sessions[i];

			if (session->waiting || session->holds[0].used || session->holds[1].used)
				return true;
		}
	}
	return false;
}

/* I6, I5: waits until all sessions have got what they wanted, given it back. */
static void
run_until_idle(sim *s, int64_t bound, const char *what)
{
	int64_t		end = s->now + bound;

	while (busy(s) && s->now < end && s->wrong[0] == '\0')
		run_until(s, s->now + SECOND / 4);
	for (int c = 0; c < s->clusters && busy(s); c++)
	{
		for (int i = 0; i < s->sessions; i++)
		{
			const sim_session *session = &s->cluster[c].sessions[i];

			if (session->waiting)
				sim_wrong(s, "%s: session %d of cluster %d waits, kind %d, lock %s",
						  what, i, c, (int) session->request.kind,
						  sim_lock_names[session->lock]);
		}
	}
	if (busy(s))
		sim_wrong(s, "%s: somebody holds a lock", what);
}

/* All sessions have ended: nothing may be left anywhere. */
static void
check_nothing_left(sim *s)
{
	for (int c = 0; c < s->clusters; c++)
	{
		lockmgr_counts counts;

		lockmgr_count(s->cluster[c].lm, &counts);
		if (counts.leases + counts.held + counts.waiters + counts.calls > 0)
			sim_wrong(s, "cluster %d still has %u leases, %u waiters, %u calls", c,
					  counts.leases, counts.waiters, counts.calls);
		if (counts.remembered > 2)
			sim_wrong(s, "%u locks are remembered", counts.remembered);
		for (uint32_t i = 0; i < s->max_leases; i++)
		{
			if (s->cluster[c].saved[i].state != LEASE_FREE)
				sim_wrong(s, "lease %u is still saved", i);
		}
	}
	for (int i = 0; i < s->locks; i++)
	{
		const double_item *item = double_item_of(&s->table, sim_lock_names[i]);

		if (double_is_held(item))
			sim_wrong(s, "%s is still held", sim_lock_names[i]);
		if (item->item.exists &&
			(item->item.owner[0] == '\0' || item->item.version[0] == '\0' ||
			 item->item.lease_ms == 0))
			sim_wrong(s, "%s is no lock item", sim_lock_names[i]);
	}
}

static void
set_up(sim *s)
{
	s->clusters = (int) sim_between(s, 1, SIM_CLUSTERS);
	s->sessions = (int) sim_between(s, 1, SIM_SESSIONS);
	s->locks = (int) sim_between(s, 1, SIM_LOCKS);
	s->max_leases = sim_chance(s, 80) ? SIM_LEASES : (uint32_t) sim_between(s, 3, SIM_LEASES);
	s->max_calls = sim_chance(s, 70) ? 8 : (uint32_t) sim_between(s, 1, 2);
	s->fault_percent = sim_chance(s, 10) ? 0 : (unsigned) sim_between(s, 1, 80);
	s->late_percent = sim_chance(s, 30) ? 0 : (unsigned) sim_between(s, 1, 50);
	s->idle_percent = sim_chance(s, 50) ? 0 : (unsigned) sim_between(s, 50, 98);
	for (int c = 0; c < s->clusters; c++)
	{
		s->cluster[c].ppm = sim_between(s, -50000, 50000);
		s->cluster[c].offset = sim_between(s, 1, 1000 * SECOND);
		s->cluster[c].refuses_batches = sim_chance(s, 20);
		new_incarnation(&s->cluster[c], c);
		set_back(s, c);
		sim_start_worker(s, c);
		for (int i = 0; i < s->sessions; i++)
			step_again(s, c, i);
	}
	sim_schedule(s, (sim_event) {.at = SECOND,.kind = SIM_FAULT});
}

static void
tear_down(sim *s)
{
	for (int c = 0; c < s->clusters; c++)
		lockmgr_free(s->cluster[c].lm);
	while (s->event_count > 0)
	{
		sim_event	event = sim_take_event(s);

		sim_drop_call(event.call);
	}
	double_free(&s->table);
	free(s->events);
	free(s);
}

static void
play(sim *s)
{
	set_up(s);
	run_until(s, sim_between(s, 20, 40) * SECOND);

	/* Until the last late copy has arrived. */
	s->phase = SIM_CALM;
	run_until(s, s->now + 3 * SIM_LEASE_MAX_MS * MS + 3 * SECOND);

	s->phase = SIM_DRAIN;
	run_until_idle(s, 60 * SECOND, "no faults");

	s->phase = SIM_PROBE;
	for (int i = 0; i < s->locks && s->wrong[0] == '\0'; i++)
	{
		int			c = (int) sim_between(s, 0, s->clusters - 1);
		sim_session *session = &s->cluster[c].sessions[0];

		if (session->generation % 2 == 0)
			session->generation++;
		post(s, c, 0, LOCKMGR_ACQUIRE, i);
		ring(s, c, 0);
		run_until_idle(s, 8 * SECOND, "taken once more");
	}

	s->phase = SIM_END;
	run_until(s, s->now + 2 * SIM_LEASE_MAX_MS * MS);
	if (s->wrong[0] == '\0')
		check_nothing_left(s);
}

static uint64_t
number_from_environment(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value != NULL ? strtoull(value, NULL, 10) : otherwise;
}

static void
runs_any_seed(void **state)
{
	bool		one = getenv("LOCKMGR_SEED") != NULL;
	uint64_t	first = number_from_environment("LOCKMGR_SEED", 1);
	uint64_t	seeds = number_from_environment("LOCKMGR_SEEDS", one ? 1 : DEFAULT_SEEDS);
	uint64_t	grants = 0;
	uint64_t	losses = 0;
	unsigned	wrong = 0;

	(void) state;
	for (uint64_t seed = first; seed < first + seeds; seed++)
	{
		sim		   *s = calloc(1, sizeof(sim));

		assert_non_null(s);
		s->seed = s->random = seed;
		s->trace = getenv("LOCKMGR_TRACE") != NULL;
		play(s);
		if (s->wrong[0] != '\0')
		{
			wrong++;
			print_error("LOCKMGR_SEED=%" PRIu64 ": after %.6f s: %s\n", seed,
						(double) s->now / 1e6, s->wrong);
		}
		grants += s->grants;
		losses += s->losses;
		tear_down(s);
	}
	print_message("# %" PRIu64 " seeds, %" PRIu64 " grants, %" PRIu64 " leases lost\n",
				  seeds, grants, losses);
	assert_true(one || (grants > 10 * seeds && losses > seeds / 4));
	assert_int_equal(wrong, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_any_seed),
	};

	return cmocka_run_group_tests_name("lockmgr random", tests, NULL, NULL);
}
