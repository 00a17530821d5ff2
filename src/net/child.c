/*-------------------------------------------------------------------------
 *
 * child.c
 *	  Runs a command with the shell, and reads what it prints, and the end of its error output.
 *
 * The end of the pipe comes first, the end of the process a moment later: then it
 * is looked for every few milliseconds.
 *
 * Nothing may be left to process 1.  In a container that is often the postmaster,
 * which takes a child that it does not know, and that a signal ended, for a crashed
 * backend.  So this process becomes the parent of what a command leaves behind, and
 * collects all of the group.
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
#define ERRORS_MAX 1024			/* of its error output the end is kept, at least half of this */
#define PIPE_READS 200			/* empty a pipe of 64 kB */
#define EXIT_POLL_US 5000
#define KILL_US 1000000			/* a process that takes longer to end is left alone */
#define TOO_LONG "ran for too long"

extern char **environ;

struct child
{
	reactor    *reactor;
	pid_t		group;			/* not all of it is collected; 0: there is none */
	bool		running;		/* done is still to be called */
	bool		stopping;		/* the group was killed */
	bool		exited;			/* the command itself, with this status */
	int			status;
	int			fd;				/* its output; -1: at its end */
	int			error_fd;		/* likewise */
	int64_t		deadline;		/* microseconds, CLOCK_BOOTTIME */
	const char *problem;		/* why it was killed, or NULL */
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

/* False if there is none now. */
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

/* Collects those of the group that have ended: is none left? */
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
		(void) kill(-c->group, SIGKILL);	/* what it has left behind */
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

/* The kernel may need a moment to end it. */
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
	/* Those that have left the group, and have ended. */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Signals as a program expects them, and no descriptor but the three. */
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
