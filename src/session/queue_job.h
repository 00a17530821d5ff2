/*-------------------------------------------------------------------------
 *
 * queue_job.h
 *	  A job's life: pushed, claimed, finished, failed, buried.
 *
 * All texts are UTF-8, but for what QueueJobToServer() has converted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_QUEUE_JOB_H
#define DDBLOCK_SESSION_QUEUE_JOB_H

#include "postgres.h"

#include "session/queue_call.h"
#include "session/session.h"

typedef struct QueuePush
{
	char	   *payload;
	char	   *id;				/* the caller's, or NULL */
	char		digest[QUEUE_DIGEST_SIZE];	/* set by QueueJobPush(), */
	int64		number;			/* as is this */
	bool		before;			/* ... pushed before, under that id */
} QueuePush;

/* Pushes up to QUEUE_PUSH_MAX jobs of one resource, in this order, at once. */
extern void QueueJobPush(const char *queue, const char *resource, QueuePush *jobs, int count,
						 int64 dedup_ms);

typedef enum QueueTry
{
	QUEUE_NOTHING,				/* no job is due, or the resource is paused; or this cluster works on
								 * it, and a hint follows */
	QUEUE_BUSY,					/* somebody else holds the lock */
	QUEUE_AGAIN_NOW,			/* a job was cancelled or buried: there may be another one */
	QUEUE_FOREIGN,				/* not claimed: QueueJobToServer() raises why */
	QUEUE_CLAIMED
} QueueTry;

typedef struct QueueJob
{
	char	   *resource;
	int64		number;
	char	   *payload;
	char	   *id;				/* "": none */
	int64		attempts;
	int64		pushed_at;		/* epoch milliseconds */
	int64		token;
} QueueJob;

/*
 * Claims the resource's next job, if it can.  attempts: how often that has been claimed, or
 * QUEUE_ATTEMPTS_UNKNOWN; then the head tells, and whether it is due.
 */
extern QueueTry QueueJobTry(const char *queue, const char *resource, int64 attempts,
							int64 lease_ms, int max_attempts, QueueJob *job);

/* The job's texts in the database's encoding.  Raises 22P05 or 22021 for what that cannot say. */
extern void QueueJobToServer(const char *queue, QueueJob *job);

/* Puts a claimed job back; it is due after this time.  Raises LK001 if the token is old. */
extern void QueueJobFail(const char *queue, const char *resource, int64 number, int64 token,
						 const LockName *lock, const char *error, int64 retry_ms);

/*
 * Cancels a job that nobody works on.  False: it is finished, or was never pushed, or was
 * cancelled.  Raises 55006 if somebody holds the resource's lock and the job is the next one.
 */
extern bool QueueJobCancel(const char *queue, const char *resource, int64 number);

/* The head; NULL if the resource never had a job. */
extern QueueRow *QueueJobHead(const char *queue, const char *resource, int64 *now_ms);

/* Deletes a job that is finished. */
extern void QueueJobDelete(const char *queue, const char *resource, int64 number);

#endif							/* DDBLOCK_SESSION_QUEUE_JOB_H */
