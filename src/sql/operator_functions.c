/*-------------------------------------------------------------------------
 *
 * operator_functions.c
 *	  ddb_lock_purge() and ddb_lock_force_release(): an operator's hand in the
 *	  lock table.
 *
 * Both decide by an item that was read, and write under a condition on the
 * version that was read: whatever happens in between makes the write fail
 * instead of hitting another holder's lease.
 *
 * An item's token condition is what keeps tokens rising, and what keeps a late
 * copy of an old acquire from applying.  With the item, it is gone.  What
 * remains is time: a new token is DynamoDB's time in microseconds, and so
 * exceeds the old one as long as no clock is off by the item's age; and no
 * copy of a request is delayed for that long.  Hence the least age of a day,
 * the longest lease.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "session/table_call.h"
#include "session/waiting.h"
#include "shared/errors.h"
#include "shared/times.h"
#include "shared/utf8.h"
#include "sql/arguments.h"

PG_FUNCTION_INFO_V1(ddb_lock_purge);
PG_FUNCTION_INFO_V1(ddb_lock_force_release);

static bool is_old(const TableScan *scan, int64 age_ms);
static bool delete_item(const LockRow *row);
static MailboxRequest *item_request(dynamo_op op, const char *name_utf8, size_t name_len,
									const char *expected);
static void look_up(const LockName *name, dynamo_item *item);
static bool force_release(const LockName *name, dynamo_item *item);
static bool release_version(const LockName *name, dynamo_item *item, bool *unsettled);
static bool is_lease_of(const dynamo_item *item, const dynamo_item *meant);
static void fail_unknown(const LockName *name, const dynamo_item *meant,
						 const dynamo_item *item);
static void require_version(const LockName *name, const dynamo_item *item);
static void log_force(const LockName *name, const dynamo_item *item);
static void warn_of_holder(const LockName *name, const dynamo_item *item);
static const char *lease_length(const dynamo_item *item);
static char *describe(const dynamo_item *item);

Datum
ddb_lock_purge(PG_FUNCTION_ARGS)
{
	int64		deleted = 0;
	int64		age_ms;
	TableScan  *scan;

	ErrorsRequirePreload();
	age_ms = ArgumentAge(fcinfo, 0);
	scan = TableScanStart("", true);
	while (TableScanNext(scan))
	{
		if (is_old(scan, age_ms) && delete_item(&scan->row))
			deleted++;
	}
	TableScanEnd(scan);
	PG_RETURN_INT64(deleted);
}

/*
 * A token ahead of DynamoDB's clock was drawn by a wrong one: until it is past,
 * the item is what keeps tokens from falling.
 *
 * By DynamoDB's clock.  Other clients do not say when they release, and our last
 * token says only since when it may have been: nobody knows, and the item stays.
 */
static bool
is_old(const TableScan *scan, int64 age_ms)
{
	const dynamo_item *item = &scan->row.item;
	int64		now = scan->answer->epoch_us;

	if (item->version[0] == '\0')
		return false;
	if (item->has_token && !item->bad_token && item->token >= now)
		return false;
	return item->released_at > 0 && item->released_at < PG_INT64_MAX / USECS_PER_SEC &&
		now / 1000 - item->released_at * 1000 >= age_ms;
}

/* Gone after an attempt of unknown outcome: that attempt has deleted it. */
static bool
delete_item(const LockRow *row)
{
	MailboxRequest *request = item_request(DYNAMO_DELETE, row->name, row->name_len,
										   row->item.version);
	MailboxAnswer *answer = palloc(sizeof(MailboxAnswer));
	bool		unsettled;
	bool		deleted;

	TableCall(request, answer, &unsettled);
	deleted = answer->result == LOCKMGR_FOUND || (unsettled && !answer->item.exists);
	pfree(request);
	pfree(answer);
	return deleted;
}

static MailboxRequest *
item_request(dynamo_op op, const char *name_utf8, size_t name_len, const char *expected)
{
	MailboxRequest *request = palloc0(sizeof(MailboxRequest));

	request->op = op;
	request->name_len = name_len;
	memcpy(request->name, name_utf8, name_len);
	strlcpy(request->expected, expected, sizeof(request->expected));
	return request;
}

Datum
ddb_lock_force_release(PG_FUNCTION_ARGS)
{
	LockName	name;
	dynamo_item item;
	bool		released;

	ErrorsRequirePreload();
	name = ArgumentName(fcinfo, 0);
	MailboxAttach();
	look_up(&name, &item);
	if (!item.exists || item.released)
		PG_RETURN_BOOL(false);

	require_version(&name, &item);
	log_force(&name, &item);
	released = force_release(&name, &item);
	if (released)
		warn_of_holder(&name, &item);
	PG_RETURN_BOOL(released);
}

