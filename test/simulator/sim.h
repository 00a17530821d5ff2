/*-------------------------------------------------------------------------
 *
 * sim.h
 *	  Declarations that the simulation's files share.
 *
 * A run simulates several clusters, each with the shipped lock manager, mailbox
 * protocol and codec, one DynamoDB double, the network between them, sessions
 * that work, foreign clients, an operator, and faults.  All random numbers come
 * from one seed, and everything that happens comes from one queue of events: a
 * seed always gives the same run.  The queue uses "true" time, in microseconds.
 * No participant can read it: each cluster has its own clock, with its own
 * rate.
 *
 *	 sim_world.c		random numbers, clocks, the queue of events, the trace
 *	 sim_plan.c			draws the parameters of a run
 *	 sim_nonce.c		every version ever written: when, for whom, applied?
 *	 sim_table.c		the DynamoDB double, and a second record of its items
 *	 sim_network.c		requests and replies in flight, and their faults
 *	 sim_worker.c		hosts a lock manager as the background worker does
 *	 sim_journal.c		releases what dead incarnations held
 *	 sim_race.c			sessions and worker act between each other's steps
 *	 sim_session.c		sessions and their transactions
 *	 sim_leadership.c		clusters that want to lead, and their transactions
 *	 sim_queue.c		a queue's table, the worker's side, and the promises Q1 ... Q5
 *	 sim_job.c			sessions that push, claim and complete jobs
 *	 sim_foreign.c		clients like Amazon's, and the operator
 *	 sim_fault.c		faults of clusters, workers and backends
 *	 sim_check.c		checks the promises I1 ... I9 of doc/internals/safety.md
 *	 sim_run.c			the phases of a run
 *	 simulate.c			the program
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_TEST_SIM_H
#define DDBLOCK_TEST_SIM_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"
#include "lock/leadership.h"
#include "lock/mailbox.h"
#include "dynamo_double.h"

#define SIM_CLUSTERS	3
#define SIM_HOLDS		2
#define SIM_FOREIGNERS	3
#define SIM_NOBODY		(-1)

#define MS		INT64_C(1000)
#define SECOND	INT64_C(1000000)
#define MINUTE	(60 * SECOND)

/* DynamoDB refuses a request that was signed longer ago. */
#define SIGNATURE (15 * MINUTE)

/* DynamoDB's clock at true time 0: tokens look realistic. */
#define SIM_EPOCH	(INT64_C(1800000000) * SECOND)

typedef struct sim sim;
typedef struct sim_call sim_call;

/* The faults; each is counted. */
typedef enum sim_fault
{
	FAULT_REQUEST_DROPPED,
	FAULT_REPLY_DROPPED,
	FAULT_DUPLICATED,
	FAULT_SLOW,
	FAULT_LATE,					/* arrives up to three leases or 15 minutes later, no reply */
	FAULT_EXPIRED,				/* arrives when its signature is too old */
	FAULT_RESET_APPLIED,
	FAULT_RESET,
	FAULT_500_APPLIED,
	FAULT_500,
	FAULT_503_APPLIED,
	FAULT_503,
	FAULT_THROTTLED,
	FAULT_CONFLICT,
	FAULT_UNREACHABLE,
	FAULT_TRUNCATED,
	FAULT_CORRUPT,
	FAULT_EMPTY,				/* not applied, but a success that shows nothing */
	FAULT_STATEMENT_FAILED,
	FAULT_REPLY_UNREAD,			/* it arrives while the worker is stopped */
	FAULT_STALE_POLL,			/* shows the item as it was up to a second ago */
	FAULT_BATCH_REFUSED,
	FAULT_BATCH_BROKEN,
	FAULT_NO_CREDENTIALS,
	FAULT_CUT,
	FAULT_THROTTLED_ALL,
	FAULT_WORKER_STOPPED,
	FAULT_WORKER_KILLED,
	FAULT_CRASH,
	FAULT_CLOCK_SET,
	FAULT_STOOD_STILL,			/* the machine, while it had no lock: it lost time */
	FAULT_ABSURD_DATE,
	FAULT_BACKEND_STOPPED,
	FAULT_BACKEND_KILLED,
	FAULT_ITEM_DELETED,
	FAULT_ITEM_EDITED,
	FAULT_ITEM_RELEASED,
	FAULT_ITEM_PURGED,			/* a released one, by its time-to-live */
	FAULT_MARK_FORGED,
	FAULT_COUNT
} sim_fault;

/* Kinds of runs; sim_plan.c draws one. */
typedef enum sim_kind
{
	KIND_STORM,					/* few sessions, short leases, many faults */
	KIND_CROWD,					/* hundreds of sessions, dozens of locks */
	KIND_LONG,					/* hours of long leases, little work */
	KIND_HOT,					/* one lock for all, no faults: measures waits */
	KIND_COUNT
} sim_kind;

