/*-------------------------------------------------------------------------
 *
 * stub.c
 *	  A server that tells every DynamoDB request "done", after a fixed time.
 *
 *	stub DELAY_US PORT_FILE
 *
 * For test/bench: a server whose own work is next to nothing and always the
 * same.  Listens on 127.0.0.1 and writes its port into PORT_FILE; connections
 * are kept alive.  It knows UpdateItem, GetItem (of an item that is not there)
 * and BatchExecuteStatement; nothing is stored.  Ends on SIGTERM.
 *
 * One thread.  All requests wait equally long, so those that wait form a queue
 * in order of their time, and one timer serves them all.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE			/* strcasestr() */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "dynamo/dynamo.h"

#define REQUEST_MAX (256 * 1024)
#define REPLY_MAX (64 * 1024)
#define CONSUMED "{\"TableName\":\"lockTable\",\"CapacityUnits\":1.0}"

typedef struct connection
{
	int			fd;
	bool		gone;			/* the client left while its reply was waiting */
	size_t		len;			/* bytes of the request that have come */
	int64_t		due;			/* when the reply is to leave */
	struct connection *next;	/* in the queue of those that wait */
	char		request[REQUEST_MAX];
} connection;

static int	epoll_fd;
static int	timer_fd;
static int64_t delay_us;
static connection *waiting;
static connection **waiting_end = &waiting;

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

static int64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void
watch(int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN,.data.ptr = what};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
		fail("epoll_ctl");
}

static void
set_timer(void)
{
	struct itimerspec when = {{0, 0}, {0, 0}};

	if (waiting == NULL)
		return;
	when.it_value.tv_sec = waiting->due / 1000000;
	when.it_value.tv_nsec = waiting->due % 1000000 * 1000;
	if (timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL) != 0)
		fail("timerfd_settime");
}

/* The body of the answer: as many results as there are statements. */
static size_t
write_body(const char *request, char *body, size_t size)
{
	size_t		len;
	const char *statement;

	if (strstr(request, ".BatchExecuteStatement\r\n") == NULL)
		return (size_t) snprintf(body, size, "{\"ConsumedCapacity\":" CONSUMED "}");
	len = (size_t) snprintf(body, size, "{\"Responses\":[");
	statement = strstr(request, "\"Statement\":");
	/* The check of batches. */
	if (statement != NULL && strstr(statement + 1, "\"Statement\":") == NULL)
		return len + (size_t) snprintf(body + len, size - len,
									   "{\"Error\":{\"Code\":\"ConditionalCheckFailed\"}}],"
									   "\"ConsumedCapacity\":[" CONSUMED "]}");
	while (statement != NULL)
	{
		statement = strstr(statement + 1, "\"Statement\":");
		len += (size_t) snprintf(body + len, size - len, "{\"TableName\":\"lockTable\"}%s",
								 statement != NULL ? "," : "");
	}
	len += (size_t) snprintf(body + len, size - len, "],\"ConsumedCapacity\":[" CONSUMED "]}");
	return len;
}

static void
reply(connection *c)
{
	static char body[REPLY_MAX];
	static char all[REPLY_MAX + 512];
	char		date[64];
	time_t		now = time(NULL);
	size_t		body_len = write_body(c->request, body, sizeof(body));
	int			len;

	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime(&now));
	len = snprintf(all, sizeof(all),
				   "HTTP/1.1 200 OK\r\nDate: %s\r\n"
				   "Content-Type: application/x-amz-json-1.0\r\n"
				   "x-amz-crc32: %lu\r\nContent-Length: %zu\r\n\r\n%s",
				   date, (unsigned long) crc32_of(body, body_len), body_len, body);
	c->len = 0;
	/* If the client has gone, the next read tells. */
	if (send(c->fd, all, (size_t) len, MSG_NOSIGNAL) != len && errno != EPIPE &&
		errno != ECONNRESET)
		fail("send");
}

/* Is the whole request there?  The connection's buffer ends with a NUL. */
static bool
complete(const connection *c)
{
	const char *end = strstr(c->request, "\r\n\r\n");
	const char *length = strcasestr(c->request, "\r\nContent-Length:");

	return end != NULL && length != NULL && length < end &&
		(size_t) (end + 4 - c->request) + strtoul(length + 17, NULL, 10) <= c->len;
}

static void
drop(connection *c)
{
	close(c->fd);
	free(c);
}

/* One that is in the queue is dropped when its turn comes. */
static void
lose(connection *c)
{
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
	c->gone = true;
	if (c->due == 0)
		drop(c);
}

static void
answer_later(connection *c)
{
	c->due = now_us() + delay_us;
	c->next = NULL;
	*waiting_end = c;
	waiting_end = &c->next;
	if (waiting == c)
		set_timer();
}

static void
receive(connection *c)
{
	ssize_t		count = recv(c->fd, c->request + c->len, REQUEST_MAX - 1 - c->len, 0);

	if (count <= 0)
	{
		lose(c);
		return;
	}
	c->len += (size_t) count;
	c->request[c->len] = '\0';
	if (!complete(c))
		return;
	if (delay_us == 0)
		reply(c);
	else
		answer_later(c);
}

static void
serve_waiting(void)
{
	uint64_t	expirations;

	if (read(timer_fd, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
		fail("timerfd");
	while (waiting != NULL && waiting->due <= now_us())
	{
		connection *c = waiting;

		waiting = c->next;
		if (waiting == NULL)
			waiting_end = &waiting;
		c->due = 0;
		if (c->gone)
			drop(c);
		else
			reply(c);
	}
	set_timer();
}

static void
take_connection(int listener)
{
	int			one = 1;
	connection *c = calloc(1, sizeof(*c));

	if (c == NULL)
		fail("calloc");
	c->fd = accept(listener, NULL, NULL);
	if (c->fd < 0)
		fail("accept");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	watch(c->fd, c);
}

static int
listen_anywhere(const char *port_file)
{
	int			fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t	len = sizeof(address);
	char		temporary[4096];
	FILE	   *file;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *) &address, len) != 0 ||
		listen(fd, 64) != 0 || getsockname(fd, (struct sockaddr *) &address, &len) != 0)
		fail("listen");

	/* Whoever sees the file sees all of it. */
	snprintf(temporary, sizeof(temporary), "%s.new", port_file);
	file = fopen(temporary, "w");
	if (file == NULL || fprintf(file, "%d\n", ntohs(address.sin_port)) < 0 ||
		fclose(file) != 0 || rename(temporary, port_file) != 0)
		fail(port_file);
	return fd;
}

int
main(int argc, char **argv)
{
	struct epoll_event events[64];
	int			listener;

	if (argc != 3)
	{
		fprintf(stderr, "usage: stub DELAY_US PORT_FILE\n");
		return 2;
	}
	delay_us = atoll(argv[1]);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (epoll_fd < 0 || timer_fd < 0)
		fail("epoll");
	listener = listen_anywhere(argv[2]);
	watch(listener, &listener);
	watch(timer_fd, &timer_fd);

	for (;;)
	{
		int			count = epoll_wait(epoll_fd, events, 64, -1);

		for (int i = 0; i < count; i++)
		{
			if (events[i].data.ptr == &listener)
				take_connection(listener);
			else if (events[i].data.ptr == &timer_fd)
				serve_waiting();
			else
				receive(events[i].data.ptr);
		}
	}
}
