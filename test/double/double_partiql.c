/*-------------------------------------------------------------------------
 *
 * double_partiql.c
 *	  Parses PartiQL statements.
 *
 *	UPDATE "table" SET path = operand [, ...] | REMOVE path ... WHERE condition
 *		[RETURNING ALL|MODIFIED OLD|NEW *]
 *	SELECT * FROM "table" WHERE condition
 *
 * As with expressions, the parser fails until it is out once something is
 * wrong.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "double_statement.h"
#include "double_tree.h"

typedef double_parser parser;

/* A quoted token without its quotes. */
static char *
unquoted(parser *p, const double_token *token)
{
	char	   *text = double_arena_text(&p->statement->arena, token->start, token->len);
	char		quote = text[0];
	char	   *to = text;

	for (const char *from = text + 1; from[1] != '\0'; from++)
	{
		if (*from == quote)
			from++;
		*to++ = *from;
	}
	*to = '\0';
	return text;
}

/* In double quotes, or bare if it is no word of the language. */
static char *
parse_identifier(parser *p)
{
	const double_token token = p->lexer.token;
	char	   *name = NULL;

	if (token.kind == DOUBLE_QUOTED)
		name = unquoted(p, &token);
	else if (token.kind == DOUBLE_WORD)
	{
		name = double_arena_text(&p->statement->arena, token.start, token.len);
		if (double_word_is_reserved(name))
			name = NULL;
	}
	if (name == NULL)
		p->failed = true;
	else
		double_lex_next(&p->lexer);
	return name;
}

/* A name, and maybe more of them after dots. */
static double_node *
parse_path(parser *p)
{
	double_node *node = double_new_node(p, DOUBLE_PATH);
	double_step **end = &node->path;

	do
	{
		double_step *step = double_arena_get(&p->statement->arena, sizeof(double_step));

		step->slot = -1;
		step->index = -1;
		step->name = parse_identifier(p);
		*end = step;
		end = &step->next;
	} while (double_take(p, "."));
	return node;
}

static double_node *
parse_literal(parser *p, const char *type, const char *text)
{
	double_node *node = double_new_node(p, DOUBLE_VALUE);
	double_reason reason = {false, ""};

	node->literal = cJSON_CreateObject();
	cJSON_AddStringToObject(node->literal, type, text);
	if (!double_value_check(node->literal, &reason))
		p->failed = true;
	double_lex_next(&p->lexer);
	return node;
}

static double_node *
parse_operand(parser *p)
{
	const double_token token = p->lexer.token;
	double_node *node;

	if (p->failed)
		return double_new_node(p, DOUBLE_PATH);
	switch (token.kind)
	{
		case DOUBLE_VALUE_SLOT:
			node = double_new_node(p, DOUBLE_VALUE);
			node->slot = p->statement->parameters++;
			double_lex_next(&p->lexer);
			return node;
		case DOUBLE_STRING:
			return parse_literal(p, "S", unquoted(p, &token));
		case DOUBLE_NUMBER:
			return parse_literal(p, "N", double_arena_text(&p->statement->arena,
														   token.start, token.len));
		default:
			return parse_path(p);
	}
}

/* path IS [NOT] MISSING */
static double_node *
parse_missing(parser *p, double_node *path)
{
	bool		not = double_take(p, "NOT");

	double_expect(p, "MISSING");
	if (path->kind != DOUBLE_PATH)
		p->failed = true;
	return double_new_operator(p, not ? DOUBLE_EXISTS : DOUBLE_NOT_EXISTS, path, NULL);
}

static double_node *
parse_primary(parser *p)
{
	static const char *const marks[] = {"=", "<>", "<", "<=", ">", ">="};
	double_node *left;

	if (double_take(p, "("))
	{
		left = double_parse_or(p);
		double_expect(p, ")");
		return left;
	}
	left = parse_operand(p);
	if (double_take(p, "IS"))
		return parse_missing(p, left);
	for (int i = 0; i < 6; i++)
	{
		if (double_take(p, marks[i]))
			return double_new_operator(p, (double_kind) (DOUBLE_EQ + i), left, parse_operand(p));
	}
	p->failed = true;
	return left;
}

