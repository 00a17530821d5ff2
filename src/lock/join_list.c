/*-------------------------------------------------------------------------
 *
 * join_list.c
 *	  The value of ddblock.join_locks: holds that a session joins.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/join_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool
read_token(const char **at, int64_t *token)
{
	char	   *end;

	if (!isdigit((unsigned char) **at))
		return false;			/* strtoll() would take blanks, and a sign */
	errno = 0;
	*token = strtoll(*at, &end, 10);
	*at = end;
	return *token > 0 && errno == 0;
}

/* Reads one byte of a name; -1 if there is no valid one. */
static int
read_byte(const char **at)
{
	const char *c = *at;
	char		digits[3] = "";
	int			byte;

	if (*c != '%')
	{
		*at = c + 1;
		return *c > 0x20 && *c < 0x7f ? *c : -1;
	}
	if (!isxdigit((unsigned char) c[1]) || !isxdigit((unsigned char) c[2]))
		return -1;
	memcpy(digits, c + 1, 2);
	byte = (int) strtol(digits, NULL, 16);
	*at = c + 3;
	return byte > 0 ? byte : -1;
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
