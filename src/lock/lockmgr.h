/*-------------------------------------------------------------------------
 *
 * lockmgr.h
 *	  The lock manager: events in, effects out.
 *
 * The manager decides what to write to DynamoDB and when, who gets a lock next,
 * and when a lease is lost.  It performs no I/O and reads no clock, random source
 * or environment: its host passes events with the current time, and carries out
 * the effects.  The same events and random numbers have the same effects.
 *
 * Hosts are the background worker and tests.
 *
 * Times are microseconds on one clock that counts suspended time
 * (CLOCK_BOOTTIME); a time of 0 means "none".  Names of durations have their
 * unit.  Not thread-safe.
 *
 * The effects are the functions of lockmgr_host, which the manager calls while it
 * handles an event.  They must not call the manager.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_LOCKMGR_H
#define DDBLOCK_LOCK_LOCKMGR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dynamo/dynamo.h"
#include "lock/uuid.h"

#define LOCKMGR_NO_HOLD		UINT32_MAX
#define LOCKMGR_NO_WATCH	UINT32_MAX

typedef struct lockmgr lockmgr;

/*
 * An item that has not changed for this long belongs to a dead holder: its lease,
 * and 2 % because clocks differ.
 */
#define LOCKMGR_DEAD_AFTER(lease_us) ((lease_us) / 50 * 51)

/*
 * A session.  A slot (0 .. max_sessions-1) is used by one session after another;
 * its generation rises with each.  Generation 0 means no session.
 */
typedef struct lockmgr_session
{
	uint32_t	slot;
	uint32_t	generation;
} lockmgr_session;

/* How an item is held, by what it tells of shared mode (which may be NULL). */
static inline lock_mode
lockmgr_mode(const dynamo_shared *shared)
{
	if (shared == NULL || !shared->current)
		return MODE_EXCLUSIVE;
	return shared->mode;
}

/* In this mode, is the number of permits limited? */
static inline bool
lockmgr_limited(lock_mode mode)
{
	return mode == MODE_SEMAPHORE;
}

/* In this mode, may any number of sessions have a lock? */
static inline bool
lockmgr_unlimited(lock_mode mode)
{
	return mode == MODE_SHARED;
}

/*
 * A lease is between this cluster and DynamoDB, a hold between a session and a
 * lease.  A hold is valid as long as its lease is.  Both must survive the manager:
 * the host keeps a copy of each (in shared memory) for lockmgr_adopt() and
 * lockmgr_adopt_hold().
 *
 * A lease says what we wrote to DynamoDB, and until when its holders may believe.
 * An exclusive lease has one hold, and one more for each session that joins the lock;
 * while sessions of this cluster wait, one hold follows another.  In shared mode a lease
 * has several holds, and is our entry in the item.
 *
 * A session may leave its hold to the cluster: the hold is then detached, and ends by
 * its token, or by its time.  A campaign (campaign.h) is a session of the cluster itself:
 * while it has its hold, others join that as a leader's transactions.
 *
 *	 ACQUIRING ---> HELD ---> LOST ----+
 *		 |   |       |  ^              |
 *		 |   |       v  | handed over  v
 *		 |   +---> RELEASING -------> (free)
 *		 +---> BARRING -------------> (free)
 */
typedef enum lease_state
{
	LEASE_FREE,					/* the slot is unused */
	LEASE_ACQUIRING,			/* our acquire is not settled */
	LEASE_HELD,					/* a session has a hold on it, until the deadline */
	LEASE_RELEASING,			/* belief has ended; a release or a hand-over
								 * to pending.session is not settled */
	LEASE_LOST,					/* its holder has not acknowledged the loss; freed
								 * earlier if its room is needed and nothing of
								 * it is in DynamoDB */
	LEASE_BARRING				/* a copy of our acquire may arrive late: see
								 * lockmgr_bar.c */
} lease_state;

/* Why a lease was lost. */
typedef enum lease_loss
{
	LOSS_NONE,
	LOSS_UNREACHABLE,			/* no renewal was confirmed before the deadline */
	LOSS_TAKEN,					/* the item has another client's version */
	LOSS_RELEASED,				/* somebody marked our item released */
	LOSS_DELETED,				/* somebody deleted our item */
	LOSS_STOOD_STILL,			/* a renewal was confirmed, but DynamoDB's clock is past the
								 * deadline: this machine's clock stood still */
	LOSS_RESIGNED,				/* this cluster gives up its leadership */
	LOSS_AT_MOST				/* of a hold alone: the session wanted it for no longer */
} lease_loss;

