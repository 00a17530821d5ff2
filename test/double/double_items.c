/*-------------------------------------------------------------------------
 *
 * double_items.c
 *	  GetItem, PutItem, UpdateItem and DeleteItem.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "double_private.h"

static bool
read_return_values(double_call *call, const char *const *choices, const char **wanted)
{
	return double_choice(call, "ReturnValues", choices, "Return values set to invalid value",
						 wanted);
}

/* Shall a failed condition show the item? */
static bool
read_show(double_call *call, bool *show)
{
	static const char *const choices[] = {"NONE", "ALL_OLD", NULL};
	const char *choice;

	if (!double_choice(call, "ReturnValuesOnConditionCheckFailure", choices,
					   "1 validation error detected: Value '%s' at"
					   " 'returnValuesOnConditionCheckFailure' failed to satisfy"
					   " constraint: Member must satisfy enum value set: [ALL_OLD, NONE]",
					   &choice))
		return false;
	*show = strcmp(choice, "ALL_OLD") == 0;
	return true;
}

bool
double_condition_failed(double_call *call, const double_entry *entry, bool show)
{
	if (show && entry != NULL)
		call->item = cJSON_Duplicate(entry->item, 1);
	return double_fail(call, "ConditionalCheckFailedException",
					   "The conditional request failed");
}

static bool
check_condition(double_call *call, const double_entry *entry, bool show)
{
	const double_bound *bound = &call->bound[DOUBLE_CONDITION_EXPRESSION];

	if (bound->expr == NULL ||
		double_condition_holds(bound->expr->condition, &bound->scope,
							   entry != NULL ? entry->item : NULL))
		return true;
	return double_condition_failed(call, entry, show);
}

bool
double_get_item(double_call *call)
{
	static const int uses[] = {DOUBLE_PROJECTION_EXPRESSION, -1};
	const double_bound *bound = &call->bound[DOUBLE_PROJECTION_EXPRESSION];
	cJSON	   *key;
	double_entry *entry;
	bool		consistent;

	/* DynamoDB Local looks for GetItem's table later than for that of writes. */
	if (!double_look_up_table(call) || !double_check_idle(call, uses) ||
		!double_find_table(call) || !double_bind(call, uses) ||
		!double_read_key(call, "Key", &key))
		return false;
	consistent = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(call->request,
															   "ConsistentRead"));
	entry = double_table_find(call->table, key);
	if (entry != NULL && bound->expr != NULL)
		cJSON_AddItemToObject(call->reply, "Item",
							  double_project(bound->expr->paths, &bound->scope,
											 entry->item));
	else if (entry != NULL)
		cJSON_AddItemReferenceToObject(call->reply, "Item", entry->item);
	double_add_capacity(call, double_read_units(entry != NULL ? entry->bytes : 0,
												consistent));
	return true;
}

bool
double_put_item(double_call *call)
{
	static const int uses[] = {DOUBLE_CONDITION_EXPRESSION, -1};
	static const char *const choices[] = {"NONE", "ALL_OLD", NULL};
	cJSON	   *item = cJSON_GetObjectItemCaseSensitive(call->request, "Item");
	const char *wanted;
	bool		show;
	double_entry *entry;
	size_t		before;
	size_t		after;

	if (!double_find_table(call) || !double_check_idle(call, uses))
		return false;
	if (item == NULL || cJSON_IsNull(item))
		return double_fail(call, DOUBLE_VALIDATION, "Item to put in PutItem cannot be null");
	if (!read_return_values(call, choices, &wanted) ||
		!read_show(call, &show) || !double_check_values(call, item) ||
		!double_check_key_values(call, item) || !double_bind(call, uses))
		return false;
	after = double_item_bytes(item);
	if (after > DOUBLE_ITEM_MAX)
		return double_fail(call, DOUBLE_VALIDATION,
						   "Item size has exceeded the maximum allowed size");
	if (!double_admit(call, item))
		return false;

	entry = double_table_find(call->table, item);
	before = entry != NULL ? entry->bytes : 0;
	if (!check_condition(call, entry, show))
		return false;
	if (entry != NULL && strcmp(wanted, "ALL_OLD") == 0)
	{
		cJSON_AddItemToObject(call->reply, "Attributes", entry->item);
		entry->item = NULL;
	}
	cJSON_DetachItemViaPointer(call->request, item);
	double_table_put(call->table, entry, item);
	double_add_capacity(call, double_write_units(before, after));
	return true;
}

bool
double_delete_item(double_call *call)
{
	static const int uses[] = {DOUBLE_CONDITION_EXPRESSION, -1};
	static const char *const choices[] = {"NONE", "ALL_OLD", NULL};
	const char *wanted;
	bool		show;
	cJSON	   *key;
	double_entry *entry;
	size_t		before;

	if (!double_find_table(call) || !double_check_idle(call, uses) ||
		!read_return_values(call, choices, &wanted) || !read_show(call, &show) ||
		!double_read_key(call, "Key", &key) || !double_bind(call, uses) ||
		!double_admit(call, key))
		return false;
	entry = double_table_find(call->table, key);
	before = entry != NULL ? entry->bytes : 0;
	if (!check_condition(call, entry, show))
		return false;
	if (entry != NULL)
	{
		if (strcmp(wanted, "ALL_OLD") == 0)
		{
			cJSON_AddItemToObject(call->reply, "Attributes", entry->item);
			entry->item = NULL;
		}
		double_table_delete(call->table, entry);
	}
	double_add_capacity(call, double_write_units(before, 0));
	return true;
}

