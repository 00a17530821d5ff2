/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The background worker: the one process that talks to DynamoDB.
 *
 * It runs the lock manager on real events: the mailbox's bells (its latch),
 * replies (one descriptor, under which the HTTP pool keeps its sockets and its
 * timer) and the passing of time.
 *
 * It may be terminated alone, by an administrator or by its own failure.  Then
 * backends and shared memory live on, and so must their leases: the next worker
 * adopts them.  So SIGTERM is no shutdown.  The worker goes on serving until
 * nothing is held, since at a fast shutdown it is told at the same time as the
 * sessions whose locks it is to free; after a bounded time it leaves what
 * living sessions hold to its successor.  It always exits with 1: with 0 the
 * postmaster would not start it again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "libpq/pqsignal.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "shared/compat.h"
#include "shared/loss.h"
#include "shared/settings.h"
#include "shared/utf8.h"
#include "worker/journal.h"
#include "worker/worker.h"

#define MAX_REMEMBERED 10000
#define DRAIN_US INT64CONST(5000000)
#define DRAIN_REQUEST_US INT64CONST(2000000)
#define START_INTERVAL_MS 1000
#define RANDOM_STOCK 1024

lockmgr    *worker_lockmgr;

static uint8 random_stock[RANDOM_STOCK];
static size_t random_left = 0;

extern PGDLLEXPORT void ddblock_worker_main(Datum main_arg);

static int64 sooner(int64 a, int64 b);
static void slow_down_starts(void);
static void announce(void);
static void wait_for_place(void);
static void withdraw(int code, Datum arg);
static void name_owner(void);
static const char *default_name(void);
static void make_lockmgr(void);
static void reload(void);
static void publish_counts(void);
static void set_timeouts(void);
static int64 start_drain(int64 now);
static bool nothing_held(void);
static void wait_for_news(WaitEventSet *set, int64 until);
pg_noreturn static void leave(void);
static WaitEventSet *make_wait_set(void);
static void log_loss(void *arg, uint32 index, const lease *lease,
					 const char *name, size_t name_len, const dynamo_item *by);
static const char *why_lost(const lease *lease, const dynamo_item *by);
static void log_no_batches(void *arg, const dynamo_reply *reply);
static void stock_random(void);
static void fill_random(void *arg, void *bytes, size_t len);

void
ddblock_worker_main(Datum main_arg)
{
	WaitEventSet *set;
	MemoryContext turn;
	int64		drain_deadline = 0;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGINT, PG_SIG_IGN);	/* pg_cancel_backend: there is no statement */
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	slow_down_starts();
	name_owner();
	announce();
	wait_for_place();
	WorkerMailboxInit();
	WorkerCallInit();
	make_lockmgr();
	WorkerJournalInit(SegmentNow());
	WorkerAdopt(SegmentNow());
	set = make_wait_set();
	turn = AllocSetContextCreate(TopMemoryContext, "ddblock worker turn",
								 ALLOCSET_DEFAULT_SIZES);

	for (;;)
	{
		int64		now = SegmentNow();
		int64		wake;

		MemoryContextSwitchTo(turn);
		MemoryContextReset(turn);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
			reload();

		/* First of all: what is sent from now on, and was before, is repeated in time. */
		if (ShutdownRequestPending && drain_deadline == 0)
			drain_deadline = start_drain(now);

		WorkerSetClock(now);
		WorkerReadMailbox(now);
		WorkerRunCalls();
		now = SegmentNow();
		if (lockmgr_next_wake(worker_lockmgr) <= now)
			lockmgr_tick(worker_lockmgr, now);
		wake = WorkerTableTick(now);
		wake = sooner(wake, WorkerClockRun(now));
		wake = sooner(wake, WorkerKeepWarm(now));
		wake = sooner(wake, WorkerJournalRun(now));
		publish_counts();

		if (drain_deadline != 0)
		{
			if (now >= drain_deadline || nothing_held())
				leave();
			wake = Min(wake, drain_deadline);
		}
		stock_random();
		wait_for_news(set, Min(wake, lockmgr_next_wake(worker_lockmgr)));
	}
}

/* Min() evaluates what it returns a second time. */
static int64
sooner(int64 a, int64 b)
{
	return Min(a, b);
}

