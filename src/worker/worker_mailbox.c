/*-------------------------------------------------------------------------
 *
 * worker_mailbox.c
 *	  Requests of sessions, read from their slots.
 *
 * lock/mailbox.c has the protocol: when a slot is read, and what an answer races with.  This file
 * knows what requests contain, and passes them on.  Nothing here waits for a session, because the
 * session may be stopped.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "worker/worker.h"

static bool any_parked = false; /* a request may be parked: left in its slot for now */

/* A copy of the request that is being handled, with its text and, of a RELEASE, its leases. */
static MailboxRequest taken;
static char taken_text[MAILBOX_REQUEST_TEXT];
static lockmgr_lease taken_leases[MAILBOX_RELEASE_MAX];

/* The bells that the worker has taken from segment_bells in this turn, in the same form. */
static uint64 *heard;

static void ask(void *arg, int64 now, lockmgr_session session, uint64 seq);

static int64
clock_now(void *arg)
{
	return SegmentNow();
}

/* The session may change the request meanwhile, so the lengths in it may be too large. */
static void
copy_request(void *arg, uint32 slot_number)
{
	const MailboxSlot *slot = &segment_slots[slot_number];

	memcpy(&taken, &slot->request, sizeof(taken));
	memcpy(taken_text, slot->text, Min(taken.name_len + taken.data_len, sizeof(taken_text)));
}

/*
 * May the copied request be asked now?  Some operations must wait for the table check, for two
 * reasons:
 *
 *	 - In the wrong Region of a global table, a lock that is held in another Region may look free,
 *	   or its item long released.
 *	 - The operations need DynamoDB's clock: a token from our own wall clock could be lower than
 *	   earlier tokens.
 *
 * A request that may not be asked yet is parked: see WorkerSettleParked().
 */
static bool
may_ask(void *arg, int64 now)
{
	bool		needs_fit_table = taken.kind == MAILBOX_ACQUIRE || taken.kind == MAILBOX_TRY ||
		taken.kind == MAILBOX_ANNOUNCE;

	if (taken.kind == MAILBOX_TABLE)
		needs_fit_table = taken.op == DYNAMO_DELETE || taken.op == DYNAMO_FORCE_RELEASE ||
			taken.op == DYNAMO_IDENTIFY || taken.op == DYNAMO_REPLACE;
	if (taken.kind == MAILBOX_QUEUE)
		needs_fit_table = !dynamo_is_about_table(taken.op);
	if (!needs_fit_table || table_check_passes(&worker_table_check, now))
		return true;
	any_parked = true;
	return false;
}

static mailbox_worker reader = {
	.box = &segment_mailbox,
	.clock = clock_now,
	.copy = copy_request,
	.may_ask = may_ask,
	.ask = ask,
};

void
WorkerMailboxInit(void)
{
	reader.slots = segment->slots;
	reader.notes = MemoryContextAllocZero(TopMemoryContext,
										  reader.slots * sizeof(mailbox_note));
	heard = MemoryContextAllocZero(TopMemoryContext, segment->bell_words * sizeof(uint64));
	/* A new lock manager numbers its watches anew, so the numbers in the slots are void. */
	for (uint32 i = 0; i < segment->slots; i++)
		shared_write(&segment_slots[i].waiting_seq, 0);
}

void
WorkerAdopt(int64 now)
{
	reader.lm = worker_lockmgr;
	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		LeaseEntry *entry = &segment_leases[i];

		lockmgr_adopt(worker_lockmgr, i, &entry->lease, entry->name, strlen(entry->name));
	}
	for (uint32 i = 0; i < segment->max_leases; i++)
		lockmgr_adopt_hold(worker_lockmgr, i, &segment_holds[i].hold);
	for (uint32 i = 0; i < segment->slots; i++)
		mailbox_read(&reader, i, now);
	lockmgr_adopted(worker_lockmgr, now);
}

static uint32
slot_of_bell(uint32 word, uint64 bits)
{
	return word * SEGMENT_BELL_BITS + pg_rightmost_one_pos64(bits);
}

static void
read_let_go(uint32 word, uint64 bits, int64 now)
{
	for (; bits != 0; bits &= bits - 1)
		mailbox_read_let_go(&reader, slot_of_bell(word, bits), now);
}

