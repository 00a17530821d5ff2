/*-------------------------------------------------------------------------
 *
 * credentials.c
 *	  Finds AWS credentials: settings, then environment, then the shared config
 *	  and credentials files.
 *
 * Each source of credentials is a row of aws_providers; roles, containers and
 * the instance metadata service would be further rows.  If a row has nothing,
 * the next is tried.  If a row is invalid, the search ends: otherwise we would
 * silently use other credentials than the configured ones.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/credentials.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "aws/profile.h"

#define MAX_WORDS 1024			/* bytes of one source's error */

/* The three parts of credentials, as one source has them. */
typedef struct key_source
{
	const char *where;			/* for people: "environment" */
	const char *names[3];
	const char *values[3];		/* NULL or "" where unset */
} key_source;

static aws_found find_in_settings(const aws_settings *settings,
								  const aws_environment *env,
								  aws_credentials *found,
								  char *error, size_t error_size);
static aws_found find_in_environment(const aws_settings *settings,
									 const aws_environment *env,
									 aws_credentials *found,
									 char *error, size_t error_size);
static aws_found find_in_files(const aws_settings *settings,
							   const aws_environment *env,
							   aws_credentials *found,
							   char *error, size_t error_size);

const aws_provider aws_providers[] = {
	{"settings", find_in_settings},
	{"environment", find_in_environment},
	{"shared files", find_in_files},
};
const int	aws_provider_count = sizeof(aws_providers) / sizeof(aws_providers[0]);

static void
append_words(char *text, size_t size, const char *separator,
			 const char *words)
{
	size_t		used = strlen(text);

	snprintf(text + used, size - used, "%s%s", separator, words);
}

/*
 * Copies the credentials of one source, or says what is wrong with them.
 */
static aws_found
take_keys(const key_source *source, aws_credentials *found,
		  char *error, size_t error_size)
{
	char	   *const fields[3] = {found->access_key_id,
	found->secret_access_key, found->session_token};
	const size_t sizes[3] = {sizeof(found->access_key_id),
	sizeof(found->secret_access_key), sizeof(found->session_token)};
	int			set = -1;
	int			i;

	for (i = 0; i < 3; i++)
		if (aws_is_set(source->values[i]))
			set = i;
	if (set < 0)
	{
		snprintf(error, error_size, "%s %s: not set",
				 source->where, source->names[0]);
		return AWS_NOT_HERE;
	}

	for (i = 0; i < 3; i++)
	{
		const char *value = source->values[i];
		const char *wrong = NULL;

		if (!aws_is_set(value))
		{
			if (i == 2)
				continue;
			snprintf(error, error_size, "%s: %s is set but %s is not",
					 source->where, source->names[set], source->names[i]);
			return AWS_BROKEN;
		}
		if (!aws_copy_text(value, fields[i], sizes[i]))
			wrong = "is too long";
		else if (!aws_is_visible_ascii(value))
			wrong = "contains white space or a character that is not ASCII";
		if (wrong != NULL)
		{
			snprintf(error, error_size, "%s: %s %s",
					 source->where, source->names[i], wrong);
			return AWS_BROKEN;
		}
	}
	snprintf(found->source, sizeof(found->source), "%s", source->where);
	return AWS_FOUND;
}

static aws_found
find_in_settings(const aws_settings *settings, const aws_environment *env,
				 aws_credentials *found, char *error, size_t error_size)
{
	const key_source source = {
		.where = "settings",
		.names = {"ddblock.access_key_id", "ddblock.secret_access_key",
		"ddblock.session_token"},
		.values = {settings->access_key_id, settings->secret_access_key,
		settings->session_token}
	};

	(void) env;
	return take_keys(&source, found, error, error_size);
}

static aws_found
find_in_environment(const aws_settings *settings, const aws_environment *env,
					aws_credentials *found, char *error, size_t error_size)
{
	key_source	source = {
		.where = "environment",
		.names = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_SESSION_TOKEN"}
	};
	int			i;

	/* As in the AWS CLI, ddblock.profile takes precedence over the environment. */
	if (aws_is_set(settings->profile))
	{
		snprintf(error, error_size,
				 "environment: not used, because ddblock.profile is set");
		return AWS_NOT_HERE;
	}
	for (i = 0; i < 3; i++)
		source.values[i] = aws_get_variable(env, source.names[i]);
	return take_keys(&source, found, error, error_size);
}

/*
 * The shared files
 */

