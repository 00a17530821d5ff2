/*-------------------------------------------------------------------------
 *
 * double_value.c
 *	  Attribute values: what is one, how they compare, how large they are.
 *
 * Binary values stay in base64: two of them are equal if their texts are,
 * since only the canonical text is let in.
 *
 *-------------------------------------------------------------------------
 */
#include "double_value.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double_number.h"

static const char *const type_names[] = {
	"", "S", "N", "B", "SS", "NS", "BS", "BOOL", "NULL", "L", "M"
};

#define TYPE_COUNT ((int) (sizeof(type_names) / sizeof(type_names[0])))

double_type
double_type_of_name(const char *name)
{
	for (int i = 1; i < TYPE_COUNT; i++)
	{
		if (strcmp(name, type_names[i]) == 0)
			return (double_type) i;
	}
	return DOUBLE_NONE;
}

const char *
double_type_name(double_type type)
{
	return type_names[type];
}

double_type
double_value_type(const cJSON *value)
{
	if (value == NULL || value->child == NULL)
		return DOUBLE_NONE;
	return double_type_of_name(value->child->string);
}

static bool
wrong(double_reason *reason, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(reason->text, sizeof(reason->text), format, args);
	va_end(args);
	return false;
}

static bool
wrong_shape(double_reason *reason)
{
	reason->serialization = true;
	return wrong(reason, "the value's JSON type does not fit");
}

static int
base64_digit(char c)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c == '\0' ? NULL : strchr(alphabet, c);

	return found == NULL ? -1 : (int) (found - alphabet);
}

/* Padded, and with no bits set that encode nothing. */
static bool
is_base64(const char *text)
{
	size_t		len = strlen(text);
	size_t		digits = len;

	if (len % 4 != 0)
		return false;
	while (digits > 0 && len - digits < 2 && text[digits - 1] == '=')
		digits--;
	for (size_t i = 0; i < digits; i++)
	{
		if (base64_digit(text[i]) < 0)
			return false;
	}
	if (len - digits == 1)
		return (base64_digit(text[digits - 1]) & 3) == 0;
	if (len - digits == 2)
		return (base64_digit(text[digits - 1]) & 15) == 0;
	return true;
}

static size_t
base64_bytes(const char *text)
{
	size_t		len = strlen(text);
	size_t		padding = 0;

	while (padding < len && text[len - 1 - padding] == '=')
		padding++;
	return len / 4 * 3 - padding;
}

/* A scalar text of type S, N or B; a number gets its one spelling. */
static bool
check_text(cJSON *text, double_type type, double_reason *reason)
{
	double_number number;
	char		spelling[DOUBLE_NUMBER_TEXT];
	const char *complaint;

	if (!cJSON_IsString(text))
		return wrong_shape(reason);
	if (type == DOUBLE_B && !is_base64(text->valuestring))
		return wrong_shape(reason);
	if (type != DOUBLE_N)
		return true;

	complaint = double_number_parse(&number, text->valuestring);
	if (complaint != NULL)
		return wrong(reason, "%s", complaint);
	double_number_format(&number, spelling);
	if (strcmp(spelling, text->valuestring) != 0)
	{
		free(text->valuestring);
		text->valuestring = strdup(spelling);
	}
	return true;
}

/* "[a, a]", as far as it fits. */
static void
list_elements(const cJSON *set, char *to, size_t size)
{
	size_t		used = 1;
	const cJSON *element;

	snprintf(to, size, "[");
	cJSON_ArrayForEach(element, set)
	{
		if (used < size)
			used += (size_t) snprintf(to + used, size - used, "%s%s", element->valuestring,
									  element->next != NULL ? ", " : "]");
	}
}

