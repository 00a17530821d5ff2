/*-------------------------------------------------------------------------
 *
 * http_sockets.h
 *	  curl's sockets in the reactor.
 *
 * Private to src/net.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_NET_HTTP_SOCKETS_H
#define DDBLOCK_NET_HTTP_SOCKETS_H

#include <curl/curl.h>
#include <stdbool.h>
#include <netinet/in.h>
#include <time.h>

#include "net/reactor.h"

/* What a transfer gives to curl, to know its sockets again. */
typedef struct http_opener
{
	struct http_sockets *sockets;
} http_opener;

typedef struct http_socket
{
	int			fd;
	const http_opener *opener;
	bool		idle;			/* curl does not wait for it */
	bool		condemned;		/* must not be used again */
	char		address[INET6_ADDRSTRLEN];
	int64_t		opened_at;
	int64_t		answered_at;	/* the last reply from its address; 0: none yet */
} http_socket;

/* An address that is left out for a while. */
typedef struct http_bad_address
{
	char		address[INET6_ADDRSTRLEN];
	int64_t		until;
} http_bad_address;

#define HTTP_BAD_ADDRESSES 8

/* The sockets of connections, in no order. */
typedef struct http_sockets
{
	reactor    *reactor;
	http_socket *sockets;
	int			count;
	int			size;			/* allocated */
	int			condemned;		/* of these */
	bool		avoid_condemned;	/* curl does not check them at once */
	time_t		condemned_at;	/* the last of them; seconds of curl's clock */
	http_bad_address bad[HTTP_BAD_ADDRESSES];
	unsigned	next_bad;		/* to be overwritten */
	unsigned	left_out;		/* how often an address was */
} http_sockets;

/* Makes curl open, close and wait for sockets through this file. */
extern bool http_sockets_init(http_sockets *s, reactor *r, CURLM *multi);
extern bool http_sockets_serve(http_sockets *s, http_opener *opener, CURL *easy);

/* Call before each transfer: sets which connections it may use. */
extern bool http_sockets_allow(const http_sockets *s, CURL *easy);

/* A reply came from the address. */
extern void http_sockets_answered(http_sockets *s, const char *address);

/*
 * A request sent to the address failed.  Unless the address has answered another one
 * since then, new connections avoid it, and its idle ones are not used again.
 */
extern void http_sockets_failed(http_sockets *s, const char *address, int64_t since);

/*
 * Call when curl no longer has the transfer.  Connections that it opened, and that never
 * had a reply, are closed: curl does not always say so.
 */
extern void http_sockets_ended(http_sockets *s, const http_opener *opener);

/* From now on all addresses are tried again. */
extern void http_sockets_forgive(http_sockets *s);

/* Call after curl has closed all sockets. */
extern void http_sockets_destroy(http_sockets *s);

/*
 * Handles an event on an idle connection; false if the connection is not idle,
 * and curl must handle the event.
 */
extern bool http_sockets_take_idle(http_sockets *s, int fd);

#endif							/* DDBLOCK_NET_HTTP_SOCKETS_H */
