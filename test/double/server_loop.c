/*-------------------------------------------------------------------------
 *
 * server_loop.c
 *	  The server's epoll loop and its events.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "server.h"

#define BATCH 64

static volatile sig_atomic_t stop_wanted;

static void
on_stop(int signal_number)
{
	(void) signal_number;
	stop_wanted = 1;
}

int64_t
server_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* xorshift64* */
uint64_t
server_random(server *s)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return s->random * UINT64_C(2685821657736338717);
}

void
server_append(server_bytes *to, const char *data, size_t len)
{
	if (to->len + len + 1 > to->size)
	{
		to->size = (to->len + len + 1) * 2;
		to->data = realloc(to->data, to->size);
	}
	memcpy(to->data + to->len, data, len);
	to->len += len;
	to->data[to->len] = '\0';
}

server_event *
server_event_new(server *s, server_event_kind kind, int64_t delay_us, connection *c)
{
	server_event *event = calloc(1, sizeof(server_event));
	server_event **at = &s->events;

	event->kind = kind;
	event->due_us = server_now_us() + delay_us;
	event->c = c;
	while (*at != NULL && (*at)->due_us <= event->due_us)
		at = &(*at)->next;
	event->next = *at;
	*at = event;
	return event;
}

static void
apply(server *s, const server_event *event)
{
	char	   *reply;
	size_t		len;

	dynamo_double_request(s->d, event->target, event->bytes, event->len, &reply, &len);
	free(reply);
}

/* Those that are due; returns how long until the next, in milliseconds. */
static int
run_events(server *s)
{
	while (s->events != NULL)
	{
		server_event *event = s->events;
		int64_t		wait_us = event->due_us - server_now_us();

		if (wait_us > 0)
			return wait_us > 60000000 ? 60000 : (int) (wait_us / 1000) + 1;
		s->events = event->next;
		if (event->kind == SERVER_APPLY)
			apply(s, event);
		else if (event->c != NULL && event->kind == SERVER_HANDSHAKE)
			server_begin_handshake(s, event->c);
		else if (event->c != NULL)
			server_send(s, event->c, event->bytes, event->len);
		free(event->bytes);
		free(event);
	}
	return -1;
}

/* Signals are let in only while it waits, so that none is missed. */
static void
catch_signals(sigset_t *while_waiting)
{
	struct sigaction action = {.sa_handler = on_stop};
	sigset_t	stops;

	sigemptyset(&stops);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGINT);
	sigprocmask(SIG_BLOCK, &stops, while_waiting);
	sigdelset(while_waiting, SIGTERM);
	sigdelset(while_waiting, SIGINT);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void
server_run(server *s)
{
	struct epoll_event ready[BATCH];
	sigset_t	while_waiting;

	catch_signals(&while_waiting);
	while (!stop_wanted)
	{
		int			timeout = run_events(s);
		int			count = epoll_pwait(s->epoll, ready, BATCH, timeout, &while_waiting);

		if (count < 0 && errno != EINTR)
		{
			perror("epoll_pwait");
			exit(1);
		}

		for (int i = 0; i < count; i++)
		{
			if (ready[i].data.ptr == NULL)
				server_accept(s);
			else
				server_ready(s, ready[i].data.ptr, ready[i].events);
		}
		server_free_closed(s);
	}
}
