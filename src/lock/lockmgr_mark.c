/*-------------------------------------------------------------------------
 *
 * lockmgr_mark.c
 *	  A cluster that waits is heard.
 *
 * Who takes a lock again as soon as he has released it leaves it free for less time than
 * passes between two polls.  So a cluster that has waited for a while marks the item, and
 * repeats that while it waits.  The reply to a release shows the mark to the holder's
 * cluster, which then stays back for two polls of the other one and a round trip: once
 * for each mark, unless others have had the lock since.
 *
 * A mark has no part in who may have the lock.  It may be lost, late, a dead cluster's, or
 * forged: that costs a moment.  See "Waiting and hand-over" in doc/internals/protocol.md.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

#define MARK_AFTER_US	INT64_C(1000000)	/* of waiting; and between two marks */
#define MARK_MS			INT64_C(10000)	/* a mark counts for so long, */
#define MARK_BELIEVED_MS	(MARK_MS + 5000)	/* ... or longer, by clocks that differ */
#define MARK_EARLY_US	INT64_C(2000000)	/* it is repeated before it ends */
#define ROUND_TRIP_US	INT64_C(100000)
#define STAY_BACK_MAX_US	INT64_C(1000000)

/* By DynamoDB's clock, does the item have a mark that counts? */
static bool
is_marked(const lockmgr *lm, int64_t now, const dynamo_item *item)
{
	return item->wanted_until_ms > lm_past_ms(lm, now) &&
		item->wanted_until_ms <= (now + lm->epoch_offset_us) / 1000 + MARK_BELIEVED_MS;
}

static bool
is_ours(const lockmgr *lm, const dynamo_item *item)
{
	return strcmp(item->wanted_by, lm->incarnation) == 0;
}

/* The item was received now. */
void
lm_note_mark(const lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_item *item)
{
	bool		marked = is_marked(lm, now, item);

	lock->by_ddblock = item->by_ddblock;
	lock->marked_by_us = marked && is_ours(lm, item);
	lock->marked_until = marked ? item->wanted_until_ms * 1000 - lm->epoch_offset_us : 0;
}

/* Has another client let go of the lock since we wait, or have marked it, and we did not get it? */
bool
lm_has_changed_hands(const lm_lock *lock)
{
	return lock->holder_seen > lock->asked_at;
}

/*
 * Is the next poll to mark the item?  Not for a campaign, which is in no hurry, nor if the
 * holder is another client, who does not look; and who shares the lock has his own way.  Another
 * cluster's mark will do, unless the lock has changed hands in spite of it.
 */
bool
lm_mark_is_due(int64_t now, const lm_lock *lock)
{
	if (lock->first->request.ask.campaign || !lock->seen || !lock->by_ddblock ||
		lock->asked_at == 0 || now - lock->asked_at < MARK_AFTER_US)
		return false;
	return lm_has_changed_hands(lock) ||
		now >= lock->marked_until - (lock->marked_by_us ? MARK_EARLY_US : 0);
}

void
lm_describe_mark(const lockmgr *lm, int64_t now, lm_lock *lock, dynamo_write *write)
{
	lock->asked_at = now;
	*write = (dynamo_write)
	{
		.op = DYNAMO_MARK,.name = lock->name,.name_len = lock->name_len,
			.owner = lm->owner,.version = "",.expected = lock->owner,
			.wanted_until_ms = (now + lm->epoch_offset_us) / 1000 + MARK_MS,
			.wanted_poll_ms = lock->mark_poll_us / 1000,
	};
}

/* That is no trouble: polls go on, and the next mark is not in a hurry. */
void
lm_mark_failed(int64_t now, lm_lock *lock)
{
	lock->asked_at = now + MARK_MS * 1000 - MARK_AFTER_US;
}

/*
 * The longest time between two polls: our mark may promise less.  What a mark of the manager
 * before us promised, we do not know.
 */
int64_t
lm_longest_promised(int64_t now, const lm_lock *lock, int64_t interval)
{
	return lock->marked_by_us && now < lock->marked_until && lock->mark_poll_us > 0 &&
		lock->mark_poll_us < interval ? lock->mark_poll_us : interval;
}

/* We have acquired the lock, and have removed our mark. */
void
lm_have_asked(lm_lock *lock)
{
	lock->marked_by_us = false;
	lock->marked_until = lock->asked_at = 0;
}

/* The lock is released; the item was this before. */
void
lm_hear(const lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_item *item)
{
	int64_t		stay = STAY_BACK_MAX_US;

	if (!is_marked(lm, now, item) || is_ours(lm, item) ||
		item->wanted_until_ms == lock->heard_ms)
		return;
	lock->heard_ms = item->wanted_until_ms;
	if (item->wanted_poll_ms < (STAY_BACK_MAX_US - ROUND_TRIP_US) / 2000)
		stay = item->wanted_poll_ms * 2000 + ROUND_TRIP_US;
	if (lock->stay_back_until < now + stay)
		lock->stay_back_until = now + stay;
}
