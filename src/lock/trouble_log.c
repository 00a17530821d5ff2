/*-------------------------------------------------------------------------
 *
 * trouble_log.c
 *	  Which failures the server's log shows.  See trouble_log.h.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/trouble_log.h"

#include <string.h>

bool
trouble_log_failed(trouble_log *log, const void *kind, int64_t now, int *left_out)
{
	int			i = 0;

	if (!log->lasts)
	{
		memset(log->kinds, 0, sizeof(log->kinds));
		log->is_back = log->ended_at != 0 && now - log->ended_at < TROUBLE_LOG_PAUSE_US;
	}
	log->lasts = true;
	log->failed_at = now;
	while (i < TROUBLE_LOG_KINDS - 1 && log->kinds[i].kind != NULL && log->kinds[i].kind != kind)
		i++;
	if (log->kinds[i].kind != NULL && now - log->kinds[i].told_at < TROUBLE_LOG_PAUSE_US)
	{
		log->kinds[i].left_out++;
		return false;
	}
	*left_out = log->kinds[i].left_out;
	log->kinds[i].kind = kind;
	log->kinds[i].told_at = now;
	log->kinds[i].left_out = 0;
	return true;
}

bool
trouble_log_succeeded(trouble_log *log, int64_t now)
{
	if (!log->lasts || (log->is_back && now - log->failed_at < TROUBLE_LOG_PAUSE_US))
		return false;
	log->lasts = false;
	log->ended_at = now;
	return true;
}
