/*-------------------------------------------------------------------------
 *
 * dynamo.h
 *	  The DynamoDB codec: builds request bodies, reads replies.
 *
 * Knows JSON and the lock item; knows no sockets, clocks or PostgreSQL.  The
 * caller sends the bodies.  doc/internals/protocol.md describes the lock item.
 *
 * Memory: a body is malloc'd and belongs to the caller (free()).  A reply
 * owns what it points to until dynamo_reply_free().
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_H
#define DDBLOCK_DYNAMO_DYNAMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DYNAMO_NAME_MAX			2048	/* bytes of a partition key value */
#define DYNAMO_SORT_MAX			1024	/* bytes of a sort key value */
#define DYNAMO_DATA_MAX			4096	/* bytes of "data" that we write */
#define DYNAMO_BATCH_MAX		25		/* statements in one batch */
#define DYNAMO_VERSION_SIZE		128		/* a recordVersionNumber and its NUL */
#define DYNAMO_OWNER_SIZE		384		/* an ownerName and its NUL */
#define DYNAMO_HOLDER_SIZE		128		/* a text of the holder map and its NUL */
#define DYNAMO_SYSTEM_SIZE		24		/* a system identifier, 64 bits in decimal, and its NUL */
#define DYNAMO_ENTRIES_MAX		32		/* clusters that share a lock */
#define DYNAMO_INCARNATION_SIZE 64		/* an entry's key and its NUL */
#define DYNAMO_EPOCH_SIZE		64		/* a shared lock's ownerName and its NUL */
#define DYNAMO_DIGEST_SIZE		33		/* the digest of an unusable item and its NUL */
#define DYNAMO_MESSAGE_SIZE		512		/* an error's type and message, and a NUL */
#define DYNAMO_REPLY_MAX		(32 * 1024 * 1024)	/* larger replies are refused.  An item has
													 * up to 400 kB, of which JSON makes up to
													 * six times as much; a page 1 MB; a batch
													 * that is refused, 25 items */
#define DYNAMO_KEPT_MAX_MS		86400000	/* from an acquire to keptUntil */
#define DYNAMO_KEPT_AGE_S		86400	/* a released item is kept for so long after its
										 * keptUntil */
#define DYNAMO_TOKEN_AGE_US		INT64_C(90000000000)	/* a purge deletes a released item only
														 * if its token is as old as this: see
														 * purge.c */
#define DYNAMO_DEPTH_MAX		80		/* deeper JSON is refused; an item with
										 * DynamoDB's maximum of 32 levels has 68 */
#define DURATION_MAX_MS	(INT64_MAX / 1000000)	/* the longest lease: 292 years; a thousand
												 * times as much still fits into an int64_t */

/* The partition key of the item with the table's identity, which is no lock. */
#define DYNAMO_IDENTITY_KEY "ddblock/lock-table"

/* How the error message begins if the server does not have the operation. */
#define DYNAMO_NO_OPERATION "UnknownOperationException"

/* The outcome of a call.  See "When an outcome is unknown" in doc/internals/protocol.md. */
typedef enum dynamo_status
{
	DYNAMO_OK,
	DYNAMO_CONDITION_FAILED,	/* refused for its condition; the reply shows the item, if the
								 * server sends it */
	DYNAMO_THROTTLED,			/* not applied; try later */
	DYNAMO_CONFLICT,			/* not applied: another transaction's conflict */
	DYNAMO_UNREACHABLE,			/* never sent: name, connect or TLS failed */
	DYNAMO_UNKNOWN,				/* may have been applied */
	DYNAMO_CREDENTIALS,			/* missing, wrong or expired; not applied */
	DYNAMO_CLOCK_SKEW,			/* signed for a wrong time; not applied */
	DYNAMO_ACCESS_DENIED,		/* IAM says no */
	DYNAMO_TABLE_MISSING,		/* ResourceNotFoundException */
	DYNAMO_TABLE_IN_USE,		/* ResourceInUseException */
	DYNAMO_VALIDATION,			/* invalid request; mostly: the table has other keys */
	DYNAMO_MALFORMED,			/* unreadable reply: a write may have been applied */
	DYNAMO_UNTRUSTED,			/* TLS failed, or a wrong server; never sent */
	DYNAMO_WRONG_SERVICE		/* not DynamoDB; a write may have been applied */
} dynamo_status;

