/*-------------------------------------------------------------------------
 *
 * sigv4.h
 *	  AWS Signature Version 4 for a POST with a body held in memory.
 *
 * Uses OpenSSL for SHA-256 and HMAC.  Source of the algorithm: AWS
 * General Reference, "Create a signed AWS API request".
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_AWS_SIGV4_H
#define DDBLOCK_AWS_SIGV4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sigv4_header
{
	const char *name;			/* any case */
	const char *value;
} sigv4_header;

/*
 * Caches the derived key for one day, region, service and secret.  Zero it before
 * first use and wipe it with sigv4_key_wipe().  It compares the secret's hash, so
 * it notices a new secret.
 */
typedef struct sigv4_key
{
	struct evp_mac_ctx_st *mac; /* OpenSSL's, with the derived key; NULL: none */
	char		scope[128];		/* "20261121/us-east-1/dynamodb/aws4_request" */
	uint8_t		secret_hash[32];
} sigv4_key;

typedef struct sigv4_request
{
	const char *method;			/* "POST" */
	const char *path;			/* "/", already encoded */
	const char *query;			/* canonical query string, "" for DynamoDB */
	const sigv4_header *headers;	/* all headers to sign, including host and
									 * x-amz-date; in any order */
	int			header_count;
	const void *body;
	size_t		body_len;
	const char *region;
	const char *service;		/* "dynamodb" */
	const char *access_key_id;
	const char *secret_access_key;
	const char *amz_date;		/* "20261121T093000Z", see sigv4_amz_date() */
} sigv4_request;

#define SIGV4_DATE_SIZE 17

/* Formats epoch seconds as UTC "YYYYMMDDTHHMMSSZ". */
extern void sigv4_amz_date(int64_t epoch_s, char out[SIGV4_DATE_SIZE]);

/*
 * Writes the value of the Authorization header to out.  False, and "", if it
 * does not fit or OpenSSL fails.
 */
extern bool sigv4_sign(const sigv4_request *request, sigv4_key *key,
					   char *out, size_t size);

extern void sigv4_key_wipe(sigv4_key *key);

#endif							/* DDBLOCK_AWS_SIGV4_H */
