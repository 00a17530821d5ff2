/*-------------------------------------------------------------------------
 *
 * arguments.h
 *	  Reads and checks the arguments that the SQL functions share.
 *
 * Each raises 22023 with the argument's name and limit, before any request is
 * sent.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SQL_ARGUMENTS_H
#define DDBLOCK_SQL_ARGUMENTS_H

#include "postgres.h"

#include "fmgr.h"

#include "session/session.h"

/* Raises the error if the argument is NULL. */
extern void ArgumentRequire(FunctionCallInfo fcinfo, int number, const char *name);

/* Argument 0; raises 55000, too, if the server has not preloaded the library. */
extern LockName ArgumentName(FunctionCallInfo fcinfo);

/* The same, for what concerns other sessions' locks, too: see prefix.h. */
extern LockName ArgumentAllowedName(FunctionCallInfo fcinfo);

/* Milliseconds of an interval. */
extern int64 ArgumentDuration(FunctionCallInfo fcinfo, int number, const char *name);

/* Milliseconds; if_null if the argument is NULL. */
extern int64 ArgumentLease(FunctionCallInfo fcinfo, int number, int64 if_null);
extern int64 ArgumentWait(FunctionCallInfo fcinfo, int number);

/* Milliseconds; if_null if the argument is NULL. */
extern int64 ArgumentWatch(FunctionCallInfo fcinfo, int number, int64 if_null);

/* Milliseconds, at most a year. */
extern int64 ArgumentStandBack(FunctionCallInfo fcinfo, int number);

/* Milliseconds, greater than 0. */
extern int64 ArgumentLessThan(FunctionCallInfo fcinfo, int number);

/* Milliseconds, at most a day. */
extern int64 ArgumentAtMost(FunctionCallInfo fcinfo, int number);

/*
 * Microseconds for which a session holds a lock with this lease at most: at least the lease's
 * margin, at most a year; 0 if the argument is NULL.
 */
extern int64 ArgumentLimit(FunctionCallInfo fcinfo, int number, int64 lease_ms);

/* Milliseconds, at most a day; 0 if the argument is NULL. */
extern int64 ArgumentAtLeast(FunctionCallInfo fcinfo, int number);
extern bool ArgumentKeep(FunctionCallInfo fcinfo, int number);

/* > 0 */
extern int64 ArgumentPositive(FunctionCallInfo fcinfo, int number, const char *name);

/* Arguments 0 and 1, the capacity of a table: both > 0, or both 0 if they are NULL. */
extern void ArgumentUnits(FunctionCallInfo fcinfo, int64 *read_units, int64 *write_units);

/* Milliseconds, at least ARGUMENT_AGE_MIN_MS. */
#define ARGUMENT_AGE_MIN_MS INT64CONST(86400000)
extern int64 ArgumentAge(FunctionCallInfo fcinfo, int number);

/* 1 .. max, which is the value of argument max_name, if not NULL. */
extern int32 ArgumentCount(FunctionCallInfo fcinfo, int number, const char *name, int32 max,
						   const char *max_name);

/* The beginning of a name; may be empty or NULL. */
extern LockName ArgumentPrefix(FunctionCallInfo fcinfo, int number);

/* False if the argument is NULL. */
extern bool ArgumentIsTrue(FunctionCallInfo fcinfo, int number);

/* NULL if the argument is NULL. */
extern const uint8 *ArgumentData(FunctionCallInfo fcinfo, int number, size_t *len);

#endif							/* DDBLOCK_SQL_ARGUMENTS_H */
