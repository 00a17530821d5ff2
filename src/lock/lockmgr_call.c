/*-------------------------------------------------------------------------
 *
 * lockmgr_call.c
 *	  What comes of calls: answers, trouble, and repeating those whose outcome
 *	  is unknown.
 *
 * While a write may have happened, only that write is repeated, with its
 * nonce.  A write that certainly did not happen (throttled, never sent) gets a
 * fresh nonce and so a fresh deadline.  See "When an outcome is unknown" in
 * doc/protocol.md.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/backoff.h"
#include "lock/lockmgr_private.h"

#include <stdlib.h>
#include <string.h>

/* Ends the session's request with this answer. */
void
lm_answer(lockmgr *lm, lm_session *session, lockmgr_answer *answer)
{
	lm_request *request = &session->request;

	if ((request->kind == LOCKMGR_ACQUIRE || request->kind == LOCKMGR_TRY) &&
		request->lock != NULL)
		lm_dequeue(lm, session);
	answer->session = session->id;
	answer->seq = request->seq;
	answer->kind = request->kind;
	if (answer->type == NULL)
		answer->type = "";
	if (answer->message == NULL)
		answer->message = "";
	request->active = false;
	free(request->data);
	request->data = NULL;
	request->data_len = 0;
	lm->host.answer(lm->host.arg, answer);
}

void
lm_answer_result(lockmgr *lm, lm_session *session, lockmgr_result result)
{
	lockmgr_answer answer = {.result = result};

	lm_answer(lm, session, &answer);
}

/* The item is there, but cannot be worked with. */
void
lm_answer_bad_item(lockmgr *lm, lm_session *session, const char *message)
{
	lockmgr_answer answer = {.result = LOCKMGR_BAD_ITEM, .message = message};

	lm_answer(lm, session, &answer);
}

/* Ends the session's request with the lock's trouble. */
void
lm_answer_failed(lockmgr *lm, lm_session *session, const lm_lock *lock)
{
	lockmgr_answer answer = {
		.result = LOCKMGR_FAILED,
		.op = lock->trouble_op,
		.status = lock->trouble,
		.type = lock->trouble_type,
		.message = lock->trouble_message,
	};

	lm_answer(lm, session, &answer);
}

void
lm_clear_trouble(lockmgr *lm, lm_lock *lock)
{
	bool		had = lock->trouble_since != 0;

	lock->attempts = 0;
	lock->trouble_since = 0;
	if (had)
		lm_tell_watch(lm, lock);
}

static void
note_trouble(lockmgr *lm, int64_t now, lm_lock *lock, dynamo_op op,
			 const dynamo_result *result)
{
	lock->attempts++;
	if (lock->trouble_since == 0)
		lock->trouble_since = now;
	lock->trouble_op = op;
	lock->trouble = result->status;
	memcpy(lock->trouble_type, result->type, sizeof(lock->trouble_type));
	memcpy(lock->trouble_message, result->message, sizeof(lock->trouble_message));
	lm_tell_watch(lm, lock);
}

/* Will the same request fare no better a moment later? */
static bool
permanent(dynamo_status status)
{
	return status != DYNAMO_THROTTLED && status != DYNAMO_CONFLICT &&
		status != DYNAMO_UNREACHABLE && status != DYNAMO_UNKNOWN;
}

/* Is a batch refused because it is one? */
static bool
refuses_batches(dynamo_status status)
{
	return status == DYNAMO_ACCESS_DENIED || status == DYNAMO_VALIDATION;
}

/* Has the session seen enough of the lock's trouble to be told? */
static bool
out_of_patience(const lockmgr *lm, int64_t now, const lm_lock *lock,
				const lm_session *session)
{
	int64_t		since = session->request.since;

	if (lock->trouble_since == 0)
		return false;			/* what is undone was abandoned, nothing failed */
	if (since < lock->trouble_since)
		since = lock->trouble_since;
	return permanent(lock->trouble) || now - since >= lm->retry_timeout_us;
}

static void
fail_impatient_waiters(lockmgr *lm, int64_t now, lm_lock *lock)
{
	while (lock->first != NULL && out_of_patience(lm, now, lock, lock->first))
		lm_answer_failed(lm, lock->first, lock);
}

static int64_t
retry_at(lockmgr *lm, int64_t now, const lm_lock *lock, int64_t before)
{
	int64_t		cap = BACKOFF_CAP_US;

	if (before > now && (before - now) / 4 < cap)
		cap = (before - now) / 4;
	return now + backoff_us(lock->attempts, cap, lm_random(lm));
}

/* Keeps the lock's next acquire back, for longer with each failure. */
void
lm_stay_back(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->attempts == 0)
		lock->attempts = 1;
	lock->stay_back_until = retry_at(lm, now, lock, 0);
}

/*
 * The session that the unsettled acquire is for does not want it any more.  It
 * is not repeated: as it may have happened, it is undone, by its nonce.
 */
