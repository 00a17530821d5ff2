/*-------------------------------------------------------------------------
 *
 * test_shared_writes.c
 *	  The writes in shared mode, carried out.
 *
 * Each write has its effect, and each part of its condition is needed: for each there
 * is an item on which the write is refused, and applied without that part.  Runs with
 * the double, and from test/check-double with DynamoDB Local.
 *
 *-------------------------------------------------------------------------
 */
#include "server.h"
#include "conjuncts.h"

#define S(text) "{\"S\":\"" text "\"}"
#define N(number) "{\"N\":\"" #number "\"}"
#define ENTRY(v, n, l, t, o) "{\"M\":{\"v\":" S(v) ",\"n\":" N(n) ",\"l\":" N(l) \
	",\"t\":" N(t) ",\"o\":" S(o) "}}"
#define GATE(v) "{\"M\":{\"v\":" S(v) ",\"l\":{\"N\":\"20000\"},\"o\":{\"S\":\"three\"}}}"
#define MAP(total, entries) "{\"M\":{\"owner\":" S("shared/e1") ",\"kind\":" S("semaphore") \
	",\"total\":" N(total) ",\"h\":{\"M\":{" entries "}}}}"
#define ITEM(owner, more) "{\"key\":" S("a") ",\"ownerName\":" S(owner) \
	",\"leaseDuration\":" S("20000") ",\"recordVersionNumber\":" S("r1") \
	",\"fencingToken\":" N(100) more "}"

#define ME "\"me\":" ENTRY("v1", 1, 20000, 90, "one")
#define YOU "\"you\":" ENTRY("u1", 2, 20000, 100, "two")
#define GONE "\"gone\":" ENTRY("d1", 3, 20000, 80, "three")
#define SHARED(total, entries) ITEM("shared/e1", ",\"shared\":" MAP(total, entries))
#define US SHARED(3, ME "," YOU)
#define RELEASED ITEM("shared/e1", ",\"isReleased\":" S("1") ",\"releasedAt\":" N(900) \
					  ",\"releasedVersion\":" S("r1"))

static cJSON *item;				/* before the write */
static dynamo_shared_write shared;
static dynamo_write the_write;
static bool in_batch;
static conjuncts condition;		/* of the write */
static bool shown[CONJUNCTS_MAX];	/* to refuse */

static void
begin(dynamo_shared_kind kind, const char *json)
{
	patch(&item, "", json);
	memset(&shared, 0, sizeof(shared));
	shared.kind = kind;
	shared.epoch = "shared/e1";
	shared.me = "me";
	the_write = (dynamo_write) {
		.op = dynamo_shared_op(kind),.name = "a",.name_len = 1,.version = "n1",
			.expected = "v1",.lease_ms = 20000,.first_token = 200,.last_token = 200,
			.now_s = 1000,.shared = &shared
	};
	in_batch = false;
	condition.count = 0;
	memset(shown, 0, sizeof(shown));
}

/* A semaphore with the limit of 5. */
static void
begin_entry(dynamo_shared_kind kind, const char *json)
{
	begin(kind, json);
	shared.entry.mode = MODE_SEMAPHORE;
	shared.entry.name = "one";
	shared.entry.admission.permits = 1;
	shared.entry.admission.limit = 5;
	if (kind == DYNAMO_SHARED_OPEN)
		the_write.expected = "";
}

static char *
body_of_write(void)
{
	char	   *body = in_batch ? dynamo_build_batch(&table, &the_write, 1) :
		dynamo_build(&table, &the_write);

	assert_non_null(body);
	return body;
}

static void
take_apart(void)
{
	char		head[1024];
	char		tail[1024];
	char	   *body = body_of_write();
	cJSON	   *request = parse(body);

	if (in_batch)
		conjuncts_of_batch(&condition, request, head, tail);
	else
		conjuncts_of_update(&condition, request);
	for (int i = 0; i < condition.count; i++)
		shown[i] = strcmp(condition.text[i], "\"key\" = ?") == 0;
	cJSON_Delete(request);
	free(body);
}

/* Sends the write; without >= 0: without that part of its condition. */
static dynamo_reply
send_write(int without)
{
	char	   *body = body_of_write();
	cJSON	   *request = parse(body);

	if (without >= 0 && in_batch)
		drop_from_batch(request, without);
	else if (without >= 0)
		drop_from_update(request, without);
	free(body);
	body = cJSON_PrintUnformatted(request);
	cJSON_Delete(request);
	return ask_body(in_batch ? DYNAMO_RENEW_BATCH : the_write.op, body);
}

static dynamo_status
status_without(int without)
{
	dynamo_reply reply = send_write(without);
	dynamo_status status = reply.results[0].status;

	if (status != DYNAMO_OK && status != DYNAMO_CONDITION_FAILED &&
		status != DYNAMO_VALIDATION)
		fail_msg("status %d: %s", status, reply.results[0].message);
	dynamo_reply_free(&reply);
	return status;
}

/* Pairs of a path and what stands there afterwards, "" for nothing; then NULL. */
static void
applies_with(const char *const *changes)
{
	cJSON	   *after = cJSON_Duplicate(item, 1);
	dynamo_reply reply;

	put_item(item);
	reply = send_write(-1);
	if (reply.results[0].status != DYNAMO_OK)
		fail_msg("status %d: %s", reply.results[0].status, reply.results[0].message);
	for (; changes[0] != NULL; changes += 2)
		patch(&after, changes[0], changes[1][0] != '\0' ? changes[1] : NULL);
	assert_item(after);
	cJSON_Delete(after);

	if (shared.kind != DYNAMO_SHARED_OPEN && the_write.op != DYNAMO_RELEASE &&
		the_write.op != DYNAMO_FORCE_RELEASE)
	{
		assert_string_equal(reply.results[0].item.version, "n1");
		assert_true(reply.results[0].shared->current);
	}
	dynamo_reply_free(&reply);
	if (condition.count == 0)
		take_apart();
}

