/*-------------------------------------------------------------------------
 *
 * worker_free_dead.c
 *	  Releases the locks that dead incarnations of this cluster held.
 *
 * worker.h explains why a listed incarnation is certainly dead.  Its ownerName
 * is never used again, so the release needs no other condition, and it does no
 * harm to send it twice or late.
 *
 * A lock is struck off its journal when its release is settled, and the journal
 * is removed when all its locks are.  After another crash, or another end of the
 * worker, the next worker goes on with the rest.
 *
 * An acquire that the dead incarnation sent in its last moment may arrive later.  So
 * each lock is barred first: its token is raised above those of the dead, as in
 * lockmgr_bar.c; where there is no item, one is made.  The reply shows what is to be
 * released.
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

/* Releases in flight, if there are connections for them. */
#define FREEING_MAX 8
#define RETRY_MAX_US INT64CONST(5000000)

/*
 * The dead incarnation's tokens were not so far above DynamoDB's time: the bounds of that were a
 * second and a round trip apart, and the drift of an hour without replies (1.8 s).
 */
#define AHEAD_OF_TIME (ddblock_request_timeout * INT64CONST(1000) + INT64CONST(3000000))

/* They were not so far above the token that it had seen in the item, which only rises. */
#define AHEAD_OF_ITEM INT64CONST(2000000)

/* The longest lease is a day: after that, every lock in the journal is free. */
#define FREE_ANYWAY_US LOCKMGR_DEAD_AFTER(INT64CONST(86400000000))

typedef struct Freeing
{
	bool		used;
	bool		sent;			/* and not answered */
	int64		send_at;
	uint32		attempts;
	uint32		number;			/* slot */
	dynamo_op	op;				/* READ, BAR, BAR_NEW, RELEASE */
	int64		token;			/* seen in the item; 0: none */
	bool		shared;			/* the lock is shared: only an entry is removed, */
	dynamo_shared_kind kind;	/* ... in this way */
	char		version[UUID_SIZE];
	journal_slot slot;
} Freeing;

static Freeing freeings[FREEING_MAX];
static int	freeing_count;
static DeadJournal *journal;	/* in work; the others follow by next */
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

/* Reads names from the journal as long as there is room. */
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
		/* The first reply tells DynamoDB's time. */
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

/* Does the item still name the dead incarnation?  Then sets how it is released. */
static bool
holds(Freeing *freeing, const dynamo_result *result)
{
	bool		last;

	if (dynamo_find_entry(result->shared, dynamo_incarnation(journal->owner)) == NULL)
		return result->item.exists && !result->item.released &&
			strcmp(result->item.owner, journal->owner) == 0;

	/* Whoever leaves last releases the item.  One of the two forms fits. */
	last = result->shared->count == 1;
	if (freeing->shared && last == (freeing->kind == DYNAMO_SHARED_LAST))
		last = !last;
	freeing->shared = true;
	freeing->kind = last ? DYNAMO_SHARED_LAST : DYNAMO_SHARED_LEAVE;
	return true;
}

/* Nothing of the dead is in the item, or will be.  Else sets what to do next. */
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
		barred = true;			/* such a token keeps everybody out */
	if (!barred)
	{
		/* If it was refused, the item's token is ahead of the time; so were those of the dead. */
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
		/* A bar that is up is followed at once; all else has failed, or has met another write. */
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
		/* How long the item is kept, the journal does not tell: at most so long. */
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
