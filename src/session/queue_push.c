/*-------------------------------------------------------------------------
 *
 * queue_push.c
 *	  Pushing jobs.
 *
 * One DynamoDB transaction writes the jobs under the numbers that follow the head's last one, and
 * moves the head.  Its condition is the head's old number.  So of several pushes that take the
 * same number, one succeeds, and a late copy of any other one is refused.  DynamoDB remembers the
 * token of the transaction: if a push is repeated, it is applied once, and the reply to the repeat
 * says so.  Example: the head's number is 7.  A push of two jobs writes jobs 8 and 9, and sets the
 * head's number to 9, on condition that it is 7.
 *
 * Small jobs ride on the head: they are part of the head's item, and have none of their own.  A
 * push of such jobs guesses the head's number, and so saves a read.  A push of large jobs reads
 * the head, as a wrong guess would cost more than the read.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"

#include "base/backoff.h"
#include "session/session.h"

/* A push fails after so many refusals in a row that tell nothing new, which takes some seconds. */
#define STALLED_MOST 10

typedef struct Push
{
	queue_request request;
	QueuePush  *jobs;
	int			count;

	/* What is known of the head: */
	uint32		taken;			/* its part that is taken by the jobs that ride on it */
	int64		attempts;		/* how often its next job was claimed, for the hint;
								 * QUEUE_ATTEMPTS_UNKNOWN: that is not known, or no session may
								 * claim it now */
	bool		calm;			/* the next push may guess: as far as known, the head's next job
								 * runs for the first time, or can be claimed */

	unsigned	stalled;		/* refusals in a row that told nothing new */
} Push;

/*
 * Copies what a push needs of the head.  NULL: the resource never had a job, or its head was
 * removed.
 */
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
 * After a refusal that tells nothing new, waits before the next attempt.  The reasons of such
 * refusals: another push is visible in part, which soon passes; or the table has a job whose
 * number is above the head's last one, which does not.
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

/*
 * Raises unless the id belongs to this job.  The messages do not name the resource of the other
 * job: this session may not be allowed to see it.
 */
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
 * Learns from the reply what has refused the push: the head, which other pushes have moved, or ids
 * whose jobs were pushed before.  Returns false if that tells nothing new.
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
	 * The head's number has fallen: the table was made anew, or restored.  A copy of the push that
	 * is still under way would be applied when the head reaches that number again.  Example: the
	 * push expected 7, the head is now at 3.  After four more jobs the late copy would push its
	 * jobs a second time.
	 */
	if (request->seq < seq && reply->unsettled)
		ErrorsTrouble(DYNAMO_QUEUE_TRANSACT, DYNAMO_UNKNOWN,
					  "the last number of the resource has fallen, and a copy of the push may still come");
	/*
	 * The next push reads the head.  If it guessed, two clusters that push in turn would always
	 * guess wrong.
	 */
	push->calm = false;
	return learned || request->seq != seq || request->first != first;
}

/*
 * Sets the number of jobs that are still to be pushed.  Returns how much of the head they would
 * take.
 */
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

/*
 * Makes the push once.  False: it was refused; the push and its jobs contain what that has told.
 */
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

	/* An id belongs to one job, so a repeated push under this id must have the same payload. */
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
	 * The push has a time, and all repeats of a DynamoDB transaction must be the same.  So the
	 * session sets the time, and not the worker for each call.  It is DynamoDB's time or a little
	 * earlier; 0 if that is not known.
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
