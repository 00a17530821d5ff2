/*-------------------------------------------------------------------------
 *
 * worker_directory.h
 *	  Leases, holds and watches in the segment, as the lock manager has them.
 *
 * These are functions of lockmgr_host.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_DIRECTORY_H
#define DDBLOCK_WORKER_WORKER_DIRECTORY_H

#include "postgres.h"

#include "lock/lockmgr.h"

extern void WorkerSave(void *arg, uint32 index, const lease *lease,
					   const char *name, size_t name_len);
extern void WorkerSaveHold(void *arg, uint32 index, const hold *hold);
extern void WorkerWaits(void *arg, lockmgr_session session, uint64 seq,
						uint32 watch);
extern void WorkerWatch(void *arg, uint32 watch, const lockmgr_watch *what);

#endif							/* DDBLOCK_WORKER_WORKER_DIRECTORY_H */
