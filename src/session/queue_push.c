/*-------------------------------------------------------------------------
 *
 * queue_push.c
 *	  Pushing jobs.
 *
 * One transaction writes the jobs under the numbers that follow the head's, and moves the
 * head.  Its condition is the head's old number, so of several pushes with the same
 * number one succeeds, and late copies of it die.  DynamoDB remembers the token of
 * the transaction, so a repeated one is applied once, and tells that it was.
 *
 * Small jobs ride on the head: they need no items, and their push guesses the number.  For large ones
 * a wrong guess would cost more than a look at the head.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"

#include "lock/backoff.h"
#include "session/session.h"

/* So many refusals in a row may tell nothing new: some seconds. */
#define STALLED_MOST 10

typedef struct Push
{
	queue_request request;
	QueuePush  *jobs;
	int			count;

	/* Of the head: */
	uint32		taken;			/* by the jobs that ride on it */
	int64		attempts;		/* how often the next job was claimed, if a session may claim it now */
	bool		calm;			/* as far as known, its next job runs, or a session may claim it */

	unsigned	stalled;		/* refusals in a row of which nothing was learned */
} Push;

/* NULL: the resource had no job, or its head was removed. */
static void
learn_head(Push *push, const QueueRow *head)
{
	bool		waits = head != NULL && (head->is.paused || (head->is.done < head->is.seq &&
															 head->is.due > push->request.now_ms));

	push->request.first = head == NULL || head->is.seq == 0;
	push->request.seq = push->request.first ? QueueTableFloor() : head->is.seq;
	push->taken = head != NULL ? QueueTaken(head) : 0;
	push->attempts = head == NULL ? 0 : waits ? QUEUE_ATTEMPTS_UNKNOWN : head->is.attempts;
	push->calm = head == NULL ||
		(!head->is.paused && head->is.attempts <= 1 && head->error[0] == '\0' &&
		 head->is.due <= push->request.now_ms + queue_backoff_ms(0));
}

/*
 * A refusal that tells nothing new: another push is half visible, or the table has a job
 * behind the head's last number.
 */
static void
wait_or_fail(const queue_request *request, unsigned stalled)
{
	if (stalled > STALLED_MOST)
		ErrorsState(errmsg("DynamoDB refuses jobs for resource \"%s\" in queue \"%s\"",
						   Utf8ToMessage(request->resource), request->queue),
					errdetail("The resource's last number is %lld, but the table seems to have a "
							  "job behind it.", (long long) request->seq));
	TableSleep(backoff_us(stalled, BACKOFF_CAP_US, pg_prng_uint64(&pg_global_prng_state)));
}

static void
pack(StringInfo tail, const QueuePush *jobs, int count)
{
	for (int i = 0; i < count; i++)
	{
		queue_job	job = {
			.id_len = jobs[i].id != NULL ? strlen(jobs[i].id) : 0,
			.payload_len = strlen(jobs[i].payload),
		};

		if (jobs[i].before)
			continue;
		strlcpy(job.digest, jobs[i].digest, sizeof(job.digest));
		appendBinaryStringInfo(tail, (char *) &job, sizeof(job));
		if (job.id_len > 0)
			appendBinaryStringInfo(tail, jobs[i].id, job.id_len);
		appendBinaryStringInfo(tail, jobs[i].payload, job.payload_len);
	}
}

/* Is its job this one?  The resource may be none that this session may use, so no message has it. */
static void
require_same_job(const QueueRow *row, const queue_request *request, const QueuePush *job)
{
	bool		same_resource = strcmp(row->resource, request->resource) == 0;

	if (same_resource && strcmp(row->is.digest, job->digest) == 0)
		return;
	ErrorsArgument(same_resource ?
				   errmsg("id \"%s\" belongs to a job with another payload in queue \"%s\"",
						  Utf8ToMessage(row->id), row->queue) :
				   errmsg("id \"%s\" belongs to a job of another resource in queue \"%s\"",
						  Utf8ToMessage(row->id), row->queue),
				   errdetail("That job has number %lld.", (long long) row->is.number),
				   same_resource ?
				   errhint("To repeat a push, repeat its payload. Another job needs an id of its "
						   "own.") :
				   errhint("An id counts in the whole queue. Let it contain the resource's name."));
}

/*
 * By the head, which others have moved; or by ids, whose jobs were pushed before.  False: nothing
 * was learned.
 */
