/*-------------------------------------------------------------------------
 *
 * fetch_metadata.c
 *	  Fetches the credentials of the EC2 instance's role, or the instance's Region, from
 *	  instance metadata, version 2 (IMDSv2).
 *
 * Credentials need three requests: step 0 asks for a token, step 1 for the name of the role, step 2
 * for its credentials.  The Region needs two: step 0 asks for a token, step 1 for the Region.
 * Version 1, without a token, is never used.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#define REGION_PATH "/latest/meta-data/placement/region"
#define PATH "/latest/meta-data/iam/security-credentials/"

static bool
ask(aws_fetch *fetch)
{
	const char *url = fetch->plan.from.metadata.url;
	int			timeout_ms = fetch->plan.from.metadata.timeout_ms;
	char		path[sizeof(PATH) + sizeof(fetch->name)];

	if (fetch->step == 0)
		return aws_errand_request(fetch, "PUT", timeout_ms, url, "/latest/api/token") &&
			aws_errand_header(fetch, "X-aws-ec2-metadata-token-ttl-seconds", "21600");
	snprintf(path, sizeof(path), "%s%s",
			 fetch->plan.from.metadata.region ? REGION_PATH : PATH,
			 fetch->step == 2 ? fetch->name : "");
	return aws_errand_request(fetch, "GET", timeout_ms, url, path) &&
		aws_errand_header(fetch, "X-aws-ec2-metadata-token", fetch->token);
}

/* Copies the first line of a successful reply, and goes on to the next step. */
static bool
take_line(aws_fetch *fetch, const aws_result *result, const char *asked,
		  char *line, size_t size)
{
	size_t		len;

	if (!aws_fetch_succeeded(fetch, result, asked))
		return false;
	len = strcspn(result->body, "\r\n");
	if (len == 0 || len >= size)
		return aws_fetch_fail(fetch, "%s: the reply is empty or too long", asked);
	memcpy(line, result->body, len);
	line[len] = '\0';
	fetch->step++;
	return true;
}

static bool
take(aws_fetch *fetch, const aws_result *result)
{
	int			status = result->done ? result->status : 0;
	const char *code = aws_json_text(fetch->json, "Code");

	if (fetch->step == 0)
	{
		if (!result->done && strncmp(result->problem, "reply: Timed out", 16) == 0)
			return aws_fetch_fail(fetch, "token: %s: in a container, the hop limit of the "
								  "instance's metadata must be 2 or more", result->problem);
		if (status == 403)
			return aws_fetch_fail(fetch, "token: HTTP status 403, the service is switched off");
		if (status == 404 || status == 405)
			return aws_fetch_fail(fetch, "token: HTTP status %d, the service lacks version 2 "
								  "(IMDSv2), which ddblock needs", status);
		return take_line(fetch, result, "token", fetch->token, sizeof(fetch->token));
	}
	if (fetch->plan.from.metadata.region)
	{
		if (!take_line(fetch, result, "Region", fetch->name, sizeof(fetch->name)))
			return false;
		if (aws_wrong_region(fetch->name) != NULL)
			return aws_fetch_fail(fetch, "Region: %s", aws_wrong_region(fetch->name));
		fetch->fetcher = NULL;
		return true;
	}
	if (fetch->step == 1)
	{
		if (status == 404)
			return aws_fetch_fail(fetch, "the instance has no role");
		return take_line(fetch, result, "name of the role", fetch->name, sizeof(fetch->name));
	}
	if (!aws_fetch_succeeded(fetch, result, "credentials of the role"))
		return false;
	if (code != NULL && strcmp(code, "Success") != 0)
		return aws_fetch_fail(fetch, "credentials of the role: %.100s", code);
	return aws_take_json(fetch, "credentials of the role", fetch->json, aws_role_names);
}

const aws_fetcher aws_fetch_metadata = {ask, take};
