/*-------------------------------------------------------------------------
 *
 * credential_chain.c
 *	  Finds out where the AWS credentials come from.
 *
 * If a source has no credentials, the next source is tried.  If a source is invalid (a key without
 * its secret, for example), the search ends: otherwise ddblock would silently use other credentials
 * than the configured ones.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#define MAX_WORDS 1024			/* bytes of one source's error */

static aws_found
find_in_settings(const aws_search *s)
{
	const aws_settings *settings = &s->profile->settings;
	const aws_key_source source = {
		.where = "settings",
		.names = {"ddblock.access_key_id", "ddblock.secret_access_key",
		"ddblock.session_token"},
		.values = {settings->access_key_id, settings->secret_access_key,
		settings->session_token}
	};

	return aws_plan_keys(s, &source);
}

static aws_found
find_in_environment(const aws_search *s)
{
	/* As in the AWS CLI, ddblock.profile takes precedence over the environment. */
	if (aws_is_set(s->profile->settings.profile))
		return aws_not_here(s, "environment: not used, because ddblock.profile is set");
	return aws_plan_environment(s);
}

/* The variables are those that EKS sets for "IAM roles for service accounts". */
static aws_found
find_web_identity(const aws_search *s)
{
	aws_plan   *plan = s->plan;
	const aws_environment *env = s->profile->env;
	bool		by_setting = aws_is_set(s->profile->settings.profile);
	const char *token_file = aws_get_variable(env, "AWS_WEB_IDENTITY_TOKEN_FILE");
	const char *session_name = aws_get_variable(env, "AWS_ROLE_SESSION_NAME");
	aws_role   *role = &plan->from.web.role;

	if (token_file == NULL)
		return aws_not_here(s, "web identity AWS_WEB_IDENTITY_TOKEN_FILE: not set");
	if (by_setting || aws_get_variable(env, "AWS_PROFILE") != NULL)
		return aws_not_here(s, "web identity: not used, because %s is set",
							by_setting ? "ddblock.profile" : "AWS_PROFILE");
	if (aws_get_variable(env, "AWS_ROLE_ARN") == NULL)
		return aws_broken(s, "web identity: AWS_WEB_IDENTITY_TOKEN_FILE is set "
						  "but AWS_ROLE_ARN is not");
	/*
	 * aws_plan_role() refuses texts that are too long: an ARN that does not fit is "" here, and a
	 * session name that is cut still has more than 64 characters.
	 */
	(void) aws_get_either(s->profile, "AWS_ROLE_ARN", NULL, role->arn, sizeof(role->arn));
	snprintf(role->session_name, sizeof(role->session_name), "%s",
			 session_name != NULL ? session_name : "");
	if (aws_plan_role(s, "web identity", role, "") != AWS_FOUND)
		return AWS_BROKEN;
	if (!aws_copy_text(token_file, plan->from.web.token_file,
					   sizeof(plan->from.web.token_file)))
		return aws_broken(s, "web identity: AWS_WEB_IDENTITY_TOKEN_FILE is too long");
	return aws_to_fetch(s, &aws_fetch_web_identity, "web identity, role %.300s", role->arn);
}

/* The sources, in the order in which they are tried. */
static aws_found (*const sources[]) (const aws_search *s) = {
	find_in_settings,
	find_in_environment,
	find_web_identity,
	aws_plan_profile,
	aws_plan_container,
	aws_plan_metadata,
};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))

void
aws_plan_error(char *to, size_t size, const char *last, const char *tried)
{
	snprintf(to, size, "%.760s%s%s", last, tried[0] != '\0' ? "; before it: " : "", tried);
}

aws_found
aws_make_plan(const aws_profile *profile, aws_plan *plan, char *error, size_t error_size)
{
	aws_found	result = AWS_NOT_HERE;
	char		words[MAX_WORDS];
	char		sts_words[MAX_WORDS];
	const aws_search s = {profile, plan, words, sizeof(words)};

	memset(plan, 0, sizeof(*plan));
	for (size_t i = 0; i < SOURCES && result == AWS_NOT_HERE; i++)
	{
		size_t		used = strlen(plan->tried);

		if (i > 0)
			snprintf(plan->tried + used, sizeof(plan->tried) - used, "%s%s",
					 used > 0 ? "; " : "", words);
		words[0] = '\0';
		result = sources[i] (&s);
	}
	/* Roles are assumed with the Region's STS. */
	if (result == AWS_FOUND &&
		(plan->role_count > 0 || plan->fetcher == &aws_fetch_web_identity) &&
		(aws_find_region(profile, plan->sts_region, sizeof(plan->sts_region),
						 sts_words, sizeof(sts_words)) != AWS_FOUND ||
		 !aws_find_endpoint(profile, AWS_STS, plan->sts_region, plan->sts_url,
							sizeof(plan->sts_url), sts_words, sizeof(sts_words))))
		result = aws_broken(&s, "Region or endpoint of STS: %s", sts_words);
	aws_make_printable(plan->tried);
	aws_make_printable(plan->keys.source);
	error[0] = '\0';
	if (result == AWS_FOUND)
		return AWS_FOUND;
	aws_make_printable(words);
	aws_plan_error(error, error_size, words, plan->tried);
	aws_wipe(plan);
	return result;
}
