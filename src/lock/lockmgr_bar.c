/*-------------------------------------------------------------------------
 *
 * lockmgr_bar.c
 *	  Barring an acquire that may arrive late.
 *
 * An acquire that was given up can still do harm.  Example:
 *
 *	 T1: We send an acquire with token 100.  The network keeps it back; its session gives up.
 *	 T2: Another cluster, whose clock is behind ours, gets the lock with token 90, and releases
 *		 it.
 *	 T3: Our acquire arrives.  The lock is free, and 90 is below 100, so DynamoDB applies it: the
 *		 lock is held for nobody, until the lease ends.
 *
 * So we bar an acquire of which we have sent a copy, do not know what became of it, and did not
 * get the lock.  A bar is a write that raises the token of the item to the acquire's last one,
 * whoever holds the item.  Every acquire demands a token below its first, so after a bar no copy
 * can be applied any more.  Where there is no item, the bar makes one, released, with that token,
 * unless the acquire itself would make none.  Then we release what a copy has written before.
 *
 * A copy has written an item if its owner is this incarnation and its version is not that of an
 * acquire under way.  The lock has no confirmed lease of ours beside a bar: an acquire that is
 * confirmed has a higher token, so it counts as the bar and ends it.  The same is true for
 * anything else of ours that was left in the item.  So the bars of one lock merge into one, with
 * the highest tokens.
 *
 * Sessions do not wait for a bar.  It is repeated until it is settled, or until DynamoDB
 * accepts the signature of no copy of the acquire any more.  The next worker finds the bar in
 * the lease; the next incarnation bars the locks that the journal names.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

/*
 * Makes this lease the lock's bar.  An older bar of the lock ends, and the higher tokens of the
 * two count.  The lease may come from the previous manager: then the bar begins again.
 */
void
lm_attach_bar(lockmgr *lm, int64_t now, lm_lease *bar, lm_lock *lock)
{
	lease_write *pending = &bar->l.pending;
	lm_lease   *older = lock->bar;

	if (older != NULL)
	{
		const lease_write *barred = &older->l.pending;

		if (barred->last_token > pending->last_token)
		{
			pending->first_token = barred->first_token;
			pending->last_token = barred->last_token;
		}
		pending->must_exist = pending->must_exist && barred->must_exist;
	}
	lock->bar = bar;
	bar->lock = lock;
	bar->attempts = 0;
	lm_raise_token(lock, pending->last_token);
	pending->op = DYNAMO_BAR;
	heap_set(&lm->bars, &bar->next_step, now);
	lm_save(lm, bar, false);
	if (older != NULL)
		lm_end_bar(lm, older);
}

/* The lock's acquire is given up: its lease, which has no holds, becomes the bar. */
void
lm_bar(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_lease   *bar = lock->lease;
	saved_lease *l = &bar->l;

	lm_retire(lm, l->pending.version);
	memcpy(l->stray, l->pending.version, sizeof(l->stray));
	/*
	 * A JOIN or REPLACE names an epoch, which does not come back: it needs no bar without an item.
	 */
	if (l->pending.kind != DYNAMO_SHARED_OPEN)
		l->pending.must_exist = true;
	l->lease_end = now + LM_LATE_US;
	lm_set_lease_state(lm, bar, LEASE_BARRING);
	lock->lease = NULL;
	lm_attach_bar(lm, now, bar, lock);
}

/* The bar is settled, or DynamoDB accepts no late copy any more: frees its lease. */
void
lm_end_bar(lockmgr *lm, lm_lease *bar)
{
	lm_lock    *lock = bar->lock;

	heap_set(&lm->bars, &bar->next_step, INT64_MAX);
	if (bar->call != NULL)
		bar->call->count = 0;	/* its reply is ignored */
	bar->call = NULL;
	if (lock->bar == bar)
		lock->bar = NULL;
	lm_put_lease(lm, bar);
	lm_remember(lm, lock);
}

/* Does the token in the item keep out every copy of that acquire? */
bool
lm_is_barred(const lease_write *pending, const dynamo_item *item)
{
	return item->bad_token || item->token >= pending->first_token;
}

