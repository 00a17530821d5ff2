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
 * nothing.  So everything has one writer at a time, who never waits, and readers who
 * notice when they have read during a change.  Who writes what, and under which guard:
 *
 *	 MailboxSlot, the session's (a leadership's: the worker)
 *	   words.generation			session, atomic; odd while it uses the slot
 *	   words.announced_seq		session, for itself
 *	   words.request_*,
 *		 request, text			session, words.changes; then the bell
 *	   words.accepted_seq,
 *		 cancelled_seq			session, atomics; then the bell
 *	   words.let_go				set by session or worker, taken by the worker: exchange
 *	   pid, database, user		session, before words.generation
 *	   wait						session, while since is 0
 *	   wants_jobs				set by the session, taken by who tells of jobs: exchange
 *	   looked_for				session, while looked_at is 0
 *	 MailboxSlot, the worker's
 *	   words.granted, answer	before words.answer_seq, an atomic; the session reads them
 *								in place, until it posts its next request
 *	   watch, waiting_place		before waiting_seq: atomics
 *	 LeaseEntry
 *	   lease, name				worker, changes
 *	   words					worker, atomics; valid_until is 0 while generation changes
 *	 HoldEntry
 *	   hold, database			worker, changes
 *	   words.mark, lost			worker, atomics
 *	   words.let_go				holder or worker: = mark, while that is the mark
 *	   session_depth, xact_depth	holder, atomics; worker: 0 for a new hold
 *	   untold_loss				worker for a new hold; who clears it tells the loss: exchange
 *	 FinishEntry				the session that reserved it, then the worker: place.state
 *								changes hands by an exchange
 *	 Watch						worker, changes
 *	 segment_bells				set by who has changed a slot, taken by the worker: atomics
 *	 Segment
 *	   max_leases ... bell_words,
 *		 stats_since			the server's start
 *	   incarnation, owner		the first worker, before status.since
 *	   place					the worker that finds it, before status.has_place
 *	   leaderships, trouble,
 *		 renewal_failure, status	worker, changes
 *	   worker_*, leases_*, waiters	worker, atomics
 *	   "worker only"			worker; nobody else reads them
 *	   last_loss				who has made loss_changes odd, by an exchange
 *	   events, wait_us,
 *		 wait_histogram, spent	worker and sessions: atomic additions
 *	   ops						worker: atomic additions
 *	   queue_table_checked,
 *		 queue_floor, _read		sessions, atomics
 *	   hints					the process that has taken it, by an exchange of state
 *	   memory					sessions: three atomics, which readers compare
 *								(queue/queue_memory.c)
 *	   finish_news				set by sessions, taken by the worker: exchange
 *
 * "changes" is a counter of changes (base/shared_word.h).  When a reader's copy is
 * not whole,
 *
 *	 - the worker ignores the request: it is being posted, and its bell follows;
 *	 - a view tries again, and may be interrupted;
 *	 - who looks for requests that wait leaves one out that is being posted;
 *	 - a waiting session does without the holder's name until the next turn.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_SEGMENT_H
#define DDBLOCK_SHARED_SEGMENT_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"

#include "aws/aws.h"
#include "lock/leadership.h"
#include "lock/mailbox.h"
#include "queue/queue.h"

/* What a backend can ask for: the lock manager's kinds, and calls past it. */
typedef enum MailboxKind
{
	MAILBOX_ACQUIRE = LOCKMGR_ACQUIRE,
	MAILBOX_TRY = LOCKMGR_TRY,
	MAILBOX_RELEASE = LOCKMGR_RELEASE,
	MAILBOX_RENEW = LOCKMGR_RENEW,
	MAILBOX_LOOK_UP = LOCKMGR_LOOK_UP,
	MAILBOX_JOIN = LOCKMGR_JOIN,
	MAILBOX_DETACH = LOCKMGR_DETACH,
	MAILBOX_END_DETACHED = LOCKMGR_END_DETACHED,
	MAILBOX_RESIGN,				/* gives up a leadership, in no call */
	MAILBOX_TABLE,				/* one call of the given op on the table or its
								 * items; the backend decides what comes next */
	MAILBOX_ANNOUNCE,			/* the session's next requests: see mailbox.h */
	MAILBOX_QUEUE,				/* a piece of a call on the queues' table; with its last
								 * piece the call is made */
	MAILBOX_QUEUE_MORE			/* the next piece of the last call's reply */
} MailboxKind;

