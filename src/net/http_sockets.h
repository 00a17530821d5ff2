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

#include "net/reactor.h"

typedef struct http_socket
{
	int			fd;
	bool		idle;			/* curl waits for nothing on it */
	bool		condemned;		/* not to be used again */
} http_socket;

/* The sockets of connections, in no order. */
typedef struct http_sockets
{
	reactor    *reactor;
	http_socket *sockets;
	int			count;
	int			size;			/* allocated */
	int			condemned;		/* of these */
	bool		avoid_condemned;	/* curl does not */
} http_sockets;

/* Makes curl open, close and wait for sockets through us. */
extern bool http_sockets_init(http_sockets *s, reactor *r, CURLM *multi);
extern bool http_sockets_serve(http_sockets *s, CURL *easy);

/* Before each transfer: which connections it may use. */
extern bool http_sockets_allow(const http_sockets *s, CURL *easy);

/* After curl has closed them all. */
extern void http_sockets_destroy(http_sockets *s);

/*
 * Takes an event that came on an idle connection; false if it is none of
 * those, and is curl's to handle.
 */
extern bool http_sockets_take_idle(http_sockets *s, int fd);

#endif							/* DDBLOCK_NET_HTTP_SOCKETS_H */
