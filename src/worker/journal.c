/*-------------------------------------------------------------------------
 *
 * journal.c
 *	  The journal's files: see worker.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/string.h"
#include "pgstat.h"
#include "storage/fd.h"

#include "worker/worker.h"

#define DIRECTORY PG_STAT_TMP_DIR
#define PREFIX "ddblock."
#define UNFINISHED ".new"
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

static int	own_fd = -1;
static char own_path[MAXPGPATH];
static journal_header ours;

static bool
describe_us(void)
{
	const dynamo_table *table = WorkerTable();
	journal_table *where = &ours.table;
	int			fd;
	ssize_t		len = -1;
	struct stat st;

	memset(&ours, 0, sizeof(ours));
	fd = BasicOpenFile(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
	{
		len = read(fd, ours.boot_id, sizeof(ours.boot_id) - 1);
		close(fd);
	}
	if (len <= 0 || stat(".", &st) != 0)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not identify this machine or its data directory: %m"),
				 errdetail("After a crash, locks will be free one lease later.")));
		return false;
	}
	ours.device = st.st_dev;
	ours.inode = st.st_ino;
	ours.slot_count = segment->max_leases;
	strlcpy(ours.owner, segment->owner, sizeof(ours.owner));

	/* The header has those settings of the table that do not change while the server runs. */
	strlcpy(where->url, segment->place.url, sizeof(where->url));
	strlcpy(where->region, segment->place.region, sizeof(where->region));
	strlcpy(where->name, table->name, sizeof(where->name));
	strlcpy(where->partition_key, table->partition_key, sizeof(where->partition_key));
	if (table->sort_key != NULL)
	{
		strlcpy(where->sort_key, table->sort_key, sizeof(where->sort_key));
		strlcpy(where->sort_value, table->sort_value, sizeof(where->sort_value));
		where->sort_separator = table->sort_separator;
	}
	journal_seal(&ours);
	return true;
}

static bool
write_all(int fd, const void *bytes, size_t len, uint64 offset)
{
	ssize_t		written;

	do
		written = pwrite(fd, bytes, len, offset);
	while (written < 0 && errno == EINTR);
	if (written >= 0 && written < (ssize_t) len)
		errno = ENOSPC;
	return written == (ssize_t) len;
}

static bool
write_slot(int fd, uint32 number, const char *name, size_t name_len)
{
	journal_slot slot;
	size_t		len = journal_fill_slot(&slot, number, name, name_len);

	return write_all(fd, &slot, len, journal_slot_offset(number));
}

/* Writes the header, and the names of the leases that are in the segment and not detached. */
static bool
write_file(int fd)
{
	if (!write_all(fd, &ours, sizeof(ours), 0))
		return false;
	for (uint32 i = 0; i < segment->max_leases; i++)
	{
		const LeaseEntry *entry = &segment_leases[i];

		if (entry->lease.state != LEASE_FREE && !entry->lease.detached &&
			!write_slot(fd, i, entry->name, strlen(entry->name)))
			return false;
	}
	return true;
}

/* Logs only the first failure: on a full disk, some writes fail, and others between them do not. */
static void
complain(void)
{
	static bool complained = false;

	if (complained)
		return;
	complained = true;
	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not write journal \"%s\": %m", own_path),
			 errdetail("After a crash, locks will be free one lease later.")));
}

void
JournalStart(void)
{
	char		unfinished[MAXPGPATH];
	int			fd;

	if (!describe_us())
		return;
	snprintf(own_path, sizeof(own_path), DIRECTORY "/" PREFIX "%s", segment->incarnation);
	snprintf(unfinished, sizeof(unfinished), "%s" UNFINISHED, own_path);

	/* The journal that the last worker wrote stays until the new one is complete. */
	fd = BasicOpenFile(unfinished, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC);
	if (fd >= 0 && write_file(fd) && rename(unfinished, own_path) == 0)
	{
		own_fd = fd;
		return;
	}
	complain();
	if (fd >= 0)
	{
		close(fd);
		(void) unlink(unfinished);
	}
}

void
JournalList(uint32 index, const char *name, size_t name_len)
{
	if (own_fd >= 0 && !write_slot(own_fd, index, name, name_len))
		complain();
}

void
JournalRemove(void)
{
	if (own_fd < 0)
		return;
	close(own_fd);
	own_fd = -1;
	(void) unlink(own_path);
}

