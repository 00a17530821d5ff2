/*-------------------------------------------------------------------------
 *
 * queue_own.h
 *	  What a session does with the jobs that it has claimed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_QUEUE_OWN_H
#define DDBLOCK_SESSION_QUEUE_OWN_H

#include "postgres.h"

#include "session/queue_claim.h"
#include "session/session.h"

/* The lock of a resource: "queue/", queue, "/", resource. */
extern LockName QueueLockName(const char *queue, const char *resource);

/*
 * The claim of that job.  Raises 55000 if the session has none, or has completed the job, and
 * LK001 if its lease is lost.
 */
extern QueueClaim *QueueOwnRequire(const LockName *lock, const char *queue,
									 const char *resource, int64 number);

/* Ends the claim, and waits until DynamoDB has confirmed that the lock is released. */
extern void QueueOwnRelease(QueueClaim *claim, const LockName *lock);

/*
 * Waits a moment until this session's last completion has taken effect: then it sees the
 * resource free, and its depth.
 */
extern void QueueOwnSettle(void);

#endif							/* DDBLOCK_SESSION_QUEUE_OWN_H */