/* After UPDATE */
static void
parse_update(parser *p)
{
	double_action **end = &p->statement->actions;

	p->statement->table = parse_identifier(p);
	while (double_is(p, "SET") || double_is(p, "REMOVE"))
	{
		bool		set = double_take(p, "SET");

		if (!set)
			double_expect(p, "REMOVE");
		end = double_parse_section(p, end, set);
	}
	if (p->statement->actions == NULL)
		p->failed = true;
}

/* After SELECT */
static void
parse_select(parser *p)
{
	p->statement->select = true;
	double_expect(p, "*");
	double_expect(p, "FROM");
	p->statement->table = parse_identifier(p);
}

/* After RETURNING */
static const char *
parse_returned(parser *p)
{
	bool		all = double_take(p, "ALL");
	bool		old;

	if (!all)
		double_expect(p, "MODIFIED");
	old = double_take(p, "OLD");
	if (!old)
		double_expect(p, "NEW");
	double_expect(p, "*");
	return all ? (old ? "ALL_OLD" : "ALL_NEW") : old ? "UPDATED_OLD" : "UPDATED_NEW";
}

static bool
parse(parser *p)
{
	if (double_take(p, "UPDATE"))
		parse_update(p);
	else
	{
		double_expect(p, "SELECT");
		parse_select(p);
	}
	if (double_take(p, "WHERE"))
		p->statement->where = double_parse_or(p);
	if (!p->statement->select && double_take(p, "RETURNING"))
		p->statement->returned = parse_returned(p);
	double_take(p, ";");
	return !p->failed && p->lexer.token.kind == DOUBLE_END;
}

static void
free_literals(double_node *node)
{
	for (; node != NULL; node = node->next)
	{
		cJSON_Delete(node->literal);
		free_literals(node->args);
	}
}

void
double_statement_free(double_statement *statement)
{
	free_literals(statement->where);
	for (double_action *action = statement->actions; action != NULL; action = action->next)
		free_literals(action->operand);
	double_arena_free(&statement->arena);
	free(statement->text);
	free(statement);
}

static bool
check_words(double_call *call, const char *text)
{
	static const char *const others[] = {"INSERT", "DELETE"};

	for (int i = 0; i < 2; i++)
	{
		if (strncasecmp(text, others[i], strlen(others[i])) == 0)
			return double_fail(call, DOUBLE_VALIDATION, "the double knows no %s", others[i]);
	}
	if (strncasecmp(text, "UPDATE", 6) != 0 && strncasecmp(text, "SELECT", 6) != 0)
		return double_fail(call, DOUBLE_VALIDATION, "Invalid operation. Only select, insert,"
						   " update and delete operations are valid");
	return true;
}

static void
find_overlap(double_statement *statement)
{
	static const double_scope none;

	for (double_action *action = statement->actions; action != NULL; action = action->next)
	{
		for (double_action *other = action->next; other != NULL; other = other->next)
		{
			if (!double_check_overlap(action->path, other->path, &none, statement->overlap))
				return;
		}
	}
}

const double_statement *
double_statement_parsed(double_call *call, const char *text)
{
	uint64_t	hash = double_hash(text, strlen(text));
	double_statement **bucket = &call->d->statements[hash % DOUBLE_CACHE_BUCKETS];
	double_statement *statement = *bucket;
	parser		p = {.path = parse_path,.primary = parse_primary,.assigned = parse_operand};

	while (statement != NULL && strcmp(statement->text, text) != 0)
		statement = statement->next;
	if (statement != NULL)
		return statement;
	if (!check_words(call, text))
		return NULL;

	statement = calloc(1, sizeof(double_statement));
	statement->text = strdup(text);
	p.statement = statement;
	p.arena = &statement->arena;
	double_lex_start(&p.lexer, text, true);
	if (!parse(&p))
	{
		double_fail(call, DOUBLE_VALIDATION, "Statement wasn't well formed, can't be"
					" processed: %s", text);
		double_statement_free(statement);
		return NULL;
	}
	find_overlap(statement);
	statement->next = *bucket;
	*bucket = statement;
	call->d->cached++;
	return statement;
}
