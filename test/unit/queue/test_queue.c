/*-------------------------------------------------------------------------
 *
 * test_queue.c
 *	  The queue's requests, its replies, and how a job is finished.
 *
 *-------------------------------------------------------------------------
 */
#include <cjson/cJSON.h>

#include "../unit.h"
#include "queue/queue.h"

static queue_request request;

static void
make(queue_kind kind)
{
	memset(&request, 0, sizeof(request));
	request.kind = kind;
	request.now_ms = 5000;
	request.number = 7;
	request.token = 30;
	strcpy(request.queue, "q");
	strcpy(request.resource, "a#b");
	strcpy(request.uuid, "u");
}

static cJSON *
build(const char *tail)
{
	char	   *body = queue_build("t", &request, tail);
	cJSON	   *json = body != NULL ? cJSON_ParseWithOpts(body, NULL, true) : NULL;

	if (json == NULL)
		fail_msg("not JSON: %s", body != NULL ? body : "(null)");
	free(body);
	return json;
}

static const char *
text_at(const cJSON *json, const char *a, const char *b, const char *c)
{
	json = cJSON_GetObjectItem(json, a);
	if (b != NULL)
		json = cJSON_GetObjectItem(json, b);
	if (c != NULL)
		json = cJSON_GetObjectItem(json, c);
	return cJSON_GetStringValue(json);
}

/* ... or neither is there. */
static void
assert_same(const char *got, const char *expected)
{
	if (got == NULL || expected == NULL)
		assert_true(got == expected);
	else
		assert_string_equal(got, expected);
}

static void
assert_json(const cJSON *got, const char *expected)
{
	cJSON	   *wanted = cJSON_Parse(expected);
	char	   *text = cJSON_PrintUnformatted(got);

	if (wanted == NULL || !cJSON_Compare(got, wanted, true))
		fail_msg("%s\ninstead of %s", text, expected);
	cJSON_free(text);
	cJSON_Delete(wanted);
}

/* The whole request. */
static void
assert_body(const char *tail, const char *expected)
{
	cJSON	   *json = build(tail);

	assert_json(json, expected);
	cJSON_Delete(json);
}

/* DynamoDB refuses a placeholder that is declared and not used, and the other way round. */
static void
assert_placeholders(const cJSON *json, const char *set)
{
	const cJSON *declared = cJSON_GetObjectItem(json, set);
	const cJSON *one;
	char		all[2048] = "";

	cJSON_ArrayForEach(one, json)
	{
		if (cJSON_IsString(one) && strstr(one->string, "Expression") != NULL)
			strcat(strcat(all, one->valuestring), " ");
	}
	cJSON_ArrayForEach(one, declared)
	{
		const char *at = all;
		size_t		len = strlen(one->string);

		while ((at = strstr(at, one->string)) != NULL && strchr(" ),=<>", at[len]) == NULL)
			at++;
		if (at == NULL)
			fail_msg("%s is not in: %s", one->string, all);
	}
	for (const char *at = all; (at = strchr(at, set[strlen(set) - 5] == 'N' ? '#' : ':')); at++)
	{
		char		name[64];
		size_t		len = strcspn(at, " ),=<>");

		snprintf(name, sizeof(name), "%.*s", (int) len, at);
		if (cJSON_GetObjectItem(declared, name) == NULL)
			fail_msg("%s is not declared for: %s", name, all);
	}
}

static void
assert_sound(const cJSON *json)
{
	assert_placeholders(json, "ExpressionAttributeNames");
	assert_placeholders(json, "ExpressionAttributeValues");
}

TEST(every_request_is_json_with_its_placeholders)
{
	for (int kind = QUEUE_CREATE_TABLE; kind <= QUEUE_DELETE_DEAD; kind++)
	{
		for (int all = 0; all < 2; all++)
		{
			const cJSON *item;
			cJSON	   *json;

			make((queue_kind) kind);
			request.all = all;
			json = build("");
			assert_sound(json);
			cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "TransactItems"))
				assert_sound(item->child);
			cJSON_Delete(json);
		}
	}
}

#define NAME(name) "\"#" name "\":\"" name "\""
#define TEXT(name, value) "\"" name "\":{\"S\":\"" value "\"}"
#define NUMBER(name, value) "\"" name "\":{\"N\":\"" value "\"}"
#define NAMES(names) "\"ExpressionAttributeNames\":{" names "},"
#define VALUES(values) "\"ExpressionAttributeValues\":{" values "},"
#define IN_TABLE "\"TableName\":\"t\""
#define COUNTED "\"ReturnConsumedCapacity\":\"TOTAL\""
#define CONSISTENT "\"ConsistentRead\":true,"
#define RESOURCE "r#q#a#b"
#define JOB_7 "job#0000000000000000007"

#define ATTRIBUTE(name, type) "{\"AttributeName\":\"" name "\",\"AttributeType\":\"" type "\"}"
#define SCHEMA(hash, range) "\"KeySchema\":[{\"AttributeName\":\"" hash "\"," \
	"\"KeyType\":\"HASH\"},{\"AttributeName\":\"" range "\",\"KeyType\":\"RANGE\"}]"
#define PROJECTION(a, b, c) "{\"ProjectionType\":\"INCLUDE\"," \
	"\"NonKeyAttributes\":[\"" a "\",\"" b "\",\"" c "\"]}"
#define PROJECTED PROJECTION("retryAt", "attempts", "paused")
#define NEW_TABLE(units) "{" IN_TABLE ",\"AttributeDefinitions\":[" ATTRIBUTE("pk", "S") "," \
	ATTRIBUTE("sk", "S") "," ATTRIBUTE("ready", "S") "," ATTRIBUTE("due", "N") "]," \
	SCHEMA("pk", "sk") ",\"GlobalSecondaryIndexes\":[{\"IndexName\":\"ready\"," \
	SCHEMA("ready", "due") ",\"Projection\":" PROJECTED units "}]"

/* The index has as much capacity as the table. */
TEST(a_table_is_created_with_its_index)
{
#define UNITS ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":5,\"WriteCapacityUnits\":6}"
	make(QUEUE_CREATE_TABLE);
	assert_body(NULL, NEW_TABLE("") ",\"BillingMode\":\"PAY_PER_REQUEST\"}");
	request.creation = (dynamo_creation) {.read_units = 5,.write_units = 6,.protect = true};
	assert_body(NULL, NEW_TABLE(UNITS) ",\"BillingMode\":\"PROVISIONED\"" UNITS
				",\"DeletionProtectionEnabled\":true}");
}

#define CLAIMABLE "attribute_not_exists(#paused) AND (attribute_not_exists(#retryAt) OR #retryAt <= :now)"

/* For a session what is due; for an operator all of them. */
TEST(resources_are_found_in_the_index)
{
	make(QUEUE_FIND);
	assert_body(NULL, "{" IN_TABLE ",\"IndexName\":\"ready\","
				"\"KeyConditionExpression\":\"#ready = :queue AND #due <= :now\","
				"\"FilterExpression\":\"" CLAIMABLE "\","
				NAMES(NAME("ready") "," NAME("due") "," NAME("paused") "," NAME("retryAt"))
				VALUES(TEXT(":queue", "q") "," NUMBER(":now", "5000"))
				"\"Limit\":100," COUNTED "}");
	request.all = true;
	assert_body(NULL, "{" IN_TABLE ",\"IndexName\":\"ready\","
				"\"KeyConditionExpression\":\"#ready = :queue\"," NAMES(NAME("ready"))
				VALUES(TEXT(":queue", "q")) "\"Limit\":100," COUNTED "}");
}

