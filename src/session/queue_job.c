/*-------------------------------------------------------------------------
 *
 * queue_job.c
 *	  A job's life: claimed, finished, failed, buried.
 *
 * doc/internals/queues.md has the conditions of each write, and why they suffice.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "session/session.h"

/* How long a session waits for a lock whose job is being finished. */
#define PATIENCE_MS 1000

QueueRow *
QueueJobHead(const char *queue, const char *resource, int64 *now_ms)
{
	queue_request request = QueueRequest(QUEUE_READ_HEAD, queue, resource);
	QueueReply *reply = QueueCall(&request, NULL, DYNAMO_OK);
	QueueRow   *row = palloc0(sizeof(QueueRow));

	if (now_ms != NULL)
		*now_ms = reply->is.now_ms;
	return QueueReadRow(reply, row) ? row : NULL;
}

/* Only a hint: an entry may change meanwhile. */
static bool
is_being_finished(const QueueName *name)
{
	for (uint32 i = 0; i < segment->max_sessions; i++)
	{
		queue_place *place = SegmentFinishPlace(NULL, i);

		if (queue_place_is_ready(place) && strcmp(place->resource, name->resource) == 0 &&
			strcmp(place->queue, name->queue) == 0)
			return true;
	}
	return false;
}

/* So is this: held, or about to be.  The worker takes leases from the end. */
static bool
is_held_here(const LockName *lock)
{
	uint32		in_use = shared_read(&segment->leases_in_use);

	for (uint32 i = segment->max_leases; i > 0 && in_use > 0; i--)
	{
		const LeaseEntry *entry = &segment_leases[i - 1];

		if (entry->lease.state == LEASE_FREE)
			continue;
		in_use--;
		if ((entry->lease.state == LEASE_HELD || entry->lease.pending.op == DYNAMO_ACQUIRE ||
			 entry->lease.pending.op == DYNAMO_HAND_OVER) &&
			strcmp(entry->name, lock->utf8) == 0)
			return true;
	}
	return false;
}

static bool
is_ours(const LockName *lock)
{
	const QueueClaim *claim = QueueClaimFind(lock->utf8);

	return HeldFind(lock->utf8) != NULL || (claim != NULL && claim->is.finish_level > 0);
}

/* NULL: it is busy.  The note comes first: if anything fails from here on, the lock is let go. */
static QueueClaim *
acquire(const LockName *lock, int64 lease_ms, bool patient)
{
	AcquireOptions options = {
		.scope = SCOPE_SESSION,
		.only_try = true,
		.ask = {
			.permits = 1,
			.waits_for_local_holder = patient,
			.lease_ms = lease_ms,
		},
		.wait_ms = PATIENCE_MS,
	};
	QueueClaim *claim = QueueClaimAdd(lock->utf8);
	const HeldLock *held = SessionAcquire(lock, &options);

	if (held == NULL)
	{
		QueueClaimEnd(claim);
		return NULL;
	}
	claim->is.token = held->token;
	return claim;
}

static bool
is_foreign(const QueueJob *job)
{
	const char *texts[] = {job->resource, job->id, job->payload};

	for (int i = 0; i < lengthof(texts); i++)
	{
		char	   *text = Utf8ToServer(texts[i]);

		if (text == NULL)
			return true;
		pfree(text);
	}
	return false;
}

/* NULL: no job with that number rides on the head. */
static const QueueRow *
rider_of(const QueueRow *head, int64 number)
{
	for (uint32 i = 0; i < head->is.riders; i++)
	{
		if (head->riders[i].is.number == number)
			return &head->riders[i];
	}
	return NULL;
}

/*
 * The job with this number, which the head has given; NULL: it was cancelled.  The push is a
 * transaction, and its head may be visible before its job.  So what a read does not find may yet
 * come, unless a write confirms that it is gone.
 */
