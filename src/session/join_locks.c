/*-------------------------------------------------------------------------
 *
 * join_locks.c
 *	  The standing order to join locks, ddblock.join_locks: whether it is carried out.
 *
 * The setting is for tools that open several sessions by themselves, and reset them: nobody can
 * call ddb_lock_join() there.  Instead, each transaction begins by joining the locks that the
 * session does not hold (statement.c), and the commit guard checks that the session holds them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "replication/walsender.h"

#include "session/session.h"

static LocalTransactionId excused = InvalidLocalTransactionId;

const join_entry *
OrderFindMissing(void)
{
	static join_entry entry;
	const char *at = ddblock_join_locks;
	const char *wrong;

	/* Parallel workers and replication sessions cannot hold locks. */
	if (at[0] == '\0' || IsParallelWorker() || am_walsender || excused == CompatMyLxid())
		return NULL;
	while (join_list_next(&at, &entry, &wrong))
	{
		const HeldLock *held = HeldFind(entry.name);

		if (held == NULL || held->hold_index == LOCKMGR_NO_HOLD ||
			held->token != entry.token || !HeldIsValid(held))
			return &entry;
	}
	return NULL;
}

void
OrderExcuseTransaction(void)
{
	excused = CompatMyLxid();
}
