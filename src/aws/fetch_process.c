/*-------------------------------------------------------------------------
 *
 * fetch_process.c
 *	  Credentials that a command prints: credential_process.
 *
 * No message shows the command or its output: both may contain secrets.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"


#define TIMEOUT_MS 30000

static bool
ask(aws_fetch *fetch, const aws_environment *env, int64_t now_s)
{
	(void) env;
	(void) now_s;
	fetch->errand.method = NULL;
	fetch->errand.timeout_ms = TIMEOUT_MS;
	return aws_copy_text(fetch->plan.from.command, fetch->errand.body,
						 sizeof(fetch->errand.body));
}

static bool
take(aws_fetch *fetch, const aws_result *result, int64_t now_s)
{
	static const char *const names[] = {
		"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"
	};
	cJSON	   *json;
	const cJSON *version;
	bool		ok;

	(void) now_s;
	if (!result->done)
		return aws_fetch_fail(fetch, "the command %s", result->problem);
	if (result->status != 0)
		return aws_fetch_fail(fetch, "the command exited with status %d", result->status);
	json = cJSON_ParseWithLength(result->body, result->len);
	version = cJSON_GetObjectItemCaseSensitive(json, "Version");
	if (!cJSON_IsObject(json))
		ok = aws_fetch_fail(fetch, "the command printed no JSON object");
	else if (!cJSON_IsNumber(version) || version->valuedouble != 1)
		ok = aws_fetch_fail(fetch, "the command printed no \"Version\": 1");
	else
		ok = aws_take_json(fetch, "the command", json, names);
	aws_json_free(json);
	return ok;
}

const aws_fetcher aws_fetch_process = {ask, take};
