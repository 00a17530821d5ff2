/*-------------------------------------------------------------------------
 *
 * double_lex.c
 *	  Tokens of expressions and of PartiQL.
 *
 *-------------------------------------------------------------------------
 */
#include "double_lex.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *
skip_space(const char *at)
{
	while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')
		at++;
	return at;
}

static size_t
word_length(const char *at)
{
	size_t		len = 0;

	while (isalnum((unsigned char) at[len]) || at[len] == '_')
		len++;
	return len;
}

static size_t
number_length(const char *at, bool partiql)
{
	size_t		len = strspn(at, "0123456789");

	if (partiql && at[len] == '.')
		len += 1 + strspn(at + len + 1, "0123456789");
	return len;
}

/* Up to the closing quote, where a doubled one does not close; 0: there is none. */
static size_t
quoted_length(const char *at)
{
	const char *end = at + 1;

	while (*end != '\0' && (*end != *at || end[1] == *at))
		end += *end == *at ? 2 : 1;
	return *end == '\0' ? 0 : (size_t) (end - at) + 1;
}

static size_t
mark_length(const char *at)
{
	if (strncmp(at, "<>", 2) == 0 || strncmp(at, "<=", 2) == 0 ||
		strncmp(at, ">=", 2) == 0)
		return 2;
	return *at != '\0' && strchr("=<>(),.[]+-;*", *at) != NULL ? 1 : 0;
}

static double_token
token_at(const char *at, bool partiql)
{
	double_token token = {DOUBLE_STRANGER, at, 1};

	if (*at == '\0')
		token.kind = DOUBLE_END, token.len = 0;
	else if (isalpha((unsigned char) *at) || (partiql && *at == '_'))
		token.kind = DOUBLE_WORD, token.len = word_length(at);
	else if (!partiql && (*at == '#' || *at == ':') && word_length(at + 1) > 0)
	{
		token.kind = *at == '#' ? DOUBLE_NAME_SLOT : DOUBLE_VALUE_SLOT;
		token.len = 1 + word_length(at + 1);
	}
	else if (partiql && *at == '?')
		token.kind = DOUBLE_VALUE_SLOT;
	else if (isdigit((unsigned char) *at))
		token.kind = DOUBLE_NUMBER, token.len = number_length(at, partiql);
	else if (partiql && (*at == '"' || *at == '\'') && quoted_length(at) > 0)
	{
		token.kind = *at == '"' ? DOUBLE_QUOTED : DOUBLE_STRING;
		token.len = quoted_length(at);
	}
	else if (mark_length(at) > 0)
		token.kind = DOUBLE_MARK, token.len = mark_length(at);
	return token;
}

void
double_lex_start(double_lexer *lexer, const char *text, bool partiql)
{
	lexer->partiql = partiql;
	lexer->text = text;
	lexer->before.kind = DOUBLE_END;
	lexer->before.start = text;
	lexer->before.len = 0;
	lexer->token = token_at(skip_space(text), partiql);
}

void
double_lex_next(double_lexer *lexer)
{
	const char *end = lexer->token.start + lexer->token.len;

	lexer->before = lexer->token;
	lexer->token = token_at(skip_space(end), lexer->partiql);
}

bool
double_lex_is(const double_lexer *lexer, const char *what)
{
	return (lexer->token.kind == DOUBLE_WORD || lexer->token.kind == DOUBLE_MARK) &&
		strlen(what) == lexer->token.len &&
		strncasecmp(what, lexer->token.start, lexer->token.len) == 0;
}

bool
double_lex_take(double_lexer *lexer, const char *what)
{
	if (!double_lex_is(lexer, what))
		return false;
	double_lex_next(lexer);
	return true;
}

/* DynamoDB shows the token between its neighbours. */
void
double_lex_complain(const double_lexer *lexer, char *complaint, size_t size)
{
	const double_token *token = &lexer->token;
	const char *from = lexer->before.len > 0 ? lexer->before.start : lexer->text;
	const char *end = token->start + token->len;

	if (token->kind == DOUBLE_END)
	{
		end = lexer->before.start + lexer->before.len;
		if (lexer->before.len == 0)
			end = token->start;
	}
	else
	{
		double_token after = token_at(skip_space(end), lexer->partiql);

		if (after.len > 0)
			end = after.start + after.len;
	}
	snprintf(complaint, size, "Syntax error; token: \"%.*s\", near: \"%.*s\"",
			 token->kind == DOUBLE_END ? 5 : (int) token->len,
			 token->kind == DOUBLE_END ? "<EOF>" : token->start,
			 (int) (end - from), from);
}
