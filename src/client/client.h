/*-------------------------------------------------------------------------
 *
 * client.h
 *	  What the files of ddblock-run share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_CLIENT_CLIENT_H
#define DDBLOCK_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* ----------------------------------------------------------------
 * command.c: The command that ddblock-run runs: its process group, its signals, its terminal.
 * ----------------------------------------------------------------
 */

typedef struct command_state
{
	bool		runs;
	int			status;			/* if it has ended: the exit status that ddblock-run passes on */
	int			signals;		/* a descriptor that is readable when command_read_signals() has
								 * something to do */
} command_state;

extern command_state command;

extern void command_start(char **argv);

/*
 * Passes signals that were sent to ddblock-run on to the command, and finds out whether the command
 * has ended.  Returns the last such signal, SIGTERM for example; 0: there was none.
 */
extern int	command_read_signals(void);

/*
 * Tells the command's process group to end (SIGTERM), if the command runs and was not told yet.
 * at_once: also kills the group (SIGKILL), even if the command itself has ended.
 */
extern void command_end(bool at_once);

/* ----------------------------------------------------------------
 * common.c: What all files of ddblock-run use: messages, memory, the clock.
 * ----------------------------------------------------------------
 */

/* Exit statuses, as flock(1) and timeout(1) have them. */
#define EXIT_BUSY		1		/* the lock was not free in time; --conflict-exit-code changes it */
#define EXIT_MISSING	75		/* ddb_check() has found that something is missing */
#define EXIT_LOST		124		/* the lock was lost; if the command still ran, it was ended */
#define EXIT_OURS		125		/* ddblock-run itself failed */
#define EXIT_NO_EXEC	126		/* the command cannot be run */
#define EXIT_NOT_FOUND	127		/* the command does not exist */
#define EXIT_SIGNAL		128		/* plus the number of the signal that ended the command */

/* Prints a line on standard error. */
extern void say(const char *format,...) __attribute__((format(printf, 1, 2)));

/* Formats a text, malloc'd. */
extern char *text(const char *format,...) __attribute__((format(printf, 1, 2)));

/* Returns its argument; ends the program if that is null, because memory is short. */
extern void *checked(void *memory);

/* Microseconds on CLOCK_BOOTTIME, which goes on while the machine is suspended. */
extern int64_t now_us(void);

/* The value, but at least low and at most high. */
extern int64_t between(int64_t low, int64_t value, int64_t high);

#define die(...) \
	do { say(__VA_ARGS__); exit(EXIT_OURS); } while (0)

/* ----------------------------------------------------------------
 * lease.c: The session of ddblock-run that holds the lock, and what its server says of the lease.
 * ----------------------------------------------------------------
 */

typedef struct command_lease
{
	const char *name;			/* of the lock */
	int64_t		length_us;		/* for how long the lock outlives the session */
	int64_t		deadline;		/* the lock is ours until then; on now_us() */
	bool		lost;			/* the lock is lost, or the connection is */
	int64_t		told_at;		/* when we sent the last question that was answered */
	char	   *others;			/* processes of other sessions that held the lock at told_at */
	bool		joined;			/* our session has joined the lock as well as taken it: another
								 * ddblock-run, which runs us, holds the same lock */
	bool		released;
} command_lease;

extern command_lease lease;

typedef struct lease_wish
{
	const char *dbname;			/* null: the default, which is psql's */
	const char *name;
	const char *length;			/* of the lease; null: ddblock.lease_duration */
	bool		waits;
	const char *wait;			/* how long; null: without limit */
	int			busy_status;	/* the exit status if the lock is not free in time */
	bool		checks;			/* no lock is wanted, but ddb_check() */
} lease_wish;

/*
 * Takes the lock, and sets the environment variables by which the command's sessions join it.
 * Waits for the server.  An error ends the program.
 */
extern void lease_take(const lease_wish *wish);

/* Prints what ddb_check() finds.  Returns the exit status: 0, or EXIT_MISSING. */
extern int	lease_check(const char *dbname);

/*
 * The following functions do not wait for the server.  Each may find that the lock is lost, and
 * sets lease.lost then.
 *
 * lease_ask() and lease_release() send a question to the server, unless the last one is not
 * answered yet: until when is the lock ours, and is it released?  lease_ask() sends none if the
 * last one was sent less than interval_us ago.  Both return when to call them again; INT64_MAX: not
 * before there is an answer.
 */
extern int64_t lease_ask(int64_t interval_us);
extern int64_t lease_release(void);

/* A descriptor that is readable when lease_read() has something to do; -1: none. */
extern int	lease_socket(void);

/* Reads what the server has sent, and stores an answer in "lease". */
extern void lease_read(void);

/* When the command must be told to end: early enough to end by itself before the deadline. */
extern int64_t lease_end_at(void);

/* Sets lease.lost, and prints why the lock is lost. */
extern void lease_lose(const char *why);

/* Ends the session. */
extern void lease_close(void);

#endif							/* DDBLOCK_CLIENT_CLIENT_H */