/* Operations, as counted in the statistics. */
typedef enum dynamo_op
{
	DYNAMO_ACQUIRE,
	DYNAMO_RENEW,
	DYNAMO_RENEW_BATCH,
	DYNAMO_HAND_OVER,
	DYNAMO_RELEASE,
	DYNAMO_BAR,					/* raises the item's token, whoever holds it, so that an acquire
								 * that was given up cannot be applied late: see lockmgr_bar.c */
	DYNAMO_BAR_NEW,				/* the same where there is no item: makes a released one */
	DYNAMO_MARK,				/* writes a mark, which asks the holder's cluster to stay back
								 * after its release */
	DYNAMO_READ,
	DYNAMO_DESCRIBE_TABLE,
	DYNAMO_CREATE_TABLE,
	DYNAMO_UPDATE_TTL,
	DYNAMO_DESCRIBE_TTL,
	DYNAMO_SCAN,				/* a page of items, for ddb_lock_list() */
	DYNAMO_QUERY,				/* a page of items of one partition, for the same */
	DYNAMO_DELETE,				/* deletes a released item */
	DYNAMO_FORCE_RELEASE,		/* releases any lease, for ddb_lock_force_release() */
	DYNAMO_IDENTIFY,			/* gives the lock table an identity, for queues: see
								 * dynamo_build_identify() */
	DYNAMO_REPLACE,				/* replaces an unusable item, for ddb_lock_force_release() */

	/*
	 * The operations on the queue's table.  src/queue builds the requests, and reads the replies.
	 */
	DYNAMO_QUEUE_READ,
	DYNAMO_QUEUE_QUERY,
	DYNAMO_QUEUE_SCAN,
	DYNAMO_QUEUE_TRANSACT,
	DYNAMO_QUEUE_UPDATE,
	DYNAMO_QUEUE_DELETE,
	DYNAMO_QUEUE_DESCRIBE_TABLE,
	DYNAMO_QUEUE_CREATE_TABLE,
	DYNAMO_QUEUE_UPDATE_TTL,
	DYNAMO_QUEUE_DESCRIBE_TTL
} dynamo_op;
#define DYNAMO_OP_COUNT (DYNAMO_QUEUE_DESCRIBE_TTL + 1)

/* The table and the names of its keys. */
typedef struct dynamo_table
{
	const char *name;
	const char *partition_key;
	const char *sort_key;		/* NULL: the table has none */
	const char *sort_value;		/* the sort key of items whose names have no separator */
	int64_t		released_ttl_s; /* ttl of released items, in seconds; 0: none */
	char		sort_separator; /* see dynamo_key; NUL: none */
} dynamo_table;

/*
 * Which item a lock's name means.
 *
 *	 - If no separator is set, the name is the partition key, and the sort key is the same in all
 *	   items.
 *	 - If one is set, the first separator in a name stands between partition key and sort key.
 *	   With '#', "orders#4#2" means "orders" and "4#2".  A name without a separator is as if
 *	   none was set.
 *
 * Two names never mean one item, and an item never has two names; some items have none.  See
 * "Names and keys" in doc/internals/protocol.md.
 *
 * The parts are in the name or in the table, and not terminated.
 */
typedef struct dynamo_key
{
	const char *partition;
	size_t		partition_len;
	const char *sort;			/* NULL: the table has no sort key */
	size_t		sort_len;
} dynamo_key;

/* The "holder" map: for people to read.  Empty strings are left out. */
typedef struct dynamo_holder
{
	char		database[DYNAMO_HOLDER_SIZE];
	char		user[DYNAMO_HOLDER_SIZE];
	char		application[DYNAMO_HOLDER_SIZE];
	char		host[DYNAMO_HOLDER_SIZE];
	int32_t		pid;			/* 0: not known */
	int64_t		since_ms;		/* epoch milliseconds; 0: not known */
	char		system[DYNAMO_SYSTEM_SIZE]; /* system identifier of the holder's cluster; "": a
											 * standby */
} dynamo_holder;

