/*-------------------------------------------------------------------------
 *
 * test_dynamo_request.c
 *	  The exact requests that we send.
 *
 * Bodies are compared as JSON, so the order of members does not matter.  All
 * expected bodies were accepted by DynamoDB Local and had the effect that
 * doc/internals/protocol.md describes.
 *
 *-------------------------------------------------------------------------
 */
#include <cjson/cJSON.h>

#include "../unit.h"
#include "dynamo/dynamo_codec.h"

#define HELD "#ownerName = :owner AND #recordVersionNumber = :expected" \
	" AND attribute_not_exists(#isReleased)"
#define NOT_KEPT " AND (attribute_not_exists(#keptUntil) OR #keptUntil <= :past)"
#define BELOW " AND (attribute_not_exists(#fencingToken) OR #fencingToken < :first)"
#define NOT_ABOVE " AND (attribute_not_exists(#fencingToken) OR #fencingToken <= :last)"
#define PAST "\":past\":{\"N\":\"999500\"},"
#define ASK_FOR "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"," \
	"\"ReturnConsumedCapacity\":\"TOTAL\""
#define ASK_FOR_OLD "\"ReturnValues\":\"UPDATED_OLD\"," ASK_FOR
#define ASK_FOR_ALL_OLD "\"ReturnValues\":\"ALL_OLD\"," ASK_FOR
#define N(name) "\"#" name "\":\"" name "\""

static const dynamo_table plain_table = {"lockTable", "key", NULL, NULL, 0, '\0'};
static const dynamo_table sorted_table = {"lockTable", "pk", "sk", "locks", 3600, '\0'};
static const dynamo_table separated_table = {"lockTable", "pk", "sk", "locks", 3600, '#'};
static const dynamo_holder holder = {
	"shop", "bob", "psql", "db1", 4711, INT64_C(1795254699472), ""
};

static dynamo_write
write_of(dynamo_op op)
{
	dynamo_write write = {
		.op = op, .name = "orders", .name_len = 6, .owner = "db1/inc",
		.version = "new", .expected = "old", .lease_ms = 20000,
		.first_token = 1200, .last_token = 1234, .holder = &holder, .now_s = 1000,
		.past_ms = 999500
	};

	if (op == DYNAMO_RENEW)
		write.holder = NULL;
	return write;
}

static cJSON *
parse(const char *json)
{
	cJSON	   *tree = cJSON_ParseWithOpts(json, NULL, true);

	if (tree == NULL)
		fail_msg("not JSON: %s", json);
	return tree;
}

/* Frees body.  Its length counts, too: cJSON_Compare() overlooks a member that is there twice. */
static void
assert_body(char *body, const char *expected)
{
	cJSON	   *got = parse(body);
	cJSON	   *wanted = parse(expected);
	char	   *got_text = cJSON_PrintUnformatted(got);
	char	   *wanted_text = cJSON_PrintUnformatted(wanted);

	if (!cJSON_Compare(got, wanted, true) || strlen(got_text) != strlen(wanted_text))
		fail_msg("body is %s\ninstead of %s", body, expected);
	cJSON_free(got_text);
	cJSON_free(wanted_text);
	cJSON_Delete(got);
	cJSON_Delete(wanted);
	free(body);
}

static void
assert_write(const dynamo_table *table, dynamo_write write, const char *expected)
{
	assert_body(dynamo_build(table, &write), expected);
}

TEST(acquire_takes_a_free_or_released_item_with_a_higher_token)
{
	dynamo_write write = write_of(DYNAMO_ACQUIRE);

	write.expected = "";
	assert_write(&plain_table, write,
				 "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"orders\"}},"
				 "\"UpdateExpression\":\"SET #ownerName = :owner, #recordVersionNumber = :version,"
				 " #leaseDuration = :lease, #fencingToken = :last, #holder = :holder"
				 " REMOVE #data, #isReleased, #releasedAt, #releasedVersion, #ttl, #shared, #keptUntil\","
				 "\"ConditionExpression\":\"(attribute_not_exists(#key) OR"
				 " attribute_exists(#isReleased)) AND"
				 " (attribute_not_exists(#fencingToken) OR #fencingToken < :first)" NOT_KEPT " AND"
				 " attribute_not_exists(#attributeNames)\","
				 "\"ExpressionAttributeNames\":{\"#key\":\"key\"," N("ownerName") ","
				 N("recordVersionNumber") "," N("leaseDuration") "," N("fencingToken") ","
				 N("holder") "," N("data") "," N("isReleased") "," N("releasedAt") ","
				 N("releasedVersion") "," N("ttl") "," N("shared") ","
				 N("attributeNames") "," N("keptUntil") "},"
				 "\"ExpressionAttributeValues\":{" PAST "\":owner\":{\"S\":\"db1/inc\"},"
				 "\":version\":{\"S\":\"new\"},\":lease\":{\"S\":\"20000\"},"
				 "\":first\":{\"N\":\"1200\"},\":last\":{\"N\":\"1234\"},"
				 "\":holder\":{\"M\":{\"owner\":{\"S\":\"db1/inc\"},"
				 "\"database\":{\"S\":\"shop\"},\"user\":{\"S\":\"bob\"},"
				 "\"application\":{\"S\":\"psql\"},\"host\":{\"S\":\"db1\"},"
				 "\"pid\":{\"N\":\"4711\"},\"since\":{\"N\":\"1795254699472\"}}}},"
				 ASK_FOR_OLD "}");
}

TEST(a_holder_tells_its_system_identifier)
{
	static const dynamo_holder holder = {.system = "18446744073709551615"};
	dynamo_write write = write_of(DYNAMO_ACQUIRE);
	char	   *body;

	write.holder = &holder;
	body = dynamo_build(&plain_table, &write);
	assert_non_null(strstr(body, "\":holder\":{\"M\":{\"owner\":{\"S\":\"db1/inc\"},"
						   "\"system\":{\"S\":\"18446744073709551615\"}}}"));
	free(body);
}

