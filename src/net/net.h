/*-------------------------------------------------------------------------
 *
 * net.h
 *	  HTTP requests, child processes, and the reactor that runs them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_NET_NET_H
#define DDBLOCK_NET_NET_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

/* ----------------------------------------------------------------
 * reactor.c: An epoll instance that holds curl's sockets and one timerfd: one
 * descriptor to wait for.
 *
 * The caller waits until reactor_fd() is readable (with poll, or in
 * a PostgreSQL WaitEventSet), then calls reactor_run().  Single-threaded.
 * ----------------------------------------------------------------
 */

typedef struct reactor reactor;

/* events: EPOLLIN, EPOLLOUT; EPOLLERR and EPOLLHUP are always reported. */
typedef void (*reactor_io_fn) (void *arg, int fd, int events);
typedef void (*reactor_timer_fn) (void *arg);

/* Microseconds on CLOCK_BOOTTIME, which counts a suspended machine. */
extern int64_t reactor_now_us(void);

/* NULL with errno set on failure. */
extern reactor *reactor_new(void);
extern void reactor_free(reactor *r);
extern int	reactor_fd(const reactor *r);

/* All sockets share one callback, and there is one timer.  NULL: none. */
extern void reactor_serve(reactor *r, reactor_io_fn io, reactor_timer_fn timer, void *arg);

/*
 * events 0 removes the descriptor; do so before closing it.  False with errno set on
 * failure.
 */
extern bool reactor_watch(reactor *r, int fd, int events);

extern bool reactor_watches(const reactor *r, int fd);

/* Microseconds from now on CLOCK_BOOTTIME; negative: no timer. */
extern bool reactor_set_timer(reactor *r, int64_t microseconds);

/*
 * Handles what is ready, without blocking: sockets first, so that a time-out never
 * wins against data that has already arrived.
 */
extern void reactor_run(reactor *r);

/* ----------------------------------------------------------------
 * child.c: Runs a command with the shell, and reads what it prints.
 *
 * Never blocks.  The command's input and errors go to /dev/null.  It runs in a
 * process group of its own, which is killed at the end: what the command has left
 * behind, or all of it when its time is up.  This process collects all that end; only
 * what leaves the group (setsid) can outlive it.
 * ----------------------------------------------------------------
 */

typedef struct child child;

/* How it ended. */
typedef struct child_end
{
	const char *problem;		/* NULL: it exited by itself */
	int			status;			/* of its exit */
	char	   *output;			/* valid during the done function only; a NUL follows */
	size_t		len;
	const char *errors;			/* the end of its error output */
} child_end;

typedef void (*child_done_fn) (void *arg, const child_end *end);

/*
 * The reactor is for this alone.  NULL if memory is short.  From now on the calling
 * process inherits what its children leave behind, in place of process 1.
 */
extern child *child_new(reactor *r);

/*
 * Starts the command; one at a time.  Exactly one call of done follows, from within
 * reactor_run().  False, with errno set, if it cannot be started.
 */
extern bool child_start(child *c, const char *command, int timeout_ms,
						child_done_fn done, void *arg);

/* The command that runs, if one does, has no time left. */
extern void child_hurry(child *c);

/*
 * Before the process ends: kills the command, if one runs, and waits until it has
 * gone, a second at most.  May be called from a signal handler.
 */
extern void child_kill(child *c);

/* ----------------------------------------------------------------
 * http_pool.c: Keep-alive connections on curl's multi interface, to one endpoint or to
 * whatever URL each request has.
 *
 * Sends requests and reports replies; knows nothing of DynamoDB.  Never blocks and
 * never raises an error.  Each http_pool_post() or http_pool_send() that returns
 * true is followed by exactly one call of its done function, never from within it.
 *
 * A request is never repeated without the caller's knowledge: see "curl re-sends
 * POSTs" in doc/internals/architecture.md.
 * ----------------------------------------------------------------
 */

typedef struct http_pool http_pool;

typedef struct http_pool_config
{
	const char *url;			/* http:// or https://, host, port, path "/"; NULL:
								 * each request has its own */
	const char *ca_file;		/* NULL: the system's certificates */
	const char *proxy;			/* a URL, as aws_proxy_shown() reads it; "none"; NULL or
								 * "": what libcurl's variables say */
	int			connect_timeout_ms;
	int			max_connections;
	int			idle_close_s;	/* do not reuse a connection idle for longer */
	size_t		reply_max;		/* larger replies fail */
} http_pool_config;

/* How a request ended; all but HTTP_REPLIED have an error text. */
typedef enum http_outcome
{
	HTTP_REPLIED,				/* a complete reply */
	HTTP_NOT_SENT,				/* name, connect, TLS or proxy failed: nothing was sent */
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
	char		error_type[256];	/* x-amzn-ErrorType, likewise; visible ASCII */
	int64_t		date_s;			/* Date header, epoch seconds; 0 if absent */
	const char *phase;			/* where it failed: "name resolution",
								 * "connect", "proxy", "TLS", "request", "reply" */
	char		error[256];		/* curl's message */
	bool		refused;		/* by the proxy: the user, or the password */
	int64_t		elapsed_us;
} http_reply;

typedef void (*http_done_fn) (void *arg, const http_reply *reply);

/* NULL on failure; error says why. */
extern http_pool *http_pool_new(reactor *r, const http_pool_config *config,
								char *error, size_t error_size);

/*
 * Changes ca_file, proxy (both are copied) and connect_timeout_ms for requests posted from
 * now on.  A connection that was made with other certificates, or another way, is not used
 * again.  False, without any change, when memory is short.
 */
