/*-------------------------------------------------------------------------
 *
 * dynamo_reply.c
 *	  Reads DynamoDB's replies.
 *
 * A reply is first checked as a whole: size, checksum, HTTP status, error type.
 * Only a 200 with the JSON that the operation promises is read further.  If a
 * write may have been applied, the status is DYNAMO_UNKNOWN, DYNAMO_MALFORMED or
 * DYNAMO_WRONG_SERVICE, never a refusal.
 *
 *-------------------------------------------------------------------------
 */
#include "dynamo/dynamo_codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXCERPT_SIZE 201		/* bytes of an unexpected reply in its message */
#define WORDS_SIZE 4096			/* room for the words of an error, before the middle of a long
								 * one is left out */

/* A reply as received. */
typedef struct incoming
{
	dynamo_op	op;
	const dynamo_table *table;	/* of a page */
	int			http_status;
	bool		has_checksum;
	const char *error_type;		/* a header's, "" if there is none */
	const char *body;
	size_t		len;
} incoming;

/* Zeroes *reply and makes room for count results; false if memory is short. */
static bool
start_reply(dynamo_reply *reply, int count)
{
	memset(reply, 0, sizeof(*reply));
	if (count > 0)
		reply->results = calloc((size_t) count, sizeof(dynamo_result));
	if (reply->results == NULL)
	{
		reply->status = DYNAMO_MALFORMED;
		snprintf(reply->message, sizeof(reply->message), "out of memory");
		return false;
	}
	reply->count = count;
	return true;
}

/* The call failed as a whole: copies its status to each result. */
static void
spread_failure(dynamo_reply *reply)
{
	for (int i = 0; i < reply->count; i++)
	{
		dynamo_result *result = &reply->results[i];

		result->status = reply->status;
		memcpy(result->message, reply->message, sizeof(result->message));
	}
}

/*
 * Is the reply certainly not from DynamoDB?  DynamoDB's replies are JSON objects with a checksum,
 * and its errors have a type.  Repeating the request would not help.
 */
static bool
is_foreign(const incoming *in, const char *type)
{
	int			status = in->http_status;
	size_t		blanks = 0;

	if (in->has_checksum || type != NULL)
		return false;
	while (blanks < in->len && memchr(" \t\r\n", in->body[blanks], 4) != NULL)
		blanks++;
	if (status == 200)
		return blanks < in->len && in->body[blanks] != '{';
	/* These statuses may come from DynamoDB, or from a proxy while DynamoDB is busy. */
	return !(status < 300 || status == 408 || status == 413 || status == 429 ||
			 (status >= 500 && status != 501 && status != 505));
}

/* An unreadable reply: the message shows its beginning. */
static void
set_malformed(dynamo_reply *reply, const incoming *in, const char *type)
{
	char		excerpt[EXCERPT_SIZE];
	size_t		len = in->len < sizeof(excerpt) - 1 ? in->len : sizeof(excerpt) - 1;

	for (size_t i = 0; i < len; i++)
		excerpt[i] = in->body[i] >= ' ' && in->body[i] <= '~' ? in->body[i] : '?';
	excerpt[len] = '\0';
	reply->status = is_foreign(in, type) ? DYNAMO_WRONG_SERVICE : DYNAMO_MALFORMED;
	snprintf(reply->message, sizeof(reply->message),
			 "unexpected reply, HTTP %d: %s", in->http_status, excerpt);
}

/*
 * Appends words for people.  DynamoDB's message on a wrong signature has, after
 * a line end, what should have been signed, session token included; the one on
 * an incomplete signature repeats the header.  Both are cut off.
 */
static void
append(char words[WORDS_SIZE], const char *more)
{
	size_t		len = strlen(words);
	char	   *to = words + len;
	char	   *header;

	dynamo_json_copy(to, WORDS_SIZE - len, more);
	to[strcspn(to, "\r\n")] = '\0';
	header = strstr(to, " Authorization=");
	if (header != NULL)
		*header = '\0';
}

/*
 * Begins with "type: message", or with one of them if the other is missing.  A type may be NULL, have
 * a prefix that ends with '#', and have something behind it that begins with ':'.
 */