static bool
note_refusal(QueueReply *reply, Push *push)
{
	queue_request *request = &push->request;
	QueueRow	row;
	int64		seq = request->seq;
	bool		first = request->first;
	bool		learned = false;

	request->now_ms = reply->is.now_ms;
	push->attempts = QUEUE_ATTEMPTS_UNKNOWN;
	while (QueueReadRow(reply, &row))
	{
		if (row.is.seq > 0)
			learn_head(push, &row);
		for (int i = 0; row.is.number > 0 && i < push->count; i++)
		{
			QueuePush  *job = &push->jobs[i];

			if (job->id != NULL && strcmp(job->id, row.id) == 0)
			{
				require_same_job(&row, request, job);
				job->before = true;
				job->number = row.is.number;
				learned = true;
			}
		}
	}
	if (!learned && request->seq == seq)
		learn_head(push, QueueJobHead(request->queue, request->resource, &request->now_ms));
	/*
	 * The table was made anew, or restored.  A copy of the push that is still under way would be
	 * applied when the head has that number again.
	 */
	if (request->seq < seq && reply->unsettled)
		ErrorsTrouble(DYNAMO_QUEUE_TRANSACT, DYNAMO_UNKNOWN,
					  "the last number of the resource has fallen, and a copy of the push may still come");
	/* Two clusters that push in turn would guess wrong for ever. */
	push->calm = false;
	return learned || request->seq != seq || request->first != first;
}

/* How many are to be pushed, and what they take of the head. */
static uint32
count_jobs(Push *push)
{
	size_t		size = 0;

	push->request.jobs = 0;
	for (int i = 0; i < push->count; i++)
	{
		const QueuePush *job = &push->jobs[i];

		if (job->before)
			continue;
		push->request.jobs++;
		size += queue_ride_size(job->id != NULL ? strlen(job->id) : 0, strlen(job->payload));
	}
	return Min(size, PG_UINT32_MAX);
}

/* False: refused, and what was learned stands in the push and its jobs. */
static bool
push_once(Push *push)
{
	queue_request *request = &push->request;
	uint32		size = count_jobs(push);
	StringInfoData tail;
	QueueReply *reply;
	int64		number = request->seq;

	if (request->jobs == 0)
	{
		push->attempts = QUEUE_ATTEMPTS_UNKNOWN;
		return true;
	}
	request->rides = queue_may_ride(push->taken, size);
	initStringInfo(&tail);
	pack(&tail, push->jobs, push->count);
	request->tail_len = tail.len;
	SessionNewUuid(request->uuid);
	reply = QueueCall(request, tail.data, DYNAMO_OK);
	pfree(tail.data);
	if (reply->is.status != DYNAMO_OK)
	{
		push->stalled = note_refusal(reply, push) ? 0 : push->stalled + 1;
		return false;
	}
	for (int i = 0; i < push->count; i++)
	{
		if (push->jobs[i].before)
			continue;
		push->jobs[i].number = ++number;
		SegmentCount(EVENT_JOB_PUSHED);
	}
	queue_memory_note(segment->memory, request->queue, request->resource,
					  push->calm ? number : 0, push->taken + (request->rides ? size : 0));
	return true;
}

void
QueueJobPush(const char *queue, const char *resource, QueuePush *jobs, int count, int64 dedup_ms)
{
	Push		push = {
		.request = QueueRequest(QUEUE_PUSH, queue, resource),
		.jobs = jobs,.count = count,
	};
	queue_request *request = &push.request;
	WorkerStatus worker;

	/* An id belongs to one job: its payload is the same whenever it is pushed. */
	for (int i = 0; i < count; i++)
	{
		if (jobs[i].id != NULL &&
			!dynamo_digest(jobs[i].payload, jobs[i].digest, sizeof(jobs[i].digest)))
			elog(ERROR, "could not make the digest of a payload");
	}
	QueueTableRequire();
	request->dedup_s = dedup_ms / 1000;
	SegmentReadStatus(&worker);
	/*
	 * All repeats of a transaction must be the same, so its time is not left to the worker: it is
	 * DynamoDB's, or a little earlier.  0: not known.
	 */
	if (worker.clock.known)
	{
		int64		now = SegmentNow();

		request->now_ms = (now + epoch_clock_low(&worker.clock, now)) / 1000;
	}
	push.calm = request->now_ms > 0 &&
		queue_memory_guess(segment->memory, queue, resource, &request->seq, &push.taken) &&
		queue_may_ride(push.taken, count_jobs(&push));
	if (!push.calm)
		learn_head(&push, QueueJobHead(queue, resource, &request->now_ms));
	while (!push_once(&push))
	{
		CHECK_FOR_INTERRUPTS();
		if (push.stalled > 0)
			wait_or_fail(request, push.stalled);
	}
	QueueHintTell(queue, resource, push.attempts);
}
