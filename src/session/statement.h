/*-------------------------------------------------------------------------
 *
 * statement.h
 *	  What ddblock does before and after the session's statements.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_STATEMENT_H
#define DDBLOCK_SESSION_STATEMENT_H

#include "postgres.h"

/* From _PG_init. */
extern void StatementInstallHooks(void);

#endif							/* DDBLOCK_SESSION_STATEMENT_H */
