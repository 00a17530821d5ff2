/*-------------------------------------------------------------------------
 *
 * lockmgr_delete.c
 *	  Deleting the item of a released lock, if its holder wanted that.
 *
 * Without the item, only time keeps tokens rising: a token is a little ahead of
 * DynamoDB's clock, and a later acquire by another cluster could get a lower one.
 * So the lock is released as ever, and the item is deleted when its tokens are
 * certainly in the past, unless somebody has acquired the lock by then.  Another
 * cluster repeats an acquire, with the token of its first copy, for its retry timeout;
 * we wait twice our own, so the two may differ by that.  Then late copies of writes are
 * most likely gone, too.
 *
 * That is forgotten with the worker, and when many other locks are remembered: the
 * item stays.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

#define DELETE_AFTER_MIN_US	INT64_C(10000000)

static int64_t
delete_after_us(const lockmgr *lm)
{
	int64_t		us = 2 * lm->retry_timeout_us;

	return us < DELETE_AFTER_MIN_US ? DELETE_AFTER_MIN_US : us;
}

/*
 * The pending release is confirmed; its lease is still the lock's.  The item stays as
 * long as it keeps the lock from others.
 */
void
lm_delete_later(const lockmgr *lm, int64_t now, lm_lock *lock)
{
	const struct lease *l = &lock->lease->l;
	int64_t		kept_end = l->ends_kept ? now : lm_kept_end(lm, l->kept_until_ms);

	if (!l->deletes_item || l->uncertain || kept_end == INT64_MAX)
		return;
	memcpy(lock->delete_version, l->pending.version, sizeof(lock->delete_version));
	lock->delete_token = l->last_token;
	lock->delete_at = (kept_end > now ? kept_end : now) + delete_after_us(lm);
}

/* Nobody here wants the lock. */
void
lm_delete_if_due(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->delete_at == 0 || now < lock->delete_at)
		return;
	lock->delete_at = 0;
	/* If its tokens were ahead of the clock, only the item keeps the next ones above them. */
	if (lock->top_token >= now + lm->epoch_offset_us - DELETE_AFTER_MIN_US / 2)
		return;
	lock->look_deletes_item = true;
	(void) lm_get_lock(lm, lock->name, lock->name_len); /* a call points to it now */
	lm_look(lm, lock);
}

/* It was refused if somebody has acquired the lock, or has deleted the item. */
void
lm_delete_settled(const lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_result *result)
{
	if (lock->lease == NULL && dynamo_is_transient(result->status))
		lock->delete_at = now + delete_after_us(lm);
}
