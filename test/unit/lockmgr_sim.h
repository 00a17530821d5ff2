/*-------------------------------------------------------------------------
 *
 * lockmgr_sim.h
 *	  The world of test_lockmgr_random.c: true time, and a bad network.
 *
 * Clusters share one DynamoDB double.  Each has a clock of its own that runs
 * a few per cent fast or slow.  All that is random comes from one seed, all
 * that happens from one queue of events, so a seed is a run.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_TEST_LOCKMGR_SIM_H
#define DDBLOCK_TEST_LOCKMGR_SIM_H

#include <inttypes.h>
#include <stdarg.h>

#include "core/lockmgr.h"
#include "lockmgr_double.h"

#define SIM_CLUSTERS	3
#define SIM_SESSIONS	6
#define SIM_LOCKS		3
#define SIM_LEASES		8
#define SIM_HOLDS		2

#define MS	INT64_C(1000)
#define SECOND INT64_C(1000000)
#define SIM_LEASE_MAX_MS 4000

/* What a session has: as its backend would know it. */
typedef struct sim_hold
{
	bool		used;
	int			lock;
	uint32_t	lease;
	uint64_t	seq;
	int64_t		token;
} sim_hold;

/* A session, and the mailbox slot that it uses. */
typedef struct sim_session
{
	uint32_t	generation;		/* odd: in use */
	lockmgr_request request;
	bool		waiting;		/* it posted request and has not taken an answer */
	int64_t		asked_at;		/* in true time */
	lockmgr_answer answer;		/* to answer.seq */
	uint64_t	cancelled_seq;
	int			lock;
	sim_hold	holds[SIM_HOLDS];
	bool		let_go;
} sim_session;

/* What the present manager of a cluster knows of a slot. */
typedef struct sim_notes
{
	uint32_t	generation;
	uint64_t	cancelled_seq;
	uint64_t	taken_seq;
	uint64_t	owed_seq;		/* the request that must be answered, or 0 */
} sim_notes;

typedef struct sim_cluster
{
	lockmgr    *lm;				/* NULL: the worker is dead */
	unsigned	life;			/* which worker */
	bool		adopting;
	unsigned	incarnation;
	char		owner[64];
	int64_t		ppm;			/* its clock is faster by this */
	int64_t		offset;
	int64_t		epoch_offset;
	int64_t		paused_until;	/* in true time */
	int64_t		cut_until;		/* no packet passes */
	bool		refuses_batches;
	lease		saved[SIM_LEASES];
	int			saved_lock[SIM_LEASES];
	int64_t		lost_until[SIM_LEASES]; /* a lost lease's end, by its own clock */
	bool		let_go[SIM_LEASES];
	sim_session sessions[SIM_SESSIONS];
	sim_notes	notes[SIM_SESSIONS];
} sim_cluster;

/* A call under way; it lives until its last event is over. */
typedef struct sim_call
{
	int			cluster;
	unsigned	life;
	uint64_t	id;
	dynamo_op	op;
	int			count;
	int			events;
	bool		applied;
	bool		answered;
	int64_t		first_sent[DYNAMO_BATCH_MAX];
	double_write writes[DYNAMO_BATCH_MAX];
	dynamo_result results[DYNAMO_BATCH_MAX];
} sim_call;

typedef enum sim_event_kind
{
	SIM_APPLY,					/* a copy of a call reaches DynamoDB */
	SIM_REPLY,					/* DynamoDB's reply reaches the worker */
	SIM_FAIL,					/* the worker gets status instead */
	SIM_BELL,					/* the worker looks at a session's slot */
	SIM_STEP,					/* a session does something */
	SIM_START,					/* a new worker starts */
	SIM_FAULT					/* something breaks */
} sim_event_kind;

typedef struct sim_event
{
	int64_t		at;
	uint64_t	serial;
	sim_event_kind kind;
	int			cluster;
	int			slot;
	unsigned	life;
	sim_call   *call;
	dynamo_status status;
} sim_event;

