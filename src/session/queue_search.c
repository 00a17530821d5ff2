/*-------------------------------------------------------------------------
 *
 * queue_search.c
 *	  Looks for a job that can be claimed, and waits for one.
 *
 * The table's index shows which resources have a job that is due.  The index may be late, so it is
 * only a hint; the resource's head decides.  Each session begins at a random place of a page, so
 * that clusters do not all try the same resource.  The sessions of a cluster share what one of
 * them has found in the index, and what their pushes and completions tell, as hints
 * (queue/queue_hint.c).  So they find most jobs without a look at the index.
 *
 * If the lock of a resource is held by another cluster, this session leaves the resource alone for
 * a while.  The first pause is short, 0.1 s: mostly a session of the other cluster was faster, or
 * has completed a job and is about to release the lock.  Each next pause is twice as long, up to
 * 30 s.  The session does not leave the resource alone for ever, because only a try shows that the
 * holder has died.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "session/session.h"

#define ALONE_FIRST_US (USECS_PER_SEC / 10)
#define ALONE_MOST_US (30 * USECS_PER_SEC)
#define ALONE_MOST 1000
#define HINTS_OF_A_LOOK 24		/* of QUEUE_HINTS */
#define LOOK_IN_WORK_US USECS_PER_SEC

/* A resource that may have a job, and how often its next job was claimed. */
typedef struct Found
{
	char	   *resource;
	int64		attempts;		/* or QUEUE_ATTEMPTS_UNKNOWN */
} Found;

/*
 * A resource that this session leaves alone until then: its lock was busy, or (foreign) this
 * database's encoding lacks a character of its next job.  Or one of which only the claim showed
 * that no job is due (in_vain), because the index is late: the session does not leave it alone, but
 * reads its head before the writes of the next claim.  key: "QUEUE/RESOURCE"
 */
typedef struct Alone
{
	char		key[QUEUE_NAME_MAX + QUEUE_RESOURCE_MAX + 2];
	bool		foreign;
	bool		in_vain;
	int64		until;
	int64		pause;
} Alone;

static HTAB *alone = NULL;

/*
 * The resource that a search without a claim (ddb_queue_await()) has found.  The session's next
 * search of this queue begins with it.
 */
static struct
{
	char		queue[QUEUE_NAME_MAX + 1];
	char		resource[QUEUE_RESOURCE_MAX + 1];
	int64		attempts;
} ready;

/*
 * When the first pause ends of the resources that the present look leaves alone.  The session then
 * looks again.
 */
static int64 alone_until;

static int64
search_clock(void *arg)
{
	return SegmentNow();
}

static Alone *
search_alone(const char *queue, const char *resource, HASHACTION action, bool *found)
{
	char		key[sizeof(((Alone *) NULL)->key)];

	snprintf(key, sizeof(key), "%s/%s", queue, resource);
	return hash_search(alone, key, action, found);
}

static bool
was_in_vain(const char *queue, const char *resource)
{
	const Alone *entry = search_alone(queue, resource, HASH_FIND, NULL);

	return entry != NULL && entry->in_vain;
}

static void
leave_alone(const char *queue, const char *resource, QueueTry why)
{
	Alone	   *entry;
	bool		found;

	/*
	 * Resources come and go, so remove those whose pause is over.  Otherwise the table would grow
	 * for ever.
	 */
	if (hash_get_num_entries(alone) >= ALONE_MOST)
	{
		int64		now = SegmentNow();
		HASH_SEQ_STATUS status;

		hash_seq_init(&status, alone);
		while ((entry = hash_seq_search(&status)) != NULL)
		{
			if (entry->until <= now)
				(void) hash_search(alone, entry->key, HASH_REMOVE, NULL);
		}
	}
	entry = search_alone(queue, resource, HASH_ENTER, &found);
	entry->foreign = why == QUEUE_FOREIGN;
	entry->in_vain = why == QUEUE_IN_VAIN;
	entry->pause = entry->in_vain ? 0 : found ?
		Max(ALONE_FIRST_US, Min(entry->pause * 2, ALONE_MOST_US)) : ALONE_FIRST_US;
	entry->until = SegmentNow() + entry->pause;
	if (!entry->in_vain)
		alone_until = Min(alone_until, entry->until);
}

/*
 * Tries to claim a job of the resource; or, in a search without a claim, only remembers the
 * resource.  hinted: a session of this cluster or the worker has told of a job there, so the
 * resource is not left alone even if it is busy.
 */