typedef struct sim_plan
{
	sim_kind	kind;
	int			clusters;
	int			sessions;		/* of each cluster */
	int			locks;
	int			foreigners;
	uint32_t	max_leases;
	uint32_t	max_calls;
	int64_t		lease_min_ms;
	int64_t		lease_max_ms;
	int64_t		storm;			/* duration of the phase with faults */
	bool		quiet;			/* then nobody wants anything until all copies have arrived */
	int64_t		latest;			/* a copy arrives so late, at most */
	int64_t		step;			/* between two steps of a session, at most */
	int64_t		poll_interval_us;
	int64_t		hop;			/* latency of a packet, at most */
	int64_t		fault_every;	/* between two faults of clusters, at most */
	unsigned	fault_percent;	/* of the calls meet a fault */
	unsigned	late_percent;	/* of these are FAULT_LATE */
	unsigned	idle_percent;	/* of the steps of a holder do nothing */
	unsigned	same_percent;	/* of the leases have the same length, and no data:
								 * so locks pass on without a request */
	unsigned	shared_percent; /* of the requests are for shared locks or permits */
	unsigned	keep_percent;	/* of the requests for exclusive locks ask for a minimum, */
	int64_t		keep_max_ms;	/* ... of so much at most */
	unsigned	limit_percent;	/* of the requests have a limit of the hold */
	bool		one_exclusive;	/* only those of one cluster are not */
	bool		eager;			/* who has released a lock takes it again at once */
	bool		permits;		/* a semaphore is all there is; each cluster wants a number of its own */
	bool		joins;			/* sessions join holds, and leave theirs to the cluster */
	unsigned	several_percent;	/* of the steps without a lock begin to take several */
	bool		leadership;		/* the clusters stand for the last lock */
	bool		queue;			/* the locks are those of a queue's resources */
	bool		operator;		/* items are deleted and edited by hand */
	bool		purge;			/* released items are deleted */
	bool		forges;			/* marks of nobody are in items */
	int64_t		clock_error;	/* of a cluster's wall clock */
	bool		hours;			/* the wall clock may also be off by an hour */
	bool		by_clock;		/* clusters may take over by DynamoDB's clock, */
	int64_t		slack;			/* ... with this slack, */
	int64_t		date_error;		/* and Dates are wrong by so much, either way */
	bool		own_front_end;	/* ... for each cluster always by as much */
	bool		stands_still;	/* machines do, now and then; no Date is absurd */
} sim_plan;

/* A lock that a session holds, as its backend would know it. */
typedef struct sim_hold
{
	bool		used;
	int			lock;
	uint32_t	index;			/* of the hold in shared memory */
	uint32_t	lease;
	uint32_t	generation;		/* of the lease */
	uint64_t	seq;
	lock_mode	mode;
	int32_t		permits;
	int32_t		limit;			/* the session's */
	int64_t		token;
	int64_t		must_end;		/* the limit of its belief, or 0 */
	bool		given_up;		/* its release is asked for now */
	bool		passed_on;		/* it has ended, and somebody else still had it */
	bool		lost;			/* the worker has reported the loss */
	bool		lower;			/* its token is below an older grant's */
	bool		may_outlive;	/* the session has asked that the hold outlive it, */
	int64_t		outlive_time_us;	/* ... and was told so: for so long; or 0 */
	int			transaction;	/* 0: none, 1: fenced, 2: past the guard */
} sim_hold;

/* A hold, as others in the cluster have heard of it. */
typedef struct sim_name
{
	bool		used;
	int			lock;
	uint32_t	lease;
	uint32_t	generation;
	int64_t		token;
	uint32_t	taker;
} sim_name;

/* The hold that a session of a slot has left to the cluster last, perhaps by its end. */
typedef struct sim_detached
{
	bool		used;			/* somebody relies on it */
	bool		outlives;		/* by its end: another one with this token will do, */
	int64_t		valid_until;	/* ... while the lease is valid: seen last */
	sim_name	name;
	uint32_t	index;
	uint64_t	seq;
	int64_t		until;			/* by the cluster's clock */
} sim_detached;

/* What a session has announced: tries of these locks, by number. */
#define SIM_ANNOUNCED	3
#define SIM_ANNOUNCE	((lockmgr_kind) (LOCKMGR_END_DETACHED + 1))
#define SIM_QUEUE		((lockmgr_kind) (LOCKMGR_END_DETACHED + 2))

typedef struct sim_announced
{
	bool		used;			/* not all claimed yet, and not withdrawn */
	bool		refused;		/* the last claim was */
	int			count;
	int			locks[SIM_ANNOUNCED];
	uint64_t	first;			/* number of the first one */
	lockmgr_request request;
} sim_announced;

