/*-------------------------------------------------------------------------
 *
 * profile.c
 *	  One profile, as the shared config and credentials files define it.
 *
 * The section of a profile is "[NAME]" in the credentials file, and "[profile NAME]" in the config
 * file.  There, the default profile may also be "[default]" if there is no "[profile default]".
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <strings.h>

bool
aws_is_set(const char *value)
{
	return value != NULL && value[0] != '\0';
}

const char *
aws_get_variable(const aws_environment *env, const char *name)
{
	const char *value = env->get(env->arg, name);

	return aws_is_set(value) ? value : NULL;
}

bool
aws_read_switch(const aws_profile *profile, const char *variable, const char *property, bool *on)
{
	char		value[8];
	bool		fits = aws_get_either(profile, variable, property, value, sizeof(value));

	*on = fits && strcasecmp(value, "true") == 0;
	return *on || (fits && (value[0] == '\0' || strcasecmp(value, "false") == 0));
}

bool
aws_get_either(const aws_profile *profile, const char *variable, const char *property,
			   char *value, size_t size)
{
	const char *given = aws_get_variable(profile->env, variable);

	value[0] = '\0';
	if (given != NULL)
		return aws_copy_text(given, value, size);
	return property == NULL || aws_profile_get(profile, property, value, size) != INI_TOO_LONG;
}

bool
aws_copy_text(const char *text, char *out, size_t size)
{
	size_t		len = strlen(text);

	if (len >= size)
		return false;
	memcpy(out, text, len + 1);
	return true;
}

void
aws_make_printable(char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

bool
aws_is_visible_ascii(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

/* Reads a file; false if it is unusable.  Only a file at the default place may be missing. */
static bool
read_profile_file(aws_profile *profile, aws_profile_file *file,
				  const char *variable, const char *default_path)
{
	const aws_environment *env = profile->env;
	const char *named = aws_get_variable(env, variable);
	const char *path = named != NULL ? named : default_path;
	bool		at_home = path[0] == '~' && (path[1] == '/' || path[1] == '\0');
	bool		known = !at_home || aws_is_set(env->home);
	int			len = snprintf(file->path, sizeof(file->path), "%s%s",
							   at_home && known ? env->home : "",
							   at_home && known ? path + 1 : path);

	/* A path that is too long, or below an unknown home directory, counts as missing. */
	errno = ENOENT;
	if (known && len >= 0 && (size_t) len < sizeof(file->path))
		file->text.start = env->read_file(env->arg, file->path, &file->text.len);
	if (file->text.start != NULL ||
		(named == NULL && (errno == ENOENT || errno == ENOTDIR)))
		return true;
	snprintf(profile->unusable, sizeof(profile->unusable),
			 "%.300s%s%s%s cannot be read: %s", file->path,
			 named != NULL ? " (" : "", named != NULL ? variable : "", named != NULL ? ")" : "",
			 strerror(errno));
	return false;
}

static void
find_sections(aws_profile *profile)
{
	aws_profile_file *credentials = &profile->credentials;
	aws_profile_file *config = &profile->config;

	credentials->has_profile = ini_has_section(credentials->text, NULL,
											   profile->name);
	config->kind = "profile";
	config->has_profile = ini_has_section(config->text, config->kind,
										  profile->name);
	if (!config->has_profile && strcmp(profile->name, "default") == 0)
	{
		config->kind = NULL;
		config->has_profile = ini_has_section(config->text, NULL,
											  "default");
	}
}

static bool
check_format(aws_profile *profile, const aws_profile_file *file)
{
	int			line = ini_malformed_line(file->text);

	if (line == 0)
		return true;
	snprintf(profile->unusable, sizeof(profile->unusable), "%.900s: line %d is malformed%s",
			 file->path, line, file->text.len > 3 && memcmp(file->text.start, "\xef\xbb\xbf", 3) == 0 ?
			 ": the file begins with a byte order mark" : "");
	return false;
}

const char *
aws_profile_absence(const aws_profile_file *file)
{
	return file->text.start == NULL ? "file not found" : "no such profile";
}

