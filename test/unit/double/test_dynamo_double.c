/*-------------------------------------------------------------------------
 *
 * test_dynamo_double.c
 *	  The DynamoDB double, with this project's own requests.
 *
 * test/check-double compares it with DynamoDB Local.  The tests here are for what
 * DynamoDB Local cannot do, and a sample of the rest.
 *
 *-------------------------------------------------------------------------
 */
#define BEFORE_EACH set_up
#define AFTER_EACH tear_down
#include "../unit.h"
#include "dynamo/dynamo.h"
#include "dynamo_double.h"

static const dynamo_table table = {
	.name = "lockTable",.partition_key = "key"
};
static const dynamo_holder holder = {.database = "postgres",.pid = 7};

static dynamo_double *d;

/* Sends it, reads the reply; the caller frees it. */
static dynamo_reply
ask(dynamo_op op, char *body, int count)
{
	dynamo_reply result;
	char	   *reply;
	size_t		len;
	int			status = dynamo_double_request(d, dynamo_target(op), body, strlen(body),
											   &reply, &len);

	assert_int_equal(strlen(reply), len);
	dynamo_read(&result, NULL, op, count, status, NULL, reply, len);
	free(reply);
	free(body);
	return result;
}

static int
set_up(void **state)
{
	dynamo_reply reply;

	(void) state;
	d = dynamo_double_new();
	reply = ask(DYNAMO_CREATE_TABLE, dynamo_build_create_table(&table, &(dynamo_creation) {0}), 1);
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_string_equal(reply.table.status, "ACTIVE");
	dynamo_reply_free(&reply);
	return 0;
}

static int
tear_down(void **state)
{
	(void) state;
	dynamo_double_free(d);
	return 0;
}

static dynamo_write
write_of(dynamo_op op, const char *name, const char *expected, const char *version)
{
	return (dynamo_write) {
		.op = op,.name = name,.name_len = strlen(name),.owner = "me",
			.version = version,.expected = expected,.lease_ms = 20000,.first_token = 100,
			.last_token = 100,.holder = &holder,.now_s = 1000
	};
}

static dynamo_reply
ask_write(dynamo_write write)
{
	return ask(write.op, dynamo_build(&table, &write), 1);
}

static dynamo_status
status_of_write(dynamo_write write)
{
	dynamo_reply reply = ask_write(write);
	dynamo_status status = reply.status;

	dynamo_reply_free(&reply);
	return status;
}

/* Sends raw JSON; expects a status and a text in the reply. */
static void
expect(const char *operation, const char *body, int status, const char *text)
{
	char		target[64];
	char	   *reply;
	size_t		len;

	snprintf(target, sizeof(target), "DynamoDB_20120810.%s", operation);
	assert_int_equal(dynamo_double_request(d, target, body, strlen(body), &reply, &len),
					 status);
	if (strstr(reply, text) == NULL)
		fail_msg("\"%s\" is not in %s", text, reply);
	free(reply);
}

TEST(life_of_a_lock)
{
	dynamo_write write = write_of(DYNAMO_ACQUIRE, "a", "", "v1");
	dynamo_reply reply;

	assert_int_equal(status_of_write(write), DYNAMO_OK);
	reply = ask_write(write_of(DYNAMO_ACQUIRE, "a", "", "v2"));
	assert_int_equal(reply.status, DYNAMO_CONDITION_FAILED);
	assert_string_equal(reply.results[0].item.version, "v1");
	assert_int_equal(reply.results[0].item.token, 100);
	dynamo_reply_free(&reply);

	assert_int_equal(status_of_write(write_of(DYNAMO_RENEW, "a", "v1", "v2")), DYNAMO_OK);
	assert_int_equal(status_of_write(write_of(DYNAMO_RENEW, "a", "v1", "v3")),
					 DYNAMO_CONDITION_FAILED);
	assert_int_equal(status_of_write(write_of(DYNAMO_RELEASE, "a", "v2", "v3")), DYNAMO_OK);
	assert_int_equal(status_of_write(write_of(DYNAMO_RENEW, "a", "v3", "v4")),
					 DYNAMO_CONDITION_FAILED);

	/* refused: the same token again */
	assert_int_equal(status_of_write(write_of(DYNAMO_ACQUIRE, "a", "", "v4")),
					 DYNAMO_CONDITION_FAILED);
	write.first_token = write.last_token = INT64_C(9223372036854775807);
	assert_int_equal(status_of_write(write), DYNAMO_OK);
	write.first_token--;
	write.expected = "v1";
	assert_int_equal(status_of_write(write), DYNAMO_CONDITION_FAILED);
}

