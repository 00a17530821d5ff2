/*-------------------------------------------------------------------------
 *
 * await.h
 *	  Procedures that wait without a snapshot.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_AWAIT_H
#define DDBLOCK_SESSION_AWAIT_H

#include "postgres.h"

#include "fmgr.h"

/*
 * To be called when the arguments have been read, and before anything is sent.  If the
 * function was called as a procedure, commits the transaction, so that the session has no
 * snapshot while it waits.  Raises 25001 if that would commit what the caller has not
 * finished; the hint names the function that waits inside of a transaction.
 */
extern void AwaitWithoutSnapshot(FunctionCallInfo fcinfo, const char *instead);

#endif							/* DDBLOCK_SESSION_AWAIT_H */
