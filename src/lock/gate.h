/*-------------------------------------------------------------------------
 *
 * gate.h
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
 * of every reply.  If no call is in flight, the gate asks for one.
 *
 * Both questions follow one policy.  A failed call is repeated, with backoff
 * while requests wait at the gate, else after RETRY_US. A refusal fails the
 * requests that wait, and the gate forgets it: the next request makes it ask
 * again.
 *
 * Like the lock manager, the gate is a pure state machine: it reads no clock
 * and sends nothing.  The host asks gate_passes() for each request, keeps those
 * that do not pass, and settles them by gate_judge() after each event.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_GATE_H
#define DDBLOCK_LOCK_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "dynamo/dynamo.h"

/* What ddblock.global_table_region says. */
typedef enum gate_pin
{
	GATE_NOT_PINNED,
	GATE_PINNED_HERE,
	GATE_PINNED_ELSEWHERE
} gate_pin;

/* What becomes of a request that waits. */
typedef enum gate_verdict
{
	GATE_PASS,
	GATE_WAIT,
	GATE_FAIL,					/* DynamoDB refused, or did not answer in time */
	GATE_GLOBAL_TABLE,			/* message: the Regions of its replicas */
	GATE_OTHER_REGION
} gate_verdict;

/* The texts of a failed call, or of a refusal. */
typedef struct gate_words
{
	dynamo_status status;
	char		message[DYNAMO_MESSAGE_SIZE];
} gate_words;

/* What the host should ask DynamoDB now. */
typedef enum gate_question
{
	GATE_ASK_NOTHING,
	GATE_ASK_TABLE,				/* DescribeTable; then gate_described() */
	GATE_ASK_TIME				/* any read; then gate_time_answered() */
} gate_question;

/* One of the two questions. */
typedef struct gate_call
{
	bool		in_flight;
	int64_t		due;
	unsigned	failures;		/* in a row, while requests wait */
} gate_call;

typedef struct gate
{
	gate_pin	pin;
	bool		fit;			/* the table, as far as known; a later worker of the
								 * same server starts with it */
	bool		time_known;
	bool		waited_for;		/* a request did not pass, and is not settled */
	bool		eventual;		/* the last description said so */
	gate_call	table;
	gate_call	time;
	gate_words	unknown;		/* why a fact is not known yet */
	gate_verdict refusal;		/* of the requests that waited ... */
	int64_t		refused_at;		/* ... at this time */
	gate_words	refused;
} gate;

extern void gate_init(gate *g, gate_pin pin, bool fit, bool time_known);

/* May this request pass? If not, gate_ask() returns a question at once. */
extern bool gate_passes(gate *g, int64_t now);

/* No request waits any more. */
extern void gate_idle(gate *g);

/* What to ask now.  The gate assumes that the host asks it. */
extern gate_question gate_ask(gate *g, int64_t now);

/* When to call gate_ask() at the latest; INT64_MAX: never. */
extern int64_t gate_next_wake(const gate *g);

/*
 * A reply to DescribeTable: the gate's own, or a session's, whose failures do
 * not count.  True if the table has just been found unfit: the log should say so.
 */
extern bool gate_described(gate *g, const dynamo_reply *reply, bool own,
						   uint64_t random, int64_t now);

/* A reply has made the time known. */
extern void gate_time_known(gate *g);

/* The reply to GATE_ASK_TIME; call gate_time_known() before it. */
extern void gate_time_answered(gate *g, const dynamo_reply *reply, uint64_t random,
							   int64_t now);

/* A call found no table.  A new table of that name may be a global one. */
extern void gate_missing(gate *g);

/*
 * The verdict on a request that has waited since then.  GATE_WAIT: *until is
 * when to call again at the latest.  The verdicts that refuse: *words says why,
 * and every request that has waited since *until or longer gets the same
 * verdict.
 */
extern gate_verdict gate_judge(const gate *g, int64_t since, int64_t now,
							   int64_t patience_us, const gate_words **words,
							   int64_t *until);

#endif							/* DDBLOCK_LOCK_GATE_H */