static const QueueRow *
job_of(const QueueRow *head, const QueueName *name, int64 number, bool *rides)
{
	const QueueRow *job = rider_of(head, number);
	unsigned	times = 0;

	*rides = job != NULL;
	while (job == NULL)
	{
		queue_request request = QueueRequest(QUEUE_READ_JOB, name->queue, name->resource);
		dynamo_status status;

		request.number = number;
		job = QueueCallRow(&request, NULL);
		if (job != NULL)
			break;
		request.kind = QUEUE_CHECK_GONE;
		(void) QueueCallRow(&request, &status);
		if (status == DYNAMO_OK)
			break;
		TableAgain(&times, ddblock_queue_table);
	}
	return job;
}

/*
 * For a database that does not have every character: the next job before its claim, which would
 * count an attempt.  This session has the lock, so it stays the next one.  What is to be buried
 * is handed to nobody.
 */
static QueueTry
look_first(const QueueName *name, int max_attempts, int64 *attempts, QueueJob *job)
{
	int64		now_ms;
	const QueueRow *head = QueueJobHead(name->queue, name->resource, &now_ms);
	const QueueRow *found;
	bool		rides;

	if (head == NULL || !queue_is_due(&head->is, now_ms))
		return QUEUE_NOTHING;
	*attempts = head->is.attempts;
	if (head->is.attempts >= max_attempts)
		return QUEUE_CLAIMED;
	found = job_of(head, name, head->is.done + 1, &rides);
	if (found == NULL)
		return QUEUE_CLAIMED;
	*job = (QueueJob)
	{
		.resource = pstrdup(name->resource),.number = head->is.done + 1,.payload = found->payload,
			.id = found->id
	};
	return is_foreign(job) ? QUEUE_FOREIGN : QUEUE_CLAIMED;
}

/* The head after the claim, or NULL. */
static QueueRow *
claim_head(const queue_request *request)
{
	dynamo_status status;
	QueueRow   *head = QueueCallRow(request, &status);

	return head != NULL && queue_is_claimed(status, &head->is, request->token) ? head : NULL;
}

/* In one form, and then perhaps in the other one. */
static bool
finish(queue_request *request, const char *tail, bool last)
{
	queue_finish finish = {.number = request->number,.token = request->token,.last = last};
	unsigned	times = 0;

	for (;;)
	{
		QueueReply *reply;
		QueueRow	head;
		bool		has_head;
		queue_outcome outcome;

		if (request->kind != QUEUE_BURY)
			request->kind = queue_finish_kind(&finish);
		request->last = finish.last;
		SessionNewUuid(request->uuid);
		reply = QueueCall(request, tail, DYNAMO_OK);
		has_head = QueueReadRow(reply, &head);
		outcome = queue_finish_reply(&finish, reply->is.status, has_head ? &head.is : NULL);
		if (outcome != QUEUE_AGAIN)
			return outcome == QUEUE_FINISHED;
		TableAgain(&times, ddblock_queue_table);
	}
}

/*
 * If another session has claimed the job anew, nothing is written.  A repeat under the same uuid
 * must be the same transaction, so its time is that of the claim, not the worker's.
 */
static void
bury(const queue_request *claim, const QueueRow *head, const QueueRow *job, bool rides)
{
	queue_request request = QueueRequest(QUEUE_BURY, claim->queue, claim->resource);
	int64		number = head->is.done + 1;

	request.number = number;
	request.token = claim->token;
	request.now_ms = Max(head->is.due - claim->delay_ms, 1);
	request.attempts = head->is.attempts - 1;
	request.pushed_at = job->is.pushed_at;
	request.rides = rides;
	request.tail_len = strlen(job->payload);
	snprintf(request.id, sizeof(request.id), "%019lld#%s", (long long) number,
			 claim->resource);
	strlcpy(request.error, head->error, sizeof(request.error));
	if (finish(&request, job->payload, head->is.seq == number))
		SegmentCount(EVENT_JOB_DEAD);
}

void
QueueJobDelete(const char *queue, const char *resource, int64 number)
{
	queue_request request = QueueRequest(QUEUE_DELETE_JOB, queue, resource);

	request.number = number;
	(void) QueueCall(&request, NULL, DYNAMO_OK);
}

