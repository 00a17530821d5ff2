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
#include "base/uuid.h"

#define LOCKMGR_NO_HOLD		UINT32_MAX
#define LOCKMGR_NO_WATCH	UINT32_MAX

typedef struct lockmgr lockmgr;

/*
 * If an item has not changed for this long, its holder is dead: its lease, and 2 % more because
 * clocks run at different rates.  For a lease of 20 s, that is 20.4 s.
 */
#define LOCKMGR_DEAD_AFTER(lease_us) ((lease_us) / 50 * 51)

/*
 * A session: slot and generation.  A slot (0 .. max_sessions-1) is used by one session after
 * another; its generation rises with each.  Generation 0 means no session.
 */
typedef struct lockmgr_session
{
	uint32_t	slot;
	uint32_t	generation;
} lockmgr_session;

/*
 * The mode in which an item is held.  "shared" is what the item tells of shared mode; NULL:
 * nothing.
 */
static inline lock_mode
lockmgr_mode(const dynamo_shared *shared)
{
	if (shared == NULL || !shared->current)
		return MODE_EXCLUSIVE;
	return shared->mode;
}

/* Does a lock in this mode have a limited number of permits? */
static inline bool
lockmgr_limited(lock_mode mode)
{
	return mode == MODE_SEMAPHORE;
}

/* May any number of sessions have a lock in this mode at once? */
static inline bool
lockmgr_unlimited(lock_mode mode)
{
	return mode == MODE_SHARED;
}

/*
 * A lease is between this cluster and DynamoDB, a hold between a session and a lease.  For
 * example, when a session gets lock x, this cluster has a lease on x (a time until which
 * DynamoDB's item reserves x for this cluster), and the session has a hold on that lease.  A hold
 * is valid as long as its lease is.  Both must survive the manager: the host keeps a copy of each
 * (in shared memory) for lockmgr_adopt() and lockmgr_adopt_hold().
 *
 * A lease says what we wrote to DynamoDB, and until when its holders may believe that they have
 * the lock.  How many holds a lease has:
 *
 *	 - An exclusive lease has one hold, and one more for each session that joins the lock.  While
 *	   sessions of this cluster wait, one hold follows another on the same lease.
 *	 - In shared mode a lease has several holds, and is our entry in the item.
 *
 * A session may leave its hold to the cluster: the hold is then detached.  It ends when somebody
 * who knows its token ends it, or at its time.  A leadership (leadership.h) is a session of the
 * cluster itself: while it has its hold, a leader's transactions join that hold.
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
	LEASE_ACQUIRING,			/* we do not know yet whether DynamoDB has applied our acquire */
	LEASE_HELD,					/* sessions have holds on it, and believe until the deadline */
	LEASE_RELEASING,			/* no session has it any more; a release, a hand-over to
								 * pending.session, or a renewal that was under way when the
								 * last session let go, is not settled */
	LEASE_LOST,					/* lost, and a session has yet to acknowledge that.  If nothing
								 * of the lease is in DynamoDB any more, another lease may take
								 * the slot before that */
	LEASE_BARRING				/* we have given up our acquire, and make copies that arrive
								 * late void: see lockmgr_bar.c */
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
	LOSS_AT_MOST				/* only the hold is lost, not the lease: the session wanted it
								 * for no longer (at_most_us) */
} lease_loss;

/*
 * A write that is not settled: we do not know yet whether DynamoDB has applied or refused it.
 * version[0] == '\0': there is no such write.
 */