#define applies(...) applies_with((const char *const[]) {__VA_ARGS__, NULL})

/* The write refuses because of that part; without it, the status is as told. */
static void
refuses_or(const char *part, const char *path, const char *value, dynamo_status without)
{
	cJSON	   *spoilt = cJSON_Duplicate(item, 1);
	int			i = 0;

	if (condition.count == 0)
		take_apart();
	while (i < condition.count && strcmp(condition.text[i], part) != 0)
		i++;
	if (i == condition.count)
		fail_msg("the condition has no part %s", part);
	patch(&spoilt, path, value);

	put_item(spoilt);
	if (status_without(-1) != DYNAMO_CONDITION_FAILED)
		fail_msg("not refused by %s", part);
	assert_item(spoilt);
	if (status_without(i) != without)
		fail_msg("not decided by %s", part);
	shown[i] = true;
	cJSON_Delete(spoilt);
}

static void
refuses(const char *part, const char *path, const char *value)
{
	refuses_or(part, path, value, DYNAMO_OK);
}

/* Every part of the condition has been shown. */
static void
end(void)
{
	assert_true(condition.count > 0);
	for (int i = 0; i < condition.count; i++)
	{
		if (!shown[i])
			fail_msg("no item is refused by %s", condition.text[i]);
	}
	patch(&item, "", NULL);
}

/* What all writes in an epoch demand. */
static void
refuses_outside_epoch(void)
{
	refuses("#ownerName = :epoch", "ownerName", S("shared/e2"));
	refuses("attribute_not_exists(#isReleased)", "isReleased", S("1"));
}

static void
refuses_unless_mine(void)
{
	refuses_outside_epoch();
	refuses("#shared.#h.#me.#v = :expected", "shared.h.me.v", S("v9"));
}

#define NO_GATE "attribute_not_exists(#shared.#gate.#v)"
#define NO_OTHER_GATE \
	"(attribute_not_exists(#shared.#gate.#v) OR #shared.#gate.#v = :gate)"

#define NOT_KEPT "(attribute_not_exists(#keptUntil) OR #keptUntil <= :past)"

#define OPENED "{\"key\":" S("a") ",\"ownerName\":" S("shared/n1") \
	",\"leaseDuration\":" S("20000") ",\"recordVersionNumber\":" S("n1") \
	",\"fencingToken\":" N(200) ",\"shared\":{\"M\":{\"owner\":" S("shared/n1") \
	",\"kind\":" S("semaphore") ",\"total\":" N(1) ",\"h\":{\"M\":{\"me\":" \
	ENTRY("n1", 1, 20000, 200, "one") "}}}}}"

TEST(open_makes_a_free_item_a_shared_one)
{
	begin_entry(DYNAMO_SHARED_OPEN, NULL);
	applies("", OPENED);

	begin_entry(DYNAMO_SHARED_OPEN, RELEASED);
	applies("", OPENED);
	refuses("(attribute_not_exists(#key) OR attribute_exists(#isReleased))", "isReleased",
			NULL);
	refuses("(attribute_not_exists(#fencingToken) OR #fencingToken < :token)",
			"fencingToken", N(200));
	refuses(NOT_KEPT, "keptUntil", N(1));
	refuses(NO_GATE, "shared", "{\"M\":{\"gate\":" GATE("g1") "}}");
	refuses("attribute_not_exists(#attributeNames)", "attributeNames", N(7));
	end();
}

/* Nothing of what others left in the item survives. */
TEST(open_replaces_all_that_is_left_in_the_item)
{
	begin_entry(DYNAMO_SHARED_OPEN, US);
	patch(&item, "ownerName", S("java"));
	patch(&item, "isReleased", S("1"));
	patch(&item, "holder", "{\"M\":{\"owner\":{\"S\":\"java\"}}}");
	patch(&item, "data", "{\"B\":\"AAE=\"}");
	patch(&item, "ttl", N(5));
	patch(&item, "releasedAt", N(5));
	patch(&item, "releasedVersion", S("r0"));
	patch(&item, "keptUntil", N(5));
	the_write.past_ms = 5;
	applies("", OPENED);
	patch(&item, "shared", S("no map"));
	applies("", OPENED);
}

TEST(open_takes_over_when_all_are_dead)
{
	begin_entry(DYNAMO_SHARED_OPEN, US);
	the_write.expected = "r1";
	shared.entry.admission.dead_gate = "g1";
	applies("", OPENED);
	patch(&item, "shared.gate", GATE("g1"));
	applies("", OPENED);
	refuses("(attribute_not_exists(#key) OR attribute_exists(#isReleased)"
			" OR #recordVersionNumber = :expected)", "recordVersionNumber", S("r2"));
	refuses("(attribute_not_exists(#fencingToken) OR #fencingToken < :token)",
			"fencingToken", N(200));
	refuses(NOT_KEPT, "keptUntil", N(1));
	refuses(NO_OTHER_GATE, "shared.gate.v", S("g2"));
	refuses("attribute_not_exists(#attributeNames)", "attributeNames", N(7));
	end();
}

TEST(open_leaves_additional_attributes_that_it_knows)
{
	begin_entry(DYNAMO_SHARED_OPEN, RELEASED);
	the_write.old_attributes = "[\"team\"]";
	patch(&item, "attributeNames", S("[\\\"team\\\"]"));
	patch(&item, "team", S("x"));
	put_item(item);
	assert_int_equal(status_without(-1), DYNAMO_OK);
	the_write.old_attributes = "[\"other\"]";
	assert_int_equal(status_without(-1), DYNAMO_CONDITION_FAILED);
}

