/*
 * test_http_failures.c
 *	  Failures in the HTTP pool: is the outcome correct, and does the server
 *	  see a request at most once?
 *
 * This program has its own getaddrinfo(), which libcurl's resolver threads call:
 * no real name is ever resolved.
 */
#define BEFORE_ALL set_up
#include "http_fixture.h"

#include <curl/curl.h>
#include <errno.h>
#include <malloc.h>
#include <netdb.h>
#include <semaphore.h>
#include <sys/resource.h>

/* ---- name resolution ---- */

static sem_t resolver_started;
static sem_t resolver_may_end;
static sigset_t resolver_mask;

/* To look late.test up takes until the gate is next opened. */
static int	late_gate;
static int	late_look_ups;

/* What moving.test is now; the first one first. */
static const char *addresses[2];

static struct addrinfo *
address_info(const char *text, const char *service, struct addrinfo *next)
{
	struct addrinfo *info = calloc(1, sizeof(*info) + sizeof(struct sockaddr_in));
	struct sockaddr_in *address = (struct sockaddr_in *) (info + 1);

	address->sin_family = AF_INET;
	address->sin_port = htons(service != NULL ? atoi(service) : 0);
	assert_int_equal(inet_pton(AF_INET, text, &address->sin_addr), 1);
	info->ai_family = AF_INET;
	info->ai_socktype = SOCK_STREAM;
	info->ai_protocol = IPPROTO_TCP;
	info->ai_addr = (struct sockaddr *) address;
	info->ai_addrlen = sizeof(*address);
	info->ai_next = next;
	return info;
}

int
getaddrinfo(const char *name, const char *service,
			const struct addrinfo *hints, struct addrinfo **result)
{
	*result = NULL;
	if (strcmp(name, "late.test") == 0 && hints->ai_family != AF_INET6)
	{
		int			gate = __atomic_load_n(&late_gate, __ATOMIC_SEQ_CST);

		__atomic_add_fetch(&late_look_ups, 1, __ATOMIC_SEQ_CST);
		while (gate >= __atomic_load_n(&late_gate, __ATOMIC_SEQ_CST))
			usleep(1000);
		*result = address_info("127.0.0.1", service, NULL);
		return 0;
	}
	if (strcmp(name, "moving.test") == 0 && hints->ai_family != AF_INET6 && addresses[0] != NULL)
	{
		for (int i = COUNT_OF(addresses); i-- > 0;)
			if (addresses[i] != NULL)
				*result = address_info(addresses[i], service, *result);
		return 0;
	}
	if (strcmp(name, "slow.test") == 0)
	{
		pthread_sigmask(SIG_BLOCK, NULL, &resolver_mask);
		sem_post(&resolver_started);
		sem_wait(&resolver_may_end);
		sem_post(&resolver_may_end);
	}
	return EAI_NONAME;
}

TEST(unknown_name)
{
	test_client *c = client_start("http", "nowhere.test", 80);

	client_ask(c, "one");
	assert_failed(c, HTTP_NOT_SENT, "name resolution", "nowhere.test");
	client_free(c);
}

/*
 * The request ends while its resolver still hangs.  The resolver's thread has all
 * signals blocked; ours has not.
 */
TEST(name_resolution_that_hangs)
{
	test_client *c = client_start("http", "slow.test", 80);
	sigset_t	mask;

	client_post_for(c, "one", 3, 50);
	sem_wait(&resolver_started);
	assert_int_equal(sigismember(&resolver_mask, SIGTERM), 1);
	assert_int_equal(sigismember(&resolver_mask, SIGUSR1), 1);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	assert_int_equal(sigismember(&mask, SIGTERM), 0);
	assert_int_equal(sigismember(&mask, SIGUSR1), 0);

	client_run_until(c, 1);
	assert_failed(c, HTTP_NOT_SENT, "name resolution", "Timed out after");
	client_post_for(c, "two", 3, 50);

	/*
	 * All look-ups; newer versions of curl look up either family of addresses apart, and
	 * wait for that when they are closed.
	 */
	sem_post(&resolver_may_end);
	client_free(c);
}

