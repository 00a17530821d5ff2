/*-------------------------------------------------------------------------
 *
 * mailbox.c
 *	  A session's side of the mailbox: ask the worker, wait for its answer.
 *
 * A process's slot is the one of its process number, so there is nothing to
 * search and nothing to run out of.  Its generation is odd while a session
 * uses it; request numbers rise over the slot's whole life, and a request bears
 * the generation that posted it, so that nothing meant for one session is ever
 * taken for another's: neither an answer, nor a request that its session left
 * behind when it ended.
 *
 * Between the grant and the session's own notes nothing may get lost: the
 * worker's answer is final for it, and the session may be cancelled in that
 * very moment.  Each side says its own word before it looks at the other's: if
 * the answer is there, the session lets go of what it was granted; if the
 * cancellation is, the worker does (WorkerAnswer).  Nobody waits: see segment.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"

#include "session/mailbox.h"
#include "shared/compat.h"
#include "shared/errors.h"
#include "shared/utf8.h"

/* How long a session waits for a worker to come (back). */
#define WORKER_PATIENCE_US (5 * USECS_PER_SEC)

/* Longest sleep between two looks around. */
#define TURN_US USECS_PER_SEC

static lockmgr_session me = {0, 0};

static void fill_slot(MailboxSlot *slot);
static void detach(int code, Datum arg);
static void post(MailboxRequest *request);
static void cancel(uint64 seq);
static void wait_for_answer(const MailboxRequest *request, Waiting *waiting,
							MailboxAnswer *answer);
static bool take_answer(uint64 seq, MailboxAnswer *answer);
static bool is_lost(const MailboxRequest *request, MailboxAnswer *answer);
static int64 worker_missing_since(int64 since, int64 now);
static uint32 wait_event(const MailboxRequest *request);

void
MailboxAttach(void)
{
	me.slot = CompatMyProcNumber();
	if (me.slot >= segment->max_sessions)
		elog(ERROR, "process number %u has no ddblock slot", me.slot);

	fill_slot(MailboxMySlot());
	on_shmem_exit(detach, (Datum) 0);
	me.generation = pg_atomic_add_fetch_u32(&MailboxMySlot()->generation, 1);
	Assert(me.generation % 2 == 1);
}

lockmgr_session
MailboxSession(void)
{
	return me;
}

MailboxSlot *
MailboxMySlot(void)
{
	return &segment_slots[me.slot];
}

static void
fill_slot(MailboxSlot *slot)
{
	char	   *database = get_database_name(MyDatabaseId);
	char	   *user = GetUserNameFromId(GetSessionUserId(), true);
	char		database_utf8[NAMEDATALEN];
	char		user_utf8[NAMEDATALEN];

	Utf8Copy(database_utf8, NAMEDATALEN, database ? database : "");
	Utf8Copy(user_utf8, NAMEDATALEN, user ? user : "");

	slot->pid = MyProcPid;
	memcpy(slot->database, database_utf8, NAMEDATALEN);
	memcpy(slot->user, user_utf8, NAMEDATALEN);
}

/*
 * The session ends, in whatever way.  The transaction is over (that happened
 * in before_shmem_exit), and our latch and number are still ours.
 */
static void
detach(int code, Datum arg)
{
	pg_atomic_fetch_add_u32(&MailboxMySlot()->generation, 1);
	me.generation = 0;
	SegmentRing(me.slot);
}

void
MailboxCall(MailboxRequest *request, Waiting *waiting, MailboxAnswer *answer)
{
	post(request);
	PG_TRY();
	{
		wait_for_answer(request, waiting, answer);
	}
	PG_CATCH();
	{
		cancel(request->seq);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

static void
post(MailboxRequest *request)
{
	MailboxSlot *slot = MailboxMySlot();

	request->seq = slot->request.seq + 1;
	request->generation = me.generation;
	SegmentBeginChange(&slot->changes);
	slot->request = *request;
	SegmentEndChange(&slot->changes);

	SegmentRing(me.slot);
}

/* No acknowledgement: the next request may follow at once. */
static void
cancel(uint64 seq)
{
	MailboxSlot *slot = MailboxMySlot();
	const MailboxAnswer *answer = &slot->answer;

	pg_atomic_write_u64(&slot->cancelled_seq, seq);
	pg_memory_barrier();
	if (pg_atomic_read_u64(&slot->answer_seq) == seq)
	{
		pg_read_barrier();
		if (answer->result == LOCKMGR_GRANTED)
			MailboxLetGo(answer->lease_index, seq);
	}
	SegmentRing(me.slot);
}

void
MailboxLetGo(uint32 lease_index, uint64 seq)
{
	SegmentLetGo(lease_index, SegmentMark(me, seq));
	pg_atomic_write_u32(&MailboxMySlot()->let_go, 1);
	SegmentRing(me.slot);
}

static void
wait_for_answer(const MailboxRequest *request, Waiting *waiting,
				MailboxAnswer *answer)
{
	uint32		event = wait_event(request);
	int64		missing_since = 0;
	int64		started = SegmentNow();

	for (;;)
	{
		int64		now;
		int64		wake;

		ResetLatch(MyLatch);
		if (take_answer(request->seq, answer))
			return;
		CHECK_FOR_INTERRUPTS();
		if (is_lost(request, answer))
		{
			cancel(request->seq);
			return;
		}

		now = SegmentNow();
		wake = now + TURN_US;
		missing_since = worker_missing_since(missing_since, now);
		if (missing_since != 0)
		{
			if (now - missing_since >= WORKER_PATIENCE_US)
				ErrorsNoWorker();
			wake = Min(wake, missing_since + WORKER_PATIENCE_US);
		}
		if (waiting == NULL && !request->repeat)
			WaitingTellTrouble(started, now);
		if (waiting != NULL)
			wake = Min(wake, WaitingTurn(waiting, MailboxMySlot(), request->seq, now));

		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Max(wake - now + 999, 0) / 1000, event);
	}
}

static bool
take_answer(uint64 seq, MailboxAnswer *answer)
{
	MailboxSlot *slot = MailboxMySlot();

	if (pg_atomic_read_u64(&slot->answer_seq) != seq)
		return false;
	pg_read_barrier();
	*answer = slot->answer;
	return true;
}

/*
 * A lease that is to be renewed may be lost meanwhile.  The worker says so, if
 * it can; if it is stopped, InterruptBeginDefer() has our latch set at the deadline.
 */
static bool
is_lost(const MailboxRequest *request, MailboxAnswer *answer)
{
	if (request->kind != MAILBOX_RENEW ||
		(int64) pg_atomic_read_u64(&segment_leases[request->lease_index].valid_until) >
		SegmentNow())
		return false;
	memset(answer, 0, offsetof(MailboxAnswer, data));
	answer->result = LOCKMGR_LOST;
	answer->loss = LOSS_UNREACHABLE;
	return true;
}

/* 0 if there is a worker. */
static int64
worker_missing_since(int64 since, int64 now)
{
	if (pg_atomic_read_u32(&segment->worker_procno) != PG_UINT32_MAX)
		return 0;
	return since != 0 ? since : now;
}

static uint32
wait_event(const MailboxRequest *request)
{
	static uint32 lock_event = 0;
	static uint32 call_event = 0;

	if (lock_event == 0)
	{
		lock_event = CompatWaitEvent("DdblockLock");
		call_event = CompatWaitEvent("DdblockCall");
	}
	return request->kind == MAILBOX_ACQUIRE ? lock_event : call_event;
}
