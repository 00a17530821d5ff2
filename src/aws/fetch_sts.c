/*-------------------------------------------------------------------------
 *
 * fetch_sts.c
 *	  Fetches the credentials of roles from AWS's Security Token Service: AssumeRole, signed
 *	  with the credentials of the step before, and AssumeRoleWithWebIdentity, unsigned.
 *
 * If STS refuses a signature because of its time, the refusal's Date shows how wrong
 * our time is, and the request is signed once more.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#define TIMEOUT_MS 10000
#define FORM "application/x-www-form-urlencoded"
#define SKEW_S 240				/* STS accepts signatures that are five minutes off */

/* ----------------------------------------------------------------
 * Requests
 * ----------------------------------------------------------------
 */

static bool
write_request(aws_fetch *fetch, const char *action, const aws_role *role, const char *token)
{
	char	   *body = fetch->errand.body;
	size_t		size = sizeof(fetch->errand.body);
	char		duration[16];

	if (!aws_errand_request(fetch, "POST", TIMEOUT_MS, fetch->plan.sts_url, "/") ||
		!aws_errand_header(fetch, "Content-Type", FORM))
		return false;
	snprintf(duration, sizeof(duration), "%d", role->duration_s);
	if (aws_add_field(body, size, "Action", action) &&
		aws_add_field(body, size, "Version", "2011-06-15") &&
		aws_add_field(body, size, "RoleArn", role->arn) &&
		aws_add_field(body, size, "RoleSessionName", role->session_name) &&
		(role->external_id[0] == '\0' ||
		 aws_add_field(body, size, "ExternalId", role->external_id)) &&
		(role->duration_s == 0 || aws_add_field(body, size, "DurationSeconds", duration)) &&
		(token == NULL || aws_add_field(body, size, "WebIdentityToken", token)))
		return true;
	return aws_fetch_fail(fetch, "the request is too long");
}

static bool
sign(aws_fetch *fetch)
{
	const aws_credentials *keys = &fetch->found;
	const aws_plan *plan = &fetch->plan;
	char		date[SIGV4_DATE_SIZE];
	char		host[300];
	char		authorization[1024];
	char		words[100];
	sigv4_key	key = {0};
	const sigv4_header headers[] = {
		{"content-type", FORM},
		{"host", host},
		{"x-amz-date", date},
		{"x-amz-security-token", keys->session_token},
	};
	const sigv4_request request = {
		.method = "POST",.path = "/",.query = "",.headers = headers,
		.header_count = keys->session_token[0] != '\0' ? 4 : 3,
		.body = fetch->errand.body,.body_len = strlen(fetch->errand.body),
		.region = plan->sts_region,.service = "sts",
		.access_key_id = keys->access_key_id,
		.secret_access_key = keys->secret_access_key,.amz_date = date
	};
	bool		ok;

	sigv4_amz_date(fetch->now_s, date);
	ok = aws_endpoint_host(plan->sts_url, host, sizeof(host), words, sizeof(words)) &&
		sigv4_sign(&request, &key, authorization, sizeof(authorization));
	sigv4_key_wipe(&key);
	if (!ok)
		return aws_fetch_fail(fetch, "the request could not be signed");
	for (int i = 1; i < request.header_count; i++)
		if (!aws_errand_header(fetch, headers[i].name, headers[i].value))
			return false;
	return aws_errand_header(fetch, "Authorization", authorization);
}

static bool
ask_role(aws_fetch *fetch)
{
	const aws_role *role = &fetch->plan.roles[fetch->roles_assumed];

	return write_request(fetch, "AssumeRole", role, NULL) && sign(fetch);
}

/* Asks for a role.  Reads the token's file each time, because EKS replaces it. */
static bool
ask_web_identity(aws_fetch *fetch)
{
	char		token[20001];	/* STS accepts up to 20,000 characters */
	bool		ok;

	ok = aws_read_token(fetch, fetch->plan.from.web.token_file, token, sizeof(token)) &&
		write_request(fetch, "AssumeRoleWithWebIdentity", &fetch->plan.from.web.role, token);
	OPENSSL_cleanse(token, sizeof(token));
	return ok;
}

/* ----------------------------------------------------------------
 * Replies: XML, of which we need the text of some elements only
 * ----------------------------------------------------------------
 */

/* Copies the text of the first element of this name; false if there is none or it does not fit. */
static bool
get_element(const char *xml, const char *name, char *text, size_t size)
{
	char		tag[64];
	const char *start;
	size_t		len;

	text[0] = '\0';
	snprintf(tag, sizeof(tag), "<%s>", name);
	start = strstr(xml, tag);
	if (start == NULL)
		return false;
	start += strlen(tag);
	len = strcspn(start, "<");
	if (len >= size)
		return false;
	memcpy(text, start, len);
	text[len] = '\0';
	return true;
}

static bool
take_reply(aws_fetch *fetch, const aws_result *result, const char *asked)
{
	char		parts[3][sizeof(fetch->found.session_token)];
	char		expiration[64];
	bool		ok;

	if (!result->done || result->status != 200)
	{
		char		code[100];
		char		message[4096];

		if (!result->done || !get_element(result->body, "Code", code, sizeof(code)))
			return aws_fetch_succeeded(fetch, result, asked);
		/* A message may quote signed headers after its first line: keep that line only. */
		get_element(result->body, "Message", message, sizeof(message));
		message[strcspn(message, "\r\n")] = '\0';
		return aws_fetch_fail(fetch, "%s: %s: %.500s", asked, code, message);
	}
	ok = get_element(result->body, "AccessKeyId", parts[0], sizeof(parts[0])) &&
		get_element(result->body, "SecretAccessKey", parts[1], sizeof(parts[1])) &&
		get_element(result->body, "SessionToken", parts[2], sizeof(parts[2])) &&
		get_element(result->body, "Expiration", expiration, sizeof(expiration)) ?
		aws_take_credentials(fetch, asked, parts[0], parts[1], parts[2], expiration) :
		aws_fetch_fail(fetch, "%s: the reply has no credentials", asked);
	OPENSSL_cleanse(parts, sizeof(parts));
	return ok;
}

static bool
take_role(aws_fetch *fetch, const aws_result *result)
{
	/* Correct our time at most once, if a refusal's Date shows that it is wrong; then ask again. */
	if (result->done && result->date_s != 0 && fetch->clock_error_s == 0 &&
		(result->status == 400 || result->status == 403) &&
		llabs(result->date_s - fetch->now_s) >= SKEW_S)
	{
		fetch->clock_error_s = result->date_s - fetch->now_s;
		return true;
	}
	if (!take_reply(fetch, result, "AssumeRole"))
		return false;
	fetch->roles_assumed++;
	return true;
}

static bool
take_web_identity(aws_fetch *fetch, const aws_result *result)
{
	return take_reply(fetch, result, "AssumeRoleWithWebIdentity");
}

const aws_fetcher aws_fetch_role = {ask_role, take_role};
const aws_fetcher aws_fetch_web_identity = {ask_web_identity, take_web_identity};
