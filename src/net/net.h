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
 * reactor.c: An epoll instance that holds descriptors and one timerfd, so that the caller has one
 * descriptor to wait for.
 *
 * The caller waits until reactor_fd() is readable (with poll, or in a PostgreSQL WaitEventSet),
 * then calls reactor_run().  Single-threaded.
 * ----------------------------------------------------------------
 */

typedef struct reactor reactor;

/* Called with what is ready: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP. */
typedef void (*reactor_io_fn) (void *arg, int fd, int events);
typedef void (*reactor_timer_fn) (void *arg);

/* Microseconds on CLOCK_BOOTTIME, which goes on while the machine is suspended. */
extern int64_t reactor_now_us(void);

/* NULL, with errno set, on failure. */
extern reactor *reactor_new(void);
extern void reactor_free(reactor *r);
extern int	reactor_fd(const reactor *r);

/* Sets the callbacks: one for all descriptors, and one for the timer.  NULL: none. */
extern void reactor_serve(reactor *r, reactor_io_fn io, reactor_timer_fn timer, void *arg);

/*
 * Watches a descriptor for EPOLLIN, EPOLLOUT or both.  EPOLLERR and EPOLLHUP are always reported.
 * events 0 removes the descriptor; do so before you close it.  False, with errno set, on failure.
 */
extern bool reactor_watch(reactor *r, int fd, int events);

extern bool reactor_watches(const reactor *r, int fd);

/* Sets the timer, in microseconds from now on CLOCK_BOOTTIME; negative: stops it. */
extern bool reactor_set_timer(reactor *r, int64_t microseconds);

/*
 * Calls the callbacks for what is ready, without blocking: that of the timer last, so that a
 * time-out never wins against data that has already arrived.
 */
extern void reactor_run(reactor *r);

/* ----------------------------------------------------------------
 * child.c: Runs a command with the shell, and reads what it prints.
 *
 * No function blocks, except child_kill().  The command's input is /dev/null.  The command runs in
 * a process group of its own.  When the command and its output have ended, or its time is up,
 * whatever still runs of the group is killed.  This process waits for all processes of the group;
 * only a process that leaves the group (setsid) can outlive the command.
 * ----------------------------------------------------------------
 */

typedef struct child child;

/* How a command has ended. */
typedef struct child_end
{
	const char *problem;		/* for messages: "ran for too long"; NULL: it exited by itself */
	int			status;			/* its exit status */
	char	   *output;			/* valid during the done function only; a NUL follows */
	size_t		len;
	const char *errors;			/* the end of the command's error output */
} child_end;

typedef void (*child_done_fn) (void *arg, const child_end *end);

/*
 * The reactor must serve nothing else.  NULL if memory is short.  From now on the calling process,
 * and not process 1, becomes the parent of processes that its children leave behind.
 */
extern child *child_new(reactor *r);

/*
 * Starts a command.  Only one can run at a time.  done is called exactly once, by reactor_run().
 * False, with errno set, if the command cannot be started.
 */
extern bool child_start(child *c, const char *command, int timeout_ms,
						child_done_fn done, void *arg);

/* Makes the time of the command, if one runs, be up. */
extern void child_hurry(child *c);

/*
 * Kills the command, if one runs, and waits until it has gone, but for a second at most.  For the
 * end of the calling process.  May be called from a signal handler.
 */
extern void child_kill(child *c);

/* ----------------------------------------------------------------
 * http_pool.c: Keep-alive connections on curl's multi interface, to one endpoint or to
 * whatever URL each request has.
 *
 * No function blocks.  If http_pool_post() or http_pool_send() returns true, the done function of
 * its request is called exactly once afterwards, by reactor_run().
 *
 * The pool sends a request once.  How it keeps curl from repeating a request: see "curl re-sends
 * POSTs" in doc/internals/architecture.md.
 * ----------------------------------------------------------------
 */

typedef struct http_pool http_pool;

typedef struct http_pool_config
{
	const char *url;			/* http:// or https://, host, port, path "/"; NULL:
								 * each request has its own */
	const char *ca_file;		/* NULL: the system's certificates */
	const char *proxy;			/* a URL, as aws_proxy_shown() reads it; "none": no proxy; NULL
								 * or "": the proxy that the environment names for libcurl */
	int			connect_timeout_ms; /* for requests to url */
	int			max_connections;
	int			idle_close_s;	/* a connection that was idle for longer is not reused */
	size_t		reply_max;		/* a request fails if its reply has more bytes */
} http_pool_config;

/*
 * How a request ended.  Each outcome except HTTP_REPLIED has an error text.  DynamoDB may have
 * executed the request if the outcome is HTTP_REPLIED or HTTP_UNKNOWN.
 */