/* A session, or an unused slot. */
typedef struct sim_session
{
	lockmgr_session me;			/* generation 0: not attached */
	unsigned	steps;			/* number of the next step; older ones are void */
	lockmgr_request request;
	bool		waiting;		/* it posted request and took no answer yet */
	int64_t		asked_at;
	int			lock;
	sim_hold	holds[SIM_HOLDS];
	lockmgr_lease all[SIM_HOLDS];	/* that request releases, if it is for several */
	uint64_t	detaching;		/* the hold that it wants to detach, */
	bool		ended;			/* ... or one with its token, somebody else ends, or has ended since */
	sim_detached detached;		/* outlives the session */
	sim_announced announced;
} sim_session;

/* Its slot in shared memory. */
typedef struct sim_slot
{
	mailbox_slot words;
	lockmgr_request request;
	sim_announced announced;	/* a part of it */
	lockmgr_lease all[SIM_HOLDS];	/* likewise */
	lockmgr_answer answer;
} sim_slot;

/* A lease, and a hold, as saved in shared memory. */
typedef struct sim_saved
{
	saved_lease l;
	mailbox_lease words;
	int			lock;
	int64_t		reserved_at;	/* its tokens, by DynamoDB's clock */
	int64_t		lost_until;		/* a lost lease's end, by the cluster's clock */
	bool		excused;		/* the operator changed its item */
} sim_saved;

typedef struct sim_saved_hold
{
	saved_hold h;
	mailbox_hold words;
	int64_t		unknown_since;	/* no session knows of it; 0: one does */
} sim_saved_hold;

/* A lock in the journal of a dead incarnation. */
typedef struct sim_dead
{
	int			lock;
	unsigned	incarnation;
	char		owner[64];
	bool		struck;			/* off the journal */
	dynamo_op	op;				/* the next write, or a read */
	int64_t		token;			/* seen in the item, or 0 */
	bool		shared;			/* it is shared: an entry is removed, */
	dynamo_shared_kind kind;	/* ... in this way */
	char		version[40];	/* that the release writes */
} sim_dead;

typedef struct sim_cluster sim_cluster;

/* What a cluster does to lead: see sim_leadership.c. */
typedef struct sim_stand
{
	sim		   *s;
	sim_cluster *c;
	leadership_worker	me;
	leadership_entry entries[LEADERSHIPS_MAX];	/* in shared memory */
	bool		wants;			/* the lock is in its list */
	leadership	seen;			/* a leadership that sessions have seen */
	int64_t		wake;			/* by the cluster's clock */
} sim_stand;

struct sim_cluster
{
	int			number;
	mailbox		box;
	mailbox_worker worker;		/* its lm is NULL: the worker is dead */
	lockmgr_request taken;		/* the request that the worker has copied, */
	sim_announced taken_announced;
	lockmgr_lease taken_all[SIM_HOLDS];
	uint64_t   *owed;			/* [sessions]: the request to be answered, or 0 */
	int64_t		unfit_until;	/* until then, the table check does not pass */
	unsigned	life;			/* counts the cluster's workers */
	int			effects_left;	/* its worker dies after so many; -1: does not */
	bool		adopting;
	unsigned	incarnation;
	char		owner[64];
	int64_t		ppm;			/* how much faster its clock runs */
	int64_t		offset;
	int64_t		wall_error;		/* how far its wall clock is ahead */
	epoch_clock clock;			/* its estimate of DynamoDB's clock */
	bool		absurd_date;	/* the next reply has one */
	int64_t		paused_until;
	int64_t		still_since;	/* when the machine last stood still, in true time */
	int64_t		still_until;
	int64_t		lost_before;	/* the time that its clock lost before that */
	bool		by_clock;
	int64_t		cut_until;		/* until then, no packet passes */
	int64_t		throttled_until;
	int64_t		no_credentials_until;
	bool		refuses_batches;
	bool		breaks_batches;	/* answers each of them with an internal error */
	int64_t		troubled_at;	/* end of the latest fault of this cluster */
	sim_saved  *saved;			/* [max_leases] */
	sim_saved_hold *saved_holds;	/* [max_leases] */
	int		   *lease_of;		/* [locks]: index of its lease, or -1 */
	sim_dead   *dead;			/* [dead_count] */
	size_t		dead_count;
	int64_t	   *had;			/* [locks]: when it last held the lock */
	int64_t	   *shared_wait;	/* [locks]: when a session of it last waited to share it */
	sim_name	heard;
	sim_slot   *slots;			/* [sessions + 1]: the last one is the leadership's */
	sim_session *sessions;		/* likewise; that one is nobody's */
	sim_stand	stand;
	struct sim_queues *queues;	/* or NULL */
};