/* A write that is not settled.  version[0] == 0: none. */
typedef struct lease_write
{
	dynamo_op	op;				/* ACQUIRE, RENEW, HAND_OVER, RELEASE; BAR, BAR_NEW */
	char		version[UUID_SIZE]; /* its nonce */
	char		expected[DYNAMO_VERSION_SIZE];	/* as in dynamo_write */
	int64_t		first_sent;		/* just before its first copy was sent */
	int64_t		lease_ms;
	int64_t		margin_us;
	int64_t		first_token;	/* ACQUIRE, HAND_OVER: it reserves these tokens, for the
								 * holds to come: of 500 to 755, the second gets 501 */
	int64_t		last_token;
	int64_t		at_least_ms;	/* ACQUIRE, HAND_OVER: for so long nobody else gets the */
	int64_t		kept_until_ms;	/* ... lock, so until then; see lease.kept_until_ms */
	bool		has_holder;		/* it writes lease.holder */
	bool		has_data;		/* it writes data; RENEW: or removes it */
	bool		has_attributes; /* ACQUIRE: it writes additional attributes */
	bool		must_exist;		/* ACQUIRE: as in dynamo_write */
	dynamo_shared_kind kind;	/* in shared mode */
	int32_t		permits;		/* OPEN, JOIN, REPLACE: of our entry; CHANGE: more,
								 * or fewer if negative; else 0 */
	int32_t		limit;			/* ... of the session that it is for; 0: none */
	int32_t		replaced;		/* REPLACE: permits of the entry that is replaced */
	int64_t		shorter_ms;		/* JOIN, REPLACE: the item's lease, which it raises; or 0 */
	lockmgr_session session;	/* ACQUIRE, HAND_OVER, CHANGE to more, RENEW with data:
								 * for whom */
	uint64_t	seq;			/* ... and for which of its requests */
} lease_write;

typedef struct lease
{
	lease_state state;
	uint32_t	generation;		/* rises with each lease in this slot; kept while
								 * the slot is unused */
	lock_mode	mode;
	char		version[UUID_SIZE]; /* confirmed version in the item, or "" */
	int64_t		valid_until;	/* end of the belief; 0: no belief */
	int64_t		deadline;		/* first_sent + lease - margin of the newest
								 * confirmed write, or earlier, see
								 * lockmgr_clock.c; outlives the belief */
	int64_t		lease_end;		/* when others may take over by their own clocks;
								 * BARRING: until when a copy may be accepted */
	int64_t		cut_us;			/* ... and so much earlier by DynamoDB's, at most: the
								 * deadline is this and the margin before lease_end */
	int64_t		clock_offset;	/* DynamoDB's clock is ahead of ours by at most this, by
								 * the reply that confirmed version; 0: unknown */
	int64_t		lease_ms;
	int64_t		margin_us;
	int64_t		next_token;		/* of the reserved ones; 0: none is left */
	int64_t		last_token;
	bool		has_data;		/* the item may have data, */
	bool		has_attributes; /* or additional attributes */
	int64_t		kept_until_ms;	/* the item's keptUntil: before, nobody else gets the
								 * lock; epoch milliseconds, 0: none */
	bool		ends_kept;		/* ... which the release removes */
	bool		stale_holder;	/* the item shows an earlier holder */
	bool		deletes_item;	/* its holder wants that after the release */
	bool		uncertain;		/* the outcome of its acquire was unknown at some time:
								 * a late copy would make a deleted item again */
	bool		detached;		/* it has a hold that no session has: nobody but us
								 * may release it */
	uint32_t	renewals;		/* of the present hold */
	lease_write pending;
	char		stray[UUID_SIZE];	/* nonce of a renewal that was not settled when its
									 * lease was lost, or of a hand-over that was given
									 * up; BARRING: of the acquire; or "".  The item may
									 * get it yet: a release that finds it there expects it */
	dynamo_holder holder;		/* who has it or will get it, for people; of several
								 * sessions, the first one that still has it */

	/* Only in shared mode; the token of all holds is last_token. */
	char		epoch[DYNAMO_EPOCH_SIZE];	/* the item's ownerName */
	int32_t		permits;		/* of our entry */
	int32_t		limit;			/* of the session for which they were added */
	char		refused[UUID_SIZE]; /* nonce of a refused change, of which a late copy
									 * may replace version, or "" */
} lease;

