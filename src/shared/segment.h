/*-------------------------------------------------------------------------
 *
 * segment.h
 *	  What backends and the worker share: mailbox, lease directory, watches,
 *	  counters.
 *
 * The segment, not the worker, is the truth about what is held: a
 * worker that dies alone is replaced by one that reads everything it needs
 * from here.  No pointer to private memory, no descriptor and no curl handle
 * ever stands in it.
 *
 * There is no lock in it.  Whoever stands still while he has a lock, stopped by
 * SIGSTOP or by a busy machine, stops all who want it; and a worker that waits
 * renews nothing.  So everything has one writer, who never waits, and readers
 * who notice if they have read in between:
 *
 *	 MailboxSlot.request		its backend, changes; then SegmentRing()
 *	 MailboxSlot.generation,
 *	   cancelled_seq, let_go	its backend, atomics; then SegmentRing()
 *	 MailboxSlot.pid, database,
 *	   user						its backend, before the generation
 *	 MailboxSlot.answer			worker, before answer_seq: an atomic
 *	 MailboxSlot.watch			worker, before waiting_seq: an atomic
 *	 DirectoryEntry.lease, name worker, changes
 *	 DirectoryEntry.mark, lost,
 *	   valid_until				worker, atomics, in this order
 *	 DirectoryEntry.let_go and
 *	   depths					the backend that holds it, atomics
 *	 Watch						worker, changes
 *	 DirectoryEntry.untold_loss,
 *	   leases_lost, last_loss	worker and sessions, atomics
 *	 counters					worker, atomics
 *
 * "changes" is odd while its writer writes, and another number afterwards.  A
 * reader copies, looks at it once more, and has nothing if it was odd or is not
 * the same (SegmentBeginRead(), SegmentEndRead(); as PostgreSQL's st_changecount).
 * What a reader does then:
 *
 *	 - the worker leaves a request alone: it is being posted, and its bell follows;
 *	 - a view tries again, and may be interrupted; it leaves out a request that
 *	   is being posted;
 *	 - a waiting session does without the holder's name until the next turn.
 *
 * The races that are left, and who wins:
 *
 *	 - Answer and cancellation.  Each side writes its own word (answer_seq,
 *	   cancelled_seq), then a full barrier, then looks at the other's.  So one of
 *	   them at least sees both and gives back what was granted; both may, which
 *	   does no harm.
 *	 - A new answer never meets a reader of the old one: the worker writes one for
 *	   each request, and the next request is posted when its backend has read
 *	   that answer or cancelled.
 *	 - Generation and request.  The request is read first.  It bears its
 *	   session's generation: if the slot's is another one, it is nobody's.
 *	 - An entry that becomes another lease's.  Its mark is unique to the request
 *	   that acquired the lease.  The worker sets valid_until to 0, then the mark,
 *	   then the new valid_until; the holder reads valid_until, then the mark: with
 *	   his own mark it is his own deadline, or 0.  He lets go by exchanging let_go
 *	   for his mark while the entry bears it; a let_go with another mark means
 *	   nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_SEGMENT_H
#define DDBLOCK_SHARED_SEGMENT_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"

#include "aws/epoch_clock.h"
#include "lock/lockmgr.h"

/* What a backend can ask for: the manager's kinds, and calls past it. */
typedef enum MailboxKind
{
	MAILBOX_ACQUIRE,
	MAILBOX_TRY,
	MAILBOX_RELEASE,
	MAILBOX_RENEW,
	MAILBOX_LOOK_UP,
	MAILBOX_TABLE				/* one call of the given op, about the table or
								 * its items; the backend makes the plan */
} MailboxKind;

typedef struct MailboxRequest
{
	uint64		seq;			/* rises with each request, over all the slot's
								 * users; 0: none yet */
	uint32		generation;		/* the user's that posted it: nobody else's */
	MailboxKind kind;
	uint32		lease_index;	/* RELEASE, RENEW */
	int64		lease_ms;
	int64		margin_us;
	Oid			role;			/* ACQUIRE, TRY: the session's user, */
	int			role_max_leases;	/* its limit (0: none), */
	bool		superuser;		/* and whether it is one */
	dynamo_op	op;				/* TABLE, and all from here to has_data */
	bool		repeat;			/* the last request of the session was the same */
	int64		read_units;		/* CREATE_TABLE; both 0: on-demand */
	int64		write_units;
	bool		released_only;	/* SCAN: name is the names' prefix; data, if any, */
	int			limit;			/* the keys to go on after: first start_len */
	uint16		start_len;		/* bytes of the partition key, then the sort key */
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

/* What fitted into the answer to a SCAN. */
typedef struct LockPageSize
{
	uint16		rows;			/* so many rows, in bytes; then, unless cut: */
	uint16		next;			/* the partition key to go on after, and */
	uint16		next_sort;		/* its sort key; both 0: this is the end */
	bool		cut;			/* not all: go on after the last row */
} LockPageSize;

/* A text for people, and its NUL: as long as a list of credential sources. */
#define MAILBOX_TEXT_SIZE 1024

/*
 * What an answer brings of an item's data, or of a page of items: see
 * lock_page.h.  Of the longest names and texts, two rows fit.
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
	char		hint[MAILBOX_TEXT_SIZE];	/* the worker's knowledge: which
											 * credentials were tried, ... */
	dynamo_item item;			/* LOOK_UP, and what a write met that was
								 * refused; neither data nor wrong is set */
	bool		has_data;		/* the item has data ... */
	uint64		item_data_len;	/* ... of this length, even if it is not here */
	dynamo_table_info table;	/* DESCRIBE_TABLE */
	int64		epoch_us;		/* TABLE: DynamoDB's clock at the answer, or less */
	LockPageSize page;			/* SCAN: what is in data */
	uint8		data[MAILBOX_DATA_SIZE];	/* item's, if it is not longer */
} MailboxAnswer;

