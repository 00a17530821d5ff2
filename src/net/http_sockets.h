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
#include <time.h>

#include "net/reactor.h"

typedef struct http_socket
{
	int			fd;
	bool		idle;			/* curl does not wait for it */
	bool		condemned;		/* must not be used again */
} http_socket;

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
} http_sockets;

/* Makes curl open, close and wait for sockets through this file. */
extern bool http_sockets_init(http_sockets *s, reactor *r, CURLM *multi);
extern bool http_sockets_serve(http_sockets *s, CURL *easy);

/* Call before each transfer: sets which connections it may use. */
extern bool http_sockets_allow(const http_sockets *s, CURL *easy);

/* Call after curl has closed all sockets. */
extern void http_sockets_destroy(http_sockets *s);

/*
 * Handles an event on an idle connection; false if the connection is not idle,
 * and curl must handle the event.
 */
extern bool http_sockets_take_idle(http_sockets *s, int fd);

#endif							/* DDBLOCK_NET_HTTP_SOCKETS_H */
