/*-------------------------------------------------------------------------
 *
 * lockmgr_seen.c
 *	  What we saw of the clusters that share a lock, of who waits, and of another client's lock.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*-------------------------------------------------------------------------
 * What we saw of the clusters that share a lock: their entries in the item, and the gate of a
 * waiter who wants it exclusively.
 *
 * An entry is dead LOCKMGR_DEAD_AFTER(its own lease) after we first received its
 * version, by our own clock, or at once by DynamoDB's (lockmgr_clock.c); a gate likewise,
 * but by our clock only.  A write that removes what is dead names those versions, so it does
 * not matter how old our view is.
 *-------------------------------------------------------------------------
 */

static bool
is_shared(const lm_lock *lock)
{
	return lock->shared != NULL && lock->shared->current;
}

static int64_t
entry_dead_at(const lm_entry *entry)
{
	return entry->first_seen + LOCKMGR_DEAD_AFTER(entry->lease_ms * 1000);
}

static bool
is_ours(const lockmgr *lm, const lm_entry *entry)
{
	return strcmp(entry->incarnation, lm->incarnation) == 0;
}

/* One of ours with a retired nonce belongs to no session. */
static bool
is_dead(const lockmgr *lm, int64_t now, const lm_entry *entry)
{
	return entry->expired || now >= entry_dead_at(entry) ||
		(is_ours(lm, entry) && lm_is_retired(lm, entry->version));
}

static const lm_entry *
find_entry(const lm_shared *shared, const char *incarnation)
{
	for (int i = 0; shared != NULL && i < shared->count; i++)
	{
		if (strcmp(shared->entries[i].incarnation, incarnation) == 0)
			return &shared->entries[i];
	}
	return NULL;
}

const lm_entry *
lm_our_entry(const lockmgr *lm, const lm_lock *lock)
{
	return find_entry(lock->shared, lm->incarnation);
}

/* Does anybody else have an entry, as far as we know? */
bool
lm_shared_by_others(const lockmgr *lm, const lm_lock *lock)
{
	return lock->shared != NULL && lock->shared->count > (lm_our_entry(lm, lock) != NULL);
}

/*
 * Records what an item that was received now tells of shared mode.  When memory is
 * short, nothing is known: as to a client that has no shared mode, the item is then one
 * holder's, dead when it has not changed for the longest lease in it.
 */
void
lm_observe_shared(const lockmgr *lm, lm_lock *lock, int64_t now, const dynamo_shared *seen)
{
	lm_shared  *old = lock->shared;
	lm_shared  *shared = NULL;

	if (seen != NULL && seen->wrong == NULL)
		shared = calloc(1, sizeof(lm_shared) + (size_t) seen->count * sizeof(lm_entry));
	if (shared != NULL)
	{
		shared->received = now;
		shared->current = seen->current;
		shared->mode = seen->mode;
		shared->total = seen->total;
		shared->count = seen->count;
		for (int i = 0; i < seen->count; i++)
		{
			const dynamo_entry *told = &seen->entries[i];
			const lm_entry *known = find_entry(old, told->incarnation);
			lm_entry   *entry = &shared->entries[i];
			bool		same = known != NULL && known->lease_ms == told->lease_ms &&
				strcmp(known->version, told->version) == 0;

			memcpy(entry->incarnation, told->incarnation, sizeof(entry->incarnation));
			memcpy(entry->version, told->version, sizeof(entry->version));
			entry->lease_ms = told->lease_ms;
			entry->permits = told->permits;
			/* If the version is known, what counts is when it was first seen. */
			entry->first_seen = same ? known->first_seen : now;
			entry->expired = (same && known->expired) ||
				lm_is_expired(lm, told->version, told->lease_ms);
			if (shared->owner[0] == '\0' && !is_ours(lm, entry))
				snprintf(shared->owner, sizeof(shared->owner), "%.*s/%s",
						 (int) (sizeof(shared->owner) - sizeof(told->incarnation) - 1),
						 told->name, told->incarnation);
		}
		if (seen->gate)
		{
			memcpy(shared->gate, seen->gate_version, sizeof(shared->gate));
			shared->gate_lease_ms = seen->gate_lease_ms;
			shared->gate_seen = old != NULL && old->gate_lease_ms == seen->gate_lease_ms &&
				strcmp(old->gate, shared->gate) == 0 ? old->gate_seen : now;
		}
	}
	free(old);
	lock->shared = shared;
}