TEST(take_over_also_accepts_the_dead_version)
{
	static const dynamo_holder nobody;
	dynamo_write write = write_of(DYNAMO_ACQUIRE);

	write.holder = &nobody;
	write.data = (const uint8_t *) "\0\1\2zz";
	write.data_len = 5;
	write.first_token = write.last_token = INT64_MAX;
	assert_write(&sorted_table, write,
				 "{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"orders\"},"
				 "\"sk\":{\"S\":\"locks\"}},"
				 "\"UpdateExpression\":\"SET #ownerName = :owner, #recordVersionNumber = :version,"
				 " #leaseDuration = :lease, #fencingToken = :last, #holder = :holder,"
				 " #data = :data REMOVE #isReleased, #releasedAt, #releasedVersion, #ttl, #shared, #keptUntil\","
				 "\"ConditionExpression\":\"(attribute_not_exists(#key) OR"
				 " attribute_exists(#isReleased) OR #recordVersionNumber = :expected) AND"
				 " (attribute_not_exists(#fencingToken) OR #fencingToken < :first)" NOT_KEPT " AND"
				 " attribute_not_exists(#attributeNames)\","
				 "\"ExpressionAttributeNames\":{\"#key\":\"pk\"," N("ownerName") ","
				 N("recordVersionNumber") "," N("leaseDuration") "," N("fencingToken") ","
				 N("holder") "," N("data") "," N("isReleased") "," N("releasedAt") ","
				 N("releasedVersion") "," N("ttl") "," N("shared") ","
				 N("attributeNames") "," N("keptUntil") "},"
				 "\"ExpressionAttributeValues\":{" PAST "\":owner\":{\"S\":\"db1/inc\"},"
				 "\":version\":{\"S\":\"new\"},\":expected\":{\"S\":\"old\"},"
				 "\":lease\":{\"S\":\"20000\"},\":first\":{\"N\":\"9223372036854775807\"},"
				 "\":last\":{\"N\":\"9223372036854775807\"},"
				 "\":holder\":{\"M\":{\"owner\":{\"S\":\"db1/inc\"}}},\":data\":{\"B\":\"AAECeno=\"}},"
				 ASK_FOR_OLD "}");
}

/* Other clients write what they like. */
TEST(texts_may_begin_with_any_character)
{
	static const dynamo_holder foreign = {"\xc3\xa9", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80", 0, 0, ""};
	dynamo_write write = write_of(DYNAMO_ACQUIRE);
	char	   *body;

	write.holder = &foreign;
	write.expected = "\xc3\xa9";
	body = dynamo_build(&plain_table, &write);
	assert_non_null(strstr(body, " OR #recordVersionNumber = :expected)"));
	assert_non_null(strstr(body, "\":expected\":{\"S\":\"\xc3\xa9\"}"));
	assert_non_null(strstr(body, "\":holder\":{\"M\":{\"owner\":{\"S\":\"db1/inc\"},"
						   "\"database\":{\"S\":\"\xc3\xa9\"},\"user\":{\"S\":\"\xc3\xbc\"},"
						   "\"application\":{\"S\":\"\xe2\x82\xac\"},"
						   "\"host\":{\"S\":\"\xf0\x9f\x98\x80\"}}}"));
	free(body);
}

TEST(renewal_demands_owner_version_and_not_released)
{
	assert_write(&plain_table, write_of(DYNAMO_RENEW),
				 "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"orders\"}},"
				 "\"UpdateExpression\":\"SET #recordVersionNumber = :version,"
				 " #leaseDuration = :lease\",\"ConditionExpression\":\"" HELD "\","
				 "\"ExpressionAttributeNames\":{" N("ownerName") ","
				 N("recordVersionNumber") "," N("leaseDuration") "," N("isReleased") "},"
				 "\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"db1/inc\"},"
				 "\":version\":{\"S\":\"new\"},\":expected\":{\"S\":\"old\"},"
				 "\":lease\":{\"S\":\"20000\"}}," ASK_FOR "}");
}

TEST(an_acquire_may_demand_that_the_item_exists)
{
	dynamo_write write = write_of(DYNAMO_ACQUIRE);
	char	   *body;
	cJSON	   *tree;

	write.must_exist = true;
	write.expected = "";
	body = dynamo_build(&plain_table, &write);
	tree = parse(body);
	assert_true(strstr(cJSON_GetStringValue(cJSON_GetObjectItem(tree, "ConditionExpression")),
					   "(attribute_exists(#isReleased)) AND ") != NULL);
	assert_null(strstr(body, "attribute_not_exists(#key)"));
	assert_null(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "ExpressionAttributeNames"), "#key"));
	cJSON_Delete(tree);
	free(body);
}

/* Far more than was expected, in one piece. */
TEST(a_text_grows_to_any_length)
{
	char		part[10001];
	dynamo_text text;
	char	   *all;

	memset(part, 'x', sizeof(part) - 1);
	part[sizeof(part) - 1] = '\0';
	dynamo_text_start(&text, '[', 8);
	dynamo_text_raw(&text, "%s", part);
	all = dynamo_text_finish(&text);
	assert_int_equal(strlen(all), sizeof(part) + 1);
	assert_memory_equal(all + 1, part, sizeof(part) - 1);
	assert_string_equal(all + sizeof(part), "]");
	free(all);

	for (size_t expected = 1; expected < 64; expected++)
	{
		dynamo_text_start(&text, '[', expected);
		dynamo_text_raw(&text, "%s", "\"abcdefghijklmnop\"");
		dynamo_text_string(&text, "q\n", 2);
		dynamo_text_name(&text, NULL);
		dynamo_put_bytes(&text, (const uint8_t *) "a", 1);
		all = dynamo_text_finish(&text);
		assert_string_equal(all, "[\"abcdefghijklmnop\",\"q\\u000a\",{\"B\":\"YQ==\"}]");
		free(all);
	}
}

TEST(placeholders_may_be_numbered)
{
	assert_int_equal(dynamo_number_in("a0", "a"), 0);
	assert_int_equal(dynamo_number_in("a9", "a"), 9);
	assert_int_equal(dynamo_number_in("dead31", "dead"), 31);
	assert_int_equal(dynamo_number_in("a", "a"), -1);
	assert_int_equal(dynamo_number_in("ab1", "a"), -1);
	assert_int_equal(dynamo_number_in("b1", "a"), -1);
	assert_int_equal(dynamo_number_in("Z1", "a"), -1);
	assert_int_equal(dynamo_number_in("a/", "a"), -1);
	assert_int_equal(dynamo_number_in("a:", "a"), -1);
}

TEST(what_is_nested_too_deeply_is_not_built)
{
	dynamo_text text;
	char	   *all;

	for (int depth = (int) sizeof(text.closing); depth <= (int) sizeof(text.closing) + 1; depth++)
	{
		dynamo_text_start(&text, '[', 8);
		for (int i = 1; i < depth; i++)
			dynamo_text_open(&text, NULL, '[');
		all = dynamo_text_finish(&text);
		if (depth > (int) sizeof(text.closing))
			assert_null(all);
		else
			assert_int_equal(strlen(all), 2 * depth);
		free(all);
	}
}

