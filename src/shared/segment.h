/*-------------------------------------------------------------------------
 *
 * segment.h
 *	  What backends and the worker share: mailbox, lease directory, watches,
 *	  counters.
 *
 * The segment, not the worker, is the truth about what is held: when a worker
 * ends, the next one reads everything that it needs from the segment.  The segment contains no
 * pointer to private memory, no descriptor and no curl handle.
 *
 * The segment has no locks.  A process that is stopped while it holds one, by SIGSTOP or
 * by a busy machine, stops everyone who wants that lock; and a worker that waits renews
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
 * not whole, because the writer was changing the original,
 *
 *	 - the worker ignores the request: it is being posted, and its bell follows;
 *	 - a view tries again, and may be interrupted;
 *	 - SegmentReadWaiter() tries again for a moment, and then leaves the request out;
 *	 - a waiting session does without the holder's name until it looks again.
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

/* What a session asks of the worker: the lock manager's kinds, and kinds that do without it. */
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
	MAILBOX_RESIGN,				/* gives up a leadership; the answer waits for no call */
	MAILBOX_TABLE,				/* one call of the given op on the table or its
								 * items; the session decides what comes next */
	MAILBOX_ANNOUNCE,			/* the session's next requests: see mailbox.h */
	MAILBOX_QUEUE,				/* a piece of a call on the queues' table; with its last
								 * piece the call is made */
	MAILBOX_QUEUE_MORE			/* the next piece of the last call's reply */
} MailboxKind;

