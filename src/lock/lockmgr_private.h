/*-------------------------------------------------------------------------
 *
 * lockmgr_private.h
 *	  The lock manager's structs.  For lockmgr*.c only.
 *
 * The files, in four strata.  Each calls only files that stand below it, or after it in its stratum.
 *
 *	 Events
 *	 lockmgr_adopt.c	what the previous lock manager had saved
 *	 lockmgr_ask.c		requests of sessions
 *	 lockmgr_reply.c	replies, refusals that tell too little, timers
 *
 *	 A lock's life
 *	 lockmgr_join.c		joined, detached and announced holds
 *	 lockmgr_renew.c	renewing, losing
 *	 lockmgr_wait.c		the outcome of an acquire, polling another client's lock
 *	 lockmgr_turn.c		the next session's turn, passing on, releasing, deleting the item
 *
 *	 Writes
 *	 lockmgr_send.c		sending calls, batches of renewals
 *	 lockmgr_share.c	sharing a lease among sessions, changing its permits
 *	 lockmgr_bar.c		barring an acquire that may arrive late
 *
 *	 Data
 *	 lockmgr_lease.c	leases and holds: room, limits, granting, giving back
 *	 lockmgr_seen.c		what we saw of other clients and clusters, and of who waits
 *	 lockmgr_queue.c	the queue of waiting sessions, answers, calls that fail
 *	 lockmgr_deadlock.c	sessions that wait for each other
 *	 lockmgr_clock.c	the time in versions, minimums, how long a lock stays in this cluster
 *	 lockmgr_state.c	a lock's states, and the table of transitions
 *	 lockmgr_table.c	the manager; locks and sessions: finding, making, forgetting
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_LOCKMGR_PRIVATE_H
#define DDBLOCK_LOCK_LOCKMGR_PRIVATE_H

#include <assert.h>

#include "base/backoff.h"
#include "base/heap.h"
#include "lock/lockmgr.h"

/*
 * A condition that holds here, whatever sessions and DynamoDB do.  In tests, in the simulator, and
 * if PostgreSQL is built with assertions, the process aborts if it is false.
 */
#ifdef NDEBUG
#define lm_assert(what) ((void) (0 && (what)))
#else
#define lm_assert(what) assert(what)
#endif

/*
 * A lock's states; lockmgr_state.c has the table of transitions.  At most one call of a lock is in
 * flight (call != NULL).  In the states marked * a write (lease.pending) is not settled: a call is
 * in flight, or will be sent again.
 */
typedef enum lock_state
{
	LOCK_IDLE,					/* nobody needs the lock, or our waiters stay back for a moment */
	LOCK_ADOPTED,				/* the lease was adopted; until lockmgr_adopted() */
	LOCK_ACQUIRING,				/* * an acquire is under way */
	LOCK_POLLING,				/* another client has the lock; the next poll is due at timer */
	LOCK_READING,				/* a poll is in flight */
	LOCK_HELD,
	LOCK_RENEWING,				/* * a renewal is under way; the lock is still held, unless let
								 * go */
	LOCK_HANDING_OVER,			/* * a hand-over to the next session is under way */
	LOCK_RELEASING,				/* * a release is under way */
	LOCK_LOST					/* the lease is lost, but neither acknowledged nor over */
} lock_state;
#define LOCK_STATE_COUNT (LOCK_LOST + 1)

typedef struct lm_lock lm_lock;
typedef struct lm_session lm_session;
typedef struct lm_lease lm_lease;
typedef struct lm_hold lm_hold;
typedef struct lm_call lm_call;

/* The one request that a session may have. */
typedef struct lm_request
{
	bool		active;
	lockmgr_kind kind;
	uint64_t	seq;
	int64_t		since;			/* when the request was received */
	lock_ask	ask;
	uint8_t    *data;
	size_t		data_len;
	char	   *attributes;
	bool		waited;			/* the session has waited for others who had the lock, not only
								 * for our calls */
	bool		refused_once;	/* DynamoDB has refused the session more permits at least once */
	unsigned	refusals;		/* so many such refusals in a row came although there was room */
	uint32_t	unreleased;		/* RELEASE of several locks: so many are not released yet */
	lm_lock    *lock;			/* the lock that the request is for; not for RELEASE */
	lm_session *next;			/* in lock's queue: ACQUIRE, TRY */
	lm_session *previous;
} lm_request;

