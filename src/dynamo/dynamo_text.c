/*-------------------------------------------------------------------------
 *
 * dynamo_text.c
 *	  Writes JSON into a growing buffer, DynamoDB's values, and what the placeholders in
 *	  expressions stand for.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <ctype.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACEHOLDER_SIZE 33		/* the longest placeholder, with its sign and a NUL */

/* The most placeholders with one sign in a request: an expression of 4 kB has no room for more. */
#define PLACEHOLDERS_MAX 1024

/* Makes room for more bytes and the final NUL; false when memory is short. */
static bool
reserve(dynamo_text *text, size_t more)
{
	size_t		size = text->size;
	char	   *bytes;

	if (text->failed)
		return false;
	if (more < size - text->len)
		return true;
	while (more >= size - text->len)
		size *= 2;
	bytes = realloc(text->bytes, size);
	if (bytes == NULL)
	{
		text->failed = true;
		return false;
	}
	text->bytes = bytes;
	text->size = size;
	return true;
}

void
dynamo_text_append(dynamo_text *text, const void *bytes, size_t len)
{
	if (len == 0 || !reserve(text, len))
		return;
	memcpy(text->bytes + text->len, bytes, len);
	text->len += len;
	text->bytes[text->len] = '\0';
}

/* Puts a comma, if one is needed, before a member or an element. */
static void
separate(dynamo_text *text)
{
	char		last = text->len > 0 ? text->bytes[text->len - 1] : '{';

	if (last != '{' && last != '[' && last != ':' && last != ',')
		dynamo_text_append(text, ",", 1);
}

void
dynamo_text_start(dynamo_text *text, char brace, size_t expected)
{
	text->len = 0;
	text->depth = 0;
	text->size = expected + 1;
	text->bytes = malloc(text->size);
	text->failed = text->bytes == NULL;
	dynamo_text_open(text, NULL, brace);
}

char *
dynamo_text_finish(dynamo_text *text)
{
	dynamo_text_close(text, 0);
	if (!text->failed)
		return text->bytes;
	free(text->bytes);
	return NULL;
}

void
dynamo_text_name(dynamo_text *text, const char *name)
{
	separate(text);
	if (name == NULL)
		return;
	dynamo_text_string(text, name, strlen(name));
	dynamo_text_append(text, ":", 1);
}

void
dynamo_text_open(dynamo_text *text, const char *name, char brace)
{
	dynamo_text_name(text, name);
	dynamo_text_append(text, &brace, 1);
	if (text->depth < (int) sizeof(text->closing))
		text->closing[text->depth++] = brace == '{' ? '}' : ']';
	else
		text->failed = true;
}

void
dynamo_text_close(dynamo_text *text, int depth)
{
	while (text->depth > depth)
		dynamo_text_append(text, &text->closing[--text->depth], 1);
}

void
dynamo_text_raw(dynamo_text *text, const char *format,...)
{
	va_list		args;
	int			len;

	if (strchr(format, '%') == NULL)
		dynamo_text_append(text, format, strlen(format));	/* vsnprintf() is much slower */
	if (text->failed || strchr(format, '%') == NULL)
		return;
	va_start(args, format);
	len = vsnprintf(text->bytes + text->len, text->size - text->len, format, args);
	va_end(args);
	if ((size_t) len >= text->size - text->len)
	{
		if (!reserve(text, (size_t) len))
			return;
		va_start(args, format);
		vsnprintf(text->bytes + text->len, text->size - text->len, format, args);
		va_end(args);
	}
	text->len += (size_t) len;
}