/* A client like Amazon's. */
typedef struct sim_foreigner
{
	char		owner[32];
	int64_t		ppm;
	bool		deletes;		/* its release deletes the item */
	bool		updates;		/* its acquire keeps attributes of others */
	bool		go_style;		/* writes "4s", as dynamolock does */
	int			lock;			/* wanted or held, or SIM_NOBODY */
	int64_t		wanted_since;
	bool		holds;
	bool		excused;
	bool		gone;			/* crashed */
	int64_t		lease_ms;
	char		version[40];	/* the version that it wrote */
	int64_t		valid_until;	/* in true time */
	int64_t		release_at;
	char		seen[40];		/* the version that it saw in the item */
	int64_t		seen_lease_ms;
	int64_t		dead_at;		/* in true time */
} sim_foreigner;

/* A version that a lock manager has drawn, written or not. */
typedef struct sim_nonce
{
	char		version[40];
	dynamo_op	op;
	int			cluster;
	unsigned	incarnation;
	int			lock;
	uint32_t	lease;
	int64_t		first_sent;		/* by the cluster's clock; 0: not sent */
	int64_t		first_sent_true;
	int64_t		epoch;			/* DynamoDB's clock at that moment, at least */
	int64_t		lease_ms;
	bool		applied;
	bool		late;			/* by a late or second copy, */
	bool		twin;			/* ... which the network made of an answered request */
	bool		excused;
	bool		any_version;	/* a release that is on no condition of a version */
	bool		runs_out;		/* its lease was detached when its cluster crashed, or nobody
								 * could release it: an outage */
} sim_nonce;

/* A lock: what its item should contain, and what the checks need. */
typedef struct sim_lock
{
	char		name[32];
	size_t		name_len;

	bool		exists;
	bool		released;
	int			owner;			/* a cluster, or SIM_NOBODY */
	unsigned	incarnation;
	bool		shared;			/* in shared mode, unless released */
	int32_t		limit;			/* that most sessions ask for */
	char		version[40];
	bool		has_token;
	int64_t		first_token;	/* of those that the last grant reserved */
	int64_t		token;
	char	   *poll;			/* the reply to the last poll, malloc'd, and when */
	size_t		poll_len;
	int64_t		poll_at;
	int			gate_of;		/* the cluster whose gate is in the item, or SIM_NOBODY */
	int64_t		gate_lease_ms;
	int64_t		gate_since;		/* when that set the gate, */
	int64_t		gate_at;		/* ... and last wrote it */
	int64_t		shared_since;	/* when the shared mode began, or its gate was removed */
	int			mark_of;		/* the cluster whose mark is in the item, or SIM_NOBODY, */
	int64_t		mark_at;		/* ... since then */
	int64_t		mark_until_ms;
	int64_t		mark_poll_ms;
	int32_t		mark_permits;	/* it wants so many; 0: a lock */
	int32_t		mark_limit;
	int64_t		room_at;		/* when these were first free since, or 0, */
	int64_t		room_since;		/* ... and since when they are, or 0, */
	int64_t		told_at[SIM_CLUSTERS];	/* when a reply first showed it to each, or 0, */
	unsigned	told_life[SIM_CLUSTERS];	/* ... and its worker then */
	int64_t		shown_at[SIM_CLUSTERS];	/* when a write last showed each the item, */
	int64_t		taken_at[SIM_CLUSTERS];	/* ... and when each last took permits */
	int			heard_by;		/* the cluster that has released it since, or SIM_NOBODY, */
	unsigned	heard_life;		/* ... its worker, */
	int64_t		heard_at;		/* ... and when */
	int64_t		stayed_ms[SIM_CLUSTERS];	/* the mark for which each has stayed back */
	bool		edited;			/* the operator was the last to write it */
	bool		broken;			/* the operator made it unusable */

	int64_t		ever[2];		/* the highest tokens ever granted: exclusive, others */
	int64_t		last_token;		/* the same since the item lost its token */
	int64_t		last_exclusive;
	int64_t		erased_at;		/* when that was */
	int64_t		kept_until_ms;	/* the item's keptUntil, or 0 */
	int64_t		promised;		/* nobody else is granted it before, by DynamoDB's clock */
	int64_t		promised_token; /* ... since this grant */
	int64_t		ended_token;	/* a session with this token has ended its minimum */
	dynamo_op	last_op;		/* the operation that wrote the item's version; DYNAMO_ACQUIRE if
								 * that was a foreign client's */
	int64_t		lease_end;		/* of the item's version, in true time */
	bool		written_late;	/* by a late or second copy */
	int64_t		free_since;		/* when a holder last had it */
	int64_t		sharable_since; /* ... or somebody wanted it other than shared */
	int64_t		late_at;		/* when a late copy was last applied */

	int64_t		fence[2];		/* the highest token of a commit: exclusive, shared */
	int64_t		committed[2];	/* the token of the latest commit, likewise */
	const sim_hold *row_locked; /* whose transaction has the row lock */
} sim_lock;