/* ---- connecting ---- */

TEST(connection_refused)
{
	int			port;
	int			fd = bind_loopback(&port);
	test_client *c = client_start("http", "127.0.0.1", port);

	client_ask(c, "one");
	assert_failed(c, HTTP_NOT_SENT, "connect", "Connection refused");
	client_free(c);
	close(fd);
}

static void
post_again_done(void *arg, const http_reply *reply)
{
	test_client *c = arg;

	client_done(c, reply);
	if (c->answers < 50)
		assert_true(http_pool_post(c->pool, NULL, 0, "x", 1, PATIENCE_MS,
								   post_again_done, c));
}

/*
 * The kernel refuses a broadcast address at once, so the request has failed
 * before http_pool_post() returns.  Even so its done function is called later
 * (client_done checks that), and a done function that always posts again does not
 * keep reactor_run() from returning.
 */
TEST(failing_at_once)
{
	test_client *c = client_start("http", "255.255.255.255", 80);

	client_ask(c, "one");
	assert_failed(c, HTTP_NOT_SENT, "connect", "Network is unreachable");
	assert_true(http_pool_post(c->pool, NULL, 0, "x", 1, PATIENCE_MS,
							   post_again_done, c));
	while (c->answers < 50)
	{
		int			before = c->answers;

		client_wait(c);
		reactor_run(c->reactor);
		assert_true(c->answers - before <= 4);
	}
	assert_int_equal(http_pool_pending(c->pool), 0);
	client_settle(c);
	client_free(c);
}

TEST(no_descriptor_left)
{
	test_client *c = client_start("http", "127.0.0.1", 80);
	int			free_fd = dup(0);
	struct rlimit before;

	close(free_fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit) {free_fd, before.rlim_max}), 0);
	client_ask(c, "one");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_failed(c, HTTP_NOT_SENT, "connect", "Too many open files");
	client_free(c);
}

/* A full listen queue: further connections get no answer. */
TEST(connect_times_out)
{
	int			port;
	int			fd = bind_loopback(&port);
	int			filler = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address = {.sin_family = AF_INET};
	test_client *c = client_start("http", "127.0.0.1", port);

	address.sin_port = htons(port);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(connect(filler, (struct sockaddr *) &address,
							 sizeof(address)), 0);
	c->config.connect_timeout_ms = 50;
	client_open(c);
	client_ask(c, "one");
	assert_failed(c, HTTP_NOT_SENT, "connect", "Timed out after");
	assert_true(c->reply.elapsed_us >= 50000);
	client_free(c);
	close(filler);
	close(fd);
}

/* ---- addresses that change or die ---- */

static test_client *
start_moving(int port, const char *first, const char *second)
{
	addresses[0] = first;
	addresses[1] = second;
	return client_start("http", "moving.test", port);
}

#define MOVING_TEST(name, first, second) \
	SERVER_TEST(name, server_start(serve_echo, NULL), start_moving(s->port, first, second))

/* curl by itself keeps the old address for a minute. */
MOVING_TEST(name_gets_another_address, "127.0.0.2", NULL)
{
	client_ask(c, "one");
	assert_failed(c, HTTP_NOT_SENT, "connect", "Connection refused");
	addresses[0] = "127.0.0.1";
	client_ask(c, "two");
	assert_replied(c, 200, "two");
}

/* Nobody answers there: its queue of connections is full. */
static void
open_dead(int sockets[2], const char *host, int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,.sin_port = htons(port)};

	inet_pton(AF_INET, host, &address.sin_addr);
	for (int i = 0; i < 2; i++)
		sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(sockets[0], (struct sockaddr *) &address, sizeof(address)), 0);
	assert_int_equal(listen(sockets[0], 0), 0);
	assert_int_equal(connect(sockets[1], (struct sockaddr *) &address, sizeof(address)), 0);
}

/* Which of the addresses comes first is left to chance: so several times. */
#define MANY_TIMES 8

/*
 * The dead address takes half of the attempt, however long connect_timeout is, and the
 * attempt reaches the living one.
 */