/*
 * Race with a ring: the worker clears the bit before it reads the slot, so a change that it does
 * not see rings again.
 *
 * Race of two sessions: A lets go of a lock by COMMIT, and rings; then B posts a try for the same
 * lock, and rings.  The try must find the lock free.  So the worker sees that A has let go before
 * it handles B's request, in each of two cases:
 *
 *	 - It took A's bell together with B's.  Before it reads any request, it reads what all sessions
 *	   with such bells have let go of.
 *	 - It looked at A's bell before A rang, and took B's after that.  When ask() has B's request,
 *	   it looks at all bells again.
 */
void
WorkerReadMailbox(int64 now)
{
	uint32		words = segment->bell_words;

	for (uint32 w = 0; w < words; w++)
		heard[w] = pg_atomic_read_u64(&segment_bells[w]) == 0 ? 0 :
			pg_atomic_exchange_u64(&segment_bells[w], 0);
	for (uint32 w = 0; w < words; w++)
		read_let_go(w, heard[w], now);
	for (uint32 w = 0; w < words; w++)
	{
		for (uint64 bits = heard[w]; bits != 0; bits &= bits - 1)
		{
			mailbox_read(&reader, slot_of_bell(w, bits), now);
			WorkerQueueForget(slot_of_bell(w, bits));
		}
	}
}

/* Answers the requests that were parked at the time "until" or before. */
static void
fail_parked(int64 until, table_check_verdict verdict, const table_check_words *words)
{
	MailboxResult result = verdict == TABLE_CHECK_OTHER_REGION ? MAILBOX_OTHER_REGION :
		verdict == TABLE_CHECK_GLOBAL_TABLE ? MAILBOX_GLOBAL_TABLE : MAILBOX_FAILED;
	const char *hint = words->status != DYNAMO_ACCESS_DENIED ? NULL :
		psprintf("%s Or set \"ddblock.global_table_region\" to this server's Region: then "
				 "DescribeTable is not called.",
				 dynamo_error_words(words->status, words->message)->hint);
	lockmgr_session session;
	uint64		seq;

	for (uint32 i = 0; i < segment->slots; i++)
		if (mailbox_unpark(&reader, i, until, &session, &seq))
			WorkerAnswerFailure(session, seq, result, DYNAMO_DESCRIBE_TABLE, words->status,
								words->message, hint);
}

int64
WorkerSettleParked(int64 now)
{
	const table_check_words *words;
	int64		until;

	while (any_parked)
	{
		int64		oldest = mailbox_oldest_parked(&reader);
		table_check_verdict verdict;

		if (oldest == PG_INT64_MAX)
		{
			any_parked = false;
			table_check_idle(&worker_table_check);
			break;
		}
		verdict = table_check_judge(&worker_table_check, oldest, now,
									(int64) ddblock_retry_timeout * 1000, &words, &until);
		if (verdict == TABLE_CHECK_WAIT)
			return until;
		if (verdict == TABLE_CHECK_PASS)
			mailbox_retry_parked(&reader, now);
		else
			fail_parked(until, verdict, words);
	}
	return PG_INT64_MAX;
}

/* Which call does the request begin with? */
static dynamo_op
op_of(const MailboxRequest *request)
{
	/* All other kinds begin with DYNAMO_ACQUIRE, which is 0. */
	static const dynamo_op ops[MAILBOX_QUEUE_MORE + 1] = {
		[MAILBOX_LOOK_UP] = DYNAMO_READ,
		[MAILBOX_RELEASE] = DYNAMO_RELEASE,
		[MAILBOX_END_DETACHED] = DYNAMO_RELEASE,
		[MAILBOX_RESIGN] = DYNAMO_RELEASE,
		[MAILBOX_RENEW] = DYNAMO_RENEW,
	};
	MailboxKind kind = request->kind;

	return kind == MAILBOX_TABLE || kind == MAILBOX_QUEUE || kind == MAILBOX_QUEUE_MORE ?
		request->op : ops[kind];
}

/*
 * Without a place, every request gets the same answer.  It gets the answer at once or, if the
 * problem may pass, when the request has waited for ddblock.retry_timeout.
 *
 * Race with a post: bells are cleared before the slots are read, so a request that is posted later
 * rings again.
 */
