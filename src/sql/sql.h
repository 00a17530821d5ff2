/*-------------------------------------------------------------------------
 *
 * sql.h
 *	  What the files of this room give each other.
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
 * Each function raises 22023 for an invalid argument, with its name and limit, before any request
 * is sent.  number: the argument's, from 0.  name: the argument's, for the error.
 * ----------------------------------------------------------------
 */

/* Raises the error if the argument is NULL. */
extern void ArgumentRequire(FunctionCallInfo fcinfo, int number, const char *name);

/* Converts a text to UTF-8; to a lock's name, which it does not check. */
extern char *ArgumentUtf8(Datum value);
extern LockName ArgumentToName(Datum value);

/* Returns the text.  Raises if it is empty, or has more than "most" bytes. */
extern char *ArgumentCheckLength(const char *name, char *utf8, size_t most);

/*
 * Argument 0, the name of a lock.  For functions that concern only locks of this session.  Also
 * raises 55000 if the server has not preloaded the library.
 */
extern LockName ArgumentName(FunctionCallInfo fcinfo);

/* As ArgumentName(), but also raises 42501 as PrefixRequire() does.  For all other functions. */
extern LockName ArgumentAllowedName(FunctionCallInfo fcinfo);

#define YEAR_MS (366 * DAY_MS)
#define CENTURY_MS (100 * YEAR_MS)	/* in microseconds, it still fits into int64 */

/*
 * The milliseconds of an interval, rounded up.  An interval below least_ms does not become least_ms
 * by rounding, so the caller can refuse it.
 */
extern int64 ArgumentDuration(FunctionCallInfo fcinfo, int number, const char *name,
							  int64 least_ms);

/* The length of a lease in milliseconds; if_null if the argument is NULL. */
extern int64 ArgumentLease(FunctionCallInfo fcinfo, int number, int64 if_null);

/*
 * A time in milliseconds, which must be greater than 0.  CENTURY_MS if it is longer than that;
 * if_null if the argument is NULL.
 */
extern int64 ArgumentPeriod(FunctionCallInfo fcinfo, int number, const char *name, int64 if_null);

/* A time in milliseconds, which must be greater than 0 and at most max_ms.  max: that in words. */
extern int64 ArgumentTime(FunctionCallInfo fcinfo, int number, const char *name, int64 max_ms,
						  const char *max);

extern bool ArgumentBool(FunctionCallInfo fcinfo, int number, const char *name);

/* A number, which must be greater than 0. */
extern int64 ArgumentPositive(FunctionCallInfo fcinfo, int number, const char *name);

/*
 * Arguments 0 to 2: how a table is created.  The two capacities must be both NULL, or both greater
 * than 0.
 */
extern dynamo_creation ArgumentCreation(FunctionCallInfo fcinfo);

/* A number from 1 to max.  max_name: the argument whose value max is; NULL: max is a constant. */
extern int32 ArgumentCount(FunctionCallInfo fcinfo, int number, const char *name, int32 max,
						   const char *max_name);

/* False if the argument is NULL. */
extern bool ArgumentIsTrue(FunctionCallInfo fcinfo, int number);

/* A lock's data; NULL if the argument is NULL. */
extern const uint8 *ArgumentData(FunctionCallInfo fcinfo, int number, size_t *len);

/* ----------------------------------------------------------------
 * attributes.c: Additional attributes of a lock, between jsonb and DynamoDB's JSON.
 * ----------------------------------------------------------------
 */

/*
 * Converts an argument of type jsonb to DynamoDB's JSON; NULL if it has no attributes.  Raises
 * 22023 for attributes that an item cannot have, or that are too long beside data_len bytes of
 * data.
 */
extern const char *ArgumentAttributes(FunctionCallInfo fcinfo, int number, size_t data_len);

/*
 * Converts the additional attributes of an item (JSON in UTF-8) to a jsonb, without the table's
 * keys.  isnull: there are no others.
 */
extern Datum AttributesShow(const char *json, size_t len, bool *isnull);

/* ----------------------------------------------------------------
 * keep_tokens.c: Keeps the tokens in ddb_fences and ddb_queue_done from falling when rows come
 * from a dump or by replication.
 * ----------------------------------------------------------------
 */

/*
 * The quoted name of a table of the extension, with the extension's schema.  fcinfo: the call of
 * one of the extension's functions.
 */
extern const char *KeepTable(FunctionCallInfo fcinfo, const char *name);

/*
 * Raises that a write had no effect: the owner of the table may have added a trigger or a rule.
 * what: such as "the token"
 */
pg_noreturn extern void KeepNotRecorded(const char *table, const char *what);

