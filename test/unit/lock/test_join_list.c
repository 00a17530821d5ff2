/*-------------------------------------------------------------------------
 *
 * test_join_list.c
 *	  The value of ddblock.join_locks.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "lock/join_list.h"

#include <string.h>

/* Reads the whole list; returns how many entries it has, or -1. */
static int
entries_of(const char *list, join_entry *entries)
{
	const char *wrong;
	int			count = 0;

	while (join_list_next(&list, &entries[count], &wrong))
		count++;
	return wrong == NULL ? count : -1;
}

TEST(entries_come_in_order)
{
	join_entry	entries[4];

	assert_int_equal(entries_of("12:a,9223372036854775807:b/c:d", entries), 2);
	assert_int_equal(entries[0].token, 12);
	assert_string_equal(entries[0].name, "a");
	assert_true(entries[1].token == INT64_MAX);
	assert_string_equal(entries[1].name, "b/c:d");
	assert_int_equal(entries_of("", entries), 0);
}

TEST(any_byte_may_be_written_in_hexadecimal)
{
	join_entry	entries[2];

	assert_int_equal(entries_of("1:%41%2c%2C%25%20%c3%a9x", entries), 1);
	assert_string_equal(entries[0].name, "A,,% \xc3\xa9x");
	assert_int_equal(entries_of("1:%Aa%fF%90%01", entries), 1);
	assert_string_equal(entries[0].name, "\xaa\xff\x90\x01");
}

TEST(what_is_no_list_is_refused)
{
	static const char *const lists[] = {
		"a", ":a", "1", "1:", "0:a", "-1:a", "+1:a", " 1:a", "1 :a", "9223372036854775808:a",
		"99999999999999999999:a", "1:a,", ",1:a", "1:a,,2:b", "1:a,b", "1:%", "1:%4", "1:%4g",
		"1:%4G", "1:%4`", "1:%4@", "1:%4/", "1:%4:", "1:%g4",
		"1:%00", "1:a b", "1:a\tb", "1:\xc3\xa9", "1:\x7f",
	};
	join_entry	entries[4];

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		assert_int_equal(entries_of(lists[i], entries), -1);
}

TEST(a_name_may_be_as_long_as_a_lock_s)
{
	char		list[DYNAMO_NAME_MAX + 8] = "1:";
	join_entry	entries[2];

	memset(list + 2, 'x', DYNAMO_NAME_MAX);
	assert_int_equal(entries_of(list, entries), 1);
	assert_int_equal(strlen(entries[0].name), DYNAMO_NAME_MAX);
	list[DYNAMO_NAME_MAX + 2] = 'x';
	assert_int_equal(entries_of(list, entries), -1);
}
