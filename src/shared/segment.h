/*-------------------------------------------------------------------------
 *
 * segment.h
 *	  What backends and the worker share: mailbox, lease directory, watches,
 *	  counters.
 *
 * The segment, not the worker, is the truth about what is held: when a worker
 * ends, the next one reads everything it needs from here.  It contains no pointer
 * to private memory, no descriptor and no curl handle.
 *
 * It has no locks.  A process that is stopped while it holds one, by SIGSTOP or
 * by a busy machine, stops everyone who wants it; and a worker that waits renews
 * nothing.  So everything has one writer, who never waits, and readers who notice
 * when they have read during a change:
 *
 *	 MailboxSlot.words			as lock/mailbox.h says, which also names the races
 *	 MailboxSlot.request		its backend, words.changes; then the bell
 *	 MailboxSlot.pid, database,
 *	   user						its backend, before words.generation
 *	 MailboxSlot.answer			worker, before words.answer_seq
 *	 MailboxSlot.watch			worker, before waiting_seq: atomics
 *	 DirectoryEntry.lease, name worker, changes
 *	 DirectoryEntry.words		as lock/mailbox.h says
 *	 DirectoryEntry depths		the backend that holds it, atomics
 *	 Watch						worker, changes
 *	 DirectoryEntry.untold_loss,
 *	   leases_lost, last_loss	worker and sessions, atomics
 *	 counters					worker, atomics
 *
 * "changes" is a counter of changes (lock/shared_word.h).  When a reader's copy is
 * not whole,
 *
 *	 - the worker ignores the request: it is being posted, and its bell follows;
 *	 - a view tries again, and may be interrupted; it leaves out a request that
 *	   is being posted;
 *	 - a waiting session does without the holder's name until the next turn.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_SEGMENT_H
#define DDBLOCK_SHARED_SEGMENT_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"

#include "aws/epoch_clock.h"
#include "lock/mailbox.h"

/* What a backend can ask for: the manager's kinds, and calls past it. */
typedef enum MailboxKind
{
	MAILBOX_ACQUIRE,
	MAILBOX_TRY,
	MAILBOX_RELEASE,
	MAILBOX_RENEW,
	MAILBOX_LOOK_UP,
	MAILBOX_TABLE				/* one call of the given op on the table or its
								 * items; the backend decides what comes next */
} MailboxKind;

typedef struct MailboxRequest
{
	uint64		seq;			/* set by MailboxCall() */
	MailboxKind kind;
	uint32		lease_index;	/* RELEASE, RENEW */
	int64		lease_ms;
	int64		margin_us;
	Oid			role;			/* ACQUIRE, TRY: the session's user, */
	int			role_max_leases;	/* its limit (0: none), */
	bool		superuser;		/* and whether it is one */
	dynamo_op	op;				/* TABLE, and all from here to has_data */
	bool		repeat;			/* the session's last request was the same */
	int64		read_units;		/* CREATE_TABLE; both 0: on-demand */
	int64		write_units;
	bool		released_only;	/* SCAN: name is a prefix of names; data, if any, */
	int			limit;			/* the keys to continue after: start_len bytes */
	uint16		start_len;		/* of the partition key, then the sort key */
	char		version[UUID_SIZE]; /* FORCE_RELEASE: its nonce */
	char		expected[DYNAMO_VERSION_SIZE];	/* DELETE, FORCE_RELEASE */
	dynamo_holder holder;		/* ACQUIRE, TRY */
	bool		has_data;
	uint16		data_len;
	uint16		name_len;		/* UTF-8; not RELEASE, RENEW */
	char		name[DYNAMO_NAME_MAX];
	uint8		data[DYNAMO_DATA_MAX];
} MailboxRequest;

/* Why the worker refuses a request without asking DynamoDB. */
typedef enum MailboxRefusal
{
	MAILBOX_NOT_REFUSED,
	MAILBOX_GLOBAL_TABLE,		/* eventually consistent, and no Region is pinned */
	MAILBOX_OTHER_REGION,		/* the pinned one is not ours */
	MAILBOX_NO_PLACE			/* no Region or endpoint; message: why */
} MailboxRefusal;

/* The part of a page that fitted into the answer to a SCAN. */
typedef struct LockPageSize
{
	uint16		rows;			/* bytes of rows; after them, unless cut: */
	uint16		next;			/* the partition key to continue after, and */
	uint16		next_sort;		/* its sort key; both 0: this is the end */
	bool		cut;			/* rows are missing: continue after the last one */
} LockPageSize;

/* Room for a text for people: a list of credential sources is the longest. */
#define MAILBOX_TEXT_SIZE 1024

/*
 * Room for an item's data, or for a page of items (see lock_page.h).  At least two
 * rows with the longest names and texts fit.
 */
#define MAILBOX_DATA_SIZE 8192
StaticAssertDecl(MAILBOX_DATA_SIZE >= DYNAMO_DATA_MAX, "data that we write must fit");

typedef struct MailboxAnswer
{
	lockmgr_result result;		/* TABLE: FOUND or FAILED */
	uint32		lease_index;
	int64		token;
	int64		valid_until;
	lease_loss	loss;
	MailboxRefusal refusal;		/* FAILED, not by DynamoDB; message: the Regions */
	dynamo_op	op;
	dynamo_status status;
	char		type[DYNAMO_TYPE_SIZE];
	char		message[MAILBOX_TEXT_SIZE];
	char		hint[MAILBOX_TEXT_SIZE];	/* what only the worker knows: which
											 * credentials were tried, ... */
	dynamo_item item;			/* LOOK_UP, or why a write was refused; neither
								 * data nor wrong is set */
	bool		has_data;		/* the item has data ... */
	uint64		item_data_len;	/* ... of this length, which may not fit here */
	dynamo_table_info table;	/* DESCRIBE_TABLE */
	int64		epoch_us;		/* TABLE: DynamoDB's clock at the answer, or less */
	LockPageSize page;			/* SCAN: what is in data */
	uint8		data[MAILBOX_DATA_SIZE];	/* the item's, if it fits */
} MailboxAnswer;