typedef enum sim_event_kind
{
	SIM_APPLY,					/* a copy of a call reaches DynamoDB */
	SIM_REPLY,					/* its reply reaches the worker */
	SIM_ERROR,					/* an error reaches the worker instead */
	SIM_BELL,					/* the worker reads a session's slot */
	SIM_FIT,					/* the table check passes, or the worker reports why not */
	SIM_JOURNAL,				/* the worker releases what is in a journal */
	SIM_STEP,					/* a session takes its next step */
	SIM_START,					/* a new worker starts */
	SIM_BREAK,					/* a fault of a cluster */
	SIM_FOREIGN,				/* a foreign client takes its next step */
	SIM_FOREIGN_APPLY,			/* its request reaches DynamoDB */
	SIM_HAND,					/* the operator or the time-to-live acts */
	SIM_REPAIR,					/* the operator deletes an unusable item */
	SIM_AUDIT					/* checks that no waiter is forgotten */
} sim_event_kind;

typedef struct sim_event
{
	int64_t		at;
	uint64_t	serial;
	sim_event_kind kind;
	int			cluster;		/* or the foreigner, or the lock */
	int			slot;
	unsigned	steps;
	unsigned	variant;		/* sim_fault, or the foreigner's request */
	sim_call   *call;
} sim_event;

typedef enum sim_phase
{
	PHASE_STORM,				/* faults and work */
	PHASE_QUIET,				/* all sessions have ended, but not all copies have arrived */
	PHASE_CALM,					/* work */
	PHASE_DRAIN,				/* holders release their locks */
	PHASE_PROBE,				/* every lock is acquired once more */
	PHASE_END					/* all sessions end */
} sim_phase;

/* Whose waits are measured in hot runs. */
typedef enum sim_turn
{
	TURN_CLUSTER,				/* if nobody shares */
	TURN_SHARING_CLUSTER,
	TURN_FOREIGNER,
	SIM_TURNS
} sim_turn;

/* Sums over all runs. */
typedef struct sim_totals
{
	uint64_t	seeds[KIND_COUNT];
	int64_t		simulated[KIND_COUNT];	/* microseconds */
	double		real[KIND_COUNT];		/* seconds */
	uint64_t	wrong;
	uint64_t	audits;			/* when all copies had arrived, */
	uint64_t	strays;			/* ... late copies that were applied while all was quiet */
	uint64_t	events;
	uint64_t	requests;
	uint64_t	grants;
	uint64_t	shared_grants;	/* ... of these, to share a lock */
	uint64_t	permit_grants;	/* ... of these, of permits */
	uint64_t	kept_grants;	/* ... of these, for a minimum */
	uint64_t	marks;			/* of clusters that waited, */
	uint64_t	heard;			/* ... for which others have stayed back */
	uint64_t	taken_after_marks;	/* permits that one wanted were taken by others, and judged, */
	uint64_t	left_to_marks;	/* ... or left by a cluster that wanted them, too */
	uint64_t	joined;			/* holds that were joined, */
	uint64_t	detached;		/* ... detached */
	uint64_t	outlive;		/* ... that may outlive their sessions */
	uint64_t	ahead;			/* ... granted before they were asked for, */
	uint64_t	claimed;		/* ... and then claimed */
	uint64_t	released_both;	/* requests to release two locks */
	uint64_t	led;			/* leaderships */
	uint64_t	lead;			/* attempts to join one */
	uint64_t	foreign_grants;
	uint64_t	losses;
	uint64_t	workers;
	uint64_t	commits;
	uint64_t	guarded;		/* commits that the guard refused */
	uint64_t	fenced;			/* commits that the fence refused */
	uint64_t	hot_grants;		/* in hot runs */
	uint64_t	jobs_pushed;
	uint64_t	jobs_claimed;
	uint64_t	jobs_worked;	/* their work was committed, */
	uint64_t	jobs_completed;
	uint64_t	jobs_failed;
	uint64_t	jobs_dead;
	uint64_t	heads_removed;
	uint64_t	hints;			/* that were taken */
	uint64_t	turns[SIM_TURNS];	/* waits */
	uint64_t	turn_us[SIM_TURNS]; /* their sum */
	uint64_t	faults[FAULT_COUNT];
	int64_t		longest_turn[SIM_TURNS];
} sim_totals;

/*
 * Two generations of a hash table; see sim_nonce.c.  A bar is repeated for 15 minutes, each time
 * with another version, and so is a release that was certainly not applied.
 */
#define SIM_NONCES 131072
typedef struct sim_nonces
{
	sim_nonce  *tables[2];
	int			young;
	int			count;			/* in the young one */
} sim_nonces;

struct sim
{
	uint64_t	seed;
	uint64_t	random;
	int64_t		now;			/* true time */
	sim_phase	phase;
	int64_t		quiet_since;	/* since then, the last fault is over, too */
	bool		trace;
	bool		hasty;			/* sessions end and cancel more often now */
	char		wrong[512];		/* the broken promise, or "" */
	const char *without;		/* a promise that is not checked, or NULL */
	sim_totals *totals;

