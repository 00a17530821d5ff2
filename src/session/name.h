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

/* A lock's name: for messages, and as it goes to DynamoDB. */
typedef struct LockName
{
	char	   *text;			/* for messages, in the database's encoding */
	char	   *utf8;			/* 1 .. DYNAMO_NAME_MAX bytes and a NUL */
} LockName;

/* Raises 22023 if no item can have the name: see ddblock.sort_separator. */
extern void NameRequire(const LockName *name);

#endif							/* DDBLOCK_SESSION_NAME_H */
