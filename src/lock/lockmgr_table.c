/*-------------------------------------------------------------------------
 *
 * lockmgr_table.c
 *	  The lock manager's tables: locks by name, leases by index, sessions by
 *	  slot.
 *
 * A lock's struct exists while it is needed, and then as long as it is among the
 * max_remembered ones that were needed last: because we know since when we have
 * seen another client's version, the next session can take a dead holder's lock
 * over at once.
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
		return;					/* longer chains */
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

/* Takes the lock, which somebody needs now, out of the list. */
static void
recall(lockmgr *lm, lm_lock *lock)
{
	if (!lock->remembered)
		return;
	if (lock->remembered_previous != NULL)
		lock->remembered_previous->remembered_next = lock->remembered_next;
	else
		lm->remembered_first = lock->remembered_next;
	if (lock->remembered_next != NULL)
		lock->remembered_next->remembered_previous = lock->remembered_previous;
	else
		lm->remembered_last = lock->remembered_previous;
	lock->remembered = false;
	lm->remembered--;
}

/* Finds the lock or makes it; NULL when memory is short. */
lm_lock *
lm_get_lock(lockmgr *lm, const char *name, size_t len)
{
	uint64_t	hash = hash_name(lm, name, len);
	lm_lock    *lock = find(lm, hash, name, len);

	if (lock != NULL)
	{
		recall(lm, lock);
		return lock;
	}
	if (!heap_reserve(&lm->timers, lm->lock_count + 1) ||
		!heap_reserve(&lm->renewals, lm->lock_count + 1))
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
	lm->lock_count--;
	free(lock->name);
	free(lock);
}

/*
 * If nobody needs the lock any more: remembers it, if there is anything to
 * remember, and forgets the lock that nobody has needed for longest.
 */
void
lm_remember(lockmgr *lm, lm_lock *lock)
{
	if (lock->state != LOCK_IDLE || lock->lease != NULL ||
		lock->call != NULL || lock->queued || lock->first != NULL ||
		lock->look_ups > 0 || lock->remembered)
		return;

	heap_set(&lm->timers, &lock->timer, INT64_MAX);
	heap_set(&lm->renewals, &lock->renewal, INT64_MAX);
	if (lock->attempts > 0)
		lock->stay_back_until = 0;	/* the next session need not wait */
	lm_clear_trouble(lm, lock);
	if (!lock->seen && lock->top_token == 0)
	{
		free_lock(lm, lock);
		return;
	}

	lock->remembered_next = NULL;
	lock->remembered_previous = lm->remembered_last;
	if (lm->remembered_last != NULL)
		lm->remembered_last->remembered_next = lock;
	else
		lm->remembered_first = lock;
	lm->remembered_last = lock;
	lock->remembered = true;
	lm->remembered++;

	if (lm->remembered > lm->max_remembered)
	{
		lm_lock    *oldest = lm->remembered_first;

		recall(lm, oldest);
		free_lock(lm, oldest);
	}
}

/*
 * Nothing of the lost lease is in DynamoDB, and its session has been informed
 * (lockmgr_host.lost).  It is kept for the reason of the loss, until its room is
 * needed.
 */
void
lm_spare_lease(lockmgr *lm, lm_lease *lease)
{
	lease->spare = true;
	lease->spare_next = NULL;
	lease->spare_previous = lm->spare_last;
	*(lm->spare_last ? &lm->spare_last->spare_next : &lm->spare_first) = lease;
	lm->spare_last = lease;
	lm->spare_count++;
}

static void
unspare_lease(lockmgr *lm, lm_lease *lease)
{
	if (!lease->spare)
		return;
	lease->spare = false;
	lm->spare_count--;
	*(lease->spare_previous ? &lease->spare_previous->spare_next : &lm->spare_first) =
		lease->spare_next;
	*(lease->spare_next ? &lease->spare_next->spare_previous : &lm->spare_last) =
		lease->spare_previous;
}

/* Is a lease being acquired for the session, or handed over to it? */
static bool
gets_lease(lockmgr *lm, const lm_session *session)
{
	const lm_lock *lock = session->request.active ? session->request.lock : NULL;

	return lock != NULL && session->request.kind <= LOCKMGR_TRY && lock->lease != NULL &&
		lm_pending_wanted(lm, lock->lease) &&
		lock->lease->l.pending.session.slot == session->id.slot;
}

