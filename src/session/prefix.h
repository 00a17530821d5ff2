/*-------------------------------------------------------------------------
 *
 * prefix.h
 *	  ddblock.lock_prefix: which names a session may use.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_PREFIX_H
#define DDBLOCK_SESSION_PREFIX_H

#include "postgres.h"

#include "session/session.h"

/* Does the name begin with the prefix?  Takes UTF-8 or the server's encoding. */
extern bool PrefixAllows(const char *name, size_t len);

/* Raises 42501 if a lock's name, or a resource's, does not. */
extern void PrefixRequire(const LockName *name);
extern void PrefixRequireResource(const char *resource);

/*
 * The longer one of the prefix that a caller asks for (UTF-8) and the session's:
 * for names that begin with both.  Raises 42501 if there are none.
 */
extern const char *PrefixNarrow(const char *asked);

#endif							/* DDBLOCK_SESSION_PREFIX_H */
