/*-------------------------------------------------------------------------
 *
 * http_pool.c
 *	  Decides which request runs when, and calls its done function once.
 *
 * A request waits in the queue until one of the max_connections transfers is free.  curl never gets
 * more transfers than these, so it never queues one itself.  A request that can start at once is
 * written to its socket before http_pool_post() returns, because we run curl's timer there.
 * Transfers that have ended are collected in reactor_run() only, so http_pool_post() calls no done
 * function.
 *
 * The pool implements time-outs itself, because curl's clock stands still while the machine is
 * suspended.  Its one timer may fire too early: it is left as it is if it fires before the next
 * deadline, and set again if nothing is due when it fires.  So a request on an open connection
 * usually costs no system call for the timer.
 *
 * Each pool needs a reactor of its own.  curl's multi functions are never called inside its
 * callbacks.  The process must ignore SIGPIPE (PostgreSQL's processes do).
 *
 *-------------------------------------------------------------------------
 */
#include "net/net.h"

#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aws/aws.h"

#define NEVER INT64_MAX

/* How often in a row curl's timer is served if it is due again at once. */
#define TIMER_ROUNDS 4

/*
 * How long a proxy that has refused user and password is not asked again.  The time doubles with
 * each refusal, from 5 s up to 640 s, because many wrong passwords lock an account.
 */
#define REFUSED_US INT64_C(5000000)
#define REFUSED_DOUBLINGS 7

struct http_pool
{
	reactor    *reactor;
	CURLM	   *multi;
	http_sockets sockets;
	http_transfer scout;		/* only looks up the name: see "Names" below */
	bool		scouting;		/* the scout runs */
	bool		unresolved;		/* the last look-up has failed: use the known address */
	char		known[80];		/* the last address that has replied, or that the scout has
								 * found: "+*:PORT:ADDRESS" for CURLOPT_RESOLVE; "": none */
	struct curl_slist known_list;	/* a list with the one element "known" */
	http_transfer *transfers;
	int			transfer_count;
	http_transfer *idle;
	int			active;			/* how many transfers curl has, without the scout */
	http_request *queue;		/* waiting for a transfer, oldest first */
	http_request **queue_end;
	int			queued;
	char	   *url;			/* NULL: each request has its own */
	char	   *ca_file;
	char	   *proxy_setting;
	http_proxy	proxy;			/* for requests to url */
	int			connect_timeout_ms;
	unsigned	refusals;		/* how often in a row the proxy has refused user and password */
	int64_t		refused_until;	/* the proxy is not asked before this time */
	char		refusal[256];	/* the error of the last refusal */
	unsigned	settings;		/* a count of the changes by http_pool_reconfigure() */
	time_t		reloaded_s;		/* the time of the last change, on curl's clock */
	int64_t		curl_due;		/* when curl wants to be called */
	int64_t		deadline;		/* not after the earliest deadline of all requests */
	int64_t		timer_at;		/* the reactor's timer fires then */
	bool		uncollected;	/* a transfer has ended, and its done function was not called */
	bool		in_run;			/* reactor_run() is being executed */
	bool		signals_blocked;	/* by on_resolve(), until curl returns */
	sigset_t	signals;		/* the mask before that */
};

static int64_t
earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ----------------------------------------------------------------
 * Calling curl
 * ----------------------------------------------------------------
 */

static int
on_timer_wanted(CURLM *multi, long timeout_ms, void *arg)
{
	http_pool  *pool = arg;

	(void) multi;
	pool->curl_due = timeout_ms < 0 ? NEVER : reactor_now_us() + timeout_ms * 1000;
	return 0;
}

/*
 * curl calls this before it starts a resolver thread.  The thread must not run the process's signal
 * handlers, and it inherits the signal mask: so all signals are blocked until curl returns.
 */
static int
on_resolve(void *resolver, void *reserved, void *arg)
{
	http_pool  *pool = arg;
	sigset_t	all;

	(void) resolver;
	(void) reserved;
	if (!pool->signals_blocked)
	{
		sigfillset(&all);
		pool->signals_blocked =
			pthread_sigmask(SIG_BLOCK, &all, &pool->signals) == 0;
	}
	return pool->signals_blocked ? 0 : 1;
}