typedef struct lease_write
{
	dynamo_op	op;				/* ACQUIRE, RENEW, HAND_OVER, RELEASE; BAR, BAR_NEW */
	char		version[UUID_SIZE]; /* the write's nonce: the version that it gives the item */
	char		expected[DYNAMO_VERSION_SIZE];	/* as in dynamo_write */
	int64_t		first_sent;		/* a moment just before its first copy was sent; 0: not yet */
	int64_t		lease_ms;
	int64_t		margin_us;
	int64_t		first_token;	/* ACQUIRE, HAND_OVER: the write reserves these tokens for the
								 * holds to come: of 500 to 755, the second gets 501 */
	int64_t		last_token;
	int64_t		at_least_ms;	/* ACQUIRE, HAND_OVER: for so long nobody else gets the lock,
								 * even if it is released; 0: no minimum */
	int64_t		kept_until_ms;	/* the end of at_least_ms, as in lease.kept_until_ms */
	bool		has_holder;		/* the write sets the item's holder to lease.holder */
	bool		has_data;		/* the write sets the item's data; RENEW: or removes it */
	bool		has_attributes; /* ACQUIRE: the write sets additional attributes */
	bool		must_exist;		/* ACQUIRE: as in dynamo_write */
	dynamo_shared_kind kind;	/* only in shared mode: what the write does */
	int32_t		permits;		/* OPEN, JOIN, REPLACE: of our entry; CHANGE: how many it adds,
								 * negative if it gives some back; else 0 */
	int32_t		limit;			/* with permits: so many may be out in all clusters, as the
								 * session wants it; 0: no limit */
	int32_t		replaced;		/* REPLACE: permits of our older entry, which goes */
	int64_t		shorter_ms;		/* JOIN, REPLACE: the item's leaseDuration if ours is longer and
								 * so the write raises it; else 0 */
	lockmgr_session session;	/* ACQUIRE, HAND_OVER, CHANGE to more permits, RENEW with data:
								 * the session that it is for */
	uint64_t	seq;			/* the request of that session */
} lease_write;

typedef struct saved_lease
{
	lease_state state;
	uint32_t	generation;		/* rises each time that the slot gets a lease; kept while the
								 * slot is unused */
	lock_mode	mode;
	char		version[UUID_SIZE]; /* the version that our last confirmed write gave the item
									 * (in shared mode: our entry), or "" */
	int64_t		valid_until;	/* the holders may believe until then; 0: they may not */
	int64_t		deadline;		/* first_sent + lease - margin of the newest confirmed write, or
								 * earlier (see lockmgr_clock.c); stays when valid_until becomes
								 * 0 */
	int64_t		lease_end;		/* when others may take over by their own clocks; BARRING: until
								 * when DynamoDB may accept a late copy */
	int64_t		cut_us;			/* by DynamoDB's clock, others may take over so much earlier:
								 * the holders believe until lease_end - cut_us - margin_us at
								 * most */
	int64_t		clock_offset;	/* DynamoDB's clock is ahead of ours by this at most, says the
								 * reply that confirmed version; 0: it does not say */
	int64_t		lease_ms;
	int64_t		margin_us;
	int64_t		next_token;		/* the next of the reserved tokens; 0: none is left */
	int64_t		last_token;		/* of the reserved tokens */
	bool		has_data;		/* the item may have data */
	bool		has_attributes; /* the item may have additional attributes */
	int64_t		kept_until_ms;	/* the item's keptUntil: nobody else gets the lock before; epoch
								 * milliseconds, 0: none */
	bool		ends_kept;		/* the release removes keptUntil, so that others get the lock at
								 * once */
	bool		stale_holder;	/* the item shows an earlier holder, until the next renewal */
	bool		deletes_item;	/* the holder wants that after the release */
	bool		uncertain;		/* the outcome of the acquire was unknown at some time: a late
								 * copy could make the item again if we deleted it */
	bool		detached;		/* a hold on it is detached, or outlives its session: after a
								 * crash of this server nobody may release it, so the journal
								 * does not list it */
	uint32_t	renewals;		/* since the newest hold was granted */
	lease_write pending;
	char		stray[UUID_SIZE];	/* nonce of a second write of ours that the item may have:
									 * of a renewal that was not settled when the lease was lost
									 * or let go, or of a hand-over that was given up; BARRING:
									 * of the acquire; or "" */
	dynamo_holder holder;		/* who has it or will get it, for people; of several sessions
								 * that have joined, the one that has had it for longest */

	/* Only in shared mode, in which all holds have the token last_token. */
	char		epoch[DYNAMO_EPOCH_SIZE];	/* the item's ownerName, by which the entry is in
											 * the item */
	int32_t		permits;		/* that our entry has */
	int32_t		limit;			/* the limit of the session for which permits were last added: a
								 * permit passes on only to sessions that set no lower one */
	char		refused[UUID_SIZE]; /* nonce of a change of permits that was refused.  If a late
									 * copy of it is applied, our entry has this version.  Or "" */
} saved_lease;

