/*-------------------------------------------------------------------------
 *
 * test_dynamo_reply.c
 *	  Reading DynamoDB's replies.
 *
 * Replies marked "Local" were recorded from DynamoDB Local, with their checksums.
 * Those that Local never sends (throttling, conflicts, credentials) follow the API
 * Reference.
 *
 *-------------------------------------------------------------------------
 */
#define AFTER_EACH free_reply
#include "../unit.h"
#include "dynamo/dynamo.h"

/* Local */
#define ITEM_JSON \
	"{\"data\":{\"B\":\"AAECeno=\"},\"ownerName\":{\"S\":\"o\\\"1/inc\"}," \
	"\"recordVersionNumber\":{\"S\":\"v1\"},\"holder\":{\"M\":{\"host\":{\"S\":\"host\"}," \
	"\"owner\":{\"S\":\"o\\\"1/inc\"}," \
	"\"database\":{\"S\":\"d\\\"b\"},\"pid\":{\"N\":\"77\"}," \
	"\"application\":{\"S\":\"app\\uD83D\\uDE00\"},\"user\":{\"S\":\"us\\ter\"}," \
	"\"since\":{\"N\":\"1795254699472\"}}},\"fencingToken\":{\"N\":\"100\"}," \
	"\"key\":{\"S\":\"migrate/orders\"},\"leaseDuration\":{\"S\":\"20000\"}}"
#define RELEASED_JSON \
	"{\"releasedAt\":{\"N\":\"1795254699\"}," \
	"\"releasedVersion\":{\"S\":\"v6\"},\"ownerName\":{\"S\":\"o\\\"1/inc\"}," \
	"\"recordVersionNumber\":{\"S\":\"v6\"},\"fencingToken\":{\"N\":\"301\"}," \
	"\"isReleased\":{\"S\":\"1\"},\"key\":{\"S\":\"migrate/orders\"}," \
	"\"leaseDuration\":{\"S\":\"30000\"}}"
#define REFUSED \
	"{\"__type\":\"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException\"," \
	"\"Message\":\"The conditional request failed\""

/* The last one that was read. */
static dynamo_reply reply;

static int
free_reply(void **state)
{
	(void) state;
	dynamo_reply_free(&reply);
	return 0;
}

/* Whoever reads a reply sets each of its members. */
static void
forget_reply(void)
{
	dynamo_reply_free(&reply);
	memset(&reply, 0xa5, sizeof(reply));
}

static void
read_reply(dynamo_op op, int count, int http_status, const char *crc32, const char *body,
		   size_t len)
{
	const dynamo_headers headers = {crc32 != NULL ? crc32 : "", ""};

	forget_reply();
	dynamo_read(&reply, NULL, op, count, http_status, &headers, body, len);
}

static void
read_text(dynamo_op op, int http_status, const char *body)
{
	read_reply(op, 1, http_status, NULL, body, strlen(body));
	assert_int_equal(reply.count, 1);
}

/* Reads a GetItem reply with the given attributes. */
static const dynamo_item *
read_item(const char *attributes)
{
	char		body[4200];

	snprintf(body, sizeof(body), "{\"Item\":{%s}}", attributes);
	read_text(DYNAMO_READ, 200, body);
	return &reply.results[0].item;
}

static void
assert_status(const char *body, int http_status, dynamo_op op, dynamo_status expected)
{
	read_text(op, http_status, body);
	if (reply.status != expected || reply.results[0].status != expected)
		fail_msg("status %d instead of %d for HTTP %d %s",
				 reply.status, expected, http_status, body);
	assert_string_equal(reply.results[0].message, reply.message);
}

static void
assert_type(const char *type, dynamo_status expected)
{
	char		body[256];

	snprintf(body, sizeof(body), "{\"__type\":\"com.example#%s\",\"message\":\"m\"}", type);
	assert_status(body, 400, DYNAMO_RENEW, expected);
}

TEST(success_of_a_write)
{
	/* Local */
	static const char body[] =
		"{\"ConsumedCapacity\":{\"TableName\":\"simple\",\"CapacityUnits\":1.0}}";

	read_reply(DYNAMO_RENEW, 1, 200, "2428227325", body, strlen(body));
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(reply.results[0].status, DYNAMO_OK);
	assert_true(reply.consumed == 1.0);
}

/* Without a checksum, an empty object may come from anybody: nothing was granted or freed. */
TEST(a_success_that_shows_nothing_leaves_the_outcome_open)
{
	static const dynamo_op ops[] = {
		DYNAMO_READ, DYNAMO_ACQUIRE, DYNAMO_RENEW, DYNAMO_HAND_OVER, DYNAMO_RELEASE, DYNAMO_DELETE,
		DYNAMO_BAR, DYNAMO_BAR_NEW, DYNAMO_MARK,
		DYNAMO_FORCE_RELEASE, DYNAMO_IDENTIFY, DYNAMO_QUEUE_READ, DYNAMO_QUEUE_QUERY, DYNAMO_QUEUE_SCAN,
		DYNAMO_QUEUE_TRANSACT, DYNAMO_QUEUE_UPDATE, DYNAMO_QUEUE_DELETE,
		DYNAMO_QUEUE_DESCRIBE_TABLE, DYNAMO_QUEUE_CREATE_TABLE, DYNAMO_QUEUE_UPDATE_TTL,
		DYNAMO_DESCRIBE_TABLE, DYNAMO_CREATE_TABLE, DYNAMO_UPDATE_TTL, DYNAMO_DESCRIBE_TTL,
		DYNAMO_QUEUE_DESCRIBE_TTL
	};
	static const char *const bodies[] = {
		"{}", "{\"ConsumedCapacity\":7}", "{\"ConsumedCapacity\":[]}", "{\"Attributes\":7}",
		"{\"message\":\"ok\"}"
	};

	for (size_t i = 0; i < COUNT_OF(ops); i++)
	{
		for (size_t b = 0; b < COUNT_OF(bodies); b++)
			assert_status(bodies[b], 200, ops[i], DYNAMO_MALFORMED);
	}
	assert_status("{\"Responses\":[{}]}", 200, DYNAMO_RENEW_BATCH, DYNAMO_MALFORMED);

	assert_status("{\"Responses\":[{\"TableName\":\"t\"}]}", 200, DYNAMO_RENEW_BATCH, DYNAMO_OK);
	assert_status("{\"ConsumedCapacity\":[{\"TableName\":\"t\",\"CapacityUnits\":2}]}", 200,
				  DYNAMO_QUEUE_TRANSACT, DYNAMO_OK);
	read_reply(DYNAMO_ACQUIRE, 1, 200, "2745614147", "{}", 2);
	assert_int_equal(reply.status, DYNAMO_OK);
	read_reply(DYNAMO_READ, 1, 200, "2745614147", "{}", 2);
	assert_int_equal(reply.status, DYNAMO_OK);
}