typedef enum sim_phase
{
	SIM_STORM,					/* faults and work */
	SIM_CALM,					/* work */
	SIM_DRAIN,					/* who has a lock releases it */
	SIM_PROBE,					/* every lock is taken once more */
	SIM_END						/* all sessions end */
} sim_phase;

typedef struct sim
{
	uint64_t	seed;
	uint64_t	random;
	int64_t		now;			/* true time */
	sim_phase	phase;
	bool		trace;
	char		wrong[512];		/* what was violated, or "" */

	int			clusters;
	int			sessions;
	int			locks;
	uint32_t	max_leases;
	uint32_t	max_calls;
	unsigned	fault_percent;
	unsigned	late_percent;	/* of the faults, truly late ones */
	unsigned	idle_percent;	/* of the steps of sessions that have a lock */
	sim_cluster cluster[SIM_CLUSTERS];
	double_table table;
	int64_t		last_token[SIM_LOCKS];
	int64_t		lease_end[SIM_LOCKS];	/* of what stands in the item */
	bool		written_late[SIM_LOCKS];	/* late, or the second copy */

	sim_event  *events;			/* a heap: [1 .. event_count] */
	size_t		event_count;
	size_t		event_room;
	uint64_t	event_serial;

	uint64_t	grants;
	uint64_t	losses;
	uint64_t	starts;
} sim;

static const char *const sim_lock_names[SIM_LOCKS] = {"a", "b", "c"};

