/*-------------------------------------------------------------------------
 *
 * interrupt.c
 *	  Interrupts the session when it has lost a lease.
 *
 * Two things make it look at its leases: a signal from the worker, which knows
 * of losses before the deadline (a take-over, a deleted item) and of deadlines
 * that move up (a shorter lease), and a timer of its own for the earliest
 * deadline, since the worker may be stopped or dead.
 * The timer runs on the clock of leases, so that no change of the wall clock
 * delays it (as it would PostgreSQL's timeouts, which an error also disables).
 * Both arrive as SIGUSR2, which backends do not use otherwise.
 *
 * Cancelling does nothing to a session that sits idle in a transaction: its row
 * locks would block the new holder.  So that one is terminated.  The statement
 * may also end, and leave its transaction idle, just when it is cancelled;
 * hence the second look, and all later ones as long as the transaction lasts.
 * A statement that waits for its client cannot be cancelled: after a while it
 * counts as idle.
 *
 * While interrupts are held, nothing is done: a transaction that commits waits
 * for synchronous standbys so, and a cancellation would end that wait, and
 * acknowledge a commit that a failover can undo.  Before that, but after the
 * commit guard, COMMIT may wait for locks (PreCommit_Notify): it is cancelled
 * there whatever ddblock.on_lease_lost says, because the guard looks no more.
 *
 * The handler runs at any moment.  It reads atomics and the list of notes
 * (which is left alone while it changes), and sets flags.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "access/xact.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"

#include "session/guard.h"
#include "session/held.h"
#include "session/interrupt.h"
#include "shared/compat.h"
#include "shared/loss.h"
#include "shared/settings.h"

#define LOOK_AGAIN_US USECS_PER_SEC
#define HELD_AGAIN_US INT64CONST(100000)
#define CANCELS_MAX 5

static timer_t timer;
static bool attached = false;
static volatile sig_atomic_t held_changes = 0;
static volatile sig_atomic_t look_is_due = 0;

/* The transaction in which the last loss was seen. */
static LocalTransactionId lost_in = InvalidLocalTransactionId;
static int	cancels;			/* since then */
static volatile sig_atomic_t loss_to_tell = 0;

static void handle_signal(SIGNAL_ARGS);
static void look(void);
static bool look_at_leases(int64 now, int64 *next);
static void note_loss(void);
static bool in_transaction_of_loss(void);
static void interrupt(void);
static void set_timer(int64 moment);

