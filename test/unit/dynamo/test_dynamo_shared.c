/*-------------------------------------------------------------------------
 *
 * test_dynamo_shared.c
 *	  Shared mode: the exact requests, and what the reader makes of an item.
 *
 * Bodies are compared as JSON.  test/unit/double/test_shared_writes.c carries all of
 * these requests out.
 *
 *-------------------------------------------------------------------------
 */
#define AFTER_EACH free_reply
#include "../unit.h"

#include <cjson/cJSON.h>

#include "dynamo/dynamo.h"

#define N(name) "\"#" name "\":\"" name "\""
#define TEXT(name, value) "\"" name "\":{\"S\":\"" value "\"}"
#define NUMBER(name, value) "\"" name "\":{\"N\":\"" #value "\"}"

#define SHARED_NAMES N("ownerName") "," N("recordVersionNumber") "," N("isReleased") "," \
	N("shared")
#define ENTRY_NAMES SHARED_NAMES "," N("h") ",\"#me\":\"m\\\"e\""
#define VERSION TEXT(":version", "new")
#define EPOCH TEXT(":epoch", "shared/e1") "," VERSION
#define EXPECTED TEXT(":expected", "old")
#define ENTRY(permits) "{\"M\":{" TEXT("v", "new") "," NUMBER("n", permits) "," \
	NUMBER("l", 20000) "," NUMBER("t", 1234) "," TEXT("o", "shop@db1") "}}"

static const dynamo_table plain_table = {"lockTable", "key", NULL, NULL, 0, '\0'};
static const dynamo_table sorted_table = {"lockTable", "pk", "sk", "locks", 3600, '\0'};
static const dynamo_dead_entry dead[] = {{"gone", "d1"}, {"lost", "d2"}};

/* The write that each test sends. */
static dynamo_shared_write shared;
static dynamo_write the_write;

static dynamo_reply reply;

static int
free_reply(void **state)
{
	(void) state;
	dynamo_reply_free(&reply);
	return 0;
}

static void
begin(dynamo_shared_kind kind)
{
	shared = (dynamo_shared_write) {
		.kind = kind,.epoch = "shared/e1",.me = "m\"e"
	};
	the_write = (dynamo_write) {
		.op = dynamo_shared_op(kind),.name = "orders",.name_len = 6,.version = "new",
			.expected = "old",.lease_ms = 20000,.last_token = 1234,.now_s = 1000,
		.past_ms = 999500,.shared = &shared
	};
}

static void
begin_entry(dynamo_shared_kind kind)
{
	begin(kind);
	shared.entry.mode = MODE_SHARED;
	shared.entry.name = "shop@db1";
	shared.entry.admission.permits = 1;
}

/* A semaphore; two dead, with four permits. */
static dynamo_admission
full_admission(void)
{
	return (dynamo_admission) {
		.permits = 2,.limit = 5,.freed = 4,.dead_count = 2,.dead = dead,.dead_gate = "g1"
	};
}

static cJSON *
parse(const char *json)
{
	cJSON	   *tree = cJSON_ParseWithOpts(json, NULL, true);

	if (tree == NULL)
		fail_msg("not JSON: %s", json);
	return tree;
}

/* Frees body. */
static void
assert_body(char *body, const char *expected)
{
	cJSON	   *got = parse(body);
	cJSON	   *wanted = parse(expected);

	if (!cJSON_Compare(got, wanted, true))
		fail_msg("body is %s\ninstead of %s", body, expected);
	cJSON_Delete(got);
	cJSON_Delete(wanted);
	free(body);
}

#define SHOWN "\"ReturnValues\":\"ALL_NEW\","

/* A request with these expressions, names and values. */
static void
assert_write(const dynamo_table *table, const char *update, const char *condition,
			 const char *names, const char *values, const char *shown)
{
	char		expected[8192];

	snprintf(expected, sizeof(expected), "{\"TableName\":\"lockTable\",\"Key\":{%s},"
			 "\"UpdateExpression\":\"%s\",\"ConditionExpression\":\"%s\","
			 "\"ExpressionAttributeNames\":{%s},\"ExpressionAttributeValues\":{%s},%s"
			 "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\","
			 "\"ReturnConsumedCapacity\":\"TOTAL\"}",
			 table == &plain_table ? "\"key\":{\"S\":\"orders\"}" :
			 "\"pk\":{\"S\":\"orders\"},\"sk\":{\"S\":\"locks\"}",
			 update, condition, names, values, shown);
	assert_body(dynamo_build(table, &the_write), expected);
}

#define OPEN "SET #ownerName = :epoch, #recordVersionNumber = :version," \
	" #leaseDuration = :lease, #fencingToken = :token, #shared = :shared REMOVE #data," \
	" #holder, #isReleased, #releasedAt, #releasedVersion, #ttl, #keptUntil"
#define NOT_KEPT " (attribute_not_exists(#keptUntil) OR #keptUntil <= :past) AND"
#define OPEN_NAMES SHARED_NAMES "," N("leaseDuration") "," N("fencingToken") "," N("data") "," \
	N("holder") "," N("releasedAt") "," N("releasedVersion") "," N("ttl") "," N("gate") "," \
	N("v") "," N("attributeNames") "," N("keptUntil")
#define OPEN_VALUES(kind, permits) TEXT(":epoch", "shared/new") "," VERSION "," \
	TEXT(":lease", "20000") "," NUMBER(":token", 1234) "," NUMBER(":past", 999500) ",\":shared\":{\"M\":{" \
	TEXT("owner", "shared/new") "," TEXT("kind", kind) "," NUMBER("total", permits) "," \
	"\"h\":{\"M\":{\"m\\\"e\":" ENTRY(permits) "}}}}"

