/*-------------------------------------------------------------------------
 *
 * child.h
 *	  Runs a command with the shell, and reads what it prints.
 *
 * Never blocks.  The command's input and errors go to /dev/null.  It runs in a
 * process group of its own, which is killed at the end: what the command has left
 * behind, or all of it when its time is up.  This process collects all that end; only
 * what leaves the group (setsid) can outlive it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_NET_CHILD_H
#define DDBLOCK_NET_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "net/reactor.h"

typedef struct child child;

/* How it ended. */
typedef struct child_end
{
	const char *problem;		/* NULL: it exited by itself */
	int			status;			/* of its exit */
	char	   *output;			/* valid during the done function only; a NUL follows */
	size_t		len;
} child_end;

typedef void (*child_done_fn) (void *arg, const child_end *end);

/*
 * The reactor is for this alone.  NULL if memory is short.  From now on the calling
 * process inherits what its children leave behind, in place of process 1.
 */
extern child *child_new(reactor *r);

/*
 * Starts the command; one at a time.  Exactly one call of done follows, from within
 * reactor_run().  False, with errno set, if it cannot be started.
 */
extern bool child_start(child *c, const char *command, int timeout_ms,
						child_done_fn done, void *arg);

/* The command that runs, if one does, has no time left. */
extern void child_hurry(child *c);

/*
 * Before the process ends: kills the command, if one runs, and waits until it has
 * gone, a second at most.  May be called from a signal handler.
 */
extern void child_kill(child *c);

#endif							/* DDBLOCK_NET_CHILD_H */
