/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  What the worker's files give each other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_H
#define DDBLOCK_WORKER_WORKER_H

#include "postgres.h"

#include "aws/aws.h"
#include "dynamo/dynamo.h"
#include "lock/table_check.h"
#include "lock/journal_record.h"
#include "lock/lockmgr.h"
#include "base/uuid.h"
#include "net/net.h"
#include "shared/compat.h"
#include "shared/segment.h"
#include "shared/settings.h"
#include "shared/shared.h"

/* ----------------------------------------------------------------
 * journal.c: The journal: a file with the names of the locks that this incarnation may
 * hold, for the next incarnation.
 *
 * After a crash or a start shared memory is new and says nothing about earlier
 * locks.  The journal, pg_stat_tmp/ddblock.INCARNATION, lists their names.  The
 * worker writes a name before it sends the first acquire, and removes it when
 * the lease is free.  So the list may have names that are not held.  It lacks a
 * lock only if a copy of a request arrives after its lease was given up; that
 * lock is free one lease later.  The next incarnation bars the listed locks, and releases
 * those whose items still have the old incarnation's ownerName (worker_free_dead.c).
 *
 * Nobody relies on a lock in such a journal any more, because:
 *
 * - It was written in this very data directory: device and inode are the same.
 *  A copy has another inode.  The kernel does not reuse the inode of a removed
 *  directory while it is some process's working directory, and it is that of
 *  every PostgreSQL process.
 * - It was written since this machine booted: the boot id is the same.  So
 *  another machine ignores the journals in a snapshot of the disk.
 * - A data directory has one set of processes.  The postmaster makes new shared
 *  memory after a crash only when its last child is gone; another postmaster
 *  does not start while a single process is attached to the old memory,
 *  orphans of a killed postmaster included, even if postmaster.pid was
 *  removed: the memory's key comes from the directory's inode.
 *
 * This fails for a clone of a running machine with its memory: boot id, device
 * and inode are the same, and both go on.
 *
 * Why pg_stat_tmp: base backups and pg_rewind omit its contents, and since 15
 * the server itself keeps nothing there.  Why no fsync: only the kernel that took
 * the write reads the file.  Why no mapping: on a full disk write() fails, but a
 * page fault would kill the worker, and with it all sessions.
 *
 * Without a journal, locks of a dead incarnation are free one lease later.  So a
 * failure here is no error: the worker logs it once and goes on.
 * ----------------------------------------------------------------
 */

/* The journal of a dead incarnation. */
typedef struct DeadJournal
{
	struct DeadJournal *next;
	char		path[MAXPGPATH];
	int			fd;
	char		owner[DYNAMO_OWNER_SIZE];
	uint32		slot_count;
	uint32		damaged;		/* damaged slots that JournalNextName() met */
} DeadJournal;

/* Writes this incarnation's journal with the leases that are in the segment. */
extern void JournalStart(void);

/* The lease of that index is for this lock. */
extern void JournalList(uint32 index, const char *name, size_t name_len);

/* The lease of that index is free or detached.  Removes the journal if it cannot say so. */
extern void JournalUnlist(uint32 index);

/* For a shutdown, when no lease is held, and none will be. */
extern void JournalRemove(void);

/*
 * Returns the journals of dead incarnations, in the current memory context.
 * With "say" it logs which journals it ignores, and why.
 */
extern DeadJournal *JournalFindDead(bool say);

/*
 * Finds the next listed name, from slot *number on, and sets *number to its
 * slot.  False at the journal's end.
 */
extern bool JournalNextName(DeadJournal *journal, uint32 *number, journal_slot *slot);

/* The lock is released, or was not held. */
extern void JournalStrike(const DeadJournal *journal, uint32 number);

/* Closes the journal and removes its file. */
extern void JournalDiscard(DeadJournal *journal);

/* ----------------------------------------------------------------
 * worker_call.c: Calls to DynamoDB.
 *
 * Each call brings the function that takes its reply, as in http_pool_post():
 * worker_call.c knows nobody who calls.
 * ----------------------------------------------------------------
 */

