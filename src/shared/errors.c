/*-------------------------------------------------------------------------
 *
 * errors.c
 *	  The errors that several files raise: SQLSTATEs, messages, details and hints.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/string.h"
#include "miscadmin.h"

#include "dynamo/dynamo.h"
#include "shared/errors.h"
#include "shared/settings.h"
#include "shared/shared.h"

void
ErrorsNotPreloaded(int elevel)
{
	const char *others = shared_preload_libraries_string;

	if (others == NULL)
		others = "";
	ereport(elevel,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ddblock must be loaded via \"shared_preload_libraries\""),
			 errhint("Add the line \"shared_preload_libraries = '%s%sddblock'\" to "
					 "postgresql.conf and restart the server.",
					 others, others[0] ? ", " : "")));
}

void
ErrorsRequirePreload(void)
{
	if (segment == NULL)
		ErrorsNotPreloaded(ERROR);
}

void
ErrorsNoWorker(bool may_have_sent)
{
	ereport(ERROR,
			(errcode(ERRCODE_CANNOT_CONNECT_NOW),
			 errmsg("the ddblock worker is not running"),
			 may_have_sent ? errdetail("The request may or may not have taken effect.") : 0,
			 errhint("See the server log for messages of the \"ddblock worker\" process.")));
}

void
ErrorsNoPlace(int elevel, const char *problem)
{
	bool		trust = strncmp(problem, NO_AUTHORITIES, strlen(NO_AUTHORITIES)) == 0;

	ereport(elevel,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 trust ? errmsg("ddblock does not know which servers to trust") :
			 errmsg("ddblock does not know where its lock table is"),
			 errdetail_internal("%s", problem),
			 trust ? errhint("Correct the file's name or its permissions, and reload the "
							 "configuration; or restart the server, if the name comes from the "
							 "environment.") :
			 errhint("Set \"ddblock.region\", or AWS_REGION in the server's environment, and "
					 "restart the server; or correct the shared config file, and reload the "
					 "configuration.")));
}

static bool
key_is(const char *name, const char *type, const char *wanted)
{
	return strcmp(name, wanted) == 0 && (name[0] == '\0' || strcmp(type, "S") == 0);
}

static char *
describe_key(const char *name, const char *type)
{
	if (name[0] == '\0')
		return pstrdup("none");
	return psprintf("\"%s\" (%s)", Utf8Quiet(name), type);
}

bool
ErrorsKeys(int elevel, const dynamo_table_info *table)
{
	if (key_is(table->partition_key, table->partition_type, ddblock_partition_key) &&
		key_is(table->sort_key, table->sort_type, ddblock_sort_key))
		return false;
	ereport(elevel,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the keys of lock table \"%s\" do not match the settings", ddblock_lock_table),
			 errdetail("Its partition key is %s, its sort key is %s.",
					   describe_key(table->partition_key, table->partition_type),
					   describe_key(table->sort_key, table->sort_type)),
			 errhint("Change \"ddblock.partition_key\" and \"ddblock.sort_key\" accordingly, or "
					 "choose another \"ddblock.lock_table\" on all clusters. The keys' type must be "
					 "S.")));
	return true;
}

/*
 * Raises the error of a failed call.  message and of_worker are UTF-8.  of_worker is "", or what
 * the worker knows beside the message:
 *
 *	 - If the call has failed for its credentials: where these came from, for the detail.
 *	 - Else: a hint, instead of the usual one.
 */
