/*-------------------------------------------------------------------------
 *
 * fetch.c
 *	  Fetches the credentials of a plan: first those of its source, then role after role.
 *
 * A request that got no reply is repeated at once.  A request that the server refused for the
 * moment (HTTP 5xx, throttling) is repeated after a pause.  After a few attempts the fetch fails;
 * the worker starts another one later.
 *
 *-------------------------------------------------------------------------
 */
#include "aws/aws.h"

#define TRIES_UNANSWERED	2
#define TRIES_REFUSED		3
#define PAUSE_MS			100	/* doubles */
#define PAUSE_MAX_MS		2000

static void
start_fetcher(aws_fetch *fetch, const aws_fetcher *fetcher)
{
	fetch->fetcher = fetcher;
	fetch->step = 0;
	fetch->tries = 0;
	fetch->pause_ms = 0;
}

void
aws_fetch_begin(aws_fetch *fetch)
{
	fetch->found = fetch->plan.keys;
	fetch->roles_assumed = 0;
	fetch->clock_error_s = 0;
	fetch->error[0] = '\0';
	start_fetcher(fetch, fetch->plan.fetcher);
}

/* Completes the error with the source, and with why the sources before it had no credentials. */
static aws_step
failed(aws_fetch *fetch)
{
	char		last[sizeof(fetch->error)];

	snprintf(last, sizeof(last), "%.150s: %.600s", fetch->plan.keys.source, fetch->error);
	aws_plan_error(fetch->error, sizeof(fetch->error), last, fetch->plan.tried);
	return AWS_STEP_FAILED;
}

aws_step
aws_fetch_next(aws_fetch *fetch, const aws_environment *env, int64_t now_s)
{
	if (fetch->error[0] != '\0')
		return failed(fetch);
	if (fetch->fetcher == NULL)
	{
		if (fetch->roles_assumed == fetch->plan.role_count)
			return AWS_STEP_DONE;
		start_fetcher(fetch, &aws_fetch_role);
	}
	fetch->env = env;
	fetch->now_s = now_s + fetch->clock_error_s;
	if (!fetch->fetcher->ask(fetch))
		return failed(fetch);
	fetch->errand.direct = fetch->fetcher == &aws_fetch_metadata ||
		fetch->fetcher == &aws_fetch_container;
	return fetch->errand.method == NULL ? AWS_STEP_PROCESS : AWS_STEP_HTTP;
}

/* Has an errand failed that might succeed if it was repeated a moment later? */
static bool
may_pass(const aws_fetch *fetch, const aws_result *result)
{
	/* STS sends these error codes with HTTP status 400. */
	static const char *const codes[] = {
		"Throttling", "ThrottlingException", "RequestLimitExceeded", "IDPCommunicationError"
	};

	if (fetch->errand.method == NULL)
		return false;
	if (!result->done || result->status >= 500 || result->status == 429)
		return true;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
	{
		char		element[64];

		snprintf(element, sizeof(element), "<Code>%s</Code>", codes[i]);
		if (strstr(result->body, element) != NULL)
			return true;
	}
	return false;
}

void
aws_fetch_result(aws_fetch *fetch, const aws_result *result, int64_t now_s)
{
	int			most = result->done ? TRIES_REFUSED : TRIES_UNANSWERED;
	bool		metadata = fetch->fetcher == &aws_fetch_metadata;
	bool		again = may_pass(fetch, result);

	if (metadata && fetch->plan.from.metadata.attempts > 0)
		most = fetch->plan.from.metadata.attempts;
	/* If the metadata service does not answer, the machine is probably no instance. */
	fetch->may_pass = again && (result->done || !metadata);
	fetch->pause_ms = 0;
	if (++fetch->tries < most && again)
	{
		if (result->done)
			fetch->pause_ms = fetch->tries > 5 ? PAUSE_MAX_MS : PAUSE_MS << (fetch->tries - 1);
	}
	else
	{
		fetch->now_s = now_s + fetch->clock_error_s;
		fetch->json = result->done ? cJSON_ParseWithLength(result->body, result->len) : NULL;
		if (fetch->fetcher->take(fetch, result))
			fetch->tries = 0;
		aws_json_free(fetch->json);
		fetch->json = NULL;
	}
	aws_wipe(&fetch->errand);
}