static dynamo_write
with_tokens(dynamo_write write, int64_t first, int64_t last)
{
	write.first_token = first;
	write.last_token = last;
	return write;
}

/* A bar raises the token of any item, and no late copy gets past it, nor does a deletion. */
TEST(life_of_a_bar)
{
	dynamo_write bar = with_tokens(write_of(DYNAMO_BAR, "a", "", ""), 200, 300);
	dynamo_write late = with_tokens(write_of(DYNAMO_ACQUIRE, "a", "", "v2"), 200, 300);
	dynamo_reply reply;

	reply = ask_write(bar);
	assert_int_equal(reply.status, DYNAMO_CONDITION_FAILED);
	assert_false(reply.results[0].item.exists);
	dynamo_reply_free(&reply);

	assert_int_equal(status_of_write(write_of(DYNAMO_ACQUIRE, "a", "", "v1")), DYNAMO_OK);
	reply = ask_write(bar);
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(reply.results[0].item.token, 300);
	assert_string_equal(reply.results[0].item.version, "v1");
	assert_false(reply.results[0].item.released);
	dynamo_reply_free(&reply);
	assert_int_equal(status_of_write(bar), DYNAMO_CONDITION_FAILED);

	/* Its holder goes on, but hands over no token below. */
	assert_int_equal(status_of_write(write_of(DYNAMO_RENEW, "a", "v1", "v3")), DYNAMO_OK);
	assert_int_equal(status_of_write(with_tokens(write_of(DYNAMO_HAND_OVER, "a", "v3", "v4"),
												 300, 400)), DYNAMO_CONDITION_FAILED);
	assert_int_equal(status_of_write(write_of(DYNAMO_RELEASE, "a", "v3", "v4")), DYNAMO_OK);
	assert_int_equal(status_of_write(late), DYNAMO_CONDITION_FAILED);
	assert_int_equal(status_of_write(with_tokens(write_of(DYNAMO_DELETE, "a", "v4", ""),
												 0, 299)), DYNAMO_CONDITION_FAILED);
	assert_int_equal(status_of_write(with_tokens(write_of(DYNAMO_DELETE, "a", "v4", ""),
												 0, 300)), DYNAMO_OK);

	/* Where there is no item, it makes one. */
	assert_int_equal(status_of_write(with_tokens(write_of(DYNAMO_BAR_NEW, "a", "", "v5"),
												 200, 300)), DYNAMO_OK);
	assert_int_equal(status_of_write(with_tokens(write_of(DYNAMO_BAR_NEW, "a", "", "v6"),
												 200, 300)), DYNAMO_CONDITION_FAILED);
	reply = ask_write(write_of(DYNAMO_READ, "a", NULL, NULL));
	assert_true(reply.results[0].item.released);
	assert_string_equal(reply.results[0].item.version, "v5");
	assert_int_equal(reply.results[0].item.lease_ms, 20000);
	assert_int_equal(reply.results[0].item.released_at, 1000);
	dynamo_reply_free(&reply);
	assert_int_equal(status_of_write(late), DYNAMO_CONDITION_FAILED);
	assert_int_equal(status_of_write(with_tokens(late, 301, 301)), DYNAMO_OK);
}