TEST(a_page_of_jobs_is_of_one_resource_and_goes_on_where_the_last_one_ended)
{
	static const char next[] = "{\"sk\":{\"S\":\"x\"}}";

	make(QUEUE_LIST_JOBS);
	request.to = 12;
	request.tail_len = sizeof(next) - 1;
	assert_body(next, "{" IN_TABLE "," CONSISTENT
				"\"KeyConditionExpression\":\"#pk = :pk AND #sk BETWEEN :from AND :to\","
				"\"ProjectionExpression\":\"#pk, #sk, #id, #pushedAt\","
				NAMES(NAME("pk") "," NAME("sk") "," NAME("id") "," NAME("pushedAt"))
				VALUES(TEXT(":pk", RESOURCE) "," TEXT(":from", JOB_7) ","
					   TEXT(":to", "job#0000000000000000012"))
				"\"Limit\":100,\"ExclusiveStartKey\":{\"sk\":{\"S\":\"x\"}}," COUNTED "}");
	make(QUEUE_LIST_DEAD);
	assert_body(NULL, "{" IN_TABLE "," CONSISTENT "\"KeyConditionExpression\":\"#pk = :pk\","
				NAMES(NAME("pk")) VALUES(TEXT(":pk", "dead#q")) "\"Limit\":1," COUNTED "}");
	make(QUEUE_LIST_ALL);
	assert_body(NULL, "{" IN_TABLE "," CONSISTENT
				"\"FilterExpression\":\"begins_with(#sk, :job) OR #sk = :head\","
				"\"ProjectionExpression\":\"#pk, #sk, #seq, #done, #token, #paused\","
				NAMES(NAME("sk") "," NAME("pk") "," NAME("seq") "," NAME("done") ","
					  NAME("token") "," NAME("paused"))
				VALUES(TEXT(":job", "job#") "," TEXT(":head", "head"))
				"\"Limit\":500," COUNTED "}");
}

TEST(an_item_is_read_by_its_keys)
{
	make(QUEUE_READ_HEAD);
	assert_body(NULL, "{" IN_TABLE ",\"Key\":{" TEXT("pk", RESOURCE) "," TEXT("sk", "head") "},"
				CONSISTENT COUNTED "}");
	make(QUEUE_READ_DEAD);
	strcpy(request.id, "7#a#b");
	assert_body(NULL, "{" IN_TABLE ",\"Key\":{" TEXT("pk", "dead#q") "," TEXT("sk", "7#a#b") "},"
				CONSISTENT COUNTED "}");
}

TEST(a_job_has_its_place_among_the_keys)
{
	make(QUEUE_READ_JOB);
	assert_body(NULL, "{" IN_TABLE ",\"Key\":{" TEXT("pk", RESOURCE) "," TEXT("sk", JOB_7) "},"
				CONSISTENT COUNTED "}");
}

TEST(a_claim_demands_a_due_job_and_a_higher_token)
{
	static const char *const updates[] = {
		"SET #token = :token, #retryAt = :later, #attempts = if_not_exists(#attempts, :zero) + :one",
		"SET #token = :token, #due = :later, #attempts = if_not_exists(#attempts, :zero) + :one"
		" REMOVE #retryAt",
	};

	for (int attempts = 0; attempts < 2; attempts++)
	{
		cJSON	   *json;

		make(QUEUE_CLAIM);
		request.delay_ms = 100;
		request.attempts = attempts;
		json = build(NULL);
		assert_string_equal(text_at(json, "ConditionExpression", NULL, NULL),
							"#done < #seq AND #due <= :now AND " CLAIMABLE
							" AND (attribute_not_exists(#token) OR #token < :token)");
		assert_string_equal(text_at(json, "UpdateExpression", NULL, NULL), updates[attempts]);
		assert_string_equal(text_at(json, "ExpressionAttributeValues", ":later", "N"), "5100");
		cJSON_Delete(json);
	}
}

TEST(an_operators_claim_names_its_job_and_is_no_attempt)
{
	make(QUEUE_CLAIM);
	request.all = true;
	assert_body(NULL, "{" IN_TABLE ",\"Key\":{" TEXT("pk", RESOURCE) "," TEXT("sk", "head") "},"
				"\"UpdateExpression\":\"SET #token = :token\","
				"\"ConditionExpression\":\"#done = :before AND #seq >= :number"
				" AND (attribute_not_exists(#token) OR #token < :token)\","
				"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\",\"ReturnValues\":\"ALL_NEW\","
				NAMES(NAME("token") "," NAME("done") "," NAME("seq"))
				VALUES(NUMBER(":token", "30") "," NUMBER(":before", "6") ","
					   NUMBER(":number", "7"))
				COUNTED "}");
}

TEST(a_completion_demands_its_token_and_the_next_number)
{
	cJSON	   *json;

	make(QUEUE_COMPLETE);
	json = build(NULL);
	assert_string_equal(text_at(json, "ConditionExpression", NULL, NULL),
						"#token = :token AND #done = :before AND #seq > :number");
	assert_string_equal(text_at(json, "ExpressionAttributeValues", ":before", "N"), "6");
	cJSON_Delete(json);
	make(QUEUE_COMPLETE_LAST);
	json = build(NULL);
	assert_string_equal(text_at(json, "ConditionExpression", NULL, NULL),
						"#token = :token AND #done = :before AND #seq = :number");
	cJSON_Delete(json);
}

static void
assert_update(queue_kind kind, bool stays, const char *update)
{
	cJSON	   *json;

	make(kind);
	request.stays = stays;
	json = build(NULL);
	assert_string_equal(text_at(json, "UpdateExpression", NULL, NULL), update);
	assert_string_equal(text_at(json, "ExpressionAttributeNames", "#retryAt", NULL), "retryAt");
	cJSON_Delete(json);
}

/* The next job need not wait until the claimed one would be tried again. */
TEST(what_a_claim_has_written_goes_when_its_job_is_finished)
{
	assert_update(QUEUE_COMPLETE, false,
				  "SET #done = :number, #due = :now REMOVE #retryAt, #attempts, #lastError, #job");
	assert_update(QUEUE_COMPLETE, true,
				  "SET #done = :number REMOVE #retryAt, #attempts, #lastError, #job");
	assert_update(QUEUE_COMPLETE_LAST, true, "SET #done = :number"
				  " REMOVE #ready, #due, #retryAt, #attempts, #lastError, #job");
	assert_update(QUEUE_FAIL, true, "SET #due = :later, #lastError = :error REMOVE #retryAt");
}

TEST(a_drop_names_the_last_job_that_was_seen)
{
	cJSON	   *json;

	make(QUEUE_DROP);
	request.seq = 9;
	json = build(NULL);
	assert_string_equal(text_at(json, "ConditionExpression", NULL, NULL),
						"#seq = :seq AND #done < #seq");
	assert_string_equal(text_at(json, "ExpressionAttributeValues", ":seq", "N"), "9");
	cJSON_Delete(json);
}

/* The write of one item, by its kind; seq is 9, and the token 30. */
static void
assert_write(dynamo_op op, const char *sk, const char *update, const char *condition, bool shows)
{
	const char *const shown = "ReturnValuesOnConditionCheckFailure";
	const char *claimed = request.kind == QUEUE_CLAIM ? "ALL_NEW" : NULL;
	char		pk[16];
	cJSON	   *json;

	snprintf(pk, sizeof(pk), "%s", request.kind == QUEUE_DELETE_DEAD ? "dead#q" : RESOURCE);
	request.seq = 9;
	strcpy(request.id, "i");
	json = build(NULL);
	assert_int_equal(queue_op(request.kind), op);
	assert_string_equal(text_at(json, "Key", "pk", "S"), pk);
	assert_string_equal(text_at(json, "Key", "sk", "S"), sk);
	assert_same(text_at(json, "UpdateExpression", NULL, NULL), update);
	assert_same(text_at(json, "ConditionExpression", NULL, NULL), condition);
	assert_same(text_at(json, shown, NULL, NULL), shows ? "ALL_OLD" : NULL);
	assert_same(text_at(json, "ReturnValues", NULL, NULL), claimed);
	assert_string_equal(text_at(json, "ReturnConsumedCapacity", NULL, NULL), "TOTAL");
	cJSON_Delete(json);
}