TEST(a_copy_is_cut_between_characters)
{
	static const char *const copies[][2] = {
		{"abcd", "abcd"}, {"abcde", "abcd"}, {"abc\xc3\xa9", "abc"}, {"ab\xc3\xa9", "ab\xc3\xa9"},
		{"\x80\x80\x80\x80\x80", ""},
	};

	for (size_t i = 0; i < COUNT_OF(copies); i++)
	{
		char		to[] = "xxxxxxx";

		dynamo_json_copy(to, 5, copies[i][0]);
		assert_string_equal(to, copies[i][1]);
		assert_string_equal(to + 5, "xx");
	}
}

TEST(renewal_can_change_the_data)
{
	dynamo_write write = write_of(DYNAMO_RENEW);

	write.data = (const uint8_t *) "abc";
	write.data_len = 3;
	assert_write(&plain_table, write,
				 "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"orders\"}},"
				 "\"UpdateExpression\":\"SET #recordVersionNumber = :version,"
				 " #leaseDuration = :lease, #data = :data\","
				 "\"ConditionExpression\":\"" HELD "\","
				 "\"ExpressionAttributeNames\":{" N("ownerName") ","
				 N("recordVersionNumber") "," N("leaseDuration") "," N("data") ","
				 N("isReleased") "},"
				 "\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"db1/inc\"},"
				 "\":version\":{\"S\":\"new\"},\":expected\":{\"S\":\"old\"},"
				 "\":lease\":{\"S\":\"20000\"},\":data\":{\"B\":\"YWJj\"}}," ASK_FOR "}");
	assert_null(dynamo_build_batch(&plain_table, &write, 1));

	write.data_len = 0;
	assert_write(&plain_table, write,
				 "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"orders\"}},"
				 "\"UpdateExpression\":\"SET #recordVersionNumber = :version,"
				 " #leaseDuration = :lease REMOVE #data\","
				 "\"ConditionExpression\":\"" HELD "\","
				 "\"ExpressionAttributeNames\":{" N("ownerName") ","
				 N("recordVersionNumber") "," N("leaseDuration") "," N("data") ","
				 N("isReleased") "},"
				 "\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"db1/inc\"},"
				 "\":version\":{\"S\":\"new\"},\":expected\":{\"S\":\"old\"},"
				 "\":lease\":{\"S\":\"20000\"}}," ASK_FOR "}");
}

TEST(renewal_can_tell_another_holder)
{
	static const dynamo_holder next = {.database = "shop"};
	dynamo_write write = write_of(DYNAMO_RENEW);

	write.holder = &next;
	assert_write(&plain_table, write,
				 "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"orders\"}},"
				 "\"UpdateExpression\":\"SET #recordVersionNumber = :version,"
				 " #leaseDuration = :lease, #holder = :holder\","
				 "\"ConditionExpression\":\"" HELD "\","
				 "\"ExpressionAttributeNames\":{" N("ownerName") ","
				 N("recordVersionNumber") "," N("leaseDuration") "," N("holder") ","
				 N("isReleased") "},"
				 "\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"db1/inc\"},"
				 "\":version\":{\"S\":\"new\"},\":expected\":{\"S\":\"old\"},"
				 "\":lease\":{\"S\":\"20000\"},"
				 "\":holder\":{\"M\":{\"owner\":{\"S\":\"db1/inc\"},"
				 "\"database\":{\"S\":\"shop\"}}}}," ASK_FOR "}");
	assert_body(dynamo_build_batch(&sorted_table, &write, 1),
				"{\"Statements\":[{\"Statement\":\"UPDATE \\\"lockTable\\\""
				" SET \\\"recordVersionNumber\\\" = ? SET \\\"leaseDuration\\\" = ?"
				" SET \\\"holder\\\" = ? WHERE \\\"pk\\\" = ? AND \\\"sk\\\" = ?"
				" AND \\\"ownerName\\\" = ?"
				" AND \\\"recordVersionNumber\\\" = ? AND \\\"isReleased\\\" IS MISSING\","
				"\"Parameters\":[{\"S\":\"new\"},{\"S\":\"20000\"},"
				"{\"M\":{\"owner\":{\"S\":\"db1/inc\"},\"database\":{\"S\":\"shop\"}}},"
				"{\"S\":\"orders\"},{\"S\":\"locks\"},{\"S\":\"db1/inc\"},{\"S\":\"old\"}],"
				"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}],"
				"\"ReturnConsumedCapacity\":\"TOTAL\"}");
}

TEST(hand_over_writes_token_and_holder_and_drops_old_data)
{
	static const dynamo_holder next = {.database = "shop"};
	dynamo_write write = write_of(DYNAMO_HAND_OVER);

	write.holder = &next;
	assert_write(&plain_table, write,
				 "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"orders\"}},"
				 "\"UpdateExpression\":\"SET #recordVersionNumber = :version,"
				 " #leaseDuration = :lease, #fencingToken = :last, #holder = :holder"
				 " REMOVE #data, #keptUntil\",\"ConditionExpression\":\"" HELD NOT_KEPT BELOW "\","
				 "\"ExpressionAttributeNames\":{" N("ownerName") ","
				 N("recordVersionNumber") "," N("leaseDuration") "," N("fencingToken") ","
				 N("holder") "," N("data") "," N("isReleased") "," N("keptUntil") "},"
				 "\"ExpressionAttributeValues\":{" PAST "\":owner\":{\"S\":\"db1/inc\"},"
				 "\":version\":{\"S\":\"new\"},\":expected\":{\"S\":\"old\"},"
				 "\":lease\":{\"S\":\"20000\"},\":first\":{\"N\":\"1200\"},\":last\":{\"N\":\"1234\"},"
				 "\":holder\":{\"M\":{\"owner\":{\"S\":\"db1/inc\"},"
				 "\"database\":{\"S\":\"shop\"}}}}," ASK_FOR "}");
}

TEST(hand_over_can_set_data)
{
	dynamo_write write = write_of(DYNAMO_HAND_OVER);
	cJSON	   *tree;
	char	   *body;

	write.data = (const uint8_t *) "";
	body = dynamo_build(&plain_table, &write);
	tree = parse(body);
	assert_non_null(strstr(cJSON_GetObjectItem(tree, "UpdateExpression")->valuestring,
						   ", #data = :data"));
	assert_non_null(strstr(body, ", #data = :data REMOVE #keptUntil\""));
	assert_non_null(strstr(body, "\":data\":{\"B\":\"\"}"));
	cJSON_Delete(tree);
	free(body);
}

TEST(release_keeps_the_item_and_marks_it)
{
	assert_write(&plain_table, write_of(DYNAMO_RELEASE),
				 "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"orders\"}},"
				 "\"UpdateExpression\":\"SET #recordVersionNumber = :version,"
				 " #isReleased = :released, #releasedAt = :now, #releasedVersion = :version"
				 " REMOVE #holder, #data, #keptUntil\","
				 "\"ConditionExpression\":\"" HELD "\","
				 "\"ExpressionAttributeNames\":{" N("ownerName") ","
				 N("recordVersionNumber") "," N("holder") "," N("data") ","
				 N("isReleased") "," N("releasedAt") "," N("releasedVersion") "," N("keptUntil") "},"
				 "\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"db1/inc\"},"
				 "\":version\":{\"S\":\"new\"},\":expected\":{\"S\":\"old\"},"
				 "\":released\":{\"S\":\"1\"},\":now\":{\"N\":\"1000\"}}," ASK_FOR_ALL_OLD "}");
}

