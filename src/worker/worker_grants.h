/*-------------------------------------------------------------------------
 *
 * worker_grants.h
 *	  ddblock.log_grants: a line in the log for each grant, loss and release.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_GRANTS_H
#define DDBLOCK_WORKER_WORKER_GRANTS_H

#include "postgres.h"

#include "lock/lockmgr.h"

/* event: "granted", "lost", "released"; until: the end of the belief, if it was before now. */
extern void WorkerLogHold(const char *event, const hold *hold, int64 until);

#endif							/* DDBLOCK_WORKER_WORKER_GRANTS_H */
