/*-------------------------------------------------------------------------
 *
 * row.h
 *	  A row that a function returns, filled column by column.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SQL_ROW_H
#define DDBLOCK_SQL_ROW_H

#include "postgres.h"

#include "fmgr.h"

#include "lock/lockmgr.h"

#define ROW_COLUMNS_MAX 32

typedef struct Row
{
	Datum		values[ROW_COLUMNS_MAX];
	bool		nulls[ROW_COLUMNS_MAX];
} Row;

/* All columns are null. */
extern void RowClear(Row *row);
extern void RowSet(Row *row, int column, Datum value);

/* For people: what the database's encoding cannot say becomes question marks.  "" is null. */
extern void RowText(Row *row, int column, const char *utf8);

/*
 * For programs: exact, or reported.  With an elevel below ERROR it then stays null, so that no
 * program takes it for another value.  "" is null.
 */
extern void RowValue(Row *row, int column, int elevel, const char *what, const char *utf8);

extern void RowInterval(Row *row, int column, int64 microseconds);

/* A time on our clock, see SegmentNow(); and DynamoDB's time in milliseconds, if it is one. */
extern void RowClock(Row *row, int column, int64 moment);
extern void RowEpoch(Row *row, int column, int64 epoch_ms);

/* An item's attributes: what it lacks stays null. */
#define ROW_HOLDER_COLUMNS 6	/* from database to acquired_at, in this order */
extern void RowHolder(Row *row, int first_column, const dynamo_holder *holder);
extern void RowLease(Row *row, int column, const dynamo_item *item);
extern void RowToken(Row *row, int column, const dynamo_item *item);
extern void RowMode(Row *row, int column, lock_mode mode);

/* As the next row of a function that has called InitMaterializedSRF(). */
extern void RowPut(Row *row, FunctionCallInfo fcinfo);

/* As the result of a function that returns one row. */
extern Datum RowResult(Row *row, FunctionCallInfo fcinfo);

/* An array of int8. */
extern Datum RowNumbers(const int64 *numbers, int count);

#endif							/* DDBLOCK_SQL_ROW_H */
