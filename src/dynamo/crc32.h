/*-------------------------------------------------------------------------
 *
 * crc32.h
 *	  CRC-32 as in zlib and in DynamoDB's x-amz-crc32 header.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_CRC32_H
#define DDBLOCK_DYNAMO_CRC32_H

#include <stddef.h>
#include <stdint.h>

extern uint32_t crc32_of(const void *bytes, size_t len);

#endif							/* DDBLOCK_DYNAMO_CRC32_H */