static void
start_words(char words[WORDS_SIZE], const char *type, const cJSON *error)
{
	const char *message = dynamo_json_text(error, "message");
	const char *hash;

	if (message == NULL)
		message = dynamo_json_text(error, "Message");
	dynamo_json_copy(words, DYNAMO_MESSAGE_SIZE / 2, type);
	words[strcspn(words, ":")] = '\0';
	hash = strrchr(words, '#');
	if (hash != NULL)
		memmove(words, hash + 1, strlen(hash));
	append(words, words[0] != '\0' && message != NULL && message[0] != '\0' ? ": " : "");
	append(words, message);
}

/*
 * Copies words, without their middle if they are too long: the beginning tells what failed, the
 * end often why.
 */
static void
copy_words(char message[DYNAMO_MESSAGE_SIZE], const char *words)
{
	static const char gap[] = " ... ";
	const char *end = words + strlen(words);

	if (end - words < DYNAMO_MESSAGE_SIZE)
	{
		memcpy(message, words, (size_t) (end - words) + 1);
		return;
	}
	end -= DYNAMO_MESSAGE_SIZE / 2 - sizeof(gap);
	while (((unsigned char) *end & 0xc0) == 0x80)
		end++;					/* the rest of a UTF-8 character */
	dynamo_json_copy(message, DYNAMO_MESSAGE_SIZE / 2, words);
	strcat(strcat(message, gap), end);
}

/*
 * Appends which limit was reached, and of what: "(TableWriteKeyRangeThroughputExceeded arn:...)".
 */
static void
add_reasons(char words[WORDS_SIZE], const cJSON *reasons)
{
	const cJSON *reason;

	cJSON_ArrayForEach(reason, reasons)
	{
		const char *why = dynamo_json_text(reason, "reason");
		const char *resource = dynamo_json_text(reason, "resource");
		const char *const parts[] = {" (", why != NULL ? why : "?", " ",
		resource != NULL ? resource : "?", ")"};

		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			append(words, parts[i]);
	}
}

/*
 * The status of a reply other than 200.  A server that fails may have applied the
 * write, unless it says that it throttled us.
 */
static dynamo_status
status_of_error(const incoming *in, const char *type, const char *message)
{
	dynamo_status status = dynamo_error_status(message);

	if (in->http_status >= 500)
		return status == DYNAMO_THROTTLED ? status : DYNAMO_UNKNOWN;
	if (in->http_status < 400)
		return DYNAMO_MALFORMED;
	if (in->http_status == 429 && type == NULL)
		return DYNAMO_THROTTLED;
	if (in->http_status == 413)
		return DYNAMO_VALIDATION;
	if (status == DYNAMO_CONDITION_FAILED && !dynamo_is_single_write(in->op))
		return DYNAMO_MALFORMED;
	return status;
}

/*
 * Why a transaction was cancelled: the first of its reasons that says more than "try again",
 * else the last, or NULL.  Reasons of writes that are innocent have the code "None".
 */
static const cJSON *
find_reason(const cJSON *json)
{
	const cJSON *counts = NULL;
	const cJSON *reason;

	cJSON_ArrayForEach(reason, dynamo_json_member(json, "CancellationReasons"))
	{
		const char *code = dynamo_json_text(reason, "Code");

		if (code == NULL || strcmp(code, "None") == 0)
			continue;
		counts = reason;
		if (!dynamo_is_transient(dynamo_error_status(code)))
			break;
	}
	return counts;
}

/* Takes over an item, after its result's status and message have been set. */
static void
set_item(dynamo_result *result, const cJSON *attributes)
{
	bool		is_item = dynamo_item_read(attributes, &result->item, &result->shared);
	bool		unusable = is_item && dynamo_unusable(&result->item, result->shared) != NULL;

	if (unusable)
		result->json = dynamo_sorted_json(attributes);
	if (is_item && (!unusable || result->json != NULL))
		return;
	result->status = DYNAMO_MALFORMED;
	snprintf(result->message, sizeof(result->message), "%s",
			 is_item ? "out of memory" : "the lock item is not a JSON object");
}

/* The call's status is the status of its only result. */
static void
adopt_result(dynamo_reply *reply)
{
	reply->status = reply->results[0].status;
	memcpy(reply->message, reply->results[0].message, sizeof(reply->message));
}