static bool
check_set(cJSON *set, double_type type, double_reason *reason)
{
	double_type of = type == DOUBLE_SS ? DOUBLE_S : type == DOUBLE_NS ? DOUBLE_N : DOUBLE_B;
	char		all[DOUBLE_REASON_SIZE / 2];
	cJSON	   *element;

	if (!cJSON_IsArray(set))
		return wrong_shape(reason);
	if (set->child == NULL && of == DOUBLE_B)
		return wrong(reason, "One or more parameter values were invalid: Binary sets"
					 " should not be empty");
	if (set->child == NULL)
		return wrong(reason, "One or more parameter values were invalid: An %s set "
					 " may not be empty", of == DOUBLE_S ? "string" : "number");
	cJSON_ArrayForEach(element, set)
	{
		if (!check_text(element, of, reason))
			return false;
		for (cJSON *other = set->child; other != element; other = other->next)
		{
			if (strcmp(other->valuestring, element->valuestring) != 0)
				continue;
			if (of == DOUBLE_B)
				return wrong(reason, "One or more parameter values were invalid: Input"
							 " collection of type BS contains duplicates.");
			if (of == DOUBLE_N)
				return wrong(reason, "Input collection contains duplicates");
			list_elements(set, all, sizeof(all));
			return wrong(reason, "One or more parameter values were invalid: "
						 "Input collection %s contains duplicates", all);
		}
	}
	return true;
}

/* Of a list or a map. */
static bool
check_elements(cJSON *all, bool right_shape, double_reason *reason)
{
	cJSON	   *element;

	if (!right_shape)
		return wrong_shape(reason);
	cJSON_ArrayForEach(element, all)
	{
		if (!double_value_check(element, reason))
			return false;
	}
	return true;
}

static bool
check_member(cJSON *member, double_reason *reason)
{
	double_type type = double_type_of_name(member->string);

	switch (type)
	{
		case DOUBLE_S:
		case DOUBLE_N:
		case DOUBLE_B:
			return check_text(member, type, reason);
		case DOUBLE_SS:
		case DOUBLE_NS:
		case DOUBLE_BS:
			return check_set(member, type, reason);
		case DOUBLE_BOOL:
			return cJSON_IsBool(member) || wrong_shape(reason);
		case DOUBLE_NULL:
			if (!cJSON_IsBool(member))
				return wrong_shape(reason);
			return cJSON_IsTrue(member) ||
				wrong(reason, "One or more parameter values were invalid: "
					  "Null attribute value types must have the value of true");
		case DOUBLE_L:
			return check_elements(member, cJSON_IsArray(member), reason);
		default:
			return check_elements(member, cJSON_IsObject(member), reason);
	}
}

/* Members that are null or no type are as good as absent. */
bool
double_value_check(cJSON *value, double_reason *reason)
{
	cJSON	   *next;

	if (!cJSON_IsObject(value))
		return wrong_shape(reason);
	for (cJSON *member = value->child; member != NULL; member = next)
	{
		next = member->next;
		if (cJSON_IsNull(member) || double_type_of_name(member->string) == DOUBLE_NONE)
			cJSON_Delete(cJSON_DetachItemViaPointer(value, member));
	}
	if (value->child == NULL)
		return wrong(reason, "Supplied AttributeValue is empty, must contain exactly one"
					 " of the supported datatypes");
	if (value->child->next != NULL)
		return wrong(reason, "Supplied AttributeValue has more than one datatypes set,"
					 " must contain exactly one of the supported datatypes");
	return check_member(value->child, reason);
}

bool
double_item_check(cJSON *item, double_reason *reason)
{
	cJSON	   *value;

	if (!cJSON_IsObject(item))
		return wrong_shape(reason);
	cJSON_ArrayForEach(value, item)
	{
		if (cJSON_IsNull(value))
			return wrong(reason, "The supplied Item contains a null AttributeValue:"
						 " %.60s is null", value->string);
		if (!double_value_check(value, reason))
			return false;
		if (value->string[0] == '\0')
			return wrong(reason, "Empty attribute name");
	}
	return true;
}

static bool
set_has(const cJSON *set, const char *text)
{
	const cJSON *element;

	cJSON_ArrayForEach(element, set)
	{
		if (strcmp(element->valuestring, text) == 0)
			return true;
	}
	return false;
}

static bool
equal_sets(const cJSON *a, const cJSON *b)
{
	const cJSON *element;

	if (cJSON_GetArraySize(a) != cJSON_GetArraySize(b))
		return false;
	cJSON_ArrayForEach(element, a)
	{
		if (!set_has(b, element->valuestring))
			return false;
	}
	return true;
}