void
aws_profile_open(aws_profile *profile, const aws_settings *settings, const aws_environment *env)
{
	aws_profile_file *credentials = &profile->credentials;
	aws_profile_file *config = &profile->config;
	bool		named;
	bool		ok;

	memset(profile, 0, sizeof(*profile));
	profile->settings = *settings;
	profile->env = env;
	profile->name = settings->profile;
	if (!aws_is_set(profile->name))
		profile->name = aws_get_variable(env, "AWS_PROFILE");
	if (profile->name == NULL)
		profile->name = aws_get_variable(env, "AWS_DEFAULT_PROFILE");
	named = profile->name != NULL;	/* a profile that is named must exist */
	if (!named)
		profile->name = "default";
	ok = read_profile_file(profile, credentials, "AWS_SHARED_CREDENTIALS_FILE",
						   "~/.aws/credentials") &&
		read_profile_file(profile, config, "AWS_CONFIG_FILE", "~/.aws/config");
	find_sections(profile);

	ok = ok && check_format(profile, credentials) && check_format(profile, config);
	if (ok && named && !credentials->has_profile && !config->has_profile)
	{
		snprintf(profile->unusable, sizeof(profile->unusable),
				 "profile \"%s\" in %s: %s, in %s: %s", profile->name,
				 credentials->path, aws_profile_absence(credentials),
				 config->path, aws_profile_absence(config));
		ok = false;
	}
	if (!ok)
		aws_profile_close(profile);
}

bool
aws_profile_other(const aws_profile *profile, const char *name, aws_profile *other)
{
	*other = *profile;
	other->name = name;
	find_sections(other);
	return other->credentials.has_profile || other->config.has_profile;
}

static void
close_file(aws_profile_file *file)
{
	char	   *text = (char *) file->text.start;

	if (text != NULL)
		OPENSSL_cleanse(text, file->text.len);
	free(text);
	file->text = (ini_slice) {NULL, 0};
}

void
aws_profile_close(aws_profile *profile)
{
	close_file(&profile->credentials);
	close_file(&profile->config);
}

ini_result
aws_profile_get_from(const aws_profile *profile, const aws_profile_file *file,
					 const char *property, char *value, size_t size)
{
	return ini_get(file->text, file->kind, profile->name, property, NULL,
				   value, size);
}

ini_result
aws_profile_get(const aws_profile *profile, const char *property,
				char *value, size_t size)
{
	ini_result	result = aws_profile_get_from(profile, &profile->credentials,
											  property, value, size);

	if (result == INI_ABSENT)
		result = aws_profile_get_from(profile, &profile->config, property,
									  value, size);
	return result;
}

/*
 * If the shared files are unusable, the profile's ca_bundle counts as unset.  That is safe: servers
 * whose certificates come from these authorities are not trusted then.
 */
bool
aws_find_ca_file(const aws_profile *profile, char *path, size_t size,
				 char *error, size_t error_size)
{
	const aws_environment *env = profile->env;
	const char *where = "ddblock.ca_file";
	const char *given = aws_is_set(profile->settings.ca_file) ? profile->settings.ca_file : NULL;
	char	   *text;
	size_t		ignored;
	bool		fits;

	path[0] = '\0';
	if (given == NULL)
	{
		where = "AWS_CA_BUNDLE";
		given = aws_get_variable(env, where);
	}
	if (given == NULL)
		where = "the profile's ca_bundle";
	fits = given != NULL ? aws_copy_text(given, path, size) :
		aws_profile_get(profile, "ca_bundle", path, size) != INI_TOO_LONG;
	if (fits && path[0] == '\0')
		return true;
	errno = ENAMETOOLONG;
	text = fits ? env->read_file(env->arg, path, &ignored) : NULL;
	free(text);
	if (text != NULL)
		return true;
	snprintf(error, error_size, "%s: %.300s cannot be read: %s", where, path, strerror(errno));
	aws_make_printable(error);
	return false;
}