static void
look_up(const LockName *name, dynamo_item *item)
{
	MailboxRequest *request = item_request(DYNAMO_READ, name->utf8, strlen(name->utf8), "");
	MailboxAnswer *answer = palloc(sizeof(MailboxAnswer));

	request->kind = MAILBOX_LOOK_UP;
	MailboxCall(request, NULL, answer);
	if (answer->result != LOCKMGR_FOUND)
		ErrorsAnswer(answer, name->text);
	*item = answer->item;
	pfree(request);
	pfree(answer);
}

/*
 * A renewal may come in between, and then another attempt is due: it is still
 * the lease that the operator means.  Somebody else's is not.  False if it was
 * released without us.  That cannot be told if an attempt stayed without a
 * reply: the lease may have ended by it, and the lock have been taken since.
 */
static bool
force_release(const LockName *name, dynamo_item *item)
{
	dynamo_item meant = *item;
	bool		unsettled;

	while (!release_version(name, item, &unsettled))
	{
		CHECK_FOR_INTERRUPTS();
		if (unsettled && !is_lease_of(item, &meant))
			fail_unknown(name, &meant, item);
		if (!item->exists || item->released)
			return false;
		if (!is_lease_of(item, &meant))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("lock \"%s\" has been acquired by another holder meanwhile",
							name->text),
					 errdetail_internal("%s", describe(item))));
		require_version(name, item);
	}
	return true;
}

static bool
is_lease_of(const dynamo_item *item, const dynamo_item *meant)
{
	return item->exists && !item->released && strcmp(item->owner, meant->owner) == 0 &&
		item->token == meant->token;
}

static void
fail_unknown(const LockName *name, const dynamo_item *meant, const dynamo_item *item)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not learn whether lock \"%s\" was released by force", name->text),
			 item->exists && !item->released ?
			 errdetail_internal("%s", describe(item)) :
			 errdetail("The lock is free."),
			 errhint("An attempt was not replied to. If it has ended the lease of owner \"%s\", "
					 "that one's session may believe in it until its next renewal, for at "
					 "most %s.",
					 Utf8ToMessage(meant->owner, strlen(meant->owner)), lease_length(meant))));
}

/*
 * False, with the item that stands there instead, if it was refused.  Unless
 * it bears our nonce: then an earlier copy has done it.
 */
static bool
release_version(const LockName *name, dynamo_item *item, bool *unsettled)
{
	MailboxRequest *request = item_request(DYNAMO_FORCE_RELEASE, name->utf8,
										   strlen(name->utf8), item->version);
	MailboxAnswer *answer = palloc(sizeof(MailboxAnswer));
	uint8		random[16];
	bool		released;

	if (!pg_strong_random(random, sizeof(random)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	uuid_v4(random, request->version);
	TableCall(request, answer, unsettled);
	released = answer->result == LOCKMGR_FOUND ||
		strcmp(answer->item.version, request->version) == 0;
	if (!released)
		*item = answer->item;
	pfree(request);
	pfree(answer);
	return released;
}

/* Without a version there is nothing that the write could depend on. */
static void
require_version(const LockName *name, const dynamo_item *item)
{
	if (item->version[0] != '\0')
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the item of lock \"%s\" cannot be worked with", name->text),
			 errdetail("It has no readable recordVersionNumber."),
			 errhint("Correct or delete the item.")));
}

/* Before the attempt: whatever comes of it, it is on record. */
static void
log_force(const LockName *name, const dynamo_item *item)
{
	char	   *user = GetUserNameFromId(GetSessionUserId(), false);
	char	   *role = GetUserNameFromId(GetUserId(), false);

	ereport(LOG_SERVER_ONLY,
			(errmsg("user \"%s\" as role \"%s\", process %d, releases lock \"%s\" by force",
					user, role, MyProcPid, name->text),
			 errdetail_internal("%s", describe(item))));
}

static void
warn_of_holder(const LockName *name, const dynamo_item *item)
{
	char	   *owner = Utf8ToMessage(item->owner, strlen(item->owner));

	ereport(WARNING,
			(errmsg("lock \"%s\" was taken away from owner \"%s\"", name->text, owner),
			 errdetail("Its session may believe that it holds the lock until its next renewal, "
					   "for at most %s.", lease_length(item)),
			 errhint("Whoever acquires it within that time may share it. Only what refuses lower "
					 "fencing tokens is safe from that.")));
}

static const char *
lease_length(const dynamo_item *item)
{
	return item->lease_ms > 0 ? TimesDuration(item->lease_ms) : "an unknown time";
}

static char *
describe(const dynamo_item *item)
{
	lockmgr_watch watch = {
		.held = true,
		.local = strcmp(item->owner, segment->owner) == 0,
		.holder = item->holder,
	};

	strlcpy(watch.owner, item->owner, sizeof(watch.owner));
	return WaitingDescribeHolder(&watch, SegmentNow());
}