void
lm_abandon(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_lease   *lease = lock->lease;
	char		nonce[UUID_SIZE];

	if (!lock->maybe)
	{
		lm_drop_lease(lm, lock);
		lm_stay_back(lm, now, lock);
		lm_next_turn(lm, now, lock);
		return;
	}
	memcpy(nonce, lease->l.pending.version, sizeof(nonce));
	lease->l.lease_end = now + lease->l.pending.lease_ms * 1000;
	lm_set_lease_state(lm, lease, LEASE_RELEASING);
	lm_release(lm, now, lock, nonce);
}

static void
acquire_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	fail_impatient_waiters(lm, now, lock);
	if (lm_pending_wanted(lm, lock->lease))
		heap_set(&lm->timers, &lock->timer, retry_at(lm, now, lock, 0));
	else
		lm_abandon(lm, now, lock);
}

static void
look_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	fail_impatient_waiters(lm, now, lock);
	lock->state = LOCK_WATCHING;
	if (lock->first != NULL)
		heap_set(&lm->timers, &lock->timer, retry_at(lm, now, lock, 0));
	else
		lm_next_turn(lm, now, lock);
}

static void
fail_impatient_releaser(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_session *session = lock->releaser;

	if (session == NULL || !out_of_patience(lm, now, lock, session))
		return;
	lock->releaser = NULL;
	lm_answer_failed(lm, session, lock);
}

static void
renewal_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	lm_lease   *lease = lock->lease;
	struct lease *l = &lease->l;

	if (lock->state == LOCK_LOST)
	{
		if (l->state == LEASE_RELEASING || now >= l->lease_end)
			lm_lost_ended(lm, now, lock);
		else
			heap_set(&lm->timers, &lock->timer, l->lease_end);
		return;
	}
	if (lock->renewer != NULL && out_of_patience(lm, now, lock, lock->renewer))
	{
		lm_session *session = lock->renewer;

		lock->renewer = NULL;
		lock->wanted_lease_ms = 0;
		lm_answer_failed(lm, session, lock);
	}
	fail_impatient_waiters(lm, now, lock);
	fail_impatient_releaser(lm, now, lock);

	if (l->state == LEASE_HELD && now >= l->valid_until)
		lm_lose(lm, now, lock, LOSS_UNREACHABLE, NULL);
	else if (l->state != LEASE_HELD && (now >= l->deadline || !lock->maybe))
	{
		/* Let go meanwhile: release what is confirmed, and then the renewal. */
		if (lock->maybe)
			memcpy(l->stray, l->pending.version, sizeof(l->stray));
		lm_release(lm, now, lock, l->version);
	}
	else
		heap_set(&lm->renewals, &lock->renewal,
				 retry_at(lm, now, lock, l->deadline));
}

/* Certainly not applied, only because it was part of a batch. */
static void
retry_singly(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->state == LOCK_LOST)
		renewal_failed(lm, now, lock);
	else
		heap_set(&lm->renewals, &lock->renewal, now);
}

/* A release or a hand-over. */
static void
release_failed(lockmgr *lm, int64_t now, lm_lock *lock)
{
	fail_impatient_releaser(lm, now, lock);
	fail_impatient_waiters(lm, now, lock);
	if (now < lm_give_up_at(lock))
	{
		heap_set(&lm->timers, &lock->timer, retry_at(lm, now, lock, 0));
		return;
	}
	/* Whichever of these stands there, nobody of ours holds it. */
	lm_retire(lm, lock->lease->l.pending.expected);
	if (lock->lease->l.stray[0] != '\0')
		lm_retire(lm, lock->lease->l.stray);
	if (lock->lease->l.pending.op == DYNAMO_HAND_OVER)
		lm_retire(lm, lock->lease->l.pending.version);
	lm_drop_lease(lm, lock);
	if (lock->releaser != NULL)
	{
		lm_session *session = lock->releaser;

		lock->releaser = NULL;
		lm_answer_failed(lm, session, lock);
	}
	lm_stay_back(lm, now, lock);
	lm_next_turn(lm, now, lock);
}

/* What came of the lock's call: an answer, or trouble. */
static void
settle(lockmgr *lm, int64_t now, lm_lock *lock, dynamo_op op,
	   const dynamo_result *result)
{
	lock->call = NULL;
	if (result->status == DYNAMO_OK || result->status == DYNAMO_CONDITION_FAILED)
	{
		lm_clear_trouble(lm, lock);
		switch (op)
		{
			case DYNAMO_READ:
				lm_look_settled(lm, now, lock, result);
				break;
			case DYNAMO_ACQUIRE:
				lm_acquire_settled(lm, now, lock, result);
				break;
			case DYNAMO_HAND_OVER:
				lm_hand_over_settled(lm, now, lock, result);
				break;
			case DYNAMO_RELEASE:
				lm_release_settled(lm, now, lock, result);
				break;
			default:
				lm_renewal_settled(lm, now, lock, result);
		}
		return;
	}

	if (op == DYNAMO_RENEW_BATCH && !lm->batches && refuses_batches(result->status))
	{
		retry_singly(lm, now, lock);
		return;
	}
	note_trouble(lm, now, lock, op, result);
	if (result->status == DYNAMO_UNKNOWN || result->status == DYNAMO_MALFORMED ||
		result->status == DYNAMO_WRONG_SERVICE)
		lock->maybe = true;
	switch (op)
	{
		case DYNAMO_READ:
			look_failed(lm, now, lock);
			break;
		case DYNAMO_ACQUIRE:
			acquire_failed(lm, now, lock);
			break;
		case DYNAMO_HAND_OVER:
		case DYNAMO_RELEASE:
			release_failed(lm, now, lock);
			break;
		default:
			renewal_failed(lm, now, lock);
	}
}

