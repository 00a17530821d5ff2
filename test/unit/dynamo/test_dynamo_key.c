/*-------------------------------------------------------------------------
 *
 * test_dynamo_key.c
 *	  Names and items belong together one to one.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "dynamo/dynamo.h"

#define LETTERS "a#-"
#define TEXT_MAX 6

static const dynamo_table no_sort = {.name = "t",.partition_key = "pk"};
static const dynamo_table one_sort = {
	.name = "t",.partition_key = "pk",.sort_key = "sk",.sort_value = "-"
};
static const dynamo_table separated = {
	.name = "t",.partition_key = "pk",.sort_key = "sk",.sort_value = "-",.sort_separator = '#'
};

/* Text number n of those that consist of LETTERS; false if it is longer than TEXT_MAX. */
static bool
make_text(char text[TEXT_MAX + 1], unsigned n)
{
	size_t		len = 0;

	for (; n > 0; n = (n - 1) / strlen(LETTERS))
	{
		if (len == TEXT_MAX)
			return false;
		text[len++] = LETTERS[(n - 1) % strlen(LETTERS)];
	}
	text[len] = '\0';
	return true;
}

static void
assert_key(const dynamo_table *table, const char *name, const char *partition, const char *sort)
{
	dynamo_key	key = dynamo_key_of(table, name, strlen(name));

	assert_int_equal(key.partition_len, strlen(partition));
	assert_memory_equal(key.partition, partition, key.partition_len);
	if (sort == NULL)
	{
		assert_null(key.sort);
		return;
	}
	assert_int_equal(key.sort_len, strlen(sort));
	assert_memory_equal(key.sort, sort, key.sort_len);
}

static const char *
wrong_of(const char *name)
{
	return dynamo_name_wrong(&separated, name, strlen(name));
}

TEST(the_first_separator_counts)
{
	assert_key(&separated, "orders#42", "orders", "42");
	assert_key(&separated, "orders#42#a", "orders", "42#a");
	assert_key(&separated, "orders", "orders", "-");
	assert_key(&one_sort, "orders#42", "orders#42", "-");
	assert_key(&no_sort, "orders#42", "orders#42", NULL);
}

TEST(wrong_names_are_refused)
{
	char		name[DYNAMO_SORT_MAX + 4] = "a#";

	assert_null(wrong_of("orders"));
	assert_null(wrong_of("orders#42"));
	assert_null(wrong_of("orders##"));
	assert_null(wrong_of("-"));
	assert_string_equal(wrong_of("#42"), "Its partition key, the part before the separator, is empty.");
	assert_string_equal(wrong_of("#"), "Its partition key, the part before the separator, is empty.");
	assert_string_equal(wrong_of("orders#"), "Its sort key, the part after the separator, is empty.");
	assert_string_equal(wrong_of("orders#-"), "Its sort key is the value of \"ddblock.sort_key_value\": "
						"this lock's name is the part before the separator.");
	memset(name + 2, 'x', DYNAMO_SORT_MAX);
	assert_null(wrong_of(name));
	name[DYNAMO_SORT_MAX + 2] = 'x';
	assert_string_equal(wrong_of(name),
						"Its sort key, the part after the separator, is longer than 1024 bytes.");
	assert_null(dynamo_name_wrong(&one_sort, "#", 1));
	assert_null(dynamo_name_wrong(&no_sort, "a#", 2));
}

/* From each name to its item and back, and from each item to its name and back. */
static int
assert_one_to_one(const dynamo_table *table)
{
	char		text[TEXT_MAX + 1];
	char		sort[TEXT_MAX + 1];
	char		name[DYNAMO_NAME_MAX + 1];
	int			names = 0;

	for (unsigned n = 1; make_text(text, n); n++)
	{
		dynamo_key	key = dynamo_key_of(table, text, strlen(text));
		char		partition[TEXT_MAX + 1];

		if (dynamo_name_wrong(table, text, strlen(text)) == NULL)
		{
			names++;
			memcpy(partition, key.partition, key.partition_len);
			partition[key.partition_len] = '\0';
			assert_true(key.sort == NULL || key.sort_len <= TEXT_MAX);
			if (key.sort != NULL)
			{
				memcpy(sort, key.sort, key.sort_len);
				sort[key.sort_len] = '\0';
			}
			assert_true(dynamo_key_name(table, partition, key.sort ? sort : NULL, name));
			assert_string_equal(name, text);
		}
		for (unsigned m = 1; table->sort_key != NULL && make_text(sort, m); m++)
		{
			if (!dynamo_key_name(table, text, sort, name))
				continue;
			assert_null(dynamo_name_wrong(table, name, strlen(name)));
			assert_key(table, name, text, sort);
		}
	}
	return names;
}

