/*-------------------------------------------------------------------------
 *
 * lockmgr_table.c
 *	  The lock manager as a whole, and its tables: locks by name, sessions by
 *	  slot, retired nonces.
 *
 * A lock's struct exists while the lock is needed, and then as long as it is among the
 * max_remembered ones that were needed last.  It knows since when we have seen another client's
 * version.  So the next session can take a dead holder's lock over at once.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <stdlib.h>
#include <string.h>

uint64_t
lm_random(lockmgr *lm)
{
	uint64_t	r;

	lm->host.random(lm->host.arg, &r, sizeof(r));
	return r;
}

/* Frees the data and attributes that a request wants to write. */
void
lm_free_payload(lm_request *request)
{
	free(request->data);
	free(request->attributes);
	request->data = NULL;
	request->data_len = 0;
	request->attributes = NULL;
}

/*
 * Notes the item's attribute_names, or NULL.  When memory is short, we know of none: then DynamoDB
 * refuses the next acquire, and the refusal shows the names.
 */
void
lm_note_attributes(lm_lock *lock, const char *names)
{
	free(lock->attribute_names);
	lock->attribute_names = names != NULL ? strdup(names) : NULL;
}

/* FNV-1a with a random start, so that nobody can choose names that collide. */
static uint64_t
hash_name(const lockmgr *lm, const char *name, size_t len)
{
	uint64_t	h = lm->hash_seed ^ UINT64_C(14695981039346656037);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char) name[i]) * UINT64_C(1099511628211);
	return h ^ (h >> 29);
}

static lm_lock *
find(const lockmgr *lm, uint64_t hash, const char *name, size_t len)
{
	lm_lock    *lock = lm->buckets[hash & (lm->bucket_count - 1)];

	while (lock != NULL &&
		   (lock->hash != hash || lock->name_len != len ||
			memcmp(lock->name, name, len) != 0))
		lock = lock->hash_next;
	return lock;
}

bool
lm_is_known(const lockmgr *lm, const char *name, size_t len)
{
	return find(lm, hash_name(lm, name, len), name, len) != NULL;
}

static void
grow_buckets(lockmgr *lm)
{
	size_t		count = lm->bucket_count * 2;
	lm_lock   **buckets = calloc(count, sizeof(lm_lock *));

	if (buckets == NULL)
		return;					/* the chains get longer */
	for (size_t i = 0; i < lm->bucket_count; i++)
	{
		lm_lock    *next;

		for (lm_lock *lock = lm->buckets[i]; lock != NULL; lock = next)
		{
			lm_lock   **bucket = &buckets[lock->hash & (count - 1)];

			next = lock->hash_next;
			lock->hash_next = *bucket;
			*bucket = lock;
		}
	}
	free(lm->buckets);
	lm->buckets = buckets;
	lm->bucket_count = count;
}

/* Finds the lock or makes it; NULL when memory is short. */
lm_lock *
lm_get_lock(lockmgr *lm, const char *name, size_t len)
{
	uint64_t	hash = hash_name(lm, name, len);
	lm_lock    *lock = find(lm, hash, name, len);

	if (lock != NULL)
	{
		heap_set(&lm->remembered, &lock->unneeded, INT64_MAX);
		return lock;
	}
	if (!heap_reserve(&lm->timers, lm->lock_count + 1) ||
		!heap_reserve(&lm->renewals, lm->lock_count + 1) ||
		!heap_reserve(&lm->ready, lm->lock_count + 1) ||
		!heap_reserve(&lm->looks, lm->lock_count + 1) ||
		!heap_reserve(&lm->remembered, lm->lock_count + 1))
		return NULL;
	lock = calloc(1, sizeof(lm_lock));
	if (lock == NULL)
		return NULL;
	lock->name = malloc(len);
	if (lock->name == NULL)
	{
		free(lock);
		return NULL;
	}
	memcpy(lock->name, name, len);
	lock->name_len = len;
	lock->hash = hash;
	lock->watch = LOCKMGR_NO_WATCH;
	if (++lm->lock_count > lm->bucket_count)
		grow_buckets(lm);
	lock->hash_next = lm->buckets[hash & (lm->bucket_count - 1)];
	lm->buckets[hash & (lm->bucket_count - 1)] = lock;
	return lock;
}