/*
 * As SPI_execute_with_args().  For the extension's own writes to ddb_fences or ddb_queue_done: the
 * trigger lets these through.
 */
extern int	KeepExecute(const char *command, int count, Oid *types, Datum *values,
						const char *nulls);

/* ----------------------------------------------------------------
 * queue_arguments.c: Reads and checks the arguments that the functions of queues share.
 *
 * Each function raises 22023 for an invalid argument, with its name and limit, or 42501 if the
 * session may not use the name, before any request is sent.
 * ----------------------------------------------------------------
 */

/* Arguments 0 and 1: queue and resource.  Raises 55000 if the library is not preloaded. */
extern QueueName QueueArgument(FunctionCallInfo fcinfo);

/*
 * As QueueArgument(), but also on a server that has not preloaded the library.  For functions that
 * ask neither the worker nor DynamoDB.
 */
extern QueueName QueueArgumentAnywhere(FunctionCallInfo fcinfo);

/* Argument 0: a queue.  The session must be allowed to use all of its resources. */
extern QueueName QueueArgumentQueue(FunctionCallInfo fcinfo);

/*
 * Argument 0: a queue.  Does not check what the session may use: the caller checks the resources,
 * which another argument names.
 */
extern const char *QueueArgumentName(FunctionCallInfo fcinfo);

/*
 * Arguments 0 and 1: queue and resource.  A resource that is NULL means the whole queue: the
 * session must be allowed to use all of its resources.
 */
extern QueueName QueueArgumentAny(FunctionCallInfo fcinfo);

/* As QueueArgumentAnywhere(), with values that are not arguments. */
extern QueueName QueueCheckName(Datum queue, Datum resource);

/* Converts a jsonb to text in UTF-8. */
extern char *QueueCheckPayload(Datum payload);

/* Converts the id that a caller gives to a job to UTF-8. */
extern char *QueueCheckId(Datum id);

/* A time in milliseconds, from least_ms to most_ms; if_null if the argument is NULL. */
extern int64 QueueArgumentTime(FunctionCallInfo fcinfo, int number, const char *name,
							   int64 least_ms, int64 most_ms, int64 if_null);

/* Why a job has failed: a text for people, in UTF-8, cut to fit; "" if the argument is NULL. */
extern char *QueueArgumentError(FunctionCallInfo fcinfo, int number);

/* ----------------------------------------------------------------
 * row.c: A row that a function returns, filled column by column.
 *
 * Columns have the names of the function's OUT parameters.  A column that the function lacks is
 * left out, because the extension's script may be older than the library.
 * ----------------------------------------------------------------
 */

#define ROW_COLUMNS_MAX 32

typedef struct Row
{
	TupleDesc	columns;
	Datum		values[ROW_COLUMNS_MAX];
	bool		nulls[ROW_COLUMNS_MAX];
} Row;

/*
 * Begins a row, in which all columns are null.  A function that returns a set must have called
 * InitMaterializedSRF() before.
 */
extern void RowStart(Row *row, FunctionCallInfo fcinfo);

/* This and the following functions set one or more columns. */
extern void RowSet(Row *row, const char *column, Datum value);

/*
 * A text for people: characters that the database's encoding lacks become question marks.  "" is
 * null.
 */
extern void RowText(Row *row, const char *column, const char *utf8);

/*
 * A text for programs, which must be exact.  If the database's encoding lacks a character, reports
 * that with elevel; below ERROR, the column stays null.  what: the value's name, for the report.
 * "" is null.
 */
extern void RowValue(Row *row, const char *column, int elevel, const char *what,
					 const char *utf8);

extern void RowInterval(Row *row, const char *column, int64 microseconds);

/* A time on the clock of SegmentNow(). */
extern void RowClock(Row *row, const char *column, int64 moment);

/* DynamoDB's time, in milliseconds since the epoch; null if that is no valid time. */
extern void RowEpoch(Row *row, const char *column, int64 epoch_ms);

/* Attributes of an item; those that it lacks stay null. */
extern void RowHolder(Row *row, const dynamo_holder *holder);
extern void RowLease(Row *row, const dynamo_item *item);
extern void RowToken(Row *row, const dynamo_item *item);


/* Puts the row into the result of a function that returns a set. */
extern void RowPut(Row *row, FunctionCallInfo fcinfo);

/* Makes the row the result of a function that returns one row. */
extern Datum RowResult(Row *row);

/* Makes an array of int8. */
extern Datum RowNumbers(const int64 *numbers, int count);

#endif							/* DDBLOCK_SQL_SQL_H */
