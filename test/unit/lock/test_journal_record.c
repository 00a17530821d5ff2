/*-------------------------------------------------------------------------
 *
 * test_journal_record.c
 *	  A journal is used only if it is complete and ours.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "lock/journal_record.h"

static journal_header
header_of_ours(void)
{
	journal_header header;

	memset(&header, 0, sizeof(header));
	header.slot_count = 1024;
	header.device = 64769;
	header.inode = 131077;
	strcpy(header.boot_id, "0b0d5b8e-1c4f-4d7a-9a55-3f1f6f2f9f01\n");
	strcpy(header.owner, "one/4e0d3c2b");
	strcpy(header.table.url, "http://127.0.0.1:8000");
	strcpy(header.table.region, "us-east-1");
	strcpy(header.table.name, "lockTable");
	strcpy(header.table.partition_key, "key");
	journal_seal(&header);
	return header;
}

TEST(a_header_with_any_byte_changed_is_not_whole)
{
	journal_header header = header_of_ours();

	assert_true(journal_is_whole(&header, sizeof(header)));
	for (size_t i = 0; i < sizeof(header); i++)
	{
		((unsigned char *) &header)[i] ^= 1;
		assert_false(journal_is_whole(&header, sizeof(header)));
		((unsigned char *) &header)[i] ^= 1;
	}
	assert_false(journal_is_whole(&header, sizeof(header) - 1));
	assert_false(journal_is_whole(&header, 0));
}

TEST(what_another_program_wrote_is_not_whole)
{
	journal_header header;

	memset(&header, 0, sizeof(header));
	assert_false(journal_is_whole(&header, sizeof(header)));
	memset(&header, 0xff, sizeof(header));
	assert_false(journal_is_whole(&header, sizeof(header)));
}

#define assert_differs(field_change, reason) \
	do { \
		journal_header theirs = header_of_ours(); \
		journal_header ours = header_of_ours(); \
		field_change; \
		assert_string_equal(journal_differs(&theirs, &ours), reason); \
	} while (0)

TEST(boot_directory_and_table_must_be_the_same)
{
	journal_header ours = header_of_ours();
	journal_header dead = header_of_ours();
	const char *table = "it belongs to another lock table";
	const char *directory = "it was written in another data directory";

	assert_null(journal_differs(&dead, &ours));
	strcpy(dead.owner, "one/another incarnation");
	dead.slot_count = 3;
	assert_null(journal_differs(&dead, &ours));

	assert_differs(theirs.boot_id[35] = '2', "the machine has been restarted since");
	assert_differs(theirs.device++, directory);
	assert_differs(theirs.inode++, directory);
	assert_differs(theirs.table.url[7] = '2', table);
	assert_differs(theirs.table.region[0] = 'e', table);
	assert_differs(theirs.table.name[0] = 'L', table);
	assert_differs(theirs.table.partition_key[0] = 'K', table);
	assert_differs(theirs.table.sort_key[0] = 's', table);
	assert_differs(theirs.table.sort_value[0] = 's', table);
	assert_differs(theirs.table.sort_separator = '#', table);
}

TEST(a_slot_gives_its_name_back)
{
	static char name[DYNAMO_NAME_MAX];
	journal_slot slot;
	size_t		lengths[] = {1, 6, DYNAMO_NAME_MAX};

	memset(name, 'n', sizeof(name));
	for (size_t i = 0; i < COUNT_OF(lengths); i++)
	{
		size_t		size = journal_fill_slot(&slot, 7, name, lengths[i]);

		assert_true(size <= sizeof(slot));
		assert_int_equal(journal_read_slot(&slot, 7, sizeof(slot)), JOURNAL_LISTED);
		assert_int_equal(journal_read_slot(&slot, 7, size), JOURNAL_LISTED);
		assert_int_equal(slot.name_len, lengths[i]);
		assert_memory_equal(slot.name, name, lengths[i]);
	}
}

TEST(an_unlisted_or_unwritten_slot_is_empty)
{
	journal_slot slot;
	size_t		size;

	/* At the end of the file nothing is read: this is the slot before. */
	journal_fill_slot(&slot, 7, "orders", 6);
	assert_int_equal(journal_read_slot(&slot, 7, 0), JOURNAL_EMPTY);
	size = journal_fill_slot(&slot, 7, "", 0);
	assert_int_equal(journal_read_slot(&slot, 7, size), JOURNAL_EMPTY);
	assert_int_equal(journal_read_slot(&slot, 7, sizeof(slot)), JOURNAL_EMPTY);

	memset(&slot, 0, sizeof(slot)); /* a hole in the file */
	assert_int_equal(journal_read_slot(&slot, 7, sizeof(slot)), JOURNAL_EMPTY);
	assert_int_equal(journal_read_slot(&slot, 7, 0), JOURNAL_EMPTY);
}

TEST(a_damaged_slot_lists_nothing)
{
	journal_slot slot;
	size_t		size = journal_fill_slot(&slot, 7, "orders", 6);

	assert_int_equal(journal_read_slot(&slot, 8, size), JOURNAL_DAMAGED);
	assert_int_equal(journal_read_slot(&slot, 7, size - 1), JOURNAL_DAMAGED);
	assert_int_equal(journal_read_slot(&slot, 7, size - 6), JOURNAL_DAMAGED);
	for (size_t i = 0; i < size; i++)
	{
		((unsigned char *) &slot)[i] ^= 1;
		assert_int_equal(journal_read_slot(&slot, 7, size), JOURNAL_DAMAGED);
		((unsigned char *) &slot)[i] ^= 1;
	}
	slot.name_len = UINT32_MAX;
	assert_int_equal(journal_read_slot(&slot, 7, sizeof(slot)), JOURNAL_DAMAGED);
}

TEST(slots_do_not_overlap)
{
	assert_true(journal_slot_offset(0) >= sizeof(journal_header));
	assert_true(journal_slot_offset(1) >= journal_slot_offset(0) + sizeof(journal_slot));
	assert_true(journal_slot_offset(99999) > UINT64_C(99999) * DYNAMO_NAME_MAX);
}
