/*-------------------------------------------------------------------------
 *
 * http_sockets.c
 *	  curl's sockets in the reactor.
 *
 * After each reply curl asks us to remove the connection from the epoll set, and
 * to add it again for the next request.  We leave it there, which saves two system
 * calls per request, and shows us what arrives on an idle connection.  That can
 * only be a reason not to use it again: a 408, TLS's close_notify, the end of the
 * connection.  curl 7.88 checks only for the end, and would take other bytes for
 * the reply to its next request.
 *
 * Newer versions of curl do not even check for the end if they did so within the
 * last second.  With these, transfers use new connections until that second has
 * passed; then one that may use an old connection makes curl check, and close it.
 *
 * Connections' sockets are opened and closed here, so that a socket is removed
 * from the epoll set before it is closed.  curl's other descriptors (its
 * resolver's) are added and removed as curl asks.
 *
 * curl always begins with the first address of a name, and may spend a whole attempt
 * on it.  So an address that has failed is left out for a while.  If nothing else is
 * there, the connect fails at once, and the pool repeats it with all addresses.
 *
 * on_open(), on_close() and on_socket() run inside curl's callbacks.
 *
 *-------------------------------------------------------------------------
 */
#include "net/net.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* 8.15.0; Debian's 8.14.1 still checks each time. */
#define LOOKS_SELDOM 0x080f00

/* Whole seconds of which the first may be short: longer than the one after which curl checks. */
#define UNCHECKED_S 3

/* As long as a name server may go on to name an address that is dead. */
#define LEAVE_OUT_US INT64_C(60000000)

/* On the clock that curl uses, which stands still while the machine is suspended. */
static time_t
curl_seconds(void)
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

static bool
is_bad(const http_sockets *s, const char *address)
{
	int64_t		now = reactor_now_us();

	for (int i = 0; i < HTTP_BAD_ADDRESSES; i++)
		if (s->bad[i].until > now && strcmp(s->bad[i].address, address) == 0)
			return true;
	return false;
}

static curl_socket_t
on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	const http_opener *opener = arg;
	http_sockets *s = opener->sockets;
	const struct sockaddr *to = &address->addr;
	const void *bytes = to->sa_family == AF_INET6 ?
		(const void *) &((const struct sockaddr_in6 *) to)->sin6_addr :
		(const void *) &((const struct sockaddr_in *) to)->sin_addr;
	http_socket connection = {.opener = opener,.idle = true};

	(void) purpose;
	inet_ntop(to->sa_family, bytes, connection.address, sizeof(connection.address));
	if (is_bad(s, connection.address))
	{
		s->left_out++;
		return CURL_SOCKET_BAD;
	}
	if (s->count == s->size)
	{
		int			size = s->size > 0 ? s->size * 2 : 8;
		http_socket *grown = realloc(s->sockets, size * sizeof(*grown));

		if (grown == NULL)
			return CURL_SOCKET_BAD;
		s->sockets = grown;
		s->size = size;
	}
	connection.fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	if (connection.fd < 0)
		return CURL_SOCKET_BAD;
	connection.opened_at = reactor_now_us();
	s->sockets[s->count++] = connection;
	return connection.fd;
}

/* curl checks for a connection's end before it reuses it: end it here. */
static void
condemn(http_sockets *s, http_socket *connection)
{
	char		rest[1024];

	s->condemned += !connection->condemned;
	connection->condemned = true;
	s->condemned_at = curl_seconds();
	reactor_watch(s->reactor, connection->fd, 0);
	shutdown(connection->fd, SHUT_RDWR);
	for (int i = 0; i < 64; i++)
		if (recv(connection->fd, rest, sizeof(rest), MSG_DONTWAIT) <= 0)
			break;
}

void
http_sockets_answered(http_sockets *s, const char *address)
{
	int64_t		now = reactor_now_us();

	for (int i = 0; i < s->count; i++)
		if (strcmp(s->sockets[i].address, address) == 0)
			s->sockets[i].answered_at = now;
}

void
http_sockets_failed(http_sockets *s, const char *address, int64_t since)
{
	http_bad_address *bad = &s->bad[s->next_bad % HTTP_BAD_ADDRESSES];

	for (int i = 0; i < s->count; i++)
		if (s->sockets[i].answered_at >= since &&
			strcmp(s->sockets[i].address, address) == 0)
			return;
	for (int i = 0; i < s->count; i++)
	{
		http_socket *connection = &s->sockets[i];

		if (connection->idle && !connection->condemned && connection->answered_at > 0 &&
			strcmp(connection->address, address) == 0)
			condemn(s, connection);
	}
	if (is_bad(s, address))
		return;
	memset(bad, 0, sizeof(*bad));
	memcpy(bad->address, address, strnlen(address, sizeof(bad->address) - 1));
	bad->until = reactor_now_us() + LEAVE_OUT_US;
	s->next_bad++;
}

void
http_sockets_forgive(http_sockets *s)
{
	memset(s->bad, 0, sizeof(s->bad));
}

/* The socket is closed; it failed if there was no reply since it was opened. */
static void
forget(http_sockets *s, http_socket *connection)
{
	http_socket closed = *connection;

	s->condemned -= closed.condemned;
	*connection = s->sockets[--s->count];
	if (closed.answered_at == 0)
		http_sockets_failed(s, closed.address, closed.opened_at);
}

void
http_sockets_ended(http_sockets *s, const http_opener *opener)
{
	for (int i = s->count; i-- > 0;)
		if (s->sockets[i].opener == opener && s->sockets[i].answered_at == 0)
			forget(s, &s->sockets[i]);
}

static int
on_close(void *arg, curl_socket_t fd)
{
	http_sockets *s = arg;
	http_socket *connection = find(s, fd);

	reactor_watch(s->reactor, fd, 0);
	if (connection != NULL)
		forget(s, connection);
	return close(fd);
}

/*
 * A failure (no kernel memory) is not reported, because curl would abort all its
 * transfers; this one ends by its time-out.
 */
static int
on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
	http_sockets *s = arg;
	http_socket *connection = find(s, fd);
	int			events = 0;

	(void) easy;
	(void) unused;
	if (connection != NULL)
	{
		connection->idle = (what == CURL_POLL_REMOVE);
		if (connection->idle)
			events = EPOLLIN;
	}
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
	long		fresh = s->avoid_condemned && s->condemned > 0 &&
		curl_seconds() - s->condemned_at < UNCHECKED_S;

	return curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, fresh) == CURLE_OK;
}

bool
http_sockets_init(http_sockets *s, reactor *r, CURLM *multi)
{
	memset(s, 0, sizeof(*s));
	s->reactor = r;
	s->avoid_condemned = curl_version_info(CURLVERSION_NOW)->version_num >= LOOKS_SELDOM;
	return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK &&
		curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, s) == CURLM_OK;
}

bool
http_sockets_serve(http_sockets *s, http_opener *opener, CURL *easy)
{
	opener->sockets = s;
	return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, opener) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, s) == CURLE_OK;
}

void
http_sockets_destroy(http_sockets *s)
{
	free(s->sockets);
}
