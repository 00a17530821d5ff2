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
 * How much earlier than due a renewal may be sent, to share a request with others:
 *
 *	 - the first attempt: by this part of its lease (1.7 s of 20 s);
 *	 - a repetition: by RETRY_EARLY_US, which preserves the jitter;
 *	 - a repetition that is postponed for want of budget: by this part of the time left.
 */
#define EARLY_PART		12
#define RETRY_EARLY_US	INT64_C(20000)
#define POSTPONED_PART	16
#define ALONE_PART		16		/* part of the lease that passes between two last resorts */

void
lm_new_nonce(lockmgr *lm, lm_lock *lock)
{
	lease_write *pending = &lock->lease->l.pending;
	uint8_t		random[16];

	lm->host.random(lm->host.arg, random, sizeof(random));
	uuid_v4(random, pending->version);
	pending->first_sent = 0;
	lock->outcome_unknown = lock->repeat = lock->explains = false;
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
	if (!heap_is_in(&lock->ready) && lock->call == NULL)
		heap_append(&lm->ready, &lock->ready);
}

void
lm_submit_look_up(lockmgr *lm, lm_session *session)
{
	heap_append(&lm->ready_look_ups, &session->ready);
}

void
lm_unsubmit_look_up(lockmgr *lm, lm_session *session)
{
	heap_set(&lm->look_ups, &session->timer, INT64_MAX);
	heap_set(&lm->ready_look_ups, &session->ready, INT64_MAX);
}

/* Takes an unused call; NULL if as many calls as allowed are in flight. */
static lm_call *
take_call(lockmgr *lm, int64_t now, bool renewal)
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
		*call = (lm_call) {.id = lm->call_serial, .sent = now, .renewal = renewal};
		lm->calls_in_flight++;
		lm->renewals_in_flight += renewal;
		return call;
	}
}

/*
 * How long an attempt of the lock's call may take:
 *
 *	 - a third of the time left to the deadline, so that other attempts can follow;
 *	 - but at least twice as long as the slowest of the last replies, even beyond the deadline.
 *	   If replies take longer than that third, none would ever be heard; nor would those to a
 *	   batch, whose time-out is that of its most urgent renewal;
 *	 - at most the request time-out, and the retry time-out.
 */
static int64_t
attempt_timeout(const lockmgr *lm, int64_t now, const lm_lock *lock)
{
	int64_t		most = lm->request_timeout_us < lm->retry_timeout_us ?
		lm->request_timeout_us : lm->retry_timeout_us;
	int64_t		least = 2 * lm->slowest_us > ATTEMPT_MIN_US ? 2 * lm->slowest_us : ATTEMPT_MIN_US;
	int64_t		timeout = most;
	int64_t		deadline;

	if (lock->lease != NULL)
	{
		const saved_lease *l = &lock->lease->l;

		deadline = l->state == LEASE_HELD ? l->valid_until :
			l->pending.first_sent + l->pending.lease_ms * 1000 - l->pending.margin_us;
		if (deadline > now)
			timeout = (deadline - now) / 3;
	}
	if (timeout < least)
		timeout = least;
	return timeout < most ? timeout : most;
}

/*
 * The pending renewal is sent now.  If it writes a shorter lease, the deadline moves forward at
 * once, because others count the new length.
 */
