/*-------------------------------------------------------------------------
 *
 * crc32.c
 *	  CRC-32 as in zlib and in DynamoDB's x-amz-crc32 header.
 *
 * The reflected polynomial 0xEDB88320, four bits at a time: replies are small,
 * and a table of 16 can be checked by eye.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo.h"

uint32_t
crc32_of(const void *bytes, size_t len)
{
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
		0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
		0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	const uint8_t *at = bytes;
	uint32_t	crc = 0xffffffff;

	while (len-- > 0)
	{
		crc ^= *at++;
		crc = table[crc & 15] ^ (crc >> 4);
		crc = table[crc & 15] ^ (crc >> 4);
	}
	return crc ^ 0xffffffff;
}
