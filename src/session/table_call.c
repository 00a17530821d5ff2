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

#include "common/pg_prng.h"
#include "miscadmin.h"

#include "dynamo/dynamo.h"
#include "lock/backoff.h"
#include "session/session.h"
#include "shared/errors.h"
#include "shared/settings.h"
#include "shared/shared.h"

#define PAGE_MIN 20				/* items that DynamoDB looks at */
#define PAGE_MAX 500
#define AGAIN_MAX 20

/* Not a failure or a refusal, but for the failure that the caller expects. */
static bool
is_result(const MailboxAnswer *answer, dynamo_status expected)
{
	return answer->result == MAILBOX_DONE || answer->result == MAILBOX_DESCRIBED ||
		answer->result == MAILBOX_PAGE || answer->result == MAILBOX_CHANGED ||
		answer->result == MAILBOX_UNUSABLE ||
		(answer->result == MAILBOX_FAILED && answer->failure.status == expected);
}

void
TableSleep(int64 microseconds)
{
	int64		until = SegmentNow() + microseconds;

	for (;;)
	{
		int64		left = until - SegmentNow();

		CHECK_FOR_INTERRUPTS();
		if (left <= 0)
			return;
		MailboxSleep(PAUSE_TABLE, left);
	}
}

int64
TablePause(const MailboxAnswer *answer, unsigned failures)
{
	bool		cannot_pay = answer->result == MAILBOX_FAILED && !SegmentPay(answer->failure.status);

	return backoff_later_us(cannot_pay, failures, BACKOFF_CAP_US, pg_prng_uint64(&pg_global_prng_state));
}

const MailboxAnswer *
TableCall(MailboxRequest *request, const char *name, const void *data,
		  dynamo_status expected, bool *unsettled)
{
	int64		started = SegmentNow();
	unsigned	failures = 0;
	bool		maybe_applied = false;
	const MailboxAnswer *answer;

	SessionAttach();
	request->kind = MAILBOX_TABLE;
	request->repeat = false;
	for (;;)
	{
		uint32		starts = shared_read(&segment->worker_starts);
		int64		pause;

		answer = MailboxCall(request, name, data, NULL);
		/* A worker that did not live to answer may have sent it, too. */
		maybe_applied |= shared_read(&segment->worker_starts) != starts;
		if (is_result(answer, expected))
			break;
		pause = TablePause(answer, ++failures);
		if (answer->result != MAILBOX_FAILED ||
			!dynamo_is_transient(answer->failure.status) ||
			SegmentNow() + pause - started > (int64) ddblock_retry_timeout * 1000)
			ErrorsAnswer(answer, NULL);
		maybe_applied |= answer->failure.status == DYNAMO_UNKNOWN;
		WaitingTellTrouble(started, SegmentNow(), NULL);
		request->repeat = true;
		TableSleep(pause);
	}
	SegmentEarn(failures > 0);
	if (unsettled != NULL)
		*unsettled = maybe_applied;
	return answer;
}

bool
TableTtlAccept(const char *message, const char *kind, const char *table)
{
	if (strstr(message, "already enabled") != NULL)
		return true;
	if (strncmp(message, DYNAMO_NO_OPERATION, strlen(DYNAMO_NO_OPERATION)) != 0)
		return false;
	ereport(WARNING,
			(errmsg("the server cannot delete items of %s \"%s\" by their time-to-live", kind,
					table),
			 errdetail("It does not have UpdateTimeToLive. The table can be used all the same.")));
	return true;
}

/* Another's table may be so, and some servers know no protection. */
void
TableTellUnprotected(const char *kind, const char *table)
{
	ereport(WARNING,
			(errmsg("%s \"%s\" is not protected from deletion", kind, table),
			 errdetail("Who deletes it deletes all of its fencing tokens or jobs."),
			 errhint("Enable the table's deletion protection, if the server has it: \"aws dynamodb "
					 "update-table --deletion-protection-enabled --table-name %s\".", table)));
}

/* A table is UPDATING, and usable, when its capacity is changed. */
bool
TableIsActive(const char *status, const char *kind, const char *table)
{
	if (strcmp(status, "ACTIVE") == 0 || strcmp(status, "UPDATING") == 0)
		return true;
	if (strcmp(status, "CREATING") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s \"%s\" did not become active", kind, table),
				 errdetail("Its status is %s.", Utf8ToMessage(status))));
	return false;
}

void
TableAgain(unsigned *times, const char *table)
{
	if (++*times > AGAIN_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("DynamoDB's replies about table \"%s\" do not fit each other", table),
				 errdetail("The same request was refused or repeated %d times, although each reply "
						   "says that it can succeed.", AGAIN_MAX)));
	TableSleep(*times == 1 ? 0 : backoff_us(*times - 1, BACKOFF_CAP_US,
											pg_prng_uint64(&pg_global_prng_state)));
}

TableScan *
TableScanStart(const char *prefix, bool released_only)
{
	TableScan  *scan = palloc0(sizeof(TableScan));
	dynamo_table table = SettingsTable();

	scan->prefix = prefix;
	scan->request = (MailboxRequest)
	{
		.op = dynamo_scan_op(&table, prefix, strlen(prefix)),.name_len = strlen(prefix),
			.scan = {.limit = PAGE_MIN,.released_only = released_only}
	};
	return scan;
}

/* A scan names no keys, so it finds nothing in a table with others, and a read fails. */
static void
check_keys(void)
{
	LockName	any = {.text = "ddblock",.utf8 = "ddblock"};

	(void) SessionLookUp(&any, NULL);
}

/* After a page that was cut, continues after the last row.  A new scan's page names no key. */
static void
go_on_after(TableScan *scan)
{
	const LockPage *page = &scan->page;
	const char *next = (const char *) page->data + page->rows;
	dynamo_table table = SettingsTable();
	dynamo_key	key = {next, page->next, next + page->next, page->next_sort};

	if (page->cut)
		key = dynamo_key_of(&table, scan->row.name, strlen(scan->row.name));
	memcpy(scan->start, key.partition, key.partition_len);
	if (key.sort_len > 0)
		memcpy(scan->start + key.partition_len, key.sort, key.sort_len);
	scan->request.scan.start_len = key.partition_len;
	scan->request.data_len = key.partition_len + key.sort_len;
}

static void
adapt_limit(TableScan *scan)
{
	int		   *limit = &scan->request.scan.limit;

	if (scan->page.cut)
		*limit = Max(*limit / 2, PAGE_MIN);
	else if (scan->page.rows <= LOCK_PAGE_SIZE / 4)
		*limit = Min(*limit * 2, PAGE_MAX);
}

/* Copies the page: the caller may send requests while it reads the rows. */
static void
next_page(TableScan *scan)
{
	const LockPage *page;

	go_on_after(scan);
	page = &TableCall(&scan->request, scan->prefix, scan->start, DYNAMO_OK, NULL)->page;
	memcpy(&scan->page, page, offsetof(LockPage, data) + page->rows + page->next +
		   page->next_sort);
	scan->offset = 0;
	scan->last_page = !page->cut && page->next == 0;
	adapt_limit(scan);
}

/* A QUERY also brings the lock whose name is only the partition key. */
bool
TableScanNext(TableScan *scan)
{
	for (;;)
	{
		if (LockPageRow(&scan->page, &scan->offset, &scan->row))
		{
			scan->found = true;
			if (strncmp(scan->row.name, scan->prefix, strlen(scan->prefix)) == 0)
				return true;
		}
		else if (scan->last_page)
		{
			if (!scan->found)
				check_keys();
			return false;
		}
		else
			next_page(scan);
	}
}
