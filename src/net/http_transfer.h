/*-------------------------------------------------------------------------
 *
 * http_transfer.h
 *	  One request on one curl easy handle, and how it ended.
 *
 * Private to src/net: http_pool.c decides when a transfer runs; this file sets
 * curl's options for it and interprets its end.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_NET_HTTP_TRANSFER_H
#define DDBLOCK_NET_HTTP_TRANSFER_H

#include <curl/curl.h>

#include "net/http_pool.h"
#include "net/http_sockets.h"

/* A request, in one block of memory. */
typedef struct http_request
{
	struct http_request *next;
	size_t		size;			/* of the block */
	http_done_fn done;
	void	   *arg;
	int64_t		posted_at;		/* microseconds, CLOCK_BOOTTIME */
	int64_t		deadline;
	const char *method;			/* NULL: a POST to the pool's URL */
	const char *url;
	const char *body;
	size_t		len;
	struct curl_slist *headers;
} http_request;

/* An easy handle with its buffers, reused. */
typedef struct http_transfer
{
	struct http_transfer *next;
	CURL	   *easy;
	http_request *request;		/* NULL: idle */
	unsigned	settings;		/* version of http_pool's settings */
	bool		tls_begun;
	bool		started;		/* curl may have sent some of it */
	bool		too_large;		/* the reply, or its headers and framing */
	http_opener opener;
	unsigned	left_out;		/* http_sockets' count when it started */
	char		address[INET6_ADDRSTRLEN];	/* of the server, once started */
	size_t		received;		/* including headers and framing */
	char	   *reply;
	size_t		reply_len;
	size_t		reply_size;		/* allocated */
	size_t		reply_max;
	char		crc32[16];
	char		date[40];
	char		error[CURL_ERROR_SIZE];
} http_transfer;

extern http_request *http_request_new(const char *method, const char *url,
									  const char *const *headers,
									  int header_count,
									  const char *body, size_t len);
extern void http_request_free(http_request *request);

/* False if memory is short, or curl lacks an option that we need. */
extern bool http_transfer_init(http_transfer *t,
							   const http_pool_config *config);

/* Applies the settings that may change; not while the transfer runs. */
extern bool http_transfer_configure(http_transfer *t, const char *ca_file,
									int connect_timeout_ms);
extern void http_transfer_destroy(http_transfer *t);

/* Loads a request; the pool then gives t->easy to curl. */
extern bool http_transfer_load(http_transfer *t, http_request *request);

/*
 * Fills in how it ended; the reply must be zeroed.  Our own time-out is
 * CURLE_OPERATION_TIMEDOUT, too.
 */
extern void http_transfer_ended(const http_transfer *t, CURLcode code,
								int64_t elapsed_us, http_reply *reply);

/* Makes it ready for the next request; wipes the reply. */
extern void http_transfer_unload(http_transfer *t);

#endif							/* DDBLOCK_NET_HTTP_TRANSFER_H */
