/*-------------------------------------------------------------------------
 *
 * double_tree.h
 *	  What the parsers of expressions and of PartiQL have in common.
 *
 * Once the syntax is wrong, the parser fails until it is out: every function here may be
 * called then, and what it returns does not matter.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DOUBLE_TREE_H
#define DOUBLE_TREE_H

#include "double_expr.h"
#include "double_lex.h"

typedef struct double_parser
{
	double_lexer lexer;
	double_arena *arena;
	double_expr *expr;			/* one of these two is parsed */
	struct double_statement *statement;
	int			depth;
	bool		failed;			/* by the syntax */
	bool		complained;		/* of something else: told if the syntax is right */
	char	   *complaint;		/* NULL: nobody is told where the syntax is wrong */

	/* where the two languages differ */
	double_node *(*path) (struct double_parser *p);
	double_node *(*primary) (struct double_parser *p);	/* an operand of NOT */
	double_node *(*assigned) (struct double_parser *p);	/* what SET assigns */
} double_parser;

extern void double_fail_syntax(double_parser *p);
extern bool double_is(double_parser *p, const char *what);
extern bool double_take(double_parser *p, const char *what);
extern void double_expect(double_parser *p, const char *what);

extern double_node *double_new_node(double_parser *p, double_kind kind);
extern double_node *double_new_operator(double_parser *p, double_kind kind,
										double_node *left, double_node *right);

/* A condition. */
extern double_node *double_parse_or(double_parser *p);

/* SET or REMOVE, after that word; returns the end of the list of actions. */
extern double_action **double_parse_section(double_parser *p, double_action **end, bool set);

#endif							/* DOUBLE_TREE_H */
