/*-------------------------------------------------------------------------
 *
 * queue_require.c
 *	  What a session does with the jobs that it has claimed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/ipc.h"

#include "session/session.h"

/* How long QueueOwnSettle() waits at most, and between two looks. */
#define SETTLE_US USECS_PER_SEC
#define SETTLE_TURN_US INT64CONST(2000)

/* Has the worker finished all jobs that this session has completed? */
static bool
is_settled(void)
{
	lockmgr_session session = MailboxSession();

	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		FinishEntry *entry = &segment_finishes[i];

		if (queue_place_is_ready(&entry->place) && entry->session.slot == session.slot &&
			entry->session.generation == session.generation)
			return false;
	}
	return true;
}

void
QueueOwnSettle(void)
{
	int64		until = SegmentNow() + SETTLE_US;

	while (queue_claim_passed && !is_settled() && SegmentNow() < until)
		TableSleep(SETTLE_TURN_US);
	queue_claim_passed = false;
}

/* At exit, lets the worker finish the completed jobs: the end of the session ends its holds. */
static void
at_exit(int code, Datum arg)
{
	QueueOwnSettle();
}

QueueClaim *
QueueOwnRequire(const QueueName *name, int64 number)
{
	QueueClaim *claim = QueueClaimFind(name->lock.utf8);
	static bool attached = false;

	if (!attached)
		before_shmem_exit(at_exit, (Datum) 0);
	attached = true;
	if (claim != NULL && QueueClaimIsVoid(claim) && claim->is.finish_level == 0)
	{
		QueueClaimForget(claim);
		claim = NULL;
	}
	if (claim == NULL || claim->is.number != number)
		ErrorsState(errmsg("this session has not claimed job %lld of resource \"%s\" in queue "
						   "\"%s\"", (long long) number, Utf8ToMessage(name->resource),
						   name->queue),
					claim != NULL ?
					errdetail("It has claimed job %lld of that resource.",
							  (long long) claim->is.number) :
					errdetail("It never had it, or has finished it or given it back."),
					errhint("ddb_queue_claim() claims jobs."));
	if (claim->is.finish_level > 0)
		ErrorsState(errmsg("this transaction has completed job %lld of resource \"%s\" in queue "
						   "\"%s\" already", (long long) number, Utf8ToMessage(name->resource),
						   name->queue));
	(void) SessionRequire(&name->lock);
	return claim;
}

/* Waits and may fail, unlike QueueClaimEnd().  So it is not for the end of a transaction. */
void
QueueOwnRelease(QueueClaim *claim, const LockName *lock)
{
	bool		is_valid = !QueueClaimIsVoid(claim);

	QueueClaimForget(claim);
	if (is_valid)
		(void) SessionRelease(lock, true, false);
}