typedef struct hold
{
	lockmgr_session session;	/* generation 0: the slot is unused */
	uint64_t	seq;			/* the request that acquired it */
	uint32_t	lease_index;
	uint32_t	lease_generation;
	lock_mode	mode;			/* the lease's */
	int32_t		permits;		/* 1 unless their number is limited */
	int64_t		token;
	int64_t		acquired_ms;	/* epoch milliseconds, for people */
	uint32_t	role;			/* as in the request that acquired it */
	uint32_t	taker;			/* the role that took the lock */
	bool		joined;			/* ... which was another one */
	bool		campaign;		/* a campaign's own: the cluster leads */
	int64_t		ends_at;		/* detached: when it ends; 0: the session has it */
	int64_t		must_end;		/* ... and believes no longer than this; 0: no limit */
	int64_t		outlives_us;	/* the session's end leaves it to the cluster for so long */
	lease_loss	loss;			/* the lease was lost */
	dynamo_holder holder;		/* who has it, for people */
} hold;

typedef enum lockmgr_kind
{
	LOCKMGR_ACQUIRE,			/* waits for its turn */
	LOCKMGR_TRY,				/* never waits for a holder, but see waits_for_local_holder */
	LOCKMGR_RELEASE,
	LOCKMGR_RENEW,
	LOCKMGR_LOOK_UP,			/* one consistent read of the item */
	LOCKMGR_JOIN,				/* a hold beside the one with this token */
	LOCKMGR_DETACH,				/* leaves a hold to the cluster */
	LOCKMGR_END_DETACHED		/* ends the detached hold with this token */
} lockmgr_kind;

/* A lease as it was granted. */
typedef struct lockmgr_lease
{
	uint32_t	index;
	uint32_t	generation;
} lockmgr_lease;

/*
 * What a session asks for, beside the lock's name, data and attributes.  SQL functions fill it in,
 * and it goes to the lock manager as it is, through shared memory: so it has no pointers.  In
 * brackets: for which kinds a field counts.
 */
typedef struct lock_ask
{
	/* The lock [ACQUIRE, TRY] */
	lock_mode	mode;
	int32_t		permits;		/* if their number is limited: so many, */
	int32_t		limit;			/* ... of at most so many in all */
	bool		must_exist;		/* exclusive: only if it has an item */
	bool		deletes_item;	/* exclusive: after the release; see lockmgr_turn.c */

	/* How long */
	int64_t		lease_ms;		/* [ACQUIRE, TRY; RENEW: 0 keeps the length, as it must in
								 * shared mode] */
	int64_t		margin_us;		/* of that lease */
	int64_t		at_least_ms;	/* [ACQUIRE, TRY] exclusive: nobody else gets the lock for
								 * so long, even if it is released; 0: no minimum */
	int64_t		at_most_us;		/* [ACQUIRE, TRY] the hold is lost after this time; [DETACH]
								 * it ends then, 0: the session keeps it, and leaves it to
								 * the cluster by its end; else 0: no limit */

	/* Who waits for whom */
	bool		waits_for_local_holder; /* [TRY] waits for a holder of this cluster, who must not
										 * wait for the session */
	bool		goes_first;		/* [ACQUIRE] if sessions of this cluster share the lock, not
								 * after those who wait for them */
	bool		campaign;		/* [ACQUIRE] for a campaign, which looks rarely; [JOIN] the
								 * hold must be a campaign's own */

	/* For whom [ACQUIRE, TRY, JOIN] */
	uint32_t	role;			/* this role's sessions */
	uint32_t	role_max_leases;	/* ... may have so many leases; 0: no limit */
	bool		superuser;		/* may use a reserved lease */
	uint32_t	taker;			/* this role takes the lock; [JOIN, END_DETACHED] has taken it */
	size_t		prefix_len;		/* [ACQUIRE] the session may be told names of locks that
								 * begin as this one does, with so many bytes */
	dynamo_holder holder;		/* for people */

	/* Which hold */
	uint32_t	hold_index;		/* [RELEASE, RENEW, DETACH] */
	uint32_t	lease_index;	/* [RELEASE, JOIN, END_DETACHED] on which lease, as granted, or */
	uint32_t	lease_generation;	/* ... as the directory shows it */
	int64_t		token;			/* [JOIN, END_DETACHED] of the hold */
	int64_t		valid_until;	/* [RELEASE] until then the session could believe, as it has
								 * read; of several leases, the earliest such time; [RENEW] for
								 * the session: not longer, whatever the lease says */
	bool		ends_kept;		/* [RELEASE, END_DETACHED] ends the minimum */
} lock_ask;