/* The others' entries, so many that with ours and without the dead there are 33. */
static const char *
crowd(int count)
{
	static char json[16384];
	size_t		used = (size_t) snprintf(json, sizeof(json), "{\"M\":{" GONE);

	for (int i = 1; i < count; i++)
		used += (size_t) snprintf(json + used, sizeof(json) - used, ",\"other%d\":"
								  ENTRY("o1", 1, 20000, 70, "other"), i);
	snprintf(json + used, sizeof(json) - used, "}}");
	return json;
}

TEST(join_adds_an_entry)
{
	begin_entry(DYNAMO_SHARED_JOIN, SHARED(2, YOU));
	shared.entry.admission.permits = 3;
	applies("recordVersionNumber", S("n1"), "fencingToken", N(200), "shared.total", N(5),
			"shared.h.me", ENTRY("n1", 3, 20000, 200, "one"));
	refuses_outside_epoch();
	refuses("#shared.#kind = :kind", "shared.kind", S("shared"));
	refuses("#fencingToken < :token", "fencingToken", N(200));
	refuses("attribute_not_exists(#shared.#h.#me)", "shared.h.me",
			ENTRY("v1", 1, 20000, 90, "one"));
	refuses("size(#shared.#h) < :most", "shared.h", crowd(32));
	refuses("#shared.#total <= :room", "shared.total", N(3));
	refuses(NO_GATE, "shared.gate", GATE("g1"));
	end();

	patch(&item, "", SHARED(2, YOU));
	patch(&item, "shared.h", crowd(31));
	put_item(item);
	assert_int_equal(status_without(-1), DYNAMO_OK);
}

TEST(join_of_a_shared_lock_has_no_limit)
{
	begin_entry(DYNAMO_SHARED_JOIN, SHARED(2, YOU));
	shared.entry.mode = MODE_SHARED;
	shared.entry.admission.limit = 0;
	patch(&item, "shared.kind", S("shared"));
	patch(&item, "shared.total", N(1000000));
	applies("recordVersionNumber", S("n1"), "fencingToken", N(200), "shared.total",
			N(1000001), "shared.h.me", ENTRY("n1", 1, 20000, 200, "one"));
	refuses_outside_epoch();
	refuses("#shared.#kind = :kind", "shared.kind", S("semaphore"));
	refuses("#fencingToken < :token", "fencingToken", N(201));
	refuses("attribute_not_exists(#shared.#h.#me)", "shared.h.me",
			ENTRY("v1", 1, 20000, 90, "one"));
	refuses("size(#shared.#h) < :most", "shared.h", crowd(32));
	refuses(NO_GATE, "shared.gate", GATE("g1"));
	end();
}

TEST(join_removes_the_dead_and_raises_the_lease)
{
	static const dynamo_dead_entry dead[] = {{"gone", "d1"}, {"you", "u1"}};

	begin_entry(DYNAMO_SHARED_JOIN, SHARED(5, YOU "," GONE));
	the_write.lease_ms = 30000;
	shared.entry.shorter_ms = 20000;
	shared.entry.admission = (dynamo_admission) {
		.permits = 2,.limit = 2,.freed = 5,.dead_count = 2,.dead = dead,.dead_gate = "g1"
	};
	applies("recordVersionNumber", S("n1"), "fencingToken", N(200), "leaseDuration",
			S("30000"), "shared.total", N(2), "shared.h.gone", "", "shared.h.you", "",
			"shared.h.me", ENTRY("n1", 2, 30000, 200, "one"));
	refuses_outside_epoch();
	refuses("#shared.#kind = :kind", "shared.kind", S("shared"));
	refuses("#fencingToken < :token", "fencingToken", N(200));
	refuses("attribute_not_exists(#shared.#h.#me)", "shared.h.me",
			ENTRY("v1", 1, 20000, 90, "one"));
	refuses("#leaseDuration = :shorter", "leaseDuration", S("40000"));
	refuses("#shared.#total <= :room", "shared.total", N(6));
	refuses(NO_OTHER_GATE, "shared.gate", GATE("g2"));
	refuses("#shared.#h.#dead0.#v = :dead0", "shared.h.gone.v", S("d2"));
	refuses("#shared.#h.#dead1.#v = :dead1", "shared.h.you.v", S("u2"));

	/* "you", too, is in the crowd */
	patch(&item, "shared.h", crowd(33));
	patch(&item, "shared.h.you", ENTRY("u1", 2, 20000, 100, "two"));
	refuses("size(#shared.#h) < :most", "shared.h.more", ENTRY("o1", 1, 20000, 70, "other"));
	end();
}

TEST(join_takes_off_a_dead_gate)
{
	begin_entry(DYNAMO_SHARED_JOIN, SHARED(2, YOU));
	patch(&item, "shared.gate", GATE("g1"));
	shared.entry.admission.dead_gate = "g1";
	applies("recordVersionNumber", S("n1"), "fencingToken", N(200), "shared.total", N(3),
			"shared.h.me", ENTRY("n1", 1, 20000, 200, "one"), "shared.gate", "");
}

TEST(replace_puts_a_new_entry_in_the_place_of_ours)
{
	static const dynamo_dead_entry dead[] = {{"gone", "d1"}};

	begin_entry(DYNAMO_SHARED_REPLACE, SHARED(6, ME "," YOU "," GONE));
	shared.entry.admission = (dynamo_admission) {
		.permits = 3,.limit = 5,.freed = 4,.dead_count = 1,.dead = dead
	};
	applies("recordVersionNumber", S("n1"), "fencingToken", N(200), "shared.total", N(5),
			"shared.h.gone", "", "shared.h.me", ENTRY("n1", 3, 20000, 200, "one"));
	refuses_unless_mine();
	refuses("#shared.#kind = :kind", "shared.kind", S("shared"));
	refuses("#fencingToken < :token", "fencingToken", N(200));
	refuses("#shared.#total <= :room", "shared.total", N(7));
	refuses(NO_GATE, "shared.gate", GATE("g1"));
	refuses("#shared.#h.#dead0.#v = :dead0", "shared.h.gone.v", S("d2"));
	end();
}