/* A request.  kind and op say which part of the union is set. */
typedef struct MailboxRequest
{
	uint64		seq;			/* set by MailboxCall() */
	int64		posted;			/* when it was posted; set by MailboxCall(), too */
	MailboxKind kind;
	dynamo_op	op;				/* TABLE, QUEUE, QUEUE_MORE */
	bool		repeat;			/* TABLE, QUEUE: the session's last request was the same */
	uint16		name_len;		/* bytes of the name, with which the slot's text begins */
	uint16		data_len;		/* bytes that follow the name in the text: data and attributes;
								 * SCAN, QUERY: the keys after which the page begins; RELEASE:
								 * leases (lockmgr_lease), if all of the session's holds on these
								 * end instead of one hold; ANNOUNCE: names, each after its
								 * length (uint16); QUEUE: the piece */
	uint16		attributes_len; /* so many bytes of these, at their end, are attributes; 0: none */
	bool		has_data;
	uint64		first_seq;		/* ANNOUNCE: number of the request for the first name */
	union
	{
		lock_ask	ask;		/* the lock manager's kinds, ANNOUNCE */
		struct
		{
			int64		rest_us;
			int64		wait_us;	/* 0: transactions that have joined are never interrupted */
		}			resign;		/* RESIGN */
		dynamo_creation creation;	/* CREATE_TABLE */
		struct
		{
			bool		released_only;
			int			limit;
			uint16		start_len;	/* bytes of the partition key, with which the data begins;
									 * 0: start at the beginning of the table */
		}			scan;		/* SCAN, QUERY: the name is a prefix of names */
		struct
		{
			char		version[UUID_SIZE]; /* FORCE_RELEASE, REPLACE: nonce of the write; IDENTIFY:
											 * a new identity */
			char		expected[DYNAMO_VERSION_SIZE];	/* the item's version; REPLACE: its
														 * digest, or "" if the answer shall
														 * only show the item */
			bool		shared; /* FORCE_RELEASE: expected is the epoch of a shared lock */
			bool		is_trial;	/* of ddb_check(): there is no such item, so the write is refused.
									 * A REPLACE does not read before */
		}			write;		/* DELETE, FORCE_RELEASE, IDENTIFY, READ, REPLACE; RENEW_BATCH as a
								 * trial */
		struct
		{
			uint32		total;	/* QUEUE: bytes of all pieces */
			uint32		offset; /* of this piece; QUEUE_MORE: of the piece of the reply */
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
	MAILBOX_FAILED = LOCKMGR_FAILED,	/* failure; answers other kinds of request, too */

	/* Answers to TABLE, ANNOUNCE and RESIGN */
	MAILBOX_DONE,				/* CREATE_TABLE, UPDATE_TTL, DELETE, FORCE_RELEASE, IDENTIFY,
								 * REPLACE, ANNOUNCE, RESIGN */
	MAILBOX_DESCRIBED,			/* DESCRIBE_TABLE, DESCRIBE_TTL: table */
	MAILBOX_CHANGED,			/* DELETE, FORCE_RELEASE, IDENTIFY, REPLACE, RENEW_BATCH: not done; or
								 * READ; found: the item */
	MAILBOX_UNUSABLE,			/* REPLACE: not done; unusable: the item as it is now */

	/* Answers to QUEUE, QUEUE_MORE, and to TABLE with SCAN or QUERY */
	MAILBOX_MORE,				/* the worker wants the next piece */
	MAILBOX_REPLY,				/* piece: of the reply, or of a LockPage */

	/* Refused by the worker, without asking DynamoDB */
	MAILBOX_GLOBAL_TABLE,		/* the lock table is a global one with eventual consistency, and
								 * no setting says in which Region locks are acquired;
								 * failure.message: the Regions of its replicas */
	MAILBOX_OTHER_REGION,		/* locks are acquired in one Region, and this server's is another */
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
	bool		has_data;		/* the item has data, of item.data_len bytes */
	size_t		attributes_len; /* bytes of the item's additional attributes; 0: none */
	uint8		data[DYNAMO_DATA_MAX];	/* the data at the beginning, the attributes at the
										 * end, each of them only if it fits */
	lock_mode	mode;
	int32		permits;		/* in shared mode: permits of all clusters together */
	int			clusters;		/* in shared mode: how many clusters have an entry */
	char		cluster[DYNAMO_ENTRIES_MAX][NAMEDATALEN];	/* names, UTF-8 */
	int32		cluster_permits[DYNAMO_ENTRIES_MAX];
} MailboxItem;

/* An item that nobody can use as a lock; UTF-8. */
typedef struct MailboxUnusable
{
	char		why[DYNAMO_MESSAGE_SIZE];
	char		digest[DYNAMO_DIGEST_SIZE];
	bool		released;
	bool		token_may_fall; /* the item's token is unreadable or the highest possible, so the
								 * next token may be lower than an earlier one */
	char		item[DYNAMO_DATA_MAX];	/* the item as text, for people */
} MailboxUnusable;

/* A lock's item in a page. */
typedef struct LockRow
{
	char		name[DYNAMO_NAME_MAX + 1];	/* UTF-8 */
	dynamo_item item;			/* no pointer is set */
	lock_mode	mode;			/* how it is held */
	int32		permits;		/* of a semaphore: how many are out */
	bool		dead;			/* the holder is dead: this cluster may take the lock over */
	char		unusable[DYNAMO_MESSAGE_SIZE];	/* why nobody can get the lock, or "" */
} LockRow;

/* A page of lock items.  It travels in pieces. */
typedef struct LockPage
{
	int64		epoch_us;		/* DynamoDB's time when the worker answered, or less */
	uint16		next_len;		/* bytes of the partition key after which the next page begins */
	uint16		next_sort_len;	/* bytes of the sort key; both 0: this page is the last */
	char		next[DYNAMO_NAME_MAX + DYNAMO_SORT_MAX];	/* partition key, then sort key */
	int			count;
	LockRow		rows[FLEXIBLE_ARRAY_MEMBER];
} LockPage;

/* A reply that is larger than a slot comes in pieces of so many bytes. */
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

/*
 * What a session waits for without a request: for the end of a lease, or for a job of a queue.  See
 * session/deadlock.c.
 */
typedef struct SlotWait
{
	shared64	since;			/* when the wait began; 0: there is none */
	uint32		lease_index;	/* the session waits for the end of this lease, */
	uint32		lease_generation;
	char		queue[QUEUE_NAME_MAX + 1];	/* unless this is not "": for a job of this queue */
	uint64		resources;		/* the job is of one of these resources: a set of bits */
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
	shared32	watch;			/* number of the watch that says what this request waits for */
	shared64	waiting_place;	/* rises from one waiting request to the next */
	MailboxAnswer answer;
	shared32	wants_jobs;		/* the session waits for jobs of a queue */
	shared64	looked_at;		/* when a session last looked at the index of a queue, */
	char		looked_for[QUEUE_NAME_MAX + 1]; /* ... of this one */
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
	Oid			database;		/* of the hold's session */
	mailbox_hold words;
	shared64	untold_loss;	/* the hold's mark, until its loss is told: see report_loss.c; then
								 * 0 */
	shared32	session_depth;	/* for the views: how often the lock was acquired for the */
	shared32	xact_depth;		/* ... session, and for the transaction */
} HoldEntry;

/* A completed job, which the worker finishes, and the hold that its session had for it. */
typedef struct FinishEntry
{
	queue_place place;
	lockmgr_session session;
	uint64		hold_seq;		/* the request for which that hold was granted */
	uint32		hold_index;		/* the hold, which ends when the job is finished;
								 * LOCKMGR_NO_HOLD: none does */
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
	uint64		place;			/* rises along the lock's queue */
	char		name[DYNAMO_NAME_MAX + 1];
} WaiterCopy;

typedef struct Watch
{
	shared32	changes;
	lockmgr_watch what;
} Watch;

/*
 * Where requests go.  The first worker that finds the place writes it, and the place stays
 * for as long as the server runs; before, url is "".
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
	TimestampTz since;			/* the worker's start; unless 0, segment->owner is set */
	bool		has_place;		/* segment->place is set */
	char		credentials[384];	/* where they come from, UTF-8; "": none */
	int64		credentials_expire_s;	/* epoch seconds; 0: never, or unknown */
	int64		last_reply;		/* when the last good reply came (SegmentNow()); 0: none yet */
	epoch_clock clock;			/* DynamoDB's time */
	uint32		connections;	/* open connections to DynamoDB */
	char		proxy[320];		/* the proxy's URL, without user and password; "": none */
	char		http_library[64];	/* libcurl's name and version */
	bool		takes_over;		/* dead holders' locks, by DynamoDB's clock */
	char		copy[DYNAMO_OWNER_SIZE];	/* ownerName of a copy of this cluster, UTF-8: see
											 * worker_cluster_copy.c */
	int64		copy_until;		/* the copy is known to live until then; 0: there is none */
} WorkerStatus;

/* What is counted for ddb_stats. */
typedef enum SegmentEvent
{
	EVENT_ACQUIRED,				/* a session got a lock */
	EVENT_BUSY,					/* a try did not get a lock, because somebody has it */
	EVENT_TIMED_OUT,			/* a session waited, and did not get the lock in time */
	EVENT_DEADLOCK,
	EVENT_LOST_UNREACHABLE,		/* losses, by their reason */
	EVENT_LOST_TAKEN,
	EVENT_LOST_RELEASED,
	EVENT_LOST_DELETED,
	EVENT_LOST_AT_MOST,
	EVENT_LK001,				/* errors with these SQLSTATEs */
	EVENT_LK002,
	EVENT_JOB_PUSHED,
	EVENT_JOB_CLAIMED,			/* a session has got the job: each claim is an attempt */
	EVENT_JOB_COMPLETED,		/* DynamoDB has confirmed that the job is finished */
	EVENT_JOB_FAILED,			/* a session has put the job back */
	EVENT_JOB_DEAD,				/* the job was tried too often */
	EVENT_COUNT
} SegmentEvent;

/*
 * How long sessions waited for locks: bucket i counts waits under 4^i ms, the last one all longer
 * waits (over 17 minutes).
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

/* Latency: bucket i counts calls under 2^i * 0.5 ms, the last one all longer calls. */
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
	char		owner[DYNAMO_OWNER_SIZE];	/* ownerName, made together with incarnation */
	SegmentPlace place;
	uint32		max_leases;
	uint32		max_sessions;	/* MaxBackends */
	uint32		slots;			/* max_sessions, and the slots of the leaderships */
	uint32		bell_words;		/* words of segment_bells */
	leadership_entry leaderships[LEADERSHIPS_MAX];

	/* The worker: its process number, or PG_UINT32_MAX when none runs. */
	shared32	worker_procno;
	shared32	worker_pid;
	shared32	worker_starts;
	bool		table_checked;	/* worker only: the lock table is fit, as far as known (see
								 * lock/table_check.h) */
	shared64	queue_table_checked;	/* when the queues' table was checked; 0: not yet
										 * (session/queue_table_guard.c) */
	shared64	queue_floor;	/* if a resource has no head, its jobs' numbers begin above this */
	shared64	queue_floor_read;	/* when queue_floor was read; 0: not yet */
	SegmentTrouble trouble;
	SegmentTrouble renewal_failure;
	shared32	spent;			/* of the budget of repetitions: see SegmentPay() */
	int64		last_worker_start;	/* worker only: when the last worker started */
	int64		start_pause;	/* worker only: the pause between that and the next start */
	uint64		waits;			/* worker only: so many requests have begun to wait */
	epoch_clock clock;			/* worker only: DynamoDB's time */
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
	shared32	finish_news;	/* 1: sessions have passed jobs to finish to the worker */
	queue_hint	hints[QUEUE_HINTS];
	queue_memory memory[QUEUE_MEMORY];
	OpCounters	ops[DYNAMO_OP_COUNT];
} Segment;

