/*-------------------------------------------------------------------------
 *
 * lockmgr_harness.h
 *	  One lock manager, a virtual clock, and a DynamoDB double between them.
 *
 * Sessions are numbers: slots, in their first generation until end_session().
 * A call's fate is decided when it is sent: the next one queued with next_fate(),
 * else h->fate.  A held call waits for the test to deliver(), apply() or fail()
 * it.  Time passes only in run().
 *
 * The harness asserts what every host relies on: one call in flight per lock,
 * writes saved before they are sent, one answer per request.
 *
 * LOCKMGR_TEST(name) { ... } is a test with a harness h; LOCKMGR_TEST_WITH tells
 * how it is started.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_TEST_LOCKMGR_HARNESS_H
#define DDBLOCK_TEST_LOCKMGR_HARNESS_H

#include "../unit.h"
#include "lock/lockmgr_private.h"
#include "lockmgr_double.h"

#define MS			INT64_C(1000)
#define SECOND		INT64_C(1000000)
#define LEASE_MS	20000
#define LEASE_US	(20 * SECOND)
#define DEAD_US		(LEASE_US / 100 * 102)	/* unchanged for so long: dead */
#define MARGIN_US	(2 * SECOND)
#define LATENCY_US	(4 * MS)
#define RETRY_US	(5 * SECOND)
#define ATTEMPT_US	SECOND
#define LATE_US		(960 * SECOND)	/* after its signature, no copy is accepted: 15 minutes by a fast clock */
#define TOKENS		256			/* reserved at a time, while sessions compete */
#define OUR_OWNER	"us/1"

#define SIZE		64			/* of everything, in most tests */
#define FEW			16			/* where hundreds of managers start */
#define CALLS_EACH	80			/* calls per lease */
#define MAX_LOST	1024

/* What happens to a call. */
typedef enum fate
{
	FATE_OK,
	FATE_LOST_REQUEST,			/* never arrives; the worker times out */
	FATE_LOST_REPLY,			/* is applied; the worker times out */
	FATE_HOLD,					/* the test decides */
	FATE_STATUS					/* plus a dynamo_status: not applied */
} fate;

typedef struct harness_call
{
	lockmgr_call c;
	int64_t		sent;
	double_write *writes;
	dynamo_result *results;
	fate		fate;
	bool		applied;
	int64_t		date_s;			/* when it was */
	bool		answered;
	bool		bars;			/* a step of a bar, beside the lock's own calls */
	unsigned	life;
} harness_call;

typedef struct harness_request
{
	lockmgr_request request;
	char		name[DOUBLE_NAME_SIZE];
	lockmgr_lease all[4];
	bool		owed;			/* an answer */
	bool		answered;
	lockmgr_answer answer;
	char		message[DYNAMO_MESSAGE_SIZE];
	dynamo_item item;
	uint32_t	watch;
} harness_request;

typedef struct harness_lost
{
	uint32_t	lease;
	lease_loss	loss;
	bool		has_by;
	dynamo_item by;
} harness_lost;

typedef struct harness
{
	lockmgr    *lm;
	lockmgr_config config;
	lockmgr_host host;
	int64_t		now;
	int64_t		epoch_offset;	/* of DynamoDB's clock, as the manager is told */
	int64_t		behind;			/* ... which is too little by this */
	int64_t		wall_error;
	int64_t		date_error_s;	/* of each reply's Date */
	bool		dateless;		/* replies have no Date */
	bool		by_clock;		/* the manager may take locks over by DynamoDB's clock */
	int64_t		slack_us;
	uint64_t	random;
	unsigned	life;
	double_table table;

	int			fate;
	int			batch_fate;		/* of batches, unless FATE_OK */
	bool		lax_batches;	/* conditions are ignored in batches */
	int			fates[64];
	int			fate_count;
	harness_call *calls;		/* all since the start */
	int			call_room;
	int			call_count;
	int			first_open;		/* all calls before it are answered */
	int			runs;			/* time has passed so often */

	uint32_t   *generation;		/* of each slot */
	harness_request *asked;	/* each slot's last request */
	uint64_t   *cancelled_seq;
	bool	   *let_go;		 /* holds, while there was no manager */
	lock_ask	ask;			/* of the next requests; at_most_us: of acquires */
	const char *data;
	const char *attributes;

	saved_lease *saved;
	saved_hold *saved_holds;
	char		(*saved_name)[DOUBLE_NAME_SIZE];
	lockmgr_watch *watches;
	unsigned	watch_changes;
	harness_lost lost[MAX_LOST];
	int			lost_count;
	unsigned	no_batches;
	bool		no_batches_for_good;
	int			effects;		/* for the test */
	int			effects_left;	/* the manager dies after so many; -1: never */
} harness;

