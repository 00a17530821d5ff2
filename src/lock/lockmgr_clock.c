/*-------------------------------------------------------------------------
 *
 * lockmgr_clock.c
 *	  Time: the time in versions, minimums, and how long a lock stays in this cluster.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#include <string.h>

/*-------------------------------------------------------------------------
 * The time in versions: a dead holder is found at once, by DynamoDB's clock.
 *
 * An acquire, a hand-over or a renewal puts a time into the version that it writes: DynamoDB's
 * time when its first copy is sent, as late as that can be by our estimate and by the newest
 * reply, and LATER_US more.  Every writer replaces the version, so no time outlives its write.
 *
 * A contender takes a version for dead if one reply shows it, and has a Date that is past that
 * time, the lease and 2 % of it, and a slack.  Example: a holder with a lease of 20 s writes the
 * time 12:00:01 into its version, and dies.  With a slack of 5 s, the version is dead by a Date of
 * 12:00:27 or later (20.4 s and 5 s, in whole seconds).  A contender that comes a minute after the
 * death takes the lock over at once; without the time, it would first have to watch the version
 * for 20.4 s.
 *
 * The holder counts its belief by the Date of the reply that confirms the write.  Our estimate of
 * DynamoDB's clock may be too early, because a hypervisor has stopped the machine: then the time
 * in the version is too early, and the Date makes the belief as short as it must be.
 *
 * See "Time in the version" in doc/internals/protocol.md.
 *-------------------------------------------------------------------------
 */

#define SECOND		INT64_C(1000000)
#define DATE_MAX	INT64_C(253402300800)	/* start of the year 10000: no Date is later */
#define LATER_US	SECOND		/* so that replies of servers whose clocks differ a little do
								 * not shorten belief */

void
lockmgr_set_takeover(lockmgr *lm, bool by_clock, int64_t slack_us)
{
	lm->takeover_by_clock = by_clock;
	lm->slack_us = slack_us;
}

lockmgr_veto
lockmgr_get_veto(const lockmgr *lm)
{
	return lm->takeover_by_clock ? lm->veto : VETO_NONE;
}

/*
 * How far DynamoDB's clock is ahead of ours, at most, by the reply that is handled now; 0: the
 * reply does not say.
 */
static int64_t
offset_by_reply(const lockmgr *lm)
{
	return lm->date_us != 0 ? lm->date_us + SECOND - lm->date_sent : 0;
}

/* This reply, to a request that was sent at the given time, is handled until lm_end_reply(). */
void
lm_begin_reply(lockmgr *lm, int64_t now, const dynamo_reply *reply, int64_t sent)
{
	/* 0: the reply has no Date, or one that no clock shows. */
	int64_t		date_us = reply->date_s > 0 && reply->date_s < DATE_MAX ?
		reply->date_s * SECOND : 0;

	/*
	 * Takes nothing over by this Date if it and our wall clock differ by more than the slack.  A
	 * Date has whole seconds, and is of a moment between sending and receipt.
	 */
	if (!dynamo_is_failure(reply->status))
	{
		if (date_us == 0)
			lm->veto = VETO_NO_DATE;
		else if (date_us - reply->wall_us > lm->slack_us ||
				 reply->wall_us - (now - sent) - date_us - SECOND > lm->slack_us)
			lm->veto = VETO_WALL_CLOCK;
		else
			lm->veto = VETO_NONE;
	}
	lm->date_us = date_us;
	lm->date_sent = sent;
	if (lm->date_us != 0)
		lm->newest_offset = offset_by_reply(lm);
}

void
lm_end_reply(lockmgr *lm)
{
	lm->date_us = 0;
}

/*
 * The pending write is sent for the first time: puts the time into its version, unless it is a
 * release.  While a renewal is under way, the older belief goes on.  So the time of a renewal is
 * no earlier than by the clock offset of the reply that confirmed that belief.  If that reply had
 * no Date, the renewal gets no time.
 */
void
lm_stamp(const lockmgr *lm, saved_lease *l)
{
	lease_write *pending = &l->pending;
	int64_t		offset = lm->epoch_offset_us;

	if (!lm->takeover_by_clock || lm->veto != VETO_NONE || pending->op == DYNAMO_RELEASE ||
		(pending->op == DYNAMO_RENEW && l->clock_offset == 0))
		return;
	if (offset < lm->newest_offset)
		offset = lm->newest_offset;
	offset += LATER_US;
	if (pending->op == DYNAMO_RENEW && offset < l->clock_offset)
		offset = l->clock_offset;
	/* The time is rounded up to milliseconds. */
	uuid_put_time(pending->version, (pending->first_sent + offset + 999) / 1000);
}

/*
 * The pending write is confirmed by the reply that is handled now.  Its lease counts from the
 * earlier of two moments: when its first copy was sent; and when DynamoDB's clock, by this reply,
 * was at the time in its version.
 */
void
lm_count_lease(const lockmgr *lm, saved_lease *l)
{
	const lease_write *pending = &l->pending;
	int64_t		ms;

	l->lease_end = pending->first_sent + pending->lease_ms * 1000;
	l->clock_offset = offset_by_reply(lm);
	l->cut_us = 0;
	if (uuid_get_time(pending->version, &ms) &&
		ms * 1000 - l->clock_offset < pending->first_sent)
		l->cut_us = pending->first_sent - (ms * 1000 - l->clock_offset);
}

/* When the lease ends for its holders: their deadline is a margin before that. */
int64_t
lm_believed_end(const saved_lease *l)
{
	return l->lease_end - l->cut_us;
}

