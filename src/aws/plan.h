/*-------------------------------------------------------------------------
 *
 * plan.h
 *	  The parts of a plan for credentials, for credentials.c and plan_profile.c.
 *
 * Each function adds its part to the plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_PLAN_H
#define DDBLOCK_AWS_PLAN_H

#include <stdio.h>

#include "aws/profile.h"

/* What each part is made from, and where it goes. */
typedef struct aws_search
{
	const aws_settings *settings;
	const aws_environment *env;
	aws_plan   *plan;
	char	   *error;			/* unless the result is AWS_FOUND: why, without secrets */
	size_t		error_size;
} aws_search;

/* A format and its values, as the error; then the result. */
#define aws_not_here(s, ...) \
	(snprintf((s)->error, (s)->error_size, __VA_ARGS__), AWS_NOT_HERE)
#define aws_broken(s, ...) (snprintf((s)->error, (s)->error_size, __VA_ARGS__), AWS_BROKEN)

/* The three parts of keys, as one source has them. */
typedef struct aws_key_source
{
	const char *where;			/* for people: "environment" */
	const char *names[3];
	const char *values[3];		/* NULL or "" where unset */
} aws_key_source;

extern aws_found aws_plan_keys(const aws_search *s, const aws_key_source *source);

/* Values of white space only count as unset. */
extern aws_found aws_plan_environment(const aws_search *s);
extern aws_found aws_plan_container(const aws_search *s);
extern aws_found aws_plan_metadata(const aws_search *s);
extern aws_found aws_plan_profile(const aws_search *s);

/* A role as a source names it; NULL or "" where unset. */
typedef struct aws_role_source
{
	const char *where;
	const char *arn;
	const char *session_name;
	const char *external_id;
	const char *duration;
} aws_role_source;

/* Checks a role's parts before anything is sent. */
extern aws_found aws_plan_role(const aws_search *s, const aws_role_source *source,
							   aws_role *role);

/* Where roles are assumed: the STS of the Region. */
extern aws_found aws_plan_sts(const aws_search *s);

#endif							/* DDBLOCK_AWS_PLAN_H */