static bool
serve_resolver(http_pool *pool, CURL *easy)
{
	return curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, on_resolve) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_RESOLVER_START_DATA, pool) == CURLE_OK;
}

/*
 * curl has given up a socket, perhaps because an address does not reply in time.  curl 7.88 goes on
 * to the next address only when the transfer runs again.  To pause and continue it causes that.
 */
static void
run_connecting(http_pool *pool)
{
	pool->sockets.gave_up = false;
	for (int i = 0; i < pool->transfer_count; i++)
	{
		const http_transfer *t = &pool->transfers[i];

		if (t->request == NULL || t->started)
			continue;
		curl_easy_pause(t->easy, CURLPAUSE_SEND);
		curl_easy_pause(t->easy, CURLPAUSE_CONT);
	}
}

static void
call_curl(http_pool *pool, curl_socket_t fd, int events)
{
	int			running = 0;

	curl_multi_socket_action(pool->multi, fd, events, &running);
	if (pool->signals_blocked)
	{
		pthread_sigmask(SIG_SETMASK, &pool->signals, NULL);
		pool->signals_blocked = false;
	}
	if (pool->sockets.gave_up)
		run_connecting(pool);
	if (running < pool->active + pool->scouting)
		pool->uncollected = true;
}

static void
serve_curl_timer(http_pool *pool)
{
	for (int i = 0; i < TIMER_ROUNDS && pool->curl_due <= reactor_now_us(); i++)
	{
		pool->curl_due = NEVER;
		call_curl(pool, CURL_SOCKET_TIMEOUT, 0);
	}
}

/* ----------------------------------------------------------------
 * Names
 *
 * Each new connection to the pool's URL looks up the name of the server, or of the proxy.  If the
 * look-up fails, further connections go to the last known address, until that one fails, too.
 *
 * The resolver of the C library takes 5 s if the first name server does not answer, each time anew.
 * An attempt may be shorter, and what its look-up finds after the end of the attempt is lost.  So
 * another transfer, the scout, looks up the name beside the first attempt, and after each look-up
 * that has failed.  The scout connects to nothing, and has no time-out but curl's.
 * ----------------------------------------------------------------
 */

/* Sets the known address.  "*" is any name: only one name is looked up. */
static void
set_known(http_pool *pool, const char *address, const char *port)
{
	snprintf(pool->known, sizeof(pool->known), "+*:%s:%s", port, address);
}

/* curl calls this when the scout has found an address.  That ends the scout. */
static curl_socket_t
on_found(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	char		host[64];
	char		port[8];

	(void) purpose;
	if (getnameinfo(&address->addr, address->addrlen, host, sizeof(host), port, sizeof(port),
					NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		set_known(arg, host, port);
	return CURL_SOCKET_BAD;
}

static bool
init_scout(http_pool *pool, const http_pool_config *config)
{
	CURL	   *easy;

	pool->known_list.data = pool->known;
	if (!http_transfer_init(&pool->scout, config))
		return false;
	easy = pool->scout.easy;
	return serve_resolver(pool, easy) &&
		curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_found) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, pool) == CURLE_OK;
}

static void
start_scout(http_pool *pool)
{
	if (!pool->scouting && http_transfer_route(&pool->scout, &pool->proxy))
		pool->scouting = curl_multi_add_handle(pool->multi, pool->scout.easy) == CURLM_OK;
}

/*
 * Makes a transfer use the known address if the last look-up has failed.  curl must not cache names
 * (0 s), but it keeps the given address for the cache's time, so that is 60 s then, its default.
 */
static bool
use_known(const http_pool *pool, CURL *easy)
{
	bool		known = pool->unresolved && pool->known[0] != '\0';

	return curl_easy_setopt(easy, CURLOPT_RESOLVE, known ? &pool->known_list : NULL) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, known ? 60L : 0L) == CURLE_OK;
}

