/*-------------------------------------------------------------------------
 *
 * dynamo_scan.h
 *	  Pages of lock items, for the codec's replies.
 *
 * Only src/dynamo/dynamo_*.c use it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_DYNAMO_DYNAMO_SCAN_H
#define DDBLOCK_DYNAMO_DYNAMO_SCAN_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "dynamo/dynamo.h"

/*
 * Reads a page from json, which was parsed from body.  *page must be zeroed, and
 * freed afterwards in any case.  DYNAMO_VALIDATION if the table has other keys,
 * DYNAMO_MALFORMED if the page is unusable; *wrong says why, if known.
 */
extern dynamo_status dynamo_page_read(dynamo_page *page, const dynamo_table *table,
									  const cJSON *json, const char *body,
									  size_t len, const char **wrong);

/* May be called twice. */
extern void dynamo_page_free(dynamo_page *page);

#endif							/* DDBLOCK_DYNAMO_DYNAMO_SCAN_H */
