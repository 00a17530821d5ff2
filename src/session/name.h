/*-------------------------------------------------------------------------
 *
 * name.h
 *	  Which texts can be a lock's name.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_NAME_H
#define DDBLOCK_SESSION_NAME_H

#include "postgres.h"

#include "session/session.h"

/* Raises 22023 if no item can have the name: see ddblock.sort_separator. */
extern void NameRequire(const LockName *name);

#endif							/* DDBLOCK_SESSION_NAME_H */
