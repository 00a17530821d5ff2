/*-------------------------------------------------------------------------
 *
 * journal.h
 *	  The journal: which locks this incarnation may hold, in a file, for the
 *	  incarnation after it.
 *
 * For the worker only.  When shared memory is made anew, after a
 * crash or a start, nobody knows any more what was held.  The journal does:
 * pg_stat_tmp/ddblock.INCARNATION lists the names.  A name stands there before
 * the first acquire that carries it leaves, until its lease is free, so the list
 * may be too long.  It is too short only for a copy of a request that arrives
 * after its lease was given up: that is free one lease later.  A new incarnation frees what the
 * journals of earlier ones list, each lock on the condition that its item still
 * bears that incarnation's ownerName: see worker_journal.c.
 *
 * That nobody believes any more in what such a journal lists follows from this:
 *
 *	 - It was written in this very data directory: device and inode are the same.
 *	   A copy has another inode.  The inode of a directory that was removed
 *	   is not used again while a process works in it, as all of PostgreSQL's do.
 *	 - It was written since this machine started: the boot id is the same.  So a
 *	   snapshot of the disk tells nothing to another machine.
 *	 - A data directory has one set of processes.  The postmaster makes new shared
 *	   memory after a crash only when its last child is gone; another postmaster
 *	   does not start while a single process is attached to the old memory,
 *	   orphans of a killed postmaster included, even if postmaster.pid was
 *	   removed: the memory's key comes from the directory's inode.
 *
 * What defeats it is a copy of a running machine with its memory: same boot id,
 * same device, same inode, and both go on.
 *
 * Why pg_stat_tmp: base backups and pg_rewind leave its contents out, in 15 as
 * in 18, and since 15 the server itself neither keeps nor removes anything
 * there.  Why no fsync: the file is read by the same kernel that was told to
 * write it, or not at all.  Why not mapped: on a full disk a write fails, where
 * a mapping would kill the worker, and so all sessions.
 *
 * Without a journal, locks of a dead incarnation are free one lease later.  So
 * no failure here is an error: it is logged once, and the worker goes on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_WORKER_JOURNAL_H
#define DDBLOCK_WORKER_JOURNAL_H

#include "postgres.h"

#include "lock/journal_record.h"

/* A journal of an incarnation that is dead. */
typedef struct DeadJournal
{
	struct DeadJournal *next;
	char		path[MAXPGPATH];
	int			fd;
	char		owner[DYNAMO_OWNER_SIZE];
	uint32		slot_count;
	uint32		damaged;		/* slots found so by JournalNextName() */
} DeadJournal;

/* Starts this incarnation's journal, or writes it anew from the segment. */
extern void JournalStart(const journal_table *table);

/* The lease of that index is for this lock; is free. */
extern void JournalList(uint32 index, const char *name, size_t name_len);
extern void JournalUnlist(uint32 index);

/* Nothing is held, and nobody comes to hold anything. */
extern void JournalRemove(void);

/*
 * Returns the journals of dead incarnations, in the current memory context.
 * Those that are to be ignored are told in the log if it is to say so.
 */
extern DeadJournal *JournalFindDead(bool say);

/*
 * Reads on from *number for a name that is listed: true if there is one, with
 * its slot's number.
 */
extern bool JournalNextName(DeadJournal *journal, uint32 *number, journal_slot *slot);

/* The lock is freed, or was not held. */
extern void JournalStrike(const DeadJournal *journal, uint32 number);

/* Closes the journal and removes its file. */
extern void JournalDiscard(DeadJournal *journal);

#endif							/* DDBLOCK_WORKER_JOURNAL_H */
