/*-------------------------------------------------------------------------
 *
 * dynamo_json.h
 *	  Reads untrusted JSON, for the codec's replies.
 *
 * Only src/dynamo/dynamo_*.c and src/queue use it.  The result of dynamo_json_parse() is
 * bounded in size and depth, and every string in it is valid UTF-8.  A string
 * ends at a U+0000, because cJSON's strings are C strings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_JSON_H
#define DDBLOCK_DYNAMO_DYNAMO_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL if the bytes are not exactly one JSON object, or memory is short. */
extern cJSON *dynamo_json_parse(const char *body, size_t len);

/* The object's member; NULL if there is none, or object is not an object. */
extern const cJSON *dynamo_json_member(const cJSON *object, const char *name);

/* The text of a string member, else NULL. */
extern const char *dynamo_json_text(const cJSON *object, const char *name);

/* The text of an item's attribute {"S":"..."}; NULL if it is missing or not an S. */
extern const char *dynamo_json_attribute(const cJSON *attributes, const char *name);

/*
 * An N attribute that is an integer in 1 .. 2^63-1, else 0.  DynamoDB prints
 * numbers in plain digits, without sign, point or exponent if it can.
 */
extern int64_t dynamo_json_positive(const cJSON *attributes, const char *name);

/* Are both there, and the same? */
extern bool dynamo_json_same(const char *a, const char *b);

/* Copies valid UTF-8, cut at a character's boundary if it does not fit. */
extern void dynamo_json_copy(char *to, size_t size, const char *from);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_JSON_H */
