/*-------------------------------------------------------------------------
 *
 * double_parse.c
 *	  Parses condition, filter, update and projection expressions.
 *
 * Once the syntax is wrong, the parser fails until it is out: every function
 * here may be called then, and what it returns does not matter.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double_tree.h"

typedef double_parser parser;

typedef struct function
{
	const char *name;
	double_kind kind;
	int			arguments;
	bool		in_update;
} function;

static const function functions[] = {
	{"attribute_exists", DOUBLE_EXISTS, 1, false},
	{"attribute_not_exists", DOUBLE_NOT_EXISTS, 1, false},
	{"attribute_type", DOUBLE_HAS_TYPE, 2, false},
	{"begins_with", DOUBLE_BEGINS_WITH, 2, false},
	{"contains", DOUBLE_CONTAINS, 2, false},
	{"size", DOUBLE_SIZE, 1, false},
	{"if_not_exists", DOUBLE_IF_NOT_EXISTS, 2, true},
	{"list_append", DOUBLE_LIST_APPEND, 2, true},
};

int
double_slot(double_slots *slots, const char *name, size_t len)
{
	for (int i = 0; i < slots->count; i++)
	{
		if (strlen(slots->names[i]) == len && memcmp(slots->names[i], name, len) == 0)
			return i;
	}
	if (slots->count == slots->size)
	{
		slots->size = slots->size * 2 + 8;
		slots->names = realloc(slots->names, (size_t) slots->size * sizeof(char *));
	}
	slots->names[slots->count] = strndup(name, len);
	return slots->count++;
}

void
double_slots_free(double_slots *slots)
{
	for (int i = 0; i < slots->count; i++)
		free(slots->names[i]);
	free(slots->names);
}

static void
complain(parser *p, const char *format,...)
{
	va_list		args;

	if (p->failed || p->complained)
		return;
	p->complained = true;
	va_start(args, format);
	vsnprintf(p->complaint, DOUBLE_COMPLAINT_SIZE, format, args);
	va_end(args);
}

static bool
at_keyword(parser *p)
{
	static const char *const keywords[] = {
		"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"
	};

	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
	{
		if (double_is(p, keywords[i]))
			return true;
	}
	return false;
}

/* The name in a step of a path. */
static void
parse_name(parser *p, double_step *step)
{
	double_token token = p->lexer.token;

	step->slot = -1;
	step->index = -1;
	if (token.kind == DOUBLE_NAME_SLOT)
		step->slot = double_slot(&p->expr->names, token.start, token.len);
	else if (token.kind == DOUBLE_WORD && !at_keyword(p))
	{
		step->name = double_arena_text(&p->expr->arena, token.start, token.len);
		if (double_word_is_reserved(step->name))
			complain(p, "Attribute name is a reserved keyword; reserved keyword: %s",
				 step->name);
	}
	else
		double_fail_syntax(p);
	if (!p->failed)
		double_lex_next(&p->lexer);
}

static void
parse_index(parser *p, double_step *step)
{
	step->slot = -1;
	if (p->lexer.token.kind != DOUBLE_NUMBER)
	{
		double_fail_syntax(p);
		return;
	}
	step->index = atoi(p->lexer.token.start);
	double_lex_next(&p->lexer);
	double_expect(p, "]");
}

static double_node *
parse_path(parser *p)
{
	double_node *node = double_new_node(p, DOUBLE_PATH);
	double_step *step = double_arena_get(&p->expr->arena, sizeof(double_step));

	node->path = step;
	parse_name(p, step);
	while (double_is(p, ".") || double_is(p, "["))
	{
		bool		index = double_is(p, "[");

		double_lex_next(&p->lexer);
		step->next = double_arena_get(&p->expr->arena, sizeof(double_step));
		step = step->next;
		if (index)
			parse_index(p, step);
		else
			parse_name(p, step);
	}
	return node;
}

static double_node *parse_operand(parser *p);