static bool
equal_lists(const cJSON *a, const cJSON *b)
{
	for (a = a->child, b = b->child; a != NULL && b != NULL; a = a->next, b = b->next)
	{
		if (!double_value_equal(a, b))
			return false;
	}
	return a == NULL && b == NULL;
}

static bool
equal_maps(const cJSON *a, const cJSON *b)
{
	const cJSON *value;

	if (cJSON_GetArraySize(a) != cJSON_GetArraySize(b))
		return false;
	cJSON_ArrayForEach(value, a)
	{
		const cJSON *other = cJSON_GetObjectItemCaseSensitive(b, value->string);

		if (other == NULL || !double_value_equal(value, other))
			return false;
	}
	return true;
}

bool
double_value_equal(const cJSON *a, const cJSON *b)
{
	double_type type = double_value_type(a);

	if (type == DOUBLE_NONE || type != double_value_type(b))
		return false;
	switch (type)
	{
		case DOUBLE_S:
		case DOUBLE_N:
		case DOUBLE_B:
			return strcmp(a->child->valuestring, b->child->valuestring) == 0;
		case DOUBLE_BOOL:
		case DOUBLE_NULL:
			return cJSON_IsTrue(a->child) == cJSON_IsTrue(b->child);
		case DOUBLE_L:
			return equal_lists(a->child, b->child);
		case DOUBLE_M:
			return equal_maps(a->child, b->child);
		default:
			return equal_sets(a->child, b->child);
	}
}

/* The byte at an offset of what the base64 text encodes. */
static int
base64_byte(const char *text, size_t at)
{
	const char *group = text + at / 3 * 4;
	int			bits = 0;

	for (int i = 0; i < 4; i++)
		bits = bits << 6 | (group[i] == '=' ? 0 : base64_digit(group[i]));
	return bits >> (16 - 8 * (at % 3)) & 255;
}

static int
compare_binary(const char *a, const char *b)
{
	size_t		a_len = base64_bytes(a);
	size_t		b_len = base64_bytes(b);

	for (size_t i = 0; i < a_len && i < b_len; i++)
	{
		int			difference = base64_byte(a, i) - base64_byte(b, i);

		if (difference != 0)
			return difference;
	}
	return a_len < b_len ? -1 : a_len > b_len;
}

bool
double_value_compare(const cJSON *a, const cJSON *b, int *order)
{
	double_type type = double_value_type(a);
	double_number left,
				right;

	if (type != double_value_type(b))
		return false;
	switch (type)
	{
		case DOUBLE_S:
			*order = strcmp(a->child->valuestring, b->child->valuestring);
			return true;
		case DOUBLE_B:
			*order = compare_binary(a->child->valuestring, b->child->valuestring);
			return true;
		case DOUBLE_N:
			double_number_parse(&left, a->child->valuestring);
			double_number_parse(&right, b->child->valuestring);
			*order = double_number_compare(&left, &right);
			return true;
		default:
			return false;
	}
}

/* Do the bytes of part stand in text at that offset? */
static bool
bytes_stand_at(const char *text, const char *part, size_t at)
{
	for (size_t i = 0; i < base64_bytes(part); i++)
	{
		if (base64_byte(text, at + i) != base64_byte(part, i))
			return false;
	}
	return true;
}

static bool
contains_bytes(const char *text, const char *part)
{
	size_t		len = base64_bytes(text);
	size_t		part_len = base64_bytes(part);

	for (size_t at = 0; at + part_len <= len; at++)
	{
		if (bytes_stand_at(text, part, at))
			return true;
	}
	return false;
}

bool
double_value_begins_with(const cJSON *value, const cJSON *start)
{
	double_type type = double_value_type(value);
	const char *text;
	const char *prefix;

	if (type != double_value_type(start) || (type != DOUBLE_S && type != DOUBLE_B))
		return false;
	text = value->child->valuestring;
	prefix = start->child->valuestring;
	if (type == DOUBLE_S)
		return strncmp(text, prefix, strlen(prefix)) == 0;
	return base64_bytes(prefix) <= base64_bytes(text) && bytes_stand_at(text, prefix, 0);
}

