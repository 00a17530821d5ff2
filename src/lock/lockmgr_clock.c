/*-------------------------------------------------------------------------
 *
 * lockmgr_clock.c
 *	  The time in versions: a dead holder is found at once, by DynamoDB's clock.
 *
 * A version that gives belief has DynamoDB's time of the moment when the first copy of
 * its write is sent, as late as that clock can be, also by the newest reply, and LATER_US.
 * Every writer replaces the version, so no time outlives its write.
 *
 * A contender takes a version for dead if one reply shows it, and has a Date that is past
 * that time, the lease, and a slack.  The holder, in turn, ends its belief by the Date of
 * the reply that confirms the write: our estimate of DynamoDB's clock may be too early,
 * because a hypervisor has stopped the machine, and then its belief is short instead.
 * See "Time in the version" in doc/internals/protocol.md.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/lockmgr_private.h"

#define SECOND		INT64_C(1000000)
#define DATE_MAX	INT64_C(253402300800)	/* start of the year 10000: no Date is later */
#define LATER_US	SECOND		/* replies from other front ends do not cut belief short */

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

/* The reply's Date in microseconds; 0: it has none, or one that no clock shows. */
static int64_t
date_of(const dynamo_reply *reply)
{
	return reply->date_s > 0 && reply->date_s < DATE_MAX ? reply->date_s * SECOND : 0;
}

/*
 * May the reply's Date be used to take a lock over, and our wall clock be wrong by no
 * more than the slack?  A Date has whole seconds, and is of a moment between sending
 * and receipt.
 */
static lockmgr_veto
veto_of(const lockmgr *lm, const dynamo_reply *reply, int64_t on_its_way)
{
	int64_t		date_us = date_of(reply);

	if (date_us == 0)
		return VETO_NO_DATE;
	return date_us - reply->wall_us > lm->slack_us ||
		reply->wall_us - on_its_way - date_us - SECOND > lm->slack_us ?
		VETO_WALL_CLOCK : VETO_NONE;
}

/* How far DynamoDB's clock is ahead of ours, at most, by the reply that is handled now. */
static int64_t
offset_by_reply(const lockmgr *lm)
{
	return lm->date_us != 0 ? lm->date_us + SECOND - lm->date_sent : 0;
}

/* The reply to a request that was sent then is handled from now on. */
void
lm_begin_reply(lockmgr *lm, int64_t now, const dynamo_reply *reply, int64_t sent)
{
	if (reply->status == DYNAMO_OK || reply->status == DYNAMO_CONDITION_FAILED)
		lm->veto = veto_of(lm, reply, now - sent);
	lm->date_us = date_of(reply);
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
 * The pending write is sent for the first time: puts the time into its version, if it
 * gives belief.  While a renewal is under way the older belief goes on, so a renewal's
 * time is no earlier than what the reply that confirmed that belief implies; if that had
 * no Date, the renewal gets none.
 */
void
lm_stamp(const lockmgr *lm, struct lease *l)
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
	/* Rounded up. */
	uuid_put_time(pending->version, (pending->first_sent + offset + 999) / 1000);
}

/*
 * The pending write is confirmed by the reply that is handled now.  Its lease counts
 * from its first copy, or, if that is earlier, from when DynamoDB's clock, by this reply,
 * was at the time in its version.
 */
void
lm_count_lease(const lockmgr *lm, struct lease *l)
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

/* When the lease ends for who believes in it, a margin aside. */
int64_t
lm_believed_end(const struct lease *l)
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
 * A take-over was refused.  If it was by DynamoDB's clock, we have seen an old state of
 * the item, so the next poll is consistent.
 */
void
lm_refused_by_clock(lm_lock *lock)
{
	lock->read_consistently |= lock->seen && lock->expired;
	for (int i = 0; lock->shared != NULL && i < lock->shared->count; i++)
		lock->read_consistently |= lock->shared->entries[i].expired;
}
