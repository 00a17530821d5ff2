/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The background worker: the one process that talks to DynamoDB.
 *
 * The worker passes three kinds of events to the lock manager:
 *
 *	 - requests of sessions, which set the worker's latch;
 *	 - replies of DynamoDB, which make one descriptor readable (the HTTP pool's epoll instance);
 *	 - timers that expire.
 *
 * The worker may end alone, by pg_terminate_backend() or by an error, while
 * backends and shared memory live on.  The next worker adopts their leases.  So
 * SIGTERM does not mean that the server shuts down.  But at a fast shutdown the worker gets
 * SIGTERM at the same moment as the sessions whose locks it must release.  So after SIGTERM the
 * worker drains: it serves until no lease is in use (detached ones aside) and no completed job is
 * left to finish, but for DRAIN_US at most.  It leaves the leases of living sessions to the next
 * worker.  The worker always exits with 1: after 0 the postmaster would not start it again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "worker/worker.h"

#define DRAIN_US INT64CONST(5000000)
#define START_PAUSE_US INT64CONST(1000000)
#define START_PAUSE_MAX_US INT64CONST(60000000)

static uint32 wait_event;

extern PGDLLEXPORT void ddblock_worker_main(Datum main_arg);

/* Min() for arguments that are calls with effects, which a macro would evaluate twice. */
static int64
sooner(int64 a, int64 b)
{
	return Min(a, b);
}

/*
 * Waits if the last worker has started a short time ago.  If every start fails, the pauses between
 * starts grow: 1 s, 1.5 s, 2.25 s, and so on up to 1 min, because each start leaves two entries in
 * the log.  The pauses grow slowly, because nobody renews the leases that are still held.
 *
 * A pause ends early at a reload, which may have mended the reason, and at a shutdown, when
 * sessions want their locks released.
 */
static void
slow_down_starts(void)
{
	int64		now;
	int64		left;

	while ((now = SegmentNow(), left = segment->last_worker_start + segment->start_pause - now) > 0 &&
		   !ShutdownRequestPending)
	{
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			segment->start_pause = 0;
			break;
		}
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 left / 1000 + 1, wait_event);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	segment->last_worker_start = now;
	segment->start_pause = Min(Max(segment->start_pause / 2 * 3, START_PAUSE_US), START_PAUSE_MAX_US);
	(void) shared_add(&segment->worker_starts, 1);
}

static void
withdraw(int code, Datum arg)
{
	shared_write(&segment->worker_procno, PG_UINT32_MAX);
	shared_write(&segment->worker_pid, 0);
}

/*
 * Waits until the place of the lock table is known.  While something is missing, such as the
 * Region, the worker refuses every request, until a reload or instance metadata provides it.
 */
static void
wait_for_place(void)
{
	int64		wake;
	bool		passes;

	while (!WorkerFindPlace(SegmentNow(), &wake))
	{
		long		left_ms = wake == PG_INT64_MAX ? -1 :
			Max(wake - SegmentNow(), 0) / 1000 + 1;

		if (WorkerPlaceProblem(&passes)[0] != '\0')
			WorkerRefuseRequests();
		(void) WaitLatchOrSocket(MyLatch, WL_LATCH_SET | WL_SOCKET_READABLE | WL_EXIT_ON_PM_DEATH |
								 (left_ms < 0 ? 0 : WL_TIMEOUT),
								 WorkerFetchFd(), left_ms, wait_event);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending)
			proc_exit(1);
		if (!ConfigReloadPending)
			continue;
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		WorkerFetchReload();
		WorkerPlaceReload();
	}
}

/*
 * Makes the ownerName of this cluster, unless an earlier worker has made it: the leases that this
 * worker adopts have the ownerName that is in the segment.
 */
static void
name_owner(void)
{
	const char *name = ddblock_owner_name;
	char		host_name[256];

	if (segment->incarnation[0] != '\0')
		return;
	WorkerNewUuid(segment->incarnation);
	if (name[0] == '\0')
	{
		if (gethostname(host_name, sizeof(host_name)) != 0)
			strlcpy(host_name, "postgres", sizeof(host_name));
		host_name[sizeof(host_name) - 1] = '\0';

		/*
		 * cluster_name alone is not unique: Debian's first cluster is always "15/main".  A long
		 * cluster_name is cut, so that the incarnation fits in behind the name.
		 */
		name = cluster_name[0] == '\0' ? host_name :
			psprintf("%.*s@%s", NAMEDATALEN - 1, cluster_name, host_name);
	}
	snprintf(segment->owner, sizeof(segment->owner), "%s/%s", name, segment->incarnation);
}