TEST(open_makes_the_map_and_names_the_epoch_after_its_nonce)
{
	begin_entry(DYNAMO_SHARED_OPEN);
	shared.epoch = NULL;
	the_write.expected = "";
	assert_write(&plain_table, OPEN,
				 "(attribute_not_exists(#key) OR attribute_exists(#isReleased)) AND"
				 " (attribute_not_exists(#fencingToken) OR #fencingToken < :token) AND" NOT_KEPT
				 " attribute_not_exists(#shared.#gate.#v) AND attribute_not_exists(#attributeNames)",
				 "\"#key\":\"key\"," OPEN_NAMES, OPEN_VALUES("shared", 1), "");
}

TEST(open_takes_over_a_dead_item_and_ignores_a_dead_gate)
{
	begin_entry(DYNAMO_SHARED_OPEN);
	shared.entry.mode = MODE_SEMAPHORE;
	shared.entry.admission = full_admission();
	the_write.old_attributes = "[\"team\"]";
	assert_write(&sorted_table, OPEN,
				 "(attribute_not_exists(#key) OR attribute_exists(#isReleased) OR"
				 " #recordVersionNumber = :expected) AND"
				 " (attribute_not_exists(#fencingToken) OR #fencingToken < :token) AND" NOT_KEPT
				 " (attribute_not_exists(#shared.#gate.#v) OR #shared.#gate.#v = :gate) AND"
				 " #attributeNames = :oldNames",
				 "\"#key\":\"pk\"," OPEN_NAMES,
				 OPEN_VALUES("semaphore", 2) "," EXPECTED "," TEXT(":gate", "g1") ","
				 TEXT(":oldNames", "[\\\"team\\\"]"), "");
}

TEST(an_opening_removes_its_clusters_mark)
{
	char	   *body;

	begin_entry(DYNAMO_SHARED_OPEN);
	the_write.unmark = true;
	body = dynamo_build(&plain_table, &the_write);
	assert_non_null(strstr(body, " #ttl, #keptUntil, #wanted\""));
	assert_non_null(strstr(body, "\"#wanted\":\"wanted\""));
	free(body);
}

#define JOIN "SET #recordVersionNumber = :version, #fencingToken = :token," \
	" #shared.#total = #shared.#total + :growth, #shared.#h.#me = :entry"
#define JOIN_IF "#ownerName = :epoch AND attribute_not_exists(#isReleased) AND" \
	" #shared.#kind = :kind AND #fencingToken < :token AND "
#define NEW_ENTRY_IF "attribute_not_exists(#shared.#h.#me) AND size(#shared.#h) < :most AND "
#define OLD_ENTRY_IF "#shared.#h.#me.#v = :expected AND "
#define JOIN_NAMES ENTRY_NAMES "," N("fencingToken") "," N("total") "," N("kind") "," \
	N("gate") "," N("v")
#define JOIN_VALUES(kind, permits) EPOCH "," NUMBER(":token", 1234) "," TEXT(":kind", kind) \
	",\":entry\":" ENTRY(permits)
#define ADMISSION_IF "#shared.#total <= :room AND" \
	" (attribute_not_exists(#shared.#gate.#v) OR #shared.#gate.#v = :gate) AND" \
	" #shared.#h.#dead0.#v = :dead0 AND #shared.#h.#dead1.#v = :dead1"
#define ADMISSION_VALUES NUMBER(":growth", -2) "," NUMBER(":room", 7) "," \
	TEXT(":gate", "g1") "," TEXT(":dead0", "d1") "," TEXT(":dead1", "d2")
#define DEAD_NAMES ",\"#dead0\":\"gone\",\"#dead1\":\"lost\""
#define REMOVE_DEAD " REMOVE #shared.#h.#dead0, #shared.#h.#dead1, #shared.#gate"

TEST(join_of_a_shared_lock)
{
	begin_entry(DYNAMO_SHARED_JOIN);
	assert_write(&plain_table, JOIN,
				 JOIN_IF NEW_ENTRY_IF "attribute_not_exists(#shared.#gate.#v)", JOIN_NAMES,
				 JOIN_VALUES("shared", 1) "," NUMBER(":most", 32) "," NUMBER(":growth", 1),
				 SHOWN);
}

TEST(join_of_a_semaphore_removes_the_dead_and_raises_the_lease)
{
	begin_entry(DYNAMO_SHARED_JOIN);
	shared.entry.mode = MODE_SEMAPHORE;
	shared.entry.shorter_ms = 9000;
	shared.entry.admission = full_admission();
	assert_write(&plain_table, JOIN ", #leaseDuration = :lease" REMOVE_DEAD,
				 JOIN_IF NEW_ENTRY_IF "#leaseDuration = :shorter AND " ADMISSION_IF,
				 JOIN_NAMES "," N("leaseDuration") DEAD_NAMES,
				 JOIN_VALUES("semaphore", 2) "," NUMBER(":most", 34) ","
				 TEXT(":lease", "20000") "," TEXT(":shorter", "9000") "," ADMISSION_VALUES,
				 SHOWN);
}