TEST(release_of_the_dead_demands_their_name_alone)
{
	dynamo_write write = write_of(DYNAMO_RELEASE);

	write.any_version = true;
	write.expected = NULL;
	assert_write(&plain_table, write,
				 "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"orders\"}},"
				 "\"UpdateExpression\":\"SET #recordVersionNumber = :version,"
				 " #isReleased = :released, #releasedAt = :now, #releasedVersion = :version"
				 " REMOVE #holder, #data, #keptUntil\","
				 "\"ConditionExpression\":\"#ownerName = :owner"
				 " AND attribute_not_exists(#isReleased)\","
				 "\"ExpressionAttributeNames\":{" N("ownerName") ","
				 N("recordVersionNumber") "," N("holder") "," N("data") ","
				 N("isReleased") "," N("releasedAt") "," N("releasedVersion") "," N("keptUntil") "},"
				 "\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"db1/inc\"},"
				 "\":version\":{\"S\":\"new\"},"
				 "\":released\":{\"S\":\"1\"},\":now\":{\"N\":\"1000\"}}," ASK_FOR_ALL_OLD "}");
}

TEST(release_sets_ttl_only_if_the_table_wants_it)
{
	assert_write(&sorted_table, write_of(DYNAMO_RELEASE),
				 "{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"orders\"},"
				 "\"sk\":{\"S\":\"locks\"}},"
				 "\"UpdateExpression\":\"SET #recordVersionNumber = :version,"
				 " #isReleased = :released, #releasedAt = :now, #releasedVersion = :version, #ttl = :ttl"
				 " REMOVE #holder, #data, #keptUntil\",\"ConditionExpression\":\"" HELD "\","
				 "\"ExpressionAttributeNames\":{" N("ownerName") ","
				 N("recordVersionNumber") "," N("holder") "," N("data") ","
				 N("isReleased") "," N("releasedAt") "," N("ttl") ","
				 N("releasedVersion") "," N("keptUntil") "},"
				 "\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"db1/inc\"},"
				 "\":version\":{\"S\":\"new\"},\":expected\":{\"S\":\"old\"},"
				 "\":released\":{\"S\":\"1\"},\":now\":{\"N\":\"1000\"},"
				 "\":ttl\":{\"N\":\"4600\"}}," ASK_FOR_ALL_OLD "}");
}

TEST(a_replacement_is_a_released_item_that_may_expire)
{
	const dynamo_table *tables[] = {&plain_table, &sorted_table};

	for (int i = 0; i < 2; i++)
	{
		dynamo_write write = write_of(DYNAMO_REPLACE);
		cJSON	   *tree;
		char	   *body;

		write.replaced = "{}";
		body = dynamo_build(tables[i], &write);
		tree = parse(body);
#define NEW_ITEM ",\"ownerName\":{\"S\":\"db1/inc\"},\"recordVersionNumber\":{\"S\":\"new\"}," \
	"\"leaseDuration\":{\"S\":\"20000\"},\"fencingToken\":{\"N\":\"1234\"}," \
	"\"isReleased\":{\"S\":\"1\"},\"releasedAt\":{\"N\":\"1000\"}," \
	"\"releasedVersion\":{\"S\":\"new\"}"
		assert_body(cJSON_PrintUnformatted(cJSON_GetObjectItem(tree, "Item")), i == 0 ?
					"{\"key\":{\"S\":\"orders\"}" NEW_ITEM "}" :
					"{\"pk\":{\"S\":\"orders\"},\"sk\":{\"S\":\"locks\"}" NEW_ITEM
					",\"ttl\":{\"N\":\"4600\"}}");
		cJSON_Delete(tree);
		free(body);
	}
}

/* Whoever takes the last permit again opens another epoch: hence the other name. */
TEST(a_mark_is_for_whoever_holds_the_item_under_that_name_or_shares_it)
{
	dynamo_write write = write_of(DYNAMO_MARK);

	write.expected = "db2/other";
	write.wanted_until_ms = 1010000;
	write.wanted_poll_ms = 250;
	assert_write(&sorted_table, write,
				 "{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"orders\"},"
				 "\"sk\":{\"S\":\"locks\"}},"
				 "\"UpdateExpression\":\"SET #wanted = :wanted\","
				 "\"ConditionExpression\":\"(#ownerName = :expected OR #ownerName = #shared.#owner)"
				 " AND attribute_not_exists(#isReleased)\","
				 "\"ExpressionAttributeNames\":{" N("ownerName") "," N("isReleased") ","
				 N("shared") "," N("owner") "," N("wanted") "},"
				 "\"ExpressionAttributeValues\":{\":expected\":{\"S\":\"db2/other\"},"
				 "\":wanted\":{\"M\":{\"owner\":{\"S\":\"db1/inc\"},\"until\":{\"N\":\"1010000\"},"
				 "\"poll\":{\"N\":\"250\"}}}},\"ReturnValues\":\"ALL_NEW\"," ASK_FOR "}");
}

TEST(a_mark_for_permits_has_their_number)
{
	dynamo_write write = write_of(DYNAMO_MARK);
	char	   *body;

	write.wanted_until_ms = 1010000;
	write.wanted_poll_ms = 250;
	write.wanted_permits = 3;
	write.wanted_limit = 5;
	body = dynamo_build(&plain_table, &write);
	assert_non_null(strstr(body, "\"poll\":{\"N\":\"250\"},\"permits\":{\"N\":\"3\"},"
						   "\"limit\":{\"N\":\"5\"}}"));
	free(body);
}

TEST(an_acquire_removes_its_clusters_mark)
{
	dynamo_write write = write_of(DYNAMO_ACQUIRE);
	char	   *body = dynamo_build(&plain_table, &write);

	assert_null(strstr(body, "wanted"));
	free(body);
	write.unmark = true;
	body = dynamo_build(&plain_table, &write);
	assert_non_null(strstr(body, " #shared, #keptUntil, #wanted\""));
	assert_non_null(strstr(body, N("wanted")));
	free(body);
}

