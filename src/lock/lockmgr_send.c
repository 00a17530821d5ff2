/*-------------------------------------------------------------------------
 *
 * lockmgr_send.c
 *	  Sending calls, within limits, and several renewals in one.
 *
 * A lock that needs a call is put into the ready queue; lm_pump(), at the end of
 * every event, sends as many as the limit on calls in flight allows.  A write's
 * nonce and the time it was first sent are saved before it is sent, so that a
 * manager that adopts the lease can repeat the same write.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

#define ATTEMPT_MIN_US	INT64_C(50000)
#define TOKENS			256

/*
 * To share a request, a renewal may be sent early by this part of its lease; a
 * repetition only by so little, to preserve the jitter.
 */
#define EARLY_PART		12
#define RETRY_EARLY_US	INT64_C(20000)

void
lm_new_nonce(lockmgr *lm, lm_lock *lock)
{
	lease_write *pending = &lock->lease->l.pending;
	uint8_t		random[16];

	lm->host.random(lm->host.arg, random, sizeof(random));
	uuid_v4(random, pending->version);
	pending->first_sent = 0;
	lock->maybe = lock->repeat = false;
}

/* Starts a write; the caller fills in the other fields and submits it. */
void
lm_new_write(lockmgr *lm, lm_lock *lock, dynamo_op op, const char *expected)
{
	lease_write write = {.op = op};

	memcpy(write.expected, expected, strnlen(expected, sizeof(write.expected) - 1));
	lock->lease->l.pending = write;
	lm_new_nonce(lm, lock);
}

void
lm_submit(lockmgr *lm, lm_lock *lock)
{
	if (lock->queued || lock->call != NULL)
		return;
	heap_set(&lm->timers, &lock->timer, INT64_MAX);
	lock->queued = true;
	lock->ready_next = NULL;
	if (lm->ready_last != NULL)
		lm->ready_last->ready_next = lock;
	else
		lm->ready_first = lock;
	lm->ready_last = lock;
}

void
lm_submit_look_up(lockmgr *lm, lm_session *session)
{
	session->queued = true;
	session->ready_next = NULL;
	if (lm->look_up_last != NULL)
		lm->look_up_last->ready_next = session;
	else
		lm->look_up_first = session;
	lm->look_up_last = session;
}

/* Rare: a cancellation while too many calls are in flight. */
void
lm_unsubmit_look_up(lockmgr *lm, lm_session *session)
{
	lm_session *previous = NULL;

	heap_set(&lm->look_ups, &session->timer, INT64_MAX);
	if (!session->queued)
		return;
	for (lm_session *s = lm->look_up_first; s != session; s = s->ready_next)
		previous = s;
	*(previous ? &previous->ready_next : &lm->look_up_first) = session->ready_next;
	if (lm->look_up_last == session)
		lm->look_up_last = previous;
	session->queued = false;
}

/* An unused call, or NULL at the limit of calls in flight. */
static lm_call *
take_call(lockmgr *lm, dynamo_op op, bool renewal)
{
	uint32_t	others = lm->calls_in_flight - lm->renewals_in_flight;
	uint32_t	total = 2 * lm->max_calls;

	if ((renewal ? lm->renewals_in_flight : others) >= lm->max_calls)
		return NULL;
	for (;;)
	{
		lm_call    *call = &lm->calls[++lm->call_serial % total];

		if (call->id != 0)
			continue;
		*call = (lm_call) {.id = lm->call_serial, .op = op, .renewal = renewal};
		lm->calls_in_flight++;
		lm->renewals_in_flight += renewal;
		return call;
	}
}

/* One attempt may take a third of the time left to the deadline. */
static int64_t
attempt_timeout(const lockmgr *lm, int64_t now, const lm_lock *lock)
{
	int64_t		timeout = lm->request_timeout_us;
	int64_t		deadline;

	if (lm->retry_timeout_us < timeout)
		timeout = lm->retry_timeout_us;
	if (lock->lease != NULL)
	{
		const struct lease *l = &lock->lease->l;

		deadline = l->state == LEASE_HELD ? l->valid_until :
			l->pending.first_sent + l->pending.lease_ms * 1000 - l->pending.margin_us;
		if (deadline > now && (deadline - now) / 3 < timeout)
			timeout = (deadline - now) / 3;
	}
	return timeout > ATTEMPT_MIN_US ? timeout : ATTEMPT_MIN_US;
}

