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
 * An entry is dead LOCKMGR_DEAD_AFTER(its own lease) after we first received its version, by our
 * own clock; or earlier, if DynamoDB's clock shows that (lockmgr_clock.c).  A gate is dead by our
 * own clock only.  A write that removes dead entries or a dead gate names their versions in its
 * condition.  So an old view does no harm: if one of them has been renewed since, DynamoDB refuses
 * the write.
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

/*
 * Is the entry dead?  An entry of ours is also dead if its version is a retired nonce, because it
 * belongs to no session.
 */
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

/* Does any other cluster have an entry, as far as we know? */
bool
lm_shared_by_others(const lockmgr *lm, const lm_lock *lock)
{
	return lock->shared != NULL && lock->shared->count > (lm_our_entry(lm, lock) != NULL);
}

/*
 * Records what an item that was received now tells of shared mode.  When memory is short, we know
 * nothing of that.  The item then counts as one holder's, as it does for clients that do not know
 * shared mode: it is dead when it has not changed for the longest lease in it.
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
			/* If we know the version already, it counts from when we first saw it. */
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

/* Does the first session in the queue want the lock exclusively, while clusters share it? */
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
 * Does another cluster's gate keep us from sharing the lock with more sessions?
 *
 * A gate is dead only if an item that we received at the end of its lease, or later, shows it
 * unchanged.  The mere passing of its lease does not count: while we have the lock, we let
 * sessions in without a request, and see the item a few times in a lease of ours.  If that is
 * longer than the gate's, the waiter may have renewed the gate several times between two of our
 * looks.
 */
bool
lm_gate_stands(const lm_lock *lock)
{
	return lock->shared != NULL && lock->shared->gate[0] != '\0' && !lm_is_our_gate(lock) &&
		lock->shared->received < gate_dead_at(lock->shared);
}

/* The version of a gate that does not keep us out, so that a write may remove it; or "". */
const char *
lm_dead_gate(const lm_lock *lock)
{
	return lock->shared != NULL && !lm_gate_stands(lock) ? lock->shared->gate : "";
}

/* When the next of the entries, or the gate, that we saw is dead by our clock; INT64_MAX: never. */
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
 * Names what a write that adds permits removes: dead entries of other clusters, and a dead gate.
 * A repetition may name others than the first copy did, since only one of all copies is ever
 * applied.
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
 * May our entry have so many more permits, as far as we know?  Together with those of all living
 * entries they must be within the limit.  If we know nothing, the answer is true: DynamoDB will
 * say.
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

/*
 * As far as we know, may we share the lock with the clusters that do, by adding an entry or
 * replacing a dead one of ours?
 */
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
 * Our entry in the item of a result, if the item is in this epoch; else NULL.  The entry is found
 * even if the rest of the item is unusable.
 */
const dynamo_entry *
lm_entry_in(const lockmgr *lm, const char *epoch, const dynamo_result *result)
{
	return strcmp(result->item.owner, epoch) == 0 ?
		dynamo_find_entry(result->shared, lm->incarnation) : NULL;
}

/* The epoch in which the pending write's entry is, if it was applied. */
void
lm_pending_epoch(const saved_lease *l, char epoch[DYNAMO_EPOCH_SIZE])
{
	if (l->pending.kind == DYNAMO_SHARED_OPEN)
		snprintf(epoch, DYNAMO_EPOCH_SIZE, "shared/%s", l->pending.version);
	else
		memmove(epoch, l->epoch, DYNAMO_EPOCH_SIZE);
}

/* Does the item of a refusal show that an earlier copy of the pending write was applied? */
bool
lm_stands(const lockmgr *lm, const saved_lease *l, const dynamo_result *result)
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
 * Marks: a cluster that waits is heard.
 *
 * Example: a session of cluster 1 takes a lock again as soon as it has released it, so the lock is
 * free for a millisecond each time.  Cluster 2 polls every 250 ms, and hardly ever finds it free.
 *
 *	 - When cluster 2 has waited for a second, it marks the item: it writes the attribute
 *	   "wanted", which says who waits, how often that cluster polls, and until when the mark
 *	   counts.  It repeats the mark while it waits.
 *	 - The reply to the next release shows the mark to cluster 1, which then stays back: it sends
 *	   no acquire for two polls of cluster 2 and a round trip, here 0.6 s.
 *	 - Cluster 1 stays back once for each mark, unless others have had the lock since.  So a
 *	   cluster that has gone costs one pause.
 *
 * No condition reads a mark: marks do not decide who may have the lock.  A mark that is lost, late,
 * forged, or a dead cluster's costs a moment.  See "Waiting and hand-over" in
 * doc/internals/protocol.md.
 *-------------------------------------------------------------------------
 */

#define MARK_AFTER_US	INT64_C(1000000)	/* how long a cluster waits before it marks the
											 * item, and between two marks */
#define MARK_MS			INT64_C(10000)	/* a mark counts for so long */
#define MARK_BELIEVED_MS	(MARK_MS + 5000)	/* a later end is ignored; 5 s are for clocks
												 * that differ */