TEST(acquire_keeps_the_lock_for_a_minimum)
{
	dynamo_write write = write_of(DYNAMO_ACQUIRE);
	char	   *body;

	write.kept_until_ms = 1060000;
	body = dynamo_build(&plain_table, &write);
	assert_non_null(strstr(body, " #holder = :holder, #keptUntil = :kept REMOVE #data, #isReleased, "
						   "#releasedAt, #releasedVersion, #ttl, #shared\""));
	assert_non_null(strstr(body, NOT_KEPT));
	assert_non_null(strstr(body, "\":kept\":{\"N\":\"1060000\"}"));
	assert_non_null(strstr(body, "\":past\":{\"N\":\"999500\"}"));
	free(body);
	write.data = (const uint8_t *) "";
	body = dynamo_build(&plain_table, &write);
	assert_non_null(strstr(body, ", #keptUntil = :kept, #data = :data REMOVE #isReleased, "));
	free(body);
}

TEST(hand_over_keeps_the_lock_for_a_minimum)
{
	dynamo_write write = write_of(DYNAMO_HAND_OVER);
	char	   *body;

	write.kept_until_ms = 1060000;
	body = dynamo_build(&plain_table, &write);
	assert_non_null(strstr(body, " #holder = :holder, #keptUntil = :kept REMOVE #data\""));
	assert_non_null(strstr(body, HELD NOT_KEPT BELOW "\""));
	free(body);
	write.data = (const uint8_t *) "";
	body = dynamo_build(&plain_table, &write);
	assert_non_null(strstr(body, ", #data = :data, #keptUntil = :kept\""));
	assert_null(strstr(body, "REMOVE"));
	free(body);
}

TEST(release_of_a_kept_lock_leaves_the_minimum_and_the_item_outlives_it_by_a_day)
{
	dynamo_write write = write_of(DYNAMO_RELEASE);
	char	   *body;

	write.kept_until_ms = 1060999;
	body = dynamo_build(&sorted_table, &write);
	assert_null(strstr(body, "keptUntil"));
	assert_non_null(strstr(body, "\":ttl\":{\"N\":\"87460\"}"));
	free(body);
	write.now_s = 1000000;		/* when that is no later */
	body = dynamo_build(&sorted_table, &write);
	assert_non_null(strstr(body, "\":ttl\":{\"N\":\"1003600\"}"));
	free(body);
}

TEST(a_time_to_live_may_be_after_2038)
{
	dynamo_write write = write_of(DYNAMO_RELEASE);
	char	   *body;

	write.now_s = INT64_C(4000000000);
	body = dynamo_build(&sorted_table, &write);
	assert_non_null(strstr(body, "\":ttl\":{\"N\":\"4000003600\"}"));
	free(body);
}

TEST(read_is_consistent_unless_it_may_be_stale)
{
	dynamo_write poll = write_of(DYNAMO_READ);

	poll.maybe_stale = true;
	assert_write(&sorted_table, poll,
				 "{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"orders\"},"
				 "\"sk\":{\"S\":\"locks\"}},\"ReturnConsumedCapacity\":\"TOTAL\"}");
	assert_write(&sorted_table, write_of(DYNAMO_READ),
				 "{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"orders\"},"
				 "\"sk\":{\"S\":\"locks\"}},\"ConsistentRead\":true,"
				 "\"ReturnConsumedCapacity\":\"TOTAL\"}");
}

TEST(batch_holds_one_conditional_update_per_write)
{
	dynamo_write writes[2] = {write_of(DYNAMO_RENEW), write_of(DYNAMO_RENEW)};

	writes[1].name = "a'b";
	writes[1].name_len = 3;
	writes[1].lease_ms = 5000;
	assert_body(dynamo_build_batch(&plain_table, writes, 2),
				"{\"Statements\":[{\"Statement\":\"UPDATE \\\"lockTable\\\""
				" SET \\\"recordVersionNumber\\\" = ? SET \\\"leaseDuration\\\" = ?"
				" WHERE \\\"key\\\" = ? AND \\\"ownerName\\\" = ?"
				" AND \\\"recordVersionNumber\\\" = ? AND \\\"isReleased\\\" IS MISSING\","
				"\"Parameters\":[{\"S\":\"new\"},{\"S\":\"20000\"},{\"S\":\"orders\"},"
				"{\"S\":\"db1/inc\"},{\"S\":\"old\"}],"
				"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"},"
				"{\"Statement\":\"UPDATE \\\"lockTable\\\""
				" SET \\\"recordVersionNumber\\\" = ? SET \\\"leaseDuration\\\" = ?"
				" WHERE \\\"key\\\" = ? AND \\\"ownerName\\\" = ?"
				" AND \\\"recordVersionNumber\\\" = ? AND \\\"isReleased\\\" IS MISSING\","
				"\"Parameters\":[{\"S\":\"new\"},{\"S\":\"5000\"},{\"S\":\"a'b\"},"
				"{\"S\":\"db1/inc\"},{\"S\":\"old\"}],"
				"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}],"
				"\"ReturnConsumedCapacity\":\"TOTAL\"}");
}

TEST(batch_quotes_identifiers_and_names_the_sort_key)
{
	static const dynamo_table odd = {"t", "k\"e\\y", "s\nk", "v\"", 0, '\0'};
	dynamo_write write = write_of(DYNAMO_RENEW);

	assert_body(dynamo_build_batch(&odd, &write, 1),
				"{\"Statements\":[{\"Statement\":\"UPDATE \\\"t\\\""
				" SET \\\"recordVersionNumber\\\" = ? SET \\\"leaseDuration\\\" = ?"
				" WHERE \\\"k\\\"\\\"e\\\\y\\\" = ? AND \\\"s\\nk\\\" = ?"
				" AND \\\"ownerName\\\" = ?"
				" AND \\\"recordVersionNumber\\\" = ? AND \\\"isReleased\\\" IS MISSING\","
				"\"Parameters\":[{\"S\":\"new\"},{\"S\":\"20000\"},{\"S\":\"orders\"},"
				"{\"S\":\"v\\\"\"},{\"S\":\"db1/inc\"},{\"S\":\"old\"}],"
				"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}],"
				"\"ReturnConsumedCapacity\":\"TOTAL\"}");
}

