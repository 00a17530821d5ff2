/*-------------------------------------------------------------------------
 *
 * lockmgr_scenarios.h
 *	  Courses of an acquire, for tests that interrupt it at every moment.
 *
 * In each, session 0 wants lock "a", and gets it unless interrupted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_TEST_LOCKMGR_SCENARIOS_H
#define DDBLOCK_TEST_LOCKMGR_SCENARIOS_H

#include "lockmgr_harness.h"

#define HOLDER 9				/* the session that has the lock first */

typedef struct scenario
{
	const char *name;
	void		(*prepare) (harness *h);	/* before session 0 asks */
	void		(*event) (harness *h);	/* what ends its wait, or NULL */
	int64_t		event_at;		/* after it asked */
	int64_t		granted_by;		/* when it has the lock, at the latest */
	int64_t		every;			/* the time between two moments */
} scenario;

static inline void
prepare_nothing(harness *h)
{
	(void) h;
}

static inline void
prepare_losses(harness *h)
{
	next_fate(h, FATE_LOST_REPLY);
	next_fate(h, FATE_LOST_REQUEST);
}

static inline void
prepare_refusals(harness *h)
{
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	next_fate(h, fate_of(DYNAMO_UNREACHABLE));
	next_fate(h, fate_of(DYNAMO_CONFLICT));
}

static inline void
prepare_foreign(harness *h)
{
	foreign_hold(h, "a", "v1", LEASE_MS, 1);
}

static inline void
let_foreign_go(harness *h)
{
	foreign_release(h, "a");
}

static inline void
prepare_dying(harness *h)
{
	foreign_hold(h, "a", "v1", 2000, 1);
}

static inline void
prepare_local(harness *h)
{
	get(h, HOLDER, "a");
}

static inline void
let_local_go(harness *h)
{
	let_go(h, HOLDER, "a");
}

static inline void
let_local_go_badly(harness *h)
{
	next_fate(h, FATE_LOST_REPLY);
	next_fate(h, fate_of(DYNAMO_THROTTLED));
	let_go(h, HOLDER, "a");
}

static inline void
prepare_high_token(harness *h)
{
	foreign_hold(h, "a", "v1", LEASE_MS, h->now + h->epoch_offset + LEASE_US);
	foreign_release(h, "a");
}

static inline void
prepare_full_line(harness *h)
{
	h->config.max_calls = 1;
	kill_manager(h);
	start_manager(h);
	next_fate(h, FATE_LOST_REQUEST);
	acquire(h, HOLDER, "b");
}

static const scenario scenarios[] = {
	{"free", prepare_nothing, NULL, 0, 6 * MS, MS},
	{"lost", prepare_losses, NULL, 0, 3 * SECOND, 13 * MS},
	{"refused", prepare_refusals, NULL, 0, SECOND, 3 * MS},
	{"foreign", prepare_foreign, let_foreign_go, 200 * MS, 400 * MS, MS},
	{"dying", prepare_dying, NULL, 0, 2200 * MS, 7 * MS},
	{"local", prepare_local, let_local_go, 20 * MS, 30 * MS, MS},
	{"badly handed over", prepare_local, let_local_go_badly, 20 * MS, 3 * SECOND, 13 * MS},
	{"token too low", prepare_high_token, NULL, 0, 12 * MS, MS},
	{"full line", prepare_full_line, NULL, 0, 2 * SECOND, 17 * MS},
};

/* An assertion whose message has scenario and moment. */
#define assert_then(s, moment, condition) \
	do { \
		if (!(condition)) \
			fail_msg("%s, interrupted after %lld us: not %s", (s)->name, \
					 (long long) (moment), #condition); \
	} while (0)

/* Runs until that time after the request, with the event if it is due. */
static inline void
run_scenario(harness *h, const scenario *s, int64_t duration)
{
	int64_t		asked = h->now;

	if (s->event != NULL && s->event_at < duration)
	{
		run_until(h, asked + s->event_at);
		s->event(h);
	}
	run_until(h, asked + duration);
}

/* Makes the event happen, if it has not yet. */
static inline void
rest_of_scenario(harness *h, const scenario *s, int64_t duration, int64_t since)
{
	if (s->event == NULL || s->event_at < duration)
		return;
	if (s->event_at > duration + since)
		run(h, s->event_at - duration - since);
	s->event(h);
}

#endif							/* DDBLOCK_TEST_LOCKMGR_SCENARIOS_H */