typedef enum http_outcome
{
	HTTP_REPLIED,				/* a complete reply has come */
	HTTP_NOT_SENT,				/* the server got nothing: name, connect, TLS or proxy failed */
	HTTP_UNKNOWN,				/* some of the request, or all, may have been sent */
	HTTP_UNTRUSTED,				/* nothing was sent: the server has no TLS or a wrong certificate */
	HTTP_FOREIGN				/* the request may have been sent, but not to an HTTP server */
} http_outcome;

typedef struct http_reply
{
	http_outcome outcome;
	int			status;			/* HTTP status */
	const char *body;			/* valid during the done function only; a NUL follows */
	size_t		len;
	char		crc32[16];		/* x-amz-crc32, "" if absent */
	char		error_type[256];	/* x-amzn-ErrorType, "" if absent; visible ASCII */
	int64_t		date_s;			/* Date header, epoch seconds; 0 if absent */
	const char *phase;			/* where the request failed: "name resolution",
								 * "connect", "proxy", "TLS", "request", "reply" */
	char		error[256];		/* curl's message, or one of ours */
	bool		refused;		/* the proxy has refused user or password */
	int64_t		elapsed_us;		/* since the request was posted */
} http_reply;

typedef void (*http_done_fn) (void *arg, const http_reply *reply);

/* Makes a pool; the reactor must serve nothing else.  NULL on failure; error says why. */
extern http_pool *http_pool_new(reactor *r, const http_pool_config *config,
								char *error, size_t error_size);

/*
 * Changes ca_file, proxy (both are copied) and connect_timeout_ms for requests that start from now
 * on.  These do not use the connections that are open, because they were made with the old
 * settings.  False, without any change, if memory is short.
 */
extern bool http_pool_reconfigure(http_pool *pool, const http_pool_config *config);

/* The proxy to the pool's URL, without user and password; "": none. */
extern const char *http_pool_proxy(const http_pool *pool);

/* Closes connections and drops requests.  Does not call their done functions. */
extern void http_pool_free(http_pool *pool);

/*
 * Posts the body to the pool's URL, with header lines such as "Name: value".  Body and headers are
 * copied.  The headers must include Content-Type, Host and all that is signed, but not Expect.
 * timeout_ms limits the whole attempt, including the wait for a connection.  False, with nothing
 * sent, if memory is short.
 */
extern bool http_pool_post(http_pool *pool, const char *const *headers,
						   int header_count, const char *body, size_t len,
						   int timeout_ms, http_done_fn done, void *arg);

/*
 * As http_pool_post(), with the method "GET", "PUT" or "POST" (not copied), and a URL for this
 * request.  A GET has no body.  direct: do not use a proxy.  Use either this function or
 * http_pool_post() for all requests of a pool.
 */
extern bool http_pool_send(http_pool *pool, const char *method, const char *url, bool direct,
						   const char *const *headers, int header_count,
						   const char *body, size_t len, int timeout_ms,
						   http_done_fn done, void *arg);

/* Limits the remaining time of all requests that are queued or under way. */
extern void http_pool_hurry(http_pool *pool, int timeout_ms);

/* The number of requests that are queued or under way, and of connections that are open. */
extern int	http_pool_pending(const http_pool *pool);
extern int	http_pool_connections(const http_pool *pool);

/* Writes the versions of the libraries that are loaded: "libcurl/7.88.1 OpenSSL/3.0.17". */
extern void http_pool_library(char *name, size_t size);

/* ----------------------------------------------------------------
 * http_sockets.c: curl's sockets in the reactor.
 *
 * Private to src/net.
 * ----------------------------------------------------------------
 */

/*
 * A connection on which a reply has come.  To retire a connection means to give it no further
 * request.  To condemn it means to end it, so that curl closes it before its next use.
 */
typedef struct http_socket
{
	int			fd;
	bool		idle;			/* no request uses it: curl does not wait for it */
	bool		retired;		/* condemn it as soon as it is idle */
	int64_t		answered_at;	/* when the last reply came */
} http_socket;

/* The sockets of connections, in no order. */
typedef struct http_sockets
{
	reactor    *reactor;
	http_socket *sockets;
	int			count;
	int			size;			/* allocated */
	time_t		condemned_at;	/* when a connection was last condemned; http_curl_seconds() */
	int			ended[2];		/* a socket pair: the end that replaces the descriptor of a
								 * condemned connection, and the other end, which is shut down */
	bool		gave_up;		/* curl has given up a socket that never had a reply */
} http_sockets;

/* The time on curl's clock, which stands still while the machine is suspended. */
extern time_t http_curl_seconds(void);

/* Makes curl wait for its sockets in the reactor.  size: how many connections there may be. */
extern bool http_sockets_init(http_sockets *s, reactor *r, CURLM *multi, int size);

