/*-------------------------------------------------------------------------
 *
 * module.c
 *	  Module initialization: settings, shared memory, hooks, the worker.
 *
 * Hardly anything is set up unless the server preloads the library, because shared
 * memory must be requested at server start.  Without that, the library can still
 * be loaded: CREATE EXTENSION works, and it and the functions report which line is
 * missing (ErrorsNotPreloaded).  DROP EXTENSION keeps tokens and jobs there, too.
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
 * The worker loads this very file, which may have been preloaded by a path where the
 * server does not look for libraries.  A path that is too long for a worker is left to
 * that search.  (Every library has a _PG_init, and one's reference may lead to another's.)
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
	 * Restart at once: the sessions' leases expire while no worker renews them.
	 * The worker itself waits if it was started less than a second ago.
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
