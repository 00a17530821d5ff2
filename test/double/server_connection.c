/*-------------------------------------------------------------------------
 *
 * server_connection.c
 *	  Connections: accepting, TLS, reading and writing.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE				/* accept4() */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"

#define CHUNK 65536
#define TLS_HANDSHAKE 22			/* the first byte of a client that speaks TLS */
#define REQUEST_MAX (17 * 1024 * 1024)	/* DynamoDB takes 16 MB */

static void
watch(server *s, connection *c, uint32_t events)
{
	struct epoll_event event = {.events = events,.data.ptr = c};

	if (events == c->watched)
		return;
	epoll_ctl(s->epoll, c->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, c->fd, &event);
	c->watched = events;
}

static void
forget_in_events(server *s, const connection *c)
{
	for (server_event *event = s->events; event != NULL; event = event->next)
	{
		if (event->c == c)
			event->c = NULL;
	}
}

/*
 * With reset, the client sees ECONNRESET instead of an end.  The connection is
 * freed when nobody on the stack can have it any more.
 */
void
server_close(server *s, connection *c, bool reset)
{
	struct linger linger = {.l_onoff = 1,.l_linger = 0};

	if (c->fd < 0)
		return;
	if (reset)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	forget_in_events(s, c);
	close(c->fd);
	c->fd = -1;
	if (c->previous != NULL)
		c->previous->next = c->next;
	else
		s->connections = c->next;
	if (c->next != NULL)
		c->next->previous = c->previous;
	c->next = s->closed;
	s->closed = c;
}

void
server_free_closed(server *s)
{
	while (s->closed != NULL)
	{
		connection *c = s->closed;

		s->closed = c->next;
		SSL_free(c->ssl);
		free(c->in.data);
		free(c->out.data);
		free(c);
	}
}

/* Reads with read(2)'s result: 0 at the end, -1 and errno. */
static ssize_t
read_some(connection *c, char *to, size_t size)
{
	int			got;

	if (c->ssl == NULL)
		return read(c->fd, to, size);
	ERR_clear_error();
	got = SSL_read(c->ssl, to, (int) size);
	if (got > 0)
		return got;
	switch (SSL_get_error(c->ssl, got))
	{
		case SSL_ERROR_WANT_READ:
		case SSL_ERROR_WANT_WRITE:
			errno = EAGAIN;
			return -1;
		default:
			return 0;
	}
}

static ssize_t
write_some(connection *c, const char *from, size_t len)
{
	int			done;

	if (c->ssl == NULL)
		return write(c->fd, from, len);
	ERR_clear_error();
	done = SSL_write(c->ssl, from, (int) len);
	if (done > 0)
		return done;
	errno = SSL_get_error(c->ssl, done) == SSL_ERROR_WANT_WRITE ||
		SSL_get_error(c->ssl, done) == SSL_ERROR_WANT_READ ? EAGAIN : EPIPE;
	return -1;
}

/* False: the connection has gone. */
static bool
flush(server *s, connection *c)
{
	while (c->written < c->out.len)
	{
		ssize_t		done = write_some(c, c->out.data + c->written,
									  c->out.len - c->written);

		if (done < 0 && errno == EAGAIN)
		{
			watch(s, c, EPOLLIN | EPOLLOUT);
			return true;
		}
		if (done < 0)
		{
			server_close(s, c, false);
			return false;
		}
		c->written += (size_t) done;
	}
	c->out.len = 0;
	c->written = 0;
	watch(s, c, EPOLLIN);
	if (!c->close_after)
		return true;
	server_close(s, c, false);
	return false;
}

