/*-------------------------------------------------------------------------
 *
 * worker_finish_jobs.c
 *	  Finishes jobs whose sessions have committed: see queue/queue_finish.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "utils/memutils.h"

#include "base/backoff.h"
#include "lock/trouble_log.h"
#include "worker/worker.h"

#define RETRY_CAP_US (5 * USECS_PER_SEC)

static void send_write(void *arg, uint32 index, const queue_request *asked, bool repeat);

static char *
describe(const FinishEntry *entry)
{
	return psprintf("job %lld of resource \"%s\" in queue \"%s\"", (long long) entry->place.number,
					Utf8Quiet(entry->place.resource), entry->place.queue);
}

static trouble_log troubles;

static int64
later(void *arg, uint32 index, unsigned failures, const dynamo_reply *reply)
{
	int			left_out;

	if (trouble_log_failed(&troubles, dynamo_error_words(reply->status, reply->message),
						   SegmentNow(), &left_out))
		ereport(LOG,
				(errmsg("ddblock could not finish %s yet", describe(&segment_finishes[index])),
				 errdetail_internal("%s%s", Utf8Quiet(reply->message), WorkerLeftOut(left_out))));
	return (SegmentPay(reply->status) ? 0 : BACKOFF_CAP_US) +
		backoff_us(failures, RETRY_CAP_US, pg_prng_uint64(&pg_global_prng_state));
}

static void
ended(void *arg, uint32 index, queue_outcome outcome, bool more)
{
	const FinishEntry *entry = &segment_finishes[index];

	(void) trouble_log_succeeded(&troubles, SegmentNow());
	if (outcome == QUEUE_FINISHED)
		SegmentCount(EVENT_JOB_COMPLETED);
	else
		ereport(LOG,
				(errmsg("%s was claimed anew before it could be finished", describe(entry)),
				 errdetail("Its work is done once more.")));
	/* These jobs came after the claim.  Of earlier ones, the job's session has told. */
	if (more)
		QueueHintTell(entry->place.queue, entry->place.resource, 0);
	if (entry->hold_index != LOCKMGR_NO_HOLD &&
		lockmgr_hold_seq(worker_lockmgr, entry->hold_index) == entry->hold_seq)
		lockmgr_let_go(worker_lockmgr, SegmentNow(), entry->session, entry->hold_index);
}

static queue_finisher me = {
	.place = SegmentFinishPlace,
	.send = send_write,
	.later = later,
	.ended = ended,
};

/* Jobs that the last worker has left unfinished count as news. */
void
WorkerFinishInit(void)
{
	me.count = segment->max_sessions;
	me.notes = MemoryContextAllocZero(TopMemoryContext, me.count * sizeof(queue_note));
	me.news = &segment->finish_news;
	shared_write(me.news, 1);
}

bool
WorkerFinishIdle(void)
{
	return queue_finisher_is_idle(&me);
}

int64
WorkerFinishRun(int64 now)
{
	return queue_finisher_run(&me, now);
}

static void
replied(const WorkerCall *call, const dynamo_reply *reply)
{
	WorkerQueueEnded();
	if (backoff_price(reply->status) == 0)
		SegmentEarn(call->repeat);
	if (call->id != QUEUE_NO_PLACE)
		queue_finisher_reply(&me, (uint32) call->id, SegmentNow(), reply);
}

static void
send_write(void *arg, uint32 index, const queue_request *asked, bool repeat)
{
	queue_request request = *asked;
	WorkerCall	call = {
		.op = queue_op(request.kind),
		.repeat = repeat,
		.quiet = true,
		.done = replied,
		.id = index,
	};

	request.now_ms = WorkerEpochLow(SegmentNow()) / 1000;
	call.body = queue_build(ddblock_queue_table, &request, NULL);
	WorkerQueuePost(&call);
}
