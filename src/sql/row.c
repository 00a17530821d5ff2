/*-------------------------------------------------------------------------
 *
 * row.c
 *	  A row that a function returns, filled column by column.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "sql/sql.h"

void
RowClear(Row *row)
{
	memset(row->nulls, true, sizeof(row->nulls));
}

void
RowSet(Row *row, int column, Datum value)
{
	row->values[column] = value;
	row->nulls[column] = false;
}

void
RowText(Row *row, int column, const char *utf8)
{
	if (utf8[0] != '\0')
		RowSet(row, column, CStringGetTextDatum(Utf8ToReader(utf8)));
}

void
RowValue(Row *row, int column, int elevel, const char *what, const char *utf8)
{
	char	   *text = utf8[0] != '\0' ? Utf8ToServerOr(elevel, what, utf8) : NULL;

	if (text != NULL)
		RowSet(row, column, CStringGetTextDatum(text));
}

void
RowInterval(Row *row, int column, int64 microseconds)
{
	RowSet(row, column, IntervalPGetDatum(TimesInterval(microseconds)));
}

void
RowClock(Row *row, int column, int64 moment)
{
	RowSet(row, column, TimestampTzGetDatum(TimesFromClock(moment)));
}

void
RowEpoch(Row *row, int column, int64 epoch_ms)
{
	TimestampTz time;

	if (TimesFromEpoch(epoch_ms, &time))
		RowSet(row, column, TimestampTzGetDatum(time));
}

void
RowHolder(Row *row, int first_column, const dynamo_holder *holder)
{
	RowText(row, first_column, holder->database);
	RowText(row, first_column + 1, holder->user);
	RowText(row, first_column + 2, holder->application);
	if (holder->pid != 0)
		RowSet(row, first_column + 3, Int32GetDatum(holder->pid));
	RowText(row, first_column + 4, holder->host);
	RowEpoch(row, first_column + 5, holder->since_ms);
}

void
RowLease(Row *row, int column, const dynamo_item *item)
{
	if (item->lease_ms > 0)
		RowInterval(row, column, item->lease_ms * 1000);
}

/* A token that another kind of client has left in the item is not its own. */
void
RowToken(Row *row, int column, const dynamo_item *item)
{
	if (item->has_token && !item->bad_token && (item->released || item->by_ddblock))
		RowSet(row, column,
			   Int64GetDatum(item->hold_token != 0 ? item->hold_token : item->token));
}

void
RowPut(Row *row, FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	tuplestore_putvalues(result->setResult, result->setDesc, row->values, row->nulls);
}

Datum
RowResult(Row *row, FunctionCallInfo fcinfo)
{
	TupleDesc	columns;

	if (get_call_result_type(fcinfo, NULL, &columns) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(columns, row->values, row->nulls));
}

Datum
RowNumbers(const int64 *numbers, int count)
{
	Datum	   *values = palloc(count * sizeof(Datum));

	for (int i = 0; i < count; i++)
		values[i] = Int64GetDatum(numbers[i]);
	return PointerGetDatum(construct_array(values, count, INT8OID, sizeof(int64),
										   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}
