/*-------------------------------------------------------------------------
 *
 * fetch_process.c
 *	  Fetches credentials from a command that prints them: credential_process.
 *
 * No message shows the command or its output: both may contain secrets.  The caller logs the end of
 * the command's error output.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"


#define TIMEOUT_MS 30000

static bool
ask(aws_fetch *fetch)
{
	fetch->errand.method = NULL;
	fetch->errand.timeout_ms = TIMEOUT_MS;
	return aws_copy_text(fetch->plan.from.command, fetch->errand.body,
						 sizeof(fetch->errand.body));
}

static bool
take(aws_fetch *fetch, const aws_result *result)
{
	static const char *const names[] = {
		"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"
	};
	const cJSON *version = cJSON_GetObjectItemCaseSensitive(fetch->json, "Version");

	if (!result->done)
		return aws_fetch_fail(fetch, "the command %s", result->problem);
	if (result->status != 0)
		return aws_fetch_fail(fetch, "the command exited with status %d", result->status);
	if (!cJSON_IsObject(fetch->json))
		return aws_fetch_fail(fetch, "the command printed no JSON object");
	if (!cJSON_IsNumber(version) || version->valuedouble != 1)
		return aws_fetch_fail(fetch, "the command printed no \"Version\": 1");
	return aws_take_json(fetch, "the command", fetch->json, names);
}

const aws_fetcher aws_fetch_process = {ask, take};