static inline lockmgr_session
session_of(const harness *h, uint32_t slot)
{
	return (lockmgr_session) {slot, h->generation[slot]};
}

static inline int32_t
pid_of(uint32_t slot)
{
	return 42 + (int32_t) slot;
}

/* ---- effects ---- */

static inline bool
is_dead(harness *h)
{
	if (h->effects_left == 0)
		return true;
	if (h->effects_left > 0)
		h->effects_left--;
	return false;
}

/* The lease with which the write was saved, or NULL. */
static inline const saved_lease *
saved_for(const harness *h, const dynamo_write *write)
{
	for (uint32_t i = 0; i < h->config.max_leases; i++)
	{
		const saved_lease *l = &h->saved[i];

		if (l->state != LEASE_FREE && l->pending.op == write->op &&
			l->pending.first_sent != 0 &&
			strcmp(l->pending.version, write->version) == 0 &&
			strlen(h->saved_name[i]) == write->name_len &&
			memcmp(h->saved_name[i], write->name, write->name_len) == 0)
			return l;
	}
	return NULL;
}

/* Is a write of the lock in flight?  Look-ups and bars may be in flight at the same time. */
static inline bool
in_flight(const harness *h, const char *name, size_t len)
{
	for (int i = h->first_open; i < h->call_count; i++)
	{
		const harness_call *call = &h->calls[i];

		if (call->answered || call->life != h->life || call->c.op == DYNAMO_READ ||
			call->c.op == DYNAMO_DELETE || call->bars)
			continue;
		for (int w = 0; w < call->c.count; w++)
		{
			if (strlen(call->writes[w].name) == len &&
				memcmp(call->writes[w].name, name, len) == 0)
				return true;
		}
	}
	return false;
}

/* Of batches: see lockmgr_send.c. */
static inline bool
is_check(const lockmgr_call *out)
{
	return out->op == DYNAMO_RENEW_BATCH && out->count == 1;
}

static void
harness_send(void *arg, const lockmgr_call *out)
{
	harness    *h = arg;
	harness_call *call = &h->calls[h->call_count];

	if (is_dead(h))
		return;
	assert_true(h->call_count < h->call_room);
	assert_in_range(out->count, 1, DYNAMO_BATCH_MAX);
	assert_true(out->op == DYNAMO_RENEW_BATCH || out->count == 1);
	assert_in_range(out->timeout_us, 1, h->config.request_timeout_us);
	*call = (harness_call) {.c = *out,.sent = h->now,.life = h->life};
	call->writes = calloc((size_t) out->count, sizeof(double_write));
	call->results = calloc((size_t) out->count, sizeof(dynamo_result));
	assert_non_null(call->writes);
	assert_non_null(call->results);
	for (int i = 0; i < out->count; i++)
	{
		const dynamo_write *write = &out->writes[i];

		/* What deletes, or marks, needs no lease, and dies with the manager. */
		if (out->op != DYNAMO_READ && out->op != DYNAMO_DELETE && out->op != DYNAMO_MARK)
		{
			const saved_lease *l = saved_for(h, write);

			/* A gate dies with the manager. */
			assert_true(l != NULL || is_check(out) ||
						(write->shared != NULL && write->shared->kind >= DYNAMO_SHARED_GATE));
			call->bars = l != NULL && l->state == LEASE_BARRING;
			assert_true(call->bars || !in_flight(h, write->name, write->name_len));
			assert_string_equal(write->owner, OUR_OWNER);
		}
		double_copy_write(&call->writes[i], write);
	}
	call->c.writes = NULL;
	call->fate = (fate) (out->op == DYNAMO_RENEW_BATCH && h->batch_fate != FATE_OK ?
						 h->batch_fate : h->fate);
	if (h->fate_count > 0)
	{
		call->fate = (fate) h->fates[0];
		memmove(h->fates, h->fates + 1, (size_t) --h->fate_count * sizeof(int));
	}
	h->call_count++;
}

static void
harness_save(void *arg, uint32_t index, const saved_lease *lease, const char *name,
			 size_t name_len)
{
	harness    *h = arg;

	if (is_dead(h))
		return;
	assert_true(index < h->config.max_leases);
	assert_true(lease->state == LEASE_HELD || lease->valid_until == 0);
	h->saved[index] = *lease;
	if (name != NULL)
	{
		memcpy(h->saved_name[index], name, name_len);
		h->saved_name[index][name_len] = '\0';
	}
}

