/*-------------------------------------------------------------------------
 *
 * joined.h
 *	  Joining another session's hold; leaving one to the cluster.
 *
 * All functions raise errors of errors.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_JOINED_H
#define DDBLOCK_SESSION_JOINED_H

#include "postgres.h"

#include "session/session.h"

/* This session holds the lock as well, for the session. */
extern void JoinedJoin(const LockName *name, int64 token);

/* Joins what ddblock.join_locks names and this session does not hold. */
extern void JoinedCarryOutOrder(void);

/*
 * The cluster holds the lock instead of this session, for at most so long.  Returns the
 * token.  Who may not detach it keeps it; after another error neither of them holds it, nor
 * if the session ends in between.
 */
extern int64 JoinedDetach(const LockName *name, int64 at_most_ms);
extern int64 JoinedOutlive(const LockName *name);

/* Ends that.  If there was nothing to end, raises a WARNING and returns false. */
extern bool JoinedEndDetached(const LockName *name, int64 token, bool keep);

#endif							/* DDBLOCK_SESSION_JOINED_H */
