/*-------------------------------------------------------------------------
 *
 * test_dynamo_errors.c
 *	  Each kind of error in words.
 *
 * data/errors has them as a user reads them: a line with the operation and what came (an HTTP
 * status and a body, or what the transport says), then SQLSTATE and message, DETAIL and HINT.
 *
 *-------------------------------------------------------------------------
 */
#include "../unit.h"
#include "dynamo/dynamo.h"

#include <errno.h>

#define KINDS_MIN 68

typedef struct transport_status
{
	const char *name;
	dynamo_status status;
} transport_status;

static const transport_status transport[] = {
	{"not-sent", DYNAMO_UNREACHABLE},
	{"not-trusted", DYNAMO_UNTRUSTED},
	{"foreign", DYNAMO_WRONG_SERVICE},
	{"no-reply", DYNAMO_UNKNOWN},
	{"no-credentials", DYNAMO_CREDENTIALS},
};

static dynamo_op
op_named(const char *name)
{
	int			op = 0;

	while (op < DYNAMO_OP_COUNT && strcmp(dynamo_op_name((dynamo_op) op), name) != 0)
		op++;
	if (op == DYNAMO_OP_COUNT)
		fail_msg("no operation \"%s\"", name);
	return (dynamo_op) op;
}

/* what: "400" or a name above; body: the rest of the line. */
static void
read_reply(dynamo_reply *reply, dynamo_op op, const char *what, const char *body)
{
	for (size_t i = 0; i < COUNT_OF(transport); i++)
	{
		if (strcmp(transport[i].name, what) == 0)
		{
			dynamo_read_failure(reply, 1, transport[i].status, body);
			return;
		}
	}
	dynamo_read(reply, NULL, op, 1, atoi(what), NULL, body, strlen(body));
}

/* As PostgreSQL shows it.  A batch's statement fails alone. */
static void
say(char *to, size_t size, dynamo_op op, const dynamo_reply *reply)
{
	bool		whole = reply->status != DYNAMO_OK;
	dynamo_status status = whole ? reply->status : reply->results[0].status;
	const char *text = whole ? reply->message : reply->results[0].message;
	const dynamo_words *words = dynamo_error_words(status, text);
	bool		endpoint = strstr(words->message, "at %s") != NULL;
	const char *place = strstr(words->message, "%s");
	char		detail[1024];

	dynamo_error_detail(detail, sizeof(detail), status, op, text);
	snprintf(to, size, "%s %.*s%s%s\nDETAIL: %s\nHINT: %s\n", words->sqlstate,
			 (int) (place != NULL ? (size_t) (place - words->message) : strlen(words->message)),
			 words->message,
			 place == NULL ? "" : endpoint ? "https://dynamodb.eu-central-1.amazonaws.com" :
			 dynamo_is_queue(op) ? "queue table \"queueTable\"" : "lock table \"lockTable\"",
			 place != NULL ? place + strlen("%s") : "", detail,
			 words->hint != NULL ? words->hint : "-");
}

TEST(each_kind_of_error_in_words)
{
	FILE	   *file = fopen(TEST_DATA_DIR "/errors", "r");
	char		line[2048];
	int			kinds = 0;
	int			wrong = 0;

	if (file == NULL)
		fail_msg("cannot read data/errors: %s", strerror(errno));
	while (fgets(line, sizeof(line), file) != NULL)
	{
		dynamo_reply reply;
		char		name[64];
		char		what[32];
		char		wanted[4096] = "";
		char		said[4096];
		int			body;
		dynamo_op	op;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%63s %31s %n", name, what, &body) != 2)
			continue;			/* between two kinds */
		op = op_named(name);
		read_reply(&reply, op, what, line + body);
		say(said, sizeof(said), op, &reply);
		dynamo_reply_free(&reply);
		for (int i = 0; i < 3 && fgets(line, sizeof(line), file) != NULL; i++)
			strncat(wanted, line, sizeof(wanted) - strlen(wanted) - 1);
		kinds++;
		if (strcmp(said, wanted) == 0)
			continue;
		print_error("wanted:\n%ssaid:\n%s", wanted, said);
		wrong++;
	}
	fclose(file);
	assert_int_equal(wrong, 0);
	assert_true(kinds >= KINDS_MIN);
}

static void
assert_words(const char *text, const char *like)
{
	if (dynamo_error_words(DYNAMO_UNKNOWN, text) != dynamo_error_words(DYNAMO_UNKNOWN, like))
		fail_msg("\"%s\" is not explained as \"%s\" is", text, like);
}

/* Of an error that nobody knows, its type shows that the server itself has failed. */
TEST(types_are_told_from_phases_of_the_transport_and_sentences)
{
	assert_words("NewFault1: m", "ServiceUnavailable: m");
	assert_words("NewFault1", "ServiceUnavailable: m");
	assert_words("Oops: m", "ServiceUnavailable: m");
	assert_words("TLS: the server has closed the connection", "reply: too late");
	assert_words("TLS", "reply: too late");
	assert_words("Rejected by a proxy", "reply: too late");
	assert_words("newFault: m", "reply: too late");
}
