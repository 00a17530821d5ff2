/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  What the files of this room give each other.
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
 * After a crash or a start, shared memory is new and says nothing about earlier locks.  The
 * journal, the file pg_stat_tmp/ddblock.INCARNATION, lists their names.  The worker writes a name
 * before it sends the first acquire of that lock, and removes it when the lease is free.  So the
 * list may have names of locks that are not held.  It lacks a lock only if a copy of a request
 * arrives after its lease was given up; that lock is free one lease later.  The next incarnation
 * first bars the listed locks, so that no late acquire of the dead incarnation can be applied.
 * Then it releases those whose items still have the old incarnation's ownerName
 * (worker_free_dead.c).
 *
 * The next incarnation may release these locks, because nobody relies on them.  It only uses a
 * journal if these conditions hold:
 *
 *	 - The journal was written in this very data directory: device and inode are the same.  A copy
 *	   of the directory has another inode.  The kernel does not reuse the inode of a removed
 *	   directory while the directory is the working directory of some process, and it is that of
 *	   every PostgreSQL process.
 *	 - The journal was written since this machine booted: the boot id is the same.  So another
 *	   machine ignores the journals in a snapshot of the disk.
 *
 * Then the processes of the dead incarnation have ended, because a data directory has one set of
 * processes at a time.  After a crash the postmaster makes new shared memory only when its last
 * child is gone.  Another postmaster does not start while a single process is attached to the old
 * memory, even if that is an orphan of a killed postmaster, and even if postmaster.pid was
 * removed: the memory's key comes from the directory's inode.
 *
 * These conditions do not recognize a clone of a running machine with its memory: boot id, device
 * and inode are the same, and both machines go on.
 *
 * Reasons for details:
 *
 *	 - The file is in pg_stat_tmp, because base backups and pg_rewind omit that directory's
 *	   contents, and the server itself keeps nothing there since version 15.
 *	 - It is not fsynced: only the kernel that took the write reads the file.
 *	 - It is not mapped: on a full disk write() fails, but a page fault would kill the worker, and
 *	   with it all sessions.
 *
 * Without a journal, the locks of a dead incarnation are free one lease later.  So a failure here
 * is no error: the worker logs it once and goes on.
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

/* Lists the lock of the lease with this index. */
extern void JournalList(uint32 index, const char *name, size_t name_len);

/*
 * Removes the lock of the lease with this index from the list: the lease is free, or detached.  If
 * that fails, removes the journal.
 */
extern void JournalUnlist(uint32 index);

/* Removes the journal.  For a shutdown, when no lease is held, and none will be. */
extern void JournalRemove(void);

/*
 * Returns the journals of dead incarnations, allocated in the current memory context.  say: logs
 * which journals it ignores, and why.
 */
extern DeadJournal *JournalFindDead(bool say);

/*
 * Reads the next listed name, from slot *number on, and sets *number to its slot.  False at the
 * end of the journal.
 */
extern bool JournalNextName(DeadJournal *journal, uint32 *number, journal_slot *slot);

/* Removes a lock from a dead incarnation's journal: it is released now, or was not held. */
extern void JournalStrike(const DeadJournal *journal, uint32 number);

/* Closes the journal and removes its file. */
extern void JournalDiscard(DeadJournal *journal);

/* ----------------------------------------------------------------
 * worker_call.c: Calls to DynamoDB.
 *
 * Each call names the function that takes its reply, as in http_pool_post().  So worker_call.c
 * does not depend on the files that make calls.
 * ----------------------------------------------------------------
 */

typedef struct WorkerCall WorkerCall;

/* Takes the reply to a call.  The reply is valid until the function returns. */
typedef void (*WorkerDone) (const WorkerCall *call, const dynamo_reply *reply);

struct WorkerCall
{
	dynamo_op	op;
	int			count;			/* writes in a batch; 0: it is no batch */
	char	   *body;			/* malloc'd, freed after the reply; NULL: there was
								 * no memory for it, and the call fails */
	int64		timeout_us;		/* 0: ddblock.request_timeout */
	bool		repeat;			/* a repetition: counted as such for ddb_operations */
	bool		dated;			/* the body contains the time: if DynamoDB refuses it, the caller
								 * makes a new body */
	bool		quiet;			/* failures are not logged, because a session reports them */
	WorkerDone	done;			/* NULL: nobody wants the reply.  WorkerTableCheckSee() knows the
								 * worker's own DescribeTable by that */
	lockmgr_session session;	/* for the caller's own use, as are the next two */
	uint64		id;
	void	   *note;			/* palloc'd in TopMemoryContext, freed with body; or NULL */
	int64		posted;			/* set by WorkerPost(): when it was sent */
};

