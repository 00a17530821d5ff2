/*-------------------------------------------------------------------------
 *
 * table_call.c
 *	  Calls past the lock manager: repeated, and page after page.
 *
 * A page's size is a compromise.  Of a large page only the part that fits into
 * the mailbox is used, and the rest is read, and paid for, again.  But if few
 * items pass the filter, small pages mean many requests.  So each page's size
 * depends on what the last one brought.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/latch.h"

#include "lock/backoff.h"
#include "session/session.h"
#include "session/table_call.h"
#include "shared/compat.h"
#include "shared/errors.h"
#include "shared/settings.h"

#define PAGE_MIN 20				/* items that DynamoDB looks at */
#define PAGE_MAX 500

static bool has_failed(const MailboxAnswer *answer, dynamo_status expected);
static void next_page(TableScan *scan);
static void go_on_after(TableScan *scan);
static void adapt_limit(MailboxRequest *request, const LockPageSize *page);

MailboxRequest *
TableItemRequest(dynamo_op op, const char *name_utf8, size_t name_len, const char *expected)
{
	MailboxRequest *request = palloc0(sizeof(MailboxRequest));

	request->op = op;
	request->name_len = name_len;
	memcpy(request->name, name_utf8, name_len);
	strlcpy(request->expected, expected, sizeof(request->expected));
	return request;
}

bool
TableCall(MailboxRequest *request, dynamo_status expected_failure, MailboxAnswer *answer,
		  bool *unsettled)
{
	int64		started = SegmentNow();
	unsigned	failures = 0;
	bool		maybe_applied = false;

	SessionAttach();
	request->kind = MAILBOX_TABLE;
	request->repeat = false;
	for (;;)
	{
		int64		pause;

		MailboxCall(request, NULL, answer);
		if (answer->result == LOCKMGR_FOUND || has_failed(answer, expected_failure))
			break;
		pause = backoff_us(++failures, BACKOFF_CAP_US,
						   pg_prng_uint64(&pg_global_prng_state));
		if (answer->result != LOCKMGR_FAILED || !dynamo_is_transient(answer->status) ||
			SegmentNow() + pause - started > (int64) ddblock_retry_timeout * 1000)
			ErrorsAnswer(answer, NULL);
		maybe_applied |= answer->status == DYNAMO_UNKNOWN;
		WaitingTellTrouble(started, SegmentNow());
		request->repeat = true;
		TableSleep(pause);
	}
	if (unsettled != NULL)
		*unsettled = maybe_applied;
	return answer->result == LOCKMGR_FOUND;
}

/* A request that the worker refuses has failed with DYNAMO_OK: nobody expects that. */
static bool
has_failed(const MailboxAnswer *answer, dynamo_status expected)
{
	return answer->result == LOCKMGR_FAILED && expected != DYNAMO_OK &&
		answer->status == expected;
}

void
TableSleep(int64 microseconds)
{
	static uint32 event = 0;
	int64		until = SegmentNow() + microseconds;

	if (event == 0)
		event = CompatWaitEvent("DdblockTable");
	for (;;)
	{
		int64		left = until - SegmentNow();

		CHECK_FOR_INTERRUPTS();
		if (left <= 0)
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min((left + 999) / 1000, INT_MAX), event);
		ResetLatch(MyLatch);
	}
}

TableScan *
TableScanStart(const char *prefix, bool released_only)
{
	TableScan  *scan = palloc0(sizeof(TableScan));

	scan->request = palloc0(sizeof(MailboxRequest));
	scan->answer = palloc(sizeof(MailboxAnswer));
	scan->request->op = DYNAMO_SCAN;
	scan->request->limit = PAGE_MIN;
	scan->request->released_only = released_only;
	scan->request->name_len = strlen(prefix);
	memcpy(scan->request->name, prefix, scan->request->name_len);
	return scan;
}

bool
TableScanNext(TableScan *scan)
{
	while (!scan->started || !LockPageRow(scan->answer, &scan->offset, &scan->row))
	{
		if (scan->last_page)
			return false;
		next_page(scan);
	}
	return true;
}

static void
next_page(TableScan *scan)
{
	if (scan->started)
		go_on_after(scan);
	scan->started = true;
	scan->offset = 0;
	(void) TableCall(scan->request, DYNAMO_OK, scan->answer, NULL);
	scan->last_page = !scan->answer->page.cut && scan->answer->page.next == 0;
	adapt_limit(scan->request, &scan->answer->page);
}

/* After a page that was cut, continues after the last row that was read. */
static void
go_on_after(TableScan *scan)
{
	const MailboxAnswer *answer = scan->answer;
	const LockPageSize *page = &answer->page;
	MailboxRequest *request = scan->request;
	const uint8 *key = answer->data + page->rows;
	const uint8 *sort = key + page->next;
	Size		sort_len = page->next_sort;

	request->start_len = page->next;
	if (page->cut)
	{
		key = (const uint8 *) scan->row.name;
		request->start_len = scan->row.name_len;
		sort = (const uint8 *) ddblock_sort_key_value;
		sort_len = ddblock_sort_key[0] ? strlen(ddblock_sort_key_value) : 0;
	}
	memcpy(request->data, key, request->start_len);
	memcpy(request->data + request->start_len, sort, sort_len);
	request->data_len = request->start_len + sort_len;
	request->has_data = true;
}

static void
adapt_limit(MailboxRequest *request, const LockPageSize *page)
{
	if (page->cut)
		request->limit = Max(request->limit / 2, PAGE_MIN);
	else if (page->rows <= MAILBOX_DATA_SIZE / 4)
		request->limit = Min(request->limit * 2, PAGE_MAX);
}

void
TableScanEnd(TableScan *scan)
{
	pfree(scan->request);
	pfree(scan->answer);
	pfree(scan);
}
