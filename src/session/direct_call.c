/*-------------------------------------------------------------------------
 *
 * direct_call.c
 *	  Calls past the lock manager: repeated, and page after page.
 *
 * The size of a scan's page is a compromise.  A page with many rows keeps the worker busy; but if
 * few items pass the filter, small pages mean many requests.  So each page has twice or half the
 * size of the last one, if that has brought few or many rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"

#include "base/backoff.h"
#include "session/session.h"

#define PAGE_MIN 20				/* limits of a page's size: items that DynamoDB looks at */
#define PAGE_MAX 500
#define ROWS_FEW 20
#define ROWS_MANY 80
#define AGAIN_MAX 20

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

/*
 * Hands a request over piece by piece.  Returns the answer to the last piece, or to the one that
 * failed.
 */
static const MailboxAnswer *
call_in_pieces(MailboxRequest *request, const char *name, const char *data)
{
	const MailboxAnswer *answer;

	if (request->kind != MAILBOX_QUEUE)
		return MailboxCall(request, name, data, NULL);
	request->queue.offset = 0;
	do
	{
		request->data_len = Min(request->queue.total - request->queue.offset,
								MAILBOX_REQUEST_TEXT);
		answer = MailboxCall(request, NULL, data + request->queue.offset, NULL);
		request->queue.offset += request->data_len;
	}
	while (answer->result == MAILBOX_MORE && request->queue.offset < request->queue.total);
	return answer;
}

/*
 * Fetches a reply piece by piece; answer has the first piece.  Returns false if a new worker does
 * not have the rest.  *answer is then this failure, because each answer of the worker is in the
 * same place, in the session's slot.
 */
static bool
fetch(const MailboxRequest *request, const MailboxAnswer *answer, TableReply *reply)
{
	MailboxRequest more = {.kind = MAILBOX_QUEUE_MORE,.op = request->op};
	uint32		have = 0;

	reply->len = answer->piece.total;
	reply->bytes = palloc(reply->len);
	while (answer->result == MAILBOX_REPLY && answer->piece.len > 0 &&
		   answer->piece.len <= reply->len - have)
	{
		memcpy(reply->bytes + have, answer->piece.data, answer->piece.len);
		have += answer->piece.len;
		if (have == reply->len)
			return true;
		more.queue.offset = have;
		answer = MailboxCall(&more, NULL, NULL, NULL);
	}
	pfree(reply->bytes);
	reply->bytes = NULL;
	reply->len = 0;
	return false;
}

/* Is the answer a result, or the failure that the caller expects? */
static bool
is_done(const MailboxAnswer *answer, dynamo_status expected)
{
	return answer->result == MAILBOX_DONE || answer->result == MAILBOX_DESCRIBED ||
		answer->result == MAILBOX_CHANGED || answer->result == MAILBOX_UNUSABLE ||
		(answer->result == MAILBOX_FAILED && answer->failure.status == expected);
}

/*
 * Raises the error of a failed call.  unsettled: an earlier copy of this write may have been
 * applied, so the outcome is unknown, whatever the last copy's reply says.
 */
pg_noreturn static void
fail(const MailboxAnswer *answer, bool unsettled)
{
	MailboxAnswer unknown = {.result = MAILBOX_FAILED,.failure = {0}};

	if (!unsettled)
		ErrorsAnswer(answer, NULL);
	if (answer->result == MAILBOX_FAILED)
		unknown.failure = answer->failure;
	unknown.failure.status = DYNAMO_UNKNOWN;
	ErrorsAnswer(&unknown, NULL);
}

TableReply
TableCallReply(MailboxRequest *request, const char *name, const void *data,
			   dynamo_status expected, int64 patience_ms)
{
	bool		queue = dynamo_is_queue(request->op);
	int64		started = SegmentNow();
	unsigned	failures = 0;
	TableReply	reply = {0};

	SessionAttach();
	request->repeat = false;
	for (;;)
	{
		uint32		starts = shared_read(&segment->worker_starts);
		const MailboxAnswer *answer = call_in_pieces(request, name, data);
		bool		done = answer->result == MAILBOX_REPLY ? fetch(request, answer, &reply) :
			is_done(answer, expected);
		bool		cannot_pay;
		int64		pause;

		/*
		 * If the worker was replaced while the session waited, the old one may have sent a copy.
		 */
		reply.unsettled |= shared_read(&segment->worker_starts) != starts;
		reply.answer = answer;
		if (done)
			break;
		cannot_pay = answer->result == MAILBOX_FAILED && !SegmentPay(answer->failure.status);
		pause = backoff_later_us(cannot_pay, ++failures, BACKOFF_CAP_US,
								 pg_prng_uint64(&pg_global_prng_state));
		/*
		 * The table is missing.  If one is made under this name, it may be a global one: check it
		 * before its first use.
		 */
		if (queue && answer->result == MAILBOX_FAILED &&
			answer->failure.status == DYNAMO_TABLE_MISSING)
			shared_write(&segment->queue_table_checked, 0);
		if (answer->result != MAILBOX_FAILED ||
			!dynamo_is_transient(answer->failure.status) ||
			SegmentNow() + pause - started > patience_ms * 1000)
			fail(answer, reply.unsettled && dynamo_is_queue_write(request->op));
		reply.unsettled |= answer->failure.status == DYNAMO_UNKNOWN;
		WaitingTellTrouble(started, SegmentNow(), queue ? answer->failure.message : NULL);
		request->repeat = true;
		TableSleep(pause);
	}
	SegmentEarn(failures > 0);
	return reply;
}