/* seen: a function that gets each reply before the call's own done function does. */
extern void WorkerCallInit(WorkerDone seen);

/* The connections to DynamoDB. */
extern http_pool *worker_pool;

/* A descriptor that is readable when WorkerRunCalls() has something to do. */
extern int	WorkerCallFd(void);

/*
 * Posts the call.  Its done function, if it has one, is called exactly once afterwards, never by
 * WorkerPost() itself: the lock manager calls WorkerPost() while it handles an event, and must not
 * be entered again.
 */
extern void WorkerPost(const WorkerCall *call);

/*
 * The worker reads the item of this name to open a connection or to learn the time.  Nobody writes
 * it.
 */
#define WORKER_UNWRITTEN "ddblock/keep-warm"

/* Posts a read of the item of that name.  done and id are as in WorkerCall. */
extern void WorkerPostRead(const char *name, WorkerDone done, uint64 id);

/* Lets the connections work.  Calls the done functions of calls that have ended. */
extern void WorkerRunCalls(void);

/* Keeps a connection open by a read now and then.  Returns when to call it again. */
extern int64 WorkerKeepWarm(int64 now);

/* ----------------------------------------------------------------
 * worker_answer.c: Answers to sessions, in their slots.
 * ----------------------------------------------------------------
 */

/*
 * Begins an answer.  Returns the struct to fill in; mailbox_end_answer() must follow.  Returns
 * NULL if the session has cancelled the request or ended; the hold that was granted is then let
 * go.  granted: that hold, or LOCKMGR_NO_HOLD.
 */
extern MailboxAnswer *WorkerBeginAnswer(lockmgr_session session, uint64 seq, uint32 granted);

/* Answers with a result alone. */
extern void WorkerAnswerResult(lockmgr_session session, uint64 seq, MailboxResult result);

extern void WorkerFillFailure(MailboxAnswer *out, MailboxResult result, dynamo_op op,
							  dynamo_status status, const char *message);

/* Answers with a failure.  hint NULL: the hint that WorkerFillFailure() gives. */
extern void WorkerAnswerFailure(lockmgr_session session, uint64 seq, MailboxResult result,
								dynamo_op op, dynamo_status status, const char *message,
								const char *hint);

/* A copy of the item for shared memory, in which all pointers are NULL. */
extern dynamo_item WorkerItem(const dynamo_item *item);

/* Passes an answer of the lock manager on to the session (lockmgr_host.answer). */
extern void WorkerAnswer(void *arg, const lockmgr_answer *answer);

/*
 * Answers a session's TABLE request with the reply to its call.  Of a page, answers only a
 * failure.
 *
 * The reply to a READ answers a REPLACE that was not sent: the item can be used as a lock, there
 * is no item, or it is another unusable one than the session has seen.
 */
extern void WorkerAnswerTable(const WorkerCall *call, const dynamo_reply *reply);

/* ----------------------------------------------------------------
 * worker_leaderships.c: The cluster's leaderships: see lock/leadership.h.
 * ----------------------------------------------------------------
 */

/* Call it before the worker adopts: a request to resign may be waiting. */
extern void WorkerLeadershipsInit(void);

/* Call it once in each turn.  Returns when to call it again. */
extern int64 WorkerLeadershipsRun(int64 now);

/* As leadership_resign(). */
extern bool WorkerLeadershipsResign(int64 now, const char *name, int64 rest_us, int64 wait_us);

/* ----------------------------------------------------------------
 * worker_clock.c: DynamoDB's time, as the replies' Date headers show it (aws/epoch_clock.c).
 *
 * The clock is in the segment, so a new worker goes on with what the last one has learned.  All
 * times are microseconds since the epoch, except "now", which is SegmentNow().
 * ----------------------------------------------------------------
 */

/* The machine's wall clock, in microseconds since the epoch. */
extern int64 WorkerWallClock(void);

extern void WorkerClockInit(void);