/* A lock item as read. */
typedef struct dynamo_item
{
	bool		exists;
	bool		released;		/* isReleased is present */
	bool		has_token;		/* fencingToken is present */
	bool		bad_token;		/* fencingToken is present, but not an integer in 1 .. 2^63-1 */
	bool		bad_kept;		/* keptUntil is present, but no such time */
	bool		by_ddblock;		/* held, and its present owner wrote "holder" and fencingToken */
	const char *wrong;			/* why the item of a held lock is unusable, or
								 * NULL; static */
	char		owner[DYNAMO_OWNER_SIZE];	/* an owner that is longer is cut */
	char		version[DYNAMO_VERSION_SIZE];
	int64_t		lease_ms;
	bool		lease_in_seconds;	/* leaseDuration is another client's plain number, which we
									 * take for seconds */
	int64_t		token;			/* 0: none, or a bad one */
	int64_t		hold_token;		/* set by the lock manager if the lock is ours: token of the
								 * present hold; else 0 */
	int64_t		released_at;	/* epoch seconds; 0: unknown when the item was released */
	int64_t		kept_until_ms;	/* keptUntil: nobody gets the lock before, by DynamoDB's clock;
								 * epoch milliseconds; 0: none */
	char		wanted_by[DYNAMO_INCARNATION_SIZE]; /* the mark: incarnation of a cluster that
													 * waits for the lock; or "" */
	int64_t		wanted_until_ms;	/* the mark counts until then: epoch milliseconds; 0: there
									 * is none */
	int64_t		wanted_poll_ms; /* how often the cluster that waits polls */
	int64_t		wanted_permits; /* the cluster that waits wants so many permits at once; 0: none */
	int64_t		wanted_limit;	/* so many permits may then be out in all; 0: it wants a lock */
	dynamo_holder holder;		/* empty unless by_ddblock */
	uint8_t    *data;			/* malloc'd, NULL if there is none */
	size_t		data_len;
	char	   *attributes;		/* the holder's additional attributes, as plain JSON: malloc'd,
								 * or NULL.  If another client is the holder, the table's keys
								 * are among them */
	char	   *attribute_names;	/* attributeNames: the names of additional attributes that a
									 * ddblock has set and nobody has removed, as a JSON array;
									 * malloc'd, or NULL */
	bool		bad_names;		/* attributeNames is present, but unreadable */
} dynamo_item;

/* A cluster that shares a lock: an entry of the item's "shared" map. */
typedef struct dynamo_entry
{
	char		incarnation[DYNAMO_INCARNATION_SIZE];
	char		version[DYNAMO_VERSION_SIZE];
	char		name[DYNAMO_OWNER_SIZE];	/* for people; a name that is longer is cut */
	int64_t		lease_ms;
	int64_t		token;
	int32_t		permits;
} dynamo_entry;

/*
 * How a lock is held, or wanted.  All modes but the first are "shared mode": each cluster
 * has an entry in the item.
 */
typedef enum lock_mode
{
	MODE_EXCLUSIVE,
	MODE_SHARED,				/* any number of sessions may have the lock */
	MODE_SEMAPHORE				/* sessions have permits, whose number is limited */
} lock_mode;
#define MODE_COUNT (MODE_SEMAPHORE + 1)

/* What a lock item tells of shared mode; see "Shared locks" in doc/internals/protocol.md. */
typedef struct dynamo_shared
{
	bool		current;		/* the item is in shared mode: clusters share the lock now */
	const char *wrong;			/* why the item's shared mode or its gate is unusable, or NULL;
								 * static */

	/*
	 * The gate: a session that waits for the lock exclusively keeps out those who want to share
	 * it.  It counts in any mode.
	 */
	bool		gate;
	char		gate_version[DYNAMO_VERSION_SIZE];
	char		gate_name[DYNAMO_OWNER_SIZE];
	int64_t		gate_lease_ms;

	/* The following are set only if "current" is. */
	lock_mode	mode;
	int32_t		total;			/* the permits of all entries */
	int			count;
	dynamo_entry entries[];
} dynamo_shared;

/*
 * The writes in shared mode.  dynamo_shared_op() says as which operation each one is sent and
 * counted.
 */
typedef enum dynamo_shared_kind
{
	DYNAMO_SHARED_OPEN,			/* makes a free or dead item a shared one, with our
								 * entry */
	DYNAMO_SHARED_JOIN,			/* adds our entry */
	DYNAMO_SHARED_REPLACE,		/* puts a new entry in the place of a retired or dead
								 * one of ours */
	DYNAMO_SHARED_RENEW,		/* renews our entry */
	DYNAMO_SHARED_CHANGE,		/* gives our entry more permits, or fewer */
	DYNAMO_SHARED_LEAVE,		/* removes our entry, which must not be the last */
	DYNAMO_SHARED_LAST,			/* releases the item; our entry must be the last */
	DYNAMO_SHARED_FORCE_RELEASE,	/* releases the item, whoever has entries */
	DYNAMO_SHARED_GATE,			/* sets the gate, which keeps others from sharing the lock, for
								 * a session that waits for it exclusively */
	DYNAMO_SHARED_RENEW_GATE
} dynamo_shared_kind;
#define DYNAMO_SHARED_KIND_COUNT (DYNAMO_SHARED_RENEW_GATE + 1)

