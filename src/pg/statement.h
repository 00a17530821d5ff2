/*-------------------------------------------------------------------------
 *
 * statement.h
 *	  What ddblock does before and after the session's statements.
 *
 * Floor 3.  On top of session.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_PG_STATEMENT_H
#define DDBLOCK_PG_STATEMENT_H

#include "postgres.h"

/* From _PG_init. */
extern void StatementInstallHooks(void);

#endif							/* DDBLOCK_PG_STATEMENT_H */