TEST(renew_writes_the_entrys_version_and_the_items)
{
	begin(DYNAMO_SHARED_RENEW, US);
	applies("recordVersionNumber", S("n1"), "shared.h.me.v", S("n1"));
	patch(&item, "shared.gate", GATE("g1"));
	applies("recordVersionNumber", S("n1"), "shared.h.me.v", S("n1"));
	refuses_unless_mine();
	end();
}

TEST(renew_in_a_batch_is_the_same)
{
	begin(DYNAMO_SHARED_RENEW, US);
	in_batch = true;
	applies("recordVersionNumber", S("n1"), "shared.h.me.v", S("n1"));
	refuses("\"ownerName\" = ?", "ownerName", S("shared/e2"));
	refuses("\"shared\".\"h\".\"me\".\"v\" = ?", "shared.h.me.v", S("v9"));
	refuses("\"isReleased\" IS MISSING", "isReleased", S("1"));
	end();
}

TEST(change_adds_permits_and_removes_the_dead)
{
	static const dynamo_dead_entry dead[] = {{"gone", "d1"}};

	begin(DYNAMO_SHARED_CHANGE, SHARED(6, ME "," YOU "," GONE));
	shared.change = (dynamo_admission) {
		.permits = 2,.limit = 5,.freed = 3,.dead_count = 1,.dead = dead,.dead_gate = "g1"
	};
	applies("recordVersionNumber", S("n1"), "shared.total", N(5), "shared.h.gone", "",
			"shared.h.me.v", S("n1"), "shared.h.me.n", N(3));
	refuses_unless_mine();
	refuses("#shared.#total <= :room", "shared.total", N(7));
	refuses(NO_OTHER_GATE, "shared.gate", GATE("g2"));
	patch(&item, "shared.gate", GATE("g1"));
	applies("recordVersionNumber", S("n1"), "shared.total", N(5), "shared.h.gone", "",
			"shared.h.me.v", S("n1"), "shared.h.me.n", N(3), "shared.gate", "");
	refuses("#shared.#h.#dead0.#v = :dead0", "shared.h.gone.v", S("d2"));
	end();

	begin(DYNAMO_SHARED_CHANGE, US);
	shared.change = (dynamo_admission) {.permits = 1,.limit = 4};
	applies("recordVersionNumber", S("n1"), "shared.total", N(4),
			"shared.h.me.v", S("n1"), "shared.h.me.n", N(2));
	refuses_unless_mine();
	refuses("#shared.#total <= :room", "shared.total", N(4));
	refuses(NO_GATE, "shared.gate", GATE("g1"));
	end();
}

TEST(change_gives_permits_back_whatever_the_limit_and_the_gate)
{
	begin(DYNAMO_SHARED_CHANGE, US);
	patch(&item, "shared.h.me.n", N(3));
	patch(&item, "shared.total", N(5));
	patch(&item, "shared.gate", GATE("g1"));
	shared.change = (dynamo_admission) {.permits = -2,.limit = 1};
	applies("recordVersionNumber", S("n1"), "shared.total", N(3),
			"shared.h.me.v", S("n1"), "shared.h.me.n", N(1));
	refuses_unless_mine();
	end();
}

TEST(leave_removes_an_entry_that_is_not_the_last)
{
	begin(DYNAMO_SHARED_LEAVE, US);
	applies("recordVersionNumber", S("n1"), "shared.total", N(2), "shared.h.me", "");
	refuses_unless_mine();
	refuses("size(#shared.#h) > :one", "shared.h.you", NULL);
	end();
}

#define RELEASED_NOW "recordVersionNumber", S("n1"), "isReleased", S("1"), \
	"releasedAt", N(1000), "releasedVersion", S("n1")

TEST(last_releases_the_item_and_leaves_the_gate)
{
	begin(DYNAMO_SHARED_LAST, SHARED(1, ME));
	applies(RELEASED_NOW, "shared", "{\"M\":{}}");
	patch(&item, "shared.gate", GATE("g1"));
	applies(RELEASED_NOW, "shared", "{\"M\":{\"gate\":" GATE("g1") "}}");
	refuses_unless_mine();
	refuses("size(#shared.#h) = :one", "shared.h.you", ENTRY("u1", 2, 20000, 100, "two"));
	end();
}

#define JOURNAL_OWNER "#ownerName = #shared.#owner"

TEST(journal_removes_the_entry_of_a_dead_incarnation)
{
	begin(DYNAMO_SHARED_LEAVE, US);
	shared.epoch = NULL;
	the_write.any_version = true;
	applies("recordVersionNumber", S("n1"), "shared.total", N(2), "shared.h.me", "");
	refuses(JOURNAL_OWNER, "ownerName", S("java"));
	refuses("attribute_not_exists(#isReleased)", "isReleased", S("1"));
	refuses("size(#shared.#h) > :one", "shared.h.you", NULL);

	/* without the entry there are no permits to subtract */
	patch(&item, "shared.h.gone", ENTRY("d1", 3, 20000, 80, "three"));
	refuses_or("attribute_exists(#shared.#h.#me)", "shared.h.me", NULL, DYNAMO_VALIDATION);
	end();

	begin(DYNAMO_SHARED_LAST, SHARED(1, ME));
	shared.epoch = NULL;
	the_write.any_version = true;
	applies(RELEASED_NOW, "shared", "{\"M\":{}}");
	refuses(JOURNAL_OWNER, "ownerName", S("java"));
	refuses("attribute_not_exists(#isReleased)", "isReleased", S("1"));
	refuses("attribute_exists(#shared.#h.#me)", "shared.h", "{\"M\":{" YOU "}}");
	refuses("size(#shared.#h) = :one", "shared.h.you", ENTRY("u1", 2, 20000, 100, "two"));
	end();
}

