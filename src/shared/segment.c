/*-------------------------------------------------------------------------
 *
 * segment.c
 *	  Sets up the shared memory, and rings the worker's bell.
 *
 * After a crash restart the segment is new and empty: every session that held
 * something has ended.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "base/backoff.h"
#include "shared/segment.h"
#include "shared/settings.h"

/* So often a reader tries to read a request that is being posted. */
#define READS_MAX 100

Segment    *segment = NULL;
MailboxSlot *segment_slots = NULL;
LeaseEntry *segment_leases = NULL;
HoldEntry  *segment_holds = NULL;
Watch	   *segment_watches = NULL;
pg_atomic_uint64 *segment_bells = NULL;
FinishEntry *segment_finishes = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/* A piece of the shared memory. */
typedef struct Piece
{
	const char *name;
	void	   *place;			/* address of the global pointer to the piece */
	uint32		count;
	Size		each;
} Piece;

#define PIECES 7

static uint32
slot_count(void)
{
	return (uint32) MaxBackends + LEADERSHIPS_MAX;
}

static uint32
bell_words(void)
{
	return (slot_count() + SEGMENT_BELL_BITS - 1) / SEGMENT_BELL_BITS;
}

static void
list_pieces(Piece pieces[PIECES])
{
	const Piece list[PIECES] = {
		{"ddblock", &segment, 1, sizeof(Segment)},
		{"ddblock mailbox", &segment_slots, slot_count(), sizeof(MailboxSlot)},
		{"ddblock leases", &segment_leases, ddblock_max_leases, sizeof(LeaseEntry)},
		{"ddblock holds", &segment_holds, ddblock_max_leases, sizeof(HoldEntry)},
		{"ddblock watches", &segment_watches, slot_count(), sizeof(Watch)},
		{"ddblock bells", &segment_bells, bell_words(), sizeof(pg_atomic_uint64)},
		{"ddblock finished jobs", &segment_finishes, MaxBackends, sizeof(FinishEntry)},
	};

	memcpy(pieces, list, sizeof(list));
}

static void
request_memory(void)
{
	Piece		pieces[PIECES];
	Size		size = 0;

	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	/* Each piece is aligned by the allocator, hence CACHELINEALIGN. */
	list_pieces(pieces);
	for (int i = 0; i < PIECES; i++)
		size = add_size(size, CACHELINEALIGN(mul_size(pieces[i].count, pieces[i].each)));
	RequestAddinShmemSpace(size);
}

static void
attach_memory(void)
{
	Piece		pieces[PIECES];
	bool		found = true;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);

	list_pieces(pieces);
	for (int i = 0; i < PIECES; i++)
	{
		Size		size = mul_size(pieces[i].count, pieces[i].each);
		void	   *piece = ShmemInitStruct(pieces[i].name, size, &found);

		if (!found)
			memset(piece, 0, size);
		memcpy(pieces[i].place, &piece, sizeof(piece));
	}
	/* New memory is all 0.  What begins with another value is set here. */
	if (!found)
	{
		segment->max_leases = ddblock_max_leases;
		segment->max_sessions = MaxBackends;
		segment->slots = slot_count();
		segment->bell_words = bell_words();
		shared_write(&segment->worker_procno, PG_UINT32_MAX);
		segment->stats_since = GetCurrentTimestamp();
		for (uint32 i = 0; i < segment->bell_words; i++)
			pg_atomic_init_u64(&segment_bells[i], 0);
	}

	LWLockRelease(AddinShmemInitLock);
}

void
SegmentInstallHooks(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = attach_memory;
}

static void
wake_worker(void)
{
	uint32		procno = shared_read(&segment->worker_procno);

	if (procno != PG_UINT32_MAX)
		SetLatch(&GetPGProcByNumber(procno)->procLatch);
}

/* Nothing is lost if the worker ends meanwhile: the next one looks at all entries at its start. */
void
SegmentRingFinish(void)
{
	pg_write_barrier();			/* the entry must be seen before the news */
	shared_write(&segment->finish_news, 1);
	pg_memory_barrier();
	wake_worker();
}

queue_place *
SegmentFinishPlace(void *arg, uint32 index)
{
	return &segment_finishes[index].place;
}

/*
 * Reads the entries themselves, not the worker's notes of them: a session that has completed a job
 * may wait for its next lock before the worker has seen the news.
 */
bool
SegmentEndsHold(void *arg, uint32 hold_index, const saved_hold *hold)
{
	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		FinishEntry *entry = &segment_finishes[i];

		if (queue_place_is_ready(&entry->place) &&
			entry->hold_index == hold_index && entry->hold_seq == hold->seq &&
			entry->session.slot == hold->session.slot &&
			entry->session.generation == hold->session.generation)
			return true;
	}
	return false;
}

/*
 * Wakes the session that uses the slot.  Race with the session's end: another process may wake up
 * for nothing.
 *
 * A leadership has no process: the worker takes its answer, in this turn or the next one.
 */
