/*-------------------------------------------------------------------------
 *
 * worker_mailbox.c
 *	  The worker's side of the segment: requests in, answers out, the lease
 *	  directory kept up to date.
 *
 * When a slot is read, and what an answer races with, is the protocol's
 * (lock/mailbox.c); here is what requests and answers contain.  Nothing here
 * waits for a session, even for one that is stopped.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "shared/lock_page.h"
#include "shared/loss.h"
#include "shared/segment.h"
#include "shared/settings.h"
#include "shared/utf8.h"
#include "worker/journal.h"
#include "worker/worker_clock.h"
#include "worker/worker_counters.h"
#include "worker/worker_credentials.h"
#include "worker/worker_gate.h"
#include "worker/worker_lockmgr.h"
#include "worker/worker_mailbox.h"
#include "worker/worker_place.h"
#include "worker/worker_table_call.h"

#define BELL_BITS 64

#define CHECK_DENIED_HINT \
	"Allow dynamodb:DescribeTable, or set \"ddblock.global_table_region\" to this " \
	"server's Region: then this check is not needed."

static bool any_parked = false; /* perhaps */

/* The copied request, and its text. */
static MailboxRequest taken;
static char taken_text[MAILBOX_REQUEST_TEXT];

static void copy_request(void *arg, uint32 slot_number);
static bool may_ask(void *arg, int64 now);
static void ask(void *arg, int64 now, lockmgr_session session, uint64 seq);
static void refuse_request(uint32 slot_number);
static dynamo_op op_of(const MailboxRequest *request);
static void fail_parked(int64 until, gate_verdict verdict, const gate_words *words);
static MailboxAnswer *begin_answer(lockmgr_session session, uint64 seq, uint32 granted);
static void fill_failure(MailboxAnswer *out, MailboxResult result, dynamo_op op,
						 dynamo_status status, const char *message);
static void answer_table(const WorkerCall *call, const dynamo_reply *reply);
static void find_dead(const dynamo_page *page, int64 sent);
static void tell_holders(uint32 index, const lease *lease);
static void fill_item(MailboxAnswer *out, MailboxResult result, const dynamo_item *item,
					  const dynamo_shared *shared);

static mailbox_worker reader = {
	.box = &segment_mailbox,
	.copy = copy_request,
	.may_ask = may_ask,
	.ask = ask,
};

void
WorkerMailboxInit(void)
{
	reader.slots = segment->max_sessions;
	reader.notes = MemoryContextAllocZero(TopMemoryContext,
										  reader.slots * sizeof(mailbox_note));
	/* Watch numbers start anew. */
	for (uint32 i = 0; i < segment->max_sessions; i++)
		pg_atomic_write_u64(&segment_slots[i].waiting_seq, 0);
}

void
WorkerAdopt(int64 now)
{
	reader.lm = worker_lockmgr;
	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		LeaseEntry *entry = &segment_leases[i];

		lockmgr_adopt(worker_lockmgr, i, &entry->lease, entry->name, entry->name_len);
	}
	for (uint32 i = 0; i < segment->max_leases; i++)
		lockmgr_adopt_hold(worker_lockmgr, i, &segment_holds[i].hold);
	for (uint32 i = 0; i < segment->max_sessions; i++)
		mailbox_read(&reader, i, now);
	lockmgr_adopted(worker_lockmgr, now);
}

/*
 * Race with a ring: the bit is cleared before the slot is read, so a later change
 * rings again.
 */
void
WorkerReadMailbox(int64 now)
{
	uint32		words = (segment->max_sessions + BELL_BITS - 1) / BELL_BITS;

	for (uint32 w = 0; w < words; w++)
	{
		uint64		bits;

		if (pg_atomic_read_u64(&segment_bells[w]) == 0)
			continue;
		bits = pg_atomic_exchange_u64(&segment_bells[w], 0);
		while (bits != 0)
		{
			mailbox_read(&reader, w * BELL_BITS + pg_rightmost_one_pos64(bits), now);
			bits &= bits - 1;
		}
	}
}

/* The request may change meanwhile: its lengths are not to be trusted yet. */
static void
copy_request(void *arg, uint32 slot_number)
{
	const MailboxSlot *slot = &segment_slots[slot_number];

	memcpy(&taken, &slot->request, sizeof(taken));
	memcpy(taken_text, slot->text, Min(taken.name_len + taken.data_len, sizeof(taken_text)));
}

/*
 * In the wrong Region of a global table, a lock that is held in another Region
 * may look free, or its item long released.  And each of these operations needs
 * DynamoDB's clock: a token from our own wall clock could be lower than earlier
 * tokens.  What may not be asked yet is parked, see WorkerSettleParked().
 */
