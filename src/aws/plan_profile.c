/*-------------------------------------------------------------------------
 *
 * plan_profile.c
 *	  The credentials of a profile: its keys, or the source that it names instead.
 *
 * A profile with role_arn also names another profile or a source.  The credentials of that one
 * assume the role.  The other profile may have a role itself, and so on: a chain of roles.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#define MAX_WORDS 1024

static aws_found
refuse(const aws_search *s, const aws_profile *profile, const char *why)
{
	return aws_broken(s, "profile \"%s\": %s", profile->name, why);
}

static bool
has(const aws_profile *profile, const char *property)
{
	char		value[2];
	ini_result	result = aws_profile_get(profile, property, value, sizeof(value));

	return result == INI_TOO_LONG || (result == INI_FOUND && aws_is_set(value));
}

/* Writes a property's value; "" if it is unset.  False, with an error, if it is too long. */
static bool
get(const aws_search *s, const aws_profile *profile, const char *property,
	char *value, size_t size)
{
	value[0] = '\0';
	if (aws_profile_get(profile, property, value, size) != INI_TOO_LONG)
		return true;
	(void) aws_broken(s, "profile \"%s\": %s is too long", profile->name, property);
	return false;
}

/* ----------------------------------------------------------------
 * Keys
 * ----------------------------------------------------------------
 */

static aws_found
find_in_file(const aws_search *s, const aws_profile *profile, const aws_profile_file *file)
{
	aws_credentials *found = &s->plan->keys;
	char		where[sizeof(found->source)];
	char		values[3][sizeof(found->session_token)];
	aws_key_source source = {
		.where = where,
		.names = {"aws_access_key_id", "aws_secret_access_key",
		"aws_session_token"},
		.values = {values[0], values[1], values[2]}
	};
	aws_found	result = AWS_FOUND;

	if (!file->has_profile)
		return aws_not_here(s, "profile \"%s\" in %s: %s", profile->name, file->path,
							aws_profile_absence(file));

	snprintf(where, sizeof(where), "profile \"%.50s\" in %.300s", profile->name,
			 file->path);
	if (aws_profile_get_from(profile, file, source.names[2], values[2], sizeof(values[2])) != INI_TOO_LONG &&
		!aws_is_set(values[2]))
		source.names[2] = "aws_security_token"; /* its old name, which SDKs still read */
	for (int i = 0; i < 3; i++)
		if (aws_profile_get_from(profile, file, source.names[i],
								 values[i], sizeof(values[i])) == INI_TOO_LONG)
			result = aws_broken(s, "%s: %s is too long", where, source.names[i]);
	if (result == AWS_FOUND)
		result = aws_plan_keys(s, &source);
	if (result == AWS_FOUND)
		snprintf(found->file, sizeof(found->file), "%.1023s", file->path);
	OPENSSL_cleanse(values, sizeof(values));
	return result;
}

/* ----------------------------------------------------------------
 * Single sign-on
 * ----------------------------------------------------------------
 */

/* The name of the cache's file is the SHA-1 of the session's name, or else of the start URL. */
static bool
name_token_file(const aws_search *s, const char *key)
{
	char	   *path = s->plan->from.sso.token_file;
	unsigned char hash[20];
	unsigned	len = sizeof(hash);
	int			used;

	if (!aws_is_set(s->profile->env->home) ||
		EVP_Digest(key, strlen(key), hash, &len, EVP_sha1(), NULL) != 1)
		return false;
	used = snprintf(path, AWS_TEXT_SIZE, "%s/.aws/sso/cache/", s->profile->env->home);
	if (used < 0 || used + 2 * sizeof(hash) + sizeof(".json") > AWS_TEXT_SIZE)
		return false;
	for (size_t i = 0; i < sizeof(hash); i++)
		used += snprintf(path + used, 3, "%02x", hash[i]);
	strcpy(path + used, ".json");
	return true;
}

/* Has the text only the characters that account IDs and the names of roles have? */
static bool
is_word(const char *text)
{
	return text[0] != '\0' &&
		text[strspn(text, AWS_LETTERS_DIGITS "+=,.@_-")] == '\0';
}

/*
 * Reads the property of the section [sso-session] into value, which has the profile's own property
 * of that name, or "".  Returns false if the profile has another value, or if the text is too long.
 */
static bool
get_of_session(const aws_profile *profile, const char *session, const char *property,
			   char *value, size_t size)
{
	char		repeated[AWS_TEXT_SIZE];

	(void) snprintf(repeated, sizeof(repeated), "%s", value);
	return ini_get(profile->config.text, "sso-session", session, property, NULL, value,
				   size) != INI_TOO_LONG &&
		(repeated[0] == '\0' || strcmp(repeated, value) == 0);
}