typedef struct MailboxSlot
{
	mailbox_slot words;
	int			pid;
	char		database[NAMEDATALEN];	/* UTF-8, for the views */
	char		user[NAMEDATALEN];
	MailboxRequest request;
	pg_atomic_uint64 waiting_seq;	/* the last request that had to wait */
	pg_atomic_uint32 watch;		/* ... under this number */
	MailboxAnswer answer;
} MailboxSlot;

typedef struct DirectoryEntry
{
	shared32	changes;		/* of lease and name */
	lease		lease;			/* state LEASE_FREE: unused */
	mailbox_lease words;
	pg_atomic_uint64 untold_loss;	/* see loss.c; 0: told, or not held */
	pg_atomic_uint32 session_depth; /* acquisitions, for the views */
	pg_atomic_uint32 xact_depth;
	uint16		name_len;
	char		name[DYNAMO_NAME_MAX];
} DirectoryEntry;

/* A copy of an entry, without its atomics. */
typedef struct LeaseCopy
{
	lease		lease;
	bool		let_go;
	uint32		session_depth;
	uint32		xact_depth;
	uint16		name_len;
	char		name[DYNAMO_NAME_MAX];
} LeaseCopy;

typedef struct Watch
{
	shared32	changes;
	lockmgr_watch what;
} Watch;

/*
 * Where requests go.  The first worker that finds it writes it, and it stays
 * for as long as the server runs; url is "" before.
 */
typedef struct SegmentPlace
{
	char		region[64];
	char		host[512];		/* the Host header's value */
	char		url[1024];
} SegmentPlace;

/* Why the worker repeats requests. */
typedef struct SegmentTrouble
{
	shared32	changes;
	char		message[DYNAMO_MESSAGE_SIZE];	/* UTF-8; "": it repeats none */
} SegmentTrouble;

/* The last loss of a lease, for ddb_stats. */
typedef struct SegmentLoss
{
	TimestampTz at;
	int			pid;
	char		database[NAMEDATALEN];	/* UTF-8 */
	char		user[NAMEDATALEN];
	uint16		name_len;
	char		name[DYNAMO_NAME_MAX];
	char		why[DYNAMO_OWNER_SIZE + 128];
} SegmentLoss;

/* Latency histogram: bucket i counts calls under 2^i * 0.5 ms, the last the rest. */
#define SEGMENT_BUCKETS 16

typedef struct OpCounters
{
	pg_atomic_uint64 requests;	/* sent to DynamoDB, repeats included */
	pg_atomic_uint64 errors;	/* error replies, and requests without a reply */
	pg_atomic_uint64 throttles;
	pg_atomic_uint64 retries;	/* repeated requests */
	pg_atomic_uint64 latency_us;	/* sum over replied requests */
	pg_atomic_uint64 latency_count;
	pg_atomic_uint64 consumed_milliunits;
	pg_atomic_uint64 histogram[SEGMENT_BUCKETS];
} OpCounters;

typedef struct Segment
{
	char		incarnation[UUID_SIZE]; /* made by the first worker, then fixed;
										 * "" before */
	char		owner[DYNAMO_OWNER_SIZE];	/* ownerName, made with it */
	SegmentPlace place;			/* worker, before it answers the first call */
	uint32		max_leases;
	uint32		max_sessions;	/* MaxBackends */

	/* The worker: its process number, or PG_UINT32_MAX when none runs. */
	pg_atomic_uint32 worker_procno;
	pg_atomic_uint32 worker_pid;
	pg_atomic_uint32 worker_starts;
	bool		table_checked;	/* worker only: see lock/gate.h */
	SegmentTrouble trouble;
	TimestampTz last_worker_start;	/* worker only */
	epoch_clock clock;			/* worker only: DynamoDB's */
	TimestampTz stats_since;

	/* Gauges and counters that belong to no operation. */
	pg_atomic_uint64 leases_lost;
	shared32	loss_changes;	/* of last_loss; 0: there was no loss */
	SegmentLoss last_loss;		/* see loss.c */
	pg_atomic_uint32 leases_in_use;
	pg_atomic_uint32 leases_held;
	pg_atomic_uint32 waiters;
	OpCounters	ops[DYNAMO_OP_COUNT];
} Segment;

/*
 * Attached in every process once the server has started with ddblock in
 * shared_preload_libraries; else NULL.
 */
extern Segment *segment;
extern MailboxSlot *segment_slots;	/* [max_sessions], by process number */
extern DirectoryEntry *segment_leases;	/* [max_leases] */
extern Watch *segment_watches;	/* [max_sessions] */
extern pg_atomic_uint64 *segment_bells; /* one bit for each slot */

/* The protocol's view of slots and leases; it rings and wakes. */
extern const mailbox segment_mailbox;

/* Installs the shared memory hooks; from _PG_init while preloading. */
extern void SegmentInstallHooks(void);

/* For the worker; "": nothing is repeated. */
extern void SegmentTellTrouble(const char *message);

/* False if there is no trouble. */
extern bool SegmentReadTrouble(char message[DYNAMO_MESSAGE_SIZE]);

/* Copies a lease; false if it is free.  For the views: may be interrupted. */
extern bool SegmentReadLease(uint32 lease_index, LeaseCopy *copy);

/* Microseconds on CLOCK_BOOTTIME: the clock of every lease. */
extern int64 SegmentNow(void);

#endif							/* DDBLOCK_SHARED_SEGMENT_H */