void
lm_describe_bar(lockmgr *lm, int64_t now, lm_lease *bar, dynamo_write *write,
				dynamo_shared_write *shared)
{
	saved_lease *l = &bar->l;
	const lm_lock *lock = bar->lock;
	uint8_t		random[16];

	lm->host.random(lm->host.arg, random, sizeof(random));
	uuid_v4(random, l->pending.version);
	lm_save(lm, bar, false);
	*write = (dynamo_write)
	{
		.op = l->pending.op,
			.name = lock->name,
			.name_len = lock->name_len,
			.owner = lm->owner,
			.version = l->pending.version,
			.expected = l->pending.expected,
			.lease_ms = l->pending.lease_ms,
			.first_token = l->pending.first_token,
			.last_token = l->pending.last_token,
			.kept_until_ms = l->kept_until_ms,
			.now_s = (now + lm->epoch_offset_us) / 1000000,
	};
	if (l->pending.op != DYNAMO_RELEASE)
		return;
	write->old_attributes = lock->attribute_names;
	*shared = (dynamo_shared_write) {
		.kind = l->pending.kind,.epoch = l->epoch,.me = lm->incarnation
	};
	if (l->mode != MODE_EXCLUSIVE)
		write->shared = shared;
}

/*
 * Does the item have something of ours that belongs to nobody?  If so, prepares its release.
 *
 *	 - If it is not what the acquire that was given up last wrote, keptUntil stays: an earlier
 *	   version brought it, and may have promised it to a session.
 *	 - In shared mode, the last cluster to leave releases the item.  If one of LEAVE and LAST was
 *	   refused although our entry has the expected version, the other one is right.
 */
static bool
has_arrived(const lockmgr *lm, lm_lease *bar, const dynamo_result *result)
{
	saved_lease *l = &bar->l;
	const lm_lease *lease = bar->lock->lease;
	const dynamo_item *item = &result->item;
	const dynamo_entry *entry = dynamo_find_entry(result->shared, lm->incarnation);
	const char *version = entry != NULL ? entry->version : item->version;
	bool		refused = l->pending.op == DYNAMO_RELEASE &&
		strcmp(l->pending.expected, version) == 0;

	if (entry == NULL && (item->released || strcmp(item->owner, lm->owner) != 0))
		return false;
	if (lease != NULL && strcmp(lease->l.pending.version, version) == 0)
		return false;
	memcpy(l->pending.expected, version, sizeof(l->pending.expected));
	l->kept_until_ms = strcmp(version, l->stray) == 0 ? 0 : item->kept_until_ms;
	l->mode = MODE_EXCLUSIVE;
	if (entry == NULL)
		return true;
	l->mode = MODE_SHARED;
	memset(l->epoch, 0, sizeof(l->epoch));
	memcpy(l->epoch, item->owner, strnlen(item->owner, sizeof(l->epoch) - 1));
	if (refused)
		l->pending.kind = l->pending.kind == DYNAMO_SHARED_LAST ? DYNAMO_SHARED_LEAVE :
			DYNAMO_SHARED_LAST;
	else
		l->pending.kind = result->shared->count == 1 ? DYNAMO_SHARED_LAST : DYNAMO_SHARED_LEAVE;
	return true;
}

/*
 * Is the bar settled by this outcome of its last step?  If not, sets the next step.  A refusal
 * that shows no item does not prove that there is none: see explain() in lockmgr_reply.c.
 */
static bool
is_settled(const lockmgr *lm, lm_lease *bar, const dynamo_result *result, dynamo_op *next)
{
	const lease_write *pending = &bar->l.pending;
	bool		done = result->status == DYNAMO_OK;

	if (pending->op == DYNAMO_BAR_NEW)
	{
		*next = result->item.exists ? DYNAMO_BAR : DYNAMO_READ;
		return done;
	}
	if (pending->op == DYNAMO_RELEASE)
	{
		*next = DYNAMO_RELEASE;
		return done || !has_arrived(lm, bar, result);
	}
	if (lm_is_barred(pending, &result->item))
	{
		*next = DYNAMO_RELEASE;
		return !has_arrived(lm, bar, result);
	}
	*next = result->item.exists ? DYNAMO_BAR : DYNAMO_BAR_NEW;
	return !result->item.exists && pending->must_exist;
}

/* A step of the bar has ended: ends the bar, or sets the timer for the next step. */
void
lm_bar_settled(lockmgr *lm, int64_t now, lm_lease *bar, const dynamo_result *result)
{
	dynamo_op	next = DYNAMO_BAR;

	bar->call = NULL;
	if ((!dynamo_is_failure(result->status) && is_settled(lm, bar, result, &next)) ||
		now >= bar->l.lease_end)
	{
		lm_end_bar(lm, bar);
		return;
	}
	/*
	 * Backs off, unless a BAR has led to another step: a step has failed, or somebody wrote
	 * meanwhile.
	 */
	if (bar->l.pending.op != DYNAMO_BAR || next == DYNAMO_BAR)
		now += lm_backoff(lm, ++bar->attempts, BACKOFF_CAP_US);
	bar->l.pending.op = next;
	heap_set(&lm->bars, &bar->next_step, now);
}