/* Learns from the end of a transfer to the pool's URL: its address works, or no name was found. */
static void
learn_name(http_pool *pool, const http_transfer *t, CURLcode code)
{
	char	   *address = NULL;
	long		port = 0;
	char		text[16];

	if (code == CURLE_OK)
	{
		curl_easy_getinfo(t->easy, CURLINFO_PRIMARY_IP, &address);
		curl_easy_getinfo(t->easy, CURLINFO_PRIMARY_PORT, &port);
		snprintf(text, sizeof(text), "%ld", port);
		set_known(pool, address, text);
	}
	else if (!t->started)
	{
		pool->unresolved = !http_transfer_has_address(t);
		if (pool->unresolved)
			start_scout(pool);
	}
}

/* ----------------------------------------------------------------
 * A request's life: queued, started, finished
 * ----------------------------------------------------------------
 */

/* Removes from the queue the request that *link points to. */
static http_request *
dequeue(http_pool *pool, http_request **link)
{
	http_request *request = *link;

	*link = request->next;
	if (*link == NULL)
		pool->queue_end = link;
	request->next = NULL;
	pool->queued--;
	return request;
}

static void
release_transfer(http_pool *pool, http_transfer *t)
{
	http_transfer_unload(t);
	t->next = pool->idle;
	pool->idle = t;
}

/*
 * Applies the pool's settings to a transfer, and sets its proxy.  A request with its own URL may
 * need another proxy than the pool's URL.
 */
static bool
prepare(http_pool *pool, http_transfer *t, const http_request *request)
{
	http_proxy	own;
	bool		routed;

	t->refusal = pool->refused_until > reactor_now_us() ? pool->refusal : NULL;
	if (t->settings != pool->settings &&
		!http_transfer_configure(t, pool->ca_file))
		return false;
	t->settings = pool->settings;
	if (request->url == NULL)
		return http_transfer_route(t, &pool->proxy) && use_known(pool, t->easy);
	http_proxy_find(&own, request->direct ? "none" : pool->proxy_setting, request->url);
	routed = http_transfer_route(t, &own);
	explicit_bzero(&own, sizeof(own));
	return routed;
}

/* Starts the request.  False: nothing was sent, and the caller still owns the request. */
static bool
start(http_pool *pool, http_request *request)
{
	http_transfer *t = pool->idle;

	pool->idle = t->next;
	if (!prepare(pool, t, request) ||
		!http_transfer_load(t, request, pool->connect_timeout_ms, pool->reloaded_s) ||
		!http_sockets_allow(&pool->sockets, t->easy) ||
		curl_multi_add_handle(pool->multi, t->easy) != CURLM_OK)
	{
		release_transfer(pool, t);
		return false;
	}
	pool->active++;
	if (request->url == NULL && pool->known[0] == '\0')
		start_scout(pool);
	serve_curl_timer(pool);
	return true;
}

static void
answer(http_request *request, http_reply *reply, int64_t now)
{
	reply->elapsed_us = now - request->posted_at;
	request->done(request->arg, reply);
	http_request_free(request);
}

/*
 * Learns from the end of a transfer whether the proxy has refused user and password, or, if a
 * request went out on a new connection, has accepted them.
 */
static void
learn_refusal(http_pool *pool, const http_transfer *t, const http_reply *reply, int64_t now)
{
	long		connects = 0;

	curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connects);
	if (t->proxied && t->started && !reply->refused && connects > 0)
		pool->refusals = 0;
	if (!reply->refused || t->settings != pool->settings || pool->refused_until > now)
		return;
	pool->refused_until = now + (REFUSED_US << pool->refusals);
	pool->refusals += pool->refusals < REFUSED_DOUBLINGS;
	memcpy(pool->refusal, reply->error, sizeof(pool->refusal));
	/* Without a tunnel, each request asks the proxy, so open connections would be refused, too. */
	if (t->started)
		http_sockets_retire(&pool->sockets, INT64_MAX);
}

/*
 * Ends a transfer.  curl_is_done: curl has ended it; false: the pool has timed it out.
 *
 * In the first case, the done function is called before curl's handle is removed, because somebody
 * waits for the reply.  In the second case, curl still works on the transfer, so the handle must be
 * removed before answer() frees the request.
 */
