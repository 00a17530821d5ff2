/*-------------------------------------------------------------------------
 *
 * worker_lockmgr.c
 *	  The worker's lock manager, and its effects: calls, losses, batches; leases, holds and
 *	  watches in the segment.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "postmaster/interrupt.h"
#include "storage/proc.h"

#include "worker/worker.h"

#define MAX_REMEMBERED 10000

lockmgr    *worker_lockmgr;

void
WorkerSetClock(int64 now)
{
	lockmgr_set_clock(worker_lockmgr, WorkerEpochHigh(now) - now, WorkerEpochLow(now) - now);
}

void
WorkerSetTimeouts(void)
{
	int64		request_max_us = ShutdownRequestPending ? WORKER_DRAIN_REQUEST_US : PG_INT64_MAX;

	lockmgr_set_timeouts(worker_lockmgr,
						 Min((int64) ddblock_request_timeout * 1000, request_max_us),
						 (int64) ddblock_retry_timeout * 1000,
						 (int64) ddblock_poll_interval * 1000);
}

/*
 * With "auto", locks are taken over by the Dates of the replies if two conditions hold:
 *
 *	 - The endpoint is Amazon's own: only Amazon's servers are known to keep the time.
 *	 - There is no ca_file, which would mean that a proxy opens TLS.  Through other proxies, TLS is
 *	   end to end.
 */
void
WorkerSetTakeover(void)
{
	worker_takes_over = ddblock_clock_takeover == CLOCK_TAKEOVER_ON ||
		(ddblock_clock_takeover == CLOCK_TAKEOVER_AUTO &&
		 aws_is_own_endpoint(segment->place.url) && WorkerCaFile() == NULL);
	lockmgr_set_takeover(worker_lockmgr, worker_takes_over, (int64) ddblock_clock_slack * 1000);
}

/* Warns only once, of the first such item, whoever wrote it: the hint is the same for all. */
static void
warn_of_seconds(const dynamo_reply *reply)
{
	static bool warned = false;

	for (int i = 0; i < reply->count && !warned; i++)
	{
		const dynamo_item *item = &reply->results[i].item;

		if (!item->lease_in_seconds)
			continue;
		warned = true;
		ereport(WARNING,
				(errmsg("another client's \"leaseDuration\" is taken for seconds, not milliseconds"),
				 errdetail("It is %lld, and was written by %s.",
						   (long long) item->lease_ms / 1000,
						   Utf8Owner(Utf8Quiet(item->owner))),
				 errhint("If it means milliseconds, set a lease of at least a second there: "
						 "ddblock takes over the locks of a dead holder only after that many "
						 "seconds.")));
	}
}

/* Logs only the first veto: the clocks of DynamoDB's servers differ, so vetoes may come and go. */
static void
log_veto(const dynamo_reply *reply)
{
	static bool logged = false;
	lockmgr_veto veto = lockmgr_get_veto(worker_lockmgr);

	if (veto == VETO_NONE || logged)
		return;
	logged = true;
	if (veto == VETO_NO_DATE)
		ereport(LOG,
				(errmsg("no lock is taken over by DynamoDB's clock: its replies have no Date header"),
				 errhint("Set \"ddblock.clock_takeover\" to \"off\".")));
	else
		ereport(LOG,
				(errmsg("no lock is taken over by DynamoDB's clock while that and this machine's "
						"clock differ by more than \"ddblock.clock_slack\""),
				 errdetail("This machine's clock is ahead by %.1f s.",
						   (reply->wall_us - reply->date_s * USECS_PER_SEC) / 1e6),
				 errhint("Synchronize this machine's clock.")));
}

/* Notes why a renewal has failed, for the message about a lease that is lost later. */
static void
note_failure(const WorkerCall *call, const dynamo_reply *reply)
{
	if (call->op != DYNAMO_RENEW && call->op != DYNAMO_RENEW_BATCH)
		return;
	for (int i = 0; i < reply->count; i++)
	{
		const dynamo_result *result = &reply->results[i];

		if (dynamo_is_failure(result->status))
		{
			SegmentTell(&segment->renewal_failure, result->status, Utf8Quiet(result->message));
			return;
		}
	}
}

static void
replied(const WorkerCall *call, const dynamo_reply *reply)
{
	note_failure(call, reply);
	lockmgr_reply(worker_lockmgr, SegmentNow(), call->id, reply);
	log_veto(reply);
	warn_of_seconds(reply);
}