TEST(batches)
{
	dynamo_write writes[3] = {
		write_of(DYNAMO_RENEW, "a", "v1", "v2"),
		write_of(DYNAMO_RENEW, "b", "v1", "v2"),
		write_of(DYNAMO_RENEW, "missing", "v1", "v2"),
	};
	dynamo_reply reply;

	assert_int_equal(status_of_write(write_of(DYNAMO_ACQUIRE, "a", "", "v1")), DYNAMO_OK);
	assert_int_equal(status_of_write(write_of(DYNAMO_ACQUIRE, "b", "", "other")), DYNAMO_OK);
	writes[1].holder = NULL;
	reply = ask(DYNAMO_RENEW_BATCH, dynamo_build_batch(&table, writes, 3), 3);
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(reply.results[0].status, DYNAMO_OK);
	assert_int_equal(reply.results[1].status, DYNAMO_CONDITION_FAILED);
	assert_string_equal(reply.results[1].item.version, "other");
	assert_int_equal(reply.results[2].status, DYNAMO_CONDITION_FAILED);
	assert_false(reply.results[2].item.exists);
	assert_true(reply.consumed == 3);
	dynamo_reply_free(&reply);
}

static const char *
version_of(const char *name)
{
	static char version[DYNAMO_VERSION_SIZE];
	dynamo_reply reply = ask_write(write_of(DYNAMO_READ, name, NULL, NULL));

	strcpy(version, reply.results[0].item.version);
	dynamo_reply_free(&reply);
	return version;
}

/* Faults of single statements, applied or not; the others are unaffected. */
TEST(statement_faults)
{
	const dynamo_double_fault faults[3] = {
		{"InternalServerError", true}, {"InternalServerError", false},
		{"ThrottlingException", false}
	};
	const char *const names[4] = {"a", "b", "c", "d"};
	dynamo_write writes[4];
	dynamo_reply result;
	char	   *body;
	char	   *reply;
	size_t		len;
	int			status;

	for (int i = 0; i < 4; i++)
	{
		assert_int_equal(status_of_write(write_of(DYNAMO_ACQUIRE, names[i], "", "v1")),
						 DYNAMO_OK);
		writes[i] = write_of(DYNAMO_RENEW, names[i], "v1", "v2");
	}
	body = dynamo_build_batch(&table, writes, 4);
	status = dynamo_double_batch(d, body, strlen(body), faults, 3, &reply, &len);
	dynamo_read(&result, NULL, DYNAMO_RENEW_BATCH, 4, status, NULL, reply, len);
	assert_int_equal(result.results[0].status, DYNAMO_UNKNOWN);
	assert_int_equal(result.results[1].status, DYNAMO_UNKNOWN);
	assert_int_equal(result.results[2].status, DYNAMO_THROTTLED);
	assert_int_equal(result.results[3].status, DYNAMO_OK);
	assert_string_equal(version_of("a"), "v2");
	assert_string_equal(version_of("b"), "v1");
	assert_string_equal(version_of("c"), "v1");
	assert_string_equal(version_of("d"), "v2");
	dynamo_reply_free(&result);
	free(reply);
	free(body);
}

TEST(errors)
{
	static const struct
	{
		const char *type;
		int			http_status;
		dynamo_status status;
	}			cases[] = {
		{"ProvisionedThroughputExceededException", 400, DYNAMO_THROTTLED},
		{"ThrottlingException", 400, DYNAMO_THROTTLED},
		{"RequestLimitExceeded", 400, DYNAMO_THROTTLED},
		{"TransactionConflictException", 400, DYNAMO_CONFLICT},
		{"ReplicatedWriteConflictException", 400, DYNAMO_CONFLICT},
		{"InternalServerError", 500, DYNAMO_UNKNOWN},
		{"ServiceUnavailable", 503, DYNAMO_UNKNOWN},
		{"ExpiredTokenException", 400, DYNAMO_CREDENTIALS},
		{"UnrecognizedClientException", 400, DYNAMO_CREDENTIALS},
		{"InvalidSignatureException", 400, DYNAMO_CREDENTIALS},
		{"AccessDeniedException", 400, DYNAMO_ACCESS_DENIED},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		dynamo_reply result;
		char	   *reply;
		size_t		len;
		int			status = dynamo_double_error(cases[i].type, NULL, &reply, &len);

		assert_int_equal(status, cases[i].http_status);
		dynamo_read(&result, NULL, DYNAMO_RENEW, 1, status, NULL, reply, len);
		assert_int_equal(result.status, cases[i].status);
		assert_memory_equal(result.message, cases[i].type, strlen(cases[i].type));
		dynamo_reply_free(&result);
		free(reply);
	}
}

