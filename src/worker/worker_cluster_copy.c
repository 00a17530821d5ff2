/*-------------------------------------------------------------------------
 *
 * worker_cluster_copy.c
 *	  Looks for a copy of this cluster that uses the same lock table.
 *
 * Example: somebody starts a base backup beside the original, with the original's settings.  This
 * copy stands for the same leaderships, and does the same jobs under the same locks, each for its
 * own data.  Items show it, because a copy has the original's system identifier.
 *
 * Standbys have the same identifier, too, but are no copies in this sense.  A server in recovery
 * neither writes the identifier nor looks for it.
 *
 * After a crash, or when a volume has moved, items show an owner with our identifier that is dead:
 * this cluster itself, as it was before.  So only an owner that is seen to live counts.
 *
 * A copy is reported, in the log and in ddb_status.  Nothing is refused because of it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"

#include "worker/worker.h"

void
WorkerCopySystem(char system[DYNAMO_SYSTEM_SIZE])
{
	system[0] = '\0';
	if (!RecoveryInProgress())
		snprintf(system, DYNAMO_SYSTEM_SIZE, UINT64_FORMAT, GetSystemIdentifier());
}

/* Logs the copy, unless the last entry was about the same owner. */
void
WorkerCopyLives(void *arg, const dynamo_item *item)
{
	static char logged[DYNAMO_OWNER_SIZE] = "";
	char		ours[DYNAMO_SYSTEM_SIZE];

	WorkerCopySystem(ours);
	if (ours[0] == '\0' || strcmp(item->holder.system, ours) != 0)
		return;
	WorkerStatusCopy(item->owner,
					 SegmentNow() + LOCKMGR_DEAD_AFTER(item->lease_ms * 1000));
	if (strcmp(logged, item->owner) == 0)
		return;
	strlcpy(logged, item->owner, sizeof(logged));
	ereport(WARNING,
			(errmsg("a copy of this cluster uses lock table \"%s\", too: \"%s\"", ddblock_lock_table,
					Utf8Quiet(item->owner)),
			 errdetail("Both have system identifier %s, and neither is a standby, so both compete "
					   "for the same locks and leaderships, each for its own data.", ours),
			 errhint("In the one that is the copy, set \"ddblock.leaderships\" to '', and "
					 "\"ddblock.lock_table\" or \"ddblock.endpoint_url\" to another place.")));
}
