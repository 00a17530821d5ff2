/*-------------------------------------------------------------------------
 *
 * lockmgr_lease.c
 *	  Leases and holds by index: who may have one, taking one, giving it
 *	  back.
 *
 * A lease that was lost makes room when no other is free: see lm_take_lease().
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

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
		lm_pending_session(lm, lock->lease) == session;
}

/*
 * Have the sessions of this role reached its limit?  Linear in the number of
 * sessions and of what they have announced, if the role has a limit.
 */
bool
lm_role_is_full(lockmgr *lm, const lm_session *session)
{
	uint32_t	max = session->request.ask.role_max_leases;
	uint32_t	count = 0;

	if (max == 0)
		return false;
	for (uint32_t i = 0; i < lm->max_sessions; i++)
	{
		const lm_session *other = lm->sessions[i];

		if (other == NULL || other->id.generation == 0 || other->role != session->role)
			continue;
		for (const lm_hold *hold = other->holds; hold != NULL; hold = hold->next)
			count += !hold->lease->spare;
		count += other != session && gets_lease(lm, other);
		for (other = other->announced; other != NULL; other = other->next_announced)
			count += other != session && gets_lease(lm, other);
	}
	for (const lm_hold *hold = lm->detached.holds; hold != NULL; hold = hold->next)
		count += hold->h.role == session->role && !hold->lease->spare;
	return count >= max;
}

/* Spare leases count as free. */
bool
lm_has_room(const lockmgr *lm, const lm_session *session)
{
	uint32_t	left = lm->max_leases - lm->leases_in_use - lm->extra_holds +
		lm->spare_count;

	return left > (session->request.ask.superuser ? 0 : lm->reserved_leases);
}

/* Frees the oldest spare lease if there is no room for another lease or hold. */
void
lm_make_room(lockmgr *lm)
{
	if (lm->leases_in_use + lm->extra_holds == lm->max_leases)
		lm_put_lease(lm, lm->spare_first);
}

/* A lease for the lock; lm_has_room() must be true. */
lm_lease *
lm_take_lease(lockmgr *lm, lm_lock *lock)
{
	lm_lease   *lease;

	lm_assert(lock->lease == NULL && lock->first != NULL);
	lm_make_room(lm);
	lease = lm->free_lease;
	lm_assert(lease->l.state == LEASE_FREE && lease->holds == NULL && lease->used == 0);
	lm->free_lease = lease->next;
	lease->l = (struct lease) {
		.state = LEASE_ACQUIRING, .generation = lease->l.generation + 1,
		.mode = lock->first->request.ask.mode,
	};
	lease->lock = lock;
	lease->next = NULL;
	lock->lease = lease;
	lm->leases_in_use++;
	return lease;
}

/* Frees the lease, and its holds.  The lock must no longer point to it. */
void
lm_put_lease(lockmgr *lm, lm_lease *lease)
{
	lm_assert(lease->l.state != LEASE_FREE);
	lm_assert(lease->lock == NULL || lease->lock->lease != lease);
	while (lease->holds != NULL)
		lm_put_hold(lm, lease->holds);
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
	lm_assert(lm->leases_held <= lm->leases_in_use);
}

void
lm_save(lockmgr *lm, lm_lease *lease, bool with_name)
{
	lm->host.save(lm->host.arg, lease->index, &lease->l,
				  with_name ? lease->lock->name : NULL,
				  with_name ? lease->lock->name_len : 0);
}

/*
 * One is free: there are as many holds as leases, and each hold but the first on a
 * lease takes the room of a lease.
 */
lm_hold *
lm_take_hold(lockmgr *lm, lm_lease *lease, lm_session *session, int32_t permits)
{
	lm_hold    *hold = lm->free_hold;

	lm_assert(hold != NULL && hold->session == NULL);
	lm->free_hold = hold->next;
	lm_attach_hold(lm, hold, lease,
				   session->announced_by != NULL ? session->announced_by : session, permits);
	return hold;
}

static void
link_hold(lm_hold *hold, lm_session *session)
{
	hold->session = session;
	hold->previous = NULL;
	hold->next = session->holds;
	if (session->holds != NULL)
		session->holds->previous = hold;
	session->holds = hold;
}

static void
unlink_hold(lm_hold *hold)
{
	*(hold->previous ? &hold->previous->next : &hold->session->holds) = hold->next;
	if (hold->next != NULL)
		hold->next->previous = hold->previous;
}

void
lm_attach_hold(lockmgr *lm, lm_hold *hold, lm_lease *lease, lm_session *session,
			   int32_t permits)
{
	lm->extra_holds += lease->holds != NULL;
	lease->used += permits;
	hold->lease_previous = NULL;
	hold->lease_next = lease->holds;
	if (lease->holds != NULL)
		lease->holds->lease_previous = hold;
	lease->holds = hold;
	hold->lease = lease;
	link_hold(hold, session);
	lm_assert(lm->leases_in_use + lm->extra_holds <= lm->max_leases);
}

