/*-------------------------------------------------------------------------
 *
 * journal_record.h
 *	  The format of a journal file: a header, and a slot for each lease.
 *
 * worker/journal.c reads and writes the files.  A file is used only on the machine
 * and during the boot in which it was written, so it has the machine's byte order
 * and this compiler's layout.
 *
 * Checksums detect incomplete writes, by a killed process or on a full disk.  A
 * slot's checksum covers its number, too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_LOCK_JOURNAL_RECORD_H
#define DDBLOCK_LOCK_JOURNAL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dynamo/dynamo.h"

#define JOURNAL_TEXT_SIZE	1100	/* a URL, a table's ARN, a sort key's value */
#define JOURNAL_KEY_SIZE	256
#define JOURNAL_BOOT_SIZE	40

/* Which lock table the leases are in. */
typedef struct journal_table
{
	char		url[JOURNAL_TEXT_SIZE];
	char		region[64];
	char		name[JOURNAL_TEXT_SIZE];
	char		partition_key[JOURNAL_KEY_SIZE];
	char		sort_key[JOURNAL_KEY_SIZE];
	char		sort_value[JOURNAL_TEXT_SIZE - 1];
	char		sort_separator; /* zero: none */
} journal_table;

/* The header: who wrote the file.  Zero it before filling it in. */
typedef struct journal_header
{
	uint32_t	crc;			/* of the following fields */
	uint32_t	magic;
	uint32_t	format;
	uint32_t	slot_count;
	uint64_t	device;			/* the data directory's */
	uint64_t	inode;
	char		boot_id[JOURNAL_BOOT_SIZE];
	char		owner[DYNAMO_OWNER_SIZE];	/* the incarnation's ownerName */
	journal_table table;
} journal_header;

/*
 * A slot of a lease, with the name of its lock.  A slot is empty if name_len is 0, or if it is
 * beyond the end of the file.
 */
typedef struct journal_slot
{
	uint32_t	crc;			/* of the following fields, up to the name's end */
	uint32_t	number;
	uint32_t	name_len;
	char		name[DYNAMO_NAME_MAX];
} journal_slot;

typedef enum journal_content
{
	JOURNAL_EMPTY,
	JOURNAL_LISTED,
	JOURNAL_DAMAGED
} journal_content;

/* Fills in the header's magic number, format and checksum. */
extern void journal_seal(journal_header *header);

/* Is this a valid header?  bytes: the number of bytes that were read from the file. */
extern bool journal_is_whole(const journal_header *header, size_t bytes);

/*
 * Why the leases of "theirs" must not be freed by "ours"; NULL if both have the
 * same boot, data directory and table.
 */
extern const char *journal_differs(const journal_header *theirs,
								   const journal_header *ours);

extern uint64_t journal_slot_offset(uint32_t number);

/* Fills in a slot; returns the number of bytes to write. */
extern size_t journal_fill_slot(journal_slot *slot, uint32_t number,
								const char *name, size_t name_len);

/* Reads a slot; bytes: the number of bytes that were read from the file. */
extern journal_content journal_read_slot(const journal_slot *slot,
										 uint32_t number, size_t bytes);

#endif							/* DDBLOCK_LOCK_JOURNAL_RECORD_H */
