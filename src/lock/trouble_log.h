/*-------------------------------------------------------------------------
 *
 * trouble_log.h
 *	  Which failures the server's log shows, when some requests fail and others do not.
 *
 * The log shows the first failure of each kind at once, and the next one of that kind a
 * minute later, with the number of those between.  The first success ends the trouble, and the log
 * says so.  Trouble that comes back within a minute ends only when nothing has failed for a
 * minute.  So the log has each kind, and the end, at most about once a minute.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_TROUBLE_LOG_H
#define DDBLOCK_LOCK_TROUBLE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#define TROUBLE_LOG_PAUSE_US	INT64_C(60000000)
#define TROUBLE_LOG_KINDS		16	/* the last place is for all further kinds */

/* Zero it before first use. */
typedef struct trouble_log
{
	bool		lasts;			/* the log shows the trouble, and not yet its end */
	bool		is_back;		/* the trouble began within TROUBLE_LOG_PAUSE_US after the end
								 * of the last one */
	int64_t		failed_at;
	int64_t		ended_at;		/* 0: never */
	struct
	{
		const void *kind;		/* NULL: unused */
		int64_t		told_at;	/* when the log last showed such a failure */
		int			left_out;	/* so many failures since then are not in the log */
	}			kinds[TROUBLE_LOG_KINDS];
} trouble_log;

/*
 * A request has failed; "kind" is any address that stands for failures of its kind.  Should the
 * log show the failure?  If so, *left_out is how many failures of that kind before it the log does
 * not show.
 */
extern bool trouble_log_failed(trouble_log *log, const void *kind, int64_t now, int *left_out);

/* A request has succeeded.  Should the log show the end of the trouble? */
extern bool trouble_log_succeeded(trouble_log *log, int64_t now);

#endif							/* DDBLOCK_LOCK_TROUBLE_LOG_H */
