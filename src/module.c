/*-------------------------------------------------------------------------
 *
 * module.c
 *	  Module initialization: settings, shared memory, hooks, the worker.
 *
 * The server must preload the library, because shared memory must be requested at server start.
 * If the library is loaded later, only the check of DROP EXTENSION, which keeps tokens and jobs, is
 * set up.  CREATE EXTENSION works then, but warns which line postgresql.conf lacks, and functions
 * fail with the same words (ErrorsNotPreloaded).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>

#include "commands/extension.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/guc.h"

#include "session/session.h"
#include "shared/errors.h"
#include "shared/segment.h"
#include "shared/settings.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

/*
 * The name by which the worker loads the library: the path of this very file, because the server
 * may have preloaded it from a folder in which it does not look for libraries.  Only if the path is
 * too long for a BackgroundWorker, the server has to look for "ddblock".
 *
 * dladdr() gets the address of a static function.  That of _PG_init might be another library's,
 * because every library has a function of this name.
 */
static const char *
library_name(size_t size)
{
	Dl_info		self;

	if (dladdr((void *) library_name, &self) == 0 || strlen(self.dli_fname) >= size)
		return "ddblock";
	return self.dli_fname;
}

static void
register_worker(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;

	/*
	 * The postmaster restarts the worker at once, because the sessions' leases expire while no
	 * worker renews them.  A worker whose last start was a short time ago waits by itself
	 * (slow_down_starts() in worker.c).
	 */
	worker.bgw_restart_time = 0;
	strlcpy(worker.bgw_library_name, library_name(sizeof(worker.bgw_library_name)),
			sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "ddblock_worker_main",
			sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "ddblock worker", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "ddblock worker", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}

void
_PG_init(void)
{
	StatementInstallDropCheck();
	if (!process_shared_preload_libraries_in_progress)
	{
		if (creating_extension)
			ErrorsNotPreloaded(WARNING);
		return;
	}

	SettingsDefine();
	MarkGUCPrefixReserved("ddblock");
	SegmentInstallHooks();
	StatementInstallHooks();
	register_worker();
}