/*
 * Attached in every process once the server has started with ddblock in
 * shared_preload_libraries; else NULL.
 */
extern Segment *segment;
extern MailboxSlot *segment_slots;	/* [slots]; a backend's number is its process number */
extern LeaseEntry *segment_leases;	/* [max_leases] */
extern HoldEntry *segment_holds;	/* [max_leases] */
extern Watch *segment_watches;	/* [slots] */
extern pg_atomic_uint64 *segment_bells; /* [bell_words], one bit for each slot; to set one is a
										 * full barrier */
extern FinishEntry *segment_finishes;	/* [max_sessions] */

/* What the mailbox's protocol needs: where slots, leases and holds are, how to ring and to wake. */
extern const mailbox segment_mailbox;

/* Installs the shared memory hooks; from _PG_init while preloading. */
extern void SegmentInstallHooks(void);

/*
 * For the worker: writes segment->trouble or segment->renewal_failure.  DYNAMO_OK in the former:
 * the worker repeats no requests any more.
 */
extern void SegmentTell(SegmentTrouble *trouble, dynamo_status status, const char *message);

/*
 * When and why the last renewal failed, such as "3.0 s ago: ..."; static.  NULL if none has failed
 * since the given time.
 */
extern const char *SegmentRenewalFailure(int64 since);

