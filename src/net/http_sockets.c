/*-------------------------------------------------------------------------
 *
 * http_sockets.c
 *	  curl's sockets in the reactor.
 *
 * After each reply curl asks us to remove the connection's socket from the epoll set, and to add it
 * again for the next request.  We leave it in the set.  This saves two system calls per request,
 * and shows us what arrives on an idle connection.  Whatever arrives is a reason not to use the
 * connection again: a 408, TLS's close_notify, the end of the connection.  curl 7.88 checks only
 * for the end, and would take other bytes for the reply to its next request.
 *
 * Newer versions of curl do not even check for the end if they did so within the last second.  With
 * these, transfers use new connections only, until that second has passed.  The first transfer that
 * may use an old connection then makes curl check, and close it.
 *
 * The list has a connection from its first reply on.  curl calls on_close() for each such
 * connection, so the list never has a descriptor that was closed, and whose number may be another
 * file's now.  If a socket never was connected, curl 7.88 closes it without calling on_close().
 *
 * curl calls on_close() and on_socket().
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* dup3() */
#endif

#include "net/net.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * The first version of curl that does not check for the end before each use, 8.15.0.  Debian's
 * 8.14.1 still does.
 */
#define LOOKS_SELDOM 0x080f00

/*
 * From this time on after a connection was condemned, curl checks for the end.  Between two whole
 * seconds that differ by 3, more than 2 s have passed: more than the second that curl waits.
 */
#define UNCHECKED_S 3

time_t
http_curl_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static http_socket *
find(http_sockets *s, int fd)
{
	for (int i = 0; i < s->count; i++)
		if (s->sockets[i].fd == fd)
			return &s->sockets[i];
	return NULL;
}

/*
 * Ends the connection, and removes it from the list.  curl still has it, but checks for its end
 * before the next use.  So the descriptor becomes that of our socket pair, from which curl reads
 * the end.  curl can also write TLS's close_notify to it, so no error message results.
 */
static void
condemn(http_sockets *s, http_socket *connection)
{
	int			fd = connection->fd;

	*connection = s->sockets[--s->count];
	s->condemned_at = http_curl_seconds();
	reactor_watch(s->reactor, fd, 0);
	if (dup3(s->ended[0], fd, O_CLOEXEC) < 0)
		shutdown(fd, SHUT_RDWR);
}

static void
set_idle(http_sockets *s, http_socket *connection)
{
	connection->idle = true;
	if (connection->retired)
		condemn(s, connection);
	else
		reactor_watch(s->reactor, connection->fd, EPOLLIN);
}

void
http_sockets_answered(http_sockets *s, CURL *easy, bool last)
{
	curl_socket_t fd = CURL_SOCKET_BAD;
	http_socket *connection;

	if (curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd == CURL_SOCKET_BAD)
		return;					/* curl has closed the connection */
	connection = find(s, fd);
	if (connection == NULL && s->count < s->size)
	{
		connection = &s->sockets[s->count++];
		*connection = (http_socket) {.fd = fd,.retired = last};
		/* If the reactor watches the socket, the next transfer uses it already. */
		if (!reactor_watches(s->reactor, fd))
			set_idle(s, connection);
	}
	if (connection != NULL)
		connection->answered_at = reactor_now_us();
}

void
http_sockets_retire(http_sockets *s, int64_t since)
{
	for (int i = s->count; i-- > 0;)
	{
		http_socket *connection = &s->sockets[i];

		connection->retired |= connection->answered_at < since;
		if (connection->retired && connection->idle)
			condemn(s, connection);
	}
}

static int
on_close(void *arg, curl_socket_t fd)
{
	http_sockets *s = arg;
	http_socket *connection = find(s, fd);

	reactor_watch(s->reactor, fd, 0);
	if (connection != NULL)
		*connection = s->sockets[--s->count];
	return close(fd);
}

/*
 * curl wants us to wait for this socket, or to cease to wait.  We do not report that
 * reactor_watch() has failed (kernel out of memory): curl would abort all transfers, but this way
 * only this transfer ends, by its time-out.
 */
static int
on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
	http_sockets *s = arg;
	http_socket *connection = find(s, fd);
	int			events = 0;

	(void) easy;
	(void) unused;
	if (connection != NULL && what == CURL_POLL_REMOVE)
	{
		set_idle(s, connection);
		return 0;
	}
	if (connection != NULL)
		connection->idle = false;
	else if (what == CURL_POLL_REMOVE)
		s->gave_up = true;
	if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
		events |= EPOLLIN;
	if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
		events |= EPOLLOUT;
	reactor_watch(s->reactor, fd, events);
	return 0;
}

bool
http_sockets_take_idle(http_sockets *s, int fd)
{
	http_socket *connection = find(s, fd);

	if (connection == NULL || !connection->idle)
		return false;
	condemn(s, connection);
	return true;
}

bool
http_sockets_allow(const http_sockets *s, CURL *easy)
{
	long		fresh = curl_version_info(CURLVERSION_NOW)->version_num >= LOOKS_SELDOM &&
		http_curl_seconds() - s->condemned_at < UNCHECKED_S;

	return curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, fresh) == CURLE_OK;
}

bool
http_sockets_init(http_sockets *s, reactor *r, CURLM *multi, int size)
{
	s->reactor = r;
	s->size = size;
	s->ended[0] = s->ended[1] = -1;
	s->sockets = calloc(size, sizeof(*s->sockets));
	s->condemned_at = http_curl_seconds() - UNCHECKED_S;
	return s->sockets != NULL &&
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s->ended) == 0 &&
		shutdown(s->ended[1], SHUT_WR) == 0 &&
		curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
		curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, s) == CURLM_OK;
}

bool
http_sockets_serve(http_sockets *s, CURL *easy)
{
	return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, s) == CURLE_OK;
}

void
http_sockets_destroy(http_sockets *s)
{
	for (int i = 0; i < 2 && s->size > 0 && s->ended[i] >= 0; i++)
		close(s->ended[i]);
	free(s->sockets);
}
