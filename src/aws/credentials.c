/*-------------------------------------------------------------------------
 *
 * credentials.c
 *	  Finds out where the AWS credentials come from.
 *
 * Each source of credentials is a row of aws_providers.  If a row has nothing, the
 * next is tried.  If a row is invalid, the search ends: otherwise we would silently
 * use other credentials than the configured ones.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/credentials.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "aws/plan.h"

#define MAX_WORDS 1024			/* bytes of one source's error */

static aws_found find_in_settings(const aws_settings *settings,
								  const aws_environment *env, aws_plan *plan,
								  char *error, size_t error_size);
static aws_found find_in_environment(const aws_settings *settings,
									 const aws_environment *env, aws_plan *plan,
									 char *error, size_t error_size);
static aws_found find_web_identity(const aws_settings *settings,
								   const aws_environment *env, aws_plan *plan,
								   char *error, size_t error_size);
static aws_found find_container(const aws_settings *settings,
								const aws_environment *env, aws_plan *plan,
								char *error, size_t error_size);

const aws_provider aws_providers[] = {
	{"settings", find_in_settings},
	{"environment", find_in_environment},
	{"web identity", find_web_identity},
	{"shared files", aws_plan_profile},
	{"container", find_container},
	{"instance metadata", aws_plan_metadata},
};
const int	aws_provider_count = sizeof(aws_providers) / sizeof(aws_providers[0]);

static void
append_words(char *text, size_t size, const char *separator,
			 const char *words)
{
	size_t		used = strlen(text);

	snprintf(text + used, size - used, "%s%s", separator, words);
}

static aws_found
find_in_settings(const aws_settings *settings, const aws_environment *env,
				 aws_plan *plan, char *error, size_t error_size)
{
	const aws_key_source source = {
		.where = "settings",
		.names = {"ddblock.access_key_id", "ddblock.secret_access_key",
		"ddblock.session_token"},
		.values = {settings->access_key_id, settings->secret_access_key,
		settings->session_token}
	};

	(void) env;
	return aws_plan_keys(&source, plan, error, error_size);
}

static aws_found
find_in_environment(const aws_settings *settings, const aws_environment *env,
					aws_plan *plan, char *error, size_t error_size)
{
	/* As in the AWS CLI, ddblock.profile takes precedence over the environment. */
	if (aws_is_set(settings->profile))
	{
		snprintf(error, error_size,
				 "environment: not used, because ddblock.profile is set");
		return AWS_NOT_HERE;
	}
	return aws_plan_environment(env, plan, error, error_size);
}

/* EKS sets these variables: IAM roles for service accounts. */
static aws_found
find_web_identity(const aws_settings *settings, const aws_environment *env,
				  aws_plan *plan, char *error, size_t error_size)
{
	const char *token_file = aws_get_variable(env, "AWS_WEB_IDENTITY_TOKEN_FILE");
	const aws_role_source source = {
		.where = "web identity",
		.arn = aws_get_variable(env, "AWS_ROLE_ARN"),
		.session_name = aws_get_variable(env, "AWS_ROLE_SESSION_NAME"),
	};

	if (token_file == NULL)
	{
		snprintf(error, error_size,
				 "web identity AWS_WEB_IDENTITY_TOKEN_FILE: not set");
		return AWS_NOT_HERE;
	}
	if (aws_is_set(settings->profile) || aws_get_variable(env, "AWS_PROFILE") != NULL)
	{
		snprintf(error, error_size, "web identity: not used, because %s is set",
				 aws_is_set(settings->profile) ? "ddblock.profile" : "AWS_PROFILE");
		return AWS_NOT_HERE;
	}
	if (source.arn == NULL)
	{
		snprintf(error, error_size, "web identity: AWS_WEB_IDENTITY_TOKEN_FILE is set "
				 "but AWS_ROLE_ARN is not");
		return AWS_BROKEN;
	}
	if (aws_plan_role(&source, &plan->from.web.role, error, error_size) != AWS_FOUND)
		return AWS_BROKEN;
	if (!aws_copy_text(token_file, plan->from.web.token_file,
					   sizeof(plan->from.web.token_file)))
	{
		snprintf(error, error_size, "web identity: AWS_WEB_IDENTITY_TOKEN_FILE is too long");
		return AWS_BROKEN;
	}
	plan->base = AWS_BASE_WEB_IDENTITY;
	snprintf(plan->keys.source, sizeof(plan->keys.source),
			 "web identity, role %.300s", plan->from.web.role.arn);
	return AWS_FOUND;
}

static aws_found
find_container(const aws_settings *settings, const aws_environment *env,
			   aws_plan *plan, char *error, size_t error_size)
{
	(void) settings;
	return aws_plan_container(env, plan, error, error_size);
}

aws_found
aws_make_plan(const aws_settings *settings, const aws_environment *env,
			  aws_plan *plan, char *error, size_t error_size)
{
	aws_found	result = AWS_NOT_HERE;
	char		words[MAX_WORDS];
	int			i;

	memset(plan, 0, sizeof(*plan));
	snprintf(plan->tried, sizeof(plan->tried), "no credentials");
	for (i = 0; i < aws_provider_count && result == AWS_NOT_HERE; i++)
	{
		const char *separator = i == 0 ? ": " : "; ";

		words[0] = '\0';
		result = aws_providers[i].find(settings, env, plan, words, sizeof(words));
		if (result == AWS_FOUND &&
			(plan->role_count > 0 || plan->base == AWS_BASE_WEB_IDENTITY))
			result = aws_plan_sts(settings, env, plan, words, sizeof(words));
		append_words(plan->tried, sizeof(plan->tried), separator,
					 result == AWS_FOUND ? "" : words);
	}
	aws_make_printable(plan->tried);
	aws_make_printable(plan->keys.source);
	error[0] = '\0';
	if (result == AWS_FOUND)
		return AWS_FOUND;
	snprintf(error, error_size, "%s", plan->tried);
	aws_plan_wipe(plan);
	return result;
}

void
aws_credentials_wipe(aws_credentials *credentials)
{
	OPENSSL_cleanse(credentials, sizeof(*credentials));
}

void
aws_plan_wipe(aws_plan *plan)
{
	OPENSSL_cleanse(plan, sizeof(*plan));
}
