/*-------------------------------------------------------------------------
 *
 * worker_table.h
 *	  The lock table, as the codec and the journal want it described.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_WORKER_TABLE_H
#define DDBLOCK_WORKER_WORKER_TABLE_H

#include "postgres.h"

#include "lock/journal_record.h"

/* At start, and after a reload. */
extern void WorkerReadTableSettings(void);

extern const dynamo_table *WorkerTable(void);

/* What does not change while the server runs. */
extern void WorkerDescribeTable(journal_table *where);

/* Looks at the items of a reply for clients that ddblock.released_item_ttl harms. */
extern void WorkerLookForOthers(const dynamo_reply *reply);

#endif							/* DDBLOCK_WORKER_WORKER_TABLE_H */
