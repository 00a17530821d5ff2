/*-------------------------------------------------------------------------
 *
 * endpoint.c
 *	  Finds region and endpoint: settings, then environment, then the shared
 *	  config and credentials files.
 *
 * Precedence: AWS SDKs and Tools Reference Guide, "AWS Region" and
 * "Service-specific endpoints".  Nothing is guessed from files that are
 * unusable: another region or endpoint would mean another table of locks.
 *
 *-------------------------------------------------------------------------
 */
#include "core/credentials.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/profile.h"

#define MAX_WORDS 1024			/* what a profile says when it is unusable */

/* It becomes part of a host name. */
static bool
is_region(const char *text)
{
	size_t		len = strspn(text, "abcdefghijklmnopqrstuvwxyz"
							 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");

	return len > 0 && text[len] == '\0';
}

/* Writes the profile's region, "" if it has none. */
static bool
copy_profile_region(const aws_settings *settings, const aws_environment *env,
					char *region, size_t size)
{
	aws_profile profile;
	char		error[MAX_WORDS];
	ini_result	result;

	if (!aws_profile_open(&profile, settings, env, error, sizeof(error)))
		return false;
	result = aws_profile_get(&profile, "region", region, size);
	aws_profile_close(&profile);
	return result != INI_TOO_LONG;
}

bool
aws_find_region(const aws_settings *settings, const aws_environment *env,
				char *region, size_t size)
{
	const char *given = settings->region;
	bool		ok;

	region[0] = '\0';
	if (!aws_is_set(given))
		given = aws_get_variable(env, "AWS_REGION");
	if (given == NULL)
		given = aws_get_variable(env, "AWS_DEFAULT_REGION");
	if (given != NULL)
		ok = aws_copy_text(given, region, size);
	else
		ok = copy_profile_region(settings, env, region, size);
	if (ok && is_region(region))
		return true;
	region[0] = '\0';
	return false;
}

static bool
ignores_endpoints(const aws_profile *profile, const aws_environment *env)
{
	const char *given;
	char		value[8];

	given = aws_get_variable(env, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
	if (given == NULL &&
		aws_profile_get(profile, "ignore_configured_endpoint_urls",
						value, sizeof(value)) == INI_FOUND)
		given = value;
	return given != NULL && strcasecmp(given, "true") == 0;
}

static bool
copy_configured_endpoint(const aws_profile *profile,
						 const aws_environment *env, char *url, size_t size)
{
	const char *given;

	if (ignores_endpoints(profile, env))
		return true;
	given = aws_get_variable(env, "AWS_ENDPOINT_URL_DYNAMODB");
	if (given == NULL)
		given = aws_get_variable(env, "AWS_ENDPOINT_URL");
	if (given != NULL)
		return aws_copy_text(given, url, size);
	if (!aws_profile_get_service_endpoint(profile, "dynamodb", url, size))
		return false;
	if (aws_is_set(url))
		return true;
	return aws_profile_get(profile, "endpoint_url", url, size) != INI_TOO_LONG;
}

bool
aws_find_endpoint(const aws_settings *settings, const aws_environment *env,
				  char *url, size_t size)
{
	aws_profile profile;
	char		error[MAX_WORDS];
	bool		ok;

	url[0] = '\0';
	if (aws_is_set(settings->endpoint_url))
		ok = aws_copy_text(settings->endpoint_url, url, size);
	else
	{
		if (!aws_profile_open(&profile, settings, env, error, sizeof(error)))
			return false;
		ok = copy_configured_endpoint(&profile, env, url, size);
		aws_profile_close(&profile);
	}
	if (ok && aws_is_visible_ascii(url))
		return true;
	url[0] = '\0';
	return false;
}

void
aws_default_endpoint(const char *region, char *url, size_t size)
{
	const char *domain = strncmp(region, "cn-", 3) == 0 ?
		"amazonaws.com.cn" : "amazonaws.com";
	int			len = snprintf(url, size, "https://dynamodb.%s.%s",
							   region, domain);

	if (len < 0 || (size_t) len >= size)
		url[0] = '\0';
}