void
WorkerRefuseRequests(void)
{
	bool		passes;
	const char *problem = WorkerPlaceProblem(&passes);
	int64		before = SegmentNow() - (passes ? (int64) ddblock_retry_timeout * 1000 : 0);

	for (uint32 w = 0; w < segment->bell_words; w++)
		(void) pg_atomic_exchange_u64(&segment_bells[w], 0);
	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		lockmgr_session session;
		MailboxAnswer *out;
		uint64		seq;
		dynamo_op	op;

		if (!mailbox_peek(&segment_mailbox, i, &session, &seq) ||
			segment_slots[i].request.posted > before ||
			(out = WorkerBeginAnswer(session, seq, LOCKMGR_NO_HOLD)) == NULL)
			continue;
		op = op_of(&segment_slots[i].request);
		shared_add(&segment->ops[op].errors, 1);
		WorkerFillFailure(out, passes ? MAILBOX_FAILED : MAILBOX_NO_PLACE, op,
						  passes ? DYNAMO_UNREACHABLE : DYNAMO_OK, problem);
		mailbox_end_answer(&segment_mailbox, session, seq);
	}
}

/* Passes the announced requests to the lock manager, and answers the announcement. */
static void
announce(int64 now, lockmgr_request *asked, uint64 seq)
{
	const char *at = taken_text + taken.name_len;
	const char *end = at + taken.data_len;
	uint16		len;

	asked->kind = LOCKMGR_TRY;
	asked->data_len = 0;
	for (asked->seq = taken.first_seq; at < end; asked->seq++)
	{
		memcpy(&len, at, sizeof(len));
		asked->name = at + sizeof(len);
		asked->name_len = len;
		at = asked->name + len;
		lockmgr_announce(worker_lockmgr, now, asked);
	}
	WorkerAnswerResult(asked->session, seq, MAILBOX_DONE);
}

static void
ask(void *arg, int64 now, lockmgr_session session, uint64 seq)
{
	lockmgr_request asked = {
		.session = session,
		.seq = seq,
		.kind = (lockmgr_kind) taken.kind,
		.name = taken_text,
		.name_len = taken.name_len,
		.data = taken.has_data ? (uint8 *) taken_text + taken.name_len : NULL,
		.data_len = taken.data_len - taken.attributes_len,
		.attributes_len = taken.attributes_len,
	};

	if (taken.kind == MAILBOX_TABLE)
	{
		WorkerSendTable(session, &taken, taken_text);
		return;
	}
	if (taken.kind == MAILBOX_QUEUE || taken.kind == MAILBOX_QUEUE_MORE)
	{
		WorkerQueueAsk(session, &taken, taken_text);
		return;
	}
	if (taken.kind == MAILBOX_RESIGN)
	{
		bool		led = WorkerLeadershipsResign(now, pnstrdup(taken_text, taken.name_len),
												taken.resign.rest_us, taken.resign.wait_us);

		WorkerAnswerResult(session, seq, led ? MAILBOX_DONE : MAILBOX_NOT_HELD);
		return;
	}
	/* Another session may have let go of the lock since: see WorkerReadMailbox(). */
	for (uint32 w = 0; w < segment->bell_words; w++)
		read_let_go(w, pg_atomic_read_u64(&segment_bells[w]), now);
	if (taken.attributes_len > 0)
		asked.attributes = taken_text + taken.name_len + asked.data_len;
	if (taken.kind == MAILBOX_RELEASE)
	{
		memcpy(taken_leases, taken_text, taken.data_len);
		asked.all = taken_leases;
		asked.all_count = taken.data_len / sizeof(lockmgr_lease);
	}
	asked.ask = taken.ask;
	WorkerCopySystem(asked.ask.holder.system);
	/* A session may widen the server's safety margin, not narrow it. */
	asked.ask.margin_us = Max(asked.ask.margin_us,
							  (int64) (asked.ask.lease_ms * 1000 * ddblock_safety_margin));
	if (taken.kind == MAILBOX_ANNOUNCE)
		announce(now, &asked, seq);
	else
		lockmgr_ask(worker_lockmgr, now, &asked);
}