pg_noreturn static void
raise_failure(dynamo_op op, dynamo_status status, const char *message, const char *of_worker)
{
	const dynamo_words *words = dynamo_error_words(status, message);
	const char *state = words->sqlstate;
	bool		queue = dynamo_is_queue(op);
	const char *table = psprintf(queue ? "queue table \"%s\"" : "lock table \"%s\"",
								 queue ? ddblock_queue_table : ddblock_lock_table);
	char		why[MAILBOX_TEXT_SIZE + DYNAMO_MESSAGE_SIZE];
	const char *detail = why;
	const char *hint = words->hint;
	const char *also = "";

	dynamo_error_detail(why, sizeof(why), status, op, message);
	if (status == DYNAMO_CREDENTIALS && of_worker[0] != '\0')
		detail = psprintf("%s%s %s", why, pg_str_endswith(why, ".") ? "" : ".", of_worker);
	else if (of_worker[0] != '\0')
		hint = Utf8ToMessage(of_worker);
	else if (op == DYNAMO_RELEASE)
		also = " The session no longer holds the lock. The worker keeps trying to "
			"release it until its lease has run out.";
	detail = Utf8ToMessage(detail);

	/*
	 * The hint for a missing table does not begin with ddb_lock_table_create(): with
	 * a second table, in another Region, two holders would get one lock.
	 */
	if (queue && status == DYNAMO_VALIDATION && dynamo_is_about_keys(message))
		hint = "The table is no queue table: name another one in \"ddblock.queue_table\", and create "
			"it with ddb_queue_table_create().";
	else if (queue && status == DYNAMO_TABLE_MISSING)
		hint = "Compare \"ddblock.queue_table\", Region, endpoint and AWS account with the other "
			"clusters'. If they agree, create the table with ddb_queue_table_create().";
	else if (hint == NULL)
		hint = psprintf("This server looks for it in Region \"%s\" at %s. Compare Region, "
						"endpoint, AWS account and \"ddblock.lock_table\" with the other clusters' "
						"logs (\"ddblock uses lock table\"). If they agree, create the table with "
						"ddb_lock_table_create().",
						segment->place.region, segment->place.url);

	ereport(ERROR,
			(errcode(MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4])),
			 errmsg(words->message, strstr(words->message, "at %s") ? segment->place.url : table),
			 detail[0] != '\0' ? errdetail_internal("%s", detail) : 0,
			 errhint("%s%s", hint, also)));
}

void
ErrorsTrouble(dynamo_op op, dynamo_status status, const char *message)
{
	raise_failure(op, status, message, "");
}

/* Returns if the answer is no refusal by the worker. */
static void
raise_refusal(const MailboxAnswer *answer)
{
	if (answer->result == MAILBOX_NO_PLACE)
		ErrorsNoPlace(ERROR, Utf8ToMessage(answer->failure.message));
	if (answer->result == MAILBOX_OTHER_REGION)
		ErrorsState(errmsg("locks are acquired in Region \"%s\" only, and this server uses \"%s\"",
						   ddblock_global_table_region, segment->place.region),
					errhint("Set \"ddblock.region\" to \"%s\", or correct "
							"\"ddblock.global_table_region\" on every server.",
							ddblock_global_table_region));
	if (answer->result == MAILBOX_GLOBAL_TABLE)
		ErrorsState(errmsg("lock table \"%s\" is a global table with eventual consistency",
						   ddblock_lock_table),
					errdetail("Two Regions could both grant a lock. The table's replicas are in: "
							  "%s.", Utf8ToMessage(answer->failure.message)),
					errhint("Set \"ddblock.global_table_region\" to one Region, the same on every "
							"server, or use a table that is not replicated or has strong "
							"consistency."));
}

/*
 * A renewal that failed within this time counts as the reason of a loss.  The time is long, because
 * a session may learn of a loss long after it.
 */
#define FAILURE_AGE_US (600 * USECS_PER_SEC)

const char *
ErrorsLossReason(lease_loss loss)
{
	const char *failure;

	switch (loss)
	{
		case LOSS_TAKEN:
			return "Another owner has taken it over.";
		case LOSS_RELEASED:
			return "Its item was marked released by somebody else.";
		case LOSS_DELETED:
			return "Its item was deleted by somebody else.";
		case LOSS_STOOD_STILL:
			return "This machine's clock stood still.";
		case LOSS_RESIGNED:
			return "This cluster has given up the leadership.";
		case LOSS_AT_MOST:
			return "The session was to hold it no longer (\"at_most\").";
		case LOSS_NONE:
		case LOSS_UNREACHABLE:
			break;
	}
	failure = SegmentRenewalFailure(SegmentNow() - FAILURE_AGE_US);
	return psprintf("No renewal was confirmed by DynamoDB before its deadline.%s%s",
					failure != NULL ? " The last one failed " : "",
					failure != NULL ? Utf8ToMessage(failure) : "");
}

void
ErrorsLost(const char *lock, lease_loss loss)
{
	ErrorsNoLease(errmsg("the lease on lock \"%s\" is lost", lock),
				  errdetail("%s", ErrorsLossReason(loss)),
				  errhint("Somebody else may hold the lock now. Release it with "
						  "ddb_lock_release(), or end the transaction if that is its scope, before "
						  "acquiring it again."));
}