/* Serves what has come, until a request has to wait. */
static void
serve(server *s, connection *c)
{
	while (!c->busy && !c->close_after)
	{
		server_http http;
		int			found = server_http_parse(&c->in, &http);

		if (found == 0)
			return;
		if (found < 0)
		{
			server_close(s, c, false);
			return;
		}
		c->busy = true;
		c->serving = true;
		server_request(s, c, &http);
		c->serving = false;
		if (c->fd < 0)
			return;
		memmove(c->in.data, c->in.data + http.total, c->in.len - http.total);
		c->in.len -= http.total;
		if (!c->busy)
			c->served++;
		if (c->out.len > 0 && !flush(s, c))
			return;
	}
}

void
server_send(server *s, connection *c, const char *data, size_t len)
{
	server_append(&c->out, data, len);
	c->busy = false;
	if (c->serving)
		return;
	c->served++;
	if (flush(s, c))
		serve(s, c);
}

void
server_park(connection *c)
{
	c->parked = true;
}

/* Goes on with the handshake; false: not done yet, or the connection has gone. */
static bool
handshake(server *s, connection *c)
{
	int			done;

	if (c->handshaken)
		return true;
	ERR_clear_error();
	done = SSL_accept(c->ssl);
	if (done == 1)
	{
		c->handshaken = true;
		watch(s, c, EPOLLIN);
		return true;
	}
	switch (SSL_get_error(c->ssl, done))
	{
		case SSL_ERROR_WANT_READ:
			watch(s, c, EPOLLIN);
			break;
		case SSL_ERROR_WANT_WRITE:
			watch(s, c, EPOLLIN | EPOLLOUT);
			break;
		default:
			server_close(s, c, false);
	}
	return false;
}

void
server_begin_handshake(server *s, connection *c)
{
	c->handshake_held = false;
	watch(s, c, EPOLLIN);
	if (handshake(s, c))
		server_ready(s, c, EPOLLIN);
}

static bool
read_all(server *s, connection *c)
{
	char		chunk[CHUNK];
	ssize_t		got;

	while ((got = read_some(c, chunk, sizeof(chunk))) > 0 && c->in.len < REQUEST_MAX)
	{
		server_append(&c->in, chunk, (size_t) got);
		if (c->ssl == NULL && got < (ssize_t) sizeof(chunk))
			return true;
	}
	if (got < 0 && errno == EAGAIN)
		return true;
	server_close(s, c, false);
	return false;
}

/*
 * The first byte tells: with TLS, commands may come in plain all the same, so
 * that whoever sends them needs no TLS.
 */
static void
decide(server *s, connection *c)
{
	const server_fault *slow;
	unsigned char first;

	if (recv(c->fd, &first, 1, MSG_PEEK) != 1)
		return;
	c->undecided = false;
	if (first != TLS_HANDSHAKE)
		return;
	slow = server_fault_at_handshake(s);
	c->ssl = SSL_new(s->tls);
	SSL_set_fd(c->ssl, c->fd);
	SSL_set_mode(c->ssl, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				 SSL_MODE_ENABLE_PARTIAL_WRITE);
	c->handshake_held = slow != NULL;
	if (slow == NULL)
		return;
	server_event_new(s, SERVER_HANDSHAKE, slow->delay_us, c);
	watch(s, c, EPOLLRDHUP);
}

void
server_ready(server *s, connection *c, uint32_t events)
{
	if (c->fd < 0)
		return;
	if (c->undecided)
		decide(s, c);
	if (c->handshake_held)
	{
		if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
			server_close(s, c, false);
		return;
	}
	if (c->ssl != NULL && !handshake(s, c))
		return;
	if ((events & EPOLLOUT) != 0 && c->out.len > 0 && !flush(s, c))
		return;
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !read_all(s, c))
		return;
	serve(s, c);
}

void
server_accept(server *s)
{
	int			fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int			on = 1;
	connection *c;

	if (fd < 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c = calloc(1, sizeof(connection));
	c->fd = fd;
	c->next = s->connections;
	if (c->next != NULL)
		c->next->previous = c;
	s->connections = c;
	s->accepted++;
	c->undecided = s->tls != NULL;
	watch(s, c, EPOLLIN);
}
