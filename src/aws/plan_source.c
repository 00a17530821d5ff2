/*-------------------------------------------------------------------------
 *
 * plan_source.c
 *	  The sources of credentials that are not profiles: keys, the environment, the
 *	  container, the instance.  Also checks a role's parameters.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <stdlib.h>
#include <strings.h>

#define ECS_HOST "http://169.254.170.2"
#define METADATA_V4 "http://169.254.169.254"
#define METADATA_V6 "http://[fd00:ec2::254]"

aws_found
aws_plan_keys(const aws_search *s, const aws_key_source *source)
{
	aws_credentials *keys = &s->plan->keys;
	char	   *const fields[3] = {keys->access_key_id, keys->secret_access_key,
	keys->session_token};
	const size_t sizes[3] = {sizeof(keys->access_key_id),
	sizeof(keys->secret_access_key), sizeof(keys->session_token)};
	int			set = -1;
	int			i;

	for (i = 0; i < 3; i++)
		if (aws_is_set(source->values[i]))
			set = i;
	if (set < 0)
		return aws_not_here(s, "%s %s: not set", source->where, source->names[0]);

	for (i = 0; i < 3; i++)
	{
		const char *value = source->values[i];
		const char *wrong = NULL;

		if (!aws_is_set(value))
		{
			if (i == 2)
				continue;
			return aws_broken(s, "%s: %s is set but %s is not",
							  source->where, source->names[set], source->names[i]);
		}
		if (!aws_copy_text(value, fields[i], sizes[i]))
			wrong = "is too long";
		else if (!aws_is_visible_ascii(value))
			wrong = "contains white space or a character that is not ASCII";
		if (wrong != NULL)
			return aws_broken(s, "%s: %s %s", source->where, source->names[i], wrong);
	}
	snprintf(keys->source, sizeof(keys->source), "%s", source->where);
	return AWS_FOUND;
}

/* The value of a variable; NULL if it is unset or only white space. */
static const char *
get_visible(const aws_environment *env, const char *name)
{
	const char *value = aws_get_variable(env, name);

	return value != NULL && value[strspn(value, " \t\r\n")] != '\0' ? value : NULL;
}

aws_found
aws_plan_environment(const aws_search *s)
{
	aws_key_source source = {
		.where = "environment",
		.names = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_SESSION_TOKEN"}
	};

	for (int i = 0; i < 3; i++)
		source.values[i] = get_visible(s->profile->env, source.names[i]);
	if (source.values[2] == NULL && source.values[0] != NULL)
	{
		source.names[2] = "AWS_SECURITY_TOKEN"; /* its old name, which SDKs still read */
		source.values[2] = get_visible(s->profile->env, source.names[2]);
	}
	return aws_plan_keys(s, &source);
}

/* ----------------------------------------------------------------
 * Containers
 * ----------------------------------------------------------------
 */

/* Where the URL's path begins, after scheme, host and port. */
static const char *
url_path(const char *url)
{
	const char *scheme_end = strstr(url, "://");
	const char *host = scheme_end == NULL ? url : scheme_end + 3;

	return host + strcspn(host, "/?");
}

/* Checks AWS_CONTAINER_CREDENTIALS_FULL_URI: an endpoint's URL, which a path may follow. */
static aws_found
check_container_url(const aws_search *s, const char *url)
{
	const char *path = url_path(url);
	char		origin[AWS_TEXT_SIZE];
	char		host[300];
	char		words[100];

	snprintf(origin, sizeof(origin), "%.*s", (int) (path - url), url);
	if (!aws_is_visible_ascii(url))
		snprintf(words, sizeof(words), "URL contains white space or a character that is not ASCII");
	else if (strchr(path, '#') != NULL)
		snprintf(words, sizeof(words), "URL contains a fragment");
	else if (aws_endpoint_host(origin, host, sizeof(host), words, sizeof(words)))
	{
		/* A name is not resolved to find out whether it means this machine. */
		if (strncasecmp(url, "https:", 6) == 0 || aws_is_local_host(host))
			return AWS_FOUND;
		snprintf(words, sizeof(words), "plain HTTP is accepted only from this machine, "
				 "ECS and EKS Pod Identity");
	}
	return aws_broken(s, "container: AWS_CONTAINER_CREDENTIALS_FULL_URI: %s", words);
}