static bool
try_resource(const QueueSearch *search, const char *resource, int64 attempts, bool hinted)
{
	QueueName	name;
	QueueTry	got;

	if (search->job == NULL)
	{
		strlcpy(ready.queue, search->queue, sizeof(ready.queue));
		strlcpy(ready.resource, resource, sizeof(ready.resource));
		ready.attempts = hinted ? attempts : QUEUE_ATTEMPTS_UNKNOWN;
		return true;
	}
	name = QueueNameOf(search->queue, resource);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		got = QueueJobTry(&name, attempts, search->lease_ms, search->max_attempts, search->job);
		if (got != QUEUE_AGAIN_NOW)
			break;
		attempts = QUEUE_ATTEMPTS_UNKNOWN;
	}
	if (got == QUEUE_FOREIGN || got == QUEUE_IN_VAIN || (got == QUEUE_BUSY && !hinted))
		leave_alone(search->queue, resource, got);
	else if (got == QUEUE_CLAIMED || (got == QUEUE_NOTHING && !was_in_vain(search->queue, resource)))
		(void) search_alone(search->queue, resource, HASH_REMOVE, NULL);
	if (got == QUEUE_FOREIGN)
	{
		/* Leave a hint for sessions of other databases, whose encoding may have the characters. */
		QueueHintTell(search->queue, resource, attempts);
		QueueJobToServer(search->queue, search->job);
	}
	return got == QUEUE_CLAIMED;
}

/* The entry of a resource that is left alone now; else NULL. */
static const Alone *
find_alone(const char *queue, const char *resource)
{
	const Alone *entry = search_alone(queue, resource, HASH_FIND, NULL);

	return entry != NULL && SegmentNow() < entry->until ? entry : NULL;
}

static bool
is_foreign(const char *queue, const char *resource)
{
	const Alone *entry = find_alone(queue, resource);

	return entry != NULL && entry->foreign;
}

static bool
try_hints(void *arg)
{
	const QueueSearch *search = arg;
	char		resource[QUEUE_RESOURCE_MAX + 1];
	int64		attempts;

	while (queue_hint_take(segment->hints, SegmentNow(), search->queue, search->resources,
						   is_foreign, &attempts, resource))
	{
		if (try_resource(search, resource, attempts, attempts != QUEUE_ATTEMPTS_UNKNOWN))
			return true;
	}
	return false;
}

/* Has a session of this cluster, other than "but", looked into this queue's index since then? */
static bool
has_looked(const char *queue, int64 since, const MailboxSlot *but)
{
	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		MailboxSlot *slot = &segment_slots[i];

		if (slot == but || (int64) shared_read(&slot->looked_at) <= since)
			continue;
		pg_read_barrier();
		if (strcmp(slot->looked_for, queue) == 0)
			return true;
	}
	return false;
}

static void
note_look(const char *queue)
{
	MailboxSlot *slot = MailboxMySlot();

	shared_write(&slot->looked_at, 0);
	pg_memory_barrier();
	strlcpy(slot->looked_for, queue, sizeof(slot->looked_for));
	pg_memory_barrier();
	shared_write(&slot->looked_at, (uint64) SegmentNow());
}

/*
 * Tries a resource that a look has found.  Takes the hint for this resource, if there is one:
 * another session that took it would only find the resource busy.
 */
static bool
try_found_one(const QueueSearch *search, const Found *found)
{
	char	   *resources[] = {found->resource, NULL};
	char		resource[QUEUE_RESOURCE_MAX + 1];
	int64		attempts = QUEUE_ATTEMPTS_UNKNOWN;
	bool		hinted = queue_hint_take(segment->hints, SegmentNow(), search->queue, resources,
										 NULL, &attempts, resource) &&
		attempts != QUEUE_ATTEMPTS_UNKNOWN;

	return try_resource(search, found->resource, hinted ? attempts :
						was_in_vain(search->queue, found->resource) ? QUEUE_ATTEMPTS_UNKNOWN :
						found->attempts, hinted);
}

static bool
is_named(const QueueSearch *search, const char *resource)
{
	for (char **name = search->resources; name != NULL; name++)
	{
		if (*name == NULL)
			return false;
		if (strcmp(*name, resource) == 0)
			return true;
	}
	return true;
}

/*
 * Tries these resources, from a random one on, until it has a job.
 *
 * The rest of a page of the index then becomes hints for the other sessions, if there are no hints
 * for this queue: up to HINTS_OF_A_LOOK of them, so that there is room for hints of other queues.
 * If the session has named resources, the rest does not become hints, as nobody knows whether
 * these have jobs.
 */
static bool
try_found(const QueueSearch *search, const Found *all, int count)
{
	int			first = count > 0 ? (int) (pg_prng_uint32(&pg_global_prng_state) % (uint32) count) : 0;
	int			left = search->resources == NULL &&
		!queue_hint_exists(segment->hints, SegmentNow(), search->queue) ? HINTS_OF_A_LOOK : 0;
	bool		found = false;
	bool		hinted = false;

	for (int i = 0; i < count; i++)
	{
		const Found *one = &all[(first + i) % count];
		const Alone *entry;

		if (!is_named(search, one->resource))
			continue;
		entry = find_alone(search->queue, one->resource);
		if (entry != NULL)
			alone_until = Min(alone_until, entry->until);
		else if (!found)
			found = try_found_one(search, one);
		else if (left-- > 0)
		{
			queue_hint_add(segment->hints, SegmentNow(), search->queue, one->resource,
						   QUEUE_ATTEMPTS_UNKNOWN);
			hinted = true;
		}
	}
	if (hinted)
		SegmentTellJobs();
	return found;
}

