/*-------------------------------------------------------------------------
 *
 * worker_mailbox.c
 *	  The worker's side of the segment: requests in, answers out, the lease
 *	  directory kept up to date.
 *
 * A session's news are a new generation, a cancellation, leases that it lets
 * go of, and a request.  The request is read first and handled last: whatever
 * the session said before it posted the request is then seen, too, and in the
 * order in which it was said.
 *
 * Nothing here waits for a session: what segment.h says of readers and writers
 * holds for one that stands still as well.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "shared/lock_page.h"
#include "shared/loss.h"
#include "shared/segment.h"
#include "shared/settings.h"
#include "worker/journal.h"
#include "worker/worker_clock.h"
#include "worker/worker_gate.h"
#include "worker/worker_lockmgr.h"
#include "worker/worker_mailbox.h"
#include "worker/worker_place.h"
#include "worker/worker_table_call.h"

#define BELL_BITS 64

#define CHECK_DENIED_HINT \
	"Allow dynamodb:DescribeTable, or set \"ddblock.global_table_region\" to this " \
	"server's Region: then nothing needs to be known of the table."

/* What this worker has already taken note of, by slot. */
typedef struct SlotNotes
{
	uint32		generation;
	uint64		cancelled_seq;
	uint64		taken_seq;
	uint64		parked_seq;		/* left in its slot, to be taken again */
	int64		parked_since;	/* 0: none is */
} SlotNotes;

static SlotNotes *notes;
static bool any_parked = false; /* perhaps */
static MailboxRequest taken;	/* too large for the stack's taste */

static void read_slot(uint32 slot_number, int64 now);
static bool take_request(MailboxSlot *slot, SlotNotes *note);
static void refuse_request(uint32 slot_number);
static void let_go(uint32 slot_number, uint32 generation, int64 now);
static void give_entry(DirectoryEntry *entry, uint64 mark);
static bool needs_fit_table(const MailboxRequest *request);
static void park(SlotNotes *note, uint64 seq, int64 now);
static int64 oldest_parked(void);
static void retry_parked(int64 now);
static void fail_parked(int64 until, gate_verdict verdict, const gate_words *words);
static MailboxAnswer *begin_answer(lockmgr_session session, uint64 seq);
static void finish_answer(lockmgr_session session, uint64 seq);
static void fill_failure(MailboxAnswer *out, dynamo_op op, dynamo_status status,
						 const char *type, const char *message);
static void ask(lockmgr_session session, const MailboxRequest *request,
				int64 now);
static void answer_table(const WorkerCall *call, const dynamo_reply *reply);
static void find_dead(const dynamo_page *page, int64 sent);
static void fill_item(MailboxAnswer *out, const dynamo_item *item);

void
WorkerMailboxInit(void)
{
	notes = MemoryContextAllocZero(TopMemoryContext,
								   segment->max_sessions * sizeof(SlotNotes));
	/* Watch numbers are given anew. */
	for (uint32 i = 0; i < segment->max_sessions; i++)
		pg_atomic_write_u64(&segment_slots[i].waiting_seq, 0);
}

void
WorkerAdopt(int64 now)
{
	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		DirectoryEntry *entry = &segment_leases[i];

		if (entry->lease.state != LEASE_FREE)
			lockmgr_adopt(worker_lockmgr, i, &entry->lease, entry->name,
						  entry->name_len);
	}
	for (uint32 i = 0; i < segment->max_sessions; i++)
		read_slot(i, now);
	lockmgr_adopted(worker_lockmgr, now);
}

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
			read_slot(w * BELL_BITS + pg_rightmost_one_pos64(bits), now);
			bits &= bits - 1;
		}
	}
}

static void
read_slot(uint32 slot_number, int64 now)
{
	MailboxSlot *slot = &segment_slots[slot_number];
	SlotNotes  *note = &notes[slot_number];
	lockmgr_session session = {.slot = slot_number};
	bool		asked = take_request(slot, note);
	uint64		cancelled_seq;

	session.generation = pg_atomic_read_u32(&slot->generation);
	asked = asked && taken.generation == session.generation;
	if (session.generation != note->generation)
	{
		lockmgr_session ended = session;

		/* An odd generation is in use, the even one before it has ended. */
		ended.generation -= session.generation % 2;
		note->generation = session.generation;
		lockmgr_session_end(worker_lockmgr, now, ended);
	}
	if (session.generation % 2 == 0)
	{
		note->parked_since = 0;
		return;
	}

	cancelled_seq = pg_atomic_read_u64(&slot->cancelled_seq);
	if (cancelled_seq > note->cancelled_seq)
	{
		note->cancelled_seq = cancelled_seq;
		lockmgr_cancel(worker_lockmgr, now, session, cancelled_seq);
	}
	let_go(slot_number, session.generation, now);
	if (!asked || taken.seq <= cancelled_seq)
		note->parked_since = 0;
	else if (needs_fit_table(&taken) && !WorkerGatePasses(now))
		park(note, taken.seq, now);
	else
	{
		note->parked_since = 0;
		ask(session, &taken, now);
	}
}

