/*-------------------------------------------------------------------------
 *
 * fetcher.c
 *	  Functions that the ways to fetch credentials share.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

bool
aws_fetch_fail(aws_fetch *fetch, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(fetch->error, sizeof(fetch->error), format, args);
	va_end(args);
	aws_make_printable(fetch->error);
	return false;
}

bool
aws_errand_request(aws_fetch *fetch, const char *method, int timeout_ms,
				   const char *url, const char *path)
{
	aws_errand *errand = &fetch->errand;
	int			len = snprintf(errand->url, sizeof(errand->url), "%s%s", url, path);

	errand->method = method;
	errand->header_count = 0;
	errand->body[0] = '\0';
	errand->timeout_ms = timeout_ms;
	if (len >= 0 && (size_t) len < sizeof(errand->url))
		return true;
	return aws_fetch_fail(fetch, "URL is too long");
}

/* The number of bytes at the start of text that are printable ASCII. */
static size_t
printable(const char *text, size_t len)
{
	size_t		i = 0;

	while (i < len && text[i] >= ' ' && text[i] <= '~')
		i++;
	return i;
}

bool
aws_errand_header(aws_fetch *fetch, const char *name, const char *value)
{
	aws_errand *errand = &fetch->errand;
	char	   *line = errand->headers[errand->header_count];
	int			len = snprintf(line, sizeof(errand->headers[0]), "%s: %s", name, value);

	if (len < 0 || (size_t) len >= sizeof(errand->headers[0]) ||
		value[printable(value, strlen(value))] != '\0')
		return aws_fetch_fail(fetch, "%s is no usable header", name);
	errand->header_count++;
	return true;
}

bool
aws_add_field(char *text, size_t size, const char *name, const char *value)
{
	static const char plain[] = AWS_LETTERS_DIGITS "-_.~";
	size_t		used = strlen(text);

	if (used + strlen(name) + 2 + 3 * strlen(value) >= size)
		return false;
	used += sprintf(text + used, "%s%s=", used > 0 ? "&" : "", name);
	for (; *value != '\0'; value++)
		used += sprintf(text + used, strchr(plain, *value) != NULL ? "%c" : "%%%02X",
						(unsigned char) *value);
	return true;
}

bool
aws_fetch_succeeded(aws_fetch *fetch, const aws_result *result, const char *asked)
{
	if (!result->done)
		return aws_fetch_fail(fetch, "%s: %s", asked, result->problem);
	if (result->status != 200)
		return aws_fetch_fail(fetch, "%s: HTTP status %d", asked, result->status);
	return true;
}

bool
aws_read_token(aws_fetch *fetch, const char *path, char *token, size_t size)
{
	size_t		len = 0;
	char	   *text = fetch->env->read_file(fetch->env->arg, path, &len);
	size_t		line;

	token[0] = '\0';
	if (text == NULL)
		return aws_fetch_fail(fetch, "cannot read the token file \"%.300s\"", path);
	line = printable(text, len);
	if (line > 0 && line < size && (line == len || strchr("\r\n", text[line]) != NULL))
	{
		memcpy(token, text, line);
		token[line] = '\0';
	}
	OPENSSL_cleanse(text, len);
	free(text);
	if (token[0] != '\0')
		return true;
	return aws_fetch_fail(fetch, "the token file \"%.300s\" is empty, too long, or no text",
						  path);
}

/* ----------------------------------------------------------------
 * Time
 * ----------------------------------------------------------------
 */

/* The number that two digits at the start of text make; -1: there are no two digits. */
static int
read_two(const char *text)
{
	if (strspn(text, "0123456789") < 2)
		return -1;
	return (text[0] - '0') * 10 + text[1] - '0';
}

/* Reads the time zone, which follows the time of day.  Sets *seconds to its offset from UTC. */
static bool
read_zone(const char *text, int *seconds)
{
	int			hour,
				minute;

	*seconds = 0;
	if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0 || strcmp(text, "UTC") == 0)
		return true;
	if ((text[0] != '+' && text[0] != '-') || (hour = read_two(text + 1)) < 0)
		return false;
	*seconds = (text[0] == '-' ? -1 : 1) * 60;
	text += text[3] == ':' ? 4 : 3;
	minute = read_two(text);
	*seconds *= hour * 60 + minute;
	return minute >= 0 && text[2] == '\0';
}

int64_t
aws_read_time(const char *text)
{
	struct tm	utc = {0};
	int			used = 0;
	int			zone;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &utc.tm_year, &utc.tm_mon, &utc.tm_mday,
			   &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &used) != 6 ||
		utc.tm_year < 1970 || utc.tm_mon < 1 || utc.tm_mon > 12 ||
		utc.tm_mday < 1 || utc.tm_mday > 31 || utc.tm_hour < 0 || utc.tm_hour > 23 ||
		utc.tm_min < 0 || utc.tm_min > 59 || utc.tm_sec < 0 || utc.tm_sec > 60)
		return 0;
	utc.tm_year -= 1900;
	utc.tm_mon -= 1;
	text += used;
	if (text[0] == '.')
		text += 1 + strspn(text + 1, "0123456789");
	if (!read_zone(text, &zone))
		return 0;
	return timegm(&utc) - zone;
}

/* ----------------------------------------------------------------
 * Credentials
 * ----------------------------------------------------------------
 */

static bool
copy_part(const char *text, char *out, size_t size)
{
	return aws_is_visible_ascii(text) && aws_copy_text(text, out, size);
}

bool
aws_take_credentials(aws_fetch *fetch, const char *asked, const char *access_key_id,
					 const char *secret_access_key, const char *session_token,
					 const char *expiration)
{
	aws_credentials *found = &fetch->found;
	int64_t		expires_s = expiration != NULL ? aws_read_time(expiration) : 0;

	if (!aws_is_set(access_key_id) || !aws_is_set(secret_access_key))
		return aws_fetch_fail(fetch, "%s: the reply has no credentials", asked);
	if (expiration != NULL && expires_s == 0)
		return aws_fetch_fail(fetch, "%s: the time of expiry is unreadable", asked);
	if (!copy_part(access_key_id, found->access_key_id, sizeof(found->access_key_id)) ||
		!copy_part(secret_access_key, found->secret_access_key,
				   sizeof(found->secret_access_key)) ||
		!copy_part(session_token != NULL ? session_token : "", found->session_token,
				   sizeof(found->session_token)))
		return aws_fetch_fail(fetch, "%s: the credentials are too long or no text", asked);
	found->expires_s = expires_s;
	fetch->fetcher = NULL;
	return true;
}

const char *const aws_role_names[4] = {
	"AccessKeyId", "SecretAccessKey", "Token", "Expiration"
};

const char *
aws_json_text(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

bool
aws_take_json(aws_fetch *fetch, const char *asked, const cJSON *object,
			  const char *const names[4])
{
	if (!cJSON_IsObject(object))
		return aws_fetch_fail(fetch, "%s: the reply is not a JSON object", asked);
	return aws_take_credentials(fetch, asked, aws_json_text(object, names[0]),
								aws_json_text(object, names[1]),
								aws_json_text(object, names[2]),
								aws_json_text(object, names[3]));
}

/* The recursion is safe: cJSON parses no tree deeper than CJSON_NESTING_LIMIT. */
static void
wipe(cJSON *json)
{
	for (; json != NULL; json = json->next)
	{
		if (json->valuestring != NULL)
			OPENSSL_cleanse(json->valuestring, strlen(json->valuestring));
		wipe(json->child);
	}
}

void
aws_json_free(cJSON *json)
{
	wipe(json);
	cJSON_Delete(json);
}
