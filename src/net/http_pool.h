/*-------------------------------------------------------------------------
 *
 * http_pool.h
 *	  Keep-alive connections to one endpoint, on curl's multi interface.
 *
 * Posts bodies and reports replies; knows nothing of DynamoDB.
 * Never blocks, never raises an error: every http_pool_post() that returns
 * true is answered by exactly one call of its done function, never from
 * within http_pool_post() itself.
 *
 * A POST is never re-sent behind the caller's back: see "curl re-sends POSTs"
 * in doc/architecture.md.
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
	const char *url;			/* http:// or https://, host, port, path "/" */
	const char *ca_file;		/* NULL: the system's certificates */
	int			max_connections;
	int			connect_timeout_ms;
	int			idle_close_s;	/* do not reuse a connection idle for longer */
	size_t		reply_max;		/* larger replies are cut off and fail */
} http_pool_config;

/* How a request ended; anything but HTTP_REPLIED carries an error text. */
typedef enum http_outcome
{
	HTTP_REPLIED,				/* a whole reply came */
	HTTP_NOT_SENT,				/* name, connect or TLS: nothing of it was sent */
	HTTP_UNKNOWN,				/* some of it may have arrived */
	HTTP_UNTRUSTED,				/* not sent: no TLS, or not the right server */
	HTTP_FOREIGN				/* some may have arrived, at what is no HTTP server */
} http_outcome;

typedef struct http_reply
{
	http_outcome outcome;
	int			status;			/* HTTP status */
	const char *body;			/* valid during the done function only; NUL after len */
	size_t		len;
	char		crc32[16];		/* x-amz-crc32, "" if absent */
	int64_t		date_s;			/* Date header, epoch seconds; 0 if absent */
	const char *phase;			/* where it failed: "name resolution",
								 * "connect", "TLS", "request", "reply" */
	char		error[256];		/* curl's words */
	int64_t		elapsed_us;
} http_reply;

typedef void (*http_done_fn) (void *arg, const http_reply *reply);

/* NULL on failure; error says why. */
extern http_pool *http_pool_new(reactor *r, const http_pool_config *config,
								char *error, size_t error_size);

/*
 * Changes these two for the requests posted from now on; ca_file is copied.  A
 * connection that was made with other certificates is not used again.  False
 * if out of memory: then nothing has changed.
 */
extern bool http_pool_reconfigure(http_pool *pool, const char *ca_file,
								  int connect_timeout_ms);

/* Drops connections and pending requests; their done functions are not called. */
extern void http_pool_free(http_pool *pool);

/*
 * Posts body (copied) with the given header lines ("Name: value", copied).
 * Content-Type, Host and the rest that is signed are among them; no Expect.
 * timeout_ms covers the whole attempt, waiting for a connection included.
 * False if it could not even be queued (memory): nothing was sent.
 */
extern bool http_pool_post(http_pool *pool, const char *const *headers,
						   int header_count, const char *body, size_t len,
						   int timeout_ms, http_done_fn done, void *arg);

/* What is not answered may from now on take no longer than this. */
extern void http_pool_hurry(http_pool *pool, int timeout_ms);

/* Requests that are not yet answered. */
extern int	http_pool_pending(const http_pool *pool);

/*
 * Reads an http(s) URL for the settings' check hook and for signing: writes
 * the Host header's value ("host" or "host:port", port left out when it is
 * the scheme's own).  False with an error text when it is not of the form
 * scheme://host[:port][/].
 */
extern bool http_url_host(const char *url, char *host, size_t size,
						  char *error, size_t error_size);

#endif							/* DDBLOCK_NET_HTTP_POOL_H */