static void
harness_save_hold(void *arg, uint32_t index, const saved_hold *hold)
{
	harness    *h = arg;

	if (is_dead(h))
		return;
	assert_true(index < h->config.max_leases);
	assert_true(hold->session.generation == 0 ||
				h->saved[hold->lease_index].generation == hold->lease_generation);
	h->saved_holds[index] = *hold;
}

static void
harness_answer(void *arg, const lockmgr_answer *answer)
{
	harness    *h = arg;
	harness_request *asked = &h->asked[answer->session.slot];

	if (is_dead(h))
		return;
	assert_int_equal(answer->session.generation, h->generation[answer->session.slot]);
	assert_int_equal(answer->seq, asked->request.seq);
	assert_int_equal(answer->kind, asked->request.kind);
	assert_true(asked->owed);
	assert_non_null(answer->message);
	if (answer->result == LOCKMGR_FAILED)
		assert_int_not_equal(answer->status, DYNAMO_OK);
	if (answer->result == LOCKMGR_GRANTED)
	{
		const saved_lease *l = &h->saved[answer->grant.lease_index];
		const saved_hold *held = &h->saved_holds[answer->grant.hold_index];

		assert_int_equal(l->state, LEASE_HELD);
		assert_int_equal(l->generation, answer->grant.lease_generation);
		assert_int_equal(l->valid_until, answer->grant.valid_until);
		assert_true(l->next_token == 0 || l->next_token > answer->grant.token);
		assert_int_equal(held->mode, l->mode);
		assert_true(answer->grant.token <= l->last_token);
		assert_int_equal(held->lease_index, answer->grant.lease_index);
		assert_int_equal(held->token, answer->grant.token);
		assert_int_equal(held->seq, answer->seq);
		assert_int_equal(held->session.slot, answer->session.slot);
	}
	asked->owed = false;
	asked->answered = true;
	asked->answer = *answer;
	snprintf(asked->message, sizeof(asked->message), "%s", answer->message);
	if (answer->item != NULL)
		asked->item = *answer->item;
}

static void
harness_waits(void *arg, lockmgr_session session, uint64_t seq, uint32_t watch)
{
	harness    *h = arg;

	if (is_dead(h))
		return;
	assert_int_equal(h->asked[session.slot].request.seq, seq);
	assert_true(watch < h->config.max_sessions);
	h->asked[session.slot].watch = watch;
}

static void
harness_watch(void *arg, uint32_t watch, const lockmgr_watch *what)
{
	harness    *h = arg;

	if (is_dead(h))
		return;
	assert_true(watch < h->config.max_sessions);
	h->watches[watch] = *what;
	h->watch_changes++;
}

static void
harness_lost_lease(void *arg, uint32_t index, const saved_hold *hold, const saved_lease *lease,
				   const dynamo_item *by)
{
	harness    *h = arg;
	harness_lost *lost = &h->lost[h->lost_count];

	if (is_dead(h))
		return;
	h->lost_count++;
	assert_true(h->lost_count <= MAX_LOST);
	assert_int_equal(lease->state, hold->loss == LOSS_AT_MOST ? LEASE_HELD : LEASE_LOST);
	assert_int_equal(h->saved[hold->lease_index].state, lease->state);
	assert_int_equal(h->saved_holds[index].loss, hold->loss);
	*lost = (harness_lost) {
		.lease = hold->lease_index, .loss = hold->loss, .has_by = by != NULL,
	};
	if (by != NULL)
		lost->by = *by;
}

static void
harness_no_batches(void *arg, const dynamo_reply *reply, bool for_good)
{
	harness    *h = arg;

	(void) reply;
	h->no_batches++;
	h->no_batches_for_good = for_good;
}

static void
harness_random(void *arg, void *bytes, size_t len)
{
	harness    *h = arg;
	uint8_t    *to = bytes;

	while (len-- > 0)
	{
		h->random = h->random * UINT64_C(6364136223846793005) +
			UINT64_C(1442695040888963407);
		*to++ = (uint8_t) (h->random >> 56);
	}
}

/* ---- managers come and go ---- */

static inline void *
zeroed(size_t count, size_t size)
{
	void	   *memory = calloc(count, size);

	assert_non_null(memory);
	return memory;
}

