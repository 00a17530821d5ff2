/*-------------------------------------------------------------------------
 *
 * lockmgr.h
 *	  The lock manager: events in, effects out.
 *
 * The manager decides what to write to DynamoDB and when, who gets
 * a lock next, and when a lease is lost.  It performs no I/O and reads no
 * clock, random source or environment: its host feeds it events with the
 * current time and carries out the effects it asks for.  Given the same events
 * and random numbers it does the same things.
 *
 * It has two kinds of host: the background worker, and tests.
 *
 * Times are microseconds on one clock that counts suspended time too
 * (CLOCK_BOOTTIME); a time of 0 means "none".  Durations say their unit in
 * their name.  Not thread-safe.
 *
 * Effects are delivered by calling the functions of lockmgr_host while an
 * event is handled.  They must not call back into the manager.
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

#define LOCKMGR_NO_LEASE	UINT32_MAX
#define LOCKMGR_NO_WATCH	UINT32_MAX

typedef struct lockmgr lockmgr;

/*
 * An item that has not changed for this long belongs to a dead holder: its lease,
 * and 2 % because clocks differ.
 */
#define LOCKMGR_DEAD_AFTER(lease_us) ((lease_us) / 50 * 51)

/*
 * Who asks.  A slot (0 .. max_sessions-1) is used by one session after the
 * other; generations tell them apart and rise.  Generation 0 is nobody.
 */
typedef struct lockmgr_session
{
	uint32_t	slot;
	uint32_t	generation;
} lockmgr_session;

/*
 * A lease is the part of a lock that must survive the manager: what we wrote
 * to DynamoDB, what we believe, and for whom.  The host keeps a copy of each
 * (in shared memory), which lockmgr_adopt() reads back.
 *
 *	 ACQUIRING ---> HELD ---> LOST ----+
 *		 |   |       |  ^              |
 *		 |   |       v  | handed over  v
 *		 |   +---> RELEASING -------> (free)
 *		 +---------------------------> (free)
 */
typedef enum lease_state
{
	LEASE_FREE,					/* the slot is unused */
	LEASE_ACQUIRING,			/* our acquire is not settled: nobody believes */
	LEASE_HELD,					/* a session holds it until the deadline */
	LEASE_RELEASING,			/* belief has ended; a release or a hand-over
								 * to pending.session is not settled */
	LEASE_LOST					/* the session has yet to acknowledge the loss;
								 * freed before that if its room is needed and
								 * nothing of it stands in DynamoDB */
} lease_state;

/* Why a lease was lost.  An outage is never called a take-over. */
typedef enum lease_loss
{
	LOSS_NONE,
	LOSS_UNREACHABLE,			/* no renewal was confirmed before the deadline */
	LOSS_TAKEN,					/* somebody else's version stands in the item */
	LOSS_RELEASED,				/* our item was marked released by somebody */
	LOSS_DELETED				/* our item is gone */
} lease_loss;

/* A write whose outcome we do not know yet.  version[0] == 0: none. */
typedef struct lease_write
{
	dynamo_op	op;				/* ACQUIRE, RENEW, HAND_OVER, RELEASE */
	char		version[UUID_SIZE]; /* its nonce */
	char		expected[DYNAMO_VERSION_SIZE];	/* as in dynamo_write */
	int64_t		first_sent;		/* before its first copy went out */
	int64_t		lease_ms;
	int64_t		margin_us;
	int64_t		token;			/* ACQUIRE, HAND_OVER */
	lockmgr_session session;	/* ACQUIRE, HAND_OVER: for whom */
	uint64_t	seq;			/* ... and which of its requests */
} lease_write;

typedef struct lease
{
	lease_state state;
	lockmgr_session session;	/* who holds it, or held it last */
	uint64_t	seq;			/* the request that acquired it */
	char		version[UUID_SIZE]; /* confirmed version in the item, or "" */
	int64_t		valid_until;	/* belief; 0 when nobody may believe */
	int64_t		deadline;		/* first_sent + lease - margin of the newest
								 * confirmed write; outlives the belief */
	int64_t		lease_end;		/* the moment from which others may take over,
								 * margin not subtracted */
	int64_t		lease_ms;
	int64_t		margin_us;
	int64_t		token;
	int64_t		acquired_ms;	/* epoch milliseconds, for people */
	uint32_t	role;			/* as in the request that acquired it */
	uint32_t	renewals;
	lease_loss	loss;
	lease_write pending;
	char		stray[UUID_SIZE];	/* nonce of a renewal that nobody settled
									 * before its lease was lost, or "" */
	dynamo_holder holder;		/* who holds it or gets it, for people */
} lease;