/*
 * Looks at each reply before the call's own done function does.  The Date of the reply may have
 * moved the bounds of DynamoDB's time, and the reply may tell what kind of table the lock table is.
 */
static void
see_reply(const WorkerCall *call, const dynamo_reply *reply)
{
	WorkerSetClock(SegmentNow());
	WorkerStatusReply(reply);
	WorkerTableCheckSee(call, reply);
}

static void
reload(void)
{
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	WorkerReadTableSettings();
	WorkerFetchReload();
	WorkerFindCredentials();
	WorkerCheckExposure();
	WorkerReloadPool(worker_pool);
	WorkerSetTakeover();
	WorkerSetTimeouts();
}

/* Returns what the loop waits for. */
static WaitEventSet *
start(void)
{
	WaitEventSet *set;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGINT, PG_SIG_IGN);	/* pg_cancel_backend() has no statement to cancel */
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	wait_event = CompatWaitEvent("DdblockWorker");
	slow_down_starts();
	name_owner();
	WorkerStatusInit();

	WorkerClockInit();
	WorkerFetchInit();

	/* From now on a ring sets our latch. */
	before_shmem_exit(withdraw, (Datum) 0);
	shared_write(&segment->worker_pid, MyProcPid);
	shared_write(&segment->worker_procno, CompatMyProcNumber());

	wait_for_place();
	WorkerMailboxInit();
	WorkerQueueInit();
	WorkerFinishInit();
	WorkerReadTableSettings();
	WorkerTableCheckInit();
	WorkerCallInit(see_reply);
	WorkerLockmgrInit();
	WorkerLeadershipsInit();
	WorkerJournalInit(SegmentNow());
	WorkerAdopt(SegmentNow());

	set = CompatCreateWaitEventSet(4);
	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(set, WL_SOCKET_READABLE, WorkerCallFd(), NULL, NULL);
	AddWaitEventToSet(set, WL_SOCKET_READABLE, WorkerFetchFd(), NULL, NULL);
	return set;
}

static void
wait_for_news(WaitEventSet *set, int64 until)
{
	WaitEvent	event;
	long		timeout_ms = -1;

	if (until != PG_INT64_MAX)
	{
		int64		left = until - SegmentNow();

		timeout_ms = left <= 0 ? 0 : Min(left / 1000 + 1, INT_MAX);
	}
	(void) WaitEventSetWait(set, timeout_ms, &event, 1, wait_event);
	ResetLatch(MyLatch);
}

void
ddblock_worker_main(Datum main_arg)
{
	WaitEventSet *set = start();
	MemoryContext turn = AllocSetContextCreate(TopMemoryContext, "ddblock worker turn",
											   ALLOCSET_DEFAULT_SIZES);
	int64		drain_deadline = 0;

	for (;;)
	{
		int64		now = SegmentNow();
		int64		wake;

		MemoryContextSwitchTo(turn);
		MemoryContextReset(turn);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
			reload();

		/* Draining begins before this turn sends anything, because it shortens the time-outs. */
		if (ShutdownRequestPending && drain_deadline == 0)
		{
			drain_deadline = now + DRAIN_US;
			WorkerSetTimeouts();
			/* A call that is in flight already gets no longer than a new one. */
			http_pool_hurry(worker_pool, WORKER_DRAIN_REQUEST_US / 1000);
		}

		WorkerSetClock(now);
		WorkerReadMailbox(now);
		wake = WorkerRenewCredentials(now);
		WorkerRunCalls();
		now = SegmentNow();
		if (lockmgr_next_wake(worker_lockmgr) <= now)
			lockmgr_tick(worker_lockmgr, now);
		wake = sooner(wake, WorkerSettleParked(now));
		wake = sooner(wake, WorkerLeadershipsRun(now));
		wake = sooner(wake, WorkerTableCheckRun(now));
		wake = sooner(wake, WorkerFinishRun(now));
		wake = sooner(wake, WorkerKeepWarm(now));
		wake = sooner(wake, WorkerJournalRun(now));
		WorkerPublishCounts();
		WorkerPublishStatus();
		WorkerStockRandom();
		segment->start_pause = START_PAUSE_US;

		if (drain_deadline != 0)
		{
			/* The worker does not wait for detached holds to end. */
			bool		nothing_held = shared_read(&segment->leases_in_use) <=
				shared_read(&segment->leases_detached);

			if (now >= drain_deadline || (nothing_held && WorkerFinishIdle()))
			{
				/* If leases are left, the journal stays: the server's next start releases them. */
				if (nothing_held)
					JournalRemove();
				proc_exit(1);
			}
			wake = Min(wake, drain_deadline);
		}
		wait_for_news(set, Min(wake, lockmgr_next_wake(worker_lockmgr)));
	}
}