/* Names an entry that is dead, and that a write removes. */
typedef struct dynamo_dead_entry
{
	const char *incarnation;
	const char *version;
} dynamo_dead_entry;

/* Permits that a write adds, and on which conditions. */
typedef struct dynamo_admission
{
	int32_t		permits;		/* of the new entry; CHANGE: how many are added, negative if
								 * some are given back */
	int32_t		limit;			/* so many permits may be out in all; 0: no limit.  An OPEN
								 * ignores this and all of the following but dead_gate */
	int32_t		freed;			/* permits of the entries that the write removes or replaces */
	int			dead_count;
	const dynamo_dead_entry *dead;
	const char *dead_gate;		/* version of a dead gate, which the write removes; or "" */
} dynamo_admission;

/* The part of a dynamo_write that only shared mode has; kind says which of the union is set. */
typedef struct dynamo_shared_write
{
	dynamo_shared_kind kind;
	const char *epoch;			/* the item's ownerName.  Not used by OPEN, which makes it, nor
								 * by LEAVE and LAST with any_version */
	const char *me;				/* our incarnation; LEAVE and LAST with any_version: the dead
								 * incarnation.  Not used by FORCE_RELEASE and gates */
	union
	{
		struct
		{
			lock_mode	mode;
			const char *name;	/* of this cluster, for people */
			int64_t		shorter_ms; /* the item's leaseDuration if this entry's lease is longer;
									 * else 0 */
			dynamo_admission admission;
		}			entry;		/* OPEN, JOIN, REPLACE */
		dynamo_admission change;	/* CHANGE */
		const char *waiter;		/* GATE: the name of this cluster */
	};
} dynamo_shared_write;

/*
 * One conditional write of a lock item; or, as DYNAMO_READ, one read, which uses
 * only name, name_len and maybe_stale.
 */
typedef struct dynamo_write
{
	dynamo_op	op;				/* ACQUIRE, RENEW, HAND_OVER, RELEASE, BAR, BAR_NEW,
								 * MARK, READ, DELETE, FORCE_RELEASE, REPLACE */
	const char *name;			/* UTF-8 */
	size_t		name_len;
	const char *owner;			/* our ownerName */
	const char *version;		/* the fresh nonce that this write carries */
	const char *expected;		/* the version that the condition names.  ACQUIRE, OPEN, GATE: a
								 * dead one, or "".  DELETE, FORCE_RELEASE: the one that was
								 * just read.  MARK: the holder's ownerName.  Else the version
								 * that we hold: of the item, or in shared mode of our entry or
								 * gate */
	bool		maybe_stale;	/* READ: an eventually consistent read, at half the price */
	bool		any_version;	/* RELEASE: the owner is dead, so the release expects any of its
								 * versions, and ignores "expected" */
	int64_t		lease_ms;
	int64_t		first_token;	/* ACQUIRE, HAND_OVER: the first of the tokens that the write
								 * reserves.  BAR, BAR_NEW: of the acquire that is barred */
	int64_t		last_token;		/* the last of these tokens, which the item then has; in shared
								 * mode, the only one.  DELETE: the item has no token above this
								 * one */
	const dynamo_holder *holder;	/* ACQUIRE, HAND_OVER: the new holder.  RENEW: the new one;
									 * NULL keeps the item's */
	const uint8_t *data;		/* ACQUIRE, HAND_OVER: the new data; NULL removes the item's.
								 * RENEW: NULL keeps the item's data, data_len 0 removes it */
	size_t		data_len;
	bool		must_exist;		/* ACQUIRE: the write makes no item */
	const char *attributes;		/* ACQUIRE: additional attributes, as DynamoDB's JSON, or NULL */
	const char *old_attributes; /* attribute_names of the item as far as known, or NULL.
								 * ACQUIRE: the item must have these, and the write removes
								 * those attributes.  RELEASE: the write removes them */
	int64_t		kept_until_ms;	/* ACQUIRE, HAND_OVER: the new keptUntil; 0: none.  RELEASE: the
								 * item's keptUntil or a later time: it stays; 0 removes it */
	int64_t		past_ms;		/* ACQUIRE, HAND_OVER: a time that has certainly passed; the
								 * item's keptUntil must not be later.  Epoch milliseconds */
	int64_t		wanted_until_ms;	/* MARK: as in dynamo_item */
	int64_t		wanted_poll_ms;
	int64_t		wanted_permits;
	int64_t		wanted_limit;
	bool		unmark;			/* ACQUIRE, CHANGE to more permits: the write removes the mark */
	int64_t		now_s;			/* RELEASE, FORCE_RELEASE, BAR_NEW, REPLACE: epoch seconds for
								 * releasedAt */
	const char *replaced;		/* REPLACE: json of the result that showed the item; last_token
								 * is the new item's */
	const dynamo_shared_write *shared;	/* NULL: not in shared mode.  Then owner, holder
										 * and data are ignored, and op is dynamo_shared_op()
										 * of its kind */
} dynamo_write;