static void
wake(void *arg, uint32 slot)
{
	if (slot < segment->max_sessions)
		SetLatch(&GetPGProcByNumber(slot)->procLatch);
	else
		SetLatch(MyLatch);
}

/* Race with the session's end: as in wake(). */
void
SegmentTellJobs(void)
{
	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		if (shared_exchange(&segment_slots[i].wants_jobs, 0) != 0)
			wake(NULL, i);
	}
}

/*
 * Copies a lease.  Of an unused entry, copies only the state.  False: the worker is writing the
 * entry.
 */
static bool
copy_lease(LeaseEntry *entry, LeaseCopy *copy)
{
	uint32		before = shared_begin_read(&entry->changes);

	copy->lease.state = entry->lease.state;
	if (copy->lease.state != LEASE_FREE)
	{
		copy->lease = entry->lease;
		strlcpy(copy->name, entry->name, sizeof(copy->name));
	}
	return shared_end_read(&entry->changes, before);
}

/* For readers whose copy is not whole: the worker is writing, or was stopped while it wrote. */
static void
wait_for_writer(void)
{
	CHECK_FOR_INTERRUPTS();
	pg_usleep(100);
}

bool
SegmentReadLease(uint32 lease_index, LeaseCopy *copy)
{
	while (!copy_lease(&segment_leases[lease_index], copy))
		wait_for_writer();
	return copy->lease.state != LEASE_FREE;
}

bool
SegmentPeekLease(uint32 lease_index, LeaseCopy *copy)
{
	return copy_lease(&segment_leases[lease_index], copy) && copy->lease.state != LEASE_FREE;
}

/* Copies a hold.  Of an unused entry, copies only the session.  False: as in copy_lease(). */
static bool
copy_hold(HoldEntry *entry, HoldCopy *copy)
{
	uint32		before = shared_begin_read(&entry->changes);

	copy->hold.session = entry->hold.session;
	if (copy->hold.session.generation != 0)
	{
		copy->hold = entry->hold;
		copy->database = entry->database;
		copy->let_go = mailbox_is_let_go(&entry->words);
		copy->session_depth = shared_read(&entry->session_depth);
		copy->xact_depth = shared_read(&entry->xact_depth);
	}
	return shared_end_read(&entry->changes, before);
}

bool
SegmentReadHold(uint32 hold_index, HoldCopy *copy)
{
	while (!copy_hold(&segment_holds[hold_index], copy))
		wait_for_writer();
	return copy->hold.session.generation != 0;
}

bool
SegmentPeekHold(uint32 hold_index, HoldCopy *copy)
{
	return copy_hold(&segment_holds[hold_index], copy) && copy->hold.session.generation != 0;
}

bool
SegmentReadWaiter(uint32 number, WaiterCopy *copy)
{
	MailboxSlot *slot = &segment_slots[number];

	for (int i = 0; i < READS_MAX; i++)
	{
		uint32		before = shared_begin_read(&slot->words.changes);
		size_t		name_len = Min(slot->request.name_len, DYNAMO_NAME_MAX);

		if (slot->request.kind != MAILBOX_ACQUIRE && slot->request.kind != MAILBOX_TRY)
			return false;
		copy->session.slot = number;
		copy->session.generation = slot->words.request_generation;
		copy->pid = slot->pid;
		memcpy(copy->database, slot->database, NAMEDATALEN);
		memcpy(copy->user, slot->user, NAMEDATALEN);
		copy->request = slot->request;
		copy->place = shared_read(&slot->waiting_place);
		memcpy(copy->name, slot->text, name_len);
		copy->name[name_len] = '\0';
		/*
		 * The request waits if the worker has put it into the lock's queue (waiting_seq) and has
		 * not answered it, and if its session has neither cancelled it nor ended.
		 */
		if (shared_end_read(&slot->words.changes, before))
			return shared_read(&slot->words.generation) == copy->session.generation &&
				shared_read(&slot->waiting_seq) == copy->request.seq &&
				shared_read(&slot->words.answer_seq) != copy->request.seq &&
				shared_read(&slot->words.cancelled_seq) < copy->request.seq;
	}
	return false;
}

bool
SegmentFindHold(const char *name, int64 token, bool detached, HoldCopy *found)
{
	LeaseCopy	under;

	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		if (SegmentReadHold(i, found) && (token == 0 || found->hold.token == token) &&
			(found->hold.ends_at != 0 || !detached) &&
			SegmentReadLease(found->hold.lease_index, &under) &&
			under.lease.generation == found->hold.lease_generation &&
			strcmp(under.name, name) == 0)
			return true;
	}
	return false;
}

