/*-------------------------------------------------------------------------
 *
 * worker_copy.h
 *	  Looks for a copy of this cluster that uses the same lock table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_COPY_H
#define DDBLOCK_WORKER_WORKER_COPY_H

#include "postgres.h"

#include "dynamo/dynamo.h"

/* What goes into the holder map: our system identifier, or "" on a standby. */
extern void WorkerCopySystem(char system[DYNAMO_SYSTEM_SIZE]);

/* See lockmgr_host.lives. */
extern void WorkerCopyLives(void *arg, const dynamo_item *item);

#endif							/* DDBLOCK_WORKER_WORKER_COPY_H */
