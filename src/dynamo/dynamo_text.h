/*-------------------------------------------------------------------------
 *
 * dynamo_text.h
 *	  Writes JSON into a growing buffer: for the codec's request bodies.
 *
 * Only src/dynamo/dynamo_*.c and src/queue use it.  Every lock call needs a body, so it is
 * written directly: a tree of cJSON nodes would cost some fifty allocations.
 *
 * When memory is short, later calls do nothing and dynamo_text_finish() returns
 * NULL, so only that result needs a check.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_TEXT_H
#define DDBLOCK_DYNAMO_DYNAMO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dynamo_text
{
	char	   *bytes;
	size_t		len;
	size_t		size;
	bool		failed;
} dynamo_text;

/* expected: bytes that the text will probably need */
extern void dynamo_text_start(dynamo_text *text, size_t expected);

/* Returns the malloc'd, NUL-terminated text, or NULL when memory was short. */
extern char *dynamo_text_finish(dynamo_text *text);

/* Appends text that is JSON already. */
extern void dynamo_text_raw(dynamo_text *text, const char *json);

/* Appends the escaped content of a JSON string, without quotes. */
extern void dynamo_text_escaped(dynamo_text *text, const char *s, size_t len);

/* Appends a JSON string with its quotes. */
extern void dynamo_text_string(dynamo_text *text, const char *s, size_t len);

extern void dynamo_text_int(dynamo_text *text, int64_t value);

/* Appends standard base64, with padding and without line ends. */
extern void dynamo_text_base64(dynamo_text *text, const uint8_t *data, size_t len);

/* Appends a comma, except after an opening brace or bracket. */
extern void dynamo_text_comma(dynamo_text *text);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_TEXT_H */