struct lm_session
{
	heap_node	timer;			/* LOOK_UP: the next attempt */
	lockmgr_session id;
	uint32_t	role;			/* as in the session's last acquire */
	lm_request	request;
	lm_hold    *holds;			/* the session's holds, valid or lost, but not let go */
	unsigned	attempts;		/* LOOK_UP: the call in flight, or NULL */

	/* The search for deadlocks; see lockmgr_deadlock.c. */
	uint64_t	search;			/* number of the last search that came to this session */
	lm_session *came_from;		/* the session from which the search came; NULL: it began here */
	const lm_hold *blocker;		/* the search goes on to the session of this hold */
	lm_call    *call;			/* LOOK_UP */
	heap_node	ready;			/* LOOK_UP: the session's place in lockmgr.ready_look_ups */

	/* Announced requests; see lockmgr_join.c. */
	lm_session *announced;		/* the session's announced requests, in the order of their seq */
	lm_session *last_announced;
	lm_session *announced_by;	/* this struct is an announced request of that session; else NULL */
	lm_session *next_announced;
	lockmgr_result outcome;		/* of this announced request, once it is no longer active */
	uint32_t	granted;		/* the hold, if outcome is LOCKMGR_GRANTED */
};

struct lm_lease
{
	saved_lease l;
	uint32_t	index;
	lm_lock    *lock;			/* NULL once nothing of the lease is in DynamoDB */
	lm_hold    *holds;			/* several in shared mode, or if sessions have joined the lock */
	int32_t		used;			/* permits of all holds */
	lm_lease   *next;			/* in the list of free leases */
	heap_node	spare;			/* the lease's place in lockmgr.spare */

	/* Only in the state LEASE_BARRING; see lockmgr_bar.c. */
	heap_node	next_step;		/* when the next step of the bar is due */
	lm_call    *call;			/* the bar's call in flight, or NULL */
	unsigned	attempts;		/* failed steps in a row */
};

struct lm_hold
{
	saved_hold h;
	heap_node	end;			/* when the hold ends by itself: at h.ends_at if it is detached;
								 * or at h.must_end, and then when the time to acknowledge that
								 * loss is over */
	uint32_t	index;
	lm_lease   *lease;
	lm_session *session;		/* the hold is in the list of this session (of lockmgr.detached
								 * if it is detached); NULL: it is unused */
	lm_hold    *next;			/* in the session's list, or in the list of free holds */
	lm_hold    *previous;
	lm_hold    *lease_next;		/* in the lease's list */
	lm_hold    *lease_previous;
};

/* A cluster that shares a lock: its entry in the item, as we last saw it. */
typedef struct lm_entry
{
	char		incarnation[DYNAMO_INCARNATION_SIZE];
	char		version[DYNAMO_VERSION_SIZE];
	int64_t		lease_ms;
	int64_t		first_seen;		/* when we first received this version */
	bool		expired;		/* the entry is dead by DynamoDB's clock: see lm_is_expired() */
	int32_t		permits;
} lm_entry;

/* What the last item that we received told of shared mode. */
typedef struct lm_shared
{
	bool		current;		/* the item was in shared mode, so that mode, owner, total and
								 * entries are set; the gate counts in any mode */
	char		gate[DYNAMO_VERSION_SIZE];	/* version of an exclusive waiter's gate; "": there
											 * is none */
	int64_t		gate_lease_ms;
	int64_t		gate_seen;		/* when we first received this version of the gate */
	int64_t		received;		/* when we received the item */
	lock_mode	mode;
	char		owner[DYNAMO_OWNER_SIZE];	/* of one of the other clusters, for people; or "" */
	int32_t		total;			/* permits of all entries */
	int			count;			/* 0 unless current */
	lm_entry	entries[];
} lm_shared;

struct lm_lock
{
	heap_node	timer;			/* when the next retry, poll, look or deadline is due */
	heap_node	renewal;		/* when the next renewal, or its next attempt, is due */
	heap_node	ready;			/* the lock's place in lockmgr.ready */
	heap_node	look;			/* the lock's place in lockmgr.looks */
	heap_node	unneeded;		/* the lock's place in lockmgr.remembered */
	lm_lock    *hash_next;
	uint64_t	hash;
	char	   *name;
	size_t		name_len;