static bool
may_ask(void *arg, int64 now)
{
	bool		needs_fit_table = taken.kind == MAILBOX_ACQUIRE || taken.kind == MAILBOX_TRY;

	if (taken.kind == MAILBOX_TABLE)
		needs_fit_table = taken.op == DYNAMO_DELETE || taken.op == DYNAMO_FORCE_RELEASE;
	if (!needs_fit_table || WorkerGatePasses(now))
		return true;
	any_parked = true;
	return false;
}

int64
WorkerSettleParked(int64 now)
{
	const gate_words *words;
	int64		until;

	while (any_parked)
	{
		int64		oldest = mailbox_oldest_parked(&reader);
		gate_verdict verdict;

		if (oldest == PG_INT64_MAX)
		{
			any_parked = false;
			WorkerGateIdle();
			break;
		}
		verdict = WorkerGateJudge(oldest, now, &words, &until);
		if (verdict == GATE_WAIT)
			return until;
		if (verdict == GATE_PASS)
			mailbox_retry_parked(&reader, now);
		else
			fail_parked(until, verdict, words);
	}
	return PG_INT64_MAX;
}

/* Answers the requests that were parked at that time or before. */
static void
fail_parked(int64 until, gate_verdict verdict, const gate_words *words)
{
	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		lockmgr_session session;
		uint64		seq;
		MailboxAnswer *out;

		if (!mailbox_unpark(&reader, i, until, &session, &seq))
			continue;
		out = begin_answer(session, seq, LOCKMGR_NO_HOLD);
		if (out == NULL)
			continue;
		fill_failure(out, verdict == GATE_OTHER_REGION ? MAILBOX_OTHER_REGION :
					 verdict == GATE_GLOBAL_TABLE ? MAILBOX_GLOBAL_TABLE : MAILBOX_FAILED,
					 DYNAMO_DESCRIBE_TABLE, words->status, words->message);
		if (words->status == DYNAMO_ACCESS_DENIED)
			strlcpy(out->failure.hint, CHECK_DENIED_HINT, sizeof(out->failure.hint));
		mailbox_end_answer(&segment_mailbox, session, seq);
	}
}

/*
 * Without a Region or an endpoint, every request gets the same answer.  Race with
 * a post: bells are cleared before the slots are read.
 */
void
WorkerRefuseRequests(void)
{
	for (uint32 w = 0; w < (segment->max_sessions + BELL_BITS - 1) / BELL_BITS; w++)
		(void) pg_atomic_exchange_u64(&segment_bells[w], 0);
	for (uint32 i = 0; i < segment->max_sessions; i++)
		refuse_request(i);
}

static void
refuse_request(uint32 slot_number)
{
	lockmgr_session session;
	MailboxAnswer *out;
	uint64		seq;
	dynamo_op	op;

	if (!mailbox_peek(&segment_mailbox, slot_number, &session, &seq) ||
		(out = begin_answer(session, seq, LOCKMGR_NO_HOLD)) == NULL)
		return;
	op = op_of(&segment_slots[slot_number].request);
	WorkerCountFailure(op);
	fill_failure(out, MAILBOX_NO_PLACE, op, DYNAMO_OK, WorkerPlaceProblem());
	mailbox_end_answer(&segment_mailbox, session, seq);
}

/* The call that a request begins with. */
static dynamo_op
op_of(const MailboxRequest *request)
{
	switch (request->kind)
	{
		case MAILBOX_TABLE:
			return request->op;
		case MAILBOX_LOOK_UP:
			return DYNAMO_READ;
		case MAILBOX_RELEASE:
			return DYNAMO_RELEASE;
		case MAILBOX_RENEW:
			return DYNAMO_RENEW;
		case MAILBOX_END_DETACHED:
			return DYNAMO_RELEASE;
		case MAILBOX_ACQUIRE:
		case MAILBOX_TRY:
		case MAILBOX_JOIN:
		case MAILBOX_DETACH:
			break;
	}
	return DYNAMO_ACQUIRE;
}