static bool
look_at_named(const QueueSearch *search)
{
	int			count = 0;
	Found	   *named;

	while (search->resources[count] != NULL)
		count++;
	named = palloc_array(Found, count + 1);
	for (int i = 0; i < count; i++)
		named[i] = (Found) {search->resources[i], QUEUE_ATTEMPTS_UNKNOWN};
	return try_found(search, named, count);
}

/*
 * Reads the index page after page, until a job is claimed: all resources of the first pages may be
 * locked.
 */
static bool
look_in_index(const QueueSearch *search)
{
	queue_request request = QueueRequest(QUEUE_FIND, search->queue, "");
	char	   *next = NULL;

	do
	{
		QueueReply *reply = QueueCall(&request, next, DYNAMO_OK);
		Found	   *found = palloc_array(Found, reply->is.rows + 1);
		int			count = 0;
		QueueRow	row;

		while (QueueReadRow(reply, &row))
			found[count++] = (Found) {row.resource, row.is.attempts};
		if (try_found(search, found, count))
			return true;
		next = reply->next;
		request.tail_len = reply->is.next_len;
	}
	while (next != NULL);
	return false;
}

/*
 * Looks for a job.  Sessions that wait for any resource take turns: one does not look if another
 * one has looked since then, unless this is its last look.
 */
static bool
search_look(void *arg, int64 since, bool last, int64 *again)
{
	const QueueSearch *search = arg;
	bool		found = false;

	QueueOwnSettle();
	alone_until = PG_INT64_MAX;
	if (search->resources != NULL && search->job != NULL)
		found = look_at_named(search);
	else if (search->resources != NULL)
		found = look_in_index(search);
	else if (last || !has_looked(search->queue, since, MailboxMySlot()))
	{
		note_look(search->queue);
		found = look_in_index(search);
	}
	*again = alone_until;
	return found;
}

/* Sleeps until then.  Ends early if somebody in this cluster has left a hint. */
static void
sleep_until(int64 until, DeadlockSearch *deadlock)
{
	for (;;)
	{
		int64		now = SegmentNow();
		int64		left = until - now;

		CHECK_FOR_INTERRUPTS();
		if (left <= 0 || shared_read(&MailboxMySlot()->wants_jobs) == 0)
			return;
		MailboxSleep(PAUSE_QUEUE, Min(left, DeadlockTurn(deadlock, now) - now));
	}
}

static bool
search_until(QueueSearch *search, int64 deadline, bool hints_first)
{
	queue_wait	wait = {
		.arg = search,
		.wish = &MailboxMySlot()->wants_jobs,
		.deadline = deadline,
		.pause = (int64) ddblock_poll_interval * 1000,
		.hints_first = hints_first,
		.clock = search_clock,
		.try_hints = try_hints,
		.look = search_look,
	};
	DeadlockSearch deadlock;

	DeadlockStart(&deadlock);
	for (;;)
	{
		queue_waited waited;
		int64		until;

		QueueTableRequire();
		waited = queue_wait_turn(&wait, pg_prng_uint64(&pg_global_prng_state), &until);
		if (waited == QUEUE_WAIT_FOUND || waited == QUEUE_WAIT_OVER)
			return waited == QUEUE_WAIT_FOUND;
		MemoryContextReset(CurrentMemoryContext);
		if (waited == QUEUE_WAIT_SLEEP)
			sleep_until(until, &deadlock);
	}
}

bool
QueueSearchJob(QueueSearch *search)
{
	MemoryContext turn;
	MemoryContext old;
	bool		hinted;
	volatile bool found = false;

	SessionAttach();
	if (alone == NULL)
	{
		HASHCTL		info = {
			.keysize = sizeof(((Alone *) NULL)->key),
			.entrysize = sizeof(Alone),
			.hcxt = TopMemoryContext,
		};

		alone = hash_create("ddblock resources left alone", 16, &info,
							HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
	}
	hinted = strcmp(ready.queue, search->queue) == 0;
	if (hinted)
	{
		/*
		 * The last search of this session has found the resource.  As a hint, other sessions may
		 * take it, too.
		 */
		ready.queue[0] = '\0';
		queue_hint_add(segment->hints, SegmentNow(), search->queue, ready.resource,
					   ready.attempts);
	}
	else
		hinted = has_looked(search->queue, SegmentNow() - LOOK_IN_WORK_US, NULL);
	turn = AllocSetContextCreate(CurrentMemoryContext, "ddb_queue_claim turn",
								 ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(turn);
	DeadlockWaitForJob(search->queue, search->resources);
	PG_TRY();
	{
		found = search_until(search, SegmentNow() + search->wait_ms * 1000, hinted);
	}
	PG_FINALLY();
	{
		DeadlockEndWait();
		shared_write(&MailboxMySlot()->wants_jobs, 0);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	return found;
}
