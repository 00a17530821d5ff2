/*-------------------------------------------------------------------------
 *
 * worker_table_call.h
 *	  Calls of sessions that do not go through the lock manager: about the
 *	  table, or about items that the session does not hold.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_TABLE_CALL_H
#define DDBLOCK_WORKER_WORKER_TABLE_CALL_H

#include "postgres.h"

#include "shared/segment.h"
#include "worker/worker_call.h"

/* text is the slot's.  The call's session and id are the request's session and seq. */
extern void WorkerSendTable(lockmgr_session session, const MailboxRequest *request,
							const char *text);

#endif							/* DDBLOCK_WORKER_WORKER_TABLE_CALL_H */
