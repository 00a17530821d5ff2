/*-------------------------------------------------------------------------
 *
 * worker_leaderships.c
 *	  The cluster's leaderships: see lock/leadership.h.
 *
 * The slots of leaderships come after those of the backends.  A worker that gets SIGTERM gives up
 * all leaderships first: no new transaction joins one, and when the transactions that have joined
 * end, their leases are released, so that the worker can end.
 *
 * A standby that does not stand for the locks before its promotion reads them as often as a
 * leadership polls.  So when the standby is promoted, its lock manager knows already for how long a
 * dead leader's item has not changed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"

#include "worker/worker.h"

#define PROMOTION_LOOK_US USECS_PER_SEC
#define RETRY_US (5 * USECS_PER_SEC)

/* The locks that a standby reads.  The next round of reads begins when none is on its way. */
static char watched[LEADERSHIPS_MAX][LEADERSHIP_NAME_MAX + 1];
static int	on_their_way;
static int64 look_at;

/* The states that log_changes() knows; a worker begins with those in the segment. */
static leadership_state logged[LEADERSHIPS_MAX];

static void post(void *arg, const leadership *c);
static bool take(void *arg, leadership *c);

static leadership_worker me = {
	.box = &segment_mailbox,
	.retry_us = RETRY_US,
	.post = post,
	.take = take,
};

void
WorkerLeadershipsInit(void)
{
	me.lm = worker_lockmgr;
	me.entries = segment->leaderships;
	me.first_slot = segment->max_sessions;
	for (int i = 0; i < LEADERSHIPS_MAX; i++)
		logged[i] = me.entries[i].c.state;
}

static void
looked(const WorkerCall *call, const dynamo_reply *reply)
{
	const char *name = watched[call->id];

	on_their_way--;
	if (reply->count == 1 && reply->results[0].status == DYNAMO_OK)
		(void) lockmgr_observe(worker_lockmgr, call->posted, SegmentNow(), name, strlen(name),
							   &reply->results[0].item, reply->results[0].shared);
}

/* Reads the locks, if that is due.  The id of a call is the index of its name in watched. */
static void
look(int64 now)
{
	const char *at = ddblock_leaderships;
	const char *wrong;

	if (ShutdownRequestPending || on_their_way > 0 || now < look_at)
		return;
	while (leadership_list_next(&at, watched[on_their_way], &wrong))
	{
		WorkerPostRead(watched[on_their_way], looked, on_their_way);
		on_their_way++;
	}
	look_at = now + lockmgr_leadership_interval((int64) ddblock_lease_duration * 1000);
}

/* Logs that the cluster leads, or gives up.  A loss is logged as every loss of a lease is. */
static void
log_changes(void)
{
	for (int i = 0; i < LEADERSHIPS_MAX; i++)
	{
		const leadership *c = &me.entries[i].c;
		const char *name;

		if (c->state == logged[i])
			continue;
		logged[i] = c->state;
		name = Utf8Quiet(c->name);
		if (c->state == LEADERSHIP_LEADING)
			ereport(LOG,
					(errmsg("this cluster leads \"%s\", with token %lld", name,
							(long long) c->grant.token)));
		else if (c->state == LEADERSHIP_GIVING_UP)
			ereport(LOG, (errmsg("this cluster gives up \"%s\"", name)));
	}
}

int64
WorkerLeadershipsRun(int64 now)
{
	bool		waits_for_promotion = ddblock_leaderships[0] != '\0' &&
		!ddblock_leaderships_on_standby && RecoveryInProgress();
	const char *wanted = ShutdownRequestPending || waits_for_promotion ? "" : ddblock_leaderships;
	int64		wake = leaderships_run(&me, now, wanted);

	log_changes();
	if (!waits_for_promotion)
		return wake;
	look(now);
	return Min(wake, now + PROMOTION_LOOK_US);
}

bool
WorkerLeadershipsResign(int64 now, const char *name, int64 rest_us, int64 wait_us)
{
	bool		led = leadership_resign(&me, now, name, rest_us, wait_us);

	log_changes();
	return led;
}

/*
 * Fills in a leadership's request for its lock.  No process has that lock, so the slot's pid is 0;
 * and the lease counts for no role.
 */
static void
post(void *arg, const leadership *c)
{
	MailboxSlot *slot = &segment_slots[c->me.slot];
	MailboxRequest *request = &slot->request;
	lock_ask   *ask = &request->ask;

	memset(request, 0, sizeof(*request));
	request->seq = c->seq;
	request->posted = SegmentNow();
	request->kind = MAILBOX_ACQUIRE;
	request->name_len = strlen(c->name);
	memcpy(slot->text, c->name, request->name_len);
	ask->lease_ms = ddblock_lease_duration;
	ask->superuser = true;
	ask->prefix_len = request->name_len;
	ask->leadership = true;
	ask->permits = 1;
	strlcpy(ask->holder.application, "ddblock leadership", DYNAMO_HOLDER_SIZE);
	if (gethostname(ask->holder.host, DYNAMO_HOLDER_SIZE) != 0)
		ask->holder.host[0] = '\0';
	ask->holder.host[DYNAMO_HOLDER_SIZE - 1] = '\0';
	slot->pid = 0;
	slot->database[0] = slot->user[0] = '\0';
}

static bool
take(void *arg, leadership *c)
{
	const MailboxAnswer *answer = &segment_slots[c->me.slot].answer;
	const char *name = Utf8Quiet(c->name);

	if (answer->result == MAILBOX_GRANTED)
	{
		c->grant = answer->grant;
		return true;
	}
	if (answer->result == MAILBOX_NO_ROOM)
		ereport(LOG,
				(errmsg("this cluster cannot stand for \"%s\": all leases are in use", name),
				 errhint("Increase \"ddblock.max_leases\".")));
	else if (answer->result == MAILBOX_FAILED || answer->result == MAILBOX_BAD_ITEM ||
			 answer->result == MAILBOX_GLOBAL_TABLE)
		ereport(LOG,
				(errmsg("this cluster cannot stand for \"%s\": %s", name,
						Utf8Quiet(answer->failure.message))));
	else
		ereport(LOG,
				(errmsg("this cluster cannot stand for \"%s\": result %d", name,
						(int) answer->result)));
	return false;
}