TEST(replace_names_the_old_version_of_our_entry)
{
	begin_entry(DYNAMO_SHARED_REPLACE);
	assert_write(&plain_table, JOIN,
				 JOIN_IF OLD_ENTRY_IF "attribute_not_exists(#shared.#gate.#v)", JOIN_NAMES,
				 JOIN_VALUES("shared", 1) "," EXPECTED "," NUMBER(":growth", 1), SHOWN);

	begin_entry(DYNAMO_SHARED_REPLACE);
	shared.entry.mode = MODE_SEMAPHORE;
	shared.entry.admission = full_admission();
	assert_write(&plain_table, JOIN REMOVE_DEAD, JOIN_IF OLD_ENTRY_IF ADMISSION_IF,
				 JOIN_NAMES DEAD_NAMES,
				 JOIN_VALUES("semaphore", 2) "," EXPECTED "," ADMISSION_VALUES, SHOWN);
}

#define MINE "#ownerName = :epoch AND attribute_not_exists(#isReleased) AND" \
	" #shared.#h.#me.#v = :expected"
#define RENEW "SET #recordVersionNumber = :version, #shared.#h.#me.#v = :version"

TEST(renewal_demands_the_epoch_and_our_entrys_version)
{
	begin(DYNAMO_SHARED_RENEW);
	assert_write(&plain_table, RENEW, MINE, ENTRY_NAMES "," N("v"), EPOCH "," EXPECTED,
				 SHOWN);
}

#define STATEMENT(keys) "{\"Statement\":\"UPDATE \\\"lockTable\\\"" \
	" SET \\\"recordVersionNumber\\\" = ?" \
	" SET \\\"shared\\\".\\\"h\\\".\\\"m\\\"\\\"e\\\".\\\"v\\\" = ? WHERE " keys \
	" AND \\\"ownerName\\\" = ? AND \\\"shared\\\".\\\"h\\\".\\\"m\\\"\\\"e\\\".\\\"v\\\" = ?" \
	" AND \\\"isReleased\\\" IS MISSING RETURNING ALL NEW *\"," \
	"\"Parameters\":[{\"S\":\"new\"},{\"S\":\"new\"},{\"S\":\"orders\"},"
#define STATEMENT_END "{\"S\":\"shared/e1\"},{\"S\":\"old\"}]," \
	"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}"

TEST(batch_takes_renewals_of_both_modes)
{
	dynamo_write writes[2];

	begin(DYNAMO_SHARED_RENEW);
	assert_body(dynamo_build_batch(&sorted_table, &the_write, 1), "{\"Statements\":["
				STATEMENT("\\\"pk\\\" = ? AND \\\"sk\\\" = ?") "{\"S\":\"locks\"}," STATEMENT_END
				"],\"ReturnConsumedCapacity\":\"TOTAL\"}");

	writes[0] = the_write;
	writes[1] = the_write;
	writes[1].shared = NULL;
	writes[1].owner = "db1/inc";
	assert_body(dynamo_build_batch(&plain_table, writes, 2), "{\"Statements\":["
				STATEMENT("\\\"key\\\" = ?") STATEMENT_END ","
				"{\"Statement\":\"UPDATE \\\"lockTable\\\" SET \\\"recordVersionNumber\\\" = ?"
				" SET \\\"leaseDuration\\\" = ? WHERE \\\"key\\\" = ? AND \\\"ownerName\\\" = ?"
				" AND \\\"recordVersionNumber\\\" = ? AND \\\"isReleased\\\" IS MISSING\","
				"\"Parameters\":[{\"S\":\"new\"},{\"S\":\"20000\"},{\"S\":\"orders\"},"
				"{\"S\":\"db1/inc\"},{\"S\":\"old\"}],"
				"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}"
				"],\"ReturnConsumedCapacity\":\"TOTAL\"}");
}

#define CHANGE RENEW ", #shared.#h.#me.#n = #shared.#h.#me.#n + :permits," \
	" #shared.#total = #shared.#total + :growth"
#define CHANGE_NAMES ENTRY_NAMES "," N("v") "," N("n") "," N("total")

TEST(change_upwards_needs_an_admission)
{
	begin(DYNAMO_SHARED_CHANGE);
	shared.change = full_admission();
	assert_write(&plain_table, CHANGE REMOVE_DEAD, MINE " AND " ADMISSION_IF,
				 CHANGE_NAMES "," N("gate") DEAD_NAMES,
				 EPOCH "," EXPECTED "," NUMBER(":permits", 2) "," ADMISSION_VALUES, SHOWN);
}

TEST(change_downwards_needs_none)
{
	begin(DYNAMO_SHARED_CHANGE);
	shared.change = full_admission();
	shared.change.permits = -1;
	assert_write(&plain_table, CHANGE, MINE, CHANGE_NAMES,
				 EPOCH "," EXPECTED "," NUMBER(":permits", -1) "," NUMBER(":growth", -1), SHOWN);
}

#define OF_THE_DEAD "#ownerName = #shared.#owner AND attribute_not_exists(#isReleased)" \
	" AND attribute_exists(#shared.#h.#me)"
#define LEAVE "SET #recordVersionNumber = :version," \
	" #shared.#total = #shared.#total - #shared.#h.#me.#n REMOVE #shared.#h.#me"
#define LEAVE_NAMES ENTRY_NAMES "," N("n") "," N("total")
#define ONE NUMBER(":one", 1)