SERVER_TEST(dead_address_beside_a_living_one, server_start(serve_one_and_close, NULL),
			start_moving(s->port, "127.0.0.2", "127.0.0.1"))
{
	int			dead[2];

	open_dead(dead, "127.0.0.2", s->port);
	for (int i = 0; i < MANY_TIMES; i++)
	{
		client_post_for(c, "one", 3, 3000);
		client_run_until(c, i + 1);
		assert_replied(c, 200, "one");
		server_wait_ended(s, i + 1);
		client_settle(c);
	}
	close(dead[0]);
	close(dead[1]);
}

/* Without a wait for the one that refuses. */
SERVER_TEST(refusing_address_beside_a_living_one, server_start(serve_one_and_close, NULL),
			start_moving(s->port, "127.0.0.2", "127.0.0.1"))
{
	for (int i = 0; i < MANY_TIMES; i++)
	{
		client_ask(c, "one");
		assert_replied(c, 200, "one");
		server_wait_ended(s, i + 1);
		client_settle(c);
	}
}

/* One address takes connections and requests, and replies to none: chance finds the other. */
MOVING_TEST(hanging_address_beside_a_living_one, "127.0.0.2", "127.0.0.1")
{
	int			fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address = {.sin_family = AF_INET,.sin_port = htons(s->port)};

	inet_pton(AF_INET, "127.0.0.2", &address.sin_addr);
	assert_int_equal(bind(fd, (struct sockaddr *) &address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 128), 0);
	for (int i = 0; c->reply.outcome != HTTP_REPLIED || c->answers == 0; i++)
	{
		assert_true(i < 64);
		client_post_for(c, "one", 3, 300);
		client_run_until(c, i + 1);
	}
	assert_replied(c, 200, "one");
	close(fd);
}

/*
 * No packet came back for a while, from no address.  Each of them is tried again in the
 * first attempt after that.
 */
TEST(all_addresses_were_dead)
{
	int			port;
	int			fd = bind_loopback(&port);
	int			dead[2][2];
	test_client *c = start_moving(port, "127.0.0.2", "127.0.0.3");
	struct pollfd alive = {.events = POLLIN};

	close(fd);
	open_dead(dead[0], "127.0.0.2", port);
	open_dead(dead[1], "127.0.0.3", port);
	for (int i = 0; i < 3; i++)
	{
		client_post_for(c, "one", 3, 800);
		client_run_until(c, i + 1);
		assert_failed(c, HTTP_NOT_SENT, "connect", "Timed out after");
	}
	for (int i = 0; i < 2; i++)
		close(accept(dead[i][0], NULL, NULL));
	client_post(c, "two");
	do
	{
		client_wait(c);
		reactor_run(c->reactor);
		alive.fd = dead[0][0];
		if (poll(&alive, 1, 0) == 1)
			break;
		alive.fd = dead[1][0];
	} while (poll(&alive, 1, 0) == 0);
	client_time_out(c);
	assert_failed(c, HTTP_UNKNOWN, "reply", "Timed out after");
	client_free(c);
	for (int i = 0; i < 2; i++)
	{
		close(dead[i][0]);
		close(dead[i][1]);
	}
}

/* What it finds helps the attempts after the one that began it. */
SERVER_TEST(look_up_longer_than_an_attempt, server_start(serve_echo, NULL),
			client_start("http", "late.test", s->port))
{
	int			tries = 0;

	c->config.connect_timeout_ms = 50;
	client_open(c);
	client_ask(c, "one");
	assert_failed(c, HTTP_NOT_SENT, "name resolution", "Timed out after");
	for (int ms = 0; __atomic_load_n(&late_look_ups, __ATOMIC_SEQ_CST) < 2; ms++)
	{
		assert_true(ms < PATIENCE_MS);
		usleep(1000);
	}
	__atomic_add_fetch(&late_gate, 1, __ATOMIC_SEQ_CST);
	do
	{
		assert_true(++tries < 100);
		client_ask(c, "two");
	} while (c->reply.outcome != HTTP_REPLIED);
	assert_replied(c, 200, "two");
	__atomic_add_fetch(&late_gate, 1, __ATOMIC_SEQ_CST);
}

