/*-------------------------------------------------------------------------
 *
 * journal.h
 *	  The journal: a file with the names of the locks that this incarnation may
 *	  hold, for the next incarnation.
 *
 * After a crash or a start shared memory is new and says nothing about earlier
 * locks.  The journal, pg_stat_tmp/ddblock.INCARNATION, lists their names.  The
 * worker writes a name before it sends the first acquire, and removes it when
 * the lease is free.  So the list may have names that are not held.  It lacks a
 * lock only if a copy of a request arrives after its lease was given up; that
 * lock is free one lease later.  The next incarnation bars the listed locks, and releases
 * those whose items still have the old incarnation's ownerName (worker_journal.c).
 *
 * Nobody relies on a lock in such a journal any more, because:
 *
 *	 - It was written in this very data directory: device and inode are the same.
 *	   A copy has another inode.  The kernel does not reuse the inode of a removed
 *	   directory while it is some process's working directory, and it is that of
 *	   every PostgreSQL process.
 *	 - It was written since this machine booted: the boot id is the same.  So
 *	   another machine ignores the journals in a snapshot of the disk.
 *	 - A data directory has one set of processes.  The postmaster makes new shared
 *	   memory after a crash only when its last child is gone; another postmaster
 *	   does not start while a single process is attached to the old memory,
 *	   orphans of a killed postmaster included, even if postmaster.pid was
 *	   removed: the memory's key comes from the directory's inode.
 *
 * This fails for a clone of a running machine with its memory: boot id, device
 * and inode are the same, and both go on.
 *
 * Why pg_stat_tmp: base backups and pg_rewind omit its contents, and since 15
 * the server itself keeps nothing there.  Why no fsync: only the kernel that took
 * the write reads the file.  Why no mapping: on a full disk write() fails, but a
 * page fault would kill the worker, and with it all sessions.
 *
 * Without a journal, locks of a dead incarnation are free one lease later.  So a
 * failure here is no error: the worker logs it once and goes on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_JOURNAL_H
#define DDBLOCK_WORKER_JOURNAL_H

#include "postgres.h"

#include "lock/journal_record.h"

/* The journal of a dead incarnation. */
typedef struct DeadJournal
{
	struct DeadJournal *next;
	char		path[MAXPGPATH];
	int			fd;
	char		owner[DYNAMO_OWNER_SIZE];
	uint32		slot_count;
	uint32		damaged;		/* damaged slots that JournalNextName() met */
} DeadJournal;

/* Writes this incarnation's journal with the leases that are in the segment. */
extern void JournalStart(const journal_table *table);

/* The lease of that index is for this lock. */
extern void JournalList(uint32 index, const char *name, size_t name_len);

/* The lease of that index is free or detached.  Removes the journal if it cannot say so. */
extern void JournalUnlist(uint32 index);

/* For a shutdown, when no lease is held, and none will be. */
extern void JournalRemove(void);

/*
 * Returns the journals of dead incarnations, in the current memory context.
 * With "say" it logs which journals it ignores, and why.
 */
extern DeadJournal *JournalFindDead(bool say);

/*
 * Finds the next listed name, from slot *number on, and sets *number to its
 * slot.  False at the journal's end.
 */
extern bool JournalNextName(DeadJournal *journal, uint32 *number, journal_slot *slot);

/* The lock is released, or was not held. */
extern void JournalStrike(const DeadJournal *journal, uint32 number);

/* Closes the journal and removes its file. */
extern void JournalDiscard(DeadJournal *journal);

#endif							/* DDBLOCK_WORKER_JOURNAL_H */
