/*-------------------------------------------------------------------------
 *
 * double_update.c
 *	  Applies an update to a copy of the item.
 *
 * All that is assigned is computed from the item as it was, and all places
 * are looked up before the first one changes.  Which mistake is found first
 * is as with DynamoDB Local.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "double_expr.h"
#include "double_value.h"

/* Where an action strikes, in the new item. */
typedef struct target
{
	cJSON	   *container;		/* an item, or what stands in an M or L */
	cJSON	   *old;			/* the value that is there, or NULL */
	const char *name;			/* NULL: the container is a list */
	cJSON	   *value;			/* what to put there; NULL: nothing */
} target;

static const char *const no_such_attribute =
	"The provided expression refers to an attribute that does not exist in the item";
static const char *const bad_path =
	"The document path provided in the update expression is invalid for update";
static const char *const bad_operand =
	"An operand in the update expression has an incorrect data type";

static cJSON *assigned_value(const double_node *node, const double_scope *scope,
							 const cJSON *item, const char **complaint);

static cJSON *
joined_lists(cJSON *a, cJSON *b, const char **complaint)
{
	if (double_value_type(a) != DOUBLE_L || double_value_type(b) != DOUBLE_L)
	{
		*complaint = bad_operand;
		return NULL;
	}
	while (b->child->child != NULL)
		cJSON_AddItemToArray(a->child, cJSON_DetachItemFromArray(b->child, 0));
	return cJSON_Duplicate(a, 1);
}

/* list_append, + and - */
static cJSON *
combined_value(const double_node *node, const double_scope *scope, const cJSON *item,
			   const char **complaint)
{
	cJSON	   *left = assigned_value(node->args, scope, item, complaint);
	cJSON	   *right = left == NULL ? NULL :
		assigned_value(node->args->next, scope, item, complaint);
	cJSON	   *result = NULL;

	if (left != NULL && right != NULL)
		result = node->kind == DOUBLE_LIST_APPEND ? joined_lists(left, right, complaint) :
			double_value_sum(left, right, node->kind == DOUBLE_MINUS, complaint);
	cJSON_Delete(left);
	cJSON_Delete(right);
	return result;
}

/* A copy, or NULL and the complaint. */
static cJSON *
assigned_value(const double_node *node, const double_scope *scope, const cJSON *item,
			   const char **complaint)
{
	const cJSON *found;

	switch (node->kind)
	{
		case DOUBLE_VALUE:
			return cJSON_Duplicate(double_value_of(node, scope), 1);
		case DOUBLE_PATH:
			found = double_path_find(node->path, scope, item);
			if (found == NULL)
				*complaint = no_such_attribute;
			return found == NULL ? NULL : cJSON_Duplicate(found, 1);
		case DOUBLE_IF_NOT_EXISTS:
			found = double_path_find(node->args->path, scope, item);
			return found != NULL ? cJSON_Duplicate(found, 1) :
				assigned_value(node->args->next, scope, item, complaint);
		default:
			return combined_value(node, scope, item, complaint);
	}
}

/* False if there is no such place. */
static bool
find_target(target *to, const double_step *step, const double_scope *scope, cJSON *item)
{
	to->container = item;
	to->name = double_step_name(step, scope);
	to->old = cJSON_GetObjectItemCaseSensitive(item, to->name);
	while ((step = step->next) != NULL)
	{
		if (double_value_type(to->old) != (step->index >= 0 ? DOUBLE_L : DOUBLE_M))
			return false;
		to->container = to->old->child;
		to->name = step->index >= 0 ? NULL : double_step_name(step, scope);
		to->old = step->index >= 0 ? cJSON_GetArrayItem(to->container, step->index) :
			cJSON_GetObjectItemCaseSensitive(to->container, to->name);
	}
	return true;
}

static void
strike(target *to)
{
	if (to->value == NULL)
	{
		if (to->old != NULL)
			cJSON_Delete(cJSON_DetachItemViaPointer(to->container, to->old));
		return;
	}
	if (to->old != NULL)
	{
		cJSON_Delete(to->old->child);
		to->old->child = to->value->child;
		to->value->child = NULL;
		cJSON_Delete(to->value);
	}
	else if (to->name != NULL)
		cJSON_AddItemToObject(to->container, to->name, to->value);
	else
		cJSON_AddItemToArray(to->container, to->value);
	to->value = NULL;
}

/* The places of what is assigned, or of what is removed. */
static void
find_targets(target *targets, const double_action *actions, const double_scope *scope,
			 cJSON *copy, bool assigned, const char **complaint)
{
	for (; actions != NULL && *complaint == NULL; actions = actions->next, targets++)
	{
		if ((actions->operand != NULL) == assigned &&
			!find_target(targets, actions->path->path, scope, copy))
			*complaint = bad_path;
	}
}

static void
compute_values(target *targets, const double_action *actions, const double_scope *scope,
			   const cJSON *item, const char **complaint)
{
	for (; actions != NULL && *complaint == NULL; actions = actions->next, targets++)
	{
		if (actions->operand != NULL)
			targets->value = assigned_value(actions->operand, scope, item, complaint);
	}
}

cJSON *
double_update_item(const double_action *actions, const double_scope *scope,
				   const cJSON *item, const cJSON *key, const char **complaint)
{
	cJSON	   *copy = cJSON_Duplicate(item != NULL ? item : key, 1);
	target	   *targets;
	int			count = 0;

	for (const double_action *action = actions; action != NULL; action = action->next)
		count++;
	targets = calloc((size_t) count + 1, sizeof(target));

	*complaint = NULL;
	find_targets(targets, actions, scope, copy, false, complaint);
	compute_values(targets, actions, scope, item != NULL ? item : key, complaint);
	find_targets(targets, actions, scope, copy, true, complaint);
	for (int i = 0; i < count; i++)
	{
		if (*complaint == NULL)
			strike(&targets[i]);
		cJSON_Delete(targets[i].value);
	}
	free(targets);
	if (*complaint == NULL)
		return copy;
	cJSON_Delete(copy);
	return NULL;
}
