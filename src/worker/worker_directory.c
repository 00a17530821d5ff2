/*-------------------------------------------------------------------------
 *
 * worker_directory.c
 *	  Leases, holds and watches in the segment, as the lock manager has them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "shared/segment.h"
#include "shared/shared.h"
#include "worker/worker.h"

/* Saves a lease in the segment, and its name in the journal. */
void
WorkerSave(void *arg, uint32 index, const lease *lease, const char *name,
		   size_t name_len)
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
	 * Sessions must know a sooner deadline: we may be stopped when it comes.  A session that
	 * gets its first hold on the lease now reads the new one.
	 */
	for (uint32 i = 0; sooner && i < segment->max_leases; i++)
	{
		const hold *hold = &segment_holds[i].hold;

		if (hold->session.generation != 0 && hold->lease_index == index &&
			hold->lease_generation == lease->generation)
			WorkerInterrupt(hold->session);
	}

	/* What works under a detached hold may outlive this server's crash. */
	if (lease->state == LEASE_FREE || lease->detached)
		JournalUnlist(index);
	else if (name != NULL || was_detached)
		JournalList(index, entry->name, strlen(entry->name));
}

void
WorkerSaveHold(void *arg, uint32 index, const hold *hold)
{
	HoldEntry  *entry = &segment_holds[index];
	bool		was = entry->hold.session.generation != 0;
	bool		is = hold->session.generation != 0;

	/* A hold that is lost has been logged as lost. */
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
		LossExpect(entry, hold->session, hold->seq);
	}
	entry->hold = *hold;
	shared_end_change(&entry->changes);
}

void
WorkerWaits(void *arg, lockmgr_session session, uint64 seq, uint32 watch)
{
	MailboxSlot *slot = &segment_slots[session.slot];

	shared_write(&slot->watch, watch);
	shared_write(&slot->waiting_place, ++segment->waits);
	pg_write_barrier();
	shared_write(&slot->waiting_seq, seq);
}

void
WorkerWatch(void *arg, uint32 watch, const lockmgr_watch *what)
{
	shared_begin_change(&segment_watches[watch].changes);
	segment_watches[watch].what = *what;
	shared_end_change(&segment_watches[watch].changes);
}
