/*-------------------------------------------------------------------------
 *
 * worker_call.h
 *	  Calls to DynamoDB.
 *
 * Each call brings the function that takes its reply, as in http_pool_post():
 * worker_call.c knows nobody who calls.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_CALL_H
#define DDBLOCK_WORKER_WORKER_CALL_H

#include "postgres.h"

#include "lock/lockmgr.h"

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
	WorkerDone	done;
	lockmgr_session session;	/* the caller's, as are these two */
	uint64		id;
	void	   *note;			/* malloc'd, freed with body; or NULL */
	int64		posted;			/* set by WorkerPost(): when it was sent */
};

/* "seen" gets each reply first, before the call's own done function. */
extern void WorkerCallInit(WorkerDone seen);
extern void WorkerCallReload(void);

/* Calls in flight must be answered within this time, too. */
extern void WorkerCallHurry(int64 timeout_us);

extern int	WorkerCallConnections(void);

/* Readable when there is something to do for WorkerRunCalls(). */
extern int	WorkerCallFd(void);

/*
 * Posts the call.  Exactly one call of its done function follows, never from
 * within WorkerPost() itself: the lock manager posts while it must not be
 * entered.
 */
extern void WorkerPost(const WorkerCall *call);

/* Reads an item that nobody writes.  done may be NULL. */
extern void WorkerPostRead(WorkerDone done);

/* Lets the connections do their work: done functions are called from here. */
extern void WorkerRunCalls(void);

/*
 * Keeps a connection open by a read now and then.  Returns when it must be
 * called again.
 */
extern int64 WorkerKeepWarm(int64 now);

#endif							/* DDBLOCK_WORKER_WORKER_CALL_H */
