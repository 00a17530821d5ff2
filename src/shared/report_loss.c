/*-------------------------------------------------------------------------
 *
 * report_loss.c
 *	  Each loss of a lease is counted and logged once.
 *
 * The worker's timer and the session's expire at the same deadline, and either
 * process may be stopped, or gone, before it has reported the loss.  So each
 * hold in the directory has a word (untold_loss) that contains the hold's mark until its loss is
 * reported.  A process that notices the loss replaces the mark with 0, in one step with checking
 * that the mark is there; if that succeeds, the process reports the loss.
 *
 * The mark is mailbox_mark(), which is unique.  So a process that is late does not report the loss
 * of a later hold in the same entry.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "shared/shared.h"

#define READS_MAX 1000

/* Which event counts the loss?  LOSS_STOOD_STILL: no renewal was confirmed in time. */
static SegmentEvent
event_of(lease_loss loss)
{
	switch (loss)
	{
		case LOSS_TAKEN:
			return EVENT_LOST_TAKEN;
		case LOSS_RELEASED:
			return EVENT_LOST_RELEASED;
		case LOSS_DELETED:
			return EVENT_LOST_DELETED;
		case LOSS_AT_MOST:
			return EVENT_LOST_AT_MOST;
		case LOSS_NONE:
		case LOSS_UNREACHABLE:
		case LOSS_STOOD_STILL:
		case LOSS_RESIGNED:
			break;
	}
	return EVENT_LOST_UNREACHABLE;
}

void
LossTell(uint32 hold_index, lockmgr_session session, uint64 seq, const char *name,
		 lease_loss loss, const char *why)
{
	const saved_hold *h = &segment_holds[hold_index].hold;
	const MailboxSlot *slot = &segment_slots[session.slot];
	SegmentLoss *last = &segment->last_loss;
	uint64		mark = mailbox_mark(session, seq);
	uint32		changes;
	int			pid = slot->pid;
	const char *database = slot->database;	/* in UTF-8, as is user */
	const char *user = slot->user;

	if (!shared_compare_exchange(&segment_holds[hold_index].untold_loss, &mark, 0))
		return;
	/* Only the worker tells the loss of a detached hold: the slot may be another session's. */
	if (h->ends_at != 0)
	{
		pid = h->holder.pid;
		database = h->holder.database;
		user = h->holder.user;
	}
	SegmentCount(event_of(loss));

	/*
	 * Writes the loss for ddb_stats.  loss_changes is odd while a process writes one.  Then another
	 * process does not write its own: of two losses at the same moment, either may be the last.
	 */
	changes = shared_read(&segment->loss_changes);
	if (changes % 2 == 0 &&
		shared_compare_exchange(&segment->loss_changes, &changes, changes + 1))
	{
		shared_write_barrier();
		last->at = GetCurrentTimestamp();
		last->pid = pid;
		strlcpy(last->database, database, NAMEDATALEN);
		strlcpy(last->user, user, NAMEDATALEN);
		strlcpy(last->name, name, sizeof(last->name));
		strlcpy(last->why, why, sizeof(last->why));
		shared_end_change(&segment->loss_changes);
	}
	ereport(LOG_SERVER_ONLY,
			(errmsg("the lease of lock \"%s\" is lost: %s", Utf8Quiet(name), why),
			 h->leadership ? errdetail("It was held by this cluster itself, to lead.") :
			 errdetail("It was held by process %d, user \"%s\", database \"%s\".",
					   pid, user, database),
			 errhidestmt(true)));
}

/* A process may be stopped while it writes a loss, so a reader does not try for ever. */
bool
LossLast(SegmentLoss *copy)
{
	for (int i = 0; i < READS_MAX; i++)
	{
		uint32		before = shared_begin_read(&segment->loss_changes);

		*copy = segment->last_loss;
		if (shared_end_read(&segment->loss_changes, before))
			return before != 0;
	}
	return false;
}
