/*-------------------------------------------------------------------------
 *
 * conjuncts.h
 *	  Takes the condition of a request apart: what its ANDs join.
 *
 * For tests that show that each part is needed: the request without it must be one
 * that DynamoDB accepts, so placeholders and parameters that only it used go, too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_TEST_CONJUNCTS_H
#define DDBLOCK_TEST_CONJUNCTS_H

#include <ctype.h>

#include "../unit.h"
#include <cjson/cJSON.h>

#define CONJUNCTS_MAX 48
#define CONJUNCT_SIZE 256

typedef struct conjuncts
{
	int			count;
	char		text[CONJUNCTS_MAX][CONJUNCT_SIZE];
} conjuncts;

/* Splits at each AND that is in no parentheses. */
static inline void
split_condition(conjuncts *parts, const char *condition)
{
	int			depth = 0;
	size_t		len = 0;

	parts->count = 0;
	for (const char *at = condition;; at++)
	{
		bool		end = *at == '\0' || (depth == 0 && strncmp(at, " AND ", 5) == 0);

		depth += (*at == '(') - (*at == ')');
		if (!end)
		{
			assert_true(len + 1 < CONJUNCT_SIZE);
			parts->text[parts->count][len++] = *at;
			continue;
		}
		parts->text[parts->count++][len] = '\0';
		assert_true(parts->count < CONJUNCTS_MAX);
		len = 0;
		if (*at == '\0')
			break;
		at += 4;
	}
}

/* All but one, joined again; may be empty. */
static inline void
join_condition(const conjuncts *parts, int without, char *to, size_t size)
{
	size_t		used = 0;

	to[0] = '\0';
	for (int i = 0; i < parts->count; i++)
	{
		if (i != without)
			used += (size_t) snprintf(to + used, size - used, "%s%s",
									  used > 0 ? " AND " : "", parts->text[i]);
	}
	assert_true(used < size);
}

/* Is the placeholder in the expression? */
static inline bool
mentions(const char *expression, const char *placeholder)
{
	size_t		len = strlen(placeholder);

	for (const char *at = expression; (at = strstr(at, placeholder)) != NULL; at++)
	{
		if (!isalnum((unsigned char) at[len]))
			return true;
	}
	return false;
}

static inline const char *
text_of(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	return text != NULL ? text : "";
}

static inline void
drop_unused(cJSON *request, const char *placeholders)
{
	cJSON	   *all = cJSON_GetObjectItemCaseSensitive(request, placeholders);
	cJSON	   *next;

	for (cJSON *one = all->child; one != NULL; one = next)
	{
		next = one->next;
		if (!mentions(text_of(request, "UpdateExpression"), one->string) &&
			!mentions(text_of(request, "ConditionExpression"), one->string))
			cJSON_Delete(cJSON_DetachItemViaPointer(all, one));
	}
}

/* ---- an UpdateItem ---- */

static inline void
conjuncts_of_update(conjuncts *parts, const cJSON *request)
{
	split_condition(parts, text_of(request, "ConditionExpression"));
}

static inline void
drop_from_update(cJSON *request, int without)
{
	char		condition[4096];
	conjuncts	parts;

	conjuncts_of_update(&parts, request);
	join_condition(&parts, without, condition, sizeof(condition));
	if (condition[0] != '\0')
		cJSON_ReplaceItemInObjectCaseSensitive(request, "ConditionExpression",
											   cJSON_CreateString(condition));
	else
		cJSON_DeleteItemFromObjectCaseSensitive(request, "ConditionExpression");
	drop_unused(request, "ExpressionAttributeNames");
	drop_unused(request, "ExpressionAttributeValues");
}

/* ---- a batch of one PartiQL statement ---- */

static inline cJSON *
only_statement(const cJSON *request)
{
	return cJSON_GetObjectItemCaseSensitive(request, "Statements")->child;
}

static inline int
count_parameters(const char *text)
{
	int			count = 0;

	for (; *text != '\0'; text++)
		count += *text == '?';
	return count;
}

/* The statement in three: up to WHERE, the condition, the rest. */
static inline void
conjuncts_of_batch(conjuncts *parts, const cJSON *request, char *head, char *tail)
{
	const char *text = text_of(only_statement(request), "Statement");
	const char *where = strstr(text, " WHERE ") + 7;
	const char *end = strstr(where, " RETURNING");
	char		condition[1024];

	if (end == NULL)
		end = where + strlen(where);
	snprintf(condition, sizeof(condition), "%.*s", (int) (end - where), where);
	split_condition(parts, condition);
	sprintf(head, "%.*s", (int) (where - text), text);
	strcpy(tail, end);
}

static inline void
drop_from_batch(cJSON *request, int without)
{
	char		head[1024];
	char		tail[1024];
	char		condition[1024];
	char		text[3072];
	conjuncts	parts;
	cJSON	   *statement = only_statement(request);
	int			before;

	conjuncts_of_batch(&parts, request, head, tail);
	join_condition(&parts, without, condition, sizeof(condition));
	before = count_parameters(head);
	for (int i = 0; i < without; i++)
		before += count_parameters(parts.text[i]);
	if (count_parameters(parts.text[without]) > 0)
		cJSON_DeleteItemFromArray(cJSON_GetObjectItemCaseSensitive(statement, "Parameters"),
								  before);
	snprintf(text, sizeof(text), "%s%s%s", head, condition, tail);
	cJSON_ReplaceItemInObjectCaseSensitive(statement, "Statement", cJSON_CreateString(text));
}

#endif							/* DDBLOCK_TEST_CONJUNCTS_H */