/* doc/internals/queues.md has these. */
TEST(each_write_has_its_item_its_change_and_its_condition)
{
#define TOKEN " AND (attribute_not_exists(#token) OR #token < :token)"
#define MINE "#token = :token AND #done = :before"
#define COUNT "#attempts = if_not_exists(#attempts, :zero) + :one"
	make(QUEUE_CLAIM);
	assert_write(DYNAMO_QUEUE_UPDATE, "head", "SET #token = :token, #retryAt = :later, " COUNT,
				 "#done < #seq AND #due <= :now AND " CLAIMABLE TOKEN, true);
	request.attempts = 1;
	assert_write(DYNAMO_QUEUE_UPDATE, "head",
				 "SET #token = :token, #due = :later, " COUNT " REMOVE #retryAt",
				 "#done < #seq AND #due <= :now AND " CLAIMABLE TOKEN, true);
	request.all = true;
	assert_write(DYNAMO_QUEUE_UPDATE, "head", "SET #token = :token",
				 "#done = :before AND #seq >= :number" TOKEN, true);
	make(QUEUE_COMPLETE);
	assert_write(DYNAMO_QUEUE_UPDATE, "head", "SET #done = :number, #due = :now"
				 " REMOVE #retryAt, #attempts, #lastError, #job", MINE " AND #seq > :number", true);
	request.stays = true;
	assert_write(DYNAMO_QUEUE_UPDATE, "head", "SET #done = :number"
				 " REMOVE #retryAt, #attempts, #lastError, #job", MINE " AND #seq > :number", true);
	make(QUEUE_COMPLETE_LAST);
	assert_write(DYNAMO_QUEUE_UPDATE, "head", "SET #done = :number"
				 " REMOVE #ready, #due, #retryAt, #attempts, #lastError, #job",
				 MINE " AND #seq = :number", true);
	make(QUEUE_FAIL);
	assert_write(DYNAMO_QUEUE_UPDATE, "head", "SET #due = :later, #lastError = :error"
				 " REMOVE #retryAt", MINE, true);
	make(QUEUE_DROP);
	assert_write(DYNAMO_QUEUE_UPDATE, "head", "SET #done = #seq"
				 " REMOVE #ready, #due, #retryAt, #attempts, #lastError",
				 "#seq = :seq AND #done < #seq", true);
	make(QUEUE_PAUSE);
	assert_write(DYNAMO_QUEUE_UPDATE, "head", "SET #paused = :one",
				 "attribute_not_exists(#paused)", true);
	make(QUEUE_RESUME);
	assert_write(DYNAMO_QUEUE_UPDATE, "head", "REMOVE #paused", "attribute_exists(#paused)", true);
	make(QUEUE_DELETE_HEAD);
	assert_write(DYNAMO_QUEUE_DELETE, "head", NULL, "(attribute_not_exists(#seq) OR #seq = :seq)"
				 " AND attribute_not_exists(#paused)", false);
	make(QUEUE_CHECK_GONE);
	assert_write(DYNAMO_QUEUE_DELETE, JOB_7, NULL, "attribute_not_exists(#pk)", false);
	make(QUEUE_DELETE_JOB);
	assert_write(DYNAMO_QUEUE_DELETE, JOB_7, NULL, NULL, false);
	make(QUEUE_DELETE_DEAD);
	assert_write(DYNAMO_QUEUE_DELETE, "i", NULL, NULL, false);
}

TEST(each_request_is_an_operation)
{
	assert_int_equal(queue_op(QUEUE_CREATE_TABLE), DYNAMO_QUEUE_CREATE_TABLE);
	assert_int_equal(queue_op(QUEUE_DESCRIBE_TABLE), DYNAMO_QUEUE_DESCRIBE_TABLE);
	assert_int_equal(queue_op(QUEUE_ENABLE_TTL), DYNAMO_QUEUE_UPDATE_TTL);
	assert_int_equal(queue_op(QUEUE_GUARD), DYNAMO_QUEUE_UPDATE);
	for (int kind = QUEUE_READ_HEAD; kind <= QUEUE_READ_FLOOR; kind++)
		assert_int_equal(queue_op((queue_kind) kind), DYNAMO_QUEUE_READ);
	for (int kind = QUEUE_FIND; kind <= QUEUE_LIST_DEAD; kind++)
		assert_int_equal(queue_op((queue_kind) kind), DYNAMO_QUEUE_QUERY);
	assert_int_equal(queue_op(QUEUE_LIST_ALL), DYNAMO_QUEUE_SCAN);
	assert_int_equal(queue_op(QUEUE_PUSH), DYNAMO_QUEUE_TRANSACT);
	assert_int_equal(queue_op(QUEUE_BURY), DYNAMO_QUEUE_TRANSACT);
	assert_int_equal(queue_op(QUEUE_CANCEL), DYNAMO_QUEUE_TRANSACT);
	assert_int_equal(queue_op(QUEUE_CANCEL_RIDER), DYNAMO_QUEUE_TRANSACT);
	assert_int_equal(queue_op(QUEUE_RAISE_FLOOR), DYNAMO_QUEUE_UPDATE);
}

/* Keys are never cut. */
TEST(the_longest_names_are_whole_in_a_key)
{
	char		pk[QUEUE_NAME_MAX + QUEUE_RESOURCE_MAX + 8];
	cJSON	   *json;

	make(QUEUE_DELETE_JOB);
	memset(request.queue, 'q', QUEUE_NAME_MAX);
	memset(request.resource, 'r', QUEUE_RESOURCE_MAX);
	request.number = INT64_MAX;
	snprintf(pk, sizeof(pk), "r#%s#%s", request.queue, request.resource);
	json = build(NULL);
	assert_string_equal(text_at(json, "Key", "pk", "S"), pk);
	assert_string_equal(text_at(json, "Key", "sk", "S"), "job#9223372036854775807");
	cJSON_Delete(json);
}

static size_t
add_job(char *tail, size_t len, const char *id, const char *payload)
{
	queue_job	job = {.id_len = (uint32_t) strlen(id),.payload_len = (uint32_t) strlen(payload)};

	assert_true(dynamo_digest(payload, job.digest, sizeof(job.digest)));
	memcpy(tail + len, &job, sizeof(job));
	memcpy(tail + len + sizeof(job), id, job.id_len);
	memcpy(tail + len + sizeof(job) + job.id_len, payload, job.payload_len);
	return len + sizeof(job) + job.id_len + job.payload_len;
}

TEST(a_push_writes_the_head_the_jobs_and_their_ids)
{
	char		tail[512];
	cJSON	   *json;
	cJSON	   *items;

	make(QUEUE_PUSH);
	request.seq = 3;
	request.jobs = 2;
	request.dedup_s = 60;
	request.tail_len = (uint32_t) add_job(tail, add_job(tail, 0, "", "{\"a\":1}"), "id", "2");
	json = build(tail);
	items = cJSON_GetObjectItem(json, "TransactItems");
	assert_int_equal(cJSON_GetArraySize(items), 4);
	for (int i = 0; i < 4; i++)
		assert_sound(cJSON_GetArrayItem(items, i)->child);
	assert_string_equal(text_at(json, "ClientRequestToken", NULL, NULL), "u");
	assert_string_equal(text_at(cJSON_GetArrayItem(items, 0), "Update", "ConditionExpression", NULL),
						"#seq = :seq");
	assert_string_equal(text_at(json, "ReturnConsumedCapacity", NULL, NULL), "TOTAL");
#define NEW_JOB(number) "{\"Put\":{" IN_TABLE ",\"Item\":{" TEXT("pk", RESOURCE) "," \
	TEXT("sk", "job#000000000000000000" number) "," NUMBER("pushedAt", "5000") ","
#define IF_NEW "},\"ConditionExpression\":\"attribute_not_exists(#pk)"
	assert_json(cJSON_GetArrayItem(items, 1), NEW_JOB("4") TEXT("payload", "{\\\"a\\\":1}")
				IF_NEW "\",\"ExpressionAttributeNames\":{" NAME("pk") "}}}");
	assert_json(cJSON_GetArrayItem(items, 2), NEW_JOB("5") TEXT("id", "id") ","
				TEXT("payload", "2") IF_NEW "\",\"ExpressionAttributeNames\":{" NAME("pk") "}}}");
	/* Times to live are in seconds; SHA-256 of "2" */
	assert_json(cJSON_GetArrayItem(items, 3), "{\"Put\":{" IN_TABLE ",\"Item\":{"
				TEXT("pk", "id#q") "," TEXT("sk", "id") "," TEXT("resource", "a#b") ","
				NUMBER("number", "5") "," NUMBER("ttl", "65") ","
				TEXT("digest", "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35")
				IF_NEW " OR #ttl < :now\",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\","
				NAMES(NAME("pk") "," NAME("ttl"))
				"\"ExpressionAttributeValues\":{" NUMBER(":now", "5") "}}}");
	cJSON_Delete(json);

	/* The first job of a resource. */
	request.first = true;
	json = build(tail);
	items = cJSON_GetObjectItem(json, "TransactItems");
	assert_string_equal(text_at(cJSON_GetArrayItem(items, 0), "Update", "ConditionExpression", NULL),
						"attribute_not_exists(#seq)");
	assert_sound(cJSON_GetArrayItem(items, 0)->child);
	cJSON_Delete(json);
}

