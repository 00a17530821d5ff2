/*-------------------------------------------------------------------------
 *
 * journal_record.c
 *	  The format of a journal file: a header, and a slot for each lease.
 *
 *-------------------------------------------------------------------------
 */
#include "lock/journal_record.h"

#include <string.h>

#include "dynamo/dynamo.h"

#define MAGIC	0x4a424444		/* "DDBJ" */
#define FORMAT	1

/* The checksum of a record of len bytes, of which the checksum is the first field. */
static uint32_t
crc_of(const void *record, size_t len)
{
	return crc32_of((const char *) record + sizeof(uint32_t), len - sizeof(uint32_t));
}

static size_t
slot_size(size_t name_len)
{
	return offsetof(journal_slot, name) + name_len;
}

void
journal_seal(journal_header *header)
{
	header->magic = MAGIC;
	header->format = FORMAT;
	header->crc = crc_of(header, sizeof(*header));
}

bool
journal_is_whole(const journal_header *header, size_t bytes)
{
	return bytes == sizeof(*header) && header->magic == MAGIC &&
		header->format == FORMAT && header->crc == crc_of(header, sizeof(*header));
}

const char *
journal_differs(const journal_header *theirs, const journal_header *ours)
{
	if (memcmp(theirs->boot_id, ours->boot_id, sizeof(ours->boot_id)) != 0)
		return "the machine has been restarted since";
	if (theirs->device != ours->device || theirs->inode != ours->inode)
		return "it was written in another data directory";
	if (memcmp(&theirs->table, &ours->table, sizeof(ours->table)) != 0)
		return "it belongs to another lock table";
	return NULL;
}

uint64_t
journal_slot_offset(uint32_t number)
{
	return sizeof(journal_header) + (uint64_t) number * sizeof(journal_slot);
}

size_t
journal_fill_slot(journal_slot *slot, uint32_t number, const char *name, size_t name_len)
{
	slot->number = number;
	slot->name_len = (uint32_t) name_len;
	memcpy(slot->name, name, name_len);
	slot->crc = crc_of(slot, slot_size(name_len));
	return slot_size(name_len);
}

journal_content
journal_read_slot(const journal_slot *slot, uint32_t number, size_t bytes)
{
	if (bytes < slot_size(0) || slot->name_len == 0)
		return JOURNAL_EMPTY;
	if (slot->number != number || slot->name_len > sizeof(slot->name) ||
		bytes < slot_size(slot->name_len) ||
		slot->crc != crc_of(slot, slot_size(slot->name_len)))
		return JOURNAL_DAMAGED;
	return JOURNAL_LISTED;
}
