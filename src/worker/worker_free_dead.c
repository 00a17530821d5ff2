/*-------------------------------------------------------------------------
 *
 * worker_free_dead.c
 *	  Releases the locks that dead incarnations of this cluster held.
 *
 * worker.h explains why a listed incarnation is certainly dead.  The ownerName of a
 * dead incarnation is never used again.  So the release needs no other condition than this
 * ownerName, and a release that is sent twice or arrives late does no harm.
 *
 * A lock is struck off its journal when its release is settled, and the journal
 * is removed when all its locks are struck off.  After another crash, or another end of the
 * worker, the next worker goes on with the rest.
 *
 * An acquire that the dead incarnation sent in its last moment may arrive later.  So each lock is
 * barred first, as in lockmgr_bar.c: a write raises the item's token above all tokens of the dead
 * incarnation, or makes an item with such a token.  Then DynamoDB refuses the late acquire, which
 * demands a lower token.  The reply to the bar shows whether something is to be released.
 *
 * Sessions are served meanwhile.  They see such a lock as held by another owner
 * until it is released.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "utils/memutils.h"

#include "base/backoff.h"
#include "worker/worker.h"

/* So many locks are freed at a time, if there are connections for that. */
#define FREEING_MAX 8
#define RETRY_MAX_US INT64CONST(5000000)

/*
 * Tokens of the dead incarnation were at most so far above DynamoDB's time, because they came from
 * the upper bound of that time.  The bounds were apart by a second, which is the resolution of a
 * Date, by a round trip, and by the drift of up to an hour without replies (1.8 s).
 */
#define AHEAD_OF_TIME (ddblock_request_timeout * INT64CONST(1000) + INT64CONST(3000000))

/*
 * Or the dead incarnation took a token above the one that it had seen in the item, but by less
 * than this.  An item's token only rises.
 */
#define AHEAD_OF_ITEM INT64CONST(2000000)

/* The longest lease is a day: so long after the start, every lock in the journal is free. */
#define FREE_ANYWAY_US LOCKMGR_DEAD_AFTER(INT64CONST(86400000000))

typedef struct Freeing
{
	bool		used;
	bool		sent;			/* the call is in flight */
	int64		send_at;
	uint32		attempts;
	uint32		number;			/* of the journal's slot */
	dynamo_op	op;				/* READ, BAR, BAR_NEW, RELEASE */
	int64		token;			/* seen in the item; 0: none */
	bool		shared;			/* the lock is shared: the release removes the dead's entry, */
	dynamo_shared_kind kind;	/* ... and is of this kind: LEAVE or LAST */
	char		version[UUID_SIZE];
	journal_slot slot;
} Freeing;

static Freeing freeings[FREEING_MAX];
static int	freeing_count;
static DeadJournal *journal;	/* its locks are being freed; the other journals follow by next */
static uint32 next_number;
static int	in_use;
static uint32 freed;
static int64 started;

void
WorkerJournalInit(int64 now)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	JournalStart();
	/* Only the first worker of a segment logs why it ignores a journal. */
	journal = JournalFindDead(shared_read(&segment->worker_starts) == 1);
	freeing_count = Max(1, Min(FREEING_MAX, ddblock_max_connections / 4));
	started = now;
	MemoryContextSwitchTo(old);
}

/* Reads names from the journal into unused entries of freeings. */
static void
free_more(int64 now)
{
	if (now - started > FREE_ANYWAY_US)
		next_number = journal->slot_count;
	for (int i = 0; i < freeing_count; i++)
	{
		Freeing    *freeing = &freeings[i];

		if (freeing->used)
			continue;
		if (!JournalNextName(journal, &next_number, &freeing->slot))
		{
			next_number = journal->slot_count;
			return;
		}
		freeing->used = true;
		/* A bar needs DynamoDB's time.  If that is not known, the reply to a read tells it. */
		freeing->op = segment->clock.known ? DYNAMO_BAR : DYNAMO_READ;
		freeing->token = 0;
		freeing->shared = false;
		freeing->number = next_number++;
		freeing->attempts = 0;
		freeing->send_at = now;
		WorkerNewUuid(freeing->version);
		in_use++;
	}
}

/* Does the item still name the dead incarnation?  If so, sets how to release the lock. */
static bool
holds(Freeing *freeing, const dynamo_result *result)
{
	bool		last;

	if (dynamo_find_entry(result->shared, dynamo_incarnation(journal->owner)) == NULL)
		return result->item.exists && !result->item.released &&
			strcmp(result->item.owner, journal->owner) == 0;

	/*
	 * The last entry releases the item (LAST), any other one only goes (LEAVE).  If DynamoDB has
	 * refused the form that fits the number of entries, the other form is tried.
	 */
	last = result->shared->count == 1;
	if (freeing->shared && last == (freeing->kind == DYNAMO_SHARED_LAST))
		last = !last;
	freeing->shared = true;
	freeing->kind = last ? DYNAMO_SHARED_LAST : DYNAMO_SHARED_LEAVE;
	return true;
}

