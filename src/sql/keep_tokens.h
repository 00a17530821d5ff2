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

/* SPI_execute_with_args() of our own write to ddb_fences or ddb_queue_done. */
extern int	KeepExecute(const char *command, int count, Oid *types, Datum *values,
						const char *nulls);

#endif							/* DDBLOCK_SQL_KEEP_TOKENS_H */
