/*-------------------------------------------------------------------------
 *
 * duration.h
 *	  Reads the leaseDuration strings that lock clients write.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DURATION_H
#define DDBLOCK_DYNAMO_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 292 years.  A thousand times as much still fits into an int64_t. */
#define DURATION_MAX_MS (INT64_MAX / 1000000)

/*
 * Decimal milliseconds ("20000", Amazon's Java client and ourselves) or Go's
 * duration format ("20s", "1m30s", "1.5h", "300ms"; the client dynamolock).
 * The result is in milliseconds, rounded up, and at most DURATION_MAX_MS.
 * False for anything else: empty, negative, trailing bytes.
 */
extern bool duration_parse(const char *text, size_t len, int64_t *milliseconds);

#endif							/* DDBLOCK_DYNAMO_DURATION_H */
