/*-------------------------------------------------------------------------
 *
 * endpoint.c
 *	  Finds region and endpoint: settings, then environment, then the shared
 *	  config and credentials files.
 *
 * Precedence: AWS SDKs and Tools Reference Guide, "AWS Region" and
 * "Service-specific endpoints".  Unusable files are an error: with another region
 * or endpoint, locks would be kept in another table.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <stdio.h>
#include <string.h>


#define MAX_WORDS 1024			/* bytes of an unusable profile's error */

/* Can it be part of a host name? */
static bool
is_region(const char *text)
{
	size_t		len = strspn(text, "abcdefghijklmnopqrstuvwxyz"
							 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");

	return len > 0 && text[len] == '\0';
}

static bool
refuse(char *error, size_t error_size, const char *where, const char *why)
{
	snprintf(error, error_size, "%s: %s", where, why);
	aws_make_printable(error);
	return false;
}

/* Writes the profile's region; false and "", with each file's error, if it has none. */
static bool
copy_profile_region(const aws_settings *settings, const aws_environment *env,
					char *region, size_t size, char *error, size_t error_size)
{
	aws_profile profile;
	const aws_profile_file *const files[] = {&profile.credentials, &profile.config};
	char		words[MAX_WORDS];
	ini_result	result;

	if (!aws_profile_open(&profile, settings, env, words, sizeof(words)))
		return refuse(error, error_size, "shared files", words);
	result = aws_profile_get(&profile, "region", region, size);
	snprintf(words, sizeof(words), "not set");
	for (int i = 0; i < 2; i++)
	{
		size_t		used = strlen(words);

		snprintf(words + used, sizeof(words) - used, "; region of profile \"%.50s\" in %.300s: %s",
				 profile.name, files[i]->path,
				 files[i]->has_profile ? "not set" : aws_profile_absence(files[i]));
	}
	aws_profile_close(&profile);
	if (result == INI_TOO_LONG)
		return refuse(error, error_size, "the profile's region", "is too long");
	if (result == INI_FOUND && aws_is_set(region))
		return true;
	return refuse(error, error_size, "ddblock.region, AWS_REGION, AWS_DEFAULT_REGION", words);
}

bool
aws_find_region(const aws_settings *settings, const aws_environment *env,
				char *region, size_t size, char *error, size_t error_size)
{
	const char *const variables[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};
	const char *given = aws_is_set(settings->region) ? settings->region : NULL;
	const char *where = "ddblock.region";

	region[0] = '\0';
	for (int i = 0; i < 2 && given == NULL; i++)
	{
		where = variables[i];
		given = aws_get_variable(env, where);
	}
	if (given == NULL && !copy_profile_region(settings, env, region, size, error, error_size))
		return false;
	if ((given == NULL || aws_copy_text(given, region, size)) && is_region(region))
		return true;
	region[0] = '\0';
	return refuse(error, error_size, given != NULL ? where : "the profile's region",
				  "not the name of a Region");
}

void
aws_drop_slash(char *url)
{
	size_t		len = strlen(url);

	if (len > 0 && url[len - 1] == '/')
		url[len - 1] = '\0';
}

/* "" if none is configured. */
static bool
copy_configured_endpoint(const aws_profile *profile,
						 const aws_environment *env, const char *variable,
						 const char *service, char *url, size_t size)
{
	const char *given;

	url[0] = '\0';
	if (aws_is_true(env, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
					profile, "ignore_configured_endpoint_urls"))
		return true;
	given = aws_get_variable(env, variable);
	if (given == NULL)
		given = aws_get_variable(env, "AWS_ENDPOINT_URL");
	if (given != NULL)
		return aws_copy_text(given, url, size);
	if (!aws_profile_get_service_endpoint(profile, service, url, size))
		return false;
	if (aws_is_set(url))
		return true;
	return aws_profile_get(profile, "endpoint_url", url, size) != INI_TOO_LONG;
}

bool
aws_find_endpoint(const aws_settings *settings, const aws_environment *env,
				  char *url, size_t size, char *error, size_t error_size)
{
	aws_profile profile;
	char		words[MAX_WORDS];
	bool		ok;

	url[0] = '\0';
	if (aws_is_set(settings->endpoint_url))
		ok = aws_copy_text(settings->endpoint_url, url, size);
	else
	{
		if (!aws_profile_open(&profile, settings, env, words, sizeof(words)))
			return refuse(error, error_size, "shared files", words);
		ok = copy_configured_endpoint(&profile, env, "AWS_ENDPOINT_URL_DYNAMODB",
									  "dynamodb", url, size);
		aws_profile_close(&profile);
	}
	if (!ok || !aws_is_visible_ascii(url))
	{
		url[0] = '\0';
		return refuse(error, error_size, "endpoint",
					  "too long, not a URL, or its services section is missing");
	}
	aws_drop_slash(url);
	return true;
}

/* Amazon's own endpoint; "" if it does not fit. */
static void
make_endpoint(const char *name, const char *region, bool dual_stack,
			  char *url, size_t size)
{
	bool		china = strncmp(region, "cn-", 3) == 0;
	const char *domain = china ? "amazonaws.com.cn" : "amazonaws.com";
	int			len;

	if (dual_stack)
		domain = china ? "api.amazonwebservices.com.cn" : "api.aws";
	len = snprintf(url, size, "https://%s.%s.%s", name, region, domain);
	if (len < 0 || (size_t) len >= size)
		url[0] = '\0';
}

void
aws_default_endpoint(const char *region, char *url, size_t size)
{
	make_endpoint("dynamodb", region, false, url, size);
}

static const struct
{
	const char *variable;
	const char *section;		/* in the services section */
	const char *host;			/* the first part of Amazon's own */
	const char *fips;
}			services[] = {
	[AWS_STS] = {"AWS_ENDPOINT_URL_STS", "sts", "sts", "sts-fips"},
	[AWS_SSO] = {"AWS_ENDPOINT_URL_SSO", "sso", "portal.sso", "portal.sso-fips"},
	[AWS_SSO_OIDC] = {"AWS_ENDPOINT_URL_SSO_OIDC", "sso_oidc", "oidc", "oidc-fips"},
};

bool
aws_find_service_endpoint(const aws_settings *settings, const aws_environment *env,
						  aws_service service, const char *region,
						  char *url, size_t size, char *error, size_t error_size)
{
	const char *variable = services[service].variable;
	aws_profile profile;
	char		words[MAX_WORDS];
	char		host[300];
	bool		ok;

	url[0] = '\0';
	if (!aws_profile_open(&profile, settings, env, words, sizeof(words)))
		return refuse(error, error_size, "shared files", words);
	ok = copy_configured_endpoint(&profile, env, variable, services[service].section,
								  url, size);
	if (ok && url[0] == '\0')
		make_endpoint(aws_is_true(env, "AWS_USE_FIPS_ENDPOINT",
								  &profile, "use_fips_endpoint") ?
					  services[service].fips : services[service].host, region,
					  aws_is_true(env, "AWS_USE_DUALSTACK_ENDPOINT",
								  &profile, "use_dualstack_endpoint"), url, size);
	aws_profile_close(&profile);
	if (!ok)
		return refuse(error, error_size, variable,
					  "too long, or the services section is missing");
	aws_drop_slash(url);
	if (aws_endpoint_host(url, host, sizeof(host), words, sizeof(words)))
		return true;
	return refuse(error, error_size, variable, words);
}
