/*-------------------------------------------------------------------------
 *
 * lockmgr_reply.c
 *	  Events that no session causes: replies from DynamoDB, and timers.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

/*-------------------------------------------------------------------------
 * Refusals that tell too little.
 *
 * A write that is refused for its condition asks for the item that failed it.  Some servers
 * never send it; DynamoDB does not if there is no item.  Then a consistent read tells why
 * the write was refused, and the write is settled with that item.
 *
 * If that item is as the write expects, it does not explain the refusal.  DynamoDB never replies
 * so.  If another server does, the write is repeated, ever more seldom, until its lease is over.
 *-------------------------------------------------------------------------
 */

/*
 * The lock's call has just ended: its write was refused, and the reply does not show the item.
 * The next call reads it.
 */
static void
explain(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->state == LOCK_LOST)
	{
		lm_renewal_failed(lm, now, lock);	/* the release will show what the item has */
		return;
	}
	if (lock->state == LOCK_READING)	/* the poll was to set a gate or a mark */
	{
		lock->sets_gate = lock->marks = false;
		lock->read_consistently = true;
	}
	else
		lock->explains = true;
	if (lock->state == LOCK_RENEWING)
		heap_set(&lm->renewals, &lock->renewal, now);
	else
		lm_submit(lm, lock);
}

/*
 * Was the lock's renewal or release refused although the item is as it expects?  Some refusals in
 * shared mode are not odd, although our entry has the expected version:
 *
 *	 - A change to more permits may find too few.
 *	 - The first form of a release may have been the wrong one of LEAVE and LAST.  LEAVE demands
 *	   that there are other entries, LAST that there are none.
 */
static bool
is_odd(const lockmgr *lm, const lm_lock *lock, const dynamo_result *result)
{
	const saved_lease *l = &lock->lease->l;
	const lease_write *pending = &l->pending;
	const dynamo_entry *entry;

	if (result->status != DYNAMO_CONDITION_FAILED ||
		(pending->op != DYNAMO_RENEW && pending->op != DYNAMO_RELEASE))
		return false;
	if (l->mode == MODE_EXCLUSIVE)
		return !result->item.released && strcmp(result->item.owner, lm->owner) == 0 &&
			strcmp(result->item.version, pending->expected) == 0;
	entry = lm_entry_in(lm, l->epoch, result);
	return entry != NULL && strcmp(entry->version, pending->expected) == 0 &&
		(pending->op == DYNAMO_RENEW ? pending->permits <= 0 : lock->turned &&
		 (result->shared->count > 1) == (pending->kind == DYNAMO_SHARED_LEAVE));
}

/*-------------------------------------------------------------------------
 * Replies from DynamoDB, each to the function for its operation.
 *
 * While a write may have been applied, only that write is repeated, with its
 * nonce.  A write that was certainly not applied (throttled, never sent) gets a
 * fresh nonce, and so a fresh deadline.  See "When an outcome is unknown" in
 * doc/internals/protocol.md.
 *-------------------------------------------------------------------------
 */

/*
 * The lock's renewal has waited for the check of batches, or was not applied because batches are
 * refused: sends it alone.
 */
static void
retry_singly(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->state == LOCK_LOST)
		lm_renewal_failed(lm, now, lock);
	else
		heap_set(&lm->renewals, &lock->renewal, now);
}

/*
 * Does only the missing Date of the reply keep this result from confirming the lock's write?  A
 * write with a time in its version needs one: see lm_count_lease().
 */
static bool
is_undated(const lockmgr *lm, const lm_lock *lock, const dynamo_result *result)
{
	const lm_lease *lease = lock->lease;
	int64_t		ms;

	return lm->date_us == 0 && lease != NULL && uuid_get_time(lease->l.pending.version, &ms) &&
		(result->status == DYNAMO_OK || lm_stands(lm, &lease->l, result));
}

/* What handles the end of a lock's call: if it is settled, and if it has failed. */
static const struct
{
	void		(*settled) (lockmgr *lm, int64_t now, lm_lock *lock, const dynamo_result *result);
	void		(*failed) (lockmgr *lm, int64_t now, lm_lock *lock);
}			takers[] = {
	[DYNAMO_READ] = {lm_poll_settled, lm_poll_failed},
	[DYNAMO_ACQUIRE] = {lm_acquire_settled, lm_acquire_failed},
	[DYNAMO_RENEW] = {lm_renewal_settled, lm_renewal_failed},
	[DYNAMO_RENEW_BATCH] = {lm_renewal_settled, lm_renewal_failed},
	[DYNAMO_HAND_OVER] = {lm_hand_over_settled, lm_release_failed},
	[DYNAMO_RELEASE] = {lm_release_settled, lm_release_failed},
};

/*
 * The lock's call has ended.  It is settled if DynamoDB applied the write or refused it for its
 * condition; any other outcome is trouble.  These are trouble as well:
 *
 *	 - the reply has no Date, and the write's version has a time;
 *	 - the write was refused, but the item does not explain that (is_odd()).
 */