/* With room for size leases and as many sessions. */
static inline harness *
harness_new(uint32_t size)
{
	harness    *h = zeroed(1, sizeof(harness));

	h->call_room = (int) size * CALLS_EACH;
	h->calls = zeroed((size_t) h->call_room, sizeof(harness_call));
	h->generation = zeroed(size, sizeof(uint32_t));
	h->asked = zeroed(size, sizeof(harness_request));
	h->cancelled_seq = zeroed(size, sizeof(uint64_t));
	h->let_go = zeroed(size, sizeof(bool));
	h->saved = zeroed(size, sizeof(saved_lease));
	h->saved_holds = zeroed(size, sizeof(saved_hold));
	h->saved_name = zeroed(size, DOUBLE_NAME_SIZE);
	h->watches = zeroed(size, sizeof(lockmgr_watch));
	h->now = 1000 * SECOND;
	h->epoch_offset = INT64_C(1700000000) * SECOND;
	h->slack_us = 5 * SECOND;
	h->random = 1;
	h->ask.lease_ms = LEASE_MS;
	h->ask.margin_us = MARGIN_US;
	h->ask.permits = h->ask.limit = 1;
	h->config = (lockmgr_config) {
		.owner = OUR_OWNER,
		.max_leases = size,
		.max_sessions = size,
		.max_remembered = 16,
		.max_calls = 16,
		.request_timeout_us = ATTEMPT_US,
		.retry_timeout_us = RETRY_US,
		.poll_interval_us = SECOND,
	};
	h->host = (lockmgr_host) {
		.arg = h,
		.send = harness_send,
		.save = harness_save,
		.save_hold = harness_save_hold,
		.answer = harness_answer,
		.waits = harness_waits,
		.watch = harness_watch,
		.lost = harness_lost_lease,
		.no_batches = harness_no_batches,
		.random = harness_random,
	};
	for (uint32_t i = 0; i < size; i++)
		h->generation[i] = 1;
	h->effects_left = -1;
	return h;
}

/* As if the check of batches had been refused. */
static inline void
believe_batches(harness *h)
{
	h->lm->batches = BATCHES_GOOD;
}

/* Until a call succeeds, the manager can pay for all repetitions. */
static inline void
enough_budget(harness *h)
{
	h->lm->budget.spent = -1000000;
}

/* The manager dies; calls in flight may still be applied. */
static inline void
kill_manager(harness *h)
{
	lockmgr_free(h->lm);
	h->lm = NULL;
}

/* A new manager adopts the saved leases and the requests without an answer. */
static inline void
start_manager(harness *h)
{
	h->life++;
	h->lm = lockmgr_new(&h->config, &h->host);
	assert_non_null(h->lm);
	lockmgr_set_clock(h->lm, h->epoch_offset, h->epoch_offset);
	lockmgr_set_takeover(h->lm, h->by_clock, h->slack_us);
	for (uint32_t i = 0; i < h->config.max_leases; i++)
		lockmgr_adopt(h->lm, i, &h->saved[i], h->saved_name[i],
					  strlen(h->saved_name[i]));
	for (uint32_t i = 0; i < h->config.max_leases; i++)
		lockmgr_adopt_hold(h->lm, i, &h->saved_holds[i]);
	for (uint32_t i = 0; i < h->config.max_sessions; i++)
	{
		lockmgr_session_end(h->lm, h->now, (lockmgr_session) {i, h->generation[i] - 1});
		lockmgr_cancel(h->lm, h->now, session_of(h, i), h->cancelled_seq[i]);
		for (uint32_t l = 0; l < h->config.max_leases; l++)
		{
			if (h->let_go[l] && h->saved_holds[l].session.slot == i)
				lockmgr_let_go(h->lm, h->now, session_of(h, i), l);
		}
		if (h->asked[i].owed)
			lockmgr_ask(h->lm, h->now, &h->asked[i].request);
	}
	memset(h->let_go, 0, h->config.max_leases * sizeof(bool));
	lockmgr_adopted(h->lm, h->now);
}

static inline harness *
harness_start_with(uint32_t size)
{
	harness    *h = harness_new(size);

	start_manager(h);
	return h;
}

static inline harness *
harness_start(void)
{
	return harness_start_with(SIZE);
}

/* ---- calls ---- */

static inline void
next_fate(harness *h, int fate)
{
	h->fates[h->fate_count++] = fate;
}

static inline int
fate_of(dynamo_status status)
{
	return FATE_STATUS + (int) status;
}

/* DynamoDB's clock, in seconds. */
static inline int64_t
date_now(const harness *h)
{
	return (h->now + h->epoch_offset + h->behind) / SECOND;
}