/* Is the version in the reply that is handled now dead, by DynamoDB's clock? */
bool
lm_is_expired(const lockmgr *lm, const char *version, int64_t lease_ms)
{
	int64_t		ms;

	return lm->takeover_by_clock && lm->veto == VETO_NONE && lm->date_us != 0 &&
		uuid_get_time(version, &ms) &&
		lm->date_us >= ms * 1000 + LOCKMGR_DEAD_AFTER(lease_ms * 1000) + lm->slack_us;
}

/*
 * An acquire was refused.  If we took the version, or an entry, for dead by DynamoDB's clock, the
 * reply that showed it was old, so the next poll is a consistent read.
 */
void
lm_refused_by_clock(lm_lock *lock)
{
	lock->read_consistently |= lock->seen && lock->expired;
	for (int i = 0; lock->shared != NULL && i < lock->shared->count; i++)
		lock->read_consistently |= lock->shared->entries[i].expired;
}

/*-------------------------------------------------------------------------
 * Minimums: a lock is kept from others for a time, whether it is released or not.
 *
 * The end of that time, keptUntil in the item, is a moment of DynamoDB's clock.  Who sets it
 * counts from the latest time that this clock may show; who waits for it compares it with the
 * earliest.  So nobody gets the lock too soon.  See "Minimum" in doc/internals/protocol.md.
 *-------------------------------------------------------------------------
 */

/* The pending write is sent for the first time now: sets its keptUntil. */
void
lm_set_minimum(const lockmgr *lm, int64_t now, lease_write *pending)
{
	pending->kept_until_ms = pending->at_least_ms == 0 ? 0 :
		(now + lm->epoch_offset_us) / 1000 + 1 + pending->at_least_ms;
}

/* A time of DynamoDB's clock that has certainly passed. */
int64_t
lm_past_ms(const lockmgr *lm, int64_t now)
{
	return (now + lm->earliest_us) / 1000;
}

bool
lm_is_kept(const lockmgr *lm, int64_t now, int64_t kept_until_ms)
{
	return kept_until_ms > lm_past_ms(lm, now);
}

/* The moment from which keptUntil has certainly passed, as far as we know now. */
int64_t
lm_kept_end(const lockmgr *lm, int64_t kept_until_ms)
{
	return kept_until_ms < INT64_MAX / 1000 ? kept_until_ms * 1000 - lm->earliest_us : INT64_MAX;
}

/*
 * Is keptUntil so far ahead that no ddblock can have written it?  A minimum is a day at most; a
 * second day is for clocks that differ.
 */
bool
lm_is_kept_too_long(const lockmgr *lm, int64_t now, int64_t kept_until_ms)
{
	return kept_until_ms > (now + lm->epoch_offset_us) / 1000 + INT64_C(2) * DYNAMO_KEPT_MAX_MS;
}

/*-------------------------------------------------------------------------
 * Runs: how long a lock passes from session to session of this cluster.
 *
 * While sessions of this cluster wait, the lock passes from one to the next, and other clusters
 * have no chance.  So such a run is limited in time.  When it ends, the lock is released, and this
 * cluster's waiters stay back: they send no acquire for STAY_BACK_US.  That must be longer than the
 * time between two polls of another cluster (POLL_BUSY_US) and two round trips; otherwise that
 * cluster can miss one moment after the other, and wait for minutes.
 *
 * We cannot see whether another cluster waits.  But an acquire shows whose item it replaced.  If
 * that was another client's, the next run is the shortest, 1/8 s.  If it was our own, nobody came
 * while we stayed back: the next run may last twice as long as the last one, up to RUN_US.
 *-------------------------------------------------------------------------
 */

#define RUN_US			INT64_C(1000000)
#define RUN_DOUBLINGS	3		/* from the shortest run to RUN_US */
#define STAY_BACK_US	INT64_C(150000)

/* The next run begins with the next release: others have had the lock, or a chance to get it. */
static void
new_run(lm_lock *lock)
{
	lock->run_end = lock->let_go_at = 0;
}

/* Another client has the lock, or had it before us. */
void
lm_note_other_client(lm_lock *lock)
{
	lock->doublings = 0;
	lock->heard_ms = 0;
	new_run(lock);
}

/*
 * An acquire of ours has replaced this item; item->exists is false if the reply does not show it.
 */
void
lm_replaced(const lockmgr *lm, lm_lock *lock, const dynamo_item *item)
{
	if (!item->exists)
		return;
	if (strcmp(item->owner, lm->owner) != 0)
		lm_note_other_client(lock);
	else if (lock->run_end == 0 && lock->doublings < RUN_DOUBLINGS)
		lock->doublings++;
}

/*
 * To be called before an acquire.  If the lock was free only for a moment, because no session
 * waited just then, others had no chance to get it, and the run goes on; else a new run begins.
 */
void
lm_resume_run(int64_t now, lm_lock *lock)
{
	if (lock->let_go_at != 0 && now - lock->let_go_at >= STAY_BACK_US)
		new_run(lock);
}

/* The holder has let go: a run begins, or goes on. */
void
lm_note_let_go(int64_t now, lm_lock *lock)
{
	if (lock->run_end == 0)
		lock->run_end = now + (RUN_US >> (RUN_DOUBLINGS - lock->doublings));
	lock->let_go_at = now;
}

bool
lm_in_run(int64_t now, const lm_lock *lock)
{
	return now < lock->run_end;
}

/* Ends the run: this cluster's waiters stay back. */
void
lm_end_run(int64_t now, lm_lock *lock)
{
	lock->stay_back_until = now + STAY_BACK_US;
	new_run(lock);
}
