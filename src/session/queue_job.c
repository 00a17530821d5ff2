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

/* How long a session waits for a lock while the worker finishes the job under it. */
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

/*
 * Is the worker finishing a job of this resource?  The answer is only a hint: an entry may change
 * during the look.
 */
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

/*
 * Does this cluster hold the lock, or try to acquire it?  The answer is only a hint, too.  The
 * lock manager takes the last free entry of the directory first, so the look begins at the end,
 * and stops when it has seen all entries in use.
 */
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

/*
 * Acquires the resource's lock for a claim; NULL if it is busy.  patient: waits for a holder of
 * this cluster.  Adds the claim before it acquires the lock: if anything fails later, the end of
 * the transaction lets go of the lock.
 */
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

/* The job with this number, if it rides on the head; else NULL. */
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
 * The job with this number, which the head has given to a push; NULL if the job was cancelled.
 *
 * A push is a DynamoDB transaction, and a read may see its head before its job.  So a job that a
 * read does not find may still appear.  QUEUE_CHECK_GONE is a write, which a transaction under way
 * refuses: if it succeeds, the job is gone.
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
 * Looks at the next job before it is claimed, in a database whose encoding does not have every
 * character: a claim counts as an attempt, even if the session cannot take the job then.  As this
 * session has the resource's lock, the job stays the next one.
 *
 * Returns QUEUE_CLAIMED if the job should be claimed.  That includes a job that is to be buried,
 * as nobody gets its text, and one that was cancelled.
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

/* Claims the next job.  Returns the head after the claim; NULL if it was refused. */
static QueueRow *
claim_head(const queue_request *request)
{
	dynamo_status status;
	QueueRow   *head = QueueCallRow(request, &status);

	return head != NULL && queue_is_claimed(status, &head->is, request->token) ? head : NULL;
}

/*
 * Finishes or buries a job, with the form of the write for the last job of a resource, or with
 * that for others; if one is refused, with the other.  False: another session has claimed the job
 * anew.
 */
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
 * Puts the job aside.  If another session has claimed it anew, writes nothing.  A repeat under the
 * same uuid must be the same transaction.  So its time is that of the claim; the worker would set
 * another one for each copy.
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
 * Finishes a job that needs no work, because it was cancelled.  Unlike the worker after COMMIT,
 * this session waits for the outcome.  False: another session has claimed the job anew before.
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
		 * QUEUE_FOREIGN: wait for the release.  The caller then leaves a hint for other sessions.
		 * One that took the hint while this session still had the lock would take the resource for
		 * busy, and the hint would be lost.
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
		return QUEUE_IN_VAIN;
	}
	queue_claim_take(&claim->is, &head->is, request.delay_ms, SegmentNow());
	/*
	 * For pushes: remember the head's number for their guess.  If the next job was claimed before,
	 * forget it, so that they read the head.
	 */
	queue_memory_note(segment->memory, head->queue, head->resource,
					  head->is.attempts > 1 ? 0 : head->is.seq, QueueTaken(head));
	found = job_of(head, name, claim->is.number, &claim->is.rides);
	if (found == NULL)
		(void) complete(name, &claim->is);
	else if (head->is.attempts > max_attempts)
		bury(&request, head, found, claim->is.rides);
	else
	{
		/* Time has passed since the acquire: a job must not be handed out under a lost lease. */
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
 * Returns QUEUE_BUSY in these cases, too:
 *
 *	 - This session holds the lock already.  A second claim would have the same token, and could
 *	   not be told from the first one.
 *	 - This transaction has completed a job of the resource, and the worker gets it after COMMIT.
 *
 * If the worker is just finishing a job of the resource, the session waits for the lock: it then
 * gets the lock from the previous session of this cluster, mostly without a request.
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
		/*
		 * Finishing takes longer than PATIENCE_MS.  If DynamoDB is out of reach, this read raises
		 * the error.
		 */
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

/*
 * Cancels the next job.  Takes the resource's lock for that, so nobody works on the job meanwhile.
 */
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
		/* Another session may have cancelled the job before it became the next one. */
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

		/* The write was refused: the job has become the next one, or there is no such job. */
		head = QueueJobHead(name->queue, name->resource, NULL);
		if (head == NULL || head->is.done + 1 < number)
			return false;
		TableAgain(&times, ddblock_queue_table);
	}
}
