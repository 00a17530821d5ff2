/*-------------------------------------------------------------------------
 *
 * test_dynamo_attributes.c
 *	  Additional attributes in requests and in replies.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"

#include <cjson/cJSON.h>

#include "dynamo/dynamo.h"

static const dynamo_table table = {"lockTable", "key", NULL, "", 0, '\0'};
static const dynamo_holder holder = {.database = "shop"};

static dynamo_write
write_of(dynamo_op op)
{
	return (dynamo_write) {
		.op = op,.name = "orders",.name_len = 6,.owner = "db1/inc",.version = "new",
		.expected = op == DYNAMO_ACQUIRE ? "" : "old",.lease_ms = 20000,.first_token = 5,
		.last_token = 5,.holder = op == DYNAMO_ACQUIRE ? &holder : NULL
	};
}

/* A part of the body: path "ExpressionAttributeValues", name ":a0". */
static void
assert_member(const cJSON *body, const char *part, const char *name, const char *json)
{
	const cJSON *member = cJSON_GetObjectItem(body, part);
	cJSON	   *wanted = cJSON_Parse(json);

	member = cJSON_GetObjectItemCaseSensitive(member, name);
	if (json[0] == '\0' ? member != NULL : !cJSON_Compare(member, wanted, true))
		fail_msg("%s %s is not %s", part, name, json);
	cJSON_Delete(wanted);
}

static cJSON *
build(dynamo_write write)
{
	char	   *text = dynamo_build(&table, &write);
	cJSON	   *body;

	assert_non_null(text);
	body = cJSON_Parse(text);
	assert_non_null(body);
	free(text);
	return body;
}

static const char *
expression(const cJSON *body, const char *which)
{
	return cJSON_GetStringValue(cJSON_GetObjectItem(body, which));
}

static bool
has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

TEST(an_acquire_sets_them_with_their_names)
{
	dynamo_write write = write_of(DYNAMO_ACQUIRE);
	cJSON	   *body;

	write.attributes = "{\"te\\\"am\":{\"S\":\"x\"},\"n\":{\"N\":\"12345678901234567890.5\"}}";
	body = build(write);
	assert_true(has(expression(body, "UpdateExpression"),
					"#a0 = :a0, #a1 = :a1, #attributeNames = :attributeNames REMOVE #data,"));
	assert_true(has(expression(body, "ConditionExpression"),
					" AND attribute_not_exists(#attributeNames)"));
	assert_member(body, "ExpressionAttributeNames", "#a0", "\"te\\\"am\"");
	assert_member(body, "ExpressionAttributeValues", ":a0", "{\"S\":\"x\"}");
	assert_member(body, "ExpressionAttributeValues", ":a1",
				  "{\"N\":\"12345678901234567890.5\"}");
	assert_member(body, "ExpressionAttributeValues", ":attributeNames",
				  "{\"S\":\"[\\\"te\\\\\\\"am\\\",\\\"n\\\"]\"}");
	assert_member(body, "ExpressionAttributeValues", ":oldNames", "");
	cJSON_Delete(body);
}

TEST(an_acquire_removes_those_that_it_knows)
{
	dynamo_write write = write_of(DYNAMO_ACQUIRE);
	cJSON	   *body;

	write.old_attributes = "[\"team\",\"place\"]";
	body = build(write);
	assert_true(has(expression(body, "UpdateExpression"), "#shared, #keptUntil, #o0, #o1, #attributeNames"));
	assert_true(has(expression(body, "ConditionExpression"), " AND #attributeNames = :oldNames"));
	assert_member(body, "ExpressionAttributeNames", "#o0", "\"team\"");
	assert_member(body, "ExpressionAttributeNames", "#o1", "\"place\"");
	assert_member(body, "ExpressionAttributeValues", ":oldNames",
				  "{\"S\":\"[\\\"team\\\",\\\"place\\\"]\"}");
	cJSON_Delete(body);

	/* What is set anew is not removed. */
	write.attributes = "{\"team\":{\"S\":\"x\"}}";
	body = build(write);
	assert_false(has(expression(body, "UpdateExpression"), "#o0"));
	assert_true(has(expression(body, "UpdateExpression"), "#shared, #keptUntil, #o1"));
	assert_false(has(expression(body, "UpdateExpression"), "#o1, #attributeNames"));
	assert_member(body, "ExpressionAttributeNames", "#o0", "");
	assert_member(body, "ExpressionAttributeNames", "#a0", "\"team\"");
	cJSON_Delete(body);
}

TEST(a_release_removes_those_that_it_knows)
{
	dynamo_write write = write_of(DYNAMO_RELEASE);
	cJSON	   *body = build(write);

	assert_false(has(expression(body, "UpdateExpression"), "#attributeNames"));
	assert_member(body, "ExpressionAttributeNames", "#attributeNames", "");
	cJSON_Delete(body);
	write.old_attributes = "[\"team\"]";
	body = build(write);
	assert_true(has(expression(body, "UpdateExpression"), "REMOVE #holder, #data, #keptUntil, #o0, #attributeNames"));
	assert_member(body, "ExpressionAttributeNames", "#attributeNames", "\"attributeNames\"");
	cJSON_Delete(body);
}

TEST(names_that_are_no_list_are_refused)
{
	static const char *const wrong[] = {
		"", "team", "{}", "[1]", "[\"team\"", "[\"team\"],\"x\":[1]", "[\"\"]", "[\"ownerName\"]",
		"[\"attributeNames\"]"
	};

	for (size_t i = 0; i < COUNT_OF(wrong); i++)
	{
		dynamo_write write = write_of(DYNAMO_ACQUIRE);

		write.old_attributes = wrong[i];
		assert_null(dynamo_build(&table, &write));
	}
}

static dynamo_reply reply;