/*
 * Is it certain that nothing of the dead incarnation is in the item, or will be?  If not, sets what
 * to do next.
 */
static bool
is_settled(Freeing *freeing, const dynamo_result *result)
{
	const dynamo_item *item = &result->item;
	bool		done = result->status == DYNAMO_OK;
	bool		barred = done && freeing->op == DYNAMO_BAR;

	switch (freeing->op)
	{
		case DYNAMO_BAR_NEW:
			freeing->op = item->exists ? DYNAMO_BAR : DYNAMO_READ;
			return done;
		case DYNAMO_RELEASE:
			if (!done && holds(freeing, result))
				return false;
			freed += done || strcmp(item->version, freeing->version) == 0;
			return true;
		default:
			break;
	}
	if (!barred && !item->exists)
	{
		freeing->op = DYNAMO_BAR_NEW;
		return false;
	}
	if (item->has_token && !item->bad_token && item->token < PG_INT64_MAX - AHEAD_OF_ITEM)
		freeing->token = item->token;
	else if (freeing->op != DYNAMO_READ)
		barred = true;			/* the item's token is unusable, or so high that it keeps all
								 * acquires out */
	if (!barred)
	{
		/*
		 * A bar is refused if the item's token is at least as high.  Then the tokens of the dead
		 * incarnation may be higher still, so the next bar goes above the item's.
		 */
		freeing->op = DYNAMO_BAR;
		return false;
	}
	freeing->op = DYNAMO_RELEASE;
	return !holds(freeing, result);
}

static void
written(const WorkerCall *call, const dynamo_reply *reply)
{
	static const dynamo_result no_memory = {.status = DYNAMO_MALFORMED};
	const dynamo_result *result = reply->count == 1 ? reply->results : &no_memory;
	Freeing    *freeing = &freeings[call->id];
	int64		now = SegmentNow();
	dynamo_op	before = freeing->op;

	freeing->sent = false;
	if (now - started <= FREE_ANYWAY_US &&
		(dynamo_is_failure(result->status) || !is_settled(freeing, result)))
	{
		/*
		 * The release follows an applied bar at once.  All other calls wait: those that repeat one
		 * that has failed or has met another write, and the bar after a read.
		 */
		freeing->send_at = now;
		if (result->status != DYNAMO_OK || before != DYNAMO_BAR)
			freeing->send_at += backoff_us(++freeing->attempts, RETRY_MAX_US,
										   pg_prng_uint64(&pg_global_prng_state));
		return;
	}
	JournalStrike(journal, freeing->number);
	freeing->used = false;
	in_use--;
}

static void
send_write(Freeing *freeing, int64 now)
{
	dynamo_shared_write shared = {
		.kind = freeing->kind,
		.me = dynamo_incarnation(journal->owner),
	};
	int64		token = Max(WorkerEpochHigh(now) + AHEAD_OF_TIME, freeing->token + AHEAD_OF_ITEM);
	dynamo_write write = {
		.op = freeing->op,
		.name = freeing->slot.name,
		.name_len = freeing->slot.name_len,
		.owner = journal->owner,
		.version = freeing->version,
		.first_token = token,
		.last_token = token,
		.lease_ms = ddblock_lease_duration,
		.any_version = true,
		/*
		 * The journal does not tell until when the item is kept, so the release assumes the latest
		 * time, and leaves keptUntil in the item.
		 */
		.kept_until_ms = WorkerEpochHigh(now) / 1000 + DYNAMO_KEPT_MAX_MS,
		.now_s = WorkerEpochHigh(now) / USECS_PER_SEC,
		.shared = freeing->op == DYNAMO_RELEASE && freeing->shared ? &shared : NULL,
	};

	WorkerCall	call = {
		.op = freeing->op,
		.body = dynamo_build(WorkerTable(), &write),
		.repeat = freeing->attempts > 0,
		.dated = true,
		.done = written,
		.id = freeing - freeings,
	};

	freeing->sent = true;
	WorkerPost(&call);
}

int64
WorkerJournalRun(int64 now)
{
	int64		wake = PG_INT64_MAX;
	DeadJournal *next;

	if (journal == NULL)
		return wake;
	free_more(now);
	for (int i = 0; i < freeing_count; i++)
	{
		Freeing    *freeing = &freeings[i];

		if (!freeing->used || freeing->sent)
			continue;
		if (freeing->send_at <= now)
			send_write(freeing, now);
		else
			wake = Min(wake, freeing->send_at);
	}
	if (in_use > 0)
		return wake;

	/* The journal was read to its end, and no write is in flight. */
	if (freed > 0)
		ereport(LOG,
				(errmsg_plural("freed %u lock that \"%s\" held when it ended",
							   "freed %u locks that \"%s\" held when it ended",
							   freed, freed, journal->owner)));
	if (journal->damaged > 0)
		ereport(LOG,
				(errmsg("journal \"%s\" was damaged", journal->path),
				 errdetail("Locks that could not be read in it will be free one lease later.")));
	next = journal->next;
	JournalDiscard(journal);
	journal = next;
	next_number = 0;
	freed = 0;
	return now;
}
