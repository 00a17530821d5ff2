/*-------------------------------------------------------------------------
 *
 * client.c
 *	  What ddblock is measured against: bare sockets with prepared requests.
 *
 *	client calls PORT NAME WARM PAIRS				one socket, blocking
 *	client rate PORT NAME WARM PAIRS SOCKETS		many at once
 *	client first PORT NAME CA_FILE					over TLS, connecting first
 *	client hum PORT NAME MICROSECONDS				a pair every so often, until killed
 *
 * It sends acquires and releases just as ddblock would, byte for byte the same
 * but for names, numbers and signatures, and conditional on each other in the
 * same way, so the server has the same work.  All are built and signed before
 * the clock starts, and a reply is only looked at for its end and a 200: there
 * is no cheaper way to get such a pair done.  "calls" prints microseconds for
 * the acquire and the release of each of PAIRS pairs; "rate" the seconds that
 * PAIRS pairs on each socket took together; "first" the microseconds from
 * before connect() to the end of an acquire's reply.  WARM pairs on each
 * socket go before that.  "hum" measures nothing: it keeps a server from
 * falling asleep, from which Java takes milliseconds to wake up.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE			/* strcasestr() */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "aws/aws.h"
#include "dynamo/dynamo.h"
#include "base/uuid.h"

#define TYPE "application/x-amz-json-1.0"
#define LEASE_MS 20000
#define REPLY_SIZE (64 * 1024)

typedef struct message
{
	char	   *bytes;
	size_t		len;
} message;

/* Acquires at the even places, the release of each behind it. */
typedef struct connection
{
	int			fd;
	message    *messages;
	int			count;
	int			sent;
	size_t		got;			/* bytes of the reply */
	char		reply[REPLY_SIZE];
} connection;

static const char *port;
static char host[64];			/* as in the Host header */
static char owner[UUID_SIZE + 8];
static int64_t last_token;
static sigv4_key signing_key;