/* The conditions of a request, or of a transaction's parts. */
static void
conditions_of(const cJSON *json, char *to)
{
	const cJSON *condition = cJSON_GetObjectItem(json, "ConditionExpression");
	const cJSON *part;

	if (condition != NULL)
		strcat(strcat(to, to[0] != '\0' ? "; " : ""), condition->valuestring);
	cJSON_ArrayForEach(part, cJSON_GetObjectItem(json, "TransactItems"))
		conditions_of(part->child, to);
}

#define OURS "#token = :token AND #done = :before"
#define HIGHER " AND (attribute_not_exists(#token) OR #token < :token)"
#define DUE "#done < #seq AND #due <= :now AND " CLAIMABLE HIGHER
#define NEW_JOB_AND_ID "; attribute_not_exists(#pk); attribute_not_exists(#pk) OR #ttl < :now"

/* Whichever part is missing, somebody's job is lost or done twice.  No other request has a condition. */
TEST(each_write_demands_all_that_it_must)
{
	static const struct
	{
		queue_request of;
		const char *demands;
	}			writes[] = {
		{{.kind = QUEUE_GUARD}, "attribute_not_exists(#identity) OR #identity = :identity"},
		{{.kind = QUEUE_PUSH,.first = true}, "attribute_not_exists(#seq)" NEW_JOB_AND_ID},
		{{.kind = QUEUE_PUSH}, "#seq = :seq" NEW_JOB_AND_ID},
		{{.kind = QUEUE_CANCEL}, "#done < :before; attribute_exists(#pk)"},
		{{.kind = QUEUE_CANCEL_RIDER}, "#done < :before AND attribute_exists(#job)"},
		{{.kind = QUEUE_BURY}, OURS " AND #seq > :number"},
		{{.kind = QUEUE_BURY,.last = true}, OURS " AND #seq = :number"},
		{{.kind = QUEUE_CLAIM}, DUE},
		{{.kind = QUEUE_CLAIM,.attempts = 1}, DUE},
		{{.kind = QUEUE_CLAIM,.all = true}, "#done = :before AND #seq >= :number" HIGHER},
		{{.kind = QUEUE_COMPLETE}, OURS " AND #seq > :number"},
		{{.kind = QUEUE_COMPLETE,.stays = true}, OURS " AND #seq > :number"},
		{{.kind = QUEUE_COMPLETE_LAST}, OURS " AND #seq = :number"},
		{{.kind = QUEUE_FAIL}, OURS},
		{{.kind = QUEUE_DROP}, "#seq = :seq AND #done < #seq"},
		{{.kind = QUEUE_PAUSE}, "attribute_not_exists(#paused)"},
		{{.kind = QUEUE_RESUME}, "attribute_exists(#paused)"},
		{{.kind = QUEUE_CHECK_GONE}, "attribute_not_exists(#pk)"},
		{{.kind = QUEUE_RAISE_FLOOR}, "attribute_not_exists(#seq) OR #seq = :seq"},
		{{.kind = QUEUE_DELETE_HEAD},
			"(attribute_not_exists(#seq) OR #seq = :seq) AND attribute_not_exists(#paused)"},
	};
	char		tail[256];
	uint32_t	tail_len = (uint32_t) add_job(tail, 0, "id", "1");

	for (int kind = QUEUE_CREATE_TABLE; kind <= QUEUE_DELETE_DEAD; kind++)
	{
		bool		demands = false;

		for (size_t i = 0; i <= COUNT_OF(writes); i++)
		{
			char		conditions[512] = "";
			cJSON	   *json;

			if (i < COUNT_OF(writes) && writes[i].of.kind != (queue_kind) kind)
				continue;
			if (i == COUNT_OF(writes) && demands)
				break;
			demands = true;
			make((queue_kind) kind);
			if (i < COUNT_OF(writes))
				request = writes[i].of;
			request.jobs = kind == QUEUE_PUSH;
			request.tail_len = kind == QUEUE_PUSH ? tail_len : 0;
			json = build(tail);
			conditions_of(json, conditions);
			assert_string_equal(conditions, i < COUNT_OF(writes) ? writes[i].demands : "");
			cJSON_Delete(json);
		}
	}
}

/* What was finished before the head was removed is up to the floor. */
TEST(without_a_head_numbers_begin_above_the_floor)
{
	char		tail[256];
	cJSON	   *json;
	const cJSON *update;

	make(QUEUE_PUSH);
	request.first = true;
	request.seq = 3;
	request.jobs = 1;
	request.tail_len = (uint32_t) add_job(tail, 0, "", "1");
	json = build(tail);
	update = cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "TransactItems"), 0),
								 "Update");
	assert_string_equal(text_at(update, "ConditionExpression", NULL, NULL), "attribute_not_exists(#seq)");
	assert_non_null(strstr(text_at(update, "UpdateExpression", NULL, NULL),
						   "#seq = :last, #done = if_not_exists(#done, :seq)"));
	assert_string_equal(text_at(update, "ExpressionAttributeValues", ":last", "N"), "4");
	assert_string_equal(text_at(update, "ExpressionAttributeValues", ":seq", "N"), "3");
	cJSON_Delete(json);
}

TEST(the_floor_rises_once_and_counts_later)
{
	make(QUEUE_RAISE_FLOOR);
	request.seq = 3;
	request.delay_ms = 100;
	assert_body(NULL, "{" IN_TABLE ",\"Key\":{" TEXT("pk", "floor") "," TEXT("sk", "floor") "},"
				"\"UpdateExpression\":\"SET #seq = :number, #due = :later\","
				"\"ConditionExpression\":\"attribute_not_exists(#seq) OR #seq = :seq\","
				"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\","
				NAMES(NAME("seq") "," NAME("due"))
				VALUES(NUMBER(":number", "7") "," NUMBER(":later", "5100") "," NUMBER(":seq", "3"))
				COUNTED "}");
	make(QUEUE_READ_FLOOR);
	assert_body(NULL, "{" IN_TABLE ",\"Key\":{" TEXT("pk", "floor") "," TEXT("sk", "floor") "},"
				CONSISTENT COUNTED "}");
}

/* A push in between gives it another number. */
TEST(a_head_is_removed_with_the_number_that_was_seen)
{
	cJSON	   *json;

	make(QUEUE_DELETE_HEAD);
	request.seq = 9;
	json = build(NULL);
	assert_string_equal(text_at(json, "Key", "sk", "S"), "head");
	assert_string_equal(text_at(json, "ConditionExpression", NULL, NULL),
						"(attribute_not_exists(#seq) OR #seq = :seq) AND attribute_not_exists(#paused)");
	assert_string_equal(text_at(json, "ExpressionAttributeValues", ":seq", "N"), "9");
	cJSON_Delete(json);
}

/* The value of a job that rides, by its placeholder. */
static const cJSON *
rider_of(const cJSON *update, const char *placeholder)
{
	const cJSON *value = cJSON_GetObjectItem(cJSON_GetObjectItem(update, "ExpressionAttributeValues"),
											 placeholder);

	return cJSON_GetObjectItem(value, "M");
}

TEST(small_jobs_ride_on_the_head_in_the_order_of_their_numbers)
{
	char		tail[512];

	make(QUEUE_PUSH);
	request.jobs = 2;
	request.rides = true;
	request.tail_len = (uint32_t) add_job(tail, add_job(tail, 0, "", "[1]"), "id", "2");
	for (request.seq = 0; request.seq < 20; request.seq += 19)
	{
		cJSON	   *json;
		const cJSON *items;
		const cJSON *update;

		request.first = request.seq == 0;
		json = build(tail);
		items = cJSON_GetObjectItem(json, "TransactItems");
		update = cJSON_GetObjectItem(cJSON_GetArrayItem(items, 0), "Update");

		/* The head, and the second one's id. */
		assert_int_equal(cJSON_GetArraySize(items), 2);
		assert_sound(update);
		assert_string_equal(text_at(update, "UpdateExpression", NULL, NULL),
							"SET #seq = :last, #done = if_not_exists(#done, :seq), #ready = :queue, "
							"#due = if_not_exists(#due, :now), #job0 = :job0, #job1 = :job1");
		assert_string_equal(text_at(update, "ConditionExpression", NULL, NULL),
							request.seq == 0 ? "attribute_not_exists(#seq)" : "#seq = :seq");
		assert_string_equal(text_at(update, "ExpressionAttributeNames", "#job0", NULL),
							request.seq == 0 ? "job#0000000000000000001" : "job#0000000000000000020");
		assert_string_equal(text_at(update, "ExpressionAttributeNames", "#job1", NULL),
							request.seq == 0 ? "job#0000000000000000002" : "job#0000000000000000021");
		assert_string_equal(text_at(update, "ExpressionAttributeValues", ":last", "N"),
							request.seq == 0 ? "2" : "21");
		assert_string_equal(text_at(rider_of(update, ":job0"), "payload", "S", NULL), "[1]");
		assert_string_equal(text_at(rider_of(update, ":job0"), "pushedAt", "N", NULL), "5000");
		assert_null(text_at(rider_of(update, ":job0"), "id", "S", NULL));
		assert_string_equal(text_at(rider_of(update, ":job1"), "payload", "S", NULL), "2");
		assert_string_equal(text_at(rider_of(update, ":job1"), "id", "S", NULL), "id");
		assert_string_equal(text_at(cJSON_GetObjectItem(cJSON_GetArrayItem(items, 1), "Put"), "Item",
									"sk", "S"), "id");
		cJSON_Delete(json);
	}
	request.tail_len--;
	assert_null(queue_build("t", &request, tail));
}

