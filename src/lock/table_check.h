/*-------------------------------------------------------------------------
 *
 * table_check.h
 *	  Decides whether locks may be acquired.  Two facts must be known first:
 *	  that the lock table is fit, and DynamoDB's time.
 *
 * In a global table with eventual consistency two Regions would both grant a
 * lock.  So either a setting pins the only Region in which locks are acquired,
 * or DescribeTable must say that the table is not of that kind: at the start,
 * after a call has found no table, and every hour, because a table can become
 * a global one.  An outage changes nothing that was known.
 *
 * Fencing tokens come from DynamoDB's time.  The host learns it from the Date
 * of every reply.  If no call is in flight, the check asks for one.
 *
 * Both questions follow one policy.  A failed call is repeated, with backoff
 * while requests wait, else after RETRY_US.  A refusal fails the requests that
 * wait, and the check forgets it: the next request makes it ask again.
 *
 * Like the lock manager, the check is a pure state machine: it reads no clock
 * and sends nothing.  The host asks table_check_passes() for each request.  After
 * each event it asks table_check_judge() what becomes of the requests that wait.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_TABLE_CHECK_H
#define DDBLOCK_LOCK_TABLE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "dynamo/dynamo.h"

/* What ddblock.global_table_region says. */
typedef enum table_check_pin
{
	TABLE_CHECK_NOT_PINNED,
	TABLE_CHECK_PINNED_HERE,
	TABLE_CHECK_PINNED_ELSEWHERE
} table_check_pin;

/* What becomes of a request that waits. */
typedef enum table_check_verdict
{
	TABLE_CHECK_PASS,
	TABLE_CHECK_WAIT,
	TABLE_CHECK_FAIL,					/* DynamoDB refused, or did not answer in time */
	TABLE_CHECK_GLOBAL_TABLE,			/* message: the Regions of its replicas */
	TABLE_CHECK_OTHER_REGION
} table_check_verdict;

/* Status and message of a failed call, or of a refusal. */
typedef struct table_check_words
{
	dynamo_status status;
	char		message[DYNAMO_MESSAGE_SIZE];
} table_check_words;

/* What the host should ask DynamoDB now. */
typedef enum table_check_question
{
	TABLE_CHECK_ASK_NOTHING,
	TABLE_CHECK_ASK_TABLE,		/* DescribeTable; then table_check_described() */
	TABLE_CHECK_ASK_TIME		/* any read; then table_check_time_answered() */
} table_check_question;

/* The state of one of the two questions. */
typedef struct table_check_call
{
	bool		in_flight;
	int64_t		due;
	unsigned	failures;		/* in a row, while requests wait */
} table_check_call;

typedef struct table_check
{
	table_check_pin pin;
	bool		fit;			/* the table, as far as known; a later worker of the
								 * same server starts with it */
	bool		time_known;
	bool		waited_for;		/* a request did not pass the check, and waits */
	bool		eventual;		/* the last description was of a global table with eventual
								 * consistency */
	table_check_call table;
	table_check_call time;
	table_check_words unknown;	/* why the table's fitness or the time is not known yet */
	table_check_verdict refusal;	/* the verdict on the requests that waited at refused_at */
	int64_t		refused_at;		/* time of the last refusal; INT64_MIN: none */
	table_check_words refused;	/* status and message of that refusal */
} table_check;

extern void table_check_init(table_check *check, table_check_pin pin, bool fit, bool time_known);

/* May this request pass? If not, table_check_ask() returns a question at once. */
extern bool table_check_passes(table_check *check, int64_t now);

/* No request waits any more. */
extern void table_check_idle(table_check *check);

/* What to ask DynamoDB now.  The check takes it for granted that the host asks that. */
extern table_check_question table_check_ask(table_check *check, int64_t now);

/* When to call table_check_ask() at the latest; INT64_MAX: never. */
extern int64_t table_check_next_wake(const table_check *check);

/*
 * A reply to DescribeTable: the check's own, or a session's, whose failures do
 * not count.  True if the table has just been found unfit: the log should say so.
 */
extern bool table_check_described(table_check *check, const dynamo_reply *reply, bool own,
								  uint64_t random, int64_t now);

/* A reply has made the time known. */
extern void table_check_time_known(table_check *check);

/* The reply to TABLE_CHECK_ASK_TIME; call table_check_time_known() before it. */
extern void table_check_time_answered(table_check *check, const dynamo_reply *reply,
									  uint64_t random, int64_t now);

/*
 * A call has found no table.  A new table of that name may be a global one, so the check asks
 * again.
 */
extern void table_check_missing(table_check *check);

/*
 * The verdict on a request that has waited since the given time.
 *
 *	 - TABLE_CHECK_WAIT: *until is when to call again at the latest.
 *	 - The verdicts that refuse: *words says why.  Every request that has waited since *until or
 *	   longer gets the same verdict.
 */
extern table_check_verdict table_check_judge(const table_check *check, int64_t since, int64_t now,
											 int64_t patience_us, const table_check_words **words,
											 int64_t *until);

#endif							/* DDBLOCK_LOCK_TABLE_CHECK_H */