/* The last address that worked; from its failure on, the next one that is found. */
SERVER_TEST(look_ups_that_fail, server_start(serve_one_and_close, NULL),
			start_moving(s->port, "127.0.0.1", NULL))
{
	client_ask(c, "one");
	assert_replied(c, 200, "one");
	server_wait_ended(s, 1);
	client_settle(c);
	addresses[0] = NULL;
	client_ask(c, "two");
	assert_failed(c, HTTP_NOT_SENT, "name resolution", "moving.test");
	for (int i = 2; i < 4; i++)
	{
		client_ask(c, "three");
		assert_replied(c, 200, "three");
		server_wait_ended(s, i);
		client_settle(c);
	}
	server_stop(s);
	client_settle(c);
	client_ask(c, "four");
	assert_failed(c, HTTP_NOT_SENT, "connect", "Connection refused");
	client_ask(c, "five");
	assert_failed(c, HTTP_NOT_SENT, "name resolution", "moving.test");
	addresses[0] = "127.0.0.2";
	client_ask(c, "six");		/* goes to what is known */
	client_ask(c, "seven");
	assert_failed(c, HTTP_NOT_SENT, "connect", "Connection refused");
}

/* Replies to the next request of a connection that the test itself has accepted. */
static void
reply_by_hand(test_client *c, int fd)
{
	static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	struct pollfd request = {.fd = fd,.events = POLLIN};
	char		ignored[4096];

	while (poll(&request, 1, 0) == 0)
	{
		client_wait(c);
		reactor_run(c->reactor);
	}
	assert_true(recv(fd, ignored, sizeof(ignored), 0) > 0);
	assert_int_equal(send(fd, reply, sizeof(reply) - 1, 0), sizeof(reply) - 1);
	client_run_until(c, c->answers + 1);
	assert_replied(c, 200, "ok");
}

/*
 * A connection is not made in time while another one to its address has a reply.  Then its
 * number belongs to another file, which is neither counted as a connection nor shut.
 */
