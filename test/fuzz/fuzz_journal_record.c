/*-------------------------------------------------------------------------
 *
 * fuzz_journal_record.c
 *	  Any bytes as a journal file: no crash, what is no record is not taken for one,
 *	  and what was written is read.
 *
 * The first byte chooses header or slot, the second the slot's number; the rest is the
 * record, which the third byte may seal first, so that the fuzzer gets past the checksum.
 * The record lies in a block of its exact size, so that ASan sees a read beyond it.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lock/journal_record.h"

int			LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check(bool promise)
{
	if (!promise)
		abort();
}

static void
try_header(const uint8_t *bytes, size_t size, bool seal)
{
	journal_header *header = calloc(1, sizeof(*header));
	journal_header *other;
	size_t		used = size < sizeof(*header) ? size : sizeof(*header);

	memcpy(header, bytes, used);
	if (seal)
		journal_seal(header);
	check(!journal_is_whole(header, sizeof(*header) - 1));
	check(journal_is_whole(header, sizeof(*header)) || !seal);
	check(journal_differs(header, header) == NULL);
	if (seal)
	{
		/* Each byte counts: of the fields, by the checksum; of the table, also by itself. */
		size_t		at = size % sizeof(*header);

		other = malloc(sizeof(*other));
		memcpy(other, header, sizeof(*other));
		((uint8_t *) other)[at] ^= 1;
		check(!journal_is_whole(other, sizeof(*other)));
		check(at < offsetof(journal_header, table) || journal_differs(other, header) != NULL);
		free(other);
	}
	free(header);
}

static void
try_slot(const uint8_t *bytes, size_t size, uint32_t number)
{
	journal_slot *slot;
	journal_content content;
	size_t		used = size < sizeof(*slot) ? size : sizeof(*slot);
	size_t		name_len = size < DYNAMO_NAME_MAX ? size : DYNAMO_NAME_MAX;
	uint8_t    *file = calloc(1, used > 0 ? used : 1);

	memcpy(file, bytes, used);
	content = journal_read_slot((const journal_slot *) file, number, used);
	if (content == JOURNAL_LISTED)
		check(((const journal_slot *) file)->number == number &&
			  used >= offsetof(journal_slot, name) + ((const journal_slot *) file)->name_len);
	free(file);

	if (name_len == 0)
		return;
	slot = malloc(sizeof(*slot));
	used = journal_fill_slot(slot, number, (const char *) bytes, name_len);
	check(used <= sizeof(*slot));
	check(journal_read_slot(slot, number, used) == JOURNAL_LISTED);
	check(journal_read_slot(slot, number, sizeof(*slot)) == JOURNAL_LISTED);
	check(journal_read_slot(slot, number + 1, used) == JOURNAL_DAMAGED);
	check(journal_read_slot(slot, number, used - 1) == JOURNAL_DAMAGED);
	slot->name[number % name_len] ^= 0x20;
	check(journal_read_slot(slot, number, used) == JOURNAL_DAMAGED);
	free(slot);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	if (size < 3)
		return 0;
	if (bytes[0] % 2 == 0)
		try_header(bytes + 3, size - 3, bytes[2] % 2 == 0);
	else
		try_slot(bytes + 3, size - 3, bytes[1]);
	return 0;
}