TEST(force_release_releases_whoever_holds_it)
{
	begin(DYNAMO_SHARED_FORCE_RELEASE, US);
	patch(&item, "shared.gate", GATE("g1"));
	applies(RELEASED_NOW, "shared", "{\"M\":{\"gate\":" GATE("g1") "}}");
	refuses_outside_epoch();
	end();
}

TEST(gate_is_set_where_there_is_none_or_a_dead_one)
{
	begin(DYNAMO_SHARED_GATE, US);
	shared.waiter = "three";
	the_write.expected = "";
	applies("recordVersionNumber", S("n1"), "shared.gate", GATE("n1"));
	refuses_outside_epoch();
	refuses(NO_GATE, "shared.gate", GATE("g1"));
	end();

	begin(DYNAMO_SHARED_GATE, US);
	shared.waiter = "three";
	the_write.expected = "g1";
	applies("recordVersionNumber", S("n1"), "shared.gate", GATE("n1"));
	patch(&item, "shared.gate", GATE("g1"));
	applies("recordVersionNumber", S("n1"), "shared.gate", GATE("n1"));
	refuses_outside_epoch();
	refuses(NO_OTHER_GATE, "shared.gate.v", S("g2"));
	end();
}

/* What has no version is no gate: nobody could tell when it is dead. */
TEST(gate_without_a_version_keeps_nobody_out)
{
	begin_entry(DYNAMO_SHARED_JOIN, SHARED(2, YOU));
	patch(&item, "shared.gate", S("closed"));
	put_item(item);
	assert_int_equal(status_without(-1), DYNAMO_OK);

	begin(DYNAMO_SHARED_GATE, US);
	shared.waiter = "three";
	the_write.expected = "";
	patch(&item, "shared.gate", "{\"M\":{}}");
	applies("recordVersionNumber", S("n1"), "shared.gate", GATE("n1"));
}

TEST(gate_is_renewed_by_who_set_it)
{
	begin(DYNAMO_SHARED_RENEW_GATE, US);
	the_write.expected = "g1";
	patch(&item, "shared.gate", GATE("g1"));
	applies("recordVersionNumber", S("n1"), "shared.gate.v", S("n1"));
	refuses_outside_epoch();
	refuses("#shared.#gate.#v = :expected", "shared.gate.v", S("g2"));
	end();
}

/* ---- more than one write ---- */

static dynamo_status
status(void)
{
	return status_without(-1);
}

/* What a holder or a waiter of epoch e1 could still send. */
static void
all_are_refused(void)
{
	static const dynamo_shared_kind kinds[] = {
		DYNAMO_SHARED_RENEW, DYNAMO_SHARED_CHANGE, DYNAMO_SHARED_LEAVE, DYNAMO_SHARED_LAST,
		DYNAMO_SHARED_FORCE_RELEASE, DYNAMO_SHARED_GATE, DYNAMO_SHARED_RENEW_GATE,
		DYNAMO_SHARED_JOIN, DYNAMO_SHARED_REPLACE
	};
	cJSON	   *before = get_item();

	for (size_t i = 0; i < COUNT_OF(kinds); i++)
	{
		begin(kinds[i], NULL);
		if (kinds[i] == DYNAMO_SHARED_JOIN || kinds[i] == DYNAMO_SHARED_REPLACE)
			begin_entry(kinds[i], NULL);
		else if (kinds[i] == DYNAMO_SHARED_CHANGE)
			shared.change.permits = -1;
		else if (kinds[i] == DYNAMO_SHARED_GATE)
			shared.waiter = "three";
		shared.me = kinds[i] == DYNAMO_SHARED_JOIN ? "third" : "me";
		the_write.expected = kinds[i] == DYNAMO_SHARED_GATE ? "" : "v1";
		the_write.first_token = the_write.last_token = 1000;
		if (status() != DYNAMO_CONDITION_FAILED)
			fail_msg("kind %d is not refused", kinds[i]);
	}
	begin(DYNAMO_SHARED_RENEW, NULL);
	in_batch = true;
	assert_int_equal(status(), DYNAMO_CONDITION_FAILED);
	for (int last = 0; last < 2; last++)
	{
		begin(last ? DYNAMO_SHARED_LAST : DYNAMO_SHARED_LEAVE, NULL);
		the_write.any_version = true;
		assert_int_equal(status(), DYNAMO_CONDITION_FAILED);
	}
	assert_item(before);
	cJSON_Delete(before);
}

#define KEY "\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"a\"}}"

/* With the conditions of Amazon's client, version 1.4.0. */
#define JAVA_PUT(version) "{\"TableName\":\"lockTable\",\"Item\":{\"key\":{\"S\":\"a\"}," \
	"\"ownerName\":{\"S\":\"java\"},\"leaseDuration\":{\"S\":\"20000\"}," \
	"\"recordVersionNumber\":{\"S\":\"j1\"}},\"ConditionExpression\":" \
	"\"attribute_exists(#pk) AND #rvn = :rvn\",\"ExpressionAttributeNames\":" \
	"{\"#pk\":\"key\",\"#rvn\":\"recordVersionNumber\"}," \
	"\"ExpressionAttributeValues\":{\":rvn\":{\"S\":\"" version "\"}}}"
