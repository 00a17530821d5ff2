/*-------------------------------------------------------------------------
 *
 * fuzz_ini.c
 *	  Feeds environment, config file and credentials file to the search for
 *	  credentials, region and endpoint.
 *
 * Input: parts separated by bytes 0xff.  Part 1 is the credentials file, part
 * 2 the config file, part 3 lines NAME=VALUE of environment variables.  The
 * files are handed over in blocks of their exact size, so that ASan sees a
 * read beyond them.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"

#define MAX_VARIABLES 8

typedef struct part
{
	const uint8_t *data;
	size_t		len;
} part;

typedef struct world
{
	part		credentials;
	part		config;
	char	   *environment;	/* NUL-terminated copy, cut into lines */
	char	   *variables[MAX_VARIABLES];
} world;

#define CHECK(condition) do { if (!(condition)) abort(); } while (0)

static part
take_part(part *rest)
{
	part		taken = *rest;
	const uint8_t *end = rest->len > 0 ? memchr(rest->data, 0xff, rest->len) : NULL;

	if (end == NULL)
	{
		rest->len = 0;
		return taken;
	}
	taken.len = end - rest->data;
	rest->data = end + 1;
	rest->len -= taken.len + 1;
	return taken;
}

static void
set_variables(world *w, part text)
{
	char	   *line;
	int			n = 0;

	w->environment = malloc(text.len + 1);
	if (text.len > 0)
		memcpy(w->environment, text.data, text.len);
	w->environment[text.len] = '\0';
	for (line = strtok(w->environment, "\n"); line != NULL && n < MAX_VARIABLES;
		 line = strtok(NULL, "\n"))
		w->variables[n++] = line;
}

static const char *
get(void *arg, const char *name)
{
	world	   *w = arg;
	size_t		len = strlen(name);
	int			i;

	for (i = 0; i < MAX_VARIABLES && w->variables[i] != NULL; i++)
		if (strncmp(w->variables[i], name, len) == 0 &&
			w->variables[i][len] == '=')
			return w->variables[i] + len + 1;
	return NULL;
}

static char *
read_file(void *arg, const char *path, size_t *len)
{
	world	   *w = arg;
	part		file = strcmp(path, "/h/.aws/config") == 0 ? w->config :
		w->credentials;
	char	   *text = malloc(file.len > 0 ? file.len : 1);

	if (file.len > 0)
		memcpy(text, file.data, file.len);
	*len = file.len;
	return text;
}

static void
check_credentials(const aws_profile *profile)
{
	static aws_plan plan;
	static const aws_plan zero;
	const aws_credentials *found = &plan.keys;
	char		error[256];

	memset(&plan, 'x', sizeof(plan));
	memset(error, 'x', sizeof(error));
	if (aws_make_plan(profile, &plan, error, sizeof(error)) == AWS_FOUND)
	{
		CHECK(plan.fetcher != NULL ||
			  (found->access_key_id[0] > ' ' && found->secret_access_key[0] > ' '));
		CHECK(strpbrk(found->session_token, "\r\n ") == NULL);
		CHECK(found->source[0] != '\0' && strlen(found->source) < sizeof(found->source));
		CHECK(plan.role_count >= 0 && plan.role_count <= AWS_ROLES_MAX);
		CHECK((plan.role_count == 0 && plan.fetcher != &aws_fetch_web_identity) ||
			  plan.sts_url[0] != '\0');
		CHECK(error[0] == '\0');
	}
	else
	{
		CHECK(memcmp(&plan, &zero, sizeof(plan)) == 0);
		CHECK(error[0] >= ' ');	/* a path may begin with a blank */
		CHECK(strlen(error) < sizeof(error));
	}
}

static void
check_region_and_endpoint(const aws_profile *profile)
{
	char		region[64];
	char		url[128];
	char		error[256];
	bool		ok;

	memset(region, 'x', sizeof(region));
	ok = aws_find_region(profile, region, sizeof(region), error, sizeof(error)) == AWS_FOUND;
	CHECK(strlen(region) < sizeof(region) && ok == (region[0] != '\0'));
	for (aws_service service = AWS_DYNAMODB; ok && service <= AWS_SSO_OIDC; service++)
	{
		memset(url, 'x', sizeof(url));
		CHECK(aws_find_endpoint(profile, service, region, url, sizeof(url), error,
								sizeof(error)) == (url[0] != '\0'));
		CHECK(strlen(url) < sizeof(url) && strpbrk(url, "\r\n ") == NULL);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const aws_settings settings = {0};
	part		rest = {data, size};
	world		w = {0};
	aws_environment env = {.arg = &w,.get = get,.home = "/h",.read_file = read_file};
	aws_profile profile;

	w.credentials = take_part(&rest);
	w.config = take_part(&rest);
	set_variables(&w, rest);
	aws_profile_open(&profile, &settings, &env);
	check_credentials(&profile);
	check_region_and_endpoint(&profile);
	aws_profile_close(&profile);
	free(w.environment);
	return 0;
}
