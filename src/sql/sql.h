/*-------------------------------------------------------------------------
 *
 * sql.h
 *	  What the SQL functions share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SQL_SQL_H
#define DDBLOCK_SQL_SQL_H

#include "access/tupdesc.h"

#include "session/session.h"

/* ----------------------------------------------------------------
 * arguments.c: Reads and checks the arguments that the SQL functions share.
 *
 * Each raises 22023 with the argument's name and limit, before any request is
 * sent.
 * ----------------------------------------------------------------
 */

/* Raises the error if the argument is NULL. */
extern void ArgumentRequire(FunctionCallInfo fcinfo, int number, const char *name);

/* A text in UTF-8; a lock's name, not checked yet. */
extern char *ArgumentUtf8(Datum value);
extern LockName ArgumentToName(Datum value);

/* Returns the text, if it has 1 to most bytes. */
extern char *ArgumentCheckLength(const char *name, char *utf8, size_t most);

/* Argument 0; raises 55000, too, if the server has not preloaded the library. */
extern LockName ArgumentName(FunctionCallInfo fcinfo);

/* The same, for what concerns other sessions' locks, too: see name.c. */
extern LockName ArgumentAllowedName(FunctionCallInfo fcinfo);

#define YEAR_MS (366 * DAY_MS)
#define CENTURY_MS (100 * YEAR_MS)	/* can be counted in microseconds as well */

/* Milliseconds of an interval, rounded up, but less than least_ms if the interval is. */
extern int64 ArgumentDuration(FunctionCallInfo fcinfo, int number, const char *name,
							  int64 least_ms);

/* Milliseconds; if_null if the argument is NULL. */
extern int64 ArgumentLease(FunctionCallInfo fcinfo, int number, int64 if_null);

/* Milliseconds, greater than 0; CENTURY_MS for more.  if_null if the argument is NULL. */
extern int64 ArgumentPeriod(FunctionCallInfo fcinfo, int number, const char *name, int64 if_null);

/* Milliseconds, greater than 0 and at most max_ms, which is max in words. */
extern int64 ArgumentTime(FunctionCallInfo fcinfo, int number, const char *name, int64 max_ms,
						  const char *max);

extern bool ArgumentBool(FunctionCallInfo fcinfo, int number, const char *name);

/* > 0 */
extern int64 ArgumentPositive(FunctionCallInfo fcinfo, int number, const char *name);

/*
 * Arguments 0 to 2, how a table is created: its capacity is both > 0, or both 0 if they are
 * NULL.
 */
extern dynamo_creation ArgumentCreation(FunctionCallInfo fcinfo);

/* 1 .. max, which is the value of argument max_name, if not NULL. */
extern int32 ArgumentCount(FunctionCallInfo fcinfo, int number, const char *name, int32 max,
						   const char *max_name);

/* False if the argument is NULL. */
extern bool ArgumentIsTrue(FunctionCallInfo fcinfo, int number);

/* NULL if the argument is NULL. */
extern const uint8 *ArgumentData(FunctionCallInfo fcinfo, int number, size_t *len);

/* ----------------------------------------------------------------
 * attributes.c: Additional attributes of a lock, between jsonb and DynamoDB's JSON.
 * ----------------------------------------------------------------
 */

/*
 * An argument of type jsonb, as DynamoDB's JSON; NULL if there are none.  Raises 22023 for
 * what cannot be kept beside data_len bytes of data.
 */
extern const char *ArgumentAttributes(FunctionCallInfo fcinfo, int number, size_t data_len);

/* What an item has, as plain JSON in UTF-8, as a jsonb without the table's keys. */
extern Datum AttributesShow(const char *json, size_t len, bool *isnull);

/* ----------------------------------------------------------------
 * keep_tokens.c: Tokens that are recorded never fall, also by rows from elsewhere.
 * ----------------------------------------------------------------
 */

/* The table of this name in the schema of the extension, whose function is called. */
extern const char *KeepTable(FunctionCallInfo fcinfo, const char *name);