/*
 * When a shorter lease is sent, the old deadline is no longer valid, because
 * others count the new length.
 */
static void
shorten_belief(lockmgr *lm, lm_lock *lock)
{
	struct lease *l = &lock->lease->l;
	int64_t		deadline = l->pending.first_sent +
		l->pending.lease_ms * 1000 - l->pending.margin_us;

	if (deadline < l->deadline)
		l->deadline = deadline;
	if (l->state == LEASE_HELD && deadline < l->valid_until)
	{
		l->valid_until = deadline;
		heap_set(&lm->timers, &lock->timer, deadline);
	}
}

/*
 * The first token is DynamoDB's time in microseconds, but above every token of the
 * lock.  While sessions of this cluster compete, the write reserves more than one.
 * With more than TOKENS, they would run ahead of DynamoDB's time.
 */
static void
reserve_tokens(const lockmgr *lm, int64_t now, const lm_lock *lock)
{
	lease_write *pending = &lock->lease->l.pending;
	int64_t		first = now + lm->epoch_offset_us;
	bool		compete = pending->op == DYNAMO_HAND_OVER || lock->waiters > 1;

	if (first <= lock->top_token && lock->top_token < INT64_MAX)
		first = lock->top_token + 1;
	pending->first_token = first;
	pending->last_token = compete && first < INT64_MAX - TOKENS ?
		first + TOKENS - 1 : first;
}

/* Records that the lock's pending write is sent now, and describes it. */
static void
prepare_write(lockmgr *lm, int64_t now, lm_lock *lock, dynamo_write *write)
{
	lm_lease   *lease = lock->lease;
	lease_write *pending = &lease->l.pending;
	bool		first = pending->first_sent == 0;

	if (first)
	{
		pending->first_sent = now;

		/*
		 * The token is of this moment, like the deadline: an older one could be
		 * granted after a higher one if the item is deleted in between.
		 */
		if (pending->op == DYNAMO_ACQUIRE || pending->op == DYNAMO_HAND_OVER)
			reserve_tokens(lm, now, lock);
		if (pending->op == DYNAMO_RENEW)
			shorten_belief(lm, lock);
		lm_save(lm, lease, pending->op == DYNAMO_ACQUIRE);
	}

	*write = (dynamo_write)
	{
		.op = pending->op,
			.name = lock->name,
			.name_len = lock->name_len,
			.owner = lm->owner,
			.version = pending->version,
			.expected = pending->expected,
			.lease_ms = pending->lease_ms,
			.first_token = pending->first_token,
			.last_token = pending->last_token,
			.holder = pending->has_holder ? &lease->l.holder : NULL,
			.now_s = (now + lm->epoch_offset_us) / 1000000,
	};
	if ((pending->op == DYNAMO_ACQUIRE || pending->op == DYNAMO_HAND_OVER) &&
		lm_pending_wanted(lm, lease))
	{
		const lm_request *request =
			&lm->sessions[pending->session.slot]->request;

		write->data = request->data;
		write->data_len = request->data_len;
	}
}

static void
send_call(lockmgr *lm, const lm_call *call, bool repeat, int64_t timeout_us,
		  const dynamo_write *writes)
{
	lockmgr_call out = {
		.id = call->id,
		.op = call->op,
		.repeat = repeat,
		.timeout_us = timeout_us,
		.count = call->count,
		.writes = writes,
	};

	lm->host.send(lm->host.arg, &out);
}

/*
 * A poll may show the item as it was a moment ago: all that follows from it is a
 * conditional write.  What a session asks to see is read consistently.
 */
static void
describe_read(lockmgr *lm, const lm_lock *lock, bool maybe_stale, dynamo_write *write)
{
	*write = (dynamo_write)
	{
		.op = DYNAMO_READ, .name = lock->name, .name_len = lock->name_len,
			.owner = lm->owner, .version = "", .expected = "",
			.maybe_stale = maybe_stale,
	};
}

static void
send_lock(lockmgr *lm, int64_t now, lm_lock *lock, lm_call *call)
{
	dynamo_write write;
	bool		repeat = lock->repeat;

	call->count = 1;
	call->locks[0] = lock;
	lock->call = call;
	if (call->op == DYNAMO_READ)
	{
		describe_read(lm, lock, true, &write);
		repeat = false;
	}
	else
	{
		prepare_write(lm, now, lock, &write);
		lock->repeat = true;
	}
	send_call(lm, call, repeat, attempt_timeout(lm, now, lock), &write);
}

