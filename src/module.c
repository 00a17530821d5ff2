/*-------------------------------------------------------------------------
 *
 * module.c
 *	  Where PostgreSQL enters: settings, shared memory, hooks, the worker.
 *
 * Everything needs shared memory, so nothing is set up unless the server
 * preloads the library.  Otherwise it loads all the same: CREATE EXTENSION
 * works, and the functions say which line is missing (ErrorsRequirePreload).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/guc.h"

#include "session/drop.h"
#include "session/statement.h"
#include "shared/segment.h"
#include "shared/settings.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static void
register_worker(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;

	/*
	 * At once: the sessions' leases run out while no worker renews them.  The
	 * worker itself slows down a loop of failing starts.
	 */
	worker.bgw_restart_time = 0;
	strlcpy(worker.bgw_library_name, "ddblock", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "ddblock_worker_main",
			sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "ddblock worker", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "ddblock worker", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	SettingsDefine();
	MarkGUCPrefixReserved("ddblock");
	SegmentInstallHooks();
	StatementInstallHooks();
	DropInstallHook();
	register_worker();
}