/* A session's look-up: answered, failed for good, or to be tried again. */
static void
look_up_settled(lockmgr *lm, int64_t now, const lm_call *call,
				const dynamo_result *result)
{
	lm_session *session = call->looker;
	lm_lock    *lock = call->locks[0];
	lockmgr_answer answer = {.result = LOCKMGR_FOUND, .item = &result->item};
	bool		done = result->status == DYNAMO_OK;

	lock->look_ups--;
	if (done && lock->lease == NULL)
		lm_observe(lm, now, lock, &result->item);
	if (session != NULL)
	{
		session->call = NULL;
		if (!done && !permanent(result->status) &&
			now - session->request.since < lm->retry_timeout_us)
		{
			heap_set(&lm->look_ups, &session->timer, now +
					 backoff_us(++session->attempts, BACKOFF_CAP_US, lm_random(lm)));
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
			answer.type = result->type;
			answer.message = result->message;
		}
		lock->look_ups--;
		lm_answer(lm, session, &answer);
	}
	lm_park(lm, lock);
}

/*
 * A batch that is refused is not tried again: single renewals need no PartiQL
 * permission, the lack of which may show in the statements alone.
 */
static void
check_batches(lockmgr *lm, const lm_call *call, const dynamo_reply *reply)
{
	bool		refused = refuses_batches(reply->status);

	if (call->op != DYNAMO_RENEW_BATCH || !lm->batches)
		return;
	for (int i = 0; i < reply->count; i++)
		refused |= reply->results[i].status == DYNAMO_ACCESS_DENIED;
	if (!refused)
		return;
	lm->batches = false;
	lm->host.no_batches(lm->host.arg, reply);
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
	check_batches(lm, &call, reply);

	if (reply->count != call.count)
		memcpy(failure.message, "out of memory", sizeof("out of memory"));
	for (int i = 0; i < call.count; i++)
	{
		const dynamo_result *result =
			reply->count == call.count ? &reply->results[i] : &failure;

		if (call.look_up)
			look_up_settled(lm, now, &call, result);
		else
			settle(lm, now, call.locks[i], call.op, result);
	}
	lm_pump(lm, now);
}

/* The lock's retry is due. */
static void
repeat_write(lockmgr *lm, int64_t now, lm_lock *lock)
{
	if (lock->state == LOCK_ACQUIRING && !lm_pending_wanted(lm, lock->lease))
	{
		lm_abandon(lm, now, lock);	/* adopted, and nobody asked for it again */
		return;
	}
	if (!lock->maybe)
		lm_new_nonce(lm, lock);
	lm_submit(lm, lock);
}

static void
lock_timer(lockmgr *lm, int64_t now, lm_lock *lock)
{
	switch (lock->state)
	{
		case LOCK_IDLE:
			lm_next_turn(lm, now, lock);
			break;
		case LOCK_WATCHING:
			lm_look(lm, now, lock);
			break;
		case LOCK_ACQUIRING:
		case LOCK_HANDING_OVER:
		case LOCK_RELEASING:
			repeat_write(lm, now, lock);
			break;
		case LOCK_HELD:
		case LOCK_RENEWING:
			if (lock->lease->l.state == LEASE_HELD)
				lm_lose(lm, now, lock, LOSS_UNREACHABLE, NULL);
			break;
		case LOCK_LOST:
			lm_lost_ended(lm, now, lock);
			break;
		case LOCK_READING:
			break;				/* in flight: no timer */
	}
}

void
lockmgr_tick(lockmgr *lm, int64_t now)
{
	heap_node  *top;

	while ((top = heap_top(&lm->timers)) != NULL && top->at <= now)
	{
		heap_set(&lm->timers, top, INT64_MAX);
		lock_timer(lm, now, LM_CONTAINER(top, lm_lock, timer));
	}
	while ((top = heap_top(&lm->look_ups)) != NULL && top->at <= now)
	{
		heap_set(&lm->look_ups, top, INT64_MAX);
		lm_submit_look_up(lm, LM_CONTAINER(top, lm_session, timer));
	}
	lm_pump(lm, now);
}

int64_t
lockmgr_next_wake(const lockmgr *lm)
{
	const heap_node *timer = heap_top(&lm->timers);
	const heap_node *look_up = heap_top(&lm->look_ups);
	const heap_node *renewal = heap_top(&lm->renewals);
	int64_t		wake = INT64_MAX;

	if (timer != NULL)
		wake = timer->at;
	if (look_up != NULL && look_up->at < wake)
		wake = look_up->at;
	/* When all calls are taken, the next reply sends what is due. */
	if (renewal != NULL && renewal->at < wake &&
		lm->renewals_in_flight < lm->max_calls)
		wake = renewal->at;
	return wake;
}