/*
 * Which part of the table a SCAN or QUERY reads: see dynamo_scan_op().
 * Each page is read consistently; changes between two pages may or may not be seen.
 */
typedef struct dynamo_scan
{
	const char *prefix;			/* of the name, UTF-8; not terminated */
	size_t		prefix_len;		/* 0: any */
	bool		released_only;
	int			limit;			/* how many items DynamoDB reads for this page */
	const char *after;			/* start after this partition key; NULL: at the start */
	size_t		after_len;
	const char *after_sort;		/* the sort key to start after, if the table has one */
	size_t		after_sort_len;
} dynamo_scan;

/* The outcome of one write, alone or as a statement of a batch. */
typedef struct dynamo_result
{
	dynamo_status status;
	char		message[DYNAMO_MESSAGE_SIZE];	/* for people: "type: message" if DynamoDB
												 * has sent both */
	dynamo_item item;			/* Which item: of a READ, the one that was read; of a refusal,
								 * the one that refused the write.  Of a successful ACQUIRE or
								 * RELEASE, what it replaced, as far as known; of BAR, MARK,
								 * and, in shared mode, JOIN, REPLACE, RENEW, CHANGE and gates,
								 * the item as it is now */
	dynamo_shared *shared;		/* malloc'd, NULL if the item tells nothing of shared
								 * mode */
	char	   *json;			/* of READ and CONDITION_FAILED, if the item is unusable: the
								 * item in DynamoDB's JSON, in a fixed order; malloc'd, or NULL */
} dynamo_result;

typedef struct dynamo_table_info
{
	char		status[24];		/* ACTIVE, CREATING, ... */
	char		partition_key[256];
	char		partition_type[4];	/* S, N or B */
	char		sort_key[256];	/* "" if there is none */
	char		sort_type[4];
	char		arn[512];
	int64_t		read_units;		/* both 0: on-demand */
	int64_t		write_units;
	bool		is_protected;	/* from deletion */
	bool		replicated;		/* it is a global table */
	bool		strong;			/* a global table has multi-Region strong consistency */
	char		replicas[256];	/* its Regions, for people: "us-west-2, eu-west-1" */
	char		ttl_attribute[256]; /* only of DESCRIBE_TTL, which sets no other: "" if the
									 * time-to-live is off */
} dynamo_table_info;

/* How a table is created. */
typedef struct dynamo_creation
{
	int64_t		read_units;		/* both 0: on-demand */
	int64_t		write_units;
	bool		protect;		/* deletion protection: nobody can delete the table before it is
								 * switched off */
} dynamo_creation;

/* A lock item in a page. */
typedef struct dynamo_row
{
	char	   *name;			/* malloc'd; at most DYNAMO_NAME_MAX bytes */
	dynamo_item item;
	dynamo_shared *shared;		/* as in dynamo_result */
} dynamo_row;

typedef struct dynamo_page
{
	int			count;
	dynamo_row *rows;
	char	   *next;			/* partition key after which the next page starts; NULL: there
								 * is none */
	char	   *next_sort;		/* sort key after which it starts; NULL if the table has none */
} dynamo_page;