#define JAVA_UPDATE(version) "{" KEY ",\"UpdateExpression\":\"SET #on = :on, #ld = :ld," \
	" #rvn = :new REMOVE #r\",\"ConditionExpression\":" \
	"\"attribute_exists(#pk) AND #rvn = :rvn\",\"ExpressionAttributeNames\":" \
	"{\"#pk\":\"key\",\"#on\":\"ownerName\",\"#ld\":\"leaseDuration\"," \
	"\"#rvn\":\"recordVersionNumber\",\"#r\":\"isReleased\"}," \
	"\"ExpressionAttributeValues\":{\":on\":{\"S\":\"java\"},\":ld\":{\"S\":\"20000\"}," \
	"\":new\":{\"S\":\"j1\"},\":rvn\":{\"S\":\"" version "\"}}}"
#define JAVA_NEW "{\"TableName\":\"lockTable\",\"Item\":{\"key\":{\"S\":\"a\"}," \
	"\"ownerName\":{\"S\":\"java\"},\"leaseDuration\":{\"S\":\"20000\"}," \
	"\"recordVersionNumber\":{\"S\":\"j1\"}},\"ConditionExpression\":" \
	"\"attribute_not_exists(#pk)\",\"ExpressionAttributeNames\":{\"#pk\":\"key\"}}"
#define JAVA_DELETE(version) "{" KEY ",\"ConditionExpression\":" \
	"\"attribute_exists(#pk) AND #rvn = :rvn AND #on = :on\",\"ExpressionAttributeNames\":" \
	"{\"#pk\":\"key\",\"#on\":\"ownerName\",\"#rvn\":\"recordVersionNumber\"}," \
	"\"ExpressionAttributeValues\":{\":on\":{\"S\":\"java\"},\":rvn\":{\"S\":\"" version "\"}}}"
#define JAVA_RELEASE(version) "{" KEY ",\"UpdateExpression\":\"SET #r = :r\"," \
	"\"ConditionExpression\":\"attribute_exists(#pk) AND #rvn = :rvn AND #on = :on\"," \
	"\"ExpressionAttributeNames\":{\"#pk\":\"key\",\"#on\":\"ownerName\"," \
	"\"#rvn\":\"recordVersionNumber\",\"#r\":\"isReleased\"}," \
	"\"ExpressionAttributeValues\":{\":on\":{\"S\":\"java\"},\":rvn\":{\"S\":\"" version "\"}," \
	"\":r\":{\"S\":\"1\"}}}"

static void
put_shared_item(void)
{
	patch(&item, "", US);
	put_item(item);
	patch(&item, "", NULL);
}

/* Reads the item as the lock manager would; the caller frees it. */
static dynamo_reply
read_back(void)
{
	dynamo_write read = {.op = DYNAMO_READ,.name = "a",.name_len = 1};
	dynamo_reply reply = ask_body(DYNAMO_READ, dynamo_build(&table, &read));

	assert_int_equal(reply.status, DYNAMO_OK);
	return reply;
}

TEST(java_client_that_puts_ends_shared_mode)
{
	put_shared_item();
	ask_raw("PutItem", JAVA_NEW, 400);
	ask_raw("PutItem", JAVA_PUT("r0"), 400);
	ask_raw("DeleteItem", JAVA_DELETE("r1"), 400);
	ask_raw("PutItem", JAVA_PUT("r1"), 200);
	all_are_refused();

	ask_raw("DeleteItem", JAVA_DELETE("j1"), 200);
	all_are_refused();
	patch(&item, "", NULL);
	assert_item(NULL);
	begin_entry(DYNAMO_SHARED_OPEN, NULL);
	assert_int_equal(status(), DYNAMO_OK);
}

TEST(java_client_that_updates_leaves_dead_text)
{
	dynamo_reply reply;

	put_shared_item();
	ask_raw("UpdateItem", JAVA_UPDATE("r0"), 400);
	ask_raw("UpdateItem", JAVA_RELEASE("r1"), 400);
	ask_raw("UpdateItem", JAVA_UPDATE("r1"), 200);
	reply = read_back();
	assert_string_equal(reply.results[0].item.owner, "java");
	assert_null(reply.results[0].item.wrong);
	assert_null(reply.results[0].shared);
	dynamo_reply_free(&reply);
	all_are_refused();

	begin_entry(DYNAMO_SHARED_OPEN, NULL);
	assert_int_equal(status(), DYNAMO_CONDITION_FAILED);
	ask_raw("UpdateItem", JAVA_RELEASE("j1"), 200);
	all_are_refused();
	begin_entry(DYNAMO_SHARED_OPEN, NULL);
	assert_int_equal(status(), DYNAMO_OK);
	patch(&item, "", OPENED);
	assert_item(item);
	patch(&item, "", NULL);
}

/* What a client sends that does not know "shared". */
#define OLD_ACQUIRE "{" KEY ",\"UpdateExpression\":\"SET #ownerName = :owner," \
	" #recordVersionNumber = :version, #leaseDuration = :lease, #fencingToken = :token," \
	" #holder = :holder REMOVE #data, #isReleased, #releasedAt, #releasedVersion, #ttl\"," \
	"\"ConditionExpression\":\"(attribute_not_exists(#key) OR attribute_exists(#isReleased)" \
	" OR #recordVersionNumber = :expected) AND" \
	" (attribute_not_exists(#fencingToken) OR #fencingToken < :token)\"," \
	"\"ExpressionAttributeNames\":{\"#key\":\"key\",\"#ownerName\":\"ownerName\"," \
	"\"#recordVersionNumber\":\"recordVersionNumber\"," \
	"\"#leaseDuration\":\"leaseDuration\",\"#fencingToken\":\"fencingToken\"," \
	"\"#holder\":\"holder\",\"#data\":\"data\",\"#isReleased\":\"isReleased\"," \
	"\"#releasedAt\":\"releasedAt\",\"#releasedVersion\":\"releasedVersion\"," \
	"\"#ttl\":\"ttl\"},\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"old/inc\"}," \
	"\":version\":{\"S\":\"x1\"},\":expected\":{\"S\":\"%s\"},\":lease\":{\"S\":\"20000\"}," \
	"\":token\":{\"N\":\"%d\"},\":holder\":{\"M\":{\"owner\":{\"S\":\"old/inc\"}}}}}"