static void
end_call(lockmgr *lm, int64_t now, const lm_call *call, lm_lock *lock,
		 const dynamo_result *result)
{
	static const dynamo_result undated = {
		.status = DYNAMO_UNKNOWN,.message = "the reply has no Date header",
	};
	static const dynamo_result odd = {
		.status = DYNAMO_CONFLICT,
		.message = "the write was refused, but the item is as the write expects",
	};
	dynamo_result explained;
	dynamo_op	op = call->op;
	bool		settled = !dynamo_is_failure(result->status);

	lock->call = NULL;
	if (lm_is_batch_check(call))
	{
		retry_singly(lm, now, lock);
		return;
	}
	if (lock->explains)
	{
		lock->explains = false;
		op = lock->lease->l.pending.op;
		if (result->status == DYNAMO_OK)
		{
			explained = *result;
			explained.status = DYNAMO_CONDITION_FAILED;
			result = &explained;
		}
	}
	else if (result->status == DYNAMO_CONDITION_FAILED && !result->item.exists)
	{
		explain(lm, now, lock);
		return;
	}
	if (!settled && op == DYNAMO_MARK)
	{
		lm_mark_failed(now, lock);
		lm_poll_later(lm, now, lock);
		return;
	}
	if (lock->state != LOCK_READING && is_odd(lm, lock, result))
	{
		if (op == DYNAMO_RELEASE && result->shared != NULL && result->shared->wrong != NULL)
			lm_turn_release(lock);	/* other clusters may have entries that we cannot read */
		result = &odd;
		settled = false;
	}
	if (settled && is_undated(lm, lock, result))
	{
		result = &undated;
		settled = false;
	}
	if (settled)
	{
		lm_clear_trouble(lm, lock);
		if (call->last_resort)
			lm->alone_worked = now;
	}
	else if (op == DYNAMO_RENEW_BATCH && lm->batches == BATCHES_REFUSED &&
			 (result->status == DYNAMO_ACCESS_DENIED || result->status == DYNAMO_VALIDATION))
	{
		retry_singly(lm, now, lock);
		return;
	}
	else
		lm_note_trouble(lm, now, lock, op, call->sent, result);

	/* A write that sets a gate or a mark is a poll, too. */
	if (lock->state == LOCK_READING)
		op = DYNAMO_READ;
	lm_assert(op <= DYNAMO_READ && takers[op].settled != NULL);
	if (settled)
		takers[op].settled(lm, now, lock, result);
	else
		takers[op].failed(lm, now, lock);
}

/*
 * The call of a look-up, a look for permits or a deletion has ended.  Answers the session that
 * looks up, or sets the timer for a repetition.
 */
static void
look_up_settled(lockmgr *lm, int64_t now, const lm_call *call,
				const dynamo_result *result)
{
	lm_session *session = call->look_up_by;
	lm_lock    *lock = call->locks[0];
	const lm_lease *lease = lock->lease;
	dynamo_item item = result->item;
	lockmgr_answer answer = {.result = LOCKMGR_FOUND, .item = &item, .shared = result->shared};
	bool		done = result->status == DYNAMO_OK;

	lock->look_ups--;
	if (call->op == DYNAMO_DELETE)
		lm_delete_settled(lm, now, lock, result);
	if (done && lease == NULL)
		lm_observe(lm, now, lock, &result->item, result->shared);
	else if (done && lease->l.mode != MODE_EXCLUSIVE)
	{
		lm_observe_shared(lm, lock, now, result->shared);
		lm_note_mark(lm, now, lock, &result->item);
	}
	if (call->op == DYNAMO_MARK && dynamo_is_failure(result->status))
		lm_mark_failed(now, lock);
	if (session == NULL)
	{
		if (lock->state == LOCK_HELD && lock->lease->l.mode != MODE_EXCLUSIVE)
		{
			/*
			 * It was a look for permits.  If it has failed, a try that waits for it does not look
			 * again.
			 */
			if (lm_looks_for_try(now, lock))
				lm_answer_result(lm, lock->first, LOCKMGR_BUSY);
			(void) lm_admit(lm, now, lock);
		}
		lm_remember(lm, lock);
		return;
	}

	session->call = NULL;
	if (dynamo_is_transient(result->status) &&
		now - session->request.since < lm->retry_timeout_us)
	{
		heap_set(&lm->look_ups, &session->timer, now +
				 lm_backoff(lm, ++session->attempts, BACKOFF_CAP_US));
		return;
	}
	if (done && result->item.wrong != NULL)
	{
		answer.result = LOCKMGR_BAD_ITEM;
		answer.item = NULL;
		answer.message = result->item.wrong;
	}
	else if (!done)
	{
		answer.result = LOCKMGR_FAILED;
		answer.item = NULL;
		answer.op = DYNAMO_READ;
		answer.status = result->status;
		answer.message = result->message;
	}
	/*
	 * The item shows who held the lock when it was last written; the lock may have passed on here.
	 */
	else if (lease != NULL && lease->l.state == LEASE_HELD &&
			 item.by_ddblock && strcmp(item.owner, lm->owner) == 0)
	{
		item.hold_token = lease->holds->h.token;
		item.holder = lease->holds->h.holder;
	}
	lock->look_ups--;
	lm_answer(lm, session, &answer);
	lm_remember(lm, lock);
}

