/*-------------------------------------------------------------------------
 *
 * worker_journal.h
 *	  Frees what dead incarnations of this cluster held when they died.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_JOURNAL_H
#define DDBLOCK_WORKER_WORKER_JOURNAL_H

#include "postgres.h"

/* After the lock manager was made, and before it sends anything. */
extern void WorkerJournalInit(int64 now);

/* Sends the releases that are due.  Returns when it must be called again. */
extern int64 WorkerJournalRun(int64 now);

#endif							/* DDBLOCK_WORKER_WORKER_JOURNAL_H */