static void
ask(void *arg, int64 now, lockmgr_session session, uint64 seq)
{
	lockmgr_request asked = {
		.session = session,
		.seq = seq,
		.name = taken_text,
		.name_len = taken.name_len,
	};

	if (taken.kind == MAILBOX_TABLE)
	{
		WorkerSendTable(session, &taken, taken_text, answer_table);
		return;
	}
	asked.kind = (lockmgr_kind) taken.kind;
	if (taken.kind == MAILBOX_ACQUIRE || taken.kind == MAILBOX_TRY)
	{
		asked.lease_ms = taken.acquire.lease_ms;
		asked.margin_us = taken.acquire.margin_us;
		asked.mode = taken.acquire.mode;
		asked.permits = taken.acquire.permits;
		asked.limit = taken.acquire.limit;
		asked.taker = taken.acquire.taker;
		asked.role = taken.acquire.role;
		asked.role_max_leases = taken.acquire.role_max_leases;
		asked.superuser = taken.acquire.superuser;
		asked.prefix_len = taken.acquire.prefix_len;
		asked.holder = &taken.acquire.holder;
		if (taken.acquire.has_data)
			asked.data = (uint8 *) taken_text + taken.name_len;
		asked.data_len = taken.data_len;
	}
	else if (taken.kind == MAILBOX_JOIN || taken.kind == MAILBOX_END_DETACHED)
	{
		asked.lease_index = taken.named.lease_index;
		asked.lease_generation = taken.named.lease_generation;
		asked.token = taken.named.token;
		asked.taker = taken.named.taker;
		asked.role = taken.named.role;
		asked.role_max_leases = taken.named.role_max_leases;
		asked.superuser = taken.named.superuser;
		asked.holder = &taken.named.holder;
	}
	else if (taken.kind != MAILBOX_LOOK_UP)
	{
		asked.at_most_us = taken.kind == MAILBOX_DETACH ? taken.hold.at_most_us : 0;
		asked.hold_index = taken.hold.index;
		asked.lease_index = taken.hold.lease_index;
		asked.lease_generation = taken.hold.lease_generation;
		asked.lease_ms = taken.hold.lease_ms;
		asked.margin_us = taken.hold.margin_us;
	}

	/* A session may widen the server's safety margin, not narrow it. */
	asked.margin_us = Max(asked.margin_us,
						  (int64) (asked.lease_ms * 1000 * ddblock_safety_margin));
	lockmgr_ask(worker_lockmgr, now, &asked);
}

/*
 * Sessions must know a sooner deadline: we may be stopped when it comes.  A session that
 * gets its first hold on the lease now reads the new one.
 */
static void
tell_holders(uint32 index, const lease *lease)
{
	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		const hold *hold = &segment_holds[i].hold;

		if (hold->session.generation != 0 && hold->lease_index == index &&
			hold->lease_generation == lease->generation)
			WorkerInterrupt(hold->session);
	}
}

/* Saves a lease in the segment, and its name in the journal. */
void
WorkerSave(void *arg, uint32 index, const lease *lease, const char *name,
		   size_t name_len)
{
	LeaseEntry *entry = &segment_leases[index];
	bool		sooner = lease->state == LEASE_HELD &&
		lease->valid_until < entry->lease.valid_until;
	bool		was_detached = entry->lease.detached;

	shared_begin_change(&entry->changes);
	mailbox_begin_save(&entry->words, lease);
	entry->lease = *lease;
	if (name != NULL)
	{
		entry->name_len = name_len;
		memcpy(entry->name, name, name_len);
	}
	shared_end_change(&entry->changes);
	mailbox_end_save(&entry->words, lease);

	if (sooner)
		tell_holders(index, lease);

	/* What works under a detached hold may outlive this server's crash. */
	if (lease->state == LEASE_FREE || lease->detached)
		JournalUnlist(index);
	else if (name != NULL || was_detached)
		JournalList(index, entry->name, entry->name_len);
}

void
WorkerSaveHold(void *arg, uint32 index, const hold *hold)
{
	HoldEntry  *entry = &segment_holds[index];

	shared_begin_change(&entry->changes);
	if (mailbox_save_hold(&entry->words, hold))
	{
		pg_atomic_write_u32(&entry->session_depth, 0);
		pg_atomic_write_u32(&entry->xact_depth, 0);
		LossExpect(entry, hold->session, hold->seq);
	}
	entry->hold = *hold;
	shared_end_change(&entry->changes);
}

void
WorkerWaits(void *arg, lockmgr_session session, uint64 seq, uint32 watch)
{
	MailboxSlot *slot = &segment_slots[session.slot];

	pg_atomic_write_u32(&slot->watch, watch);
	pg_write_barrier();
	pg_atomic_write_u64(&slot->waiting_seq, seq);
}

void
WorkerWatch(void *arg, uint32 watch, const lockmgr_watch *what)
{
	shared_begin_change(&segment_watches[watch].changes);
	segment_watches[watch].what = *what;
	shared_end_change(&segment_watches[watch].changes);
}

/* NULL: the session has cancelled or ended, and what was granted goes back. */
static MailboxAnswer *
begin_answer(lockmgr_session session, uint64 seq, uint32 granted)
{
	if (!mailbox_begin_answer(&segment_mailbox, session, seq, granted))
		return NULL;
	return &segment_slots[session.slot].answer;
}