static void
free_lock(lockmgr *lm, lm_lock *lock)
{
	lm_lock   **link = &lm->buckets[lock->hash & (lm->bucket_count - 1)];

	while (*link != lock)
		link = &(*link)->hash_next;
	*link = lock->hash_next;
	heap_set(&lm->timers, &lock->timer, INT64_MAX); /* the timer of a deletion */
	lm->lock_count--;
	free(lock->shared);
	free(lock->attribute_names);
	free(lock->name);
	free(lock);
}

/*
 * If nobody needs the lock any more, remembers it for what it knows of the
 * item.  At the limit, forgets the lock that has been unneeded for longest.
 */
void
lm_remember(lockmgr *lm, lm_lock *lock)
{
	if (lock->state != LOCK_IDLE || lock->lease != NULL ||
		lock->call != NULL || heap_is_in(&lock->ready) || lock->first != NULL ||
		lock->look_ups > 0 || lock->bar != NULL || heap_is_in(&lock->unneeded))
		return;

	heap_set(&lm->timers, &lock->timer, lock->delete_at != 0 ? lock->delete_at : INT64_MAX);
	heap_set(&lm->renewals, &lock->renewal, INT64_MAX);
	if (lock->attempts > 0)
		lock->stay_back_until = 0;	/* the next session need not wait */
	lock->attempts = 0;
	lock->trouble_since = 0;	/* nobody watches */
	if (!lock->seen && lock->shared == NULL && lock->top_token == 0)
	{
		free_lock(lm, lock);
		return;
	}

	heap_append(&lm->remembered, &lock->unneeded);
	if (lm->remembered.count > lm->max_remembered)
		free_lock(lm, LM_CONTAINER(heap_take_due(&lm->remembered, INT64_MAX), lm_lock, unneeded));
}

/* Finds the session's struct or allocates it; NULL when memory is short. */
lm_session *
lm_get_session(lockmgr *lm, lockmgr_session id)
{
	lm_session *session;

	if (id.slot >= lm->max_sessions)
		return NULL;
	session = lm->sessions[id.slot];
	if (session == NULL)
	{
		session = calloc(1, sizeof(lm_session));
		if (session == NULL)
			return NULL;
		lm->sessions[id.slot] = session;
	}
	session->id = id;
	return session;
}

/* The session if it uses its slot now, else NULL. */
lm_session *
lm_live_session(lockmgr *lm, lockmgr_session id)
{
	lm_session *session = id.slot < lm->max_sessions ?
		lm->sessions[id.slot] : NULL;

	return session != NULL && id.generation != 0 &&
		session->id.generation == id.generation ? session : NULL;
}

/*
 * A token of this value was seen, or reserved.  INT64_MAX does not count, because no token is
 * above it: a session that meets it in the item gets an error.
 */
void
lm_raise_token(lm_lock *lock, int64_t token)
{
	if (token > lock->top_token && token < INT64_MAX)
		lock->top_token = token;
}

/*
 * Retires a nonce of ours: it belongs to no session, but may be in the item, now or later.  The
 * next acquire takes an item with a retired nonce over at once.  The list has LM_RETIRED nonces.
 * If it forgets one, the next session has to wait for a lease.
 */
void
lm_retire(lockmgr *lm, const char *version)
{
	memcpy(lm->retired[lm->retired_next], version, UUID_SIZE);
	lm->retired[lm->retired_next][UUID_SIZE - 1] = '\0';
	lm->retired_next = (lm->retired_next + 1) % LM_RETIRED;
}

bool
lm_is_retired(const lockmgr *lm, const char *version)
{
	for (unsigned i = 0; i < LM_RETIRED; i++)
	{
		if (lm->retired[i][0] != '\0' && strcmp(lm->retired[i], version) == 0)
			return true;
	}
	return false;
}

