/*-------------------------------------------------------------------------
 *
 * several.h
 *	  Acquiring several locks in one call.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_SEVERAL_H
#define DDBLOCK_SESSION_SEVERAL_H

#include "postgres.h"

#include "session/session.h"

/*
 * Acquires all of these locks, which are different ones, in ascending order of their
 * bytes, or none of them.  Raises errors of errors.h.  False if only_try and a lock is
 * busy.
 */
extern bool SeveralAcquire(const LockName *names, int count, const AcquireOptions *options,
						   int64 *tokens);

#endif							/* DDBLOCK_SESSION_SEVERAL_H */
