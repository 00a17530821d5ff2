/*-------------------------------------------------------------------------
 *
 * uuid.h
 *	  UUIDs (RFC 9562): version 4 from the caller's random bytes, and version 8 with a
 *	  time in it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_BASE_UUID_H
#define DDBLOCK_BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>

#define UUID_SIZE 37			/* 36 characters and the NUL */

extern void uuid_v4(const uint8_t random[16], char out[UUID_SIZE]);

/*
 * Turns a version-4 UUID into one of version 8: 48 bits of milliseconds, the group
 * "8ddb", 62 of its random bits.  A time that does not fit becomes the nearest that does.
 */
extern void uuid_put_time(char uuid[UUID_SIZE], int64_t ms);

/* False if the text is no such UUID of version 8. */
extern bool uuid_get_time(const char *uuid, int64_t *ms);

#endif							/* DDBLOCK_BASE_UUID_H */