/* Kind and op say which part of the union is set. */
typedef struct MailboxRequest
{
	uint64		seq;			/* set by MailboxCall(), */
	int64		posted;			/* as is this: when, for the views */
	MailboxKind kind;
	dynamo_op	op;				/* TABLE, QUEUE, QUEUE_MORE */
	bool		repeat;			/* TABLE, QUEUE: the session's last request was the same */
	uint16		name_len;		/* in the slot's text; then, without a gap: */
	uint16		data_len;		/* data and attributes, or the keys after which a SCAN
								 * or QUERY continues; RELEASE: instead of one hold, all
								 * of the session's on these leases (lockmgr_lease) */
	uint16		attributes_len; /* the last part of data_len; 0: none */
	bool		has_data;
	uint64		first_seq;		/* ANNOUNCE: of the first name; each name is after its length, a
								 * uint16, in data */
	union
	{
		lock_ask	ask;		/* the lock manager's kinds, ANNOUNCE */
		struct
		{
			int64		rest_us;
			int64		wait_us;	/* 0: without end */
		}			resign;		/* RESIGN */
		dynamo_creation creation;	/* CREATE_TABLE */
		struct
		{
			bool		released_only;
			int			limit;
			uint16		start_len;	/* the part of data_len that is the partition
									 * key; 0: start at the beginning */
		}			scan;		/* SCAN, QUERY: the name is a prefix of names */
		struct
		{
			char		version[UUID_SIZE]; /* FORCE_RELEASE, REPLACE: its nonce; IDENTIFY: a new
											 * identity */
			char		expected[DYNAMO_VERSION_SIZE];	/* REPLACE: the item's digest; "":
														 * only shows it */
			bool		shared; /* FORCE_RELEASE: expected is the epoch of a shared lock */
		}			write;		/* DELETE, FORCE_RELEASE, IDENTIFY, REPLACE */
		struct
		{
			uint32		total;	/* QUEUE: bytes of all pieces */
			uint32		offset; /* of this piece; QUEUE_MORE: in the reply */
		}			queue;		/* QUEUE, QUEUE_MORE */
	};
} MailboxRequest;

#define MAILBOX_REQUEST_TEXT (DYNAMO_NAME_MAX + DYNAMO_DATA_MAX)
#define MAILBOX_RELEASE_MAX (MAILBOX_REQUEST_TEXT / sizeof(lockmgr_lease))
StaticAssertDecl(sizeof(queue_request) <= MAILBOX_REQUEST_TEXT, "a request's struct is one piece");
StaticAssertDecl(DYNAMO_DATA_MAX >= DYNAMO_NAME_MAX + DYNAMO_SORT_MAX, "a scan's keys must fit");

/* What an answer says, and which part of its union is set. */
typedef enum MailboxResult
{
	/* The lock manager's results */
	MAILBOX_GRANTED = LOCKMGR_GRANTED,	/* grant */
	MAILBOX_BUSY = LOCKMGR_BUSY,
	MAILBOX_DEADLOCK = LOCKMGR_DEADLOCK,	/* failure.message */
	MAILBOX_RELEASED = LOCKMGR_RELEASED,
	MAILBOX_RENEWED = LOCKMGR_RENEWED,	/* grant.valid_until */
	MAILBOX_FOUND = LOCKMGR_FOUND,	/* found */
	MAILBOX_LOST = LOCKMGR_LOST,	/* loss */
	MAILBOX_NOT_HELD = LOCKMGR_NOT_HELD,
	MAILBOX_NO_ROOM = LOCKMGR_NO_ROOM,
	MAILBOX_ROLE_FULL = LOCKMGR_ROLE_FULL,
	MAILBOX_NO_MEMORY = LOCKMGR_NO_MEMORY,
	MAILBOX_MISSING = LOCKMGR_MISSING,
	MAILBOX_BAD_ITEM = LOCKMGR_BAD_ITEM,	/* failure.message */
	MAILBOX_FAILED = LOCKMGR_FAILED,	/* failure; TABLE, too */

	/* TABLE */
	MAILBOX_DONE,				/* CREATE_TABLE, UPDATE_TTL, DELETE, FORCE_RELEASE, IDENTIFY,
								 * REPLACE, ANNOUNCE */
	MAILBOX_DESCRIBED,			/* DESCRIBE_TABLE: table */
	MAILBOX_CHANGED,			/* DELETE, FORCE_RELEASE, IDENTIFY, REPLACE: not done; found: the
								 * item */
	MAILBOX_UNUSABLE,			/* REPLACE: not done; unusable: the item as it is now */

	/* QUEUE, QUEUE_MORE, and TABLE's SCAN and QUERY */
	MAILBOX_MORE,				/* the worker wants the next piece */
	MAILBOX_REPLY,				/* piece: of the reply, or of a LockPage */

	/* Refused by the worker, without asking DynamoDB */
	MAILBOX_GLOBAL_TABLE,		/* eventually consistent, and no Region is pinned;
								 * failure.message: the Regions */
	MAILBOX_OTHER_REGION,		/* the pinned one is not ours */
	MAILBOX_NO_PLACE			/* no Region, endpoint or authorities; failure.message: why */
} MailboxResult;

