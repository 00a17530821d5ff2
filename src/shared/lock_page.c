/*-------------------------------------------------------------------------
 *
 * lock_page.c
 *	  Pages of lock items on their way from the worker to a session.
 *
 * In a page, each text of a row ends with its NUL; all else is as in the struct.  Writer and
 * reader are of the same build.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shared/shared.h"

StaticAssertDecl(2 * sizeof(LockRow) <= LOCK_PAGE_SIZE, "at least two rows fit");

#define TEXT(field) {offsetof(LockRow, field), sizeof(((LockRow *) NULL)->field)}

/* The texts of a row, in the order of the struct, whose end is the last one. */
static const struct
{
	Size		at;
	Size		size;
}			texts[] = {
	TEXT(name),
	TEXT(item.owner),
	TEXT(item.version),
	TEXT(item.wanted_by),
	TEXT(item.holder.database),
	TEXT(item.holder.user),
	TEXT(item.holder.application),
	TEXT(item.holder.host),
	TEXT(item.holder.system),
	TEXT(unusable)
};

dynamo_item
LockPageItem(const dynamo_item *item)
{
	dynamo_item copy = *item;

	copy.wrong = NULL;
	copy.data = NULL;
	copy.attributes = copy.attribute_names = NULL;
	return copy;
}

/* To the page, or from it; returns the row's length there. */
static Size
copy_row(char *in_page, char *row, bool to_page)
{
	Size		len = 0;
	Size		at = 0;

	for (int i = 0; i < lengthof(texts); i++)
	{
		Size		before = texts[i].at - at;
		Size		piece = before + 1 +
			strlen(to_page ? row + texts[i].at : in_page + len + before);

		if (to_page)
			memcpy(in_page + len, row + at, piece);
		else
			memcpy(row + at, in_page + len, piece);
		len += piece;
		at = texts[i].at + texts[i].size;
	}
	return len;
}

static LockRow
row_of(const dynamo_row *found)
{
	LockRow		row = {
		.item = LockPageItem(&found->item),
		.mode = lockmgr_mode(found->shared),
		.permits = found->shared != NULL ? found->shared->total : 0,
		.dead = found->dead,
	};

	strlcpy(row.name, found->name, sizeof(row.name));
	if (found->unusable != NULL)
		strlcpy(row.unusable, found->unusable, sizeof(row.unusable));
	return row;
}

void
LockPagePut(LockPage *out, const dynamo_page *page)
{
	Size		used = 0;
	Size		next = page->next ? strlen(page->next) : 0;
	Size		next_sort = page->next_sort ? strlen(page->next_sort) : 0;
	int			put;

	for (put = 0; put < page->count; put++)
	{
		LockRow		row = row_of(&page->rows[put]);
		char		packed[sizeof(LockRow)];
		Size		len = copy_row(packed, (char *) &row, true);

		if (len > LOCK_PAGE_SIZE - used)
			break;
		memcpy(out->data + used, packed, len);
		used += len;
	}
	Assert(put > 0 || page->count == 0);
	out->rows = used;
	out->cut = put < page->count || next + next_sort > LOCK_PAGE_SIZE - used;
	out->next = out->cut ? 0 : next;
	out->next_sort = out->cut ? 0 : next_sort;
	if (out->next > 0)
		memcpy(out->data + used, page->next, out->next);
	if (out->next_sort > 0)
		memcpy(out->data + used + out->next, page->next_sort, out->next_sort);
}

bool
LockPageRow(const LockPage *page, int *offset, LockRow *row)
{
	if (*offset >= page->rows)
		return false;
	*offset += copy_row((char *) page->data + *offset, (char *) row, false);
	return true;
}