extern bool http_pool_reconfigure(http_pool *pool, const http_pool_config *config);

/* The proxy to the pool's URL, without user and password; "": none. */
extern const char *http_pool_proxy(const http_pool *pool);

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
 * The same with another method, a literal "GET", "PUT" or "POST", and a URL of its own.  A GET
 * has no body.  direct: through no proxy.  All requests of a pool are sent in the same way.
 */
extern bool http_pool_send(http_pool *pool, const char *method, const char *url, bool direct,
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

/* ----------------------------------------------------------------
 * http_sockets.c: curl's sockets in the reactor.
 *
 * Private to src/net.
 * ----------------------------------------------------------------
 */

/* A connection that has had a reply. */
typedef struct http_socket
{
	int			fd;
	bool		idle;			/* curl does not wait for it */
	bool		retired;		/* to be condemned when it is idle */
	int64_t		answered_at;	/* the last reply */
} http_socket;

/* The sockets of connections, in no order. */
typedef struct http_sockets
{
	reactor    *reactor;
	http_socket *sockets;
	int			count;
	int			size;			/* allocated */
	time_t		condemned_at;	/* the last one; seconds of curl's clock */
	int			ended[2];		/* what takes a condemned connection's place, and its other end */
	bool		gave_up;		/* curl has, a socket without a reply */
} http_sockets;

/* The clock that curl uses, which stands still while the machine is suspended. */
extern time_t http_curl_seconds(void);

/* Makes curl close, and wait for, so many connections through this file. */
extern bool http_sockets_init(http_sockets *s, reactor *r, CURLM *multi, int size);
extern bool http_sockets_serve(http_sockets *s, CURL *easy);

/* Call before each transfer: sets which connections it may use. */
extern bool http_sockets_allow(const http_sockets *s, CURL *easy);

/* Call after curl has closed all sockets. */
extern void http_sockets_destroy(http_sockets *s);

/* The transfer has ended with a reply.  last: its connection gets no further request. */
extern void http_sockets_answered(http_sockets *s, CURL *easy, bool last);

/* Connections that have had no reply since then get no further request. */
extern void http_sockets_retire(http_sockets *s, int64_t since);

/*
 * Handles an event on an idle connection; false if the connection is not idle,
 * and curl must handle the event.
 */
extern bool http_sockets_take_idle(http_sockets *s, int fd);

/* ----------------------------------------------------------------
 * http_proxy.c: Which proxy a request goes through.
 *
 * Private to src/net.
 * ----------------------------------------------------------------
 */

/* curl knows no such scheme: it fails before it looks a name up. */
#define HTTP_PROXY_UNUSABLE "unusable://proxy"

typedef struct http_proxy
{
	char		url[1024];		/* with user and password; "": none */
	char		shown[320];		/* without */
	const char *unusable;		/* what its URL is in, if it is none; or NULL */
} http_proxy;

/*
 * To the URL: as http_pool_config.proxy says.  None to this machine, nor to what no_proxy
 * names.
 */
extern void http_proxy_find(http_proxy *proxy, const char *setting, const char *url);

/* ----------------------------------------------------------------
 * http_transfer.c: One request on one curl easy handle, and how it ended.
 *
 * Private to src/net: http_pool.c decides when a transfer runs; this file sets
 * curl's options for it and interprets its end.
 * ----------------------------------------------------------------
 */

/* A request.  The URL and the body are behind it in its block of memory. */
typedef struct http_request
{
	struct http_request *next;
	size_t		size;			/* of the block */
	http_done_fn done;
	void	   *arg;
	int64_t		posted_at;		/* microseconds, CLOCK_BOOTTIME */
	int64_t		deadline;
	const char *method;			/* the caller's; NULL: a POST to the pool's URL */
	const char *url;
	bool		direct;			/* through no proxy */
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
	unsigned	settings;		/* version of http_pool's settings; 0: none yet */
	bool		proxied;
	const char *proxy_unusable; /* see http_proxy */
	const char *refusal;		/* of the proxy, which is not to be asked now; or NULL */
	bool		tls_begun;
	bool		started;		/* curl may have sent some of it */
	bool		too_large;		/* the reply, or its headers and framing */
	int			open_errno;		/* why it has no socket; 0: it has, or needs none */
	char		scheme[32];		/* what the proxy wants; "": nothing that we know */
	size_t		received;		/* including headers and framing */
	char	   *reply;
	size_t		reply_len;
	size_t		reply_size;		/* allocated */
	size_t		reply_max;
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

/* Apply the settings that may change; not while the transfer runs. */
extern bool http_transfer_configure(http_transfer *t, const char *ca_file);
extern bool http_transfer_route(http_transfer *t, const http_proxy *proxy);
extern void http_transfer_destroy(http_transfer *t);

/*
 * Loads a request; the pool then gives t->easy to curl.  reloaded_s: when authorities are to
 * be read anew, by curl's clock.
 */
extern bool http_transfer_load(http_transfer *t, http_request *request, int connect_timeout_ms,
							   time_t reloaded_s);

/*
 * Fills in how it ended; the reply must be zeroed.  Our own time-out is
 * CURLE_OPERATION_TIMEDOUT, too.
 */
extern void http_transfer_ended(const http_transfer *t, CURLcode code,
								int64_t elapsed_us, http_reply *reply);

/* Had its name, or its proxy's, an address in time? */
extern bool http_transfer_has_address(const http_transfer *t);

/* Makes it ready for the next request; wipes the reply. */
extern void http_transfer_unload(http_transfer *t);

#endif							/* DDBLOCK_NET_NET_H */
