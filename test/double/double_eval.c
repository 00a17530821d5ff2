/*-------------------------------------------------------------------------
 *
 * double_eval.c
 *	  Evaluates conditions and projections on an item, and checks what can
 *	  only be checked once placeholders are known.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "double_expr.h"
#include "double_value.h"

/* As messages name them, by double_kind. */
static const char *const operator_names[] = {
	"AND", "OR", "NOT", "=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN",
	"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with",
	"contains", "size", "", "", "+", "-", "if_not_exists", "list_append"
};

const char *
double_step_name(const double_step *step, const double_scope *scope)
{
	return step->slot >= 0 ? scope->names[step->slot] : step->name;
}

cJSON *
double_value_of(const double_node *node, const double_scope *scope)
{
	return node->slot >= 0 ? scope->values[node->slot] : node->literal;
}

cJSON *
double_path_find(const double_step *path, const double_scope *scope, const cJSON *item)
{
	cJSON	   *found;

	if (item == NULL)
		return NULL;
	found = cJSON_GetObjectItemCaseSensitive(item, double_step_name(path, scope));
	while (found != NULL && (path = path->next) != NULL)
	{
		double_type type = double_value_type(found);

		if (path->index >= 0)
			found = type == DOUBLE_L ? cJSON_GetArrayItem(found->child, path->index) : NULL;
		else
			found = type != DOUBLE_M ? NULL :
				cJSON_GetObjectItemCaseSensitive(found->child,
												 double_step_name(path, scope));
	}
	return found;
}

static bool
same_path(const double_step *a, const double_step *b, const double_scope *scope)
{
	for (; a != NULL && b != NULL; a = a->next, b = b->next)
	{
		if (a->index != b->index ||
			(a->index < 0 &&
			 strcmp(double_step_name(a, scope), double_step_name(b, scope)) != 0))
			return false;
	}
	return a == NULL && b == NULL;
}

/* "[a, b, [0]]" */
static void
write_path(const double_step *step, const double_scope *scope, char *to, size_t size)
{
	size_t		used = (size_t) snprintf(to, size, "[");

	for (; step != NULL && used < size; step = step->next)
	{
		if (step->index >= 0)
			used += (size_t) snprintf(to + used, size - used, "[%d]", step->index);
		else
			used += (size_t) snprintf(to + used, size - used, "%s",
									  double_step_name(step, scope));
		if (used < size)
			used += (size_t) snprintf(to + used, size - used, step->next ? ", " : "]");
	}
}

static bool
wrong_type(const double_node *node, double_type type, char *complaint)
{
	snprintf(complaint, DOUBLE_COMPLAINT_SIZE, "Incorrect operand type for operator or"
			 " function; operator or function: %s, operand type: %s",
			 operator_names[node->kind], double_type_name(type));
	return false;
}

/* Would an argument of that type do?  "last" tells it from those before. */
static bool
type_fits(double_kind kind, double_type type)
{
	switch (kind)
	{
		case DOUBLE_LT:
		case DOUBLE_LE:
		case DOUBLE_GT:
		case DOUBLE_GE:
		case DOUBLE_BETWEEN:
			return type <= DOUBLE_B;
		case DOUBLE_BEGINS_WITH:
			return type == DOUBLE_S || type == DOUBLE_B;
		case DOUBLE_SIZE:
			return type != DOUBLE_N && type != DOUBLE_BOOL && type != DOUBLE_NULL;
		case DOUBLE_PLUS:
		case DOUBLE_MINUS:
			return type == DOUBLE_N;
		case DOUBLE_LIST_APPEND:
			return type == DOUBLE_L;
		default:
			return true;
	}
}

static bool
check_type_name(const double_node *node, const double_scope *scope, char *complaint)
{
	const double_node *name = node->args->next;
	const cJSON *value = name->kind == DOUBLE_VALUE ? double_value_of(name, scope) : NULL;

	if (double_value_type(value) != DOUBLE_S)
		return wrong_type(node, double_value_type(value), complaint);
	if (double_type_of_name(value->child->valuestring) != DOUBLE_NONE)
		return true;
	snprintf(complaint, DOUBLE_COMPLAINT_SIZE, "Invalid attribute type name found; type:"
			 " %.60s, valid types: {N,BS,L,B,NULL,M,S,SS,NS,BOOL}",
			 value->child->valuestring);
	return false;
}