/* Everything pointed to is copied. */
typedef struct lockmgr_request
{
	lockmgr_session session;
	uint64_t	seq;			/* rises within a session, from 1 */
	lockmgr_kind kind;
	lock_ask	ask;
	const char *name;			/* ACQUIRE, TRY, LOOK_UP: UTF-8 */
	size_t		name_len;
	const uint8_t *data;		/* ACQUIRE, TRY: NULL for none; RENEW: NULL keeps the
								 * item's, as it must in shared mode; data_len 0: none */
	size_t		data_len;
	const char *attributes;		/* ACQUIRE, TRY of an exclusive lock: as in dynamo_write, */
	size_t		attributes_len; /* ... without a NUL; NULL for none */
	const lockmgr_lease *all;	/* RELEASE: instead of one hold, the session's on all of these; */
	uint32_t	all_count;		/* ... answered for the last one, or when one has failed */
} lockmgr_request;

/* What a session is granted. */
typedef struct lockmgr_grant
{
	uint32_t	hold_index;
	uint32_t	lease_index;
	uint32_t	lease_generation;
	int64_t		token;
	int64_t		valid_until;
	int64_t		must_end;		/* as in the hold */
	bool		waited;			/* ACQUIRE: others had the lock meanwhile, not only our calls
								 * were under way */
} lockmgr_grant;

typedef enum lockmgr_result
{
	LOCKMGR_GRANTED,			/* grant is set */
	LOCKMGR_BUSY,				/* TRY: it is held, or a session here waits for it;
								 * DETACH: there is a detached hold already */
	LOCKMGR_DEADLOCK,			/* ACQUIRE: message describes the cycle */
	LOCKMGR_RELEASED,			/* confirmed by DynamoDB */
	LOCKMGR_RENEWED,			/* grant.valid_until is set */
	LOCKMGR_FOUND,				/* LOOK_UP: item is set (item->exists may be false) */
	LOCKMGR_LOST,				/* RELEASE, RENEW, DETACH, END_DETACHED: the lease is
								 * lost; TRY: it was announced and granted, and lost */
	LOCKMGR_NOT_HELD,			/* the session has no such hold; JOIN,
								 * END_DETACHED: there is none */
	LOCKMGR_NO_ROOM,			/* all of max_leases are in use, or reserved */
	LOCKMGR_ROLE_FULL,			/* all of role_max_leases are in use */
	LOCKMGR_NO_MEMORY,
	LOCKMGR_MISSING,			/* must_exist: there is no item */
	LOCKMGR_BAD_ITEM,			/* the item is unusable; message says why */
	LOCKMGR_FAILED				/* status, message say why */
} lockmgr_result;

typedef struct lockmgr_answer
{
	lockmgr_session session;
	uint64_t	seq;
	lockmgr_kind kind;
	lockmgr_result result;
	lockmgr_grant grant;
	lease_loss	loss;			/* LOST */
	dynamo_op	op;				/* FAILED: the operation */
	dynamo_status status;		/* FAILED */
	const char *message;		/* FAILED, BAD_ITEM, DEADLOCK; never NULL */
	const dynamo_item *item;	/* FOUND; else NULL */
	const dynamo_shared *shared;	/* FOUND, if it tells of shared mode; else NULL */
} lockmgr_answer;

/*
 * What keeps the sessions that wait for a lock.  There is one, with a number, for
 * each lock with waiters, so that a change costs the same however many wait.
 */
typedef struct lockmgr_watch
{
	bool		held;			/* the lock is held, as far as we know */
	bool		local;			/* ... by a session of this cluster, or */
	int64_t		kept_until_ms;	/* ... by nobody, but it is kept from others until then,
								 * epoch milliseconds; 0: it is not */
	char		owner[DYNAMO_OWNER_SIZE];
	dynamo_holder holder;
	int64_t		first_seen;		/* when this holder was first seen */
	dynamo_status trouble;		/* DYNAMO_OK, or the status of the last call */
	char		message[DYNAMO_MESSAGE_SIZE];	/* ... and its message */
	int64_t		trouble_since;	/* no call that was sent since then has succeeded */
} lockmgr_watch;

