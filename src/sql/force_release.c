/*-------------------------------------------------------------------------
 *
 * force_release.c
 *	  ddb_lock_force_release(): takes a lock away from its holder.
 *
 * It decides by an item that it has read, and writes on condition that the
 * item's version is still the same: whatever is written in between makes the
 * write fail instead of ending another lease.  A lease is one cluster's: which of
 * its sessions has the lock when the write comes, nobody outside can know.  An item that
 * is released, but kept from others, is kept no longer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"

#include "session/session.h"
#include "session/table_call.h"
#include "session/waiting.h"
#include "shared/errors.h"
#include "shared/times.h"
#include "shared/utf8.h"
#include "sql/arguments.h"

PG_FUNCTION_INFO_V1(ddb_lock_force_release);

static bool force_release(const LockName *name, MailboxItem *found, bool shared);
static bool release_version(const LockName *name, MailboxItem *found, bool shared,
							bool *unsettled);
static bool is_kept(const dynamo_item *item);
static bool is_lease_of(const dynamo_item *item, const dynamo_item *meant, bool shared);
static void fail_unknown(const LockName *name, const dynamo_item *meant,
						 const MailboxItem *found);
static void require_version(const LockName *name, const dynamo_item *item);
static void log_force(const LockName *name, const MailboxItem *found);
static void warn_of_holder(const LockName *name, const MailboxItem *found);
static const char *lease_length(const dynamo_item *item);
static char *describe(const MailboxItem *found);
static char *name_clusters(const MailboxItem *found);

Datum
ddb_lock_force_release(PG_FUNCTION_ARGS)
{
	LockName	name;
	MailboxItem found;
	bool		released;

	ErrorsRequirePreload();
	name = ArgumentAllowedName(fcinfo, 0);
	found = *SessionLookUp(&name);
	if (!found.item.exists || (found.item.released && !is_kept(&found.item)))
		PG_RETURN_BOOL(false);

	require_version(&name, &found.item);
	log_force(&name, &found);
	released = force_release(&name, &found, found.mode != MODE_EXCLUSIVE);
	if (released && !found.item.released)
		warn_of_holder(&name, &found);
	PG_RETURN_BOOL(released);
}

/*
 * If the holder has renewed the lease meanwhile, tries again: the operator still
 * means this lease, but no other one.  Returns false if somebody else has
 * released it, and it is not kept.  If an attempt had no reply, nobody knows whether it ended the
 * lease: the lock may have been taken again since.
 */
static bool
force_release(const LockName *name, MailboxItem *found, bool shared)
{
	const dynamo_item *item = &found->item;
	dynamo_item meant = *item;
	bool		unsettled;

	while (!release_version(name, found, shared && !item->released, &unsettled))
	{
		CHECK_FOR_INTERRUPTS();
		if (meant.released && !item->released)
			return false;		/* somebody has it, so it was not kept any more */
		if (unsettled && !meant.released && !is_lease_of(item, &meant, shared))
			fail_unknown(name, &meant, found);
		if (!item->exists || (item->released && !is_kept(item)))
			return false;
		if (!item->released && !is_lease_of(item, &meant, shared))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("lock \"%s\" has been acquired by another holder meanwhile",
							name->text),
					 errdetail_internal("%s", describe(found))));
		require_version(name, item);
	}
	return true;
}

/* By DynamoDB's clock. */
static bool
is_kept(const dynamo_item *item)
{
	WorkerStatus status;
	int64		now = SegmentNow();

	SegmentReadStatus(&status);
	return item->kept_until_ms > (now + epoch_clock_low(&status.clock, now)) / 1000;
}

/* The token of a shared lock changes with each cluster that joins; its owner does not. */
static bool
is_lease_of(const dynamo_item *item, const dynamo_item *meant, bool shared)
{
	return item->exists && !item->released && strcmp(item->owner, meant->owner) == 0 &&
		(shared || item->token == meant->token);
}

