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

#include "dynamo/dynamo.h"

#define BACKOFF_BASE_US 20000
#define BACKOFF_CAP_US	1000000

/* attempt: failures so far, from 1; cap_us: the longest delay */
extern int64_t backoff_us(unsigned attempt, int64_t cap_us, uint64_t random);

/*
 * The budget of repetitions, as the standard mode of AWS SDKs has it: a call that fails pays, one
 * that succeeds earns, and a repetition that succeeds earns more.  Without it, repetitions would be
 * most of the load of a table that is overloaded, and would keep it so.  Whoever cannot pay waits for
 * longer.  Starts as zero.
 */
#define BACKOFF_BUDGET 500

/* What a call pays for its status, 0 if that is no failure; what a success earns. */
extern int backoff_price(dynamo_status status);
extern int backoff_earned(bool repeated);

typedef struct backoff_budget
{
	int			spent;
	bool		cannot_pay;		/* the last call could not */
} backoff_budget;

/* A call of so many items has ended.  repeated: some of them, after a failure. */
extern void backoff_pay(backoff_budget *budget, const dynamo_reply *reply, int count, bool repeated);

/* As backoff_us(), but from cap_us to twice as long for those who cannot pay. */
extern int64_t backoff_later_us(bool cannot_pay, unsigned attempt, int64_t cap_us, uint64_t random);

#endif							/* DDBLOCK_LOCK_BACKOFF_H */
