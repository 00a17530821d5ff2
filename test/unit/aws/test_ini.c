/*-------------------------------------------------------------------------
 *
 * test_ini.c
 *	  Tests of aws/ini.c.
 *
 * The rules are those that the AWS SDKs share (aws-sdk tests of the profile
 * file parser) and, for files indented as a whole, those of the AWS CLI.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "aws/aws.h"

static ini_slice
slice(const char *text)
{
	return (ini_slice) {text, strlen(text)};
}

/* The value of a property of [profile foo]; NULL if there is none. */
static const char *
foo(const char *text, const char *property)
{
	static char value[256];

	assert_int_equal(ini_malformed_line(slice(text)), 0);
	switch (ini_get(slice(text), "profile", "foo", property, NULL,
					value, sizeof(value)))
	{
		case INI_FOUND:
			return value;
		case INI_ABSENT:
			assert_string_equal(value, "");
			return NULL;
		default:
			fail_msg("value is too long");
			return NULL;
	}
}

static const char *
foo_nested(const char *text, const char *property, const char *subproperty)
{
	static char value[256];
	ini_result	result;

	assert_int_equal(ini_malformed_line(slice(text)), 0);
	result = ini_get(slice(text), "profile", "foo", property, subproperty,
					 value, sizeof(value));
	return result == INI_FOUND ? value : NULL;
}

TEST(reads_properties_of_the_right_section)
{
	const char *text = "[default]\na = 0\n[profile foo]\na = 1\nb=2\n"
		"[profile bar]\na = 3\nc = 4\n[foo]\nc = 5\n";
	char		value[16];

	assert_string_equal(foo(text, "a"), "1");
	assert_string_equal(foo(text, "b"), "2");
	assert_null(foo(text, "c"));
	assert_int_equal(ini_get(slice(text), NULL, "foo", "c", NULL,
							 value, sizeof(value)), INI_FOUND);
	assert_string_equal(value, "5");
	assert_int_equal(ini_get(slice(text), NULL, "default", "a", NULL,
							 value, sizeof(value)), INI_FOUND);
	assert_string_equal(value, "0");
}

TEST(finds_sections_by_kind_and_name)
{
	ini_slice	text = slice("[  profile\t a-b/c@d \t]\n[profilefoo]\n"
							 "[profile \"two words\"]\n[profile 'x']# comment\n"
							 "[y] ; comment\n[services profile]\n[z]");

	assert_true(ini_has_section(text, "profile", "a-b/c@d"));
	assert_true(ini_has_section(text, "profile", "two words"));
	assert_true(ini_has_section(text, "profile", "x"));
	assert_true(ini_has_section(text, "services", "profile"));
	assert_true(ini_has_section(text, NULL, "y"));
	assert_true(ini_has_section(text, NULL, "z"));
	assert_false(ini_has_section(text, "profile", "foo"));
	assert_false(ini_has_section(text, "profile", "A-B/C@D"));
	assert_false(ini_has_section(text, "profile", "y"));
	assert_false(ini_has_section(text, NULL, "x"));
	assert_false(ini_has_section(text, "profile", ""));
	assert_false(ini_has_section(slice(""), NULL, "y"));
}

TEST(trims_names_and_values)
{
	const char *text = "[profile foo]\r\na \t= \t one  two \t\r\nb =\r\n"
		"c = x=y==";

	assert_string_equal(foo(text, "a"), "one  two");
	assert_string_equal(foo(text, "b"), "");
	assert_string_equal(foo(text, "c"), "x=y==");
}

TEST(ignores_case_in_names_of_properties)
{
	assert_string_equal(foo("[profile foo]\nRegion = A\n", "rEGION"), "A");
	assert_null(foo("[profile foo]\nRegion = A\n", "Region2"));
	assert_null(foo("[profile foo]\nRegion = A\n", "Regio"));
}

TEST(skips_comments_and_blank_lines)
{
	const char *text = "# [profile foo]\n\n \t \n; a = 0\n[profile foo] # x\n"
		"#a = 1\n  ; b = 1\na = 2 # 3\nb = 4\t; 5\nc = 6#7;8\nd = # 9\n";

	assert_string_equal(foo(text, "a"), "2");
	assert_string_equal(foo(text, "b"), "4");
	assert_string_equal(foo(text, "c"), "6#7;8");
	assert_string_equal(foo(text, "d"), "");
}

TEST(lets_the_last_definition_count)
{
	const char *text = "[profile foo]\na = 1\na = 2\nb = 1\n[profile bar]\n"
		"b = 7\n[profile foo]\nB = 3\n";

	assert_string_equal(foo(text, "a"), "2");
	assert_string_equal(foo(text, "b"), "3");
}

