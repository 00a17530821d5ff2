/*-------------------------------------------------------------------------
 *
 * double_bind.c
 *	  A request's expressions and what their placeholders stand for.
 *
 * Parsed expressions are kept, by text: clients send the same few again and
 * again.  A placeholder that is used is marked in the request's JSON, by
 * valueint, which strings and objects leave alone.
 *
 *-------------------------------------------------------------------------
 */
#include <ctype.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "double_private.h"
#include "double_statement.h"

#define CACHE_MAX 4096
#define USED 1

static const char *const parameters[] = {
	"ConditionExpression", "FilterExpression", "KeyConditionExpression", "UpdateExpression",
	"ProjectionExpression"
};

void
double_cache_clear(dynamo_double *d)
{
	for (int i = 0; i < DOUBLE_CACHE_BUCKETS; i++)
	{
		while (d->expressions[i] != NULL)
		{
			double_expr *next = d->expressions[i]->next;

			double_expr_free(d->expressions[i]);
			d->expressions[i] = next;
		}
		while (d->statements[i] != NULL)
		{
			double_statement *next = d->statements[i]->next;

			double_statement_free(d->statements[i]);
			d->statements[i] = next;
		}
	}
	d->cached = 0;
}

/* Before a request: whoever makes up a new text each time fills no memory. */
void
double_cache_grow(dynamo_double *d)
{
	if (d->cached > CACHE_MAX)
		double_cache_clear(d);
}

static const double_expr *
parsed(double_call *call, double_use use, const char *text)
{
	uint64_t	hash = double_hash(text, strlen(text)) + use;
	double_expr **bucket = &call->d->expressions[hash % DOUBLE_CACHE_BUCKETS];
	double_expr *expr = *bucket;
	char		complaint[DOUBLE_COMPLAINT_SIZE];

	while (expr != NULL && (expr->use != use || strcmp(expr->text, text) != 0))
		expr = expr->next;
	if (expr != NULL)
		return expr;
	expr = double_parse(use, text, complaint);
	if (expr == NULL)
	{
		double_fail(call, DOUBLE_VALIDATION, "Invalid %s: %s", parameters[use], complaint);
		return NULL;
	}
	expr->next = *bucket;
	*bucket = expr;
	call->d->cached++;
	return expr;
}

/* A '#' or ':' and then letters, digits or underscores */
static bool
is_placeholder(const char *key, char mark)
{
	if (key[0] != mark || key[1] == '\0')
		return false;
	for (key++; *key != '\0'; key++)
	{
		if (!isalnum((unsigned char) *key) && *key != '_')
			return false;
	}
	return true;
}

static bool
check_placeholders(double_call *call, const char *parameter, char mark, cJSON *map)
{
	cJSON	   *entry;
	double_reason reason = {false, ""};

	if (map == NULL)
		return true;
	if (!cJSON_IsObject(map))
		return double_fail(call, "SerializationException", "%s is no map", parameter);
	if (map->child == NULL)
		return double_fail(call, DOUBLE_VALIDATION, "%s must not be empty", parameter);
	cJSON_ArrayForEach(entry, map)
	{
		if (!is_placeholder(entry->string, mark))
			return double_fail(call, DOUBLE_VALIDATION, "%s contains invalid key: Syntax"
							   " error; key: \"%s\"", parameter, entry->string);
	}
	cJSON_ArrayForEach(entry, map)
	{
		if (mark == '#' && !cJSON_IsString(entry))
			return double_fail(call, "SerializationException", "a name is no string");
		if (mark == '#' && entry->valuestring[0] == '\0')
			return double_fail(call, DOUBLE_VALIDATION, "%s contains invalid value: Empty"
							   " attribute name for key %s", parameter, entry->string);
		if (mark == ':' && !double_value_check(entry, &reason))
			return double_fail(call, reason.serialization ? "SerializationException" :
							   DOUBLE_VALIDATION, "%s contains invalid value: %s for key"
							   " %s", parameter, reason.text, entry->string);
	}
	return true;
}

