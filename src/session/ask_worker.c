/*-------------------------------------------------------------------------
 *
 * ask_worker.c
 *	  A session's side of the mailbox: ask the worker, wait for its answer.
 *
 * A backend uses the slot of its process number, so slots are never searched for
 * and never run out.  The protocol between slot and worker, with its races, is in
 * lock/mailbox.c; here are the backend's latch, interrupts and errors.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/pmsignal.h"
#include "utils/snapmgr.h"

#include "session/session.h"

/* How long a session waits for a worker to start. */
#define WORKER_PATIENCE_US (5 * USECS_PER_SEC)

/* The longest sleep in wait_for_answer(): it must notice by itself if no worker runs. */
#define TURN_US USECS_PER_SEC

static lockmgr_session me = {0, 0};

MailboxSlot *
MailboxMySlot(void)
{
	return &segment_slots[me.slot];
}

/*
 * At exit, gives up the slot.  The transaction has ended before, in a before_shmem_exit callback.
 * The process still has its latch and its process number.
 */
static void
detach(int code, Datum arg)
{
	mailbox_detach(&segment_mailbox, me);
	me.generation = 0;
}

void
MailboxAttach(void)
{
	MailboxSlot *slot;

	me.slot = CompatMyProcNumber();
	if (me.slot >= segment->max_sessions)
		elog(ERROR, "process number %u has no ddblock slot", me.slot);

	slot = MailboxMySlot();
	slot->pid = MyProcPid;
	slot->database_id = MyDatabaseId;
	Utf8Copy(slot->database, NAMEDATALEN, get_database_name(MyDatabaseId));
	Utf8Copy(slot->user, NAMEDATALEN, GetUserNameFromId(GetSessionUserId(), true));
	shared_write(&slot->wait.since, 0);
	on_shmem_exit(detach, (Datum) 0);
	me = mailbox_attach(&segment_mailbox, me.slot);
	Assert(me.generation % 2 == 1);
}

lockmgr_session
MailboxSession(void)
{
	return me;
}

static int64 stop_at = PG_INT64_MAX;

void
MailboxStopAt(int64 moment)
{
	stop_at = moment;
}

void
MailboxSleep(MailboxPause what, int64 us)
{
	int64		most = stop_at - SegmentNow();
	static const char *const names[] = {
		"DdblockLock", "DdblockCall", "DdblockTable", "DdblockQueue"
	};
	static uint32 events[lengthof(names)] = {0};

	if (most <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_OPERATOR_INTERVENTION),
				 errmsg("the time that statement_timeout leaves is nearly up")));
	if (events[what] == 0)
		events[what] = CompatWaitEvent(names[what]);
	InvalidateCatalogSnapshotConditionally();	/* must not wait with a snapshot: see await.c */
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Min((Max(Min(us, most), 0) + 999) / 1000, INT_MAX), events[what]);
	ResetLatch(MyLatch);
}

/*
 * Checks that a worker runs; without one for WORKER_PATIENCE_US, raises.  *missing_since: since when
 * none runs, or 0.  Returns when to check again.
 */
static int64
check_worker(const MailboxRequest *request, int64 now, int64 *missing_since)
{
	if (shared_read(&segment->worker_procno) != PG_UINT32_MAX)
	{
		*missing_since = 0;
		return PG_INT64_MAX;
	}
	if (*missing_since == 0)
		*missing_since = now;
	/*
	 * Up to version 15, the postmaster can miss the end of a child for up to a minute: a signal that
	 * comes just before select() does not end it (ServerLoop() in postmaster.c).  So remind it.
	 */
	if (*missing_since < now)
		SendPostmasterSignal(PMSIGNAL_BACKGROUND_WORKER_CHANGE);
	if (now - *missing_since >= WORKER_PATIENCE_US)
		ErrorsNoWorker(dynamo_is_queue_write(request->op));
	return *missing_since + WORKER_PATIENCE_US;
}

/* Waits for the answer.  Returns false in the cases in which MailboxCall() returns NULL. */
static bool
wait_for_answer(const MailboxRequest *request, Waiting *waiting)
{
	int64		missing_since = 0;
	int64		started = SegmentNow();

	for (;;)
	{
		int64		now;
		int64		wake;

		if (mailbox_accept(&segment_mailbox, me, request->seq))
			return true;
		CHECK_FOR_INTERRUPTS();
		/*
		 * The lease may be lost while the session waits for its renewal.  The worker answers so,
		 * if it can.  If the worker is stopped, nobody answers: then InterruptBeginDefer() makes
		 * interrupt.c set this process's latch at the deadline.
		 */
		if (request->kind == MAILBOX_RENEW &&
			Min((int64) shared_read(&segment_leases[request->ask.lease_index].words.valid_until),
				request->ask.valid_until) <= SegmentNow())
			return false;

		now = SegmentNow();
		wake = check_worker(request, now, &missing_since);
		wake = Min(wake, now + TURN_US);
		if (waiting == NULL && !request->repeat)
			WaitingTellTrouble(started, now, NULL);
		if (waiting != NULL && waiting->gives_up && now >= waiting->deadline)
			return false;
		if (waiting != NULL)
		{
			int64		turn = WaitingTurn(waiting, MailboxMySlot(), request->seq, now);

			if (waiting->deadlock.goes_first)
				return false;
			wake = Min(wake, turn);
		}
		MailboxSleep(request->kind == MAILBOX_ACQUIRE ? PAUSE_LOCK : PAUSE_CALL, wake - now);
	}
}

const MailboxAnswer *
MailboxCall(MailboxRequest *request, const char *name, const void *data, Waiting *waiting)
{
	MailboxSlot *slot = MailboxMySlot();
	volatile bool answered = false;

	request->posted = SegmentNow();
	request->seq = mailbox_begin_post(&segment_mailbox, me);
	slot->request = *request;
	if (request->name_len > 0)
		memcpy(slot->text, name, request->name_len);
	if (request->data_len > 0)
		memcpy(slot->text + request->name_len, data, request->data_len);
	mailbox_end_post(&segment_mailbox, me);

	PG_TRY();
	{
		answered = wait_for_answer(request, waiting);
	}
	PG_FINALLY();
	{
		if (!answered)
			mailbox_cancel(&segment_mailbox, me, request->seq);
		if (waiting != NULL)
			WaitingEnd(waiting);
	}
	PG_END_TRY();
	return answered ? &slot->answer : NULL;
}

void
MailboxLetGo(uint32 hold_index, uint64 seq)
{
	mailbox_let_go(&segment_mailbox, me, seq, hold_index);
}
