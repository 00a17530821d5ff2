/*-------------------------------------------------------------------------
 *
 * worker_replace.h
 *	  Shows a session an item that nobody can use as a lock, or replaces it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_REPLACE_H
#define DDBLOCK_WORKER_WORKER_REPLACE_H

#include "postgres.h"

#include "shared/segment.h"

/* A request with op DYNAMO_REPLACE; text is the slot's. */
extern void WorkerReplace(lockmgr_session session, const MailboxRequest *request,
						  const char *text);

#endif							/* DDBLOCK_WORKER_WORKER_REPLACE_H */