static void
fill_failure(MailboxAnswer *out, MailboxResult result, dynamo_op op,
			 dynamo_status status, const char *message)
{
	MailboxFailure *failure = &out->failure;

	out->result = result;
	failure->op = op;
	failure->status = status;
	strlcpy(failure->message, message, sizeof(failure->message));
	strlcpy(failure->hint, status == DYNAMO_CREDENTIALS ? WorkerCredentialsHint() : "",
			sizeof(failure->hint));
}

void
WorkerAnswer(void *arg, const lockmgr_answer *answer)
{
	MailboxAnswer *out = begin_answer(answer->session, answer->seq,
									  answer->result == LOCKMGR_GRANTED ?
									  answer->hold_index : LOCKMGR_NO_HOLD);

	if (out == NULL)
		return;
	out->result = (MailboxResult) answer->result;
	switch (answer->result)
	{
		case LOCKMGR_GRANTED:
		case LOCKMGR_RENEWED:
			out->grant.hold_index = answer->hold_index;
			out->grant.lease_index = answer->lease_index;
			out->grant.lease_generation = answer->lease_generation;
			out->grant.token = answer->token;
			out->grant.valid_until = answer->valid_until;
			break;
		case LOCKMGR_LOST:
			out->loss = answer->loss;
			break;
		case LOCKMGR_FOUND:
			fill_item(out, MAILBOX_FOUND, answer->item, answer->shared);
			break;
		case LOCKMGR_DEADLOCK:
		case LOCKMGR_BAD_ITEM:
		case LOCKMGR_FAILED:
			fill_failure(out, out->result, answer->op, answer->status, answer->message);
			break;
		case LOCKMGR_BUSY:
		case LOCKMGR_RELEASED:
		case LOCKMGR_NOT_HELD:
		case LOCKMGR_NO_ROOM:
		case LOCKMGR_ROLE_FULL:
		case LOCKMGR_NO_MEMORY:
			break;
	}
	mailbox_end_answer(&segment_mailbox, answer->session, answer->seq);
}

static void
fill_item(MailboxAnswer *out, MailboxResult result, const dynamo_item *item,
		  const dynamo_shared *shared)
{
	MailboxItem *found = &out->found;

	out->result = result;
	found->item = *item;
	found->item.data = NULL;	/* no pointers in shared memory */
	found->item.wrong = NULL;
	found->has_data = item->data != NULL;
	if (found->has_data && item->data_len <= sizeof(found->data))
		memcpy(found->data, item->data, item->data_len);
	found->mode = lockmgr_mode(shared);
	found->clusters = found->mode == MODE_EXCLUSIVE ? 0 : shared->count;
	found->permits = found->mode == MODE_EXCLUSIVE ? 0 : shared->total;
	for (int i = 0; i < found->clusters; i++)
	{
		Utf8Copy(found->cluster[i], sizeof(found->cluster[i]), shared->entries[i].name);
		found->cluster_permits[i] = shared->entries[i].permits;
	}
}

/* The lock manager learns other clusters' versions from a page of the table. */
static void
find_dead(const dynamo_page *page, int64 sent)
{
	int64		now = SegmentNow();

	for (int i = 0; i < page->count; i++)
	{
		dynamo_row *row = &page->rows[i];

		row->dead = lockmgr_observe(worker_lockmgr, sent, now, row->name,
									strlen(row->name), &row->item, row->shared);
	}
}

/* Answers a request that did not go through the lock manager. */
static void
answer_table(const WorkerCall *call, const dynamo_reply *reply)
{
	MailboxAnswer *out;

	find_dead(&reply->page, call->posted);
	out = begin_answer(call->session, call->id, LOCKMGR_NO_HOLD);
	if (out == NULL)
		return;
	if (reply->status == DYNAMO_CONDITION_FAILED)
		fill_item(out, MAILBOX_CHANGED, &reply->results[0].item, reply->results[0].shared);
	else if (reply->status != DYNAMO_OK)
		fill_failure(out, MAILBOX_FAILED, call->op, reply->status, reply->message);
	else if (call->op == DYNAMO_DESCRIBE_TABLE)
	{
		out->result = MAILBOX_DESCRIBED;
		out->table = reply->table;
	}
	else if (call->op == DYNAMO_SCAN)
	{
		out->result = MAILBOX_PAGE;
		out->page.epoch_us = WorkerEpochLow(SegmentNow());
		LockPagePut(&out->page, &reply->page);
	}
	else
		out->result = MAILBOX_DONE;
	mailbox_end_answer(&segment_mailbox, call->session, call->id);
}