/* Reads a reply other than 200.  json: the body; NULL if that is not JSON. */
static void
read_error(dynamo_reply *reply, const incoming *in, const cJSON *json)
{
	static const char cancelled[] = "TransactionCanceledException";
	const char *type = dynamo_json_text(json, "__type");
	char		words[WORDS_SIZE];

	if (type == NULL && in->error_type[0] != '\0')
		type = in->error_type;
	start_words(words, type, json);
	if (in->op == DYNAMO_QUEUE_TRANSACT && in->http_status == 400 &&
		strncmp(words, cancelled, strlen(cancelled)) == 0)
	{
		const cJSON *reason = find_reason(json);

		reply->status = DYNAMO_CONFLICT;
		if (reason != NULL)
		{
			start_words(words, dynamo_json_text(reason, "Code"), reason);
			reply->status = dynamo_error_status(words);
		}
	}
	else
		reply->status = status_of_error(in, type, words);
	add_reasons(words, dynamo_json_member(json, "ThrottlingReasons"));
	copy_words(reply->message, words);
	if (is_foreign(in, type) || (reply->status == DYNAMO_MALFORMED && type == NULL))
		set_malformed(reply, in, type);
	else if (reply->message[0] == '\0')
		snprintf(reply->message, sizeof(reply->message), "HTTP status %d", in->http_status);
	spread_failure(reply);
	if (reply->status == DYNAMO_CONDITION_FAILED && !dynamo_is_queue(in->op))
	{
		set_item(&reply->results[0], dynamo_json_member(json, "Item"));
		adopt_result(reply);
	}
}

/* The capacity that a reply says was consumed: one object, or an array with one for each table. */
static double
total_capacity(const cJSON *consumed)
{
	const cJSON *units = dynamo_json_member(consumed, "CapacityUnits");
	const cJSON *entry;
	double		sum = cJSON_IsNumber(units) && units->valuedouble > 0 ? units->valuedouble : 0;

	if (cJSON_IsArray(consumed))
		cJSON_ArrayForEach(entry, consumed)
			sum += total_capacity(entry);
	return sum;
}

/*
 * Does a success show that DynamoDB has answered this request?  It does if it has what the request
 * asked for, or DynamoDB's checksum.  A server that understands nothing sends an empty object.
 */
static bool
is_evident(const incoming *in, const cJSON *json)
{
	const cJSON *consumed = dynamo_json_member(json, "ConsumedCapacity");

	return in->has_checksum || cJSON_IsObject(consumed) ||
		(cJSON_IsArray(consumed) && cJSON_GetArraySize(consumed) > 0) ||
		cJSON_IsObject(dynamo_json_member(json, "Attributes")) ||
		cJSON_IsObject(dynamo_json_member(json, "Item"));
}

/*
 * Reads the responses to a batch.  False if there are not as many as statements were sent, or if
 * one without an error does not show that DynamoDB has made it.
 */
static bool
read_statements(dynamo_reply *reply, const cJSON *responses, bool evident)
{
	const cJSON *statement;
	int			i = 0;

	if (!cJSON_IsArray(responses) || cJSON_GetArraySize(responses) != reply->count)
		return false;
	cJSON_ArrayForEach(statement, responses)
	{
		const cJSON *error = dynamo_json_member(statement, "Error");
		const cJSON *item = dynamo_json_member(statement, "Item");
		dynamo_result *result = &reply->results[i++];

		if (!cJSON_IsObject(statement) || (error != NULL && !cJSON_IsObject(error)) ||
			(error == NULL && !evident && !cJSON_IsObject(item) &&
			 dynamo_json_text(statement, "TableName") == NULL))
			return false;
		if (error != NULL)
		{
			char		words[WORDS_SIZE];

			start_words(words, dynamo_json_text(error, "Code"), error);
			copy_words(result->message, words);
			result->status = dynamo_error_status(result->message);
			if (result->status == DYNAMO_CONDITION_FAILED)
				set_item(result, dynamo_json_member(error, "Item"));
		}
		else
			(void) dynamo_item_read(item, &result->item, &result->shared);	/* it may be missing */
	}
	return true;
}

/* Reads a page of lock items; false if it is none.  An incomplete page counts as no reply. */
static bool
read_page(dynamo_reply *reply, const incoming *in, const cJSON *json)
{
	const char *wrong = NULL;

	if (in->table == NULL)
		return false;
	reply->status = dynamo_page_read(&reply->page, in->table, json, in->body, in->len, &wrong);
	if (reply->status == DYNAMO_OK || wrong == NULL)
		return reply->status == DYNAMO_OK;
	dynamo_page_free(&reply->page);
	snprintf(reply->message, sizeof(reply->message), "%s", wrong);
	spread_failure(reply);
	return true;
}