const MailboxAnswer *
TableCall(MailboxRequest *request, const char *name, const void *data,
		  dynamo_status expected, bool *unsettled)
{
	TableReply	reply;

	request->kind = MAILBOX_TABLE;
	reply = TableCallReply(request, name, data, expected, ddblock_retry_timeout);
	if (unsettled != NULL)
		*unsettled = reply.unsettled;
	return reply.answer;
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

/*
 * This is no error: the table may be somebody else's, and some servers have no deletion
 * protection.
 */
void
TableTellUnprotected(const char *kind, const char *table)
{
	ereport(WARNING,
			(errmsg("%s \"%s\" is not protected from deletion", kind, table),
			 errdetail("Who deletes it deletes all of its fencing tokens or jobs."),
			 errhint("Enable the table's deletion protection, if the server has it: \"aws dynamodb "
					 "update-table --deletion-protection-enabled --table-name %s\".", table)));
}

/* While its capacity is being changed, a table is UPDATING, and can be used. */
bool
TableIsActive(const char *status, const char *kind, const char *table)
{
	if (strcmp(status, "ACTIVE") == 0 || strcmp(status, "UPDATING") == 0)
		return true;
	if (strcmp(status, "CREATING") != 0)
		ErrorsState(errmsg("%s \"%s\" did not become active", kind, table),
					errdetail("Its status is %s.", Utf8ToMessage(status)));
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
		.kind = MAILBOX_TABLE,.op = dynamo_scan_op(&table, prefix, strlen(prefix)),
			.name_len = strlen(prefix),
			.scan = {.limit = PAGE_MIN,.released_only = released_only}
	};
	return scan;
}

/*
 * Calls for the next page, and copies it out of the slot: the caller may send requests while it
 * reads the rows.
 */
static void
next_page(TableScan *scan)
{
	LockPage   *before = scan->page;
	int		   *limit = &scan->request.scan.limit;
	TableReply	reply;

	if (before != NULL)
	{
		scan->request.scan.start_len = before->next_len;
		scan->request.data_len = before->next_len + before->next_sort_len;
	}
	reply = TableCallReply(&scan->request, scan->prefix, before != NULL ? before->next : NULL,
						   DYNAMO_OK, ddblock_retry_timeout);
	scan->page = (LockPage *) reply.bytes;
	if (reply.len < offsetof(LockPage, rows) ||
		reply.len != offsetof(LockPage, rows) + scan->page->count * sizeof(LockRow))
		elog(ERROR, "the ddblock worker's reply is not whole");
	scan->read = 0;
	if (before != NULL)
		pfree(before);
	if (scan->page->count <= ROWS_FEW)
		*limit = Min(*limit * 2, PAGE_MAX);
	else if (scan->page->count > ROWS_MANY)
		*limit = Max(*limit / 2, PAGE_MIN);
}

/*
 * The prefix is compared again here, because a QUERY also returns the lock whose name is the
 * partition key alone.
 */
bool
TableScanNext(TableScan *scan)
{
	for (;;)
	{
		if (scan->page != NULL && scan->read < scan->page->count)
		{
			scan->row = &scan->page->rows[scan->read++];
			scan->found = true;
			if (strncmp(scan->row->name, scan->prefix, strlen(scan->prefix)) == 0)
				return true;
		}
		else if (scan->page == NULL || scan->page->next_len > 0)
			next_page(scan);
		else
			break;
	}
	/*
	 * A scan names no keys.  In a table with other keys than the settings say, it finds nothing
	 * and does not fail, but a read of an item fails.
	 */
	if (!scan->found)
	{
		LockName	any = {.text = "ddblock",.utf8 = "ddblock"};

		(void) SessionLookUp(&any, NULL);
	}
	pfree(scan->page);
	pfree(scan);
	return false;
}
