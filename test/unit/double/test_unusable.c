/*-------------------------------------------------------------------------
 *
 * test_unusable.c
 *	  Items that nobody can use as locks, of every kind that the reader knows: shown, known
 *	  again by their digest, and replaced by one write.
 *
 *-------------------------------------------------------------------------
 */
#include "server.h"

#define S(text) "{\"S\":\"" text "\"}"
#define N(number) "{\"N\":\"" #number "\"}"
#define LEASE "\"leaseDuration\":" S("20000")
#define VERSION "\"recordVersionNumber\":" S("r1")
#define HELD "\"ownerName\":" S("java") "," LEASE "," VERSION
#define FREE HELD ",\"isReleased\":" S("1")
#define TOKEN "\"fencingToken\":" N(100)
#define ENTRY(v, n, l, t) "{\"M\":{\"v\":" v ",\"n\":" n ",\"l\":" l ",\"t\":" t "}}"
#define MAP(kind, total, entry) "\"shared\":{\"M\":{\"owner\":" S("java") ",\"kind\":" S(kind) \
	",\"total\":" total ",\"h\":{\"M\":{\"x\":" entry "}}}}"
#define ONE ENTRY(S("v"), N(1), N(20000), N(900))
#define FALLS (-1)				/* no token is above the item's */
#define SIXTY_FOUR "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct
{
	const char *attributes;
	const char *why;
	int64_t		above;			/* the highest token in there, or FALLS */
}			kinds[] = {
	{TOKEN, "has no recordVersionNumber", 100},
	{"\"other\":" S("x"), "has no recordVersionNumber", 0},
	{"\"recordVersionNumber\":" N(1) "," LEASE, "recordVersionNumber is empty or not of type S", 0},
	{"\"recordVersionNumber\":" S(SIXTY_FOUR SIXTY_FOUR) "," LEASE,
	"recordVersionNumber is too long", 0},
	{VERSION "," TOKEN, "has no leaseDuration", 100},
	{VERSION ",\"leaseDuration\":" N(5), "leaseDuration is not of type S", 0},
	{VERSION ",\"leaseDuration\":" S("soon"), "leaseDuration is unreadable", 0},
	{HELD "," TOKEN "," MAP("party", N(1), ONE), "neither a shared lock nor a semaphore", 900},
	{HELD "," TOKEN "," MAP("shared", N(2), ONE), "total is not the sum", 900},
	{HELD "," TOKEN "," MAP("shared", N(1), ENTRY(N(1), N(1), N(1), N(1))),
	"no readable version", 100},
	{HELD "," TOKEN "," MAP("shared", N(1), ENTRY(S("v"), S("1"), N(1), N(1))),
	"no readable number of permits", 100},
	{HELD "," TOKEN "," MAP("shared", N(1), ENTRY(S("v"), N(1), N(-1), N(1))),
	"no readable lease", 100},
	{HELD "," TOKEN "," MAP("shared", N(1), ENTRY(S("v"), N(1), N(1), S("1"))),
	"no readable token", 100},
	{HELD "," TOKEN ",\"shared\":{\"M\":{\"owner\":" S("java") ",\"kind\":" S("shared")
		",\"total\":" N(1) ",\"h\":{\"M\":{\"" SIXTY_FOUR "\":" ONE "}}}}",
	"name of an entry of the shared lock is too long", 900},
	{"\"ownerName\":" S(SIXTY_FOUR) "," LEASE "," VERSION "," TOKEN ",\"shared\":{\"M\":{\"owner\":"
		S(SIXTY_FOUR) ",\"kind\":" S("shared") ",\"total\":" N(1) ",\"h\":{\"M\":{\"x\":" ONE "}}}}",
	"owner is too long", 900},
	{HELD "," MAP("shared", N(1), ONE), "has no fencingToken", 900},
	{"\"ownerName\":" S("java") ",\"leaseDuration\":" S("020000") "," VERSION "," TOKEN ","
		MAP("shared", N(1), ONE), "leaseDuration is not a number of milliseconds", 900},
	{FREE ",\"shared\":{\"M\":{\"gate\":{\"M\":{\"v\":" N(1) "}}}}",
	"the gate of the shared lock has no readable version", 0},
	{FREE ",\"shared\":{\"M\":{\"gate\":{\"M\":{\"v\":" S("g") "}}}}",
	"the gate of the shared lock has no readable lease", 0},
	{HELD ",\"fencingToken\":" S("5"), "fencingToken is not an integer", FALLS},
	{FREE ",\"fencingToken\":" N(1.5), "fencingToken is not an integer", FALLS},
	{HELD ",\"fencingToken\":" N(9223372036854775807), "the highest possible value", FALLS},
	{FREE ",\"fencingToken\":" N(9223372036854775807), "the highest possible value", FALLS},
	{HELD ",\"attributeNames\":" N(7), "attributeNames is not a JSON array", 0},
	{FREE ",\"attributeNames\":" S("[\\\"ttl\\\"]"), "attributeNames is not a JSON array", 0},
	{HELD ",\"keptUntil\":" S("5"), "keptUntil is not an integer", 0},
	{FREE "," TOKEN ",\"keptUntil\":" N(0.5), "keptUntil is not an integer", 100},
};

