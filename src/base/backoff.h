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
#ifndef DDBLOCK_BASE_BACKOFF_H
#define DDBLOCK_BASE_BACKOFF_H

#include "dynamo/dynamo.h"

#define BACKOFF_BASE_US 20000
#define BACKOFF_CAP_US	1000000

/*
 * A random delay after so many failures in a row (attempt: 1, 2, ...), below cap_us.  The third
 * attempt waits for 0 to 80 ms.
 */
extern int64_t backoff_us(unsigned attempt, int64_t cap_us, uint64_t random);

/*
 * The budget of repetitions, as in the standard mode of AWS SDKs: a call that fails pays, one that
 * succeeds earns, and a repetition that succeeds earns more.  Without a budget, repetitions would
 * be most of the load of an overloaded table, and keep it overloaded.  If a call cannot pay, its
 * repetition waits for longer.
 *
 * Example: 50 calls that time out, at 10 units each, spend the budget.  100 calls that succeed at
 * the first attempt earn 100 units, enough for 20 failures at 5 units.
 */
#define BACKOFF_BUDGET 500

/*
 * What a call with this status pays, 0 if that is no failure; and what a call earns that succeeds.
 */
extern int backoff_price(dynamo_status status);
extern int backoff_earned(bool repeated);

/* Starts as zero. */
typedef struct backoff_budget
{
	int			spent;			/* units, from 0 to BACKOFF_BUDGET */
	bool		cannot_pay;		/* the last call failed, and could not pay for that */
} backoff_budget;

/* A call with so many items (a batch) has ended.  repeated: some of the items had failed before. */
extern void backoff_charge(backoff_budget *budget, const dynamo_reply *reply, int count, bool repeated);

/* As backoff_us(); but cap_us longer if the call could not pay. */
extern int64_t backoff_later_us(bool cannot_pay, unsigned attempt, int64_t cap_us, uint64_t random);

#endif							/* DDBLOCK_BASE_BACKOFF_H */
