/*-------------------------------------------------------------------------
 *
 * credentials.h
 *	  Finds out where the AWS credentials come from: settings, environment, web
 *	  identity, shared config and credentials files, container, instance metadata.
 *
 * The result is a plan.  Keys are in the plan itself; all else must be fetched:
 * fetch.h.  The caller passes functions that read the environment and files, so
 * tests and fuzzers need neither.  Order and names are those of the AWS SDKs and
 * Tools Reference Guide, "Standardized credential providers".
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
	int64_t		expires_s;		/* epoch seconds; 0: never, or unknown */
} aws_credentials;

/* Access to environment and files.  Both functions get arg. */
typedef struct aws_environment
{
	void	   *arg;
	const char *(*get) (void *arg, const char *name);	/* as getenv() */

	const char *home;			/* for "~"; NULL: unknown */

	/*
	 * The whole file, malloc'd, and its size in *len; NULL and errno if it cannot
	 * be read or is over 1 MiB.
	 */
	char	   *(*read_file) (void *arg, const char *path, size_t *len);
} aws_environment;

typedef enum aws_found
{
	AWS_FOUND,
	AWS_NOT_HERE,				/* nothing in this source: try the next */
	AWS_BROKEN					/* this source is unusable: stop */
} aws_found;

#define AWS_NAME_SIZE	256
#define AWS_TEXT_SIZE	2048	/* ARNs, paths, URLs, commands */
#define AWS_ROLES_MAX	8

/* What the credentials begin with. */
typedef enum aws_base
{
	AWS_BASE_KEYS,				/* known already */
	AWS_BASE_WEB_IDENTITY,		/* a role, for the token in a file */
	AWS_BASE_SSO,				/* a role of IAM Identity Center */
	AWS_BASE_PROCESS,			/* what a command prints */
	AWS_BASE_CONTAINER,			/* ECS, EKS Pod Identity */
	AWS_BASE_METADATA			/* the EC2 instance's role */
} aws_base;

/* A role to assume; "" and 0 where unset. */
typedef struct aws_role
{
	char		arn[AWS_TEXT_SIZE];
	char		session_name[AWS_NAME_SIZE];
	char		external_id[1536];
	int			duration_s;
} aws_role;

typedef struct aws_plan
{
	aws_base	base;
	aws_credentials keys;		/* AWS_BASE_KEYS; source is set in each case */
	char		sts_url[AWS_TEXT_SIZE]; /* if a role is assumed */
	char		sts_region[AWS_NAME_SIZE];
	union
	{
		struct
		{
			aws_role	role;
			char		token_file[AWS_TEXT_SIZE];
		}			web;
		struct
		{
			char		url[AWS_TEXT_SIZE];
			char		oidc_url[AWS_TEXT_SIZE];
			char		account_id[AWS_NAME_SIZE];
			char		role_name[AWS_NAME_SIZE];
			char		token_file[AWS_TEXT_SIZE];	/* in the cache */
		}			sso;
		char		command[AWS_TEXT_SIZE];
		struct
		{
			char		url[AWS_TEXT_SIZE];
			char		token[AWS_TEXT_SIZE * 4];	/* "" if there is none */
			char		token_file[AWS_TEXT_SIZE];	/* precedes token */
		}			container;
		char		metadata_url[AWS_TEXT_SIZE];	/* without a path */
	}			from;
	aws_role	roles[AWS_ROLES_MAX];	/* to be assumed one after the other */
	int			role_count;
	char		tried[2048];	/* what was tried before, and why it did not apply */
} aws_plan;

/*
 * Tries one source after the other.  Unless the result is AWS_FOUND, error names the sources in the
 * order tried, with each one's error.
 */
extern aws_found aws_make_plan(const aws_settings *settings, const aws_environment *env,
						  aws_plan *plan, char *error, size_t error_size);

/* Overwrites the secrets. */
extern void aws_credentials_wipe(aws_credentials *credentials);
extern void aws_plan_wipe(aws_plan *plan);

#endif							/* DDBLOCK_AWS_CREDENTIALS_H */