static void
finish(http_pool *pool, http_transfer *t, CURLcode code, bool curl_is_done)
{
	http_request *request = t->request;
	http_reply	reply = {0};
	int64_t		now = reactor_now_us();

	http_transfer_ended(t, code, now - request->posted_at, &reply);
	if (code == CURLE_OK)
		http_sockets_answered(&pool->sockets, t->easy, t->settings != pool->settings);
	else if (t->started)
		http_sockets_retire(&pool->sockets, request->posted_at);
	if (request->url == NULL && t->settings == pool->settings)
		learn_name(pool, t, code);
	learn_refusal(pool, t, &reply, now);
	if (!curl_is_done)
		curl_multi_remove_handle(pool->multi, t->easy);
	pool->active--;
	answer(request, &reply, now);
	if (curl_is_done)
		curl_multi_remove_handle(pool->multi, t->easy);
	release_transfer(pool, t);
}

/* Ends a request that never started. */
static void
finish_queued(http_request *request, const char *why)
{
	http_reply	reply = {.outcome = HTTP_NOT_SENT,.phase = "connect",.body = ""};
	int64_t		now = reactor_now_us();

	snprintf(reply.error, sizeof(reply.error), "%s after %lld ms (connect)",
			 why, (long long) ((now - request->posted_at) / 1000));
	answer(request, &reply, now);
}

static void
start_queued(http_pool *pool)
{
	while (pool->queue != NULL && pool->idle != NULL)
	{
		http_request *request = dequeue(pool, &pool->queue);

		if (!start(pool, request))
			finish_queued(request, "Out of memory");
	}
}

/*
 * Finishes the transfers that have ended.  A done function may post a request that ends at once.
 * The budget leaves such a request to the next turn, so that this loop ends.
 */
static void
collect(http_pool *pool)
{
	int			budget = pool->active + pool->scouting;

	do
	{
		int			left;
		CURLMsg    *message = curl_multi_info_read(pool->multi, &left);
		http_transfer *t;

		pool->uncollected = left > 0;
		if (message == NULL)
			break;
		if (message->easy_handle == pool->scout.easy)
		{
			curl_multi_remove_handle(pool->multi, pool->scout.easy);
			pool->scouting = false;
			continue;
		}
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
		finish(pool, t, message->data.result, true);
	} while (--budget > 0);
}

/* ----------------------------------------------------------------
 * Time
 * ----------------------------------------------------------------
 */

/* Ends requests whose time-out has expired, and finds the next deadline. */
static void
expire(http_pool *pool)
{
	int64_t		now = reactor_now_us();
	http_request *expired = NULL;
	http_request **expired_end = &expired;
	http_request **link = &pool->queue;

	if (pool->deadline > now)
		return;
	pool->deadline = NEVER;
	/* Remove all from the queue before the first done function runs: it may change the queue. */
	while (*link != NULL)
	{
		if ((*link)->deadline > now)
		{
			pool->deadline = earlier(pool->deadline, (*link)->deadline);
			link = &(*link)->next;
			continue;
		}
		*expired_end = dequeue(pool, link);
		expired_end = &(*expired_end)->next;
	}
	while (expired != NULL)
	{
		http_request *request = expired;

		expired = request->next;
		finish_queued(request, "Timed out");
	}
	for (int i = 0; i < pool->transfer_count; i++)
	{
		http_transfer *t = &pool->transfers[i];

		if (t->request == NULL)
			continue;
		if (t->request->deadline <= now)
			finish(pool, t, CURLE_OPERATION_TIMEDOUT, false);
		else
			pool->deadline = earlier(pool->deadline, t->request->deadline);
	}
}

/* Makes the timer fire before or when something is due. */
static void
set_timer(http_pool *pool)
{
	int64_t		due = earlier(pool->curl_due, pool->deadline);
	int64_t		now;

	if (pool->uncollected)
		due = 0;
	if (pool->timer_at <= due)
		return;
	now = reactor_now_us();
	if (reactor_set_timer(pool->reactor, due > now ? due - now : 0))
		pool->timer_at = due;
}

/* ----------------------------------------------------------------
 * Functions that the reactor calls
 * ----------------------------------------------------------------
 */