static void
fail(const char *what)
{
	fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void
refuse(const char *what, const char *detail)
{
	fprintf(stderr, "client: %s: %s\n", what, detail);
	exit(1);
}

static int64_t
clock_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static double
exact_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

/* ----------------------------------------------------------------
 * Preparing
 * ----------------------------------------------------------------
 */

static void
make_uuid(char out[UUID_SIZE])
{
	uint8_t		random[16];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		fail("getrandom");
	uuid_v4(random, out);
}

/* In the order in which ddblock's worker has libcurl send it. */
static message
sign(char *body, const char *target)
{
	char		date[SIGV4_DATE_SIZE];
	char		authorization[1024];
	sigv4_header headers[] = {
		{"content-type", TYPE},
		{"host", host},
		{"x-amz-date", date},
		{"x-amz-target", target},
	};
	sigv4_request request = {
		.method = "POST",
		.path = "/",
		.query = "",
		.headers = headers,
		.header_count = 4,
		.body = body,
		.body_len = strlen(body),
		.region = "us-east-1",
		.service = "dynamodb",
		.access_key_id = "test",
		.secret_access_key = "test",
		.amz_date = date,
	};
	size_t		size = strlen(body) + 2048;
	message		m = {malloc(size), 0};

	sigv4_amz_date(clock_us(CLOCK_REALTIME) / 1000000, date);
	if (m.bytes == NULL ||
		!sigv4_sign(&request, &signing_key, authorization, sizeof(authorization)))
		refuse("cannot sign", "no memory");
	m.len = (size_t) snprintf(m.bytes, size,
							  "POST / HTTP/1.1\r\nHost: %s\r\nAccept: */*\r\n"
							  "content-type: " TYPE "\r\nx-amz-date: %s\r\n"
							  "x-amz-target: %s\r\nAuthorization: %s\r\n"
							  "User-Agent: ddblock/1.0.0\r\n"
							  "Content-Length: %zu\r\n\r\n%s",
							  host, date, target, authorization, strlen(body), body);
	free(body);
	return m;
}

/* An acquire and its release. */
static void
prepare_pair(const char *name, message pair[2])
{
	dynamo_table table = {.name = "lockTable",.partition_key = "key"};
	dynamo_holder holder = {.database = "postgres",.user = "postgres",
	.application = "psql",.pid = getpid()};
	char		acquired[UUID_SIZE];
	char		released[UUID_SIZE];
	dynamo_write write = {.op = DYNAMO_ACQUIRE,.name = name,
		.name_len = strlen(name),.owner = owner,.version = acquired,.expected = "",
		.lease_ms = LEASE_MS,.holder = &holder,
	};

	write.first_token = write.last_token = ++last_token;
	gethostname(holder.host, sizeof(holder.host) - 1);
	holder.since_ms = last_token / 1000;
	make_uuid(acquired);
	make_uuid(released);
	pair[0] = sign(dynamo_build(&table, &write), dynamo_target(DYNAMO_ACQUIRE));

	write.op = DYNAMO_RELEASE;
	write.version = released;
	write.expected = acquired;
	write.now_s = last_token / 1000000;
	pair[1] = sign(dynamo_build(&table, &write), dynamo_target(DYNAMO_RELEASE));
}

static void
prepare(connection *c, const char *name, int pairs)
{
	c->count = 2 * pairs;
	c->messages = calloc((size_t) c->count, sizeof(message));
	if (c->messages == NULL)
		fail("calloc");
	for (int i = 0; i < pairs; i++)
		prepare_pair(name, &c->messages[2 * i]);
}

/* ----------------------------------------------------------------
 * Talking
 * ----------------------------------------------------------------
 */

static int
open_socket(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	int			one = 1;
	int			fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons((uint16_t) atoi(port));
	if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof(address)) != 0)
		fail("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Has the whole reply come?  Ends the program if it is not a success. */
static bool
complete(connection *c)
{
	const char *end;
	const char *length;

	c->reply[c->got] = '\0';
	end = strstr(c->reply, "\r\n\r\n");
	if (end == NULL)
		return false;
	length = strcasestr(c->reply, "\r\nContent-Length:");
	if (strncmp(c->reply, "HTTP/1.1 200 ", 13) != 0 || length == NULL || length > end)
		refuse("unexpected reply", c->reply);
	return (size_t) (end + 4 - c->reply) + strtoul(length + 17, NULL, 10) <= c->got;
}

static void
send_next(connection *c)
{
	const message *m = &c->messages[c->sent++];

	c->got = 0;
	if (send(c->fd, m->bytes, m->len, MSG_NOSIGNAL) != (ssize_t) m->len)
		fail("send");
}

/* Takes what has come, or waits for something; true once the reply is whole. */
static bool
receive(connection *c)
{
	ssize_t		len = recv(c->fd, c->reply + c->got, REPLY_SIZE - 1 - c->got, 0);

	if (len == 0)
		refuse("connection closed", port);
	if (len < 0)
		fail("recv");
	c->got += (size_t) len;
	return complete(c);
}

static double
call(connection *c)
{
	double		start = exact_us();

	send_next(c);
	while (!receive(c))
		;
	return exact_us() - start;
}

/* ----------------------------------------------------------------
 * Measuring
 * ----------------------------------------------------------------
 */

static void
measure_calls(const char *name, int warm, int pairs)
{
	connection *c = calloc(1, sizeof(*c));

	if (c == NULL)
		fail("calloc");
	prepare(c, name, warm + pairs);
	c->fd = open_socket();
	for (int i = 0; i < warm + pairs; i++)
	{
		double		acquire = call(c);
		double		release = call(c);

		if (i >= warm)
			printf("%.1f %.1f\n", acquire, release);
	}
}

/* Until each socket has done with its first "until" messages. */
static void
run_all(int epoll_fd, connection *connections, int sockets, int until)
{
	struct epoll_event events[64];
	int			busy = sockets;

	for (int i = 0; i < sockets; i++)
		send_next(&connections[i]);
	while (busy > 0)
	{
		int			count = epoll_wait(epoll_fd, events, 64, -1);

		for (int i = 0; i < count; i++)
		{
			connection *c = events[i].data.ptr;

			if (!receive(c))
				continue;
			if (c->sent < until)
				send_next(c);
			else
				busy--;
		}
	}
}

/*
 * One thread for all sockets takes less of the machine from the server than a
 * process for each would: with two processors that is the harder rival.
 */
static void
measure_rate(const char *name, int warm, int pairs, int sockets)
{
	connection *connections = calloc((size_t) sockets, sizeof(*connections));
	int			epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	double		start;

	if (connections == NULL || epoll_fd < 0)
		fail("epoll");
	for (int i = 0; i < sockets; i++)
	{
		connection *c = &connections[i];
		struct epoll_event event = {.events = EPOLLIN,.data.ptr = c};
		char		own_name[256];

		snprintf(own_name, sizeof(own_name), "%s/%d", name, i + 1);
		prepare(c, own_name, warm + pairs);
		c->fd = open_socket();
		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &event) != 0)
			fail("epoll_ctl");
	}
	if (warm > 0)
		run_all(epoll_fd, connections, sockets, 2 * warm);
	start = exact_us();
	run_all(epoll_fd, connections, sockets, 2 * (warm + pairs));
	printf("%.6f\n", (exact_us() - start) / 1e6);
}