/* A worker that fails right at its start must not fail a hundred times a second. */
static void
slow_down_starts(void)
{
	TimestampTz now = GetCurrentTimestamp();

	if (!TimestampDifferenceExceeds(segment->last_worker_start, now, START_INTERVAL_MS) &&
		segment->last_worker_start != 0)
	{
		(void) WaitLatch(MyLatch, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 START_INTERVAL_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	segment->last_worker_start = GetCurrentTimestamp();
	pg_atomic_fetch_add_u32(&segment->worker_starts, 1);
}

/* Bells ring our latch from now on. */
static void
announce(void)
{
	before_shmem_exit(withdraw, (Datum) 0);
	pg_atomic_write_u32(&segment->worker_pid, MyProcPid);
	pg_atomic_write_u32(&segment->worker_procno, CompatMyProcNumber());
}

static void
withdraw(int code, Datum arg)
{
	pg_atomic_write_u32(&segment->worker_procno, PG_UINT32_MAX);
	pg_atomic_write_u32(&segment->worker_pid, 0);
}

/*
 * Nobody knows where DynamoDB is, so there is nothing to do but to say so.
 * What is wrong stands in the log once for each time it was looked up.
 */
static void
wait_for_place(void)
{
	while (!WorkerFindPlace())
	{
		while (!ConfigReloadPending)
		{
			WorkerRefuseRequests();
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1,
							 CompatWaitEvent("DdblockWorker"));
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
			if (ShutdownRequestPending)
				proc_exit(1);
		}
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/*
 * Nonces stand in the way of the calls that carry them, and OpenSSL's generator
 * is slow when it was not used lately: so there is always a stock, made when
 * the worker has nothing else to do.
 */
static void
stock_random(void)
{
	if (random_left >= RANDOM_STOCK / 2)
		return;
	if (!pg_strong_random(random_stock, RANDOM_STOCK))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	random_left = RANDOM_STOCK;
}

static void
fill_random(void *arg, void *bytes, size_t len)
{
	Assert(len <= RANDOM_STOCK / 2);
	if (random_left < len)
		stock_random();
	random_left -= len;
	memcpy(bytes, random_stock + random_left, len);
}

void
WorkerNewUuid(char uuid[UUID_SIZE])
{
	uint8		random[16];

	fill_random(NULL, random, sizeof(random));
	uuid_v4(random, uuid);
}

/*
 * Who we are in the table.  The incarnation belongs to the segment: what was
 * acquired under it is ours, whichever worker it was.
 */
static void
name_owner(void)
{
	if (segment->incarnation[0] != '\0')
		return;
	WorkerNewUuid(segment->incarnation);
	snprintf(segment->owner, sizeof(segment->owner), "%s/%s",
			 ddblock_owner_name[0] ? ddblock_owner_name : default_name(),
			 segment->incarnation);
}

/* With the host: Debian calls the first cluster of each machine "15/main". */
static const char *
default_name(void)
{
	char		host_name[256];

	if (gethostname(host_name, sizeof(host_name)) != 0)
		strlcpy(host_name, "postgres", sizeof(host_name));
	host_name[sizeof(host_name) - 1] = '\0';
	/* Cut: the incarnation that follows must fit into the owner's name. */
	return cluster_name[0] ? psprintf("%.*s@%s", NAMEDATALEN - 1, cluster_name, host_name) :
		pstrdup(host_name);
}

static void
make_lockmgr(void)
{
	lockmgr_config config = {
		.owner = segment->owner,
		.max_leases = segment->max_leases,
		.reserved_leases = Min(ddblock_superuser_reserved_leases, segment->max_leases - 1),
		.max_sessions = segment->max_sessions,
		.max_remembered = MAX_REMEMBERED,
		/* The other half is for renewals: nothing may hold them back. */
		.max_calls = ddblock_max_connections / 2,
		.request_timeout_us = (int64) ddblock_request_timeout * 1000,
		.retry_timeout_us = (int64) ddblock_retry_timeout * 1000,
	};
	lockmgr_host host = {
		.send = WorkerSend,
		.save = WorkerSave,
		.answer = WorkerAnswer,
		.waits = WorkerWaits,
		.watch = WorkerWatch,
		.lost = log_loss,
		.no_batches = log_no_batches,
		.random = fill_random,
	};

	worker_lockmgr = lockmgr_new(&config, &host);
	if (worker_lockmgr == NULL)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	WorkerSetClock(SegmentNow());
}

static void
reload(void)
{
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	WorkerCallReload();
	set_timeouts();
}

/* When draining, there is time for more than one attempt. */
static void
set_timeouts(void)
{
	int64		request_us = (int64) ddblock_request_timeout * 1000;

	if (ShutdownRequestPending)
		request_us = Min(request_us, DRAIN_REQUEST_US);
	lockmgr_set_timeouts(worker_lockmgr, request_us, (int64) ddblock_retry_timeout * 1000);
}

static void
publish_counts(void)
{
	lockmgr_counts counts;

	lockmgr_count(worker_lockmgr, &counts);
	pg_atomic_write_u32(&segment->leases_in_use, counts.leases);
	pg_atomic_write_u32(&segment->leases_held, counts.held);
	pg_atomic_write_u32(&segment->waiters, counts.waiters);
}

/* A request that gets no answer is to be repeated before the deadline. */
static int64
start_drain(int64 now)
{
	set_timeouts();
	WorkerCallHurry(DRAIN_REQUEST_US);
	return now + DRAIN_US;
}

static bool
nothing_held(void)
{
	return pg_atomic_read_u32(&segment->leases_in_use) == 0;
}

/* What could not be freed stays in the journal, for the next start. */
static void
leave(void)
{
	if (nothing_held())
		JournalRemove();
	proc_exit(1);
}

static WaitEventSet *
make_wait_set(void)
{
	WaitEventSet *set = CompatCreateWaitEventSet(3);

	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(set, WL_SOCKET_READABLE, WorkerCallFd(), NULL, NULL);
	return set;
}

static void
wait_for_news(WaitEventSet *set, int64 until)
{
	WaitEvent	events[2];
	long		timeout_ms = -1;
	int			count;

	if (until != PG_INT64_MAX)
	{
		int64		left = until - SegmentNow();

		timeout_ms = left <= 0 ? 0 : Min(left / 1000 + 1, INT_MAX);
	}
	count = WaitEventSetWait(set, timeout_ms, events, lengthof(events),
							 CompatWaitEvent("DdblockWorker"));
	for (int i = 0; i < count; i++)
	{
		if (events[i].events & WL_LATCH_SET)
			ResetLatch(MyLatch);
	}
}

static void
log_loss(void *arg, uint32 index, const lease *lease, const char *name,
		 size_t name_len, const dynamo_item *by)
{
	WorkerInterrupt(lease->session);
	LossTell(index, lease->session, lease->seq, name, name_len, why_lost(lease, by));
}

static const char *
why_lost(const lease *lease, const dynamo_item *by)
{
	int64		confirmed = lease->lease_end - lease->lease_ms * 1000;

	switch (lease->loss)
	{
		case LOSS_TAKEN:
			return psprintf("\"%s\" has taken it over",
							Utf8Quiet(by->owner, strlen(by->owner)));
		case LOSS_RELEASED:
			return "somebody else has released it";
		case LOSS_DELETED:
			return "its item was deleted";
		case LOSS_NONE:
		case LOSS_UNREACHABLE:
			break;
	}
	return psprintf("DynamoDB confirmed no renewal for %.1f s",
					(SegmentNow() - confirmed) / 1e6);
}

/*
 * The pid of a session that has ended may be no backend's.  No lock is needed to
 * see that, so none that a stopped process may have is waited for.
 */
void
WorkerInterrupt(lockmgr_session session)
{
	MailboxSlot *slot = &segment_slots[session.slot];

	if (pg_atomic_read_u32(&slot->generation) == session.generation &&
		GetPGProcByNumber(session.slot)->pid == slot->pid)
		(void) kill(slot->pid, LOSS_SIGNAL);
}

static void
log_no_batches(void *arg, const dynamo_reply *reply)
{
	ereport(LOG,
			(errmsg("DynamoDB refuses batches of renewals: %s: %s",
					Utf8Quiet(reply->type, strlen(reply->type)),
					Utf8Quiet(reply->message, strlen(reply->message))),
			 errdetail("Leases are renewed one by one from now on."),
			 errhint("Allow dynamodb:PartiQLUpdate, and restart the worker.")));
}