/* Room for a text for people: a list of credential sources is the longest. */
#define MAILBOX_TEXT_SIZE 1024

typedef struct MailboxFailure
{
	dynamo_op	op;
	dynamo_status status;
	char		message[MAILBOX_TEXT_SIZE];
	char		hint[MAILBOX_TEXT_SIZE];	/* what only the worker knows: which
											 * credentials were tried, ... */
} MailboxFailure;

typedef struct MailboxItem
{
	dynamo_item item;			/* no pointer is set */
	bool		unusable;		/* nobody can get the lock */
	bool		has_data;		/* of item.data_len bytes, */
	size_t		attributes_len; /* and attributes; 0: none.  Each comes if it fits, */
	uint8		data[DYNAMO_DATA_MAX];	/* ... the data at the beginning, the attributes
										 * at the end */
	lock_mode	mode;
	int32		permits;		/* in shared mode: the total, and who has them */
	int			clusters;
	char		cluster[DYNAMO_ENTRIES_MAX][NAMEDATALEN];	/* names, UTF-8 */
	int32		cluster_permits[DYNAMO_ENTRIES_MAX];
} MailboxItem;

/* An item that nobody can use as a lock; UTF-8. */
typedef struct MailboxUnusable
{
	char		why[DYNAMO_MESSAGE_SIZE];
	char		digest[DYNAMO_DIGEST_SIZE];
	bool		released;
	bool		token_may_fall; /* no token is above the item's */
	char		item[DYNAMO_DATA_MAX];	/* for people */
} MailboxUnusable;

/* A lock's item in a page. */
typedef struct LockRow
{
	char		name[DYNAMO_NAME_MAX + 1];	/* UTF-8 */
	dynamo_item item;			/* no pointer is set */
	lock_mode	mode;			/* how it is held */
	int32		permits;		/* of a semaphore: how many are out */
	bool		dead;			/* not released, but this cluster may take it over */
	char		unusable[DYNAMO_MESSAGE_SIZE];	/* why nobody can get the lock, or "" */
} LockRow;

/* A page of lock items.  It travels in pieces. */
typedef struct LockPage
{
	int64		epoch_us;		/* DynamoDB's clock at the answer, or less */
	uint16		next_len;		/* of the partition key to continue after, and */
	uint16		next_sort_len;	/* of its sort key; both 0: this is the end */
	char		next[DYNAMO_NAME_MAX + DYNAMO_SORT_MAX];
	int			count;
	LockRow		rows[FLEXIBLE_ARRAY_MEMBER];
} LockPage;

/* Of a reply that is larger than a slot. */
#define MAILBOX_PIECE_SIZE 8192

typedef struct MailboxAnswer
{
	MailboxResult result;
	union
	{
		lockmgr_grant grant;
		lease_loss	loss;
		MailboxFailure failure;
		MailboxItem found;
		MailboxUnusable unusable;
		dynamo_table_info table;
		struct
		{
			uint32		total;	/* bytes of the whole reply */
			uint32		len;
			uint8		data[MAILBOX_PIECE_SIZE];
		}			piece;
	};
} MailboxAnswer;

/* What a session waits for without a request: see session/deadlock.c. */
typedef struct SlotWait
{
	shared64	since;			/* 0: for nothing */
	uint32		lease_index;	/* for the end of this lease, or */
	uint32		lease_generation;
	char		queue[QUEUE_NAME_MAX + 1];	/* for a job of this queue, */
	uint64		resources;		/* and of these resources: a set of bits */
} SlotWait;