static aws_found
find_sso(const aws_search *s, const aws_profile *profile)
{
	aws_plan   *plan = s->plan;
	char		session[AWS_NAME_SIZE];
	char		region[AWS_NAME_SIZE];
	char		start_url[AWS_TEXT_SIZE];
	char		words[300];

	if (!get(s, profile, "sso_session", session, sizeof(session)) ||
		!get(s, profile, "sso_region", region, sizeof(region)) ||
		!get(s, profile, "sso_start_url", start_url, sizeof(start_url)) ||
		!get(s, profile, "sso_account_id", plan->from.sso.account_id,
			 sizeof(plan->from.sso.account_id)) ||
		!get(s, profile, "sso_role_name", plan->from.sso.role_name,
			 sizeof(plan->from.sso.role_name)))
		return AWS_BROKEN;
	if (session[0] != '\0')
	{
		if (!ini_has_section(profile->config.text, "sso-session", session))
			return refuse(s, profile,
						  "sso_session names a section [sso-session] that does not exist");
		if (!get_of_session(profile, session, "sso_region", region, sizeof(region)))
			return refuse(s, profile, "sso_region is too long, or not that of the section [sso-session]");
		if (!get_of_session(profile, session, "sso_start_url", start_url, sizeof(start_url)))
			return refuse(s, profile, "sso_start_url is too long, or not that of the section [sso-session]");
	}
	if (region[0] == '\0' || start_url[0] == '\0')
		return refuse(s, profile, "single sign-on needs sso_region and sso_start_url");
	if (!is_word(plan->from.sso.account_id) || !is_word(plan->from.sso.role_name))
		return refuse(s, profile, "single sign-on needs sso_account_id and sso_role_name");
	if (aws_wrong_region(region) != NULL)
		return aws_broken(s, "profile \"%s\": sso_region is %s", profile->name,
						  aws_wrong_region(region));
	if (!name_token_file(s, session[0] != '\0' ? session : start_url))
		return refuse(s, profile, "the home directory, which has the token of single sign-on, is unknown");
	if (!aws_find_endpoint(s->profile, AWS_SSO, region, plan->from.sso.url,
						   sizeof(plan->from.sso.url), words, sizeof(words)) ||
		!aws_find_endpoint(s->profile, AWS_SSO_OIDC, region, plan->from.sso.oidc_url,
						   sizeof(plan->from.sso.oidc_url), words, sizeof(words)))
		return refuse(s, profile, words);
	return aws_to_fetch(s, &aws_fetch_sso, "single sign-on of profile \"%.50s\"", profile->name);
}

/* ----------------------------------------------------------------
 * The other sources of a profile
 * ----------------------------------------------------------------
 */

static aws_found
read_role(const aws_search *s, const aws_profile *profile, aws_role *role)
{
	char		where[100];
	char		duration[16];

	snprintf(where, sizeof(where), "profile \"%.50s\"", profile->name);
	if (!get(s, profile, "role_arn", role->arn, sizeof(role->arn)) ||
		!get(s, profile, "role_session_name", role->session_name, sizeof(role->session_name)) ||
		!get(s, profile, "external_id", role->external_id, sizeof(role->external_id)) ||
		!get(s, profile, "duration_seconds", duration, sizeof(duration)))
		return AWS_BROKEN;
	if (has(profile, "mfa_serial"))
		return refuse(s, profile, "mfa_serial needs a person at each renewal: "
					  "a server cannot use this role");
	return aws_plan_role(s, where, role, duration);
}

static aws_found
find_web_identity(const aws_search *s, const aws_profile *profile)
{
	aws_plan   *plan = s->plan;

	if (!has(profile, "role_arn"))
		return refuse(s, profile, "web_identity_token_file is set but role_arn is not");
	if (read_role(s, profile, &plan->from.web.role) != AWS_FOUND ||
		!get(s, profile, "web_identity_token_file", plan->from.web.token_file,
			 sizeof(plan->from.web.token_file)))
		return AWS_BROKEN;
	return aws_to_fetch(s, &aws_fetch_web_identity, "web identity of profile \"%.50s\"",
						profile->name);
}

/* Looks into the source that the profile's credential_source names. */
static aws_found
find_named_source(const aws_search *s, const aws_profile *profile)
{
	char		name[AWS_NAME_SIZE];
	char		words[MAX_WORDS];
	aws_found	result;

	if (!get(s, profile, "credential_source", name, sizeof(name)))
		return AWS_BROKEN;
	if (strcmp(name, "Environment") == 0)
		result = aws_plan_environment(s);
	else if (strcmp(name, "EcsContainer") == 0)
		result = aws_plan_container(s);
	else if (strcmp(name, "Ec2InstanceMetadata") == 0)
		result = aws_plan_metadata(s);
	else
		return refuse(s, profile, "credential_source is neither Environment nor EcsContainer "
					  "nor Ec2InstanceMetadata");
	if (result == AWS_FOUND)
		return AWS_FOUND;
	snprintf(words, sizeof(words), "%s", s->error);
	return aws_broken(s, "profile \"%s\", credential_source: %s", profile->name, words);
}

