/*-------------------------------------------------------------------------
 *
 * child.c
 *	  Runs a command with the shell, and reads what it prints.
 *
 * The end of the pipe comes first, the end of the process a moment later: then it
 * is looked for every few milliseconds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* pipe2(), posix_spawn_file_actions_addclosefrom_np() */
#endif

#include "net/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX 65536
#define EXIT_POLL_US 5000
#define KILL_US 1000000			/* a process that takes longer to end is left alone */
#define TOO_LONG "ran for too long"

extern char **environ;

struct child
{
	reactor    *reactor;
	pid_t		pid;			/* 0: none runs */
	pid_t		killed;			/* still to be waited for; 0: none */
	int			fd;				/* its output; -1: at its end */
	int64_t		deadline;		/* microseconds, CLOCK_BOOTTIME */
	const char *problem;		/* why it was killed, or NULL */
	child_done_fn done;
	void	   *arg;
	size_t		len;
	char		output[OUTPUT_MAX + 1];
};

static void look_for_exit(child *c);

static void
close_output(child *c)
{
	if (c->fd < 0)
		return;
	reactor_watch(c->reactor, c->fd, 0);
	close(c->fd);
	c->fd = -1;
}

static void
finish(child *c, const char *problem, int status)
{
	child_end	end = {.problem = problem,.output = c->output,.len = c->len};
	pid_t		group = c->pid;

	close_output(c);
	reactor_set_timer(c->reactor, -1);
	c->pid = 0;
	(void) kill(-group, SIGKILL);
	c->output[c->len] = '\0';
	if (problem == NULL && WIFEXITED(status))
		end.status = WEXITSTATUS(status);
	else if (problem == NULL)
		end.problem = "was ended by a signal";
	c->done(c->arg, &end);
	explicit_bzero(c->output, sizeof(c->output));
}

/* The kernel may need a moment to end it. */
static void
stop(child *c, const char *problem)
{
	(void) kill(-c->pid, SIGKILL);
	close_output(c);
	c->problem = problem;
	c->deadline = reactor_now_us() + KILL_US;
	look_for_exit(c);
}

/* Has the last one that was killed gone? */
static bool
reap(child *c)
{
	if (c->killed != 0 && waitpid(c->killed, NULL, WNOHANG) != 0)
		c->killed = 0;
	return c->killed == 0;
}

static void
look_for_exit(child *c)
{
	int			status = 0;
	int64_t		left = c->deadline - reactor_now_us();
	pid_t		ended = waitpid(c->pid, &status, WNOHANG);

	if (ended == c->pid)
		finish(c, c->problem, status);
	else if (ended < 0 && errno != EINTR)
		finish(c, "could not be waited for", 0);
	else if (left <= 0 && c->problem == NULL)
		stop(c, TOO_LONG);
	else if (left <= 0)
	{
		c->killed = c->pid;
		finish(c, c->problem, 0);
	}
	else
		reactor_set_timer(c->reactor, left < EXIT_POLL_US ? left : EXIT_POLL_US);
}

static void
on_output(void *arg, int fd, int events)
{
	child	   *c = arg;
	ssize_t		got = read(fd, c->output + c->len, OUTPUT_MAX + 1 - c->len);

	(void) events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got > 0)
		c->len += (size_t) got;
	if (c->len > OUTPUT_MAX)
	{
		c->len = 0;
		stop(c, "printed too much");
	}
	else if (got <= 0)
	{
		close_output(c);
		look_for_exit(c);
	}
}

static void
on_timer(void *arg)
{
	child	   *c = arg;

	if (c->pid == 0)
		return;
	if (c->fd < 0)
		look_for_exit(c);
	else
		stop(c, TOO_LONG);
}

child *
child_new(reactor *r)
{
	child	   *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->reactor = r;
	c->fd = -1;
	reactor_on_io(r, on_output, c);
	reactor_on_timer(r, on_timer, c);
	return c;
}

void
child_kill(child *c)
{
	if (c->pid != 0)
		(void) kill(-c->pid, SIGKILL);
}

/* Signals as a program expects them, and no descriptor but the three. */
static int
spawn_shell(pid_t *pid, const char *command, int output)
{
	char	   *const argv[] = {"sh", "-c", (char *) command, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t	none,
				all;
	int			result;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, output, 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
							 POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	result = posix_spawn(pid, "/bin/sh", &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return result;
}

bool
child_start(child *c, const char *command, int timeout_ms, child_done_fn done, void *arg)
{
	int			ends[2];
	int			result;

	if (!reap(c))
	{
		errno = EBUSY;
		return false;
	}
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	result = spawn_shell(&c->pid, command, ends[1]);
	close(ends[1]);
	if (result == 0 && (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 ||
						!reactor_watch(c->reactor, ends[0], REACTOR_IN)))
	{
		result = errno;
		(void) kill(-c->pid, SIGKILL);
		c->killed = c->pid;
	}
	if (result != 0)
	{
		close(ends[0]);
		c->pid = 0;
		errno = result;
		return false;
	}
	c->fd = ends[0];
	c->len = 0;
	c->problem = NULL;
	c->done = done;
	c->arg = arg;
	c->deadline = reactor_now_us() + (int64_t) timeout_ms * 1000;
	reactor_set_timer(c->reactor, (int64_t) timeout_ms * 1000);
	return true;
}