typedef struct MailboxSlot
{
	mailbox_slot words;
	int			pid;
	Oid			database_id;
	char		database[NAMEDATALEN];	/* UTF-8, for the views */
	char		user[NAMEDATALEN];
	MailboxRequest request;
	char		text[MAILBOX_REQUEST_TEXT]; /* the request's name, UTF-8, and data */
	shared64	waiting_seq;	/* the last request that had to wait */
	shared32	watch;			/* ... under this number */
	shared64	waiting_place;	/* ... in this order */
	MailboxAnswer answer;
	shared32	wants_jobs;		/* its session waits for jobs of a queue */
	shared64	looked_at;		/* the last look at a queue's index, and at which one */
	char		looked_for[QUEUE_NAME_MAX + 1];
	SlotWait	wait;
} MailboxSlot;

typedef struct LeaseEntry
{
	shared32	changes;		/* of lease and name */
	saved_lease lease;			/* state LEASE_FREE: unused */
	mailbox_lease words;
	char		name[DYNAMO_NAME_MAX + 1];	/* UTF-8; the last byte is always 0 */
} LeaseEntry;

typedef struct HoldEntry
{
	shared32	changes;		/* of hold */
	saved_hold hold;			/* session.generation 0: unused */
	Oid			database;		/* its session's */
	mailbox_hold words;
	shared64	untold_loss;	/* see report_loss.c; 0: told, or not held */
	shared32	session_depth;	/* acquisitions, for the views */
	shared32	xact_depth;
} HoldEntry;

/* A job that is finished by the worker, and what its session had for it. */
typedef struct FinishEntry
{
	queue_place place;
	lockmgr_session session;
	uint64		hold_seq;		/* the request that the session's hold was granted for, */
	uint32		hold_index;		/* and the hold, which ends then; or LOCKMGR_NO_HOLD */
} FinishEntry;

/* Copies of entries, without their atomics. */
typedef struct LeaseCopy
{
	saved_lease lease;
	char		name[DYNAMO_NAME_MAX + 1];
} LeaseCopy;

typedef struct HoldCopy
{
	saved_hold hold;
	Oid			database;
	bool		let_go;
	uint32		session_depth;
	uint32		xact_depth;
} HoldCopy;

/* A request that waits for a lock, and who waits; texts are UTF-8. */
typedef struct WaiterCopy
{
	lockmgr_session session;
	int			pid;
	char		database[NAMEDATALEN];
	char		user[NAMEDATALEN];
	MailboxRequest request;
	uint64		place;			/* the order of the lock's queue */
	char		name[DYNAMO_NAME_MAX + 1];
} WaiterCopy;

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

/* Why the worker repeats requests on the lock table, or why its last renewal failed. */
typedef struct SegmentTrouble
{
	shared32	changes;
	int64		at;				/* 0: never */
	dynamo_status status;		/* trouble: DYNAMO_OK if it repeats none */
	char		message[DYNAMO_MESSAGE_SIZE];	/* UTF-8 */
} SegmentTrouble;

/* What the worker knows of itself, for ddb_status; all 0 before it has started. */
typedef struct WorkerStatus
{
	TimestampTz since;			/* start of the process; segment->owner is set */
	bool		has_place;		/* segment->place is set */
	char		credentials[384];	/* where they come from, UTF-8; "": none */
	int64		credentials_expire_s;	/* epoch seconds; 0: never, or unknown */
	int64		last_reply;		/* the last good one, on our clock; 0: none yet */
	epoch_clock clock;			/* DynamoDB's */
	uint32		connections;	/* open ones */
	char		proxy[320];		/* its URL, without user and password; "": none */
	char		http_library[64];	/* libcurl's name and version */
	char		copy[DYNAMO_OWNER_SIZE];	/* see worker_cluster_copy.c; UTF-8 */
	int64		copy_until;		/* it lives until then, by what is known of it; or 0 */
} WorkerStatus;