/* Between the parentheses; arguments are operands. */
static double_node *
parse_call(parser *p, const function *f)
{
	double_node *node = double_new_node(p, f->kind);
	double_node **end = &node->args;
	int			count = 0;

	do
	{
		*end = parse_operand(p);
		end = &(*end)->next;
		count++;
	} while (double_take(p, ","));
	double_expect(p, ")");
	if (count != f->arguments)
		complain(p, "Incorrect number of operands for operator or function; operator or"
			 " function: %s, number of operands: %d", f->name, count);
	if ((f->kind == DOUBLE_EXISTS || f->kind == DOUBLE_NOT_EXISTS ||
		 f->kind == DOUBLE_IF_NOT_EXISTS) && node->args->kind != DOUBLE_PATH)
		complain(p, "Operator or function requires a document path; operator or"
			 " function: %s", f->name);
	return node;
}

/* At a word that is followed by a parenthesis. */
static double_node *
parse_function(parser *p)
{
	static const function unknown = {"", DOUBLE_IF_NOT_EXISTS, 0, false};
	double_token name = p->lexer.token;
	bool		update = p->expr->use == DOUBLE_UPDATE_EXPRESSION;

	double_lex_next(&p->lexer);
	double_expect(p, "(");
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
	{
		const function *f = &functions[i];

		if (strlen(f->name) != name.len || memcmp(f->name, name.start, name.len) != 0)
			continue;
		if (f->in_update != update)
			complain(p, "The function is not allowed in %s expression; function: %s",
				 update ? "an update" : p->expr->use == DOUBLE_FILTER_EXPRESSION
				 ? "a filter" : "a condition", f->name);
		return parse_call(p, f);
	}
	complain(p, "Invalid function name; function: %.*s", (int) name.len, name.start);
	return parse_call(p, &unknown);
}

static bool
at_function(parser *p)
{
	double_lexer ahead = p->lexer;

	if (p->failed || ahead.token.kind != DOUBLE_WORD || at_keyword(p))
		return false;
	double_lex_next(&ahead);
	return double_lex_is(&ahead, "(");
}

/* A value, a path, or a function; which function will do is for the caller. */
static double_node *
parse_operand(parser *p)
{
	double_node *node;

	if (p->failed)
		return double_new_node(p, DOUBLE_VALUE);
	if (at_function(p))
		return parse_function(p);
	if (p->lexer.token.kind != DOUBLE_VALUE_SLOT)
		return parse_path(p);
	node = double_new_node(p, DOUBLE_VALUE);
	node->slot = double_slot(&p->expr->values, p->lexer.token.start, p->lexer.token.len);
	double_lex_next(&p->lexer);
	return node;
}

static bool
is_predicate(const double_node *node)
{
	return node->kind >= DOUBLE_EXISTS && node->kind <= DOUBLE_CONTAINS;
}

/* Operands of comparisons and of functions are no predicates. */
static void
check_arguments(parser *p, const double_node *node)
{
	for (const double_node *arg = node->args; arg != NULL; arg = arg->next)
	{
		for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		{
			if (is_predicate(arg) && functions[i].kind == arg->kind)
				complain(p, "The function is not allowed to be used this way in an"
					 " expression; function: %s", functions[i].name);
		}
	}
}

static double_node *
parse_between(parser *p, double_node *left)
{
	double_node *low = parse_operand(p);
	double_node *node = double_new_operator(p, DOUBLE_BETWEEN, left, low);

	double_expect(p, "AND");
	low->next = parse_operand(p);
	return node;
}

static double_node *
parse_in(parser *p, double_node *left)
{
	double_node *node = double_new_operator(p, DOUBLE_IN, left, NULL);
	double_node **end = &left->next;

	double_expect(p, "(");
	do
	{
		*end = parse_operand(p);
		end = &(*end)->next;
	} while (double_take(p, ","));
	double_expect(p, ")");
	return node;
}

