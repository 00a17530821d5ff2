/*-------------------------------------------------------------------------
 *
 * lock_page.c
 *	  Pages of lock items on their way from the worker to a session.
 *
 * A row is its numbers, and then each text with its length in front.  Writer
 * and reader are of the same build and use the same list of texts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shared/lock_page.h"

typedef struct RowNumbers
{
	int64		lease_ms;
	int64		token;
	int64		released_at;
	int64		kept_until_ms;
	int64		since_ms;
	int32		pid;
	bool		released;
	bool		has_token;
	bool		bad_token;
	bool		by_ddblock;
	bool		dead;
	lock_mode	mode;
	int32		permits;
} RowNumbers;

/* The texts of an item, in the order in which they stand in a row. */
#define ITEM_TEXTS 6
typedef struct ItemTexts
{
	char	   *text[ITEM_TEXTS];
} ItemTexts;

static ItemTexts texts_of(dynamo_item *item);
static const char *why_unusable(const dynamo_row *row);
static Size row_size(const dynamo_row *row);
static uint8 *put_row(uint8 *to, const dynamo_row *row);
static uint8 *put_text(uint8 *to, const char *text);
static const uint8 *get_text(const uint8 *from, char *text, int *len);

static ItemTexts
texts_of(dynamo_item *item)
{
	return (ItemTexts)
	{
		{
			item->owner, item->version, item->holder.database, item->holder.user,
				item->holder.application, item->holder.host
		}
	};
}

static const char *
why_unusable(const dynamo_row *row)
{
	return row->unusable != NULL ? row->unusable : "";
}

static Size
row_size(const dynamo_row *row)
{
	ItemTexts	texts = texts_of((dynamo_item *) &row->item);
	Size		size = sizeof(RowNumbers) + sizeof(uint16) + strlen(row->name);

	for (int i = 0; i < ITEM_TEXTS; i++)
		size += sizeof(uint16) + strlen(texts.text[i]);
	return size + sizeof(uint16) + strlen(why_unusable(row));
}

void
LockPagePut(LockPage *out, const dynamo_page *page)
{
	uint8	   *to = out->data;
	uint8	   *end = out->data + LOCK_PAGE_SIZE;
	Size		next = page->next ? strlen(page->next) : 0;
	Size		next_sort = page->next_sort ? strlen(page->next_sort) : 0;
	int			put = 0;

	while (put < page->count && row_size(&page->rows[put]) <= end - to)
		to = put_row(to, &page->rows[put++]);
	Assert(put > 0 || page->count == 0);
	out->rows = to - out->data;
	out->cut = put < page->count || next + next_sort > end - to;
	out->next = out->cut ? 0 : next;
	out->next_sort = out->cut ? 0 : next_sort;
	if (out->next > 0)
		memcpy(to, page->next, out->next);
	if (out->next_sort > 0)
		memcpy(to + out->next, page->next_sort, out->next_sort);
}

static uint8 *
put_row(uint8 *to, const dynamo_row *row)
{
	const dynamo_item *item = &row->item;
	ItemTexts	texts = texts_of((dynamo_item *) item);
	RowNumbers	numbers = {
		.lease_ms = item->lease_ms,
		.token = item->token,
		.released_at = item->released_at,
		.kept_until_ms = item->kept_until_ms,
		.since_ms = item->holder.since_ms,
		.pid = item->holder.pid,
		.released = item->released,
		.has_token = item->has_token,
		.bad_token = item->bad_token,
		.by_ddblock = item->by_ddblock,
		.dead = row->dead,
		.mode = lockmgr_mode(row->shared),
		.permits = row->shared != NULL ? row->shared->total : 0,
	};

	memcpy(to, &numbers, sizeof(numbers));
	to = put_text(to + sizeof(numbers), row->name);
	for (int i = 0; i < ITEM_TEXTS; i++)
		to = put_text(to, texts.text[i]);
	return put_text(to, why_unusable(row));
}

static uint8 *
put_text(uint8 *to, const char *text)
{
	uint16		len = strlen(text);

	memcpy(to, &len, sizeof(len));
	memcpy(to + sizeof(len), text, len);
	return to + sizeof(len) + len;
}

bool
LockPageRow(const LockPage *page, int *offset, LockRow *row)
{
	const uint8 *from = page->data + *offset;
	dynamo_item *item = &row->item;
	ItemTexts	texts = texts_of(item);
	RowNumbers	numbers;

	if (*offset >= page->rows)
		return false;
	memset(item, 0, sizeof(*item));
	memcpy(&numbers, from, sizeof(numbers));
	from = get_text(from + sizeof(numbers), row->name, &row->name_len);
	for (int i = 0; i < ITEM_TEXTS; i++)
		from = get_text(from, texts.text[i], NULL);
	from = get_text(from, row->unusable, NULL);
	item->exists = true;
	item->lease_ms = numbers.lease_ms;
	item->token = numbers.token;
	item->released_at = numbers.released_at;
	item->kept_until_ms = numbers.kept_until_ms;
	item->holder.since_ms = numbers.since_ms;
	item->holder.pid = numbers.pid;
	item->released = numbers.released;
	item->has_token = numbers.has_token;
	item->bad_token = numbers.bad_token;
	item->by_ddblock = numbers.by_ddblock;
	row->dead = numbers.dead;
	row->mode = numbers.mode;
	row->permits = numbers.permits;
	*offset = from - page->data;
	return true;
}

/* text has room for what the codec lets through. */
static const uint8 *
get_text(const uint8 *from, char *text, int *text_len)
{
	uint16		len;

	memcpy(&len, from, sizeof(len));
	memcpy(text, from + sizeof(len), len);
	text[len] = '\0';
	if (text_len != NULL)
		*text_len = len;
	return from + sizeof(len) + len;
}
