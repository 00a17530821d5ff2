/*-------------------------------------------------------------------------
 *
 * drop_extension.c
 *	  Keeps DROP EXTENSION from losing locks, fencing tokens, jobs and work.
 *
 * Without the extension, a session could not release the locks that it holds, and no view would
 * show them.  The rows of the extension's tables are needed, too:
 *
 *	 - ddb_fences: a stale token would pass;
 *	 - ddb_queue_done: work would be done twice;
 *	 - ddb_outbox: its rows are jobs that are nowhere else.
 *
 * So the extension cannot be dropped while a lock is held in this database, or one of these tables
 * has rows.  PostgreSQL calls the hook (statement.c) for each object just before it drops it, so
 * this covers DROP SCHEMA ... CASCADE and DROP OWNED, too.  If the library is not preloaded, the
 * event trigger ddb_keep_extension loads it first.
 *
 * The check does not see a session that acquires a lock after it.  That lock is released when the
 * session ends.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "session/session.h"

#define EXTENSION "ddblock"

/* A table whose rows must not be lost. */
typedef struct Kept
{
	const char *table;
	const char *loss;			/* %llu: the number of its rows */
	const char *losses;
	const char *hint;			/* %s: the table, with its schema */
} Kept;

static const Kept kept[] = {
	{
		"ddb_fences",
		"The fencing token of %llu resource would be lost, and stale tokens would be accepted later.",
		"The fencing tokens of %llu resources would be lost, and stale tokens would be accepted later.",
		"If the tokens are no longer needed, run TRUNCATE %s first."
	},
	{
		"ddb_outbox",
		"%llu job that has not been pushed would be lost.",
		"%llu jobs that have not been pushed would be lost.",
		"Call ddb_outbox_send(). If the jobs are no longer needed, run TRUNCATE %s."
	},
	{
		"ddb_queue_done",
		"The record of the last job of %llu resource would be lost, and its work would be done again if the job came again.",
		"The records of the last jobs of %llu resources would be lost, and their work would be done again if the jobs came again.",
		"If none of these jobs can come again, run DELETE FROM %s first."
	},
};

static void
refuse_while_held(void)
{
	HoldCopy	held;
	const saved_hold *h = &held.hold;
	LeaseCopy	entry;
	MailboxSlot *slot;

	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		if (!SegmentReadHold(i, &held) || h->loss != LOSS_NONE ||
			held.database != MyDatabaseId || held.let_go)
			continue;
		/*
		 * A session that has ended holds nothing, even if the worker has not noticed the end yet.
		 */
		slot = &segment_slots[h->session.slot];
		if (h->ends_at == 0 && shared_read(&slot->words.generation) != h->session.generation)
			continue;
		if (!SegmentReadLease(h->lease_index, &entry) ||
			entry.lease.generation != h->lease_generation)
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("cannot drop extension \"%s\" while sessions of this database hold locks",
						EXTENSION),
				 h->ends_at == 0 ?
				 errdetail("Process %d holds lock \"%s\".", h->holder.pid,
						   Utf8ToMessage(entry.name)) :
				 errdetail("Lock \"%s\" is detached.", Utf8ToMessage(entry.name)),
				 errhint("Release the locks that the view ddb_locks lists, or end their sessions.")));
	}
}

/* The table is about to be dropped, so it is locked already. */
static uint64
count_rows(Oid relation)
{
	Relation	rel = table_open(relation, NoLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = CompatBeginScan(rel, snapshot);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	uint64		rows = 0;

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
		rows++;
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
	return rows;
}

static void
refuse_with_rows(Oid relation)
{
	const char *name = get_rel_name(relation);

	if (name == NULL || getExtensionOfObject(RelationRelationId, relation) !=
		get_extension_oid(EXTENSION, true))
		return;
	for (const Kept *table = kept; table < kept + lengthof(kept); table++)
	{
		const char *schema;
		uint64		rows;

		if (strcmp(name, table->table) != 0)
			continue;
		rows = count_rows(relation);
		if (rows == 0)
			continue;
		schema = get_namespace_name(get_rel_namespace(relation));
		ErrorsState(errmsg("cannot drop extension \"%s\" while table \"%s\" has rows",
						   EXTENSION, name),
					errdetail_plural(table->loss, table->losses, (unsigned long) rows,
									 (unsigned long long) rows),
					errhint(table->hint, quote_qualified_identifier(schema, name)));
	}
}

/* PostgreSQL drops a table before the extension to which the table belongs. */
void
DropCheck(Oid class_id, Oid object_id)
{
	if (class_id == RelationRelationId)
		refuse_with_rows(object_id);
	else if (segment != NULL && class_id == ExtensionRelationId &&
			 object_id == get_extension_oid(EXTENSION, true))
		refuse_while_held();
}
