/*-------------------------------------------------------------------------
 *
 * dynamo_json.c
 *	  Reads untrusted JSON, for the codec's replies.
 *
 * cJSON recurses up to a limit fixed when the library was built, accepts any
 * bytes as text, and before 1.7.18 reads past the end of a buffer that is not
 * NUL-terminated (CVE-2023-53154).  Therefore the bytes are checked and copied
 * first.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 character at p, 0 if invalid (RFC 3629). */
static size_t
utf8_length(const uint8_t *p, size_t left)
{
	uint8_t		low = 0x80;
	uint8_t		high = 0xbf;
	size_t		len;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		len = 2;
	else if ((p[0] & 0xf0) == 0xe0)
		len = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		len = 4;
	else
		return 0;

	/* the second byte excludes overlong forms, surrogates, and characters over U+10FFFF */
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (left < len || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
	{
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return len;
}

/* Is it valid UTF-8 without a NUL, and nested within our limit? */
static bool
scan(const uint8_t *body, size_t len)
{
	bool		in_string = false;
	int			depth = 0;
	size_t		step;

	for (size_t i = 0; i < len; i += step)
	{
		step = utf8_length(body + i, len - i);
		if (step == 0 || body[i] == '\0')
			return false;
		if (in_string)
		{
			if (body[i] == '\\' && i + 1 < len && (body[i + 1] == '"' || body[i + 1] == '\\'))
				step = 2;
			else if (body[i] == '"')
				in_string = false;
		}
		else if (body[i] == '"')
			in_string = true;
		else if ((body[i] == '{' || body[i] == '[') && ++depth > DYNAMO_DEPTH_MAX)
			return false;
		else if (body[i] == '}' || body[i] == ']')
			depth--;
	}
	return true;
}

cJSON *
dynamo_json_parse_any(const char *body, size_t len)
{
	char	   *copy;
	cJSON	   *json;

	if (len == 0 || !scan((const uint8_t *) body, len))
		return NULL;
	copy = malloc(len + 1);
	if (copy == NULL)
		return NULL;
	memcpy(copy, body, len);
	copy[len] = '\0';
	json = cJSON_ParseWithLengthOpts(copy, len + 1, NULL, true);
	free(copy);
	return json;
}

cJSON *
dynamo_json_parse(const char *body, size_t len)
{
	cJSON	   *json = dynamo_json_parse_any(body, len);

	if (cJSON_IsObject(json))
		return json;
	cJSON_Delete(json);
	return NULL;
}

const cJSON *
dynamo_json_member(const cJSON *object, const char *name)
{
	if (!cJSON_IsObject(object))
		return NULL;
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

const char *
dynamo_json_text(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(dynamo_json_member(object, name));
}

const char *
dynamo_json_attribute(const cJSON *attributes, const char *name)
{
	return dynamo_json_text(dynamo_json_member(attributes, name), "S");
}

int64_t
dynamo_json_positive(const cJSON *attributes, const char *name)
{
	const char *digits = dynamo_json_text(dynamo_json_member(attributes, name), "N");
	int64_t		value = 0;

	if (digits == NULL)
		return 0;
	for (; *digits != '\0'; digits++)
	{
		int64_t		digit = *digits - '0';

		if (digit < 0 || digit > 9 || value > (INT64_MAX - digit) / 10)
			return 0;
		value = value * 10 + digit;
	}
	return value;
}

bool
dynamo_json_same(const char *a, const char *b)
{
	return a != NULL && b != NULL && strcmp(a, b) == 0;
}

void
dynamo_json_copy(char *to, size_t size, const char *from)
{
	size_t		len;

	if (from == NULL)
	{
		to[0] = '\0';
		return;
	}
	len = strlen(from);
	if (len >= size)
	{
		len = size - 1;
		while (len > 0 && ((unsigned char) from[len] & 0xc0) == 0x80)
			len--;
	}
	memcpy(to, from, len);
	to[len] = '\0';
}
