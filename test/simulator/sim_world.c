/*-------------------------------------------------------------------------
 *
 * sim_world.c
 *	  Random numbers, clocks, the queue of events, and the trace.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

#include <stdarg.h>

#include "base/uuid.h"

const char *const sim_kind_names[KIND_COUNT] = {"storm", "crowd", "long", "hot"};

const char *const sim_fault_names[FAULT_COUNT] = {
	[FAULT_REQUEST_DROPPED] = "request dropped",
	[FAULT_REPLY_DROPPED] = "reply dropped",
	[FAULT_DUPLICATED] = "duplicated",
	[FAULT_SLOW] = "slow",
	[FAULT_LATE] = "held back",
	[FAULT_EXPIRED] = "signature expired",
	[FAULT_RESET_APPLIED] = "reset, applied",
	[FAULT_RESET] = "reset, not applied",
	[FAULT_500_APPLIED] = "500, applied",
	[FAULT_500] = "500, not applied",
	[FAULT_503_APPLIED] = "503, applied",
	[FAULT_503] = "503, not applied",
	[FAULT_THROTTLED] = "throttled",
	[FAULT_CONFLICT] = "conflict",
	[FAULT_UNREACHABLE] = "unreachable",
	[FAULT_TRUNCATED] = "reply truncated",
	[FAULT_CORRUPT] = "reply corrupt",
	[FAULT_EMPTY] = "empty success",
	[FAULT_STATEMENT_FAILED] = "statement failed",
	[FAULT_REPLY_UNREAD] = "reply read late",
	[FAULT_STALE_POLL] = "stale poll",
	[FAULT_BATCH_REFUSED] = "batch refused",
	[FAULT_BATCH_BROKEN] = "batch broken",
	[FAULT_NO_CREDENTIALS] = "credentials expired",
	[FAULT_CUT] = "partition",
	[FAULT_THROTTLED_ALL] = "everything throttled",
	[FAULT_WORKER_STOPPED] = "worker stopped",
	[FAULT_WORKER_KILLED] = "worker killed",
	[FAULT_CRASH] = "crash restart",
	[FAULT_CLOCK_SET] = "wall clock set",
	[FAULT_STOOD_STILL] = "machine stood still",
	[FAULT_ABSURD_DATE] = "absurd Date",
	[FAULT_BACKEND_STOPPED] = "backend stopped",
	[FAULT_BACKEND_KILLED] = "backend killed",
	[FAULT_ITEM_DELETED] = "item deleted",
	[FAULT_ITEM_EDITED] = "item edited",
	[FAULT_ITEM_RELEASED] = "item released by hand",
	[FAULT_ITEM_PURGED] = "released item purged",
	[FAULT_MARK_FORGED] = "mark forged",
};

uint64_t
sim_random(sim *s)
{
	/* splitmix64 */
	uint64_t	z = (s->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

int64_t
sim_between(sim *s, int64_t from, int64_t to)
{
	return from + (int64_t) (sim_random(s) % (uint64_t) (to - from + 1));
}

bool
sim_chance(sim *s, unsigned percent)
{
	return sim_random(s) % 100 < percent;
}

void
sim_say(const sim *s, const char *format,...)
{
	va_list		args;

	if (!s->trace)
		return;
	printf("%14.6f  ", (double) s->now / 1e6);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* In the trace: its end, since others begin with the time. */
const char *
sim_short(const char *version)
{
	size_t		len = strlen(version);

	return version + (len > 8 ? len - 8 : 0);
}

/* A promise is broken; only the first is kept. */
void
sim_wrong(sim *s, const char *format,...)
{
	va_list		args;

	if (s->wrong[0] != '\0' ||
		(s->without != NULL && strncmp(format, s->without, strlen(s->without)) == 0))
		return;
	va_start(args, format);
	vsnprintf(s->wrong, sizeof(s->wrong), format, args);
	va_end(args);
	sim_say(s, "BROKEN: %s", s->wrong);
}

void
sim_count(sim *s, sim_fault fault)
{
	s->totals->faults[fault]++;
}

static int64_t
local_at(const sim_cluster *c, int64_t at)
{
	return c->offset + at + at / 1000000 * c->ppm + at % 1000000 * c->ppm / 1000000;
}

/* How much time the cluster's clock has lost, because the machine stood still. */
int64_t
sim_lost_time(const sim *s, const sim_cluster *c)
{
	return c->lost_before +
		(s->now < c->still_until ? s->now : c->still_until) - c->still_since;
}

int64_t
sim_local(const sim *s, const sim_cluster *c)
{
	return local_at(c, s->now - sim_lost_time(s, c));
}

/* The first true time, from now on, at which the cluster's clock shows at least local. */
int64_t
sim_true(const sim_cluster *c, int64_t local)
{
	int64_t		at = (int64_t) ((__int128) (local - c->offset) * 1000000 /
								(1000000 + c->ppm)) - 2;

	while (local_at(c, at) < local)
		at++;
	return at + c->lost_before + c->still_until - c->still_since;
}

/* The time of a packet, one way, without a fault. */
int64_t
sim_hop(sim *s)
{
	return sim_between(s, 200, s->plan.hop);
}

/* A fresh version for a foreign client or the operator. */
void
sim_version(sim *s, char *version)
{
	uint64_t	random[2] = {sim_random(s), sim_random(s)};

	uuid_v4((uint8_t *) random, version);
}

static bool
earlier(const sim_event *a, const sim_event *b)
{
	return a->at < b->at || (a->at == b->at && a->serial < b->serial);
}

void
sim_schedule(sim *s, sim_event event)
{
	size_t		i = ++s->event_count;

	if (i >= s->event_room)
	{
		s->event_room = s->event_room ? s->event_room * 2 : 256;
		s->events = realloc(s->events, s->event_room * sizeof(sim_event));
		if (s->events == NULL)
			abort();
	}
	event.serial = ++s->event_serial;
	if (event.call != NULL)
		event.call->events++;
	for (; i > 1 && earlier(&event, &s->events[i / 2]); i /= 2)
		s->events[i] = s->events[i / 2];
	s->events[i] = event;
}

sim_event
sim_take_event(sim *s)
{
	sim_event	top = s->events[1];
	sim_event	last = s->events[s->event_count--];
	size_t		i = 1;

	for (;;)
	{
		size_t		child = i * 2;

		if (child > s->event_count)
			break;
		if (child < s->event_count &&
			earlier(&s->events[child + 1], &s->events[child]))
			child++;
		if (earlier(&last, &s->events[child]))
			break;
		s->events[i] = s->events[child];
		i = child;
	}
	s->events[i] = last;
	return top;
}
