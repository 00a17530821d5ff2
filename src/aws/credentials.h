/*-------------------------------------------------------------------------
 *
 * credentials.h
 *	  Finds AWS credentials: settings, then environment, then the shared config
 *	  and credentials files.
 *
 * The caller passes functions that read the environment and files, so tests and
 * fuzzers need neither.  Order and names are those of the AWS SDKs and Tools
 * Reference Guide, "Configuration and authentication settings reference".
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_CREDENTIALS_H
#define DDBLOCK_AWS_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The settings; NULL or "" where unset. */
typedef struct aws_settings
{
	const char *access_key_id;
	const char *secret_access_key;
	const char *session_token;
	const char *profile;
	const char *region;
	const char *endpoint_url;
} aws_settings;

typedef struct aws_credentials
{
	char		access_key_id[256];
	char		secret_access_key[256];
	char		session_token[8192];	/* "" if there is none */
	char		source[384];	/* for people: "environment", "profile \"x\" in
								 * /home/pg/.aws/credentials" */
	char		file[1024];		/* the shared file they came from, or "" */
} aws_credentials;

/* Access to environment and files.  Both functions get arg. */
typedef struct aws_environment
{
	void	   *arg;
	const char *(*get) (void *arg, const char *name);	/* as getenv() */

	const char *home;			/* for "~"; NULL: unknown */

	/*
	 * The whole file, malloc'd, and its size in *len; NULL if it cannot be
	 * read or is over 1 MiB.
	 */
	char	   *(*read_file) (void *arg, const char *path, size_t *len);
} aws_environment;

typedef enum aws_found
{
	AWS_FOUND,
	AWS_NOT_HERE,				/* nothing in this source: try the next */
	AWS_BROKEN					/* this source is unusable: stop */
} aws_found;

/*
 * A source of credentials.  Providers are tried in the table's order.  If the
 * result is not AWS_FOUND, error says why, without secrets.
 */
typedef struct aws_provider
{
	const char *name;
	aws_found	(*find) (const aws_settings *settings, const aws_environment *env,
						 aws_credentials *found, char *error, size_t error_size);
} aws_provider;

extern const aws_provider aws_providers[];
extern const int aws_provider_count;

/*
 * Tries the providers.  False if none has credentials or one is broken; error
 * then names the sources in the order tried, with each one's error.
 */
extern bool aws_find_credentials(const aws_settings *settings,
								 const aws_environment *env,
								 aws_credentials *found,
								 char *error, size_t error_size);

/* Overwrites the secrets. */
extern void aws_credentials_wipe(aws_credentials *credentials);

#endif							/* DDBLOCK_AWS_CREDENTIALS_H */
