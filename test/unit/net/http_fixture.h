/*-------------------------------------------------------------------------
 *
 * http_fixture.h
 *	  For the tests of src/net: a scripted HTTP server and a client.
 *
 * The server runs in threads of the test program, one for each connection.  Each
 * runs the test's script, which sends every byte of the reply and ends the
 * connection.  Scripts wait for the client's bytes or its end, never for time to
 * pass.
 *
 * HTTP_TEST(name, script) { ... } is a test with a server s and a client c of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HTTP_FIXTURE_H
#define HTTP_FIXTURE_H

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit.h"
#include "net/net.h"

#define REQUEST_MAX (2 << 20)
#define CONNECTIONS_MAX 256

/* Much longer than any test takes: ends a test that hangs. */
#define PATIENCE_MS 30000

/* ---- server ---- */

struct test_server;

typedef struct test_connection
{
	struct test_server *server;
	pthread_t	thread;
	int			number;			/* 1 is the first */
	int			fd;
	SSL		   *ssl;
	char	   *request;		/* the last one, with a NUL after its body */
	size_t		len;
	size_t		body_at;
} test_connection;

typedef void (*test_script) (test_connection *c);

typedef struct test_server
{
	test_script script;
	SSL_CTX    *tls;
	int			listener;
	int			port;
	pthread_t	thread;
	pthread_mutex_t mutex;
	test_connection *connections[CONNECTIONS_MAX];
	int			connection_count;
	int			requests;		/* read completely */
	int			expected_requests;	/* at the test's end; -1: any number */
	int			ended;			/* connections that the server has closed */
	pthread_cond_t ended_changed;
	bool		stopping;
} test_server;

static inline ssize_t
connection_read(test_connection *c, char *buffer, size_t size)
{
	if (c->ssl != NULL)
		return SSL_read(c->ssl, buffer, (int) size);
	return recv(c->fd, buffer, size, 0);
}

static inline void
connection_write(test_connection *c, const char *text, size_t len)
{
	while (len > 0)
	{
		ssize_t		n = c->ssl != NULL ? SSL_write(c->ssl, text, (int) len) :
			send(c->fd, text, len, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		text += n;
		len -= n;
	}
}

static inline void
connection_print(test_connection *c, const char *text)
{
	connection_write(c, text, strlen(text));
}

/* An ordinary reply that keeps the connection. */
static inline void
connection_reply(test_connection *c, int status, const char *headers,
				 const char *body)
{
	char	   *text = malloc(strlen(headers) + strlen(body) + 200);

	sprintf(text, "HTTP/1.1 %d Words\r\nContent-Length: %zu\r\n%s\r\n%s",
			status, strlen(body), headers, body);
	connection_print(c, text);
	free(text);
}

/* Waits for the client's end. */
static inline void
connection_outwait(test_connection *c)
{
	char		ignored[4096];

	while (connection_read(c, ignored, sizeof(ignored)) > 0)
		;
}

/* False at the connection's end. */
static inline bool
connection_read_request(test_connection *c)
{
	c->len = c->body_at = 0;
	for (;;)
	{
		char	   *end;
		char	   *length;
		ssize_t		n = connection_read(c, c->request + c->len,
										REQUEST_MAX - c->len);

		if (n <= 0)
			return false;
		c->len += n;
		c->request[c->len] = '\0';
		end = strstr(c->request, "\r\n\r\n");
		if (end == NULL)
			continue;
		c->body_at = end + 4 - c->request;
		length = strstr(c->request, "\r\nContent-Length:");
		if (strncmp(c->request, "GET ", 4) != 0 && strncmp(c->request, "CONNECT ", 8) != 0 &&
			(length == NULL || length > end ||
			 c->len - c->body_at < strtoul(length + 17, NULL, 10)))
			continue;
		__atomic_add_fetch(&c->server->requests, 1, __ATOMIC_SEQ_CST);
		return true;
	}
}

static inline void *
connection_main(void *arg)
{
	test_connection *c = arg;

	if (c->server->tls != NULL)
	{
		c->ssl = SSL_new(c->server->tls);
		SSL_set_fd(c->ssl, c->fd);
	}
	if (c->ssl == NULL || SSL_accept(c->ssl) == 1)
		c->server->script(c);
	if (c->ssl != NULL)
		SSL_shutdown(c->ssl);
	shutdown(c->fd, SHUT_RDWR);
	pthread_mutex_lock(&c->server->mutex);
	c->server->ended++;
	pthread_cond_signal(&c->server->ended_changed);
	pthread_mutex_unlock(&c->server->mutex);
	return NULL;
}

static inline void *
server_main(void *arg)
{
	test_server *s = arg;
	int			fd;

	while ((fd = accept(s->listener, NULL, NULL)) >= 0)
	{
		test_connection *c = calloc(1, sizeof(*c));

		c->server = s;
		c->fd = fd;
		c->request = malloc(REQUEST_MAX + 1);
		pthread_mutex_lock(&s->mutex);
		if (s->stopping || s->connection_count == CONNECTIONS_MAX)
		{
			close(fd);
			free(c->request);
			free(c);
		}
		else
		{
			s->connections[s->connection_count++] = c;
			c->number = s->connection_count;
			pthread_create(&c->thread, NULL, connection_main, c);
		}
		pthread_mutex_unlock(&s->mutex);
	}
	return NULL;
}

/* A socket on a free port of the loopback. */
static inline int
bind_loopback(int *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t	len = sizeof(address);
	int			fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *) &address, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *) &address, &len), 0);
	*port = ntohs(address.sin_port);
	return fd;
}