/* What is counted for ddb_stats. */
typedef enum SegmentEvent
{
	EVENT_ACQUIRED,				/* a session got a lease */
	EVENT_BUSY,					/* ... or not: a try for a lock that is held */
	EVENT_TIMED_OUT,			/* ... or not in time */
	EVENT_DEADLOCK,
	EVENT_LOST_UNREACHABLE,		/* losses */
	EVENT_LOST_TAKEN,
	EVENT_LOST_RELEASED,
	EVENT_LOST_DELETED,
	EVENT_LOST_AT_MOST,
	EVENT_LK001,				/* errors with these SQLSTATEs */
	EVENT_LK002,
	EVENT_JOB_PUSHED,
	EVENT_JOB_CLAIMED,			/* by a session that got it: an attempt */
	EVENT_JOB_COMPLETED,		/* DynamoDB has confirmed that */
	EVENT_JOB_FAILED,			/* a session has put it back */
	EVENT_JOB_DEAD,				/* it was tried too often */
	EVENT_COUNT
} SegmentEvent;

/*
 * How long sessions waited for locks: bucket i counts waits under 4^i ms, the last the rest
 * (over 17 minutes).
 */
#define SEGMENT_WAIT_BUCKETS 12

/* The last loss of a lease, for ddb_stats. */
typedef struct SegmentLoss
{
	TimestampTz at;
	int			pid;
	char		database[NAMEDATALEN];	/* UTF-8 */
	char		user[NAMEDATALEN];
	char		name[DYNAMO_NAME_MAX + 1];
	char		why[DYNAMO_MESSAGE_SIZE + 128];
} SegmentLoss;

/* Latency histogram: bucket i counts calls under 2^i * 0.5 ms, the last the rest. */
#define SEGMENT_BUCKETS 16

typedef struct OpCounters
{
	shared64	requests;		/* sent to DynamoDB, repeats included */
	shared64	errors;			/* error replies, and requests without a reply */
	shared64	throttles;
	shared64	retries;		/* repeated requests */
	shared64	latency_us;		/* sum over replied requests */
	shared64	latency_count;
	shared64	consumed_milliunits;
	shared64	histogram[SEGMENT_BUCKETS];
} OpCounters;

#define SEGMENT_BELL_BITS 64	/* in a word of bells */

typedef struct Segment
{
	char		incarnation[UUID_SIZE]; /* made by the first worker, then fixed;
										 * "" before */
	char		owner[DYNAMO_OWNER_SIZE];	/* ownerName, made with it */
	SegmentPlace place;			/* worker, before it answers the first call */
	uint32		max_leases;
	uint32		max_sessions;	/* MaxBackends */
	uint32		slots;			/* ... and those of the leaderships */
	uint32		bell_words;		/* of segment_bells */
	leadership_entry leaderships[LEADERSHIPS_MAX];

	/* The worker: its process number, or PG_UINT32_MAX when none runs. */
	shared32	worker_procno;
	shared32	worker_pid;
	shared32	worker_starts;
	bool		table_checked;	/* worker only: see lock/table_check.h */
	shared64	queue_table_checked;	/* when; 0: not yet (session/queue_table_guard.c) */
	shared64	queue_floor;	/* numbers of resources without a head begin above it, */
	shared64	queue_floor_read;	/* ... as was read then; 0: not yet */
	SegmentTrouble trouble;
	SegmentTrouble renewal_failure;
	shared32	spent;			/* of the budget of repetitions: see SegmentPay() */
	int64		last_worker_start;	/* worker only, as is the next one */
	int64		start_pause;	/* after it, before the next start */
	uint64		waits;			/* worker only: so many began */
	epoch_clock clock;			/* worker only: DynamoDB's */
	TimestampTz stats_since;

	shared32	status_changes; /* of status */
	WorkerStatus status;

	/* Gauges and counters that belong to no operation. */
	shared64	events[EVENT_COUNT];
	shared64	wait_us;		/* sum of the waits in wait_histogram */
	shared64	wait_histogram[SEGMENT_WAIT_BUCKETS];
	shared32	loss_changes;	/* of last_loss; 0: there was no loss */
	SegmentLoss last_loss;		/* see report_loss.c */
	shared32	leases_in_use;
	shared32	leases_held;
	shared32	leases_detached;
	shared32	waiters;
	shared32	finish_news;	/* a place has become the worker's */
	queue_hint	hints[QUEUE_HINTS];
	queue_memory memory[QUEUE_MEMORY];
	OpCounters	ops[DYNAMO_OP_COUNT];
} Segment;

