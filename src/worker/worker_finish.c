/*-------------------------------------------------------------------------
 *
 * worker_finish.c
 *	  Finishes jobs whose sessions have committed.
 *
 * A session that has committed can neither fail nor wait, and may end at once.  So the
 * worker finishes the job, and repeats that until the outcome is known, for as long as
 * it takes.  Only then the session's hold ends: until the job is finished, nobody else
 * should get it.
 *
 * If the lease is lost meanwhile, or the session ends, another session may claim the
 * job anew.  Then this token is refused, and the job's work is done once more: that is
 * what "at least once" means, and what ddb_queue_mark_done() is for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "utils/memutils.h"

#include "lock/backoff.h"
#include "shared/queue_hint.h"
#include "shared/segment.h"
#include "shared/settings.h"
#include "shared/utf8.h"
#include "worker/worker_clock.h"
#include "worker/worker_finish.h"
#include "worker/worker_lockmgr.h"
#include "worker/worker_queue_post.h"

#define RETRY_CAP_US (5 * USECS_PER_SEC)

/* What this worker knows of an entry of segment_finishes. */
typedef struct Note
{
	bool		known;			/* the entry is ours, and the rest is set */
	bool		in_flight;
	int64		next;			/* when to send it (again) */
	unsigned	failures;
	unsigned	refusals;		/* the first one is answered in the other form at once */
	queue_finish finish;
} Note;

static Note *notes;
static int	unfinished = 0;

static void take_news(int64 now);
static void send_finish(uint32 index);
static void finish_replied(const WorkerCall *call, const dynamo_reply *reply);
static bool refusing_head(const dynamo_reply *reply, queue_row *row, bool *exists);
static void try_later(uint32 index, const dynamo_reply *reply);
static void end(uint32 index, queue_outcome outcome);
static void delete_job(const FinishEntry *entry);
static void deleted(const WorkerCall *call, const dynamo_reply *reply);
static char *describe(const FinishEntry *entry);

/* What the worker before this one has left is news, too. */
void
WorkerFinishInit(void)
{
	notes = MemoryContextAllocZero(TopMemoryContext, segment->max_sessions * sizeof(Note));
	pg_atomic_write_u32(&segment->finish_news, 1);
}

bool
WorkerFinishIdle(void)
{
	return unfinished == 0 && pg_atomic_read_u32(&segment->finish_news) == 0;
}

int64
WorkerFinishRun(int64 now)
{
	int64		wake = PG_INT64_MAX;

	if (pg_atomic_exchange_u32(&segment->finish_news, 0) != 0)
		take_news(now);
	for (uint32 i = 0; unfinished > 0 && i < segment->max_sessions; i++)
	{
		if (!notes[i].known || notes[i].in_flight)
			continue;
		if (notes[i].next <= now)
			send_finish(i);
		else
			wake = Min(wake, notes[i].next);
	}
	return wake;
}

static void
take_news(int64 now)
{
	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		FinishEntry *entry = &segment_finishes[i];

		if (notes[i].known || pg_atomic_read_u32(&entry->state) != FINISH_READY)
			continue;
		pg_read_barrier();
		notes[i] = (Note)
		{
			.known = true,.next = now,
				.finish = {.number = entry->number,.token = entry->token,.last = entry->last}
		};
		unfinished++;
	}
}

static void
send_finish(uint32 index)
{
	const FinishEntry *entry = &segment_finishes[index];
	Note	   *note = &notes[index];
	queue_request request = {
		.kind = queue_finish_kind(&note->finish),
		.now_ms = WorkerEpochLow(SegmentNow()) / 1000,
		.number = entry->number,
		.token = entry->token,
	};
	WorkerCall	call = {
		.op = queue_op(request.kind),
		.repeat = note->failures > 0,
		.quiet = true,
		.done = finish_replied,
		.id = index,
	};

	strlcpy(request.queue, entry->queue, sizeof(request.queue));
	strlcpy(request.resource, entry->resource, sizeof(request.resource));
	call.body = queue_build(ddblock_queue_table, &request, NULL);
	note->in_flight = true;
	WorkerQueuePost(&call);
}