/* One request to DynamoDB; count > 1 only for RENEW_BATCH. */
typedef struct lockmgr_call
{
	uint64_t	id;
	dynamo_op	op;				/* of writes[0], or RENEW_BATCH, or READ */
	bool		repeat;			/* an earlier copy of it was sent */
	int64_t		timeout_us;
	int			count;
	const dynamo_write *writes; /* valid during send() only */
} lockmgr_call;

typedef struct lockmgr_host
{
	void	   *arg;

	/* Send it; call lockmgr_reply() exactly once, later. */
	void		(*send) (void *arg, const lockmgr_call *call);

	/*
	 * Copy the lease before any later call is sent.  state LEASE_FREE: forget
	 * it.  name is NULL if unchanged.
	 */
	void		(*save) (void *arg, uint32_t index, const lease *lease,
						 const char *name, size_t name_len);

	/*
	 * Copy the hold before any later answer.  session.generation 0: forget it.
	 * There is room for as many as there are leases: each hold on a lease but the
	 * first takes the room of a lease.
	 */
	void		(*save_hold) (void *arg, uint32_t index, const hold *hold);

	/* Answer a request: exactly once, or never if it was cancelled. */
	void		(*answer) (void *arg, const lockmgr_answer *answer);

	/* The request waits; this watch says what for. */
	void		(*waits) (void *arg, lockmgr_session session, uint64_t seq,
						  uint32_t watch);

	/* A watch has changed: another holder, or other trouble. */
	void		(*watch) (void *arg, uint32_t watch, const lockmgr_watch *what);

	/*
	 * The lease of this hold is lost; both are saved.  by is the present item, or
	 * NULL.
	 */
	void		(*lost) (void *arg, uint32_t index, const hold *hold,
						 const lease *lease, const dynamo_item *by);

	/*
	 * Batches are refused (mostly: no dynamodb:PartiQLUpdate) or, if the reply is a success,
	 * a false condition was not: leases are renewed one by one from now on.  Called once.  Or,
	 * if that is not for good, until batches work: they have failed several times in a row.
	 */
	void		(*no_batches) (void *arg, const dynamo_reply *reply, bool for_good);

	/*
	 * The item's owner, which is another one, lives: it has changed its item, and has
	 * had it for longer than a lease.  NULL: nobody wants to know.
	 */
	void		(*lives) (void *arg, const dynamo_item *item);

	/* Fill bytes with good random numbers. */
	void		(*random) (void *arg, void *bytes, size_t len);

	/*
	 * Does the host end this hold, whatever its session waits for?  Then nobody waits for that
	 * session.  NULL: it ends none.
	 */
	bool		(*ends_hold) (void *arg, uint32_t index, const hold *hold);
} lockmgr_host;

typedef struct lockmgr_config
{
	const char *owner;			/* our ownerName: "<name>/<incarnation>" */
	uint32_t	max_leases;
	uint32_t	reserved_leases;	/* ... of which for superusers */
	uint32_t	max_sessions;
	uint32_t	max_remembered; /* locks that nobody needs */
	uint32_t	max_calls;		/* calls in flight; as many again for renewals */
	int64_t		request_timeout_us; /* the longest time for one attempt */
	int64_t		retry_timeout_us;	/* how long a session waits during an outage */
	int64_t		poll_interval_us;	/* the longest time between two polls */
} lockmgr_config;

/* Owner is copied.  NULL when memory is short. */
extern lockmgr *lockmgr_new(const lockmgr_config *config,
							const lockmgr_host *host);
extern void lockmgr_free(lockmgr *lm);

/* Settings that may change at run time. */
extern void lockmgr_set_timeouts(lockmgr *lm, int64_t request_timeout_us,
								 int64_t retry_timeout_us, int64_t poll_interval_us);

/*
 * DynamoDB's time (epoch microseconds) at our time 0: the latest and the earliest that
 * is possible.  Call before the first event and whenever the estimate changes.
 */
extern void lockmgr_set_clock(lockmgr *lm, int64_t epoch_offset_us, int64_t earliest_us);

/*
 * May the manager write the time into its versions, and take a lock over if DynamoDB's
 * clock is past such a time, the lease and this slack?  At the start it may not.
 */
extern void lockmgr_set_takeover(lockmgr *lm, bool by_clock, int64_t slack_us);

/* Why it does neither for the moment, by the last reply. */
typedef enum lockmgr_veto
{
	VETO_NONE,
	VETO_NO_DATE,				/* the reply had no Date */
	VETO_WALL_CLOCK				/* its Date and the wall clock differ by more than the slack */
} lockmgr_veto;