typedef struct WorkerCall WorkerCall;

/* The reply is valid only during the call. */
typedef void (*WorkerDone) (const WorkerCall *call, const dynamo_reply *reply);

struct WorkerCall
{
	dynamo_op	op;
	int			count;			/* writes in a batch; 0: it is no batch */
	char	   *body;			/* malloc'd, freed after the reply; NULL: there was
								 * no memory for it, and the call fails */
	int64		timeout_us;		/* 0: ddblock.request_timeout */
	bool		repeat;			/* for ddb_operations */
	bool		dated;			/* the body has the time: the caller makes it anew
								 * if DynamoDB refuses the time */
	bool		quiet;			/* a session reports failures: the log does not */
	WorkerDone	done;			/* NULL: nobody wants the reply; the check of the table knows its own
								 * DescribeTable by that */
	lockmgr_session session;	/* the caller's, as are these two */
	uint64		id;
	void	   *note;			/* of TopMemoryContext, freed with body; or NULL */
	int64		posted;			/* set by WorkerPost(): when it was sent */
};

/* "seen" gets each reply first, before the call's own done function. */
extern void WorkerCallInit(WorkerDone seen);

/* The connections to DynamoDB. */
extern http_pool *worker_pool;

/* Readable when there is something to do for WorkerRunCalls(). */
extern int	WorkerCallFd(void);

/*
 * Posts the call.  Exactly one call of its done function, if it has one, follows, never from
 * within WorkerPost() itself: the lock manager posts while it must not be
 * entered.
 */
extern void WorkerPost(const WorkerCall *call);

/* The item of this name is read, and never written. */
#define WORKER_UNWRITTEN "ddblock/keep-warm"

/* Reads the item of that name.  done and id are as in WorkerCall. */
extern void WorkerPostRead(const char *name, WorkerDone done, uint64 id);

/* Lets the connections do their work: done functions are called from here. */
extern void WorkerRunCalls(void);

/*
 * Keeps a connection open by a read now and then.  Returns when it must be
 * called again.
 */
extern int64 WorkerKeepWarm(int64 now);

/* ----------------------------------------------------------------
 * worker_answer.c: Answers to sessions, in their slots.
 * ----------------------------------------------------------------
 */

/*
 * The answer to fill in; mailbox_end_answer() ends it.  NULL: the session has cancelled or
 * ended, and what was granted goes back.
 */
extern MailboxAnswer *WorkerBeginAnswer(lockmgr_session session, uint64 seq, uint32 granted);

/* An answer that says no more than its result. */
extern void WorkerAnswerResult(lockmgr_session session, uint64 seq, MailboxResult result);

extern void WorkerFillFailure(MailboxAnswer *out, MailboxResult result, dynamo_op op,
							  dynamo_status status, const char *message);

/* The same as a whole answer.  hint: NULL: that of the failure. */
extern void WorkerAnswerFailure(lockmgr_session session, uint64 seq, MailboxResult result,
								dynamo_op op, dynamo_status status, const char *message,
								const char *hint);

/* An item for shared memory: without what its pointers point to. */
extern dynamo_item WorkerItem(const dynamo_item *item);

/* The lock manager's answer (lockmgr_host). */
extern void WorkerAnswer(void *arg, const lockmgr_answer *answer);

/*
 * The reply to a session's call about the lock table, which passed by the lock manager; of a page,
 * only its failure.  A READ is a REPLACE that was not sent: its item can be used, or there is none,
 * or it is another unusable one than the session knows.
 */
extern void WorkerAnswerTable(const WorkerCall *call, const dynamo_reply *reply);

/* ----------------------------------------------------------------
 * worker_leaderships.c: The cluster's leaderships: see lock/leadership.h.
 * ----------------------------------------------------------------
 */

/* Before the worker adopts: a session may want to resign. */
extern void WorkerLeadershipsInit(void);

