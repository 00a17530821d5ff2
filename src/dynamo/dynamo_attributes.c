/*-------------------------------------------------------------------------
 *
 * dynamo_attributes.c
 *	  Additional attributes of a lock item: what its holder says about the
 *	  lock, as attributes of their own.
 *
 * Their names are in attributeNames, a JSON array in a text.  So the next
 * holder can name and remove them: see "Additional attributes" in
 * doc/internals/protocol.md.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_plain(dynamo_text *text, const cJSON *value);

/* Is it an array of texts that name attributes which a lock does not have? */
static bool
are_names(const cJSON *names)
{
	const cJSON *name;

	if (!cJSON_IsArray(names))
		return false;
	cJSON_ArrayForEach(name, names)
	{
		if (!cJSON_IsString(name) || name->valuestring[0] == '\0' ||
			dynamo_is_attribute(name->valuestring))
			return false;
	}
	return true;
}

/* A JSON array; dynamo_json_parse() reads objects. */
static cJSON *
parse_names(const char *names)
{
	size_t		size = strlen(names) + sizeof("{\"names\":}");
	char	   *object = malloc(size);
	cJSON	   *json;
	cJSON	   *array = NULL;

	if (object == NULL)
		return NULL;
	snprintf(object, size, "{\"names\":%s}", names);
	json = dynamo_json_parse(object, size - 1);
	free(object);
	if (json != NULL && cJSON_GetArraySize(json) == 1)
		array = cJSON_DetachItemFromObjectCaseSensitive(json, "names");
	cJSON_Delete(json);
	if (array != NULL && !are_names(array))
	{
		cJSON_Delete(array);
		return NULL;
	}
	return array;
}

char *
dynamo_attribute_names(const char *attributes)
{
	cJSON	   *object = dynamo_json_parse(attributes, strlen(attributes));
	const cJSON *member;
	dynamo_text text;

	dynamo_text_start(&text, strlen(attributes));
	dynamo_text_raw(&text, "[");
	cJSON_ArrayForEach(member, object)
	{
		dynamo_text_comma(&text);
		dynamo_text_string(&text, member->string, strlen(member->string));
	}
	dynamo_text_raw(&text, "]");
	text.failed |= object == NULL;
	cJSON_Delete(object);
	return dynamo_text_finish(&text);
}

bool
dynamo_extras_start(dynamo_extras *extras, const dynamo_write *write)
{
	*extras = (dynamo_extras) {NULL, NULL};
	if (write->attributes != NULL)
		extras->set = dynamo_json_parse(write->attributes, strlen(write->attributes));
	if (write->old_attributes != NULL)
		extras->old = parse_names(write->old_attributes);
	return (write->attributes != NULL) == (extras->set != NULL) &&
		(write->old_attributes != NULL) == (extras->old != NULL);
}

void
dynamo_extras_end(dynamo_extras *extras)
{
	cJSON_Delete(extras->set);
	cJSON_Delete(extras->old);
}

static void
put_number(dynamo_text *text, const char *before, int number)
{
	dynamo_text_raw(text, before);
	dynamo_text_int(text, number);
}

void
dynamo_put_extras_set(dynamo_text *text, const dynamo_extras *extras)
{
	int			count = cJSON_GetArraySize(extras->set);

	for (int i = 0; i < count; i++)
	{
		put_number(text, ", #a", i);
		put_number(text, " = :a", i);
	}
	if (extras->set != NULL)
		dynamo_text_raw(text, ", #attributeNames = :attributeNames");
}

/* What is set anew must not be removed as well. */
static bool
is_removed(const dynamo_extras *extras, const cJSON *name)
{
	return dynamo_json_member(extras->set, name->valuestring) == NULL;
}

void
dynamo_put_extras_remove(dynamo_text *text, const dynamo_extras *extras)
{
	const cJSON *name;
	int			i = 0;

	cJSON_ArrayForEach(name, extras->old)
	{
		if (is_removed(extras, name))
			put_number(text, ", #o", i);
		i++;
	}
	if (extras->old != NULL && extras->set == NULL)
		dynamo_text_raw(text, ", #attributeNames");
}

static void
put_extra_name(dynamo_text *text, char letter, int number, const char *name)
{
	char		placeholder[24];

	snprintf(placeholder, sizeof(placeholder), "#%c%d", letter, number);
	dynamo_put_name(text, placeholder);
	dynamo_text_string(text, name, strlen(name));
}

void
dynamo_put_extras_names(dynamo_text *text, const dynamo_extras *extras)
{
	const cJSON *member;
	int			i = 0;

	cJSON_ArrayForEach(member, extras->set)
	{
		put_extra_name(text, 'a', i++, member->string);
	}
	i = 0;
	cJSON_ArrayForEach(member, extras->old)
	{
		if (is_removed(extras, member))
			put_extra_name(text, 'o', i, member->valuestring);
		i++;
	}
}

void
dynamo_put_extras_values(dynamo_text *text, const dynamo_extras *extras,
						 const dynamo_write *write)
{
	const cJSON *member;
	char	   *names;
	int			i = 0;

	cJSON_ArrayForEach(member, extras->set)
	{
		char	   *value = cJSON_PrintUnformatted(member);
		char		placeholder[24];

		snprintf(placeholder, sizeof(placeholder), ":a%d", i++);
		dynamo_put_name(text, placeholder);
		if (value != NULL)
			dynamo_text_raw(text, value);
		text->failed |= value == NULL;
		cJSON_free(value);
	}
	if (extras->set == NULL)
		return;
	names = dynamo_attribute_names(write->attributes);
	if (names != NULL)
		dynamo_put_s_member(text, ":attributeNames", names);
	text->failed |= names == NULL;
	free(names);
}

