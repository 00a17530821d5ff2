/*-------------------------------------------------------------------------
 *
 * fetch_container.c
 *	  Fetches the credentials of a container: ECS, EKS Pod Identity.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#define TIMEOUT_MS 2000

/* Asks for credentials.  Reads the token's file each time, because EKS replaces it. */
static bool
ask(aws_fetch *fetch)
{
	const char *file = fetch->plan.from.container.token_file;
	const char *token = fetch->plan.from.container.token;

	if (aws_is_set(file))
	{
		if (!aws_read_token(fetch, file, fetch->token, sizeof(fetch->token)))
			return false;
		token = fetch->token;
	}
	return aws_errand_request(fetch, "GET", TIMEOUT_MS, fetch->plan.from.container.url, "") &&
		aws_errand_header(fetch, "Accept", "application/json") &&
		(!aws_is_set(token) || aws_errand_header(fetch, "Authorization", token));
}

static bool
take(aws_fetch *fetch, const aws_result *result)
{
	return aws_fetch_succeeded(fetch, result, "credentials") &&
		aws_take_json(fetch, "credentials", fetch->json, aws_role_names);
}

const aws_fetcher aws_fetch_container = {ask, take};