void
dynamo_text_escaped(dynamo_text *text, const char *s, size_t len)
{
	size_t		from = 0;

	for (size_t i = 0; i < len; i++)
	{
		unsigned char c = (unsigned char) s[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		dynamo_text_append(text, s + from, i - from);
		dynamo_text_raw(text, c < 0x20 ? "\\u%04x" : "\\%c", c);
		from = i + 1;
	}
	dynamo_text_append(text, s + from, len - from);
}

void
dynamo_text_string(dynamo_text *text, const char *s, size_t len)
{
	separate(text);
	dynamo_text_append(text, "\"", 1);
	dynamo_text_escaped(text, s, len);
	dynamo_text_append(text, "\"", 1);
}

void
dynamo_text_json(dynamo_text *text, const cJSON *json)
{
	char	   *printed = cJSON_PrintUnformatted(json);

	if (printed != NULL)
		dynamo_text_append(text, printed, strlen(printed));
	text->failed |= printed == NULL;
	cJSON_free(printed);
}

void
dynamo_put_s(dynamo_text *text, const char *name, const char *s)
{
	dynamo_put_text(text, name, s, strlen(s));
}

void
dynamo_put_text(dynamo_text *text, const char *name, const char *s, size_t len)
{
	dynamo_text_name(text, name);
	dynamo_text_append(text, "{\"S\":", 5);
	dynamo_text_string(text, s, len);
	dynamo_text_append(text, "}", 1);
}

void
dynamo_put_n(dynamo_text *text, const char *name, int64_t value)
{
	dynamo_text_name(text, name);
	dynamo_text_raw(text, "{\"N\":\"%" PRId64 "\"}", value);
}

void
dynamo_put_lease(dynamo_text *text, const char *name, int64_t lease_ms)
{
	dynamo_text_name(text, name);
	dynamo_text_raw(text, "{\"S\":\"%" PRId64 "\"}", lease_ms);
}

void
dynamo_put_bytes(dynamo_text *text, const uint8_t *bytes, size_t len)
{
	dynamo_text_raw(text, "{\"B\":\"");
	/* EVP_EncodeBlock() writes a NUL after the text: reserve() has room */
	if (len > 0 && reserve(text, (len + 2) / 3 * 4))
		text->len += (size_t) EVP_EncodeBlock((unsigned char *) text->bytes + text->len,
											  bytes, (int) len);
	dynamo_text_raw(text, "\"}");
}

void
dynamo_put_map(dynamo_text *text, const char *name)
{
	dynamo_text_open(text, name, '{');
	dynamo_text_open(text, "M", '{');
}

void
dynamo_put_table(dynamo_text *text, const char *table)
{
	dynamo_text_name(text, "TableName");
	dynamo_text_string(text, table, strlen(table));
}

void
dynamo_put_key(dynamo_text *text, const dynamo_table *table, dynamo_key key)
{
	dynamo_put_text(text, table->partition_key, key.partition, key.partition_len);
	if (key.sort != NULL)
		dynamo_put_text(text, table->sort_key, key.sort, key.sort_len);
}

bool
dynamo_put_value(dynamo_text *text, const char *name, const dynamo_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		if (strcmp(values[i].name, name) != 0)
			continue;
		if (values[i].text != NULL)
			dynamo_put_s(text, NULL, values[i].text);
		else
			dynamo_put_n(text, NULL, values[i].number);
		return true;
	}
	return false;
}

int
dynamo_number_in(const char *name, const char *letters)
{
	size_t		len = strlen(letters);

	return strncmp(name, letters, len) == 0 && name[len] >= '0' && name[len] <= '9' ?
		atoi(name + len) : -1;
}

void
dynamo_put_attribute_name(dynamo_text *text, const char *name, const dynamo_table *table)
{
	if (strcmp(name, "key") == 0)
		name = table->partition_key;
	else if (strcmp(name, "sort") == 0)
		name = table->sort_key;
	dynamo_text_string(text, name, strlen(name));
}

/*
 * Declares the placeholders with this sign between from and end, each once, in the order of their
 * first use.  Puts nothing if there are none, because DynamoDB refuses an empty set.
 */
static void
put_set(dynamo_text *text, const char *set, char sign, size_t from, size_t end,
		dynamo_stands_for stands_for, const void *of)
{
	int			depth = text->depth;
	int			count = 0;
	char		name[PLACEHOLDER_SIZE];
	struct
	{
		size_t		at;
		size_t		len;
	}			seen[PLACEHOLDERS_MAX];

	for (size_t at = from; at < end && !text->failed; at++)
	{
		const char *sign_at = memchr(text->bytes + at, sign, end - at);
		size_t		len = 1;
		int			i = 0;

		if (sign_at == NULL)
			break;
		at = (size_t) (sign_at - text->bytes);
		/* Expressions stand in JSON, whose colons follow a quote. */
		if (sign == ':' && sign_at[-1] == '"')
			continue;
		while (len + 1 < sizeof(name) && isalnum((unsigned char) sign_at[len]))
			len++;
		memcpy(name, sign_at, len);
		name[len] = '\0';
		while (i < count && (seen[i].len != len || memcmp(text->bytes + seen[i].at, name, len) != 0))
			i++;
		if (i < count)
			continue;
		text->failed |= count == PLACEHOLDERS_MAX;
		if (text->failed)
			return;
		seen[count].at = at;
		seen[count++].len = len;
		if (text->depth == depth)
			dynamo_text_open(text, set, '{');
		dynamo_text_name(text, name);
		if (stands_for != NULL)
			stands_for(text, name + 1, of);
		else
			dynamo_text_string(text, name + 1, len - 1);
	}
	dynamo_text_close(text, depth);
}

void
dynamo_put_placeholders(dynamo_text *text, size_t from, dynamo_stands_for name,
						dynamo_stands_for value, const void *of)
{
	size_t		end = text->len;

	put_set(text, "ExpressionAttributeNames", '#', from, end, name, of);
	put_set(text, "ExpressionAttributeValues", ':', from, end, value, of);
}
