/*-------------------------------------------------------------------------
 *
 * fetch.c
 *	  Fetches the credentials of a plan: first its base, then role after role.
 *
 * A request that was not answered, or answered with a server's error, is repeated
 * at once, a few times.  The worker repeats the whole later.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>


#define TRIES_UNANSWERED	2
#define TRIES_REFUSED		3

static const aws_fetcher *
base_fetcher(aws_base base)
{
	switch (base)
	{
		case AWS_BASE_WEB_IDENTITY:
			return &aws_fetch_web_identity;
		case AWS_BASE_SSO:
			return &aws_fetch_sso;
		case AWS_BASE_PROCESS:
			return &aws_fetch_process;
		case AWS_BASE_CONTAINER:
			return &aws_fetch_container;
		case AWS_BASE_METADATA:
			return &aws_fetch_metadata;
		case AWS_BASE_KEYS:
			break;
	}
	return NULL;
}

static void
start_fetcher(aws_fetch *fetch, const aws_fetcher *fetcher)
{
	fetch->fetcher = fetcher;
	fetch->step = 0;
	fetch->tries = 0;
	fetch->complete = fetcher == NULL;
}

void
aws_fetch_begin(aws_fetch *fetch)
{
	fetch->found = fetch->plan.keys;
	fetch->roles_assumed = 0;
	fetch->clock_error_s = 0;
	fetch->error[0] = '\0';
	start_fetcher(fetch, base_fetcher(fetch->plan.base));
}

/* With the sources that were tried before it. */
static aws_step
failed(aws_fetch *fetch)
{
	char		words[sizeof(fetch->error)];

	snprintf(words, sizeof(words), "%s", fetch->error);
	snprintf(fetch->error, sizeof(fetch->error), "%.500s%.150s: %.300s",
			 fetch->plan.tried, fetch->plan.keys.source, words);
	return AWS_STEP_FAILED;
}

aws_step
aws_fetch_next(aws_fetch *fetch, const aws_environment *env, int64_t now_s)
{
	if (fetch->error[0] != '\0')
		return failed(fetch);
	while (fetch->complete)
	{
		if (fetch->roles_assumed == fetch->plan.role_count)
			return AWS_STEP_DONE;
		start_fetcher(fetch, &aws_fetch_role);
	}
	if (!fetch->fetcher->ask(fetch, env, now_s + fetch->clock_error_s))
		return failed(fetch);
	return fetch->errand.method == NULL ? AWS_STEP_PROCESS : AWS_STEP_HTTP;
}

/* Might the same request be answered now? */
static bool
is_worth_repeating(const aws_fetch *fetch, const aws_result *result)
{
	if (fetch->errand.method == NULL)
		return false;
	if (!result->done)
		return fetch->tries < TRIES_UNANSWERED;
	return (result->status >= 500 || result->status == 429) && fetch->tries < TRIES_REFUSED;
}

void
aws_fetch_result(aws_fetch *fetch, const aws_result *result, int64_t now_s)
{
	fetch->tries++;
	if (!is_worth_repeating(fetch, result) &&
		fetch->fetcher->take(fetch, result, now_s + fetch->clock_error_s))
		fetch->tries = 0;
	OPENSSL_cleanse(&fetch->errand, sizeof(fetch->errand));
}

void
aws_fetch_wipe(aws_fetch *fetch)
{
	OPENSSL_cleanse(fetch, sizeof(*fetch));
}
