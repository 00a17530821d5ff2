/*-------------------------------------------------------------------------
 *
 * lockmgr_seen.c
 *	  What we saw of another client's lock.
 *
 * Another client's version is dead LOCKMGR_DEAD_AFTER(its lease) after we first
 * received it, by our own clock; or at once, by DynamoDB's: see lockmgr_clock.c.  See
 * "Time" in doc/internals/protocol.md.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

static bool
is_shared(const lm_lock *lock)
{
	return lock->shared != NULL && lock->shared->current;
}

/* The moment from which the version we see is dead. */
static int64_t
dead_at(const lm_lock *lock)
{
	return lock->first_seen + LOCKMGR_DEAD_AFTER(lock->lease_ms * 1000);
}

/*
 * Records an item that was received now.  If its version is known, nothing changes:
 * what counts is when it was first seen.
 */
void
lm_observe(lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_item *item,
		   const dynamo_shared *shared)
{
	bool		expired = lm_is_expired(lm, item->version, item->lease_ms);
	int64_t		kept_until_ms = item->kept_until_ms;
	bool		same_kept;
	bool		same_owner;
	bool		same_token;

	/* Nobody can wait for that: the next acquire is refused, and tells why. */
	if (lm_is_kept_too_long(lm, now, kept_until_ms))
		kept_until_ms = 0;
	same_kept = lock->kept_until_ms == kept_until_ms;

	if (item->has_token)
		lm_raise_token(lock, item->token);
	lm_observe_shared(lm, lock, now, shared);
	lm_note_attributes(lock, item->attribute_names);
	lock->kept_until_ms = kept_until_ms;
	lm_note_mark(lm, now, lock, item);
	if (!item->exists || item->released || item->wrong != NULL)
	{
		lock->seen = false;
		if (!same_kept)
			lm_tell_watch(lm, lock);
		return;
	}
	same_owner = lock->seen && strcmp(lock->owner, item->owner) == 0;
	same_token = lock->token == (item->has_token ? item->token : 0);
	if (same_owner && lock->lease_ms == item->lease_ms &&
		strcmp(lock->version, item->version) == 0)
	{
		lock->expired |= expired;
		return;
	}

	/* Late copies of a dead owner's writes have all arrived when a lease has passed. */
	if (!same_owner)
		lock->owner_seen = now;
	else if (now - lock->owner_seen > LOCKMGR_DEAD_AFTER(item->lease_ms * 1000) &&
			 strcmp(item->owner, lm->owner) != 0 && lm->host.lives != NULL)
		lm->host.lives(lm->host.arg, item);

	lock->seen = true;
	lock->first_seen = now;
	lock->expired = expired;
	memcpy(lock->owner, item->owner, sizeof(lock->owner));
	memcpy(lock->version, item->version, sizeof(lock->version));
	lock->lease_ms = item->lease_ms;
	lock->token = item->has_token ? item->token : 0;
	if (!same_owner || !same_token)
	{
		lock->holder = item->holder;
		lock->holder_seen = now;
		lm_tell_watch(lm, lock);
	}
}

/*
 * The version that an acquire may overwrite although it is not released, or "": it
 * is dead, or was written by an abandoned acquire of our own, and the lock is not kept.
 * If clusters share it, all of them must be dead.
 */
const char *
lm_overwritable(const lockmgr *lm, int64_t now, const lm_lock *lock)
{
	if (lm_is_kept(lm, now, lock->kept_until_ms))
		return "";
	if (lock->seen && is_shared(lock))
		return lm_all_dead(lm, now, lock) ? lock->version : "";
	if (lock->seen &&
		(lock->expired || now >= dead_at(lock) ||
		 (strcmp(lock->owner, lm->owner) == 0 && lm_is_retired(lm, lock->version))))
		return lock->version;
	return "";
}

/* Would DynamoDB grant the request, as far as we know? */
bool
lm_is_ready(const lockmgr *lm, int64_t now, const lm_lock *lock, const lm_request *request)
{
	bool		open = lock->seen ? lm_overwritable(lm, now, lock)[0] != '\0' :
		!lm_is_kept(lm, now, lock->kept_until_ms);

	if (request->ask.mode == MODE_EXCLUSIVE)
		return open;
	return (open && !lm_gate_stands(lock)) || lm_can_join(lm, now, lock, request);
}

/* When a waiting session may become ready without another look; INT64_MAX: never. */
int64_t
lm_ripe_at(const lockmgr *lm, int64_t now, const lm_lock *lock)
{
	int64_t		end = lm_kept_end(lm, lock->kept_until_ms);
	int64_t		next;

	if (lock->seen && !is_shared(lock))
		return end > dead_at(lock) ? end : dead_at(lock);
	next = lm_next_death(now, lock);
	return end > now && end < next ? end : next;
}