/*
 * Notes how long a reply took: attempt_timeout() depends on it.  A request without a reply tells
 * nothing of that.  Nor does a reply that took longer than it may: then this machine stood still.
 */
static void
note_speed(lockmgr *lm, dynamo_status status, int64_t took)
{
	if (status == DYNAMO_UNKNOWN || status == DYNAMO_UNREACHABLE || took > lm->request_timeout_us)
		return;
	lm->slowest_us = took > lm->slowest_us ? took : lm->slowest_us - (lm->slowest_us - took) / 8;
}

void
lockmgr_reply(lockmgr *lm, int64_t now, uint64_t call_id,
			  const dynamo_reply *reply)
{
	lm_call    *slot = &lm->calls[call_id % (2 * lm->max_calls)];
	lm_call		call = *slot;
	dynamo_result failure = {.status = DYNAMO_MALFORMED};

	if (call.id != call_id)
		return;
	slot->id = 0;
	lm->calls_in_flight--;
	lm->renewals_in_flight -= call.renewal;
	lm_begin_reply(lm, now, reply, call.sent);
	note_speed(lm, reply->status, now - call.sent);
	lm_charge_budget(lm, &call, reply);
	if (lm_is_batch_check(&call))
		lm_batch_checked(lm, now, reply);
	else if (call.op == DYNAMO_RENEW_BATCH)
		lm_batch_replied(lm, now, call.sent, reply);

	if (reply->count != call.count)
		memcpy(failure.message, "out of memory", sizeof("out of memory"));
	for (int i = 0; i < call.count; i++)
	{
		const dynamo_result *result =
			reply->count == call.count ? &reply->results[i] : &failure;

		if (call.bar != NULL)
			lm_bar_settled(lm, now, call.bar, result);
		else if (call.look_up)
			look_up_settled(lm, now, &call, result);
		else
			end_call(lm, now, &call, call.locks[i], result);
	}
	lm_end_reply(lm);
	lm->budget.cannot_pay = false;
	lm_pump(lm, now);
}

/*-------------------------------------------------------------------------
 * Timers: what is due now, and when something is due next.
 *-------------------------------------------------------------------------
 */

static void
lock_timer(lockmgr *lm, int64_t now, lm_lock *lock)
{
	switch (lock->state)
	{
		case LOCK_IDLE:
			lm_next_turn(lm, now, lock);
			break;
		case LOCK_POLLING:
			lm_poll(lm, now, lock);
			break;
		case LOCK_ACQUIRING:
		case LOCK_HANDING_OVER:
		case LOCK_RELEASING:
			if (lock->state == LOCK_ACQUIRING && lm_pending_session(lm, lock->lease) == NULL)
			{
				lm_abandon(lm, now, lock);	/* the acquire was adopted, and its session has not
											 * asked again */
				break;
			}
			if (!lock->outcome_unknown)
				lm_new_nonce(lm, lock);
			lm_submit(lm, lock);
			break;
		case LOCK_HELD:
		case LOCK_RENEWING:
			if (lock->lease->l.state != LEASE_HELD)
				break;
			if (now >= lock->lease->l.valid_until)
			{
				lm_lose(lm, now, lock, LOSS_UNREACHABLE, NULL);
				break;
			}
			if (lock->state == LOCK_HELD)
				lm_look(lm, lock);	/* the timer was set for a look, before the deadline */
			heap_set(&lm->timers, &lock->timer, lock->lease->l.valid_until);
			break;
		case LOCK_LOST:
			lm_lost_ended(lm, lock);
			break;
		case LOCK_READING:
		case LOCK_ADOPTED:
			break;				/* no timer is set */
	}
}

void
lockmgr_tick(lockmgr *lm, int64_t now)
{
	heap_node  *top;

	while ((top = heap_take_due(&lm->timers, now)) != NULL)
		lock_timer(lm, now, LM_CONTAINER(top, lm_lock, timer));
	while ((top = heap_take_due(&lm->look_ups, now)) != NULL)
		lm_submit_look_up(lm, LM_CONTAINER(top, lm_session, timer));
	lm_end_holds(lm, now);
	lm_pump(lm, now);
}

static int64_t
earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t
lockmgr_next_wake(const lockmgr *lm)
{
	int64_t		wake = earlier(heap_next(&lm->timers), heap_next(&lm->look_ups));

	wake = earlier(wake, heap_next(&lm->ends));
	/* When all calls are taken, the next reply sends what is due. */
	if (lm->calls_in_flight - lm->renewals_in_flight < lm->max_calls)
		wake = earlier(wake, heap_next(&lm->bars));
	if (lm->renewals_in_flight < lm->max_calls)
		wake = earlier(wake, heap_next(&lm->renewals));
	return wake;
}