/*
 * Attached in every process once the server has started with ddblock in
 * shared_preload_libraries; else NULL.
 */
extern Segment *segment;
extern MailboxSlot *segment_slots;	/* [slots], sessions' by process number */
extern LeaseEntry *segment_leases;	/* [max_leases] */
extern HoldEntry *segment_holds;	/* [max_leases] */
extern Watch *segment_watches;	/* [slots] */
extern pg_atomic_uint64 *segment_bells; /* [bell_words], one bit for each slot; to set one is a
										 * full barrier */
extern FinishEntry *segment_finishes;	/* [max_sessions] */

/* The protocol's view of slots, leases and holds; it rings and wakes. */
extern const mailbox segment_mailbox;

/* Installs the shared memory hooks; from _PG_init while preloading. */
extern void SegmentInstallHooks(void);

/* For the worker.  DYNAMO_OK, of the segment's trouble: it repeats no requests any more. */
extern void SegmentTell(SegmentTrouble *trouble, dynamo_status status, const char *message);

/* When and why the last renewal failed, if one did since then: "3.0 s ago: ..."; static, or NULL. */
extern const char *SegmentRenewalFailure(int64 since);

/*
 * The budget of repetitions (base/backoff.h) of all calls that sessions repeat, and that the worker
 * repeats for them.  The lock manager has its own, because no trouble of the queues' table must put
 * off a renewal.  False: the caller waits for longer.  Only what is repeated for DynamoDB's sake pays.
 */
extern bool SegmentPay(dynamo_status status);
extern void SegmentEarn(bool repeated);

/* DYNAMO_OK if there is no trouble. */
extern dynamo_status SegmentReadTrouble(char message[DYNAMO_MESSAGE_SIZE]);

/* For the worker. */
extern void SegmentPublishStatus(const WorkerStatus *status);

/* For the views: may be interrupted. */
extern void SegmentReadStatus(WorkerStatus *copy);

/* Has the worker look for entries of segment_finishes.  Neither waits nor fails. */
extern void SegmentRingFinish(void);

/* An entry's place. */
extern queue_place *SegmentFinishPlace(void *arg, uint32 index);

/*
 * Does the worker end this hold, because its session has completed a job, and has nothing to
 * do for that any more?  arg: unused.
 */
extern bool SegmentEndsHold(void *arg, uint32 hold_index, const saved_hold *hold);

/* Wakes the sessions that wait for jobs.  Neither waits nor fails. */
extern void SegmentTellJobs(void);

/* Adds a hint to the cluster's (queue/queue_hint.c), and wakes the sessions that wait for jobs. */
extern void QueueHintTell(const char *queue, const char *resource, int64 attempts);

/* Counts an event where it happens.  No-op without the segment. */
extern void SegmentCount(SegmentEvent event);

/* Counts a wait that got the lock, or timed out, which began then (SegmentNow()). */
extern void SegmentCountWait(int64 began);

/* Copy a lease, or a hold; false if it is free.  For the views: may be interrupted. */
extern bool SegmentReadLease(uint32 lease_index, LeaseCopy *copy);
extern bool SegmentReadHold(uint32 hold_index, HoldCopy *copy);

/* The same for who must not wait: false also while it is being written. */
extern bool SegmentPeekLease(uint32 lease_index, LeaseCopy *copy);
extern bool SegmentPeekHold(uint32 hold_index, HoldCopy *copy);

/* Copies the slot's request if that waits for a lock, after an acquire or a try.  Does not wait. */
extern bool SegmentReadWaiter(uint32 slot, WaiterCopy *copy);

/*
 * A hold of the lock that is valid, as far as this process can see: with this token, or any if
 * that is 0; only a detached one if wanted.
 */
extern bool SegmentFindHold(const char *name, int64 token, bool detached, HoldCopy *found);

/* When the last of the holds on the lease ends by its limit; PG_INT64_MAX: one has none. */
extern int64 SegmentHoldsEnd(uint32 lease_index, uint32 lease_generation);

/* Copies a leadership; its state may be LEADERSHIP_NONE. */
extern void SegmentReadLeadership(uint32 number, leadership *copy);

/* Microseconds on CLOCK_BOOTTIME: the clock of every lease. */
extern int64 SegmentNow(void);

#endif							/* DDBLOCK_SHARED_SEGMENT_H */