typedef struct dynamo_reply
{
	dynamo_status status;		/* of the call as a whole */
	char		message[DYNAMO_MESSAGE_SIZE];	/* as in dynamo_result */
	double		consumed;		/* capacity units */
	dynamo_table_info table;	/* of DESCRIBE_TABLE, CREATE_TABLE, DESCRIBE_TTL */
	int			count;			/* number of results: 1, or one for each statement of a batch */
	dynamo_result *results;
	dynamo_page page;			/* of SCAN and QUERY */
	struct cJSON *json;			/* of the queue's operations: the whole reply, if the status is
								 * OK or CONDITION_FAILED and the reply has a body */

	/* Set by who has received the reply: */
	int64_t		date_s;			/* the reply's Date header, epoch seconds; 0: none */
	int64_t		wall_us;		/* this machine's wall clock when the reply came, epoch
								 * microseconds */
} dynamo_reply;

/* Is the call neither done, nor refused for its condition? */
static inline bool
dynamo_is_failure(dynamo_status status)
{
	return status != DYNAMO_OK && status != DYNAMO_CONDITION_FAILED;
}

/* May the same request succeed if it is repeated, without anybody's help? */
extern bool dynamo_is_transient(dynamo_status status);

/* An error in words. */
typedef struct dynamo_words
{
	const char *sqlstate;		/* five characters */
	const char *message;		/* "%s" is the table's place in it; after "at ": the endpoint's */
	const char *hint;			/* what to do; NULL for a missing table, where it depends on the
								 * settings */
} dynamo_words;

/* The words for a failure with this status and message, from a reply or from the transport. */
extern const dynamo_words *dynamo_error_words(dynamo_status status, const char *message);

/* The detail that belongs to dynamo_error_words(); op is the operation that failed. */
extern void dynamo_error_detail(char *to, size_t size, dynamo_status status, dynamo_op op,
								const char *message);

/*
 * Does a validation error's message say that the table's keys have other names or types
 * than the request?  DynamoDB has no error code for it.
 */
extern bool dynamo_is_about_keys(const char *message);

/* Is the operation about the queue's table? */
extern bool dynamo_is_queue(dynamo_op op);

/* Does the operation change the jobs in the queue's table? */
extern bool dynamo_is_queue_write(dynamo_op op);

/* Does the operation read a page of lock items? */
extern bool dynamo_is_page(dynamo_op op);

/* Is the operation about a table, and not about its items? */
extern bool dynamo_is_about_table(dynamo_op op);

/* Does the operation only look at a table: DESCRIBE_TABLE, DESCRIBE_TTL? */
extern bool dynamo_is_description(dynamo_op op);

/* "DynamoDB_20120810.UpdateItem" and so on, for the X-Amz-Target header. */
extern const char *dynamo_target(dynamo_op op);

/* "acquire", "renew_batch", ... as in ddb_operations. */
extern const char *dynamo_op_name(dynamo_op op);

/* The mode's name, as in the item and in views; static. */
extern const char *dynamo_mode_name(lock_mode mode);

/* The IAM action that the operation needs, e.g. "dynamodb:UpdateItem". */
extern const char *dynamo_action(dynamo_op op);

/* The key of the name's item. */
extern dynamo_key dynamo_key_of(const dynamo_table *table, const char *name, size_t len);

/* The key of the item with the table's identity, whatever the separator is. */
extern dynamo_key dynamo_identity_key(const dynamo_table *table);

/* Why no lock can have this name, in a sentence; NULL if one can.  The text is static. */
extern const char *dynamo_name_wrong(const dynamo_table *table, const char *name, size_t len);

/* The name of the item with this key; false if it has none.  sort: NULL as in dynamo_key. */
extern bool dynamo_key_name(const dynamo_table *table, const char *partition,
							const char *sort, char name[DYNAMO_NAME_MAX + 1]);

/* QUERY if the prefix names a partition that has all names with the prefix; else SCAN. */
extern dynamo_op dynamo_scan_op(const dynamo_table *table, const char *prefix, size_t len);

/*
 * What in the item keeps everybody from getting the lock, held or not: static, or NULL.  "shared"
 * is what the item tells of shared mode, if the lock is wanted in that mode; else NULL.  A gate
 * that nobody can read keeps out only sessions that want to share the lock.
 */
extern const char *dynamo_obstacle(const dynamo_item *item, const dynamo_shared *shared);