static cJSON *item;

static void
put(const char *attributes)
{
	char		json[2048];

	snprintf(json, sizeof(json), "{\"key\":{\"S\":\"a\"},\"data\":{\"B\":\"AAECAwQFBgcICQoLDA0ODw==\"}"
			 ",\"team\":{\"SS\":[\"x\",\"y\"]},%s}", attributes);
	cJSON_Delete(item);
	item = parse(json);
	put_item(item);
}

static dynamo_reply
ask(dynamo_write write)
{
	write.name = "a";
	write.name_len = 1;
	return ask_body(write.op, dynamo_build(&table, &write));
}

static dynamo_reply
read_it(void)
{
	return ask((dynamo_write) {.op = DYNAMO_READ});
}

static dynamo_status
replace(const char *json, int64_t token)
{
	dynamo_reply reply = ask((dynamo_write) {
		.op = DYNAMO_REPLACE,.owner = "shop/inc",.version = "nonce",.lease_ms = 20000,
		.last_token = token,.now_s = 1000,.replaced = json
	});
	dynamo_status status = reply.status;

	if (status != DYNAMO_OK && status != DYNAMO_CONDITION_FAILED)
		fail_msg("status %d: %s", status, reply.message);
	dynamo_reply_free(&reply);
	return status;
}

/* What stands there is refused if anything that is a lock's only is another one. */
static void
refuses_changes(const char *json, int64_t token)
{
	static const char *const names[] = {"ownerName", "recordVersionNumber", "leaseDuration",
		"fencingToken", "holder", "data", "isReleased", "releasedAt", "ttl", "releasedVersion",
	"shared", "attributeNames", "keptUntil"};

	for (size_t i = 0; i < COUNT_OF(names); i++)
	{
		cJSON	   *changed = cJSON_Duplicate(item, 1);

		cJSON_DeleteItemFromObject(changed, names[i]);
		cJSON_AddItemToObject(changed, names[i], parse(S("other")));
		put_item(changed);
		if (replace(json, token) != DYNAMO_CONDITION_FAILED)
			fail_msg("%s does not count", names[i]);
		if (cJSON_GetObjectItem(item, names[i]) != NULL)
		{
			cJSON_DeleteItemFromObject(changed, names[i]);
			put_item(changed);
			if (replace(json, token) != DYNAMO_CONDITION_FAILED)
				fail_msg("it does not count that %s is gone", names[i]);
		}
		cJSON_Delete(changed);
	}
	put_item(NULL);
	assert_int_equal(replace(json, token), DYNAMO_CONDITION_FAILED);
	put_item(item);
}

TEST(every_kind_is_replaced_by_one_write)
{
	for (size_t i = 0; i < COUNT_OF(kinds); i++)
	{
		dynamo_reply reply;
		const char *why;
		const char *json;
		int64_t		token;
		bool		may_fall;

		put(kinds[i].attributes);
		reply = read_it();
		why = dynamo_unusable(&reply.results[0].item, reply.results[0].shared);
		json = reply.results[0].json;
		if (why == NULL || strstr(why, kinds[i].why) == NULL || json == NULL)
			fail_msg("%s: %s instead of %s", kinds[i].attributes, why ? why : "usable", kinds[i].why);
		token = dynamo_token_above(json, 50, &may_fall);
		assert_int_equal(may_fall, kinds[i].above == FALLS);
		assert_int_equal(token, kinds[i].above > 0 ? kinds[i].above + 1 : 50);
		refuses_changes(json, token);
		if (replace(json, token) != DYNAMO_OK)
			fail_msg("%s: refused", kinds[i].attributes);
		dynamo_reply_free(&reply);

		reply = read_it();
		assert_null(dynamo_unusable(&reply.results[0].item, reply.results[0].shared));
		assert_null(reply.results[0].json);
		assert_true(reply.results[0].item.released);
		assert_int_equal(reply.results[0].item.token, token);
		assert_string_equal(reply.results[0].item.owner, "shop/inc");
		assert_int_equal(reply.results[0].item.lease_ms, 20000);
		assert_int_equal(reply.results[0].item.released_at, 1000);
		assert_string_equal(reply.results[0].item.version, "nonce");
		assert_null(reply.results[0].item.data);
		dynamo_reply_free(&reply);
	}
	cJSON_Delete(item);
	item = NULL;
}

