/*-------------------------------------------------------------------------
 *
 * http_pool.h
 *	  Keep-alive connections on curl's multi interface, to one endpoint or to
 *	  whatever URL each request has.
 *
 * Sends requests and reports replies; knows nothing of DynamoDB.  Never blocks and
 * never raises an error.  Each http_pool_post() or http_pool_send() that returns
 * true is followed by exactly one call of its done function, never from within it.
 *
 * A request is never repeated without the caller's knowledge: see "curl re-sends
 * POSTs" in doc/internals/architecture.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_NET_HTTP_POOL_H
#define DDBLOCK_NET_HTTP_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/reactor.h"

typedef struct http_pool http_pool;

typedef struct http_pool_config
{
	const char *url;			/* http:// or https://, host, port, path "/"; NULL:
								 * each request has its own */
	const char *ca_file;		/* NULL: the system's certificates */
	int			max_connections;
	int			connect_timeout_ms;
	int			idle_close_s;	/* do not reuse a connection idle for longer */
	size_t		reply_max;		/* larger replies fail */
} http_pool_config;

/* How a request ended; all but HTTP_REPLIED have an error text. */
typedef enum http_outcome
{
	HTTP_REPLIED,				/* a complete reply */
	HTTP_NOT_SENT,				/* name, connect or TLS failed: nothing was sent */
	HTTP_UNKNOWN,				/* some of the request may have arrived */
	HTTP_UNTRUSTED,				/* not sent: no TLS, or the wrong server */
	HTTP_FOREIGN				/* some may have arrived, but not at an HTTP server */
} http_outcome;

typedef struct http_reply
{
	http_outcome outcome;
	int			status;			/* HTTP status */
	const char *body;			/* valid during the done function only; a NUL follows */
	size_t		len;
	char		crc32[16];		/* x-amz-crc32, "" if absent */
	int64_t		date_s;			/* Date header, epoch seconds; 0 if absent */
	const char *phase;			/* where it failed: "name resolution",
								 * "connect", "TLS", "request", "reply" */
	char		error[256];		/* curl's message */
	int64_t		elapsed_us;
} http_reply;

typedef void (*http_done_fn) (void *arg, const http_reply *reply);

/* NULL on failure; error says why. */
extern http_pool *http_pool_new(reactor *r, const http_pool_config *config,
								char *error, size_t error_size);

/*
 * Changes these two settings for requests posted from now on; ca_file is copied.
 * A connection that was made with other certificates is not used again.  False,
 * without any change, when memory is short.
 */
extern bool http_pool_reconfigure(http_pool *pool, const char *ca_file,
								  int connect_timeout_ms);

/* Closes connections and drops requests, without calling their done functions. */
extern void http_pool_free(http_pool *pool);

/*
 * Posts body (copied) with the given header lines ("Name: value", copied), which
 * include Content-Type, Host and all that is signed, but not Expect.  timeout_ms
 * covers the whole attempt, including the wait for a connection.  False, with
 * nothing sent, when memory is short.
 */
extern bool http_pool_post(http_pool *pool, const char *const *headers,
						   int header_count, const char *body, size_t len,
						   int timeout_ms, http_done_fn done, void *arg);

/*
 * The same with another method, "GET", "PUT" or "POST", and a URL of its own.  A GET
 * has no body.  All requests of a pool are sent in the same way.
 */
extern bool http_pool_send(http_pool *pool, const char *method, const char *url,
						   const char *const *headers, int header_count,
						   const char *body, size_t len, int timeout_ms,
						   http_done_fn done, void *arg);

/* Limits the remaining time of all requests under way. */
extern void http_pool_hurry(http_pool *pool, int timeout_ms);

/* Requests under way, and connections that are open. */
extern int	http_pool_pending(const http_pool *pool);
extern int	http_pool_connections(const http_pool *pool);

/* "libcurl/7.88.1 OpenSSL/3.0.17", of what is loaded. */
extern void http_pool_library(char *name, size_t size);

#endif							/* DDBLOCK_NET_HTTP_POOL_H */