TEST(numbers)
{
	static const char *const spellings[][2] = {
		{"001.50e2", "150"}, {"-0", "0"}, {"1e-3", "0.001"}, {"1E20", "100000000000000000000"},
		{"12345678901234567890123456789012345678", "12345678901234567890123456789012345678"},
		{"-1.10", "-1.1"}, {".5", "0.5"},
	};
	char		body[400];

	for (size_t i = 0; i < COUNT_OF(spellings); i++)
	{
		snprintf(body, sizeof(body), "{\"TableName\":\"lockTable\",\"Item\":{\"key\":"
				 "{\"S\":\"n\"},\"n\":{\"N\":\"%s\"}}}", spellings[i][0]);
		expect("PutItem", body, 200, "{}");
		snprintf(body, sizeof(body), "\"n\":{\"N\":\"%s\"}", spellings[i][1]);
		expect("GetItem", "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"n\"}}}",
			   200, body);
	}
	expect("UpdateItem", "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"n\"}},"
		   "\"UpdateExpression\":\"SET n = n - :d\",\"ConditionExpression\":\"n > :d\","
		   "\"ExpressionAttributeValues\":{\":d\":{\"N\":\"0.25\"}},"
		   "\"ReturnValues\":\"ALL_NEW\"}", 200, "\"n\":{\"N\":\"0.25\"}");
}

TEST(refusals)
{
	expect("Nonsense", "{}", 400, "UnknownOperationException");
	expect("GetItem", "{", 400, "SerializationException");
	expect("GetItem", "{\"TableName\":\"other\",\"Key\":{\"key\":{\"S\":\"n\"}}}", 400,
		   "ResourceNotFoundException");
	expect("GetItem", "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"\"}}}", 400,
		   "ValidationException");
	expect("GetItem", "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"N\":\"1\"}}}", 400,
		   "Type mismatch for key");
	expect("UpdateItem", "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"n\"}},"
		   "\"UpdateExpression\":\"SET ttl = :d\","
		   "\"ExpressionAttributeValues\":{\":d\":{\"N\":\"1\"}}}", 400,
		   "reserved keyword: ttl");
}

static void
count_item(const cJSON *item, void *context)
{
	assert_true(cJSON_HasObjectItem(item, "key"));
	++*(int *) context;
}

/* The next page starts after the last key, even if that item is gone. */
TEST(scans)
{
	char		body[400];
	char		last[64] = "";
	int			count = 0;
	int			pages = 0;

	for (int i = 0; i < 200; i++)
	{
		snprintf(body, sizeof(body), "{\"TableName\":\"lockTable\",\"Item\":{\"key\":"
				 "{\"S\":\"n%d\"}}}", i);
		expect("PutItem", body, 200, "{}");
	}
	dynamo_double_items(d, "lockTable", count_item, &count);
	assert_int_equal(count, 200);

	for (count = 0; pages == 0 || last[0] != '\0'; pages++)
	{
		char	   *reply;
		size_t		len;
		cJSON	   *json;
		const cJSON *key;

		snprintf(body, sizeof(body), "{\"TableName\":\"lockTable\",\"Limit\":7%s%s}",
				 last[0] != '\0' ? ",\"ExclusiveStartKey\":" : "", last);
		assert_int_equal(dynamo_double_request(d, "DynamoDB_20120810.Scan", body,
											   strlen(body), &reply, &len), 200);
		json = cJSON_Parse(reply);
		count += cJSON_GetArraySize(cJSON_GetObjectItem(json, "Items"));
		last[0] = '\0';
		key = cJSON_GetObjectItem(json, "LastEvaluatedKey");
		if (key != NULL)
		{
			cJSON_PrintPreallocated((cJSON *) key, last, sizeof(last), 0);
			snprintf(body, sizeof(body), "{\"TableName\":\"lockTable\",\"Key\":%s}", last);
			expect("DeleteItem", body, 200, "{}");
		}
		cJSON_Delete(json);
		free(reply);
	}
	assert_int_equal(count, 200);
	assert_int_equal(pages, 29);
}