/* Makes curl close the sockets of this handle through this file. */
extern bool http_sockets_serve(http_sockets *s, CURL *easy);

/* Call before each transfer: sets whether it may use a connection that is open. */
extern bool http_sockets_allow(const http_sockets *s, CURL *easy);

/* Frees everything.  Call it after curl has closed all sockets. */
extern void http_sockets_destroy(http_sockets *s);

/* The transfer has ended with a reply.  last: retire its connection if it is a new one. */
extern void http_sockets_answered(http_sockets *s, CURL *easy, bool last);

/* Retires the connections that have had no reply since then. */
extern void http_sockets_retire(http_sockets *s, int64_t since);

/*
 * If the descriptor is that of an idle connection, an event means that the connection must not be
 * used again: condemns it, and returns true.  False: curl must handle the event.
 */
extern bool http_sockets_take_idle(http_sockets *s, int fd);

/* ----------------------------------------------------------------
 * http_proxy.c: Which proxy a request goes through.
 *
 * Private to src/net.
 * ----------------------------------------------------------------
 */

/* A proxy of a scheme that curl does not know: curl fails before it looks up a name. */
#define HTTP_PROXY_UNUSABLE "unusable://proxy"

typedef struct http_proxy
{
	char		url[1024];		/* with user and password; "": no proxy */
	char		shown[320];		/* the same without user and password */
	const char *unusable;		/* if the configured text is not a proxy's URL: the name of the
								 * variable that has it, or "proxy" for the setting; else NULL */
} http_proxy;

/*
 * Finds the proxy for requests to the URL.  setting: as http_pool_config.proxy.  There is no proxy
 * for this machine, nor for a host that the variable no_proxy names.
 */
extern void http_proxy_find(http_proxy *proxy, const char *setting, const char *url);

/* ----------------------------------------------------------------
 * http_transfer.c: One request on one curl easy handle, and how it ended.
 *
 * Private to src/net.  http_pool.c decides when a transfer runs; this file sets curl's options for
 * it, and interprets its end.
 * ----------------------------------------------------------------
 */

/* A request.  The URL and the body follow the struct in the same block of memory. */
typedef struct http_request
{
	struct http_request *next;
	size_t		size;			/* of the block of memory */
	http_done_fn done;
	void	   *arg;
	int64_t		posted_at;		/* microseconds, CLOCK_BOOTTIME */
	int64_t		deadline;
	const char *method;			/* points to the caller's literal; NULL: a POST to the pool's URL */
	const char *url;
	bool		direct;			/* do not use a proxy */
	const char *body;
	size_t		len;
	struct curl_slist *headers;
} http_request;

/* curl's easy handle with its buffers; serves one request after the other. */
typedef struct http_transfer
{
	struct http_transfer *next;
	CURL	   *easy;
	http_request *request;		/* NULL: idle */
	unsigned	settings;		/* which http_pool.settings it has; 0: none yet */
	bool		proxied;
	const char *proxy_unusable; /* http_proxy.unusable */
	const char *refusal;		/* the proxy's last refusal, while the proxy must not be asked
								 * again; else NULL */
	bool		tls_begun;
	bool		started;		/* some of the request may have been sent */
	bool		too_large;		/* the reply is, or its headers and framing are */
	int			open_errno;		/* why no socket could be made; 0: no failure */
	char		scheme[32];		/* how the proxy wants us to authenticate: "Basic"; "": unknown */
	size_t		received;		/* bytes of the reply, including headers and framing */
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

/* Makes the easy handle.  False if memory is short, or curl lacks an option that we need. */
extern bool http_transfer_init(http_transfer *t,
							   const http_pool_config *config);

/* These two apply settings that may change.  Do not call them while the transfer runs. */
extern bool http_transfer_configure(http_transfer *t, const char *ca_file);
extern bool http_transfer_route(http_transfer *t, const http_proxy *proxy);
extern void http_transfer_destroy(http_transfer *t);

/*
 * Loads a request; the pool then gives t->easy to curl.  reloaded_s: the time of the last reload,
 * on curl's clock; curl must read certificate authorities anew that it has read before.
 */
extern bool http_transfer_load(http_transfer *t, http_request *request, int connect_timeout_ms,
							   time_t reloaded_s);

/*
 * Fills in the reply, which must be zeroed.  code: curl's, or CURLE_OPERATION_TIMEDOUT if the pool
 * has timed the transfer out.
 */
extern void http_transfer_ended(const http_transfer *t, CURLcode code,
								int64_t elapsed_us, http_reply *reply);

/* Was the name of the server or its proxy found before the transfer ended? */
extern bool http_transfer_has_address(const http_transfer *t);

/* Makes the transfer ready for the next request; wipes the reply. */
extern void http_transfer_unload(http_transfer *t);

#endif							/* DDBLOCK_NET_NET_H */