/* Fills the scope from the maps. */
static bool
resolve(double_call *call, double_bound *bound, const cJSON *names, const cJSON *values)
{
	const double_expr *expr = bound->expr;

	bound->scope.names = calloc((size_t) expr->names.count + 1, sizeof(char *));
	bound->scope.values = calloc((size_t) expr->values.count + 1, sizeof(cJSON *));
	for (int i = 0; i < expr->names.count; i++)
	{
		cJSON	   *name = cJSON_GetObjectItemCaseSensitive(names, expr->names.names[i]);

		if (name == NULL)
			return double_fail(call, DOUBLE_VALIDATION, "Invalid %s: An expression"
							   " attribute name used in the document path is not defined;"
							   " attribute name: %s", parameters[expr->use],
							   expr->names.names[i]);
		name->valueint = USED;
		bound->scope.names[i] = name->valuestring;
	}
	for (int i = 0; i < expr->values.count; i++)
	{
		cJSON	   *value = cJSON_GetObjectItemCaseSensitive(values, expr->values.names[i]);

		if (value == NULL)
			return double_fail(call, DOUBLE_VALIDATION, "Invalid %s: An expression"
							   " attribute value used in expression is not defined;"
							   " attribute value: %s", parameters[expr->use],
							   expr->values.names[i]);
		value->valueint = USED;
		bound->scope.values[i] = value;
	}
	return true;
}

/* Each action's path against those before it. */
static bool
check_actions(const double_bound *bound, char *complaint)
{
	for (const double_action *action = bound->expr->actions; action != NULL;
		 action = action->next)
	{
		if (action->operand != NULL &&
			!double_check_operand(action->operand, &bound->scope, complaint))
			return false;
		for (const double_action *before = bound->expr->actions; before != action;
			 before = before->next)
		{
			if (!double_check_overlap(before->path, action->path, &bound->scope, complaint))
				return false;
		}
	}
	return true;
}

static bool
check_paths(const double_bound *bound, char *complaint)
{
	for (const double_node *path = bound->expr->paths; path != NULL; path = path->next)
	{
		for (const double_node *before = bound->expr->paths; before != path;
			 before = before->next)
		{
			if (!double_check_overlap(before, path, &bound->scope, complaint))
				return false;
		}
	}
	return true;
}

/* Keys are scalars: no path leads into them.  Updates find that out later. */
static bool
leads_into(const double_bound *bound, const char *key, char *complaint)
{
	if (bound->expr->condition != NULL &&
		!double_check_scalar_key(bound->expr->condition, &bound->scope, key, complaint))
		return true;
	for (const double_node *path = bound->expr->paths; path != NULL; path = path->next)
	{
		if (!double_check_scalar_key(path, &bound->scope, key, complaint))
			return true;
	}
	return false;
}

bool
double_check_keys(double_call *call)
{
	char		complaint[DOUBLE_COMPLAINT_SIZE];

	for (int use = 0; use < DOUBLE_USE_COUNT; use++)
	{
		for (int i = 0; i < call->table->key.count && call->bound[use].expr != NULL; i++)
		{
			if (leads_into(&call->bound[use], call->table->key.names[i], complaint))
				return double_fail(call, DOUBLE_VALIDATION, "%s", complaint);
		}
	}
	return true;
}

static bool
check_bound(double_call *call, const double_bound *bound)
{
	char		complaint[DOUBLE_COMPLAINT_SIZE];
	const double_expr *expr = bound->expr;

	if ((expr->condition == NULL ||
		 double_check_condition(expr->condition, &bound->scope, complaint)) &&
		check_actions(bound, complaint) && check_paths(bound, complaint))
		return true;
	return double_fail(call, DOUBLE_VALIDATION, "Invalid %s: %s", parameters[expr->use],
					   complaint);
}