/*
 * Copies a request that is new and not answered.  If it is just being posted,
 * that is none yet; whatever the copy is then, its lengths must not lead astray.
 */
static bool
take_request(MailboxSlot *slot, SlotNotes *note)
{
	const MailboxRequest *request = &slot->request;
	uint32		before = SegmentBeginRead(&slot->changes);

	if (request->seq <= note->taken_seq)
		return false;
	memcpy(&taken, request, offsetof(MailboxRequest, name));
	memcpy(taken.name, request->name, Min(taken.name_len, sizeof(taken.name)));
	if (taken.has_data)
		memcpy(taken.data, request->data, Min(taken.data_len, sizeof(taken.data)));
	if (!SegmentEndRead(&slot->changes, before))
		return false;
	note->taken_seq = taken.seq;
	return pg_atomic_read_u64(&slot->answer_seq) != taken.seq;
}

/*
 * In the wrong Region of a global table a lock may look free, or its item long
 * released, that is held in another.  And each has to do with DynamoDB's clock: a
 * token of our wall clock's could be lower than others' before it.
 */
static bool
needs_fit_table(const MailboxRequest *request)
{
	if (request->kind == MAILBOX_TABLE)
		return request->op == DYNAMO_DELETE || request->op == DYNAMO_FORCE_RELEASE;
	return request->kind == MAILBOX_ACQUIRE || request->kind == MAILBOX_TRY;
}

/* The request stays where it is; WorkerSettleParked() takes it again. */
static void
park(SlotNotes *note, uint64 seq, int64 now)
{
	if (note->parked_since == 0 || note->parked_seq != seq)
		note->parked_since = now;
	note->parked_seq = seq;
	note->taken_seq = seq - 1;
	any_parked = true;
}

int64
WorkerSettleParked(int64 now)
{
	const gate_words *words;
	int64		until;

	while (any_parked)
	{
		int64		oldest = oldest_parked();
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
			retry_parked(now);
		else
			fail_parked(until, verdict, words);
	}
	return PG_INT64_MAX;
}

/* Since when has the one that was parked first been waiting? */
static int64
oldest_parked(void)
{
	int64		oldest = PG_INT64_MAX;

	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		if (notes[i].parked_since != 0)
			oldest = Min(oldest, notes[i].parked_since);
	}
	return oldest;
}

static void
retry_parked(int64 now)
{
	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		if (notes[i].parked_since != 0)
			read_slot(i, now);
	}
}

/* Answers those that were parked at that time or before. */
static void
fail_parked(int64 until, gate_verdict verdict, const gate_words *words)
{
	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		SlotNotes  *note = &notes[i];
		lockmgr_session session = {.slot = i,.generation = note->generation};
		MailboxAnswer *out;

		if (note->parked_since == 0 || note->parked_since > until)
			continue;
		note->parked_since = 0;
		note->taken_seq = note->parked_seq;
		out = begin_answer(session, note->parked_seq);
		if (out == NULL)
			continue;
		out->result = LOCKMGR_FAILED;
		if (verdict == GATE_OTHER_REGION)
			out->refusal = MAILBOX_OTHER_REGION;
		else if (verdict == GATE_GLOBAL_TABLE)
			out->refusal = MAILBOX_GLOBAL_TABLE;
		fill_failure(out, DYNAMO_DESCRIBE_TABLE, words->status, words->type, words->message);
		if (words->status == DYNAMO_ACCESS_DENIED)
			strlcpy(out->hint, CHECK_DENIED_HINT, sizeof(out->hint));
		finish_answer(session, note->parked_seq);
	}
}

