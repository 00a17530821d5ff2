/*-------------------------------------------------------------------------
 *
 * item_columns.h
 *	  A lock item's attributes as columns of a row.
 *
 * The caller sets all nulls to true; attributes that the item lacks stay null.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SQL_ITEM_COLUMNS_H
#define DDBLOCK_SQL_ITEM_COLUMNS_H

#include "postgres.h"

#include "lock/lockmgr.h"

/* Columns from database to acquired_at, in this order. */
#define ITEM_HOLDER_COLUMNS 6

/* For people: what the database's encoding cannot say becomes question marks. */
extern void ItemText(int column, const char *utf8, Datum *values, bool *nulls);

/*
 * For programs: exact, or reported.  With an elevel below ERROR it then stays null, so that no
 * program takes it for another value.
 */
extern void ItemValue(int column, int elevel, const char *what, const char *utf8,
					  Datum *values, bool *nulls);

extern void ItemTime(int column, int64 epoch_ms, Datum *values, bool *nulls);
extern void ItemHolder(int first_column, const dynamo_holder *holder,
					   Datum *values, bool *nulls);
extern void ItemLease(int column, const dynamo_item *item, Datum *values, bool *nulls);
extern const char *ItemMode(lock_mode mode);
extern void ItemToken(int column, const dynamo_item *item, Datum *values, bool *nulls);

#endif							/* DDBLOCK_SQL_ITEM_COLUMNS_H */