TEST(leave_gives_all_permits_back)
{
	begin(DYNAMO_SHARED_LEAVE);
	assert_write(&plain_table, LEAVE, MINE " AND size(#shared.#h) > :one",
				 LEAVE_NAMES "," N("v"), EPOCH "," EXPECTED "," ONE, SHOWN);
	the_write.any_version = true;
	shared.epoch = NULL;
	the_write.expected = NULL;
	assert_write(&plain_table, LEAVE, OF_THE_DEAD " AND size(#shared.#h) > :one",
				 LEAVE_NAMES "," N("owner"), VERSION "," ONE, SHOWN);
}

#define RELEASE "SET #recordVersionNumber = :version, #isReleased = :released," \
	" #releasedAt = :now, #releasedVersion = :version"
#define REMOVE_MODE " REMOVE #holder, #data, #keptUntil, #shared.#owner, #shared.#kind," \
	" #shared.#total, #shared.#h"
#define RELEASE_NAMES N("releasedAt") "," N("releasedVersion") "," N("holder") "," \
	N("data") "," N("owner") "," N("kind") "," N("total") "," N("keptUntil")
#define RELEASE_VALUES TEXT(":released", "1") "," NUMBER(":now", 1000)

TEST(last_releases_the_item)
{
	begin(DYNAMO_SHARED_LAST);
	assert_write(&plain_table, RELEASE REMOVE_MODE, MINE " AND size(#shared.#h) = :one",
				 ENTRY_NAMES "," RELEASE_NAMES "," N("v"),
				 EPOCH "," EXPECTED "," RELEASE_VALUES "," ONE, SHOWN);
	the_write.any_version = true;
	shared.epoch = NULL;
	the_write.expected = NULL;
	assert_write(&sorted_table, RELEASE ", #ttl = :ttl" REMOVE_MODE,
				 OF_THE_DEAD " AND size(#shared.#h) = :one",
				 ENTRY_NAMES "," RELEASE_NAMES "," N("ttl"),
				 VERSION "," RELEASE_VALUES "," NUMBER(":ttl", 4600) "," ONE, SHOWN);
}

TEST(force_release_demands_the_epoch)
{
	begin(DYNAMO_SHARED_FORCE_RELEASE);
	shared.me = NULL;
	assert_write(&plain_table, RELEASE REMOVE_MODE,
				 "#ownerName = :epoch AND attribute_not_exists(#isReleased)",
				 SHARED_NAMES "," N("h") "," RELEASE_NAMES, EPOCH "," RELEASE_VALUES, "");
}

#define GATE_NAMES SHARED_NAMES "," N("gate") "," N("v")
#define WAITER "\":waiter\":{\"M\":{" TEXT("v", "new") "," NUMBER("l", 20000) "," \
	TEXT("o", "shop@db1") "}}"

TEST(gate_is_set_and_renewed)
{
	begin(DYNAMO_SHARED_GATE);
	shared.me = NULL;
	shared.waiter = "shop@db1";
	assert_write(&plain_table, "SET #recordVersionNumber = :version, #shared.#gate = :waiter",
				 "#ownerName = :epoch AND attribute_not_exists(#isReleased) AND"
				 " (attribute_not_exists(#shared.#gate.#v) OR #shared.#gate.#v = :gate)",
				 GATE_NAMES, EPOCH "," WAITER "," TEXT(":gate", "old"), SHOWN);
	the_write.expected = "";
	assert_write(&plain_table, "SET #recordVersionNumber = :version, #shared.#gate = :waiter",
				 "#ownerName = :epoch AND attribute_not_exists(#isReleased) AND"
				 " attribute_not_exists(#shared.#gate.#v)",
				 GATE_NAMES, EPOCH "," WAITER, SHOWN);

	begin(DYNAMO_SHARED_RENEW_GATE);
	shared.me = NULL;
	assert_write(&plain_table,
				 "SET #recordVersionNumber = :version, #shared.#gate.#v = :version",
				 "#ownerName = :epoch AND attribute_not_exists(#isReleased) AND"
				 " #shared.#gate.#v = :expected", GATE_NAMES, EPOCH "," EXPECTED, SHOWN);
}

TEST(largest_numbers_do_not_overflow)
{
	char	   *body;

	begin_entry(DYNAMO_SHARED_JOIN);
	shared.entry.admission = (dynamo_admission) {
		.permits = 1,.limit = INT32_MAX,.freed = INT32_MAX
	};
	body = dynamo_build(&plain_table, &the_write);
	assert_non_null(strstr(body, "\":growth\":{\"N\":\"-2147483646\"}"));
	assert_non_null(strstr(body, "\":room\":{\"N\":\"4294967293\"}"));
	free(body);
}

TEST(a_limit_of_one_is_a_limit)
{
	char	   *body;

	begin_entry(DYNAMO_SHARED_JOIN);
	shared.entry.admission.limit = 1;
	body = dynamo_build(&plain_table, &the_write);
	assert_non_null(strstr(body, " AND #shared.#total <= :room"));
	assert_non_null(strstr(body, "\":room\":{\"N\":\"0\"}"));
	free(body);
}

TEST(a_write_that_is_sent_as_another_operation_is_not_built)
{
	for (int kind = 0; kind < DYNAMO_SHARED_KIND_COUNT; kind++)
	{
		begin((dynamo_shared_kind) kind);
		if (kind != DYNAMO_SHARED_RENEW)
			assert_null(dynamo_build_batch(&plain_table, &the_write, 1));
		the_write.op = DYNAMO_HAND_OVER;
		assert_null(dynamo_build(&plain_table, &the_write));
	}
	assert_int_equal(dynamo_shared_op(DYNAMO_SHARED_OPEN), DYNAMO_ACQUIRE);
	assert_int_equal(dynamo_shared_op(DYNAMO_SHARED_GATE), DYNAMO_ACQUIRE);
	assert_int_equal(dynamo_shared_op(DYNAMO_SHARED_CHANGE), DYNAMO_RENEW);
	assert_int_equal(dynamo_shared_op(DYNAMO_SHARED_LAST), DYNAMO_RELEASE);
	assert_int_equal(dynamo_shared_op(DYNAMO_SHARED_FORCE_RELEASE), DYNAMO_FORCE_RELEASE);
}