TEST(files_of_others_stay_open)
{
	int			port;
	int			fd = bind_loopback(&port);
	int			filler = socket(AF_INET, SOCK_STREAM, 0);
	int			accepted;
	int			pairs[16][2];
	char		byte;
	struct sockaddr_in address = {.sin_family = AF_INET,.sin_port = htons(port)};
	test_client *c = client_start("http", "127.0.0.1", port);

	inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
	assert_int_equal(listen(fd, 0), 0);
	client_post(c, "one");
	accepted = accept(fd, NULL, NULL);
	reply_by_hand(c, accepted);

	assert_int_equal(connect(filler, (struct sockaddr *) &address, sizeof(address)), 0);
	client_post(c, "two");
	client_post(c, "three");
	reply_by_hand(c, accepted);
	client_time_out(c);
	assert_failed(c, HTTP_NOT_SENT, "connect", "Timed out after");
	assert_int_equal(http_pool_connections(c->pool), 1);

	for (int i = 0; i < 16; i++)
	{
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
		for (int end = 0; end < 2; end++)
			assert_int_equal(write(pairs[i][end], "x", 1), 1);
	}
	client_post(c, "four");
	client_time_out(c);
	assert_failed(c, HTTP_UNKNOWN, "reply", "Timed out after");
	assert_true(http_pool_reconfigure(c->pool, &c->config));
	for (int i = 0; i < 16; i++)
	{
		for (int end = 0; end < 2; end++)
			assert_int_equal(recv(pairs[i][end], &byte, 1, MSG_DONTWAIT), 1);
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
	client_free(c);
	close(accepted);
	close(filler);
	close(fd);
}

/* Its socket has the number of the one that was closed, which nobody watches any more. */
TEST(connection_after_one_that_timed_out)
{
	int			port;
	int			fd = bind_loopback(&port);
	int			filler = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address = {.sin_family = AF_INET,.sin_port = htons(port)};
	struct pollfd listener = {.fd = fd,.events = POLLIN};
	test_client *c = client_start("http", "127.0.0.1", port);

	inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(connect(filler, (struct sockaddr *) &address, sizeof(address)), 0);
	client_post(c, "one");
	client_time_out(c);
	assert_failed(c, HTTP_NOT_SENT, "connect", "Timed out after");

	close(accept(fd, NULL, NULL));	/* room for the next connection */
	client_post(c, "two");
	while (poll(&listener, 1, 0) == 0)
	{
		client_wait(c);
		reactor_run(c->reactor);
	}
	client_time_out(c);
	assert_failed(c, HTTP_UNKNOWN, "reply", "Timed out after");
	client_free(c);
	close(filler);
	close(fd);
}

/* The first two connections answer one request each. */
static void
serve_one_then_hang(test_connection *c)
{
	connection_read_request(c);
	connection_reply(c, 200, "", "ok");
	if (c->number > 2)
		serve_echo(c);
	else
		serve_nothing(c);
}

/* Otherwise each idle connection to it would cost an attempt. */
HTTP_TEST(connections_to_a_dead_address_are_not_used, serve_one_then_hang)
{
	client_post(c, "one");
	client_post(c, "two");
	client_run_until(c, 2);
	client_post(c, "three");
	client_time_out(c);
	assert_failed(c, HTTP_UNKNOWN, "reply", "Timed out after");
	client_ask(c, "four");
	assert_replied(c, 200, "ok");
	assert_int_equal(server_connections(s), 3);
}

static void
serve_all_but_the_first(test_connection *c)
{
	if (c->number == 1)
		serve_nothing(c);
	else
		serve_echo(c);
}

/* One request has no reply, but another one, sent later, has. */
HTTP_TEST(connections_to_a_living_address_are_used, serve_all_but_the_first)
{
	client_post(c, "one");
	client_ask(c, "two");
	assert_replied(c, 200, "two");
	client_time_out(c);
	assert_failed(c, HTTP_UNKNOWN, "reply", "Timed out after");
	client_ask(c, "three");
	assert_replied(c, 200, "three");
	assert_int_equal(server_connections(s), 2);
}

/* ---- waiting ---- */

HTTP_TEST(no_reply_in_time, serve_nothing)
{
	client_post(c, "one");
	client_time_out(c);
	assert_failed(c, HTTP_UNKNOWN, "reply", "Timed out after");
	assert_true(c->reply.elapsed_us >= 50000);
	assert_int_equal(http_pool_pending(c->pool), 0);
}

/* It does not read: the kernel's buffers take a part of a large request. */
TEST(request_not_taken_in_time)
{
	int			port;
	int			fd = bind_loopback(&port);
	test_client *c = client_start("http", "127.0.0.1", port);
	size_t		size = 64 << 20;
	char	   *body = calloc(1, size);

	assert_int_equal(listen(fd, 1), 0);
	client_post_for(c, body, size, PATIENCE_MS);
	client_time_out(c);
	assert_failed(c, HTTP_UNKNOWN, "request", "Timed out after");
	free(body);
	client_free(c);
	close(fd);
}

HTTP_TEST(time_out_in_the_queue, serve_nothing)
{
	c->config.max_connections = 1;
	client_open(c);
	client_post(c, "one");
	client_post_for(c, "two", 3, 50);
	client_run_until(c, 1);
	assert_failed(c, HTTP_NOT_SENT, "connect", "Timed out after");
	client_post_for(c, "three", 5, 50);
	client_run_until(c, 2);
	assert_failed(c, HTTP_NOT_SENT, "connect", "Timed out after");
	http_pool_hurry(c->pool, 0);
	client_run_until(c, 3);
	assert_failed(c, HTTP_UNKNOWN, "reply", "Timed out after");
	s->expected_requests = 1;
}

/* The queue stays in order when one in its middle or at its end expires. */
static sem_t first_may_end;

static void
serve_after_the_first(test_connection *c)
{
	connection_read_request(c);
	if (c->number == 1)
	{
		sem_wait(&first_may_end);
		return;
	}
	do
	{
		connection_reply(c, 200, "", c->request + c->body_at);
	} while (connection_read_request(c));
}

HTTP_TEST(queue_goes_on_after_a_time_out, serve_after_the_first)
{
	sem_init(&first_may_end, 0, 0);
	c->config.max_connections = 1;
	client_open(c);
	client_post(c, "one");
	client_post(c, "two");
	client_post_for(c, "three", 5, 50);
	client_post(c, "four");
	client_post_for(c, "five", 4, 50);
	client_run_until(c, 2);
	assert_failed(c, HTTP_NOT_SENT, "connect", "Timed out after");
	client_post(c, "six");
	sem_post(&first_may_end);
	client_run_until(c, 3);
	assert_failed(c, HTTP_UNKNOWN, "reply", "");
	client_run_until(c, 4);
	assert_replied(c, 200, "two");
	client_run_until(c, 5);
	assert_replied(c, 200, "four");
	client_run_until(c, 6);
	assert_replied(c, 200, "six");
	sem_destroy(&first_may_end);
}

HTTP_TEST(no_time_at_all, serve_nothing)
{
	client_post_for(c, "one", 3, 0);
	client_run_until(c, 1);
	assert_failed(c, HTTP_NOT_SENT, "connect", "Timed out after");
	s->expected_requests = 0;
}

/* Requests that are queued or under way; not those posted afterwards. */
HTTP_TEST(less_time_than_first_given, serve_nothing)
{
	c->config.max_connections = 1;
	client_open(c);
	http_pool_hurry(c->pool, 0);
	client_post(c, "one");
	client_post(c, "two");
	http_pool_hurry(c->pool, 50);
	http_pool_hurry(c->pool, PATIENCE_MS);
	client_post(c, "three");
	client_run_until(c, 2);
	assert_failed(c, HTTP_UNKNOWN, "reply", "Timed out after");
	assert_true(c->reply.elapsed_us >= 50000);
	assert_int_equal(http_pool_pending(c->pool), 1);
}

/* ---- connections that die ---- */

/* libcurl by itself sends the second request again. */
static void
check_reused_connection_dies(test_server *s, test_client *c, const char *body)
{
	client_ask(c, "one");
	assert_replied(c, 200, "ok");
	client_ask(c, body);
	assert_failed(c, HTTP_UNKNOWN, "reply", "closed before a reply");
	assert_int_equal(http_pool_pending(c->pool), 0);
	s->expected_requests = 2;
}

HTTP_TEST(reused_connection_dies_unanswered, serve_one_then_close_on_the_second)
{
	check_reused_connection_dies(s, c, "two");
}

HTTP_TEST(reused_connection_dies_without_body, serve_one_then_close_on_the_second)
{
	check_reused_connection_dies(s, c, "");
}

static void
serve_one_then_reset_on_the_second(test_connection *c)
{
	struct linger reset = {.l_onoff = 1,.l_linger = 0};
	int			empty = socket(AF_INET, SOCK_STREAM, 0);

	connection_read_request(c);
	if (c->number == 1)
	{
		connection_reply(c, 200, "", "ok");
		connection_read_request(c);
	}
	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	/* Closes the connection's file, and keeps its number. */
	dup2(empty, c->fd);
	close(empty);
}

HTTP_TEST(connection_is_reset, serve_one_then_reset_on_the_second)
{
	client_ask(c, "one");
	assert_replied(c, 200, "ok");
	client_ask(c, "two");
	assert_int_equal(c->reply.outcome, HTTP_UNKNOWN);
	client_ask(c, "three");
	assert_failed(c, HTTP_UNKNOWN, "reply", "reset");
	s->expected_requests = 3;
}

static void
serve_close(test_connection *c)
{
	connection_read_request(c);
}

HTTP_TEST(fresh_connection_dies_unanswered, serve_close)
{
	client_ask(c, "one");
	assert_failed(c, HTTP_UNKNOWN, "reply", "Empty reply");
	s->expected_requests = 1;
}

/* An unsolicited reply, sent after the first one has been read. */
static sem_t first_was_read;

static void
serve_unasked_reply(test_connection *c)
{
	connection_read_request(c);
	connection_reply(c, 200, "", "ok");
	sem_wait(&first_was_read);
	connection_reply(c, 408, "", "too slow");
}

/*
 * The idle connection is not used, although there is something to read, so it is
 * certain that nothing was sent.
 */
HTTP_TEST(server_gone_while_idle, serve_unasked_reply)
{
	client_ask(c, "one");
	assert_replied(c, 200, "ok");
	client_settle(c);
	sem_post(&first_was_read);
	server_wait_ended(s, 1);
	server_stop(s);
	client_settle(c);
	client_ask(c, "two");
	assert_failed(c, HTTP_NOT_SENT, "connect", "Connection refused");
	s->expected_requests = 1;
}

/* ---- bad replies ---- */

static const char *bad_reply;

static void
serve_bad_reply(test_connection *c)
{
	connection_read_request(c);
	connection_print(c, bad_reply);
}

static void
check_bad_reply(const char *reply, http_outcome outcome, const char *words)
{
	test_server *s;
	test_client *c;

	bad_reply = reply;
	s = server_start(serve_bad_reply, NULL);
	c = client_start("http", "127.0.0.1", s->port);
	client_ask(c, "one");
	assert_failed(c, outcome, "reply", words);
	assert_int_equal(c->reply.len, 0);
	s->expected_requests = 1;
	client_free(c);
	server_free(s);
}

TEST(replies_that_are_cut_off)
{
	check_bad_reply("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", HTTP_UNKNOWN, "");
	check_bad_reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
					"3\r\nabc\r\n", HTTP_UNKNOWN, "");
}