static void
send_call(void *arg, const lockmgr_call *wanted)
{
	WorkerCall	call = {
		.op = wanted->op,
		.count = wanted->count,
		.timeout_us = Max(wanted->timeout_us, 1),
		.repeat = wanted->repeat,
		/* A batch of one is the manager's check of batches: log_no_batches() tells of a failure. */
		.quiet = wanted->op == DYNAMO_RENEW_BATCH && wanted->count == 1,
		.done = replied,
		.id = wanted->id,
	};

	call.body = wanted->op == DYNAMO_RENEW_BATCH ?
		dynamo_build_batch(WorkerTable(), wanted->writes, wanted->count) :
		dynamo_build(WorkerTable(), wanted->writes);
	WorkerPost(&call);
}

static const char *
why_lost(const saved_hold *hold, const saved_lease *lease, const dynamo_item *by)
{
	int64		confirmed = lease->lease_end - lease->lease_ms * 1000;
	const char *failure;

	switch (hold->loss)
	{
		case LOSS_TAKEN:
			if (by->owner[0] == '\0')
				return "an owner without a name has taken it over";
			return psprintf("\"%s\" has taken it over", Utf8Quiet(by->owner));
		case LOSS_RELEASED:
			return "somebody else has released it";
		case LOSS_DELETED:
			return "its item was deleted";
		case LOSS_STOOD_STILL:
			return "this machine's clock stood still: by DynamoDB's clock, the renewal came "
				"too late";
		case LOSS_AT_MOST:
			return LOSS_WHY_AT_MOST;
		case LOSS_NONE:
		case LOSS_UNREACHABLE:
		case LOSS_RESIGNED:
			break;
	}
	failure = SegmentRenewalFailure(confirmed);
	return psprintf("DynamoDB confirmed no renewal for %.1f s%s%s",
					(SegmentNow() - confirmed) / 1e6,
					failure != NULL ? "; the last one failed " : "", failure != NULL ? failure : "");
}

/*
 * Makes the session look at its leases, unless the session has ended.
 *
 * A session that ended before the checks is found out: its slot has another generation, or its
 * PGPROC has pid 0 or that of another session.
 *
 * Race: the worker makes the checks, then the session ends, then the kernel gives the pid to
 * another process, then the worker sends the signal.  pg_signal_backend() has the same gap.  A lock
 * could close it, but a stopped process could hold the lock, and the worker must not wait for that.
 */
static void
interrupt(lockmgr_session session)
{
	MailboxSlot *slot = &segment_slots[session.slot];

	if (session.slot >= segment->max_sessions)
		return;					/* a leadership: leaderships_run() looks at its lease */
	if (shared_read(&slot->words.generation) == session.generation &&
		GetPGProcByNumber(session.slot)->pid == slot->pid)
		(void) kill(slot->pid, LOSS_SIGNAL);
}

/* Saves a lease in the segment, and its name in the journal. */
static void
save(void *arg, uint32 index, const saved_lease *lease, const char *name, size_t name_len)
{
	LeaseEntry *entry = &segment_leases[index];
	bool		sooner = lease->state == LEASE_HELD &&
		lease->valid_until < entry->lease.valid_until;
	bool		was_detached = entry->lease.detached;

	shared_begin_change(&entry->changes);
	mailbox_begin_save(&entry->words, lease);
	entry->lease = *lease;
	if (name != NULL)
	{
		memcpy(entry->name, name, name_len);
		entry->name[name_len] = '\0';
	}
	shared_end_change(&entry->changes);
	mailbox_end_save(&entry->words, lease);

	/*
	 * If the deadline comes sooner than before, the sessions must know it now, because the worker
	 * may be stopped when it comes.  A session that gets a hold on the lease after this reads the
	 * new deadline anyway.
	 */
	for (uint32 i = 0; sooner && i < segment->max_leases; i++)
	{
		const saved_hold *hold = &segment_holds[i].hold;

		if (hold->session.generation != 0 && hold->lease_index == index &&
			hold->lease_generation == lease->generation)
			interrupt(hold->session);
	}

	/*
	 * The journal does not list a lease with a detached hold, because the work under that hold may
	 * outlive a crash of this server.
	 */
	if (lease->state == LEASE_FREE || lease->detached)
		JournalUnlist(index);
	else if (name != NULL || was_detached)
		JournalList(index, entry->name, strlen(entry->name));
}

