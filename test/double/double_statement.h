/*-------------------------------------------------------------------------
 *
 * double_statement.h
 *	  PartiQL: SELECT and UPDATE of one item.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DOUBLE_STATEMENT_H
#define DOUBLE_STATEMENT_H

#include "double_private.h"

struct double_statement
{
	char	   *text;
	bool		select;
	char	   *table;
	double_action *actions;		/* of an UPDATE */
	double_node *where;			/* NULL: none */
	const char *returned;		/* by an UPDATE: "ALL_NEW" ...; NULL: nothing */
	int			parameters;
	char		overlap[DOUBLE_COMPLAINT_SIZE]; /* of assigned paths, or "" */
	double_arena arena;
	struct double_statement *next;	/* in the cache */
};

/* The parsed statement, kept by text; NULL: the call has failed. */
extern const double_statement *double_statement_parsed(double_call *call,
													   const char *text);
extern void double_statement_free(double_statement *statement);

#endif							/* DOUBLE_STATEMENT_H */
