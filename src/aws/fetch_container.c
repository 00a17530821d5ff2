/*-------------------------------------------------------------------------
 *
 * fetch_container.c
 *	  Credentials of a container: ECS, EKS Pod Identity.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <openssl/crypto.h>


#define TIMEOUT_MS 2000

/* The token's file is read each time: EKS replaces it. */
static bool
ask(aws_fetch *fetch, const aws_environment *env, int64_t now_s)
{
	const char *file = fetch->plan.from.container.token_file;
	const char *token = fetch->plan.from.container.token;

	(void) now_s;
	if (aws_is_set(file))
	{
		if (!aws_read_token(fetch, env, file, fetch->token, sizeof(fetch->token)))
			return false;
		token = fetch->token;
	}
	return aws_errand_request(fetch, "GET", TIMEOUT_MS, fetch->plan.from.container.url, "") &&
		aws_errand_header(fetch, "Accept", "application/json") &&
		(!aws_is_set(token) || aws_errand_header(fetch, "Authorization", token));
}

static bool
take(aws_fetch *fetch, const aws_result *result, int64_t now_s)
{
	cJSON	   *json;
	bool		ok;

	(void) now_s;
	if (!aws_fetch_succeeded(fetch, result, "credentials"))
		return false;
	json = cJSON_ParseWithLength(result->body, result->len);
	ok = aws_take_json(fetch, "credentials", json, aws_role_names);
	aws_json_free(json);
	return ok;
}

const aws_fetcher aws_fetch_container = {ask, take};