typedef struct saved_hold
{
	lockmgr_session session;	/* generation 0: the slot is unused */
	uint64_t	seq;			/* the session's request that acquired the hold, or detached it */
	uint32_t	lease_index;
	uint32_t	lease_generation;
	lock_mode	mode;			/* mode of the lease */
	int32_t		permits;		/* 1 unless the mode is MODE_SEMAPHORE */
	int64_t		token;
	int64_t		acquired_ms;	/* epoch milliseconds, for people */
	uint32_t	role;			/* the hold counts as a lease of this role, as in the request
								 * that acquired it */
	uint32_t	taker;			/* the role that acquired the lock; a session that joins must
								 * name it */
	bool		joined;			/* the session has joined a lock that another session acquired */
	bool		leadership;		/* the hold is a leadership's own: the cluster leads */
	int64_t		ends_at;		/* when the detached hold ends; 0: not detached, the session has
								 * it */
	int64_t		must_end;		/* the session believes no longer than this, whatever the lease
								 * says; 0: no limit */
	int64_t		outlive_time_us;	/* when the session ends, the cluster keeps the hold for so
								 * long; 0: it ends with the session */
	lease_loss	loss;			/* why the hold or its lease was lost, or LOSS_NONE */
	dynamo_holder holder;		/* who has it, for people */
} saved_hold;

typedef enum lockmgr_kind
{
	LOCKMGR_ACQUIRE,			/* waits for its turn */
	LOCKMGR_TRY,				/* LOCKMGR_BUSY instead of waiting for a holder, but see
								 * waits_for_local_holder */
	LOCKMGR_RELEASE,
	LOCKMGR_RENEW,
	LOCKMGR_LOOK_UP,			/* one consistent read of the item */
	LOCKMGR_JOIN,				/* asks for a hold beside the one that has this token */
	LOCKMGR_DETACH,				/* leaves a hold to the cluster */
	LOCKMGR_END_DETACHED		/* ends the detached hold that has this token */
} lockmgr_kind;

/* Names a lease, as it was granted. */
typedef struct lockmgr_lease
{
	uint32_t	index;
	uint32_t	generation;
} lockmgr_lease;

/*
 * What a session asks for, beside the lock's name, data and attributes.  SQL functions fill it in,
 * and it goes to the lock manager as it is, through shared memory: so it has no pointers.  The
 * kinds of request that use a field are in brackets.
 */