typedef struct MailboxSlot
{
	pg_atomic_uint32 generation;	/* odd: in use; even: its session ended */
	pg_atomic_uint64 cancelled_seq; /* this request is unwanted, as all before */
	pg_atomic_uint32 let_go;	/* 1: look at let_go of this session's leases */
	int			pid;			/* set by the session before generation */
	char		database[NAMEDATALEN];	/* UTF-8, for the views */
	char		user[NAMEDATALEN];
	pg_atomic_uint32 changes;	/* of request */
	MailboxRequest request;
	pg_atomic_uint64 waiting_seq;	/* the request that waits, or has waited */
	pg_atomic_uint32 watch;		/* ... under this number */
	pg_atomic_uint64 answer_seq;	/* the request that is answered */
	MailboxAnswer answer;
} MailboxSlot;

typedef struct DirectoryEntry
{
	pg_atomic_uint32 changes;	/* of lease and name */
	lease		lease;			/* state LEASE_FREE: unused */
	pg_atomic_uint64 mark;		/* SegmentMark() of who holds it, or held it last */
	pg_atomic_uint64 valid_until;	/* = lease.valid_until */
	pg_atomic_uint64 untold_loss;	/* see loss.c; 0: told, or not held */
	pg_atomic_uint64 lost;		/* the last loss here: its mark + lease_loss */
	pg_atomic_uint64 let_go;	/* = mark: the session wants no more of it */
	pg_atomic_uint32 session_depth; /* acquisitions, for the views */
	pg_atomic_uint32 xact_depth;
	uint16		name_len;
	char		name[DYNAMO_NAME_MAX];
} DirectoryEntry;

typedef struct Watch
{
	pg_atomic_uint32 changes;
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

/* Why requests are being repeated, in the worker's words. */
typedef struct SegmentTrouble
{
	pg_atomic_uint32 changes;
	char		message[DYNAMO_MESSAGE_SIZE];	/* UTF-8; "": they are not */
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
	pg_atomic_uint64 errors;	/* replies or failures that are no answer */
	pg_atomic_uint64 throttles;
	pg_atomic_uint64 retries;	/* requests that were repeats */
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
	pg_atomic_uint32 loss_changes;	/* odd: one is being made; 0: there was none */
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

/* Installs the shared memory hooks; from _PG_init while preloading. */
extern void SegmentInstallHooks(void);

/* Tells the worker that the slot has news, and wakes it. Async-safe. */
extern void SegmentRing(uint32 slot);

/* The worker's only; "" when nothing is repeated. */
extern void SegmentTellTrouble(const char *message);

/* False if there is no trouble. */
extern bool SegmentReadTrouble(char message[DYNAMO_MESSAGE_SIZE]);

/* A copy of a lease that is not free, or false.  For the views: may be interrupted. */
extern bool SegmentReadLease(uint32 lease_index, DirectoryEntry *copy);

/* The session that has the mark wants no more of the lease.  Async-safe. */
extern void SegmentLetGo(uint32 lease_index, uint64 mark);

/*
 * Names the lease that the slot's session got for its request seq, for ever:
 * request numbers rise over a slot's whole life.  MaxBackends is below 2^18;
 * there is room for a lease_loss.
 */
#define SEGMENT_LOSS_BITS 3

static inline uint64
SegmentMark(lockmgr_session session, uint64 seq)
{
	return (seq << 18 | session.slot) << SEGMENT_LOSS_BITS;
}

/*
 * Around a change.  It is begun once more without harm if a writer has died in
 * the middle of it.
 */
static inline void
SegmentBeginChange(pg_atomic_uint32 *changes)
{
	pg_atomic_write_u32(changes, pg_atomic_read_u32(changes) | 1);
	pg_write_barrier();
}

static inline void
SegmentEndChange(pg_atomic_uint32 *changes)
{
	pg_write_barrier();
	pg_atomic_write_u32(changes, pg_atomic_read_u32(changes) + 1);
}

/* Around a copy: it is worth something if SegmentEndRead() says so. */
static inline uint32
SegmentBeginRead(pg_atomic_uint32 *changes)
{
	uint32		before = pg_atomic_read_u32(changes);

	pg_read_barrier();
	return before;
}

static inline bool
SegmentEndRead(pg_atomic_uint32 *changes, uint32 before)
{
	pg_read_barrier();
	return before % 2 == 0 && pg_atomic_read_u32(changes) == before;
}

/* Microseconds on CLOCK_BOOTTIME: the clock of every lease. */
extern int64 SegmentNow(void);

#endif							/* DDBLOCK_SHARED_SEGMENT_H */
