/*-------------------------------------------------------------------------
 *
 * profile.h
 *	  One profile, as the shared config and credentials files define it.
 *
 * For credentials.c and endpoint.c.  Which files and which profile: AWS SDKs and
 * Tools Reference Guide, "Location of the shared config and credentials
 * files" and "AWS_PROFILE".
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_PROFILE_H
#define DDBLOCK_AWS_PROFILE_H

#include "aws/credentials.h"
#include "aws/ini.h"

#define AWS_PATH_SIZE 4096

typedef struct aws_profile_file
{
	char		path[AWS_PATH_SIZE];	/* as opened; "~" stays if the home
										 * directory is unknown */
	ini_slice	text;			/* start is NULL if there is no such file */
	const char *kind;			/* how ini.h finds the profile's section */
	bool		has_profile;
} aws_profile_file;

typedef struct aws_profile
{
	const char *name;
	bool		named;			/* configured by name: it must exist */
	aws_profile_file credentials;
	aws_profile_file config;
} aws_profile;

/*
 * Reads the files.  False if one of them is malformed, or exists but cannot be read, or
 * is missing although a variable names it; or if neither has a profile that was
 * configured by name: then error says so, and there is nothing to close.  What such
 * a file says could choose another store or another account.  A missing file or default
 * profile is no error.  The profile points into settings and
 * the environment, so it must not outlive them.
 */
extern bool aws_profile_open(aws_profile *profile,
							 const aws_settings *settings,
							 const aws_environment *env,
							 char *error, size_t error_size);

/* Overwrites and frees the files' text. */
extern void aws_profile_close(aws_profile *profile);

/*
 * Another profile of the same files, which only the first one closes.  False if
 * neither file has it.
 */
extern bool aws_profile_other(const aws_profile *profile, const char *name,
							  aws_profile *other);

/* Why a file does not have the profile, for messages. */
extern const char *aws_profile_absence(const aws_profile_file *file);

/* A property of the profile in one of its files. */
extern ini_result aws_profile_get_from(const aws_profile *profile,
									   const aws_profile_file *file,
									   const char *property,
									   char *value, size_t size);

/* A property in either file; the credentials file takes precedence. */
extern ini_result aws_profile_get(const aws_profile *profile,
								  const char *property,
								  char *value, size_t size);

/* A property of the config file's section [KIND NAME]. */
extern bool aws_profile_has_section(const aws_profile *profile, const char *kind,
									const char *section);
extern ini_result aws_profile_get_in_section(const aws_profile *profile,
											 const char *kind, const char *section,
											 const char *property,
											 char *value, size_t size);

/*
 * The endpoint_url of a service in the config file's section [services NAME],
 * where NAME is the profile's property "services"; "" if there is none.  False
 * if the section does not exist or a value is too long.
 */
extern bool aws_profile_get_service_endpoint(const aws_profile *profile,
											 const char *service,
											 char *value, size_t size);

/*
 * For settings, environment and files alike: "" means unset.
 */
extern bool aws_is_set(const char *value);

/* NULL if the variable is unset. */
extern const char *aws_get_variable(const aws_environment *env,
									const char *name);

/* Is the variable, or else the profile's property, "true"?  Either may be NULL. */
extern bool aws_is_true(const aws_environment *env, const char *variable,
						const aws_profile *profile, const char *property);

/* False if it does not fit; writes nothing then. */
extern bool aws_copy_text(const char *text, char *out, size_t size);

/*
 * Makes the name of a profile or a path printable in every encoding: it may
 * contain any bytes, and be cut in the middle of a character.
 */
extern void aws_make_printable(char *text);

/* May it be part of a header or a URL without escaping?  "" may. */
extern bool aws_is_visible_ascii(const char *text);

#endif							/* DDBLOCK_AWS_PROFILE_H */
