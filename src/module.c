/*-------------------------------------------------------------------------
 *
 * module.c
 *	  Module initialization: settings, shared memory, hooks, the worker.
 *
 * Nothing is set up unless the server preloads the library, because shared
 * memory must be requested at server start.  Without that, the library can still
 * be loaded: CREATE EXTENSION works, and the functions report which line is
 * missing (ErrorsRequirePreload).
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
	 * Restart at once: the sessions' leases expire while no worker renews them.
	 * The worker itself waits if it was started less than a second ago.
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