typedef struct lock_ask
{
	/* The lock [ACQUIRE, TRY] */
	lock_mode	mode;
	int32_t		permits;		/* semaphore: the session wants so many */
	int32_t		limit;			/* semaphore: at most so many may be out, in all clusters
								 * together */
	bool		must_exist;		/* exclusive: only if the lock has an item */
	bool		deletes_item;	/* exclusive: the item is deleted after the release; see
								 * lockmgr_turn.c */

	/* How long */
	int64_t		lease_ms;		/* [ACQUIRE, TRY, RENEW] RENEW: 0 keeps the length; in shared
								 * mode it must be 0 */
	int64_t		margin_us;		/* the margin of that lease */
	int64_t		at_least_ms;	/* [ACQUIRE, TRY] exclusive: nobody else gets the lock for so
								 * long, even if it is released; 0: no minimum */
	int64_t		at_most_us;		/* [ACQUIRE, TRY] the hold is lost after this time; 0: no limit.
								 * [DETACH] the hold ends after this time; 0: the session keeps
								 * it, and leaves it to the cluster when the session ends */

	/* Who waits for whom */
	bool		waits_for_local_holder; /* [TRY] waits while a session of this cluster has the
										 * lock.  That session must not wait for the one that
										 * asks: such a try takes no part in the search for
										 * deadlocks */
	bool		goes_first;		/* [ACQUIRE] shares the lock with sessions of this cluster
								 * before those who wait for it, to solve a deadlock */
	bool		leadership;		/* [ACQUIRE] for a leadership, which polls rarely; [JOIN] the hold
								 * to join must be a leadership's own */

	/* For whom [ACQUIRE, TRY, JOIN] */
	uint32_t	role;			/* the role of the session */
	uint32_t	role_max_leases;	/* sessions of this role may have so many leases in all; 0:
									 * no limit */
	bool		superuser;		/* may use a lease that is reserved for superusers */
	uint32_t	taker;			/* [ACQUIRE, TRY] the role that acquires the lock; [JOIN,
								 * END_DETACHED] the role that acquired it */
	size_t		prefix_len;		/* [ACQUIRE] errors may tell the session the names of locks
								 * whose first bytes, so many, are the same as this lock's */
	dynamo_holder holder;		/* for people */

	/* Which hold */
	uint32_t	hold_index;		/* [RELEASE, RENEW, DETACH] */
	uint32_t	lease_index;	/* [RELEASE, JOIN, END_DETACHED] the hold's lease, as it was
								 * granted, or as the lease directory shows it */
	uint32_t	lease_generation;	/* of that lease */
	int64_t		token;			/* [JOIN, END_DETACHED] the hold's token */
	int64_t		valid_until;	/* [RELEASE] the valid_until that the session has read; of
								 * several leases, the earliest.  [RENEW] the session does not
								 * believe for longer than this, whatever the lease says */
	bool		ends_kept;		/* [RELEASE, END_DETACHED] others need not wait for the end of
								 * at_least_ms */
} lock_ask;

/* A request of a session.  The manager copies what it points to. */
typedef struct lockmgr_request
{
	lockmgr_session session;
	uint64_t	seq;			/* rises within a session, from 1 */
	lockmgr_kind kind;
	lock_ask	ask;
	const char *name;			/* ACQUIRE, TRY, LOOK_UP: UTF-8 */
	size_t		name_len;
	const uint8_t *data;		/* the item's data.  ACQUIRE, TRY: NULL: none.  RENEW: NULL
								 * keeps what is there, as it must in shared mode; data_len 0
								 * removes it */
	size_t		data_len;
	const char *attributes;		/* ACQUIRE, TRY of an exclusive lock: as in dynamo_write, but
								 * not terminated; NULL for none */
	size_t		attributes_len;
	const lockmgr_lease *all;	/* RELEASE: the session's holds on all of these leases, instead
								 * of one hold */
	uint32_t	all_count;		/* the one answer comes when the last is released, or the first
								 * has failed */
} lockmgr_request;

/* What a session is granted. */
typedef struct lockmgr_grant
{
	uint32_t	hold_index;
	uint32_t	lease_index;
	uint32_t	lease_generation;
	int64_t		token;
	int64_t		valid_until;
	int64_t		must_end;		/* as in saved_hold */
	bool		waited;			/* ACQUIRE: the session waited for others who had the lock, and
								 * not only for our calls */
} lockmgr_grant;