void
ErrorsNotHeld(const char *lock)
{
	ErrorsNoLease(errmsg("lock \"%s\" is not held by this session", lock),
				  errhint("Acquire it with ddb_lock_acquire() first."));
}

void
ErrorsDetached(const char *lock)
{
	ErrorsState(errmsg("lock \"%s\" is detached already", lock));
}

/* Returns if the answer is about no limit. */
static void
raise_limit(const MailboxAnswer *answer)
{
	if (answer->result == MAILBOX_NO_ROOM)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("all %d leases of this cluster are in use", ddblock_max_leases),
				 superuser_arg(GetSessionUserId()) || ddblock_superuser_reserved_leases == 0 ? 0 :
				 errdetail("The last %d are reserved for superusers.",
						   Min(ddblock_superuser_reserved_leases, ddblock_max_leases - 1)),
				 errhint("Increase \"ddblock.max_leases\", or hold fewer locks at a time.")));
	if (answer->result == MAILBOX_ROLE_FULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many leases for role \"%s\"",
						GetUserNameFromId(GetSessionUserId(), false)),
				 errdetail("Its sessions hold %d, the limit set by \"ddblock.role_max_leases\".",
						   ddblock_role_max_leases),
				 errhint("Release locks, or have a superuser change the limit.")));
}

/* Callers that try deal with MAILBOX_BUSY themselves, so here it is the answer to a DETACH. */
void
ErrorsAnswer(const MailboxAnswer *answer, const char *lock)
{
	const MailboxFailure *failure = &answer->failure;

	if (answer->result == MAILBOX_FAILED)
		raise_failure(failure->op, failure->status, failure->message, failure->hint);
	raise_refusal(answer);
	if (answer->result == MAILBOX_LOST)
		ErrorsLost(lock, answer->loss);
	if (answer->result == MAILBOX_NOT_HELD)
		ErrorsNotHeld(lock);
	if (answer->result == MAILBOX_BUSY)
		ErrorsDetached(lock);
	if (answer->result == MAILBOX_DEADLOCK)
	{
		SegmentCount(EVENT_DEADLOCK);
		ereport(ERROR,
				(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
				 errmsg("deadlock detected"),
				 errdetail_internal("%s", Utf8ToMessage(failure->message)),
				 errhint("Acquire locks in the same order in every session.")));
	}
	raise_limit(answer);
	if (answer->result == MAILBOX_NO_MEMORY)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("The ddblock worker could not keep the request.")));
	if (answer->result == MAILBOX_MISSING)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("lock \"%s\" does not exist", lock),
				 errdetail("The lock table has no item for it."),
				 errhint("To create it, acquire it without argument \"only_if_exists\".")));
	if (answer->result == MAILBOX_BAD_ITEM)
		ErrorsState(errmsg("the item of lock \"%s\" is unusable", lock),
					errdetail_internal("%s", Utf8ToMessage(failure->message)),
					errhint("ddb_lock_force_release() shows the item, and can replace it."));
	elog(ERROR, "unexpected answer from the ddblock worker: %d", (int) answer->result);
}

void
ErrorsOtherToken(const char *lock, int64 token)
{
	ErrorsNoLease(errmsg("lock \"%s\" is not held with token %lld in this cluster", lock,
						 (long long) token),
				  errdetail("It was released or lost, or this is the token of another lock."));
}

void
ErrorsStaleToken(const char *resource, int64 recorded, const char *whose, int64 given)
{
	SegmentCount(EVENT_LK002);
	ereport(ERROR,
			(errcode(ERRCODE_DDBLOCK_STALE_TOKEN),
			 errmsg("fencing token for resource \"%s\" is stale", Utf8Quiet(resource)),
			 errdetail("Token %lld%s is recorded, token %lld was given.",
					   (long long) recorded, whose, (long long) given),
			 whose[0] == '\0' ?
			 errhint("Somebody else has held the lock since. Roll the transaction back, and "
					 "acquire the lock again.") :
			 errhint("Somebody else has held the lock since, or tokens of shared locks were "
					 "given to ddb_fence_check(), or of exclusive locks to ddb_fence_check_shared(). Roll "
					 "the transaction back, and acquire the lock again.")));
}

const char *
ErrorsModeName(lock_mode mode)
{
	switch (mode)
	{
		case MODE_EXCLUSIVE:
			return _("exclusively");
		case MODE_SHARED:
			return _("as a shared lock");
		case MODE_SEMAPHORE:
			return _("as permits of a semaphore");
	}
	pg_unreachable();
}