/*
 * In this session, which still can wait: what ends without a job's work.  False: it was claimed
 * anew before.
 */
static bool
complete(const QueueName *name, const queue_claim *claim)
{
	queue_request request = QueueRequest(QUEUE_COMPLETE, name->queue, name->resource);

	request.number = claim->number;
	request.token = claim->token;
	if (!finish(&request, NULL, claim->last))
		return false;
	if (!claim->rides)
		QueueJobDelete(name->queue, name->resource, claim->number);
	return true;
}

static QueueTry
claim_locked(const QueueName *name, QueueClaim *claim, int64 attempts, int max_attempts,
			 QueueJob *job)
{
	queue_request request = QueueRequest(QUEUE_CLAIM, name->queue, name->resource);
	QueueRow   *head;
	const QueueRow *found;

	if (!Utf8IsWhole())
	{
		QueueTry	first = look_first(name, max_attempts, &attempts, job);

		/*
		 * Who hears of a job that we cannot claim would take the resource for busy, and forget
		 * it.
		 */
		if (first == QUEUE_FOREIGN)
			QueueOwnRelease(claim, &name->lock);
		else if (first != QUEUE_CLAIMED)
			QueueClaimEnd(claim);
		if (first != QUEUE_CLAIMED)
			return first;
	}
	request.token = claim->is.token;
	request.attempts = attempts;
	request.delay_ms = queue_backoff_ms(attempts);
	head = claim_head(&request);
	if (head == NULL)
	{
		queue_memory_note(segment->memory, name->queue, name->resource, 0, 0);
		QueueClaimEnd(claim);
		return QUEUE_NOTHING;
	}
	queue_claim_take(&claim->is, &head->is, request.delay_ms, SegmentNow());
	/* For pushes, which look at the head if its next job has been claimed before. */
	queue_memory_note(segment->memory, head->queue, head->resource,
					  head->is.attempts > 1 ? 0 : head->is.seq, QueueTaken(head));
	found = job_of(head, name, claim->is.number, &claim->is.rides);
	if (found == NULL)
		(void) complete(name, &claim->is);
	else if (head->is.attempts > max_attempts)
		bury(&request, head, found, claim->is.rides);
	else
	{
		/* Time has passed: the job must not go out under a lost lease. */
		(void) SessionRequire(&name->lock);
		claim->is.pushed_at = found->is.pushed_at;
		*job = (QueueJob)
		{
			.resource = pstrdup(name->resource),.number = claim->is.number,.payload = found->payload,
				.id = found->id,.attempts = head->is.attempts,.pushed_at = found->is.pushed_at,
				.token = claim->is.token
		};
		SegmentCount(EVENT_JOB_CLAIMED);
		return QUEUE_CLAIMED;
	}
	QueueOwnRelease(claim, &name->lock);
	return QUEUE_AGAIN_NOW;
}

/*
 * A lock that this session holds already is left alone: with its token, this claim could not
 * be told from an earlier one.  So is a resource whose job this transaction has completed.
 *
 * If this cluster is finishing the resource's last job, the session waits for the lock: then it
 * passes on, mostly without a request.
 */
QueueTry
QueueJobTry(const QueueName *name, int64 attempts, int64 lease_ms, int max_attempts,
			QueueJob *job)
{
	QueueClaim *claim;
	bool		patient;

	SessionAttach();
	QueueClaimEndLost();
	if (is_ours(&name->lock))
		return QUEUE_BUSY;
	patient = is_being_finished(name);
	if (patient)
		attempts = 0;
	else if (is_held_here(&name->lock))
		return QUEUE_NOTHING;
	if (attempts == QUEUE_ATTEMPTS_UNKNOWN)
	{
		int64		now_ms;
		const QueueRow *head = QueueJobHead(name->queue, name->resource, &now_ms);

		if (head == NULL || !queue_is_due(&head->is, now_ms))
			return QUEUE_NOTHING;
		attempts = head->is.attempts;
	}
	claim = acquire(&name->lock, lease_ms, patient);
	if (claim == NULL)
	{
		/* It takes long.  If that is because of an outage, the read raises it. */
		if (patient && is_being_finished(name))
			(void) QueueJobHead(name->queue, name->resource, NULL);
		return QUEUE_BUSY;
	}
	return claim_locked(name, claim, attempts, max_attempts, job);
}

