/*-------------------------------------------------------------------------
 *
 * endpoint.c
 *	  Finds Region and endpoint: in the settings, then in the environment, then in the
 *	  shared config and credentials files.
 *
 * The precedence is that of the AWS SDKs and Tools Reference Guide, "AWS Region" and
 * "Service-specific endpoints".  Unusable files are an error: they may name another Region or
 * endpoint, and then the locks would be kept in another table.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <strings.h>

#define MAX_WORDS 1024

static bool
refuse(char *error, size_t error_size, const char *where, const char *why)
{
	snprintf(error, error_size, "%s: %s", where, why);
	aws_make_printable(error);
	return false;
}

aws_found
aws_find_region(const aws_profile *profile, char *region, size_t size,
				char *error, size_t error_size)
{
	const char *const variables[] = {"AWS_REGION", "AWS_DEFAULT_REGION"};
	const char *given = aws_is_set(profile->settings.region) ? profile->settings.region : NULL;
	const char *where = "ddblock.region";
	const char *wrong = NULL;

	region[0] = '\0';
	for (int i = 0; i < 2 && given == NULL; i++)
	{
		where = variables[i];
		given = aws_get_variable(profile->env, where);
	}
	if (given == NULL)
	{
		where = "the profile's region";
		if (profile->unusable[0] != '\0')
			return refuse(error, error_size, "shared files", profile->unusable), AWS_BROKEN;
		if (aws_profile_get(profile, "region", region, size) == INI_TOO_LONG)
			wrong = "too long";
		else if (region[0] == '\0')
		{
			const aws_profile_file *const files[] = {&profile->credentials, &profile->config};
			char		words[MAX_WORDS] = "not set";

			for (int i = 0; i < 2; i++)
			{
				size_t		used = strlen(words);

				snprintf(words + used, sizeof(words) - used,
						 "; region of profile \"%.50s\" in %.300s: %s",
						 profile->name, files[i]->path,
						 files[i]->has_profile ? "not set" : aws_profile_absence(files[i]));
			}
			return refuse(error, error_size, "ddblock.region, AWS_REGION, AWS_DEFAULT_REGION",
						  words), AWS_NOT_HERE;
		}
	}
	else if (!aws_copy_text(given, region, size))
		wrong = "too long";
	if (wrong == NULL)
		wrong = aws_wrong_region(region);
	if (wrong == NULL)
		return AWS_FOUND;
	region[0] = '\0';
	return refuse(error, error_size, where, wrong), AWS_BROKEN;
}

/* ----------------------------------------------------------------
 * Endpoints
 * ----------------------------------------------------------------
 */

/*
 * A choice that SDKs offer for a service, of which ddblock supports some values only.  Example:
 * with AWS_STS_REGIONAL_ENDPOINTS=legacy, SDKs use a global endpoint.
 */
typedef struct choice
{
	const char *variable;
	const char *property;
	const char *supported[2];
	const char *unsupported;	/* a value that has no effect on endpoints other than Amazon's,
								 * and is an error with Amazon's */
	const char *refusal;
} choice;

static const struct
{
	const char *name;			/* for messages */
	const char *variable;
	const char *section;		/* the property of the services section that has its endpoint_url */
	const char *host;			/* how the host name of Amazon's own endpoint begins */
	choice		choice;
}			services[] = {
	[AWS_DYNAMODB] = {"DynamoDB", "AWS_ENDPOINT_URL_DYNAMODB", "dynamodb", "dynamodb", {
			"AWS_ACCOUNT_ID_ENDPOINT_MODE", "account_id_endpoint_mode",
			{"preferred", "disabled"}, "required",
			"AWS_ACCOUNT_ID_ENDPOINT_MODE or account_id_endpoint_mode is neither \"preferred\" "
			"nor \"disabled\": ddblock uses no account-based endpoints"
	}},
	[AWS_STS] = {"STS", "AWS_ENDPOINT_URL_STS", "sts", "sts", {
			"AWS_STS_REGIONAL_ENDPOINTS", "sts_regional_endpoints", {"regional"}, "legacy",
			"AWS_STS_REGIONAL_ENDPOINTS or sts_regional_endpoints is not \"regional\": ddblock "
			"does not use the global endpoint"
	}},
	[AWS_SSO] = {"single sign-on", "AWS_ENDPOINT_URL_SSO", "sso", "portal.sso", {0}},
	[AWS_SSO_OIDC] = {"single sign-on", "AWS_ENDPOINT_URL_SSO_OIDC", "sso_oidc", "oidc", {0}},
};

void
aws_drop_slash(char *url)
{
	size_t		len = strlen(url);

	if (len > 0 && url[len - 1] == '/')
		url[len - 1] = '\0';
}