/*
 * Learns from a reply.  date_s: its Date header, in seconds since the epoch; 0 if there was none,
 * as from an imitation of DynamoDB: then the time is taken to be this machine's wall clock.  sent,
 * received: on SegmentNow()'s clock.  refused: DynamoDB has refused the request because of the
 * time of its signature.
 */
extern void WorkerClockReply(int64 date_s, int64 sent, int64 received, bool refused);

/* DynamoDB's time is not above the first and not below the second of these. */
extern int64 WorkerEpochHigh(int64 now);
extern int64 WorkerEpochLow(int64 now);

/* The likely time of DynamoDB, to sign with. */
extern int64 WorkerEpochLikely(int64 now);

/* ----------------------------------------------------------------
 * worker_cluster_copy.c: Looks for a copy of this cluster that uses the same lock table.
 * ----------------------------------------------------------------
 */

/* The system identifier that this cluster writes into items; "" on a standby. */
extern void WorkerCopySystem(char system[DYNAMO_SYSTEM_SIZE]);

/* The lock manager has seen that the owner of this item lives (lockmgr_host.lives). */
extern void WorkerCopyLives(void *arg, const dynamo_item *item);

/* ----------------------------------------------------------------
 * worker_credentials.c: The credentials in use.
 * ----------------------------------------------------------------
 */

/* Finds the credentials, or begins to fetch them.  For the start, and after a reload. */
extern void WorkerFindCredentials(void);
extern const aws_credentials *WorkerCredentials(void);	/* NULL: none */

/* Finds or fetches credentials, because there are none, or DynamoDB has refused those in use. */
extern void WorkerWantCredentials(void);

/*
 * Are credentials being fetched?  Then a call that has none, or none that DynamoDB accepts, may
 * wait for them.
 */
extern bool WorkerCredentialsComing(void);

/* Has the last fetch failed in a way that may pass, such as a time-out? */
extern bool WorkerCredentialsMayCome(void);

/* Fetches and renews the credentials.  Returns when to call it again. */
extern int64 WorkerRenewCredentials(int64 now);

/* Where the credentials come from, or will come from; NULL if that is not known. */
extern const char *WorkerCredentialsSource(void);

/* Does the log say already that fetching credentials fails, and why? */
extern bool WorkerCredentialsTold(void);

/*
 * A sentence for a session whose call was refused: which credentials were used, or why there were
 * none.
 */
extern const char *WorkerCredentialsWords(void);

/* Warns of files that show the secret to every user of the machine. */
extern void WorkerCheckExposure(void);

/* ----------------------------------------------------------------
 * worker_environment.c: What src/aws and src/net get: settings, environment and files.
 * ----------------------------------------------------------------
 */

extern const aws_environment *WorkerEnvironment(void);

/* The caller must close the profile, before the next reload. */
extern void WorkerOpenProfile(aws_profile *profile);

/*
 * The file of the authorities that TLS trusts, as aws_find_ca_file() says, even if it cannot be
 * read; NULL: the system's certificates.  Valid until the next call.
 */
extern const char *WorkerCaFile(void);

/*
 * Makes a pool.  Takes authorities, proxy and time to connect from the settings, and the rest from
 * the caller's config.
 */
extern http_pool *WorkerNewPool(reactor *r, http_pool_config config);

/* Applies these settings to the pool, after a reload. */
extern void WorkerReloadPool(http_pool *pool);

/* ----------------------------------------------------------------
 * worker_fetch.c: Does what fetching credentials needs: HTTP requests, and a command.
 * ----------------------------------------------------------------
 */

/* Takes the result of a fetch: fetch->found if found, else fetch->error. */
typedef void (*WorkerFetched) (aws_fetch *fetch, bool found);

extern void WorkerFetchInit(void);
extern void WorkerFetchReload(void);

/* A descriptor that is readable when WorkerFetchRun() has something to do. */
extern int	WorkerFetchFd(void);

/*
 * While something is being fetched, call WorkerFetchRun() at least this often: a pause between
 * requests may end, or the result may not be wanted any more.
 */
#define WORKER_FETCH_LOOK_US INT64CONST(100000)

/*
 * Begins a fetch.  Only one fetch may be under way.  done may be called by this function already.
 */
extern void WorkerFetchStart(aws_fetch *fetch, WorkerFetched done);

/* The result of the fetch is not wanted any more.  done is called soon, with found = false. */
extern void WorkerFetchGiveUp(void);