static void
finish_replied(const WorkerCall *call, const dynamo_reply *reply)
{
	uint32		index = (uint32) call->id;
	Note	   *note = &notes[index];
	queue_row	row;
	bool		exists;
	queue_outcome outcome;

	WorkerQueueEnded();
	note->in_flight = false;
	if (!refusing_head(reply, &row, &exists))
	{
		try_later(index, reply);
		return;
	}
	outcome = queue_finish_reply(&note->finish, reply->status, exists ? &row : NULL);
	if (outcome != QUEUE_AGAIN)
		end(index, outcome);
	else if (reply->status == DYNAMO_CONDITION_FAILED && note->refusals++ == 0)
		note->next = 0;			/* in the other form */
	else
		try_later(index, reply);
}

/* The head that refused, if there is one.  False: memory is short. */
static bool
refusing_head(const dynamo_reply *reply, queue_row *row, bool *exists)
{
	queue_reply head;
	Size		len;
	char	   *packed;

	*exists = false;
	if (reply->status != DYNAMO_CONDITION_FAILED)
		return true;
	packed = queue_pack(reply, 0, &len);
	if (packed == NULL)
		return false;
	memcpy(&head, packed, sizeof(head));
	*exists = head.rows > 0;
	if (*exists)
		memcpy(row, packed + sizeof(head) + head.next_len, sizeof(*row));
	free(packed);
	return true;
}

/* Nothing but a reply ends this: a table may be restored, a policy corrected. */
static void
try_later(uint32 index, const dynamo_reply *reply)
{
	Note	   *note = &notes[index];

	if (note->failures++ == 0)
		ereport(LOG,
				(errmsg("ddblock could not finish %s yet", describe(&segment_finishes[index])),
				 errdetail_internal("%s", Utf8Quiet(reply->message, strlen(reply->message)))));
	note->next = SegmentNow() + backoff_us(note->failures, RETRY_CAP_US,
										   pg_prng_uint64(&pg_global_prng_state));
}

static void
end(uint32 index, queue_outcome outcome)
{
	FinishEntry *entry = &segment_finishes[index];

	if (outcome == QUEUE_FINISHED)
	{
		SegmentCount(EVENT_JOB_COMPLETED);
		delete_job(entry);
		/* Nobody knew when the job was claimed; else its session has told. */
		if (entry->last && !notes[index].finish.last)
			QueueHintTell(entry->queue, entry->resource, 0);
	}
	else
		ereport(LOG,
				(errmsg("%s was claimed anew before it could be finished", describe(entry)),
				 errdetail("Its work is done once more.")));
	/* Before the entry is free: a session that sees that tries for the lock. */
	if (entry->hold_index != LOCKMGR_NO_HOLD &&
		lockmgr_hold_seq(worker_lockmgr, entry->hold_index) == entry->hold_seq)
		lockmgr_let_go(worker_lockmgr, SegmentNow(), entry->session, entry->hold_index);
	notes[index].known = false;
	unfinished--;
	pg_write_barrier();
	pg_atomic_write_u32(&entry->state, FINISH_FREE);
}

/* Once: ddb_queue_purge() deletes what stays. */
static void
delete_job(const FinishEntry *entry)
{
	queue_request request = {.kind = QUEUE_DELETE_JOB,.number = entry->number};
	WorkerCall	call = {.op = queue_op(request.kind),.quiet = true,.done = deleted};

	strlcpy(request.queue, entry->queue, sizeof(request.queue));
	strlcpy(request.resource, entry->resource, sizeof(request.resource));
	call.body = queue_build(ddblock_queue_table, &request, NULL);
	WorkerQueuePost(&call);
}

static void
deleted(const WorkerCall *call, const dynamo_reply *reply)
{
	WorkerQueueEnded();
}

static char *
describe(const FinishEntry *entry)
{
	return psprintf("job %lld of resource \"%s\" in queue \"%s\"", (long long) entry->number,
					Utf8Quiet(entry->resource, strlen(entry->resource)), entry->queue);
}
