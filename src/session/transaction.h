/*-------------------------------------------------------------------------
 *
 * transaction.h
 *	  Follows the session's transactions and savepoints.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_TRANSACTION_H
#define DDBLOCK_SESSION_TRANSACTION_H

/*
 * Registers the callbacks, once in a process.  Needs neither shared memory nor
 * the worker: ddb_fence_check() works without them.
 */
extern void TransactionAttach(void);

#endif							/* DDBLOCK_SESSION_TRANSACTION_H */