static bool
bind_one(double_call *call, double_use use, const cJSON *names, const cJSON *values)
{
	double_bound *bound = &call->bound[use];
	const char *text;

	if (!double_text(call, parameters[use], &text))
		return false;
	if (text == NULL)
		return true;
	bound->expr = parsed(call, use, text);
	return bound->expr != NULL && resolve(call, bound, names, values) &&
		check_bound(call, bound);
}

static bool
check_all_used(double_call *call, const char *parameter, const cJSON *map)
{
	char		unused[DOUBLE_MESSAGE_SIZE / 2];
	size_t		used = 0;
	const cJSON *entry;

	cJSON_ArrayForEach(entry, map)
	{
		if (entry->valueint != USED && used < sizeof(unused))
			used += (size_t) snprintf(unused + used, sizeof(unused) - used, "%s%s",
									  used > 0 ? ", " : "", entry->string);
	}
	if (used == 0)
		return true;
	return double_fail(call, DOUBLE_VALIDATION, "Value provided in %s unused in"
					   " expressions: keys: {%s}", parameter, unused);
}

static cJSON *
member_or_null(const cJSON *request, const char *name)
{
	cJSON	   *member = cJSON_GetObjectItemCaseSensitive(request, name);

	return member == NULL || cJSON_IsNull(member) ? NULL : member;
}

/* Is there an expression, or one that may have values? */
static bool
any_of(const double_call *call, const int *uses, bool with_values)
{
	for (; *uses >= 0; uses++)
	{
		if (member_or_null(call->request, parameters[*uses]) != NULL &&
			!(with_values && *uses == DOUBLE_PROJECTION_EXPRESSION))
			return true;
	}
	return false;
}

/*
 * Placeholders without an expression that could use them.  Empty maps do no
 * harm, and neither do values where there is nothing but a projection ever.
 */
bool
double_check_idle(double_call *call, const int *uses)
{
	const cJSON *names = member_or_null(call->request, "ExpressionAttributeNames");
	const cJSON *values = member_or_null(call->request, "ExpressionAttributeValues");
	bool		any_with_values = any_of(call, uses, true);
	char		missing[128] = "";

	if (names != NULL && names->child != NULL && !any_of(call, uses, false))
		return double_fail(call, DOUBLE_VALIDATION, "ExpressionAttributeNames can only be"
						   " specified when using expressions");
	for (; *uses >= 0; uses++)
	{
		if (*uses != DOUBLE_PROJECTION_EXPRESSION)
			snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), "%s%s",
					 missing[0] == '\0' ? "" : " and ", parameters[*uses]);
	}
	if (values != NULL && values->child != NULL && missing[0] != '\0' &&
		!any_with_values)
		return double_fail(call, DOUBLE_VALIDATION, "ExpressionAttributeValues can only be"
						   " specified when using expressions: %s %s null", missing,
						   strstr(missing, " and ") != NULL ? "are" : "is");
	return true;
}

/* Binds the request's expressions of those uses, but does not look for paths into keys. */
bool
double_bind_only(double_call *call, const int *uses)
{
	cJSON	   *names = member_or_null(call->request, "ExpressionAttributeNames");
	cJSON	   *values = member_or_null(call->request, "ExpressionAttributeValues");

	if (!any_of(call, uses, false))
		return true;
	if (uses[0] == DOUBLE_PROJECTION_EXPRESSION)
		values = NULL;
	if (!check_placeholders(call, "ExpressionAttributeNames", '#', names) ||
		!check_placeholders(call, "ExpressionAttributeValues", ':', values))
		return false;
	for (; *uses >= 0; uses++)
	{
		if (!bind_one(call, (double_use) *uses, names, values))
			return false;
	}
	return check_all_used(call, "ExpressionAttributeNames", names) &&
		check_all_used(call, "ExpressionAttributeValues", values);
}

/* Binds the request's expressions of those uses, the list of which ends with -1. */
bool
double_bind(double_call *call, const int *uses)
{
	return double_bind_only(call, uses) && double_check_keys(call);
}

void
double_bound_free(double_bound *bound)
{
	free(bound->scope.names);
	free(bound->scope.values);
}
