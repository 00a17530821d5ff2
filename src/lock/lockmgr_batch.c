/*-------------------------------------------------------------------------
 *
 * lockmgr_batch.c
 *	  Are batches of renewals to be believed?
 *
 * A batch is PartiQL, which servers other than DynamoDB know badly, if at all.  One that
 * takes a statement for done although its condition is false would renew what somebody
 * else has got.  So the manager checks that first, by a batch of one statement about a lock
 * that it holds: the statement's condition is false for certain, and it would change
 * nothing.  Only if it is refused for its condition are renewals sent in batches.
 *
 * Batches may fail later although single renewals succeed.  They are then checked again.
 * While they are in doubt, leases are renewed one by one, and the check is repeated ever more
 * seldom.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#define CHECK_AGAIN_US	INT64_C(1000000)
#define DOUBLINGS_MAX	10
#define CHECKS_TOLD		3		/* so many fail before the host is told */

/* Nobody writes this version, so no item ever has it, however late the check arrives. */
#define NIL_UUID		"00000000-0000-0000-0000-000000000000"

/* Is it the check, and not a batch of renewals? */
bool
lm_is_batch_check(const lm_call *call)
{
	return call->op == DYNAMO_RENEW_BATCH && call->count == 1;
}

/* Describes the check. */
void
lm_describe_batch_check(const lockmgr *lm, const lm_lock *lock, dynamo_write *write,
						dynamo_shared_write *shared)
{
	const struct lease *l = &lock->lease->l;

	*shared = (dynamo_shared_write) {
		.kind = DYNAMO_SHARED_RENEW,.epoch = l->epoch,.me = lm->incarnation
	};
	*write = (dynamo_write) {
		.op = DYNAMO_RENEW,.name = lock->name,.name_len = lock->name_len,
		.owner = lm->owner,.version = l->version,.expected = NIL_UUID,
		.lease_ms = l->lease_ms,.shared = l->mode != MODE_EXCLUSIVE ? shared : NULL
	};
}

static void
end_batches(lockmgr *lm, const dynamo_reply *reply)
{
	lm->batches = BATCHES_REFUSED;
	lm->host.no_batches(lm->host.arg, reply, true);
}

void
lm_batch_checked(lockmgr *lm, int64_t now, const dynamo_reply *reply)
{
	dynamo_status status = reply->count > 0 ? reply->results[0].status : DYNAMO_MALFORMED;

	if (status == DYNAMO_CONDITION_FAILED)
	{
		lm->batches = BATCHES_GOOD;
		lm->checks_failed = 0;
	}
	else if (status == DYNAMO_OK || status == DYNAMO_ACCESS_DENIED ||
			 status == DYNAMO_VALIDATION)
		end_batches(lm, reply);
	else
	{
		lm->check_at = now + (CHECK_AGAIN_US << lm->checks_failed);
		if (lm->checks_failed < DOUBLINGS_MAX && ++lm->checks_failed == CHECKS_TOLD &&
			reply->count > 0)
			lm->host.no_batches(lm->host.arg, reply, false);
	}
}

/*
 * If permission for PartiQL is missing, the whole batch or each statement is refused.
 */
void
lm_batch_replied(lockmgr *lm, const dynamo_reply *reply)
{
	bool		refused = reply->status == DYNAMO_ACCESS_DENIED ||
		reply->status == DYNAMO_VALIDATION;

	for (int i = 0; i < reply->count; i++)
		refused |= reply->results[i].status == DYNAMO_ACCESS_DENIED;
	if (refused && lm->batches != BATCHES_REFUSED)
		end_batches(lm, reply);
}

/* A renewal that went on failing in batches has succeeded alone. */
void
lm_doubt_batches(lockmgr *lm, int64_t now)
{
	if (lm->batches != BATCHES_GOOD)
		return;
	lm->batches = BATCHES_IN_DOUBT;
	lm->check_at = now;
}