/* A copy of the call reaches DynamoDB. */
static inline void
apply(harness *h, harness_call *call)
{
	h->table.ignores = h->lax_batches && call->c.op == DYNAMO_RENEW_BATCH;
	for (int i = 0; i < call->c.count; i++)
	{
		dynamo_result result;

		double_apply(&h->table, &call->writes[i].write, &result);
		if (!call->applied)
			call->results[i] = result;
		else
			free(result.shared);
	}
	call->date_s = date_now(h);
	call->applied = true;
}

static inline void
reply_with(harness *h, harness_call *call, dynamo_status status)
{
	dynamo_reply reply = {
		.status = status,.count = call->c.count,.results = call->results,
		.date_s = h->dateless ? 0 : call->date_s + h->date_error_s,
		.wall_us = h->now + h->epoch_offset + h->behind + h->wall_error,
	};

	call->answered = true;
	if (h->lm != NULL && call->life == h->life)
		lockmgr_reply(h->lm, h->now, call->c.id, &reply);
}

/* The worker gets DynamoDB's reply. */
static inline void
reply(harness *h, harness_call *call)
{
	assert_true(call->applied);
	reply_with(h, call, call->c.count > 1 ? DYNAMO_OK : call->results[0].status);
}

static inline void
deliver(harness *h, harness_call *call)
{
	apply(h, call);
	reply(h, call);
}

/* The call fails with this status. */
static inline void
fail_call(harness *h, harness_call *call, dynamo_status status)
{
	dynamo_result *kept = call->results;
	dynamo_result failures[DYNAMO_BATCH_MAX] = {{.status = status}};

	for (int i = 0; i < call->c.count; i++)
	{
		failures[i].status = status;
		snprintf(failures[i].message, sizeof(failures[i].message), "status %d",
				 (int) status);
	}
	call->results = failures;
	reply_with(h, call, status);
	call->results = kept;
}

static inline harness_call *
last_call(harness *h)
{
	assert_true(h->call_count > 0);
	return &h->calls[h->call_count - 1];
}

static inline int
sent(const harness *h, dynamo_op op)
{
	int			count = 0;

	for (int i = 0; i < h->call_count; i++)
		count += h->calls[i].c.op == op;
	return count;
}

/* ---- time ---- */

/* When the call ends by itself; INT64_MAX: never. */
static inline int64_t
due(const harness_call *call)
{
	if (call->answered || call->fate == FATE_HOLD)
		return INT64_MAX;
	if (call->fate == FATE_LOST_REQUEST || (call->fate == FATE_LOST_REPLY && call->applied))
		return call->sent + call->c.timeout_us;
	if (!call->applied && (call->fate == FATE_OK || call->fate == FATE_LOST_REPLY))
		return call->sent + LATENCY_US / 2;
	return call->sent + LATENCY_US;
}

static inline void
happen(harness *h, harness_call *call)
{
	if (call->fate == FATE_LOST_REQUEST || (call->fate == FATE_LOST_REPLY && call->applied))
		fail_call(h, call, DYNAMO_UNKNOWN);
	else if (call->fate >= FATE_STATUS)
		fail_call(h, call, (dynamo_status) (call->fate - FATE_STATUS));
	else if (!call->applied)
		apply(h, call);
	else
		reply(h, call);
}

/* A test that waits for what does not happen fails, rather than wait for ever. */
#define RUNS_MAX		100000

/* Lets time pass until then, or until nothing is due any more. */
static inline void
run_until(harness *h, int64_t end)
{
	unsigned	still = 0;

	assert_true(h->runs++ < RUNS_MAX);
	for (;;)
	{
		int64_t		next = h->lm != NULL ? lockmgr_next_wake(h->lm) : INT64_MAX;
		harness_call *call = NULL;

		while (h->first_open < h->call_count && h->calls[h->first_open].answered)
			h->first_open++;
		for (int i = h->first_open; i < h->call_count; i++)
		{
			if (due(&h->calls[i]) <= next && due(&h->calls[i]) != INT64_MAX)
			{
				call = &h->calls[i];
				next = due(call);
			}
		}
		if (next > end)
			break;
		still = next <= h->now ? still + 1 : 0;
		assert_true(still < 10000);
		if (next > h->now)
			h->now = next;
		if (call != NULL)
			happen(h, call);
		else
			lockmgr_tick(h->lm, h->now);
	}
	h->now = end;
}

static inline void
run(harness *h, int64_t duration)
{
	run_until(h, h->now + duration);
}

/* Long enough for a few calls. */
static inline void
settle(harness *h)
{
	run(h, 10 * LATENCY_US);
}

/* ---- sessions ---- */

