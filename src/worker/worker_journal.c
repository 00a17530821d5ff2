/*-------------------------------------------------------------------------
 *
 * worker_journal.c
 *	  Releases the locks that dead incarnations of this cluster held.
 *
 * journal.h explains why a listed incarnation is certainly dead.  Its ownerName
 * is never used again, so the release needs no other condition, and it does no
 * harm to send it twice or late.
 *
 * A lock is struck off its journal when its release is settled, and the journal
 * is removed when all its locks are.  After another crash, or another end of the
 * worker, the next worker goes on with the rest.
 *
 * An acquire that the dead incarnation sent in its last moment may arrive after
 * our release.  So the worker reads a journal a second time after
 * ddblock.request_timeout, unless the first pass released every lock.
 *
 * Sessions are served meanwhile.  They see such a lock as held by another owner
 * until it is released.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "utils/memutils.h"

#include "lock/backoff.h"
#include "shared/segment.h"
#include "shared/settings.h"
#include "worker/journal.h"
#include "worker/worker_call.h"
#include "worker/worker_clock.h"
#include "worker/worker_journal.h"
#include "worker/worker_random.h"
#include "worker/worker_table.h"

/* Releases in flight, if there are connections for them. */
#define FREEING_MAX 8
#define RETRY_MAX_US INT64CONST(5000000)

/* The longest lease is a day: after that, every lock in the journal is free. */
#define FREE_ANYWAY_US LOCKMGR_DEAD_AFTER(INT64CONST(86400000000))

typedef struct Freeing
{
	bool		used;
	bool		sent;			/* and not answered */
	int64		send_at;
	uint32		attempts;
	uint32		number;			/* slot */
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
static bool second_look;
static uint32 freed;
static uint32 refused;			/* in the first pass */
static int64 look_at;			/* not before */
static int64 started;

static void free_more(int64 now);
static void send_release(Freeing *freeing, int64 now);
static void released(const WorkerCall *call, const dynamo_reply *reply);
static void end_look(int64 now);
static void report(void);

void
WorkerJournalInit(int64 now)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	journal_table table;

	WorkerDescribeTable(&table);
	JournalStart(&table);
	/* Only the first worker of a segment logs why it ignores a journal. */
	journal = JournalFindDead(pg_atomic_read_u32(&segment->worker_starts) == 1);
	freeing_count = Max(1, Min(FREEING_MAX, ddblock_max_connections / 4));
	started = now;
	MemoryContextSwitchTo(old);
}

int64
WorkerJournalRun(int64 now)
{
	int64		wake = PG_INT64_MAX;

	if (journal == NULL)
		return wake;
	if (now < look_at)
		return look_at;
	free_more(now);
	for (int i = 0; i < freeing_count; i++)
	{
		Freeing    *freeing = &freeings[i];

		if (!freeing->used || freeing->sent)
			continue;
		if (freeing->send_at <= now)
			send_release(freeing, now);
		else
			wake = Min(wake, freeing->send_at);
	}
	if (in_use > 0)
		return wake;
	end_look(now);
	return now;
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
		freeing->shared = false;
		freeing->number = next_number++;
		freeing->attempts = 0;
		freeing->send_at = now;
		WorkerNewUuid(freeing->version);
		in_use++;
	}
}

static void
send_release(Freeing *freeing, int64 now)
{
	dynamo_shared_write shared = {
		.kind = freeing->kind,
		.me = dynamo_incarnation(journal->owner),
	};
	dynamo_write release = {
		.op = DYNAMO_RELEASE,
		.name = freeing->slot.name,
		.name_len = freeing->slot.name_len,
		.owner = journal->owner,
		.version = freeing->version,
		.any_version = true,
		/* How long the item is kept, the journal does not tell: at most so long. */
		.kept_until_ms = WorkerEpochHigh(now) / 1000 + DYNAMO_KEPT_MAX_MS,
		.now_s = WorkerEpochHigh(now) / USECS_PER_SEC,
		.shared = freeing->shared ? &shared : NULL,
	};

	WorkerCall	call = {
		.op = DYNAMO_RELEASE,
		.body = dynamo_build(WorkerTable(), &release),
		.repeat = freeing->attempts > 0,
		.dated = true,
		.done = released,
		.id = freeing - freeings,
	};

	freeing->sent = true;
	WorkerPost(&call);
}

static void
released(const WorkerCall *call, const dynamo_reply *reply)
{
	static const dynamo_result no_memory = {.status = DYNAMO_MALFORMED};
	const dynamo_result *result = reply->count == 1 ? reply->results : &no_memory;
	Freeing    *freeing = &freeings[call->id];
	int64		now = SegmentNow();
	bool		ours = result->status == DYNAMO_OK;

	freeing->sent = false;
	if (!ours && result->status != DYNAMO_CONDITION_FAILED &&
		now - started <= FREE_ANYWAY_US)
	{
		freeing->send_at = now + backoff_us(++freeing->attempts, RETRY_MAX_US,
											pg_prng_uint64(&pg_global_prng_state));
		return;
	}
	if (result->status == DYNAMO_CONDITION_FAILED && now - started <= FREE_ANYWAY_US &&
		dynamo_find_entry(result->shared, dynamo_incarnation(journal->owner)) != NULL)
	{
		/* Whoever leaves last releases the item.  One of the two forms fits. */
		bool		last = result->shared->count == 1;

		if (freeing->shared && last == (freeing->kind == DYNAMO_SHARED_LAST))
			last = !last;
		freeing->send_at = freeing->shared ?
			now + backoff_us(++freeing->attempts, RETRY_MAX_US,
							 pg_prng_uint64(&pg_global_prng_state)) : now;
		freeing->shared = true;
		freeing->kind = last ? DYNAMO_SHARED_LAST : DYNAMO_SHARED_LEAVE;
		return;
	}
	if (result->status == DYNAMO_CONDITION_FAILED)
		ours = strcmp(result->item.version, freeing->version) == 0;
	freed += ours;
	if (ours || second_look)
		JournalStrike(journal, freeing->number);
	else
		refused++;
	freeing->used = false;
	in_use--;
}

/* The journal was read to its end, and no release is in flight. */
static void
end_look(int64 now)
{
	DeadJournal *next = journal->next;

	next_number = 0;
	if (!second_look && refused > 0)
	{
		second_look = true;
		journal->damaged = 0;
		look_at = started + (int64) ddblock_request_timeout * 1000;
		return;
	}
	report();
	JournalDiscard(journal);
	journal = next;
	second_look = false;
	freed = refused = 0;
}

static void
report(void)
{
	if (freed > 0)
		ereport(LOG,
				(errmsg_plural("freed %u lock that \"%s\" held when it ended",
							   "freed %u locks that \"%s\" held when it ended",
							   freed, freed, journal->owner)));
	if (journal->damaged > 0)
		ereport(LOG,
				(errmsg("journal \"%s\" was damaged", journal->path),
				 errdetail("Locks that could not be read in it will be free one lease later.")));
}
