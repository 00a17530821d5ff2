/*-------------------------------------------------------------------------
 *
 * uuid.h
 *	  Version-4 UUIDs (RFC 9562) from the caller's random bytes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_UUID_H
#define DDBLOCK_LOCK_UUID_H

#include <stdint.h>

#define UUID_SIZE 37			/* 36 characters and the NUL */

extern void uuid_v4(const uint8_t random[16], char out[UUID_SIZE]);

#endif							/* DDBLOCK_LOCK_UUID_H */
