/*-------------------------------------------------------------------------
 *
 * waiting.c
 *	  How long a session waits for a lock, and what it reports meanwhile.
 *
 * lock_timeout is measured here, and not by PostgreSQL's timer.  So the error can name the holder,
 * or say that DynamoDB is out of reach.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "session/session.h"

/* Limits of the time between two looks at the holder. */
#define LOOK_MIN_US (100 * INT64CONST(1000))
#define LOOK_MAX_US USECS_PER_SEC

/* If DynamoDB has not replied for this long, its silence explains a time-out. */
#define SILENCE_US USECS_PER_SEC

/* How often a watch is read that changes all the time, or whose writer is stopped. */
#define READS_MAX 100

void
WaitingStart(Waiting *waiting, const char *lock, int64 limit_ms)
{
	memset(waiting, 0, sizeof(*waiting));
	waiting->lock = lock;
	waiting->started = SegmentNow();
	waiting->limit_ms = limit_ms;
	waiting->deadline = PG_INT64_MAX;
	waiting->next_look = waiting->started + DeadlockTimeout * INT64CONST(1000);
	DeadlockStart(&waiting->deadlock);

	/* A limit beyond what the clock can count is no limit. */
	if (limit_ms != WAITING_NO_LIMIT &&
		limit_ms < (PG_INT64_MAX - waiting->started) / 1000)
		waiting->deadline = waiting->started + limit_ms * 1000;
	if (LockTimeout > 0 &&
		waiting->started + LockTimeout * INT64CONST(1000) < waiting->deadline)
	{
		waiting->deadline = waiting->started + LockTimeout * INT64CONST(1000);
		waiting->lock_timeout = true;
	}
}

static bool
is_watched(MailboxSlot *slot, uint64 seq)
{
	return shared_read(&slot->waiting_seq) == seq &&
		shared_read(&slot->words.answer_seq) != seq;
}

/*
 * The watch may become another lock's during the read.  But the worker answers the request before
 * that: if there is still no answer after the read, the watch was this lock's.
 */
bool
WaitingReadWatch(MailboxSlot *slot, uint64 seq, lockmgr_watch *watch)
{
	for (int i = 0; i < READS_MAX; i++)
	{
		Watch	   *from;
		uint32		before;

		if (!is_watched(slot, seq))
			return false;
		pg_read_barrier();
		from = &segment_watches[shared_read(&slot->watch)];
		before = shared_begin_read(&from->changes);
		*watch = from->what;
		if (shared_end_read(&from->changes, before))
			return is_watched(slot, seq);
	}
	return false;
}

/* Appends a label and its text, unless the text is empty, as the item has none. */
static void
append_text(StringInfo out, const char *label, const char *utf8)
{
	char	   *text;

	if (utf8[0] == '\0')
		return;
	text = Utf8ToMessage(utf8);
	appendStringInfo(out, "%s \"%s\"", label, text);
	pfree(text);
}

char *
WaitingDescribeHolder(const lockmgr_watch *watch, int64 now)
{
	StringInfoData out;
	TimestampTz since;
	TimestampTz until;

	if (watch->kept_until_ms != 0)
		return TimesFromEpoch(watch->kept_until_ms, &until) ?
			psprintf("Nobody holds it, but it is kept from others until %s.",
					 timestamptz_to_str(until)) :
			pstrdup("Nobody holds it, but it is kept from others.");
	initStringInfo(&out);
	if (watch->owner[0] == '\0')
		appendStringInfoString(&out, "It is held, but its item names no owner");
	append_text(&out, "It is held by owner", watch->owner);
	if (watch->local)
		appendStringInfoString(&out, " (this cluster)");
	if (watch->holder.pid != 0)
		appendStringInfo(&out, ", process %d", watch->holder.pid);
	else if (watch->local)
		appendStringInfoString(&out, ", detached");
	append_text(&out, ", host", watch->holder.host);
	append_text(&out, ", database", watch->holder.database);
	append_text(&out, ", user", watch->holder.user);
	append_text(&out, ", application", watch->holder.application);
	/*
	 * Since when the holder has the lock, as it has written into the item; or else for how long
	 * this worker has seen it there.
	 */
	if (TimesFromEpoch(watch->holder.since_ms, &since))
		appendStringInfo(&out, ", since %s", timestamptz_to_str(since));
	else if (watch->first_seen != 0)
		appendStringInfo(&out, ", seen here for %s",
						 TimesDuration((now - watch->first_seen) / 1000));
	appendStringInfoChar(&out, '.');
	return out.data;
}

