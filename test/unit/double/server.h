/*-------------------------------------------------------------------------
 *
 * server.h
 *	  The server of a test: the DynamoDB double, in this process; or DynamoDB Local,
 *	  if DDBLOCK_DYNAMODB_PORT names its port (test/check-double).
 *
 * Each test begins with an empty table "lockTable", with the key "key".
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_TEST_SERVER_H
#define DDBLOCK_TEST_SERVER_H

#define BEFORE_EACH start_server
#define AFTER_EACH stop_server
#include "../unit.h"

#include <cjson/cJSON.h>
#include <curl/curl.h>

#include "dynamo/dynamo.h"
#include "dynamo_double.h"

#define API "DynamoDB_20120810."
#define REPLY_ROOM (1024 * 1024)

static const dynamo_table table = {
	.name = "lockTable",.partition_key = "key"
};

static dynamo_double *double_server;
static CURL *local_server;
static char server_reply[REPLY_ROOM];
static size_t server_reply_len;

static inline size_t
keep_reply(char *bytes, size_t size, size_t count, void *arg)
{
	(void) arg;
	if (server_reply_len + size * count >= REPLY_ROOM)
		return 0;
	memcpy(server_reply + server_reply_len, bytes, size * count);
	server_reply_len += size * count;
	return size * count;
}

static inline int
ask_local(const char *target, const char *body)
{
	struct curl_slist *headers = NULL;
	char		header[128];
	long		status = 0;

	snprintf(header, sizeof(header), "X-Amz-Target: %s", target);
	headers = curl_slist_append(headers, header);
	headers = curl_slist_append(headers, "Content-Type: application/x-amz-json-1.0");
	headers = curl_slist_append(headers, "Authorization: AWS4-HMAC-SHA256"
								" Credential=test/20260101/us-east-1/dynamodb/aws4_request,"
								" SignedHeaders=host, Signature=0");
	curl_easy_setopt(local_server, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(local_server, CURLOPT_POSTFIELDS, body);
	assert_int_equal(curl_easy_perform(local_server), CURLE_OK);
	curl_easy_getinfo(local_server, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(headers);
	return (int) status;
}

static inline int
ask_double(const char *target, const char *body)
{
	char	   *reply;
	int			status = dynamo_double_request(double_server, target, body, strlen(body),
											   &reply, &server_reply_len);

	assert_true(server_reply_len < REPLY_ROOM);
	memcpy(server_reply, reply, server_reply_len);
	free(reply);
	return status;
}

/* The HTTP status; the body is in server_reply. */
static inline int
ask_server(const char *target, const char *body)
{
	int			status;

	server_reply_len = 0;
	status = local_server != NULL ? ask_local(target, body) : ask_double(target, body);
	server_reply[server_reply_len] = '\0';
	return status;
}

/* The same for a request that is not ours; it must have that status. */
static inline void
ask_raw(const char *operation, const char *body, int expected)
{
	char		target[64];
	int			status;

	snprintf(target, sizeof(target), API "%s", operation);
	status = ask_server(target, body);
	if (status != expected)
		fail_msg("%d instead of %d for %s %s: %s", status, expected, operation, body,
				 server_reply);
}

/* Frees body; the caller frees the reply. */
static inline dynamo_reply
ask_body(dynamo_op op, char *body)
{
	dynamo_reply reply;
	int			status;

	assert_non_null(body);
	status = ask_server(dynamo_target(op), body);
	dynamo_read(&reply, NULL, op, 1, status, NULL, server_reply, server_reply_len);
	free(body);
	return reply;
}

static int
start_server(void **state)
{
	const char *port = getenv("DDBLOCK_DYNAMODB_PORT");
	char		url[64];
	char	   *body;

	(void) state;
	if (port != NULL)
	{
		snprintf(url, sizeof(url), "http://127.0.0.1:%s/", port);
		local_server = curl_easy_init();
		curl_easy_setopt(local_server, CURLOPT_URL, url);
		curl_easy_setopt(local_server, CURLOPT_WRITEFUNCTION, keep_reply);
		(void) ask_server(API "DeleteTable", "{\"TableName\":\"lockTable\"}");
	}
	else
		double_server = dynamo_double_new();
	body = dynamo_build_create_table(&table, &(dynamo_creation) {0});
	assert_int_equal(ask_server(API "CreateTable", body), 200);
	free(body);
	return 0;
}

static int
stop_server(void **state)
{
	(void) state;
	curl_easy_cleanup(local_server);
	if (double_server != NULL)
		dynamo_double_free(double_server);
	local_server = NULL;
	double_server = NULL;
	return 0;
}

/* ---- one item ---- */

static inline cJSON *
parse(const char *json)
{
	cJSON	   *tree = cJSON_ParseWithOpts(json, NULL, true);

	if (tree == NULL)
		fail_msg("not JSON: %s", json);
	return tree;
}

/* Puts an item in the place of what is there; NULL: none. */
static inline void
put_item(const cJSON *item)
{
	cJSON	   *request = cJSON_CreateObject();
	char	   *body;

	cJSON_AddStringToObject(request, "TableName", "lockTable");
	if (item != NULL)
		cJSON_AddItemToObject(request, "Item", cJSON_Duplicate(item, 1));
	else
		cJSON_AddItemToObject(request, "Key", parse("{\"key\":{\"S\":\"a\"}}"));
	body = cJSON_PrintUnformatted(request);
	ask_raw(item != NULL ? "PutItem" : "DeleteItem", body, 200);
	free(body);
	cJSON_Delete(request);
}

/* The item, or NULL; the caller deletes it. */
static inline cJSON *
get_item(void)
{
	cJSON	   *reply;
	cJSON	   *item;

	ask_raw("GetItem", "{\"TableName\":\"lockTable\",\"Key\":{\"key\":{\"S\":\"a\"}},"
			"\"ConsistentRead\":true}", 200);
	reply = parse(server_reply);
	item = cJSON_DetachItemFromObjectCaseSensitive(reply, "Item");
	cJSON_Delete(reply);
	return item;
}

static inline void
assert_item(const cJSON *expected)
{
	cJSON	   *found = get_item();
	char	   *text = cJSON_PrintUnformatted(found);
	char	   *wanted = cJSON_PrintUnformatted(expected);

	if ((found == NULL) != (expected == NULL) ||
		(found != NULL && !cJSON_Compare(found, expected, true)))
		fail_msg("the item is %s\ninstead of %s", text, wanted);
	free(text);
	free(wanted);
	cJSON_Delete(found);
}

/*
 * Changes what stands at a path, such as "shared.h.me.v".  value NULL removes it; an
 * empty path stands for the whole item.
 */
static inline void
patch(cJSON **item, const char *path, const char *value)
{
	char		names[128];
	char	   *rest;
	cJSON	   *at = *item;
	char	   *name;
	char	   *next;

	if (path[0] == '\0')
	{
		cJSON_Delete(*item);
		*item = value != NULL ? parse(value) : NULL;
		return;
	}
	snprintf(names, sizeof(names), "%s", path);
	name = strtok_r(names, ".", &rest);
	while ((next = strtok_r(NULL, ".", &rest)) != NULL)
	{
		at = cJSON_GetObjectItemCaseSensitive(at, name);
		at = cJSON_GetObjectItemCaseSensitive(at, "M");
		assert_non_null(at);
		name = next;
	}
	cJSON_DeleteItemFromObjectCaseSensitive(at, name);
	if (value != NULL)
		cJSON_AddItemToObject(at, name, parse(value));
}

#endif							/* DDBLOCK_TEST_SERVER_H */
