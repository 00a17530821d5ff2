/*-------------------------------------------------------------------------
 *
 * backoff.h
 *	  How long to wait before a request is repeated.
 *
 * Exponential backoff with full jitter: a random time below a bound that
 * doubles.  Source: AWS Architecture Blog, "Exponential
 * Backoff And Jitter" (2015).
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_BACKOFF_H
#define DDBLOCK_LOCK_BACKOFF_H

#include <stdint.h>

#define BACKOFF_BASE_US 20000
#define BACKOFF_CAP_US	1000000

/* attempt: failures so far, from 1; cap_us: the longest delay */
extern int64_t backoff_us(unsigned attempt, int64_t cap_us, uint64_t random);

#endif							/* DDBLOCK_LOCK_BACKOFF_H */