/* The first of these properties that the profile has, or NULL. */
static const char *
first_property(const aws_profile *profile, const char *const *properties)
{
	char		value[2];

	for (; *properties != NULL; properties++)
	{
		ini_result	result = aws_profile_get(profile, *properties,
											 value, sizeof(value));

		if (result == INI_TOO_LONG || (result == INI_FOUND && aws_is_set(value)))
			return *properties;
	}
	return NULL;
}

static aws_found
refuse_property(const aws_profile *profile, const char *property,
				char *error, size_t error_size)
{
	snprintf(error, error_size, "profile \"%s\": %s is not supported",
			 profile->name, property);
	return AWS_BROKEN;
}

static aws_found
find_in_file(const aws_profile *profile, const aws_profile_file *file,
			 aws_credentials *found, char *error, size_t error_size)
{
	char		where[sizeof(found->source)];
	key_source	source = {
		.where = where,
		.names = {"aws_access_key_id", "aws_secret_access_key",
		"aws_session_token"}
	};
	aws_credentials read;
	char	   *const values[3] = {read.access_key_id, read.secret_access_key,
	read.session_token};
	const size_t sizes[3] = {sizeof(read.access_key_id),
	sizeof(read.secret_access_key), sizeof(read.session_token)};
	aws_found	result = AWS_FOUND;
	int			i;

	if (!file->has_profile)
	{
		snprintf(error, error_size, "profile \"%s\" in %s: %s", profile->name,
				 file->path, aws_profile_absence(file));
		return AWS_NOT_HERE;
	}

	snprintf(where, sizeof(where), "profile \"%.50s\" in %.300s", profile->name,
			 file->path);
	for (i = 0; i < 3; i++)
	{
		if (aws_profile_get_from(profile, file, source.names[i],
								 values[i], sizes[i]) == INI_TOO_LONG)
		{
			snprintf(error, error_size, "%s: %s is too long", where,
					 source.names[i]);
			result = AWS_BROKEN;
		}
		source.values[i] = values[i];
	}
	if (result == AWS_FOUND)
		result = take_keys(&source, found, error, error_size);
	if (result == AWS_FOUND)
		snprintf(found->file, sizeof(found->file), "%.1023s", file->path);
	OPENSSL_cleanse(&read, sizeof(read));
	return result;
}

/*
 * The order is that of the AWS CLI: a role or single sign-on comes before
 * keys, a process between those of the credentials file and those of the
 * config file.
 */
static aws_found
find_in_profile(const aws_profile *profile, aws_credentials *found,
				char *error, size_t error_size)
{
	static const char *const before_keys[] = {
		"role_arn", "web_identity_token_file", "sso_session", "sso_start_url",
		"login_session", NULL
	};
	static const char *const process[] = {"credential_process", NULL};
	const char *property;
	char		words[MAX_WORDS] = "";
	aws_found	result;

	property = first_property(profile, before_keys);
	if (property != NULL)
		return refuse_property(profile, property, error, error_size);

	result = find_in_file(profile, &profile->credentials, found,
						  error, error_size);
	if (result != AWS_NOT_HERE)
		return result;

	property = first_property(profile, process);
	if (property != NULL)
		return refuse_property(profile, property, error, error_size);

	result = find_in_file(profile, &profile->config, found,
						  words, sizeof(words));
	append_words(error, error_size, "; ", words);
	return result;
}

static aws_found
find_in_files(const aws_settings *settings, const aws_environment *env,
			  aws_credentials *found, char *error, size_t error_size)
{
	aws_profile profile;
	aws_found	result;

	if (!aws_profile_open(&profile, settings, env, error, error_size))
		return AWS_BROKEN;
	result = find_in_profile(&profile, found, error, error_size);
	aws_profile_close(&profile);
	return result;
}

bool
aws_find_credentials(const aws_settings *settings, const aws_environment *env,
					 aws_credentials *found, char *error, size_t error_size)
{
	aws_found	result = AWS_NOT_HERE;
	int			i;

	memset(found, 0, sizeof(*found));
	snprintf(error, error_size, "no credentials");
	for (i = 0; i < aws_provider_count && result == AWS_NOT_HERE; i++)
	{
		char		words[MAX_WORDS] = "";

		result = aws_providers[i].find(settings, env, found,
									   words, sizeof(words));
		append_words(error, error_size, i == 0 ? ": " : "; ", words);
	}
	aws_make_printable(error);
	aws_make_printable(found->source);
	if (result == AWS_FOUND)
	{
		error[0] = '\0';
		return true;
	}
	aws_credentials_wipe(found);
	return false;
}

void
aws_credentials_wipe(aws_credentials *credentials)
{
	OPENSSL_cleanse(credentials, sizeof(*credentials));
}