/* Reads what the operation promises; false if it is missing. */
static bool
read_success(dynamo_reply *reply, const incoming *in, const cJSON *json)
{
	dynamo_result *first = &reply->results[0];

	switch (dynamo_api_of(in->op))
	{
		case API_BATCH:
			return read_statements(reply, dynamo_json_member(json, "Responses"),
								   is_evident(in, json));
		case API_GET_ITEM:
			if (dynamo_is_queue(in->op))
				break;
			if (!is_evident(in, json))
				return false;
			set_item(first, dynamo_json_member(json, "Item"));
			adopt_result(reply);
			return true;
		case API_UPDATE_ITEM:
		case API_PUT_ITEM:
		case API_DELETE_ITEM:
			if (!dynamo_is_queue(in->op))
				(void) dynamo_item_read(dynamo_json_member(json, "Attributes"), &first->item,
										&first->shared);	/* it may be missing */
			break;
		case API_DESCRIBE_TABLE:
			return dynamo_table_read(&reply->table, dynamo_json_member(json, "Table"));
		case API_CREATE_TABLE:
			return dynamo_table_read(&reply->table, dynamo_json_member(json, "TableDescription"));
		case API_UPDATE_TTL:
			return dynamo_json_member(json, "TimeToLiveSpecification") != NULL;
		case API_DESCRIBE_TTL:
			json = dynamo_json_member(json, "TimeToLiveDescription");
			dynamo_json_copy(reply->table.ttl_attribute, sizeof(reply->table.ttl_attribute),
							 dynamo_json_text(json, "AttributeName"));
			return dynamo_json_text(json, "TimeToLiveStatus") != NULL;
		case API_QUERY:
		case API_SCAN:
			return dynamo_is_queue(in->op) ? cJSON_IsArray(dynamo_json_member(json, "Items")) :
				read_page(reply, in, json);
		case API_TRANSACT:
			break;
	}
	return is_evident(in, json) && dynamo_json_member(json, "__type") == NULL;
}

/* Frees and clears the results. */
static void
clear_results(dynamo_reply *reply)
{
	for (int i = 0; i < reply->count; i++)
	{
		dynamo_item_clear(&reply->results[i].item);
		free(reply->results[i].shared);
		free(reply->results[i].json);
	}
	dynamo_page_free(&reply->page);
	if (reply->count > 0)
		memset(reply->results, 0, (size_t) reply->count * sizeof(dynamo_result));
}

void
dynamo_read(dynamo_reply *reply, const dynamo_table *table, dynamo_op op, int count,
			int http_status, const dynamo_headers *headers, const char *body, size_t len)
{
	const char *crc = headers != NULL ? headers->crc32 : "";
	const incoming in = {op, table, http_status, crc[0] != '\0',
	headers != NULL ? headers->error_type : "", body, len};
	bool		too_long = len > DYNAMO_REPLY_MAX;
	char		checksum[16];
	cJSON	   *json;

	if (!start_reply(reply, count))
		return;
	snprintf(checksum, sizeof(checksum), "%lu", (unsigned long) crc32_of(body, len));
	if (!too_long && in.has_checksum && strcmp(crc, checksum) != 0)
	{
		reply->status = DYNAMO_UNKNOWN;
		snprintf(reply->message, sizeof(reply->message),
				 "the reply does not match its checksum");
		spread_failure(reply);
		return;
	}
	json = too_long ? NULL : dynamo_json_parse(body, len);
	if (http_status != 200 && !too_long)
		read_error(reply, &in, json);
	else if (json != NULL && read_success(reply, &in, json))
		reply->consumed = total_capacity(dynamo_json_member(json, "ConsumedCapacity"));
	else
	{
		clear_results(reply);
		set_malformed(reply, &in, NULL);
		spread_failure(reply);
	}
	/* The caller of a queue's operation reads the JSON of a success or of a refusal itself. */
	if (dynamo_is_queue(op) && !dynamo_is_failure(reply->status))
		reply->json = json;
	else
		cJSON_Delete(json);
}

void
dynamo_read_failure(dynamo_reply *reply, int count, dynamo_status status,
					const char *message)
{
	if (!start_reply(reply, count))
		return;
	reply->status = status;
	dynamo_json_copy(reply->message, sizeof(reply->message), message);
	spread_failure(reply);
}

void
dynamo_reply_free(dynamo_reply *reply)
{
	clear_results(reply);
	free(reply->results);
	cJSON_Delete(reply->json);
	reply->json = NULL;
	reply->results = NULL;
	reply->count = 0;
}