static char *
to_server(const char *queue, const QueueJob *job, const char *part, const char *utf8)
{
	char	   *what = psprintf("%s of job %lld of queue \"%s\"", part, (long long) job->number,
								queue);

	return Utf8ToServerOr(ERROR, what, utf8);
}

void
QueueJobToServer(const char *queue, QueueJob *job)
{
	job->id = to_server(queue, job, "id", job->id);
	job->payload = to_server(queue, job, "payload", job->payload);
	job->resource = to_server(queue, job, "resource", job->resource);
}

void
QueueJobFail(const QueueName *name, int64 number, int64 token, const char *error, int64 retry_ms)
{
	queue_request request = QueueRequest(QUEUE_FAIL, name->queue, name->resource);
	dynamo_status status;
	const QueueRow *head;

	request.number = number;
	request.token = token;
	request.delay_ms = retry_ms;
	strlcpy(request.error, error, sizeof(request.error));
	head = QueueCallRow(&request, &status);
	queue_memory_note(segment->memory, name->queue, name->resource, 0, 0);
	if (!queue_is_put_back(status, head != NULL ? &head->is : NULL, number))
		ErrorsLost(name->lock.text, LOSS_TAKEN);
}

/* Nobody works on the next job, and nobody will: this session has the lock. */
static bool
cancel_next(const QueueName *name, int64 number)
{
	const LockName *lock = &name->lock;
	queue_request request = QueueRequest(QUEUE_CLAIM, name->queue, name->resource);
	QueueRow   *head;
	QueueClaim *claim;
	bool		cancelled = false;

	SessionAttach();
	claim = is_ours(lock) ? NULL : acquire(lock, ddblock_lease_duration, false);
	if (claim == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("job %lld of resource \"%s\" in queue \"%s\" may be running",
						(long long) number, Utf8ToMessage(name->resource), name->queue),
				 errdetail("Somebody holds lock \"%s\".", lock->text)));
	request.all = true;
	request.number = number;
	request.token = claim->is.token;
	head = claim_head(&request);
	if (head != NULL && head->is.done + 1 == number)
	{
		/* It may have been cancelled before it became the next one. */
		bool		there = job_of(head, name, number, &claim->is.rides) != NULL;

		queue_claim_take(&claim->is, &head->is, request.delay_ms, SegmentNow());
		cancelled = complete(name, &claim->is) && there;
	}
	QueueOwnRelease(claim, lock);
	QueueHintTell(name->queue, name->resource, QUEUE_ATTEMPTS_UNKNOWN);
	return cancelled;
}

bool
QueueJobCancel(const QueueName *name, int64 number)
{
	queue_request request = QueueRequest(QUEUE_CANCEL, name->queue, name->resource);
	unsigned	times = 0;

	QueueTableRequire();
	request.number = number;
	for (;;)
	{
		QueueRow   *head = QueueJobHead(name->queue, name->resource, NULL);
		dynamo_status status;

		if (head == NULL || number > head->is.seq || number <= head->is.done)
			return false;
		if (number == head->is.done + 1)
			return cancel_next(name, number);
		request.kind = rider_of(head, number) != NULL ? QUEUE_CANCEL_RIDER : QUEUE_CANCEL;
		SessionNewUuid(request.uuid);
		(void) QueueCallRow(&request, &status);
		if (status == DYNAMO_OK)
			return true;

		/* Refused: it has become the next one, or it is not there. */
		head = QueueJobHead(name->queue, name->resource, NULL);
		if (head == NULL || head->is.done + 1 < number)
			return false;
		TableAgain(&times, ddblock_queue_table);
	}
}
