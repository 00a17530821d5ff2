/*-------------------------------------------------------------------------
 *
 * item_columns.c
 *	  A lock item's attributes as columns of a row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "shared/times.h"
#include "shared/utf8.h"
#include "sql/item_columns.h"

void
ItemText(int column, const char *utf8, Datum *values, bool *nulls)
{
	if (utf8[0] == '\0')
		return;
	values[column] = CStringGetTextDatum(Utf8ToReader(utf8, strlen(utf8)));
	nulls[column] = false;
}

void
ItemValue(int column, int elevel, const char *what, const char *utf8, Datum *values, bool *nulls)
{
	char	   *text;

	if (utf8[0] == '\0')
		return;
	text = Utf8ToServerOr(elevel, what, utf8, strlen(utf8));
	if (text == NULL)
		return;
	values[column] = CStringGetTextDatum(text);
	nulls[column] = false;
}

void
ItemTime(int column, int64 epoch_ms, Datum *values, bool *nulls)
{
	TimestampTz time;

	if (!TimesFromEpoch(epoch_ms, &time))
		return;
	values[column] = TimestampTzGetDatum(time);
	nulls[column] = false;
}

void
ItemHolder(int first_column, const dynamo_holder *holder, Datum *values, bool *nulls)
{
	const char *texts[] = {holder->database, holder->user, holder->application};
	int			pid_column = first_column + lengthof(texts);

	for (int i = 0; i < lengthof(texts); i++)
		ItemText(first_column + i, texts[i], values, nulls);
	if (holder->pid != 0)
	{
		values[pid_column] = Int32GetDatum(holder->pid);
		nulls[pid_column] = false;
	}
	ItemText(pid_column + 1, holder->host, values, nulls);
	ItemTime(pid_column + 2, holder->since_ms, values, nulls);
}

void
ItemLease(int column, const dynamo_item *item, Datum *values, bool *nulls)
{
	if (item->lease_ms <= 0)
		return;
	values[column] = IntervalPGetDatum(TimesInterval(item->lease_ms * 1000));
	nulls[column] = false;
}

/* A token that another kind of client has left in the item is not its own. */
void
ItemToken(int column, const dynamo_item *item, Datum *values, bool *nulls)
{
	if (!item->has_token || item->bad_token || !(item->released || item->by_ddblock))
		return;
	values[column] = Int64GetDatum(item->hold_token != 0 ? item->hold_token : item->token);
	nulls[column] = false;
}

const char *
ItemMode(lock_mode mode)
{
	return mode == MODE_EXCLUSIVE ? "exclusive" : mode == MODE_SHARED ? "shared" : "semaphore";
}