	sim_plan	plan;
	sim_cluster cluster[SIM_CLUSTERS];
	sim_foreigner foreigner[SIM_FOREIGNERS];
	sim_lock   *lock;
	struct sim_resource *resources; /* of the queue, or NULL */
	int64_t		queue_floor;	/* of its table */
	dynamo_double *double_;
	sim_nonces	nonces;

	sim_event  *events;			/* a heap: [1 .. event_count] */
	size_t		event_count;
	size_t		event_room;
	uint64_t	event_serial;
};

/* Sessions end, and none begins. */
static inline bool
sim_rests(const sim *s)
{
	return s->phase == PHASE_QUIET || s->phase == PHASE_END;
}

/* Nobody asks for anything new. */
static inline bool
sim_winds_down(const sim *s)
{
	return s->phase == PHASE_QUIET || s->phase >= PHASE_DRAIN;
}

/* sim_world.c */
extern uint64_t sim_random(sim *s);
extern int64_t sim_between(sim *s, int64_t from, int64_t to);	/* both included */
extern bool sim_chance(sim *s, unsigned percent);
extern void sim_say(const sim *s, const char *format,...)
			__attribute__((format(printf, 2, 3)));
extern const char *sim_short(const char *version);
extern void sim_wrong(sim *s, const char *format,...)
			__attribute__((format(printf, 2, 3)));
extern void sim_count(sim *s, sim_fault fault);
extern int64_t sim_local(const sim *s, const sim_cluster *c);
extern int64_t sim_true(const sim_cluster *c, int64_t local);
extern int64_t sim_lost_time(const sim *s, const sim_cluster *c);
extern int64_t sim_hop(sim *s);
extern void sim_version(sim *s, char *version);
extern void sim_schedule(sim *s, sim_event event);
extern sim_event sim_take_event(sim *s);
extern const char *const sim_kind_names[KIND_COUNT];
extern const char *const sim_fault_names[FAULT_COUNT];

/* sim_plan.c */
extern void sim_draw_plan(sim *s);

/* sim_nonce.c */
extern void sim_nonces_new(sim_nonces *nonces);
extern void sim_nonces_free(sim_nonces *nonces);
extern sim_nonce *sim_find_nonce(sim_nonces *nonces, const char *version);
extern sim_nonce *sim_add_nonce(sim_nonces *nonces, const char *version);

/* sim_table.c */
extern const dynamo_table sim_table;
extern void sim_table_new(sim *s);
extern void sim_table_free(sim *s);
extern int	sim_lock_number(const sim *s, const char *name, size_t len);
extern int	sim_request(sim *s, const char *target, const char *body, char **reply,
						size_t *reply_len);
extern void sim_written(sim *s, const sim_call *call, int which);
extern void sim_check_item(sim *s, const sim_lock *lock, const dynamo_item *item);
extern void sim_check_table(sim *s);
extern void sim_read_item(sim *s, const sim_lock *lock, dynamo_reply *reply);
extern const dynamo_entry *sim_entry_of(const sim_cluster *c, const dynamo_result *result);

/* sim_network.c: a call in flight; freed after its last event. */
struct sim_call
{
	int			cluster;
	unsigned	life;
	uint64_t	id;
	dynamo_op	op;
	int			count;
	int			events;
	bool		answered;
	struct sim_queue_call *queue;	/* malloc'd: it is about the queue's table; or NULL */
	char	   *body;
	int64_t		posted;			/* by the cluster's clock */
	int64_t		signed_at;		/* in true time */
	int			status;			/* of the first copy's reply; 0: none yet */
	int64_t		date_s;			/* its Date, in whole seconds */
	char	   *bytes;			/* of that reply */
	size_t		len;
	dynamo_reply reply;			/* as the codec read it */
	struct
	{
		dynamo_op	op;
		int			lock;
		int64_t		lease_ms;
		bool		maybe_stale;
		bool		shared;		/* a write in shared mode */
		dynamo_shared_kind kind;
		int32_t		limit;		/* of a write that adds permits; 0: it does not */
		int32_t		permits;	/* ... so many, */
		int32_t		freed;		/* ... and removes these */
		bool		removes_gate;
		bool		unmark;
		int64_t		wanted_until_ms;
		int64_t		wanted_poll_ms;
		int32_t		wanted_permits;
		int32_t		wanted_limit;
		int64_t		kept_until_ms;
		int64_t		first_token;
		int64_t		last_token;
		char		version[40];
		char		expected[DYNAMO_VERSION_SIZE];
	}			writes[DYNAMO_BATCH_MAX];
};

extern void sim_send(sim *s, sim_cluster *c, const lockmgr_call *out);
extern void sim_dispatch(sim *s, sim_cluster *c, sim_call *call, int64_t timeout_us);
extern void sim_apply(sim *s, sim_call *call);
extern void sim_reply(sim *s, sim_call *call, sim_event_kind kind, unsigned variant);
extern void sim_drop_call(sim_call *call);