typedef enum lockmgr_kind
{
	LOCKMGR_ACQUIRE,			/* waits its turn */
	LOCKMGR_TRY,				/* never waits for a holder */
	LOCKMGR_RELEASE,
	LOCKMGR_RENEW,
	LOCKMGR_LOOK_UP				/* one consistent read of the item */
} lockmgr_kind;

/* Everything pointed to is copied. */
typedef struct lockmgr_request
{
	lockmgr_session session;
	uint64_t	seq;			/* rises within the session; from 1 */
	lockmgr_kind kind;
	const char *name;			/* ACQUIRE, TRY, LOOK_UP: UTF-8 */
	size_t		name_len;
	int64_t		lease_ms;		/* ACQUIRE, TRY; RENEW: 0 keeps the length */
	int64_t		margin_us;		/* ACQUIRE, TRY; RENEW with a lease_ms */
	uint32_t	role;			/* ACQUIRE, TRY: whose sessions share ... */
	uint32_t	role_max_leases;	/* ... so many leases; 0: no limit */
	bool		superuser;		/* ACQUIRE, TRY: may have a reserved lease */
	const dynamo_holder *holder;	/* ACQUIRE, TRY */
	const uint8_t *data;		/* ACQUIRE, TRY; NULL for none */
	size_t		data_len;
	uint32_t	lease_index;	/* RELEASE, RENEW: which lease */
} lockmgr_request;

typedef enum lockmgr_result
{
	LOCKMGR_GRANTED,			/* lease_index, token, valid_until are set */
	LOCKMGR_BUSY,				/* TRY: somebody has it, or waits for it here */
	LOCKMGR_DEADLOCK,			/* ACQUIRE: message tells the cycle */
	LOCKMGR_RELEASED,			/* confirmed by DynamoDB */
	LOCKMGR_RENEWED,			/* valid_until is set */
	LOCKMGR_FOUND,				/* LOOK_UP: item is set (item->exists may be false) */
	LOCKMGR_LOST,				/* RELEASE, RENEW: the lease is lost */
	LOCKMGR_NOT_HELD,			/* RELEASE, RENEW: no such lease of this session */
	LOCKMGR_NO_ROOM,			/* all of max_leases are in use, or reserved */
	LOCKMGR_ROLE_FULL,			/* all of role_max_leases are */
	LOCKMGR_NO_MEMORY,
	LOCKMGR_BAD_ITEM,			/* the item cannot be worked with; message says why */
	LOCKMGR_FAILED				/* status, type, message say why */
} lockmgr_result;

typedef struct lockmgr_answer
{
	lockmgr_session session;
	uint64_t	seq;
	lockmgr_kind kind;
	lockmgr_result result;
	uint32_t	lease_index;
	int64_t		token;
	int64_t		valid_until;
	lease_loss	loss;			/* LOST */
	dynamo_op	op;				/* FAILED: what failed */
	dynamo_status status;		/* FAILED */
	const char *type;			/* FAILED: "" or DynamoDB's name of the error */
	const char *message;		/* FAILED, BAD_ITEM, DEADLOCK; never NULL */
	const dynamo_item *item;	/* FOUND; else NULL */
} lockmgr_answer;

/*
 * What stands between waiting sessions and their lock.  Kept once for each
 * lock that somebody waits for, under a watch number, so that a change costs
 * the same however many wait.
 */
typedef struct lockmgr_watch
{
	bool		held;			/* somebody holds it, as far as we know */
	bool		local;			/* ... a session of this cluster */
	char		owner[DYNAMO_OWNER_SIZE];
	dynamo_holder holder;
	int64_t		first_seen;		/* when this holder was first seen, on our clock */
	dynamo_status trouble;		/* DYNAMO_OK, or what the last call came to */
	char		message[DYNAMO_MESSAGE_SIZE];	/* ... in words */
} lockmgr_watch;

/* One request for DynamoDB: count > 1 only for RENEW_BATCH. */
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

	/* Send; answer it with exactly one later lockmgr_reply(). */
	void		(*send) (void *arg, const lockmgr_call *call);

	/*
	 * Keep a copy of the lease under its index before anything sent later
	 * leaves.  state LEASE_FREE: forget it.  name is NULL if unchanged.
	 */
	void		(*save) (void *arg, uint32_t index, const lease *lease,
						 const char *name, size_t name_len);

	/* The answer to a request; exactly one unless it was cancelled. */
	void		(*answer) (void *arg, const lockmgr_answer *answer);

	/* The request waits, under the given watch number. */
	void		(*waits) (void *arg, lockmgr_session session, uint64_t seq,
						  uint32_t watch);

	/* A watch changed: another holder, or other trouble. */
	void		(*watch) (void *arg, uint32_t watch, const lockmgr_watch *what);

	/* A lease is lost (already saved as LEASE_LOST).  by is NULL, or the item
	 * that stands there now. */
	void		(*lost) (void *arg, uint32_t index, const lease *lease,
						 const char *name, size_t name_len,
						 const dynamo_item *by);

	/* DynamoDB refuses batches (no dynamodb:PartiQLUpdate, mostly): single
	 * renewals from now on.  Said once. */
	void		(*no_batches) (void *arg, const dynamo_reply *reply);

	/* Fills bytes from a good random source. */
	void		(*random) (void *arg, void *bytes, size_t len);
} lockmgr_host;