/*
 * The budget of repetitions (base/backoff.h) of all calls that sessions repeat, and that the worker
 * repeats for them.  The lock manager has a budget of its own, because trouble with the queues'
 * table must not delay renewals.
 *
 * SegmentPay() pays for a call that has failed.  False: it cannot pay, so the caller must wait for
 * longer before it repeats the call.  Only trouble of DynamoDB has a price, no refusal or conflict.
 * SegmentEarn() earns for a call that has succeeded.
 */
extern bool SegmentPay(dynamo_status status);
extern void SegmentEarn(bool repeated);

/* Reads segment->trouble.  DYNAMO_OK if the worker repeats no requests. */
extern dynamo_status SegmentReadTrouble(char message[DYNAMO_MESSAGE_SIZE]);

/* For the worker. */
extern void SegmentPublishStatus(const WorkerStatus *status);

/* For the views: may be interrupted. */
extern void SegmentReadStatus(WorkerStatus *copy);

/* Makes the worker look for new jobs in segment_finishes.  Neither waits nor fails. */
extern void SegmentRingFinish(void);

/* The place in an entry of segment_finishes (a queue_place_at).  arg: unused. */
extern queue_place *SegmentFinishPlace(void *arg, uint32 index);

/*
 * Does a completed job name this hold?  Then the worker ends the hold, whatever the hold's session
 * does (lockmgr_host.ends_hold).  arg: unused.
 */
extern bool SegmentEndsHold(void *arg, uint32 hold_index, const saved_hold *hold);

/* Wakes the sessions that wait for jobs.  Neither waits nor fails. */
extern void SegmentTellJobs(void);

/* Adds a hint to the cluster's (queue/queue_hint.c), and wakes the sessions that wait for jobs. */
extern void QueueHintTell(const char *queue, const char *resource, int64 attempts);

/* Counts an event where it happens.  No-op without the segment. */
extern void SegmentCount(SegmentEvent event);

/* Counts a wait that has got the lock, or has timed out.  began: on SegmentNow()'s clock. */
extern void SegmentCountWait(int64 began);

/* Copy a lease, or a hold; false if it is free.  For the views: may be interrupted. */
extern bool SegmentReadLease(uint32 lease_index, LeaseCopy *copy);
extern bool SegmentReadHold(uint32 hold_index, HoldCopy *copy);

/* The same for callers that must not wait: false also while the worker writes the entry. */
extern bool SegmentPeekLease(uint32 lease_index, LeaseCopy *copy);
extern bool SegmentPeekHold(uint32 hold_index, HoldCopy *copy);

/* Copies the slot's request, if that is an acquire or a try which waits.  Does not wait itself. */
extern bool SegmentReadWaiter(uint32 slot, WaiterCopy *copy);

/*
 * Finds a hold on the lock, with this token or, if token is 0, with any.  detached: only a detached
 * one.  The hold may be lost already.
 */
extern bool SegmentFindHold(const char *name, int64 token, bool detached, HoldCopy *found);

/*
 * When the last of the holds on the lease ends by its limit (must_end).  PG_INT64_MAX: one of them
 * has no limit, or there is no hold.
 */
extern int64 SegmentHoldsEnd(uint32 lease_index, uint32 lease_generation);

/* Copies a leadership; its state may be LEADERSHIP_NONE. */
extern void SegmentReadLeadership(uint32 number, leadership *copy);

/* Microseconds on CLOCK_BOOTTIME: the clock of every lease. */
extern int64 SegmentNow(void);

#endif							/* DDBLOCK_SHARED_SEGMENT_H */