static void
turn(http_pool *pool)
{
	pool->in_run = true;
	serve_curl_timer(pool);
	collect(pool);
	expire(pool);
	start_queued(pool);
	pool->in_run = false;
	set_timer(pool);
}

static void
on_io(void *arg, int fd, int events)
{
	http_pool  *pool = arg;
	int			select = 0;

	if (http_sockets_take_idle(&pool->sockets, fd))
		return;
	if (events & (EPOLLIN | EPOLLHUP))	/* curl finds the end of a connection by reading */
		select |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		select |= CURL_CSELECT_OUT;
	if (events & EPOLLERR)
		select |= CURL_CSELECT_ERR;
	call_curl(pool, fd, select);
	turn(pool);
}

static void
on_timer(void *arg)
{
	http_pool  *pool = arg;

	pool->timer_at = NEVER;
	turn(pool);
}

/* ----------------------------------------------------------------
 * The pool
 * ----------------------------------------------------------------
 */

static bool
init_curl(char *error, size_t error_size)
{
	const char *wrong = NULL;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		wrong = "libcurl cannot be initialized";
	else if (!(curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS))
		wrong = "libcurl is built without asynchronous name resolution";
	snprintf(error, error_size, "%s", wrong != NULL ? wrong : "");
	return wrong == NULL;
}

/* Makes curl's handles.  False: call http_pool_free(), which frees those that were made. */
static bool
init_handles(http_pool *pool, const http_pool_config *config)
{
	long		connections = config->max_connections;
	long		total = connections + 1;	/* one for the scout */

	pool->multi = curl_multi_init();
	pool->transfers = calloc(config->max_connections, sizeof(http_transfer));
	if (pool->multi == NULL || pool->transfers == NULL ||
		!http_sockets_init(&pool->sockets, pool->reactor, pool->multi, config->max_connections) ||
		curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted) != CURLM_OK ||
		curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool) != CURLM_OK ||
		curl_multi_setopt(pool->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, total) != CURLM_OK ||
		curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, connections) != CURLM_OK)
		return false;
	for (int i = 0; i < config->max_connections; i++)
	{
		http_transfer *t = &pool->transfers[i];

		pool->transfer_count++;
		if (!http_transfer_init(t, config) ||
			!http_sockets_serve(&pool->sockets, t->easy) || !serve_resolver(pool, t->easy))
			return false;
		t->next = pool->idle;
		pool->idle = t;
	}
	return config->url == NULL || init_scout(pool, config);
}

/* Wipes and frees the URL of a proxy, which may have a password. */
static void
free_secret(char *text)
{
	if (text != NULL)
		explicit_bzero(text, strlen(text));
	free(text);
}

bool
http_pool_reconfigure(http_pool *pool, const http_pool_config *config)
{
	char	   *ca_file = strdup(config->ca_file != NULL ? config->ca_file : "");
	char	   *proxy = strdup(config->proxy != NULL ? config->proxy : "");
	char		before[sizeof(pool->proxy.shown)];

	if (ca_file == NULL || proxy == NULL)
	{
		free(ca_file);
		free_secret(proxy);
		return false;
	}
	free(pool->ca_file);
	free_secret(pool->proxy_setting);
	pool->ca_file = ca_file;
	pool->proxy_setting = proxy;
	pool->connect_timeout_ms = config->connect_timeout_ms;
	strcpy(before, pool->proxy.shown);
	if (pool->url != NULL)
		http_proxy_find(&pool->proxy, proxy, pool->url);
	if (strcmp(before, pool->proxy.shown) != 0)
		pool->known[0] = '\0';
	pool->settings++;
	pool->refusals = 0;
	pool->refused_until = 0;
	pool->reloaded_s = http_curl_seconds();
	http_sockets_retire(&pool->sockets, INT64_MAX);
	return true;
}

const char *
http_pool_proxy(const http_pool *pool)
{
	return pool->proxy.shown;
}

