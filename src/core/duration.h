/*-------------------------------------------------------------------------
 *
 * duration.h
 *	  Reads the leaseDuration strings that lock clients write.
 *
 * Floor 1.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_CORE_DURATION_H
#define DDBLOCK_CORE_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decimal milliseconds ("20000", Amazon's Java client and ourselves) or Go's
 * duration format ("20s", "1m30s", "1.5h", "300ms"; the client dynamolock).
 * Result in milliseconds, rounded up.  False for anything else: empty,
 * negative, trailing bytes, or a result over INT64_MAX / 1000000.
 */
extern bool duration_parse(const char *text, size_t len, int64_t *milliseconds);

#endif							/* DDBLOCK_CORE_DURATION_H */