static bool
check_distinct(const double_node *node, const double_scope *scope, char *complaint)
{
	char		path[200];

	if (node->args->kind != DOUBLE_PATH)
		return true;
	for (const double_node *arg = node->args->next; arg != NULL; arg = arg->next)
	{
		if (arg->kind != DOUBLE_PATH ||
			!same_path(node->args->path, arg->path, scope))
			continue;
		write_path(node->args->path, scope, path, sizeof(path));
		snprintf(complaint, DOUBLE_COMPLAINT_SIZE, "The first operand must be distinct"
				 " from the remaining operands for this operator or function; operator:"
				 " %s, first operand: %s", operator_names[node->kind], path);
		return false;
	}
	return true;
}

/* What begins with a key's name must end with it. */
bool
double_check_scalar_key(const double_node *node, const double_scope *scope,
						const char *key, char complaint[DOUBLE_COMPLAINT_SIZE])
{
	for (const double_node *arg = node->args; arg != NULL; arg = arg->next)
	{
		if (!double_check_scalar_key(arg, scope, key, complaint))
			return false;
	}
	if (node->kind != DOUBLE_PATH || node->path->next == NULL ||
		strcmp(double_step_name(node->path, scope), key) != 0)
		return true;
	snprintf(complaint, DOUBLE_COMPLAINT_SIZE, "Key attributes must be scalars; list random"
			 " access '[]' and map lookup '.' are not allowed: Key: %s", key);
	return false;
}

bool
double_check_operand(const double_node *node, const double_scope *scope,
					 char complaint[DOUBLE_COMPLAINT_SIZE])
{
	for (const double_node *arg = node->args; arg != NULL; arg = arg->next)
	{
		if (!double_check_operand(arg, scope, complaint))
			return false;
		if (arg->kind == DOUBLE_VALUE)
		{
			double_type type = double_value_type(double_value_of(arg, scope));

			if (!type_fits(node->kind, type))
				return wrong_type(node, type, complaint);
		}
	}
	return true;
}

bool
double_check_condition(const double_node *node, const double_scope *scope,
					   char complaint[DOUBLE_COMPLAINT_SIZE])
{
	if (node->kind <= DOUBLE_NOT)
	{
		for (const double_node *arg = node->args; arg != NULL; arg = arg->next)
		{
			if (!double_check_condition(arg, scope, complaint))
				return false;
		}
		return true;
	}
	if (node->kind == DOUBLE_HAS_TYPE && !check_type_name(node, scope, complaint))
		return false;
	return check_distinct(node, scope, complaint) &&
		double_check_operand(node, scope, complaint);
}

/*
 * Is one path the beginning of the other, or does one take for a list what the
 * other takes for a map?
 */
bool
double_check_overlap(const double_node *a, const double_node *b,
					 const double_scope *scope, char complaint[DOUBLE_COMPLAINT_SIZE])
{
	const double_step *x = a->path;
	const double_step *y = b->path;
	const char *what = "overlap";
	char		one[160];
	char		two[160];

	for (; x != NULL && y != NULL; x = x->next, y = y->next)
	{
		if ((x->index < 0) != (y->index < 0))
		{
			what = "conflict";
			break;
		}
		if (x->index >= 0 ? x->index != y->index :
			strcmp(double_step_name(x, scope), double_step_name(y, scope)) != 0)
			return true;
	}
	write_path(a->path, scope, one, sizeof(one));
	write_path(b->path, scope, two, sizeof(two));
	snprintf(complaint, DOUBLE_COMPLAINT_SIZE, "Two document paths %s with each other; must"
			 " remove or rewrite one of these paths; path one: %s, path two: %s", what, one,
			 two);
	return false;
}

/* The operand's value; *made is to be deleted. */
static const cJSON *
operand_value(const double_node *node, const double_scope *scope, const cJSON *item,
			  cJSON **made)
{
	const cJSON *value;
	char		text[24];

	if (node->kind == DOUBLE_VALUE)
		return double_value_of(node, scope);
	if (node->kind == DOUBLE_PATH)
		return double_path_find(node->path, scope, item);

	value = operand_value(node->args, scope, item, made);
	if (value == NULL || double_value_length(value) < 0)
		return NULL;
	snprintf(text, sizeof(text), "%ld", double_value_length(value));
	*made = cJSON_CreateObject();
	cJSON_AddStringToObject(*made, "N", text);
	return *made;
}