/* sim_worker.c */
extern void sim_start_worker(sim *s, sim_cluster *c);
extern void sim_kill_worker(sim *s, sim_cluster *c);
extern void sim_learn_time(sim *s, sim_cluster *c);
extern void sim_pause(sim_cluster *c, int64_t until);
extern bool sim_is_dying(const sim_cluster *c);
extern bool sim_lives(sim_cluster *c);
extern void sim_write_answer(sim *s, sim_cluster *c, const lockmgr_answer *answer);
extern void sim_new_incarnation(sim_cluster *c);
extern void sim_tell_time(const sim *s, sim_cluster *c);
extern int64_t sim_absurd_date(sim *s, int64_t date_s);
extern void sim_read_slot(sim *s, sim_cluster *c, int slot);
extern void sim_table_known(sim *s, sim_cluster *c);
extern void sim_mailbox_new(sim *s, sim_cluster *c);
extern bool sim_is_answered(const sim_cluster *c, const sim_session *session);

/* sim_journal.c */
#define SIM_JOURNAL_CALL UINT64_C(1000000000)	/* the first of such calls' numbers */

extern void sim_journal_keep(sim *s, sim_cluster *c);
extern void sim_journal_read(sim *s, sim_cluster *c);
extern void sim_journal_send(sim *s, sim_cluster *c, const sim_event *event);
extern void sim_journal_reply(sim *s, sim_cluster *c, size_t number,
							  const dynamo_result *result);

/* sim_race.c: brackets a session's or the worker's use of a slot. */
typedef enum sim_side
{
	SIDE_SESSION,
	SIDE_WORKER,
	SIDE_HINTS					/* a session reads hints; others leave some */
} sim_side;

typedef struct sim_race
{
	sim		   *s;				/* NULL: no slot is in use */
	sim_cluster *c;
	int			slot;
	sim_side	side;
} sim_race;

extern sim_race sim_begin_race(sim *s, sim_cluster *c, int slot, sim_side side);
extern void sim_end_race(sim_race before);
extern void sim_between_steps(void);
extern void sim_complete_meanwhile(sim *s, sim_cluster *c);

/* sim_session.c */
extern void sim_step(sim *s, sim_cluster *c, int slot);
extern void sim_step_at(sim *s, sim_cluster *c, int slot, int64_t at);
extern void sim_attach(sim *s, sim_cluster *c, int slot);
extern lockmgr_request sim_make_request(sim *s, const sim_cluster *c, int slot,
										lockmgr_kind kind, int lock);
extern void sim_post_request(sim *s, sim_cluster *c, int slot, lockmgr_request request, int lock);
extern void sim_post(sim *s, sim_cluster *c, int slot, lockmgr_kind kind, int lock);
extern void sim_end_session(sim *s, sim_cluster *c, int slot);
extern void sim_forget_session(sim *s, const sim_cluster *c, sim_session *session);
extern void sim_clear_hold(sim *s, sim_hold *hold);
extern void sim_let_go(sim *s, sim_cluster *c, int slot, uint32_t index);
extern bool sim_busy(const sim_session *session);
extern bool sim_holds(const sim *s, const sim_cluster *c, const sim_hold *hold);

/* sim_several.c */
extern void sim_announce(sim *s, sim_cluster *c, int slot);
extern void sim_claim(sim *s, sim_cluster *c, int slot);
extern void sim_claim_answered(sim *s, sim_session *session, const lockmgr_answer *answer);
extern void sim_ask_announced(const sim *s, sim_cluster *c, int64_t now, lockmgr_session session);
extern bool sim_is_announced(const sim_cluster *c, const saved_hold *hold);

/* sim_leadership.c */
extern int	sim_leadership_lock(const sim *s);
extern bool sim_stands(const sim *s, const sim_cluster *c);
extern void sim_stand_new(sim *s, sim_cluster *c);
extern void sim_run_leaderships(sim *s, sim_cluster *c);
extern void sim_change_leadership(sim *s, sim_cluster *c);
extern bool sim_leadership_knows(const sim *s, const sim_cluster *c, const saved_hold *h);
extern bool sim_lead(sim *s, sim_cluster *c, lockmgr_request *request);
extern void sim_check_lead(sim *s, const sim_cluster *c, const saved_hold *h);
extern void sim_check_guard(sim *s, const sim_cluster *c, const sim_hold *hold);
extern void sim_check_standing(sim *s, const sim_cluster *c);