TEST(no_key_can_have_the_name_of_the_map)
{
	assert_true(dynamo_is_attribute("shared"));
	assert_false(dynamo_is_attribute("owner"));
	assert_false(dynamo_is_attribute("n"));
}

/* ---- reading ---- */

#define READ_ENTRY(v, n, l, t, o) "{\"M\":{\"v\":{\"S\":\"" v "\"},\"n\":{\"N\":\"" n "\"}," \
	"\"l\":{\"N\":\"" l "\"},\"t\":{\"N\":\"" t "\"},\"o\":{\"S\":\"" o "\"}}}"
#define ENTRIES "\"inc-1\":" READ_ENTRY("v1", "1", "20000", "90", "shop@db1") "," \
	"\"inc-2\":" READ_ENTRY("u1", "2", "30000", "100", "db2")
#define READ_GATE "\"gate\":{\"M\":{\"v\":{\"S\":\"g1\"},\"l\":{\"N\":\"15000\"}," \
	"\"o\":{\"S\":\"db3\"}}}"
#define MODE(kind, total) "\"owner\":{\"S\":\"shared/e1\"},\"kind\":{\"S\":\"" kind "\"}," \
	"\"total\":{\"N\":\"" total "\"},"
#define MAP(content) "\"shared\":{\"M\":{" content "}}"
#define IN_EPOCH(map) "\"key\":{\"S\":\"a\"},\"ownerName\":{\"S\":\"shared/e1\"}," \
	"\"recordVersionNumber\":{\"S\":\"r1\"},\"leaseDuration\":{\"S\":\"30000\"}," \
	"\"fencingToken\":{\"N\":\"100\"}," map

static const dynamo_result *
read_item(const char *attributes)
{
	static char body[64 * 1024];

	dynamo_reply_free(&reply);
	snprintf(body, sizeof(body), "{\"Item\":{%s}}", attributes);
	dynamo_read(&reply, NULL, DYNAMO_READ, 1, 200, NULL, body, strlen(body));
	assert_int_equal(reply.status, DYNAMO_OK);
	return &reply.results[0];
}

TEST(entries_total_and_gate_are_read)
{
	const dynamo_result *result =
		read_item(IN_EPOCH(MAP(MODE("semaphore", "3") "\"h\":{\"M\":{" ENTRIES "}}," READ_GATE)));
	const dynamo_shared *found = result->shared;

	assert_null(result->item.wrong);
	assert_string_equal(result->item.owner, "shared/e1");
	assert_true(found->current);
	assert_null(found->wrong);
	assert_int_equal(found->mode, MODE_SEMAPHORE);
	assert_int_equal(found->total, 3);
	assert_int_equal(found->count, 2);
	assert_string_equal(found->entries[0].incarnation, "inc-1");
	assert_string_equal(found->entries[0].version, "v1");
	assert_string_equal(found->entries[0].name, "shop@db1");
	assert_int_equal(found->entries[0].permits, 1);
	assert_int_equal(found->entries[0].lease_ms, 20000);
	assert_int_equal(found->entries[0].token, 90);
	assert_string_equal(found->entries[1].incarnation, "inc-2");
	assert_int_equal(found->entries[1].permits, 2);
	assert_true(found->gate);
	assert_string_equal(found->gate_version, "g1");
	assert_string_equal(found->gate_name, "db3");
	assert_int_equal(found->gate_lease_ms, 15000);
	assert_ptr_equal(dynamo_find_entry(found, "inc-2"), &found->entries[1]);
	assert_null(dynamo_find_entry(found, "inc"));
	assert_null(dynamo_find_entry(NULL, "inc-2"));

	found = read_item(IN_EPOCH(MAP(MODE("shared", "3") "\"h\":{\"M\":{" ENTRIES "}}")))->shared;
	assert_int_equal(found->mode, MODE_SHARED);
	assert_false(found->gate);
}

/* Whoever left it: the map means nothing, but for a gate. */
TEST(map_of_another_owner_or_of_a_released_item_is_dead_text)
{
	const dynamo_result *result;

	assert_null(read_item("\"ownerName\":{\"S\":\"shared/e1\"}")->shared);
	assert_null(read_item(IN_EPOCH("\"shared\":{\"S\":\"shared/e1\"}"))->shared);
	assert_null(read_item(IN_EPOCH(MAP("\"kind\":{\"S\":\"shared\"}")))->shared);
	assert_null(read_item(IN_EPOCH(MAP("\"owner\":{\"S\":\"shared/e2\"}")))->shared);
	result = read_item(IN_EPOCH(MAP(MODE("shared", "x") "\"h\":{\"M\":{}}")
								",\"isReleased\":{\"S\":\"1\"}"));
	assert_null(result->shared);
	assert_null(result->item.wrong);

	result = read_item(IN_EPOCH(MAP(MODE("shared", "x") READ_GATE)
								",\"isReleased\":{\"S\":\"1\"}"));
	assert_null(result->item.wrong);
	assert_false(result->shared->current);
	assert_int_equal(result->shared->count, 0);
	assert_true(result->shared->gate);
	assert_string_equal(result->shared->gate_version, "g1");
}