typedef enum lockmgr_result
{
	LOCKMGR_GRANTED,			/* grant is set */
	LOCKMGR_BUSY,				/* TRY: somebody has the lock, or a session of this cluster
								 * waits for it; DETACH: the lock has a detached hold already */
	LOCKMGR_DEADLOCK,			/* ACQUIRE: message describes the cycle */
	LOCKMGR_RELEASED,			/* confirmed by DynamoDB */
	LOCKMGR_RENEWED,			/* grant.valid_until is set */
	LOCKMGR_FOUND,				/* LOOK_UP: item is set (item->exists may be false) */
	LOCKMGR_LOST,				/* RELEASE, RENEW, DETACH, END_DETACHED: the hold or its lease
								 * is lost; TRY: it was announced, granted, and lost since */
	LOCKMGR_NOT_HELD,			/* the session has no such hold; JOIN, END_DETACHED: nobody has */
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
	const char *message;		/* FAILED, BAD_ITEM, DEADLOCK; else "" */
	const dynamo_item *item;	/* FOUND; else NULL */
	const dynamo_shared *shared;	/* FOUND, if the item tells something of shared mode; else
									 * NULL */
} lockmgr_answer;

/*
 * A watch: why the sessions that wait for a lock wait, for people.  Each lock with waiters has
 * one, and all its waiters share it, so that a change costs the same however many wait.
 */
typedef struct lockmgr_watch
{
	bool		held;			/* somebody has the lock, as far as we know, or it is kept */
	bool		local;			/* a session of this cluster has it */
	int64_t		kept_until_ms;	/* nobody has it, but the item's keptUntil keeps it from others
								 * until then; epoch milliseconds, 0: not so */
	char		owner[DYNAMO_OWNER_SIZE];
	dynamo_holder holder;
	int64_t		first_seen;		/* when this holder was first seen */
	dynamo_status trouble;		/* DYNAMO_OK, or the status of the last call */
	char		message[DYNAMO_MESSAGE_SIZE];	/* message of the last call */
	int64_t		trouble_since;	/* the first of the calls that failed in a row was sent then */
} lockmgr_watch;

/* One request to DynamoDB; count > 1 only for RENEW_BATCH. */
typedef struct lockmgr_call
{
	uint64_t	id;
	dynamo_op	op;				/* of writes[0], or RENEW_BATCH, or READ */
	bool		repeat;			/* an earlier copy of the call was sent */
	int64_t		timeout_us;
	int			count;
	const dynamo_write *writes; /* valid during send() only */
} lockmgr_call;

typedef struct lockmgr_host
{
	void	   *arg;

	/* Send the call; for its outcome, call lockmgr_reply() exactly once, later. */
	void		(*send) (void *arg, const lockmgr_call *call);

	/*
	 * Copy the lease before any later call is sent.  state LEASE_FREE: forget the lease.  name is
	 * NULL if unchanged.
	 */
	void		(*save) (void *arg, uint32_t index, const saved_lease *lease,
						 const char *name, size_t name_len);

	/*
	 * Copy the hold before any later answer.  session.generation 0: forget the hold.  There is
	 * room for as many holds as leases, because each hold on a lease but the first takes the room
	 * of a lease.
	 */
	void		(*save_hold) (void *arg, uint32_t index, const saved_hold *hold);

	/* Answer a request.  Each one is answered exactly once, or never if it was cancelled. */
	void		(*answer) (void *arg, const lockmgr_answer *answer);

	/* The request waits; the watch with this number says what for. */
	void		(*waits) (void *arg, lockmgr_session session, uint64_t seq,
						  uint32_t watch);

	/* A watch has changed: another holder, or other trouble. */
	void		(*watch) (void *arg, uint32_t watch, const lockmgr_watch *what);

	/*
	 * The hold is lost, with its lease or alone; both are saved.  "by" is the item that has shown
	 * that, or NULL.
	 */
	void		(*lost) (void *arg, uint32_t index, const saved_hold *hold,
						 const saved_lease *lease, const dynamo_item *by);

	/*
	 * Leases are renewed one by one from now on.
	 *
	 *	 - for_good: batches are refused (mostly because the IAM policy lacks
	 *	   dynamodb:PartiQLUpdate), or the server has reported success for a statement whose
	 *	   condition was false.  Called once.
	 *	 - not for_good: batches have failed several times in a row.  Renewals go one by one
	 *	   until batches work again.
	 */
	void		(*no_batches) (void *arg, const dynamo_reply *reply, bool for_good);

	/*
	 * The item's owner, which is another incarnation or client, is alive: it has changed the item,
	 * and has had it for longer than a lease.  NULL: the host does not want to know.
	 */
	void		(*lives) (void *arg, const dynamo_item *item);

	/* Fill bytes with good random numbers. */
	void		(*random) (void *arg, void *bytes, size_t len);

	/*
	 * Will the host itself end this hold, whatever its session waits for?  Then nobody waits for
	 * that session.  NULL: the host ends no holds.
	 */
	bool		(*ends_hold) (void *arg, uint32_t index, const saved_hold *hold);
} lockmgr_host;