bool
double_check_condition_only(double_call *call)
{
	static const int uses[] = {DOUBLE_CONDITION_EXPRESSION, -1};
	bool		show;
	cJSON	   *key;

	return double_find_table(call) && double_check_idle(call, uses) && read_show(call, &show) &&
		double_read_key(call, "Key", &key) && double_bind(call, uses) &&
		check_condition(call, double_table_find(call->table, key), show);
}

static bool
touches_key(double_call *call, const double_action *actions, const double_scope *scope)
{
	for (; actions != NULL; actions = actions->next)
	{
		const char *name = double_step_name(actions->path->path, scope);

		for (int i = 0; i < call->table->key.count; i++)
		{
			if (strcmp(name, call->table->key.names[i]) != 0)
				continue;
			double_fail(call, DOUBLE_VALIDATION, "One or more parameter values were invalid:"
						" Cannot update attribute %s. This attribute is part of the key",
						name);
			return true;
		}
	}
	return false;
}

static bool
leads_into_key(double_call *call, const double_action *actions, const double_scope *scope)
{
	char		complaint[DOUBLE_COMPLAINT_SIZE];

	for (; actions != NULL; actions = actions->next)
	{
		for (int i = 0; i < call->table->key.count && actions->operand != NULL; i++)
		{
			if (double_check_scalar_key(actions->operand, scope, call->table->key.names[i],
										complaint))
				continue;
			double_fail(call, DOUBLE_VALIDATION, "%s", complaint);
			return true;
		}
	}
	return false;
}

/* Makes the item that the update leads to; the caller stores it. */
bool
double_store_update(double_call *call, double_entry *entry, const double_action *actions,
					const double_scope *scope, const cJSON *key, cJSON **item)
{
	const char *complaint;

	if (touches_key(call, actions, scope) || leads_into_key(call, actions, scope))
		return false;
	*item = double_update_item(actions, scope, entry != NULL ? entry->item : NULL, key,
							   &complaint);
	if (*item == NULL)
		return double_fail(call, DOUBLE_VALIDATION, "%s", complaint);
	if (double_item_bytes(*item) <= DOUBLE_ITEM_MAX)
		return true;
	cJSON_Delete(*item);
	return double_fail(call, DOUBLE_VALIDATION,
					   "Item size to update has exceeded the maximum allowed size");
}

/*
 * The top-level attributes that the update's paths lead into, as they are in
 * the item; a path that leads nowhere there does not count.
 */
static cJSON *
mentioned(const double_action *actions, const double_scope *scope, const cJSON *item)
{
	cJSON	   *result = cJSON_CreateObject();

	for (const double_action *action = actions; action != NULL; action = action->next)
	{
		const char *name = double_step_name(action->path->path, scope);
		const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, name);

		if (double_path_find(action->path->path, scope, item) != NULL &&
			cJSON_GetObjectItemCaseSensitive(result, name) == NULL)
			cJSON_AddItemToObject(result, name, cJSON_Duplicate(value, 1));
	}
	return result;
}

cJSON *
double_returned(const char *return_values, const double_action *actions,
				const double_scope *scope, const cJSON *old, const cJSON *new)
{
	const cJSON *item = strstr(return_values, "OLD") != NULL ? old : new;
	cJSON	   *shown;

	if (strcmp(return_values, "NONE") == 0 || item == NULL)
		return NULL;
	if (strncmp(return_values, "ALL", 3) == 0)
		return cJSON_Duplicate(item, 1);
	shown = mentioned(actions, scope, item);
	if (shown->child != NULL)
		return shown;
	cJSON_Delete(shown);
	return NULL;
}

bool
double_update(double_call *call)
{
	static const int uses[] = {DOUBLE_UPDATE_EXPRESSION, DOUBLE_CONDITION_EXPRESSION, -1};
	static const char *const choices[] = {
		"NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW", NULL
	};
	const double_bound *bound = &call->bound[DOUBLE_UPDATE_EXPRESSION];
	const double_action *actions;
	const char *wanted;
	bool		show;
	cJSON	   *key;
	cJSON	   *item;
	cJSON	   *returned;
	double_entry *entry;
	size_t		before;

	if (!double_find_table(call) || !double_check_idle(call, uses) ||
		!read_return_values(call, choices, &wanted) ||
		!double_read_key(call, "Key", &key) || !double_bind(call, uses) ||
		!read_show(call, &show) || !double_admit(call, key))
		return false;
	entry = double_table_find(call->table, key);
	before = entry != NULL ? entry->bytes : 0;
	actions = bound->expr != NULL ? bound->expr->actions : NULL;
	if (!check_condition(call, entry, show) ||
		!double_store_update(call, entry, actions, &bound->scope, key, &item))
		return false;
	returned = double_returned(wanted, actions, &bound->scope,
							   entry != NULL ? entry->item : NULL, item);
	if (returned != NULL)
		cJSON_AddItemToObject(call->reply, "Attributes", returned);
	double_table_put(call->table, entry, item);
	double_add_capacity(call, double_write_units(before, double_item_bytes(item)));
	return true;
}
