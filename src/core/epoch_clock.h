/*-------------------------------------------------------------------------
 *
 * epoch_clock.h
 *	  What time it is in DynamoDB.
 *
 * Floor 1.  Requests are signed with, and fencing tokens are taken from,
 * DynamoDB's clock as its replies' Date headers tell it, carried forward by
 * our own steady clock.  So it does not matter if somebody sets the machine's
 * wall clock.  Times are in microseconds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_CORE_EPOCH_CLOCK_H
#define DDBLOCK_CORE_EPOCH_CLOCK_H

#include <stdint.h>

/*
 * A reply stamped date_s (epoch seconds, cut to whole ones) answered a request
 * sent at "sent" and was received at "received" on our steady clock.  Returns
 * the offset nearest to the given one that agrees with it: epoch time minus
 * our time.
 */
extern int64_t epoch_offset_agree(int64_t offset, int64_t date_s,
								  int64_t sent, int64_t received);

#endif							/* DDBLOCK_CORE_EPOCH_CLOCK_H */