static void
assert_wrong(const char *attributes, const char *why)
{
	const dynamo_result *result = read_item(attributes);

	assert_true(result->shared->current);
	assert_in_range(result->shared->mode, MODE_SHARED, MODE_COUNT - 1);
	if (result->item.wrong == NULL || strcmp(result->item.wrong, why) != 0)
		fail_msg("%s instead of %s for %s", result->item.wrong, why, attributes);
	assert_ptr_equal(result->shared->wrong, result->item.wrong);
}

static void
assert_wrong_map(const char *content, const char *why)
{
	char		attributes[16 * 1024];

	snprintf(attributes, sizeof(attributes), IN_EPOCH("\"shared\":{\"M\":{%s}}"), content);
	assert_wrong(attributes, why);
}

static void
assert_wrong_entry(const char *entry, const char *why)
{
	char		content[4096];

	snprintf(content, sizeof(content), MODE("shared", "1") "\"h\":{\"M\":{\"inc\":%s}}", entry);
	assert_wrong_map(content, why);
}

TEST(malformed_map_in_shared_mode_is_wrong)
{
	static const char no_sum[] =
		"the shared lock's total is not the sum of its entries' permits";
	static const char no_kind[] = "the shared lock is neither a shared lock nor a semaphore";

	assert_wrong_map(MODE("mutex", "3") "\"h\":{\"M\":{" ENTRIES "}}", no_kind);
	assert_wrong_map("\"owner\":{\"S\":\"shared/e1\"}", no_kind);
	assert_wrong_map("\"owner\":{\"S\":\"shared/e1\"},\"kind\":{\"N\":\"1\"}", no_kind);
	assert_wrong_map(MODE("shared", "4") "\"h\":{\"M\":{" ENTRIES "}}", no_sum);
	assert_wrong_map(MODE("shared", "-3") "\"h\":{\"M\":{" ENTRIES "}}", no_sum);
	assert_wrong_map(MODE("shared", "3") "\"g\":{\"M\":{" ENTRIES "}}", no_sum);
	assert_wrong_map(MODE("shared", "3") "\"h\":{\"L\":[]}", no_sum);
	assert_wrong_map(MODE("shared", "3") "\"h\":{\"M\":[]}", no_sum);
	assert_wrong_map(MODE("shared", "3") "\"h\":7", no_sum);
	assert_wrong_map(MODE("shared", "4294967294") "\"h\":{\"M\":{\"a\":"
					 READ_ENTRY("v", "2147483647", "1", "1", "") ",\"b\":"
					 READ_ENTRY("v", "2147483647", "1", "1", "") "}}", no_sum);
}

TEST(malformed_entry_is_wrong)
{
	static const char no_version[] = "an entry of the shared lock has no readable version";
	static const char no_permits[] =
		"an entry of the shared lock has no readable number of permits";
	static const char no_lease[] = "an entry of the shared lock has no readable lease";
	static const char no_token[] = "an entry of the shared lock has no readable token";
	char		long_version[256];
	char		long_name[128];
	char		content[1024];

	assert_wrong_entry("7", no_version);
	assert_wrong_entry("{\"M\":{}}", no_version);
	assert_wrong_entry("{\"M\":[1]}", no_version);
	assert_wrong_entry("{\"S\":\"v\"}", no_version);
	assert_wrong_entry(READ_ENTRY("", "1", "1", "1", ""), no_version);
	memset(long_version, 'v', sizeof(long_version));
	snprintf(content, sizeof(content), READ_ENTRY("%.*s", "1", "1", "1", ""),
			 DYNAMO_VERSION_SIZE, long_version);
	assert_wrong_entry(content, no_version);
	assert_wrong_entry(READ_ENTRY("v", "0", "1", "1", ""), no_permits);
	assert_wrong_entry(READ_ENTRY("v", "-1", "1", "1", ""), no_permits);
	assert_wrong_entry(READ_ENTRY("v", "1.5", "1", "1", ""), no_permits);
	assert_wrong_entry(READ_ENTRY("v", "2147483648", "1", "1", ""), no_permits);
	assert_wrong_entry(READ_ENTRY("v", "1", "0", "1", ""), no_lease);
	assert_wrong_entry(READ_ENTRY("v", "1", "20s", "1", ""), no_lease);
	assert_wrong_entry(READ_ENTRY("v", "1", "1", "9223372036854775808", ""), no_token);

	memset(long_name, 'i', sizeof(long_name));
	snprintf(content, sizeof(content), MODE("shared", "1") "\"h\":{\"M\":{\"%.*s\":%s}}",
			 DYNAMO_INCARNATION_SIZE, long_name, READ_ENTRY("v", "1", "1", "1", ""));
	assert_wrong_map(content, "the name of an entry of the shared lock is too long");
}