TEST(replies_that_are_not_http)
{
	check_bad_reply("go away\r\n\r\n", HTTP_FOREIGN, "HTTP/0.9");
	check_bad_reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
					"zzz\r\n", HTTP_UNKNOWN, "");
}

static void
serve_one_then_nonsense(test_connection *c)
{
	connection_read_request(c);
	connection_reply(c, 200, "", "ok");
	connection_read_request(c);
	connection_print(c, "go away\r\n\r\n");
}

/* A server that has spoken HTTP before is an HTTP server. */
HTTP_TEST(nonsense_after_a_reply, serve_one_then_nonsense)
{
	client_ask(c, "one");
	assert_replied(c, 200, "ok");
	client_ask(c, "two");
	assert_failed(c, HTTP_UNKNOWN, "reply", "");
	s->expected_requests = 2;
}

static void
serve_large(test_connection *c)
{
	char	   *body = calloc(1, 10002);

	memset(body, 'x', 10001);
	while (connection_read_request(c))
		connection_reply(c, 200, "", body);
	free(body);
}

HTTP_TEST(reply_too_large, serve_large)
{
	client_ask(c, "one");
	assert_failed(c, HTTP_UNKNOWN, "reply", "larger than 10000 bytes");
}

/* ---- replies without an end ---- */