typedef struct lockmgr_config
{
	const char *owner;			/* our ownerName: "<name>/<incarnation>" */
	uint32_t	max_leases;
	uint32_t	reserved_leases;	/* of these, for superusers */
	uint32_t	max_sessions;
	uint32_t	max_remembered; /* locks remembered while nobody needs them */
	uint32_t	max_calls;		/* calls in flight; as many again for renewals */
	int64_t		request_timeout_us; /* one attempt's at most */
	int64_t		retry_timeout_us;	/* a session's patience with an outage */
} lockmgr_config;

/* Owner is copied.  NULL when memory is short. */
extern lockmgr *lockmgr_new(const lockmgr_config *config,
							const lockmgr_host *host);
extern void lockmgr_free(lockmgr *lm);

/* Settings that may change at run time. */
extern void lockmgr_set_timeouts(lockmgr *lm, int64_t request_timeout_us,
								 int64_t retry_timeout_us);

/*
 * DynamoDB's clock: epoch microseconds at our time 0.  Call before the first
 * event and whenever the estimate changes.
 */
extern void lockmgr_set_clock(lockmgr *lm, int64_t epoch_offset_us);

/*
 * Start of a manager that replaces another one of the same incarnation: adopt
 * every saved lease, then repeat every request that was not answered, with its
 * old seq, then call lockmgr_adopted().
 */
extern void lockmgr_adopt(lockmgr *lm, uint32_t index, const lease *lease,
						  const char *name, size_t name_len);
extern void lockmgr_adopted(lockmgr *lm, int64_t now);

/* Events. */
extern void lockmgr_ask(lockmgr *lm, int64_t now,
						const lockmgr_request *request);

/* The session no longer wants request seq: what it got or gets goes back. */
extern void lockmgr_cancel(lockmgr *lm, int64_t now,
						   lockmgr_session session, uint64_t seq);

/*
 * Release without an answer: a transaction's end, or a session that
 * acknowledges that the lease is lost.
 */
extern void lockmgr_let_go(lockmgr *lm, int64_t now,
						   lockmgr_session session, uint32_t lease_index);

/* Everything of this session, and of earlier users of its slot, goes back. */
extern void lockmgr_session_end(lockmgr *lm, int64_t now,
								lockmgr_session session);

extern void lockmgr_reply(lockmgr *lm, int64_t now, uint64_t call_id,
						  const dynamo_reply *reply);

/*
 * An item was received by a call that is not the manager's, sent at the given
 * time: a page of the table.  It counts as a poll of that lock.  Returns whether
 * a session that tried now would get the lock although its item is not
 * released: its holder is dead.
 */
extern bool lockmgr_observe(lockmgr *lm, int64_t sent, int64_t now,
							const char *name, size_t name_len,
							const dynamo_item *item);

/* Time passes.  Call at lockmgr_next_wake() at the latest. */
extern void lockmgr_tick(lockmgr *lm, int64_t now);

/* INT64_MAX: never. */
extern int64_t lockmgr_next_wake(const lockmgr *lm);

/* For the host's drain and for ddb_stats. */
typedef struct lockmgr_counts
{
	uint32_t	leases;			/* slots in use */
	uint32_t	held;			/* LEASE_HELD */
	uint32_t	waiters;		/* requests that wait for a lock */
	uint32_t	calls;			/* calls in flight */
	uint32_t	remembered;		/* locks remembered while nobody needs them */
} lockmgr_counts;

extern void lockmgr_count(const lockmgr *lm, lockmgr_counts *counts);

/*
 * Walks the leases of whoever uses the slot, in no order: after
 * LOCKMGR_NO_LEASE (the start) comes the first, after the last
 * LOCKMGR_NO_LEASE.  Fetch the next one before letting go of this one.
 */
extern uint32_t lockmgr_next_lease(const lockmgr *lm, uint32_t slot,
								   uint32_t after);

#endif							/* DDBLOCK_LOCK_LOCKMGR_H */