TEST(two_names_are_never_one_item_and_no_item_has_two_names)
{
	int			texts = 3 + 9 + 27 + 81 + 243 + 729;

	assert_int_equal(assert_one_to_one(&no_sort), texts);
	assert_int_equal(assert_one_to_one(&one_sort), texts);

	/*
	 * Without those that begin with "#", and of the others those that go on with the only
	 * "#" as their last, or with "#-" as their end after it.
	 */
	assert_int_equal(assert_one_to_one(&separated),
					 texts - (1 + 3 + 9 + 27 + 81 + 243) - (2 + 4 + 8 + 16 + 32) -
					 (2 + 4 + 8 + 16));
}

TEST(items_that_no_name_can_mean_have_none)
{
	static char partition[DYNAMO_NAME_MAX + 1];
	char		name[DYNAMO_NAME_MAX + 1];

	assert_false(dynamo_key_name(&separated, "orders#42", "-", name));
	assert_false(dynamo_key_name(&separated, "orders#42", "1", name));
	assert_false(dynamo_key_name(&one_sort, "orders", "42", name));

	memset(partition, 'x', sizeof(partition) - 1);
	assert_true(dynamo_key_name(&separated, partition, "-", name));
	assert_int_equal(strlen(name), DYNAMO_NAME_MAX);
	partition[DYNAMO_NAME_MAX - 2] = '\0';
	assert_true(dynamo_key_name(&separated, partition, "s", name));
	assert_int_equal(strlen(name), DYNAMO_NAME_MAX);
	assert_false(dynamo_key_name(&separated, partition, "st", name));
}

/* Whatever the separator is, it is one item. */
TEST(the_identity_of_the_table_is_no_lock)
{
	static const char identity[] = DYNAMO_IDENTITY_KEY;
	dynamo_table slash = separated;
	char		name[DYNAMO_NAME_MAX + 1];
	const dynamo_table *tables[] = {&no_sort, &one_sort, &separated, &slash};

	slash.sort_separator = '/';
	for (size_t i = 0; i < COUNT_OF(tables); i++)
	{
		const dynamo_table *table = tables[i];
		dynamo_key	key = dynamo_identity_key(table);

		assert_int_equal(key.partition_len, strlen(identity));
		assert_memory_equal(key.partition, identity, key.partition_len);
		assert_ptr_equal(key.sort, table->sort_key != NULL ? table->sort_value : NULL);
		assert_false(dynamo_key_name(table, identity, key.sort, name));
		if (table != &slash)
			assert_string_equal(dynamo_name_wrong(table, identity, strlen(identity)),
								"Its item has the identity of the lock table.");
	}
	assert_null(dynamo_name_wrong(&slash, identity, strlen(identity)));
	assert_true(dynamo_key_name(&separated, identity, "other", name));
	assert_true(dynamo_key_name(&no_sort, "ddblock/lock-tabl", NULL, name));
	assert_true(dynamo_key_name(&no_sort, "ddblock/lock-tables", NULL, name));
}

static dynamo_op
op_of(const dynamo_table *table, const char *prefix)
{
	return dynamo_scan_op(table, prefix, strlen(prefix));
}

TEST(a_prefix_with_a_partition_is_a_query)
{
	char		prefix[DYNAMO_SORT_MAX + 4] = "a#";

	assert_int_equal(op_of(&separated, "orders#"), DYNAMO_QUERY);
	assert_int_equal(op_of(&separated, "orders#4"), DYNAMO_QUERY);
	assert_int_equal(op_of(&separated, "orders"), DYNAMO_SCAN);
	assert_int_equal(op_of(&separated, ""), DYNAMO_SCAN);
	assert_int_equal(op_of(&one_sort, "orders#"), DYNAMO_SCAN);
	assert_int_equal(op_of(&no_sort, "orders#"), DYNAMO_SCAN);

	/* No name begins so, and no partition and no sort key may have this length. */
	assert_int_equal(op_of(&separated, "#4"), DYNAMO_SCAN);
	memset(prefix + 2, 'x', DYNAMO_SORT_MAX);
	assert_int_equal(op_of(&separated, prefix), DYNAMO_QUERY);
	prefix[2 + DYNAMO_SORT_MAX] = 'x';
	assert_int_equal(op_of(&separated, prefix), DYNAMO_SCAN);
}
