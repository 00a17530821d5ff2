/*-------------------------------------------------------------------------
 *
 * worker_answer.h
 *	  Answers to sessions, in their slots.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_ANSWER_H
#define DDBLOCK_WORKER_WORKER_ANSWER_H

#include "postgres.h"

#include "shared/segment.h"
#include "worker/worker_call.h"

/*
 * The answer to fill in; mailbox_end_answer() ends it.  NULL: the session has cancelled or
 * ended, and what was granted goes back.
 */
extern MailboxAnswer *WorkerBeginAnswer(lockmgr_session session, uint64 seq, uint32 granted);

extern void WorkerFillFailure(MailboxAnswer *out, MailboxResult result, dynamo_op op,
							  dynamo_status status, const char *message);

/* The lock manager's answer (lockmgr_host). */
extern void WorkerAnswer(void *arg, const lockmgr_answer *answer);

/*
 * The reply to a session's call about the lock table, which passed by the lock manager.  A READ
 * is a REPLACE that was not sent: its item can be used, or there is none, or it is another
 * unusable one than the session knows.
 */
extern void WorkerAnswerTable(const WorkerCall *call, const dynamo_reply *reply);

#endif							/* DDBLOCK_WORKER_WORKER_ANSWER_H */
