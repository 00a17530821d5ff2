/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  What differs between PostgreSQL 15, 16, 17, 18 and 19.
 *
 * No other file tests PG_VERSION_NUM.  The names below are those of PostgreSQL's newest version,
 * or have the prefix Compat.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_COMPAT_H
#define DDBLOCK_SHARED_COMPAT_H

#include "postgres.h"

#include "libpq/pqsignal.h"
#if PG_VERSION_NUM >= 160000
#include "replication/logicalworker.h"
#endif
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* This header declares get_database_name(). */
#if PG_VERSION_NUM >= 190000
#include "utils/lsyscache.h"
#else
#include "commands/dbcommands.h"
#endif

#if PG_VERSION_NUM < 150000
#error "ddblock needs PostgreSQL 15 or later"
#endif

/* The index of this process in the array of PGPROCs. */
#if PG_VERSION_NUM >= 170000
#define CompatMyProcNumber() ((uint32) MyProcNumber)
#else
#define CompatMyProcNumber() ((uint32) MyProc->pgprocno)
#endif

/* The running transaction's number in this session, or InvalidLocalTransactionId. */
#if PG_VERSION_NUM >= 170000
#define CompatMyLxid() (MyProc->vxid.lxid)
#else
#define CompatMyLxid() (MyProc->lxid)
#endif

/*
 * Is this process a parallel apply worker of logical replication?  Its leader stops it by the
 * signal that session/interrupt.c uses.
 */
#if PG_VERSION_NUM >= 160000
#define CompatIsParallelApplyWorker() IsLogicalParallelApplyWorker()
#else
#define CompatIsParallelApplyWorker() (false)
#endif

/* A named wait event; before 17 all extensions share one. */
#if PG_VERSION_NUM >= 170000
#define CompatWaitEvent(name) WaitEventExtensionNew(name)
#else
#define CompatWaitEvent(name) ((uint32) PG_WAIT_EXTENSION)
#endif

/* A wait set for the rest of the process's life. */
#if PG_VERSION_NUM >= 170000
#define CompatCreateWaitEventSet(events) CreateWaitEventSet(NULL, events)
#else
#define CompatCreateWaitEventSet(events) CreateWaitEventSet(TopMemoryContext, events)
#endif

/* The last parameter of ExecutorRun(), which version 18 removed. */
#if PG_VERSION_NUM >= 180000
#define COMPAT_EXECUTE_ONCE_PARAMETER
#define COMPAT_EXECUTE_ONCE
#else
#define COMPAT_EXECUTE_ONCE_PARAMETER , bool execute_once
#define COMPAT_EXECUTE_ONCE , execute_once
#endif

/* Goes before a declaration.  From 18 on, PostgreSQL has it. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn __attribute__((noreturn))
#endif

/* pqsignal() ignores a signal with PG_SIG_IGN. */
#if PG_VERSION_NUM < 190000
#define PG_SIG_IGN SIG_IGN
#endif

/* A scan of a whole table; callers include access/tableam.h. */
#if PG_VERSION_NUM >= 190000
#define CompatBeginScan(rel, snapshot) table_beginscan(rel, snapshot, 0, NULL, SO_NONE)
#else
#define CompatBeginScan(rel, snapshot) table_beginscan(rel, snapshot, 0, NULL)
#endif

/*
 * Takes one of PostgreSQL's locks that this session has already, once more, for the transaction.
 * Callers include storage/lock.h.
 */
#if PG_VERSION_NUM >= 180000
#define CompatLockAgain(tag, mode, local) LockAcquireExtended(tag, mode, false, true, true, local, false)
#else
#define CompatLockAgain(tag, mode, local) LockAcquireExtended(tag, mode, false, true, true, local)
#endif

/* Infinite intervals came with 17. */
#if PG_VERSION_NUM < 170000
#define INTERVAL_NOT_FINITE(i) (false)
#endif

/* All settings, also those that nobody has defined (placeholders). */
static inline struct config_generic **
CompatSettings(int *count)
{
#if PG_VERSION_NUM >= 160000
	return get_guc_variables(count);
#else
	*count = GetNumConfigOptions();
	return get_guc_variables();
#endif
}

/* The configuration file that a setting's value came from, or NULL. */
static inline const char *
CompatSettingFile(const char *name)
{
	int			count;
	struct config_generic **settings = CompatSettings(&count);

	for (int i = 0; i < count; i++)
	{
		if (strcmp(settings[i]->name, name) == 0)
			return settings[i]->sourcefile;
	}
	return NULL;
}

/*
 * Appends "waiting" to the process title.  CompatHideWaiting() removes it; "title" is what
 * CompatShowWaiting() has returned.
 */
static inline char *
CompatShowWaiting(void)
{
#if PG_VERSION_NUM >= 160000
	set_ps_display_suffix("waiting");
	return "";
#else
	int			len;
	const char *shown = get_ps_display(&len);
	char	   *title = pnstrdup(shown, len);

	set_ps_display(psprintf("%s waiting", title));
	return title;
#endif
}

static inline void
CompatHideWaiting(char *title)
{
#if PG_VERSION_NUM >= 160000
	set_ps_display_remove_suffix();
#else
	set_ps_display(title);
	pfree(title);
#endif
}

/* A check hook of a setting allocates a new value with guc_strdup(). */
#if PG_VERSION_NUM < 160000
#define guc_strdup(elevel, src) strdup(src)
#endif

#endif							/* DDBLOCK_SHARED_COMPAT_H */