static bool
ordered(const cJSON *a, const cJSON *b, double_kind kind)
{
	int			order;

	if (!double_value_compare(a, b, &order))
		return false;
	switch (kind)
	{
		case DOUBLE_LT:
			return order < 0;
		case DOUBLE_LE:
			return order <= 0;
		case DOUBLE_GT:
			return order > 0;
		default:
			return order >= 0;
	}
}

/* A predicate on two values; what is missing makes all but <> false. */
static bool
compare_two(double_kind kind, const cJSON *a, const cJSON *b)
{
	if (kind == DOUBLE_NE)
		return !double_value_equal(a, b);
	if (a == NULL || b == NULL)
		return false;
	switch (kind)
	{
		case DOUBLE_EQ:
		case DOUBLE_IN:
			return double_value_equal(a, b);
		case DOUBLE_BEGINS_WITH:
			return double_value_begins_with(a, b);
		case DOUBLE_CONTAINS:
			return double_value_contains(a, b);
		case DOUBLE_HAS_TYPE:
			return double_value_type(a) == double_type_of_name(b->child->valuestring);
		default:
			return ordered(a, b, kind);
	}
}

static bool
holds_for(double_kind kind, const cJSON *left, const double_node *right,
		  const double_scope *scope, const cJSON *item)
{
	cJSON	   *made = NULL;
	bool		holds;

	holds = compare_two(kind, left, operand_value(right, scope, item, &made));
	cJSON_Delete(made);
	return holds;
}

static bool
predicate_holds(const double_node *node, const double_scope *scope, const cJSON *item)
{
	cJSON	   *made = NULL;
	const cJSON *left = operand_value(node->args, scope, item, &made);
	const double_node *right = node->args->next;
	bool		holds = false;

	if (node->kind == DOUBLE_BETWEEN)
		holds = holds_for(DOUBLE_GE, left, right, scope, item) &&
			holds_for(DOUBLE_LE, left, right->next, scope, item);
	else
	{
		for (; right != NULL && !holds; right = right->next)
			holds = holds_for(node->kind, left, right, scope, item);
	}
	cJSON_Delete(made);
	return holds;
}

bool
double_condition_holds(const double_node *node, const double_scope *scope,
					   const cJSON *item)
{
	switch (node->kind)
	{
		case DOUBLE_AND:
			return double_condition_holds(node->args, scope, item) &&
				double_condition_holds(node->args->next, scope, item);
		case DOUBLE_OR:
			return double_condition_holds(node->args, scope, item) ||
				double_condition_holds(node->args->next, scope, item);
		case DOUBLE_NOT:
			return !double_condition_holds(node->args, scope, item);
		case DOUBLE_EXISTS:
			return double_path_find(node->args->path, scope, item) != NULL;
		case DOUBLE_NOT_EXISTS:
			return double_path_find(node->args->path, scope, item) == NULL;
		default:
			return predicate_holds(node, scope, item);
	}
}

/* The same place in what the projection has so far, made if it is not there. */
static cJSON *
project_step(cJSON *to, const double_step *step, const double_scope *scope)
{
	const char *name = double_step_name(step, scope);
	cJSON	   *found = step->index >= 0 ? NULL : cJSON_GetObjectItemCaseSensitive(to, name);

	if (found != NULL)
		return found;
	found = cJSON_CreateObject();
	if (step->index >= 0)
		cJSON_AddItemToArray(to, found);
	else
		cJSON_AddItemToObject(to, name, found);
	return found;
}

cJSON *
double_project(const double_node *paths, const double_scope *scope, const cJSON *item)
{
	cJSON	   *result = cJSON_CreateObject();

	for (; paths != NULL; paths = paths->next)
	{
		const cJSON *found = double_path_find(paths->path, scope, item);
		cJSON	   *to = result;

		if (found == NULL)
			continue;
		for (const double_step *step = paths->path; step != NULL; step = step->next)
		{
			to = project_step(to, step, scope);
			if (step->next == NULL || to->child != NULL)
				to = step->next == NULL ? to : to->child;
			else if (step->next->index >= 0)
				to = cJSON_AddArrayToObject(to, "L");
			else
				to = cJSON_AddObjectToObject(to, "M");
		}
		cJSON_AddItemToObject(to, found->child->string, cJSON_Duplicate(found->child, 1));
	}
	return result;
}