bool
lm_is_our_gate(const lm_lock *lock)
{
	return lock->shared != NULL && lock->shared->gate[0] != '\0' &&
		(strcmp(lock->shared->gate, lock->gate) == 0 ||
		 strcmp(lock->shared->gate, lock->old_gate) == 0);
}

/* Do clusters share the lock that the first in the queue wants exclusively? */
bool
lm_needs_gate(const lm_lock *lock)
{
	return lock->first != NULL && lock->first->request.ask.mode == MODE_EXCLUSIVE &&
		lock->seen && is_shared(lock);
}

static int64_t
gate_dead_at(const lm_shared *shared)
{
	return shared->gate_seen + LOCKMGR_DEAD_AFTER(shared->gate_lease_ms * 1000);
}

/*
 * Does a gate keep us from sharing the lock?  While we have the lock, we let sessions in
 * without a request, and see the item a few times in a lease of ours only, which may be
 * longer than the waiter's.  So a gate is dead only if we have seen it unchanged at the
 * end of its lease, not if we have not looked since.
 */
bool
lm_gate_stands(const lm_lock *lock)
{
	return lock->shared != NULL && lock->shared->gate[0] != '\0' && !lm_is_our_gate(lock) &&
		lock->shared->received < gate_dead_at(lock->shared);
}

/* The version of the gate that a write may pass, or "". */
const char *
lm_dead_gate(const lm_lock *lock)
{
	return lock->shared != NULL && !lm_gate_stands(lock) ? lock->shared->gate : "";
}

/* When the next of what we saw will be dead; INT64_MAX: never. */
int64_t
lm_next_death(int64_t now, const lm_lock *lock)
{
	const lm_shared *shared = lock->shared;
	int64_t		next = lm_gate_stands(lock) && gate_dead_at(shared) > now ?
		gate_dead_at(shared) : INT64_MAX;

	for (int i = 0; shared != NULL && i < shared->count; i++)
	{
		int64_t		at = entry_dead_at(&shared->entries[i]);

		if (at > now && at < next)
			next = at;
	}
	return next;
}

/*
 * Names the dead that a write removes: all of other clusters.  A repetition may name
 * others than the first copy; only one copy is ever applied.
 */
void
lm_name_dead(const lockmgr *lm, int64_t now, const lm_lock *lock,
			 dynamo_admission *admission, dynamo_dead_entry *dead)
{
	const lm_shared *shared = lock->shared;

	admission->dead = dead;
	admission->dead_gate = lm_dead_gate(lock);
	for (int i = 0; shared != NULL && i < shared->count; i++)
	{
		const lm_entry *entry = &shared->entries[i];

		if (is_ours(lm, entry) || !is_dead(lm, now, entry))
			continue;
		admission->freed += entry->permits;
		dead[admission->dead_count++] = (dynamo_dead_entry) {
			.incarnation = entry->incarnation,.version = entry->version
		};
	}
}

/*
 * May our entry have so many more, within the limit, beside those of living entries?  If we do
 * not know, DynamoDB will say.
 */
bool
lm_has_permits(const lockmgr *lm, int64_t now, const lm_lock *lock, int32_t permits,
			   int32_t limit)
{
	dynamo_dead_entry dead[DYNAMO_ENTRIES_MAX];
	dynamo_admission admission = {0};

	if (lock->shared == NULL || !lock->shared->current || limit == 0)
		return true;
	lm_name_dead(lm, now, lock, &admission, dead);
	return (int64_t) lock->shared->total - admission.freed + permits <= limit;
}

/* May we add an entry, or replace our own dead one? */
bool
lm_can_join(const lockmgr *lm, int64_t now, const lm_lock *lock, const lm_request *request)
{
	const lm_shared *shared = lock->shared;
	const lm_entry *ours = lm_our_entry(lm, lock);
	dynamo_dead_entry dead[DYNAMO_ENTRIES_MAX];
	dynamo_admission admission = {0};

	if (!lock->seen || shared == NULL || !shared->current ||
		shared->mode != request->ask.mode ||
		lm_gate_stands(lock) || (ours != NULL && !is_dead(lm, now, ours)))
		return false;
	lm_name_dead(lm, now, lock, &admission, dead);
	return (ours != NULL || shared->count < DYNAMO_ENTRIES_MAX + admission.dead_count) &&
		lm_has_permits(lm, now, lock, request->ask.permits - (ours != NULL ? ours->permits : 0),
					   request->ask.limit);
}