TEST(what_rides_goes_when_it_is_finished_cancelled_or_dropped)
{
	static const queue_kind kinds[] = {QUEUE_COMPLETE, QUEUE_COMPLETE_LAST};
	const int64_t numbers[] = {12, 9};
	const cJSON *update;
	cJSON	   *json;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
	{
		make(kinds[i]);
		json = build(NULL);
		assert_non_null(strstr(text_at(json, "UpdateExpression", NULL, NULL), "#job"));
		assert_string_equal(text_at(json, "ExpressionAttributeNames", "#job", NULL),
							"job#0000000000000000007");
		cJSON_Delete(json);
	}

	make(QUEUE_CANCEL_RIDER);
	json = build(NULL);
	update = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "TransactItems"), 0)->child;
	assert_sound(update);
	assert_string_equal(text_at(update, "UpdateExpression", NULL, NULL), "REMOVE #job");
	assert_string_equal(text_at(update, "ConditionExpression", NULL, NULL),
						"#done < :before AND attribute_exists(#job)");
	assert_string_equal(text_at(update, "ExpressionAttributeNames", "#job", NULL),
						"job#0000000000000000007");
	assert_string_equal(text_at(update, "ExpressionAttributeValues", ":before", "N"), "6");
	cJSON_Delete(json);

	make(QUEUE_DROP);
	request.jobs = 2;
	request.tail_len = sizeof(numbers);
	json = build((const char *) numbers);
	assert_sound(json);
	assert_string_equal(text_at(json, "UpdateExpression", NULL, NULL),
						"SET #done = #seq REMOVE #ready, #due, #retryAt, #attempts, #lastError, #job0, #job1");
	assert_string_equal(text_at(json, "ExpressionAttributeNames", "#job0", NULL),
						"job#0000000000000000012");
	assert_string_equal(text_at(json, "ExpressionAttributeNames", "#job1", NULL),
						"job#0000000000000000009");
	cJSON_Delete(json);
}

/* A job that may be running is the next one. */
TEST(a_job_is_cancelled_if_it_is_there_and_not_the_next_one)
{
	make(QUEUE_CANCEL);
	assert_body(NULL, "{\"ClientRequestToken\":\"u\"," COUNTED ",\"TransactItems\":["
				"{\"ConditionCheck\":{" IN_TABLE ",\"Key\":{" TEXT("pk", RESOURCE) ","
				TEXT("sk", "head") "},\"ConditionExpression\":\"#done < :before\","
				"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"," NAMES(NAME("done"))
				"\"ExpressionAttributeValues\":{" NUMBER(":before", "6") "}}},"
				"{\"Delete\":{" IN_TABLE ",\"Key\":{" TEXT("pk", RESOURCE) ","
				TEXT("sk", JOB_7) "},"
				"\"ConditionExpression\":\"attribute_exists(#pk)\","
				"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\","
				"\"ExpressionAttributeNames\":{" NAME("pk") "}}}]}");
}

TEST(a_job_that_rode_has_no_item_to_bury)
{
	cJSON	   *json;

	make(QUEUE_BURY);
	request.rides = true;
	json = build("");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "TransactItems")), 2);
	cJSON_Delete(json);
}

/* Each write of a head costs a unit for each kilobyte. */
TEST(a_head_has_room_for_small_jobs_or_for_one_larger_one)
{
	assert_int_equal(queue_ride_size(2, 30), 92);
	assert_true(queue_may_ride(0, 2048));
	assert_false(queue_may_ride(0, 2049));
	assert_true(queue_may_ride(1, 639));
	assert_false(queue_may_ride(1, 640));
	assert_true(queue_may_ride(639, 1));
	assert_false(queue_may_ride(640, 1));
	assert_false(queue_may_ride(5000, 1));
}

TEST(burying_finishes_the_job_under_its_token_and_writes_the_dead_one)
{
	for (int last = 0; last < 2; last++)
	{
		cJSON	   *json;
		cJSON	   *items;

		make(QUEUE_BURY);
		request.last = last;
		strcpy(request.id, "7#a#b");
		strcpy(request.error, last ? "\xc3\xa9 no stock" : "");
		request.pushed_at = 4000;
		request.attempts = 5;
		request.tail_len = 1;
		json = build("1");
		items = cJSON_GetObjectItem(json, "TransactItems");
		assert_int_equal(cJSON_GetArraySize(items), 3);
		assert_string_equal(text_at(json, "ClientRequestToken", NULL, NULL), "u");
		assert_string_equal(text_at(cJSON_GetArrayItem(items, 0), "Update", "ConditionExpression", NULL),
							last ? "#token = :token AND #done = :before AND #seq = :number" :
							"#token = :token AND #done = :before AND #seq > :number");
#define DEAD_JOB(more) "{\"Put\":{" IN_TABLE ",\"Item\":{" TEXT("pk", "dead#q") "," \
	TEXT("sk", "7#a#b") "," TEXT("resource", "a#b") "," NUMBER("number", "7") "," \
	TEXT("payload", "1") "," NUMBER("pushedAt", "4000") "," NUMBER("attempts", "5") "," \
	NUMBER("due", "5000") more "}}}"
		assert_json(cJSON_GetArrayItem(items, 1),
					last ? DEAD_JOB("," TEXT("lastError", "\xc3\xa9 no stock")) : DEAD_JOB(""));
		assert_string_equal(text_at(cJSON_GetObjectItem(cJSON_GetArrayItem(items, 2), "Delete"),
									"Key", "sk", "S"), "job#0000000000000000007");
		cJSON_Delete(json);
	}
}

TEST(the_largest_job_fits)
{
	static char id[QUEUE_ID_MAX + 2];
	static char payload[QUEUE_PAYLOAD_MAX + 2];
	static char tail[sizeof(queue_job) + sizeof(id) + sizeof(payload)];

	make(QUEUE_PUSH);
	request.jobs = 1;
	memset(id, 'i', QUEUE_ID_MAX);
	memset(payload, '1', QUEUE_PAYLOAD_MAX);
	request.tail_len = (uint32_t) add_job(tail, 0, id, payload);
	cJSON_Delete(build(tail));
	payload[QUEUE_PAYLOAD_MAX] = '1';
	request.tail_len = (uint32_t) add_job(tail, 0, id, payload);
	assert_null(queue_build("t", &request, tail));
	id[QUEUE_ID_MAX] = 'i';
	request.tail_len = (uint32_t) add_job(tail, 0, id, "1");
	assert_null(queue_build("t", &request, tail));
}

TEST(a_tail_that_is_not_whole_is_refused)
{
	char		tail[256] = {0};

	make(QUEUE_PUSH);
	request.jobs = 2;
	request.tail_len = (uint32_t) add_job(tail, 0, "", "1");
	assert_null(queue_build("t", &request, tail));
	request.jobs = 1;
	request.tail_len--;
	assert_null(queue_build("t", &request, tail));

	/* ... and one that is. */
	request.tail_len = (uint32_t) add_job(tail, 0, "", "");
	cJSON_Delete(build(tail));
	request.tail_len--;
	assert_null(queue_build("t", &request, tail));
}

/* A drop names no more riders than it has numbers of. */
TEST(numbers_that_are_not_whole_are_not_read)
{
	int64_t    *numbers = malloc(sizeof(int64_t) * 2 - 1);
	cJSON	   *json;

	assert_non_null(numbers);
	numbers[0] = 12;
	make(QUEUE_DROP);
	request.jobs = 2;
	request.tail_len = sizeof(int64_t) * 2 - 1;
	json = build((const char *) numbers);
	assert_string_equal(text_at(json, "ExpressionAttributeNames", "#job0", NULL),
						"job#0000000000000000012");
	assert_string_equal(text_at(json, "ExpressionAttributeNames", "#job1", NULL),
						"job#0000000000000000000");
	cJSON_Delete(json);
	free(numbers);
}