/* What is above INT64_MAX does not exist, so that one does not count. */
TEST(a_new_token_is_above_each_in_the_item_and_not_below_the_time)
{
	static const char item_and_entries[] = "{" TOKEN ",\"shared\":{\"M\":{\"h\":{\"M\":{"
		"\"x\":" ENTRY(S("v"), N(1), N(1), N(900)) ",\"y\":" ENTRY(S("v"), N(1), N(1), N(300))
		",\"z\":" ENTRY(S("v"), N(1), N(1), N(9223372036854775807)) "}}}}}";
	bool		may_fall;

	assert_int_equal(dynamo_token_above("{" TOKEN "}", 99, &may_fall), 101);
	assert_int_equal(dynamo_token_above("{" TOKEN "}", 100, &may_fall), 101);
	assert_int_equal(dynamo_token_above("{" TOKEN "}", 101, &may_fall), 101);
	assert_int_equal(dynamo_token_above(item_and_entries, 50, &may_fall), 901);
	assert_false(may_fall);
}

static void
digest_of(const char *attributes, char digest[DYNAMO_DIGEST_SIZE])
{
	char		body[2048];
	dynamo_reply reply;

	snprintf(body, sizeof(body), "{\"Item\":{%s},\"ConsumedCapacity\":{}}", attributes);
	dynamo_read(&reply, NULL, DYNAMO_READ, 1, 200, NULL, body, strlen(body));
	assert_non_null(reply.results[0].json);
	assert_true(dynamo_digest(reply.results[0].json, digest, DYNAMO_DIGEST_SIZE));
	dynamo_reply_free(&reply);
}

TEST(the_digest_does_not_depend_on_the_order_in_which_dynamodb_sends)
{
	char		one[DYNAMO_DIGEST_SIZE];
	char		other[DYNAMO_DIGEST_SIZE];

	digest_of("\"key\":" S("a") ",\"m\":{\"M\":{\"x\":" N(1) ",\"y\":{\"SS\":[\"1\",\"2\"]}}}", one);
	digest_of("\"m\":{\"M\":{\"y\":{\"SS\":[\"2\",\"1\"]},\"x\":" N(1) "}},\"key\":" S("a"), other);
	assert_string_equal(one, other);
	assert_int_equal(strlen(one), 32);
	digest_of("\"m\":{\"M\":{\"y\":{\"L\":[" N(1) "," N(2) "]}}}", one);
	digest_of("\"m\":{\"M\":{\"y\":{\"L\":[" N(2) "," N(1) "]}}}", other);
	assert_string_not_equal(one, other);
}

TEST(people_see_the_beginning_of_binary_values)
{
	char		shown[256];

	dynamo_show("{\"b\":{\"B\":\"AAECAwQFBgcICQoLDA0ODw==\"},\"s\":{\"S\":\"\\\"\"},\"t\":{\"BOOL\":true},"
				"\"u\":{\"BS\":[\"AAECAwQFBgcICQoLDA0ODw==\"]},\"v\":{\"NULL\":true}}", shown, sizeof(shown));
	assert_string_equal(shown, "{\"b\":{\"B\":\"AAECAwQFBgcICQoL...\"},\"s\":{\"S\":\"\\\"\"},\"t\":{\"BOOL\":true},"
						"\"u\":{\"BS\":[\"AAECAwQFBgcICQoL...\"]},\"v\":{\"NULL\":true}}");
	dynamo_show("{\"b\":{\"B\":\"AAECAwQFBgcICQoL\"},\"c\":{\"B\":\"AAECAwQFBgcICQoLDA0O\"}}",
				shown, sizeof(shown));
	assert_string_equal(shown, "{\"b\":{\"B\":\"AAECAwQFBgcICQoL\"},"
						"\"c\":{\"B\":\"AAECAwQFBgcICQoL...\"}}");
	dynamo_show("{\"s\":{\"S\":\"0123456789\xc3\xa4\"}}", shown, 25);
	assert_string_equal(shown, "{\"s\":{\"S\":\"0123456789...");
	dynamo_show("{\"s\":{\"S\":\"0123\"}}", shown, 18);
	assert_string_equal(shown, "{\"s\":{\"S\":\"012...");
	dynamo_show("{\"s\":{\"S\":\"0123\"}}", shown, 19);
	assert_string_equal(shown, "{\"s\":{\"S\":\"0123\"}}");
}