/* More than any test needs: a server that could send it was not stopped. */
#define ENDLESS_MAX (256 << 20)

/* curl's memory. */
static size_t allocated;
static size_t allocated_peak;

static void *
count_memory(void *p)
{
	size_t		sum = __atomic_add_fetch(&allocated, malloc_usable_size(p), __ATOMIC_SEQ_CST);

	if (sum > __atomic_load_n(&allocated_peak, __ATOMIC_SEQ_CST))
		__atomic_store_n(&allocated_peak, sum, __ATOMIC_SEQ_CST);
	return p;
}

static void
counted_free(void *p)
{
	__atomic_sub_fetch(&allocated, malloc_usable_size(p), __ATOMIC_SEQ_CST);
	free(p);
}

static void *
counted_malloc(size_t size)
{
	return count_memory(malloc(size));
}

static void *
counted_calloc(size_t count, size_t size)
{
	return count_memory(calloc(count, size));
}

static void *
counted_realloc(void *p, size_t size)
{
	__atomic_sub_fetch(&allocated, malloc_usable_size(p), __ATOMIC_SEQ_CST);
	return count_memory(realloc(p, size));
}

static char *
counted_strdup(const char *text)
{
	return count_memory(strdup(text));
}

/* What the server sends once, what it then repeats, and how much it sent. */
static const char *endless_start;
static const char *endless_rest;
static size_t endless_sent;