TEST(a_digest_ends_within_its_array)
{
	char		tail[256];
	char		digest[QUEUE_DIGEST_SIZE];
	cJSON	   *json;

	make(QUEUE_PUSH);
	request.jobs = 1;
	request.tail_len = (uint32_t) add_job(tail, 0, "id", "2");
	memset(tail + offsetof(queue_job, digest), 'd', QUEUE_DIGEST_SIZE);
	memset(digest, 'd', sizeof(digest) - 1);
	digest[sizeof(digest) - 1] = '\0';
	json = build(tail);
	assert_string_equal(text_at(cJSON_GetObjectItem(cJSON_GetArrayItem(
				cJSON_GetObjectItem(json, "TransactItems"), 2), "Put"), "Item", "digest", "S"), digest);
	cJSON_Delete(json);
}

/* ---- replies ---- */

static queue_reply head;
static char *packed;

static void
read_reply(dynamo_op op, int http_status, const char *body)
{
	dynamo_reply reply;
	size_t		len;

	dynamo_read(&reply, NULL, op, 1, http_status, NULL, body, strlen(body));
	packed = queue_pack(&reply, 123, &len);
	assert_non_null(packed);
	memcpy(&head, packed, sizeof(head));
	assert_int_equal(head.status, reply.status);
	dynamo_reply_free(&reply);
}

static queue_row
row_at(size_t *offset)
{
	queue_row	row;

	memcpy(&row, packed + *offset, sizeof(row));
	*offset += sizeof(row) + row.queue_len + row.resource_len + row.id_len + row.error_len +
		row.payload_len;
	return row;
}

TEST(a_page_has_rows_and_where_the_next_one_begins)
{
	size_t		offset;
	queue_row	row;

	read_reply(DYNAMO_QUEUE_QUERY, 200, "{\"Items\":[{\"pk\":{\"S\":\"r#q#a#b\"},\"sk\":{\"S\":"
			   "\"job#0000000000000000012\"},\"payload\":{\"S\":\"[1]\"}},{\"pk\":{\"S\":\"r#q#c\"},"
			   "\"sk\":{\"S\":\"head\"},\"seq\":{\"N\":\"9\"},\"done\":{\"N\":\"8\"},\"paused\":"
			   "{\"N\":\"1\"}}],\"LastEvaluatedKey\":{\"pk\":{\"S\":\"r#q#c\"}}}");
	assert_int_equal(head.rows, 2);
	assert_int_equal(head.now_ms, 123);
	assert_int_equal(head.next_len, strlen("{\"pk\":{\"S\":\"r#q#c\"}}"));
	assert_memory_equal(packed + sizeof(head), "{\"pk\":{\"S\":\"r#q#c\"}}", head.next_len);
	offset = sizeof(head) + head.next_len;
	row = row_at(&offset);
	assert_int_equal(row.number, 12);
	assert_int_equal(row.resource_len, 3);
	assert_int_equal(row.payload_len, 3);
	row = row_at(&offset);
	assert_int_equal(row.seq, 9);
	assert_int_equal(row.done, 8);
	assert_true(row.paused);
	free(packed);
}

/* Also in a refusal; and only of a head: another item may have any attribute. */
TEST(what_rides_on_a_head_follows_it)
{
	size_t		offset = sizeof(head);
	queue_row	row;
	const char *rider;

	read_reply(DYNAMO_QUEUE_UPDATE, 400, "{\"__type\":\"x#ConditionalCheckFailedException\",\"Item\":"
			   "{\"job#0000000000000000009\":{\"M\":{\"payload\":{\"S\":\"[1]\"},\"pushedAt\":{\"N\":"
			   "\"77\"},\"id\":{\"S\":\"me\"}}},\"pk\":{\"S\":\"r#q#a\"},\"sk\":{\"S\":\"head\"},"
			   "\"job#0000000000000000008\":{\"M\":{\"payload\":{\"S\":\"2\"}}},"
			   "\"job#0000000000000000007\":{\"S\":\"no\"},\"job#8\":{\"M\":{}},"
			   "\"job#0000000000000000006\":{\"M\":{}},\"job#0000000000000000010\":{\"M\":{}},"
			   "\"job#-000000000000000008\":{\"M\":{}},\"aob#0000000000000000008\":{\"M\":{}},"
			   "\"kob#0000000000000000008\":{\"M\":{}},"
			   "\"seq\":{\"N\":\"9\"},\"done\":{\"N\":\"6\"}}}");
	assert_int_equal(head.rows, 1);
	row = row_at(&offset);
	assert_int_equal(row.seq, 9);
	assert_int_equal(row.riders, 2);
	rider = packed + offset + sizeof(row);
	row = row_at(&offset);
	assert_int_equal(row.number, 9);
	assert_int_equal(row.pushed_at, 77);
	assert_int_equal(row.riders, 0);
	assert_memory_equal(rider, "me[1]", 5);
	row = row_at(&offset);
	assert_int_equal(row.number, 8);
	assert_int_equal(row.payload_len, 1);
	free(packed);

	offset = sizeof(head);
	read_reply(DYNAMO_QUEUE_READ, 200, "{\"Item\":{\"pk\":{\"S\":\"r#q#a\"},\"sk\":{\"S\":"
			   "\"job#0000000000000000009\"},\"job#0000000000000000009\":{\"M\":{}}}}");
	assert_int_equal(row_at(&offset).riders, 0);
	free(packed);
}

/* ... so many that the next row is where its reader looks for it. */
TEST(a_head_shows_no_more_than_64_jobs_that_ride)
{
	char		body[8192];
	int			len = snprintf(body, sizeof(body), "{\"Items\":[{" TEXT("pk", "r#q#a") ","
							   TEXT("sk", "head") "," NUMBER("seq", "66"));
	size_t		offset = sizeof(head);

	for (int i = 1; i <= 66; i++)
		len += snprintf(body + len, sizeof(body) - (size_t) len,
						",\"job#%019d\":{\"M\":{" TEXT("payload", "1") "}}", i);
	snprintf(body + len, sizeof(body) - (size_t) len, "},{" TEXT("pk", "r#q#b") ","
			 TEXT("sk", "head") "," NUMBER("seq", "99") "}]}");
	read_reply(DYNAMO_QUEUE_QUERY, 200, body);
	assert_int_equal(head.rows, 2);
	assert_int_equal(row_at(&offset).riders, 64);
	for (int i = 1; i <= 64; i++)
		assert_int_equal(row_at(&offset).number, i);
	assert_int_equal(row_at(&offset).seq, 99);
	free(packed);
}

TEST(a_claim_shows_the_head_that_it_made)
{
	size_t		offset = sizeof(head);
	queue_row	row;

	read_reply(DYNAMO_QUEUE_UPDATE, 200, "{\"Attributes\":{" TEXT("pk", "r#q#a") ","
			   TEXT("sk", "head") "," NUMBER("token", "44") "," NUMBER("attempts", "3") ","
			   NUMBER("due", "4000") "," NUMBER("retryAt", "5100") "}}");
	assert_int_equal(head.rows, 1);
	row = row_at(&offset);
	assert_int_equal(row.token, 44);
	assert_int_equal(row.attempts, 3);
	assert_int_equal(row.turn, 4000);
	assert_int_equal(row.due, 5100);
	free(packed);
}

TEST(a_cancelled_transaction_shows_the_items_that_refused_it)
{
	size_t		offset = sizeof(head);

	read_reply(DYNAMO_QUEUE_TRANSACT, 400, "{\"__type\":\"x#TransactionCanceledException\","
			   "\"CancellationReasons\":[{\"Code\":\"ConditionalCheckFailed\",\"Item\":{"
			   TEXT("pk", "r#q#a") "," TEXT("sk", "head") "," NUMBER("seq", "8") "}},"
			   "{\"Code\":\"None\"},{\"Code\":\"ConditionalCheckFailed\",\"Item\":{"
			   TEXT("pk", "id#q") "," TEXT("sk", "me") "," NUMBER("number", "3") "}}]}");
	assert_int_equal(head.status, DYNAMO_CONDITION_FAILED);
	assert_int_equal(head.rows, 2);
	assert_int_equal(row_at(&offset).seq, 8);
	assert_int_equal(row_at(&offset).number, 3);
	free(packed);
}

