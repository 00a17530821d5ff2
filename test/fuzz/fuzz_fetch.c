/*-------------------------------------------------------------------------
 *
 * fuzz_fetch.c
 *	  Feeds arbitrary replies to everything that fetches credentials.
 *
 * The first byte chooses the source; a NUL ends a reply, and the next one begins with
 * its status, 200 or something else.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *rest;
static size_t rest_size;

static const char *
get(void *arg, const char *name)
{
	(void) arg;
	(void) name;
	return NULL;
}

/* The next part of the input, malloc'd, with a NUL. */
static char *
next_part(size_t *len)
{
	const uint8_t *end = rest_size > 0 ? memchr(rest, '\0', rest_size) : NULL;
	char	   *part;

	*len = end != NULL ? (size_t) (end - rest) : rest_size;
	part = malloc(*len + 1);
	if (*len > 0)
		memcpy(part, rest, *len);
	part[*len] = '\0';
	rest += *len + (end != NULL);
	rest_size -= *len + (end != NULL);
	return part;
}

static char *
read_file(void *arg, const char *path, size_t *len)
{
	(void) arg;
	(void) path;
	return next_part(len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static aws_fetch fetch;
	static const aws_environment env = {.get = get,.home = "/",.read_file = read_file};
	static const aws_fetcher *const fetchers[6] = {
		NULL, &aws_fetch_web_identity, &aws_fetch_sso, &aws_fetch_process,
		&aws_fetch_container, &aws_fetch_metadata
	};

	if (size == 0)
		return 0;
	memset(&fetch, 0, sizeof(fetch));
	fetch.plan.fetcher = fetchers[data[0] % 6];
	strcpy(fetch.plan.sts_url, "https://sts.example");
	strcpy(fetch.plan.sts_region, "us-east-1");
	strcpy(fetch.plan.roles[0].arn, "arn:a");
	fetch.plan.role_count = data[0] / 8 % 3;
	rest = data + 1;
	rest_size = size - 1;
	aws_fetch_begin(&fetch);
	for (int errands = 0; errands < 30; errands++)
	{
		aws_result	result = {.problem = "none"};
		aws_step	step = aws_fetch_next(&fetch, &env, 1640000000);
		char	   *part;

		if (step == AWS_STEP_DONE || step == AWS_STEP_FAILED)
			break;
		part = next_part(&result.len);
		result.done = result.len > 0;
		result.status = result.len > 0 && part[0] == '!' ? 500 : 200;
		result.body = part;
		aws_fetch_result(&fetch, &result, 1640000000);
		free(part);
	}
	aws_wipe(&fetch);
	return 0;
}
