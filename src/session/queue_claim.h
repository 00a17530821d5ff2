/*-------------------------------------------------------------------------
 *
 * queue_claim.h
 *	  The jobs that this session has claimed: notes, kept in its own memory.
 *
 * A claim is an ordinary lock of this session, and its token.  It is void as soon as the
 * session no longer holds the lock with that token, whatever ended it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_QUEUE_CLAIM_H
#define DDBLOCK_SESSION_QUEUE_CLAIM_H

#include "postgres.h"

#include "lib/ilist.h"

#include "queue/queue_claim.h"
#include "session/held.h"

typedef struct QueueClaim
{
	dlist_node	node;
	char	   *lock;			/* its name, UTF-8 */
	queue_claim is;
	uint32		finish;			/* the entry of segment_finishes that its completion has */
} QueueClaim;

/* This session has passed completions on: QueueOwnSettle() waits for them. */
extern bool queue_claim_passed;

/*
 * A new note, before the lock is acquired: it has no token yet, and so is void.  If the transaction
 * aborts, it ends, and the lock with it.
 */
extern QueueClaim *QueueClaimAdd(const char *lock);

/* NULL if the session has none, valid or void. */
extern QueueClaim *QueueClaimFind(const char *lock);

/* Completes the job when the transaction has committed. */
extern void QueueClaimComplete(QueueClaim *claim, const char *queue, const char *resource);

/* Its lock was released, detached, or lost and acquired anew. */
extern bool QueueClaimIsVoid(const QueueClaim *claim);

/* Deletes the note, and leaves the lock as it is. */
extern void QueueClaimForget(QueueClaim *claim);

/* Ends the claim, and the lock with it.  Neither waits nor fails. */
extern void QueueClaimEnd(QueueClaim *claim);

/*
 * Ends the claims whose lease is lost: they would keep this session from their resources, and
 * its transactions from committing.
 */
extern void QueueClaimEndLost(void);

/*
 * For transaction.c.  A job is completed only under the lock with which it was claimed: otherwise
 * QueueClaimCommit() raises 55000.
 */
extern void QueueClaimCommit(void);
extern void QueueClaimRefusePrepare(void);
extern void QueueClaimEndLevel(int level, bool committed);

#endif							/* DDBLOCK_SESSION_QUEUE_CLAIM_H */
