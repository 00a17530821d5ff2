/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  What the worker's files share.  For worker*.c only.
 *
 *	 worker.c			the process: start, loop, reload, drain
 *	 worker_mailbox.c	requests in, answers out, the lease directory
 *	 worker_call.c		calls to DynamoDB: credentials, signing, counters
 *	 worker_place.c		where the table is, and the credentials
 *	 worker_journal.c	frees what dead incarnations held
 *	 worker_table.c		whether the lock table is fit for locks
 *
 * All run in the one worker process; nothing here is for backends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_H
#define DDBLOCK_WORKER_WORKER_H

#include "postgres.h"

#include "aws/credentials.h"
#include "lock/journal_record.h"
#include "shared/segment.h"

#define DDBLOCK_VERSION "0.1.0"

/* worker.c */
extern lockmgr *worker_lockmgr;
extern void WorkerNewUuid(char uuid[UUID_SIZE]);

/* Makes the session look at its leases, unless it has ended meanwhile. */
extern void WorkerInterrupt(lockmgr_session session);

/* worker_mailbox.c */
extern void WorkerMailboxInit(void);
extern void WorkerAdopt(int64 now);
extern void WorkerReadMailbox(int64 now);
extern void WorkerRefuseRequests(void);
extern void WorkerSave(void *arg, uint32 index, const lease *lease,
					   const char *name, size_t name_len);
extern void WorkerAnswer(void *arg, const lockmgr_answer *answer);
extern void WorkerWaits(void *arg, lockmgr_session session, uint64 seq,
						uint32 watch);
extern void WorkerWatch(void *arg, uint32 watch, const lockmgr_watch *what);
extern void WorkerAnswerTable(lockmgr_session session, uint64 seq,
							  dynamo_op op, const dynamo_reply *reply,
							  int64 sent);

extern void WorkerRetryParked(void);
extern void WorkerFailParked(int64 since_before, MailboxRefusal refusal,
							 dynamo_status status, const char *type,
							 const char *message);
extern int64 WorkerOldestParked(void);

/* worker_call.c */
extern void WorkerCallInit(void);
extern void WorkerCallReload(void);
extern void WorkerCallHurry(int64 timeout_us);
extern int	WorkerCallFd(void);
extern bool WorkerClockIsKnown(void);
extern void WorkerSetClock(int64 now);
extern int64 WorkerClockRun(int64 now);
extern int64 WorkerEpochHigh(int64 now);
extern int64 WorkerEpochLow(int64 now);
extern void WorkerCallTable(journal_table *where);
extern void WorkerSend(void *arg, const lockmgr_call *call);
extern void WorkerSendRelease(int which, const dynamo_write *release, bool repeat);
extern void WorkerSendTable(lockmgr_session session, const MailboxRequest *request);
extern void WorkerRunCalls(void);
extern int64 WorkerKeepWarm(int64 now);
extern void WorkerSendTableCheck(void);

/* worker_place.c */
extern bool WorkerFindPlace(void);
extern const char *WorkerPlaceProblem(void);
extern const char *WorkerRegion(void);
extern void WorkerFindCredentials(void);
extern const aws_credentials *WorkerCredentials(void);	/* NULL: none */
extern const char *WorkerCredentialsHint(void);
extern const char *WorkerCaFile(void);
extern void WorkerCheckExposure(void);

/* worker_table.c */
extern bool WorkerTableIsFit(int64 now);
extern int64 WorkerTableTick(int64 now);
extern void WorkerTableDescribed(const dynamo_reply *reply, bool own, int64 now);
extern void WorkerTableMissing(void);
extern bool WorkerTableIsAsked(void);
extern void WorkerClockUnknown(const dynamo_reply *reply);

/* worker_journal.c */
extern void WorkerJournalInit(int64 now);
extern int64 WorkerJournalRun(int64 now);
extern void WorkerJournalReply(int which, const dynamo_result *result, int64 now);

#endif							/* DDBLOCK_WORKER_WORKER_H */