	lock_state	state;
	lm_lease   *lease;			/* what we have in DynamoDB, or are about to write */
	lm_call    *call;			/* the call in flight, or NULL */
	bool		outcome_unknown;	/* a copy of lease.pending was sent whose outcome we do not
									 * know */
	bool		repeat;			/* a copy of lease.pending was sent */
	bool		turned;			/* RELEASING in shared mode: the other one of LEAVE and LAST was
								 * refused, so we have turned to this one */
	lm_lease   *bar;			/* a lease in the state LEASE_BARRING: makes acquires void that
								 * we have given up; or NULL */

	lm_session *first;			/* the queue of this cluster's sessions that wait for the lock */
	lm_session *last;
	uint32_t	watch;			/* number of the waiters' watch; LOCKMGR_NO_WATCH if nobody waits */
	uint32_t	look_ups;		/* so many look-ups and looks point to this lock, so that it
								 * must not be forgotten */

	/*
	 * The session that waits for the release of the lock, if its present request has this number.
	 */
	lm_session *releaser;
	uint64_t	releaser_seq;
	int64_t		wanted_lease_ms;	/* the length that the session that waits for a renewal
									 * wants; 0: unchanged */
	int64_t		wanted_margin_us;

	/* What we saw of the item while another client, or a forgotten write of ours, had the lock. */
	bool		seen;			/* the last item was not released: the fields below describe it */
	lm_shared  *shared;			/* what the item told of shared mode; NULL: nothing */
	int64_t		first_seen;		/* when we first received "version" */
	int64_t		holder_seen;	/* when we first received an item with this owner and token */
	int64_t		owner_seen;		/* when we first received an item with this owner */
	bool		expired;		/* the version is dead by DynamoDB's clock: see lm_is_expired() */
	bool		read_consistently;	/* the next poll is a consistent read */
	bool		explains;		/* the lock's next call, or the one in flight, reads why the
								 * pending write was refused */
	unsigned	refusals;		/* so many acquires in a row were refused although the item was
								 * free, and did not change */
	char		refused_version[DYNAMO_VERSION_SIZE];	/* version of the item that "refusals"
														 * is about */
	char		owner[DYNAMO_OWNER_SIZE];
	char		version[DYNAMO_VERSION_SIZE];
	int64_t		lease_ms;
	int64_t		token;			/* token of that item; 0: none */
	int64_t		kept_until_ms;	/* keptUntil of the item, also if it is released; 0: none */
	dynamo_holder holder;
	int64_t		top_token;		/* the highest token that we have seen or reserved */
	char	   *attribute_names;	/* attributeNames of the item, as far as we know; NULL: none */
	int64_t		polling_since;	/* the longer ago that is, the rarer are polls */
	int64_t		stay_back_until;	/* we send no acquire before */

	/*
	 * Marks: a cluster that waits asks the holder's cluster to stay back after its release, by the
	 * item's attribute "wanted".  See lockmgr_seen.c.
	 */
	bool		by_ddblock;		/* the other client is a cluster with ddblock, which obeys marks */
	bool		marks;			/* READING: the poll writes our mark */
	bool		marked_by_us;	/* as far as we know, the item has our mark */
	int64_t		marked_until;	/* as far as we know, the item has a mark, ours or another
								 * cluster's, that counts until then; 0: none */
	int64_t		mark_poll_us;	/* our mark promises that we poll as often as this */
	int64_t		asked_at;		/* our sessions have waited for another cluster since then, or
								 * have marked the item then; 0: none waits */
	int64_t		heard_ms;		/* the end of the mark for which we have stayed back, as that
								 * must happen once for each mark; 0: none, or others have had
								 * the lock since */
	int64_t		mark_leaves;	/* the mark is for permits: it needs so few others out.  A mark
								 * for 3 permits under a limit of 5: 2 */
	int64_t		yields_until;	/* until then, we leave the permits that another cluster's mark
								 * wants to that cluster */

	/*
	 * Permits, and gates: a session that waits for an exclusive lock keeps clusters out that want
	 * to share it.  See lockmgr_share.c and lockmgr_seen.c.
	 */
	int64_t		look_at;		/* HELD: when to look at the item for permits; 0: do not look */
	bool		sets_gate;		/* READING: the poll sets or renews our gate */
	bool		gate_unsettled; /* we do not know whether a write of our gate was applied */
	char		gate[UUID_SIZE];	/* nonce of our newest write of a gate */
	char		old_gate[UUID_SIZE];	/* the version of our gate before that */
	int64_t		gate_sent;		/* when our gate was last written */