TEST(shared_mode_needs_token_and_plain_lease)
{
	static const char map[] = MAP(MODE("shared", "3") "\"h\":{\"M\":{" ENTRIES "}}");
	char		attributes[2048];

#define WITH(owner, lease, token) \
	snprintf(attributes, sizeof(attributes), "\"ownerName\":{\"S\":\"" owner "\"}," \
			 "\"recordVersionNumber\":{\"S\":\"r1\"},\"leaseDuration\":{\"S\":\"" lease "\"}," \
			 "\"fencingToken\":" token ",%s", map)

	WITH("shared/e1", "30000", "{\"N\":\"0\"}");
	assert_wrong(attributes, "the shared lock has no fencingToken");
	WITH("shared/e1", "30s", "{\"N\":\"1\"}");
	assert_wrong(attributes, "the shared lock's leaseDuration is not a number of milliseconds");
	WITH("shared/e1", "030000", "{\"N\":\"1\"}");
	assert_wrong(attributes, "the shared lock's leaseDuration is not a number of milliseconds");
	WITH("shared/e2", "30s", "{\"N\":\"0\"}");
	assert_null(read_item(attributes)->item.wrong);
}

/* A cluster finds its own entry behind one that nobody can read. */
TEST(entries_after_a_malformed_one_are_read)
{
	const dynamo_result *result =
		read_item(IN_EPOCH(MAP(MODE("shared", "2") "\"h\":{\"M\":{\"bad\":"
							   READ_ENTRY("v", "1", "0", "1", "") ",\"good\":"
							   READ_ENTRY("v2", "1", "1", "1", "") "}}")));

	assert_non_null(result->item.wrong);
	assert_int_equal(result->shared->count, 1);
	assert_string_equal(result->shared->entries[0].incarnation, "good");
	assert_string_equal(result->shared->entries[0].version, "v2");
}

/* A cut one would match no condition. */
TEST(owner_must_fit)
{
	char		owner[DYNAMO_EPOCH_SIZE + 1];
	char		attributes[4096];

	for (int len = DYNAMO_EPOCH_SIZE - 1; len <= DYNAMO_EPOCH_SIZE; len++)
	{
		memset(owner, 'o', sizeof(owner));
		owner[len] = '\0';
		snprintf(attributes, sizeof(attributes), "\"ownerName\":{\"S\":\"%s\"},"
				 "\"recordVersionNumber\":{\"S\":\"r1\"},\"leaseDuration\":{\"S\":\"30000\"},"
				 "\"fencingToken\":{\"N\":\"1\"},\"shared\":{\"M\":{\"owner\":{\"S\":\"%s\"},"
				 "\"kind\":{\"S\":\"shared\"},\"total\":{\"N\":\"3\"},\"h\":{\"M\":{" ENTRIES "}}}}",
				 owner, owner);
		if (len < DYNAMO_EPOCH_SIZE)
			assert_null(read_item(attributes)->item.wrong);
		else
			assert_wrong(attributes, "the shared lock's owner is too long");
	}
}

TEST(total_may_be_as_large_as_a_limit)
{
	const dynamo_result *result =
		read_item(IN_EPOCH(MAP(MODE("semaphore", "2147483647") "\"h\":{\"M\":{\"a\":"
							   READ_ENTRY("v", "2147483647", "1", "1", "") "}}")));

	assert_null(result->item.wrong);
	assert_int_equal(result->shared->total, INT32_MAX);
	assert_int_equal(result->shared->entries[0].permits, INT32_MAX);
}

/* A bad gate concerns only who must heed it. */
TEST(malformed_gate)
{
	static const char no_version[] = "the gate of the shared lock has no readable version";
	static const char no_lease[] = "the gate of the shared lock has no readable lease";
	const dynamo_result *result;

	assert_wrong_map(MODE("shared", "3") "\"h\":{\"M\":{" ENTRIES "}},"
					 "\"gate\":{\"M\":{\"v\":{\"N\":\"1\"}}}", no_version);
	assert_wrong_map(MODE("shared", "3") "\"h\":{\"M\":{" ENTRIES "}},"
					 "\"gate\":{\"M\":{\"v\":{\"S\":\"g1\"},\"l\":{\"S\":\"1\"}}}", no_lease);
	result = read_item(IN_EPOCH(MAP(MODE("shared", "3") "\"h\":{\"M\":{" ENTRIES "}},"
									"\"gate\":{\"M\":{\"l\":{\"N\":\"1\"}}}")));
	assert_null(result->item.wrong);
	assert_false(result->shared->gate);

	/* A cluster that has the lock needs no gate, and finds its entry. */
	result = read_item(IN_EPOCH(MAP(MODE("shared", "3") "\"h\":{\"M\":{" ENTRIES "}},"
									"\"gate\":{\"M\":{\"v\":{\"S\":\"g1\"}}}")));
	assert_string_equal(result->item.wrong, no_lease);
	assert_int_equal(result->shared->count, 2);

	result = read_item(IN_EPOCH(MAP("\"gate\":{\"M\":{\"v\":{\"N\":\"1\"}}}")
								",\"isReleased\":{\"S\":\"1\"}"));
	assert_null(result->item.wrong);
	assert_string_equal(result->shared->wrong, no_version);
}

/* As many entries as there can be, and one more. */
TEST(entries_are_bounded)
{
	char		attributes[16 * 1024];
	size_t		len;
	const dynamo_result *result;

	for (int count = DYNAMO_ENTRIES_MAX; count <= DYNAMO_ENTRIES_MAX + 1; count++)
	{
		len = (size_t) snprintf(attributes, sizeof(attributes),
								IN_EPOCH("\"shared\":{\"M\":{\"owner\":{\"S\":\"shared/e1\"},"
										 "\"kind\":{\"S\":\"shared\"},\"total\":{\"N\":\"%d\"},"
										 "\"h\":{\"M\":{"), count);
		for (int i = 0; i < count; i++)
			len += (size_t) snprintf(attributes + len, sizeof(attributes) - len, "%s\"i%d\":%s",
									 i > 0 ? "," : "", i, READ_ENTRY("v", "1", "1", "1", ""));
		snprintf(attributes + len, sizeof(attributes) - len, "}}}}");
		result = read_item(attributes);
		assert_int_equal(result->shared->count, DYNAMO_ENTRIES_MAX);
		if (count == DYNAMO_ENTRIES_MAX)
			assert_null(result->item.wrong);
		else
			assert_string_equal(result->item.wrong, "the shared lock has too many entries");
	}
}