/*
 * Have the sessions of this role reached its limit?  Linear in the number of
 * sessions if the role has a limit.
 */
bool
lm_role_is_full(lockmgr *lm, const lm_session *session)
{
	uint32_t	max = session->request.role_max_leases;
	uint32_t	count = 0;

	for (uint32_t i = 0; max != 0 && i < lm->max_sessions; i++)
	{
		const lm_session *other = lm->sessions[i];

		if (other == NULL || other->id.generation == 0 || other->role != session->role)
			continue;
		for (const lm_lease *lease = other->leases; lease != NULL; lease = lease->next)
			count += !lease->spare;
		count += other != session && gets_lease(lm, other);
	}
	return max != 0 && count >= max;
}

/* Spare leases count as free. */
bool
lm_has_room(const lockmgr *lm, const lm_session *session)
{
	uint32_t	left = lm->max_leases - lm->leases_in_use + lm->spare_count;

	return left > (session->request.superuser ? 0 : lm->reserved_leases);
}

/* A lease for the lock; lm_has_room() must be true. */
lm_lease *
lm_take_lease(lockmgr *lm, lm_lock *lock)
{
	lm_lease   *lease = lm->free_lease;

	if (lease == NULL)
	{
		lease = lm->spare_first;
		lm_put_lease(lm, lease);
	}
	lm->free_lease = lease->next;
	lease->l = (struct lease) {.state = LEASE_ACQUIRING};
	lease->lock = lock;
	lease->session = NULL;
	lease->next = lease->previous = NULL;
	lock->lease = lease;
	lm->leases_in_use++;
	return lease;
}

/* Frees the lease.  The lock must no longer point to it. */
void
lm_put_lease(lockmgr *lm, lm_lease *lease)
{
	lm_unlink_lease(lease);
	unspare_lease(lm, lease);
	lm_set_lease_state(lm, lease, LEASE_FREE);
	lm_save(lm, lease, false);
	lease->lock = NULL;
	lm->leases_in_use--;
	if (lm->adopting)
		return;					/* lockmgr_adopted() builds the free list */
	lease->next = lm->free_lease;
	lm->free_lease = lease;
}

void
lm_set_lease_state(lockmgr *lm, lm_lease *lease, lease_state state)
{
	if (lease->l.state == LEASE_HELD)
		lm->leases_held--;
	if (state == LEASE_HELD)
		lm->leases_held++;
	else
		lease->l.valid_until = 0;
	lease->l.state = state;
}

void
lm_save(lockmgr *lm, lm_lease *lease, bool with_name)
{
	lm->host.save(lm->host.arg, lease->index, &lease->l,
				  with_name ? lease->lock->name : NULL,
				  with_name ? lease->lock->name_len : 0);
}

void
lm_link_lease(lm_session *session, lm_lease *lease)
{
	lease->session = session;
	lease->previous = NULL;
	lease->next = session->leases;
	if (session->leases != NULL)
		session->leases->previous = lease;
	session->leases = lease;
}

void
lm_unlink_lease(lm_lease *lease)
{
	if (lease->session == NULL)
		return;
	if (lease->previous != NULL)
		lease->previous->next = lease->next;
	else
		lease->session->leases = lease->next;
	if (lease->next != NULL)
		lease->next->previous = lease->previous;
	lease->session = NULL;
	lease->next = lease->previous = NULL;
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
 * Remembers the nonce of an acquire that may still turn up in the item.  If it is
 * forgotten because there are too many, the next session has to wait for a lease.
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
lm_free_all(lockmgr *lm)
{
	for (size_t i = 0; lm->buckets != NULL && i < lm->bucket_count; i++)
	{
		lm_lock    *next;

		for (lm_lock *lock = lm->buckets[i]; lock != NULL; lock = next)
		{
			next = lock->hash_next;
			free(lock->name);
			free(lock);
		}
	}
	for (uint32_t i = 0; lm->sessions != NULL && i < lm->max_sessions; i++)
	{
		if (lm->sessions[i] != NULL)
			free(lm->sessions[i]->request.data);
		free(lm->sessions[i]);
	}
	free(lm->buckets);
	free(lm->sessions);
	free(lm->leases);
	free(lm->free_watches);
	free(lm->calls);
	heap_free(&lm->timers);
	heap_free(&lm->renewals);
	heap_free(&lm->look_ups);
	free(lm);
}
