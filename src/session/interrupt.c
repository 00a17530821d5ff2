/*-------------------------------------------------------------------------
 *
 * interrupt.c
 *	  Interrupts the session when it has lost a lease.
 *
 * The session looks at its leases when a signal arrives (LOSS_SIGNAL, which
 * backends do not use otherwise).  There are three senders:
 *
 *	 - the worker, which knows of losses before the deadline (a take-over, a
 *	   deleted item) and of deadlines that become earlier (a shorter lease);
 *	 - a timer for the earliest deadline, since the worker may be stopped or
 *	   dead.  It runs on the clock of leases, so no change of the wall clock
 *	   delays it, as it would PostgreSQL's timeouts; and an error does not
 *	   disable it;
 *	 - the session itself, when it has a new deadline.
 *
 * The worker checks that the slot's generation is still that of the session it means, and then
 * signals the slot's pid.  In between, the session may end, and another one may take the slot.
 * That does no harm: the signal only makes a session look at its own leases.  Before a session has
 * attached, it ignores the signal.
 *
 * The handler runs at any moment.  It reads atomics and the list of HeldLocks, sets
 * flags, and sets the timer.  Nothing else sets the timer, so the handler never
 * replaces a later decision by an earlier one.  While the list is being changed
 * (HeldIsChanging()), it only sets the timer to run again soon.
 *
 * To cancel a session that is idle in a transaction has no effect, and its row locks would block
 * the new holder.  So such a session is terminated.  A statement may also end just when it is
 * canceled, and leave its transaction idle.  So the session is interrupted again once a second,
 * while the transaction lasts.  A statement that waits for its client cannot be canceled: after
 * CANCELS_MAX attempts the session is treated as idle.
 *
 * While interrupts are held, the handler does nothing but come back soon.  A transaction that has
 * committed waits for synchronous standbys in this state, and to cancel that wait would
 * acknowledge a commit that a failover can undo.  Earlier, but after the commit guard, COMMIT may
 * wait for locks (PreCommit_Notify).  There it is canceled whatever ddblock.on_lease_lost says,
 * because the guard does not check again.
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

#include "session/session.h"

#define INTERRUPT_AGAIN_US USECS_PER_SEC
#define HOLDOFF_AGAIN_US INT64CONST(100000)
#define CHANGING_AGAIN_US INT64CONST(1000)
#define CANCELS_MAX 5

static timer_t timer;
static bool attached = false;

/* The transaction in which the handler has noticed the last loss. */
static LocalTransactionId lost_in = InvalidLocalTransactionId;
static int64 interrupt_at;		/* when to interrupt that transaction next */
static int	cancels;			/* how often it was canceled */
static volatile sig_atomic_t loss_to_tell = 0;

static void
note_loss(int64 when_to_interrupt)
{
	lost_in = CompatMyLxid();
	interrupt_at = when_to_interrupt;
	cancels = 0;
	loss_to_tell = 1;
}

/*
 * Does the transaction still run in which the last loss was noticed?  A failed one does not count:
 * it holds no row locks, so nobody need interrupt it.  If only a subtransaction has failed, the
 * transaction around it still has its row locks, and counts.
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
	/* Idle backends have no query string; other processes never have one. */
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

/* timer_settime() is async-signal-safe. */
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

static void
look(void)
{
	int64		now = SegmentNow();
	int64		next = PG_INT64_MAX;	/* the earliest deadline */
	bool		lost = false;

	if (proc_exit_inprogress || MyProc == NULL)
		return;
	if (InterruptHoldoffCount > 0 || CritSectionCount > 0)
	{
		set_timer(now + HOLDOFF_AGAIN_US);
		return;
	}
	foreach_held(held)
	{
		int64		moment;

		if (held->hold_index == LOCKMGR_NO_HOLD)
			continue;
		moment = HeldValidUntil(held);
		if (moment > now)
		{
			held->seen_lost = false;
			next = Min(next, moment);
		}
		else
		{
			/*
			 * Keep the reason here: the hold's entry in the directory may become another one's at
			 * any time.
			 */
			held->loss = HeldLoss(held);
			if (held->deferred)
				SetLatch(MyLatch);	/* the lock function reports it */
			else if (!held->seen_lost)
				lost = held->seen_lost = true;
		}
	}
	if (lost)
		note_loss(now);
	if (lost || (in_transaction_of_loss() && now >= interrupt_at))
	{
		interrupt();
		interrupt_at = now + INTERRUPT_AGAIN_US;
	}
	if (in_transaction_of_loss())
		next = Min(next, interrupt_at);
	set_timer(next);
}

static void
handle_signal(SIGNAL_ARGS)
{
	int			save_errno = errno;

	if (HeldIsChanging())
		set_timer(SegmentNow() + CHANGING_AGAIN_US);
	else
		look();
	errno = save_errno;
}

void
InterruptAttach(void)
{
	struct sigevent event = {0};

	if (attached)
		return;
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = LOSS_SIGNAL;
	if (timer_create(CLOCK_BOOTTIME, &event, &timer) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not create a timer for leases: %m")));
	pqsignal(LOSS_SIGNAL, handle_signal);	/* after timer_create(): the handler uses the timer */
	attached = true;
}

/* Lets the handler set the timer.  It has run when raise() returns. */
void
InterruptArm(void)
{
	(void) raise(LOSS_SIGNAL);
}

void
InterruptBeginDefer(HeldLock *held)
{
	HeldBeginChange();
	held->deferred = true;
	HeldEndChange();
}

void
InterruptEndDefer(HeldLock *held)
{
	HeldBeginChange();
	held->deferred = false;
	if (!held->seen_lost && !HeldIsValid(held))
	{
		held->seen_lost = true;
		note_loss(SegmentNow() + INTERRUPT_AGAIN_US);
	}
	HeldEndChange();
	InterruptArm();
}

const HeldLock *
InterruptCause(void)
{
	if (lost_in == InvalidLocalTransactionId || lost_in != CompatMyLxid())
		return NULL;
	foreach_held(held)
	{
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