/*
 * Without a Region or an endpoint, whatever is asked for has the same answer.
 * Bells are cleared before the slots are read, so no request is overlooked.
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
	MailboxSlot *slot = &segment_slots[slot_number];
	lockmgr_session session = {.slot = slot_number};
	MailboxAnswer *out;
	uint64		seq;
	uint32		before = SegmentBeginRead(&slot->changes);

	seq = slot->request.seq;
	session.generation = slot->request.generation;
	if (!SegmentEndRead(&slot->changes, before) || seq == 0 ||
		seq == pg_atomic_read_u64(&slot->answer_seq) ||
		(out = begin_answer(session, seq)) == NULL)
		return;
	out->result = LOCKMGR_FAILED;
	out->refusal = MAILBOX_NO_PLACE;
	fill_failure(out, DYNAMO_READ, DYNAMO_OK, "", WorkerPlaceProblem());
	finish_answer(session, seq);
}

/* Releases what the session marked, without answering. */
static void
let_go(uint32 slot_number, uint32 generation, int64 now)
{
	lockmgr_session session = {.slot = slot_number,.generation = generation};
	uint32		index;
	uint32		next;

	if (pg_atomic_exchange_u32(&segment_slots[slot_number].let_go, 0) == 0)
		return;
	index = lockmgr_next_lease(worker_lockmgr, slot_number, LOCKMGR_NO_LEASE);
	for (; index != LOCKMGR_NO_LEASE; index = next)
	{
		DirectoryEntry *entry = &segment_leases[index];

		next = lockmgr_next_lease(worker_lockmgr, slot_number, index);
		if (pg_atomic_read_u64(&entry->let_go) == pg_atomic_read_u64(&entry->mark))
			lockmgr_let_go(worker_lockmgr, now, session, index);
	}
}

static void
ask(lockmgr_session session, const MailboxRequest *request, int64 now)
{
	/* A session may widen the server's safety margin, not narrow it. */
	int64		server_margin = (int64) (request->lease_ms * 1000 * ddblock_safety_margin);
	lockmgr_request asked = {
		.session = session,
		.seq = request->seq,
		.name = request->name,
		.name_len = request->name_len,
		.lease_ms = request->lease_ms,
		.margin_us = Max(request->margin_us, server_margin),
		.role = request->role,
		.role_max_leases = request->role_max_leases,
		.superuser = request->superuser,
		.holder = &request->holder,
		.data = request->has_data ? request->data : NULL,
		.data_len = request->data_len,
		.lease_index = request->lease_index,
	};

	switch (request->kind)
	{
		case MAILBOX_ACQUIRE:
			asked.kind = LOCKMGR_ACQUIRE;
			break;
		case MAILBOX_TRY:
			asked.kind = LOCKMGR_TRY;
			break;
		case MAILBOX_RELEASE:
			asked.kind = LOCKMGR_RELEASE;
			break;
		case MAILBOX_RENEW:
			asked.kind = LOCKMGR_RENEW;
			break;
		case MAILBOX_LOOK_UP:
			asked.kind = LOCKMGR_LOOK_UP;
			break;
		case MAILBOX_TABLE:
			WorkerSendTable(session, request, answer_table);
			return;
	}
	lockmgr_ask(worker_lockmgr, now, &asked);
}

/* The segment's copy of a lease, and the journal's of its name. */
void
WorkerSave(void *arg, uint32 index, const lease *lease, const char *name,
		   size_t name_len)
{
	DirectoryEntry *entry = &segment_leases[index];
	bool		sooner = lease->state == LEASE_HELD &&
		lease->valid_until < entry->lease.valid_until;
	uint64		mark = SegmentMark(lease->session, lease->seq);

	SegmentBeginChange(&entry->changes);
	if (lease->state == LEASE_HELD && pg_atomic_read_u64(&entry->mark) != mark)
	{
		give_entry(entry, mark);
		LossExpect(entry, lease->session, lease->seq);
	}
	if (lease->state == LEASE_LOST)
		pg_atomic_write_u64(&entry->lost, mark + lease->loss);
	entry->lease = *lease;
	if (name != NULL)
	{
		entry->name_len = name_len;
		memcpy(entry->name, name, name_len);
	}
	SegmentEndChange(&entry->changes);
	pg_write_barrier();
	pg_atomic_write_u64(&entry->valid_until, lease->valid_until);

	/* A shorter lease is about to be sent: we may be stopped when it ends. */
	if (sooner)
		WorkerInterrupt(lease->session);

	if (lease->state == LEASE_FREE)
		JournalUnlist(index);
	else if (name != NULL)
		JournalList(index, name, name_len);
}

/* To a new holder.  Whoever had it before must not take the new deadline for his. */
static void
give_entry(DirectoryEntry *entry, uint64 mark)
{
	pg_atomic_write_u64(&entry->valid_until, 0);
	pg_write_barrier();
	pg_atomic_write_u64(&entry->mark, mark);
	pg_atomic_write_u32(&entry->session_depth, 0);
	pg_atomic_write_u32(&entry->xact_depth, 0);
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
	SegmentBeginChange(&segment_watches[watch].changes);
	segment_watches[watch].what = *what;
	SegmentEndChange(&segment_watches[watch].changes);
}

/*
 * Starts the answer to a request, or returns NULL if the session has moved on.
 * If it does so only now, nobody reads the answer.
 */
