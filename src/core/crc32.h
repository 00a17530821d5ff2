/*-------------------------------------------------------------------------
 *
 * crc32.h
 *	  CRC-32 as in zlib and in DynamoDB's x-amz-crc32 header.
 *
 * Floor 1.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_CORE_CRC32_H
#define DDBLOCK_CORE_CRC32_H

#include <stddef.h>
#include <stdint.h>

extern uint32_t crc32_of(const void *bytes, size_t len);

#endif							/* DDBLOCK_CORE_CRC32_H */