/*
 * Our entry in the item of a result, if that is in this epoch; also if the item is
 * unusable to those who want the lock.
 */
const dynamo_entry *
lm_entry_in(const lockmgr *lm, const char *epoch, const dynamo_result *result)
{
	return strcmp(result->item.owner, epoch) == 0 ?
		dynamo_find_entry(result->shared, lm->incarnation) : NULL;
}

/* The epoch in which the pending write's entry is, if it was applied. */
void
lm_pending_epoch(const lease *l, char epoch[DYNAMO_EPOCH_SIZE])
{
	if (l->pending.kind == DYNAMO_SHARED_OPEN)
		snprintf(epoch, DYNAMO_EPOCH_SIZE, "shared/%s", l->pending.version);
	else
		memmove(epoch, l->epoch, DYNAMO_EPOCH_SIZE);
}

/* Does the refused item show that an earlier copy of the pending write was applied? */
bool
lm_stands(const lockmgr *lm, const lease *l, const dynamo_result *result)
{
	const dynamo_entry *entry;
	char		epoch[DYNAMO_EPOCH_SIZE];

	if (l->mode == MODE_EXCLUSIVE)
		return !result->item.released &&
			strcmp(result->item.version, l->pending.version) == 0;
	lm_pending_epoch(l, epoch);
	entry = lm_entry_in(lm, epoch, result);
	return entry != NULL && strcmp(entry->version, l->pending.version) == 0;
}

/*-------------------------------------------------------------------------
 * A cluster that waits is heard.
 *
 * Who takes a lock again as soon as he has released it leaves it free for less time than
 * passes between two polls.  So a cluster that has waited for a while marks the item, and
 * repeats that while it waits.  The reply to a release shows the mark to the holder's
 * cluster, which then stays back for two polls of the other one and a round trip: once
 * for each mark, unless others have had the lock since.
 *
 * A mark has no part in who may have the lock.  It may be lost, late, a dead cluster's, or
 * forged: that costs a moment.  See "Waiting and hand-over" in doc/internals/protocol.md.
 *-------------------------------------------------------------------------
 */

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
is_our_mark(const lockmgr *lm, const dynamo_item *item)
{
	return strcmp(item->wanted_by, lm->incarnation) == 0;
}

/* Two polls and a round trip, as the mark says. */
static int64_t
pause_us(const dynamo_item *item)
{
	return item->wanted_poll_ms < (STAY_BACK_MAX_US - ROUND_TRIP_US) / 2000 ?
		item->wanted_poll_ms * 2000 + ROUND_TRIP_US : STAY_BACK_MAX_US;
}

/* Would the permits that the mark wants still be free if so many more were taken? */
static bool
leaves_room(const lockmgr *lm, int64_t now, const lm_lock *lock, int32_t permits)
{
	dynamo_dead_entry dead[DYNAMO_ENTRIES_MAX];
	dynamo_admission admission = {0};
	int64_t		total = is_shared(lock) ? lock->shared->total :
		lock->lease != NULL ? lock->lease->l.permits : 0;

	lm_name_dead(lm, now, lock, &admission, dead);
	return total - admission.freed + permits <= lock->mark_leaves;
}

/*
 * The item was received now; or no item, as in some replies about a lease of ours.  As long as the
 * permits that another cluster's mark wants are not free, we leave them, or it would never find
 * enough; when they are, we pause once, as after the release of a lock.  While somebody has the
 * lock exclusively, nobody can take any.  Who shares the lock does not hear a mark without a number.
 */
