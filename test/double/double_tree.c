/*-------------------------------------------------------------------------
 *
 * double_tree.c
 *	  Builds the trees of expressions and of PartiQL statements.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "double_tree.h"

#define DEPTH_MAX 100

struct double_chunk
{
	double_chunk *next;
};

void *
double_arena_get(double_arena *arena, size_t size)
{
	double_chunk *chunk = calloc(1, sizeof(double_chunk) + size);

	chunk->next = arena->chunks;
	arena->chunks = chunk;
	return chunk + 1;
}

char *
double_arena_text(double_arena *arena, const char *text, size_t len)
{
	return memcpy(double_arena_get(arena, len + 1), text, len);
}

void
double_arena_free(double_arena *arena)
{
	while (arena->chunks != NULL)
	{
		double_chunk *next = arena->chunks->next;

		free(arena->chunks);
		arena->chunks = next;
	}
}

void
double_fail_syntax(double_parser *p)
{
	if (!p->failed && p->complaint != NULL)
		double_lex_complain(&p->lexer, p->complaint, DOUBLE_COMPLAINT_SIZE);
	p->failed = true;
}

bool
double_is(double_parser *p, const char *what)
{
	return !p->failed && double_lex_is(&p->lexer, what);
}

bool
double_take(double_parser *p, const char *what)
{
	return !p->failed && double_lex_take(&p->lexer, what);
}

void
double_expect(double_parser *p, const char *what)
{
	if (!double_take(p, what))
		double_fail_syntax(p);
}

double_node *
double_new_node(double_parser *p, double_kind kind)
{
	double_node *node = double_arena_get(p->arena, sizeof(double_node));

	node->kind = kind;
	node->slot = -1;
	return node;
}

double_node *
double_new_operator(double_parser *p, double_kind kind, double_node *left, double_node *right)
{
	double_node *node = double_new_node(p, kind);

	node->args = left;
	left->next = right;
	return node;
}

static double_node *
parse_not(double_parser *p)
{
	double_node *node;

	if (++p->depth > DEPTH_MAX)
		double_fail_syntax(p);
	if (double_take(p, "NOT"))
		node = double_new_operator(p, DOUBLE_NOT, parse_not(p), NULL);
	else
		node = p->primary(p);
	p->depth--;
	return node;
}

static double_node *
parse_and(double_parser *p)
{
	double_node *node = parse_not(p);

	while (double_take(p, "AND"))
		node = double_new_operator(p, DOUBLE_AND, node, parse_not(p));
	return node;
}

double_node *
double_parse_or(double_parser *p)
{
	double_node *node = parse_and(p);

	while (double_take(p, "OR"))
		node = double_new_operator(p, DOUBLE_OR, node, parse_and(p));
	return node;
}

double_action **
double_parse_section(double_parser *p, double_action **end, bool set)
{
	do
	{
		double_action *action = double_arena_get(p->arena, sizeof(double_action));

		*end = action;
		end = &action->next;
		action->path = p->path(p);
		if (set)
		{
			double_expect(p, "=");
			action->operand = p->assigned(p);
		}
	} while (double_take(p, ","));
	return end;
}
