/*-------------------------------------------------------------------------
 *
 * worker_fetch.c
 *	  Does what fetching credentials needs: HTTP requests, and a command.
 *
 * A fetch has connections of its own, so a slow source of credentials holds up no call to
 * DynamoDB.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>
#include <unistd.h>

#include "libpq/pqsignal.h"
#include "storage/ipc.h"

#include "worker/worker.h"

#define IDLE_CLOSE_S 5
#define REPLY_MAX 65536

static reactor *both;			/* its descriptor stands for those of the next two */
static reactor *http_reactor;
static reactor *child_reactor;
static http_pool *pool;
static child *shell;

static aws_fetch *the_fetch;
static WorkerFetched the_done;
static bool given_up;
static int64 send_at;			/* when the pause before the errand ends; 0: no pause */

static void advance(void);

static void
stop_command(int code, Datum arg)
{
	child_kill(shell);
}

/* Handles SIGQUIT, which the worker gets at an immediate shutdown, or if a backend has crashed. */
static void
quit(SIGNAL_ARGS)
{
	child_kill(shell);
	_exit(2);
}

void
WorkerFetchInit(void)
{
	both = reactor_new();
	http_reactor = reactor_new();
	child_reactor = reactor_new();
	if (both == NULL || http_reactor == NULL || child_reactor == NULL ||
		!reactor_watch(both, reactor_fd(http_reactor), EPOLLIN) ||
		!reactor_watch(both, reactor_fd(child_reactor), EPOLLIN))
		ereport(FATAL,
				(errmsg("could not create an epoll instance, or its timer: %m")));
	pool = WorkerNewPool(http_reactor, (http_pool_config)
						 {
							 .max_connections = 1,
							 .idle_close_s = IDLE_CLOSE_S,
							 .reply_max = REPLY_MAX,
						 });
	shell = child_new(child_reactor);
	if (shell == NULL)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	before_shmem_exit(stop_command, (Datum) 0);
	pqsignal(SIGQUIT, quit);
}

void
WorkerFetchReload(void)
{
	WorkerReloadPool(pool);
}

int
WorkerFetchFd(void)
{
	return reactor_fd(both);
}

static int64
epoch_s(void)
{
	return WorkerEpochLikely(SegmentNow()) / USECS_PER_SEC;
}

static void
not_done(const char *problem)
{
	aws_result	result = {.problem = problem,.body = ""};

	aws_fetch_result(the_fetch, &result, epoch_s());
	advance();
}

static void
replied(void *arg, const http_reply *reply)
{
	char		problem[400];
	aws_result	result = {
		.done = reply->outcome == HTTP_REPLIED,
		.status = reply->status,
		.body = reply->body,
		.len = reply->len,
		.date_s = reply->date_s,
		.problem = problem,
	};

	if (!result.done)
		snprintf(problem, sizeof(problem), "%s: %s", reply->phase, reply->error);
	aws_fetch_result(the_fetch, &result, epoch_s());
	advance();
}

static void
send_request(void)
{
	const aws_errand *errand = &the_fetch->errand;
	const char *headers[AWS_HEADERS_MAX];

	for (int i = 0; i < errand->header_count; i++)
		headers[i] = errand->headers[i];
	if (!http_pool_send(pool, errand->method, errand->url, errand->direct, headers,
						errand->header_count, errand->body, strlen(errand->body),
						errand->timeout_ms, replied, NULL))
		not_done("out of memory");
}

/* The command's error output goes to the log only, because not every user should see it. */
static void
log_errors(const child_end *end)
{
	static char told[300];
	char		words[sizeof(told)];
	size_t		len = strlen(end->errors);

	strlcpy(words, end->errors + (len < sizeof(words) ? 0 : len + 1 - sizeof(words)), sizeof(words));
	for (char *c = words; *c != '\0'; c++)
		*c = isspace((unsigned char) *c) ? ' ' : *c;
	aws_make_printable(words);
	if (end->problem == NULL && end->status == 0)
		told[0] = '\0';
	else if (words[0] != '\0' && strcmp(words, told) != 0)
	{
		strlcpy(told, words, sizeof(told));
		ereport(LOG,
				(errmsg("the command of credential_process has failed"),
				 errdetail("Its error output ends so: %s", words)));
	}
}

static void
ended(void *arg, const child_end *end)
{
	aws_result	result = {
		.done = end->problem == NULL,
		.status = end->status,
		.body = end->output,
		.len = end->len,
		.problem = end->problem,
	};

	log_errors(end);
	aws_fetch_result(the_fetch, &result, epoch_s());
	advance();
}

/* Starts the next errand of the fetch, or ends the fetch. */
static void
advance(void)
{
	aws_fetch  *fetch = the_fetch;
	char		problem[200];
	aws_step	step = given_up ? AWS_STEP_FAILED :
		aws_fetch_next(fetch, WorkerEnvironment(), epoch_s());

	switch (step)
	{
		case AWS_STEP_HTTP:
			if (fetch->pause_ms > 0)
				send_at = SegmentNow() + (int64) fetch->pause_ms * 1000;
			else
			{
				Assert(send_at == 0);
				send_request();
			}
			break;
		case AWS_STEP_PROCESS:
			if (child_start(shell, fetch->errand.body, fetch->errand.timeout_ms, ended, NULL))
				break;
			snprintf(problem, sizeof(problem), "could not be started: %m");
			not_done(problem);
			break;
		case AWS_STEP_DONE:
		case AWS_STEP_FAILED:
			the_fetch = NULL;
			the_done(fetch, step == AWS_STEP_DONE);
			break;
	}
}

void
WorkerFetchRun(void)
{
	reactor_run(http_reactor);
	reactor_run(child_reactor);
	if (send_at == 0 || (SegmentNow() < send_at && !given_up))
		return;
	send_at = 0;
	if (given_up)
		advance();
	else
		send_request();
}

void
WorkerFetchStart(aws_fetch *fetch, WorkerFetched done)
{
	Assert(the_fetch == NULL);
	the_fetch = fetch;
	the_done = done;
	given_up = false;
	aws_fetch_begin(fetch);
	advance();
}

/* The errand under way has no time left, and no other errand follows it. */
void
WorkerFetchGiveUp(void)
{
	given_up = true;
	http_pool_hurry(pool, 0);
	child_hurry(shell);
}
