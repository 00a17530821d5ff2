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

#include <stdlib.h>
#include <string.h>

static const char *const lock_attributes[] = {
	"ownerName", "recordVersionNumber", "leaseDuration", "fencingToken", "holder", "data",
	"isReleased", "releasedAt", "ttl", "releasedVersion", "shared", "attributeNames", "keptUntil",
	"wanted", NULL
};

const char *
dynamo_attribute(int number)
{
	return lock_attributes[number];
}

static bool
is_one_of(const char *name, const char *const *names)
{
	while (*names != NULL && strcmp(name, *names) != 0)
		names++;
	return *names != NULL;
}

bool
dynamo_is_attribute(const char *name)
{
	return is_one_of(name, lock_attributes);
}

char *
dynamo_attribute_names(const char *attributes)
{
	cJSON	   *object = dynamo_json_parse(attributes, strlen(attributes));
	const cJSON *member;
	dynamo_text text;

	dynamo_text_start(&text, '[', strlen(attributes));
	cJSON_ArrayForEach(member, object)
	{
		dynamo_text_string(&text, member->string, strlen(member->string));
	}
	text.failed |= object == NULL;
	cJSON_Delete(object);
	return dynamo_text_finish(&text);
}

/*
 * Parses an array of names of additional attributes.  NULL: it is no array of texts, or names an
 * attribute of lock items.
 */
static cJSON *
parse_names(const char *names)
{
	cJSON	   *array = dynamo_json_parse_any(names, strlen(names));
	bool		right = cJSON_IsArray(array);
	const cJSON *name;

	cJSON_ArrayForEach(name, array)
	{
		right = right && cJSON_IsString(name) && name->valuestring[0] != '\0' &&
			!dynamo_is_attribute(name->valuestring);
	}
	if (right)
		return array;
	cJSON_Delete(array);
	return NULL;
}

void
dynamo_parse_extras(dynamo_request *request)
{
	const char *attributes = request->write->attributes;
	const char *old = request->write->old_attributes;

	if (attributes != NULL)
		request->set = dynamo_json_parse(attributes, strlen(attributes));
	if (old != NULL)
		request->old = parse_names(old);
	if ((attributes != NULL && request->set == NULL) || (old != NULL && request->old == NULL))
		request->text.failed = true;
}

void
dynamo_put_extras_set(dynamo_request *request)
{
	int			count = cJSON_GetArraySize(request->set);

	for (int i = 0; i < count; i++)
		dynamo_text_raw(&request->text, ", #a%d = :a%d", i, i);
	if (request->set != NULL)
		dynamo_text_raw(&request->text, ", #attributeNames = :attributeNames");
}

/* Names attributes of an earlier holder to remove, but not those that the write sets anew. */
void
dynamo_put_extras_remove(dynamo_request *request)
{
	const cJSON *name;
	int			i = 0;

	cJSON_ArrayForEach(name, request->old)
	{
		if (dynamo_json_member(request->set, name->valuestring) == NULL)
			dynamo_text_raw(&request->text, ", #o%d", i);
		i++;
	}
	if (request->old != NULL && request->set == NULL)
		dynamo_text_raw(&request->text, ", #attributeNames");
}

const char *
dynamo_extra_name(const dynamo_request *request, const char *name)
{
	int			set = dynamo_number_in(name, "a");
	int			old = dynamo_number_in(name, "o");

	if (set >= 0)
		return cJSON_GetArrayItem(request->set, set)->string;
	return old >= 0 ? cJSON_GetArrayItem(request->old, old)->valuestring : NULL;
}

bool
dynamo_put_extra_value(dynamo_text *text, const char *name, const dynamo_request *request)
{
	int			set = dynamo_number_in(name, "a");
	char	   *names;

	if (set >= 0)
	{
		dynamo_text_json(text, cJSON_GetArrayItem(request->set, set));
		return true;
	}
	if (strcmp(name, "attributeNames") != 0)
		return false;
	names = dynamo_attribute_names(request->write->attributes);
	dynamo_put_s(text, NULL, names != NULL ? names : "");
	text->failed |= names == NULL;
	free(names);
	return true;
}

/* Is the text a number as JSON writes it?  Another client may have written the item. */
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

	dynamo_text_name(text, NULL);
	if (s == NULL)
		dynamo_text_raw(text, "null");
	else if (number && is_number(s))
		dynamo_text_raw(text, "%s", s);
	else
		dynamo_text_string(text, s, strlen(s));
}

/*
 * Appends DynamoDB's JSON as plain JSON: {"S":"x"} as "x", bytes as base64.  What is no value of
 * DynamoDB's becomes null.  The recursion is as deep as dynamo_json_parse() allows.
 */
static void
put_plain(dynamo_text *text, const char *name, const cJSON *value)
{
	static const char *const scalars[] = {"S", "N", "B", NULL};
	static const char *const several[] = {"M", "L", "SS", "NS", "BS", NULL};
	const cJSON *typed = cJSON_IsObject(value) ? value->child : NULL;
	const char *type = typed != NULL ? typed->string : "";

	dynamo_text_name(text, name);
	if (is_one_of(type, scalars))
		put_scalar(text, typed, *type == 'N');
	else if (is_one_of(type, several))
	{
		int			depth = text->depth;
		const cJSON *member;

		dynamo_text_open(text, NULL, *type == 'M' ? '{' : '[');
		cJSON_ArrayForEach(member, typed)
		{
			if (*type == 'M')
				put_plain(text, member->string, member);
			else if (*type == 'L')
				put_plain(text, NULL, member);
			else
				put_scalar(text, member, *type == 'N');
		}
		dynamo_text_close(text, depth);
	}
	else if (strcmp(type, "BOOL") == 0)
		dynamo_text_raw(text, cJSON_IsTrue(typed) ? "true" : "false");
	else
		dynamo_text_raw(text, "null");
}

void
dynamo_attributes_read(const cJSON *attributes, bool shared, dynamo_item *item)
{
	const char *text = dynamo_json_attribute(attributes, "attributeNames");
	cJSON	   *names = text != NULL ? parse_names(text) : NULL;

	item->bad_names = dynamo_json_member(attributes, "attributeNames") != NULL && names == NULL;
	if (names != NULL)
		item->attribute_names = strdup(text);
	if (!item->released && !shared && (!item->by_ddblock || names != NULL))
	{
		const cJSON *list = item->by_ddblock ? names : attributes;
		const cJSON *each;
		dynamo_text out;

		/*
		 * If a ddblock holds the lock: the attributes that it has named.  If another client does:
		 * all that lock items do not have.  The table's keys are among these, because their names
		 * are not known here.
		 */
		dynamo_text_start(&out, '{', 1024);
		cJSON_ArrayForEach(each, list)
		{
			const cJSON *member = each;

			if (item->by_ddblock)
				member = dynamo_json_member(attributes, each->valuestring);
			else if (dynamo_is_attribute(each->string))
				member = NULL;
			if (member != NULL)
				put_plain(&out, member->string, member);
		}
		item->attributes = dynamo_text_finish(&out);
	}
	cJSON_Delete(names);
}