int64
SegmentHoldsEnd(uint32 lease_index, uint32 lease_generation)
{
	HoldCopy	copy;
	int64		end = 0;

	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		if (!SegmentReadHold(i, &copy) || copy.hold.lease_index != lease_index ||
			copy.hold.lease_generation != lease_generation)
			continue;
		if (copy.hold.must_end == 0)
			return PG_INT64_MAX;
		end = Max(end, copy.hold.must_end);
	}
	return end != 0 ? end : PG_INT64_MAX;
}

void
SegmentReadLeadership(uint32 number, leadership *copy)
{
	while (!leadership_read(&segment->leaderships[number], copy))
		wait_for_writer();
}

void
SegmentTell(SegmentTrouble *trouble, dynamo_status status, const char *message)
{
	shared_begin_change(&trouble->changes);
	trouble->at = SegmentNow();
	trouble->status = status;
	strlcpy(trouble->message, message, sizeof(trouble->message));
	shared_end_change(&trouble->changes);
}

/* Race with the next failed renewal: NULL. */
const char *
SegmentRenewalFailure(int64 since)
{
	static char words[DYNAMO_MESSAGE_SIZE + 32];
	SegmentTrouble *failure = &segment->renewal_failure;
	uint32		before = shared_begin_read(&failure->changes);
	int64		at = failure->at;

	snprintf(words, sizeof(words), "%.1f s ago: %s", (SegmentNow() - at) / 1e6, failure->message);
	return shared_end_read(&failure->changes, before) && at != 0 && at >= since ? words : NULL;
}

bool
SegmentPay(dynamo_status status)
{
	bool		pays = dynamo_is_transient(status) && status != DYNAMO_CONFLICT;
	int			price = pays ? backoff_price(status) : 0;

	if (shared_add(&segment->spent, price) <= BACKOFF_BUDGET)
		return true;
	(void) shared_add(&segment->spent, -price);
	return false;
}

void
SegmentEarn(bool repeated)
{
	uint32		spent = shared_read(&segment->spent);

	while (spent > 0 &&
		   !shared_compare_exchange(&segment->spent, &spent,
									spent - Min(spent, (uint32) backoff_earned(repeated))))
		;
}

/* Race with a change: DYNAMO_OK.  A reader that waits reads again a moment later. */
dynamo_status
SegmentReadTrouble(char message[DYNAMO_MESSAGE_SIZE])
{
	SegmentTrouble *trouble = &segment->trouble;
	uint32		before = shared_begin_read(&trouble->changes);

	dynamo_status status = trouble->status;

	memcpy(message, trouble->message, DYNAMO_MESSAGE_SIZE);
	return shared_end_read(&trouble->changes, before) ? status : DYNAMO_OK;
}

void
SegmentPublishStatus(const WorkerStatus *status)
{
	shared_begin_change(&segment->status_changes);
	segment->status = *status;
	shared_end_change(&segment->status_changes);
}

void
SegmentReadStatus(WorkerStatus *copy)
{
	for (;;)
	{
		uint32		before = shared_begin_read(&segment->status_changes);

		*copy = segment->status;
		if (shared_end_read(&segment->status_changes, before))
			return;
		wait_for_writer();
	}
}

void
SegmentCount(SegmentEvent event)
{
	if (segment != NULL)
		(void) shared_add(&segment->events[event], 1);
}

int64
SegmentNow(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64) now.tv_sec * USECS_PER_SEC + now.tv_nsec / 1000;
}

void
SegmentCountWait(int64 began)
{
	int64		waited_us = SegmentNow() - began;
	int			bucket = 0;

	while (bucket < SEGMENT_WAIT_BUCKETS - 1 && waited_us >= (INT64CONST(1000) << 2 * bucket))
		bucket++;
	(void) shared_add(&segment->wait_us, waited_us);
	(void) shared_add(&segment->wait_histogram[bucket], 1);
}

void
QueueHintTell(const char *queue, const char *resource, int64 attempts)
{
	queue_hint_add(segment->hints, SegmentNow(), queue, resource, attempts);
	SegmentTellJobs();
}

static mailbox_slot *
slot_words(void *arg, uint32 number)
{
	return &segment_slots[number].words;
}

static mailbox_lease *
lease_words(void *arg, uint32 index)
{
	return &segment_leases[index].words;
}

static mailbox_hold *
hold_words(void *arg, uint32 index)
{
	return &segment_holds[index].words;
}

/*
 * Sessions ring in exit callbacks and with interrupts held: no errors, no locks.  Race
 * with the worker's end: the latch may be another process's by now.  That process
 * wakes up for nothing, and the next worker reads every slot when it starts.
 */
static void
ring(void *arg, uint32 slot)
{
	pg_atomic_fetch_or_u64(&segment_bells[slot / SEGMENT_BELL_BITS],
						   UINT64CONST(1) << (slot % SEGMENT_BELL_BITS));
	wake_worker();
}

const mailbox segment_mailbox = {
	.slot = slot_words,
	.lease = lease_words,
	.hold = hold_words,
	.ring = ring,
	.wake = wake,
};