TEST(a_separator_divides_the_name_into_its_keys)
{
	dynamo_write write = write_of(DYNAMO_DELETE);
	dynamo_write renew = write_of(DYNAMO_RENEW);

	write.name = renew.name = "orders#42";
	write.name_len = renew.name_len = 9;
	assert_write(&separated_table, write,
				 "{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"orders\"},"
				 "\"sk\":{\"S\":\"42\"}},"
				 "\"ConditionExpression\":\"#recordVersionNumber = :expected"
				 " AND attribute_exists(#isReleased)" NOT_ABOVE "\","
				 "\"ExpressionAttributeNames\":{" N("recordVersionNumber") ","
				 N("isReleased") "," N("fencingToken") "},"
				 "\"ExpressionAttributeValues\":{\":expected\":{\"S\":\"old\"},"
				 "\":last\":{\"N\":\"1234\"}}," ASK_FOR "}");
	assert_body(dynamo_build_batch(&separated_table, &renew, 1),
				"{\"Statements\":[{\"Statement\":\"UPDATE \\\"lockTable\\\""
				" SET \\\"recordVersionNumber\\\" = ? SET \\\"leaseDuration\\\" = ?"
				" WHERE \\\"pk\\\" = ? AND \\\"sk\\\" = ? AND \\\"ownerName\\\" = ?"
				" AND \\\"recordVersionNumber\\\" = ? AND \\\"isReleased\\\" IS MISSING\","
				"\"Parameters\":[{\"S\":\"new\"},{\"S\":\"20000\"},{\"S\":\"orders\"},"
				"{\"S\":\"42\"},{\"S\":\"db1/inc\"},{\"S\":\"old\"}],"
				"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}],"
				"\"ReturnConsumedCapacity\":\"TOTAL\"}");
	write.name_len = 6;
	write.op = DYNAMO_READ;
	assert_write(&separated_table, write,
				 "{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"orders\"},"
				 "\"sk\":{\"S\":\"locks\"}},\"ConsistentRead\":true,"
				 "\"ReturnConsumedCapacity\":\"TOTAL\"}");
}

TEST(any_name_survives_the_way_through_json)
{
	char		name[256 + 32];
	dynamo_write write = write_of(DYNAMO_READ);
	cJSON	   *tree;
	cJSON	   *key;
	char	   *body;

	for (int i = 1; i < 128; i++)
		name[i - 1] = (char) i;
	strcpy(name + 127, "\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80\\u0041\"");
	write.name = name;
	write.name_len = strlen(name);

	body = dynamo_build(&plain_table, &write);
	tree = parse(body);
	key = cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "Key"), "key");
	assert_string_equal(cJSON_GetObjectItem(key, "S")->valuestring, name);
	for (const char *c = body; *c != '\0'; c++)
		assert_true((unsigned char) *c >= ' ');
	cJSON_Delete(tree);
	free(body);
}

/* Bodies that outgrow the buffer's first size. */
TEST(largest_values_fit)
{
	static uint8_t data[DYNAMO_DATA_MAX];
	static char name[DYNAMO_NAME_MAX];
	static char sort_value[DYNAMO_SORT_MAX + 1];
	static dynamo_write writes[DYNAMO_BATCH_MAX];
	dynamo_table table = {"lockTable", "key", "sort", sort_value, 0, '\0'};
	cJSON	   *tree;
	char	   *body;

	memset(name, '\1', sizeof(name));
	memset(sort_value, '\1', sizeof(sort_value) - 1);
	writes[0] = write_of(DYNAMO_ACQUIRE);
	writes[0].name = name;
	writes[0].name_len = sizeof(name);
	writes[0].data = data;
	writes[0].data_len = sizeof(data);
	body = dynamo_build(&table, &writes[0]);
	cJSON_Delete(parse(body));
	free(body);

	for (int i = 0; i < DYNAMO_BATCH_MAX; i++)
	{
		writes[i] = writes[0];
		writes[i].data = NULL;
	}
	body = dynamo_build_batch(&table, writes, DYNAMO_BATCH_MAX);
	tree = parse(body);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "Statements")),
					 DYNAMO_BATCH_MAX);
	cJSON_Delete(tree);
	free(body);
}

TEST(tables_are_described_created_and_given_a_ttl)
{
	assert_body(dynamo_build_describe_table(&plain_table), "{\"TableName\":\"lockTable\"}");
	assert_body(dynamo_build_create_table(&plain_table, &(dynamo_creation) {0}),
				"{\"TableName\":\"lockTable\",\"AttributeDefinitions\":"
				"[{\"AttributeName\":\"key\",\"AttributeType\":\"S\"}],"
				"\"KeySchema\":[{\"AttributeName\":\"key\",\"KeyType\":\"HASH\"}],"
				"\"BillingMode\":\"PAY_PER_REQUEST\"}");
	assert_body(dynamo_build_create_table(&sorted_table, &(dynamo_creation) {5, 6, true}),
				"{\"TableName\":\"lockTable\",\"AttributeDefinitions\":"
				"[{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"},"
				"{\"AttributeName\":\"sk\",\"AttributeType\":\"S\"}],"
				"\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"},"
				"{\"AttributeName\":\"sk\",\"KeyType\":\"RANGE\"}],"
				"\"BillingMode\":\"PROVISIONED\",\"ProvisionedThroughput\":"
				"{\"ReadCapacityUnits\":5,\"WriteCapacityUnits\":6},"
				"\"DeletionProtectionEnabled\":true}");
	assert_body(dynamo_build_update_ttl(&plain_table),
				"{\"TableName\":\"lockTable\",\"TimeToLiveSpecification\":"
				"{\"AttributeName\":\"ttl\",\"Enabled\":true}}");
}

/* The scan's fixed parts: the attributes, and their placeholders. */
#define SCAN_PARTS "{\"TableName\":\"lockTable\",\"ConsistentRead\":true," \
	"\"ReturnConsumedCapacity\":\"TOTAL\",\"ProjectionExpression\":\"#key, #ownerName," \
	" #recordVersionNumber, #leaseDuration, #fencingToken, #holder, #isReleased," \
	" #releasedAt, #releasedVersion, #shared, #attributeNames, #keptUntil"
#define SCAN_START SCAN_PARTS "\","
#define SEPARATED_START SCAN_PARTS ", #sort\","
#define SCAN_NAMES N("ownerName") "," N("recordVersionNumber") "," N("leaseDuration") "," \
	N("fencingToken") "," N("holder") "," N("isReleased") "," N("releasedAt") "," \
	N("releasedVersion") "," N("shared") "," N("attributeNames") "," N("keptUntil")

TEST(scan_reads_consistently_and_leaves_data_out)
{
	dynamo_scan scan = {.prefix = "", .limit = 20};

	assert_body(dynamo_build_scan(&plain_table, &scan),
				SCAN_START "\"Limit\":20,\"ExpressionAttributeNames\":{"
				SCAN_NAMES ",\"#key\":\"key\"}}");
}