typedef struct lockmgr_config
{
	const char *owner;			/* our ownerName: "<name>/<incarnation>" */
	uint32_t	max_leases;
	uint32_t	reserved_leases;	/* of max_leases, so many are for superusers only */
	uint32_t	max_sessions;
	uint32_t	max_remembered; /* so many locks that nobody needs are remembered */
	uint32_t	max_calls;		/* calls in flight other than renewals; and as many renewals */
	int64_t		request_timeout_us; /* the longest time for one attempt */
	int64_t		retry_timeout_us;	/* how long a session waits during an outage */
	int64_t		poll_interval_us;	/* the longest time between two polls */
} lockmgr_config;

/* Makes a manager, which copies what config points to.  NULL when memory is short. */
extern lockmgr *lockmgr_new(const lockmgr_config *config,
							const lockmgr_host *host);
extern void lockmgr_free(lockmgr *lm);

/* Settings that may change at run time. */
extern void lockmgr_set_timeouts(lockmgr *lm, int64_t request_timeout_us,
								 int64_t retry_timeout_us, int64_t poll_interval_us);

/*
 * Sets DynamoDB's time (epoch microseconds) at our time 0: the latest that is possible, and the
 * earliest.  Call before the first event and whenever the estimate changes.
 */
extern void lockmgr_set_clock(lockmgr *lm, int64_t epoch_offset_us, int64_t earliest_us);

/*
 * May the manager write the time into its versions, and take a lock over when DynamoDB's clock is
 * past such a time, the lease and this slack?  A new manager may not.
 */
extern void lockmgr_set_takeover(lockmgr *lm, bool by_clock, int64_t slack_us);

/*
 * Why the manager, allowed to by lockmgr_set_takeover(), does neither for the moment: what the
 * last reply has shown.
 */
typedef enum lockmgr_veto
{
	VETO_NONE,
	VETO_NO_DATE,				/* the reply had no Date */
	VETO_WALL_CLOCK				/* its Date and the wall clock differ by more than the slack */
} lockmgr_veto;

extern lockmgr_veto lockmgr_get_veto(const lockmgr *lm);

/*
 * A new manager that replaces another one of the same incarnation begins with these, in this
 * order:
 *
 *	 - lockmgr_adopt() for each saved lease, also the unused ones (for their generation);
 *	 - lockmgr_adopt_hold() for each saved hold;
 *	 - lockmgr_ask() for each request without an answer, with its old seq;
 *	 - lockmgr_adopted().
 */
extern void lockmgr_adopt(lockmgr *lm, uint32_t index, const saved_lease *lease,
						  const char *name, size_t name_len);
extern void lockmgr_adopt_hold(lockmgr *lm, uint32_t index, const saved_hold *hold);
extern void lockmgr_adopted(lockmgr *lm, int64_t now);

/* Events. */
extern void lockmgr_ask(lockmgr *lm, int64_t now,
						const lockmgr_request *request);