/* sim_queue.c */
extern void sim_queue_table_new(sim *s);
extern void sim_queue_new(sim *s, sim_cluster *c);
extern void sim_queue_free(sim *s, sim_cluster *c);
extern void sim_queue_worker_starts(const sim *s, sim_cluster *c);
extern void sim_queue_crashes(const sim *s, sim_cluster *c);
extern void sim_run_queue(sim *s, sim_cluster *c);
extern int64_t sim_queue_wake(const sim_cluster *c);
extern bool sim_queue_has(const sim_cluster *c, uint32_t index);
extern void sim_queue_lost(const sim *s, const sim_cluster *c, uint32_t index, uint64_t seq);
extern void sim_queue_copy(sim_cluster *c, uint32_t slot);
extern void sim_queue_give(sim_cluster *c, uint32_t slot);
extern void sim_queue_ask(sim *s, sim_cluster *c, lockmgr_session session, uint64_t seq);
extern void sim_queue_reply(sim *s, sim_cluster *c, const sim_call *call,
							const dynamo_reply *reply);
extern void sim_queue_applied(sim *s, const sim_call *call, const dynamo_reply *reply);
extern void sim_queue_meanwhile(sim *s, sim_cluster *c);
extern void sim_check_queue(sim *s);

/* sim_job.c */
extern bool sim_queue_begin(sim *s, sim_cluster *c, int slot);
extern bool sim_queue_is_busy(const sim_cluster *c, int slot);
extern bool sim_queue_step(sim *s, sim_cluster *c, int slot);
extern void sim_queue_answered(sim *s, sim_cluster *c, int slot);
extern void sim_queue_cancelled(sim *s, sim_cluster *c, int slot);
extern void sim_queue_session_ends(sim *s, sim_cluster *c, int slot);
extern void sim_queue_complete_one(sim *s, sim_cluster *c);
extern bool sim_queue_left(const sim *s);
extern void sim_queue_work_off(sim *s);

/* sim_foreign.c */
extern void sim_foreign_new(sim *s);
extern void sim_foreign_step(sim *s, int number);
extern void sim_foreign_apply(sim *s, int number, unsigned request, int lock);
extern void sim_hand(sim *s);
extern void sim_repair(sim *s, int lock);
extern void sim_item_gone(sim *s, sim_lock *lock);

/* sim_fault.c */
extern void sim_break(sim *s);
extern void sim_set_clock(sim *s, sim_cluster *c, int64_t error);
extern void sim_start_later(sim *s, const sim_cluster *c);

/* sim_check.c */
extern bool sim_believes(const sim *s, const sim_cluster *c, int lock);
extern int64_t sim_patience(const sim *s);
extern void sim_check_saved(sim *s, sim_cluster *c, uint32_t index, bool held_anew);
extern void sim_check_grant(sim *s, sim_cluster *c, uint32_t index);
extern void sim_promise(sim *s, const sim_cluster *c, const sim_session *session,
						const sim_hold *hold);
extern void sim_end_promise(sim_lock *lock, int64_t token);
extern int64_t sim_keep_patience(const sim *s);
extern void sim_check_alone(sim *s, const sim_cluster *c, int slot, const sim_hold *hold);
extern void sim_check_detached(sim *s, const sim_cluster *c);
extern void sim_check_send(sim *s, sim_cluster *c, const dynamo_write *write);
extern void sim_check_overwrite(sim *s, int lock, const sim_call *call, int which);
extern void sim_check_known(sim *s, const sim_cluster *c, int lock);
extern void sim_check_turn(sim *s, int64_t since, sim_turn whose);
extern void sim_check_answer(sim *s, sim_cluster *c, const lockmgr_answer *answer);
extern void sim_hold_ended(const sim *s, sim_cluster *c, uint32_t index, const saved_hold *ended);
extern void sim_check_lost(sim *s, const sim_cluster *c, uint32_t index);
extern void sim_check_asked(sim *s, const sim_cluster *c, int slot);
extern void sim_check_commit(sim *s, const sim_cluster *c, const sim_hold *hold);
extern void sim_check_entries(sim *s, int lock, const sim_call *call, int which);
extern bool sim_passes_fence(const int64_t tokens[2], const sim_hold *hold);
extern void sim_check_nothing_left(sim *s);
extern void sim_runs_out(sim *s, const saved_lease *l);
extern void sim_audit(sim *s);
extern void sim_touch(sim *s, int lock, lock_mode mode);
extern void sim_wait(sim *s, const sim_cluster *c, const sim_session *session);
extern bool sim_gate_lives(const sim *s, const sim_lock *lock);
extern void sim_check_gate(sim *s, int lock, const sim_call *call, int which);
extern void sim_marked(sim *s, int lock, const sim_call *call, int which);
extern void sim_heard(sim *s, int lock, const sim_call *call);
extern void sim_check_heard(sim *s, int lock, const sim_call *call, int which);
extern void sim_check_permits(sim *s, int lock, const sim_call *call, int which);

/* sim_run.c */
extern void sim_run(sim *s);

#endif							/* DDBLOCK_TEST_SIM_H */