	/*
	 * The run: the time for which the lock passes from session to session of this cluster, before
	 * our waiters stay back for others.  See lockmgr_clock.c.
	 */
	unsigned	doublings;		/* so many times the length of runs was doubled since others had
								 * the lock */
	int64_t		run_end;		/* when the run ends; 0: there is none */
	int64_t		let_go_at;		/* when a holder last let go; 0: not since the run began */

	/* Deleting the item after its release; see lockmgr_turn.c. */
	int64_t		delete_at;		/* when the deletion is due; 0: never */
	bool		look_deletes_item;	/* the next look is a deletion */
	char		delete_version[UUID_SIZE];	/* the release's nonce */
	int64_t		delete_token;	/* the last token that we wrote */

	/* Calls of this lock that fail; see lockmgr_queue.c. */
	unsigned	attempts;		/* failures in a row */
	bool		postponed;		/* the renewal's repetition is put off, because the budget of
								 * repetitions is spent */
	int64_t		trouble_since;	/* when the first call failed since the last success; 0: none has */
	int64_t		trouble_sent;	/* when that call was sent */
	dynamo_op	trouble_op;
	dynamo_status trouble;
	char		trouble_message[DYNAMO_MESSAGE_SIZE];
};

struct lm_call
{
	uint64_t	id;				/* 0: the struct is unused */
	dynamo_op	op;
	int64_t		sent;
	bool		renewal;		/* the call counts against the limit on renewals */
	bool		last_resort;	/* a renewal alone, to learn whether earlier attempts failed
								 * because they were in batches */
	int			count;
	lm_lock    *locks[DYNAMO_BATCH_MAX];	/* the locks that the call is for; or */
	lm_session *look_up_by;		/* the session that asked for a look-up; NULL for looks, and
								 * once the request is cancelled */
	bool		look_up;		/* it is a look-up, a look for permits or a deletion: not a call
								 * of the lock's state */
	lm_lease   *bar;			/* the call is a step of this bar; count == 0: the bar has ended */
};

/* Are batches of renewals used? */
typedef enum lm_batches
{
	BATCHES_IN_DOUBT,			/* no, only the check that tries whether they work */
	BATCHES_GOOD,
	BATCHES_REFUSED				/* no, for as long as this manager lives */
} lm_batches;
/*
 * So long after we have sent a request, DynamoDB accepts no copy of it any more.  It accepts a
 * signature for 15 minutes by its clock.  Ours may run 5 % faster (945 s), as the simulator's do,
 * and the signature's time is an estimate of DynamoDB's, which may be some seconds ahead.
 */
#define LM_LATE_US (INT64_C(960) * 1000000)

/* Length of the list of retired nonces; see lm_retire(). */
#define LM_RETIRED 256

struct lockmgr
{
	lockmgr_host host;
	char		owner[DYNAMO_OWNER_SIZE];
	char		cluster[DYNAMO_OWNER_SIZE]; /* name of our cluster, a part of owner */
	const char *incarnation;	/* our incarnation, the rest of owner */
	uint32_t	max_remembered;
	uint32_t	max_calls;
	int64_t		request_timeout_us;
	int64_t		retry_timeout_us;
	int64_t		poll_interval_us;
	int64_t		epoch_offset_us;	/* from our clock to the latest possible time of DynamoDB */
	int64_t		earliest_us;	/* from our clock to the earliest possible time of DynamoDB */

	/* The time in versions; see lockmgr_clock.c. */
	bool		takeover_by_clock;
	int64_t		slack_us;
	lockmgr_veto veto;
	int64_t		date_us;		/* Date of the reply that is handled now; 0: it has none, or no
								 * reply is handled */
	int64_t		date_sent;		/* when the request for that reply was sent */
	int64_t		newest_offset;	/* as lease.clock_offset, but by the newest reply */

	/* Batches; see lockmgr_send.c. */
	lm_batches	batches;
	int64_t		check_at;		/* IN_DOUBT: when the next check is due; INT64_MAX: it is in
								 * flight */
	unsigned	checks_failed;	/* failed checks in a row, for the backoff */

	int64_t		alone_at;		/* when the last renewal went out alone as a last resort */
	int64_t		alone_worked;	/* when such a renewal succeeded; 0: none has since a batch
								 * worked */

	int64_t		slowest_us;		/* how long the slowest of the last replies took; each faster
								 * one lowers this */
	backoff_budget budget;		/* the budget of repetitions; cannot_pay: of the call that ends
								 * now */