/* Once in each turn; returns when it must be called again. */
extern int64 WorkerLeadershipsRun(int64 now);

/* As leadership_resign(). */
extern bool WorkerLeadershipsResign(int64 now, const char *name, int64 rest_us, int64 wait_us);

/* ----------------------------------------------------------------
 * worker_clock.c: DynamoDB's time, as the replies' Date headers show it (aws/epoch_clock.c).
 *
 * The segment keeps the clock: a new worker goes on with what the one before it
 * has learned.  All times are microseconds since the epoch, and "now" is
 * SegmentNow().
 * ----------------------------------------------------------------
 */

/* The machine's, in epoch microseconds. */
extern int64 WorkerWallClock(void);

extern void WorkerClockInit(void);

/*
 * A reply with this Date header (epoch seconds) to a request that was sent then.
 * date_s is 0 if there was none, as from an imitation of DynamoDB: its time is
 * taken to be our wall clock's.  refused: because of the time of its signature.
 */
extern void WorkerClockReply(int64 date_s, int64 sent, int64 received, bool refused);

/* The bounds of DynamoDB's time. */
extern int64 WorkerEpochHigh(int64 now);
extern int64 WorkerEpochLow(int64 now);

/* The time to sign with. */
extern int64 WorkerEpochLikely(int64 now);

/* ----------------------------------------------------------------
 * worker_cluster_copy.c: Looks for a copy of this cluster that uses the same lock table.
 * ----------------------------------------------------------------
 */

/* What goes into the holder map: our system identifier, or "" on a standby. */
extern void WorkerCopySystem(char system[DYNAMO_SYSTEM_SIZE]);

/* See lockmgr_host.lives. */
extern void WorkerCopyLives(void *arg, const dynamo_item *item);

/* ----------------------------------------------------------------
 * worker_credentials.c: The credentials in use.
 * ----------------------------------------------------------------
 */

/* At the start and after a reload. */
extern void WorkerFindCredentials(void);
extern const aws_credentials *WorkerCredentials(void);	/* NULL: none */

/* Looks for some, if there are none, or if DynamoDB has refused those in use. */
extern void WorkerWantCredentials(void);

/* They are being fetched: who has none, or none that DynamoDB accepts, may wait. */
extern bool WorkerCredentialsComing(void);

/* The last fetch has failed in a way that may pass. */
extern bool WorkerCredentialsMayCome(void);

/* Fetches and renews them.  Returns when it must be called again. */
extern int64 WorkerRenewCredentials(int64 now);

/* Where they come from, or will come from; NULL if that is not known. */
extern const char *WorkerCredentialsSource(void);

/* Has the log why the last look brought none? */
extern bool WorkerCredentialsTold(void);

/* For a session whose call was refused, a sentence: which credentials were used, or why none. */
extern const char *WorkerCredentialsWords(void);

/* Warns of files that show the secret to every user of the machine. */
extern void WorkerCheckExposure(void);

/* ----------------------------------------------------------------
 * worker_environment.c: What src/aws and src/net get: settings, environment and files.
 * ----------------------------------------------------------------
 */

extern const aws_environment *WorkerEnvironment(void);

/* To be closed by the caller, before the next reload. */
extern void WorkerOpenProfile(aws_profile *profile);

/*
 * Whom TLS trusts, as aws_find_ca_file() says, readable or not; NULL: the system's
 * certificates.  Valid until the next call.
 */
extern const char *WorkerCaFile(void);

/*
 * A pool whose authorities, proxy and time to connect are those of the settings; the rest is
 * the caller's.
 */
extern http_pool *WorkerNewPool(reactor *r, http_pool_config config);

/* After a reload. */
extern void WorkerReloadPool(http_pool *pool);

/* ----------------------------------------------------------------
 * worker_fetch.c: Does what fetching credentials needs: HTTP requests, and a command.
 * ----------------------------------------------------------------
 */

/* fetch->found or fetch->error is set. */
typedef void (*WorkerFetched) (aws_fetch *fetch, bool found);

