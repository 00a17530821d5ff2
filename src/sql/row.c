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
#include "executor/spi.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "sql/sql.h"

void
RowStart(Row *row, FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	memset(row->nulls, true, sizeof(row->nulls));
	if (result != NULL && result->setDesc != NULL)
		row->columns = result->setDesc;
	else if (get_call_result_type(fcinfo, NULL, &row->columns) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
}

void
RowSet(Row *row, const char *column, Datum value)
{
	int			number = SPI_fnumber(row->columns, column);

	if (number <= 0)
		return;
	row->values[number - 1] = value;
	row->nulls[number - 1] = false;
}

void
RowText(Row *row, const char *column, const char *utf8)
{
	if (utf8[0] != '\0')
		RowSet(row, column, CStringGetTextDatum(Utf8ToReader(utf8)));
}

void
RowValue(Row *row, const char *column, int elevel, const char *what, const char *utf8)
{
	char	   *text = utf8[0] != '\0' ? Utf8ToServerOr(elevel, what, utf8) : NULL;

	if (text != NULL)
		RowSet(row, column, CStringGetTextDatum(text));
}

void
RowInterval(Row *row, const char *column, int64 microseconds)
{
	RowSet(row, column, IntervalPGetDatum(TimesInterval(microseconds)));
}

void
RowClock(Row *row, const char *column, int64 moment)
{
	RowSet(row, column, TimestampTzGetDatum(TimesFromClock(moment)));
}

void
RowEpoch(Row *row, const char *column, int64 epoch_ms)
{
	TimestampTz time;

	if (TimesFromEpoch(epoch_ms, &time))
		RowSet(row, column, TimestampTzGetDatum(time));
}

void
RowHolder(Row *row, const dynamo_holder *holder)
{
	RowText(row, "datname", holder->database);
	RowText(row, "usename", holder->user);
	RowText(row, "application_name", holder->application);
	if (holder->pid != 0)
		RowSet(row, "pid", Int32GetDatum(holder->pid));
	RowText(row, "host", holder->host);
	RowEpoch(row, "acquired_at", holder->since_ms);
}

void
RowLease(Row *row, const dynamo_item *item)
{
	if (item->lease_ms > 0)
		RowInterval(row, "lease", item->lease_ms * 1000);
}

/*
 * Shows a held item's token only if its owner uses ddblock: another client leaves the old token in
 * the item, which is not that of its own hold.
 */
void
RowToken(Row *row, const dynamo_item *item)
{
	if (item->has_token && !item->bad_token && (item->released || item->by_ddblock))
		RowSet(row, "token",
			   Int64GetDatum(item->hold_token != 0 ? item->hold_token : item->token));
}

void
RowPut(Row *row, FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	tuplestore_putvalues(result->setResult, result->setDesc, row->values, row->nulls);
}

Datum
RowResult(Row *row)
{
	return HeapTupleGetDatum(heap_form_tuple(row->columns, row->values, row->nulls));
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