/* As other clients may write them. */
TEST(versions_may_begin_with_any_character)
{
	const dynamo_result *result;
	char	   *body;

	result = read_item(IN_EPOCH(MAP(MODE("semaphore", "1") "\"h\":{\"M\":{\"a\":"
									READ_ENTRY("\xc3\xa9", "1", "1", "1", "") "}},"
									"\"gate\":{\"M\":{\"v\":{\"S\":\"\xc3\xbc\"},\"l\":{\"N\":\"1\"}}}")));
	assert_null(result->item.wrong);
	assert_string_equal(result->shared->entries[0].version, "\xc3\xa9");
	assert_string_equal(result->shared->gate_version, "\xc3\xbc");

	begin_entry(DYNAMO_SHARED_OPEN);
	the_write.expected = "\xc3\xa9";
	shared.entry.admission.dead_gate = "\xc3\xbc";
	body = dynamo_build(&plain_table, &the_write);
	assert_non_null(strstr(body, " OR #recordVersionNumber = :expected)"));
	assert_non_null(strstr(body, " OR #shared.#gate.#v = :gate)"));
	free(body);
}

/* Names are for people: bounded, never a reason to fail.  Leases may last for ever. */
TEST(odd_names_and_long_leases_of_entries_are_no_reason_to_fail)
{
	char		entry[2048];
	char		attributes[4096];
	char		name[DYNAMO_OWNER_SIZE * 2];
	const dynamo_result *result;

	memset(name, 'a', sizeof(name));
	memcpy(name + DYNAMO_OWNER_SIZE - 2, "\xc3\xa9", 2);
	snprintf(entry, sizeof(entry), READ_ENTRY("v", "1", "9223372036854775807", "1", "%.*s"),
			 (int) sizeof(name), name);
	snprintf(attributes, sizeof(attributes),
			 IN_EPOCH(MAP(MODE("shared", "2") "\"h\":{\"M\":{\"a\":%s,\"b\":%s}}")), entry,
			 "{\"M\":{\"v\":{\"S\":\"v\"},\"n\":{\"N\":\"1\"},\"l\":{\"N\":\"1\"},"
			 "\"t\":{\"N\":\"1\"},\"o\":{\"N\":\"5\"},\"later\":{\"S\":\"x\"}}}");
	result = read_item(attributes);
	assert_null(result->item.wrong);
	assert_int_equal(result->shared->count, 2);
	assert_int_equal(strlen(result->shared->entries[0].name), DYNAMO_OWNER_SIZE - 2);
	assert_int_equal(result->shared->entries[0].lease_ms, INT64_MAX / 1000000);
	assert_string_equal(result->shared->entries[1].name, "");
}

TEST(every_reply_that_has_an_item_tells_of_shared_mode)
{
	static const char item[] =
		"{" IN_EPOCH(MAP(MODE("semaphore", "3") "\"h\":{\"M\":{" ENTRIES "}}")) "}";
	char		body[4096];

	snprintf(body, sizeof(body), "{\"Attributes\":%s}", item);
	dynamo_read(&reply, NULL, DYNAMO_RENEW, 1, 200, NULL, body, strlen(body));
	assert_int_equal(reply.results[0].shared->total, 3);
	dynamo_reply_free(&reply);
	dynamo_read(&reply, NULL, DYNAMO_ACQUIRE, 1, 200, NULL, body, strlen(body));
	assert_int_equal(reply.results[0].shared->total, 3);
	dynamo_reply_free(&reply);

	snprintf(body, sizeof(body), "{\"__type\":\"x#ConditionalCheckFailedException\","
			 "\"Item\":%s}", item);
	dynamo_read(&reply, NULL, DYNAMO_RELEASE, 1, 400, NULL, body, strlen(body));
	assert_int_equal(reply.status, DYNAMO_CONDITION_FAILED);
	assert_int_equal(reply.results[0].shared->total, 3);
	dynamo_reply_free(&reply);

	snprintf(body, sizeof(body), "{\"Responses\":[{\"Item\":%s},{\"Error\":{\"Code\":"
			 "\"ConditionalCheckFailed\",\"Item\":%s}},{\"TableName\":\"t\"}]}", item, item);
	dynamo_read(&reply, NULL, DYNAMO_RENEW_BATCH, 3, 200, NULL, body, strlen(body));
	assert_int_equal(reply.results[0].status, DYNAMO_OK);
	assert_int_equal(reply.results[0].shared->total, 3);
	assert_int_equal(reply.results[1].status, DYNAMO_CONDITION_FAILED);
	assert_int_equal(reply.results[1].shared->total, 3);
	assert_null(reply.results[2].shared);
	dynamo_reply_free(&reply);

	snprintf(body, sizeof(body), "{\"Items\":[%s],\"Count\":1}", item);
	dynamo_read(&reply, &plain_table, DYNAMO_SCAN, 1, 200, NULL, body, strlen(body));
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(reply.page.rows[0].shared->total, 3);
}
