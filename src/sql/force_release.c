/*-------------------------------------------------------------------------
 *
 * force_release.c
 *	  ddb_lock_force_release(): takes a lock away from its holder.
 *
 * It reads the item, decides, and writes on condition that the item's version is still the same.
 * If somebody writes the item in between, our write fails, instead of ending another lease.
 *
 * A lease belongs to a cluster.  Nobody outside of that cluster can know which of its sessions has
 * the lock when the write comes.
 *
 * If the lock was released, but is kept from others for a minimum time (keptUntil), a forced
 * release ends that time.
 *
 * If the item is such that nobody can use it as a lock, the first call shows it with its digest.  A
 * second call, which names the digest, replaces the item only if it is still the same.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "sql/sql.h"

/* Raises if the item is not the unusable one with this digest. */
static void
require_digest(const LockName *name, const char *digest, const MailboxAnswer *answer)
{
	if (answer->result == MAILBOX_UNUSABLE && strcmp(answer->unusable.digest, digest) == 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("the item of lock \"%s\" is another one now", name->text),
			 answer->result == MAILBOX_UNUSABLE ?
			 errdetail("Its digest is %s.", answer->unusable.digest) :
			 answer->found.item.exists ?
			 errdetail("It has changed.") :
			 errdetail("It is gone."),
			 errhint("To see it, call ddb_lock_force_release() without argument "
					 "\"unusable\".")));
}

/*
 * Reads an unusable item.  Returns MAILBOX_UNUSABLE, or MAILBOX_CHANGED if there is no item or a
 * usable one.
 */
static const MailboxAnswer *
show(const LockName *name)
{
	MailboxRequest request = {.op = DYNAMO_REPLACE,.name_len = strlen(name->utf8)};

	return TableCall(&request, name->utf8, NULL, DYNAMO_OK, NULL);
}

/* Logs before the attempt, so that the log has every attempt. */
static void
log_force(const char *what, const char *detail)
{
	char	   *user = GetUserNameFromId(GetSessionUserId(), false);
	char	   *role = GetUserNameFromId(GetUserId(), false);

	ereport(LOG_SERVER_ONLY,
			(errmsg("user \"%s\" as role \"%s\", process %d, %s", user, role, MyProcPid, what),
			 errdetail_internal("%s", detail)));
}

static void
replace(const LockName *name, const char *digest)
{
	MailboxRequest request = {.op = DYNAMO_REPLACE,.name_len = strlen(name->utf8)};
	const MailboxAnswer *answer = show(name);
	MailboxUnusable old;
	bool		unsettled;

	require_digest(name, digest, answer);
	old = answer->unusable;
	log_force(psprintf("replaces the unusable item of lock \"%s\"", name->text),
			  Utf8ToMessage(old.item));
	SessionNewUuid(request.write.version);
	strlcpy(request.write.expected, digest, sizeof(request.write.expected));
	answer = TableCall(&request, name->utf8, NULL, DYNAMO_OK, &unsettled);
	if (answer->result == MAILBOX_UNUSABLE ||
		(answer->result == MAILBOX_CHANGED &&
		 strcmp(answer->found.item.version, request.write.version) != 0))
	{
		if (unsettled)
			ereport(ERROR,
					(errcode(ERRCODE_CONNECTION_FAILURE),
					 errmsg("could not determine whether the item of lock \"%s\" was replaced",
							name->text),
					 errdetail("An attempt got no reply, and the item is another one now.")));
		require_digest(name, "", answer);
	}
	if (!old.released)
		ereport(WARNING,
				(errmsg("lock \"%s\" was taken away from whoever holds it", name->text),
				 errdetail("Sessions may believe that they hold it until their next renewal, for "
						   "at most their lease."),
				 errhint("Until then, a new holder and the old one may overlap. Only a resource "
						 "that refuses lower fencing tokens is protected.")));
	if (old.token_may_fall)
		ereport(WARNING,
				(errmsg("fencing tokens of lock \"%s\" may fall", name->text),
				 errdetail("No token is above the one in its old item: the new one is DynamoDB's "
						   "time."),
				 errhint("Where ddb_fences has a higher token for what this lock protects, "
						 "correct it.")));
}

/*
 * Raises an error that shows the item, if it is unusable.  If it was unusable in "found", but has
 * changed since, reads it into "found" again.
 */
static void
require_usable(const LockName *name, MailboxItem *found)
{
	while (found->unusable)
	{
		const MailboxAnswer *answer = show(name);
		const MailboxUnusable *now = &answer->unusable;

		if (answer->result == MAILBOX_UNUSABLE)
			ErrorsState(errmsg("the item of lock \"%s\" is unusable", name->text),
						errdetail_internal("%s. Its digest is %s. The item: %s", now->why,
										   now->digest, Utf8ToMessage(now->item)),
						errhint("If nobody needs it, replace it by the item of a free lock: "
								"SELECT ddb_lock_force_release(%s, unusable => '%s')",
								quote_literal_cstr(name->text), now->digest));
		*found = answer->found;
	}
}

/* Is the released lock still kept from others, by DynamoDB's clock? */
static bool
is_kept(const dynamo_item *item)
{
	WorkerStatus status;
	int64		now = SegmentNow();

	SegmentReadStatus(&status);
	return item->kept_until_ms > (now + epoch_clock_low(&status.clock, now)) / 1000;
}