/* The lock's lease in use, or the last one. */
static inline uint32_t
lease_on(const harness *h, const char *name)
{
	uint32_t	found = 0;

	for (uint32_t i = 0; i < h->config.max_leases; i++)
	{
		if (strcmp(h->saved_name[i], name) == 0 &&
			(strcmp(h->saved_name[found], name) != 0 || h->saved[i].state != LEASE_FREE))
			found = i;
	}
	return found;
}

static inline harness_request *
ask(harness *h, uint32_t slot, lockmgr_kind kind, const char *name, uint32_t hold_index)
{
	harness_request *asked = &h->asked[slot];
	uint64_t	seq = asked->request.seq + 1;

	memset(asked, 0, sizeof(*asked));
	snprintf(asked->name, sizeof(asked->name), "%s", name);
	asked->watch = LOCKMGR_NO_WATCH;
	asked->owed = true;
	asked->request = (lockmgr_request) {
		.session = session_of(h, slot),
		.seq = seq,
		.kind = kind,
		.name = asked->name,
		.name_len = strlen(name),
		.ask = h->ask,
		.data = (const uint8_t *) h->data,
		.data_len = h->data != NULL ? strlen(h->data) : 0,
		.attributes = h->attributes,
		.attributes_len = h->attributes != NULL ? strlen(h->attributes) : 0,
	};
	if (kind != LOCKMGR_ACQUIRE && kind != LOCKMGR_TRY)
		asked->request.ask.at_most_us = 0;
	asked->request.ask.holder = (dynamo_holder) {.database = "db",.pid = pid_of(slot)};
	asked->request.ask.hold_index = hold_index;
	asked->request.ask.lease_index = lease_on(h, name);
	asked->request.ask.lease_generation = h->saved[lease_on(h, name)].generation;
	if (h->lm != NULL)
		lockmgr_ask(h->lm, h->now, &asked->request);
	return asked;
}

static inline void
acquire(harness *h, uint32_t slot, const char *name)
{
	ask(h, slot, LOCKMGR_ACQUIRE, name, 0);
}

static inline void
try_acquire(harness *h, uint32_t slot, const char *name)
{
	ask(h, slot, LOCKMGR_TRY, name, 0);
}

static inline void
look_up(harness *h, uint32_t slot, const char *name)
{
	ask(h, slot, LOCKMGR_LOOK_UP, name, 0);
}

/* The name of one of many locks, until the next call. */
static inline const char *
lock_name(uint32_t number)
{
	static char name[16];

	snprintf(name, sizeof(name), "lock%u", number);
	return name;
}

/* The hold that the session has, or has lost, on the lock. */
static inline uint32_t
hold_of(const harness *h, uint32_t slot, const char *name)
{
	for (uint32_t i = 0; i < h->config.max_leases; i++)
	{
		const saved_hold *held = &h->saved_holds[i];

		if (held->session.generation == h->generation[slot] &&
			held->session.slot == slot &&
			strcmp(h->saved_name[held->lease_index], name) == 0)
			return i;
	}
	return LOCKMGR_NO_HOLD;
}

/* Its lease. */
static inline uint32_t
lease_of(const harness *h, uint32_t slot, const char *name)
{
	uint32_t	index = hold_of(h, slot, name);

	return index != LOCKMGR_NO_HOLD ? h->saved_holds[index].lease_index : LOCKMGR_NO_HOLD;
}

static inline const saved_hold *
held_by(const harness *h, uint32_t slot, const char *name)
{
	uint32_t	index = hold_of(h, slot, name);

	assert_int_not_equal(index, LOCKMGR_NO_HOLD);
	return &h->saved_holds[index];
}

static inline const saved_lease *
saved_of(const harness *h, uint32_t slot, const char *name)
{
	uint32_t	index = lease_of(h, slot, name);

	assert_int_not_equal(index, LOCKMGR_NO_HOLD);
	return &h->saved[index];
}

static inline bool
holds(const harness *h, uint32_t slot, const char *name)
{
	uint32_t	index = lease_of(h, slot, name);

	return index != LOCKMGR_NO_HOLD && h->now < h->saved[index].valid_until;
}

static inline void
release(harness *h, uint32_t slot, const char *name)
{
	ask(h, slot, LOCKMGR_RELEASE, name, hold_of(h, slot, name));
}

