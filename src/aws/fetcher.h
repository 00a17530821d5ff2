/*-------------------------------------------------------------------------
 *
 * fetcher.h
 *	  For the ways to fetch credentials: what they share, and their names.
 *
 * Private to src/aws.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_FETCHER_H
#define DDBLOCK_AWS_FETCHER_H

#include "aws/fetch.h"

extern const aws_fetcher aws_fetch_metadata;
extern const aws_fetcher aws_fetch_container;
extern const aws_fetcher aws_fetch_web_identity;
extern const aws_fetcher aws_fetch_role;
extern const aws_fetcher aws_fetch_process;
extern const aws_fetcher aws_fetch_sso;

/* Sets fetch->error, and returns false. */
extern bool aws_fetch_fail(aws_fetch *fetch, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/* The errand's request; false, with an error, if the URL does not fit. */
extern bool aws_errand_request(aws_fetch *fetch, const char *method, int timeout_ms,
							   const char *url, const char *path);
extern bool aws_errand_header(aws_fetch *fetch, const char *name, const char *value);

/* Appends "&name=value", escaped; false if it does not fit. */
extern bool aws_add_field(char *text, size_t size, const char *name, const char *value);

/*
 * Was the request answered with 200?  False, with an error that names what was
 * asked, otherwise.
 */
extern bool aws_fetch_succeeded(aws_fetch *fetch, const aws_result *result,
								const char *asked);

/*
 * Reads a file's first line, as tokens are kept; false, with an error, if there is
 * none or it does not fit.
 */
extern bool aws_read_token(aws_fetch *fetch, const aws_environment *env,
						   const char *path, char *token, size_t size);

/*
 * Copies the parts of credentials; NULL where one is missing.  The session token and
 * the time of expiry may be missing: then the credentials do not expire.  False, with
 * an error, if they are unusable.
 */
extern bool aws_take_credentials(aws_fetch *fetch, const char *asked,
								 const char *access_key_id,
								 const char *secret_access_key,
								 const char *session_token,
								 const char *expiration);

/*
 * ISO 8601: "2026-11-22T10:53:54Z"; fractions are read, and "UTC" and offsets in place
 * of "Z".  0: invalid.
 */
extern int64_t aws_read_time(const char *text);

#endif							/* DDBLOCK_AWS_FETCHER_H */