/*
 * Is the item held by the same lease as "meant"?  The token of a shared lock does not tell: it
 * changes with each cluster that joins.  Its owner does not change.
 */
static bool
is_lease_of(const dynamo_item *item, const dynamo_item *meant, bool shared)
{
	return item->exists && !item->released && strcmp(item->owner, meant->owner) == 0 &&
		(shared || item->token == meant->token);
}

static const char *
lease_length(const dynamo_item *item)
{
	return item->lease_ms > 0 ? TimesDuration(item->lease_ms) : "an unknown time";
}

static char *
name_clusters(const MailboxItem *found)
{
	StringInfoData out;

	initStringInfo(&out);
	for (int i = 0; i < found->clusters; i++)
		appendStringInfo(&out, "%s\"%s\"", i == 0 ? "" : ", ",
						 Utf8ToMessage(found->cluster[i]));
	return out.data;
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
			 errhint("An attempt got no reply. If it ended the lease of %s, the "
					 "owner's session may believe that it holds the lock until its next "
					 "renewal, for at most %s.",
					 Utf8Owner(Utf8ToMessage(meant->owner)), lease_length(meant))));
}

/* Raises if the item of a released lock has no version, which the write's condition needs. */
static void
require_version(const LockName *name, const dynamo_item *item)
{
	if (item->version[0] != '\0')
		return;
	ErrorsState(errmsg("the item of lock \"%s\" is unusable", name->text),
				errdetail("It has no readable recordVersionNumber."),
				errhint("Wait until the lock is kept no longer."));
}

/*
 * Releases the lock.  If the write is refused, the result depends on the item that is there now:
 *
 *	 - The same lease, renewed meanwhile: tries again, because the operator still means it.
 *	 - A released lock that is kept from others: tries again.
 *	 - A free lock: returns false.
 *	 - Another lease: raises an error, because the operator does not mean it.  But if the operator
 *	   meant a released lock, returns false: that was not kept any more.
 *
 * If the operator meant a lease, which is not there any more, and an attempt got no reply, raises
 * an error which says that the outcome is unknown: the attempt may have ended the lease, and the
 * lock may have been taken again since.
 */
static bool
force_release(const LockName *name, MailboxItem *found, bool shared)
{
	const dynamo_item *item = &found->item;
	dynamo_item meant = *item;
	dynamo_item tried = meant;
	unsigned	times = 0;

	for (;;)
	{
		MailboxRequest request = {.op = DYNAMO_FORCE_RELEASE,.name_len = strlen(name->utf8)};
		const MailboxAnswer *answer;
		bool		unsettled;

		SessionNewUuid(request.write.version);
		request.write.shared = shared && !item->released;
		strlcpy(request.write.expected, request.write.shared ? item->owner : item->version,
				sizeof(request.write.expected));
		answer = TableCall(&request, name->utf8, NULL, DYNAMO_OK, &unsettled);
		if (answer->result == MAILBOX_DONE)
			return true;
		/* The write was refused.  Some servers do not return the present item with the refusal. */
		*found = answer->found.item.exists ? answer->found : *SessionLookUp(name, NULL);
		/* If the item has our nonce, an earlier copy of the write has succeeded. */
		if (strcmp(item->version, request.write.version) == 0)
			return true;
		CHECK_FOR_INTERRUPTS();
		require_usable(name, found);
		if (meant.released && !item->released)
			return false;		/* the lock was taken, so it was not kept any more */
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
		if (strcmp(item->version, tried.version) == 0)
			TableAgain(&times, ddblock_lock_table);
		tried = *item;
	}
}

PG_FUNCTION_INFO_V1(ddb_lock_force_release);

/* (name, unusable) */
Datum
ddb_lock_force_release(PG_FUNCTION_ARGS)
{
	const MailboxItem *looked_up;
	MailboxItem found;
	bool		released;
	LockName	name = ArgumentAllowedName(fcinfo);

	if (!PG_ARGISNULL(1))
	{
		replace(&name, text_to_cstring(PG_GETARG_TEXT_PP(1)));
		PG_RETURN_BOOL(true);
	}
	looked_up = SessionLookUp(&name, &found.unusable);
	if (looked_up != NULL)
		found = *looked_up;
	require_usable(&name, &found);
	if (!found.item.exists || (found.item.released && !is_kept(&found.item)))
		PG_RETURN_BOOL(false);

	require_version(&name, &found.item);
	log_force(psprintf("releases lock \"%s\" by force", name.text), describe(&found));
	released = force_release(&name, &found, found.mode != MODE_EXCLUSIVE);
	if (released && !found.item.released)
		ereport(WARNING,
				(found.mode != MODE_EXCLUSIVE ?
				 errmsg("lock \"%s\" was taken away from all who share it", name.text) :
				 errmsg("lock \"%s\" was taken away from %s", name.text,
						Utf8Owner(Utf8ToMessage(found.item.owner))),
				 found.mode != MODE_EXCLUSIVE ?
				 errdetail("Sessions of the clusters %s may believe that they hold it until their "
						   "next renewal, for at most %s.", name_clusters(&found),
						   lease_length(&found.item)) :
				 errdetail("Its session may believe that it holds the lock until its next "
						   "renewal, for at most %s.", lease_length(&found.item)),
				 errhint("Until then, a new holder and the old one may overlap. Only a resource "
						 "that refuses lower fencing tokens is protected.")));
	PG_RETURN_BOOL(released);
}