/* All that the session has, by one request. */
static inline void
release_all(harness *h, uint32_t slot)
{
	harness_request *asked = &h->asked[slot];
	lockmgr_request *request = &asked->request;
	lockmgr    *lm = h->lm;

	h->lm = NULL;
	ask(h, slot, LOCKMGR_RELEASE, "", 0);
	h->lm = lm;
	request->all = asked->all;
	request->ask.valid_until = INT64_MAX;
	for (uint32_t i = 0; i < h->config.max_leases; i++)
	{
		const saved_hold *held = &h->saved_holds[i];

		if (held->session.slot != slot || held->session.generation != h->generation[slot])
			continue;
		asked->all[request->all_count++] =
			(lockmgr_lease) {held->lease_index, held->lease_generation};
		if (h->saved[held->lease_index].valid_until < request->ask.valid_until)
			request->ask.valid_until = h->saved[held->lease_index].valid_until;
	}
	if (lm != NULL)
		lockmgr_ask(lm, h->now, request);
}

static inline void
detach(harness *h, uint32_t slot, const char *name, int64_t at_most_us)
{
	harness_request *asked = &h->asked[slot];
	uint32_t	index = hold_of(h, slot, name);
	lockmgr    *lm = h->lm;

	h->lm = NULL;
	ask(h, slot, LOCKMGR_DETACH, name, index);
	h->lm = lm;
	asked->request.ask.at_most_us = at_most_us;
	if (lm != NULL)
		lockmgr_ask(lm, h->now, &asked->request);
}

static inline void
renew(harness *h, uint32_t slot, const char *name, int64_t lease_ms)
{
	int64_t		lease_before = h->ask.lease_ms;
	int64_t		margin_before = h->ask.margin_us;

	h->ask.lease_ms = lease_ms;
	h->ask.margin_us = lease_ms * 100;
	ask(h, slot, LOCKMGR_RENEW, name, hold_of(h, slot, name));
	h->ask.lease_ms = lease_before;
	h->ask.margin_us = margin_before;
}

static inline void
let_go(harness *h, uint32_t slot, const char *name)
{
	uint32_t	index = hold_of(h, slot, name);

	if (h->lm != NULL)
		lockmgr_let_go(h->lm, h->now, session_of(h, slot), index);
	else
		h->let_go[index] = true;
}

static inline void
cancel(harness *h, uint32_t slot)
{
	h->asked[slot].owed = false;
	h->cancelled_seq[slot] = h->asked[slot].request.seq;
	if (h->lm != NULL)
		lockmgr_cancel(h->lm, h->now, session_of(h, slot), h->cancelled_seq[slot]);
}

static inline void
end_session(harness *h, uint32_t slot)
{
	lockmgr_session ended = session_of(h, slot);

	h->asked[slot].owed = false;
	h->generation[slot] += 2;
	if (h->lm != NULL)
		lockmgr_session_end(h->lm, h->now, ended);
}

/* -1: none yet */
static inline int
result_of(const harness *h, uint32_t slot)
{
	return h->asked[slot].answered ? (int) h->asked[slot].answer.result : -1;
}

static inline void
assert_waits(const harness *h, uint32_t slot)
{
	assert_true(h->asked[slot].owed);
	assert_false(h->asked[slot].answered);
}

static inline void
assert_result(const harness *h, uint32_t slot, lockmgr_result result)
{
	assert_int_equal(result_of(h, slot), result);
}

static inline void
assert_failed(const harness *h, uint32_t slot, dynamo_status status)
{
	assert_result(h, slot, LOCKMGR_FAILED);
	assert_int_equal(h->asked[slot].answer.status, status);
}

/* Acquires a free lock. */
static inline const saved_lease *
get(harness *h, uint32_t slot, const char *name)
{
	acquire(h, slot, name);
	settle(h);
	assert_result(h, slot, LOCKMGR_GRANTED);
	return saved_of(h, slot, name);
}

static inline int64_t
get_token(harness *h, uint32_t slot, const char *name)
{
	get(h, slot, name);
	return held_by(h, slot, name)->token;
}

/* Asks for the hold with this token, on the lease that the lock has now. */
static inline void
ask_named(harness *h, uint32_t slot, lockmgr_kind kind, const char *name, int64_t token)
{
	harness_request *asked = &h->asked[slot];
	lockmgr    *lm = h->lm;

	h->lm = NULL;				/* ask() only fills in the request */
	ask(h, slot, kind, name, 0);
	h->lm = lm;
	asked->request.ask.token = token;
	if (lm != NULL)
		lockmgr_ask(lm, h->now, &asked->request);
}

/* ---- other clients ---- */

static inline dynamo_item *
item_of(harness *h, const char *name)
{
	return &double_item_of(&h->table, name)->item;
}