bool
double_value_contains(const cJSON *value, const cJSON *part)
{
	double_type type = double_value_type(value);
	double_type of = double_value_type(part);
	const cJSON *element;

	if (type == DOUBLE_S && of == DOUBLE_S)
		return strstr(value->child->valuestring, part->child->valuestring) != NULL;
	if (type == DOUBLE_B && of == DOUBLE_B)
		return contains_bytes(value->child->valuestring, part->child->valuestring);
	if ((type == DOUBLE_SS && of == DOUBLE_S) || (type == DOUBLE_NS && of == DOUBLE_N) ||
		(type == DOUBLE_BS && of == DOUBLE_B))
		return set_has(value->child, part->child->valuestring);
	if (type != DOUBLE_L)
		return false;
	cJSON_ArrayForEach(element, value->child)
	{
		if (double_value_equal(element, part))
			return true;
	}
	return false;
}

/* Characters, as Java has them: a code point beyond the first 65536 is two. */
static long
text_length(const char *text)
{
	long		length = 0;

	for (; *text != '\0'; text++)
		length += ((unsigned char) *text & 0xc0) != 0x80 ?
			1 + ((unsigned char) *text >= 0xf0) : 0;
	return length;
}

long
double_value_length(const cJSON *value)
{
	switch (double_value_type(value))
	{
		case DOUBLE_S:
			return text_length(value->child->valuestring);
		case DOUBLE_B:
			return (long) base64_bytes(value->child->valuestring);
		case DOUBLE_SS:
		case DOUBLE_NS:
		case DOUBLE_BS:
		case DOUBLE_L:
		case DOUBLE_M:
			return cJSON_GetArraySize(value->child);
		default:
			return -1;
	}
}

/* Two digits a byte, and one or two more. */
static size_t
number_bytes(const char *text)
{
	double_number number;

	double_number_parse(&number, text);
	return (size_t) (number.count + 1) / 2 + 1 + (number.sign < 0);
}

static size_t
text_bytes(const cJSON *text, double_type type)
{
	if (type == DOUBLE_N || type == DOUBLE_NS)
		return number_bytes(text->valuestring);
	if (type == DOUBLE_B || type == DOUBLE_BS)
		return base64_bytes(text->valuestring);
	return strlen(text->valuestring);
}

size_t
double_value_bytes(const cJSON *value)
{
	double_type type = double_value_type(value);
	const cJSON *element;
	size_t		bytes = 0;

	switch (type)
	{
		case DOUBLE_S:
		case DOUBLE_N:
		case DOUBLE_B:
			return text_bytes(value->child, type);
		case DOUBLE_BOOL:
		case DOUBLE_NULL:
			return 1;
		case DOUBLE_L:
		case DOUBLE_M:
			bytes = 3;
			cJSON_ArrayForEach(element, value->child)
				bytes += double_value_bytes(element) + 1 +
				(type == DOUBLE_M ? strlen(element->string) : 0);
			return bytes;
		default:
			cJSON_ArrayForEach(element, value->child)
				bytes += text_bytes(element, type);
			return bytes;
	}
}

size_t
double_item_bytes(const cJSON *item)
{
	const cJSON *value;
	size_t		bytes = 0;

	cJSON_ArrayForEach(value, item)
		bytes += strlen(value->string) + double_value_bytes(value);
	return bytes;
}

cJSON *
double_value_sum(const cJSON *a, const cJSON *b, bool subtract, const char **complaint)
{
	double_number left,
				right,
				sum;
	char		text[DOUBLE_NUMBER_TEXT];
	cJSON	   *value;

	if (double_value_type(a) != DOUBLE_N || double_value_type(b) != DOUBLE_N)
	{
		*complaint = "An operand in the update expression has an incorrect data type";
		return NULL;
	}
	double_number_parse(&left, a->child->valuestring);
	double_number_parse(&right, b->child->valuestring);
	if (subtract)
		right.sign = -right.sign;
	*complaint = double_number_add(&sum, &left, &right);
	if (*complaint != NULL)
		return NULL;
	double_number_format(&sum, text);
	value = cJSON_CreateObject();
	cJSON_AddStringToObject(value, "N", text);
	return value;
}