static void
serve_endlessly(test_connection *c)
{
	size_t		len = strlen(endless_rest);
	size_t		times = 65536 / len;
	char	   *portion = malloc(times * len);

	for (size_t i = 0; i < times; i++)
		memcpy(portion + i * len, endless_rest, len);
	endless_sent = 0;
	if (connection_read_request(c))
	{
		connection_print(c, endless_start);
		while (endless_sent < ENDLESS_MAX &&
			   send(c->fd, portion, times * len, MSG_NOSIGNAL) > 0)
			endless_sent += times * len;
	}
	free(portion);
}

/* Reports it, closes the connection, and has not kept the input. */
static void
check_endless(const char *start, const char *rest, const char *words)
{
	test_server *s;
	test_client *c;

	endless_start = start;
	endless_rest = rest;
	s = server_start(serve_endlessly, NULL);
	c = client_start("http", "127.0.0.1", s->port);
	allocated_peak = allocated;
	client_ask(c, "one");
	assert_failed(c, HTTP_UNKNOWN, "reply", words);
	server_wait_ended(s, 1);
	assert_true(endless_sent < ENDLESS_MAX);
	assert_true(allocated_peak < 1 << 20);
	client_free(c);
	server_free(s);
}

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define TOO_LARGE "headers"	/* also if curl's own limit comes first */

TEST(replies_without_an_end)
{
	check_endless(CHUNKED "2\r\n{}\r\n0\r\n", "trailer: value\r\n", TOO_LARGE);
	check_endless("HTTP/1.1 200 OK\r\n", "header: value\r\n", TOO_LARGE);
	check_endless("", "HTTP/1.1 100 Continue\r\n\r\n", TOO_LARGE);
	check_endless("", "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", TOO_LARGE);
	check_endless(CHUNKED "2;", "extension=value;", TOO_LARGE);
	check_endless(CHUNKED, "1;extension=0123456789012345678901234567890\r\nx\r\n", TOO_LARGE);
	check_endless(CHUNKED "2\r\n{}\r\n0\r\n", "x", "");
	check_endless("HTTP/1.1 200 OK\r\nheader: ", "x", TOO_LARGE);
	check_endless("HTTP/1.1 200 ", "x", TOO_LARGE);
	check_endless("HTTP/1.1 200 OK\r\n\r\n", "x", "larger than 10000 bytes");
	check_endless("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", "x",
				  "larger than 10000 bytes");
}

/* Ordinary headers, trailers and chunks are accepted. */
static void
serve_with_much_around_it(test_connection *c)
{
	while (connection_read_request(c))
	{
		for (int i = 0; i < 100; i++)
			connection_print(c, "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n");
		connection_print(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n");
		for (int i = 0; i < 100; i++)
			connection_print(c, "header: 0123456789012345678901234567890123456789\r\n");
		connection_print(c, "\r\n");
		for (int i = 0; i < 1000; i++)
			connection_print(c, "1;extension=0123456789\r\nx\r\n");
		connection_print(c, "0\r\n");
		for (int i = 0; i < 100; i++)
			connection_print(c, "trailer: 0123456789012345678901234567890123456789\r\n");
		connection_print(c, "\r\n");
	}
}

HTTP_TEST(reply_with_much_around_it, serve_with_much_around_it)
{
	/* The limit is for one reply, not for the connection. */
	for (int i = 0; i < 5; i++)
	{
		client_ask(c, "one");
		assert_int_equal(c->reply.outcome, HTTP_REPLIED);
		assert_int_equal(c->reply.len, 1000);
	}
	assert_int_equal(server_connections(s), 1);
}

static int
set_up(void **state)
{
	(void) state;
	curl_global_init_mem(CURL_GLOBAL_DEFAULT, counted_malloc, counted_free,
						 counted_realloc, counted_strdup, counted_calloc);
	sem_init(&resolver_started, 0, 0);
	sem_init(&resolver_may_end, 0, 0);
	sem_init(&first_was_read, 0, 0);
	return 0;
}