/* The reply has only the attributes that the acquire has changed, or nothing. */
TEST(an_acquire_tells_whose_item_it_replaced)
{
	read_text(DYNAMO_ACQUIRE, 200, "{\"Attributes\":{\"ownerName\":{\"S\":\"two\"},"
			  "\"isReleased\":{\"S\":\"1\"}}}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_true(reply.results[0].item.exists);
	assert_string_equal(reply.results[0].item.owner, "two");

	read_text(DYNAMO_ACQUIRE, 200, "{\"Attributes\":7,\"ConsumedCapacity\":{}}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_false(reply.results[0].item.exists);
}

TEST(a_bar_shows_the_item)
{
	read_text(DYNAMO_BAR, 200, "{\"Attributes\":" ITEM_JSON "}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_true(reply.results[0].item.exists);
	read_text(DYNAMO_BAR, 400, REFUSED ",\"Item\":" ITEM_JSON "}");
	assert_int_equal(reply.status, DYNAMO_CONDITION_FAILED);
	assert_true(reply.results[0].item.exists);
}

#define MARKED(wanted) "{\"Attributes\":{\"key\":{\"S\":\"orders\"},\"wanted\":" wanted "}}"

TEST(a_release_and_a_mark_show_the_mark)
{
	static const dynamo_op ops[] = {DYNAMO_RELEASE, DYNAMO_MARK};

	for (int i = 0; i < 2; i++)
	{
		read_text(ops[i], 200, MARKED("{\"M\":{\"owner\":{\"S\":\"db1/inc\"},"
									  "\"until\":{\"N\":\"1010000\"},\"poll\":{\"N\":\"250\"}}}"));
		assert_int_equal(reply.status, DYNAMO_OK);
		assert_string_equal(reply.results[0].item.wanted_by, "inc");
		assert_int_equal(reply.results[0].item.wanted_until_ms, 1010000);
		assert_int_equal(reply.results[0].item.wanted_poll_ms, 250);
	}
}

TEST(what_is_no_mark_is_ignored)
{
	static const char *const replies[] = {
		MARKED("{\"S\":\"me\"}"), MARKED("{\"M\":{}}"), MARKED("7"), MARKED("{\"M\":7}"),
		MARKED("{\"M\":{\"owner\":{\"N\":\"1\"},\"until\":{\"S\":\"1010000\"},\"poll\":{\"N\":\"x\"}}}"),
		MARKED("{\"M\":{\"until\":{\"N\":\"-5\"},\"poll\":{\"N\":\"1e99\"}}}"),
		"{\"Attributes\":{},\"ConsumedCapacity\":{}}", "{\"ConsumedCapacity\":{}}",
	};

	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++)
	{
		read_text(DYNAMO_RELEASE, 200, replies[i]);
		assert_int_equal(reply.status, DYNAMO_OK);
		assert_int_equal(reply.results[0].item.wanted_until_ms, 0);
		assert_int_equal(reply.results[0].item.wanted_poll_ms, 0);
		assert_string_equal(reply.results[0].item.wanted_by, "");
	}
}

TEST(a_minimum_that_is_no_number_is_told)
{
	read_text(DYNAMO_READ, 200, "{\"Item\":{\"keptUntil\":{\"N\":\"1060999\"}}}");
	assert_int_equal(reply.results[0].item.kept_until_ms, 1060999);
	assert_false(reply.results[0].item.bad_kept);
	read_text(DYNAMO_READ, 200, "{\"Item\":{\"keptUntil\":{\"S\":\"soon\"}}}");
	assert_true(reply.results[0].item.bad_kept);
	read_text(DYNAMO_READ, 200, "{\"Item\":{}}");
	assert_false(reply.results[0].item.bad_kept);
}

TEST(read_of_an_item)
{
	static const char body[] = "{\"Item\":" ITEM_JSON ",\"ConsumedCapacity\":"
		"{\"TableName\":\"simple\",\"CapacityUnits\":1.0}}";
	const dynamo_item *item;

	read_reply(DYNAMO_READ, 1, 200, "2007693987", body, strlen(body));
	assert_int_equal(reply.status, DYNAMO_OK);
	item = &reply.results[0].item;
	assert_true(item->exists);
	assert_false(item->released);
	assert_true(item->has_token);
	assert_false(item->bad_token);
	assert_int_equal(item->token, 100);
	assert_string_equal(item->owner, "o\"1/inc");
	assert_string_equal(item->version, "v1");
	assert_int_equal(item->lease_ms, 20000);
	assert_int_equal(item->released_at, 0);
	assert_string_equal(item->holder.database, "d\"b");
	assert_string_equal(item->holder.user, "us\ter");
	assert_string_equal(item->holder.application, "app\xf0\x9f\x98\x80");
	assert_string_equal(item->holder.host, "host");
	assert_int_equal(item->holder.pid, 77);
	assert_int_equal(item->holder.since_ms, INT64_C(1795254699472));
	assert_string_equal(item->holder.system, "");
	assert_int_equal(item->data_len, 5);
	assert_memory_equal(item->data, "\0\1\2zz", 5);
	dynamo_reply_free(&reply);
	dynamo_reply_free(&reply);
}

TEST(read_of_nothing)
{
	read_text(DYNAMO_READ, 200,
			  "{\"ConsumedCapacity\":{\"TableName\":\"t\",\"CapacityUnits\":0.5}}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_false(reply.results[0].item.exists);
	assert_true(reply.consumed == 0.5);
}

TEST(refusal_brings_the_item)
{
	read_text(DYNAMO_ACQUIRE, 400, REFUSED ",\"Item\":" ITEM_JSON "}");
	assert_int_equal(reply.status, DYNAMO_CONDITION_FAILED);
	assert_int_equal(reply.results[0].status, DYNAMO_CONDITION_FAILED);
	assert_string_equal(reply.message,
						"ConditionalCheckFailedException: The conditional request failed");
	assert_string_equal(reply.results[0].item.version, "v1");

	read_text(DYNAMO_RELEASE, 400, REFUSED ",\"Item\":" RELEASED_JSON "}");
	assert_int_equal(reply.status, DYNAMO_CONDITION_FAILED);
	assert_true(reply.results[0].item.released);
	assert_int_equal(reply.results[0].item.released_at, 1795254699);
	assert_int_equal(reply.results[0].item.token, 301);
}

TEST(refusal_without_an_item_means_that_there_is_none)
{
	read_text(DYNAMO_RENEW, 400, REFUSED "}");
	assert_int_equal(reply.status, DYNAMO_CONDITION_FAILED);
	assert_false(reply.results[0].item.exists);
}

TEST(statements_of_a_batch_fail_alone)
{
	/* the first four in the form of Local, which never throttles */
	static const char body[] =
		"{\"Responses\":[{\"Error\":{\"Message\":\"The conditional request failed\","
		"\"Item\":" RELEASED_JSON ",\"Code\":\"ConditionalCheckFailed\"},"
		"\"TableName\":\"simple\"},{\"TableName\":\"simple\"},"
		"{\"Error\":{\"Message\":\"The conditional request failed\","
		"\"Code\":\"ConditionalCheckFailed\"},\"TableName\":\"simple\"},"
		"{\"Error\":{\"Message\":\"Cannot do operations on a non-existent table\","
		"\"Code\":\"ResourceNotFound\"}},"
		"{\"Error\":{\"Message\":\"Throughput exceeds\",\"Code\":\"ThrottlingError\"}},"
		"{\"Error\":{\"Code\":\"InternalServerError\"}},"
		"{\"Error\":{\"Code\":\"TransactionConflict\"}},"
		"{\"Error\":{\"Code\":\"DuplicateItem\",\"Message\":\"odd\"}},"
		"{\"Error\":{\"Code\":\"AccessDenied\"}}],"
		"\"ConsumedCapacity\":[{\"TableName\":\"a\",\"CapacityUnits\":2.0},"
		"{\"TableName\":\"b\",\"CapacityUnits\":0.5}]}";
	static const dynamo_status expected[] = {
		DYNAMO_CONDITION_FAILED, DYNAMO_OK, DYNAMO_CONDITION_FAILED,
		DYNAMO_TABLE_MISSING, DYNAMO_THROTTLED, DYNAMO_UNKNOWN,
		DYNAMO_CONFLICT, DYNAMO_MALFORMED, DYNAMO_ACCESS_DENIED
	};

	read_reply(DYNAMO_RENEW_BATCH, 9, 200, NULL, body, strlen(body));
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(reply.count, 9);
	for (int i = 0; i < 9; i++)
		assert_int_equal(reply.results[i].status, expected[i]);
	assert_true(reply.results[0].item.released);
	assert_string_equal(reply.results[0].item.version, "v6");
	assert_false(reply.results[2].item.exists);
	assert_string_equal(reply.results[4].message, "ThrottlingError: Throughput exceeds");
	assert_string_equal(reply.results[6].message, "TransactionConflict");
	assert_string_equal(reply.results[7].message, "DuplicateItem: odd");
	assert_true(reply.consumed == 2.5);
}

TEST(batch_that_fails_whole_fails_each_statement)
{
	/* Local */
	static const char body[] =
		"{\"__type\":\"com.amazon.coral.validate#ValidationException\","
		"\"Message\":\"Provided list of item keys contains duplicates\"}";

	read_reply(DYNAMO_RENEW_BATCH, 25, 400, NULL, body, strlen(body));
	assert_int_equal(reply.status, DYNAMO_VALIDATION);
	assert_int_equal(reply.count, 25);
	for (int i = 0; i < 25; i++)
	{
		assert_int_equal(reply.results[i].status, DYNAMO_VALIDATION);
		assert_string_equal(reply.results[i].message,
							"ValidationException: Provided list of item keys contains duplicates");
	}
}

TEST(batch_with_other_than_one_answer_for_each_is_malformed)
{
	static const char *const bodies[] = {
		"{}", "{\"Responses\":{}}", "{\"Responses\":[{}]}", "{\"Responses\":[{},{},{}]}",
		"{\"Responses\":[{},3]}", "{\"Responses\":[{},{\"Error\":\"x\"}]}",
#define ANSWERED "{\"ConsumedCapacity\":{},\"Responses\":"
		ANSWERED "{\"a\":{},\"b\":{}}}", ANSWERED "[{}]}", ANSWERED "[{},{},{}]}",
		ANSWERED "[{},3]}", ANSWERED "[{},{\"Error\":\"x\"}]}",
		"{\"Responses\":[{\"Error\":{\"Code\":\"ConditionalCheckFailed\",\"Item\":"
		ITEM_JSON "}},null]}",
	};

	for (size_t i = 0; i < COUNT_OF(bodies); i++)
	{
		read_reply(DYNAMO_RENEW_BATCH, 2, 200, NULL, bodies[i], strlen(bodies[i]));
		assert_int_equal(reply.status, DYNAMO_MALFORMED);
		assert_int_equal(reply.results[0].status, DYNAMO_MALFORMED);
		assert_int_equal(reply.results[1].status, DYNAMO_MALFORMED);
		assert_false(reply.results[0].item.exists);
		assert_null(reply.results[0].item.data);
	}
}

TEST(error_types_are_classified)
{
	assert_type("ProvisionedThroughputExceededException", DYNAMO_THROTTLED);
	assert_type("ThrottlingException", DYNAMO_THROTTLED);
	assert_type("Throttling", DYNAMO_THROTTLED);
	assert_type("ThrottlingError", DYNAMO_THROTTLED);
	assert_type("RequestLimitExceeded", DYNAMO_THROTTLED);
	assert_type("TransactionConflictException", DYNAMO_CONFLICT);
	assert_type("ReplicatedWriteConflictException", DYNAMO_CONFLICT);
	assert_type("ExpiredTokenException", DYNAMO_CREDENTIALS);
	assert_type("UnrecognizedClientException", DYNAMO_CREDENTIALS);
	assert_type("InvalidSignatureException", DYNAMO_CREDENTIALS);
	assert_type("IncompleteSignature", DYNAMO_CREDENTIALS);
	assert_type("MissingAuthenticationTokenException", DYNAMO_CREDENTIALS);
	assert_type("InvalidClientTokenId", DYNAMO_CREDENTIALS);
	assert_type("RequestTimeTooSkewed", DYNAMO_CLOCK_SKEW);
	assert_type("RequestExpired", DYNAMO_CLOCK_SKEW);
	assert_type("AccessDeniedException", DYNAMO_ACCESS_DENIED);
	assert_type("ResourceNotFoundException", DYNAMO_TABLE_MISSING);
	assert_type("ResourceInUseException", DYNAMO_TABLE_IN_USE);
	assert_type("ValidationException", DYNAMO_VALIDATION);
	assert_type("ValidationError", DYNAMO_VALIDATION);
	assert_type("SerializationException", DYNAMO_VALIDATION);
	assert_type("InternalServerError", DYNAMO_UNKNOWN);
	assert_type("UnknownOperationException", DYNAMO_VALIDATION);
	assert_type("Exception", DYNAMO_MALFORMED);
	assert_type("Error", DYNAMO_MALFORMED);
	assert_type("", DYNAMO_MALFORMED);
}

TEST(other_keys_are_known_in_every_wording)
{
	static const char *const about_keys[] = {
		"The provided key element does not match the schema",
		"The number of conditions on the keys is invalid",
		"Query condition missed key schema element: id",
		"One or more parameter values were invalid: Missing the key id in the item",
		"One or more parameter values were invalid: Type mismatch for key key expected: N actual: S",
		"One of the required keys was not given a value",
		"Cannot update attribute key. This attribute is part of the key",
		"Where clause does not contain a mandatory equality on all key attributes",
		"Key column id not found",
		"The item lacks the key id",
		"The table does not have the specified index: ready",
		"the table's keys have other names, or are not of type S",
	};
	static const char *const others[] = {
		"Item size to update has exceeded the maximum allowed size",
		"One or more parameter values were invalid: Size of hashkey has exceeded the maximum size",
		"Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
		"The AttributeValue for a key attribute cannot contain an empty string value. Key: key",
		"ExpressionAttributeValues contains invalid key: Syntax error; key: \"x\"",
		"Provided list of item keys contains duplicates",
		"Attribute name is a reserved keyword; monkey",
		"k",
		"",
	};

	for (size_t i = 0; i < sizeof(about_keys) / sizeof(about_keys[0]); i++)
		assert_true(dynamo_is_about_keys(about_keys[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(dynamo_is_about_keys(others[i]));
}

TEST(operation_that_the_server_does_not_have)
{
	assert_status("{\"__type\":\"UnknownOperationException\"}", 400, DYNAMO_UPDATE_TTL, DYNAMO_VALIDATION);
	assert_string_equal(reply.message, DYNAMO_NO_OPERATION);
	assert_status("{\"__type\":\"x#UnknownOperationException\",\"message\":\"no\"}", 400,
				  DYNAMO_UPDATE_TTL, DYNAMO_VALIDATION);
	assert_string_equal(reply.message, DYNAMO_NO_OPERATION ": no");
}

TEST(type_counts_without_a_namespace_too)
{
	assert_status("{\"__type\":\"ThrottlingException\"}", 400, DYNAMO_READ, DYNAMO_THROTTLED);
}

static void
assert_type_read(const char *header, const char *body, dynamo_status expected, const char *message)
{
	const dynamo_headers headers = {"", header};

	forget_reply();
	dynamo_read(&reply, NULL, DYNAMO_RENEW, 1, 400, &headers, body, strlen(body));
	assert_int_equal(reply.results[0].status, expected);
	assert_string_equal(reply.message, message);
}

TEST(type_counts_in_a_header_too)
{
	static const char wait[] = "{\"message\":\"wait\"}";
	static const char *const forms[] = {
		"ThrottlingException", "com.example#ThrottlingException",
		"ThrottlingException:http://internal.example/#a",
		"com.example#ThrottlingException:http://internal.example/"
	};

	for (size_t i = 0; i < COUNT_OF(forms); i++)
		assert_type_read(forms[i], wait, DYNAMO_THROTTLED, "ThrottlingException: wait");
	assert_type_read(forms[0], "", DYNAMO_THROTTLED, "ThrottlingException");
	assert_type_read(forms[0], "<html>", DYNAMO_THROTTLED, "ThrottlingException");
	assert_type_read(forms[0], "{\"__type\":\"ExpiredTokenException:http://x\"}",
					 DYNAMO_CREDENTIALS, "ExpiredTokenException");
	assert_type_read("", wait, DYNAMO_WRONG_SERVICE, "unexpected reply, HTTP 400: {\"message\":\"wait\"}");
}

TEST(signature_refused_for_its_date_is_clock_skew)
{
	assert_status("{\"__type\":\"com.amazon.coral.service#InvalidSignatureException\","
				  "\"message\":\"Signature expired: 20261121T080000Z is now earlier than"
				  " 20261121T084500Z (20261121T090000Z - 15 min.)\"}",
				  400, DYNAMO_READ, DYNAMO_CLOCK_SKEW);
	assert_status("{\"__type\":\"InvalidSignatureException\","
				  "\"message\":\"Signature not yet current: 20261121T110000Z is still later than"
				  " 20261121T091500Z (20261121T090000Z + 15 min.)\"}",
				  400, DYNAMO_READ, DYNAMO_CLOCK_SKEW);
}

TEST(server_errors_leave_the_outcome_open_unless_throttled)
{
	static const int statuses[] = {500, 502, 503, 504};

	for (int i = 0; i < 4; i++)
	{
		assert_status("", statuses[i], DYNAMO_RENEW, DYNAMO_UNKNOWN);
		assert_status("<html>", statuses[i], DYNAMO_RENEW, DYNAMO_UNKNOWN);
		assert_status("{\"__type\":\"a#InternalFailure\",\"Message\":\"x\"}",
					  statuses[i], DYNAMO_RENEW, DYNAMO_UNKNOWN);
		assert_status(REFUSED "}", statuses[i], DYNAMO_RENEW, DYNAMO_UNKNOWN);
		assert_status("{\"__type\":\"a#ThrottlingException\"}",
					  statuses[i], DYNAMO_RENEW, DYNAMO_THROTTLED);
	}
}

TEST(other_http_statuses)
{
	assert_status("<html>", 413, DYNAMO_ACQUIRE, DYNAMO_VALIDATION);
	assert_status("", 408, DYNAMO_ACQUIRE, DYNAMO_MALFORMED);
	assert_status("<html>", 429, DYNAMO_ACQUIRE, DYNAMO_THROTTLED);
	assert_string_equal(reply.message, "HTTP status 429");
	assert_status("{}", 204, DYNAMO_ACQUIRE, DYNAMO_MALFORMED);
	assert_status(REFUSED "}", 302, DYNAMO_ACQUIRE, DYNAMO_MALFORMED);
}

/* Replies of a web server to a POST, but never of DynamoDB. */
TEST(tells_other_services)
{
	static const int statuses[] = {300, 301, 302, 400, 403, 404, 405, 499, 501, 505};
	static const char *const bodies[] = {"", "<html>", "{}", "{\"message\":\"Not Found\"}"};

	for (size_t i = 0; i < COUNT_OF(statuses); i++)
	{
		for (size_t b = 0; b < COUNT_OF(bodies); b++)
			assert_status(bodies[b], statuses[i], DYNAMO_ACQUIRE, DYNAMO_WRONG_SERVICE);
	}
	assert_status(" \n<html>", 200, DYNAMO_ACQUIRE, DYNAMO_WRONG_SERVICE);
	assert_status("null", 200, DYNAMO_DESCRIBE_TABLE, DYNAMO_WRONG_SERVICE);

	/* A reply with a checksum is DynamoDB's, whatever else it has. */
	read_reply(DYNAMO_RENEW, 1, 400, "2745614147", "{}", 2);
	assert_int_equal(reply.status, DYNAMO_MALFORMED);
}

/* These calls have no condition, so the reply cannot be right. */
TEST(refused_condition_counts_for_single_writes_only)
{
	assert_status(REFUSED "}", 400, DYNAMO_READ, DYNAMO_MALFORMED);
	assert_status(REFUSED "}", 400, DYNAMO_RENEW_BATCH, DYNAMO_MALFORMED);
}

TEST(malformed_reply_shows_how_it_begins)
{
	char		body[401] = "";

	read_text(DYNAMO_READ, 403, "<html>\n\xc3\xa9\x7f denied ~");
	assert_string_equal(reply.message,
						"unexpected reply, HTTP 403: <html>???? denied ~");

	for (int len = 201; len <= 400; len += 199)
	{
		memset(body, 'x', (size_t) len);
		read_text(DYNAMO_READ, 200, body);
		assert_int_equal(strlen(reply.message), strlen("unexpected reply, HTTP 200: ") + 200);
	}
}

TEST(messages_show_no_signed_headers)
{
	read_text(DYNAMO_READ, 400,
			  "{\"__type\":\"InvalidSignatureException\",\"message\":\"The signature does"
			  " not match.\\n\\nThe Canonical String should have been\\n'POST\\n"
			  "x-amz-security-token:SECRET'\"}");
	assert_string_equal(reply.message, "InvalidSignatureException: The signature does not match.");
	read_text(DYNAMO_READ, 400,
			  "{\"__type\":\"IncompleteSignatureException\",\"message\":\"'Signature' is"
			  " missing. Authorization=AWS4-HMAC-SHA256 Credential=SECRET\"}");
	assert_string_equal(reply.message, "IncompleteSignatureException: 'Signature' is missing.");
}

static int
occurrences(const char *text, char byte)
{
	int			count = 0;

	for (; *text != '\0'; text++)
		count += *text == byte;
	return count;
}

TEST(a_message_has_the_type_and_the_words_or_what_there_is_of_them)
{
	static const char untyped[] = "{\"message\":\"Rate exceeded\"}";
	char		type[2 * DYNAMO_MESSAGE_SIZE];
	char		body[sizeof(type) + 100];

	read_text(DYNAMO_RENEW, 400, "{\"__type\":\"x#ThrottlingException\",\"message\":\"wait\"}");
	assert_string_equal(reply.message, "ThrottlingException: wait");
	read_text(DYNAMO_RENEW, 400, "{\"__type\":\"x#ThrottlingException\"}");
	assert_string_equal(reply.message, "ThrottlingException");
	read_text(DYNAMO_RENEW, 400, "{\"__type\":\"outer#inner#ThrottlingException\"}");
	assert_string_equal(reply.message, "ThrottlingException");
	read_text(DYNAMO_RENEW, 429, untyped);
	assert_string_equal(reply.message, "Rate exceeded");
	read_text(DYNAMO_RENEW, 400, "{\"__type\":\"x#ThrottlingException\",\"message\":\"\xc3\xa9\"}");
	assert_string_equal(reply.message, "ThrottlingException: \xc3\xa9");
	read_text(DYNAMO_RENEW, 400, "{\"__type\":\"x#ThrottlingException\",\"message\":\"\"}");
	assert_string_equal(reply.message, "ThrottlingException");
	read_text(DYNAMO_RENEW, 429, "{\"message\":\"\xc3\xa9\"}");
	assert_string_equal(reply.message, "\xc3\xa9");

	memset(type, 'T', sizeof(type) - 1);
	type[sizeof(type) - 1] = '\0';
	snprintf(body, sizeof(body), "{\"__type\":\"%s\",\"message\":\"the end\"}", type);
	read_text(DYNAMO_RENEW, 500, body);
	assert_true(strspn(reply.message, "T") < DYNAMO_MESSAGE_SIZE / 2);
	assert_non_null(strstr(reply.message, "T: the end"));
	snprintf(body, sizeof(body), "{\"__type\":\"%.300s\",\"message\":\"%.700s\"}", type, type);
	read_text(DYNAMO_RENEW, 500, body);
	assert_true(strlen(reply.message) < DYNAMO_MESSAGE_SIZE);
	assert_true(strlen(reply.message) > DYNAMO_MESSAGE_SIZE - 8);
	assert_non_null(strstr(reply.message, "T ... T"));

	/* The cut is never within a character. */
	for (int more = 0; more < 3; more++)
	{
		snprintf(body, sizeof(body), "{\"__type\":\"X\",\"message\":\"%.*s", more, "aaa");
		for (int i = 0; i < 300; i++)
			strcat(body, "\xe2\x82\xac");
		strcat(body, "\"}");
		read_text(DYNAMO_RENEW, 500, body);
		assert_int_equal(occurrences(reply.message, '\xe2'), occurrences(reply.message, '\x82'));
		assert_int_equal(occurrences(reply.message, '\xe2'), occurrences(reply.message, '\xac'));
	}
}

TEST(wrong_checksum_leaves_the_outcome_open)
{
	static const char *const wrong[] = {"2745614148", "x", "-1", "2745614147 x"};

	for (size_t i = 0; i < COUNT_OF(wrong); i++)
	{
		read_reply(DYNAMO_RENEW, 1, 200, wrong[i], "{}", 2);
		assert_int_equal(reply.status, DYNAMO_UNKNOWN);
		assert_int_equal(reply.results[0].status, DYNAMO_UNKNOWN);
	}
	read_reply(DYNAMO_RENEW, 1, 400, "1", REFUSED "}", strlen(REFUSED "}"));
	assert_int_equal(reply.status, DYNAMO_UNKNOWN);
	read_reply(DYNAMO_RENEW, 1, 200, "2745614147", "{}", 2);
	assert_int_equal(reply.status, DYNAMO_OK);
}

/* They show that DynamoDB has answered. */
#define GOOD		"{\"ConsumedCapacity\":{}}"
#define WITH(string)	"{\"ConsumedCapacity\":{},\"a\":\"" string "\"}"

TEST(what_is_not_one_json_object_is_malformed)
{
	static const char *const bodies[] = {
		"", " ", "{", "{\"a\":1,", GOOD "{}", GOOD " x", "{\"a\":\"\\", "{]",
		WITH("\xff"), WITH("\xc0\xaf"), WITH("\xed\xa0\x80"), WITH("\xf4\x90\x80\x80"),
		WITH("\xe2\x80"), WITH("\\ud800"), WITH("\x80"), WITH("\xc1\xbf"),
		WITH("\xe0\x9f\xbf"), WITH("\xf0\x8f\xbf\xbf"), WITH("\xf5\x80\x80\x80"),
	};

	for (size_t i = 0; i < COUNT_OF(bodies); i++)
		assert_status(bodies[i], 200, DYNAMO_RENEW, DYNAMO_MALFORMED);
	read_reply(DYNAMO_RENEW, 1, 200, "223132457", "[]", 2);
	assert_int_equal(reply.status, DYNAMO_MALFORMED);
	assert_status(" " GOOD " \r\n", 200, DYNAMO_RENEW, DYNAMO_OK);
	assert_status(WITH("\xe2\x82\xac"), 200, DYNAMO_RENEW, DYNAMO_OK);
	assert_status(WITH("\xf4\x8f\xbf\xbf"), 200, DYNAMO_RENEW, DYNAMO_OK);
	assert_status(WITH("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80"), 200,
				  DYNAMO_RENEW, DYNAMO_OK);
}

TEST(bytes_after_a_nul_count_too)
{
	read_reply(DYNAMO_RENEW, 1, 200, NULL, GOOD "\0", sizeof(GOOD));
	assert_int_equal(reply.status, DYNAMO_MALFORMED);
	read_reply(DYNAMO_RENEW, 1, 200, NULL, NULL, 0);
	assert_int_equal(reply.status, DYNAMO_MALFORMED);
}

TEST(success_must_bring_what_was_asked_for)
{
	assert_status("{\"__type\":\"x\"}", 200, DYNAMO_RENEW, DYNAMO_MALFORMED);
	assert_status("{\"Item\":3}", 200, DYNAMO_READ, DYNAMO_MALFORMED);
	assert_status("{\"Item\":3,\"ConsumedCapacity\":{}}", 200, DYNAMO_READ, DYNAMO_MALFORMED);
	assert_string_equal(reply.message, "the lock item is not a JSON object");
	assert_status(REFUSED ",\"Item\":3}", 400, DYNAMO_ACQUIRE, DYNAMO_MALFORMED);
	assert_string_equal(reply.message, "the lock item is not a JSON object");
	assert_status("{}", 200, DYNAMO_DESCRIBE_TABLE, DYNAMO_MALFORMED);
	assert_status("{\"Table\":{}}", 200, DYNAMO_DESCRIBE_TABLE, DYNAMO_MALFORMED);
	assert_status("{\"Table\":{\"TableStatus\":\"ACTIVE\",\"KeySchema\":[{}]}}",
				  200, DYNAMO_DESCRIBE_TABLE, DYNAMO_MALFORMED);
	assert_status("{\"Table\":{\"TableStatus\":\"ACTIVE\","
				  "\"KeySchema\":[{\"KeyType\":\"HASH\"}]}}",
				  200, DYNAMO_DESCRIBE_TABLE, DYNAMO_MALFORMED);
	assert_status("{\"Table\":{\"TableStatus\":\"ACTIVE\","
				  "\"KeySchema\":[{\"AttributeName\":\"k\"}]}}",
				  200, DYNAMO_DESCRIBE_TABLE, DYNAMO_MALFORMED);
	assert_status("{\"Table\":{\"TableStatus\":\"ACTIVE\"}}", 200, DYNAMO_DESCRIBE_TABLE,
				  DYNAMO_MALFORMED);
	assert_status("{\"Table\":{\"KeySchema\":[{\"AttributeName\":\"k\",\"KeyType\":\"HASH\"}]}}",
				  200, DYNAMO_DESCRIBE_TABLE, DYNAMO_MALFORMED);
	assert_status("{}", 200, DYNAMO_CREATE_TABLE, DYNAMO_MALFORMED);
	assert_status("{}", 200, DYNAMO_UPDATE_TTL, DYNAMO_MALFORMED);
	assert_status("{\"TimeToLiveSpecification\":{\"Enabled\":true,\"AttributeName\":\"ttl\"}}",
				  200, DYNAMO_UPDATE_TTL, DYNAMO_OK);
}

/* Begins a success that shows that DynamoDB has answered. */
#define SHOWN "{\"ConsumedCapacity\":{}"

TEST(oversized_and_deep_replies_are_refused)
{
	size_t		len = DYNAMO_REPLY_MAX + 1;
	char	   *body = malloc(len);

	memset(body, ' ', len);
	memcpy(body, SHOWN "}", strlen(SHOWN "}"));
	read_reply(DYNAMO_RENEW, 1, 200, NULL, body, len);
	assert_int_equal(reply.status, DYNAMO_MALFORMED);
	assert_int_equal(reply.results[0].status, DYNAMO_MALFORMED);
	read_reply(DYNAMO_RENEW, 1, 200, NULL, body, len - 1);
	assert_int_equal(reply.status, DYNAMO_OK);

	/* "a\\":[[[...]]]}, once as deep as allowed, once deeper */
	for (size_t depth = DYNAMO_DEPTH_MAX; depth <= DYNAMO_DEPTH_MAX + 1; depth++)
	{
		size_t		start = strlen(SHOWN ",\"a\\\\\":");

		memcpy(body, SHOWN ",\"a\\\\\":", start);
		memset(body + start, '[', depth - 1);
		memset(body + start + depth - 1, ']', depth - 1);
		body[start + 2 * (depth - 1)] = '}';
		read_reply(DYNAMO_RENEW, 1, 200, NULL, body, start + 1 + 2 * (depth - 1));
		assert_int_equal(reply.status,
						 depth > DYNAMO_DEPTH_MAX ? DYNAMO_MALFORMED : DYNAMO_OK);
	}
	free(body);
	assert_status(SHOWN ",\"a\":\"x\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
				  "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}",
				  200, DYNAMO_RENEW, DYNAMO_OK);
}

TEST(java_and_go_clients_items_are_understood)
{
	const dynamo_item *item;

	item = read_item("\"key\":{\"S\":\"k\"},\"ownerName\":{\"S\":\"java\"},"
					 "\"leaseDuration\":{\"S\":\"20000\"},"
					 "\"recordVersionNumber\":{\"S\":\"6b0e0c0e-1111-4222-8333-444444444444\"},"
					 "\"foreign\":{\"L\":[{\"NULL\":true}]}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_false(item->has_token);
	assert_false(item->bad_token);
	assert_null(item->data);
	assert_int_equal(item->lease_ms, 20000);

	item = read_item("\"ownerName\":{\"S\":\"go\"},\"leaseDuration\":{\"S\":\"1m30s\"},"
					 "\"recordVersionNumber\":{\"S\":\"x\"},\"data\":{\"B\":\"\"}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(item->lease_ms, 90000);
	assert_non_null(item->data);
	assert_int_equal(item->data_len, 0);
}

/* A living holder must not be taken for dead because its client writes seconds. */
TEST(a_short_lease_of_another_client_may_be_in_seconds)
{
	static const struct
	{
		const char *lease;
		const char *more;
		int64_t		lease_ms;
		bool		in_seconds;
	}			cases[] = {
		{"20", "", 20000, true},
		{"1", "", 1000, true},
		{"020", "", 20000, true},
		{"999", "", 999000, true},
		{"0", "", 0, false},
		{"1000", "", 1000, false},
		{"20ms", "", 20, false},
		{"500us", "", 1, false},
		{"20", ",\"holder\":{\"M\":{\"owner\":{\"S\":\"o\"}}}", 20, false},
		{"20", ",\"holder\":{\"M\":{\"owner\":{\"S\":\"p\"}}}", 20000, true},
	};
	char		attributes[512];

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		const dynamo_item *item;

		snprintf(attributes, sizeof(attributes), "\"recordVersionNumber\":{\"S\":\"v\"},"
				 "\"ownerName\":{\"S\":\"o\"},\"leaseDuration\":{\"S\":\"%s\"}%s",
				 cases[i].lease, cases[i].more);
		item = read_item(attributes);
		assert_null(item->wrong);
		assert_int_equal(item->lease_ms, cases[i].lease_ms);
		assert_int_equal(item->lease_in_seconds, cases[i].in_seconds);
	}
}

/* Read or refused, the outcome is definite; item.wrong says what is wrong. */
static void
assert_wrong_item(const char *attributes, const char *wrong)
{
	char		body[4096];

	read_item(attributes);
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_true(reply.results[0].item.exists);
	assert_string_equal(reply.results[0].item.wrong, wrong);

	snprintf(body, sizeof(body), REFUSED ",\"Item\":{%s}}", attributes);
	read_text(DYNAMO_ACQUIRE, 400, body);
	assert_int_equal(reply.status, DYNAMO_CONDITION_FAILED);
	assert_string_equal(reply.results[0].item.wrong, wrong);

	/* but a released item is free, whatever else it has */
	snprintf(body, sizeof(body), "%s%s\"isReleased\":{\"S\":\"\"}",
			 attributes, attributes[0] != '\0' ? "," : "");
	assert_true(read_item(body)->released);
	assert_null(reply.results[0].item.wrong);
}

TEST(held_item_without_readable_lease_or_version_is_wrong)
{
	char		attributes[512];
	char		version[DYNAMO_VERSION_SIZE + 1];

	assert_wrong_item("", "the lock item has no recordVersionNumber");
	assert_wrong_item("\"recordVersionNumber\":{\"N\":\"1\"}",
						  "the lock item's recordVersionNumber is empty or not of type S");
	assert_wrong_item("\"recordVersionNumber\":{\"S\":\"\"}",
						  "the lock item's recordVersionNumber is empty or not of type S");
	assert_wrong_item("\"recordVersionNumber\":{\"S\":\"v\"}",
						  "the lock item has no leaseDuration");
	assert_wrong_item("\"recordVersionNumber\":{\"S\":\"v\"},\"leaseDuration\":{\"N\":\"1\"}",
						  "the lock item's leaseDuration is not of type S");
	assert_wrong_item("\"recordVersionNumber\":{\"S\":\"v\"},"
						  "\"leaseDuration\":{\"S\":\"soon\"}",
						  "the lock item's leaseDuration is unreadable");

	memset(version, 'v', sizeof(version) - 1);
	version[DYNAMO_VERSION_SIZE] = '\0';
	snprintf(attributes, sizeof(attributes), "\"recordVersionNumber\":{\"S\":\"%s\"},"
			 "\"leaseDuration\":{\"S\":\"1s\"}", version);
	assert_wrong_item(attributes, "the lock item's recordVersionNumber is too long");
}

/* ... and any other is none of our business, up to its length. */
TEST(a_version_may_be_any_text_that_is_not_too_long)
{
	char		attributes[512];
	char		version[DYNAMO_VERSION_SIZE];
	const dynamo_item *item;

	memset(version, 'v', sizeof(version) - 1);
	memcpy(version, "\xc3\xa9", 2);
	version[DYNAMO_VERSION_SIZE - 1] = '\0';
	snprintf(attributes, sizeof(attributes), "\"recordVersionNumber\":{\"S\":\"%s\"},"
			 "\"leaseDuration\":{\"S\":\"1s\"}", version);
	item = read_item(attributes);
	assert_null(item->wrong);
	assert_string_equal(item->version, version);
}

TEST(data_must_be_strict_base64)
{
	static const char *const wrong[] = {
		"A===", "====", "=AAA", "AA=A", "AA==AAAA", "AAAA====", "AA*A", "A", "AA", "AAA",
		" AAAA", "   AAAA", "AAAA\\n", "AA\\nAA", "AAA\\n", "AAA\\u0080", "AA-_"
	};
	char		attributes[128];
	const dynamo_item *item = read_item("\"data\":{\"B\":\"+/8x/w==\"}");

	assert_int_equal(item->data_len, 4);
	assert_memory_equal(item->data, "\xfb\xff\x31\xff", 4);
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
	{
		snprintf(attributes, sizeof(attributes), "\"recordVersionNumber\":{\"S\":\"v\"},"
				 "\"leaseDuration\":{\"S\":\"1s\"},\"data\":{\"B\":\"%s\"}", wrong[i]);
		assert_wrong_item(attributes, "the lock item's data is not base64");
	}
}

static void
assert_token(const char *attribute, int64_t expected)
{
	char		attributes[256];
	const dynamo_item *item;

	snprintf(attributes, sizeof(attributes), "\"recordVersionNumber\":{\"S\":\"v\"},"
			 "\"leaseDuration\":{\"S\":\"1s\"},\"fencingToken\":%s", attribute);
	item = read_item(attributes);
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_true(item->has_token);
	assert_int_equal(item->bad_token, expected == 0);
	assert_int_equal(item->token, expected);
}

TEST(tokens_are_positive_64_bit_integers)
{
	assert_token("{\"N\":\"1\"}", 1);
	assert_token("{\"N\":\"1500\"}", 1500);
	assert_token("{\"N\":\"9223372036854775807\"}", INT64_MAX);
	assert_token("{\"N\":\"9223372036854775808\"}", 0);
	assert_token("{\"N\":\"99999999999999999999999999999999999999\"}", 0);
	assert_token("{\"N\":\"0\"}", 0);
	assert_token("{\"N\":\"-1\"}", 0);
	assert_token("{\"N\":\"1.1\"}", 0);
	assert_token("{\"N\":\"\"}", 0);
	assert_token("{\"N\":5}", 0);
	assert_token("{\"S\":\"5\"}", 0);
	assert_token("null", 0);
}

/* Each number of the item's top level: what is none counts as none, and is no other number. */
TEST(numbers_are_what_they_say_or_nothing)
{
	static const struct
	{
		const char *digits;
		int64_t		number;
	}			cases[] = {
		{"0", 0}, {"1", 1}, {"-1", 0}, {"-9223372036854775808", 0},
		{"1000000000000000000", INT64_C(1000000000000000000)},
		{"9223372036854775806", INT64_MAX - 1}, {"9223372036854775807", INT64_MAX},
		{"9223372036854775808", 0}, {"18446744073709551617", 0}, {"1.5", 0}, {"1.0", 0},
		{"1E3", 0}, {"1e18", 0}, {"+1", 0}, {" 1", 0}, {"1 ", 0}, {"0x10", 0}, {"NaN", 0},
	};
	char		attributes[1024];

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		const char *digits = cases[i].digits;
		int64_t		number = cases[i].number;
		const dynamo_item *item;

		snprintf(attributes, sizeof(attributes), "\"recordVersionNumber\":{\"S\":\"v\"},"
				 "\"ownerName\":{\"S\":\"o\"},\"leaseDuration\":{\"S\":\"1s\"},"
				 "\"fencingToken\":{\"N\":\"%s\"},\"keptUntil\":{\"N\":\"%s\"},\"holder\":{\"M\":{"
				 "\"owner\":{\"S\":\"o\"},\"pid\":{\"N\":\"%s\"},\"since\":{\"N\":\"%s\"}}}",
				 digits, digits, digits, digits);
		item = read_item(attributes);
		assert_int_equal(item->token, number);
		assert_int_equal(item->bad_token, number == 0);
		assert_int_equal(item->kept_until_ms, number);
		assert_int_equal(item->bad_kept, number == 0);
		assert_int_equal(item->holder.pid, number <= INT32_MAX ? number : 0);
		assert_int_equal(item->holder.since_ms, number);

		snprintf(attributes, sizeof(attributes), "\"recordVersionNumber\":{\"S\":\"v\"},"
				 "\"isReleased\":{\"S\":\"1\"},\"releasedVersion\":{\"S\":\"v\"},"
				 "\"releasedAt\":{\"N\":\"%s\"}", digits);
		assert_int_equal(read_item(attributes)->released_at, number);
	}
}

TEST(long_texts_are_cut_between_characters)
{
	char		owner[DYNAMO_OWNER_SIZE + 16];
	char		attributes[1024];
	const dynamo_item *item;

	/* 382 bytes, then a character of two bytes, of which one would fit */
	memset(owner, 'o', DYNAMO_OWNER_SIZE - 2);
	strcpy(owner + DYNAMO_OWNER_SIZE - 2, "\xc3\xa9rest");
	snprintf(attributes, sizeof(attributes), "\"recordVersionNumber\":{\"S\":\"v\"},"
			 "\"leaseDuration\":{\"S\":\"1s\"},\"ownerName\":{\"S\":\"%s\"}", owner);
	item = read_item(attributes);
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(strlen(item->owner), DYNAMO_OWNER_SIZE - 2);
	assert_int_equal(item->owner[DYNAMO_OWNER_SIZE - 3], 'o');
}

TEST(a_holder_may_have_a_system_identifier)
{
	const dynamo_item *item = read_item("\"recordVersionNumber\":{\"S\":\"v\"},"
										"\"leaseDuration\":{\"S\":\"1s\"},"
										"\"ownerName\":{\"S\":\"o\"},"
										"\"holder\":{\"M\":{\"owner\":{\"S\":\"o\"},"
										"\"system\":{\"S\":\"18446744073709551615\"}}}");

	assert_int_equal(reply.status, DYNAMO_OK);
	assert_string_equal(item->holder.system, "18446744073709551615");
}

TEST(odd_holders_are_no_reason_to_fail)
{
	const dynamo_item *item;

	item = read_item("\"recordVersionNumber\":{\"S\":\"v\"},"
					 "\"leaseDuration\":{\"S\":\"1s\"},\"ownerName\":{\"S\":\"o\"},"
					 "\"holder\":{\"M\":{\"owner\":{\"S\":\"o\"},"
					 "\"database\":{\"N\":\"1\"},\"pid\":{\"N\":\"4294967296\"},"
					 "\"since\":{\"S\":\"now\"},\"host\":[],\"user\":{\"S\":\"u\"},"
					 "\"system\":{\"N\":\"1\"}}}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_string_equal(item->holder.system, "");
	assert_string_equal(item->holder.database, "");
	assert_string_equal(item->holder.user, "u");
	assert_int_equal(item->holder.pid, 0);
	assert_int_equal(item->holder.since_ms, 0);
}

#define LEASE "\"leaseDuration\":{\"S\":\"9\"},\"fencingToken\":{\"N\":\"5\"},"
#define HOLDER(owner) "\"holder\":{\"M\":{" owner "\"pid\":{\"N\":\"7\"}}},"
#define RELEASED_BY(version) "\"releasedAt\":{\"N\":\"1000\"}," version
#define S(name, value) "\"" name "\":{\"S\":\"" value "\"}"

/* What a ddblock wrote about itself does not describe a later holder. */
TEST(a_holder_is_believed_with_its_owner_only)
{
	static const struct
	{
		const char *json;
		bool		believed;
	}			cases[] = {
		{LEASE HOLDER(S("owner", "us/1") ",") S("ownerName", "us/1"), true},
		{LEASE HOLDER(S("owner", "us/1") ",") S("ownerName", "java"), false},
		{LEASE HOLDER(S("owner", "us/1") ",") S("ownerName", "us/2"), false},
		{LEASE HOLDER(S("owner", "us/1") ",") S("ownerName", "us/10"), false},
		{LEASE HOLDER(S("owner", "us/1") ",") "\"x\":{}", false},
		{LEASE HOLDER("") S("ownerName", "us/1"), false},
		{LEASE HOLDER("") "\"x\":{}", false},
		{LEASE HOLDER("\"owner\":{\"N\":\"1\"},") S("ownerName", "1"), false},
		{LEASE "\"holder\":{\"S\":\"us/1\"}," S("ownerName", "us/1"), false},
		{LEASE HOLDER(S("owner", "us/1") ",") S("ownerName", "us/1") ","
		S("isReleased", "1"), false},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		char		json[1024];
		const dynamo_item *item;

		snprintf(json, sizeof(json), S("recordVersionNumber", "v") ",%s", cases[i].json);
		item = read_item(json);
		assert_int_equal(item->by_ddblock, cases[i].believed);
		assert_int_equal(item->holder.pid, cases[i].believed ? 7 : 0);
		assert_int_equal(item->token, 5);	/* later tokens are above it, too */
	}
}

TEST(a_time_of_release_is_believed_with_its_version_only)
{
	static const struct
	{
		const char *json;
		int64_t		released_at;
	}			cases[] = {
		{S("isReleased", "1") "," RELEASED_BY(S("releasedVersion", "v")), 1000},
		{S("isReleased", "1") "," RELEASED_BY(S("releasedVersion", "w")), 0},
		{S("isReleased", "1") "," RELEASED_BY("\"x\":{}"), 0},
		{S("isReleased", "1") "," RELEASED_BY("\"releasedVersion\":{\"N\":\"1\"}"), 0},
		{LEASE RELEASED_BY(S("releasedVersion", "v")), 0},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
	{
		char		json[1024];

		snprintf(json, sizeof(json), S("recordVersionNumber", "v") ",%s", cases[i].json);
		assert_int_equal(read_item(json)->released_at, cases[i].released_at);
	}
}

TEST(table_description_names_keys_and_types)
{
	/* Local, shortened */
#define TABLE "{\"AttributeDefinitions\":[{\"AttributeName\":\"so rt\",\"AttributeType\":\"N\"}," \
	"{\"AttributeName\":\"ke\\\"y\",\"AttributeType\":\"S\"}],\"TableName\":\"t\"," \
	"\"KeySchema\":[{\"AttributeName\":\"ke\\\"y\",\"KeyType\":\"HASH\"}," \
	"{\"AttributeName\":\"so rt\",\"KeyType\":\"RANGE\"}],\"TableStatus\":\"CREATING\"}"

	read_text(DYNAMO_DESCRIBE_TABLE, 200, "{\"Table\":" TABLE "}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_string_equal(reply.table.status, "CREATING");
	assert_string_equal(reply.table.partition_key, "ke\"y");
	assert_string_equal(reply.table.partition_type, "S");
	assert_string_equal(reply.table.sort_key, "so rt");
	assert_string_equal(reply.table.sort_type, "N");

	read_text(DYNAMO_CREATE_TABLE, 200, "{\"TableDescription\":" TABLE "}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_string_equal(reply.table.partition_key, "ke\"y");
#undef TABLE
	read_text(DYNAMO_DESCRIBE_TABLE, 200, "{\"Table\":{\"KeySchema\":[{\"AttributeName\":\"\xc3\xa9\","
			  "\"KeyType\":\"HASH\"}],\"TableStatus\":\"ACTIVE\"}}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_string_equal(reply.table.partition_key, "\xc3\xa9");
}

/* A description as in the API Reference, with further members at its end. */
static void
read_description(const char *more)
{
	char		body[2048];

	snprintf(body, sizeof(body), "{\"Table\":{\"AttributeDefinitions\":["
			 "{\"AttributeName\":\"key\",\"AttributeType\":\"S\"}],\"TableName\":\"lockTable\","
			 "\"KeySchema\":[{\"AttributeName\":\"key\",\"KeyType\":\"HASH\"}],"
			 "\"TableStatus\":\"ACTIVE\",\"ItemCount\":0%s}}", more);
	read_text(DYNAMO_DESCRIBE_TABLE, 200, body);
	assert_int_equal(reply.status, DYNAMO_OK);
}

TEST(a_table_may_be_protected_from_deletion)
{
	read_description(",\"DeletionProtectionEnabled\":true");
	assert_true(reply.table.is_protected);
	read_description(",\"DeletionProtectionEnabled\":false");
	assert_false(reply.table.is_protected);
	read_description("");
	assert_false(reply.table.is_protected);
}

TEST(a_table_has_an_arn_and_a_capacity)
{
	read_description(",\"TableArn\":\"arn:aws:dynamodb:eu-central-1:123456789012:table/lockTable\""
					 ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":5,\"WriteCapacityUnits\":1}");
	assert_string_equal(reply.table.arn, "arn:aws:dynamodb:eu-central-1:123456789012:table/lockTable");
	assert_int_equal(reply.table.read_units, 5);
	assert_int_equal(reply.table.write_units, 1);
	read_description(",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":0,\"WriteCapacityUnits\":\"7\"}");
	assert_string_equal(reply.table.arn, "");
	assert_int_equal(reply.table.read_units, 0);
	assert_int_equal(reply.table.write_units, 0);
}

TEST(a_table_may_have_a_time_to_live)
{
	read_text(DYNAMO_DESCRIBE_TTL, 200, "{\"TimeToLiveDescription\":{\"TimeToLiveStatus\":\"ENABLED\","
			  "\"AttributeName\":\"expires\"}}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_string_equal(reply.table.ttl_attribute, "expires");
	read_text(DYNAMO_QUEUE_DESCRIBE_TTL, 200, "{\"TimeToLiveDescription\":{\"TimeToLiveStatus\":\"DISABLED\"}}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_string_equal(reply.table.ttl_attribute, "");
	assert_status("{\"TimeToLiveDescription\":{}}", 200, DYNAMO_DESCRIBE_TTL, DYNAMO_MALFORMED);
}

TEST(global_tables_are_told_by_their_replicas)
{
	read_description("");
	assert_false(reply.table.replicated);
	assert_string_equal(reply.table.replicas, "");

	/* no consistency mode: older than that option, and so eventual */
	read_description(",\"GlobalTableVersion\":\"2019.11.21\",\"Replicas\":["
					 "{\"RegionName\":\"us-west-2\",\"ReplicaStatus\":\"ACTIVE\"},"
					 "{\"RegionName\":\"eu-west-1\",\"ReplicaStatus\":\"CREATING\"}]");
	assert_true(reply.table.replicated);
	assert_false(reply.table.strong);
	assert_string_equal(reply.table.replicas, "us-west-2, eu-west-1");

	read_description(",\"GlobalTableVersion\":\"2019.11.21\","
					 "\"MultiRegionConsistency\":\"EVENTUAL\",\"Replicas\":["
					 "{\"RegionName\":\"us-west-2\",\"ReplicaStatus\":\"ACTIVE\"}]");
	assert_true(reply.table.replicated);
	assert_false(reply.table.strong);

	read_description(",\"GlobalTableVersion\":\"2019.11.21\","
					 "\"MultiRegionConsistency\":\"STRONG\",\"Replicas\":["
					 "{\"RegionName\":\"us-east-2\",\"ReplicaStatus\":\"ACTIVE\"}],"
					 "\"GlobalTableWitnesses\":[{\"RegionName\":\"us-west-2\","
					 "\"WitnessStatus\":\"ACTIVE\"}]");
	assert_true(reply.table.replicated);
	assert_true(reply.table.strong);

	/* formerly a global table: no replicas left */
	read_description(",\"GlobalTableVersion\":\"2019.11.21\",\"Replicas\":[]");
	assert_false(reply.table.replicated);

	read_description(",\"GlobalTableVersion\":\"2017.11.29\"");
	assert_true(reply.table.replicated);
}

TEST(any_number_of_replicas_fits)
{
	char		more[1500] = ",\"Replicas\":[{}";

	for (int i = 0; i < 30; i++)
		strcat(more, ",{\"RegionName\":\"ap-southeast-1\"}");
	strcat(more, "]");
	read_description(more);
	assert_true(reply.table.replicated);
	assert_int_equal(strlen(reply.table.replicas), sizeof(reply.table.replicas) - 1);
	assert_memory_equal(reply.table.replicas, "?, ap-southeast-1, ", 19);
}

static void
read_page(const dynamo_table *table, const char *body)
{
	forget_reply();
	dynamo_read(&reply, table, DYNAMO_SCAN, 1, 200, NULL, body, strlen(body));
	assert_int_equal(reply.count, 1);
	assert_int_equal(reply.results[0].status, reply.status);
}

static const dynamo_table plain_table = {"lockTable", "key", NULL, NULL, 0, '\0'};
static const dynamo_table sorted_table = {"lockTable", "pk", "sk", "locks", 0, '\0'};
static const dynamo_table separated_table = {"lockTable", "pk", "sk", "locks", 0, '#'};

TEST(page_brings_items_and_where_to_go_on)
{
	static const char body[] = "{\"Items\":[" ITEM_JSON "," RELEASED_JSON "],\"Count\":2,"
		"\"ScannedCount\":3,\"LastEvaluatedKey\":{\"key\":{\"S\":\"b\\u00e9\"}},"
		"\"ConsumedCapacity\":{\"TableName\":\"t\",\"CapacityUnits\":1.5}}";

	read_page(&plain_table, body);
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_true(reply.consumed == 1.5);
	assert_int_equal(reply.page.count, 2);
	assert_string_equal(reply.page.rows[0].name, "migrate/orders");
	assert_string_equal(reply.page.rows[0].item.version, "v1");
	assert_false(reply.page.rows[0].item.released);
	assert_true(reply.page.rows[1].item.released);
	assert_int_equal(reply.page.rows[1].item.released_at, 1795254699);
	assert_string_equal(reply.page.next, "b\xc3\xa9");
	assert_null(reply.page.next_sort);
	dynamo_reply_free(&reply);
	assert_int_equal(reply.page.count, 0);
	assert_null(reply.page.next);
}

TEST(page_may_be_empty_or_the_last)
{
	read_page(&sorted_table, "{\"Items\":[],\"LastEvaluatedKey\":"
			  "{\"sk\":{\"S\":\"other\"},\"pk\":{\"S\":\"x\"}}}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(reply.page.count, 0);
	assert_string_equal(reply.page.next, "x");
	assert_string_equal(reply.page.next_sort, "other");

	read_page(&plain_table, "{\"Items\":[{\"key\":{\"S\":\"no lock\"}}]}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(reply.page.count, 1);
	assert_string_equal(reply.page.rows[0].item.version, "");
	assert_null(reply.page.next);
}

static void
assert_no_page(const dynamo_table *table, const char *body, dynamo_status expected,
			   const char *message)
{
	read_page(table, body);
	assert_int_equal(reply.status, expected);
	if (strstr(reply.message, message) == NULL)
		fail_msg("message is %s", reply.message);
	assert_int_equal(reply.page.count, 0);
	assert_null(reply.page.rows);
	assert_null(reply.page.next);
}

TEST(page_with_other_keys_is_a_wrong_request)
{
	assert_no_page(&plain_table, "{\"Items\":[{\"id\":{\"S\":\"a\"}}]}",
				   DYNAMO_VALIDATION, "keys");
	assert_no_page(&plain_table, "{\"Items\":[{\"key\":{\"N\":\"1\"}}]}",
				   DYNAMO_VALIDATION, "keys");
	assert_no_page(&plain_table, "{\"Items\":[],\"LastEvaluatedKey\":{\"id\":{\"S\":\"a\"}}}",
				   DYNAMO_VALIDATION, "keys");
	/* a sort key that we do not expect, or a missing one */
	assert_no_page(&plain_table, "{\"Items\":[],\"LastEvaluatedKey\":{\"key\":{\"S\":\"a\"},"
				   "\"sk\":{\"S\":\"b\"}}}", DYNAMO_VALIDATION, "keys");
	assert_no_page(&sorted_table, "{\"Items\":[],\"LastEvaluatedKey\":{\"pk\":{\"S\":\"a\"}}}",
				   DYNAMO_VALIDATION, "keys");
}

#define KEY(partition, sort) \
	"{\"pk\":{\"S\":\"" partition "\"},\"sk\":{\"S\":\"" sort "\"},\"data\":{\"B\":\"AA==\"}}"

TEST(page_names_items_by_both_keys)
{
	read_page(&separated_table, "{\"Items\":[" KEY("orders", "42") "," KEY("a#b", "locks") ","
			  KEY("orders", "locks") "," KEY("orders", "4#2") "," KEY("a#b", "1") "],"
			  "\"LastEvaluatedKey\":{\"sk\":{\"S\":\"1\"},\"pk\":{\"S\":\"a#b\"}}}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(reply.page.count, 3);
	assert_string_equal(reply.page.rows[0].name, "orders#42");
	assert_string_equal(reply.page.rows[1].name, "orders");
	assert_string_equal(reply.page.rows[2].name, "orders#4#2");
	assert_string_equal(reply.page.next, "a#b");
	assert_string_equal(reply.page.next_sort, "1");
	assert_no_page(&separated_table, "{\"Items\":[{\"pk\":{\"S\":\"a\"}}]}",
				   DYNAMO_VALIDATION, "keys");
	assert_no_page(&separated_table,
				   "{\"Items\":[{\"pk\":{\"S\":\"a\"},\"sk\":{\"N\":\"1\"}}]}",
				   DYNAMO_VALIDATION, "keys");
}

TEST(an_item_that_is_left_out_leaves_nothing_to_the_next_one)
{
	read_page(&separated_table, "{\"Items\":[{" S("pk", "a#b") "," S("sk", "1") ","
			  S("ownerName", "us/1") ",\"holder\":{\"M\":{" S("owner", "us/1") ","
			  S("database", "shop") "}}," S("recordVersionNumber", "v1") ","
			  S("leaseDuration", "9") ",\"data\":{\"B\":\"AA==\"}},"
			  "{" S("pk", "a") "," S("sk", "1") "}]}");
	assert_int_equal(reply.page.count, 1);
	assert_string_equal(reply.page.rows[0].name, "a#1");
	assert_string_equal(reply.page.rows[0].item.holder.database, "");
	assert_string_equal(reply.page.rows[0].item.version, "");
	assert_null(reply.page.rows[0].item.data);
}

TEST(a_page_may_have_the_longest_keys)
{
	char		partition[DYNAMO_NAME_MAX + 1];
	char		sort[DYNAMO_SORT_MAX + 1];
	char		body[4 * DYNAMO_NAME_MAX];

	memset(partition, 'p', DYNAMO_NAME_MAX);
	partition[DYNAMO_NAME_MAX] = '\0';
	memset(sort, 's', DYNAMO_SORT_MAX);
	sort[DYNAMO_SORT_MAX] = '\0';
	snprintf(body, sizeof(body), "{\"Items\":[{" S("pk", "%s") "," S("sk", "locks") "},"
			 "{" S("pk", "a") "," S("sk", "%s") "}],\"LastEvaluatedKey\":"
			 "{" S("pk", "a") "," S("sk", "%s") "}}", partition, sort, sort);
	read_page(&separated_table, body);
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_string_equal(reply.page.rows[0].name, partition);
	assert_int_equal(strlen(reply.page.rows[1].name), strlen("a#") + DYNAMO_SORT_MAX);
	assert_string_equal(reply.page.next_sort, sort);
}

TEST(page_that_cannot_be_read_is_malformed)
{
	assert_no_page(&plain_table, "{}", DYNAMO_MALFORMED, "unexpected reply");
	assert_no_page(&plain_table, "<html>", DYNAMO_WRONG_SERVICE, "unexpected reply");
	assert_no_page(&plain_table, "{\"Items\":{}}", DYNAMO_MALFORMED, "unexpected reply");
	assert_no_page(&plain_table, "{\"Items\":[{\"key\":{\"S\":\"a\"}},7]}",
				   DYNAMO_MALFORMED, "unexpected reply");
	/* with half of such a key, the scan would continue at a wrong place */
	assert_no_page(&plain_table, "{\"Items\":[],\"LastEvaluatedKey\":"
				   "{\"key\":{\"S\":\"a\\\\\\u0000b\"}}}", DYNAMO_MALFORMED, "U+0000");
	assert_status("{\"Items\":[]}", 200, DYNAMO_SCAN, DYNAMO_MALFORMED);
}

TEST(page_with_an_escaped_backslash_has_no_nul)
{
	read_page(&plain_table, "{\"Items\":[{\"key\":{\"S\":\"\\\\u0000\"}}]}");
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_string_equal(reply.page.rows[0].name, "\\u0000");
}

TEST(refused_scan_has_no_page)
{
	static const char body[] = "{\"__type\":\"x#AccessDeniedException\",\"message\":\"no\"}";

	forget_reply();
	dynamo_read(&reply, &plain_table, DYNAMO_SCAN, 1, 400, NULL, body, strlen(body));
	assert_int_equal(reply.status, DYNAMO_ACCESS_DENIED);
	assert_int_equal(reply.page.count, 0);
}

TEST(operators_writes_are_refused_with_the_item)
{
	read_text(DYNAMO_DELETE, 400, REFUSED ",\"Item\":" ITEM_JSON "}");
	assert_int_equal(reply.status, DYNAMO_CONDITION_FAILED);
	assert_string_equal(reply.results[0].item.version, "v1");
	assert_status("{\"ConsumedCapacity\":{}}", 200, DYNAMO_DELETE, DYNAMO_OK);
	assert_status("{\"ConsumedCapacity\":{}}", 200, DYNAMO_FORCE_RELEASE, DYNAMO_OK);
	assert_status(REFUSED "}", 400, DYNAMO_FORCE_RELEASE, DYNAMO_CONDITION_FAILED);
	assert_status(REFUSED "}", 400, DYNAMO_IDENTIFY, DYNAMO_CONDITION_FAILED);
}

TEST(transport_failure_fails_each_statement)
{
	forget_reply();
	dynamo_read_failure(&reply, 3, DYNAMO_UNREACHABLE, "could not resolve host");
	assert_int_equal(reply.status, DYNAMO_UNREACHABLE);
	assert_int_equal(reply.count, 3);
	assert_int_equal(reply.results[2].status, DYNAMO_UNREACHABLE);
	assert_string_equal(reply.results[2].message, "could not resolve host");
	dynamo_reply_free(&reply);
	assert_int_equal(reply.count, 0);
	assert_null(reply.results);
}

TEST(repeating_helps_after_transient_failures_only)
{
	const int	transient = 1 << DYNAMO_THROTTLED | 1 << DYNAMO_CONFLICT |
		1 << DYNAMO_UNREACHABLE | 1 << DYNAMO_UNKNOWN;

	for (int status = DYNAMO_OK; status <= DYNAMO_WRONG_SERVICE; status++)
		assert_int_equal(dynamo_is_transient(status), transient >> status & 1);
}