/* Lets the fetch go on.  Calls done if it has ended. */
extern void WorkerFetchRun(void);

/* ----------------------------------------------------------------
 * worker_finish_jobs.c: Finishes jobs whose sessions have committed.
 * ----------------------------------------------------------------
 */

extern void WorkerFinishInit(void);

/* Sends the writes that are due.  Returns when to call it again. */
extern int64 WorkerFinishRun(int64 now);

/* Are all completed jobs finished? */
extern bool WorkerFinishIdle(void);

/* ----------------------------------------------------------------
 * worker_table_check.c: Asks DynamoDB what must be known before locks are acquired
 * (lock/table_check.h).
 * ----------------------------------------------------------------
 */

extern table_check worker_table_check;

/* Call it when the place is known, and after WorkerClockInit(). */
extern void WorkerTableCheckInit(void);

/* Call it for the reply to each call. */
extern void WorkerTableCheckSee(const WorkerCall *call, const dynamo_reply *reply);

/* Makes the calls that are due.  Returns when to call it again. */
extern int64 WorkerTableCheckRun(int64 now);

/* ----------------------------------------------------------------
 * worker_log_grants.c: ddblock.log_grants: a line in the log for each grant, loss and release.
 * ----------------------------------------------------------------
 */

/*
 * Logs an event of a hold: "granted", "lost" or "released".  until: when the belief in the hold
 * ended; a time in the future: the line does not say.
 */
extern void WorkerLogHold(const char *event, const saved_hold *hold, int64 until);

/* ----------------------------------------------------------------
 * worker_free_dead.c: Frees what dead incarnations of this cluster held when they died.
 * ----------------------------------------------------------------
 */

/* Call it after WorkerLockmgrInit(), and before the lock manager sends anything. */
extern void WorkerJournalInit(int64 now);

/* Sends the writes that are due.  Returns when to call it again. */
extern int64 WorkerJournalRun(int64 now);

/* ----------------------------------------------------------------
 * worker_lockmgr.c: The worker's lock manager; leases, holds and watches in the segment, as it has
 * them.
 * ----------------------------------------------------------------
 */

extern lockmgr *worker_lockmgr;

extern void WorkerLockmgrInit(void);

/*
 * Tells the lock manager the bounds of DynamoDB's time.  Call it before each event that may lead
 * to a new token: in each turn, and after each reply, since its Date header moves the bounds.
 */
extern void WorkerSetClock(int64 now);

/*
 * The time-out of a call while the worker drains (see worker.c).  It is short, so that a failed
 * call can be repeated before the worker ends.
 */
#define WORKER_DRAIN_REQUEST_US INT64CONST(2000000)

/*
 * Tells the lock manager the time-outs.  Call it at the start, after a reload, and when the worker
 * begins to drain.
 */
extern void WorkerSetTimeouts(void);

/* Applies ddblock.clock_takeover and ddblock.clock_slack. */
extern void WorkerSetTakeover(void);

/* Writes the lock manager's counts into the segment, for ddb_stats. */
extern void WorkerPublishCounts(void);

/* ----------------------------------------------------------------
 * worker_mailbox.c: Requests of sessions, read from their slots.
 * ----------------------------------------------------------------
 */

extern void WorkerMailboxInit(void);

/* Adopts what the last worker has left in the segment: leases, holds and requests. */
extern void WorkerAdopt(int64 now);

/* Reads every slot whose bell was rung. */
extern void WorkerReadMailbox(int64 now);

/*
 * Handles or fails the parked requests, which wait for the table check, if that has ended.
 * Returns when to call it again.
 */
extern int64 WorkerSettleParked(int64 now);

/*
 * Answers every request with the reason why there is no place: no Region, no endpoint, or no
 * authorities.
 */
extern void WorkerRefuseRequests(void);

/* ----------------------------------------------------------------
 * worker_endpoint.c: Where the lock table is.
 * ----------------------------------------------------------------
 */

/*
 * Finds Region, endpoint and credentials.  Call it again at *wake, and whenever WorkerFetchFd() is
 * readable.  Returns false if something is missing; then there are two cases:
 *
 *	 - The worker has just asked instance metadata for the Region, and WorkerPlaceProblem() is "".
 *	 - Else the log and WorkerPlaceProblem() say what is missing.  *passes: the problem may pass,
 *	   as the metadata server has failed for a moment.
 */