/* Another client's lease on the lock; token 0: a client without tokens. */
static inline void
foreign_hold(harness *h, const char *name, const char *version, int64_t lease_ms,
			 int64_t token)
{
	dynamo_item *item = item_of(h, name);

	memset(item, 0, sizeof(*item));
	item->exists = true;
	snprintf(item->owner, sizeof(item->owner), "them/1");
	snprintf(item->version, sizeof(item->version), "%s", version);
	item->lease_ms = lease_ms;
	item->token = token;
	item->has_token = token != 0;
}

/* Another cluster's entry in an item that is shared, or is made so. */
static inline dynamo_entry *
foreign_entry(harness *h, const char *name, const char *version, int32_t permits,
			  lock_mode mode)
{
	double_item *found = double_item_of(&h->table, name);
	dynamo_shared *shared = double_shared(found);
	dynamo_entry *entry;

	if (!shared->current)
	{
		foreign_hold(h, name, "opened", LEASE_MS, 5);
		snprintf(found->item.owner, sizeof(found->item.owner), "shared/opened");
		shared->current = true;
		shared->mode = mode;
	}
	entry = &shared->entries[shared->count++];
	*entry = (dynamo_entry) {.lease_ms = LEASE_MS,.token = 5,.permits = permits};
	snprintf(entry->incarnation, sizeof(entry->incarnation), "them%d", shared->count);
	snprintf(entry->version, sizeof(entry->version), "%s", version);
	snprintf(entry->name, sizeof(entry->name), "them");
	shared->total += permits;
	snprintf(found->item.version, sizeof(found->item.version), "by %s", version);
	return entry;
}

static inline void
foreign_release(harness *h, const char *name)
{
	item_of(h, name)->released = true;
	snprintf(item_of(h, name)->version, DYNAMO_VERSION_SIZE, "released");
}

static inline void
delete_item(harness *h, const char *name)
{
	memset(item_of(h, name), 0, sizeof(dynamo_item));
}

static inline bool
is_free(harness *h, const char *name)
{
	return !double_is_held(double_item_of(&h->table, name));
}

static inline bool
is_ours(harness *h, const char *name)
{
	return !is_free(h, name) && strcmp(item_of(h, name)->owner, OUR_OWNER) == 0;
}

/* ---- the end ---- */

/* Without sessions and faults, all locks are free within two leases. */
static inline void
assert_clean(harness *h)
{
	lockmgr_counts counts;

	h->fate = FATE_OK;
	h->fate_count = 0;
	for (uint32_t i = 0; i < h->config.max_sessions; i++)
		end_session(h, i);
	run(h, 2 * LEASE_US);
	lockmgr_count(h->lm, &counts);
	assert_int_equal(counts.leases, 0);
	assert_int_equal(counts.held, 0);
	assert_int_equal(counts.waiters, 0);
	assert_int_equal(counts.calls, 0);
	assert_int_equal(h->lm->lock_count, counts.remembered);
	assert_int_equal(h->lm->free_watch_count, h->config.max_sessions);
	assert_true(h->no_batches == 0 || sent(h, DYNAMO_RENEW_BATCH) > 0);
	for (uint32_t i = 0; i < h->config.max_leases; i++)
	{
		assert_int_equal(h->saved[i].state, LEASE_FREE);
		assert_int_equal(h->saved_holds[i].session.generation, 0);
	}
	for (int i = 0; i < h->table.count; i++)
		assert_false(is_ours(h, h->table.items[i]->name));
}

static inline void
harness_free(harness *h)
{
	lockmgr_free(h->lm);
	for (int i = 0; i < h->call_count; i++)
	{
		for (int w = 0; w < h->calls[i].c.count; w++)
			free(h->calls[i].results[w].shared);
		free(h->calls[i].writes);
		free(h->calls[i].results);
	}
	double_free(&h->table);
	free(h->calls);
	free(h->generation);
	free(h->asked);
	free(h->cancelled_seq);
	free(h->let_go);
	free(h->saved);
	free(h->saved_holds);
	free(h->saved_name);
	free(h->watches);
	free(h);
}

static inline void
finish(harness *h)
{
	assert_clean(h);
	harness_free(h);
}

/* A test whose manager, once started, must be able to end cleanly. */
#define LOCKMGR_TEST_WITH(name, start) \
	static void run_##name(harness *h); \
	TEST(name) \
	{ \
		harness    *h = (start); \
\
		run_##name(h); \
		finish(h); \
	} \
	static void run_##name(harness *h)

#define LOCKMGR_TEST(name) LOCKMGR_TEST_WITH(name, harness_start())

#endif							/* DDBLOCK_TEST_LOCKMGR_HARNESS_H */