/* Is it a number as JSON writes it?  Others may have written the item. */
static bool
is_number(const char *s)
{
	s += *s == '-';
	if (*s == '0')
		s++;
	else if (*s >= '1' && *s <= '9')
		s += strspn(s, "0123456789");
	else
		return false;
	if (*s == '.')
	{
		size_t		digits = strspn(s + 1, "0123456789");

		if (digits == 0)
			return false;
		s += 1 + digits;
	}
	if (*s == 'e' || *s == 'E')
	{
		size_t		digits;

		s += 1 + (s[1] == '+' || s[1] == '-');
		digits = strspn(s, "0123456789");
		if (digits == 0 || digits > 3)
			return false;
		s += digits;
	}
	return *s == '\0';
}

static void
put_scalar(dynamo_text *text, const cJSON *value, bool number)
{
	const char *s = cJSON_GetStringValue(value);

	if (s == NULL)
		dynamo_text_raw(text, "null");
	else if (number && is_number(s))
		dynamo_text_raw(text, s);
	else
		dynamo_text_string(text, s, strlen(s));
}

static void
put_set(dynamo_text *text, const cJSON *members, bool numbers)
{
	const cJSON *member;

	dynamo_text_raw(text, "[");
	cJSON_ArrayForEach(member, members)
	{
		dynamo_text_comma(text);
		put_scalar(text, member, numbers);
	}
	dynamo_text_raw(text, "]");
}

static void
put_list(dynamo_text *text, const cJSON *members)
{
	const cJSON *member;

	dynamo_text_raw(text, "[");
	cJSON_ArrayForEach(member, members)
	{
		dynamo_text_comma(text);
		put_plain(text, member);
	}
	dynamo_text_raw(text, "]");
}

static void
put_member(dynamo_text *text, const cJSON *member)
{
	dynamo_text_comma(text);
	dynamo_text_string(text, member->string, strlen(member->string));
	dynamo_text_raw(text, ":");
	put_plain(text, member);
}

static void
put_map(dynamo_text *text, const cJSON *members)
{
	const cJSON *member;

	dynamo_text_raw(text, "{");
	cJSON_ArrayForEach(member, members)
	{
		put_member(text, member);
	}
	dynamo_text_raw(text, "}");
}

/*
 * {"S":"x"} as "x", and so on; bytes as base64.  What is no value of DynamoDB's is null.
 * The depth is that of dynamo_json_parse().
 */
static void
put_plain(dynamo_text *text, const cJSON *value)
{
	const cJSON *typed = cJSON_IsObject(value) ? value->child : NULL;
	const char *type = typed != NULL ? typed->string : "";

	if (strcmp(type, "S") == 0 || strcmp(type, "B") == 0)
		put_scalar(text, typed, false);
	else if (strcmp(type, "N") == 0)
		put_scalar(text, typed, true);
	else if (strcmp(type, "BOOL") == 0)
		dynamo_text_raw(text, cJSON_IsTrue(typed) ? "true" : "false");
	else if (strcmp(type, "L") == 0)
		put_list(text, typed);
	else if (strcmp(type, "M") == 0)
		put_map(text, typed);
	else if (strcmp(type, "SS") == 0 || strcmp(type, "BS") == 0)
		put_set(text, typed, false);
	else if (strcmp(type, "NS") == 0)
		put_set(text, typed, true);
	else
		dynamo_text_raw(text, "null");
}

/* The names that its holder, a ddblock, has set. */
static void
put_ours(dynamo_text *text, const cJSON *attributes, const cJSON *names)
{
	const cJSON *name;

	cJSON_ArrayForEach(name, names)
	{
		const cJSON *member = dynamo_json_member(attributes, name->valuestring);

		if (member != NULL)
			put_member(text, member);
	}
}

/* Whatever another client's item has; its keys, too, whose names the codec does not know. */
static void
put_others(dynamo_text *text, const cJSON *attributes)
{
	const cJSON *member;

	cJSON_ArrayForEach(member, attributes)
	{
		if (!dynamo_is_attribute(member->string))
			put_member(text, member);
	}
}

void
dynamo_attributes_read(const cJSON *attributes, bool shared, dynamo_item *item)
{
	const char *text = dynamo_json_attribute(attributes, "attributeNames");
	cJSON	   *names = text != NULL ? parse_names(text) : NULL;
	dynamo_text out;

	item->bad_names = dynamo_json_member(attributes, "attributeNames") != NULL && names == NULL;
	if (names != NULL)
		item->attribute_names = strdup(text);
	if (!item->released && !shared && (!item->by_ddblock || names != NULL))
	{
		dynamo_text_start(&out, 1024);
		dynamo_text_raw(&out, "{");
		if (item->by_ddblock)
			put_ours(&out, attributes, names);
		else
			put_others(&out, attributes);
		dynamo_text_raw(&out, "}");
		item->attributes = dynamo_text_finish(&out);
	}
	cJSON_Delete(names);
}