static void
fail_unknown(const LockName *name, const dynamo_item *meant, const MailboxItem *found)
{
	const dynamo_item *item = &found->item;

	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not determine whether lock \"%s\" was released by force", name->text),
			 item->exists && !item->released ?
			 errdetail_internal("%s", describe(found)) :
			 errdetail("The lock is free."),
			 errhint("An attempt got no reply. If it ended the lease of owner \"%s\", the "
					 "owner's session may believe that it holds the lock until its next "
					 "renewal, for at most %s.",
					 Utf8ToMessage(meant->owner, strlen(meant->owner)), lease_length(meant))));
}

/*
 * Returns false, with the item as it is now, if DynamoDB refused the write.  If
 * that item has our nonce, an earlier copy of the write has succeeded.
 */
static bool
release_version(const LockName *name, MailboxItem *found, bool shared, bool *unsettled)
{
	MailboxRequest request = {.op = DYNAMO_FORCE_RELEASE,.name_len = strlen(name->utf8)};
	const MailboxAnswer *answer;
	uint8		random[16];

	if (!pg_strong_random(random, sizeof(random)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	uuid_v4(random, request.write.version);
	request.write.shared = shared;
	strlcpy(request.write.expected, shared ? found->item.owner : found->item.version,
			sizeof(request.write.expected));
	answer = TableCall(&request, name->utf8, NULL, DYNAMO_OK, unsettled);
	if (answer->result == MAILBOX_DONE ||
		strcmp(answer->found.item.version, request.write.version) == 0)
		return true;
	*found = answer->found;
	return false;
}

/* The write's condition needs a version. */
static void
require_version(const LockName *name, const dynamo_item *item)
{
	if (item->version[0] != '\0')
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the item of lock \"%s\" is unusable", name->text),
			 errdetail("It has no readable recordVersionNumber."),
			 errhint("Correct or delete the item.")));
}

/* Logs before the attempt, so that the log has every attempt. */
static void
log_force(const LockName *name, const MailboxItem *found)
{
	char	   *user = GetUserNameFromId(GetSessionUserId(), false);
	char	   *role = GetUserNameFromId(GetUserId(), false);

	ereport(LOG_SERVER_ONLY,
			(errmsg("user \"%s\" as role \"%s\", process %d, releases lock \"%s\" by force",
					user, role, MyProcPid, name->text),
			 errdetail_internal("%s", describe(found))));
}

static void
warn_of_holder(const LockName *name, const MailboxItem *found)
{
	const dynamo_item *item = &found->item;

	ereport(WARNING,
			(found->mode != MODE_EXCLUSIVE ?
			 errmsg("lock \"%s\" was taken away from all who share it", name->text) :
			 errmsg("lock \"%s\" was taken away from owner \"%s\"", name->text,
					Utf8ToMessage(item->owner, strlen(item->owner))),
			 found->mode != MODE_EXCLUSIVE ?
			 errdetail("Sessions of the clusters %s may believe that they hold it until their "
					   "next renewal, for at most %s.", name_clusters(found),
					   lease_length(item)) :
			 errdetail("Its session may believe that it holds the lock until its next renewal, "
					   "for at most %s.", lease_length(item)),
			 errhint("Until then, a new holder and the old one may overlap. Only a resource that "
					 "refuses lower fencing tokens is protected.")));
}

static const char *
lease_length(const dynamo_item *item)
{
	return item->lease_ms > 0 ? TimesDuration(item->lease_ms) : "an unknown time";
}

static char *
describe(const MailboxItem *found)
{
	const dynamo_item *item = &found->item;
	lockmgr_watch watch = {
		.held = true,
		.local = strcmp(item->owner, segment->owner) == 0,
		.kept_until_ms = item->released ? item->kept_until_ms : 0,
		.holder = item->holder,
	};

	if (found->mode != MODE_EXCLUSIVE)
		return psprintf("It is held by the clusters %s.", name_clusters(found));
	strlcpy(watch.owner, item->owner, sizeof(watch.owner));
	return WaitingDescribeHolder(&watch, SegmentNow());
}

static char *
name_clusters(const MailboxItem *found)
{
	StringInfoData out;

	initStringInfo(&out);
	for (int i = 0; i < found->clusters; i++)
		appendStringInfo(&out, "%s\"%s\"", i == 0 ? "" : ", ",
						 Utf8ToMessage(found->cluster[i], strlen(found->cluster[i])));
	return out.data;
}
