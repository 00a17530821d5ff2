/*-------------------------------------------------------------------------
 *
 * server.c
 *	  The DynamoDB double as a program.
 *
 *	dynamodb-double [--port N] [--port-file FILE] [--tls CERTIFICATE KEY]
 *		[--credentials KEY:SECRET[:TOKEN]]... [--seed N]
 *
 * Listens on 127.0.0.1 only (port 0, the default: any) and writes the port
 * into the file once it is ready.  Every request has to be signed with
 * credentials that were given, here or by command (server_control.c tells the
 * commands; they may always come without TLS).  Ends on SIGTERM.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE				/* SOCK_NONBLOCK */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Returns the port. */
static int
listen_on(server *s, int port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,.sin_port = htons((uint16_t) port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	socklen_t	len = sizeof(address);
	struct epoll_event event = {.events = EPOLLIN,.data.ptr = NULL};
	int			on = 1;

	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->listener < 0)
		fail("socket");
	setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s->listener, (struct sockaddr *) &address, len) != 0 ||
		listen(s->listener, 1024) != 0 ||
		getsockname(s->listener, (struct sockaddr *) &address, &len) != 0)
		fail("listen");
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->listener, &event) != 0)
		fail("epoll");
	return ntohs(address.sin_port);
}

/* Complete at once, or not there. */
static void
write_port(const char *file, int port)
{
	char		part[4096];
	FILE	   *out;

	snprintf(part, sizeof(part), "%s.part", file);
	out = fopen(part, "w");
	if (out == NULL || fprintf(out, "%d\n", port) < 0 || fclose(out) != 0 ||
		rename(part, file) != 0)
		fail(file);
}

static SSL_CTX *
load_tls(const char *certificate, const char *key)
{
	SSL_CTX    *tls = SSL_CTX_new(TLS_server_method());

	if (tls == NULL || SSL_CTX_use_certificate_chain_file(tls, certificate) != 1 ||
		SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) != 1)
	{
		fprintf(stderr, "dynamodb-double: cannot use %s and %s\n", certificate, key);
		exit(1);
	}
	return tls;
}

/* KEY:SECRET[:TOKEN] */
static void
add_credentials(server *s, const char *text)
{
	char	   *copy = strdup(text);
	char	   *rest;
	const char *key = strtok_r(copy, ":", &rest);
	const char *secret = strtok_r(NULL, ":", &rest);

	server_auth_set(s, key, secret, strtok_r(NULL, ":", &rest), "valid");
	free(copy);
}

static void
usage(void)
{
	fprintf(stderr, "usage: dynamodb-double [--port N] [--port-file FILE]"
			" [--tls CERTIFICATE KEY] [--credentials KEY:SECRET[:TOKEN]]..."
			" [--seed N]\n");
	exit(2);
}

/* How many of the arguments from args[0] on were taken. */
static int
take_option(server *s, char **args, int *port, const char **port_file)
{
	if (args[1] == NULL)
		usage();
	if (strcmp(args[0], "--port") == 0)
		*port = atoi(args[1]);
	else if (strcmp(args[0], "--port-file") == 0)
		*port_file = args[1];
	else if (strcmp(args[0], "--credentials") == 0)
		add_credentials(s, args[1]);
	else if (strcmp(args[0], "--seed") == 0)
		s->random ^= strtoull(args[1], NULL, 10) * 2 + 2;
	else if (strcmp(args[0], "--tls") == 0 && args[2] != NULL)
	{
		s->tls = load_tls(args[1], args[2]);
		return 3;
	}
	else
		usage();
	return 2;
}

static void
free_counts(server_count *list)
{
	while (list != NULL)
	{
		server_count *next = list->next;

		free(list);
		list = next;
	}
}

static void
free_all(server *s)
{
	while (s->connections != NULL)
		server_close(s, s->connections, false);
	server_free_closed(s);
	while (s->faults != NULL)
	{
		server_fault *next = s->faults->next;

		server_fault_free(s->faults);
		s->faults = next;
	}
	server_allow_all(s);
	while (s->events != NULL)
	{
		server_event *next = s->events->next;

		free(s->events->bytes);
		free(s->events);
		s->events = next;
	}
	while (s->credentials != NULL)
	{
		server_credential *next = s->credentials->next;

		free(s->credentials->key);
		free(s->credentials->secret);
		free(s->credentials->token);
		free(s->credentials);
		s->credentials = next;
	}
	free_counts(s->requests);
	free_counts(s->refused);
	free_counts(s->keys);
	free(s->buckets);
	dynamo_double_free(s->d);
	SSL_CTX_free(s->tls);
	close(s->listener);
	close(s->epoll);
}

int
main(int argc, char **argv)
{
	server		s = {.random = UINT64_C(0x9e3779b97f4a7c15)};
	const char *port_file = NULL;
	int			port = 0;

	for (int i = 1; i < argc;)
		i += take_option(&s, argv + i, &port, &port_file);
	s.d = dynamo_double_new();
	s.buckets = calloc(SERVER_BUCKETS, sizeof(server_bucket));
	dynamo_double_limit(s.d, server_admit, &s);
	dynamo_double_authorize(s.d, server_allows, &s);
	port = listen_on(&s, port);
	if (port_file != NULL)
		write_port(port_file, port);
	server_run(&s);
	free_all(&s);
	return 0;
}