static void
send_look_up(lockmgr *lm, lm_session *session, lm_call *call)
{
	dynamo_write write;
	lm_lock    *lock = session->request.lock;

	call->count = 1;
	call->look_up = true;
	call->look_up_by = session;
	call->locks[0] = lock;
	lock->look_ups++;
	session->call = call;
	describe_read(lm, lock, false, &write);
	send_call(lm, call, session->attempts > 0, lm->request_timeout_us, &write);
}

/* The next renewal if it is due, or may be sent early to share a request. */
static lm_lock *
due_renewal(lockmgr *lm, int64_t now, bool sharing)
{
	heap_node  *top = heap_top(&lm->renewals);
	lm_lock    *lock;
	int64_t		early = 0;

	if (top == NULL)
		return NULL;
	lock = LM_CONTAINER(top, lm_lock, renewal);
	if (sharing)
		early = lock->attempts > 0 ? RETRY_EARLY_US :
			lock->lease->l.lease_ms * 1000 / EARLY_PART;
	return top->at <= now + early ? lock : NULL;
}

/* Prepares a renewal, also of the item's holder if that is another by now. */
static void
start_renewal(lockmgr *lm, lm_lock *lock)
{
	struct lease *l = &lock->lease->l;
	bool		wanted = lock->renewer != NULL && lock->wanted_lease_ms != 0;

	lm_new_write(lm, lock, DYNAMO_RENEW, l->version);
	l->pending.lease_ms = wanted ? lock->wanted_lease_ms : l->lease_ms;
	l->pending.margin_us = wanted ? lock->wanted_margin_us : l->margin_us;
	l->pending.has_holder = l->stale_holder;
	lm_enter(lock, LOCK_RENEWING);
}

/* Sends renewals that are due, up to 25 in one request. */
static void
send_renewals(lockmgr *lm, int64_t now)
{
	dynamo_write writes[DYNAMO_BATCH_MAX];
	int			most = lm->batches ? DYNAMO_BATCH_MAX : 1;

	while (due_renewal(lm, now, false) != NULL)
	{
		lm_call    *call = take_call(lm, DYNAMO_RENEW, true);
		int64_t		timeout = INT64_MAX;
		bool		repeat = false;
		lm_lock    *lock;

		if (call == NULL)
			return;
		while (call->count < most &&
			   (lock = due_renewal(lm, now, call->count > 0)) != NULL)
		{
			int64_t		own;

			heap_set(&lm->renewals, &lock->renewal, INT64_MAX);
			if (lock->state == LOCK_HELD)
				start_renewal(lm, lock);
			else if (!lock->maybe)
				lm_new_nonce(lm, lock);
			repeat |= lock->repeat;
			lock->repeat = true;
			lock->call = call;
			prepare_write(lm, now, lock, &writes[call->count]);
			own = attempt_timeout(lm, now, lock);
			timeout = own < timeout ? own : timeout;
			call->locks[call->count++] = lock;
		}
		if (call->count > 1)
			call->op = DYNAMO_RENEW_BATCH;
		send_call(lm, call, repeat, timeout, writes);
	}
}

/* Sends what is due, within the limits. */
void
lm_pump(lockmgr *lm, int64_t now)
{
	lm_call    *call;

	if (lm->adopting)
		return;					/* not all leases are adopted yet */
	send_renewals(lm, now);
	while (lm->ready_first != NULL)
	{
		lm_lock    *lock = lm->ready_first;

		call = take_call(lm, lock->state == LOCK_READING ? DYNAMO_READ :
						 lock->lease->l.pending.op, false);
		if (call == NULL)
			return;
		lm->ready_first = lock->ready_next;
		if (lm->ready_first == NULL)
			lm->ready_last = NULL;
		lock->queued = false;
		send_lock(lm, now, lock, call);
	}
	while (lm->look_up_first != NULL)
	{
		lm_session *session = lm->look_up_first;

		call = take_call(lm, DYNAMO_READ, false);
		if (call == NULL)
			return;
		lm->look_up_first = session->ready_next;
		if (lm->look_up_first == NULL)
			lm->look_up_last = NULL;
		session->queued = false;
		send_look_up(lm, session, call);
	}
}
