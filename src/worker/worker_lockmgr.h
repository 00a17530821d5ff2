/*-------------------------------------------------------------------------
 *
 * worker_lockmgr.h
 *	  The worker's lock manager.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_LOCKMGR_H
#define DDBLOCK_WORKER_WORKER_LOCKMGR_H

#include "postgres.h"

#include "lock/lockmgr.h"

extern lockmgr *worker_lockmgr;

/* The effects on sessions come from the caller; the others are set here. */
extern void WorkerLockmgrInit(lockmgr_host host);

/*
 * Before an event that may lead to a token: in each turn, and after each reply,
 * since its Date counts.
 */
extern void WorkerSetClock(int64 now);

/* After a reload; request_max_us bounds one attempt. */
extern void WorkerSetTimeouts(int64 request_max_us);

/* Applies ddblock.clock_takeover and ddblock.clock_slack. */
extern void WorkerSetTakeover(void);

/* For ddb_stats. */
extern void WorkerPublishCounts(void);

/* Makes the session look at its leases, unless it has ended meanwhile. */
extern void WorkerInterrupt(lockmgr_session session);

#endif							/* DDBLOCK_WORKER_WORKER_LOCKMGR_H */