void
InterruptAttach(void)
{
	struct sigevent event = {0};

	if (attached)
		return;
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = LOSS_SIGNAL;
	pqsignal(LOSS_SIGNAL, handle_signal);
	if (timer_create(CLOCK_BOOTTIME, &event, &timer) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not create a timer for leases: %m")));
	attached = true;
}

void
InterruptArm(void)
{
	InterruptHold();
	look_is_due = 1;
	InterruptResume();
}

void
InterruptDefer(HeldLock *held)
{
	InterruptHold();
	held->deferred = true;
	look_is_due = 1;
	InterruptResume();
}

void
InterruptDeferred(HeldLock *held)
{
	int64		now = SegmentNow();
	int64		next;

	InterruptHold();
	held->deferred = false;
	if (!held->seen_lost && !HeldIsValid(held))
	{
		held->seen_lost = true;
		note_loss();
	}
	if (look_at_leases(now, &next))
	{
		note_loss();
		look_is_due = 1;
	}
	set_timer(held->seen_lost ? Min(next, now + LOOK_AGAIN_US) : next);
	InterruptResume();
}

const HeldLock *
InterruptCause(void)
{
	dlist_iter	iter;

	if (lost_in == InvalidLocalTransactionId || lost_in != CompatMyLxid())
		return NULL;
	dlist_foreach(iter, HeldLocks())
	{
		HeldLock   *held = dlist_container(HeldLock, node, iter.cur);

		if (held->seen_lost)
			return held;
	}
	return NULL;
}

bool
InterruptTakeLoss(void)
{
	if (!loss_to_tell)
		return false;
	loss_to_tell = 0;
	return true;
}

void
InterruptHold(void)
{
	held_changes = 1;
	pg_compiler_barrier();
}

void
InterruptResume(void)
{
	pg_compiler_barrier();
	held_changes = 0;

	/* Whatever comes from now on, the handler does. */
	while (look_is_due && !held_changes)
	{
		held_changes = 1;
		look_is_due = 0;
		look();
		held_changes = 0;
	}
}

static void
handle_signal(SIGNAL_ARGS)
{
	int			save_errno = errno;

	if (held_changes)
		look_is_due = 1;
	else
		look();
	errno = save_errno;
}

static void
look(void)
{
	int64		next;
	int64		now = SegmentNow();

	if (proc_exit_inprogress || MyProc == NULL)
		return;
	if (InterruptHoldoffCount > 0 || CritSectionCount > 0)
	{
		set_timer(now + HELD_AGAIN_US);
		return;
	}
	if (look_at_leases(now, &next))
		note_loss();
	else if (!in_transaction_of_loss())
	{
		set_timer(next);
		return;
	}
	interrupt();
	if (in_transaction_of_loss())
		next = Min(next, now + LOOK_AGAIN_US);
	set_timer(next);
}

/* Is one lost that was not at the last look?  Also: the earliest deadline. */
static bool
look_at_leases(int64 now, int64 *next)
{
	dlist_iter	iter;
	bool		lost = false;

	*next = PG_INT64_MAX;
	dlist_foreach(iter, HeldLocks())
	{
		HeldLock   *held = dlist_container(HeldLock, node, iter.cur);
		int64		moment;

		if (held->lease_index == LOCKMGR_NO_LEASE)
			continue;
		moment = HeldValidUntil(held);
		if (moment > now)
		{
			held->seen_lost = false;
			*next = Min(*next, moment);
		}
		else
		{
			HeldNoteLoss(held);
			if (held->deferred)
				SetLatch(MyLatch);	/* the lock function is to look, too */
			else if (!held->seen_lost)
				lost = held->seen_lost = true;
		}
	}
	return lost;
}

static void
note_loss(void)
{
	lost_in = CompatMyLxid();
	cancels = 0;
	loss_to_tell = 1;
}

/*
 * One that has failed already holds no row locks; but a failed subtransaction
 * leaves those of the transaction around it.
 */
static bool
in_transaction_of_loss(void)
{
	return lost_in != InvalidLocalTransactionId && CompatMyLxid() == lost_in &&
		!(IsAbortedTransactionBlockState() && GetCurrentTransactionNestLevel() == 1);
}

static void
interrupt(void)
{
	/* Between commands there is no query string; other processes have none. */
	bool		running = debug_query_string != NULL || MyBackendType != B_BACKEND;

	switch (ddblock_on_lease_lost)
	{
		case ON_LEASE_LOST_NONE:
			if (!GuardIsPassed())
				return;
			QueryCancelPending = true;
			break;
		case ON_LEASE_LOST_CANCEL:
			if ((running || GuardIsPassed()) && cancels++ < CANCELS_MAX)
				QueryCancelPending = true;
			else if (in_transaction_of_loss())
				ProcDiePending = true;
			else
				return;
			break;
		case ON_LEASE_LOST_TERMINATE:
			ProcDiePending = true;
			break;
	}
	InterruptPending = true;
	SetLatch(MyLatch);
}

/* timer_settime() may be called in signal handlers. */
static void
set_timer(int64 moment)
{
	struct itimerspec at = {0};

	if (moment != PG_INT64_MAX)
	{
		at.it_value.tv_sec = moment / USECS_PER_SEC;
		at.it_value.tv_nsec = moment % USECS_PER_SEC * 1000;
	}
	(void) timer_settime(timer, TIMER_ABSTIME, &at, NULL);
}