/*
 * Writes the configured URL, or "" if none is configured or "ignore" is set.  Returns false if the
 * URL is too long, or if there is no such services section as the profile names.
 */
static bool
copy_configured_endpoint(const aws_profile *profile, aws_service service, bool ignore,
						 char *url, size_t size)
{
	const char *given;
	ini_slice	config = profile->config.text;
	char		name[AWS_NAME_SIZE];
	ini_result	result;

	if (service == AWS_DYNAMODB && aws_is_set(profile->settings.endpoint_url))
		return aws_copy_text(profile->settings.endpoint_url, url, size);
	if (ignore)
		return true;
	given = aws_get_variable(profile->env, services[service].variable);
	if (given == NULL)
		given = aws_get_variable(profile->env, "AWS_ENDPOINT_URL");
	if (given != NULL)
		return aws_copy_text(given, url, size);
	result = aws_profile_get(profile, "services", name, sizeof(name));
	if (result != INI_ABSENT)
	{
		if (result == INI_TOO_LONG || !ini_has_section(config, "services", name) ||
			ini_get(config, "services", name, services[service].section, "endpoint_url",
					url, size) == INI_TOO_LONG)
			return false;
		if (url[0] != '\0')
			return true;
	}
	return aws_profile_get(profile, "endpoint_url", url, size) != INI_TOO_LONG;
}

/* amazons: an endpoint of Amazon's is used. */
static bool
is_supported(const aws_profile *profile, const choice *of, bool amazons)
{
	char		value[16] = "";

	if (of->variable != NULL &&
		!aws_get_either(profile, of->variable, of->property, value, sizeof(value)))
		return false;
	for (int i = 0; i < 2 && of->supported[i] != NULL; i++)
		if (strcasecmp(value, of->supported[i]) == 0)
			return true;
	return value[0] == '\0' || (!amazons && strcasecmp(value, of->unsupported) == 0);
}

/* Writes the URL, and returns NULL; or returns what is wrong. */
static const char *
choose_endpoint(const aws_profile *profile, aws_service service, char *region,
				char *url, size_t size)
{
	bool		local = service == AWS_DYNAMODB && strcmp(region, "local") == 0;
	bool		configured;
	bool		ignore;
	bool		fips;
	bool		dual_stack;

	if (!aws_read_switch(profile, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
						 "ignore_configured_endpoint_urls", &ignore))
		return "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS or ignore_configured_endpoint_urls is neither true nor false";
	if (!copy_configured_endpoint(profile, service, ignore, url, size))
		return "URL is too long, or the services section is missing";
	configured = url[0] != '\0';
	if (!aws_read_switch(profile, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint", &fips))
		return "AWS_USE_FIPS_ENDPOINT or use_fips_endpoint is neither true nor false";
	if (!aws_read_switch(profile, "AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint",
						 &dual_stack))
		return "AWS_USE_DUALSTACK_ENDPOINT or use_dualstack_endpoint is neither true nor false";
	if (configured && (fips || dual_stack))
		return "FIPS or dual stack is wanted, but another endpoint is configured";
	if (local && (fips || dual_stack))
		return "the Region \"local\" has neither FIPS nor dual stack";
	if (!is_supported(profile, &services[service].choice, !configured && !local))
		return services[service].choice.refusal;
	if (configured)
		return NULL;
	if (!(local ? aws_copy_text("http://localhost:8000", url, size) :
		  aws_own_endpoint(services[service].host, region, fips, dual_stack, url, size)))
		return "URL is too long";
	if (local)
		strcpy(region, "us-east-1");
	return NULL;
}

bool
aws_find_endpoint(const aws_profile *profile, aws_service service, char *region,
				  char *url, size_t size, char *error, size_t error_size)
{
	char		where[32];
	char		words[MAX_WORDS];
	char		host[300];
	const char *wrong;

	url[0] = '\0';
	/* Unusable files do not matter if the setting names the endpoint: the files choose nothing. */
	if (profile->unusable[0] != '\0' &&
		(service != AWS_DYNAMODB || !aws_is_set(profile->settings.endpoint_url)))
		return refuse(error, error_size, "shared files", profile->unusable);
	wrong = choose_endpoint(profile, service, region, url, size);
	if (wrong == NULL)
	{
		aws_drop_slash(url);
		if (aws_endpoint_host(url, host, sizeof(host), words, sizeof(words)))
			return true;
		wrong = words;
	}
	url[0] = '\0';
	snprintf(where, sizeof(where), "endpoint of %s", services[service].name);
	return refuse(error, error_size, where, wrong);
}
