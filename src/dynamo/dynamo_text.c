/*-------------------------------------------------------------------------
 *
 * dynamo_text.c
 *	  Writes JSON into a growing buffer: for the codec's request bodies.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
dynamo_text_start(dynamo_text *text, size_t expected)
{
	text->len = 0;
	text->size = expected + 1;
	text->bytes = malloc(text->size);
	text->failed = text->bytes == NULL;
}

char *
dynamo_text_finish(dynamo_text *text)
{
	if (text->failed)
	{
		free(text->bytes);
		return NULL;
	}
	text->bytes[text->len] = '\0';
	return text->bytes;
}

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

static void
append(dynamo_text *text, const char *bytes, size_t len)
{
	if (!reserve(text, len))
		return;
	memcpy(text->bytes + text->len, bytes, len);
	text->len += len;
}

void
dynamo_text_raw(dynamo_text *text, const char *json)
{
	append(text, json, strlen(json));
}

static void
append_escape(dynamo_text *text, unsigned char c)
{
	char		escape[8];

	if (c == '"' || c == '\\')
		snprintf(escape, sizeof(escape), "\\%c", c);
	else
		snprintf(escape, sizeof(escape), "\\u%04x", c);
	dynamo_text_raw(text, escape);
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
		append(text, s + from, i - from);
		append_escape(text, c);
		from = i + 1;
	}
	append(text, s + from, len - from);
}

void
dynamo_text_string(dynamo_text *text, const char *s, size_t len)
{
	append(text, "\"", 1);
	dynamo_text_escaped(text, s, len);
	append(text, "\"", 1);
}

void
dynamo_text_int(dynamo_text *text, int64_t value)
{
	char		digits[24];

	snprintf(digits, sizeof(digits), "%" PRId64, value);
	dynamo_text_raw(text, digits);
}

void
dynamo_text_base64(dynamo_text *text, const uint8_t *data, size_t len)
{
	/* EVP_EncodeBlock() writes a NUL after the text: reserve() has room */
	if (len == 0 || !reserve(text, (len + 2) / 3 * 4))
		return;
	text->len += (size_t) EVP_EncodeBlock((unsigned char *) text->bytes + text->len,
										  data, (int) len);
}

void
dynamo_text_comma(dynamo_text *text)
{
	char		last = text->len > 0 ? text->bytes[text->len - 1] : '{';

	if (last != '{' && last != '[')
		append(text, ",", 1);
}