extern void WorkerFetchInit(void);
extern void WorkerFetchReload(void);

/* Readable when there is something to do for WorkerFetchRun(). */
extern int	WorkerFetchFd(void);

/* ... or, while something is fetched, after this time: somebody waits, or it pauses. */
#define WORKER_FETCH_LOOK_US INT64CONST(100000)

/* One at a time.  done may be called at once. */
extern void WorkerFetchStart(aws_fetch *fetch, WorkerFetched done);

/* Its result is not wanted any more: done is called soon, without one. */
extern void WorkerFetchGiveUp(void);

/* done is called from here. */
extern void WorkerFetchRun(void);

/* ----------------------------------------------------------------
 * worker_finish_jobs.c: Finishes jobs whose sessions have committed.
 * ----------------------------------------------------------------
 */

extern void WorkerFinishInit(void);

/* Sends what is due.  Returns when it must be called again. */
extern int64 WorkerFinishRun(int64 now);

/* Are all finished? */
extern bool WorkerFinishIdle(void);

/* ----------------------------------------------------------------
 * worker_table_check.c: Asks DynamoDB what must be known before locks are acquired
 * (lock/table_check.h).
 * ----------------------------------------------------------------
 */

extern table_check worker_table_check;

/* After the place and the clock. */
extern void WorkerTableCheckInit(void);

/* Call for each reply, to any call. */
extern void WorkerTableCheckSee(const WorkerCall *call, const dynamo_reply *reply);

/* Asks what is due.  Returns when it must be called again. */
extern int64 WorkerTableCheckRun(int64 now);

/* ----------------------------------------------------------------
 * worker_log_grants.c: ddblock.log_grants: a line in the log for each grant, loss and release.
 * ----------------------------------------------------------------
 */

/* event: "granted", "lost", "released"; until: the end of the belief, if it was before now. */
extern void WorkerLogHold(const char *event, const saved_hold *hold, int64 until);

/* ----------------------------------------------------------------
 * worker_free_dead.c: Frees what dead incarnations of this cluster held when they died.
 * ----------------------------------------------------------------
 */

/* After the lock manager was made, and before it sends anything. */
extern void WorkerJournalInit(int64 now);

/* Sends the releases that are due.  Returns when it must be called again. */
extern int64 WorkerJournalRun(int64 now);

/* ----------------------------------------------------------------
 * worker_lockmgr.c: The worker's lock manager; leases, holds and watches in the segment, as it has
 * them.
 * ----------------------------------------------------------------
 */

extern lockmgr *worker_lockmgr;

extern void WorkerLockmgrInit(void);

/*
 * Before an event that may lead to a token: in each turn, and after each reply,
 * since its Date counts.
 */
extern void WorkerSetClock(int64 now);

/* While the worker drains, attempts are short: one may fail and be repeated. */
#define WORKER_DRAIN_REQUEST_US INT64CONST(2000000)

/* At the start, after a reload, and to drain. */
extern void WorkerSetTimeouts(void);

/* Applies ddblock.clock_takeover and ddblock.clock_slack. */
extern void WorkerSetTakeover(void);

/* For ddb_stats. */
extern void WorkerPublishCounts(void);

/* ----------------------------------------------------------------
 * worker_mailbox.c: Requests of sessions, read from their slots.
 * ----------------------------------------------------------------
 */

extern void WorkerMailboxInit(void);

/* Takes over what the worker before this one left in the segment. */
extern void WorkerAdopt(int64 now);

/* Handles the news of every slot whose bell was rung. */
extern void WorkerReadMailbox(int64 now);

/*
 * Handles or fails the requests that wait for the table check.  Returns when it must be
 * called again.
 */
extern int64 WorkerSettleParked(int64 now);

/* Answers every request: there is no Region or no endpoint. */
extern void WorkerRefuseRequests(void);

/* ----------------------------------------------------------------
 * worker_endpoint.c: Where the lock table is.
 * ----------------------------------------------------------------
 */