static void
exchange_over_tls(SSL *ssl, connection *c, const message *m)
{
	c->got = 0;
	if (SSL_write(ssl, m->bytes, (int) m->len) != (int) m->len)
		refuse("SSL_write", ERR_error_string(ERR_get_error(), NULL));
	do
	{
		int			len = SSL_read(ssl, c->reply + c->got, (int) (REPLY_SIZE - 1 - c->got));

		if (len <= 0)
			refuse("SSL_read", ERR_error_string(ERR_get_error(), NULL));
		c->got += (size_t) len;
	} while (!complete(c));
}

/* The context is ready, its certificates read, before the clock starts. */
static double
first_call(SSL_CTX *context, connection *c)
{
	double		start = exact_us();
	double		elapsed;
	SSL		   *ssl = SSL_new(context);

	c->fd = open_socket();
	if (ssl == NULL || SSL_set_fd(ssl, c->fd) != 1 ||
		SSL_set1_host(ssl, "localhost") != 1 ||
		SSL_set_tlsext_host_name(ssl, "localhost") != 1 || SSL_connect(ssl) != 1)
		refuse("TLS", ERR_error_string(ERR_get_error(), NULL));
	exchange_over_tls(ssl, c, &c->messages[0]);
	elapsed = exact_us() - start;

	exchange_over_tls(ssl, c, &c->messages[1]);
	SSL_shutdown(ssl);
	SSL_free(ssl);
	close(c->fd);
	return elapsed;
}

static void
measure_first(const char *name, const char *ca_file)
{
	SSL_CTX    *context = SSL_CTX_new(TLS_client_method());
	connection *c = calloc(1, sizeof(*c));

	if (context == NULL || c == NULL ||
		SSL_CTX_load_verify_locations(context, ca_file, NULL) != 1)
		refuse(ca_file, ERR_error_string(ERR_get_error(), NULL));
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	prepare(c, name, 1);
	printf("%.1f\n", first_call(context, c));
}

static void
hum(const char *name, long interval_us)
{
	struct timespec interval = {interval_us / 1000000, interval_us % 1000000 * 1000};
	connection *c = calloc(1, sizeof(*c));
	message		pair[2];

	if (c == NULL)
		fail("calloc");
	c->fd = open_socket();
	c->messages = pair;
	for (;;)
	{
		prepare_pair(name, pair);
		c->sent = 0;
		call(c);
		call(c);
		free(pair[0].bytes);
		free(pair[1].bytes);
		nanosleep(&interval, NULL);
	}
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	bool		tls = strcmp(what, "first") == 0;

	if (argc > 2)
	{
		port = argv[2];
		snprintf(host, sizeof(host), "%s:%s", tls ? "localhost" : "127.0.0.1", port);
		strcpy(owner, "bench/");
		make_uuid(owner + strlen(owner));
		last_token = clock_us(CLOCK_REALTIME);
	}
	if (argc == 6 && strcmp(what, "calls") == 0)
		measure_calls(argv[3], atoi(argv[4]), atoi(argv[5]));
	else if (argc == 7 && strcmp(what, "rate") == 0)
		measure_rate(argv[3], atoi(argv[4]), atoi(argv[5]), atoi(argv[6]));
	else if (argc == 5 && tls)
		measure_first(argv[3], argv[4]);
	else if (argc == 5 && strcmp(what, "hum") == 0)
		hum(argv[3], atol(argv[4]));
	else
		refuse("wrong arguments", what);
	return 0;
}
