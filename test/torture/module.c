/*
 * module.c
 *	  A library for the torture's clusters: the one true time inside a statement,
 *	  and a backend that stops itself right before or after ddblock's part of
 *	  PRE_COMMIT.
 *
 * PostgreSQL calls transaction callbacks in the reverse order of their
 * registration.  The one that is registered here at load time, before
 * ddblock's, runs after it; to run before it, another one is registered anew
 * when the stop is armed, which is after the session's first use of ddblock.
 */
#include "postgres.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "access/xact.h"
#include "fmgr.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(torture_now);
PG_FUNCTION_INFO_V1(torture_stop);

void		_PG_init(void);

typedef enum Stop
{
	STOP_NEVER,
	STOP_BEFORE,
	STOP_AFTER
} Stop;

static Stop armed = STOP_NEVER;

static void
stop_at(XactEvent event, Stop here)
{
	if (event == XACT_EVENT_ABORT)
		armed = STOP_NEVER;
	if (event != XACT_EVENT_PRE_COMMIT || armed != here)
		return;
	armed = STOP_NEVER;
	kill(getpid(), SIGSTOP);
}

static void
before_guard(XactEvent event, void *arg)
{
	stop_at(event, STOP_BEFORE);
}

static void
after_guard(XactEvent event, void *arg)
{
	stop_at(event, STOP_AFTER);
}

/*
 * torture_now() returns bigint: CLOCK_BOOTTIME in microseconds, by the kernel, since the
 * cluster's machine may have stood still (shim.c).
 */
Datum
torture_now(PG_FUNCTION_ARGS)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
	PG_RETURN_INT64((int64) now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

/* torture_stop(before boolean): stops this process when it commits. */
Datum
torture_stop(PG_FUNCTION_ARGS)
{
	armed = PG_GETARG_BOOL(0) ? STOP_BEFORE : STOP_AFTER;
	UnregisterXactCallback(before_guard, NULL);
	RegisterXactCallback(before_guard, NULL);
	PG_RETURN_VOID();
}

void
_PG_init(void)
{
	RegisterXactCallback(after_guard, NULL);
}