static void
old_acquire(const char *expected, int token, int http_status)
{
	char		body[2048];

	snprintf(body, sizeof(body), OLD_ACQUIRE, expected, token);
	ask_raw("UpdateItem", body, http_status);
}

/* An exclusive write of ours. */
static dynamo_status
exclusive(dynamo_op op, const char *expected, const char *version, int64_t token)
{
	static const dynamo_holder holder;
	dynamo_write write = {
		.op = op,.name = "a",.name_len = 1,.owner = "old/inc",.version = version,
			.expected = expected,.lease_ms = 20000,.first_token = token,.last_token = token,
			.holder = &holder,
			.now_s = 1000
	};
	dynamo_reply reply = ask_body(op, dynamo_build(&table, &write));
	dynamo_status result = reply.results[0].status;

	dynamo_reply_free(&reply);
	return result;
}

TEST(older_ddblock_takes_over_only_what_is_dead)
{
	dynamo_reply reply;

	put_shared_item();
	old_acquire("r0", 300, 400);
	old_acquire("r1", 100, 400);
	old_acquire("r1", 300, 200);
	reply = read_back();
	assert_string_equal(reply.results[0].item.owner, "old/inc");
	assert_true(reply.results[0].item.by_ddblock);
	assert_null(reply.results[0].shared);
	dynamo_reply_free(&reply);
	all_are_refused();

	assert_int_equal(exclusive(DYNAMO_RENEW, "x1", "x2", 0), DYNAMO_OK);
	assert_int_equal(exclusive(DYNAMO_RELEASE, "x2", "x3", 0), DYNAMO_OK);
	all_are_refused();
	begin_entry(DYNAMO_SHARED_OPEN, NULL);
	the_write.first_token = the_write.last_token = 400;
	assert_int_equal(status(), DYNAMO_OK);
}

/* Its release by force leaves the entries, which then mean nothing. */
TEST(older_ddblock_releases_by_force)
{
	put_shared_item();
	assert_int_equal(exclusive(DYNAMO_FORCE_RELEASE, "r0", "x1", 0),
					 DYNAMO_CONDITION_FAILED);
	assert_int_equal(exclusive(DYNAMO_FORCE_RELEASE, "r1", "x1", 0), DYNAMO_OK);
	all_are_refused();
	begin_entry(DYNAMO_SHARED_OPEN, NULL);
	assert_int_equal(status(), DYNAMO_OK);
	patch(&item, "", OPENED);
	assert_item(item);
	patch(&item, "", NULL);
}

TEST(exclusive_acquire_removes_the_map)
{
	cJSON	   *found;

	put_shared_item();
	assert_int_equal(exclusive(DYNAMO_ACQUIRE, "", "x1", 300), DYNAMO_CONDITION_FAILED);
	assert_int_equal(exclusive(DYNAMO_ACQUIRE, "r1", "x1", 300), DYNAMO_OK);
	found = get_item();
	assert_null(cJSON_GetObjectItemCaseSensitive(found, "shared"));
	cJSON_Delete(found);
	all_are_refused();

	/* also with the gate of a waiter, which is its own */
	assert_int_equal(exclusive(DYNAMO_RELEASE, "x1", "x2", 0), DYNAMO_OK);
	patch(&item, "", RELEASED);
	patch(&item, "shared", "{\"M\":{\"gate\":" GATE("g1") "}}");
	put_item(item);
	patch(&item, "", NULL);
	assert_int_equal(exclusive(DYNAMO_ACQUIRE, "", "x3", 300), DYNAMO_OK);
	found = get_item();
	assert_null(cJSON_GetObjectItemCaseSensitive(found, "shared"));
	cJSON_Delete(found);
}

/* No copy of a write is applied twice, whatever came in between. */
TEST(late_copies_are_refused)
{
	put_item(NULL);
	begin_entry(DYNAMO_SHARED_OPEN, NULL);
	assert_int_equal(status(), DYNAMO_OK);
	assert_int_equal(status(), DYNAMO_CONDITION_FAILED);

	begin_entry(DYNAMO_SHARED_JOIN, NULL);
	shared.epoch = "shared/n1";
	shared.me = "you";
	the_write.version = "n2";
	the_write.first_token = the_write.last_token = 201;
	assert_int_equal(status(), DYNAMO_OK);
	assert_int_equal(status(), DYNAMO_CONDITION_FAILED);

	begin(DYNAMO_SHARED_LEAVE, NULL);
	shared.epoch = "shared/n1";
	shared.me = "you";
	the_write.version = "n3";
	the_write.expected = "n2";
	assert_int_equal(status(), DYNAMO_OK);
	assert_int_equal(status(), DYNAMO_CONDITION_FAILED);

	begin_entry(DYNAMO_SHARED_JOIN, NULL);
	shared.epoch = "shared/n1";
	shared.me = "you";
	the_write.version = "n2";
	the_write.first_token = the_write.last_token = 201;
	assert_int_equal(status(), DYNAMO_CONDITION_FAILED);

	begin(DYNAMO_SHARED_LAST, NULL);
	shared.epoch = "shared/n1";
	the_write.version = "n4";
	the_write.expected = "n1";
	assert_int_equal(status(), DYNAMO_OK);
	assert_int_equal(status(), DYNAMO_CONDITION_FAILED);

	begin_entry(DYNAMO_SHARED_OPEN, NULL);
	assert_int_equal(status(), DYNAMO_CONDITION_FAILED);
	the_write.first_token = the_write.last_token = 202;
	the_write.version = "n5";
	assert_int_equal(status(), DYNAMO_OK);
}