/*
 * The session announces a request: it will ask for this soon, with this number, as a TRY of an
 * exclusive lock without data.  The manager begins the acquire now, and does not answer.  Several
 * announcements come in the order of their numbers.
 *
 *	 - If the session cancels a number, all that it has announced up to that number ends.
 *	 - Before the session asks for anything else with an announced number, it must cancel that
 *	   number: a call for the announced request may be on its way.  (The other request would end
 *	   the announcement, but not that call.)
 */
extern void lockmgr_announce(lockmgr *lm, int64_t now,
							 const lockmgr_request *request);

/* The session no longer wants request seq: drops it, or releases what was granted for it. */
extern void lockmgr_cancel(lockmgr *lm, int64_t now,
						   lockmgr_session session, uint64_t seq);

/*
 * Ends a hold without an answer: at the end of a transaction, or because the session acknowledges
 * the loss.  It also ends a detached hold, whose session may have ended.
 */
extern void lockmgr_let_go(lockmgr *lm, int64_t now,
						   lockmgr_session session, uint32_t hold_index);

/*
 * Takes the lease away from all sessions that have a hold with this token on it, as if it were
 * lost (LOSS_RESIGNED), and releases it when they have acknowledged that.  Does nothing if there
 * is no such hold.
 */
extern void lockmgr_revoke(lockmgr *lm, int64_t now, uint32_t lease_index,
						   uint32_t lease_generation, int64_t token);

/* Ends all requests, announcements and holds of this session and of earlier users of its slot. */
extern void lockmgr_session_end(lockmgr *lm, int64_t now,
								lockmgr_session session);

extern void lockmgr_reply(lockmgr *lm, int64_t now, uint64_t call_id,
						  const dynamo_reply *reply);

/* How far apart a leadership polls, if it asks for such a lease. */
extern int64_t lockmgr_leadership_interval(int64_t lease_us);

/*
 * The host tells what a call of its own has read, which it sent at the given time: an item of a
 * page of the table, or of a standby's look.  Counts as a poll of that lock.  Returns whether the
 * item's holder is dead, so that a session that tried would get the lock.
 */
extern bool lockmgr_observe(lockmgr *lm, int64_t sent, int64_t now,
							const char *name, size_t name_len,
							const dynamo_item *item, const dynamo_shared *shared);

/* Why nobody can get the lock of this item, which was received now; NULL if somebody can. */
extern const char *lockmgr_unusable(const lockmgr *lm, int64_t now, const dynamo_item *item,
									const dynamo_shared *shared);

/* Runs the timers that are due.  Call it at lockmgr_next_wake() at the latest. */
extern void lockmgr_tick(lockmgr *lm, int64_t now);

/* When the next timer is due; INT64_MAX: never. */
extern int64_t lockmgr_next_wake(const lockmgr *lm);

/* For ddb_stats, and for the worker's shutdown. */
typedef struct lockmgr_counts
{
	uint32_t	leases;			/* slots in use */
	uint32_t	held;			/* LEASE_HELD */
	uint32_t	detached;		/* holds that are detached */
	uint32_t	waiters;		/* requests that wait for a lock, but not those of leaderships */
	uint32_t	calls;			/* calls in flight */
	uint32_t	remembered;		/* locks that nobody needs, but whose structs are kept */
} lockmgr_counts;

extern void lockmgr_count(const lockmgr *lm, lockmgr_counts *counts);

/*
 * Iterates, in no order, over the holds of the slot's session and over the detached holds that
 * sessions of the slot have left to the cluster.  LOCKMGR_NO_HOLD gets the first; the result is
 * LOCKMGR_NO_HOLD after the last.  Fetch the next one before letting go of this one.
 */
extern uint32_t lockmgr_next_hold(const lockmgr *lm, uint32_t slot,
								   uint32_t after);

/* The request that the hold was granted for. */
extern uint64_t lockmgr_hold_seq(const lockmgr *lm, uint32_t index);

#endif							/* DDBLOCK_LOCK_LOCKMGR_H */