/*
 * Finds a profile's own credentials, without a role of a chain.  As in the AWS CLI, the order is:
 * credential_source, web identity, single sign-on, keys in the credentials file, a command, keys in
 * the config file.
 */
static aws_found
find_base(const aws_search *s, const aws_profile *profile)
{
	static const char *const sso[] = {
		"sso_session", "sso_start_url", "sso_account_id", "sso_role_name", "sso_region"
	};
	char		words[MAX_WORDS] = "";
	aws_search	config = *s;
	size_t		used;
	aws_found	result;

	if (has(profile, "credential_source"))
		return find_named_source(s, profile);
	if (has(profile, "web_identity_token_file"))
		return find_web_identity(s, profile);
	for (size_t i = 0; i < sizeof(sso) / sizeof(sso[0]); i++)
		if (has(profile, sso[i]))
			return find_sso(s, profile);
	if (has(profile, "login_session"))
		return refuse(s, profile, "login_session needs a person: a server cannot use it");

	result = find_in_file(s, profile, &profile->credentials);
	if (result != AWS_NOT_HERE)
		return result;
	if (has(profile, "credential_process"))
	{
		if (!get(s, profile, "credential_process", s->plan->from.command,
				 sizeof(s->plan->from.command)))
			return AWS_BROKEN;
		return aws_to_fetch(s, &aws_fetch_process, "credential_process of profile \"%.50s\"",
							profile->name);
	}
	config.error = words;
	config.error_size = sizeof(words);
	result = find_in_file(&config, profile, &profile->config);
	used = strlen(s->error);
	snprintf(s->error + used, s->error_size - used, "; %s", words);
	return result;
}

/* ----------------------------------------------------------------
 * Chains of roles
 * ----------------------------------------------------------------
 */

/* Does the profile assume a role with the credentials of another profile or of a source? */
static bool
is_chained(const aws_profile *profile)
{
	return has(profile, "role_arn") && !has(profile, "web_identity_token_file");
}

/*
 * Follows the chain of profiles up to the one that has credentials.  Example: profile "a" has role
 * A and source_profile "b"; "b" has role B and source_profile "c"; "c" has keys.  Then the plan has
 * these keys, and the roles B and A, in this order.
 */
static aws_found
follow_chain(const aws_search *s, const aws_profile *first)
{
	aws_profile profile = *first;
	char		names[AWS_ROLES_MAX][AWS_NAME_SIZE];
	aws_plan   *plan = s->plan;

	for (;;)
	{
		char	   *source = names[plan->role_count];

		/* The plan lists roles as they are assumed, from the end of the chain: insert in front. */
		memmove(&plan->roles[1], &plan->roles[0], plan->role_count * sizeof(aws_role));
		if (read_role(s, &profile, &plan->roles[0]) != AWS_FOUND ||
			!get(s, &profile, "source_profile", source, AWS_NAME_SIZE))
			return AWS_BROKEN;
		plan->role_count++;
		if (has(&profile, "credential_source"))
			return source[0] == '\0' ? find_base(s, &profile) :
				refuse(s, &profile, "has both source_profile and credential_source");
		if (source[0] == '\0')
			return refuse(s, &profile,
						  "role_arn needs source_profile or credential_source");
		if (strcmp(source, profile.name) == 0)
			return find_base(s, &profile);
		if (strcmp(source, first->name) == 0)
			return refuse(s, &profile, "source_profile leads in a circle");
		for (int i = 0; i < plan->role_count - 1; i++)
			if (strcmp(source, names[i]) == 0)
				return refuse(s, &profile, "source_profile leads in a circle");
		if (!aws_profile_other(first, source, &profile))
			return aws_broken(s, "profile \"%s\", the source_profile of another, does not exist",
							  source);
		/* A source profile's keys take precedence over its role. */
		if (!is_chained(&profile) || has(&profile, "aws_access_key_id"))
			return find_base(s, &profile);
		if (plan->role_count == AWS_ROLES_MAX)
			return refuse(s, &profile, "too many roles in a chain");
	}
}

aws_found
aws_plan_profile(const aws_search *s)
{
	const aws_profile *profile = s->profile;
	aws_plan   *plan = s->plan;
	char		base[200];

	if (profile->unusable[0] != '\0')
		return aws_broken(s, "%s", profile->unusable);
	if (!is_chained(profile))
		return find_base(s, profile);
	/* A source profile must have credentials.  Without a chain, the next source is tried. */
	if (follow_chain(s, profile) != AWS_FOUND)
		return AWS_BROKEN;
	snprintf(base, sizeof(base), "%.199s", plan->keys.source);
	snprintf(plan->keys.source, sizeof(plan->keys.source),
			 "role %.120s of profile \"%.50s\", assumed with %.150s",
			 plan->roles[plan->role_count - 1].arn, profile->name, base);
	return AWS_FOUND;
}
