/*-------------------------------------------------------------------------
 *
 * child.c
 *	  Runs a command with the shell, and reads its output, and the end of its error output.
 *
 * A command's process usually ends a moment after its output does.  So from the end of the output
 * on, we look every few milliseconds whether the process has ended.
 *
 * No process may be left to process 1.  In a container, that is often the postmaster.  If a signal
 * ends a child that the postmaster does not know, it assumes that a backend has crashed.  So this
 * process becomes the parent of what a command leaves behind, and collects (waits for) all
 * processes of the group.
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* pipe2(), posix_spawn_file_actions_addclosefrom_np() */
#endif

#include "net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX 65536
#define ERRORS_MAX 1024			/* bytes of the error output's end that are kept: from half of this
								 * to all */
#define PIPE_READS 200			/* enough reads to empty a pipe, which has up to 64 kB */
#define EXIT_POLL_US 5000
#define KILL_US 1000000			/* a killed process that needs longer to end is not waited for */
#define TOO_LONG "ran for too long"

extern char **environ;

struct child
{
	reactor    *reactor;
	pid_t		group;			/* the process group; 0: all of it is collected */
	bool		running;		/* done was not called yet */
	bool		stopping;		/* the group was killed */
	bool		exited;			/* the command itself has ended */
	int			status;			/* how it has ended, from waitpid() */
	int			fd;				/* to read its output; -1: closed, as at the end of the output */
	int			error_fd;		/* to read its error output; -1: closed */
	int64_t		deadline;		/* microseconds, CLOCK_BOOTTIME */
	const char *problem;		/* why the group was killed; NULL: the command ended by itself */
	child_done_fn done;
	void	   *arg;
	size_t		len;
	char		output[OUTPUT_MAX + 1];
	size_t		errors_len;
	char		errors[ERRORS_MAX + 1];
};

static void stop(child *c, const char *problem);

static void
close_end(child *c, int *fd)
{
	if (*fd < 0)
		return;
	reactor_watch(c->reactor, *fd, 0);
	close(*fd);
	*fd = -1;
}

/* Reads a part of the error output; false if nothing can be read now. */
static bool
read_errors(child *c)
{
	ssize_t		got;

	if (c->errors_len == ERRORS_MAX)
		memmove(c->errors, c->errors + ERRORS_MAX / 2, c->errors_len -= ERRORS_MAX / 2);
	got = c->error_fd < 0 ? 0 : read(c->error_fd, c->errors + c->errors_len, ERRORS_MAX - c->errors_len);
	if (got == 0)
		close_end(c, &c->error_fd);
	if (got > 0)
		c->errors_len += (size_t) got;
	return got > 0;
}

/* Collects the processes of the group that have ended.  Returns true if none is left. */
static bool
collect(child *c)
{
	pid_t		ended;
	int			status;

	if (c->group == 0)
		return true;
	while ((ended = waitpid(-c->group, &status, WNOHANG)) > 0)
	{
		if (ended != c->group)
			continue;
		c->exited = true;
		c->status = status;
		(void) kill(-c->group, SIGKILL);	/* the processes that it has left behind */
	}
	if (ended < 0 && errno != EINTR)
		c->group = 0;
	return c->group == 0;
}

static void
finish(child *c)
{
	child_end	end = {
		.problem = c->problem,.output = c->output,.len = c->len,.errors = c->errors
	};

	close_end(c, &c->fd);
	for (int i = 0; i < PIPE_READS && read_errors(c); i++)
		;
	close_end(c, &c->error_fd);
	c->errors[c->errors_len] = '\0';
	reactor_set_timer(c->reactor, -1);
	c->running = false;
	c->output[c->len] = '\0';
	if (c->problem == NULL && !c->exited)
		end.problem = "could not be waited for";
	else if (c->problem == NULL && !WIFEXITED(c->status))
		end.problem = "was ended by a signal";
	else if (c->problem == NULL)
		end.status = WEXITSTATUS(c->status);
	c->done(c->arg, &end);
	explicit_bzero(c->output, sizeof(c->output));
}

static void
look_for_exit(child *c)
{
	bool		none_left = collect(c);
	int64_t		left = c->deadline - reactor_now_us();

	if (none_left || (c->stopping && left <= 0))
		finish(c);
	else if (c->exited && !c->stopping)
		stop(c, NULL);
	else if (left <= 0)
		stop(c, TOO_LONG);
	else
		reactor_set_timer(c->reactor, left < EXIT_POLL_US ? left : EXIT_POLL_US);
}

/* Kills the group.  The kernel may need a moment for that, so look_for_exit() goes on to look. */
static void
stop(child *c, const char *problem)
{
	(void) kill(-c->group, SIGKILL);
	close_end(c, &c->fd);
	c->problem = problem;
	c->stopping = true;
	c->deadline = reactor_now_us() + KILL_US;
	look_for_exit(c);
}

static void
on_output(void *arg, int fd, int events)
{
	child	   *c = arg;
	ssize_t		got;

	(void) events;
	if (fd == c->error_fd)
	{
		(void) read_errors(c);
		return;
	}
	got = read(fd, c->output + c->len, OUTPUT_MAX + 1 - c->len);
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
		close_end(c, &c->fd);
		look_for_exit(c);
	}
}

static void
on_timer(void *arg)
{
	child	   *c = arg;

	if (!c->running)
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
	c->fd = c->error_fd = -1;
	(void) prctl(PR_SET_CHILD_SUBREAPER, 1);
	reactor_serve(r, on_output, on_timer, c);
	return c;
}

void
child_hurry(child *c)
{
	if (!c->running || c->stopping)
		return;
	c->deadline = reactor_now_us();
	reactor_set_timer(c->reactor, 0);
}

void
child_kill(child *c)
{
	int64_t		deadline = reactor_now_us() + KILL_US;

	if (c->group != 0)
		(void) kill(-c->group, SIGKILL);
	while (!collect(c) && reactor_now_us() < deadline)
		(void) poll(NULL, 0, EXIT_POLL_US / 1000);
	/* Collect processes that have left the group, and have ended. */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/*
 * Starts the shell with default signal handlers, no signal blocked, and no descriptors except
 * standard input, output and error output.
 */
static int
spawn_shell(pid_t *pid, const char *command, int output, int errors)
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
	posix_spawn_file_actions_adddup2(&actions, errors, 2);
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
	int			error_ends[2];
	int			result;

	if (!collect(c))
	{
		errno = EBUSY;
		return false;
	}
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	if (pipe2(error_ends, O_CLOEXEC) != 0)
	{
		close(ends[0]);
		close(ends[1]);
		return false;
	}
	result = spawn_shell(&c->group, command, ends[1], error_ends[1]);
	close(ends[1]);
	close(error_ends[1]);
	if (result == 0 && (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 ||
						fcntl(error_ends[0], F_SETFL, O_NONBLOCK) != 0 ||
						!reactor_watch(c->reactor, ends[0], EPOLLIN) ||
						!reactor_watch(c->reactor, error_ends[0], EPOLLIN)))
	{
		result = errno;
		(void) kill(-c->group, SIGKILL);
	}
	if (result != 0)
	{
		close(ends[0]);
		close(error_ends[0]);
		errno = result;
		return false;
	}
	c->fd = ends[0];
	c->error_fd = error_ends[0];
	c->len = c->errors_len = 0;
	c->running = true;
	c->stopping = c->exited = false;
	c->problem = NULL;
	c->done = done;
	c->arg = arg;
	c->deadline = reactor_now_us() + (int64_t) timeout_ms * 1000;
	reactor_set_timer(c->reactor, (int64_t) timeout_ms * 1000);
	return true;
}
