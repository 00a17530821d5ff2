/*-------------------------------------------------------------------------
 *
 * fetch.h
 *	  Fetches the credentials of a plan, one errand after the other.
 *
 * The caller does the errands: HTTP requests, and commands to run.  Nothing here
 * waits, and nothing reads a clock.
 *
 *	aws_fetch_begin(fetch);
 *	while ((step = aws_fetch_next(fetch, env, now)) is an errand)
 *		do fetch->errand, and tell aws_fetch_result() what came of it;
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_FETCH_H
#define DDBLOCK_AWS_FETCH_H

#include "aws/credentials.h"

#define AWS_HEADERS_MAX 6

typedef enum aws_step
{
	AWS_STEP_HTTP,				/* send the errand's request */
	AWS_STEP_PROCESS,			/* run the errand's body with the shell */
	AWS_STEP_DONE,				/* fetch->found has the credentials */
	AWS_STEP_FAILED				/* fetch->error says why */
} aws_step;

/* What the caller does next; valid until it tells the result. */
typedef struct aws_errand
{
	const char *method;
	char		url[AWS_TEXT_SIZE * 2];
	char		headers[AWS_HEADERS_MAX][8400];	/* "Name: value" */
	int			header_count;
	char		body[65536];
	int			timeout_ms;
} aws_errand;

/* What came of it. */
typedef struct aws_result
{
	bool		done;			/* a reply came, or the command ended */
	int			status;			/* of HTTP, or of the command */
	const char *body;			/* or the command's output; a NUL follows */
	size_t		len;
	int64_t		date_s;			/* the Date header, epoch seconds; 0: none */
	const char *problem;		/* if nothing was done: why, for people */
} aws_result;

typedef struct aws_fetch aws_fetch;

/*
 * A way to fetch.  Steps are counted from 0.  ask prepares the errand; take reads
 * its result.  If they return false, fetch->error says why.
 */
typedef struct aws_fetcher
{
	bool		(*ask) (aws_fetch *fetch, const aws_environment *env, int64_t now_s);
	bool		(*take) (aws_fetch *fetch, const aws_result *result, int64_t now_s);
} aws_fetcher;

struct aws_fetch
{
	aws_plan	plan;
	const aws_fetcher *fetcher; /* of the base, or of a role; NULL: all is there */
	int			roles_assumed;
	int			step;			/* of the fetcher */
	bool		complete;		/* the fetcher has its credentials */
	int			tries;			/* of this step */
	int64_t		clock_error_s;	/* what STS's Date has shown */
	char		token[8192];	/* of the metadata service, or of single sign-on */
	char		name[AWS_NAME_SIZE];	/* of the instance's role */
	aws_errand	errand;
	aws_credentials found;
	char		error[960];
};

/* fetch->plan is set. */
extern void aws_fetch_begin(aws_fetch *fetch);

/* now_s: epoch seconds. */
extern aws_step aws_fetch_next(aws_fetch *fetch, const aws_environment *env,
							   int64_t now_s);
extern void aws_fetch_result(aws_fetch *fetch, const aws_result *result, int64_t now_s);

/* Overwrites the secrets. */
extern void aws_fetch_wipe(aws_fetch *fetch);

#endif							/* DDBLOCK_AWS_FETCH_H */