#define MARK_EARLY_US	INT64_C(2000000)	/* a mark is repeated so long before its end */
#define ROUND_TRIP_US	INT64_C(100000)
#define STAY_BACK_MAX_US	INT64_C(1000000)

/* Does the item have a mark that counts, by DynamoDB's clock? */
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

/*
 * How long to stay back for the item's mark: two polls of the cluster that waits, and a round
 * trip.
 */
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
 * Notes the mark of an item that was received now.  Some replies about a lease of ours show no
 * item: then nothing changes.  If another cluster's mark wants permits, yields_until says until
 * when we leave those to it:
 *
 *	 - As long as the permits are not free, until the end of the mark.  If we took each permit
 *	   that becomes free, a cluster that wants 3 of 5 would never find 3 free at once.
 *	 - When they are free, for one pause, as after the release of a lock; once for each mark.
 *	 - While somebody has the lock exclusively, yields_until does not change: nobody can take
 *	   permits.
 *
 * A mark that names no number of permits does not count while the lock is shared.
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

/*
 * Must the request do without so many more permits, because we leave them to another cluster's
 * mark?
 */
bool
lm_yields(const lockmgr *lm, int64_t now, const lm_lock *lock, const lm_request *request,
		  int32_t permits)
{
	return now < lock->yields_until && request->ask.limit > 0 &&
		!leaves_room(lm, now, lock, permits);
}

/*
 * Has the lock got another holder since we began to wait, or last marked the item?  Then it was
 * free in between, and we have missed that.
 */
bool
lm_has_changed_hands(const lm_lock *lock)
{
	return lock->holder_seen > lock->asked_at;
}

/*
 * Is the next poll to mark the item?  Not
 *
 *	 - for a leadership, which is in no hurry;
 *	 - if the holder is another kind of client, which does not look for marks;
 *	 - if clusters share the lock, unless the session wants permits: an exclusive waiter sets a
 *	   gate;
 *	 - in the first second of a wait, and in the second after our last mark.
 *
 * Otherwise
 *
 *	 - if no mark counts any more, or ours soon will not.  Another cluster's mark serves us, too;
 *	 - if the lock has changed hands in spite of the mark;
 *	 - if our mark is for permits, and asks for another number than the first session in the
 *	   queue wants, or somebody has written the item since: perhaps we missed a pause.
 */
bool
lm_mark_is_due(int64_t now, const lm_lock *lock)
{
	const lock_ask *ask = &lock->first->request.ask;
	bool		heard = !is_shared(lock) ? lock->by_ddblock :
		ask->limit > 0 && lock->shared->mode == ask->mode;

	if (ask->leadership || !heard || now - lock->asked_at < MARK_AFTER_US)
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

/*
 * A mark could not be written.  That is no trouble of the lock: polls go on, and the next mark
 * comes MARK_MS later.
 */
void
lm_mark_failed(int64_t now, lm_lock *lock)
{
	lock->asked_at = now + MARK_MS * 1000 - MARK_AFTER_US;
}

/*
 * The longest time between two polls: the given interval, or less if our mark promises that.  We
 * do not know what a mark of the previous manager promised.
 */
int64_t
lm_longest_promised(int64_t now, const lm_lock *lock, int64_t interval)
{
	return lock->marked_by_us && now < lock->marked_until && lock->mark_poll_us > 0 &&
		lock->mark_poll_us < interval ? lock->mark_poll_us : interval;
}

/* We have acquired the lock.  Our mark was removed with the same write. */
void
lm_clear_own_mark(lm_lock *lock)
{
	lock->marked_by_us = false;
	lock->marked_until = lock->asked_at = 0;
}

/*
 * We have released the lock, and the item was this before.  If it has another cluster's mark, we
 * stay back.
 */
void
lm_note_others_mark(const lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_item *item)
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
 * Another client's version is dead LOCKMGR_DEAD_AFTER(its lease) after we first received it, by
 * our own clock; or earlier, if DynamoDB's clock shows that (lockmgr_clock.c).  See "Time" in
 * doc/internals/protocol.md.
 *-------------------------------------------------------------------------
 */

/* The moment from which the version that we saw is dead, by our own clock. */
static int64_t
version_dead_at(const lm_lock *lock)
{
	return lock->first_seen + LOCKMGR_DEAD_AFTER(lock->lease_ms * 1000);
}

/*
 * Records an item that was received now.  If we know its version already, that counts from when we
 * first saw it, so nothing of the item's owner, version and times changes.
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

	/*
	 * A keptUntil that is absurd is no time to wait for: the next acquire is refused, and that
	 * refusal becomes an error.
	 */
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

	/*
	 * A new version shows that its owner lives, if we have known that owner for longer than a
	 * lease. Before that, the write may be a late copy of a dead owner's.
	 */
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
 * The version that an acquire may overwrite although the item is not released; or "".  Either the
 * version is dead (if clusters share the lock: all their entries are), or an abandoned acquire of
 * ours wrote it.  A lock that is kept (keptUntil) cannot be overwritten.
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

/*
 * When a waiting session may become ready although the item does not change: at a death, or at the
 * end of keptUntil.  INT64_MAX: never.
 */
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