/*
 * Finds Region, endpoint and credentials.  False if something is missing: then the log says
 * what, as does WorkerPlaceProblem(), which may pass, unless that is "" because instance metadata
 * has just been asked.  To be called again at *wake and whenever WorkerFetchFd() is readable.
 */
extern bool WorkerFindPlace(int64 now, int64 *wake);
extern void WorkerPlaceReload(void);
extern const char *WorkerPlaceProblem(bool *passes);

/* ----------------------------------------------------------------
 * worker_queue.c: Sessions' calls on the queues' table, and replies in pieces.
 * ----------------------------------------------------------------
 */

extern void WorkerQueueInit(void);

/* The session's request with this number will be answered in pieces: */
extern void WorkerExpectPieces(lockmgr_session session, uint64 seq);

/* ... with these bytes, malloc'd, which it takes; NULL: memory was short. */
extern void WorkerAnswerPieces(const WorkerCall *call, char *bytes, Size len);

/* A QUEUE or QUEUE_MORE request; text is the slot's. */
extern void WorkerQueueAsk(lockmgr_session session, const MailboxRequest *request,
						   const char *text);

/* Frees what is left of a session that has ended. */
extern void WorkerQueueForget(uint32 slot);

/*
 * Posts a call on the queues' table now, or after calls before it have ended.  Its done function
 * must call WorkerQueueEnded().
 */
extern void WorkerQueuePost(const WorkerCall *call);
extern void WorkerQueueEnded(void);

/* ----------------------------------------------------------------
 * worker_random.c: Random bytes and UUIDs from a stock.
 * ----------------------------------------------------------------
 */

/* Refills the stock; call it when the worker has nothing else to do. */
extern void WorkerStockRandom(void);

/* The lock manager's "random" callback. */
extern void WorkerFillRandom(void *arg, void *bytes, size_t len);

extern void WorkerNewUuid(char uuid[UUID_SIZE]);

/* ----------------------------------------------------------------
 * worker_status.c: What the worker publishes of itself, for ddb_status.
 * ----------------------------------------------------------------
 */

/*
 * Takes over what earlier workers have published, but for their trouble, and
 * publishes the start.
 */
extern void WorkerStatusInit(void);

extern void WorkerStatusReply(const dynamo_reply *reply);

/* This owner is a copy of our cluster, and lives until then. */
extern void WorkerStatusCopy(const char *owner, int64 until);

extern void WorkerPublishStatus(void);

/* ----------------------------------------------------------------
 * worker_table.c: The lock table, as the codec wants it described.
 * ----------------------------------------------------------------
 */

/* At start, and after a reload. */
extern void WorkerReadTableSettings(void);

extern const dynamo_table *WorkerTable(void);

/* Looks at the items of a reply for clients that ddblock.released_item_ttl harms. */
extern void WorkerLookForOthers(const dynamo_reply *reply);

/* ----------------------------------------------------------------
 * worker_direct_call.c: Calls of sessions that do not go through the lock manager: about the
 * table, or about items that the session does not hold.
 * ----------------------------------------------------------------
 */

/* text is the slot's.  The call's session and id are the request's session and seq. */
extern void WorkerSendTable(lockmgr_session session, const MailboxRequest *request,
							const char *text);

/* ----------------------------------------------------------------
 * worker_log_trouble.c: Tells people when DynamoDB does not work for us.
 * ----------------------------------------------------------------
 */

/* A detail's last line: so many failures were left out of the log. */
extern const char *WorkerLeftOut(int count);

/* The log says when DynamoDB stops working for us, and when it works again. */
extern void WorkerLogTrouble(const dynamo_reply *reply);

/* The same for throttling, which does not keep all requests from being answered. */
extern void WorkerLogThrottling(dynamo_op op, const dynamo_reply *reply);

/* Sessions that wait while a request is repeated say why. */
extern void WorkerPublishTrouble(const dynamo_reply *reply);

#endif							/* DDBLOCK_WORKER_WORKER_H */
