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
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"

#include "lock/backoff.h"
#include "session/session.h"
#include "shared/shared.h"

/* So many refusals in a row may tell nothing new: some seconds. */
#define STALLED_MOST 10

/* An id belongs to one job: its payload is the same whenever it is pushed. */
static void
make_digests(QueuePush *jobs, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (jobs[i].id != NULL &&
			!queue_digest(jobs[i].payload, strlen(jobs[i].payload), jobs[i].digest))
			elog(ERROR, "could not make the digest of a payload");
	}
}

/* How often the resource's next job has been claimed, if a session may claim it now. */
static int64
first_attempts(const QueueRow *head, int64 now_ms)
{
	if (head == NULL)
		return 0;
	if (head->is.paused || (head->is.done < head->is.seq && head->is.due > now_ms))
		return QUEUE_ATTEMPTS_UNKNOWN;
	return head->is.attempts;
}

/*
 * A refusal that tells nothing new: another push is half visible, or the table has a job
 * behind the head's last number.
 */
static void
wait_or_fail(const queue_request *request, unsigned stalled)
{
	if (stalled > STALLED_MOST)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("DynamoDB refuses jobs for resource \"%s\" in queue \"%s\"",
						Utf8ToMessage(request->resource, strlen(request->resource)),
						request->queue),
				 errdetail("The resource's last number is %lld, but the table seems to have a job "
						   "behind it.", (long long) request->seq)));
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
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 same_resource ?
			 errmsg("id \"%s\" belongs to a job with another payload in queue \"%s\"",
					Utf8ToMessage(row->id, strlen(row->id)), row->queue) :
			 errmsg("id \"%s\" belongs to a job of another resource in queue \"%s\"",
					Utf8ToMessage(row->id, strlen(row->id)), row->queue),
			 errdetail("That job has number %lld.", (long long) row->is.number),
			 same_resource ?
			 errhint("To repeat a push, repeat its payload. Another job needs an id of its own.") :
			 errhint("An id counts in the whole queue. Let it contain the resource's name.")));
}

/*
 * By the head, which others have moved; or by ids, whose jobs were pushed before.  False: nothing
 * was learned.
 */
static bool
note_refusal(QueueReply *reply, queue_request *request, QueuePush *jobs, int count)
{
	QueueRow	row;
	int64		seq = request->seq;
	bool		learned = false;

	request->now_ms = reply->now_ms;
	while (QueueReadRow(reply, &row))
	{
		if (row.is.seq > 0)
			request->seq = row.is.seq;
		for (int i = 0; row.is.number > 0 && i < count; i++)
		{
			if (jobs[i].id != NULL && strcmp(jobs[i].id, row.id) == 0)
			{
				require_same_job(&row, request, &jobs[i]);
				jobs[i].before = true;
				jobs[i].number = row.is.number;
				learned = true;
			}
		}
	}
	if (!learned && request->seq == seq)
	{
		QueueRow   *head = QueueJobHead(request->queue, request->resource, &request->now_ms);

		request->seq = head != NULL ? head->is.seq : 0;
	}
	return learned || request->seq != seq;
}

/*
 * False: refused, and what was learned stands in the request and the jobs.  Counts refusals in a row
 * of which nothing was learned.
 */
static bool
push_once(queue_request *request, QueuePush *jobs, int count, unsigned *stalled)
{
	StringInfoData tail;
	QueueReply *reply;
	int64		number = request->seq;

	request->jobs = 0;
	for (int i = 0; i < count; i++)
		request->jobs += jobs[i].before ? 0 : 1;
	if (request->jobs == 0)
		return true;
	initStringInfo(&tail);
	pack(&tail, jobs, count);
	request->tail_len = tail.len;
	QueueNewUuid(request->uuid);
	reply = QueueCall(request, tail.data, DYNAMO_OK);
	pfree(tail.data);
	if (reply->status != DYNAMO_OK)
	{
		*stalled = note_refusal(reply, request, jobs, count) ? 0 : *stalled + 1;
		return false;
	}
	for (int i = 0; i < count; i++)
	{
		if (jobs[i].before)
			continue;
		jobs[i].number = ++number;
		SegmentCount(EVENT_JOB_PUSHED);
	}
	return true;
}

void
QueueJobPush(const char *queue, const char *resource, QueuePush *jobs, int count, int64 dedup_ms)
{
	queue_request request = QueueRequest(QUEUE_PUSH, queue, resource);
	QueueRow   *head;
	int64		attempts;
	unsigned	stalled = 0;

	make_digests(jobs, count);
	QueueTableRequire();
	head = QueueJobHead(queue, resource, &request.now_ms);
	attempts = first_attempts(head, request.now_ms);
	request.dedup_s = dedup_ms / 1000;
	request.seq = head != NULL ? head->is.seq : 0;
	while (!push_once(&request, jobs, count, &stalled))
	{
		CHECK_FOR_INTERRUPTS();
		attempts = QUEUE_ATTEMPTS_UNKNOWN;
		if (stalled > 0)
			wait_or_fail(&request, stalled);
	}
	QueueHintTell(queue, resource, attempts);
}