TEST(scan_filters_and_goes_on_after_a_key)
{
	dynamo_scan scan = {
		.prefix = "a\"bc", .prefix_len = 3, .released_only = true, .limit = 500,
		.after = "last one!", .after_len = 8, .after_sort = "locks!", .after_sort_len = 5
	};

	assert_body(dynamo_build_scan(&sorted_table, &scan),
				SCAN_START "\"Limit\":500,\"FilterExpression\":\"attribute_exists(#isReleased)"
				" AND begins_with(#key, :prefix) AND #sort = :sort\","
				"\"ExpressionAttributeNames\":{" SCAN_NAMES ",\"#key\":\"pk\","
				"\"#sort\":\"sk\"},\"ExpressionAttributeValues\":{"
				"\":prefix\":{\"S\":\"a\\\"b\"},\":sort\":{\"S\":\"locks\"}},"
				"\"ExclusiveStartKey\":{\"pk\":{\"S\":\"last one\"},"
				"\"sk\":{\"S\":\"locks\"}}}");
	scan.released_only = false;
	assert_body(dynamo_build_scan(&plain_table, &scan),
				SCAN_START "\"Limit\":500,\"FilterExpression\":\"begins_with(#key, :prefix)\","
				"\"ExpressionAttributeNames\":{" SCAN_NAMES ",\"#key\":\"key\"},"
				"\"ExpressionAttributeValues\":{\":prefix\":{\"S\":\"a\\\"b\"}},"
				"\"ExclusiveStartKey\":{\"key\":{\"S\":\"last one\"}}}");
}

#define SEPARATED_NAMES \
	"\"ExpressionAttributeNames\":{" SCAN_NAMES ",\"#key\":\"pk\",\"#sort\":\"sk\"}"

TEST(scan_with_a_separator_reads_all_sort_keys)
{
	dynamo_scan scan = {.prefix = "ord", .prefix_len = 3, .limit = 20};

	assert_body(dynamo_build_scan(&separated_table, &scan),
				SEPARATED_START "\"Limit\":20,\"FilterExpression\":\"begins_with(#key, :prefix)\","
				SEPARATED_NAMES ",\"ExpressionAttributeValues\":{\":prefix\":{\"S\":\"ord\"}}}");
	scan.prefix_len = 0;
	assert_body(dynamo_build_scan(&separated_table, &scan),
				SEPARATED_START "\"Limit\":20," SEPARATED_NAMES "}");
}

TEST(query_reads_one_partition)
{
	dynamo_scan scan = {
		.prefix = "orders#42", .prefix_len = 8, .released_only = true, .limit = 20,
		.after = "orders", .after_len = 6, .after_sort = "41", .after_sort_len = 2
	};

	assert_body(dynamo_build_scan(&separated_table, &scan),
				SEPARATED_START "\"Limit\":20,\"KeyConditionExpression\":\"#key = :key"
				" AND begins_with(#sort, :prefix)\","
				"\"FilterExpression\":\"attribute_exists(#isReleased)\"," SEPARATED_NAMES ","
				"\"ExpressionAttributeValues\":{\":key\":{\"S\":\"orders\"},"
				"\":prefix\":{\"S\":\"4\"}},"
				"\"ExclusiveStartKey\":{\"pk\":{\"S\":\"orders\"},\"sk\":{\"S\":\"41\"}}}");
	scan.prefix_len = 7;
	scan.released_only = false;
	scan.after = NULL;
	assert_body(dynamo_build_scan(&separated_table, &scan),
				SEPARATED_START "\"Limit\":20,\"KeyConditionExpression\":\"#key = :key\","
				SEPARATED_NAMES ",\"ExpressionAttributeValues\":{\":key\":{\"S\":\"orders\"}}}");
}

TEST(a_bar_raises_the_token_of_any_item)
{
	assert_write(&sorted_table, write_of(DYNAMO_BAR),
				 "{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"orders\"},"
				 "\"sk\":{\"S\":\"locks\"}},"
				 "\"UpdateExpression\":\"SET #fencingToken = :last REMOVE #ttl\","
				 "\"ConditionExpression\":\"attribute_exists(#key)" BELOW "\","
				 "\"ExpressionAttributeNames\":{\"#key\":\"pk\"," N("fencingToken") "," N("ttl") "},"
				 "\"ExpressionAttributeValues\":{\":first\":{\"N\":\"1200\"},"
				 "\":last\":{\"N\":\"1234\"}},\"ReturnValues\":\"ALL_NEW\"," ASK_FOR "}");
}

#define BAR_NEW \
	"\"UpdateExpression\":\"SET #ownerName = :owner, #recordVersionNumber = :version," \
	" #leaseDuration = :lease, #isReleased = :released, #releasedAt = :now," \
	" #releasedVersion = :version, #fencingToken = :last"
#define BAR_NEW_NAMES \
	N("ownerName") "," N("recordVersionNumber") "," N("leaseDuration") "," N("isReleased") "," \
	N("releasedAt") "," N("releasedVersion") "," N("fencingToken")
#define BAR_NEW_VALUES \
	"\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"db1/inc\"}," \
	"\":version\":{\"S\":\"new\"},\":lease\":{\"S\":\"20000\"},\":released\":{\"S\":\"1\"}," \
	"\":now\":{\"N\":\"1000\"},\":last\":{\"N\":\"1234\"}"

TEST(a_bar_makes_a_released_item_that_stays_for_a_day)
{
	dynamo_table long_lived = sorted_table;

	assert_write(&plain_table, write_of(DYNAMO_BAR_NEW),
				 "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"orders\"}},"
				 BAR_NEW "\",\"ConditionExpression\":\"attribute_not_exists(#key)\","
				 "\"ExpressionAttributeNames\":{\"#key\":\"key\"," BAR_NEW_NAMES "},"
				 BAR_NEW_VALUES "}," ASK_FOR "}");
	assert_write(&sorted_table, write_of(DYNAMO_BAR_NEW),
				 "{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"orders\"},"
				 "\"sk\":{\"S\":\"locks\"}},"
				 BAR_NEW ", #ttl = :ttl\",\"ConditionExpression\":\"attribute_not_exists(#key)\","
				 "\"ExpressionAttributeNames\":{\"#key\":\"pk\"," BAR_NEW_NAMES "," N("ttl") "},"
				 BAR_NEW_VALUES ",\":ttl\":{\"N\":\"87400\"}}," ASK_FOR "}");
	long_lived.released_ttl_s = 100000;
	assert_write(&long_lived, write_of(DYNAMO_BAR_NEW),
				 "{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"orders\"},"
				 "\"sk\":{\"S\":\"locks\"}},"
				 BAR_NEW ", #ttl = :ttl\",\"ConditionExpression\":\"attribute_not_exists(#key)\","
				 "\"ExpressionAttributeNames\":{\"#key\":\"pk\"," BAR_NEW_NAMES "," N("ttl") "},"
				 BAR_NEW_VALUES ",\":ttl\":{\"N\":\"101000\"}}," ASK_FOR "}");
}

