/*-------------------------------------------------------------------------
 *
 * double_value.h
 *	  Attribute values, {"S":"..."} and so on, as cJSON objects.
 *
 * A value that has been checked has exactly one member, and numbers in
 * DynamoDB's own spelling: what is stored is what will be returned.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DOUBLE_VALUE_H
#define DOUBLE_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

typedef enum double_type
{
	DOUBLE_NONE,				/* no value */
	DOUBLE_S,
	DOUBLE_N,
	DOUBLE_B,
	DOUBLE_SS,
	DOUBLE_NS,
	DOUBLE_BS,
	DOUBLE_BOOL,
	DOUBLE_NULL,
	DOUBLE_L,
	DOUBLE_M
} double_type;

#define DOUBLE_REASON_SIZE 256

/* What is wrong with a value, if it is. */
typedef struct double_reason
{
	bool		serialization;	/* not even JSON of the right shape */
	char		text[DOUBLE_REASON_SIZE];
} double_reason;

/* Checks and normalises, in place; false: *reason tells. */
extern bool double_value_check(cJSON *value, double_reason *reason);

/* The same for a map of them: an item or a key. */
extern bool double_item_check(cJSON *item, double_reason *reason);

extern double_type double_value_type(const cJSON *value);
extern const char *double_type_name(double_type type);

/* DOUBLE_NONE if there is no such type */
extern double_type double_type_of_name(const char *name);

extern bool double_value_equal(const cJSON *a, const cJSON *b);

/* False if the two cannot be ordered: other types than S, N and B, or not the same. */
extern bool double_value_compare(const cJSON *a, const cJSON *b, int *order);

extern bool double_value_begins_with(const cJSON *value, const cJSON *start);
extern bool double_value_contains(const cJSON *value, const cJSON *part);

/* As the function size() has it; -1 if the type has none. */
extern long double_value_length(const cJSON *value);

/* Bytes that count for limits and capacity. */
extern size_t double_value_bytes(const cJSON *value);
extern size_t double_item_bytes(const cJSON *item);

/* A new value of type N, or NULL and DynamoDB's complaint. */
extern cJSON *double_value_sum(const cJSON *a, const cJSON *b, bool subtract,
							   const char **complaint);

#endif							/* DOUBLE_VALUE_H */