static MailboxAnswer *
begin_answer(lockmgr_session session, uint64 seq)
{
	MailboxSlot *slot = &segment_slots[session.slot];
	MailboxAnswer *answer = &slot->answer;

	if (pg_atomic_read_u64(&slot->cancelled_seq) >= seq ||
		pg_atomic_read_u32(&slot->generation) != session.generation)
		return NULL;
	answer->type[0] = answer->message[0] = answer->hint[0] = '\0';
	answer->refusal = MAILBOX_NOT_REFUSED;
	answer->has_data = false;
	answer->item_data_len = 0;
	return answer;
}

static void
finish_answer(lockmgr_session session, uint64 seq)
{
	MailboxSlot *slot = &segment_slots[session.slot];

	pg_write_barrier();
	pg_atomic_write_u64(&slot->answer_seq, seq);
	pg_memory_barrier();
	SetLatch(&GetPGProcByNumber(session.slot)->procLatch);
}

static void
fill_failure(MailboxAnswer *out, dynamo_op op, dynamo_status status,
			 const char *type, const char *message)
{
	out->op = op;
	out->status = status;
	strlcpy(out->type, type, sizeof(out->type));
	strlcpy(out->message, message, sizeof(out->message));
	if (status == DYNAMO_CREDENTIALS)
		strlcpy(out->hint, WorkerCredentialsHint(), sizeof(out->hint));
}

/*
 * What was granted is not wanted any more.  The mark is seen in the next turn:
 * the lock manager must not be entered now.
 */
static void
take_back(lockmgr_session session, uint32 index)
{
	SegmentLetGo(index, pg_atomic_read_u64(&segment_leases[index].mark));
	pg_atomic_write_u32(&segment_slots[session.slot].let_go, 1);
	SegmentRing(session.slot);
}

void
WorkerAnswer(void *arg, const lockmgr_answer *answer)
{
	MailboxAnswer *out = begin_answer(answer->session, answer->seq);

	if (out == NULL)
	{
		if (answer->result == LOCKMGR_GRANTED)
			take_back(answer->session, answer->lease_index);
		return;
	}
	out->result = answer->result;
	out->lease_index = answer->lease_index;
	out->token = answer->token;
	out->valid_until = answer->valid_until;
	out->loss = answer->loss;
	if (answer->result == LOCKMGR_FAILED || answer->result == LOCKMGR_BAD_ITEM ||
		answer->result == LOCKMGR_DEADLOCK)
		fill_failure(out, answer->op, answer->status, answer->type,
					 answer->message);
	if (answer->item != NULL)
		fill_item(out, answer->item);
	finish_answer(answer->session, answer->seq);

	/* Cancelled meanwhile: the session may not have seen the answer. */
	if (answer->result == LOCKMGR_GRANTED &&
		pg_atomic_read_u64(&segment_slots[answer->session.slot].cancelled_seq) >= answer->seq)
		take_back(answer->session, answer->lease_index);
}

static void
fill_item(MailboxAnswer *out, const dynamo_item *item)
{
	out->item = *item;
	out->item.data = NULL;		/* no pointers in shared memory */
	out->item.wrong = NULL;
	out->has_data = item->data != NULL;
	out->item_data_len = item->data_len;
	if (out->has_data && item->data_len <= sizeof(out->data))
		memcpy(out->data, item->data, item->data_len);
}

/* A page of the table shows the lock manager other clusters' versions. */
static void
find_dead(const dynamo_page *page, int64 sent)
{
	int64		now = SegmentNow();

	for (int i = 0; i < page->count; i++)
	{
		dynamo_row *row = &page->rows[i];

		row->dead = lockmgr_observe(worker_lockmgr, sent, now, row->name,
									strlen(row->name), &row->item);
	}
}

/* The answer to a request that went past the lock manager. */
static void
answer_table(const WorkerCall *call, const dynamo_reply *reply)
{
	MailboxAnswer *out;

	find_dead(&reply->page, call->posted);
	out = begin_answer(call->session, call->id);
	if (out == NULL)
		return;
	out->result = reply->status == DYNAMO_OK ? LOCKMGR_FOUND : LOCKMGR_FAILED;
	out->table = reply->table;
	out->epoch_us = WorkerEpochLow(SegmentNow());
	if (reply->status != DYNAMO_OK)
		fill_failure(out, call->op, reply->status, reply->type, reply->message);
	if (reply->status == DYNAMO_CONDITION_FAILED)
		fill_item(out, &reply->results[0].item);
	if (call->op == DYNAMO_SCAN)
		LockPagePut(out, &reply->page);
	finish_answer(call->session, call->id);
}