TEST(continues_values_on_deeper_lines)
{
	const char *text = "[profile foo]\na = one\n\ttwo # here too \n\n  [three]\n"
		"b = x\n";

	assert_string_equal(foo(text, "a"), "one\ntwo # here too\n[three]");
	assert_string_equal(foo(text, "b"), "x");
}

TEST(reads_sub_properties)
{
	const char *text = "[profile foo]\nname = no\ns3 =\n  name = no\n"
		"dynamodb =\n  Name = a b # c\n\n  # comment\n  other = =x\n  empty =\n"
		"name = no\n";

	assert_string_equal(foo_nested(text, "dynamodb", "name"), "a b # c");
	assert_string_equal(foo_nested(text, "DynamoDB", "other"), "=x");
	assert_string_equal(foo_nested(text, "dynamodb", "empty"), "");
	assert_null(foo_nested(text, "dynamodb", "none"));
	assert_null(foo_nested(text, "name", "name"));
	assert_string_equal(foo(text, "dynamodb"), "");
}

TEST(forgets_sub_properties_when_defined_again)
{
	const char *text = "[profile foo]\nx =\n  a = 1\n  b = 1\nx =\n  b = 2\n";

	assert_null(foo_nested(text, "x", "a"));
	assert_string_equal(foo_nested(text, "x", "b"), "2");
}

TEST(reads_files_indented_as_a_whole)
{
	const char *text = "  [profile foo]\n  a = 1\n  x =\n    b = 2\n  c = 3\n"
		"  [profile bar]\n  a = 4\n";

	assert_string_equal(foo(text, "a"), "1");
	assert_string_equal(foo_nested(text, "x", "b"), "2");
	assert_string_equal(foo(text, "c"), "3");
	assert_true(ini_has_section(slice(text), "profile", "bar"));
}

TEST(names_the_malformed_line)
{
	static const struct
	{
		const char *text;
		int			line;
	}			cases[] = {
		{"[profile foo", 1},
		{"[foo] bar", 1},
		{"a = 1\n[foo]", 1},
		{" continued\n[foo]", 1},
		{"[foo]\n\n= 1", 3},
		{"[foo]\n# comment\na : 1\n", 3},
		{"[foo]\n continued", 2},
		{"[foo]\na = 1\n[foo]\n continued", 4},
		{"[foo]\na =\n  no sign", 3},
		{"[foo]\na =\n  = 1", 3},
		{"[foo]\na # = 1", 2},
		{"", 0},
		{"\n", 0},
		{"[foo]", 0},
		{"[]\n", 0},
		{"[foo]\na =\n  b =\n", 0},
	};
	const ini_slice nul = {"[foo]\na = b\0c\n", 14};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		if (ini_malformed_line(slice(cases[i].text)) != cases[i].line)
			fail_msg("case %zu: not line %d", i, cases[i].line);
	assert_int_equal(ini_malformed_line(nul), 2);
}

TEST(never_cuts_a_value)
{
	ini_slice	text = slice("[a]\nx = 12345\ny = 12\n 45\nz =\n n = 12345\n"
							 "long = 123456\n 7\n");
	char		value[6];

	assert_int_equal(ini_get(text, NULL, "a", "x", NULL, value, 6), INI_FOUND);
	assert_string_equal(value, "12345");
	assert_int_equal(ini_get(text, NULL, "a", "y", NULL, value, 6), INI_FOUND);
	assert_string_equal(value, "12\n45");
	assert_int_equal(ini_get(text, NULL, "a", "z", "n", value, 6), INI_FOUND);
	assert_string_equal(value, "12345");

	assert_int_equal(ini_get(text, NULL, "a", "x", NULL, value, 5),
					 INI_TOO_LONG);
	assert_string_equal(value, "");
	assert_int_equal(ini_get(text, NULL, "a", "y", NULL, value, 5),
					 INI_TOO_LONG);
	assert_string_equal(value, "");
	assert_int_equal(ini_get(text, NULL, "a", "long", NULL, value, 6),
					 INI_TOO_LONG);
	assert_string_equal(value, "");
	assert_int_equal(ini_get(text, NULL, "a", "z", "n", value, 5),
					 INI_TOO_LONG);
	assert_string_equal(value, "");
}

TEST(stays_within_the_bytes_given)
{
	const char *text = "[profile foo]\na =\n  b = 1\nc = 2 # 3\n d";

	for (size_t len = 0; len <= strlen(text); len++)
	{
		char	   *copy = malloc(len > 0 ? len : 1);	/* for ASan */
		char		value[16];

		memcpy(copy, text, len);
		ini_malformed_line((ini_slice) {copy, len});
		ini_has_section((ini_slice) {copy, len}, "profile", "foo");
		ini_get((ini_slice) {copy, len}, "profile", "foo", "a", "b",
				value, sizeof(value));
		free(copy);
	}
}