	int64_t		release_at;		/* when the last of the releases that were put off is due */

	bool		adopting;

	lm_lock   **buckets;
	size_t		bucket_count;	/* a power of two */
	size_t		lock_count;
	uint64_t	hash_seed;
	heap		remembered;		/* structs of locks that nobody needs, the longest unneeded first */

	lm_lease   *leases;			/* [max_leases] */
	uint32_t	max_leases;
	lm_lease   *free_lease;
	uint32_t	reserved_leases;
	lm_hold    *holds;			/* [max_leases] */
	lm_hold    *free_hold;
	uint32_t	extra_holds;	/* holds other than the first of their lease, which take the
								 * room of leases */
	lm_session **sessions;		/* [max_sessions], made when first used */
	lm_session	detached;		/* no session, but the list of detached holds */
	uint32_t	max_sessions;
	uint32_t   *free_watches;
	uint32_t	free_watch_count;

	heap		timers;			/* lm_lock.timer */
	heap		renewals;		/* lm_lock.renewal */
	heap		look_ups;		/* lm_session.timer */
	heap		ends;			/* lm_hold.end */
	heap		bars;			/* lm_lease.next_step */

	/*
	 * Spare leases: lost ones of which nothing is in DynamoDB any more, and whose sessions have
	 * been informed (lockmgr_host.lost).  They are kept for the reason of the loss, until another
	 * lease needs their room.
	 */
	heap		spare;

	/* Queues of what waits for a free call, first come, first served. */
	heap		ready;			/* locks whose call is due */
	heap		looks;			/* locks that look for permits */
	heap		ready_look_ups; /* sessions that look up */

	lm_call    *calls;			/* [2 * max_calls] */
	uint32_t	calls_in_flight;
	uint32_t	renewals_in_flight;
	uint64_t	call_serial;

	uint32_t	leases_in_use;
	uint32_t	leases_held;
	uint32_t	waiters;		/* requests that wait for a lock, but not those of leaderships */
	uint64_t	search;			/* number of the last search for a deadlock */

	/*
	 * Retired nonces: versions of ours that belong to no session, but may be in an item; see
	 * lm_retire().
	 */
	char		retired[LM_RETIRED][UUID_SIZE];
	unsigned	retired_next;
};

/* lockmgr_ask.c */
/* The session has just joined the queue of its lock: answers it, or starts an acquire. */
extern void lm_take_place(lockmgr *lm, int64_t now, lm_session *session);

/* lockmgr_join.c */
extern lm_hold *lm_announced_hold(lockmgr *lm, const lm_session *announced);
extern void lm_end_misfit(lockmgr *lm, int64_t now, lm_session *session,
						  const lockmgr_request *asked);
extern lm_hold *lm_adopted_hold(const lm_session *session, uint64_t seq);
extern void lm_answer_lost(lockmgr *lm, int64_t now, lm_session *session, lm_hold *hold);
extern bool lm_fits_announced(lockmgr *lm, const lm_session *session,
							  const lockmgr_request *asked);
extern bool lm_take_up(lockmgr *lm, int64_t now, lm_session *session, lm_lock *lock);
extern void lm_ask_join(lockmgr *lm, int64_t now, lm_session *session);
extern void lm_join(lockmgr *lm, int64_t now, lm_session *session);
extern void lm_ask_detach(lockmgr *lm, int64_t now, lm_session *session, lm_hold *hold);
extern void lm_end_with_session(lockmgr *lm, int64_t now, lm_hold *hold);
extern lm_hold *lm_detached_hold(lockmgr *lm, const lock_ask *ask);
extern void lm_end_holds(lockmgr *lm, int64_t now);
extern bool lm_is_detached_by(const lockmgr *lm, const lm_hold *hold, uint32_t slot);

/* lockmgr_renew.c */
extern void lm_renewal_settled(lockmgr *lm, int64_t now, lm_lock *lock,
							   const dynamo_result *result);