http_pool *
http_pool_new(reactor *r, const http_pool_config *config,
			  char *error, size_t error_size)
{
	char		host[300];
	http_pool  *pool;

	if ((config->url != NULL &&
		 !aws_endpoint_host(config->url, host, sizeof(host), error, error_size)) ||
		!init_curl(error, error_size))
		return NULL;
	pool = calloc(1, sizeof(*pool));
	if (pool == NULL)
	{
		snprintf(error, error_size, "Out of memory");
		return NULL;
	}
	pool->reactor = r;
	pool->queue_end = &pool->queue;
	pool->curl_due = pool->deadline = pool->timer_at = NEVER;
	if (!init_handles(pool, config) ||
		(config->url != NULL && (pool->url = strdup(config->url)) == NULL) ||
		!http_pool_reconfigure(pool, config))
	{
		http_pool_free(pool);
		snprintf(error, error_size,
				 "libcurl is out of memory or lacks an option");
		return NULL;
	}
	reactor_serve(r, on_io, on_timer, pool);
	return pool;
}

void
http_pool_free(http_pool *pool)
{
	if (pool == NULL)
		return;
	reactor_serve(pool->reactor, NULL, NULL, NULL);
	reactor_set_timer(pool->reactor, -1);
	for (int i = 0; i < pool->transfer_count; i++)
	{
		http_transfer *t = &pool->transfers[i];

		if (t->request != NULL)
			curl_multi_remove_handle(pool->multi, t->easy);
		http_request_free(t->request);
		http_transfer_destroy(t);
	}
	if (pool->scouting)
		curl_multi_remove_handle(pool->multi, pool->scout.easy);
	http_transfer_destroy(&pool->scout);
	while (pool->queue != NULL)
		http_request_free(dequeue(pool, &pool->queue));
	curl_multi_cleanup(pool->multi);
	http_sockets_destroy(&pool->sockets);
	free(pool->transfers);
	free(pool->url);
	free(pool->ca_file);
	free_secret(pool->proxy_setting);
	explicit_bzero(&pool->proxy, sizeof(pool->proxy));
	free(pool);
}

bool
http_pool_post(http_pool *pool, const char *const *headers, int header_count,
			   const char *body, size_t len, int timeout_ms,
			   http_done_fn done, void *arg)
{
	return http_pool_send(pool, NULL, NULL, false, headers, header_count, body, len,
						  timeout_ms, done, arg);
}

bool
http_pool_send(http_pool *pool, const char *method, const char *url, bool direct,
			   const char *const *headers, int header_count,
			   const char *body, size_t len, int timeout_ms,
			   http_done_fn done, void *arg)
{
	http_request *request = http_request_new(method, url, headers, header_count,
											 body, len);

	if (request == NULL)
		return false;
	request->direct = direct;
	request->done = done;
	request->arg = arg;
	request->posted_at = reactor_now_us();
	request->deadline = request->posted_at + (int64_t) timeout_ms * 1000;
	if (pool->queue != NULL || pool->idle == NULL || timeout_ms <= 0)
	{
		*pool->queue_end = request;
		pool->queue_end = &request->next;
		pool->queued++;
	}
	else if (!start(pool, request))
	{
		http_request_free(request);
		return false;
	}
	pool->deadline = earlier(pool->deadline, request->deadline);
	if (!pool->in_run)
		set_timer(pool);
	return true;
}

void
http_pool_hurry(http_pool *pool, int timeout_ms)
{
	int64_t		latest = reactor_now_us() + (int64_t) timeout_ms * 1000;

	if (http_pool_pending(pool) == 0)
		return;
	for (http_request *request = pool->queue; request != NULL; request = request->next)
		request->deadline = earlier(request->deadline, latest);
	for (int i = 0; i < pool->transfer_count; i++)
	{
		http_request *request = pool->transfers[i].request;

		if (request != NULL)
			request->deadline = earlier(request->deadline, latest);
	}
	pool->deadline = earlier(pool->deadline, latest);
	if (!pool->in_run)
		set_timer(pool);
}

int
http_pool_pending(const http_pool *pool)
{
	return pool->queued + pool->active;
}

int
http_pool_connections(const http_pool *pool)
{
	return pool->sockets.count;
}

void
http_pool_library(char *name, size_t size)
{
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);

	snprintf(name, size, "libcurl/%s %s", curl->version,
			 curl->ssl_version != NULL ? curl->ssl_version : "without TLS");
}
