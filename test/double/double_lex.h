/*-------------------------------------------------------------------------
 *
 * double_lex.h
 *	  Tokens of expressions and of PartiQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DOUBLE_LEX_H
#define DOUBLE_LEX_H

#include <stdbool.h>
#include <stddef.h>

typedef enum double_token_kind
{
	DOUBLE_END,
	DOUBLE_WORD,
	DOUBLE_NAME_SLOT,			/* #name */
	DOUBLE_VALUE_SLOT,			/* :value; in PartiQL ? */
	DOUBLE_NUMBER,
	DOUBLE_QUOTED,				/* PartiQL: "identifier" */
	DOUBLE_STRING,				/* PartiQL: 'text' */
	DOUBLE_MARK,				/* = <> ( and so on */
	DOUBLE_STRANGER				/* a character that belongs to no token */
} double_token_kind;

typedef struct double_token
{
	double_token_kind kind;
	const char *start;
	size_t		len;
} double_token;

/* Looks one token ahead. */
typedef struct double_lexer
{
	bool		partiql;
	const char *text;
	double_token before;		/* for words on errors */
	double_token token;
} double_lexer;

extern void double_lex_start(double_lexer *lexer, const char *text, bool partiql);
extern void double_lex_next(double_lexer *lexer);

/* Is the token this mark, this word (in any case)? */
extern bool double_lex_is(const double_lexer *lexer, const char *what);

/* The same, and goes on if it is. */
extern bool double_lex_take(double_lexer *lexer, const char *what);

/* Syntax error; token: ..., near: ... */
extern void double_lex_complain(const double_lexer *lexer, char *complaint, size_t size);

#endif							/* DOUBLE_LEX_H */
