/*-------------------------------------------------------------------------
 *
 * lockmgr_refusal.c
 *	  Refusals that tell too little.
 *
 * A write that is refused for its condition asks for the item that failed it.  Some servers
 * never send it; DynamoDB does not if there is no item.  Then a consistent read tells why
 * the write was refused, and the write is settled with that item.
 *
 * An item that is as the write expects cannot be the reason.  DynamoDB never says that; who
 * does gets the write again, ever more seldom, until its lease is over.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

bool
lm_is_unexplained(const dynamo_result *result)
{
	return result->status == DYNAMO_CONDITION_FAILED && !result->item.exists;
}

/* The lock's write, whose call has just ended, was refused without the item. */
void
lm_explain(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->state == LOCK_LOST)
	{
		lm_renewal_failed(lm, now, lock);	/* the release will tell */
		return;
	}
	if (lock->state == LOCK_READING)	/* it was to set a gate, or a mark */
	{
		lock->sets_gate = lock->marks = false;
		lock->read_consistently = true;
	}
	else
		lock->explains = true;
	if (lock->state == LOCK_RENEWING)
		heap_set(&lm->renewals, &lock->renewal, now);
	else
		lm_submit(lm, lock);
}

/*
 * Was the lock's renewal or release refused although the item is as it expects?  Not if it
 * asked for permits; and a release in shared mode may first be turned.
 */
bool
lm_is_odd(const lockmgr *lm, const lm_lock *lock, const dynamo_result *result)
{
	const struct lease *l = &lock->lease->l;
	const lease_write *pending = &l->pending;
	const dynamo_entry *entry;

	if (result->status != DYNAMO_CONDITION_FAILED ||
		(pending->op != DYNAMO_RENEW && pending->op != DYNAMO_RELEASE))
		return false;
	if (l->mode == MODE_EXCLUSIVE)
		return result->item.exists && !result->item.released &&
			strcmp(result->item.owner, lm->owner) == 0 &&
			strcmp(result->item.version, pending->expected) == 0;
	entry = lm_entry_in(lm, l->epoch, result);
	return entry != NULL && strcmp(entry->version, pending->expected) == 0 &&
		(pending->op == DYNAMO_RENEW ? pending->permits <= 0 : lock->turned);
}