static void
shorten_belief(lockmgr *lm, lm_lock *lock)
{
	saved_lease *l = &lock->lease->l;
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
 * Reserves tokens for the lock's pending write.  The first one is DynamoDB's time in microseconds,
 * or, if that is not above every earlier token of the lock, the next above those.  Tokens of
 * writes that were given up count: a bar against them must not refuse this write.
 *
 * If sessions of this cluster compete for the lock, the write reserves TOKENS, so that the lock
 * can pass on without a request; else one.  With more, tokens would run ahead of DynamoDB's time.
 */
static void
reserve_tokens(const lockmgr *lm, int64_t now, lm_lock *lock)
{
	lease_write *pending = &lock->lease->l.pending;
	int64_t		first = now + lm->epoch_offset_us;
	bool		compete = lock->lease->l.mode == MODE_EXCLUSIVE &&
		(pending->op == DYNAMO_HAND_OVER || lock->first != lock->last);

	if (first <= lock->top_token && lock->top_token < INT64_MAX)
		first = lock->top_token + 1;
	pending->first_token = first;
	pending->last_token = compete && first < INT64_MAX - TOKENS ?
		first + TOKENS - 1 : first;
	lm_raise_token(lock, pending->last_token);
}

/* What the dynamo_write of a write in shared mode points to. */
typedef struct shared_part
{
	dynamo_shared_write shared;
	dynamo_dead_entry dead[DYNAMO_ENTRIES_MAX];
} shared_part;

/* Describes the part of the lock's pending write that only shared mode has. */
static const dynamo_shared_write *
describe_shared(const lockmgr *lm, int64_t now, const lm_lock *lock, shared_part *part)
{
	const saved_lease *l = &lock->lease->l;
	const lease_write *pending = &l->pending;
	dynamo_shared_write *shared = &part->shared;
	dynamo_admission *admission = NULL;

	*shared = (dynamo_shared_write) {
		.kind = pending->kind,.epoch = l->epoch,.me = lm->incarnation
	};
	if (pending->op == DYNAMO_ACQUIRE)
	{
		admission = &shared->entry.admission;
		shared->entry.mode = l->mode;
		shared->entry.name = lm->cluster;
		shared->entry.shorter_ms = pending->shorter_ms;
	}
	else if (pending->kind == DYNAMO_SHARED_CHANGE)
		admission = &shared->change;
	if (admission == NULL)
		return shared;
	admission->permits = pending->permits;
	admission->limit = pending->limit;
	if (pending->permits > 0)
		lm_name_dead(lm, now, lock, admission, part->dead);
	admission->freed += pending->replaced;
	return shared;
}

/* Records that the lock's pending write is sent now, and describes it. */
static void
prepare_write(lockmgr *lm, int64_t now, lm_lock *lock, dynamo_write *write,
			  shared_part *part)
{
	lm_lease   *lease = lock->lease;
	lease_write *pending = &lease->l.pending;
	const lm_session *session = lm_payload_session(lm, lease);
	bool		first = pending->first_sent == 0;

	lm_assert(pending->version[0] != '\0');
	if (first)
	{
		pending->first_sent = now;

		/*
		 * Tokens are reserved now, and not when the write was planned.  Otherwise, if the item is
		 * deleted in between, a session of another cluster could get a token first that is higher
		 * than ours.
		 */
		if (pending->op == DYNAMO_ACQUIRE || pending->op == DYNAMO_HAND_OVER)
		{
			reserve_tokens(lm, now, lock);
			lm_set_minimum(lm, now, pending);
		}
		if (pending->op == DYNAMO_RENEW)
			shorten_belief(lm, lock);
		lm_stamp(lm, &lease->l);
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
			.must_exist = pending->must_exist,
			.kept_until_ms = pending->kept_until_ms,
			.past_ms = lm_past_ms(lm, now),
			.now_s = (now + lm->epoch_offset_us) / 1000000,
	};
	if (pending->op == DYNAMO_RELEASE && !lease->l.ends_kept)
		write->kept_until_ms = lease->l.kept_until_ms;
	if (session != NULL)
	{
		write->data = session->request.data;
		write->data_len = session->request.data_len;
		write->attributes = session->request.attributes;
	}
	if (pending->op == DYNAMO_ACQUIRE || pending->op == DYNAMO_RELEASE)
		write->old_attributes = lock->attribute_names;
	if (lease->l.mode != MODE_EXCLUSIVE)
		write->shared = describe_shared(lm, now, lock, part);
	write->unmark = lock->marked_by_us;
}

static void
send_call(lockmgr *lm, lm_call *call, dynamo_op op, bool repeat, int64_t timeout_us,
		  const dynamo_write *writes)
{
	lockmgr_call out = {
		.id = call->id,
		.op = op,
		.repeat = repeat,
		.timeout_us = timeout_us,
		.count = call->count,
		.writes = writes,
	};

	call->op = op;
	lm->host.send(lm->host.arg, &out);
}

/*
 * Describes a read.  maybe_stale: the reply may show the item as it was a moment ago.  That is
 * enough for a poll, because only conditional writes follow from it.
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

#define GATE_LEASE_MS	10000

/*
 * Describes a write that sets our gate for the first session in the queue, or renews it.  If the
 * outcome is unknown, the next poll is a read, which shows whether the gate has this nonce or the
 * one before.  The lease of a gate is short, however long a lease the session wants, because a
 * session that gives up, or a worker that dies, leaves its gate in the item.
 */
static void
describe_gate(lockmgr *lm, int64_t now, lm_lock *lock, dynamo_write *write, shared_part *part)
{
	int64_t		lease_ms = lock->first->request.ask.lease_ms;
	uint8_t		random[16];
	bool		renews = lm_is_our_gate(lock);

	if (renews)
		memcpy(lock->old_gate, lock->shared->gate, sizeof(lock->old_gate));
	lm->host.random(lm->host.arg, random, sizeof(random));
	uuid_v4(random, lock->gate);
	lock->gate_sent = now;
	lock->gate_unsettled = true;
	part->shared = (dynamo_shared_write) {
		.kind = renews ? DYNAMO_SHARED_RENEW_GATE : DYNAMO_SHARED_GATE,
		.epoch = lock->owner,.waiter = lm->cluster
	};
	*write = (dynamo_write) {
		.op = dynamo_shared_op(part->shared.kind),.name = lock->name,
		.name_len = lock->name_len,.owner = lm->owner,.version = lock->gate,
		.expected = renews ? lock->old_gate : lm_dead_gate(lock),
		.lease_ms = lease_ms < GATE_LEASE_MS ? lease_ms : GATE_LEASE_MS,.shared = &part->shared
	};
}

/* Sends the calls of the locks in the ready queue: a write, a read, or a poll. */
static void
send_ready(lockmgr *lm, int64_t now)
{
	heap_node  *top;

	while ((top = heap_top(&lm->ready)) != NULL)
	{
		lm_lock    *lock = LM_CONTAINER(top, lm_lock, ready);
		lm_call    *call = take_call(lm, now, false);
		dynamo_write write;
		shared_part part;
		bool		repeat = false;

		if (call == NULL)
			return;
		heap_set(&lm->ready, top, INT64_MAX);
		call->count = 1;
		call->locks[0] = lock;
		lock->call = call;
		if (lock->state == LOCK_READING)
		{
			/* A look-up may have shown another item since lm_poll() chose this. */
			if (lock->sets_gate && lm_needs_gate(lock))
				describe_gate(lm, now, lock, &write, &part);
			else if (lock->marks && lock->seen)
				lm_describe_mark(lm, now, lock, &write);
			else
				describe_read(lm, lock, !lock->read_consistently, &write);
		}
		else if (lock->explains)
			describe_read(lm, lock, false, &write);
		else
		{
			repeat = lock->repeat;
			prepare_write(lm, now, lock, &write, &part);
			lock->repeat = true;
		}
		send_call(lm, call, write.op, repeat, attempt_timeout(lm, now, lock), &write);
	}
}

/* Sends the steps of bars that are due. */
static void
send_bars(lockmgr *lm, int64_t now)
{
	heap_node  *top;

	while ((top = heap_top(&lm->bars)) != NULL && top->at <= now)
	{
		lm_lease   *bar = LM_CONTAINER(top, lm_lease, next_step);
		lm_call    *call = take_call(lm, now, false);
		dynamo_write write;
		dynamo_shared_write shared;

		if (call == NULL)
			return;
		heap_set(&lm->bars, top, INT64_MAX);
		bar->call = call;
		call->bar = bar;
		call->count = 1;
		lm_describe_bar(lm, now, bar, &write, &shared);
		send_call(lm, call, write.op, bar->attempts > 0, lm->request_timeout_us, &write);
	}
}

/*
 * Sends looks for permits, which are polls while we have some; and deletions of released items.
 * lm_look() has counted them in lock->look_ups.
 */
static void
send_looks(lockmgr *lm, int64_t now)
{
	heap_node  *top;

	while ((top = heap_top(&lm->looks)) != NULL)
	{
		lm_lock    *lock = LM_CONTAINER(top, lm_lock, look);
		lm_call    *call = take_call(lm, now, false);
		dynamo_write write;

		if (call == NULL)
			return;
		heap_set(&lm->looks, top, INT64_MAX);
		call->count = 1;
		call->look_up = true;
		call->locks[0] = lock;
		describe_read(lm, lock, true, &write);
		if (lock->look_deletes_item)
		{
			write.op = DYNAMO_DELETE;
			write.expected = lock->delete_version;
			write.last_token = lock->delete_token;
			lock->look_deletes_item = false;
		}
		else if (lock->first != NULL && lm_mark_is_due(now, lock))
		{
			lock->mark_poll_us = lm->poll_interval_us;
			lm_describe_mark(lm, now, lock, &write);
		}
		send_call(lm, call, write.op, false, lm->request_timeout_us, &write);
	}
}

static void
send_look_ups(lockmgr *lm, int64_t now)
{
	heap_node  *top;

	while ((top = heap_top(&lm->ready_look_ups)) != NULL)
	{
		lm_session *session = LM_CONTAINER(top, lm_session, ready);
		lm_lock    *lock = session->request.lock;
		lm_call    *call = take_call(lm, now, false);
		dynamo_write write;

		if (call == NULL)
			return;
		heap_set(&lm->ready_look_ups, top, INT64_MAX);
		call->count = 1;
		call->look_up = true;
		call->look_up_by = session;
		call->locks[0] = lock;
		lock->look_ups++;
		session->call = call;
		describe_read(lm, lock, false, &write);
		send_call(lm, call, DYNAMO_READ, session->attempts > 0, lm->request_timeout_us, &write);
	}
}

/*
 * The lock whose renewal comes next, if it is due; or, with "sharing", if it may be sent early in
 * another renewal's request.  Else NULL.
 */
static lm_lock *
due_renewal(lockmgr *lm, int64_t now, bool sharing)
{
	heap_node  *top = heap_top(&lm->renewals);
	lm_lock    *lock;
	int64_t		early = 0;

	if (top == NULL)
		return NULL;
	lock = LM_CONTAINER(top, lm_lock, renewal);
	if (sharing && lock->attempts == 0)
		early = lock->lease->l.lease_ms * 1000 / EARLY_PART;
	else if (sharing && lock->postponed)
		early = (lock->lease->l.deadline - now) / POSTPONED_PART;
	else if (sharing)
		early = RETRY_EARLY_US;
	return top->at <= now + early ? lock : NULL;
}

/*
 * Prepares a renewal.  Beside the version and the lease, it writes:
 *
 *	 - the holder, if the item shows an earlier one;
 *	 - data, if a session wants that;
 *	 - a change of the permits of our entry.
 */
static void
start_renewal(lockmgr *lm, int64_t now, lm_lock *lock)
{
	saved_lease *l = &lock->lease->l;
	bool		wanted = lock->wanted_lease_ms != 0;
	const lm_session *session = lm_data_renewer(lock->lease);

	lm_new_write(lm, lock, DYNAMO_RENEW, l->version);
	l->pending.lease_ms = wanted ? lock->wanted_lease_ms : l->lease_ms;
	l->pending.margin_us = wanted ? lock->wanted_margin_us : l->margin_us;
	l->pending.has_holder = l->stale_holder;
	if (session != NULL)
	{
		l->pending.has_data = l->has_data = true;
		l->pending.session = session->id;
		l->pending.seq = session->request.seq;
	}
	if (l->mode != MODE_EXCLUSIVE)
	{
		/*
		 * If a late copy of a refused change may arrive, a plain renewal comes first: the new
		 * version of our entry makes that copy void.
		 */
		int32_t		change = l->refused[0] == '\0' ? lm_wanted_change(lm, now, lock) : 0;

		l->pending.kind = change != 0 ? DYNAMO_SHARED_CHANGE : DYNAMO_SHARED_RENEW;
		l->pending.permits = change;
		if (change > 0)
		{
			l->pending.limit = lock->first->request.ask.limit;
			l->pending.session = lock->first->id;
			l->pending.seq = lock->first->request.seq;
		}
	}
	lm_enter(lm, lock, LOCK_RENEWING, lock->timer.at);
}

/*
 * Is the renewal to go alone, as a last resort, because batches may be the reason why it fails?
 * It is if it has failed until a third of the lease is left.  A renewal that DynamoDB throttles
 * or that does not reach it would fail alone, too.  One renewal in each ALONE_PART of the lease
 * tries this for all: if it fails, batches are not the reason.
 */
static bool
is_last_resort(const lockmgr *lm, int64_t now, const lm_lock *lock)
{
	const saved_lease *l = &lock->lease->l;

	return lm->batches == BATCHES_GOOD && lock->attempts > 0 &&
		l->valid_until - now < l->lease_ms * 1000 / 3 &&
		now >= lm->alone_at + l->lease_ms * 1000 / ALONE_PART &&
		(lock->trouble == DYNAMO_UNKNOWN || !dynamo_is_transient(lock->trouble));
}

/* Must the renewal go alone?  A batch can carry neither a change of permits or data, nor a read. */
static bool
is_alone(const lockmgr *lm, int64_t now, const lm_lock *lock)
{
	const saved_lease *l = &lock->lease->l;

	if (lock->explains || is_last_resort(lm, now, lock))
		return true;
	if (l->mode == MODE_EXCLUSIVE)
		return lock->state == LOCK_RENEWING ? l->pending.has_data :
			lm_data_renewer(lock->lease) != NULL;
	if (lock->state == LOCK_RENEWING)
		return l->pending.kind == DYNAMO_SHARED_CHANGE;
	return l->refused[0] == '\0' && lm_wanted_change(lm, now, lock) != 0;
}

/*
 * The version that the check expects.  Nobody writes it, so no item ever has it, however late the
 * check arrives.
 */
#define NIL_UUID		"00000000-0000-0000-0000-000000000000"

/*
 * The check of batches is due, and so is a renewal.  If another renewal could share a batch with
 * it, sends the check, as a statement about the lock of the first one; that renewal waits for the
 * end of the check.  Returns whether the check was sent.
 */
static bool
send_check(lockmgr *lm, int64_t now, lm_call *call)
{
	lm_lock    *lock = due_renewal(lm, now, false);
	const saved_lease *l = &lock->lease->l;	/* not NULL, because the lock's renewal is due */
	int64_t		at = lock->renewal.at;
	const lm_lock *other;
	dynamo_shared_write shared = {
		.kind = DYNAMO_SHARED_RENEW,.epoch = l->epoch,.me = lm->incarnation
	};
	dynamo_write write = {
		.op = DYNAMO_RENEW,.name = lock->name,.name_len = lock->name_len,
		.owner = lm->owner,.version = l->version,.expected = NIL_UUID,
		.lease_ms = l->lease_ms,.shared = l->mode != MODE_EXCLUSIVE ? &shared : NULL
	};

	if (lock->state != LOCK_HELD || is_alone(lm, now, lock))
		return false;
	heap_set(&lm->renewals, &lock->renewal, INT64_MAX);
	other = due_renewal(lm, now, true);
	if (other == NULL || is_alone(lm, now, other))
	{
		heap_set(&lm->renewals, &lock->renewal, at);
		return false;
	}
	lm->check_at = INT64_MAX;
	start_renewal(lm, now, lock);
	call->count = 1;
	call->locks[0] = lock;
	lock->call = call;
	send_call(lm, call, DYNAMO_RENEW_BATCH, false, attempt_timeout(lm, now, lock), &write);
	return true;
}

/*
 * Adds the lock's renewal to the call, as writes[call->count].  Returns the operation that the call
 * is if it stays the only one.
 */
static dynamo_op
add_renewal(lockmgr *lm, int64_t now, lm_call *call, lm_lock *lock, dynamo_write *writes,
			shared_part *parts, bool *repeat)
{
	dynamo_op	op = lock->explains ? DYNAMO_READ : DYNAMO_RENEW;

	heap_set(&lm->renewals, &lock->renewal, INT64_MAX);
	lock->call = call;
	if (lock->explains)
		describe_read(lm, lock, false, &writes[0]);
	else
	{
		call->last_resort = is_last_resort(lm, now, lock);
		if (call->last_resort)
			lm->alone_at = now;
		if (lock->state == LOCK_HELD)
			start_renewal(lm, now, lock);
		else if (!lock->outcome_unknown)
			lm_new_nonce(lm, lock);
		*repeat |= lock->repeat;
		lock->repeat = true;
		prepare_write(lm, now, lock, &writes[call->count], &parts[call->count]);
	}
	call->locks[call->count++] = lock;
	return op;
}

/* Sends renewals that are due, up to 25 in one request. */
static void
send_renewals(lockmgr *lm, int64_t now)
{
	dynamo_write writes[DYNAMO_BATCH_MAX];
	shared_part parts[DYNAMO_BATCH_MAX];
	int			most = lm->batches == BATCHES_GOOD ? DYNAMO_BATCH_MAX : 1;

	while (due_renewal(lm, now, false) != NULL)
	{
		lm_call    *call = take_call(lm, now, true);
		int64_t		timeout = INT64_MAX;
		bool		repeat = false;
		bool		alone = false;
		dynamo_op	op = DYNAMO_RENEW;
		lm_lock    *lock;

		if (call == NULL)
			return;
		if (lm->batches == BATCHES_IN_DOUBT && now >= lm->check_at && send_check(lm, now, call))
			continue;
		while (call->count < most && !alone &&
			   (lock = due_renewal(lm, now, call->count > 0)) != NULL)
		{
			int64_t		own;

			alone = is_alone(lm, now, lock);
			if (alone && call->count > 0)
				break;
			op = add_renewal(lm, now, call, lock, writes, parts, &repeat);
			own = attempt_timeout(lm, now, lock);
			timeout = own < timeout ? own : timeout;
		}
		send_call(lm, call, call->count > 1 ? DYNAMO_RENEW_BATCH : op, repeat, timeout, writes);
	}
}

/* Sends what is due, within the limits on calls in flight. */
void
lm_pump(lockmgr *lm, int64_t now)
{
	if (lm->adopting)
		return;					/* not all leases are adopted yet */
	send_renewals(lm, now);
	send_ready(lm, now);
	send_bars(lm, now);
	send_looks(lm, now);
	send_look_ups(lm, now);
}

/*-------------------------------------------------------------------------
 * Are batches of renewals to be believed?
 *
 * A batch is PartiQL, which servers other than DynamoDB know badly, if at all.  A server that
 * ignores the condition of a statement, and reports success, would make us believe in a lock
 * that somebody else has got.  So the manager checks the server before it sends batches.  The check
 * is a batch of one statement about a lock that the manager holds.  Its condition is certainly
 * false, and it would change nothing.  Only if the server refuses the statement for its condition
 * does the manager send renewals in batches.
 *
 * If batches fail later although single renewals succeed, the manager checks again.  While
 * batches are in doubt, it renews leases one by one, and repeats the check ever more seldom.
 *-------------------------------------------------------------------------
 */

#define CHECK_AGAIN_US	INT64_C(1000000)
#define DOUBLINGS_MAX	10
#define CHECKS_TOLD		3		/* so many fail before the host is told */

/* Is the call the check?  Batches of renewals have two statements or more. */
bool
lm_is_batch_check(const lm_call *call)
{
	return call->op == DYNAMO_RENEW_BATCH && call->count == 1;
}

static void
end_batches(lockmgr *lm, const dynamo_reply *reply)
{
	lm->batches = BATCHES_REFUSED;
	lm->host.no_batches(lm->host.arg, reply, true);
}

void
lm_batch_checked(lockmgr *lm, int64_t now, const dynamo_reply *reply)
{
	dynamo_status status = reply->count > 0 ? reply->results[0].status : DYNAMO_MALFORMED;

	if (status == DYNAMO_CONDITION_FAILED)
	{
		lm->batches = BATCHES_GOOD;
		lm->checks_failed = 0;
	}
	else if (status == DYNAMO_OK || status == DYNAMO_ACCESS_DENIED ||
			 status == DYNAMO_VALIDATION)
		end_batches(lm, reply);
	else
	{
		lm->check_at = now + (CHECK_AGAIN_US << lm->checks_failed);
		if (lm->checks_failed < DOUBLINGS_MAX && ++lm->checks_failed == CHECKS_TOLD &&
			reply->count > 0)
			lm->host.no_batches(lm->host.arg, reply, false);
	}
}

/*
 * The reply to a batch of renewals, which was sent at the given time.
 *
 *	 - Batches end for good if they are refused.  If permission for PartiQL is missing, DynamoDB
 *	   refuses each statement, or the whole batch.
 *	 - Batches are in doubt if one fails although a last resort had succeeded before it was sent.
 */
void
lm_batch_replied(lockmgr *lm, int64_t now, int64_t sent, const dynamo_reply *reply)
{
	bool		refused = reply->status == DYNAMO_VALIDATION;
	bool		works = false;
	bool		doubtful = false;

	for (int i = 0; i < reply->count; i++)
	{
		dynamo_status status = reply->results[i].status;

		refused |= status == DYNAMO_ACCESS_DENIED;
		works |= !dynamo_is_failure(status);
		doubtful |= status == DYNAMO_UNKNOWN || !dynamo_is_transient(status);
	}
	if (refused && lm->batches != BATCHES_REFUSED)
		end_batches(lm, reply);
	if (works)
		lm->alone_worked = 0;
	else if (doubtful && lm->batches == BATCHES_GOOD && lm->alone_worked != 0 &&
			 sent >= lm->alone_worked)
	{
		lm->batches = BATCHES_IN_DOUBT;
		lm->check_at = now;
		lm->alone_worked = 0;
	}
}
