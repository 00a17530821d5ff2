/*-------------------------------------------------------------------------
 *
 * uuid.c
 *	  Version-4 UUIDs (RFC 9562) from the caller's random bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/uuid.h"

void
uuid_v4(const uint8_t random[16], char out[UUID_SIZE])
{
	static const char hex[] = "0123456789abcdef";
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