/*
 * The largest request: 32 entries with the longest names, 31 of them dead.  DynamoDB
 * takes expressions of at most 4096 bytes.
 */
TEST(join_removes_as_many_dead_as_there_can_be)
{
	static char incarnations[DYNAMO_ENTRIES_MAX][DYNAMO_INCARNATION_SIZE];
	static dynamo_dead_entry dead[DYNAMO_ENTRIES_MAX];
	static char name[256];
	cJSON	   *entries;
	cJSON	   *request;
	char	   *body;
	dynamo_reply reply;

	memset(name, 'x', sizeof(name) - 1);
	patch(&item, "", SHARED(64, ""));
	entries = cJSON_GetObjectItemCaseSensitive(item, "shared")->child;
	entries = cJSON_GetObjectItemCaseSensitive(entries, "h")->child;
	for (int i = 0; i < DYNAMO_ENTRIES_MAX; i++)
	{
		cJSON	   *entry = parse(ENTRY("00000000-0000-4000-8000-000000000000", 2, 86400000,
										1700000000000000, ""));

		cJSON_ReplaceItemInObject(entry->child, "o", cJSON_CreateObject());
		cJSON_AddStringToObject(cJSON_GetObjectItem(entry->child, "o"), "S", name);
		snprintf(incarnations[i], sizeof(incarnations[i]),
				 "00000000-0000-4000-8000-%012d", i);
		cJSON_AddItemToObject(entries, incarnations[i], entry);
		dead[i].incarnation = incarnations[i];
		dead[i].version = "00000000-0000-4000-8000-000000000000";
	}
	put_item(item);
	reply = read_back();
	assert_null(reply.results[0].item.wrong);
	assert_int_equal(reply.results[0].shared->count, DYNAMO_ENTRIES_MAX);
	assert_string_equal(reply.results[0].shared->entries[31].name, name);
	dynamo_reply_free(&reply);

	begin_entry(DYNAMO_SHARED_JOIN, NULL);
	shared.entry.name = name;
	shared.entry.shorter_ms = 20000;
	the_write.lease_ms = 86400000;
	shared.entry.admission = (dynamo_admission) {
		.permits = 1,.limit = 3,.freed = 62,.dead_count = 31,.dead = dead,.dead_gate = "g1"
	};
	body = dynamo_build(&table, &the_write);
	request = parse(body);
	assert_true(strlen(text_of(request, "ConditionExpression")) < 4096);
	assert_true(strlen(text_of(request, "UpdateExpression")) < 4096);
	cJSON_Delete(request);
	free(body);
	reply = send_write(-1);
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(reply.results[0].shared->count, 2);
	assert_int_equal(reply.results[0].shared->total, 3);
	dynamo_reply_free(&reply);
}

/* Two clusters, and a waiter's gate, by what the replies tell. */
TEST(life_of_a_semaphore)
{
	dynamo_reply reply;

	put_item(NULL);
	begin_entry(DYNAMO_SHARED_OPEN, NULL);
	assert_int_equal(status(), DYNAMO_OK);
	begin_entry(DYNAMO_SHARED_OPEN, NULL);
	the_write.version = "n2";
	the_write.first_token = the_write.last_token = 201;
	shared.me = "you";
	reply = send_write(-1);
	assert_int_equal(reply.status, DYNAMO_CONDITION_FAILED);
	assert_string_equal(reply.results[0].item.owner, "shared/n1");
	assert_true(reply.results[0].shared->current);
	assert_int_equal(reply.results[0].shared->mode, MODE_SEMAPHORE);
	assert_int_equal(reply.results[0].shared->count, 1);
	dynamo_reply_free(&reply);

	begin_entry(DYNAMO_SHARED_JOIN, NULL);
	shared.epoch = "shared/n1";
	shared.me = "you";
	shared.entry.name = "two";
	shared.entry.admission.permits = 4;
	the_write.version = "n3";
	the_write.first_token = the_write.last_token = 202;
	reply = send_write(-1);
	assert_int_equal(reply.status, DYNAMO_OK);
	assert_int_equal(reply.results[0].shared->total, 5);
	dynamo_reply_free(&reply);

	begin(DYNAMO_SHARED_GATE, NULL);
	shared.epoch = "shared/n1";
	shared.waiter = "three";
	the_write.version = "g1";
	the_write.expected = "";
	assert_int_equal(status(), DYNAMO_OK);

	begin(DYNAMO_SHARED_RENEW, NULL);
	shared.epoch = "shared/n1";
	in_batch = true;
	the_write.version = "n4";
	the_write.expected = "n1";
	reply = send_write(-1);
	assert_int_equal(reply.results[0].status, DYNAMO_OK);
	assert_true(reply.results[0].shared->gate);
	assert_string_equal(reply.results[0].shared->gate_version, "g1");
	assert_string_equal(reply.results[0].shared->gate_name, "three");
	assert_int_equal(reply.results[0].shared->gate_lease_ms, 20000);
	dynamo_reply_free(&reply);

	begin(DYNAMO_SHARED_LEAVE, NULL);
	shared.epoch = "shared/n1";
	shared.me = "you";
	the_write.version = "n5";
	the_write.expected = "n3";
	assert_int_equal(status(), DYNAMO_OK);
	begin(DYNAMO_SHARED_LAST, NULL);
	shared.epoch = "shared/n1";
	the_write.version = "n6";
	the_write.expected = "n4";
	assert_int_equal(status(), DYNAMO_OK);

	reply = read_back();
	assert_true(reply.results[0].item.released);
	assert_int_equal(reply.results[0].item.released_at, 1000);
	assert_false(reply.results[0].shared->current);
	assert_true(reply.results[0].shared->gate);
	dynamo_reply_free(&reply);
}