void
lm_note_mark(const lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_item *item)
{
	bool		permits = item->wanted_permits > 0 && item->wanted_permits <= item->wanted_limit;
	bool		marked = is_marked(lm, now, item) && (permits || !is_shared(lock));

	if (!item->exists && lock->lease != NULL)
		return;
	lock->by_ddblock = item->by_ddblock;
	lock->marked_by_us = marked && is_our_mark(lm, item);
	lock->marked_until = marked ? item->wanted_until_ms * 1000 - lm->epoch_offset_us : 0;
	lock->mark_leaves = item->wanted_limit - item->wanted_permits;
	if (!marked || lock->marked_by_us || !permits)
		lock->yields_until = 0;
	else if (item->wanted_until_ms == lock->heard_ms || (!is_shared(lock) && !item->released))
		return;
	else if (!leaves_room(lm, now, lock, 0))
		lock->yields_until = lock->marked_until;
	else
	{
		lock->yields_until = now + pause_us(item);
		lock->heard_ms = item->wanted_until_ms;
	}
}

/* Would so many more permits for the request be ones that are left to another cluster? */
bool
lm_yields(const lockmgr *lm, int64_t now, const lm_lock *lock, const lm_request *request,
		  int32_t permits)
{
	return now < lock->yields_until && request->ask.limit > 0 &&
		!leaves_room(lm, now, lock, permits);
}

/* Has another client let go of the lock since we wait, or have marked it, and we did not get it? */
bool
lm_has_changed_hands(const lm_lock *lock)
{
	return lock->holder_seen > lock->asked_at;
}

/*
 * Is the next poll to mark the item?  Not for a campaign, which is in no hurry, nor if the
 * holder is another client, who does not look; who waits for a lock that others share sets a gate.
 * Another cluster's mark will do, unless the lock has changed hands in spite of it; our own, if it
 * has the right number, and nobody has written the item since: perhaps we missed a pause.
 */
bool
lm_mark_is_due(int64_t now, const lm_lock *lock)
{
	const lock_ask *ask = &lock->first->request.ask;
	bool		heard = !is_shared(lock) ? lock->by_ddblock :
		ask->limit > 0 && lock->shared->mode == ask->mode;

	if (ask->campaign || !heard || now - lock->asked_at < MARK_AFTER_US)
		return false;
	return lm_has_changed_hands(lock) ||
		(lock->marked_by_us && ask->limit > 0 &&
		 (lock->mark_leaves != ask->limit - ask->permits || lock->first_seen > lock->asked_at)) ||
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
			.wanted_permits = lock->first != NULL ? lock->first->request.ask.permits : 0,
			.wanted_limit = lock->first != NULL ? lock->first->request.ask.limit : 0,
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
	int64_t		stay = pause_us(item);

	if (!is_marked(lm, now, item) || is_our_mark(lm, item) ||
		item->wanted_until_ms == lock->heard_ms)
		return;
	lock->heard_ms = item->wanted_until_ms;
	if (lock->stay_back_until < now + stay)
		lock->stay_back_until = now + stay;
}

/*-------------------------------------------------------------------------
 * What we saw of another client's lock.
 *
 * Another client's version is dead LOCKMGR_DEAD_AFTER(its lease) after we first
 * received it, by our own clock; or at once, by DynamoDB's: see lockmgr_clock.c.  See
 * "Time" in doc/internals/protocol.md.
 *-------------------------------------------------------------------------
 */

/* The moment from which the version we see is dead. */
static int64_t
version_dead_at(const lm_lock *lock)
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
	same_token = lock->token == item->token;
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
	lock->token = item->token;
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
	{
		for (int i = 0; i < lock->shared->count; i++)
		{
			if (!is_dead(lm, now, &lock->shared->entries[i]))
				return "";
		}
		return lock->version;
	}
	if (lock->seen &&
		(lock->expired || now >= version_dead_at(lock) ||
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
	return !lm_yields(lm, now, lock, request, request->ask.permits) &&
		((open && !lm_gate_stands(lock)) || lm_can_join(lm, now, lock, request));
}

/* When a waiting session may become ready without another look; INT64_MAX: never. */
int64_t
lm_ripe_at(const lockmgr *lm, int64_t now, const lm_lock *lock)
{
	int64_t		end = lm_kept_end(lm, lock->kept_until_ms);
	int64_t		next;

	if (lock->seen && !is_shared(lock))
		return end > version_dead_at(lock) ? end : version_dead_at(lock);
	next = lm_next_death(now, lock);
	return end > now && end < next ? end : next;
}