extern void lm_renewal_failed(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_lose(lockmgr *lm, int64_t now, lm_lock *lock, lease_loss loss,
					const dynamo_result *by);

/* lockmgr_wait.c */
extern void lm_poll_later(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_poll(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_acquire_settled(lockmgr *lm, int64_t now, lm_lock *lock,
							   const dynamo_result *result);
extern void lm_acquire_failed(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_abandon(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_poll_settled(lockmgr *lm, int64_t now, lm_lock *lock,
							const dynamo_result *result);
extern void lm_poll_failed(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_refused_in_vain(lockmgr *lm, int64_t now, lm_lock *lock, lm_session *session,
							   dynamo_op op, unsigned refusals);

/* lockmgr_turn.c */
extern void lm_next_turn(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_turn_release(lm_lock *lock);
extern void lm_let_go(lockmgr *lm, int64_t now, lm_hold *hold);
extern void lm_pass_on(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_become_releasing(lockmgr *lm, lm_lock *lock, const char *expected);
extern void lm_lease_gone(lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_result *result);
extern void lm_hand_over_settled(lockmgr *lm, int64_t now, lm_lock *lock,
								 const dynamo_result *result);
extern void lm_release_settled(lockmgr *lm, int64_t now, lm_lock *lock,
							   const dynamo_result *result);
extern void lm_release_failed(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_lost_ended(lockmgr *lm, lm_lock *lock);
extern void lm_delete_later(const lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_delete_if_due(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_delete_settled(const lockmgr *lm, int64_t now, lm_lock *lock,
							  const dynamo_result *result);

/* lockmgr_send.c */
extern void lm_new_write(lockmgr *lm, lm_lock *lock, dynamo_op op,
						 const char *expected);
extern void lm_new_nonce(lockmgr *lm, lm_lock *lock);
extern void lm_submit(lockmgr *lm, lm_lock *lock);
extern void lm_submit_look_up(lockmgr *lm, lm_session *session);
extern void lm_unsubmit_look_up(lockmgr *lm, lm_session *session);
extern void lm_pump(lockmgr *lm, int64_t now);
extern bool lm_is_batch_check(const lm_call *call);
extern void lm_batch_checked(lockmgr *lm, int64_t now, const dynamo_reply *reply);
extern void lm_batch_replied(lockmgr *lm, int64_t now, int64_t sent, const dynamo_reply *reply);

/* lockmgr_share.c */
extern bool lm_admit(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_give_permits(lockmgr *lm, int64_t now, lm_lock *lock);
extern bool lm_let_in(lockmgr *lm, int64_t now, lm_session *session);
extern int32_t lm_wanted_change(const lockmgr *lm, int64_t now, const lm_lock *lock);
extern void lm_look(lockmgr *lm, lm_lock *lock);
extern bool lm_looks_for_try(int64_t now, const lm_lock *lock);

/* lockmgr_bar.c */
extern void lm_bar(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_attach_bar(lockmgr *lm, int64_t now, lm_lease *bar, lm_lock *lock);
extern void lm_end_bar(lockmgr *lm, lm_lease *bar);
extern bool lm_is_barred(const lease_write *pending, const dynamo_item *item);
extern void lm_describe_bar(lockmgr *lm, int64_t now, lm_lease *bar, dynamo_write *write,
							dynamo_shared_write *shared);
extern void lm_bar_settled(lockmgr *lm, int64_t now, lm_lease *bar,
						   const dynamo_result *result);

/* lockmgr_lease.c */
extern lm_lease *lm_named_lease(const lockmgr *lm, uint32_t index, uint32_t generation);
extern void lm_take_lease(lockmgr *lm, lm_lock *lock);
extern bool lm_role_is_full(lockmgr *lm, const lm_session *session);
extern bool lm_has_room(const lockmgr *lm, const lm_session *session);
extern void lm_make_room(lockmgr *lm);
extern void lm_put_lease(lockmgr *lm, lm_lease *lease);
extern void lm_drop_lease(lockmgr *lm, lm_lock *lock);
extern void lm_set_lease_state(lockmgr *lm, lm_lease *lease, lease_state state);
extern void lm_save(lockmgr *lm, lm_lease *lease, bool with_name);
extern lm_hold *lm_detached_on(const lm_lease *lease);
extern void lm_update_detached(lockmgr *lm, lm_lease *lease);
extern lm_hold *lm_take_hold(lockmgr *lm, int64_t now, lm_lease *lease, lm_session *session,
							 int32_t permits);
extern void lm_attach_hold(lockmgr *lm, lm_hold *hold, lm_lease *lease, lm_session *session);
extern void lm_set_end(lockmgr *lm, lm_hold *hold);
extern void lm_put_hold(lockmgr *lm, lm_hold *hold);
extern void lm_move_hold(lm_hold *hold, lm_session *session);
extern void lm_save_hold(lockmgr *lm, const lm_hold *hold);
extern lm_session *lm_pending_session(lockmgr *lm, const lm_lease *lease);
extern lm_session *lm_payload_session(lockmgr *lm, const lm_lease *lease);
extern bool lm_is_lost(const lm_hold *hold);
extern void lm_written(const lockmgr *lm, lm_lease *lease);
extern void lm_grant(lockmgr *lm, int64_t now, lm_lock *lock, lm_session *session);
extern void lm_show_holder(lockmgr *lm, lm_lease *lease);
extern void lm_answer_granted(lockmgr *lm, lm_session *session, const lm_hold *hold);
extern void lm_become_held(lockmgr *lm, lm_lock *lock);

/* lockmgr_seen.c */
extern void lm_observe(lockmgr *lm, int64_t now, lm_lock *lock,
					   const dynamo_item *item, const dynamo_shared *shared);
extern const char *lm_overwritable(const lockmgr *lm, int64_t now, const lm_lock *lock);
extern bool lm_is_ready(const lockmgr *lm, int64_t now, const lm_lock *lock,
						const lm_request *request);
extern int64_t lm_ripe_at(const lockmgr *lm, int64_t now, const lm_lock *lock);
extern void lm_observe_shared(const lockmgr *lm, lm_lock *lock, int64_t now,
							  const dynamo_shared *shared);
extern int64_t lm_next_death(int64_t now, const lm_lock *lock);
extern bool lm_gate_stands(const lm_lock *lock);
extern const char *lm_dead_gate(const lm_lock *lock);
extern bool lm_is_our_gate(const lm_lock *lock);
extern bool lm_needs_gate(const lm_lock *lock);
extern const lm_entry *lm_our_entry(const lockmgr *lm, const lm_lock *lock);
extern bool lm_can_join(const lockmgr *lm, int64_t now, const lm_lock *lock,
						const lm_request *request);
extern bool lm_has_permits(const lockmgr *lm, int64_t now, const lm_lock *lock,
						   int32_t permits, int32_t limit);
extern void lm_name_dead(const lockmgr *lm, int64_t now, const lm_lock *lock,
						 dynamo_admission *admission, dynamo_dead_entry *dead);
extern const dynamo_entry *lm_entry_in(const lockmgr *lm, const char *epoch,
									   const dynamo_result *result);
extern bool lm_shared_by_others(const lockmgr *lm, const lm_lock *lock);
extern void lm_pending_epoch(const saved_lease *l, char epoch[DYNAMO_EPOCH_SIZE]);
extern bool lm_stands(const lockmgr *lm, const saved_lease *l, const dynamo_result *result);
extern bool lm_has_changed_hands(const lm_lock *lock);
extern void lm_note_mark(const lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_item *item);
extern bool lm_yields(const lockmgr *lm, int64_t now, const lm_lock *lock,
					  const lm_request *request, int32_t permits);
extern bool lm_mark_is_due(int64_t now, const lm_lock *lock);
extern void lm_describe_mark(const lockmgr *lm, int64_t now, lm_lock *lock, dynamo_write *write);
extern void lm_mark_failed(int64_t now, lm_lock *lock);
extern int64_t lm_longest_promised(int64_t now, const lm_lock *lock, int64_t interval);
extern void lm_clear_own_mark(lm_lock *lock);
extern void lm_note_others_mark(const lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_item *item);

/* lockmgr_queue.c */
extern void lm_enqueue(lockmgr *lm, int64_t now, lm_lock *lock,
					   lm_session *session, bool front);
extern void lm_note_waits(lm_lock *lock);
extern void lm_dequeue(lockmgr *lm, lm_session *session);
extern void lm_tell_watch(lockmgr *lm, lm_lock *lock);
extern void lm_note_trouble(lockmgr *lm, int64_t now, lm_lock *lock, dynamo_op op, int64_t sent,
							const dynamo_result *result);
extern void lm_clear_trouble(lockmgr *lm, lm_lock *lock);
extern bool lm_out_of_patience(const lockmgr *lm, int64_t now,
							   const lm_lock *lock, const lm_session *session);
extern void lm_fail_impatient_waiters(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_fail_impatient_releaser(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_charge_budget(lockmgr *lm, const lm_call *call, const dynamo_reply *reply);

/*
 * How long to wait after so many failures: up to cap_us; with a spent budget, cap_us to twice
 * cap_us.
 */
extern int64_t lm_backoff(lockmgr *lm, unsigned attempts, int64_t cap_us);
extern int64_t lm_renew_again_at(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_advance_retry(lockmgr *lm, int64_t now, lm_lock *lock);
extern int64_t lm_release_again_at(lockmgr *lm, int64_t now, const lm_lock *lock);
extern int64_t lm_retry_at(lockmgr *lm, int64_t now, const lm_lock *lock);
extern void lm_delay_acquire(lockmgr *lm, int64_t now, lm_lock *lock);
extern void lm_answer(lockmgr *lm, lm_session *session, lockmgr_answer *answer);
extern void lm_answer_result(lockmgr *lm, lm_session *session,
							 lockmgr_result result);
extern void lm_answer_bad_item(lockmgr *lm, lm_session *session,
							   const char *message);
extern void lm_answer_failed(lockmgr *lm, lm_session *session,
							 const lm_lock *lock);
extern lm_session *lm_releaser(const lm_lock *lock);
extern void lm_fail_releaser(lockmgr *lm, lm_lock *lock);
extern bool lm_is_renewer(const lm_hold *hold);
extern bool lm_has_renewer(const lm_lease *lease);
extern lm_session *lm_data_renewer(const lm_lease *lease);
extern void lm_answer_renewer(lockmgr *lm, const lm_hold *hold, lockmgr_result result);
extern void lm_answer_renewers(lockmgr *lm, const lm_lease *lease, lockmgr_result result);
extern void lm_answer_unconfirmed(lockmgr *lm, lm_session *session);
extern void lm_answer_releaser(lockmgr *lm, lm_lock *lock, lockmgr_result result);

/* lockmgr_deadlock.c */
extern bool lm_deadlocked(lockmgr *lm, lm_session *session, lm_session **in_line,
						  char *cycle, size_t size);

/* lockmgr_clock.c */
extern void lm_set_minimum(const lockmgr *lm, int64_t now, lease_write *pending);
extern int64_t lm_past_ms(const lockmgr *lm, int64_t now);
extern bool lm_is_kept(const lockmgr *lm, int64_t now, int64_t kept_until_ms);
extern bool lm_is_kept_too_long(const lockmgr *lm, int64_t now, int64_t kept_until_ms);
extern int64_t lm_kept_end(const lockmgr *lm, int64_t kept_until_ms);
extern void lm_begin_reply(lockmgr *lm, int64_t now, const dynamo_reply *reply, int64_t sent);
extern void lm_end_reply(lockmgr *lm);
extern void lm_stamp(const lockmgr *lm, saved_lease *l);
extern void lm_count_lease(const lockmgr *lm, saved_lease *l);
extern int64_t lm_believed_end(const saved_lease *l);
extern bool lm_is_expired(const lockmgr *lm, const char *version, int64_t lease_ms);
extern void lm_refused_by_clock(lm_lock *lock);
extern void lm_note_other_client(lm_lock *lock);
extern void lm_replaced(const lockmgr *lm, lm_lock *lock, const dynamo_item *item);
extern void lm_resume_run(int64_t now, lm_lock *lock);
extern void lm_note_let_go(int64_t now, lm_lock *lock);
extern bool lm_in_run(int64_t now, const lm_lock *lock);
extern void lm_end_run(int64_t now, lm_lock *lock);

/* lockmgr_state.c */
extern void lm_enter(lockmgr *lm, lm_lock *lock, lock_state state, int64_t timer);
extern bool lm_may_enter(lock_state from, lock_state to);

/* lockmgr_table.c */
extern lm_lock *lm_get_lock(lockmgr *lm, const char *name, size_t len);
extern bool lm_is_known(const lockmgr *lm, const char *name, size_t len);
extern void lm_remember(lockmgr *lm, lm_lock *lock);
extern lm_session *lm_get_session(lockmgr *lm, lockmgr_session id);
extern lm_session *lm_live_session(lockmgr *lm, lockmgr_session id);
extern uint64_t lm_random(lockmgr *lm);
extern void lm_free_payload(lm_request *request);
extern void lm_note_attributes(lm_lock *lock, const char *names);
extern void lm_retire(lockmgr *lm, const char *version);
extern bool lm_is_retired(const lockmgr *lm, const char *version);
extern void lm_raise_token(lm_lock *lock, int64_t token);

#define LM_CONTAINER(node, type, member) \
	((type *) ((char *) (node) - offsetof(type, member)))

#endif							/* DDBLOCK_LOCK_LOCKMGR_PRIVATE_H */