/* The server owns its TLS context; NULL: HTTP. */
static inline test_server *
server_start(test_script script, SSL_CTX *tls)
{
	test_server *s = calloc(1, sizeof(*s));

	s->script = script;
	s->tls = tls;
	s->expected_requests = -1;
	s->listener = bind_loopback(&s->port);
	assert_int_equal(listen(s->listener, 128), 0);
	pthread_mutex_init(&s->mutex, NULL);
	pthread_cond_init(&s->ended_changed, NULL);
	assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
	return s;
}

static inline int
server_requests(test_server *s)
{
	return __atomic_load_n(&s->requests, __ATOMIC_SEQ_CST);
}

static inline int
server_connections(test_server *s)
{
	int			count;

	pthread_mutex_lock(&s->mutex);
	count = s->connection_count;
	pthread_mutex_unlock(&s->mutex);
	return count;
}

static inline void
server_wait_ended(test_server *s, int count)
{
	pthread_mutex_lock(&s->mutex);
	while (s->ended < count)
		pthread_cond_wait(&s->ended_changed, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
}

/* Closes all connections. */
static inline void
server_stop(test_server *s)
{
	if (s->stopping)
		return;
	pthread_mutex_lock(&s->mutex);
	s->stopping = true;
	for (int i = 0; i < s->connection_count; i++)
		shutdown(s->connections[i]->fd, SHUT_RDWR);
	pthread_mutex_unlock(&s->mutex);
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	for (int i = 0; i < s->connection_count; i++)
	{
		test_connection *c = s->connections[i];

		pthread_join(c->thread, NULL);
		SSL_free(c->ssl);
		close(c->fd);
		free(c->request);
		free(c);
	}
	close(s->listener);
}

/* Its counters are final when it has stopped. */
static inline void
server_free(test_server *s)
{
	server_stop(s);
	if (s->expected_requests >= 0)
		assert_int_equal(server_requests(s), s->expected_requests);
	SSL_CTX_free(s->tls);
	pthread_mutex_destroy(&s->mutex);
	pthread_cond_destroy(&s->ended_changed);
	free(s);
}

/* ---- scripts ---- */

static inline void
serve_echo(test_connection *c)
{
	while (connection_read_request(c))
		connection_reply(c, 200, "", c->request + c->body_at);
}

static inline void
serve_nothing(test_connection *c)
{
	connection_read_request(c);
	connection_outwait(c);
}

static inline void
serve_one_and_close(test_connection *c)
{
	connection_read_request(c);
	connection_reply(c, 200, "", c->request + c->body_at);
}

static inline void
serve_one_then_close_on_the_second(test_connection *c)
{
	connection_read_request(c);
	if (c->number > 1)
		return;
	connection_reply(c, 200, "", "ok");
	connection_read_request(c);
}

/* ---- client ---- */

typedef struct test_client
{
	reactor    *reactor;
	http_pool  *pool;
	http_pool_config config;
	char		url[64];
	bool		in_post;
	int			answers;
	http_reply	reply;			/* the last one */
	char		body[65536];	/* and its body */
} test_client;

static inline void
client_done(void *arg, const http_reply *reply)
{
	test_client *c = arg;

	assert_false(c->in_post);
	c->answers++;
	c->reply = *reply;
	assert_true(reply->len < sizeof(c->body));
	assert_int_equal(reply->body[reply->len], '\0');
	memcpy(c->body, reply->body, reply->len + 1);
	c->reply.body = c->body;
	if (reply->outcome == HTTP_REPLIED)
		assert_string_equal(reply->error, "");
	else
	{
		assert_string_not_equal(reply->error, "");
		assert_null(strchr(reply->error, '\n'));
		assert_non_null(reply->phase);
	}
}

/* Opens its pool, or does so again with a changed configuration. */
static inline void
client_open(test_client *c)
{
	char		error[256];

	http_pool_free(c->pool);
	c->pool = http_pool_new(c->reactor, &c->config, error, sizeof(error));
	assert_non_null(c->pool);
}

static inline test_client *
client_start(const char *scheme, const char *host, int port)
{
	test_client *c = calloc(1, sizeof(*c));

	signal(SIGPIPE, SIG_IGN);
	snprintf(c->url, sizeof(c->url), "%s://%s:%d", scheme, host, port);
	c->config.url = c->url;
	c->config.max_connections = 4;
	c->config.connect_timeout_ms = PATIENCE_MS;
	c->config.idle_close_s = 60;
	c->config.reply_max = 10000;
	c->reactor = reactor_new();
	assert_non_null(c->reactor);
	client_open(c);
	return c;
}

static inline void
client_free(test_client *c)
{
	http_pool_free(c->pool);
	reactor_free(c->reactor);
	free(c);
}

static inline void
client_post_for(test_client *c, const char *body, size_t len, int timeout_ms)
{
	static const char *const headers[] = {"Content-Type: text/plain"};

	c->in_post = true;
	assert_true(http_pool_post(c->pool, headers, 1, body, len, timeout_ms,
							   client_done, c));
	c->in_post = false;
}

static inline void
client_post(test_client *c, const char *body)
{
	client_post_for(c, body, strlen(body), PATIENCE_MS);
}

/* Waits until the reactor has something to do. */
static inline void
client_wait(test_client *c)
{
	struct pollfd p = {.fd = reactor_fd(c->reactor),.events = POLLIN};

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

/* Runs as long as there is anything to do. */
static inline void
client_settle(test_client *c)
{
	struct pollfd p = {.fd = reactor_fd(c->reactor),.events = POLLIN};

	while (poll(&p, 1, 0) == 1)
		reactor_run(c->reactor);
}

static inline void
client_run_until(test_client *c, int answers)
{
	while (c->answers < answers)
	{
		client_wait(c);
		reactor_run(c->reactor);
	}
	assert_int_equal(c->answers, answers);
}

/* Lets the requests proceed as far as they can before time passes. */
static inline void
client_time_out(test_client *c)
{
	client_settle(c);
	http_pool_hurry(c->pool, 50);
	client_run_until(c, c->answers + 1);
}

/* Posts, and waits for the done function. */
static inline void
client_ask(test_client *c, const char *body)
{
	client_post(c, body);
	client_run_until(c, c->answers + 1);
}

static inline void
assert_replied(const test_client *c, int status, const char *body)
{
	assert_string_equal(c->reply.error, "");
	assert_int_equal(c->reply.outcome, HTTP_REPLIED);
	assert_int_equal(c->reply.status, status);
	assert_string_equal(c->body, body);
}

static inline void
assert_failed(const test_client *c, http_outcome outcome, const char *phase,
			  const char *words)
{
	assert_int_equal(c->reply.outcome, outcome);
	assert_string_equal(c->reply.phase, phase);
	if (strstr(c->reply.error, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", c->reply.error, words);
}

#define SERVER_TEST(name, server, client) \
	static void run_##name(test_server *s, test_client *c); \
	TEST(name) \
	{ \
		test_server *s = (server); \
		test_client *c = (client); \
\
		run_##name(s, c); \
		client_free(c); \
		server_free(s); \
	} \
	static void run_##name(test_server *s __attribute__((unused)), test_client *c)

#define HTTP_TEST(name, script) \
	SERVER_TEST(name, server_start(script, NULL), client_start("http", "127.0.0.1", s->port))

#endif							/* HTTP_FIXTURE_H */
