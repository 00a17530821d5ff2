/*-------------------------------------------------------------------------
 *
 * lockmgr_bar.c
 *	  Barring an acquire that may arrive late.
 *
 * Whoever has sent a copy of an acquire, does not know what became of it, and did not
 * get the lock, bars it: it raises the token in the item to the acquire's own, whoever
 * holds the item.  Every acquire demands a token below its first, so no copy can be
 * applied any more.  Where there is no item, it makes one, released, with that token;
 * not for an acquire that makes none itself.  Then it releases what has arrived.
 * For example, an acquire with the token 500 had no reply, and its session has given up:
 * the bar gives the item the token 500, and the copy that arrives a minute later is refused.
 *
 * What has arrived shows by its owner, which is this incarnation, and by its version,
 * which is not that of the acquire under way: while a bar is not settled, the lock has
 * no other lease, because an acquire that is confirmed has a higher token, and so counts
 * as the bar.  That holds for anything of ours that was left in the item, not only for
 * the newest acquire: so the bars of one lock merge into one, with the highest tokens.
 *
 * Sessions do not wait for it.  It is repeated until it is settled, or until DynamoDB
 * accepts no signature of the last copy any more.  The next worker finds it in the
 * lease; the next incarnation, in the journal.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

/* Makes the lease, which may be one that the previous manager had begun to bar, the lock's bar. */
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

/* Takes the lock's lease, which has no holds, to bar its acquire. */
void
lm_bar(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_lease   *bar = lock->lease;
	struct lease *l = &bar->l;

	lm_retire(lm, l->pending.version);
	memcpy(l->stray, l->pending.version, sizeof(l->stray));
	/* An epoch does not come back. */
	if (l->pending.kind != DYNAMO_SHARED_OPEN)
		l->pending.must_exist = true;
	l->lease_end = now + LM_LATE_US;
	lm_set_lease_state(lm, bar, LEASE_BARRING);
	lock->lease = NULL;
	lm_attach_bar(lm, now, bar, lock);
}

/* It is settled, or nobody accepts a late copy any more. */
void
lm_end_bar(lockmgr *lm, lm_lease *bar)
{
	lm_lock    *lock = bar->lock;

	heap_set(&lm->bars, &bar->next_step, INT64_MAX);
	if (bar->call != NULL)
		bar->call->count = 0;	/* nobody waits for its reply */
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
	struct lease *l = &bar->l;
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
 * If something of ours is in the item that belongs to nobody, prepares its release.  A
 * minimum that was promised with an earlier version stays.  In shared mode, whoever leaves
 * last releases the item: if one form was refused, the other one is right.
 */
static bool
has_arrived(const lockmgr *lm, lm_lease *bar, const dynamo_result *result)
{
	struct lease *l = &bar->l;
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
 * Is the bar settled by that outcome of its last step?  Else sets the next one.  A refusal
 * that shows no item may have met one all the same: see explain() in lockmgr_reply.c.
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

/* A step has ended. */
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
	/* Else it has failed, or has met somebody else's write. */
	if (bar->l.pending.op != DYNAMO_BAR || next == DYNAMO_BAR)
		now += lm_backoff(lm, ++bar->attempts, BACKOFF_CAP_US);
	bar->l.pending.op = next;
	heap_set(&lm->bars, &bar->next_step, now);
}