/*
 * Why nobody can use the item as a lock, or NULL.  An unreadable gate counts only in a released
 * item.
 */
extern const char *dynamo_unusable(const dynamo_item *item, const dynamo_shared *shared);

/*
 * Writes the first hex digits of a text's SHA-256, as many as fit into size with a NUL.  False,
 * and zeros, if OpenSSL cannot make it.  The JSON of an unusable item (dynamo_result) always has
 * the same digest for the same item.
 */
extern bool dynamo_digest(const char *text, char *digest, size_t size);

/*
 * Shows an item's JSON to people: binary values are cut short, and so is the whole if it does not
 * fit.
 */
extern void dynamo_show(const char *json, char *shown, size_t size);

/*
 * A token above all tokens in the JSON of an item, and not below time_us.  *may_fall: the new
 * token may be lower than an earlier one, because the item's own is unreadable or the highest
 * possible.
 */
extern int64_t dynamo_token_above(const char *json, int64_t time_us, bool *may_fall);

/* The operation as which a write in shared mode is sent and counted. */
extern dynamo_op dynamo_shared_op(dynamo_shared_kind kind);

/* The incarnation's entry, if the item is in shared mode and has one; else NULL. */
extern const dynamo_entry *dynamo_find_entry(const dynamo_shared *shared,
											 const char *incarnation);

/* The incarnation in an ownerName of ours, which is "<name>/<incarnation>". */
extern const char *dynamo_incarnation(const char *owner);

/*
 * Is this the name of an attribute that lock items have?  Then it can name neither a key nor an
 * additional attribute.
 */
extern bool dynamo_is_attribute(const char *name);

/*
 * The names in dynamo_write.attributes, in the form of dynamo_item.attribute_names: malloc'd; NULL
 * when memory is short.
 */
extern char *dynamo_attribute_names(const char *attributes);

/*
 * Request bodies; NULL when memory is short.  dynamo_build() is for requests about
 * one item, dynamo_build_batch() for renewals; they return NULL for others.
 */
extern char *dynamo_build(const dynamo_table *table, const dynamo_write *write);
extern char *dynamo_build_batch(const dynamo_table *table,
								const dynamo_write *writes, int count);
extern char *dynamo_build_describe_table(const dynamo_table *table);	/* and DESCRIBE_TTL */
extern char *dynamo_build_create_table(const dynamo_table *table, const dynamo_creation *how);
extern char *dynamo_build_update_ttl(const dynamo_table *table);
/*
 * A write that gives the table this identity.  If it has one, the write is refused, and the
 * version of the item that the refusal shows is the identity.
 */
extern char *dynamo_build_identify(const dynamo_table *table, const char *identity);
extern char *dynamo_build_scan(const dynamo_table *table, const dynamo_scan *scan);

/* Values of x-amz-crc32 and x-amzn-ErrorType, "" if absent. */
typedef struct dynamo_headers
{
	const char *crc32;
	const char *error_type;
} dynamo_headers;

/*
 * Reads the reply to an operation.  table: only a page needs it, for the names of its keys; others
 * may have NULL.  http_status is the HTTP status, headers may be NULL, count is the number of
 * statements sent (1 if not a batch).  Always fills *reply; free it with dynamo_reply_free().
 * reply->count == count unless memory was short (then 0 and status DYNAMO_MALFORMED).  If the call
 * failed as a whole, each result has the call's status, type and message.
 */
extern void dynamo_read(dynamo_reply *reply, const dynamo_table *table, dynamo_op op,
						int count, int http_status, const dynamo_headers *headers,
						const char *body, size_t len);

/* Fills *reply for a call without a reply: the transport failed with this status. */
extern void dynamo_read_failure(dynamo_reply *reply, int count,
								dynamo_status status, const char *message);

extern void dynamo_reply_free(dynamo_reply *reply);

/*
 * A lease as clients write it: decimal milliseconds ("20000", Amazon's Java client and
 * ourselves) or Go's duration format ("20s", "1m30s", "1.5h", "300ms"; the client dynamolock).
 * The result is in milliseconds, rounded up, and at most DURATION_MAX_MS.  False for anything
 * else: empty, negative, trailing bytes.
 */
extern bool duration_parse(const char *text, size_t len, int64_t *milliseconds);

/* As in zlib and in DynamoDB's x-amz-crc32 header. */
extern uint32_t crc32_of(const void *bytes, size_t len);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_H */