static void
save_hold(void *arg, uint32 index, const saved_hold *hold)
{
	HoldEntry  *entry = &segment_holds[index];
	bool		was = entry->hold.session.generation != 0;
	bool		is = hold->session.generation != 0;

	/* A hold that was lost is not logged as released, because its loss was logged. */
	if (!was && is)
		WorkerLogHold("granted", hold, INT64_MAX);
	else if (was && !is && entry->hold.loss == LOSS_NONE)
		WorkerLogHold("released", &entry->hold, INT64_MAX);

	shared_begin_change(&entry->changes);
	if (mailbox_save_hold(&entry->words, hold))
	{
		shared_write(&entry->session_depth, 0);
		shared_write(&entry->xact_depth, 0);
		entry->database = segment_slots[hold->session.slot].database_id;
		shared_write(&entry->untold_loss, mailbox_mark(hold->session, hold->seq));
	}
	entry->hold = *hold;
	shared_end_change(&entry->changes);
}

static void
waits(void *arg, lockmgr_session session, uint64 seq, uint32 watch)
{
	MailboxSlot *slot = &segment_slots[session.slot];

	shared_write(&slot->watch, watch);
	shared_write(&slot->waiting_place, ++segment->waits);
	pg_write_barrier();
	shared_write(&slot->waiting_seq, seq);
}

static void
set_watch(void *arg, uint32 watch, const lockmgr_watch *what)
{
	shared_begin_change(&segment_watches[watch].changes);
	segment_watches[watch].what = *what;
	shared_end_change(&segment_watches[watch].changes);
}

static void
log_loss(void *arg, uint32 index, const saved_hold *hold, const saved_lease *lease,
		 const dynamo_item *by)
{
	const LeaseEntry *entry = &segment_leases[hold->lease_index];

	interrupt(hold->session);
	WorkerLogHold("lost", hold, lease->deadline);
	if (hold->loss == LOSS_RESIGNED)
	{
		ereport(LOG,
				(errmsg("process %d is interrupted: this cluster gives up \"%s\"",
						hold->holder.pid, Utf8Quiet(entry->name))));
		return;					/* it is no loss to count */
	}
	LossTell(index, hold->session, hold->seq, entry->name, hold->loss,
			 why_lost(hold, lease, by));
}

/*
 * DynamoDB may refuse one statement of the batch for a missing permission, and process the others.
 * Then the result of that statement says why there are no batches.
 */
static void
log_no_batches(void *arg, const dynamo_reply *reply, bool for_good)
{
	const dynamo_result *why = &reply->results[0];
	bool		accepted = why->status == DYNAMO_OK;
	bool		denied;

	for (int i = 0; i < reply->count && why->status != DYNAMO_ACCESS_DENIED; i++)
	{
		if (reply->results[i].status == DYNAMO_ACCESS_DENIED)
			why = &reply->results[i];
	}
	denied = why->status == DYNAMO_ACCESS_DENIED;
	ereport(LOG,
			(accepted && !denied ?
			 errmsg("the server ignores the conditions of statements, so there are no batches of renewals") :
			 errmsg("%s batches of renewals: %s",
					for_good ? "DynamoDB refuses" : "DynamoDB does not process",
					Utf8Quiet(why->message)),
			 for_good ? errdetail("Leases are renewed one by one from now on.") :
			 errdetail("Leases are renewed one by one until it does."),
			 denied ? errhint("%s Then restart the server.",
							  dynamo_error_words(why->status, why->message)->hint) : 0));
}

void
WorkerLockmgrInit(void)
{
	lockmgr_config config = {
		.owner = segment->owner,
		.max_leases = segment->max_leases,
		.reserved_leases = Min(ddblock_superuser_reserved_leases, segment->max_leases - 1),
		.max_sessions = segment->slots,
		.max_remembered = MAX_REMEMBERED,
		/* The other half is for renewals, and for queues (worker_queue.c). */
		.max_calls = ddblock_max_connections / 2,
	};
	const lockmgr_host host = {
		.send = send_call,
		.save = save,
		.save_hold = save_hold,
		.answer = WorkerAnswer,
		.waits = waits,
		.watch = set_watch,
		.ends_hold = SegmentEndsHold,
		.lives = WorkerCopyLives,
		.lost = log_loss,
		.no_batches = log_no_batches,
		.random = WorkerFillRandom,
	};

	worker_lockmgr = lockmgr_new(&config, &host);
	if (worker_lockmgr == NULL)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	WorkerSetTimeouts();
	WorkerSetClock(SegmentNow());
	WorkerSetTakeover();
}

void
WorkerPublishCounts(void)
{
	lockmgr_counts counts;

	lockmgr_count(worker_lockmgr, &counts);
	shared_write(&segment->leases_in_use, counts.leases);
	shared_write(&segment->leases_held, counts.held);
	shared_write(&segment->leases_detached, counts.detached);
	shared_write(&segment->waiters, counts.waiters);
}
