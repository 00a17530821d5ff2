/*-------------------------------------------------------------------------
 *
 * fetch_sso.c
 *	  Fetches the credentials of a role of IAM Identity Center, with the access token that
 *	  "aws sso login" has left in its cache.
 *
 * An access token that has expired is exchanged for a new one, if the cache has a refresh token and
 * a client's registration.  The new token serves for one fetch: the cache is not written.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#define TIMEOUT_MS 10000

/* Is the cache's time of this name over, or missing, or unreadable? */
static bool
expired(const aws_fetch *fetch, const cJSON *cache, const char *name)
{
	const char *text = aws_json_text(cache, name);

	return text == NULL || aws_read_time(text) <= fetch->now_s;
}

/* Prepares the errand that exchanges the cache's refresh token for an access token. */
static bool
ask_token(aws_fetch *fetch, const cJSON *cache)
{
	static const char *const from[] = {"clientId", "clientSecret", "refreshToken"};
	cJSON	   *body = cJSON_CreateObject();
	bool		ok = !expired(fetch, cache, "registrationExpiresAt");

	for (int i = 0; i < 3; i++)
	{
		const char *value = aws_json_text(cache, from[i]);

		ok = ok && value != NULL && cJSON_AddStringToObject(body, from[i], value) != NULL;
	}
	ok = ok && cJSON_AddStringToObject(body, "grantType", "refresh_token") != NULL;
	if (!ok)
		aws_fetch_fail(fetch, "the token in \"%.300s\" has expired: run \"aws sso login\"",
					   fetch->plan.from.sso.token_file);
	else
		ok = aws_errand_request(fetch, "POST", TIMEOUT_MS, fetch->plan.from.sso.oidc_url,
								"/token") &&
			aws_errand_header(fetch, "Content-Type", "application/json") &&
			cJSON_PrintPreallocated(body, fetch->errand.body,
									sizeof(fetch->errand.body), false);
	aws_json_free(body);
	return ok;
}

static bool
ask_credentials(aws_fetch *fetch)
{
	char		query[AWS_TEXT_SIZE] = "";
	char		path[sizeof(query) + 30];

	if (!aws_add_field(query, sizeof(query), "role_name", fetch->plan.from.sso.role_name) ||
		!aws_add_field(query, sizeof(query), "account_id", fetch->plan.from.sso.account_id))
		return aws_fetch_fail(fetch, "URL is too long");
	snprintf(path, sizeof(path), "/federation/credentials?%s", query);
	return aws_errand_request(fetch, "GET", TIMEOUT_MS, fetch->plan.from.sso.url, path) &&
		aws_errand_header(fetch, "x-amz-sso_bearer_token", fetch->token);
}

/*
 * Step 0 reads the cache.  If the access token in it has expired, step 0 asks for a new one.
 * Otherwise it goes on to step 1, which asks for credentials.
 */
static bool
ask(aws_fetch *fetch)
{
	const char *path = fetch->plan.from.sso.token_file;
	const char *token;
	char	   *text;
	size_t		len = 0;
	cJSON	   *cache;
	bool		ok;

	if (fetch->step == 1)
		return ask_credentials(fetch);
	text = fetch->env->read_file(fetch->env->arg, path, &len);
	if (text == NULL)
		return aws_fetch_fail(fetch, "cannot read \"%.300s\": run \"aws sso login\"", path);
	cache = cJSON_ParseWithLength(text, len);
	OPENSSL_cleanse(text, len);
	free(text);
	token = aws_json_text(cache, "accessToken");
	if (token == NULL || !aws_copy_text(token, fetch->token, sizeof(fetch->token)))
		ok = aws_fetch_fail(fetch, "no token in \"%.300s\": run \"aws sso login\"", path);
	else if (expired(fetch, cache, "expiresAt"))
		ok = ask_token(fetch, cache);
	else
	{
		fetch->step = 1;
		ok = ask_credentials(fetch);
	}
	aws_json_free(cache);
	return ok;
}

static bool
take(aws_fetch *fetch, const aws_result *result)
{
	static const char *const names[] = {
		"accessKeyId", "secretAccessKey", "sessionToken", ""
	};
	const cJSON *object = cJSON_GetObjectItemCaseSensitive(fetch->json, "roleCredentials");
	const cJSON *expiration = cJSON_GetObjectItemCaseSensitive(object, "expiration");

	if (result->done && result->status == 401)
		return aws_fetch_fail(fetch, "the token is refused: run \"aws sso login\"");
	if (fetch->step == 0)
	{
		const char *token = aws_json_text(fetch->json, "accessToken");

		if (!aws_fetch_succeeded(fetch, result, "new token"))
			return false;
		if (token == NULL || !aws_copy_text(token, fetch->token, sizeof(fetch->token)))
			return aws_fetch_fail(fetch, "new token: the reply has none");
		fetch->step = 1;
		return true;
	}
	if (!aws_fetch_succeeded(fetch, result, "credentials") ||
		!aws_take_json(fetch, "credentials", object, names))
		return false;
	/* The time of expiry is a number, in milliseconds. */
	if (cJSON_IsNumber(expiration) && expiration->valuedouble > 0 &&
		expiration->valuedouble < 1e15)
		fetch->found.expires_s = (int64_t) (expiration->valuedouble / 1000);
	return true;
}

const aws_fetcher aws_fetch_sso = {ask, take};