static double_node *
parse_comparison(parser *p, double_node *left)
{
	static const char *const marks[] = {"=", "<>", "<", "<=", ">", ">="};

	for (int i = 0; i < 6; i++)
	{
		if (double_take(p, marks[i]))
			return double_new_operator(p, (double_kind) (DOUBLE_EQ + i), left, parse_operand(p));
	}
	if (double_take(p, "BETWEEN"))
		return parse_between(p, left);
	if (double_take(p, "IN"))
		return parse_in(p, left);
	if (left->kind == DOUBLE_SIZE || p->complained)
		complain(p, "The function is not allowed to be used this way in an expression;"
				 " function: size");
	else
		double_fail_syntax(p);
	return left;
}

static double_node *
parse_primary(parser *p)
{
	double_node *node;

	if (double_take(p, "("))
	{
		node = double_parse_or(p);
		double_expect(p, ")");
		if (node->parenthesised)
			complain(p, "The expression has redundant parentheses;");
		node->parenthesised = true;
		return node;
	}
	node = parse_operand(p);
	if (!is_predicate(node))
		node = parse_comparison(p, node);
	check_arguments(p, node);
	return node;
}

/* What SET assigns: an operand, or the sum or difference of two. */
static double_node *
parse_assigned(parser *p)
{
	double_node *node;
	bool		parentheses = double_take(p, "(");

	node = parse_operand(p);
	if (double_take(p, "+"))
		node = double_new_operator(p, DOUBLE_PLUS, node, parse_operand(p));
	else if (double_take(p, "-"))
		node = double_new_operator(p, DOUBLE_MINUS, node, parse_operand(p));
	if (parentheses)
		double_expect(p, ")");
	return node;
}

static void
parse_update(parser *p)
{
	static const char *const sections[] = {"SET", "REMOVE"};
	double_action **end = &p->expr->actions;
	bool		seen[2] = {false, false};

	do
	{
		int			i = double_is(p, sections[0]) ? 0 : 1;

		if (double_is(p, "ADD") || double_is(p, "DELETE"))
			complain(p, "the double knows neither ADD nor DELETE");
		double_expect(p, sections[i]);
		if (seen[i])
			complain(p, "The \"%s\" section can only be used once in an update expression;",
				 sections[i]);
		seen[i] = true;
		end = double_parse_section(p, end, i == 0);
	} while (!p->failed && p->lexer.token.kind != DOUBLE_END);
}

static void
parse_projection(parser *p)
{
	double_node **end = &p->expr->paths;

	do
	{
		*end = parse_path(p);
		end = &(*end)->next;
	} while (double_take(p, ","));
}

double_expr *
double_parse(double_use use, const char *text, char complaint[DOUBLE_COMPLAINT_SIZE])
{
	double_expr *expr = calloc(1, sizeof(double_expr));
	parser		p = {
		.arena = &expr->arena, .expr = expr, .complaint = complaint,
		.path = parse_path, .primary = parse_primary, .assigned = parse_assigned,
	};

	expr->use = use;
	expr->text = strdup(text);
	double_lex_start(&p.lexer, text, false);
	if (text[0] == '\0')
		complain(&p, "The expression can not be empty;");
	else if (use == DOUBLE_UPDATE_EXPRESSION)
		parse_update(&p);
	else if (use == DOUBLE_PROJECTION_EXPRESSION)
		parse_projection(&p);
	else
		expr->condition = double_parse_or(&p);
	if (!p.failed && p.lexer.token.kind != DOUBLE_END)
		double_fail_syntax(&p);
	if (!p.failed && !p.complained)
		return expr;
	double_expr_free(expr);
	return NULL;
}

void
double_expr_free(double_expr *expr)
{
	double_slots_free(&expr->names);
	double_slots_free(&expr->values);
	double_arena_free(&expr->arena);
	free(expr->text);
	free(expr);
}