void
lockmgr_free(lockmgr *lm)
{
	if (lm == NULL)
		return;
	for (size_t i = 0; lm->buckets != NULL && i < lm->bucket_count; i++)
	{
		while (lm->buckets[i] != NULL)
			free_lock(lm, lm->buckets[i]);
	}
	for (uint32_t i = 0; lm->sessions != NULL && i < lm->max_sessions; i++)
	{
		lm_session *next;

		if (lm->sessions[i] != NULL)
			lm_free_payload(&lm->sessions[i]->request);
		for (lm_session *session = lm->sessions[i]; session != NULL; session = next)
		{
			next = session == lm->sessions[i] ? session->announced : session->next_announced;
			free(session);
		}
	}
	free(lm->buckets);
	free(lm->sessions);
	free(lm->leases);
	free(lm->holds);
	free(lm->free_watches);
	free(lm->calls);
	heap_free(&lm->timers);
	heap_free(&lm->renewals);
	heap_free(&lm->look_ups);
	heap_free(&lm->ends);
	heap_free(&lm->bars);
	heap_free(&lm->ready);
	heap_free(&lm->looks);
	heap_free(&lm->ready_look_ups);
	heap_free(&lm->remembered);
	heap_free(&lm->spare);
	free(lm);
}

lockmgr *
lockmgr_new(const lockmgr_config *config, const lockmgr_host *host)
{
	lockmgr    *lm = calloc(1, sizeof(lockmgr));

	if (lm == NULL)
		return NULL;
	lm->host = *host;
	memcpy(lm->owner, config->owner, strnlen(config->owner, sizeof(lm->owner) - 1));
	/* The owner is "<name>/<incarnation>". */
	lm->incarnation = dynamo_incarnation(lm->owner);
	if (lm->incarnation > lm->owner)
		memcpy(lm->cluster, lm->owner, (size_t) (lm->incarnation - lm->owner) - 1);
	lm->max_remembered = config->max_remembered;
	lm->max_calls = config->max_calls;
	lm->request_timeout_us = config->request_timeout_us;
	lm->retry_timeout_us = config->retry_timeout_us;
	lm->poll_interval_us = config->poll_interval_us;
	lm->max_leases = config->max_leases;
	lm->reserved_leases = config->reserved_leases;
	lm->max_sessions = config->max_sessions;
	lm->adopting = true;
	lm->hash_seed = lm_random(lm);
	lm->bucket_count = 1024;
	lm->buckets = calloc(lm->bucket_count, sizeof(lm_lock *));
	lm->leases = calloc(lm->max_leases, sizeof(lm_lease));
	lm->holds = calloc(lm->max_leases, sizeof(lm_hold));
	lm->sessions = calloc(lm->max_sessions, sizeof(lm_session *));
	lm->free_watches = calloc(lm->max_sessions, sizeof(uint32_t));
	lm->calls = calloc((size_t) lm->max_calls * 2, sizeof(lm_call));
	if (lm->buckets == NULL || lm->leases == NULL || lm->holds == NULL ||
		lm->sessions == NULL || lm->free_watches == NULL || lm->calls == NULL ||
		!heap_reserve(&lm->look_ups, lm->max_sessions) ||
		!heap_reserve(&lm->ready_look_ups, lm->max_sessions) ||
		!heap_reserve(&lm->ends, lm->max_leases) ||
		!heap_reserve(&lm->bars, lm->max_leases) ||
		!heap_reserve(&lm->spare, lm->max_leases))
	{
		lockmgr_free(lm);
		return NULL;
	}
	for (uint32_t i = lm->max_sessions; i-- > 0;)
		lm->free_watches[lm->free_watch_count++] = i;
	for (uint32_t i = 0; i < lm->max_leases; i++)
		lm->leases[i].index = lm->holds[i].index = i;
	return lm;
}

void
lockmgr_set_timeouts(lockmgr *lm, int64_t request_timeout_us,
					 int64_t retry_timeout_us, int64_t poll_interval_us)
{
	lm->request_timeout_us = request_timeout_us;
	lm->retry_timeout_us = retry_timeout_us;
	lm->poll_interval_us = poll_interval_us;
}

void
lockmgr_set_clock(lockmgr *lm, int64_t epoch_offset_us, int64_t earliest_us)
{
	lm->epoch_offset_us = epoch_offset_us;
	lm->earliest_us = earliest_us;
}

void
lockmgr_count(const lockmgr *lm, lockmgr_counts *counts)
{
	counts->leases = lm->leases_in_use;
	counts->held = lm->leases_held + lm->extra_holds;
	counts->detached = 0;
	for (const lm_hold *hold = lm->detached.holds; hold != NULL; hold = hold->next)
		counts->detached++;
	counts->waiters = lm->waiters;
	counts->calls = lm->calls_in_flight;
	counts->remembered = (uint32_t) lm->remembered.count;
}
