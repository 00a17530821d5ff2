/*-------------------------------------------------------------------------
 *
 * join_list.c
 *	  The value of ddblock.join_locks: holds that a session joins.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/join_list.h"

#include <stddef.h>

static bool
read_token(const char **at, int64_t *token)
{
	int64_t		value = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++)
	{
		int			digit = **at - '0';

		if (value > (INT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*token = value;
	return value > 0;
}

/* -1: it is none. */
static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* One byte of a name; -1: it is none. */
static int
read_byte(const char **at)
{
	const char *c = *at;
	int			high;
	int			low;

	if (*c != '%')
	{
		*at = c + 1;
		return *c > 0x20 && *c < 0x7f ? *c : -1;
	}
	high = hex_digit(c[1]);
	low = high >= 0 ? hex_digit(c[2]) : -1;
	if (low < 0 || (high == 0 && low == 0))
		return -1;
	*at = c + 3;
	return high * 16 + low;
}

static const char *
read_name(const char **at, char name[DYNAMO_NAME_MAX + 1])
{
	size_t		len = 0;

	while (**at != '\0' && **at != ',')
	{
		int			byte = read_byte(at);

		if (byte < 0)
			return "A name has a character that must be written as %XX.";
		if (len == DYNAMO_NAME_MAX)
			return "A name is too long.";
		name[len++] = (char) byte;
	}
	name[len] = '\0';
	return len > 0 ? NULL : "A name is empty.";
}

bool
join_list_next(const char **at, join_entry *entry, const char **wrong)
{
	*wrong = NULL;
	if (**at == '\0')
		return false;
	if (!read_token(at, &entry->token) || **at != ':')
	{
		*wrong = "An entry must begin with a token and a colon.";
		return false;
	}
	(*at)++;
	*wrong = read_name(at, entry->name);
	if (*wrong == NULL && **at == ',' && (*at)[1] == '\0')
		*wrong = "The list must not end with a comma.";
	if (*wrong == NULL && **at == ',')
		(*at)++;
	return *wrong == NULL;
}