static inline uint64_t
sim_random(sim *s)
{
	/* splitmix64 */
	uint64_t	z = (s->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* from .. to, both included */
static inline int64_t
sim_between(sim *s, int64_t from, int64_t to)
{
	return from + (int64_t) (sim_random(s) % (uint64_t) (to - from + 1));
}

static inline bool
sim_chance(sim *s, unsigned percent)
{
	return sim_random(s) % 100 < percent;
}

__attribute__((format(printf, 2, 3)))
static inline void
sim_say(const sim *s, const char *format,...)
{
	va_list		args;

	if (!s->trace)
		return;
	printf("%10.6f ", (double) s->now / 1e6);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* An invariant does not hold; the first one counts. */
__attribute__((format(printf, 2, 3)))
static inline void
sim_wrong(sim *s, const char *format,...)
{
	va_list		args;

	if (s->wrong[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(s->wrong, sizeof(s->wrong), format, args);
	va_end(args);
	sim_say(s, "WRONG: %s", s->wrong);
}

static inline int64_t
sim_local(const sim *s, const sim_cluster *c)
{
	return c->offset + s->now + s->now * c->ppm / 1000000;
}

/* The first true time at which the cluster's clock shows at least local. */
static inline int64_t
sim_true(const sim_cluster *c, int64_t local)
{
	int64_t		at = (int64_t) ((__int128) (local - c->offset) * 1000000 /
								(1000000 + c->ppm));

	while (c->offset + at + at * c->ppm / 1000000 < local)
		at++;
	return at;
}

static inline bool
sim_earlier(const sim_event *a, const sim_event *b)
{
	return a->at < b->at || (a->at == b->at && a->serial < b->serial);
}

static inline void
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
	for (; i > 1 && sim_earlier(&event, &s->events[i / 2]); i /= 2)
		s->events[i] = s->events[i / 2];
	s->events[i] = event;
}

static inline sim_event
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
			sim_earlier(&s->events[child + 1], &s->events[child]))
			child++;
		if (sim_earlier(&last, &s->events[child]))
			break;
		s->events[i] = s->events[child];
		i = child;
	}
	s->events[i] = last;
	return top;
}

static inline void
sim_call_event(sim *s, sim_call *call, sim_event_kind kind, int64_t at,
			   dynamo_status status)
{
	sim_schedule(s, (sim_event) {
		.at = at, .kind = kind, .cluster = call->cluster, .life = call->life,
		.call = call, .status = status,
	});
}

/* One way, when all is well. */
static inline int64_t
sim_hop(sim *s)
{
	return sim_between(s, 200, 8 * MS);
}

/* The request reaches DynamoDB and the reply comes back in time, or not. */
static inline void
sim_deliver(sim *s, sim_call *call, int64_t delay, bool reply)
{
	sim_call_event(s, call, SIM_APPLY, s->now + delay, DYNAMO_OK);
	if (reply)
		sim_call_event(s, call, SIM_REPLY, s->now + delay + sim_hop(s), DYNAMO_OK);
}

static inline void
sim_deliver_badly(sim *s, sim_call *call)
{
	static const dynamo_status refusals[] = {
		DYNAMO_THROTTLED, DYNAMO_CONFLICT, DYNAMO_UNREACHABLE,
	};

	if (sim_chance(s, s->late_percent))
	{
		/* Truly late; the worker has given up on it long since. */
		sim_deliver(s, call, sim_between(s, 0, 3 * SIM_LEASE_MAX_MS * MS), false);
		return;
	}
	switch (sim_between(s, 0, 5))
	{
		case 0:					/* the request is dropped */
			break;
		case 1:					/* the reply is dropped, and what follows */
			sim_deliver(s, call, sim_hop(s), false);
			if (sim_chance(s, 30))
				s->cluster[call->cluster].cut_until = s->now + SIM_LEASE_MAX_MS * MS;
			break;
		case 2:					/* a 500, applied */
			sim_deliver(s, call, sim_hop(s), false);
			sim_call_event(s, call, SIM_FAIL, s->now + 20 * MS, DYNAMO_UNKNOWN);
			break;
		case 3:					/* a 500, not applied */
			sim_call_event(s, call, SIM_FAIL, s->now + sim_hop(s), DYNAMO_UNKNOWN);
			break;
		case 4:					/* twice, or slowly */
			sim_deliver(s, call, sim_between(s, 0, SECOND), true);
			if (sim_chance(s, 50))
				sim_deliver(s, call, sim_between(s, 0, SECOND), true);
			break;
		default:				/* refused */
			sim_call_event(s, call, SIM_FAIL, s->now + sim_hop(s),
						   refusals[sim_between(s, 0, 2)]);
	}
}

/* When the first copy of the write that carries this nonce was sent. */
static inline int64_t
sim_first_sent(const sim *s, const sim_cluster *c, const char *version)
{
	for (uint32_t i = 0; i < s->max_leases; i++)
	{
		if (strcmp(c->saved[i].pending.version, version) == 0)
			return sim_true(c, c->saved[i].pending.first_sent);
	}
	return s->now;
}

/* The host's send: decides what becomes of the call. */
static inline void
sim_send(sim *s, int cluster, const lockmgr_call *out)
{
	sim_cluster *c = &s->cluster[cluster];
	sim_call   *call = calloc(1, sizeof(sim_call));
	int64_t		timeout;

	if (call == NULL)
		abort();
	call->cluster = cluster;
	call->life = c->life;
	call->id = out->id;
	call->op = out->op;
	call->count = out->count;
	for (int i = 0; i < out->count; i++)
	{
		double_copy_write(&call->writes[i], &out->writes[i]);
		call->first_sent[i] = sim_first_sent(s, c, call->writes[i].version);
		sim_say(s, "%d: sends #%" PRIu64 " %s%s %s %.8s (expects %.8s)", cluster,
				out->id, dynamo_op_name(out->writes[i].op),
				out->repeat ? " again" : "", call->writes[i].name,
				call->writes[i].version, call->writes[i].expected);
	}

	timeout = sim_true(c, sim_local(s, c) + out->timeout_us);
	sim_call_event(s, call, SIM_FAIL, timeout, DYNAMO_UNKNOWN);
	if (s->phase == SIM_STORM && s->now < c->cut_until)
		return;
	if (out->op == DYNAMO_RENEW_BATCH && c->refuses_batches)
		sim_call_event(s, call, SIM_FAIL, s->now + sim_hop(s), DYNAMO_ACCESS_DENIED);
	else if (s->phase == SIM_STORM && sim_chance(s, s->fault_percent))
		sim_deliver_badly(s, call);
	else
		sim_deliver(s, call, sim_hop(s), true);
}

static inline void
sim_drop_call(sim_call *call)
{
	if (call != NULL && --call->events == 0)
		free(call);
}

#endif							/* DDBLOCK_TEST_LOCKMGR_SIM_H */