/* From one session's list to another's. */
void
lm_move_hold(lm_hold *hold, lm_session *session)
{
	unlink_hold(hold);
	link_hold(hold, session);
}

/* The hold that no session has, or NULL. */
lm_hold *
lm_detached_on(const lm_lease *lease)
{
	lm_hold    *hold = lease->holds;

	while (hold != NULL && hold->h.ends_at == 0)
		hold = hold->lease_next;
	return hold;
}

/* A hold on the lease has ended, perhaps one that outlives its session; or was not saved. */
void
lm_update_detached(lockmgr *lm, lm_lease *lease)
{
	if (!lease->l.detached)
		return;
	for (const lm_hold *hold = lease->holds; hold != NULL; hold = hold->lease_next)
	{
		if (hold->h.ends_at != 0 || hold->h.outlives_us != 0)
			return;
	}
	lease->l.detached = false;
	lm_save(lm, lease, false);
}

/* Sets the timer for what happens next to the hold by itself. */
void
lm_set_end(lockmgr *lm, lm_hold *hold)
{
	int64_t		at = INT64_MAX;

	if (hold->h.ends_at != 0)
		at = hold->h.ends_at;
	else if (hold->h.must_end != 0 && hold->h.loss == LOSS_NONE)
		at = hold->h.must_end;
	else if (hold->h.loss == LOSS_AT_MOST)
		at = hold->h.must_end + hold->lease->l.margin_us;
	heap_set(&lm->ends, &hold->end, at);
}

void
lm_put_hold(lockmgr *lm, lm_hold *hold)
{
	lm_assert(hold->session != NULL && hold->lease != NULL);
	unlink_hold(hold);
	heap_set(&lm->ends, &hold->end, INT64_MAX);
	*(hold->lease_previous ? &hold->lease_previous->lease_next : &hold->lease->holds) =
		hold->lease_next;
	if (hold->lease_next != NULL)
		hold->lease_next->lease_previous = hold->lease_previous;
	lm->extra_holds -= hold->lease->holds != NULL;
	hold->lease->used -= hold->h.permits;
	lm_assert(hold->lease->holds != NULL ? hold->lease->used > 0 : hold->lease->used == 0);
	hold->lease_next = hold->lease_previous = NULL;
	hold->lease = NULL;
	hold->session = NULL;
	hold->next = hold->previous = NULL;
	hold->h = (struct hold) {.seq = 0};
	lm_save_hold(lm, hold);
	if (lm->adopting)
		return;					/* lockmgr_adopted() builds the free list */
	hold->next = lm->free_hold;
	lm->free_hold = hold;
}

void
lm_save_hold(lockmgr *lm, const lm_hold *hold)
{
	lm->host.save_hold(lm->host.arg, hold->index, &hold->h);
}

/* The session that the pending write is for, or what it has announced; NULL: not any more. */
lm_session *
lm_pending_session(lockmgr *lm, const lm_lease *lease)
{
	const lease_write *pending = &lease->l.pending;
	lm_session *session = lm_live_session(lm, pending->session);
	lm_session *first = lease->lock != NULL ? lease->lock->first : NULL;

	if (session == NULL)
		return NULL;
	if (session->request.active && session->request.kind <= LOCKMGR_TRY &&
		session->request.seq == pending->seq && session->request.lock == lease->lock)
		return session;
	return first != NULL && first->announced_by == session &&
		first->request.seq == pending->seq ? first : NULL;
}

bool
lm_pending_wanted(lockmgr *lm, const lm_lease *lease)
{
	return lm_pending_session(lm, lease) != NULL;
}

/* The session whose data and attributes the pending write carries, if it still waits; or NULL. */
lm_session *
lm_payload_session(lockmgr *lm, const lm_lease *lease)
{
	const lease_write *pending = &lease->l.pending;
	lm_session *session;

	if (!pending->has_data && !pending->has_attributes)
		return NULL;
	if (pending->op != DYNAMO_RENEW)
		return lm_pending_session(lm, lease);
	session = lm_live_session(lm, pending->session);
	return session != NULL && session->request.active &&
		session->request.kind == LOCKMGR_RENEW && session->request.seq == pending->seq ?
		session : NULL;
}

/*
 * Nothing of the lease is in DynamoDB any more: takes it from the lock, which
 * the caller must then put into another state.  If it was lost and its session
 * has not acknowledged that, the lease itself stays as long as there is room.
 */
void
lm_drop_lease(lockmgr *lm, lm_lock *lock)
{
	lm_lease   *lease = lock->lease;

	lock->lease = NULL;
	if (lease->l.state == LEASE_LOST && lease->holds != NULL)
	{
		lease->lock = NULL;
		lease->l.version[0] = '\0';
		lease->l.pending.version[0] = '\0';
		lm_save(lm, lease, false);
		lm_spare_lease(lm, lease);
	}
	else
		lm_put_lease(lm, lease);
}
