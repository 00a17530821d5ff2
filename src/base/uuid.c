/*-------------------------------------------------------------------------
 *
 * uuid.c
 *	  UUIDs (RFC 9562): see uuid.h.
 *
 *-------------------------------------------------------------------------
 */
#include "base/uuid.h"

#include <stdio.h>
#include <string.h>

#define TIME_MAX	((INT64_C(1) << 48) - 1)

static const char hex[] = "0123456789abcdef";

void
uuid_v4(const uint8_t random[16], char out[UUID_SIZE])
{
	char	   *to = out;

	for (int i = 0; i < 16; i++)
	{
		uint8_t		byte = random[i];

		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		if (i == 6)
			byte = 0x40 | (byte & 0x0f);	/* version 4 */
		else if (i == 8)
			byte = 0x80 | (byte & 0x3f);	/* the RFC's variant */
		*to++ = hex[byte >> 4];
		*to++ = hex[byte & 0x0f];
	}
	*to = '\0';
}

void
uuid_put_time(char uuid[UUID_SIZE], int64_t ms)
{
	char		rest[UUID_SIZE];
	int64_t		time = ms < 0 ? 0 : ms > TIME_MAX ? TIME_MAX : ms;

	memcpy(rest, uuid + 18, UUID_SIZE - 18);
	snprintf(uuid, UUID_SIZE, "%08x-%04x-8ddb%.18s", (unsigned) (time >> 16),
			 (unsigned) (time & 0xffff), rest);
}

bool
uuid_get_time(const char *uuid, int64_t *ms)
{
	static const char form[] = "xxxxxxxx-xxxx-8ddb-vxxx-xxxxxxxxxxxx";
	int64_t		time = 0;

	for (int i = 0; i < UUID_SIZE; i++)
	{
		const char *digit = uuid[i] != '\0' ? strchr(hex, uuid[i]) : NULL;
		bool		fits = form[i] == 'x' ? digit != NULL :
			form[i] == 'v' ? digit != NULL && strchr("89ab", uuid[i]) != NULL :
			uuid[i] == form[i];

		if (!fits)
			return false;
		if (i < 13 && form[i] == 'x')
			time = time * 16 + (digit - hex);
	}
	*ms = time;
	return true;
}