extern bool WorkerFindPlace(int64 now, int64 *wake);
extern void WorkerPlaceReload(void);
extern const char *WorkerPlaceProblem(bool *passes);

/* ----------------------------------------------------------------
 * worker_queue.c: Sessions' calls on the queues' table, and replies in pieces.
 * ----------------------------------------------------------------
 */

extern void WorkerQueueInit(void);

/*
 * The reply to this request of the session will be handed over in pieces: prepares the session's
 * buffer.
 */
extern void WorkerExpectPieces(lockmgr_session session, uint64 seq);

/*
 * Hands these bytes over, in pieces.  Takes over bytes, which is malloc'd; NULL: memory was short,
 * and the session gets an error.
 */
extern void WorkerAnswerPieces(const WorkerCall *call, char *bytes, Size len);

/* Handles a QUEUE or QUEUE_MORE request.  text: the text of its slot. */
extern void WorkerQueueAsk(lockmgr_session session, const MailboxRequest *request,
						   const char *text);

/* Frees the slot's buffer if its session has ended. */
extern void WorkerQueueForget(uint32 slot);

/*
 * Posts a call on the queues' table, now or when earlier ones have ended.  The call's done
 * function must call WorkerQueueEnded().
 */
extern void WorkerQueuePost(const WorkerCall *call);
extern void WorkerQueueEnded(void);

/* ----------------------------------------------------------------
 * worker_random.c: Random bytes and UUIDs from a stock.
 * ----------------------------------------------------------------
 */

/* Refills the stock of random bytes.  Call it when the worker has nothing else to do. */
extern void WorkerStockRandom(void);

/* Fills bytes from the stock (lockmgr_host.random). */
extern void WorkerFillRandom(void *arg, void *bytes, size_t len);

extern void WorkerNewUuid(char uuid[UUID_SIZE]);

/* ----------------------------------------------------------------
 * worker_status.c: What the worker publishes of itself, for ddb_status.
 * ----------------------------------------------------------------
 */

/*
 * Begins with what earlier workers have published, except for the trouble that they had, and
 * publishes this worker's start.
 */
extern void WorkerStatusInit(void);

extern void WorkerStatusReply(const dynamo_reply *reply);

/* Does this cluster take dead holders' locks over by DynamoDB's clock?  worker_lockmgr.c sets it. */
extern bool worker_takes_over;

/* This owner is a copy of this cluster, and is known to live until then. */
extern void WorkerStatusCopy(const char *owner, int64 until);

extern void WorkerPublishStatus(void);

/* ----------------------------------------------------------------
 * worker_table.c: The lock table, as the codec wants it described.
 * ----------------------------------------------------------------
 */

/* Reads the settings.  Call it at the start, and after a reload. */
extern void WorkerReadTableSettings(void);

extern const dynamo_table *WorkerTable(void);

/*
 * If the items of a reply show a client that ddblock.released_item_ttl would harm, stops writing a
 * time-to-live.
 */
extern void WorkerLookForOthers(const dynamo_reply *reply);

/* ----------------------------------------------------------------
 * worker_direct_call.c: Calls of sessions that do not go through the lock manager: about the
 * table, or about items that the session does not hold.
 * ----------------------------------------------------------------
 */

/*
 * Makes the call that a TABLE request wants.  text: the text of its slot.  The call's session and
 * id are the request's session and seq.
 */
extern void WorkerSendTable(lockmgr_session session, const MailboxRequest *request,
							const char *text);

/* ----------------------------------------------------------------
 * worker_log_trouble.c: Tells people when DynamoDB does not work for us.
 * ----------------------------------------------------------------
 */

/*
 * The last line of a detail, which says that so many failures were left out of the log; "" for 0.
 */
extern const char *WorkerLeftOut(int count);

/* Logs when DynamoDB stops working for this server, and when it works again. */
extern void WorkerLogTrouble(const dynamo_reply *reply);

/*
 * Logs when throttling begins and when it has ended.  Throttling is apart from other trouble,
 * because some requests succeed meanwhile.
 */
extern void WorkerLogThrottling(dynamo_op op, const dynamo_reply *reply);

/* Publishes why requests are repeated, so that waiting sessions can say it. */
extern void WorkerPublishTrouble(const dynamo_reply *reply);

#endif							/* DDBLOCK_WORKER_WORKER_H */