TEST(a_server_that_fails_cancels_nothing)
{
	read_reply(DYNAMO_QUEUE_TRANSACT, 500, "{\"__type\":\"x#TransactionCanceledException\"}");
	assert_int_equal(head.status, DYNAMO_UNKNOWN);
	free(packed);
}

TEST(a_refused_write_shows_the_head)
{
	size_t		offset = sizeof(head);

	read_reply(DYNAMO_QUEUE_UPDATE, 400, "{\"__type\":\"x#ConditionalCheckFailedException\",\"Item\":"
			   "{\"pk\":{\"S\":\"r#q#a\"},\"sk\":{\"S\":\"head\"},\"token\":{\"N\":\"44\"}}}");
	assert_int_equal(head.status, DYNAMO_CONDITION_FAILED);
	assert_int_equal(head.rows, 1);
	assert_int_equal(row_at(&offset).token, 44);
	free(packed);
}

TEST(the_first_lock_table_guards)
{
	size_t		offset = sizeof(head);
	queue_row	row;

	make(QUEUE_GUARD);
	strcpy(request.id, "u1");
	assert_body(NULL, "{" IN_TABLE ",\"Key\":{" TEXT("pk", "lockTable") "," TEXT("sk", "lockTable") "},"
				"\"UpdateExpression\":\"SET #identity = :identity, #name = :name\","
				"\"ConditionExpression\":\"attribute_not_exists(#identity) OR #identity = :identity\","
				"\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\","
				NAMES(NAME("identity") "," NAME("name"))
				VALUES(TEXT(":identity", "u1") "," TEXT(":name", "a#b")) COUNTED "}");

	read_reply(DYNAMO_QUEUE_UPDATE, 400, "{\"__type\":\"x#ConditionalCheckFailedException\",\"Item\":"
			   "{\"pk\":{\"S\":\"lockTable\"},\"sk\":{\"S\":\"lockTable\"},"
			   "\"identity\":{\"S\":\"u2\"},\"name\":{\"S\":\"other\"}}}");
	assert_int_equal(head.status, DYNAMO_CONDITION_FAILED);
	row = row_at(&offset);
	assert_int_equal(row.resource_len, 5);
	assert_int_equal(row.id_len, 2);
	assert_memory_equal(packed + sizeof(head) + sizeof(row), "otheru2", 7);
	free(packed);
}

TEST(a_dead_jobs_row_has_its_texts_one_after_the_other)
{
	size_t		offset = sizeof(head);

	read_reply(DYNAMO_QUEUE_READ, 200, "{\"Item\":{\"pk\":{\"S\":\"dead#q\"},\"sk\":{\"S\":\"i\"},"
			   "\"resource\":{\"S\":\"r\"},\"lastError\":{\"S\":\"no stock\"},"
			   "\"payload\":{\"S\":\"[1]\"}," NUMBER("pushedAt", "4000") "}}");
	assert_int_equal(row_at(&offset).pushed_at, 4000);
	assert_memory_equal(packed + sizeof(head) + sizeof(queue_row), "qrino stock[1]",
						offset - sizeof(head) - sizeof(queue_row));
	free(packed);
}

TEST(a_callers_id_may_look_like_the_key_of_a_job)
{
	size_t		offset = sizeof(head);
	queue_row	row;

	read_reply(DYNAMO_QUEUE_READ, 200, "{\"Item\":{\"pk\":{\"S\":\"id#q\"},\"sk\":{\"S\":\"job#7\"},"
			   "\"resource\":{\"S\":\"abc\"},\"number\":{\"N\":\"3\"},"
			   "\"digest\":{\"S\":\"d4\"}}}");
	row = row_at(&offset);
	assert_string_equal(row.digest, "d4");
	assert_int_equal(row.number, 3);
	assert_int_equal(row.id_len, 5);
	assert_int_equal(row.resource_len, 3);
	free(packed);
}

/* Nothing of ours: its key tells no number. */
TEST(only_the_keys_of_jobs_have_numbers)
{
	size_t		offset = sizeof(head);

	read_reply(DYNAMO_QUEUE_QUERY, 200, "{\"Items\":[{" TEXT("pk", "r#q#a") "," TEXT("sk", "aob#7") "},{"
			   TEXT("pk", "r#q#a") "," TEXT("sk", "kob#7") "},{" TEXT("pk", "r#q#a") "," TEXT("sk", "job#7") "}]}");
	assert_int_equal(row_at(&offset).number, 0);
	assert_int_equal(row_at(&offset).number, 0);
	assert_int_equal(row_at(&offset).number, 7);
	free(packed);
}

TEST(a_job_that_is_not_there_is_looked_for_with_a_write)
{
	cJSON	   *json;

	make(QUEUE_CHECK_GONE);
	json = build(NULL);
	assert_string_equal(text_at(json, "Key", "sk", "S"), "job#0000000000000000007");
	assert_string_equal(text_at(json, "ConditionExpression", NULL, NULL), "attribute_not_exists(#pk)");
	cJSON_Delete(json);
	assert_int_equal(queue_op(QUEUE_CHECK_GONE), DYNAMO_QUEUE_DELETE);
	read_reply(DYNAMO_QUEUE_DELETE, 400, "{\"__type\":\"x#ConditionalCheckFailedException\"}");
	assert_int_equal(head.status, DYNAMO_CONDITION_FAILED);
	free(packed);
	read_reply(DYNAMO_QUEUE_DELETE, 400, "{\"__type\":\"x#TransactionConflictException\"}");
	assert_true(dynamo_is_transient(head.status));
	free(packed);
}

static dynamo_status
status_of_reasons(const char *reasons)
{
	char		body[512];
	dynamo_reply reply;
	dynamo_status status;

	snprintf(body, sizeof(body), "{\"__type\":\"x#TransactionCanceledException\","
			 "\"CancellationReasons\":[%s]}", reasons);
	dynamo_read(&reply, NULL, DYNAMO_QUEUE_TRANSACT, 1, 400, NULL, body, strlen(body));
	status = reply.status;
	dynamo_reply_free(&reply);
	return status;
}

TEST(a_cancelled_transaction_has_reasons)
{
#define NONE "{\"Code\":\"None\"},"
	assert_int_equal(status_of_reasons(NONE "{\"Code\":\"ConditionalCheckFailed\"}"),
					 DYNAMO_CONDITION_FAILED);
	assert_int_equal(status_of_reasons(NONE "{\"Code\":\"TransactionConflict\"},"
									   "{\"Code\":\"ConditionalCheckFailed\"}"),
					 DYNAMO_CONDITION_FAILED);
	assert_int_equal(status_of_reasons(NONE "{\"Code\":\"TransactionConflict\"}"), DYNAMO_CONFLICT);
	assert_int_equal(status_of_reasons("{\"Code\":\"ThrottlingError\"}"), DYNAMO_THROTTLED);
	assert_int_equal(status_of_reasons("{\"Code\":\"ValidationError\"}"), DYNAMO_VALIDATION);
}

TEST(a_transaction_in_progress_is_unknown)
{
	static const char body[] = "{\"__type\":\"x#TransactionInProgressException\",\"message\":\"m\"}";
	dynamo_reply reply;

	dynamo_read(&reply, NULL, DYNAMO_QUEUE_TRANSACT, 1, 400, NULL, body, strlen(body));
	assert_int_equal(reply.status, DYNAMO_UNKNOWN);
	dynamo_reply_free(&reply);
}

#define KEY(name, type) "{\"AttributeName\":\"" name "\",\"KeyType\":\"" type "\"}"
#define KEYS "\"KeySchema\":[" KEY("pk", "HASH") "," KEY("sk", "RANGE") "]"
#define TYPES(pk, sk, ready, due) "\"AttributeDefinitions\":[" ATTRIBUTE("pk", pk) "," \
	ATTRIBUTE("sk", sk) "," ATTRIBUTE("ready", ready) "," ATTRIBUTE("due", due) "]"
#define INDEX_WITH(name, projection) "\"GlobalSecondaryIndexes\":[{\"IndexName\":\"" name "\",\"KeySchema\":" \
	"[" KEY("ready", "HASH") "," KEY("due", "RANGE") "],\"Projection\":" projection "}]"
#define INDEX(name) INDEX_WITH(name, PROJECTED)

