/*-------------------------------------------------------------------------
 *
 * double_expr.h
 *	  Expressions: parsed once for each text, bound to each request's
 *	  placeholders, then evaluated on an item.
 *
 * PartiQL statements end as the same trees (double_partiql.c), with their
 * parameters in the place of value placeholders.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DOUBLE_EXPR_H
#define DOUBLE_EXPR_H

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#define DOUBLE_COMPLAINT_SIZE 512

typedef enum double_kind
{
	DOUBLE_AND,
	DOUBLE_OR,
	DOUBLE_NOT,
	DOUBLE_EQ,
	DOUBLE_NE,
	DOUBLE_LT,
	DOUBLE_LE,
	DOUBLE_GT,
	DOUBLE_GE,
	DOUBLE_BETWEEN,
	DOUBLE_IN,
	DOUBLE_EXISTS,
	DOUBLE_NOT_EXISTS,
	DOUBLE_HAS_TYPE,
	DOUBLE_BEGINS_WITH,
	DOUBLE_CONTAINS,
	DOUBLE_SIZE,
	DOUBLE_PATH,
	DOUBLE_VALUE,
	DOUBLE_PLUS,
	DOUBLE_MINUS,
	DOUBLE_IF_NOT_EXISTS,
	DOUBLE_LIST_APPEND
} double_kind;

/* One step of a document path. */
typedef struct double_step
{
	const char *name;			/* as it stands in the text, or NULL */
	int			slot;			/* of the placeholder that stands there, or -1 */
	int			index;			/* into a list, or -1 */
	struct double_step *next;
} double_step;

typedef struct double_node
{
	double_kind kind;
	bool		parenthesised;
	int			slot;			/* DOUBLE_VALUE: of the placeholder, or -1 */
	cJSON	   *literal;		/* DOUBLE_VALUE without a placeholder */
	double_step *path;			/* DOUBLE_PATH */
	struct double_node *args;
	struct double_node *next;	/* the next argument of the same operator */
} double_node;

/* One assignment or removal of an update. */
typedef struct double_action
{
	double_node *path;
	double_node *operand;		/* NULL: the attribute is removed */
	struct double_action *next;
} double_action;

typedef enum double_use
{
	DOUBLE_CONDITION_EXPRESSION,
	DOUBLE_FILTER_EXPRESSION,
	DOUBLE_KEY_CONDITION_EXPRESSION,
	DOUBLE_UPDATE_EXPRESSION,
	DOUBLE_PROJECTION_EXPRESSION
} double_use;

#define DOUBLE_USE_COUNT (DOUBLE_PROJECTION_EXPRESSION + 1)

/* A list of distinct placeholders; a slot is a place in it. */
typedef struct double_slots
{
	int			count;
	int			size;
	char	  **names;
} double_slots;

typedef struct double_chunk double_chunk;

/* What trees are made of, freed all together. */
typedef struct double_arena
{
	double_chunk *chunks;
} double_arena;

extern void *double_arena_get(double_arena *arena, size_t size);
extern char *double_arena_text(double_arena *arena, const char *text, size_t len);
extern void double_arena_free(double_arena *arena);

typedef struct double_expr
{
	double_use	use;
	char	   *text;
	double_node *condition;		/* condition, filter */
	double_action *actions;		/* update */
	double_node *paths;			/* projection */
	double_slots names;			/* "#name" */
	double_slots values;		/* ":value" */
	double_arena arena;
	struct double_expr *next;	/* in the cache */
} double_expr;

/* NULL: complaint tells, without "Invalid ConditionExpression: " before it. */
extern double_expr *double_parse(double_use use, const char *text,
								 char complaint[DOUBLE_COMPLAINT_SIZE]);
extern void double_expr_free(double_expr *expr);
extern int	double_slot(double_slots *slots, const char *name, size_t len);
extern void double_slots_free(double_slots *slots);
extern bool double_word_is_reserved(const char *word);

/* What the placeholders stand for in one request. */
typedef struct double_scope
{
	const char **names;			/* by slot */
	cJSON	  **values;			/* by slot */
} double_scope;

/* Checks that need the placeholders' meaning; false: complaint tells. */
extern bool double_check_condition(const double_node *node, const double_scope *scope,
								   char complaint[DOUBLE_COMPLAINT_SIZE]);
extern bool double_check_scalar_key(const double_node *node, const double_scope *scope,
									const char *key,
									char complaint[DOUBLE_COMPLAINT_SIZE]);
extern bool double_check_operand(const double_node *node, const double_scope *scope,
								 char complaint[DOUBLE_COMPLAINT_SIZE]);
extern bool double_check_overlap(const double_node *a, const double_node *b,
								 const double_scope *scope,
								 char complaint[DOUBLE_COMPLAINT_SIZE]);

extern const char *double_step_name(const double_step *step, const double_scope *scope);
extern cJSON *double_value_of(const double_node *node, const double_scope *scope);

/* The value at the path, or NULL. */
extern cJSON *double_path_find(const double_step *path, const double_scope *scope,
							   const cJSON *item);
/* item NULL: there is none */
extern bool double_condition_holds(const double_node *node, const double_scope *scope,
								   const cJSON *item);

/*
 * The item after the update, or NULL and the complaint.  item NULL: there was
 * none, and key is what the new one begins with.
 */
extern cJSON *double_update_item(const double_action *actions, const double_scope *scope,
								 const cJSON *item, const cJSON *key,
								 const char **complaint);

/* What the projection leaves of an item. */
extern cJSON *double_project(const double_node *paths, const double_scope *scope,
							 const cJSON *item);

#endif							/* DOUBLE_EXPR_H */