aws_found
aws_plan_container(const aws_search *s)
{
	aws_plan   *plan = s->plan;
	const aws_environment *env = s->profile->env;
	const char *relative = aws_get_variable(env, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = aws_get_variable(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
	char	   *url = plan->from.container.url;
	int			len;

	if (relative == NULL && full == NULL)
		return aws_not_here(s, "container AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, "
							"AWS_CONTAINER_CREDENTIALS_FULL_URI: not set");
	if (relative != NULL && (relative[0] != '/' || !aws_is_visible_ascii(relative)))
		return aws_broken(s, "container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not a path");
	len = relative != NULL ? snprintf(url, AWS_TEXT_SIZE, ECS_HOST "%s", relative) :
		snprintf(url, AWS_TEXT_SIZE, "%s", full);
	if (len >= AWS_TEXT_SIZE ||
		!aws_get_either(s->profile, "AWS_CONTAINER_AUTHORIZATION_TOKEN", NULL,
						plan->from.container.token, sizeof(plan->from.container.token)) ||
		!aws_get_either(s->profile, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", NULL,
						plan->from.container.token_file,
						sizeof(plan->from.container.token_file)))
		return aws_broken(s, "container: a URL, a token or a path is too long");
	if (relative == NULL && check_container_url(s, url) != AWS_FOUND)
		return AWS_BROKEN;
	/* The message omits the path: on ECS, whoever knows it gets the credentials. */
	return aws_to_fetch(s, &aws_fetch_container, "container at %.*s",
						(int) (url_path(url) - url), url);
}

/* ----------------------------------------------------------------
 * The instance
 * ----------------------------------------------------------------
 */

/*
 * Reads a whole number from 1 to max, as botocore does; false if the value is another.  Leaves
 * *number as it is if neither the variable nor the property is set.
 */
static bool
read_number(const aws_profile *profile, const char *variable, const char *property, int max,
			int *number)
{
	char		value[8];
	char	   *end;

	if (!aws_get_either(profile, variable, property, value, sizeof(value)))
		return false;
	if (value[0] == '\0')
		return true;
	*number = strtol(value, &end, 10);
	return *end == '\0' && *number >= 1 && *number <= max;
}

aws_found
aws_plan_metadata(const aws_search *s)
{
	aws_plan   *plan = s->plan;
	const aws_profile *profile = s->profile;
	char	   *url = plan->from.metadata.url;
	char		mode[32];
	char		host[300];
	char		words[100];
	int			timeout_s = 1;
	bool		disabled;

	if (!aws_read_switch(profile, "AWS_EC2_METADATA_DISABLED", NULL, &disabled))
		return aws_broken(s, "instance metadata: AWS_EC2_METADATA_DISABLED is neither true nor false");
	if (disabled)
		return aws_not_here(s, "instance metadata: AWS_EC2_METADATA_DISABLED is true");
	if (profile->unusable[0] != '\0')
		return aws_broken(s, "%s", profile->unusable);

	if (!aws_get_either(profile, "AWS_EC2_METADATA_SERVICE_ENDPOINT",
						"ec2_metadata_service_endpoint", url, AWS_TEXT_SIZE) ||
		!aws_get_either(profile, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
						"ec2_metadata_service_endpoint_mode", mode, sizeof(mode)))
		return aws_broken(s, "instance metadata: endpoint or endpoint mode is too long");
	if (url[0] == '\0')
	{
		bool		v6 = strcasecmp(mode, "IPv6") == 0;

		if (mode[0] != '\0' && !v6 && strcasecmp(mode, "IPv4") != 0)
			return aws_broken(s, "instance metadata: endpoint mode \"%s\" is neither IPv4 nor IPv6",
							  mode);
		strcpy(url, v6 ? METADATA_V6 : METADATA_V4);
	}
	aws_drop_slash(url);
	if (!aws_endpoint_host(url, host, sizeof(host), words, sizeof(words)))
		return aws_broken(s, "instance metadata: %s", words);

	plan->from.metadata.attempts = 0;
	if (!read_number(profile, "AWS_METADATA_SERVICE_TIMEOUT", "metadata_service_timeout",
					 60, &timeout_s))
		return aws_broken(s, "instance metadata: AWS_METADATA_SERVICE_TIMEOUT or "
						  "metadata_service_timeout is not between 1 and 60");
	if (!read_number(profile, "AWS_METADATA_SERVICE_NUM_ATTEMPTS",
					 "metadata_service_num_attempts", 20, &plan->from.metadata.attempts))
		return aws_broken(s, "instance metadata: AWS_METADATA_SERVICE_NUM_ATTEMPTS or "
						  "metadata_service_num_attempts is not between 1 and 20");
	plan->from.metadata.timeout_ms = timeout_s * 1000;
	return aws_to_fetch(s, &aws_fetch_metadata, "instance metadata at %.340s", url);
}

aws_found
aws_make_region_plan(const aws_profile *profile, aws_plan *plan, char *error, size_t error_size)
{
	const aws_search s = {profile, plan, error, error_size};
	aws_found	result;

	memset(plan, 0, sizeof(*plan));
	result = aws_plan_metadata(&s);
	plan->from.metadata.region = true;
	aws_make_printable(plan->keys.source);
	aws_make_printable(error);
	return result;
}

/* ----------------------------------------------------------------
 * Roles
 * ----------------------------------------------------------------
 */

/* Reads a number of seconds that STS accepts as duration; 0: the text is something else. */
static int
read_duration(const char *text)
{
	size_t		digits = strspn(text, "0123456789");
	int			seconds = digits > 0 && digits <= 5 && text[digits] == '\0' ? atoi(text) : 0;

	return seconds >= 900 && seconds <= 43200 ? seconds : 0;
}

aws_found
aws_plan_role(const aws_search *s, const char *where, aws_role *role, const char *duration)
{
	size_t		len;
	const char *wrong = NULL;

	if (role->session_name[0] == '\0')
		strcpy(role->session_name, "ddblock");
	len = strspn(role->session_name, AWS_LETTERS_DIGITS "_+=,.@-");
	role->duration_s = read_duration(duration);
	if (strncmp(role->arn, "arn:", 4) != 0 || !aws_is_visible_ascii(role->arn))
		wrong = "role_arn is not the ARN of a role";
	else if (role->session_name[len] != '\0' || len < 2 || len > 64)
		wrong = "role_session_name is not 2 to 64 letters, digits and _+=,.@-";
	else if (!aws_is_visible_ascii(role->external_id))
		wrong = "external_id is too long, or contains white space or a character that is not ASCII";
	else if (duration[0] != '\0' && role->duration_s == 0)
		wrong = "duration_seconds is not between 900 and 43200";
	return wrong == NULL ? AWS_FOUND : aws_broken(s, "%s: %s", where, wrong);
}