/* What it tells of a table: its status, and what it lacks. */
static void
assert_table(const char *description, const char *told)
{
	char		body[1024];
	size_t		offset = sizeof(head);
	queue_row	row;

	snprintf(body, sizeof(body), "{\"Table\":{\"TableStatus\":\"ACTIVE\",%s}}", description);
	read_reply(DYNAMO_QUEUE_DESCRIBE_TABLE, 200, body);
	row = row_at(&offset);
	assert_int_equal(row.id_len, strlen("ACTIVE"));
	assert_int_equal(row.id_len + row.error_len, strlen(told));
	assert_memory_equal(packed + sizeof(head) + sizeof(row), told, strlen(told));
	assert_int_equal(row.is_protected, strstr(description, "Protection") != NULL);
	free(packed);
}

TEST(a_queue_table_has_its_keys_and_its_index)
{
	static const char no_keys[] = "ACTIVEIts keys must be \"pk\" (S) and \"sk\" (S).";
	static const char no_index[] = "ACTIVEIt must have an index \"ready\" with the keys"
		" \"ready\" (S) and \"due\" (N) that projects \"retryAt\", \"attempts\" and \"paused\".";

	assert_table(KEYS "," TYPES("S", "S", "S", "N") "," INDEX("ready"), "ACTIVE");
	assert_table(KEYS "," TYPES("S", "S", "S", "N") "," INDEX("ready")
				 ",\"DeletionProtectionEnabled\":true", "ACTIVE");
	assert_table(KEYS "," TYPES("S", "S", "S", "N") "," INDEX("other"), no_index);
	assert_table(KEYS "," TYPES("S", "S", "S", "N"), no_index);
	assert_table(KEYS "," TYPES("S", "S", "S", "N") "," INDEX_WITH("ready", "{\"ProjectionType\":\"ALL\"}"),
				 "ACTIVE");
	assert_table(KEYS "," TYPES("S", "S", "S", "N") ","
				 INDEX_WITH("ready", "{\"ProjectionType\":\"KEYS_ONLY\"}"), no_index);
	assert_table(KEYS "," TYPES("S", "S", "S", "N") ","
				 INDEX_WITH("ready", PROJECTION("retryAt", "attempts", "done")), no_index);
	assert_table(KEYS "," TYPES("S", "S", "S", "N") ","
				 INDEX_WITH("ready", PROJECTION("retryAt", "done", "paused")), no_index);
	assert_table(KEYS "," TYPES("S", "S", "S", "N") ","
				 INDEX_WITH("ready", PROJECTION("done", "attempts", "paused")), no_index);
	assert_table(KEYS "," TYPES("S", "S", "N", "N") "," INDEX("ready"), no_index);
	assert_table(KEYS "," TYPES("S", "S", "S", "S") "," INDEX("ready"), no_index);
	assert_table("\"KeySchema\":[" KEY("pk", "HASH") "]," TYPES("S", "S", "S", "N") ","
				 INDEX("ready"), no_keys);
	assert_table(KEYS "," INDEX("ready"), no_keys);
	assert_table(KEYS "," TYPES("N", "S", "S", "N") "," INDEX("ready"), no_keys);
	assert_table(KEYS "," TYPES("S", "N", "S", "N") "," INDEX("ready"), no_keys);
	assert_table(KEYS "," TYPES("S", "S", "S", "N") "," INDEX("ready") ",\"Replicas\":[]",
				 "ACTIVE");
	assert_table(KEYS "," TYPES("S", "S", "S", "N") "," INDEX("ready")
				 ",\"Replicas\":[{\"RegionName\":\"r\"}]", "ACTIVEIt must not be a global table.");
}

/* ---- what a head says ---- */

TEST(a_job_is_due_if_it_waits_its_time_has_come_and_it_is_not_paused)
{
	queue_row	row = {.seq = 8,.done = 7,.due = 100};

	assert_true(queue_is_due(&row, 100));
	assert_false(queue_is_due(&row, 99));
	assert_false(queue_is_due(NULL, 100));
	row.paused = true;
	assert_false(queue_is_due(&row, 100));
	row = (queue_row) {.seq = 8,.done = 8};
	assert_false(queue_is_due(&row, 100));
}

TEST(a_head_is_spent_without_jobs_and_pause_long_after_its_last_claim)
{
	queue_row	row = {.seq = 8,.done = 8,.token = 30};

	assert_true(queue_is_spent(&row, 31));
	assert_false(queue_is_spent(&row, 30));
	row.paused = true;
	assert_false(queue_is_spent(&row, 31));
	row = (queue_row) {.seq = 8,.done = 7};
	assert_false(queue_is_spent(&row, 31));
	row.done = 8;
	assert_true(queue_is_spent(&row, 31));
}

TEST(the_backoff_doubles_to_ten_minutes)
{
	assert_int_equal(queue_backoff_ms(-1), 5000);
	assert_int_equal(queue_backoff_ms(0), 5000);
	assert_int_equal(queue_backoff_ms(1), 10000);
	assert_int_equal(queue_backoff_ms(6), 320000);
	assert_int_equal(queue_backoff_ms(7), 600000);
	assert_int_equal(queue_backoff_ms(INT64_MAX), 600000);
}

TEST(a_claim_that_its_own_token_refuses_was_applied_unless_its_job_is_gone)
{
	queue_row	row = {.seq = 8,.done = 7,.token = 30};

	assert_true(queue_is_claimed(DYNAMO_OK, &row, 30));
	assert_true(queue_is_claimed(DYNAMO_CONDITION_FAILED, &row, 30));
	assert_false(queue_is_claimed(DYNAMO_CONDITION_FAILED, &row, 31));
	assert_false(queue_is_claimed(DYNAMO_CONDITION_FAILED, NULL, 30));
	row.done = 8;
	assert_false(queue_is_claimed(DYNAMO_CONDITION_FAILED, &row, 30));
}

TEST(a_job_that_is_finished_or_dropped_need_not_be_put_back)
{
	queue_row	row = {.seq = 8,.done = 7};

	assert_true(queue_is_put_back(DYNAMO_OK, NULL, 8));
	assert_false(queue_is_put_back(DYNAMO_CONDITION_FAILED, &row, 8));
	assert_false(queue_is_put_back(DYNAMO_CONDITION_FAILED, NULL, 8));
	row.done = 8;
	assert_true(queue_is_put_back(DYNAMO_CONDITION_FAILED, &row, 8));
}

/* ---- finishing ---- */

static queue_row
head_with(int64_t seq, int64_t done, int64_t token)
{
	queue_row	row = {.seq = seq,.done = done,.token = token};

	return row;
}

TEST(finishing_takes_the_other_form_when_the_head_says_so)
{
	queue_finish finish = {.number = 7,.token = 30,.last = true};
	queue_row	row = head_with(8, 6, 30);

	assert_int_equal(queue_finish_kind(&finish), QUEUE_COMPLETE_LAST);
	assert_int_equal(queue_finish_reply(&finish, DYNAMO_CONDITION_FAILED, &row), QUEUE_AGAIN);
	assert_int_equal(queue_finish_kind(&finish), QUEUE_COMPLETE);
	assert_int_equal(queue_finish_reply(&finish, DYNAMO_OK, NULL), QUEUE_FINISHED);
}

TEST(finishing_repeats_what_is_unknown_in_the_same_form)
{
	queue_finish finish = {.number = 7,.token = 30,.last = true};

	assert_int_equal(queue_finish_reply(&finish, DYNAMO_UNKNOWN, NULL), QUEUE_AGAIN);
	assert_int_equal(queue_finish_reply(&finish, DYNAMO_ACCESS_DENIED, NULL), QUEUE_AGAIN);
	assert_int_equal(queue_finish_kind(&finish), QUEUE_COMPLETE_LAST);
}

TEST(finishing_ends_when_it_is_done_or_another_token_has_the_job)
{
	queue_finish finish = {.number = 7,.token = 30};
	queue_row	row = head_with(9, 7, 31);

	assert_int_equal(queue_finish_reply(&finish, DYNAMO_CONDITION_FAILED, &row), QUEUE_FINISHED);
	row = head_with(9, 6, 31);
	assert_int_equal(queue_finish_reply(&finish, DYNAMO_CONDITION_FAILED, &row), QUEUE_REFUSED);
	row = head_with(9, 5, 30);
	assert_int_equal(queue_finish_reply(&finish, DYNAMO_CONDITION_FAILED, &row), QUEUE_REFUSED);
	assert_int_equal(queue_finish_reply(&finish, DYNAMO_CONDITION_FAILED, NULL), QUEUE_REFUSED);
}