TEST(delete_demands_the_version_and_released_and_no_higher_token)
{
	assert_write(&plain_table, write_of(DYNAMO_DELETE),
				 "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"orders\"}},"
				 "\"ConditionExpression\":\"#recordVersionNumber = :expected"
				 " AND attribute_exists(#isReleased)" NOT_ABOVE "\","
				 "\"ExpressionAttributeNames\":{" N("recordVersionNumber") ","
				 N("isReleased") "," N("fencingToken") "},"
				 "\"ExpressionAttributeValues\":{\":expected\":{\"S\":\"old\"},"
				 "\":last\":{\"N\":\"1234\"}}," ASK_FOR "}");
}

TEST(force_release_demands_the_version_of_whomever)
{
	assert_write(&sorted_table, write_of(DYNAMO_FORCE_RELEASE),
				 "{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"orders\"},"
				 "\"sk\":{\"S\":\"locks\"}},"
				 "\"UpdateExpression\":\"SET #recordVersionNumber = :version,"
				 " #isReleased = :released, #releasedAt = :now, #releasedVersion = :version, #ttl = :ttl"
				 " REMOVE #holder, #data, #keptUntil\","
				 "\"ConditionExpression\":\"#recordVersionNumber = :expected"
				 " AND (attribute_not_exists(#isReleased) OR attribute_exists(#keptUntil))\","
				 "\"ExpressionAttributeNames\":{" N("recordVersionNumber") "," N("isReleased") "," N("keptUntil") ","
				 N("releasedAt") "," N("ttl") "," N("releasedVersion") "," N("holder") "," N("data") "},"
				 "\"ExpressionAttributeValues\":{\":version\":{\"S\":\"new\"},"
				 "\":expected\":{\"S\":\"old\"},\":released\":{\"S\":\"1\"},"
				 "\":now\":{\"N\":\"1000\"},\":ttl\":{\"N\":\"4600\"}}," ASK_FOR "}");
}

/* Every lock client can read the item: it has what a released lock has. */
TEST(the_first_identity_of_a_table_counts)
{
	char	   *body = dynamo_build_identify(&separated_table, "new");

	assert_body(body,
				"{\"TableName\":\"lockTable\",\"Key\":{\"pk\":{\"S\":\"ddblock/lock-table\"},"
				"\"sk\":{\"S\":\"locks\"}},"
				"\"UpdateExpression\":\"SET #ownerName = :owner, #recordVersionNumber = :version,"
				" #leaseDuration = :lease, #isReleased = :released\","
				"\"ConditionExpression\":\"attribute_not_exists(#key)\","
				"\"ExpressionAttributeNames\":{\"#key\":\"pk\"," N("ownerName") ","
				N("recordVersionNumber") "," N("leaseDuration") "," N("isReleased") "},"
				"\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"ddblock\"},"
				"\":version\":{\"S\":\"new\"},\":lease\":{\"S\":\"1000\"},"
				"\":released\":{\"S\":\"1\"}}," ASK_FOR "}");
}

TEST(every_operation_has_its_names)
{
	for (int op = 0; op < DYNAMO_OP_COUNT; op++)
	{
		assert_ptr_equal(strstr(dynamo_target((dynamo_op) op), "DynamoDB_20120810."),
						 dynamo_target((dynamo_op) op));
		assert_ptr_equal(strstr(dynamo_action((dynamo_op) op), "dynamodb:"),
						 dynamo_action((dynamo_op) op));
		assert_non_null(dynamo_op_name((dynamo_op) op));
	}
	assert_string_equal(dynamo_op_name(DYNAMO_HAND_OVER), "hand_over");
	assert_string_equal(dynamo_op_name(DYNAMO_BAR), "bar");
	assert_string_equal(dynamo_action(DYNAMO_BAR_NEW), "dynamodb:UpdateItem");
	assert_string_equal(dynamo_target(DYNAMO_HAND_OVER), "DynamoDB_20120810.UpdateItem");
	assert_string_equal(dynamo_target(DYNAMO_RENEW_BATCH),
						"DynamoDB_20120810.BatchExecuteStatement");
	assert_string_equal(dynamo_action(DYNAMO_RENEW_BATCH), "dynamodb:PartiQLUpdate");
	assert_string_equal(dynamo_action(DYNAMO_READ), "dynamodb:GetItem");
	assert_string_equal(dynamo_action(DYNAMO_SCAN), "dynamodb:Scan");
	assert_string_equal(dynamo_target(DYNAMO_QUERY), "DynamoDB_20120810.Query");
	assert_string_equal(dynamo_action(DYNAMO_QUERY), "dynamodb:Query");
	assert_string_equal(dynamo_action(DYNAMO_DELETE), "dynamodb:DeleteItem");
	assert_string_equal(dynamo_action(DYNAMO_FORCE_RELEASE), "dynamodb:UpdateItem");
}

TEST(operations_are_told_apart_by_what_they_are_about)
{
#define BIT(op) (UINT64_C(1) << (op))
	const uint64_t pages = BIT(DYNAMO_SCAN) | BIT(DYNAMO_QUERY);
	const uint64_t looks = BIT(DYNAMO_DESCRIBE_TABLE) | BIT(DYNAMO_DESCRIBE_TTL) |
		BIT(DYNAMO_QUEUE_DESCRIBE_TABLE) | BIT(DYNAMO_QUEUE_DESCRIBE_TTL);
	const uint64_t tables = looks | BIT(DYNAMO_CREATE_TABLE) | BIT(DYNAMO_UPDATE_TTL) |
		BIT(DYNAMO_QUEUE_CREATE_TABLE) | BIT(DYNAMO_QUEUE_UPDATE_TTL);
	const uint64_t queue_writes = BIT(DYNAMO_QUEUE_TRANSACT) | BIT(DYNAMO_QUEUE_UPDATE) |
		BIT(DYNAMO_QUEUE_DELETE);

	for (int op = 0; op < DYNAMO_OP_COUNT; op++)
	{
		assert_int_equal(dynamo_is_page((dynamo_op) op), pages >> op & 1);
		assert_int_equal(dynamo_is_about_table((dynamo_op) op), tables >> op & 1);
		assert_int_equal(dynamo_is_description((dynamo_op) op), looks >> op & 1);
		assert_int_equal(dynamo_is_queue_write((dynamo_op) op), queue_writes >> op & 1);
	}
}

TEST(other_operations_are_not_taken_for_a_renewal)
{
	const dynamo_op others[] = {DYNAMO_RENEW_BATCH, DYNAMO_DESCRIBE_TABLE,
	DYNAMO_CREATE_TABLE, DYNAMO_UPDATE_TTL, DYNAMO_SCAN, DYNAMO_QUERY};

	for (size_t i = 0; i < COUNT_OF(others); i++)
	{
		dynamo_write write = write_of(others[i]);

		assert_null(dynamo_build(&plain_table, &write));
	}
}