/*
 * If a lock with a detached hold stayed in the list, the next incarnation would release it at once,
 * although somebody relies on it.  So if the name cannot be removed, the whole journal goes.
 */
void
JournalUnlist(uint32 index)
{
	if (own_fd < 0 || write_slot(own_fd, index, "", 0))
		return;
	complain();
	JournalRemove();
}

/*
 * May we release the locks that this journal lists?  If not, the file is removed if it is
 *
 *	 - a journal of this data directory from before a reboot;
 *	 - damaged, and not an unfinished file.
 *
 * The file stays if it is
 *
 *	 - another directory's journal, or an unfinished file that is damaged.  Reason: pg_stat_tmp may
 *	   be a link, and in a copied data directory the link leads to the files of the original, which
 *	   may be running;
 *	 - a journal of another table: the settings may come back.
 */
static bool
is_ours_to_free(const journal_header *header, ssize_t bytes, const char *path, bool say)
{
	bool		whole = journal_is_whole(header, bytes);
	const char *why = whole ? journal_differs(header, &ours) : "it is damaged";
	bool		useless;

	if (whole && strcmp(header->owner, ours.owner) == 0)
		return false;			/* our own journal, under another name */
	if (why == NULL)
		return true;
	if (say)
		ereport(LOG, (errmsg("ignored journal \"%s\": %s", path, why)));
	if (whole)
		useless = header->device == ours.device && header->inode == ours.inode &&
			strcmp(header->boot_id, ours.boot_id) != 0;
	else
		useless = !pg_str_endswith(path, UNFINISHED);
	if (useless)
		(void) unlink(path);
	return false;
}

static DeadJournal *
open_dead(const char *path, bool say)
{
	DeadJournal *journal;
	journal_header header;
	int			fd = BasicOpenFile(path, O_RDWR | O_CLOEXEC);
	ssize_t		bytes = fd < 0 ? -1 : pread(fd, &header, sizeof(header), 0);

	if (bytes < 0)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not read journal \"%s\": %m", path)));
	if (bytes < 0 || !is_ours_to_free(&header, bytes, path, say))
	{
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	journal = palloc0(sizeof(DeadJournal));
	strlcpy(journal->path, path, sizeof(journal->path));
	journal->fd = fd;
	strlcpy(journal->owner, header.owner, sizeof(journal->owner));
	journal->slot_count = header.slot_count;
	return journal;
}

DeadJournal *
JournalFindDead(bool say)
{
	DeadJournal *found = NULL;
	DIR		   *dir;
	struct dirent *entry;

	if (ours.magic == 0)
		return NULL;			/* describe_us() failed */
	dir = AllocateDir(DIRECTORY);
	while ((entry = ReadDirExtended(dir, DIRECTORY, LOG)) != NULL)
	{
		char		path[MAXPGPATH];
		DeadJournal *journal;

		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		snprintf(path, sizeof(path), DIRECTORY "/%s", entry->d_name);
		if (strcmp(path, own_path) == 0)
			continue;
		journal = open_dead(path, say);
		if (journal != NULL)
		{
			journal->next = found;
			found = journal;
		}
	}
	FreeDir(dir);
	return found;
}

bool
JournalNextName(DeadJournal *journal, uint32 *number, journal_slot *slot)
{
	for (; *number < journal->slot_count; ++*number)
	{
		ssize_t		bytes = pread(journal->fd, slot, sizeof(*slot),
								  journal_slot_offset(*number));

		if (bytes < 0)
		{
			journal->damaged++;
			continue;
		}
		if (bytes == 0)
			return false;		/* no slot of a higher number was written */
		switch (journal_read_slot(slot, *number, bytes))
		{
			case JOURNAL_LISTED:
				return true;
			case JOURNAL_DAMAGED:
				journal->damaged++;
				break;
			case JOURNAL_EMPTY:
				break;
		}
	}
	return false;
}

void
JournalStrike(const DeadJournal *journal, uint32 number)
{
	/* If this write fails, the next worker finds the name again, and the lock free. */
	(void) write_slot(journal->fd, number, "", 0);
}

void
JournalDiscard(DeadJournal *journal)
{
	close(journal->fd);
	(void) unlink(journal->path);
	pfree(journal);
}