/* Raises: the owner of the table may have added a trigger or a rule.  what: "the token" */
pg_noreturn extern void KeepNotRecorded(const char *table, const char *what);

/* SPI_execute_with_args() of our own write to ddb_fences or ddb_queue_done. */
extern int	KeepExecute(const char *command, int count, Oid *types, Datum *values,
						const char *nulls);

/* ----------------------------------------------------------------
 * queue_arguments.c: Reads and checks the arguments that the functions of queues share.
 *
 * Each raises 22023 with the argument's name and limit, or 42501 if the session may not
 * use that name, before any request is sent.
 * ----------------------------------------------------------------
 */

/* Arguments 0 and 1: queue, resource; or raises 55000: this server has no queues. */
extern QueueName QueueArgument(FunctionCallInfo fcinfo);

/* The same on a server that has not preloaded the library: ask neither worker nor DynamoDB. */
extern QueueName QueueArgumentAnywhere(FunctionCallInfo fcinfo);

/* Argument 0: a queue; the session must be allowed all of its resources. */
extern QueueName QueueArgumentQueue(FunctionCallInfo fcinfo);

/* The same, whatever the session is allowed: its resources are named elsewhere. */
extern const char *QueueArgumentName(FunctionCallInfo fcinfo);

/* Arguments 0 and 1, if the resource may be NULL. */
extern QueueName QueueArgumentAny(FunctionCallInfo fcinfo);

extern QueueName QueueCheckName(Datum queue, Datum resource);

/* The text of a jsonb, UTF-8. */
extern char *QueueCheckPayload(Datum payload);

/* A caller's id, UTF-8. */
extern char *QueueCheckId(Datum id);

/* Milliseconds, from least to most; if_null if the argument is NULL. */
extern int64 QueueArgumentTime(FunctionCallInfo fcinfo, int number, const char *name,
							   int64 least_ms, int64 most_ms, int64 if_null);

/* A message for people, UTF-8, cut to fit; "" if the argument is NULL. */
extern char *QueueArgumentError(FunctionCallInfo fcinfo, int number);

/* ----------------------------------------------------------------
 * row.c: A row that a function returns, filled column by column.
 *
 * Columns have the names of the function's OUT parameters.  One that the function lacks is left
 * out: the extension may have an older version than the library.
 * ----------------------------------------------------------------
 */

#define ROW_COLUMNS_MAX 32

typedef struct Row
{
	TupleDesc	columns;
	Datum		values[ROW_COLUMNS_MAX];
	bool		nulls[ROW_COLUMNS_MAX];
} Row;

/* All columns are null.  A function that returns a set has called InitMaterializedSRF(). */
extern void RowStart(Row *row, FunctionCallInfo fcinfo);
extern void RowSet(Row *row, const char *column, Datum value);

/* For people: what the database's encoding cannot say becomes question marks.  "" is null. */
extern void RowText(Row *row, const char *column, const char *utf8);

/*
 * For programs: exact, or reported.  With an elevel below ERROR it then stays null, so that no
 * program takes it for another value.  "" is null.
 */
extern void RowValue(Row *row, const char *column, int elevel, const char *what,
					 const char *utf8);

extern void RowInterval(Row *row, const char *column, int64 microseconds);

/* A time on our clock, see SegmentNow(); and DynamoDB's time in milliseconds, if it is one. */
extern void RowClock(Row *row, const char *column, int64 moment);
extern void RowEpoch(Row *row, const char *column, int64 epoch_ms);

/* An item's attributes: what it lacks stays null. */
extern void RowHolder(Row *row, const dynamo_holder *holder);
extern void RowLease(Row *row, const dynamo_item *item);
extern void RowToken(Row *row, const dynamo_item *item);


/* As the next row of a function that returns a set. */
extern void RowPut(Row *row, FunctionCallInfo fcinfo);

/* As the result of a function that returns one row. */
extern Datum RowResult(Row *row);

/* An array of int8. */
extern Datum RowNumbers(const int64 *numbers, int count);

#endif							/* DDBLOCK_SQL_SQL_H */