extern lockmgr_veto lockmgr_get_veto(const lockmgr *lm);

/*
 * Start of a manager that replaces another one of the same incarnation: adopt each
 * saved lease, also the unused ones (for their generation), then each saved hold;
 * repeat each request without an answer, with its old seq; and call
 * lockmgr_adopted().
 */
extern void lockmgr_adopt(lockmgr *lm, uint32_t index, const lease *lease,
						  const char *name, size_t name_len);
extern void lockmgr_adopt_hold(lockmgr *lm, uint32_t index, const hold *hold);
extern void lockmgr_adopted(lockmgr *lm, int64_t now);

/* Events. */
extern void lockmgr_ask(lockmgr *lm, int64_t now,
						const lockmgr_request *request);

/*
 * The session will ask for this with its number, as a TRY of an exclusive lock without
 * data; several in the order of their numbers.  Not answered.  If it cancels, all that it has
 * announced up to that number ends.  It must cancel before it asks for anything else with such a
 * number: that ends what was announced, but not a write for it that is on its way.
 */
extern void lockmgr_announce(lockmgr *lm, int64_t now,
							 const lockmgr_request *request);

/* The session no longer wants request seq: releases what it was granted for it. */
extern void lockmgr_cancel(lockmgr *lm, int64_t now,
						   lockmgr_session session, uint64_t seq);

/*
 * Ends a hold without an answer: at the end of a transaction, or because the
 * session acknowledges that it is lost.  A session that has detached the hold may have
 * ended.
 */
extern void lockmgr_let_go(lockmgr *lm, int64_t now,
						   lockmgr_session session, uint32_t hold_index);

/*
 * Interrupts who still has a hold with this token on the lease, as if it were lost, and
 * releases it when they have acknowledged that.  Does nothing if there is none.
 */
extern void lockmgr_revoke(lockmgr *lm, int64_t now, uint32_t lease_index,
						   uint32_t lease_generation, int64_t token);

/* Ends all holds of this session, and of earlier users of its slot. */
extern void lockmgr_session_end(lockmgr *lm, int64_t now,
								lockmgr_session session);

extern void lockmgr_reply(lockmgr *lm, int64_t now, uint64_t call_id,
						  const dynamo_reply *reply);

/* How far apart a campaign with such a lease polls. */
extern int64_t lockmgr_campaign_interval(int64_t lease_us);

/*
 * A call of the host, sent at the given time, has read an item: a page of the
 * table, or a standby's look.  Counts as a poll of that lock.  Returns whether its
 * holder is dead, so that a session that tried would get the lock.
 */
extern bool lockmgr_observe(lockmgr *lm, int64_t sent, int64_t now,
							const char *name, size_t name_len,
							const dynamo_item *item, const dynamo_shared *shared);

/* Why nobody can get the lock of an item that was received now, or NULL. */
extern const char *lockmgr_unusable(const lockmgr *lm, int64_t now, const dynamo_item *item,
									const dynamo_shared *shared);

/* Runs the timers.  Call no later than lockmgr_next_wake(). */
extern void lockmgr_tick(lockmgr *lm, int64_t now);

/* INT64_MAX: never. */
extern int64_t lockmgr_next_wake(const lockmgr *lm);

/* For ddb_stats, and for the worker's shutdown. */
typedef struct lockmgr_counts
{
	uint32_t	leases;			/* slots in use */
	uint32_t	held;			/* LEASE_HELD */
	uint32_t	detached;		/* with a detached hold */
	uint32_t	waiters;		/* requests that wait for a lock, campaigns' aside */
	uint32_t	calls;			/* calls in flight */
	uint32_t	remembered;		/* locks that nobody needs */
} lockmgr_counts;

extern void lockmgr_count(const lockmgr *lm, lockmgr_counts *counts);

/*
 * Iterates, in no order, over the holds of the slot's session and over the detached
 * holds that sessions of the slot have left to the cluster.  Pass LOCKMGR_NO_HOLD to
 * get the first; it returns LOCKMGR_NO_HOLD after the last.  Fetch the next one before
 * letting go of this one.
 */
extern uint32_t lockmgr_next_hold(const lockmgr *lm, uint32_t slot,
								   uint32_t after);

/* The request that the hold was granted for. */
extern uint64_t lockmgr_hold_seq(const lockmgr *lm, uint32_t index);

#endif							/* DDBLOCK_LOCK_LOCKMGR_H */