pg_noreturn static void
time_is_up(const Waiting *waiting, MailboxSlot *slot, uint64 seq, int64 now)
{
	lockmgr_watch watch;
	bool		watched = WaitingReadWatch(slot, seq, &watch);
	char	   *holder = NULL;

	if (shared_read(&segment->worker_procno) == PG_UINT32_MAX)
		ErrorsNoWorker(false);
	/*
	 * Report trouble with DynamoDB, unless a holder is known and the trouble is younger than half
	 * of the wait: then the holder is the reason.
	 */
	if (watched && watch.trouble != DYNAMO_OK &&
		!(watch.held && watch.trouble_since - waiting->started > (now - waiting->started) / 2))
		ErrorsTrouble(DYNAMO_ACQUIRE, watch.trouble, watch.message);
	if (watched && watch.held)
		holder = WaitingDescribeHolder(&watch, now);
	else
	{
		char		message[DYNAMO_MESSAGE_SIZE];
		dynamo_status status = SegmentReadTrouble(message);
		WorkerStatus worker;

		/*
		 * The worker does not know who holds the lock.  If that is because DynamoDB is out of
		 * reach, the error must say so: from 55P03 the client concludes that somebody has the
		 * lock.  But if the wait was shorter than a reply takes, it proves nothing about DynamoDB.
		 */
		if (status != DYNAMO_OK)
			ErrorsTrouble(DYNAMO_ACQUIRE, status, message);
		SegmentReadStatus(&worker);
		if (now - Max(waiting->started, worker.last_reply) >= SILENCE_US)
		{
			snprintf(message, sizeof(message), "reply: nothing came within %s",
					 TimesDuration((now - waiting->started) / 1000));
			ErrorsTrouble(DYNAMO_ACQUIRE, DYNAMO_UNKNOWN, message);
		}
	}

	SegmentCount(EVENT_TIMED_OUT);
	if (!waiting->only_try)
		SegmentCountWait(waiting->started);
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 waiting->lock_timeout ?
			 errmsg("canceling statement due to lock timeout") :
			 errmsg("could not acquire lock \"%s\" within %s", waiting->lock,
					TimesDuration(waiting->limit_ms)),
			 holder ? errdetail_internal("%s", holder) :
			 errdetail("The holder of lock \"%s\" is not known yet.", waiting->lock)));
}

void
WaitingTellTrouble(int64 since, int64 now, const char *message)
{
	static int64 told_at = 0;
	char		published[DYNAMO_MESSAGE_SIZE];

	if (told_at >= since || now - since < DeadlockTimeout * INT64CONST(1000) ||
		(message == NULL && SegmentReadTrouble(published) == DYNAMO_OK))
		return;
	told_at = now;
	ereport(NOTICE,
			(errmsg("still waiting for DynamoDB%s%s", segment->place.url[0] != '\0' ? " at " : "",
					segment->place.url),
			 errdetail("Requests are being repeated: %s",
					   Utf8ToMessage(message != NULL ? message : published))));
}

static bool
same_holder(const lockmgr_watch *a, const lockmgr_watch *b)
{
	return a->held == b->held &&
		a->kept_until_ms == b->kept_until_ms &&
		strcmp(a->owner, b->owner) == 0 &&
		a->holder.pid == b->holder.pid &&
		a->holder.since_ms == b->holder.since_ms &&
		strcmp(a->holder.host, b->holder.host) == 0 &&
		strcmp(a->holder.database, b->holder.database) == 0 &&
		strcmp(a->holder.user, b->holder.user) == 0 &&
		strcmp(a->holder.application, b->holder.application) == 0;
}

/*
 * Tells the client who holds the lock, the first time and whenever the holder has changed; and the
 * log, if log_lock_waits is on.  If the worker cannot find out because of trouble with DynamoDB,
 * tells that, unless a holder was told before.
 */
static void
look(Waiting *waiting, MailboxSlot *slot, uint64 seq, int64 now)
{
	int64		interval = DeadlockTimeout * INT64CONST(1000);
	lockmgr_watch watch;
	char	   *detail;

	waiting->next_look = now + Min(Max(interval, LOOK_MIN_US), LOOK_MAX_US);

	if (!WaitingReadWatch(slot, seq, &watch))
	{
		WaitingTellTrouble(waiting->started, now, NULL);
		return;
	}
	if (watch.held ? waiting->told && same_holder(&watch, &waiting->last) :
		waiting->told || watch.trouble == DYNAMO_OK)
		return;
	waiting->told = true;
	waiting->last = watch;

	detail = watch.held ? WaitingDescribeHolder(&watch, now) :
		psprintf("The holder is not known now, because of trouble with DynamoDB at %s: %s",
				 segment->place.url, Utf8ToMessage(watch.message));
	ereport(NOTICE,
			(errmsg("still waiting for lock \"%s\"", waiting->lock),
			 errdetail_internal("%s", detail)));
	if (log_lock_waits)
		ereport(LOG_SERVER_ONLY,
				(errmsg("process %d still waiting for lock \"%s\" after %s",
						MyProcPid, waiting->lock,
						TimesDuration((now - waiting->started) / 1000)),
				 errdetail_internal("%s", detail)));
	pfree(detail);
}

int64
WaitingTurn(Waiting *waiting, MailboxSlot *slot, uint64 seq, int64 now)
{
	int64		wake;

	if (now >= waiting->deadline)
		time_is_up(waiting, slot, seq, now);
	if (waiting->only_try)
	{
		WaitingTellTrouble(waiting->started, now, NULL);
		return waiting->deadline;
	}
	if (waiting->title == NULL && is_watched(slot, seq))
		waiting->title = CompatShowWaiting();
	wake = DeadlockTurn(&waiting->deadlock, now);
	if (now >= waiting->next_look)
		look(waiting, slot, seq, now);
	return Min(Min(waiting->deadline, waiting->next_look), wake);
}

void
WaitingEnd(Waiting *waiting)
{
	if (waiting->title != NULL)
		CompatHideWaiting(waiting->title);
	waiting->title = NULL;
}
