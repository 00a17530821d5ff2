/*-------------------------------------------------------------------------
 *
 * keep_tokens.h
 *	  Tokens that are recorded never fall, also by rows from elsewhere.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SQL_KEEP_TOKENS_H
#define DDBLOCK_SQL_KEEP_TOKENS_H

#include "postgres.h"

#include "fmgr.h"

#include "shared/compat.h"

/* The table of this name in the schema of the extension, whose function is called. */
extern const char *KeepTable(FunctionCallInfo fcinfo, const char *name);

/* Raises: the owner of the table may have added a trigger or a rule.  what: "the token" */
pg_noreturn extern void KeepNotRecorded(const char *table, const char *what);

/* SPI_execute_with_args() of our own write to ddb_fences or ddb_queue_done. */
extern int	KeepExecute(const char *command, int count, Oid *types, Datum *values,
						const char *nulls);

#endif							/* DDBLOCK_SQL_KEEP_TOKENS_H */