#define OURS "\"ownerName\":{\"S\":\"db1/inc\"},\"recordVersionNumber\":{\"S\":\"v\"}," \
	"\"leaseDuration\":{\"S\":\"20000\"}"
#define HOLDER ",\"holder\":{\"M\":{\"owner\":{\"S\":\"db1/inc\"}}}"

static const dynamo_item *
read_item(const char *attributes)
{
	char		body[4096];

	dynamo_reply_free(&reply);
	snprintf(body, sizeof(body), "{\"Item\":{" OURS "%s}}", attributes);
	dynamo_read(&reply, NULL, DYNAMO_READ, 1, 200, NULL, body, strlen(body));
	assert_int_equal(reply.status, DYNAMO_OK);
	return &reply.results[0].item;
}

TEST(the_holder_s_attributes_are_plain_json)
{
	const dynamo_item *item = read_item(HOLDER
		",\"attributeNames\":{\"S\":\"[\\\"s\\\",\\\"n\\\",\\\"b\\\",\\\"z\\\",\\\"l\\\",\\\"m\\\",\\\"gone\\\"]\"}"
		",\"s\":{\"S\":\"a\\\"\\nb\"},\"n\":{\"N\":\"-1.5E+3\"},\"b\":{\"BOOL\":true}"
		",\"z\":{\"NULL\":true},\"l\":{\"L\":[{\"N\":\"1\"},{\"S\":\"x\"}]}"
		",\"m\":{\"M\":{\"a\":{\"BOOL\":false},\"c\":{\"L\":[]}}}"
		",\"other\":{\"S\":\"of an earlier client\"}");

	assert_string_equal(item->attributes,
						"{\"s\":\"a\\\"\\u000ab\",\"n\":-1.5E+3,\"b\":true,\"z\":null,"
						"\"l\":[1,\"x\"],\"m\":{\"a\":false,\"c\":[]}}");
	assert_false(item->bad_names);
	assert_true(has(item->attribute_names, "gone"));
	dynamo_reply_free(&reply);
}

TEST(another_clients_attributes_are_all_but_those_of_a_lock)
{
	assert_string_equal(read_item(",\"key\":{\"S\":\"orders\"},\"ss\":{\"SS\":[\"a\",\"b\"]}"
								  ",\"ns\":{\"NS\":[\"1\",\"2.5\"]},\"by\":{\"B\":\"AAE=\"}"
								  ",\"bs\":{\"BS\":[\"AAE=\"]},\"odd\":{\"N\":\"0x1\"}"
								  ",\"odder\":7,\"oddest\":{\"S\":7}"
								  ",\"fencingToken\":{\"N\":\"1\"}")->attributes,
						"{\"key\":\"orders\",\"ss\":[\"a\",\"b\"],\"ns\":[1,2.5],\"by\":\"AAE=\","
						"\"bs\":[\"AAE=\"],\"odd\":\"0x1\",\"odder\":null,\"oddest\":null}");
	dynamo_reply_free(&reply);
}

TEST(names_may_begin_with_any_character)
{
	const dynamo_item *item = read_item(HOLDER ",\"attributeNames\":{\"S\":\"[\\\"\xc3\xa9\\\"]\"}"
										",\"\xc3\xa9\":{\"S\":\"x\"}");

	assert_false(item->bad_names);
	assert_string_equal(item->attributes, "{\"\xc3\xa9\":\"x\"}");
	dynamo_reply_free(&reply);
}

TEST(who_has_none_is_shown_none)
{
	assert_null(read_item(HOLDER ",\"other\":{\"S\":\"x\"}")->attributes);
	assert_null(read_item(HOLDER ",\"isReleased\":{\"S\":\"1\"},\"other\":{\"S\":\"x\"}"
						  ",\"attributeNames\":{\"S\":\"[\\\"other\\\"]\"}")->attributes);
	assert_string_equal(reply.results[0].item.attribute_names, "[\"other\"]");
	assert_true(read_item(HOLDER ",\"attributeNames\":{\"N\":\"1\"}")->bad_names);
	assert_true(read_item(HOLDER ",\"attributeNames\":{\"S\":\"x\"}")->bad_names);
	assert_string_equal(reply.results[0].item.wrong,
						"the lock item's attributeNames is not a JSON array of names, as a text");
	assert_null(reply.results[0].item.attribute_names);
	dynamo_reply_free(&reply);
}

/* Only what JSON calls a number becomes one. */
TEST(numbers)
{
	static const struct
	{
		const char *n;
		bool		number;
	}			cases[] = {
		{"0", true}, {"9.25", true}, {"-0.5", true}, {"10", true}, {"1e5", true}, {"1E-130", true},
		{"01", false}, {"1.", false}, {".5", false}, {"1e", false}, {"+1", false}, {"", false},
		{"1 ", false}, {"1e1000", false}, {"NaN", false}, {"-", false},
		{"1e999", true}, {"1E+1", true}, {"0e0", true}, {"9", true}, {"-1", true}, {"100.05e-10", true},
		{"--1", false}, {"1e+", false}, {"1e+-1", false}, {"1e++1", false}, {"1.5e", false}, {"1.5.5", false},
		{"/", false}, {":", false}, {"1:", false}, {"0x", false}, {"00", false}, {"-01", false}, {"1e5 ", false},
		{"1.e5", false}, {"1f5", false}, {"1d5", false}
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		char		text[64];
		char		expected[64];

		snprintf(text, sizeof(text), ",\"n\":{\"N\":\"%s\"}", cases[i].n);
		snprintf(expected, sizeof(expected), cases[i].number ? "{\"n\":%s}" : "{\"n\":\"%s\"}",
				 cases[i].n);
		assert_string_equal(read_item(text)->attributes, expected);
	}
	dynamo_reply_free(&reply);
}
